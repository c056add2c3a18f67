// SPDX-License-Identifier: Apache-2.0
// What one exporter is told: filtered, told again when its time comes, bounded, and what was held
// back said.
//
// A step is an evaluation: "a/w/o" is the verdict a, a warning, open. States: o open, u updated,
// r resolved, = unchanged since it was put out. Behind the severity n says that it is no root.
#include "pipeline/runtime/sender_route.h"

#include "base/log.h"
#include "pipeline/runtime/checkpoint.h"
#include "pipeline/runtime/snapshot.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VERDICTS_MAX = 2048 };
static const uint64_t SECOND = 1000000000;
static const uint64_t BEGIN_S = 1700000000; // times of steps count from here

static struct route_config config;
static struct sender_route route;
static struct arena arena;
static struct verdict verdicts[VERDICTS_MAX];
static struct attribute roots[2] = {{"culprit.root", {"false", 5}}, {"culprit.root", {"true", 4}}};
static struct batch routed; // of the last step
static bool rests, last;

static void make(void) {
    sender_route_init(&route, &config, "webhook/chat", "exporter/webhook/chat");
}

static void setup(void) {
    config = (struct route_config){0};
    rests = last = false;
    arena_init(&arena, 1 << 16);
    log_configure((enum log_level)(LOG_ERROR + 1), LOG_CONSOLE);
}

static void teardown(void) {
    sender_route_release(&route);
    arena_release(&arena);
}

static struct verdict *add(uint32_t number, const char *name, char severity, bool is_root,
                           char state) {
    static const char SEVERITIES[] = "iwec", STATES[] = "our=";
    struct verdict *verdict = &verdicts[number];
    const char *colon = strchr(name, ':');
    *verdict = (struct verdict){.pattern = colon == NULL    ? "nccl_hang"
                                           : name[0] == 'h' ? "hbm"
                                                            : "pod",
                                .kind = "hang",
                                .headline = SLICE("It hangs."),
                                .remediation = SLICE("Look."),
                                .action = "monitor",
                                .attributes = &roots[is_root],
                                .attribute_count = 1};
    snprintf(verdict->id, sizeof verdict->id, "%s", name);
    verdict->severity = (enum severity)(strchr(SEVERITIES, severity) - SEVERITIES);
    verdict->state =
        state == '=' ? VERDICT_UPDATED : (enum verdict_state)(strchr(STATES, state) - STATES);
    verdict->unchanged = state == '=';
    return verdict;
}

// As the runner does it.
static void pass(uint64_t time_s, uint32_t count) {
    uint64_t time_ns = (BEGIN_S + time_s) * SECOND;
    struct batch batch = {.arena = &arena,
                          .evaluate = true,
                          .as_of_ns = last ? UINT64_MAX : time_ns,
                          .newest_ns = time_ns,
                          .last = last,
                          .rests = rests,
                          .verdicts = {verdicts, count, count}};
    if (route.remembers)
        sender_route_recall(&route, &batch);
    batch_drop_unchanged(&batch);
    routed = sender_route_batch(&route, &batch);
}

static uint32_t read_verdicts(const char *text) {
    char name[32], severity, root[2], state;
    uint32_t count = 0;
    for (int size; *text != '\0'; text += size + (text[size] == ' ')) {
        root[0] = '\0';
        if (sscanf(text, "%31[^/]/%c%1[n]/%c%n", name, &severity, root, &state, &size) != 4)
            ck_assert_int_eq(sscanf(text, "%31[^/]/%c/%c%n", name, &severity, &state, &size), 3);
        add(count++, name, severity, root[0] != 'n', state);
    }
    return count;
}

static void step(uint64_t time_s, const char *given, const char *wanted) {
    char told[1024] = "";
    pass(time_s, read_verdicts(given));
    for (uint32_t i = 0; i < routed.verdicts.count; i++) {
        const struct verdict *verdict = &routed.verdicts.items[i];
        ck_assert(!verdict->unchanged && !verdict->recalled);
        snprintf(told + strlen(told), sizeof told - strlen(told), "%s%.*s %s", i == 0 ? "" : ", ",
                 (int)strcspn(verdict->id, ":"), verdict->id, verdict_state_name(verdict->state));
    }
    ck_assert_msg(strcmp(told, wanted) == 0, "at %llu s, of \"%s\": told \"%s\", not \"%s\"",
                  (unsigned long long)time_s, given, told, wanted);
}

static uint64_t held(enum route_reason reason) {
    return atomic_load(&route.held_back[reason]);
}

