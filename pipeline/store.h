// SPDX-License-Identifier: Apache-2.0
// Where what must survive a crash is kept: spaces of numbered blobs, written in atomic batches.
//
// Writers collect puts and deletes in a batch and submit it; one thread writes all batches that
// wait in one transaction and makes them durable (fsync), so that many share its cost (group
// commit). Batches become durable in the order in which they were submitted, each whole or not at
// all. Every blob carries a CRC-32C over its key and bytes.
//
// When the disk is full or fails, nothing is lost and nobody is told otherwise: batches wait, the
// store is `degraded` with a reason, and the thread tries again until it works (a failed fsync is
// never trusted: the transaction is written anew). While the bytes that wait are over a bound,
// store_full is true and receivers stop taking input.
#pragma once

#include "base/slice.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

// Spaces. Within one, a blob is known by (name, number).
enum store_space {
    STORE_META,    // what the store says of itself and of the last checkpoint
    STORE_STATE,   // pages of declared tables: name "PIPELINE/COMPONENT/TABLE", number of the page
    STORE_STRINGS, // interned strings: name "", number the string id
    STORE_QUEUE,   // what an exporter has not delivered yet: name its id, number a sequence
    STORE_JOURNAL, // what a receiver acknowledged: name its id, number a sequence
    STORE_REPEATS, // Idempotency-Key and the like: name the receiver's id, number a sequence
    STORE_SPACE_COUNT
};
const char *store_space_name(enum store_space space); // "state"

enum { STORE_BLOB_MAX = 64 << 20, STORE_NAME_MAX = 1023 };
// Numbers are sequences, ids and pages: 47 bits last 4 years at a million a second. Deletes and
// scans may name higher ones; a put may not.
#define STORE_NUMBER_MAX ((UINT64_C(1) << 47) - 1)

struct store;
struct store_batch;

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
// counted in the figures. STATUS_CANNOT_CREATE, STATUS_DENIED, STATUS_IO when it cannot be used at
// all.
enum status store_open(struct store **store, const struct store_options *options,
                       struct error *error) MUST_USE;
// Waits for what was submitted, up to `budget_ns`, and closes. NULL is fine.
void store_close(struct store *store, uint64_t budget_ns);

// store_close, from now on, waits no longer than to this moment (monotonic). NULL is fine.
void store_close_by(struct store *store, uint64_t deadline_ns);

// A batch belongs to one thread until it is submitted. Bytes and names are copied.
struct store_batch *store_batch_new(struct store *store);
void store_put(struct store_batch *batch, enum store_space space, const char *name, uint64_t number,
               struct slice bytes);
// Numbers first to last, both included.
void store_delete(struct store_batch *batch, enum store_space space, const char *name,
                  uint64_t first, uint64_t last);
// All numbers and all names that begin with `prefix`.
void store_delete_names(struct store_batch *batch, enum store_space space, const char *prefix);
// Hands the batch over; its ticket rises by one with each. Any thread.
uint64_t store_submit(struct store_batch *batch);
// The same for a checkpoint. One at a time is under way, which bounds it: however large it is, it
// is not input that waits, and store_full does not count it among that.
uint64_t store_submit_checkpoint(struct store_batch *batch);
void store_batch_drop(struct store_batch *batch); // instead of submitting

// The highest ticket that is durable; all lower ones are too. Any thread, no lock.
uint64_t store_durable(const struct store *store);
// Waits until `ticket` is durable; STATUS_IO with the reason when that takes longer.
enum status store_wait(struct store *store, uint64_t ticket, uint64_t timeout_ns,
                       struct error *error) MUST_USE;
// Calls back after each commit and each change of the degraded state, on the store's thread; it
// must not block. At most 8, before anything is submitted.
void store_on_commit(struct store *store, void (*committed)(void *context), void *context);

// Reads durable blobs of `name` (NULL: of all names, in order of name) with first <= number <=
// last in ascending order; `visit` returns false to end it. Slices live until it returns, their
// bytes aligned to 16. Blobs whose CRC is wrong are skipped, counted and logged. Any thread; sees
// every batch that was durable when it began. No lock is held during a visit: it may submit and
// wait. What is written meanwhile may or may not be seen. Costs up to 512 KiB of memory while it
// runs, more only for a larger blob.
typedef bool store_visit(void *context, const char *name, uint64_t number, struct slice bytes);
enum status store_scan(struct store *store, enum store_space space, const char *name,
                       uint64_t first, uint64_t last, store_visit *visit, void *context,
                       struct error *error) MUST_USE;
// The highest number of `name`, 0 when there is none (or, with an error in the log, when the disk
// fails).
uint64_t store_last_number(struct store *store, enum store_space space, const char *name);

struct store_figures {
    uint64_t size_bytes;    // on disk
    uint64_t max_bytes;     // allowed
    uint64_t pending_bytes; // submitted, not durable
    uint64_t commits;       // transactions
    uint64_t batches;       // in them
    uint64_t failures;      // of commits
    uint64_t damaged_blobs; // found since the start
    uint64_t repairs;       // times it was made anew from what could be read, since the start
    bool degraded;
    char reason[160]; // while degraded
};
// Any thread.
void store_figures(struct store *store, struct store_figures *figures);
// Whether input should be refused until it has caught up. Any thread, no lock.
bool store_full(const struct store *store);
// How many bytes of input may be submitted before it is full of what waits. Any thread, no lock.
uint64_t store_room(const struct store *store);

// For `culprit store check|dump`: opens read-only, whoever has it. Calls `visit` for every blob of
// `space`, or of every space with STORE_SPACE_COUNT, by space, name and number; `damaged` gets one
// sentence for each thing that is wrong (at most a hundred, then how many more), NULL for none.
// STATUS_NOT_FOUND: there is no store; STATUS_DENIED: it may not be read.
typedef void store_complaint(void *context, const char *sentence);
enum status store_inspect(const char *directory, enum store_space space, store_visit *visit,
                          store_complaint *damaged, void *context, struct error *error) MUST_USE;
