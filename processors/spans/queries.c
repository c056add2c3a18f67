// SPDX-License-Identifier: Apache-2.0
// Reads questions and answers them. The file is read and checked as a whole at the start; each tree
// walks the questions in the order of their lines. One comparison a line of input.
#include "processors/spans/queries.h"

#include "base/memory.h"
#include "base/sort.h"
#include "base/text/display.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { QUERIES_MAX = 65536, FILE_MAX = 16 * 1024 * 1024, ARENA_BLOCK = 64 * 1024 };

// Which spans a question is about.
enum subject { SUBJECT_NONE, SUBJECT_IDS, SUBJECT_ALL, SUBJECT_ROOTS, SUBJECT_NAME, SUBJECT_TAGS };

// How an operation is written, the member that it needs (a text or a list of texts), the spans that
// it is about and what it answers with.
struct query_op {
    const char *name;
    const char *member; // NULL: none
    bool is_list;
    enum subject subject;
    enum span_query_result result;
    bool merges; // SPAN_RESULT_SPAN: of all together
};

static const struct query_op OPS[] = {
    {"span", "id", false, SUBJECT_IDS, SPAN_RESULT_SPAN, false},
    {"spans", NULL, false, SUBJECT_ALL, SPAN_RESULT_SPANS, false},
    {"roots", NULL, false, SUBJECT_ROOTS, SPAN_RESULT_IDS, false},
    {"task", "key", false, SUBJECT_NONE, SPAN_RESULT_TASK, false},
    {"find_by_name", "name", true, SUBJECT_NAME, SPAN_RESULT_IDS, false},
    {"find_by_tags", "tags", true, SUBJECT_TAGS, SPAN_RESULT_IDS, false},
    {"merge", "ids", true, SUBJECT_IDS, SPAN_RESULT_SPAN, true},
    {"merge_by_tags", "tags", true, SUBJECT_TAGS, SPAN_RESULT_SPAN, true},
    {"merge_all", NULL, false, SUBJECT_ROOTS, SPAN_RESULT_SPAN, true},
};
enum { OP_COUNT = sizeof OPS / sizeof OPS[0] };

struct span_query {
    uint64_t after; // lines; UINT64_MAX: all; first, for compare_by_u64
    const struct query_op *op;
    double now_s; // NaN-free; 0: that of the tree, when it is answered
    struct slice *texts;
    uint32_t text_count;
    struct slice text; // the query as it was asked
};

// What one tree answered so far.
struct span_answers {
    string_id source;
    string_id job;
    uint32_t next; // into `order`
    struct arena arena;
    struct span_query_answer *items;
};

// -- the file -----------------------------------------------------------------------------------

struct reading {
    const char *path;
    struct span_queries *queries;
    struct error *error;
};

static enum status read_regular(FILE *file, const char *path, struct slice *text,
                                struct arena *arena, struct error *error) {
    struct stat about;
    if (fstat(fileno(file), &about) != 0 || !S_ISREG(about.st_mode))
        return error_set(error, STATUS_BAD_DATA, "%s is not a regular file", path);
    if (about.st_size > FILE_MAX)
        return error_set(error, STATUS_LIMIT, "%s has %lld bytes; the limit is %d", path,
                         (long long)about.st_size, FILE_MAX);
    char *bytes = arena_take(arena, (size_t)about.st_size + 1);
    *text = (struct slice){bytes, fread(bytes, 1, (size_t)about.st_size, file)};
    return ferror(file) ? error_set_os(error, STATUS_IO, errno, "%s: cannot be read", path)
                        : STATUS_OK;
}

static enum status read_file(const char *path, struct slice *text, struct arena *arena,
                             struct error *error) {
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return error_set_os(error, STATUS_IO, errno, "%s: cannot be opened", path);
    enum status status = read_regular(file, path, text, arena, error);
    fclose(file);
    return status;
}

// "queries.json: queries[3]: op is …"
__attribute__((format(printf, 3, 4))) static enum status
wrong(const struct reading *reading, uint32_t index, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const char *what = arena_format_list(&reading->queries->arena, format, arguments);
    va_end(arguments);
    return error_set(reading->error, STATUS_BAD_DATA, "%s: queries[%u]: %s", reading->path, index,
                     what);
}

