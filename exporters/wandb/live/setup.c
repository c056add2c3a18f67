// SPDX-License-Identifier: Apache-2.0
// Writes what a run's config tells of the job: its name, world size, hosts, the version of culprit,
// and the run of the training itself where that is configured.
//
// A pass over the ranks, and a sort of their hosts. Said again when it has changed, but no more
// often than table_interval. At most HOSTS_MAX names.
#include "base/hash/hash.h"
#include "base/text/json_write.h"
#include "exporters/wandb/live/live.h"
#include "exporters/wandb/table.h"

#include <stdlib.h>

// The build defines it for this file.
#ifndef CULPRIT_VERSION
#define CULPRIT_VERSION "unknown"
#endif

enum { HOSTS_MAX = 64 };

static int compare_names(const void *left, const void *right) {
    struct slice a = intern_slice(*(const string_id *)left);
    struct slice b = intern_slice(*(const string_id *)right);
    size_t both = a.size < b.size ? a.size : b.size;
    int order = both == 0 ? 0 : memcmp(a.data, b.data, both);
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

// The hosts that the ranks' last samples name, sorted, each once.
static uint32_t list_hosts(const struct evaluation *evaluation, struct arena *arena,
                           string_id **hosts) {
    string_id *found = arena_take(arena, (evaluation->rank_count + 1) * sizeof *found);
    uint32_t count = 0, distinct = 0;
    for (uint32_t i = 0; i < evaluation->rank_count; i++) {
        const struct rank_series *series = evaluation->ranks[i].series;
        if (series->sample_count == 0)
            continue;
        const struct origin *origin = table_row(&evaluation->store->origins, series->last_origin);
        if (origin->host != STRING_NONE)
            found[count++] = origin->host;
    }
    if (count > 1)
        qsort(found, count, sizeof *found, compare_names);
    for (uint32_t i = 0; i < count; i++)
        if (distinct == 0 || found[i] != found[distinct - 1])
            found[distinct++] = found[i];
    assert(distinct <= count);
    *hosts = found;
    return distinct;
}

static void put_hosts(struct buffer *out, const string_id *hosts, uint32_t count) {
    wandb_member_key(out, "culprit_hosts");
    buffer_append_char(out, '[');
    for (uint32_t i = 0; i < count && i < HOSTS_MAX; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        json_append_string(out, intern_slice(hosts[i]));
    }
    buffer_append_char(out, ']');
}

void live_put_setup(const struct live *live, const struct live_run *run,
                    const struct evaluation *evaluation, struct arena *arena, struct buffer *out) {
    string_id *hosts;
    assert(evaluation->rank_count > 0);
    uint32_t count = list_hosts(evaluation, arena, &hosts);
    wandb_member(out, "culprit_job",
                 run->job == STRING_NONE ? cell_null : cell_slice(intern_slice(run->job)));
    wandb_member(out, "culprit_world_size", cell_int(evaluation->world_size));
    wandb_member(out, "culprit_host_count", cell_int(count));
    put_hosts(out, hosts, count);
    wandb_member(out, "culprit_version", cell_text(CULPRIT_VERSION));
    if (live->config->training_run != NULL)
        wandb_member(out, "culprit_training_run", cell_text(live->config->training_run));
}

bool live_setup_is_news(const struct live *live, struct live_run *run, struct slice setup,
                        uint64_t now_ns) {
    uint64_t hash = hash_slice(setup);
    bool is_early =
        run->setup_ns > 0 && now_ns < run->setup_ns + (uint64_t)live->config->table_interval.ns;
    if (hash == run->setup_hash || (is_early && run->begun))
        return false;
    run->setup_hash = hash;
    run->setup_ns = now_ns;
    return true;
}
