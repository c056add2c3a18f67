// SPDX-License-Identifier: Apache-2.0
// The HTML exporter: when the page is written, and what is on it.
//
// At the last evaluation, and to a file also when a verdict changed at one. It shows the jobs of
// that evaluation, and the verdicts on others as they stood last.
// With inputs that end, and at the last evaluation, the page leaves as it is made, from the samples
// themselves. Live, what it shows is copied (live.h) and rendered on the exporter's own thread.
// Memory: the verdicts, the newest alerts and the size of each rank's device; live twice of that,
// and what live.h says.
#include "pipeline/component/component.h"

#include "exporters/html/live.h"
#include "exporters/output/output.h"
#include "exporters/report/kept_verdicts.h"
#include "exporters/report/page/page.h"

#include <assert.h>

struct html_config {
    const char *path;
    const char *title;
    int64_t max_points;
    int64_t max_ranks;
    struct sending_config sending;
};

// Of the last page whether it is still to be made: what it shows is in no checkpoint before that,
// so a start makes one at its first evaluation.
struct page_owed {
    bool page;
};

struct html_exporter {
    struct output output;
    const struct html_config *config;
    struct page_notes *notes;
    struct kept_verdicts verdicts;
    struct live_pages *live; // NULL: there is only the last page
    struct page_owed owed;
};
OUTPUT_COMES_FIRST(struct html_exporter);

static const struct option OPTIONS[] = {
    OPTION(struct html_config, path, OPTION_TEXT, .claim = CLAIM_FILE, .required = true,
           .help = "file to write, or - for standard output, which gets the page once, at the end"),
    OPTION(struct html_config, title, OPTION_TEXT,
           .help = "heading of the page (default: made from the job's name)"),
    OPTION(
        struct html_config, max_points, OPTION_INT, .default_value = "600", .min = 2, .max = 10000,
        .help = "points of one line; of a longer series the least and the most of each stretch are "
                "drawn. With many lines each has fewer, so that the page stays small"),
    OPTION(struct html_config, max_ranks, OPTION_INT, .default_value = "64", .min = 0, .max = 2000,
           .help =
               "ranks of a job that have a line of their own beside the suspects; the others are "
               "drawn together, as a band from the least to the most of them"),
    SENDING_OPTIONS(struct html_config, sending, "5s"),
};

static enum status html_start(void *instance, const void *config,
                              const struct component_context *context, struct error *error) {
    struct html_exporter *self = instance;
    assert(self->notes == NULL);
    self->config = config;
    self->notes = page_notes_new();
    struct output_options options = {
        .path = self->config->path,
        .mode = OUTPUT_DOCUMENT,
        .sync = true,
        .site = context->site,
    };
    enum status status = output_open(&self->output, &options, error);
    if (status == STATUS_OK && !context->once && !self->output.is_stream)
        self->live = live_pages_new(&(struct page_input){
            .title = self->config->title,
            .max_points = (uint32_t)self->config->max_points,
            .max_ranks = (uint32_t)self->config->max_ranks,
        });
    return status;
}

static void html_stop(void *instance) {
    struct html_exporter *self = instance;
    output_close(&self->output);
    live_pages_release(self->live);
    page_notes_release(self->notes);
}

static void page_append(struct html_exporter *self, const struct batch *batch, struct buffer *out) {
    assert(self->notes != NULL && batch->evaluate);
    uint32_t count = 0;
    const struct verdict *verdicts = kept_verdicts_all(&self->verdicts, batch->arena, &count);
    struct page_input input = {
        .title = self->config->title,
        .batch = batch,
        .verdicts = verdicts,
        .verdict_count = count,
        .notes = self->notes,
        .max_points = (uint32_t)self->config->max_points,
        .max_ranks = (uint32_t)self->config->max_ranks,
    };
    output_begin_document(&self->output, out);
    page_encode(&input, out);
}

static void html_encode(void *instance, const struct batch *batch, struct buffer *out) {
    struct html_exporter *self = instance;
    page_notes_add(self->notes, batch);
    for (uint32_t i = 0; i < batch->verdicts.count; i++)
        kept_verdicts_put(&self->verdicts, &batch->verdicts.items[i]);
    if (self->live != NULL && !batch->last) {
        live_pages_look(self->live, batch, &self->verdicts, self->notes);
        self->owed.page = live_pages_owes(self->live) || live_pages_has_page(self->live);
    } else if (batch->evaluate && batch->last) {
        if (self->live != NULL)
            live_pages_supersede(self->live);
        self->owed.page = false;
        page_append(self, batch, out);
    }
}

// -- on the exporter's own thread -----------------------------------------------------------------

static uint64_t html_render_due(const void *instance) {
    const struct html_exporter *self = instance;
    return self->live == NULL ? UINT64_MAX : live_pages_due(self->live);
}

static void html_render_begin(void *instance, bool all) {
    struct html_exporter *self = instance;
    live_pages_begin(self->live, all);
}

static void html_render_run(void *instance, struct buffer *out) {
    struct html_exporter *self = instance;
    if (live_pages_has_page(self->live))
        output_begin_document(&self->output, out);
    live_pages_render(self->live, out);
}

static bool html_render_end(void *instance) {
    struct html_exporter *self = instance;
    bool is_wanted = live_pages_end(self->live);
    self->owed.page = live_pages_owes(self->live);
    return is_wanted;
}

static void html_state(void *instance, struct state_list *list) {
    struct html_exporter *self = instance;
    page_notes_state(self->notes, list);
}

static void html_restored(void *instance) {
    struct html_exporter *self = instance;
    page_notes_restored(self->notes);
    if (self->live != NULL && self->owed.page)
        live_pages_want(self->live);
}

static const struct sending_config *html_sending(const void *config) {
    return &((const struct html_config *)config)->sending;
}

static const struct state_row STATE[] = {
    STATE_PART(struct html_exporter, verdicts, "html.verdicts", kept_verdicts_part),
    STATE_STRUCT(struct html_exporter, owed, "html.owed"),
};

const struct component_type exporter_html = {
    .name = "html",
    .summary = "Writes the report as one HTML page with charts and evidence.",
    .kind = COMPONENT_EXPORTER,
    .stability = STABILITY_BETA,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct html_config),
    .instance_size = sizeof(struct html_exporter),
    .needs = FACT_VERDICTS,
    .start = html_start,
    .stop = html_stop,
    .state_rows = STATE,
    .state_row_count = OPTION_COUNT(STATE),
    .state = html_state,
    .restored = html_restored,
    .exporter = {.encode = html_encode,
                 .render = {.due = html_render_due,
                            .begin = html_render_begin,
                            .run = html_render_run,
                            .end = html_render_end},
                 .send = output_send,
                 .sending = html_sending},
};
