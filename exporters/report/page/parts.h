// SPDX-License-Identifier: Apache-2.0
// The parts of the HTML page, each in a file of its own.
#pragma once

#include "exporters/report/page/page.h"
#include "exporters/report/text/layout.h"
#include "exporters/report/text/parts.h"

// -- notes.c: what was gathered from the stream --------------------------------------------
enum page_alert_kind { ALERT_CRITICAL, ALERT_ERROR, ALERT_WARNING, ALERT_PEAK };
enum { PAGE_ALERT_KINDS = ALERT_PEAK + 1, PAGE_ALERT_TEXT_MAX = 240 };

struct page_alert {
    uint64_t time_ns;
    string_id job;
    string_id host;
    int32_t rank;                   // or RANK_NONE
    int32_t kind;                   // enum page_alert_kind
    char text[PAGE_ALERT_TEXT_MAX]; // what the event says, made safe to show; may be empty
};

const char *page_alert_name(enum page_alert_kind kind);
uint32_t page_notes_alert_count(const struct page_notes *notes); // of those kept; NULL: 0
uint64_t page_notes_alert_total(const struct page_notes *notes); // of all that came
// Events of logs that no processor of their pipeline takes; NULL: 0.
uint64_t page_notes_unread(const struct page_notes *notes);
// All that are kept, by time.
const struct page_alert *page_notes_alerts(const struct page_notes *notes, struct arena *arena);
// The size of a rank's device; 0 when it is not known.
int64_t page_notes_device_bytes(const struct page_notes *notes, string_id job, int32_t rank);

// -- html.c: writing HTML --------------------------------------------------------------------
// Own markup goes out as it is; every text that is not a constant of ours goes through html_text.
struct html {
    struct buffer *out;
    struct arena *arena;
    struct buffer scratch; // of html_text
};

void html_init(struct html *html, struct buffer *out, struct arena *arena);
void html_release(struct html *html);
void html_raw(struct html *html, const char *markup);
// Markup of our own, and in it %s and %.*s for texts, which go through html_text, and numbers: %d
// %u %c %g %f with l and a precision.
void html_format(struct html *html, const char *format, ...) __attribute__((format(printf, 2, 3)));
// A slice for %.*s.
#define TEXT_OF(slice) (int)(slice).size, (slice).data
// The one place where text becomes HTML, the same in elements and in double-quoted attributes:
// control characters, invisible ones and bytes that are not UTF-8 are spelled out
// (base/text/display.h), and & < > " ' become references. At most HTML_TEXT_MAX bytes before that;
// a cut ends in "...".
enum { HTML_TEXT_MAX = 16 * 1024 };
void html_text(struct html *html, struct slice text);
// <time datetime=…>2026-01-31 09:15:04.123 UTC</time>
void html_time(struct html *html, uint64_t unix_ns);
// A share of the width, in hundredths of a percent.
#define PAGE_SHARE       "%d.%02d%%"
#define PAGE_SHARE_OF(x) (x) / 100, (x) % 100
// The style, the script, and the policy that allows these and nothing else; for the head.
void html_append_policy(struct html *html);
// The same with the script that asks for newer pages where this one came from.
void html_append_live_policy(struct html *html);

// -- head.c: the head of the document, and what is where -------------------------------------
enum { PAGE_CONTENTS_MAX = 100 };
struct page_content {
    const char *id; // of the heading that it leads to; our own text
    struct slice words;
    const char *tag; // our own text; NULL: none
};

struct page_view;
// "<!doctype html>" up to the end of the header: version, title, and from when the data is.
void page_head_append(struct page_view *view);
struct slice page_job_name(const struct evaluation *evaluation);
// Of those beyond PAGE_CONTENTS_MAX only the number is listed.
void page_contents_add(struct page_view *view, const char *id, struct slice words, const char *tag);
void page_contents_append(struct page_view *view);

// -- page.c: the document -------------------------------------------------------------------------
struct page_view {
    const struct page_input *input;
    struct html html;
    struct told_list told;
    struct text_style style;
    struct text_page words; // composes the sentences of the terminal's report
    const struct page_alert *alerts;
    uint32_t alert_count;
    const struct verdict **verdicts; // gravest first
    uint32_t verdict_count;
    const struct incident_list *incidents;
    struct answer answer;
    bool *in_story;             // of each verdict of the input: a story tells it
    uint32_t max_lines;         // of one chart: ranks with a line, beside the suspects
    uint32_t max_suspect_lines; // of one chart
    uint32_t points;            // of one line
    uint32_t rank_rows;         // rows that the tables of ranks may still have
    int level;                  // of a section's heading: 2, or 3 below the heading of a job
    uint32_t job_number;        // of the job under way, from 0: a prefix of ids
    uint32_t span_rows;         // rows that the tables of spans may still have
    // No samples were read, but something else was: nothing is said of memory.
    bool without_memory;
    struct page_content *contents; // [content_count, at most PAGE_CONTENTS_MAX]; NULL: none yet
    uint32_t content_count;
};

