// SPDX-License-Identifier: Apache-2.0
// Prints the configuration that is in effect, and where each value comes from.
//
// Walks the option rows beside the config structs and the nodes they were filled from. Texts are
// always quoted, so that nothing in them can mean anything else when the text is read again. Groups
// nest as deep as our rows do, so recursion is bounded by them.
#include "pipeline/plan/print.h"

#include "base/text/display.h"
#include "base/text/redact.h"
#include "base/text/utf8.h"
#include "config/yaml/document.h"
#include "pipeline/plan/rows.h"

#include <assert.h>
#include <stdio.h>

enum { INDENT = 2, ORIGIN_MAX = 200 };

static void indent(struct buffer *out, unsigned depth) {
    assert(depth < 16);
    for (unsigned i = 0; i < depth * INDENT; i++)
        buffer_append_char(out, ' ');
}

static bool character_escaped(uint32_t code_point) {
    return code_point < 0x20 || (code_point >= 0x7f && code_point <= 0xa0) ||
           code_point == 0x2028 || code_point == 0x2029 || code_point == 0xfeff ||
           code_point == 0xfffe || code_point == 0xffff ||
           (code_point >= 0xd800 && code_point < 0xe000);
}

// A double-quoted YAML text; dollars are doubled unless the text is as it was written. A byte that
// is not UTF-8 becomes U+FFFD, for YAML cannot hold it.
static void quoted_append(struct buffer *out, struct slice text, bool as_written) {
    buffer_append_char(out, '"');
    for (size_t at = 0; at < text.size;) {
        uint32_t code_point = 0xfffd;
        size_t length = utf8_decode(text, at, &code_point);
        if (length == 0 || character_escaped(code_point)) {
            buffer_append_format(out, "\\u%04x", length == 0 ? 0xfffd : code_point);
            at += length == 0 ? 1 : length;
            continue;
        }
        if (code_point == '"' || code_point == '\\')
            buffer_append_char(out, '\\');
        if (code_point == '$' && !as_written)
            buffer_append_char(out, '$');
        buffer_append(out, (struct slice){text.data + at, length});
        at += length;
    }
    buffer_append_char(out, '"');
}

static void text_append(struct buffer *out, const char *text) {
    quoted_append(out, slice_of(text), false);
}

enum { ADDRESS_MAX = 64 << 10 };

// Like quoted_append, without what an address says of user and password.
static void address_append(struct buffer *out, const struct option *row, struct slice text,
                           bool as_written) {
    struct buffer safe;
    buffer_init(&safe, ADDRESS_MAX);
    size_t at = 0, done = 0;
    struct slice user;
    while (redact_find(text, row->address, &at, &user)) {
        size_t begin = (size_t)(user.data - text.data);
        buffer_append(&safe, (struct slice){text.data + done, begin - done});
        buffer_append_text(&safe, REDACTED);
        done = begin + user.size;
    }
    if (done > 0)
        buffer_append(&safe, (struct slice){text.data + done, text.size - done});
    quoted_append(out, done > 0 ? buffer_slice(&safe) : text, as_written);
    buffer_release(&safe);
}

static void origin_append(struct buffer *out, const struct node *node) {
    buffer_append_text(out, "  # ");
    if (node == NULL) {
        buffer_append_text(out, "default\n");
    } else if (node->where.file == NULL) {
        buffer_append_text(out, "--set\n");
    } else {
        display_append(out, slice_of(node->where.file), ORIGIN_MAX);
        buffer_append_format(out, ":%u\n", node->where.line);
    }
}

static void list_append(struct buffer *out, const struct option *row, const struct text_list *list,
                        const struct node *node) {
    bool by_item = node != NULL && node->type == NODE_LIST && node->count == list->count;
    buffer_append_char(out, '[');
    for (uint32_t i = 0; i < list->count; i++) {
        const struct node *item = by_item ? node->entries[i].value : node;
        buffer_append_text(out, i == 0 ? "" : ", ");
        if (row->hidden)
            buffer_append_text(out, "\"" REDACTED "\"");
        else if (item != NULL && item->type == NODE_TEXT && item->from_file)
            address_append(out, row, slice_of(item->written), true);
        else
            address_append(out, row, slice_of(list->items[i]), false);
    }
    buffer_append_char(out, ']');
}

static void ratio_append(struct buffer *out, double value) {
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        double back = 0;
        if (sscanf(text, "%lf", &back) == 1 && !(back < value) && !(back > value))
            break;
    }
    buffer_append_text(out, text);
}

// Texts and secrets may be missing altogether, and so may sizes, which are 0 then.
static bool value_given(const struct option *row, const void *field) {
    if (row->type == OPTION_TEXT)
        return *(const char *const *)field != NULL;
    if (row->type == OPTION_SECRET)
        return ((const struct secret *)field)->hidden != NULL;
    if (row->type == OPTION_SIZE)
        return row->default_value != NULL || ((const struct byte_size *)field)->bytes > 0;
    return true;
}

static void value_append(struct buffer *out, const struct option *row, const void *field,
                         const struct node *node) {
    char text[OPTION_VALUE_MAX];
    if (row->type == OPTION_SECRET || (row->hidden && row->type == OPTION_TEXT)) {
        buffer_append_text(out, "\"" REDACTED "\"");
        return;
    }
    switch (row->type) {
    case OPTION_BOOL:
        buffer_append_text(out, *(const bool *)field ? "true" : "false");
        break;
    case OPTION_INT:
        buffer_append_int(out, *(const int64_t *)field);
        break;
    case OPTION_RATIO:
        ratio_append(out, *(const double *)field);
        break;
    case OPTION_DURATION:
        if (((const struct duration *)field)->ns == DURATION_SPECIAL) {
            assert(row->special != NULL);
            text_append(out, row->special);
            break;
        }
        option_format_duration(*(const struct duration *)field, text);
        buffer_append_text(out, text);
        break;
    case OPTION_SIZE:
        option_format_size(*(const struct byte_size *)field, text);
        buffer_append_text(out, text);
        break;
    case OPTION_TEXT:
        address_append(out, row, slice_of(*(const char *const *)field), false);
        break;
    case OPTION_CHOICE:
        assert(*(const int *)field >= 0);
        text_append(out, row->choices[*(const int *)field]);
        break;
    case OPTION_TEXT_LIST:
        list_append(out, row, field, node);
        break;
    case OPTION_SECRET:
    case OPTION_GROUP:
        break;
    }
}

