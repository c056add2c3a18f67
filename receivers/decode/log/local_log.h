// SPDX-License-Identifier: Apache-2.0
// Looks through a log whose times say no zone, for what tells the zone (local_times.h).
#pragma once

#include "pipeline/component/decoder.h"
#include "pipeline/component/local_times.h"

struct local_log;

// Whether this is the beginning of a kernel log whose times say no zone.
bool log_is_local(struct slice head);
// Whether this is the beginning of a log whose dates say no year.
bool log_lacks_year(struct slice head);
// `input` as the log's decoder will get it, but for the zone, which is taken as UTC. `node`: whose
// log it is where its lines do not say; STRING_NONE: not known.
struct local_log *local_log_make(const struct decoder_input *input, string_id node);
void local_log_free(struct local_log *log); // NULL is fine
// Lines that follow one another; returns the bytes of those that are whole, with `last` of all.
// Most lines are searched, not read: times of lines in the middle that are out of order are not
// seen.
size_t local_log_read(struct local_log *log, struct slice text, bool last,
                      struct local_times *times);
