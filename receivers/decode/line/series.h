// SPDX-License-Identifier: Apache-2.0
// One line of metrics in Prometheus' text format 0.0.4 or OpenMetrics 1.0, cut into its parts:
//
//     name{label="value",…} value timestamp # exemplar
//
// Nothing is copied but label values with escapes. Source: Prometheus' page "Exposition formats",
// and the OpenMetrics specification. Any thread.
#pragma once

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

// The characters of a name in front; empty when there is none.
struct slice series_take_name(struct slice *line);

// The walk over the labels of a line that stands behind its name:
//
//     struct series_labels labels = {.line = &line, .arena = arena};
//     while (series_next_label(&labels, &name, &value))
//         ...
//     if (labels.wrong != NULL) ...
struct series_labels {
    struct slice *line;  // behind the labels when the walk is over
    struct arena *arena; // of values with escapes
    bool opened;
    const char *wrong; // a clause; NULL: right so far
};
// False at the end (also of a line without labels), and where the text is wrong.
bool series_next_label(struct series_labels *labels, struct slice *name, struct slice *value);

// The value and, when there is one, the timestamp behind the labels; `time_ns` stays as it is
// without one. False: it is no time after 1970.
bool series_take_value(struct slice *line, struct slice *value, uint64_t *time_ns);
