// SPDX-License-Identifier: Apache-2.0
// Will this configuration run, and what does it promise?
#include "cli/commands/validate.h"

#include "base/text/json_write.h"
#include "cli/guarantees.h"

struct validate_options {
    struct word_list configs;
    struct word_list sets;
    bool no_environment;
    int format; // enum validate_format
};

static const char *const formats[] = {"text", "json", NULL};

static const struct argument rows[] = {
    {.name = "config",
     .type = ARGUMENT_LIST,
     .offset = offsetof(struct validate_options, configs),
     .value_name = "FILE",
     .help = "the same as FILE. Given again: joined, the last one wins"},
    {.name = "set",
     .type = ARGUMENT_LIST,
     .offset = offsetof(struct validate_options, sets),
     .value_name = "KEY=VALUE",
     .help = "override one key"},
    {.name = "no-environment",
     .type = ARGUMENT_FLAG,
     .offset = offsetof(struct validate_options, no_environment),
     .help = "do not look up ${env:NAME} and ${file:PATH}, nor whether directories are there: for "
             "checks away from the machine it will run on"},
    {.name = "format",
     .type = ARGUMENT_CHOICE,
     .offset = offsetof(struct validate_options, format),
     .choices = formats,
     .help = "text is for people (the default), json is one document on standard output"},
};

enum { TEXT_MAX = 16 * 1024 * 1024, ARENA_BLOCK = 16 * 1024 };

struct findings {
    enum status status;
    struct problem_list problems;
    struct problem_list warnings;
    struct error error;
};

static void print_pipelines(struct buffer *out, const struct plan *plan) {
    buffer_append_text(out, "valid\n");
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        const struct plan_pipeline *pipeline = &plan->pipelines[i];
        buffer_append_format(out, "pipeline %s: ", pipeline->name);
        pipeline_describe(out, plan, pipeline);
        buffer_append_char(out, '\n');
    }
    buffer_append_text(out, "guarantees:");
    plan_guarantees(out, plan, "\n  ");
    buffer_append_char(out, '\n');
}

static int report_text(struct invocation *invocation, const struct plan *plan,
                       struct findings *findings) {
    problem_list_print(&findings->problems, invocation->err);
    problem_list_print(&findings->warnings, invocation->err);
    invocation_say(invocation);
    if (findings->status == STATUS_OK)
        print_pipelines(invocation->out, plan);
    else if (findings->problems.count == 0)
        return invocation_fail(invocation, &findings->error);
    return status_exit_code(findings->status);
}

static void json_problem(struct json_writer *json, const struct problem *problem) {
    json_object_open(json);
    json_key(json, "file");
    if (problem->where.file == NULL)
        json_put_null(json);
    else
        json_text(json, problem->where.file);
    json_key(json, "line");
    json_uint(json, problem->where.line);
    json_key(json, "column");
    json_uint(json, problem->where.column);
    json_key(json, "key");
    json_text(json, problem->key == NULL ? "" : problem->key);
    json_key(json, "text");
    json_text(json, problem->text);
    json_object_close(json);
}

static void json_problems(struct json_writer *json, const char *key,
                          const struct problem_list *list) {
    json_key(json, key);
    json_array_open(json);
    for (uint32_t i = 0; i < list->count; i++)
        json_problem(json, &list->items[i]);
    json_array_close(json);
}

static void json_pipelines(struct json_writer *json, const struct plan *plan) {
    struct buffer text;
    buffer_init(&text, TEXT_MAX);
    json_key(json, "pipelines");
    json_array_open(json);
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        json_object_open(json);
        json_key(json, "name");
        json_text(json, plan->pipelines[i].name);
        buffer_reset(&text);
        pipeline_describe(&text, plan, &plan->pipelines[i]);
        json_key(json, "does");
        json_slice(json, buffer_slice(&text));
        buffer_reset(&text);
        pipeline_guarantees(&text, plan, &plan->pipelines[i]);
        json_key(json, "guarantees");
        json_slice(json, buffer_slice(&text));
        json_object_close(json);
    }
    json_array_close(json);
    buffer_release(&text);
}

