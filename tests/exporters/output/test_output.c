// SPDX-License-Identifier: Apache-2.0
// Files, pipes and devices that fail: what is in them afterwards.
#include "base/log.h"
#include "base/memory.h"
#include "exporters/output/output.h"
#include "tests/exporters/scratch.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

static struct output output;
static struct error error;
static struct send_outcome outcome;

static void setup(void) {
    scratch_make();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    error = (struct error){0};
    output = (struct output){.descriptor = -1};
}

static void teardown(void) {
    output_close(&output);
    scratch_remove();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static struct output_options options_of(const char *name, enum output_mode mode) {
    static char path[160];
    snprintf(path, sizeof path, "%s", scratch_path(name));
    return (struct output_options){.path = path,
                                   .mode = mode,
                                   .max_size = 1 << 20,
                                   .max_backups = 3,
                                   .sync = true,
                                   .site = "exporter/json"};
}

static void open_lines(const char *name) {
    struct output_options options = options_of(name, OUTPUT_LINES);
    ck_assert_int_eq(output_open(&output, &options, &error), STATUS_OK);
}

static enum status send_bytes(struct slice bytes, bool complete) {
    struct request request = {.bytes = bytes, .complete = complete};
    outcome = (struct send_outcome){0};
    return output_send(&output, &request, &outcome, &error);
}

static void send_ok(const char *text) {
    ck_assert_msg(send_bytes(slice_of(text), true) == STATUS_OK, "%s", error.message);
}

#define CHECK_FILE(name, text) ck_assert_pstr_eq(scratch_read(name), text)

// Files may not grow beyond `bytes` from here on: a write past it comes up short, then fails.
static void limit_file_size(rlim_t bytes) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0)
        abort();
    limit.rlim_cur = bytes;
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) // an assertion would write a file, too
        abort();
}

START_TEST(lines_are_appended) {
    open_lines("v.jsonl");
    CHECK_FILE("v.jsonl", "");
    send_ok("one\ntwo\n");
    send_ok("");
    send_ok("three\n");
    output_close(&output);
    open_lines("v.jsonl");
    send_ok("four\n");
    CHECK_FILE("v.jsonl", "one\ntwo\nthree\nfour\n");
}
END_TEST

// `_i`: it is renamed, removed, or replaced by another file of ours.
START_TEST(a_file_that_loses_its_name) {
    char path[160];
    open_lines("v.jsonl");
    send_ok("one\n");
    snprintf(path, sizeof path, "%s", scratch_path("v.jsonl"));
    ck_assert_int_eq(_i == 1 ? unlink(path) : rename(path, scratch_path("old.jsonl")), 0);
    if (_i == 2)
        scratch_write("v.jsonl", "other\n");
    send_ok("two\n");
    send_ok("three\n");
    CHECK_FILE("v.jsonl", _i == 2 ? "other\ntwo\nthree\n" : "two\nthree\n");
    if (_i != 1)
        CHECK_FILE("old.jsonl", "one\n");
}
END_TEST

START_TEST(torn_line_is_cut) {
    log_configure(LOG_ERROR, LOG_CONSOLE);
    static char long_tail[20000] = "{\"schema\":\"culprit.verdict.v1\",\"x\":\"";
    memset(long_tail + strlen(long_tail), 'x', sizeof long_tail - strlen(long_tail) - 1);
    const char *const tails[] = {"{\"sch", "{\"schema\":\"culprit.verdict.v1\",\"id", long_tail,
                                 "{"};
    const char *const heads[] = {"", "whole\n", "a\nb\n"};
    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < 3; k++) {
            FILE *file = fopen(scratch_path("v.jsonl"), "wb");
            fprintf(file, "%s%s", heads[k], tails[i]);
            fclose(file);
            open_lines("v.jsonl");
            CHECK_FILE("v.jsonl", heads[k]);
            send_ok("next\n");
            char expected[64];
            snprintf(expected, sizeof expected, "%snext\n", heads[k]);
            CHECK_FILE("v.jsonl", expected);
            output_close(&output);
        }
    }
    log_flush();
}
END_TEST

START_TEST(files_of_others_are_left_alone) {
    scratch_write("notes.txt", "line\nno newline at the end");
    struct output_options options = options_of("notes.txt", OUTPUT_LINES);
    ck_assert_int_eq(output_open(&output, &options, &error), STATUS_CANNOT_CREATE);
    ck_assert_ptr_nonnull(strstr(error.message, "notes.txt ends in the middle of a line"));
    CHECK_FILE("notes.txt", "line\nno newline at the end");
}
END_TEST

