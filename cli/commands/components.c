// SPDX-License-Identifier: Apache-2.0
// Lists the components of this build, and how each one is configured.
//
// All of it is made from struct component_type and its option rows: nothing here knows a component
// by name.
#include "base/text/json_write.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/component_list.h"
#include "config/describe.h"
#include "config/option.h"
#include "pipeline/component/component.h"

#include <assert.h>
#include <string.h>

struct components_flags {
    bool markdown;
    bool json;
};

static const struct argument rows[] = {
    ARGUMENT("markdown", struct components_flags, markdown, ARGUMENT_FLAG,
             .help = "as a Markdown table: of the components, or of one component's options"),
    ARGUMENT("json", struct components_flags, json, ARGUMENT_FLAG,
             .help = "as a JSON document, with the options as JSON schemas"),
};

static const char *stability_name(enum stability stability) {
    assert(stability <= STABILITY_STABLE);
    static const char *const names[] = {"alpha", "beta", "stable"};
    return names[stability];
}

// -- what a component says of itself ------------------------------------------------------------

static const char *fact_word(uint32_t bit) {
    return stage_fact_name((enum stage_fact)(1u << bit));
}

static const char *preset_word(uint32_t bit) {
    assert(PRESET_NAMES[bit] != NULL);
    return PRESET_NAMES[bit];
}

// A set of bits, each of which has a word.
struct word_set {
    const char *key, *label;
    uint32_t bits;
    const char *(*word)(uint32_t bit);
};
enum { WORD_SETS = 3 };

static void word_sets_of(const struct component_type *type, struct word_set sets[WORD_SETS]) {
    sets[0] = (struct word_set){"needs", "Needs before it: ", type->needs, fact_word};
    sets[1] = (struct word_set){"gives", "Gives: ", type->gives, fact_word};
    sets[2] = (struct word_set){"presets", "Presets with it: ", type->presets, preset_word};
}

static void word_set_text(struct buffer *out, const struct word_set *set) {
    const char *between = set->label;
    assert(between != NULL && set->word != NULL);
    for (uint32_t bit = 0; bit < 32; bit++) {
        if ((set->bits >> bit & 1) == 0)
            continue;
        buffer_append_format(out, "%s%s", between, set->word(bit));
        between = ", ";
    }
    buffer_append_text(out, set->bits == 0 ? "" : "\n");
}

static void word_set_json(struct json_writer *json, const struct word_set *set) {
    json_field_array_open(json, set->key);
    for (uint32_t bit = 0; bit < 32; bit++)
        if ((set->bits >> bit & 1) != 0)
            json_text(json, set->word(bit));
    json_array_close(json);
}

// -- all of them --------------------------------------------------------------------------------

static void list_text(struct buffer *out, struct component_set set) {
    buffer_append_format(out, "%-10s %-20s %-9s %s\n", "KIND", "NAME", "STABILITY", "SUMMARY");
    for (size_t i = 0; i < set.count; i++)
        buffer_append_format(out, "%-10s %-20s %-9s %s\n", component_kind_name(set.types[i]->kind),
                             set.types[i]->name, stability_name(set.types[i]->stability),
                             set.types[i]->summary);
}

// With links, from the root of the source, to the page of each.
static void list_markdown(struct buffer *out, struct component_set set) {
    buffer_append_text(out,
                       "| kind | name | stability | presets | what it does |\n"
                       "|---|---|---|---|---|\n");
    for (size_t i = 0; i < set.count; i++) {
        const struct component_type *type = set.types[i];
        const char *kind = component_kind_name(type->kind);
        struct word_set sets[WORD_SETS];
        word_sets_of(type, sets);
        sets[2].label = "";
        buffer_append_format(out, "| %s | [`%s`](%ss/%s/README.md) | %s | ", kind, type->name, kind,
                             type->name, stability_name(type->stability));
        word_set_text(out, &sets[2]);
        out->size -= sets[2].bits != 0; // its line end
        buffer_append_format(out, " | %s |\n", type->summary);
    }
}

// -- one of them --------------------------------------------------------------------------------

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
    struct word_set sets[WORD_SETS];
    word_sets_of(type, sets);
    for (size_t i = 0; i < WORD_SETS; i++)
        word_set_text(out, &sets[i]);
    if ((type->needs | type->gives | type->presets) != 0)
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

static void component_json(struct json_writer *json, const struct component_type *type) {
    assert(type->summary != NULL && (type->option_count == 0 || type->options != NULL));
    assert(type->pattern_count == 0 || type->patterns != NULL);
    json_object_open(json);
    json_field_text(json, "kind", component_kind_name(type->kind));
    json_field_text(json, "name", type->name);
    json_field_text(json, "stability", stability_name(type->stability));
    json_field_text(json, "summary", type->summary);
    struct word_set sets[WORD_SETS];
    word_sets_of(type, sets);
    for (size_t i = 0; i < WORD_SETS; i++)
        word_set_json(json, &sets[i]);
    json_field_array_open(json, "patterns");
    for (size_t i = 0; i < type->pattern_count; i++)
        json_text(json, type->patterns[i].name);
    json_array_close(json);
    json_key(json, "options");
    describe_options_schema(json, type->summary, type->options, type->option_count);
    json_object_close(json);
}

static void print_json(struct buffer *out, const struct component_type *const *types,
                       size_t count) {
    struct json_writer json;
    json_begin(&json, out, 2);
    json_object_open(&json);
    json_field_array_open(&json, "components");
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
        return invocation_misused(invocation, "unknown component \"%s\"; did you mean \"%s\"?",
                                  name, nearest);
    return invocation_misused(invocation, "unknown component \"%s\"; culprit components lists them",
                              name);
}

// All of them (`one` NULL), or one.
static void print(struct invocation *invocation, const struct component_type *one) {
    const struct components_flags *flags = invocation->options;
    struct component_set set = component_list();
    if (flags->json)
        print_json(invocation->out, one == NULL ? set.types : &one, one == NULL ? set.count : 1);
    else if (one == NULL)
        (flags->markdown ? list_markdown : list_text)(invocation->out, set);
    else
        (flags->markdown ? component_markdown : component_text)(invocation->out, one);
}

static void component_words(struct buffer *out) {
    struct component_set set = component_list();
    for (size_t i = 0; i < set.count; i++)
        buffer_append_format(out, "%s\t%s\n", set.types[i]->name, set.types[i]->summary);
}

static int components_run(struct invocation *invocation) {
    const struct components_flags *flags = invocation->options;
    struct component_set set = component_list();
    if (flags->json && flags->markdown)
        return invocation_misused(invocation, "--json and --markdown exclude each other");
    if (invocation->operands.count == 0) {
        print(invocation, NULL);
        return 0;
    }
    const char *name = invocation->operands.items[0];
    bool found = false;
    for (size_t i = 0; i < set.count; i++) {
        if (strcmp(set.types[i]->name, name) != 0)
            continue;
        print(invocation, set.types[i]);
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
        "Lists the components of this build. With NAME: the options of that component, what it "
        "needs from the stages before it and what it gives to those after it.",
    COMMAND_OPTIONS(rows, struct components_flags),
    .examples =
        "  culprit components\n"
        "  culprit components file\n"
        "  culprit components rank_group --markdown\n",
    .exit_codes =
        "  0   printed\n"
        "  64  there is no such component, or the command line is wrong\n"
        "  74  writing failed\n",
    .run = components_run,
};
