// SPDX-License-Identifier: Apache-2.0
// What a page that is served has beside the report: the state of each job, how far the pipeline is,
// and what did not come, so that nobody takes silence for health.
//
// An evaluation shows the jobs that had new samples. Here the sections of the others stay as they
// were made last, so that a page does not lose a job between two of its samples. A section goes
// when its job is forgotten, when a verdict on it changed without it, or when there are
// PAGE_LIVE_JOBS_MAX jobs newer than it. Memory: the sections, about 25 KiB a job of few ranks, 1.3
// MB one of 10,000, at most SECTIONS_BYTES_MAX.
#include "exporters/report/page/card.h"
#include "exporters/report/seen.h"

#include "base/memory.h"
#include "base/sort.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { LIVE_MAGIC = 0x504c4956, SECTIONS_BYTES_MAX = 32 << 20, WORD_MAX = 48 };
enum { SILENT_INTERVALS = 10 };
static const uint64_t SILENT_NS = UINT64_C(30000000000);
static const uint64_t NS_PER_MS = 1000000;

struct live_job {
    bool used;
    string_id job;
    uint64_t turn; // of the page on which it was evaluated last
    uint64_t newest_ns, interval_ns;
    uint32_t rank_count;
    int64_t world_size;
    const char *class, *shape; // of its badge, without a verdict
    char word[WORD_MAX];
    struct buffer section;
};

struct page_live {
    uint32_t magic; // LIVE_MAGIC
    bool any;       // a page of an evaluation was made
    uint64_t turn;
    uint64_t newest_ns, as_of_ns;
    struct seen seen;
    struct live_job jobs[PAGE_LIVE_JOBS_MAX];
};

struct page_live *page_live_new(void) {
    struct page_live *live = memory_zero(1, sizeof *live);
    live->magic = LIVE_MAGIC;
    for (uint32_t i = 0; i < PAGE_LIVE_JOBS_MAX; i++)
        buffer_init(&live->jobs[i].section, SECTIONS_BYTES_MAX);
    return live;
}

static void job_drop(struct live_job *job) {
    buffer_release(&job->section);
    *job = (struct live_job){.used = false};
    buffer_init(&job->section, SECTIONS_BYTES_MAX);
}

void page_live_release(struct page_live *live) {
    if (live == NULL)
        return;
    assert(live->magic == LIVE_MAGIC);
    for (uint32_t i = 0; i < PAGE_LIVE_JOBS_MAX; i++)
        buffer_release(&live->jobs[i].section);
    live->magic = 0;
    memory_give(live);
}

static struct live_job *job_find(struct page_live *live, string_id job) {
    for (uint32_t i = 0; i < PAGE_LIVE_JOBS_MAX; i++)
        if (live->jobs[i].used && live->jobs[i].job == job)
            return &live->jobs[i];
    return NULL;
}

// -- news ---------------------------------------------------------------------------------------

static bool is_among(const struct page_news_jobs *list, string_id job) {
    bool found = list->more > 0;
    for (uint32_t i = 0; i < list->count && !found; i++)
        found = list->jobs[i] == job;
    return found;
}

static void news_add(struct page_news_jobs *list, string_id job) {
    if (list->count < PAGE_NEWS_JOBS_MAX)
        list->jobs[list->count++] = job;
    else
        list->more++;
}

static bool is_evaluated(const struct batch *batch, string_id job) {
    for (uint32_t i = 0; i < batch->evaluation_count; i++)
        if (batch->evaluations[i].job == job)
            return true;
    return false;
}

void page_news_note(struct page_news *news, const struct batch *batch) {
    seen_note(&news->seen, batch);
    if (batch->newest_ns > news->newest_ns)
        news->newest_ns = batch->newest_ns;
    if (batch->evaluate)
        news->as_of_ns = batch->last ? news->newest_ns : batch->as_of_ns;
    const struct forgotten *forgotten = batch->forgotten;
    for (uint32_t i = 0; forgotten != NULL && i < forgotten->job_count; i++)
        news_add(&news->forgotten, forgotten->jobs[i].job);
    if (forgotten != NULL && forgotten->everything)
        news->forgotten.more++;
    for (uint32_t i = 0; i < batch->verdicts.count; i++)
        if (!is_evaluated(batch, batch->verdicts.items[i].job))
            news_add(&news->changed, batch->verdicts.items[i].job);
}

