// SPDX-License-Identifier: Apache-2.0
#include "receivers/records/sink.h"

#include "base/text/time_zone.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

enum status record_sink_open(struct record_sink *sink, const struct record_config *config,
                             struct byte_size record_max, const struct component_context *context,
                             struct error *error) {
    sink->record_max = (size_t)record_max.bytes;
    sink->stamp = (struct feed_stamp){
        .job = config->job_id == NULL ? STRING_NONE : intern(slice_of(config->job_id)),
        .node = config->node == NULL ? STRING_NONE : intern(slice_of(config->node))};
    if (sink->stamp.job == STRING_REFUSED || sink->stamp.node == STRING_REFUSED)
        return error_set(error, STATUS_LIMIT, "no more distinct names are taken");
    if (!record_options_input(config, &sink->known, NULL))
        return error_set(error, STATUS_CONFIG,
                         "the time zone \"%s\" cannot be read any more, or boot_time is wrong",
                         config->timezone == NULL ? "" : config->timezone);
    sink->known.forms = context->forms; // where a decoder is tried beside the feed
    if (config->quarantine == NULL)
        return STATUS_OK;
    enum status status = quarantine_open(&sink->quarantine, config->quarantine,
                                         config->quarantine_max_size.bytes, error);
    // A further copy knows the file, so as not to read it, and leaves writing to the first.
    sink->quarantine.silent = context->copy > 0;
    return status;
}

// What was refused after it had been held.
static void keep_held(void *context, const struct source *source, struct slice record,
                      uint64_t position, const struct decode_fault *fault) {
    struct record_sink *sink = context;
    quarantine_keep(&sink->quarantine, sink->feed, source, position, fault, record);
}

void record_sink_attach(struct record_sink *sink, struct feed *feed) {
    assert(feed != NULL);
    sink->feed = feed;
    feed_stamp(feed, sink->stamp);
    feed_on_refusal(feed, keep_held, sink);
}

void record_sink_close(struct record_sink *sink) {
    quarantine_close(&sink->quarantine);
    time_zone_close((struct time_zone *)(uintptr_t)sink->known.zone);
    sink->known.zone = NULL;
}

void record_sink_keep(struct record_sink *sink, const struct source *source, struct slice record,
                      uint64_t position) {
    quarantine_keep(&sink->quarantine, sink->feed, source, position, &sink->fault, record);
}

bool record_sink_offer(struct record_sink *sink, struct source *source, struct slice record,
                       uint64_t position) {
    assert(sink->feed != NULL);
    if (feed_offer(sink->feed, source, record, position, &sink->fault) == DECODE_OK)
        return true;
    record_sink_keep(sink, source, record, position);
    return false;
}

void record_sink_fault(struct record_sink *sink, enum decode_category category, const char *format,
                       ...) {
    assert(category != DECODE_OK);
    sink->fault.category = category;
    sink->fault.field[0] = '\0';
    sink->fault.offset = 0;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sink->fault.detail, sizeof sink->fault.detail, format, arguments);
    va_end(arguments);
}

void record_sink_refuse(struct record_sink *sink, struct source *source, struct slice record,
                        uint64_t position) {
    assert(sink->feed != NULL);
    feed_refuse(sink->feed, source, position, &sink->fault);
    feed_tell_refused(sink->feed, source, record, position, slice_of(sink->fault.detail));
    record_sink_keep(sink, source, record, position);
}
