// SPDX-License-Identifier: Apache-2.0
// A table with one place for each remainder of the writer's key, as before.c has it: a writer that
// meets another one's place takes it. A place is allocated when its first line comes, 6 KB.
#include "receivers/decode/log/counters.h"

#include "base/memory.h"
#include "base/text/cut.h"
#include "pipeline/component/decoder.h"

#include <assert.h>

enum {
    PLACES = 64,
    LINES_KEPT = 16, // of a writer that are not read yet: behind a step stand lines of its figures
    TEXT_MAX = 256,  // of a line: its front, and its end behind a tab
    TAIL_MAX = 80,
    WHO_MAX = 320,
    SHORTEST = 4,      // "1/2 ["
    WATCHED_MAX = 256, // lines behind a mark that are read at once
    ENOUGH = 2,        // rises, so that whoever is behind knows it without waiting for the end
};

struct kept_line {
    uint64_t position, time_ns, slack_ns, after_ns;
    uint32_t size;
    char text[TEXT_MAX];
};

struct counter {
    struct frame who; // of its first line; slices point into `names`
    char names[WHO_MAX];
    uint32_t names_used;
    struct kept_line lines[LINES_KEPT];
    uint32_t written, unread; // of `lines`, as a ring
    uint32_t recent;          // the last of them, behind what was passed over
    bool known;               // some progress was read: `newest`, which stands in `line`
    bool moved;               // since it was told
    bool tell;
    bool anew; // it fell since it was told, and is no longer compared with what was before
    uint32_t rises, watched;
    struct progress newest;
    struct kept_line line;
};

struct counters {
    struct counter *places[PLACES];
    uint32_t told; // places before it have told what they were to tell
    bool tells;
};

struct counters *counters_make(void) {
    return memory_zero(1, sizeof(struct counters));
}

void counters_free(struct counters *counters) {
    for (uint32_t i = 0; counters != NULL && i < PLACES; i++)
        memory_give(counters->places[i]);
    memory_give(counters);
}

// -- who ------------------------------------------------------------------------------------------

static struct slice keep_name(struct counter *counter, struct slice name) {
    if (name.data == NULL || name.size > WHO_MAX - counter->names_used)
        return (struct slice){NULL, 0};
    char *to = counter->names + counter->names_used;
    memcpy(to, name.data, name.size);
    counter->names_used += (uint32_t)name.size;
    return (struct slice){to, name.size};
}

static void begin(struct counter *counter, const struct frame *frame) {
    *counter = (struct counter){.who = *frame};
    struct frame *who = &counter->who;
    who->host = keep_name(counter, frame->host);
    who->pod = keep_name(counter, frame->pod);
    who->namespace = keep_name(counter, frame->namespace);
    who->container = keep_name(counter, frame->container);
    who->unit_uid = keep_name(counter, frame->unit_uid);
    who->address = keep_name(counter, frame->address);
    who->program = keep_name(counter, frame->program);
    who->message = who->raw = who->before = (struct slice){NULL, 0};
    who->lines = 0;
    who->truncated = false;
    who->time_fault = DECODE_OK;
    who->time_detail = NULL;
}

static struct counter *counter_of(struct counters *counters, const struct frame *frame) {
    uint64_t key = frame->key;
    struct counter **place = &counters->places[(key ^ key >> 32 ^ key >> 16) % PLACES];
    bool is_new = *place == NULL;
    if (is_new)
        *place = memory_take(sizeof **place);
    if (is_new || (*place)->who.key != key)
        begin(*place, frame);
    return *place;
}

// -- reading --------------------------------------------------------------------------------------

static bool is_whole(const char *epoch) {
    return epoch[0] != '\0' && strchr(epoch, '.') == NULL;
}

// A bare bar that counts to less than the one that is known: of an evaluation in between.
static bool is_in_between(const struct counter *counter, const struct progress *read) {
    return counter->known && read->is_bar && read->epoch[0] == '\0' && read->total >= 0 &&
           counter->newest.total > read->total;
}

