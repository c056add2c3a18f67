// SPDX-License-Identifier: Apache-2.0
#include "cli/top/view.h"

#include "base/text/display.h"
#include "base/text/human.h"
#include "base/text/rfc3339.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { NAME_MIN = 10, NAME_MAX_COLUMNS = 28, LINES_MAX = 4096, LINE_BYTES_MAX = 4096 };

// -- lines ----------------------------------------------------------------------------------------

static void add_line(struct view *view, enum view_style style, struct slice text) {
    assert(view->count <= view->capacity);
    if (view->count == LINES_MAX)
        return;
    if (view->count == view->capacity) {
        uint32_t capacity = view->capacity == 0 ? 64 : view->capacity * 2;
        view->lines =
            arena_enlarge(view->arena, view->lines, view->count, capacity, sizeof *view->lines);
        view->capacity = capacity;
    }
    while (text.size > 0 && text.data[text.size - 1] == ' ')
        text.size--;
    view->lines[view->count++] =
        (struct view_line){.text = arena_copy(view->arena, text), .style = style};
}

__attribute__((format(printf, 3, 4))) static void
add_format(struct view *view, enum view_style style, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    add_line(view, style, slice_of(arena_format_list(view->arena, format, arguments)));
    va_end(arguments);
}

static void add_blank(struct view *view) {
    if (view->count > 0)
        add_line(view, STYLE_PLAIN, (struct slice){0});
}