// Puts the problems into the order in which they are printed as text.
static void sort_problems(struct problem_list *list) {
    struct buffer text;
    buffer_init(&text, TEXT_MAX);
    problem_list_print(list, &text);
    buffer_release(&text);
}

static int report_json(struct invocation *invocation, const struct plan *plan,
                       struct findings *findings) {
    sort_problems(&findings->problems);
    sort_problems(&findings->warnings);
    if (findings->status != STATUS_OK && findings->problems.count == 0)
        problem_add_at(&findings->problems, (struct location){0}, "", "%s",
                       findings->error.message);
    struct json_writer json;
    json_begin(&json, invocation->out, 2);
    json_object_open(&json);
    json_key(&json, "valid");
    json_bool(&json, findings->status == STATUS_OK);
    json_problems(&json, "problems", &findings->problems);
    json_problems(&json, "warnings", &findings->warnings);
    if (findings->status == STATUS_OK)
        json_pipelines(&json, plan);
    json_object_close(&json);
    buffer_append_char(invocation->out, '\n');
    return status_exit_code(findings->status);
}

int validate_config(struct invocation *invocation, const struct plan_request *request,
                    enum validate_format format) {
    struct arena arena;
    arena_init(&arena, ARENA_BLOCK);
    struct findings findings = {0};
    problem_list_init(&findings.problems, &arena);
    problem_list_init(&findings.warnings, &arena);
    struct plan plan;
    findings.status =
        plan_load_quietly(&plan, request, &findings.problems, &findings.warnings, &findings.error);
    int code = format == VALIDATE_JSON ? report_json(invocation, &plan, &findings)
                                       : report_text(invocation, &plan, &findings);
    if (findings.status == STATUS_OK)
        plan_release(&plan);
    arena_release(&arena);
    return code;
}

// What --config names, then the operands.
static struct word_list all_files(const struct invocation *invocation) {
    const struct validate_options *options = invocation->options;
    const struct word_list *more = &invocation->operands;
    uint32_t count = options->configs.count + more->count;
    const char **items = arena_take(invocation->arena, (count + 1) * sizeof *items);
    for (uint32_t i = 0; i < count; i++)
        items[i] = i < options->configs.count ? options->configs.items[i]
                                              : more->items[i - options->configs.count];
    return (struct word_list){items, count};
}

static int validate_run(struct invocation *invocation) {
    const struct validate_options *options = invocation->options;
    struct word_list files = all_files(invocation);
    if (files.count == 0)
        return invocation_misused(invocation,
                                  "no FILE was given; name the configuration, alone or behind "
                                  "--config");
    struct plan_request request = {.files = files,
                                   .sets = options->sets,
                                   .check_places = true,
                                   .no_environment = options->no_environment};
    return validate_config(invocation, &request, (enum validate_format)options->format);
}

const struct command command_validate = {
    .name = "validate",
    .summary = "checks a configuration and says what it guarantees",
    .operands = "[FILE…]",
    .description =
        "Checks a configuration without starting anything. Every problem is printed at once, each\n"
        "as FILE:LINE:COLUMN: KEY: what is wrong, what would be right; so is a port, file or\n"
        "directory that two components want, and an output whose directory is not there. When\n"
        "there is none, the first line is \"valid\"; then each pipeline is described, and what "
        "all\n"
        "of them guarantee. Several FILEs are joined, behind those of --config; the last one wins.",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(rows[0]),
    .options_size = sizeof(struct validate_options),
    .examples =
        "  culprit validate culprit.yaml\n"
        "  culprit validate --config culprit.yaml --no-environment --format json\n",
    .exit_codes =
        "  0   the configuration is right\n"
        "  64  the command line is wrong\n"
        "  66  a configuration file is not there\n"
        "  77  no permission to read it\n"
        "  78  the configuration is wrong\n",
    .run = validate_run,
};
