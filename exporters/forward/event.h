// SPDX-License-Identifier: Apache-2.0
// What exporters that pass events on to another culprit have in common: who sends, the numbers of
// the records, and what travels beside each record.
//
// Every record has a number that rises by one, kept with the checkpoint: what is sent again after a
// crash has the number it had. Without a checkpoint the counting begins anew under another name.
#pragma once

#include "base/text/number.h"
#include "config/problem.h"
#include "exporters/forward/ranks.h"
#include "pipeline/component/record_frame.h"
#include "pipeline/model/batch.h"

// Kept with the checkpoint.
struct forward_counter {
    uint64_t sequence;    // of the record that was encoded last
    uint64_t incarnation; // which counting it is: the moment at which it began; 0: not yet
};

struct forward_sender {
    struct forward_counter counter;
    char *base;                       // without the incarnation
    char name[RECORD_SENDER_MAX + 1]; // empty: not made yet
};

// The option `sender`, NULL when it is not set: adds a problem when it is empty or too long.
void forward_sender_check(const char *sender, struct problem_list *problems);
// `sender` NULL: HOST/`id`.
void forward_sender_init(struct forward_sender *sender, const char *given, const char *id);
void forward_sender_release(struct forward_sender *sender);
// After a load: the counting goes on under the name that it had.
void forward_sender_restored(struct forward_sender *sender);

// The texts of numbers, for as long as a frame is being made.
struct forward_texts {
    char sequence[NUMBER_TEXT_MAX];
    char rank[NUMBER_TEXT_MAX];
    char time[NUMBER_TEXT_MAX];
    char observed[NUMBER_TEXT_MAX];
    char generation[NUMBER_TEXT_MAX];
    char first_sample[NUMBER_TEXT_MAX];
};

// Begins the frame of the next record: its number and the headers that all have.
void forward_begin(struct forward_sender *sender, struct slice schema, struct record_frame *frame,
                   struct forward_texts *texts);
// The frame of an event, without a key: the record as it came, with what its receiver would not
// learn from its bytes.
void forward_event(struct forward_sender *sender, const struct event *event, struct carried carried,
                   struct record_frame *frame, struct forward_texts *texts);
// Whether the event is of the same record as the one that was passed on before it (`last`: the
// bytes of that; data NULL: none was): a record with several events is sent once. Sets `last`.
bool forward_is_repeat(const struct event *event, struct slice *last);
