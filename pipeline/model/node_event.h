// SPDX-License-Identifier: Apache-2.0
// What is seen around a training process: Flight Recorder dumps, kernel lines, GPU and PCIe
// counters, Kubernetes objects, who runs where.
//
// Payloads lie in the batch's arena and die with it, as those of every event do (event.h). Texts
// are decoded UTF-8; an absent one has data NULL. Times are Unix nanoseconds, 0: not known.
#pragma once

#include "base/intern.h"

#include <stdbool.h>
#include <stdint.h>

// -- PCI addresses ------------------------------------------------------------------------------

// Domain << 16 | bus << 8 | device << 3 | function, as in "0000:9b:00.0"; PCI_NONE: none.
// Two functions of one device (a GPU and its sound device) differ only in the last three bits.
typedef uint64_t pci_address;
#define PCI_NONE UINT64_MAX
enum { PCI_TEXT_MAX = 24 };

// Reads "0000:9b:00", "0000:9b:00.0", "00000000:9B:00.0", "PCI:0000:9b:00", "9b:00.0" (domain 0),
// in any case. False when the text is none of them.
bool pci_parse(struct slice text, pci_address *address);
static inline pci_address pci_device(pci_address address) {
    return address == PCI_NONE ? PCI_NONE : address & ~UINT64_C(7);
}
void pci_format_device(pci_address address, char out[PCI_TEXT_MAX]);   // "0000:9b:00"
void pci_format_function(pci_address address, char out[PCI_TEXT_MAX]); // "0000:9b:00.0"

// -- EVENT_FLIGHT: a Flight Recorder dump, or one entry as it changes -----------------------------

enum flight_state { FLIGHT_SCHEDULED, FLIGHT_STARTED, FLIGHT_COMPLETED };

struct flight_group {
    struct slice name; // process_group[0], the key of pg_config
    struct slice desc;
    const int32_t *members; // ascending; NULL: pg_config does not say, or what it says is no list
    uint32_t member_count;
};

struct flight_entry {
    int64_t record_id;
    int64_t collective_seq_id;
    int64_t p2p_seq_id;
    struct slice group; // process_group[0]
    struct slice desc;  // process_group[1]
    struct slice name;  // profiling_name, "nccl:all_reduce"
    uint64_t created_ns;
    uint64_t started_ns;   // when a start was discovered; 0: was not
    uint64_t completed_ns; // when a completion was discovered; 0: was not
    enum flight_state state;
    bool retired;
    bool is_p2p;
    int64_t timeout_ms; // 0: not said
    // As compact JSON, "[[4096,4096]]" and "[\"BFloat16\"]"; data NULL: not said.
    struct slice input_sizes, output_sizes, input_dtypes, output_dtypes;
};

struct flight_dump {
    int32_t rank;         // who wrote it, or RANK_NONE: the file's name does not say
    bool whole;           // a dump; false: one entry, streamed
    bool is_file;         // came as a file of its own, so it was taken because something hung
    uint64_t observed_ns; // 0: not known
    struct slice version; // "2.10"
    struct slice backend; // prefix of the operations' names, "nccl"; empty when there are none
    struct slice pod, namespace; // of who sent it; data NULL: not said
    const struct flight_group *groups;
    uint32_t group_count;
    const struct flight_entry *entries; // in the order of the dump, oldest first
    uint32_t entry_count;
    bool reports_states;   // an entry of it was ever started or completed
    bool counts_completed; // pg_status counts operations that ended: a retired entry is one of them
    // Why it could not be read, in a clause; then nothing is known but whose it is, and that it was
    // there. data NULL: it was read.
    struct slice unreadable;
};

// -- EVENT_KERNEL: one line of the kernel log
// -------------------------------------------------------

enum kernel_kind {
    KERNEL_OTHER,    // nothing that a detector looks for: such lines are not handed on
    KERNEL_XID,      // NVRM: Xid (…): CODE, …
    KERNEL_GPU_LOST, // a line that means Xid 79 without its number
    KERNEL_GPU_UUID, // NVRM: GPU at PCI:…: GPU-UUID
    KERNEL_SXID,     // nvidia-nvswitch: SXid
    KERNEL_AER,      // any line of an AER report, see `aer`
};

enum aer_line {
    AER_PORT,       // a port tells of an error message that it received
    AER_ERROR,      // PCIe Bus Error: severity=, type=
    AER_STATUS,     // device [vvvv:dddd] error status/mask=
    AER_BIT,        // "   [ 0] RxErr", also "(First)"
    AER_HEADER,     // TLP Header
    AER_RECOVERED,  // device recovery successful
    AER_FAILED,     // device recovery failed, can't recover
    AER_LINK_RESET, // Root Port link has been reset
    AER_DPC,        // DPC: containment event
    AER_SUPPRESSED, // N callbacks suppressed
    AER_FATAL_BITS, // aer_uncor_severity: which bits are fatal ones, in `status`
};

