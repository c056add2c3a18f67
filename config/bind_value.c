// SPDX-License-Identifier: Apache-2.0
// Converts texts to the type of their option.
//
// One reader for each type; each gives either the value or a clause that says what is wrong. The
// text shown is the one that was written: what a reference stands for may be a secret.
#include "config/bind_value.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SHOWN_MAX = 60, WHY_MAX = 1024 };

// What is read: from a document or from a row's default.
struct reading {
    const char *text;
    bool quoted; // and not filled in: not a number, not a truth value
    bool hidden; // `text` must be in no message
    char shown[SHOWN_MAX + 8];
};

static void shown_set(struct reading *reading, const char *written) {
    assert(written != NULL);
    size_t length = strnlen(written, SHOWN_MAX + 1);
    bool cut = length > SHOWN_MAX;
    length = cut ? SHOWN_MAX : length;
    while (cut && length > 0 && ((unsigned char)written[length] & 0xc0) == 0x80)
        length--;
    snprintf(reading->shown, sizeof reading->shown, "'%.*s'%s", (int)length, written,
             cut ? "..." : "");
}

static struct reading reading_of(const struct node *node) {
    assert(node->type == NODE_TEXT);
    struct reading reading = {
        .text = node->text, .quoted = node->quoted && !node->expanded, .hidden = node->expanded};
    shown_set(&reading, node->written);
    return reading;
}

static bool wrong(char why[WHY_MAX], const struct reading *reading, const char *clause) {
    assert(why != NULL);
    snprintf(why, WHY_MAX, "%s %s", reading->shown, clause);
    return false;
}

static bool range_wrong(char why[WHY_MAX], const struct reading *reading,
                        const struct option *row) {
    char range[OPTION_RANGE_MAX];
    option_range(row, range);
    snprintf(why, WHY_MAX, "%s is out of range; it must be %s", reading->shown, range);
    return false;
}

static bool in_range(const struct option *row, double value) {
    assert(row->min <= row->max);
    return (row->min == 0 && row->max == 0) || (value >= row->min && value <= row->max);
}

static bool quoted_wrong(char why[WHY_MAX], const struct reading *reading, const char *what) {
    snprintf(why, WHY_MAX, "%s is quoted; write the %s without quotes", reading->shown, what);
    return false;
}

static bool read_bool(const struct reading *reading, bool *out, char why[WHY_MAX]) {
    bool on = strcmp(reading->text, "true") == 0;
    if (!on && strcmp(reading->text, "false") != 0)
        return wrong(why, reading, "is neither true nor false");
    if (reading->quoted)
        return quoted_wrong(why, reading, "word");
    *out = on;
    return true;
}

static bool read_int(const struct option *row, const struct reading *reading, int64_t *out,
                     char why[WHY_MAX]) {
    const char *digits = reading->text + (*reading->text == '-');
    if (*digits == '\0' || strspn(digits, "0123456789") != strlen(digits))
        return wrong(why, reading, "is not a whole number");
    if (reading->quoted)
        return quoted_wrong(why, reading, "number");
    errno = 0;
    int64_t value = strtoll(reading->text, NULL, 10);
    if (errno == ERANGE && row->min == 0 && row->max == 0)
        return wrong(why, reading, "is too large; it must be below 2^63");
    if (errno == ERANGE || !in_range(row, (double)value))
        return range_wrong(why, reading, row);
    *out = value;
    return true;
}

static bool read_ratio(const struct option *row, const struct reading *reading, double *out,
                       char why[WHY_MAX]) {
    const char *text = reading->text;
    char *end = NULL;
    double value = strtod(text, &end);
    bool number = *text != '\0' && strspn(text, "0123456789+-.eE") == strlen(text);
    if (!number && end != text && strcmp(end, "%") == 0)
        return wrong(why, reading, "is not a number; write 0.25 for 25%");
    if (!number || *end != '\0' || end == text)
        return wrong(why, reading, "is not a number");
    if (reading->quoted)
        return quoted_wrong(why, reading, "number");
    if (!in_range(row, value))
        return range_wrong(why, reading, row);
    *out = value;
    return true;
}

