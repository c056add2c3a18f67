// SPDX-License-Identifier: Apache-2.0
// Reads what the metadata say of the device's counters, the phase and the session.
//
// One walk over the object picks four keys out and skips the rest. The capability block, some 600
// bytes that a source repeats on every line, is compared with the last one that was found right;
// only a new one is taken apart. Source of the rules: stormlog 0.4.3, memory capabilities.
#include "receivers/decode/telemetry/metadata.h"

#include "pipeline/model/telemetry_event.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/shape.h"
#include "receivers/decode/json/text.h"

#include <assert.h>

static bool key_is(const struct token *key, struct slice name) {
    if (!key->escaped)
        return key->size == name.size && memcmp(key->text, name.data, name.size) == 0;
    return token_equals(key, name);
}

// Bit of a key, 0 when nobody reads its value. The shortest of the four names has ten characters,
// and an escape only makes a key longer.
static uint32_t bit_of_key(const struct token *key) {
    static const struct slice capabilities_key = {"memory_capabilities", 19};
    static const struct slice source_key = {"sampling_source", 15};
    static const struct slice scope_key = {"phase_scope", 11};
    static const struct slice session_key = {"session_id", 10};
    if (key->size < session_key.size)
        return 0;
    if (key_is(key, capabilities_key))
        return METADATA_CAPABILITIES;
    if (key_is(key, scope_key))
        return METADATA_SCOPE;
    if (key_is(key, session_key))
        return METADATA_SESSION;
    return key_is(key, source_key) ? METADATA_SAMPLING_SOURCE : 0;
}

static struct token *token_of_bit(struct metadata_scan *scan, uint32_t bit) {
    switch (bit) {
    case METADATA_CAPABILITIES:
        return &scan->capabilities;
    case METADATA_SCOPE:
        return &scan->scope;
    case METADATA_SESSION:
        return &scan->session;
    default:
        assert(bit == METADATA_SAMPLING_SOURCE);
        return &scan->sampling_source;
    }
}

static bool starts_with_memo(const char *at, const char *end, const struct capability_memo *memo) {
    return memo->size > 0 && (size_t)(end - at) >= memo->size &&
           memcmp(at, memo->text, memo->size) == 0;
}

const char *metadata_read_value(const char *at, const char *end, uint32_t bit,
                                const struct capability_memo *memo, struct metadata_scan *scan,
                                struct json_fault *fault) {
    struct token *token = token_of_bit(scan, bit);
    scan->seen |= bit;
    if (bit != METADATA_CAPABILITIES)
        return json_scan_value(at, end, 2, token, fault);
    scan->capabilities_known = starts_with_memo(at, end, memo);
    if (!scan->capabilities_known)
        return json_scan_value(at, end, 2, token, fault);
    *token = (struct token){.text = at, .size = memo->size, .kind = TOKEN_OBJECT};
    return at + memo->size;
}

static const char *scan_member(const char *at, const char *end, const struct token *key,
                               const struct capability_memo *memo, struct metadata_scan *scan,
                               struct json_fault *fault) {
    struct token ignored;
    uint32_t bit = bit_of_key(key);
    if (bit == 0)
        return json_scan_value(at, end, 2, &ignored, fault);
    return metadata_read_value(at, end, bit, memo, scan, fault);
}

const char *metadata_scan(const char *at, const char *end, const struct capability_memo *memo,
                          struct metadata_scan *scan, struct json_fault *fault) {
    const char *start = at;
    scan->seen = 0;
    struct json_members members = {.first = true};
    struct token key;
    while ((at = json_next_member(&members, at, end, &key, fault)) != NULL && !members.done)
        at = scan_member(at, end, &key, memo, scan, fault);
    if (at != NULL)
        scan->text = (struct slice){start, (size_t)(at - start)};
    return at;
}

// Appends a run; false when there is no room.
static bool add_run(struct metadata_plan *plan, const char *text, const char *end, uint32_t field,
                    size_t *used) {
    assert(text != NULL && text <= end);
    size_t size = (size_t)(end - text);
    if (plan->run_count == METADATA_PLAN_RUNS || *used + size > METADATA_PLAN_TEXT)
        return false;
    memcpy(plan->text + *used, text, size);
    plan->runs[plan->run_count++] = (struct template_run){
        .start = (uint16_t)*used, .size = (uint16_t)size, .field = (uint8_t)field};
    *used += size;
    return true;
}

