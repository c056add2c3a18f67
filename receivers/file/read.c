// SPDX-License-Identifier: Apache-2.0
// Tells the format of an input and offers its records.
//
// One window that all inputs share: a block is read behind what is left of the block before, its
// records are offered where they stand, and the batch is flushed before they move. The window grows
// to the longest record that is allowed and one block; nothing is allocated once it has.
#include "receivers/file/read.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/text/cut.h"
#include "base/text/time_zone.h"
#include "receivers/decode/flight_recorder/dump_path.h"
#include "receivers/decode/formats.h"
#include "receivers/decode/forms/forms.h"
#include "receivers/decode/json/keys.h"
#include "receivers/decode/line/year.h"
#include "receivers/decode/log/local_log.h"
#include "receivers/decode/log/log.h"
#include "receivers/decode/split.h"
#include "receivers/decode/telemetry/telemetry.h"
#include "receivers/records/body.h"

#include <assert.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SESSION_MAX = 256 };

void window_reserve(struct file_window *window, size_t size) {
    assert(window->start <= window->end && window->end <= window->capacity);
    size_t rest = window->end - window->start;
    if (window->start > 0 && rest > 0)
        memmove(window->data, window->data + window->start, rest);
    window->start = 0;
    window->end = rest;
    if (window->capacity - rest >= size)
        return;
    size_t capacity = window->capacity == 0 ? 2 * FILE_BLOCK : window->capacity;
    while (capacity - rest < size)
        capacity *= 2;
    window->data = memory_resize(window->data, capacity);
    window->capacity = capacity;
    assert(window->capacity - window->end >= size);
}

// Lets the window show memory that somebody else owns.
static void window_lend(struct file_reader *reader, struct file_window other) {
    if (!reader->is_lent)
        reader->own = reader->window;
    reader->is_lent = true;
    reader->window = other;
}

// The window has its own memory again, with the rest of what it showed.
static void window_return(struct file_reader *reader) {
    if (!reader->is_lent)
        return;
    struct slice rest = window_rest(&reader->window);
    reader->window = reader->own;
    reader->own = (struct file_window){.data = NULL};
    reader->is_lent = false;
    reader->window.start = reader->window.end = 0;
    window_reserve(&reader->window, rest.size);
    if (rest.size > 0)
        memcpy(reader->window.data, rest.data, rest.size);
    reader->window.end = rest.size;
}

static void add_local_path(struct file_reader *reader, struct slice path) {
    reader->local_paths = memory_room(reader->local_paths, &reader->local_capacity,
                                      reader->local_count, sizeof *reader->local_paths);
    reader->local_paths[reader->local_count++] = memory_copy_text(path.data, path.size);
}

void file_reader_begin(struct file_reader *reader) {
    for (uint32_t i = 0; i < reader->local_count; i++)
        memory_give(reader->local_paths[i]);
    memory_give(reader->local_paths);
    reader->local_paths = NULL;
    reader->local_count = reader->local_capacity = 0;
    time_zone_close((struct time_zone *)(uintptr_t)reader->zone);
    reader->zone = NULL;
    reader->by_folder = false;
    reader->near_ns = 0;
    reader->done_bytes = reader->total_bytes = 0;
}

void file_reader_release(struct file_reader *reader) {
    file_reader_begin(reader);
    file_input_release(&reader->input);
    ahead_free(reader->ahead);
    reader->ahead = NULL;
    memory_give(reader->window.data);
    reader->window = (struct file_window){.data = NULL};
}

static bool is_cut_short(const struct file_reader *reader) {
    return !reader->to_the_end && feed_stopping(reader->sink.feed);
}

static void note_progress(const struct file_reader *reader, uint64_t raw_done) {
    if (reader->total_bytes > 0)
        feed_progress(reader->sink.feed, reader->done_bytes + raw_done, reader->total_bytes);
}

// The same as fill from what was read ahead, as if it were read now: block by block. False: there
// is no more of that.
static bool fill_given(struct file_reader *reader, struct source *source) {
    const struct ahead_file *given = &reader->given;
    assert(given->data != NULL);
    if (reader->window.data != given->data)
        window_lend(reader, (struct file_window){.data = given->data, .capacity = given->size});
    size_t left = given->size - reader->window.end;
    size_t got = left < FILE_BLOCK ? left : FILE_BLOCK;
    reader->window.end += got;
    feed_source_figures(source)->bytes += got;
    note_progress(reader, reader->input.raw_done);
    return got > 0;
}

