// SPDX-License-Identifier: Apache-2.0
// The cards of verdicts: what broke, who, how sure, what to do, and the evidence.
//
// The answer on a job is told in the words of the terminal's report; its verdict adds how grave it
// is and the evidence. Incidents are told in story.c, of the same parts.
#include "exporters/report/page/card.h"
#include "exporters/report/story.h"
#include "exporters/report/text/layout.h"

#include "base/hash/hash.h"

#include <assert.h>

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

// "error, resolved" is no good news: what was found stays found.
struct badge card_badge(const struct page_view *view, const struct verdict *verdict) {
    if (verdict->state == VERDICT_RESOLVED)
        return (struct badge){
            "plain", plain_shape,
            arena_format(view->html.arena, "%s, resolved", severity_name(verdict->severity))};
    return (struct badge){severity_name(verdict->severity), severity_shapes[verdict->severity],
                          severity_name(verdict->severity)};
}

// Its place among the page's verdicts, by which others lead to it; their count: it is not there.
uint32_t card_number(const struct page_view *view, const char *id) {
    uint32_t number = 0;
    while (number < view->verdict_count && strcmp(view->verdicts[number]->id, id) != 0)
        number++;
    return number;
}

const char *card_id(struct page_view *view, const struct verdict *verdict) {
    // On a page that is served it must not change when another is found.
    if (view->input->live != NULL)
        return arena_format(view->html.arena, "v%016lx",
                            (unsigned long)hash_slice(slice_of(verdict->id)));
    return arena_format(view->html.arena, "v%u", card_number(view, verdict->id));
}

void card_begin(struct page_view *view, struct badge badge, const struct verdict *verdict,
                const char *id) {
    assert(badge.class != NULL && badge.shape != NULL && badge.word != NULL);
    struct html *html = &view->html;
    html_format(html, "<article class=\"card %s\"", badge.class);
    if (id != NULL)
        html_format(html, " id=\"%s\"", id);
    html_raw(html,
             ">\n<p class=\"about\"><span class=\"badge\">"
             "<svg viewBox=\"0 0 16 16\" aria-hidden=\"true\">");
    html_raw(html, badge.shape);
    html_format(html, "</svg>%s</span>", badge.word);
    if (verdict != NULL) {
        html_raw(html, " <span class=\"tag\">");
        for (const char *at = verdict->kind; *at != '\0'; at++)
            html_text(html, (struct slice){*at == '_' ? " " : at, 1});
        html_format(html, "</span> <span class=\"quiet\">confidence %d of 100%s</span>",
                    verdict->confidence, verdict->partial ? ", from incomplete evidence" : "");
    }
    html_raw(html, "</p>\n");
}

void card_headline(struct page_view *view, const char *text) {
    html_format(&view->html, "<h%d class=\"headline\">%s</h%d>\n", view->level, text, view->level);
}

void card_fact_begin(struct page_view *view, const char *label) {
    html_raw(&view->html, strcmp(label, "what next") == 0 ? "<div class=\"next\">" : "<div>");
    html_format(&view->html, "<dt>%s</dt><dd>", label);
}

void card_fact_end(struct page_view *view) {
    html_raw(&view->html, "</dd></div>\n");
}

void card_fact(struct page_view *view, const char *label, struct slice text) {
    card_fact_begin(view, label);
    html_text(&view->html, text);
    card_fact_end(view);
}

// -- evidence -------------------------------------------------------------------------------------

void card_evidence(struct page_view *view, const struct verdict *verdict) {
    struct html *html = &view->html;
    if (verdict->evidence_count == 0)
        return;
    html_format(html,
                "<details class=\"trail\" data-key=\"trail\"><summary>Evidence: %u "
                "observation%s</summary><ol>\n",
                verdict->evidence_count, verdict->evidence_count == 1 ? "" : "s");
    for (uint32_t i = 0; i < verdict->evidence_count; i++) {
        const struct evidence *evidence = &verdict->evidence[i];
        html_format(html, "<li><span class=\"tag\">%s%s</span> ", evidence_names[evidence->role],
                    evidence->repeats ? ", again" : "");
        if (evidence->has_time)
            html_time(html, evidence->time_ns);
        html_format(html, " %.*s <code>%.*s</code></li>\n", TEXT_OF(evidence->description),
                    TEXT_OF(evidence->uid));
    }
    if (verdict->evidence_dropped > 0)
        html_format(html, "<li>and %u more</li>\n", verdict->evidence_dropped);
    html_raw(html, "</ol></details>\n");
}

static void last_seen_append(struct page_view *view, const struct verdict *verdict) {
    html_time(&view->html, verdict->end_ns);
    html_format(&view->html, ", %s after it began",
                page_duration(&view->words, verdict->end_ns - verdict->start_ns));
}

void card_began(struct page_view *view, const struct verdict *verdict) {
    if (verdict_time_of(verdict) == TIME_OF_EVENT)
        html_time(&view->html, verdict->start_ns);
    else
        html_format(&view->html, "%s", page_began(&view->words, verdict));
}

