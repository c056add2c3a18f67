// SPDX-License-Identifier: Apache-2.0
#include "receivers/records/options.h"

void record_options_check(const struct record_config *config, struct problem_list *problems) {
    if (config->job_id != NULL && config->job_id[0] == '\0')
        problem_add(problems, "job_id", "the text is empty; leave the key out or name the job");
    if (config->node != NULL && config->node[0] == '\0')
        problem_add(problems, "node", "the text is empty; leave the key out or name the node");
}

enum status record_options_open(const struct record_config *config,
                                const struct component_context *context, struct feed_stamp *stamp,
                                struct quarantine *quarantine, struct error *error) {
    *stamp = (struct feed_stamp){
        .job = config->job_id == NULL ? STRING_NONE : intern(slice_of(config->job_id)),
        .node = config->node == NULL ? STRING_NONE : intern(slice_of(config->node))};
    if (stamp->job == STRING_REFUSED || stamp->node == STRING_REFUSED)
        return error_set(error, STATUS_LIMIT, "no more distinct names are taken");
    if (config->quarantine == NULL)
        return STATUS_OK;
    enum status status =
        quarantine_open(quarantine, config->quarantine, config->quarantine_max_size.bytes, error);
    // A further copy knows the file, so as not to read it, and leaves writing to the first.
    quarantine->silent = context->copy > 0;
    return status;
}
