// SPDX-License-Identifier: Apache-2.0
// Writes records as protobuf messages.
//
// Field numbers are those of wandb_internal.proto of wandb 0.31.0; only what `wandb sync` needs is
// written. JSON values go into the messages as they are.
#include "exporters/wandb/offline/parts.h"

#include "base/log.h"
#include "exporters/wandb/metrics.h"
#include "exporters/wandb/record.h"
#include "exporters/wandb/table.h"

enum record_field {
    RECORD_NUMBER = 1,
    RECORD_HISTORY,
    RECORD_SUMMARY,
    RECORD_CONFIG = 5,
    RECORD_FILES,
    RECORD_ARTIFACT = 8,
    RECORD_ALERT = 10,
    RECORD_METRIC = 12,
    RECORD_RUN = 17,
    RECORD_EXIT,
    RECORD_HEADER = 21,
};
enum item_field { ITEM_KEY = 1, ITEM_NESTED_KEY, ITEM_VALUE = 16 };
enum { NS_PER_S = 1000000000 };

// -- frames ---------------------------------------------------------------------------------------

static size_t record_open(struct offline_run *run, enum record_field field) {
    assert(run->touched && !run->pending.failed);
    struct buffer *out = &run->offline->scratch;
    buffer_reset(out);
    proto_int(out, RECORD_NUMBER, (int64_t)run->now.records + 1);
    return proto_open(out, field);
}

static void record_close(struct offline_run *run, size_t opened) {
    struct buffer *record = &run->offline->scratch, *out = &run->pending;
    size_t before = out->size;
    assert(record->failed || opened <= record->size);
    proto_close(record, opened);
    if (!record->failed)
        offline_log_append(out, run->now.length, buffer_slice(record));
    if (record->failed || out->failed) {
        out->size = before;
        out->failed = false;
        log_write(LOG_WARN, (struct log_site){"C3602", run->offline->site},
                  "a record of the run %s has more than %d MiB and is left out", run->id,
                  OFFLINE_BUFFER_MAX >> 20);
        return;
    }
    run->now.length += out->size - before;
    run->now.records++;
}

static void put_text(struct buffer *out, uint32_t field, const char *text) {
    if (text != NULL)
        proto_text(out, field, slice_of(text));
}

static void put_item(struct buffer *out, uint32_t field, struct slice key, struct slice value) {
    size_t item = proto_open(out, field);
    proto_text(out, ITEM_KEY, key);
    proto_text(out, ITEM_VALUE, value);
    proto_close(out, item);
}

// -- JSON members ---------------------------------------------------------------------------------

