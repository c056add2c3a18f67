// SPDX-License-Identifier: Apache-2.0
// What broke first, what followed from it, and what to do.
//
// Of several incidents first a list. Then a story for each: its root with all that is known, what
// followed from it in order, and what to do. Verdicts that stand alone are told in the same way.
// Linear in verdicts and their evidence.
#include "exporters/report/story.h"
#include "exporters/report/text/parts.h"

#include <assert.h>
#include <stdio.h>

enum { EVIDENCE_SHOWN = 12, STEPS_SHOWN = 24, LISTED_MAX = 24, CULPRITS_LISTED = 3 };

// "gpu node-a/0000:45:00, node node-a": those of one role, in the verdict's order.
static const char *who(struct text_page *page, const struct verdict *verdict, enum entity_role role,
                       uint32_t most) {
    const char *text = NULL;
    uint32_t left_out = verdict->entities_dropped, shown = 0;
    for (uint32_t i = 0; i < verdict->entity_count; i++) {
        const struct entity *entity = &verdict->entities[i];
        if (entity->role != role)
            continue;
        if (shown++ == most) {
            left_out++;
            shown--;
            continue;
        }
        const char *name = page_shown(page, entity->name, 0);
        text = text == NULL ? arena_format(page->arena, "%s %s", entity->kind, name)
                            : arena_format(page->arena, "%s, %s %s", text, entity->kind, name);
    }
    if (text != NULL && left_out > 0)
        text = arena_format(page->arena, "%s and %u more", text, left_out);
    return text;
}

static void who_append(struct text_page *page, const struct verdict *verdict) {
    static const struct {
        enum entity_role role;
        const char *label;
    } roles[] = {{ROLE_CULPRIT, "culprit"}, {ROLE_SUSPECT, "suspect"}, {ROLE_VICTIM, "victim"}};
    enum { WHO_SHOWN = 8 };
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        const char *text = who(page, verdict, roles[i].role, WHO_SHOWN);
        if (text != NULL)
            page_field(page, roles[i].label, "%s", text);
    }
}

static void evidence_append(struct text_page *page, const struct verdict *verdict) {
    const bool *chosen = story_evidence_chosen(verdict, EVIDENCE_SHOWN, page->arena);
    uint32_t told = 0;
    for (uint32_t i = 0; i < verdict->evidence_count; i++) {
        const struct evidence *evidence = &verdict->evidence[i];
        if (!chosen[i])
            continue;
        const char *text = page_shown(page, evidence->description, 0);
        if (evidence->has_time)
            text = arena_format(page->arena, "%s: %s", page_time(page, evidence->time_ns), text);
        page_field(page, told++ == 0 ? "evidence" : "", "%s", text);
    }
    uint32_t more = story_evidence_count(verdict) - told;
    if (more > 0)
        page_field(page, "", "and %u more (culprit analyze --explain %s)", more, verdict->id);
}

// -- when ---------------------------------------------------------------------------------------

static const char *offset(struct text_page *page, uint64_t from_ns, uint64_t time_ns) {
    __int128 after_ns = (__int128)time_ns - (__int128)from_ns;
    if (after_ns == 0)
        return "with it";
    return arena_format(page->arena, "%s %s it",
                        page_duration(page, after_ns < 0 ? -after_ns : after_ns),
                        after_ns < 0 ? "before" : "after");
}

const char *text_verdict_offset(struct text_page *page, const struct verdict *from,
                                const struct verdict *verdict) {
    if (verdict_time_of(from) != TIME_OF_EVENT || verdict_time_of(verdict) != TIME_OF_EVENT)
        return "at an unknown time";
    const char *began = offset(page, from->start_ns, verdict->start_ns);
    if (verdict->end_ns <= verdict->start_ns)
        return began;
    return arena_format(page->arena, "%s, last seen %s", began,
                        offset(page, from->start_ns, verdict->end_ns));
}

static void moments_append(struct text_page *page, const struct verdict *verdict) {
    page_field(page, "began", "%s", page_began(page, verdict));
    if (verdict->end_ns > verdict->start_ns)
        page_field(page, "last seen", "%s",
                   text_after_begin(page, verdict->end_ns, verdict->start_ns));
}

// -- a verdict ----------------------------------------------------------------------------------

const char *text_launcher(struct text_page *page, const struct verdict *verdict) {
    enum { NAMED_MAX = 120 };
    struct slice named = story_launcher_named(verdict, page->arena);
    if (named.size == 0)
        return NULL;
    return arena_format(page->arena, "torchrun named %s%s", page_shown(page, named, NAMED_MAX),
                        story_launcher_named_victim(verdict)
                            ? "; that rank is a victim, it ended because of this"
                            : "; it calls that the root cause, and the evidence says otherwise");
}

