// SPDX-License-Identifier: Apache-2.0
// Joins verdicts that are one incident, and marks its root.
//
// Keeps every verdict that stands, with its places, ranks and times; at an evaluation joins those
// that may explain one another (graph.c), marks the root of each set, and puts out a verdict again
// when that changed what is said of it. What may explain what is said by the components that give
// the verdicts (component_type.patterns), and by detectors of their own verdicts (verdict.related).
// O(verdicts, times those within the window) an evaluation; at most INCIDENT_VERDICTS_MAX are kept.
#include "pipeline/component/component.h"

#include "base/hash/hash.h"
#include "base/sort.h"
#include "pipeline/model/observation.h"
#include "processors/cluster/compare.h"
#include "processors/cluster/detector.h"
#include "processors/cluster/lasting.h"
#include "processors/cluster/progress_log.h"
#include "processors/cluster/row_bound.h"
#include "processors/cluster/verdict_builder.h"
#include "processors/incident/graph.h"

#include <inttypes.h>
#include <stdlib.h>

enum { INCIDENT_VERDICTS_MAX = 2048, PATTERNS_MAX = 64 };

// What is broken is mended within a day, or the log says so again.
static const uint64_t BROKEN_NS = UINT64_C(86400) * 1000000000;

struct incident_config {
    struct duration window, skew;
};

KEYED_ROW_CHECK(struct standing, id);

struct incident {
    struct incident_config config;
    struct incident_map map;
    struct keyed_rows standing;
    struct progress_log progress;
    const struct verdict_pattern *patterns[PATTERNS_MAX]; // of all components; [0] is NULL
    uint64_t explains[PATTERNS_MAX];                      // bit i: what patterns[i] gives
    uint64_t explains_rank[PATTERNS_MAX];                 // likewise
    uint32_t pattern_count;
    bool several_jobs; // are named by the verdicts that stand
    bool live;         // the input has no end
};

static const struct row_type STANDING = {
    .size = sizeof(struct standing), .key_size = VERDICT_ID_SIZE, .rows_per_chunk = 32};

static const struct state_row STATE[] = {
    STATE_ROWS(struct incident, map.ranks, "incident.ranks", INCIDENT_RANK_ROWS),
    STATE_ROWS(struct incident, map.pods.by_uid, "incident.pods", POD_ROWS),
    STATE_ROWS(struct incident, map.pods.by_name, "incident.pod_names", POD_ROWS),
    STATE_ROWS(struct incident, map.gpus.by_address, "incident.gpus", GPU_ADDRESS_ROWS),
    STATE_ROWS(struct incident, map.gpus.by_uuid, "incident.gpu_uuids", GPU_UUID_ROWS),
    STATE_ROWS(struct incident, standing, "incident.standing", STANDING),
    STATE_ROWS(struct incident, progress.rows, "incident.progress", PROGRESS_ROWS),
};

static const struct option OPTIONS[] = {
    OPTION(struct incident_config, window, OPTION_DURATION, .default_value = "10m", .min = 1,
           .max = 86400, .help = "a verdict explains others that begin up to so much later"),
    OPTION(struct incident_config, skew, OPTION_DURATION, .default_value = "2s", .max = 60,
           .help = "and up to so much earlier, since clocks differ and Kubernetes writes whole "
                   "seconds"),
};

// The index of the pattern, which may be the beginning of an id; 0: no component gives it.
static uint32_t find_pattern(const struct incident *self, const char *name) {
    size_t size = strcspn(name, ":");
    for (uint32_t i = 1; i < self->pattern_count; i++)
        if (strlen(self->patterns[i]->name) == size &&
            memcmp(self->patterns[i]->name, name, size) == 0)
            return i;
    return 0;
}

// Of those that are known.
static uint64_t patterns_bits(const struct incident *self, const char *const *names) {
    uint64_t bits = 0;
    for (; names != NULL && *names != NULL; names++)
        bits |= UINT64_C(1) << find_pattern(self, *names);
    return bits & ~UINT64_C(1);
}

static void list_patterns(struct incident *self, const struct component_set *components) {
    self->pattern_count = 1;
    for (size_t i = 0; components != NULL && i < components->count; i++)
        for (size_t j = 0; j < components->types[i]->pattern_count; j++) {
            assert(self->pattern_count < PATTERNS_MAX);
            self->patterns[self->pattern_count++] = &components->types[i]->patterns[j];
        }
    for (uint32_t i = 1; i < self->pattern_count; i++) {
        self->explains[i] = patterns_bits(self, self->patterns[i]->explains);
        self->explains_rank[i] = patterns_bits(self, self->patterns[i]->explains_rank);
    }
}

