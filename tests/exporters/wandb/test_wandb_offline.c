// SPDX-License-Identifier: Apache-2.0
// The run directories of mode offline: a second reader goes through the logs, and a crash, a full
// disk or a missing file at any point leaves the same bytes as none.
#include "base/memory.h"
#include "exporters/wandb/offline/offline.h"
#include "exporters/wandb/offline/parts.h"
#include "tests/exporters/scratch.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>

#define NS_PER_S UINT64_C(1000000000)
#define START_S  UINT64_C(1767225600) // 2026-01-01 00:00:00
#define RUN_NAME "offline-run-20260101_000000-run-1"

static struct wandb_config config;
static struct wandb_offline *offline;
static struct buffer records; // what is fed
static struct buffer bytes;   // what was read
static uint64_t sequence, row;

// -- a reader of logs -----------------------------------------------------------------------------

enum { RECORDS_MAX = 4096, FILE_BYTES_MAX = 4 << 20 };

static struct slice payloads[RECORDS_MAX];
static size_t payload_count;
static unsigned char file_bytes[FILE_BYTES_MAX];
static size_t file_size;
static char joined[FILE_BYTES_MAX]; // the payloads

static uint32_t crc_bit_by_bit(const unsigned char *data, size_t size) {
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

// Fills `payloads` from file_bytes; everything in it must be as it should.
static void log_parse(void) {
    size_t at = 7, end = 0;
    bool inside = false;
    payload_count = 0;
    ck_assert_uint_ge(file_size, 7);
    ck_assert_mem_eq(file_bytes, ":W&B\xe1\xbe\0", 7);
    while (at < file_size) {
        size_t left = 32768 - at % 32768;
        if (left < 7) {
            for (size_t i = 0; i < left; i++)
                ck_assert_uint_eq(file_bytes[at + i], 0);
            at += left;
            continue;
        }
        ck_assert_uint_le(at + 7, file_size);
        const unsigned char *head = file_bytes + at;
        size_t size = (size_t)(head[4] | head[5] << 8);
        uint32_t crc = (uint32_t)head[0] | (uint32_t)head[1] << 8 | (uint32_t)head[2] << 16 |
                       (uint32_t)head[3] << 24;
        ck_assert_uint_le(size, left - 7);
        ck_assert_uint_le(at + 7 + size, file_size);
        ck_assert_uint_eq(crc, crc_bit_by_bit(head + 6, size + 1));
        bool first = head[6] == 1 || head[6] == 2, last = head[6] == 1 || head[6] == 4;
        ck_assert(head[6] >= 1 && head[6] <= 4);
        ck_assert(first != inside);
        if (first) {
            ck_assert_uint_lt(payload_count, RECORDS_MAX);
            payloads[payload_count] = (struct slice){joined + end, 0};
        }
        if (!last) // a payload goes on only where the block ends
            ck_assert_uint_eq(size, left - 7);
        memcpy(joined + end, head + 7, size);
        end += size;
        payloads[payload_count].size += size;
        payload_count += last;
        inside = !last;
        at += 7 + size;
    }
    ck_assert(!inside);
}

static void log_read(const char *path) {
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s", path);
    file_size = fread(file_bytes, 1, sizeof file_bytes, file);
    fclose(file);
    log_parse();
}

static uint64_t varint(struct slice *from) {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        ck_assert_uint_gt(from->size, 0);
        unsigned char byte = (unsigned char)from->data[0];
        from->data++;
        from->size--;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
}

// The next field of a message: its number, and its bytes or its value.
static uint32_t field_next(struct slice *message, struct slice *content, uint64_t *value) {
    uint64_t tag = varint(message);
    *value = varint(message);
    *content = (struct slice){0};
    if ((tag & 7) == 2) {
        ck_assert_uint_le(*value, message->size);
        *content = (struct slice){message->data, *value};
        message->data += *value;
        message->size -= *value;
    } else {
        ck_assert_uint_eq(tag & 7, 0);
    }
    return (uint32_t)(tag >> 3);
}

// The numbers of all records from 1 on, and their kinds in order: "21 17 2 3 ".
static const char *log_kinds(void) {
    static char text[1 << 16];
    size_t size = 0;
    text[0] = '\0';
    for (size_t i = 0; i < payload_count; i++) {
        struct slice message = payloads[i], content;
        uint64_t number;
        ck_assert_uint_eq(field_next(&message, &content, &number), 1);
        ck_assert_uint_eq(number, i + 1);
        uint32_t kind = field_next(&message, &content, &number);
        ck_assert_uint_eq(message.size, 0);
        size += (size_t)snprintf(text + size, sizeof text - size, "%u ", kind);
    }
    return text;
}

// Field `field` of the message in `from`, the `skip`-th of them.
static struct slice field_find(struct slice from, uint32_t field, unsigned skip) {
    struct slice content;
    uint64_t value;
    while (from.size > 0)
        if (field_next(&from, &content, &value) == field && skip-- == 0)
            return content;
    return (struct slice){0};
}

static bool payload_has(size_t index, const char *text) {
    return memmem(payloads[index].data, payloads[index].size, text, strlen(text)) != NULL;
}

// -- feeding --------------------------------------------------------------------------------------

static void say_record(struct wandb_record record) {
    static char id[2][WANDB_CLIENT_ID_SIZE];
    record.sequence = ++sequence;
    if (record.run.size == 0)
        record.run = SLICE("run-1");
    if (record.time_ns == 0)
        record.time_ns = START_S * NS_PER_S + sequence * (NS_PER_S / 4);
    if (record.kind == WANDB_ROW || record.kind == WANDB_TABLE || record.kind == WANDB_HTML)
        record.row = row++;
    if (record.kind == WANDB_TABLE || record.kind == WANDB_ARTIFACT) {
        memset(id[0], (int)('a' + sequence % 26), sizeof id[0]); // the same each time
        memset(id[1], (int)('0' + sequence % 10), sizeof id[1]);
        record.client_id = (struct slice){id[0], sizeof id[0]};
        record.sequence_client_id = (struct slice){id[1], sizeof id[1]};
    }
    wandb_record_write(&record, &records);
}

static void say_run(uint64_t time_s) {
    say_record((struct wandb_record){.kind = WANDB_RUN,
                                     .time_ns = time_s * NS_PER_S + 5,
                                     .display_name = SLICE("the name"),
                                     .group = SLICE("the group"),
                                     .job_type = SLICE("train"),
                                     .members = SLICE("\"chart\":{\"panel_type\":\"Vega2\"}")});
}

static void say_row(const char *members) {
    say_record((struct wandb_record){.kind = WANDB_ROW, .members = slice_of(members)});
}

static void say_table(void) {
    say_record((struct wandb_record){.kind = WANDB_TABLE,
                                     .key = SLICE("alerts"),
                                     .file = SLICE("{\"columns\":[\"a\"],\"data\":[[1]]}"),
                                     .artifact_file = SLICE("{\"_type\":\"table\"}"),
                                     .columns = 1,
                                     .rows = 1});
}

static void say_page(void) {
    say_record((struct wandb_record){.kind = WANDB_HTML,
                                     .key = SLICE("page"),
                                     .file = SLICE("<!doctype html><html><head></head></html>")});
}

static void say_summary(const char *members) {
    say_record((struct wandb_record){.kind = WANDB_SUMMARY, .members = slice_of(members)});
}

static void say_artifact(const char *path) {
    say_record((struct wandb_record){.kind = WANDB_ARTIFACT,
                                     .key = SLICE("an-artifact"),
                                     .type = SLICE("a-type"),
                                     .file = slice_of(path)});
}

static void say_finish(int32_t exit_code) {
    say_record((struct wandb_record){.kind = WANDB_FINISH, .exit_code = exit_code});
}

static void start(void) {
    struct error error = {0};
    enum status status = wandb_offline_open(&offline, &config, "exporter/wandb/test", &error);
    ck_assert_msg(status == STATUS_OK, "%s", error.message);
}

static void restart(struct slice delivered) {
    struct error error = {0};
    wandb_offline_close(offline);
    start();
    enum status status = wandb_offline_resume(offline, delivered, &error);
    ck_assert_msg(status == STATUS_OK, "%s", error.message);
}

static enum status send_bytes(struct slice all, struct send_outcome *outcome, struct error *error) {
    *error = (struct error){0};
    return wandb_offline_send(offline, all, false, outcome, error);
}

static void send_ok(void) {
    struct send_outcome outcome;
    struct error error;
    enum status status = send_bytes(buffer_slice(&records), &outcome, &error);
    ck_assert_msg(status == STATUS_OK, "%s", error.message);
    buffer_reset(&records);
}

static char runs_folder[96];

static void setup(void) {
    scratch_make();
    snprintf(runs_folder, sizeof runs_folder, "%s", scratch_path("runs"));
    config = (struct wandb_config){.entity = "ent",
                                   .project = "proj",
                                   .directory = runs_folder,
                                   .content = WANDB_LIVE,
                                   .max_runs = 4};
    buffer_init(&records, 1 << 24);
    buffer_init(&bytes, 1 << 24);
    sequence = row = 0;
    start();
}

static void teardown(void) {
    wandb_offline_close(offline);
    buffer_release(&records);
    buffer_release(&bytes);
    scratch_remove();
}

static const char *in_run(const char *directory, const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s/%s", runs_folder, directory, name);
    return path;
}

static void run_log_read(const char *directory) {
    log_read(in_run(directory, "run-run-1.wandb"));
}

static bool is_there(const char *directory, const char *name) {
    return access(in_run(directory, name), F_OK) == 0;
}

// -- the log --------------------------------------------------------------------------------------

// Records of sizes around the block's, so that every room of 0 to 7 bytes is left at some end.
START_TEST(blocks_of_any_tail) {
    static char payload[100000];
    struct buffer log;
    buffer_init(&log, FILE_BYTES_MAX);
    size_t sizes[8], count = 0, tail = (size_t)_i;
    for (size_t i = 0; i < sizeof payload; i++)
        payload[i] = (char)(i * 7 + i / 256);
    sizes[count++] = 32768 - 7 - 7 - tail; // leaves `tail` bytes in the first block
    sizes[count++] = 1;
    sizes[count++] = 0;
    sizes[count++] = 100000; // over four blocks
    sizes[count++] = 32768 - 7;
    sizes[count++] = 3;
    for (size_t i = 0; i < count; i++)
        offline_log_append(&log, log.size, (struct slice){payload, sizes[i]});
    memcpy(file_bytes, log.data, log.size);
    file_size = log.size;
    log_parse();
    ck_assert_uint_eq(payload_count, count);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(payloads[i].size, sizes[i]);
        if (sizes[i] > 0)
            ck_assert_mem_eq(payloads[i].data, payload, sizes[i]);
    }
    buffer_release(&log);
}
END_TEST

