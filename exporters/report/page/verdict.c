// SPDX-License-Identifier: Apache-2.0
// What broke, who, how sure, what to do, and on what grounds?
//
// The answer on a job is told in the words of the terminal's report; its verdict adds how grave it
// is and the evidence. Other verdicts are told in their own words.
#include "exporters/report/page/parts.h"

#include <stdio.h>

static const char *const role_names[] = {"culprit", "suspect", "victim"};
static const char *const relation_names[] = {"caused by", "causes", "same incident:"};
static const char *const evidence_names[] = {"cause", "effect", "context"};

// A shape for each severity, so that colour is not needed to tell them apart.
static const char *const severity_shapes[] = {
    "<circle cx=\"8\" cy=\"8\" r=\"6.5\"/><path d=\"M8 7v4.5M8 4.2v.6\"/>",
    "<path d=\"M8 1.5 15 14H1Z\"/><path d=\"M8 6v4M8 11.6v.6\"/>",
    "<path d=\"M5 1.5h6L14.5 5v6L11 14.5H5L1.5 11V5Z\"/><path d=\"M5.5 5.5l5 5m0-5-5 5\"/>",
    "<path d=\"M8 .8 15.2 8 8 15.2.8 8Z\"/><path d=\"M8 4.5v4.5M8 11v.6\"/>",
};
static const char good_shape[] =
    "<circle cx=\"8\" cy=\"8\" r=\"6.5\"/><path d=\"M5 8.3l2 2 4-4.5\"/>";

// What is over, or what is not known: neither good nor bad.
static const char plain_shape[] = "<circle cx=\"8\" cy=\"8\" r=\"6.5\"/><path d=\"M5 8h6\"/>";

struct badge {
    const char *class; // how the card looks
    const char *shape;
    const char *word;
};

// "error, over" is no good news: what was found stays found.
static struct badge badge_of(const struct page_view *view, const struct verdict *verdict) {
    if (verdict->state == VERDICT_RESOLVED)
        return (struct badge){
            "plain", plain_shape,
            arena_format(view->html.arena, "%s, over", severity_name(verdict->severity))};
    return (struct badge){severity_name(verdict->severity), severity_shapes[verdict->severity],
                          severity_name(verdict->severity)};
}

// Its place among the page's verdicts, by which others lead to it; their count: it is not there.
static uint32_t verdict_number(const struct page_view *view, const char *id) {
    uint32_t number = 0;
    while (number < view->verdict_count && strcmp(view->verdicts[number]->id, id) != 0)
        number++;
    return number;
}

static void card_begin(struct page_view *view, struct badge badge, const struct verdict *verdict) {
    struct html *html = &view->html;
    html_format(html, "<article class=\"card %s\"", badge.class);
    if (verdict != NULL)
        html_format(html, " id=\"v%u\"", verdict_number(view, verdict->id));
    html_raw(html, ">\n<p class=\"about\"><span class=\"badge\">");
    html_format(html, "<svg viewBox=\"0 0 16 16\" aria-hidden=\"true\">%s</svg>%s</span>",
                badge.shape, badge.word);
    if (verdict != NULL) {
        html_raw(html, " <span class=\"tag\">");
        for (const char *at = verdict->kind; *at != '\0'; at++)
            html_text(html, (struct slice){*at == '_' ? " " : at, 1});
        html_format(html, "</span> <span class=\"quiet\">confidence %d of 100%s</span>",
                    verdict->confidence, verdict->partial ? ", from incomplete data" : "");
    }
    html_raw(html, "</p>\n");
}

static void headline_append(struct page_view *view, const char *text) {
    html_format(&view->html, "<h%d class=\"headline\">", view->level);
    html_words(&view->html, text);
    html_format(&view->html, "</h%d>\n", view->level);
}

static void fact_begin(struct page_view *view, const char *label) {
    html_raw(&view->html,
             strcmp(label, "what next") == 0 ? "<div class=\"next\"><dt>" : "<div><dt>");
    html_words(&view->html, label);
    html_raw(&view->html, "</dt><dd>");
}

static void fact_end(struct page_view *view) {
    html_raw(&view->html, "</dd></div>\n");
}

// -- evidence -------------------------------------------------------------------------------------

