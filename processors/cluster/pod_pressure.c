// SPDX-License-Identifier: Apache-2.0
// Reads from the kubelet's text what a node was short of.
//
// The annotation is the surest; else the resource that the text names, or the conditions that it
// lists; words that stand alone come last. A text about a limit of the pod's own also speaks of
// ephemeral storage, so that is looked for first. Source: kubernetes pkg/kubelet/eviction.
#include "processors/cluster/pod_removal.h"

enum { WORD_MAX = 40 };

static char fold(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

// Where the lower-case `wanted` begins in the text at or after `from`; SIZE_MAX: nowhere.
static size_t find_folded(struct slice text, size_t from, const char *wanted) {
    size_t length = strlen(wanted);
    for (size_t at = from; at + length <= text.size; at++) {
        size_t same = 0;
        while (same < length && fold(text.data[at + same]) == wanted[same])
            same++;
        if (same == length)
            return at;
    }
    return SIZE_MAX;
}

static bool has(struct slice text, const char *wanted) {
    return find_folded(text, 0, wanted) != SIZE_MAX;
}

static bool is_word_char(char c) {
    c = fold(c);
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           (unsigned char)c >= 0x80;
}

// A resource's or a condition's name; 0: another one.
static uint32_t pressure_of_word(struct slice word) {
    static const struct {
        const char *name;
        uint32_t pressure;
    } names[] = {
        {"memory", PRESSURE_MEMORY},
        {"memorypressure", PRESSURE_MEMORY},
        {"ephemeral-storage", PRESSURE_DISK},
        {"diskpressure", PRESSURE_DISK},
        {"disk", PRESSURE_DISK},
        {"nodefs", PRESSURE_DISK},
        {"imagefs", PRESSURE_DISK},
        {"containerfs", PRESSURE_DISK},
        {"inodes", PRESSURE_INODES},
        {"nodefsinodes", PRESSURE_INODES},
        {"imagefsinodes", PRESSURE_INODES},
        {"pids", PRESSURE_PIDS},
        {"pid", PRESSURE_PIDS},
        {"pidpressure", PRESSURE_PIDS},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (word.size == strlen(names[i].name) && find_folded(word, 0, names[i].name) == 0)
            return names[i].pressure;
    return 0;
}

// The names in `text` from `at` on, up to the bracket's end or, without one, the first name.
static uint32_t read_names(struct slice text, size_t at) {
    uint32_t pressure = 0;
    bool listed = false;
    while (at < text.size) {
        char c = text.data[at];
        if (!is_word_char(c)) {
            listed = listed || c == '[';
            if (c == ']' || (c != '[' && c != ' ' && !listed))
                break;
            at++;
            continue;
        }
        size_t start = at;
        while (at < text.size && is_word_char(text.data[at]) && at - start < WORD_MAX)
            at++;
        pressure |= pressure_of_word((struct slice){text.data + start, at - start});
        if (!listed)
            break;
    }
    return pressure;
}

static uint32_t read_after(struct slice text, const char *phrase) {
    size_t at = find_folded(text, 0, phrase);
    return at == SIZE_MAX ? 0 : read_names(text, at + strlen(phrase));
}

// Words that stand anywhere in the text.
static uint32_t read_words(struct slice text) {
    uint32_t pressure = 0;
    for (size_t at = 0; at < text.size;) {
        size_t start = at;
        while (at < text.size && is_word_char(text.data[at]))
            at++;
        if (at > start)
            pressure |= pressure_of_word((struct slice){text.data + start, at - start});
        else
            at++;
    }
    return pressure;
}

static bool is_own_limit(struct slice text) {
    return (has(text, "emptydir volume") && has(text, "exceeds the limit")) ||
           has(text, "ephemeral local storage usage exceeds the total limit") ||
           has(text, "exceeded its local ephemeral storage limit");
}

uint32_t pressure_read(struct slice text, struct slice starved_resource) {
    bool low = has(text, "low on resource");
    if (!low && is_own_limit(text))
        return PRESSURE_LIMIT;
    uint32_t pressure = read_names(starved_resource, 0);
    if (pressure == 0)
        pressure = read_after(text, "low on resource:");
    if (pressure == 0)
        pressure = read_after(text, "had condition:");
    // What is short is named, but by a word of its own: others in the text are about something
    // else.
    return pressure == 0 && !low ? read_words(text) : pressure;
}