START_TEST(texts_are_unicode) {
    proto_text(&records, 5, SLICE("a\xff\xed\xa0\x80z\xc3\xbc"));
    struct slice message = buffer_slice(&records), content;
    uint64_t value;
    ck_assert_uint_eq(field_next(&message, &content, &value), 5);
    ck_assert(slice_equal(content, SLICE("a\xef\xbf\xbd\xef\xbf\xbdz\xc3\xbc")));
    ck_assert_uint_eq(message.size, 0);
}
END_TEST

START_TEST(a_long_message_has_a_long_length) {
    static char text[300000];
    memset(text, 'x', sizeof text);
    size_t outer = proto_open(&records, 3);
    proto_text(&records, 200, (struct slice){text, sizeof text});
    proto_int(&records, 2, -1);
    proto_close(&records, outer);
    struct slice message = buffer_slice(&records), inner, content;
    uint64_t value;
    ck_assert_uint_eq(field_next(&message, &inner, &value), 3);
    ck_assert_uint_eq(message.size, 0);
    ck_assert_uint_eq(field_next(&inner, &content, &value), 200);
    ck_assert_uint_eq(content.size, sizeof text);
    ck_assert_uint_eq(field_next(&inner, &content, &value), 2);
    ck_assert_uint_eq(value, UINT64_MAX);
    ck_assert_uint_eq(inner.size, 0);
}
END_TEST

