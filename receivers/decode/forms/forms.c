// SPDX-License-Identifier: Apache-2.0
// A message is looked through once for the needles of all texts; a text is tried where its needle
// stands. O(message) for a bounded number of candidates, of which each is tried at a bounded number
// of places.
#include "receivers/decode/forms/forms.h"

#include "base/memory.h"
#include "base/text/cut.h"
#include "base/text/find.h"
#include "pipeline/model/node_event.h"
#include "receivers/decode/forms/builtin.h"
#include "receivers/decode/forms/envelope.h"
#include "receivers/decode/forms/literals.h"
#include "receivers/decode/forms/meanings.h"
#include "receivers/decode/forms/needles.h"

#include <assert.h>
#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

// THEN_PLACES_MAX: places of a line that are tried.
enum { CANDIDATES_MAX = 256, THEN_PLACES_MAX = 8, ARENA_BLOCK = 64 << 10, NAME_SIZE_MAX = 253 };

struct place {
    uint32_t form;
    const struct form_text *text;
    // Of a prefix: a bit for each byte that may be its second one; the literal that it begins with;
    // whether a name or a date follows; what stands behind that: blanks perhaps, a literal, a part.
    uint32_t second[8];
    struct slice head, behind;
    const struct pattern_part *next; // NULL: none
    bool is_names, has_name, has_date, has_blanks;
};

struct forms {
    struct arena arena;
    struct form_rows rows;
    struct place *places; // one for each needle
    // Texts of prefixes, in their order, and for each first byte of a line those that it may begin:
    // places in `prefixes`, UINT16_MAX ends them.
    struct place *prefixes;
    uint16_t *by_byte[256];
    struct needles *needles;
    // The same and those of readers in C, which stand behind them, to search whole logs for.
    struct needles *search;
    uint32_t place_count;
    struct envelopes *envelopes;
    const struct form **meanings; // in their order
    uint32_t meaning_count;
};

// -- making ---------------------------------------------------------------------------------------

static bool is_form(const struct form *form) {
    return !form->is_prefix && !form->is_envelope && !form->is_meaning;
}

static void index_forms(struct forms *forms) {
    struct form_rows *rows = &forms->rows;
    uint32_t count = 0, at = 0;
    for (uint32_t i = 0; i < rows->count; i++)
        count += is_form(rows->forms[i]) ? rows->forms[i]->text_count : 0;
    forms->places = arena_zero(&forms->arena, count + 1, sizeof *forms->places);
    const char **texts = arena_zero(&forms->arena, count + FORM_LITERAL_COUNT + 1, sizeof *texts);
    for (uint32_t i = 0; i < rows->count; i++)
        for (uint32_t k = 0; is_form(rows->forms[i]) && k < rows->forms[i]->text_count; k++) {
            const struct form_text *text = &rows->forms[i]->texts[k];
            assert(text->pattern.needle.size == NEEDLE_SIZE);
            texts[at] = text->pattern.needle.data;
            forms->places[at++] = (struct place){.form = i, .text = text};
        }
    forms->needles = needles_make(texts, count, &forms->arena);
    for (unsigned i = 0; i < FORM_LITERAL_COUNT; i++)
        texts[count + i] = FORM_LITERALS[i].text;
    forms->search = needles_make(texts, count + FORM_LITERAL_COUNT, &forms->arena);
    forms->place_count = count;
}

// Whether what a part takes may begin with this byte; not sure: it may.
static bool may_take(const struct pattern_part *part, unsigned char byte) {
    bool digit = text_is_digit((char)byte);
    switch (part->type) {
    case PATTERN_LITERAL:
        return (unsigned char)part->literal.data[0] == byte;
    case PATTERN_CHOICE:
        for (uint16_t i = 0; i < part->count; i++)
            if ((unsigned char)part->choices[i].data[0] == byte)
                return true;
        return false;
    case PATTERN_INT:
    case PATTERN_DECIMAL:
        return digit || byte == '-';
    case PATTERN_UNIX:
    case PATTERN_CLOCK:
    case PATTERN_LIST:
        return digit;
    case PATTERN_HEX:
        return isxdigit(byte) != 0;
    case PATTERN_TIME:
        return digit || isupper(byte) != 0 || byte >= 0x80;
    case PATTERN_REPLICA:
        return isalpha(byte) != 0;
    case PATTERN_NAME:
        return isalnum(byte) != 0 || byte == '_' || byte == '.' || byte == '-' || byte >= 0x80;
    default:
        return true;
    }
}

static bool may_begin(const struct pattern *pattern, unsigned char byte) {
    return may_take(&pattern->parts[0], byte);
}

