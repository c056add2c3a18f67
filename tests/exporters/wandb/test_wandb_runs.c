// SPDX-License-Identifier: Apache-2.0
// Which runs of a server are written to: ours, those of another start of the job, those of others.
#include "tests/exporters/wandb/wandb_world.h"

static void say_start(struct world *world, const char *run, const char *start) {
    say(world, run, 0,
        (struct wandb_record){.kind = WANDB_RUN,
                              .display_name = SLICE("the run"),
                              .group = SLICE("jobs"),
                              .key = slice_of(start),
                              .skips_known = true});
}

static void put_run(struct world *world, const char *run) {
    json_decref(wandb_mock_call(&world->mock, "POST", "/__run", run));
}

static json_t *decoded_of(const struct world *world) {
    return wandb_mock_decoded(&world->mock);
}

static const char TRAINING[] =
    "{\"name\":\"train\",\"project\":\"proj\",\"complete\":true,"
    "\"meta\":{\"displayName\":\"my training\",\"groupName\":\"mine\"},"
    "\"config\":{\"_wandb\":{\"value\":{\"t\":{}}},\"lr\":{\"value\":3}},"
    "\"history\":[{\"_step\":0,\"_timestamp\":1700000500.0,\"_runtime\":1,\"loss\":2}]}";

// Rows of an older start are not taken for rows that the server has.
START_TEST(rows_of_an_older_start_are_not_dropped) {
    struct world world;
    world_open(&world);
    say_start(&world, "r1", "second");
    say_row(&world, "r1", 100, "\"a\":1");
    say_finish(&world, "r1", 101);
    send_all(&world);
    forget(&world);
    world.sequence = world.row = 0;
    say_start(&world, "r1", "first");
    say_row(&world, "r1", 50, "\"a\":2");
    say_finish(&world, "r1", 51);
    send_all(&world);
    // The same start again: its rows are there.
    forget(&world);
    world.sequence = world.row = 0;
    say_start(&world, "r1", "first");
    say_row(&world, "r1", 50, "\"a\":2");
    say_row(&world, "r1", 60, "\"a\":3");
    say_finish(&world, "r1", 61);
    send_all(&world);
    json_t *decoded = decoded_of(&world);
    ck_assert_uint_eq(size_at(decoded, "runs.0.history"), 3);
    ck_assert(number_at(decoded, "runs.0.history.1.a") == 2);
    ck_assert(number_at(decoded, "runs.0.history.2.a") == 3);
    ck_assert_str_eq(text_at(decoded, "runs.0.config.culprit.start"), "first");
    json_decref(decoded);
    world_close(&world);
}
END_TEST

START_TEST(a_run_of_others_is_refused_and_blocks_nobody) {
    struct world world;
    world_open(&world);
    put_run(&world, TRAINING);
    say_start(&world, "good", "x");
    say_start(&world, "train", "y");
    size_t before = world.records.size;
    say_row(&world, "train", 1, "\"a\":1");
    world.row = 0;
    say_row(&world, "good", 1, "\"a\":1");
    say_finish(&world, "train", 2);
    say_finish(&world, "good", 2);
    ck_assert_int_eq(send_once(&world), STATUS_IO);
    ck_assert(!world.outcome.sink_dead);
    ck_assert_uint_gt(world.outcome.taken, 0);
    ck_assert_uint_gt(world.outcome.refused, 0);
    ck_assert_uint_lt(world.outcome.taken, before);
    ck_assert_ptr_nonnull(strstr(world.error.message, "not begun by culprit"));
    // The rest, as the sender gives it: refused are FINISH and nothing else.
    struct slice rest = buffer_slice(&world.records);
    size_t refused = 0;
    for (int calls = 0;; calls++) {
        size_t passed = world.outcome.taken + world.outcome.refused;
        ck_assert_int_lt(calls, 4);
        refused += world.outcome.refused;
        rest = (struct slice){rest.data + passed, rest.size - passed};
        world.error = (struct error){0};
        if (wandb_online_send(world.online, rest, true, &world.outcome, &world.error) == STATUS_OK)
            break;
    }
    ck_assert_uint_lt(refused, world.records.size);
    json_t *decoded = decoded_of(&world);
    ck_assert_uint_eq(size_at(decoded, "runs"), 2);
    ck_assert_str_eq(text_at(decoded, "runs.0.display_name"), "my training");
    ck_assert_uint_eq(size_at(decoded, "runs.0.history"), 1);
    ck_assert(number_at(decoded, "runs.0.finishes") == 0);
    ck_assert(json_is_true(at(decoded, "runs.1.complete")));
    ck_assert_uint_eq(size_at(decoded, "runs.1.history"), 1);
    json_decref(decoded);
    world_close(&world);
}
END_TEST

