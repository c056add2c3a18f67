// SPDX-License-Identifier: Apache-2.0
// What a process did to the files below one folder, in order: written by disk_record.c, read by
// disk_image.c. A log is records, one behind the other, each padded to 8 bytes.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum disk_kind {
    DISK_CREATE,     // `file` came to be as `path`
    DISK_OPEN,       // `file` is what `path` names now
    DISK_WRITE,      // `size` bytes at `offset`, behind the record
    DISK_TRUNCATE,   // to `size`
    DISK_SYNC,       // fsync, fdatasync of `file`
    DISK_RENAME,     // `path` to `other`
    DISK_UNLINK,     // `path`
    DISK_SYNC_NAMES, // fsync of the folder `path`
    DISK_MARK,       // what the test wanted to remember: `offset`, `size`
};

struct disk_record {
    uint32_t kind, file; // files are numbered from 1
    uint64_t offset, size;
    uint32_t path_size, other_size; // behind the record, without a zero; then the bytes
};

struct disk_log {
    uint8_t *data;
    size_t size;
};

static inline size_t disk_record_size(const struct disk_record *record) {
    size_t bytes = record->kind == DISK_WRITE ? (size_t)record->size : 0;
    return (sizeof *record + record->path_size + record->other_size + bytes + 7) / 8 * 8;
}
static inline const char *disk_record_path(const struct disk_record *record) {
    return (const char *)(record + 1);
}
static inline const uint8_t *disk_record_bytes(const struct disk_record *record) {
    return (const uint8_t *)(record + 1) + record->path_size + record->other_size;
}

// Linked into a program: records what it does below `root` from now on, in memory. One at a time.
void disk_record_begin(const char *root);
void disk_record_mark(uint64_t offset, uint64_t size); // any thread
struct disk_log disk_record_end(void);                 // its data is the caller's, for free()
