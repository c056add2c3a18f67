// SPDX-License-Identifier: Apache-2.0
// The W&B exporter as a component: its options, and which of its parts do the work.
//
// What is said (live.c, tracking.c) is made of the batches, as records; how it is carried out
// (online.c, offline.c) is the other half. Between them stand the sender's blocks.
#include "exporters/wandb/wandb.h"

#include "base/clock.h"
#include "exporters/report/page/page.h"
#include "exporters/wandb/live/live.h"
#include "exporters/wandb/offline/offline.h"
#include "exporters/wandb/online/online.h"
#include "exporters/wandb/tracking/tracking.h"

#include <ctype.h>

enum { PAGE_MAX = 64 << 20, PAGE_POINTS = 600, PAGE_RANKS = 64 };

struct wandb_exporter {
    const struct wandb_config *config;
    struct wandb_online *online;     // with mode: online
    struct wandb_offline *offline;   // with mode: offline
    struct wandb_tracking *tracking; // with content: tracking
    struct page_notes *notes;
    struct live live; // with content: live
    struct live_counter counter;
    bool is_live;
};

static const char *const MODES[] = {"online", "offline", "disabled", NULL};
static const char *const CONTENTS[] = {"live", "tracking", NULL};

#define AT_TRACKING(field) offsetof(struct wandb_tracking_config, field)

static const struct option TRACKING_OPTIONS[] = {
    {.name = "command_name",
     .type = OPTION_TEXT,
     .offset = AT_TRACKING(command_name),
     .default_value = "gpumemprof-track",
     .help = "the command that was run: job type and first part of the run's name"},
    {.name = "stats_file",
     .type = OPTION_TEXT,
     .offset = AT_TRACKING(stats_file),
     .help = "JSON file with the tracker's statistics; without it they are computed from the "
             "events"},
    {.name = "session_file",
     .type = OPTION_TEXT,
     .offset = AT_TRACKING(session_file),
     .help = "JSON file with the session summary: names the run, groups it by its job"},
    {.name = "output_file",
     .type = OPTION_TEXT,
     .offset = AT_TRACKING(output_file),
     .help = "what the tracker wrote, kept as an artifact; the page is written beside it"},
    {.name = "sink_directory",
     .type = OPTION_TEXT,
     .offset = AT_TRACKING(sink_directory),
     .help = "the tracker's telemetry sink, kept as an artifact"},
    {.name = "oom_dump",
     .type = OPTION_TEXT,
     .offset = AT_TRACKING(oom_dump),
     .help = "directory of an out-of-memory dump, kept as an artifact"},
    {.name = "attribution_bundle",
     .type = OPTION_TEXT,
     .offset = AT_TRACKING(attribution_bundle),
     .help = "directory of an attribution bundle, kept as an artifact"},
    {.name = "max_events",
     .type = OPTION_INT,
     .offset = AT_TRACKING(max_events),
     .default_value = "1000000",
     .min = 1,
     .max = 100000000,
     .help = "events that are kept for the timeline, some 100 bytes each; further ones are only "
             "counted"},
};

#define AT(field) offsetof(struct wandb_config, field)

