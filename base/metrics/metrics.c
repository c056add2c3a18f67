// SPDX-License-Identifier: Apache-2.0
// Keeps the counters and gauges of the process and writes them out.
//
// Families in an array by name, the series of each in an array by labels, so that finding is two
// binary searches and exposing a walk. A series is one block of memory and never moves or goes:
// whoever holds it writes without asking. Bounds: METRIC_SERIES_MAX series, at most some 3 KiB
// each; usually 150 bytes.
#include "base/metrics/metrics.h"

#include "base/memory.h"
#include "base/metrics/process.h"
#include "base/thread.h"

#include <assert.h>
#include <string.h>

struct series {
    struct metric metric; // first: what callers hold
    bool hidden;
    uint32_t size;
    char labels[]; // name, zero, value, zero, …, by name
};

struct family {
    const struct metric_family *facts;
    struct series **series; // by the bytes of `labels`
    uint32_t count;
    uint32_t capacity;
};

struct collector {
    void (*collect)(void *context);
    void *context;
};

static struct {
    struct lock lock;         // of what follows
    struct lock collect_lock; // of the collectors; held while they run, taken before `lock`
    struct family *families;
    uint32_t family_count;
    uint32_t series_count;
    struct metric left_out; // what those get who come too late
    struct collector collectors[METRIC_COLLECTORS_MAX];
    uint32_t collector_count;
} registry = {.lock = LOCK_INITIALIZER, .collect_lock = LOCK_INITIALIZER};

static const struct metric_family BUILD = {
    .name = "culprit_build_info",
    .help = "Version and build of the running binary.",
    .type = METRIC_INFO,
};
static const struct metric_family LEFT_OUT = {
    .name = "culprit_metric_series_left_out_total",
    .help = "Asked-for series of culprit's own metrics that there was no room for.",
    .type = METRIC_COUNTER,
};

enum { NANOSECONDS = 1000000000 };

static const struct metric_family PROCESS[PROCESS_FIGURES] = {
    [PROCESS_CPU_NS] = {"process_cpu_seconds_total",
                        "Processor time spent, by user and system together.", METRIC_COUNTER,
                        NANOSECONDS},
    [PROCESS_MAX_FDS] = {"process_max_fds", "File descriptors that may be open at once.",
                         METRIC_GAUGE, 0},
    [PROCESS_OPEN_FDS] = {"process_open_fds", "File descriptors that are open.", METRIC_GAUGE, 0},
    [PROCESS_RESIDENT_BYTES] = {"process_resident_memory_bytes", "Resident memory.", METRIC_GAUGE,
                                0},
    [PROCESS_START_NS] = {"process_start_time_seconds", "When the process started, in Unix time.",
                          METRIC_GAUGE, NANOSECONDS},
    [PROCESS_THREADS] = {"process_threads", "Threads of the process.", METRIC_GAUGE, 0},
    [PROCESS_VIRTUAL_BYTES] = {"process_virtual_memory_bytes", "Virtual memory.", METRIC_GAUGE, 0},
};

enum { KEY_MAX = METRIC_LABELS_MAX * (64 + EXPOSITION_LABEL_MAX + 2) };

struct key {
    uint32_t size;
    char bytes[KEY_MAX];
};

