// SPDX-License-Identifier: Apache-2.0
// Copies that log rotation makes: what was read of the original is not read again.
#include "tests/receivers/file/file_fixture.h"

#include "receivers/file/follow/copy.h"

#include <check.h>

// While nothing is read, as in the moment between two looks: copied, cut, written to again.
static void copy_and_cut(const char *copy, int from, int to) {
    atomic_store(&rig.feed->blocked, true);
    fixture_run("cp run.jsonl %s && truncate -s 0 run.jsonl", copy);
    append_records("run.jsonl", from, to);
    atomic_store(&rig.feed->blocked, false);
}

// The first copy takes the place of the original, which has no name any more; the second is one of
// what is remembered of it.
START_TEST(two_copies_of_a_file_that_is_gone) {
    append_records("run.jsonl", 1, 5);
    follow("run.jsonl*");
    rig_await(&rig, 5);
    atomic_store(&rig.feed->blocked, true);
    fixture_run("cp run.jsonl run.jsonl.1 && cp run.jsonl run.jsonl.2 && rm run.jsonl");
    append_records("run.jsonl.1", 6, 7);
    clock_sleep_ns(100 * 1000 * 1000);
    atomic_store(&rig.feed->blocked, false);
    rig_await(&rig, 7);
    rig_await_note(&rig, "run.jsonl.2", "a copy of what was read before");
    finish(7);
}
END_TEST

// -- many kept copies ---------------------------------------------------------------------------

// Each copy has lines that nobody read before the cut; a copy that is not known for one would give
// all of its lines again. `_i`: the kept ones are renamed by one each time, or stay as they are.
START_TEST(all_copies_are_kept) {
    enum { ROTATIONS = 20 };
    append_records("run.jsonl", 1, 5);
    follow("run.jsonl*");
    rig_await(&rig, 5);
    int number = 5;
    for (int i = 1; i <= ROTATIONS; i++) {
        char copy[64];
        snprintf(copy, sizeof copy, "run.jsonl.%d", _i == 0 ? i : 1);
        for (int k = i - 1; _i == 1 && k >= 1; k--)
            fixture_run("mv run.jsonl.%d run.jsonl.%d", k, k + 1);
        append_records("run.jsonl", number + 1, number + 2);
        copy_and_cut(copy, number + 3, number + 5);
        number += 5;
        rig_await(&rig, (uint32_t)number);
    }
    // What would come twice comes from the last copy.
    rig_await_note(&rig, "run.jsonl", "a copy of what was read before");
    finish((uint32_t)number);
}
END_TEST

START_TEST(all_compressed_copies_are_kept) {
    append_records("run.jsonl", 1, 5);
    follow("run.jsonl*");
    rig_await(&rig, 5);
    int number = 5;
    for (int i = 1; i <= 12; i++) {
        char copy[64];
        snprintf(copy, sizeof copy, "run.jsonl.%d", i);
        append_records("run.jsonl", number + 1, number + 2);
        copy_and_cut(copy, number + 3, number + 5);
        number += 5;
        rig_await(&rig, (uint32_t)number);
    }
    // All at once: their plain ones are still known.
    fixture_run("for n in $(seq 12); do gzip run.jsonl.$n; done");
    for (int i = 1; i <= 12; i++) {
        char copy[64];
        snprintf(copy, sizeof copy, "run.jsonl.%d.gz", i);
        rig_await_note(&rig, copy, "holds what was read before");
    }
    finish((uint32_t)number);
}
END_TEST

// More files are cut between two looks than one would expect.
START_TEST(many_files_are_cut_at_once) {
    enum { FILES = 150 };
    char path[64];
    for (int i = 1; i <= FILES; i++) {
        snprintf(path, sizeof path, "rank%d.jsonl", i);
        append_records(path, i, i);
    }
    follow(".");
    rig_await(&rig, FILES);
    atomic_store(&rig.feed->blocked, true);
    for (int i = 1; i <= FILES; i++) {
        snprintf(path, sizeof path, "rank%d.jsonl", i);
        fixture_run("cp %s rank%d-20260131.jsonl && truncate -s 0 %s", path, i, path);
        append_records(path, FILES + i, FILES + i);
    }
    atomic_store(&rig.feed->blocked, false);
    rig_await(&rig, 2 * FILES);
    rig_await_note(&rig, "rank99-", "a copy of what was read before");
    finish(2 * FILES);
}
END_TEST

// Of several that hold the same beginning the one that was read furthest counts.
START_TEST(a_copy_of_a_file_that_has_other_copies) {
    append_records("run.jsonl", 1, 30);
    follow("run.jsonl*");
    rig_await(&rig, 30);
    fixture_run("cp run.jsonl run.jsonl.1");
    rig_await_note(&rig, "run.jsonl.1", "a copy of what was read before");
    append_records("run.jsonl", 31, 40);
    rig_await(&rig, 40);
    atomic_store(&rig.feed->blocked, true);
    fixture_run("cp run.jsonl run.jsonl.0 && : > run.jsonl");
    append_records("run.jsonl", 41, 41);
    atomic_store(&rig.feed->blocked, false);
    rig_await_note(&rig, "run.jsonl.0", "a copy of what was read before, up to line 40");
    rig_await(&rig, 41);
    finish(41);
}
END_TEST

// -- copies that take their time ----------------------------------------------------------------