static const struct option OPTIONS[] = {
    {.name = "mode",
     .type = OPTION_CHOICE,
     .offset = AT(mode),
     .default_value = "online",
     .choices = MODES,
     .help = "online: to a server; offline: into a directory that `wandb sync` uploads; disabled: "
             "nothing"},
    {.name = "content",
     .type = OPTION_CHOICE,
     .offset = AT(content),
     .default_value = "live",
     .choices = CONTENTS,
     .help = "live: each job as a run, with rows of its ranks and its verdicts; tracking: one "
             "finished tracking run as stormlog exports it, for inputs that end"},
    {.name = "base_url",
     .type = OPTION_TEXT,
     .offset = AT(base_url),
     .default_value = "https://api.wandb.ai",
     .address = true,
     .help = "the server"},
    {.name = "api_key",
     .type = OPTION_SECRET,
     .offset = AT(api_key),
     .help = "best as ${env:WANDB_API_KEY}; without it ~/.netrc is asked"},
    {.name = "ca_file",
     .type = OPTION_TEXT,
     .offset = AT(ca_file),
     .help = "certificates of the authorities to trust, instead of the system's"},
    {.name = "proxy",
     .type = OPTION_TEXT,
     .offset = AT(proxy),
     .address = true,
     .help = "proxy for all requests, instead of that of the environment (https_proxy, no_proxy)"},
    {.name = "entity",
     .type = OPTION_TEXT,
     .offset = AT(entity),
     .help = "team or user; without it the key's default"},
    {.name = "project",
     .type = OPTION_TEXT,
     .offset = AT(project),
     .default_value = "stormlog",
     .help = "project that the run belongs to"},
    {.name = "run_id",
     .type = OPTION_TEXT,
     .offset = AT(run_id),
     .help = "id of the run; a run that is there goes on. Without it culprit-JOB, and for tracking "
             "a random one"},
    {.name = "run_name",
     .type = OPTION_TEXT,
     .offset = AT(run_name),
     .help = "what the run is called; without it the job, and for tracking command and session"},
    {.name = "group",
     .type = OPTION_TEXT,
     .offset = AT(group),
     .help = "group of the run; without it its job"},
    {.name = "job_type",
     .type = OPTION_TEXT,
     .offset = AT(job_type),
     .help = "without it culprit, and for tracking the command's name"},
    {.name = "tags",
     .type = OPTION_TEXT_LIST,
     .offset = AT(tags),
     .help = "tags of the run, each 1 to 64 characters"},
    {.name = "notes", .type = OPTION_TEXT, .offset = AT(notes), .help = "notes of the run"},
    {.name = "directory",
     .type = OPTION_TEXT,
     .offset = AT(directory),
     .default_value = "wandb",
     .help = "offline: where the run directories are made"},
    {.name = "log_tables",
     .type = OPTION_BOOL,
     .offset = AT(log_tables),
     .default_value = "true",
     .help = "tables, charts and the page"},
    {.name = "log_artifacts",
     .type = OPTION_BOOL,
     .offset = AT(log_artifacts),
     .default_value = "false",
     .help = "tracking: the files and directories that are named under `tracking`"},
    {.name = "log_attribution",
     .type = OPTION_BOOL,
     .offset = AT(log_attribution),
     .default_value = "false",
     .help = "tracking: what the attribution bundle, or else the out-of-memory dump, says"},
    {.name = "row_interval",
     .type = OPTION_DURATION,
     .offset = AT(row_interval),
     .default_value = "15s",
     .min = 1,
     .max = 86400,
     .help = "live: of each rank at most one row in this time"},
    {.name = "table_interval",
     .type = OPTION_DURATION,
     .offset = AT(table_interval),
     .default_value = "1m",
     .min = 1,
     .max = 86400,
     .help = "live: tables and the page are told at most so often"},
    {.name = "post_interval",
     .type = OPTION_DURATION,
     .offset = AT(post_interval),
     .default_value = "15s",
     .min = 0.01,
     .max = 3600,
     .help = "posts stand at least so far apart; the last one does not wait"},
    {.name = "heartbeat_interval",
     .type = OPTION_DURATION,
     .offset = AT(heartbeat_interval),
     .default_value = "30s",
     .min = 0.01,
     .max = 3600,
     .help = "a run with nothing to say shows after this time that it is alive"},
    {.name = "max_ranks",
     .type = OPTION_INT,
     .offset = AT(max_ranks),
     .default_value = "64",
     .min = 0,
     .max = 10000,
     .help = "live: ranks of a job that get rows, the lowest ones; suspects always do"},
    {.name = "max_runs",
     .type = OPTION_INT,
     .offset = AT(max_runs),
     .default_value = "64",
     .min = 1,
     .max = 10000,
     .help = "live: jobs that are runs at the same time"},
    {.name = "tracking",
     .type = OPTION_GROUP,
     .offset = AT(tracking),
     .rows = TRACKING_OPTIONS,
     .row_count = OPTION_COUNT(TRACKING_OPTIONS),
     .help = "content: tracking: what belongs to the run beside its events"},
    SENDING_OPTIONS(struct wandb_config, sending, "30s"),
};

