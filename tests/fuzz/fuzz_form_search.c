// SPDX-License-Identifier: Apache-2.0
// The search for all rows at once finds what trying each row at each place finds.
//
// The input is a file of rows, then a zero byte and lines. The lines, and the samples of the rows,
// are looked for in both ways; what is found lies within the line, and so does each prefix.
#include "base/text/cut.h"
#include "receivers/decode/forms/forms.h"
#include "tests/fuzz/fuzz.h"

// NEEDLES_TRIED: above it the search leaves some out, to keep its bounds. The others keep an input
// short.
enum { NEEDLES_TRIED = 200, LINE_SIZE_TRIED = 256, LINES_TRIED = 64 };

struct search {
    const struct forms *forms;
    struct slice line;
    uint32_t needles; // of all texts, in the line
    uint32_t lines;
};

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || text_is_digit(c);
}

static bool is_begin(struct slice line, size_t at) {
    return at == 0 || at == line.size || !is_word(line.data[at]) || !is_word(line.data[at - 1]);
}

static bool is_needle(const struct pattern *pattern, struct slice line, size_t at) {
    return text_begins(text_from(line, at), pattern->needle);
}

// Of a text whose needle floats: whether it is where the search looks for it.
static bool has_needle(const struct pattern *pattern, struct slice line, size_t from) {
    size_t head = pattern->parts[0].literal.size;
    if (!pattern->needle_floats)
        return true;
    for (size_t at = from + head; at <= from + PATTERN_HEAD_MAX && at < line.size; at++)
        if (is_needle(pattern, line, at))
            return true;
    return false;
}

static void require_inside(const struct pattern *pattern, struct slice line,
                           const struct slice *values) {
    for (uint32_t i = 0; i < pattern->name_count; i++)
        require(values[i].data == NULL ||
                (values[i].data >= line.data &&
                 values[i].data + values[i].size <= line.data + line.size));
}

static bool try_everywhere(const struct pattern *pattern, struct slice line) {
    struct slice values[PATTERN_NAMES_MAX];
    bool found = false;
    for (size_t at = 0; at <= (pattern->at_start ? 0 : line.size); at++) {
        size_t end = 0;
        if (!pattern_match(pattern, line, at, values, &end))
            continue;
        require(end >= at && end <= line.size);
        require_inside(pattern, line, values);
        found = found || pattern->at_start || (is_begin(line, at) && has_needle(pattern, line, at));
    }
    return found;
}

// The first of the input's forms that has a text in the line. Those that are built in come behind
// all of them, and are inputs themselves.
static const struct form *try_all(struct search *search) {
    const struct form *first = NULL;
    for (uint32_t i = 0; i < forms_count(search->forms); i++) {
        const struct form *form = forms_at(search->forms, i);
        for (uint32_t k = 0; k < form->text_count && !form->is_prefix; k++) {
            const struct pattern *pattern = &form->texts[k].pattern;
            for (size_t at = 0; at < search->line.size; at++)
                search->needles += is_needle(pattern, search->line, at);
            if (first == NULL && !form->is_builtin && try_everywhere(pattern, search->line))
                first = form;
        }
    }
    return first;
}

static void find_prefixes(const struct search *search) {
    struct prefix_walk walk = {0};
    struct form_match match;
    size_t end = 0;
    while (forms_find_prefix(search->forms, search->line, &walk, &match, &end)) {
        require(match.form->is_prefix && end <= search->line.size);
        require_inside(&match.text->pattern, search->line, match.values);
    }
}

static void look_for(struct search *search, struct slice text) {
    struct form_match match;
    search->line = fuzz_block(text);
    search->needles = 0;
    const struct form *expected = try_all(search);
    bool found = forms_find(search->forms, search->line, &match) && !match.is_cut;
    if (search->needles <= NEEDLES_TRIED && match.memo.steps < pattern_steps_max(search->line))
        require((found && !match.form->is_builtin ? match.form : NULL) == expected);
    if (found)
        require_inside(&match.text->pattern, search->line, match.values);
    find_prefixes(search);
    fuzz_block_give(search->line);
}

static void look_for_lines(struct search *search, struct slice lines) {
    while (lines.size > 0 && search->lines++ < LINES_TRIED) {
        struct slice line = text_take_line(&lines);
        line.size = line.size > LINE_SIZE_TRIED ? LINE_SIZE_TRIED : line.size;
        look_for(search, line);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input input = {(const char *)data, size};
    struct slice piece = {"", 0};
    const char *file = "rows";
    struct form_fault fault;
    fuzz_piece(&input, '\0', &piece);
    struct slice text = fuzz_block(piece);
    struct forms *forms = forms_make(&file, &text, 1, &fault);
    struct search search = {.forms = forms};
    for (uint32_t i = 0; forms != NULL && i < forms_count(forms); i++) {
        const struct form *form = forms_at(forms, i);
        for (uint32_t k = 0; k < form->sample_count && !form->is_builtin; k++)
            look_for_lines(&search, form->samples[k].lines);
    }
    search.lines = 0;
    if (forms != NULL)
        look_for_lines(&search, (struct slice){input.at, input.left});
    forms_free(forms);
    fuzz_block_give(text);
    return 0;
}