enum aer_severity { AER_SEVERITY_UNKNOWN, AER_CORRECTABLE, AER_NONFATAL, AER_FATAL };

enum kernel_fatal { KERNEL_FATAL_UNKNOWN, KERNEL_FATAL_NO, KERNEL_FATAL_YES };

struct kernel_line {
    enum kernel_kind kind;
    struct slice text;   // without prefixes of the transport
    pci_address address; // of what the line speaks; PCI_NONE: none
    uint64_t boot_us;    // since boot, where the transport says only that; else 0
    bool truncated;      // the line breaks off: what was there of it
    // KERNEL_XID, KERNEL_SXID
    uint32_t code;
    int64_t pid;          // -1: not said
    struct slice process; // name=
    struct slice detail;  // what follows; AER_BIT: the bit's name as written
    int32_t link;         // of NVLink; -1: not said, or the whole GPU
    enum kernel_fatal fatal;
    struct slice unit;   // Xid 144 to 150: "NETIR_LINK_EVT"; SXid: the switch, "nvidia-nvswitch3"
    struct slice action; // Xid 154: "Drain and Reset"
    uint32_t caused_by;  // the Xid that this one follows from; 0: not said
    // KERNEL_GPU_UUID
    struct slice uuid; // "GPU-…"
    // KERNEL_AER
    enum aer_line aer;
    enum aer_severity severity;
    bool multiple;         // "Multiple … received"
    pci_address port;      // AER_PORT: who tells; `address` is then the sender, or PCI_NONE
    uint32_t status, mask; // AER_STATUS
    uint16_t vendor, device;
    int32_t bit;         // AER_BIT
    struct slice layer;  // AER_ERROR: "Data Link Layer"
    struct slice driver; // AER_ERROR: name before the address
};

// -- EVENT_GPU_SAMPLE: counters of GPUs at one moment
// -----------------------------------------------

// Fields by what they mean: GPU_XID and the others of gpu_fields.h.
enum gpu_field {
#define GPU_FIELD(field, name, others) GPU_##field,
#include "pipeline/model/gpu_fields.h"
#undef GPU_FIELD
    GPU_FIELD_COUNT
};
// DCGM's name as evidence ids use it, one for each field whichever was read.
const char *gpu_field_name(enum gpu_field field);
// How the input wrote a field: 0 is the name above, others are those of gpu_fields.h in their
// order.
enum { GPU_SPELLINGS = 4, GPU_SPELLING_MAX = 64 };
// "DCGM_FI_DEV_XID_ERROR", "230"; the name above where the field has no such spelling.
void gpu_field_spelling(enum gpu_field field, uint32_t spelling, char out[GPU_SPELLING_MAX]);

struct gpu_sample {
    uint64_t time_ns;
    string_id node;    // STRING_NONE: not said
    struct slice uuid; // "GPU-…", or data NULL
    pci_address address;
    int32_t index;      // "gpu", -1: not said
    struct slice model; // or data NULL
    struct slice pod, namespace;
    uint64_t present;    // bit f: field f is there; DCGM's blank values are missing ones
    uint64_t spelled[2]; // bit f: the low and the high bit of how field f was spelled
    double value[GPU_FIELD_COUNT];
    // Integers above 2^53 are not lost: the same as a whole number, where it is one.
    int64_t whole[GPU_FIELD_COUNT];
};
_Static_assert(GPU_FIELD_COUNT <= 64, "one bit each");
_Static_assert(GPU_SPELLINGS == 4, "two bits each");

static inline uint32_t gpu_sample_spelling(const struct gpu_sample *sample, enum gpu_field field) {
    return (uint32_t)((sample->spelled[0] >> field & 1) | (sample->spelled[1] >> field & 1) << 1);
}
static inline void gpu_sample_spell(struct gpu_sample *sample, enum gpu_field field,
                                    uint32_t spelling) {
    for (int i = 0; i < 2; i++) {
        sample->spelled[i] &= ~(UINT64_C(1) << field);
        sample->spelled[i] |= (uint64_t)(spelling >> i & 1) << field;
    }
}

struct gpu_scrape {
    const struct gpu_sample *samples;
    uint32_t count;
};

// -- EVENT_AER_COUNTERS: sysfs aer_dev_correctable, _nonfatal, _fatal of one device
// ----------------