static void headline_append(struct text_page *page, const struct verdict *verdict) {
    bool bad = verdict->severity >= SEVERITY_ERROR && verdict->state != VERDICT_RESOLVED;
    page_paragraph(page, bad ? COLOR_CULPRIT : COLOR_STRONG, 0, "%s%s",
                   page_shown(page, verdict->headline, 0),
                   verdict->state == VERDICT_RESOLVED ? " (resolved)" : "");
    page_blank(page);
}

// Who, what to do, when, how sure.
static void facts_append(struct text_page *page, const struct verdict *verdict) {
    who_append(page, verdict);
    if (verdict->remediation.size > 0)
        page_field(page, "what next", "%s", page_shown(page, verdict->remediation, 0));
    const char *restart = story_restart(verdict);
    if (restart != NULL)
        page_field(page, "a restart", "%s", restart);
    moments_append(page, verdict);
    page_field(page, "severity", "%s", severity_name(verdict->severity));
    const struct attribute *not_seen = verdict_attribute(verdict, "culprit.not_seen");
    page_field(page, "how sure", "%d of 100%s%s%s", verdict->confidence,
               verdict->partial ? ", from incomplete evidence" : "", not_seen != NULL ? ": " : "",
               not_seen != NULL ? page_shown(page, not_seen->value, 0) : "");
    const char *launcher = text_launcher(page, verdict);
    if (launcher != NULL)
        page_field(page, "launcher", "%s", launcher);
    const char *progress = story_progress(verdict, page->arena);
    if (progress != NULL)
        page_field(page, "progress", "%s", page_shown(page, slice_of(progress), 0));
}

void text_verdict_append(struct text_page *page, const struct verdict *verdict) {
    assert(verdict->id[0] != '\0');
    headline_append(page, verdict);
    facts_append(page, verdict);
    page_field(page, "id", "%s", verdict->id);
}

// -- an incident --------------------------------------------------------------------------------

const char *text_whom(struct text_page *page, const struct verdict *verdict) {
    uint32_t count = 0;
    const int32_t *ranks = story_victims(verdict, page->arena, &count);
    const char *text = count == 0 ? NULL : text_ranks(page, ranks, count);
    uint32_t others = 0;
    enum { OTHERS_SHOWN = 3 };
    for (uint32_t i = 0; i < verdict->entity_count; i++) {
        const struct entity *entity = &verdict->entities[i];
        if (entity->role != ROLE_VICTIM || strcmp(entity->kind, "rank") == 0 ||
            others++ >= OTHERS_SHOWN)
            continue;
        text =
            arena_format(page->arena, "%s%s%s %s", text == NULL ? "" : text,
                         text == NULL ? "" : ", ", entity->kind, page_shown(page, entity->name, 0));
    }
    if (others > OTHERS_SHOWN)
        text = arena_format(page->arena, "%s and %u more", text, others - OTHERS_SHOWN);
    return text;
}

const char *text_took_along(struct text_page *page, const struct story *story) {
    uint32_t count;
    bool more;
    const int32_t *ranks = story_ranks(story, page->arena, &count, &more);
    if (count == 0)
        return NULL;
    if (count == 1 && !more)
        return text_ranks(page, ranks, 1);
    return arena_format(page->arena, "%u ranks%s", count, more ? " or more" : "");
}

const char *text_took_others(struct text_page *page, const struct story *story) {
    const struct verdict *root = story->steps[0];
    uint32_t count, named = 0;
    bool more;
    story_ranks(story, page->arena, &count, &more);
    for (uint32_t i = 0; i < root->entity_count; i++)
        named +=
            root->entities[i].role == ROLE_VICTIM && strcmp(root->entities[i].kind, "rank") == 0;
    return count <= named && !more ? NULL : text_took_along(page, story);
}

static void follower_append(struct text_page *page, const struct story *story, uint32_t step) {
    const struct verdict *verdict = story->steps[step];
    const char *whom = text_whom(page, verdict);
    page_field(page, "then", "%s%s", page_shown(page, verdict->headline, 0),
               verdict->state == VERDICT_RESOLVED ? " (resolved)" : "");
    page_field(page, "", "began %s", text_verdict_offset(page, story->steps[0], verdict));
    if (whom != NULL)
        page_field(page, "", "struck %s", whom);
    const char *launcher = text_launcher(page, verdict);
    if (launcher != NULL)
        page_field(page, "", "%s", launcher);
    page_field(page, "", "%s, %s, %s", verdict->pattern, severity_name(verdict->severity),
               verdict->id);
}