static bool read_duration(const struct option *row, const struct reading *reading,
                          struct duration *out, char why[WHY_MAX]) {
    char reason[160];
    struct duration value;
    if (row->special != NULL && strcmp(reading->text, row->special) == 0) {
        out->ns = DURATION_SPECIAL;
        return true;
    }
    if (!option_parse_duration(reading->text, &value, reason)) {
        if (reading->hidden)
            return wrong(why, reading, "does not give a duration like 300ms or 1h30m");
        snprintf(why, WHY_MAX, "%s%s%s", reason, row->special == NULL ? "" : ", or ",
                 row->special == NULL ? "" : row->special);
        return false;
    }
    if (!in_range(row, (double)value.ns / 1e9))
        return range_wrong(why, reading, row);
    *out = value;
    return true;
}

static bool read_size(const struct option *row, const struct reading *reading,
                      struct byte_size *out, char why[WHY_MAX]) {
    char reason[160];
    struct byte_size value;
    if (!option_parse_size(reading->text, &value, reason)) {
        if (reading->hidden)
            return wrong(why, reading, "does not give a size like 64KiB or 20MiB");
        snprintf(why, WHY_MAX, "%s", reason);
        return false;
    }
    if (!in_range(row, (double)value.bytes))
        return range_wrong(why, reading, row);
    *out = value;
    return true;
}

static bool read_choice(const struct option *row, const struct reading *reading, int *out,
                        char why[WHY_MAX]) {
    assert(row->choices != NULL);
    size_t count = 0;
    for (; row->choices[count] != NULL; count++) {
        if (strcmp(row->choices[count], reading->text) == 0) {
            *out = (int)count;
            return true;
        }
    }
    char range[OPTION_RANGE_MAX];
    option_range(row, range);
    const char *near = reading->hidden ? NULL : option_nearest(reading->text, row->choices, count);
    if (near != NULL)
        snprintf(why, WHY_MAX, "%s is not one of them; did you mean '%s'? It must be %s",
                 reading->shown, near, range);
    else
        snprintf(why, WHY_MAX, "%s is not one of them; it must be %s", reading->shown, range);
    return false;
}

// One text into the field of every type that is one text.
static bool read_text(const struct binder *binder, const struct option *row,
                      const struct reading *reading, void *field, char why[WHY_MAX]) {
    switch (row->type) {
    case OPTION_BOOL:
        return read_bool(reading, field, why);
    case OPTION_INT:
        return read_int(row, reading, field, why);
    case OPTION_RATIO:
        return read_ratio(row, reading, field, why);
    case OPTION_DURATION:
        return read_duration(row, reading, field, why);
    case OPTION_SIZE:
        return read_size(row, reading, field, why);
    case OPTION_CHOICE:
        return read_choice(row, reading, field, why);
    case OPTION_TEXT:
        *(const char **)field = arena_text(binder->arena, slice_of(reading->text));
        return true;
    case OPTION_SECRET:
        ((struct secret *)field)->hidden = arena_text(binder->arena, slice_of(reading->text));
        return true;
    case OPTION_TEXT_LIST:
    case OPTION_GROUP:
        break;
    }
    assert(false && "a type that is not one text");
    return false;
}

// The items of "[a, b]", or the one text; what stands between them is dropped.
static void default_list(const struct binder *binder, const char *text, struct text_list *out) {
    assert(text != NULL);
    const char **items = arena_take(binder->arena, (strlen(text) + 1) * sizeof *items);
    uint32_t count = 0;
    for (const char *at = text + strspn(text, "[], \""); *at != '\0'; at += strspn(at, "[], \"")) {
        size_t length = strcspn(at, "[],\"");
        items[count++] = arena_text(binder->arena, (struct slice){at, length});
        at += length;
    }
    *out = (struct text_list){items, count};
}

void bind_default(const struct binder *binder, const struct option *row, void *field) {
    assert(field != NULL && row->type != OPTION_GROUP);
    if (row->default_value == NULL)
        return;
    if (row->type == OPTION_TEXT_LIST) {
        default_list(binder, row->default_value, field);
        return;
    }
    struct reading reading = {.text = row->default_value};
    shown_set(&reading, row->default_value);
    char why[WHY_MAX];
    bool read = read_text(binder, row, &reading, field, why);
    assert(read);
    (void)read;
}

static bool is_truth_value(const char *text) {
    static const char *const WORDS[] = {"true", "false", "yes", "no", "on", "off"};
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++)
        if (strcasecmp(WORDS[i], text) == 0)
            return true;
    return false;
}

