// SPDX-License-Identifier: Apache-2.0
// The file receiver on inputs that end: lines, documents, gzip, formats, quarantine.
#include "pipeline/model/node_event.h"
#include "tests/receivers/file/file_fixture.h"

#include <check.h>

static void read_one(const char *path) {
    static const char *include[1];
    include[0] = path;
    rig_init(&rig, include, 1);
    rig_read_all(&rig);
}

static void read_text(const char *text) {
    write_text("in.jsonl", "w", text);
    read_one("in.jsonl");
}

static const struct source_figures *figures(void) {
    return &rig.feed->sources[0]->figures;
}

#define R1 "{\"timestamp\":1.5,\"memory_allocated\":1}"
#define R2 "{\"timestamp\":2.5,\"memory_allocated\":2}"
#define R3 "{\"timestamp\":3.5,\"memory_allocated\":3}"

// -- lines --------------------------------------------------------------------------------------

START_TEST(lines_and_positions) {
    read_text("\n" R1 "\r\n  \t\r\n" R2 "\n{\"nonsense\n" R3 "\n");
    ck_assert_uint_eq(rig.feed->count, 4);
    static const uint64_t positions[] = {2, 4, 5, 6};
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(rig.feed->records[i].position, positions[i]);
    ck_assert_str_eq(rig.feed->records[0].text, R1);
    ck_assert_int_eq(rig.feed->records[2].category, DECODE_BAD_JSON);
    ck_assert_uint_eq(figures()->blank, 2);
    ck_assert_uint_eq(figures()->accepted, 3);
    ck_assert_uint_eq(figures()->refused, 1);
    ck_assert_str_eq(figures()->format, "stormlog");
    ck_assert(!figures()->torn);
    rig_free(&rig);
}
END_TEST

START_TEST(other_line_ends_are_no_line_ends) {
    read_text(
        "{\"timestamp\":1.5,\"memory_allocated\":1,\"context\":\"a\xe2\x80\xa8"
        "b\xc2\x85"
        "c\"}\n" R2 "\n");
    ck_assert_uint_eq(fake_feed_accepted(rig.feed, NULL), 2);
    rig_free(&rig);
}
END_TEST

START_TEST(last_line_without_newline) {
    read_text(R1 "\n" R2);
    ck_assert_uint_eq(fake_feed_accepted(rig.feed, NULL), 2);
    ck_assert_uint_eq(rig.feed->records[1].position, 2);
    ck_assert(!figures()->torn);
    ck_assert_uint_eq(rig.feed->note_count, 0);
    rig_free(&rig);
}
END_TEST

// It may be whole: the decoder is told that it may not be.
START_TEST(last_line_of_a_log) {
    static const char log[] =
        "Mar 14 01:50:17 a kernel: NVRM: Xid (PCI:0000:b3:00): 79, pid=1\n"
        "Mar 14 01:50:18 a kernel: NVRM: Xid (PCI:0000:b3:00): 46";
    read_text(log);
    ck_assert_uint_eq(fake_feed_accepted(rig.feed, NULL), 2);
    ck_assert_uint_eq(rig.feed->records[1].position, 2);
    ck_assert_int_eq(rig.feed->event.kind, EVENT_KERNEL);
    ck_assert(rig.feed->event.kernel->truncated);
    ck_assert(!figures()->torn);
    ck_assert_uint_eq(rig.feed->note_count, 0);
    rig_free(&rig);
}
END_TEST

// Whose times say no zone: it is looked through for one only where something else can prove it.
START_TEST(kernel_log_without_a_zone) {
    static const char *const include[] = {"in.log"};
    for (uint32_t may = 0; may < 2; may++) {
        write_text("in.log", "w", "Mar 14 01:50:17 a kernel: NVRM: Xid (PCI:0000:b3:00): 79\n");
        rig_init(&rig, include, 1);
        rig.feed->may_settle_zone = may == 1;
        rig_read_all(&rig);
        ck_assert_uint_eq(fake_feed_accepted(rig.feed, NULL), 1);
        ck_assert_uint_eq(rig.feed->zones_settled, may);
        rig_free(&rig);
    }
}
END_TEST

START_TEST(last_line_of_blanks) {
    read_text(R1 "\n  ");
    ck_assert_uint_eq(figures()->blank, 1);
    rig_free(&rig);
    read_text("\n \n ");
    ck_assert_uint_eq(figures()->blank, 3);
    rig_free(&rig);
}
END_TEST

// Wherever the last line breaks off, it is dropped and said, and nothing is refused.
START_TEST(torn_last_line_at_every_byte) {
    char text[128];
    for (size_t cut = 1; cut < strlen(R2); cut++) {
        snprintf(text, sizeof text, "%s\n%.*s", R1, (int)cut, R2);
        read_text(text);
        ck_assert_uint_eq(rig.feed->count, 1);
        ck_assert(figures()->torn);
        ck_assert_uint_eq(figures()->refused, 0);
        ck_assert_uint_eq(rig.feed->note_count, 1);
        ck_assert(fake_feed_noted(rig.feed, "in.jsonl: ", "last line, 2, breaks off"));
        rig_free(&rig);
    }
}
END_TEST

START_TEST(only_a_torn_line) {
    read_text("{\"memory_allocated\":1,\"timest");
    ck_assert_uint_eq(rig.feed->count, 0);
    ck_assert(figures()->torn);
    rig_free(&rig);
}
END_TEST

