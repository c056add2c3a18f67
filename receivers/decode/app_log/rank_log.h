// SPDX-License-Identifier: Apache-2.0
// What PyTorch's process groups, NCCL, gloo and the store write into the log of a rank.
//
// One pass over a message looks for the phrases that tell such lines; each has a function that
// reads what stands around it. Facts from PyTorch's ProcessGroupNCCL.cpp and TCPStore.cpp, NCCL's
// net_ib and socket transports, and gloo's transport/tcp, each in its versions of some years.
#pragma once

#include "receivers/decode/app_log/rank_words.h"
#include "receivers/decode/line/reading.h"

// Its blocks are gathered and read by others (reading.block).
extern const struct line_reader READER_RANK_LOG;

// One phrase. `breaks`: a message that ends with the phrase's first so many bytes, or more, but not
// all, is a line that something broke in two; 0: too short to tell.
struct telling {
    struct slice phrase;
    uint8_t breaks;
    enum read_result (*read)(struct said *said, struct reading *reading);
};