START_TEST(places_that_cannot_be_written) {
    for (int mode = OUTPUT_LINES; mode <= OUTPUT_DOCUMENT; mode++) {
        struct output_options options = options_of("missing/v.json", (enum output_mode)mode);
        ck_assert_int_eq(output_open(&output, &options, &error), STATUS_NOT_FOUND);
        ck_assert_ptr_nonnull(strstr(error.message, "missing/v.json"));
        output_close(&output);
        options.path = scratch_folder;
        ck_assert_int_eq(output_open(&output, &options, &error), STATUS_CANNOT_CREATE);
        output_close(&output);
        options.path = "";
        ck_assert_int_eq(output_open(&output, &options, &error), STATUS_CONFIG);
        output_close(&output);
    }
}
END_TEST

START_TEST(rotation_at_lines) {
    struct output_options options = options_of("v.jsonl", OUTPUT_LINES);
    options.max_size = 10;
    ck_assert_int_eq(output_open(&output, &options, &error), STATUS_OK);
    send_ok("1111\n2222\n"); // exactly full
    CHECK_FILE("v.jsonl", "1111\n2222\n");
    ck_assert_ptr_null(scratch_read("v.jsonl.1"));
    send_ok("3333\n");
    CHECK_FILE("v.jsonl", "3333\n");
    CHECK_FILE("v.jsonl.1", "1111\n2222\n");
    send_ok("4444\n55555\n6\n7\n"); // over several files in one request
    CHECK_FILE("v.jsonl", "55555\n6\n7\n");
    CHECK_FILE("v.jsonl.1", "3333\n4444\n");
    CHECK_FILE("v.jsonl.2", "1111\n2222\n");
    send_ok("a line longer than a file may be\nb\n");
    CHECK_FILE("v.jsonl", "b\n");
    CHECK_FILE("v.jsonl.1", "a line longer than a file may be\n");
    CHECK_FILE("v.jsonl.2", "55555\n6\n7\n");
    CHECK_FILE("v.jsonl.3", "3333\n4444\n"); // the oldest is gone: three are kept
    ck_assert_ptr_null(scratch_read("v.jsonl.4"));
}
END_TEST

START_TEST(rotation_without_backups) {
    struct output_options options = options_of("v.jsonl", OUTPUT_LINES);
    options.max_size = 4;
    options.max_backups = 0;
    ck_assert_int_eq(output_open(&output, &options, &error), STATUS_OK);
    send_ok("a\nb\nc\nd\ne\n");
    CHECK_FILE("v.jsonl", "e\n");
    ck_assert_ptr_null(scratch_read("v.jsonl.1"));
}
END_TEST

START_TEST(full_disk_leaves_whole_lines) {
    open_lines("v.jsonl");
    send_ok("first\n");
    limit_file_size(20);
    for (int attempt = 0; attempt < 3; attempt++) {
        ck_assert_int_eq(send_bytes(SLICE("second\nthird\nfourth\n"), true), STATUS_IO);
        ck_assert(!outcome.sink_dead);
        ck_assert_ptr_nonnull(strstr(error.message, "v.jsonl"));
        CHECK_FILE("v.jsonl", "first\n");
    }
    limit_file_size(RLIM_INFINITY);
    send_ok("second\nthird\nfourth\n");
    CHECK_FILE("v.jsonl", "first\nsecond\nthird\nfourth\n");
}
END_TEST

// The first lines of the request are in a file that was rotated away when the rest fails: they are
// taken, and only the rest comes again, first the same, then with more behind it.
START_TEST(retry_after_rotation_doubles_nothing) {
    struct output_options options = options_of("v.jsonl", OUTPUT_LINES);
    options.max_size = 12;
    ck_assert_int_eq(output_open(&output, &options, &error), STATUS_OK);
    limit_file_size(9);
    ck_assert_int_eq(send_bytes(SLICE("1111\n222\n3333333333\n"), true), STATUS_IO);
    ck_assert_uint_eq(outcome.taken, 9);
    CHECK_FILE("v.jsonl", "");
    CHECK_FILE("v.jsonl.1", "1111\n222\n");
    ck_assert_int_eq(send_bytes(SLICE("3333333333\n"), true), STATUS_IO);
    ck_assert_uint_eq(outcome.taken, 0);
    CHECK_FILE("v.jsonl", "");
    limit_file_size(RLIM_INFINITY);
    send_ok("3333333333\n44\n");
    CHECK_FILE("v.jsonl", "44\n");
    CHECK_FILE("v.jsonl.1", "3333333333\n");
    CHECK_FILE("v.jsonl.2", "1111\n222\n");
    ck_assert_ptr_null(scratch_read("v.jsonl.3"));
}
END_TEST

