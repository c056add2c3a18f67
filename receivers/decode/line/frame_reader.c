// SPDX-License-Identifier: Apache-2.0
// Peels what transports put in front of a message, and holds lines that are parts.
//
// Each prefix takes time in its own size, and at most PEELS_MAX are taken off a line; what looks
// further (colours, the last "kernel:", a rank behind a progress bar) does so once a line, or once
// for each state of a bar that overwrites itself. So a line costs O(line), whatever is in it.
#include "receivers/decode/line/frame_reader.h"

#include "base/memory.h"
#include "base/text/cut.h"
#include "receivers/decode/forms/forms.h"
#include "receivers/decode/forms/needles.h"
#include "receivers/decode/forms/rows.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/line/carrier.h"
#include "receivers/decode/line/head.h"
#include "receivers/decode/line/journal.h"
#include "receivers/decode/line/place.h"
#include "receivers/decode/line/prefix.h"
#include "receivers/decode/line/transport.h"
#include "receivers/decode/line/utf16.h"
#include "receivers/decode/line/writer.h"

#include <assert.h>

enum {
    PEELS_MAX = 16,
    OBJECTS_MAX = 4,          // JSON objects one in another
    CARRIERS_SEEN = 4,        // kinds of objects that are remembered
    CARRIER_BEGIN_MAX = 48,   // bytes of how they begin
    STREAMS = 3,              // not said, stdout, stderr
    PARTS_MAX = 16 << 20,     // bytes of parts that are held, of all streams
    RECORD_LINES_MAX = 64,    // lines of one record that are frames of their own
    KMSG_HELD_MAX = 64 << 10, // a record of /dev/kmsg has less than 8 KiB
    LABEL_LINES = 4,          // so many numbers that only count lines are no labels
    LABELS_AGAIN = 2,         // numbers that came again so often are labels
};

struct bytes {
    char *data;
    size_t size, capacity;
};

// A line whose end has not come.
struct parts {
    struct bytes text;
    struct frame frame; // of the first part; its texts are those of the log's name
    struct peel peel;
    uint32_t lines;
    bool cut; // there was no room for all of it
};

struct labels {
    int64_t last;
    uint32_t ascending; // numbers that were one more than the one before
    uint32_t again;     // numbers that were not more
    bool beyond;        // some were no ranks
};

// An envelope with several lines.
struct listed {
    bool active;
    bool given; // … of which one was
    struct envelope envelope;
    struct frame frame; // as it was in front of the envelope
    struct peel peel;
};

// How objects of the log begin that a row knew.
struct carrier_seen {
    const struct form *form;
    uint32_t size;
    char begin[CARRIER_BEGIN_MAX]; // up to the colon behind the first key
};

// What frame_next gives, in this order.
struct ready {
    enum { READY_NOTHING, READY_TEXT, READY_RECORD } what;
    struct frame frame;
    struct peel peel; // of READY_TEXT
    struct slice text;
    struct journal_record record;
};

struct frame_reader {
    enum frame_form form;
    struct line_clock clock;
    uint32_t world_size;
    char *path;
    struct frame place; // what the log's name says
    bool begun;
    bool finishing;
    bool has_text;           // some line was no object
    bool next_cut, line_cut; // the next line, the one at hand breaks off
    const char *encoding;    // NULL: one that can be read
    struct labels labels;
    struct head_seen head;
    struct prefixes_seen prefixes;
    struct journal_export *journal; // NULL until one begins
    struct dmesg_json *dmesg;
    struct parts parts[STREAMS];
    // A record of /dev/kmsg, until another line than one of its own comes.
    struct bytes kmsg;
    uint64_t kmsg_position;
    uint32_t kmsg_lines;
    bool kmsg_cut;
    struct ready ready;
    // Further lines of the message that was given last.
    struct slice more;
    struct frame more_frame;
    struct peel more_peel; // where they overwrite each other: what stood in front of the first
    bool overwrite;
    uint32_t more_count;
    struct listed *listed; // NULL until one comes
    struct carrier_seen carriers[CARRIERS_SEEN];
    uint32_t carrier_count;
    // The line that ended what was held.
    bool has_after;
    struct slice after;
    uint64_t after_position;
};

// -- memory ---------------------------------------------------------------------------------------

static void append(struct bytes *bytes, struct slice text) {
    if (bytes->size + text.size > bytes->capacity) {
        size_t capacity = bytes->capacity == 0 ? 256 : bytes->capacity;
        while (capacity < bytes->size + text.size)
            capacity *= 2;
        bytes->data = memory_resize(bytes->data, capacity);
        bytes->capacity = capacity;
    }
    if (text.size > 0)
        memcpy(bytes->data + bytes->size, text.data, text.size);
    bytes->size += text.size;
}

static struct slice bytes_slice(const struct bytes *bytes) {
    return (struct slice){bytes->data, bytes->size};
}

