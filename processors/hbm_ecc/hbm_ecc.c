// SPDX-License-Identifier: Apache-2.0
// Finds GPUs whose memory failed, how badly, and whether it is safe to go on.
//
// Keeps the Xids that tell of memory errors and the steps of ECC, remap and retirement counters. At
// an evaluation they are gathered into incidents, one a GPU and burst; the worst thing in it names
// it. An incident that was told of has a row, so that its id stays and the next one is known as a
// repeat. Cost: O(1) an event, O(rows · log) an evaluation. Memory: bounded rows of 70 to 300
// bytes.
#include "pipeline/component/component.h"

#include "base/sort.h"
#include "processors/cluster/compare.h"
#include "processors/cluster/row_bound.h"
#include "processors/cluster/tables.h"
#include "processors/cluster/verdict_builder.h"
#include "processors/hbm_ecc/parts.h"

struct incident_key {
    string_id node;
    uint64_t address;
    uint64_t anchor_ns;
    string_id uuid;
} __attribute__((packed));
_Static_assert(offsetof(struct ecc_incident, ended) ==
                   sizeof(struct row_head) + sizeof(struct incident_key),
               "the key lies in the row as in struct incident_key");

#define ECC_OPTION(field, kind, ...) OPTION(struct ecc_config, field, kind, __VA_ARGS__)

static const struct option OPTIONS[] = {
    ECC_OPTION(burst, OPTION_DURATION, .default_value = "3m", .min = 1, .max = 3600,
               .help = "what a GPU tells with no longer gap is one incident"),
    ECC_OPTION(storm_window, OPTION_DURATION, .default_value = "1h", .min = 1, .max = 604800,
               .help = "corrected errors are counted over so long"),
    ECC_OPTION(storm_errors, OPTION_INT, .default_value = "100", .min = 1, .max = 1e15,
               .help = "more corrected errors than this in storm_window are a storm"),
    ECC_OPTION(remaps_max, OPTION_INT, .default_value = "512", .min = 1, .max = 1e9,
               .help = "with so many rows remapped for uncorrectable errors a GPU is to be "
                       "replaced"),
    ECC_OPTION(retired_uncorrected_max, OPTION_INT, .default_value = "15", .min = 1, .max = 1e9,
               .help = "older GPUs: with so many pages retired for uncorrectable errors it is"),
    ECC_OPTION(retired_max, OPTION_INT, .default_value = "63", .min = 1, .max = 1e9,
               .help = "older GPUs: with so many pages retired in all it is"),
    ECC_OPTION(confidence_both, OPTION_INT, .default_value = "92", .min = 5, .max = 97,
               .help = "percent, where the kernel log and the counters agree"),
    ECC_OPTION(confidence_xid, OPTION_INT, .default_value = "85", .min = 5, .max = 97,
               .help = "percent, where only the kernel log tells of it"),
    ECC_OPTION(confidence_counter, OPTION_INT, .default_value = "65", .min = 5, .max = 97,
               .help = "percent, where only counters tell of it"),
    ECC_OPTION(confidence_storm, OPTION_INT, .default_value = "80", .min = 5, .max = 97,
               .help = "percent, for many corrected errors"),
    ECC_OPTION(max_xids, OPTION_INT, .default_value = "16384", .min = 16, .max = 16777216,
               .help = "Xids that are kept; the oldest go first"),
    ECC_OPTION(max_steps, OPTION_INT, .default_value = "262144", .min = 16, .max = 16777216,
               .help = "rises of counters that are kept; the oldest go first"),
    ECC_OPTION(max_gpus, OPTION_INT, .default_value = "65536", .min = 16, .max = 16777216,
               .help = "GPUs whose counters are kept; those told of least recently go first"),
    ECC_OPTION(max_incidents, OPTION_INT, .default_value = "4096", .min = 16, .max = 1048576,
               .help = "incidents that are kept, to know repeats; the oldest go first"),
    ECC_OPTION(max_samples, OPTION_INT, .default_value = "262144", .min = 16, .max = 16777216,
               .help = "samples that wait to be put in order; with more, later ones that are older "
                       "than those are not looked at"),
};