static void open_document(const char *name) {
    struct output_options options = options_of(name, OUTPUT_DOCUMENT);
    ck_assert_int_eq(output_open(&output, &options, &error), STATUS_OK);
}

START_TEST(document_is_replaced_whole) {
    scratch_write("s.json", "old");
    open_document("s.json");
    CHECK_FILE("s.json", "old");
    ck_assert_ptr_null(scratch_read("s.json.tmp"));
    ck_assert_int_eq(send_bytes(SLICE("\x1e{"), false), STATUS_OK);
    ck_assert_int_eq(send_bytes(SLICE("\"new\""), false), STATUS_OK);
    CHECK_FILE("s.json", "old");
    ck_assert_int_eq(send_bytes(SLICE("}\n"), true), STATUS_OK);
    CHECK_FILE("s.json", "{\"new\"}\n");
    ck_assert_ptr_null(scratch_read("s.json.tmp"));
    send_ok("\x1enewer");
    CHECK_FILE("s.json", "newer");
    send_ok(""); // the last request with nothing in it
    CHECK_FILE("s.json", "newer");
}
END_TEST

START_TEST(document_ends_with_an_empty_piece) {
    open_document("s.json");
    ck_assert_int_eq(send_bytes(SLICE("\x1e"
                                      "all"),
                                false),
                     STATUS_OK);
    ck_assert_ptr_null(scratch_read("s.json"));
    send_ok("");
    CHECK_FILE("s.json", "all");
}
END_TEST

START_TEST(only_the_newest_of_queued_documents) {
    open_document("s.json");
    send_ok("\x1eoldest\x1eolder\x1enewest");
    CHECK_FILE("s.json", "newest");
    ck_assert_int_eq(send_bytes(SLICE("\x1e"
                                      "begun, never ended"),
                                false),
                     STATUS_OK);
    send_ok("\x1ewhole");
    CHECK_FILE("s.json", "whole");
}
END_TEST

START_TEST(full_disk_keeps_the_old_document) {
    scratch_write("s.json", "old");
    open_document("s.json");
    limit_file_size(8);
    ck_assert_int_eq(send_bytes(SLICE("\x1e"
                                      "12345"),
                                false),
                     STATUS_OK);
    for (int attempt = 0; attempt < 2; attempt++) {
        ck_assert_int_eq(send_bytes(SLICE("6789abc"), true), STATUS_IO);
        ck_assert(!outcome.sink_dead);
        CHECK_FILE("s.json", "old");
        CHECK_FILE("s.json.tmp", "12345");
    }
    limit_file_size(RLIM_INFINITY);
    ck_assert_int_eq(send_bytes(SLICE("6789abc"), true), STATUS_OK);
    CHECK_FILE("s.json", "123456789abc");
}
END_TEST

START_TEST(unfinished_document_is_thrown_away) {
    scratch_write("s.json", "old");
    open_document("s.json");
    ck_assert_int_eq(send_bytes(SLICE("\x1ehalf"), false), STATUS_OK);
    output_close(&output);
    CHECK_FILE("s.json", "old");
    ck_assert_ptr_null(scratch_read("s.json.tmp"));
}
END_TEST

START_TEST(links_are_followed) {
    scratch_write("real.json", "old");
    ck_assert_int_eq(symlink("real.json", scratch_path("link.json")), 0);
    open_document("link.json");
    send_ok("\x1enew");
    CHECK_FILE("real.json", "new");
    struct stat about;
    ck_assert_int_eq(lstat(scratch_path("link.json"), &about), 0);
    ck_assert(S_ISLNK(about.st_mode));
}
END_TEST

START_TEST(devices_are_written_not_replaced) {
    struct output_options options = options_of("x", OUTPUT_DOCUMENT);
    options.path = "/dev/null";
    ck_assert_int_eq(output_open(&output, &options, &error), STATUS_OK);
    struct buffer out;
    buffer_init(&out, 10);
    output_begin_document(&output, &out);
    ck_assert_uint_eq(out.size, 0);
    send_ok("text");
    struct stat about;
    ck_assert_int_eq(stat("/dev/null", &about), 0);
    ck_assert(S_ISCHR(about.st_mode));
    output_close(&output);
    options.path = "/dev/full";
    ck_assert_int_eq(output_open(&output, &options, &error), STATUS_OK);
    ck_assert_int_eq(send_bytes(SLICE("text"), true), STATUS_IO);
    ck_assert(outcome.sink_dead);
}
END_TEST