// -- rules between options ----------------------------------------------------------------------

static void check_url(const struct wandb_config *config, struct problem_list *problems) {
    const char *url = config->base_url;
    bool secure = strncmp(url, "https://", 8) == 0;
    bool plain = strncmp(url, "http://", 7) == 0;
    size_t size = strlen(url), start = secure ? 8 : 7;
    if (strchr(url, '@') != NULL)
        problem_add(problems, "base_url",
                    "it holds a user name or password before the @; give the key as api_key");
    else if ((!secure && !plain) || size == start || strpbrk(url, "?# ") != NULL)
        problem_add(problems, "base_url", "\"%s\" is no address such as https://api.wandb.ai", url);
    else if (url[size - 1] == '/')
        problem_add(problems, "base_url", "leave out the slash at the end");
}

static void check_name(const char *name, const char *key, struct problem_list *problems) {
    enum { NAME_MAX_BYTES = 128 };
    if (name == NULL)
        return;
    if (name[0] == '\0' || strlen(name) > NAME_MAX_BYTES)
        problem_add(problems, key, "it has %zu bytes; 1 to %d are right", strlen(name),
                    NAME_MAX_BYTES);
    else if (strpbrk(name, "/\\#?%:") != NULL)
        problem_add(problems, key, "it may not contain any of / \\ # ? %% :");
}

static void check_run_id(const char *id, struct problem_list *problems) {
    enum { GIVEN_MAX = 64 }; // leaves room for the name of a job
    if (id == NULL)
        return;
    size_t plain = 0;
    while (isalnum((unsigned char)id[plain]) || (id[plain] != '\0' && strchr("._-", id[plain])))
        plain++;
    if (plain == 0 || id[plain] != '\0' || plain > GIVEN_MAX)
        problem_add(problems, "run_id",
                    "\"%s\" is no id: 1 to %d letters, digits, dots, dashes and underscores", id,
                    GIVEN_MAX);
}

static void wandb_validate(const void *given, struct problem_list *problems) {
    const struct wandb_config *config = given;
    check_url(config, problems);
    check_name(config->entity, "entity", problems);
    check_name(config->project, "project", problems);
    check_run_id(config->run_id, problems);
    for (uint32_t i = 0; i < config->tags.count; i++) {
        size_t size = strlen(config->tags.items[i]);
        if (size < 1 || size > 64)
            problem_add(problems, "tags", "\"%s\" has %zu bytes; 1 to 64 are right",
                        config->tags.items[i], size);
    }
    if (config->heartbeat_interval.ns < config->post_interval.ns)
        problem_add(problems, "heartbeat_interval", "it is shorter than post_interval");
}

// -- life ---------------------------------------------------------------------------------------

static enum status open_sink(struct wandb_exporter *self, const char *site, struct error *error) {
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
        self->is_live = true;
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
    if (self->is_live)
        live_release(&self->live);
    self->is_live = false;
}

static void wandb_state(void *instance, struct state_list *list) {
    struct wandb_exporter *self = instance;
    if (!self->is_live)
        return;
    live_state(&self->live, list);
    page_notes_state(self->notes, list);
}

static void wandb_restored(void *instance) {
    struct wandb_exporter *self = instance;
    if (!self->is_live)
        return;
    live_restored(&self->live);
    page_notes_restored(self->notes);
}

// -- batches ------------------------------------------------------------------------------------

static void say_tracking(struct wandb_exporter *self, const struct batch *batch,
                         struct buffer *out) {
    char id[8 + 1];
    wandb_random_text(id, sizeof id - 1);
    id[sizeof id - 1] = '\0';
    uint64_t row = 0;
    const char *given = self->config->run_id;
    struct wandb_writer writer = {.out = out,
                                  .sequence = &self->counter.sequence,
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
    page_notes_add(self->notes, batch);
    if (self->is_live) {
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
