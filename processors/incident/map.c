// SPDX-License-Identifier: Apache-2.0
// Says which node and GPU an entity of a verdict stands on.
//
// A rank by the rank map, by what sent its Flight Recorder dump, else by the host of its last
// sample; a pod by the ranks in it, else by its node; a GPU by its name. O(1) an entity, but for
// pods, whose ranks are looked for.
#include "processors/incident/map.h"

#include "base/hash/hash.h"
#include "base/table/keyed_rows.h"
#include "base/table/table.h"
#include "pipeline/component/node_names.h"
#include "pipeline/model/series.h"
#include "processors/cluster/row_bound.h"

#include <stdio.h>
#include <stdlib.h>

struct rank_key {
    string_id job;
    int32_t rank;
};

struct rank_row {
    struct row_head head;
    struct rank_key key;
    uint64_t seen_ns;
    uint64_t known_ns; // when it was first told of; 0: nobody said when
    uint64_t pod;      // hash of "NAMESPACE/NAME"; 0: not known
    struct place_at at;
    struct place_at gpu;                       // the newest GPU that was said, with its node
    uint64_t uuid_node;                        // hash of the node of `uuid`
    uint64_t node_ns, gpu_ns, uuid_ns, pod_ns; // of the words that they are from
    string_id node;                            // of `at`
    string_id uuid;                            // the newest that was said; STRING_NONE: none
    string_id pod_name;                        // as it is shown
};
KEYED_ROW_CHECK(struct rank_row, key);

const struct row_type INCIDENT_RANK_ROWS = {
    .size = sizeof(struct rank_row),
    .key_size = sizeof(struct rank_key),
    .rows_per_chunk = 64,
    .strings = {offsetof(struct rank_row, key.job), offsetof(struct rank_row, node),
                offsetof(struct rank_row, uuid), offsetof(struct rank_row, pod_name)},
};

// -- taking events ------------------------------------------------------------------------------

static uint64_t hash_joined(struct slice first, struct slice second) {
    uint64_t hash = hash_more(hash_slice(first), "/", 1);
    return hash_more(hash, second.data, second.size);
}

static uint64_t hash_gpu(pci_address address) {
    uint64_t device = pci_device(address);
    return address == PCI_NONE ? 0 : (hash_more(HASH_START, &device, sizeof device) | 2) & ~1u;
}

// The newest word on each counts; of two of one time the greater, whichever came first.
static bool is_news(uint64_t time_ns, uint64_t *known_ns, bool is_greater) {
    if (time_ns < *known_ns || (time_ns == *known_ns && !is_greater))
        return false;
    *known_ns = time_ns;
    return true;
}

static bool is_greater_gpu(struct place_at said, struct place_at known) {
    return said.gpu != known.gpu ? said.gpu > known.gpu : said.node > known.node;
}

static uint64_t hash_pod(struct slice namespace, struct slice name) {
    return name.size == 0 ? 0 : hash_joined(namespace, name);
}

static uint64_t hash_name(string_id id) {
    return id == STRING_NONE ? 0 : hash_slice(intern_slice(id));
}

static string_id intern_or_none(struct slice text) {
    string_id id = text.size == 0 ? STRING_NONE : intern(text);
    return id == STRING_REFUSED ? STRING_NONE : id;
}

static string_id intern_pod(struct slice namespace, struct slice name) {
    char text[320];
    int size = snprintf(text, sizeof text, "%.*s/%.*s", (int)namespace.size, namespace.data,
                        (int)name.size, name.data);
    if (namespace.size == 0 || name.size == 0 || size >= (int)sizeof text)
        return intern_or_none(name);
    return intern_or_none((struct slice){text, (size_t)size});
}

// What one event says of a rank.
struct telling {
    int32_t rank;
    string_id node, uuid;
    pci_address address;
    struct slice namespace, pod;
};

