// SPDX-License-Identifier: Apache-2.0
// What is the summary after these records?
//
// The last value of each key of the rows, what was said for the summary itself, and the step, time
// and run time of the last row. `wandb sync` takes it from summary records alone, so each call ends
// with one that holds what it changed. Memory: WANDB_VALUES_BYTES_MAX for each run of one call.
#include "exporters/wandb/offline/parts.h"

#include "base/log.h"
#include "base/text/json_write.h"
#include "exporters/wandb/table.h"

enum { NS_PER_S = 1000000000 };

// `key` with its quotes.
static void put(struct wandb_offline *offline, struct offline_run *run, struct slice key,
                struct slice value) {
    if (wandb_values_set(&run->summary, key, value))
        return;
    summary_say(offline, run); // makes room
    if (!wandb_values_set(&run->summary, key, value))
        log_write(LOG_WARN, (struct log_site){"C3607", offline->site},
                  "a value of the summary of the run %s is too long and is left out.", run->id);
}

static void put_members(struct wandb_offline *offline, struct offline_run *run,
                        struct slice members, bool explicit_update) {
    struct slice key, value;
    while (wandb_member_next(&members, &key, &value)) {
        bool removes = explicit_update &&
                       (slice_equal(value, SLICE("null")) || slice_equal(value, SLICE("NaN")));
        put(offline, run, key, removes ? OFFLINE_REMOVED : value);
    }
}

static void put_uint(struct wandb_offline *offline, struct offline_run *run, const char *key,
                     const char *before, uint64_t value, const char *behind) {
    buffer_reset(&offline->text);
    buffer_append_text(&offline->text, before);
    buffer_append_uint(&offline->text, value);
    buffer_append_text(&offline->text, behind);
    put(offline, run, slice_of(key), buffer_slice(&offline->text));
}

void summary_note(struct wandb_offline *offline, struct offline_run *run,
                  const struct wandb_record *record, uint64_t step, struct slice media) {
    uint64_t seconds =
        record->time_ns > run->start_ns ? (record->time_ns - run->start_ns) / NS_PER_S : 0;
    if (record->kind == WANDB_SUMMARY) {
        put_members(offline, run, record->members, true);
        return;
    }
    if (record->kind != WANDB_FINISH) {
        if (media.size == 0) {
            put_members(offline, run, record->members, false);
        } else {
            buffer_reset(&offline->text);
            json_append_string(&offline->text, record->key);
            put(offline, run, buffer_slice(&offline->text), media);
        }
        put_uint(offline, run, "\"_step\"", "", step, "");
        put_uint(offline, run, "\"_runtime\"", "", seconds, "");
        buffer_reset(&offline->text);
        wandb_append_number(&offline->text, (double)record->time_ns / NS_PER_S);
        put(offline, run, SLICE("\"_timestamp\""), buffer_slice(&offline->text));
    }
    put_uint(offline, run, "\"_wandb\"", "{\"runtime\":", seconds, "}");
}

void summary_say(struct wandb_offline *offline, struct offline_run *run) {
    if (run->summary.count == 0)
        return;
    size_t before = run->pending.size;
    struct offline_about about = run_about(offline, run);
    offline_write_summary(&about, &run->summary);
    run_take(offline, run, &about, before);
    wandb_values_release(&run->summary);
}
