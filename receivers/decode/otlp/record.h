// SPDX-License-Identifier: Apache-2.0
// One telemetry record put together out of the parts of a log record, in whatever order they come;
// and the list of what a request held.
//
// A reader of one encoding calls begin, then time, name, attribute and body as it meets them, then
// finish. A false answer means that the request is malformed: `fault` says where and why. What only
// this log record has done wrong becomes its refusal.
#pragma once

#include "receivers/decode/otlp/otlp.h"
#include "receivers/decode/otlp/value.h"

// What one resource says about all its log records, as JSON; data NULL when it says nothing.
struct otlp_resource {
    struct slice host;
    struct slice pid;
    struct slice pod;
    struct slice namespace;
    struct slice instance; // of the service
    struct slice job;
    unsigned job_order; // which attribute named the job: lower is better
};

struct otlp_field {
    struct slice key;    // decoded
    struct slice member; // key, colon and value as JSON; data NULL: in the scratch, from `offset`
    size_t offset;
    bool of_body;
    bool is_null;
};

struct otlp_outcomes;

struct otlp_reading {
    struct arena *arena;
    otlp_next *next;
    struct json_fault fault;

    struct otlp_outcomes *first; // one for each log record, in order
    struct otlp_outcomes *last;
    uint32_t count;
    size_t left; // bytes that further records may add to the arena

    // The log record at hand:
    struct buffer scratch; // members, one after another
    struct otlp_field fields[OTLP_FIELDS_MAX];
    unsigned field_count;
    bool is_telemetry;     // a field that only telemetry has is there
    bool mixed;            // the record is more than the object that its body holds
    uint64_t time_ns;      // 0: not known
    uint64_t observed_ns;  // 0: not known
    struct slice name;     // eventName
    struct slice name_too; // the attribute event.name
    enum otlp_kind body_kind;
    struct slice body_text; // of a body that is text, without the space in front
    struct slice body_line; // … and with it
    struct slice file;      // the attribute log.file.path, or log.file.name
    bool body_is_object;
    const char *refusal;
};

void otlp_reading_begin(struct otlp_reading *reading, struct slice body, struct arena *arena,
                        otlp_next *next);
// Visits the outcomes, or none when the request was `wrong`; releases what was held.
enum status otlp_reading_end(struct otlp_reading *reading, struct slice body, bool wrong,
                             const char *encoding, otlp_visit *visit, void *context,
                             struct error *error);

bool otlp_resource_attribute(struct otlp_reading *reading, struct otlp_resource *resource,
                             struct slice key, const struct otlp_value *value);

void otlp_record_begin(struct otlp_reading *reading);
bool otlp_record_attribute(struct otlp_reading *reading, struct slice key,
                           const struct otlp_value *value);
bool otlp_record_body(struct otlp_reading *reading, const struct otlp_value *value);
bool otlp_record_finish(struct otlp_reading *reading, const struct otlp_resource *resource,
                        const char *at);