// The object was scanned before, so that nothing in it can be wrong JSON here.
static void make_plan(struct metadata_plan *plan, struct slice object) {
    const char *at = object.data, *end = at + object.size, *run = at;
    struct json_members members = {.first = true};
    struct token key, value;
    struct json_fault ignored;
    size_t used = 0;
    plan->run_count = 0;
    while ((at = json_next_member(&members, at, end, &key, &ignored)) != NULL && !members.done) {
        if (!add_run(plan, run, at, bit_of_key(&key), &used))
            break;
        run = at = json_scan_value(at, end, 2, &value, &ignored);
    }
    if (!members.done || !add_run(plan, run, end, METADATA_PLAN_END, &used))
        plan->run_count = 0;
}

const char *metadata_scan_anew(struct metadata_plan *plan, const char *at, const char *end,
                               const struct capability_memo *memo, struct metadata_scan *scan) {
    enum { DELAY_MAX = 127 };
    struct json_fault ignored;
    at = metadata_scan(at, end, memo, scan, &ignored);
    if (at == NULL)
        return NULL;
    if (plan->wait > 0) {
        plan->wait--;
        return at;
    }
    make_plan(plan, scan->text);
    plan->wait = plan->delay;
    plan->delay = plan->delay < DELAY_MAX ? (uint8_t)(plan->delay * 2 + 1) : DELAY_MAX;
    return at;
}

enum { CAPABILITY_TEXTS = 3, CAPABILITY_COUNT = 14 };

// In the order in which missing ones are listed: texts, then flags.
static const struct capability {
    struct slice name;
    const char *path;
    uint32_t counters; // that need this flag
} capabilities[CAPABILITY_COUNT] = {
#define CAPABILITY(name, counters)                                                                 \
    { {name, sizeof(name) - 1}, "metadata.memory_capabilities." name, counters }
    CAPABILITY("backend", 0),
    CAPABILITY("telemetry_collector", 0),
    CAPABILITY("sampling_source", 0),
    CAPABILITY("supports_allocator_allocated", COUNTER_ALLOCATED | COUNTER_CHANGE),
    CAPABILITY("supports_allocator_reserved", COUNTER_RESERVED),
    CAPABILITY("supports_allocator_active", COUNTER_ACTIVE),
    CAPABILITY("supports_allocator_inactive", COUNTER_INACTIVE),
    CAPABILITY("supports_device_used", COUNTER_DEVICE_USED),
    CAPABILITY("supports_device_free", COUNTER_DEVICE_FREE),
    CAPABILITY("supports_device_total", COUNTER_DEVICE_TOTAL),
    CAPABILITY("supports_native_allocator_history", 0),
    CAPABILITY("supports_fragmentation_analysis", 0),
    CAPABILITY("supports_allocator_attribution", 0),
    CAPABILITY("supports_bounded_profiling", 0),
#undef CAPABILITY
};

static size_t capability_find(const struct token *key) {
    size_t i = 0;
    while (i < CAPABILITY_COUNT && !key_is(key, capabilities[i].name))
        i++;
    return i;
}

struct capability_block {
    struct token tokens[CAPABILITY_COUNT]; // TOKEN_NONE: missing
    bool unknown;                          // there are other keys
};

// The block's text was scanned before, so that nothing in it can be wrong JSON here.
static void read_block(const struct token *text, struct capability_block *block,
                       struct fault_names *unknown, struct arena *arena) {
    struct json_pairs pairs = json_pairs_of(token_slice(text));
    for (struct token key, value; json_pairs_next(&pairs, &key, &value);) {
        size_t found = capability_find(&key);
        if (found < CAPABILITY_COUNT)
            block->tokens[found] = value;
        else if (unknown != NULL)
            fault_names_add(unknown, token_decode(&key, arena));
        else
            block->unknown = true;
    }
}

static enum decode_category refuse_names(const struct token *text,
                                         const struct capability_block *block, struct arena *arena,
                                         struct decode_fault *fault) {
    struct fault_names names = {.count = 0};
    for (size_t i = 0; i < CAPABILITY_COUNT; i++) {
        if (block->tokens[i].kind == TOKEN_NONE)
            names.names[names.count++] = capabilities[i].name;
    }
    if (names.count > 0)
        return fault_names_join(&names, fault, DECODE_MISSING_FIELD,
                                "metadata.memory_capabilities must have all 14 of its keys");
    struct capability_block again = {.unknown = false};
    read_block(text, &again, &names, arena);
    return fault_names_join(&names, fault, DECODE_UNKNOWN_FIELD,
                            "metadata.memory_capabilities has keys that its schema does not know");
}

