// SPDX-License-Identifier: Apache-2.0
// Names GPUs that reported a certain Xid.
#include "processors/cluster/detector.h"
#include "processors/cluster/xid_log.h"

struct xid_watch {
    struct detector_base base;
    struct xid_watch_config {
        int64_t code;
    } config;
    struct xid_log xids;
};

static const struct option OPTIONS[] = {
    OPTION(struct xid_watch_config, code, OPTION_INT, .default_value = "79", .min = 1, .max = 999,
           .help = "the Xid that is reported"),
};
static const struct state_row STATE[] = {
    STATE_ROWS(struct xid_watch, xids.rows, "xid_watch.xids", XID_LOG_ROWS),
    STATE_PART(struct xid_watch, base.ledger, "xid_watch.verdicts", VERDICT_LEDGER),
};
static const struct verdict_pattern PATTERNS[] = {{.name = "xid_watch"}};

static void take(void *instance, const struct event *event, struct arena *scratch) {
    struct xid_watch *self = instance;
    if (event->kind == EVENT_KERNEL)
        xid_log_take(&self->xids, event, NULL, scratch);
}

static void report(struct xid_watch *self, struct batch *batch, const struct xid_entry *xid) {
    struct verdict_builder builder;
    const char *gpu = gpu_spoken_name(xid->node, STRING_NONE, xid->address, batch->arena);
    const char *uid = xid_entry_uid(xid, batch->arena);
    builder_begin(&builder, batch->arena, "xid_watch", "reported");
    builder_rate(&builder, SEVERITY_ERROR, 80, "drain_node");
    builder_gpu(&builder, xid->node, STRING_NONE, xid->address, ROLE_SUSPECT);
    builder_evidence(&builder, EVIDENCE_CAUSE, xid->time_ns, uid, "Xid %u", xid->code);
    builder_texts(&builder, "{gpu} reported an Xid", "Drain the node of {gpu}.",
                  (struct text_field[]){{"gpu", gpu}, {NULL, NULL}});
    builder_finish(&builder, (struct slice[]){slice_of(uid)}, 1);
    verdict_ledger_report(&self->base.ledger, batch, &builder.verdict, false, 0);
}

static void judge(void *instance, struct batch *batch, uint64_t now_ns) {
    struct xid_watch *self = instance;
    uint32_t count;
    const struct xid_entry **xids = xid_log_sort(&self->xids, batch->arena, &count);
    for (uint32_t i = 0; i < count; i++)
        if (xids[i]->code == self->config.code && xids[i]->time_ns <= now_ns)
            report(self, batch, xids[i]);
    detector_count_evicted(&self->base, self->xids.bound.evicted);
}

static enum status start(void *instance, const void *config,
                         const struct component_context *context, struct error *error) {
    struct xid_watch *self = instance;
    (void)error;
    self->config = *(const struct xid_watch_config *)config;
    self->xids.bound.max = 4096;
    return detector_begin(&self->base, "xid_watch", context, take, judge);
}

const struct component_type processor_xid_watch = {
    .name = "xid_watch",
    .summary = "Names GPUs that reported a certain Xid.",
    .takes = 1u << EVENT_KERNEL,
    .start = start,
    DETECTOR_FIELDS(struct xid_watch, struct xid_watch_config),
};
