// SPDX-License-Identifier: Apache-2.0
// The forms are those of tests/golden/field, whose README says where each comes from.
#include "bench/made_kinds.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

static const uint64_t START_NS = UINT64_C(1763460000000000000);

#define RANK_LINE "@Z stderr F [rank@r]: "
#define RANK_GLOG "@Z stderr F [rank@r]:[E@g "
#define KERNEL    "@Z gpu-node-@n kernel: "
#define POD                                                                                        \
    "\"metadata\":{\"name\":\"trainer-@r\",\"namespace\":\"ml\","                                  \
    "\"uid\":\"0d9e2a41-6f0b-4f0e-8a53-1c2d3e4f5a@h\"}"
#define STATUS                                                                                     \
    "\"status\":{\"init_state\":0,\"async_error\":0,\"finalize_called\":false,"                    \
    "\"destroy_flag\":false,\"abort_flag\":false},\"collective_counts\":{\"Broadcast\":2,"         \
    "\"Reduce\":0,\"AllGather\":0,\"ReduceScatter\":0,\"AllReduce\":@c}}"
#define FRAME(name, line)                                                                          \
    "{\"name\":\"" name                                                                            \
    "\",\"filename\":\"/srv/job/train.py\",\"module\":null,"                                       \
    "\"short_filename\":\"train.py\",\"line\":" #line                                              \
    ",\"locals\":null,\"is_entry\":true,\"is_shim_entry\":false}"

#define DUMPED(record, group, desc, sequence, state)                                               \
    "{\"record_id\":" #record ",\"pg_id\":" #group ",\"process_group\":[\"" #group "\",\"" desc    \
    "\"],\"thread_name\":\"pt_main_thread\",\"thread_id\":\"139700000000000\","                    \
    "\"collective_seq_id\":" sequence ",\"p2p_seq_id\":0,\"op_id\":" #record                       \
    ",\"profiling_name\":\"nccl:all_reduce\",\"time_created_ns\":@N,\"duration_ms\":1.25,"         \
    "\"input_sizes\":[[4096,4096]],\"input_dtypes\":[\"BFloat16\"],\"output_sizes\":[[4096,4096]]" \
    ","                                                                                            \
    "\"output_dtypes\":[\"BFloat16\"],\"state\":\"" state                                          \
    "\",\"time_discovered_started_ns\":@N,"                                                        \
    "\"time_discovered_completed_ns\":@N,\"retired\":true,\"timeout_ms\":600000,\"is_p2p\":false}"
#define GPU                                                                                        \
    "\"k8s.node.name\":\"gpu-node-@n\",\"host.name\":\"gpu-node-@n\",\"gpu\":\"@l\","              \
    "\"UUID\":\"GPU-dfe7e2d1-ced0-40a5-a6bd-bb7df650cc@h\",\"pci_bus_id\":\"00000000:4@l:00.0\","  \
    "\"device\":\"nvidia@l\",\"modelName\":\"NVIDIA H100 80GB HBM3\""

