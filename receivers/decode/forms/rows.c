// SPDX-License-Identifier: Apache-2.0
// Line by line; a row is complete when the next one begins, or the file ends.
#include "receivers/decode/forms/rows.h"

#include "base/text/cut.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

const char *const FORM_ROLES[] = {"own",    "lost_peer", "waited", "told",
                                  "report", "outside",   "caught", NULL};

struct reader {
    struct form_rows *rows;
    const char *file;
    bool is_builtin;
    struct slice family;
    struct form *form; // NULL: no row has begun
    const char *line;  // the one at hand
    uint32_t number;
};

static bool fail(struct reader *reader, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool fail(struct reader *reader, const char *at, const char *format, ...) {
    struct form_fault *fault = &reader->rows->fault;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fault->words, sizeof fault->words, format, arguments);
    va_end(arguments);
    fault->file = reader->file;
    fault->line = reader->number;
    fault->column = (uint32_t)(at - reader->line) + 1;
    reader->rows->failed = true;
    return false;
}

// -- names ----------------------------------------------------------------------------------------

static bool fact_of(struct slice name, enum fact_key *key) {
    for (int i = 0; i < FACT_KEY_COUNT; i++)
        if (slice_equal(slice_of(fact_name((enum fact_key)i)), name)) {
            *key = (enum fact_key)i;
            return true;
        }
    return false;
}

static bool name_of(struct slice name, struct form_name *out) {
    *out = (struct form_name){0};
    if (slice_equal(name, SLICE("rank")))
        out->target = TARGET_RANK;
    else if (slice_equal(name, SLICE("host")))
        out->target = TARGET_HOST;
    else if (slice_equal(name, SLICE("exit_code")))
        out->target = TARGET_EXIT_CODE;
    else
        return fact_of(name, &out->fact);
    return true;
}

static const struct {
    struct slice name;
    enum form_target target;
    enum pattern_type type;
} PLACES[] = {
    {{"rank", 4}, TARGET_RANK, PATTERN_INT},
    {{"local_rank", 10}, TARGET_LOCAL_RANK, PATTERN_INT},
    {{"task", 4}, TARGET_TASK, PATTERN_INT},
    {{"pid", 3}, TARGET_PID, PATTERN_INT},
    {{"host", 4}, TARGET_HOST, PATTERN_NAME},
    {{"pod", 3}, TARGET_POD, PATTERN_NAME},
    {{"namespace", 9}, TARGET_NAMESPACE, PATTERN_NAME},
    {{"container", 9}, TARGET_CONTAINER, PATTERN_NAME},
    {{"address", 7}, TARGET_ADDRESS, PATTERN_ADDRESS},
    {{"program", 7}, TARGET_PROGRAM, PATTERN_NAME},
    {{"writer", 6}, TARGET_WRITER, PATTERN_NAME},
    {{"time", 4}, TARGET_TIME, PATTERN_TIME},
};
enum { PLACE_COUNT = sizeof PLACES / sizeof *PLACES };

static int place_of(struct slice name) {
    int i = 0;
    while (i < PLACE_COUNT && !slice_equal(PLACES[i].name, name))
        i++;
    return i;
}

static bool place_type_of(struct slice name, enum pattern_type *type, char *words, size_t size) {
    int i = place_of(name);
    if (i < PLACE_COUNT)
        *type = PLACES[i].type;
    else
        snprintf(words, size,
                 "'%.*s' is no name of a prefix: rank, local_rank, task, pid, host, pod, "
                 "namespace, container, address, program, writer, time",
                 (int)name.size, name.data);
    return i < PLACE_COUNT;
}

static bool type_of(struct slice name, enum pattern_type *type, char *words, size_t size) {
    struct form_name known;
    if (!name_of(name, &known)) {
        snprintf(words, size, "'%.*s' is no name of a part; `culprit forms --names` lists them",
                 (int)name.size, name.data);
        return false;
    }
    if (known.target == TARGET_HOST) {
        *type = PATTERN_NAME;
    } else if (known.target != TARGET_FACT) {
        *type = PATTERN_INT;
    } else if (known.fact == FACT_SIGNAL) {
        *type = PATTERN_SIGNAL;
    } else {
        switch (fact_type(known.fact)) {
        case FACT_NUMBER:
            *type = PATTERN_INT;
            break;
        case FACT_PCI_ADDRESS:
            *type = PATTERN_PCI;
            break;
        case FACT_TEXT:
            *type =
                known.fact == FACT_MESSAGE || known.fact == FACT_ERROR || known.fact == FACT_REASON
                    ? PATTERN_TEXT
                    : PATTERN_WORD;
            break;
        case FACT_YES_NO:
            snprintf(words, size, "'%.*s' is yes or no: give it with `set`", (int)name.size,
                     name.data);
            return false;
        }
    }
    return true;
}