void page_section_begin(struct page_view *view, const char *name, const char *heading);
void page_section_end(struct page_view *view);
// Whether this alert is shown with this evaluation's job.
bool page_alert_belongs(const struct page_view *view, const struct page_alert *alert,
                        const struct evaluation *evaluation);

// What is read off the samples that are held of one rank. `held` is false without any.
struct rank_figures {
    bool held;
    bool has_line; // in the chart of memory, so that a link can lead to it
    int64_t first_bytes, last_bytes;
    int64_t lowest_bytes, highest_bytes; // of the samples held
    int64_t device_bytes;                // 0: not known
    int32_t suspect; // its place among the suspects of the cause; -1: it is none
};
// How a suspect is marked: "c0" the one that is named, "c1" to "c4" further ones in turn, "m" who
// is no suspect of a leak.
const char *page_rank_class(const struct evaluation *evaluation, int32_t suspect);

// -- verdict.c: what was found, with its evidence ------------------------------------------
// "error", "not settled yet", "nothing found", …
const char *page_answer_word(const struct page_view *view, const struct evaluation *evaluation);
// What the whole page comes to, where no card of a verdict says it.
void page_whole_answer_append(struct page_view *view);
// The answer on the memory of this job; nothing where no samples of it were read.
void page_answer_append(struct page_view *view, const struct evaluation *evaluation);
// The other verdicts on this job.
void page_more_verdicts_append(struct page_view *view, const struct evaluation *evaluation);
// Verdicts on jobs that no evaluation shows; returns how many there are and writes them with
// `write`.
uint32_t page_loose_verdicts(struct page_view *view, bool write);
// All verdicts that no story tells, the gravest first, each with its job.
void page_untold_verdicts_append(struct page_view *view);

// The gravest verdict on this job that stands, enum severity; -1: none.
int page_gravity(const struct page_view *view, string_id job);

// -- live.c: what a page that is served has beside the report; nothing without input->live ------
// Before anything else of it: the states of the jobs that the batch shows.
void page_live_update(struct page_view *view);
// The number of this job's ids, which stays its own; `otherwise` where nothing is kept of it.
uint32_t page_live_number(const struct page_view *view, string_id job, uint32_t otherwise);
// How many jobs are known; of one alone its name.
uint32_t page_live_count(const struct page_live *live, string_id *only);
// Keeps a job's section for pages whose batch does not show it.
void page_live_keep(struct page_view *view, string_id job, struct slice section);
// Whether the page shows a kept section of this job; whether there are sections at all.
bool page_live_keeps(const struct page_view *view, string_id job);
bool page_live_keeps_any(const struct page_live *live);
void page_live_kept_append(struct page_view *view);
// How old the page is; the script makes it the state of the connection.
void page_live_bar_append(struct page_view *view);
// The evidence that came, as far as it is known; NULL: it is not.
const struct seen *page_seen(const struct page_input *input);
void page_live_jobs_append(struct page_view *view);
void page_absent_append(struct page_view *view);

// -- story.c: each incident, from its root on ------------------------------------------------
void page_stories_find(struct page_view *view);
// Whether the first of them stands, is more than a note, and is of the only job that is shown.
bool page_has_broken(const struct page_view *view);
bool page_story_tells(const struct page_view *view, const struct verdict *verdict);
// Of several a list; then each.
void page_stories_append(struct page_view *view);

// -- chart.c ---------------------------------------------------------------------------------
// Sets has_line of all ranks.
void page_lines_mark(struct page_view *view, const struct evaluation *evaluation,
                     struct rank_figures *figures);
void page_charts_append(struct page_view *view, const struct evaluation *evaluation,
                        const struct rank_figures *figures);

// Shown where the box behind it is wider than there is room.
#define PAGE_WIDE_HINT "<p class=\"hint\">Scroll sideways to see the rest.</p>"

// -- tables.c --------------------------------------------------------------------------------
void page_suspects_append(struct page_view *view, const struct evaluation *evaluation,
                          const struct rank_figures *figures);
void page_ranks_append(struct page_view *view, const struct evaluation *evaluation,
                       const struct rank_figures *figures);
void page_alerts_append(struct page_view *view, const struct evaluation *evaluation);
// A table in a box of its own that scrolls sideways where it is too wide, and says so. `columns`
// are their names, with a bar between them. Behind the first PAGE_ROWS_OPEN of `count` rows the
// others are folded, "12 more ranks"; page_rows_next comes before each row.
enum { PAGE_ROWS_OPEN = 16 };
struct page_rows {
    const char *id; // of what is folded, behind the job's number; our own text, unique in its job
    const char *name, *caption, *columns;
    const char *what; // "more ranks"
    uint32_t count, done;
};
void page_rows_begin(struct page_view *view, const struct page_rows *rows);
void page_rows_next(struct page_view *view, struct page_rows *rows);
void page_rows_end(struct page_view *view, const struct page_rows *rows);

// -- spans.c: where the thread time went -----------------------------------------------------
enum { PAGE_SPAN_ROWS_MAX = 2000 }; // of all its tables
// The phases of this evaluation's job.
void page_job_spans_append(struct page_view *view, const struct evaluation *evaluation);
// All that are told with no evaluation: streams, and jobs that none shows.
void page_other_spans_append(struct page_view *view);
