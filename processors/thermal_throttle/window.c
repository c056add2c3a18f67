// SPDX-License-Identifier: Apache-2.0
// Keeps samples, takes them in order of time, and opens and ends incidents.
#include "processors/thermal_throttle/window.h"

#include "base/sort.h"
#include "processors/cluster/compare.h"
#include "processors/cluster/due_rows.h"

#include <math.h>

#define BIT(path)       (1u << (path))
#define REASON_SOFTWARE UINT64_C(0x20)
#define REASON_HARDWARE UINT64_C(0x40)

const struct row_type THERMAL_SAMPLE_ROWS = {.size = sizeof(struct thermal_sample),
                                             .rows_per_chunk = 256};
const struct row_type THERMAL_INCIDENT_ROWS = {.size = sizeof(struct thermal_incident),
                                               .rows_per_chunk = 16};

void thermal_window_restored(struct thermal_window *window) {
    window->waiting = 0;
    for (uint32_t row = 0; row < window->samples.used; row++)
        window->waiting += thermal_sample_at(window, row)->state == SAMPLE_WAITS;
}

// -- Samples as they come -------------------------------------------------------------------------

// The temperatures and the clock of a sample, in the order of enum thermal_value.
static const struct {
    enum gpu_field field;
    size_t offset; // of a float
} VALUES[] = {
    {GPU_TEMPERATURE_C, offsetof(struct thermal_sample, core_c)},
    {GPU_MEMORY_TEMPERATURE_C, offsetof(struct thermal_sample, memory_c)},
    {GPU_TEMPERATURE_MARGIN_C, offsetof(struct thermal_sample, margin_c)},
    {GPU_SLOWDOWN_TEMPERATURE_C, offsetof(struct thermal_sample, slowdown_c)},
    {GPU_MEMORY_MAX_TEMPERATURE_C, offsetof(struct thermal_sample, memory_max_c)},
    {GPU_SM_CLOCK_MHZ, offsetof(struct thermal_sample, clock_mhz)},
};
enum { VALUE_COUNT = sizeof VALUES / sizeof *VALUES };
_Static_assert(THERMAL_CORE + VALUE_COUNT == THERMAL_VALUE_COUNT, "a row for each value");

static const enum gpu_field LOST_FIELDS[3] = {GPU_THERMAL_VIOLATION_NS, GPU_SW_THERMAL_NS,
                                              GPU_HW_THERMAL_NS};

static float *value_of(struct thermal_sample *sample, unsigned value) {
    assert(value < VALUE_COUNT);
    return (float *)(void *)((char *)sample + VALUES[value].offset);
}

static void note_value(const struct gpu_sample *from, enum gpu_field field, unsigned value,
                       struct thermal_sample *to) {
    assert(value < THERMAL_VALUE_COUNT);
    to->present |= BIT(value) | gpu_sample_spelling(from, field)
                                    << (THERMAL_VALUE_COUNT + 2 * value);
}

static bool take_values(const struct gpu_sample *from, struct thermal_sample *to) {
    if ((from->present >> GPU_CLOCK_REASONS & 1) != 0 && from->whole[GPU_CLOCK_REASONS] >= 0) {
        note_value(from, GPU_CLOCK_REASONS, THERMAL_REASONS, to);
        to->reasons = (uint64_t)from->whole[GPU_CLOCK_REASONS];
    }
    for (unsigned i = 0; i < 3; i++)
        if ((from->present >> LOST_FIELDS[i] & 1) != 0) {
            note_value(from, LOST_FIELDS[i], THERMAL_LOST + i, to);
            to->lost_total[i] = from->whole[LOST_FIELDS[i]];
        }
    for (unsigned i = 0; i < VALUE_COUNT; i++) {
        double value = from->value[VALUES[i].field];
        // Beyond this it is no temperature and no clock.
        if ((from->present >> VALUES[i].field & 1) == 0 || !(fabs(value) < 1e6))
            continue;
        note_value(from, VALUES[i].field, THERMAL_CORE + i, to);
        *value_of(to, i) = (float)value;
    }
    return to->present != 0;
}