// -- a run ----------------------------------------------------------------------------------------

START_TEST(a_run_has_a_directory) {
    scratch_write("track.json", "what the tracker wrote");
    say_run(START_S);
    say_row("\"loss\":0.5,\"n\":1");
    say_row("\"loss\":NaN");
    say_table();
    say_page();
    say_summary("\"total\":3");
    say_artifact(scratch_path("track.json"));
    say_finish(3);
    send_ok();
    run_log_read(RUN_NAME);
    ck_assert_str_eq(log_kinds(), "21 17 5 2 2 8 6 2 6 2 8 3 18 ");
    ck_assert(payload_has(1, "the name") && payload_has(1, "the group") && payload_has(1, "train"));
    ck_assert(payload_has(1, "run-1") && payload_has(1, "ent") && payload_has(1, "proj"));
    ck_assert(payload_has(2, "_wandb") && payload_has(2, "visualize") && payload_has(2, "chart"));
    ck_assert(payload_has(3, "loss") && payload_has(3, "0.5") && payload_has(3, "_timestamp"));
    ck_assert(payload_has(4, "NaN"));
    ck_assert(payload_has(5, "run_table") && payload_has(5, "run-run-1-alerts"));
    ck_assert(payload_has(6, "media/table/alerts_2_") && payload_has(7, "table-file"));
    ck_assert(payload_has(8, "media/html/page_3_") && payload_has(9, "html-file"));
    ck_assert(payload_has(10, "an-artifact") && payload_has(10, "a-type"));
    ck_assert(payload_has(11, "total") && payload_has(11, "alerts") && payload_has(11, "_step"));
    struct slice exit_record = field_find(payloads[12], 18, 0), content;
    uint64_t value;
    ck_assert_uint_eq(field_next(&exit_record, &content, &value), 1);
    ck_assert_uint_eq(value, 3);
    ck_assert_uint_eq(field_next(&exit_record, &content, &value), 2);
    ck_assert_uint_eq(value, 1); // eight quarters of a second, less a little
    // What the log names is there.
    struct slice path = field_find(field_find(field_find(payloads[8], 6, 0), 1, 0), 1, 0);
    char name[256];
    snprintf(name, sizeof name, "files/%.*s", (int)path.size, path.data);
    ck_assert(is_there(RUN_NAME, name));
    struct slice entry = field_find(field_find(field_find(payloads[10], 8, 0), 12, 0), 4, 0);
    struct slice local = field_find(entry, 6, 0);
    ck_assert(slice_equal(field_find(entry, 1, 0), SLICE("track.json")));
    snprintf(name, sizeof name, "%.*s", (int)local.size, local.data);
    ck_assert_int_eq(name[0], '/');
    FILE *file = fopen(name, "rb");
    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(fgets(name, sizeof name, file));
    ck_assert_str_eq(name, "what the tracker wrote");
    fclose(file);
}
END_TEST

