// SPDX-License-Identifier: Apache-2.0
// A table of the kinds of evidence: what goes unchecked without each, and how to switch it on.
#include "exporters/report/seen.h"

#include "pipeline/model/node_event.h"
#include "pipeline/model/observation.h"

#include <assert.h>

#define KIND(kind)   (1u << (kind))
#define FIELD(field) (UINT64_C(1) << (field))

// Those that may be told although no detector names a cause.
static bool is_failure(const struct event *event) {
    if (event->kind != EVENT_OBSERVATION)
        return false;
    switch ((enum observation_kind)event->observation->kind) {
    case OBSERVATION_WATCHDOG_END:
    case OBSERVATION_WATCHDOG_TERMINATED:
    case OBSERVATION_NCCL_PEER_CLOSED:
    case OBSERVATION_PEER_CLOSED:
    case OBSERVATION_COLLECTIVE_TIMEOUT:
    case OBSERVATION_RENDEZVOUS_TIMEOUT:
    case OBSERVATION_ERROR_FILE:
    case OBSERVATION_LAUNCHER_FAILED:
    case OBSERVATION_LAUNCHER_SUMMARY:
        return true;
    default:
        return false;
    }
}

// Whether it tells how far ranks are in their collectives: also without a Flight Recorder a hang is
// found by it, where a processor lists it in `observations`. Dumps count always.
static bool is_of_hang(const struct event *event) {
    if (event->kind == EVENT_APP_LINE)
        return event->line->kind == APP_TIMEOUT || event->line->has_progress;
    if (event->kind != EVENT_OBSERVATION)
        return false;
    switch ((enum observation_kind)event->observation->kind) {
    case OBSERVATION_WATCHDOG_DUMP:
    case OBSERVATION_RAS_RANK:
    case OBSERVATION_RAS_MISSING:
    case OBSERVATION_RAS_MISMATCH:
        return true;
    default:
        return false;
    }
}

// Whether it is a line of a kernel: the kinds of those stand first in the list.
static bool is_of_kernel(const struct event *event) {
    return event->kind == EVENT_KERNEL ||
           (event->kind == EVENT_OBSERVATION && event->observation->kind >= OBSERVATION_OOM_KILL &&
            event->observation->kind <= OBSERVATION_GPU_HARDWARE_ERROR);
}

// Earlier times are since the boot of a machine, which nobody knows.
#define YEAR_2000_NS (UINT64_C(946684800) * 1000000000)

static bool is_taken(const struct batch *batch, const struct event *event) {
    return batch->taken != NULL && batch->taken[event_class(event)];
}

bool seen_is_unread(const struct batch *batch, const struct event *event) {
    enum { OF_LOGS = KIND(EVENT_OBSERVATION) | KIND(EVENT_APP_LINE) | KIND(EVENT_KERNEL) };
    return batch->taken != NULL && (KIND(event->kind) & OF_LOGS) != 0 && !is_taken(batch, event);
}

// It tells that a dump was there and says nothing else.
static bool is_refused(const struct event *event) {
    return event->kind == EVENT_FLIGHT && event->flight->unreadable.data != NULL;
}

// It sums up lines that are of no interest by themselves.
static bool is_sum(const struct event *event) {
    return event->kind == EVENT_OBSERVATION && event->lines == 0 &&
           event->observation->kind == OBSERVATION_PROGRESS;
}

void seen_note(struct seen *seen, const struct batch *batch) {
    assert(batch->event_count == 0 || batch->events != NULL);
    for (uint32_t i = 0; i < batch->event_count; i++) {
        const struct event *event = &batch->events[i];
        if (is_refused(event) || is_sum(event))
            continue;
        seen->event_count++;
        seen->kinds |= KIND(event->kind);
        seen->unread |= seen_is_unread(batch, event);
        if (is_of_hang(event) && is_taken(batch, event))
            seen->evidence |= 1u << SEEN_HANG;
        if (is_of_kernel(event))
            seen->evidence |= 1u << SEEN_KERNEL_LOG;
        seen->failed |= is_failure(event);
        if (event->kind == EVENT_KUBERNETES)
            seen->kubernetes |= KIND(event->kubernetes->kind);
        for (uint32_t j = 0; event->kind == EVENT_GPU_SAMPLE && j < event->gpus->count; j++)
            seen->gpu_fields |= event->gpus->samples[j].present;
        if (event->timeless || event->time_ns < YEAR_2000_NS)
            continue;
        if (seen->first_ns == 0 || event->time_ns < seen->first_ns)
            seen->first_ns = event->time_ns;
        if (event->time_ns > seen->last_ns)
            seen->last_ns = event->time_ns;
    }
}

// Absent where something of `with` came (0: always), but nothing of `any_of`; both are bits of the
// same set.
struct rule {
    enum { OF_KINDS, OF_KUBERNETES, OF_GPU_FIELDS, OF_EVIDENCE } of;
    uint64_t with, any_of;
    struct absence absence;
};

