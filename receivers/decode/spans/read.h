// SPDX-License-Identifier: Apache-2.0
// What the parts of the span decoder share: one line being read, its fields, and how one is
// refused.
//
// The line was scanned as strict JSON before any field is read, so that walking what stands in it
// cannot fail. Functions return false when the line is refused; the first refusal stays.
#pragma once

#include "base/status.h"
#include "pipeline/component/decoder.h"
#include "pipeline/model/span_event.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/shape.h"
#include "receivers/decode/json/strict.h"

// No time is further from 1970.
#define SPAN_SECONDS_MAX 1e11

// Top-level fields that any event reads.
enum span_slot {
    SLOT_EV,
    SLOT_TS,
    SLOT_TO,
    SLOT_KEY,
    SLOT_SPAN,
    SLOT_CODE,
    SLOT_DATA,
    SLOT_TOTAL,
    SLOT_TASKS,
    SLOT_GROUP,
    SLOT_WORKER,
    SLOT_NBYTES,
    SLOT_ACTIONS,
    SLOT_NTHREADS,
    SLOT_DEFAULT_ID,
    SLOT_COLLECTIONS,
    SPAN_SLOT_COUNT
};

struct span_line {
    struct arena *arena;
    struct decode_fault *fault;
    struct span_event *event;
    struct token slots[SPAN_SLOT_COUNT]; // of the last of each; TOKEN_NONE: not there
    // Where in a list the reading is, for messages: "tasks[3]".
    const char *list; // NULL: in none
    uint32_t index;
};

static inline bool span_token_is_there(const struct token *token) {
    return token->kind != TOKEN_NONE && token->kind != TOKEN_NULL;
}

// -- refusals; `field` without the list that is being read --------------------------------------

bool span_refuse(struct span_line *line, enum span_refusal refusal, enum decode_category category,
                 const char *field, const char *format, ...) PRINTF_LIKE(5, 6);
// It is missing, or not what was expected ("an integer from 0 up").
bool span_refuse_value(struct span_line *line, enum span_refusal refusal, const char *field,
                       const struct token *found, const char *expected);
// Right but for what it says: `choices` are what it could ("red or blue").
bool span_refuse_choice(struct span_line *line, enum span_refusal refusal, const char *field,
                        const struct token *found, const char *choices);

// -- values -------------------------------------------------------------------------------------

// A text without U+0000 and, unless `may_be_empty`, of at least one character.
bool span_read_text(struct span_line *line, enum span_refusal refusal, const char *field,
                    const struct token *token, bool may_be_empty, struct slice *out);
// From 0 up.
bool span_read_count(struct span_line *line, const char *field, const struct token *token,
                     int64_t *out);
bool span_token_is_number(const struct token *token);

// -- lists --------------------------------------------------------------------------------------

// How many items it has.
uint32_t span_count_items(const struct token *array);
// Room for item `count` of what is read from `array`: `items` itself, or more of them in the arena.
// A list of many is counted first, so that a line can ask for little more than it needs.
void *span_grow(struct arena *arena, void *items, uint32_t count, uint32_t *capacity, size_t size,
                const struct token *array);

// For each of the texts that `text_of` gives, the index of the first one that is equal (its own, if
// there is none before). O(n log n) whatever the texts are.
void span_find_firsts(struct slice (*text_of)(const void *texts, uint32_t index), const void *texts,
                      uint32_t count, uint32_t *firsts, struct arena *arena);

// Sets `first` of each task.
void span_find_first_tasks(struct span_event *event, struct arena *arena);

// Writes a text as compact JSON at `out`: UTF-8, escapes only where JSON needs them, the shortest
// ones. Returns how many bytes; never more than the token's and two.
size_t span_write_text(char *out, const struct token *token, struct arena *arena);

// -- events -------------------------------------------------------------------------------------

bool span_read_tasks(struct span_line *line, bool data); // tasks.c
bool span_read_transition(struct span_line *line);       // change.c
bool span_read_metrics(struct span_line *line);          // change.c
