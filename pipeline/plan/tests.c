// SPDX-License-Identifier: Apache-2.0
// Reads `tests`: names, pipelines, expectations. Linear in the text, but for names that are
// compared with one another, which are bounded.
#include "pipeline/plan/tests.h"

#include "config/problem.h"
#include "pipeline/plan/test_parts.h"

#include <assert.h>
#include <string.h>

enum { PATTERNS_MAX = 256 };

struct expect_config {
    const char *pattern, *kind, *job, *headline;
    int severity, state;
    int64_t confidence;
    bool root;
    struct text_list culprit, suspect, victim;
};

struct test_config {
    const char *name, *pipeline;
    int others;
    int64_t refused;
};

static const char *const SEVERITIES[] = {"any", "info", "warning", "error", "critical", NULL};
static const char *const STATES[] = {"any", "open", "updated", "resolved", NULL};
static const char *const OTHERS[] = {"none", "consequences", "any", NULL};
static const char *const ROLES[] = {"culprit", "suspect", "victim"};
// As docs/verdict.schema.json has them.
static const char *const ENTITY_KINDS[] = {
    "rank",     "gpu",     "node",          "pod",  "nic",     "pci_device",
    "pci_port", "process", "process_group", "link", "storage",
};
enum { ENTITY_KIND_COUNT = sizeof ENTITY_KINDS / sizeof ENTITY_KINDS[0] };

static const struct option TEST_ROWS[] = {
    OPTION(struct test_config, name, OPTION_TEXT, .required = true,
           .help = "what the test shows; each has another one"),
    OPTION(struct test_config, pipeline, OPTION_TEXT,
           .help = "the pipeline that is tested; not needed where there is only one"),
    OPTION(struct test_config, others, OPTION_CHOICE, .default_value = "none", .choices = OTHERS,
           .help = "which verdicts may be found beside those of expect: none, consequences (those "
                   "that are not the root of an incident), or any"),
    OPTION(struct test_config, refused, OPTION_INT, .default_value = "0", .max = 1e9,
           .help = "how many records of the inputs are refused"),
};

static const struct option EXPECT_ROWS[] = {
    OPTION(struct expect_config, pattern, OPTION_TEXT, .required = true,
           .help = "the verdict's pattern, such as `nccl_hang`"),
    OPTION(struct expect_config, kind, OPTION_TEXT, .help = "what the pattern found"),
    OPTION(struct expect_config, severity, OPTION_CHOICE, .default_value = "any",
           .choices = SEVERITIES, .help = "how grave it is"),
    OPTION(struct expect_config, culprit, OPTION_TEXT_LIST,
           .help = "who is to blame, as KIND NAME: `rank 3`, `node gpu-17`. Of each kind that is "
                   "given these and no others; `[]`: nobody"),
    OPTION(struct expect_config, suspect, OPTION_TEXT_LIST,
           .help = "who may be to blame, likewise"),
    OPTION(struct expect_config, victim, OPTION_TEXT_LIST, .help = "who suffers, likewise"),
    OPTION(struct expect_config, job, OPTION_TEXT, .help = "id of the job"),
    OPTION(struct expect_config, root, OPTION_BOOL,
           .help = "whether it is the root of its incident"),
    OPTION(struct expect_config, confidence, OPTION_INT, .default_value = "0", .max = 100,
           .help = "its confidence is at least this, in percent"),
    OPTION(struct expect_config, state, OPTION_CHOICE, .default_value = "any", .choices = STATES,
           .help = "its state at the end"),
    OPTION(struct expect_config, headline, OPTION_TEXT, .help = "text that its headline contains"),
};

const struct option_rows PLAN_TEST_ROWS = {TEST_ROWS, OPTION_COUNT(TEST_ROWS)};
const struct option_rows PLAN_EXPECT_ROWS = {EXPECT_ROWS, OPTION_COUNT(EXPECT_ROWS)};

// -- maps of the document -----------------------------------------------------------------------

static bool is_named(const char *key, const struct option *rows, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].name, key) == 0)
            return true;
    return false;
}

// A map with room for `more` entries beside those of `from` whose keys the rows have.
struct node *plan_map_copy(const struct plan_builder *builder, const struct node *from,
                           const struct option *rows, size_t count, uint32_t more) {
    assert(from->type == NODE_MAP);
    struct arena *arena = &builder->plan->arena;
    struct node *map = arena_take(arena, sizeof *map);
    *map = *from;
    map->entries = arena_zero(arena, from->count + more, sizeof *map->entries);
    map->count = 0;
    for (uint32_t i = 0; i < from->count; i++)
        if (is_named(from->entries[i].key, rows, count))
            map->entries[map->count++] = from->entries[i];
    return map;
}

