// SPDX-License-Identifier: Apache-2.0
// Names the rank that ended first, and why. See README.md for the rules.
//
// Keeps what is told of ends and of where processes run (notes.c); at an evaluation these are
// joined to processes (gather.c, where.c) and starts of the job (rounds.c), own ends are told from
// those of victims (weigh.c), and the first of each start is decided (decide.c). O(1) an event;
// O(notes log notes + processes) an evaluation.
#include "base/sort.h"
#include "processors/cluster/compare.h"
#include "processors/first_exit/decide.h"

struct first_exit {
    struct detector_base base;
    struct first_exit_config config;
    struct exit_notes notes;
};

#define EXIT_OPTION(field, kind, ...) OPTION(struct first_exit_config, field, kind, __VA_ARGS__)

static const struct option OPTIONS[] = {
    EXIT_OPTION(hold, OPTION_DURATION, .default_value = "24h", .min = 60, .max = 31536000,
                .help = "how long what was told of an end is kept while culprit goes on"),
    EXIT_OPTION(confidence_written, OPTION_INT, .default_value = "92", .min = 5, .max = 97,
                .help = "percent, for an end whose reason is written in a log"),
    EXIT_OPTION(confidence_kernel, OPTION_INT, .default_value = "90", .min = 5, .max = 97,
                .help = "percent, for one that the kernel or the container runtime tells of"),
    EXIT_OPTION(confidence_code, OPTION_INT, .default_value = "75", .min = 5, .max = 97,
                .help = "percent, for one of which only the exit code or signal is known"),
    EXIT_OPTION(confidence_silence, OPTION_INT, .default_value = "40", .min = 5, .max = 97,
                .help = "percent, for one that only follows from the silence of a rank or node"),
    EXIT_OPTION(tie_penalty, OPTION_INT, .default_value = "30", .max = 90,
                .help = "percent less where several may have been the first, or nothing says that "
                        "the process ended"),
    EXIT_OPTION(max_notes, OPTION_INT, .default_value = "65536", .min = 16, .max = 16777216,
                .help = "lines about ends that are kept, 1,000 bytes each; the oldest go first"),
    EXIT_OPTION(xid_window, OPTION_DURATION, .default_value = "1m", .max = 3600,
                .help = "an Xid of a rank's GPU goes with a CUDA error of the rank that comes so "
                        "soon after it"),
    EXIT_OPTION(max_pods, OPTION_INT, .default_value = "65536", .min = 16, .max = 16777216,
                .help = "pods whose uid is kept; those told of least recently go first"),
    EXIT_OPTION(max_xids, OPTION_INT, .default_value = "16384", .min = 16, .max = 16777216,
                .help = "Xids that are kept; the oldest go first"),
    EXIT_OPTION(max_places, OPTION_INT, .default_value = "131072", .min = 16, .max = 16777216,
                .help = "processes whose rank is known from the rank map or telemetry; the oldest "
                        "go first"),
};

static const struct state_row STATE[] = {
    STATE_ROWS(struct first_exit, notes.notes, "first_exit.notes", EXIT_NOTE_ROWS),
    STATE_ROWS(struct first_exit, notes.places, "first_exit.places", EXIT_PLACE_ROWS),
    STATE_ROWS(struct first_exit, notes.pods.by_uid, "first_exit.pods_by_uid", POD_ROWS),
    STATE_ROWS(struct first_exit, notes.pods.by_name, "first_exit.pods_by_name", POD_ROWS),
    STATE_ROWS(struct first_exit, notes.xids.rows, "first_exit.xids", XID_LOG_ROWS),
    STATE_STRUCT(struct first_exit, notes.xids.bound.horizon_ns, "xid_horizon"),
    STATE_ROWS(struct first_exit, notes.gpus.by_address, "first_exit.gpu_addresses",
               GPU_ADDRESS_ROWS),
    STATE_ROWS(struct first_exit, notes.gpus.by_uuid, "first_exit.gpu_uuids", GPU_UUID_ROWS),
    STATE_ROWS(struct first_exit, notes.progress.rows, "first_exit.progress", PROGRESS_ROWS),
    STATE_PART(struct first_exit, base.ledger, "first_exit.verdicts", VERDICT_LEDGER),
};

static void take(void *instance, const struct event *event, struct arena *scratch) {
    exit_notes_take(&((struct first_exit *)instance)->notes, event, scratch);
}

