// SPDX-License-Identifier: Apache-2.0
// What the causes mean and what to do about them, and which events tell of them. A new line is a
// row of forms (kind node_fault) with one of these causes.
#include "processors/node_fault/parts.h"

#include "pipeline/model/observation.h"

#define SYSTEM_ADVICE                                                                              \
    "Keep jobs away from {place} until it was looked at: its console, the event log of its board " \
    "(ipmitool sel elist), and what the kernel wrote before. Restart the job on other nodes."
#define RESET_ADVICE                                                                               \
    "Cordon {place} and reset {device}; reboot the node if that does not help, and have the "      \
    "device checked if it fails again. Restart the job on other nodes."

static const struct node_cause CAUSES[] = {
    {"kernel_panic", PART_SYSTEM, 9, SEVERITY_CRITICAL, "drain_node",
     "Kernel panic on {node}: {said}", SYSTEM_ADVICE},
    {"memory_error", PART_SYSTEM, 8, SEVERITY_CRITICAL, "replace_hardware",
     "Memory of {node} failed: {said}",
     "Drain {place} and have the memory module that the line names replaced. Restart the job on "
     "other nodes."},
    {"machine_check", PART_SYSTEM, 7, SEVERITY_CRITICAL, "drain_node",
     "A hardware error of {node} was not corrected: {said}", SYSTEM_ADVICE},
    {"hard_lockup", PART_SYSTEM, 6, SEVERITY_CRITICAL, "drain_node",
     "A processor of {node} hung: {said}", SYSTEM_ADVICE},
    {"kernel_oops", PART_SYSTEM, 5, SEVERITY_ERROR, "drain_node",
     "The kernel of {node} failed: {said}",
     "Drain {place} and reboot it: what the kernel holds may be damaged. Look for the driver that "
     "the lines behind this one name."},
    {"gpu_lost", PART_GPU, 9, SEVERITY_CRITICAL, "drain_node", "{part} was lost: {said}",
     "Cordon and drain {place} and reboot it; if a GPU is lost again, have it, its slot and its "
     "power checked."},
    {"gpu_power", PART_GPU, 8, SEVERITY_CRITICAL, "replace_hardware", "{part} has no power: {said}",
     "Drain {place} and have the power cables of its GPUs checked."},
    {"gpu_firmware", PART_GPU, 7, SEVERITY_CRITICAL, "reset_gpu",
     "{part} does not answer: its own processor (GSP, firmware) is silent: {said}", RESET_ADVICE},
    {"gpu_hardware", PART_GPU, 7, SEVERITY_CRITICAL, "reset_gpu",
     "{part} failed with a hardware error: {said}", RESET_ADVICE},
    {"gpu_unusable", PART_GPU, 6, SEVERITY_CRITICAL, "drain_node",
     "{part} could not be started: {said}",
     "Cordon {place} and reset the device; reboot the node if that does not help. Jobs that need "
     "all devices of the node cannot run there."},
    {"gpu_needs_reset", PART_GPU, 5, SEVERITY_CRITICAL, "reset_gpu",
     "{part} is marked for a reset and cannot be used: {said}", RESET_ADVICE},
    {"driver_mismatch", PART_GPU, 4, SEVERITY_ERROR, "drain_node",
     "The NVIDIA driver of {node} and its libraries are of different versions: {said}",
     "Drain {place} and reboot it, or reload the driver: no CUDA program can start there before."},
    {"nvswitch", PART_FABRIC, 9, SEVERITY_CRITICAL, "drain_node",
     "An NVSwitch of {node} cannot be used: {said}",
     "Drain {place} and reboot it; have its NVSwitches checked if that does not help."},
    {"fabric_manager", PART_FABRIC, 8, SEVERITY_CRITICAL, "drain_node",
     "The fabric manager of {node} does not run: {said}",
     "Keep jobs away from {place}: CUDA programs cannot start there (error 802). Look why the "
     "fabric manager failed (journalctl -u nvidia-fabricmanager), restart it, and reboot the node "
     "if a switch or GPU is missing."},
    {"imex", PART_FABRIC, 7, SEVERITY_ERROR, "drain_node", "IMEX of {node} died: {said}",
     "Restart nvidia-imex on all nodes of the NVLink domain, then the job."},
    {"multicast", PART_FABRIC, 6, SEVERITY_ERROR, "drain_node",
     "NVLink multicast (NVLS) could not be set up on {node}: {said}",
     "A GPU of {place} is not registered with the fabric: look at nvidia-smi -q (Fabric), restart "
     "the fabric manager and reset the GPUs, then restart the job."},
    {"nvlink_setup", PART_FABRIC, 5, SEVERITY_ERROR, "drain_node",
     "NVLink of {node} was not set up: {said}",
     "Keep jobs away from {place}: look at nvidia-smi nvlink -s and the fabric manager, reset the "
     "GPUs, and reboot the node if links stay inactive."},
    {"iommu", PART_DEVICES, 5, SEVERITY_ERROR, "drain_node",
     "The IOMMU of {node} blocked memory accesses of {part}: {said}",
     "GPUs cannot reach one another or the network card: switch the IOMMU to passthrough "
     "(iommu=pt) or off, and ACS off, in the settings of {place}; then restart the job."},
};
_Static_assert(sizeof CAUSES / sizeof *CAUSES == NODE_CAUSES, "parts.h says how many");

const struct node_cause *node_cause_get(uint32_t number) {
    assert(number < NODE_CAUSES);
    return &CAUSES[number];
}

static uint32_t find(struct slice name) {
    for (uint32_t i = 0; i < NODE_CAUSES; i++)
        if (slice_equal(name, slice_of(CAUSES[i].name)))
            return i;
    return CAUSE_NONE;
}

// Not corrected, and no error of a PCI device: those are told of elsewhere.
static bool is_uncorrected(const struct observation *seen) {
    struct slice severity;
    if (observation_fact(seen, FACT_PCI) != NULL)
        return false;
    if (observation_text(seen, FACT_SEVERITY, &severity))
        return slice_equal(severity, SLICE("fatal")) || slice_equal(severity, SLICE("recoverable"));
    return !observation_is(seen, FACT_CORRECTED, true);
}

uint32_t node_cause_of(const struct event *event) {
    const struct observation *seen = event->observation;
    struct slice cause;
    switch (seen->kind) {
    case OBSERVATION_MACHINE_CHECK:
    case OBSERVATION_MEMORY_ERROR:
        if (!is_uncorrected(seen))
            return CAUSE_NONE;
        return find(slice_of(observation_name(seen->kind)));
    case OBSERVATION_KERNEL_PANIC:
    case OBSERVATION_KERNEL_OOPS:
    case OBSERVATION_HARD_LOCKUP:
        return find(slice_of(observation_name(seen->kind)));
    case OBSERVATION_NODE_FAULT:
        return observation_text(seen, FACT_CAUSE, &cause) ? find(cause) : CAUSE_NONE;
    default:
        return CAUSE_NONE;
    }
}