static void evidence_append(struct page_view *view, const struct verdict *verdict) {
    struct html *html = &view->html;
    if (verdict->evidence_count == 0)
        return;
    html_format(html,
                "<details class=\"trail\"><summary>Evidence: %u observation%s</summary><ol>\n",
                verdict->evidence_count, verdict->evidence_count == 1 ? "" : "s");
    for (uint32_t i = 0; i < verdict->evidence_count; i++) {
        const struct evidence *evidence = &verdict->evidence[i];
        html_format(html, "<li><span class=\"tag\">%s</span> ", evidence_names[evidence->role]);
        if (evidence->has_time)
            html_time(html, evidence->time_ns);
        html_raw(html, " ");
        html_text(html, evidence->description);
        html_raw(html, " <code>");
        html_text(html, evidence->uid);
        html_raw(html, "</code></li>\n");
    }
    if (verdict->evidence_dropped > 0)
        html_format(html, "<li>and %u more</li>\n", verdict->evidence_dropped);
    html_raw(html, "</ol></details>\n");
}

static void figures_append(struct page_view *view, const struct verdict *verdict) {
    struct html *html = &view->html;
    html_raw(html,
             "<details class=\"more\"><summary>Figures of the verdict</summary>"
             "<table class=\"figures\"><tbody>\n<tr><th scope=\"row\">id<td>");
    html_words(html, verdict->id);
    html_raw(html, "\n<tr><th scope=\"row\">pattern<td>");
    html_words(html, verdict->pattern);
    for (uint32_t i = 0; i < verdict->attribute_count; i++) {
        html_raw(html, "\n<tr><th scope=\"row\">");
        html_words(html, verdict->attributes[i].key);
        html_raw(html, "<td>");
        html_text(html, verdict->attributes[i].value);
    }
    html_raw(html, "\n</tbody></table></details>\n");
}

// What else belongs to the same incident; a verdict that is not on this page is named by its id.
static void related_append(struct page_view *view, const struct verdict *verdict) {
    struct html *html = &view->html;
    if (verdict->related_count == 0)
        return;
    html_raw(html, "<ul class=\"related\">\n");
    for (uint32_t i = 0; i < verdict->related_count; i++) {
        const struct related *related = &verdict->related[i];
        uint32_t number = verdict_number(view, related->id);
        html_format(html, "<li>%s ", relation_names[related->relation]);
        if (number < view->verdict_count) {
            html_format(html, "<a href=\"#v%u\" target=\"_self\">", number);
            html_text(html, view->verdicts[number]->headline);
            html_raw(html, "</a> <span class=\"quiet\">began ");
            html_words(html, text_verdict_offset(&view->words, verdict, view->verdicts[number]));
            html_raw(html, "</span></li>\n");
        } else {
            html_raw(html, "<code>");
            html_words(html, related->id);
            html_raw(html, "</code></li>\n");
        }
    }
    html_raw(html, "</ul>\n");
}

static void card_end(struct page_view *view, const struct verdict *verdict) {
    if (verdict != NULL) {
        related_append(view, verdict);
        evidence_append(view, verdict);
        figures_append(view, verdict);
    }
    html_raw(&view->html, "</article>\n");
}

// -- the answer on a job --------------------------------------------------------------------------

static struct slice attribute_value(const struct verdict *verdict, const char *key) {
    for (uint32_t i = 0; i < verdict->attribute_count; i++)
        if (strcmp(verdict->attributes[i].key, key) == 0)
            return verdict->attributes[i].value;
    return (struct slice){NULL, 0};
}

static bool attribute_is(const struct verdict *verdict, const char *key, int64_t number) {
    char text[24];
    int size = snprintf(text, sizeof text, "%lld", (long long)number);
    return slice_equal(attribute_value(verdict, key), (struct slice){text, (size_t)size});
}

// Whether it is about this very cause; earlier generations of the job have verdicts of their own.
static bool is_about(const struct verdict *verdict, const struct evaluation *evaluation) {
    const struct cause *cause = evaluation->cause;
    return attribute_is(verdict, "culprit.rank",
                        text_rank_at(evaluation, cause->suspects.items[0].index)) &&
           attribute_is(verdict, "culprit.generation", cause->generation);
}