static void jobs_told(struct page_news_jobs *list, const struct page_news_jobs *told) {
    assert(told->count <= list->count);
    list->count -= told->count;
    memmove(list->jobs, list->jobs + told->count, list->count * sizeof *list->jobs);
    assert(told->more <= list->more);
    list->more -= told->more;
}

void page_news_told(struct page_news *news, const struct page_news *told) {
    jobs_told(&news->forgotten, &told->forgotten);
    jobs_told(&news->changed, &told->changed);
}

void page_live_take(struct page_live *live, const struct page_news *news) {
    assert(live->magic == LIVE_MAGIC);
    live->seen = news->seen;
    live->newest_ns = news->newest_ns;
    live->as_of_ns = news->as_of_ns;
    for (uint32_t i = 0; i < PAGE_LIVE_JOBS_MAX; i++) {
        struct live_job *job = &live->jobs[i];
        if (job->used && is_among(&news->forgotten, job->job))
            job_drop(job);
        else if (job->used && is_among(&news->changed, job->job))
            buffer_reset(&job->section);
    }
}

// -- jobs ---------------------------------------------------------------------------------------

// A free place, or that of the job that was evaluated longest ago.
static struct live_job *job_place(struct page_live *live, string_id job) {
    struct live_job *found = job_find(live, job);
    if (found != NULL)
        return found;
    found = &live->jobs[0];
    for (uint32_t i = 0; i < PAGE_LIVE_JOBS_MAX && found->used; i++)
        if (!live->jobs[i].used || live->jobs[i].turn < found->turn)
            found = &live->jobs[i];
    if (found->used)
        job_drop(found);
    found->used = true;
    found->job = job;
    return found;
}

static void job_update(struct page_view *view, const struct evaluation *evaluation) {
    struct page_live *live = view->input->live;
    struct live_job *job = job_place(live, evaluation->job);
    struct badge badge = card_answer_badge(view, evaluation);
    job->turn = live->turn;
    job->newest_ns = 0;
    for (uint32_t i = 0; i < evaluation->rank_count; i++)
        if (evaluation->ranks[i].last_ns > job->newest_ns)
            job->newest_ns = evaluation->ranks[i].last_ns;
    job->interval_ns =
        evaluation->median_interval_ns > 0 ? (uint64_t)evaluation->median_interval_ns : 0;
    job->rank_count = evaluation->rank_count;
    job->world_size = evaluation->world_size;
    job->class = badge.class;
    job->shape = badge.shape;
    snprintf(job->word, sizeof job->word, "%s", badge.word);
    buffer_reset(&job->section);
}

void page_live_update(struct page_view *view) {
    struct page_live *live = view->input->live;
    const struct batch *batch = view->input->batch;
    if (live == NULL)
        return;
    assert(live->magic == LIVE_MAGIC);
    live->turn++;
    live->any = live->any || batch->evaluate;
    for (uint32_t i = 0; i < batch->evaluation_count && i < PAGE_LIVE_JOBS_MAX; i++)
        if (batch->evaluations[i].rank_count > 0)
            job_update(view, &batch->evaluations[i]);
}

uint32_t page_live_number(const struct page_view *view, string_id job, uint32_t otherwise) {
    struct page_live *live = view->input->live;
    const struct live_job *found = live == NULL ? NULL : job_find(live, job);
    return found == NULL ? otherwise : (uint32_t)(found - live->jobs);
}

uint32_t page_live_count(const struct page_live *live, string_id *only) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < PAGE_LIVE_JOBS_MAX; i++)
        if (live->jobs[i].used) {
            *only = live->jobs[i].job;
            count++;
        }
    return count;
}

static size_t kept_bytes(const struct page_live *live) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < PAGE_LIVE_JOBS_MAX; i++)
        bytes += live->jobs[i].section.size;
    return bytes;
}

