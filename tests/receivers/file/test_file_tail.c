// SPDX-License-Identifier: Apache-2.0
// The file receiver while files grow: the receiver runs on a thread, the test is the writer.
#include "pipeline/component/storage.h"
#include "tests/receivers/file/file_fixture.h"

#include <check.h>
#include <errno.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static bool without_inotify;

// Stands in front of the C library's, so that a system without inotify can be tried.
int inotify_init1(int flags) {
    if (!without_inotify)
        return (int)syscall(SYS_inotify_init1, flags);
    errno = ENOSYS;
    return -1;
}

// -- growing ------------------------------------------------------------------------------------

static void grow(void) {
    fixture_run("mkdir d");
    append_records("d/a.jsonl", 1, 5);
    follow("d");
    rig_await(&rig, 5);
    append_records("d/a.jsonl", 6, 10);
    rig_await(&rig, 10);
    append_records("d/b.jsonl", 11, 12);
    rig_await(&rig, 12);
    fixture_run("mkdir -p d/new/sub");
    append_records("d/new/sub/c.jsonl", 13, 14);
    rig_await(&rig, 14);
    append_records("d/b.jsonl", 15, 15);
    rig_await(&rig, 15);
    ck_assert_uint_eq(fake_feed_accepted(rig.feed, "b.jsonl"), 3);
    finish(15);
}

START_TEST(files_grow_and_appear) {
    grow();
}
END_TEST

START_TEST(files_grow_and_appear_without_inotify) {
    without_inotify = true;
    grow();
    without_inotify = false;
}
END_TEST

START_TEST(a_missing_inotify_is_said) {
    without_inotify = true;
    append_records("a.jsonl", 1, 1);
    follow("a.jsonl");
    rig_await(&rig, 1);
    rig_await_note(&rig, "inotify", "poll_interval");
    finish(1);
    without_inotify = false;
}
END_TEST

START_TEST(a_file_that_comes_later) {
    follow("later.jsonl");
    rig_await_note(&rig, "later.jsonl", "cannot be read");
    append_records("later.jsonl", 1, 3);
    rig_await(&rig, 3);
    finish(3);
}
END_TEST

START_TEST(through_a_link) {
    fixture_run("mkdir d e && ln -s ../e/a.jsonl d/a.jsonl");
    append_records("e/a.jsonl", 1, 1);
    follow("d/*.jsonl");
    rig_await(&rig, 1);
    append_records("e/a.jsonl", 2, 4);
    rig_await(&rig, 4);
    finish(4);
}
END_TEST

// The link leads to a file that nobody reads before it leads to the next one: nothing is read yet,
// since the sink is slow.
START_TEST(through_a_link_while_nothing_is_read) {
    ck_assert_int_eq(mkdir("pods", 0755), 0);
    append_records("pods/1", 1, 2);
    ck_assert_int_eq(symlink("pods/1", "run.jsonl"), 0);
    follow("run.jsonl");
    rig_await(&rig, 2);
    atomic_store(&rig.feed->blocked, true);
    for (int i = 2; i <= 4; i++) {
        char path[32];
        snprintf(path, sizeof path, "pods/%d", i);
        append_records(path, 2 * i - 1, 2 * i);
        ck_assert_int_eq(symlink(path, "next"), 0);
        ck_assert_int_eq(rename("next", "run.jsonl"), 0);
        clock_sleep_ns(200 * 1000 * 1000);
    }
    atomic_store(&rig.feed->blocked, false);
    rig_await(&rig, 8);
    finish(8);
}
END_TEST

START_TEST(byte_by_byte) {
    follow("a.jsonl");
    char text[128];
    FILE *file = fopen("a.jsonl", "w");
    setvbuf(file, NULL, _IONBF, 0);
    for (int i = 1; i <= 12; i++) {
        record_text(text, sizeof text, i);
        for (const char *c = text; *c != '\0'; c++) {
            fputc(*c, file);
            if (i == 6)
                clock_sleep_ns(2000 * 1000);
        }
        fputs(i % 3 == 0 ? "\r" : "", file);
        fputc('\n', file);
    }
    fclose(file);
    rig_await(&rig, 12);
    finish(12);
}
END_TEST

