// SPDX-License-Identifier: Apache-2.0
#include "receivers/records/options.h"

#include "base/clock.h"
#include "base/text/rfc3339.h"
#include "base/text/time_zone.h"
#include "config/problem.h"

#include <stdio.h>
#include <unistd.h>

void record_host_name(char name[RECORD_NODE_MAX + 1]) {
    if (gethostname(name, RECORD_NODE_MAX) != 0)
        name[0] = '\0';
    name[RECORD_NODE_MAX] = '\0';
}

enum status record_own_node(const struct record_config *config, char node[RECORD_NODE_MAX + 1],
                            struct error *error) {
    if (config->node == NULL)
        record_host_name(node);
    else
        snprintf(node, RECORD_NODE_MAX + 1, "%s", config->node);
    if (node[0] == '\0')
        return error_set(error, STATUS_OS, "this machine has no host name; set the option node");
    return STATUS_OK;
}

bool record_options_input(const struct record_config *config, struct decoder_input *input,
                          struct problem_list *problems) {
    bool right = true;
    struct time_zone *zone = NULL;
    *input = (struct decoder_input){.world_size = (uint32_t)config->world_size};
    if (config->node != NULL)
        input->node = slice_of(config->node);
    if (config->boot_time != NULL &&
        (rfc3339_parse(slice_of(config->boot_time), &input->boot_ns, NULL) != RFC3339_OK ||
         input->boot_ns == 0 || input->boot_ns > INT64_MAX)) {
        right = false;
        if (problems != NULL)
            problem_add(problems, "boot_time",
                        "not a time in RFC 3339, such as 2026-01-31T09:15:04Z");
    }
    if (config->timezone != NULL && !slice_equal(slice_of(config->timezone), SLICE("auto"))) {
        zone = time_zone_open(slice_of(config->timezone));
        right = right && zone != NULL;
        if (zone == NULL && problems != NULL)
            problem_add(
                problems, "timezone",
                "no such time zone; take auto, UTC, an offset such as +02:00, or a name that is "
                "a file in " TIME_ZONE_FOLDER ", such as Europe/Berlin");
    }
    input->zone = zone;
    return right;
}

void record_options_check(const struct record_config *config, struct problem_list *problems) {
    struct decoder_input input;
    if (config->job_id != NULL && config->job_id[0] == '\0')
        problem_add(problems, "job_id", "the text is empty; leave the key out or name the job");
    if (config->node != NULL && config->node[0] == '\0')
        problem_add(problems, "node", "the text is empty; leave the key out or name the node");
    if (config->node != NULL && strlen(config->node) > RECORD_NODE_MAX)
        problem_add(problems, "node", "the name of a node has at most %d bytes", RECORD_NODE_MAX);
    record_options_input(config, &input, problems);
    time_zone_close((struct time_zone *)(uintptr_t)input.zone);
}

void record_options_format(struct source *source, const struct decoder_type *decoder,
                           const struct decoder_input *known) {
    if (feed_source_decoder(source) != NULL)
        return;
    struct decoder_input input = *known;
    input.observed_ns = clock_unix_ns();
    feed_source_format(source, decoder, &input);
}
