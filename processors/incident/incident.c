// SPDX-License-Identifier: Apache-2.0
// Which verdicts are one incident, and which of them is its root?
//
// Keeps every verdict that stands, with its places and times; at an evaluation joins those that may
// explain one another, marks the earliest of each connected set as the root, and puts out a verdict
// again when that changed what is said of it. O(verdicts, times those within the window) an
// evaluation; at most INCIDENT_VERDICTS_MAX are kept.
#include "processors/incident.h"

#include "base/hash/hash.h"
#include "processors/incident/map.h"

#include <stdlib.h>

enum {
    BLAMED_MAX = 8,
    INCIDENT_VERDICTS_MAX = 2048,
    VERDICT_ROWS_PER_CHUNK = 32,
    LINKS_MAX = 65536
};

struct incident_config {
    struct duration window;
    struct duration skew;
};

// What can explain what.
enum pattern {
    PATTERN_OTHER,
    PATTERN_MEMORY,
    PATTERN_HANG,
    PATTERN_XID,
    PATTERN_EVICTION,
    PATTERN_ECC,
    PATTERN_THERMAL,
    PATTERN_AER,
    PATTERN_COUNT
};

static const char *const PATTERN_NAMES[PATTERN_COUNT] = {
    [PATTERN_OTHER] = "",
    [PATTERN_MEMORY] = "memory_first_cause",
    [PATTERN_HANG] = "nccl_hang",
    [PATTERN_XID] = "xid_correlation",
    [PATTERN_EVICTION] = "pod_evicted",
    [PATTERN_ECC] = "hbm_ecc",
    [PATTERN_THERMAL] = "thermal_throttle",
    [PATTERN_AER] = "pcie_aer",
};

// EXPLAINS[cause]: bits of the patterns that it can lie behind.
#define BIT(pattern) (1u << (pattern))
static const unsigned EXPLAINS[PATTERN_COUNT] = {
    [PATTERN_MEMORY] = BIT(PATTERN_EVICTION) | BIT(PATTERN_HANG),
    [PATTERN_XID] = BIT(PATTERN_HANG) | BIT(PATTERN_EVICTION),
    [PATTERN_EVICTION] = BIT(PATTERN_HANG),
    [PATTERN_ECC] = BIT(PATTERN_HANG) | BIT(PATTERN_XID) | BIT(PATTERN_EVICTION),
    [PATTERN_THERMAL] = BIT(PATTERN_XID) | BIT(PATTERN_EVICTION),
    [PATTERN_AER] = BIT(PATTERN_XID) | BIT(PATTERN_ECC) | BIT(PATTERN_HANG) | BIT(PATTERN_EVICTION),
};

// A verdict that stands.
struct standing {
    struct row_head head;
    char id[VERDICT_ID_SIZE]; // the key
    int32_t pattern, severity;
    uint32_t can_explain; // a leak, or any other pattern: whether it is a cause at all
    uint64_t start_ns;
    uint64_t told;               // hash of what was said of its relations; 0: nothing yet
    struct places causes;        // of whom it blames
    struct places effects;       // and of whom it struck
    uint64_t blamed[BLAMED_MAX]; // hashes of the ranks that it calls culprits
    uint32_t blamed_count;
};

struct incident {
    struct incident_map map;
    struct keyed_rows standing;
    uint64_t window_ns, skew_ns;
    uint64_t dropped; // verdicts that stand and are not looked at any more
};

static const struct option OPTIONS[] = {
    {.name = "window",
     .type = OPTION_DURATION,
     .offset = offsetof(struct incident_config, window),
     .default_value = "10m",
     .min = 1,
     .max = 86400,
     .help = "a verdict explains others that begin up to so much later"},
    {.name = "skew",
     .type = OPTION_DURATION,
     .offset = offsetof(struct incident_config, skew),
     .default_value = "1s",
     .max = 60,
     .help = "and up to so much earlier, since clocks differ and Kubernetes writes whole seconds"},
};

static enum status incident_start(void *instance, const void *config,
                                  const struct component_context *context, struct error *error) {
    struct incident *self = instance;
    const struct incident_config *given = config;
    (void)context, (void)error;
    incident_map_init(&self->map);
    keyed_rows_init(&self->standing, "incident.standing", sizeof(struct standing), VERDICT_ID_SIZE,
                    VERDICT_ROWS_PER_CHUNK);
    self->window_ns = (uint64_t)given->window.ns;
    self->skew_ns = (uint64_t)given->skew.ns;
    return STATUS_OK;
}

