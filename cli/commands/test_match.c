// SPDX-License-Identifier: Apache-2.0
// Compares verdicts with expectations.
//
// Which verdict fits which expectation is a bipartite graph; a maximum matching is found by
// augmenting paths, breadth first, so that the order in the file does not matter.
#include "cli/commands/test_match.h"

#include "base/memory.h"
#include "config/problem.h"
#include "pipeline/model/verdict.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { NOBODY = UINT32_MAX, LINE_MAX_BYTES = 256 << 10, NAMES_SHOWN = 8 };

static const char *const ROLES[] = {"culprit", "suspect", "victim"};

const char *difference_name(enum difference_kind kind) {
    static const char *const NAMES[] = {"input", "refused", "differs", "missing", "unexpected"};
    assert(kind <= DIFFERENCE_UNEXPECTED);
    return NAMES[kind];
}

void test_differs(struct test_differences *out, enum difference_kind kind, struct location where,
                  const char *verdict, const char *text) {
    assert(out->arena != NULL);
    if (out->items == NULL)
        out->items = arena_zero(out->arena, TEST_DIFFERENCES_MAX, sizeof *out->items);
    if (out->total++ < TEST_DIFFERENCES_MAX)
        out->items[out->count++] = (struct test_difference){kind, text, verdict, where};
}

// -- one verdict and one expectation ------------------------------------------------------------

static bool kind_named(const struct plan_test_entities *expected, const char *kind) {
    for (uint32_t i = 0; i < expected->count; i++)
        if (strcmp(expected->items[i].kind, kind) == 0)
            return true;
    return expected->count == 0; // nobody, of any kind
}

static bool entity_expected(const struct plan_test_entities *expected,
                            const struct found_entity *found) {
    for (uint32_t i = 0; i < expected->count; i++)
        if (strcmp(expected->items[i].kind, found->kind) == 0 &&
            strcmp(expected->items[i].name, found->name) == 0)
            return true;
    return false;
}

static bool entity_found(const struct found_verdict *verdict, enum entity_role role,
                         const struct plan_test_entity *expected) {
    for (uint32_t i = 0; i < verdict->entity_count; i++)
        if (verdict->entities[i].role == role &&
            strcmp(verdict->entities[i].kind, expected->kind) == 0 &&
            strcmp(verdict->entities[i].name, expected->name) == 0)
            return true;
    return false;
}

// Of each kind that is expected these and no others.
static bool entities_fit(const struct found_verdict *verdict, enum entity_role role,
                         const struct plan_test_entities *expected) {
    assert(role <= ROLE_VICTIM);
    if (!expected->given)
        return true;
    for (uint32_t i = 0; i < expected->count; i++)
        if (!entity_found(verdict, role, &expected->items[i]))
            return false;
    for (uint32_t i = 0; i < verdict->entity_count; i++) {
        const struct found_entity *found = &verdict->entities[i];
        if (found->role == role && kind_named(expected, found->kind) &&
            !entity_expected(expected, found))
            return false;
    }
    return true;
}

static void name_append(struct buffer *out, uint32_t *count, const char *kind, const char *name) {
    if (*count < NAMES_SHOWN)
        buffer_append_format(out, "%s%s %s", *count == 0 ? "" : ", ", kind, name);
    ++*count;
}

static void names_end(struct buffer *out, uint32_t count) {
    if (count == 0)
        buffer_append_text(out, "nobody");
    if (count > NAMES_SHOWN)
        buffer_append_format(out, " and %u more", count - NAMES_SHOWN);
}

static void found_names_append(struct buffer *out, const struct found_verdict *verdict,
                               enum entity_role role) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < verdict->entity_count; i++)
        if (verdict->entities[i].role == role)
            name_append(out, &count, verdict->entities[i].kind, verdict->entities[i].name);
    names_end(out, count);
}

static void expected_names_append(struct buffer *out, const struct plan_test_entities *expected) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < expected->count; i++)
        name_append(out, &count, expected->items[i].kind, expected->items[i].name);
    names_end(out, count);
}

// "severity error, expected warning"; `out` NULL: only whether.
static uint32_t word_differs(struct buffer *out, bool equal, const char *what, const char *found,
                             const char *expected) {
    if (!equal && out != NULL)
        buffer_append_format(out, "%s%s %s, expected %s", out->size == 0 ? "" : "; ", what,
                             *found == '\0' ? "none" : found, expected);
    return !equal;
}

static uint32_t number_differs(struct buffer *out, const struct found_verdict *verdict,
                               const struct plan_test_expectation *expected) {
    bool equal = verdict->confidence >= expected->confidence;
    if (!equal && out != NULL)
        buffer_append_format(out, "%sconfidence %d, expected at least %" PRId64,
                             out->size == 0 ? "" : "; ", verdict->confidence, expected->confidence);
    return !equal;
}

static uint32_t headline_differs(struct buffer *out, const struct found_verdict *verdict,
                                 const char *expected) {
    bool equal = expected == NULL || strstr(verdict->headline, expected) != NULL;
    if (!equal && out != NULL)
        buffer_append_format(out, "%sheadline does not contain \"%s\"", out->size == 0 ? "" : "; ",
                             expected);
    return !equal;
}