static void *pipe_read(void *path) {
    int descriptor = open(path, O_RDONLY);
    size_t total = 0;
    static char bytes[4096];
    usleep(20000); // so that the pipe is full for a while
    for (ssize_t got; (got = read(descriptor, bytes, sizeof bytes)) > 0;)
        total += (size_t)got;
    close(descriptor);
    return (void *)total;
}

START_TEST(named_pipe) {
    const char *path = scratch_path("pipe");
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    struct output_options options = options_of("pipe", OUTPUT_LINES);
    ck_assert_int_eq(output_open(&output, &options, &error), STATUS_CANNOT_CREATE);
    ck_assert_ptr_nonnull(strstr(error.message, "start its reader first"));
    output_close(&output);
    int held = open(path, O_RDONLY | O_NONBLOCK); // so that opening to write succeeds at once
    ck_assert_int_eq(output_open(&output, &options, &error), STATUS_OK);
    pthread_t thread;
    char copy[160];
    strcpy(copy, path);
    ck_assert_int_eq(pthread_create(&thread, NULL, pipe_read, copy), 0);
    static char large[1 << 18];
    memset(large, 'x', sizeof large);
    ck_assert_int_eq(send_bytes((struct slice){large, sizeof large}, true), STATUS_OK);
    output_close(&output);
    void *total;
    pthread_join(thread, &total);
    ck_assert_uint_eq((size_t)total, sizeof large);
    close(held);
}
END_TEST

START_TEST(reader_of_standard_output_is_gone) {
    int pipes[2], saved = dup(STDOUT_FILENO);
    ck_assert_int_eq(pipe(pipes), 0);
    dup2(pipes[1], STDOUT_FILENO);
    struct output_options options = {.path = "-", .site = "exporter/text"};
    ck_assert_int_eq(output_open(&output, &options, &error), STATUS_OK);
    ck_assert_int_eq(send_bytes(SLICE("hello\n"), true), STATUS_OK);
    char bytes[16];
    ck_assert_int_eq(read(pipes[0], bytes, sizeof bytes), 6);
    ck_assert_mem_eq(bytes, "hello\n", 6);
    close(pipes[0]);
    enum status first = send_bytes(SLICE("more\n"), true);
    bool first_permanent = outcome.sink_dead;
    enum status second = send_bytes(SLICE("more\n"), true);
    dup2(saved, STDOUT_FILENO);
    ck_assert_int_eq(first, STATUS_STOPPED);
    ck_assert(first_permanent);
    ck_assert_int_eq(second, STATUS_IO);
    ck_assert(outcome.sink_dead);
    close(pipes[1]);
    close(saved);
    output_close(&output);
    ck_assert_int_ge(fcntl(STDOUT_FILENO, F_GETFD), 0); // closing leaves standard output open
}
END_TEST

START_TEST(close_is_always_safe) {
    struct output zero = {0};
    output_close(&zero);
    ck_assert_int_ge(fcntl(STDIN_FILENO, F_GETFD), 0);
    output_close(&output);
    output_close(&output);
}
END_TEST

// -- back to a checkpoint -----------------------------------------------------------------------

#define LINE(id) "{\"schema\":\"culprit.verdict.v1\",\"id\":\"" id "\"}\n"

static struct buffer mark;

static void checkpoint(void) {
    buffer_release(&mark);
    buffer_init(&mark, 4096);
    output_delivered(&output, &mark);
}

static uint64_t resume_max_size = 1 << 20;

// What a restart after a kill does; `expected` is what comes of it.
static void resume(enum status expected) {
    output_close(&output);
    struct output_options options = options_of("v.jsonl", OUTPUT_LINES);
    options.max_size = resume_max_size;
    ck_assert_msg(output_open(&output, &options, &error) == STATUS_OK, "%s", error.message);
    ck_assert_int_eq(output_resume(&output, buffer_slice(&mark), &error), expected);
}

static void teardown_resume(void) {
    buffer_release(&mark);
    mark = (struct buffer){0};
    log_flush();
    teardown();
}

static void setup_resume(void) {
    setup();
    log_configure((enum log_level)(LOG_ERROR + 1), LOG_CONSOLE);
    struct output_options options = options_of("v.jsonl", OUTPUT_LINES);
    options.max_size = resume_max_size;
    ck_assert_int_eq(output_open(&output, &options, &error), STATUS_OK);
}

