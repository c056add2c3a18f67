// SPDX-License-Identifier: Apache-2.0
#include "pipeline/service_status.h"
const char *component_state_name(enum component_state state) {
    (void)state;
    return "";
}