static enum decode_category check_block(const struct token *text, uint32_t *supported,
                                        struct arena *arena, struct decode_fault *fault) {
    struct capability_block block = {.unknown = false};
    read_block(text, &block, NULL, arena);
    bool complete = !block.unknown;
    for (size_t i = 0; i < CAPABILITY_COUNT; i++)
        complete = complete && block.tokens[i].kind != TOKEN_NONE;
    if (!complete)
        return refuse_names(text, &block, arena, fault);
    *supported = 0;
    for (size_t i = 0; i < CAPABILITY_COUNT; i++) {
        const struct token *value = &block.tokens[i];
        struct slice path = slice_of(capabilities[i].path);
        if (i < CAPABILITY_TEXTS && (value->kind != TOKEN_STRING || token_is_blank(value)))
            return fault_text(fault, path, value);
        if (i < CAPABILITY_TEXTS)
            continue;
        if (value->kind != TOKEN_TRUE && value->kind != TOKEN_FALSE)
            return fault_type(fault, path, value, "true or false");
        if (value->kind == TOKEN_TRUE)
            *supported |= capabilities[i].counters;
    }
    return DECODE_OK;
}

// In the order of the checks: the change of the allocator comes last.
static enum decode_category refuse_counter(uint32_t unsupported, struct decode_fault *fault) {
    static const struct {
        uint32_t counter;
        struct slice name;
        const char *flag;
    } counters[] = {
        {COUNTER_ALLOCATED, {"allocator_allocated_bytes", 25}, "supports_allocator_allocated"},
        {COUNTER_RESERVED, {"allocator_reserved_bytes", 24}, "supports_allocator_reserved"},
        {COUNTER_ACTIVE, {"allocator_active_bytes", 22}, "supports_allocator_active"},
        {COUNTER_INACTIVE, {"allocator_inactive_bytes", 24}, "supports_allocator_inactive"},
        {COUNTER_DEVICE_USED, {"device_used_bytes", 17}, "supports_device_used"},
        {COUNTER_DEVICE_FREE, {"device_free_bytes", 17}, "supports_device_free"},
        {COUNTER_DEVICE_TOTAL, {"device_total_bytes", 18}, "supports_device_total"},
        {COUNTER_CHANGE, {"allocator_change_bytes", 22}, "supports_allocator_allocated"},
    };
    size_t i = 0;
    while ((unsupported & counters[i].counter) == 0)
        i++;
    return fault_set(fault, DECODE_CAPABILITY_CONFLICT, counters[i].name,
                     "found a number, expected null: metadata.memory_capabilities.%s is not true",
                     counters[i].flag);
}

uint32_t metadata_infer_supported(uint32_t present) {
    uint32_t others = present & ~(uint32_t)COUNTER_CHANGE;
    return (present & COUNTER_ALLOCATED) != 0 ? others | COUNTER_CHANGE : others;
}

static enum decode_category infer_capabilities(const struct metadata_scan *scan, uint32_t present,
                                               uint32_t *supported, struct decode_fault *fault) {
    *supported = metadata_infer_supported(present);
    const struct token *source = &scan->sampling_source;
    if ((scan->seen & METADATA_SAMPLING_SOURCE) != 0 && source->kind == TOKEN_STRING &&
        token_is_blank(source))
        return fault_text(fault, SLICE("metadata.memory_capabilities.sampling_source"), source);
    return DECODE_OK;
}

static void remember(struct capability_memo *memo, const struct token *text, uint32_t supported) {
    assert(text->kind == TOKEN_OBJECT);
    if (text->size > sizeof memo->text)
        return;
    memcpy(memo->text, text->text, text->size);
    memo->size = (uint32_t)text->size;
    memo->supported = supported;
}

enum decode_category metadata_check_capabilities(struct metadata_scan *scan, uint32_t present,
                                                 struct capability_memo *memo, struct arena *arena,
                                                 struct decode_fault *fault) {
    uint32_t supported = memo->supported;
    enum decode_category category = DECODE_OK;
    if ((scan->seen & METADATA_CAPABILITIES) == 0) {
        category = infer_capabilities(scan, present, &supported, fault);
    } else if (!scan->capabilities_known) {
        if (scan->capabilities.kind != TOKEN_OBJECT)
            return fault_type(fault, SLICE("metadata.memory_capabilities"), &scan->capabilities,
                              "an object");
        category = check_block(&scan->capabilities, &supported, arena, fault);
        if (category == DECODE_OK)
            remember(memo, &scan->capabilities, supported);
    }
    if (category != DECODE_OK)
        return category;
    scan->supported = supported;
    uint32_t unsupported = present & ~supported;
    return unsupported == 0 ? DECODE_OK : refuse_counter(unsupported, fault);
}
