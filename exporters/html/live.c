// SPDX-License-Identifier: Apache-2.0
#include "exporters/html/live.h"

#include "base/clock.h"
#include "base/memory.h"
#include "exporters/report/page/capture.h"
#include "exporters/report/page/follow.h"
#include "exporters/report/page/mirror.h"
#include "pipeline/model/verdict.h"

#include <assert.h>

enum { REST_FACTOR = 10 };

// What one page is made of.
struct page_copy {
    struct page_capture capture;
    struct page_news news;
    unsigned uses;
};

struct live_pages {
    struct page_input style;
    // Of whoever encodes:
    struct page_follower *follower;
    struct page_log log;
    unsigned uses;
    struct page_copy copies[2];
    struct page_copy *waiting;         // NULL: none
    bool fresh;                        // … and a verdict of it is new
    bool changed;                      // … or one changed
    uint64_t held_ns;                  // without that it waits for this, monotonic
    unsigned wanted;                   // a page for these, at the next evaluation
    struct page_news gathered;         // since the page that is rendered, or was last
    struct page_notes_versions known;  // to the renderer
    uint64_t rested_ns, fresh_rest_ns; // monotonic: before these nothing is rendered
    // Of whoever renders, between begin and end:
    struct page_copy *rendering; // NULL: none; looked at by both
    bool superseded;             // looked at by both, not meanwhile
    struct page_mirror *mirror;
    struct page_notes *notes;
    struct page_log folding;
    uint64_t begun_ns;
};

struct live_pages *live_pages_new(const struct page_input *style, unsigned uses) {
    assert(style->max_points >= 2 && uses != 0);
    struct live_pages *live = memory_zero(1, sizeof *live);
    live->style = *style;
    live->uses = uses;
    live->follower = page_follower_new();
    live->mirror = page_mirror_new();
    live->notes = page_notes_new();
    for (int i = 0; i < 2; i++)
        page_capture_init(&live->copies[i].capture);
    return live;
}

void live_pages_release(struct live_pages *live) {
    if (live == NULL)
        return;
    for (int i = 0; i < 2; i++)
        page_capture_release(&live->copies[i].capture);
    page_log_release(&live->log);
    page_log_release(&live->folding);
    page_notes_release(live->notes);
    page_mirror_release(live->mirror);
    page_follower_release(live->follower);
    memory_give(live);
}

// -- copying --------------------------------------------------------------------------------------

void live_pages_want(struct live_pages *live, unsigned uses) {
    live->wanted |= uses & live->uses;
}

void live_pages_hold(struct live_pages *live, uint64_t ns) {
    live->held_ns = ns;
}

static unsigned uses_of(const struct page_copy *copy) {
    return copy == NULL ? 0 : copy->uses;
}

static bool has_new(const struct batch *batch) {
    for (uint32_t i = 0; i < batch->verdicts.count; i++)
        if (batch->verdicts.items[i].state == VERDICT_OPEN)
            return true;
    return false;
}

void live_pages_look(struct live_pages *live, const struct batch *batch,
                     const struct kept_verdicts *verdicts, const struct page_notes *notes) {
    assert(!batch->last);
    page_news_note(&live->gathered, batch);
    live->wanted |= batch->verdicts.count > 0 ? live->uses : 0;
    live->changed |= batch->verdicts.count > 0;
    live->fresh |= has_new(batch);
    if (!batch->evaluate && batch->forgotten == NULL)
        return;
    bool all = page_follow(live->follower, batch, &live->log);
    if (!batch->evaluate || live->wanted == 0)
        return;
    // One that waited leaves to the newer one what it was for.
    unsigned uses = live->wanted | uses_of(live->waiting);
    struct page_copy *copy =
        live->rendering == &live->copies[0] ? &live->copies[1] : &live->copies[0];
    page_capture_take(&copy->capture, live->follower, batch, verdicts, notes, &live->known);
    copy->uses = uses;
    copy->news = live->gathered;
    live->waiting = copy;
    live->wanted = all ? 0 : uses; // once more when all samples are there
}

void live_pages_supersede(struct live_pages *live) {
    live->waiting = NULL;
    live->wanted = 0;
    live->fresh = live->changed = false;
    live->superseded = live->rendering != NULL;
}

// -- rendering ------------------------------------------------------------------------------------

static uint64_t page_due(const struct live_pages *live) {
    if (live->waiting == NULL)
        return UINT64_MAX;
    if (live->fresh)
        return live->fresh_rest_ns;
    bool holds =
        !live->changed && live->waiting->uses == PAGE_SERVED && live->held_ns > live->rested_ns;
    return holds ? live->held_ns : live->rested_ns;
}

uint64_t live_pages_due(const struct live_pages *live) {
    return live->log.count >= LIVE_FOLD ? 0 : page_due(live);
}

void live_pages_begin(struct live_pages *live, bool all) {
    assert(live->rendering == NULL && live->folding.count == 0);
    struct page_log log = live->log;
    live->log = live->folding;
    live->folding = log;
    live->begun_ns = clock_monotonic_ns();
    if (live->waiting == NULL || (!all && page_due(live) > live->begun_ns))
        return;
    live->rendering = live->waiting;
    live->known = live->rendering->capture.notes.versions;
    page_news_told(&live->gathered, live_pages_news(live));
    live->waiting = NULL;
    live->fresh = live->changed = live->superseded = false;
}

unsigned live_pages_uses(const struct live_pages *live) {
    return uses_of(live->rendering);
}

const struct page_news *live_pages_news(const struct live_pages *live) {
    assert(live->rendering != NULL);
    return &live->rendering->news;
}

bool live_pages_open(struct live_pages *live, struct page_input *input) {
    page_mirror_fold(live->mirror, &live->folding);
    if (live->rendering == NULL)
        return false;
    page_capture_open(&live->rendering->capture, live->mirror, live->notes, &live->style, input);
    return true;
}

void live_pages_close(struct live_pages *live) {
    assert(live->rendering != NULL);
    page_capture_close(&live->rendering->capture);
}

bool live_pages_end(struct live_pages *live) {
    assert(live->folding.count == 0);
    if (live->rendering == NULL)
        return false;
    bool is_for_file = (live_pages_uses(live) & PAGE_FILE) != 0;
    live->rendering = NULL;
    uint64_t now = clock_monotonic_ns(), took_ns = now - live->begun_ns;
    uint64_t rest_ns = took_ns * REST_FACTOR;
    live->rested_ns = now + (rest_ns < LIVE_REST_MAX_NS ? rest_ns : LIVE_REST_MAX_NS);
    live->fresh_rest_ns = now + (took_ns < LIVE_REST_MAX_NS ? took_ns : LIVE_REST_MAX_NS);
    return is_for_file && !live->superseded;
}

unsigned live_pages_pending(const struct live_pages *live) {
    return uses_of(live->waiting) | live->wanted | uses_of(live->rendering);
}
