// SPDX-License-Identifier: Apache-2.0
// Finds the cause that the words of an exception tell of: a walk over a hundred rows, once a
// verdict.
#include "processors/cluster/causes.h"

#include "base/text/cut.h"

// "Process 918273 has 76.90 GiB memory in use. Process 39780 has 884.00 MiB …": of a GPU that
// another process holds, two are told of.
static bool is_held_by_another(struct slice message) {
    struct slice rest = message, behind;
    uint64_t pid;
    bool own = text_find(message, SLICE("this process has "), &behind);
    uint32_t others = 0;
    while (text_find(rest, SLICE("Process "), &rest))
        others += text_take_number(&rest, 1, 10, &pid) && text_begins(rest, SLICE(" has "));
    return others + own > 1;
}

const struct cause_row *cause_find(struct slice type, struct slice message) {
    static const struct cause_row held = {
        "memory that another process holds", RESTART_ELSEWHERE, "inspect_rank",
        "Another process holds memory of the GPU of {who}: the message has its PID. End it if it "
        "was left behind, or use another node."};
    if (is_held_by_another(message))
        return &held;
    struct slice behind;
    for (size_t i = 0; i < CAUSE_ROWS_COUNT; i++) {
        struct slice words = slice_of(CAUSE_ROWS[i].words);
        if (text_find(message, words, &behind) || text_find(type, words, &behind))
            return &CAUSE_ROWS[i];
    }
    return NULL;
}