START_TEST(a_run_of_others_is_joined_and_left_as_it_is) {
    struct world world;
    world_open(&world);
    world.config.join_run = true;
    world.config.notes = "ours";
    put_run(&world, TRAINING);
    say_start(&world, "train", "y");
    say_row(&world, "train", 1, "\"a\":1");
    send_all(&world);
    restart(&world);
    say_row(&world, "train", 2, "\"a\":2");
    say_finish(&world, "train", 3);
    send_all(&world);
    json_t *decoded = decoded_of(&world);
    const json_t *run = at(decoded, "runs.0");
    ck_assert_str_eq(text_at(run, "display_name"), "my training");
    ck_assert_str_eq(text_at(run, "group"), "mine");
    ck_assert(json_is_null(at(run, "notes")) && json_is_null(at(run, "host")));
    ck_assert(number_at(run, "config.lr") == 3);
    ck_assert(json_is_true(at(run, "config.culprit.joined")));
    ck_assert_uint_eq(size_at(run, "history"), 3);
    ck_assert(number_at(run, "history.2.a") == 2);
    ck_assert(number_at(run, "finishes") == 0);
    json_decref(decoded);
    world_close(&world);
}
END_TEST

START_TEST(a_run_that_still_runs_is_not_joined) {
    struct world world;
    world_open(&world);
    world.config.join_run = true;
    put_run(&world, "{\"name\":\"train\",\"project\":\"proj\"}");
    say_start(&world, "train", "y");
    say_row(&world, "train", 1, "\"a\":1");
    ck_assert_int_eq(send_once(&world), STATUS_IO);
    ck_assert_uint_eq(world.outcome.refused, world.records.size);
    ck_assert_ptr_nonnull(strstr(world.error.message, "it is running"));
    // What comes later is dropped, told at the end; no heartbeat goes there.
    buffer_reset(&world.records);
    world.config.heartbeat_interval.ns = 0;
    say_row(&world, "train", 2, "\"a\":1");
    ck_assert_int_eq(send_once(&world), STATUS_OK);
    ck_assert_uint_eq(wandb_online_pace(world.online).again_ns, UINT64_MAX);
    json_t *decoded = decoded_of(&world);
    ck_assert_uint_eq(size_at(decoded, "runs.0.history"), 0);
    ck_assert(number_at(decoded, "runs.0.stats.stream_posts") == 0);
    json_decref(decoded);
    world_close(&world);
}
END_TEST

static void delete_run(struct world *world, const char *run) {
    char place[64];
    snprintf(place, sizeof place, "proj/%s", run);
    json_decref(wandb_mock_call(&world->mock, "POST", "/__delete", place));
}

