// SPDX-License-Identifier: Apache-2.0
// From the text of a row to the parts of a pattern, and to the literal by which lines are found.
#include "receivers/decode/forms/pattern.h"

#include "base/text/cut.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

static const struct {
    enum pattern_type type;
    struct slice name;
} TYPES[] = {
#define PATTERN_TYPE(constant, name, what) {PATTERN_##constant, {name, sizeof(name) - 1}},
#include "receivers/decode/forms/pattern_types.h"
};

static bool pattern_type_of(struct slice name, enum pattern_type *type) {
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
        if (slice_equal(TYPES[i].name, name)) {
            *type = TYPES[i].type;
            return true;
        }
    return false;
}

struct compiler {
    struct pattern *pattern;
    struct pattern_fault *fault;
    pattern_name_type *type_of;
    struct arena *arena;
    struct slice source, rest;
    bool in_option;
};

static bool fail(struct compiler *compiler, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool fail(struct compiler *compiler, const char *at, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(compiler->fault->words, sizeof compiler->fault->words, format, arguments);
    va_end(arguments);
    compiler->fault->offset = (size_t)(at - compiler->source.data);
    return false;
}

static struct pattern_part *add_part(struct compiler *compiler, enum pattern_type type) {
    struct pattern *pattern = compiler->pattern;
    if (pattern->part_count == PATTERN_PARTS_MAX) {
        fail(compiler, compiler->rest.data, "more than %d parts", PATTERN_PARTS_MAX);
        return NULL;
    }
    struct pattern_part *part = &pattern->parts[pattern->part_count++];
    *part = (struct pattern_part){.type = type, .name = -1};
    return part;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

static bool add_literal(struct compiler *compiler, struct slice literal) {
    struct pattern_part *part;
    if (literal.size == 0)
        return true;
    part = add_part(compiler, PATTERN_LITERAL);
    if (part == NULL)
        return false;
    part->literal = literal;
    return true;
}

// Up to the next brace: literals, and runs of blanks between them.
static bool take_literals(struct compiler *compiler) {
    struct slice text = text_until_any(compiler->rest, "{}");
    compiler->rest = text_from(compiler->rest, text.size);
    size_t from = 0;
    for (size_t at = 0; at < text.size;) {
        size_t end = at;
        while (end < text.size && is_blank(text.data[end]))
            end++;
        if (end < at + 2) {
            at = end == at ? at + 1 : end;
            continue;
        }
        if (!add_literal(compiler, (struct slice){text.data + from, at - from}) ||
            add_part(compiler, PATTERN_BLANKS) == NULL)
            return false;
        from = at = end;
    }
    return add_literal(compiler, (struct slice){text.data + from, text.size - from});
}

static bool is_name(struct slice text) {
    for (size_t i = 0; i < text.size; i++)
        if (!islower((unsigned char)text.data[i]) && text.data[i] != '_' &&
            !(i > 0 && text_is_digit(text.data[i])))
            return false;
    return text.size > 0;
}

static bool keep_as(struct compiler *compiler, struct pattern_part *part, struct slice name) {
    struct pattern *pattern = compiler->pattern;
    if (slice_equal(name, SLICE("_")))
        return true;
    for (uint32_t i = 0; i < pattern->name_count; i++)
        if (slice_equal(pattern->names[i], name)) {
            part->name = (int16_t)i;
            return true;
        }
    if (pattern->name_count == PATTERN_NAMES_MAX)
        return fail(compiler, name.data, "more than %d names", PATTERN_NAMES_MAX);
    part->name = (int16_t)pattern->name_count;
    pattern->names[pattern->name_count++] = name;
    return true;
}

// "{name=a|b}", "{a|b}": the longest first, so that none hides another.
static bool add_choice(struct compiler *compiler, struct slice name, struct slice words) {
    struct pattern_part *part = add_part(compiler, PATTERN_CHOICE);
    if (part == NULL)
        return false;
    part->choices = arena_take(compiler->arena, (words.size + 1) * sizeof *part->choices);
    for (bool more = true; more;) {
        struct slice word = text_until(words, '|');
        more = word.size < words.size;
        words = text_from(words, word.size + more);
        if (word.size == 0)
            return fail(compiler, word.data, "an empty word among the choices");
        uint16_t at = part->count++;
        for (; at > 0 && part->choices[at - 1].size < word.size; at--)
            part->choices[at] = part->choices[at - 1];
        part->choices[at] = word;
    }
    return name.size == 0 || keep_as(compiler, part, name);
}

static bool add_named(struct compiler *compiler, struct slice inside) {
    struct slice name = text_until(inside, ':'), type_name = {NULL, 0};
    enum pattern_type type = PATTERN_TEXT, by_name;
    if (name.size < inside.size)
        type_name = text_from(inside, name.size + 1);
    if (!is_name(name))
        return fail(compiler, name.data, "a name has small letters, digits and '_'");
    if (!slice_equal(name, SLICE("_"))) {
        if (!compiler->type_of(name, &by_name, compiler->fault->words,
                               sizeof compiler->fault->words)) {
            compiler->fault->offset = (size_t)(name.data - compiler->source.data);
            return false;
        }
        type = by_name;
    }
    if (type_name.data != NULL && !pattern_type_of(type_name, &type))
        return fail(compiler, type_name.data, "'%.*s' is no type", (int)type_name.size,
                    type_name.data);
    struct pattern_part *part = add_part(compiler, type);
    return part != NULL && keep_as(compiler, part, name);
}

static bool take_parts(struct compiler *compiler);

static bool add_option(struct compiler *compiler, const char *at) {
    struct pattern *pattern = compiler->pattern;
    if (compiler->in_option)
        return fail(compiler, at, "a {? inside of a {?");
    uint32_t place = pattern->part_count;
    if (add_part(compiler, PATTERN_OPTION) == NULL)
        return false;
    compiler->in_option = true;
    if (!take_parts(compiler))
        return false;
    compiler->in_option = false;
    if (!text_skip_char(&compiler->rest, '}'))
        return fail(compiler, at, "no '}' ends this {?");
    pattern->parts[place].count = (uint16_t)(pattern->part_count - place - 1);
    for (uint32_t i = place + 1; i < pattern->part_count; i++)
        if (pattern->parts[i].type == PATTERN_TEXT)
            return fail(compiler, at, "a part of type text inside of a {?");
    return true;
}

static bool take_brace(struct compiler *compiler) {
    const char *at = compiler->rest.data;
    if (text_skip(&compiler->rest, SLICE("{{")))
        return add_literal(compiler, (struct slice){at, 1});
    text_skip_char(&compiler->rest, '{');
    if (text_skip_char(&compiler->rest, '?'))
        return add_option(compiler, at);
    struct slice inside = text_until(compiler->rest, '}');
    if (inside.size == compiler->rest.size)
        return fail(compiler, at, "no '}' ends this part; {{ stands for a brace");
    compiler->rest = text_from(compiler->rest, inside.size + 1);
    if (slice_equal(inside, SLICE("end")))
        return add_part(compiler, PATTERN_END) != NULL;
    if (slice_equal(inside, SLICE("blank")))
        return add_literal(compiler, SLICE(" "));
    struct slice name = text_until(inside, '=');
    if (name.size < inside.size && is_name(name)) {
        enum pattern_type ignored;
        struct slice words = text_from(inside, name.size + 1);
        if (!compiler->type_of(name, &ignored, compiler->fault->words,
                               sizeof compiler->fault->words)) {
            compiler->fault->offset = (size_t)(name.data - compiler->source.data);
            return false;
        }
        return add_choice(compiler, name, words);
    }
    if (memchr(inside.data, '|', inside.size) != NULL)
        return add_choice(compiler, (struct slice){NULL, 0}, inside);
    return add_named(compiler, inside);
}

static bool take_parts(struct compiler *compiler) {
    while (compiler->rest.size > 0) {
        char first = compiler->rest.data[0];
        if (first == '}' && compiler->in_option)
            return true;
        if (first == '}')
            return fail(compiler, compiler->rest.data, "a '}' that ends nothing");
        if (first == '{' ? !take_brace(compiler) : !take_literals(compiler))
            return false;
    }
    return true;
}

// Whether lines of jobs that go well say it, many of them: it is in one of these words, with a
// blank before and behind it, or holds one.
static bool is_common(struct slice text) {
    static const char *const words[] = {
        " Rank ",      " rank ",   " [rank",    " INFO ",   " info ",   " NVIDIA ",   " Worker ",
        " worker ",    " kernel ", " process ", " python ", " system ", " Training ", " training ",
        " iteration ", " Epoch ",  " device ",  " NETDEV ", " Memory ", " Kernel "};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct slice padded = slice_of(words[i]), word = text_trim(padded);
        if (memmem(padded.data, padded.size, text.data, text.size) != NULL ||
            memmem(text.data, text.size, word.data, word.size) != NULL)
            return true;
    }
    return false;
}

// How well these bytes tell lines apart, if they are not common; 0: not at all. Words that every
// log has are made of small letters.
static int rarity(struct slice text) {
    int score = 0;
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        score += isupper(c)                        ? 3
                 : islower(c)                      ? (strchr("jkqvwxyz", c) != NULL ? 3 : 1)
                 : is_blank((char)c) || isdigit(c) ? 0
                                                   : 2;
    }
    return score;
}

