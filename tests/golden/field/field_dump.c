// SPDX-License-Identifier: Apache-2.0
// What does the file receiver make of these files?
//
//     field_dump [OPTION VALUE]… FILE…
//
//     --format NAME, --timezone NAME, --node NAME    as the receiver's options
//     --observed TIME, --boot TIME                   RFC 3339, or nanoseconds since 1970
//     --world-size N, --rank N
//     --path PATH    what the file is called instead
//     --chunk N      at most so many bytes with each read; 0: as they come
//     --cut A,B,…    only the first A bytes of each file; then again only the first B
//
// Prints a line of JSON for each event, in the order of delivery, one for each record that was
// refused, and behind each file its tally. run_field.py judges them. The files' bytes are read by
// receivers/file/read.h into a real feed; the three functions in between that are wrapped say what
// is known of the input, how it is called, and how much a read gives.
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text/json_write.h"
#include "base/text/rfc3339.h"
#include "base/text/time_zone.h"
#include "pipeline/model/observation.h"
#include "pipeline/runtime/feed/feed_run.h"
#include "receivers/decode/formats.h"
#include "receivers/file/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RECORD_MAX = 16 << 20, FILE_MAX = 64 << 20, BATCH = 256, CUTS_MAX = 4096 };

static struct {
    struct decoder_input known;
    const char *path; // NULL: the file's own
    size_t chunk;
    int format;
    size_t cuts[CUTS_MAX];
    uint32_t cut_count; // 0: all of it
} option;

static struct buffer out;
static struct json_writer json;

static void leave(const char *what, const char *which) {
    fprintf(stderr, "field_dump: %s: %s\n", what, which);
    exit(2);
}

static void begin_line(void) {
    json_begin(&json, &out, 0);
    json_object_open(&json);
}

static void end_line(void) {
    json_object_close(&json);
    buffer_append_char(&out, '\n');
    if (out.failed || fwrite(out.data, 1, out.size, stdout) != out.size)
        leave("cannot write", "standard output");
    buffer_reset(&out);
}

// -- what is wrapped ------------------------------------------------------------------------------

void __real_feed_source_format(struct source *source, const struct decoder_type *decoder,
                               const struct decoder_input *input);
void __wrap_feed_source_format(struct source *source, const struct decoder_type *decoder,
                               const struct decoder_input *input);
struct source *__real_feed_source(struct feed *feed, struct slice path);
struct source *__wrap_feed_source(struct feed *feed, struct slice path);
enum status __real_file_input_read(struct file_input *input, char *to, size_t room, size_t *got,
                                   struct error *error);
enum status __wrap_file_input_read(struct file_input *input, char *to, size_t room, size_t *got,
                                   struct error *error);
void __real_intake_refuse(struct intake *intake, struct slice path, uint64_t position,
                          const struct decode_fault *fault);
void __wrap_intake_refuse(struct intake *intake, struct slice path, uint64_t position,
                          const struct decode_fault *fault);

static const char *given_name; // of the file at hand

void __wrap_feed_source_format(struct source *source, const struct decoder_type *decoder,
                               const struct decoder_input *input) {
    struct decoder_input known = *input;
    known.zone = option.known.zone;
    known.node = option.known.node;
    known.boot_ns = option.known.boot_ns;
    known.world_size = option.known.world_size;
    if (option.known.observed_ns != 0)
        known.observed_ns = option.known.observed_ns;
    __real_feed_source_format(source, decoder, &known);
}

struct source *__wrap_feed_source(struct feed *feed, struct slice path) {
    (void)path;
    return __real_feed_source(feed, slice_of(option.path == NULL ? given_name : option.path));
}

// What was read and not given yet: a read of two bytes is the smallest.
static struct {
    char bytes[INPUT_RAW_SIZE];
    size_t at, size;
} stash;

enum status __wrap_file_input_read(struct file_input *input, char *to, size_t room, size_t *got,
                                   struct error *error) {
    if (option.chunk == 0)
        return __real_file_input_read(input, to, room, got, error);
    if (stash.at == stash.size) {
        stash.at = stash.size = 0;
        enum status status =
            __real_file_input_read(input, stash.bytes, sizeof stash.bytes, &stash.size, error);
        if (status != STATUS_OK)
            return status;
    }
    *got = room < option.chunk ? room : option.chunk;
    if (*got > stash.size - stash.at)
        *got = stash.size - stash.at;
    memcpy(to, stash.bytes + stash.at, *got);
    stash.at += *got;
    return STATUS_OK;
}

