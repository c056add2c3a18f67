// SPDX-License-Identifier: Apache-2.0
#include "receivers/decode/formats.h"

#include "receivers/decode/telemetry.h"

const struct decoder_type *format_decoder(enum format_kind kind) {
    static const struct decoder_type *const DECODERS[] = {
        [FORMAT_STORMLOG] = &decoder_stormlog,
        [FORMAT_APP_LOG] = NULL,
    };
    return (size_t)kind < sizeof DECODERS / sizeof DECODERS[0] ? DECODERS[kind] : NULL;
}

const char *const format_choices[] = {"auto", "stormlog", NULL};

enum format_kind format_chosen(int choice) {
    static const enum format_kind KINDS[] = {FORMAT_UNKNOWN, FORMAT_STORMLOG};
    return KINDS[choice];
}
