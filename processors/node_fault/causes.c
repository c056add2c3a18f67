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
    {"kernel_panic", PART_SYSTEM, 9, SEVERITY_CRITICAL, "drain_node", RESTART_ELSEWHERE,
     "Kernel panic on {node}: {said}", SYSTEM_ADVICE},
    {"memory_error", PART_SYSTEM, 8, SEVERITY_CRITICAL, "replace_hardware", RESTART_ELSEWHERE,
     "Memory of {node} failed: {said}",
     "Drain {place} and have the memory module that the line names replaced. Restart the job on "
     "other nodes."},
    {"machine_check", PART_SYSTEM, 7, SEVERITY_CRITICAL, "drain_node", RESTART_ELSEWHERE,
     "A hardware error of {node} was not corrected: {said}", SYSTEM_ADVICE},
    {"hard_lockup", PART_SYSTEM, 6, SEVERITY_CRITICAL, "drain_node", RESTART_ELSEWHERE,
     "A processor of {node} hung: {said}", SYSTEM_ADVICE},
    {"kernel_oops", PART_SYSTEM, 5, SEVERITY_ERROR, "drain_node", RESTART_ELSEWHERE,
     "The kernel of {node} failed: {said}",
     "Drain {place} and reboot it: what the kernel holds may be damaged. Look for the driver that "
     "the lines behind this one name."},
    {"power_lost", PART_SYSTEM, 8, SEVERITY_CRITICAL, "drain_node", RESTART_ELSEWHERE,
     "{node} lost its power: {said}",
     "Keep jobs away from {place} and have its supply checked: the feed, the distribution unit of "
     "the rack, its own power supplies. Restart the job on other nodes."},
    {"board_heat", PART_SYSTEM, 4, SEVERITY_ERROR, "check_cooling", RESTART_UNKNOWN,
     "{node} is too hot, or a fan of it fails: {said}",
     "Look at the fans of {place} and the air in front of it. Until then its GPUs and processors "
     "lower their clocks, or the machine goes off."},
    {"unkillable", PART_SYSTEM, 3, SEVERITY_ERROR, "drain_node", RESTART_ELSEWHERE,
     "Processes on {node} could not be ended: {said}",
     "They wait in the kernel, as a rule for a GPU, a file server or a disk: look at the kernel "
     "log of {place} for what they wait for, then reboot it. Restart the job on other nodes."},
    {"power_supply", PART_SYSTEM, 2, SEVERITY_WARNING, "replace_hardware", RESTART_UNKNOWN,
     "A power supply of {node} failed: {said}",
     "Have the power supply and its feed checked. Until then {place} may cap its power, which "
     "slows its GPUs (power brake), or go off with the next supply that fails."},
    {"power_brake", PART_SYSTEM, 3, SEVERITY_WARNING, "drain_node", RESTART_UNKNOWN,
     "GPUs of {node} are slowed because power is short (power brake): {said}",
     "Look at the power supplies of {place} and the limit of its rack (ipmitool sel elist); until "
     "then its GPUs run at about half their clocks."},
    {"less_hardware", PART_SYSTEM, 2, SEVERITY_ERROR, "drain_node", RESTART_ELSEWHERE,
     "{node} has less memory or fewer processors than configured: {said}", SYSTEM_ADVICE},
    {"health_check", PART_SYSTEM, 1, SEVERITY_ERROR, "drain_node", RESTART_UNKNOWN,
     "A health check of {node} failed: {said}",
     "Keep jobs away from {place} until what the check found is repaired."},
    {"pods_evicted", PART_PODS, 5, SEVERITY_ERROR, "fix_workload", RESTART_IN_VAIN,
     "The kubelet of {node} evicted pods because the node ran short: {said}",
     "Look what ran short there (memory, disk: the kubelet's lines before), set requests and "
     "limits that hold for the pods, and do not start the job again as it is."},
    {"container_oom", PART_PODS, 4, SEVERITY_WARNING, "fix_workload", RESTART_IN_VAIN,
     "A container on {node} passed its memory limit (OOM): {said}",
     "Find the container by its id (crictl inspect), give it more memory or let it use less; as it "
     "is it will happen again."},
    {"container_runtime", PART_PODS, 3, SEVERITY_WARNING, "drain_node", RESTART_ELSEWHERE,
     "The container runtime of {node} does not answer: {said}",
     "Look at containerd and the kubelet of {place}, and at what its disk and memory do; restart "
     "the runtime, or drain the node."},
    {"gpu_lost", PART_GPU, 9, SEVERITY_CRITICAL, "drain_node", RESTART_ELSEWHERE,
     "{part} was lost: {said}",
     "Cordon and drain {place} and reboot it; if a GPU is lost again, have it, its slot and its "
     "power checked."},
    {"gpu_power", PART_GPU, 8, SEVERITY_CRITICAL, "replace_hardware", RESTART_ELSEWHERE,
     "{part} has no power: {said}", "Drain {place} and have the power cables of its GPUs checked."},
    {"gpu_firmware", PART_GPU, 7, SEVERITY_CRITICAL, "reset_gpu", RESTART_ELSEWHERE,
     "{part} does not answer: its own processor (GSP, firmware) is silent: {said}", RESET_ADVICE},
    {"gpu_hardware", PART_GPU, 7, SEVERITY_CRITICAL, "reset_gpu", RESTART_ELSEWHERE,
     "{part} failed with a hardware error: {said}", RESET_ADVICE},
    {"gpu_unusable", PART_GPU, 6, SEVERITY_CRITICAL, "drain_node", RESTART_ELSEWHERE,
     "{part} could not be started: {said}",
     "Cordon {place} and reset the device; reboot the node if that does not help. Jobs that need "
     "all devices of the node cannot run there."},
    {"gpu_needs_reset", PART_GPU, 5, SEVERITY_CRITICAL, "reset_gpu", RESTART_ELSEWHERE,
     "{part} is marked for a reset and cannot be used: {said}", RESET_ADVICE},
    {"gpu_missing", PART_GPU, 6, SEVERITY_CRITICAL, "drain_node", RESTART_ELSEWHERE,
     "{node} has fewer GPUs than configured: {said}",
     "Keep jobs away from {place}: a GPU fell off the bus or could not be started. Find which one "
     "is missing (nvidia-smi -L, the kernel log), reboot the node, and have the GPU checked if it "
     "stays away."},
    {"gpu_worn", PART_GPU, 5, SEVERITY_ERROR, "replace_hardware", RESTART_ELSEWHERE,
     "{part}: memory is used up that replaces what failed: {said}",
     "Drain {place} and have {device} replaced: the next error of its memory cannot be repaired."},
    {"gpu_inforom", PART_GPU, 2, SEVERITY_WARNING, "monitor", RESTART_UNKNOWN,
     "{part}: its own store of settings (InfoROM) is damaged: {said}",
     "The GPU works; its serial number and counters may be lost. Have it written anew by the "
     "vendor."},
    {"gpu_hot", PART_GPU, 3, SEVERITY_WARNING, "check_cooling", RESTART_UNKNOWN,
     "{part} is slowed because it is too hot: {said}",
     "Look at the fans of {place} and the air in front of it."},
    {"gpu_repair_waits", PART_GPU, 1, SEVERITY_WARNING, "reset_gpu", RESTART_UNKNOWN,
     "{part}: memory that failed waits to be replaced by a reset: {said}",
     "Reset {device} when it is free (nvidia-smi --gpu-reset), or reboot {place}."},
    {"driver_mismatch", PART_GPU, 4, SEVERITY_ERROR, "drain_node", RESTART_ELSEWHERE,
     "The NVIDIA driver of {node} and its libraries are of different versions: {said}",
     "Drain {place} and reboot it, or reload the driver: no CUDA program can start there before."},
    {"nvswitch", PART_FABRIC, 9, SEVERITY_CRITICAL, "drain_node", RESTART_ELSEWHERE,
     "An NVSwitch of {node} cannot be used: {said}",
     "Drain {place} and reboot it; have its NVSwitches checked if that does not help."},
    {"fabric_manager", PART_FABRIC, 8, SEVERITY_CRITICAL, "drain_node", RESTART_ELSEWHERE,
     "The fabric manager of {node} does not run: {said}",
     "Keep jobs away from {place}: CUDA programs cannot start there (error 802). Look why the "
     "fabric manager failed (journalctl -u nvidia-fabricmanager), restart it, and reboot the node "
     "if a switch or GPU is missing."},
    {"imex", PART_FABRIC, 7, SEVERITY_ERROR, "drain_node", RESTART_ELSEWHERE,
     "IMEX of {node} died: {said}",
     "Restart nvidia-imex on all nodes of the NVLink domain, then the job."},
    {"multicast", PART_FABRIC, 6, SEVERITY_ERROR, "drain_node", RESTART_ELSEWHERE,
     "NVLink multicast (NVLS) could not be set up on {node}: {said}",
     "A GPU of {place} is not registered with the fabric: look at nvidia-smi -q (Fabric), restart "
     "the fabric manager and reset the GPUs, then restart the job."},
    {"nvlink_setup", PART_FABRIC, 5, SEVERITY_ERROR, "drain_node", RESTART_ELSEWHERE,
     "NVLink of {node} was not set up: {said}",
     "Keep jobs away from {place}: look at nvidia-smi nvlink -s and the fabric manager, reset the "
     "GPUs, and reboot the node if links stay inactive."},
    {"disk_lost", PART_DEVICES, 7, SEVERITY_CRITICAL, "drain_node", RESTART_ELSEWHERE,
     "A disk of {node} was lost: {said}",
     "Keep jobs away from {place}: what lies on that disk cannot be read or written. Have the disk "
     "and its slot checked, and restart the job on other nodes."},
    {"disk_failing", PART_DEVICES, 6, SEVERITY_ERROR, "replace_hardware", RESTART_ELSEWHERE,
     "A disk of {node} is about to fail: {said}",
     "Save what lies on it, drain {place} and have the disk replaced."},
    {"network_card", PART_DEVICES, 4, SEVERITY_ERROR, "check_link", RESTART_ELSEWHERE,
     "A network card of {node} or its link failed: {said}",
     "Keep jobs away from {place}: look at the port (ibstat, ip link), its cable and the other "
     "end, then at the card. Restart the job on other nodes."},
    {"pcie_lost", PART_DEVICES, 6, SEVERITY_CRITICAL, "drain_node", RESTART_ELSEWHERE,
     "A PCIe device of {node} went away: {said}",
     "Keep jobs away from {place}: look what sits in that slot, at its power and its seat, and "
     "reboot the node. Restart the job on other nodes."},
    {"network_tables", PART_DEVICES, 3, SEVERITY_WARNING, "fix_workload", RESTART_UNKNOWN,
     "{node} cannot open new connections, a table of its kernel is full: {said}",
     "Raise the limit on {place} (net.netfilter.nf_conntrack_max, or gc_thresh3 of net.ipv4.neigh "
     "and net.ipv6.neigh): as it is, ranks fail to reach one another when a job starts."},
    {"pid_limit", PART_PODS, 3, SEVERITY_WARNING, "fix_workload", RESTART_IN_VAIN,
     "A container on {node} passed its limit of processes: {said}",
     "Its threads and processes fail to start (Resource temporarily unavailable): raise the limit "
     "(podPidsLimit of the kubelet, --pids-limit), or start fewer data loader workers and "
     "threads."},
    {"memory_guard", PART_PODS, 4, SEVERITY_WARNING, "fix_workload", RESTART_IN_VAIN,
     "Memory of {node} ran short, and a service of it killed processes: {said}",
     "The kernel writes nothing of such a kill (systemd-oomd, earlyoom). Let the job use less "
     "memory of the machine, or look what else runs there."},
    {"pcie_narrow", PART_DEVICES, 2, SEVERITY_WARNING, "drain_node", RESTART_UNKNOWN,
     "The PCIe link of {part} is slower than the device: {said}",
     "Keep jobs away from {place} and have the device seated anew; then its riser and its slot "
     "checked. Ranks that use it are slower than the others."},
    {"iommu", PART_DEVICES, 5, SEVERITY_ERROR, "drain_node", RESTART_ELSEWHERE,
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
    case OBSERVATION_NODE_CONDITION: // one of which a row says what it means
        return observation_text(seen, FACT_CAUSE, &cause) ? find(cause) : CAUSE_NONE;
    default:
        return CAUSE_NONE;
    }
}