START_TEST(zero_bytes_are_passed_and_the_rest_is_read) {
    static const char text[] = R1 "\n\0\0\0\0\n\0\0" R2 "\n" R3 "\n";
    write_bytes("in.jsonl", "w", text, sizeof text - 1);
    read_one("in.jsonl");
    ck_assert_uint_eq(fake_feed_accepted(rig.feed, NULL), 3); // as a crashed machine leaves them
    ck_assert_uint_eq(figures()->blank, 1);
    rig_free(&rig);
}
END_TEST

// A line of the given length between two short ones.
static void write_long_line(size_t length) {
    char *line = malloc(length + 1);
    int start = sprintf(line, "{\"timestamp\":2.5,\"memory_allocated\":2,\"context\":\"");
    memset(line + start, 'x', length - (size_t)start);
    memcpy(line + length - 2, "\"}", 2);
    line[length] = '\n';
    write_text("in.jsonl", "w", R1 "\n");
    write_bytes("in.jsonl", "a", line, length + 1);
    write_text("in.jsonl", "a", R3 "\n");
    free(line);
}

START_TEST(a_line_of_three_mebibytes) {
    write_long_line(3 << 20);
    read_one("in.jsonl");
    ck_assert_uint_eq(rig.feed->count, 3);
    ck_assert_int_eq(rig.feed->records[1].category, DECODE_TOO_LONG);
    ck_assert_uint_eq(rig.feed->records[1].position, 2);
    ck_assert_str_eq(rig.feed->records[2].text, R3);
    ck_assert_uint_eq(rig.feed->records[2].position, 3);
    ck_assert_uint_le(rig.receiver.reader.window.capacity, 4 << 20);
    rig_free(&rig);
}
END_TEST

START_TEST(a_line_of_three_mebibytes_that_may_be) {
    static const char *const include[] = {"in.jsonl"};
    write_long_line(3 << 20);
    rig_init(&rig, include, 1);
    rig.config.max_line_size.bytes = 4 << 20;
    rig_read_all(&rig);
    ck_assert_uint_eq(fake_feed_accepted(rig.feed, NULL), 3);
    ck_assert_uint_eq(rig.feed->records[1].size, 3 << 20);
    rig_free(&rig);
}
END_TEST

START_TEST(the_bound_on_lines_is_exact) {
    static const char *const include[] = {"in.jsonl"};
    for (size_t length = 4095; length <= 4097; length++) {
        for (int crlf = 0; crlf < 2; crlf++) {
            write_long_line(length);
            if (crlf)
                fixture_run("sed -i 's/$/\\r/' in.jsonl");
            rig_init(&rig, include, 1);
            rig.config.max_line_size.bytes = 4096;
            rig_read_all(&rig);
            ck_assert_uint_eq(fake_feed_accepted(rig.feed, NULL), length <= 4096 ? 3 : 2);
            ck_assert_uint_eq(fake_feed_refused(rig.feed, DECODE_TOO_LONG), length > 4096);
            rig_free(&rig);
        }
    }
}
END_TEST

START_TEST(a_last_line_too_long_without_end) {
    static const char *const include[] = {"in.jsonl"};
    write_text("in.jsonl", "w", R1 "\n");
    char *line = malloc(1 << 20);
    memset(line, 'y', 1 << 20);
    write_bytes("in.jsonl", "a", line, 1 << 20);
    free(line);
    rig_init(&rig, include, 1);
    rig.config.max_line_size.bytes = 2048;
    rig_read_all(&rig);
    ck_assert_uint_eq(rig.feed->count, 2);
    ck_assert_int_eq(rig.feed->records[1].category, DECODE_TOO_LONG);
    ck_assert(!figures()->torn);
    rig_free(&rig);
}
END_TEST

START_TEST(many_blocks_in_order_without_allocating) {
    enum { COUNT = 40000 };
    append_records("in.jsonl", 1, COUNT);
    read_one("in.jsonl");
    ck_assert_uint_eq(fake_feed_accepted(rig.feed, NULL), COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        ck_assert_uint_eq(rig.feed->records[i].position, i + 1);
    rig_check_once_each(&rig, COUNT);
    struct stat about;
    ck_assert_int_eq(stat("in.jsonl", &about), 0);
    ck_assert_uint_eq(figures()->bytes, (uint64_t)about.st_size);
    ck_assert_uint_eq(rig.feed->done_bytes, (uint64_t)about.st_size);
    ck_assert_uint_eq(rig.feed->total_bytes, (uint64_t)about.st_size);
    uint64_t before = memory_figures().allocations;
    ck_assert_int_eq(
        receiver_file.receiver.read(&rig.receiver, rig.feed, SLICE("in.jsonl"), &rig.error),
        STATUS_OK);
    // The path's copy is the one allocation; the fake feed counts elsewhere.
    ck_assert_uint_le(memory_figures().allocations - before, 1);
    rig_free(&rig);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, rig.live_before);
}
END_TEST

START_TEST(a_stop_ends_reading_early) {
    static const char *const include[] = {"in.jsonl"};
    append_records("in.jsonl", 1, 40000);
    rig_init(&rig, include, 1);
    fake_feed_stop(rig.feed);
    rig_read_all(&rig);
    uint32_t count = fake_feed_accepted(rig.feed, NULL);
    ck_assert_uint_gt(count, 0);
    ck_assert_uint_lt(count, 40000);
    ck_assert(!figures()->torn);
    rig_free(&rig);
}
END_TEST

