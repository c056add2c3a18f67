// SPDX-License-Identifier: Apache-2.0
// What a tap copies, what it leaves out, and the lines that come of it.
#include "pipeline/runtime/control/tap.h"
#include "pipeline/runtime/control/tap_record.h"

#include "base/memory.h"
#include "pipeline/component/decoder.h"
#include "pipeline/model/node_event.h"

#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static const struct decoder_type words = {.name = "words"};

static struct tap_choice everything(int32_t point) {
    struct tap_choice choice = {
        .point = point, .verdicts = true, .rank = RANK_NONE, .every = 1, .rate = TAP_RATE_MAX};
    memset(choice.events, 1, sizeof choice.events);
    return choice;
}

static struct event event_of(int32_t rank, const char *job, const char *raw) {
    return (struct event){.time_ns = UINT64_C(1700000000000000000),
                          .position = 7,
                          .source = intern(SLICE("/var/log/x")),
                          .job = job == NULL ? STRING_NONE : intern(slice_of(job)),
                          .rank = rank,
                          .kind = EVENT_TELEMETRY,
                          .decoder = &words,
                          .raw = slice_of(raw)};
}

static struct buffer out;

static json_t *next_line(struct tap *tap) {
    buffer_reset(&out);
    if (!tap_next(tap, &out))
        return NULL;
    json_error_t error;
    ck_assert_int_eq(out.data[out.size - 1], '\n');
    ck_assert_ptr_null(memchr(out.data, '\n', out.size - 1));
    json_t *line = json_loadb(out.data, out.size, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(line != NULL, "%s: %.*s", error.text, (int)out.size, out.data);
    return line;
}

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "(none)" : text;
}

static void setup(void) {
    buffer_init(&out, 1 << 20);
}

static void teardown(void) {
    buffer_release(&out);
    intern_release();
}

static void note(struct tap *tap, int32_t point, struct event *events, uint32_t count) {
    struct tap_set set = {0};
    ck_assert(tap_set_add(&set, tap));
    struct batch batch = {.events = events, .event_count = count, .kinds = 1u << EVENT_TELEMETRY};
    tap_set_note(&set, point, &batch, 0);
}

START_TEST(an_event_needs_nothing_of_its_batch) {
    char raw[] = "{\"a\":\"\033[31m\xff\"}";
    struct tap_choice choice = everything(TAP_ENTRY);
    struct tap *tap = tap_create(&choice);
    struct event event = event_of(3, "job \"a\"", raw);
    note(tap, TAP_ENTRY, &event, 1);
    memset(raw, 'x', sizeof raw - 1); // the receiver's buffer is used again
    json_t *line = next_line(tap);
    ck_assert_str_eq(text_of(line, "event"), "telemetry");
    ck_assert_str_eq(text_of(line, "time"), "2023-11-14T22:13:20.000000000Z");
    ck_assert_str_eq(text_of(line, "job"), "job \"a\"");
    ck_assert_str_eq(text_of(line, "source"), "/var/log/x");
    ck_assert_str_eq(text_of(line, "format"), "words");
    ck_assert_int_eq(json_integer_value(json_object_get(line, "rank")), 3);
    ck_assert_int_eq(json_integer_value(json_object_get(line, "position")), 7);
    ck_assert_str_eq(text_of(line, "record"), "{\"a\":\"\033[31m\xef\xbf\xbd\"}");
    ck_assert_ptr_null(json_object_get(line, "node"));
    ck_assert_ptr_null(json_object_get(line, "record_bytes"));
    // In the bytes there is neither an escape nor anything that is not ASCII.
    for (size_t i = 0; i < out.size - 1; i++)
        ck_assert(out.data[i] >= ' ' && out.data[i] < 0x7f);
    json_decref(line);
    ck_assert_ptr_null(next_line(tap));
    tap_free(tap);
}
END_TEST

START_TEST(facts_of_an_observation_are_told) {
    struct fact facts[2] = {{.key = FACT_PID, .number = -5}};
    char text[TAP_TEXT_MAX + 100];
    memset(text, 'a', sizeof text);
    enum fact_key text_key = FACT_KEY_COUNT;
    for (int key = FACT_PID + 1; key < (int)FACT_KEY_COUNT && text_key == FACT_KEY_COUNT; key++)
        if (fact_type((enum fact_key)key) == FACT_TEXT)
            text_key = (enum fact_key)key;
    facts[1] = (struct fact){.key = text_key, .text = {text, sizeof text}};
    struct observation observation = {
        .kind = OBSERVATION_CUDA_OOM, .facts = facts, .fact_count = 2};
    struct event event = event_of(RANK_NONE, NULL, "out of memory");
    event.kind = EVENT_OBSERVATION;
    event.observation = &observation;
    struct tap_choice choice = everything(TAP_ENTRY);
    struct tap *tap = tap_create(&choice);
    note(tap, TAP_ENTRY, &event, 1);
    memset(text, 'b', sizeof text);
    memset(facts, 0xee, sizeof facts);
    json_t *line = next_line(tap);
    const json_t *told = json_object_get(line, "facts");
    ck_assert_str_eq(text_of(line, "event"), "cuda_oom");
    ck_assert_int_eq(json_integer_value(json_object_get(told, fact_name(FACT_PID))), -5);
    const char *kept = text_of(told, fact_name(text_key));
    ck_assert_uint_eq(strlen(kept), TAP_TEXT_MAX);
    ck_assert_uint_eq(strspn(kept, "a"), TAP_TEXT_MAX);
    ck_assert_str_eq(text_of(line, "record"), "out of memory");
    json_decref(line);
    tap_free(tap);
}
END_TEST

