// SPDX-License-Identifier: Apache-2.0
// What process groups, NCCL, gloo and the store write: which event each wording becomes, with which
// facts, which lines belong to it, and what is refused. Lines as field samples have them.
#include "pipeline/model/observation.h"
#include "receivers/decode/app_log/rank_log.h"
#include "receivers/decode/log/log.h"
#include "tests/receivers/decode/decode_record.h"
#include "tests/receivers/decode/found.h"

#include <inttypes.h>

static const uint64_t NOW = UINT64_C(1773964800000000000); // 2026-03-20T00:00:00Z
enum { LINE_MAX = 2048, SAID_MAX = 4096 };

// -- a log, said in words -----------------------------------------------------------------------

struct told {
    const struct decoder_type *type;
    void *state;
    struct arena arena;
    char said[SAID_MAX]; // a line for each event and refusal
    size_t size;
};

#define SAY(told, ...)                                                                             \
    do {                                                                                           \
        (told)->size +=                                                                            \
            (size_t)snprintf((told)->said + (told)->size, SAID_MAX - (told)->size, __VA_ARGS__);   \
        ck_assert_uint_lt((told)->size, SAID_MAX);                                                 \
    } while (0)

static void say_number(struct told *told, const char *name, int64_t number) {
    if (number >= 0)
        SAY(told, " %s=%" PRId64, name, number);
}

static void say_text(struct told *told, const char *name, struct slice text) {
    if (text.data != NULL)
        SAY(told, " %s=%.*s", name, (int)text.size, text.data);
}

static void say_line(struct told *told, const struct app_line *line) {
    say_number(told, "group_rank", line->group_rank);
    say_number(told, "seq", line->collective_seq_id);
    say_text(told, "op", line->operation);
    say_text(told, "group", line->group);
    say_text(told, "group_desc", line->group_desc);
    say_number(told, "last_enqueued", line->last_enqueued);
    say_number(told, "last_completed", line->last_completed);
    say_number(told, "numel_in", line->input_elements);
    say_number(told, "numel_out", line->output_elements);
    say_number(told, "timeout_ms", line->timeout_ms);
    say_number(told, "ran_ms", line->ran_ms);
    if (line->truncated)
        SAY(told, " truncated");
}

static void say_facts(struct told *told, const struct observation *observation) {
    for (uint32_t i = 0; i < observation->fact_count; i++) {
        const struct fact *fact = &observation->facts[i];
        const char *name = fact_name(fact->key);
        if (fact->key == FACT_MESSAGE || fact->key == FACT_STACK)
            continue; // long
        if (fact_type(fact->key) == FACT_NUMBER)
            say_number(told, name, fact->number);
        else if (fact_type(fact->key) == FACT_TEXT)
            say_text(told, name, fact->text);
        else if (fact_type(fact->key) == FACT_YES_NO)
            SAY(told, " %s=%s", name, fact->yes ? "yes" : "no");
    }
}

static void say(struct told *told, enum decode_category category, const struct event *event,
                const struct decode_fault *fault) {
    if (decode_refused(category)) {
        ck_assert_uint_gt(strlen(fault->detail), 0);
        SAY(told, "%" PRIu64 ": %s\n", event->position, decode_category_name(category));
    }
    if (category != DECODE_OK)
        return;
    SAY(told, "%" PRIu64 "+%u: %s", event->position, event->lines,
        event_class_name(event_class(event)));
    say_number(told, "rank", event->rank);
    if (event->node != STRING_NONE)
        say_text(told, "host", intern_slice(event->node));
    if (event->kind == EVENT_APP_LINE)
        say_line(told, event->line);
    else
        say_facts(told, event->observation);
    SAY(told, "\n");
}

static void take_others(struct told *told) {
    for (enum decode_category category = DECODE_OK; category != DECODE_END;) {
        struct event event = {.rank = RANK_NONE};
        struct decode_fault fault = {0};
        category = told->type->next(told->state, &told->arena, &event, &fault);
        say(told, category, &event, &fault);
    }
}

static void take_line(struct told *told, struct slice line, uint64_t position) {
    char *block = memory_take(line.size + 1);
    struct event event = {.rank = RANK_NONE, .position = position, .lines = 1};
    struct decode_fault fault = {0};
    memcpy(block, line.data, line.size);
    enum decode_category category = told->type->decode(
        told->state, (struct slice){block, line.size}, &told->arena, &event, &fault);
    found_by_search(told->type, line, category);
    say(told, category, &event, &fault);
    if (!decode_refused(category))
        take_others(told);
    memory_give(block);
}

