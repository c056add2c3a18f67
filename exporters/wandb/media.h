// SPDX-License-Identifier: Apache-2.0
// What W&B wants of the files of a run: their names, checksums, the row value that points at them,
// and which files an artifact holds. Both sinks (exporters/wandb/online/online.h,
// exporters/wandb/offline/offline.h) say the same with these.
//
// Source: what wandb 0.31.0 sends (paths, row values, artifact digests). All functions are pure but
// media_list_*, which look at files. Any thread.
#pragma once

#include "base/arena.h"
#include "exporters/wandb/record.h"

enum {
    MEDIA_SHA256_SIZE = 64 + 1, // lower-case hex and the terminating zero
    MEDIA_MD5_SIZE = 24 + 1,    // base64 of the 16 bytes and the terminating zero
    MEDIA_DIGEST_SIZE = 32 + 1, // MD5 as lower-case hex and the terminating zero
    MEDIA_NAME_MAX = 128,       // of an artifact, a type, an alias
    MEDIA_FILES_MAX = 10000,    // in one artifact
    MEDIA_DEPTH_MAX = 32,       // of folders in a directory artifact
};
#define MEDIA_FILE_SIZE_MAX (UINT64_C(2) << 30) // exclusive: from there on W&B wants parts

void media_sha256(struct slice bytes, char hex[MEDIA_SHA256_SIZE]);
void media_md5(struct slice bytes, char base64[MEDIA_MD5_SIZE]);

// `key` as a relative path: no slash in front, parts "." and ".." become "_", zero bytes "_".
void media_append_key(struct buffer *out, struct slice key);
// media/table/KEY_ROW_SHA20.table.json or media/html/KEY_ROW_SHA20.html for a TABLE or HTML record
// whose row got the number `step`, where `sha256` is that of the file.
void media_append_path(struct buffer *out, const struct wandb_record *record, uint64_t step,
                       const char sha256[MEDIA_SHA256_SIZE]);
// The page with W&B's head line inserted, white space at both ends taken off.
void media_append_html(struct buffer *out, struct slice page);
// The file behind a TABLE or HTML record as it is uploaded (`html` is the scratch that a page is
// made in), its path and its checksum.
struct slice media_run_file(const struct wandb_record *record, uint64_t step, struct buffer *html,
                            struct buffer *path, char sha256[MEDIA_SHA256_SIZE]);
// The value under the record's key in its row: {"_type":"table-file",…} or {"_type":"html-file",…}.
// `path`, `sha256` and `size` are those of the file that is uploaded.
void media_append_value(struct buffer *out, const struct wandb_record *record, struct slice path,
                        const char sha256[MEDIA_SHA256_SIZE], uint64_t size);
// A TABLE's artifact: its collection run-RUN-KEY and the one file KEY.table.json in it. An
// ARTIFACT's name: its key. Characters that W&B refuses in a name are left out, and it is cut.
void media_append_artifact_name(struct buffer *out, const struct wandb_record *record);
void media_append_artifact_file(struct buffer *out, const struct wandb_record *record);

// -- the files of an artifact ---------------------------------------------------------------------

struct media_file {
    const char *name;   // in the artifact: POSIX, relative; this and the next belong to the list
    const char *source; // path on this machine; NULL: its bytes are in memory
    char md5[MEDIA_MD5_SIZE];
    uint64_t size;
    uint32_t depth; // while a directory is walked: folders above it, and whether it is one
    bool is_folder;
};

struct media_list {
    struct arena texts;
    struct media_file *files;
    uint32_t count, capacity;
};

// An empty list is all zero.
void media_list_release(struct media_list *list);
// A file in memory; its md5 and size are set.
void media_list_add_bytes(struct media_list *list, struct slice name, struct slice bytes);
// A file under its own name, or all files of a directory under NAME/…; symbolic links are followed,
// empty directories vanish. Names and sources only, sorted by name; md5 and size are not set.
// STATUS_NOT_FOUND, STATUS_DENIED, STATUS_IO; STATUS_LIMIT over MEDIA_FILES_MAX or MEDIA_DEPTH_MAX.
// `paths`: one, or several with a zero byte between them.
enum status media_list_add_path(struct media_list *list, struct slice paths,
                                struct error *error) MUST_USE;
// Sets md5 and size from what is read of `file->source`; writes the same bytes to descriptor `copy`
// unless that is -1. STATUS_CANNOT_CREATE when the copy cannot be written; STATUS_LIMIT from
// MEDIA_FILE_SIZE_MAX bytes on; else what reading it met.
enum status media_file_read(struct media_file *file, int copy, struct error *error) MUST_USE;
// Sorts by name and computes the artifact's digest; md5 of each file must be set.
void media_list_digest(struct media_list *list, char hex[MEDIA_DIGEST_SIZE]);
