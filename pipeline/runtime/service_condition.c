// SPDX-License-Identifier: Apache-2.0
// The state of each component and of the whole, for probes and the status page.
#include "base/clock.h"
#include "base/log.h"
#include "pipeline/runtime/service.h"
#include "pipeline/runtime/service_state.h"

#include <assert.h>
#include <stdio.h>

static const uint64_t STUCK_NS = 30 * UINT64_C(1000000000);

void condition_init(struct condition *condition) {
    *condition = (struct condition){.state = COMPONENT_STARTING, .since_unix_ns = clock_unix_ns()};
    lock_init(&condition->lock);
}

void instance_condition(struct instance *instance, enum component_state state,
                        const char *sentence) {
    assert(instance->component != NULL);
    struct condition *condition = &instance->condition;
    const char *text = sentence == NULL ? "" : sentence;
    lock_take(&condition->lock);
    bool changed = condition->state != state;
    bool reworded = strncmp(condition->sentence, text, sizeof condition->sentence - 1) != 0;
    enum component_state before = condition->state;
    condition->state = state;
    if (changed)
        condition->since_unix_ns = clock_unix_ns();
    if (reworded)
        snprintf(condition->sentence, sizeof condition->sentence, "%s", text);
    lock_release(&condition->lock);
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
    lock_take(&condition->lock);
    out->state = condition->state;
    snprintf(out->sentence, sizeof out->sentence, "%s", condition->sentence);
    out->since_unix_ns = condition->since_unix_ns;
    lock_release(&condition->lock);
}

static void describe_sender(struct run_exporter *exporter, struct component_status *out) {
    describe(&exporter->instance, out);
    struct sender *sender = &exporter->sender;
    lock_take(&sender->lock);
    if (sender->dead || sender->retry.failing_since_ns != 0) {
        out->state = sender->dead ? COMPONENT_PERMANENT : COMPONENT_RECOVERABLE;
        snprintf(out->sentence, sizeof out->sentence, "%.*s", (int)sizeof out->sentence - 1,
                 sender->error.message);
    }
    lock_release(&sender->lock);
}

uint32_t service_list_components(struct service *service, struct component_status *statuses,
                                 uint32_t max) {
    assert(lock_is_held(&service->status_lock));
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
    assert(((const struct service *)context)->magic == SERVICE_MAGIC);
    struct service *service = context;
    lock_take(&service->status_lock);
    uint32_t count = service->built ? service_list_components(service, statuses, max) : 0;
    lock_release(&service->status_lock);
    return count;
}

static void tell_health(void *context, struct service_health *health) {
    assert(((const struct service *)context)->magic == SERVICE_MAGIC);
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
    struct storage_statistics figures = {0};
    lock_take(&service->status_lock);
    if (service->built && service->store != NULL)
        storage_statistics(service->store, &figures);
    lock_release(&service->status_lock);
    if (figures.degraded) {
        health->ready = false;
        snprintf(health->sentence, sizeof health->sentence, "the store cannot be written: %s",
                 figures.reason);
    }
    lock_take(&service->reload_lock);
    if (service->reload_refused) {
        health->last_config_taken = health->ready = false;
        snprintf(health->sentence, sizeof health->sentence,
                 "the last configuration was not taken: %.180s", service->reload_sentence);
    }
    lock_release(&service->reload_lock);
}

void service_status_init(struct service *service) {
    assert(service->magic == SERVICE_MAGIC);
    service->up_since_unix_ns = clock_unix_ns();
    lock_init(&service->reload_lock);
    lock_init(&service->status_lock);
    service->status = (struct service_status){
        .context = service, .health = tell_health, .components = list_components};
}

void service_set_built(struct service *service, bool built) {
    assert(service->magic == SERVICE_MAGIC);
    lock_take(&service->status_lock);
    service->built = built;
    lock_release(&service->status_lock);
}

void service_note_reload(struct service *service, bool taken, const char *why_not) {
    assert(service->magic == SERVICE_MAGIC);
    lock_take(&service->reload_lock);
    service->reload_refused = !taken;
    snprintf(service->reload_sentence, sizeof service->reload_sentence, "%s",
             why_not == NULL ? "" : why_not);
    lock_release(&service->reload_lock);
}