static uint32_t entities_differ(struct buffer *out, const struct found_verdict *verdict,
                                const struct plan_test_expectation *expected) {
    uint32_t count = 0;
    for (int role = ROLE_CULPRIT; role <= ROLE_VICTIM; role++) {
        if (entities_fit(verdict, (enum entity_role)role, &expected->entities[role]))
            continue;
        count++;
        if (out == NULL)
            continue;
        buffer_append_format(out, "%s%s ", out->size == 0 ? "" : "; ", ROLES[role]);
        found_names_append(out, verdict, (enum entity_role)role);
        buffer_append_text(out, ", expected ");
        expected_names_append(out, &expected->entities[role]);
    }
    return count;
}

// How many of the fields differ; which, appended to `out` unless that is NULL.
static uint32_t fields_differ(struct buffer *out, const struct found_verdict *verdict,
                              const struct plan_test_expectation *expected) {
    assert(strcmp(verdict->pattern, expected->pattern) == 0);
    const char *severity =
        expected->severity == 0 ? "" : severity_name((enum severity)(expected->severity - 1));
    const char *state =
        expected->state == 0 ? "" : verdict_state_name((enum verdict_state)(expected->state - 1));
    const char *found = severity_name(verdict->severity);
    uint32_t count = word_differs(out, *severity == '\0' || strcmp(severity, found) == 0,
                                  "severity", found, severity);
    found = verdict_state_name(verdict->state);
    count += word_differs(out, *state == '\0' || strcmp(state, found) == 0, "state", found, state);
    count += word_differs(out, expected->kind == NULL || strcmp(expected->kind, verdict->kind) == 0,
                          "kind", verdict->kind, expected->kind);
    count += word_differs(out, expected->job == NULL || strcmp(expected->job, verdict->job) == 0,
                          "job", verdict->job, expected->job);
    count += word_differs(out, !expected->root_given || expected->root == verdict->root, "root",
                          verdict->root ? "true" : "false", expected->root ? "true" : "false");
    count += number_differs(out, verdict, expected);
    count += headline_differs(out, verdict, expected->headline);
    return count + entities_differ(out, verdict, expected);
}

static bool fits(const struct found_verdict *verdict,
                 const struct plan_test_expectation *expected) {
    return strcmp(verdict->pattern, expected->pattern) == 0 &&
           fields_differ(NULL, verdict, expected) == 0;
}

// -- the matching -------------------------------------------------------------------------------

struct matching {
    const struct plan_test *test;
    const struct test_run *run;
    uint32_t *verdict_of;     // by expectation
    uint32_t *expectation_of; // by verdict
    uint32_t *reached_from;   // by verdict, in one search: the expectation it was reached from
    uint32_t *queue;          // of expectations
};

// Turns the path that ends at `verdict` around.
static void augment(struct matching *match, uint32_t verdict) {
    assert(match->expectation_of[verdict] == NOBODY);
    while (verdict != NOBODY) {
        uint32_t expectation = match->reached_from[verdict];
        uint32_t next = match->verdict_of[expectation];
        match->verdict_of[expectation] = verdict;
        match->expectation_of[verdict] = expectation;
        verdict = next;
    }
}

// Finds a verdict for the expectation, by giving others another one where that is needed.
static void match_one(struct matching *match, uint32_t from) {
    uint32_t count = 1;
    assert(match->verdict_of[from] == NOBODY);
    match->queue[0] = from;
    for (uint32_t i = 0; i < match->run->verdict_count; i++)
        match->reached_from[i] = NOBODY;
    for (uint32_t at = 0; at < count; at++)
        for (uint32_t i = 0; i < match->run->verdict_count; i++) {
            uint32_t expectation = match->queue[at];
            if (match->reached_from[i] != NOBODY ||
                !fits(&match->run->verdicts[i], &match->test->expected[expectation]))
                continue;
            match->reached_from[i] = expectation;
            if (match->expectation_of[i] == NOBODY) {
                augment(match, i);
                return;
            }
            assert(count < match->test->expected_count);
            match->queue[count++] = match->expectation_of[i];
        }
}

static uint32_t *rows_make(struct arena *arena, uint32_t count) {
    uint32_t *rows = arena_take(arena, (count + 1) * sizeof *rows);
    for (uint32_t i = 0; i < count; i++)
        rows[i] = NOBODY;
    return rows;
}

// Of the same pattern, not taken, with the fewest differing fields; the first of equals.
static uint32_t nearest_of(const struct matching *match,
                           const struct plan_test_expectation *expected) {
    uint32_t nearest = NOBODY, least = UINT32_MAX;
    for (uint32_t i = 0; i < match->run->verdict_count; i++) {
        const struct found_verdict *verdict = &match->run->verdicts[i];
        if (match->expectation_of[i] != NOBODY || strcmp(verdict->pattern, expected->pattern) != 0)
            continue;
        uint32_t count = fields_differ(NULL, verdict, expected);
        if (count < least) {
            nearest = i;
            least = count;
        }
    }
    return nearest;
}