// -- rows -----------------------------------------------------------------------------------------

static bool is_identifier(struct slice text) {
    for (size_t i = 0; i < text.size; i++)
        if (!islower((unsigned char)text.data[i]) && text.data[i] != '_' &&
            !text_is_digit(text.data[i]))
            return false;
    return text.size > 0;
}

static struct slice take_field(struct slice *line) {
    struct slice word = text_until_any(*line, " \t");
    *line = text_from(*line, word.size);
    text_skip_blanks(line);
    return word;
}

static bool has_target(const struct form *form, enum form_target target) {
    uint32_t i = 0;
    while (i < form->path_count && form->paths[i].target != target)
        i++;
    return i < form->path_count;
}

static bool end_row(struct reader *reader) {
    struct form *form = reader->form;
    if (form == NULL)
        return true;
    bool is_form = !form->is_prefix && !form->is_envelope;
    const char *missing = form->is_envelope && !has_target(form, TARGET_MESSAGE) ? "message"
                          : !form->is_envelope && form->text_count == 0          ? "text"
                          : is_form && form->kind == OBSERVATION_NONE            ? "kind"
                          : form->sample_count == 0                              ? "sample"
                                                                                 : NULL;
    if (missing == NULL)
        return true;
    reader->number = form->line;
    return fail(reader, reader->line, "%.*s: the row lacks a `%s`", (int)form->name.size,
                form->name.data, missing);
}

// The row of this name among the users': of those that are built in the tests know that no two
// have one name.
static const struct form *form_of(const struct form_rows *rows, struct slice name) {
    for (uint32_t i = 0; i < rows->count && !rows->forms[i]->is_builtin; i++)
        if (slice_equal(rows->forms[i]->name, name))
            return rows->forms[i];
    return NULL;
}

static bool begin_row(struct reader *reader, struct slice rest, struct slice sort) {
    struct form_rows *rows = reader->rows;
    struct slice name = take_field(&rest);
    if (!is_identifier(name))
        return fail(reader, name.data, "a row has a name of small letters, digits and '_'");
    const struct form *other = form_of(rows, name);
    if (other != NULL && !reader->is_builtin)
        return fail(reader, name.data, "there is a form %.*s already, at %s:%u", (int)name.size,
                    name.data, other->file, other->line);
    if (rows->count == FORMS_MAX)
        return fail(reader, name.data, "more than %d rows", FORMS_MAX);
    reader->form = arena_zero(rows->arena, 1, sizeof *reader->form);
    reader->form->name = name;
    reader->form->family = reader->family;
    reader->form->file = reader->file;
    reader->form->line = reader->number;
    reader->form->is_builtin = reader->is_builtin;
    reader->form->is_prefix = slice_equal(sort, SLICE("prefix"));
    reader->form->is_envelope = slice_equal(sort, SLICE("envelope"));
    if (other != NULL) // read, and not used
        return true;
    if (rows->count == rows->capacity) {
        rows->capacity = rows->capacity == 0 ? 64 : 2 * rows->capacity;
        rows->forms = arena_enlarge(rows->arena, rows->forms, rows->count, rows->capacity,
                                    sizeof *rows->forms);
    }
    rows->forms[rows->count++] = reader->form;
    return true;
}

static bool add_text(struct reader *reader, struct slice value, bool first) {
    struct form *form = reader->form;
    struct form_text **texts = first ? &form->texts : &form->then;
    uint32_t *count = first ? &form->text_count : &form->then_count;
    uint32_t most = first ? FORM_TEXTS_MAX : FORM_THEN_MAX;
    struct pattern_fault fault;
    if (*count == most)
        return fail(reader, value.data, "more than %u of these in a row", most);
    *texts = arena_enlarge(reader->rows->arena, *texts, *count, *count + 1, sizeof **texts);
    struct form_text *text = &(*texts)[(*count)++];
    *text = (struct form_text){0};
    bool prefix = form->is_prefix;
    if (!pattern_compile(value, first && !prefix, prefix ? place_type_of : type_of,
                         reader->rows->arena, &text->pattern, &fault))
        return fail(reader, value.data + fault.offset, "%s", fault.words);
    for (uint32_t i = 0; i < text->pattern.name_count; i++)
        if (prefix)
            text->names[i].target = PLACES[place_of(text->pattern.names[i])].target;
        else
            name_of(text->pattern.names[i], &text->names[i]);
    return true;
}

