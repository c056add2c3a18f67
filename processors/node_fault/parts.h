// SPDX-License-Identifier: Apache-2.0
// The parts of node_fault: what machines said (said.c), which of it is one fault (find.c), what the
// causes mean (causes.c), the verdict (verdict.c).
#pragma once

#include "processors/cluster/detector.h"
#include "processors/cluster/restart.h"
#include "processors/cluster/row_bound.h"
#include "processors/cluster/verdict_builder.h"

struct node_fault_config {
    struct duration burst;    // what a part of a machine says with no longer gap is one fault
    struct duration remember; // how long what was said is kept
    int64_t confidence;
    int64_t max_said, max_faults;
};

// -- Causes ---------------------------------------------------------------------------------------

// Faults of one part of a machine are one fault.
enum node_part { PART_SYSTEM, PART_GPU, PART_FABRIC, PART_DEVICES, PART_PODS };

struct node_cause {
    const char *name; // as rows of forms say it, and the verdict's kind
    enum node_part part;
    uint32_t grade; // of one part the gravest names the fault
    enum severity severity;
    const char *action;
    enum restart restart;
    // Templates: {part} is the GPU or device and its node, else the node; {said} the line. In an
    // advice the same are {device} and {place}, which do without a name.
    const char *headline, *advice;
};

// The number of the cause that the event tells of; CAUSE_NONE: of none.
enum { NODE_CAUSES = 41 };
#define CAUSE_NONE UINT32_MAX
uint32_t node_cause_of(const struct event *event);
const struct node_cause *node_cause_get(uint32_t number);

// -- What was said --------------------------------------------------------------------------------

enum { SAID_TEXT_MAX = 232 };
enum said_device { SAID_NO_DEVICE, SAID_GPU, SAID_NIC, SAID_PCI };
// Beside the device in `kind`: nothing says when it was, `time_ns` is of the line before it, of its
// file or of its receipt (enum time_of, from this bit on).
enum { SAID_UNDATED_SHIFT = 8 };

struct node_said {
    struct row_head head;
    string_id node; // the key: up to `cause`
    uint64_t time_ns;
    uint64_t address; // of the device; PCI_NONE: not said
    string_id device; // as it was called; STRING_NONE: not said
    uint32_t cause;   // a hash of its name: numbers change from build to build
    uint32_t kind;    // enum said_device; and SAID_UNDATED_SHIFT
    uint32_t text_size;
    char text[SAID_TEXT_MAX];
};

extern const struct row_type NODE_SAID_ROWS;

struct node_log {
    struct keyed_rows rows; // NODE_SAID_ROWS
    struct row_bound bound;
};

void node_log_take(struct node_log *log, const struct event *event, struct arena *scratch);
const struct node_cause *node_said_cause(const struct node_said *said); // NULL: of another build
enum said_device node_said_device(const struct node_said *said);
// Whose time it has: TIME_OF_EVENT where the line says one.
enum time_of node_said_time_of(const struct node_said *said);
const char *node_said_uid(const struct node_said *said, struct arena *arena);
// "n1/0000:9b:00", "n1/GPU6"; NULL: no device was said.
const char *node_said_entity(const struct node_said *said, struct arena *arena);

// -- Faults ---------------------------------------------------------------------------------------

struct node_burst {
    const struct node_said **items; // of one part of one node, ascending by time
    uint32_t count;
    const struct node_said *anchor; // names it: of the gravest the first
    uint64_t first_ns, last_ns;
};

struct node_bursts {
    struct node_burst *items; // by time, node, part
    uint32_t count;
};

struct node_bursts node_fault_find(const struct node_log *log,
                                   const struct node_fault_config *config, uint64_t now_ns,
                                   struct arena *arena);

// A fault that was found: by node, part, and when it began when it was first found.
struct told_node {
    struct row_head head;
    string_id node; // the key: up to `part`
    uint64_t began_ns;
    uint32_t part;
    uint32_t seen;
    uint64_t first_ns, last_ns;
};

void node_fault_verdict(const struct node_fault_config *config, const struct told_node *told,
                        const struct node_burst *burst, struct verdict_builder *builder);
