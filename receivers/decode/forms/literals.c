// SPDX-License-Identifier: Apache-2.0
// Six bytes of each text: those that are the rarest in a log of a job that goes well.
#include "receivers/decode/forms/literals.h"

#include "receivers/decode/forms/needles.h"

#define HAS(text)                                                                                  \
    { text "", false }
#define WITHIN(text)                                                                               \
    { text "", true }

const struct form_literal FORM_LITERALS[] = {
    // app_log/exception.c: a name, and nothing or ": " or "(" behind it
    HAS("Error:"),
    HAS("Error("),
    HAS("Error\n"),
    HAS("Error\r"),
    HAS("Error "),
    HAS("Error\t"),
    HAS("Error\\"), // inside a text of JSON
    HAS("Error\""),
    HAS("xcepti"),
    HAS("Interr"),
    HAS("temExi"), // SystemExit
    HAS("nBarri"), // BrokenBarrier
    HAS("Traceb"),
    HAS("atexit"),
    HAS("ng err"), // "--- Logging error ---"
    // app_log/killed.c, app_log/terminate.c
    HAS("Killed"),
    HAS("Aborte"),
    HAS("gmenta"), // "Segmentation fault"
    HAS("us err"), // "Bus error"
    HAS("Termin"), // "Terminated", "Terminating the process after"
    HAS("loatin"), // "Floating point exception"
    HAS("Illega"),
    HAS("Hangup"),
    HAS(": line"),
    HAS("Fatal "), // "Fatal Python error: "
    HAS("nate c"), // "terminate called"
    // app_log/rank_log.c, app_log/gloo.c, app_log/nccl.c, app_log/monitor.c, app_log/watchdog.c
    HAS("ir clo"), // "pair closure"
    HAS("n clos"), // "Connection closed by peer"
    HAS("ct tim"), // "Connect timeout"
    HAS("GIL wi"), // "Could not acquire GIL within"
    HAS("\"shoul"),
    HAS("PG on "), // "First PG on this rank to signal dumping"
    HAS("Heartb"),
    HAS("NCCL W"), // "NCCL WARN", "NCCL Work update"
    HAS("NCCL e"),
    HAS("NCCL w"), // "NCCL watchdog", "Timeout at NCCL work", "last enqueued NCCL work"
    HAS("flight"), // "Observed flight recorder dump signal"
    HAS("PG sta"), // "PG status: last enqueued work: "
    HAS("roup w"), // "Process group watchdog thread terminated"
    HAS("'s wat"), // "ProcessGroupNCCL's watchdog got stuck"
    HAS("a dump"), // "Received a dump signal"
    HAS("Read e"),
    HAS("Write "),
    HAS("r dete"), // "Rank 3] remote error detected from rank: "
    HAS("Stack "), // "Stack trace of the failed collective"
    HAS("ave fa"), // "Some NCCL operations have failed"
    HAS("tImpl("), // "SocketImpl("
    HAS("Timed "),
    HAS("Watchd"),
    // launcher/summary.c, launcher/failures.c
    WITHIN("exitco"),
    HAS("Root C"),
    HAS("ssFail"), // ": ProcessFailure(local_rank="
    HAS("FAILED"),
    // slurm/slurm.c, slurm/sacct.c
    HAS("* STEP"),
    HAS("** JOB"),
    HAS("Detect"),
    HAS("srun: "),
    HAS(": Node"), // "error: Node", "error: Nodes"
    WITHIN("JobID "),
    WITHIN("JobID|"),
    WITHIN("JobID\t"),
    WITHIN("JobID\\"),
    WITHIN("JobID,"),
    WITHIN("JobIDR"),
    WITHIN("|JobID"),
    // nccl_ras/text.c: a section begins with a line of few words
    WITHIN("ging G"), // "managing GPU"
    WITHIN("y proc"), // "managed by process"
    WITHIN("ator r"), // "Communicator ranks have different"
    WITHIN("ator d"), // "Missing communicator data"
    WITHIN("not fi"), // "[could not find information"
    WITHIN("he mis"), // "The missing rank"
    WITHIN("on err"), // "Initialization error"
    WITHIN("nous e"), // "Asynchronous error"
    HAS("MPLETE"),
    HAS("PEER_D"),
    HAS("PEER_N"),
    // py_spy/text.c, ib_counters/lines.c
    WITHIN("Python"), // "Python v3.11.4 (/usr/bin/python3.11)"
    HAS("/class"),
    // kernel_log/nvidia.c, kernel_log/xid.c, kernel_log/nvswitch.c
    HAS("NVRM: "),
    HAS("nvswit"),
    HAS("NVSwit"),
    // kernel_log/aer.c
    HAS("Bus Er"), // "PCIe Bus Error: severity="
    HAS("eceive"), // "error received: ", "*** SIGABRT received at time="
    HAS("aer_st"),
    HAS("aer_la"),
    HAS("aer_un"),
    HAS("s/mask"),
    HAS("ainmen"), // "containment event"
    HAS(" recov"), // "device recovery", "can't recover"
    HAS("rt lin"), // "Root Port link has been reset"
    HAS("dinate"), // "subordinate device reset failed"
    HAS("cks su"), // "callbacks suppressed"
    HAS("TLP He"),
    // kernel_log/oom.c
    HAS("ice ch"), // "or sacrifice child"
    HAS("oom-ki"),
    // kernel_log/machine.c, kernel_log/amdgpu.c
    HAS("ine Ch"), // "Machine Check"
    HAS("re Err"), // "[Hardware Error]: "
    // nvidia_smi/nvidia_smi.c
    HAS("GPU 00"), // "GPU 00000000:9B:00.0"
    HAS("<gpu i"),
    HAS("Timest"), // "Timestamp   : Thu Mar 14 20:46:07 2024"
    HAS("<times"),
    // the beginning of an entry of `journalctl -o export`, of a container's line that is a part
    HAS("URSOR="),
    HAS("out P "),
    HAS("err P "),
    // colours inside a text of JSON, and a message that the journal wrote as numbers
    HAS("\\u001b"),
    HAS("\\u001B"),
    HAS("AGE\":["),
    HAS("E\" : ["),
};
const unsigned FORM_LITERAL_COUNT = sizeof FORM_LITERALS / sizeof *FORM_LITERALS;

_Static_assert(NEEDLE_SIZE == 6, "the texts above have as many bytes");