static void key_make(struct key *key, const char *const *labels) {
    const char *const *sorted[METRIC_LABELS_MAX];
    uint32_t count = 0;
    for (; labels[0] != NULL; labels += 2, count++) {
        assert(count < METRIC_LABELS_MAX && strlen(labels[0]) < 64);
        uint32_t at = count;
        for (; at > 0 && strcmp(sorted[at - 1][0], labels[0]) > 0; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = labels;
    }
    key->size = 0;
    for (uint32_t i = 0; i < count; i++) {
        char room[EXPOSITION_LABEL_MAX];
        struct slice parts[2] = {slice_of(sorted[i][0]),
                                 exposition_label_value(slice_of(sorted[i][1]), room)};
        for (uint32_t part = 0; part < 2; part++) {
            memcpy(key->bytes + key->size, parts[part].data, parts[part].size);
            key->size += (uint32_t)parts[part].size;
            key->bytes[key->size++] = '\0';
        }
    }
    assert(key->size <= KEY_MAX);
}

// Whether one of `count` things in order, which `compare` compares with `wanted`, is it; `*place`:
// where it is, or would be.
static bool place_find(uint32_t count,
                       int (*compare)(const void *in, uint32_t at, const void *wanted),
                       const void *in, const void *wanted, uint32_t *place) {
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = compare(in, middle, wanted);
        *place = middle;
        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    assert(low == high && low <= count);
    *place = low;
    return false;
}

static int family_compare(const void *in, uint32_t at, const void *wanted) {
    const struct family *families = in;
    return strcmp(families[at].facts->name, wanted);
}

static bool family_place(const char *name, uint32_t *place) {
    assert(lock_is_held(&registry.lock));
    return place_find(registry.family_count, family_compare, registry.families, name, place);
}

static struct family *family_find(const struct metric_family *facts) {
    uint32_t place;
    if (!family_place(facts->name, &place)) {
        assert(registry.family_count < METRIC_FAMILIES_MAX);
        if (registry.families == NULL)
            registry.families = memory_take(METRIC_FAMILIES_MAX * sizeof *registry.families);
        struct family *at = &registry.families[place];
        assert(place <= registry.family_count);
        memmove(at + 1, at, (registry.family_count - place) * sizeof *at);
        *at = (struct family){.facts = facts};
        registry.family_count++;
    }
    assert(registry.families[place].facts->type == facts->type);
    return &registry.families[place];
}

static int series_compare(const void *in, uint32_t at, const void *wanted) {
    const struct family *family = in;
    const struct key *key = wanted;
    const struct series *series = family->series[at];
    return slice_compare((struct slice){series->labels, series->size},
                         (struct slice){key->bytes, key->size});
}

static struct series *series_insert(struct family *family, const struct key *key, uint32_t place) {
    assert(place <= family->count && registry.series_count < METRIC_SERIES_MAX);
    family->series =
        memory_room(family->series, &family->capacity, family->count, sizeof(struct series *));
    struct series *series = memory_zero(1, sizeof *series + key->size);
    series->size = key->size;
    if (key->size > 0)
        memcpy(series->labels, key->bytes, key->size);
    memmove(family->series + place + 1, family->series + place,
            (family->count - place) * sizeof(struct series *));
    family->series[place] = series;
    family->count++;
    registry.series_count++;
    assert(family->count <= family->capacity && registry.series_count <= METRIC_SERIES_MAX);
    return series;
}

static struct metric *find_locked(const struct metric_family *facts, const struct key *key) {
    assert(lock_is_held(&registry.lock));
    struct family *family = family_find(facts);
    uint32_t place = 0;
    bool there = place_find(family->count, series_compare, family, key, &place);
    struct series *series = there ? family->series[place] : NULL;
    if (series != NULL && series->hidden) {
        series->hidden = false;
        if (facts->type == METRIC_GAUGE)
            metric_set(&series->metric, 0);
    }
    if (series == NULL && registry.series_count < METRIC_SERIES_MAX)
        series = series_insert(family, key, place);
    return series == NULL ? NULL : &series->metric;
}

struct metric *metric_find(const struct metric_family *family, const char *const *labels) {
    assert(family->name != NULL && labels != NULL);
    struct key key;
    static const struct key none; // no labels
    key_make(&key, labels);
    lock_take(&registry.lock);
    struct metric *left_out = find_locked(&LEFT_OUT, &none); // made first, so that it has a place
    struct metric *metric = find_locked(family, &key);
    lock_release(&registry.lock);
    if (metric != NULL)
        return metric;
    metric_add(left_out, 1);
    return &registry.left_out;
}

static bool has_label(const struct series *series, const char *label, const char *value) {
    char room[EXPOSITION_LABEL_MAX];
    struct slice wanted = exposition_label_value(slice_of(value), room);
    for (const char *at = series->labels; at < series->labels + series->size;) {
        struct slice shown = slice_of(at + strlen(at) + 1);
        if (strcmp(at, label) == 0)
            return slice_equal(shown, wanted);
        at = shown.data + shown.size + 1;
    }
    return false;
}

void metric_remove(const struct metric_family *family, const char *label, const char *value) {
    assert(family->name != NULL && label != NULL && value != NULL);
    uint32_t place;
    lock_take(&registry.lock);
    if (family_place(family->name, &place)) {
        const struct family *found = &registry.families[place];
        for (uint32_t i = 0; i < found->count; i++)
            if (has_label(found->series[i], label, value))
                found->series[i]->hidden = true;
    }
    lock_release(&registry.lock);
}

void metrics_on_collect(void (*collect)(void *context), void *context) {
    assert(collect != NULL);
    lock_take(&registry.collect_lock);
    assert(registry.collector_count < METRIC_COLLECTORS_MAX);
    registry.collectors[registry.collector_count++] = (struct collector){collect, context};
    lock_release(&registry.collect_lock);
}

void metrics_remove_collect(void (*collect)(void *context), void *context) {
    lock_take(&registry.collect_lock);
    for (uint32_t i = 0; i < registry.collector_count; i++) {
        struct collector *at = &registry.collectors[i];
        if (at->collect != collect || at->context != context)
            continue;
        memmove(at, at + 1, (registry.collector_count - i - 1) * sizeof *at);
        registry.collector_count--;
        break;
    }
    lock_release(&registry.collect_lock);
}

static void expose_series(struct exposition *exposition, const struct metric_family *facts,
                          const struct series *series) {
    struct exposition_label labels[METRIC_LABELS_MAX];
    uint32_t count = 0;
    for (const char *at = series->labels; at < series->labels + series->size;) {
        assert(count < METRIC_LABELS_MAX);
        labels[count].name = at;
        labels[count].value = slice_of(at + strlen(at) + 1);
        at = labels[count].value.data + labels[count].value.size + 1;
        count++;
    }
    uint64_t value = metric_value(&series->metric);
    if (facts->type == METRIC_COUNTER && facts->divisor <= 1) {
        exposition_sample_uint(exposition, labels, count, value);
        return;
    }
    bool negative = facts->type == METRIC_GAUGE && (int64_t)value < 0;
    uint32_t divisor = facts->divisor == 0 ? 1 : facts->divisor;
    double shown = exposition_quotient(negative ? 0 - value : value, divisor);
    exposition_sample(exposition, labels, count, negative ? -shown : shown);
}

static void expose_family(struct exposition *exposition, const struct family *family) {
    assert(lock_is_held(&registry.lock) && family->count <= family->capacity);
    static const enum exposition_type types[] = {[METRIC_COUNTER] = EXPOSITION_COUNTER,
                                                 [METRIC_GAUGE] = EXPOSITION_GAUGE,
                                                 [METRIC_INFO] = EXPOSITION_INFO};
    bool begun = false;
    for (uint32_t i = 0; i < family->count; i++) {
        if (family->series[i]->hidden)
            continue;
        if (!begun)
            exposition_family(exposition, family->facts->name, family->facts->help,
                              types[family->facts->type]);
        begun = true;
        expose_series(exposition, family->facts, family->series[i]);
    }
}

static void collect_process(void) {
    assert(lock_is_held(&registry.collect_lock));
    struct process_figures figures;
    process_figures_read(&figures);
    for (uint32_t i = 0; i < PROCESS_FIGURES; i++) {
        struct metric *metric = figures.known[i] ? METRIC_PLAIN(&PROCESS[i]) : NULL;
        // The time of day may be set later; what was worked out first stays.
        if (metric != NULL && (i != PROCESS_START_NS || metric_value(metric) == 0))
            metric_set(metric, figures.values[i]);
    }
}

void metrics_expose(struct exposition *exposition) {
    lock_take(&registry.collect_lock);
    collect_process();
    for (uint32_t i = 0; i < registry.collector_count; i++)
        registry.collectors[i].collect(registry.collectors[i].context);
    lock_take(&registry.lock);
    for (uint32_t i = 0; i < registry.family_count; i++)
        expose_family(exposition, &registry.families[i]);
    lock_release(&registry.lock);
    lock_release(&registry.collect_lock);
}

static const char *build_version = "";

const char *metrics_build_version(void) {
    return build_version;
}

void metrics_set_build(const char *version, const char *revision) {
    assert(version != NULL && revision != NULL);
    build_version = version;
#ifdef __clang__
    static const char compiler[] = "clang";
#else
    static const char compiler[] = "gcc";
#endif
    metric_set(METRIC(&BUILD, "version", version, "revision", revision, "compiler", compiler), 1);
}

void metrics_release(void) {
    for (uint32_t i = 0; i < registry.family_count; i++) {
        for (uint32_t j = 0; j < registry.families[i].count; j++)
            memory_give(registry.families[i].series[j]);
        memory_give(registry.families[i].series);
    }
    memory_give(registry.families);
    registry.families = NULL;
    registry.family_count = registry.series_count = registry.collector_count = 0;
}