static int hex_value(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

// Four hex digits at `at`; -1 when they are not there.
static int32_t unit_read(struct slice text, size_t at) {
    int32_t unit = 0;
    if (text.size < 4 || at > text.size - 4)
        return -1;
    for (size_t i = 0; i < 4; i++) {
        int digit = hex_value(text.data[at + i]);
        if (digit < 0)
            return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

static void append_point(struct buffer *out, uint32_t point) {
    if (point < 0x80) {
        buffer_append_char(out, (char)point);
        return;
    }
    int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    static const unsigned char marks[] = {0, 0xc0, 0xe0, 0xf0};
    buffer_append_char(out, (char)(marks[more] | (point >> (6 * more))));
    while (more-- > 0)
        buffer_append_char(out, (char)(0x80 | ((point >> (6 * more)) & 0x3f)));
}

// The escape whose letter is at `at`; returns where the text goes on. A lone surrogate stays one
// and is made good by proto_text.
static size_t append_escape(struct buffer *out, struct slice text, size_t at) {
    assert(at > 0 && at < text.size && text.data[at - 1] == '\\');
    static const char letters[] = "bfnrt", meant[] = "\b\f\n\r\t";
    char c = text.data[at];
    const char *found = c == '\0' ? NULL : strchr(letters, c);
    int32_t unit = c == 'u' ? unit_read(text, at + 1) : -1;
    if (unit < 0) {
        buffer_append_char(out, found == NULL ? c : meant[found - letters]);
        return at + 1;
    }
    at += 5;
    uint32_t point = (uint32_t)unit;
    if (point >= 0xd800 && point < 0xdc00 && at + 1 < text.size && text.data[at] == '\\' &&
        text.data[at + 1] == 'u') {
        int32_t low = unit_read(text, at + 2);
        if (low >= 0xdc00 && low < 0xe000) {
            point = 0x10000 + ((point - 0xd800) << 10) + ((uint32_t)low - 0xdc00);
            at += 6;
        }
    }
    append_point(out, point);
    return at;
}

// What a key with its quotes means.
static void key_read(struct slice key, struct buffer *text) {
    buffer_reset(text);
    if (key.size < 2)
        return;
    key = (struct slice){key.data + 1, key.size - 2};
    for (size_t at = 0; at < key.size;) {
        if (key.data[at] == '\\' && at + 1 < key.size)
            at = append_escape(text, key, at + 1);
        else
            buffer_append_char(text, key.data[at++]);
    }
}

// Takes a member off the front: its key as text, its value as it stands.
static bool member_take(struct slice *members, struct buffer *text, struct slice *value) {
    struct slice key;
    if (!wandb_member_next(members, &key, value))
        return false;
    key_read(key, text);
    return true;
}

// -- messages -------------------------------------------------------------------------------------

void offline_write_header(struct offline_run *run) {
    size_t record = record_open(run, RECORD_HEADER);
    size_t version = proto_open(&run->offline->scratch, 1);
    put_text(&run->offline->scratch, 1, "0.31.0"); // whose format this is
    put_text(&run->offline->scratch, 2, "0.12.0"); // who can read it
    proto_close(&run->offline->scratch, version);
    record_close(run, record);
}

static void write_metrics(struct offline_run *run) {
    enum { METRIC_NAME = 1, METRIC_GLOB, METRIC_STEP = 4, METRIC_OPTIONS = 6 };
    enum { OPTION_STEP_SYNC = 1, OPTION_HIDDEN, OPTION_DEFINED };
    struct buffer *out = &run->offline->scratch;
    for (uint32_t i = 0; i < WANDB_METRIC_COUNT; i++) {
        const struct wandb_metric *metric = &WANDB_METRICS[i];
        size_t opened = record_open(run, RECORD_METRIC);
        put_text(out, metric->is_glob ? METRIC_GLOB : METRIC_NAME, metric->name);
        if (i > 0)
            put_text(out, METRIC_STEP, WANDB_STEP_METRIC);
        size_t options = proto_open(out, METRIC_OPTIONS);
        proto_int(out, OPTION_STEP_SYNC, i > 0);
        proto_int(out, OPTION_HIDDEN, metric->is_glob && run->offline->config->log_tables);
        proto_int(out, OPTION_DEFINED, !metric->is_glob);
        proto_close(out, options);
        record_close(run, opened);
    }
}

void offline_write_run(struct offline_run *run, const struct wandb_record *record, bool resumes) {
    enum {
        RUN_ID = 1,
        RUN_ENTITY,
        RUN_PROJECT,
        RUN_GROUP = 6,
        RUN_JOB_TYPE,
        RUN_DISPLAY_NAME,
        RUN_NOTES,
        RUN_TAGS,
        RUN_START = 17,
        RUN_RESUME = 24
    };
    const struct wandb_config *config = run->offline->config;
    struct buffer *out = &run->offline->scratch;
    size_t opened = record_open(run, RECORD_RUN);
    proto_text(out, RUN_ID, slice_of(run->id));
    put_text(out, RUN_ENTITY, config->entity);
    put_text(out, RUN_PROJECT, config->project);
    if (record != NULL) {
        proto_text(out, RUN_GROUP, record->group);
        proto_text(out, RUN_JOB_TYPE, record->job_type);
        proto_text(out, RUN_DISPLAY_NAME, record->display_name);
    }
    put_text(out, RUN_NOTES, config->notes);
    for (size_t i = 0; i < config->tags.count; i++)
        put_text(out, RUN_TAGS, config->tags.items[i]);
    if (record != NULL && record->type.size > 0)
        proto_text(out, RUN_TAGS, record->type);
    size_t start = proto_open(out, RUN_START);
    proto_int(out, 1, (int64_t)(run->start_ns / NS_PER_S));
    proto_int(out, 2, (int64_t)(run->start_ns % NS_PER_S));
    proto_close(out, start);
    proto_int(out, RUN_RESUME, resumes);
    record_close(run, opened);
    if (record != NULL)
        offline_write_charts(run, record->members);
    if (record != NULL)
        offline_write_settings(run, record->file);
    if (record != NULL && record->key.size > 0)
        write_metrics(run);
}

void offline_write_charts(struct offline_run *run, struct slice visualize) {
    struct slice value;
    if (visualize.size == 0)
        return;
    size_t opened = record_open(run, RECORD_CONFIG);
    while (member_take(&visualize, &run->offline->text, &value)) {
        size_t item = proto_open(&run->offline->scratch, 1);
        put_text(&run->offline->scratch, ITEM_NESTED_KEY, "_wandb");
        put_text(&run->offline->scratch, ITEM_NESTED_KEY, "visualize");
        proto_text(&run->offline->scratch, ITEM_NESTED_KEY, buffer_slice(&run->offline->text));
        proto_text(&run->offline->scratch, ITEM_VALUE, value);
        proto_close(&run->offline->scratch, item);
    }
    record_close(run, opened);
}

void offline_write_settings(struct offline_run *run, struct slice settings) {
    struct slice value;
    if (settings.size == 0)
        return;
    size_t opened = record_open(run, RECORD_CONFIG);
    while (member_take(&settings, &run->offline->text, &value))
        put_item(&run->offline->scratch, 1, buffer_slice(&run->offline->text), value);
    record_close(run, opened);
}

void offline_write_summary(struct offline_run *run) {
    enum { UPDATE = 1, REMOVE };
    size_t opened = record_open(run, RECORD_SUMMARY);
    for (uint32_t i = 0; i < run->summary.count; i++) {
        const struct wandb_value *item = &run->summary.items[i];
        struct slice value = {item->text, item->text_size};
        bool removed = slice_equal(value, OFFLINE_REMOVED);
        key_read((struct slice){item->key, item->key_size}, &run->offline->text);
        put_item(&run->offline->scratch, removed ? REMOVE : UPDATE,
                 buffer_slice(&run->offline->text), removed ? (struct slice){0} : value);
    }
    record_close(run, opened);
}

static double seconds_since(uint64_t time_ns, uint64_t start_ns) {
    return time_ns > start_ns ? (double)(time_ns - start_ns) / NS_PER_S : 0;
}

static void put_number(struct offline_run *run, struct slice key, double value) {
    buffer_reset(&run->offline->text);
    wandb_append_number(&run->offline->text, value);
    put_item(&run->offline->scratch, 1, key, buffer_slice(&run->offline->text));
}

void offline_write_row(struct offline_run *run, const struct wandb_record *record, uint64_t step,
                       struct slice media) {
    assert(record->kind == WANDB_ROW || media.size > 0);
    struct slice members = record->kind == WANDB_ROW ? record->members : (struct slice){0};
    struct slice value;
    size_t opened = record_open(run, RECORD_HISTORY);
    while (member_take(&members, &run->offline->text, &value))
        put_item(&run->offline->scratch, 1, buffer_slice(&run->offline->text), value);
    if (media.size > 0)
        put_item(&run->offline->scratch, 1, record->key, media);
    buffer_reset(&run->offline->text);
    buffer_append_uint(&run->offline->text, step);
    put_item(&run->offline->scratch, 1, SLICE("_step"), buffer_slice(&run->offline->text));
    put_number(run, SLICE("_timestamp"), (double)record->time_ns / NS_PER_S);
    put_number(run, SLICE("_runtime"), seconds_since(record->time_ns, run->start_ns));
    size_t number = proto_open(&run->offline->scratch, 2);
    proto_int(&run->offline->scratch, 1, (int64_t)step);
    proto_close(&run->offline->scratch, number);
    record_close(run, opened);
}

void offline_write_file(struct offline_run *run, struct slice path) {
    size_t opened = record_open(run, RECORD_FILES);
    size_t file = proto_open(&run->offline->scratch, 1);
    proto_text(&run->offline->scratch, 1, path); // its policy is NOW, which is 0
    proto_close(&run->offline->scratch, file);
    record_close(run, opened);
}

static void put_manifest(struct offline_run *run, const struct media_list *list,
                         const char *folder) {
    enum { MANIFEST = 12, ENTRY_PATH = 1, ENTRY_DIGEST, ENTRY_SIZE = 4, ENTRY_LOCAL_PATH = 6 };
    struct buffer *out = &run->offline->scratch;
    size_t manifest = proto_open(out, MANIFEST);
    proto_int(out, 1, 1);
    put_text(out, 2, "wandb-storage-policy-v1");
    size_t policy = proto_open(out, 3);
    put_text(out, 1, "storageLayout");
    put_text(out, 2, "\"V2\"");
    proto_close(out, policy);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct media_file *file = &list->files[i];
        size_t entry = proto_open(out, 4);
        put_text(out, ENTRY_PATH, file->name);
        put_text(out, ENTRY_DIGEST, file->md5);
        proto_int(out, ENTRY_SIZE, (int64_t)file->size);
        buffer_reset(&run->offline->text);
        buffer_append_text(&run->offline->text, folder);
        buffer_append_char(&run->offline->text, '/');
        buffer_append_text(&run->offline->text, file->name);
        proto_text(out, ENTRY_LOCAL_PATH, buffer_slice(&run->offline->text));
        proto_close(out, entry);
    }
    proto_close(out, manifest);
}

void offline_write_artifact(struct offline_run *run, const struct wandb_record *record,
                            struct media_list *list, const char *folder) {
    assert(folder[0] == '/' && list->count > 0);
    enum {
        ARTIFACT_RUN = 1,
        ARTIFACT_PROJECT,
        ARTIFACT_ENTITY,
        ARTIFACT_TYPE,
        ARTIFACT_NAME,
        ARTIFACT_DIGEST,
        ARTIFACT_ALIASES = 11,
        ARTIFACT_FINALIZE = 14,
        ARTIFACT_CLIENT_ID,
        ARTIFACT_SEQUENCE_CLIENT_ID
    };
    struct buffer *out = &run->offline->scratch;
    char digest[MEDIA_DIGEST_SIZE];
    bool table = record->kind == WANDB_TABLE;
    media_list_digest(list, digest);
    size_t opened = record_open(run, RECORD_ARTIFACT);
    proto_text(out, ARTIFACT_RUN, slice_of(run->id));
    put_text(out, ARTIFACT_PROJECT, run->offline->config->project);
    put_text(out, ARTIFACT_ENTITY, run->offline->config->entity);
    proto_text(out, ARTIFACT_TYPE, table ? SLICE("run_table") : record->type);
    buffer_reset(&run->offline->text);
    media_append_artifact_name(&run->offline->text, record);
    proto_text(out, ARTIFACT_NAME, buffer_slice(&run->offline->text));
    put_text(out, ARTIFACT_DIGEST, digest);
    put_text(out, ARTIFACT_ALIASES, "latest");
    put_manifest(run, list, folder);
    proto_int(out, ARTIFACT_FINALIZE, 1);
    proto_text(out, ARTIFACT_CLIENT_ID, record->client_id);
    proto_text(out, ARTIFACT_SEQUENCE_CLIENT_ID, record->sequence_client_id);
    record_close(run, opened);
}

void offline_write_alert(struct offline_run *run, const struct wandb_record *record) {
    enum { ALERT_TITLE = 1, ALERT_TEXT, ALERT_LEVEL, ALERT_WAIT_MS, NS_PER_MS = 1000000 };
    assert(record->kind == WANDB_ALERT);
    size_t opened = record_open(run, RECORD_ALERT);
    proto_text(&run->offline->scratch, ALERT_TITLE, record->key);
    proto_text(&run->offline->scratch, ALERT_TEXT, record->file);
    proto_text(&run->offline->scratch, ALERT_LEVEL, record->type);
    proto_int(&run->offline->scratch, ALERT_WAIT_MS,
              run->offline->config->alert_wait.ns / NS_PER_MS);
    record_close(run, opened);
}

void offline_write_exit(struct offline_run *run, const struct wandb_record *record) {
    assert(record->kind == WANDB_FINISH);
    double seconds = seconds_since(record->time_ns, run->start_ns);
    size_t opened = record_open(run, RECORD_EXIT);
    proto_int(&run->offline->scratch, 1, record->exit_code);
    proto_int(&run->offline->scratch, 2, seconds < INT32_MAX ? (int64_t)seconds : INT32_MAX);
    record_close(run, opened);
}
