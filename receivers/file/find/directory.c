// SPDX-License-Identifier: Apache-2.0
// What is in this directory, and which of it is input?
//
// Names are read once into the caller's arena; a symbolic link or a file system without types costs
// one more call a name. Bounded by `max` names.
#include "receivers/file/find/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENTRIES_FIRST = 64 };

static bool ends_with(struct slice text, struct slice end) {
    return text.size >= end.size &&
           memcmp(text.data + text.size - end.size, end.data, end.size) == 0;
}

static bool begins_with(struct slice text, struct slice start) {
    return text.size >= start.size && memcmp(text.data, start.data, start.size) == 0;
}

static struct slice without_end(struct slice text, struct slice end) {
    if (ends_with(text, end))
        text.size -= end.size;
    return text;
}

// segment-NNNNNN.jsonl, as the sink names them.
static bool is_segment(struct slice name) {
    struct slice start = SLICE("segment-"), end = SLICE(".jsonl");
    if (name.size != start.size + 6 + end.size || !begins_with(name, start) ||
        !ends_with(name, end))
        return false;
    for (size_t i = start.size; i < start.size + 6; i++) {
        if (name.data[i] < '0' || name.data[i] > '9')
            return false;
    }
    return true;
}

enum status directory_open(struct directory *directory, const char *path, struct error *error) {
    *directory = (struct directory){.descriptor = -1};
    int descriptor =
        open(path[0] == '\0' ? "." : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return error_set_os(error, STATUS_IO, errno, "the directory cannot be opened");
    struct stat about;
    if (fstat(descriptor, &about) != 0) {
        int os_error = errno;
        close(descriptor);
        return error_set_os(error, STATUS_IO, os_error, "the directory cannot be looked at");
    }
    directory->descriptor = descriptor;
    directory->device = about.st_dev;
    directory->inode = about.st_ino;
    return STATUS_OK;
}

void directory_close(struct directory *directory) {
    if (directory->descriptor >= 0)
        close(directory->descriptor);
    directory->descriptor = -1;
}

static enum entry_type type_of(int directory, const struct dirent *entry) {
    if (entry->d_type == DT_REG)
        return ENTRY_FILE;
    if (entry->d_type == DT_DIR)
        return ENTRY_DIRECTORY;
    if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
        return ENTRY_OTHER;
    struct stat about;
    if (fstatat(directory, entry->d_name, &about, 0) != 0)
        return ENTRY_OTHER;
    if (S_ISREG(about.st_mode))
        return ENTRY_FILE;
    return S_ISDIR(about.st_mode) ? ENTRY_DIRECTORY : ENTRY_OTHER;
}

static void add_entry(struct directory *directory, uint32_t *capacity, struct arena *arena,
                      struct directory_entry entry) {
    if (directory->count == *capacity) {
        uint32_t wider = *capacity == 0 ? ENTRIES_FIRST : *capacity * 2;
        struct directory_entry *entries = arena_take(arena, wider * sizeof *entries);
        if (directory->count > 0)
            memcpy(entries, directory->entries, directory->count * sizeof *entries);
        directory->entries = entries;
        *capacity = wider;
    }
    directory->entries[directory->count++] = entry;
}

static struct slice last_name(struct slice path) {
    const char *slash = path.size == 0 ? NULL : memrchr(path.data, '/', path.size);
    if (slash == NULL)
        return path;
    return (struct slice){slash + 1, (size_t)(path.data + path.size - slash - 1)};
}

enum { HAS_MANIFEST = 1, HAS_SEGMENT = 2, HAS_EVENTS = 4, HAS_METADATA = 8, HAS_ENVIRONMENT = 16 };

static unsigned telling_name(struct slice name) {
    static const struct {
        const char *name;
        unsigned bit;
    } names[] = {{"manifest.json", HAS_MANIFEST},
                 {"events.json", HAS_EVENTS},
                 {"metadata.json", HAS_METADATA},
                 {"environment.json", HAS_ENVIRONMENT}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (slice_equal(name, slice_of(names[i].name)))
            return names[i].bit;
    }
    return is_segment(without_end(name, SLICE(".gz"))) ? HAS_SEGMENT : 0;
}

static enum directory_kind kind_of(struct slice name, unsigned has) {
    unsigned dump = HAS_MANIFEST | HAS_EVENTS | HAS_METADATA | HAS_ENVIRONMENT;
    bool dump_name = begins_with(name, SLICE("oom_dump_")) && (has & HAS_EVENTS) != 0;
    if (dump_name || ((has & dump) == dump && (has & HAS_SEGMENT) == 0))
        return DIRECTORY_DUMP;
    return (has & (HAS_MANIFEST | HAS_SEGMENT)) != 0 ? DIRECTORY_SINK : DIRECTORY_PLAIN;
}

void directory_read(struct directory *directory, const char *path, uint64_t max,
                    struct arena *arena) {
    // The stream closes its descriptor, and the caller keeps one.
    int copy = openat(directory->descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = copy < 0 ? NULL : fdopendir(copy);
    if (stream == NULL) {
        if (copy >= 0)
            close(copy);
        return;
    }
    unsigned has = 0;
    uint32_t capacity = 0;
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        struct slice name = slice_of(entry->d_name);
        if (slice_equal(name, SLICE(".")) || slice_equal(name, SLICE("..")))
            continue;
        if (directory->count >= max) {
            directory->cut = true;
            break;
        }
        has |= telling_name(name);
        add_entry(directory, &capacity, arena,
                  (struct directory_entry){arena_copy(arena, name),
                                           type_of(directory->descriptor, entry)});
    }
    closedir(stream);
    directory->kind = kind_of(last_name(slice_of(path)), has);
}

static bool is_part(enum directory_kind kind, struct slice name) {
    static const char *const sink[] = {"manifest.json", "rollups.json", "stormlog_run.json",
                                       "stormlog_attachments.json"};
    static const char *const dump[] = {"manifest.json", "metadata.json", "environment.json"};
    const char *const *names = kind == DIRECTORY_SINK ? sink : dump;
    size_t count =
        kind == DIRECTORY_SINK ? sizeof sink / sizeof sink[0] : sizeof dump / sizeof dump[0];
    for (size_t i = 0; i < count; i++) {
        if (slice_equal(name, slice_of(names[i])))
            return true;
    }
    return false;
}

static bool has_name(const struct directory *directory, struct slice name) {
    for (uint32_t i = 0; i < directory->count; i++) {
        if (slice_equal(directory->entries[i].name, name))
            return true;
    }
    return false;
}

// "comm_lib_trace_rank_3", "nccl_trace_rank12": a dump of one rank.
static bool is_of_rank(struct slice name) {
    size_t end = name.size;
    while (end > 0 && name.data[end - 1] >= '0' && name.data[end - 1] <= '9')
        end--;
    struct slice front = {name.data, end};
    return end < name.size && (ends_with(front, SLICE("rank")) || ends_with(front, SLICE("rank_")));
}

// What is taken as input when nobody chose it by name.
static bool is_input(struct slice name) {
    static const struct slice ends[] = {{".jsonl", 6},
                                        {".json", 5},
                                        {".prom", 5},
                                        {".pickle", 7},
                                        {".pkl", 4},
                                        {".kmsg", 5},
                                        {".dmesg", 6},
                                        {".export", 7},
                                        {"aer_dev_correctable", 19},
                                        {"aer_dev_nonfatal", 16},
                                        {"aer_dev_fatal", 13}};
    static const struct slice starts[] = {{"dmesg", 5}, {"kmsg", 4}, {"kern.log", 8}};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (ends_with(name, ends[i]))
            return true;
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
        if (begins_with(name, starts[i]))
            return true;
    return is_of_rank(name);
}

enum directory_verdict directory_judge(const struct directory *directory, struct slice name,
                                       bool listed) {
    if (name.data[0] == '.' || ends_with(name, SLICE(".tmp")))
        return ENTRY_SKIPPED;
    struct slice plain = without_end(name, SLICE(".gz"));
    if (directory->kind == DIRECTORY_DUMP) {
        if (slice_equal(name, SLICE("events.json")))
            return ENTRY_TAKEN;
        return is_part(directory->kind, name) ? ENTRY_PART : ENTRY_LEFT_OUT;
    }
    if (directory->kind == DIRECTORY_SINK) {
        // A compressed segment stands in for its plain one, never beside it.
        if (is_segment(plain) && (plain.size == name.size || !has_name(directory, plain)))
            return ENTRY_TAKEN;
        return is_part(directory->kind, name) ? ENTRY_PART : ENTRY_LEFT_OUT;
    }
    return !listed || is_input(plain) ? ENTRY_TAKEN : ENTRY_LEFT_OUT;
}

bool directory_segment_number(struct slice path, uint32_t *number) {
    struct slice name = without_end(last_name(path), SLICE(".gz"));
    if (!is_segment(name))
        return false;
    *number = (uint32_t)strtoul(name.data + strlen("segment-"), NULL, 10);
    return true;
}

enum directory_kind directory_kind_of_file(struct slice path) {
    struct slice name = last_name(path);
    if (is_segment(without_end(name, SLICE(".gz"))))
        return DIRECTORY_SINK;
    if (!slice_equal(name, SLICE("events.json")) || name.size == path.size)
        return DIRECTORY_PLAIN;
    struct slice parent = {path.data, path.size - name.size - 1};
    return begins_with(last_name(parent), SLICE("oom_dump_")) ? DIRECTORY_DUMP : DIRECTORY_PLAIN;
}