// The bytes that may stand second.
static void set_second(struct place *place) {
    const struct pattern *pattern = &place->text->pattern;
    const struct pattern_part *first = &pattern->parts[0];
    for (unsigned byte = 0; byte < 256; byte++) {
        bool may = true;
        if (first->type == PATTERN_LITERAL && first->literal.size > 1)
            may = (unsigned char)first->literal.data[1] == byte;
        else if (first->type == PATTERN_LITERAL && pattern->part_count > 1)
            may = may_take(first + 1, (unsigned char)byte);
        if (may)
            place->second[byte / 32] |= UINT32_C(1) << byte % 32;
    }
}

// What begins the text besides its second byte, as far as that is told without matching it.
static void set_head(struct place *place, bool is_names) {
    const struct pattern *pattern = &place->text->pattern;
    const struct pattern_part *part = &pattern->parts[0], *end = part + pattern->part_count;
    place->is_names = is_names;
    place->head = place->behind = (struct slice){"", 0};
    if (part->type == PATTERN_LITERAL)
        place->head = part++->literal;
    if (part->type == PATTERN_REPLICA) {
        place->has_name = true;
        place->behind = SLICE("/");
        return;
    }
    bool is_followed = part + 1 < end && (part[1].type == PATTERN_LITERAL ||
                                          (part[1].type == PATTERN_BLANKS && part + 2 < end));
    place->has_date = is_followed && part->type == PATTERN_TIME;
    place->has_name = is_followed && part->type == PATTERN_NAME;
    if (!place->has_date && !place->has_name)
        return;
    place->has_blanks = (++part)->type == PATTERN_BLANKS;
    part += place->has_blanks;
    if (part->type == PATTERN_LITERAL)
        place->behind = part++->literal;
    place->next = part < end ? part : NULL;
}

static void index_prefixes(struct forms *forms) {
    struct form_rows *rows = &forms->rows;
    uint32_t count = 0;
    for (uint32_t i = 0; i < rows->count; i++)
        count += rows->forms[i]->is_prefix ? rows->forms[i]->text_count : 0;
    forms->prefixes = arena_zero(&forms->arena, count + 1, sizeof *forms->prefixes);
    count = 0;
    for (uint32_t i = 0; i < rows->count; i++)
        for (uint32_t k = 0; rows->forms[i]->is_prefix && k < rows->forms[i]->text_count; k++) {
            forms->prefixes[count] = (struct place){.form = i, .text = &rows->forms[i]->texts[k]};
            set_head(&forms->prefixes[count], rows->forms[i]->is_names);
            set_second(&forms->prefixes[count++]);
        }
    for (unsigned byte = 0; byte < 256; byte++) {
        uint16_t *list = arena_zero(&forms->arena, count + 1, sizeof *list);
        forms->by_byte[byte] = list;
        for (uint32_t i = 0; i < count; i++)
            if (may_begin(&forms->prefixes[i].text->pattern, (unsigned char)byte))
                *list++ = (uint16_t)i;
        *list = UINT16_MAX;
    }
}

static void index_meanings(struct forms *forms) {
    struct form_rows *rows = &forms->rows;
    forms->meanings = arena_zero(&forms->arena, rows->count + 1, sizeof *forms->meanings);
    for (uint32_t i = 0; i < rows->count; i++)
        if (rows->forms[i]->is_meaning)
            forms->meanings[forms->meaning_count++] = rows->forms[i];
}

static bool add_builtin(struct forms *forms) {
    for (uint32_t i = 0; BUILTIN_FORMS[i].file != NULL; i++)
        if (!form_rows_add(&forms->rows, BUILTIN_FORMS[i].file, slice_of(BUILTIN_FORMS[i].text),
                           true))
            return false;
    return true;
}

struct forms *forms_make(const char *const *files, const struct slice *texts, uint32_t count,
                         struct form_fault *fault) {
    struct forms *forms = memory_zero(1, sizeof *forms);
    arena_init(&forms->arena, ARENA_BLOCK);
    form_rows_begin(&forms->rows, &forms->arena);
    bool right = true;
    for (uint32_t i = 0; right && i < count; i++)
        right = form_rows_add(&forms->rows, arena_text(&forms->arena, slice_of(files[i])),
                              arena_copy(&forms->arena, texts[i]), false);
    right = right && add_builtin(forms);
    if (!right) {
        *fault = forms->rows.fault;
        for (uint32_t i = 0; i < count; i++)
            if (strcmp(fault->file, files[i]) == 0)
                fault->file = files[i];
        forms_free(forms);
        return NULL;
    }
    index_forms(forms);
    index_prefixes(forms);
    index_meanings(forms);
    forms->envelopes = envelopes_make(&forms->rows, &forms->arena);
    return forms;
}

