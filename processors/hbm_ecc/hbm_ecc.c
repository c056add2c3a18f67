// SPDX-License-Identifier: Apache-2.0
// Which GPU's memory failed, how badly, and is it safe to go on?
//
// Keeps the Xids that tell of memory errors and the steps of ECC, remap and retirement counters. At
// an evaluation they are gathered into incidents, one a GPU and burst; the worst thing in it names
// it. An incident that was told of has a row, so that its id stays and the next one is known as a
// repeat. Cost: O(1) an event, O(rows · log) an evaluation. Memory: bounded rows of 70 to 300
// bytes.
#include "processors/hbm_ecc.h"

#include "base/metrics/metrics.h"
#include "base/sort.h"
#include "pipeline/component/verdict_ledger.h"
#include "processors/cluster/row_bound.h"
#include "processors/hbm_ecc/parts.h"

struct hbm_ecc_config {
    struct duration burst, storm_window;
    int64_t storm_errors, remaps_max, retired_uncorrected_max, retired_max;
    int64_t confidence_both, confidence_xid, confidence_counter, confidence_storm;
    int64_t max_xids, max_steps, max_gpus, max_incidents, max_samples;
};

struct incident_key {
    string_id node;
    uint64_t address;
    uint64_t anchor_ns;
    string_id uuid;
} __attribute__((packed));
_Static_assert(offsetof(struct ecc_incident, ended) ==
                   sizeof(struct row_head) + sizeof(struct incident_key),
               "the key lies in the row as in struct incident_key");

struct hbm_ecc {
    struct ecc_rules rules;
    struct xid_log xids;
    struct ecc_counters counters;
    struct gpu_names names;
    struct keyed_rows incidents;
    uint32_t max_incidents;
    uint64_t incidents_evicted;
    struct verdict_ledger ledger;
    struct metric *evicted_metric;
    uint64_t evicted_told;
    bool live;
};

#define FIELD(name) offsetof(struct hbm_ecc_config, name)
#define PERCENT(field, value, text)                                                                \
    {                                                                                              \
        .name = #field, .type = OPTION_INT, .offset = FIELD(field), .default_value = (value),      \
        .min = 5, .max = 97, .help = (text)                                                        \
    }
#define COUNT(field, value, least, most, text)                                                     \
    {                                                                                              \
        .name = #field, .type = OPTION_INT, .offset = FIELD(field), .default_value = (value),      \
        .min = (least), .max = (most), .help = (text)                                              \
    }

static const struct option OPTIONS[] = {
    {.name = "burst",
     .type = OPTION_DURATION,
     .offset = FIELD(burst),
     .default_value = "3m",
     .min = 1,
     .max = 3600,
     .help = "what a GPU tells with no longer gap is one incident"},
    {.name = "storm_window",
     .type = OPTION_DURATION,
     .offset = FIELD(storm_window),
     .default_value = "1h",
     .min = 1,
     .max = 604800,
     .help = "corrected errors are counted over so long"},
    COUNT(storm_errors, "100", 1, 1e15,
          "more corrected errors than this in storm_window are a storm"),
    COUNT(remaps_max, "512", 1, 1e9,
          "with so many rows remapped for uncorrectable errors a GPU is to be replaced"),
    COUNT(retired_uncorrected_max, "15", 1, 1e9,
          "older GPUs: with so many pages retired for uncorrectable errors it is"),
    COUNT(retired_max, "63", 1, 1e9, "older GPUs: with so many pages retired in all it is"),
    PERCENT(confidence_both, "92", "percent, where the kernel log and the counters agree"),
    PERCENT(confidence_xid, "85", "percent, where only the kernel log tells of it"),
    PERCENT(confidence_counter, "65", "percent, where only counters tell of it"),
    PERCENT(confidence_storm, "80", "percent, for many corrected errors"),
    COUNT(max_xids, "16384", 16, 16777216, "Xids that are kept; the oldest go first"),
    COUNT(max_steps, "262144", 16, 16777216,
          "rises of counters that are kept; the oldest go first"),
    COUNT(max_gpus, "65536", 16, 16777216,
          "GPUs whose counters are kept; those told of least recently go first"),
    COUNT(max_incidents, "4096", 16, 1048576,
          "incidents that are kept, to know repeats; the oldest go first"),
    COUNT(max_samples, "262144", 16, 16777216,
          "samples that wait to be put in order; with more, later ones that are older than those "
          "are not looked at"),
};

static const struct metric_family EVICTED = {
    .name = "culprit_detector_evicted_total",
    .help = "Entries that a detector forgot because a bound was reached.",
    .type = METRIC_COUNTER,
};

enum { INCIDENTS_PER_CHUNK = 64 };
enum { SEEN_NOT, SEEN_NOW, SEEN_STALE }; // ecc_incident.seen

static struct ecc_rules rules_of(const struct hbm_ecc_config *config) {
    return (struct ecc_rules){
        .burst_ns = (uint64_t)config->burst.ns,
        .storm_window_ns = (uint64_t)config->storm_window.ns,
        .storm_errors = config->storm_errors,
        .remaps_max = config->remaps_max,
        .retired_uncorrected_max = config->retired_uncorrected_max,
        .retired_max = config->retired_max,
        .confidence_both = (int)config->confidence_both,
        .confidence_xid = (int)config->confidence_xid,
        .confidence_counter = (int)config->confidence_counter,
        .confidence_storm = (int)config->confidence_storm,
    };
}

