// SPDX-License-Identifier: Apache-2.0
#include "pipeline/runtime/control/request.h"

#include "pipeline/component/component.h"
#include "pipeline/runtime/service_state.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

// As they stand in the query; NULL: not there.
struct texts {
    char *pipeline, *stage, *kind, *job, *rank, *every, *rate, *limit;
};

static int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// In place. False: a percent sign without two digits, or a zero byte.
static bool percent_decode(char *text) {
    char *to = text;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at != '%') {
            *to++ = *at == '+' ? ' ' : *at;
            continue;
        }
        int high = hex_digit(at[1]), low = high < 0 ? -1 : hex_digit(at[2]);
        if (low < 0 || high * 16 + low == 0)
            return false;
        *to++ = (char)(high * 16 + low);
        at += 2;
    }
    *to = '\0';
    return true;
}

static enum status split(struct texts *texts, char *query, struct error *error) {
    const struct {
        const char *name;
        char **value;
    } keys[] = {{"pipeline", &texts->pipeline}, {"stage", &texts->stage}, {"kind", &texts->kind},
                {"job", &texts->job},           {"rank", &texts->rank},   {"every", &texts->every},
                {"rate", &texts->rate},         {"limit", &texts->limit}};
    char *rest = NULL;
    for (char *part = strtok_r(query, "&", &rest); part != NULL;
         part = strtok_r(NULL, "&", &rest)) {
        char *value = strchr(part, '=');
        size_t i = 0, count = sizeof keys / sizeof keys[0];
        if (value == NULL || !percent_decode(value + 1))
            return error_set(error, STATUS_USAGE, "the query is not NAME=VALUE, percent-encoded");
        *value = '\0';
        while (i < count && strcmp(keys[i].name, part) != 0)
            i++;
        if (i == count)
            return error_set(error, STATUS_USAGE, "no parameter is called \"%.64s\"", part);
        *keys[i].value = value + 1;
    }
    return STATUS_OK;
}

// `*number` stays when there is no text.
static enum status read_number(const char *text, const char *name, uint64_t least, uint64_t most,
                               uint64_t *number, struct error *error) {
    if (text == NULL)
        return STATUS_OK;
    size_t digits = strspn(text, "0123456789");
    errno = 0;
    unsigned long long value = strtoull(text, NULL, 10);
    if (digits == 0 || text[digits] != '\0' || errno != 0 || value < least || value > most)
        return error_set(error, STATUS_USAGE,
                         "%s is \"%.64s\"; it must be a number from %llu to %llu", name, text,
                         (unsigned long long)least, (unsigned long long)most);
    *number = value;
    return STATUS_OK;
}

static struct run_pipeline *find_pipeline(struct service *service, const char *name) {
    for (uint32_t i = 0; i < service->pipeline_count; i++)
        if (strcmp(service->pipelines[i].runner.plan->name, name) == 0)
            return &service->pipelines[i];
    return NULL;
}

// "a, b, c"
static void list_pipelines(const struct service *service, char *out, size_t size) {
    size_t at = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < service->pipeline_count && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%s", i == 0 ? "" : ", ",
                               service->pipelines[i].runner.plan->name);
}

static enum status read_pipeline(struct tap_request *request, struct service *service,
                                 const char *name, struct run_pipeline **found,
                                 struct error *error) {
    char names[256];
    list_pipelines(service, names, sizeof names);
    if (name == NULL || name[0] == '\0')
        return error_set(error, STATUS_USAGE, "no pipeline is named; there are: %s", names);
    *found = find_pipeline(service, name);
    if (*found == NULL)
        return error_set(error, STATUS_NOT_FOUND, "there is no pipeline \"%.128s\"; there are: %s",
                         name, names);
    request->runner = &(*found)->runner;
    return STATUS_OK;
}

static void choose_all(struct tap_choice *choice, const struct component_type *taker) {
    for (uint32_t class = 0; class < EVENT_CLASS_COUNT; class ++)
        choice->events[class] = event_class_name(class) != NULL &&
                                (taker == NULL || component_takes(taker, NULL, class));
}

