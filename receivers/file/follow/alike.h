// SPDX-License-Identifier: Apache-2.0
// Whether a file that is shorter than what was read begins like that, as far as what was read is
// still known: then it may be a copy that is being made, or a size that went back for a moment.
#pragma once

#include "receivers/file/follow/follower.h"

enum {
    ALIKE_WAITS_MAX = 5,  // poll intervals that a copy which does not grow is waited for
    ALIKE_LOOKS_MAX = 60, // the same of one that grows, where too little is known to be sure
};

enum likeness {
    ALIKE_NOT,
    ALIKE_SURE,
    ALIKE_UNSURE, // as far as it is known; of some of it nothing is
};

// Compares the first `bytes` of the file with what was read, which is more.
enum likeness alike_compare(struct follower *follower, const struct tracked_file *file,
                            const struct extent *done, uint64_t bytes);