// Bytes that an envelope of JSON writes in another way.
static bool is_escaped(char c) {
    return strchr("\"\\<>&'/\t", c) != NULL || (unsigned char)c < ' ';
}

static void try_needle(struct pattern *pattern, struct slice literal, size_t before, int *best) {
    for (size_t from = 0; from < literal.size;) {
        size_t end = from;
        while (end < literal.size && !is_escaped(literal.data[end]))
            end++;
        for (size_t at = from; at + PATTERN_NEEDLE_MIN <= end; at++) {
            struct slice window = {literal.data + at, PATTERN_NEEDLE_MIN};
            int score = rarity(window);
            if (score > *best && is_common(window))
                score = 0;
            if (score <= *best)
                continue;
            *best = score;
            pattern->needle = window;
            pattern->needle_at = before + at;
        }
        from = end + 1;
    }
}

// Among the literals that every match has; near the beginning: of the first that has one.
static void try_all_needles(struct pattern *pattern, bool is_near, int *best) {
    for (uint32_t i = 0; i < pattern->part_count && !(is_near && *best > 0); i++) {
        if (pattern->parts[i].type == PATTERN_OPTION)
            i += pattern->parts[i].count;
        else if (pattern->parts[i].type == PATTERN_LITERAL)
            try_needle(pattern, pattern->parts[i].literal, 0, best);
    }
}

