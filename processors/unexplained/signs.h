// SPDX-License-Identifier: Apache-2.0
// Signs of a failure: events that tell that something went wrong, whether or not they tell why.
//
// Each writer's first of each kind is kept, and when the last came; a stretch of SIGN_STRETCH_NS
// begins anew, so that what comes hours later is a sign of its own. A flat row of about 600 bytes.
// O(1) an event.
#pragma once

#include "base/table/keyed_rows.h"
#include "base/table/table.h"
#include "pipeline/model/event.h"
#include "pipeline/model/observation.h"
#include "processors/cluster/row_bound.h"

enum { SIGN_TEXT_MAX = 470 };

#define SIGN_STRETCH_NS (10 * 60 * UINT64_C(1000000000))

enum sign_flag {
    SIGN_TIMELESS = 1 << 0,   // nobody wrote a time, and no line before it has one
    SIGN_ENDS = 1 << 1,       // a process, a job or a machine ended
    SIGN_FOLLOWS = 1 << 2,    // of what another did: it waited, lost a peer, was told to end
    SIGN_REPORT = 1 << 3,     // a launcher tells of another's end
    SIGN_OF_NODE = 1 << 4,    // the machine says it of itself
    SIGN_PROCESS = 1 << 5,    // it names a process of that machine by its pid
    SIGN_EXPLAINED = 1 << 6,  // a verdict tells of it, or the job survived it
    SIGN_LOOKED_AT = 1 << 7,  // compared with all verdicts that stood
    SIGN_AFTER = 1 << 8,      // its time is that of a line before
    SIGN_APP_LINE = 1 << 10,  // of EVENT_APP_LINE
    SIGN_OF_RECEIPT = 1 << 9, // of SIGN_TIMELESS: when it was received, else when it was written
    SIGN_STATE = 1 << 11,     // it lasts until its source says that it is over
    SIGN_TOLD = 1 << 12,      // it ended by a signal that asks a process to end
    SIGN_BESIDE = 1 << 13,    // by itself it is no sign of a failure
};

struct sign_key {
    string_id job, node;
    string_id source;           // STRING_NONE where the node or rank is known
    uint32_t stretch;           // number of its stretch of time; 0: timeless
    uint32_t who_high, who_low; // hash of what else names the writer
    int32_t rank;
    uint32_t kind; // enum observation_kind
};

struct sign {
    struct row_head head;
    struct sign_key key;
    uint64_t time_ns, last_ns;
    uint64_t over_ns;  // of SIGN_STATE: when it was over; 0: nobody said so
    uint64_t position; // in its source
    uint64_t last_position;
    string_id source; // path
    uint32_t flags;
    uint64_t said;            // hash of what is said, whoever says it
    int64_t pid;              // -1: not known
    int32_t local_rank;       // -1: not known
    char text[SIGN_TEXT_MAX]; // "rank 3 on gpu-a: …", ended by a zero byte
};

// In the text of a sign of kind job_layout, in front of where.
#define SIGN_MEETS "looks for its job at "

extern const struct row_type SIGN_ROWS;

// The kinds of observations that are signs, ended by OBSERVATION_NONE.
extern const uint8_t SIGN_KINDS[];

// Hash of what names the writer, or what the observation is about, beside rank and node.
uint64_t sign_who(const struct observation *observation);
// Whether it says that a state is over.
bool sign_is_end(const struct observation *observation);
// Keeps what the event is a sign of, if it is one.
void sign_take(struct keyed_rows *signs, struct row_bound *bound, const struct event *event,
               struct arena *scratch);
// A process says it of itself, and may go on.
bool sign_is_words(const struct sign *sign);
// Names the event: "sign:gpu-a:3:exception:HASH:1795312659000000000".
const char *sign_uid(const struct sign *sign, struct arena *arena);
// What one says of itself before what follows from another, and reports last; 0: of one rank.
int sign_compare_telling(const struct sign *a, const struct sign *b);
// Of two that name a process of a machine: 0 where it is the same one, and the same happened to it.
int sign_compare_process(const struct sign *a, const struct sign *b);
enum time_of sign_time_of(const struct sign *sign);
// By time, those without one behind, and of one file as they stand there; then by what they say.
int sign_compare(const struct sign *a, const struct sign *b);