void __wrap_intake_refuse(struct intake *intake, struct slice path, uint64_t position,
                          const struct decode_fault *fault) {
    begin_line();
    json_field_uint(&json, "line", position);
    json_field_text(&json, "is", "refused");
    json_field_null(&json, "kind");
    json_field_text(&json, "reason", decode_category_name(fault->category));
    json_field_text(&json, "detail", fault->detail);
    end_line();
    __real_intake_refuse(intake, path, position, fault);
}

// -- events ---------------------------------------------------------------------------------------

static void put_number(const char *key, int64_t number, int64_t none) {
    if (number != none)
        json_field_int(&json, key, number);
}

// -1: none yet; less: not said.
static void put_known(const char *key, int64_t number) {
    if (number >= 0)
        json_field_int(&json, key, number);
}

static void put_slice(const char *key, struct slice text) {
    if (text.data != NULL)
        json_field_slice(&json, key, text);
}

static void put_address(const char *key, pci_address address) {
    char text[PCI_TEXT_MAX];
    if (address == PCI_NONE)
        return;
    pci_format_device(address, text);
    json_field_text(&json, key, text);
}

static void put_kernel(const struct kernel_line *line) {
    bool is_switch = line->kind == KERNEL_SXID;
    put_address(is_switch ? "pci" : "gpu", line->address);
    put_slice("gpu_uuid", line->uuid);
    if (line->kind == KERNEL_XID || line->kind == KERNEL_SXID)
        json_field_uint(&json, is_switch ? "sxid" : "xid", line->code);
    if (line->kind == KERNEL_GPU_LOST)
        json_field_int(&json, "xid", 79); // that is what such lines mean
    put_number("pid", line->pid, -1);
    put_slice("process", line->process);
    put_number("link", line->link, -1);
    if (line->fatal != KERNEL_FATAL_UNKNOWN)
        json_field_bool(&json, "fatal", line->fatal == KERNEL_FATAL_YES);
    put_slice(is_switch ? "switch" : "unit", line->unit);
    put_slice("action", line->action);
    put_number("caused_by_xid", line->caused_by, 0);
    if (line->truncated)
        json_field_bool(&json, "truncated", true);
}

static void put_app_line(const struct app_line *line) {
    put_number("group_rank", line->group_rank, -1);
    put_slice("group", line->group);
    put_slice("group_desc", line->group_desc);
    put_slice("op", line->operation);
    put_number("seq", line->collective_seq_id, -1);
    put_number("numel_in", line->input_elements, -1);
    put_number("numel_out", line->output_elements, -1);
    put_number("timeout_ms", line->timeout_ms, -1);
    put_number("ran_ms", line->ran_ms, -1);
    if (line->has_progress) {
        put_known("last_enqueued", line->last_enqueued);
        put_known("last_completed", line->last_completed);
    }
    put_number("pid", line->pid, -1);
    put_slice("pod", line->pod);
    put_slice("address", line->address);
    if (line->truncated)
        json_field_bool(&json, "truncated", true);
}

static void put_observation(const struct observation *observation) {
    if (observation->time_slack_ns > 0)
        json_field_uint(&json, "time_slack_nano", observation->time_slack_ns);
    for (uint32_t i = 0; i < observation->fact_count; i++) {
        const struct fact *fact = &observation->facts[i];
        const char *name = fact_name(fact->key);
        switch (fact_type(fact->key)) {
        case FACT_NUMBER:
            json_field_int(&json, name, fact->number);
            break;
        case FACT_TEXT:
            put_slice(name, fact->text);
            break;
        case FACT_YES_NO:
            json_field_bool(&json, name, fact->yes);
            break;
        case FACT_PCI_ADDRESS:
            put_address(name, fact->address);
            break;
        }
    }
}