static enum status incident_start(void *instance, const void *config,
                                  const struct component_context *context, struct error *error) {
    struct incident *self = instance;
    (void)error;
    self->config = *(const struct incident_config *)config;
    self->map.pods.bound.max = POD_MAP_MAX_DEFAULT;
    self->map.gpus.bound.max = GPU_NAMES_MAX;
    self->progress.bound.max = PROGRESS_LOG_MAX;
    self->live = !context->once;
    list_patterns(self, context->components);
    return STATUS_OK;
}

// Patterns have other numbers in another build.
static void incident_restored(void *instance) {
    struct incident *self = instance;
    struct standing *row;
    for (uint32_t at = 0; (row = keyed_rows_next(&self->standing, &at)) != NULL;)
        row->pattern = (int32_t)find_pattern(self, row->id);
}

// -- what stands --------------------------------------------------------------------------------

static bool names_guilty_rank(const struct verdict *verdict) {
    for (uint32_t i = 0; i < verdict->entity_count; i++)
        if (verdict->entities[i].role != ROLE_VICTIM &&
            strcmp(verdict->entities[i].kind, "rank") == 0)
            return true;
    return false;
}

static bool read_rank(const struct entity *entity, int32_t *rank) {
    char digits[12] = "", *end;
    if (strcmp(entity->kind, "rank") != 0 || entity->name.size == 0 ||
        entity->name.size >= sizeof digits)
        return false;
    memcpy(digits, entity->name.data, entity->name.size);
    *rank = (int32_t)strtol(digits, &end, 10);
    return *end == '\0';
}

static void take_ranks(struct standing *row, const struct verdict *verdict) {
    bool all = !names_guilty_rank(verdict);
    row->blamed_count = row->rank_count = 0;
    row->job = verdict->job == STRING_NONE ? 0 : hash_slice(intern_slice(verdict->job)) | 1;
    for (uint32_t i = 0; i < verdict->entity_count && row->rank_count < INCIDENT_RANKS_NAMED_MAX;
         i++) {
        const struct entity *entity = &verdict->entities[i];
        if ((entity->role == ROLE_VICTIM && !all) ||
            !read_rank(entity, &row->ranks[row->rank_count]))
            continue;
        row->rank_count++;
        // Culprits are listed first.
        if (entity->role == ROLE_CULPRIT)
            row->blamed_count = row->rank_count;
    }
}

static void take_said(struct standing *row, const struct verdict *verdict) {
    row->said_count = 0;
    for (uint32_t i = 0; i < verdict->related_count && row->said_count < INCIDENT_SAID_MAX; i++) {
        struct said *said = &row->said[row->said_count++];
        memcpy(said->id, verdict->related[i].id, sizeof said->id);
        said->relation = (uint32_t)verdict->related[i].relation;
    }
}

// A program meets what another verdict says is broken; who says that it is, says it of itself.
static void take_lasting(struct standing *row, const struct verdict *verdict) {
    const struct attribute *message = verdict_attribute(verdict, "exception.message");
    row->broken = (uint16_t)lasting_of_kind(verdict->kind);
    row->met = message == NULL ? 0 : (uint16_t)lasting_of_words(message->value);
}

// Whether a rank that the cause blames is one that the other names.
static bool names_rank_of(const struct standing *cause, const struct standing *effect,
                          uint32_t effect_ranks) {
    if (cause->job != effect->job && cause->job != 0 && effect->job != 0)
        return false;
    for (uint32_t i = 0; i < cause->blamed_count; i++)
        for (uint32_t j = 0; j < effect_ranks; j++)
            if (cause->ranks[i] == effect->ranks[j])
                return true;
    return false;
}

// Ranks without a job may be of two jobs: then their places must not speak against it, and where
// several jobs are named they must speak for it.
static bool blame_the_same(const struct incident *self, const struct standing *cause,
                           const struct standing *effect, uint32_t effect_ranks) {
    if (!names_rank_of(cause, effect, effect_ranks))
        return false;
    if (cause->job != 0 && cause->job == effect->job)
        return true;
    if (cause->causes.count == 0 || effect->effects.count == 0)
        return !self->several_jobs;
    return places_meet(&cause->causes, &effect->effects);
}