// -- match ----------------------------------------------------------------------------------------

START_TEST(without_options_everything_passes_as_it_is) {
    make();
    ck_assert(!route.remembers);
    step(1, "a/i/u b/c/r", "a updated, b resolved");
    ck_assert_uint_eq(keyed_rows_count(&route.rows), 0);
}
END_TEST

START_TEST(what_grows_grave_enough_is_new_to_the_sink) {
    config.match.min_severity = SEVERITY_ERROR;
    make();
    step(1, "a/w/o b/e/o", "b open");
    step(2, "a/w/u b/e/u", "b updated");
    step(3, "a/e/u", "a open");
    ck_assert_uint_eq(held(ROUTE_MATCH), 2);
}
END_TEST

// Of what was told the sink hears that it matches no longer, once, and that it is over.
START_TEST(what_was_told_is_told_to_its_end) {
    config.match.only_roots = true;
    make();
    step(1, "a/e/o", "a open");
    step(2, "a/en/u b/e/o", "a updated, b open");
    ck_assert(!route_matches(&config, &routed.verdicts.items[0]));
    step(3, "a/en/u", "");
    step(4, "a/en/r", "a resolved");
    step(5, "b/e/u", "b updated");
    step(6, "b/e/r", "b resolved");
    ck_assert_uint_eq(keyed_rows_count(&route.rows), 0);
    step(7, "b/e/u", "b open"); // again
}
END_TEST

START_TEST(the_end_of_what_never_matched_is_not_told) {
    config.match.min_severity = SEVERITY_ERROR;
    make();
    step(1, "a/w/o", "");
    step(2, "a/w/r", "");
    step(3, "b/e/r", "b resolved"); // found when it was over
}
END_TEST

START_TEST(what_matches_again_is_told) {
    config.match.min_severity = SEVERITY_ERROR;
    config.update_interval.ns = 3600 * (int64_t)SECOND;
    make();
    step(1, "a/e/o", "a open");
    step(2, "a/w/u", "a updated");
    step(3, "a/e/u", "a updated");
}
END_TEST

// -- updates --------------------------------------------------------------------------------------

START_TEST(updates_wait_and_the_latest_is_told) {
    config.update_interval.ns = 60 * (int64_t)SECOND;
    make();
    step(0, "a/w/o", "a open");
    for (uint64_t second = 1; second <= 20; second++)
        step(second, "a/w/u", "");
    step(40, "a/w/=", "");
    step(60, "a/w/=", "a updated");
    step(200, "a/w/=", "");
    step(201, "a/w/u", "a updated");
    ck_assert_uint_eq(held(ROUTE_UPDATE), 20);
}
END_TEST

START_TEST(what_matters_does_not_wait) {
    config.update_interval.ns = 3600 * (int64_t)SECOND;
    make();
    step(0, "a/w/o", "a open");
    step(1, "a/e/u", "a updated");
    step(2, "a/en/u", "a updated");
    step(3, "a/en/u", "");
    step(4, "a/en/r", "a resolved");
    step(5, "a/en/u", "a open");
}
END_TEST

START_TEST(updates_that_wait_are_told_when_nothing_more_comes) {
    config.update_interval.ns = 3600 * (int64_t)SECOND;
    make();
    step(0, "a/w/o b/w/o", "a open, b open");
    step(1, "a/w/u b/w/=", "");
    rests = true;
    step(2, "a/w/= b/w/=", "a updated");
    rests = false;
    step(3, "a/w/= b/w/u", "");
    last = true;
    step(4, "a/w/= b/w/=", "b updated");
}
END_TEST

// -- the bound ------------------------------------------------------------------------------------

START_TEST(graver_ones_go_first_and_critical_ones_have_their_own_room) {
    config.max_per_minute = 2;
    make();
    step(0, "a/i/o b/w/o c/e/o d/w/o e/c/o f/c/o g/c/o",
         "b open, c open, e open, f open, held_back open");
    ck_assert_uint_eq(held(ROUTE_RATE), 3);
    ck_assert_uint_eq(route.now.notice.total, 3);
    // A critical one that stands is told when there is room.
    step(30, "a/i/= b/w/= c/e/= d/w/= e/c/= f/c/= g/c/=", "");
    step(60, "a/i/= b/w/= c/e/= d/w/= e/c/= f/c/= g/c/=", "g open");
    step(61, "a/i/u", "a open"); // something is new of it
    step(62, "d/w/r", "");       // it was never told
    ck_assert_uint_eq(held(ROUTE_RATE), 4);
}
END_TEST