static const struct row_type INCIDENT_ROWS = {
    .size = sizeof(struct ecc_incident),
    .key_size = sizeof(struct incident_key),
    .rows_per_chunk = 64,
    .strings = {offsetof(struct ecc_incident, node), offsetof(struct ecc_incident, uuid),
                offsetof(struct ecc_incident, anchor_uuid)},
};

static const struct state_row STATE[] = {
    STATE_ROWS(struct hbm_ecc, xids.rows, "hbm_ecc.xids", XID_LOG_ROWS),
    STATE_STRUCT(struct hbm_ecc, xids.bound.horizon_ns, "xid_horizon"),
    STATE_ROWS(struct hbm_ecc, counters.samples.rows, "hbm_ecc.samples", ECC_SAMPLE_ROWS),
    STATE_ROWS(struct hbm_ecc, counters.gpus, "hbm_ecc.gpus", ECC_GPU_ROWS),
    STATE_ROWS(struct hbm_ecc, counters.steps, "hbm_ecc.steps", ECC_STEP_ROWS),
    STATE_STRUCT(struct hbm_ecc, counters.step_bound.horizon_ns, "steps_horizon"),
    STATE_ROWS(struct hbm_ecc, names.by_address, "hbm_ecc.gpu_addresses", GPU_ADDRESS_ROWS),
    STATE_ROWS(struct hbm_ecc, names.by_uuid, "hbm_ecc.gpu_uuids", GPU_UUID_ROWS),
    STATE_ROWS(struct hbm_ecc, incidents, "hbm_ecc.incidents", INCIDENT_ROWS),
    STATE_PART(struct hbm_ecc, base.ledger, "hbm_ecc.verdicts", VERDICT_LEDGER),
};

enum { SEEN_NOT, SEEN_NOW, SEEN_STALE }; // ecc_incident.seen

// -- Incidents that were told of ------------------------------------------------------------------

static int compare_incident_gpus(const struct ecc_incident *a, string_id node, uint64_t address,
                                 string_id uuid) {
    return COMPARE_KEYS(COMPARE(a->node, node), COMPARE(a->address, address),
                        COMPARE(a->uuid, uuid));
}

static int compare_incidents(const void *left, const void *right) {
    const struct ecc_incident *a = *(struct ecc_incident *const *)left;
    const struct ecc_incident *b = *(struct ecc_incident *const *)right;
    int order = compare_incident_gpus(a, b->node, b->address, b->uuid);
    return order != 0 ? order : COMPARE(a->anchor_ns, b->anchor_ns);
}

struct incident_list {
    struct ecc_incident **items; // by GPU and time
    uint32_t count;
};

static struct incident_list list_incidents(const struct hbm_ecc *self, struct arena *arena) {
    struct ecc_incident *incident;
    struct incident_list list = {
        arena_take(arena, (keyed_rows_count(&self->incidents) + 1) * sizeof *list.items), 0};
    for (uint32_t at = 0; (incident = keyed_rows_next(&self->incidents, &at)) != NULL;) {
        incident->seen = SEEN_NOT;
        list.items[list.count++] = incident;
    }
    sort_stable(list.items, list.count, sizeof *list.items, arena, compare_incidents);
    return list;
}

// The incident that the burst is part of, as it was told of before; NULL: none.
static struct ecc_incident *find_incident(const struct hbm_ecc *self,
                                          const struct incident_list *list,
                                          const struct ecc_burst *burst) {
    assert(burst->anchor != NULL);
    const struct ecc_item *anchor = burst->anchor;
    uint32_t low = 0, high = list->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_incident_gpus(list->items[middle], anchor->node, anchor->address,
                                  anchor->uuid) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < list->count && compare_incident_gpus(list->items[low], anchor->node,
                                                      anchor->address, anchor->uuid) == 0;
         low++) {
        struct ecc_incident *incident = list->items[low];
        // What is told of a storm that stands still belongs to it, when its first errors are
        // forgotten too.
        bool goes_on = burst->kind == ECC_STORM && incident->storm != 0 && incident->ended == 0 &&
                       anchor->time_ns >= incident->first_ns;
        bool apart = anchor->time_ns > incident->last_ns + duration_ns(self->config.burst) ||
                     incident->first_ns > burst->last_ns + duration_ns(self->config.burst);
        if ((!apart || goes_on) && incident->seen == SEEN_NOT)
            return incident;
    }
    return NULL;
}