// -- Sums over the window -------------------------------------------------------------------------

static void count_sample(struct thermal_gpu *gpu, const struct thermal_sample *sample, bool add) {
    for (unsigned path = 0; path < PATH_COUNT; path++)
        if ((sample->paths & BIT(path)) != 0) {
            gpu->count[path] += add ? 1u : -1u;
            gpu->held_ns[path] += add ? sample->held_ns : -sample->held_ns;
        }
    gpu->lost_ns += add ? sample->lost_ns : -sample->lost_ns;
}

// Whether the sample holds what makes one hot by this path.
static bool tells_of(const struct thermal_sample *sample, enum thermal_path path) {
    static const unsigned VALUES_OF[] = {
        [PATH_BITS] = BIT(THERMAL_REASONS),  [PATH_HARDWARE] = BIT(THERMAL_REASONS),
        [PATH_MEMORY] = BIT(THERMAL_MEMORY), [PATH_MARGIN] = BIT(THERMAL_MARGIN),
        [PATH_COUNTER] = 7u << THERMAL_LOST,
    };
    return (sample->present & VALUES_OF[path]) != 0;
}

static void drop_expired(struct thermal_window *window, struct thermal_gpu *gpu, uint64_t now_ns) {
    while (gpu->first != TABLE_NO_ROW) {
        uint32_t row = gpu->first;
        struct thermal_sample *sample = thermal_sample_at(window, row);
        if (sample->time_ns > now_ns ||
            now_ns - sample->time_ns < duration_ns(window->config->window))
            return;
        count_sample(gpu, sample, false);
        for (enum thermal_path path = 0; path <= PATH_COUNTER; path++)
            if (tells_of(sample, path))
                gpu->told_ns[path] = sample->time_ns;
        gpu->first = sample->next;
        if (gpu->first == TABLE_NO_ROW)
            gpu->last = TABLE_NO_ROW;
        thermal_sample_free(window, row);
    }
}

static float slowdown_margin(const struct thermal_window *window, const struct thermal_gpu *gpu) {
    const char *model = gpu->model == STRING_NONE ? "" : intern_slice(gpu->model).data;
    for (uint32_t i = 0; i < window->model_count; i++) {
        const struct thermal_model *other = &window->models[i];
        for (const char *at = model; *at != '\0'; at++)
            if (strncasecmp(at, other->part, (size_t)other->part_size) == 0)
                return other->margin_c;
    }
    return (float)window->config->slowdown_margin;
}

static uint16_t find_paths(const struct thermal_window *window, const struct thermal_gpu *gpu,
                           const struct thermal_sample *sample) {
    unsigned present = sample->present, paths = 0;
    if ((present & BIT(THERMAL_REASONS)) != 0) {
        if ((sample->reasons & (REASON_SOFTWARE | REASON_HARDWARE)) != 0)
            paths |= BIT(PATH_BITS);
        if ((sample->reasons & REASON_HARDWARE) != 0)
            paths |= BIT(PATH_HARDWARE);
    }
    bool knows_margin = (present & BIT(THERMAL_MARGIN)) != 0;
    bool uses_margin = knows_margin && sample->margin_c <= slowdown_margin(window, gpu);
    if (uses_margin)
        paths |= BIT(PATH_MARGIN);
    const unsigned memory = BIT(THERMAL_MEMORY) | BIT(THERMAL_MEMORY_MAX);
    const unsigned core = BIT(THERMAL_CORE) | BIT(THERMAL_SLOWDOWN);
    bool core_is_cool = knows_margin
                            ? !uses_margin
                            : (present & core) == core && sample->core_c < sample->slowdown_c;
    if ((present & memory) == memory && sample->memory_max_c > 0 &&
        sample->memory_c >= sample->memory_max_c && core_is_cool)
        paths |= BIT(PATH_MEMORY);
    return (uint16_t)paths;
}