// Two runs; the first is deleted while it is written to, then again with its new id.
START_TEST(a_deleted_run_goes_on_under_another_id) {
    struct world world;
    uint64_t rows[2] = {0};
    world_open(&world);
    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 0; i < 2; i++) {
            const char *id = i == 0 ? "lost" : "kept";
            world.row = rows[i];
            if (round == 0)
                say_start(&world, id, "x");
            say_row(&world, id, round * 10 + 1, "\"a\":1");
            say_table(&world, id, round * 10 + 2, "tab");
            if (round == 3)
                say_finish(&world, id, 99);
            rows[i] = world.row;
        }
        ck_assert_uint_eq(send_all(&world), 1);
        if (round < 2)
            delete_run(&world, round == 0 ? "lost" : "lost-2");
        if (round == 2)
            restart(&world);
    }
    json_t *decoded = decoded_of(&world);
    ck_assert_uint_eq(size_at(decoded, "runs"), 2);
    ck_assert_str_eq(text_at(decoded, "runs.0.name"), "kept");
    ck_assert_str_eq(text_at(decoded, "runs.1.name"), "lost-3");
    ck_assert_uint_eq(size_at(decoded, "runs.0.history"), 8);
    ck_assert_uint_eq(size_at(decoded, "runs.1.history"), 4);
    ck_assert_str_eq(text_at(decoded, "runs.1.config.culprit.start"), "x");
    for (unsigned i = 0; i < 2; i++)
        ck_assert(json_is_true(at(decoded, "runs.%u.complete", i)));
    json_decref(decoded);
    world_close(&world);
}
END_TEST

// Its id is not to be had from the beginning on.
START_TEST(an_id_that_was_deleted_before) {
    struct world world;
    world_open(&world);
    put_run(&world, TRAINING);
    delete_run(&world, "train");
    say_start(&world, "train", "x");
    say_row(&world, "train", 1, "\"a\":1");
    say_finish(&world, "train", 2);
    ck_assert_uint_eq(send_all(&world), 1);
    // Whoever comes again without a memory finds the new one.
    forget(&world);
    world.sequence = world.row = 0;
    say_start(&world, "train", "x");
    say_row(&world, "train", 1, "\"a\":1");
    say_row(&world, "train", 5, "\"a\":2");
    say_finish(&world, "train", 6);
    send_all(&world);
    json_t *decoded = decoded_of(&world);
    ck_assert_uint_eq(size_at(decoded, "runs"), 1);
    ck_assert_str_eq(text_at(decoded, "runs.0.name"), "train-2");
    ck_assert_str_eq(text_at(decoded, "runs.0.display_name"), "the run");
    ck_assert_uint_eq(size_at(decoded, "runs.0.history"), 2);
    json_decref(decoded);
    world_close(&world);
}
END_TEST

// A run that is silent, too.
START_TEST(a_deleted_run_without_news_harms_nobody) {
    struct world world;
    world_open(&world);
    say_start(&world, "lost", "x");
    say_row(&world, "lost", 1, "\"a\":1");
    send_all(&world);
    delete_run(&world, "lost");
    world.config.heartbeat_interval.ns = 0;
    ck_assert_int_eq(send_once(&world), STATUS_OK);
    ck_assert_int_eq(send_once(&world), STATUS_OK);
    world.config.heartbeat_interval.ns = 30 * (int64_t)SECOND;
    world.row = 0;
    say_start(&world, "other", "y");
    say_row(&world, "other", 1, "\"a\":1");
    send_all(&world);
    json_t *decoded = decoded_of(&world);
    ck_assert_uint_eq(size_at(decoded, "runs"), 2);
    ck_assert_str_eq(text_at(decoded, "runs.0.name"), "lost-2");
    json_decref(decoded);
    world_close(&world);
}
END_TEST

