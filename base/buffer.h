// SPDX-License-Identifier: Apache-2.0
// A growable run of bytes with a mandatory maximum and a sticky error: append freely, look at
// `failed` once at the end. With a drain, full blocks leave while it is being filled, so that a
// large document never stands in memory whole.
#pragma once

#include "base/slice.h"
#include "base/status.h"

#include <stdint.h>

// Takes the bytes that are there; false when they could not be taken (the buffer then fails).
typedef bool buffer_drain(void *context, struct slice bytes);

struct buffer {
    char *data;
    size_t size;
    size_t capacity;
    size_t max; // never holds more than this
    bool failed;
    buffer_drain *drain; // NULL: everything stays until the owner takes it
    void *drain_context;
};

void buffer_init(struct buffer *buffer, size_t max);
void buffer_init_drained(struct buffer *buffer, size_t block, buffer_drain *drain, void *context);
void buffer_reset(struct buffer *buffer); // empty, not failed; the memory stays
void buffer_release(struct buffer *buffer);
// Room for so many bytes more, up to the maximum, in one step.
void buffer_reserve(struct buffer *buffer, size_t more);
// Drains what is left; false when the buffer failed at any time.
bool buffer_finish(struct buffer *buffer) MUST_USE;

void buffer_append(struct buffer *buffer, struct slice bytes);
void buffer_append_text(struct buffer *buffer, const char *text);
void buffer_append_char(struct buffer *buffer, char c);
void buffer_append_uint(struct buffer *buffer, uint64_t value);
void buffer_append_int(struct buffer *buffer, int64_t value);
void buffer_append_int128(struct buffer *buffer, __int128 value);
void buffer_append_format(struct buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static inline struct slice buffer_slice(const struct buffer *buffer) {
    return (struct slice){buffer->data, buffer->size};
}