// How much a counter has grown since it was read last: nothing at first, when it fell and after a
// gap as long as the window, and never more than the time that passed.
static uint64_t find_growth(struct thermal_gpu *gpu, const struct thermal_sample *sample,
                            unsigned which, uint64_t gap_max_ns) {
    assert(which < 3);
    if ((sample->present & BIT(THERMAL_LOST + which)) == 0)
        return 0;
    uint64_t grown = 0, passed = sample->time_ns - gpu->lost_at_ns[which];
    int64_t now = sample->lost_total[which], before = gpu->lost_total[which];
    if ((gpu->has_lost & BIT(which)) != 0 && before >= 0 && now > before && passed < gap_max_ns)
        grown = (uint64_t)(now - before) < passed ? (uint64_t)(now - before) : passed;
    gpu->has_lost |= BIT(which);
    gpu->lost_total[which] = now;
    gpu->lost_at_ns[which] = sample->time_ns;
    return grown;
}

// -- Incidents ------------------------------------------------------------------------------------

static bool path_holds(const struct thermal_window *window, const struct thermal_gpu *gpu,
                       enum thermal_path path) {
    assert(path < PATH_COUNT);
    return gpu->count[path] >= window->config->min_samples &&
           gpu->held_ns[path] >= duration_ns(window->config->min_time);
}

// The first of the rules that holds: bits, memory, margin, counter.
static bool find_rule(const struct thermal_window *window, const struct thermal_gpu *gpu,
                      enum thermal_path *path) {
    static const enum thermal_path ORDER[] = {PATH_BITS, PATH_MEMORY, PATH_MARGIN};
    for (size_t i = 0; i < sizeof ORDER / sizeof *ORDER; i++)
        if (path_holds(window, gpu, ORDER[i])) {
            *path = ORDER[i];
            return true;
        }
    *path = PATH_COUNTER;
    return gpu->lost_ns > 0 && (double)gpu->lost_ns >= window->config->counter_share *
                                                           (double)window->config->window.ns;
}

// How the field was spelled that makes a sample hot by this path.
static uint8_t path_spelling(const struct thermal_sample *sample, unsigned path) {
    static const unsigned VALUES_OF[PATH_COUNT] = {
        [PATH_BITS] = THERMAL_REASONS,
        [PATH_HARDWARE] = THERMAL_REASONS,
        [PATH_MEMORY] = THERMAL_MEMORY,
        [PATH_MARGIN] = THERMAL_MARGIN,
    };
    assert(path < PATH_COUNT);
    return thermal_spelling(sample, VALUES_OF[path]);
}

static void count_lost(struct thermal_incident *incident, const struct thermal_sample *sample,
                       uint64_t before_ns) {
    if (sample->lost_ns == 0)
        return;
    unsigned lost = (sample->present & BIT(THERMAL_LOST)) != 0 ? THERMAL_LOST
                    : (sample->reasons & REASON_HARDWARE) != 0 ? THERMAL_LOST + 2
                                                               : THERMAL_LOST + 1;
    incident->last_spelled[PATH_COUNTER] = thermal_spelling(sample, lost);
    if (incident->lost_first_ns == 0) {
        incident->first_spelled[PATH_COUNTER] = incident->last_spelled[PATH_COUNTER];
        incident->lost_first_ns = sample->time_ns;
        incident->lost_from_ns = before_ns;
    }
    incident->lost_last_ns = sample->time_ns;
    incident->lost_ns += sample->lost_ns;
    incident->lost_field = LOST_FIELDS[lost - THERMAL_LOST];
}