static void put_event(const struct event *event) {
    begin_line();
    json_field_uint(&json, "line", event->position);
    json_field_uint(&json, "lines", event->lines);
    json_field_text(&json, "is", "event");
    json_field_text(&json, "kind", event_class_name(event_class(event)));
    if (event->timeless)
        json_field_null(&json, "time_unix_nano");
    else
        json_field_uint(&json, "time_unix_nano", event->time_ns);
    if (event->node != STRING_NONE)
        json_field_slice(&json, "host", intern_slice(event->node));
    put_number("rank", event->rank, RANK_NONE);
    if (event->kind == EVENT_KERNEL)
        put_kernel(event->kernel);
    else if (event->kind == EVENT_APP_LINE)
        put_app_line(event->line);
    else if (event->kind == EVENT_OBSERVATION)
        put_observation(event->observation);
    end_line();
}

// -- the other end of the feed --------------------------------------------------------------------

static void on_deliver(void *context, const struct delivery *delivery) {
    (void)context;
    for (uint32_t i = 0; i < delivery->count; i++)
        put_event(&delivery->events[i]);
}

static void on_restore(void *context, struct source *source) {
    (void)context;
    (void)source;
}

static bool on_restored_path(void *context, uint32_t index, struct slice *path) {
    (void)context;
    (void)index;
    (void)path;
    return false;
}

static void on_leave(void *context, struct source *source, bool forget) {
    (void)context;
    (void)source;
    (void)forget;
}

static struct source_position on_safe(void *context, const struct source *source) {
    (void)context;
    return source->reached;
}

static bool on_blocked(void *context) {
    (void)context;
    return false;
}

static uint64_t on_lag(void *context, const struct source *source) {
    (void)context;
    (void)source;
    return 0;
}

static void on_trouble(void *context, const char *sentence) {
    (void)context;
    (void)sentence;
}

static void on_caught_up(void *context) {
    (void)context;
}

// -- one input ------------------------------------------------------------------------------------

static void put_tally(const struct source_figures *figures) {
    begin_line();
    json_field_text(&json, "is", "tally");
    json_field_text(&json, "format", figures->format == NULL ? "" : figures->format);
    json_field_uint(&json, "bytes", figures->bytes);
    json_field_uint(&json, "blank", figures->blank);
    json_field_uint(&json, "events", figures->accepted);
    json_field_uint(&json, "event_lines", figures->event_lines);
    json_field_uint(&json, "refused", figures->refused);
    json_field_uint(&json, "other", figures->other);
    json_field_bool(&json, "torn", figures->torn);
    json_field_bool(&json, "unread", figures->unread);
    end_line();
}

// `bytes` as a file, so that all that a receiver asks of one is answered.
static int open_bytes(struct slice bytes) {
    int descriptor = memfd_create("input", MFD_CLOEXEC);
    if (descriptor < 0 || write(descriptor, bytes.data, bytes.size) != (ssize_t)bytes.size ||
        lseek(descriptor, 0, SEEK_SET) != 0)
        leave("cannot keep", given_name);
    return descriptor;
}

// What reads them; made anew for each cut.
static struct {
    struct intake intake;
    struct feed *feed;
    struct file_reader reader;
    uint32_t notes_put;
    int stop;
} rig;

static void rig_make(void) {
    static atomic_bool never;
    memset(&rig, 0, sizeof rig);
    intake_init(&rig.intake);
    rig.stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct feed_settings settings = {.site = "receiver/field",
                                     .batch_size = BATCH,
                                     .stop_descriptor = rig.stop,
                                     .stopping = &never,
                                     .pausing = &never,
                                     .intake = &rig.intake,
                                     .outlet = {.deliver = on_deliver,
                                                .restore = on_restore,
                                                .restored_path = on_restored_path,
                                                .leave = on_leave,
                                                .safe = on_safe,
                                                .blocked = on_blocked,
                                                .lag = on_lag,
                                                .trouble = on_trouble,
                                                .caught_up = on_caught_up}};
    rig.feed = feed_create(&settings);
    rig.reader = (struct file_reader){.forced = format_chosen(option.format),
                                      .document_max = FILE_MAX,
                                      .input = {.descriptor = -1, .stop_descriptor = rig.stop}};
    rig.reader.sink.record_max = RECORD_MAX;
    if (option.known.node.data != NULL)
        rig.reader.sink.stamp.node = intern(option.known.node);
    record_sink_attach(&rig.reader.sink, rig.feed);
}

