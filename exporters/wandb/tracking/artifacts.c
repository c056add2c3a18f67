// SPDX-License-Identifier: Apache-2.0
// Sends files of a tracking run to W&B as artifacts.
//
// Those that are there when the run is said: the page, the tracker's output, its sink, the dump of
// an out-of-memory error, the attribution bundle. What was named and is not there is left out, and
// that is logged. The page's file is written beside the output, else into a private temporary
// directory that goes with the exporter; never into the sink, which is archived as it was found.
#include "exporters/wandb/tracking/parts.h"

#include "base/log.h"
#include "base/memory.h"
#include "exporters/wandb/files.h"
#include "exporters/wandb/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ARTIFACT_NAME_MAX = 128, PATHS_MAX = 64 << 10 };

bool tracking_is_file(const char *path) {
    struct stat about;
    return path != NULL && stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

bool tracking_is_directory(const char *path) {
    struct stat about;
    return path != NULL && stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static bool is_same_place(const char *a, const char *b) {
    struct stat left, right;
    return a != NULL && b != NULL && stat(a, &left) == 0 && stat(b, &right) == 0 &&
           left.st_dev == right.st_dev && left.st_ino == right.st_ino;
}

// -- artifacts ------------------------------------------------------------------------------------

// TYPE-SESSION, where a run of characters that a name should not have is one dash. Cut to what W&B
// takes.
static void append_name(const struct wandb_tracking *tracking, const char *type,
                        struct buffer *name) {
    struct slice session = tracking_file_text(&tracking->session, "session_id");
    if (session.size == 0)
        session = SLICE("session");
    buffer_append_text(name, type);
    buffer_append_char(name, '-');
    for (size_t i = 0; i < session.size && name->size < ARTIFACT_NAME_MAX; i++) {
        if (wandb_is_name_character(session.data[i]))
            buffer_append_char(name, session.data[i]);
        else if (i == 0 || wandb_is_name_character(session.data[i - 1]))
            buffer_append_char(name, '-');
    }
}

void tracking_append_path(struct buffer *out, const char *path) {
    char *directory = path[0] == '/' ? NULL : getcwd(NULL, 0);
    if (directory != NULL) {
        buffer_append_text(out, directory);
        buffer_append_char(out, '/');
    }
    buffer_append(out, wandb_without_slashes(path));
    free(directory);
}

void tracking_say_artifact(struct wandb_tracking *tracking, const char *type, struct slice paths,
                           struct wandb_writer *writer) {
    assert(paths.size > 0);
    struct buffer name;
    buffer_init(&name, ARTIFACT_NAME_MAX);
    append_name(tracking, type, &name);
    wandb_say(writer, &(struct wandb_record){
                          .kind = WANDB_ARTIFACT,
                          .key = buffer_slice(&name),
                          .file = paths,
                          .type = slice_of(type),
                      });
    buffer_release(&name);
}

static void say_path(struct wandb_tracking *tracking, const char *type, const char *path,
                     struct wandb_writer *writer) {
    struct buffer place;
    buffer_init(&place, PATHS_MAX);
    tracking_append_path(&place, path);
    tracking_say_artifact(tracking, type, buffer_slice(&place), writer);
    buffer_release(&place);
}

static void say_if_there(struct wandb_tracking *tracking, const char *type, const char *path,
                         bool is_there, struct wandb_writer *writer) {
    if (is_there)
        say_path(tracking, type, path, writer);
    else if (path != NULL)
        log_write(LOG_WARN, (struct log_site){"C3313", tracking->site},
                  "%s does not exist; the artifact %s is left out", path, type);
}

void tracking_say_artifacts(struct wandb_tracking *tracking, struct wandb_writer *writer) {
    const struct wandb_tracking_config *options = tracking->options;
    say_if_there(tracking, "stormlog-track-output", options->output_file,
                 tracking_is_file(options->output_file), writer);
    say_if_there(tracking, "stormlog-telemetry-sink", options->sink_directory,
                 tracking_is_directory(options->sink_directory), writer);
    say_if_there(tracking, "stormlog-oom-dump", options->oom_dump,
                 tracking_is_directory(options->oom_dump), writer);
    if (!is_same_place(options->attribution_bundle, options->oom_dump))
        say_if_there(tracking, "stormlog-attribution-bundle", options->attribution_bundle,
                     tracking_is_directory(options->attribution_bundle), writer);
}

// -- files of our own -----------------------------------------------------------------------------

// Under another name first, so that a reader sees the old file or the new one whole. An errno
// value, or 0.
static int write_whole(const char *path, struct slice bytes) {
    char *beside = wandb_text("%s.tmp", path);
    int descriptor = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    int failure = descriptor < 0 ? errno : wandb_write_all(descriptor, bytes);
    if (descriptor >= 0 && close(descriptor) != 0 && failure == 0)
        failure = errno;
    if (failure == 0 && rename(beside, path) != 0)
        failure = errno;
    if (failure != 0 && descriptor >= 0)
        unlink(beside);
    memory_give(beside);
    return failure;
}

static bool have_temporary(struct wandb_tracking *tracking) {
    const char *place = getenv("TMPDIR");
    if (tracking->temporary != NULL)
        return true;
    if (place == NULL || place[0] != '/')
        place = "/tmp";
    struct slice folder = wandb_without_slashes(place);
    char *path = wandb_text("%.*s/culprit-wandb-XXXXXX", (int)folder.size, folder.data);
    if (mkdtemp(path) != NULL) {
        tracking->temporary = path;
        return true;
    }
    log_write(LOG_WARN, (struct log_site){"C3314", tracking->site},
              "cannot create a temporary directory in %s: %s", place, strerror(errno));
    memory_give(path);
    return false;
}

char *tracking_write_file(struct wandb_tracking *tracking, const char *directory, const char *name,
                          struct slice bytes) {
    assert(strchr(name, '/') == NULL);
    if (directory == NULL && !have_temporary(tracking))
        return NULL;
    char *path = wandb_text("%s/%s", directory == NULL ? tracking->temporary : directory, name);
    int failure = write_whole(path, bytes);
    if (failure == 0)
        return path;
    log_write(LOG_WARN, (struct log_site){"C3314", tracking->site}, "%s cannot be written: %s",
              path, strerror(failure));
    memory_give(path);
    return NULL;
}

// -- the page -------------------------------------------------------------------------------------

// Where the output is; NULL: there is none.
static char *output_directory(const struct wandb_tracking_config *options) {
    if (!tracking_is_file(options->output_file))
        return NULL;
    struct slice name = wandb_base_name(options->output_file);
    const char *path = options->output_file;
    size_t size = (size_t)(name.data - path);
    return size == 0 ? memory_copy_text(".", 1) : memory_copy_text(path, size > 1 ? size - 1 : 1);
}

void tracking_say_dashboard(struct wandb_tracking *tracking, struct slice page,
                            struct wandb_writer *writer) {
    static const char name[] = "stormlog_tracking_dashboard.html";
    wandb_say(writer, &(struct wandb_record){
                          .kind = WANDB_HTML,
                          .key = SLICE("stormlog_tracking_dashboard"),
                          .file = page,
                      });
    if (!tracking->config->log_artifacts)
        return;
    char *directory = output_directory(tracking->options);
    memory_give(tracking->dashboard);
    tracking->dashboard = tracking_write_file(tracking, directory, name, page);
    memory_give(directory);
    if (tracking->dashboard == NULL)
        return;
    say_path(tracking, "stormlog-tracking-dashboard", tracking->dashboard, writer);
    buffer_reset(&tracking->members);
    wandb_member(&tracking->members, "stormlog_tracking_dashboard_file", cell_text(name));
    wandb_say_members(writer, WANDB_SUMMARY, &tracking->members);
}

// What is in the temporary directory are files that were written there by name.
void tracking_artifacts_release(struct wandb_tracking *tracking) {
    if (tracking->temporary != NULL) {
        if (tracking->dashboard != NULL &&
            strncmp(tracking->dashboard, tracking->temporary, strlen(tracking->temporary)) == 0)
            unlink(tracking->dashboard);
        rmdir(tracking->temporary);
    }
    memory_give(tracking->temporary);
    memory_give(tracking->dashboard);
}
