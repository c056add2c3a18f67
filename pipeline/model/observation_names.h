// SPDX-License-Identifier: Apache-2.0
// The kinds of observations and the facts that they carry (observation.h): the one list of each.
//
// OBSERVATION(constant, "name") and FACT(constant, "name", type): included with one of them
// defined. No include guard: that is how it is used.
// clang-format off

#ifdef OBSERVATION
// Kernel: memory
OBSERVATION(OOM_KILL, "oom_kill")       // the out-of-memory killer ended a process
OBSERVATION(OOM_REAPED, "oom_reaped")
// Kernel: a process died by a fault
OBSERVATION(SEGFAULT, "segfault")
OBSERVATION(TRAP, "trap")               // an illegal instruction, a division by zero
OBSERVATION(CORE_DUMPED, "core_dumped")
// Kernel: the machine
OBSERVATION(SOFT_LOCKUP, "soft_lockup")
OBSERVATION(HARD_LOCKUP, "hard_lockup")
OBSERVATION(HUNG_TASK, "hung_task")
OBSERVATION(KERNEL_OOPS, "kernel_oops")
OBSERVATION(KERNEL_PANIC, "kernel_panic")
OBSERVATION(MACHINE_CHECK, "machine_check")
OBSERVATION(MEMORY_ERROR, "memory_error")
OBSERVATION(IO_ERROR, "io_error")
OBSERVATION(FS_ERROR, "fs_error")
OBSERVATION(NFS_STALL, "nfs_stall")
// Kernel: network cards
OBSERVATION(NIC_HEALTH, "nic_health")
OBSERVATION(NIC_COMMAND, "nic_command")
OBSERVATION(NIC_POWER, "nic_power")
OBSERVATION(NIC_MODULE, "nic_module")
OBSERVATION(NIC_LINK, "nic_link")
OBSERVATION(NETDEV_WATCHDOG, "netdev_watchdog")
// Kernel: GPUs that are not NVIDIA's
OBSERVATION(GPU_HANG, "gpu_hang")
OBSERVATION(GPU_RESET, "gpu_reset")
OBSERVATION(GPU_HARDWARE_ERROR, "gpu_hardware_error")
// Logs of ranks: the watchdog of a process group, NCCL, gloo, the store
OBSERVATION(WATCHDOG_END, "watchdog_end")
OBSERVATION(WATCHDOG_STACK, "watchdog_stack")
OBSERVATION(WATCHDOG_DUMP, "watchdog_dump")
OBSERVATION(WATCHDOG_TERMINATED, "watchdog_terminated")
OBSERVATION(WATCHDOG_STUCK, "watchdog_stuck")
OBSERVATION(GIL_HANG, "gil_hang")
OBSERVATION(NCCL_NET_ERROR, "nccl_net_error")
OBSERVATION(NCCL_PORT_ERROR, "nccl_port_error")
OBSERVATION(NCCL_PEER_CLOSED, "nccl_peer_closed")
OBSERVATION(NCCL_ERROR, "nccl_error")
OBSERVATION(PEER_CLOSED, "peer_closed")
OBSERVATION(COLLECTIVE_TIMEOUT, "collective_timeout")
OBSERVATION(STORE_LOST, "store_lost")
OBSERVATION(RENDEZVOUS_TIMEOUT, "rendezvous_timeout")
// Logs of ranks: how a process ended
OBSERVATION(EXCEPTION, "exception")
OBSERVATION(CUDA_OOM, "cuda_oom")
OBSERVATION(CUDA_ERROR, "cuda_error")
OBSERVATION(WORKER_KILLED, "worker_killed")
OBSERVATION(KILLED, "killed")
OBSERVATION(ABORT, "abort")
OBSERVATION(STACK, "stack")             // where a rank stood (py-spy)
// Logs of ranks: how far the job is
OBSERVATION(PROGRESS, "progress")       // counts, saved or loaded a checkpoint, or is done
// Launchers
OBSERVATION(ERROR_FILE, "error_file")
OBSERVATION(LAUNCHER_FAILED, "launcher_failed")
OBSERVATION(LAUNCHER_SIGNAL, "launcher_signal")
OBSERVATION(LAUNCHER_RESTART, "launcher_restart")
OBSERVATION(LAUNCHER_SUMMARY, "launcher_summary")
OBSERVATION(LAUNCHER_TOLD_TO_STOP, "launcher_told_to_stop")
OBSERVATION(LAUNCH_FAILED, "launch_failed") // a process or a daemon could not be started
OBSERVATION(NODE_LOST, "node_lost")         // a launcher lost a node, or its daemon there
OBSERVATION(PEER_LOST, "peer_lost")         // somebody names a process that it lost
OBSERVATION(JOB_STOPPED, "job_stopped")     // from outside: a time limit, a cancel, a preemption
OBSERVATION(SLURM_CANCELLED, "slurm_cancelled")
OBSERVATION(SLURM_OOM, "slurm_oom")
OBSERVATION(SLURM_TASK_EXIT, "slurm_task_exit")
OBSERVATION(SLURM_NODE_FAILURE, "slurm_node_failure")
OBSERVATION(SLURM_STATE, "slurm_state")
// NCCL RAS and Inspector, counters of network cards
OBSERVATION(RAS_RANK, "ras_rank")
OBSERVATION(RAS_MISSING, "ras_missing")
OBSERVATION(RAS_MISMATCH, "ras_mismatch")
OBSERVATION(RAS_PEER_DEAD, "ras_peer_dead")
OBSERVATION(RAS_PEER_NEW, "ras_peer_new")
OBSERVATION(INSPECTOR_COLL, "inspector_coll")
OBSERVATION(INSPECTOR_P2P, "inspector_p2p")
OBSERVATION(IB_COUNTER, "ib_counter")
OBSERVATION(IB_STATE, "ib_state")
// The cluster
OBSERVATION(CONTAINER_TERMINATED, "container_terminated")
OBSERVATION(POD_REJECTED, "pod_rejected")
OBSERVATION(POD_DISRUPTION, "pod_disruption")
OBSERVATION(NODE_CONDITION, "node_condition")
OBSERVATION(JOB_CONDITION, "job_condition")
OBSERVATION(HEALTH_EVENT, "health_event")
// Machines and their parts
OBSERVATION(NODE_STATE, "node_state")   // it starts or stops, or a driver or service of it does
OBSERVATION(NODE_FAULT, "node_fault")   // a part of it failed: the cause says how
// How a job is laid out, and what it tries
OBSERVATION(JOB_LAYOUT, "job_layout")         // on how many nodes, and where its ranks meet
OBSERVATION(CONNECT_FAILED, "connect_failed") // one try, which may be repeated
#undef OBSERVATION
#endif