static struct slice copy_text(struct arena *arena, const json_t *text) {
    return arena_copy(arena, (struct slice){json_string_value(text), json_string_length(text)});
}

// `now`: seconds since 1970, in the range that the format has for times.
static bool read_now(const json_t *value, double *now_s) {
    if (value == NULL || json_is_null(value))
        return true;
    *now_s = json_number_value(value);
    return json_is_number(value) && *now_s > 0 && *now_s <= 1e11;
}

static enum status read_texts(const struct reading *reading, uint32_t index, const json_t *item,
                              struct span_query *query) {
    struct arena *arena = &reading->queries->arena;
    const struct query_op *op = query->op;
    if (op->member == NULL)
        return STATUS_OK;
    const json_t *value = json_object_get(item, op->member);
    bool right = op->is_list ? json_is_array(value) : json_is_string(value);
    size_t count = op->is_list ? json_array_size(value) : 1;
    query->texts = arena_take(arena, count * sizeof *query->texts);
    for (size_t i = 0; right && i < count; i++) {
        const json_t *text = op->is_list ? json_array_get(value, i) : value;
        right = json_is_string(text);
        if (right)
            query->texts[query->text_count++] = copy_text(arena, text);
    }
    if (right)
        return STATUS_OK;
    return wrong(reading, index, "op \"%s\" needs \"%s\", %s", op->name, op->member,
                 op->is_list ? "a list of texts" : "a text");
}

static enum status wrong_op(const struct reading *reading, uint32_t index, const char *op) {
    struct buffer shown;
    buffer_init(&shown, 256);
    if (op != NULL) {
        buffer_append_text(&shown, " \"");
        display_append(&shown, slice_of(op), 40);
        buffer_append_char(&shown, '"');
    }
    enum status status =
        wrong(reading, index,
              "op%.*s is unknown; the operations are span, spans, roots, task, find_by_name, "
              "find_by_tags, merge, merge_by_tags, merge_all",
              (int)shown.size, shown.size == 0 ? "" : shown.data);
    buffer_release(&shown);
    return status;
}

static const struct query_op *find_op(const char *name) {
    for (size_t i = 0; name != NULL && i < OP_COUNT; i++)
        if (strcmp(name, OPS[i].name) == 0)
            return &OPS[i];
    return NULL;
}

static enum status read_query(const struct reading *reading, uint32_t index, const json_t *item,
                              struct span_query *query) {
    if (!json_is_object(item))
        return wrong(reading, index, "is not an object");
    const char *op = json_string_value(json_object_get(item, "op"));
    query->op = find_op(op);
    if (query->op == NULL)
        return wrong_op(reading, index, op);
    const json_t *after = json_object_get(item, "after");
    query->after = UINT64_MAX;
    if (after != NULL && !json_is_null(after)) {
        if (!json_is_integer(after) || json_integer_value(after) < 0)
            return wrong(reading, index, "after must be a number of lines, 0 or more");
        query->after = (uint64_t)json_integer_value(after);
    }
    if (!read_now(json_object_get(item, "now"), &query->now_s))
        return wrong(reading, index,
                     "now must be a time in seconds since 1970, above 0, up to 1e11");
    char *text = json_dumps(item, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_ENSURE_ASCII);
    if (text == NULL)
        return wrong(reading, index, "cannot be written back");
    query->text = arena_copy(&reading->queries->arena, slice_of(text));
    free(text);
    return read_texts(reading, index, item, query);
}

// A question in the order of the lines after which it is answered.
struct span_query_turn {
    uint64_t after; // first, for compare_by_u64
    uint32_t index; // of the query
};

static void sort_queries(struct span_queries *queries) {
    struct arena *arena = &queries->arena;
    queries->order = arena_take(arena, queries->count * sizeof *queries->order);
    for (uint32_t i = 0; i < queries->count; i++)
        queries->order[i] = (struct span_query_turn){queries->items[i].after, i};
    sort_stable(queries->order, queries->count, sizeof *queries->order, arena, compare_by_u64);
}

