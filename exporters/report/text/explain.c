// SPDX-License-Identifier: Apache-2.0
// One verdict with each piece of its evidence, and where in the input it stands.
#include "exporters/report/text/parts.h"

#include "base/text/cut.h"

enum { LINE_SHOWN = 400 };

static const char *const roles[] = {"cause", "effect", "context"};

// The verdict with this id, or with an id that begins so and no other does.
static const struct verdict *find(const struct batch *batch, struct slice id) {
    const struct verdict *found = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < batch->verdicts.count; i++) {
        const struct verdict *verdict = &batch->verdicts.items[i];
        if (slice_equal(slice_of(verdict->id), id))
            return verdict;
        if (!text_begins(slice_of(verdict->id), id))
            continue;
        found = verdict;
        count++;
    }
    return count == 1 ? found : NULL;
}

static void piece_append(struct text_page *page, struct event_places *places,
                         const struct evidence *evidence, uint32_t number) {
    page_blank(page);
    const char *when = evidence->has_time
                           ? arena_format(page->arena, "%s, ", page_time(page, evidence->time_ns))
                           : "";
    page_field(page, arena_format(page->arena, "%u", number), "%s%s%s: %s", when,
               roles[evidence->role], evidence->repeats ? ", again" : "",
               page_shown(page, evidence->description, 0));
    page_field(page, "", "%s", page_shown(page, evidence->uid, 0));
    const struct event_place *place = event_places_find(places, evidence);
    if (place == NULL)
        return;
    page_field(page, "at", "%s:%llu", page_shown(page, intern_slice(place->source), 0),
               (unsigned long long)place->position);
    struct slice line = event_place_line(place, page->arena, LINE_SHOWN);
    if (line.size > 0)
        page_field(page, "", "%s", page_shown(page, line, 0));
}

static void attributes_append(struct text_page *page, const struct verdict *verdict) {
    if (verdict->attribute_count == 0)
        return;
    page_heading(page, "Attributes");
    for (uint32_t i = 0; i < verdict->attribute_count; i++)
        page_paragraph(page, COLOR_NONE, 2, "%s: %s", verdict->attributes[i].key,
                       page_shown(page, verdict->attributes[i].value, 0));
}

bool text_explain_append(struct text_page *page, const struct batch *batch, struct slice id,
                         struct event_places *places) {
    const struct verdict *verdict = find(batch, id);
    if (verdict == NULL)
        return false;
    text_verdict_append(page, verdict);
    page_heading(page, "Evidence");
    for (uint32_t i = 0; i < verdict->evidence_count; i++)
        piece_append(page, places, &verdict->evidence[i], i + 1);
    if (verdict->evidence_dropped > 0)
        page_paragraph(page, COLOR_DIM, 2, "and %u more pieces of evidence",
                       verdict->evidence_dropped);
    if (places->left_out > 0)
        page_paragraph(page, COLOR_DIM, 2, "the positions of events after the first %u are unknown",
                       EVENT_PLACES_MAX);
    attributes_append(page, verdict);
    text_missing_append(page, batch);
    return true;
}