// What a line leaves unsaid is known from those before it: Keras names the epoch in a line of its
// own, transformers tells steps by a bar and epochs beside it.
static void complete(const struct progress *known, struct progress *read) {
    if (read->epoch[0] == '\0' && (!read->is_bar || !is_whole(known->epoch) || read->total >= 0)) {
        memcpy(read->epoch, known->epoch, sizeof read->epoch);
        read->of_epoch =
            known->of_epoch || (read->is_bar && read->total >= 0 && is_whole(known->epoch));
    }
    bool same_epoch = strcmp(read->epoch, known->epoch) == 0;
    if (read->step < 0 && (!known->of_epoch || same_epoch)) {
        read->step = known->step;
        read->total = known->total;
        read->of_epoch = known->of_epoch;
        read->is_bar = known->is_bar;
    }
    if (read->total < 0 && read->step >= known->step && !read->of_epoch && !known->of_epoch)
        read->total = known->total;
}

static bool is_same(const struct progress *a, const struct progress *b) {
    return a->step == b->step && strcmp(a->epoch, b->epoch) == 0;
}

static void read_line(struct counter *counter, const struct kept_line *line) {
    struct progress read;
    if (!progress_read((struct slice){line->text, line->size}, &read) ||
        is_in_between(counter, &read))
        return;
    if (counter->known) {
        complete(&counter->newest, &read);
        if (is_same(&counter->newest, &read))
            return;
        counter->anew = counter->anew || progress_is_further(&read, &counter->newest);
        counter->rises += progress_is_further(&counter->newest, &read);
        counter->rises = counter->anew ? 0 : counter->rises;
    }
    counter->known = counter->moved = true;
    counter->newest = read;
    counter->line = *line;
}

static void read_lines(struct counter *counter) {
    for (; counter->unread > 0; counter->unread--)
        read_line(counter, &counter->lines[(counter->written - counter->unread) % LINES_KEPT]);
}

// -- what comes -----------------------------------------------------------------------------------

// The front of a long line, and its end from a blank on: records end with the epoch.
static uint32_t keep_text(char to[TEXT_MAX], struct slice text) {
    if (text.size <= TEXT_MAX) {
        memcpy(to, text.data, text.size);
        return (uint32_t)text.size;
    }
    struct slice tail = text_from(text, text.size - TAIL_MAX);
    tail = text_from(tail, text_until(tail, ' ').size);
    size_t front = TEXT_MAX - TAIL_MAX - 1;
    memcpy(to, text.data, front);
    to[front] = '\t';
    memcpy(to + front + 1, tail.data, tail.size);
    return (uint32_t)(front + 1 + tail.size);
}

void counters_note(struct counters *counters, const struct frame *frame) {
    struct slice text = progress_state(frame->message);
    if (text.size < SHORTEST)
        return;
    struct counter *counter = counter_of(counters, frame);
    struct kept_line *line = &counter->lines[counter->written++ % LINES_KEPT];
    line->position = frame->position;
    line->time_ns = frame->time_ns;
    line->slack_ns = frame->slack_ns;
    line->after_ns = frame->after_ns;
    line->size = keep_text(line->text, text);
    counter->unread += counter->unread < LINES_KEPT;
    counter->recent += counter->recent < LINES_KEPT;
    if (counter->watched == 0)
        return;
    counter->watched--;
    read_lines(counter);
    if (counter->rises < ENOUGH)
        return;
    counter->watched = 0;
    counter->tell = counters->tells = true;
    counters->told = 0;
}

static void tell_all(struct counters *counters, uint32_t watched) {
    for (uint32_t i = 0; i < PLACES; i++) {
        struct counter *counter = counters->places[i];
        if (counter == NULL)
            continue;
        read_lines(counter);
        counter->watched = watched;
        counter->tell = counter->moved;
        counters->tells = counters->tells || counter->tell;
    }
    counters->told = 0;
}

void counters_mark(struct counters *counters) {
    tell_all(counters, WATCHED_MAX);
}

void counters_finish(struct counters *counters) {
    tell_all(counters, 0);
}

bool counters_hold(const struct counters *counters) {
    for (uint32_t i = 0; counters != NULL && i < PLACES; i++)
        if (counters->places[i] != NULL &&
            (counters->places[i]->unread > 0 || counters->places[i]->moved))
            return true;
    return false;
}

// -- what was written last ------------------------------------------------------------------------

// The line so many before the newest.
static const struct kept_line *line_back(const struct counter *counter, uint32_t back) {
    return &counter->lines[(counter->written - 1 - back) % LINES_KEPT];
}

