// SPDX-License-Identifier: Apache-2.0
// The parts of fabric_link: what was said of links (said.c), what counters of ports did
// (counters.c), which of it is a fault of a port (port.c) or of NVLink (nvlink.c), the verdict
// (verdict.c).
#pragma once

#include "pipeline/model/node_event.h"
#include "processors/cluster/detector.h"
#include "processors/cluster/row_bound.h"
#include "processors/cluster/tables.h"
#include "processors/cluster/verdict_builder.h"
#include "processors/cluster/xid_text.h"

struct fabric_config {
    struct duration settle;   // a link that is down for less is none
    struct duration window;   // in which flaps and errors are counted
    struct duration burst;    // errors of NVLink on one node with no longer gap are one fault
    struct duration remember; // how long another detector may still tell of it
    int64_t flaps, errors, nonfatal_errors;
    int64_t confidence_down, confidence_flapping, confidence_errors, confidence_nvlink;
    int64_t max_said, max_ports, max_waiting, max_faults;
};

// -- What is said of links ------------------------------------------------------------------------

enum link_what {
    LINK_DOWN,
    LINK_UP,
    LINK_LOST,     // a program was told by its card that the port is gone
    LINK_FAILED,   // the card itself does not answer
    LINK_TROUBLE,  // a queue that does not drain, a module or cable with errors
    LINK_COUNTED,  // a counter of errors rose
    LINK_REMOTE,   // a program could not reach the other end: goes with others
    LINK_XID,      // of NVLink
    LINK_SXID,     // of an NVSwitch
    LINK_GPU_LOST, // Xid 79: why others may have lost the link to it
    LINK_RECOVERY  // Xid 154: what the driver asks for
};

// How grave an Xid of NVLink or an SXid is, from light to grave.
enum link_fatal {
    LINK_GOES_ON,
    LINK_BY_SOFTWARE, // it was taken down on purpose
    LINK_BY_PEER,     // the other end failed
    LINK_ENDS_PROCESS,
    LINK_FATAL
};

// Counters of ports that tell of the link. What is not listed tells of load, or of the other end.
enum port_counter {
    PORT_STATE, // 1: active
    PORT_LINK_DOWNED,
    PORT_SYMBOL_ERRORS,
    PORT_RECEIVE_ERRORS,
    PORT_RECOVERIES,
    PORT_INTEGRITY_ERRORS,
    PORT_OVERRUNS,
    PORT_REMOTE_ERRORS,
    PORT_COUNTER_COUNT
};
extern const struct port_counter_row {
    const char *name;
    int64_t max; // where it sticks
} PORT_COUNTERS[PORT_COUNTER_COUNT];

enum { LINK_TEXT_MAX = 192 };

struct link_said {
    struct row_head head;
    string_id node;   // the key: up to `counter`
    uint64_t address; // of the card (its device), the GPU or the switch; PCI_NONE: not said
    uint64_t time_ns;
    string_id device; // "mlx5_0", "ens1f0np0"; STRING_NONE: not said
    uint32_t what;    // enum link_what
    int32_t port;     // or link of NVLink; -1: not said
    uint32_t code;    // LINK_XID, LINK_SXID
    // LINK_DOWN and LINK_UP by state, LINK_COUNTED: enum port_counter. LINK_XID: the code of the
    // line that tells of it; 0: its own.
    uint32_t counter;
    uint32_t sampled; // a counter or state tells of it: it happened after since_ns
    uint32_t fatal;   // LINK_XID, LINK_SXID: enum link_fatal
    uint32_t text_size;
    uint64_t since_ns;
    int64_t from, to;
    char text[LINK_TEXT_MAX]; // as the line said it
};

// A name of a card on its node, and its address.
struct card_name {
    struct row_head head;
    string_id node; // the key: up to `device`
    string_id device;
    uint64_t address;
    uint64_t time_ns;
};

// That a machine, or a driver of it, started or stopped.
struct restart {
    struct row_head head;
    string_id node; // the key: up to `is_up`
    uint64_t time_ns;
    uint64_t address; // of the card; PCI_NONE: all of the driver's
    uint32_t of;      // enum state_of
    uint32_t is_up;
};

enum state_of { STATE_OF_MACHINE = 1, STATE_OF_CARDS = 2, STATE_OF_GPUS = 4 };

extern const struct row_type LINK_SAID_ROWS, CARD_NAME_ROWS, RESTART_ROWS, PORT_SAMPLE_ROWS,
    PORT_ROWS;

struct link_log {
    struct keyed_rows rows;     // LINK_SAID_ROWS
    struct keyed_rows names;    // CARD_NAME_ROWS
    struct keyed_rows restarts; // RESTART_ROWS
    struct row_bound bound, name_bound, restart_bound;
};

// An OBSERVATION_NODE_STATE.
void restart_take(struct link_log *log, const struct event *event, struct arena *scratch);
// States of nodes in order, to be asked.
struct restart_list {
    const struct restart **items; // by node, then time
    uint32_t count;
};
struct restart_list link_log_restarts(const struct link_log *log, struct arena *arena);
// Whether what is said is how links are while a machine or a driver starts or stops, and no fault.
bool restart_list_excuses(const struct restart_list *list, const struct link_said *said);