static void count_in(struct thermal_incident *incident, const struct thermal_sample *sample,
                     uint64_t before_ns) {
    assert(incident->live != 0 && incident->ended == 0);
    incident->samples++;
    if ((sample->present & BIT(THERMAL_REASONS)) != 0)
        incident->has_reasons = 1;
    count_lost(incident, sample, before_ns);
    if (sample->paths == 0 && sample->lost_ns == 0)
        return;
    incident->last_ns = sample->time_ns;
    for (unsigned path = 0; path < PATH_COUNT; path++) {
        if ((sample->paths & BIT(path)) == 0)
            continue;
        incident->last_spelled[path] = path_spelling(sample, path);
        if (incident->count[path]++ == 0) {
            incident->first_ns[path] = sample->time_ns;
            incident->first_spelled[path] = incident->last_spelled[path];
        }
        incident->last_path_ns[path] = sample->time_ns;
    }
    if ((sample->paths & BIT(PATH_BITS)) != 0) {
        if (incident->reasons_ns == 0) {
            incident->reasons_ns = sample->time_ns;
            incident->reasons = sample->reasons;
        }
        incident->all_reasons |= sample->reasons;
    }
    if ((sample->present & BIT(THERMAL_CORE)) != 0 && sample->core_c > incident->core_max_c)
        incident->core_max_c = sample->core_c;
    if ((sample->paths & BIT(PATH_MEMORY)) != 0 && sample->memory_c > incident->memory_max_c) {
        incident->memory_max_c = sample->memory_c;
        incident->memory_limit_c = sample->memory_max_c;
    }
    if ((sample->paths & BIT(PATH_MARGIN)) != 0 &&
        (incident->count[PATH_MARGIN] == 1 || sample->margin_c < incident->margin_min_c))
        incident->margin_min_c = sample->margin_c;
}

static bool begins_with(const struct thermal_sample *sample, enum thermal_path path) {
    return path == PATH_COUNTER ? sample->lost_ns > 0 : (sample->paths & BIT(path)) != 0;
}

// The first sample of the window that the rule speaks of; but one alone, with more than max_gap to
// the next of them, is not what the others began with.
static uint32_t find_begin(const struct thermal_window *window, const struct thermal_gpu *gpu,
                           enum thermal_path path) {
    uint32_t first = TABLE_NO_ROW, at = gpu->first;
    for (; at != TABLE_NO_ROW; at = thermal_sample_at(window, at)->next) {
        if (!begins_with(thermal_sample_at(window, at), path))
            continue;
        if (first != TABLE_NO_ROW &&
            thermal_sample_at(window, at)->time_ns - thermal_sample_at(window, first)->time_ns <=
                duration_ns(window->config->max_gap))
            return first;
        if (first != TABLE_NO_ROW)
            return at;
        first = at;
    }
    return first;
}

static void open_incident(struct thermal_window *window, struct thermal_gpu *gpu,
                          enum thermal_path path) {
    assert(gpu->incident == TABLE_NO_ROW);
    uint32_t row = table_add(&window->incidents);
    struct thermal_incident *incident = thermal_incident_at(window, row);
    *incident = (struct thermal_incident){.live = 1,
                                          .gpu = gpu->self,
                                          .leader = TABLE_NO_ROW,
                                          .start_path = (uint8_t)path,
                                          .since_ns = gpu->told_ns[path]};
    gpu->incident = row;
    gpu->incident_count++;
    uint64_t before_ns = 0;
    uint32_t begin = find_begin(window, gpu, path);
    for (uint32_t at = gpu->first; at != TABLE_NO_ROW; at = thermal_sample_at(window, at)->next) {
        const struct thermal_sample *sample = thermal_sample_at(window, at);
        if (at == begin)
            incident->start_ns = sample->time_ns;
        if (incident->start_ns != 0)
            count_in(incident, sample, before_ns);
        else if (tells_of(sample, path))
            incident->since_ns = sample->time_ns;
        before_ns = sample->time_ns;
    }
}

static void end_incident(struct thermal_window *window, struct thermal_gpu *gpu,
                         enum thermal_end how) {
    assert(gpu->incident != TABLE_NO_ROW);
    thermal_incident_at(window, gpu->incident)->ended = (uint8_t)how;
    gpu->incident = TABLE_NO_ROW;
}