START_TEST(the_end_only) {
    static const char *const include[] = {"d"};
    fixture_run("mkdir d");
    append_records("d/a.jsonl", 101, 105);
    char first[128];
    record_text(first, sizeof first, 1);
    write_bytes("d/a.jsonl", "a", first, 10);
    write_text("d/README.md", "w", "x");
    write_text("d/empty.jsonl", "w", "");
    write_text("d/array.json", "w", "[{\"timestamp\":7.5,\"memory_allocated\":1}]");
    append_gzip("d/old.jsonl.gz", "{\"timestamp\":7.5,\"memory_allocated\":1}\n");
    rig_init(&rig, include, 1);
    rig.config.start_at = START_END;
    rig_run(&rig);
    // Said at the end of the first search, which has noted how long the files are.
    rig_await_note(&rig, "d: not read: README.md", "is that of");
    write_text("d/a.jsonl", "a", first + 10);
    write_text("d/a.jsonl", "a", "\n");
    append_records("d/empty.jsonl", 2, 2);
    append_records("d/new.jsonl", 3, 3);
    rig_await(&rig, 3);
    finish(3);
}
END_TEST

START_TEST(positions_count_what_was_passed) {
    static const char *const include[] = {"."};
    write_text("README.md", "w", "x");
    append_records("a.jsonl", 1, 70000);
    rig_init(&rig, include, 1);
    rig.config.start_at = START_END;
    rig_run(&rig);
    rig_await_note(&rig, ".: not read: README.md", "is that of");
    append_records("a.jsonl", 70001, 70002);
    rig_await(&rig, 2);
    rig_stop(&rig);
    ck_assert_uint_eq(rig.feed->count, 2);
    ck_assert_uint_eq(rig.feed->records[0].position, 70001);
    ck_assert_uint_eq(rig.feed->records[1].position, 70002);
    rig_free(&rig);
}
END_TEST

START_TEST(bad_lines_and_positions) {
    append_records("a.jsonl", 1, 1);
    follow("a.jsonl");
    rig_await(&rig, 1);
    write_text("a.jsonl", "a", "\nbad\n");
    append_records("a.jsonl", 2, 2);
    rig_await(&rig, 2);
    rig_stop(&rig);
    ck_assert_uint_eq(rig.feed->count, 3);
    ck_assert_int_eq(rig.feed->records[1].category, DECODE_NOTHING);
    ck_assert_uint_eq(rig.feed->records[1].position, 3);
    ck_assert_uint_eq(rig.feed->records[2].position, 4);
    rig_free(&rig);
}
END_TEST

static void grow_long_line(size_t max, enum decode_category expected) {
    static const char *const include[] = {"a.jsonl"};
    append_records("a.jsonl", 1, 1);
    rig_init(&rig, include, 1);
    rig.config.max_line_size.bytes = max;
    rig_run(&rig);
    rig_await(&rig, 1);
    char *piece = malloc(100000);
    memset(piece, 'x', 100000);
    write_text("a.jsonl", "a", "{\"timestamp\":2.5,\"memory_allocated\":2,\"context\":\"");
    for (int i = 0; i < 30; i++) {
        write_bytes("a.jsonl", "a", piece, 100000);
        clock_sleep_ns(3 * 1000 * 1000);
    }
    free(piece);
    write_text("a.jsonl", "a", "\"}\n");
    append_records("a.jsonl", 3, 3);
    rig_await(&rig, expected == DECODE_OK ? 3 : 2);
    rig_stop(&rig);
    ck_assert_uint_eq(rig.feed->count, 3);
    ck_assert_int_eq(rig.feed->records[1].category, expected);
    ck_assert_uint_eq(rig.feed->records[1].position, 2);
    ck_assert_uint_eq(rig.feed->records[2].position, 3);
    rig_free(&rig);
}

START_TEST(a_long_line_grows) {
    grow_long_line(4 << 20, DECODE_OK);
}
END_TEST

START_TEST(a_line_grows_too_long) {
    grow_long_line(1 << 20, DECODE_TOO_LONG);
}
END_TEST

// Blocks of two large files take turns.
START_TEST(files_take_turns) {
    append_records("a.jsonl", 1, 30000);
    append_records("b.jsonl", 30001, 60000);
    follow("*.jsonl");
    rig_await(&rig, 60000);
    rig_stop(&rig);
    uint32_t changes = 0;
    for (uint32_t i = 1; i < rig.feed->count; i++)
        changes += strcmp(rig.feed->records[i].path, rig.feed->records[i - 1].path) != 0;
    ck_assert_uint_ge(changes, 6);
    rig_check_once_each(&rig, 60000);
    rig_free(&rig);
}
END_TEST

static uint32_t open_descriptors(void) {
    uint32_t count = 0;
    DIR *directory = opendir("/proc/self/fd");
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count;
}

