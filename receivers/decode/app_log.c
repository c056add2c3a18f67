// SPDX-License-Identifier: Apache-2.0
// Does this line say that a collective operation timed out?
//
// Two phrases are looked for in the line; what stands around them is read field by field, and a
// field that is not there stays "not said". Takes one struct app_line from the arena.
#include "receivers/decode/app_log.h"

#include "base/text/rfc3339.h"
#include "pipeline/model/node_event.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/tagged_keys.h"
#include "receivers/decode/json/text.h"

#include <stdio.h>

enum { TIME_PREFIX_MAX = 40 };
static const uint64_t DAY_NS = UINT64_C(86400) * 1000000000;

struct app_log_state {
    uint64_t observed_ns;
};

// What follows `phrase` in the text; data NULL: it is not there.
static struct slice after(struct slice text, struct slice phrase) {
    const char *at =
        text.size < phrase.size ? NULL : memmem(text.data, text.size, phrase.data, phrase.size);
    if (at == NULL)
        return (struct slice){NULL, 0};
    at += phrase.size;
    return (struct slice){at, (size_t)(text.data + text.size - at)};
}

// The whole number at the front, with its sign; false when there is none that fits.
static bool read_number(struct slice text, int64_t *number) {
    size_t at = text.size > 0 && text.data[0] == '-' ? 1 : 0;
    size_t first = at;
    int64_t value = 0;
    for (; at < text.size && text.data[at] >= '0' && text.data[at] <= '9'; at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, text.data[at] - '0', &value))
            return false;
    *number = first == 1 ? -value : value;
    return at > first;
}

static int64_t number_after(struct slice text, struct slice phrase) {
    int64_t number;
    struct slice rest = after(text, phrase);
    return rest.data != NULL && read_number(rest, &number) && number >= 0 ? number : -1;
}

static int32_t rank_after(struct slice text, struct slice phrase) {
    int64_t rank = number_after(text, phrase);
    return rank < 0 || rank > RANK_MAX ? RANK_NONE : (int32_t)rank;
}

// Up to the first of `stops`.
static struct slice until(struct slice text, const char *stops) {
    size_t size = 0;
    while (size < text.size && strchr(stops, text.data[size]) == NULL)
        size++;
    return (struct slice){text.data, size};
}

// "[PG ID 0 PG GUID 0(default_pg) Rank 3]", "[PG 0 (default_pg) Rank 1]", "[Rank 3]".
static void read_group(struct slice text, struct app_line *out) {
    struct slice rest = after(text, SLICE("[PG "));
    struct slice bracket = rest.data == NULL ? rest : until(rest, "]");
    if (bracket.data == NULL) {
        out->group_rank = rank_after(text, SLICE("[Rank "));
        return;
    }
    struct slice name = after(bracket, SLICE("PG GUID "));
    if (name.data == NULL)
        name = bracket;
    struct slice desc = after(name, SLICE("("));
    out->group = until(name, " (");
    out->group_desc = desc.data == NULL ? desc : until(desc, ")");
    out->group_rank = rank_after(bracket, SLICE("Rank "));
}

static bool is_whole_job(const struct app_line *line) {
    bool described = line->group_desc.data != NULL;
    if (line->group.data == NULL)
        return true;
    return described ? slice_equal(line->group_desc, SLICE("default_pg"))
                     : slice_equal(line->group, SLICE("0"));
}

// "WorkNCCL(SeqNum=…, OpType=…, …) ran for … milliseconds before timing out."
static void read_work(struct slice work, struct app_line *out) {
    struct slice operation = after(work, SLICE("OpType="));
    out->collective_seq_id = number_after(work, SLICE("SeqNum="));
    if (operation.data != NULL)
        out->operation = until(operation, ",) ");
    out->input_elements = number_after(work, SLICE("NumelIn="));
    out->output_elements = number_after(work, SLICE("NumelOut="));
    out->timeout_ms = number_after(work, SLICE("Timeout(ms)="));
    out->ran_ms = number_after(work, SLICE("ran for "));
}

static void read_progress(struct slice text, struct app_line *out) {
    struct slice enqueued = after(text, SLICE("ast enqueued NCCL work: "));
    struct slice completed = after(text, SLICE("last completed NCCL work: "));
    out->has_progress = enqueued.data != NULL && completed.data != NULL &&
                        read_number(enqueued, &out->last_enqueued) &&
                        read_number(completed, &out->last_completed);
    if (!out->has_progress)
        out->last_enqueued = out->last_completed = -1;
}

// False: a line that nobody looks for.
static bool read_text(struct slice text, struct app_line *out) {
    *out = (struct app_line){.rank = RANK_NONE,
                             .group_rank = -1,
                             .text = text,
                             .collective_seq_id = -1,
                             .input_elements = -1,
                             .output_elements = -1,
                             .timeout_ms = -1,
                             .ran_ms = -1,
                             .last_enqueued = -1,
                             .last_completed = -1};
    struct slice work = after(text, SLICE("Watchdog caught collective operation timeout"));
    read_progress(text, out);
    if (work.data != NULL) {
        out->kind = APP_TIMEOUT;
        read_work(work, out);
    } else if (out->has_progress) {
        out->kind = APP_PROGRESS;
        out->collective_seq_id = number_after(text, SLICE("at NCCL work: "));
        if (out->collective_seq_id < 0)
            out->collective_seq_id = number_after(text, SLICE("watchdog at work: "));
    } else {
        return false;
    }
    read_group(text, out);
    out->rank = rank_after(text, SLICE("[rank"));
    if (out->rank == RANK_NONE && is_whole_job(out))
        out->rank = out->group_rank;
    return true;
}

