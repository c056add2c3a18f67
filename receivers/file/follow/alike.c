// SPDX-License-Identifier: Apache-2.0
// One small read for each mark before the file's end: 23 at most.
#include "receivers/file/follow/alike.h"

#include <assert.h>

enum likeness alike_compare(struct follower *follower, const struct tracked_file *file,
                            const struct extent *done, uint64_t bytes) {
    bool unreadable = false, known = bytes > 0;
    assert(file->descriptor >= 0 && bytes <= done->offset);
    if (done->head.size <= bytes && !follower_holds(follower, file, done->head, 0, &unreadable))
        return unreadable ? ALIKE_UNSURE : ALIKE_NOT;
    for (uint32_t i = 0; i < MARK_COUNT && mark_at(i) <= bytes; i++) {
        struct fingerprint mark = {done->marks[i], (uint32_t)mark_size(i)};
        known = mark.hash != 0;
        if (known && !follower_holds(follower, file, mark, mark_at(i) - mark_size(i), &unreadable))
            return unreadable ? ALIKE_UNSURE : ALIKE_NOT;
    }
    return known ? ALIKE_SURE : ALIKE_UNSURE;
}
