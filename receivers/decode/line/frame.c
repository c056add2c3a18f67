// SPDX-License-Identifier: Apache-2.0
#include "receivers/decode/line/frame.h"

void frame_clear(struct frame *frame, struct slice message, uint64_t position) {
    *frame = (struct frame){.message = message,
                            .position = position,
                            .lines = 1,
                            .rank = RANK_NONE,
                            .local_rank = -1,
                            .task = -1,
                            .cuda_device = -1,
                            .pid = -1};
}
