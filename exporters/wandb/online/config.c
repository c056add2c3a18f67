// SPDX-License-Identifier: Apache-2.0
// Makes the config of a run, without the charts whose tables could not be uploaded.
//
// What others put into the config stays; `_wandb` gets our charts, `culprit` where our rows begin.
// At most WANDB_LEFT_OUT_MAX tables and pages that could not be uploaded are known at a time.
#include "exporters/wandb/online/parts.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/text/cut.h"
#include "base/text/json_write.h"
#include "exporters/wandb/metrics.h"
#include "exporters/wandb/record.h"
#include "exporters/wandb/table.h"

#include <inttypes.h>

// Whether the chart under `key` (with quotes) reads a table that was left out: KEY_table.
static bool chart_is_empty(const struct wandb_run *run, struct slice key) {
    static const struct slice ending = SLICE("_table\"");
    for (uint32_t i = 0; i < run->left_out_count; i++) {
        struct buffer table;
        buffer_init(&table, 1 << 20);
        json_append_string(&table, slice_of(run->left_out[i].key));
        struct slice rest = buffer_slice(&table);
        bool same =
            text_skip(&rest, (struct slice){key.data, key.size - 1}) && slice_equal(rest, ending);
        buffer_release(&table);
        if (same)
            return true;
    }
    return false;
}

static void charts_append(const struct wandb_run *run, struct slice old, struct buffer *out) {
    struct wandb_values charts = {0};
    wandb_values_apply(&charts, old, false);
    wandb_values_apply(&charts, buffer_slice(&run->visualize), false);
    for (uint32_t i = 0; i < charts.count; i++) {
        struct slice key = {charts.items[i].key, charts.items[i].key_size};
        if (chart_is_empty(run, key))
            wandb_values_set(&charts, key, SLICE(""));
    }
    wandb_values_append(&charts, out);
    wandb_values_release(&charts);
}

// The start that the run's config names, with its quotes; empty when it names none.
static struct slice old_start(const struct wandb_run *run) {
    struct slice old = wandb_member_find(buffer_slice(&run->old_config), "culprit");
    return wandb_member_find(
        wandb_object_inside(wandb_member_find(wandb_object_inside(old), "value")), "start");
}

// Field numbers and options are those of MetricRecord: 1 name, 2 glob, 5 place of the step metric
// in the list, from 1, 6 options (1 step_sync, 2 hidden, 3 defined), 7 summaries.
static void metrics_append(struct buffer *out, bool hides_ranks) {
    buffer_append_char(out, '[');
    for (uint32_t i = 0; i < WANDB_METRIC_COUNT; i++) {
        const struct wandb_metric *metric = &WANDB_METRICS[i];
        buffer_append_format(out, "%s{\"%d\":\"%s\",", i > 0 ? "," : "", metric->is_glob ? 2 : 1,
                             metric->name);
        buffer_append_text(out, i == 0                           ? "\"6\":[3],\"7\":[]}"
                                : metric->is_glob && hides_ranks ? "\"5\":1,\"6\":[1,2],\"7\":[]}"
                                : metric->is_glob                ? "\"5\":1,\"6\":[1],\"7\":[]}"
                                                                 : "\"5\":1,\"6\":[1,3],\"7\":[]}");
    }
    buffer_append_char(out, ']');
}

static void wandb_part_append(const struct wandb_run *run, struct slice old, bool hides_ranks,
                              struct buffer *out) {
    struct wandb_values values = {0};
    struct buffer charts;
    struct slice inside = wandb_object_inside(wandb_member_find(old, "value"));
    buffer_init(&charts, WANDB_VALUES_BYTES_MAX);
    wandb_values_apply(&values, inside, false);
    if (wandb_member_find(inside, "t").size == 0)
        wandb_values_set(&values, SLICE("\"t\""), SLICE("{\"13\":\"linux-x86_64\"}"));
    // What others defined stays.
    struct slice metrics = wandb_member_find(inside, "m");
    if (metrics.size == 0 || slice_equal(metrics, SLICE("[]"))) {
        struct buffer ours;
        buffer_init(&ours, 1 << 16);
        if (run->start != NULL || old_start(run).size > 0)
            metrics_append(&ours, hides_ranks);
        else
            buffer_append_text(&ours, "[]");
        wandb_values_set(&values, SLICE("\"m\""), buffer_slice(&ours));
        buffer_release(&ours);
    }
    charts_append(run, wandb_object_inside(wandb_member_find(inside, "visualize")), &charts);
    wandb_values_set(&values, SLICE("\"visualize\""), buffer_slice(&charts));
    buffer_append_text(out, "{\"value\":");
    wandb_values_append(&values, out);
    buffer_append_char(out, '}');
    buffer_release(&charts);
    wandb_values_release(&values);
}