const struct verdict *page_verdict_of(const struct page_view *view,
                                      const struct evaluation *evaluation) {
    const struct verdict *told = NULL;
    for (uint32_t i = 0; i < view->verdict_count; i++) {
        const struct verdict *verdict = view->verdicts[i];
        if (!text_verdict_is_told(verdict, evaluation))
            continue;
        if (evaluation->cause->suspects.count > 0 && is_about(verdict, evaluation))
            return verdict;
        if (told == NULL && verdict->attribute_count == 0)
            told = verdict;
    }
    return told;
}

// Nothing found is good only where all ranks were seen, and there are others to compare with.
static struct badge badge_of_answer(const struct page_view *view,
                                    const struct evaluation *evaluation,
                                    const struct verdict *verdict) {
    if (verdict != NULL)
        return badge_of(view, verdict);
    if (evaluation->cause != NULL && evaluation->cause->kind == CAUSE_LEAK)
        return (struct badge){"warning", severity_shapes[SEVERITY_WARNING], "not settled yet"};
    if (evaluation->rank_count < 2 || evaluation->missing_count > 0)
        return (struct badge){"plain", plain_shape,
                              evaluation->rank_count == 0   ? "nothing read"
                              : evaluation->rank_count == 1 ? "nothing to compare with"
                                                            : "nothing found, ranks are missing"};
    return (struct badge){"good", good_shape, "nothing found"};
}

const char *page_answer_word(const struct page_view *view, const struct evaluation *evaluation) {
    return badge_of_answer(view, evaluation, page_verdict_of(view, evaluation)).word;
}

static void told_append(struct page_view *view, const struct told_list *list) {
    bool open = false;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct told *told = &list->items[i];
        if (told->kind == TOLD_PARAGRAPH) {
            headline_append(view, told->text);
            html_raw(&view->html, "<dl class=\"facts\">\n");
        } else if (told->kind == TOLD_FIELD && told->label[0] == '\0') {
            html_raw(&view->html, "<br><span class=\"quiet\">");
            html_words(&view->html, told->text);
            html_raw(&view->html, "</span>");
        } else if (told->kind == TOLD_FIELD) {
            if (open)
                fact_end(view);
            fact_begin(view, told->label);
            html_words(&view->html, told->text);
            open = true;
        }
    }
    if (open)
        fact_end(view);
    html_raw(&view->html, "</dl>\n");
}

// -- other verdicts -------------------------------------------------------------------------------

static void entities_append(struct page_view *view, const struct verdict *verdict) {
    struct html *html = &view->html;
    enum entity_role role = ROLE_VICTIM;
    for (uint32_t i = 0; i < verdict->entity_count; i++) {
        const struct entity *entity = &verdict->entities[i];
        if (i == 0 || entity->role != role) {
            if (i > 0)
                fact_end(view);
            fact_begin(view, role_names[entity->role]);
        } else {
            html_raw(html, ", ");
        }
        role = entity->role;
        html_words(html, entity->kind);
        html_raw(html, " ");
        html_text(html, entity->name);
    }
    if (verdict->entities_dropped > 0)
        html_format(html, " and %u more", verdict->entities_dropped);
    if (verdict->entity_count > 0)
        fact_end(view);
}

static void moments_append(struct page_view *view, const struct verdict *verdict) {
    struct verdict_moment moments[2];
    uint32_t count = text_verdict_moments(&view->words, verdict, moments);
    for (uint32_t i = 0; i < count; i++) {
        fact_begin(view, moments[i].label);
        html_time(&view->html, moments[i].time_ns);
        if (moments[i].after != NULL) {
            html_raw(&view->html, ", ");
            html_words(&view->html, moments[i].after);
        }
        fact_end(view);
    }
}

static void verdict_append(struct page_view *view, const struct verdict *verdict, bool name_job) {
    struct html *html = &view->html;
    card_begin(view, badge_of(view, verdict), verdict);
    headline_append(view, page_shown(&view->words, verdict->headline, 0));
    html_raw(html, "<dl class=\"facts\">\n");
    entities_append(view, verdict);
    moments_append(view, verdict);
    if (verdict->remediation.size > 0) {
        fact_begin(view, "what next");
        html_text(html, verdict->remediation);
        fact_end(view);
    }
    if (name_job) {
        fact_begin(view, "job");
        html_text(html,
                  verdict->job == STRING_NONE ? SLICE("not named") : intern_slice(verdict->job));
        fact_end(view);
    }
    html_raw(html, "</dl>\n");
    card_end(view, verdict);
}

