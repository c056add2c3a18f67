// SPDX-License-Identifier: Apache-2.0
// What is asked, and when is it answered? The file is read and checked as a whole at the start;
// each tree walks the questions in the order of their lines. One comparison a line of input.
#include "processors/spans/queries.h"

#include "base/memory.h"
#include "base/sort.h"
#include "base/text/display.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { QUERIES_MAX = 65536, FILE_MAX = 16 * 1024 * 1024, ARENA_BLOCK = 64 * 1024 };

enum query_op {
    QUERY_SPAN,
    QUERY_SPANS,
    QUERY_ROOTS,
    QUERY_TASK,
    QUERY_FIND_BY_NAME,
    QUERY_FIND_BY_TAGS,
    QUERY_MERGE,
    QUERY_MERGE_BY_TAGS,
    QUERY_MERGE_ALL,
    QUERY_OP_COUNT
};

// How an operation is written, and the member that it needs: a text or a list of texts.
static const struct {
    const char *name;
    const char *member;
    bool is_list;
} ops[QUERY_OP_COUNT] = {
    [QUERY_SPAN] = {"span", "id", false},
    [QUERY_SPANS] = {"spans", NULL, false},
    [QUERY_ROOTS] = {"roots", NULL, false},
    [QUERY_TASK] = {"task", "key", false},
    [QUERY_FIND_BY_NAME] = {"find_by_name", "name", true},
    [QUERY_FIND_BY_TAGS] = {"find_by_tags", "tags", true},
    [QUERY_MERGE] = {"merge", "ids", true},
    [QUERY_MERGE_BY_TAGS] = {"merge_by_tags", "tags", true},
    [QUERY_MERGE_ALL] = {"merge_all", NULL, false},
};

struct span_query {
    enum query_op op;
    uint64_t after; // lines; UINT64_MAX: all
    double now_s;   // NaN-free; 0: that of the tree, when it is answered
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

static enum status read_file(const char *path, struct slice *text, struct arena *arena,
                             struct error *error) {
    struct stat about;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return error_set_os(error, STATUS_IO, errno, "%s: cannot be opened", path);
    enum status status = STATUS_OK;
    size_t size = 0;
    char *bytes = NULL;
    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode))
        status = error_set(error, STATUS_BAD_DATA, "%s is no file", path);
    else if (about.st_size > FILE_MAX)
        status = error_set(error, STATUS_LIMIT, "%s has %lld bytes; at most %d are read", path,
                           (long long)about.st_size, FILE_MAX);
    else
        bytes = arena_take(arena, (size_t)about.st_size + 1);
    while (bytes != NULL && size < (size_t)about.st_size) {
        ssize_t got = read(file, bytes + size, (size_t)about.st_size - size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            status = error_set_os(error, STATUS_IO, errno, "%s: cannot be read", path);
        if (got <= 0)
            break;
        size += (size_t)got;
    }
    close(file);
    *text = (struct slice){bytes, size};
    return status;
}

// "queries.json: queries[3]: op is …"
static enum status wrong(const struct reading *reading, uint32_t index, const char *what) {
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
    const char *member = ops[query->op].member;
    char what[128];
    if (member == NULL)
        return STATUS_OK;
    const json_t *value = json_object_get(item, member);
    if (!ops[query->op].is_list && json_is_string(value)) {
        query->texts = arena_take(arena, sizeof *query->texts);
        query->texts[query->text_count++] = copy_text(arena, value);
        return STATUS_OK;
    }
    bool right = ops[query->op].is_list && json_is_array(value);
    if (right)
        query->texts = arena_take(arena, json_array_size(value) * sizeof *query->texts + 1);
    for (size_t i = 0; right && i < json_array_size(value); i++) {
        right = json_is_string(json_array_get(value, i));
        if (right)
            query->texts[query->text_count++] = copy_text(arena, json_array_get(value, i));
    }
    if (right)
        return STATUS_OK;
    snprintf(what, sizeof what, "op \"%s\" needs \"%s\", %s", ops[query->op].name, member,
             ops[query->op].is_list ? "a list of texts" : "a text");
    return wrong(reading, index, what);
}

static enum status wrong_op(const struct reading *reading, uint32_t index, const char *op) {
    char what[256];
    struct buffer shown;
    buffer_init(&shown, 256);
    display_append(&shown, slice_of(op == NULL ? "" : op), 40);
    snprintf(what, sizeof what,
             "op%s%.*s%s is none of span, spans, roots, task, find_by_name, find_by_tags, merge, "
             "merge_by_tags, merge_all",
             op == NULL ? "" : " \"", (int)shown.size, shown.data == NULL ? "" : shown.data,
             op == NULL ? "" : "\"");
    buffer_release(&shown);
    return wrong(reading, index, what);
}

