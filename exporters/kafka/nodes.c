// SPDX-License-Identifier: Apache-2.0
#include "exporters/kafka/nodes.h"

#include <assert.h>
#include <stddef.h>

enum { ROWS_PER_CHUNK = 256 };

static const uint64_t HOUR_NS = UINT64_C(3600) * 1000000000;

static bool pair_in_use(const void *row) {
    return ((const struct kafka_pair *)row)->job != STRING_NONE;
}

const struct row_type kafka_pair_rows = {
    .size = sizeof(struct kafka_pair),
    .rows_per_chunk = ROWS_PER_CHUNK,
    .strings = {offsetof(struct kafka_pair, job), offsetof(struct kafka_pair, node)},
    .has_strings = pair_in_use,
};

static struct kafka_pair *pair_at(const struct kafka_nodes *nodes, uint32_t row) {
    return table_row(&nodes->pairs, row);
}

static uint32_t hash_of(string_id node) {
    return row_hash(node, 0);
}

static void free_pair(struct kafka_nodes *nodes, uint32_t row) {
    struct kafka_pair *pair = pair_at(nodes, row);
    assert(pair_in_use(pair));
    row_index_remove(&nodes->index, hash_of(pair->node), row);
    table_free(&nodes->pairs, row);
    pair->job = STRING_NONE;
}

// The rows of a node, ascending.
static uint32_t rows_of(const struct kafka_nodes *nodes, string_id node,
                        uint32_t rows[KAFKA_NODE_JOBS_MAX]) {
    uint32_t count = 0, at = 0, row;
    while ((row = row_index_next(&nodes->index, hash_of(node), &at)) != TABLE_NO_ROW) {
        if (pair_at(nodes, row)->node != node)
            continue;
        assert(count < KAFKA_NODE_JOBS_MAX);
        uint32_t place = count++;
        for (; place > 0 && rows[place - 1] > row; place--)
            rows[place] = rows[place - 1];
        rows[place] = row;
    }
    return count;
}

// Looks through all of them, so not for each event.
static bool make_room(struct kafka_nodes *nodes) {
    if (nodes->looked_ns != 0 && nodes->newest_ns < nodes->looked_ns + HOUR_NS)
        return false;
    nodes->looked_ns = nodes->newest_ns;
    for (uint32_t row = 0; row < nodes->pairs.used; row++)
        if (pair_in_use(pair_at(nodes, row)) &&
            pair_at(nodes, row)->last_ns + HOUR_NS < nodes->newest_ns)
            free_pair(nodes, row);
    return table_live(&nodes->pairs) < KAFKA_PAIRS_MAX;
}

static void add_pair(struct kafka_nodes *nodes, const struct event *event, uint64_t time_ns) {
    if (table_live(&nodes->pairs) >= KAFKA_PAIRS_MAX && !make_room(nodes))
        return;
    uint32_t row = table_add(&nodes->pairs);
    *pair_at(nodes, row) =
        (struct kafka_pair){.job = event->job, .node = event->node, .last_ns = time_ns};
    row_index_put(&nodes->index, hash_of(event->node), row);
    assert(nodes->index.count == table_live(&nodes->pairs));
}

static bool is_name(string_id name) {
    return name != STRING_NONE && name != STRING_REFUSED;
}

void kafka_nodes_note(struct kafka_nodes *nodes, const struct event *event) {
    if (!is_name(event->job) || !is_name(event->node))
        return;
    uint64_t time_ns = event->time_ns == 0 ? nodes->newest_ns : event->time_ns;
    if (time_ns > nodes->newest_ns)
        nodes->newest_ns = time_ns;
    uint32_t rows[KAFKA_NODE_JOBS_MAX];
    uint32_t count = rows_of(nodes, event->node, rows), oldest = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct kafka_pair *pair = pair_at(nodes, rows[i]);
        if (pair->job == event->job) {
            if (time_ns > pair->last_ns)
                pair->last_ns = time_ns;
            return;
        }
        if (pair->last_ns < pair_at(nodes, rows[oldest])->last_ns)
            oldest = i;
    }
    if (count == KAFKA_NODE_JOBS_MAX) {
        if (time_ns < pair_at(nodes, rows[oldest])->last_ns)
            return;
        free_pair(nodes, rows[oldest]);
    }
    add_pair(nodes, event, time_ns);
}

uint32_t kafka_nodes_jobs(const struct kafka_nodes *nodes, string_id node,
                          string_id jobs[KAFKA_NODE_JOBS_MAX]) {
    uint32_t rows[KAFKA_NODE_JOBS_MAX], found = 0;
    uint32_t count = is_name(node) ? rows_of(nodes, node, rows) : 0;
    uint64_t newest_ns = 0;
    for (uint32_t i = 0; i < count; i++)
        if (pair_at(nodes, rows[i])->last_ns > newest_ns)
            newest_ns = pair_at(nodes, rows[i])->last_ns;
    for (uint32_t i = 0; i < count; i++)
        if (newest_ns - pair_at(nodes, rows[i])->last_ns <= HOUR_NS)
            jobs[found++] = pair_at(nodes, rows[i])->job;
    assert(found <= count && (found > 0 || count == 0));
    return found;
}

void kafka_nodes_release(struct kafka_nodes *nodes) {
    row_index_release(&nodes->index);
}

// Whether no node has more jobs than it may: the rows are read back from a file.
static bool is_whole(const struct kafka_nodes *nodes, string_id node) {
    uint32_t count = 0, at = 0, row;
    while ((row = row_index_next(&nodes->index, hash_of(node), &at)) != TABLE_NO_ROW)
        count += pair_at(nodes, row)->node == node;
    return count <= KAFKA_NODE_JOBS_MAX;
}

void kafka_nodes_restored(struct kafka_nodes *nodes) {
    row_index_clear(&nodes->index);
    nodes->newest_ns = nodes->looked_ns = 0;
    bool whole = true;
    for (uint32_t row = 0; row < nodes->pairs.used && whole; row++) {
        const struct kafka_pair *pair = pair_at(nodes, row);
        if (!pair_in_use(pair))
            continue;
        row_index_put(&nodes->index, hash_of(pair->node), row);
        if (pair->last_ns > nodes->newest_ns)
            nodes->newest_ns = pair->last_ns;
        whole = is_whole(nodes, pair->node);
    }
    if (whole)
        return;
    table_load(&nodes->pairs, 0, TABLE_NO_ROW, 0);
    row_index_clear(&nodes->index);
}