// What blames a run costs that run; it is told once and the other one goes on.
START_TEST(a_run_that_is_refused_again_is_given_up) {
    struct world world;
    world_open(&world);
    wandb_mock_fault(&world.mock, "at=file_stream,kind=413,count=2");
    say_start(&world, "bad", "x");
    say_row(&world, "bad", 1, "\"a\":1");
    size_t bad = world.records.size;
    world.row = 0;
    say_start(&world, "good", "x");
    say_row(&world, "good", 1, "\"a\":1");
    ck_assert_int_eq(send_once(&world), STATUS_IO);
    ck_assert(!world.outcome.sink_dead);
    ck_assert_uint_eq(world.outcome.taken, 0);
    ck_assert_uint_eq(world.outcome.refused, bad);
    ck_assert_ptr_nonnull(strstr(world.error.message, "too large"));
    send_all(&world);
    json_t *decoded = decoded_of(&world);
    ck_assert_uint_eq(size_at(decoded, "runs.0.history"), 0);
    ck_assert_uint_eq(size_at(decoded, "runs.1.history"), 1);
    json_decref(decoded);
    world_close(&world);
}
END_TEST

// No row of it passes: that is an error, and the run is not complete.
START_TEST(a_run_without_any_row_that_passes) {
    struct world world;
    world_open(&world);
    struct buffer members;
    buffer_init(&members, 16 << 20);
    buffer_append_text(&members, "\"text\":\"");
    while (members.size < 10400000)
        buffer_append_text(&members, "0123456789012345678901234567890123456789");
    buffer_append_char(&members, '"');
    say_start(&world, "r1", "x");
    for (unsigned i = 1; i < 3; i++)
        say(&world, "r1", i,
            (struct wandb_record){.kind = WANDB_ROW, .members = buffer_slice(&members)});
    say_finish(&world, "r1", 9);
    ck_assert_int_eq(send_once(&world), STATUS_IO);
    ck_assert(!world.outcome.sink_dead);
    ck_assert_uint_eq(world.outcome.refused, world.records.size);
    ck_assert_ptr_nonnull(strstr(world.error.message, "longer than W&B takes"));
    json_t *decoded = decoded_of(&world);
    ck_assert(json_is_false(at(decoded, "runs.0.complete")));
    json_decref(decoded);
    buffer_release(&members);
    world_close(&world);
}
END_TEST

static void say_alert(struct world *world, uint64_t seconds, const char *title) {
    say(world, "r1", seconds,
        (struct wandb_record){.kind = WANDB_ALERT,
                              .key = slice_of(title),
                              .file = SLICE("rank 3 leaks\nWho: rank 3\n"),
                              .type = SLICE("ERROR")});
}

START_TEST(alerts_are_sent_once_each) {
    struct world world;
    world_open(&world);
    world.config.alert_wait.ns = 60 * (int64_t)SECOND;
    wandb_mock_fault(&world.mock, "at=graphql:notifyScriptableRunAlert,kind=500");
    wandb_mock_fault(&world.mock, "at=graphql:notifyScriptableRunAlert,kind=gqlerror,skip=1");
    say_start(&world, "r1", "x");
    say_row(&world, "r1", 1, "\"a\":1");
    say_alert(&world, 1, "one");
    say_alert(&world, 1, "refused");
    say_alert(&world, 2, "two");
    say_row(&world, "r1", 3, "\"a\":1");
    ck_assert_uint_eq(send_all(&world), 2);
    restart(&world);
    say_alert(&world, 4, "three");
    send_all(&world);
    // Read again, without a store: of the alerts only that is sent which no row is behind.
    forget(&world);
    world.sequence = world.row = 0;
    say_start(&world, "r1", "x");
    say_row(&world, "r1", 1, "\"a\":1");
    say_alert(&world, 2, "two");
    say_row(&world, "r1", 3, "\"a\":1");
    say_alert(&world, 4, "three");
    say_finish(&world, "r1", 5);
    send_all(&world);
    json_t *decoded = decoded_of(&world);
    const json_t *run = at(decoded, "runs.0");
    static const char *const titles[] = {"one", "two", "three", "three"};
    ck_assert_uint_eq(size_at(run, "alerts"), 4);
    for (unsigned i = 0; i < 4; i++) {
        const json_t *alert = at(run, "alerts.%u", i);
        ck_assert_str_eq(text_at(alert, "title"), titles[i]);
        ck_assert_str_eq(text_at(alert, "severity"), "ERROR");
        ck_assert(number_at(alert, "wait_ms") == 60000);
        // What comes twice is dropped by the server within the wait.
        ck_assert(json_is_true(at(alert, "dropped")) == (i == 3));
    }
    ck_assert_uint_eq(size_at(run, "history"), 2);
    ck_assert(json_is_true(at(run, "complete")));
    json_decref(decoded);
    world_close(&world);
}
END_TEST

