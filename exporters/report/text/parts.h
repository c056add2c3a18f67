// SPDX-License-Identifier: Apache-2.0
// The parts of the report, each in a file of its own.
#pragma once

#include "exporters/report/event_places.h"
#include "exporters/report/text/layout.h"

// text_cause.c: the headline and the lines under it.
void text_cause_append(struct text_page *page, const struct evaluation *evaluation,
                       const char *advice);
// text_followers.c: which ranks grew after the first one, and when.
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
// text_timeline.c: memory of each rank over time, drawn in characters; which ranks fell silent.
void text_timeline_append(struct text_page *page, const struct evaluation *evaluation);
// The ranks that fell silent before `end_ns`, aligned.
void text_silent_append(struct text_page *page, const struct evaluation *evaluation,
                        __int128 end_ns);
// The stretch of aligned time that all ranks together cover; false when no sample is held.
bool text_span(const struct evaluation *evaluation, __int128 *start_ns, __int128 *end_ns);

// text_incident.c: each incident from its root on, and verdicts that stand alone; returns how many.
uint32_t text_incidents_append(struct text_page *page, const struct batch *batch);
// When a verdict is about, the same way in the report and on the page, and from the same two times
// as in JSON: "began" is start_time_unix_nano; "last seen" is end_time_unix_nano, and how long
// after the begin that is, which is as long as it is known to have lasted.
struct verdict_moment {
    const char *label;
    uint64_t time_ns;
    const char *after; // "2 min 21 s after it began"; NULL for the begin itself
};
// Fills `moments`, and returns how many: of what has one moment only the first.
uint32_t text_verdict_moments(struct text_page *page, const struct verdict *verdict,
                              struct verdict_moment moments[2]);
// The same counted from another verdict's begin: "700 ms after it, last seen 2 min 22 s after it".
const char *text_verdict_offset(struct text_page *page, const struct verdict *from,
                                const struct verdict *verdict);
// One verdict with all that is known of it.
void text_verdict_append(struct text_page *page, const struct verdict *verdict, bool with_evidence);
// text_explain.c: the verdict with this id (or the only one that begins so), with each piece of its
// evidence and where that stood.
// Nothing, and false, when no verdict has that id or several begin so.
bool text_explain_append(struct text_page *page, const struct batch *batch, struct slice id,
                         struct event_places *places);
// Whether that tells of this verdict.
bool text_incident_tells(const struct verdict *verdict);
// What evidence was absent and how it is switched on; `seen` NULL: nothing.
void text_absent_append(struct text_page *page, const struct seen *seen);
// Inputs that were named and are not there.
void text_missing_append(struct text_page *page, const struct batch *batch);

// text_spans.c: where the thread time went, shorter (`brief`) when something else was found.
// `alone`: nothing stands before it.
void text_spans_append(struct text_page *page, const struct batch *batch, bool brief, bool alone);
// Whether a stream of spans was read; then nobody misses samples.
bool text_streams_any(const struct batch *batch);

// text_report.c: whether the detector of the causes made it; whether this verdict says what the
// cause of this evaluation says, in other words.
bool text_is_memory_verdict(const struct verdict *verdict);
bool text_verdict_is_told(const struct verdict *verdict, const struct evaluation *evaluation);

// Shared by them.
int32_t text_rank_at(const struct evaluation *evaluation, uint32_t index);
// "epoch / step", "likely a / b", "a or b (ambiguous)"; NULL when unknown.
const char *text_phase(struct text_page *page, const struct phase_attribution *phase);
// "ranks 4 to 7 and 9"; a long list ends in "and N more".
const char *text_ranks(struct text_page *page, const int32_t *ranks, uint32_t count);
// When a sample was taken, on the clock that all ranks of the job share.
__int128 text_aligned(const struct evaluation *evaluation, uint32_t index, uint64_t time_ns);