// False when all that could be written are comments, which YAML would read as nothing at all.
static bool options_any(const struct option *rows, size_t count, const void *config) {
    for (size_t i = 0; i < count; i++) {
        const struct option *row = &rows[i];
        const void *field = (const char *)config + row->offset;
        if (row->type == OPTION_GROUP ? options_any(row->rows, row->row_count, field)
                                      : value_given(row, field))
            return true;
    }
    return false;
}

static void options_print(struct buffer *out, unsigned depth, const struct option *rows,
                          size_t count, const void *config, const struct node *map);

static void option_print(struct buffer *out, unsigned depth, const struct option *row,
                         const void *field, const struct node *map) {
    assert(row->name != NULL);
    const struct node *node = node_child(map, row->name);
    indent(out, depth);
    bool group = row->type == OPTION_GROUP;
    if (group && options_any(row->rows, row->row_count, field)) {
        buffer_append_format(out, "%s:\n", row->name);
        options_print(out, depth + 1, row->rows, row->row_count, field, node);
        return;
    }
    if (group || !value_given(row, field)) {
        buffer_append_format(out, "# %s: not set\n", row->name);
        return;
    }
    buffer_append_format(out, "%s: ", row->name);
    if (row->type != OPTION_SECRET && node != NULL && node->type == NODE_TEXT && node->from_file)
        address_append(out, row, slice_of(node->written), true);
    else
        value_append(out, row, field, node);
    origin_append(out, node);
}

static void options_print(struct buffer *out, unsigned depth, const struct option *rows,
                          size_t count, const void *config, const struct node *map) {
    for (size_t i = 0; i < count; i++)
        option_print(out, depth, &rows[i], (const char *)config + rows[i].offset, map);
}

static void component_print(struct buffer *out, const struct plan_component *component) {
    assert(component->config != NULL);
    const struct component_type *type = component->type;
    bool any = options_any(type->options, type->option_count, component->config);
    indent(out, 1);
    buffer_append_format(out, "%s:%s\n", component->id, any ? "" : " {}");
    options_print(out, 2, type->options, type->option_count, component->config, component->node);
}

static void section_print(struct buffer *out, const struct plan *plan, enum component_kind kind) {
    assert(kind <= COMPONENT_EXTENSION);
    bool begun = false;
    for (uint32_t i = 0; i < plan->component_count; i++) {
        const struct plan_component *component = &plan->components[i];
        if (component->type->kind != kind || !component->used)
            continue;
        if (!begun)
            buffer_append_format(out, "%s:\n", plan_section(kind));
        begun = true;
        component_print(out, component);
    }
    buffer_append_text(out, begun ? "\n" : "");
}

static void ids_print(struct buffer *out, const struct plan *plan, const char *name,
                      const uint32_t *rows, uint32_t count) {
    assert(count == 0 || rows != NULL);
    indent(out, 3);
    buffer_append_format(out, "%s: [", name);
    for (uint32_t i = 0; i < count; i++)
        buffer_append_format(out, "%s%s", i == 0 ? "" : ", ", plan->components[rows[i]].id);
    buffer_append_text(out, "]\n");
}

// The timing rows alone: the lists are printed as they came out.
static void timing_print(struct buffer *out, const struct plan_pipeline *pipeline) {
    struct pipeline_config config = {.timing = pipeline->timing};
    for (size_t i = 0; i < PLAN_PIPELINE_ROWS.count; i++)
        if (PLAN_PIPELINE_ROWS.rows[i].type == OPTION_DURATION)
            option_print(out, 3, &PLAN_PIPELINE_ROWS.rows[i],
                         (const char *)&config + PLAN_PIPELINE_ROWS.rows[i].offset, pipeline->node);
}

static void pipelines_print(struct buffer *out, const struct plan *plan) {
    buffer_append_text(out, "  pipelines:\n");
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        const struct plan_pipeline *pipeline = &plan->pipelines[i];
        indent(out, 2);
        buffer_append_format(out, "%s:\n", pipeline->name);
        ids_print(out, plan, "receivers", pipeline->receivers, pipeline->receiver_count);
        ids_print(out, plan, "processors", pipeline->processors, pipeline->processor_count);
        ids_print(out, plan, "exporters", pipeline->exporters, pipeline->exporter_count);
        timing_print(out, pipeline);
    }
}

void plan_print(const struct plan *plan, struct buffer *out) {
    for (int kind = 0; kind < PLAN_SECTION_COUNT; kind++)
        section_print(out, plan, (enum component_kind)kind);
    if (plan->form_files.count > 0) {
        options_print(out, 0, PLAN_ROOT_ROWS.rows, PLAN_ROOT_ROWS.count, plan, plan->root);
        buffer_append_char(out, '\n');
    }
    buffer_append_text(out, "service:\n");
    options_print(out, 1, PLAN_SERVICE_ROWS.rows, PLAN_SERVICE_ROWS.count, &plan->settings,
                  plan->service);
    pipelines_print(out, plan);
}