// Whether the sample says anything of what made the GPU a hot one. A counter does so from its
// second value on.
static bool tells_of_incident(const struct thermal_window *window,
                              const struct thermal_incident *incident,
                              const struct thermal_sample *sample, uint64_t before_ns) {
    for (enum thermal_path path = 0; path < PATH_COUNT; path++)
        if (incident->count[path] > 0 && tells_of(sample, path))
            return true;
    return incident->lost_first_ns != 0 && tells_of(sample, PATH_COUNTER) && before_ns != 0 &&
           sample->time_ns - before_ns < duration_ns(window->config->window);
}

static void judge(struct thermal_window *window, struct thermal_gpu *gpu,
                  const struct thermal_sample *sample, uint64_t before_ns) {
    enum thermal_path path;
    bool holds = find_rule(window, gpu, &path);
    if (gpu->incident != TABLE_NO_ROW) {
        struct thermal_incident *incident = thermal_incident_at(window, gpu->incident);
        if (holds || sample->paths != 0)
            count_in(incident, sample, before_ns);
        else if (tells_of_incident(window, incident, sample, before_ns))
            end_incident(window, gpu, THERMAL_COOL);
    } else if (holds) {
        open_incident(window, gpu, path);
    }
}

void thermal_incident_forget(struct thermal_window *window, uint32_t row) {
    assert(thermal_incident_at(window, row)->live != 0);
    struct thermal_incident *incident = thermal_incident_at(window, row);
    thermal_gpu_at(window, incident->gpu)->incident_count--;
    incident->live = 0;
    table_free(&window->incidents, row);
}

// -- Samples in order of time ---------------------------------------------------------------------

static bool is_due(const void *row, uint64_t until_ns) {
    const struct thermal_sample *sample = row;
    return sample->state == SAMPLE_WAITS && sample->time_ns <= until_ns;
}

static int compare_waiting(const void *left, const void *right) {
    const struct thermal_sample *a = ((const struct due_row *)left)->row;
    const struct thermal_sample *b = ((const struct due_row *)right)->row;
    int order = COMPARE_KEYS(COMPARE(a->time_ns, b->time_ns), COMPARE(a->gpu, b->gpu));
    // What two samples of one moment say is joined; where they differ, by value.
    size_t from = offsetof(struct thermal_sample, reasons);
    size_t to = offsetof(struct thermal_sample, state);
    return order != 0 ? order : memcmp((const char *)a + from, (const char *)b + from, to - from);
}

static struct due_rows list_waiting(const struct thermal_window *window, uint64_t until_ns,
                                    struct arena *arena) {
    return due_rows_sorted(&window->samples, is_due, until_ns, arena, compare_waiting);
}

static uint64_t middle_of_waiting(const struct thermal_window *window, struct arena *arena) {
    struct due_rows list = list_waiting(window, UINT64_MAX, arena);
    return list.count == 0 ? 0 : ((struct thermal_sample *)list.items[list.count / 2].row)->time_ns;
}

// Takes over what `from` says and `to` does not.
static void join_samples(struct thermal_sample *to, struct thermal_sample *from) {
    unsigned more = from->present & ~to->present & (BIT(THERMAL_VALUE_COUNT) - 1);
    if ((more & BIT(THERMAL_REASONS)) != 0)
        to->reasons = from->reasons;
    for (unsigned i = 0; i < 3; i++)
        if ((more & BIT(THERMAL_LOST + i)) != 0)
            to->lost_total[i] = from->lost_total[i];
    for (unsigned i = 0; i < VALUE_COUNT; i++)
        if ((more & BIT(THERMAL_CORE + i)) != 0)
            *value_of(to, i) = *value_of(from, i);
    for (unsigned i = 0; i < THERMAL_VALUE_COUNT; i++)
        if ((more & BIT(i)) != 0)
            to->present |= from->present & 3u << (THERMAL_VALUE_COUNT + 2 * i);
    to->present |= more;
}

