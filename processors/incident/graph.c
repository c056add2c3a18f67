// SPDX-License-Identifier: Apache-2.0
// Links verdicts, joins them to sets, and finds the root of each.
//
// Searches for circles stop when they took GRAPH_STEPS_MAX steps in all; a link that is not known
// to close none is then left out.
#include "processors/incident/graph.h"

#include "base/sort.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { GRAPH_STEPS_MAX = 1 << 22 };

int incident_compare(const struct standing *a, const struct standing *b) {
    int order = COMPARE_KEYS(COMPARE(a->begin_ns, b->begin_ns),
                             COMPARE((uint64_t)b->severity, (uint64_t)a->severity));
    return order != 0 ? order : strcmp(a->id, b->id); // ids begin with the pattern
}

static int compare_nodes(const void *left, const void *right) {
    return incident_compare(((const struct incident_node *)left)->row,
                            ((const struct incident_node *)right)->row);
}

static int compare_links(const void *left, const void *right) {
    const struct incident_link *a = left, *b = right;
    return COMPARE_KEYS(COMPARE(a->cause, b->cause), COMPARE(a->effect, b->effect));
}

uint32_t incident_graph_find(const struct incident_graph *graph, const struct standing *row) {
    const struct incident_node key = {.row = (struct standing *)row};
    const struct incident_node *node =
        bsearch(&key, graph->nodes, graph->node_count, sizeof key, compare_nodes);
    assert(node != NULL);
    return (uint32_t)(node - graph->nodes);
}

// -- sets ---------------------------------------------------------------------------------------

static uint32_t find_set(struct incident_graph *graph, uint32_t at) {
    assert(at < graph->node_count);
    while (graph->nodes[at].set != at)
        at = graph->nodes[at].set = graph->nodes[graph->nodes[at].set].set;
    return at;
}

static void join(struct incident_graph *graph, uint32_t a, uint32_t b) {
    a = find_set(graph, a);
    b = find_set(graph, b);
    if (a < b)
        graph->nodes[b].set = a;
    else
        graph->nodes[a].set = b;
}

// The first that nothing explains; there is one, since there are no circles.
static void find_roots(struct incident_graph *graph) {
    for (uint32_t i = 0; i < graph->node_count; i++)
        graph->nodes[i].root = UINT32_MAX;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        uint32_t set = find_set(graph, i);
        if (!graph->nodes[i].is_explained && graph->nodes[set].root == UINT32_MAX)
            graph->nodes[set].root = i;
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        graph->nodes[i].root = graph->nodes[find_set(graph, i)].root;
        assert(graph->nodes[i].root < graph->node_count);
    }
}

// -- links --------------------------------------------------------------------------------------

static bool has_link(const struct incident_graph *graph, uint32_t cause, uint32_t effect) {
    for (uint32_t at = graph->nodes[cause].out; at != INCIDENT_NO_LINK; at = graph->links[at].next)
        if (graph->links[at].effect == effect)
            return true;
    return false;
}

// Whether links lead from one to the other. True as well when that would cost too much to know.
static bool leads(struct incident_graph *graph, uint32_t from, uint32_t to, uint32_t *stack) {
    uint32_t depth = 0;
    graph->visit++;
    stack[depth++] = from;
    graph->nodes[from].visit = graph->visit;
    while (depth > 0) {
        uint32_t at = graph->nodes[stack[--depth]].out;
        for (; at != INCIDENT_NO_LINK; at = graph->links[at].next) {
            struct incident_node *node = &graph->nodes[graph->links[at].effect];
            if (graph->links[at].effect == to || ++graph->steps > GRAPH_STEPS_MAX)
                return true;
            if (node->visit == graph->visit)
                continue;
            node->visit = graph->visit;
            stack[depth++] = graph->links[at].effect;
        }
    }
    return false;
}

static void add_link(struct incident_graph *graph, uint32_t cause, uint32_t effect) {
    assert(cause < graph->node_count && effect < graph->node_count && cause != effect);
    if (graph->link_count == INCIDENT_LINKS_MAX)
        return;
    graph->links[graph->link_count] =
        (struct incident_link){cause, effect, graph->nodes[cause].out};
    graph->nodes[cause].out = graph->link_count++;
    graph->nodes[effect].is_explained = true;
    join(graph, cause, effect);
}

