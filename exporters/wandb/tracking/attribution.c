// SPDX-License-Identifier: Apache-2.0
// Exports an attribution bundle: the tensors that held the device's memory.
//
// Source: what stormlog 0.4.3 was seen to export of such bundles. The bundle's known files are one
// artifact; with an annotated history there is a page; the tensors, largest first, are a table of
// at most 200 rows; the summary has their number and whether a history was recorded. The page is
// culprit's own. A file that is not JSON counts as one that says nothing, and that is logged.
// Memory: the tensors' file as parsed, up to 64 MiB of text.
#include "exporters/report/page/parts.h"
#include "exporters/wandb/record.h"
#include "exporters/wandb/tracking/parts.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/sort.h"
#include "base/text/json_write.h"

#include <math.h>
#include <stdlib.h>

enum {
    SHOWN_MAX = 200, // rows of the table and the page
    NAMES_MAX = 3,   // of a storage
    TEXT_MAX = 64 << 10,
    PAGE_MAX = 64 << 20,
};

static const char annotated_file[] = "cuda_allocator_state_history_annotated.html";
static const char tensors_file[] = "cuda_tensor_attribution.json";
static const char metadata_file[] = "cuda_native_debug_metadata.json";

// One storage on the device; texts are in the arena or the parsed file.
struct storage {
    struct slice name, pointer, shape, dtype;
    int64_t tensor_count;
    __int128 size_bytes;
};

struct bundle {
    const char *directory;
    struct arena arena;
    struct storage *storages;
    uint32_t count;
    bool has_history, history_recorded;
};

static char *path_of(struct bundle *bundle, const char *name) {
    assert(name[0] != '\0' && strchr(name, '/') == NULL);
    return arena_format(&bundle->arena, "%s/%s", bundle->directory, name);
}

// -- values as Python's str() shows them ----------------------------------------------------------

static void append_scalar(struct buffer *out, const json_t *value) {
    if (json_is_string(value))
        buffer_append(out, (struct slice){json_string_value(value), json_string_length(value)});
    else if (json_is_integer(value))
        buffer_append_int(out, json_integer_value(value));
    else if (json_is_real(value))
        wandb_append_number(out, json_real_value(value));
    else if (json_is_null(value))
        buffer_append(out, SLICE("None"));
    else
        buffer_append(out, json_is_true(value) ? SLICE("True") : SLICE("False"));
}

// A list of numbers, as shapes are, and everything else that is nested as JSON.
static void append_nested(struct buffer *out, const json_t *value) {
    bool is_flat = json_is_array(value);
    size_t count = json_array_size(value);
    for (size_t i = 0; i < count && is_flat; i++)
        is_flat = json_is_number(json_array_get(value, i));
    if (!is_flat) {
        (void)tracking_append_json(out, value, 0);
        return;
    }
    buffer_append_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buffer_append(out, SLICE(", "));
        append_scalar(out, json_array_get(value, i));
    }
    buffer_append_char(out, ']');
}

static void append_value(struct buffer *out, const json_t *value) {
    if (json_is_object(value) || json_is_array(value))
        append_nested(out, value);
    else
        append_scalar(out, value);
}

// The member as text; empty when it is absent.
static struct slice member_text(struct bundle *bundle, const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    struct buffer text;
    if (value == NULL)
        return SLICE("");
    if (json_is_string(value))
        return (struct slice){json_string_value(value), json_string_length(value)};
    buffer_init(&text, TEXT_MAX);
    append_value(&text, value);
    struct slice copy = arena_copy(&bundle->arena, buffer_slice(&text));
    buffer_release(&text);
    return copy;
}

// The first names, with commas.
static struct slice joined_names(struct bundle *bundle, const json_t *names) {
    struct buffer text;
    buffer_init(&text, TEXT_MAX);
    for (size_t i = 0; i < json_array_size(names) && i < NAMES_MAX; i++) {
        if (i > 0)
            buffer_append(&text, SLICE(", "));
        append_value(&text, json_array_get(names, i));
    }
    struct slice joined = arena_copy(&bundle->arena, buffer_slice(&text));
    buffer_release(&text);
    return joined.size > 0 ? joined : SLICE("<unnamed>");
}

// -- the tensors ----------------------------------------------------------------------------------