// The list under `key`, which may be empty but not absent; NULL with a problem.
static const struct node *list_under(const struct plan_builder *builder,
                                     const struct bind_source *source, const char *key,
                                     uint32_t max, const char *hint) {
    assert(source->node->type == NODE_MAP);
    const struct node_entry *entry = node_entry_find(source->node, key);
    struct problem_list *problems = builder->binder.problems;
    const char *path = arena_format(&builder->plan->arena, "%s.%s", source->key, key);
    if (entry == NULL)
        problem_add_at(problems, source->where, path, "is required: %s", hint);
    else if (entry->value->type != NODE_LIST)
        problem_add_at(problems, entry->value->where, path, "must be a list, not a %s: %s",
                       node_type_name(entry->value->type), hint);
    else if (entry->value->count > max)
        problem_add_at(problems, entry->value->where, path, "has %u items; at most %u are allowed",
                       entry->value->count, max);
    else
        return entry->value;
    return NULL;
}

// An item of a list as a map whose keys are among the names; false with a problem.
bool plan_item_open(const struct plan_builder *builder, const struct node *item, const char *key,
                    const char *const *names, size_t count, struct bind_source *source) {
    assert(item != NULL && key != NULL && count > 0);
    *source = (struct bind_source){.node = item, .key = key, .where = item->where};
    if (item->type == NODE_MAP) {
        bind_check_keys(&builder->binder, names, count, source);
        return true;
    }
    problem_add_at(builder->binder.problems, item->where, key, "must be a map, not a %s",
                   node_type_name(item->type));
    return false;
}

size_t plan_names_add(const char **names, size_t used, const struct option *rows, size_t count) {
    for (size_t i = 0; i < count; i++)
        names[used++] = rows[i].name;
    return used;
}

// -- expectations -------------------------------------------------------------------------------

static bool pattern_known(const struct plan_builder *builder, const char *pattern,
                          const char **near) {
    const char *names[PATTERNS_MAX];
    size_t count = 0;
    struct component_set set = builder->input->components;
    for (size_t i = 0; i < set.count; i++)
        for (size_t j = 0; j < set.types[i]->pattern_count && count < PATTERNS_MAX; j++) {
            names[count++] = set.types[i]->patterns[j].name;
            if (strcmp(names[count - 1], pattern) == 0)
                return true;
        }
    *near = option_nearest(pattern, names, count);
    return false;
}

static void pattern_check(const struct plan_builder *builder, const struct bind_source *source,
                          const char *pattern) {
    assert(pattern != NULL);
    const char *near = NULL;
    if (pattern_known(builder, pattern, &near))
        return;
    const struct node *node = node_child(source->node, "pattern");
    const char *key = arena_format(&builder->plan->arena, "%s.pattern", source->key);
    if (near != NULL)
        problem_add_at(builder->binder.problems, node->where, key,
                       "there is no pattern '%.60s'; did you mean '%s'?", pattern, near);
    else
        problem_add_at(builder->binder.problems, node->where, key,
                       "there is no pattern '%.60s'; `culprit components` lists what there is",
                       pattern);
}

static const char *kind_of(const char *text, size_t size) {
    for (size_t i = 0; i < ENTITY_KIND_COUNT; i++)
        if (strlen(ENTITY_KINDS[i]) == size && memcmp(ENTITY_KINDS[i], text, size) == 0)
            return ENTITY_KINDS[i];
    return NULL;
}

// "rank 3" as what it names; false with a problem.
static bool entity_read(const struct plan_builder *builder, const char *text, struct location where,
                        const char *key, struct plan_test_entity *entity) {
    assert(text != NULL);
    size_t size = strcspn(text, " ");
    const char *name = text + size + strspn(text + size, " ");
    entity->kind = kind_of(text, size);
    entity->name = name;
    if (entity->kind != NULL && *name != '\0')
        return true;
    const char *word = arena_text(&builder->plan->arena, (struct slice){text, size});
    const char *near = option_nearest(word, ENTITY_KINDS, ENTITY_KIND_COUNT);
    if (entity->kind != NULL)
        problem_add_at(builder->binder.problems, where, key,
                       "'%.60s' names no %s; write KIND NAME, such as rank 3", text, entity->kind);
    else if (near != NULL)
        problem_add_at(builder->binder.problems, where, key,
                       "there is no kind '%.60s'; did you mean '%s'?", word, near);
    else
        problem_add_at(builder->binder.problems, where, key,
                       "'%.60s' is not KIND NAME, such as rank 3, gpu GPU-4c1f, node gpu-17 or "
                       "pod train-0",
                       text);
    return false;
}

