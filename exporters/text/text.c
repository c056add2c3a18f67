// SPDX-License-Identifier: Apache-2.0
// The text exporter: how the report gets to a person.
//
// The style is found out once, at the start: colours and width from the terminal, UTF-8 from the
// locale. The report is made at the last evaluation and goes out whole.
#include "pipeline/component/component.h"

#include "base/log.h"
#include "config/problem.h"
#include "exporters/output/output.h"
#include "exporters/report/event_places.h"
#include "exporters/report/kept_verdicts.h"
#include "exporters/report/seen.h"
#include "exporters/report/text/layout.h"
#include "exporters/report/text/parts.h"
#include "exporters/report/text/report.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum color_choice { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };
enum { WIDTH_MIN = 40, WIDTH_MAX = 400, WIDTH_DEFAULT = 80 };

struct text_config {
    const char *path;
    const char *verdict;
    int color; // enum color_choice
    int64_t width;
    bool verbose;
};

struct text_exporter {
    struct output output;
    struct text_style style;
    struct seen seen;
    const char *verdict; // NULL: the report
    struct event_places places;
    struct kept_verdicts verdicts; // live: the last batch holds only what changed with it
    bool once;
};
OUTPUT_COMES_FIRST(struct text_exporter);

static const char *const COLORS[] = {"auto", "always", "never", NULL};

static const struct option OPTIONS[] = {
    OPTION(struct text_config, path, OPTION_TEXT, .claim = CLAIM_FILE, .default_value = "-",
           .help = "file to write, or - for standard output"),
    OPTION(
        struct text_config, verdict, OPTION_TEXT,
        .help =
            "only the verdict with this id, or the beginning of one: each piece of its evidence, "
            "and where it stands in the input; 32 bytes an event are kept for that"),
    OPTION(struct text_config, color, OPTION_CHOICE, .default_value = "auto", .choices = COLORS,
           .help = "auto: on a terminal, unless NO_COLOR is set or TERM is dumb"),
    OPTION(struct text_config, width, OPTION_INT, .default_value = "0", .min = 0, .max = WIDTH_MAX,
           .help = "columns of a line, 40 to 400; 0: the terminal's, or 80"),
    OPTION(struct text_config, verbose, OPTION_BOOL, .default_value = "false",
           .help =
               "all details also where nothing was found, and how to add evidence that was absent"),
};

static void text_validate(const void *config, struct problem_list *problems) {
    const struct text_config *given = config;
    if (given->width > 0 && given->width < WIDTH_MIN)
        problem_add(problems, "width", "%d is too narrow for the report; write 0 or %d to %d",
                    (int)given->width, WIDTH_MIN, WIDTH_MAX);
}

static bool environment_set(const char *name) {
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0';
}

static bool color_wanted(enum color_choice choice, bool terminal) {
    if (choice != COLOR_AUTO)
        return choice == COLOR_ALWAYS;
    const char *kind = getenv("TERM");
    return terminal && !environment_set("NO_COLOR") && (kind == NULL || strcmp(kind, "dumb") != 0);
}

// The first of these that is set decides, as in the C library.
static bool locale_is_utf8(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value == NULL || value[0] == '\0')
            continue;
        return strcasestr(value, "utf-8") != NULL || strcasestr(value, "utf8") != NULL;
    }
    return false;
}

static uint32_t page_width(int64_t wanted, bool terminal) {
    struct winsize size = {0};
    if (wanted > 0)
        return (uint32_t)wanted;
    if (!terminal || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return WIDTH_DEFAULT;
    return size.ws_col < WIDTH_MIN ? WIDTH_MIN : size.ws_col > WIDTH_MAX ? WIDTH_MAX : size.ws_col;
}

static enum status text_start(void *instance, const void *config,
                              const struct component_context *context, struct error *error) {
    struct text_exporter *self = instance;
    const struct text_config *given = config;
    struct output_options options = {
        .path = given->path,
        .mode = OUTPUT_DOCUMENT,
        .sync = true,
        .site = context->site,
    };
    self->verdict = given->verdict;
    self->once = context->once;
    if (context->components != NULL)
        self->places.components = *context->components;
    enum status status = output_open(&self->output, &options, error);
    if (status != STATUS_OK)
        return status;
    bool terminal = self->output.path == NULL && isatty(STDOUT_FILENO) != 0;
    self->style = (struct text_style){
        .color = color_wanted((enum color_choice)given->color, terminal),
        .utf8 = locale_is_utf8(),
        .width = page_width(given->width, terminal),
        .verbose = given->verbose,
    };
    assert(self->style.width >= WIDTH_MIN && self->style.width <= WIDTH_MAX);
    return STATUS_OK;
}

static void text_stop(void *instance) {
    struct text_exporter *self = instance;
    output_close(&self->output);
    event_places_release(&self->places);
}

// The batch with all verdicts as they stand.
static struct batch whole_batch(const struct text_exporter *self, const struct batch *batch) {
    struct batch whole = *batch;
    uint32_t count = 0;
    const struct verdict *all = kept_verdicts_all(&self->verdicts, batch->arena, &count);
    whole.verdicts.items = arena_zero(batch->arena, count, sizeof *all);
    whole.verdicts.count = whole.verdicts.capacity = count;
    if (count > 0)
        memcpy(whole.verdicts.items, all, count * sizeof *all);
    return whole;
}

static void text_encode(void *instance, const struct batch *batch, struct buffer *out) {
    struct text_exporter *self = instance;
    assert(self->style.width >= WIDTH_MIN); // it was started
    seen_note(&self->seen, batch);
    if (self->verdict != NULL)
        event_places_note(&self->places, batch);
    for (uint32_t i = 0; !self->once && i < batch->verdicts.count; i++)
        kept_verdicts_put(&self->verdicts, &batch->verdicts.items[i]);
    if (!batch->evaluate || !batch->last)
        return;
    struct batch whole = self->once ? *batch : whole_batch(self, batch);
    batch = &whole;
    output_begin_document(&self->output, out);
    struct text_page page = {.style = &self->style, .arena = batch->arena, .out = out};
    if (self->verdict == NULL)
        text_report_append(batch, &self->style, &self->seen, out);
    else if (!text_explain_append(&page, batch, slice_of(self->verdict), &self->places))
        log_write(LOG_WARN, (struct log_site){"C3211", self->output.options.site},
                  "there is no verdict %.100s, or several begin so; nothing is written",
                  self->verdict);
}

static const struct state_row STATE[] = {
    STATE_PART(struct text_exporter, verdicts, "text.verdicts", kept_verdicts_part)};

const struct component_type exporter_text = {
    .name = "text",
    .summary = "Writes a report for people at the end: who started it, when, how much, how sure.",
    .kind = COMPONENT_EXPORTER,
    .stability = STABILITY_BETA,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct text_config),
    .instance_size = sizeof(struct text_exporter),
    .needs = FACT_VERDICTS,
    .validate = text_validate,
    .start = text_start,
    .stop = text_stop,
    .state_rows = STATE,
    .state_row_count = OPTION_COUNT(STATE),
    .exporter = {.encode = text_encode, .send = output_send},
};
