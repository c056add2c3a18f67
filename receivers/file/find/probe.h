// SPDX-License-Identifier: Apache-2.0
// Whether a file whose name says little ("console.txt", "slurm-123", "train.o1234") holds input: by
// its first and its last bytes.
//
// What was asked is kept, so that a directory that is searched again and again costs one call a
// file; a file that held nothing is asked again when it has doubled. Bounded: PROBES_MAX files.
#pragma once

#include "base/file_identity.h"
#include "base/hash/hash_index.h"

#include <stdbool.h>

enum { PROBES_MAX = 16384 };

// Zeros at first.
struct probes {
    struct hash_index index; // of files
    struct probed *files;
    uint32_t count, capacity;
};

// Whether a file of this name may be a log or a table that somebody saved, and not a program, a
// page or a configuration.
bool probe_suits(struct slice name);
// Whether the regular file holds what a reader knows. `path` ends with a zero. Reads at most
// 256 KiB, and not twice what has not doubled.
bool probe_file(struct probes *probes, struct slice path);
void probes_release(struct probes *probes);