START_TEST(long_records_are_cut_and_pickles_left_out) {
    char *raw = memory_take(TAP_RAW_MAX + 11);
    memset(raw, 'r', TAP_RAW_MAX + 10);
    raw[TAP_RAW_MAX + 10] = '\0';
    struct event events[] = {event_of(0, "j", raw), event_of(0, "j", "")};
    events[1].raw = (struct slice){"\x80\x04\0pickle", 9};
    struct tap_choice choice = everything(TAP_ENTRY);
    struct tap *tap = tap_create(&choice);
    note(tap, TAP_ENTRY, events, 2);
    json_t *line = next_line(tap);
    ck_assert_uint_eq(strlen(text_of(line, "record")), TAP_RAW_MAX);
    ck_assert_int_eq(json_integer_value(json_object_get(line, "record_bytes")), TAP_RAW_MAX + 10);
    json_decref(line);
    line = next_line(tap);
    ck_assert_ptr_null(json_object_get(line, "record"));
    ck_assert_int_eq(json_integer_value(json_object_get(line, "record_bytes")), 9);
    json_decref(line);
    tap_free(tap);
    memory_give(raw);
}
END_TEST

START_TEST(only_what_was_asked_for_is_taken) {
    struct event events[] = {event_of(0, "a", "0"), event_of(1, "a", "1"), event_of(1, "b", "2"),
                             event_of(1, NULL, "3"), event_of(1, "a", "4")};
    struct tap_choice choice = everything(2);
    choice.job = intern(SLICE("a"));
    choice.rank = 1;
    struct tap *tap = tap_create(&choice);
    uint64_t selected = ~UINT64_C(16); // the last one is of a job that is not looked at
    struct batch batch = {.events = events, .event_count = 5, .selected = &selected};
    struct tap_set set = {.items = {tap}, .count = 1};
    tap_set_note(&set, 1, &batch, 0); // another point
    ck_assert_ptr_null(next_line(tap));
    tap_set_note(&set, 2, &batch, 0);
    json_t *line = next_line(tap);
    ck_assert_str_eq(text_of(line, "record"), "1");
    json_decref(line);
    ck_assert_ptr_null(next_line(tap));
    ck_assert_uint_eq(tap_left_out(tap), 0); // what does not match was not left out
    tap_free(tap);
}
END_TEST

START_TEST(every_nth_is_taken_and_the_rate_bounds) {
    enum { COUNT = 1000 };
    struct event *events = memory_take(COUNT * sizeof *events);
    for (int i = 0; i < COUNT; i++)
        events[i] = event_of(i, "a", "r");
    struct tap_choice choice = everything(TAP_ENTRY);
    choice.every = 7;
    struct tap *tap = tap_create(&choice);
    note(tap, TAP_ENTRY, events, COUNT);
    for (int i = 0; i < COUNT; i += 7) {
        json_t *line = next_line(tap);
        ck_assert_int_eq(json_integer_value(json_object_get(line, "rank")), i);
        json_decref(line);
    }
    ck_assert_ptr_null(next_line(tap));
    ck_assert_uint_eq(tap_left_out(tap), 0);
    tap_free(tap);
    choice = everything(TAP_ENTRY);
    choice.rate = 10;
    tap = tap_create(&choice);
    note(tap, TAP_ENTRY, events, COUNT); // one batch is of one second
    for (int i = 0; i < 10; i++)
        json_decref(next_line(tap));
    ck_assert_ptr_null(next_line(tap));
    ck_assert_uint_eq(tap_left_out(tap), COUNT - 10);
    tap_free(tap);
    memory_give(events);
}
END_TEST

