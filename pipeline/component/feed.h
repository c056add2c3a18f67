// SPDX-License-Identifier: Apache-2.0
// A receiver's way into the pipelines: bytes with a position go in, decoded events come out.
//
// A feed belongs to one receiver and is used by one thread at a time. It decodes each record into
// its batch; feed_flush hands the batch to every pipeline that lists the receiver and returns when
// all have consumed it. That is the backpressure: a slow pipeline holds up its receivers and nobody
// else. Slices in events point into the receiver's own bytes: flush before they move or change.
#pragma once

#include "base/status.h"
#include "pipeline/component/decoder.h"
#include "pipeline/component/local_times.h"

#include <stdbool.h>

struct feed;
struct source;

// The finite inputs of a receiver, as it found them.
struct source_list {
    struct arena arena;
    struct slice *paths;
    uint32_t count;
    uint32_t capacity;
};
void source_list_add(struct source_list *list, struct slice path);

// How far a source was read, in the receiver's own terms: kept with every checkpoint and given back
// after a restart. `number` rises with every record (line, offset, sequence); zeros: nothing yet.
struct source_position {
    uint64_t number;
    uint64_t detail[5]; // byte offset, inode, hash of the first bytes … : the receiver's own
};

// What became of one input, for the closing words of analyze and for logs.
struct source_figures {
    uint64_t bytes;       // read, after decompression
    uint64_t accepted;    // events
    uint64_t event_lines; // records that they were made of
    uint64_t refused;     // records
    uint64_t blank;       // lines with nothing on them
    uint64_t other;       // records that are right and that nobody looks for
    bool torn;            // its last line broke off and was dropped
    bool unread;          // left out as a whole: not known, or not readable; a note says why
    const char *format;   // "stormlog", or NULL when nothing was recognised
    // Events by event_class, EVENT_CLASS_COUNT numbers; NULL: there was none. The feed's own.
    const uint64_t *by_class;
    // Refused records by enum decode_category, DECODE_CATEGORY_COUNT numbers; NULL: none.
    const uint64_t *by_category;
};

// Opens (or finds again, by path) a source of this feed. `decoder` says what its records are and
// may be NULL until feed_source_format. The source lives as long as the feed.
struct source *feed_source(struct feed *feed, struct slice path);
// A source without events of its own, for positions that several sources of one path need (a log
// and what it was before it was rotated). It is no input in reports. `name` begins with PLACE_MARK.
#define PLACE_MARK '\x1f'
struct source *feed_place(struct feed *feed, struct slice name);
// Sets the decoder and gives it fresh memory; once a source, before its first record. `input` says
// what is known of it; its path is the source's own.
void feed_source_format(struct source *source, const struct decoder_type *decoder,
                        const struct decoder_input *input);
const struct decoder_type *feed_source_decoder(const struct source *source);
struct slice feed_source_path(const struct source *source);
struct source_figures *feed_source_figures(struct source *source);

// Where the source stood at the checkpoint that was loaded: go on behind it. Zeros for a new one.
struct source_position feed_source_restored(const struct source *source);
// The sources that the checkpoint knew, in any order, so that a receiver can go on with inputs that
// it would not find by itself; NULL at the end. They count as active from the start.
struct source *feed_restored_source(struct feed *feed, uint32_t index);
// Where the source stands once the record offered next (or refused next) has been consumed. Call it
// before feed_offer; positions never go back, but for entries of a journal that are offered again.
void feed_source_reached(struct source *source, const struct source_position *position);
// Nothing more comes from this source for now (a partition that went to somebody else): it no
// longer holds evaluations back. It comes back with its next record.
void feed_source_leave(struct feed *feed, struct source *source);
// The source was read to its end: nothing more of it is there now (a file at its end, a drained
// kernel log, a watch or topic that gives nothing, a scrape or request that was taken). Unless a
// record of it comes, it stops holding evaluations back caught_up_timeout after its last event, or
// allowed_lateness when that is longer; without this call only after idle_timeout. Not while
// records of it are held. It takes effect with the next feed_flush: call it before that, after each
// read. Costs a comparison when the source has given nothing since.
void feed_source_caught_up(struct feed *feed, struct source *source);
// It is gone for good (a file that was deleted) and need not be remembered; the pointer dies.
void feed_source_forget(struct feed *feed, struct source *source);
// The position up to which every pipeline holds the records safely: in a durable checkpoint when
// there is a store, else consumed. What lies before it may be acknowledged. Any thread.
struct source_position feed_source_safe(struct feed *feed, const struct source *source);

