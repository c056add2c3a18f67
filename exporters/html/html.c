// SPDX-License-Identifier: Apache-2.0
// The HTML exporter: when the page is made, and what is on it.
//
// Written at the last evaluation, and to a file also when a verdict changed at one; served
// (exporters/html/served.h) also at others. It shows the jobs of that evaluation, and the verdicts
// on others as they stood last.
// With inputs that end, and at the last evaluation, the page leaves as it is made, from the samples
// themselves. Live, what it shows is copied (live.h) and rendered on the exporter's own thread.
// Memory: the verdicts, the newest alerts and the size of each rank's device; live twice of that,
// and what live.h says; what is served stays until the next.
#include "pipeline/component/component.h"

#include "base/clock.h"
#include "base/log.h"
#include "config/problem.h"
#include "exporters/html/live.h"
#include "exporters/html/served.h"
#include "exporters/output/output.h"
#include "exporters/report/kept_verdicts.h"
#include "exporters/report/page/page.h"
#include "exporters/report/seen.h"

#include <assert.h>

struct html_config {
    const char *path;
    const char *endpoint;
    struct duration refresh;
    struct tls_server_config tls;
    struct auth_server_config auth;
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
    struct seen seen;
    struct kept_verdicts verdicts;
    struct live_pages *live; // NULL: there is only the last page
    struct page_owed owed;
    struct served *served; // NULL: the page is written only
    // Of whoever renders, and before that of whoever starts:
    struct page_live *kept; // for what is served
    struct buffer page;     // likewise
};
OUTPUT_COMES_FIRST(struct html_exporter);