// Whether bytes that were read ahead were not asked for.
static bool has_unused(const struct file_reader *reader) {
    return reader->given.data != NULL &&
           (!reader->is_lent || reader->window.end < reader->given.size);
}

// Reads one block behind the rest; false at the end, or when reading fails (which is noted).
static bool fill(struct file_reader *reader, struct source *source) {
    struct file_window *window = &reader->window;
    assert(reader->sink.feed != NULL && reader->input.descriptor >= 0);
    feed_flush(reader->sink.feed);
    if (reader->given.data != NULL) {
        if (fill_given(reader, source))
            return true;
        if (reader->input.ended)
            return false;
        window_return(reader);
        reader->given.data = NULL;
    }
    window_reserve(window, FILE_BLOCK);
    size_t got = 0;
    struct error error;
    enum status status =
        file_input_read(&reader->input, window->data + window->end, FILE_BLOCK, &got, &error);
    struct source_figures *figures = feed_source_figures(source);
    if (status != STATUS_OK) {
        feed_note(reader->sink.feed, feed_source_path(source), "%s", error.message);
        figures->unread = figures->bytes == 0;
    }
    assert(got <= window->capacity - window->end);
    window->end += got;
    figures->bytes += got;
    note_progress(reader, reader->input.raw_done);
    return status == STATUS_OK && got > 0;
}

// -- the format ---------------------------------------------------------------------------------

struct slice file_node_folder(struct feed *feed, struct slice path) {
    size_t end = path.size;
    for (size_t at = path.size; at-- > 0;) {
        if (path.data[at] != '/' && at > 0)
            continue;
        size_t from = at + (path.data[at] == '/');
        struct slice folder = {path.data + from, end > from ? end - from : 0};
        if (end < path.size && feed_knows_node(feed, folder))
            return folder;
        end = at;
    }
    return (struct slice){NULL, 0};
}

// Whether the input at hand may be of the node whose folder it lies in, and does not say so itself,
// or says it by an address: other inputs may tell.
static bool has_no_node(const struct file_reader *reader, struct slice path,
                        enum format_kind kind) {
    struct stat about;
    if (reader->sink.known.node.size > 0 || memchr(path.data, '/', path.size) == NULL ||
        fstat(reader->input.descriptor, &about) != 0 || !S_ISREG(about.st_mode))
        return false;
    switch (kind) {
    case FORMAT_LOG:
    case FORMAT_KERNEL_LOG:
    case FORMAT_APP_LOG:
        return !log_names_host(window_rest(&reader->window));
    case FORMAT_AER_COUNTERS:
    case FORMAT_ERROR_FILE:
    case FORMAT_NCCL_RAS: // which knows nodes by their addresses
    case FORMAT_FLIGHT_RECORDER:
    case FORMAT_PICKLE:
        return true;
    default:
        return false;
    }
}

// Whether its dates say no year: other inputs may tell.
static bool has_no_year(const struct file_reader *reader, enum format_kind kind) {
    struct stat about;
    return reader->sink.known.ends &&
           (kind == FORMAT_LOG || kind == FORMAT_KERNEL_LOG || kind == FORMAT_APP_LOG) &&
           fstat(reader->input.descriptor, &about) == 0 && S_ISREG(about.st_mode) &&
           log_lacks_year(window_rest(&reader->window));
}

uint64_t file_written_ns(int descriptor) {
    struct stat about;
    if (descriptor < 0 || fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode) ||
        about.st_mtim.tv_sec <= 0)
        return clock_unix_ns();
    return (uint64_t)about.st_mtim.tv_sec * 1000000000 + (uint64_t)about.st_mtim.tv_nsec;
}

// Whether it is a kernel log whose times say no zone, and nobody else does.
static bool has_no_zone(const struct file_reader *reader, enum format_kind kind) {
    struct stat about;
    return reader->sink.known.zone == NULL && (kind == FORMAT_LOG || kind == FORMAT_KERNEL_LOG) &&
           fstat(reader->input.descriptor, &about) == 0 && S_ISREG(about.st_mode) &&
           log_is_local(window_rest(&reader->window));
}

enum { LOOKED_AT = 64 << 10 }; // of each end of an input, for years