static void incident_stop(void *instance) {
    struct incident *self = instance;
    incident_map_release(&self->map);
    keyed_rows_release(&self->standing);
}

static void incident_state(void *instance, struct state_list *list) {
    struct incident *self = instance;
    incident_map_state(&self->map, list);
    state_list_table(list, &self->standing.table);
}

static void incident_restored(void *instance) {
    struct incident *self = instance;
    incident_map_restored(&self->map);
    keyed_rows_restored(&self->standing);
}

// -- what stands --------------------------------------------------------------------------------

static enum pattern pattern_of(const struct verdict *verdict) {
    for (int i = PATTERN_OTHER + 1; i < PATTERN_COUNT; i++)
        if (strcmp(verdict->pattern, PATTERN_NAMES[i]) == 0)
            return (enum pattern)i;
    return PATTERN_OTHER;
}

static void take_blamed(struct standing *row, const struct verdict *verdict) {
    row->blamed_count = 0;
    for (uint32_t i = 0; i < verdict->entity_count && row->blamed_count < BLAMED_MAX; i++) {
        const struct entity *entity = &verdict->entities[i];
        if (entity->role != ROLE_CULPRIT || strcmp(entity->kind, "rank") != 0)
            continue;
        uint64_t hash = hash_slice(intern_slice(verdict->job));
        row->blamed[row->blamed_count++] = hash_more(hash, entity->name.data, entity->name.size);
    }
}

static bool blame_the_same(const struct standing *a, const struct standing *b) {
    for (uint32_t i = 0; i < a->blamed_count; i++)
        for (uint32_t j = 0; j < b->blamed_count; j++)
            if (a->blamed[i] == b->blamed[j])
                return true;
    return false;
}

static struct standing *find_standing(struct incident *self, const char *id) {
    char key[VERDICT_ID_SIZE] = "";
    memcpy(key, id, strlen(id));
    return keyed_rows_find(&self->standing, key);
}

// What began first is least likely to explain anything that is still to come.
static void drop_oldest(struct incident *self) {
    struct standing *row, *oldest = NULL;
    uint32_t at = 0;
    while ((row = keyed_rows_next(&self->standing, &at)) != NULL)
        if (oldest == NULL || row->start_ns < oldest->start_ns)
            oldest = row;
    if (oldest != NULL)
        keyed_rows_remove(&self->standing, oldest);
    self->dropped++;
}

static void take_verdict(struct incident *self, const struct batch *batch,
                         const struct verdict *verdict) {
    struct standing *row = find_standing(self, verdict->id);
    if (verdict->state == VERDICT_RESOLVED) {
        if (row != NULL)
            keyed_rows_remove(&self->standing, row);
        return;
    }
    if (row == NULL) {
        if (keyed_rows_count(&self->standing) >= INCIDENT_VERDICTS_MAX)
            drop_oldest(self);
        char key[VERDICT_ID_SIZE] = "";
        memcpy(key, verdict->id, strlen(verdict->id));
        row = keyed_rows_add(&self->standing, key);
    }
    row->pattern = (int32_t)pattern_of(verdict);
    row->severity = (int32_t)verdict->severity;
    row->start_ns = verdict->start_ns;
    row->can_explain = row->pattern != PATTERN_MEMORY || strcmp(verdict->kind, "leak") == 0;
    take_blamed(row, verdict);
    incident_map_places(&self->map, batch, verdict, false, &row->causes);
    incident_map_places(&self->map, batch, verdict, true, &row->effects);
}

// -- relations ----------------------------------------------------------------------------------

struct node {
    struct standing *row;
    uint32_t root; // of its set, while sets are joined
};

struct link {
    uint32_t cause, effect;
};

struct graph {
    struct node *nodes; // by start, severity, pattern, id
    uint32_t node_count;
    struct link *links;
    uint32_t link_count;
};

