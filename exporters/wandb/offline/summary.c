// SPDX-License-Identifier: Apache-2.0
// Writes the summary of a run.
//
// The last value of each key of the rows, what was said for the summary itself, and the step, time
// and run time of the last row. `wandb sync` takes it from summary records alone, so each call ends
// with one that holds what it changed. Memory: WANDB_VALUES_BYTES_MAX for each run of one call.
#include "exporters/wandb/offline/parts.h"

#include "base/log.h"
#include "base/text/json_write.h"
#include "exporters/wandb/record.h"
#include "exporters/wandb/table.h"

enum { NS_PER_S = 1000000000 };

// `key` with its quotes.
static void put(struct offline_run *run, struct slice key, struct slice value) {
    assert(key.size >= 2 && key.data[0] == '"');
    if (wandb_values_set(&run->summary, key, value))
        return;
    summary_say(run); // makes room
    if (!wandb_values_set(&run->summary, key, value))
        log_write(LOG_WARN, (struct log_site){"C3607", run->offline->site},
                  "a value of the summary of the run %s is too long and is left out", run->id);
}

static void put_members(struct offline_run *run, struct slice members, bool explicit_update) {
    struct slice key, value;
    while (wandb_member_next(&members, &key, &value)) {
        bool removes = explicit_update &&
                       (slice_equal(value, SLICE("null")) || slice_equal(value, SLICE("NaN")));
        put(run, key, removes ? OFFLINE_REMOVED : value);
    }
}

static void put_uint(struct offline_run *run, const char *key, const char *before, uint64_t value,
                     const char *behind) {
    buffer_reset(&run->offline->text);
    buffer_append_text(&run->offline->text, before);
    buffer_append_uint(&run->offline->text, value);
    buffer_append_text(&run->offline->text, behind);
    put(run, slice_of(key), buffer_slice(&run->offline->text));
}

void summary_note(struct offline_run *run, const struct wandb_record *record, uint64_t step,
                  struct slice media) {
    uint64_t seconds =
        record->time_ns > run->start_ns ? (record->time_ns - run->start_ns) / NS_PER_S : 0;
    if (record->kind == WANDB_SUMMARY) {
        put_members(run, record->members, true);
        return;
    }
    if (record->kind != WANDB_FINISH) {
        if (media.size == 0) {
            put_members(run, record->members, false);
        } else {
            buffer_reset(&run->offline->text);
            json_append_string(&run->offline->text, record->key);
            put(run, buffer_slice(&run->offline->text), media);
        }
        put_uint(run, "\"_step\"", "", step, "");
        put_uint(run, "\"_runtime\"", "", seconds, "");
        buffer_reset(&run->offline->text);
        wandb_append_number(&run->offline->text, (double)record->time_ns / NS_PER_S);
        put(run, SLICE("\"_timestamp\""), buffer_slice(&run->offline->text));
    }
    put_uint(run, "\"_wandb\"", "{\"runtime\":", seconds, "}");
}

void summary_say(struct offline_run *run) {
    if (run->summary.count == 0)
        return;
    offline_write_summary(run);
    wandb_values_release(&run->summary);
}