// How many incidents of this GPU began before.
static uint32_t count_earlier(const struct hbm_ecc *self, const struct ecc_item *anchor) {
    const struct ecc_incident *incident;
    uint32_t number = 0;
    for (uint32_t at = 0; (incident = keyed_rows_next(&self->incidents, &at)) != NULL;)
        if (compare_incident_gpus(incident, anchor->node, anchor->address, anchor->uuid) == 0 &&
            incident->anchor_ns < anchor->time_ns && incident->number > number)
            number = incident->number;
    return number;
}

static struct ecc_incident *add_incident(struct hbm_ecc *self, const struct ecc_burst *burst,
                                         struct arena *arena) {
    assert(burst->anchor != NULL && self->incident_bound.max > 0);
    const struct ecc_item *anchor = burst->anchor;
    struct incident_key key = {anchor->node, anchor->address, anchor->time_ns, anchor->uuid};
    struct ecc_incident *incident = keyed_rows_find(&self->incidents, &key);
    if (incident != NULL)
        return incident;
    uint32_t number = count_earlier(self, anchor) + 1;
    incident = row_bound_take(&self->incidents, &self->incident_bound, &key,
                              offsetof(struct ecc_incident, last_ns), arena);
    incident->first_ns = anchor->time_ns;
    incident->number = number;
    if (anchor->xid != NULL) {
        incident->anchor_code = anchor->xid->code;
    } else {
        incident->anchor_field = anchor->step->field;
        incident->anchor_uuid = anchor->step->uuid;
    }
    return incident;
}

static void take_burst(struct ecc_incident *incident, const struct ecc_burst *burst) {
    assert(burst->anchor != NULL && burst->kind != ECC_NONE);
    incident->seen = SEEN_NOW;
    if (burst->anchor->time_ns < incident->first_ns)
        incident->first_ns = burst->anchor->time_ns;
    if (burst->last_ns > incident->last_ns)
        incident->last_ns = burst->last_ns;
    // That there were corrected errors does not confirm an uncorrectable one.
    if (incident->kind == ECC_STORM && burst->kind > ECC_STORM)
        incident->seen_counter = 0;
    if (burst->kind > incident->kind)
        incident->kind = burst->kind;
    for (uint32_t i = 0; i < burst->count; i++) {
        const struct ecc_item *item = burst->items[i];
        bool xid = item->xid != NULL && (item->kind != ECC_NONE || item->xid->code == 63);
        incident->seen_xid |= xid;
        incident->seen_counter |= item->step != NULL && item->kind != ECC_NONE &&
                                  (item->kind != ECC_STORM || burst->kind == ECC_STORM);
        incident->seen_dbe |= item->xid != NULL && item->xid->code == 48;
        incident->storm |= item->kind == ECC_STORM;
    }
}

// -- Judging --------------------------------------------------------------------------------------

static string_id uuid_of(const struct hbm_ecc *self, const struct ecc_incident *incident) {
    if (incident->uuid != STRING_NONE)
        return incident->uuid;
    if (incident->anchor_uuid != STRING_NONE)
        return incident->anchor_uuid;
    return gpu_names_uuid(&self->names, incident->node, incident->address);
}

static bool is_zero(const struct hbm_ecc *self, const struct ecc_incident *incident,
                    enum ecc_field field, bool *known) {
    int64_t value;
    if (!ecc_counters_value(&self->counters, incident->node, uuid_of(self, incident),
                            incident->address, field, &value))
        return true;
    *known = true;
    return value == 0;
}