static void many_files(int files) {
    fixture_run("mkdir d");
    char path[64];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < files; i++) {
            snprintf(path, sizeof path, "d/%04d.jsonl", i);
            append_records(path, round * files + i + 1, round * files + i + 1);
        }
        if (round == 0)
            follow("d");
        rig_await(&rig, (uint32_t)(files * (round + 1)));
    }
}

START_TEST(more_files_than_descriptors_of_ours) {
    many_files(700);
    ck_assert_uint_lt(open_descriptors(), 560);
    finish(2100);
}
END_TEST

START_TEST(more_files_than_the_system_lets_us_open) {
    struct rlimit old, low;
    getrlimit(RLIMIT_NOFILE, &old);
    low = (struct rlimit){64, old.rlim_max};
    setrlimit(RLIMIT_NOFILE, &low);
    many_files(200);
    setrlimit(RLIMIT_NOFILE, &old);
    finish(600);
}
END_TEST

// -- rotation -----------------------------------------------------------------------------------

// Writes records to run.jsonl and renames it away again and again.
static void rotate_by_rename(int rotations, bool wait) {
    int number = 0;
    for (int i = 0; i < rotations; i++) {
        append_records("run.jsonl", number + 1, number + 7);
        number += 7;
        if (wait)
            rig_await(&rig, (uint32_t)number);
        fixture_run("mv run.jsonl run.jsonl.%d", i + 1);
        append_records("run.jsonl", number + 1, number + 3);
        number += 3;
        // The old file gets a last line after its rename, as a writer does that was not told yet.
        char old[64];
        snprintf(old, sizeof old, "run.jsonl.%d", i + 1);
        append_records(old, number + 1, number + 1);
        number++;
    }
    rig_await(&rig, (uint32_t)number);
    finish((uint32_t)number);
}

START_TEST(renamed_away) {
    follow("run.jsonl");
    rotate_by_rename(10, true);
}
END_TEST

START_TEST(renamed_to_a_name_that_is_read_too) {
    follow("run.jsonl*");
    rotate_by_rename(10, false);
}
END_TEST

// No search runs between most of these renames: the new names are known from the events alone.
START_TEST(renamed_away_faster_than_looked_for) {
    append_records("run.jsonl", 1, 1);
    follow("run.jsonl");
    rig_await(&rig, 1);
    int number = 1;
    for (int i = 0; i < 300; i++) {
        append_records("run.jsonl", number + 1, number + 2);
        number += 2;
        char old[64];
        snprintf(old, sizeof old, "run.jsonl.%d", i + 1);
        ck_assert_int_eq(rename("run.jsonl", old), 0);
    }
    rig_await(&rig, (uint32_t)number);
    finish((uint32_t)number);
}
END_TEST

START_TEST(renamed_away_without_inotify) {
    without_inotify = true;
    follow("run.jsonl*");
    rotate_by_rename(5, false);
    without_inotify = false;
}
END_TEST

START_TEST(deleted_and_made_again) {
    follow("run.jsonl");
    int number = 0;
    for (int i = 0; i < 10; i++) {
        append_records("run.jsonl", number + 1, number + 4);
        number += 4;
        rig_await(&rig, (uint32_t)number);
        unlink("run.jsonl");
    }
    finish((uint32_t)number);
}
END_TEST

START_TEST(cut_and_filled_anew) {
    follow("run.jsonl");
    int number = 0;
    for (int i = 0; i < 6; i++) {
        // Shorter, longer and just as long as what was there before.
        int count = (int[]){4, 2, 2, 9, 9, 3}[i];
        append_records("run.jsonl", number + 1, number + count);
        number += count;
        rig_await(&rig, (uint32_t)number);
        ck_assert_int_eq(truncate("run.jsonl", 0), 0);
    }
    rig_await_note(&rig, "run.jsonl", "for the 2th time");
    finish((uint32_t)number);
}
END_TEST

START_TEST(what_was_lost_is_said) {
    append_records("run.jsonl", 1, 2);
    write_text("run.jsonl", "a", "{\"timestamp\":");
    follow("run.jsonl");
    rig_await(&rig, 2);
    fixture_run(": > run.jsonl");
    append_records("run.jsonl", 3, 3);
    rig_await(&rig, 3);
    ck_assert(fake_feed_noted(rig.feed, "run.jsonl", "up to 13 bytes were there before"));
    rig_stop(&rig);
    ck_assert_uint_eq(rig.feed->records[2].position, 1);
    rig_free(&rig);
}
END_TEST