static enum status ecc_start(void *instance, const void *config,
                             const struct component_context *context, struct error *error) {
    struct hbm_ecc *self = instance;
    const struct hbm_ecc_config *given = config;
    (void)error;
    self->rules = rules_of(given);
    self->live = !context->once;
    self->max_incidents = (uint32_t)given->max_incidents;
    self->evicted_metric = METRIC(&EVICTED, "detector", "hbm_ecc");
    xid_log_init(&self->xids, "hbm_ecc.xids", (uint32_t)given->max_xids);
    ecc_counters_init(&self->counters, (uint32_t)given->max_samples, (uint32_t)given->max_gpus,
                      (uint32_t)given->max_steps);
    gpu_names_init(&self->names, "hbm_ecc.gpu_addresses", "hbm_ecc.gpu_uuids");
    keyed_rows_init(&self->incidents, "hbm_ecc.incidents", sizeof(struct ecc_incident),
                    sizeof(struct incident_key), INCIDENTS_PER_CHUNK);
    verdict_ledger_init(&self->ledger, "hbm_ecc.verdicts");
    return STATUS_OK;
}

static void ecc_stop(void *instance) {
    struct hbm_ecc *self = instance;
    xid_log_release(&self->xids);
    ecc_counters_release(&self->counters);
    gpu_names_release(&self->names);
    keyed_rows_release(&self->incidents);
    verdict_ledger_release(&self->ledger);
}

static void ecc_state(void *instance, struct state_list *list) {
    struct hbm_ecc *self = instance;
    xid_log_state(&self->xids, list);
    ecc_counters_state(&self->counters, list);
    gpu_names_state(&self->names, list);
    struct state_entry *entry = state_list_table(list, &self->incidents.table);
    state_entry_string(entry, offsetof(struct ecc_incident, node));
    state_entry_string(entry, offsetof(struct ecc_incident, uuid));
    state_entry_string(entry, offsetof(struct ecc_incident, anchor_uuid));
    verdict_ledger_state(&self->ledger, list);
}

static void ecc_restored(void *instance) {
    struct hbm_ecc *self = instance;
    xid_log_restored(&self->xids);
    ecc_counters_restored(&self->counters);
    gpu_names_restored(&self->names);
    keyed_rows_restored(&self->incidents);
    verdict_ledger_restored(&self->ledger);
}

// -- Incidents that were told of ------------------------------------------------------------------