// Rows of a table: when it began, when it was last seen.
static void times_append(struct page_view *view, const struct verdict *verdict) {
    html_raw(&view->html, "\n<tr><th scope=\"row\">began<td>");
    card_began(view, verdict);
    if (verdict->end_ns <= verdict->start_ns)
        return;
    html_raw(&view->html, "\n<tr><th scope=\"row\">last seen<td>");
    last_seen_append(view, verdict);
}

void card_figures(struct page_view *view, const struct verdict *verdict, bool with_times) {
    struct html *html = &view->html;
    html_format(html,
                "<details class=\"more\" data-key=\"more\"><summary>Attributes</summary>"
                "<table class=\"figures\"><tbody>\n<tr><th scope=\"row\">id<td>%s"
                "\n<tr><th scope=\"row\">pattern<td>%s",
                verdict->id, verdict->pattern);
    if (with_times)
        times_append(view, verdict);
    for (uint32_t i = 0; i < verdict->attribute_count; i++)
        html_format(html, "\n<tr><th scope=\"row\">%s<td>%.*s", verdict->attributes[i].key,
                    TEXT_OF(verdict->attributes[i].value));
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
        uint32_t number = card_number(view, related->id);
        html_format(html, "<li>%s ", relation_names[related->relation]);
        if (number < view->verdict_count) {
            const struct verdict *other = view->verdicts[number];
            html_format(html,
                        "<a href=\"#%s\" target=\"_self\">%.*s</a> <span class=\"quiet\">began "
                        "%s</span></li>\n",
                        card_id(view, other), TEXT_OF(other->headline),
                        text_verdict_offset(&view->words, verdict, other));
        } else {
            html_format(html, "<code>%s</code></li>\n", related->id);
        }
    }
    html_raw(html, "</ul>\n");
}

static void card_end(struct page_view *view, const struct verdict *verdict) {
    if (verdict != NULL) {
        related_append(view, verdict);
        card_evidence(view, verdict);
        card_figures(view, verdict, false);
    }
    html_raw(&view->html, "</article>\n");
}

// -- the answer on a job --------------------------------------------------------------------------

// The verdict that says what the cause of this evaluation says; NULL: there is none. Of the sorted
// ones: the page does not depend on the order of its input.
static const struct verdict *verdict_of(const struct page_view *view,
                                        const struct evaluation *evaluation) {
    const struct verdict *told = NULL;
    for (uint32_t i = 0; i < view->verdict_count; i++) {
        const struct verdict *verdict = view->verdicts[i];
        if (!text_verdict_is_told(verdict, evaluation))
            continue;
        if (text_verdict_is_about(verdict, evaluation))
            return verdict;
        if (told == NULL && verdict->attribute_count == 0)
            told = verdict;
    }
    return told;
}

// Whether something was found of this job, or of machines that may be its, also what no longer
// stands.
static bool has_finding(const struct page_view *view, string_id job) {
    for (uint32_t i = 0; i < view->verdict_count; i++)
        if ((view->verdicts[i]->job == job || view->verdicts[i]->job == STRING_NONE) &&
            view->verdicts[i]->severity >= SEVERITY_WARNING)
            return true;
    return false;
}

// Nothing found is good only where all ranks were seen, there are others to compare with, and
// nobody else found anything.
static struct badge badge_of_answer(const struct page_view *view,
                                    const struct evaluation *evaluation,
                                    const struct verdict *verdict) {
    if (verdict != NULL)
        return card_badge(view, verdict);
    if (evaluation->cause != NULL && evaluation->cause->kind == CAUSE_LEAK)
        return (struct badge){"warning", severity_shapes[SEVERITY_WARNING], "not settled yet"};
    if (evaluation->rank_count < 2 || evaluation->missing_count > 0)
        return (struct badge){"plain", plain_shape,
                              evaluation->rank_count == 0   ? "nothing read"
                              : evaluation->rank_count == 1 ? "nothing to compare with"
                                                            : "nothing found, ranks are missing"};
    if (has_finding(view, evaluation->job))
        return (struct badge){"plain", plain_shape, "nothing found in memory"};
    return (struct badge){"good", good_shape, "nothing found"};
}

struct badge card_answer_badge(const struct page_view *view, const struct evaluation *evaluation) {
    return badge_of_answer(view, evaluation, verdict_of(view, evaluation));
}

struct badge card_severity_badge(enum severity severity) {
    return (struct badge){severity_name(severity), severity_shapes[severity],
                          severity_name(severity)};
}

const char *page_answer_word(const struct page_view *view, const struct evaluation *evaluation) {
    return card_answer_badge(view, evaluation).word;
}

static void told_append(struct page_view *view, const struct told_list *list) {
    bool open = false;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct told *told = &list->items[i];
        if (told->kind == TOLD_PARAGRAPH) {
            card_headline(view, told->text);
            html_raw(&view->html, "<dl class=\"facts\">\n");
        } else if (told->kind == TOLD_FIELD && told->label[0] == '\0') {
            html_format(&view->html, "<br><span class=\"quiet\">%s</span>", told->text);
        } else if (told->kind == TOLD_FIELD) {
            if (open)
                card_fact_end(view);
            card_fact_begin(view, told->label);
            html_format(&view->html, "%s", told->text);
            open = true;
        }
    }
    if (open)
        card_fact_end(view);
    html_raw(&view->html, "</dl>\n");
}

