// SPDX-License-Identifier: Apache-2.0
// Files that another one goes on from: they are over once they were read to their ends.
#include "tests/receivers/file/file_fixture.h"

#include "receivers/file/follow/chain.h"

#include <check.h>

// The receiver begins again with what the feed knew; pipelines know sources by their paths.
static void start_again(void) {
    struct feed *old = rig.feed, *fresh = fake_feed_create();
    for (uint32_t i = 0; i < old->source_count; i++) {
        const struct source *source = old->sources[i];
        if (source->forgotten)
            continue;
        bool place = source->path[0] == PLACE_MARK;
        feed_source(fresh, slice_of(source->path))->restored =
            place ? source->flushed : (struct source_position){.number = 1};
    }
    component_stop(&receiver_file, &rig.receiver);
    fake_feed_free(old);
    memset(&rig.receiver, 0, sizeof rig.receiver);
    rig.feed = fresh;
    rig_run(&rig);
}

// Whether it was told that nothing more comes from this source, for now.
static bool has_left(const char *path) {
    struct source *source = fake_feed_find(rig.feed, path);
    return source != NULL && atomic_load(&source->left);
}

static void await_left(const char *path) {
    while (!has_left(path))
        clock_sleep_ns(1000 * 1000);
}

// -- names --------------------------------------------------------------------------------------

