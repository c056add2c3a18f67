// SPDX-License-Identifier: Apache-2.0
// Which observations are signs of a failure (signs.h), and how each is said: the one list of them.
//
// SIGN(constant, flags, words), included with SIGN defined. No include guard: that is how it is
// used. In the words stand facts in braces, {*} is the message as it was written. What stands in
// brackets is left out where one of its facts was not said; of several that are parted by "|" the
// first whose facts were said counts.
// clang-format off

// The kernel
SIGN(OOM_KILL, OF_NODE | ENDS, "the kernel killed [{process} ][(pid {pid}) ]because memory ran out")
SIGN(SEGFAULT, OF_NODE | ENDS, "[{process} ][(pid {pid}) ]crashed (SIGSEGV)[ in {library}]")
SIGN(TRAP, OF_NODE | ENDS, "[{process} ][(pid {pid}) ]was ended by a trap: {*}")
SIGN(SOFT_LOCKUP, OF_NODE, "{*}")
SIGN(HARD_LOCKUP, OF_NODE, "{*}")
SIGN(HUNG_TASK, OF_NODE, "{*}")
SIGN(KERNEL_OOPS, OF_NODE, "the kernel reports a fault of its own: {*}")
SIGN(KERNEL_PANIC, OF_NODE | ENDS, "the kernel stopped the machine: {*}")
SIGN(MACHINE_CHECK, OF_NODE, "{*}")
SIGN(MEMORY_ERROR, OF_NODE, "{*}")
SIGN(IO_ERROR, OF_NODE, "{*}")
SIGN(FS_ERROR, OF_NODE, "{*}")
SIGN(NFS_STALL, OF_NODE | STATE, "{*}")
SIGN(NETDEV_WATCHDOG, OF_NODE, "{*}")
SIGN(GPU_HANG, OF_NODE | STATE, "{*}")
// Ranks: lost peers and waits
SIGN(WATCHDOG_END, FOLLOWS | ENDS, "[raised {exception}[: {message}]]|[{*}]")
SIGN(WATCHDOG_TERMINATED, FOLLOWS | ENDS, "[raised {exception}[: {message}]]|[{*}]")
SIGN(WATCHDOG_STUCK, FOLLOWS, "{*}")
SIGN(GIL_HANG, FOLLOWS, "{*}")
SIGN(NCCL_NET_ERROR, FOLLOWS, "[raised {exception}[: {message}]]|[{*}]")
SIGN(NCCL_PORT_ERROR, 0, "[raised {exception}[: {message}]]|[{*}]")
SIGN(NCCL_PEER_CLOSED, FOLLOWS, "[raised {exception}[: {message}]]|[{*}]")
SIGN(NCCL_ERROR, FOLLOWS, "[raised {exception}: {error}]|[raised {exception}[: {message}]]|[{*}]")
SIGN(PEER_CLOSED, FOLLOWS, "[raised {exception}[: {message}]]|[{*}]")
SIGN(COLLECTIVE_TIMEOUT, FOLLOWS, "[raised {exception}[: {message}]]|[{*}]")
SIGN(STORE_LOST, FOLLOWS, "[raised {exception}[: {message}]]|[{*}]")
SIGN(RENDEZVOUS_TIMEOUT, FOLLOWS, "[only {joined} of {expected} joined: ][raised {exception}[: {message}]]|[{*}]")
// Ranks: their own ends
SIGN(EXCEPTION, ENDS, "[raised {exception}[: {message}][; then {last_exception}[: {last_message}]]]|[{*}]")
SIGN(CUDA_OOM, ENDS, "ran out of GPU memory: [{message}]|[{*}]")
SIGN(CUDA_ERROR, ENDS, "[raised {exception}[: {message}]]|[{*}]")
SIGN(WORKER_KILLED, ENDS, "[raised {exception}[: {message}]]|[{*}]")
SIGN(KILLED, ENDS, "[raised {exception}[: {message}]]|[{*}]")
SIGN(ABORT, ENDS, "[raised {exception}[: {message}]]|[{*}]")
// Launchers and schedulers
SIGN(ERROR_FILE, ENDS, "left an error file: {*}")
SIGN(LAUNCHER_FAILED, REPORT | ENDS, "its launcher says that it [was ended by signal {signal}]|[left with exit code {exit_code}]|[{reason}]|[failed]")
SIGN(LAUNCHER_SUMMARY, REPORT | ENDS, "its launcher says that it [was ended by signal {signal}]|[left with exit code {exit_code}]|[failed]")
SIGN(LAUNCHER_TOLD_TO_STOP, FOLLOWS | ENDS, "its launcher was told to stop: {*}")
SIGN(LAUNCH_FAILED, ENDS, "{*}[ {process}][: {error}][: {reason}]")
SIGN(NODE_LOST, ENDS, "{*}")
SIGN(PEER_LOST, FOLLOWS, "{*}[ (it lost {peer})]")
SIGN(JOB_STOPPED, FOLLOWS | ENDS, "{*}")
SIGN(SLURM_CANCELLED, FOLLOWS | ENDS, "{*}")
SIGN(SLURM_OOM, ENDS, "{*}")
SIGN(SLURM_TASK_EXIT, REPORT | ENDS, "{*}")
SIGN(SLURM_NODE_FAILURE, ENDS, "{*}")
// NCCL RAS
SIGN(RAS_MISSING, FOLLOWS, "{*}")
SIGN(RAS_MISMATCH, FOLLOWS, "{*}")
SIGN(RAS_PEER_DEAD, 0, "{*}")
// The cluster
SIGN(CONTAINER_TERMINATED, ENDS, "[its container {container} ended]|[its container ended][: {reason}][, exit code {exit_code}][, signal {signal}][: {message}]")
SIGN(POD_REJECTED, ENDS, "Kubernetes refused the pod[: {reason}][: {message}]")
SIGN(POD_DISRUPTION, ENDS, "Kubernetes took the pod away[: {reason}][: {message}]")
SIGN(NODE_CONDITION, OF_NODE | STATE, "Kubernetes says {condition} is {status}[: {reason}][: {message}]")
SIGN(JOB_CONDITION, ENDS, "Kubernetes says that {job} is {condition}[: {reason}][: {message}]")
SIGN(HEALTH_EVENT, OF_NODE | STATE, "{*}")
// Machines
SIGN(NODE_FAULT, OF_NODE, "{*}")
// No failures by themselves
SIGN(CONNECT_FAILED, FOLLOWS | BESIDE, "{*}")
SIGN(JOB_LAYOUT, BESIDE, SIGN_MEETS "{meeting}")
#undef SIGN
