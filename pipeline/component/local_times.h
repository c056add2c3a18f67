// SPDX-License-Identifier: Apache-2.0
// What kernel logs whose times say no zone tell of the zone that they were written in, gathered
// before any of it is handed on (feed_settle_zone).
#pragma once

#include "base/intern.h"
#include "pipeline/model/node_event.h"

#include <stdint.h>

enum { LOCAL_FACTS_MAX = 1024 }; // the first ones

// Something that counters tell of, too.
enum { LOCAL_AER = 1000 }; // more than any Xid

struct local_fact {
    uint64_t time_ns;
    string_id node;      // as the line or the log's folder says; never STRING_NONE
    pci_address address; // of the device
    uint32_t code;       // of an Xid, or LOCAL_AER and enum aer_severity
};

// Times are read as if they were UTC.
struct local_times {
    uint64_t first_ns, last_ns; // of all lines
    uint32_t lines;             // that say a time without a zone
    uint32_t files;
    struct local_fact *facts; // room for LOCAL_FACTS_MAX
    uint32_t fact_count;
};