struct frame_reader *frame_reader_make(const struct decoder_input *input, enum frame_form form) {
    struct frame_reader *reader = memory_zero(1, sizeof *reader);
    reader->form = form;
    reader->world_size = input->world_size;
    reader->labels.last = -1;
    reader->clock = (struct line_clock){
        .zone = input->zone, .observed_ns = input->observed_ns, .boot_ns = input->boot_ns};
    reader->clock.is_file = input->is_file;
    reader->clock.ends = input->ends;
    reader->clock.near_ns = input->ends ? input->near_ns : 0;
    reader->clock.boots_ahead = transport_boots_in(input->tail);
    if (input->boot_ns == 0 && input->tail.size > 0)
        reader->clock.boot_ns = transport_boot_of(input->tail, input->observed_ns);
    frame_clear(&reader->place, (struct slice){NULL, 0}, 0);
    reader->place.zone = input->zone;
    reader->place.forms = input->forms;
    reader->place.observed_ns = input->observed_ns;
    if (input->path.size > 0) {
        reader->path = memory_copy_text(input->path.data, input->path.size);
        place_read((struct slice){reader->path, input->path.size}, input->world_size,
                   &reader->place);
    }
    return reader;
}

void frame_reader_free(struct frame_reader *reader) {
    if (reader == NULL)
        return;
    for (int i = 0; i < STREAMS; i++)
        memory_give(reader->parts[i].text.data);
    memory_give(reader->kmsg.data);
    memory_give(reader->journal);
    memory_give(reader->dmesg);
    memory_give(reader->listed);
    memory_give(reader->path);
    memory_give(reader);
}

// -- cleaning -------------------------------------------------------------------------------------

// Behind an escape sequence: "ESC [ … letter", "ESC ] … BEL", or the escape alone.
static size_t escape_end(struct slice text, size_t at) {
    size_t end = at + 1;
    if (end < text.size && text.data[end] == '[') {
        end++;
        while (end < text.size && text.data[end] >= 0x20 && text.data[end] < 0x40)
            end++;
        return end < text.size && text.data[end] >= 0x40 ? end + 1 : end;
    }
    if (end < text.size && text.data[end] == ']') {
        enum { TITLE_MAX = 256 };
        size_t limit = text.size - end < TITLE_MAX ? text.size : end + TITLE_MAX;
        for (size_t i = end; i < limit && text.data[i] != '\x1b'; i++)
            if (text.data[i] == '\a')
                return i + 1;
    }
    return end;
}

// Without terminal colours.
static struct slice strip_colours(struct slice text, struct arena *arena) {
    if (text.size == 0 || memchr(text.data, '\x1b', text.size) == NULL)
        return text;
    char *out = arena_take(arena, text.size);
    size_t size = 0;
    for (size_t at = 0; at < text.size;) {
        if (text.data[at] == '\x1b')
            at = escape_end(text, at);
        else
            out[size++] = text.data[at++];
    }
    return (struct slice){out, size};
}

// A machine that lost its power leaves runs of zeros.
static void strip_zeros(struct slice *text) {
    size_t size = 0;
    while (size < text->size && text->data[size] == '\0')
        size++;
    text_take(text, size);
}

static struct slice clean(struct slice text, struct arena *arena) {
    while (text.size > 0 && (text.data[text.size - 1] == '\r' || text.data[text.size - 1] == '\n'))
        text.size--;
    text_skip(&text, SLICE("\xef\xbb\xbf"));
    return strip_colours(text, arena);
}

// What XML writes for characters that it keeps for itself, and those that end lines.
static struct slice strip_xml(struct slice text, struct arena *arena) {
    static const struct {
        struct slice written;
        char meant;
    } escapes[] = {{{"&lt;", 4}, '<'},   {{"&gt;", 4}, '>'},    {{"&amp;", 5}, '&'},
                   {{"&quot;", 6}, '"'}, {{"&#010;", 6}, '\n'}, {{"&#013;", 6}, '\r'}};
    enum { ESCAPES = sizeof escapes / sizeof *escapes };
    char *out = arena_take(arena, text.size + 1);
    size_t size = 0;
    while (text.size > 0) {
        int i = 0;
        while (i < ESCAPES && !text_begins(text, escapes[i].written))
            i++;
        out[size++] = i < ESCAPES ? escapes[i].meant : text.data[0];
        text_take(&text, i < ESCAPES ? escapes[i].written.size : 1);
    }
    return clean((struct slice){out, size}, arena);
}

static const struct forms *forms_of(const struct frame *frame) {
    return frame->forms != NULL ? frame->forms : forms_builtin();
}

static bool is_blank(struct slice text) {
    text_skip_blanks(&text);
    return text.size == 0;
}

// Takes the next part of what overwrites itself on a terminal in which something stands that is
// looked for, or a rank is named; where there is none (`says`: false), the last one that is more
// than blanks. A program writes messages behind a bar that it draws, and no line ends between the
// bar's states.
static struct slice take_written(struct slice *text, const struct forms *forms, bool *says) {
    struct slice part = {NULL, 0};
    *says = false;
    while (text->size > 0) {
        struct slice next = text_until(*text, '\r');
        struct needle_walk walk = {0};
        size_t place;
        bool certain;
        *text = text_from(*text, next.size + (next.size < text->size));
        if (is_blank(next))
            continue;
        part = next;
        *says = memmem(next.data, next.size, "[rank", 5) != NULL ||
                forms_search(forms, next, &walk, &place, &certain);
        if (*says)
            break;
    }
    return part;
}

