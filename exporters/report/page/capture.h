// SPDX-License-Identifier: Apache-2.0
// A page in two steps: what it shows is copied on a pipeline's thread, while the pipeline is held,
// and rendered on another.
//
// A capture holds all that page_encode reads of a batch but the samples, which a mirror has: the
// evaluations, outlines of trees of spans, the verdicts and what was gathered from the stream. It
// owns its memory, which is used again by the next one; it is used by one thread at a time, and
// whoever hands it over sees to that. Cost of taking one: a copy of some 150 bytes a rank, and of
// the verdicts' bytes; of trees of spans what asking them costs (span_outline.h).
#pragma once

#include "exporters/report/kept_verdicts.h"
#include "exporters/report/page/follow.h"
#include "exporters/report/page/page.h"

struct page_capture {
    struct arena arena;
    struct batch batch; // the copy; of its evaluations neither store nor series
    struct captured_evaluation *evaluations; // [batch.evaluation_count], (capture.c)
    struct span_outline *outlines;           // [batch.spans.count]
    struct kept_copy verdicts;
    struct page_notes_copy notes;
};

void page_capture_init(struct page_capture *capture);
void page_capture_release(struct page_capture *capture);
// Copies what a page of this batch shows, which the follower has looked at. What the capture held
// before is gone. `known`: what the renderer was given of the notes already.
void page_capture_take(struct page_capture *capture, const struct page_follower *follower,
                       const struct batch *batch, const struct kept_verdicts *verdicts,
                       const struct page_notes *notes, const struct page_notes_versions *known);
// Fills `input`, of which pages may be encoded until page_capture_close. Title and limits are those
// of `style`, whose other members are not looked at. `shown` are the renderer's own notes, which
// become those of the capture. Once for each capture.
void page_capture_open(struct page_capture *capture, const struct page_mirror *mirror,
                       struct page_notes *shown, const struct page_input *style,
                       struct page_input *input);
void page_capture_close(struct page_capture *capture);
