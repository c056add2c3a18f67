// SPDX-License-Identifier: Apache-2.0
// The W&B exporter as a component: its options, and which of its parts do the work.
//
// What is said (exporters/wandb/live/live.c, exporters/wandb/tracking/tracking.c) is made of the
// batches, as records; how it is carried out (exporters/wandb/online/online.c,
// exporters/wandb/offline/offline.c) is the other half. Between them stand the sender's blocks.
#include "exporters/wandb/wandb.h"

#include "base/clock.h"
#include "base/http/url.h"
#include "config/problem.h"
#include "exporters/report/page/page.h"
#include "exporters/wandb/files.h"
#include "exporters/wandb/live/live.h"
#include "exporters/wandb/offline/offline.h"
#include "exporters/wandb/online/online.h"
#include "exporters/wandb/options.h"
#include "exporters/wandb/record.h"
#include "exporters/wandb/tracking/tracking.h"

enum { PAGE_MAX = 64 << 20, PAGE_POINTS = 600, PAGE_RANKS = 64 };

struct wandb_exporter {
    const struct wandb_config *config;
    struct wandb_online *online;     // with mode: online
    struct wandb_offline *offline;   // with mode: offline
    struct wandb_tracking *tracking; // with content: tracking
    struct page_notes *notes;
    struct live live; // with content: live; else its config is NULL
};

static const struct state_row STATE[] = {
    STATE_STRUCT(struct wandb_exporter, live.counter, "wandb.counter"),
    STATE_ROWS(struct wandb_exporter, live.runs, "wandb.runs", live_run_rows),
    STATE_ROWS(struct wandb_exporter, live.verdicts, "wandb.verdicts", live_verdict_rows),
};

static const char *const MODES[] = {"online", "offline", "disabled", NULL};
static const char *const ALERT_SEVERITIES[] = {"none",  "info",     "warning",
                                               "error", "critical", NULL};
static const char *const CONTENTS[] = {"live", "tracking", NULL};

static const struct option TRACKING_OPTIONS[] = {
    OPTION(struct wandb_tracking_config, command_name, OPTION_TEXT,
           .default_value = "gpumemprof-track",
           .help = "name of the command: job type and first part of the run's name"),
    OPTION(struct wandb_tracking_config, stats_file, OPTION_TEXT,
           .help = "JSON file with the tracker's statistics; without it they are computed from the "
                   "events"),
    OPTION(struct wandb_tracking_config, session_file, OPTION_TEXT,
           .help = "JSON file with the session summary: names the run, groups it by its job"),
    OPTION(struct wandb_tracking_config, output_file, OPTION_TEXT,
           .help = "the tracker's output, uploaded as an artifact; the page is written beside it"),
    OPTION(struct wandb_tracking_config, sink_directory, OPTION_TEXT,
           .help = "the tracker's telemetry sink, uploaded as an artifact"),
    OPTION(struct wandb_tracking_config, oom_dump, OPTION_TEXT,
           .help = "directory of an out-of-memory dump, uploaded as an artifact"),
    OPTION(struct wandb_tracking_config, attribution_bundle, OPTION_TEXT,
           .help = "directory of an attribution bundle, uploaded as an artifact"),
    OPTION(
        struct wandb_tracking_config, max_events, OPTION_INT, .default_value = "1000000", .min = 1,
        .max = 100000000,
        .help =
            "events kept for the timeline, some 100 bytes each; further events are only counted"),
};