// Keys are texts in the log, whatever escapes they had.
START_TEST(keys_lose_their_escapes) {
    say_run(START_S);
    say_row("\"a\\u00fc\\n\\\"\\ud83d\\ude00\\ud800\" : [1, \"x,\\\"}\", {\"b\":2}] ,\"c\":null");
    send_ok();
    run_log_read(RUN_NAME);
    struct slice history = field_find(payloads[3], 2, 0);
    struct slice first = field_find(history, 1, 0), second = field_find(history, 1, 1);
    ck_assert(
        slice_equal(field_find(first, 1, 0), SLICE("a\xc3\xbc\n\"\xf0\x9f\x98\x80\xef\xbf\xbd")));
    ck_assert(slice_equal(field_find(first, 16, 0), SLICE("[1, \"x,\\\"}\", {\"b\":2}]")));
    ck_assert(slice_equal(field_find(second, 1, 0), SLICE("c")));
    ck_assert(slice_equal(field_find(second, 16, 0), SLICE("null")));
}
END_TEST

START_TEST(an_explicit_null_leaves_the_summary) {
    say_run(START_S);
    say_row("\"a\":1,\"b\":null");
    say_summary("\"a\":null,\"c\":2");
    send_ok();
    run_log_read(RUN_NAME);
    struct slice summary = field_find(payloads[payload_count - 1], 3, 0);
    ck_assert(slice_equal(field_find(field_find(summary, 2, 0), 1, 0), SLICE("a")));
    ck_assert_uint_eq(field_find(summary, 2, 1).size, 0);
    ck_assert(slice_equal(field_find(field_find(summary, 1, 0), 1, 0), SLICE("b")));
}
END_TEST

