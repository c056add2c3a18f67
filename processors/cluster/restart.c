// SPDX-License-Identifier: Apache-2.0
// Words of exceptions that say more of a restart than their kind does.
#include "processors/cluster/restart.h"

#include "base/text/cut.h"

// The first that is found counts: what a device says goes before what a service says.
static const struct {
    const char *words;
    enum restart restart;
} WORDS[] = {
    // The disk, the mount, the GPU of this machine
    {"[Errno 5]", RESTART_ELSEWHERE},
    {"[Errno 19]", RESTART_ELSEWHERE},
    {"[Errno 30]", RESTART_ELSEWHERE},
    {"[Errno 107]", RESTART_ELSEWHERE},
    {"[Errno 116]", RESTART_ELSEWHERE},
    {"[Errno 117]", RESTART_ELSEWHERE},
    {"Input/output error", RESTART_ELSEWHERE},
    {"Read-only file system", RESTART_ELSEWHERE},
    {"Transport endpoint is not connected", RESTART_ELSEWHERE},
    {"Stale file handle", RESTART_ELSEWHERE},
    {"Structure needs cleaning", RESTART_ELSEWHERE},
    {"uncorrectable ECC error", RESTART_ELSEWHERE},
    {"uncorrectable NVLink error", RESTART_ELSEWHERE},
    {"invalid device ordinal", RESTART_ELSEWHERE},
    {"busy or unavailable", RESTART_ELSEWHERE},
    {"occupied by other processes", RESTART_ELSEWHERE},
    {"No CUDA GPUs are available", RESTART_ELSEWHERE},
    {"driver on your system is too old", RESTART_ELSEWHERE},
    {"system not yet initialized", RESTART_ELSEWHERE},
    // The program, by what the GPU says
    {"device-side assert", RESTART_IN_VAIN},
    {"no kernel image is available", RESTART_IN_VAIN},
    {"invalid configuration argument", RESTART_IN_VAIN},
    {"invalid argument", RESTART_IN_VAIN},
    // A service elsewhere, which may answer the next time
    {"SlowDown", RESTART_HELPS},
    {"ServiceUnavailable", RESTART_HELPS},
    {"Service Unavailable", RESTART_HELPS},
    {"Bad Gateway", RESTART_HELPS},
    {"Gateway Time", RESTART_HELPS},
    {"Internal Server Error", RESTART_HELPS},
    {"Too Many Requests", RESTART_HELPS},
    {"Max retries exceeded", RESTART_HELPS},
    {"Read timed out", RESTART_HELPS},
    {"Connection timed out", RESTART_HELPS},
    {"Connection reset by peer", RESTART_HELPS},
    {"Connection aborted", RESTART_HELPS},
    {"RemoteDisconnected", RESTART_HELPS},
    {"Broken pipe", RESTART_HELPS},
    {"HCCL error", RESTART_HELPS},
};

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

enum restart restart_by_words(struct slice type, struct slice message) {
    struct slice behind;
    if (is_held_by_another(message))
        return RESTART_ELSEWHERE;
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++) {
        struct slice words = slice_of(WORDS[i].words);
        if (text_find(message, words, &behind) || text_find(type, words, &behind))
            return WORDS[i].restart;
    }
    return RESTART_UNKNOWN;
}

void restart_tell(struct verdict_builder *builder, enum restart restart) {
    static const char *const NAMES[] = {[RESTART_UNKNOWN] = "unknown",
                                        [RESTART_HELPS] = "helps",
                                        [RESTART_IN_VAIN] = "in_vain",
                                        [RESTART_ELSEWHERE] = "elsewhere",
                                        [RESTART_STOPPED] = "stopped"};
    builder_attribute(builder, "culprit.restart", slice_of(NAMES[restart]));
}
