// SPDX-License-Identifier: Apache-2.0
// Lists directories, and tells which of their files are input.
//
// Names are read once into the caller's arena; a symbolic link or a file system without types costs
// one more call a name. Bounded by `max` names.
#include "receivers/file/find/directory.h"

#include "receivers/file/find/path.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>

enum { ENTRIES_FIRST = 64 };

// segment-NNNNNN.jsonl, as the sink names them.
static bool segment_number(struct slice name, uint64_t *number) {
    return text_skip(&name, SLICE("segment-")) && text_take_number(&name, 6, 6, number) &&
           slice_equal(name, SLICE(".jsonl"));
}

static bool is_segment(struct slice name) {
    uint64_t number;
    return segment_number(name, &number);
}

// `names` ends with NULL.
static bool is_one_of(struct slice name, const char *const *names) {
    while (*names != NULL && !slice_equal(name, slice_of(*names)))
        names++;
    return *names != NULL;
}

enum status directory_open(struct directory *directory, const char *path, struct error *error) {
    struct stat about;
    *directory = (struct directory){.stream = opendir(path[0] == '\0' ? "." : path)};
    if (directory->stream == NULL || fstat(dirfd(directory->stream), &about) != 0) {
        int os_error = errno;
        directory_close(directory);
        return error_set_os(error, STATUS_IO, os_error, "the directory cannot be opened");
    }
    directory->identity = file_identity_of(&about);
    return STATUS_OK;
}

void directory_close(struct directory *directory) {
    if (directory->stream != NULL)
        closedir(directory->stream);
    directory->stream = NULL;
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
        *capacity = *capacity == 0 ? ENTRIES_FIRST : *capacity * 2;
        directory->entries = arena_enlarge(arena, directory->entries, directory->count, *capacity,
                                           sizeof *directory->entries);
    }
    assert(directory->count < *capacity);
    directory->entries[directory->count++] = entry;
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
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (slice_equal(name, slice_of(names[i].name)))
            return names[i].bit;
    return is_segment(name_without_gzip(name)) ? HAS_SEGMENT : 0;
}

static enum directory_kind kind_of(struct slice name, unsigned has) {
    unsigned dump = HAS_MANIFEST | HAS_EVENTS | HAS_METADATA | HAS_ENVIRONMENT;
    bool dump_name = text_begins(name, SLICE("oom_dump_")) && (has & HAS_EVENTS) != 0;
    if (dump_name || ((has & dump) == dump && (has & HAS_SEGMENT) == 0))
        return DIRECTORY_DUMP;
    return (has & (HAS_MANIFEST | HAS_SEGMENT)) != 0 ? DIRECTORY_SINK : DIRECTORY_PLAIN;
}

void directory_read(struct directory *directory, const char *path, uint64_t max,
                    struct arena *arena) {
    assert(directory->stream != NULL && directory->count == 0);
    unsigned has = 0;
    uint32_t capacity = 0;
    for (struct dirent *entry; (entry = readdir(directory->stream)) != NULL;) {
        struct slice name = slice_of(entry->d_name);
        if (is_one_of(name, (const char *const[]){".", "..", NULL}))
            continue;
        if (directory->count >= max) {
            directory->cut = true;
            break;
        }
        has |= telling_name(name);
        add_entry(directory, &capacity, arena,
                  (struct directory_entry){arena_copy(arena, name),
                                           type_of(dirfd(directory->stream), entry)});
    }
    directory->kind = kind_of(path_name(slice_of(path)), has);
}

static bool is_part(enum directory_kind kind, struct slice name) {
    static const char *const sink[] = {"manifest.json", "rollups.json", "stormlog_run.json",
                                       "stormlog_attachments.json", NULL};
    static const char *const dump[] = {"manifest.json", "metadata.json", "environment.json", NULL};
    assert(kind == DIRECTORY_SINK || kind == DIRECTORY_DUMP);
    return is_one_of(name, kind == DIRECTORY_SINK ? sink : dump);
}

static bool has_name(const struct directory *directory, struct slice name) {
    uint32_t i = 0;
    while (i < directory->count && !slice_equal(directory->entries[i].name, name))
        i++;
    return i < directory->count;
}

// "comm_lib_trace_rank_3", "nccl_trace_rank12": a dump of one rank.
static bool is_of_rank(struct slice name) {
    size_t end = name.size;
    while (end > 0 && text_is_digit(name.data[end - 1]))
        end--;
    struct slice front = {name.data, end};
    return end < name.size && (name_ends(front, SLICE("rank")) || name_ends(front, SLICE("rank_")));
}

// "workerlog.0", as Paddle names the logs of a node's ranks.
static bool is_worker_log(struct slice name) {
    uint64_t rank;
    return text_skip(&name, SLICE("workerlog.")) && text_number(name, 9, &rank);
}

// Files that launchers and multilog call so, whose folders say whose they are.
static bool is_bare_log(struct slice name) {
    return is_one_of(name, (const char *const[]){"stdout", "stderr", "current", NULL});
}

// What is taken as input when nobody chose it by name.
static bool is_input(struct slice name) {
    static const char *const ends[] = {".jsonl",
                                       ".json",
                                       ".prom",
                                       ".pickle",
                                       ".pkl",
                                       ".kmsg",
                                       ".dmesg",
                                       ".export",
                                       ".log",
                                       ".out",
                                       ".err",
                                       ".stderr",
                                       ".stdout",
                                       "aer_dev_correctable",
                                       "aer_dev_nonfatal",
                                       "aer_dev_fatal"};
    static const char *const starts[] = {"dmesg", "kmsg", "kern.log", "messages", "syslog"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (name_ends(name, slice_of(ends[i])))
            return true;
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
        if (text_begins(name, slice_of(starts[i])))
            return true;
    return is_of_rank(name) || is_worker_log(name) || is_bare_log(name);
}

enum directory_verdict directory_judge(const struct directory *directory, struct slice name,
                                       bool listed) {
    assert(name.size > 0);
    if (name.data[0] == '.' || name_ends(name, SLICE(".tmp")))
        return ENTRY_SKIPPED;
    struct slice plain = name_without_gzip(name);
    if (directory->kind == DIRECTORY_PLAIN)
        return !listed || is_input(plain) ? ENTRY_TAKEN : ENTRY_LEFT_OUT;
    // A compressed segment stands in for its plain one, never beside it.
    if (directory->kind == DIRECTORY_DUMP
            ? slice_equal(name, SLICE("events.json"))
            : is_segment(plain) && (plain.size == name.size || !has_name(directory, plain)))
        return ENTRY_TAKEN;
    return is_part(directory->kind, name) ? ENTRY_PART : ENTRY_LEFT_OUT;
}

bool directory_segment_number(struct slice path, uint32_t *number) {
    uint64_t value = 0;
    bool right = segment_number(name_without_gzip(path_name(path)), &value);
    *number = (uint32_t)value;
    return right;
}

enum directory_kind directory_kind_of_file(struct slice path) {
    struct slice name = path_name(path);
    if (is_segment(name_without_gzip(name)))
        return DIRECTORY_SINK;
    if (!slice_equal(name, SLICE("events.json")) || name.size == path.size)
        return DIRECTORY_PLAIN;
    struct slice parent = {path.data, path.size - name.size - 1};
    return text_begins(path_name(parent), SLICE("oom_dump_")) ? DIRECTORY_DUMP : DIRECTORY_PLAIN;
}
