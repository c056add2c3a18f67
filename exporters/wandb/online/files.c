// SPDX-License-Identifier: Apache-2.0
// Uploads the tables and pages of a segment as files of the run.
//
// One createRunFiles names all that are missing (at most 500 at a time), then each is uploaded.
// Their names hold a checksum, so nothing is ever replaced by something else.
#include "exporters/wandb/online/parts.h"
#include "exporters/wandb/record.h"

enum { FILES_AT_ONCE = 500, PATH_MAX_BYTES = 64 * 1024 };

// Steps to the next record whose file is to be uploaded.
static bool missing_next(const struct wandb_run *run, const struct wandb_segment *segment,
                         struct wandb_cursor *cursor) {
    const struct wandb_record *record = &cursor->record;
    while (wandb_cursor_next(run, segment, cursor))
        if ((record->kind == WANDB_TABLE || record->kind == WANDB_HTML) && !cursor->is_known &&
            record->sequence > run->files_done && !wandb_run_leaves_out(run, record->sequence))
            return true;
    return false;
}

static enum wandb_answer ask_addresses(struct wandb_online *online, const struct wandb_run *run,
                                       const struct wandb_segment *segment, json_t **data,
                                       struct error *error) {
    assert(run->begun && run->name != NULL);
    static const char document[] =
        "mutation($input:CreateRunFilesInput!){createRunFiles(input:$input){"
        "uploadHeaders files{name uploadUrl}}}";
    struct wandb_query query;
    struct buffer path;
    char sha256[MEDIA_SHA256_SIZE];
    buffer_init(&path, PATH_MAX_BYTES);
    wandb_query_begin(&query, "createRunFiles", document);
    wandb_query_text(&query, "entityName", run->entity);
    wandb_query_text(&query, "projectName", run->project);
    wandb_query_text(&query, "runName", run->name);
    json_field_array_open(&query.json, "files");
    struct wandb_cursor file = wandb_cursor_begin(run, segment);
    for (unsigned i = 0; i < FILES_AT_ONCE && missing_next(run, segment, &file); i++) {
        media_run_file(&file.record, file.step, &online->text, &path, sha256);
        json_slice(&query.json, buffer_slice(&path));
    }
    json_array_close(&query.json);
    buffer_release(&path);
    return wandb_query_send(&online->client, &query, data, error);
}

// The file of that name among those that the server gave addresses for; NULL: it gave none.
static const json_t *file_named(const json_t *answer, struct slice path) {
    const json_t *files = json_object_get(answer, "files");
    for (size_t i = 0; i < json_array_size(files); i++) {
        const json_t *file = json_array_get(files, i);
        const char *name = wandb_json_text(file, "name", NULL);
        if (name != NULL && slice_equal(slice_of(name), path))
            return file;
    }
    return NULL;
}

// The file of that record is at hand now: its failures are counted.
static void file_is(struct wandb_online *online, uint64_t sequence) {
    assert(sequence > 0);
    if (online->file_sequence == sequence)
        return;
    online->file_sequence = sequence;
    online->file_tries = 0;
    online->file_renewed = false;
}

// DONE also when it was given up. `*address_is_old`: ask for addresses again.
static enum wandb_answer upload(struct wandb_online *online, struct wandb_run *run,
                                const struct wandb_cursor *file, const json_t *answer_data,
                                bool *address_is_old, struct error *error) {
    assert(file->record.sequence > run->files_done);
    struct buffer path;
    char sha256[MEDIA_SHA256_SIZE];
    const struct wandb_record *record = &file->record;
    buffer_init(&path, PATH_MAX_BYTES);
    struct slice bytes = media_run_file(record, file->step, &online->text, &path, sha256);
    const json_t *there = file_named(answer_data, buffer_slice(&path));
    const char *url = wandb_json_text(there, "uploadUrl", NULL);
    buffer_release(&path);
    enum wandb_answer answer = WANDB_DONE;
    if (there == NULL) {
        error_set(error, STATUS_IO, "createRunFiles: the answer lacks a file");
        answer = WANDB_REFUSED;
    } else if (url != NULL) {
        struct http_call from = {.body = bytes};
        answer = wandb_upload_send(&online->client, "uploading a file of the run", url,
                                   json_object_get(answer_data, "uploadHeaders"), &from, error);
    }
    file_is(online, record->sequence);
    if (answer == WANDB_LATER && ++online->file_tries < WANDB_TRIES_MAX)
        return answer;
    if (answer == WANDB_REFUSED && there != NULL && !online->file_renewed &&
        online->client.http.reply->status == 403) {
        online->file_renewed = *address_is_old = true;
        return WANDB_DONE;
    }
    if (answer != WANDB_DONE)
        wandb_run_leave_out(online, run, record, error);
    run->files_done = record->sequence;
    wandb_keep_alive(online);
    return WANDB_DONE;
}

// None of the files that are missing can be had.
static void leave_all_out(struct wandb_online *online, struct wandb_run *run,
                          const struct wandb_segment *segment, const struct error *why) {
    struct wandb_cursor file = wandb_cursor_begin(run, segment);
    while (missing_next(run, segment, &file))
        wandb_run_leave_out(online, run, &file.record, why);
}

static enum wandb_answer addresses_failed(struct wandb_online *online, struct wandb_run *run,
                                          const struct wandb_segment *segment, uint64_t first,
                                          enum wandb_answer answer, const struct error *error) {
    file_is(online, first);
    if (answer == WANDB_LATER && ++online->file_tries < WANDB_TRIES_MAX)
        return answer;
    leave_all_out(online, run, segment, error);
    run->files_done = segment->last;
    return WANDB_DONE;
}

enum wandb_answer wandb_run_files(struct wandb_online *online, struct wandb_run *run,
                                  const struct wandb_segment *segment, struct error *error) {
    for (;;) {
        struct wandb_cursor file = wandb_cursor_begin(run, segment);
        json_t *data = NULL;
        bool address_is_old = false;
        if (!missing_next(run, segment, &file))
            return WANDB_DONE;
        enum wandb_answer answer = ask_addresses(online, run, segment, &data, error);
        const json_t *given = json_object_get(data, "createRunFiles");
        if (answer != WANDB_DONE)
            answer = addresses_failed(online, run, segment, file.record.sequence, answer, error);
        else
            for (unsigned i = 0; i < FILES_AT_ONCE && answer == WANDB_DONE; i++) {
                answer = upload(online, run, &file, given, &address_is_old, error);
                if (address_is_old || !missing_next(run, segment, &file))
                    break;
            }
        json_decref(data);
        if (answer != WANDB_DONE)
            return answer;
    }
}
