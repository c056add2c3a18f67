// SPDX-License-Identifier: Apache-2.0
// EVENT_OBSERVATION: one thing that a line of a log, a counter or an object of the cluster says.
//
// There are some seventy kinds, and most have a few facts out of one hundred. So it is a kind and a
// list of facts, each at most once; what was not said is not in the list. When and where it
// happened (time, node, rank) stand in the event. Texts are UTF-8, not escaped, and die with the
// batch, as the list does.
#pragma once

#include "pipeline/model/event.h"
#include "pipeline/model/node_event.h"

enum observation_kind {
    OBSERVATION_NONE,
#define OBSERVATION(constant, name) OBSERVATION_##constant,
#include "pipeline/model/observation_names.h"
    OBSERVATION_KIND_COUNT
};

enum fact_type { FACT_NUMBER, FACT_TEXT, FACT_YES_NO, FACT_PCI_ADDRESS };
#define FACT_TYPE_NUMBER FACT_NUMBER
#define FACT_TYPE_TEXT   FACT_TEXT
#define FACT_TYPE_YES_NO FACT_YES_NO
#define FACT_TYPE_PCI    FACT_PCI_ADDRESS

enum fact_key {
#define FACT(constant, name, type) FACT_##constant,
#include "pipeline/model/observation_names.h"
    FACT_KEY_COUNT
};

struct fact {
    enum fact_key key;
    union {
        int64_t number;
        struct slice text;
        bool yes;
        pci_address address;
    };
};

struct observation {
    enum observation_kind kind;
    struct slice text;        // the message of its first line, without what a transport put around
    uint64_t time_slack_ns;   // it happened in [time_ns, time_ns + slack]
    const struct fact *facts; // in the order of enum fact_key
    uint32_t fact_count;
};

const char *observation_name(enum observation_kind kind); // "oom_kill"
const char *fact_name(enum fact_key key);                 // "pid"
enum fact_type fact_type(enum fact_key key);

// NULL: not said.
const struct fact *observation_fact(const struct observation *observation, enum fact_key key);
// False, and the value as it was, when it was not said.
bool observation_number(const struct observation *observation, enum fact_key key, int64_t *number);
bool observation_text(const struct observation *observation, enum fact_key key, struct slice *text);
// `otherwise` when it was not said.
bool observation_is(const struct observation *observation, enum fact_key key, bool otherwise);

// -- what an event is, in one word ----------------------------------------------------------------

// A number for each word that tallies and metrics count events by, 0 to EVENT_CLASS_COUNT - 1.
enum { EVENT_CLASS_BASE = 24, EVENT_CLASS_COUNT = EVENT_CLASS_BASE + OBSERVATION_KIND_COUNT };
enum { EVENT_CLASS_TELEMETRY }; // of EVENT_TELEMETRY
uint32_t event_class(const struct event *event);
// "telemetry", "xid", "oom_kill"; NULL: a number that stands for nothing.
const char *event_class_name(uint32_t class);
// Which enum event_kind it is of.
enum event_kind event_class_kind(uint32_t class);
