// SPDX-License-Identifier: Apache-2.0
// What is taken for a line of the protocol, a whole answer, an event; and which options are right.
// How it talks to a server is shown by tests/nccl_ras.
#include "receivers/nccl_ras/receiver.h"
#include "receivers/nccl_ras/reply.h"

#include "cli/component_list.h"
#include "config/problem.h"

#include <check.h>
#include <stdlib.h>

START_TEST(lines) {
    ck_assert(ras_line_is_hello(SLICE("SERVER PROTOCOL 2")));
    ck_assert(ras_line_is_hello(SLICE("server protocol 3\r")));
    ck_assert(!ras_line_is_hello(SLICE("SERVER PROTOCOL two")));
    ck_assert(!ras_line_is_hello(SLICE("SERVER PROTOCOL ")));
    ck_assert(!ras_line_is_hello(SLICE("")));
    ck_assert(ras_line_is_ok(SLICE("OK")) && ras_line_is_ok(SLICE("ok\r")));
    ck_assert(!ras_line_is_ok(SLICE("OKAY")) && !ras_line_is_ok(SLICE("")));
    ck_assert(ras_line_is_error(SLICE("ERROR: Unknown command MONITOR all")));
    ck_assert(!ras_line_is_error(SLICE("ERR")));
}
END_TEST

static const struct {
    const char *text;
    size_t size;
} OBJECTS[] = {
    {"{}", 2},
    {" \n{\"a\":{\"b\":[{}]}} {", 18},
    {"{\"a\":\"}\\\"}\"}x", 12},
    {"{\"a\":\"\\\\\"}", 10},
    {"{\"a\":", 0},
    {"{\"a\":\"}", 0},
    {"", 0},
    {"  ", 0},
    {"[{}]", SIZE_MAX},
    {"}", SIZE_MAX},
};

START_TEST(objects) {
    ck_assert_uint_eq(ras_object_size(slice_of(OBJECTS[_i].text)), OBJECTS[_i].size);
}
END_TEST

#define TEXT "NCCL version 2.27.3 compiled with CUDA 12.9\n\nErrors\n======\n\n"
static const struct {
    const char *text;
    bool json, whole;
} REPLIES[] = {
    {"{\"communicators\":[]}\n", true, true},
    {"{\"communicators\":[]}", true, true},
    {"{\"communicators\":[]", true, false},
    {"{} {}", true, false},
    {"ERROR: busy\n", true, false},
    {"", true, false},
    {TEXT "Warnings\n========\n\n", false, true},
    {TEXT, false, false},
    {TEXT "Warnings\n========\n\n#0-0 (51c0ff", false, false},
    {"{}", false, false},
    {"", false, false},
};

START_TEST(replies) {
    ck_assert_int_eq(ras_reply_is_whole(slice_of(REPLIES[_i].text), REPLIES[_i].json),
                     REPLIES[_i].whole);
}
END_TEST

START_TEST(events) {
    struct slice dead = ras_event_name(SLICE("{\n \"event\" : \"PEER_DEAD\",\n \"peer\": {}}"));
    ck_assert(slice_equal(dead, SLICE("PEER_DEAD")));
    ck_assert(ras_event_is_silence(dead) && ras_event_is_lifecycle(dead));
    ck_assert(ras_event_is_silence(SLICE("PEER_UNRESPONSIVE")));
    ck_assert(!ras_event_is_lifecycle(SLICE("PEER_UNRESPONSIVE")));
    ck_assert(!ras_event_is_silence(SLICE("PEER_NEW")) && !ras_event_is_silence(SLICE("")));
    ck_assert_uint_eq(ras_event_name(SLICE("{\"event\": 7}")).size, 0);
    ck_assert_uint_eq(ras_event_name(SLICE("{\"event\": \"PEER")).size, 0);
    ck_assert_uint_eq(ras_event_name(SLICE("{\"event\"")).size, 0);
    ck_assert_uint_eq(ras_event_name(SLICE("")).size, 0);
}
END_TEST

static const struct {
    const char *endpoint;
    uint32_t problems;
} ENDPOINTS[] = {
    {"localhost:28028", 0}, {"[::1]:28028", 0}, {"10.20.0.7:28028", 0},
    {"localhost", 1},       {"localhost:0", 1}, {"unix:/run/ras.sock", 1},
};

START_TEST(endpoints) {
    const char *names[] = {ENDPOINTS[_i].endpoint, ENDPOINTS[_i].endpoint};
    struct ras_config config = {.endpoints = {names, 1}};
    struct arena arena;
    struct problem_list problems;
    arena_init(&arena, 4096);
    problem_list_init(&problems, &arena);
    receiver_nccl_ras.validate(&config, &problems);
    ck_assert_uint_eq(problems.count, ENDPOINTS[_i].problems);
    config.endpoints.count = 2; // the same one twice
    receiver_nccl_ras.validate(&config, &problems);
    ck_assert_uint_eq(problems.count, 3 * ENDPOINTS[_i].problems + 1);
    arena_release(&arena);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("nccl_ras receiver");
    TCase *cases = tcase_create("nccl_ras");
    tcase_add_test(cases, lines);
    tcase_add_loop_test(cases, objects, 0, sizeof OBJECTS / sizeof *OBJECTS);
    tcase_add_loop_test(cases, replies, 0, sizeof REPLIES / sizeof *REPLIES);
    tcase_add_test(cases, events);
    tcase_add_loop_test(cases, endpoints, 0, sizeof ENDPOINTS / sizeof *ENDPOINTS);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