// The point, and all that passes there.
static enum status read_stage(struct tap_choice *choice, const struct run_pipeline *pipeline,
                              const char *stage, struct error *error) {
    choice->point = TAP_ENTRY;
    if (stage == NULL || stage[0] == '\0') {
        choose_all(choice, NULL);
        return STATUS_OK;
    }
    choice->verdicts = true;
    for (uint32_t i = 0; i < pipeline->stage_count; i++) {
        if (strcmp(pipeline->stages[i].component->id, stage) != 0)
            continue;
        choice->point = (int32_t)i;
        choose_all(choice, pipeline->stages[i].component->type);
        return STATUS_OK;
    }
    choice->point = TAP_OUT;
    if (strcmp(stage, "out") == 0)
        return STATUS_OK;
    char names[512];
    size_t at = 0;
    names[0] = '\0';
    for (uint32_t i = 0; i < pipeline->stage_count && at < sizeof names; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s, ",
                               pipeline->stages[i].component->id);
    return error_set(error, STATUS_NOT_FOUND,
                     "the pipeline %s has no stage \"%.128s\"; there are: %sout",
                     pipeline->runner.plan->name, stage, names);
}

// Leaves only the kinds that are listed: "xid,oom_kill,verdict".
static enum status read_kinds(struct tap_choice *choice, char *list, struct error *error) {
    struct tap_choice all = *choice;
    if (list == NULL || list[0] == '\0')
        return STATUS_OK;
    choice->verdicts = false;
    memset(choice->events, 0, sizeof choice->events);
    char *rest = NULL;
    for (char *name = strtok_r(list, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
        bool known = strcmp(name, "verdict") == 0;
        choice->verdicts = choice->verdicts || (known && all.verdicts);
        for (uint32_t class = 0; class < EVENT_CLASS_COUNT; class ++) {
            const char *own = event_class_name(class);
            if (own == NULL || strcmp(own, name) != 0)
                continue;
            known = true;
            choice->events[class] = all.events[class];
        }
        if (!known)
            return error_set(error, STATUS_USAGE,
                             "no kind of event is called \"%.64s\"; docs/inputs.md lists them",
                             name);
    }
    return STATUS_OK;
}

static enum status read_bounds(struct tap_request *request, const struct texts *texts,
                               struct error *error) {
    struct tap_choice *choice = &request->choice;
    uint64_t rank = 0, rate = TAP_RATE_DEFAULT;
    choice->every = 1;
    enum status status = read_number(texts->rank, "rank", 0, RANK_MAX, &rank, error);
    if (status == STATUS_OK)
        status = read_number(texts->every, "every", 1, UINT32_MAX, &choice->every, error);
    if (status == STATUS_OK)
        status = read_number(texts->rate, "rate", 1, TAP_RATE_MAX, &rate, error);
    if (status == STATUS_OK)
        status = read_number(texts->limit, "limit", 1, UINT32_MAX, &request->limit, error);
    choice->rank = texts->rank == NULL ? RANK_NONE : (int32_t)rank;
    choice->rate = (uint32_t)rate;
    choice->job = texts->job == NULL ? STRING_NONE : intern(slice_of(texts->job));
    return status;
}

enum status tap_request_read(struct tap_request *request, struct service *service, char *query,
                             struct error *error) {
    assert(service->magic == SERVICE_MAGIC);
    struct texts texts = {0};
    struct run_pipeline *pipeline = NULL;
    *request = (struct tap_request){.limit = 0};
    enum status status = split(&texts, query, error);
    if (status == STATUS_OK)
        status = read_pipeline(request, service, texts.pipeline, &pipeline, error);
    if (status == STATUS_OK)
        status = read_stage(&request->choice, pipeline, texts.stage, error);
    if (status == STATUS_OK)
        status = read_kinds(&request->choice, texts.kind, error);
    return status == STATUS_OK ? read_bounds(request, &texts, error) : status;
}