static void say_tag(struct world *world, uint64_t incarnation, const char *tag,
                    const char *settings) {
    say(world, "r1", 0,
        (struct wandb_record){.kind = WANDB_RUN,
                              .incarnation = incarnation,
                              .key = SLICE("x"),
                              .type = slice_of(tag),
                              .file = slice_of(settings),
                              .skips_known = true});
}

// A RUN that comes again changes tag and config, and neither rows nor what users did.
START_TEST(tags_and_config_change_while_it_runs) {
    static char mine[] = "mine";
    const char *tags[] = {mine};
    struct world world;
    world_open(&world);
    world.config.tags = (struct text_list){.items = tags, .count = 1};
    say_tag(&world, 7, "", "\"culprit_world_size\":4");
    say_row(&world, "r1", 1, "\"a\":1");
    send_all(&world);
    json_decref(wandb_mock_call(&world.mock, "POST", "/__tag", "proj/r1/theirs"));
    say_tag(&world, 7, "culprit-warning", "");
    say_row(&world, "r1", 2, "\"a\":2");
    send_all(&world);
    restart(&world);
    say_row(&world, "r1", 3, "\"a\":3");
    say_tag(&world, 7, "culprit-error", "\"culprit_world_size\":8");
    say_row(&world, "r1", 4, "\"a\":4");
    send_all(&world);
    restart(&world); // and a RUN is the first that comes
    say_tag(&world, 7, "culprit-critical", "");
    say_row(&world, "r1", 5, "\"a\":5");
    say_finish(&world, "r1", 6);
    send_all(&world);
    json_t *decoded = decoded_of(&world);
    const json_t *run = at(decoded, "runs.0");
    ck_assert_uint_eq(size_at(run, "tags"), 3);
    ck_assert_str_eq(text_at(run, "tags.0"), "mine");
    ck_assert_str_eq(text_at(run, "tags.1"), "culprit-critical");
    ck_assert_str_eq(text_at(run, "tags.2"), "theirs");
    ck_assert(number_at(run, "config.culprit_world_size") == 8);
    ck_assert_uint_eq(size_at(run, "history"), 5);
    ck_assert(number_at(run, "history.4.a") == 5 && number_at(run, "history.4._step") == 4);
    json_decref(decoded);
    world_close(&world);
}
END_TEST

int main(void) {
    setenv("no_proxy", "127.0.0.1", 1);
    Suite *suite = suite_create("wandb_runs");
    TCase *cases = tcase_create("runs");
    tcase_add_test(cases, rows_of_an_older_start_are_not_dropped);
    tcase_add_test(cases, a_run_of_others_is_refused_and_blocks_nobody);
    tcase_add_test(cases, a_run_of_others_is_joined_and_left_as_it_is);
    tcase_add_test(cases, a_run_that_still_runs_is_not_joined);
    tcase_add_test(cases, a_deleted_run_goes_on_under_another_id);
    tcase_add_test(cases, an_id_that_was_deleted_before);
    tcase_add_test(cases, a_deleted_run_without_news_harms_nobody);
    tcase_add_test(cases, a_run_that_is_refused_again_is_given_up);
    tcase_add_test(cases, a_run_without_any_row_that_passes);
    tcase_add_test(cases, alerts_are_sent_once_each);
    tcase_add_test(cases, tags_and_config_change_while_it_runs);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