void page_live_keep(struct page_view *view, string_id job, struct slice section) {
    struct live_job *found = view->input->live == NULL ? NULL : job_find(view->input->live, job);
    if (found == NULL)
        return;
    buffer_reset(&found->section);
    // Without room the job is shown when it is evaluated.
    if (kept_bytes(view->input->live) + section.size <= SECTIONS_BYTES_MAX)
        buffer_append(&found->section, section);
    assert(!found->section.failed);
}

static bool is_kept(const struct page_live *live, const struct live_job *job) {
    return job->used && job->turn != live->turn && job->section.size > 0;
}

bool page_live_keeps(const struct page_view *view, string_id job) {
    struct page_live *live = view->input->live;
    const struct live_job *found = live == NULL ? NULL : job_find(live, job);
    return found != NULL && is_kept(live, found);
}

bool page_live_keeps_any(const struct page_live *live) {
    for (uint32_t i = 0; live != NULL && i < PAGE_LIVE_JOBS_MAX; i++)
        if (live->jobs[i].used && live->jobs[i].section.size > 0)
            return true;
    return false;
}

static struct slice name_of(const struct live_job *job) {
    return job->job == STRING_NONE ? SLICE("a job without a name") : intern_slice(job->job);
}

static struct badge badge_of(struct page_view *view, const struct live_job *job) {
    int gravity = page_gravity(view, job->job);
    if (gravity >= 0)
        return card_severity_badge((enum severity)gravity);
    return (struct badge){job->class, job->shape, job->word};
}

void page_live_kept_append(struct page_view *view) {
    struct page_live *live = view->input->live;
    for (uint32_t i = 0; live != NULL && i < PAGE_LIVE_JOBS_MAX; i++) {
        const struct live_job *job = &live->jobs[i];
        if (!is_kept(live, job))
            continue;
        page_contents_add(view, arena_format(view->html.arena, "job%u", i), name_of(job),
                          arena_format(view->html.arena, "%s", badge_of(view, job).word));
        buffer_append(view->html.out, buffer_slice(&job->section));
    }
}

// -- the head -----------------------------------------------------------------------------------

// The script writes how long ago it was.
static void age_append(struct page_view *view, uint64_t time_ns) {
    html_format(&view->html, " <span data-age=\"%ld\"></span>", (long)(time_ns / NS_PER_MS));
}

void page_live_bar_append(struct page_view *view) {
    const struct page_live *live = view->input->live;
    if (live == NULL)
        return;
    html_raw(&view->html,
             "<div class=\"live\" id=\"live\"><p><span id=\"live-state\" "
             "role=\"status\">");
    if (live->newest_ns > 0) {
        html_raw(&view->html, "State of <span id=\"live-time\">");
        html_time(&view->html, live->as_of_ns > 0 ? live->as_of_ns : live->newest_ns);
        html_raw(&view->html, "</span>. Reload the page for a newer one.");
    } else {
        html_raw(&view->html, "Nothing was read yet. Reload the page for what came since.");
    }
    html_raw(&view->html, "</span> <span id=\"live-age\"></span></p></div>\n");
}

struct listed {
    const struct live_job *job;
    uint32_t number;
    int gravity;
};

static int listed_compare(const void *left, const void *right) {
    const struct listed *a = left, *b = right;
    return COMPARE_KEYS(COMPARE(b->gravity, a->gravity),
                        COMPARE(a->job->job != STRING_NONE, b->job->job != STRING_NONE),
                        slice_compare(name_of(a->job), name_of(b->job)));
}

static void ranks_append(struct page_view *view, const struct live_job *job) {
    if (job->world_size > (int64_t)job->rank_count)
        html_format(&view->html, "%u of %ld ranks", job->rank_count, (long)job->world_size);
    else
        html_format(&view->html, "%u rank%s", job->rank_count, job->rank_count == 1 ? "" : "s");
}