#ifdef FACT
// Who
FACT(PID, "pid", NUMBER)                // as said: the host's in kernel lines, else the container's
FACT(PROCESS, "process", TEXT)
FACT(THREAD, "thread", TEXT)            // as Python names it
FACT(LOCAL_RANK, "local_rank", NUMBER)
FACT(GROUP_RANK, "group_rank", NUMBER)  // in a process group or communicator
FACT(TASK, "task", NUMBER)              // Slurm's
FACT(TASKS, "tasks", TEXT)
FACT(JOB, "job", TEXT)                  // as said: Slurm's number, or namespace/name
FACT(STEP, "step", TEXT)
FACT(POD, "pod", TEXT)
FACT(CONTAINER, "container", TEXT)
FACT(CONTAINER_ID, "container_id", TEXT)
FACT(UNIT_UID, "unit_uid", TEXT)        // uid of the pod
FACT(ADDRESS, "address", TEXT)          // IP address of who wrote it
FACT(HOSTS, "hosts", TEXT)
FACT(FROM_HOST, "from_host", TEXT)      // who told, not who is meant
FACT(PEER, "peer", TEXT)                // host or address of the other end
FACT(MEETING, "meeting", TEXT)         // host or address, and port, where the ranks of a job meet
FACT(NODES, "nodes", NUMBER)           // of a job
FACT(PEER_RANK, "peer_rank", NUMBER)   // in a communicator, as the group_rank is
FACT(NOTICED_BY_RANK, "noticed_by_rank", NUMBER)
FACT(OTHER_PID, "other_pid", NUMBER)
FACT(BY_UID, "by_uid", NUMBER)
// Devices
FACT(GPU, "gpu", PCI)
FACT(NIC, "nic", PCI)
FACT(PCI, "pci", PCI)
FACT(GPU_UUID, "gpu_uuid", TEXT)
FACT(DEVICE, "device", TEXT)            // "mlx5_3", "nvme0n1", "eth0"
FACT(DEVICE_INDEX, "device", NUMBER)    // of a GPU as the process sees it
FACT(CUDA_DEVICE, "cuda_device", NUMBER)
FACT(NVML_DEVICE, "nvml_device", NUMBER)
FACT(PORT, "port", NUMBER)
FACT(LINK, "link", NUMBER)
FACT(CPU, "cpu", NUMBER)
FACT(DRIVER, "driver", TEXT)
FACT(VENDOR, "vendor", TEXT)
FACT(NODE_OF_TOPOLOGY, "node_of_topology", NUMBER)
// What happened
FACT(SIGNAL, "signal", NUMBER)
FACT(EXIT_CODE, "exit_code", NUMBER)
FACT(REASON, "reason", TEXT)
FACT(CAUSE, "cause", TEXT)
FACT(ROLE, "role", TEXT)                // whose end it is: own, lost_peer, waited, told, report, …
FACT(EXCEPTION, "exception", TEXT)      // the type
FACT(LAST_EXCEPTION, "last_exception", TEXT)
FACT(LAST_MESSAGE, "last_message", TEXT)
FACT(MESSAGE, "message", TEXT)
FACT(ERROR, "error", TEXT)
FACT(CODE, "code", TEXT)
FACT(STATE, "state", TEXT)
FACT(STATUS, "status", TEXT)
FACT(CONDITION, "condition", TEXT)
FACT(SCOPE, "scope", TEXT)              // "cgroup" or "machine"
FACT(SEVERITY, "severity", TEXT)
FACT(SYNDROME, "syndrome", TEXT)
FACT(UNIT, "unit", TEXT)
FACT(ACTION, "action", TEXT)
FACT(LIBRARY, "library", TEXT)
FACT(FS, "fs", TEXT)
FACT(SERVER, "server", TEXT)
FACT(SWITCH, "switch", TEXT)
FACT(ERROR_FILE, "error_file", TEXT)
FACT(XID, "xid", NUMBER)
FACT(SXID, "sxid", NUMBER)
FACT(CAUSED_BY_XID, "caused_by_xid", NUMBER)
FACT(WC_STATUS, "wc_status", NUMBER)    // of an InfiniBand work completion
FACT(ASYNC_ERROR, "async_error", NUMBER)
FACT(SECONDS, "seconds", NUMBER)
FACT(COUNT, "count", NUMBER)
FACT(RESTARTS, "restarts", NUMBER)
FACT(ATTEMPT, "attempt", NUMBER)
FACT(ATTEMPTS_LEFT, "attempts_left", NUMBER)
FACT(ITERATION, "iteration", NUMBER)    // of training, in the program's own words a step or batch
FACT(TOTAL, "total", NUMBER)            // … that it is to reach
FACT(EPOCH, "epoch", TEXT)              // as written: "3", "0.34"
FACT(JOINED, "joined", NUMBER)
FACT(EXPECTED, "expected", NUMBER)
FACT(FATAL, "fatal", YES_NO)
FACT(VICTIM, "victim", YES_NO)          // this end follows from another's
FACT(HARDWARE, "hardware", YES_NO)
FACT(CORRECTED, "corrected", YES_NO)
FACT(TRUNCATED, "truncated", YES_NO)    // what was there of it
FACT(FIRST, "first", YES_NO)
FACT(MISSING, "missing", YES_NO)
FACT(UNRESPONSIVE, "unresponsive", YES_NO)
FACT(CONSIDERED_DEAD, "considered_dead", YES_NO)
FACT(BAD, "bad", YES_NO)
FACT(HEALTHY, "healthy", YES_NO)
FACT(SATURATED, "saturated", YES_NO)
// Collectives
FACT(COMMUNICATOR, "communicator", TEXT)
FACT(GROUP, "group", TEXT)
FACT(GROUP_DESC, "group_desc", TEXT)
FACT(OP, "op", TEXT)
FACT(SEQ, "seq", NUMBER)
FACT(SIZE, "size", NUMBER)              // ranks of a communicator
FACT(COUNTS, "counts", TEXT)            // JSON object, operation: how many
FACT(LAST_ENQUEUED, "last_enqueued", NUMBER)
FACT(LAST_COMPLETED, "last_completed", NUMBER)
FACT(NUMEL_IN, "numel_in", NUMBER)
FACT(NUMEL_OUT, "numel_out", NUMBER)
FACT(TIMEOUT_MS, "timeout_ms", NUMBER)
FACT(RAN_MS, "ran_ms", NUMBER)
FACT(EXEC_US, "exec_us", NUMBER)
FACT(INIT_STATE, "init_state", NUMBER)
// Sizes and counters
FACT(COUNTER, "counter", TEXT)
FACT(VALUE, "value", NUMBER)
FACT(ANON_RSS_BYTES, "anon_rss_bytes", NUMBER)
FACT(TRIED_BYTES, "tried_bytes", NUMBER)
FACT(TOTAL_BYTES, "total_bytes", NUMBER)
FACT(FREE_BYTES, "free_bytes", NUMBER)
FACT(ALLOCATED_BYTES, "allocated_bytes", NUMBER)
FACT(RESERVED_UNALLOCATED_BYTES, "reserved_unallocated_bytes", NUMBER)
FACT(STACK, "stack", TEXT)
FACT(FRAME, "frame", TEXT)              // innermost: "function (file:line)"
FACT(RAISED_NS, "raised_ns", NUMBER)
#undef FACT
#endif
