// SPDX-License-Identifier: Apache-2.0
// Texts that are kept in rows of tables: an array of fixed size, cut where it ends.
#pragma once

#include "base/slice.h"

// As much of the text as has room together with a zero byte, whole characters; a zero byte in the
// text ends it. What is left of the array is zero, so that equal texts are equal bytes.
void row_text_put(char *to, size_t room, struct slice text);