// -- labels ---------------------------------------------------------------------------------------

static uint32_t digits_of(uint32_t number) {
    uint32_t digits = 1;
    for (; number >= 10; number /= 10)
        digits++;
    return digits;
}

// What "12: " in front of the text means. Numbers that only count up are those of lines that
// somebody pasted; where the number of ranks is not known they must have come again, in any order.
static void read_labels(struct frame_reader *reader, struct peel *peel, struct slice text) {
    struct labels *labels = &reader->labels;
    uint32_t number, width;
    peel->labels = LABEL_NONE;
    if (peel->writer || !writer_take_label(&text, &number, &width))
        return;
    bool next = labels->last >= 0 && (int64_t)number == labels->last + 1;
    labels->again += labels->last >= 0 && (int64_t)number <= labels->last;
    labels->ascending += next;
    labels->last = number;
    bool counts = labels->again == 0 && labels->ascending >= LABEL_LINES;
    if (reader->world_size == 0) {
        peel->labels = labels->again >= LABELS_AGAIN ? LABEL_TASK : LABEL_NONE;
        return;
    }
    labels->beyond = labels->beyond || number >= reader->world_size;
    bool padded = width == digits_of(reader->world_size - 1) || width == digits_of(number);
    if (!labels->beyond && padded && !counts)
        peel->labels = LABEL_RANK;
}

// -- peeling --------------------------------------------------------------------------------------

static void begin_peel(struct frame_reader *reader, struct peel *peel, struct frame *frame,
                       struct slice text) {
    *peel = (struct peel){.clock = &reader->clock,
                          .form = reader->form,
                          .frame = frame,
                          .text = text,
                          .key = HASH_START,
                          .around = HASH_START};
}

// Rows know no words of the kernel.
static bool peel_row(struct frame_reader *reader, struct peel *peel) {
    return reader->form != FORM_KERNEL && !peel->kernel && prefix_peel(peel, &reader->prefixes);
}

// Takes one prefix, and the blanks before it. Of some that begin alike a row knows more than the
// forms of writers.
static bool peel_one(struct frame_reader *reader, struct peel *peel) {
    struct slice whole = peel->text;
    strip_zeros(&peel->text);
    struct slice text = peel->text;
    text_skip_blanks(&peel->text);
    if (peel->text.size > 0) {
        if (text_is_digit(peel->text.data[0]))
            read_labels(reader, peel, text);
        char first = peel->text.data[0], second = peel->text.size > 1 ? peel->text.data[1] : ' ';
        bool rows_first = first == '(' || (first == '[' && text_is_digit(second));
        if (transport_peel(peel) || (rows_first && peel_row(reader, peel)) || writer_peel(peel) ||
            (!rows_first && peel_row(reader, peel)))
            return true;
    }
    peel->text = text;
    return text.size < whole.size;
}

static void set_record(const struct journal_record *record, struct peel *peel,
                       struct arena *arena) {
    struct frame *frame = peel->frame;
    if (record->host.data != NULL)
        frame->host = record->host;
    if (record->program.data != NULL)
        frame->program = record->program;
    if (record->origin != ORIGIN_UNKNOWN)
        frame->origin = record->origin;
    if (record->level != LEVEL_NOT_SAID)
        frame->level = record->level;
    peel->kernel = record->origin == ORIGIN_KERNEL;
    if (record->has_boot) {
        peel->has_uptime = true;
        frame->boot_us = record->boot_us;
        if (peel->tells < TELLS_BOOT)
            peel->tells = TELLS_BOOT;
    }
    if (record->time_ns != 0 && peel->tells < TELLS_TIME) {
        frame->time_ns = record->time_ns;
        peel->tells = TELLS_TIME;
        peel_year(peel, record->time_ns);
    } else if (record->origin == ORIGIN_KERNEL && peel->tells == TELLS_NOTHING) {
        peel->tells = TELLS_NO_DATE;
    }
    frame->truncated = frame->truncated || record->cut;
    if (record->is_container) {
        bool error = slice_equal(record->stream, SLICE("stderr"));
        bool whole =
            record->message.size > 0 && record->message.data[record->message.size - 1] == '\n';
        peel->part = whole ? PART_WHOLE : PART_MORE;
        peel->stream = error ? 2 : 1;
        peel_named(peel, record->stream, "stream");
    }
    peel->text = clean(record->message, arena);
}

// The lines of an envelope with several are given by frame_next.
static void list_lines(struct frame_reader *reader, const struct peel *peel,
                       const struct envelope *envelope) {
    if (reader->listed == NULL)
        reader->listed = memory_zero(1, sizeof *reader->listed);
    *reader->listed = (struct listed){
        .active = true, .envelope = *envelope, .frame = *peel->frame, .peel = *peel};
}