uint64_t file_near_ns(struct file_reader *reader) {
    uint64_t latest_ns = feed_latest_ns(reader->sink.feed);
    return latest_ns > reader->near_ns ? latest_ns : reader->near_ns;
}

// The newest time with a year that stands in these bytes of an input; 0: none.
static uint64_t note_year(struct file_reader *reader, struct slice bytes, uint64_t observed_ns) {
    if (bytes.size > LOOKED_AT)
        bytes.size = LOOKED_AT;
    uint64_t time_ns = year_newest(bytes, observed_ns);
    if (time_ns > reader->near_ns)
        reader->near_ns = time_ns;
    return time_ns;
}

// Such a time near the begin or the end of the input, else in others.
static uint64_t near_of(struct file_reader *reader, struct slice tail, uint64_t observed_ns) {
    if (tail.size > LOOKED_AT)
        tail = text_from(tail, tail.size - LOOKED_AT);
    uint64_t first_ns = note_year(reader, window_rest(&reader->window), observed_ns);
    uint64_t last_ns = note_year(reader, tail, observed_ns);
    uint64_t own_ns = last_ns > first_ns ? last_ns : first_ns;
    return own_ns != 0 ? own_ns : file_near_ns(reader);
}

// Sets the decoder, with when the file was written last and how it ends; of a pipe neither is
// known.
static void set_decoder(struct file_reader *reader, struct source *source,
                        const struct decoder_type *decoder, enum format_kind kind, int descriptor) {
    // A kernel log may tell of several boots, and what lies before the last is to be known as that.
    enum { TAIL_BYTES = 16 << 10, KERNEL_TAIL_BYTES = 4 << 20 };
    const off_t tail_max = kind == FORMAT_KERNEL_LOG ? KERNEL_TAIL_BYTES : TAIL_BYTES;
    char *tail = NULL;
    struct stat about;
    struct decoder_input input = reader->sink.known;
    if (reader->by_folder && input.node.size == 0)
        input.node = file_node_folder(reader->sink.feed, feed_source_path(source));
    input.observed_ns = file_written_ns(descriptor);
    input.is_file = true;
    if (reader->zone != NULL && has_no_zone(reader, kind))
        input.zone = reader->zone;
    if (descriptor >= 0 && fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode) &&
        about.st_mtim.tv_sec > 0) {
        off_t size = about.st_size > tail_max ? tail_max : about.st_size;
        tail = memory_take((size_t)size + 1);
        ssize_t got = pread(descriptor, tail, (size_t)size, about.st_size - size);
        if (got > 0)
            input.tail = (struct slice){tail, (size_t)got};
    }
    if (input.ends)
        input.near_ns = near_of(reader, input.tail, input.observed_ns);
    feed_source_format(source, decoder, &input);
    memory_give(tail);
}

enum format_kind file_forced_format(const struct file_reader *reader, struct slice path) {
    return reader->forced != FORMAT_UNKNOWN ? reader->forced : format_of_path(path);
}

bool file_accept_format(struct file_reader *reader, struct source *source,
                        struct format_guess guess, int descriptor) {
    struct feed *feed = reader->sink.feed;
    struct slice path = feed_source_path(source);
    const struct decoder_type *decoder = format_decoder(guess.kind);
    if (decoder != NULL) {
        // A file of lines may hold lines of other kinds, too; spans are a protocol of their own.
        const char *name = decoder->name;
        if (guess.layout == LAYOUT_LINES && reader->forced == FORMAT_UNKNOWN &&
            guess.kind != FORMAT_SPANS)
            decoder = &decoder_any;
        if (feed_source_decoder(source) == NULL) {
            set_decoder(reader, source, decoder, guess.kind, descriptor);
            feed_source_figures(source)->format = name;
        } else if (guess.layout == LAYOUT_WHOLE && descriptor >= 0) {
            feed_source_written(source, file_written_ns(descriptor)); // it is read once more
        }
        return true;
    }
    switch (guess.kind) {
    case FORMAT_UNKNOWN:
        feed_note(feed, path, "not read: unrecognised format; name one with the option format");
        return false;
    case FORMAT_BINARY:
        feed_note(feed, path, "not read: %s",
                  reader->packing != NULL ? reader->packing
                                          : "not a text and no format that culprit knows");
        return false;
    case FORMAT_GZIP:
        feed_note(feed, path, "not read: it is gzip inside gzip");
        return false;
    default:
        feed_note(feed, path, "not read: it looks like %s", format_name(guess.kind));
        return false;
    }
}

