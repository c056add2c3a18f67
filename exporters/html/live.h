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

// Of `style` title and limits are used (page_capture_encode); its texts stay the caller's.
struct live_pages *live_pages_new(const struct page_input *style);
void live_pages_release(struct live_pages *live); // NULL is fine

// These, and begin and end, by one thread at a time, which the caller sees to.
// A page is to be made at the next evaluation, whether a verdict changes there or not.
void live_pages_want(struct live_pages *live);
// Looks at every batch but the last. Copies what a page shows when one is due: a verdict is there,
// or one was wanted.
void live_pages_look(struct live_pages *live, const struct batch *batch,
                     const struct kept_verdicts *verdicts, const struct page_notes *notes);
// A page was made without it: what waits and what is being rendered is of no use any more.
void live_pages_supersede(struct live_pages *live);
// As of struct render_calls.
uint64_t live_pages_due(const struct live_pages *live);
void live_pages_begin(struct live_pages *live, bool all);
// Whether a page is to be delivered.
bool live_pages_end(struct live_pages *live);
// Whether one waits, or is still wanted.
bool live_pages_owes(const struct live_pages *live);

// Between begin and end, by the exporter's thread. Whether there is a page, and not only samples.
bool live_pages_has_page(const struct live_pages *live);
void live_pages_render(struct live_pages *live, struct buffer *out);
