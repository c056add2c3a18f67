// SPDX-License-Identifier: Apache-2.0
// Which node and GPU does an entity of a verdict stand on?
//
// A rank by the rank map, by what sent its Flight Recorder dump, else by the host of its last
// sample; a pod by the ranks in it, else by its node; a GPU by its name. O(1) an entity, but for
// pods, whose ranks are looked for.
#include "processors/incident/map.h"

#include "base/hash/hash.h"

#include <stdio.h>
#include <stdlib.h>

struct rank_row {
    struct row_head head;
    string_id job; // the key: job and rank
    int32_t rank;
    uint64_t seen_ns;
    uint64_t pod; // hash of "NAMESPACE/NAME"; 0: not known
    struct place_at at;
};

enum { RANK_ROWS_PER_CHUNK = 64 };

void incident_map_init(struct incident_map *map) {
    keyed_rows_init(&map->ranks, "incident.ranks", sizeof(struct rank_row),
                    sizeof(string_id) + sizeof(int32_t), RANK_ROWS_PER_CHUNK);
    pod_map_init(&map->pods, "incident.pods", "incident.pod_names", POD_MAP_MAX_DEFAULT);
}

void incident_map_release(struct incident_map *map) {
    keyed_rows_release(&map->ranks);
    pod_map_release(&map->pods);
}

void incident_map_state(struct incident_map *map, struct state_list *list) {
    state_entry_string(state_list_table(list, &map->ranks.table), offsetof(struct rank_row, job));
    pod_map_state(&map->pods, list);
}

void incident_map_restored(struct incident_map *map) {
    keyed_rows_restored(&map->ranks);
    pod_map_restored(&map->pods);
}

// -- taking events ------------------------------------------------------------------------------

static uint64_t hash_joined(struct slice first, struct slice second) {
    uint64_t hash = hash_more(hash_slice(first), "/", 1);
    return hash_more(hash, second.data, second.size);
}

static uint64_t hash_gpu(struct slice node, pci_address address) {
    char text[PCI_TEXT_MAX];
    if (address == PCI_NONE)
        return 0;
    pci_format_device(address, text);
    return hash_joined(node, slice_of(text));
}

static void drop_oldest_rank(struct incident_map *map) {
    struct rank_row *row, *oldest = NULL;
    uint32_t at = 0;
    while ((row = keyed_rows_next(&map->ranks, &at)) != NULL)
        if (oldest == NULL || row->seen_ns < oldest->seen_ns)
            oldest = row;
    if (oldest == NULL)
        return;
    keyed_rows_remove(&map->ranks, oldest);
    map->evicted++;
}

static struct rank_row *rank_row(struct incident_map *map, string_id job, int32_t rank) {
    struct {
        string_id job;
        int32_t rank;
    } key = {job, rank};
    struct rank_row *row = keyed_rows_find(&map->ranks, &key);
    if (row != NULL)
        return row;
    if (keyed_rows_count(&map->ranks) >= INCIDENT_RANKS_MAX)
        drop_oldest_rank(map);
    return keyed_rows_add(&map->ranks, &key);
}

// The newest word counts; what it does not say stays.
static void take_rank(struct incident_map *map, const struct event *event, int32_t rank,
                      struct place_at at, uint64_t pod) {
    if (rank == RANK_NONE || at.node == 0)
        return;
    struct rank_row *row = rank_row(map, event->job, rank);
    bool newer = event->time_ns >= row->seen_ns;
    if (row->at.node != at.node && (newer || row->at.node == 0))
        row->at = (struct place_at){at.node, 0};
    if (row->at.node == at.node && at.gpu != 0 && (newer || row->at.gpu == 0))
        row->at.gpu = at.gpu;
    if (pod != 0 && (newer || row->pod == 0))
        row->pod = pod;
    if (newer)
        row->seen_ns = event->time_ns;
}

static uint64_t hash_pod(struct slice namespace, struct slice name) {
    return name.size == 0 ? 0 : hash_joined(namespace, name);
}

static void take_place(struct incident_map *map, const struct event *event) {
    const struct rank_place *place = event->place;
    string_id node = place->node != STRING_NONE ? place->node : event->node;
    struct slice name = intern_slice(node);
    struct place_at at = {node == STRING_NONE ? 0 : hash_slice(name),
                          hash_gpu(name, place->address)};
    take_rank(map, event, place->rank, at, hash_pod(place->namespace, place->pod));
}

static void take_flight(struct incident_map *map, const struct event *event) {
    const struct flight_dump *dump = event->flight;
    struct place_at at = {event->node == STRING_NONE ? 0 : hash_slice(intern_slice(event->node)),
                          0};
    take_rank(map, event, dump->rank, at, hash_pod(dump->namespace, dump->pod));
}

void incident_map_take(struct incident_map *map, const struct batch *batch) {
    for (uint32_t i = 0; i < batch->event_count; i++) {
        const struct event *event = &batch->events[i];
        if (!batch_selects(batch, i))
            continue;
        if (event->kind == EVENT_RANK_MAP)
            take_place(map, event);
        else if (event->kind == EVENT_FLIGHT)
            take_flight(map, event);
        else if (event->kind == EVENT_KUBERNETES)
            pod_map_take(&map->pods, event, batch->arena);
    }
}