// Lines, of which the last may have no newline.
static uint64_t count_lines(struct slice text) {
    uint64_t count = text.size > 0 && text.data[text.size - 1] != '\n';
    for (size_t i = 0; i < text.size; i++)
        count += text.data[i] == '\n';
    return count;
}

static bool is_dump(const struct file_reader *reader, struct slice path) {
    return file_forced_format(reader, path) == FORMAT_FLIGHT_RECORDER && flight_dump_path(path);
}

// Of a dump, by its name, that cannot be read: that it was there.
static void tell_unread(struct file_reader *reader, struct source *source, struct slice why) {
    struct slice path = feed_source_path(source);
    if (!is_dump(reader, path))
        return;
    if (feed_source_decoder(source) == NULL)
        set_decoder(reader, source, format_decoder(FORMAT_FLIGHT_RECORDER), FORMAT_FLIGHT_RECORDER,
                    reader->input.descriptor);
    feed_tell_refused(reader->sink.feed, source, SLICE(""), 1, why);
}

// Of Windows' editors some leave a byte order mark in an empty file.
static bool is_blank(struct slice text) {
    text_skip(&text, SLICE("\xef\xbb\xbf"));
    return text_is_blank(text);
}

static void pass(struct file_reader *reader, size_t bytes) {
    reader->window.start += bytes;
    reader->passed.offset += bytes;
}

void file_pass_filling(struct file_reader *reader, enum format_kind forced) {
    if (forced == FORMAT_FLIGHT_RECORDER) // which is refused as it is
        return;
    pass(reader, text_mark(window_rest(&reader->window)));
    size_t filling = text_filling(window_rest(&reader->window));
    pass(reader, filling > 1 ? filling : 0); // one is of UTF-16
}

// Tells the format by what the window holds: behind what is no text, and behind lines that tell
// nothing, as long as there are others.
static void look_on(struct file_reader *reader, struct source *source, bool more,
                    struct format_guess *guess) {
    enum format_kind forced = file_forced_format(reader, feed_source_path(source));
    for (;;) {
        file_pass_filling(reader, forced);
        struct slice rest = window_rest(&reader->window);
        if (rest.size == 0 && reader->passed.records > 0)
            return;
        *guess = format_guess_by(rest, !more, forced, reader->sink.known.forms);
        reader->packing = format_packing(rest);
        size_t looked_at = format_looked_at(rest);
        if (!format_is_open(*guess, rest) || is_blank(rest) || (looked_at == rest.size && !more))
            return;
        uint64_t lines = count_lines((struct slice){rest.data, looked_at});
        reader->passed.records += lines;
        feed_source_figures(source)->other += lines;
        pass(reader, looked_at);
    }
}

// Reads until the format is known. False when there is nothing to read, or not yet.
static bool find_format(struct file_reader *reader, struct source *source,
                        struct format_guess *guess, bool *waits) {
    bool more = true;
    reader->passed = (struct extent){0};
    do {
        more = fill(reader, source);
        look_on(reader, source, more, guess);
    } while (more && (!guess->decided || format_is_open(*guess, window_rest(&reader->window))));
    if (!more && is_cut_short(reader))
        return false;
    bool blank = is_blank(window_rest(&reader->window)) && !more && reader->passed.records == 0;
    // What bears the name of a dump was to be one: it is refused, with all that follows from that.
    if (blank && is_dump(reader, feed_source_path(source)) &&
        !feed_source_figures(source)->unread) {
        *guess = (struct format_guess){true, FORMAT_FLIGHT_RECORDER, LAYOUT_WHOLE};
    } else if (blank) {
        if (reader->passed.offset > 0)
            feed_note(reader->sink.feed, feed_source_path(source),
                      "not read: it holds nothing but zeros");
        tell_unread(reader, source, SLICE("reading it failed"));
        feed_source_figures(source)->blank += count_lines(window_rest(&reader->window));
        return false;
    }
    bool first = reader->may_wait && !reader->by_folder;
    bool local = first && has_no_zone(reader, guess->kind);
    if (local)
        add_local_path(reader, feed_source_path(source));
    *waits = local || (first && has_no_year(reader, guess->kind)) ||
             (first && has_no_node(reader, feed_source_path(source), guess->kind));
    if (*waits) {
        note_year(reader, window_rest(&reader->window), file_written_ns(reader->input.descriptor));
        feed_source_figures(source)->bytes = 0;
        feed_source_figures(source)->other -= reader->passed.records;
        return false;
    }
    bool accepted = file_accept_format(reader, source, *guess, reader->input.descriptor);
    feed_source_figures(source)->unread = !accepted;
    if (!accepted)
        tell_unread(reader, source, SLICE("it is in no format that is known"));
    return accepted;
}