// Whether corrected errors are as rare again as they should be. Inputs that end say so only as long
// as the GPU's own counters are read: that others went on says nothing of it.
static bool is_rare_again(const struct hbm_ecc *self, const struct ecc_incident *incident,
                          uint64_t now_ns) {
    uint64_t told_ns = ecc_corrected_told(&self->counters, incident->node, uuid_of(self, incident),
                                          incident->address);
    uint64_t until_ns = self->base.live || told_ns > now_ns ? now_ns : told_ns;
    return ecc_corrected_errors(self, incident, until_ns) <= self->config.storm_errors;
}

// A remap that waited has been done, or corrected errors are rare again.
static bool is_over(const struct hbm_ecc *self, const struct ecc_incident *incident,
                    uint64_t now_ns) {
    if (incident->kind == ECC_STORM && incident->seen_xid == 0)
        return is_rare_again(self, incident, now_ns);
    bool known = false;
    return incident->kind == ECC_PENDING && is_zero(self, incident, ECC_REMAP_PENDING, &known) &&
           is_zero(self, incident, ECC_RETIRED_PENDING, &known) && known;
}

// How long Xids and steps are kept, and incidents judged anew, when the input has no end.
static uint64_t kept_ns(const struct hbm_ecc *self) {
    return 2 * (duration_ns(self->config.storm_window) + duration_ns(self->config.burst));
}

static void report(struct hbm_ecc *self, struct batch *batch, struct ecc_incident *incident,
                   const struct ecc_burst *burst, const char *why) {
    struct verdict_builder builder = {.arena = batch->arena};
    ecc_verdict_build(&self->config, incident, burst, why, uuid_of(self, incident), &builder);
    detector_report(&self->base, batch, &builder, incident->ended != 0);
}

static int compare_ends(const void *left, const void *right) {
    const struct ecc_incident *a = *(struct ecc_incident *const *)left;
    const struct ecc_incident *b = *(struct ecc_incident *const *)right;
    int order = COMPARE(a->anchor_ns, b->anchor_ns);
    order = order != 0 ? order : compare_strings(a->node, b->node);
    order = order != 0 ? order : COMPARE(a->address, b->address);
    return order != 0 ? order : compare_strings(a->uuid, b->uuid);
}

// Whether a storm ends only since its counters were not read for so long.
static bool is_silent(const struct hbm_ecc *self, const struct ecc_incident *incident,
                      uint64_t now_ns) {
    uint64_t told_ns = ecc_corrected_told(&self->counters, incident->node, uuid_of(self, incident),
                                          incident->address);
    return incident->kind == ECC_STORM && now_ns > told_ns &&
           now_ns - told_ns >= duration_ns(self->config.storm_window);
}

// Incidents that were not told of this time: those that are over, and those whose items now belong
// to another one.
static void end_others(struct hbm_ecc *self, struct batch *batch, struct incident_list *list,
                       uint64_t horizon_ns, uint64_t now_ns) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->count; i++)
        if (list->items[i]->seen != SEEN_NOW && list->items[i]->ended == 0)
            list->items[count++] = list->items[i];
    sort_stable(list->items, count, sizeof *list->items, batch->arena, compare_ends);
    for (uint32_t i = 0; i < count; i++) {
        struct ecc_incident *incident = list->items[i];
        bool over = is_over(self, incident, now_ns);
        bool merged = !over && incident->seen == SEEN_NOT && incident->first_ns >= horizon_ns;
        if (!over && !merged)
            continue;
        incident->ended = 1;
        report(self, batch, incident, NULL,
               !over ? "what was told of its memory is part of another incident"
               : is_silent(self, incident, now_ns) ? "no later sample tells of its memory"
                                                   : "what was told of its memory is over");
        if (merged)
            keyed_rows_remove(&self->incidents, incident);
    }
}

// Storms that are part of something graver have no end of their own that is told.
static void forget_storms(struct hbm_ecc *self, uint64_t now_ns) {
    struct ecc_incident *incident;
    for (uint32_t at = 0; (incident = keyed_rows_next(&self->incidents, &at)) != NULL;)
        if (incident->storm != 0 && incident->kind != ECC_STORM &&
            is_rare_again(self, incident, now_ns))
            incident->storm = 0;
}