// The copies are read too (run.jsonl*), and yet each record comes once: those that the receiver has
// not seen before the cut come from the copy.
START_TEST(copied_and_cut) {
    follow("run.jsonl*");
    int number = 0;
    for (int i = 0; i < 8; i++) {
        append_records("run.jsonl", number + 1, number + 5);
        number += 5;
        rig_await(&rig, (uint32_t)number);
        append_records("run.jsonl", number + 1, number + 2);
        number += 2;
        fixture_run("cp run.jsonl run.jsonl.%d && truncate -s 0 run.jsonl", i + 1);
    }
    rig_await(&rig, (uint32_t)number);
    finish((uint32_t)number);
}
END_TEST

START_TEST(renamed_and_compressed) {
    follow("run.jsonl*");
    int number = 0;
    for (int i = 0; i < 6; i++) {
        append_records("run.jsonl", number + 1, number + 5);
        number += 5;
        rig_await(&rig, (uint32_t)number);
        append_records("run.jsonl", number + 1, number + 2);
        number += 2;
        fixture_run("mv run.jsonl run.jsonl.%d && gzip run.jsonl.%d", i + 1, i + 1);
    }
    rig_await(&rig, (uint32_t)number);
    // The last compressed file must have been looked at, or a double could still come.
    rig_await_note(&rig, "run.jsonl.6.gz", "holds what was read before");
    finish((uint32_t)number);
}
END_TEST

START_TEST(alike_but_not_a_copy) {
    // The same first two KiB, the same stem, other records afterwards.
    static const char *const names[] = {"run.jsonl", "run-2.jsonl", "run.3.jsonl"};
    char pad[2100], line[2200];
    memset(pad, ' ', sizeof pad - 1);
    pad[sizeof pad - 1] = '\0';
    snprintf(line, sizeof line, "%s\n", pad);
    write_text(names[0], "w", line);
    append_records(names[0], 1, 3);
    follow("run*");
    rig_await(&rig, 3);
    for (int i = 1; i < 3; i++) {
        write_text("new", "w", line);
        append_records("new", 3 * i + 1, 3 * i + 3);
        ck_assert_int_eq(rename("new", names[i]), 0);
    }
    rig_await(&rig, 9);
    finish(9);
}
END_TEST

// -- whole files --------------------------------------------------------------------------------

START_TEST(an_array_is_read_when_it_is_whole) {
    char one[128], two[128], three[128], text[512];
    record_text(one, sizeof one, 1);
    record_text(two, sizeof two, 2);
    record_text(three, sizeof three, 3);
    snprintf(text, sizeof text, "[\n%s,\n%s", one, two);
    write_text("a.json", "w", text);
    append_records("b.jsonl", 4, 4);
    follow("*.json*");
    rig_await(&rig, 1);
    clock_sleep_ns(100 * 1000 * 1000);
    ck_assert_uint_eq(fake_feed_accepted(rig.feed, "a.json"), 0);
    write_text("a.json", "a", "\n]\n");
    rig_await(&rig, 3);
    // Rewritten with one more: only that one is new.
    snprintf(text, sizeof text, "[\n%s,\n%s,\n%s\n]\n", one, two, three);
    write_text("a.json", "w", text);
    rig_await(&rig, 4);
    finish(4);
}
END_TEST

START_TEST(an_array_replaced_under_its_name) {
    write_text("a.json", "w", "[{\"timestamp\":1.5,\"memory_allocated\":1}]");
    follow("a.json");
    rig_await(&rig, 1);
    for (int i = 2; i <= 4; i++) {
        FILE *file = fopen("a.new", "w");
        for (int k = 1; k <= i; k++)
            fprintf(file, "%s{\"timestamp\":%d.5,\"memory_allocated\":1}", k == 1 ? "[" : ",", k);
        fputs("]", file);
        fclose(file);
        ck_assert_int_eq(rename("a.new", "a.json"), 0);
        rig_await(&rig, (uint32_t)i);
    }
    ck_assert(!fake_feed_noted(rig.feed, "a.json", "anew"));
    finish(4);
}
END_TEST

START_TEST(an_array_written_anew) {
    write_text("a.json", "w", "[{\"timestamp\":1.5,\"memory_allocated\":1}]");
    follow("a.json");
    rig_await(&rig, 1);
    write_text("a.json.new", "w",
               "[{\"timestamp\":2.5,\"memory_allocated\":2},{\"timestamp\":3.5,\"memory_mb\":1}]");
    fixture_run("cat a.json.new > a.json");
    rig_await(&rig, 3);
    ck_assert(fake_feed_noted(rig.feed, "a.json", "written anew"));
    finish(3);
}
END_TEST

