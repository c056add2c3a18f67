// SPDX-License-Identifier: Apache-2.0
// From declared state to numbered blobs and back.
//
// A saver belongs to one component: it gives out the pages that changed since it was asked last, by
// comparing hashes, so that no component has to say what it touched. An image holds the blobs of
// one moment in memory: read from a store at the start, or handed from one service to the next at a
// reload. Cost of a save: one pass over the component's memory, and a copy of what changed.
#pragma once

#include "pipeline/component/component.h"

// -- blobs of one moment --
struct image;

struct image *image_new(void);
void image_free(struct image *image); // NULL is fine
// Copies. A later blob of the same name and number takes the place of the earlier one.
void image_put(struct image *image, const char *name, uint64_t number, struct slice bytes);
bool image_get(const struct image *image, const char *name, uint64_t number, struct slice *bytes);
// In the order in which they were put; false at the end.
bool image_next(const struct image *image, uint32_t *at, const char **name, uint64_t *number,
                struct slice *bytes);
// The strings that ids in the blobs stand for. Without this call they are those of this process.
void image_put_string(struct image *image, string_id id, struct slice text);
void image_strings_are_foreign(struct image *image);
// Whether another process made it.
bool image_is_foreign(const struct image *image);

// -- one component --
// Where blobs go: into a store's batch or an image.
struct blob_sink {
    void *context;
    void (*put)(void *context, const char *name, uint64_t number, struct slice bytes);
    void (*drop)(void *context, const char *name, uint64_t first, uint64_t last);
};

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
// Gives out what changed. The component must not run meanwhile.
void saver_save(struct saver *saver, const struct blob_sink *sink);
// The next save gives out everything.
void saver_forget(struct saver *saver);

enum saver_answer {
    SAVER_NOTHING, // the image has nothing of it
    SAVER_OTHER,   // made under another configuration or by another version
    SAVER_DAMAGED, // pages are missing or do not fit together
    SAVER_WHOLE,
};
// Whether it could be loaded; changes nothing.
enum saver_answer saver_check(const struct saver *saver, const struct image *image);
// Fills the entries; only after SAVER_WHOLE.
void saver_load(struct saver *saver, struct image *image);

// A hash of a component's configuration by its option rows; secrets are left out.
uint64_t config_fingerprint(const struct component_type *type, const void *config);
uint64_t fingerprint_add(uint64_t fingerprint, struct slice bytes);
