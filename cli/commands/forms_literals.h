// SPDX-License-Identifier: Apache-2.0
// By which texts the lines of a log are found, and how many lines hold each.
#pragma once

#include "base/buffer.h"
#include "receivers/decode/forms/forms.h"

// Appends a line for each text that a line of the log holds: how many lines do, the text, and the
// rows that look for it ("-": a reader in C), those that the most lines hold first. O(log).
void forms_print_literals(const struct forms *forms, struct slice log, struct buffer *out);
