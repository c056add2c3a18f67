// SPDX-License-Identifier: Apache-2.0
// Reads a template: checks that it is JSON, drops the blanks between its tokens, so that a body is
// one line, and cuts its strings at the placeholders.
#include "exporters/webhook/template.h"

#include "base/text/cut.h"
#include "base/text/utf8.h"
#include "config/option.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>

enum { CUT_LEAST = 4, CUT_MOST = 10000, SAMPLE_MAX = 4 << 20, NAMES_MAX = 1024 };

// -- values that are given ------------------------------------------------------------------------

static bool is_name(struct slice name) {
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        bool digit = text_is_digit(c) && i > 0;
        if (!digit && !(c >= 'a' && c <= 'z') && c != '_')
            return false;
    }
    return name.size > 0 && name.size <= TEMPLATE_NAME_MAX;
}

const char *template_given_problem(const char *item) {
    struct slice name = text_until(slice_of(item), '=');
    if (item[name.size] != '=' || item[name.size + 1] == '\0')
        return "it is not NAME=VALUE";
    if (!is_name(name))
        return "a name has lower case letters, digits and underscores, begins with no digit, and "
               "has at most 40 characters";
    if (template_value_of(name) != VALUE_NONE)
        return "a verdict has a value of this name";
    return NULL;
}

const char *template_given(const struct text_list *given, struct slice name) {
    for (uint32_t i = 0; i < given->count; i++)
        if (slice_equal(text_until(slice_of(given->items[i]), '='), name))
            return given->items[i] + name.size + 1;
    return NULL;
}

// -- one placeholder ------------------------------------------------------------------------------

struct reader {
    struct body_template *template;
    const struct text_list *given;
    struct template_fault *fault;
    struct slice text;
    size_t at;
    uint32_t line;
    size_t line_at; // where the line begins
    bool used[TEMPLATE_GIVEN_MAX];
    struct buffer raw; // since the last placeholder
};

// Says what is wrong at the place that is read; false.
static bool wrong(const struct reader *reader, const char *format, ...) PRINTF_LIKE(2, 3);
static bool wrong(const struct reader *reader, const char *format, ...) {
    va_list arguments;
    assert(reader->at >= reader->line_at);
    va_start(arguments, format);
    vsnprintf(reader->fault->text, sizeof reader->fault->text, format, arguments);
    va_end(arguments);
    reader->fault->line = reader->line;
    reader->fault->column = (uint32_t)(reader->at - reader->line_at + 1);
    return false;
}

static bool name_read(struct reader *reader, struct slice name, struct template_piece *piece) {
    piece->value = template_value_of(name);
    if (piece->value != VALUE_NONE)
        return true;
    for (uint32_t i = 0; i < reader->given->count; i++)
        if (slice_equal(text_until(slice_of(reader->given->items[i]), '='), name)) {
            piece->value = VALUE_GIVEN;
            piece->name = name;
            reader->used[i] = true;
            return true;
        }
    struct buffer names;
    buffer_init(&names, NAMES_MAX);
    template_list_names(&names);
    (void)wrong(
        reader, "there is no value \"%.*s\": give it in template_values, or take one of %.*s",
        (int)utf8_cut(name, TEMPLATE_NAME_MAX).size, name.data, (int)names.size, names.data);
    buffer_release(&names);
    return false;
}

static bool is_value(const char *const *all, struct slice value) {
    for (; *all != NULL; all++)
        if (slice_equal(value, slice_of(*all)))
            return true;
    return false;
}

static bool item_add(struct reader *reader, struct slice item, struct template_piece *piece) {
    struct slice from = text_until(item, '=');
    const char *const *all = template_values_of(piece->value);
    bool others = slice_equal(from, SLICE("*"));
    if (piece->item_count == TEMPLATE_ITEMS_MAX)
        return wrong(reader, "more than %d values are replaced", TEMPLATE_ITEMS_MAX);
    if (all != NULL && !others && !is_value(all, from))
        return wrong(reader, "the value is never \"%.*s\"", (int)utf8_cut(from, 40).size,
                     from.data);
    for (uint32_t i = 0; i < piece->item_count; i++)
        if (piece->items[i].others || (!others && slice_equal(piece->items[i].from, from)))
            return wrong(reader, "\"%.*s\" is replaced already", (int)utf8_cut(from, 40).size,
                         from.data);
    piece->items[piece->item_count++] = (struct template_item){
        .from = from, .to = text_from(item, from.size + 1), .others = others};
    return true;
}

