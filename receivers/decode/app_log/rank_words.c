// SPDX-License-Identifier: Apache-2.0
// Linear in the text; what stands in front of a phrase is looked at only as far as a prefix
// reaches.
#include "receivers/decode/app_log/rank_words.h"

#include "base/text/cut.h"
#include "pipeline/model/event.h"
#include "receivers/decode/forms/rows.h"
#include "receivers/decode/line/reading.h"

#include <assert.h>

enum { PEER_MAX = 256, RANK_DIGITS_MAX = 9 };

// The front of the text up to the first `wanted`; all of it when there is none.
static struct slice until_word(struct slice text, struct slice wanted) {
    struct slice behind = {0};
    if (!text_find(text, wanted, &behind))
        return text;
    return (struct slice){text.data, text.size - behind.size - wanted.size};
}

// "[rank3]" at the front: its number and what follows.
static bool take_rank(struct slice *text, int32_t *rank) {
    struct slice rest = *text;
    uint64_t number;
    if (!text_skip(&rest, SLICE("[rank")) ||
        !text_take_number(&rest, 1, RANK_DIGITS_MAX, &number) || !text_skip_char(&rest, ']') ||
        number > RANK_MAX)
        return false;
    *rank = (int32_t)number;
    *text = rest;
    return true;
}

// Where the next "[rank3]" begins; the text's size: there is none.
static size_t next_rank(struct slice text) {
    struct slice rest = text;
    while (rest.size > 0) {
        rest = text_from(rest, until_word(rest, SLICE("[rank")).size);
        struct slice behind = rest;
        int32_t rank;
        if (rest.size > 0 && take_rank(&behind, &rank))
            return text.size - rest.size;
        if (rest.size > 0)
            rest = text_from(rest, 1);
    }
    return text.size;
}

bool said_close(struct said *said, struct slice closing, struct slice *rest) {
    struct slice tail = said->tail;
    size_t size = next_rank(tail);
    struct slice behind = {0};
    bool closed = closing.size > 0 && text_find((struct slice){tail.data, size}, closing, &behind);
    struct slice left = text_from(tail, size);
    if (closed) {
        text_skip_char(&behind, '.');
        size_t end = size - behind.size;
        struct slice next = text_from(tail, end);
        text_skip_blanks(&next);
        if (text_begins(next, SLICE("[")) && size > end) {
            size = end;
            left = next;
        }
    }
    *rest = left;
    said->tail.size = size;
    assert(tail.size - size <= said->message.size);
    said->message.size -= tail.size - size;
    return closed;
}

int32_t words_rank(struct slice text) {
    int32_t found = RANK_NONE;
    for (size_t at = next_rank(text); at < text.size; at = next_rank(text)) {
        text = text_from(text, at);
        bool taken = take_rank(&text, &found);
        assert(taken);
        (void)taken;
    }
    return found;
}

void words_skip_rank(struct slice *text) {
    struct slice rest = *text;
    int32_t rank;
    if (!take_rank(&rest, &rank))
        return;
    text_skip_char(&rest, ':');
    text_skip_char(&rest, ' ');
    *text = rest;
}

// What follows the last `wanted` in the text.
static bool find_last(struct slice text, struct slice wanted, struct slice *behind) {
    bool found = false;
    while (text_find(text, wanted, &text)) {
        *behind = text;
        found = true;
    }
    return found;
}

static bool is_default(const struct words_group *group) {
    if (group->name.data == NULL)
        return true;
    return group->desc.data != NULL ? slice_equal(group->desc, SLICE("default_pg"))
                                    : slice_equal(group->name, SLICE("0"));
}

static int32_t group_rank(struct slice text, struct slice phrase) {
    int64_t rank = words_number(text, phrase);
    return rank > RANK_MAX ? -1 : (int32_t)rank;
}

