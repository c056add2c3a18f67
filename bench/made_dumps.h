// SPDX-License-Identifier: Apache-2.0
// Made-up Flight Recorder dumps, as PyTorch writes them, in JSON and as pickles (these with the
// call stack of each operation, which its JSON has not): a world group, a tensor and a data
// parallel group a rank, all ended but one all_reduce that rank 7 never calls.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { MADE_DUMP_TENSOR = 8 }; // ranks of a tensor parallel group; `ranks` is a multiple of it
enum { MADE_DUMP_SLOTS = 256 };

struct made_dump {
    char *data; // the caller's, of made_dump_size_max() bytes
    size_t size;
    // Of a pickle: the memo's place of each text, and 1; 0: not written yet.
    uint16_t memo[MADE_DUMP_SLOTS];
    uint16_t memoized;
};

size_t made_dump_size_max(int ranks, int entries);
// The dump of one rank: at least two entries. The same arguments give the same bytes.
void made_dump_write(struct made_dump *out, int rank, int ranks, int entries);
void made_dump_write_pickle(struct made_dump *out, int rank, int ranks, int entries);