START_TEST(empty_files_are_fine) {
    read_text("");
    ck_assert_int_eq(rig.list_status, STATUS_OK);
    ck_assert_uint_eq(rig.feed->count + rig.feed->note_count, 0);
    rig_free(&rig);
    read_text("\n\n");
    ck_assert_uint_eq(rig.feed->count + rig.feed->note_count, 0);
    rig_free(&rig);
}
END_TEST

START_TEST(standard_input) {
    for (int gzip = 0; gzip < 2; gzip++) {
        fixture_run("rm -f in in.gz && printf '%s\\n%s\\n' '%s' '%s' > in && gzip -k in", "%s",
                    "%s", R1, R2);
        ck_assert_int_eq(dup2(open(gzip ? "in.gz" : "in", O_RDONLY), 0), 0);
        read_one("-");
        ck_assert_uint_eq(rig.sources.count, 1);
        ck_assert_uint_eq(fake_feed_accepted(rig.feed, "-"), 2);
        rig_free(&rig);
    }
}
END_TEST

static void *fifo_writer(void *unused) {
    (void)unused;
    FILE *file = fopen("pipe", "w");
    for (const char *c = R1 "\n" R2 "\n" R3; *c != '\0'; c++) {
        fputc(*c, file);
        fflush(file);
    }
    fclose(file);
    return NULL;
}

START_TEST(a_named_pipe_is_read_once) {
    ck_assert_int_eq(mkfifo("pipe", 0600), 0);
    pthread_t thread;
    pthread_create(&thread, NULL, fifo_writer, NULL);
    read_one("pipe");
    pthread_join(thread, NULL);
    ck_assert_uint_eq(fake_feed_accepted(rig.feed, "pipe"), 3);
    rig_free(&rig);
}
END_TEST

static void *late_stop(void *feed) {
    clock_sleep_ns(20 * 1000 * 1000);
    fake_feed_stop(feed);
    return NULL;
}

// Nobody ever writes to the pipe, or stops in the middle of a line.
START_TEST(a_stop_ends_waiting) {
    static const char *const include[] = {"pipe"};
    ck_assert_int_eq(mkfifo("pipe", 0600), 0);
    for (int writer = 0; writer < 2; writer++) {
        int held = writer ? open("pipe", O_RDWR) : -1;
        if (writer)
            ck_assert_int_eq(write(held, R1 "\n{\"time", 45), 45);
        rig_init(&rig, include, 1);
        pthread_t thread;
        pthread_create(&thread, NULL, late_stop, rig.feed);
        rig_read_all(&rig);
        pthread_join(thread, NULL);
        ck_assert_uint_eq(fake_feed_accepted(rig.feed, NULL), rig.feed->count);
        ck_assert_uint_eq(rig.feed->note_count, 0);
        rig_free(&rig);
        close(held);
    }
}
END_TEST

// -- documents ----------------------------------------------------------------------------------

START_TEST(documents) {
    static const char *const texts[] = {
        "[\n  " R1 ",\n  " R2 "\n]\n",
        "{\"events\": [" R1 ", " R2 "]}",
        "{\"telemetry_events\": [" R1 ", " R2 "], \"session_summary\": {\"session_id\": \"s\"}}\n",
        ("{\n\"timestamp\": 1.5,\n\"memory_allocated\": 1\n}\n{\n\"timestamp\": 2.5,\n"
         "\"memory_allocated\": 2\n}\n"),
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        read_text(texts[i]);
        ck_assert_msg(fake_feed_accepted(rig.feed, NULL) == 2, "%s", texts[i]);
        ck_assert_uint_eq(rig.feed->records[0].position, 1);
        ck_assert_uint_eq(rig.feed->records[1].position, 2);
        ck_assert_uint_eq(rig.feed->note_count, 0);
        rig_free(&rig);
    }
}
END_TEST

START_TEST(one_bare_event) {
    read_text("{\n  \"timestamp\": 1.5,\n  \"memory_allocated\": 1\n}");
    ck_assert_uint_eq(fake_feed_accepted(rig.feed, NULL), 1);
    ck_assert_uint_eq(rig.feed->note_count, 0);
    rig_free(&rig);
}
END_TEST

START_TEST(an_empty_array_is_fine) {
    read_text("[]\n");
    ck_assert_uint_eq(rig.feed->count + rig.feed->note_count, 0);
    ck_assert_str_eq(figures()->format, "stormlog");
    rig_free(&rig);
}
END_TEST

START_TEST(an_array_over_many_blocks) {
    enum { COUNT = 30000 };
    FILE *file = fopen("in.json", "w");
    char text[128];
    for (int i = 1; i <= COUNT; i++)
        fprintf(file, "%s\n  %s", i == 1 ? "[" : ",", record_text(text, sizeof text, i));
    fputs("\n]\n", file);
    fclose(file);
    read_one("in.json");
    rig_check_once_each(&rig, COUNT);
    ck_assert_uint_eq(rig.feed->note_count, 0);
    ck_assert_uint_le(rig.receiver.reader.window.capacity, 1 << 20);
    rig_free(&rig);
}
END_TEST

START_TEST(bad_items_of_an_array) {
    static const char *const include[] = {"in.json"};
    FILE *file = fopen("in.json", "w");
    fprintf(file, "[%s, {bad}, 17, , {\"long\": \"%02000d\"}, %s]", R1, 0, R2);
    fclose(file);
    rig_init(&rig, include, 1);
    rig.config.max_line_size.bytes = 1024;
    rig_read_all(&rig);
    static const enum decode_category expected[] = {
        DECODE_OK, DECODE_BAD_JSON, DECODE_NOT_OBJECT, DECODE_BAD_JSON, DECODE_TOO_LONG, DECODE_OK};
    ck_assert_uint_eq(rig.feed->count, 6);
    for (uint32_t i = 0; i < 6; i++) {
        ck_assert_int_eq(rig.feed->records[i].category, expected[i]);
        ck_assert_uint_eq(rig.feed->records[i].position, i + 1);
    }
    rig_free(&rig);
}
END_TEST

