// SPDX-License-Identifier: Apache-2.0
// For tests of the stormlog decoder: one decoder with its memory, records made from parts, and
// comparison of what came out.
#pragma once

#include "base/memory.h"
#include "pipeline/model/telemetry_event.h"
#include "receivers/decode/telemetry/telemetry.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct decoding {
    void *state;
    struct arena arena;
    struct event event;
    struct decode_fault fault;
    enum decode_category category;
};

static inline struct decoding decoding_open(void) {
    struct decoding decoding = {.state = memory_zero(1, decoder_stormlog.state_size)};
    arena_init(&decoding.arena, 16 << 10);
    return decoding;
}

static inline void decoding_close(struct decoding *decoding) {
    memory_give(decoding->state);
    arena_release(&decoding->arena);
}

static inline const struct telemetry *decoding_run(struct decoding *decoding, struct slice record) {
    decoding->category = decoder_stormlog.decode(decoding->state, record, &decoding->arena,
                                                 &decoding->event, &decoding->fault);
    return decoding->category == DECODE_OK ? decoding->event.telemetry : NULL;
}

// As the first record of a source.
static inline const struct telemetry *decoding_run_fresh(struct decoding *decoding,
                                                         struct slice record) {
    memset(decoding->state, 0, decoder_stormlog.state_size);
    return decoding_run(decoding, record);
}

// A record of schema 3 whose members can be replaced or left out.
struct record_part {
    const char *key;
    const char *value;
};

static const struct record_part record_parts[] = {
    {"schema_version", "3"},
    {"session_id", "\"sess-1\""},
    {"timestamp_ns", "1760000000000000000"},
    {"event_type", "\"sample\""},
    {"collector", "\"stormlog.cuda_tracker\""},
    {"sampling_interval_ms", "100"},
    {"pid", "4001"},
    {"host", "\"node0\""},
    {"job_id", "\"job-a\""},
    {"rank", "1"},
    {"local_rank", "1"},
    {"world_size", "2"},
    {"device_id", "0"},
    {"allocator_allocated_bytes", "966367641"},
    {"allocator_reserved_bytes", "1020054732"},
    {"allocator_active_bytes", "null"},
    {"allocator_inactive_bytes", "null"},
    {"allocator_change_bytes", "-5"},
    {"device_used_bytes", "1073741824"},
    {"device_free_bytes", "84825604096"},
    {"device_total_bytes", "85899345920"},
    {"context", "\"ok\""},
    {"metadata", "{\"backend\": \"cuda\"}"},
};

enum { RECORD_PARTS = sizeof record_parts / sizeof *record_parts, RECORD_TEXT_MAX = 16384 };

#define CAPABILITIES(reserved)                                                                     \
    "\"memory_capabilities\":{\"backend\":\"cuda\",\"telemetry_collector\":\"t\","                 \
    "\"sampling_source\":\"s\",\"supports_allocator_allocated\":true,"                             \
    "\"supports_allocator_reserved\":" reserved                                                    \
    ",\"supports_allocator_active\":true,"                                                         \
    "\"supports_allocator_inactive\":true,\"supports_device_used\":true,"                          \
    "\"supports_device_free\":true,\"supports_device_total\":true,"                                \
    "\"supports_native_allocator_history\":false,\"supports_fragmentation_analysis\":false,"       \
    "\"supports_allocator_attribution\":false,\"supports_bounded_profiling\":false}"

// The record with the keys of `changes` (pairs, ended by NULL) replaced; a NULL value leaves the
// key out; a key that no record has is appended. The text is static.
static inline struct slice record_with(const char *const *changes) {
    static char text[RECORD_TEXT_MAX];
    size_t size = 0;
    for (size_t i = 0; i < RECORD_PARTS; i++) {
        const char *value = record_parts[i].value;
        for (const char *const *change = changes; *change != NULL; change += 2) {
            if (strcmp(change[0], record_parts[i].key) == 0)
                value = change[1];
        }
        if (value != NULL)
            size += (size_t)snprintf(text + size, sizeof text - size, "%c\"%s\":%s",
                                     size == 0 ? '{' : ',', record_parts[i].key, value);
    }
    for (const char *const *change = changes; *change != NULL; change += 2) {
        bool known = false;
        for (size_t i = 0; i < RECORD_PARTS; i++)
            known = known || strcmp(change[0], record_parts[i].key) == 0;
        if (!known)
            size += (size_t)snprintf(text + size, sizeof text - size, ",\"%s\":%s", change[0],
                                     change[1]);
    }
    size += (size_t)snprintf(text + size, sizeof text - size, "}");
    ck_assert_uint_lt(size, sizeof text);
    return (struct slice){text, size};
}

#define RECORD(...) record_with((const char *const[]){__VA_ARGS__, NULL, NULL})

