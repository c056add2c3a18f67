// SPDX-License-Identifier: Apache-2.0
// Finds words in lines: many short texts, few of which hold the word.
#pragma once

#include "base/slice.h"

// Where the first `wanted` stands in the text; NULL: nowhere, or the text is empty. O(size) times
// at most 64: what is longer is looked for by memmem. Any thread.
const char *text_position(struct slice text, struct slice wanted);
