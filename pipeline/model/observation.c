// SPDX-License-Identifier: Apache-2.0
// Names of kinds and facts, and how facts are found: a binary search in a short list.
#include "pipeline/model/observation.h"

#include <assert.h>

static const char *const OBSERVATION_NAMES[OBSERVATION_KIND_COUNT] = {
    [OBSERVATION_NONE] = "none",
#define OBSERVATION(constant, name) [OBSERVATION_##constant] = (name),
#include "pipeline/model/observation_names.h"
};

static const struct {
    const char *name;
    enum fact_type type;
} FACTS[FACT_KEY_COUNT] = {
#define FACT(constant, name, type) [FACT_##constant] = {name, FACT_TYPE_##type},
#include "pipeline/model/observation_names.h"
};

const char *observation_name(enum observation_kind kind) {
    assert((unsigned)kind < OBSERVATION_KIND_COUNT);
    return OBSERVATION_NAMES[kind];
}

const char *fact_name(enum fact_key key) {
    assert((unsigned)key < FACT_KEY_COUNT);
    return FACTS[key].name;
}

enum fact_type fact_type(enum fact_key key) {
    assert((unsigned)key < FACT_KEY_COUNT);
    return FACTS[key].type;
}

const struct fact *observation_fact(const struct observation *observation, enum fact_key key) {
    uint32_t low = 0, high = observation->fact_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct fact *fact = &observation->facts[middle];
        if (fact->key == key)
            return fact;
        if (fact->key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

bool observation_number(const struct observation *observation, enum fact_key key, int64_t *number) {
    assert(fact_type(key) == FACT_NUMBER);
    const struct fact *fact = observation_fact(observation, key);
    if (fact != NULL)
        *number = fact->number;
    return fact != NULL;
}

bool observation_text(const struct observation *observation, enum fact_key key,
                      struct slice *text) {
    assert(fact_type(key) == FACT_TEXT);
    const struct fact *fact = observation_fact(observation, key);
    if (fact != NULL)
        *text = fact->text;
    return fact != NULL;
}

bool observation_is(const struct observation *observation, enum fact_key key, bool otherwise) {
    assert(fact_type(key) == FACT_YES_NO);
    const struct fact *fact = observation_fact(observation, key);
    return fact == NULL ? otherwise : fact->yes;
}

// -- words --------------------------------------------------------------------------------------

// The words for events that are no observations; those of one kind stand together.
enum base_class {
    CLASS_TELEMETRY = EVENT_CLASS_TELEMETRY,
    CLASS_FLIGHT,
    CLASS_XID,
    CLASS_GPU_OFF_BUS,
    CLASS_GPU_UUID,
    CLASS_SXID,
    CLASS_AER,
    CLASS_KERNEL_OTHER,
    CLASS_GPU_COUNTERS,
    CLASS_AER_COUNTERS,
    CLASS_KUBERNETES,
    CLASS_RANK_MAP,
    CLASS_WATCHDOG_TIMEOUT,
    CLASS_WATCHDOG_STATUS,
    CLASS_SPAN,
    BASE_CLASS_COUNT
};
_Static_assert((int)BASE_CLASS_COUNT <= (int)EVENT_CLASS_BASE, "room for the words");

static const struct {
    const char *name;
    enum event_kind kind;
} BASE_CLASSES[BASE_CLASS_COUNT] = {
    [CLASS_TELEMETRY] = {"telemetry", EVENT_TELEMETRY},
    [CLASS_FLIGHT] = {"flight_recorder", EVENT_FLIGHT},
    [CLASS_XID] = {"xid", EVENT_KERNEL},
    [CLASS_GPU_OFF_BUS] = {"gpu_off_bus", EVENT_KERNEL},
    [CLASS_GPU_UUID] = {"gpu_uuid", EVENT_KERNEL},
    [CLASS_SXID] = {"sxid", EVENT_KERNEL},
    [CLASS_AER] = {"aer", EVENT_KERNEL},
    [CLASS_KERNEL_OTHER] = {"kernel", EVENT_KERNEL},
    [CLASS_GPU_COUNTERS] = {"gpu_counters", EVENT_GPU_SAMPLE},
    [CLASS_AER_COUNTERS] = {"aer_counters", EVENT_AER_COUNTERS},
    [CLASS_KUBERNETES] = {"kubernetes", EVENT_KUBERNETES},
    [CLASS_RANK_MAP] = {"rank_map", EVENT_RANK_MAP},
    [CLASS_WATCHDOG_TIMEOUT] = {"watchdog_timeout", EVENT_APP_LINE},
    [CLASS_WATCHDOG_STATUS] = {"watchdog_status", EVENT_APP_LINE},
    [CLASS_SPAN] = {"span", EVENT_SPAN},
};

static uint32_t kernel_class(const struct kernel_line *line) {
    switch (line->kind) {
    case KERNEL_XID:
        return CLASS_XID;
    case KERNEL_GPU_LOST:
        return CLASS_GPU_OFF_BUS;
    case KERNEL_GPU_UUID:
        return CLASS_GPU_UUID;
    case KERNEL_SXID:
        return CLASS_SXID;
    case KERNEL_AER:
        return CLASS_AER;
    case KERNEL_OTHER:
        break;
    }
    return CLASS_KERNEL_OTHER;
}

uint32_t event_class(const struct event *event) {
    static const uint32_t classes[] = {
        [EVENT_TELEMETRY] = CLASS_TELEMETRY,
        [EVENT_FLIGHT] = CLASS_FLIGHT,
        [EVENT_GPU_SAMPLE] = CLASS_GPU_COUNTERS,
        [EVENT_AER_COUNTERS] = CLASS_AER_COUNTERS,
        [EVENT_KUBERNETES] = CLASS_KUBERNETES,
        [EVENT_RANK_MAP] = CLASS_RANK_MAP,
        [EVENT_SPAN] = CLASS_SPAN,
    };
    if (event->kind == EVENT_OBSERVATION)
        return EVENT_CLASS_BASE + (uint32_t)event->observation->kind;
    if (event->kind == EVENT_KERNEL)
        return kernel_class(event->kernel);
    if (event->kind == EVENT_APP_LINE)
        return event->line->kind == APP_TIMEOUT ? CLASS_WATCHDOG_TIMEOUT : CLASS_WATCHDOG_STATUS;
    assert((size_t)event->kind < sizeof classes / sizeof *classes);
    return classes[event->kind];
}

const char *event_class_name(uint32_t class) {
    assert(class < EVENT_CLASS_COUNT);
    if (class > EVENT_CLASS_BASE)
        return OBSERVATION_NAMES[class - EVENT_CLASS_BASE];
    return class < BASE_CLASS_COUNT ? BASE_CLASSES[class].name : NULL;
}

enum event_kind event_class_kind(uint32_t class) {
    assert(event_class_name(class) != NULL);
    return class < EVENT_CLASS_BASE ? BASE_CLASSES[class].kind : EVENT_OBSERVATION;
}