static void entities_read(const struct plan_builder *builder, const struct bind_source *source,
                          const char *role, const struct text_list *list,
                          struct plan_test_entities *out) {
    assert(!out->given);
    const struct node *node = node_child(source->node, role);
    if (node == NULL)
        return;
    const char *key = arena_format(&builder->plan->arena, "%s.%s", source->key, role);
    if (list->count > PLAN_TEST_ENTITIES_MAX) {
        problem_add_at(builder->binder.problems, node->where, key,
                       "has %u names; at most %d are allowed", list->count, PLAN_TEST_ENTITIES_MAX);
        return;
    }
    struct plan_test_entity *items = arena_zero(&builder->plan->arena, list->count, sizeof *items);
    out->given = true;
    for (uint32_t i = 0; i < list->count; i++) {
        struct location where = node->type == NODE_LIST && i < node->count
                                    ? node->entries[i].value->where
                                    : node->where;
        if (entity_read(builder, list->items[i], where, key, &items[out->count]))
            out->count++;
    }
    out->items = items;
}

static void expectation_define(const struct plan_builder *builder, const struct node *item,
                               const char *key, struct plan_test_expectation *out) {
    const char *names[OPTION_COUNT(EXPECT_ROWS)];
    struct bind_source source;
    struct expect_config config = {0};
    size_t count = plan_names_add(names, 0, EXPECT_ROWS, OPTION_COUNT(EXPECT_ROWS));
    if (!plan_item_open(builder, item, key, names, count, &source))
        return;
    source.node = plan_map_copy(builder, item, EXPECT_ROWS, OPTION_COUNT(EXPECT_ROWS), 0);
    bind_options(&builder->binder, EXPECT_ROWS, OPTION_COUNT(EXPECT_ROWS), &source, &config);
    if (config.pattern != NULL)
        pattern_check(builder, &source, config.pattern);
    *out = (struct plan_test_expectation){.pattern = config.pattern,
                                          .kind = config.kind,
                                          .job = config.job,
                                          .headline = config.headline,
                                          .severity = config.severity,
                                          .state = config.state,
                                          .confidence = config.confidence,
                                          .root = config.root,
                                          .root_given = node_child(item, "root") != NULL,
                                          .where = item->where};
    const struct text_list *lists[] = {&config.culprit, &config.suspect, &config.victim};
    for (int role = 0; role <= ROLE_VICTIM; role++)
        entities_read(builder, &source, ROLES[role], lists[role], &out->entities[role]);
}

// -- tests --------------------------------------------------------------------------------------