void forms_free(struct forms *forms) {
    if (forms == NULL)
        return;
    arena_release(&forms->arena);
    memory_give(forms);
}

static struct forms *builtin;

static void make_builtin(void) {
    struct form_fault fault;
    builtin = forms_make(NULL, NULL, 0, &fault);
    if (builtin == NULL) { // the tests read every row
        fprintf(stderr, "%s:%u:%u: %s\n", fault.file, fault.line, fault.column, fault.words);
        abort();
    }
    arena_keep(&builtin->arena);
    memory_keep(builtin);
}

const struct forms *forms_builtin(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_builtin);
    return builtin;
}

uint32_t forms_count(const struct forms *forms) {
    return forms->rows.count;
}

const struct form *forms_at(const struct forms *forms, uint32_t i) {
    assert(i < forms->rows.count);
    return forms->rows.forms[i];
}

const struct form *forms_meaning(const struct forms *forms, const struct uttered *uttered) {
    if (forms == NULL)
        forms = forms_builtin();
    return meanings_find(forms->meanings, forms->meaning_count, uttered);
}

const struct envelopes *forms_envelopes(const struct forms *forms) {
    return forms->envelopes;
}

// -- finding --------------------------------------------------------------------------------------

// What stands before it does not make it a part of another word.
static bool is_begin(struct slice message, size_t at) {
    if (at == 0)
        return true;
    char before = message.data[at - 1], first = message.data[at];
    bool word = (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z') || first == '_' ||
                text_is_digit(first);
    return !word || !((before >= 'a' && before <= 'z') || (before >= 'A' && before <= 'Z') ||
                      before == '_' || text_is_digit(before));
}

static bool match_from(const struct pattern *pattern, struct slice message, size_t from,
                       struct slice *values, struct pattern_memo *memo) {
    size_t end;
    return is_begin(message, from) &&
           pattern_match_again(pattern, message, from, values, &end, memo);
}

// The nearest place in front of the needle from which the text is there.
static bool match_before(const struct pattern *pattern, struct slice message, size_t needle,
                         struct slice *values, struct pattern_memo *memo) {
    struct slice head = pattern->parts[0].literal;
    for (size_t back = head.size; back <= PATTERN_HEAD_MAX && back <= needle; back++)
        if (memcmp(message.data + needle - back, head.data, head.size) == 0 &&
            match_from(pattern, message, needle - back, values, memo))
            return true;
    return false;
}

static bool match_at(const struct form_text *text, struct slice message, size_t needle,
                     struct slice *values, struct pattern_memo *memo) {
    const struct pattern *pattern = &text->pattern;
    size_t end;
    if (pattern->at_start)
        return pattern_match_again(pattern, message, 0, values, &end, memo);
    if (pattern->needle_floats)
        return match_before(pattern, message, needle, values, memo);
    return needle >= pattern->needle_at &&
           match_from(pattern, message, needle - pattern->needle_at, values, memo);
}

bool forms_find_then(const struct form_text *text, struct slice line, struct slice *values) {
    const struct pattern *pattern = &text->pattern;
    struct pattern_memo memo = {0};
    size_t end, at = 0;
    text_skip_blanks(&line);
    if (pattern->at_start || pattern->parts[0].type != PATTERN_LITERAL)
        return pattern_match_again(pattern, line, 0, values, &end, &memo);
    for (int i = 0; i < THEN_PLACES_MAX; i++, at++) {
        const char *found = text_position(text_from(line, at), pattern->parts[0].literal);
        if (found == NULL)
            return false;
        at = (size_t)(found - line.data);
        if (is_begin(line, at) && pattern_match_again(pattern, line, at, values, &end, &memo))
            return true;
    }
    return false;
}

static void keep_match(const struct forms *forms, const struct place *place,
                       const struct slice *values, struct form_match *match) {
    match->form = forms->rows.forms[place->form];
    match->text = place->text;
    memcpy(match->values, values, sizeof match->values);
}

// A line that ends within one row may be a whole one of another, which then counts.
static bool find(const struct forms *forms, struct slice message, bool kernel,
                 struct form_match *match) {
    struct needle_walk walk = {0};
    struct slice values[PATTERN_NAMES_MAX];
    uint32_t needle, best = UINT32_MAX, cut = UINT32_MAX;
    size_t at;
    match->memo = (struct pattern_memo){0};
    for (int i = 0;
         i < CANDIDATES_MAX && needles_next(forms->needles, message, &walk, &needle, &at); i++) {
        const struct place *place = &forms->places[needle];
        const struct form *form = forms->rows.forms[place->form];
        if (place->form >= best || (form->is_kernel && !kernel))
            continue;
        if (match_at(place->text, message, at, values, &match->memo)) {
            best = place->form;
            keep_match(forms, place, values, match);
        } else if (form->is_whole && match->memo.ran_out && best == UINT32_MAX &&
                   place->form < cut) {
            cut = place->form;
            keep_match(forms, place, values, match);
        }
    }
    match->is_cut = best == UINT32_MAX;
    return best != UINT32_MAX || cut != UINT32_MAX;
}

bool forms_find(const struct forms *forms, struct slice message, struct form_match *match) {
    return find(forms, message, true, match);
}

bool forms_find_of_programs(const struct forms *forms, struct slice message,
                            struct form_match *match) {
    return find(forms, message, false, match);
}

bool forms_search(const struct forms *forms, struct slice text, struct needle_walk *walk,
                  size_t *place, bool *certain) {
    uint32_t needle;
    if (!needles_next(forms->search, text, walk, &needle, place))
        return false;
    *certain = needle >= forms->place_count && FORM_LITERALS[needle - forms->place_count].certain;
    return true;
}

// Behind the letters of the name that stands there, up to its first digit; 0: there is none.
static size_t name_letters_end(struct slice text, size_t at) {
    size_t limit = text.size - at < NAME_SIZE_MAX ? text.size : at + NAME_SIZE_MAX;
    if (at == text.size || isalpha((unsigned char)text.data[at]) == 0)
        return 0;
    while (at < limit &&
           (isalpha((unsigned char)text.data[at]) != 0 || memchr("_.-/", text.data[at], 4) != NULL))
        at++;
    return at;
}

// Whether the text begins with a name that has a number in it, in brackets perhaps, or behind
// another name.
static bool begins_with_name(struct slice text) {
    size_t at = name_letters_end(text, text.data[0] == '[');
    if (at > 0 && at < text.size && text.data[at] == ' ')
        at = name_letters_end(text, at + 1);
    return at > 0 && at < text.size && text_is_digit(text.data[at]);
}

// Rows that are made of names are not tried on what begins otherwise.
static bool may_be_names(struct slice text, struct prefix_walk *walk) {
    if (walk->begins == PREFIX_UNKNOWN)
        walk->begins = begins_with_name(text) ? PREFIX_NAME : PREFIX_NO_NAME;
    return walk->begins == PREFIX_NAME;
}

// Behind the name or the date that the row has at `at`, which is looked for once for all rows; 0:
// there is none.
static size_t first_end(const struct place *place, struct slice text, size_t at,
                        struct prefix_walk *walk) {
    if (place->has_date) {
        size_t size = pattern_date_size(text, at, &walk->memo);
        return size == 0 ? 0 : at + size;
    }
    if (walk->name_end == 0 || walk->name_at != at) {
        walk->name_at = at;
        walk->name_end = pattern_name_end(text, at);
    }
    return walk->name_end == at ? 0 : walk->name_end;
}

// False: the prefix is not there.
static bool may_be_there(const struct place *place, struct slice text, struct prefix_walk *walk) {
    unsigned char second = (unsigned char)text.data[1];
    if ((place->second[second / 32] >> second % 32 & 1) == 0 || !text_begins(text, place->head) ||
        (place->is_names && !may_be_names(text, walk)))
        return false;
    if (!place->has_name && !place->has_date)
        return true;
    size_t end = first_end(place, text, place->head.size, walk);
    if (end == 0 || end == text.size ||
        (!place->has_blanks && text.data[end] != place->behind.data[0]))
        return false;
    while (place->has_blanks && end < text.size &&
           (text.data[end] == ' ' || text.data[end] == '\t'))
        end++;
    struct slice rest = text_from(text, end);
    return text_skip(&rest, place->behind) && (place->next == NULL || rest.size == 0 ||
                                               may_take(place->next, (unsigned char)rest.data[0]));
}

bool forms_find_prefix(const struct forms *forms, struct slice text, struct prefix_walk *walk,
                       struct form_match *match, size_t *end) {
    if (text.size < 2)
        return false;
    const uint16_t *list = forms->by_byte[(unsigned char)text.data[0]];
    for (uint32_t i = walk->next; list[i] != UINT16_MAX; i++) {
        const struct place *place = &forms->prefixes[list[i]];
        if (!may_be_there(place, text, walk) ||
            !pattern_match_again(&place->text->pattern, text, 0, match->values, end, &walk->memo))
            continue;
        match->form = forms->rows.forms[place->form];
        match->text = place->text;
        walk->next = i + 1;
        return true;
    }
    return false;
}
