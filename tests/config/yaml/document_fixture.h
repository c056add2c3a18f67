// SPDX-License-Identifier: Apache-2.0
// One document a test: an arena, the problems found, and a way to look at the tree as a text.
#pragma once

#include "base/memory.h"
#include "config/yaml/document.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static struct arena arena;
static struct problem_list problems;

static inline void document_setup(void) {
    arena_init(&arena, 4096);
    problem_list_init(&problems, &arena);
}

static inline void document_teardown(void) {
    arena_release(&arena);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static inline struct node *parse(const char *text) {
    return document_parse(&arena, "c.yaml", slice_of(text), &problems);
}

// The problems as they are printed; "" when there are none.
static inline const char *problems_text(void) {
    struct buffer out;
    buffer_init(&out, 1 << 20);
    problem_list_print(&problems, &out);
    const char *text = arena_text(&arena, buffer_slice(&out));
    buffer_release(&out);
    return text;
}

// "{a:1,b:[x,'y']}": plain texts as they are, quoted ones in quotes, ~ for nothing.
static inline const char *shown(const struct node *node) {
    if (node == NULL)
        return "(none)";
    if (node->type == NODE_NULL)
        return "~";
    if (node->type == NODE_TEXT)
        return node->quoted ? arena_format(&arena, "'%s'", node->text) : node->text;
    const char *text = "";
    for (uint32_t i = 0; i < node->count; i++) {
        const struct node_entry *entry = &node->entries[i];
        text = arena_format(&arena, "%s%s%s%s%s", text, i == 0 ? "" : ",",
                            entry->key == NULL ? "" : entry->key, entry->key == NULL ? "" : ":",
                            shown(entry->value));
    }
    return arena_format(&arena, node->type == NODE_MAP ? "{%s}" : "[%s]", text);
}

static inline void fails(const char *text, const char *expected) {
    problem_list_init(&problems, &arena);
    ck_assert_ptr_null(parse(text));
    ck_assert_str_eq(problems_text(), expected);
}

static inline void gives(const char *text, const char *expected) {
    problem_list_init(&problems, &arena);
    const struct node *root = parse(text);
    ck_assert_str_eq(problems_text(), "");
    ck_assert_str_eq(shown(root), expected);
}

static inline void place_is(struct location where, uint32_t line, uint32_t column) {
    ck_assert_str_eq(where.file, "c.yaml");
    ck_assert_uint_eq(where.line, line);
    ck_assert_uint_eq(where.column, column);
}

static inline int run_suite(const char *name, void (*add)(TCase *)) {
    Suite *suite = suite_create(name);
    TCase *cases = tcase_create(name);
    tcase_add_checked_fixture(cases, document_setup, document_teardown);
    add(cases);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