// What is no number leaves the number of tensors that are listed.
static int64_t count_tensors(const json_t *entry, size_t listed) {
    const json_t *value = json_object_get(entry, "tensor_count");
    char *end;
    if (json_is_integer(value))
        return json_integer_value(value);
    if (json_is_boolean(value))
        return json_is_true(value);
    if (json_is_real(value) && fabs(json_real_value(value)) < 0x1p63)
        return (int64_t)json_real_value(value);
    if (json_is_string(value)) {
        long long number = strtoll(json_string_value(value), &end, 10);
        if (*end == '\0' && json_string_length(value) > 0)
            return number;
    }
    return (int64_t)listed;
}

static struct storage read_storage(struct bundle *bundle, const json_t *entry) {
    const json_t *tensors = json_object_get(entry, "tensors");
    const json_t *first = json_array_get(tensors, 0);
    struct storage storage = {
        .name = joined_names(bundle, json_object_get(entry, "names")),
        .pointer = member_text(bundle, entry, "storage_ptr"),
        .shape = member_text(bundle, first, "shape"),
        .dtype = member_text(bundle, first, "dtype"),
        .tensor_count = count_tensors(entry, json_array_size(tensors)),
    };
    for (size_t i = 0; i < json_array_size(tensors); i++) {
        const json_t *size = json_object_get(json_array_get(tensors, i), "size_bytes");
        storage.size_bytes += json_is_true(size) ? 1 : json_integer_value(size);
    }
    return storage;
}

static int by_size(const void *left, const void *right) {
    const struct storage *a = left, *b = right;
    return COMPARE(b->size_bytes, a->size_bytes);
}

static void read_storages(struct bundle *bundle, const json_t *entries) {
    size_t count = json_array_size(entries);
    bundle->storages = memory_zero(count, sizeof *bundle->storages);
    for (size_t i = 0; i < count; i++)
        if (json_is_object(json_array_get(entries, i)))
            bundle->storages[bundle->count++] = read_storage(bundle, json_array_get(entries, i));
    assert(bundle->count <= count);
    if (bundle->count > 1)
        sort_stable(bundle->storages, bundle->count, sizeof *bundle->storages, &bundle->arena,
                    by_size);
}

// False: it is not there, or no JSON object.
static bool read_file(struct wandb_tracking *tracking, struct bundle *bundle, const char *name,
                      struct tracking_file *file) {
    struct error error;
    const char *path = path_of(bundle, name);
    if (!tracking_is_file(path))
        return false;
    if (tracking_file_read(file, path, "the attribution", &error) == STATUS_OK)
        return true;
    log_write(LOG_WARN, (struct log_site){"C3315", tracking->site}, "%s; it is left out",
              error.message);
    return false;
}

// -- the page -------------------------------------------------------------------------------------

static void put_cell(struct html *html, struct slice text) {
    html_raw(html, "<td>");
    html_text(html, text);
}

static void put_head(struct html *html, const struct bundle *bundle) {
    const char *history = !bundle->has_history       ? "may have been"
                          : bundle->history_recorded ? "was"
                                                     : "was not";
    html_raw(html,
             "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    html_append_policy(html);
    html_raw(html,
             "<title>What holds the device's memory</title>\n</head>\n<body>\n<header>"
             "<h1>What holds the device's memory</h1></header>\n<main>\n");
    html_format(
        html,
        "<p>%u storage%s of tensors that Python knows. The allocator's history %s recorded; "
        "the annotated one is in the artifact.</p>\n",
        bundle->count, bundle->count == 1 ? "" : "s", history);
}

static void put_row(struct html *html, const struct storage *storage) {
    html_raw(html, "<tr>");
    put_cell(html, storage->name);
    html_raw(html, "<td>");
    buffer_append_int128(html->out, storage->size_bytes);
    put_cell(html, storage->shape);
    put_cell(html, storage->dtype);
    put_cell(html, storage->pointer);
    html_raw(html, "\n");
}

static void encode_page(struct bundle *bundle, struct buffer *out) {
    struct html html;
    html_init(&html, out, &bundle->arena);
    put_head(&html, bundle);
    html_raw(&html,
             "<div class=\"scroll\" tabindex=\"0\" role=\"group\" "
             "aria-label=\"Storages\"><table><thead><tr><th scope=\"col\">name"
             "<th scope=\"col\">bytes<th scope=\"col\">shape"
             "<th scope=\"col\">type<th scope=\"col\">storage\n<tbody>\n");
    for (uint32_t i = 0; i < bundle->count && i < SHOWN_MAX; i++)
        put_row(&html, &bundle->storages[i]);
    html_raw(&html, "</table></div>\n</main>\n</body>\n</html>\n");
    html_release(&html);
}

// -- what is said ---------------------------------------------------------------------------------

static void say_files(struct wandb_tracking *tracking, struct bundle *bundle,
                      struct wandb_writer *writer) {
    const char *const names[] = {
        annotated_file, "cuda_allocator_state_history.html", tensors_file,
        metadata_file,  "cuda_allocation_attribution.json",
    };
    struct buffer paths;
    buffer_init(&paths, 1 << 20);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = path_of(bundle, names[i]);
        if (!tracking_is_file(path))
            continue;
        if (paths.size > 0)
            buffer_append_char(&paths, '\0');
        tracking_append_path(&paths, path);
    }
    if (paths.size > 0)
        tracking_say_artifact(tracking, "stormlog-attribution", buffer_slice(&paths), writer);
    buffer_release(&paths);
}

