// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/version.h"

#include "base/simd.h"
#include "cli/command.h"

static int version_run(struct invocation *invocation) {
    buffer_append_text(invocation->out, "culprit " CULPRIT_VERSION " (" CULPRIT_REVISION ")\n");
    buffer_append_text(invocation->out, "vector instructions: ");
    buffer_append_text(invocation->out, simd_level_name(simd_level()));
    buffer_append_text(invocation->out, "\n");
    return 0;
}

const struct command command_version = {
    .name = "version",
    .summary = "the version of culprit",
    .description =
        "Prints the version and the revision of the source it was built from, and which vector "
        "instructions are used on this processor: baseline, AVX2 or AVX-512.",
    .examples = "  culprit version\n  culprit --version\n",
    .exit_codes = "  0   printed\n  64  the command line is wrong\n  74  writing failed\n",
    .run = version_run,
};
