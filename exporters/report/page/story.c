// SPDX-License-Identifier: Apache-2.0
// The incidents: of several a list, then each in one direction: the root, whom it struck and when,
// what to do.
//
// The same stories in the same order as in the terminal's report. Linear in verdicts and evidence.
#include "exporters/report/story.h"

#include "exporters/report/page/card.h"
#include "exporters/report/page/lanes.h"

#include <assert.h>

enum { LANES_DRAWN = 50 }; // so that a page with very many incidents stays small

void page_stories_find(struct page_view *view) {
    const struct page_input *input = view->input;
    view->incidents = text_incidents(input->verdicts, input->verdict_count, input->batch);
    view->in_story = arena_zero(view->html.arena, input->verdict_count, sizeof *view->in_story);
    for (uint32_t i = 0; i < view->incidents->full; i++)
        for (uint32_t j = 0; j < view->incidents->items[i].story.count; j++)
            view->in_story[view->incidents->items[i].story.steps[j] - input->verdicts] = true;
}

bool page_story_tells(const struct page_view *view, const struct verdict *verdict) {
    assert(verdict >= view->input->verdicts);
    return view->in_story[verdict - view->input->verdicts];
}

bool page_has_broken(const struct page_view *view) {
    if (view->incidents->full == 0)
        return false;
    const struct batch *batch = view->input->batch;
    const struct verdict *first = view->incidents->items[0].story.steps[0];
    if (batch->evaluation_count == 1 && first->job != STRING_NONE &&
        batch->evaluations[0].job != STRING_NONE && batch->evaluations[0].job != first->job)
        return false;
    return first->state != VERDICT_RESOLVED && first->severity >= SEVERITY_WARNING;
}

// -- the list -------------------------------------------------------------------------------------

static void listed_append(struct page_view *view, const struct story *story) {
    struct html *html = &view->html;
    const struct verdict *root = story->steps[0];
    const char *took = text_took_along(&view->words, story);
    html_format(html, "<li><a href=\"#%s\" target=\"_self\">%.*s</a> <span class=\"tag\">%s</span>",
                card_id(view, root), TEXT_OF(root->headline), card_badge(view, root).word);
    html_raw(html, "<br><span class=\"quiet\">");
    card_began(view, root);
    html_format(html, ": %s", text_culprit(&view->words, root));
    if (took != NULL)
        html_format(html, ", took along %s", took);
    html_raw(html, "</span></li>\n");
}

static void list_append(struct page_view *view) {
    struct html *html = &view->html;
    const struct incident_list *list = view->incidents;
    const char *heading = arena_format(html->arena, "%u incidents", list->count);
    page_contents_add(view, "incidents", slice_of(heading), NULL);
    html_format(html,
                "<section class=\"list\" aria-labelledby=\"incidents\">\n<h2 id=\"incidents\">"
                "%s</h2>\n<p class=\"quiet\">In this order: %s.</p>\n<ol>\n",
                heading, text_incident_order(list));
    for (uint32_t i = 0; i < list->count; i++)
        listed_append(view, &list->items[i].story);
    html_raw(html, "</ol>\n</section>\n");
}

// -- an incident ----------------------------------------------------------------------------------

static void facts_append(struct page_view *view, const struct story *story) {
    const struct verdict *root = story->steps[0];
    const char *took = text_took_others(&view->words, story);
    const char *launcher = text_launcher(&view->words, root);
    html_raw(&view->html, "<dl class=\"facts\">\n");
    card_entities(view, root);
    if (root->remediation.size > 0)
        card_fact(view, "what next", root->remediation);
    if (story_restart(root) != NULL)
        card_fact(view, "a restart", slice_of(story_restart(root)));
    if (took != NULL)
        card_fact(view, "took along", slice_of(took));
    card_moments(view, root);
    if (launcher != NULL)
        card_fact(view, "launcher", slice_of(launcher));
    const char *progress = story_progress(root, view->html.arena);
    if (progress != NULL)
        card_fact(view, "progress", slice_of(progress));
    if (root->job != STRING_NONE)
        card_fact(view, "job", intern_slice(root->job));
    html_raw(&view->html, "</dl>\n");
}

static void step_append(struct page_view *view, const struct story *story, uint32_t step) {
    struct html *html = &view->html;
    const struct verdict *verdict = story->steps[step];
    const char *whom = text_whom(&view->words, verdict);
    const char *launcher = text_launcher(&view->words, verdict);
    uint32_t cause = story_cause_of(story, step);
    html_format(html, "<li id=\"%s\"><p class=\"what\" data-step=\"%u\">%.*s%s</p>\n",
                card_id(view, verdict), step + 1, TEXT_OF(verdict->headline),
                verdict->state == VERDICT_RESOLVED ? " (resolved)" : "");
    html_format(html, "<p class=\"quiet\">Began %s",
                text_verdict_offset(&view->words, story->steps[0], verdict));
    if (whom != NULL)
        html_format(html, "; struck %s", whom);
    if (cause > 0)
        html_format(html, "; behind step %u", cause + 1);
    html_raw(html, ".</p>\n");
    if (launcher != NULL)
        html_format(html, "<p class=\"quiet\">%s</p>\n", launcher);
    card_evidence(view, verdict);
    card_figures(view, verdict, true);
    html_raw(html, "</li>\n");
}

static void steps_append(struct page_view *view, const struct story *story) {
    struct html *html = &view->html;
    if (story->count < 2)
        return;
    html_format(html, "<h%d>What followed from it</h%d>\n<ol class=\"steps\">\n", view->level + 1,
                view->level + 1);
    for (uint32_t i = 1; i < story->count; i++)
        step_append(view, story, i);
    html_raw(html, "</ol>\n");
}

static void story_append(struct page_view *view, uint32_t number) {
    struct html *html = &view->html;
    const struct story *story = &view->incidents->items[number].story;
    const struct verdict *root = story->steps[0];
    card_begin(view, card_badge(view, root), root, card_id(view, root));
    if (view->incidents->count > 1)
        html_format(html, "<p class=\"quiet\">Incident %u of %u</p>\n", number + 1,
                    view->incidents->count);
    card_headline(view, page_shown(&view->words, root->headline, 0));
    facts_append(view, story);
    if (number < LANES_DRAWN)
        page_lanes_append(view, story);
    steps_append(view, story);
    card_evidence(view, root);
    card_figures(view, root, false);
    html_raw(html, "</article>\n");
}

void page_stories_append(struct page_view *view) {
    const struct incident_list *list = view->incidents;
    if (list->count > 1)
        list_append(view);
    else
        page_contents_add(view, "main", SLICE("What was found"), NULL);
    for (uint32_t i = 0; i < list->full; i++)
        story_append(view, i);
}