static bool say_page(struct bundle *bundle, struct wandb_writer *writer) {
    struct buffer page;
    buffer_init(&page, PAGE_MAX);
    encode_page(bundle, &page);
    bool is_whole = !page.failed;
    if (is_whole)
        wandb_say(writer, &(struct wandb_record){
                              .kind = WANDB_HTML,
                              .key = SLICE("stormlog_attribution_html"),
                              .file = buffer_slice(&page),
                          });
    buffer_release(&page);
    return is_whole;
}

// Beyond int64 as a number.
static struct wandb_cell total(__int128 value) {
    return value >= INT64_MIN && value <= INT64_MAX ? cell_int(value) : cell_number((double)value);
}

static void say_storages(struct wandb_tracking *tracking, const struct bundle *bundle,
                         struct wandb_writer *writer) {
    static const char *const columns[] = {
        "name", "storage_ptr", "tensor_count", "total_size_bytes", "shape", "dtype",
    };
    struct wandb_table *table = &tracking->table;
    assert(bundle->count > 0);
    wandb_table_begin(table, columns, sizeof columns / sizeof *columns);
    for (uint32_t i = 0; i < bundle->count && i < SHOWN_MAX; i++) {
        const struct storage *storage = &bundle->storages[i];
        WANDB_TABLE_ROW(table, cell_slice(storage->name), cell_slice(storage->pointer),
                        cell_int(storage->tensor_count), total(storage->size_bytes),
                        cell_slice(storage->shape), cell_slice(storage->dtype));
    }
    tracking_say_table(tracking, "stormlog_tensor_attribution", writer);
}

static void say_bundle(struct wandb_tracking *tracking, struct bundle *bundle,
                       struct wandb_writer *writer) {
    struct buffer *members = &tracking->members;
    buffer_reset(members);
    if (tracking->config->log_artifacts)
        say_files(tracking, bundle, writer);
    if (tracking_is_file(path_of(bundle, annotated_file)) && say_page(bundle, writer))
        wandb_member(members, "stormlog_attribution_html_file", cell_text(annotated_file));
    if (bundle->count > 0) {
        say_storages(tracking, bundle, writer);
        wandb_member(members, "stormlog_tensor_attribution_rows", cell_int(bundle->count));
    }
    wandb_member(members, "stormlog_attribution_history_recorded",
                 bundle->has_history ? cell_bool(bundle->history_recorded) : cell_null);
    if (members->size > 0)
        wandb_say_members(writer, WANDB_SUMMARY, members);
}

void tracking_say_attribution(struct wandb_tracking *tracking, const char *directory,
                              struct wandb_writer *writer) {
    struct bundle bundle = {.directory = directory};
    struct tracking_file tensors = {0}, metadata = {0};
    arena_init(&bundle.arena, 64 << 10);
    assert(directory[0] != '\0');
    if (read_file(tracking, &bundle, tensors_file, &tensors))
        read_storages(&bundle, json_object_get(tensors.object, "attributed_storage_pointers"));
    if (read_file(tracking, &bundle, metadata_file, &metadata)) {
        const json_t *recorded = json_object_get(metadata.object, "history_recorded");
        bundle.has_history = json_is_boolean(recorded);
        bundle.history_recorded = json_is_true(recorded);
    }
    say_bundle(tracking, &bundle, writer);
    tracking_file_release(&tensors);
    tracking_file_release(&metadata);
    memory_give(bundle.storages);
    arena_release(&bundle.arena);
}