// What was there when the receiver began (or began again) has been handed over, but for what one
// source still has, which holds back by itself what is judged. Until every receiver of a pipeline
// has said so, nothing is judged there, at most for idle_timeout: else the first input that is read
// would be judged without the others. Call it once, also when nothing was there.
void feed_caught_up(struct feed *feed);

// Whether what is read now is of one source: then a moment that a record passes is evaluated before
// that record, wherever reads end. While several have something to read, and at first, it is
// evaluated behind the batch: else what one has would be judged without the others.
void feed_steps(struct feed *feed, bool one_source);

// True while a pipeline cannot take more (its queue is full, memory or the store is at its limit,
// or the service is not ready): do not read on. Any thread, cheap.
bool feed_blocked(const struct feed *feed);
// Waits until it is not blocked, or it is stopping, or the time is over; true when not blocked.
bool feed_wait(struct feed *feed, uint64_t timeout_ns);

// For a receiver whose feed goes to several pipelines and that keeps a journal: with this set a
// pipeline that is blocked is passed over, and takes the records up again later, when they are
// offered once more from behind feed_lag. A batch then grows until feed_flush is called: each flush
// is one journal entry, taken by a pipeline as a whole, and `number` of the source's position rises
// by one with each.
void feed_keeps_journal(struct feed *feed, struct source *source);
// The lowest number that a pipeline which is not blocked any more has still to be given, 0 when
// all have everything. Records offered again reach only those pipelines that lack them.
uint64_t feed_lag(struct feed *feed, const struct source *source);

// Whether records of the source, or records whose positions it has, wait for others that belong to
// them (lines of a traceback). While they do, the position stays in front of them, so that a
// restart reads them again.
bool feed_source_holds(const struct source *source);
// Nothing more comes from the source, or not for long: what is held becomes events, or is refused.
// To be called at the end of a file, a request, a message, and when a file that is followed has
// been quiet. When the receiver is stopped only where no store keeps the position in front of it.
void feed_source_finish(struct feed *feed, struct source *source);
// The record that is offered next has no end (decoder_type.cut). False, and nothing has happened,
// when the decoder takes no such records.
bool feed_source_cut(struct source *source);
// Its input was written again, at this time (Unix). Needs a decoder.
void feed_source_written(struct source *source, uint64_t written_ns);
// Who is to be told of records that were refused after they had been held: the lines of a report,
// as the decoder has them, and the position of the first. `record` and `fault` are the feed's.
void feed_on_refusal(struct feed *feed,
                     void (*refused)(void *context, const struct source *source,
                                     struct slice record, uint64_t position,
                                     const struct decode_fault *fault),
                     void *context);

// One record: decoded and put into the batch, which is flushed by itself when it is full. On
// refusal the category is returned and `fault` filled; the feed has counted it and said it (log,
// report), unless it was done before a restart, when it is DECODE_OK. `position` is the 1-based
// line or item in its source.
enum decode_category feed_offer(struct feed *feed, struct source *source, struct slice record,
                                uint64_t position, struct decode_fault *fault);
// Decodes a record ahead when it is an event beyond doubt (decoder_type.decode_plain), so that it
// need not be found out what it is: offered next, it is taken without being decoded again. False:
// nothing has happened.
bool feed_foresee(struct feed *feed, struct source *source, struct slice record);
// Offers `count` records that follow one another from `position` on, with the events that
// decode_plain of the source's decoder made of them elsewhere: each that of its `raw`. What they
// point to lives until the batch is flushed. False: nothing has happened, and they are to be
// offered one by one.
bool feed_offer_foreseen(struct feed *feed, struct source *source, const struct event *events,
                         uint32_t count, uint64_t position);
