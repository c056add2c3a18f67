// SPDX-License-Identifier: Apache-2.0
// Reports what became of the input.
//
// A person who asked for an answer must see on which part of the files it rests. The first few
// refusals are named one by one; the rest is counted.
#include "cli/closing_words.h"

#include "base/memory.h"
#include "base/text/display.h"
#include "cli/figures.h"
#include "pipeline/component/decoder.h"
#include "pipeline/model/observation.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

enum { REFUSALS_SHOWN = 10, NOTES_SHOWN = 20, PATHS_SHOWN = 3, PATH_SHOWN_MAX = 300 };

static void append_path(struct buffer *out, struct slice path) {
    if (slice_equal(path, SLICE("-")))
        buffer_append_text(out, "(standard input)");
    else
        display_append(out, path, PATH_SHOWN_MAX);
}

static void append_more(struct buffer *out, uint64_t count) {
    if (count > 0)
        buffer_append_format(out, "  … and %" PRIu64 " more\n", count);
}

// What was left out as a whole does not count as read; the notes say why it was.
static void append_read(struct buffer *out, const struct report *report) {
    uint64_t unread = 0, unread_bytes = 0;
    for (uint32_t i = 0; i < report->source_count; i++) {
        if (!report->sources[i].figures.unread)
            continue;
        unread++;
        unread_bytes += report->sources[i].figures.bytes;
    }
    buffer_append_text(out, "read ");
    figures_append_count(out, report->source_count - unread, "file");
    buffer_append_text(out, ", ");
    figures_append_count(out, report->accepted, "event");
    buffer_append_text(out, ", ");
    figures_append_bytes(out, report->bytes - unread_bytes);
    if (unread > 0) {
        buffer_append_text(out, "; left out ");
        figures_append_count(out, unread, "file");
    }
    buffer_append_char(out, '\n');
}

static void append_refusal(struct buffer *out, const struct report_refusal *refusal) {
    assert(refusal->fault.category < DECODE_CATEGORY_COUNT);
    buffer_append_text(out, "  ");
    append_path(out, refusal->path);
    buffer_append_format(out, ":%" PRIu64 ": ", refusal->position);
    if (refusal->fault.field[0] != '\0') {
        display_append(out, slice_of(refusal->fault.field), 120);
        buffer_append_text(out, ": ");
    }
    const char *reason = refusal->fault.detail[0] != '\0'
                             ? refusal->fault.detail
                             : decode_category_name(refusal->fault.category);
    display_append(out, slice_of(reason), 0);
    buffer_append_char(out, '\n');
}

// "refused 3 records: wrong_type 2, bad_json 1", the most frequent reason first.
static void append_refused(struct buffer *out, const struct report *report) {
    buffer_append_text(out, "refused ");
    figures_append_count(out, report->refused, "record");
    bool said[DECODE_CATEGORY_COUNT] = {false};
    for (const char *before = ": ";; before = ", ") {
        int most = -1;
        for (int i = 0; i < DECODE_CATEGORY_COUNT; i++)
            if (!said[i] && report->refused_by[i] > 0 &&
                (most < 0 || report->refused_by[i] > report->refused_by[most]))
                most = i;
        if (most < 0)
            break;
        said[most] = true;
        buffer_append_format(out, "%s%s %" PRIu64, before,
                             decode_category_name((enum decode_category)most),
                             report->refused_by[most]);
    }
    buffer_append_char(out, '\n');
    uint32_t shown =
        report->refusal_count < REFUSALS_SHOWN ? report->refusal_count : REFUSALS_SHOWN;
    for (uint32_t i = 0; i < shown; i++)
        append_refusal(out, &report->refusals[i]);
    append_more(out, report->refused - shown);
}

// Counts of each kind over all sources, of those that some or no processor looks at.
static void count_kinds(const struct report *report, bool taken, uint64_t counts[]) {
    memset(counts, 0, EVENT_CLASS_COUNT * sizeof *counts);
    for (uint32_t i = 0; i < report->source_count; i++) {
        const struct report_source *source = &report->sources[i];
        for (uint32_t class = 0; source->figures.by_class != NULL && class < EVENT_CLASS_COUNT;
             class ++)
            if ((source->taken == NULL || source->taken[class]) == taken)
                counts[class] += source->figures.by_class[class];
    }
}

// "xid 3, telemetry 1,200", the most frequent first; false when there is none.
static bool append_counts(struct buffer *out, const char *before, uint64_t counts[]) {
    bool any = false;
    for (;; any = true) {
        uint32_t most = 0;
        for (uint32_t class = 1; class < EVENT_CLASS_COUNT; class ++)
            if (counts[class] > counts[most])
                most = class;
        if (counts[most] == 0)
            return any;
        buffer_append_text(out, any ? ", " : before);
        buffer_append_text(out, event_class_name(most));
        buffer_append_char(out, ' ');
        buffer_append_format(out, "%" PRIu64, counts[most]);
        counts[most] = 0;
    }
}

static bool is_nothing(const struct report_source *source) {
    return source->figures.accepted == 0 && source->figures.refused == 0 &&
           source->figures.other > 0 && source->figures.format != NULL &&
           strcmp(source->figures.format, "log") == 0;
}

// What was read and looked at by nobody, and what was of no interest.
static void append_left(struct buffer *out, const struct report *report) {
    uint64_t counts[EVENT_CLASS_COUNT], other = 0, said_below = 0;
    count_kinds(report, false, counts);
    if (append_counts(out, "read, and no processor of the pipeline looks at them: ", counts))
        buffer_append_char(out, '\n');
    for (uint32_t i = 0; i < report->source_count; i++) {
        other += report->sources[i].figures.other;
        said_below += is_nothing(&report->sources[i]) ? report->sources[i].figures.other : 0;
    }
    if (other == said_below)
        return;
    figures_append_count(out, other, "line");
    buffer_append_text(out, other == 1 ? " is of no interest\n" : " are of no interest\n");
}

