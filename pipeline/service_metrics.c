// SPDX-License-Identifier: Apache-2.0
#include "pipeline/service_state.h"

enum status service_metrics_start(struct service *service, struct error *error) {
    (void)service;
    (void)error;
    return STATUS_OK;
}

void service_metrics_stop(struct service *service) {
    (void)service;
}