// -- lines --------------------------------------------------------------------------------------

// Passes the bytes that were offered before. False when the input ends first.
static bool skip_bytes(struct file_reader *reader, struct source *source, uint64_t bytes) {
    struct file_window *window = &reader->window;
    for (;;) {
        size_t rest = window->end - window->start;
        if (rest >= bytes) {
            window->start += (size_t)bytes;
            return true;
        }
        bytes -= rest;
        window->start = window->end;
        if (is_cut_short(reader) || !fill(reader, source))
            return false;
    }
}

// Goes to the first line that was not offered before, behind what the format was told by.
static bool go_to(struct file_reader *reader, struct record_stream *stream,
                  struct read_start start) {
    const struct extent *passed = &reader->passed;
    bool behind = start.bytes > passed->offset;
    stream->done.records = behind ? start.lines : passed->records;
    stream->done.offset = behind ? start.bytes : passed->offset;
    return !behind || skip_bytes(reader, stream->source, start.bytes - passed->offset);
}

const struct forms *file_forms(const struct file_reader *reader, struct source *source) {
    const char *format = feed_source_figures(source)->format;
    if (format == NULL || !format_is_of_lines(slice_of(format)))
        return NULL;
    return reader->sink.known.forms != NULL ? reader->sink.known.forms : forms_builtin();
}

// Whether what comes of the input is worth other threads: a file of more than some blocks (of which
// the first was read) whose telemetry they know.
static bool is_for_ahead(const struct file_reader *reader, const struct source *source) {
    enum { BLOCKS_MIN = 4 };
    struct stat about;
    return reader->ahead != NULL && !reader->input.waits && records_are_telemetry(source) &&
           fstat(reader->input.descriptor, &about) == 0 && S_ISREG(about.st_mode) &&
           about.st_size > (off_t)reader->input.raw_done + BLOCKS_MIN * FILE_BLOCK;
}

static bool fill_ahead(struct file_reader *reader, struct record_stream *stream) {
    struct file_window *window = &reader->window;
    struct ahead_block block;
    feed_flush(reader->sink.feed);
    ahead_next(reader->ahead, window_rest(window), &block);
    window_lend(reader, (struct file_window){block.data, block.size, 0, block.size});
    stream->foreseen = (struct foreseen_lines){.next = block.foreseen,
                                               .end = block.foreseen + block.foreseen_count};
    stream->found = block.found;
    if (block.status != STATUS_OK)
        feed_note(reader->sink.feed, feed_source_path(stream->source), "%s", block.error->message);
    feed_source_figures(stream->source)->bytes += block.read;
    note_progress(reader, block.raw_done);
    return block.read > 0;
}

// Takes the whole lines of the window. False when the input is cut short.
static bool take_window(struct file_reader *reader, struct record_stream *stream) {
    struct file_window *window = &reader->window;
    size_t before = window->start;
    window->start += records_take_lines(&reader->sink, stream, window_rest(window));
    if (records_drop_long(&reader->sink, stream, window_rest(window)))
        window->start = window->end;
    stream->done.offset += window->start - before;
    return !is_cut_short(reader);
}

// Like the loop of read_lines, with blocks that others read. What no newline ends is left in the
// reader's own window.
static bool read_ahead(struct file_reader *reader, struct record_stream *stream) {
    bool more = true;
    while (more && take_window(reader, stream))
        more = fill_ahead(reader, stream);
    feed_flush(reader->sink.feed);
    ahead_end(reader->ahead);
    stream->foreseen = (struct foreseen_lines){.next = NULL};
    stream->found.count = 0;
    window_return(reader);
    return !more;
}