// A value that is one of few is replaced for all of them or for none.
static bool items_complete(struct reader *reader, const struct template_piece *piece) {
    const char *const *all = template_values_of(piece->value);
    if (all == NULL || piece->item_count == 0)
        return true;
    for (; *all != NULL; all++) {
        bool found = false;
        for (uint32_t i = 0; i < piece->item_count && !found; i++)
            found = piece->items[i].others || slice_equal(piece->items[i].from, slice_of(*all));
        if (!found)
            return wrong(reader, "it is not said what stands for \"%s\"; *=TEXT is for all others",
                         *all);
    }
    return true;
}

static bool item_read(struct reader *reader, struct slice item, struct template_piece *piece) {
    uint64_t cut;
    if (memchr(item.data, '=', item.size) != NULL)
        return item_add(reader, item, piece);
    item = text_trim(item);
    if (slice_equal(item, SLICE("slack"))) {
        piece->slack = true;
        return true;
    }
    if (text_skip(&item, SLICE("cut ")) && text_number(item, 5, &cut) && cut >= CUT_LEAST &&
        cut <= CUT_MOST && piece->cut == 0) {
        piece->cut = (uint32_t)cut;
        return true;
    }
    return wrong(reader, "behind a bar stands FROM=TO, slack, or once `cut N` with N from %d to %d",
                 CUT_LEAST, CUT_MOST);
}

static bool placeholder_parse(struct reader *reader, struct slice inner,
                              struct template_piece *piece) {
    struct slice name = text_until(inner, '|');
    struct slice rest = text_from(inner, name.size);
    if (!name_read(reader, text_trim(name), piece))
        return false;
    if (piece->value == VALUE_GIVEN && rest.size > 0)
        return wrong(reader, "a value of template_values is taken as it is");
    piece->items = arena_zero(&reader->template->arena, TEMPLATE_ITEMS_MAX, sizeof *piece->items);
    while (rest.size > 0) {
        rest = text_from(rest, 1);
        struct slice item = text_until(rest, '|');
        if (!item_read(reader, item, piece))
            return false;
        rest = text_from(rest, item.size);
    }
    return items_complete(reader, piece);
}

static bool piece_add(struct reader *reader, struct template_piece piece) {
    struct body_template *template = reader->template;
    if (template->piece_count == TEMPLATE_PIECES_MAX)
        return wrong(reader, "there are more than %d placeholders", TEMPLATE_PIECES_MAX - 1);
    piece.raw = arena_copy(&template->arena, buffer_slice(&reader->raw));
    buffer_reset(&reader->raw);
    template->pieces[template->piece_count++] = piece;
    return true;
}

// At "{{" in a string.
static bool placeholder_read(struct reader *reader) {
    struct slice inner = text_from(reader->text, reader->at + 2), behind;
    if (!text_find(inner, SLICE("}}"), &behind))
        return wrong(reader, "a placeholder begins here and does not end");
    inner.size = (size_t)(behind.data - inner.data) - 2;
    if (memchr(inner.data, '"', inner.size) != NULL || memchr(inner.data, '\\', inner.size) != NULL)
        return wrong(reader,
                     "a placeholder begins here and does not end before a quote or a "
                     "backslash; \\u007b is a brace that begins none");
    struct template_piece piece = {.value = VALUE_NONE};
    if (!placeholder_parse(reader, inner, &piece) || !piece_add(reader, piece))
        return false;
    reader->at += inner.size + 4;
    return true;
}

// -- the text -------------------------------------------------------------------------------------

static void string_byte(struct reader *reader, bool *in_string) {
    const char *at = reader->text.data + reader->at;
    size_t size = *at == '\\' ? 2 : 1;
    *in_string = *at != '"';
    buffer_append(&reader->raw, (struct slice){at, size});
    reader->at += size;
}

// A byte between two tokens, or of one that is no string.
static void token_byte(struct reader *reader, bool *in_string) {
    char c = reader->text.data[reader->at++];
    *in_string = c == '"';
    if (c == '\n') {
        reader->line++;
        reader->line_at = reader->at;
    }
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n')
        buffer_append_char(&reader->raw, c);
}

