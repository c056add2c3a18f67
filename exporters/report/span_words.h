// SPDX-License-Identifier: Apache-2.0
// How spans are put into words and numbers, the same way in the terminal's report and on the page.
#pragma once

#include "exporters/report/span_outline.h"
#include "exporters/report/text/layout.h"
#include "pipeline/model/span_event.h"

// Seconds as the reports' nanoseconds; what no clock shows is cut to some 300 years.
__int128 span_nanoseconds(double seconds);
// Bytes as the reports print them; more than 8 EiB are shown as that.
int64_t span_bytes(__int128 bytes);
// "12.5 %"; "-" when there is nothing to be a share of.
const char *span_share(struct arena *arena, double part, double whole);
// "3 processing, 1 waiting": the states that count as unfinished, and erred.
const char *span_states(struct arena *arena, const uint64_t states[TASK_STATE_COUNT]);
// "step-0 to step-5 (6 spans)", "and 117 more spans", "forward". `name_max`: bytes of a name.
const char *span_label(struct text_page *page, const struct span_line *line, size_t name_max);
// Whether a line's own state is worth a sentence: it is not done or has erred tasks, and none of
// the lines right below it says so already.
bool span_tells_state(const struct span_outline *outline, uint32_t index);
// "running for 12.3 s: 3 processing, 1 waiting; 2 erred".
const char *span_state_words(struct text_page *page, const struct span_line *line);
// "tasks.jsonl", or "job exp-7".
const char *span_source(struct text_page *page, const struct span_report *report);
// One paragraph on the whole: time, threads, how much was read.
const char *span_summary(struct text_page *page, const struct span_report *report,
                         const struct span_outline *outline);
// "3 lines were refused: line 3 (bad-json), line 14, entry 2 (unknown-span) and 1 more"; NULL:
// none.
const char *span_refusals(struct text_page *page, const struct span_report *report);

// The phases with the most thread time, at most `max`, in the report's order. Returns how many.
uint32_t span_phases_choose(const struct span_report *report, uint32_t max, struct arena *arena,
                            const struct span_phase ***chosen);
// The ranks that lag in a phase by more than noise, the worst first; at most `max`.
uint32_t span_laggards(const struct span_phase *phase, uint32_t max);
// "slowest in 9 of 10"; empty when it never was.
const char *span_slowest(struct arena *arena, const struct span_phase_rank *rank);
// The ranks that are inside, ascending; returns how many.
uint32_t span_inside(const struct span_phase *phase, struct arena *arena, int32_t **ranks);