START_TEST(steps_begin_at_zero) {
    row = 1000;
    say_run(START_S);
    say_row("\"a\":1");
    say_row("\"a\":2");
    send_ok();
    run_log_read(RUN_NAME);
    struct slice history = field_find(payloads[4], 2, 0);
    ck_assert(slice_equal(field_find(field_find(history, 1, 1), 1, 0), SLICE("_step")));
    ck_assert(slice_equal(field_find(field_find(history, 1, 1), 16, 0), SLICE("1")));
}
END_TEST

START_TEST(records_that_were_said_are_skipped) {
    say_run(START_S);
    say_row("\"a\":1");
    buffer_append(&bytes, buffer_slice(&records));
    send_ok();
    run_log_read(RUN_NAME);
    size_t size = file_size;
    buffer_append(&records, buffer_slice(&bytes));
    send_ok();
    run_log_read(RUN_NAME);
    ck_assert_uint_eq(file_size, size);
}
END_TEST

START_TEST(a_finished_run_begins_again_beside_itself) {
    say_run(START_S);
    say_row("\"a\":1");
    say_finish(0);
    say_run(START_S); // in the same second
    say_row("\"a\":2");
    send_ok();
    run_log_read(RUN_NAME);
    ck_assert_str_eq(log_kinds(), "21 17 5 2 3 18 ");
    ck_assert_uint_eq(field_find(field_find(payloads[1], 17, 0), 24, 0).size, 0);
    run_log_read("offline-run-20260101_000001-run-1");
    ck_assert_str_eq(log_kinds(), "21 17 5 2 3 ");
    ck_assert(payload_has(1, "\xc0\x01\x01")); // resume = true
    ck_assert(payload_has(3, "_step"));
    struct slice step = field_find(field_find(field_find(payloads[3], 2, 0), 1, 1), 16, 0);
    ck_assert(slice_equal(step, SLICE("0")));
}
END_TEST

START_TEST(what_stands_there_is_set_aside) {
    say_run(START_S);
    say_row("\"a\":1");
    send_ok();
    wandb_offline_close(offline);
    start(); // without a checkpoint
    sequence = 0;
    say_run(START_S);
    send_ok();
    run_log_read(RUN_NAME);
    ck_assert_str_eq(log_kinds(), "21 17 5 ");
    run_log_read("replaced-" RUN_NAME ".1");
    ck_assert_str_eq(log_kinds(), "21 17 5 2 3 ");
}
END_TEST

START_TEST(exports_of_one_second_stand_side_by_side) {
    config.content = WANDB_TRACKING;
    for (int i = 0; i < 3; i++) {
        say_run(START_S);
        say_finish(0);
        send_ok();
        wandb_offline_close(offline);
        start();
        sequence = 0;
    }
    run_log_read(RUN_NAME);
    run_log_read("offline-run-20260101_000001-run-1");
    run_log_read("offline-run-20260101_000002-run-1");
    ck_assert_str_eq(log_kinds(), "21 17 5 3 18 ");
}
END_TEST

START_TEST(a_log_that_was_taken_away_goes_on_elsewhere) {
    say_run(START_S);
    say_row("\"a\":1");
    send_ok();
    ck_assert_int_eq(unlink(in_run(RUN_NAME, "run-run-1.wandb")), 0);
    say_row("\"a\":2");
    send_ok();
    run_log_read("offline-run-20260101_000001-run-1");
    ck_assert_str_eq(log_kinds(), "21 17 2 3 ");
    ck_assert(payload_has(1, "run-1") && payload_has(1, "proj"));
    say_row("\"a\":3");
    send_ok();
    run_log_read("offline-run-20260101_000001-run-1");
    ck_assert_str_eq(log_kinds(), "21 17 2 3 2 3 ");
}
END_TEST

START_TEST(the_mark_of_a_sync_goes_when_there_is_more) {
    say_run(START_S);
    send_ok();
    FILE *file = fopen(in_run(RUN_NAME, "run-run-1.wandb.synced"), "wb");
    ck_assert_ptr_nonnull(file);
    fclose(file);
    say_row("\"a\":1");
    send_ok();
    ck_assert(!is_there(RUN_NAME, "run-run-1.wandb.synced"));
}
END_TEST

