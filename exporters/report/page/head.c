// SPDX-License-Identifier: Apache-2.0
// The head of the page: its title, the time that its data is of, and the list of contents.
//
// The head of the document, its title, and the list of contents, which is gathered while the body
// is written. Nothing but the input goes into it: no clock of this machine.
#include "exporters/report/page/parts.h"
#include "exporters/report/text/layout.h"

#include <assert.h>

#ifndef CULPRIT_VERSION
#define CULPRIT_VERSION "unknown"
#endif

static const char symbols[] =
    "<svg class=\"symbols\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs>\n"
    "<g id=\"alert-critical\" class=\"a-critical\"><path d=\"M0-7 7 0 0 7-7 0Z\"/></g>\n"
    "<g id=\"alert-error\" class=\"a-error\"><path d=\"M-5-5H5V5H-5Z\"/></g>\n"
    "<g id=\"alert-warning\" class=\"a-warning\"><path d=\"M0-6 6.5 5.5H-6.5Z\"/></g>\n"
    "<g id=\"alert-peak\" class=\"a-peak\"><path d=\"M0 4V-5M-4-1 0-5 4-1\"/></g>\n"
    "</defs></svg>\n";

struct slice page_job_name(const struct evaluation *evaluation) {
    return evaluation->job == STRING_NONE ? SLICE("a job without a name")
                                          : intern_slice(evaluation->job);
}

static void title_append(struct page_view *view) {
    const struct batch *batch = view->input->batch;
    uint32_t count = batch->evaluation_count;
    string_id only = count == 1 ? batch->evaluations[0].job : STRING_NONE;
    if (view->input->live != NULL)
        count = page_live_count(view->input->live, &only);
    if (view->input->title != NULL) {
        html_format(&view->html, "%s", view->input->title);
    } else if (page_has_broken(view)) {
        html_raw(&view->html, "What broke");
        if (count == 1 && only != STRING_NONE)
            html_format(&view->html, " in job %.*s", TEXT_OF(intern_slice(only)));
    } else if (view->without_memory) {
        html_raw(&view->html, view->verdict_count > 0   ? "What broke"
                              : text_streams_any(batch) ? "Thread time"
                                                        : "What was looked at");
    } else if (view->input->live != NULL && count == 0) {
        html_raw(&view->html, "Waiting for records");
    } else if (count == 1) {
        html_format(
            &view->html, "Memory of %s%.*s", only == STRING_NONE ? "" : "job ",
            TEXT_OF(only == STRING_NONE ? SLICE("a job without a name") : intern_slice(only)));
    } else if (count > 1) {
        html_format(&view->html, "Memory of %u jobs", count);
    } else {
        html_raw(&view->html, "Memory report");
    }
}

// From when to when the data is, by its own clocks: of all samples, and of what was found.
static bool data_range(const struct page_view *view, uint64_t *from_ns, uint64_t *to_ns) {
    const struct batch *batch = view->input->batch;
    *from_ns = UINT64_MAX;
    *to_ns = 0;
    for (uint32_t i = 0; i < batch->evaluation_count; i++)
        for (uint32_t k = 0; k < batch->evaluations[i].rank_count; k++) {
            const struct rank_view *rank = &batch->evaluations[i].ranks[k];
            *from_ns = rank->first_ns < *from_ns ? rank->first_ns : *from_ns;
            *to_ns = rank->last_ns > *to_ns ? rank->last_ns : *to_ns;
        }
    for (uint32_t i = 0; i < view->verdict_count; i++) {
        const struct verdict *verdict = view->verdicts[i];
        if (verdict_time_of(verdict) > TIME_OF_LINE_BEFORE)
            continue; // when the input was read or written
        *from_ns = verdict->start_ns < *from_ns ? verdict->start_ns : *from_ns;
        *to_ns = verdict->end_ns > *to_ns ? verdict->end_ns : *to_ns;
    }
    return *from_ns <= *to_ns;
}

static void data_append(struct page_view *view) {
    uint64_t from_ns, to_ns;
    if (!data_range(view, &from_ns, &to_ns))
        return;
    html_raw(&view->html, "<p class=\"quiet\">");
    html_raw(&view->html, view->without_memory ? "Findings from " : "Data from ");
    html_time(&view->html, from_ns);
    if (to_ns > from_ns) {
        html_raw(&view->html, " to ");
        html_time(&view->html, to_ns);
        html_format(&view->html, ", %s", page_duration(&view->words, (__int128)to_ns - from_ns));
    }
    html_raw(&view->html, "</p>\n");
}

void page_head_append(struct page_view *view) {
    struct html *html = &view->html;
    html_raw(html, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    if (view->input->live != NULL)
        html_append_live_policy(html);
    else
        html_append_policy(html);
    html_raw(html,
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
             "<meta name=\"color-scheme\" content=\"light dark\">\n"
             "<meta name=\"referrer\" content=\"no-referrer\">\n"
             "<link rel=\"icon\" href=\"data:,\">\n<title>");
    title_append(view);
    html_raw(html,
             "</title>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\" target=\"_self\">"
             "To the findings</a>\n<header><p class=\"brand\">culprit " CULPRIT_VERSION "</p><h1>");
    title_append(view);
    html_raw(html, "</h1>\n");
    data_append(view);
    html_raw(html, "</header>\n");
    page_live_bar_append(view);
    html_raw(html, symbols);
}

// -- contents -------------------------------------------------------------------------------------

void page_contents_add(struct page_view *view, const char *id, struct slice words,
                       const char *tag) {
    assert(id != NULL && words.data != NULL);
    if (view->contents == NULL)
        view->contents = arena_take(view->html.arena, PAGE_CONTENTS_MAX * sizeof *view->contents);
    if (view->content_count < PAGE_CONTENTS_MAX)
        view->contents[view->content_count] = (struct page_content){id, words, tag};
    view->content_count++;
}

void page_contents_append(struct page_view *view) {
    struct html *html = &view->html;
    uint32_t count = view->content_count;
    if (count < 2)
        return;
    html_raw(html, "<nav aria-label=\"Contents\"><ul>\n");
    for (uint32_t i = 0; i < count && i < PAGE_CONTENTS_MAX; i++) {
        const struct page_content *content = &view->contents[i];
        html_format(html, "<li><a href=\"#%s\" target=\"_self\">%.*s</a>", content->id,
                    TEXT_OF(content->words));
        if (content->tag != NULL)
            html_format(html, " <span class=\"tag\">%s</span>", content->tag);
        html_raw(html, "</li>\n");
    }
    if (count > PAGE_CONTENTS_MAX)
        html_format(html, "<li>and %u more</li>\n", count - PAGE_CONTENTS_MAX);
    html_raw(html, "</ul></nav>\n");
}
