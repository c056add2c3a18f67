// SPDX-License-Identifier: Apache-2.0
// Writes records into run directories that `wandb sync` uploads.
//
// Each run's log is written from where it stands on the disk. A call that fails cuts the logs back
// and removes what it made; one that succeeds has synced everything. Between calls no file is open.
#include "exporters/wandb/offline/offline.h"

#include "exporters/wandb/offline/parts.h"
#include "exporters/wandb/record.h"
#include "pipeline/component/component.h"

#include "base/log.h"
#include "base/memory.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PENDING_BLOCK = 256 << 10, // of a log, written at once
    RUNS_MIN = 16,
    FOLDER_ID_SIZE = 16, // of an artifact's client id, in the name of its folder
};

// -- records --------------------------------------------------------------------------------------

// Puts the files of an artifact under artifacts/ID/, where nothing changes them any more, and says
// it. What cannot be read leaves the artifact out, as with the SDK; a full disk fails the call.
static enum status say_artifact(struct wandb_offline *offline, struct offline_run *run,
                                const struct wandb_record *record, struct error *error) {
    struct media_list list = {0};
    char *artifacts = run_part(offline, run, "artifacts");
    char *folder = wandb_text(
        "%s/%.*s", artifacts,
        (int)(record->client_id.size < FOLDER_ID_SIZE ? record->client_id.size : FOLDER_ID_SIZE),
        record->client_id.data);
    struct error why = {0};
    enum status status = STATUS_OK, reading = STATUS_OK;
    buffer_reset(&offline->path);
    if (record->kind == WANDB_TABLE) {
        media_append_artifact_file(&offline->path, record);
        media_list_add_bytes(&list, buffer_slice(&offline->path), record->artifact_file);
    } else {
        reading = media_list_add_path(&list, record->file, &why);
    }
    if (reading == STATUS_OK)
        status = files_make_folder(offline, folder, error);
    for (uint32_t i = 0; i < list.count && status == STATUS_OK && reading == STATUS_OK; i++) {
        if (record->kind == WANDB_TABLE) {
            status = files_write(offline, folder, slice_of(list.files[i].name),
                                 record->artifact_file, error);
        } else {
            reading = files_copy(offline, folder, &list.files[i], &why);
            if (reading == STATUS_CANNOT_CREATE)
                status = error_set(error, STATUS_IO, "%s", why.message);
        }
    }
    if (status == STATUS_OK && reading == STATUS_OK) {
        offline_write_artifact(run, record, &list, folder);
    } else if (status == STATUS_OK) {
        log_write(LOG_WARN, (struct log_site){"C3604", offline->site},
                  "the artifact %.*s of the run %s is left out: %s", (int)record->key.size,
                  record->key.data, run->id, why.message);
    }
    media_list_release(&list);
    memory_give(folder);
    memory_give(artifacts);
    return status;
}

static enum status say_media(struct wandb_offline *offline, struct offline_run *run,
                             const struct wandb_record *record, uint64_t step,
                             struct error *error) {
    assert(record->kind == WANDB_TABLE || record->kind == WANDB_HTML);
    char sha256[MEDIA_SHA256_SIZE];
    enum status status = STATUS_OK;
    if (record->kind == WANDB_TABLE)
        status = say_artifact(offline, run, record, error);
    if (status != STATUS_OK)
        return status;
    struct slice bytes = media_run_file(record, step, &offline->page, &offline->path, sha256);
    struct slice path = buffer_slice(&offline->path);
    char *files = run_part(offline, run, "files");
    status = files_write(offline, files, path, bytes, error);
    memory_give(files);
    if (status != STATUS_OK)
        return status;
    buffer_reset(&offline->media);
    media_append_value(&offline->media, record, path, sha256, bytes.size);
    offline_write_file(run, path);
    offline_write_row(run, record, step, buffer_slice(&offline->media));
    summary_note(run, record, step, buffer_slice(&offline->media));
    return STATUS_OK;
}

static uint64_t row_step(struct offline_run *run, const struct wandb_record *record) {
    if (!run->now.has_rows || record->row < run->now.first_row) {
        run->now.first_row = record->row;
        run->now.has_rows = true;
    }
    assert(run->now.has_rows && record->row >= run->now.first_row);
    return record->row - run->now.first_row;
}

static enum status say(struct wandb_offline *offline, struct offline_run *run,
                       const struct wandb_record *record, bool begun, struct error *error) {
    if (record->kind == WANDB_ARTIFACT)
        return say_artifact(offline, run, record, error);
    if (record->kind == WANDB_TABLE || record->kind == WANDB_HTML)
        return say_media(offline, run, record, row_step(run, record), error);
    uint64_t step = record->kind == WANDB_ROW ? row_step(run, record) : 0;
    if (record->kind == WANDB_ALERT) {
        offline_write_alert(run, record);
        return STATUS_OK;
    }
    if (record->kind != WANDB_RUN)
        summary_note(run, record, step, (struct slice){0});
    if (record->kind == WANDB_FINISH)
        summary_say(run);                      // nothing comes behind the end
    if (record->kind == WANDB_RUN && !begun) { // it goes on
        offline_write_charts(run, record->members);
        offline_write_settings(run, record->file);
    } else if (record->kind == WANDB_ROW)
        offline_write_row(run, record, step, (struct slice){0});
    else if (record->kind == WANDB_FINISH)
        offline_write_exit(run, record);
    run->now.finished |= record->kind == WANDB_FINISH;
    return STATUS_OK;
}

// Its id becomes part of paths.
static bool id_is_safe(struct slice id) {
    bool safe = id.size > 0 && id.size <= WANDB_RUN_ID_MAX;
    for (size_t i = 0; safe && i < id.size; i++)
        safe = wandb_is_name_character(id.data[i]);
    return safe;
}

