// SPDX-License-Identifier: Apache-2.0
// The extension that offers the store, with its options and metrics.
//
// Opens a store (store.h) for the service and shows its figures as metrics,
// which are read when somebody asks for them.
#include "pipeline/component/component.h"

#include "base/metrics/metrics.h"
#include "extensions/file_storage/store.h"
#include "extensions/file_storage/store_library.h"

#include <assert.h>

struct file_storage_config {
    const char *directory;
    bool create_directory;
    struct byte_size max_size;
    struct duration fsync_interval;
};

enum figure {
    SIZE,
    MAX_SIZE,
    PENDING,
    DEGRADED,
    FULL,
    COMMITS,
    BATCHES,
    FAILURES,
    DAMAGED,
    REPAIRS,
    FIGURE_COUNT,
    FIRST_COUNTER = COMMITS
};

struct file_storage {
    struct storage *store;
    struct metric *metrics[FIGURE_COUNT];
    uint64_t counted[FIGURE_COUNT]; // what the counters have of this store
    bool collects;
};

#define STOP_NS 5000000000ull // for what was submitted and is not durable yet

static const struct option OPTIONS[] = {
    OPTION(struct file_storage_config, directory, OPTION_TEXT, .claim = CLAIM_DIRECTORY,
           .default_value = "/var/lib/culprit",
           .help = "where culprit.db stands; only one process may use a directory"),
    OPTION(struct file_storage_config, create_directory, OPTION_BOOL, .default_value = "true",
           .help = "make the directory, and those above it, with mode 0750 when it is not there"),
    OPTION(struct file_storage_config, max_size, OPTION_SIZE, .default_value = "1GiB",
           .min = 16 << 20, .max = 1e15,
           .help = "bytes the store may hold; at seven eighths of it receivers stop taking input"),
    OPTION(struct file_storage_config, fsync_interval, OPTION_DURATION, .default_value = "5ms",
           .min = 0, .max = 10,
           .help = "a write to the disk waits at most this long for others to share it"),
};

#define FAMILY(metric, text, kind)                                                                 \
    { .name = (metric), .help = (text), .type = (kind) }
static const struct metric_family FAMILIES[FIGURE_COUNT] = {
    [SIZE] = FAMILY("culprit_store_size_bytes", "Bytes of the store on the disk.", METRIC_GAUGE),
    [MAX_SIZE] = FAMILY("culprit_store_max_size_bytes", "Bytes the store may hold.", METRIC_GAUGE),
    [PENDING] = FAMILY("culprit_store_pending_bytes", "Bytes that wait to be written to the store.",
                       METRIC_GAUGE),
    [DEGRADED] =
        FAMILY("culprit_store_degraded", "1 while the store cannot be written.", METRIC_GAUGE),
    [FULL] = FAMILY("culprit_store_full", "1 while receivers take no input because of the store.",
                    METRIC_GAUGE),
    [COMMITS] = FAMILY("culprit_store_commits_total", "Transactions that were made durable.",
                       METRIC_COUNTER),
    [BATCHES] =
        FAMILY("culprit_store_batches_total", "Batches in these transactions.", METRIC_COUNTER),
    [FAILURES] = FAMILY("culprit_store_failures_total",
                        "Times that the store could not be written.", METRIC_COUNTER),
    [DAMAGED] = FAMILY("culprit_store_damaged_blobs_total", "Blobs that were found damaged.",
                       METRIC_COUNTER),
    [REPAIRS] = FAMILY("culprit_store_repairs_total",
                       "Times that the store was damaged and made anew from what could be read.",
                       METRIC_COUNTER),
};

static void collect(void *context) {
    assert(((const struct file_storage *)context)->collects);
    struct file_storage *self = context;
    struct storage_statistics figures;
    storage_statistics(self->store, &figures);
    const uint64_t values[FIGURE_COUNT] = {
        [SIZE] = figures.size_bytes,        [MAX_SIZE] = figures.max_bytes,
        [PENDING] = figures.pending_bytes,  [DEGRADED] = figures.degraded,
        [FULL] = storage_full(self->store), [COMMITS] = figures.commits,
        [BATCHES] = figures.batches,        [FAILURES] = figures.failures,
        [DAMAGED] = figures.damaged_blobs,  [REPAIRS] = figures.repairs,
    };
    for (int i = 0; i < FIGURE_COUNT; i++) {
        if (i < FIRST_COUNTER) {
            metric_set(self->metrics[i], values[i]);
        } else { // a counter outlives this store
            metric_add(self->metrics[i], values[i] - self->counted[i]);
            self->counted[i] = values[i];
        }
    }
}

static enum status file_storage_start(void *instance, const void *config,
                                      const struct component_context *context,
                                      struct error *error) {
    assert(config != NULL);
    struct file_storage *self = instance;
    const struct file_storage_config *given = config;
    struct store_options options = {
        .directory = given->directory,
        .create_directory = given->create_directory,
        .max_size = given->max_size.bytes,
        .commit_interval_ns = (uint64_t)given->fsync_interval.ns,
        .site = context->site,
    };
    enum status status = store_open(&self->store, &options, error);
    if (status != STATUS_OK)
        return status;
    for (int i = 0; i < FIGURE_COUNT; i++)
        self->metrics[i] = METRIC(&FAMILIES[i], "extension", context->id);
    metrics_on_collect(collect, self);
    self->collects = true;
    return STATUS_OK;
}

static void file_storage_stop(void *instance) {
    struct file_storage *self = instance;
    if (self->collects) {
        metrics_remove_collect(collect, self);
        collect(self); // what came since somebody asked
    }
    self->collects = false;
    store_close(self->store, STOP_NS);
    self->store = NULL;
}

static struct storage *file_storage_store(void *instance) {
    return ((struct file_storage *)instance)->store;
}

const struct component_type extension_file_storage = {
    .name = "file_storage",
    .summary = "Keeps state, queues and acknowledged input in a file, so that a crash loses none.",
    .kind = COMPONENT_EXTENSION,
    .stability = STABILITY_BETA,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct file_storage_config),
    .instance_size = sizeof(struct file_storage),
    .library = &store_late_library,
    .start = file_storage_start,
    .stop = file_storage_stop,
    .extension = {.store = file_storage_store},
};