static enum status read_query(const struct reading *reading, uint32_t index, const json_t *item,
                              struct span_query *query) {
    if (!json_is_object(item))
        return wrong(reading, index, "is no object");
    const char *op = json_string_value(json_object_get(item, "op"));
    while (query->op < QUERY_OP_COUNT && (op == NULL || strcmp(op, ops[query->op].name) != 0))
        query->op++;
    if (query->op == QUERY_OP_COUNT)
        return wrong_op(reading, index, op);
    const json_t *after = json_object_get(item, "after");
    query->after = UINT64_MAX;
    if (after != NULL && !json_is_null(after)) {
        if (!json_is_integer(after) || json_integer_value(after) < 0)
            return wrong(reading, index, "after is no number of lines, 0 or more");
        query->after = (uint64_t)json_integer_value(after);
    }
    if (!read_now(json_object_get(item, "now"), &query->now_s))
        return wrong(reading, index, "now is no time in seconds since 1970, above 0, up to 1e11");
    char *text = json_dumps(item, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_ENSURE_ASCII);
    if (text == NULL)
        return wrong(reading, index, "cannot be written back");
    query->text = arena_copy(&reading->queries->arena, slice_of(text));
    free(text);
    return read_texts(reading, index, item, query);
}

static int compare_after(const void *a, const void *b) {
    const struct span_query *left = *(const struct span_query *const *)a;
    const struct span_query *right = *(const struct span_query *const *)b;
    return (left->after > right->after) - (left->after < right->after);
}

static void sort_queries(struct span_queries *queries) {
    struct arena *arena = &queries->arena;
    const struct span_query **sorted = arena_take(arena, queries->count * sizeof *sorted + 1);
    for (uint32_t i = 0; i < queries->count; i++)
        sorted[i] = &queries->items[i];
    sort_stable(sorted, queries->count, sizeof *sorted, arena, compare_after);
    queries->order = arena_take(arena, queries->count * sizeof(uint32_t) + 1);
    for (uint32_t i = 0; i < queries->count; i++)
        queries->order[i] = (uint32_t)(sorted[i] - queries->items);
}

