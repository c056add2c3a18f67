// SPDX-License-Identifier: Apache-2.0
// A pattern is a list of parts. Parts of type text cut it into runs: each run is looked for from
// where the one before it ended, and its first place is taken. That is enough: what a text part
// takes is free, so a later place of a run never allows what its first place forbids. All other
// parts are bounded, so that a place costs a constant.
#include "receivers/decode/forms/pattern.h"

#include "base/text/cut.h"
#include "base/text/find.h"
#include "base/text/log_date.h"
#include "receivers/decode/forms/signals.h"

#include <assert.h>
#include <ctype.h>

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

enum { UNIX_DIGITS = 10, CLOCK_SIZE = 8 };
enum { PART_MAX = 256 }; // bytes of a part that is not of type text

static size_t limit_of(struct slice text, size_t at) {
    return text.size - at < PART_MAX ? text.size : at + PART_MAX;
}

static size_t span(struct slice text, size_t at, bool (*is_of)(char)) {
    size_t limit = limit_of(text, at);
    while (at < limit && is_of(text.data[at]))
        at++;
    return at;
}

static size_t digits_at(struct slice text, size_t at) {
    return span(text, at, text_is_digit);
}

static bool is_name_char(char c) {
    return (unsigned)((c | 0x20) - 'a') < 26 || text_is_digit(c) || c == '_' || c == '.' ||
           c == '-' || (c & 0x80) != 0;
}

static bool is_address_char(char c) {
    return isxdigit((unsigned char)c) || c == '.' || c == ':' || c == '%' || c == '[' || c == ']';
}

static bool is_pci_char(char c) {
    return isxdigit((unsigned char)c) || c == '.' || c == ':';
}

static bool is_list_char(char c) {
    return text_is_digit(c) || c == ',' || c == '-' || c == ' ';
}

static bool is_end_char(char c) {
    return is_blank(c) || c == '\r';
}

static bool is_clock_char(char c) {
    return text_is_digit(c) || c == ':' || c == '.' || c == ',';
}

static bool is_hex_char(char c) {
    return isxdigit((unsigned char)c);
}

// Up to a blank, or to what comes next in the pattern.
static size_t word_end(struct slice text, size_t at, const struct pattern_part *next) {
    struct slice stop =
        next != NULL && next->type == PATTERN_LITERAL ? next->literal : (struct slice){NULL, 0};
    size_t limit = limit_of(text, at);
    while (at < limit && !is_blank(text.data[at]) &&
           (stop.size == 0 || text.data[at] != stop.data[0] ||
            !text_begins(text_from(text, at), stop)))
        at++;
    return at;
}

// At most as long as the kernel keeps it, up to the last place where what comes next stands.
static size_t thread_end(struct slice text, size_t at, const struct pattern_part *next) {
    enum { NAME_MAX_SIZE = 15 };
    size_t end = text.size - at < NAME_MAX_SIZE ? text.size : at + NAME_MAX_SIZE;
    bool is_followed = next != NULL && next->type == PATTERN_LITERAL;
    while (is_followed && end > at && !text_begins(text_from(text, end), next->literal))
        end--;
    return end;
}

static size_t without_end(struct slice text, size_t from, size_t end, char stop) {
    return end > from && text.data[end - 1] == stop ? end - 1 : end;
}

// A full stop behind it ends the sentence.
size_t pattern_name_end(struct slice text, size_t at) {
    return without_end(text, at, span(text, at, is_name_char), '.');
}

// Begins as a date does: with a digit, or a short word without one and a number or another word
// behind it. Most lines do not, and trying all forms of dates takes long.
static bool may_be_date(struct slice text) {
    enum { WORD_MIN = 3, WORD_MAX = 12 };
    size_t size = 0;
    if (text.size <= WORD_MAX)
        return false;
    if (text_is_digit(text.data[0]))
        return text_is_digit(text.data[1]) || (text.data[1] & 0x80) != 0;
    while (size < WORD_MAX && (isalpha((unsigned char)text.data[size]) || text.data[size] == '.' ||
                               (text.data[size] & 0x80) != 0))
        size++;
    if (size < WORD_MIN || size == WORD_MAX || text.data[size] != ' ')
        return false;
    char behind = text.data[size + 1];
    return behind == ' ' || text_is_digit(behind) || isupper((unsigned char)behind) ||
           (behind & 0x80) != 0;
}

static size_t date_size(struct slice text) {
    if (!may_be_date(text))
        return 0;
    struct slice rest = text;
    struct log_date date;
    return log_date_take_iso(&rest, &date) || log_date_take_ctime(&rest, &date) ||
                   log_date_take_month_first(&rest, &date) || log_date_take_syslog(&rest, &date)
               ? text.size - rest.size
               : 0;
}

