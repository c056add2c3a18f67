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
    struct form *form;  // NULL: no row has begun
    const char *line;   // the one at hand
    struct slice field; // its first word
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
    {{"cuda_device", 11}, TARGET_CUDA_DEVICE, PATTERN_INT},
    {{"pid", 3}, TARGET_PID, PATTERN_INT},
    {{"host", 4}, TARGET_HOST, PATTERN_NAME},
    {{"pod", 3}, TARGET_POD, PATTERN_NAME},
    {{"namespace", 9}, TARGET_NAMESPACE, PATTERN_NAME},
    {{"container", 9}, TARGET_CONTAINER, PATTERN_NAME},
    {{"address", 7}, TARGET_ADDRESS, PATTERN_ADDRESS},
    {{"program", 7}, TARGET_PROGRAM, PATTERN_NAME},
    {{"writer", 6}, TARGET_WRITER, PATTERN_NAME},
    {{"time", 4}, TARGET_TIME, PATTERN_TIME},
    {{"level", 5}, TARGET_LEVEL, PATTERN_NAME},
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
                 "namespace, container, address, program, writer, time, level",
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
    bool is_form = !form->is_prefix && !form->is_envelope && !form->is_meaning;
    bool has_text = form->is_envelope || form->is_meaning || form->text_count > 0;
    const char *missing = form->is_envelope && !has_target(form, TARGET_MESSAGE)        ? "message"
                          : !has_text                                                   ? "text"
                          : is_form && form->kind == OBSERVATION_NONE && !form->is_none ? "kind"
                          : form->is_meaning && form->word_count == 0                   ? "says"
                          : form->is_meaning && !form->says_role                        ? "role"
                          : form->sample_count == 0                                     ? "sample"
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
    if (rows->count == FORMS_MAX && !reader->is_builtin)
        return fail(reader, name.data, "more than %d rows", FORMS_MAX);
    bool is_prefix = slice_equal(sort, SLICE("prefix"));
    if (is_prefix && ++rows->prefix_count > FORM_PREFIXES_MAX && !reader->is_builtin)
        return fail(reader, name.data, "more than %d prefixes", FORM_PREFIXES_MAX);
    reader->form = arena_zero(rows->arena, 1, sizeof *reader->form);
    reader->form->name = name;
    reader->form->family = reader->family;
    reader->form->file = reader->file;
    reader->form->line = reader->number;
    reader->form->is_builtin = reader->is_builtin;
    reader->form->is_prefix = is_prefix;
    reader->form->is_envelope = slice_equal(sort, SLICE("envelope"));
    reader->form->is_meaning = slice_equal(sort, SLICE("meaning"));
    if (reader->form->is_meaning && ++rows->meaning_count > FORM_MEANINGS_MAX &&
        !reader->is_builtin)
        return fail(reader, name.data, "more than %d meanings", FORM_MEANINGS_MAX);
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