static size_t character_size(unsigned char first) {
    return first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

// As much of the text as fits into so many columns.
static struct slice text_fitting(struct slice text, uint32_t columns) {
    size_t at = 0, used = 0;
    while (at < text.size) {
        size_t size = character_size((unsigned char)text.data[at]);
        if (size > text.size - at)
            size = text.size - at;
        size_t width = display_columns((struct slice){text.data + at, size});
        if (used + width > columns)
            break;
        used += width;
        at += size;
    }
    return (struct slice){text.data, at};
}

struct slice view_cut(struct slice text, uint32_t columns, bool *more) {
    struct slice cut = text_fitting(text, columns);
    *more = cut.size < text.size && columns > 0;
    return *more ? text_fitting(text, columns - 1) : cut;
}

// The same, but ends behind a word where one is over; how much of `text` that takes with the blanks
// that follow stands in *taken.
static struct slice text_words(struct slice text, uint32_t columns, size_t *taken) {
    struct slice cut = text_fitting(text, columns);
    size_t end = cut.size;
    while (cut.size < text.size && end > 0 && text.data[end] != ' ')
        end--;
    if (end > 0)
        cut.size = end;
    *taken = cut.size;
    while (*taken < text.size && text.data[*taken] == ' ')
        ++*taken;
    return cut;
}

// -- values ---------------------------------------------------------------------------------------

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

static double number_of(const json_t *object, const char *key) {
    static const double most = 9e18; // fits an int64_t
    double number = json_number_value(json_object_get(object, key));
    return number > most ? most : number < -most ? -most : number;
}

static bool has(const json_t *object, const char *key) {
    return json_object_get(object, key) != NULL;
}

// A text of events, safe for a terminal.
static const char *safe(const struct view *view, const char *text) {
    struct buffer out;
    buffer_init(&out, LINE_BYTES_MAX * 4);
    display_append(&out, slice_of(text), LINE_BYTES_MAX);
    const char *copy = arena_text(view->arena, buffer_slice(&out));
    buffer_release(&out);
    return copy;
}

// The one of the list `key` of `document` whose `name_key` is `name`, and its pipeline the same.
static const json_t *same_in(const json_t *document, const char *key, const json_t *item,
                             const char *name_key) {
    size_t i;
    const json_t *other;
    json_array_foreach(json_object_get(document, key), i,
                       other) if (strcmp(text_of(other, name_key), text_of(item, name_key)) == 0 &&
                                  strcmp(text_of(other, "pipeline"), text_of(item, "pipeline")) ==
                                      0) return other;
    return NULL;
}

// What was added to a counter in a second; negative: not known.
static double rate_of(const json_t *now, const json_t *before, const char *key, double seconds) {
    if (before == NULL || seconds <= 0)
        return -1;
    double added = number_of(now, key) - number_of(before, key);
    return added < 0 ? -1 : added / seconds; // it began anew: a reload
}

// "812", "1.2k", "3.4M"; "-" when negative.
static const char *short_number(const struct view *view, double value) {
    static const char *const units[] = {"", "k", "M", "G", "T"};
    unsigned unit = 0;
    if (value < 0)
        return "-";
    while (value >= 999.5 && unit < 4) {
        value /= 1000;
        unit++;
    }
    bool decimals = value > 0 && value < 9.95 && (unit > 0 || value != (double)(long)value);
    return arena_format(view->arena, "%.*f%s", decimals ? 1 : 0, value, units[unit]);
}

static const char *short_age(const struct view *view, const json_t *object, const char *key) {
    char text[HUMAN_MAX];
    if (!has(object, key))
        return "-";
    double seconds = number_of(object, key);
    if (seconds >= 2 * 86400)
        return arena_format(view->arena, "%.0f d", seconds / 86400);
    if (seconds < 10)
        return arena_format(view->arena, "%.1f s", seconds);
    human_duration((__int128)(seconds * 1e9), text);
    return arena_format(view->arena, "%s", text);
}

static const char *bytes_of(const struct view *view, const json_t *object, const char *key) {
    char text[HUMAN_MAX];
    human_bytes((int64_t)number_of(object, key), text);
    return arena_format(view->arena, "%s", text);
}

// `text`, and blanks up to so many columns; longer texts are cut.
static const char *padded(const struct view *view, const char *text, uint32_t columns) {
    bool more;
    struct slice cut = view_cut(slice_of(text), columns, &more);
    size_t used = display_columns(cut) + more;
    return arena_format(view->arena, "%.*s%s%*s", (int)cut.size, cut.data, more ? "…" : "",
                        (int)(columns - used), "");
}

// How wide the column of names is: that of the longest, within bounds.
static uint32_t name_width(const struct view *view, const json_t *list, const char *key) {
    size_t width = NAME_MIN, i;
    const json_t *item;
    json_array_foreach(list, i, item) {
        size_t own = display_columns(slice_of(safe(view, text_of(item, key))));
        width = own > width ? own : width;
    }
    return (uint32_t)(width < NAME_MAX_COLUMNS ? width : NAME_MAX_COLUMNS);
}

static const char *state_of(const json_t *component) {
    const char *state = text_of(component, "status");
    static const struct {
        const char *status, *word;
    } words[] = {{"StatusOK", "ok"},
                 {"StatusStarting", "starting"},
                 {"StatusRecoverableError", "retries"},
                 {"StatusPermanentError", "failed"},
                 {"StatusFatalError", "fatal"},
                 {"StatusStopping", "stopping"},
                 {"StatusStopped", "stopped"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(words[i].status, state) == 0)
            return words[i].word;
    return state;
}

static enum view_style style_of_state(const char *word) {
    if (strcmp(word, "failed") == 0 || strcmp(word, "fatal") == 0)
        return STYLE_BAD;
    return strcmp(word, "retries") == 0 ? STYLE_WARN : STYLE_PLAIN;
}

// -- sections -------------------------------------------------------------------------------------

static void put_service(struct view *view, const json_t *now) {
    add_format(view, STYLE_TITLE, "culprit %s  pid %.0f  up %s  memory %s",
               safe(view, text_of(now, "version")), number_of(now, "pid"),
               short_age(view, now, "uptime_s"), bytes_of(view, now, "memory_bytes"));
    if (!json_is_true(json_object_get(now, "ready")))
        add_format(view, STYLE_WARN, "not ready: %s", safe(view, text_of(now, "reason")));
    const json_t *store = json_object_get(now, "store");
    if (store == NULL)
        return;
    bool full = json_is_true(json_object_get(store, "full"));
    add_format(view, full || has(store, "error") ? STYLE_BAD : STYLE_PLAIN, "store %s of %s%s%s%s",
               bytes_of(view, store, "size_bytes"), bytes_of(view, store, "max_bytes"),
               full ? ", full: no input is taken" : "", has(store, "error") ? ": " : "",
               safe(view, text_of(store, "error")));
}

static const char *open_of(const struct view *view, const json_t *pipeline) {
    static const char *const severities[] = {"critical", "error", "warning", "info"};
    const json_t *open = json_object_get(pipeline, "open");
    const char *text = "";
    for (size_t i = 0; i < 4; i++)
        if (number_of(open, severities[i]) > 0)
            text = arena_format(view->arena, "%s%s%.0f %s", text, text[0] == '\0' ? "" : ", ",
                                number_of(open, severities[i]), severities[i]);
    return text[0] == '\0' ? "none" : text;
}

static void put_pipelines(struct view *view, const json_t *now, const json_t *before,
                          double seconds) {
    const json_t *list = json_object_get(now, "pipelines"), *item;
    uint32_t width = name_width(view, list, "name");
    size_t i;
    add_blank(view);
    add_format(view, STYLE_HEAD, "%s %8s %7s %12s %12s %7s  %s", padded(view, "PIPELINE", width),
               "EVENTS/S", "EVENTS", "NEWEST AGO", "LAG", "EVALS/S", "OPEN VERDICTS");
    json_array_foreach(list, i, item) {
        const json_t *old = same_in(before, "pipelines", item, "name");
        add_format(view, STYLE_PLAIN, "%s %8s %7s %12s %12s %7s  %s",
                   padded(view, safe(view, text_of(item, "name")), width),
                   short_number(view, rate_of(item, old, "events", seconds)),
                   short_number(view, number_of(item, "events")),
                   short_age(view, item, "newest_event_age_s"), short_age(view, item, "lag_s"),
                   short_number(view, rate_of(item, old, "evaluations", seconds)),
                   open_of(view, item));
    }
}

// A few always wait for allowed_lateness.
static void put_waiting(struct view *view, const json_t *now) {
    enum { USUAL = 10 };
    const json_t *item;
    size_t i;
    json_array_foreach(json_object_get(now, "pipelines"), i, item) {
        if (number_of(item, "evaluations_waiting") <= USUAL || !has(item, "held_back_by"))
            continue;
        add_format(view, STYLE_PLAIN, "%s: %.0f evaluations wait for %s",
                   safe(view, text_of(item, "name")), number_of(item, "evaluations_waiting"),
                   safe(view, text_of(item, "held_back_by")));
    }
}

static void put_receivers(struct view *view, const json_t *now, const json_t *before,
                          double seconds) {
    const json_t *list = json_object_get(now, "receivers"), *item;
    uint32_t width = name_width(view, list, "id");
    size_t i;
    add_blank(view);
    add_format(view, STYLE_HEAD, "%s %8s %7s %7s  %s", padded(view, "RECEIVER", width), "EVENTS/S",
               "EVENTS", "REFUSED", "STATE");
    json_array_foreach(list, i, item) {
        const json_t *old = same_in(before, "receivers", item, "id");
        bool blocked = json_is_true(json_object_get(item, "blocked"));
        const char *state = blocked ? "waits" : state_of(item);
        add_format(view, blocked ? STYLE_WARN : style_of_state(state), "%s %8s %7s %7s  %s%s%s",
                   padded(view, safe(view, text_of(item, "id")), width),
                   short_number(view, rate_of(item, old, "events", seconds)),
                   short_number(view, number_of(item, "events")),
                   short_number(view, number_of(item, "refused")), state,
                   has(item, "error") ? ": " : "", safe(view, text_of(item, "error")));
    }
}

static void put_exporters(struct view *view, const json_t *now, const json_t *before,
                          double seconds) {
    const json_t *list = json_object_get(now, "exporters"), *item;
    uint32_t width = name_width(view, list, "id");
    size_t i;
    add_blank(view);
    add_format(view, STYLE_HEAD, "%s %8s %7s %10s %7s %9s  %s", padded(view, "EXPORTER", width),
               "SENT/S", "SENT", "QUEUE", "RETRIED", "DISCARDED", "STATE");
    json_array_foreach(list, i, item) {
        const json_t *old = same_in(before, "exporters", item, "id");
        const char *state = state_of(item);
        add_format(view, style_of_state(state), "%s %8s %7s %10s %7s %9s  %s%s%s",
                   padded(view, safe(view, text_of(item, "id")), width),
                   short_number(view, rate_of(item, old, "sent", seconds)),
                   short_number(view, number_of(item, "sent")), bytes_of(view, item, "queue_bytes"),
                   short_number(view, number_of(item, "retried")),
                   short_number(view, number_of(item, "discarded")), state,
                   has(item, "error") ? ": " : "", safe(view, text_of(item, "error")));
    }
}

static void put_stages(struct view *view, const json_t *now, const json_t *before, double seconds) {
    const json_t *pipeline, *stage;
    size_t i, j;
    json_array_foreach(json_object_get(now, "pipelines"), i, pipeline) {
        const json_t *list = json_object_get(pipeline, "stages");
        const json_t *old = same_in(before, "pipelines", pipeline, "name");
        uint32_t width = name_width(view, list, "id");
        add_blank(view);
        add_format(view, STYLE_HEAD, "%s %8s %7s %8s  %s", padded(view, "STAGE", width), "EVENTS/S",
                   "EVENTS", "FILTERED", safe(view, text_of(pipeline, "name")));
        json_array_foreach(list, j, stage)
            add_format(view, STYLE_PLAIN, "%s %8s %7s %8s",
                       padded(view, safe(view, text_of(stage, "id")), width),
                       short_number(view, rate_of(stage, same_in(old, "stages", stage, "id"),
                                                  "events", seconds)),
                       short_number(view, number_of(stage, "events")),
                       short_number(view, number_of(stage, "filtered")));
    }
}

// "3, 17 and 12 more"
static const char *missing_of(const struct view *view, const json_t *job) {
    const json_t *ranks = json_object_get(job, "missing_ranks"), *rank;
    double missing = number_of(job, "missing");
    size_t i, listed = json_array_size(ranks);
    const char *text = "";
    json_array_foreach(ranks, i, rank) text = arena_format(
        view->arena, "%s%s%lld", text, i == 0 ? "" : ", ", (long long)json_integer_value(rank));
    if (missing > (double)listed)
        text = arena_format(view->arena, "%s and %.0f more", text, missing - (double)listed);
    return text[0] == '\0' ? "none" : text;
}

static bool any_job(const json_t *now) {
    const json_t *pipeline;
    size_t i;
    json_array_foreach(json_object_get(now, "pipelines"), i,
                       pipeline) if (json_array_size(json_object_get(pipeline, "jobs")) >
                                     0) return true;
    return false;
}

static void put_jobs(struct view *view, const json_t *now) {
    const json_t *pipeline, *job;
    size_t i, j;
    add_blank(view);
    if (!any_job(now)) {
        add_line(view, STYLE_PLAIN, SLICE("no job has sent telemetry"));
        return;
    }
    add_format(view, STYLE_HEAD, "%s %7s %7s %7s  %s", padded(view, "JOB", NAME_MAX_COLUMNS),
               "RANKS", "WORLD", "EVENTS", "MISSING RANKS");
    json_array_foreach(json_object_get(now, "pipelines"), i, pipeline) {
        json_array_foreach(json_object_get(pipeline, "jobs"), j, job) {
            const char *name = has(job, "job") ? text_of(job, "job") : "(no job id)";
            add_format(view, number_of(job, "missing") > 0 ? STYLE_WARN : STYLE_PLAIN,
                       "%s %7.0f %7s %7s  %s", padded(view, safe(view, name), NAME_MAX_COLUMNS),
                       number_of(job, "ranks"),
                       has(job, "world_size") ? short_number(view, number_of(job, "world_size"))
                                              : "-",
                       short_number(view, number_of(job, "events")), missing_of(view, job));
        }
        if (json_is_true(json_object_get(pipeline, "jobs_left_out")))
            add_format(view, STYLE_PLAIN, "further jobs of %s are left out",
                       safe(view, text_of(pipeline, "name")));
    }
}

// -- incidents ------------------------------------------------------------------------------------

struct incident {
    const json_t *json;
    int gravity;
};

static int gravity_of(const char *severity) {
    return strcmp(severity, "critical") == 0  ? 3
           : strcmp(severity, "error") == 0   ? 2
           : strcmp(severity, "warning") == 0 ? 1
                                              : 0;
}

// The gravest first, of those the newest, then by id.
static int compare_incidents(const void *left, const void *right) {
    const struct incident *a = left, *b = right;
    if (a->gravity != b->gravity)
        return b->gravity - a->gravity;
    int time = strcmp(text_of(b->json, "since"), text_of(a->json, "since"));
    return time != 0 ? time : strcmp(text_of(a->json, "id"), text_of(b->json, "id"));
}

// Of all pipelines; one that two of them found stands there once.
static struct incident *gather_incidents(const struct view *view, const json_t *now,
                                         uint32_t *count, bool *left_out) {
    const json_t *pipeline, *incident;
    size_t i, j, most = 0;
    json_array_foreach(json_object_get(now, "pipelines"), i, pipeline) most +=
        json_array_size(json_object_get(pipeline, "incidents"));
    struct incident *items = arena_zero(view->arena, most + 1, sizeof *items);
    *count = 0;
    *left_out = false;
    json_array_foreach(json_object_get(now, "pipelines"), i, pipeline) {
        *left_out = *left_out || json_is_true(json_object_get(pipeline, "incidents_left_out"));
        json_array_foreach(json_object_get(pipeline, "incidents"), j, incident) {
            bool known = false;
            for (uint32_t k = 0; k < *count && !known; k++)
                known = strcmp(text_of(items[k].json, "id"), text_of(incident, "id")) == 0;
            if (!known)
                items[(*count)++] =
                    (struct incident){incident, gravity_of(text_of(incident, "severity"))};
        }
    }
    qsort(items, *count, sizeof *items, compare_incidents);
    return items;
}

// "2026-11-18 09:01:40" of "2026-11-18T09:01:40.300000000Z".
static const char *short_time(const struct view *view, const char *time) {
    if (strlen(time) < 19)
        return "-";
    return arena_format(view->arena, "%.10s %.8s", time, time + 11);
}

// On as many lines as it takes, broken between words; those behind the first are indented.
static void add_wrapped(struct view *view, enum view_style style, struct slice text,
                        uint32_t columns) {
    enum { INDENT = 4, COLUMNS_MIN = 20 };
    size_t taken = text.size;
    struct slice part = columns < COLUMNS_MIN ? text : text_words(text, columns, &taken);
    add_line(view, style, part);
    while (taken < text.size) {
        text = (struct slice){text.data + taken, text.size - taken};
        part = text_words(text, columns - INDENT, &taken);
        add_format(view, style, "%*s%.*s", INDENT, "", (int)part.size, part.data);
    }
}

static void put_incident(struct view *view, const struct incident *incident, uint32_t columns) {
    const json_t *json = incident->json;
    enum view_style style = incident->gravity >= 2   ? STYLE_BAD
                            : incident->gravity == 1 ? STYLE_WARN
                                                     : STYLE_PLAIN;
    const char *line = arena_format(
        view->arena, "%-8s %-19s  %s%s%s", safe(view, text_of(json, "severity")),
        safe(view, short_time(view, text_of(json, "since"))), safe(view, text_of(json, "job")),
        has(json, "job") ? ": " : "", safe(view, text_of(json, "headline")));
    add_wrapped(view, style, slice_of(line), columns);
}

static void put_incidents(struct view *view, const json_t *now, uint32_t columns) {
    uint32_t count;
    bool left_out;
    struct incident *items = gather_incidents(view, now, &count, &left_out);
    add_blank(view);
    if (count == 0) {
        add_line(view, STYLE_PLAIN, SLICE("no incident is open"));
        return;
    }
    add_format(view, STYLE_HEAD, "%-8s %-19s  %u INCIDENT%s", "SEVERITY", "SINCE (UTC)", count,
               count == 1 ? "" : "S");
    for (uint32_t i = 0; i < count; i++)
        put_incident(view, &items[i], columns);
    if (left_out)
        add_line(view, STYLE_PLAIN, SLICE("further ones are left out"));
}

struct view view_make(enum view_kind kind, const struct view_answers *answers, uint32_t columns,
                      struct arena *arena) {
    struct view view = {.arena = arena};
    const json_t *now = answers->now, *before = answers->before;
    double seconds = answers->seconds;
    bool all = kind == VIEW_ALL;
    assert(kind <= VIEW_INCIDENTS);
    put_service(&view, now);
    if (all || kind == VIEW_PIPELINES) {
        put_pipelines(&view, now, before, seconds);
        put_waiting(&view, now);
    }
    if (all || kind == VIEW_INCIDENTS)
        put_incidents(&view, now, all ? 0 : columns);
    if (all || kind == VIEW_JOBS)
        put_jobs(&view, now);
    if (all || kind == VIEW_PIPELINES) {
        put_receivers(&view, now, before, seconds);
        put_exporters(&view, now, before, seconds);
    }
    if (kind == VIEW_PIPELINES)
        put_stages(&view, now, before, seconds);
    return view;
}