static void judge(void *instance, struct batch *batch, uint64_t now_ns) {
    struct hbm_ecc *self = instance;
    uint64_t horizon_ns = self->xids.bound.horizon_ns > self->counters.step_bound.horizon_ns
                              ? self->xids.bound.horizon_ns
                              : self->counters.step_bound.horizon_ns;
    sample_queue_read(&self->counters.samples, now_ns, batch->arena);
    struct ecc_bursts bursts = ecc_find_bursts(self, now_ns, batch->arena);
    struct incident_list list = list_incidents(self, batch->arena);
    for (uint32_t i = 0; i < bursts.count; i++) {
        const struct ecc_burst *burst = &bursts.items[i];
        struct ecc_incident *incident = find_incident(self, &list, burst);
        // Of an old incident some evidence is gone: what was said stays, unless it became worse.
        bool stale = incident != NULL && incident->first_ns < horizon_ns &&
                     burst->kind <= (enum ecc_kind)incident->kind;
        if (incident == NULL)
            incident = add_incident(self, burst, batch->arena);
        take_burst(incident, burst);
        if (stale) {
            incident->seen = SEEN_STALE;
            continue;
        }
        incident->ended = is_over(self, incident, now_ns);
        report(self, batch, incident, burst, NULL);
    }
    end_others(self, batch, &list, horizon_ns, now_ns);
    forget_storms(self, now_ns);
    if (self->base.live && now_ns > kept_ns(self)) {
        xid_log_expire(&self->xids, now_ns - kept_ns(self));
        ecc_counters_expire(&self->counters, now_ns - kept_ns(self));
    }
    detector_count_evicted(&self->base, self->xids.bound.evicted + self->names.bound.evicted +
                                            self->counters.gpu_bound.evicted +
                                            self->counters.step_bound.evicted +
                                            self->incident_bound.evicted);
}

static bool is_wanted(uint32_t code) {
    const struct xid_row *row = xid_find(code);
    return row != NULL && row->hbm_role != XID_HBM_NO;
}

static void take(void *instance, const struct event *event, struct arena *scratch) {
    struct hbm_ecc *self = instance;
    if (event->kind == EVENT_KERNEL)
        xid_log_take(&self->xids, event, is_wanted, scratch);
    if (event->kind == EVENT_GPU_SAMPLE)
        sample_queue_take(&self->counters.samples, event, scratch);
    gpu_names_take(&self->names, event, scratch);
}

static enum status ecc_start(void *instance, const void *config,
                             const struct component_context *context, struct error *error) {
    struct hbm_ecc *self = instance;
    (void)error;
    self->config = *(const struct ecc_config *)config;
    self->xids.bound.max = (uint32_t)self->config.max_xids;
    self->names.bound.max = GPU_NAMES_MAX;
    self->incident_bound.max = (uint32_t)self->config.max_incidents;
    ecc_counters_start(&self->counters, &self->config);
    self->base.takes_undated = true;
    return detector_begin(&self->base, "hbm_ecc", context, take, judge);
}

static const char *const EXPLAINS[] = {"nccl_hang", "xid_correlation", "pod_evicted",
                                       "gpu_fault", "first_exit",      NULL};
static const struct verdict_pattern PATTERNS[] = {{.name = "hbm_ecc", .explains = EXPLAINS}};

const struct component_type processor_hbm_ecc = {
    .name = "hbm_ecc",
    .summary = "Finds GPUs whose memory failed, and says how badly.",
    .stability = STABILITY_ALPHA,
    .presets = 1u << PRESET_ALL,
    .takes = 1u << EVENT_KERNEL | 1u << EVENT_GPU_SAMPLE | 1u << EVENT_RANK_MAP,
    .start = ecc_start,
    DETECTOR_FIELDS(struct hbm_ecc, struct ecc_config),
};