START_TEST(a_flood_of_one_pattern_hides_no_other) {
    config.max_per_minute = 1;
    make();
    step(0, "a/e/o b/e/o hbm:1/w/o hbm:2/w/o", "a open, hbm open, held_back open");
    step(1, "hbm:3/w/o pod:1/i/o", "pod open");
    ck_assert_uint_eq(held(ROUTE_RATE), 3);
    ck_assert_uint_eq(route.now.pattern_count, 3);
    step(60, "a/e/r hbm:4/w/o hbm:5/w/o",
         "a resolved, hbm open, held_back updated"); // another minute
}
END_TEST

START_TEST(the_end_of_what_was_told_has_no_bound) {
    config.max_per_minute = 1;
    make();
    step(0, "a/w/o", "a open");
    step(60, "b/w/o", "b open");
    step(61, "a/w/r b/w/r c/w/o", "a resolved, b resolved, held_back open");
}
END_TEST

// An update that found no room is told with the next one, as it is by then.
START_TEST(an_update_without_room_is_told_later) {
    config.max_per_minute = 1;
    make();
    step(0, "a/w/o", "a open");
    step(1, "a/e/u", "held_back open");
    step(2, "a/e/=", "");
    step(60, "a/e/=", "a updated");
    ck_assert_int_eq(routed.verdicts.items[0].severity, SEVERITY_ERROR);
}
END_TEST

START_TEST(the_notice_says_what_and_how_many) {
    config.max_per_minute = 1;
    make();
    step(100, "a/e/o b/w/o c/c/o d/c/o", "a open, c open, held_back open");
    const struct verdict *notice = &routed.verdicts.items[2];
    char text[400];
    snprintf(text, sizeof text, "%.*s", (int)notice->headline.size, notice->headline.data);
    ck_assert_str_eq(text, "webhook/chat: 2 messages held back, more than 1 a minute: nccl_hang 2");
    ck_assert_str_eq(notice->pattern, "held_back");
    ck_assert_str_eq(notice->kind, "max_per_minute");
    ck_assert_int_eq(notice->severity, SEVERITY_WARNING); // a critical one is among them
    ck_assert_uint_eq(notice->start_ns, (BEGIN_S + 100) * SECOND);
    ck_assert_uint_eq(notice->evidence_count, 2);
    ck_assert(slice_equal(notice->evidence[0].uid, SLICE("b")));
    ck_assert(slice_equal(notice->evidence[1].description, SLICE("held back: d, critical, open")));
    char id[VERDICT_ID_SIZE];
    memcpy(id, notice->id, sizeof id);
    // More in the next minute, then none.
    step(160, "e/w/o f/w/o g/w/o d/c/=", "e open, d open");
    ck_assert_uint_eq(route.now.notice.untold, 2);
    step(220, "", "held_back updated");
    ck_assert_str_eq(routed.verdicts.items[0].id, id);
    ck_assert_uint_eq(routed.verdicts.items[0].evidence_count, 4);
    step(279, "", "");
    step(280, "", "held_back resolved");
    ck_assert_str_eq(routed.verdicts.items[0].id, id);
    ck_assert_uint_eq(routed.verdicts.items[0].end_ns, (BEGIN_S + 160) * SECOND);
    step(400, "", "");
    step(401, "h/w/o i/w/o", "h open, held_back open");
    ck_assert_str_ne(routed.verdicts.items[1].id, id); // another flood
}
END_TEST

START_TEST(a_flood_is_over_when_nothing_more_comes) {
    config.max_per_minute = 1;
    make();
    step(0, "a/e/o b/w/o", "a open, held_back open");
    rests = true;
    step(10, "a/e/= b/w/=", "held_back resolved");
    rests = false;
    last = true;
    step(11, "c/e/o d/e/o e/e/o", "c open, held_back resolved");
    ck_assert_uint_eq(route.now.notice.total, 0);
}
END_TEST

// -- limits ---------------------------------------------------------------------------------------

static uint32_t flood(uint64_t time_s, uint32_t first, char state) {
    for (uint32_t i = 0; i < VERDICTS_MAX; i++) {
        char name[32];
        snprintf(name, sizeof name, "v%u", first + i);
        add(i, name, 'e', true, state);
    }
    pass(time_s, VERDICTS_MAX);
    return routed.verdicts.count;
}

