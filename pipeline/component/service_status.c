// SPDX-License-Identifier: Apache-2.0
#include "pipeline/component/service_status.h"

#include <assert.h>

const char *component_state_name(enum component_state state) {
    assert(state <= COMPONENT_STOPPED);
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