static bool set_kind(struct reader *reader, struct slice value, enum observation_kind *kind) {
    for (int i = OBSERVATION_NONE + 1; i < OBSERVATION_KIND_COUNT; i++)
        if (slice_equal(slice_of(observation_name((enum observation_kind)i)), value)) {
            *kind = (enum observation_kind)i;
            return true;
        }
    return fail(reader, value.data, "'%.*s' is no kind; `culprit forms --names` lists them",
                (int)value.size, value.data);
}

static bool set_role(struct reader *reader, struct slice value) {
    for (int i = 0; FORM_ROLES[i] != NULL; i++)
        if (slice_equal(slice_of(FORM_ROLES[i]), value)) {
            reader->form->role = value;
            reader->form->is_report =
                slice_equal(value, SLICE("report")) || slice_equal(value, SLICE("outside"));
            return true;
        }
    return fail(reader, value.data,
                "a role is own, lost_peer, waited, told, report, outside or caught");
}

// "signal=9"
static bool read_setting(struct reader *reader, struct slice value, struct form_set *set) {
    struct slice name = text_until(value, '=');
    uint64_t number;
    *set = (struct form_set){0};
    if (name.size == value.size)
        return fail(reader, value.data, "set NAME=VALUE");
    struct slice given = text_from(value, name.size + 1);
    if (!fact_of(name, &set->fact))
        return fail(reader, name.data, "'%.*s' is no name; `culprit forms --names` lists them",
                    (int)name.size, name.data);
    bool yes = slice_equal(given, SLICE("yes"));
    set->text = given;
    switch (fact_type(set->fact)) {
    case FACT_NUMBER:
        if (!text_number(given, 18, &number))
            return fail(reader, given.data, "a number is needed");
        set->number = (int64_t)number;
        break;
    case FACT_YES_NO:
        if (!yes && !slice_equal(given, SLICE("no")))
            return fail(reader, given.data, "yes or no is needed");
        set->number = yes;
        break;
    case FACT_TEXT:
        break;
    case FACT_PCI_ADDRESS:
        return fail(reader, name.data, "a PCI address stands in a text only");
    }
    return true;
}

static bool add_set(struct reader *reader, struct slice value) {
    struct form *form = reader->form;
    if (form->set_count == FORM_SETS_MAX)
        return fail(reader, value.data, "more than %d of these in a row", FORM_SETS_MAX);
    return read_setting(reader, value, &form->sets[form->set_count++]);
}

// "signal=9 victim=yes"
static bool add_when(struct reader *reader, struct slice value) {
    struct form *form = reader->form;
    struct slice said = take_field(&value);
    if (form->when_count == FORM_WHENS_MAX)
        return fail(reader, said.data, "more than %d of these in a row", FORM_WHENS_MAX);
    struct form_when *when = &form->whens[form->when_count++];
    return read_setting(reader, said, &when->said) && read_setting(reader, value, &when->set);
}

static struct slice joined(struct arena *arena, struct slice first, struct slice second) {
    char *both = arena_take(arena, first.size + 1 + second.size);
    memcpy(both, first.data, first.size);
    both[first.size] = '\n';
    memcpy(both + first.size + 1, second.data, second.size);
    return (struct slice){both, first.size + 1 + second.size};
}

static bool add_sample(struct reader *reader, struct slice value, bool is_not) {
    struct form *form = reader->form;
    if (form->sample_count == FORM_SAMPLES_MAX)
        return fail(reader, value.data, "more than %d of these in a row", FORM_SAMPLES_MAX);
    form->samples = arena_enlarge(reader->rows->arena, form->samples, form->sample_count,
                                  form->sample_count + 1, sizeof *form->samples);
    form->samples[form->sample_count++] =
        (struct form_sample){.lines = value, .is_not = is_not, .line = reader->number};
    return true;
}

static bool is_any(struct slice name, const char *const *words) {
    while (*words != NULL && !slice_equal(slice_of(*words), name))
        words++;
    return *words != NULL;
}

// -- envelopes ------------------------------------------------------------------------------------

