// SPDX-License-Identifier: Apache-2.0
// Begins run directories and remembers which are being written.
//
// A few hundred bytes for each run, at most twice max_runs of them; one that was not written to for
// longest is forgotten first, and goes on in a new directory if it is heard of again.
#include "exporters/wandb/offline/parts.h"

#include "base/log.h"
#include "base/memory.h"
#include "exporters/wandb/record.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { NAME_TRIES_MAX = 3600, REPLACED_MAX = 99, NAME_MAX_SIZE = 64 + WANDB_RUN_ID_MAX };
#define NS_PER_S    UINT64_C(1000000000)
#define NAME_PREFIX "offline-run-"

// -- runs -----------------------------------------------------------------------------------------

struct offline_run *run_find(const struct wandb_offline *offline, struct slice id) {
    for (uint32_t i = offline->run_count; i > 0; i--)
        if (slice_equal(slice_of(offline->runs[i - 1]->id), id))
            return offline->runs[i - 1];
    return NULL;
}

void run_drop(struct wandb_offline *offline, uint32_t index) {
    assert(index < offline->run_count);
    buffer_release(&offline->runs[index]->pending);
    wandb_values_release(&offline->runs[index]->summary);
    memory_give(offline->runs[index]);
    offline->run_count--;
    memmove(offline->runs + index, offline->runs + index + 1,
            (offline->run_count - index) * sizeof *offline->runs);
}

struct offline_run *run_add(struct wandb_offline *offline, struct slice id) {
    assert(id.size <= WANDB_RUN_ID_MAX);
    offline->runs = memory_room(offline->runs, &offline->run_capacity, offline->run_count,
                                sizeof *offline->runs);
    struct offline_run *run = memory_zero(1, sizeof *run);
    memcpy(run->id, id.data, id.size);
    run->offline = offline;
    buffer_init(&run->pending, OFFLINE_BUFFER_MAX);
    run->used = offline->clock;
    offline->runs[offline->run_count++] = run;
    return run;
}

void runs_trim(struct wandb_offline *offline) {
    for (uint32_t i = 0; i < offline->run_count;) {
        const struct offline_run *run = offline->runs[i];
        if (run_find(offline, slice_of(run->id)) != run)
            run_drop(offline, i);
        else
            i++;
    }
    while (offline->run_count > offline->run_max) {
        uint32_t oldest = 0;
        for (uint32_t i = 1; i < offline->run_count; i++)
            if (offline->runs[i]->used < offline->runs[oldest]->used)
                oldest = i;
        run_drop(offline, oldest);
    }
    assert(offline->run_count <= offline->run_max);
}

static void name_format(const struct offline_run *run, char name[NAME_MAX_SIZE]) {
    assert(run->id[0] != '\0' && strchr(run->id, '/') == NULL);
    struct tm parts;
    time_t seconds = (time_t)run->name_s;
    size_t size = sizeof NAME_PREFIX - 1;
    memcpy(name, NAME_PREFIX, size);
    if (gmtime_r(&seconds, &parts) == NULL)
        parts = (struct tm){.tm_mday = 1, .tm_year = 70};
    size += strftime(name + size, NAME_MAX_SIZE - size, "%Y%m%d_%H%M%S-", &parts);
    snprintf(name + size, NAME_MAX_SIZE - size, "%s", run->id);
}

char *run_directory(const struct wandb_offline *offline, const struct offline_run *run) {
    char name[NAME_MAX_SIZE];
    name_format(run, name);
    return wandb_text("%s/%s", offline->directory, name);
}

char *run_part(const struct wandb_offline *offline, const struct offline_run *run,
               const char *part) {
    char *directory = run_directory(offline, run);
    char *path = wandb_text("%s/%s", directory, part);
    memory_give(directory);
    return path;
}

char *run_log_path(const struct wandb_offline *offline, const struct offline_run *run) {
    char name[NAME_MAX_SIZE];
    snprintf(name, sizeof name, "run-%s.wandb", run->id);
    return run_part(offline, run, name);
}

// -- beginning ------------------------------------------------------------------------------------

// Whether a directory of that run, of any time, is there.
static bool run_has_directory(const struct wandb_offline *offline, const char *id) {
    DIR *stream = opendir(offline->directory);
    bool found = false;
    const struct dirent *entry;
    const size_t before = sizeof NAME_PREFIX - 1 + sizeof "YYYYMMDD_HHMMSS-" - 1;
    while (stream != NULL && !found && (entry = readdir(stream)) != NULL)
        found = strncmp(entry->d_name, NAME_PREFIX, sizeof NAME_PREFIX - 1) == 0 &&
                strlen(entry->d_name) > before && strcmp(entry->d_name + before, id) == 0;
    if (stream != NULL)
        closedir(stream);
    return found;
}

