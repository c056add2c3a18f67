// SPDX-License-Identifier: Apache-2.0
#include "cli/figures.h"

#include "base/text/human.h"

#include <inttypes.h>

void figures_append_bytes(struct buffer *out, uint64_t bytes) {
    char text[HUMAN_MAX];
    human_bytes(bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes, text);
    buffer_append_text(out, text);
}

void figures_append_count(struct buffer *out, uint64_t count, const char *noun) {
    buffer_append_format(out, "%" PRIu64 " %s%s", count, noun, count == 1 ? "" : "s");
}