static const struct {
    struct slice name;
    enum form_target target;
} KEY_FIELDS[] = {
    {{"message", 7}, TARGET_MESSAGE},
    {{"time", 4}, TARGET_TIME},
    {{"arrived", 7}, TARGET_ARRIVED},
    {{"host", 4}, TARGET_HOST},
    {{"pod", 3}, TARGET_POD},
    {{"namespace", 9}, TARGET_NAMESPACE},
    {{"container", 9}, TARGET_CONTAINER},
    {{"address", 7}, TARGET_ADDRESS},
    {{"program", 7}, TARGET_PROGRAM},
    {{"transport", 9}, TARGET_TRANSPORT},
    {{"writer", 6}, TARGET_WRITER},
    {{"pid", 3}, TARGET_PID},
    {{"rank", 4}, TARGET_RANK},
    {{"local_rank", 10}, TARGET_LOCAL_RANK},
    {{"stream", 6}, TARGET_STREAM},
    {{"part", 4}, TARGET_PART},
    {{"path", 4}, TARGET_PATH},
    {{"needs", 5}, TARGET_NEEDS},
    {{"list", 4}, TARGET_LIST},
};
enum { KEY_FIELD_COUNT = sizeof KEY_FIELDS / sizeof *KEY_FIELDS };

static bool add_path(struct reader *reader, enum form_target target, struct slice path) {
    struct form *form = reader->form;
    uint32_t lists = 0;
    for (uint32_t i = 0; i < form->path_count; i++)
        lists += form->paths[i].target == TARGET_LIST;
    if (path.size > FORM_PATH_SIZE_MAX)
        return fail(reader, path.data, "more than %d bytes", FORM_PATH_SIZE_MAX);
    if (target == TARGET_LIST && lists == FORM_LISTS_MAX)
        return fail(reader, path.data, "more than %d lists, one in another", FORM_LISTS_MAX);
    if (form->path_count == FORM_PATHS_MAX)
        return fail(reader, path.data, "more than %d paths in a row", FORM_PATHS_MAX);
    if (reader->rows->paths == FORMS_PATHS_MAX)
        return fail(reader, path.data, "more than %d paths in all rows", FORMS_PATHS_MAX);
    form->paths = arena_enlarge(reader->rows->arena, form->paths, form->path_count,
                                form->path_count + 1, sizeof *form->paths);
    form->paths[form->path_count++] = (struct form_path){target, path};
    reader->rows->paths++;
    return true;
}

// "host  labels.node_name labels.hostname"
static bool read_key_field(struct reader *reader, struct slice name, struct slice value) {
    int i = 0;
    if (slice_equal(name, SLICE("zone"))) {
        reader->form->is_utc = slice_equal(value, SLICE("utc"));
        return reader->form->is_utc || fail(reader, value.data, "`zone` has one value: utc");
    }
    if (slice_equal(name, SLICE("blank"))) {
        reader->form->has_blank = slice_equal(value, SLICE("yes"));
        return reader->form->has_blank || fail(reader, value.data, "`blank` is yes");
    }
    while (i < KEY_FIELD_COUNT && !slice_equal(KEY_FIELDS[i].name, name))
        i++;
    if (i == KEY_FIELD_COUNT)
        return fail(
            reader, name.data,
            "'%.*s' is no field of an envelope: message, time, arrived, zone, host, pod, "
            "namespace, container, address, program, transport, writer, pid, rank, "
            "local_rank, stream, part, path, blank, needs, list, source, sample, gives, not",
            (int)name.size, name.data);
    while (value.size > 0)
        if (!add_path(reader, KEY_FIELDS[i].target, take_field(&value)))
            return false;
    return true;
}

