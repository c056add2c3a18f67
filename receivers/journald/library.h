// SPDX-License-Identifier: Apache-2.0
// libsystemd's reader of journals, loaded when the first journald receiver starts.
#pragma once

#include "base/late_library.h"
#include "base/status.h"

#include <systemd/sd-journal.h>

// Every function of it that culprit calls, without its prefix `sd_journal_`.
#define JOURNAL_FUNCTIONS(X)                                                                       \
    X(add_disjunction)                                                                             \
    X(add_match)                                                                                   \
    X(close)                                                                                       \
    X(get_cursor)                                                                                  \
    X(get_data)                                                                                    \
    X(get_events)                                                                                  \
    X(get_fd)                                                                                      \
    X(get_realtime_usec)                                                                           \
    X(get_timeout)                                                                                 \
    X(get_usage)                                                                                   \
    X(next)                                                                                        \
    X(open)                                                                                        \
    X(open_directory)                                                                              \
    X(open_namespace)                                                                              \
    X(process)                                                                                     \
    X(seek_cursor)                                                                                 \
    X(seek_head)                                                                                   \
    X(seek_realtime_usec)                                                                          \
    X(set_data_threshold)                                                                          \
    X(test_cursor)

struct journal_library {
#define JOURNAL_MEMBER(name) __typeof__ (&sd_journal_##name)(name);
    JOURNAL_FUNCTIONS(JOURNAL_MEMBER)
#undef JOURNAL_MEMBER
};

extern struct late_library journal_late_library; // for component_type

// Lives as long as the process. Any thread.
enum status journal_library_load(const struct journal_library **library,
                                 struct error *error) MUST_USE;
