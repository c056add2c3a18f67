// SPDX-License-Identifier: Apache-2.0
// Checks a configuration and prints what it guarantees.
#include "cli/commands/validate.h"

#include "base/text/cut.h"
#include "base/text/json_write.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/guarantees.h"
#include "config/problem.h"
#include "pipeline/plan/plan.h"

#include <assert.h>

struct validate_options {
    struct word_list configs;
    struct word_list sets;
    bool no_environment;
    int format; // enum validate_format
};

static const char *const formats[] = {"text", "json", NULL};

static const struct argument rows[] = {
    ARGUMENT("config", struct validate_options, configs, ARGUMENT_LIST, .value_name = "FILE",
             .help = "the same as FILE. Given again: joined, the last one wins"),
    SET_ARGUMENT(struct validate_options),
    ARGUMENT(
        "no-environment", struct validate_options, no_environment, ARGUMENT_FLAG,
        .help =
            "do not look up ${env:NAME} and ${file:PATH}, nor whether directories are there: for "
            "checks away from the machine it will run on"),
    ARGUMENT("format", struct validate_options, format, ARGUMENT_CHOICE, .choices = formats,
             .help = "text is for people (the default), json is one document on standard output"),
};

enum { TEXT_MAX = 16 * 1024 * 1024 };

static void print_pipelines(struct buffer *out, const struct plan *plan) {
    buffer_append_text(out, "valid\n");
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        const struct plan_pipeline *pipeline = &plan->pipelines[i];
        buffer_append_format(out, "pipeline %s: ", pipeline->name);
        pipeline_describe(out, plan, pipeline);
        buffer_append_text(out, "\n  takes: ");
        pipeline_kinds(out, plan, pipeline, ", ");
        buffer_append_char(out, '\n');
    }
    buffer_append_text(out, "guarantees:");
    plan_guarantees(out, plan, "\n  ");
    buffer_append_char(out, '\n');
}

static void json_problems(struct json_writer *json, const char *key,
                          const struct problem_list *list) {
    json_field_array_open(json, key);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct problem *problem = &list->items[i];
        json_object_open(json);
        if (problem->where.file == NULL)
            json_field_null(json, "file");
        else
            json_field_text(json, "file", problem->where.file);
        json_field_uint(json, "line", problem->where.line);
        json_field_uint(json, "column", problem->where.column);
        json_field_text(json, "key", problem->key == NULL ? "" : problem->key);
        json_field_text(json, "text", problem->text);
        json_object_close(json);
    }
    json_array_close(json);
}

static void json_pipelines(struct json_writer *json, const struct plan *plan) {
    struct buffer text;
    buffer_init(&text, TEXT_MAX);
    json_field_array_open(json, "pipelines");
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        json_object_open(json);
        json_field_text(json, "name", plan->pipelines[i].name);
        buffer_reset(&text);
        pipeline_describe(&text, plan, &plan->pipelines[i]);
        json_field_slice(json, "does", buffer_slice(&text));
        buffer_reset(&text);
        pipeline_kinds(&text, plan, &plan->pipelines[i], " ");
        json_field_array_open(json, "takes");
        for (struct slice rest = buffer_slice(&text); rest.size > 0;) {
            struct slice kind = text_until(rest, ' ');
            json_slice(json, kind);
            rest = text_from(rest, kind.size + (kind.size < rest.size));
        }
        json_array_close(json);
        buffer_reset(&text);
        pipeline_guarantees(&text, plan, &plan->pipelines[i]);
        json_field_slice(json, "guarantees", buffer_slice(&text));
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

static int report_json(struct invocation *invocation, const struct plan_request *request) {
    struct plan plan;
    struct findings findings;
    enum status status = plan_load_quietly(&plan, request, &findings);
    sort_problems(&findings.problems);
    sort_problems(&findings.warnings);
    if (status != STATUS_OK && findings.problems.count == 0)
        problem_add_at(&findings.problems, (struct location){0}, "", "%s", findings.error.message);
    struct json_writer json;
    json_begin(&json, invocation->out, 2);
    json_object_open(&json);
    json_field_bool(&json, "valid", status == STATUS_OK);
    json_problems(&json, "problems", &findings.problems);
    json_problems(&json, "warnings", &findings.warnings);
    if (status == STATUS_OK) {
        json_pipelines(&json, &plan);
        plan_release(&plan);
    }
    json_object_close(&json);
    buffer_append_char(invocation->out, '\n');
    findings_release(&findings);
    return status_exit_code(status);
}

int validate_config(struct invocation *invocation, const struct plan_request *request,
                    enum validate_format format) {
    assert(!request->quiet);
    if (format == VALIDATE_JSON)
        return report_json(invocation, request);
    struct plan plan;
    int code = plan_load(&plan, request, invocation);
    if (code != 0)
        return code;
    print_pipelines(invocation->out, &plan);
    plan_release(&plan);
    return 0;
}

static int validate_run(struct invocation *invocation) {
    const struct validate_options *options = invocation->options;
    struct word_list files =
        word_list_join(invocation->arena, &options->configs, &invocation->operands);
    if (files.count == 0)
        return invocation_misused(
            invocation, "no FILE given; name the configuration, with or without --config");
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
        "Checks a configuration without starting anything. Every problem is printed at once, each "
        "as FILE:LINE:COLUMN: KEY: what is wrong, what would be right; so is a port, file or "
        "directory that two components want, and an output whose directory is not there. When "
        "there is none, the first line is \"valid\"; then each pipeline is described, and what "
        "all "
        "of them guarantee. Several FILEs are joined, behind those of --config; the last one wins.",
    COMMAND_OPTIONS(rows, struct validate_options),
    .examples =
        "  culprit validate culprit.yaml\n"
        "  culprit validate --config culprit.yaml --no-environment --format json\n",
    .exit_codes =
        "  0   the configuration is right\n"
        "  64  the command line is wrong\n"
        "  66  a configuration file is missing\n"
        "  74  reading or writing failed\n"
        "  77  no permission to read it\n"
        "  78  the configuration is wrong\n",
    .run = validate_run,
};