static void names_check(const struct plan_builder *builder, const struct plan_test *test,
                        const struct node *list, const char *key) {
    for (uint32_t i = 0; i < test->input_count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (test->inputs[i].text != NULL && test->inputs[j].text != NULL &&
                strcmp(test->inputs[i].name, test->inputs[j].name) == 0) {
                problem_add_at(builder->binder.problems, list->entries[i].value->where, key,
                               "two texts have the name '%.60s'; give each another one",
                               test->inputs[i].name);
                return;
            }
}

static const char *pipeline_names(const struct plan_builder *builder) {
    const struct plan *plan = builder->plan;
    const char *text = "";
    for (uint32_t i = 0; i < plan->pipeline_count && i < 16; i++)
        text = arena_format(&builder->plan->arena, "%s%s%s", text, i == 0 ? "" : ", ",
                            plan->pipelines[i].name);
    return text;
}

// The row of plan->pipelines, or pipeline_count with a problem.
static uint32_t pipeline_of(const struct plan_builder *builder, const struct bind_source *source,
                            const char *name) {
    const struct plan *plan = builder->plan;
    const char *key = arena_format(&builder->plan->arena, "%s.pipeline", source->key);
    for (uint32_t i = 0; name != NULL && i < plan->pipeline_count; i++)
        if (strcmp(plan->pipelines[i].name, name) == 0)
            return i;
    if (plan->pipeline_count == 0) // said already
        return 0;
    if (name != NULL)
        problem_add_at(builder->binder.problems, node_child(source->node, "pipeline")->where, key,
                       "there is no pipeline '%.60s'; there is %s", name, pipeline_names(builder));
    else if (plan->pipeline_count > 1)
        problem_add_at(builder->binder.problems, source->where, key,
                       "is required, since there are several: %s", pipeline_names(builder));
    else
        return 0;
    return plan->pipeline_count;
}

static void verdicts_check(const struct plan_builder *builder, const struct bind_source *source,
                           const struct plan_pipeline *pipeline) {
    const struct plan_component *components = builder->plan->components;
    for (uint32_t i = 0; i < pipeline->processor_count; i++)
        if ((components[pipeline->processors[i]].type->gives & FACT_VERDICTS) != 0)
            return;
    problem_add_at(builder->binder.problems, source->where, source->key,
                   "the pipeline %s reports no verdicts; add a detector, or write preset: all",
                   pipeline->name);
}

static void parts_define(struct plan_builder *builder, const struct bind_source *source,
                         const struct plan_pipeline *pipeline, struct plan_test *test) {
    struct arena *arena = &builder->plan->arena;
    const struct node *inputs =
        list_under(builder, source, "inputs", PLAN_TEST_INPUTS_MAX, "list at least one input");
    const struct node *expected =
        list_under(builder, source, "expect", PLAN_TEST_EXPECTED_MAX,
                   "list the verdicts that must be found, or write [] for none");
    if (inputs != NULL && inputs->count == 0)
        problem_add_at(builder->binder.problems, inputs->where,
                       arena_format(arena, "%s.inputs", source->key),
                       "the list is empty; a test needs at least one input");
    if (inputs != NULL) {
        struct plan_test_input *items = arena_zero(arena, inputs->count, sizeof *items);
        for (uint32_t i = 0; i < inputs->count; i++)
            plan_define_test_input(builder, pipeline, inputs->entries[i].value,
                                   arena_format(arena, "%s.inputs[%u]", source->key, i), i,
                                   &items[i]);
        test->inputs = items;
        test->input_count = inputs->count;
        names_check(builder, test, inputs, arena_format(arena, "%s.inputs", source->key));
    }
    if (expected != NULL) {
        struct plan_test_expectation *items = arena_zero(arena, expected->count, sizeof *items);
        for (uint32_t i = 0; i < expected->count; i++)
            expectation_define(builder, expected->entries[i].value,
                               arena_format(arena, "%s.expect[%u]", source->key, i), &items[i]);
        test->expected = items;
        test->expected_count = expected->count;
    }
}

static void test_define(struct plan_builder *builder, const struct node *item, const char *key,
                        bool good, struct plan_test *test) {
    const char *names[OPTION_COUNT(TEST_ROWS) + 2] = {"inputs", "expect"};
    struct bind_source source;
    struct test_config config = {0};
    if (!plan_item_open(builder, item, key, names,
                        plan_names_add(names, 2, TEST_ROWS, OPTION_COUNT(TEST_ROWS)), &source))
        return;
    struct bind_source own = source;
    own.node = plan_map_copy(builder, item, TEST_ROWS, OPTION_COUNT(TEST_ROWS), 0);
    bind_options(&builder->binder, TEST_ROWS, OPTION_COUNT(TEST_ROWS), &own, &config);
    *test = (struct plan_test){.name = config.name,
                               .where = item->where,
                               .others = config.others,
                               .refused = config.refused};
    test->pipeline = pipeline_of(builder, &source, config.pipeline);
    assert(test->pipeline <= builder->plan->pipeline_count);
    const struct plan_pipeline *pipeline = NULL;
    if (test->pipeline < builder->plan->pipeline_count)
        pipeline = &builder->plan->pipelines[test->pipeline];
    if (pipeline != NULL && good)
        verdicts_check(builder, &source, pipeline);
    parts_define(builder, &source, pipeline, test);
}

static void test_name_check(const struct plan_builder *builder, const struct plan_test *tests,
                            uint32_t at, const char *key) {
    const char *name = tests[at].name;
    for (uint32_t i = 0; i < at && name != NULL; i++)
        if (tests[i].name != NULL && strcmp(tests[i].name, name) == 0) {
            problem_add_at(builder->binder.problems, tests[at].where,
                           arena_format(&builder->plan->arena, "%s.name", key),
                           "the test in line %u has the same name; give each another one",
                           tests[i].where.line);
            return;
        }
}

void plan_define_tests(struct plan_builder *builder) {
    assert(builder->root != NULL && builder->plan->tests == NULL);
    struct plan *plan = builder->plan;
    const struct node *list = node_child(builder->root, "tests");
    bool good = builder->binder.problems->count == 0; // what pipelines hold is known
    if (list == NULL || list->type == NODE_NULL)
        return;
    if (list->type != NODE_LIST || list->count > PLAN_TESTS_MAX) {
        problem_add_at(builder->binder.problems, list->where, "tests",
                       "must be a list of at most %d tests", PLAN_TESTS_MAX);
        return;
    }
    struct plan_test *tests = arena_zero(&plan->arena, list->count, sizeof *tests);
    for (uint32_t i = 0; i < list->count; i++) {
        const char *key = arena_format(&plan->arena, "tests[%u]", i);
        test_define(builder, list->entries[i].value, key, good, &tests[i]);
        test_name_check(builder, tests, i, key);
    }
    plan->tests = tests;
    plan->test_count = list->count;
}