START_TEST(names_of_rotated_files) {
    static const struct {
        const char *older, *newer;
        bool fit;
    } cases[] = {
        {"d/run.jsonl.1", "d/run.jsonl", true},
        {"d/run.jsonl.12.gz", "d/run.jsonl", true},
        {"run.jsonl-20260131", "run.jsonl", true},
        {"run.jsonl-20260131-1769817600.gz", "run.jsonl", true},
        {"run.jsonl.2026-01-31", "run.jsonl", true},
        {"run.jsonl.2026-01-31T10:00:00", "run.jsonl", true},
        {"run-20260131.jsonl", "run.jsonl", true},
        {"run.20260131.jsonl.gz", "run.jsonl", true},
        {"run-2026.1.31/run.jsonl.3", "run-2026.1.31/run.jsonl", true},
        {"dmesg.0", "dmesg", true},
        {"run.jsonl", "run.jsonl", false},
        {"run.jsonl.1", "run.jsonl.2", false},
        {"run.jsonl.1", "e/run.jsonl", false},
        {"d.1/run.jsonl", "d/run.jsonl", false},
        // Two ranks, not two times.
        {"rank.1.jsonl", "rank.jsonl", false},
        {"rank-1.jsonl", "rank.jsonl", false},
        {"rank.1.jsonl", "rank.0.jsonl", false},
        {"run.jsonl-1", "run.jsonl", false},
        {"run.jsonl.1x", "run.jsonl", false},
        {".20260131", "", false},
        {"run.jsonl.", "run.jsonl", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_msg(chain_names_fit(slice_of(cases[i].older), slice_of(cases[i].newer)) ==
                          cases[i].fit,
                      "%s %s", cases[i].older, cases[i].newer);
}
END_TEST

// -- segments -----------------------------------------------------------------------------------

START_TEST(a_segment_before_the_last_is_over) {
    fixture_run("mkdir sink");
    append_records("sink/segment-000001.jsonl", 1, 5);
    follow("sink");
    rig_await(&rig, 5);
    // A new segment without a line says nothing of the rank yet.
    write_text("sink/segment-000002.jsonl", "w", "");
    append_records("sink/segment-000001.jsonl", 6, 6);
    rig_await(&rig, 6);
    clock_sleep_ns(60 * 1000 * 1000);
    ck_assert(!has_left("1.jsonl"));
    append_records("sink/segment-000002.jsonl", 7, 8);
    await_left("1.jsonl");
    ck_assert(!has_left("2.jsonl"));
    append_records("sink/segment-000010.jsonl", 9, 9); // numbers may be missing
    await_left("2.jsonl");
    ck_assert(!has_left("10.jsonl"));
    finish(9);
}
END_TEST

START_TEST(an_empty_segment_between) {
    fixture_run("mkdir sink");
    append_records("sink/segment-000001.jsonl", 1, 1);
    write_text("sink/segment-000002.jsonl", "w", "");
    write_text("sink/segment-000003.jsonl", "w", "");
    append_records("sink/segment-000004.jsonl", 2, 2);
    follow("sink");
    await_left("1.jsonl");
    ck_assert(!has_left("4.jsonl"));
    finish(2);
}
END_TEST

START_TEST(a_late_line_counts_and_the_segment_leaves_again) {
    fixture_run("mkdir sink");
    append_records("sink/segment-000001.jsonl", 1, 1);
    append_records("sink/segment-000002.jsonl", 2, 2);
    follow("sink");
    await_left("1.jsonl");
    append_records("sink/segment-000001.jsonl", 3, 3);
    rig_await(&rig, 3);
    await_left("1.jsonl");
    ck_assert(!has_left("2.jsonl"));
    finish(3);
}
END_TEST

START_TEST(sinks_are_told_apart) {
    fixture_run("mkdir rank0 rank1");
    append_records("rank0/segment-000001.jsonl", 1, 1);
    append_records("rank1/segment-000002.jsonl", 2, 2);
    follow(".");
    rig_await(&rig, 2);
    append_records("rank1/segment-000003.jsonl", 3, 3);
    await_left("rank1/segment-000002.jsonl");
    ck_assert(!has_left("rank0/segment-000001.jsonl"));
    finish(3);
}
END_TEST

START_TEST(segments_after_a_start) {
    fixture_run("mkdir sink");
    for (int i = 1; i <= 4; i++) {
        char path[64];
        snprintf(path, sizeof path, "sink/segment-%06d.jsonl", i);
        append_records(path, 5 - i, 5 - i);
    }
    follow("sink");
    await_left("3.jsonl");
    rig_stop(&rig);
    rig_check_once_each(&rig, 4);
    // Meanwhile the oldest is removed, and a new one has begun.
    unlink("sink/segment-000001.jsonl");
    append_records("sink/segment-000005.jsonl", 1, 1);
    start_again();
    for (int i = 1; i <= 4; i++) {
        char path[64];
        snprintf(path, sizeof path, "%d.jsonl", i);
        await_left(path);
    }
    ck_assert(!has_left("5.jsonl"));
    finish(1);
}
END_TEST

// -- rotation -----------------------------------------------------------------------------------

START_TEST(rotated_files_that_are_there_at_the_start) {
    append_records("run.jsonl.2", 1, 2);
    append_records("run.jsonl-20260131", 3, 4);
    append_gzip("run.jsonl.3.gz", "{\"timestamp\":5.5,\"memory_allocated\":5}\n");
    append_records("run.jsonl", 6, 6);
    append_records("run.2.jsonl", 7, 7);
    follow("run*");
    await_left("run.jsonl.2");
    await_left("run.jsonl-20260131");
    await_left("run.jsonl.3.gz");
    rig_await(&rig, 7);
    ck_assert(!has_left("run.jsonl") && !has_left("run.2.jsonl"));
    finish(7);
}
END_TEST

// Renamed to a name that says nothing while nobody looked: it is known from before.
START_TEST(renamed_while_it_was_stopped) {
    append_records("run.jsonl", 1, 2);
    follow("run*");
    rig_await(&rig, 2);
    rig_stop(&rig);
    append_records("run.jsonl", 1, 1);
    ck_assert_int_eq(rename("run.jsonl", "run-before.jsonl"), 0);
    start_again();
    rig_await(&rig, 1);
    // Nothing has its name yet, but it is not gone.
    clock_sleep_ns(60 * 1000 * 1000);
    ck_assert(!has_left("run.jsonl") && !has_left("run-before.jsonl"));
    append_records("run.jsonl", 2, 2);
    rig_await(&rig, 2);
    await_left("run-before.jsonl");
    ck_assert(!has_left("run.jsonl"));
    finish(2);
}
END_TEST

// The inode alone says nothing: it was used again, for another rank.
START_TEST(an_inode_that_was_used_again) {
    append_records("a.jsonl", 6, 7);
    follow(".");
    rig_await(&rig, 2);
    rig_stop(&rig);
    ck_assert_int_eq(rename("a.jsonl", "b.jsonl"), 0);
    ck_assert_int_eq(truncate("b.jsonl", 0), 0);
    append_records("b.jsonl", 3, 5);
    append_records("a.jsonl", 1, 2);
    start_again();
    rig_await(&rig, 5);
    clock_sleep_ns(60 * 1000 * 1000);
    ck_assert(!has_left("a.jsonl") && !has_left("b.jsonl"));
    finish(5);
}
END_TEST

// Renamed while it runs it has the same source as what follows: that one must not leave.
START_TEST(renamed_while_it_runs) {
    append_records("run.jsonl", 1, 2);
    follow("run*");
    rig_await(&rig, 2);
    ck_assert_int_eq(rename("run.jsonl", "run.jsonl.1"), 0);
    append_records("run.jsonl", 3, 3);
    rig_await(&rig, 3);
    clock_sleep_ns(60 * 1000 * 1000);
    ck_assert(!has_left("run.jsonl"));
    finish(3);
}
END_TEST

// What the copy had and nobody read before the cut came from the copy, which is over then.
START_TEST(a_copy_is_over) {
    append_records("run.jsonl", 1, 5);
    follow("run*");
    rig_await(&rig, 5);
    atomic_store(&rig.feed->blocked, true);
    append_records("run.jsonl", 6, 7);
    fixture_run("cp run.jsonl run-kept.jsonl && truncate -s 0 run.jsonl");
    append_records("run.jsonl", 8, 8);
    atomic_store(&rig.feed->blocked, false);
    rig_await(&rig, 8);
    await_left("run-kept.jsonl");
    ck_assert(!has_left("run.jsonl"));
    finish(8);
}
END_TEST

// -- what is gone -------------------------------------------------------------------------------

START_TEST(a_file_that_went_while_it_was_stopped) {
    append_records("a.jsonl", 1, 1);
    append_records("b.jsonl", 2, 2);
    follow(".");
    rig_await(&rig, 2);
    rig_stop(&rig);
    unlink("a.jsonl");
    append_records("b.jsonl", 1, 1);
    start_again();
    await_left("a.jsonl");
    rig_await(&rig, 1);
    ck_assert(!has_left("b.jsonl"));
    finish(1);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("file_chain");
    TCase *names = tcase_create("names");
    tcase_add_test(names, names_of_rotated_files);
    suite_add_tcase(suite, names);
    TCase *files = tcase_create("files");
    tcase_add_checked_fixture(files, fixture_setup, fixture_teardown);
    tcase_add_test(files, a_segment_before_the_last_is_over);
    tcase_add_test(files, an_empty_segment_between);
    tcase_add_test(files, a_late_line_counts_and_the_segment_leaves_again);
    tcase_add_test(files, sinks_are_told_apart);
    tcase_add_test(files, segments_after_a_start);
    tcase_add_test(files, rotated_files_that_are_there_at_the_start);
    tcase_add_test(files, renamed_while_it_was_stopped);
    tcase_add_test(files, an_inode_that_was_used_again);
    tcase_add_test(files, renamed_while_it_runs);
    tcase_add_test(files, a_copy_is_over);
    tcase_add_test(files, a_file_that_went_while_it_was_stopped);
    suite_add_tcase(suite, files);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