// The log's events and refusals, a line each. `ending` stands between its lines.
static const char *tell(struct told *told, const struct decoder_type *type, struct slice log,
                        const char *ending) {
    struct decoder_input input = {.path = SLICE("log"), .observed_ns = NOW, .is_file = true};
    char line[LINE_MAX];
    told->type = type;
    told->size = 0;
    told->said[0] = '\0';
    told->state = memory_zero(1, type->state_size);
    arena_init(&told->arena, 4096);
    type->begin(told->state, &input);
    for (uint64_t position = 1; log.size > 0; position++) {
        const char *newline = memchr(log.data, '\n', log.size);
        size_t size = newline == NULL ? log.size : (size_t)(newline - log.data);
        int made = snprintf(line, sizeof line, "%.*s%s", (int)size, log.data, ending);
        take_line(told, (struct slice){line, (size_t)made}, position);
        size += newline != NULL;
        log = (struct slice){log.data + size, log.size - size};
    }
    type->finish(told->state);
    take_others(told);
    ck_assert(!type->holds(told->state));
    type->release(told->state);
    arena_release(&told->arena);
    memory_give(told->state);
    return told->said;
}

// -- what each becomes --------------------------------------------------------------------------

#define TIMEOUT(seq, ran)                                                                          \
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=" #seq                          \
    ", OpType=ALLREDUCE, NumelIn=10, NumelOut=20, Timeout(ms)=600000) ran for " #ran               \
    " milliseconds before timing out."
#define WORK(seq, ran)                                                                             \
    " seq=" #seq " op=ALLREDUCE numel_in=10 numel_out=20 timeout_ms=600000 ran_ms=" #ran "\n"
#define GROUP    "[PG ID 0 PG GUID 0(default_pg) Rank 3] "
#define IN_GROUP " group=0 group_desc=default_pg"
#define AT       "[rank3]:[E314 01:50:17.300000000 ProcessGroupNCCL.cpp:683] "
#define NCCL_AT  "node-07:41207:41390 [3] transport/net_ib.cc:1295 NCCL WARN "
#define NCCL_WHO " host=node-07 pid=41207"
#define NCCL_GPU " cuda_device=3"

