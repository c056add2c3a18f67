// SPDX-License-Identifier: Apache-2.0
// Which components does this build have, and how is each one configured?
//
// All of it is made from struct component_type and its option rows: nothing here knows a component
// by name.
#include "base/text/json_write.h"
#include "cli/command.h"
#include "cli/component_list.h"
#include "config/describe.h"

#include <string.h>

struct components_flags {
    bool markdown;
    bool json;
};

static const struct argument rows[] = {
    {.name = "markdown",
     .type = ARGUMENT_FLAG,
     .offset = offsetof(struct components_flags, markdown),
     .help = "as a Markdown table: of the components, or of one component's options"},
    {.name = "json",
     .type = ARGUMENT_FLAG,
     .offset = offsetof(struct components_flags, json),
     .help = "as a JSON document, with the options as JSON schemas"},
};

static const char *stability_name(enum stability stability) {
    static const char *const names[] = {"alpha", "beta", "stable"};
    return names[stability];
}

// -- all of them --------------------------------------------------------------------------------

static void list_text(struct buffer *out, struct component_set set) {
    buffer_append_format(out, "%-10s %-20s %-9s %s\n", "KIND", "NAME", "STABILITY", "SUMMARY");
    for (size_t i = 0; i < set.count; i++)
        buffer_append_format(out, "%-10s %-20s %-9s %s\n", component_kind_name(set.types[i]->kind),
                             set.types[i]->name, stability_name(set.types[i]->stability),
                             set.types[i]->summary);
}

static void list_markdown(struct buffer *out, struct component_set set) {
    buffer_append_text(out, "| kind | name | stability | what it does |\n|---|---|---|---|\n");
    for (size_t i = 0; i < set.count; i++)
        buffer_append_format(out, "| %s | `%s` | %s | %s |\n",
                             component_kind_name(set.types[i]->kind), set.types[i]->name,
                             stability_name(set.types[i]->stability), set.types[i]->summary);
}

// -- one of them --------------------------------------------------------------------------------

static void facts_text(struct buffer *out, const char *label, uint32_t facts) {
    if (facts == 0)
        return;
    buffer_append_text(out, label);
    const char *between = "";
    for (uint32_t bit = 1; bit != 0 && bit <= facts; bit <<= 1) {
        if ((facts & bit) == 0)
            continue;
        buffer_append_format(out, "%s%s", between, stage_fact_name((enum stage_fact)bit));
        between = ", ";
    }
    buffer_append_char(out, '\n');
}

// A value that can stand in YAML: the default, or for a required option one that shows its shape.
static void example_value(struct buffer *out, const struct option *row) {
    if (row->default_value == NULL)
        buffer_append_text(out, row->type == OPTION_TEXT_LIST ? "[\"…\"]" : "\"…\"");
    else if (row->type == OPTION_TEXT || row->type == OPTION_SECRET)
        buffer_append_format(out, "\"%s\"", row->default_value);
    else
        buffer_append_text(out, row->default_value);
}

static void example_text(struct buffer *out, const struct component_type *type) {
    buffer_append_format(out, "Example:\n  %ss:\n    %s:", component_kind_name(type->kind),
                         type->name);
    bool any = false;
    for (size_t i = 0; i < type->option_count; i++) {
        const struct option *row = &type->options[i];
        if (row->type == OPTION_GROUP || (row->default_value == NULL && !row->required))
            continue;
        buffer_append_format(out, "\n      %s: ", row->name);
        example_value(out, row);
        any = true;
    }
    buffer_append_text(out, any ? "\n" : " {}\n");
}

static void component_text(struct buffer *out, const struct component_type *type) {
    buffer_append_format(out, "%s (%s, %s)\n  %s\n\n", type->name, component_kind_name(type->kind),
                         stability_name(type->stability), type->summary);
    facts_text(out, "Needs before it: ", type->needs);
    facts_text(out, "Gives: ", type->gives);
    if (type->needs != 0 || type->gives != 0)
        buffer_append_char(out, '\n');
    buffer_append_text(out, type->option_count == 0 ? "It has no options.\n" : "Options:\n");
    describe_options_text(type->options, type->option_count, out);
    buffer_append_char(out, '\n');
    example_text(out, type);
}

static void component_markdown(struct buffer *out, const struct component_type *type) {
    if (type->option_count == 0)
        buffer_append_text(out, "It has no options.\n");
    describe_options_markdown(type->options, type->option_count, out);
}