static enum status read_document(struct reading *reading, const json_t *document) {
    struct span_queries *queries = reading->queries;
    const json_t *list = json_object_get(document, "queries");
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)document, key, value) {
        if (strcmp(key, "queries") != 0 && strcmp(key, "now") != 0)
            return error_set(reading->error, STATUS_BAD_DATA,
                             "%s: \"%s\" is not known; there are \"queries\" and \"now\"",
                             reading->path, key);
    }
    if (!json_is_array(list))
        return error_set(reading->error, STATUS_BAD_DATA,
                         "%s: needs an object with a list under \"queries\"", reading->path);
    if (json_array_size(list) > QUERIES_MAX)
        return error_set(reading->error, STATUS_LIMIT, "%s: %zu queries; at most %d are answered",
                         reading->path, json_array_size(list), QUERIES_MAX);
    if (!read_now(json_object_get(document, "now"), &queries->now_s))
        return error_set(reading->error, STATUS_BAD_DATA,
                         "%s: now is no time in seconds since 1970, above 0, up to 1e11",
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

static void fail(struct span_query_answer *answer, const char *code) {
    answer->kind = SPAN_RESULT_ERROR;
    answer->error = slice_of(code);
}

static void give_ids(const struct span_tree *tree, struct span_numbers spans, struct arena *arena,
                     struct span_query_answer *answer) {
    struct slice *ids = arena_take(arena, spans.count * sizeof *ids + 1);
    for (uint32_t i = 0; i < spans.count; i++)
        ids[i] = span_id_text(tree, spans.items[i], arena);
    answer->kind = SPAN_RESULT_IDS;
    answer->ids = ids;
    answer->id_count = spans.count;
}

static void give_merged(const struct span_tree *tree, struct span_numbers spans, double now_s,
                        struct arena *arena, struct span_query_answer *answer) {
    if (spans.count == 0) {
        fail(answer, "nothing-to-merge");
        return;
    }
    struct span_answer *merged = arena_take(arena, sizeof *merged);
    span_answer_merged(tree, spans.items, spans.count, now_s, arena, merged);
    answer->kind = SPAN_RESULT_SPAN;
    answer->spans = merged;
    answer->span_count = 1;
}

static void give_spans(const struct span_tree *tree, struct span_numbers spans, double now_s,
                       struct arena *arena, struct span_query_answer *answer) {
    struct span_answer *items = arena_take(arena, spans.count * sizeof *items + 1);
    for (uint32_t i = 0; i < spans.count; i++)
        span_answer_one(tree, spans.items[i], now_s, arena, &items[i]);
    answer->kind = SPAN_RESULT_SPANS;
    answer->spans = items;
    answer->span_count = spans.count;
}

// The spans with these ids; false when one is not there.
static bool by_ids(const struct span_tree *tree, const struct span_query *query,
                   struct arena *arena, struct span_numbers *spans) {
    spans->items = arena_take(arena, query->text_count * sizeof *spans->items + 1);
    for (spans->count = 0; spans->count < query->text_count; spans->count++) {
        uint32_t span = span_find(tree->forest, tree->row, query->texts[spans->count]);
        if (span == SPAN_NONE)
            return false;
        spans->items[spans->count] = span;
    }
    return true;
}

static void give_task(const struct span_tree *tree, struct slice key, struct arena *arena,
                      struct span_query_answer *answer) {
    const struct span_task_row *task = span_find_task(tree->forest, tree->row, key);
    if (task == NULL) {
        fail(answer, "unknown-task");
        return;
    }
    const struct span_group_row *group = span_group_at(tree->forest, task->group);
    answer->kind = SPAN_RESULT_TASK;
    answer->task.group = span_names_text(&tree->forest->names, group->name, arena);
    if (group->span != SPAN_NONE)
        answer->task.span = span_id_text(tree, group->span, arena);
    answer->task.state = task->state;
    answer->task.nbytes = task->nbytes;
}

static void answer_query(const struct span_tree *tree, const struct span_query *query,
                         struct arena *arena, struct span_query_answer *answer) {
    double now_s = query->now_s > 0 ? query->now_s : tree->row->now_s;
    struct span_numbers spans = {0};
    bool known = true;
    answer->query = query->text;
    if (query->op == QUERY_SPAN || query->op == QUERY_MERGE)
        known = by_ids(tree, query, arena, &spans);
    if (!known) {
        fail(answer, "unknown-span");
        return;
    }
    switch (query->op) {
    case QUERY_SPAN:
        give_spans(tree, spans, now_s, arena, answer);
        answer->kind = SPAN_RESULT_SPAN;
        break;
    case QUERY_SPANS:
        give_spans(tree, span_all(tree, arena), now_s, arena, answer);
        break;
    case QUERY_ROOTS:
        give_ids(tree, span_roots(tree, arena), arena, answer);
        break;
    case QUERY_TASK:
        give_task(tree, query->texts[0], arena, answer);
        break;
    case QUERY_FIND_BY_NAME:
        spans = span_find_by_name(tree, query->texts, query->text_count, arena);
        give_ids(tree, spans, arena, answer);
        break;
    case QUERY_FIND_BY_TAGS:
        spans = span_find_by_tags(tree, query->texts, query->text_count, arena);
        give_ids(tree, spans, arena, answer);
        break;
    case QUERY_MERGE:
        give_merged(tree, spans, now_s, arena, answer);
        break;
    case QUERY_MERGE_BY_TAGS:
        spans = span_find_by_tags(tree, query->texts, query->text_count, arena);
        give_merged(tree, spans, now_s, arena, answer);
        break;
    case QUERY_MERGE_ALL:
        give_merged(tree, span_roots(tree, arena), now_s, arena, answer);
        break;
    case QUERY_OP_COUNT:
        break;
    }
}

void span_queries_reach(struct span_queries *queries, const struct span_tree *tree, uint64_t line) {
    if (queries->count == 0)
        return;
    struct span_answers *answers = answers_of(queries, tree);
    while (answers->next < queries->count) {
        uint32_t index = queries->order[answers->next];
        const struct span_query *query = &queries->items[index];
        if (line != UINT64_MAX && query->after >= line)
            return;
        answer_query(tree, query, &answers->arena, &answers->items[index]);
        answers->next++;
    }
}

const struct span_query_answer *span_queries_answers(struct span_queries *queries,
                                                     const struct span_tree *tree) {
    return queries->count == 0 ? NULL : answers_of(queries, tree)->items;
}