// Of two of a rank the one that was written later counts, so a file that is written anew is newer.
START_TEST(a_dump_written_anew) {
    static const char name[] = "comm_lib_trace_rank_3";
    static const char *const include[] = {name};
    rig_init(&rig, include, 1);
    rig.config.max_document_size.bytes = 1 << 20;
    write_text(name, "w", "{\"version\":\"2.10\",\"entries\":[");
    rig_run(&rig);
    while (fake_feed_refused(rig.feed, DECODE_BAD_JSON) == 0)
        clock_sleep_ns(1000 * 1000);
    clock_sleep_ns(10 * 1000 * 1000);
    write_text(name, "a", "]}");
    rig_await(&rig, 1);
    rig_stop(&rig);
    ck_assert_uint_gt(rig.feed->dump_written_ns[1], 0);
    ck_assert_uint_gt(rig.feed->dump_written_ns[0], rig.feed->dump_written_ns[1]);
    rig_free(&rig);
}
END_TEST

START_TEST(an_unfinished_array_at_the_stop) {
    write_text("a.json", "w", "[{\"timestamp\":1.5,\"memory_allocated\":1},{\"time");
    append_records("b.jsonl", 2, 2);
    follow(".");
    rig_await(&rig, 1);
    rig_stop(&rig);
    rig_check_once_each(&rig, 2);
    ck_assert(fake_feed_noted(rig.feed, "a.json", "ends inside a record"));
    rig_free(&rig);
}
END_TEST

START_TEST(gzip_is_read_once_when_it_is_whole) {
    append_gzip("whole.gz", "{\"timestamp\":1.5,\"memory_allocated\":1}\n");
    append_gzip("whole.gz", "{\"timestamp\":2.5,\"memory_allocated\":2}\n");
    fixture_run("head -c 30 whole.gz > a.jsonl.gz");
    append_records("b.jsonl", 3, 3);
    follow("[ab].*");
    rig_await(&rig, 1);
    clock_sleep_ns(100 * 1000 * 1000);
    ck_assert_uint_eq(fake_feed_accepted(rig.feed, "a.jsonl.gz"), 0);
    fixture_run("tail -c +31 whole.gz >> a.jsonl.gz");
    rig_await(&rig, 3);
    finish(3);
}
END_TEST

// -- formats and notes --------------------------------------------------------------------------

START_TEST(a_format_that_is_known_late) {
    write_text("a.jsonl", "w", "starting\n");
    follow("a.jsonl");
    clock_sleep_ns(60 * 1000 * 1000);
    append_records("a.jsonl", 1, 2);
    rig_await(&rig, 2);
    rig_stop(&rig);
    ck_assert_uint_eq(rig.feed->count, 3);
    ck_assert_int_eq(rig.feed->records[0].category, DECODE_NOTHING);
    rig_free(&rig);
}
END_TEST

START_TEST(what_is_not_telemetry_is_noted_once) {
    write_text("a.json", "w", "{\"schema\": \"culprit.verdict.v1\"}\n");
    append_records("b.jsonl", 1, 1);
    follow(".");
    rig_await_note(&rig, "a.json", "verdicts");
    rig_await(&rig, 1);
    write_text("a.json", "a", "{\"schema\": \"culprit.verdict.v1\"}\n");
    write_text("README.md", "w", "x");
    rig_await_note(&rig, ".: not read: README.md", "is that of");
    append_records("b.jsonl", 2, 2);
    rig_await(&rig, 2);
    rig_stop(&rig);
    ck_assert_uint_eq(rig.feed->note_count, 2);
    rig_free(&rig);
}
END_TEST

START_TEST(an_ignored_file_that_begins_anew) {
    write_text("a.json", "w",
               "{\"schema\": \"culprit.verdict.v1\", \"more\": \"so that it gets shorter\"}\n");
    follow("a.json");
    rig_await_note(&rig, "a.json", "verdicts");
    fixture_run(": > a.json");
    clock_sleep_ns(60 * 1000 * 1000);
    append_records("a.json", 1, 1);
    rig_await(&rig, 1);
    finish(1);
}
END_TEST

