// SPDX-License-Identifier: Apache-2.0
// Two lists of verdicts that are read back and compared: the same bytes are equal, others are not,
// and what is told of them can be shown.
//
// The input is two lists, a zero byte between them. Compared one way and the other: what is missing
// this way is unexpected that way.
#include "base/text/utf8.h"
#include "cli/commands/verdict_diff.h"
#include "tests/fuzz/fuzz.h"

enum { SHOWN_MAX = 256 << 20 };

// Nothing in it may move the cursor of a terminal.
static void require_shown(struct slice text) {
    uint32_t c;
    for (size_t at = 0, length; at < text.size; at += length) {
        length = utf8_decode(text, at, &c);
        require(length > 0 && (c >= 0x20 || c == '\n') && (c < 0x7f || c >= 0xa0));
    }
}

static bool compare(struct slice expected, struct slice got, struct verdict_diff *diff) {
    struct buffer out;
    struct error error = {0};
    buffer_init(&out, SHOWN_MAX);
    *diff = (struct verdict_diff){0};
    enum status status = verdict_diff_compare(diff, &out, expected, "kept.jsonl", got, &error);
    bool same = slice_equal(expected, got);
    if (status == STATUS_OK) {
        require(diff->equal == same && !out.failed);
        require((out.size == 0) == same);
        require(diff->missing + diff->differing <= diff->expected_count);
        require(diff->unexpected + diff->differing <= diff->got_count);
        require_shown(buffer_slice(&out));
    } else {
        require(status == STATUS_BAD_DATA || status == STATUS_LIMIT);
        require(strlen(error.message) > 10); // made safe where it is shown
    }
    buffer_release(&out);
    return status == STATUS_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input input = {(const char *)data, size};
    struct slice kept = {"", 0}, rest = {"", 0};
    (void)fuzz_piece(&input, '\0', &kept);
    rest = (struct slice){input.at, input.left};
    struct slice first = fuzz_block(kept), second = fuzz_block(rest);
    struct verdict_diff forth, back, same;
    bool both = compare(first, second, &forth);
    both = compare(second, first, &back) && both;
    if (both) {
        require(forth.missing == back.unexpected && forth.unexpected == back.missing);
        require(forth.expected_count == back.got_count && forth.differing == back.differing);
    }
    if (compare(first, first, &same))
        require(same.missing + same.unexpected + same.differing == 0);
    fuzz_block_give(first);
    fuzz_block_give(second);
    return 0;
}