static void job_append(struct page_view *view, const struct listed *listed) {
    const struct live_job *job = listed->job;
    const struct page_live *live = view->input->live;
    struct html *html = &view->html;
    struct badge badge = badge_of(view, job);
    uint64_t most_ns = SILENT_INTERVALS * job->interval_ns;
    most_ns = most_ns > SILENT_NS ? most_ns : SILENT_NS;
    bool silent = live->newest_ns > job->newest_ns + most_ns;
    html_format(html, "<li data-key=\"%.*s\" class=\"state %s\"><span class=\"badge\">",
                TEXT_OF(name_of(job)), badge.class);
    html_raw(html, "<svg viewBox=\"0 0 16 16\" aria-hidden=\"true\">");
    html_raw(html, badge.shape);
    html_format(html, "</svg>%s</span> ", badge.word);
    if (job->turn == live->turn || job->section.size > 0)
        html_format(html, "<a href=\"#job%u\" target=\"_self\">%.*s</a>", listed->number,
                    TEXT_OF(name_of(job)));
    else
        html_format(html, "%.*s", TEXT_OF(name_of(job)));
    html_raw(html, " <span class=\"quiet\">");
    ranks_append(view, job);
    html_raw(html, ", newest sample of ");
    html_time(html, job->newest_ns);
    age_append(view, job->newest_ns);
    html_raw(html, "</span>");
    if (silent)
        html_format(html, " <strong>no samples for %s</strong>",
                    page_duration(&view->words, (__int128)live->newest_ns - job->newest_ns));
    html_raw(html, "</li>\n");
}

static void reach_append(struct page_view *view) {
    const struct page_live *live = view->input->live;
    struct html *html = &view->html;
    html_raw(html, "<p class=\"quiet\">");
    if (live->newest_ns == 0) {
        html_raw(html, "Waiting for the first records.</p>\n");
        return;
    }
    html_raw(html, "Newest record of ");
    html_time(html, live->newest_ns);
    age_append(view, live->newest_ns);
    if (live->as_of_ns > 0) {
        html_raw(html, "; evaluated up to ");
        html_time(html, live->as_of_ns);
    } else {
        html_raw(html, "; waiting for the first evaluation");
    }
    html_raw(html, ".</p>\n");
}

const struct seen *page_seen(const struct page_input *input) {
    return input->live != NULL ? &input->live->seen : input->seen;
}

void page_live_jobs_append(struct page_view *view) {
    struct page_live *live = view->input->live;
    if (live == NULL)
        return;
    struct html *html = &view->html;
    struct listed listed[PAGE_LIVE_JOBS_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < PAGE_LIVE_JOBS_MAX; i++)
        if (live->jobs[i].used)
            listed[count++] =
                (struct listed){&live->jobs[i], i, page_gravity(view, live->jobs[i].job)};
    qsort(listed, count, sizeof *listed, listed_compare);
    html_raw(html, "<section class=\"now\" aria-labelledby=\"now\">\n<h2 id=\"now\">Now</h2>\n");
    if (count > 0)
        html_raw(html, "<ul class=\"jobs\">\n");
    for (uint32_t i = 0; i < count; i++)
        job_append(view, &listed[i]);
    if (count > 0)
        html_raw(html, "</ul>\n");
    reach_append(view);
    html_raw(html, "</section>\n");
}

// As in the terminal's report: behind a finding on samples alone nobody misses the rest.
static const struct seen *seen_to_tell(const struct page_view *view) {
    const struct seen *seen = page_seen(view->input);
    bool tells = view->input->live != NULL || view->answer.root == NULL ||
                 (seen != NULL && seen_nodes(seen));
    return tells ? seen : NULL;
}

void page_absent_append(struct page_view *view) {
    const struct seen *seen = seen_to_tell(view);
    const struct absence *absent[SEEN_ABSENT_MAX];
    uint32_t count = seen == NULL ? 0 : seen_absent(seen, absent);
    if (count == 0)
        return;
    struct html *html = &view->html;
    page_contents_add(view, "absent", SLICE("Not checked"), NULL);
    html_format(html,
                "<section aria-labelledby=\"absent\">\n<h2 id=\"absent\">Not checked</h2>\n"
                "<p class=\"quiet\">For want of evidence%s:</p>\n<ul class=\"absent\">\n",
                view->input->live != NULL ? " since culprit started" : "");
    for (uint32_t i = 0; i < count; i++)
        html_format(html,
                    "<li data-key=\"%s\"><details><summary>%s</summary><p>%s</p></details></li>\n",
                    absent[i]->what, absent[i]->what, absent[i]->advice);
    html_raw(html, "</ul>\n</section>\n");
}
