// SPDX-License-Identifier: Apache-2.0
// Which decoder reads which kind of input, and what the kinds are called in a configuration.
#pragma once

#include "pipeline/decoder.h"
#include "receivers/decode/format.h"

// NULL: this build has none for it.
const struct decoder_type *format_decoder(enum format_kind kind);
// The choices of the option `format`, "auto" first, NULL at the end, and what each stands for
// (FORMAT_UNKNOWN: auto).
extern const char *const format_choices[];
enum format_kind format_chosen(int choice);