static bool choose_needle(struct compiler *compiler) {
    struct pattern *pattern = compiler->pattern;
    int best = -1;
    if (!pattern->at_start) {
        struct slice head = pattern->part_count > 0 && pattern->parts[0].type == PATTERN_LITERAL
                                ? pattern->parts[0].literal
                                : (struct slice){NULL, 0};
        try_needle(pattern, head, 0, &best);
        if (best <= 0 && head.size >= PATTERN_HEAD_MIN) {
            int near = best;
            try_all_needles(pattern, true, &near);
            pattern->needle_floats = near > best;
            best = near;
        }
        return best >= 0 || fail(compiler, compiler->source.data,
                                 "a text that may stand anywhere begins with %d letters or signs, "
                                 "and has %d in a row; '^' in front keeps it to the begin of a "
                                 "message",
                                 PATTERN_HEAD_MIN, PATTERN_NEEDLE_MIN);
    }
    try_all_needles(pattern, false, &best);
    return best >= 0 || fail(compiler, compiler->source.data,
                             "a text has %d letters or signs in a row that are always there, so "
                             "that lines are found by them",
                             PATTERN_NEEDLE_MIN);
}

bool pattern_compile(struct slice source, bool needs_needle, pattern_name_type *type_of,
                     struct arena *arena, struct pattern *pattern, struct pattern_fault *fault) {
    struct compiler compiler = {.pattern = pattern,
                                .fault = fault,
                                .type_of = type_of,
                                .arena = arena,
                                .source = source,
                                .rest = source};
    *pattern = (struct pattern){.source = source};
    *fault = (struct pattern_fault){0};
    if (source.size > PATTERN_SIZE_MAX)
        return fail(&compiler, source.data, "longer than %d bytes", PATTERN_SIZE_MAX);
    struct pattern_part parts[PATTERN_PARTS_MAX];
    pattern->parts = parts;
    pattern->at_start = text_skip_char(&compiler.rest, '^');
    bool right = take_parts(&compiler);
    pattern->parts = arena_zero(arena, pattern->part_count + 1, sizeof *parts);
    if (!right)
        return false;
    memcpy(pattern->parts, parts, pattern->part_count * sizeof *parts);
    if (pattern->part_count == 0)
        return fail(&compiler, source.data, "an empty text");
    return !needs_needle || choose_needle(&compiler);
}