START_TEST(who_changed_longest_ago_is_forgotten) {
    config.match.min_severity = SEVERITY_ERROR;
    make();
    uint32_t given = 0;
    for (; given < ROUTE_ROWS_MAX; given += VERDICTS_MAX)
        ck_assert_uint_eq(flood(given + 1, given, 'o'), VERDICTS_MAX);
    ck_assert_uint_eq(atomic_load(&route.forgotten), 0);
    ck_assert_uint_eq(flood(given + 1, 0, 'u'), VERDICTS_MAX); // those are young again
    ck_assert_uint_eq(flood(given + 2, given, 'o'), VERDICTS_MAX);
    ck_assert_uint_eq(atomic_load(&route.forgotten), VERDICTS_MAX);
    ck_assert_uint_eq(keyed_rows_count(&route.rows), ROUTE_ROWS_MAX);
    step(given + 3, "v1/w/r v2048/w/r v2049/e/u", "v1 resolved, v2049 open");
}
END_TEST

START_TEST(a_notice_names_so_many_and_counts_all) {
    config.max_per_minute = 10;
    make();
    ck_assert_uint_eq(flood(1, 0, 'o'), 10 + 1);
    const struct verdict *notice = &routed.verdicts.items[10];
    ck_assert_uint_eq(notice->evidence_count, ROUTE_LISTED_MAX);
    ck_assert_uint_eq(notice->evidence_dropped, VERDICTS_MAX - 10 - ROUTE_LISTED_MAX);
    ck_assert_uint_eq(held(ROUTE_RATE), VERDICTS_MAX - 10);
}
END_TEST

// -- a restart ------------------------------------------------------------------------------------

static struct snapshot *save(void) {
    struct saver saver;
    struct snapshot *snapshot = snapshot_new();
    struct blob_sink sink = snapshot_sink(snapshot);
    saver_init(&saver, "route:x", 0);
    sender_route_state(&route, &saver.list);
    saver_save(&saver, &sink);
    saver_release(&saver);
    return snapshot;
}

static void restart_from(struct snapshot *snapshot) {
    sender_route_release(&route);
    make();
    struct saver saver;
    saver_init(&saver, "route:x", 0);
    sender_route_state(&route, &saver.list);
    ck_assert_int_eq(saver_check(&saver, snapshot), SAVER_WHOLE);
    saver_load(&saver, snapshot);
    sender_route_restored(&route);
    saver_release(&saver);
}

// Twice the same from the same checkpoint, under other options, too.
START_TEST(a_restart_goes_on_as_if_nothing_had_happened) {
    config.update_interval.ns = 60 * (int64_t)SECOND;
    config.max_per_minute = 2;
    make();
    step(0, "a/w/o b/w/o c/w/o d/c/o", "a open, b open, d open, held_back open");
    step(1, "a/w/u", "");
    struct snapshot *snapshot = save();
    for (int round = 0; round < 2; round++) {
        restart_from(snapshot);
        ck_assert_uint_eq(route.now.waiting, 1);
        step(2, "e/c/o f/c/o c/w/r", "e open");
        step(60, "a/w/= f/c/=", "a updated, f open, held_back updated");
        step(120, "b/w/r", "b resolved, held_back resolved");
    }
    config.max_per_minute = 0;
    restart_from(snapshot);
    step(2, "b/w/r c/w/r", "b resolved");
    snapshot_free(snapshot);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("sender_route");
    TCase *tests = tcase_create("sender_route");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, without_options_everything_passes_as_it_is);
    tcase_add_test(tests, what_grows_grave_enough_is_new_to_the_sink);
    tcase_add_test(tests, what_was_told_is_told_to_its_end);
    tcase_add_test(tests, the_end_of_what_never_matched_is_not_told);
    tcase_add_test(tests, what_matches_again_is_told);
    tcase_add_test(tests, updates_wait_and_the_latest_is_told);
    tcase_add_test(tests, what_matters_does_not_wait);
    tcase_add_test(tests, updates_that_wait_are_told_when_nothing_more_comes);
    tcase_add_test(tests, graver_ones_go_first_and_critical_ones_have_their_own_room);
    tcase_add_test(tests, a_flood_of_one_pattern_hides_no_other);
    tcase_add_test(tests, the_end_of_what_was_told_has_no_bound);
    tcase_add_test(tests, an_update_without_room_is_told_later);
    tcase_add_test(tests, the_notice_says_what_and_how_many);
    tcase_add_test(tests, a_flood_is_over_when_nothing_more_comes);
    tcase_add_test(tests, who_changed_longest_ago_is_forgotten);
    tcase_add_test(tests, a_notice_names_so_many_and_counts_all);
    tcase_add_test(tests, a_restart_goes_on_as_if_nothing_had_happened);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