static const struct {
    const char *log, *said;
} CASES[] = {
    // Timeouts
    {"[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=77120, "
     "OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800944 milliseconds before timing out.",
     "1+1: watchdog_timeout rank=1 group_rank=1 seq=77120 op=ALLREDUCE timeout_ms=1800000 "
     "ran_ms=1800944\n"},
    {AT "[Rank 1] " TIMEOUT(12, 600033),
     "1+1: watchdog_timeout rank=3 group_rank=1" WORK(12, 600033)},
    {"Epoch 9:  30%|###       | 3/10 [00:03<00:07]" AT "[Rank 0] " TIMEOUT(7, 1),
     "1+1: watchdog_timeout rank=3 group_rank=0" WORK(7, 1)},
    {"     ^^^^^^^^[rank1]:[E314 01:50:17.4 x.cpp:683] [Rank 1] " TIMEOUT(7, 1),
     "1+1: watchdog_timeout rank=1 group_rank=1" WORK(7, 1)},
    {"[rank2]:[E314 01:50:17.3 x.cpp:683] [Rank 2] " TIMEOUT(8, 1001) //
     "[rank3]:[E314 01:50:17.3 x.cpp:683] [Rank 3] " TIMEOUT(8, 1002),
     "1+1: watchdog_timeout rank=2 group_rank=2" WORK(8, 1001) //
     "1+0: watchdog_timeout rank=3 group_rank=3" WORK(8, 1002)},
    {"[Rank 2] " TIMEOUT(8, 1001) "[E x.cpp:683] [Rank 3] " TIMEOUT(8, 1002),
     "1+1: watchdog_timeout rank=2 group_rank=2" WORK(8, 1001) //
     "1+0: watchdog_timeout rank=3 group_rank=3" WORK(8, 1002)},
    {"[rank2]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=41, OpType=ALLRED",
     "1+1: watchdog_timeout rank=2 seq=41 truncated\n"},
    {"[rank2]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=41, OpType=A, "
     "Timeout(ms)=60",
     "1+1: watchdog_timeout rank=2 seq=41 op=A truncated\n"},
    {"[rank1]:[E314 01:50:17.300000000 ProcessGroupNCCL.cpp:683] [Rank 1] Watchdog cau\n"
     "ght collective operation timeout: WorkNCCL(SeqNum=5, OpType=BROADCAST, NumelIn=1\n"
     ", NumelOut=1, Timeout(ms)=30000) ran for 30044 milliseconds before timing out.",
     "1: wrapped\n"},
    {"[Rank 1] Watchdog caught collective\n operation timeout: WorkNCCL(", "1: truncated\n"},
    {"our own Watchdog\nthe Watchdog c", "2: wrapped\n"},
    // Status
    {AT "[PG 3 Rank 1] Timeout at NCCL work: 12, last enqueued NCCL work: 13, last completed NCCL "
        "work: 11.",
     "1+1: watchdog_status rank=3 group_rank=1 seq=12 group=3 last_enqueued=13 "
     "last_completed=11\n"},
    {AT "[PG 3 (tp_group) Rank 0] Exception (either an error or timeout) detected by watchdog at "
        "work: 12, last enqueued NCCL work: 12, last completed NCCL work: 11.",
     "1+1: watchdog_status rank=3 group_rank=0 seq=12 group=3 group_desc=tp_group "
     "last_enqueued=12 last_completed=11\n"},
    {AT "[PG ID 1 PG GUID 7(tp_group) Rank 2]  failure detected by watchdog at work sequence id: "
        "12 PG status: last enqueued work: 12, last completed work: -1",
     "1+1: watchdog_status rank=3 group_rank=2 seq=12 group=7 group_desc=tp_group "
     "last_enqueued=12\n"},
    {"[PG 3 Rank 3] Timeout at NCCL work: 12, last enqueued NCCL work: 12, last completed NCCL "
     "work: 58110337024519168.",
     "1+1: watchdog_status group_rank=3 seq=12 group=3 last_enqueued=12\n"},
    {"[PG 3 Rank 3] Timeout at NCCL work: 12, last enqueued NCCL work: 99999999999999999999, last "
     "completed NCCL work: 11.",
     "1+1: watchdog_status group_rank=3 seq=12 group=3 last_completed=11\n"},
    {"[Rank 3] Timeout at NCCL work: 12, last enqueued NCCL work: 13, last completed NCCL work: 1",
     "1: truncated\n"},
    {"[Rank 3] NCCL Work update periodically: last enqueued NCCL work: 8, last completed NCCL "
     "work: 6.",
     "1+1: watchdog_status rank=3 group_rank=3 last_enqueued=8 last_completed=6\n"},
    {"PG status: last enqueued work: 8, last completed work: 6", ""},
    {"Timeout at NCCL work: none", ""},
    // What follows a timeout
    {AT "Stack trace of the failed collective: \n#0 all_reduce from /v/c10d.py:3174\n"
        "#1 wrapper from /v/logger.py:83\nstep 9",
     "1+3: watchdog_stack rank=3 frame=all_reduce (/v/c10d.py:3174)\n"},
    {"Stack trace of the failed collective not found, potentially because FlightRecorder is "
     "disabled.",
     "1+1: watchdog_stack missing=yes\n"},
    {AT GROUP "First PG on this rank to signal dumping.",
     "1+1: watchdog_dump rank=3 group_rank=3" IN_GROUP "\n"},
    {"[rank5]:[E314 x.cpp:1] Observed flight recorder dump signal from another rank via TCPStore.",
     "1+1: watchdog_dump rank=5\n"},
    {AT GROUP "Received a dump signal due to a collective timeout from  rank 13 and we will try "
              "our best to dump the debug info. Last enqueued NCCL work: 4119, last completed NCCL "
              "work: 4118.This is most likely caused by incorrect usages of collectives",
     "1+1: watchdog_dump rank=3 group_rank=3 noticed_by_rank=13" IN_GROUP
     " last_enqueued=4119 last_completed=4118\n"},
    {AT GROUP "Received a dump signal due to a collective timeout from this local rank and we",
     "1+1: watchdog_dump rank=3 group_rank=3 noticed_by_rank=3" IN_GROUP "\n"},
    {"Received a dump signal due to a collective timeout from  rank 1", "1+1: watchdog_dump\n"},
    {GROUP "ProcessGroupNCCL preparing to dump debug info. Include stack trace: 1", ""},
    {"Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA "
     "kernels, subsequent GPU operations might run on corrupted/incomplete data. To avoid this "
     "inconsistency, we are taking the entire process down.",
     "1+1: watchdog_end\n"},
    {"[Rank 3] To avoid data inconsistency, we are taking the entire process down.", ""},
    {AT GROUP "Process group watchdog thread terminated with exception: [Rank 3] " TIMEOUT(7, 1),
     "1+1: watchdog_terminated rank=3 group_rank=3 victim=yes" IN_GROUP "\n"},
    {"[rank2]: NCCL watchdog thread terminated with exception: CUDA error: an illegal memory "
     "access was encountered",
     "1+1: watchdog_terminated rank=2 error=an illegal memory access was encountered "
     "victim=no\n"},
    {GROUP "ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress",
     "1+1: watchdog_stuck rank=3 group_rank=3 seconds=480 victim=no" IN_GROUP "\n"},
    {"[Rank 3] Heartbeat monitor timed out! Process will be terminated",
     "1+1: watchdog_stuck rank=3 group_rank=3 victim=no\n"},
    {"[rank6]: Could not acquire GIL within 300 ms on exit, possible GIL induced hang",
     "1+1: gil_hang rank=6 timeout_ms=300\n"},
    {"[rank6]: Terminating the process after attempting to dump debug info, due to "
     "ProcessGroupNCCL watchdog hang.",
     "1+1: watchdog_terminated rank=6 reason=ProcessGroupNCCL watchdog hang victim=no\n"},
    {"[rank6]: Terminating the process after attempting to dump debug info, due to collective "
     "timeout or exception.",
     "1+1: watchdog_terminated rank=6 reason=collective timeout or exception\n"},
    {AT GROUP " remote error detected from rank: 5, and more",
     "1+1: nccl_error rank=3 group_rank=3 noticed_by_rank=5 victim=yes" IN_GROUP "\n"},
    {AT "[PG ID 1 PG GUID 7(tp) Rank 1]  remote error detected from rank: 5",
     "1+1: nccl_error rank=3 group_rank=1 victim=yes group=7 group_desc=tp\n"},
    // The end of the process
    {"terminate called after throwing an instance of 'std::runtime_error'\n"
     "  what():  [Rank 1] " TIMEOUT(7, 1),
     "1+2: abort exception=std::runtime_error victim=yes\n"},
    {"[rank4]: terminate called after throwing an instance of 'c10::Error'\n"
     "[rank4]:   what():  CUDA error: device-side assert triggered\n"
     "CUDA kernel errors might be asynchronously reported\nException raised from f\nframe #0: g\n"
     "step 9",
     "1+5: abort rank=4 exception=c10::Error victim=no\n"},
    {"terminate called after throwing an instance of 'gloo::EnforceNotMet'\n"
     "  what():  [enforce fail at external/gloo/gloo/transport/tcp/pair.cc:459] "
     "op.preamble.length <= op.nbytes. 32 vs 4. ",
     "1+2: abort exception=gloo::EnforceNotMet victim=yes\n"},
    {"terminate called after throwing an instance of 'gloo::EnforceNotMet'\n"
     "  what():  [enforce fail at ../third_party/gloo/gloo/transport/tcp/pair.cc:446] "
     "op.preamble.length <= op.nbytes. 8 vs 4",
     "1+2: abort exception=gloo::EnforceNotMet\n"},
    {"terminate called without an active exception", "1+1: abort\n"},
    {"terminate called after throwing an instance of 'int'\nstep 9", "1+1: abort exception=int\n"},
    {"terminate called after throwing an instance of 'int'",
     "1+1: abort exception=int truncated=yes\n"},
    {"terminate called after throwing an instance of 'A'\n"
     "terminate called after throwing an instance of 'B'\n  what():  x\n  what():  y",
     "2+2: abort exception=B\n1+2: abort exception=A\n"},
    {"  what():  [Rank 1] " TIMEOUT(7, 1), ""},
    // NCCL's own
    {NCCL_AT "NET/IB : Got completion from peer 10.20.0.5<50117> with error 12, opcode 0, len 0, "
             "vendor err 129 (Recv)",
     "1+1: nccl_net_error" NCCL_WHO " peer=10.20.0.5" NCCL_GPU " wc_status=12\n"},
    {NCCL_AT "NET/IB : Got completion with error 5, opcode 1, len 0, vendor err 129",
     "1+1: nccl_net_error" NCCL_WHO NCCL_GPU " wc_status=5\n"},
    {"node-07.c.local:41207:41390 [4] transport/net_ib.cc:1909 NCCL WARN NET/IB : Got completion "
     "from peer ::ffff:10.20.0.6<41200> with status=5 opcode=0 len=0 vendor err 249 (Send) "
     "localGid ::ffff:10.21.0.7 remoteGids ::ffff:10.21.0.6",
     "1+1: nccl_net_error host=node-07.c.local pid=41207 peer=10.20.0.6 cuda_device=4 "
     "wc_status=5\n"},
    {"[2026-03-14 01:50:17] node-07:41207:41390 [4] transport/net_ib/p2p.cc:688 (ncclIbTest) NCCL "
     "WARN NET/IB: Got completion from peer fe80::5%eth0<41200> with "
     "status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) vendor_err=129  localGid fe80::1 "
     "remoteGids fe80::2 hca mlx5_3",
     "1+1: nccl_net_error host=node-07 pid=41207 peer=fe80::5 device=mlx5_3 cuda_device=4 "
     "wc_status=12\n"},
    {NCCL_AT "NET/IB : mlx5_3:1 Got non-fatal async event: port error(10)",
     "1+1: nccl_port_error" NCCL_WHO " device=mlx5_3" NCCL_GPU
     " port=1 error=port error victim=no\n"},
    {NCCL_AT "NET/IB : mlx5_3:1 Got non-fatal async event: port active(9)", ""},
    {NCCL_AT "NET/IB : mlx5_3:1 async fatal event: local catastrophic error",
     "1+1: nccl_net_error" NCCL_WHO " device=mlx5_3" NCCL_GPU
     " port=1 error=local catastrophic error\n"},
    {NCCL_AT "socketProgress: Connection closed by remote peer node-05<41234>",
     "1+1: nccl_peer_closed" NCCL_WHO " peer=node-05" NCCL_GPU " victim=yes\n"},
    {NCCL_AT "Net : Connection closed by remote peer node-05.c.local<41234>",
     "1+1: nccl_peer_closed" NCCL_WHO " peer=node-05.c.local" NCCL_GPU " victim=yes\n"},
    {NCCL_AT "Call to recv from 10.0.0.5<41234> failed : Connection reset by peer",
     "1+1: nccl_peer_closed" NCCL_WHO " peer=10.0.0.5" NCCL_GPU " victim=yes\n"},
    {NCCL_AT "Call to connect returned Connection refused",
     "1+1: nccl_peer_closed" NCCL_WHO NCCL_GPU " victim=yes\n"},
    {NCCL_AT "NET/IB : Got async event : local catastrophic error",
     "1+1: nccl_net_error" NCCL_WHO NCCL_GPU " error=local catastrophic error\n"},
    {NCCL_AT "Call to ibv_create_qp failed", ""},
    {NCCL_AT "Cuda failure 719 'unspecified launch failure'",
     "1+1: cuda_error" NCCL_WHO NCCL_GPU " error=unspecified launch failure code=719 victim=no\n"},
    {NCCL_AT "Cuda failure 'out of memory'",
     "1+1: cuda_oom" NCCL_WHO NCCL_GPU " error=out of memory victim=no\n"},
    {"node-07:41207:41390 [3] NCCL INFO transport/net.cc:1141 -> 6", ""},
    {"node-2:41207:41390 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion\n"
     " from peer 10.20.0.5<50117> with error 12, opcode 0, len\n0, vendor err 129 (Recv)\nstep 9",
     "1+3: nccl_net_error host=node-2 pid=41207 peer=10.20.0.5 cuda_device=0 wc_status=12\n"},
    {NCCL_AT "NET/IB : Got completion from peer 10.20.0.5<50117> with error 12\nstep 9",
     "1+1: nccl_net_error" NCCL_WHO " peer=10.20.0.5" NCCL_GPU " truncated=yes\n"},
    {NCCL_AT "NET/IB : Got completion\nstep 9", "1: truncated\n"},
    // NCCL's errors as PyTorch shows them
    {AT GROUP "Process group watchdog thread terminated with exception: NCCL error: remote process "
              "exited or there was a network error, NCCL version 2.27.3\n"
              "ncclRemoteError: A call failed possibly due to a network error.\nLast error:\n"
              "NET/IB: Got completion from peer 10.20.0.61<50422> with status=12 opcode=0 len=0 "
              "vendor err 129 (Recv) hca mlx5_0\nstep 9",
     "1+4: nccl_error rank=3 group_rank=3 peer=10.20.0.61 device=mlx5_0 reason=remote process "
     "exited or there was a network error error=NET/IB: Got completion from peer "
     "10.20.0.61<50422> with status=12 opcode=0 len=0 vendor err 129 (Recv) hca mlx5_0 "
     "code=ncclRemoteError wc_status=12 victim=yes" IN_GROUP "\n"},
    {"[rank2]: torch.distributed.DistBackendError: NCCL error in: /p/NCCLUtils.cpp:94, unhandled "
     "cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.27.3\n"
     "[rank2]: ncclUnhandledCudaError: Call to CUDA function failed.\n[rank2]: Last error:\n"
     "[rank2]: Cuda failure 'out of memory'",
     "1+4: nccl_error rank=2 reason=unhandled cuda error (run with NCCL_DEBUG=INFO for details) "
     "error=out of memory code=ncclUnhandledCudaError victim=no\n"},
    // What NCCL was told wrongly, or could not have, is no lost peer.
    {"NCCL error in: x.cpp:1, invalid usage, NCCL version 2.21.5\nncclInvalidUsage: y\n"
     "Last error:\nDuplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000, error",
     "1+4: nccl_error reason=invalid usage error=Duplicate GPU detected : rank 1 and rank 0 both "
     "on "
     "CUDA device 1b000, error code=ncclInvalidUsage victim=no\n"},
    {"NCCL error in: x.cpp:1, unhandled system error, NCCL version 2.21.5\nncclSystemError: y\n"
     "Last error:\nError while creating shared memory segment /dev/shm/nccl-1Y (size 73400)",
     "1+4: nccl_error reason=unhandled system error error=Error while creating shared memory "
     "segment /dev/shm/nccl-1Y (size 73400) code=ncclSystemError victim=no\n"},
    {"NCCL error in: x.cpp:784, unhandled system error, NCCL version 2.7.8\nstep 9",
     "1+1: nccl_error reason=unhandled system error\n"},
    {"NCCL error in: x.cpp:784, unhandled system error, NCCL version 2.7.8",
     "1+1: nccl_error reason=unhandled system error truncated=yes\n"},
    {"NCCL error: x, NCCL version 2.7.8\nncclSystemError: y\nLast error:\n\nstep 9",
     "1+3: nccl_error reason=x code=ncclSystemError\n"},
    // Lines without a writer go on from the report in front of them.
    {"RuntimeError: CUDA error: out of memory\n"
     "[rank9]: NCCL error: x, NCCL version 2.7.8\nncclSystemError: y\nLast error:\nNET/Socket : "
     "connect failed\nstep 9",
     "2+4: nccl_error rank=9 reason=x error=NET/Socket : connect failed code=ncclSystemError\n"
     "1+1: cuda_oom exception=RuntimeError victim=no\n"},
    {"no NCCL error in this step", ""},
    // gloo and the store
    {"[rank4]: RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection "
     "closed by peer [10.20.0.5]:41234",
     "1+1: peer_closed rank=4 peer=10.20.0.5 victim=yes\n"},
    {"[rank5]: RuntimeError: [/p/gloo/gloo/transport/tcp/pair.cc:525] Read error "
     "[::ffff:10.20.0.5]:41234: Connection reset by peer",
     "1+1: peer_closed rank=5 peer=10.20.0.5 error=Connection reset by peer victim=yes\n"},
    {"[/p/gloo/transport/tcp/pair.cc:525] Write error 10.20.0.5:41234: Broken pipe",
     "1+1: peer_closed peer=10.20.0.5 error=Broken pipe victim=yes\n"},
    {"[rank6]: RuntimeError: [/p/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting "
     "1800000ms for recv operation to complete",
     "1+1: collective_timeout rank=6 victim=yes op=recv timeout_ms=1800000\n"},
    {"[rank7]: RuntimeError: Application timeout caused pair closure",
     "1+1: peer_closed rank=7 victim=yes\n"},
    {"Connection closed by peer [10.20.0.5]:41234", ""},
    {"Timed out waiting 5ms for recv operation", ""},
    {"[rank2]:[W314 01:50:17.3 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=81, "
     "addr=[node-02]:51044, remote=[node-00]:29500): Failed to recv, got 0 bytes. Connection was "
     "likely closed. Did the remote server shutdown or crash?",
     "1+1: store_lost rank=2 peer=node-00 error=Failed to recv, got 0 bytes. Connection was "
     "likely closed. Did the remote server shutdown or crash? victim=yes\n"},
    {"[rank2]: Failed to check the \"should dump\" flag on TCPStore, (maybe TCPStore server has "
     "shut down too early), with error: Broken pipe",
     "1+1: store_lost rank=2 error=Broken pipe victim=yes\n"},
    {"[rank0]: torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. "
     "7/8 clients joined.",
     "1+1: rendezvous_timeout rank=0 seconds=601 joined=7 expected=8\n"},
    {"[rank0]: Timed out after 601 seconds waiting for clients. 7/1",
     "1+1: rendezvous_timeout rank=0 seconds=601\n"},
    {"[rank5]: recvValue failed on SocketImpl(fd=81, [rank3]: Application timeout caused pair "
     "closure",
     "1+1: store_lost rank=5 victim=yes\n1+0: peer_closed rank=3 victim=yes\n"},
    {"accepted SocketImpl(fd=81, addr=[node-02]:51044, remote=[node-00]:29500)", ""},
    // Whose address stands in front wrote the line there.
    {"(RayTrainWorker pid=41, ip=10.20.0.7) RuntimeError: Application timeout caused pair closure",
     "1+1: peer_closed host=10.20.0.7 pid=41 address=10.20.0.7 victim=yes\n"},
    // other libraries
    {"[rank0]: tensorflow.python.framework.errors_impl.UnknownError: Horovod has been shut down.",
     "1+1: exception rank=0 exception=tensorflow.python.framework.errors_impl.UnknownError "
     "victim=yes\n"},
};