// Puts the sample at the end of its GPU's window, with what it adds to the sums.
static void enter_window(struct thermal_window *window, uint32_t row) {
    assert(window->waiting > 0);
    struct thermal_sample *sample = thermal_sample_at(window, row);
    struct thermal_gpu *gpu = thermal_gpu_at(window, sample->gpu);
    drop_expired(window, gpu, sample->time_ns);
    if (gpu->last != TABLE_NO_ROW) {
        struct thermal_sample *before = thermal_sample_at(window, gpu->last);
        uint64_t gap = sample->time_ns - before->time_ns;
        uint64_t most = duration_ns(window->config->max_gap);
        count_sample(gpu, before, false);
        before->held_ns = gap < most ? gap : most;
        count_sample(gpu, before, true);
        before->next = row;
    } else {
        gpu->first = row;
    }
    gpu->last = row;
    sample->next = TABLE_NO_ROW;
    sample->state = SAMPLE_IN_WINDOW;
    window->waiting--;
    sample->paths = find_paths(window, gpu, sample);
    uint64_t gap_max_ns = duration_ns(window->config->window);
    uint64_t violation = find_growth(gpu, sample, 0, gap_max_ns);
    uint64_t reasons =
        find_growth(gpu, sample, 1, gap_max_ns) + find_growth(gpu, sample, 2, gap_max_ns);
    sample->lost_ns = (sample->present & BIT(THERMAL_LOST)) != 0 ? violation : reasons;
    count_sample(gpu, sample, true);
    if ((sample->present & BIT(THERMAL_CLOCK)) != 0) {
        gpu->clock_mhz = sample->clock_mhz;
        gpu->clock_ns = sample->time_ns;
        gpu->has_clock = 1;
    }
}

static int compare_clocks(const void *a, const void *b) {
    float first = *(const float *)a, second = *(const float *)b;
    return (first > second) - (first < second);
}

// The median clock of the node's other GPUs, as far as it is fresh; 0: none.
static float others_clock(const struct thermal_window *window, const struct thermal_gpu *gpu,
                          uint64_t now_ns, struct arena *arena) {
    const struct thermal_node *node = keyed_rows_find(&window->nodes, &gpu->key.node);
    float *clocks = arena_take(arena, node->gpu_count * sizeof *clocks);
    uint32_t count = 0;
    for (uint32_t row = node->first_gpu; row != TABLE_NO_ROW;) {
        const struct thermal_gpu *other = thermal_gpu_at(window, row);
        if (other != gpu && other->has_clock &&
            now_ns - other->clock_ns <= duration_ns(window->config->max_gap))
            clocks[count++] = other->clock_mhz;
        row = other->next_on_node;
    }
    if (count == 0)
        return 0;
    sort_stable(clocks, count, sizeof *clocks, arena, compare_clocks);
    return count % 2 == 1 ? clocks[count / 2] : (clocks[count / 2 - 1] + clocks[count / 2]) / 2;
}

static void compare_clock(struct thermal_window *window, const struct thermal_sample *sample,
                          struct arena *arena) {
    const struct thermal_gpu *gpu = thermal_gpu_at(window, sample->gpu);
    if (gpu->incident == TABLE_NO_ROW || (sample->present & BIT(THERMAL_CLOCK)) == 0 ||
        (sample->paths == 0 && sample->lost_ns == 0))
        return;
    float others = others_clock(window, gpu, sample->time_ns, arena);
    if (others <= 0 || sample->clock_mhz > others * (float)(1 - window->config->clock_share))
        return;
    struct thermal_incident *incident = thermal_incident_at(window, gpu->incident);
    incident->clock_ns = sample->time_ns;
    incident->clock_mhz = sample->clock_mhz;
    incident->others_mhz = others;
    incident->clock_spelled = thermal_spelling(sample, THERMAL_CLOCK);
}

static uint64_t before_of(const struct thermal_window *window, const struct thermal_gpu *gpu) {
    return gpu->last == TABLE_NO_ROW ? 0 : thermal_sample_at(window, gpu->last)->time_ns;
}