// A GPU is of the rank while the rank is on the GPU's node.
static void take_gpu(struct rank_row *row, const struct telling *telling, uint64_t time_ns) {
    struct place_at said = {hash_name(telling->node), hash_gpu(telling->address)};
    if (said.gpu != 0 && is_news(time_ns, &row->gpu_ns, is_greater_gpu(said, row->gpu)))
        row->gpu = said;
    row->at.gpu = row->gpu.node == row->at.node ? row->gpu.gpu : 0;
    struct place_at uuid = {said.node, hash_name(telling->uuid)};
    struct place_at known = {row->uuid_node, hash_name(row->uuid)};
    if (uuid.gpu != 0 && is_news(time_ns, &row->uuid_ns, is_greater_gpu(uuid, known))) {
        row->uuid_node = uuid.node;
        row->uuid = telling->uuid;
    }
}

static void take_rank(struct incident_map *map, const struct event *event,
                      const struct telling *telling) {
    assert(map->pods.bound.max > 0);
    if (telling->rank == RANK_NONE || telling->node == STRING_NONE)
        return;
    struct rank_key key = {event->job, telling->rank};
    struct rank_row *row = keyed_rows_find(&map->ranks, &key);
    // A rank map without times is as old as its file only by chance.
    bool is_undated = event->kind == EVENT_RANK_MAP && event->timeless;
    uint64_t time_ns = is_undated ? 0 : event->time_ns;
    if (row == NULL) {
        if (keyed_rows_count(&map->ranks) >= INCIDENT_RANKS_MAX)
            keyed_rows_remove(&map->ranks,
                              rows_oldest(&map->ranks, offsetof(struct rank_row, seen_ns)));
        row = keyed_rows_add(&map->ranks, &key);
        row->known_ns = time_ns;
    }
    uint64_t node = hash_name(telling->node);
    uint64_t pod = hash_pod(telling->namespace, telling->pod);
    if (is_news(time_ns, &row->node_ns, node > row->at.node)) {
        row->at.node = node;
        row->node = telling->node;
    }
    take_gpu(row, telling, time_ns);
    if (pod != 0 && is_news(time_ns, &row->pod_ns, pod > row->pod)) {
        row->pod = pod;
        row->pod_name = intern_pod(telling->namespace, telling->pod);
    }
    if (event->time_ns > row->seen_ns)
        row->seen_ns = event->time_ns;
    if (time_ns < row->known_ns)
        row->known_ns = time_ns;
}

static void take_place(struct incident_map *map, const struct event *event) {
    const struct rank_place *place = event->place;
    take_rank(map, event,
              &(struct telling){.rank = place->rank,
                                .node = place->node != STRING_NONE ? place->node : event->node,
                                .uuid = intern_or_none(place->uuid),
                                .address = place->address,
                                .namespace = place->namespace,
                                .pod = place->pod});
}

static void take_flight(struct incident_map *map, const struct event *event) {
    const struct flight_dump *dump = event->flight;
    take_rank(map, event,
              &(struct telling){.rank = dump->rank,
                                .node = event->node,
                                .uuid = STRING_NONE,
                                .address = PCI_NONE,
                                .namespace = dump->namespace,
                                .pod = dump->pod});
}