static void read_lines(struct file_reader *reader, struct record_stream *stream) {
    struct record_sink *sink = &reader->sink;
    bool right;
    const struct ahead_file *given = &reader->given;
    if (given->data != NULL && records_are_telemetry(stream->source))
        stream->foreseen = (struct foreseen_lines){.next = given->foreseen,
                                                   .end = given->foreseen + given->foreseen_count,
                                                   .later = given->later,
                                                   .ids = reader->ids};
    if (given->data != NULL)
        stream->found = given->found;
    if (is_for_ahead(reader, stream->source) &&
        ahead_begin(reader->ahead, &reader->input, UINT64_MAX, sink->record_max,
                    file_forms(reader, stream->source))) {
        right = read_ahead(reader, stream);
    } else {
        while ((right = take_window(reader, stream)) && fill(reader, stream->source))
            continue;
    }
    if (!right || is_cut_short(reader))
        return;
    struct slice rest = window_rest(&reader->window);
    if (records_take_last(sink, stream, rest, false) == LAST_LINE_USED)
        stream->done.offset += rest.size;
    feed_source_finish(sink->feed, stream->source);
}

// -- documents ----------------------------------------------------------------------------------

// Sessions that the records of a document name, against that of its summary.
struct session_check {
    bool wanted;
    bool several;
    uint32_t size; // 0: none was named yet
    char first[SESSION_MAX];
};

static bool find_session(struct slice object, struct slice *session) {
    struct json_keys keys;
    json_keys_begin(&keys, object, 0);
    while (json_keys_next(&keys) == JSON_KEYS_MEMBER) {
        if (keys.key_depth == 1 && keys.value_first == '"' &&
            slice_equal(keys.key, SLICE("session_id")))
            return json_keys_text(&keys, session) && session->size <= SESSION_MAX;
    }
    return false;
}

static void check_session(struct session_check *check, struct slice record) {
    struct slice session;
    if (!check->wanted || !find_session(record, &session) || session.size == 0)
        return;
    if (check->size == 0) {
        assert(session.size <= sizeof check->first);
        memcpy(check->first, session.data, session.size);
        check->size = (uint32_t)session.size;
    } else if (!slice_equal(session, (struct slice){check->first, check->size})) {
        check->several = true;
    }
}

static void note_sessions(struct file_reader *reader, const struct record_stream *stream,
                          const struct session_check *check, struct slice summary) {
    struct slice session;
    if (summary.size == 0 || check->size == 0 || !find_session(summary, &session))
        return;
    if (check->several || !slice_equal(session, (struct slice){check->first, check->size}))
        feed_note(reader->sink.feed, feed_source_path(stream->source),
                  "its session_summary names the session %.*s, but not all of its records do: they "
                  "were read with their own",
                  (int)session.size, session.data);
}

// Offers what is whole in the window. False when the document is at an end or broken.
static bool take_items(struct file_reader *reader, struct record_stream *stream,
                       struct splitter *split, struct session_check *check, uint64_t skip) {
    for (;;) {
        struct slice record;
        enum split_step step = splitter_next(split, window_rest(&reader->window), &record);
        stream->done.records = split->item;
        if (step == SPLIT_MORE)
            return true;
        if (step == SPLIT_FAULT)
            return false;
        if (split->item <= skip)
            continue;
        if (step == SPLIT_EMPTY)
            records_refuse_empty(&reader->sink, stream, split->item);
        else if (step == SPLIT_TOO_LONG)
            records_refuse_long(&reader->sink, stream, record, split->item);
        else if (record.data[0] != '{')
            records_refuse_item(&reader->sink, stream, record, split->item);
        else
            records_take_item(&reader->sink, stream, record, split->item);
        if (step == SPLIT_RECORD)
            check_session(check, record);
    }
}

static void note_document_end(struct file_reader *reader, const struct record_stream *stream,
                              const struct splitter *split, bool broken) {
    const char *why = broken ? split->fault : splitter_end(split);
    if (why == NULL)
        return;
    uint64_t at = broken ? split->fault_at : split->base + split->at;
    struct source_figures *figures = feed_source_figures(stream->source);
    figures->torn = figures->torn || !broken;
    feed_note(reader->sink.feed, feed_source_path(stream->source),
              "%s (byte %llu, after %llu records): %s", why, (unsigned long long)at,
              (unsigned long long)split->item,
              broken ? "the rest is not read" : "what was whole has been read");
}

