// SPDX-License-Identifier: Apache-2.0
// What is to be done about an exception, by words in its type or message:
// processors/cluster/tables/causes.tsv, made into C by the build. Texts are static.
#pragma once

#include "base/slice.h"

enum restart {
    RESTART_UNKNOWN,
    RESTART_HELPS,
    RESTART_IN_VAIN,   // the same comes again until somebody changes something
    RESTART_ELSEWHERE, // without the node or the device, or after its repair
    RESTART_STOPPED,   // it was stopped on purpose: to start it again is somebody's decision
};

struct cause_row {
    const char *words;
    enum restart restart;
    const char *action; // of the schema's list
    const char *advice; // whole sentences; {who}, {Who}: whose exception it is
};

// The first row of the table whose words stand in the type or the message; NULL: none. O(size).
const struct cause_row *cause_find(struct slice type, struct slice message);

extern const struct cause_row CAUSE_ROWS[];
extern const size_t CAUSE_ROWS_COUNT;
