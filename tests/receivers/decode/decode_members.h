// SPDX-License-Identifier: Apache-2.0
// For tests of what the stormlog decoder remembers: records written in several layouts, decoded
// with and without the memory of their source, at the end of a page.
#pragma once

#include "receivers/decode/telemetry/record.h"
#include "tests/receivers/decode/decode_support.h"

static struct decoding warm;  // has seen other records
static struct decoding fresh; // starts anew for each
static struct guarded guarded;
static uint64_t seed;

static inline void decode_setup(void) {
    warm = decoding_open();
    fresh = decoding_open();
    guarded = guarded_open(RECORD_TEXT_MAX);
    seed = 88172645463325252u;
}

static inline void decode_teardown(void) {
    decoding_close(&warm);
    decoding_close(&fresh);
    guarded_close(&guarded);
    intern_release();
}

static inline uint64_t below(uint64_t bound) {
    return random_next(&seed) % bound;
}

static inline const struct telemetry_state *learnt(void) {
    return warm.state;
}

// Decodes at the end of a page with both memories; true when accepted.
static inline bool decode_both(struct slice record) {
    struct slice placed = guarded_put(&guarded, record);
    const struct telemetry *a = decoding_run_fresh(&fresh, placed);
    const struct telemetry *b = decoding_run(&warm, placed);
    ck_assert_msg((a == NULL) == (b == NULL) && fresh.category == warm.category, "%s then %s: %.*s",
                  decode_category_name(fresh.category), decode_category_name(warm.category),
                  (int)record.size, record.data);
    if (a == NULL) {
        ck_assert_str_eq(fresh.fault.field, warm.fault.field);
        ck_assert_str_eq(fresh.fault.detail, warm.fault.detail);
        ck_assert_uint_eq(fresh.fault.offset, warm.fault.offset);
    } else {
        ck_assert_msg(telemetry_equal(a, b), "%.*s", (int)record.size, record.data);
        ck_assert_uint_eq(fresh.event.time_ns, warm.event.time_ns);
        ck_assert_uint_eq(fresh.event.job, warm.event.job);
        ck_assert_uint_eq(fresh.event.node, warm.event.node);
        ck_assert_int_eq(fresh.event.rank, warm.event.rank);
    }
    arena_reset(&fresh.arena);
    arena_reset(&warm.arena);
    return a != NULL;
}

struct writing {
    const char *comma, *colon;
    bool shuffled;
    bool escaped_keys;
};

struct member {
    char key[64];
    char value[2048];
};

enum { MEMBERS_MAX = 32 };

static inline struct slice write_members(const struct member *members, unsigned count,
                                         const struct writing *writing) {
    static char text[RECORD_TEXT_MAX];
    unsigned order[MEMBERS_MAX];
    size_t size = 0;
    for (unsigned i = 0; i < count; i++)
        order[i] = i;
    for (unsigned i = count - 1; writing->shuffled && i > 0; i--) {
        unsigned other = (unsigned)below(i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    text[size++] = '{';
    for (unsigned i = 0; i < count; i++) {
        const struct member *member = &members[order[i]];
        bool escape = writing->escaped_keys && below(8) == 0;
        size += (size_t)snprintf(text + size, sizeof text - size,
                                 escape ? "%s\"\\u%04x%s\"%s%s" : "%s\"%c%s\"%s%s",
                                 i == 0 ? "" : writing->comma, member->key[0], member->key + 1,
                                 writing->colon, member->value);
    }
    text[size++] = '}';
    return (struct slice){text, size};
}

static inline unsigned base_members(struct member *members) {
    for (unsigned i = 0; i < RECORD_PARTS; i++) {
        snprintf(members[i].key, sizeof members[i].key, "%s", record_parts[i].key);
        snprintf(members[i].value, sizeof members[i].value, "%s", record_parts[i].value);
    }
    return RECORD_PARTS;
}

static inline struct member *member_of(struct member *members, unsigned count, const char *key) {
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(members[i].key, key) == 0)
            return &members[i];
    }
    return NULL;
}

static inline void set_member(struct member *members, unsigned *count, const char *key,
                              const char *value) {
    struct member *member = member_of(members, *count, key);
    if (member == NULL) {
        member = &members[(*count)++];
        snprintf(member->key, sizeof member->key, "%s", key);
    }
    snprintf(member->value, sizeof member->value, "%s", value);
}

// What differs from line to line of a healthy source.
static inline void move_on(struct member *members, unsigned *count, unsigned line) {
    char value[2048];
    snprintf(value, sizeof value, "%llu",
             (unsigned long long)(UINT64_C(1760000000000000000) + line * UINT64_C(100000123)));
    set_member(members, count, "timestamp_ns", value);
    snprintf(value, sizeof value, "%llu", (unsigned long long)below(UINT64_C(80000000000)));
    set_member(members, count, "device_used_bytes", value);
    snprintf(value, sizeof value, "%lld", (long long)below(2000000) - 1000000);
    set_member(members, count, "allocator_change_bytes", value);
    snprintf(value, sizeof value, "\"node%llu\"", (unsigned long long)below(12));
    set_member(members, count, "host", value);
    if (below(4) != 0)
        return;
    bool enter = below(2) == 0;
    set_member(members, count, "event_type", enter ? "\"phase_enter\"" : "\"phase_exit\"");
    snprintf(value, sizeof value,
             "{" CAPABILITIES("true") ",\"phase_scope\":{\"action\":\"%s\",\"name\":\"n\",\"path\":"
                                      "[\"a\",\"b%llu\"],\"scope_id\":\"s:%u\",\"thread_id\":1,"
                                      "\"sequence\":%u,\"thread_name\":\"T\"}}",
             enter ? "enter" : "exit", (unsigned long long)below(3), line, line);
    set_member(members, count, "metadata", value);
}

static const struct writing writings[] = {
    {",", ":", false, false},   {", ", ": ", false, false}, {",\n  ", ": ", false, false},
    {" ,", " :", false, false}, {",", ":", true, false},    {", ", ": ", true, false},
    {",", ": ", false, false},  {", ", ":", false, true},   {",  ", ":  ", false, false},
};
