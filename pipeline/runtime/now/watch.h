// SPDX-License-Identifier: Apache-2.0
// The clocks of a pipeline's sources: what time it is by them, and what is wrong with them, which
// is said in the log and in the report. All calls under the pipeline's lock.
#pragma once

#include "pipeline/component/component.h"
#include "pipeline/runtime/feed/intake.h"
#include "pipeline/runtime/now/now.h"
#include "pipeline/runtime/now/zone.h"

struct clock_watch {
    const struct pipeline_timing *timing;
    const char *pipeline;  // its name
    struct intake *intake; // takes notes for the report; NULL: there is none
    struct table clocks;   // struct source_clock, one a source
    uint64_t outliers;     // times that were left aside
};

void watch_init(struct clock_watch *watch, const struct pipeline_timing *timing,
                const char *pipeline);
void watch_release(struct clock_watch *watch);
static inline struct source_clock *watch_clock(const struct clock_watch *watch, uint32_t row) {
    return table_row(&watch->clocks, row);
}
// The longest way that one event may move the time on by itself; UINT64_MAX: any.
uint64_t watch_max_jump(const struct clock_watch *watch);

// What time it is by the sources. Unless they go on, `unix_ns` is the time of day; 0: it does not
// matter.
uint64_t watch_now(struct clock_watch *watch, enum now_end end, uint64_t unix_ns,
                   struct arena *scratch);
// Says which sources are in another zone, live (those for which `counts` is true) and at the end.
void watch_offsets(struct clock_watch *watch, bool (*counts)(void *context, uint32_t row),
                   void *context, struct arena *scratch);
void watch_offsets_at_end(struct clock_watch *watch, struct arena *scratch);
// The zone of these logs, in quarters of an hour, said when it is another than UTC (zone.h).
int32_t watch_settle_zone(struct clock_watch *watch, const struct zone_evidence *evidence,
                          const struct node_names *names, struct slice path,
                          const struct local_times *times);