// -- places of a verdict ------------------------------------------------------------------------

static void add_place(struct places *places, struct place_at at) {
    if (at.node == 0 || places->count == INCIDENT_PLACES_MAX)
        return;
    for (uint32_t i = 0; i < places->count; i++)
        if (places->items[i].node == at.node && places->items[i].gpu == at.gpu)
            return;
    places->items[places->count++] = at;
}

// "NODE/0000:45:00"
static void add_gpu(struct places *places, struct slice name) {
    const char *slash = memrchr(name.data, '/', name.size);
    if (slash == NULL)
        return;
    struct slice node = {name.data, (size_t)(slash - name.data)};
    add_place(places, (struct place_at){hash_slice(node), hash_slice(name)});
}

// Where the last sample of a rank came from.
static uint64_t sample_node(const struct batch *batch, string_id job, int32_t rank) {
    for (uint32_t i = 0; i < batch->evaluation_count; i++) {
        const struct evaluation *evaluation = &batch->evaluations[i];
        if (evaluation->job != job)
            continue;
        for (uint32_t j = 0; j < evaluation->rank_count; j++) {
            const struct rank_view *view = &evaluation->ranks[j];
            if (view->series->rank != rank)
                continue;
            const struct sample *last =
                series_at_or_before(evaluation->store, view->series, view->last_ns);
            if (last == NULL)
                return 0;
            string_id host = series_origin(evaluation->store, last)->host;
            return host == STRING_NONE ? 0 : hash_slice(intern_slice(host));
        }
    }
    return 0;
}

static void add_rank(const struct incident_map *map, const struct batch *batch,
                     struct places *places, string_id job, struct slice name) {
    char digits[16];
    if (name.size == 0 || name.size >= sizeof digits)
        return;
    memcpy(digits, name.data, name.size);
    digits[name.size] = '\0';
    struct {
        string_id job;
        int32_t rank;
    } key = {job, (int32_t)strtol(digits, NULL, 10)};
    const struct rank_row *row = keyed_rows_find(&map->ranks, &key);
    if (row == NULL && job != STRING_NONE) {
        // What says where ranks run often names no job.
        key.job = STRING_NONE;
        row = keyed_rows_find(&map->ranks, &key);
    }
    if (row != NULL)
        add_place(places, row->at);
    else
        add_place(places, (struct place_at){sample_node(batch, job, key.rank), 0});
}

// "NAMESPACE/NAME"
static void add_pod(const struct incident_map *map, struct places *places, struct slice name) {
    uint64_t pod = hash_slice(name);
    uint32_t before = places->count, at = 0;
    const struct rank_row *row;
    while ((row = keyed_rows_next(&map->ranks, &at)) != NULL)
        if (row->pod == pod)
            add_place(places, row->at);
    const char *slash = memchr(name.data, '/', name.size);
    struct pod_place place;
    if (places->count > before || slash == NULL)
        return;
    size_t size = (size_t)(slash - name.data);
    if (pod_map_find(&map->pods, (struct slice){NULL, 0}, (struct slice){name.data, size},
                     (struct slice){slash + 1, name.size - size - 1}, &place) &&
        place.node != STRING_NONE)
        add_place(places, (struct place_at){hash_slice(intern_slice(place.node)), 0});
}

void incident_map_places(const struct incident_map *map, const struct batch *batch,
                         const struct verdict *verdict, bool victims, struct places *places) {
    *places = (struct places){.count = 0};
    for (uint32_t i = 0; i < verdict->entity_count; i++) {
        const struct entity *entity = &verdict->entities[i];
        if (entity->role == ROLE_VICTIM && !victims)
            continue;
        if (strcmp(entity->kind, "gpu") == 0)
            add_gpu(places, entity->name);
        else if (strcmp(entity->kind, "rank") == 0)
            add_rank(map, batch, places, verdict->job, entity->name);
        else if (strcmp(entity->kind, "pod") == 0)
            add_pod(map, places, entity->name);
    }
    // A node stands for itself only where nothing finer is known of it.
    for (uint32_t i = 0; i < verdict->entity_count; i++) {
        const struct entity *entity = &verdict->entities[i];
        if (strcmp(entity->kind, "node") != 0 || (entity->role == ROLE_VICTIM && !victims))
            continue;
        uint64_t node = hash_slice(entity->name);
        bool finer = false;
        for (uint32_t j = 0; j < places->count; j++)
            finer = finer || places->items[j].node == node;
        if (!finer)
            add_place(places, (struct place_at){node, 0});
    }
}

bool places_meet(const struct places *a, const struct places *b) {
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t j = 0; j < b->count; j++) {
            const struct place_at *one = &a->items[i], *other = &b->items[j];
            if (one->node == other->node &&
                (one->gpu == 0 || other->gpu == 0 || one->gpu == other->gpu))
                return true;
        }
    return false;
}