START_TEST(a_dump_that_appears_beside_its_sink) {
    fixture_run(
        "mkdir sink && echo '{\"sessions\":[{\"session_id\":\"s1\"}]}' > "
        "sink/manifest.json");
    append_records("sink/segment-000001.jsonl", 1, 2);
    follow(".");
    rig_await(&rig, 2);
    fixture_run(
        "mkdir oom_dump_1 && echo '{\"session_id\":\"s1\"}' > oom_dump_1/manifest.json && "
        "echo '[{\"timestamp\":2.5,\"memory_allocated\":2}]' > oom_dump_1/events.json");
    rig_await_note(&rig, "oom_dump_1/events.json", "sink of the same session");
    append_records("sink/segment-000002.jsonl", 3, 3);
    rig_await(&rig, 3);
    finish(3);
}
END_TEST

START_TEST(a_pipe_cannot_be_followed) {
    ck_assert_int_eq(mkfifo("pipe", 0600), 0);
    follow("pipe");
    rig_await_note(&rig, "pipe", "cannot be followed");
    finish(0);
}
END_TEST

// -- reports of several lines -------------------------------------------------------------------

#define RECORD "{\"timestamp\":1.5,\"memory_allocated\":1}\n"
#define TRACEBACK                                                                                  \
    "[rank3]: Traceback (most recent call last):\n"                                                \
    "[rank3]:   File \"/a/train.py\", line 3, in <module>\n"                                       \
    "[rank3]:     main()\n"                                                                        \
    "[rank3]: RuntimeError: CUDA error: an illegal memory access was encountered\n"

enum { TRACEBACK_LINES = 4 };

static void follow_logs(const char *path, uint64_t finish_ns) {
    followed[0] = path;
    rig_init(&rig, followed, 1);
    rig.config.finish_after.ns = (int64_t)finish_ns;
    rig_run(&rig);
}

// Until the report is held.
static void await_held(uint32_t lines) {
    while (fake_feed_refused(rig.feed, DECODE_HELD) < lines)
        clock_sleep_ns(1000 * 1000);
}

static uint32_t finished(const char *path_end) {
    return atomic_load(&fake_feed_find(rig.feed, path_end)->finished);
}

static bool is_at_end(const char *path_end) {
    return atomic_load(&fake_feed_find(rig.feed, path_end)->at_end);
}

static void await_end(const char *path_end) {
    while (!is_at_end(path_end))
        clock_sleep_ns(1000 * 1000);
}

// What was read to its end is said to be, and not while lines of a report are held.
START_TEST(the_end_of_a_file_is_told) {
    write_text("a.log", "w", RECORD);
    write_text("b.log", "w", RECORD TRACEBACK);
    follow_logs("*.log", UINT64_C(3600) * 1000 * 1000 * 1000);
    rig_await(&rig, 2);
    await_held(TRACEBACK_LINES);
    await_end("a.log");
    clock_sleep_ns(60 * 1000 * 1000);
    ck_assert(!is_at_end("b.log"));
    write_text("b.log", "a", "[rank3]: step 2\n"); // the same writer goes on
    rig_await(&rig, 3);
    await_end("b.log");
    rig_stop(&rig);
    rig_free(&rig);
}
END_TEST

START_TEST(a_report_at_the_end_of_a_quiet_log) {
    write_text("a.log", "w", RECORD TRACEBACK);
    follow_logs("*.log", 50 * 1000 * 1000);
    rig_await(&rig, 2);
    ck_assert_uint_eq(finished("a.log"), 1);
    write_text("a.log", "a", RECORD TRACEBACK);
    rig_await(&rig, 4);
    rig_stop(&rig);
    ck_assert_uint_eq(fake_feed_accepted(rig.feed, "a.log"), 4);
    ck_assert(!feed_source_holds(fake_feed_find(rig.feed, "a.log")));
    rig_free(&rig);
}
END_TEST

// Too few lines to tell what they are.
START_TEST(a_report_is_all_there_is) {
    write_text("a.log", "w", "step 1\n" TRACEBACK);
    write_text("b.log", "w", "{\"cut");
    follow_logs("*.log", 50 * 1000 * 1000);
    rig_await(&rig, 1);
    write_text("b.log", "w", RECORD);
    rig_await(&rig, 2);
    rig_stop(&rig);
    rig_free(&rig);
}
END_TEST

// With a store a restart reads it again: more of it may come.
START_TEST(a_stop_with_a_store_finishes_no_report) {
    static struct storage store;
    write_text("a.log", "w", RECORD TRACEBACK);
    followed[0] = "*.log";
    rig_init(&rig, followed, 1);
    rig.context.store = &store;
    rig_run(&rig);
    await_held(TRACEBACK_LINES);
    rig_stop(&rig);
    ck_assert_uint_eq(fake_feed_accepted(rig.feed, NULL), 1);
    ck_assert_uint_eq(finished("a.log"), 0);
    ck_assert(feed_source_holds(fake_feed_find(rig.feed, "a.log")));
    rig_free(&rig);
}
END_TEST