START_TEST(documents_that_break_off) {
    read_text("[" R1 ",\n" R2 ", {\"timest");
    ck_assert_uint_eq(fake_feed_accepted(rig.feed, NULL), 2);
    ck_assert(figures()->torn);
    ck_assert(fake_feed_noted(rig.feed, "ends inside a record", "after 3 records"));
    rig_free(&rig);
    read_text("[" R1 "] and more");
    ck_assert_uint_eq(fake_feed_accepted(rig.feed, NULL), 1);
    ck_assert(!figures()->torn);
    ck_assert(fake_feed_noted(rig.feed, "something follows", "byte 41"));
    rig_free(&rig);
}
END_TEST

START_TEST(a_summary_of_another_session) {
    static const struct {
        const char *text;
        uint32_t notes;
    } cases[] = {
        {"{\"session_summary\":{\"session_id\":\"a\"},\"telemetry_events\":[{\"timestamp\":1.5,"
         "\"memory_allocated\":1,\"session_id\":\"b\"}]}",
         1},
        {"{\"telemetry_events\":[{\"timestamp\":1.5,\"memory_allocated\":1,\"session_id\":\"a\"},"
         "{\"timestamp\":1.5,\"memory_allocated\":1,\"session_id\":\"b\"}],\"session_summary\":"
         "{\"session_id\":\"a\"}}",
         1},
        {"{\"telemetry_events\":[{\"timestamp\":1.5,\"memory_allocated\":1,\"session_id\":\"a\"}],"
         "\"session_summary\":{\"x\":1,\"session_id\":\"a\"}}",
         0},
    };
    for (size_t i = 0; i < 3; i++) {
        read_text(cases[i].text);
        ck_assert_uint_eq(rig.feed->note_count, cases[i].notes);
        ck_assert(cases[i].notes == 0 || fake_feed_noted(rig.feed, "names the session a", ""));
        ck_assert_uint_eq(fake_feed_refused(rig.feed, DECODE_OK), rig.feed->count);
        rig_free(&rig);
    }
}
END_TEST

// -- gzip ---------------------------------------------------------------------------------------

START_TEST(gzip_of_several_members_under_any_name) {
    append_gzip("in.jsonl", R1 "\n" R2);
    append_gzip("in.jsonl", "\n" R3 "\n");
    static const char padding[16] = {0};
    write_bytes("in.jsonl", "a", padding, sizeof padding);
    read_one("in.jsonl");
    ck_assert_uint_eq(fake_feed_accepted(rig.feed, NULL), 3);
    ck_assert_uint_eq(rig.feed->records[2].position, 3);
    ck_assert_uint_eq(rig.feed->note_count, 0);
    struct stat about;
    stat("in.jsonl", &about);
    ck_assert_uint_eq(rig.feed->done_bytes, (uint64_t)about.st_size);
    ck_assert_uint_eq(figures()->bytes, 3 * strlen(R1 "\n"));
    rig_free(&rig);
}
END_TEST

// Cut anywhere: whole lines are read, the break is said, nothing is refused.
START_TEST(gzip_that_breaks_off_anywhere) {
    append_gzip("whole.gz", R1 "\n" R2 "\n");
    append_gzip("whole.gz", R3 "\n");
    struct stat about;
    stat("whole.gz", &about);
    for (off_t size = 2; size < about.st_size; size++) {
        fixture_run("head -c %ld whole.gz > in.gz", (long)size);
        read_one("in.gz");
        ck_assert_uint_eq(fake_feed_accepted(rig.feed, NULL), rig.feed->count);
        uint32_t notes = rig.feed->note_count;
        bool between_members = notes == 0 && rig.feed->count == 2;
        ck_assert_msg(between_members || fake_feed_noted(rig.feed, "in.gz", "breaks off") ||
                          rig.feed->count == 0,
                      "%ld: %u records, %u notes", (long)size, rig.feed->count, notes);
        rig_free(&rig);
    }
}
END_TEST

START_TEST(damaged_gzip) {
    FILE *file = fopen("text", "w");
    for (int i = 0; i < 20000; i++)
        fprintf(file, "{\"timestamp\":%d.5,\"memory_allocated\":%d}\n", i, rand());
    fclose(file);
    fixture_run(
        "gzip -c text > in.gz && printf 'XXXXXXXXXXXXXXXX' | "
        "dd of=in.gz bs=1 seek=150000 conv=notrunc 2>/dev/null");
    read_one("in.gz");
    ck_assert_uint_gt(fake_feed_accepted(rig.feed, NULL), 1000);
    ck_assert(fake_feed_noted(rig.feed, "in.gz", "compressed data is damaged"));
    rig_free(&rig);
    fixture_run("(gzip -c text; echo junk) > in.gz");
    read_one("in.gz");
    ck_assert_uint_eq(fake_feed_accepted(rig.feed, NULL), 20000);
    ck_assert(fake_feed_noted(rig.feed, "in.gz", "not gzip follows"));
    rig_free(&rig);
}
END_TEST