static enum status send_record(struct wandb_offline *offline, const struct wandb_record *record,
                               struct error *error) {
    struct offline_run *run;
    uint32_t count = offline->run_count;
    enum status status = run_touch(offline, record, &run, error);
    if (status == STATUS_OK)
        status = say(offline, run, record, offline->run_count > count, error);
    if (status == STATUS_OK && run->pending.size >= PENDING_BLOCK)
        status = files_append(offline, run, error);
    return status;
}

// -- the whole ------------------------------------------------------------------------------------

// Back to what is on the disk since the last call.
static void send_undo(struct wandb_offline *offline) {
    struct error ignored; // what cannot be cut now is cut before the next writing
    files_undo(offline);
    assert(offline->made_count == 0);
    for (uint32_t i = offline->run_count; i > 0; i--) {
        struct offline_run *run = offline->runs[i - 1];
        if (!run->touched)
            continue;
        if (run->kept.length == 0) {
            run_drop(offline, i - 1);
            continue;
        }
        if (files_cut(offline, run, &ignored) != STATUS_OK)
            log_write(LOG_DEBUG, (struct log_site){"C3605", offline->site}, "%s", ignored.message);
        run->now = run->kept;
        run->touched = false;
        wandb_values_release(&run->summary);
        buffer_reset(&run->pending);
    }
}

static enum status send_keep(struct wandb_offline *offline, struct error *error) {
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < offline->run_count && status == STATUS_OK; i++) {
        summary_say(offline->runs[i]);
        status = files_append(offline, offline->runs[i], error);
    }
    if (status == STATUS_OK)
        status = files_keep(offline, error);
    for (uint32_t i = 0; i < offline->run_count && status == STATUS_OK; i++) {
        struct offline_run *run = offline->runs[i];
        assert(run->pending.size == 0 && run->summary.count == 0);
        run->kept = run->now;
        if (run->touched)
            run_mark(offline, run);
        run->touched = false;
    }
    return status;
}

enum status wandb_offline_send(struct wandb_offline *offline, struct slice records, bool last,
                               struct send_outcome *outcome, struct error *error) {
    (void)last; // whether anything follows makes no difference: all is on the disk
    struct wandb_record record;
    struct error why = {0};
    uint64_t sequence = offline->sequence;
    enum status status = STATUS_OK;
    *outcome = (struct send_outcome){0};
    offline->clock++;
    while (status == STATUS_OK && records.size > 0) {
        if (!wandb_record_read(&records, &record) || !id_is_safe(record.run)) {
            outcome->sink_dead = true;
            status = error_set(
                &why, STATUS_BAD_DATA,
                "a queued record for W&B is damaged; it and those queued with it are left out");
        } else if (record.sequence > sequence) {
            sequence = record.sequence;
            status = send_record(offline, &record, &why);
        }
    }
    if (status == STATUS_OK)
        status = send_keep(offline, &why);
    if (status != STATUS_OK) {
        send_undo(offline);
        return error_set(error, why.status == STATUS_OK ? status : why.status, "%s", why.message);
    }
    offline->sequence = sequence;
    runs_trim(offline);
    return STATUS_OK;
}

static enum status directory_make(const char *path, char **absolute, struct error *error) {
    char real[PATH_MAX];
    char *copy = memory_copy_text(path, strlen(path));
    for (char *slash = strchr(copy + (copy[0] == '/'), '/');; slash = strchr(slash + 1, '/')) {
        if (slash != NULL)
            *slash = '\0';
        mkdir(copy, 0777); // what went wrong with it shows below
        if (slash == NULL)
            break;
        *slash = '/';
    }
    memory_give(copy);
    struct stat about;
    if (stat(path, &about) == 0 && !S_ISDIR(about.st_mode))
        return error_set(error, STATUS_CANNOT_CREATE,
                         "%.300s is not a directory; runs are written into one", path);
    if (access(path, W_OK | X_OK) != 0 || realpath(path, real) == NULL)
        return error_set_os(error, STATUS_CANNOT_CREATE, errno,
                            "runs cannot be written into the directory %.300s", path);
    *absolute = memory_copy_text(real, strlen(real));
    return STATUS_OK;
}

enum status wandb_offline_open(struct wandb_offline **offline, const struct wandb_config *config,
                               const char *site, struct error *error) {
    char *directory = NULL;
    enum status status = directory_make(config->directory, &directory, error);
    if (status != STATUS_OK)
        return status;
    struct wandb_offline *made = memory_zero(1, sizeof *made);
    made->config = config;
    made->site = site;
    made->directory = directory;
    uint64_t twice = config->max_runs > 0 ? (uint64_t)config->max_runs * 2 : 0;
    made->run_max = twice < RUNS_MIN ? RUNS_MIN : twice > UINT32_MAX ? UINT32_MAX : (uint32_t)twice;
    struct buffer *const buffers[] = {&made->scratch, &made->text, &made->media, &made->path,
                                      &made->page};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        buffer_init(buffers[i], OFFLINE_BUFFER_MAX);
    *offline = made;
    if (config->entity == NULL)
        log_write(LOG_WARN, (struct log_site){"C3608", site},
                  "entity is not set; `wandb sync` may leave out tables and artifacts without it");
    return STATUS_OK;
}

void wandb_offline_close(struct wandb_offline *offline) {
    if (offline == NULL)
        return;
    while (offline->run_count > 0)
        run_drop(offline, offline->run_count - 1);
    struct buffer *const buffers[] = {&offline->scratch, &offline->text, &offline->media,
                                      &offline->path, &offline->page};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        buffer_release(buffers[i]);
    memory_give(offline->runs);
    memory_give(offline->made);
    memory_give(offline->directory);
    memory_give(offline);
}