// Without one nothing goes on there: each kind of report is used as it is.
START_TEST(a_stop_without_a_store_finishes_reports) {
    write_text("a.log", "w", RECORD TRACEBACK);
    write_text("b.log", "w",
               RECORD "JobID|State|ExitCode\n88110|NODE_FAIL|1:0\n88111|FAILED|1:0\n");
    write_text("c.log", "w",
               RECORD
               "Process 12: python3 train.py\n"
               "Python v3.11.7 (/usr/bin/python3.11)\n"
               "\n"
               "Thread 12 (idle): \"MainThread\"\n"
               "    load (data.py:88)\n");
    follow_logs("*.log", UINT64_C(3600000000000));
    await_held(TRACEBACK_LINES + 3 + 4);
    rig_await(&rig, 3); // the records in front of them
    ck_assert_uint_eq(fake_feed_accepted(rig.feed, NULL), 3);
    rig_stop(&rig);
    ck_assert_uint_eq(fake_feed_accepted(rig.feed, "a.log"), 2);
    ck_assert_uint_eq(fake_feed_accepted(rig.feed, "b.log"), 3);
    ck_assert_uint_eq(fake_feed_accepted(rig.feed, "c.log"), 2);
    rig_free(&rig);
}
END_TEST

START_TEST(a_report_in_a_log_that_is_gone) {
    write_text("a.log", "w", RECORD TRACEBACK);
    follow_logs("*.log", UINT64_C(3600000000000));
    await_held(TRACEBACK_LINES);
    fixture_run("rm a.log");
    rig_await(&rig, 2);
    rig_stop(&rig);
    rig_free(&rig);
}
END_TEST

START_TEST(a_report_in_a_log_that_was_cut) {
    write_text("a.log", "w", RECORD TRACEBACK);
    follow_logs("*.log", UINT64_C(3600000000000));
    await_held(TRACEBACK_LINES);
    write_text("a.log", "w", RECORD);
    rig_await(&rig, 3);
    rig_stop(&rig);
    rig_free(&rig);
}
END_TEST

// Each file's report has its position in that file.
START_TEST(a_report_in_a_log_that_was_rotated) {
    write_text("a.log", "w", RECORD TRACEBACK);
    follow_logs("a.log", UINT64_C(3600000000000));
    await_held(TRACEBACK_LINES);
    fixture_run("mv a.log b.log");
    write_text("a.log", "w", RECORD TRACEBACK);
    await_held(2 * TRACEBACK_LINES);
    rig_await(&rig, 3);
    fixture_run("rm a.log");
    rig_await(&rig, 4);
    rig_stop(&rig);
    rig_free(&rig);
}
END_TEST

// A log that goes on in another one, which has another name.
START_TEST(a_report_in_a_log_that_is_complete) {
    write_text("a.log.1", "w", RECORD TRACEBACK);
    write_text("a.log", "w", RECORD);
    follow_logs("a.log*", UINT64_C(3600000000000));
    rig_await(&rig, 3);
    ck_assert_uint_eq(finished("a.log.1"), 1);
    rig_stop(&rig);
    rig_free(&rig);
}
END_TEST

// -- stopping -----------------------------------------------------------------------------------

START_TEST(a_stop_reads_what_is_there) {
    append_records("a.jsonl", 1, 20000);
    follow("a.jsonl");
    finish(20000);
}
END_TEST