static bool pieces_read(struct reader *reader) {
    bool in_string = false;
    while (reader->at < reader->text.size) {
        bool begins = in_string && text_begins(text_from(reader->text, reader->at), SLICE("{{"));
        if (begins && !placeholder_read(reader))
            return false;
        if (begins)
            continue;
        if (in_string)
            string_byte(reader, &in_string);
        else
            token_byte(reader, &in_string);
    }
    assert(!in_string && !reader->raw.failed); // it is JSON
    if (!piece_add(reader, (struct template_piece){.value = VALUE_NONE}))
        return false;
    reader->line = 0;
    for (uint32_t i = 0; i < reader->given->count; i++)
        if (!reader->used[i]) {
            struct slice name = text_until(slice_of(reader->given->items[i]), '=');
            return wrong(reader, "the value %.*s of template_values does not occur in it",
                         (int)name.size, name.data);
        }
    return true;
}

static bool is_json(struct slice text, struct template_fault *fault) {
    json_error_t error;
    json_t *document = json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, &error);
    json_decref(document);
    if (document != NULL)
        return true;
    fault->line = error.line > 0 ? (uint32_t)error.line : 1;
    fault->column = error.column > 0 ? (uint32_t)error.column : 1;
    snprintf(fault->text, sizeof fault->text, "it is not JSON: %.200s", error.text);
    return false;
}

// -- a made-up verdict ----------------------------------------------------------------------------

static bool sample_is_json(const struct body_template *template, const struct text_list *given,
                           struct template_fault *fault) {
    static char name[] = "a\"b\\c\n</script>\x01\x7f\xff\xf0\x9f\x98\x80";
    struct slice hostile = {name, sizeof name - 1};
    struct entity entities[] = {{"rank", hostile, ROLE_CULPRIT}, {"node", hostile, ROLE_SUSPECT}};
    struct evidence evidence = {.uid = hostile, .description = hostile};
    struct verdict verdict = {.id = "sample:0123456789abcdef",
                              .pattern = "sample",
                              .kind = "sample",
                              .job = STRING_NONE,
                              .headline = hostile,
                              .remediation = hostile,
                              .action = "none",
                              .entities = entities,
                              .entity_count = 2,
                              .evidence = &evidence,
                              .evidence_count = 1};
    struct buffer text, line, body;
    buffer_init(&text, SAMPLE_MAX);
    buffer_init(&line, SAMPLE_MAX);
    buffer_init(&body, SAMPLE_MAX);
    template_render(template, &verdict, &text, &line);
    bool good = template_fill(buffer_slice(&line), given, &body) && !line.failed && !body.failed;
    good = good && memchr(body.data, '\n', body.size) == body.data + body.size - 1;
    good = good && is_json(buffer_slice(&body), fault);
    if (!good) {
        fault->line = fault->column = 0;
        snprintf(fault->text, sizeof fault->text,
                 "with a made-up verdict it does not give JSON, or too much of it");
    }
    buffer_release(&text);
    buffer_release(&line);
    buffer_release(&body);
    return good;
}

// -- the file -------------------------------------------------------------------------------------

bool template_parse(struct body_template *template, struct slice text,
                    const struct text_list *given, struct template_fault *fault) {
    assert(given->count <= TEMPLATE_GIVEN_MAX);
    *fault = (struct template_fault){.line = 0};
    *template = (struct body_template){.piece_count = 0};
    arena_init(&template->arena, TEMPLATE_SIZE_MAX);
    if (!is_json(text, fault))
        return false;
    struct reader reader = {.template = template,
                            .given = given,
                            .fault = fault,
                            .text = arena_copy(&template->arena, text),
                            .line = 1};
    template->pieces = arena_zero(&template->arena, TEMPLATE_PIECES_MAX, sizeof *template->pieces);
    buffer_init(&reader.raw, TEMPLATE_SIZE_MAX);
    bool good = pieces_read(&reader);
    buffer_release(&reader.raw);
    return good && sample_is_json(template, given, fault);
}

bool template_read(struct body_template *template, const char *path, const struct text_list *given,
                   struct template_fault *fault) {
    static char text[TEMPLATE_SIZE_MAX + 1];
    *fault = (struct template_fault){.line = 0};
    *template = (struct body_template){.piece_count = 0};
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        snprintf(fault->text, sizeof fault->text, "cannot read it: %s", strerror(errno));
        return false;
    }
    size_t size = fread(text, 1, sizeof text, file);
    bool failed = ferror(file) != 0;
    fclose(file);
    if (failed || size > TEMPLATE_SIZE_MAX) {
        snprintf(fault->text, sizeof fault->text, "%s",
                 failed ? "cannot read it" : "it has more than 64 KiB");
        return false;
    }
    return template_parse(template, (struct slice){text, size}, given, fault);
}

void template_release(struct body_template *template) {
    arena_release(&template->arena);
    *template = (struct body_template){.piece_count = 0};
}
