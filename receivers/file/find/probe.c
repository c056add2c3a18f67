// SPDX-License-Identifier: Apache-2.0
// Reads the beginnings and the ends of files, and asks what formats they are.
#include "receivers/file/find/probe.h"

#include "base/memory.h"
#include "receivers/decode/format.h"
#include "receivers/decode/formats.h"
#include "receivers/decode/forms/forms.h"
#include "receivers/decode/forms/needles.h"
#include "receivers/file/find/path.h"

#include <assert.h>
#include <fcntl.h>
#include <unistd.h>

enum { PART_MAX = 128 * 1024 };

struct probed {
    struct file_identity identity;
    uint64_t size; // when it was asked
    bool holds_input;
};

// -- names ----------------------------------------------------------------------------------------

static struct slice ending_of(struct slice name) {
    size_t at = name.size;
    while (at > 0 && name.data[at - 1] != '.')
        at--;
    return (struct slice){name.data + at, at == 0 ? 0 : name.size - at};
}

// "log.1", "train.o123456": a rotated file, or the output of a job.
static bool is_numbered(struct slice ending) {
    uint64_t number;
    if (!text_skip(&ending, SLICE("o")))
        (void)text_skip(&ending, SLICE("e"));
    return text_number(ending, 12, &number);
}

bool probe_suits(struct slice name) {
    static const char *const endings[] = {"txt", "text", "csv", "xml"};
    struct slice ending = ending_of(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (slice_equal(ending, slice_of(endings[i])))
            return true;
    return ending.size == 0 || is_numbered(ending);
}

// -- contents -------------------------------------------------------------------------------------

// Any text may be a log: this one has something that a line must have to be of interest.
static bool is_log(struct slice text) {
    struct needle_walk walk = {0};
    size_t place;
    bool certain;
    return memchr(text.data, '\0', text.size) == NULL &&
           forms_search(forms_builtin(), text, &walk, &place, &certain);
}

// `ends` are those of the same file; empty: the head is all of it.
static bool hold_input(struct slice head, struct slice ends) {
    struct format_guess guess = format_guess(head, true, FORMAT_UNKNOWN);
    if (guess.kind == FORMAT_LOG || format_is_open(guess, head))
        return is_log(head) || is_log(ends);
    return format_decoder(guess.kind) != NULL;
}

static struct slice read_at(int descriptor, char *text, uint64_t offset) {
    ssize_t got = pread(descriptor, text, PART_MAX, (off_t)offset);
    return (struct slice){text, got > 0 ? (size_t)got : 0};
}

static bool holds_input(const char *path, uint64_t size) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0)
        return false;
    char *text = memory_take(2 * (size_t)PART_MAX);
    struct slice head = read_at(descriptor, text, 0), ends = {text, 0};
    if (size > PART_MAX)
        ends = read_at(descriptor, text + PART_MAX, size - PART_MAX);
    bool holds = head.size > 0 && hold_input(head, ends);
    memory_give(text);
    close(descriptor);
    return holds;
}

// -- what is known --------------------------------------------------------------------------------

static struct probed *find(const struct probes *probes, struct file_identity identity) {
    uint32_t probe = 0, at;
    uint64_t hash = file_identity_hash(identity);
    while ((at = hash_index_next(&probes->index, hash, &probe)) != HASH_INDEX_NONE)
        if (file_identity_equal(probes->files[at].identity, identity))
            return &probes->files[at];
    return NULL;
}

static struct probed *add(struct probes *probes, struct file_identity identity) {
    assert(probes->count < PROBES_MAX);
    probes->files =
        memory_room(probes->files, &probes->capacity, probes->count, sizeof *probes->files);
    hash_index_add(&probes->index, file_identity_hash(identity), probes->count);
    struct probed *file = &probes->files[probes->count++];
    *file = (struct probed){.identity = identity};
    return file;
}

bool probe_file(struct probes *probes, struct slice path) {
    struct stat about;
    assert(path.data[path.size] == '\0');
    if (stat(path.data, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size == 0)
        return false;
    uint64_t size = (uint64_t)about.st_size;
    struct probed *file = find(probes, file_identity_of(&about));
    if (file != NULL && (file->holds_input || size / 2 < file->size))
        return file->holds_input;
    if (file == NULL && probes->count == PROBES_MAX)
        return false;
    file = file == NULL ? add(probes, file_identity_of(&about)) : file;
    file->size = size;
    file->holds_input = holds_input(path.data, size);
    return file->holds_input;
}

void probes_release(struct probes *probes) {
    hash_index_release(&probes->index);
    memory_give(probes->files);
    *probes = (struct probes){0};
}