static const struct option OPTIONS[] = {
    OPTION(
        struct wandb_config, mode, OPTION_CHOICE, .default_value = "online", .choices = MODES,
        .help =
            "online: to a server; offline: into a directory that `wandb sync` uploads; disabled: "
            "nothing"),
    OPTION(
        struct wandb_config, content, OPTION_CHOICE, .default_value = "live", .choices = CONTENTS,
        .help = "live: each job as a run, with rows of its ranks and its verdicts; tracking: one "
                "finished tracking run as stormlog exports it, for inputs that end"),
    OPTION(struct wandb_config, base_url, OPTION_TEXT, .default_value = "https://api.wandb.ai",
           .address = true, .help = "URL of the server"),
    OPTION(struct wandb_config, api_key, OPTION_SECRET,
           .help = "best as ${env:WANDB_API_KEY}; without it the key is read from ~/.netrc"),
    OPTION(struct wandb_config, ca_file, OPTION_TEXT,
           .help = "certificates of the authorities to trust, instead of the system's"),
    OPTION(
        struct wandb_config, proxy, OPTION_TEXT, .address = true,
        .help =
            "proxy for all requests, instead of that of the environment (https_proxy, no_proxy)"),
    OPTION(struct wandb_config, entity, OPTION_TEXT,
           .help = "team or user; default: that of the key"),
    OPTION(struct wandb_config, project, OPTION_TEXT, .default_value = "stormlog",
           .help = "project that the run belongs to"),
    OPTION(struct wandb_config, run_id, OPTION_TEXT,
           .help = "id of the run; an existing run is continued. Default: culprit-JOB-START; "
                   "tracking: a random id"),
    OPTION(struct wandb_config, join_run, OPTION_BOOL, .default_value = "false",
           .help = "live: write into the run `run_id` although culprit did not begin it; its names "
                   "stay, and it is not finished. Nothing else may write to it at the same time"),
    OPTION(struct wandb_config, run_name, OPTION_TEXT,
           .help = "name of the run; default: the job; tracking: command and session"),
    OPTION(struct wandb_config, group, OPTION_TEXT, .help = "group of the run; default: the job"),
    OPTION(struct wandb_config, job_type, OPTION_TEXT,
           .help = "job type of the run; default: culprit; tracking: the command's name"),
    OPTION(struct wandb_config, tags, OPTION_TEXT_LIST,
           .help = "tags of the run, each 1 to 64 characters"),
    OPTION(struct wandb_config, notes, OPTION_TEXT, .help = "notes of the run"),
    OPTION(struct wandb_config, training_run, OPTION_TEXT,
           .help = "live: URL of the run that the training itself logs to, for the config"),
    OPTION(struct wandb_config, directory, OPTION_TEXT, .default_value = "wandb",
           .help = "offline: where the run directories are made"),
    OPTION(struct wandb_config, log_tables, OPTION_BOOL, .default_value = "true",
           .help = "tables, charts and the page"),
    OPTION(struct wandb_config, log_artifacts, OPTION_BOOL, .default_value = "false",
           .help = "tracking: the files and directories that are named under `tracking`"),
    OPTION(struct wandb_config, log_attribution, OPTION_BOOL, .default_value = "false",
           .help =
               "tracking: content of the attribution bundle, or else of the out-of-memory dump"),
    OPTION(struct wandb_config, row_interval, OPTION_DURATION, .default_value = "15s", .min = 1,
           .max = 86400, .help = "live: at most one row of each rank in this time"),
    OPTION(struct wandb_config, table_interval, OPTION_DURATION, .default_value = "1m", .min = 1,
           .max = 86400, .help = "live: tables and the page are sent at most this often"),
    OPTION(struct wandb_config, post_interval, OPTION_DURATION, .default_value = "15s", .min = 0.01,
           .max = 3600, .help = "time between two posts, at least; the last one does not wait"),
    OPTION(struct wandb_config, heartbeat_interval, OPTION_DURATION, .default_value = "30s",
           .min = 0.01, .max = 3600, .help = "an idle run sends a heartbeat after this time"),
    OPTION(struct wandb_config, max_ranks, OPTION_INT, .default_value = "64", .min = 0,
           .max = 10000,
           .help = "live: ranks of a job that get rows, lowest first; suspects always get them"),
    OPTION(struct wandb_config, max_runs, OPTION_INT, .default_value = "64", .min = 1, .max = 10000,
           .help = "live: jobs shown as runs at the same time"),
    OPTION(struct wandb_config, alert_severity, OPTION_CHOICE, .default_value = "warning",
           .choices = ALERT_SEVERITIES,
           .help = "live: roots of incidents that are at least so severe become alerts of W&B"),
    OPTION(struct wandb_config, alert_wait, OPTION_DURATION, .default_value = "1m", .min = 0,
           .max = 86400, .help = "live: W&B drops an alert that has the title of one in this time"),
    OPTION(struct wandb_config, tracking, OPTION_GROUP, .rows = TRACKING_OPTIONS,
           .row_count = OPTION_COUNT(TRACKING_OPTIONS),
           .help = "content: tracking: files of the run"),
    SENDING_OPTIONS(struct wandb_config, sending, "30s"),
};

// -- rules between options ----------------------------------------------------------------------