// The file's bytes, for the caller to give back.
static inline struct slice file_read(const char *path) {
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s cannot be opened", path);
    size_t capacity = 1 << 16, size = 0, got;
    char *data = memory_take(capacity);
    while ((got = fread(data + size, 1, capacity - size, file)) > 0) {
        size += got;
        if (size == capacity)
            data = memory_resize(data, capacity *= 2);
    }
    fclose(file);
    return (struct slice){data, size};
}

// The next line, without its newline; false at the end. *whole says that it had one.
static inline bool next_line(struct slice *rest, struct slice *line, bool *whole) {
    if (rest->size == 0)
        return false;
    const char *newline = memchr(rest->data, '\n', rest->size);
    *whole = newline != NULL;
    line->data = rest->data;
    line->size = newline == NULL ? rest->size : (size_t)(newline - rest->data);
    size_t taken = line->size + (*whole ? 1 : 0);
    *rest = (struct slice){rest->data + taken, rest->size - taken};
    return true;
}

static inline void assert_text(struct slice text, const char *expected) {
    ck_assert_msg(slice_equal(text, slice_of(expected)), "\"%.*s\" instead of \"%s\"",
                  (int)text.size, text.data, expected);
}

static inline void assert_name(string_id id, const char *expected) {
    assert_text(intern_slice(id), expected);
}

static inline bool tracker_equal(const struct tracker_record *a, const struct tracker_record *b) {
    if (a == NULL || b == NULL)
        return a == b;
    bool times = isnan(a->timestamp_s)
                     ? isnan(b->timestamp_s)
                     : memcmp(&a->timestamp_s, &b->timestamp_s, sizeof(double)) == 0;
    return times && a->present == b->present &&
           memcmp(a->counters, b->counters, sizeof a->counters) == 0;
}

// Every value, texts by their bytes.
static inline bool telemetry_equal(const struct telemetry *a, const struct telemetry *b) {
    bool scopes = (a->scope == NULL) == (b->scope == NULL);
    if (scopes && a->scope != NULL)
        scopes = a->scope->label == b->scope->label && a->scope->depth == b->scope->depth &&
                 slice_equal(a->scope->scope_id, b->scope->scope_id) &&
                 a->scope->thread_id == b->scope->thread_id &&
                 a->scope->sequence == b->scope->sequence &&
                 a->scope->thread_id_is_bool == b->scope->thread_id_is_bool &&
                 a->scope->sequence_is_bool == b->scope->sequence_is_bool &&
                 a->scope->thread_name == b->scope->thread_name;
    bool names = a->event_type == b->event_type && a->collector == b->collector &&
                 a->host == b->host && a->job == b->job && a->session == b->session;
    bool counters = a->null_counters == b->null_counters &&
                    a->allocated_bytes == b->allocated_bytes &&
                    a->reserved_bytes == b->reserved_bytes && a->active_bytes == b->active_bytes &&
                    a->inactive_bytes == b->inactive_bytes && a->change_bytes == b->change_bytes &&
                    a->device_used_bytes == b->device_used_bytes &&
                    a->device_free_bytes == b->device_free_bytes &&
                    a->device_total_bytes == b->device_total_bytes;
    bool others = a->timestamp_ns == b->timestamp_ns && a->type == b->type &&
                  a->schema_version == b->schema_version && a->rank == b->rank &&
                  a->local_rank == b->local_rank && a->world_size == b->world_size &&
                  a->pid == b->pid && a->device_id == b->device_id &&
                  a->sampling_interval_ms == b->sampling_interval_ms;
    bool texts = slice_equal(a->context, b->context) &&
                 (a->context.data == NULL) == (b->context.data == NULL) &&
                 slice_equal(a->metadata, b->metadata);
    return scopes && names && counters && others && texts && tracker_equal(a->tracker, b->tracker);
}

// Memory whose end is the end of a page that is followed by one that must not be touched.
struct guarded {
    char *pages;
    size_t size; // of the usable part
};

static inline struct guarded guarded_open(size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size = (size + page - 1) / page * page;
    char *pages =
        mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(pages, MAP_FAILED);
    ck_assert_int_eq(mprotect(pages + size, page, PROT_NONE), 0);
    return (struct guarded){pages, size};
}

static inline void guarded_close(struct guarded *guarded) {
    munmap(guarded->pages, guarded->size + (size_t)sysconf(_SC_PAGESIZE));
}

// The bytes copied so that they end where the page does.
static inline struct slice guarded_put(struct guarded *guarded, struct slice bytes) {
    ck_assert_uint_le(bytes.size, guarded->size);
    char *to = guarded->pages + guarded->size - bytes.size;
    if (bytes.size > 0)
        memcpy(to, bytes.data, bytes.size);
    return (struct slice){to, bytes.size};
}

static inline uint64_t random_next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}
