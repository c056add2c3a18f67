// SPDX-License-Identifier: Apache-2.0
// A receiver that reads nothing: the program hands its pipelines the records itself.
#pragma once

#include "pipeline/component/component.h"

static inline enum status given_start(void *instance, const void *config,
                                      const struct component_context *context,
                                      struct error *error) {
    (void)instance, (void)config, (void)context, (void)error;
    return STATUS_OK;
}

static inline enum status given_run(void *instance, struct feed *feed, struct error *error) {
    (void)instance, (void)feed, (void)error;
    return STATUS_OK;
}

static const struct component_type given_type = {
    .name = "given",
    .summary = "is handed records by the program",
    .kind = COMPONENT_RECEIVER,
    .instance_size = 1,
    .start = given_start,
    .receiver = {.run = given_run},
};