static int compare_decisions(const void *left, const void *right) {
    const struct exit_decision *a = left, *b = right;
    return COMPARE_KEYS(COMPARE(a->time_ns, b->time_ns), COMPARE(a->round, b->round));
}

static void judge(void *instance, struct batch *batch, uint64_t now_ns) {
    struct first_exit *self = instance;
    struct exit_list list;
    uint64_t hold_ns = duration_ns(self->config.hold);
    if (self->base.live && now_ns > hold_ns) {
        rows_expire(&self->notes.notes, offsetof(struct exit_note, time_ns), now_ns - hold_ns);
        row_bound_expire(&self->notes.progress.rows, &self->notes.progress.bound,
                         offsetof(struct progress_row, time_ns), now_ns - hold_ns);
        xid_log_expire(&self->notes.xids, now_ns - hold_ns);
    }
    detector_count_evicted(&self->base,
                           self->notes.note_bound.evicted + self->notes.place_bound.evicted +
                               self->notes.pods.bound.evicted + self->notes.xids.bound.evicted +
                               self->notes.gpus.bound.evicted + self->notes.progress.bound.evicted);
    if (keyed_rows_count(&self->notes.notes) == 0)
        return;
    exits_gather(&self->notes, batch->names, now_ns, &list, batch->arena);
    exits_weigh(&list);
    struct exit_decision *decisions = exits_decide(&list, batch->arena);
    sort_stable(decisions, list.round_count, sizeof *decisions, batch->arena, compare_decisions);
    for (uint32_t i = 0; i < list.round_count; i++) {
        struct verdict_builder builder = {.arena = batch->arena};
        if (!decisions[i].found)
            continue;
        exit_verdict_build(&self->config, &list, &decisions[i], &builder);
        // Of silence alone, among peers of which no time is known, there is nothing to show.
        if (builder.verdict.evidence_count == 0)
            continue;
        if (self->base.live && !decisions[i].is_over && decisions[i].ground == GROUND_SILENCE &&
            verdict_ledger_waits(&self->base.ledger, batch, &builder.verdict,
                                 self->base.patience_ns))
            continue;
        verdict_ledger_report(&self->base.ledger, batch, &builder.verdict, decisions[i].is_over, 0);
    }
}

static enum status start(void *instance, const void *config,
                         const struct component_context *context, struct error *error) {
    struct first_exit *self = instance;
    (void)error;
    self->config = *(const struct first_exit_config *)config;
    self->notes.note_bound.max = (uint32_t)self->config.max_notes;
    self->notes.place_bound.max = (uint32_t)self->config.max_places;
    self->notes.pods.bound.max = (uint32_t)self->config.max_pods;
    self->notes.xids.bound.max = (uint32_t)self->config.max_xids;
    self->notes.gpus.bound.max = GPU_NAMES_MAX;
    self->notes.progress.bound.max = PROGRESS_LOG_MAX;
    return detector_begin(&self->base, "first_exit", context, take, judge);
}

// A process works no more for a while before it has ended: memory fills up until the kernel ends
// it, or it writes its traceback and is torn down, 3 s on a busy machine. The others wait for it.
enum { ENDING_S = 30 };
static const char *const EXPLAINS[] = {"nccl_hang", NULL};
static const struct verdict_pattern PATTERNS[] = {
    {.name = "first_exit", .explains_rank = EXPLAINS, .rank_before_s = ENDING_S}};
static const struct evidence_prefix EVIDENCE[] = {{"exit:", EVENT_OBSERVATION}};

const struct component_type processor_first_exit = {
    .name = "first_exit",
    .summary = "Names the rank that ended first and took the others with it, and why it ended.",
    .stability = STABILITY_ALPHA,
    .presets = 1u << PRESET_ALL,
    .takes = 1u << EVENT_OBSERVATION | 1u << EVENT_RANK_MAP | 1u << EVENT_TELEMETRY |
             1u << EVENT_KUBERNETES | 1u << EVENT_KERNEL | 1u << EVENT_GPU_SAMPLE,
    .observations = EXIT_NOTE_KINDS,
    .evidence = EVIDENCE,
    .evidence_count = OPTION_COUNT(EVIDENCE),
    .start = start,
    DETECTOR_FIELDS(struct first_exit, struct first_exit_config),
};