// It takes longer than anybody waits for a copy that does not grow, which is five intervals; it
// must grow in each five of them, also on a slow machine.
START_TEST(a_slow_copy) {
    append_records("run.jsonl", 1, 400);
    followed[0] = "run.jsonl*";
    rig_init(&rig, followed, 1);
    rig.config.poll_interval.ns = 1000 * 1000 * 1000;
    rig_run(&rig);
    rig_await(&rig, 400);
    for (int part = 0; part < 16; part++) {
        fixture_run(
            "dd if=run.jsonl of=run.jsonl.1 bs=1000 skip=%d seek=%d count=1 conv=notrunc "
            "status=none",
            part, part);
        clock_sleep_ns(400 * 1000 * 1000);
    }
    fixture_run("dd if=run.jsonl of=run.jsonl.1 bs=1000 skip=16 seek=16 conv=notrunc status=none");
    rig_await_note(&rig, "run.jsonl.1", "a copy of what was read before, up to line 400");
    finish(400);
}
END_TEST

// It never gets as long: nobody can tell, so it is told.
START_TEST(a_copy_that_stays_unfinished) {
    append_records("run.jsonl", 1, 400);
    follow("run.jsonl*");
    rig_await(&rig, 400);
    fixture_run("head -n 100 run.jsonl > new && mv new run.jsonl.1");
    rig_await_note(&rig, "run.jsonl.1", "begins like run.jsonl, but is shorter than what was read");
    rig_await(&rig, 500);
    rig_stop(&rig);
    ck_assert_uint_eq(rig.feed->count, 500);
    rig_free(&rig);
}
END_TEST

// -- while nobody looks -------------------------------------------------------------------------

// As after a stop: the receiver begins again with what the feed knew. Another one, as in a process
// of its own, so that nothing is remembered.
static void start_again(void) {
    struct feed *old = rig.feed, *fresh = fake_feed_create();
    for (uint32_t i = 0; i < old->source_count; i++) {
        const struct source *source = old->sources[i];
        if (source->path[0] == PLACE_MARK && !source->forgotten)
            feed_source(fresh, slice_of(source->path))->restored =
                source->flushed.number > 0 ? source->flushed : source->restored;
    }
    component_stop(&receiver_file, &rig.receiver);
    fake_feed_free(old);
    memset(&rig.receiver, 0, sizeof rig.receiver);
    rig.feed = fresh;
    rig_run(&rig);
}

// `_i`: copied and cut, to a name that comes behind or before; copied and cut to nothing; copied
// and compressed; renamed and compressed.
START_TEST(rotated_while_it_was_stopped) {
    static const char *const commands[] = {
        "cp run.jsonl run.jsonl.1 && truncate -s 0 run.jsonl",
        "cp run.jsonl run-20260131.jsonl && truncate -s 0 run.jsonl",
        "cp run.jsonl run.jsonl.1 && truncate -s 0 run.jsonl",
        "gzip -c run.jsonl > run.jsonl.1.gz && truncate -s 0 run.jsonl",
        "mv run.jsonl run.jsonl.1 && gzip run.jsonl.1",
    };
    append_records("run.jsonl", 4, 30);
    follow("run*");
    rig_await(&rig, 27);
    rig_stop(&rig);
    append_records("run.jsonl", 1, 2);
    fixture_run("%s", commands[_i]);
    uint32_t count = 2;
    if (_i != 2)
        append_records("run.jsonl", 3, (int)++count);
    start_again();
    rig_await(&rig, count);
    rig_await_note(&rig, "run", _i < 3 ? "a copy of what was read" : "holds what was read before");
    finish(count);
}
END_TEST

// The cut is seen before a stop, the copy only after it. `_i`: or the file goes, and its compressed
// form is there after it.
START_TEST(the_copy_comes_to_light_after_a_restart) {
    append_records("run.jsonl", 4, 30);
    follow("run*");
    rig_await(&rig, 27);
    if (_i == 0) {
        fixture_run("cp run.jsonl kept && truncate -s 0 run.jsonl");
        append_records("run.jsonl", 31, 33);
        rig_await(&rig, 30);
    } else {
        fixture_run("mkdir away && mv run.jsonl away/kept");
        while (!atomic_load(&fake_feed_find(rig.feed, "run.jsonl")->left)) // it is forgotten
            clock_sleep_ns(1000 * 1000);
    }
    for (int i = 0; i < 3; i++) { // it is known for long
        rig_stop(&rig);
        start_again();
        clock_sleep_ns(50 * 1000 * 1000);
    }
    rig_stop(&rig);
    fixture_run(_i == 0 ? "mv kept run.jsonl.1" : "gzip -c away/kept > run.jsonl.1.gz");
    append_records("run.jsonl", 1, 2);
    start_again();
    rig_await(&rig, 2);
    rig_await_note(&rig, "run", _i == 0 ? "a copy of what was read" : "holds what was read before");
    finish(2);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("file_copies");
    TCase *tests = tcase_create("copies");
    tcase_add_checked_fixture(tests, fixture_setup, fixture_teardown);
    tcase_add_test(tests, two_copies_of_a_file_that_is_gone);
    tcase_add_loop_test(tests, all_copies_are_kept, 0, 2);
    tcase_add_test(tests, all_compressed_copies_are_kept);
    tcase_add_test(tests, many_files_are_cut_at_once);
    tcase_add_test(tests, a_copy_of_a_file_that_has_other_copies);
    tcase_add_test(tests, a_slow_copy);
    tcase_add_test(tests, a_copy_that_stays_unfinished);
    tcase_add_loop_test(tests, rotated_while_it_was_stopped, 0, 5);
    tcase_add_loop_test(tests, the_copy_comes_to_light_after_a_restart, 0, 2);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
