// SPDX-License-Identifier: Apache-2.0
// For tests: kernel lines and GPU samples as decoders make them, among the events of cluster.h; and
// a detector's state moved into another one, as over a crash.
#pragma once

#include "processors/cluster/tables.h"
#include "tests/processors/cluster.h"
#include "tests/support/detector.h"

struct node_lines {
    struct kernel_line lines[CLUSTER_EVENTS_MAX];
    struct gpu_scrape scrapes[CLUSTER_EVENTS_MAX];
    struct gpu_sample samples[CLUSTER_EVENTS_MAX];
};
static struct node_lines node_lines;

static inline pci_address node_pci(const char *text) {
    pci_address address = PCI_NONE;
    if (text != NULL && !pci_parse(slice_of(text), &address))
        abort();
    return address;
}

static inline struct event *node_event_add(struct cluster *cluster, double seconds,
                                           const char *node, enum event_kind kind) {
    if (cluster->count == CLUSTER_EVENTS_MAX)
        abort();
    struct event *event = &cluster->events[cluster->count++];
    *event = (struct event){.time_ns = cluster_time(seconds),
                            .rank = RANK_NONE,
                            .kind = kind,
                            .node = node == NULL ? STRING_NONE : intern(slice_of(node))};
    return event;
}

static inline struct kernel_line *node_line(struct cluster *cluster, double seconds,
                                            const char *node, const char *pci,
                                            enum kernel_kind kind) {
    struct kernel_line *line = &node_lines.lines[cluster->count];
    *line = (struct kernel_line){.kind = kind, .address = node_pci(pci), .pid = -1};
    node_event_add(cluster, seconds, node, EVENT_KERNEL)->kernel = line;
    return line;
}

static inline struct kernel_line *node_xid(struct cluster *cluster, double seconds,
                                           const char *node, const char *pci, uint32_t code,
                                           const char *detail) {
    struct kernel_line *line = node_line(cluster, seconds, node, pci, KERNEL_XID);
    line->code = code;
    line->detail = slice_of(detail);
    return line;
}

static inline void node_value(struct gpu_sample *sample, enum gpu_field field, int64_t value) {
    sample->present |= UINT64_C(1) << field;
    sample->value[field] = (double)value;
    sample->whole[field] = value;
}

static inline struct gpu_sample *node_sample(struct cluster *cluster, double seconds,
                                             const char *node, const char *pci, const char *uuid) {
    struct gpu_sample *sample = &node_lines.samples[cluster->count];
    struct gpu_scrape *scrape = &node_lines.scrapes[cluster->count];
    *sample = (struct gpu_sample){.time_ns = cluster_time(seconds),
                                  .node = intern(slice_of(node)),
                                  .uuid = cluster_text(uuid),
                                  .address = node_pci(pci),
                                  .index = -1};
    *scrape = (struct gpu_scrape){sample, 1};
    node_event_add(cluster, seconds, node, EVENT_GPU_SAMPLE)->gpus = scrape;
    return sample;
}

static inline void node_shuffle(struct cluster *cluster, uint64_t seed) {
    for (uint32_t i = cluster->count; i > 1; i--) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint32_t j = (uint32_t)(seed >> 33) % i;
        struct event event = cluster->events[i - 1];
        cluster->events[i - 1] = cluster->events[j];
        cluster->events[j] = event;
    }
}

// What `from` remembers, in a detector that was just started.
static inline void detector_move_state(struct detector *from, struct detector *to) {
    struct state_list old = {0}, new = {0};
    component_list_state(from->type, from->instance, &old);
    component_list_state(to->type, to->instance, &new);
    ck_assert_uint_eq(old.count, new.count);
    for (uint32_t i = 0; i < old.count; i++) {
        ck_assert_str_eq(old.entries[i].name, new.entries[i].name);
        if (old.entries[i].table == NULL) {
            memcpy(new.entries[i].bytes, old.entries[i].bytes, old.entries[i].size);
            continue;
        }
        const struct table *table = old.entries[i].table;
        table_load(new.entries[i].table, table->used, table->free_head, table->free_count);
        for (uint32_t page = 0; page < table_page_count(table); page++) {
            size_t size, same;
            const void *bytes = table_page(table, page, &size);
            memcpy(table_page(new.entries[i].table, page, &same), bytes, size);
        }
    }
    component_restored(to->type, to->instance);
    to->newest_ns = from->newest_ns;
}