// A directory of this name stands there from a time that we know nothing of: it is renamed, so that
// nothing is lost, and `wandb sync` passes it over, so that nothing is sent twice.
static enum status set_aside(const struct wandb_offline *offline, const struct offline_run *run,
                             struct error *error) {
    char name[NAME_MAX_SIZE], other[NAME_MAX_SIZE + 32];
    enum status status = STATUS_OK;
    name_format(run, name);
    char *from = wandb_text("%s/%s", offline->directory, name);
    bool there = access(from, F_OK) == 0;
    for (int number = 1; there && status == STATUS_OK; number++) {
        if (number > REPLACED_MAX) {
            status = error_set(
                error, STATUS_CANNOT_CREATE,
                "%.300s exists, and so do replaced-%s.1 to .%d; sync or remove some of them", from,
                name, REPLACED_MAX);
            break;
        }
        snprintf(other, sizeof other, "replaced-%s.%d", name, number);
        char *to = wandb_text("%s/%s", offline->directory, other);
        if (access(to, F_OK) != 0) {
            there = false;
            if (rename(from, to) != 0)
                status = error_set_os(error, STATUS_IO, errno, "renaming %.300s", from);
            else
                log_write(LOG_WARN, (struct log_site){"C3601", offline->site},
                          "%.300s existed already; it was renamed to %s, and the run starts again",
                          from, other);
        }
        memory_give(to);
    }
    memory_give(from);
    return status;
}

// Names tell seconds apart, and what begins later must sort later. An export of a finished run
// begins when it is made, so one of the same second is another.
static void name_choose(const struct wandb_offline *offline, struct offline_run *run,
                        const struct offline_run *before) {
    uint64_t first = run->name_s;
    if (before != NULL && run->name_s <= before->name_s)
        run->name_s = before->name_s + 1;
    for (int tries = 0; offline->config->content == WANDB_TRACKING && tries < NAME_TRIES_MAX;
         tries++, run->name_s++) {
        char *directory = run_directory(offline, run);
        bool there = access(directory, F_OK) == 0;
        memory_give(directory);
        if (!there)
            break;
    }
    if (run->name_s != first)
        run->start_ns = run->name_s * NS_PER_S;
}

// `record` is its RUN, or the first that is heard of it.
static enum status run_begin(struct wandb_offline *offline, const struct wandb_record *record,
                             struct offline_run **begun, struct error *error) {
    const struct wandb_config *config = offline->config;
    const struct offline_run *before = run_find(offline, record->run);
    struct offline_run *run = run_add(offline, record->run);
    run->start_ns = record->time_ns;
    run->name_s = record->time_ns / NS_PER_S;
    run->incarnation = record->incarnation;
    name_choose(offline, run, before);
    run->touched = true;
    *begun = run;
    bool announced = record->kind == WANDB_RUN;
    bool resumes = !announced || run_has_directory(offline, run->id) ||
                   (config->content == WANDB_TRACKING && config->run_id != NULL);
    enum status status = set_aside(offline, run, error);
    static const char *const parts[] = {"", "files", "artifacts"};
    for (size_t i = 0; i < 3 && status == STATUS_OK; i++) {
        char *path = i == 0 ? run_directory(offline, run) : run_part(offline, run, parts[i]);
        status = files_make_folder(offline, path, error);
        memory_give(path);
    }
    if (status != STATUS_OK)
        return status;
    offline_write_header(run);
    offline_write_run(run, announced ? record : NULL, resumes);
    return STATUS_OK;
}

enum status run_touch(struct wandb_offline *offline, const struct wandb_record *record,
                      struct offline_run **touched, struct error *error) {
    struct offline_run *run = run_find(offline, record->run);
    bool again = run != NULL && record->kind == WANDB_RUN &&
                 (run->now.finished || run->incarnation != record->incarnation);
    if (run != NULL && !again && !run->touched) {
        // What a failed call could not cut off goes now.
        enum status status = files_cut(offline, run, error);
        if (status != STATUS_OK && status != STATUS_NOT_FOUND)
            return status;
        if (status == STATUS_NOT_FOUND) {
            log_write(LOG_WARN, (struct log_site){"C3603", offline->site},
                      "the log of the run %s was removed or truncated; the run continues in a new "
                      "directory",
                      run->id);
            again = true;
        }
    }
    if (run == NULL || again)
        return run_begin(offline, record, touched, error);
    run->touched = true;
    run->used = offline->clock;
    *touched = run;
    return STATUS_OK;
}