// -- what is told -------------------------------------------------------------------------------

static const char *text_of(struct arena *arena, struct buffer *text) {
    const char *copy = arena_text(arena, buffer_slice(text));
    buffer_release(text);
    return copy;
}

static const char *verdict_name(struct arena *arena, const struct found_verdict *verdict) {
    return arena_format(arena, "%s: %s", verdict->id, verdict->headline);
}

static const char *expectation_text(struct arena *arena,
                                    const struct plan_test_expectation *expected) {
    struct buffer text;
    buffer_init(&text, LINE_MAX_BYTES);
    buffer_append_text(&text, expected->pattern);
    if (expected->kind != NULL)
        buffer_append_format(&text, ", kind %s", expected->kind);
    if (expected->severity != 0)
        buffer_append_format(&text, ", severity %s",
                             severity_name((enum severity)(expected->severity - 1)));
    for (int role = ROLE_CULPRIT; role <= ROLE_VICTIM; role++) {
        if (!expected->entities[role].given)
            continue;
        buffer_append_format(&text, ", %s ", ROLES[role]);
        expected_names_append(&text, &expected->entities[role]);
    }
    if (expected->job != NULL)
        buffer_append_format(&text, ", job %s", expected->job);
    return text_of(arena, &text);
}

static const char *verdict_text(struct arena *arena, const struct found_verdict *verdict) {
    struct buffer text;
    buffer_init(&text, LINE_MAX_BYTES);
    buffer_append_format(&text, "%s, kind %s, severity %s, culprit ", verdict->pattern,
                         verdict->kind, severity_name(verdict->severity));
    found_names_append(&text, verdict, ROLE_CULPRIT);
    if (verdict->job[0] != '\0')
        buffer_append_format(&text, ", job %s", verdict->job);
    return text_of(arena, &text);
}

static void expectation_report(struct test_differences *out, struct matching *match, uint32_t at) {
    const struct plan_test_expectation *expected = &match->test->expected[at];
    uint32_t nearest = nearest_of(match, expected);
    if (nearest == NOBODY) {
        test_differs(out, DIFFERENCE_MISSING, expected->where, NULL,
                     expectation_text(out->arena, expected));
        return;
    }
    const struct found_verdict *verdict = &match->run->verdicts[nearest];
    assert(match->expectation_of[nearest] == NOBODY);
    match->expectation_of[nearest] = at;
    struct buffer text;
    buffer_init(&text, LINE_MAX_BYTES);
    fields_differ(&text, verdict, expected);
    test_differs(out, DIFFERENCE_DIFFERS, expected->where, verdict_name(out->arena, verdict),
                 text_of(out->arena, &text));
}

static bool may_be_there(const struct plan_test *test, const struct found_verdict *verdict) {
    return test->others == OTHERS_ANY || (test->others == OTHERS_CONSEQUENCES && !verdict->root);
}

static void inputs_compare(struct test_differences *out, const struct plan_test *test,
                           const struct test_run *run) {
    assert(run->note_count <= TEST_SHOWN_MAX && run->refusal_count <= TEST_SHOWN_MAX);
    for (uint32_t i = 0; i < run->note_count && run->unread; i++)
        test_differs(out, DIFFERENCE_INPUT, (struct location){0}, NULL, run->notes[i]);
    if (run->unread && run->note_count == 0)
        test_differs(out, DIFFERENCE_INPUT, (struct location){0}, NULL,
                     "an input is missing, or was not read");
    if (run->refused == (uint64_t)test->refused)
        return;
    test_differs(out, DIFFERENCE_REFUSED, (struct location){0}, NULL,
                 arena_format(out->arena, "%" PRIu64 " record%s refused, expected %" PRId64,
                              run->refused, run->refused == 1 ? " was" : "s were", test->refused));
    for (uint32_t i = 0; i < run->refusal_count; i++)
        test_differs(out, DIFFERENCE_REFUSED, (struct location){0}, NULL, run->refusals[i]);
}

void test_compare(struct test_differences *out, const struct plan_test *test,
                  const struct test_run *run) {
    struct matching match = {.test = test,
                             .run = run,
                             .verdict_of = rows_make(out->arena, test->expected_count),
                             .expectation_of = rows_make(out->arena, run->verdict_count),
                             .reached_from = rows_make(out->arena, run->verdict_count),
                             .queue = rows_make(out->arena, test->expected_count)};
    inputs_compare(out, test, run);
    for (uint32_t i = 0; i < test->expected_count; i++)
        match_one(&match, i);
    for (uint32_t i = 0; i < test->expected_count; i++)
        if (match.verdict_of[i] == NOBODY)
            expectation_report(out, &match, i);
    for (uint32_t i = 0; i < run->verdict_count; i++)
        if (match.expectation_of[i] == NOBODY && !may_be_there(test, &run->verdicts[i]))
            test_differs(out, DIFFERENCE_UNEXPECTED, (struct location){0},
                         verdict_name(out->arena, &run->verdicts[i]),
                         verdict_text(out->arena, &run->verdicts[i]));
}