START_TEST(runs_are_bounded) {
    char id[32];
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 100; i++) {
            snprintf(id, sizeof id, "run-%d", i);
            if (round == 0)
                say_record((struct wandb_record){.kind = WANDB_RUN, .run = slice_of(id)});
            say_record((struct wandb_record){
                .kind = WANDB_ROW, .run = slice_of(id), .members = SLICE("\"a\":1")});
            send_ok();
        }
    wandb_offline_delivered(offline, &bytes);
    ck_assert_uint_lt(bytes.size, 16 * 200);
}
END_TEST

START_TEST(damaged_records_are_refused) {
    struct send_outcome outcome;
    struct error error;
    say_run(START_S);
    say_row("\"a\":1");
    records.size -= 3;
    ck_assert_int_eq(send_bytes(buffer_slice(&records), &outcome, &error), STATUS_BAD_DATA);
    ck_assert(outcome.sink_dead);
    ck_assert(!is_there(RUN_NAME, ""));
    buffer_reset(&records);
    say_record((struct wandb_record){.kind = WANDB_RUN, .run = SLICE("../../evil")});
    ck_assert_int_eq(send_bytes(buffer_slice(&records), &outcome, &error), STATUS_BAD_DATA);
}
END_TEST

START_TEST(an_artifact_that_is_not_there_is_left_out) {
    say_run(START_S);
    say_artifact(scratch_path("none"));
    say_row("\"a\":1");
    send_ok();
    run_log_read(RUN_NAME);
    ck_assert_str_eq(log_kinds(), "21 17 5 2 3 ");
}
END_TEST

START_TEST(a_directory_that_cannot_be) {
    struct wandb_offline *none = NULL;
    struct error error = {0};
    scratch_write("file", "");
    config.directory = scratch_path("file/runs");
    ck_assert_int_ne(wandb_offline_open(&none, &config, "site", &error), STATUS_OK);
    ck_assert_ptr_nonnull(strstr(error.message, "file/runs"));
    config.directory = scratch_path("file");
    ck_assert_int_eq(wandb_offline_open(&none, &config, "site", &error), STATUS_CANNOT_CREATE);
    ck_assert_ptr_nonnull(strstr(error.message, "not a directory"));
    if (geteuid() == 0) // whom no mode keeps out
        ck_assert_int_eq(setresuid(65534, 65534, 0), 0);
    ck_assert_int_eq(chdir("/"), 0);
    config.directory = "/proc/sys/culprit-runs";
    enum status status = wandb_offline_open(&none, &config, "site", &error);
    ck_assert_int_ne(status, STATUS_OK);
    config.directory = "/";
    status = wandb_offline_open(&none, &config, "site", &error);
    ck_assert_int_eq(status, STATUS_DENIED);
    ck_assert_ptr_nonnull(strstr(error.message, "Permission denied"));
    if (getuid() == 65534)
        ck_assert_int_eq(setresuid(0, 0, 0), 0);
    ck_assert_ptr_null(none);
}
END_TEST

START_TEST(the_key_is_not_written) {
    char command[512];
    config.api_key = (struct secret){"s3cr3t-key-that-nobody-may-see"};
    say_run(START_S);
    say_table();
    say_finish(0);
    send_ok();
    snprintf(command, sizeof command, "grep -rq s3cr3t '%s'", runs_folder);
    ck_assert_int_ne(system(command), 0);
    snprintf(command, sizeof command, "grep -rq proj '%s'", runs_folder); // it would find it
    ck_assert_int_eq(system(command), 0);
}
END_TEST

// -- crashes and full disks -----------------------------------------------------------------------

enum { SENDS = 12 };
static struct slice parts[SENDS]; // of `records`

