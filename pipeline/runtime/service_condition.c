// SPDX-License-Identifier: Apache-2.0
// How does each component do, and the whole?
#include "base/clock.h"
#include "base/log.h"
#include "pipeline/runtime/service_state.h"

#include <stdio.h>

static const uint64_t STUCK_NS = 30 * UINT64_C(1000000000);

void condition_init(struct condition *condition) {
    *condition = (struct condition){.state = COMPONENT_STARTING, .since_unix_ns = clock_unix_ns()};
    pthread_mutex_init(&condition->lock, NULL);
}

void instance_condition(struct instance *instance, enum component_state state,
                        const char *sentence) {
    struct condition *condition = &instance->condition;
    const char *text = sentence == NULL ? "" : sentence;
    pthread_mutex_lock(&condition->lock);
    bool changed = condition->state != state;
    bool reworded = strncmp(condition->sentence, text, sizeof condition->sentence - 1) != 0;
    enum component_state before = condition->state;
    condition->state = state;
    if (changed)
        condition->since_unix_ns = clock_unix_ns();
    if (reworded)
        snprintf(condition->sentence, sizeof condition->sentence, "%s", text);
    pthread_mutex_unlock(&condition->lock);
    if (state == COMPONENT_RECOVERABLE && (changed || reworded))
        log_write(LOG_WARN, (struct log_site){"C1006", instance->site}, "%s", text);
    else if (changed && state == COMPONENT_OK && before == COMPONENT_RECOVERABLE)
        log_write(LOG_INFO, (struct log_site){"C1007", instance->site}, "works again");
}

static void describe(struct instance *instance, struct component_status *out) {
    struct condition *condition = &instance->condition;
    snprintf(out->id, sizeof out->id, "%s", instance->site);
    snprintf(out->pipeline, sizeof out->pipeline, "%s",
             instance->pipeline == NULL ? "" : instance->pipeline);
    pthread_mutex_lock(&condition->lock);
    out->state = condition->state;
    snprintf(out->sentence, sizeof out->sentence, "%s", condition->sentence);
    out->since_unix_ns = condition->since_unix_ns;
    pthread_mutex_unlock(&condition->lock);
}

static void describe_sender(struct run_exporter *exporter, struct component_status *out) {
    describe(&exporter->instance, out);
    struct sender *sender = &exporter->sender;
    sender_lock(sender);
    if (sender->dead || sender->failing_since_ns != 0) {
        out->state = sender->dead ? COMPONENT_PERMANENT : COMPONENT_RECOVERABLE;
        snprintf(out->sentence, sizeof out->sentence, "%.*s", (int)sizeof out->sentence - 1,
                 sender->error.message);
    }
    sender_unlock(sender);
}

uint32_t service_list_components(struct service *service, struct component_status *statuses,
                                 uint32_t max) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < service->extension_count && count < max; i++)
        describe(&service->extensions[i], &statuses[count++]);
    for (uint32_t i = 0; i < service->receiver_count && count < max; i++)
        describe(&service->receivers[i].instance, &statuses[count++]);
    for (uint32_t i = 0; i < service->pipeline_count; i++)
        for (uint32_t j = 0; j < service->pipelines[i].stage_count && count < max; j++)
            describe(&service->pipelines[i].stages[j], &statuses[count++]);
    for (uint32_t i = 0; i < service->exporter_count && count < max; i++)
        describe_sender(&service->exporters[i], &statuses[count++]);
    return count;
}

static uint32_t list_components(void *context, struct component_status *statuses, uint32_t max) {
    struct service *service = context;
    pthread_mutex_lock(&service->status_lock);
    uint32_t count = service->built ? service_list_components(service, statuses, max) : 0;
    pthread_mutex_unlock(&service->status_lock);
    return count;
}

static void tell_health(void *context, struct service_health *health) {
    struct service *service = context;
    uint64_t turned = atomic_load(&service->turned_ns);
    *health = (struct service_health){
        .live = turned == 0 || clock_monotonic_ns() < turned + STUCK_NS,
        .started = atomic_load(&service->running),
        .last_config_taken = true,
        .up_since_unix_ns = service->up_since_unix_ns,
    };
    health->ready = health->started && !atomic_load(&service->stopping);
    if (!health->started)
        snprintf(health->sentence, sizeof health->sentence, "starting");
    else if (!health->ready)
        snprintf(health->sentence, sizeof health->sentence, "stopping");
    struct store_figures figures = {0};
    pthread_mutex_lock(&service->status_lock);
    if (service->built && service->store != NULL)
        store_figures(service->store, &figures);
    pthread_mutex_unlock(&service->status_lock);
    if (figures.degraded) {
        health->ready = false;
        snprintf(health->sentence, sizeof health->sentence, "the store cannot be written: %s",
                 figures.reason);
    }
    pthread_mutex_lock(&service->reload_lock);
    if (service->reload_refused) {
        health->last_config_taken = health->ready = false;
        snprintf(health->sentence, sizeof health->sentence,
                 "the last configuration was not taken: %.180s", service->reload_sentence);
    }
    pthread_mutex_unlock(&service->reload_lock);
}

void service_status_init(struct service *service) {
    service->up_since_unix_ns = clock_unix_ns();
    pthread_mutex_init(&service->reload_lock, NULL);
    pthread_mutex_init(&service->status_lock, NULL);
    service->status = (struct service_status){
        .context = service, .health = tell_health, .components = list_components};
}

void service_set_built(struct service *service, bool built) {
    pthread_mutex_lock(&service->status_lock);
    service->built = built;
    pthread_mutex_unlock(&service->status_lock);
}

void service_note_reload(struct service *service, bool taken, const char *why_not) {
    pthread_mutex_lock(&service->reload_lock);
    service->reload_refused = !taken;
    snprintf(service->reload_sentence, sizeof service->reload_sentence, "%s",
             why_not == NULL ? "" : why_not);
    pthread_mutex_unlock(&service->reload_lock);
}