START_TEST(the_last_line_at_a_stop) {
    static const struct {
        const char *text;
        uint32_t accepted;
        bool torn;
    } cases[] = {
        {"{\"timestamp\":2.5,\"memory_allocated\":2}", 2, false},
        {"{\"timestamp\":2.5,\"memory_alloc", 1, true},
        {"{\"timestamp\":true,\"memory_allocated\":2}", 1, true},
        {" ", 1, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unlink("a.jsonl");
        append_records("a.jsonl", 1, 1);
        write_text("a.jsonl", "a", cases[i].text);
        follow("a.jsonl");
        rig_await(&rig, 1);
        rig_stop(&rig);
        ck_assert_uint_eq(fake_feed_accepted(rig.feed, NULL), cases[i].accepted);
        ck_assert_uint_eq(rig.feed->count, cases[i].accepted);
        ck_assert_int_eq(rig.feed->sources[0]->figures.torn, cases[i].torn);
        rig_free(&rig);
    }
}
END_TEST

START_TEST(nothing_is_left_behind) {
    append_records("a.jsonl", 1, 100);
    write_text("b.json", "w", "[]");
    append_gzip("c.jsonl.gz", "{\"timestamp\":101.5,\"memory_allocated\":1}\n");
    uint32_t before = open_descriptors();
    follow(".");
    rig_await(&rig, 101);
    finish(101);
    ck_assert_uint_eq(open_descriptors(), before);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, rig.live_before);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("file_tail");
    TCase *grows = tcase_create("growing");
    tcase_add_checked_fixture(grows, fixture_setup, fixture_teardown);
    tcase_add_test(grows, files_grow_and_appear);
    tcase_add_test(grows, files_grow_and_appear_without_inotify);
    tcase_add_test(grows, a_missing_inotify_is_said);
    tcase_add_test(grows, a_file_that_comes_later);
    tcase_add_test(grows, through_a_link);
    tcase_add_test(grows, through_a_link_while_nothing_is_read);
    tcase_add_test(grows, byte_by_byte);
    tcase_add_test(grows, the_end_only);
    tcase_add_test(grows, positions_count_what_was_passed);
    tcase_add_test(grows, bad_lines_and_positions);
    tcase_add_test(grows, a_long_line_grows);
    tcase_add_test(grows, a_line_grows_too_long);
    tcase_add_test(grows, files_take_turns);
    tcase_add_test(grows, more_files_than_descriptors_of_ours);
    tcase_add_test(grows, more_files_than_the_system_lets_us_open);
    suite_add_tcase(suite, grows);
    TCase *rotation = tcase_create("rotation");
    tcase_add_checked_fixture(rotation, fixture_setup, fixture_teardown);
    tcase_add_test(rotation, renamed_away);
    tcase_add_test(rotation, renamed_to_a_name_that_is_read_too);
    tcase_add_test(rotation, renamed_away_faster_than_looked_for);
    tcase_add_test(rotation, renamed_away_without_inotify);
    tcase_add_test(rotation, deleted_and_made_again);
    tcase_add_test(rotation, cut_and_filled_anew);
    tcase_add_test(rotation, what_was_lost_is_said);
    tcase_add_test(rotation, copied_and_cut);
    tcase_add_test(rotation, renamed_and_compressed);
    tcase_add_test(rotation, alike_but_not_a_copy);
    suite_add_tcase(suite, rotation);
    TCase *rest = tcase_create("whole files, notes, stopping");
    tcase_add_checked_fixture(rest, fixture_setup, fixture_teardown);
    tcase_add_test(rest, an_array_is_read_when_it_is_whole);
    tcase_add_test(rest, an_array_replaced_under_its_name);
    tcase_add_test(rest, an_array_written_anew);
    tcase_add_test(rest, a_dump_written_anew);
    tcase_add_test(rest, an_unfinished_array_at_the_stop);
    tcase_add_test(rest, gzip_is_read_once_when_it_is_whole);
    tcase_add_test(rest, a_format_that_is_known_late);
    tcase_add_test(rest, what_is_not_telemetry_is_noted_once);
    tcase_add_test(rest, an_ignored_file_that_begins_anew);
    tcase_add_test(rest, a_dump_that_appears_beside_its_sink);
    tcase_add_test(rest, a_pipe_cannot_be_followed);
    tcase_add_test(rest, a_stop_reads_what_is_there);
    tcase_add_test(rest, the_last_line_at_a_stop);
    tcase_add_test(rest, nothing_is_left_behind);
    suite_add_tcase(suite, rest);
    TCase *reports = tcase_create("reports of several lines");
    tcase_add_checked_fixture(reports, fixture_setup, fixture_teardown);
    tcase_add_test(reports, the_end_of_a_file_is_told);
    tcase_add_test(reports, a_report_at_the_end_of_a_quiet_log);
    tcase_add_test(reports, a_report_is_all_there_is);
    tcase_add_test(reports, a_stop_with_a_store_finishes_no_report);
    tcase_add_test(reports, a_stop_without_a_store_finishes_reports);
    tcase_add_test(reports, a_report_in_a_log_that_is_gone);
    tcase_add_test(reports, a_report_in_a_log_that_was_cut);
    tcase_add_test(reports, a_report_in_a_log_that_was_rotated);
    tcase_add_test(reports, a_report_in_a_log_that_is_complete);
    suite_add_tcase(suite, reports);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
