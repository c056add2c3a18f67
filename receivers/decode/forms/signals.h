// SPDX-License-Identifier: Apache-2.0
// What signals are called: SIGKILL, "Killed" (strsignal of glibc), Python's Signals.SIGKILL, 9.
#pragma once

#include "base/slice.h"

#include <stdint.h>

// Bytes of the signal in front of the text; 0: there is none.
size_t signal_size(struct slice text);
// Its number; 0: it is none, or none that is known.
int64_t signal_number(struct slice text);
// Whether the text is the front of what a signal is called in words ("Segmentation fau").
bool signal_is_front(struct slice text);