// Paths with commas between them, until there are enough. `count`: how many there were.
static void append_listed(struct buffer *out, struct slice path, uint32_t count) {
    if (count > PATHS_SHOWN)
        return;
    buffer_append_text(out, count == 0 ? "" : ", ");
    if (count == PATHS_SHOWN)
        buffer_append_text(out, "…");
    else
        append_path(out, path);
}

// Files that were taken for logs, since they look like nothing else: said once for all of them.
static void append_nothing(struct buffer *out, const struct report *report) {
    struct buffer paths;
    buffer_init(&paths, (PATHS_SHOWN + 1) * 4 * PATH_SHOWN_MAX);
    uint32_t count = 0;
    uint64_t lines = 0;
    for (uint32_t i = 0; i < report->source_count; i++) {
        const struct report_source *source = &report->sources[i];
        if (!is_nothing(source))
            continue;
        append_listed(&paths, source->path, count++);
        lines += source->figures.other;
    }
    if (count > 1)
        buffer_append_format(out, "%" PRIu32 " files (", count);
    buffer_append(out, buffer_slice(&paths));
    buffer_release(&paths);
    if (count > 1)
        buffer_append_format(out,
                             ") read as logs, and none of their %" PRIu64
                             " lines is of interest; "
                             "if they are something else, name that with --format\n",
                             lines);
    else if (lines > 1)
        buffer_append_format(out,
                             ": read as a log, and none of its %" PRIu64
                             " lines is of interest; if "
                             "it is something else, name that with --format\n",
                             lines);
    else if (lines == 1)
        buffer_append_text(out,
                           ": read as a log, and its only line is of no interest; if it is "
                           "something else, name that with --format\n");
}

// Where ": not read: WHY" begins; NULL: the note says something else.
static const char *note_reason(const char *note) {
    return strstr(note, ": not read: ");
}

static bool same_reason(const char *note, const char *reason) {
    const char *own = note_reason(note);
    return own != NULL && strcmp(own, reason) == 0;
}

// A note together with those behind it that give the same reason; how many that are. 0: it was said
// with one before it.
static uint32_t append_note(struct buffer *out, const struct report *report, uint32_t first) {
    const char *reason = note_reason(report->notes[first]);
    uint32_t count = 0;
    for (uint32_t i = 0; reason != NULL && i < first; i++)
        if (same_reason(report->notes[i], reason))
            return 0;
    for (uint32_t i = first; reason != NULL && i < report->note_count; i++) {
        const char *note = report->notes[i];
        if (same_reason(note, reason))
            append_listed(out, (struct slice){note, (size_t)(note_reason(note) - note)}, count++);
    }
    if (count > PATHS_SHOWN)
        buffer_append_format(out, " (%" PRIu32 " files)", count);
    display_append(out, slice_of(reason == NULL ? report->notes[first] : reason), 0);
    buffer_append_char(out, '\n');
    return reason == NULL ? 1 : count;
}

static void append_notes(struct buffer *out, const struct report *report) {
    uint64_t said = 0;
    uint32_t lines = 0;
    for (uint32_t i = 0; i < report->note_count && lines < NOTES_SHOWN; i++) {
        uint32_t count = append_note(out, report, i);
        said += count;
        lines += count > 0;
    }
    append_more(out, report->note_count - said + report->notes_dropped);
}

void closing_words_append(struct buffer *out, const struct report *report) {
    assert(out != NULL && report->refusal_count <= report->refused);
    append_read(out, report);
    if (report->refused > 0)
        append_refused(out, report);
    append_left(out, report);
    append_nothing(out, report);
    append_notes(out, report);
}

static bool is_denied(struct slice path) {
    char *text = memory_copy_text(path.data, path.size);
    bool denied = access(text, R_OK) != 0 && errno == EACCES;
    memory_give(text);
    return denied;
}

// Text that could be read and says nothing. Where most was refused, the rest is no log.
static bool is_quiet(const struct source_figures *figures) {
    return !figures->unread && figures->other > figures->refused;
}

// What was read of what was there.
static int read_exit_code(const struct report *report, bool any_denied) {
    bool all_unread = true, unread_bytes = false, any_quiet = false;
    for (uint32_t i = 0; i < report->source_count; i++) {
        const struct source_figures *figures = &report->sources[i].figures;
        all_unread &= figures->unread;
        unread_bytes |= figures->unread && figures->bytes > 0;
        any_quiet |= is_quiet(figures);
    }
    if (report->accepted > 0 || any_quiet)
        return 0;
    if (report->refused > 0 || unread_bytes)
        return status_exit_code(STATUS_BAD_DATA);
    if (all_unread)
        return status_exit_code(any_denied ? STATUS_DENIED : STATUS_NOT_FOUND);
    return 0;
}

int closing_exit_code(const struct report *report, bool ignore_missing) {
    assert(report->source_count == 0 || report->sources != NULL);
    bool any_denied = false;
    for (uint32_t i = 0; i < report->source_count; i++) {
        const struct report_source *source = &report->sources[i];
        any_denied |=
            source->figures.unread && source->figures.bytes == 0 && is_denied(source->path);
    }
    int code = read_exit_code(report, any_denied);
    if (code != 0 || ignore_missing)
        return code;
    if (report->missing_count > 0)
        return status_exit_code(STATUS_NOT_FOUND);
    return any_denied ? status_exit_code(STATUS_DENIED) : 0;
}
