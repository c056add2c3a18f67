// SPDX-License-Identifier: Apache-2.0
// Which decoder reads which kind of input, and what the kinds are called in a configuration.
#pragma once

#include "pipeline/component/decoder.h"
#include "receivers/decode/format.h"

// NULL: there is none for it.
const struct decoder_type *format_decoder(enum format_kind kind);
// The choices of the option `format`, "auto" first, NULL at the end, and what each stands for
// (FORMAT_UNKNOWN: auto).
extern const char *const format_choices[];
enum format_kind format_chosen(int choice);

// For streams of records of any kind (HTTP, Kafka): tells by each record what it is. Telemetry with
// a schema_version costs nothing more, when that comes first or the record is like those before it;
// of others each key is looked at. What looks like nothing known is refused as telemetry, which
// says what is missing.
extern const struct decoder_type decoder_any;
// decoder_any for auto, else that of the choice.
const struct decoder_type *format_stream_decoder(int choice);
// Whether a decoder has this name: what another culprit passed on says it.
bool format_is_decoder(struct slice name);
// Whether that decoder is given lines, of which several may make up one record.
bool format_is_of_lines(struct slice name);
