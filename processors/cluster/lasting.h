// SPDX-License-Identifier: Apache-2.0
// What of a machine stays broken until somebody mends it, so that programs fail for it hours later:
// a fabric manager that does not run, a driver that does not fit its libraries, GPUs that are gone.
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

// Bits, which are kept in state: one is never given to another.
enum lasting { LASTING_NONE = 0, LASTING_FABRIC = 1, LASTING_DRIVER = 2, LASTING_GPUS = 4 };

// What a verdict of that kind says is broken.
uint32_t lasting_of_kind(const char *kind);
// What an exception says that its program met, by words in its message that have no other cause.
uint32_t lasting_of_words(struct slice message);
// Whether the words alone name it: other things make GPUs invisible, on the same machine only this.
bool lasting_needs_place(uint32_t lasting);
