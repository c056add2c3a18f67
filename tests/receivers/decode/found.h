// SPDX-License-Identifier: Apache-2.0
// A line that is an event by itself must hold what logs are searched for (forms_search): else it
// would be passed over in a long log. For tests of readers, which have the lines.
#pragma once

#include "base/memory.h"
#include "pipeline/component/decoder.h"
#include "receivers/decode/forms/forms.h"

#include <check.h>

// Objects and lines in colour are looked at in any case; so are numbers of /dev/kmsg, whose lines
// are held.
static inline void found_by_search(const struct decoder_type *type, struct slice record,
                                   enum decode_category category) {
    struct needle_walk walk = {0};
    size_t place;
    bool certain;
    if (category != DECODE_OK || type->pass_over == NULL ||
        memchr(record.data, '\x1b', record.size) != NULL ||
        memchr(record.data, '{', record.size) != NULL)
        return;
    char *line = memory_take(record.size + 1);
    memcpy(line, record.data, record.size);
    line[record.size] = '\n';
    ck_assert_msg(forms_search(forms_builtin(), (struct slice){line, record.size + 1}, &walk,
                               &place, &certain),
                  "nothing that is searched for is in: %.*s", (int)record.size, record.data);
    memory_give(line);
}