// A reader that rests loses the newest, never the order, and what is there is whole. Round and
// round, with records of many sizes.
START_TEST(a_full_ring_drops_and_counts) {
    enum { ROUNDS = 40, BATCH = 400 };
    char *raw = memory_take(TAP_RAW_MAX + 1);
    memset(raw, 'r', TAP_RAW_MAX);
    struct event *events = memory_take(BATCH * sizeof *events);
    struct tap_choice choice = everything(TAP_ENTRY);
    struct tap *tap = tap_create(&choice);
    uint64_t offered = 0, read = 0;
    int64_t last = -1;
    srand((unsigned)_i + 1);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < BATCH; i++) {
            events[i] = event_of((int32_t)(offered + (uint64_t)i), "a", "");
            events[i].raw = (struct slice){raw, 1 + (size_t)rand() % TAP_RAW_MAX};
        }
        if (offered + BATCH > TAP_RATE_MAX)
            break; // the rate is another test's
        uint64_t before = memory_figures().allocations;
        note(tap, TAP_ENTRY, events, BATCH);
        ck_assert_uint_eq(memory_figures().allocations, before); // nothing is allocated
        offered += BATCH;
        for (int i = 0; i < (round % 3 == 0 ? 1000 : 50); i++) {
            json_t *line = next_line(tap);
            if (line == NULL)
                break;
            int64_t rank = json_integer_value(json_object_get(line, "rank"));
            ck_assert_int_gt(rank, last);
            ck_assert_uint_ge(strlen(text_of(line, "record")), 1);
            last = rank;
            read++;
            json_decref(line);
        }
    }
    for (json_t *line; (line = next_line(tap)) != NULL; read++)
        json_decref(line);
    ck_assert_uint_eq(read + tap_left_out(tap), offered);
    ck_assert_uint_gt(tap_left_out(tap), 0);
    ck_assert_uint_gt(read, 500);
    tap_free(tap);
    memory_give(events);
    memory_give(raw);
}
END_TEST

START_TEST(verdicts_that_a_stage_adds) {
    struct arena arena;
    arena_init(&arena, 4096);
    struct batch batch = {.arena = &arena, .evaluate = true};
    struct entity rank = {.kind = "rank", .name = SLICE("12"), .role = ROLE_CULPRIT};
    for (int i = 0; i < 3; i++) {
        struct verdict verdict = {.pattern = "nccl_hang",
                                  .kind = "hang",
                                  .action = "none",
                                  .headline = SLICE("a \"headline\""),
                                  .unchanged = i == 2,
                                  .entities = &rank,
                                  .entity_count = i > 0};
        snprintf(verdict.id, sizeof verdict.id, "nccl_hang:%016d", i);
        batch_append_verdict(&batch, &verdict);
    }
    struct tap_choice choice = everything(4);
    struct tap *tap = tap_create(&choice);
    struct tap_set set = {.items = {tap}, .count = 1};
    tap_set_note(&set, 4, &batch, 3); // it added none
    ck_assert_ptr_null(next_line(tap));
    tap_set_note(&set, 4, &batch, 1);
    for (int i = 1; i < 3; i++) {
        json_t *line = next_line(tap);
        ck_assert_str_eq(text_of(json_object_get(line, "verdict"), "headline"), "a \"headline\"");
        ck_assert_int_eq(json_is_true(json_object_get(line, "unchanged")), i == 2);
        json_decref(line);
    }
    ck_assert_ptr_null(next_line(tap));
    tap_free(tap);
    choice.rank = 11;
    tap = tap_create(&choice);
    set.items[0] = tap;
    tap_set_note(&set, 4, &batch, 0);
    ck_assert_ptr_null(next_line(tap)); // they name rank 12, or none
    tap_free(tap);
    arena_release(&arena);
}
END_TEST

START_TEST(as_many_taps_as_there_is_room_for) {
    struct tap_set set = {0};
    struct tap_choice choice = everything(TAP_OUT);
    struct tap *taps[TAPS_MAX + 1];
    for (int i = 0; i <= TAPS_MAX; i++) {
        taps[i] = tap_create(&choice);
        ck_assert_int_eq(tap_set_add(&set, taps[i]), i < TAPS_MAX);
    }
    tap_set_remove(&set, taps[TAPS_MAX]); // never was in it
    tap_set_remove(&set, taps[1]);
    ck_assert(tap_set_add(&set, taps[TAPS_MAX]));
    for (int i = 0; i <= TAPS_MAX; i++) {
        tap_set_remove(&set, taps[i]);
        tap_free(taps[i]);
    }
    ck_assert_uint_eq(set.count, 0);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("tap");
    TCase *tests = tcase_create("tap");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, an_event_needs_nothing_of_its_batch);
    tcase_add_test(tests, facts_of_an_observation_are_told);
    tcase_add_test(tests, long_records_are_cut_and_pickles_left_out);
    tcase_add_test(tests, only_what_was_asked_for_is_taken);
    tcase_add_test(tests, every_nth_is_taken_and_the_rate_bounds);
    tcase_add_loop_test(tests, a_full_ring_drops_and_counts, 0, 5);
    tcase_add_test(tests, verdicts_that_a_stage_adds);
    tcase_add_test(tests, as_many_taps_as_there_is_room_for);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