static void number_append(struct buffer *out, const char *before, double number) {
    if (!(number > 0))
        return;
    buffer_append_text(out, before);
    wandb_append_number(out, number);
}

// The start as it is known now or was when the run began.
static void start_append(const struct wandb_run *run, struct buffer *out) {
    struct slice start = old_start(run);
    if (run->start == NULL && start.size == 0)
        return;
    buffer_append_text(out, ",\"start\":");
    if (run->start != NULL)
        json_append_string(out, slice_of(run->start));
    else
        buffer_append(out, start);
}

static void culprit_part_append(const struct wandb_run *run, struct buffer *out) {
    buffer_append_format(out,
                         "{\"value\":{\"incarnation\":\"%" PRIu64 "\",\"history_base\":%" PRId64
                         ",\"step_base\":%" PRId64,
                         run->incarnation, run->line_base, run->step_base);
    number_append(out, ",\"runtime_base\":", run->runtime_base);
    number_append(out, ",\"known_until\":", run->known_until);
    start_append(run, out);
    if (run->joined)
        buffer_append_text(out, ",\"joined\":true");
    buffer_append_text(out, "}}");
}

void wandb_config_append(const struct wandb_online *online, const struct wandb_run *run,
                         struct buffer *out) {
    struct wandb_values values = {0};
    struct slice old = buffer_slice(&run->old_config);
    struct buffer part;
    buffer_init(&part, WANDB_VALUES_BYTES_MAX);
    wandb_values_apply(&values, old, false);
    wandb_part_append(run, wandb_object_inside(wandb_member_find(old, "_wandb")),
                      online->config->log_tables, &part);
    wandb_values_set(&values, SLICE("\"_wandb\""), buffer_slice(&part));
    struct slice settings = buffer_slice(&run->settings), key, value;
    while (wandb_member_next(&settings, &key, &value)) {
        buffer_reset(&part);
        buffer_append_text(&part, "{\"value\":");
        buffer_append(&part, value);
        buffer_append_char(&part, '}');
        wandb_values_set(&values, key, buffer_slice(&part));
    }
    if (run->incarnation != 0 || run->start != NULL) {
        buffer_reset(&part);
        culprit_part_append(run, &part);
        wandb_values_set(&values, SLICE("\"culprit\""), buffer_slice(&part));
    }
    wandb_values_append(&values, out);
    buffer_release(&part);
    wandb_values_release(&values);
}

// -- what is not there ----------------------------------------------------------------------------

bool wandb_run_leaves_out(const struct wandb_run *run, uint64_t sequence) {
    for (uint32_t i = 0; i < run->left_out_count; i++)
        if (run->left_out[i].sequence == sequence)
            return true;
    return false;
}

void wandb_run_leave_out(struct wandb_online *online, struct wandb_run *run,
                         const struct wandb_record *record, const struct error *why) {
    assert(run->left_out_count <= WANDB_LEFT_OUT_MAX);
    log_write(LOG_ERROR, (struct log_site){"C3404", online->site},
              "\"%.*s\" is left out of run %s: %s", (int)record->key.size, record->key.data,
              run->id, why->message);
    if (record->kind == WANDB_ARTIFACT || wandb_run_leaves_out(run, record->sequence))
        return;
    // The oldest was posted long ago.
    if (run->left_out_count == WANDB_LEFT_OUT_MAX) {
        memory_give(run->left_out[0].key);
        memmove(run->left_out, run->left_out + 1,
                (WANDB_LEFT_OUT_MAX - 1) * sizeof run->left_out[0]);
        run->left_out_count--;
    }
    run->left_out[run->left_out_count++] = (struct wandb_left_out){
        record->sequence, memory_copy_text(record->key.data, record->key.size)};
    assert(run->left_out_count <= WANDB_LEFT_OUT_MAX);
    run->config_is_stale = run->config_is_stale || record->kind == WANDB_TABLE;
}
