// SPDX-License-Identifier: Apache-2.0
// What the names of phases mean. Programs name their own phases, so it goes by the words in a name:
// "data_loading" and "load batch" are input. A name is cut into words wherever no letter stands.
#include "processors/slow_rank/parts.h"

#include <string.h>

static char lower(char letter) {
    return letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
}

static bool is_letter(char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter & 0x80) != 0;
}

// Bytes of the name without a number at its end and what joins that to it.
static size_t without_number(const char *name, size_t size) {
    size_t end = size;
    while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9')
        end--;
    if (end == size)
        return size;
    while (end > 0 && strchr(" _-#:.=", name[end - 1]) != NULL)
        end--;
    return end == 0 ? size : end;
}

string_id phase_name(string_id label) {
    static const char between[] = " / ";
    struct slice text = intern_slice(label);
    char name[PHASE_NAME_MAX];
    for (const char *at; (at = memmem(text.data, text.size, between, strlen(between))) != NULL;) {
        size_t gone = (size_t)(at - text.data) + strlen(between);
        text = (struct slice){text.data + gone, text.size - gone};
    }
    size_t size = 0;
    for (; size < text.size && size < sizeof name; size++)
        name[size] = lower(text.data[size]);
    // Whole characters only.
    while (size > 0 && size < text.size && (text.data[size] & 0xc0) == 0x80)
        size--;
    string_id id = intern((struct slice){name, without_number(name, size)});
    return id == STRING_REFUSED ? STRING_NONE : id;
}

static const struct {
    const char *word;
    enum phase_class class;
} WORDS[] = {
    // Of several the first in this list.
    {"wait", PHASE_WAIT},
    {"waiting", PHASE_WAIT},
    {"sync", PHASE_WAIT},
    {"synchronize", PHASE_WAIT},
    {"barrier", PHASE_WAIT},
    {"all_reduce", PHASE_WAIT},
    {"allreduce", PHASE_WAIT},
    {"all_gather", PHASE_WAIT},
    {"allgather", PHASE_WAIT},
    {"reduce_scatter", PHASE_WAIT},
    {"broadcast", PHASE_WAIT},
    {"all_to_all", PHASE_WAIT},
    {"collective", PHASE_WAIT},
    {"communication", PHASE_WAIT},
    {"comm", PHASE_WAIT},
    {"nccl", PHASE_WAIT},
    {"checkpoint", PHASE_CHECKPOINT},
    {"checkpointing", PHASE_CHECKPOINT},
    {"ckpt", PHASE_CHECKPOINT},
    {"save", PHASE_CHECKPOINT},
    {"saving", PHASE_CHECKPOINT},
    {"eval", PHASE_OTHER},
    {"evaluate", PHASE_OTHER},
    {"evaluation", PHASE_OTHER},
    {"val", PHASE_OTHER},
    {"validate", PHASE_OTHER},
    {"validation", PHASE_OTHER},
    {"test", PHASE_OTHER},
    {"log", PHASE_OTHER},
    {"logging", PHASE_OTHER},
    {"metrics", PHASE_OTHER},
    {"data", PHASE_INPUT},
    {"dataloader", PHASE_INPUT},
    {"dataloading", PHASE_INPUT},
    {"input", PHASE_INPUT},
    {"inputs", PHASE_INPUT},
    {"batch", PHASE_INPUT},
    {"fetch", PHASE_INPUT},
    {"load", PHASE_INPUT},
    {"loading", PHASE_INPUT},
    {"loader", PHASE_INPUT},
    {"prefetch", PHASE_INPUT},
    {"backward", PHASE_BACKWARD},
    {"bwd", PHASE_BACKWARD},
};

static bool has_word(struct slice name, const char *word) {
    size_t size = strlen(word);
    for (size_t at = 0; at + size <= name.size; at++)
        if (memcmp(name.data + at, word, size) == 0 && (at == 0 || !is_letter(name.data[at - 1])) &&
            (at + size == name.size || !is_letter(name.data[at + size])))
            return true;
    return false;
}

enum phase_class phase_class_of(string_id name) {
    struct slice text = intern_slice(name);
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (has_word(text, WORDS[i].word))
            return WORDS[i].class;
    return PHASE_COMPUTE;
}

bool phase_is_step(const struct slow_config *config, string_id name) {
    static const char *const usual[] = {"step",      "train_step", "training_step",
                                        "iteration", "iter",       "train_iteration"};
    struct slice text = intern_slice(name);
    if (config->step_phase != NULL)
        return slice_equal(text, slice_of(config->step_phase));
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (slice_equal(text, slice_of(usual[i])))
            return true;
    return false;
}

bool phase_may_begin_step(string_id name) {
    switch (phase_class_of(name)) {
    case PHASE_CHECKPOINT:
    case PHASE_OTHER:
        return false;
    default:
        return !has_word(intern_slice(name), "epoch");
    }
}
