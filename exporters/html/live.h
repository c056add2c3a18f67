// SPDX-License-Identifier: Apache-2.0
// The pages of a live pipeline: what they show is copied while the pipeline is held, and rendered
// on the exporter's own thread.
//
// One capture may wait beside the one that is being rendered; a newer one takes its place. A page
// with a new verdict is rendered once the thread has rested for as long as the page before took,
// any other one after ten times that, LIVE_REST_MAX_NS at most. New samples are taken in when a
// page is made, or LIVE_FOLD of them have come. Memory: that of a mirror (mirror.h: 32 MiB for its
// stretches at most, 34 bytes each, but for very many ranks), two logs, and two captures; while a
// page is rendered three times the mirror.
#pragma once

#include "exporters/report/kept_verdicts.h"
#include "exporters/report/page/page.h"

#define LIVE_REST_MAX_NS UINT64_C(10000000000)
enum { LIVE_FOLD = 1 << 16 };

struct live_pages; // opaque

// Where a page goes.
enum page_use { PAGE_FILE = 1, PAGE_SERVED = 2 };

// `uses`: enum page_use bits of what a change of a verdict asks for. Of `style` title and limits
// are used (page_capture_open); its texts stay the caller's.
struct live_pages *live_pages_new(const struct page_input *style, unsigned uses);
void live_pages_release(struct live_pages *live); // NULL is fine

// These, and begin and end, by one thread at a time, which the caller sees to.
// A page is to be made at the next evaluation, whether a verdict changes there or not.
void live_pages_want(struct live_pages *live, unsigned uses);
// What is wanted for PAGE_SERVED alone is rendered at `ns` at the earliest, monotonic: what it
// shows is that of the newest evaluation until then, also of the last before all input is silent.
void live_pages_hold(struct live_pages *live, uint64_t ns);
// Looks at every batch but the last. Copies what a page shows when one is due: a verdict is there,
// or one was wanted.
void live_pages_look(struct live_pages *live, const struct batch *batch,
                     const struct kept_verdicts *verdicts, const struct page_notes *notes);
// A page was made without it: what waits and what is being rendered is of no use any more.
void live_pages_supersede(struct live_pages *live);
// As of struct render_calls.
uint64_t live_pages_due(const struct live_pages *live);
void live_pages_begin(struct live_pages *live, bool all);
// Whether a page for the file is to be delivered.
bool live_pages_end(struct live_pages *live);
// What pages that wait, are still wanted or are being rendered are for.
unsigned live_pages_pending(const struct live_pages *live);

// Between begin and end, by the exporter's thread. What the page is for; 0: there are only samples.
unsigned live_pages_uses(const struct live_pages *live);
// Takes in the samples and, when there is a page, fills what page_encode makes it of. False: there
// is none.
bool live_pages_open(struct live_pages *live, struct page_input *input);
// The news of that page, for page_live_take.
const struct page_news *live_pages_news(const struct live_pages *live);
void live_pages_close(struct live_pages *live);
