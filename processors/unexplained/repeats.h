// SPDX-License-Identifier: Apache-2.0
// Which signs say what another one says of the same process already.
//
// A launcher tells an end in its log and again in its summary, a rank raises an exception and
// leaves an error file with it: one of the two knows the rank, the other only a pid or the place on
// its node. The one with the better name is told.
#pragma once

#include "processors/unexplained/signs.h"

// For each of these signs of one job, whether another of them says the same. Two are of one process
// when they say the same words, share a rank, a pid or a local rank on one node or in one file, and
// nothing else that both know differs. Where several could be meant none is. In the arena.
// O(n log n).
const bool *sign_repeats(const struct sign *const *signs, uint32_t count, struct arena *arena);