static bool has_several_jobs(const struct incident *self) {
    const struct standing *row;
    uint64_t job = 0;
    for (uint32_t at = 0; (row = keyed_rows_next(&self->standing, &at)) != NULL;) {
        if (job != 0 && row->job != 0 && row->job != job)
            return true;
        job = row->job != 0 ? row->job : job;
    }
    return false;
}

static struct standing *find_standing(struct incident *self, const char *id) {
    assert(strlen(id) < VERDICT_ID_SIZE);
    char key[VERDICT_ID_SIZE] = "";
    memcpy(key, id, strlen(id));
    return keyed_rows_find(&self->standing, key);
}

// What was seen by sampling began somewhere behind the sample before, but not for longer than a
// cause is looked for.
static uint64_t begin_of(const struct incident *self, const struct verdict *verdict) {
    uint64_t window_ns = duration_ns(self->config.window), after_ns = verdict->after_ns;
    if (after_ns == 0 || after_ns > verdict->start_ns)
        return verdict->start_ns;
    return verdict->start_ns - after_ns < window_ns ? after_ns : verdict->start_ns - window_ns;
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
        // What began first is least likely to explain anything that is still to come.
        if (keyed_rows_count(&self->standing) >= INCIDENT_VERDICTS_MAX)
            keyed_rows_remove(&self->standing,
                              rows_oldest(&self->standing, offsetof(struct standing, start_ns)));
        char key[VERDICT_ID_SIZE] = "";
        memcpy(key, verdict->id, strlen(verdict->id));
        row = keyed_rows_add(&self->standing, key);
    }
    row->pattern = (int32_t)find_pattern(self, verdict->pattern);
    const char *kind = row->pattern == 0 ? NULL : self->patterns[row->pattern]->kind;
    row->severity = (int32_t)verdict->severity;
    row->start_ns = verdict->start_ns;
    row->begin_ns = begin_of(self, verdict);
    row->can_explain = kind == NULL || strcmp(verdict->kind, kind) == 0;
    take_ranks(row, verdict);
    take_said(row, verdict);
    take_lasting(row, verdict);
    incident_map_places(&self->map, batch, verdict, false, &row->causes);
    incident_map_places(&self->map, batch, verdict, true, &row->effects);
}

// -- relations ----------------------------------------------------------------------------------

// A program that says what it met belongs to whom is known to have it, though it began long before,
// and where the program ran is not known.
static bool is_met(const struct incident *self, const struct standing *cause,
                   const struct standing *effect) {
    uint32_t met = cause->broken & effect->met;
    if (met == 0 || cause->begin_ns > effect->start_ns + duration_ns(self->config.skew) ||
        effect->begin_ns > cause->start_ns + BROKEN_NS)
        return false;
    return effect->effects.count == 0 ? !lasting_needs_place(met)
                                      : places_meet(&cause->causes, &effect->effects);
}

static bool explains(const void *owner, const struct standing *cause,
                     const struct standing *effect) {
    const struct incident *self = owner;
    assert(cause != effect);
    if (is_met(self, cause, effect))
        return true;
    bool there = (self->explains[cause->pattern] >> effect->pattern & 1) != 0;
    bool rank = (self->explains_rank[cause->pattern] >> effect->pattern & 1) != 0;
    uint64_t early_ns = duration_ns(self->config.skew), waits_ns = early_ns;
    if (rank)
        waits_ns += self->patterns[cause->pattern]->rank_before_s * UINT64_C(1000000000);
    if (cause->begin_ns > effect->start_ns + waits_ns ||
        effect->begin_ns > cause->start_ns + duration_ns(self->config.window) ||
        !cause->can_explain || (!there && !rank))
        return false;
    // A rank that stopped stops every group it is in: the group that waited first tells where.
    if (cause->pattern == effect->pattern)
        return incident_compare(cause, effect) < 0 &&
               blame_the_same(self, cause, effect, effect->blamed_count);
    if (blame_the_same(self, cause, effect, effect->rank_count))
        return true;
    return there && cause->begin_ns <= effect->start_ns + early_ns &&
           places_meet(&cause->causes, &effect->effects);
}

// -- telling ------------------------------------------------------------------------------------

