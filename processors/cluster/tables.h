// SPDX-License-Identifier: Apache-2.0
// Xid and SXid codes, PCIe error bits and clock reasons with their meanings:
// processors/cluster/tables/*.tsv, made into C by the build (generate.awk beside them). Texts are
// static.
#pragma once

#include "pipeline/model/node_event.h"
#include "pipeline/model/verdict.h"

// -- Xid codes (xid.tsv) --------------------------------------------------------------------------

enum xid_class {
    XID_CLASS_HARDWARE,
    XID_CLASS_AMBIGUOUS, // the program or the hardware
    XID_CLASS_APPLICATION,
    XID_CLASS_DRIVER,
    XID_CLASS_INFORMATIONAL,
    XID_CLASS_CONSEQUENCE, // of another Xid
    XID_CLASS_ACTION,      // says what to do about another Xid
    XID_CLASS_DETAIL,      // to another Xid
};
enum xid_anchor { XID_ANCHOR_NO, XID_ANCHOR_LOW, XID_ANCHOR_YES };
enum xid_hbm_role { XID_HBM_NO, XID_HBM_CONTEXT, XID_HBM_STORM, XID_HBM_ANCHOR };

struct xid_row {
    uint32_t code;
    // As written in the table.
    const char *mnemonic, *meaning, *class_text, *severity_text, *fault_domain, *nvidia_immediate,
        *nvidia_investigatory, *action_text, *anchor_text, *hbm_role_text, *source;
    // What they mean. Where `needs_fatal`, severity, action and anchor hold for a line with the
    // word Fatal; without it they are warning, monitor, and no: see xid_judge.
    enum xid_class class;
    enum severity severity;
    enum xid_anchor anchor;
    enum xid_hbm_role hbm_role;
    const char *action; // of the schema's list; NULL: this code decides nothing, another Xid does
    bool needs_fatal;
    bool when_free; // the action waits until the GPU is free
};

struct xid_judgement {
    enum severity severity;
    enum xid_anchor anchor;
    const char *action; // NULL as above
};

// The row of a code, also where it is one of those that the row names ("also 40, 41"). NULL: none.
const struct xid_row *xid_find(uint32_t code);
// `fatal`: the line holds the word Fatal. A code without a row: warning, no anchor, monitor.
struct xid_judgement xid_judge(uint32_t code, bool fatal);

// -- Xid 144 to 150: errors of NVLink 5 (nvlink5.tsv) ---------------------------------------------

// What such an Xid means for its GPU. The words Fatal and Nonfatal are a start only.
enum nvlink5 {
    NVLINK5_UNKNOWN,      // the table does not know it: the word decides
    NVLINK5_NOTHING,      // a note of software, or one that a test made
    NVLINK5_NOTE,         // it goes on
    NVLINK5_SOFTWARE,     // software or somebody took the link down
    NVLINK5_PEER,         // the other end of the link failed first: this GPU is a witness
    NVLINK5_ENDS_PROCESS, // "Nonfatal", but the process ends, and Xid 154 says what the GPU needs
    NVLINK5_FATAL
};
enum { NVLINK5_STATUSES_MAX = 6 };

struct nvlink5_row {
    uint32_t xid;
    const char *units;                       // "TLW_RX/TLW_RX_PIPE0": any of them
    uint32_t subcode;                        // bits 25 to 20 of the first word
    uint32_t statuses[NVLINK5_STATUSES_MAX]; // of the second: bits, of Xid 149 numbers; 0: any
    uint32_t status_count;
    // As written in the table.
    const char *status_text, *nvidia_immediate, *nvidia_investigatory, *severity_text, *judged_text,
        *effect;
    enum nvlink5 judged;
};

// `detail`: what the line says behind the number, "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x… 0x…".
// Any bytes, O(size).
enum nvlink5 nvlink5_judge(uint32_t xid, struct slice detail);

// -- SXid codes (sxid.tsv) ------------------------------------------------------------------------

// Whether it may be passed over, by NVIDIA's guide or its driver: see `authority`.
enum sxid_harmless {
    SXID_HARMLESS_NO,
    SXID_HARMLESS_YES,
    SXID_HARMLESS_RARE,    // as long as they are few
    SXID_HARMLESS_RESTART, // when a GPU or driver is reset
    SXID_HARMLESS_FOLLOW   // it follows from what a GPU says
};

struct sxid_row {
    uint32_t code;
    // As written in the table.
    const char *name, *severity_text, *harmless_text, *authority, *meaning, *action;
    enum kernel_fatal severity; // KERNEL_FATAL_UNKNOWN: as the line says
    enum sxid_harmless harmless;
};

const struct sxid_row *sxid_find(uint32_t code); // NULL: unknown

// -- PCIe error bits (aer_bits.tsv) ---------------------------------------------------------------

struct aer_bit {
    const char *reg; // "correctable", "uncorrectable"
    uint32_t bit;
    const char *kernel_name, *sysfs_doc_name, *kernel_layer, *kernel_agent, *default_severity_text,
        *usual_meaning, *source;
    enum aer_severity default_severity;
};

// AER_CORRECTABLE: the correctable register; any other severity: the uncorrectable one.
const struct aer_bit *aer_bit_find(enum aer_severity severity, uint32_t bit); // NULL: unknown
// By the kernel's name or that of its documentation, in any case: "RxErr", "Receiver Error".
const struct aer_bit *aer_bit_find_name(enum aer_severity severity, struct slice name);

// -- Clock reasons (throttle_bits.tsv) ------------------------------------------------------------

struct throttle_bit {
    uint64_t mask; // one bit; 0: a reason that is named but whose bit is not known
    const char *bit_text, *dcgm_name, *meaning, *group, *use, *source;
};

const struct throttle_bit *throttle_bit_find(uint64_t mask); // of one bit; NULL: unknown

// -- The tables themselves, for those who walk them -----------------------------------------------

extern const struct xid_row XID_ROWS[]; // ascending by code
extern const size_t XID_ROWS_COUNT;
struct xid_alias {
    uint32_t code, row;
};
extern const struct xid_alias XID_ALIASES[];
extern const size_t XID_ALIASES_COUNT;
extern const struct nvlink5_row NVLINK5_ROWS[];
extern const size_t NVLINK5_ROWS_COUNT;
extern const struct sxid_row SXID_ROWS[]; // ascending by code
extern const size_t SXID_ROWS_COUNT;
extern const struct aer_bit AER_BITS[];
extern const size_t AER_BITS_COUNT;
extern const struct throttle_bit THROTTLE_BITS[];
extern const size_t THROTTLE_BITS_COUNT;
