// SPDX-License-Identifier: Apache-2.0
#include "receivers/record_options.h"

void record_options_check(const struct record_config *config, struct problem_list *problems) {
    if (config->job_id != NULL && config->job_id[0] == '\0')
        problem_add(problems, "job_id", "the text is empty; leave the key out or name the job");
}

enum status record_options_open(const struct record_config *config,
                                const struct component_context *context, string_id *job,
                                struct quarantine *quarantine, struct error *error) {
    *job = config->job_id == NULL ? STRING_NONE : intern(slice_of(config->job_id));
    if (*job == STRING_REFUSED)
        return error_set(error, STATUS_LIMIT, "no more distinct names are taken");
    if (config->quarantine == NULL)
        return STATUS_OK;
    enum status status =
        quarantine_open(quarantine, config->quarantine, config->quarantine_max_size.bytes, error);
    // A further copy knows the file, so as not to read it, and leaves writing to the first.
    quarantine->silent = context->copy > 0;
    return status;
}