static void read_document(struct file_reader *reader, struct record_stream *stream,
                          enum format_layout layout, uint64_t skip) {
    assert(layout != LAYOUT_LINES && layout != LAYOUT_WHOLE);
    struct splitter split;
    splitter_begin(&split, layout, reader->sink.record_max);
    struct session_check check = {.wanted = layout == LAYOUT_WRAPPER};
    bool right;
    bool more = true;
    while ((right = take_items(reader, stream, &split, &check, skip)) && more) {
        if (is_cut_short(reader))
            return;
        size_t used = splitter_used(&split);
        reader->window.start += used;
        splitter_drop(&split, used);
        more = fill(reader, stream->source);
    }
    if (!more && is_cut_short(reader))
        return;
    feed_source_finish(reader->sink.feed, stream->source);
    note_document_end(reader, stream, &split, !right);
    note_sessions(reader, stream, &check, split.summary);
}

static void take_whole(struct file_reader *reader, struct record_stream *stream,
                       struct slice record) {
    const struct ahead_file *given = &reader->given;
    if (given->parser != NULL && given->parser == feed_source_decoder(stream->source) &&
        record.data == given->data && record.size == given->size)
        feed_foresee_parsed(reader->sink.feed, record, given->parsed);
    records_take_item(&reader->sink, stream, record, 1);
}

// All of it is one record.
static void read_whole(struct file_reader *reader, struct record_stream *stream, uint64_t skip) {
    struct file_window *window = &reader->window;
    bool more = true;
    reader->input.every_byte = true; // they count for its size
    while (more && window->end - window->start <= reader->document_max && !is_cut_short(reader))
        more = fill(reader, stream->source);
    if (is_cut_short(reader) || skip > 0)
        return;
    stream->done.records = 1;
    struct slice record = window_rest(window);
    if (record.size > reader->document_max)
        records_refuse_long(&reader->sink, stream, record, 1);
    else
        take_whole(reader, stream, record);
    feed_source_finish(reader->sink.feed, stream->source);
    feed_flush(reader->sink.feed);
    window->start = window->end;
}

// -- one input ----------------------------------------------------------------------------------

bool file_read_open(struct file_reader *reader, struct record_stream *stream,
                    struct read_start start) {
    struct source *source = stream->source;
    assert(source != NULL && reader->input.descriptor >= 0);
    stream->done.records = 0;
    stream->skipping = false;
    struct format_guess guess;
    bool waits = false;
    reader->window.start = reader->window.end = 0;
    if (find_format(reader, source, &guess, &waits)) {
        if (guess.layout == LAYOUT_WHOLE) {
            read_whole(reader, stream, start.items);
        } else if (guess.layout != LAYOUT_LINES) {
            read_document(reader, stream, guess.layout, start.items);
        } else if (go_to(reader, stream, start)) {
            read_lines(reader, stream);
        }
        if (reader->input.trouble[0] != '\0' && !has_unused(reader))
            feed_note(reader->sink.feed, feed_source_path(source),
                      "%s: what came before it has been read", reader->input.trouble);
    }
    feed_flush(reader->sink.feed);
    reader->window.start = reader->window.end = 0;
    window_return(reader);
    return !waits;
}

bool file_read_path(struct file_reader *reader, struct slice path) {
    struct error error;
    struct source *source = feed_source(reader->sink.feed, path);
    enum status status = STATUS_OK;
    bool is_given = reader->ahead != NULL &&
                    ahead_file_take(reader->ahead, path, &reader->input, &reader->given);
    if (!is_given) {
        // A slice need not end in a zero byte.
        char *text = memory_copy_text(path.data, path.size);
        status = file_input_open(&reader->input, text, &error);
        memory_give(text);
    }
    if (status != STATUS_OK) {
        feed_note(reader->sink.feed, path, "not read: %s", error.message);
        tell_unread(reader, source, slice_of(error.message));
        feed_flush(reader->sink.feed);
        feed_source_figures(source)->unread = true;
        return true;
    }
    struct record_stream stream = {.source = source};
    bool read = file_read_open(reader, &stream, (struct read_start){0, 0, 0});
    if (read)
        reader->done_bytes += reader->input.raw_done;
    file_input_close(&reader->input);
    reader->given.data = NULL;
    if (is_given)
        ahead_file_done(reader->ahead);
    return read;
}