START_TEST(becomes) {
    static const struct decoder_type *const types[] = {&decoder_app_log, &decoder_log};
    static const char *const endings[] = {"", "\r"};
    struct told told;
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 2; k++)
            ck_assert_str_eq(tell(&told, types[i], slice_of(CASES[_i].log), endings[k]),
                             CASES[_i].said);
}
END_TEST

// A cut log says nothing that the whole one does not.
START_TEST(prefixes_say_nothing_wrong) {
    struct told whole, cut;
    struct slice log = slice_of(CASES[_i].log);
    tell(&whole, &decoder_app_log, log, "");
    for (size_t size = 0; size < log.size; size++) {
        char *word, *rest = NULL;
        tell(&cut, &decoder_app_log, (struct slice){log.data, size}, "");
        for (word = strtok_r(cut.said, " \n", &rest); word != NULL;
             word = strtok_r(NULL, " \n", &rest)) {
            bool is_number =
                strchr(word, '=') != NULL && strstr(word, "truncated") == NULL &&
                strspn(strchr(word, '=') + 1, "0123456789") == strlen(strchr(word, '=') + 1);
            ck_assert_msg(!is_number || strstr(whole.said, word) != NULL, "%s in %.*s", word,
                          (int)size, log.data);
        }
    }
}
END_TEST

