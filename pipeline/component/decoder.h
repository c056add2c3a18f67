// SPDX-License-Identifier: Apache-2.0
// From bytes to events: what a decoder of one format is. Implementations live in receivers/decode.
#pragma once

#include "base/arena.h"
#include "pipeline/model/event.h"

// Why a record was refused. The names (decode_category_name) are what counters, logs and the
// quarantine file say.
enum decode_category {
    DECODE_OK = 0,
    DECODE_BAD_JSON,
    DECODE_NOT_OBJECT,
    DECODE_WRONG_TYPE,
    DECODE_UNSUPPORTED_VERSION,
    DECODE_MISSING_FIELD,
    DECODE_UNKNOWN_FIELD,
    DECODE_EMPTY_STRING,
    DECODE_OUT_OF_RANGE,
    DECODE_EXCEEDS_TOTAL,
    DECODE_IDENTITY_CONFLICT,
    DECODE_CAPABILITY_CONFLICT,
    DECODE_MISSING_TIMESTAMP,
    DECODE_TOO_LONG, // longer than max_line_size
    DECODE_TORN,     // the input ended inside the record
    DECODE_LIMIT,    // a bound of culprit (distinct names) was reached
    DECODE_BAD_PICKLE,
    DECODE_UNKNOWN_SOURCE, // a tagged line whose `source` nobody reads
    DECODE_UNKNOWN_MONTH,  // a word stands where the month does, in no language that is known
    DECODE_BAD_TIMESTAMP,  // a date that does not exist
    DECODE_TRUNCATED,      // what it looks like breaks off
    DECODE_WRAPPED,        // a line that something broke in two inside a word
    DECODE_ENCODING,       // not UTF-8 or ASCII, but an encoding that is known by name
    DECODE_MISSING_VALUE,
    DECODE_UNKNOWN_ENVELOPE, // an object with a message, whose keys no envelope has
    DECODE_CATEGORY_COUNT,
    DECODE_NOTHING = -1,
    DECODE_HELD = -2,  // kept by the decoder until the lines that belong to it have come
    DECODE_END = -3,   // `next` has nothing more
    DECODE_BESIDE = -4 // an event that sums up records which were DECODE_NOTHING
};

enum { DECODE_FIELD_MAX = 512, DECODE_DETAIL_MAX = 256 };

struct decode_fault {
    enum decode_category category;
    char field[DECODE_FIELD_MAX]; // the field(s) named by the reference, ", " joined; "" when none
    char detail[DECODE_DETAIL_MAX]; // one clause for people: what was found, what would be right
    size_t offset;                  // where in the record, for bad JSON and pickles; else 0
    bool told; // refused, and the event tells of it: it is handed on all the same
};

struct forms;
struct time_zone;

// What another culprit says of a record that it passed on, beside its bytes: what they were read
// as, and what its receiver knew and they do not say. Slices live as long as the record.
struct forwarded {
    struct slice format;    // name of the decoder that made the event; size 0: not said
    string_id job, node;    // of the event; STRING_NONE: none
    int32_t rank;           // of the event, or RANK_NONE
    uint64_t time_ns;       // of the event; 0: it has none of its own
    uint64_t observed_ns;   // when its input was read or written; 0: not said
    bool is_file;           // it was a file of its own
    struct carried carried; // zeros: nothing
};

// What is known of an input before its first record.
struct decoder_input {
    const struct time_zone *zone; // of times that say none; NULL: UTC
    struct slice node;            // whose log it is, where its lines do not say; empty: not known
    uint64_t boot_ns;             // when that node booted, Unix; 0: not known
    uint32_t world_size;          // ranks of the job; 0: not known
    struct slice path;            // as the receiver names it
    uint64_t observed_ns;         // when it was read or written, Unix; 0: not known
    bool is_file;                 // a file of its own, not a part of a stream
    bool ends;                    // nothing is written to it while it is read, from its begin on
    const struct forms *forms;    // rows of what logs say; NULL: those that are built in
    uint64_t near_ns;             // a time that its neighbours say with a year, Unix; 0: not known
    struct slice tail; // its last bytes as they are now; only while `begin` runs; may be empty
    // Its only record was passed on by another culprit; lives as long as the record. NULL: not so.
    const struct forwarded *forwarded;
};

// What is to be done with lines that follow one another: `bytes` of them, which are `lines`,
// `blank` of them blank, are passed over; the next `offered` are offered one by one.
struct line_run {
    size_t bytes;
    uint64_t lines, blank, offered;
};
enum { LINE_RUNS = 2 };

