// SPDX-License-Identifier: Apache-2.0
// The exception in what a container left behind: the end of its log, or what it wrote to its
// termination log.
#pragma once

#include "base/slice.h"

#include <stdbool.h>

// The first exception of the Python tracebacks in it that is no mere wrapper of another process's
// ("ChildFailedError"), or the last when all are: its type as written and what follows it on its
// line. False when there is no whole traceback. Any bytes; linear.
bool last_words_find(struct slice text, struct slice *type, struct slice *words);