START_TEST(gzip_that_grows_large_stays_small_in_memory) {
    fixture_run("head -c 60000000 /dev/zero | gzip -1 > zeros.gz");
    read_one("zeros.gz");
    ck_assert_uint_eq(rig.feed->count, 0);
    ck_assert(fake_feed_noted(rig.feed, "zeros.gz", "not read"));
    rig_free(&rig);
    static const char *const include[] = {"bomb.gz"};
    fixture_run(
        "(echo '%s'; head -c 60000000 /dev/zero | tr '\\0' x; echo; echo '%s') | gzip -1 > bomb.gz",
        R1, R2);
    rig_init(&rig, include, 1);
    memory_reset_peak();
    rig_read_all(&rig);
    ck_assert_uint_eq(fake_feed_accepted(rig.feed, NULL), 2);
    ck_assert_uint_eq(fake_feed_refused(rig.feed, DECODE_TOO_LONG), 1);
    ck_assert_uint_lt(memory_figures().peak_bytes - rig.live_before, 4 << 20);
    rig_free(&rig);
    fixture_run("gzip -c bomb.gz > nested.gz");
    read_one("nested.gz");
    ck_assert(fake_feed_noted(rig.feed, "nested.gz", "gzip inside gzip"));
    rig_free(&rig);
}
END_TEST

// -- formats, notes, quarantine -----------------------------------------------------------------