static const struct option OPTIONS[] = {
    OPTION(struct html_config, path, OPTION_TEXT, .claim = CLAIM_FILE,
           .help = "file to write, or - for standard output, which gets the page once, at the "
                   "end. Either path or endpoint is needed, or both"),
    OPTION(struct html_config, endpoint, OPTION_TEXT, .claim = CLAIM_ENDPOINT, .address = true,
           .help = "where to serve the page: HOST:PORT, [V6]:PORT or unix:/PATH. An address that "
                   "others reach needs `auth` or `tls.client_ca_file`"),
    OPTION(struct html_config, refresh, OPTION_DURATION, .default_value = "1s", .min = 0.1,
           .max = 3600,
           .help = "how often what is served is brought up to date, at most; a change of a verdict "
                   "does not wait"),
    SERVER_SECURITY_OPTIONS(struct html_config),
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

static struct served_options served_options_of(const struct html_config *config, const char *site) {
    return (struct served_options){.endpoint = config->endpoint,
                                   .tls = &config->tls,
                                   .auth = &config->auth,
                                   .refresh_ns = (uint64_t)config->refresh.ns,
                                   .site = site};
}

static void html_validate(const void *config, struct problem_list *problems) {
    const struct html_config *given = config;
    if (given->path == NULL && given->endpoint == NULL)
        problem_add(problems, "path",
                    "a path or an endpoint is needed: where the page is written or served");
    struct served_options served = served_options_of(given, NULL);
    if (given->endpoint != NULL)
        served_check(&served, problems);
    else
        server_security_check(&given->tls, &given->auth, problems);
}

static struct page_input page_style(const struct html_exporter *self) {
    return (struct page_input){.title = self->config->title,
                               .max_points = (uint32_t)self->config->max_points,
                               .max_ranks = (uint32_t)self->config->max_ranks};
}

// What a page of the batch itself is made of.
static struct page_input page_of(const struct html_exporter *self, const struct batch *batch) {
    assert(self->notes != NULL);
    struct page_input input = page_style(self);
    input.batch = batch;
    input.verdicts = kept_verdicts_all(&self->verdicts, batch->arena, &input.verdict_count);
    input.notes = self->notes;
    input.seen = &self->seen;
    return input;
}

static void page_serve(struct html_exporter *self, struct page_input *input) {
    uint64_t begun_ns = clock_monotonic_ns();
    buffer_reset(&self->page);
    input->live = self->kept;
    page_encode(input, &self->page);
    input->live = NULL;
    // Larger than can be served: the page before stays, with its time.
    if (!self->page.failed)
        served_put(self->served, &self->page, clock_monotonic_ns() - begun_ns);
}

// A page before the first evaluation: what it waits for.
static void serve_first(struct html_exporter *self) {
    struct arena arena;
    arena_init(&arena, 1 << 16);
    struct batch none = {.arena = &arena};
    struct page_input input = page_of(self, &none);
    page_serve(self, &input);
    arena_release(&arena);
}

static enum status serve(struct html_exporter *self, const struct component_context *context,
                         struct error *error) {
    if (context->once) {
        log_write(LOG_INFO, (struct log_site){"C1020", context->site},
                  "left out: its endpoint only answers while culprit runs");
        return STATUS_OK;
    }
    struct served_options options = served_options_of(self->config, context->site);
    enum status status = served_start(&self->served, &options, error);
    if (status != STATUS_OK)
        return status;
    self->kept = page_live_new();
    serve_first(self);
    return STATUS_OK;
}

static enum status html_start(void *instance, const void *config,
                              const struct component_context *context, struct error *error) {
    struct html_exporter *self = instance;
    assert(self->notes == NULL);
    self->config = config;
    self->notes = page_notes_new();
    buffer_init(&self->page, SERVED_PAGE_MAX);
    enum status status = STATUS_OK;
    struct output_options options = {
        .path = self->config->path,
        .mode = OUTPUT_DOCUMENT,
        .sync = true,
        .site = context->site,
    };
    if (self->config->path != NULL)
        status = output_open(&self->output, &options, error);
    if (status == STATUS_OK && self->config->endpoint != NULL)
        status = serve(self, context, error);
    bool is_file = self->config->path != NULL && !self->output.is_stream;
    unsigned uses = (is_file ? PAGE_FILE : 0u) | (self->served != NULL ? PAGE_SERVED : 0u);
    if (status == STATUS_OK && !context->once && uses != 0) {
        struct page_input style = page_style(self);
        self->live = live_pages_new(&style, uses);
    }
    return status;
}

static void html_stop(void *instance) {
    struct html_exporter *self = instance;
    served_stop(self->served);
    page_live_release(self->kept);
    buffer_release(&self->page);
    output_close(&self->output);
    live_pages_release(self->live);
    page_notes_release(self->notes);
}

// What is served is copied at each evaluation, since none may come behind it, and rendered when it
// is due by the clock.
static void look(struct html_exporter *self, const struct batch *batch) {
    if (self->served != NULL && batch->evaluate) {
        live_pages_want(self->live, PAGE_SERVED);
        live_pages_hold(self->live, served_due(self->served));
    }
    live_pages_look(self->live, batch, &self->verdicts, self->notes);
    self->owed.page = (live_pages_pending(self->live) & PAGE_FILE) != 0;
}

static void html_encode(void *instance, const struct batch *batch, struct buffer *out) {
    struct html_exporter *self = instance;
    page_notes_add(self->notes, batch);
    seen_note(&self->seen, batch);
    for (uint32_t i = 0; i < batch->verdicts.count; i++)
        kept_verdicts_put(&self->verdicts, &batch->verdicts.items[i]);
    if (self->live != NULL && !batch->last) {
        look(self, batch);
        return;
    }
    if (!batch->evaluate || !batch->last)
        return;
    if (self->live != NULL)
        live_pages_supersede(self->live);
    self->owed.page = false;
    if (self->config->path == NULL)
        return;
    struct page_input input = page_of(self, batch);
    output_begin_document(&self->output, out);
    page_encode(&input, out);
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
    unsigned uses = live_pages_uses(self->live);
    struct page_input input;
    if (!live_pages_open(self->live, &input))
        return;
    if ((uses & PAGE_SERVED) != 0) {
        page_live_take(self->kept, live_pages_news(self->live));
        page_serve(self, &input);
    }
    if ((uses & PAGE_FILE) != 0) {
        input.seen = &live_pages_news(self->live)->seen;
        output_begin_document(&self->output, out);
        page_encode(&input, out);
    }
    live_pages_close(self->live);
}

static bool html_render_end(void *instance) {
    struct html_exporter *self = instance;
    bool is_wanted = live_pages_end(self->live);
    self->owed.page = (live_pages_pending(self->live) & PAGE_FILE) != 0;
    return is_wanted;
}

static enum status html_send(void *instance, const struct request *request,
                             struct send_outcome *outcome, struct error *error) {
    const struct html_exporter *self = instance;
    if (self->config->path != NULL)
        return output_send(instance, request, outcome, error);
    assert(request->bytes.size == 0);
    return STATUS_OK;
}

static void html_state(void *instance, struct state_list *list) {
    struct html_exporter *self = instance;
    page_notes_state(self->notes, list);
}

static void html_restored(void *instance) {
    struct html_exporter *self = instance;
    page_notes_restored(self->notes);
    if (self->live != NULL && self->owed.page)
        live_pages_want(self->live, PAGE_FILE);
    if (self->served != NULL)
        serve_first(self);
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
    .summary = "Writes or serves the report as one HTML page with charts and evidence.",
    .kind = COMPONENT_EXPORTER,
    .stability = STABILITY_BETA,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct html_config),
    .instance_size = sizeof(struct html_exporter),
    .needs = FACT_VERDICTS,
    .validate = html_validate,
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
                 .send = html_send,
                 .sending = html_sending},
};
