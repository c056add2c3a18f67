// SPDX-License-Identifier: Apache-2.0
// From declared state to numbered blobs and back.
//
// A saver belongs to one component: it gives out the pages that changed since it was asked last, by
// comparing hashes, so that no component has to say what it touched. Cost of a save: one pass over
// the component's memory, and a copy of what changed.
#pragma once

#include "pipeline/component/component.h"
#include "pipeline/runtime/snapshot.h"

// Where blobs go: into a storage's batch or a snapshot.
struct blob_sink {
    void *context;
    void (*put)(void *context, enum storage_space space, const char *name, uint64_t number,
                struct slice bytes);
    // Numbers first to last. NULL: nothing that is dropped was ever put.
    void (*drop)(void *context, enum storage_space space, const char *name, uint64_t first,
                 uint64_t last);
};

struct blob_sink batch_sink(struct storage_batch *batch);
struct blob_sink snapshot_sink(struct snapshot *snapshot);

struct saved_entry {
    char *name;       // "OWNER/ENTRY"
    uint64_t *hashes; // of its pages, 0: not saved yet
    uint32_t count;
    uint32_t capacity;
    uint64_t header_hash;
};

struct saver {
    char *owner; // "verdicts/rank_group"
    // Of the component's configuration and that of all stages before it: state made under another
    // one is left aside.
    uint64_t fingerprint;
    struct state_list list;
    struct saved_entry saved[STATE_ENTRIES_MAX];
};

void saver_init(struct saver *saver, const char *owner, uint64_t fingerprint);
void saver_release(struct saver *saver);
// Gives out what changed, into STORAGE_STATE. The component must not run meanwhile.
void saver_save(struct saver *saver, const struct blob_sink *sink);
// The next save gives out everything.
void saver_forget(struct saver *saver);

enum saver_answer {
    SAVER_NOTHING, // the snapshot has nothing of it
    SAVER_OTHER,   // made under another configuration or by another version
    SAVER_DAMAGED, // pages are missing or do not fit together
    SAVER_WHOLE,
};
// Whether it could be loaded; changes nothing.
enum saver_answer saver_check(struct saver *saver, struct snapshot *snapshot);
// Fills the entries; only after SAVER_WHOLE.
void saver_load(struct saver *saver, struct snapshot *snapshot);

// A hash of a component's configuration by its option rows; secrets are left out.
uint64_t config_fingerprint(const struct component_type *type, const void *config);
uint64_t fingerprint_add(uint64_t fingerprint, struct slice bytes);