// The message of an exception is such a report, too.
START_TEST(gathered_by_another) {
    struct told told;
    tell(&told, &decoder_app_log,
         SLICE("Traceback (most recent call last):\n"
               "  File \"/a/train.py\", line 3, in <module>\n"
               "torch.distributed.DistBackendError: NCCL error in: f.cpp:1, unhandled cuda error, "
               "NCCL version 2.27.3\n"
               "ncclUnhandledCudaError: Call to CUDA function failed.\n"
               "Last error:\n"
               "Cuda failure 'x'\n"),
         "");
    ck_assert_msg(strstr(told.said, "nccl_error") != NULL, "%s", told.said);
    ck_assert_msg(strstr(told.said, "ncclUnhandledCudaError") != NULL, "%s", told.said);
    // Its last words are whole, though nothing follows them.
    ck_assert_msg(strstr(told.said, "error=x") != NULL, "%s", told.said);
}
END_TEST

// Loggers put who writes in front of the first line of a message alone.
START_TEST(a_traceback_goes_on_without_its_prefix) {
    static const char *const BETWEEN[] = {
        "", "[rank1]: step 3\n",
        "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"/a.py\", line 1, in f\n"};
    struct told told;
    char log[512];
    snprintf(log, sizeof log,
             "[rank3]: worker hit an exception: Traceback (most recent call last):\n"
             "  File \"/a/train.py\", line 3, in <module>\n%s"
             "  File \"/a/train.py\", line 9, in load\n"
             "KeyError: 'x'\n",
             BETWEEN[_i]);
    tell(&told, &decoder_app_log, slice_of(log), "");
    ck_assert_msg(strstr(told.said, "exception rank=3 exception=KeyError") != NULL, "%s",
                  told.said);
}
END_TEST

