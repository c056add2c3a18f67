// SPDX-License-Identifier: Apache-2.0
// What is in this input, and what are its records?
//
// One window that all inputs share: a block is read behind what is left of the block before, its
// records are offered where they stand, and the batch is flushed before they move. The window grows
// to the longest record that is allowed and one block; nothing is allocated once it has.
#include "receivers/file/read.h"

#include "base/clock.h"
#include "base/memory.h"
#include "receivers/decode/formats.h"
#include "receivers/decode/json/keys.h"
#include "receivers/decode/split.h"

#include <ctype.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SESSION_MAX = 256 };

void window_reserve(struct file_window *window, size_t size) {
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
}

void file_reader_release(struct file_reader *reader) {
    file_input_release(&reader->input);
    memory_give(reader->window.data);
    reader->window = (struct file_window){.data = NULL};
}

static bool is_cut_short(const struct file_reader *reader) {
    return !reader->to_the_end && feed_stopping(reader->sink.feed);
}

// Reads one block behind the rest; false at the end, or when reading fails (which is noted).
static bool fill(struct file_reader *reader, struct source *source) {
    struct file_window *window = &reader->window;
    feed_flush(reader->sink.feed);
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
    window->end += got;
    figures->bytes += got;
    if (reader->total_bytes > 0)
        feed_progress(reader->sink.feed, reader->done_bytes + reader->input.raw_done,
                      reader->total_bytes);
    return status == STATUS_OK && got > 0;
}

// -- the format ---------------------------------------------------------------------------------

static bool is_blank(struct slice text) {
    for (size_t i = 0; i < text.size; i++) {
        if (!isspace((unsigned char)text.data[i]))
            return false;
    }
    return true;
}

// Sets the decoder, with when the file was written last and how it ends; of a pipe neither is
// known.
static void set_decoder(struct source *source, const struct decoder_type *decoder, int descriptor) {
    enum { TAIL_BYTES = 16 << 10 };
    char tail[TAIL_BYTES];
    struct stat about;
    struct decoder_input input = {.observed_ns = clock_unix_ns(), .is_file = true};
    if (descriptor >= 0 && fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode) &&
        about.st_mtim.tv_sec > 0) {
        input.observed_ns =
            (uint64_t)about.st_mtim.tv_sec * 1000000000 + (uint64_t)about.st_mtim.tv_nsec;
        off_t from = about.st_size > TAIL_BYTES ? about.st_size - TAIL_BYTES : 0;
        ssize_t got = pread(descriptor, tail, sizeof tail, from);
        if (got > 0)
            input.tail = (struct slice){tail, (size_t)got};
    }
    feed_source_format(source, decoder, &input);
}

bool file_accept_format(struct file_reader *reader, struct source *source,
                        struct format_guess guess, int descriptor) {
    struct feed *feed = reader->sink.feed;
    struct slice path = feed_source_path(source);
    const struct decoder_type *decoder = format_decoder(guess.kind);
    if (decoder != NULL) {
        if (feed_source_decoder(source) == NULL)
            set_decoder(source, decoder, descriptor);
        return true;
    }
    switch (guess.kind) {
    case FORMAT_UNKNOWN:
        feed_note(feed, path,
                  "not read: nothing at its beginning is telemetry that is known; format: stormlog "
                  "reads it as such all the same");
        return false;
    case FORMAT_GZIP:
        feed_note(feed, path, "not read: it is gzip inside gzip");
        return false;
    default:
        feed_note(feed, path, "not read: it looks like %s", format_name(guess.kind));
        return false;
    }
}

// Reads until the format is known. False when there is nothing to read.
static bool find_format(struct file_reader *reader, struct source *source,
                        struct format_guess *guess) {
    bool more = true;
    do {
        more = fill(reader, source);
        *guess = format_guess(window_rest(&reader->window), !more, reader->forced);
    } while (!guess->decided);
    if (!more && is_cut_short(reader))
        return false;
    if (is_blank(window_rest(&reader->window)) && !more)
        return false;
    bool accepted = file_accept_format(reader, source, *guess, reader->input.descriptor);
    feed_source_figures(source)->unread = !accepted;
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

static void read_lines(struct file_reader *reader, struct record_stream *stream) {
    struct file_window *window = &reader->window;
    struct record_sink *sink = &reader->sink;
    do {
        size_t before = window->start;
        window->start += records_take_lines(sink, stream, window_rest(window));
        if (records_drop_long(sink, stream, window_rest(window)))
            window->start = window->end;
        stream->offset += window->start - before;
        if (is_cut_short(reader))
            return;
    } while (fill(reader, stream->source));
    if (!is_cut_short(reader))
        records_take_last(sink, stream, window_rest(window), false);
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
        stream->position = split->item;
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
    note_document_end(reader, stream, &split, !right);
    note_sessions(reader, stream, &check, split.summary);
}

// All of it is one record.
static void read_whole(struct file_reader *reader, struct record_stream *stream, uint64_t skip) {
    struct file_window *window = &reader->window;
    bool more = true;
    while (more && window->end - window->start <= reader->document_max && !is_cut_short(reader))
        more = fill(reader, stream->source);
    if (is_cut_short(reader) || skip > 0)
        return;
    stream->position = 1;
    struct slice record = window_rest(window);
    if (record.size > reader->document_max)
        records_refuse_long(&reader->sink, stream, record, 1);
    else
        records_take_item(&reader->sink, stream, record, 1);
    feed_flush(reader->sink.feed);
    window->start = window->end;
}

// -- one input ----------------------------------------------------------------------------------

void file_read_open(struct file_reader *reader, struct record_stream *stream,
                    struct read_start start) {
    struct source *source = stream->source;
    stream->position = 0;
    stream->skipping = false;
    struct format_guess guess;
    reader->window.start = reader->window.end = 0;
    if (find_format(reader, source, &guess)) {
        if (guess.layout == LAYOUT_WHOLE) {
            read_whole(reader, stream, start.items);
        } else if (guess.layout != LAYOUT_LINES) {
            read_document(reader, stream, guess.layout, start.items);
        } else if (skip_bytes(reader, source, start.bytes)) {
            stream->position = start.lines;
            stream->offset = start.bytes;
            read_lines(reader, stream);
        }
        if (reader->input.trouble[0] != '\0')
            feed_note(reader->sink.feed, feed_source_path(source),
                      "%s: what came before it has been read", reader->input.trouble);
    }
    feed_flush(reader->sink.feed);
    reader->window.start = reader->window.end = 0;
}

void file_read_path(struct file_reader *reader, struct slice path) {
    struct error error;
    struct source *source = feed_source(reader->sink.feed, path);
    // A slice need not end in a zero byte.
    char *text = memory_copy_text(path.data, path.size);
    enum status status = file_input_open(&reader->input, text, &error);
    memory_give(text);
    if (status != STATUS_OK) {
        feed_note(reader->sink.feed, path, "not read: %s", error.message);
        feed_source_figures(source)->unread = true;
        return;
    }
    struct record_stream stream = {.source = source};
    file_read_open(reader, &stream, (struct read_start){0, 0, 0});
    reader->done_bytes += reader->input.raw_done;
    file_input_close(&reader->input);
}
