// SPDX-License-Identifier: Apache-2.0
// Reads when and where a tagged line comes from. One pass over its members; a value of the wrong
// kind is remembered and told at the end, since broken JSON comes before every other fault.
#include "receivers/decode/json/tagged_keys.h"

#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/text.h"

#include <assert.h>

// Texts in the order of `texts`, then numbers.
enum common {
    COMMON_K8S_NODE,
    COMMON_HOST,
    COMMON_POD,
    COMMON_NAMESPACE,
    COMMON_JOB_ID,
    COMMON_K8S_JOB,
    COMMON_TEXT_COUNT,
    COMMON_TIMESTAMP = COMMON_TEXT_COUNT,
    COMMON_OBSERVED,
    COMMON_RANK,
    COMMON_SOURCE,
    COMMON_COUNT
};
_Static_assert(COMMON_TEXT_COUNT == sizeof((struct tagged_keys *)0)->texts / sizeof(struct slice),
               "one each");

static const struct slice NAMES[COMMON_COUNT] = {
    [COMMON_K8S_NODE] = {"k8s.node.name", 13},
    [COMMON_HOST] = {"host.name", 9},
    [COMMON_POD] = {"k8s.pod.name", 12},
    [COMMON_NAMESPACE] = {"k8s.namespace.name", 18},
    [COMMON_JOB_ID] = {"job_id", 6},
    [COMMON_K8S_JOB] = {"k8s.job.name", 12},
    [COMMON_TIMESTAMP] = {"timestamp_ns", 12},
    [COMMON_OBSERVED] = {"observed_time_ns", 16},
    [COMMON_RANK] = {"rank", 4},
    [COMMON_SOURCE] = {"source", 6},
};

void tagged_keys_begin(struct tagged_keys *keys, struct slice object, struct arena *arena) {
    *keys = (struct tagged_keys){.object = object, .arena = arena, .rank = RANK_NONE};
    const char *end = object.data + object.size;
    keys->at = object.size == 0 ? object.data : json_skip_space(object.data, end);
    keys->members.first = true;
    if (object.size == 0 || json_peek(keys->at, end) != '{') {
        keys->category = DECODE_NOT_OBJECT;
        keys->at = NULL;
    }
}

static void refuse(struct tagged_keys *keys, enum decode_category category, enum common common,
                   const struct token *value, const char *expected) {
    if (keys->category != DECODE_OK)
        return;
    keys->category = category;
    keys->field = NAMES[common];
    keys->wrong = *value;
    keys->expected = expected;
}

static void take_text(struct tagged_keys *keys, enum common common, const struct token *value) {
    assert(common < COMMON_TEXT_COUNT);
    keys->texts[common] = (struct slice){0};
    if (value->kind == TOKEN_NULL)
        return;
    if (value->kind != TOKEN_STRING) {
        refuse(keys, DECODE_WRONG_TYPE, common, value, "a text");
        return;
    }
    struct slice text = token_decode(value, keys->arena);
    bool is_job = common == COMMON_JOB_ID || common == COMMON_K8S_JOB;
    if (text.size > TAGGED_NAME_MAX && !is_job)
        refuse(keys, DECODE_OUT_OF_RANGE, common, value, "at most 253 bytes");
    else if (text.size > 0)
        keys->texts[common] = text;
}

static uint64_t take_time(struct tagged_keys *keys, enum common common, const struct token *value) {
    static const char expected[] = "nanoseconds since 1970, an integer from 1 to 2^64 - 1";
    if (value->kind == TOKEN_NULL)
        return 0;
    if (!token_is_integer(value))
        refuse(keys, DECODE_WRONG_TYPE, common, value, expected);
    else if (value->kind == TOKEN_HUGE || (value->kind == TOKEN_INTEGER && value->integer <= 0))
        refuse(keys, DECODE_OUT_OF_RANGE, common, value, expected);
    else
        return (uint64_t)value->integer;
    return 0;
}

static void take_rank(struct tagged_keys *keys, const struct token *value) {
    keys->rank = RANK_NONE;
    if (value->kind == TOKEN_NULL)
        return;
    if (!token_is_integer(value))
        refuse(keys, DECODE_WRONG_TYPE, COMMON_RANK, value, "an integer");
    else if (value->kind != TOKEN_INTEGER || value->integer < 0 || value->integer > RANK_MAX)
        refuse(keys, DECODE_OUT_OF_RANGE, COMMON_RANK, value, "0 to 2147483646");
    else
        keys->rank = (int32_t)value->integer;
}