// A whole run in some sends; what is in `records` stays.
static void make_parts(void) {
    static char long_row[40000];
    size_t begins[SENDS + 1];
    memset(long_row, 'y', sizeof long_row);
    memcpy(long_row, "\"long\":\"", 8);
    strcpy(long_row + sizeof long_row - 2, "\"");
    scratch_write("artifact", "bytes of an artifact");
    for (int i = 0; i < SENDS; i++) {
        begins[i] = records.size;
        if (i == 0)
            say_run(START_S);
        say_row("\"loss\":0.25,\"step_ms\":3");
        if (i % 4 == 1)
            say_table();
        if (i % 4 == 2)
            say_row(long_row);
        if (i % 4 == 3) {
            say_page();
            say_artifact(scratch_path("artifact"));
        }
        if (i == 7) { // and begins again
            say_finish(0);
            say_run(START_S + 60);
        }
    }
    say_finish(0);
    begins[SENDS] = records.size;
    for (int i = 0; i < SENDS; i++)
        parts[i] = (struct slice){records.data + begins[i], begins[i + 1] - begins[i]};
}

static void send_part(int i) {
    struct send_outcome outcome;
    struct error error;
    enum status status = send_bytes(parts[i], &outcome, &error);
    ck_assert_msg(status == STATUS_OK, "%s", error.message);
}

static const char *const directories[] = {RUN_NAME, "offline-run-20260101_000100-run-1"};

// The bytes of both logs, one behind the other.
static void logs_collect(struct buffer *into) {
    for (size_t i = 0; i < 2; i++) {
        run_log_read(directories[i]);
        log_kinds();
        buffer_append(into, (struct slice){(const char *)file_bytes, file_size});
    }
}

static void folder_forget(void) {
    char command[128];
    wandb_offline_close(offline);
    snprintf(command, sizeof command, "rm -r '%s'", runs_folder);
    ck_assert_int_eq(system(command), 0);
    start();
}

static void logs_are_undisturbed(void) {
    struct buffer now;
    buffer_init(&now, 1 << 24);
    logs_collect(&now);
    ck_assert_uint_eq(now.size, bytes.size);
    ck_assert_mem_eq(now.data, bytes.data, bytes.size);
    buffer_release(&now);
    char command[256];
    snprintf(command, sizeof command, "test $(ls '%s' | wc -l) = 2", runs_folder);
    ck_assert_int_eq(system(command), 0);
}

static void undisturbed(void) {
    make_parts();
    for (int i = 0; i < SENDS; i++)
        send_part(i);
    logs_collect(&bytes);
    folder_forget();
}

static void junk_append(const char *directory) {
    FILE *file = fopen(in_run(directory, "run-run-1.wandb"), "ab");
    if (file == NULL)
        return;
    fputs("half a chunk that was being written", file);
    fclose(file);
}

// At the checkpoint `_i` sends were done, some more when the process died.
START_TEST(a_crash_leaves_no_trace) {
    int checkpoint = _i % SENDS + 1, more = _i / SENDS;
    struct buffer cookie;
    if (checkpoint + more > SENDS)
        return;
    undisturbed();
    buffer_init(&cookie, 1 << 16);
    for (int i = 0; i < checkpoint; i++)
        send_part(i);
    wandb_offline_delivered(offline, &cookie);
    for (int i = 0; i < more; i++)
        send_part(checkpoint + i);
    junk_append(directories[checkpoint > 7]);
    // A directory that began after the checkpoint is not known to it.
    bool unknown = checkpoint <= 7 && checkpoint + more > 7;
    restart(buffer_slice(&cookie));
    run_log_read(directories[checkpoint > 7]); // what was half written is gone at once
    for (int i = checkpoint; i < SENDS; i++)
        send_part(i);
    if (unknown) {
        char command[256];
        ck_assert(is_there("replaced-offline-run-20260101_000100-run-1.1", ""));
        snprintf(command, sizeof command, "rm -r '%s'/replaced-*", runs_folder);
        ck_assert_int_eq(system(command), 0);
    }
    if (checkpoint < SENDS)
        logs_are_undisturbed();
    buffer_release(&cookie);
}
END_TEST

START_TEST(a_log_that_differs_is_not_cut) {
    make_parts();
    struct buffer cookie;
    buffer_init(&cookie, 1 << 16);
    send_part(0);
    send_part(1);
    wandb_offline_delivered(offline, &cookie);
    FILE *file = fopen(in_run(RUN_NAME, "run-run-1.wandb"), "r+b");
    ck_assert_ptr_nonnull(file);
    fseek(file, -10, SEEK_END);
    fputc('?', file);
    fseek(file, 0, SEEK_END);
    fputs("more", file);
    long size = ftell(file);
    fclose(file);
    restart(buffer_slice(&cookie));
    send_part(2);
    struct stat about;
    ck_assert_int_eq(stat(in_run(RUN_NAME, "run-run-1.wandb"), &about), 0);
    ck_assert_int_eq(about.st_size, size);
    run_log_read("offline-run-20260101_000001-run-1");
    buffer_release(&cookie);
}
END_TEST