static void finish(struct app_line *line, struct event *event) {
    event->kind = EVENT_APP_LINE;
    event->rank = line->rank;
    event->line = line;
}

enum decode_category app_log_tagged(void *state, struct slice object, struct arena *arena,
                                    struct event *event, struct decode_fault *fault) {
    struct tagged_keys keys;
    struct slice key, message = {NULL, 0};
    struct token value, wrong = {.kind = TOKEN_NONE};
    (void)state;
    tagged_keys_begin(&keys, object, arena);
    while (tagged_keys_next(&keys, &key, &value)) {
        if (!slice_equal(key, SLICE("message")))
            continue;
        wrong = value;
        message = (struct slice){NULL, 0};
        if (value.kind == TOKEN_STRING)
            message = token_decode(&value, arena);
    }
    bool readable = keys.at != NULL && keys.category == DECODE_OK;
    if (readable && wrong.kind == TOKEN_NONE)
        return fault_set(fault, DECODE_MISSING_FIELD, SLICE("message"),
                         "not there; it holds the line that the process wrote");
    if (readable && wrong.kind != TOKEN_STRING)
        return fault_type(fault, SLICE("message"), &wrong, "a text");
    enum decode_category category = tagged_keys_end(&keys, event, fault);
    if (category != DECODE_OK)
        return category;
    struct app_line *line = arena_take(arena, sizeof *line);
    if (!read_text(message, line))
        return DECODE_NOTHING;
    if (keys.rank != RANK_NONE)
        line->rank = keys.rank;
    line->pod = keys.pod;
    line->namespace = keys.namespace;
    finish(line, event);
    return DECODE_OK;
}

// "2026-01-31T09:15:04.123Z …" or the same in brackets.
static uint64_t time_in_front(struct slice text) {
    uint64_t time_ns;
    if (text.size > 0 && text.data[0] == '[')
        text = (struct slice){text.data + 1, text.size - 1};
    struct slice word = until(text, " ]\t");
    if (word.size > TIME_PREFIX_MAX || rfc3339_parse(word, &time_ns, NULL) != RFC3339_OK)
        return 0;
    return time_ns;
}

// "[E810 03:04:11.06 File.cpp:683]": month, day, time of day; of the year that puts it at most a
// day after the input.
static uint64_t time_of_prefix(struct slice text, uint64_t observed_ns) {
    static const char levels[] = "EWIF";
    for (size_t i = 0; observed_ns != 0 && levels[i] != '\0'; i++) {
        char start[] = {'[', levels[i], '\0'};
        struct slice rest = after(text, slice_of(start));
        int64_t date;
        if (rest.data == NULL || !read_number(rest, &date) || date < 101 || date > 1231)
            continue;
        struct slice clock = until(after(rest, SLICE(" ")), " ");
        char now[RFC3339_TEXT_MAX];
        rfc3339_format_second(observed_ns, now);
        for (int back = 0; back < 2; back++) {
            char written[64];
            int64_t year = (now[0] - '0') * 1000 + (now[1] - '0') * 100 + (now[2] - '0') * 10 +
                           (now[3] - '0') - back;
            if (year < 1970 || clock.size > 24)
                return 0;
            int size = snprintf(written, sizeof written, "%04d-%02d-%02dT%.*sZ", (int)year,
                                (int)(date / 100), (int)(date % 100), (int)clock.size, clock.data);
            uint64_t time_ns;
            if (rfc3339_parse((struct slice){written, (size_t)size}, &time_ns, NULL) ==
                    RFC3339_OK &&
                time_ns <= observed_ns + DAY_NS)
                return time_ns < observed_ns ? time_ns : observed_ns;
        }
    }
    return 0;
}

static void begin(void *memory, const struct decoder_input *input) {
    ((struct app_log_state *)memory)->observed_ns = input->observed_ns;
}

static enum decode_category decode(void *memory, struct slice record, struct arena *arena,
                                   struct event *event, struct decode_fault *fault) {
    uint64_t observed_ns = ((const struct app_log_state *)memory)->observed_ns;
    while (record.size > 0 && (record.data[record.size - 1] == '\r'))
        record.size--;
    struct app_line *line = arena_take(arena, sizeof *line);
    event->time_ns = time_in_front(record);
    if (event->time_ns == 0)
        event->time_ns = time_of_prefix(record, observed_ns);
    if (event->time_ns == 0)
        event->time_ns = observed_ns;
    if (!read_text(record, line))
        return DECODE_NOTHING;
    if (event->time_ns == 0)
        return fault_set(fault, DECODE_MISSING_TIMESTAMP, SLICE(""),
                         "the line says no time, and nobody knows when it was written");
    event->job = STRING_NONE;
    event->node = STRING_NONE;
    finish(line, event);
    fault->category = DECODE_OK;
    return DECODE_OK;
}

const struct decoder_type decoder_app_log = {
    .name = "app_log",
    .state_size = sizeof(struct app_log_state),
    .begin = begin,
    .decode = decode,
};