static void take(struct tagged_keys *keys, enum common common, const struct token *value) {
    if (common < COMMON_TEXT_COUNT)
        take_text(keys, common, value);
    else if (common == COMMON_TIMESTAMP)
        keys->timestamp_ns = take_time(keys, common, value);
    else if (common == COMMON_OBSERVED)
        keys->observed_ns = take_time(keys, common, value);
    else if (common == COMMON_RANK)
        take_rank(keys, value);
}

static enum common find_common(struct slice key) {
    enum common common = 0;
    while (common < COMMON_COUNT && !slice_equal(key, NAMES[common]))
        common++;
    return common;
}

bool tagged_keys_next(struct tagged_keys *keys, struct slice *key, struct token *value) {
    const char *end = keys->object.data + keys->object.size;
    struct token name;
    while (keys->at != NULL && !keys->members.done) {
        keys->at = json_next_member(&keys->members, keys->at, end, &name, &keys->json);
        if (keys->at == NULL || keys->members.done)
            break;
        const char *after = json_scan_value(keys->at, end, 1, value, &keys->json);
        keys->at = after;
        if (after == NULL)
            break;
        *key = token_decode(&name, keys->arena);
        enum common common = find_common(*key);
        if (common == COMMON_COUNT)
            return true;
        take(keys, common, value);
    }
    return false;
}

static struct slice first_of(const struct tagged_keys *keys, enum common a, enum common b) {
    return keys->texts[a].data != NULL ? keys->texts[a] : keys->texts[b];
}

static enum decode_category take_name(struct slice name, string_id *id,
                                      struct decode_fault *fault) {
    *id = STRING_NONE;
    return name.data == NULL ? DECODE_OK : fault_intern(fault, NAMES[COMMON_K8S_NODE], name, id);
}

static enum decode_category refused(const struct tagged_keys *keys, struct decode_fault *fault) {
    if (keys->category == DECODE_NOT_OBJECT)
        return fault_set(fault, DECODE_NOT_OBJECT, SLICE(""),
                         "not a JSON object; a tagged line is one, with a key \"source\"");
    if (keys->at == NULL)
        return fault_json(fault, keys->object, &keys->json);
    if (keys->category == DECODE_WRONG_TYPE)
        return fault_type(fault, keys->field, &keys->wrong, keys->expected);
    return fault_limit(fault, keys->field, &keys->wrong, keys->expected);
}

static string_id find_name(struct slice name) {
    return name.data == NULL ? STRING_NONE : intern_find(name);
}

void tagged_keys_known(struct tagged_keys *keys) {
    keys->time_ns = keys->timestamp_ns != 0 ? keys->timestamp_ns : keys->observed_ns;
    keys->pod = keys->texts[COMMON_POD];
    keys->namespace = keys->texts[COMMON_NAMESPACE];
    keys->node = find_name(first_of(keys, COMMON_K8S_NODE, COMMON_HOST));
    keys->job = find_name(first_of(keys, COMMON_JOB_ID, COMMON_K8S_JOB));
}

enum decode_category tagged_keys_end(struct tagged_keys *keys, struct event *event,
                                     struct decode_fault *fault) {
    const char *end = keys->object.data + keys->object.size;
    if (keys->members.done)
        keys->at = json_read_end(keys->at, end, &keys->json);
    if (keys->at == NULL || keys->category != DECODE_OK)
        return refused(keys, fault);
    keys->time_ns = keys->timestamp_ns != 0 ? keys->timestamp_ns : keys->observed_ns;
    if (keys->time_ns == 0)
        return fault_set(fault, DECODE_MISSING_TIMESTAMP, SLICE("timestamp_ns"),
                         "neither timestamp_ns nor observed_time_ns is there; one of them must be");
    keys->pod = keys->texts[COMMON_POD];
    keys->namespace = keys->texts[COMMON_NAMESPACE];
    struct slice node = first_of(keys, COMMON_K8S_NODE, COMMON_HOST);
    struct slice job = first_of(keys, COMMON_JOB_ID, COMMON_K8S_JOB);
    if (take_name(node, &keys->node, fault) != DECODE_OK ||
        take_name(job, &keys->job, fault) != DECODE_OK)
        return DECODE_LIMIT;
    event->time_ns = keys->time_ns;
    event->node = keys->node;
    event->job = keys->job;
    event->rank = keys->rank;
    return DECODE_OK;
}
