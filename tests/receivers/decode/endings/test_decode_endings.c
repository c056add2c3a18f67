// SPDX-License-Identifier: Apache-2.0
// How processes ended, as ranks' logs and launchers tell it: samples of the field and what each
// becomes, the same cut at every byte, and what only looks like one.
#include "receivers/decode/line/gather.h"
#include "tests/receivers/decode/endings/endings_fixture.h"

static struct reading_log whole, part;

static void teardown(void) {
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

#define OOM                                                                                        \
    "Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.00 GiB of which 512.00 MiB is "  \
    "free. Process 90112 has 70.00 GiB memory in use. Including non-PyTorch memory, this process " \
    "has 8.00 GiB memory in use. Of the allocated memory 7.00 GiB is allocated by PyTorch, and "   \
    "256.00 MiB is reserved by PyTorch but unallocated."
#define OOM_OLD                                                                                    \
    "Tried to allocate 2.00 GiB (GPU 3; 40.00 GiB total capacity; 35.00 GiB already allocated; "   \
    "1.00 GiB free; 36.00 GiB reserved in total by PyTorch) If reserved memory is >> allocated"
#define ELASTIC "torch/distributed/elastic/multiprocessing/api.py:984] "
#define DSA                                                                                        \
    "[rank0]: CUDA kernel errors might be asynchronously reported at some other API call\n"        \
    "[rank0]: For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"                             \
    "[rank0]: Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
#define FAILURE(rank, rest)                                                                        \
    "  time      : 2026-03-14_01:50:17\n"                                                          \
    "  host      : node7.example\n"                                                                \
    "  rank      : " rank "\n" rest

static const struct sample {
    const char *log;
    const char *events[10];
} SAMPLES[] = {
    // Tracebacks.
    {"[rank0]: Traceback (most recent call last):\n"
     "[rank1]: Traceback (most recent call last):\n"
     "[rank0]:   File \"/w/train.py\", line 201, in <module>\n"
     "step 118: loss 2.01\n"
     "[rank1]:   File \"/w/train.py\", line 200, in <module>\n"
     "[rank0]:     main()\n"
     "[rank1]:     main()\n"
     "[rank1]:     ~~~~^^\n"
     "[rank0]:     ~~~~^^\n"
     "[rank1]: FileNotFoundError: [Errno 2] No such file: '/data/shard-0003.tar'\n"
     "[rank0]: ValueError: bad shard 3\n",
     {"1+5 exception | rank=0 | exception=ValueError | message=bad shard 3 | victim=no"
      " | frame=<module> (/w/train.py:201)",
      "2+5 exception | rank=1 | exception=FileNotFoundError | message=[Errno 2] No such file: "
      "'/data/shard-0003.tar' | victim=no | frame=<module> (/w/train.py:200)"}},
    {"Traceback (most recent call last):\n"
     "Traceback (most recent call last):\n"
     "  File \"/w/train.py\", line 201, in <module>\n"
     "  File \"/w/train.py\", line 77, in <module>\n"
     "ValueError: bad shard 3\n"
     "KeyError: 'labels'\n",
     {"1+5 exception | exception=ValueError | message=bad shard 3 | victim=no",
      "6+1 exception | exception=KeyError | message='labels' | victim=no"}},
    {"[rank2]: Traceback (most recent call last):\n"
     "[rank2]:   File \"/w/ckpt.py\", line 12, in save\n"
     "[rank2]: OSError: [Errno 28] No space left on device\n"
     "[rank2]: \n"
     "[rank2]: During handling of the above exception, another exception occurred:\n"
     "[rank2]: \n"
     "[rank2]: Traceback (most recent call last):\n"
     "[rank2]:   File \"/w/train.py\", line 90, in main\n"
     "[rank2]: RuntimeError: checkpoint failed\n",
     {"1+9 exception | rank=2 | exception=OSError | last_exception=RuntimeError | "
      "last_message=checkpoint failed | message=[Errno 28] No space left on device | victim=no | "
      "frame=save (/w/ckpt.py:12)"}},
    {"step 9\n"
     "[rank0]: Traceback (most recent call last):\n"
     "[rank0]:   File \"/w/train.py\", line 201, in <module>\n"
     "[rank0]:     mai",
     {"2+3 exception | rank=0 | truncated=yes"}},
    {"[time] WARNING the upload failed\n"
     "Traceback (most recent call last):\n"
     "  File \"/w/up.py\", line 3, in put\n"
     "ConnectionError: bucket unreachable\n"
     "[time] INFO uploaded after 1 retry\n"
     "step 120: loss 1.9\n"
     "Exception ignored in: <function Pool.__del__ at 0x7f31aa041740>\n"
     "Traceback (most recent call last):\n"
     "  File \"/usr/lib/python3.12/multiprocessing/pool.py\", line 271, in __del__\n"
     "OSError: [Errno 9] Bad file descriptor\n"
     "step 121: loss 1.9\n",
     {"2+3 exception | exception=ConnectionError | message=bucket unreachable | fatal=no | "
      "frame=put (/w/up.py:3)",
      "7+4 exception | exception=OSError | message=[Errno 9] Bad file descriptor | fatal=no | "
      "victim=no | frame=__del__ (/usr/lib/python3.12/multiprocessing/pool.py:271)"}},
    {"[rank1]: Traceback (most recent call last):\n"
     "[rank1]:   File \"/w/train.py\", line 5, in step\n"
     "[rank1]: RuntimeError: Caught ValueError in DataLoader worker process 1.\n"
     "[rank1]: Original Traceback (most recent call last):\n"
     "[rank1]:   File \"/w/data.py\", line 9, in __getitem__\n"
     "[rank1]: ValueError: bad record 7\n"
     "[rank1]: something else\n",
     {"1+6 exception | rank=1 | exception=ValueError | last_exception=RuntimeError | "
      "last_message=Caught ValueError in DataLoader worker process 1. | message=bad record 7 | "
      "victim=no | frame=__getitem__ (/w/data.py:9)"}},
    {"torch.multiprocessing.spawn.ProcessRaisedException: \n"
     "Traceback (most recent call last):\n"
     "  File \"/w/main.py\", line 5, in <module>\n"
     "torch.multiprocessing.spawn.ProcessRaisedException: \n"
     "\n"
     "-- Process 3 terminated with the following error:\n"
     "Traceback (most recent call last):\n"
     "  File \"/w/main.py\", line 9, in run\n"
     "__main__.Stop: no data\n",
     {"1+1 exception | exception=torch.multiprocessing.spawn.ProcessRaisedException | victim=no",
      "2+8 launcher_failed | local_rank=3 | exception=__main__.Stop | "
      "last_exception=torch.multiprocessing.spawn.ProcessRaisedException | message=no data | "
      "victim=no | frame=run (/w/main.py:9)"}},
    {"  + Exception Group Traceback (most recent call last):\n"
     "  |   File \"/w/a.py\", line 3, in <module>\n"
     "  |     run()\n"
     "  | ExceptionGroup: two tasks (2 sub-exceptions)\n"
     "  +-+---------------- 1 ----------------\n"
     "    | Traceback (most recent call last):\n"
     "    |   File \"/w/a.py\", line 7, in one\n"
     "    | ValueError: one\n"
     "    +---------------- 2 ----------------\n"
     "    | Traceback (most recent call last):\n"
     "    |   File \"/w/a.py\", line 8, in two\n"
     "    | TypeError: two\n"
     "    +------------------------------------\n"
     "done\n",
     {"1+13 exception | exception=ValueError | last_exception=ExceptionGroup | "
      "last_message=two tasks (2 sub-exceptions) | message=one | victim=no | "
      "frame=one (/w/a.py:7)"}},
    {"ERROR Traceback (most recent call last):\n"
     "  File \"/w/a.py\", line 1, in f\n"
     "socket.timeout: timed out\n"
     "Killed\n",
     {"1+3 exception | exception=socket.timeout | message=timed out | fatal=no | "
      "frame=f (/w/a.py:1)",
      "4+1 killed | signal=9"}},
    {"[rank3]: Traceback (most recent call last):\n"
     "[rank3]:   File \"/w/a.py\", line 1, in f\n"
     "[rank3]: torch.distributed.DistNetworkError: Failed to recv, got 0 bytes.\n"
     "[rank3]: Exception raised from recvBytes at Utils.hpp:678 (most recent call first):\n"
     "[rank3]: frame #0: c10::Error::Error() + 0x9d (0x7f in libc10.so)\n"
     "[rank3]: <omitting python frames>\n"
     "[rank3]: \n"
     "[rank3]: The above exception was the direct cause of the following exception:\n"
     "[rank3]: \n"
     "[rank3]: Traceback (most recent call last):\n"
     "[rank3]:   File \"/w/a.py\", line 2, in g\n"
     "[rank3]: torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: lost\n",
     {"1+12 exception | rank=3 | exception=torch.distributed.DistNetworkError | last_exception="
      "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError | last_message=lost | "
      "message=Failed to recv, got 0 bytes. | victim=yes | frame=f (/w/a.py:1)"}},
    {"[rank1]: KeyboardInterrupt\n"
     "[rank2]: SystemExit: 143\n"
     "[rank3]: SystemExit: 7\n"
     "[rank4]: RuntimeError: NCCL error of some kind\n"
     "[rank5]: ray.exceptions.RayTaskError(ValueError): f\n",
     {"1+1 exception | rank=1 | signal=2 | exception=KeyboardInterrupt | victim=yes",
      "2+1 exception | rank=2 | exit_code=143 | exception=SystemExit | message=143 | victim=yes",
      "3+1 exception | rank=3 | exit_code=7 | exception=SystemExit | message=7",
      "4+1 exception | rank=4 | exception=RuntimeError | message=NCCL error of some kind",
      "5+1 exception | rank=5 | exception=ray.exceptions.RayTaskError(ValueError) | message=f"}},
    // What a logger says to be skipped is no end; what it does not say may be one.
    {"ERROR train: bad sample, skipping\n"
     "Traceback (most recent call last):\n"
     "  File \"/w/a.py\", line 1, in f\n"
     "ValueError: no label\n"
     "WARNING io: read failed\n"
     "Traceback (most recent call last):\n"
     "  File \"/w/a.py\", line 1, in f\n"
     "OSError: busy, retrying\n"
     "ERROR train: lost\n"
     "Traceback (most recent call last):\n"
     "  File \"/w/a.py\", line 1, in f\n"
     "ValueError: no label\n"
     "skipping\n"
     "Traceback (most recent call last):\n"
     "  File \"/w/a.py\", line 1, in f\n"
     "ValueError: bad\n",
     {"2+3 exception | exception=ValueError | message=no label | state=goes_on | fatal=no | "
      "victim=no | frame=f (/w/a.py:1)",
      "6+3 exception | exception=OSError | message=busy, retrying | state=goes_on | fatal=no | "
      "victim=no | frame=f (/w/a.py:1)",
      "10+3 exception | exception=ValueError | message=no label | fatal=no | victim=no | "
      "frame=f (/w/a.py:1)",
      "14+3 exception | exception=ValueError | message=bad | victim=no | frame=f (/w/a.py:1)"}},
    // Ray's driver waited for an actor, or lost one.
    {"ray.exceptions.GetTimeoutError: Get timed out: some object(s) not ready.\n",
     {"1+1 exception | exception=ray.exceptions.GetTimeoutError | message=Get timed out: some "
      "object(s) not ready. | victim=yes"}},
    // Whom the others waited for; of several the first.
    {"[rank0]: RuntimeError: [Rank 0]: Rank 1 failed to pass monitoredBarrier in 10000 ms\n"
     "[rank0]: RuntimeError: [Rank 0]: Ranks 5, 7 failed to pass monitoredBarrier in 10000 ms\n"
     "[rank0]: RuntimeError: 3 failed to pass monitoredBarrier in 10000 ms\n",
     {"1+1 exception | rank=0 | peer_rank=1 | exception=RuntimeError | message=[Rank 0]: Rank 1 "
      "failed to pass monitoredBarrier in 10000 ms | victim=yes",
      "2+1 exception | rank=0 | peer_rank=5 | exception=RuntimeError | message=[Rank 0]: Ranks 5, "
      "7 failed to pass monitoredBarrier in 10000 ms | victim=yes",
      "3+1 exception | rank=0 | exception=RuntimeError | message=3 failed to pass "
      "monitoredBarrier in 10000 ms | victim=yes"}},
    // Names that a colon announces need not be indented.
    {"Traceback (most recent call last):\n"
     "  File \"/w/a.py\", line 1, in f\n"
     "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: "
     "connect. Timed out task names:\n"
     "/job:jax_worker/replica:0/task:2\n"
     "/job:jax_worker/replica:0/task:1\n",
     {"1+4 peer_lost | peer_rank=2 | reason=did not come to the barrier in time | role=report | "
      "exception=jaxlib.xla_extension.XlaRuntimeError | message=DEADLINE_EXCEEDED: Barrier timed "
      "out. Barrier_id: connect. Timed out task names: | victim=yes | op=connect | "
      "frame=f (/w/a.py:1)"}},
    // A message that ends in a colon says more in the next line.
    {"[rank0]: Traceback (most recent call last):\n"
     "[rank0]:   File \"/w/a.py\", line 1, in f\n"
     "[rank0]: RuntimeError: Error(s) in loading state_dict for Net:\n"
     "[rank0]: \tsize mismatch for out.weight: from checkpoint [3, 4], in current model [5, 4].\n"
     "[rank0]: \tsize mismatch for out.bias: from checkpoint [3], in current model [5].\n"
     "[rank1]: Traceback (most recent call last):\n"
     "[rank1]:   File \"/w/a.py\", line 1, in f\n"
     "[rank1]: ValueError: no:\n"
     "[rank1]: step 7\n",
     {"1+4 exception | rank=0 | exception=RuntimeError | message=Error(s) in loading state_dict "
      "for "
      "Net: size mismatch for out.weight: from checkpoint [3, 4], in current model [5, 4]. | "
      "victim=no | frame=f (/w/a.py:1)",
      "6+3 exception | rank=1 | exception=ValueError | message=no: | victim=no | "
      "frame=f (/w/a.py:1)"}},
    // A port that is in use is no lost peer, whatever raises it.
    {"Traceback (most recent call last):\n"
     "  File \"/w/a.py\", line 1, in f\n"
     "torch.distributed.DistNetworkError: The server socket has failed to listen on any local "
     "network address. port: 29500, name: EADDRINUSE, message: address already in use\n",
     {"1+3 exception | exception=torch.distributed.DistNetworkError | message=The server socket "
      "has "
      "failed to listen on any local network address. port: 29500, name: EADDRINUSE, message: "
      "address already in use | victim=no | frame=f (/w/a.py:1)"}},
    // CUDA.
    {"[rank0]: torch.OutOfMemoryError: CUDA out of memory. " OOM "\n"
     "RuntimeError: CUDA out of memory. " OOM_OLD "\n"
     "[rank1]: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 1 "
     "has a total capacty of 40.00 GiB of which 0 bytes is free.\n"
     "[rank4]: torch.OutOfMemoryError: HIP out of memory. Tried to allocate 1024.00 KiB. GPU 4 \n"
     "RuntimeError: CUDA error: out of memory\n"
     "we guard against torch.cuda.OutOfMemoryError here\n",
     {"1+1 cuda_oom | rank=0 | other_pid=90112 | device=0 | exception=torch.OutOfMemoryError | "
      "message=CUDA out of memory. " OOM " | victim=no | tried_bytes=2684354560 | "
      "total_bytes=84825604096 | free_bytes=536870912 | allocated_bytes=7516192768 | "
      "reserved_unallocated_bytes=268435456",
      "2+1 cuda_oom | device=3 | exception=RuntimeError | message=CUDA out of memory. " OOM_OLD
      " | victim=no | tried_bytes=2147483648 | total_bytes=42949672960 | free_bytes=1073741824 | "
      "allocated_bytes=37580963840",
      "3+1 cuda_oom | rank=1 | device=1 | exception=torch.cuda.OutOfMemoryError | message=CUDA out "
      "of memory. Tried to allocate 20.00 MiB. GPU 1 has a total capacty of 40.00 GiB of which 0 "
      "bytes is free. | victim=no | tried_bytes=20971520 | total_bytes=42949672960 | free_bytes=0",
      "4+1 cuda_oom | rank=4 | exception=torch.OutOfMemoryError | message=HIP out of memory. Tried "
      "to allocate 1024.00 KiB. GPU 4 | victim=no | tried_bytes=1048576",
      "5+1 cuda_oom | exception=RuntimeError | message=CUDA error: out of memory | victim=no"}},
    {"/pt/IndexKernel.cu:94: operator(): block: [0,0,0], thread: [1,0,0] Assertion `a` failed.\n"
     "[rank0]: RuntimeError: CUDA error: device-side assert triggered\n" DSA
     "[rank6]: torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered\n"
     "[rank3]: RuntimeError: CUDA error: an illegal memory access was encountered\n"
     "[rank5]: RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED\n"
     "[rank7]: RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublas()`\n"
     "[rank8]: RuntimeError: CUDA error: driver shutting down\n",
     {"2+4 cuda_error | rank=0 | exception=RuntimeError | message=CUDA error: device-side assert "
      "triggered | error=device-side assert triggered | victim=no | hardware=no",
      "6+1 cuda_error | rank=6 | exception=torch.AcceleratorError | message=CUDA error: "
      "uncorrectable ECC error encountered | error=uncorrectable ECC error encountered | victim=no"
      " | hardware=yes",
      "7+1 cuda_error | rank=3 | exception=RuntimeError | message=CUDA error: an illegal memory "
      "access was encountered | error=an illegal memory access was encountered | victim=no | "
      "hardware=no",
      "8+1 cuda_error | rank=5 | exception=RuntimeError | message=cuDNN error: "
      "CUDNN_STATUS_EXECUTION_FAILED | error=CUDNN_STATUS_EXECUTION_FAILED | victim=no",
      "9+1 cuda_error | rank=7 | exception=RuntimeError | message=CUDA error: "
      "CUBLAS_STATUS_EXECUTION_FAILED when calling `cublas()` | "
      "error=CUBLAS_STATUS_EXECUTION_FAILED | victim=no",
      "10+1 cuda_error | rank=8 | exception=RuntimeError | message=CUDA error: driver shutting down"
      " | error=driver shutting down | victim=yes | hardware=no"}},
    // Killed, aborted, crashed.
    {"step 7\n"
     "/var/spool/slurmd/job88110/slurm_script: line 22: 61733 Killed                  python t.py\n"
     "Killed\n"
     "Segmentation fault (core dumped)\n"
     "Fatal Python error: Segmentation fault\n"
     "\n"
     "Current thread 0x00007f31aa041740 (most recent call first):\n"
     "  File \"/w/train.py\", line 12 in forward\n"
     "*** SIGABRT received at time=1773453017 on cpu 31 ***\n"
     "Killed the old run by hand yesterday\n",
     {"2+1 killed | pid=61733 | job=88110 | signal=9", "3+1 killed | signal=9",
      "4+1 segfault | signal=11", "5+4 segfault | signal=11 | frame=forward (/w/train.py:12)",
      "9+1 abort | at=1773453017.000 | cpu=31 | signal=6"}},
    {"[rank1]: RuntimeError: DataLoader worker (pid 77) exited unexpectedly with exit code 3. "
     "Details are lost\n"
     "[rank2]: RuntimeError: DataLoader worker (pid(s) 5, 6) exited unexpectedly\n"
     "[rank3]: RuntimeError: DataLoader worker (pid 9) is killed by signal: Bus error. It is "
     "possible that dataloader's workers are out of shared memory.\n"
     "train.sh: line 3: 4712 Aborted                 (core dumped) python train.py\n"
     "Fatal Python error: none_dealloc: deallocating None\n"
     "Thread 0x01 (most recent call first):\n"
     "  File \"/w/b.py\", line 1 in b\n"
     "Current thread 0x02 (most recent call first):\n"
     "  File \"/w/c.py\", line 2 in c\n"
     "  File \"/w/d.py\", line 3 in d\n"
     "Extension modules: a, b (total: 2)\n"
     "Aborted (core dumped)\n"
     "[rank7]: RuntimeError: DataLoader worker (pid 40177) is killed by signal: Killed. \n",
     {"1+1 worker_killed | rank=1 | pid=77 | exit_code=3 | exception=RuntimeError | "
      "message=DataLoader worker (pid 77) exited unexpectedly with exit code 3. Details are lost",
      "2+1 worker_killed | rank=2 | pid=5 | exception=RuntimeError | message=DataLoader worker "
      "(pid(s) 5, 6) exited unexpectedly",
      "3+1 worker_killed | rank=3 | pid=9 | signal=7 | reason=out of shared memory | "
      "exception=RuntimeError | message=DataLoader worker (pid 9) is killed by signal: Bus error. "
      "It is possible that dataloader's workers are out of shared memory.",
      "4+1 abort | pid=4712 | signal=6",
      "5+7 abort | signal=6 | message=none_dealloc: deallocating None | frame=c (/w/c.py:2)",
      "12+1 abort | signal=6",
      "13+1 worker_killed | rank=7 | pid=40177 | signal=9 | exception=RuntimeError | "
      "message=DataLoader worker (pid 40177) is killed by signal: Killed."}},
    // Launchers.
    {"[time] Sending process 88731 closing signal SIGTERM\n"
     "E0314 01:50:18.200000 88410 " ELASTIC
     "failed (exitcode: -9) local_rank: 6 (pid: 88733) of binary: /usr/bin/python3\n"
     "Traceback (most recent call last):\n"
     "  File \"/usr/local/bin/torchrun\", line 8, in <module>\n"
     "    sys.exit(main())\n"
     "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
     "============================================================\n"
     "train.py FAILED\n"
     "------------------------------------------------------------\n"
     "Failures:\n"
     "[1]:\n" FAILURE(
         "12 (local_rank: 4)",
         "  exitcode  : -15 (pid: 88731)  (SIGTERM)\n"
         "  error_file: <N/A>\n"
         "  traceback : Signal 15 (SIGTERM) received by PID 88731\n") "----------------------------"
                                                                      "----------------------------"
                                                                      "----\n"
                                                                      "Root Cause (first observed "
                                                                      "failure):\n"
                                                                      "[0]:\n" FAILURE(
                                                                          "14 (local_rank: 6)",
                                                                          "  exitcode  : 1 (pid: "
                                                                          "88733) \n"
                                                                          "  error_file: "
                                                                          "/tmp/x/attempt_0/6/"
                                                                          "error.json\n"
                                                                          "  traceback : Traceback "
                                                                          "(most recent call "
                                                                          "last):\n"
                                                                          "    File "
                                                                          "\"/w/train.py\", line "
                                                                          "355, in wrapper\n"
                                                                          "      return f(*args, "
                                                                          "**kwargs)\n"
                                                                          "  IndexError: list "
                                                                          "index out of range\n"
                                                                          "  \n") "================"
                                                                                  "================"
                                                                                  "================"
                                                                                  "============\n",
     {"1+1 launcher_signal | at=1773453018.000 | pid=88731 | signal=15 | victim=yes",
      "2+1 launcher_failed | pid=88733 | local_rank=6 | signal=9",
      "11+7 launcher_summary | at=1773453017.000 | rank=12 | node=node7.example | pid=88731 | "
      "local_rank=4 | signal=15 | first=no",
      "20+11 launcher_summary | at=1773453017.000 | rank=14 | node=node7.example | pid=88733 | "
      "local_rank=6 | exit_code=1 | exception=IndexError | message=list index out of range | "
      "error_file=/tmp/x/attempt_0/6/error.json | victim=no | first=yes | "
      "frame=wrapper (/w/train.py:355)"}},
    {"[time] torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: 1) "
     "local_rank: 0 (pid: 511) of binary: /usr/bin/python3\n"
     "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -11) local_rank: 2 "
     "(pid: 513) of binary: /usr/bin/python3\n"
     "WARNING:torch.distributed.elastic.multiprocessing.api:Unable to shutdown process 514 via "
     "Signals.SIGTERM, forcefully exiting via Signals.SIGKILL\n"
     "Unable to shutdown process 16891 via 15, forcefully exiting via 9\n"
     "[default] worker group FAILED. 2/3 attempts left; will restart worker group\n"
     "W0314 01:50:17.000000 700 " ELASTIC "Received Signals.SIGTERM death signal, shutting down\n"
     "Traceback (most recent call last):\n"
     "  File \"/usr/local/bin/torchrun\", line 8, in <module>\n"
     "torch.distributed.elastic.multiprocessing.api.SignalException: Process 700 got signal: 15\n"
     "[time] [ERROR] [node7] [workload:12(4) infra:1(0)] launcher.py:3659 Some rank(s) exited with "
     "non-zero exit code: {12: ProcessFailure(local_rank=4, pid=811, exitcode=-6, "
     "error_file='<N/A>'), 13: ProcessFailure(local_rank=5, pid=812, exitcode=1, "
     "error_file='/e/5/error.json')}. Agent's exit code = 1\n",
     {"1+1 launcher_failed | at=1773453018.000 | pid=511 | local_rank=0 | exit_code=1",
      "2+1 launcher_failed | pid=513 | local_rank=2 | signal=11",
      "3+1 launcher_signal | pid=514 | signal=9 | victim=yes",
      "4+1 launcher_signal | pid=16891 | signal=9 | victim=yes",
      "5+1 launcher_restart | attempts_left=2", "6+1 launcher_told_to_stop | pid=700 | signal=15",
      "7+3 exception | pid=700 | signal=15 | "
      "exception=torch.distributed.elastic.multiprocessing.api.SignalException | "
      "message=Process 700 got signal: 15 | victim=yes | "
      "frame=<module> (/usr/local/bin/torchrun:8)",
      "10+1 launcher_failed | at=1773453018.000 | rank=12 | node=node7 | pid=811 | local_rank=4 | "
      "signal=6",
      "10+0 launcher_failed | at=1773453018.000 | rank=13 | node=node7 | pid=812 | local_rank=5 | "
      "exit_code=1 | error_file=/e/5/error.json"}},
    // Nothing.
    {"Xid is discussed in the handbook; so is 'CUDA error' and Killed process 12.\n"
     "Error: x\nINFO: y\nloss: 3\nEpoch: 4\nwe saw a ValueError: no\nRuntimeError\n"
     "Current thread 0x0\n[0]:\nhello\n[1]:\n"
     "failed (exitcode: x) local_rank: 1 (pid: 2) of\n"
     "Sending process x closing signal SIGTERM\nSending process 7 closing signal SIGWHAT\n"
     "worker 1/0 attempts left; will restart worker group\n"
     "Received 15 letters before the death signal\n"
     "DataLoader worker (pid 40177) is killed by signal: Killed.\n"
     "*** SIGABRT received at time=17 ***\nnote: line 22: 61733 Killedx\n"
     "msg=\"Traceback (most recent call last):\" more\n"
     "  File \"/w/a.py\", line 1, in f\nnode Traceback (most recent call last):\n"
     "Exception ignored in: nothing follows\nfine\n",
     {NULL}},
    // One line behind the head of a logger; what is below ERROR, or is tried again, is no end.
    {"2026-11-20 10:10:18 ERROR trainer: RuntimeError: CUDA out of memory.\n"
     "2026-11-20 10:10:18,123 - trainer - CRITICAL - step 501 failed with ValueError('bad shard')\n"
     "E1120 10:10:18.123456 12345 trainer.cc:88] java.lang.IllegalStateException: closed\n"
     "2026-11-20 10:10:18.123 | ERROR    | app:main:42 - OSError(28, 'No space left on device')\n"
     "ERROR:root:KeyError: 'labels'\n"
     "[2026-11-20 10:10:18,123] [ERROR] [t.py:88:step] [Rank 3] ValueError: bad\n"
     "Training failed: ValueError: no shard\n"
     "rank 5: ValueError: no label\n"
     "11/20 10:10:18 ERROR net: gave up after 5 retries: TimeoutError: no answer\n",
     {"1+1 cuda_oom | exception=RuntimeError | message=CUDA out of memory. | fatal=no | "
      "victim=no",
      "2+1 exception | exception=ValueError | message=bad shard | fatal=no | victim=no",
      "3+1 exception | exception=java.lang.IllegalStateException | message=closed | fatal=no | "
      "victim=no",
      "4+1 exception | exception=OSError | message=28, 'No space left on device' | fatal=no | "
      "victim=no",
      "5+1 exception | exception=KeyError | message='labels' | fatal=no | victim=no",
      "6+1 exception | rank=3 | exception=ValueError | message=bad | fatal=no | victim=no",
      "7+1 exception | exception=ValueError | message=no shard | fatal=no | victim=no",
      "8+1 exception | rank=5 | exception=ValueError | message=no label | fatal=no | victim=no",
      "9+1 exception | exception=TimeoutError | message=no answer | fatal=no"}},
    {"2026-11-20 10:10:18 WARNING trainer: ValueError: bad sample\n"
     "2026-11-20 10:10:18 INFO trainer: caught ValueError: bad sample\n"
     "2026-11-20 10:10:18 ERROR io: read failed: OSError: [Errno 5] busy, retrying in 5 s\n"
     "2026-11-20 10:10:18 ERROR io: attempt 1/5 failed: ConnectionError: no route\n"
     "2026-11-20 10:10:18 ERROR io: skipped shard 7: ValueError: bad magic\n"
     "Note: RuntimeError: x may be raised where y is not there\n"
     "Failed to import flash_attn: ImportError: No module named flash_attn\n"
     "W1120 10:10:18.123456 12345 x.cc:88] RuntimeError: slow\n"
     "[2026-11-20 10:10:18,123] [WARNING] [t.py:88:step] [Rank 3] ValueError: x\n"
     "if you see RuntimeError: CUDA out of memory, lower the batch size\n"
     "2026-11-20 10:10:18 metrics ValueError: 3 KeyError: 4\n",
     {NULL}},
};

static void check_events(const struct sample *sample, const struct reading_log *log) {
    uint32_t i = 0;
    for (; i < 10 && sample->events[i] != NULL; i++) {
        ck_assert_msg(i < log->count, "missing: %s", sample->events[i]);
        ck_assert_str_eq(log->events[i].text, sample->events[i]);
    }
}

START_TEST(samples) {
    const struct sample *sample = &SAMPLES[_i];
    struct slice text = slice_of(sample->log);
    read_log(&whole, text, text.size);
    check_events(sample, &whole);
    uint32_t expected = 0;
    while (expected < 10 && sample->events[expected] != NULL)
        expected++;
    ck_assert_msg(whole.count == expected, "more: %s",
                  whole.count == 0 ? "" : whole.events[whole.count - 1].text);
}
END_TEST

// Ends of lines as Windows writes them, which are left on here, change nothing.
START_TEST(carriage_returns) {
    const struct sample *sample = &SAMPLES[_i];
    size_t size = 0;
    char *text = memory_zero(2, strlen(sample->log) + 1);
    for (const char *at = sample->log; *at != '\0'; at++) {
        if (*at == '\n')
            text[size++] = '\r';
        text[size++] = *at;
    }
    read_log(&whole, (struct slice){text, size}, size);
    check_events(sample, &whole);
    memory_give(text);
}
END_TEST

static bool has_part(const char *text, const char *fact, size_t size) {
    for (const char *at = text; (at = strstr(at, " | ")) != NULL;) {
        at += 3;
        if (strncmp(at, fact, size) == 0 && (at[size] == '\0' || strncmp(at + size, " | ", 3) == 0))
            return true;
    }
    return false;
}

// Each fact of the cut one stands in the whole one, too.
static bool is_part_of(const struct told *cut, const struct told *full) {
    for (const char *at = cut->text; (at = strstr(at, " | ")) != NULL;) {
        at += 3;
        const char *end = strstr(at, " | ");
        size_t size = end == NULL ? strlen(at) : (size_t)(end - at);
        if (!has_part(full->text, at, size))
            return false;
    }
    return cut->kind == full->kind;
}

// What was cut is said to be, or is right as far as it goes.
START_TEST(every_prefix) {
    struct slice text = slice_of(SAMPLES[_i].log);
    read_log(&whole, text, text.size);
    for (size_t size = 0; size < text.size; size++) {
        read_log(&part, text, size);
        for (uint32_t i = 0; i < part.count; i++) {
            bool right = part.events[i].truncated;
            for (uint32_t j = 0; j < whole.count; j++)
                right = right || (whole.events[j].position == part.events[i].position &&
                                  is_part_of(&part.events[i], &whole.events[j]));
            ck_assert_msg(right, "after %zu bytes: %s", size, part.events[i].text);
        }
    }
}
END_TEST

// A traceback without an end takes no more than a block may hold, and what follows is read.
START_TEST(bounds) {
    char *text = memory_zero(1, 1 << 20);
    size_t size = (size_t)sprintf(text, "Traceback (most recent call last):\n");
    for (unsigned i = 0; i < 500; i++)
        size += (size_t)sprintf(text + size, "  File \"/w/a.py\", line %u, in f\n", i);
    size += (size_t)sprintf(text + size, "ValueError: deep\n");
    size += (size_t)sprintf(text + size, "Traceback (most recent call last):\n");
    for (unsigned i = 0; i <= GATHER_PASSED_MAX; i++)
        size += (size_t)sprintf(text + size, "step %u\n", i);
    size += (size_t)sprintf(text + size, "KeyError: 1\n");
    read_log(&whole, (struct slice){text, size}, size);
    ck_assert_uint_eq(whole.count, 4);
    ck_assert_str_eq(whole.events[0].text, "1+200 exception | truncated=yes");
    ck_assert_str_eq(whole.events[1].text,
                     "502+1 exception | exception=ValueError | message=deep | victim=no");
    ck_assert_str_eq(whole.events[2].text, "503+1 exception | truncated=yes");
    ck_assert_str_eq(whole.events[3].text,
                     "1005+1 exception | exception=KeyError | message=1 | victim=no");
    memory_give(text);
}
END_TEST

// A long message is kept up to a bound, and ends between words or at least characters.
START_TEST(long_message) {
    char text[4096] = "ValueError: ";
    for (unsigned i = 0; i < 300; i++)
        strcat(text, "\xe2\x82\xac");
    struct slice log = slice_of(text);
    read_log(&whole, log, log.size);
    ck_assert_uint_eq(whole.count, 1);
    const char *message = strstr(whole.events[0].text, "message=") + 8;
    ck_assert_uint_eq(strcspn(message, " "), 639);
    ck_assert_ptr_eq(strchr(message, '?'), NULL);
}
END_TEST

START_TEST(long_message_of_words) {
    char text[4096] = "ValueError:";
    for (unsigned i = 0; i < 100; i++)
        strcat(text, " [10.0.0.12]:17567");
    struct slice log = slice_of(text);
    read_log(&whole, log, log.size);
    ck_assert_ptr_nonnull(strstr(whole.events[0].text, " [10.0.0.12]:17567 \xe2\x80\xa6"));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("endings");
    TCase *cases = tcase_create("endings");
    int count = sizeof SAMPLES / sizeof *SAMPLES;
    tcase_add_checked_fixture(cases, NULL, teardown);
    tcase_add_loop_test(cases, samples, 0, count);
    tcase_add_loop_test(cases, carriage_returns, 0, count);
    tcase_add_loop_test(cases, every_prefix, 0, count);
    tcase_add_test(cases, bounds);
    tcase_add_test(cases, long_message);
    tcase_add_test(cases, long_message_of_words);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
