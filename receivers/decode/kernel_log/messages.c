// SPDX-License-Identifier: Apache-2.0
// The words that tell what a message is about, and who reads it then. O(message).
#include "receivers/decode/kernel_log/messages.h"

#include "receivers/decode/kernel_log/parts.h"

// Of two words that begin alike the longer one stands first.
static const struct word_row KERNEL_WORDS[] = {
    WORD("BTRFS", storage_read_btrfs),
    WORD("BUG: kernel NULL pointer dereference", machine_read_oops),
    WORD("BUG: soft lockup - CPU#", machine_read_soft_lockup),
    WORD("BUG: unable to handle kernel ", machine_read_oops),
    WORD("BUG: unable to handle page fault", machine_read_oops),
    WORD("Buffer I/O error on dev", storage_read_buffer),
    WORD("Disk failure on ", storage_read_raid),
    WORD("EDAC MC", machine_read_edac),
    WORD("EXT4-fs", storage_read_ext4),
    WORD("I/O error, dev ", storage_read_io_error),
    WORD("INFO: rcu", machine_read_stall),
    WORD("Kernel panic - not syncing: ", machine_read_panic),
    WORD("Killed process ", oom_read_killed),
    WORD("Lustre: ", storage_read_lustre_up),
    WORD("LustreError: ", storage_read_lustre),
    WORD("Machine Check: ", machine_read_check),
    WORD("Machine Check Exception: ", machine_read_check),
    WORD("Machine check events logged", machine_read_checks),
    WORD("Memory failure: ", machine_read_page),
    WORD("Oops: ", machine_read_oops_line),
    WORD("Unable to handle kernel ", machine_read_oops),
    WORD("Watchdog detected hard LOCKUP", machine_read_hard_lockup),
    WORD("XFS (", storage_read_xfs),
    WORD("amdgpu ", amdgpu_read_driver),
    WORD("amdgpu_job_timedout", amdgpu_read_timeout),
    WORD("critical ", storage_read_critical),
    WORD("general protection", fault_read_protection),
    WORD("kernel BUG at ", machine_read_bug),
    WORD("nfs: server ", storage_read_nfs),
    WORD("no available path - failing I/O", storage_read_no_path),
    WORD("nvme ", storage_read_nvme),
    WORD("oom-kill:constraint=", oom_read_constraint),
    WORD("oom_reaper: ", oom_read_reaper),
    WORD("segfault at ", fault_read_segfault),
    WORD("task ", machine_read_hung_task),
    WORD("trap ", fault_read_trap),
    WORD("unhandled ", fault_read_unhandled),
};
static const bool KERNEL_LETTERS[128] = {
    ['B'] = true, ['D'] = true, ['E'] = true, ['I'] = true, ['K'] = true,
    ['L'] = true, ['M'] = true, ['O'] = true, ['U'] = true, ['W'] = true,
    ['X'] = true, ['a'] = true, ['c'] = true, ['g'] = true, ['k'] = true,
    ['n'] = true, ['o'] = true, ['s'] = true, ['t'] = true, ['u'] = true,
};
static const struct word_table KERNEL_TABLE = {
    KERNEL_WORDS, sizeof KERNEL_WORDS / sizeof *KERNEL_WORDS, KERNEL_LETTERS};

static const struct word_row NODE_WORDS[] = {
    WORD("HW Exception by GPU node-", amdgpu_read_exception),
    WORD("Memory access fault by GPU node-", amdgpu_read_access),
    WORD("Process ", fault_read_dumped),
    WORD("detected NVSwitch ", nvswitch_read_manager),
};
static const bool NODE_LETTERS[128] = {['H'] = true, ['M'] = true, ['P'] = true, ['d'] = true};
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