static int compare_numbers(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int compare_incident_gpus(const struct ecc_incident *a, string_id node, uint64_t address,
                                 string_id uuid) {
    int order = compare_numbers(a->node, node);
    order = order != 0 ? order : compare_numbers(a->address, address);
    return order != 0 ? order : compare_numbers(a->uuid, uuid);
}

static int compare_incidents(const void *left, const void *right) {
    const struct ecc_incident *a = *(struct ecc_incident *const *)left;
    const struct ecc_incident *b = *(struct ecc_incident *const *)right;
    int order = compare_incident_gpus(a, b->node, b->address, b->uuid);
    return order != 0 ? order : compare_numbers(a->anchor_ns, b->anchor_ns);
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
        bool apart = anchor->time_ns > incident->last_ns + self->rules.burst_ns ||
                     incident->first_ns > burst->last_ns + self->rules.burst_ns;
        if (!apart && incident->seen == SEEN_NOT)
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
    const struct ecc_item *anchor = burst->anchor;
    struct incident_key key = {anchor->node, anchor->address, anchor->time_ns, anchor->uuid};
    struct ecc_incident *incident = keyed_rows_find(&self->incidents, &key);
    if (incident != NULL)
        return incident;
    uint32_t number = count_earlier(self, anchor) + 1;
    self->incidents_evicted += row_bound_make_room(&self->incidents, self->max_incidents,
                                                   offsetof(struct ecc_incident, last_ns), arena);
    incident = keyed_rows_add(&self->incidents, &key);
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
    incident->seen = SEEN_NOW;
    if (burst->anchor->time_ns < incident->first_ns)
        incident->first_ns = burst->anchor->time_ns;
    if (burst->last_ns > incident->last_ns)
        incident->last_ns = burst->last_ns;
    if (burst->kind > incident->kind)
        incident->kind = burst->kind;
    for (uint32_t i = 0; i < burst->count; i++) {
        const struct ecc_item *item = burst->items[i];
        bool xid = item->xid != NULL && (item->kind != ECC_NONE || item->xid->code == 63);
        incident->seen_xid |= xid;
        incident->seen_counter |= item->step != NULL && item->kind != ECC_NONE;
        incident->seen_dbe |= item->xid != NULL && item->xid->code == 48;
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

// A remap that waited has been done, or corrected errors are as rare again as they should be.
static bool is_over(const struct hbm_ecc *self, const struct ecc_incident *incident,
                    uint64_t now_ns) {
    if (incident->kind == ECC_STORM && incident->seen_xid == 0)
        return ecc_counters_corrected(&self->counters, &self->names, incident,
                                      self->rules.storm_window_ns,
                                      now_ns) <= self->rules.storm_errors;
    bool known = false;
    return incident->kind == ECC_PENDING && is_zero(self, incident, ECC_REMAP_PENDING, &known) &&
           is_zero(self, incident, ECC_RETIRED_PENDING, &known) && known;
}

// How long Xids and steps are kept, and incidents judged anew, when the input has no end.
static uint64_t kept_ns(const struct hbm_ecc *self) {
    return 2 * (self->rules.storm_window_ns + self->rules.burst_ns);
}

static void report(struct hbm_ecc *self, struct batch *batch, struct ecc_incident *incident,
                   const struct ecc_burst *burst, uint64_t now_ns) {
    struct verdict verdict;
    ecc_verdict_build(&self->rules, incident, burst, uuid_of(self, incident), batch->arena,
                      &verdict);
    incident->ended = is_over(self, incident, now_ns);
    verdict_ledger_report(&self->ledger, batch, &verdict, incident->ended != 0, 0);
}

static struct slice text_of(string_id id) {
    return id == STRING_NONE ? SLICE("") : intern_slice(id);
}

static int compare_ends(const void *left, const void *right) {
    const struct ecc_incident *a = *(struct ecc_incident *const *)left;
    const struct ecc_incident *b = *(struct ecc_incident *const *)right;
    int order = compare_numbers(a->anchor_ns, b->anchor_ns);
    order = order != 0 ? order : slice_compare(text_of(a->node), text_of(b->node));
    order = order != 0 ? order : compare_numbers(a->address, b->address);
    return order != 0 ? order : slice_compare(text_of(a->uuid), text_of(b->uuid));
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
        struct verdict verdict;
        ecc_verdict_end(incident,
                        over ? "what was told of its memory is over"
                             : "what was told of its memory is part of another incident",
                        uuid_of(self, incident), batch->arena, &verdict);
        verdict_ledger_report(&self->ledger, batch, &verdict, true, 0);
        incident->ended = 1;
        if (merged)
            keyed_rows_remove(&self->incidents, incident);
    }
}

static void tell_evictions(struct hbm_ecc *self) {
    uint64_t evicted =
        self->xids.evicted + self->counters.evicted + self->names.evicted + self->incidents_evicted;
    metric_add(self->evicted_metric, evicted - self->evicted_told);
    self->evicted_told = evicted;
}

static void judge(struct hbm_ecc *self, struct batch *batch) {
    uint64_t now_ns = batch->as_of_ns < batch->newest_ns ? batch->as_of_ns : batch->newest_ns;
    uint64_t horizon_ns = self->xids.horizon_ns > self->counters.horizon_ns
                              ? self->xids.horizon_ns
                              : self->counters.horizon_ns;
    ecc_counters_read(&self->counters, &self->rules, now_ns, batch->arena);
    struct ecc_bursts bursts = ecc_find_bursts(&self->rules, &self->xids, &self->counters,
                                               &self->names, now_ns, batch->arena);
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
        if (stale)
            incident->seen = SEEN_STALE;
        else
            report(self, batch, incident, burst, now_ns);
    }
    end_others(self, batch, &list, horizon_ns, now_ns);
    if (self->live && now_ns > kept_ns(self)) {
        xid_log_expire(&self->xids, now_ns - kept_ns(self));
        ecc_counters_expire(&self->counters, now_ns - kept_ns(self));
    }
    tell_evictions(self);
}

static bool is_wanted(uint32_t code) {
    const struct xid_row *row = xid_find(code);
    return row != NULL && row->hbm_role != XID_HBM_NO;
}

static void ecc_consume(void *instance, struct batch *batch) {
    struct hbm_ecc *self = instance;
    for (uint32_t i = 0; i < batch->event_count; i++) {
        const struct event *event = &batch->events[i];
        if (!batch_selects(batch, i))
            continue;
        if (event->kind == EVENT_KERNEL)
            xid_log_take(&self->xids, event, is_wanted, batch->arena);
        if (event->kind == EVENT_GPU_SAMPLE)
            ecc_counters_take(&self->counters, &self->rules, event, batch->arena);
        gpu_names_take(&self->names, event, batch->arena);
    }
    if (batch->evaluate)
        judge(self, batch);
}

const struct component_type processor_hbm_ecc = {
    .name = "hbm_ecc",
    .summary = "Finds GPUs whose memory failed, and says how badly.",
    .kind = COMPONENT_PROCESSOR,
    .stability = STABILITY_ALPHA,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct hbm_ecc_config),
    .instance_size = sizeof(struct hbm_ecc),
    .takes = 1u << EVENT_KERNEL | 1u << EVENT_GPU_SAMPLE | 1u << EVENT_RANK_MAP,
    .gives = FACT_VERDICTS,
    .start = ecc_start,
    .stop = ecc_stop,
    .state = ecc_state,
    .restored = ecc_restored,
    .processor = {.consume = ecc_consume},
};
