// SPDX-License-Identifier: Apache-2.0
// Texts that are kept in rows of tables: an array of fixed size, in which a longer text is
// shortened (text_shorten), and a name is cut where the array ends.
#pragma once

#include "base/slice.h"

#include <stdint.h>

// A text for people: as much of it as has room, shortened. Returns its size; no zero byte follows.
uint16_t row_text_copy(char *to, size_t room, struct slice text);
// The same together with a zero byte; a zero byte in the text ends it. What is left of the array is
// zero, so that equal texts are equal bytes.
void row_text_say(char *to, size_t room, struct slice text);
// The same for a name or an id, which is compared: as much of it as has room, whole characters.
void row_text_put(char *to, size_t room, struct slice text);