// All samples of one moment: first all enter, so that GPUs can be compared with one another.
static uint32_t take_moment(struct thermal_window *window, const struct due_row *list,
                            uint32_t count, struct arena *arena) {
    assert(count > 0);
    struct moment {
        struct thermal_sample *sample;
        struct thermal_gpu *gpu;
        uint32_t number;
        uint64_t before_ns;
    } * moments;
    uint64_t time_ns = ((struct thermal_sample *)list[0].row)->time_ns;
    uint32_t end = 0, taken = 0, same = 1;
    while (same < count && ((struct thermal_sample *)list[same].row)->time_ns == time_ns)
        same++;
    // Only for these: each node may be sampled at moments of its own.
    moments = arena_take(arena, same * sizeof *moments);
    for (; end < same; end++) {
        struct thermal_sample *sample = list[end].row;
        if (taken > 0 && moments[taken - 1].sample->gpu == sample->gpu) {
            join_samples(moments[taken - 1].sample, sample);
            window->waiting--;
            thermal_sample_free(window, list[end].number);
        } else {
            moments[taken++] =
                (struct moment){sample, thermal_gpu_at(window, sample->gpu), list[end].number, 0};
        }
    }
    for (uint32_t i = 0; i < taken; i++) {
        moments[i].before_ns = before_of(window, moments[i].gpu);
        enter_window(window, moments[i].number);
        moments[i].gpu->taken_ns = time_ns;
    }
    for (uint32_t i = 0; i < taken; i++) {
        judge(window, moments[i].gpu, moments[i].sample, moments[i].before_ns);
        compare_clock(window, moments[i].sample, arena);
    }
    return end;
}

static void take_until(struct thermal_window *window, uint64_t until_ns, struct arena *arena) {
    struct due_rows due = list_waiting(window, until_ns, arena);
    for (uint32_t at = 0; at < due.count;)
        at += take_moment(window, due.items + at, due.count - at, arena);
}

// Whether a sample of the window tells of the GPU's incident.
static bool is_told_of(const struct thermal_window *window, const struct thermal_gpu *gpu) {
    const struct thermal_incident *incident = thermal_incident_at(window, gpu->incident);
    uint64_t before_ns = 0;
    for (uint32_t at = gpu->first; at != TABLE_NO_ROW; at = thermal_sample_at(window, at)->next) {
        const struct thermal_sample *sample = thermal_sample_at(window, at);
        if (tells_of_incident(window, incident, sample, before_ns))
            return true;
        before_ns = sample->time_ns;
    }
    return false;
}

// Live, what nobody tells of any more does not stand for ever. Inputs that end leave it as it was
// when its own samples ended: that others went on says nothing of it.
static void give_up_silent(struct thermal_window *window, uint64_t now_ns) {
    struct thermal_gpu *gpu;
    for (uint32_t at = 0; (gpu = keyed_rows_next(&window->gpus, &at)) != NULL;) {
        if (gpu->taken_ns <= now_ns)
            drop_expired(window, gpu, now_ns);
        if (gpu->incident != TABLE_NO_ROW && !is_told_of(window, gpu))
            end_incident(window, gpu, THERMAL_UNKNOWN);
    }
}

void thermal_window_advance(struct thermal_window *window, uint64_t now_ns, struct arena *arena) {
    take_until(window, now_ns, arena);
    if (window->live)
        give_up_silent(window, now_ns);
}

void thermal_window_add(struct thermal_window *window, const struct gpu_sample *sample,
                        string_id job, struct arena *arena) {
    struct thermal_sample kept = {.time_ns = sample->time_ns, .state = SAMPLE_WAITS};
    if (sample->time_ns == 0 || !take_values(sample, &kept))
        return;
    if (window->waiting >= window->config->max_samples / 2)
        take_until(window, middle_of_waiting(window, arena), arena);
    struct thermal_gpu *gpu = thermal_gpu_find(window, sample, job, arena);
    if (gpu == NULL)
        return;
    if (sample->time_ns <= gpu->taken_ns) {
        window->late++;
        return;
    }
    if (table_live(&window->samples) >= window->config->max_samples) {
        window->evicted++;
        return;
    }
    kept.gpu = gpu->self;
    uint32_t row = table_add(&window->samples);
    *thermal_sample_at(window, row) = kept;
    window->waiting++;
}