// How the object begins; empty: with too long a key.
static struct slice carrier_begin(struct slice object) {
    if (object.size > CARRIER_BEGIN_MAX)
        object.size = CARRIER_BEGIN_MAX;
    const char *colon = object.size == 0 ? NULL : memchr(object.data, ':', object.size);
    return (struct slice){object.data, colon == NULL ? 0 : (size_t)(colon - object.data) + 1};
}

static bool begins_as(const struct carrier_seen *seen, struct slice begin) {
    return seen->size == begin.size && memcmp(seen->begin, begin.data, begin.size) == 0;
}

static void learn_carrier(struct frame_reader *reader, struct slice object,
                          const struct form *form) {
    struct slice begin = carrier_begin(object);
    bool known = begin.size == 0 || reader->carrier_count == CARRIERS_SEEN;
    for (uint32_t i = 0; i < reader->carrier_count && !known; i++)
        known = reader->carriers[i].form == form && begins_as(&reader->carriers[i], begin);
    if (known)
        return;
    struct carrier_seen *seen = &reader->carriers[reader->carrier_count++];
    seen->form = form;
    seen->size = (uint32_t)begin.size;
    memcpy(seen->begin, begin.data, begin.size);
}

// Whether a key of the row's is there, by the last of its parts: "pod_name\":".
static bool has_key(struct slice object, struct slice path) {
    const char *dot = memrchr(path.data, '.', path.size);
    struct slice name = dot == NULL ? path : text_from(path, (size_t)(dot - path.data) + 1);
    for (struct slice behind = object; text_find(behind, name, &behind);)
        if (text_begins(behind, SLICE("\":")) || text_begins(behind, SLICE("\" :")))
            return true;
    return false;
}

static bool has_needs(struct slice object, const struct form *form) {
    bool needs = false;
    for (uint32_t i = 0; i < form->path_count; i++) {
        if (form->paths[i].target != TARGET_NEEDS)
            continue;
        needs = true;
        if (!has_key(object, form->paths[i].path))
            return false;
    }
    return needs;
}

bool frame_knows_object(const struct frame_reader *reader, struct slice line) {
    text_skip_blanks(&line);
    struct slice begin = carrier_begin(line);
    for (uint32_t i = 0; i < reader->carrier_count && begin.size > 0; i++)
        if (begins_as(&reader->carriers[i], begin) && has_needs(line, reader->carriers[i].form))
            return true;
    return false;
}

// An object that some row knows. One with a message that none does is told, but not in what else is
// text: programs write objects of their own.
static enum frame_step peel_envelope(struct frame_reader *reader, struct peel *peel,
                                     struct arena *arena, struct decode_fault *fault) {
    struct envelope envelope;
    struct json_fault json;
    bool is_inner = peel->frame->has_writer || peel->tells != TELLS_NOTHING;
    if (!text_begins(peel->text, SLICE("{")) ||
        !envelope_open(&envelope, forms_envelopes(forms_of(peel->frame)), peel->text, &json))
        return FRAME_END;
    if (envelope.form == NULL && envelope.has_words && !is_inner && !reader->has_text) {
        carrier_refuse(peel->text, fault);
        return FRAME_REFUSED;
    }
    if (envelope.form == NULL)
        return FRAME_END;
    if (!is_inner)
        learn_carrier(reader, peel->text, envelope.form);
    if (envelope.lists > 0) {
        if (reader->listed != NULL && reader->listed->active)
            return FRAME_NOTHING;
        list_lines(reader, peel, &envelope);
        return FRAME_HELD;
    }
    if (!envelope_next(&envelope) || !carrier_set(peel, &envelope, arena))
        return FRAME_NOTHING;
    peel->text = clean(peel->text, arena);
    return FRAME_LINE;
}

// "2026-01-05T10:11:12+00:00", a tab, a tag, a tab and an object, as Fluentd writes to files.
static void skip_fluentd(struct peel *peel) {
    enum { TIME_MAX = 40, TAG_MAX = 200 };
    struct slice front = peel->text;
    front.size = front.size < TIME_MAX + TAG_MAX ? front.size : TIME_MAX + TAG_MAX;
    struct slice time = text_until(front, '\t');
    if (time.size > TIME_MAX || time.size == front.size || !text_is_digit(front.data[0]))
        return;
    struct slice rest = text_from(front, time.size + 1), tag = text_until(rest, '\t');
    size_t size = time.size + tag.size + 2;
    if (tag.size < rest.size && size < peel->text.size && peel->text.data[size] == '{' &&
        transport_set_time(peel, time))
        peel->text = text_from(peel->text, size);
}

// An object in front: of the journal, of Docker, or another envelope.
static enum frame_step peel_json(struct frame_reader *reader, struct peel *peel,
                                 struct arena *arena, struct decode_fault *fault) {
    struct journal_record record;
    skip_fluentd(peel);
    if (peel->text.size == 0 || peel->text.data[0] != '{')
        return FRAME_END;
    if (peel->writer || !journal_is_json(peel->text))
        return peel_envelope(reader, peel, arena, fault);
    enum decode_category category = journal_json_read(peel->text, arena, &record, fault);
    if (category == DECODE_NOTHING)
        return peel_envelope(reader, peel, arena, fault);
    if (category != DECODE_OK)
        return FRAME_REFUSED;
    if (record.message.data == NULL) // journalctl leaves long ones out
        return FRAME_NOTHING;
    set_record(&record, peel, arena);
    return FRAME_LINE;
}