// What the bytes of a line say of it by themselves.
enum found_kind {
    FOUND_NOTHING,      // nobody reads it, for all that its bytes say
    FOUND_NUMBERED,     // the same, but that it begins with a number and a colon
    FOUND_MAYBE,        // it is to be judged
    FOUND_MAYBE_NUMBER, // both
    FOUND_CERTAIN,      // it is of interest
};
struct found_line {
    uint32_t at;           // where it begins
    uint32_t lines, blank; // in front of it
    enum found_kind kind;
};
// What was found on another thread in whole lines that follow one another: in their order all that
// are not FOUND_NOTHING, and the ends up to which the text may be seen at once.
struct found_lines {
    const struct forms *forms; // by which they were found
    struct slice text;
    const struct found_line *lines;
    uint32_t count; // 0: nothing is known
};

struct decoder_type {
    const char *name; // "stormlog"
    size_t state_size;
    // The state is about this input; called once, before the first record. NULL: it does not
    // matter.
    void (*begin)(void *state, const struct decoder_input *input);
    // `state` is zeroed memory of state_size that belongs to one source: what was learnt of its key
    // order is kept there. The event's slices point into `record` or `arena`. Allocates nothing in
    // steady state but arena memory. One thread per state. DECODE_NOTHING: right, but nothing that
    // anybody looks for; it is counted and makes no event.
    enum decode_category (*decode)(void *state, struct slice record, struct arena *arena,
                                   struct event *event, struct decode_fault *fault);
    // Records that hold several events, and events that take several records: what `decode` did not
    // give. To be called after each decode that gave no refusal, until it gives DECODE_END; what it
    // gives is counted like what decode gives. `event->position` and `event->lines` say which
    // records it is of: decode finds the position of its record in event->position, and the same
    // for a refusal or DECODE_NOTHING of records that were held. DECODE_BESIDE: an event that is
    // handed on and counted nowhere, since its records are counted. NULL: one record, one event.
    enum decode_category (*next)(void *state, struct arena *arena, struct event *event,
                                 struct decode_fault *fault);
    // Where records are lines, finds those that need not be decoded: what is passed over would be
    // DECODE_NOTHING, and changes nothing of what becomes of the others, which are offered. `text`
    // begins with a line that was not offered yet, and its last line may not be whole: of that
    // nothing is said. Fills `runs`, of which the first may pass nothing over, in their order; to
    // be asked again behind them. `found`: what is known of these bytes already, which changes
    // nothing of the answer; NULL: nothing. O(text), and allocates nothing in steady state. NULL:
    // all are offered.
    void (*pass_over)(void *state, struct slice text, const struct found_lines *found,
                      struct line_run runs[LINE_RUNS]);
    // Whether records are held; they are given back by `next` once more have come, or at the latest
    // after `finish`, which says that nothing more comes, or not for long. NULL: never.
    bool (*holds)(const void *state);
    void (*finish)(void *state);
    // The record that comes next has no end: the input ended in it. What is made of it says so, and
    // holds no more than what is there. NULL: such records are not decoded.
    void (*cut)(void *state);
    // The records up to the next call are parts of one that another culprit passed on, which stands
    // by itself: they are decoded as what it says, with what it says. NULL: no more of it comes,
    // and nothing of it is held. `forwarded` lives until then. NULL: it makes no difference.
    void (*pass_on)(void *state, const struct forwarded *forwarded);
    // The input was written again, at this time (Unix, later than any before): what comes may be as
    // new as that. NULL: it does not matter.
    void (*written)(void *state, uint64_t written_ns);
    // What the state owns outside of its own memory. NULL: nothing.
    void (*release)(void *state);
    // Decodes a record that is one of these beyond doubt, by itself or since it is like those
    // before it: whoever has to tell what some bytes are need not look at them first. False:
    // nothing has happened, and `decode` says what is wrong. NULL: never.
    bool (*decode_plain)(void *state, struct slice record, struct arena *arena,
                         struct event *event);
    const struct decoder_type *plain; // whose records those are; NULL: its own
    // Makes the event that tells of a record which was refused before it came here, as `decode`
    // does with `told`. `start`: what there is of the record, may be empty; `why`: a clause,
    // copied. False: nothing is to be told. NULL: never.
    bool (*tell_refused)(void *state, struct slice start, struct slice why, struct arena *arena,
                         struct event *event);
    // Where a record is a whole input, `decode` in two halves, so that the first can be done ahead
    // on another thread. `parse` makes what the record says by itself, in the arena; `state` is
    // zeroed memory of state_size of that thread, on which begin was not called, and no name is
    // interned. NULL: it did nothing, and `decode` says why. `decode_parsed` makes the event of it,
    // as decode would, in the state of the source. NULL, both: never.
    void *(*parse)(void *state, struct slice record, struct arena *arena);
    enum decode_category (*decode_parsed)(void *state, void *parsed, struct event *event,
                                          struct decode_fault *fault);
};

const char *decode_category_name(enum decode_category category);

static inline bool decode_refused(enum decode_category category) {
    return category > DECODE_OK;
}
// For a trial: gives up what the state holds. Its events die with the arena.
void decoder_drop_held(const struct decoder_type *decoder, void *state, struct arena *arena);
