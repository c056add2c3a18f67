// SPDX-License-Identifier: Apache-2.0
// What each writer of a log wrote last: a line may mean something else behind another ("Root Cause"
// in front of a failure, a logger's warning in front of a traceback).
#pragma once

#include "base/slice.h"

#include <stdint.h>

enum { BEFORE_SIZE_MAX = 63 };

struct before;

struct before *before_make(void);
void before_free(struct before *before); // NULL is fine
// The beginning of the last line of this writer that was not blank, BEFORE_SIZE_MAX bytes at most;
// `message` takes its place. data NULL: nothing is known. The slice stands until the next call.
struct slice before_swap(struct before *before, uint64_t key, struct slice message);
// Lines were passed over of which it is not known who wrote them: nothing is known any more.
void before_forget(struct before *before); // NULL is fine
