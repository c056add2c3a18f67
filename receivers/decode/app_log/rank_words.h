// SPDX-License-Identifier: Apache-2.0
// What the readers of rank logs share: ranks and process groups in front of a phrase, numbers that
// are whole, addresses of peers, and whose fault a text says that it was.
#pragma once

#include "receivers/decode/forms/meanings.h"
#include "receivers/decode/line/reader.h"

// A message around a phrase that tells what it is.
struct said {
    const struct frame *frame;
    struct slice message;
    struct slice head; // in front of the phrase, at most SAID_HEAD_MAX bytes of it
    struct slice tail; // behind it
};
enum { SAID_HEAD_MAX = 1024 };

// Ends the tail where another rank's line begins, or behind `closing` when that comes first, and
// the message likewise. True: `closing` was there. `rest` is the other line; empty: there is none.
bool said_close(struct said *said, struct slice closing, struct slice *rest);

// The rank of the last "[rank3]" in the text; RANK_NONE: none says it.
int32_t words_rank(struct slice text);
// Past "[rank3]: " at the front.
void words_skip_rank(struct slice *text);

// "[PG ID 0 PG GUID 0(default_pg) Rank 3]" and its older forms, the last in the text.
struct words_group {
    struct slice name, desc; // data NULL: not said
    int32_t rank;            // in the group; -1: not said
    bool is_whole_job;       // its ranks are those of the job
};
struct words_group words_group(struct slice text);

// The reading's rank, and the group as facts, as the head says them.
void said_writer(const struct said *said, struct reading *reading);

// A number at the front, with its sign, of as many digits as there are. One that is too large for
// 64 bits is the largest. False: there is none. Moves the text behind it.
bool words_take_signed(struct slice *text, int64_t *number);
// The number behind `phrase`; -1: it is not there, negative, too large, or the text ends with it,
// so that it may have more digits.
int64_t words_number(struct slice text, struct slice phrase);

// "10.20.0.5" of "[::ffff:10.20.0.5]:41234", "10.20.0.5:41234" or "10.20.0.5<41234>", a host name
// likewise; data NULL: the text does not begin with one that is whole.
struct slice words_peer(struct slice text);

// What a row says that it means (forms/meanings.h), as facts; NULL: nothing.
void words_mean(const struct form *meaning, struct reading *reading);
// The same of what a library says as it ends its process.
void words_blame(const struct forms *forms, struct slice text, struct reading *reading);
// Whether one of the words stands anywhere in the text. O(text * count).
bool words_any(struct slice text, const struct slice *words, size_t count);