START_TEST(a_damaged_checkpoint_is_said) {
    struct error error = {0};
    make_parts();
    send_part(0);
    wandb_offline_delivered(offline, &bytes);
    wandb_offline_close(offline);
    start();
    ck_assert_int_eq(
        wandb_offline_resume(offline, (struct slice){bytes.data, bytes.size - 1}, &error),
        STATUS_BAD_DATA);
    // Another mode's, and none.
    ck_assert_int_eq(wandb_offline_resume(offline, SLICE("something else of another mode"), &error),
                     STATUS_OK);
    ck_assert_int_eq(wandb_offline_resume(offline, (struct slice){0}, &error), STATUS_OK);
}
END_TEST

// Without an assertion: each writes a mark into a file of the test library, which is limited too.
static void file_size_limit(rlim_t size) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0)
        abort();
    limit.rlim_cur = size == RLIM_INFINITY ? limit.rlim_max : size;
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        abort();
}

// Files may not grow beyond some size for a while: writing stops in the middle, at many places.
START_TEST(a_full_disk_leaves_no_trace) {
    struct send_outcome outcome;
    struct error error;
    undisturbed();
    signal(SIGXFSZ, SIG_IGN);
    rlim_t limit = 10 + (rlim_t)_i * 1777;
    int refused = 0;
    for (int i = 0; i < SENDS; i++) {
        file_size_limit(limit);
        enum status status = send_bytes(parts[i], &outcome, &error);
        file_size_limit(RLIM_INFINITY);
        if (status == STATUS_OK)
            continue;
        refused++;
        ck_assert_int_eq(status, STATUS_IO);
        ck_assert(!outcome.sink_dead);
        ck_assert_ptr_nonnull(strstr(error.message, "File too large"));
        if (i > 0 && i < 7) { // whole up to here, for whoever syncs it now
            run_log_read(RUN_NAME);
            log_kinds();
        }
        send_part(i);
    }
    ck_assert_int_gt(refused, 0);
    logs_are_undisturbed();
}
END_TEST

int main(void) {
    Suite *suite = suite_create("wandb_offline");
    TCase *cases = tcase_create("wandb_offline");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_loop_test(cases, blocks_of_any_tail, 0, 16);
    tcase_add_test(cases, texts_are_unicode);
    tcase_add_test(cases, a_long_message_has_a_long_length);
    tcase_add_test(cases, a_run_has_a_directory);
    tcase_add_test(cases, keys_lose_their_escapes);
    tcase_add_test(cases, an_explicit_null_leaves_the_summary);
    tcase_add_test(cases, steps_begin_at_zero);
    tcase_add_test(cases, records_that_were_said_are_skipped);
    tcase_add_test(cases, a_finished_run_begins_again_beside_itself);
    tcase_add_test(cases, what_stands_there_is_set_aside);
    tcase_add_test(cases, exports_of_one_second_stand_side_by_side);
    tcase_add_test(cases, a_log_that_was_taken_away_goes_on_elsewhere);
    tcase_add_test(cases, the_mark_of_a_sync_goes_when_there_is_more);
    tcase_add_test(cases, runs_are_bounded);
    tcase_add_test(cases, damaged_records_are_refused);
    tcase_add_test(cases, an_artifact_that_is_not_there_is_left_out);
    tcase_add_test(cases, a_directory_that_cannot_be);
    tcase_add_test(cases, the_key_is_not_written);
    tcase_add_loop_test(cases, a_crash_leaves_no_trace, 0, SENDS * SENDS);
    tcase_add_test(cases, a_log_that_differs_is_not_cut);
    tcase_add_test(cases, a_damaged_checkpoint_is_said);
    tcase_add_loop_test(cases, a_full_disk_leaves_no_trace, 0, 48);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
