// SPDX-License-Identifier: Apache-2.0
#include "pipeline/component/service_status.h"

const char *component_state_name(enum component_state state) {
    static const char *const names[] = {
        [COMPONENT_STARTING] = "StatusStarting",
        [COMPONENT_OK] = "StatusOK",
        [COMPONENT_RECOVERABLE] = "StatusRecoverableError",
        [COMPONENT_PERMANENT] = "StatusPermanentError",
        [COMPONENT_FATAL] = "StatusFatalError",
        [COMPONENT_STOPPING] = "StatusStopping",
        [COMPONENT_STOPPED] = "StatusStopped",
    };
    return names[state];
}