static size_t parts_held(const struct frame_reader *reader) {
    size_t size = 0;
    for (int i = 0; i < STREAMS; i++)
        size += reader->parts[i].text.size;
    return size;
}

// What is held of a stream becomes the next frame.
static void release_parts(struct frame_reader *reader, struct parts *parts, struct arena *arena) {
    struct ready *ready = &reader->ready;
    assert(ready->what == READY_NOTHING && parts->lines > 0);
    ready->what = READY_TEXT;
    ready->frame = parts->frame;
    ready->peel = parts->peel;
    ready->text = arena_copy(arena, bytes_slice(&parts->text));
    ready->frame.lines = parts->lines;
    ready->frame.truncated = ready->frame.truncated || parts->cut;
    ready->frame.raw = ready->text;
    parts->lines = 0;
    parts->text.size = 0;
    parts->cut = false;
}

// A line of a container: parts of the same stream are joined.
static enum frame_step join_parts(struct frame_reader *reader, struct peel *peel,
                                  struct arena *arena) {
    assert(peel->stream < STREAMS);
    struct parts *parts = &reader->parts[peel->stream];
    if (parts->lines == 0 && peel->part == PART_WHOLE)
        return FRAME_LINE;
    if (parts->lines++ == 0) {
        parts->frame = *peel->frame;
        parts->peel = *peel;
        // Texts of the line itself are gone when the next one comes.
        parts->frame.host = parts->frame.program = (struct slice){NULL, 0};
        parts->frame.pod = reader->place.pod;
        parts->frame.container = reader->place.container;
        parts->frame.address = (struct slice){NULL, 0};
    }
    if (parts_held(reader) + peel->text.size <= PARTS_MAX)
        append(&parts->text, peel->text);
    else
        parts->cut = true;
    parts->cut = parts->cut || reader->line_cut;
    if (peel->part == PART_WHOLE)
        release_parts(reader, parts, arena);
    return FRAME_HELD;
}

static void settle(struct frame_reader *reader, struct peel *peel) {
    struct frame *frame = peel->frame;
    bool kernel = frame->origin == ORIGIN_KERNEL || reader->form == FORM_KERNEL;
    frame->carried = peel->tells == TELLS_TIME;
    if (kernel)
        frame->rank = RANK_NONE; // the kernel's lines are no rank's
    else
        transport_program_time(peel);
    transport_settle_time(peel);
    if (frame->host.data != NULL)
        peel_named(peel, frame->host, "host");
    if (frame->program.data != NULL && frame->origin != ORIGIN_KERNEL)
        peel_named(peel, frame->program, "program");
    if (!kernel)
        head_peel(peel, &reader->head);
    frame->key = peel->key;
    frame->around = peel->around;
    frame->has_writer = frame->has_writer || reader->place.pod.data != NULL ||
                        reader->place.rank != RANK_NONE || reader->place.local_rank >= 0;
    frame->message = peel->text;
}

// A record may hold several lines: the kernel's as one printk wrote them, a program's traceback.
// Of the kernel only those are parted that begin alike: names of processes may hold anything.
static void part_lines(struct frame_reader *reader, struct frame *frame) {
    struct slice text = frame->message, first = text_until(text, '\n');
    if (first.size == text.size)
        return;
    struct slice rest = text_from(text, first.size + 1);
    struct slice tag = text_until(first, ' ');
    if (frame->origin == ORIGIN_KERNEL &&
        (tag.size == 0 || tag.data[tag.size - 1] != ':' || !text_begins(rest, tag)))
        return;
    frame->message = first;
    reader->more = rest;
    reader->more_count = 0;
    reader->more_frame = *frame;
}

// The parts of what overwrites itself become frames, one by one.
static void begin_written(struct frame_reader *reader, struct peel *peel) {
    struct slice rest = peel->text;
    bool says;
    struct slice first = take_written(&rest, forms_of(&reader->place), &says);
    if (rest.size > 0) {
        reader->overwrite = true;
        reader->more = rest;
        reader->more_peel = *peel;
        reader->more_frame = *peel->frame;
    }
    peel->text = first;
}