static void check_url(const struct wandb_config *config, struct problem_list *problems) {
    const char *url = config->base_url, *wrong = http_url_problem(url);
    if (wrong != NULL)
        problem_add(problems, "base_url",
                    "it cannot be used: %s; give an address such as https://api.wandb.ai, and the "
                    "key as api_key",
                    wrong);
    else if (strpbrk(url, "?#") != NULL || url[strlen(url) - 1] == '/')
        problem_add(problems, "base_url",
                    "leave out the slash at the end, and what follows ? or #");
}

static void check_name(const char *name, const char *key, struct problem_list *problems) {
    enum { NAME_MAX_BYTES = 128 };
    if (name == NULL)
        return;
    if (name[0] == '\0' || strlen(name) > NAME_MAX_BYTES)
        problem_add(problems, key, "it has %zu bytes; 1 to %d are allowed", strlen(name),
                    NAME_MAX_BYTES);
    else if (strpbrk(name, "/\\#?%:") != NULL)
        problem_add(problems, key, "it may not contain any of / \\ # ? %% :");
}

static void check_run_id(const char *id, struct problem_list *problems) {
    enum { GIVEN_MAX = 64 }; // leaves room for the name of a job
    if (id == NULL)
        return;
    size_t plain = 0;
    while (wandb_is_name_character(id[plain]))
        plain++;
    if (plain == 0 || id[plain] != '\0' || plain > GIVEN_MAX)
        problem_add(
            problems, "run_id",
            "\"%s\" is not a valid id: use 1 to %d letters, digits, dots, dashes and underscores",
            id, GIVEN_MAX);
}

static void wandb_validate(const void *given, struct problem_list *problems) {
    const struct wandb_config *config = given;
    check_url(config, problems);
    check_name(config->entity, "entity", problems);
    check_name(config->project, "project", problems);
    check_run_id(config->run_id, problems);
    if (config->join_run &&
        (config->run_id == NULL || config->content != WANDB_LIVE || config->mode == WANDB_OFFLINE))
        problem_add(problems, "join_run",
                    "it needs the `run_id` of the run to join, content: live, and mode: online");
    for (uint32_t i = 0; i < config->tags.count; i++) {
        size_t size = strlen(config->tags.items[i]);
        if (size < 1 || size > 64)
            problem_add(problems, "tags", "\"%s\" has %zu bytes; 1 to 64 are allowed",
                        config->tags.items[i], size);
    }
    if (config->training_run != NULL && strncmp(config->training_run, "https://", 8) != 0 &&
        strncmp(config->training_run, "http://", 7) != 0)
        problem_add(problems, "training_run", "it is not a URL such as https://wandb.ai/…");
    if (config->heartbeat_interval.ns < config->post_interval.ns)
        problem_add(problems, "heartbeat_interval", "it is shorter than post_interval");
}

// -- life ---------------------------------------------------------------------------------------

static enum status open_sink(struct wandb_exporter *self, const char *site, struct error *error) {
    assert(self->config->mode != WANDB_DISABLED && self->online == NULL && self->offline == NULL);
    if (self->config->mode == WANDB_OFFLINE)
        return wandb_offline_open(&self->offline, self->config, site, error);
    return wandb_online_open(&self->online, self->config, site, error);
}

static enum status wandb_start(void *instance, const void *config,
                               const struct component_context *context, struct error *error) {
    struct wandb_exporter *self = instance;
    self->config = config;
    if (self->config->mode == WANDB_DISABLED)
        return STATUS_OK;
    self->notes = page_notes_new();
    if (self->config->content == WANDB_TRACKING) {
        if (!context->once)
            return error_set(error, STATUS_CONFIG,
                             "content: tracking exports a run that has ended: use it with `culprit "
                             "run --once`, or content: live");
        enum status status =
            wandb_tracking_open(&self->tracking, self->config, context->site, error);
        if (status != STATUS_OK)
            return status;
    } else {
        live_init(&self->live, self->config, context->site, context->once, self->notes);
    }
    return open_sink(self, context->site, error);
}

static void wandb_stop(void *instance) {
    struct wandb_exporter *self = instance;
    wandb_online_close(self->online);
    wandb_offline_close(self->offline);
    wandb_tracking_close(self->tracking);
    page_notes_release(self->notes);
    if (self->live.config != NULL)
        live_release(&self->live);
    self->live.config = NULL;
}

static void wandb_state(void *instance, struct state_list *list) {
    struct wandb_exporter *self = instance;
    if (self->live.config != NULL)
        page_notes_state(self->notes, list);
}

static void wandb_restored(void *instance) {
    struct wandb_exporter *self = instance;
    if (self->live.config != NULL)
        page_notes_restored(self->notes);
}

