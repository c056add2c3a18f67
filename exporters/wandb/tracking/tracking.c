// SPDX-License-Identifier: Apache-2.0
// Exports one finished tracking run, in the order that W&B needs.
//
// The summary first, so that values of the rows come on top under their own keys; a row for each
// point; the tables; the page; artifacts. What each holds is in the files beside this one. Cost: a
// row for each event until the end (rows.c), then some hundred records.
#include "exporters/wandb/tracking/tracking.h"

#include "exporters/wandb/tracking/parts.h"
#include "pipeline/model/event.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/text/utf8.h"

enum { NAME_ID_CHARACTERS = 8 };

enum status wandb_tracking_open(struct wandb_tracking **opened, const struct wandb_config *config,
                                const char *site, struct error *error) {
    const struct wandb_tracking_config *options = &config->tracking;
    struct wandb_tracking *tracking = memory_zero(1, sizeof *tracking);
    tracking->config = config;
    tracking->options = options;
    tracking->site = site;
    tracking_rows_init(tracking);
    buffer_init(&tracking->members, TRACKING_MEMBERS_MAX);
    enum status status = STATUS_OK;
    if (options->stats_file != NULL)
        status = tracking_file_read(&tracking->stats, options->stats_file, "the file of statistics",
                                    error);
    if (status == STATUS_OK && options->session_file != NULL)
        status = tracking_file_read(&tracking->session, options->session_file, "the session file",
                                    error);
    if (status == STATUS_OK && options->session_file != NULL)
        status = tracking_check_session(&tracking->session, options->session_file, error);
    if (status == STATUS_OK)
        *opened = tracking;
    else
        wandb_tracking_close(tracking);
    return status;
}

void wandb_tracking_close(struct wandb_tracking *tracking) {
    if (tracking == NULL)
        return;
    tracking_artifacts_release(tracking);
    tracking_rows_release(tracking);
    tracking_file_release(&tracking->stats);
    tracking_file_release(&tracking->session);
    wandb_table_release(&tracking->table);
    buffer_release(&tracking->members);
    memory_give(tracking);
}

void wandb_tracking_note(struct wandb_tracking *tracking, const struct event *event) {
    if (event->kind == EVENT_TELEMETRY)
        tracking_keep(tracking, event);
}

// -- the run --------------------------------------------------------------------------------------

static struct slice text_or_none(const char *text) {
    return text == NULL ? SLICE("") : slice_of(text);
}

// COMMAND, or COMMAND-ID with the first characters of the session's id.
static void append_name(const struct wandb_tracking *tracking, struct buffer *name) {
    struct slice id = tracking_file_text(&tracking->session, "session_id");
    buffer_append(name, text_or_none(tracking->options->command_name));
    if (id.data == NULL)
        return;
    size_t end = 0;
    for (int i = 0; i < NAME_ID_CHARACTERS && end < id.size; i++) {
        uint32_t code_point;
        size_t length = utf8_decode(id, end, &code_point);
        end += length == 0 ? 1 : length;
    }
    buffer_append_char(name, '-');
    buffer_append(name, (struct slice){id.data, end});
}

static void say_run(struct wandb_tracking *tracking, struct wandb_writer *writer) {
    const struct wandb_config *config = tracking->config;
    struct slice group = text_or_none(config->group), job_type = text_or_none(config->job_type);
    struct buffer name, visualize;
    buffer_init(&name, TRACKING_MEMBERS_MAX);
    buffer_init(&visualize, TRACKING_MEMBERS_MAX);
    if (config->run_name != NULL)
        buffer_append_text(&name, config->run_name);
    else
        append_name(tracking, &name);
    if (config->log_tables)
        tracking_charts(tracking, &visualize);
    wandb_say(
        writer,
        &(struct wandb_record){
            .kind = WANDB_RUN,
            .display_name = buffer_slice(&name),
            .group = group.size > 0 ? group : tracking_file_text(&tracking->session, "job_id"),
            .job_type =
                job_type.size > 0 ? job_type : text_or_none(tracking->options->command_name),
            .members = buffer_slice(&visualize),
        });
    buffer_release(&name);
    buffer_release(&visualize);
}

static void say_summary(struct wandb_tracking *tracking, struct wandb_writer *writer) {
    buffer_reset(&tracking->members);
    tracking_summary(tracking, &tracking->members);
    if (tracking->members.failed) {
        log_write(LOG_WARN, (struct log_site){"C3312", tracking->site},
                  "the summary is left out: its texts are too large");
        return;
    }
    wandb_say_members(writer, WANDB_SUMMARY, &tracking->members);
}

static void say_tables(struct wandb_tracking *tracking, struct slice page,
                       struct wandb_writer *writer) {
    tracking_say_alerts(tracking, writer);
    if (tracking->point_count == 0)
        return;
    tracking_say_timeline(tracking, writer);
    if (page.size > 0)
        tracking_say_dashboard(tracking, page, writer);
    else
        log_write(LOG_WARN, (struct log_site){"C3312", tracking->site},
                  "the page is left out: it is too large");
}

static const char *attribution_directory(const struct wandb_tracking_config *options) {
    if (tracking_is_directory(options->attribution_bundle))
        return options->attribution_bundle;
    return tracking_is_directory(options->oom_dump) ? options->oom_dump : NULL;
}

void wandb_tracking_say(struct wandb_tracking *tracking, struct slice page,
                        struct wandb_writer *writer) {
    const struct wandb_config *config = tracking->config;
    assert(writer->run.size > 0 && tracking->point_count == 0); // once
    tracking_choose_points(tracking);
    if (tracking->contexts_left_out > 0)
        log_write(LOG_WARN, (struct log_site){"C3311", tracking->site},
                  "the contexts of %lu events are left out: together they exceed 256 MiB",
                  (unsigned long)tracking->contexts_left_out);
    say_run(tracking, writer);
    say_summary(tracking, writer);
    tracking_say_points(tracking, writer);
    if (config->log_tables)
        say_tables(tracking, page, writer);
    if (config->log_artifacts)
        tracking_say_artifacts(tracking, writer);
    const char *attributed = attribution_directory(tracking->options);
    if (config->log_attribution && attributed != NULL)
        tracking_say_attribution(tracking, attributed, writer);
    wandb_say(writer, &(struct wandb_record){.kind = WANDB_FINISH});
}