const struct made_kind MADE_KINDS[] = {
    {"watchdog",
     RANK_GLOG "ProcessGroupNCCL.cpp:683] [Rank @r] Watchdog caught collective operation timeout: "
               "WorkNCCL(SeqNum=@c, OpType=ALLREDUCE, NumelIn=8388608, NumelOut=8388608, "
               "Timeout(ms)=1800000) ran for 1800051 milliseconds before timing out.\n" RANK_GLOG
               "ProcessGroupNCCL.cpp:2395] [PG ID 0 PG GUID 0(default_pg) Rank @r]  failure "
               "detected by watchdog at work sequence id: @c PG status: last enqueued work: @c, "
               "last completed work: @d\n",
     false},
    {"traceback",
     RANK_LINE "Traceback (most recent call last):\n" RANK_LINE
               "  File \"/w/train.py\", line 201, in <module>\n" RANK_LINE "    main()\n" RANK_LINE
               "  File \"/w/train.py\", line 160, in main\n" RANK_LINE
               "    batch = next(loader)\n" RANK_LINE "            ^^^^^^^^^^^^\n" RANK_LINE
               "FileNotFoundError: [Errno 2] No such file or directory: '/data/shard.tar'\n",
     false},
    {"cuda_error",
     RANK_LINE "torch.AcceleratorError: CUDA error: unspecified launch failure\n" RANK_LINE
               "CUDA kernel errors might be asynchronously reported at some other API call, so the "
               "stacktrace below might be incorrect.\n" RANK_LINE
               "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n",
     false},
    {"nccl_ib_error",
     "@Z stderr F gpu-node-@n:@p:41390 [3] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got "
     "completion from peer 10.20.0.5<50117> with error 12, opcode 0, len 0, vendor err 129 "
     "(Recv)\n",
     false},
    {"torchrun_summary",
     "E@g 88410 torch/distributed/elastic/multiprocessing/api.py:984] failed (exitcode: -9) "
     "local_rank: @l (pid: @p) of binary: /usr/bin/python3\n"
     "Traceback (most recent call last):\n"
     "  File \"/usr/local/bin/torchrun\", line 8, in <module>\n"
     "    sys.exit(main())\n"
     "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
     "============================================================\n"
     "train.py FAILED\n"
     "------------------------------------------------------------\n"
     "Failures:\n"
     "  <NO_OTHER_FAILURES>\n"
     "------------------------------------------------------------\n"
     "Root Cause (first observed failure):\n"
     "[0]:\n"
     "  time      : @S\n"
     "  host      : gpu-node-@n\n"
     "  rank      : @r (local_rank: @l)\n"
     "  exitcode  : -9 (pid: @p)\n"
     "  error_file: <N/A>\n"
     "  traceback : Signal 9 (SIGKILL) received by PID @p\n"
     "============================================================\n",
     false},
    {"error_file",
     "{\"source\":\"error_file\",\"host.name\":\"gpu-node-@n\",\"path\":\"/logs/run/attempt_0/@l/"
     "error.json\",\"document\":{\"message\":{\"message\":\"IndexError: index out of range in "
     "self\",\"extraInfo\":{\"py_callstack\":\"Traceback (most recent call last):\\n  File "
     "\\\"/srv/job/train.py\\\", line 12, in main\\n    dist.all_reduce(x)\\nIndexError: index out "
     "of range in self\",\"timestamp\":\"@s\"}}},\"observed_time_ns\":@N}\n",
     false},
    {"terminated_state",
     "{\"apiVersion\":\"v1\",\"kind\":\"Pod\"," POD ",\"spec\":{\"nodeName\":\"gpu-node-@n\"},"
     "\"status\":{\"phase\":\"Failed\",\"containerStatuses\":[{\"name\":\"worker\",\"containerID\":"
     "\"containerd://4be14be14be14be14be14be14be14be14be14be14be14be14be14be14be14be1\","
     "\"restartCount\":0,\"state\":{\"terminated\":{\"exitCode\":137,\"reason\":\"OOMKilled\","
     "\"startedAt\":\"2025-11-18T00:00:00Z\",\"finishedAt\":\"@O\",\"containerID\":\"containerd://"
     "4be14be14be14be14be14be14be14be14be14be14be14be14be14be14be14be1\"}}}]}}\n",
     false},
    {"slurmstepd",
     "slurmstepd: error: *** STEP 88110.0 ON gpu-node-@n CANCELLED AT @o DUE TO TIME LIMIT ***\n",
     false},
    {"slurm_task_end", "@Z stderr F srun: error: gpu-node-@n: task @r: Exited with exit code 1\n",
     false},
    {"py_spy",
     "Process @p: /usr/bin/python3 train.py --epochs 3\n"
     "Python v3.11.7 (/usr/bin/python3.11)\n"
     "\n"
     "Thread @p (idle): \"MainThread\"\n"
     "    all_reduce (train.py:6)\n"
     "    step (train.py:8)\n"
     "    Trainer.fit (train.py:12)\n"
     "    <module> (train.py:18)\n"
     "Thread 14196 (idle): \"feeder\"\n"
     "    Condition.wait (threading.py:327)\n"
     "    Queue.get (queue.py:171)\n"
     "    feeder (train.py:4)\n"
     "    Thread.run (threading.py:982)\n",
     false},
    {"py_spy_json",
     "{\"pid\":@p,\"thread_id\":140361643132608,\"thread_name\":\"MainThread\",\"os_thread_id\":@"
     "p,"
     "\"active\":false,\"owns_gil\":false,\"frames\":[" FRAME("all_reduce", 6) "," FRAME(
         "step", 8) "," FRAME("Trainer.fit", 12) "," FRAME("<module>", 18) "]}\n",
     true},
    {"nccl_ras",
     "{\"nccl_version\":\"2.29.2\",\"cuda_runtime_version\":13000,\"cuda_driver_version\":13000,"
     "\"timestamp\":\"@q\",\"communicators_count\":1,\"communicators\":[{\"hash\":"
     "\"0x51c0ffee00112233\",\"secondary_hash\":\"0x1111222233334444:0x5555666677778888\",\"size\":"
     "3,\"ranks_count\":2,\"missing_ranks_count\":1,\"ranks\":[{\"rank\":0,\"host\":\"10.20.0.7\","
     "\"pid\":81200,\"cuda_dev\":0,\"nvml_dev\":4," STATUS
     ",{\"rank\":1,\"host\":\"10.20.0.7\",\"pid\":81201,\"cuda_dev\":0,\"nvml_dev\":5," STATUS
     "],\"missing_ranks\":[{\"rank\":2,\"host\":\"10.20.0.8\",\"pid\":90012,\"cuda_dev\":0,"
     "\"nvml_dev\":0,\"status\":{\"unresponsive\":true,\"considered_dead\":false}}]}],\"ras\":{"
     "\"collection_time_sec\":2.051,\"timeouts_count\":1}}\n",
     true},
    {"nccl_ras_monitor", "[@q] PEER_DEAD: Process @c on node 10.20.0.@l managing GPU @l\n", false},
    {"nccl_inspector",
     "{\"header\":{\"id\":\"0x00c0ffee00a1b2\",\"comm_name\":\"dp\",\"rank\":@r,\"n_ranks\":64,"
     "\"nnodes\":8},\"metadata\":{\"inspector_output_format_version\":\"v4.0\",\"git_rev\":\"\","
     "\"rec_mechanism\":\"nccl_profiler_interface\",\"dump_timestamp_us\":@u,\"hostname\":"
     "\"gpu-node-@n\",\"pid\":@p},\"coll_perf\":{\"coll\":\"AllReduce\",\"coll_sn\":@c,"
     "\"coll_msg_size_bytes\":1048576,\"coll_exec_time_us\":40912,\"coll_timing_source\":"
     "\"kernel_gpu\",\"coll_algobw_gbs\":277.2,\"coll_busbw_gbs\":485.1}}\n",
     false},
    {"ib_counters",
     "{\"source\":\"ib_counters\",\"timestamp_ns\":@N,\"k8s.node.name\":\"gpu-node-@n\",\"device\":"
     "\"mlx5_@l\",\"port\":1,\"pci_bus_id\":\"0000:9@l:00.0\",\"state\":\"4: ACTIVE\","
     "\"phys_state\":\"5: LinkUp\",\"link_layer\":\"InfiniBand\",\"rate\":\"400 Gb/sec (4X NDR)\","
     "\"counters\":{\"link_downed\":\"0\",\"symbol_error\":\"12\",\"port_rcv_errors\":\"0\","
     "\"link_error_recovery\":\"0\",\"local_link_integrity_errors\":\"0\",\"port_xmit_data\":\"@"
     "N\","
     "\"port_rcv_data\":\"@N\"},\"hw_counters\":{\"out_of_sequence\":\"3\"}}\n",
     false},
    {"sxid",
     KERNEL "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 24007, Fatal, Link 41 sourcetrack timeout "
            "error (First)\n" KERNEL "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 24007, Severity 1 "
            "Engine instance 41 Sub-engine instance 00\n" KERNEL
            "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 24007, Data {0x50610002, 0x10100030, "
            "0x00000000}\n",
     false},
    {"xid",
     KERNEL "NVRM: Xid (PCI:0000:9@l:00): 79, pid=@p, name=python3, GPU has fallen off the bus.\n",
     false},
    {"kernel_oom",
     KERNEL "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, "
            "oom_score_adj=985\n" KERNEL
            "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=cri-containerd-4be1.scope,"
            "mems_allowed=0-1,oom_memcg=/kubepods.slice,task_memcg=/kubepods.slice,task=python3,"
            "pid=@p,uid=0\n" KERNEL
            "Memory cgroup out of memory: Killed process @p (python3) total-vm:124000000kB, "
            "anon-rss:63600000kB, file-rss:400000kB, shmem-rss:0kB, UID:0 pgtables:126953kB "
            "oom_score_adj:985\n",
     false},
    {"segfault",
     KERNEL "python3[@p]: segfault at 7f0000000008 ip 00007f31aa0410c6 sp 00007f2e11ffd9f0 error 4 "
            "in libtorch_cuda.so[7f31a9e00000+c9a4000] likely on CPU 3 (core 3, socket 0)\n",
     false},
    {"machine_check",
     KERNEL "mce: [Hardware Error]: CPU 4: Machine Check: 0 Bank 5: be00000000800400\n", false},
    {"mlx5_health",
     KERNEL "mlx5_core 0000:9@l:00.0: poll_health:840:(pid 0): device's health compromised - "
            "reached miss count\n",
     false},
    {"link_down", KERNEL "mlx5_core 0000:9@l:00.0 ens1f@lnp0: Link down\n", false},
    {"netdev_watchdog",
     KERNEL "NETDEV WATCHDOG: eth@l (mlx5_core): transmit queue 3 timed out 5120 ms\n", false},
    {"nvsentinel",
     "{\"specversion\":\"1.0\",\"type\":\"com.nvidia.nvsentinel.health.v1\",\"source\":"
     "\"nvsentinel://prod-7/"
     "healthevents\",\"id\":\"3e2f1a00-0000-4000-8000-000000000001\",\"time\":"
     "\"@O\",\"data\":{\"metadata\":{\"cluster\":\"prod-7\"},\"healthEvent\":{\"version\":1,"
     "\"agent\":\"syslog-health-monitor\",\"componentClass\":\"GPU\",\"checkName\":"
     "\"SysLogsXIDError\",\"isFatal\":true,\"isHealthy\":false,\"message\":\"NVRM: Xid "
     "(PCI:0000:9@l:00): 79, GPU has fallen off the bus.\",\"recommendedAction\":15,\"errorCode\":"
     "[\"79\"],\"entitiesImpacted\":[{\"entityType\":\"PCI\",\"entityValue\":\"0000:9@l:00\"}],"
     "\"generatedTimestamp\":\"@O\",\"nodeName\":\"gpu-node-@n\"}}}\n",
     false},
    {"node_condition",
     "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"gpu-node-@n\"},\"status\":{"
     "\"conditions\":[{\"type\":\"Ready\",\"status\":\"Unknown\",\"reason\":\"NodeStatusUnknown\","
     "\"message\":\"Kubelet stopped posting node status.\",\"lastTransitionTime\":\"@O\"}]}}\n",
     false},
    {"pod_evicted",
     "{\"source\":\"k8s_watch\",\"observed_time_ns\":@N,\"type\":\"ADDED\",\"object\":{"
     "\"apiVersion\":"
     "\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"trainer-@r.0e54556b9b@h\",\"namespace\":"
     "\"ml\","
     "\"uid\":\"0e54556b-9bd1-45d2-a964-e6f384835a@h\",\"resourceVersion\":\"@c\","
     "\"creationTimestamp\":\"@O\"},\"involvedObject\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\","
     "\"name\":\"trainer-@r\",\"namespace\":\"ml\",\"uid\":"
     "\"0d9e2a41-6f0b-4f0e-8a53-1c2d3e4f5a@h\"},\"reason\":\"Evicted\",\"message\":\"The node was "
     "low "
     "on resource: memory. Threshold quantity: 100Mi, available: 90Mi. "
     "\",\"source\":{\"component\":"
     "\"kubelet\",\"host\":\"gpu-node-@n\"},\"firstTimestamp\":\"@O\",\"lastTimestamp\":\"@O\","
     "\"count\":1,\"type\":\"Warning\"}}\n",
     false},
    {"fr_dump",
     "{\"source\":\"fr_dump\",\"observed_time_ns\":@N,\"host.name\":\"gpu-node-@n\",\"rank\":@r,"
     "\"dump\":{\"version\":\"2.10\",\"comm_lib_version\":\"2.28.9\",\"pg_config\":{\"0\":{"
     "\"name\":"
     "\"0\",\"desc\":\"default_pg\",\"ranks\":\"[0, 1, 2, 3, 4, 5, 6, 7]\"},\"1\":{\"name\":\"1\","
     "\"desc\":\"tp\",\"ranks\":\"[0, "
     "1]\"}},\"pg_status\":{\"0\":{\"last_enqueued_collective\":\"@c\","
     "\"last_started_collective\":\"@c\",\"last_completed_collective\":\"@d\"}},\"entries\":"
     "[" DUMPED(500, 0, "default_pg", "@d", "completed") "," DUMPED(
         501, 1, "tp", "7", "completed") "," DUMPED(502, 1, "tp", "8",
                                                    "completed") "," DUMPED(503, 0, "default_pg",
                                                                            "@c",
                                                                            "started") "]}}\n",
     false},
    {"dcgm",
     "{\"source\":\"dcgm\",\"timestamp_ns\":@N," GPU ",\"fields\":{"
     "\"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL\":@c,\"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL\":0,"
     "\"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS\":1,\"DCGM_FI_DEV_ROW_REMAP_PENDING\":0,"
     "\"DCGM_FI_DEV_ROW_REMAP_FAILURE\":0,\"DCGM_FI_DEV_CLOCKS_EVENT_REASONS\":4,"
     "\"DCGM_FI_DEV_GPU_TEMP\":71,\"DCGM_FI_DEV_MEMORY_TEMP\":78,\"DCGM_FI_DEV_SM_CLOCK\":1830,"
     "\"DCGM_FI_DEV_PCIE_LINK_WIDTH\":16,\"DCGM_FI_DEV_PCIE_REPLAY_COUNTER\":@d}}\n",
     false},
    {"throttled",
     "{\"source\":\"dcgm\",\"timestamp_ns\":@N," GPU ",\"fields\":{"
     "\"DCGM_FI_DEV_CLOCKS_EVENT_REASONS\":64,\"DCGM_FI_DEV_GPU_TEMP\":93,"
     "\"DCGM_FI_DEV_MEMORY_TEMP\":101,\"DCGM_FI_DEV_SM_CLOCK\":705}}\n",
     false},
    {"sysfs_aer",
     "{\"source\":\"sysfs_aer\",\"timestamp_ns\":@N,\"k8s.node.name\":\"gpu-node-@n\","
     "\"host.name\":\"gpu-node-@n\",\"pci_bus_id\":\"0000:4@l:00.0\",\"aer_dev_correctable\":"
     "\"RxErr @c\\nBadTLP 0\\nBadDLLP 0\\nRollover 0\\nTimeout 0\\nNonFatalErr 0\\nCorrIntErr 0\\n"
     "HeaderOF 0\\nTOTAL_ERR_COR @c\\n\",\"aer_dev_nonfatal\":\"TOTAL_ERR_NONFATAL 0\\n\","
     "\"aer_dev_fatal\":\"TOTAL_ERR_FATAL 0\\n\"}\n",
     false},
    {"rank_map",
     "{\"source\":\"rank_map\",\"observed_time_ns\":@N,\"host.name\":\"gpu-node-@n\",\"rank\":@r,"
     "\"local_rank\":@l,\"process.pid\":@p,\"pci_bus_id\":\"00000000:4@l:00.0\"}\n",
     false},
    // As a node's agent finds it: what a trainer prints, and now and then a line that counts.
    {"pod_log",
     "@Z stdout F [rank@r]: step @c loss 2.3184 grad_norm 0.8125 lr 0.000300 tokens/s 51200\n"
     "@Z stdout F [rank@r]: step @c data 12 ms forward 88 ms backward 170 ms optimizer 21 ms\n"
     "@Z stderr F [rank@r]: /w/train.py:88: UserWarning: the given buffer is not writable\n"
     "@Z stdout F gpu-node-@n:@p:@p [@l] NCCL INFO Channel 00/0 : @l[@l] -> 0[0] via P2P/IPC\n"
     "@Z stderr F [rank@r]: RuntimeError: DataLoader worker (pid @p) is killed by signal: "
     "Killed.\n",
     false},
};
const uint32_t MADE_KIND_COUNT = sizeof MADE_KINDS / sizeof *MADE_KINDS;