// What another wrote does not go on in lines without a prefix that stand elsewhere.
START_TEST(a_traceback_with_prefixes_takes_no_line_without_one) {
    struct told told;
    tell(&told, &decoder_app_log,
         SLICE("[rank3]: Traceback (most recent call last):\n"
               "[rank3]:   File \"/a/train.py\", line 3, in <module>\n"
               "KeyError: 'x'\n"
               "[rank3]: ValueError: y\n"),
         "");
    ck_assert_msg(strstr(told.said, "exception rank=3 exception=ValueError") != NULL, "%s",
                  told.said);
    ck_assert_msg(strstr(told.said, "rank=3 exception=KeyError") == NULL, "%s", told.said);
}
END_TEST

// HCCL has one sentence for all; the code below it says whose fault it is.
START_TEST(codes_of_npus_go_on_from_their_exception) {
    static const struct {
        const char *code, *kind;
    } CODES[] = {{"EJ0001: 2026-01-05-10:11:12 Failed to start", ": exception rank=3"},
                 {"EI0006: 2026-01-05-10:11:12 No socket", ": rendezvous_timeout rank=3"},
                 {"EI00061: 2026-01-05-10:11:12 No socket", ": exception rank=3"},
                 {"STEP 10006: 2026-01-05-10:11:12 No socket", ": exception rank=3"}};
    struct told told;
    char log[512];
    snprintf(log, sizeof log,
             "[rank3]: Traceback (most recent call last):\n"
             "[rank3]:   File \"/a/train.py\", line 3, in <module>\n"
             "[rank3]: RuntimeError: [ERROR] HCCL error in: x.cpp:64\n"
             "[rank3]: [ERROR] 2026-01-05-10:11:12 (PID:7, Device:3, RankID:3) ERR02200 DIST call\n"
             "[rank3]: %s\n",
             CODES[_i].code);
    tell(&told, &decoder_app_log, slice_of(log), "");
    ck_assert_msg(strstr(told.said, CODES[_i].kind) != NULL, "%s", told.said);
    ck_assert_msg((strstr(told.said, "code=EJ0001") != NULL) == (_i == 0), "%s", told.said);
}
END_TEST