START_TEST(resume_cuts_what_comes_again) {
    send_ok(LINE("aa"));
    checkpoint();
    ck_assert_uint_gt(mark.size, 0);
    send_ok(LINE("bb") LINE("cc"));
    for (int i = 0; i < 2; i++) {
        resume(STATUS_OK);
        CHECK_FILE("v.jsonl", LINE("aa"));
    }
    send_ok(LINE("bb") LINE("cc"));
    CHECK_FILE("v.jsonl", LINE("aa") LINE("bb") LINE("cc"));
    checkpoint();
    resume(STATUS_OK);
    CHECK_FILE("v.jsonl", LINE("aa") LINE("bb") LINE("cc"));
}
END_TEST

START_TEST(resume_of_an_empty_file) {
    checkpoint();
    send_ok(LINE("aa"));
    FILE *file = fopen(scratch_path("v.jsonl"), "ab");
    fputs("{\"schema\":\"culp", file); // torn by the kill
    fclose(file);
    resume(STATUS_OK);
    CHECK_FILE("v.jsonl", "");
}
END_TEST

START_TEST(resume_without_a_checkpoint) {
    send_ok(LINE("aa"));
    buffer_init(&mark, 4096);
    resume(STATUS_OK);
    CHECK_FILE("v.jsonl", LINE("aa"));
    buffer_append_text(&mark, "what another version may have written");
    resume(STATUS_OK);
    CHECK_FILE("v.jsonl", LINE("aa"));
}
END_TEST

// Two lines fit into a file. Newer files go, the cut one comes back, older ones close up.
START_TEST(resume_after_rotations) {
    resume_max_size = 2 * strlen(LINE("00"));
    resume(STATUS_OK);
    send_ok(LINE("01") LINE("02") LINE("03"));
    CHECK_FILE("v.jsonl.1", LINE("01") LINE("02"));
    checkpoint();
    for (int i = 0; i < 3; i++) {
        send_ok(LINE("04"));
        send_ok(LINE("05") LINE("06"));
        CHECK_FILE("v.jsonl", LINE("05") LINE("06"));
        CHECK_FILE("v.jsonl.1", LINE("03") LINE("04"));
        CHECK_FILE("v.jsonl.2", LINE("01") LINE("02"));
        if (i > 0) { // as a crash in the middle of an earlier resume left it
            unlink(scratch_path("v.jsonl"));
            if (i > 1)
                rename(scratch_path("v.jsonl.1"), scratch_path("v.jsonl"));
        }
        resume(STATUS_OK);
        CHECK_FILE("v.jsonl", LINE("03"));
        CHECK_FILE("v.jsonl.1", LINE("01") LINE("02"));
        ck_assert_ptr_null(scratch_read("v.jsonl.2"));
    }
    send_ok(LINE("04"));
    CHECK_FILE("v.jsonl", LINE("03") LINE("04"));
    resume_max_size = 1 << 20;
}
END_TEST

START_TEST(resume_leaves_other_files_alone) {
    send_ok(LINE("aa"));
    checkpoint();
    send_ok(LINE("bb"));
    // Moved away, and a new one begun.
    ck_assert_int_eq(rename(scratch_path("v.jsonl"), scratch_path("old.jsonl")), 0);
    scratch_write("v.jsonl", LINE("xx"));
    resume(STATUS_OK);
    CHECK_FILE("v.jsonl", LINE("xx"));
    CHECK_FILE("old.jsonl", LINE("aa") LINE("bb"));
    // Its inode, with something else in it.
    ck_assert_int_eq(rename(scratch_path("old.jsonl"), scratch_path("v.jsonl")), 0);
    FILE *file = fopen(scratch_path("v.jsonl"), "r+b");
    fputs(LINE("yy") LINE("zz"), file);
    fclose(file);
    resume(STATUS_OK);
    CHECK_FILE("v.jsonl", LINE("yy") LINE("zz"));
    // Shorter.
    ck_assert_int_eq(truncate(scratch_path("v.jsonl"), 0), 0);
    resume(STATUS_OK);
    CHECK_FILE("v.jsonl", "");
}
END_TEST