static void add_related(struct verdict *verdict, const struct standing *other,
                        enum relation relation) {
    assert(verdict->related != NULL);
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
static void relate(struct incident_graph *graph, uint32_t index, struct verdict *verdict,
                   struct arena *arena) {
    verdict->related = arena_take(arena, VERDICT_RELATED_MAX * sizeof *verdict->related);
    verdict->related_count = 0;
    for (uint32_t i = 0; i < graph->link_count; i++)
        if (graph->links[i].effect == index)
            add_related(verdict, graph->nodes[graph->links[i].cause].row, RELATION_CAUSED_BY);
    for (uint32_t i = 0; i < graph->link_count; i++)
        if (graph->links[i].cause == index)
            add_related(verdict, graph->nodes[graph->links[i].effect].row, RELATION_CAUSES);
    uint32_t root = graph->nodes[index].root;
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (i != index && graph->nodes[i].root == root)
            add_related(verdict, graph->nodes[i].row, RELATION_SAME_INCIDENT);
}

// -- how far the job came -------------------------------------------------------------------------

static void add_number(struct verdict *verdict, const char *key, int64_t number,
                       struct arena *arena) {
    if (number >= 0)
        verdict_add_attribute(verdict, key, slice_of(arena_format(arena, "%" PRId64, number)),
                              arena);
}

static void add_text(struct verdict *verdict, const char *key, const char *text,
                     struct arena *arena) {
    if (text[0] != '\0')
        verdict_add_attribute(verdict, key, slice_of(arena_format(arena, "%s", text)), arena);
}

// What is asked first after a failure. Of what a later start counts nothing is said. Live, a line
// without a time may come in front of the failure or behind it, as files happen to be read.
static void add_progress(const struct incident *self, struct verdict *verdict,
                         struct arena *arena) {
    bool is_timed = verdict_attribute(verdict, "culprit.time_of") == NULL;
    if (verdict->severity < SEVERITY_ERROR || keyed_rows_count(&self->progress.rows) == 0)
        return;
    struct progress_reached reached =
        progress_reached(&self->progress, verdict->job, is_timed ? verdict->end_ns : UINT64_MAX,
                         !is_timed || !self->live);
    const struct progress_row *newest = reached.newest, *saved = reached.saved;
    if (newest != NULL) {
        add_number(verdict, "job.step", newest->iteration, arena);
        add_number(verdict, "job.steps", newest->total, arena);
        add_text(verdict, newest->of_epoch ? "job.step_of_epoch" : "job.epoch", newest->epoch,
                 arena);
    }
    if (saved != NULL && saved->iteration >= 0)
        add_number(verdict, "job.checkpoint", saved->iteration, arena);
    else if (saved != NULL)
        add_text(verdict, "job.checkpoint_epoch", saved->epoch, arena);
}

static void take_progress(struct incident *self, const struct batch *batch) {
    for (uint32_t i = 0; i < batch->event_count; i++)
        if (batch_selects(batch, i))
            progress_log_take(&self->progress, &batch->events[i], batch->arena);
}

// -- who used a GPU -----------------------------------------------------------------------------

static bool names_user(const struct verdict *verdict) {
    for (uint32_t i = 0; i < verdict->entity_count; i++)
        if (strcmp(verdict->entities[i].kind, "rank") == 0 ||
            strcmp(verdict->entities[i].kind, "pod") == 0)
            return true;
    return false;
}

static uint64_t add_victim(struct verdict *verdict, const char *kind, struct slice name) {
    for (uint32_t i = 0; i < verdict->entity_count; i++)
        if (strcmp(verdict->entities[i].kind, kind) == 0 &&
            slice_equal(verdict->entities[i].name, name))
            return 0;
    verdict->entities[verdict->entity_count++] =
        (struct entity){.kind = kind, .name = name, .role = ROLE_VICTIM};
    return hash_more(hash_slice(name), kind, strlen(kind));
}

// A fault of GPUs that names no rank gets those that used them, with their pods, and their job
// where it is one. -> a hash of what was added; 0: nothing.
static uint64_t add_users(const struct incident *self, struct verdict *verdict,
                          struct arena *arena) {
    uint64_t hash = 0, latest_ns = verdict->start_ns + duration_ns(self->config.skew);
    uint32_t count = verdict->entity_count, users = 0;
    string_id job = STRING_NONE;
    if (names_user(verdict))
        return 0;
    struct entity *entities = arena_take(arena, (3 * (size_t)count + 1) * sizeof *entities);
    for (uint32_t i = 0; i < count; i++)
        entities[i] = verdict->entities[i];
    verdict->entities = entities;
    for (uint32_t i = 0; i < count; i++) {
        struct gpu_user user;
        if (strcmp(entities[i].kind, "gpu") != 0 || entities[i].role == ROLE_VICTIM ||
            verdict->entity_count + 2 > VERDICT_ENTITIES_MAX ||
            !incident_map_user(&self->map, entities[i].name, latest_ns, &user))
            continue;
        job = users == 0 || job == user.job ? user.job : STRING_NONE;
        users++;
        hash ^= add_victim(verdict, "rank", slice_of(arena_format(arena, "%" PRId32, user.rank)));
        if (user.pod != STRING_NONE)
            hash ^= add_victim(verdict, "pod", intern_slice(user.pod));
    }
    if (verdict->job == STRING_NONE)
        verdict->job = job;
    verdict_sort_entities(verdict);
    return hash;
}

static uint64_t hash_relations(const struct verdict *verdict, bool is_root, uint64_t users) {
    uint64_t hash = hash_more(HASH_START, &is_root, sizeof is_root);
    if (users != 0)
        hash = hash_more(hash, &users, sizeof users);
    for (uint32_t i = 0; i < verdict->related_count; i++) {
        const struct related *related = &verdict->related[i];
        hash = hash_more(hash, related->id, strlen(related->id));
        hash = hash_more(hash, &related->relation, sizeof related->relation);
    }
    return hash | 1;
}

static void tell(struct incident *self, struct incident_graph *graph, struct batch *batch) {
    for (uint32_t i = 0; i < batch->verdicts.count; i++) {
        struct verdict *verdict = &batch->verdicts.items[i];
        struct standing *row = find_standing(self, verdict->id);
        if (row == NULL)
            continue;
        uint32_t index = incident_graph_find(graph, row);
        bool is_root = graph->nodes[index].root == index;
        relate(graph, index, verdict, batch->arena);
        verdict_add_attribute(verdict, "culprit.root", is_root ? SLICE("true") : SLICE("false"),
                              batch->arena);
        if (is_root)
            add_progress(self, verdict, batch->arena);
        uint64_t users = add_users(self, verdict, batch->arena);
        uint64_t told = hash_relations(verdict, is_root, users);
        if (verdict->unchanged && row->told != told) {
            verdict->unchanged = false;
            verdict->state = VERDICT_UPDATED;
        }
        row->told = told;
    }
}

// -- order --------------------------------------------------------------------------------------

static int compare_verdicts(const struct verdict *a, const struct verdict *b) {
    int order = COMPARE_KEYS(COMPARE(a->start_ns, b->start_ns), COMPARE(b->severity, a->severity));
    return order != 0 ? order : strcmp(a->pattern, b->pattern);
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

// What tells who is where.
enum {
    MAPPED = 1u << EVENT_RANK_MAP | 1u << EVENT_FLIGHT | 1u << EVENT_KUBERNETES |
             1u << EVENT_KERNEL | 1u << EVENT_GPU_SAMPLE
};

static void incident_consume(void *instance, struct batch *batch) {
    struct incident *self = instance;
    if ((batch->kinds & MAPPED) != 0)
        incident_map_take(&self->map, batch);
    if ((batch->kinds & 1u << EVENT_OBSERVATION) != 0)
        take_progress(self, batch);
    if (!batch->evaluate)
        return;
    for (uint32_t i = 0; i < batch->verdicts.count; i++)
        take_verdict(self, batch, &batch->verdicts.items[i]);
    self->several_jobs = has_several_jobs(self);
    if (batch->verdicts.count > 0) {
        struct incident_graph graph;
        incident_graph_make(&graph, &self->standing,
                            duration_ns(self->config.window) + duration_ns(self->config.skew),
                            explains, self, batch->arena);
        tell(self, &graph, batch);
        order_verdicts(batch);
    }
}

static const uint8_t OBSERVATIONS[] = {OBSERVATION_PROGRESS, OBSERVATION_NONE};

const struct component_type processor_incident = {
    .name = "incident",
    .summary = "Joins verdicts that explain one another and marks the root of each incident.",
    .kind = COMPONENT_PROCESSOR,
    .stability = STABILITY_BETA,
    .presets = 1u << PRESET_ALL,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct incident_config),
    .instance_size = sizeof(struct incident),
    .takes = MAPPED | 1u << EVENT_OBSERVATION,
    .observations = OBSERVATIONS,
    .needs = FACT_VERDICTS,
    .start = incident_start,
    .state_rows = STATE,
    .state_row_count = OPTION_COUNT(STATE),
    .restored = incident_restored,
    .processor = {.consume = incident_consume},
};