// -- other verdicts -------------------------------------------------------------------------------

void card_entities(struct page_view *view, const struct verdict *verdict) {
    struct html *html = &view->html;
    enum entity_role role = ROLE_VICTIM;
    for (uint32_t i = 0; i < verdict->entity_count; i++) {
        const struct entity *entity = &verdict->entities[i];
        if (i == 0 || entity->role != role) {
            if (i > 0)
                card_fact_end(view);
            card_fact_begin(view, role_names[entity->role]);
        } else {
            html_raw(html, ", ");
        }
        role = entity->role;
        html_format(html, "%s %.*s", entity->kind, TEXT_OF(entity->name));
    }
    if (verdict->entities_dropped > 0)
        html_format(html, " and %u more", verdict->entities_dropped);
    if (verdict->entity_count > 0)
        card_fact_end(view);
}

void card_moments(struct page_view *view, const struct verdict *verdict) {
    card_fact_begin(view, "began");
    card_began(view, verdict);
    card_fact_end(view);
    if (verdict->end_ns <= verdict->start_ns)
        return;
    card_fact_begin(view, "last seen");
    last_seen_append(view, verdict);
    card_fact_end(view);
}

static void verdict_append(struct page_view *view, const struct verdict *verdict, bool name_job) {
    struct html *html = &view->html;
    card_begin(view, card_badge(view, verdict), verdict, card_id(view, verdict));
    card_headline(view, page_shown(&view->words, verdict->headline, 0));
    html_raw(html, "<dl class=\"facts\">\n");
    card_entities(view, verdict);
    card_moments(view, verdict);
    if (verdict->remediation.size > 0)
        card_fact(view, "what next", verdict->remediation);
    if (name_job)
        card_fact(view, "job",
                  verdict->job == STRING_NONE ? SLICE("not named") : intern_slice(verdict->job));
    html_raw(html, "</dl>\n");
    card_end(view, verdict);
}

// -- the cards of a job ---------------------------------------------------------------------------

// One that names no job is about the machines, and so about the only job there is.
static bool belongs(const struct page_view *view, const struct verdict *verdict, string_id job) {
    return verdict->job == job ||
           (verdict->job == STRING_NONE && view->input->batch->evaluation_count == 1);
}

static void answer_append(struct page_view *view, const struct evaluation *evaluation,
                          const struct verdict *verdict) {
    bool has_id = verdict != NULL && !page_story_tells(view, verdict);
    card_begin(view, badge_of_answer(view, evaluation, verdict), verdict,
               has_id ? card_id(view, verdict) : NULL);
    view->told.count = 0;
    text_cause_append(&view->words, evaluation, verdict, view->answer.root == NULL);
    told_append(view, &view->told);
    card_end(view, verdict);
}

void page_answer_append(struct page_view *view, const struct evaluation *evaluation) {
    if (evaluation->rank_count > 0)
        answer_append(view, evaluation, verdict_of(view, evaluation));
}

void page_whole_answer_append(struct page_view *view) {
    if (view->answer.headline == NULL || view->answer.root != NULL) // another card says it
        return;
    struct badge badge = view->answer.kind == ANSWER_HEALTHY
                             ? (struct badge){"good", good_shape, "healthy"}
                             : (struct badge){"plain", plain_shape, "nothing found"};
    card_begin(view, badge, NULL, NULL);
    card_headline(view, view->answer.headline);
    html_raw(&view->html, "</article>\n");
}

void page_more_verdicts_append(struct page_view *view, const struct evaluation *evaluation) {
    const struct verdict *told = verdict_of(view, evaluation);
    bool any = false;
    for (uint32_t i = 0; i < view->verdict_count; i++) {
        const struct verdict *verdict = view->verdicts[i];
        if (verdict == told || !belongs(view, verdict, evaluation->job) ||
            page_story_tells(view, verdict))
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

void page_untold_verdicts_append(struct page_view *view) {
    for (uint32_t i = 0; i < view->verdict_count; i++)
        if (!page_story_tells(view, view->verdicts[i]))
            verdict_append(view, view->verdicts[i], view->verdicts[i]->job != STRING_NONE);
}

static bool is_shown(const struct page_view *view, const struct verdict *verdict) {
    for (uint32_t i = 0; i < view->input->batch->evaluation_count; i++)
        if (belongs(view, verdict, view->input->batch->evaluations[i].job))
            return true;
    return verdict->job != STRING_NONE && page_live_keeps(view, verdict->job);
}

uint32_t page_loose_verdicts(struct page_view *view, bool write) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < view->verdict_count; i++) {
        if (is_shown(view, view->verdicts[i]) || page_story_tells(view, view->verdicts[i]))
            continue;
        count++;
        if (write)
            verdict_append(view, view->verdicts[i], true);
    }
    return count;
}
