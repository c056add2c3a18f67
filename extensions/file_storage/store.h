// SPDX-License-Identifier: Apache-2.0
// A storage (pipeline/component/storage.h) in a SQLite file of a directory of its own.
//
// One thread writes all batches that wait in one transaction (group commit). A failed fsync is
// never trusted: the transaction is written anew.
#pragma once

#include "pipeline/component/storage.h"

struct store_options {
    const char *directory;       // the database is culprit.db in it
    bool create_directory;       // mode 0750, parents too
    uint64_t max_size;           // bytes on disk; beyond it the store counts as full
    uint64_t commit_interval_ns; // a commit waits this long for others to join
    const char *site;            // for logs, "extension/file_storage"
};

// Opens or makes the store and starts its thread. Only one process may have it open (a lock file
// says whose it is). A store that is damaged, or not of this format, is renamed to
// culprit.db.damaged-TIME; what can be read of it is carried over and what cannot is logged and
// counted in the statistics. STATUS_CANNOT_CREATE, STATUS_DENIED, STATUS_IO when it cannot be used
// at all.
enum status store_open(struct storage **store, const struct store_options *options,
                       struct error *error) MUST_USE;
// Waits for what was submitted, up to `budget_ns` and to the moment of storage_close_by, and
// closes. NULL is fine.
void store_close(struct storage *store, uint64_t budget_ns);

// For `culprit store check|dump`: opens read-only, whoever has it. Calls `visit` for every blob, by
// space, name and number, until it returns false; `damaged` gets one sentence for each thing that
// is wrong (at most a hundred, then how many more). STATUS_NOT_FOUND: there is no store;
// STATUS_DENIED: it may not be read.
typedef bool store_visit(void *context, enum storage_space space, const char *name, uint64_t number,
                         struct slice bytes);
typedef void store_complaint(void *context, const char *sentence);
enum status store_inspect(const char *directory, store_visit *visit, store_complaint *damaged,
                          void *context, struct error *error) MUST_USE;