// A line of somebody else after ours, and in a newer file: nothing is cut or removed.
START_TEST(resume_cuts_only_our_lines) {
    send_ok(LINE("aa"));
    checkpoint();
    send_ok(LINE("bb"));
    FILE *file = fopen(scratch_path("v.jsonl"), "ab");
    fputs("a note\n", file);
    fclose(file);
    resume(STATUS_OK);
    CHECK_FILE("v.jsonl", LINE("aa") LINE("bb") "a note\n");
    output_close(&output);
    ck_assert_int_eq(rename(scratch_path("v.jsonl"), scratch_path("v.jsonl.1")), 0);
    ck_assert_int_eq(truncate(scratch_path("v.jsonl.1"), 2 * strlen(LINE("aa"))), 0);
    scratch_write("v.jsonl", "notes\n");
    resume(STATUS_OK);
    CHECK_FILE("v.jsonl", "notes\n");
    CHECK_FILE("v.jsonl.1", LINE("aa") LINE("bb"));
    scratch_write("v.jsonl", LINE("cc"));
    resume(STATUS_OK);
    CHECK_FILE("v.jsonl", LINE("aa"));
    ck_assert_ptr_null(scratch_read("v.jsonl.1"));
}
END_TEST

START_TEST(documents_and_streams_have_no_checkpoint) {
    output_close(&output);
    open_document("s.json");
    send_ok("\x1etext");
    checkpoint();
    ck_assert_uint_eq(mark.size, 0);
    ck_assert_int_eq(output_resume(&output, SLICE("anything"), &error), STATUS_OK);
    CHECK_FILE("s.json", "text");
    output_close(&output);
    struct output_options options = options_of("x", OUTPUT_LINES);
    options.path = "/dev/null";
    ck_assert_int_eq(output_open(&output, &options, &error), STATUS_OK);
    send_ok(LINE("aa"));
    checkpoint();
    ck_assert_uint_eq(mark.size, 0);
}
END_TEST

START_TEST(a_slot_holds_the_last_line_only) {
    scratch_write("slot", "what the system had put there, longer than a line");
    struct output_options options = options_of("slot", OUTPUT_SLOT);
    struct stat before, after;
    ck_assert_int_eq(stat(options.path, &before), 0);
    ck_assert_int_eq(output_open(&output, &options, &error), STATUS_OK);
    send_ok("one\ntwo, which is longer\n");
    CHECK_FILE("slot", "two, which is longer\n");
    send_ok("three\n");
    CHECK_FILE("slot", "three\n");
    send_ok("");
    CHECK_FILE("slot", "three\n");
    ck_assert_int_eq(stat(options.path, &after), 0);
    ck_assert_uint_eq(before.st_ino, after.st_ino);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("output");
    TCase *resumes = tcase_create("resume");
    tcase_add_checked_fixture(resumes, setup_resume, teardown_resume);
    tcase_add_test(resumes, resume_cuts_what_comes_again);
    tcase_add_test(resumes, resume_of_an_empty_file);
    tcase_add_test(resumes, resume_without_a_checkpoint);
    tcase_add_test(resumes, resume_after_rotations);
    tcase_add_test(resumes, resume_leaves_other_files_alone);
    tcase_add_test(resumes, resume_cuts_only_our_lines);
    tcase_add_test(resumes, documents_and_streams_have_no_checkpoint);
    suite_add_tcase(suite, resumes);
    TCase *cases = tcase_create("output");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, lines_are_appended);
    tcase_add_loop_test(cases, a_file_that_loses_its_name, 0, 3);
    tcase_add_test(cases, torn_line_is_cut);
    tcase_add_test(cases, files_of_others_are_left_alone);
    tcase_add_test(cases, places_that_cannot_be_written);
    tcase_add_test(cases, rotation_at_lines);
    tcase_add_test(cases, rotation_without_backups);
    tcase_add_test(cases, full_disk_leaves_whole_lines);
    tcase_add_test(cases, retry_after_rotation_doubles_nothing);
    tcase_add_test(cases, document_is_replaced_whole);
    tcase_add_test(cases, document_ends_with_an_empty_piece);
    tcase_add_test(cases, only_the_newest_of_queued_documents);
    tcase_add_test(cases, full_disk_keeps_the_old_document);
    tcase_add_test(cases, unfinished_document_is_thrown_away);
    tcase_add_test(cases, links_are_followed);
    tcase_add_test(cases, devices_are_written_not_replaced);
    tcase_add_test(cases, named_pipe);
    tcase_add_test(cases, reader_of_standard_output_is_gone);
    tcase_add_test(cases, a_slot_holds_the_last_line_only);
    tcase_add_test(cases, close_is_always_safe);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