// Of services that the program calls, as apart from its peers.
static const struct {
    const char *place, *raised;
    bool is_own;
} SERVICES[] = {
    {"/p/urllib3/connectionpool.py", "ConnectionResetError: [Errno 104] Connection reset by peer",
     true},
    {"/p/train.py", "requests.exceptions.ConnectionError: Connection reset by peer", true},
    {"/p/train.py", "ConnectionResetError: [Errno 104] Connection reset by peer", false},
    {"/p/train.py", "requestsx.ConnectionError: Connection reset by peer", false},
};

START_TEST(a_service_is_no_peer) {
    struct told told;
    char log[512];
    snprintf(log, sizeof log,
             "[rank3]: Traceback (most recent call last):\n"
             "[rank3]:   File \"%s\", line 3, in f\n[rank3]: %s\n",
             SERVICES[_i].place, SERVICES[_i].raised);
    tell(&told, &decoder_app_log, slice_of(log), "");
    const char *victim = SERVICES[_i].is_own ? "victim=no" : "victim=yes";
    ck_assert_msg(strstr(told.said, victim) != NULL, "%s", told.said);
}
END_TEST

// People paste the launcher's traceback and not its end.
START_TEST(a_launcher_s_traceback_without_its_end_says_nothing) {
    static const char *const places[] = {"/bin/torchrun", "/p/torch/distributed/launcher/api.py",
                                         "/p/train.py"};
    struct told told;
    char log[256];
    snprintf(log, sizeof log,
             "Traceback (most recent call last):\n"
             "  File \"%s\", line 3, in f\n",
             places[_i]);
    tell(&told, &decoder_app_log, slice_of(log), "");
    ck_assert_msg((strstr(told.said, "exception") != NULL) == (_i == 2), "%s", told.said);
}
END_TEST

