// SPDX-License-Identifier: Apache-2.0
// Finds sources whose times are steadily a multiple of 15 minutes away from the others': most often
// local time that was read as UTC. Nothing is put right by itself; it is said once a source.
#pragma once

#include "pipeline/runtime/now/now.h"

enum {
    OFFSET_EVENTS_MIN = 5, // of a source, and how often it must be seen live
    OFFSET_TEXT_MAX = 8
};

typedef void offset_tell(void *context, const struct source_clock *clock, int32_t quarters);

// Inputs that have ended: a source that begins and ends as much before or after the others as each
// other, or several that lie ahead and do so together. O(n log n) in the sources.
void offsets_at_end(struct table *clocks, offset_tell *tell, void *context, struct arena *scratch);
// Live, now and then: where each source stands that went on since it was looked at last. Sources
// for which `counts` is false are left out.
void offsets_look(struct table *clocks, bool (*counts)(void *counting, uint32_t row),
                  void *counting, offset_tell *tell, void *context, struct arena *scratch);
// "+05:30": the zone of local times that were read as UTC and stand so many quarters of an hour
// ahead.
void offset_format(int32_t quarters, char out[OFFSET_TEXT_MAX]);