// Where a part of this type ends that begins at `at`; `at` itself: there is none.
static size_t part_end(const struct pattern_part *part, const struct pattern_part *next,
                       struct slice text, size_t at) {
    size_t end = at;
    switch (part->type) {
    case PATTERN_INT:
        end = digits_at(text, at + (at < text.size && text.data[at] == '-'));
        return end > at && text_is_digit(text.data[end - 1]) && end - at <= 19 ? end : at;
    case PATTERN_DECIMAL:
        end = digits_at(text, at + (at < text.size && text.data[at] == '-'));
        if (end > at && end + 1 < text.size && text.data[end] == '.' &&
            text_is_digit(text.data[end + 1]))
            end = digits_at(text, end + 1);
        return end > at && text_is_digit(text.data[end - 1]) ? end : at;
    case PATTERN_HEX:
        if (text_begins(text_from(text, at), SLICE("0x")))
            end += 2;
        return span(text, end, is_hex_char) > end ? span(text, end, is_hex_char) : at;
    case PATTERN_NAME:
        return pattern_name_end(text, at);
    case PATTERN_REPLICA:
        end = at < text.size && isalpha((unsigned char)text.data[at]) ? span(text, at, is_name_char)
                                                                      : at;
        if (end == at || end + 1 >= text.size || text.data[end] != '/')
            return at;
        return digits_at(text, end + 1) > end + 1 ? digits_at(text, end + 1) : at;
    case PATTERN_ADDRESS:
        return without_end(text, at, span(text, at, is_address_char), ':');
    case PATTERN_PCI:
        return without_end(text, at, span(text, at, is_pci_char), ':');
    case PATTERN_LIST:
        end = span(text, at, is_list_char);
        while (end > at && !text_is_digit(text.data[end - 1]))
            end--;
        return end;
    case PATTERN_SIGNAL:
        return at + signal_size(text_from(text, at));
    case PATTERN_UNIX:
        end = digits_at(text, at);
        if (end != at + UNIX_DIGITS)
            return at;
        return end + 1 < text.size && text.data[end] == '.' && text_is_digit(text.data[end + 1])
                   ? digits_at(text, end + 1)
                   : end;
    case PATTERN_CLOCK:
        end = span(text, at, is_clock_char);
        return end >= at + CLOCK_SIZE && text.data[at + 2] == ':' && text.data[at + 5] == ':' ? end
                                                                                              : at;
    case PATTERN_WORD:
        return word_end(text, at, next);
    case PATTERN_THREAD:
        return thread_end(text, at, next);
    case PATTERN_LITERAL:
    case PATTERN_BLANKS:
    case PATTERN_CHOICE:
    case PATTERN_OPTION:
    case PATTERN_END:
    case PATTERN_TEXT:
    case PATTERN_TIME:
        break;
    }
    return at;
}

struct match {
    const struct pattern *pattern;
    struct slice text;
    struct slice *values;
    struct pattern_memo *memo;
};

static bool is_spent(const struct match *match) {
    return match->memo->steps >= pattern_steps_max(match->text);
}

static void keep(struct match *match, const struct pattern_part *part, size_t from, size_t to) {
    if (part->name >= 0)
        match->values[part->name] = (struct slice){match->text.data + from, to - from};
}

size_t pattern_date_size(struct slice text, size_t at, struct pattern_memo *memo) {
    const char *here = text.data + at;
    if (memo->at != here) {
        memo->at = here;
        memo->date_size = date_size(text_from(text, at));
    }
    return memo->date_size;
}

// Whether the rest is the front of one of the things that the part takes: more may have followed.
static bool is_front(const struct pattern_part *part, struct slice rest) {
    if (rest.size == 0 || part->type == PATTERN_END)
        return rest.size == 0;
    if (part->type == PATTERN_LITERAL)
        return text_begins(part->literal, rest);
    if (part->type == PATTERN_SIGNAL)
        return signal_is_front(rest);
    for (uint16_t i = 0; part->type == PATTERN_CHOICE && i < part->count; i++)
        if (text_begins(part->choices[i], rest))
            return true;
    return false;
}