// Sources: PyTorch, Flight Recorder; NVIDIA dcgm-exporter, default-counters.csv; the kernel's
// Documentation/ABI/testing/dev-kmsg.
static const struct rule rules[SEEN_ABSENT_MAX] = {
    {OF_KINDS,
     0,
     KIND(EVENT_TELEMETRY),
     {"memory of ranks (no telemetry)",
      "No telemetry of ranks, so growth of memory is not seen: write it with stormlog's telemetry "
      "sink."}},
    {OF_EVIDENCE,
     0,
     KIND(SEEN_HANG),
     {"hangs (no Flight Recorder dumps)",
      "No Flight Recorder dumps, so a hang is not seen: set TORCH_FR_BUFFER_SIZE=2000, "
      "TORCH_FR_DUMP_ON_TIMEOUT=1 and TORCH_FR_DUMP_TEMP_FILE to a path that is kept; in older "
      "PyTorch TORCH_NCCL_TRACE_BUFFER_SIZE, TORCH_NCCL_DUMP_ON_TIMEOUT and "
      "TORCH_NCCL_DEBUG_INFO_TEMP_FILE."}},
    {OF_EVIDENCE,
     0,
     KIND(SEEN_KERNEL_LOG),
     {"Xid and PCIe errors (no kernel log)",
      "No kernel log, so Xid and PCIe errors are known by counters at best: use the receiver "
      "kmsg or journald, or add the output of `journalctl -k -o json`."}},
    {OF_KINDS,
     0,
     KIND(EVENT_GPU_SAMPLE),
     {"GPU health (no GPU counters)",
      "No GPU counters: use the receiver prometheus_scrape, or add the text of dcgm-exporter."}},
    {OF_GPU_FIELDS,
     UINT64_MAX,
     FIELD(GPU_CLOCK_REASONS) | FIELD(GPU_THERMAL_VIOLATION_NS),
     {"thermal throttling (no clock reasons)",
      "No clock reasons and no time lost to heat: add DCGM_FI_DEV_CLOCK_THROTTLE_REASONS and "
      "DCGM_FI_DEV_THERMAL_VIOLATION to dcgm-exporter's counters.csv; its default has neither."}},
    {OF_GPU_FIELDS,
     UINT64_MAX,
     FIELD(GPU_ECC_UNCORRECTED_VOLATILE) | FIELD(GPU_REMAP_PENDING),
     {"GPU memory errors (no ECC counters)",
      "No ECC totals and no pending row remaps: add DCGM_FI_DEV_ECC_DBE_VOL_TOTAL, "
      "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL and DCGM_FI_DEV_ROW_REMAP_PENDING to dcgm-exporter's "
      "counters.csv."}},
    {OF_KINDS,
     0,
     KIND(EVENT_KUBERNETES),
     {"evicted pods (no Kubernetes events)",
      "No Kubernetes events, so evicted pods are not seen: use the receiver kubernetes, or add "
      "the output of `kubectl get events,pods,nodes -A -o json`."}},
    {OF_KUBERNETES,
     KIND(KUBERNETES_EVENT),
     KIND(KUBERNETES_POD),
     {"nodes of evicted pods (no Pod objects)",
      "No Pod objects, so the node of an evicted pod is not known: watch pods as well as "
      "events."}},
    {OF_KUBERNETES,
     KIND(KUBERNETES_EVENT),
     KIND(KUBERNETES_NODE),
     {"pressure on nodes (no Node objects)",
      "No Node objects, so pressure on a node is not seen: watch nodes too."}},
    {OF_KINDS,
     KIND(EVENT_KERNEL) | KIND(EVENT_GPU_SAMPLE),
     KIND(EVENT_RANK_MAP),
     {"ranks of faulty GPUs (no rank map)",
      "No rank map, so faults of GPUs are joined with ranks by node only: write one line a rank "
      "with rank, k8s.node.name, pci_bus_id and process.pid."}},
};

uint32_t seen_absent(const struct seen *seen, const struct absence *absent[SEEN_ABSENT_MAX]) {
    uint64_t evidence = seen->evidence;
    evidence |= (seen->kinds & KIND(EVENT_FLIGHT)) != 0 ? KIND(SEEN_HANG) : 0;
    evidence |= (seen->kinds & KIND(EVENT_KERNEL)) != 0 ? KIND(SEEN_KERNEL_LOG) : 0;
    const uint64_t sets[] = {seen->kinds, seen->kubernetes, seen->gpu_fields, evidence};
    uint32_t count = 0;
    for (size_t i = 0; i < SEEN_ABSENT_MAX; i++)
        if ((rules[i].with == 0 || (sets[rules[i].of] & rules[i].with) != 0) &&
            (sets[rules[i].of] & rules[i].any_of) == 0)
            absent[count++] = &rules[i].absence;
    return count;
}