void incident_map_take(struct incident_map *map, const struct batch *batch) {
    for (uint32_t i = 0; i < batch->event_count; i++) {
        const struct event *event = &batch->events[i];
        if (!batch_selects(batch, i))
            continue;
        gpu_names_take(&map->gpus, event, batch->arena);
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
    assert(places->count <= INCIDENT_PLACES_MAX);
    if (at.node == 0 || places->count == INCIDENT_PLACES_MAX)
        return;
    for (uint32_t i = 0; i < places->count; i++)
        if (places->items[i].node == at.node && places->items[i].gpu == at.gpu)
            return;
    places->items[places->count++] = at;
}

// "NODE/0000:45:00", "NODE/GPU-UUID"; of other devices of a node only the node counts, since any
// rank of it may use them. `node` 0: no such name.
static struct place_at device_at(struct slice name, bool is_gpu) {
    const char *slash = memrchr(name.data, '/', name.size);
    pci_address address;
    if (slash == NULL)
        return (struct place_at){0, 0};
    struct place_at at = {hash_slice((struct slice){name.data, (size_t)(slash - name.data)}), 0};
    struct slice device = {slash + 1, name.size - (size_t)(slash - name.data) - 1};
    if (is_gpu && pci_parse(device, &address))
        at.gpu = hash_gpu(address);
    else if (is_gpu)
        at.gpu = hash_slice(device) | 1;
    return at;
}

static string_id uuid_of(const struct rank_row *row) {
    return row->uuid_node == row->at.node ? row->uuid : STRING_NONE;
}

// With the address that the node's GPU of that UUID has, where only the UUID was said.
static struct place_at place_of(const struct incident_map *map, const struct rank_row *row) {
    struct place_at at = row->at;
    string_id uuid = uuid_of(row);
    if (at.gpu == 0 && uuid != STRING_NONE)
        at.gpu = hash_gpu(gpu_names_address(&map->gpus, row->node, uuid));
    return at;
}

static uint64_t view_node(const struct batch *batch, const struct evaluation *evaluation,
                          const struct rank_view *view) {
    const struct sample *last = series_at_or_before(evaluation->store, view->series, view->last_ns);
    if (last == NULL)
        return 0;
    string_id host = series_origin(evaluation->store, last)->host;
    return hash_name(batch->names == NULL ? host : node_names_find(batch->names, host));
}

// Where the last sample of a rank came from. Where the verdict or the samples name no job, they
// must agree.
static uint64_t sample_node(const struct batch *batch, string_id job, int32_t rank) {
    uint64_t found = 0;
    for (uint32_t i = 0; i < batch->evaluation_count; i++) {
        const struct evaluation *evaluation = &batch->evaluations[i];
        if (evaluation->job != job && evaluation->job != STRING_NONE && job != STRING_NONE)
            continue;
        for (uint32_t j = 0; j < evaluation->rank_count; j++) {
            if (evaluation->ranks[j].series->rank != rank)
                continue;
            uint64_t node = view_node(batch, evaluation, &evaluation->ranks[j]);
            if (evaluation->job == job)
                return node;
            if (found != 0 && node != 0 && node != found)
                return 0;
            found = node != 0 ? node : found;
        }
    }
    return found;
}

// Where the rank of any job is, when all of them are there; node 0: none is known, or several.
static struct place_at find_any(const struct incident_map *map, int32_t rank) {
    const struct rank_row *row;
    struct place_at found = {0, 0};
    bool several = false;
    for (uint32_t at = 0; (row = keyed_rows_next(&map->ranks, &at)) != NULL;) {
        if (row->key.rank != rank)
            continue;
        struct place_at place = place_of(map, row);
        if (found.node != 0 && found.node != place.node)
            return (struct place_at){0, 0};
        several |= found.gpu != 0 && place.gpu != 0 && found.gpu != place.gpu;
        found = found.gpu == 0 ? place : found;
    }
    if (several)
        found.gpu = 0;
    return found;
}

// Whether ranks of another job are told of, by whom it may be.
static bool has_other_job(const struct incident_map *map, const struct batch *batch,
                          string_id job) {
    const struct rank_row *row;
    for (uint32_t at = 0; (row = keyed_rows_next(&map->ranks, &at)) != NULL;)
        if (row->key.job != STRING_NONE && row->key.job != job)
            return true;
    for (uint32_t i = 0; i < batch->evaluation_count; i++)
        if (batch->evaluations[i].job != STRING_NONE && batch->evaluations[i].job != job)
            return true;
    return false;
}

// What says where ranks run often names no job, and so do dumps: then it is of the only job, or of
// the one whose samples come from there. Node 0: not known.
static struct place_at find_rank(const struct incident_map *map, const struct batch *batch,
                                 string_id job, int32_t rank) {
    struct rank_key key = {job, rank};
    const struct rank_row *row = keyed_rows_find(&map->ranks, &key);
    if (row != NULL)
        return place_of(map, row);
    struct place_at found = {0, 0};
    if (job == STRING_NONE)
        found = find_any(map, rank);
    if (found.node != 0)
        return found;
    key.job = STRING_NONE;
    row = job == STRING_NONE ? NULL : keyed_rows_find(&map->ranks, &key);
    if (row != NULL && !has_other_job(map, batch, job))
        return place_of(map, row);
    found.node = sample_node(batch, job, rank);
    return row != NULL && row->at.node == found.node ? place_of(map, row) : found;
}

static bool is_kind(const struct entity *entity, const char *kind) {
    return strcmp(entity->kind, kind) == 0;
}

static int32_t rank_of_name(struct slice name) {
    char digits[16];
    if (name.size == 0 || name.size >= sizeof digits)
        return RANK_NONE;
    memcpy(digits, name.data, name.size);
    digits[name.size] = '\0';
    return (int32_t)strtol(digits, NULL, 10);
}

static const struct rank_row *find_in(const struct incident_map *map, string_id job, int32_t rank) {
    struct rank_key key = {job, rank};
    return rank == RANK_NONE ? NULL : keyed_rows_find(&map->ranks, &key);
}

// The only job that has this rank on the node where it is without a job; STRING_NONE: none, or
// several.
static string_id job_at(const struct incident_map *map, const struct rank_row *nameless) {
    const struct rank_row *row;
    string_id job = STRING_NONE;
    for (uint32_t at = 0; (row = keyed_rows_next(&map->ranks, &at)) != NULL;) {
        if (row->key.job == STRING_NONE || row->key.rank != nameless->key.rank ||
            row->at.node != nameless->at.node)
            continue;
        if (job != STRING_NONE)
            return STRING_NONE;
        job = row->key.job;
    }
    return job;
}

// Dumps name no job, and ranks of several have the same numbers. It is the job whose ranks run
// where the dumps of the verdict's ranks came from.
static string_id job_of(const struct incident_map *map, const struct verdict *verdict) {
    string_id job = verdict->job;
    for (uint32_t i = 0; i < verdict->entity_count && job == STRING_NONE; i++) {
        if (!is_kind(&verdict->entities[i], "rank"))
            continue;
        const struct rank_row *row =
            find_in(map, STRING_NONE, rank_of_name(verdict->entities[i].name));
        if (row == NULL)
            continue;
        job = job_at(map, row);
        break;
    }
    for (uint32_t i = 0; i < verdict->entity_count && job != verdict->job; i++) {
        if (!is_kind(&verdict->entities[i], "rank"))
            continue;
        int32_t rank = rank_of_name(verdict->entities[i].name);
        const struct rank_row *row = find_in(map, STRING_NONE, rank);
        const struct rank_row *named = find_in(map, job, rank);
        if (row != NULL && (named == NULL || named->at.node != row->at.node))
            job = verdict->job;
    }
    return job;
}

static void add_rank(const struct incident_map *map, const struct batch *batch,
                     struct places *places, string_id job, struct slice name) {
    int32_t rank = rank_of_name(name);
    if (rank == RANK_NONE)
        return;
    add_place(places, find_rank(map, batch, job, rank));
}

// "NAMESPACE/NAME"
static void add_pod(const struct incident_map *map, struct places *places, struct slice name) {
    uint64_t pod = hash_slice(name);
    uint32_t before = places->count, at = 0;
    const struct rank_row *row;
    while ((row = keyed_rows_next(&map->ranks, &at)) != NULL)
        if (row->pod == pod)
            add_place(places, place_of(map, row));
    const char *slash = memchr(name.data, '/', name.size);
    struct pod_place place;
    if (places->count > before || slash == NULL)
        return;
    size_t size = (size_t)(slash - name.data);
    if (pod_map_find(&map->pods, (struct slice){NULL, 0}, (struct slice){name.data, size},
                     (struct slice){slash + 1, name.size - size - 1}, &place) &&
        place.node != STRING_NONE)
        add_place(places, (struct place_at){hash_name(place.node), 0});
}

static bool is_device(const struct entity *entity) {
    return is_kind(entity, "gpu") || is_kind(entity, "nic") || is_kind(entity, "pci_device") ||
           is_kind(entity, "pci_port");
}

static bool names_guilty_rank(const struct verdict *verdict) {
    for (uint32_t i = 0; i < verdict->entity_count; i++)
        if (verdict->entities[i].role != ROLE_VICTIM && is_kind(&verdict->entities[i], "rank"))
            return true;
    return false;
}

void incident_map_places(const struct incident_map *map, const struct batch *batch,
                         const struct verdict *verdict, bool struck, struct places *places) {
    bool waiting = struck && !names_guilty_rank(verdict);
    string_id job = job_of(map, verdict);
    *places = (struct places){.count = 0};
    for (uint32_t i = 0; i < verdict->entity_count && places->count < INCIDENT_PLACES_MAX; i++) {
        const struct entity *entity = &verdict->entities[i];
        bool is_rank = is_kind(entity, "rank");
        if (entity->role == ROLE_VICTIM && !(is_rank ? waiting : struck))
            continue;
        if (is_device(entity))
            add_place(places, device_at(entity->name, is_kind(entity, "gpu")));
        else if (is_rank)
            add_rank(map, batch, places, job, entity->name);
        else if (is_kind(entity, "pod"))
            add_pod(map, places, entity->name);
    }
    // A node stands for itself only where nothing finer is known of it.
    for (uint32_t i = 0; i < verdict->entity_count; i++) {
        const struct entity *entity = &verdict->entities[i];
        if (!is_kind(entity, "node") || (entity->role == ROLE_VICTIM && !struck))
            continue;
        uint64_t node = hash_slice(entity->name);
        bool finer = false;
        for (uint32_t j = 0; j < places->count; j++)
            finer = finer || places->items[j].node == node;
        if (!finer)
            add_place(places, (struct place_at){node, 0});
    }
}

// A rank that was told of later is a better guess: jobs follow one another on a GPU.
// Of the same moment the greater job, then the lower rank.
static bool is_later(const struct rank_row *a, const struct rank_row *b) {
    if (a->known_ns != b->known_ns)
        return a->known_ns > b->known_ns;
    int order = slice_compare(intern_slice(a->key.job), intern_slice(b->key.job));
    return order != 0 ? order > 0 : a->key.rank < b->key.rank;
}

// Whether nobody knows which of two jobs came last. Where one names no job it may be the other.
static bool is_unclear(const struct rank_row *a, const struct rank_row *b) {
    bool may_be_one =
        (a->key.job == STRING_NONE || b->key.job == STRING_NONE) && a->key.rank == b->key.rank;
    return a->key.job != b->key.job && !may_be_one &&
           (a->known_ns == b->known_ns || a->known_ns == 0 || b->known_ns == 0);
}

static bool is_user(const struct incident_map *map, const struct rank_row *row, struct place_at gpu,
                    uint64_t time_ns) {
    if (row->at.node != gpu.node || row->known_ns > time_ns)
        return false;
    string_id uuid = uuid_of(row);
    return (uuid != STRING_NONE && (hash_name(uuid) | 1) == gpu.gpu) ||
           (gpu.gpu != 0 && place_of(map, row).gpu == gpu.gpu);
}

bool incident_map_user(const struct incident_map *map, struct slice gpu, uint64_t time_ns,
                       struct gpu_user *user) {
    assert(map->gpus.bound.max > 0);
    struct place_at wanted = device_at(gpu, true);
    const struct rank_row *row, *found = NULL;
    bool unclear = false;
    for (uint32_t at = 0; (row = keyed_rows_next(&map->ranks, &at)) != NULL;)
        if (is_user(map, row, wanted, time_ns) && (found == NULL || is_later(row, found)))
            found = row;
    for (uint32_t at = 0; found != NULL && (row = keyed_rows_next(&map->ranks, &at)) != NULL;)
        unclear |= is_unclear(row, found) && is_user(map, row, wanted, time_ns);
    if (found != NULL && !unclear)
        *user = (struct gpu_user){found->key.job, found->pod_name, found->key.rank};
    return found != NULL && !unclear;
}

bool places_meet(const struct places *a, const struct places *b) {
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t j = 0; j < b->count; j++) {
            const struct place_at *one = &a->items[i], *other = &b->items[j];
            // A UUID and an address cannot be compared.
            bool known = one->gpu != 0 && other->gpu != 0 && (one->gpu & 1) == (other->gpu & 1);
            if (one->node == other->node && (!known || one->gpu == other->gpu))
                return true;
        }
    return false;
}