static enum frame_step peel_all(struct frame_reader *reader, struct peel *peel, struct arena *arena,
                                struct decode_fault *fault) {
    int objects = 0;
    for (int i = 0; i < PEELS_MAX; i++) {
        bool took = peel_one(reader, peel);
        if (peel->is_xml)
            peel->text = strip_xml(peel->text, arena);
        peel->is_xml = false;
        if (!took && objects++ < OBJECTS_MAX) {
            enum frame_step json = peel_json(reader, peel, arena, fault);
            if (json == FRAME_NOTHING || json == FRAME_REFUSED || json == FRAME_HELD)
                return json;
            took = json == FRAME_LINE;
        }
        if (peel->part != PART_NONE && !peel->joined) {
            peel->joined = true; // what is inside is never joined again
            if (join_parts(reader, peel, arena) == FRAME_HELD)
                return FRAME_HELD;
        }
        if (!took)
            break;
    }
    if (transport_peel_nested(peel))
        peel_one(reader, peel);
    if (peel->text.size > 0 && memchr(peel->text.data, '\r', peel->text.size) != NULL) {
        begin_written(reader, peel);
        peel_one(reader, peel);
    }
    if (reader->form != FORM_KERNEL)
        writer_peel_inside(peel);
    settle(reader, peel);
    reader->has_text = reader->has_text || (objects <= 1 && peel->text.size > 0);
    if (!reader->overwrite)
        part_lines(reader, peel->frame);
    // An empty line of a writer belongs to what it is writing.
    return peel->text.size == 0 && !peel->frame->has_writer ? FRAME_NOTHING : FRAME_LINE;
}

static void begin_frame(const struct frame_reader *reader, struct frame *frame, uint64_t position,
                        uint32_t lines) {
    *frame = reader->place;
    frame->position = position;
    frame->lines = lines;
}

static enum frame_step take_text(struct frame_reader *reader, struct slice line, uint64_t position,
                                 struct arena *arena, struct frame *frame,
                                 struct decode_fault *fault) {
    struct peel peel;
    begin_frame(reader, frame, position, 1);
    frame->truncated = reader->line_cut;
    begin_peel(reader, &peel, frame, clean(line, arena));
    return peel_all(reader, &peel, arena, fault);
}

// -- records of several lines ---------------------------------------------------------------------

static void release_record(struct frame_reader *reader, const struct journal_record *record) {
    assert(reader->ready.what == READY_NOTHING);
    reader->ready.what = READY_RECORD;
    reader->ready.record = *record;
}

static enum frame_step take_record(struct frame_reader *reader, struct arena *arena,
                                   struct frame *frame, struct decode_fault *fault) {
    const struct journal_record *record = &reader->ready.record;
    struct peel peel;
    begin_frame(reader, frame, record->position, record->lines);
    begin_peel(reader, &peel, frame, (struct slice){NULL, 0});
    if (record->message.data == NULL)
        return FRAME_NOTHING;
    frame->raw = record->message;
    set_record(record, &peel, arena);
    return peel_all(reader, &peel, arena, fault);
}

// What is held of /dev/kmsg becomes the next frame.
static void release_kmsg(struct frame_reader *reader, struct arena *arena) {
    struct ready *ready = &reader->ready;
    struct kmsg_head head;
    struct slice raw = arena_copy(arena, bytes_slice(&reader->kmsg));
    struct slice text = raw;
    assert(ready->what == READY_NOTHING && reader->kmsg_lines > 0);
    *ready = (struct ready){.what = READY_TEXT};
    begin_frame(reader, &ready->frame, reader->kmsg_position, reader->kmsg_lines);
    ready->frame.truncated = reader->kmsg_cut;
    reader->kmsg_cut = false;
    ready->frame.raw = raw;
    // The head is taken off again behind the escapes, which it does not hold.
    if (transport_take_kmsg(&text, &head) && text.size > 0 &&
        memmem(text.data, text.size, "\\x", 2) != NULL) {
        struct slice plain = transport_unescape(text, arena);
        size_t head_size = raw.size - text.size;
        char *both = arena_take(arena, head_size + plain.size);
        memcpy(both, raw.data, head_size);
        memcpy(both + head_size, plain.data, plain.size);
        ready->text = (struct slice){both, head_size + plain.size};
    } else {
        ready->text = raw;
    }
    begin_peel(reader, &ready->peel, NULL, ready->text);
    reader->kmsg_lines = 0;
    reader->kmsg.size = 0;
}

// "KEY=" behind a blank, as the kernel names the device of the record before, or as the journal
// exports a field. Neither is a message, whatever it says.
static bool is_field(struct slice line, enum frame_form form) {
    struct slice text = line;
    bool behind_blank = text_skip_char(&text, ' ');
    size_t size = 0;
    while (size < text.size && ((text.data[size] >= 'A' && text.data[size] <= 'Z') ||
                                text_is_digit(text.data[size]) || text.data[size] == '_'))
        size++;
    return size > 0 && size < text.size && text.data[size] == '=' &&
           (behind_blank || form == FORM_KERNEL) && form != FORM_PROGRAM;
}

// A line of /dev/kmsg, or one that ends what is held of it. False: neither.
static bool hold_kmsg(struct frame_reader *reader, struct slice line, uint64_t position,
                      struct arena *arena) {
    struct slice text = line;
    struct kmsg_head head;
    bool record = line.size > 0 && text_is_digit(line.data[0]) && reader->form != FORM_PROGRAM &&
                  transport_take_kmsg(&text, &head);
    if (!record && reader->kmsg_lines == 0)
        return false;
    bool more =
        reader->kmsg_lines > 0 && (record ? head.continues : line.size > 0 && line.data[0] == ' ');
    if (more) {
        reader->kmsg_lines++;
        reader->kmsg_cut = reader->line_cut && record;
        if (record && reader->kmsg.size + text.size <= KMSG_HELD_MAX)
            append(&reader->kmsg, text);
        return true;
    }
    if (reader->kmsg_lines > 0)
        release_kmsg(reader, arena);
    if (record && line.size <= KMSG_HELD_MAX) {
        append(&reader->kmsg, line);
        reader->kmsg_lines = 1;
        reader->kmsg_cut = reader->line_cut;
        reader->kmsg_position = position;
    } else {
        reader->has_after = true;
        reader->after = line;
        reader->after_position = position;
    }
    return true;
}