uint64_t made_kind_time_ns(uint64_t number, uint64_t step_ns) {
    return START_NS + number * step_ns;
}

static size_t time_write(char letter, uint64_t time_ns, char *out, size_t room) {
    time_t seconds = (time_t)(time_ns / 1000000000);
    unsigned nanoseconds = (unsigned)(time_ns % 1000000000);
    struct tm parts;
    char date[32];
    gmtime_r(&seconds, &parts);
    const char *form = letter == 'g'   ? "%m%d %H:%M:%S"
                       : letter == 'S' ? "%Y-%m-%d_%H:%M:%S"
                       : letter == 'q' ? "%Y-%m-%d %H:%M:%S"
                       : letter == 'O' ? "%Y-%m-%dT%H:%M:%SZ"
                                       : "%Y-%m-%dT%H:%M:%S";
    strftime(date, sizeof date, form, &parts);
    int size = letter == 'g'   ? snprintf(out, room, "%s.%09u", date, nanoseconds)
               : letter == 'Z' ? snprintf(out, room, "%s.%09uZ", date, nanoseconds)
                               : snprintf(out, room, "%s", date);
    return (size_t)size;
}

static size_t value_write(char letter, uint64_t number, uint64_t time_ns, char *out, size_t room) {
    uint64_t rank = number % MADE_RANKS;
    uint64_t round = number / MADE_RANKS;
    int size = 0;
    switch (letter) {
    case 'r':
        size = snprintf(out, room, "%" PRIu64, rank);
        break;
    case 'l':
        size = snprintf(out, room, "%" PRIu64, rank % 8);
        break;
    case 'n':
        size = snprintf(out, room, "%02" PRIu64, rank / 8);
        break;
    case 'h':
        size = snprintf(out, room, "%02" PRIx64, rank);
        break;
    case 'p':
        size = snprintf(out, room, "%" PRIu64, 40000 + rank);
        break;
    case 'c':
        size = snprintf(out, room, "%" PRIu64, round + 1);
        break;
    case 'd':
        size = snprintf(out, room, "%" PRIu64, round);
        break;
    case 'N':
        size = snprintf(out, room, "%" PRIu64, time_ns);
        break;
    case 'u':
        size = snprintf(out, room, "%" PRIu64, time_ns / 1000);
        break;
    case 's':
        size = snprintf(out, room, "%" PRIu64, time_ns / 1000000000);
        break;
    default:
        return time_write(letter, time_ns, out, room);
    }
    return (size_t)size;
}

size_t made_kind_write(const struct made_kind *kind, uint64_t number, uint64_t step_ns, char *out) {
    uint64_t time_ns = made_kind_time_ns(number, step_ns);
    size_t size = 0;
    for (const char *at = kind->text; *at != '\0'; at++) {
        assert(size < MADE_KIND_MAX - 64);
        if (*at == '@')
            size += value_write(*++at, number, time_ns, out + size, MADE_KIND_MAX - size);
        else
            out[size++] = *at;
    }
    return size;
}
