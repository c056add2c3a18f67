// SPDX-License-Identifier: Apache-2.0
// A report as one self-contained HTML page: memory and utilisation of each rank over time with
// alerts marked, suspects and their phases, verdicts with their evidence.
//
// No script of others, no network, no text that is not escaped; a Content-Security-Policy that
// forbids all else. Readable in light and dark, in print, and with the keyboard alone.
#pragma once

#include "exporters/report/seen.h"
#include "pipeline/component/state.h"
#include "pipeline/model/batch.h"

// What the page needs of the stream beyond evaluations: alerts (warning, critical, error, peak) and
// the size of each rank's device. Bounded: the newest PAGE_ALERTS_MAX alerts, peaks giving way to
// others, PAGE_RANKS_MAX devices.
enum { PAGE_ALERTS_MAX = 250, PAGE_DEVICES_MAX = 65536 };
struct page_notes; // opaque

struct page_notes *page_notes_new(void);
void page_notes_release(struct page_notes *notes); // NULL is fine
// Looks at the events of a batch; no allocation in steady state.
void page_notes_add(struct page_notes *notes, const struct batch *batch);

// For the owner's `state` and `restored` (pipeline/component/state.h).
void page_notes_state(struct page_notes *notes, struct state_list *list);
void page_notes_restored(struct page_notes *notes);

// A copy for another thread, in the arena: of lists only those that changed since `known`, which
// is what page_notes_show was given last. That gives notes that have no stream of their own.
struct page_notes_versions {
    uint64_t alerts, devices;
};
struct page_notes_copy {
    struct page_notes_versions versions;
    struct slice alerts, devices; // rows; data NULL: as they were
    uint64_t alert_total, unread;
};
void page_notes_copy(const struct page_notes *notes, const struct page_notes_versions *known,
                     struct arena *arena, struct page_notes_copy *copy);
void page_notes_show(struct page_notes *shown, const struct page_notes_copy *copy);

struct span_outline;

// What a page that is served over and over keeps between two pages: the jobs and their sections,
// how far the pipeline is, which evidence came. Bounded: PAGE_LIVE_JOBS_MAX jobs.
enum { PAGE_LIVE_JOBS_MAX = 64, PAGE_NEWS_JOBS_MAX = 256 };
struct page_live; // opaque

// Jobs, in the order in which they were named, each as often as it was: what is told is taken from
// the front. Beyond the bound `more` counts those that are left out, and stands for all.
struct page_news_jobs {
    string_id jobs[PAGE_NEWS_JOBS_MAX];
    uint32_t count;
    uint64_t more;
};

// What it is told before each page, gathered from every batch. Zeroed before the first.
struct page_news {
    struct seen seen;
    uint64_t newest_ns, as_of_ns;
    struct page_news_jobs forgotten;
    struct page_news_jobs changed; // by a verdict, without having been evaluated
};

struct page_live *page_live_new(void);
void page_live_release(struct page_live *live); // NULL is fine
// Looks at a batch; no allocation.
void page_news_note(struct page_news *news, const struct batch *batch);
// Takes out the jobs that stand in `told`, which is an earlier copy.
void page_news_told(struct page_news *news, const struct page_news *told);
// Before the page of which these are the news.
void page_live_take(struct page_live *live, const struct page_news *news);

struct page_input {
    const char *title;         // NULL: made from the job
    const struct batch *batch; // whose evaluations are shown; its arena may be used
    // Verdicts to show, gravest first or in any order; they need not be the batch's.
    const struct verdict *verdicts;
    uint32_t verdict_count;
    const struct page_notes *notes; // NULL: no alerts, no utilisation
    const struct seen *seen;        // the evidence that came; NULL: as `live` knows, or not known
    struct page_live *live;         // NULL: a page for itself. Else it brings its update along
    uint32_t max_points;            // of one line, at least 2
    uint32_t max_ranks;             // with lines of their own; suspects have one beside these
    // Samples that are nearer to one another may have had others between them: no line is broken
    // there. 0: all samples are there.
    uint64_t near_ns;
    // Of each of the batch's reports of spans what page_outline_make gave, whose trees cannot be
    // asked any more. NULL: they can.
    const struct span_outline *outlines;
};

// The outline of the batch's report of this number; in the arena, with all its texts.
void page_outline_make(const struct batch *batch, uint32_t index, struct arena *arena,
                       struct span_outline *outline);

// Appends the whole document, "<!doctype html>" first, "<head>" soon after; UTF-8. The same input
// gives the same bytes. Bounded whatever comes (page.c): a rank has no line when there are 256
// suspects before it, lines have fewer points when there are many, tables end; the page says what
// it leaves out. Some 0.5 MB for 64 ranks with long series, 1.3 MB for 10,000 ranks.
void page_encode(const struct page_input *input, struct buffer *out);