static struct standing *find_row(const struct keyed_rows *standing, const char *id) {
    char key[VERDICT_ID_SIZE] = "";
    memcpy(key, id, strnlen(id, sizeof key - 1));
    return keyed_rows_find(standing, key);
}

// What detectors say of their own verdicts.
static void add_said(struct incident_graph *graph, const struct keyed_rows *standing,
                     uint32_t *stack) {
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct standing *row = graph->nodes[i].row;
        for (uint32_t j = 0; j < row->said_count; j++) {
            const struct standing *other_row = find_row(standing, row->said[j].id);
            if (other_row == NULL || other_row == row)
                continue;
            uint32_t other = incident_graph_find(graph, other_row);
            bool causes = row->said[j].relation == RELATION_CAUSES;
            uint32_t cause = causes ? i : other, effect = causes ? other : i;
            if (row->said[j].relation == RELATION_SAME_INCIDENT)
                join(graph, i, other);
            else if (!has_link(graph, cause, effect) && !leads(graph, effect, cause, stack))
                add_link(graph, cause, effect);
        }
    }
}

static uint32_t first_within(const struct incident_graph *graph, uint32_t at, uint64_t reach_ns) {
    uint64_t begin_ns = graph->nodes[at].row->begin_ns;
    while (at > 0 && graph->nodes[at - 1].row->begin_ns + reach_ns >= begin_ns)
        at--;
    return at;
}

struct linking {
    incident_explains *explains;
    const void *owner;
    uint64_t reach_ns;
    uint32_t *stack;
};

// `is_free`: the link closes no circle whatever there is.
static void try_link(struct incident_graph *graph, const struct linking *linking, uint32_t cause,
                     uint32_t effect, bool is_free) {
    if (linking->explains(linking->owner, graph->nodes[cause].row, graph->nodes[effect].row) &&
        !has_link(graph, cause, effect) &&
        (is_free || !leads(graph, effect, cause, linking->stack)))
        add_link(graph, cause, effect);
}

// What is broken explains those that met it, however late.
static void link_met(struct incident_graph *graph, const struct linking *linking) {
    for (uint32_t i = 0; i < graph->node_count; i++) {
        uint32_t met = graph->nodes[i].row->met;
        for (uint32_t j = 0; met != 0 && j < i; j++)
            if ((graph->nodes[j].row->broken & met) != 0)
                try_link(graph, linking, j, i, false);
    }
}

static void link_all(struct incident_graph *graph, const struct linking *linking) {
    bool none_said = graph->link_count == 0;
    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t j = i + 1;
             j < graph->node_count &&
             graph->nodes[j].row->begin_ns <= graph->nodes[i].row->start_ns + linking->reach_ns;
             j++)
            try_link(graph, linking, i, j, none_said);
    link_met(graph, linking);
    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t j = first_within(graph, i, linking->reach_ns); j < i; j++)
            try_link(graph, linking, i, j, false);
}

void incident_graph_make(struct incident_graph *graph, const struct keyed_rows *standing,
                         uint64_t reach_ns, incident_explains *explains, const void *owner,
                         struct arena *arena) {
    uint32_t count = keyed_rows_count(standing), at = 0;
    struct standing *row;
    uint64_t most = (uint64_t)count * count;
    *graph = (struct incident_graph){
        .nodes = arena_take(arena, (count + 1) * sizeof *graph->nodes),
        .links =
            arena_take(arena, (size_t)(most < INCIDENT_LINKS_MAX ? most + 1 : INCIDENT_LINKS_MAX) *
                                  sizeof *graph->links)};
    uint32_t *stack = arena_take(arena, (count + 1) * sizeof *stack);
    while ((row = keyed_rows_next(standing, &at)) != NULL)
        graph->nodes[graph->node_count++] =
            (struct incident_node){.row = row, .out = INCIDENT_NO_LINK};
    sort_stable(graph->nodes, graph->node_count, sizeof *graph->nodes, arena, compare_nodes);
    for (uint32_t i = 0; i < graph->node_count; i++)
        graph->nodes[i].set = i;
    add_said(graph, standing, stack);
    const struct linking linking = {explains, owner, reach_ns, stack};
    link_all(graph, &linking);
    find_roots(graph);
    // Causes and effects are told in the order of nodes: their times grow.
    sort_stable(graph->links, graph->link_count, sizeof *graph->links, arena, compare_links);
}
