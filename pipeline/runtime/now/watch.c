// SPDX-License-Identifier: Apache-2.0
#include "pipeline/runtime/now/watch.h"

#include "base/clock.h"
#include "base/log.h"
#include "pipeline/runtime/now/offset.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

void watch_init(struct clock_watch *watch, const struct pipeline_timing *timing,
                const char *pipeline) {
    assert(timing != NULL);
    *watch = (struct clock_watch){.timing = timing, .pipeline = pipeline};
    table_init(&watch->clocks, "clocks", sizeof(struct source_clock), 16);
}

void watch_release(struct clock_watch *watch) {
    table_release(&watch->clocks);
}

uint64_t watch_max_jump(const struct clock_watch *watch) {
    int64_t max_jump_ns = watch->timing->max_jump.ns;
    return max_jump_ns <= 0 ? UINT64_MAX : (uint64_t)max_jump_ns;
}

// Of one source, in the log and in the report.
static void tell(struct clock_watch *watch, const char *code, const struct source_clock *clock,
                 const char *format, ...) PRINTF_LIKE(4, 5);
static void tell(struct clock_watch *watch, const char *code, const struct source_clock *clock,
                 const char *format, ...) {
    enum { TELL_MAX = 512, PATH_SHOWN_MAX = 256, SITE_BYTES_MAX = 160 };
    char text[TELL_MAX], site[SITE_BYTES_MAX];
    snprintf(site, sizeof site, "pipeline/%s", watch->pipeline);
    struct slice path = intern_slice(clock->path);
    int used = snprintf(text, sizeof text,
                        "%.*s: ", (int)(path.size < PATH_SHOWN_MAX ? path.size : PATH_SHOWN_MAX),
                        path.data);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, sizeof text - (size_t)used, format, arguments);
    va_end(arguments);
    log_write(LOG_WARN, (struct log_site){code, site}, "%s", text);
    if (watch->intake != NULL)
        intake_note(watch->intake, text);
}

// Said once a source; each is counted.
static void tell_outlier(void *context, const struct source_clock *clock,
                         const struct time_run *run) {
    struct clock_watch *watch = context;
    watch->outliers++;
    if (clock->told > 1)
        return;
    char time[CLOCK_RFC3339_MAX];
    clock_format_rfc3339(run->low, time);
    tell(watch, "C1016", clock,
         "an event of %s is alone further ahead of all others than max_jump allows; %s", time,
         run->told == RUN_JUDGED       ? "it is judged as of that time, which may be wrong"
         : run->told == RUN_NOT_JUDGED ? "it is not judged"
                                       : "it is judged when others get there");
}

uint64_t watch_now(struct clock_watch *watch, enum now_end end, uint64_t unix_ns,
                   struct arena *scratch) {
    uint64_t max_jump_ns = watch_max_jump(watch);
    struct now_rule rule = {
        .max_jump_ns = max_jump_ns,
        .end = end,
        .unix_ns = unix_ns,
        .fresh_ns = max_jump_ns + (uint64_t)watch->timing->idle_timeout.ns,
        .tell = tell_outlier,
        .context = watch,
    };
    return now_of(&watch->clocks, &rule, scratch);
}

static void tell_offset(void *context, const struct source_clock *clock, int32_t quarters) {
    char zone[OFFSET_TEXT_MAX];
    offset_format(quarters, zone);
    tell(context, "C1017", clock,
         "its times steadily stand %s h %s those of the other sources; if they are local times "
         "without a zone, set `timezone: \"%s\"` on its receiver",
         zone + 1, quarters > 0 ? "ahead of" : "behind", zone);
}

void watch_offsets(struct clock_watch *watch, bool (*counts)(void *context, uint32_t row),
                   void *context, struct arena *scratch) {
    offsets_look(&watch->clocks, counts, context, tell_offset, watch, scratch);
}

int32_t watch_settle_zone(struct clock_watch *watch, const struct zone_evidence *evidence,
                          const struct node_names *names, struct slice path,
                          const struct local_times *times) {
    struct zone_finding found = zone_settle(evidence, &watch->clocks, names, times);
    if (found.quarters == 0)
        return 0;
    char zone[OFFSET_TEXT_MAX];
    offset_format(found.quarters, zone);
    struct source_clock clock = {.path = intern(path)};
    tell(watch, "C1018", &clock,
         "the times of %s say no zone and are read as %s, since %s; set `timezone: \"%s\"` on the "
         "receiver, or `UTC` when this is wrong",
         times->files > 1 ? "this and the other kernel logs" : "this kernel log", zone,
         found.by_facts ? "counters tell of the same faults at these times"
                        : "they fit the times of all other inputs so and in no other zone",
         zone);
    return found.quarters;
}

void watch_offsets_at_end(struct clock_watch *watch, struct arena *scratch) {
    offsets_at_end(&watch->clocks, tell_offset, watch, scratch);
}