static struct slice text_of(const struct kept_line *line) {
    return (struct slice){line->text, line->size};
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool has_letter(struct slice text) {
    for (size_t i = 0; i < text.size; i++)
        if (is_letter(text.data[i]))
            return true;
    return false;
}

// No "local rank 3", "local_rank 3".
static bool is_of_word(struct slice before) {
    static const struct slice local = {"local ", 6};
    char last = before.size == 0 ? ' ' : before.data[before.size - 1];
    return is_letter(last) || last == '_' ||
           (before.size >= local.size &&
            text_begins(text_from(before, before.size - local.size), local));
}

static bool names_rank(struct slice text, int32_t rank) {
    struct slice rest = text;
    while (text_find(rest, SLICE("rank "), &rest)) {
        struct slice before = {text.data, (size_t)(rest.data - text.data) - 5}, behind = rest;
        uint64_t number;
        if (!is_of_word(before) && text_take_number(&behind, 1, 9, &number) &&
            number == (uint64_t)rank)
            return true;
    }
    return false;
}

static size_t count_digits(struct slice text) {
    size_t size = 0;
    while (size < text.size && text_is_digit(text.data[size]))
        size++;
    return size;
}

// Whether two are the same but for their numbers: then each rank writes such a line.
static bool is_same_form(struct slice a, struct slice b) {
    while (a.size > 0 && b.size > 0) {
        size_t digits_a = count_digits(a), digits_b = count_digits(b);
        if ((digits_a > 0) != (digits_b > 0) || (digits_a == 0 && a.data[0] != b.data[0]))
            return false;
        a = text_from(a, digits_a > 0 ? digits_a : 1);
        b = text_from(b, digits_b > 0 ? digits_b : 1);
    }
    return a.size == b.size;
}

static bool is_one_of_many(const struct counter *counter, uint32_t at) {
    for (uint32_t i = 0; i < counter->recent; i++)
        if (i != at &&
            is_same_form(text_of(line_back(counter, at)), text_of(line_back(counter, i))))
            return true;
    return false;
}

// Of a writer whom nobody names `is_own` is false: only lines that name the rank are its own.
static struct slice last_of(const struct counter *counter, bool is_own, int32_t rank,
                            uint64_t position) {
    struct progress progress;
    for (uint32_t i = 0; i < counter->recent; i++) {
        const struct kept_line *line = line_back(counter, i);
        struct slice text = text_of(line);
        if (line->position >= position)
            continue;
        if (progress_read(text, &progress))
            break;
        if (has_letter(text) && (is_own || (names_rank(text, rank) && !is_one_of_many(counter, i))))
            return text;
    }
    return (struct slice){NULL, 0};
}

struct slice counters_last(const struct counters *counters, int32_t rank, uint64_t position) {
    struct slice nameless = {NULL, 0};
    for (uint32_t i = 0; counters != NULL && i < PLACES; i++) {
        const struct counter *counter = counters->places[i];
        if (counter == NULL)
            continue;
        const struct frame *who = &counter->who;
        if (who->rank == rank || (who->rank == RANK_NONE && who->task == rank))
            return last_of(counter, true, rank, position);
        if (!who->has_writer && who->rank == RANK_NONE && nameless.data == NULL)
            nameless = last_of(counter, false, rank, position);
    }
    return nameless;
}

void counters_forget(struct counters *counters) {
    for (uint32_t i = 0; counters != NULL && i < PLACES; i++)
        if (counters->places[i] != NULL)
            counters->places[i]->recent = 0;
}

// -- what is told ---------------------------------------------------------------------------------

static uint32_t rises_of(const struct counter *counter) {
    const struct progress *newest = &counter->newest;
    bool may_be_last = newest->is_bar && (newest->total < 0 || newest->step != newest->total);
    return counter->rises - (counter->rises > 0 && may_be_last);
}

bool counters_take(struct counters *counters, struct counted *counted) {
    for (; counters != NULL && counters->tells && counters->told < PLACES; counters->told++) {
        struct counter *counter = counters->places[counters->told];
        if (counter == NULL || !counter->tell)
            continue;
        const struct kept_line *line = &counter->line;
        *counted = (struct counted){.frame = counter->who,
                                    .text = {line->text, line->size},
                                    .progress = counter->newest,
                                    .rises = rises_of(counter),
                                    .anew = counter->anew};
        counted->frame.position = line->position;
        counted->frame.time_ns = line->time_ns;
        counted->frame.slack_ns = line->slack_ns;
        counted->frame.after_ns = line->after_ns;
        counter->tell = counter->moved = counter->anew = false;
        counter->rises = 0;
        return true;
    }
    if (counters != NULL)
        counters->tells = false;
    return false;
}
