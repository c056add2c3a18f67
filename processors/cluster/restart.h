// SPDX-License-Identifier: Apache-2.0
// Whether it helps to start the job again as it is: the attribute "culprit.restart" of a verdict.
#pragma once

#include "processors/cluster/verdict_builder.h"

enum restart {
    RESTART_UNKNOWN,
    RESTART_HELPS,
    RESTART_IN_VAIN,   // the same comes again until somebody changes something
    RESTART_ELSEWHERE, // without the node or the device, or after its repair
    RESTART_STOPPED,   // it was stopped on purpose: to start it again is somebody's decision
};

void restart_tell(struct verdict_builder *builder, enum restart restart);