static enum status read_document(struct reading *reading, const json_t *document) {
    struct span_queries *queries = reading->queries;
    const json_t *list = json_object_get(document, "queries");
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)document, key, value) {
        if (strcmp(key, "queries") != 0 && strcmp(key, "now") != 0)
            return error_set(reading->error, STATUS_BAD_DATA,
                             "%s: unknown key \"%s\"; the keys are \"queries\" and \"now\"",
                             reading->path, key);
    }
    if (!json_is_array(list))
        return error_set(reading->error, STATUS_BAD_DATA,
                         "%s: expected an object with a list under \"queries\"", reading->path);
    if (json_array_size(list) > QUERIES_MAX)
        return error_set(reading->error, STATUS_LIMIT, "%s: %zu queries; the limit is %d",
                         reading->path, json_array_size(list), QUERIES_MAX);
    if (!read_now(json_object_get(document, "now"), &queries->now_s))
        return error_set(reading->error, STATUS_BAD_DATA,
                         "%s: now must be a time in seconds since 1970, above 0, up to 1e11",
                         reading->path);
    queries->items = arena_zero(&queries->arena, json_array_size(list) + 1, sizeof *queries->items);
    for (; queries->count < json_array_size(list); queries->count++) {
        enum status status =
            read_query(reading, queries->count, json_array_get(list, queries->count),
                       &queries->items[queries->count]);
        if (status != STATUS_OK)
            return status;
    }
    sort_queries(queries);
    return STATUS_OK;
}

enum status span_queries_load(struct span_queries *queries, const char *path, struct error *error) {
    struct slice text = {NULL, 0};
    json_error_t fault;
    arena_init(&queries->arena, ARENA_BLOCK);
    enum status status = read_file(path, &text, &queries->arena, error);
    if (status != STATUS_OK)
        return status;
    json_t *document = json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, &fault);
    if (document == NULL)
        return error_set(error, STATUS_BAD_DATA, "%s:%d:%d: not JSON: %s", path, fault.line,
                         fault.column, fault.text);
    struct reading reading = {path, queries, error};
    status = read_document(&reading, document);
    json_decref(document);
    return status;
}

void span_queries_release(struct span_queries *queries) {
    for (uint32_t i = 0; i < queries->answers_count; i++) {
        arena_release(&queries->answers[i]->arena);
        memory_give(queries->answers[i]);
    }
    memory_give(queries->answers);
    arena_release(&queries->arena);
    *queries = (struct span_queries){0};
}

// -- answers ------------------------------------------------------------------------------------

static struct span_answers *answers_of(struct span_queries *queries, const struct span_tree *tree) {
    const struct span_tree_key *key = &tree->row->key;
    for (uint32_t i = queries->answers_count; i > 0; i--)
        if (queries->answers[i - 1]->source == key->source &&
            queries->answers[i - 1]->job == key->job)
            return queries->answers[i - 1];
    if (queries->answers_count == queries->answers_capacity) {
        queries->answers_capacity =
            queries->answers_capacity == 0 ? 16 : queries->answers_capacity * 2;
        queries->answers =
            memory_resize(queries->answers, queries->answers_capacity * sizeof *queries->answers);
    }
    struct span_answers *answers = memory_zero(1, sizeof *answers);
    queries->answers[queries->answers_count++] = answers;
    answers->source = key->source;
    answers->job = key->job;
    arena_init(&answers->arena, ARENA_BLOCK);
    answers->items = arena_zero(&answers->arena, queries->count + 1, sizeof *answers->items);
    return answers;
}

// The spans with these ids; false when one is not there.
static bool by_ids(const struct span_tree *tree, const struct span_query *query,
                   struct arena *arena, struct span_numbers *spans) {
    spans->items = arena_take(arena, query->text_count * sizeof *spans->items);
    for (spans->count = 0; spans->count < query->text_count; spans->count++) {
        uint32_t span = span_find(tree->forest, tree->row, query->texts[spans->count]);
        if (span == SPAN_NONE)
            return false;
        spans->items[spans->count] = span;
    }
    return true;
}

