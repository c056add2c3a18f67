// SPDX-License-Identifier: Apache-2.0
// Reads span streams: one event a line, as docs/spans.md describes them.
//
// Each line becomes an EVENT_SPAN, also one that is refused: what is wrong with it may depend on
// what came before, which only the stage knows. The decoder has no state of its own.
#pragma once

#include "pipeline/component/decoder.h"

extern const struct decoder_type decoder_spans;