static void rig_free(void) {
    file_reader_release(&rig.reader);
    record_sink_close(&rig.reader.sink);
    feed_free(rig.feed);
    intake_release(&rig.intake);
    close(rig.stop);
}

static void put_notes(void) {
    for (; rig.notes_put < rig.intake.note_count; rig.notes_put++) {
        begin_line();
        json_field_text(&json, "is", "note");
        json_field_text(&json, "text", rig.intake.notes[rig.notes_put]);
        end_line();
    }
}

static void read_bytes(struct slice bytes) {
    int descriptor = open_bytes(bytes);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    (void)file_read_path(&rig.reader, slice_of(path));
    feed_flush(rig.feed);
    put_notes();
    put_tally(feed_source_figures(feed_source(rig.feed, (struct slice){0})));
    close(descriptor);
}

static void read_file(const char *name) {
    given_name = name;
    FILE *file = fopen(name, "rb");
    if (file == NULL)
        leave("cannot open", name);
    char *bytes = memory_take(FILE_MAX);
    size_t size = fread(bytes, 1, FILE_MAX, file);
    if (ferror(file) != 0 || size == FILE_MAX)
        leave("cannot read", name);
    fclose(file);
    if (option.cut_count == 0)
        read_bytes((struct slice){bytes, size});
    for (uint32_t i = 0; i < option.cut_count; i++) {
        rig_free();
        rig_make();
        read_bytes((struct slice){bytes, option.cuts[i] < size ? option.cuts[i] : size});
    }
    memory_give(bytes);
}

// -- the command line -----------------------------------------------------------------------------

static uint64_t time_of(const char *text) {
    uint64_t ns;
    bool has_fraction;
    char *end;
    if (rfc3339_parse(slice_of(text), &ns, &has_fraction) == RFC3339_OK)
        return ns;
    ns = strtoull(text, &end, 10);
    if (end == text || *end != '\0')
        leave("no time", text);
    return ns;
}

static void set_format(const char *name) {
    for (option.format = 0; format_choices[option.format] != NULL; option.format++)
        if (slice_equal(slice_of(format_choices[option.format]), slice_of(name)))
            return;
    leave("no such format", name);
}

static void set_zone(const char *name) {
    option.known.zone = time_zone_open(slice_of(name));
    if (option.known.zone == NULL)
        leave("no such time zone", name);
}

static void set_cuts(const char *list) {
    char *end = (char *)(uintptr_t)list;
    for (option.cut_count = 0; *list != '\0'; list = *end == ',' ? end + 1 : end) {
        if (option.cut_count == CUTS_MAX)
            leave("too many", list);
        option.cuts[option.cut_count++] = strtoull(list, &end, 10);
        if (end == list)
            leave("no list of sizes", list);
    }
}

static void set_option(const char *name, const char *value) {
    if (slice_equal(slice_of(name), SLICE("--format")))
        set_format(value);
    else if (slice_equal(slice_of(name), SLICE("--timezone")))
        set_zone(value);
    else if (slice_equal(slice_of(name), SLICE("--node")))
        option.known.node = slice_of(value);
    else if (slice_equal(slice_of(name), SLICE("--observed")))
        option.known.observed_ns = time_of(value);
    else if (slice_equal(slice_of(name), SLICE("--boot")))
        option.known.boot_ns = time_of(value);
    else if (slice_equal(slice_of(name), SLICE("--world-size")))
        option.known.world_size = (uint32_t)strtoul(value, NULL, 10);
    else if (slice_equal(slice_of(name), SLICE("--path")))
        option.path = value;
    else if (slice_equal(slice_of(name), SLICE("--chunk")))
        option.chunk = strtoull(value, NULL, 10);
    else if (slice_equal(slice_of(name), SLICE("--cut")))
        set_cuts(value);
    else
        leave("no such option", name);
}

int main(int count, char **arguments) {
    log_configure((enum log_level)(LOG_ERROR + 1), LOG_CONSOLE);
    buffer_init(&out, FILE_MAX);
    int at = 1;
    for (; at + 1 < count && arguments[at][0] == '-'; at += 2)
        set_option(arguments[at], arguments[at + 1]);
    rig_make();
    for (; at < count; at++)
        read_file(arguments[at]);
    rig_free();
    buffer_release(&out);
    intern_release();
    return 0;
}