static bool find_subject(const struct span_tree *tree, const struct span_query *query,
                         struct arena *arena, struct span_numbers *spans) {
    enum subject subject = query->op->subject;
    if (subject == SUBJECT_IDS)
        return by_ids(tree, query, arena, spans);
    if (subject == SUBJECT_ALL)
        *spans = span_all(tree, arena);
    else if (subject == SUBJECT_ROOTS)
        *spans = span_roots(tree, arena);
    else if (subject == SUBJECT_NAME)
        *spans = span_find_by_name(tree, query->texts, query->text_count, arena);
    else if (subject == SUBJECT_TAGS)
        *spans = span_find_by_tags(tree, query->texts, query->text_count, arena);
    return true;
}

static void give_spans(const struct span_tree *tree, const struct span_numbers *spans, bool merge,
                       double now_s, struct arena *arena, struct span_query_answer *answer) {
    answer->span_count = merge ? 1 : spans->count;
    struct span_answer *items = arena_take(arena, answer->span_count * sizeof *items);
    answer->spans = items;
    if (merge)
        span_answer_merged(tree, spans->items, spans->count, now_s, arena, items);
    for (uint32_t i = 0; !merge && i < spans->count; i++)
        span_answer_one(tree, spans->items[i], now_s, arena, &items[i]);
}

// False: there is no task with this key.
static bool give_task(const struct span_tree *tree, struct slice key, struct arena *arena,
                      struct span_query_answer *answer) {
    const struct span_task_row *task = span_find_task(tree->forest, tree->row, key);
    if (task == NULL)
        return false;
    const struct span_group_row *group = span_group_at(tree->forest, task->group);
    answer->task.group = span_names_text(&tree->forest->names, group->name, arena);
    if (group->span != SPAN_NONE)
        answer->task.span = span_id_text(tree, group->span, arena);
    answer->task.state = task->state;
    answer->task.nbytes = task->nbytes;
    return true;
}

// Why it has no answer; NULL: it has one.
static const char *answer_query(const struct span_tree *tree, const struct span_query *query,
                                struct arena *arena, struct span_query_answer *answer) {
    double now_s = query->now_s > 0 ? query->now_s : tree->row->now_s;
    enum span_query_result result = query->op->result;
    struct span_numbers spans = {0};
    if (!find_subject(tree, query, arena, &spans))
        return "unknown-span";
    if (query->op->merges && spans.count == 0)
        return "nothing-to-merge";
    if (result == SPAN_RESULT_TASK && !give_task(tree, query->texts[0], arena, answer))
        return "unknown-task";
    if (result == SPAN_RESULT_SPAN || result == SPAN_RESULT_SPANS)
        give_spans(tree, &spans, query->op->merges, now_s, arena, answer);
    if (result == SPAN_RESULT_IDS) {
        answer->ids = span_ids(tree, &spans, arena);
        answer->id_count = spans.count;
    }
    answer->kind = result;
    return NULL;
}

void span_queries_reach(struct span_queries *queries, const struct span_tree *tree, uint64_t line) {
    if (queries->count == 0)
        return;
    struct span_answers *answers = answers_of(queries, tree);
    assert(answers->next <= queries->count);
    while (answers->next < queries->count) {
        const struct span_query_turn *turn = &queries->order[answers->next];
        if (line != UINT64_MAX && turn->after >= line)
            return;
        const struct span_query *query = &queries->items[turn->index];
        struct span_query_answer *answer = &answers->items[turn->index];
        const char *failure = answer_query(tree, query, &answers->arena, answer);
        answer->query = query->text;
        if (failure != NULL)
            *answer = (struct span_query_answer){
                .query = query->text, .kind = SPAN_RESULT_ERROR, .error = slice_of(failure)};
        answers->next++;
    }
}

const struct span_query_answer *span_queries_answers(struct span_queries *queries,
                                                     const struct span_tree *tree) {
    return queries->count == 0 ? NULL : answers_of(queries, tree)->items;
}