enum { AER_COUNTERS_MAX = 32 };
struct aer_counter {
    struct slice name; // "RxErr", as in aer_bits.tsv (the kernel's own spelling)
    uint64_t count;
};
struct aer_counters {
    pci_address address;
    struct aer_counter correctable[AER_COUNTERS_MAX], nonfatal[AER_COUNTERS_MAX],
        fatal[AER_COUNTERS_MAX];
    uint32_t correctable_count, nonfatal_count, fatal_count; // TOTAL_ lines are not among them
    bool has_correctable, has_nonfatal, has_fatal;           // which files were there
    uint64_t correctable_total, nonfatal_total, fatal_total; // the TOTAL_ lines
};

// -- EVENT_KUBERNETES
// ---------------------------------------------------------------------------------

enum kubernetes_kind { KUBERNETES_EVENT, KUBERNETES_POD, KUBERNETES_NODE };
enum watch_type { WATCH_NONE, WATCH_ADDED, WATCH_MODIFIED, WATCH_DELETED };
enum { CONDITIONS_MAX = 32, ALIASES_MAX = 16 };

struct kubernetes_condition { // of a Node or a Pod
    struct slice type;        // "MemoryPressure", "DisruptionTarget"
    struct slice status;      // "True", "False", "Unknown"
    struct slice reason, message;
    uint64_t transition_ns;
    struct slice transition_text; // as written, for evidence ids
};

struct kubernetes_object {
    enum kubernetes_kind kind;
    enum watch_type watch;
    uint64_t observed_ns; // when it was read; 0: not known
    struct slice name, namespace, uid;
    // Event: after the order eventTime, series.lastObservedTime, lastTimestamp, firstTimestamp,
    // creationTimestamp.
    uint64_t event_ns;
    bool whole_seconds;                 // that time has no finer digits
    struct slice reason, message, type; // message: note
    struct slice object_kind, object_name, object_namespace, object_uid;
    struct slice component; // source.component or reportingController
    struct slice host;      // source.host, or reportingInstance of the kubelet
    int64_t count;
    struct slice starved_resource; // annotation
    struct slice said_node; // kubernetes_said_node, once the pipeline's names of nodes are known
    // Node: its addresses, and the label kubernetes.io/hostname. Pod: status.hostIP of its node.
    // ALIASES_MAX at most; no loopback addresses.
    const struct slice *aliases;
    uint32_t alias_count;
    // Pod
    struct slice node_name; // spec.nodeName
    struct slice phase, status_reason, status_message;
    struct slice
        job_label; // job-name, training.kubeflow.org/job-name, batch.kubernetes.io/job-name
    bool has_gpu;  // limits nvidia.com/gpu
    uint64_t deletion_ns;
    // Pod and Node
    const struct kubernetes_condition *conditions;
    uint32_t condition_count;
};

// The node in the message of an event that names it nowhere else: "Successfully assigned
// NAMESPACE/NAME to NODE", "Preempted by pod UID on node NODE". Data NULL: none.
struct slice kubernetes_said_node(const struct kubernetes_object *object);

// -- EVENT_RANK_MAP: which GPU and process a rank uses
// ----------------------------------------------

struct rank_place {
    int32_t rank, local_rank;
    string_id node;
    struct slice pod, namespace;
    struct slice uuid; // of the GPU, or data NULL
    pci_address address;
    int32_t index;
    int64_t pid; // -1: not said
};

// -- EVENT_APP_LINE: what a training process wrote
// ---------------------------------------------------

enum app_line_kind {
    APP_TIMEOUT,  // the watchdog of a process group: an operation did not end in time
    APP_PROGRESS, // … which operations were enqueued and completed last, `has_progress`
};

// A number that the line has, but that can count no operations (memory that was never set).
enum { APP_NUMBER_UNKNOWN = -2 };

// It proves that this rank waited, not who is to blame. Numbers that the line does not have are -1.
struct app_line {
    enum app_line_kind kind;
    int32_t rank;              // in the job, or RANK_NONE
    int32_t group_rank;        // within the process group, as "[Rank 3]" says it; -1: not said
    struct slice text;         // the line, without its newline
    struct slice group;        // name of the process group ("0"); data NULL: not said
    struct slice group_desc;   // "default_pg"
    struct slice operation;    // "ALLREDUCE"; data NULL: not said
    int64_t collective_seq_id; // SeqNum, or the work that the line is about
    int64_t input_elements, output_elements;
    int64_t timeout_ms, ran_ms;
    bool has_progress;
    int64_t last_enqueued, last_completed; // sequence numbers; -1: none yet; or APP_NUMBER_UNKNOWN
    bool truncated;                        // the line breaks off: what was there of it
    // Of who wrote it: -1, data NULL: not said.
    int64_t pid;
    struct slice pod, namespace, address;
};