static bool read_role(struct reader *reader, struct slice value) {
    reader->form->says_role = true;
    if (reader->form->is_meaning && slice_equal(value, SLICE("unknown")))
        return true;
    for (int i = 0; FORM_ROLES[i] != NULL; i++)
        if (slice_equal(slice_of(FORM_ROLES[i]), value)) {
            reader->form->role = value;
            reader->form->is_report = reader->form->is_report ||
                                      slice_equal(value, SLICE("report")) ||
                                      slice_equal(value, SLICE("outside"));
            return true;
        }
    return fail(reader, value.data,
                "a role is own, lost_peer, waited, told, report, outside or caught%s",
                reader->form->is_meaning ? ", or unknown" : "");
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

static bool read_set(struct reader *reader, struct slice value) {
    struct form *form = reader->form;
    if (form->set_count == FORM_SETS_MAX)
        return fail(reader, value.data, "more than %d of these in a row", FORM_SETS_MAX);
    return read_setting(reader, value, &form->sets[form->set_count++]);
}

// "signal=9 victim=yes"
static bool read_when(struct reader *reader, struct slice value) {
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

// -- fields ---------------------------------------------------------------------------------------

static bool read_text(struct reader *reader, struct slice value) {
    return add_text(reader, value, true);
}

// Whose lines belong together is known of programs only.
static bool fail_of_one_line(struct reader *reader, const char *at) {
    return fail(reader, at, "a row `from kernel` is of one line, and has no `then`");
}

static bool read_then(struct reader *reader, struct slice value) {
    if (reader->form->is_kernel)
        return fail_of_one_line(reader, value.data);
    return add_text(reader, value, false);
}

static bool read_again(struct reader *reader, struct slice value) {
    reader->form->is_names = slice_equal(value, SLICE("always"));
    reader->form->needs_again = reader->form->is_names || slice_equal(value, SLICE("yes"));
    return reader->form->needs_again || fail(reader, value.data, "`again` is yes or always");
}

static bool read_until(struct reader *reader, struct slice value) {
    reader->form->until = value;
    return true;
}

static bool read_escapes(struct reader *reader, struct slice value) {
    reader->form->is_xml = slice_equal(value, SLICE("xml"));
    return reader->form->is_xml || fail(reader, value.data, "`escapes` has one value: xml");
}

static bool read_becomes(struct reader *reader, struct slice value) {
    struct form *form = reader->form;
    if (form->then_count == 0)
        return fail(reader, reader->field.data, "`becomes` stands behind a `then`");
    return set_kind(reader, value, &form->then[form->then_count - 1].becomes);
}

static bool read_apart(struct reader *reader, struct slice value) {
    reader->form->is_apart = slice_equal(value, SLICE("yes"));
    return reader->form->is_apart || slice_equal(value, SLICE("no")) ||
           fail(reader, value.data, "yes or no is needed");
}

static bool read_kind(struct reader *reader, struct slice value) {
    reader->form->is_none = slice_equal(value, SLICE("none"));
    return reader->form->is_none || set_kind(reader, value, &reader->form->kind);
}

static bool read_where(struct reader *reader, struct slice value) {
    struct form *form = reader->form;
    form->is_agent = slice_equal(value, SLICE("agent"));
    form->is_here = form->is_agent || slice_equal(value, SLICE("here"));
    form->is_report = true;
    return form->is_here || slice_equal(value, SLICE("elsewhere")) ||
           fail(reader, value.data, "`where` is here, elsewhere or agent");
}

static bool read_whole(struct reader *reader, struct slice value) {
    reader->form->is_whole = slice_equal(value, SLICE("yes"));
    return reader->form->is_whole || fail(reader, value.data, "`whole` is yes");
}

static bool read_from(struct reader *reader, struct slice value) {
    reader->form->is_kernel = slice_equal(value, SLICE("kernel"));
    if (reader->form->then_count > 0)
        return fail_of_one_line(reader, value.data);
    return reader->form->is_kernel || fail(reader, value.data, "`from` has one value: kernel");
}

static bool read_uptime(struct reader *reader, struct slice value) {
    uint64_t seconds;
    if (!text_number(value, 6, &seconds))
        return fail(reader, value.data, "a number of seconds is needed");
    reader->form->uptime_s = (uint32_t)seconds;
    return true;
}

static bool read_above(struct reader *reader, struct slice value) {
    reader->form->is_owner = slice_equal(value, SLICE("traceback"));
    return reader->form->is_owner || fail(reader, value.data, "`above` has one value: traceback");
}

static bool read_cause(struct reader *reader, struct slice value) {
    reader->form->cause = value;
    return is_identifier(value) ||
           fail(reader, value.data, "a cause is a word of small letters, digits and '_'");
}

static bool read_source(struct reader *reader, struct slice value) {
    (void)reader, (void)value; // for people
    return true;
}

static bool read_sample(struct reader *reader, struct slice value) {
    return add_sample(reader, value, false);
}

static bool read_not(struct reader *reader, struct slice value) {
    return add_sample(reader, value, true);
}

// The sample that the field belongs to; NULL: there is none, and that is said.
static struct form_sample *last_sample(struct reader *reader, bool may_be_not) {
    struct form *form = reader->form;
    struct form_sample *last =
        form->sample_count == 0 ? NULL : &form->samples[form->sample_count - 1];
    if (last != NULL && (may_be_not || !last->is_not))
        return last;
    fail(reader, reader->field.data, "`%.*s` stands behind a `sample`", (int)reader->field.size,
         reader->field.data);
    return NULL;
}

static bool read_more(struct reader *reader, struct slice value) {
    struct form_sample *last = last_sample(reader, true);
    if (last == NULL)
        return false;
    if (last->more_count++ == FORM_MORE_MAX)
        return fail(reader, reader->field.data, "more than %d of these in a row", FORM_MORE_MAX);
    last->lines = joined(reader->rows->arena, last->lines, value);
    return true;
}

static bool read_gives(struct reader *reader, struct slice value) {
    struct form_sample *last = last_sample(reader, false);
    if (last != NULL)
        last->gives = value;
    return last != NULL;
}

// -- meanings -------------------------------------------------------------------------------------

uint64_t meaning_letters(struct slice text) {
    uint64_t letters = 0;
    for (size_t i = 0; i < text.size; i++)
        letters |= UINT64_C(1) << (text.data[i] & 63);
    return letters;
}

static bool add_word(struct reader *reader, struct form_word word) {
    struct form *form = reader->form;
    if (form->word_count == FORM_WORDS_MAX)
        return fail(reader, word.text.data, "more than %d texts in a meaning", FORM_WORDS_MAX);
    if (word.text.size == 0)
        return fail(reader, reader->field.data, "`%.*s` says nothing", (int)reader->field.size,
                    reader->field.data);
    form->words = arena_enlarge(reader->rows->arena, form->words, form->word_count,
                                form->word_count + 1, sizeof *form->words);
    word.letters = meaning_letters(word.text);
    form->words[form->word_count++] = word;
    return true;
}

// "QuotaExceeded site.* *Timeout*"
static bool read_type(struct reader *reader, struct slice value) {
    while (value.size > 0) {
        struct slice name = take_field(&value);
        struct form_word word = {.of = WORD_OF_TYPE, .text = name};
        word.ends = text_skip_char(&word.text, '*');
        word.begins = word.text.size > 0 && word.text.data[word.text.size - 1] == '*';
        word.text.size -= word.begins;
        if (word.ends && !word.begins)
            return fail(reader, name.data, "a type is a name, NAME* or *NAME*");
        if (!add_word(reader, word))
            return false;
    }
    return true;
}

static bool read_says(struct reader *reader, struct slice value) {
    struct form_word word = {.of = WORD_OF_MESSAGE, .text = value};
    word.begins = text_skip_char(&word.text, '^');
    return add_word(reader, word);
}

static bool read_place(struct reader *reader, struct slice value) {
    return add_word(reader, (struct form_word){.of = WORD_OF_PLACE, .text = value});
}

static bool read_of(struct reader *reader, struct slice value) {
    bool is_abort = slice_equal(value, SLICE("abort"));
    reader->form->scope = is_abort ? MEANING_ABORT : MEANING_EXCEPTION;
    return is_abort || slice_equal(value, SLICE("exception")) ||
           fail(reader, value.data, "`of` is exception or abort");
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
    {{"level", 5}, TARGET_LEVEL},
    {{"trace", 5}, TARGET_TRACE},
    {{"raised", 6}, TARGET_RAISED},
    {{"reason", 6}, TARGET_REASON},
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

static bool read_scale(struct reader *reader, struct slice value) {
    static const struct slice names[] = {[SCALE_SYSLOG] = {"syslog", 6},
                                         [SCALE_OTLP] = {"otlp", 4},
                                         [SCALE_PINO] = {"pino", 4},
                                         [SCALE_PYTHON] = {"python", 6}};
    for (size_t i = SCALE_SYSLOG; i < sizeof names / sizeof *names; i++)
        if (slice_equal(value, names[i])) {
            reader->form->scale = (enum form_scale)i;
            return true;
        }
    return fail(reader, value.data, "`scale` is syslog, otlp, pino or python");
}

// "host  labels.node_name labels.hostname"
static bool read_key_field(struct reader *reader, struct slice value) {
    struct slice name = reader->field;
    int i = 0;
    if (slice_equal(name, SLICE("zone"))) {
        reader->form->is_utc = slice_equal(value, SLICE("utc"));
        return reader->form->is_utc || fail(reader, value.data, "`zone` has one value: utc");
    }
    if (slice_equal(name, SLICE("blank"))) {
        reader->form->has_blank = slice_equal(value, SLICE("yes"));
        return reader->form->has_blank || fail(reader, value.data, "`blank` is yes");
    }
    if (slice_equal(name, SLICE("scale")))
        return read_scale(reader, value);
    while (i < KEY_FIELD_COUNT && !slice_equal(KEY_FIELDS[i].name, name))
        i++;
    if (i == KEY_FIELD_COUNT)
        return fail(
            reader, name.data,
            "'%.*s' is no field of an envelope: message, time, arrived, zone, host, pod, "
            "namespace, container, address, program, transport, writer, pid, rank, "
            "local_rank, stream, part, path, level, scale, trace, raised, reason, blank, needs, "
            "list, source, sample, gives, not",
            (int)name.size, name.data);
    while (value.size > 0)
        if (!add_path(reader, KEY_FIELDS[i].target, take_field(&value)))
            return false;
    return true;
}

// -- the fields of a row --------------------------------------------------------------------------

enum { OF_FORM = 1, OF_PREFIX = 2, OF_ENVELOPE = 4, OF_MEANING = 8 };
enum { OF_TEXT = OF_FORM | OF_PREFIX, OF_EVENT = OF_FORM | OF_MEANING };
enum { OF_ALL = OF_TEXT | OF_ENVELOPE | OF_MEANING };

static const struct {
    struct slice name;
    unsigned rows; // kinds of rows that have it
    bool (*read)(struct reader *reader, struct slice value);
} FIELDS[] = {
#define FIELD(rows, name)                                                                          \
    { {#name, sizeof(#name) - 1}, rows, read_##name }
    FIELD(OF_TEXT, text),    FIELD(OF_PREFIX, again),
    FIELD(OF_PREFIX, until), FIELD(OF_PREFIX, escapes),
    FIELD(OF_MEANING, of),   FIELD(OF_MEANING, type),
    FIELD(OF_MEANING, says), FIELD(OF_MEANING, place),
    FIELD(OF_FORM, then),    FIELD(OF_FORM, becomes),
    FIELD(OF_FORM, apart),   FIELD(OF_FORM, kind),
    FIELD(OF_EVENT, role),   FIELD(OF_FORM, where),
    FIELD(OF_FORM, whole),   FIELD(OF_FORM, from),
    FIELD(OF_FORM, uptime),  FIELD(OF_FORM, above),
    FIELD(OF_EVENT, cause),  FIELD(OF_FORM, set),
    FIELD(OF_FORM, when),    FIELD(OF_ALL, source),
    FIELD(OF_ALL, sample),   FIELD(OF_EVENT, more),
    FIELD(OF_ALL, gives),    {{"not", 3}, OF_ALL, read_not},
#undef FIELD
};
enum { FIELD_COUNT = sizeof FIELDS / sizeof *FIELDS };

static bool no_field(struct reader *reader, unsigned rows) {
    char names[256] = "";
    size_t size = 0;
    for (int i = 0; i < FIELD_COUNT; i++)
        if ((FIELDS[i].rows & rows) != 0)
            size += (size_t)snprintf(names + size, sizeof names - size, "%s%s",
                                     size == 0 ? "" : ", ", FIELDS[i].name.data);
    assert(size < sizeof names);
    return fail(reader, reader->field.data, "'%.*s' is no field%s: %s", (int)reader->field.size,
                reader->field.data,
                rows == OF_PREFIX    ? " of a prefix"
                : rows == OF_MEANING ? " of a meaning"
                                     : "",
                names);
}

static bool read_field(struct reader *reader, struct slice value) {
    unsigned rows = reader->form->is_prefix     ? OF_PREFIX
                    : reader->form->is_envelope ? OF_ENVELOPE
                    : reader->form->is_meaning  ? OF_MEANING
                                                : OF_FORM;
    int i = 0;
    if (value.size == 0)
        return fail(reader, reader->field.data, "`%.*s` says nothing", (int)reader->field.size,
                    reader->field.data);
    while (i < FIELD_COUNT &&
           !((FIELDS[i].rows & rows) != 0 && slice_equal(FIELDS[i].name, reader->field)))
        i++;
    if (i < FIELD_COUNT)
        return FIELDS[i].read(reader, value);
    return rows == OF_ENVELOPE ? read_key_field(reader, value) : no_field(reader, rows);
}

static bool read_line(struct reader *reader, struct slice line) {
    struct slice rest = line;
    bool is_field = line.data[0] == ' ' || line.data[0] == '\t';
    text_skip_blanks(&rest);
    struct slice word = take_field(&rest);
    if (is_field && reader->form == NULL)
        return fail(reader, word.data, "a field before any row: a row begins in the first column");
    reader->field = word;
    if (is_field)
        return read_field(reader, rest);
    if (slice_equal(word, SLICE("form")) || slice_equal(word, SLICE("prefix")) ||
        slice_equal(word, SLICE("envelope")) || slice_equal(word, SLICE("meaning")))
        return end_row(reader) && begin_row(reader, rest, word);
    if (slice_equal(word, SLICE("family"))) {
        reader->family = rest;
        return true;
    }
    return fail(reader, word.data,
                "a row begins with `form`, `prefix`, `envelope`, `meaning` or `family`");
}

void form_rows_begin(struct form_rows *rows, struct arena *arena) {
    *rows = (struct form_rows){.arena = arena};
}

bool form_rows_add(struct form_rows *rows, const char *file, struct slice text, bool is_builtin) {
    struct reader reader = {
        .rows = rows, .file = file, .line = text.data, .number = 1, .is_builtin = is_builtin};
    assert(!rows->failed);
    if (text.size > FORMS_SIZE_MAX)
        return fail(&reader, text.data, "the file is larger than %d bytes", FORMS_SIZE_MAX);
    for (; text.size > 0; reader.number++) {
        struct slice line = text_take_line(&text);
        reader.line = line.data;
        while (line.size > 0 && strchr(" \t\r", line.data[line.size - 1]) != NULL)
            line.size--;
        if (line.size == 0 || line.data[0] == '#')
            continue;
        if (!read_line(&reader, line))
            return false;
    }
    return end_row(&reader);
}