static bool read_field(struct reader *reader, struct slice name, struct slice value) {
    struct form *form = reader->form;
    struct form_sample *last =
        form->sample_count == 0 ? NULL : &form->samples[form->sample_count - 1];
    if (value.size == 0)
        return fail(reader, name.data, "`%.*s` says nothing", (int)name.size, name.data);
    if (form->is_envelope &&
        !is_any(name, (const char *const[]){"sample", "gives", "not", "source", NULL}))
        return read_key_field(reader, name, value);
    if (slice_equal(name, SLICE("text")))
        return add_text(reader, value, true);
    if (form->is_prefix && slice_equal(name, SLICE("again"))) {
        form->needs_again = slice_equal(value, SLICE("yes"));
        return form->needs_again || fail(reader, value.data, "`again` is yes");
    }
    if (form->is_prefix &&
        !is_any(name, (const char *const[]){"sample", "gives", "not", "source", NULL}))
        return fail(reader, name.data,
                    "'%.*s' is no field of a prefix: text, again, source, sample, gives, not",
                    (int)name.size, name.data);
    if (slice_equal(name, SLICE("then")))
        return add_text(reader, value, false);
    if (slice_equal(name, SLICE("kind")))
        return set_kind(reader, value, &form->kind);
    if (form->then_count > 0 && slice_equal(name, SLICE("becomes")))
        return set_kind(reader, value, &form->then[form->then_count - 1].becomes);
    if (slice_equal(name, SLICE("role")))
        return set_role(reader, value);
    if (slice_equal(name, SLICE("cause"))) {
        form->cause = value;
        return is_identifier(value) ||
               fail(reader, value.data, "a cause is a word of small letters, digits and '_'");
    }
    if (slice_equal(name, SLICE("apart"))) {
        form->is_apart = slice_equal(value, SLICE("yes"));
        return form->is_apart || slice_equal(value, SLICE("no")) ||
               fail(reader, value.data, "yes or no is needed");
    }
    if (slice_equal(name, SLICE("where"))) {
        form->is_here = slice_equal(value, SLICE("here"));
        return form->is_here || fail(reader, value.data, "`where` has one value: here");
    }
    if (slice_equal(name, SLICE("above"))) {
        form->is_owner = slice_equal(value, SLICE("traceback"));
        return form->is_owner || fail(reader, value.data, "`above` has one value: traceback");
    }
    if (slice_equal(name, SLICE("set")))
        return add_set(reader, value);
    if (slice_equal(name, SLICE("when")))
        return add_when(reader, value);
    if (slice_equal(name, SLICE("sample")))
        return add_sample(reader, value, false);
    if (slice_equal(name, SLICE("not")))
        return add_sample(reader, value, true);
    if (slice_equal(name, SLICE("source")))
        return true;
    if (last != NULL && slice_equal(name, SLICE("more"))) {
        last->lines = joined(reader->rows->arena, last->lines, value);
        return true;
    }
    if (last != NULL && !last->is_not && slice_equal(name, SLICE("gives"))) {
        last->gives = value;
        return true;
    }
    if (slice_equal(name, SLICE("becomes")))
        return fail(reader, name.data, "`becomes` stands behind a `then`");
    if (slice_equal(name, SLICE("more")) || slice_equal(name, SLICE("gives")))
        return fail(reader, name.data, "`%.*s` stands behind a `sample`", (int)name.size,
                    name.data);
    return fail(reader, name.data,
                "'%.*s' is no field: text, then, becomes, apart, kind, role, where, above, cause, "
                "set, when, source, sample, more, gives, not",
                (int)name.size, name.data);
}

static bool read_line(struct reader *reader, struct slice line) {
    struct slice rest = line;
    bool is_field = line.data[0] == ' ' || line.data[0] == '\t';
    text_skip_blanks(&rest);
    struct slice word = take_field(&rest);
    if (is_field && reader->form == NULL)
        return fail(reader, word.data, "a field before any row: a row begins in the first column");
    if (is_field)
        return read_field(reader, word, rest);
    if (is_any(word, (const char *const[]){"form", "prefix", "envelope", NULL}))
        return end_row(reader) && begin_row(reader, rest, word);
    if (slice_equal(word, SLICE("family"))) {
        reader->family = rest;
        return true;
    }
    return fail(reader, word.data, "a row begins with `form`, `prefix`, `envelope` or `family`");
}

void form_rows_begin(struct form_rows *rows, struct arena *arena) {
    *rows = (struct form_rows){.arena = arena};
}

bool form_rows_add(struct form_rows *rows, const char *file, struct slice text, bool is_builtin) {
    struct reader reader = {
        .rows = rows, .file = file, .line = text.data, .is_builtin = is_builtin};
    assert(!rows->failed);
    if (text.size > FORMS_SIZE_MAX)
        return fail(&reader, text.data, "the file is larger than %d bytes", FORMS_SIZE_MAX);
    while (text.size > 0) {
        struct slice line = text_take_line(&text);
        reader.line = line.data;
        reader.number++;
        while (line.size > 0 && strchr(" \t\r", line.data[line.size - 1]) != NULL)
            line.size--;
        if (line.size == 0 || line.data[0] == '#')
            continue;
        if (!read_line(&reader, line))
            return false;
    }
    return end_row(&reader);
}