// One part that is neither of type text nor an option.
static bool match_part(struct match *match, uint32_t i, uint32_t end, size_t *at) {
    const struct pattern_part *part = &match->pattern->parts[i];
    const struct pattern_part *next = i + 1 < end ? part + 1 : NULL;
    struct slice rest = text_from(match->text, *at);
    size_t to = *at;
    switch (part->type) {
    case PATTERN_LITERAL:
        *at += part->literal.size;
        return text_begins(rest, part->literal);
    case PATTERN_BLANKS:
        *at = span(match->text, *at, is_blank);
        return *at > to;
    case PATTERN_END:
        *at = span(match->text, *at, is_end_char);
        return *at == match->text.size;
    case PATTERN_CHOICE:
        for (uint16_t k = 0; k < part->count; k++)
            if (text_begins(rest, part->choices[k])) {
                *at += part->choices[k].size;
                keep(match, part, to, *at);
                return true;
            }
        return false;
    case PATTERN_OPTION:
    case PATTERN_TEXT:
        assert(false);
        return false;
    default:
        to = part->type == PATTERN_TIME ? *at + pattern_date_size(match->text, *at, match->memo)
                                        : part_end(part, next, match->text, *at);
        if (to == *at)
            return false;
        keep(match, part, *at, to);
        *at = to;
        return true;
    }
}

static bool match_one(struct match *match, uint32_t i, uint32_t end, size_t *at) {
    size_t from = *at;
    if (match_part(match, i, end, at))
        return true;
    match->memo->ran_out |= is_front(&match->pattern->parts[i], text_from(match->text, from));
    return false;
}

// What was taken of an option that is not there.
static void forget(struct match *match, uint32_t from, uint32_t end) {
    for (uint32_t i = from; i < end; i++)
        if (match->pattern->parts[i].name >= 0)
            match->values[match->pattern->parts[i].name] = (struct slice){NULL, 0};
}

// Parts from..end, none of which is of type text.
static bool match_run(struct match *match, uint32_t from, uint32_t end, size_t *at) {
    for (uint32_t i = from; i < end; i++) {
        const struct pattern_part *part = &match->pattern->parts[i];
        if (part->type == PATTERN_OPTION) {
            size_t behind = *at;
            uint32_t inner = i + 1 + part->count;
            if (match_run(match, i + 1, inner, &behind))
                *at = behind;
            else
                forget(match, i + 1, inner);
            i = inner - 1;
        } else if (!match_one(match, i, end, at)) {
            return false;
        }
    }
    return true;
}

// The first place from *at on where the run matches; false: there is none.
static bool find_run(struct match *match, uint32_t from, uint32_t end, size_t *at, size_t *behind) {
    const struct pattern_part *first = &match->pattern->parts[from];
    for (size_t place = *at; place <= match->text.size && !is_spent(match); place++) {
        if (first->type == PATTERN_LITERAL) {
            const char *found = text_position(text_from(match->text, place), first->literal);
            size_t to = found == NULL ? match->text.size : (size_t)(found - match->text.data);
            match->memo->steps += (to - place) / PATTERN_STEP_BYTES;
            if (found == NULL) {
                match->memo->ran_out = true;
                return false;
            }
            place = to;
        }
        *behind = place;
        bool is_there = match_run(match, from, end, behind);
        match->memo->steps += end - from + (*behind - place) / PATTERN_STEP_BYTES;
        if (is_there) {
            *at = place;
            return true;
        }
    }
    return false;
}

static uint32_t run_end(const struct pattern *pattern, uint32_t from) {
    while (from < pattern->part_count && pattern->parts[from].type != PATTERN_TEXT)
        from++;
    return from;
}

bool pattern_match(const struct pattern *pattern, struct slice text, size_t at,
                   struct slice *values, size_t *end) {
    struct pattern_memo memo = {0};
    return pattern_match_again(pattern, text, at, values, end, &memo);
}

bool pattern_match_again(const struct pattern *pattern, struct slice text, size_t at,
                         struct slice *values, size_t *end, struct pattern_memo *memo) {
    struct match match = {.pattern = pattern, .text = text, .values = values, .memo = memo};
    assert(at <= text.size);
    for (uint32_t i = 0; i < pattern->name_count; i++)
        values[i] = (struct slice){NULL, 0};
    size_t behind = at;
    memo->ran_out = false;
    uint32_t i = run_end(pattern, 0);
    if (!match_run(&match, 0, i, &behind))
        return false;
    while (i < pattern->part_count) {
        const struct pattern_part *part = &pattern->parts[i];
        size_t from = behind, place = behind;
        uint32_t next = run_end(pattern, i + 1);
        if (next == i + 1) { // nothing follows but perhaps another text: all that is left
            struct slice left = text_from(text, from);
            while (left.size > 0 && strchr(" \t\r\n", left.data[left.size - 1]) != NULL)
                left.size--;
            place = behind = from + left.size;
        } else if (!find_run(&match, i + 1, next, &place, &behind)) {
            return false;
        }
        keep(&match, part, from, place);
        i = next;
    }
    *end = behind;
    return true;
}