// The row of what is said, new or not, with its key set. `like`: the key.
struct link_said *link_log_add(struct link_log *log, const struct link_said *like,
                               struct arena *scratch);
// What lines say: EVENT_KERNEL and EVENT_OBSERVATION but for counters and states of ports. O(1).
void link_log_take(struct link_log *log, const struct event *event, struct arena *scratch);
// Learns the address of a card's name.
void link_log_name(struct link_log *log, string_id node, string_id device, pci_address address,
                   uint64_t time_ns, struct arena *scratch);
// "0000:5c:00", "0000:5c:00.1": each function of a card is a port, and the first is not written.
const char *card_text(pci_address address, struct arena *arena);
const char *link_said_uid(const struct link_said *said, struct arena *arena);

// -- Counters of ports ----------------------------------------------------------------------------

struct port_counters {
    struct table waiting;    // PORT_SAMPLE_ROWS
    struct keyed_rows ports; // PORT_ROWS
    struct row_bound bound;
    uint32_t waiting_max;
};

// An OBSERVATION_IB_COUNTER or OBSERVATION_IB_STATE; others are passed over.
void port_counters_take(struct port_counters *counters, struct link_log *log,
                        const struct event *event, struct arena *scratch);
// Reads what was sampled up to `until_ns`, in order of time; what changed goes into the log.
void port_counters_read(struct port_counters *counters, struct link_log *log, uint64_t until_ns,
                        struct arena *scratch);

// -- Faults ---------------------------------------------------------------------------------------

enum fabric_kind {
    FABRIC_NONE,
    FABRIC_ERRORS,
    FABRIC_FLAPPING,
    FABRIC_DOWN,
    FABRIC_NVLINK,
    FABRIC_SWITCH
};

// Where it is: a card, or NVLink of a node.
struct link_place {
    uint64_t address; // also where only a name was said; LINK_OF_NODE: NVLink
    string_id node;
    string_id device; // STRING_NONE where the address is known
};
#define LINK_OF_NODE (PCI_NONE - 1)

// What was said, and what of it is looked at for each, so that the row need not be.
struct link_item {
    const struct link_said *said;
    struct link_place place;
    uint64_t time_ns;
    const char *uid; // or NULL: nobody asked for it yet
    int64_t rise;    // LINK_COUNTED: by how much the counter rose; else 0
    string_id name;  // of said: as it was called
    int32_t port;    // of said
    uint8_t what;    // enum link_what
    uint8_t counter; // enum port_counter
    bool sampled;
};

const char *link_item_uid(const struct link_item *item, struct arena *arena);

// One fault of one card, or of NVLink on one node.
struct fabric_fault {
    string_id node;
    uint64_t address; // of the card; of NVLink: PCI_NONE
    string_id device;
    const struct link_item *items; // ascending by time
    uint32_t count;
    const struct link_item *anchor; // what names it
    enum fabric_kind kind;
    enum severity severity;
    const char *action;
    uint64_t first_ns, last_ns;
    uint64_t down_ns;              // FABRIC_DOWN: for how long, 0: not known
    bool is_up;                    // … and it is up again
    bool failed;                   // … and the card itself does not answer
    int64_t number;                // of flaps, or errors
    const struct link_said *named; // what the card is called: by the name that programs use, else
                                   // that of the interface; NULL: by none
};

struct fabric_faults {
    struct fabric_fault *items; // by time, node, address, device
    uint32_t count;
};

struct fabric_link {
    struct detector_base base;
    struct fabric_config config;
    struct link_log log;
    struct port_counters counters;
    struct keyed_rows faults; // struct told_link
    struct row_bound fault_bound;
};

// The fault of a card of which these are the items; FABRIC_NONE: none of them is one.
struct fabric_fault port_fault(const struct fabric_config *config, const struct link_item *items,
                               uint32_t count, uint64_t now_ns);
enum recovery nvlink_recovery(const struct fabric_fault *fault);
// The same for NVLink on one node.
struct fabric_fault nvlink_fault(const struct fabric_config *config, const struct link_item *items,
                                 uint32_t count);
// All faults up to `now_ns`; in the arena. O(rows · log).
struct fabric_faults fabric_find(const struct fabric_link *self, uint64_t now_ns,
                                 struct arena *arena);

// A fault that was found: by node, card and the time it began when it was first found.
struct told_link {
    struct row_head head;
    string_id node; // the key: up to `device`
    uint64_t address;
    uint64_t anchor_ns;
    string_id device;
    uint32_t told;
    uint64_t first_ns, last_ns;
    uint32_t seen;
    uint32_t kind;
    char told_by[VERDICT_ID_SIZE];
};

void fabric_verdict(const struct fabric_config *config, const struct told_link *told,
                    const struct fabric_fault *fault, struct verdict_builder *builder);
