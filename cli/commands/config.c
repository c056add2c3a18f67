// SPDX-License-Identifier: Apache-2.0
// Prints a configuration as it takes effect, and the JSON schema of all.
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/component_list.h"
#include "cli/plan_load.h"
#include "pipeline/plan/schema.h"

struct print_options {
    struct word_list configs;
    struct word_list sets;
};

static const struct argument print_rows[] = {
    ARGUMENT("config", struct print_options, configs, ARGUMENT_LIST, .value_name = "FILE",
             .required = true, .help = "the configuration. Given again: joined, the last one wins"),
    SET_ARGUMENT(struct print_options),
};

static int print_run(struct invocation *invocation) {
    const struct print_options *options = invocation->options;
    struct plan_request request = {.files = options->configs, .sets = options->sets};
    return plan_load_and_print(&request, invocation);
}

const struct command command_config_print = {
    .name = "config print",
    .summary = "a configuration as it takes effect, and where it comes from",
    .description =
        "Prints the configuration as it takes effect: files joined, values filled in, defaults "
        "and "
        "presets written out, each key with the place it comes from. Secrets are not shown.",
    COMMAND_OPTIONS(print_rows, struct print_options),
    .examples =
        "  culprit config print --config culprit.yaml\n"
        "  culprit config print --config base.yaml --config node7.yaml\n",
    .exit_codes =
        "  0   printed\n"
        "  64  the command line is wrong\n"
        "  66  a configuration file is missing\n"
        "  74  reading or writing failed\n"
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
        "completes "
        "keys and marks what is wrong.",
    .examples = "  culprit config schema > culprit.schema.json\n",
    .exit_codes = "  0   printed\n  64  the command line is wrong\n  74  writing failed\n",
    .run = schema_run,
};