// -- batches ------------------------------------------------------------------------------------

static void say_tracking(struct wandb_exporter *self, const struct batch *batch,
                         struct buffer *out) {
    assert(batch->last && self->tracking != NULL);
    char id[8 + 1];
    wandb_random_text(id, sizeof id - 1);
    id[sizeof id - 1] = '\0';
    uint64_t row = 0, sequence = 0;
    const char *given = self->config->run_id;
    struct wandb_writer writer = {.out = out,
                                  .sequence = &sequence,
                                  .row = &row,
                                  .run = slice_of(given == NULL ? id : given),
                                  .time_ns = clock_unix_ns()};
    struct page_input input = {.batch = batch,
                               .verdicts = batch->verdicts.items,
                               .verdict_count = batch->verdicts.count,
                               .notes = self->notes,
                               .max_points = PAGE_POINTS,
                               .max_ranks = PAGE_RANKS};
    struct buffer page;
    buffer_init(&page, PAGE_MAX);
    page_encode(&input, &page);
    wandb_tracking_say(self->tracking, buffer_slice(&page), &writer);
    buffer_release(&page);
}

static void wandb_encode(void *instance, const struct batch *batch, struct buffer *out) {
    struct wandb_exporter *self = instance;
    if (self->config->mode == WANDB_DISABLED)
        return;
    assert(self->notes != NULL);
    page_notes_add(self->notes, batch);
    if (self->live.config != NULL) {
        live_encode(&self->live, batch, out);
        return;
    }
    for (uint32_t i = 0; i < batch->event_count; i++)
        wandb_tracking_note(self->tracking, &batch->events[i]);
    if (batch->last)
        say_tracking(self, batch, out);
}

static enum status wandb_send(void *instance, const struct request *request,
                              struct send_outcome *outcome, struct error *error) {
    struct wandb_exporter *self = instance;
    assert(self->online == NULL || self->offline == NULL);
    if (self->online != NULL)
        return wandb_online_send(self->online, request->bytes, request->last, outcome, error);
    if (self->offline != NULL)
        return wandb_offline_send(self->offline, request->bytes, request->last, outcome, error);
    return STATUS_OK;
}

static struct send_pace wandb_pace(const void *instance) {
    const struct wandb_exporter *self = instance;
    if (self->online != NULL)
        return wandb_online_pace(self->online);
    return (struct send_pace){.not_before_ns = 0, .again_ns = UINT64_MAX};
}

static void wandb_delivered(void *instance, struct buffer *out) {
    struct wandb_exporter *self = instance;
    if (self->online != NULL)
        wandb_online_delivered(self->online, out);
    else if (self->offline != NULL)
        wandb_offline_delivered(self->offline, out);
}

static enum status wandb_resume(void *instance, struct slice delivered, struct error *error) {
    struct wandb_exporter *self = instance;
    if (self->online != NULL)
        return wandb_online_resume(self->online, delivered, error);
    if (self->offline != NULL)
        return wandb_offline_resume(self->offline, delivered, error);
    return STATUS_OK;
}

static const struct sending_config *wandb_sending(const void *config) {
    return &((const struct wandb_config *)config)->sending;
}

static bool wandb_takes_events(const void *config) {
    return ((const struct wandb_config *)config)->content == WANDB_TRACKING;
}

// Numbers of rows are given in the order in which receivers raced.
static bool wandb_waits(const void *config) {
    return ((const struct wandb_config *)config)->mode != WANDB_DISABLED;
}

const struct component_type exporter_wandb = {
    .name = "wandb",
    .summary = "Shows jobs and their verdicts in Weights & Biases, or a finished tracking run.",
    .kind = COMPONENT_EXPORTER,
    .stability = STABILITY_BETA,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct wandb_config),
    .instance_size = sizeof(struct wandb_exporter),
    .needs = FACT_VERDICTS,
    .validate = wandb_validate,
    .start = wandb_start,
    .stop = wandb_stop,
    .state_rows = STATE,
    .state_row_count = OPTION_COUNT(STATE),
    .state = wandb_state,
    .restored = wandb_restored,
    .exporter = {.takes_events = wandb_takes_events,
                 .encode = wandb_encode,
                 .send = wandb_send,
                 .pace = wandb_pace,
                 .delivered = wandb_delivered,
                 .resume = wandb_resume,
                 .sending = wandb_sending,
                 .waits_for_checkpoint = wandb_waits},
};