// -- the cards of a job ---------------------------------------------------------------------------

// One that names no job is about the machines, and so about the only job there is.
static bool belongs(const struct page_view *view, const struct verdict *verdict, string_id job) {
    return verdict->job == job ||
           (verdict->job == STRING_NONE && view->input->batch->evaluation_count == 1);
}

// Whether it goes before the answer: another detector's, stands, and is graver.
static bool leads(const struct verdict *verdict, const struct verdict *told) {
    if (text_is_memory_verdict(verdict) || verdict->state == VERDICT_RESOLVED ||
        verdict->severity < SEVERITY_WARNING)
        return false;
    return told == NULL || told->state == VERDICT_RESOLVED || verdict->severity > told->severity;
}

static void answer_append(struct page_view *view, const struct evaluation *evaluation,
                          const struct verdict *verdict) {
    card_begin(view, badge_of_answer(view, evaluation, verdict), verdict);
    if (evaluation->rank_count == 0) {
        headline_append(view, "No samples were read, so there is nothing to judge.");
    } else {
        const char *advice =
            verdict == NULL ? NULL : page_shown(&view->words, verdict->remediation, 0);
        view->told.count = 0;
        text_cause_append(&view->words, evaluation, advice);
        told_append(view, &view->told);
    }
    card_end(view, verdict);
}

void page_answer_append(struct page_view *view, const struct evaluation *evaluation) {
    const struct verdict *told = page_verdict_of(view, evaluation);
    if (view->level == 2)
        page_contents_add(view, "main", SLICE("What was found"), NULL);
    for (uint32_t i = 0; i < view->verdict_count; i++) {
        const struct verdict *verdict = view->verdicts[i];
        if (verdict != told && belongs(view, verdict, evaluation->job) && leads(verdict, told))
            verdict_append(view, verdict, false);
    }
    answer_append(view, evaluation, told);
}

void page_more_verdicts_append(struct page_view *view, const struct evaluation *evaluation) {
    const struct verdict *told = page_verdict_of(view, evaluation);
    bool any = false;
    for (uint32_t i = 0; i < view->verdict_count; i++) {
        const struct verdict *verdict = view->verdicts[i];
        if (verdict == told || !belongs(view, verdict, evaluation->job) || leads(verdict, told))
            continue;
        if (!any) {
            page_section_begin(view, "also", "Also found");
            view->level++;
        }
        any = true;
        verdict_append(view, verdict, false);
    }
    if (any) {
        view->level--;
        page_section_end(view);
    }
}

void page_all_verdicts_append(struct page_view *view) {
    struct arena *arena = view->html.arena;
    for (uint32_t i = 0; i < view->verdict_count && i < PAGE_CONTENTS_FINDINGS; i++)
        page_contents_add(view, arena_format(arena, "v%u", i), view->verdicts[i]->headline,
                          badge_of(view, view->verdicts[i]).word);
    if (view->verdict_count > PAGE_CONTENTS_FINDINGS)
        page_contents_add(view, arena_format(arena, "v%d", PAGE_CONTENTS_FINDINGS),
                          slice_of(arena_format(arena, "%u more findings",
                                                view->verdict_count - PAGE_CONTENTS_FINDINGS)),
                          NULL);
    for (uint32_t i = 0; i < view->verdict_count; i++)
        verdict_append(view, view->verdicts[i], view->verdicts[i]->job != STRING_NONE);
}

static bool is_shown(const struct page_view *view, const struct verdict *verdict) {
    for (uint32_t i = 0; i < view->input->batch->evaluation_count; i++)
        if (belongs(view, verdict, view->input->batch->evaluations[i].job))
            return true;
    return false;
}

uint32_t page_loose_verdicts(struct page_view *view, bool write) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < view->verdict_count; i++) {
        if (is_shown(view, view->verdicts[i]))
            continue;
        count++;
        if (write)
            verdict_append(view, view->verdicts[i], true);
    }
    return count;
}
