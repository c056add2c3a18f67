// SPDX-License-Identifier: Apache-2.0
// Where the records of one receiver go: into the feed, and refused ones also into the quarantine.
#pragma once

#include "receivers/records/options.h"
#include "receivers/records/quarantine.h"

struct record_sink {
    struct feed *feed; // NULL until it is attached
    struct feed_stamp stamp;
    struct decoder_input known; // of every input, by the options
    struct quarantine quarantine;
    size_t record_max;         // bytes of one record
    struct decode_fault fault; // of the record at hand
};

// What to stamp on events, and the quarantine file, which only the first copy of a receiver writes.
enum status record_sink_open(struct record_sink *sink, const struct record_config *config,
                             struct byte_size record_max, const struct component_context *context,
                             struct error *error) MUST_USE;
void record_sink_attach(struct record_sink *sink, struct feed *feed);
// Safe after a failed open.
void record_sink_close(struct record_sink *sink);

// Offers a record; when the decoder refuses it, it is kept and false returned.
bool record_sink_offer(struct record_sink *sink, struct source *source, struct slice record,
                       uint64_t position);
// What is wrong with a record that does not get to a decoder.
void record_sink_fault(struct record_sink *sink, enum decode_category category, const char *format,
                       ...) PRINTF_LIKE(3, 4);
// Refuses it, with the fault that was set, and keeps what there is of it.
void record_sink_refuse(struct record_sink *sink, struct source *source, struct slice record,
                        uint64_t position);
// Keeps a record that was refused.
void record_sink_keep(struct record_sink *sink, const struct source *source, struct slice record,
                      uint64_t position);