// Lines of records that stand on several. False: it is none.
static bool hold_record(struct frame_reader *reader, struct slice line, uint64_t position,
                        struct arena *arena) {
    struct journal_record record;
    static const struct journal_export no_export;
    static const struct dmesg_json no_dmesg;
    char first = line.size == 0 ? '\0' : line.data[0];
    if (reader->journal != NULL || first == '_') {
        if (journal_export_owns(reader->journal == NULL ? &no_export : reader->journal, line)) {
            if (reader->journal == NULL)
                reader->journal = memory_zero(1, sizeof *reader->journal);
            if (journal_export_line(reader->journal, line, position, arena, &record))
                release_record(reader, &record);
            reader->journal->cut = reader->journal->cut || reader->line_cut;
            return true;
        }
    }
    if (reader->dmesg == NULL && first != ' ' && first != '\t' && first != '"')
        return false;
    struct dmesg_json probe = no_dmesg;
    bool owned = dmesg_json_owns(reader->dmesg == NULL ? &probe : reader->dmesg, line);
    if (reader->dmesg == NULL && probe.active) {
        reader->dmesg = memory_zero(1, sizeof *reader->dmesg);
        reader->dmesg->active = true;
    }
    if (owned && dmesg_json_line(reader->dmesg, line, position, arena, &record))
        release_record(reader, &record);
    return owned;
}

// -- the interface --------------------------------------------------------------------------------

// The first line tells of an encoding that nobody reads here.
static void begin_source(struct frame_reader *reader, struct slice line) {
    reader->begun = true;
    static const char *const ENCODINGS[] = {
        [UTF16_NOT] = NULL,
        [UTF16_LITTLE] =
            "the log is UTF-16, little-endian: convert it to UTF-8 (`iconv -f UTF-16`)",
        [UTF16_BIG] = "the log is UTF-16, big-endian: convert it to UTF-8 (`iconv -f UTF-16`)",
        [UTF16_BARE] =
            "the log is UTF-16 without a mark: convert it to UTF-8 (`iconv -f UTF-16LE` "
            "or UTF-16BE)",
    };
    reader->encoding = ENCODINGS[utf16_told(line)];
}

static bool is_empty_in_utf16(struct slice line) {
    strip_zeros(&line);
    while (line.size > 0 && (line.data[0] == '\r' || line.data[0] == '\0'))
        text_take(&line, 1);
    return line.size == 0;
}

void frame_cut(struct frame_reader *reader) {
    reader->next_cut = true;
}

void frame_reader_written(struct frame_reader *reader, uint64_t written_ns) {
    assert(written_ns >= reader->clock.observed_ns);
    reader->clock.observed_ns = written_ns;
}

enum frame_step frame_read(struct frame_reader *reader, struct slice line, uint64_t position,
                           struct arena *arena, struct frame *frame, struct decode_fault *fault) {
    reader->line_cut = reader->next_cut;
    reader->next_cut = false;
    reader->ready.what = READY_NOTHING;
    if (reader->listed != NULL)
        reader->listed->active = false;
    reader->more = (struct slice){NULL, 0};
    reader->overwrite = false;
    reader->has_after = false;
    if (!reader->begun)
        begin_source(reader, line);
    if (reader->encoding != NULL) {
        begin_frame(reader, frame, position, 1);
        if (is_empty_in_utf16(line))
            return FRAME_NOTHING;
        fault_set(fault, DECODE_ENCODING, SLICE(""), "%s", reader->encoding);
        return FRAME_REFUSED;
    }
    bool binary = reader->journal != NULL && reader->journal->in_binary;
    while (!binary && line.size > 0 && line.data[line.size - 1] == '\r')
        line.size--;
    if (hold_record(reader, line, position, arena) || hold_kmsg(reader, line, position, arena))
        return FRAME_HELD;
    if (is_field(line, reader->form)) {
        begin_frame(reader, frame, position, 1);
        return FRAME_NOTHING;
    }
    return take_text(reader, line, position, arena, frame, fault);
}

// At the end: what is held, one by one.
static bool release_held(struct frame_reader *reader, struct arena *arena) {
    struct journal_record record;
    if (reader->kmsg_lines > 0) {
        release_kmsg(reader, arena);
        return true;
    }
    if ((reader->journal != NULL && journal_export_end(reader->journal, arena, &record)) ||
        (reader->dmesg != NULL && dmesg_json_end(reader->dmesg, arena, &record))) {
        release_record(reader, &record);
        return true;
    }
    for (int i = 0; i < STREAMS; i++)
        if (reader->parts[i].lines > 0) {
            reader->parts[i].cut = true;
            release_parts(reader, &reader->parts[i], arena);
            return true;
        }
    return false;
}