START_TEST(a_line_of_many_reports_is_bounded) {
    static const char report[] = "[rank1]: " TIMEOUT(8, 9);
    struct told told;
    struct buffer_of {
        char text[64 * sizeof report];
    } *many = memory_zero(1, sizeof *many);
    size_t size = 0;
    for (int i = 0; i < 12; i++, size += sizeof report - 1)
        memcpy(many->text + size, report, sizeof report);
    tell(&told, &decoder_app_log, (struct slice){many->text, LINE_MAX - 1}, "");
    size_t events = 0;
    for (const char *at = told.said; (at = strstr(at, "watchdog_timeout")) != NULL; at++)
        events++;
    ck_assert_uint_eq(events, (LINE_MAX - 1 + sizeof report - 2) / (sizeof report - 1));
    memory_give(many);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("rank_log");
    TCase *cases = tcase_create("rank_log");
    tcase_add_loop_test(cases, becomes, 0, sizeof CASES / sizeof *CASES);
    tcase_add_loop_test(cases, prefixes_say_nothing_wrong, 0, sizeof CASES / sizeof *CASES);
    tcase_add_test(cases, gathered_by_another);
    tcase_add_loop_test(cases, a_traceback_goes_on_without_its_prefix, 0, 3);
    tcase_add_test(cases, a_traceback_with_prefixes_takes_no_line_without_one);
    tcase_add_loop_test(cases, a_launcher_s_traceback_without_its_end_says_nothing, 0, 3);
    tcase_add_loop_test(cases, a_service_is_no_peer, 0, sizeof SERVICES / sizeof *SERVICES);
    tcase_add_loop_test(cases, codes_of_npus_go_on_from_their_exception, 0, 4);
    tcase_add_test(cases, a_line_of_many_reports_is_bounded);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
