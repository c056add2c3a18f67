// SPDX-License-Identifier: Apache-2.0
// The parts of the report, each in a file of its own.
#pragma once

#include "exporters/report/event_places.h"
#include "exporters/report/seen.h"
#include "exporters/report/story.h"
#include "exporters/report/text/layout.h"
#include "pipeline/model/batch.h"

struct incident_list;

// answer.c: what the whole report comes to. One composition, which every view shows: the headline
// of the first incident; where there is none, what was looked at and what was not there.
enum answer_kind {
    ANSWER_FOUND,       // what happened, and who did it or whom it struck
    ANSWER_UNEXPLAINED, // something failed, and no detector can say why or who
    ANSWER_HEALTHY,     // enough of a job was seen to say that nothing is wrong
    ANSWER_NOTHING,     // nothing was found, and not enough was seen to say more
};
struct answer {
    enum answer_kind kind;
    const char *headline;       // safe to show; NULL: what is said of each job says it
    const struct verdict *root; // FOUND, UNEXPLAINED: of the first incident; else NULL
};
// `verdicts`: those that the incidents are made of; they need not be the batch's.
struct answer text_answer(struct text_page *page, const struct incident_list *incidents,
                          const struct verdict *verdicts, uint32_t count, const struct batch *batch,
                          const struct seen *seen);

// cause.c: the headline on the memory of a job and the lines under it. `verdict` says the same;
// NULL: there is none. `alone`: nothing else was found, so that it is the answer on the job.
void text_cause_append(struct text_page *page, const struct evaluation *evaluation,
                       const struct verdict *verdict, bool alone);
// followers.c: which ranks grew after the first one, and when.
struct follower {
    uint32_t index;
    int32_t rank;
    __int128 aligned_ns;
    const struct spike *spike;
};

// Fills followers[rank_count at most] in the order in which they grew; needs a cause and spikes.
uint32_t text_followers_find(const struct evaluation *evaluation, struct follower *followers);
// What the rank at `index` was doing, when it is one of the suspects; else NULL.
const struct phase_attribution *text_suspect_phase(const struct evaluation *evaluation,
                                                   uint32_t index);
void text_followers_append(struct text_page *page, const struct evaluation *evaluation);
// timeline.c: memory of each rank over time, drawn in characters; which ranks fell silent.
void text_timeline_append(struct text_page *page, const struct evaluation *evaluation);
// The ranks that fell silent before `end_ns`, aligned.
void text_silent_append(struct text_page *page, const struct evaluation *evaluation,
                        __int128 end_ns);
bool text_any_silent(const struct evaluation *evaluation);
// The indices of all ranks, in the order in which they are drawn when there is no room for all:
// suspects, then ranks that grew, then the others, ascending. [rank_count], in the arena.
const uint32_t *text_drawing_order(const struct evaluation *evaluation, struct arena *arena);
// The stretch of aligned time that all ranks together cover; false when no sample is held.
bool text_span(const struct evaluation *evaluation, __int128 *start_ns, __int128 *end_ns);

// incident.c: the incidents of a run, numbered in this order: those that are told in full, from
// their root on, then the growth of memory that the report on a job tells.
struct told_incident {
    struct story story;
    uint32_t job; // index of the evaluation that tells it; UINT32_MAX: told in full
};
struct incident_list {
    struct told_incident *items;
    uint32_t count;
    uint32_t full; // of them told in full
};

const struct incident_list *text_incidents(const struct verdict *verdicts, uint32_t count,
                                           const struct batch *batch);
// Why the first of several is the first.
const char *text_incident_order(const struct incident_list *list);
// Of several a list; then each that is told in full.
void text_incidents_append(struct text_page *page, const struct incident_list *list);
// "Incident 2 of 3", when there are several.
void text_incident_number(struct text_page *page, const struct incident_list *list,
                          uint32_t number);
// Whom it blames, or else suspects: "gpu node-a/0000:45:00", "perhaps rank 3".
const char *text_culprit(struct text_page *page, const struct verdict *verdict);
// "7 ranks"; NULL: none is known.
const char *text_took_along(struct text_page *page, const struct story *story);
// The same; NULL, too, where the root names them all as its victims.
const char *text_took_others(struct text_page *page, const struct story *story);
// What one verdict says it struck: "ranks 0 to 5 and 7, pod train/worker-1"; NULL: nobody.
const char *text_whom(struct text_page *page, const struct verdict *verdict);
// "torchrun named rank 3; …" where that is not whom the verdict blames; else NULL.
const char *text_launcher(struct text_page *page, const struct verdict *verdict);
// When a verdict is about is told the same way in the report and on the page, and from the same two
// times as in JSON: "began" is start_time_unix_nano; "last seen" is end_time_unix_nano, and how
// long after the begin that is, which is as long as it is known to have lasted. That, counted from
// another verdict's begin: "700 ms after it, last seen 2 min 22 s after it".
const char *text_verdict_offset(struct text_page *page, const struct verdict *from,
                                const struct verdict *verdict);
// One verdict with all that is known of it, but for its evidence.
void text_verdict_append(struct text_page *page, const struct verdict *verdict);
// explain.c: the verdict with this id (or the only one that begins so), with each piece of its
// evidence and where that stood.
// Nothing, and false, when no verdict has that id or several begin so.
bool text_explain_append(struct text_page *page, const struct batch *batch, struct slice id,
                         struct event_places *places);
// Whether that tells of this verdict.
bool text_incident_tells(const struct verdict *verdict);
// Inputs that were named and are not there.
void text_missing_append(struct text_page *page, const struct batch *batch);

// short.c: whether nothing was found, so that the short report is enough; that report.
bool text_is_short(const struct batch *batch, const struct seen *seen);
void text_short_append(struct text_page *page, const struct answer *answer,
                       const struct batch *batch, const struct seen *seen);
// What was not checked, behind a finding, when anything was seen of nodes; verbose: how to add it.
void text_absent_append(struct text_page *page, const struct seen *seen);

// spans.c: where the thread time went, shorter (`brief`) when something else was found.
// `alone`: nothing stands before it.
void text_spans_append(struct text_page *page, const struct batch *batch, bool brief, bool alone);
// Whether a stream of spans was read; then nobody misses samples.
bool text_streams_any(const struct batch *batch);

// report.c: whether the detector of the causes made it; whether this verdict says what the
// cause of this evaluation says, in other words.
bool text_is_memory_verdict(const struct verdict *verdict);
bool text_verdict_is_told(const struct verdict *verdict, const struct evaluation *evaluation);
// Whether it is about this very cause; earlier generations of the job have verdicts of their own.
bool text_verdict_is_about(const struct verdict *verdict, const struct evaluation *evaluation);
bool text_verdict_is_told_in(const struct verdict *verdict, const struct batch *batch);

// Whether a note only says that what was read was no sample, which nobody needs to know.
bool text_note_is_routine(struct slice note);

// Shared by them.
// "2026-01-31 09:15:04.123 UTC, 2 min 21 s after it began"
const char *text_after_begin(struct text_page *page, uint64_t time_ns, uint64_t began_ns);
int32_t text_rank_at(const struct evaluation *evaluation, uint32_t index);
// "epoch / step", "likely a / b", "a or b (ambiguous)"; NULL when unknown.
const char *text_phase(struct text_page *page, const struct phase_attribution *phase);
// "ranks 4 to 7 and 9"; a long list ends in "and N more".
const char *text_ranks(struct text_page *page, const int32_t *ranks, uint32_t count);
// When a sample was taken, on the clock that all ranks of the job share.
__int128 text_aligned(const struct evaluation *evaluation, uint32_t index, uint64_t time_ns);