static bool is_number(const char *text) {
    char *end = NULL;
    if (text[strspn(text, "0123456789abcdefABCDEFxX.+-")] != '\0')
        return false; // "nan", "infinity"
    (void)strtod(text, &end);
    return end != text && *end == '\0';
}

// What YAML takes for something else than a text, where it is not in quotes; NULL: it is a text. On
// the command line a shell has taken the quotes, and what was filled in is never read as YAML. A
// port is told better by the rule for endpoints.
static const char *other_type(const struct option *row, const struct node *node) {
    if (node->quoted || node->expanded || node->unknown || node->where.file == NULL)
        return NULL;
    if (is_truth_value(node->text))
        return "a truth value";
    return is_number(node->text) && row->claim != CLAIM_ENDPOINT ? "a number" : NULL;
}

static bool is_text(const struct binder *binder, const struct option *row, const struct node *node,
                    const char *key) {
    const char *other = other_type(row, node);
    if (other == NULL)
        return true;
    struct reading reading = reading_of(node);
    problem_add_at(binder->problems, node->where, key,
                   "%s is %s, and a text is needed; write it in quotes if it is meant so",
                   row->hidden ? "it" : reading.shown, other);
    return false;
}

static bool bind_list(const struct binder *binder, const struct option *row,
                      const struct node *list, const char *key, struct text_list *out) {
    assert(list->type == NODE_LIST);
    const char **items = arena_take(binder->arena, (list->count + 1) * sizeof *items);
    bool good = true;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct node *item = list->entries[i].value;
        const char *item_key = arena_format(binder->arena, "%s[%u]", key, i);
        items[i] = item->type == NODE_TEXT ? item->text : "";
        if (item->type == NODE_TEXT) {
            good = is_text(binder, row, item, item_key) && good;
            continue;
        }
        good = false;
        problem_add_at(binder->problems, item->where, item_key, "%s%s; each item must be a text",
                       item->type == NODE_NULL ? "" : "is a ",
                       item->type == NODE_NULL ? "is empty" : node_type_name(item->type));
    }
    if (good)
        *out = (struct text_list){items, list->count};
    return good;
}

static void secret_warn(const struct binder *binder, const struct node *node, const char *key) {
    if (!node->expanded)
        problem_add_at(binder->warnings, node->where, key,
                       "a secret in plain text; prefer ${file:/path/to/it} or ${env:NAME}");
}

// A text that was not looked up stands for itself where any text will do; numbers keep their
// default.
static bool bind_unknown(const struct binder *binder, const struct option *row,
                         const struct node *node, void *field) {
    if (row->type == OPTION_TEXT || row->type == OPTION_SECRET) {
        struct reading reading = {.text = node->written};
        return read_text(binder, row, &reading, field, NULL);
    }
    return true;
}

bool bind_value(const struct binder *binder, const struct option *row, const struct node *node,
                struct location key_where, const char *key, void *field) {
    assert(field != NULL && row->type != OPTION_GROUP);
    if (node->type == NODE_NULL) {
        problem_add_at(binder->problems, key_where, key, "is empty; give it a %s or remove the key",
                       option_type_name(row->type));
        return false;
    }
    if (node->type == NODE_LIST && row->type == OPTION_TEXT_LIST)
        return bind_list(binder, row, node, key, field);
    if (node->type != NODE_TEXT) {
        problem_add_at(binder->problems, node->where, key, "must be a %s, not a %s",
                       option_type_name(row->type), node_type_name(node->type));
        return false;
    }
    if ((row->type == OPTION_TEXT || row->type == OPTION_TEXT_LIST) &&
        !is_text(binder, row, node, key))
        return false;
    if (row->type == OPTION_TEXT_LIST) {
        const char **items = arena_take(binder->arena, sizeof *items);
        items[0] = node->text;
        *(struct text_list *)field = (struct text_list){items, 1};
        return true;
    }
    if (node->unknown)
        return bind_unknown(binder, row, node, field);
    if (row->type == OPTION_SECRET)
        secret_warn(binder, node, key);
    struct reading reading = reading_of(node);
    char why[WHY_MAX];
    if (read_text(binder, row, &reading, field, why))
        return true;
    problem_add_at(binder->problems, node->where, key, "%s", why);
    return false;
}