static enum frame_step take_ready(struct frame_reader *reader, struct arena *arena,
                                  struct frame *frame, struct decode_fault *fault) {
    struct ready *ready = &reader->ready;
    bool is_record = ready->what == READY_RECORD;
    ready->what = READY_NOTHING;
    if (is_record)
        return take_record(reader, arena, frame, fault);
    *frame = ready->frame;
    struct peel peel = ready->peel;
    peel.frame = frame;
    peel.text = clean(ready->text, arena);
    return peel_all(reader, &peel, arena, fault);
}

// The next part of what overwrites itself. What stands in front of it is its own.
static bool take_next_written(struct frame_reader *reader, struct frame *frame) {
    bool says;
    struct slice part = take_written(&reader->more, forms_of(&reader->place), &says);
    if (!says)
        return false;
    struct peel peel = reader->more_peel;
    *frame = reader->more_frame;
    frame->lines = 0;
    peel.frame = frame;
    peel.text = part;
    for (int i = 0; i < PEELS_MAX && peel_one(reader, &peel); i++)
        continue;
    if (reader->form != FORM_KERNEL)
        writer_peel_inside(&peel);
    settle(reader, &peel);
    return true;
}

// The next line of an envelope that has several.
static enum frame_step take_listed(struct frame_reader *reader, struct arena *arena,
                                   struct frame *frame, struct decode_fault *fault) {
    struct listed *listed = reader->listed;
    struct peel peel = listed->peel;
    *frame = listed->frame;
    peel.frame = frame;
    if (listed->given)
        frame->lines = 0;
    listed->active = envelope_next(&listed->envelope);
    if (!listed->active)
        return listed->given ? FRAME_END : FRAME_NOTHING;
    listed->given = true;
    if (!carrier_set(&peel, &listed->envelope, arena))
        return FRAME_NOTHING;
    peel.text = clean(peel.text, arena);
    frame->raw = peel.text;
    return peel_all(reader, &peel, arena, fault);
}

// The next of the lines of a record; the last one that is a frame of its own has all that follow.
static bool take_more(struct frame_reader *reader, struct frame *frame) {
    if (reader->overwrite)
        return take_next_written(reader, frame);
    while (reader->more.size > 0) {
        struct slice line = text_take_line(&reader->more);
        if (line.size > 0 && line.data[line.size - 1] == '\r')
            line.size--;
        if (line.size == 0)
            continue;
        *frame = reader->more_frame;
        frame->message = line;
        frame->lines = 0;
        if (++reader->more_count >= RECORD_LINES_MAX)
            reader->more = (struct slice){NULL, 0};
        return true;
    }
    return false;
}

enum frame_step frame_next(struct frame_reader *reader, struct arena *arena, struct frame *frame,
                           struct decode_fault *fault) {
    if (take_more(reader, frame))
        return FRAME_LINE;
    if (reader->ready.what != READY_NOTHING)
        return take_ready(reader, arena, frame, fault);
    if (reader->listed != NULL && reader->listed->active) {
        enum frame_step step = take_listed(reader, arena, frame, fault);
        if (step != FRAME_END)
            return step;
    }
    if (reader->has_after) {
        reader->has_after = false;
        return take_text(reader, reader->after, reader->after_position, arena, frame, fault);
    }
    if (reader->finishing && release_held(reader, arena))
        return take_ready(reader, arena, frame, fault);
    reader->finishing = false;
    return FRAME_END;
}

bool frame_holds(const struct frame_reader *reader) {
    bool holds = reader->kmsg_lines > 0 ||
                 (reader->journal != NULL && reader->journal->lines > 0) ||
                 (reader->dmesg != NULL && reader->dmesg->lines > 0);
    for (int i = 0; i < STREAMS; i++)
        holds = holds || reader->parts[i].lines > 0;
    return holds;
}

bool frame_is_of_lines(const struct frame_reader *reader) {
    return reader->encoding == NULL && reader->journal == NULL && reader->dmesg == NULL &&
           !frame_holds(reader);
}

bool frame_learns_labels(const struct frame_reader *reader) {
    return reader->labels.again < LABELS_AGAIN;
}

void frame_reader_follow(struct frame_reader *reader, const struct frame_reader *other) {
    for (int i = 0; i < STREAMS; i++) {
        reader->parts[i].lines = 0;
        reader->parts[i].text.size = 0;
        reader->parts[i].cut = false;
    }
    reader->kmsg_lines = 0;
    reader->kmsg.size = 0;
    memory_give(reader->journal);
    memory_give(reader->dmesg);
    reader->journal = NULL;
    reader->dmesg = NULL;
    if (reader->listed != NULL)
        reader->listed->active = false;
    reader->begun = true;
    reader->has_text = other->has_text;
    reader->clock = other->clock;
    reader->labels = other->labels;
    reader->head = other->head;
    reader->prefixes = other->prefixes;
}

void frame_finish(struct frame_reader *reader) {
    reader->finishing = true;
}