// What `parse` of the source's decoder made of these bytes elsewhere; what it points to lives until
// the batch is flushed.
void feed_foresee_parsed(struct feed *feed, struct slice record, void *parsed);
// A record that never got to a decoder (too long, torn): counts it and says it like a refusal.
void feed_refuse(struct feed *feed, struct source *source, uint64_t position,
                 const struct decode_fault *fault);
// Hands on the event that tells that a record was there which never got to the decoder, or an input
// that could not be read, where the source's decoder makes one (decoder_type.tell_refused). Counts
// nothing. `start`: what there is of it; lives until the batch is flushed.
void feed_tell_refused(struct feed *feed, struct source *source, struct slice start,
                       uint64_t position, struct slice why);
// Finds the lines of `text` that need not be offered (decoder_type.pass_over), and counts them as
// if they had been. `text` begins with the line that would be offered next; `found` may be NULL.
// False, and nothing has happened: offer the next line.
bool feed_pass_lines(struct feed *feed, struct source *source, struct slice text,
                     const struct found_lines *found, struct line_run runs[LINE_RUNS]);
// So many records were right, and are nothing that anybody looks for: counted as other without
// having been offered one by one.
void feed_pass_over(struct feed *feed, struct source *source, uint64_t count);
// A thing about the input as a whole that a person should know ("manifest.json: not read").
// Kept for the report, bounded; also logged at info level.
void feed_note(struct feed *feed, struct slice path, const char *format, ...) PRINTF_LIKE(3, 4);

// The same for an input that was named and is not there: it is told in the answer, too.
void feed_missing(struct feed *feed, struct slice path, struct slice why);

// What is offered until the next call is of one record that another culprit passed on: what
// travelled with it says how it is decoded, and is set on its events where they do not say it.
// After its last part finish the source and call this with NULL. `forwarded` lives until then.
void feed_source_passed_on(struct feed *feed, struct source *source,
                           const struct forwarded *forwarded);

// Hands over what is in the batch. When it is empty, only positions that were reached since.
void feed_flush(struct feed *feed);

// Events that name no job, or the text "none", get this one, and those that name no node this
// one. STRING_NONE: none (the default).
struct feed_stamp {
    string_id job;
    string_id node;
};
void feed_stamp(struct feed *feed, struct feed_stamp stamp);

// How many quarters of an hour the zone of these logs is ahead of UTC, by what was handed over so
// far: 0 when that does not prove any. `path` is one of them, to say so. Only over inputs that end,
// where it does not depend on which input was faster; else 0.
int32_t feed_settle_zone(struct feed *feed, struct slice path, const struct local_times *times);
// Whether enough was handed over so far to prove a zone by; false: whatever the logs say, it is 0,
// and they need not be looked through.
bool feed_may_settle_zone(struct feed *feed);

// The last time that what was handed over so far says, Unix; 0: none. Only over inputs that end,
// where it does not depend on which input was faster; else 0.
uint64_t feed_latest_ns(struct feed *feed);

// Whether what has been handed over so far names such a node: then a folder of that name may be
// its. Only over inputs that end, where it does not depend on which input was faster; else false.
bool feed_knows_node(struct feed *feed, struct slice name);

// For the status page and metrics: the receiver works (NULL), or what keeps it from working for
// now ("the broker does not answer"); it is logged when it changes.
void feed_trouble(struct feed *feed, const char *sentence);

// Bytes done and to do, for progress; any values, cheap.
void feed_progress(struct feed *feed, uint64_t done_bytes, uint64_t total_bytes);

// True once the receiver has been asked to stop: drain what is there already, then return. With
// feed_pausing it will be started again at once (a reload): do not drain, just return.
bool feed_stopping(const struct feed *feed);
bool feed_pausing(const struct feed *feed);
// Readable (poll) once feed_stopping is true. Never -1.
int feed_stop_descriptor(const struct feed *feed);
