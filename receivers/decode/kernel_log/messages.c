// SPDX-License-Identifier: Apache-2.0
// The words that tell what a message is about, and who reads it then. O(message).
#include "receivers/decode/kernel_log/messages.h"

#include "receivers/decode/kernel_log/parts.h"

static const struct word_row KERNEL_WORDS[] = {
    WORD("Killed process ", oom_read_killed),
    WORD("Machine Check: ", machine_read_check),
    WORD("Machine Check Exception: ", machine_read_check),
    WORD("amdgpu ", amdgpu_read_bank),
    WORD("oom-kill:constraint=", oom_read_constraint),
};
static const bool KERNEL_LETTERS[128] = {['K'] = true, ['M'] = true, ['a'] = true, ['o'] = true};
static const struct word_table KERNEL_TABLE = {
    KERNEL_WORDS, sizeof KERNEL_WORDS / sizeof *KERNEL_WORDS, KERNEL_LETTERS};

static const struct word_row NODE_WORDS[] = {
    WORD("detected NVSwitch ", nvswitch_read_manager),
};
static const bool NODE_LETTERS[128] = {['d'] = true};
static const struct word_table NODE_TABLE = {NODE_WORDS, sizeof NODE_WORDS / sizeof *NODE_WORDS,
                                             NODE_LETTERS};

static enum read_result read_kernel(const struct frame *frame, struct slice message,
                                    struct reading *reading) {
    return words_read(&KERNEL_TABLE, message, frame, reading);
}

static enum read_result read_node(const struct frame *frame, struct slice message,
                                  struct reading *reading) {
    return words_read(&NODE_TABLE, message, frame, reading);
}

const struct line_reader READER_KERNEL_MESSAGES = {.name = "kernel_messages", .read = read_kernel};
const struct line_reader READER_NODE_MESSAGES = {.name = "node_messages", .read = read_node};
