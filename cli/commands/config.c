// SPDX-License-Identifier: Apache-2.0
// What is the configuration, all told, and what may stand in one?
#include "cli/component_list.h"
#include "cli/plan_load.h"
#include "pipeline/plan/print.h"
#include "pipeline/plan/schema.h"

struct print_options {
    struct word_list configs;
    struct word_list sets;
};

static const struct argument print_rows[] = {
    {.name = "config",
     .type = ARGUMENT_LIST,
     .offset = offsetof(struct print_options, configs),
     .value_name = "FILE",
     .required = true,
     .help = "the configuration. Given again: joined, the last one wins"},
    {.name = "set",
     .type = ARGUMENT_LIST,
     .offset = offsetof(struct print_options, sets),
     .value_name = "KEY=VALUE",
     .help = "override one key"},
};

static int print_run(struct invocation *invocation) {
    const struct print_options *options = invocation->options;
    struct plan_request request = {.files = options->configs, .sets = options->sets};
    struct plan plan;
    int code = plan_load(&plan, &request, invocation);
    if (code != 0)
        return code;
    plan_print(&plan, invocation->out);
    plan_release(&plan);
    return 0;
}

const struct command command_config_print = {
    .name = "config print",
    .summary = "a configuration as it takes effect, with where each value comes from",
    .description =
        "Prints the configuration as it takes effect: files joined, values filled in, defaults "
        "and\n"
        "presets written out, each key with the place it comes from. Secrets are not shown.",
    .rows = print_rows,
    .row_count = sizeof(print_rows) / sizeof(print_rows[0]),
    .options_size = sizeof(struct print_options),
    .examples =
        "  culprit config print --config culprit.yaml\n"
        "  culprit config print --config base.yaml --config node7.yaml\n",
    .exit_codes =
        "  0   printed\n"
        "  64  the command line is wrong\n"
        "  66  a configuration file is not there\n"
        "  77  no permission to read it\n"
        "  78  the configuration is wrong\n",
    .run = print_run,
};

static int schema_run(struct invocation *invocation) {
    schema_write(component_list(), invocation->out);
    return 0;
}

const struct command command_config_schema = {
    .name = "config schema",
    .summary = "the JSON schema of a configuration, for editors",
    .description =
        "Prints a JSON schema of the configuration of this build. An editor that knows it "
        "completes\n"
        "keys and marks what is wrong.",
    .examples = "  culprit config schema > culprit.schema.json\n",
    .exit_codes = "  0   printed\n",
    .run = schema_run,
};