static int compare_rows(const struct standing *a, const struct standing *b) {
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    if (a->severity != b->severity)
        return a->severity > b->severity ? -1 : 1;
    int order = strcmp(PATTERN_NAMES[a->pattern], PATTERN_NAMES[b->pattern]);
    return order != 0 ? order : strcmp(a->id, b->id);
}

static int compare_nodes(const void *left, const void *right) {
    return compare_rows(((const struct node *)left)->row, ((const struct node *)right)->row);
}

static bool explains(const struct incident *self, const struct standing *cause,
                     const struct standing *effect) {
    if (cause->start_ns > effect->start_ns + self->skew_ns ||
        effect->start_ns > cause->start_ns + self->window_ns)
        return false;
    // A rank that stopped stops every group it is in: the group that waited first tells where.
    if (cause->pattern == PATTERN_HANG && effect->pattern == PATTERN_HANG)
        return compare_rows(cause, effect) < 0 && blame_the_same(cause, effect);
    if (!cause->can_explain || (EXPLAINS[cause->pattern] & BIT(effect->pattern)) == 0)
        return false;
    return places_meet(&cause->causes, &effect->effects);
}

static uint32_t find_root(struct graph *graph, uint32_t at) {
    while (graph->nodes[at].root != at)
        at = graph->nodes[at].root = graph->nodes[graph->nodes[at].root].root;
    return at;
}

static void add_link(struct graph *graph, uint32_t cause, uint32_t effect) {
    if (graph->link_count == LINKS_MAX)
        return;
    graph->links[graph->link_count++] = (struct link){cause, effect};
    uint32_t a = find_root(graph, cause), b = find_root(graph, effect);
    // The first in order is the root.
    if (a < b)
        graph->nodes[b].root = a;
    else
        graph->nodes[a].root = b;
}

static void make_graph(struct incident *self, struct arena *arena, struct graph *graph) {
    uint32_t count = keyed_rows_count(&self->standing), at = 0;
    struct standing *row;
    *graph = (struct graph){.nodes = arena_take(arena, (count + 1) * sizeof *graph->nodes)};
    while ((row = keyed_rows_next(&self->standing, &at)) != NULL)
        graph->nodes[graph->node_count++] = (struct node){.row = row};
    if (graph->node_count > 1)
        qsort(graph->nodes, graph->node_count, sizeof *graph->nodes, compare_nodes);
    uint64_t most = (uint64_t)count * count;
    graph->links =
        arena_take(arena, (size_t)(most < LINKS_MAX ? most + 1 : LINKS_MAX) * sizeof *graph->links);
    for (uint32_t i = 0; i < graph->node_count; i++)
        graph->nodes[i].root = i;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct standing *cause = graph->nodes[i].row;
        uint32_t first = i;
        while (first > 0 &&
               graph->nodes[first - 1].row->start_ns + self->skew_ns >= cause->start_ns)
            first--;
        for (uint32_t j = first; j < graph->node_count &&
                                 graph->nodes[j].row->start_ns <= cause->start_ns + self->window_ns;
             j++)
            if (i != j && explains(self, cause, graph->nodes[j].row))
                add_link(graph, i, j);
    }
}

// -- telling ------------------------------------------------------------------------------------

static void add_related(struct verdict *verdict, const struct standing *other,
                        enum relation relation) {
    if (verdict->related_count == VERDICT_RELATED_MAX)
        return;
    for (uint32_t i = 0; i < verdict->related_count; i++)
        if (strcmp(verdict->related[i].id, other->id) == 0)
            return;
    struct related *related = &verdict->related[verdict->related_count++];
    memcpy(related->id, other->id, sizeof related->id);
    related->relation = relation;
}

// Causes first, then what it caused, then the rest of the incident.
static void relate(struct graph *graph, uint32_t index, struct verdict *verdict,
                   struct arena *arena) {
    verdict->related = arena_take(arena, VERDICT_RELATED_MAX * sizeof *verdict->related);
    verdict->related_count = 0;
    for (uint32_t i = 0; i < graph->link_count; i++)
        if (graph->links[i].effect == index)
            add_related(verdict, graph->nodes[graph->links[i].cause].row, RELATION_CAUSED_BY);
    for (uint32_t i = 0; i < graph->link_count; i++)
        if (graph->links[i].cause == index)
            add_related(verdict, graph->nodes[graph->links[i].effect].row, RELATION_CAUSES);
    uint32_t root = find_root(graph, index);
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (i != index && find_root(graph, i) == root)
            add_related(verdict, graph->nodes[i].row, RELATION_SAME_INCIDENT);
}