static void story_append(struct text_page *page, const struct story *story) {
    const struct verdict *root = story->steps[0];
    const char *took = text_took_others(page, story);
    headline_append(page, root);
    facts_append(page, root);
    if (took != NULL)
        page_field(page, "took along", "%s", took);
    evidence_append(page, root);
    page_field(page, "id", "%s", root->id);
    if (story->count > 1) {
        page_heading(page, "What followed from it, counted from when it began");
        for (uint32_t i = 1; i < story->count && i <= STEPS_SHOWN; i++)
            follower_append(page, story, i);
        if (story->count > STEPS_SHOWN + 1)
            page_field(page, "", "and %u more", story->count - STEPS_SHOWN - 1);
    }
}

// -- all of them --------------------------------------------------------------------------------

// A verdict on memory that nothing follows from is told by its own, longer report.
bool text_incident_tells(const struct verdict *verdict) {
    return !text_is_memory_verdict(verdict) || verdict->related_count > 0;
}

static bool tells(const struct story *story) {
    return text_incident_tells(story->steps[0]) || story->count > 1;
}

// Whether the report on this job tells it as what went wrong.
static bool job_tells(const struct story *story, const struct evaluation *evaluation) {
    const struct verdict *root = story->steps[0];
    return !tells(story) && root->severity >= SEVERITY_WARNING && root->state != VERDICT_RESOLVED &&
           text_verdict_is_told(root, evaluation) &&
           (root->attribute_count == 0 || text_verdict_is_about(root, evaluation));
}

const struct incident_list *text_incidents(const struct verdict *verdicts, uint32_t count,
                                           const struct batch *batch) {
    struct incident_list *list = arena_zero(batch->arena, 1, sizeof *list);
    struct story_list stories = stories_make(verdicts, count, batch->arena);
    list->items = arena_zero(batch->arena, stories.count, sizeof *list->items);
    for (uint32_t i = 0; i < stories.count; i++)
        if (tells(&stories.items[i]))
            list->items[list->count++] = (struct told_incident){stories.items[i], UINT32_MAX};
    list->full = list->count;
    for (uint32_t job = 0; job < batch->evaluation_count; job++)
        for (uint32_t i = 0; i < stories.count; i++)
            if (job_tells(&stories.items[i], &batch->evaluations[job]))
                list->items[list->count++] = (struct told_incident){stories.items[i], job};
    return list;
}

const char *text_culprit(struct text_page *page, const struct verdict *verdict) {
    const char *text = who(page, verdict, ROLE_CULPRIT, CULPRITS_LISTED);
    if (text != NULL)
        return text;
    text = who(page, verdict, ROLE_SUSPECT, CULPRITS_LISTED);
    return text == NULL ? "nobody is named" : arena_format(page->arena, "perhaps %s", text);
}

static void listed_append(struct text_page *page, const struct story *story, uint32_t number) {
    const struct verdict *root = story->steps[0];
    const char *took = text_took_along(page, story);
    page_field(page, arena_format(page->arena, "%u", number), "%s: %s%s%s",
               page_time(page, root->start_ns), text_culprit(page, root),
               took == NULL ? "" : ", took along ", took == NULL ? "" : took);
    page_field(page, "", "%s%s", page_shown(page, root->headline, 0),
               root->state == VERDICT_RESOLVED ? " (resolved)" : "");
}

// Why the first is the first: as stories_make sorts them.
const char *text_incident_order(const struct incident_list *list) {
    const struct verdict *first = list->items[0].story.steps[0];
    const struct verdict *last = list->items[list->count - 1].story.steps[0];
    if (first->state != last->state && last->state == VERDICT_RESOLVED)
        return "what stands comes first, what is over last";
    if (first->severity != SEVERITY_INFO && last->severity == SEVERITY_INFO)
        return "the first began first, mere notes come last";
    if (!story_is_unexplained(first) && story_is_unexplained(last))
        return "what is explained comes first";
    return "the first began first";
}

static void list_append(struct text_page *page, const struct incident_list *list) {
    page_line(page, COLOR_STRONG, "%u incidents: %s", list->count, text_incident_order(list));
    for (uint32_t i = 0; i < list->count && i < LISTED_MAX; i++)
        listed_append(page, &list->items[i].story, i + 1);
    if (list->count > LISTED_MAX)
        page_field(page, "", "and %u more", list->count - LISTED_MAX);
    page_blank(page);
}

void text_incident_number(struct text_page *page, const struct incident_list *list,
                          uint32_t number) {
    if (list->count > 1)
        page_line(page, COLOR_DIM, "Incident %u of %u", number + 1, list->count);
}

void text_incidents_append(struct text_page *page, const struct incident_list *list) {
    if (list->count > 1)
        list_append(page, list);
    for (uint32_t i = 0; i < list->full; i++) {
        if (i > 0)
            page_blank(page);
        text_incident_number(page, list, i);
        story_append(page, &list->items[i].story);
    }
}