START_TEST(what_is_not_read_is_named_and_not_refused) {
    static const struct {
        const char *text;
        const char *note;
    } cases[] = {
        {"{\"schema\":\"culprit.verdict.v1\"}\n", "verdicts of culprit itself"},
        {"{\"job_id\": null}\n{\"x\": 1}\n", "unrecognised format"},
        {"{\n\"fault\": \"leak\"\n}\n", "unrecognised format"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        read_text(cases[i].text);
        ck_assert_uint_eq(rig.feed->count, 0);
        ck_assert_uint_eq(figures()->refused, 0);
        ck_assert_ptr_null(figures()->format);
        ck_assert_msg(fake_feed_noted(rig.feed, "in.jsonl: not read", cases[i].note), "%s",
                      rig.feed->notes[0]);
        rig_free(&rig);
    }
}
END_TEST

START_TEST(a_forced_format) {
    static const char *const include[] = {"in.jsonl"};
    write_text("in.jsonl", "w", "{\"x\": 1}\n" R1 "\n");
    rig_init(&rig, include, 1);
    rig.config.records.format = 1;
    rig_read_all(&rig);
    ck_assert_uint_eq(fake_feed_accepted(rig.feed, NULL), 1);
    ck_assert_uint_eq(figures()->refused, 1);
    rig_free(&rig);
}
END_TEST

START_TEST(lines_in_front_are_told_by_themselves) {
    read_text("starting up\n{\"cut\": \n" R1 "\n");
    ck_assert_uint_eq(fake_feed_refused(rig.feed, DECODE_BAD_JSON), 1);
    ck_assert_uint_eq(figures()->other, 1);
    ck_assert_uint_eq(fake_feed_accepted(rig.feed, NULL), 1);
    rig_free(&rig);
}
END_TEST

START_TEST(unreadable_files_are_noted) {
    static const char *const include[] = {"a.jsonl", "b.jsonl"};
    append_records("a.jsonl", 1, 1);
    append_records("b.jsonl", 2, 2);
    rig_init(&rig, include, 2);
    rig_start(&rig);
    ck_assert_int_eq(receiver_file.receiver.list(&rig.receiver, &rig.sources, &rig.error),
                     STATUS_OK);
    ck_assert_int_eq(unlink("a.jsonl"), 0);
    for (uint32_t i = 0; i < 2; i++)
        ck_assert_int_eq(
            receiver_file.receiver.read(&rig.receiver, rig.feed, rig.sources.paths[i], &rig.error),
            STATUS_OK);
    ck_assert(fake_feed_noted(rig.feed, "a.jsonl: not read", "No such file"));
    ck_assert_uint_eq(fake_feed_accepted(rig.feed, "b.jsonl"), 1);
    rig_free(&rig);
}
END_TEST

enum { DUMP_MAX = 1 << 20 };

static void read_dump(const char *name) {
    static const char *include[1];
    include[0] = name;
    rig_init(&rig, include, 1);
    rig.config.max_document_size.bytes = DUMP_MAX;
    rig_read_all(&rig);
}

static void assert_unread(int32_t rank, const char *why) {
    ck_assert_uint_eq(rig.feed->refusals_told, 1);
    ck_assert_int_eq(rig.feed->unread.rank, rank);
    ck_assert(rig.feed->unread.whole && rig.feed->unread.is_file);
    ck_assert_uint_gt(rig.feed->unread.observed_ns, 0);
    ck_assert_msg(strstr(rig.feed->why, why) != NULL, "%s", rig.feed->why);
}

// What bears the name of a dump is one, whatever is in it.
START_TEST(what_is_called_a_dump_is_refused_as_one) {
    static const struct {
        const char *name, *text;
        enum decode_category category;
    } cases[] = {
        {"comm_lib_trace_rank_3", "", DECODE_TORN},
        {"comm_lib_trace_rank_3", "\n \n", DECODE_TORN},
        {"nccl_trace_rank_12.json", "Killed\n", DECODE_NOT_OBJECT},
        {"nccl_trace_rank_12", "\x01\x02\x03", DECODE_NOT_OBJECT},
        {"comm_lib_trace_rank_3.pickle", "\x80\x02}(", DECODE_TORN},
        {"comm_lib_trace_rank_3", "{\"version\": \"2.10\", \"entr", DECODE_BAD_JSON},
        {"comm_lib_trace_rank_3", "{\"a\": 1}\n{\"b\": 2}\n", DECODE_BAD_JSON},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_text(cases[i].name, "w", cases[i].text);
        read_dump(cases[i].name);
        ck_assert_uint_eq(rig.feed->count, 1);
        ck_assert_msg(rig.feed->records[0].category == cases[i].category, "%zu: %s", i,
                      decode_category_name(rig.feed->records[0].category));
        ck_assert(!figures()->unread);
        rig_free(&rig);
    }
    // Other names may be of anything.
    static const char *const OTHERS[] = {"trace_rank_3.json", "comm_lib_trace_rank_3.log",
                                         "comm_lib_trace_rank_x", "nccl_trace_rank_"};
    for (size_t i = 0; i < sizeof OTHERS / sizeof OTHERS[0]; i++) {
        write_text(OTHERS[i], "w", "Killed\n");
        read_one(OTHERS[i]);
        ck_assert_uint_eq(figures()->refused, 0);
        rig_free(&rig);
    }
}
END_TEST

START_TEST(dumps_that_do_not_come_to_a_decoder_are_told_of) {
    static const char *const include[] = {"nccl_trace_rank_7"};
    // Gone, or not to be opened.
    write_text(include[0], "w", "{}");
    rig_init(&rig, include, 1);
    rig_start(&rig);
    ck_assert_int_eq(receiver_file.receiver.list(&rig.receiver, &rig.sources, &rig.error),
                     STATUS_OK);
    ck_assert_int_eq(unlink(include[0]), 0);
    ck_assert_int_eq(
        receiver_file.receiver.read(&rig.receiver, rig.feed, rig.sources.paths[0], &rig.error),
        STATUS_OK);
    assert_unread(7, "No such file");
    ck_assert(figures()->unread);
    ck_assert_uint_eq(rig.feed->count, 0);
    rig_free(&rig);
    // Longer than a document may be.
    write_text(include[0], "w", "{\"version\": \"2.10\", \"entries\": []}");
    ck_assert_int_eq(truncate(include[0], DUMP_MAX + 1), 0);
    read_dump(include[0]);
    ck_assert_uint_eq(fake_feed_refused(rig.feed, DECODE_TOO_LONG), 1);
    assert_unread(7, "longer than");
    rig_free(&rig);
    // In a way of packing that is not read.
    append_gzip("inner", "{}");
    fixture_run("gzip -c inner > nccl_trace_rank_7");
    read_dump(include[0]);
    assert_unread(7, "no format that is known");
    rig_free(&rig);
}
END_TEST

START_TEST(quarantine_keeps_what_was_refused) {
    static const char *const include[] = {"in.jsonl", "q.jsonl"};
    write_long_line(3000);
    write_text("in.jsonl", "a", "{\"bad \"quoted\" \xff line\n{\"memory_mb\":true}\n");
    write_text("q.jsonl", "w", "{\"cut\":");
    for (int round = 1; round <= 2; round++) {
        rig_init(&rig, include, 2);
        rig.config.records.quarantine = "q.jsonl";
        rig.config.max_line_size.bytes = 1024;
        rig_read_all(&rig);
        ck_assert_uint_eq(rig.sources.count, 1);
        ck_assert(fake_feed_noted(rig.feed, "q.jsonl", "own quarantine"));
        rig_free(&rig);
        char text[8192];
        FILE *file = fopen("q.jsonl", "r");
        ck_assert_ptr_nonnull(fgets(text, sizeof text, file));
        ck_assert_str_eq(text, "{\"cut\":\n");
        for (int i = 0; i < round; i++) {
            ck_assert_ptr_nonnull(fgets(text, sizeof text, file));
            ck_assert(strncmp(text,
                              "{\"path\":\"in.jsonl\",\"position\":2,\"category\":\"too_long\","
                              "\"field\":\"\",\"detail\":\"it is longer than max_line_size (1024 "
                              "bytes)\",\"record\":\"{\\\"timestamp\\\":2.5",
                              140) == 0);
            ck_assert_uint_lt(strlen(text), 1400);
            ck_assert_ptr_nonnull(fgets(text, sizeof text, file));
            ck_assert_ptr_nonnull(
                strstr(text, "\"record\":\"{\\\"bad \\\"quoted\\\" \\ufffd line\"}\n"));
            ck_assert_ptr_nonnull(strstr(text, "\"position\":4,\"category\":\"bad_json\""));
            ck_assert_ptr_nonnull(fgets(text, sizeof text, file));
            ck_assert_ptr_nonnull(strstr(text, "\"position\":5,"));
        }
        ck_assert_ptr_null(fgets(text, sizeof text, file));
        fclose(file);
    }
    // Another receiver knows the file by what is in it.
    fixture_run("sed -i 1d q.jsonl");
    read_one("q.jsonl");
    ck_assert(fake_feed_noted(rig.feed, "q.jsonl: not read", "quarantine file of culprit"));
    rig_free(&rig);
}
END_TEST

// A record of /dev/kmsg waits for what may continue it, and is refused after that.
START_TEST(quarantine_keeps_what_was_held) {
    static const char *const include[] = {"dmesg"};
    write_text("dmesg", "w",
               "6,1,1000000,-;hello\n"
               "3,2,2000000,-;Out of memory: Killed process 12 (py\n"
               "6,3,3000000,-;bye\n"
               "3,4,4000000,-;Out of memory: Killed process 13 (py\n");
    rig_init(&rig, include, 1);
    rig.config.records.quarantine = "q.jsonl";
    rig_read_all(&rig);
    ck_assert_uint_eq(fake_feed_refused(rig.feed, DECODE_TRUNCATED), 2);
    rig_free(&rig);
    char kept[2048] = "";
    FILE *file = fopen("q.jsonl", "r");
    ck_assert_uint_gt(fread(kept, 1, sizeof kept - 1, file), 0);
    fclose(file);
    ck_assert_str_eq(
        kept,
        "{\"path\":\"dmesg\",\"position\":2,\"category\":\"truncated\",\"field\":\"\",\"detail\":"
        "\"the line ends before it says which process was killed\",\"record\":\"3,2,2000000,-;Out "
        "of "
        "memory: Killed process 12 (py\"}\n"
        "{\"path\":\"dmesg\",\"position\":4,\"category\":\"truncated\",\"field\":\"\",\"detail\":"
        "\"the line ends before it says which process was killed\",\"record\":\"3,4,4000000,-;Out "
        "of "
        "memory: Killed process 13 (py\"}\n");
}
END_TEST

START_TEST(a_quarantine_that_cannot_be_written) {
    static const char *const include[] = {"in.jsonl"};
    write_text("in.jsonl", "w", R1 "\n{\"bad\n{\"bad\n");
    rig_init(&rig, include, 1);
    rig.config.records.quarantine = "/dev/full";
    rig_read_all(&rig);
    ck_assert_uint_eq(fake_feed_refused(rig.feed, DECODE_BAD_JSON), 2);
    ck_assert_uint_eq(rig.feed->note_count, 1);
    ck_assert(fake_feed_noted(rig.feed, "/dev/full", "No space left"));
    rig_free(&rig);
    rig_init(&rig, include, 1);
    rig.config.records.quarantine = "missing/q.jsonl";
    ck_assert_int_ne(
        component_start(&receiver_file, &rig.receiver, &rig.config, &rig.context, &rig.error),
        STATUS_OK);
    ck_assert_ptr_nonnull(strstr(rig.error.message, "missing/q.jsonl"));
    rig_free(&rig);
}
END_TEST

START_TEST(a_full_quarantine_grows_no_further) {
    static const char *const include[] = {"in.jsonl"};
    FILE *file = fopen("in.jsonl", "w");
    fputs(R1 "\n", file);
    for (int i = 0; i < 500; i++)
        fputs("{\"bad bad bad bad bad bad bad bad\n", file);
    fclose(file);
    rig_init(&rig, include, 1);
    rig.config.records.quarantine = "q.jsonl";
    rig.config.records.quarantine_max_size.bytes = 8192;
    rig_read_all(&rig);
    ck_assert_uint_eq(fake_feed_refused(rig.feed, DECODE_BAD_JSON), 500);
    ck_assert_uint_eq(rig.feed->note_count, 1);
    ck_assert(fake_feed_noted(rig.feed, "q.jsonl", "File too large"));
    rig_free(&rig);
    struct stat about;
    ck_assert_int_eq(stat("q.jsonl", &about), 0);
    ck_assert(about.st_size > 4096 && about.st_size < 8192 + 512);
}
END_TEST

START_TEST(the_job_is_stamped) {
    static const char *const include[] = {"in.jsonl"};
    write_text("in.jsonl", "w", R1 "\n");
    rig_init(&rig, include, 1);
    rig.config.records.job_id = "job-7";
    rig_read_all(&rig);
    ck_assert(slice_equal(intern_slice(rig.feed->stamped), SLICE("job-7")));
    rig_free(&rig);
}
END_TEST

START_TEST(rules_between_options) {
    static const char *const include[] = {"a[b", "x{a,b", "fine*"};
    static const char *const exclude[] = {"end\\"};
    struct arena arena;
    arena_init(&arena, 4096);
    struct problem_list problems = {.arena = &arena, .prefix = ""};
    struct file_config config = {
        .include = {include, 3}, .exclude = {exclude, 1}, .records = {.job_id = ""}};
    receiver_file.validate(&config, &problems);
    ck_assert_uint_eq(problems.count, 4);
    ck_assert_ptr_nonnull(strstr(problems.items[0].text, "a [ has no ]"));
    ck_assert_ptr_nonnull(strstr(problems.items[1].text, "a { has no }"));
    ck_assert_str_eq(problems.items[2].key, "exclude");
    ck_assert_str_eq(problems.items[3].key, "job_id");
    config = (struct file_config){.include = {NULL, 0}};
    problems = (struct problem_list){.arena = &arena, .prefix = ""};
    receiver_file.validate(&config, &problems);
    ck_assert_uint_eq(problems.count, 1);
    arena_release(&arena);
}
END_TEST

START_TEST(standard_input_cannot_be_followed) {
    static const char *const include[] = {"-"};
    rig_init(&rig, include, 1);
    rig.context.once = false;
    ck_assert_int_eq(
        component_start(&receiver_file, &rig.receiver, &rig.config, &rig.context, &rig.error),
        STATUS_CONFIG);
    rig_free(&rig);
}
END_TEST

// -- real recordings ----------------------------------------------------------------------------

static uint32_t lines_of(const char *path) {
    char command[512], text[64];
    snprintf(command, sizeof command, "cat " TESTS_DIR "/golden/real/%s/rank*/*.jsonl | wc -l",
             path);
    FILE *pipe_file = popen(command, "r");
    ck_assert_ptr_nonnull(fgets(text, sizeof text, pipe_file));
    pclose(pipe_file);
    return (uint32_t)atoi(text);
}

START_TEST(real_sink_directories) {
    static const char *const variants[] = {"healthy", "job-from-env", "leak-rank2", "sigkill-rank1",
                                           "torn-line-rank3"};
    for (size_t i = 0; i < 5; i++) {
        char path[512];
        snprintf(path, sizeof path, TESTS_DIR "/golden/real/%s", variants[i]);
        read_one(path);
        ck_assert_int_eq(rig.list_status, STATUS_OK);
        ck_assert_uint_eq(fake_feed_accepted(rig.feed, NULL), lines_of(variants[i]));
        ck_assert_uint_eq(fake_feed_accepted(rig.feed, NULL), rig.feed->count);
        ck_assert(fake_feed_noted(rig.feed, "/expected.json: not read", "unrecognised format"));
        ck_assert(fake_feed_noted(rig.feed, "/expected_timeline.json: not read", ""));
        ck_assert(fake_feed_noted(rig.feed, "/injected.json: not read", ""));
        ck_assert(fake_feed_noted(rig.feed, "/rank", "of this and 3 more sinks"));
        bool torn = strcmp(variants[i], "torn-line-rank3") == 0;
        ck_assert(fake_feed_noted(rig.feed, "/rank3/segment-000001.jsonl", "breaks off") == torn);
        ck_assert_uint_eq(rig.feed->note_count, 4 + torn);
        ck_assert_int_eq(fake_feed_find(rig.feed, "/rank3/segment-000001.jsonl")->figures.torn,
                         torn);
        rig_free(&rig);
    }
}
END_TEST

// -- the sum ------------------------------------------------------------------------------------

int main(void) {
    Suite *suite = suite_create("file");
    TCase *lines = tcase_create("lines");
    tcase_add_checked_fixture(lines, fixture_setup, fixture_teardown);
    tcase_add_test(lines, lines_and_positions);
    tcase_add_test(lines, other_line_ends_are_no_line_ends);
    tcase_add_test(lines, last_line_without_newline);
    tcase_add_test(lines, last_line_of_a_log);
    tcase_add_test(lines, kernel_log_without_a_zone);
    tcase_add_test(lines, last_line_of_blanks);
    tcase_add_test(lines, torn_last_line_at_every_byte);
    tcase_add_test(lines, only_a_torn_line);
    tcase_add_test(lines, zero_bytes_are_passed_and_the_rest_is_read);
    tcase_add_test(lines, a_line_of_three_mebibytes);
    tcase_add_test(lines, a_line_of_three_mebibytes_that_may_be);
    tcase_add_test(lines, the_bound_on_lines_is_exact);
    tcase_add_test(lines, a_last_line_too_long_without_end);
    tcase_add_test(lines, many_blocks_in_order_without_allocating);
    tcase_add_test(lines, a_stop_ends_reading_early);
    tcase_add_test(lines, empty_files_are_fine);
    tcase_add_test(lines, standard_input);
    tcase_add_test(lines, a_named_pipe_is_read_once);
    tcase_add_test(lines, a_stop_ends_waiting);
    suite_add_tcase(suite, lines);
    TCase *documents_case = tcase_create("documents");
    tcase_add_checked_fixture(documents_case, fixture_setup, fixture_teardown);
    tcase_add_test(documents_case, documents);
    tcase_add_test(documents_case, one_bare_event);
    tcase_add_test(documents_case, an_empty_array_is_fine);
    tcase_add_test(documents_case, an_array_over_many_blocks);
    tcase_add_test(documents_case, bad_items_of_an_array);
    tcase_add_test(documents_case, documents_that_break_off);
    tcase_add_test(documents_case, a_summary_of_another_session);
    suite_add_tcase(suite, documents_case);
    TCase *gzip = tcase_create("gzip");
    tcase_add_checked_fixture(gzip, fixture_setup, fixture_teardown);
    tcase_add_test(gzip, gzip_of_several_members_under_any_name);
    tcase_add_test(gzip, gzip_that_breaks_off_anywhere);
    tcase_add_test(gzip, damaged_gzip);
    tcase_add_test(gzip, gzip_that_grows_large_stays_small_in_memory);
    suite_add_tcase(suite, gzip);
    TCase *rest = tcase_create("formats");
    tcase_add_checked_fixture(rest, fixture_setup, fixture_teardown);
    tcase_add_test(rest, what_is_not_read_is_named_and_not_refused);
    tcase_add_test(rest, a_forced_format);
    tcase_add_test(rest, lines_in_front_are_told_by_themselves);
    tcase_add_test(rest, unreadable_files_are_noted);
    tcase_add_test(rest, what_is_called_a_dump_is_refused_as_one);
    tcase_add_test(rest, dumps_that_do_not_come_to_a_decoder_are_told_of);
    tcase_add_test(rest, quarantine_keeps_what_was_refused);
    tcase_add_test(rest, quarantine_keeps_what_was_held);
    tcase_add_test(rest, a_quarantine_that_cannot_be_written);
    tcase_add_test(rest, a_full_quarantine_grows_no_further);
    tcase_add_test(rest, the_job_is_stamped);
    tcase_add_test(rest, rules_between_options);
    tcase_add_test(rest, standard_input_cannot_be_followed);
    tcase_add_test(rest, real_sink_directories);
    suite_add_tcase(suite, rest);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