// -- JSON ---------------------------------------------------------------------------------------

static void facts_json(struct json_writer *json, const char *key, uint32_t facts) {
    json_key(json, key);
    json_array_open(json);
    for (uint32_t bit = 1; bit != 0 && bit <= facts; bit <<= 1)
        if ((facts & bit) != 0)
            json_text(json, stage_fact_name((enum stage_fact)bit));
    json_array_close(json);
}

static void component_json(struct json_writer *json, const struct component_type *type) {
    json_object_open(json);
    json_key(json, "kind");
    json_text(json, component_kind_name(type->kind));
    json_key(json, "name");
    json_text(json, type->name);
    json_key(json, "stability");
    json_text(json, stability_name(type->stability));
    json_key(json, "summary");
    json_text(json, type->summary);
    facts_json(json, "needs", type->needs);
    facts_json(json, "gives", type->gives);
    json_key(json, "options");
    describe_options_schema(json, type->summary, type->options, type->option_count);
    json_object_close(json);
}

static void print_json(struct buffer *out, const struct component_type *const *types,
                       size_t count) {
    struct json_writer json;
    json_begin(&json, out, 2);
    json_object_open(&json);
    json_key(&json, "components");
    json_array_open(&json);
    for (size_t i = 0; i < count; i++)
        component_json(&json, types[i]);
    json_array_close(&json);
    // What the schemas of the options refer to.
    json_key(&json, "$defs");
    describe_schema_definitions(&json);
    json_object_close(&json);
    buffer_append_char(out, '\n');
}

// -- the command --------------------------------------------------------------------------------

static int unknown_component(struct invocation *invocation, struct component_set set,
                             const char *name) {
    const char **names = arena_zero(invocation->arena, set.count, sizeof *names);
    for (size_t i = 0; i < set.count; i++)
        names[i] = set.types[i]->name;
    const char *nearest = option_nearest(name, names, set.count);
    if (nearest != NULL)
        return invocation_misused(invocation, "there is no component \"%s\"; did you mean \"%s\"?",
                                  name, nearest);
    return invocation_misused(invocation,
                              "there is no component \"%s\"; culprit components lists them", name);
}

static void print_components(struct invocation *invocation, struct component_set set) {
    const struct components_flags *flags = invocation->options;
    if (flags->json)
        print_json(invocation->out, set.types, set.count);
    else if (flags->markdown)
        list_markdown(invocation->out, set);
    else
        list_text(invocation->out, set);
}

static void print_component(struct invocation *invocation, const struct component_type *type) {
    const struct components_flags *flags = invocation->options;
    if (flags->json)
        print_json(invocation->out, &type, 1);
    else if (flags->markdown)
        component_markdown(invocation->out, type);
    else
        component_text(invocation->out, type);
}

static void component_words(struct buffer *out) {
    struct component_set set = component_list();
    for (size_t i = 0; i < set.count; i++) {
        bool before = false; // a receiver and an exporter may have one name
        for (size_t j = 0; j < i; j++)
            before = before || strcmp(set.types[j]->name, set.types[i]->name) == 0;
        if (!before)
            buffer_append_format(out, "%s\n", set.types[i]->name);
    }
}

static int components_run(struct invocation *invocation) {
    const struct components_flags *flags = invocation->options;
    struct component_set set = component_list();
    if (flags->json && flags->markdown)
        return invocation_misused(invocation, "--json and --markdown exclude each other");
    if (invocation->operands.count == 0) {
        print_components(invocation, set);
        return 0;
    }
    const char *name = invocation->operands.items[0];
    bool found = false;
    for (size_t i = 0; i < set.count; i++) {
        if (strcmp(set.types[i]->name, name) != 0)
            continue;
        print_component(invocation, set.types[i]);
        found = true;
    }
    return found ? 0 : unknown_component(invocation, set, name);
}

const struct command command_components = {
    .name = "components",
    .summary = "the receivers, processors and exporters of this build",
    .operands = "[NAME]",
    .operand_max = 1,
    .operand_words = component_words,
    .description =
        "Lists the components of this build. With NAME: the options of that component, what it\n"
        "needs from the stages before it and what it gives to those after it.",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(rows[0]),
    .options_size = sizeof(struct components_flags),
    .examples =
        "  culprit components\n"
        "  culprit components file\n"
        "  culprit components rank_group --markdown\n",
    .exit_codes =
        "  0   printed\n"
        "  64  there is no such component, or the command line is wrong\n",
    .run = components_run,
};
