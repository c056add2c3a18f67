// SPDX-License-Identifier: Apache-2.0
// Where what must survive a crash is kept: spaces of numbered blobs, written in atomic batches. The
// extension `file_storage` is the implementation; whoever is given a `struct storage` asks it by
// the calls below.
//
// Writers collect puts and deletes in a batch and submit it; batches become durable (fsync) in the
// order in which they were submitted, each whole or not at all, and many share the cost of one
// commit. Every blob carries a checksum over its key and bytes.
//
// When the disk is full or fails, nothing is lost and nobody is told otherwise: batches wait, the
// storage is `degraded` with a reason and tries again until it works. While the bytes that wait are
// over a bound, storage_full is true and receivers stop taking input.
#pragma once

#include "base/slice.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

// Spaces. Within one, a blob is known by (name, number).
enum storage_space {
    STORAGE_META,  // what the store says of itself and of the last checkpoint
    STORAGE_STATE, // pages of declared tables: name "PIPELINE/COMPONENT/TABLE", number of the page
    STORAGE_STRINGS, // interned strings: name "", number the string id
    STORAGE_QUEUE,   // what an exporter has not delivered yet: name its id, number a sequence
    STORAGE_JOURNAL, // what a receiver acknowledged: name its id, number a sequence
    STORAGE_REPEATS, // Idempotency-Key and the like: name the receiver's id, number a sequence
    STORAGE_SPACE_COUNT
};
const char *storage_space_name(enum storage_space space); // "state"

enum { STORAGE_BLOB_MAX = 64 << 20, STORAGE_NAME_MAX = 1023 };
// Numbers are sequences, ids and pages: 47 bits last 4 years at a million a second. Deletes and
// scans may name higher ones; a put may not.
#define STORAGE_NUMBER_MAX ((UINT64_C(1) << 47) - 1)

// Visits a blob; false ends the scan.
typedef bool storage_visit(void *context, const char *name, uint64_t number, struct slice bytes);

struct storage_statistics {
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

// -- for the implementation ---------------------------------------------------------------------

struct storage;
struct storage_batch;

// What each does stands below with the function of the same name.
struct storage_calls {
    struct storage_batch *(*batch_new)(struct storage *storage);
    void (*put)(struct storage_batch *batch, enum storage_space space, const char *name,
                uint64_t number, struct slice bytes);
    void (*delete)(struct storage_batch *batch, enum storage_space space, const char *name,
                   uint64_t first, uint64_t last);
    void (*delete_names)(struct storage_batch *batch, enum storage_space space, const char *prefix);
    uint64_t (*submit)(struct storage_batch *batch, bool is_checkpoint);
    uint64_t (*durable)(const struct storage *storage);
    enum status (*wait)(struct storage *storage, uint64_t ticket, uint64_t timeout_ns,
                        struct error *error);
    void (*on_commit)(struct storage *storage, void (*committed)(void *context), void *context);
    enum status (*scan)(struct storage *storage, enum storage_space space, const char *name,
                        uint64_t first, uint64_t last, storage_visit *visit, void *context,
                        struct error *error);
    uint64_t (*last_number)(struct storage *storage, enum storage_space space, const char *name);
    void (*statistics)(struct storage *storage, struct storage_statistics *out);
    bool (*full)(const struct storage *storage);
    uint64_t (*room)(const struct storage *storage);
    void (*close_by)(struct storage *storage, uint64_t deadline_ns);
};

#define STORAGE_MAGIC UINT32_C(0x53746f72)

// The first member of what an implementation hands out.
struct storage {
    uint32_t magic; // STORAGE_MAGIC
    const struct storage_calls *calls;
};
struct storage_batch {
    uint32_t magic; // STORAGE_MAGIC until it is submitted
    struct storage *storage;
};

// -- for whoever uses it ------------------------------------------------------------------------

// A batch belongs to one thread until it is submitted. Bytes and names are copied.
struct storage_batch *storage_batch_new(struct storage *storage);
void storage_put(struct storage_batch *batch, enum storage_space space, const char *name,
                 uint64_t number, struct slice bytes);
// Numbers first to last, both included.
void storage_delete(struct storage_batch *batch, enum storage_space space, const char *name,
                    uint64_t first, uint64_t last);
// All numbers and all names that begin with `prefix`.
void storage_delete_names(struct storage_batch *batch, enum storage_space space,
                          const char *prefix);
// Hands the batch over; its ticket rises by one with each. Any thread.
uint64_t storage_submit(struct storage_batch *batch);
// The same for a checkpoint. One at a time is under way, which bounds it: however large it is, it
// is not input that waits, and storage_full does not count it among that.
uint64_t storage_submit_checkpoint(struct storage_batch *batch);

// The highest ticket that is durable; all lower ones are too. Any thread, no lock.
uint64_t storage_durable(const struct storage *storage);
// Waits until `ticket` is durable; STATUS_IO with the reason when that takes longer.
enum status storage_wait(struct storage *storage, uint64_t ticket, uint64_t timeout_ns,
                         struct error *error) MUST_USE;
// Calls back after each commit and each change of the degraded state, on the storage's thread; it
// must not block. At most 8, before anything is submitted.
void storage_on_commit(struct storage *storage, void (*committed)(void *context), void *context);

// Reads durable blobs of `name` (NULL: of all names, in order of name) with first <= number <=
// last in ascending order. Slices live until the visit returns, their bytes aligned to 16. Blobs
// whose checksum is wrong are skipped, counted and logged. Any thread; sees every batch that was
// durable when it began. No lock is held during a visit: it may submit and wait. What is written
// meanwhile may or may not be seen. Costs up to 512 KiB of memory while it runs, more only for a
// larger blob.
enum status storage_scan(struct storage *storage, enum storage_space space, const char *name,
                         uint64_t first, uint64_t last, storage_visit *visit, void *context,
                         struct error *error) MUST_USE;
// The highest number of `name`, 0 when there is none (or, with an error in the log, when the disk
// fails).
uint64_t storage_last_number(struct storage *storage, enum storage_space space, const char *name);

// Any thread.
void storage_statistics(struct storage *storage, struct storage_statistics *out);
// Whether input should be refused until it has caught up. Any thread, no lock.
bool storage_full(const struct storage *storage);
// How many bytes of input may be submitted before it is full of what waits. Any thread, no lock.
uint64_t storage_room(const struct storage *storage);
// Closing it waits no longer than to this moment (monotonic). NULL is fine.
void storage_close_by(struct storage *storage, uint64_t deadline_ns);
