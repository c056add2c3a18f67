// SPDX-License-Identifier: Apache-2.0
// The shape of a head: its bytes, and any number for a number.
#include "receivers/decode/line/head.h"

#include "base/text/cut.h"
#include "pipeline/model/event.h"

#include <assert.h>
#include <ctype.h>
#include <strings.h>

static const struct slice BEGINNING = {"Traceback (most recent call last):", 34};

// How long the head is with which the line begins a traceback; 0: it does not, or has none. Blanks
// in front are those of a traceback within another text.
static size_t head_of_beginning(struct slice line) {
    while (line.size > 0 && (line.data[line.size - 1] == ' ' || line.data[line.size - 1] == '\r'))
        line.size--;
    if (line.size <= BEGINNING.size || line.size - BEGINNING.size > HEAD_SIZE_MAX ||
        line.data[line.size - 1] != ':' || line.data[0] == ' ' || line.data[0] == '\t')
        return 0;
    size_t size = line.size - BEGINNING.size;
    return memcmp(line.data + size, BEGINNING.data, BEGINNING.size) == 0 ? size : 0;
}

// The same of a place in a traceback whose beginning was cut off: "HEAD  File "a.py", line 3, in
// f".
static size_t head_of_place(struct slice line) {
    static const struct slice place = {"  File \"", 8};
    struct slice behind, rest;
    line = text_until(line, '\n'); // a record may hold several
    if (line.size == 0 || line.data[0] == ' ' || line.data[0] == '\t' ||
        !text_find(line, place, &behind) || !text_find(behind, SLICE("\", line "), &rest))
        return 0;
    size_t size = (size_t)(behind.data - line.data) - place.size;
    return size <= HEAD_SIZE_MAX ? size : 0;
}

// How much of the line has the shape of the head; 0: it begins otherwise.
static size_t same_shape(struct slice head, struct slice line) {
    size_t size;
    return text_begins_like(line, head, &size) ? size : 0;
}

// Whether a byte may stand in a time, with its date.
static bool is_of_time(char c) {
    return text_is_digit(c) || c == ':' || c == '.' || c == ',' || c == '-' || c == '/' || c == 'T';
}

// Two colons, with digits around.
static bool is_time(struct slice word) {
    int colons = 0;
    for (size_t i = 1; i + 1 < word.size; i++)
        colons += word.data[i] == ':' && text_is_digit(word.data[i - 1]) &&
                  text_is_digit(word.data[i + 1]);
    return colons >= 2;
}

// The head without its time names the writer. A date stands in front of the time, a blank between.
static void name_writer(struct peel *peel, struct slice head) {
    uint64_t hash = HASH_START;
    for (size_t at = 0; at < head.size;) {
        size_t end = at;
        while (end < head.size && is_of_time(head.data[end]))
            end++;
        struct slice word = {head.data + at, end - at};
        struct slice next = text_from(head, end < head.size ? end + 1 : end);
        size_t next_size = 0;
        while (next_size < next.size && is_of_time(next.data[next_size]))
            next_size++;
        bool is_date = end < head.size && head.data[end] == ' ' &&
                       is_time((struct slice){next.data, next_size});
        if (word.size == 0)
            hash = hash_more(hash, head.data + at++, 1);
        else if (!is_time(word) && !is_date)
            hash = hash_more(hash, word.data, word.size);
        at += word.size;
    }
    peel_named(peel, (struct slice){(const char *)&hash, sizeof hash}, "head");
}

bool head_rank(struct slice head, uint64_t *rank) {
    struct slice rest = head;
    if (memmem(head.data, head.size, "[PG ", 4) != NULL)
        return false;
    while (rest.size > 4) {
        const char *at = rest.data;
        bool is_word = (at[0] == 'r' || at[0] == 'R') && strncasecmp(at, "rank", 4) == 0 &&
                       (at == head.data || !(isalnum((unsigned char)at[-1]) || at[-1] == '_'));
        rest = text_from(rest, 1);
        struct slice number = text_from(rest, 3);
        if (is_word && number.size > 0 && memchr(" =:", number.data[0], 3) != NULL)
            text_take(&number, 1);
        if (is_word && text_take_number(&number, 1, 6, rank) && *rank <= RANK_MAX)
            return true;
    }
    return false;
}

// The line keeps its head: rows may know what it says.
static size_t learn(struct head_seen *seen, struct slice line, size_t size) {
    struct slice held = {seen->text, seen->size};
    seen->names = seen->is_certain && same_shape(held, line) == size;
    seen->is_certain = seen->names;
    seen->size = (uint32_t)size;
    memcpy(seen->text, line.data, size);
    return size;
}

// A line that has the head of the last traceback.
static size_t take_off(struct peel *peel, struct head_seen *seen) {
    size_t size = same_shape((struct slice){seen->text, seen->size}, peel->text);
    peel->text = text_from(peel->text, size);
    if (size > 0 && text_begins(peel->text, SLICE("  File \"")))
        seen->is_certain = true;
    return size;
}

void head_peel(struct peel *peel, struct head_seen *seen) {
    struct slice line = peel->text;
    uint64_t rank;
    size_t size = head_of_beginning(line);
    assert(seen->size <= HEAD_SIZE_MAX);
    if (size > 0)
        size = learn(seen, line, size);
    else if (seen->size > 0)
        size = take_off(peel, seen);
    if (size == 0 && head_of_place(line) > 0) {
        learn(seen, line, head_of_place(line));
        size = take_off(peel, seen);
    }
    if (size > 0 && seen->names)
        name_writer(peel, (struct slice){line.data, size});
    if (size > 0 && peel->frame->rank == RANK_NONE &&
        head_rank((struct slice){line.data, size}, &rank))
        peel->frame->rank = (int32_t)rank;
}
