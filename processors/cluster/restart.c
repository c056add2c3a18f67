// SPDX-License-Identifier: Apache-2.0
// How the answers are called.
#include "processors/cluster/restart.h"

void restart_tell(struct verdict_builder *builder, enum restart restart) {
    static const char *const NAMES[] = {[RESTART_UNKNOWN] = "unknown",
                                        [RESTART_HELPS] = "helps",
                                        [RESTART_IN_VAIN] = "in_vain",
                                        [RESTART_ELSEWHERE] = "elsewhere",
                                        [RESTART_STOPPED] = "stopped"};
    builder_attribute(builder, "culprit.restart", slice_of(NAMES[restart]));
}
