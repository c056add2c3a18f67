// SPDX-License-Identifier: Apache-2.0
// What evidence was absent, and how is it switched on?
#include "exporters/report/seen.h"

#include "pipeline/model/node_event.h"

#define KIND(kind)   (1u << (kind))
#define FIELD(field) (UINT64_C(1) << (field))

enum { ABSENT_MAX = 8 };

void seen_note(struct seen *seen, const struct batch *batch) {
    for (uint32_t i = 0; i < batch->event_count; i++) {
        const struct event *event = &batch->events[i];
        seen->kinds |= KIND(event->kind);
        if (event->kind == EVENT_KUBERNETES)
            seen->kubernetes |= KIND(event->kubernetes->kind);
        for (uint32_t j = 0; event->kind == EVENT_GPU_SAMPLE && j < event->gpus->count; j++)
            seen->gpu_fields |= event->gpus->samples[j].present;
    }
}

static bool lacks_fields(const struct seen *seen, uint64_t any_of) {
    return (seen->kinds & KIND(EVENT_GPU_SAMPLE)) != 0 && (seen->gpu_fields & any_of) == 0;
}

// Sources: PyTorch, Flight Recorder; NVIDIA dcgm-exporter, default-counters.csv; the kernel's
// Documentation/ABI/testing/dev-kmsg.
const char *seen_absent(const struct seen *seen, uint32_t index) {
    const char *texts[ABSENT_MAX];
    uint32_t count = 0;
    if (!seen_nodes(seen))
        return NULL;
    if ((seen->kinds & KIND(EVENT_FLIGHT)) == 0)
        texts[count++] =
            "No Flight Recorder dumps, so a hang is not seen: set TORCH_FR_BUFFER_SIZE=2000, "
            "TORCH_FR_DUMP_ON_TIMEOUT=1 and TORCH_FR_DUMP_TEMP_FILE to a path that is kept; in "
            "older PyTorch TORCH_NCCL_TRACE_BUFFER_SIZE, TORCH_NCCL_DUMP_ON_TIMEOUT and "
            "TORCH_NCCL_DEBUG_INFO_TEMP_FILE.";
    if ((seen->kinds & KIND(EVENT_KERNEL)) == 0)
        texts[count++] =
            "No kernel log, so Xids and PCIe errors are known by counters at best: give /dev/kmsg "
            "of the node, or what `journalctl -k -o json` prints.";
    if ((seen->kinds & KIND(EVENT_GPU_SAMPLE)) == 0)
        texts[count++] = "No GPU counters: scrape dcgm-exporter, and give its text.";
    if (lacks_fields(seen, FIELD(GPU_CLOCK_REASONS) | FIELD(GPU_THERMAL_VIOLATION_NS)))
        texts[count++] =
            "No clock reasons and no time lost to heat: add DCGM_FI_DEV_CLOCK_THROTTLE_REASONS "
            "and DCGM_FI_DEV_THERMAL_VIOLATION to dcgm-exporter's counters.csv; its default has "
            "neither.";
    if (lacks_fields(seen, FIELD(GPU_ECC_UNCORRECTED_VOLATILE) | FIELD(GPU_REMAP_PENDING)))
        texts[count++] =
            "No ECC totals and no pending row remaps: add DCGM_FI_DEV_ECC_DBE_VOL_TOTAL, "
            "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL and DCGM_FI_DEV_ROW_REMAP_PENDING to dcgm-exporter's "
            "counters.csv.";
    if ((seen->kubernetes & KIND(KUBERNETES_EVENT)) != 0 &&
        (seen->kubernetes & KIND(KUBERNETES_POD)) == 0)
        texts[count++] =
            "No Pod objects, so the node of an evicted pod is not known: watch pods as well as "
            "events.";
    if ((seen->kubernetes & KIND(KUBERNETES_EVENT)) != 0 &&
        (seen->kubernetes & KIND(KUBERNETES_NODE)) == 0)
        texts[count++] = "No Node objects, so pressure on a node is not seen: watch nodes too.";
    if ((seen->kinds & KIND(EVENT_RANK_MAP)) == 0 &&
        (seen->kinds & (KIND(EVENT_KERNEL) | KIND(EVENT_GPU_SAMPLE))) != 0)
        texts[count++] =
            "No rank map, so faults of GPUs are joined with ranks by node only: write one line a "
            "rank with rank, k8s.node.name, pci_bus_id and process.pid.";
    return index < count ? texts[index] : NULL;
}
