// SPDX-License-Identifier: Apache-2.0
// What broke first, what followed from it, and what is to be done?
//
// A story for each incident: its root with all that is known, then the others in order of time.
// Verdicts that stand alone are told in the same way. Linear in verdicts and their evidence.
#include "exporters/report/text/parts.h"

#include <stdio.h>

enum { EVIDENCE_SHOWN = 12 };

static bool is_root(const struct verdict *verdict) {
    for (uint32_t i = 0; i < verdict->attribute_count; i++)
        if (strcmp(verdict->attributes[i].key, "culprit.root") == 0)
            return slice_equal(verdict->attributes[i].value, SLICE("true"));
    return true;
}

static bool is_related(const struct verdict *verdict, const struct verdict *other) {
    for (uint32_t i = 0; i < verdict->related_count; i++)
        if (strcmp(verdict->related[i].id, other->id) == 0)
            return true;
    return false;
}

// "gpu node-a/0000:45:00, node node-a": those of one role, in the verdict's order.
static const char *who(struct text_page *page, const struct verdict *verdict,
                       enum entity_role role) {
    const char *text = NULL;
    uint32_t left_out = verdict->entities_dropped, shown = 0;
    enum { WHO_SHOWN = 8 };
    for (uint32_t i = 0; i < verdict->entity_count; i++) {
        const struct entity *entity = &verdict->entities[i];
        if (entity->role != role)
            continue;
        if (shown++ == WHO_SHOWN) {
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
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        const char *text = who(page, verdict, roles[i].role);
        if (text != NULL)
            page_field(page, roles[i].label, text);
    }
}

static void evidence_append(struct text_page *page, const struct verdict *verdict) {
    for (uint32_t i = 0; i < verdict->evidence_count && i < EVIDENCE_SHOWN; i++) {
        const struct evidence *evidence = &verdict->evidence[i];
        const char *text = page_shown(page, evidence->description, 0);
        if (evidence->has_time)
            text = arena_format(page->arena, "%s: %s", page_time(page, evidence->time_ns), text);
        page_field(page, i == 0 ? "evidence" : "", text);
    }
    uint32_t more = verdict->evidence_dropped;
    if (verdict->evidence_count > EVIDENCE_SHOWN)
        more += verdict->evidence_count - EVIDENCE_SHOWN;
    if (more > 0)
        page_field(page, "",
                   arena_format(page->arena, "and %u more (culprit analyze --explain %s)", more,
                                verdict->id));
}

static const char *certainty(struct text_page *page, const struct verdict *verdict) {
    return arena_format(page->arena, "%d of 100%s", verdict->confidence,
                        verdict->partial ? ", from a part of the evidence that could be there"
                                         : "");
}

// -- when ---------------------------------------------------------------------------------------

uint32_t text_verdict_moments(struct text_page *page, const struct verdict *verdict,
                              struct verdict_moment moments[2]) {
    moments[0] = (struct verdict_moment){"began", verdict->start_ns, NULL};
    if (verdict->end_ns <= verdict->start_ns)
        return 1;
    const char *lasted = page_duration(page, verdict->end_ns - verdict->start_ns);
    moments[1] = (struct verdict_moment){"last seen", verdict->end_ns,
                                         arena_format(page->arena, "%s after it began", lasted)};
    return 2;
}

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
    const char *began = offset(page, from->start_ns, verdict->start_ns);
    if (verdict->end_ns <= verdict->start_ns)
        return began;
    return arena_format(page->arena, "%s, last seen %s", began,
                        offset(page, from->start_ns, verdict->end_ns));
}

static void moments_append(struct text_page *page, const struct verdict *verdict) {
    struct verdict_moment moments[2];
    uint32_t count = text_verdict_moments(page, verdict, moments);
    for (uint32_t i = 0; i < count; i++) {
        const char *time = page_time(page, moments[i].time_ns);
        page_field(page, moments[i].label,
                   moments[i].after == NULL
                       ? time
                       : arena_format(page->arena, "%s, %s", time, moments[i].after));
    }
}

// -- a verdict ----------------------------------------------------------------------------------

void text_verdict_append(struct text_page *page, const struct verdict *verdict,
                         bool with_evidence) {
    bool bad = verdict->severity >= SEVERITY_ERROR && verdict->state != VERDICT_RESOLVED;
    page_paragraph(page, bad ? COLOR_CULPRIT : COLOR_STRONG, 0,
                   arena_format(page->arena, "%s%s", page_shown(page, verdict->headline, 0),
                                verdict->state == VERDICT_RESOLVED ? " (over)" : ""));
    page_blank(page);
    who_append(page, verdict);
    moments_append(page, verdict);
    page_field(page, "how bad", severity_name(verdict->severity));
    page_field(page, "how sure", certainty(page, verdict));
    if (with_evidence)
        evidence_append(page, verdict);
    page_field(page, "what next", page_shown(page, verdict->remediation, 0));
    page_field(page, "id", verdict->id);
}

static void follower_append(struct text_page *page, const struct verdict *root,
                            const struct verdict *verdict) {
    page_field(page, "began", text_verdict_offset(page, root, verdict));
    page_field(page, "", page_shown(page, verdict->headline, 0));
    page_field(page, "",
               arena_format(page->arena, "%s, %s, %s", verdict->pattern,
                            severity_name(verdict->severity), verdict->id));
}

static void incident_append(struct text_page *page, const struct batch *batch,
                            const struct verdict *root) {
    text_verdict_append(page, root, true);
    bool any = false;
    for (uint32_t i = 0; i < batch->verdicts.count; i++) {
        const struct verdict *verdict = &batch->verdicts.items[i];
        if (verdict == root || !is_related(root, verdict))
            continue;
        if (!any)
            page_heading(page, "What followed from it, counted from when it began");
        any = true;
        follower_append(page, root, verdict);
    }
}

static bool is_memory(const struct verdict *verdict) {
    return strcmp(verdict->pattern, "memory_first_cause") == 0;
}

// A verdict on memory that nothing follows from is told by its own, longer report.
static bool is_told_here(const struct verdict *verdict) {
    return is_root(verdict) && (!is_memory(verdict) || verdict->related_count > 0);
}

uint32_t text_incidents_append(struct text_page *page, const struct batch *batch) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < batch->verdicts.count; i++) {
        if (!is_told_here(&batch->verdicts.items[i]))
            continue;
        if (count++ > 0)
            page_blank(page);
        incident_append(page, batch, &batch->verdicts.items[i]);
    }
    return count;
}

bool text_incident_tells(const struct verdict *verdict) {
    return !is_memory(verdict) || verdict->related_count > 0;
}

void text_absent_append(struct text_page *page, const struct seen *seen) {
    const char *text;
    if (seen == NULL || seen_absent(seen, 0) == NULL)
        return;
    page_heading(page, "Evidence that was not there");
    for (uint32_t i = 0; (text = seen_absent(seen, i)) != NULL; i++)
        page_paragraph(page, COLOR_NONE, 2, text);
}
