// SPDX-License-Identifier: Apache-2.0
// A hash for texts that an attacker may choose in bulk: with a seed that nobody knows, nobody can
// prepare collisions. Not the same from process to process: nothing that is put out or kept may
// depend on it.
#pragma once

#include "base/slice.h"

#include <stdint.h>

uint64_t hash_seed(void); // random
uint64_t hash_seeded(struct slice text, uint64_t seed);