struct words_group words_group(struct slice text) {
    struct words_group group = {.rank = -1};
    struct slice bracket, name, desc;
    if (find_last(text, SLICE("[PG "), &bracket)) {
        // Up to behind the bracket, so that the rank in front of it is seen to be whole.
        struct slice inside = text_until(bracket, ']');
        group.rank =
            group_rank((struct slice){bracket.data, inside.size + (inside.size < bracket.size)},
                       SLICE("Rank "));
        if (!text_find(inside, SLICE("PG GUID "), &name))
            name = inside;
        group.name = text_until_any(name, " (");
        if (text_find(name, SLICE("("), &desc))
            group.desc = text_until(desc, ')');
    } else if (find_last(text, SLICE("[Rank "), &bracket)) {
        struct slice number = {bracket.data - 1, bracket.size + 1};
        group.rank = group_rank(number, SLICE(" "));
    }
    group.is_whole_job = is_default(&group);
    return group;
}

void said_writer(const struct said *said, struct reading *reading) {
    struct words_group group = words_group(said->head);
    reading->rank = words_rank(said->head);
    if (group.rank >= 0)
        reading_number(reading, FACT_GROUP_RANK, group.rank);
    if (group.name.data != NULL)
        reading_text(reading, FACT_GROUP, group.name);
    if (group.desc.data != NULL)
        reading_text(reading, FACT_GROUP_DESC, group.desc);
    if (reading->rank == RANK_NONE && said->frame->rank == RANK_NONE && group.is_whole_job)
        reading->rank = group.rank >= 0 ? group.rank : RANK_NONE;
}

bool words_take_signed(struct slice *text, int64_t *number) {
    struct slice rest = *text;
    bool negative = text_skip_char(&rest, '-');
    int64_t value = 0;
    size_t digits = 0;
    for (; rest.size > 0 && text_is_digit(rest.data[0]); rest = text_from(rest, 1), digits++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, rest.data[0] - '0', &value))
            value = INT64_MAX;
    if (digits == 0)
        return false;
    *number = negative ? -value : value;
    *text = rest;
    return true;
}

int64_t words_number(struct slice text, struct slice phrase) {
    struct slice rest;
    int64_t number;
    if (!text_find(text, phrase, &rest) || !words_take_signed(&rest, &number) || number < 0 ||
        number == INT64_MAX || rest.size == 0)
        return -1;
    return number;
}

static bool is_peer_char(char c) {
    return text_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '_' || c == ':' || c == '%';
}

struct slice words_peer(struct slice text) {
    static const struct slice none = {NULL, 0};
    bool bracket = text_skip_char(&text, '[');
    struct slice peer = {text.data, 0};
    while (peer.size < text.size && peer.size < PEER_MAX && is_peer_char(text.data[peer.size]))
        peer.size++;
    // Without the byte behind it nobody knows whether it is whole.
    if (peer.size == 0 || peer.size == text.size)
        return none;
    char behind = text.data[peer.size];
    if (bracket && behind != ']')
        return none;
    if (behind == ' ' && peer.data[peer.size - 1] == ':')
        peer.size--;
    // A port behind the address of a peer without brackets.
    const char *port =
        bracket || behind == '<' || peer.size == 0 ? NULL : memrchr(peer.data, ':', peer.size);
    if (port != NULL && memchr(peer.data, ':', peer.size) == port)
        peer.size = (size_t)(port - peer.data);
    if (peer.size > 7 && text_begins(peer, SLICE("::ffff:")) && memchr(peer.data, '.', peer.size))
        peer = text_from(peer, 7);
    return text_until(peer, '%');
}

void words_mean(const struct form *meaning, struct reading *reading) {
    int victim = meaning == NULL ? -1 : meaning_victim(meaning);
    if (victim >= 0)
        reading_yes_no(reading, FACT_VICTIM, victim == 1);
    if (meaning != NULL && meaning->cause.data != NULL)
        reading_text(reading, FACT_CAUSE, meaning->cause);
}

void words_blame(const struct forms *forms, struct slice text, struct reading *reading) {
    struct uttered uttered = {.message = text, .scope = MEANING_ABORT};
    words_mean(forms_meaning(forms, &uttered), reading);
}

bool words_any(struct slice text, const struct slice *words, size_t count) {
    struct slice behind;
    for (size_t i = 0; i < count; i++)
        if (text_find(text, words[i], &behind))
            return true;
    return false;
}