static void add_attribute(struct verdict *verdict, const char *key, struct slice value,
                          struct arena *arena) {
    if (verdict->attribute_count == VERDICT_ATTRIBUTES_MAX)
        return;
    struct attribute *attributes =
        arena_take(arena, (verdict->attribute_count + 1) * sizeof *attributes);
    uint32_t at = 0;
    while (at < verdict->attribute_count && strcmp(verdict->attributes[at].key, key) < 0) {
        attributes[at] = verdict->attributes[at];
        at++;
    }
    attributes[at] = (struct attribute){key, value};
    for (uint32_t i = at; i < verdict->attribute_count; i++)
        attributes[i + 1] = verdict->attributes[i];
    verdict->attributes = attributes;
    verdict->attribute_count++;
}

static uint64_t hash_relations(const struct verdict *verdict, bool is_root) {
    uint64_t hash = hash_more(HASH_START, &is_root, sizeof is_root);
    for (uint32_t i = 0; i < verdict->related_count; i++) {
        const struct related *related = &verdict->related[i];
        hash = hash_more(hash, related->id, strlen(related->id));
        hash = hash_more(hash, &related->relation, sizeof related->relation);
    }
    return hash | 1;
}

static void tell(struct incident *self, struct graph *graph, struct batch *batch) {
    for (uint32_t i = 0; i < batch->verdicts.count; i++) {
        struct verdict *verdict = &batch->verdicts.items[i];
        struct standing *row = find_standing(self, verdict->id);
        if (row == NULL)
            continue;
        const struct node key = {.row = row};
        const struct node *node =
            bsearch(&key, graph->nodes, graph->node_count, sizeof key, compare_nodes);
        uint32_t index = (uint32_t)(node - graph->nodes);
        bool is_root = find_root(graph, index) == index;
        relate(graph, index, verdict, batch->arena);
        add_attribute(verdict, "culprit.root", is_root ? SLICE("true") : SLICE("false"),
                      batch->arena);
        uint64_t told = hash_relations(verdict, is_root);
        if (verdict->unchanged && row->told != told) {
            verdict->unchanged = false;
            verdict->state = VERDICT_UPDATED;
        }
        row->told = told;
    }
}

// -- order --------------------------------------------------------------------------------------

static int compare_verdicts(const struct verdict *a, const struct verdict *b) {
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    if (a->severity != b->severity)
        return a->severity > b->severity ? -1 : 1;
    return strcmp(a->pattern, b->pattern);
}

// Stable, so that the order of each detector's own stays; there are few.
static void order_verdicts(struct batch *batch) {
    struct verdict *items = batch->verdicts.items;
    for (uint32_t i = 1; i < batch->verdicts.count; i++) {
        struct verdict verdict = items[i];
        uint32_t at = i;
        for (; at > 0 && compare_verdicts(&verdict, &items[at - 1]) < 0; at--)
            items[at] = items[at - 1];
        items[at] = verdict;
    }
}

static void incident_consume(void *instance, struct batch *batch) {
    struct incident *self = instance;
    incident_map_take(&self->map, batch);
    if (!batch->evaluate)
        return;
    for (uint32_t i = 0; i < batch->verdicts.count; i++)
        take_verdict(self, batch, &batch->verdicts.items[i]);
    if (batch->verdicts.count > 0) {
        struct graph graph;
        make_graph(self, batch->arena, &graph);
        tell(self, &graph, batch);
        order_verdicts(batch);
    }
}

const struct component_type processor_incident = {
    .name = "incident",
    .summary = "Joins verdicts that explain one another and marks the root of each incident.",
    .kind = COMPONENT_PROCESSOR,
    .stability = STABILITY_BETA,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct incident_config),
    .instance_size = sizeof(struct incident),
    .takes = 1u << EVENT_RANK_MAP | 1u << EVENT_FLIGHT | 1u << EVENT_KUBERNETES,
    .needs = FACT_VERDICTS,
    .start = incident_start,
    .stop = incident_stop,
    .state = incident_state,
    .restored = incident_restored,
    .processor = {.consume = incident_consume},
};
