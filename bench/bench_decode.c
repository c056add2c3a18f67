// SPDX-License-Identifier: Apache-2.0
// How fast does the stormlog decoder read, against jansson on the same lines?
//
//   bench_decode [EVENTS [FOLDER]]    default: 200000 tests/golden/real
//   bench_decode EVENTS levels        only the compact layout, at each level of base/simd.h
//
// Generates records of 64 ranks, step by step and rank by rank (23 keys, metadata of four, some 630
// bytes, one note in 256 with escapes), in three layouts: compact, with json.dumps' default
// separators, and with the keys of each record in another order. Both decoders pick the same 16
// fields of every line; their sums must agree. Times are CPU time, in turn, median of the rounds.
// FOLDER/*/rank*/segment-*.jsonl are read as the real lines. Prints one JSON object.
#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/simd.h"
#include "pipeline/model/telemetry_event.h"
#include "receivers/decode/telemetry/telemetry.h"

#include <glob.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { RANKS = 64, KEYS = 23, BATCH = 1024, ROUNDS = 5, JANSSON_ROUNDS = 3 };

struct lines {
    struct buffer text;
    struct slice *items; // set once the text stands still
    size_t count;
    size_t capacity;
};

static uint64_t random_state = 42;

static uint64_t random_below(uint64_t bound) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % bound;
}

static double cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

enum layout { LAYOUT_COMPACT, LAYOUT_SPACED, LAYOUT_SHUFFLED };

static void format_members(char members[KEYS][256], uint64_t event, const char *colon,
                           const char *comma) {
    static const char *const phases[] = {"forward", "backward", "optimizer", "data_loading"};
    uint64_t rank = event % RANKS, step = event / RANKS;
    uint64_t time = UINT64_C(1760000000000000000) + step * 100000000 + rank * 7919 * 1000 +
                    random_below(2000000);
    uint64_t used = (UINT64_C(20) << 30) + rank * 104857600 + random_below(1 << 26);
    const char *note = event % 256 == 0 ? "two\\nlines of \\\"text\\\" \\u00e9" : "ok";
    int at = 0;
#define MEMBER(key, format, ...)                                                                   \
    snprintf(members[at++], sizeof members[0], "\"" key "\"%s" format, colon, __VA_ARGS__)
    MEMBER("schema_version", "%d", 3);
    MEMBER("session_id", "\"9e0f%012llx\"", (unsigned long long)rank);
    MEMBER("timestamp_ns", "%llu", (unsigned long long)time);
    MEMBER("event_type", "\"%s\"", "sample");
    MEMBER("collector", "\"%s\"", "stormlog.cuda_tracker");
    MEMBER("sampling_interval_ms", "%d", 100);
    MEMBER("pid", "%llu", (unsigned long long)(40000 + rank));
    MEMBER("host", "\"node-%02llu\"", (unsigned long long)(rank / 8));
    MEMBER("job_id", "\"%s\"", event % 10 == 9 ? "job-2" : "job-1");
    MEMBER("rank", "%llu", (unsigned long long)rank);
    MEMBER("local_rank", "%llu", (unsigned long long)(rank % 8));
    MEMBER("world_size", "%d", RANKS);
    MEMBER("device_id", "%llu", (unsigned long long)(rank % 8));
    MEMBER("allocator_allocated_bytes", "%llu", (unsigned long long)(used - used / 10));
    MEMBER("allocator_reserved_bytes", "%llu", (unsigned long long)(used - used / 20));
    MEMBER("allocator_active_bytes", "%llu", (unsigned long long)(used - used / 8));
    MEMBER("allocator_inactive_bytes", "%s", "null");
    MEMBER("allocator_change_bytes", "%lld", (long long)random_below(1 << 21) - (1 << 20));
    MEMBER("device_used_bytes", "%llu", (unsigned long long)used);
    MEMBER("device_free_bytes", "%llu", (unsigned long long)((UINT64_C(80) << 30) - used));
    MEMBER("device_total_bytes", "%llu", (unsigned long long)(UINT64_C(80) << 30));
    MEMBER("context", "\"%s\"", "sampled");
    MEMBER("metadata",
           "{\"backend\"%s\"cuda\"%s\"phase\"%s\"%s\"%s\"step\"%s%llu%s\"note\"%s\"%s\"}", colon,
           comma, colon, phases[step % 4], comma, colon, (unsigned long long)step, comma, colon,
           note);
#undef MEMBER
}

static void lines_generate(struct lines *lines, size_t count, enum layout layout) {
    const char *colon = layout == LAYOUT_SPACED ? ": " : ":";
    const char *comma = layout == LAYOUT_SPACED ? ", " : ",";
    char members[KEYS][256];
    random_state = 42;
    for (uint64_t event = 0; event < count; event++) {
        unsigned order[KEYS];
        format_members(members, event, colon, comma);
        for (unsigned i = 0; i < KEYS; i++)
            order[i] = i;
        for (unsigned i = KEYS - 1; layout == LAYOUT_SHUFFLED && i > 0; i--) {
            unsigned other = (unsigned)random_below(i + 1), kept = order[i];
            order[i] = order[other];
            order[other] = kept;
        }
        buffer_append_char(&lines->text, '{');
        for (unsigned i = 0; i < KEYS; i++) {
            buffer_append_text(&lines->text, i == 0 ? "" : comma);
            buffer_append_text(&lines->text, members[order[i]]);
        }
        buffer_append_text(&lines->text, "}\n");
    }
}

static void lines_read(struct lines *lines, const char *folder, size_t min_size) {
    char pattern[4096];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*/rank*/segment-*.jsonl", folder);
    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        FILE *file = fopen(found.gl_pathv[i], "r");
        char *line = NULL;
        size_t capacity = 0;
        for (ssize_t size; file != NULL && (size = getline(&line, &capacity, file)) > 0;) {
            if (line[size - 1] == '\n') // a torn last line has none
                buffer_append(&lines->text, (struct slice){line, (size_t)size});
        }
        free(line);
        if (file != NULL)
            fclose(file);
    }
    globfree(&found);
    size_t once = lines->text.size;
    while (once > 0 && lines->text.size < min_size) {
        char *copy = memory_copy_text(lines->text.data, once);
        buffer_append(&lines->text, (struct slice){copy, once});
        memory_give(copy);
    }
}

static void lines_index(struct lines *lines) {
    const char *at = lines->text.data, *end = at + lines->text.size;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (lines->count == lines->capacity) {
            lines->capacity = lines->capacity == 0 ? 1024 : 2 * lines->capacity;
            lines->items = memory_resize(lines->items, lines->capacity * sizeof *lines->items);
        }
        lines->items[lines->count++] = (struct slice){at, (size_t)(newline - at)};
        at = newline + 1;
    }
}

static uint64_t mix(uint64_t sum, uint64_t value) {
    return (sum ^ value) * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t mix_counters(uint64_t sum, const int64_t *counters) {
    for (unsigned i = 0; i < 8; i++)
        sum = mix(sum, (uint64_t)counters[i]);
    return sum;
}

struct result {
    double seconds;
    uint64_t sum;
    uint64_t refused;
    uint64_t allocations;
};

static struct result run_culprit(const struct lines *lines) {
    struct result result = {0};
    struct arena arena;
    struct decode_fault fault;
    void *state = memory_zero(1, decoder_stormlog.state_size);
    arena_init(&arena, 1 << 20);
    uint64_t allocations = 0;
    double start = cpu_seconds();
    for (size_t i = 0; i < lines->count; i++) {
        if (i % BATCH == 0)
            arena_reset(&arena);
        if (i == 2 * BATCH) // warm from here on
            allocations = memory_figures().allocations;
        struct event event;
        if (decoder_stormlog.decode(state, lines->items[i], &arena, &event, &fault) != DECODE_OK) {
            result.refused++;
            continue;
        }
        const struct telemetry *t = event.telemetry;
        int64_t counters[] = {t->allocated_bytes,   t->reserved_bytes,    t->active_bytes,
                              t->inactive_bytes,    t->change_bytes,      t->device_used_bytes,
                              t->device_free_bytes, t->device_total_bytes};
        result.sum = mix(result.sum, event.time_ns);
        result.sum = mix(result.sum, (uint64_t)t->rank);
        result.sum = mix(result.sum, (uint64_t)t->world_size);
        result.sum = mix(result.sum, (uint64_t)t->pid);
        result.sum = mix(result.sum, t->host);
        result.sum = mix(result.sum, t->job);
        result.sum = mix(result.sum, t->session);
        result.sum = mix(result.sum, t->event_type);
        result.sum = mix_counters(result.sum, counters);
    }
    result.seconds = cpu_seconds() - start;
    result.allocations = memory_figures().allocations - allocations;
    arena_release(&arena);
    memory_give(state);
    return result;
}

static uint64_t string_number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    if (!json_is_string(value))
        return STRING_NONE;
    return intern((struct slice){json_string_value(value), json_string_length(value)});
}

static struct result run_jansson(const struct lines *lines) {
    static const char *const counter_keys[] = {
        "allocator_allocated_bytes", "allocator_reserved_bytes", "allocator_active_bytes",
        "allocator_inactive_bytes",  "allocator_change_bytes",   "device_used_bytes",
        "device_free_bytes",         "device_total_bytes"};
    static const char *const integer_keys[] = {"timestamp_ns", "rank", "world_size", "pid"};
    static const char *const string_keys[] = {"host", "job_id", "session_id", "event_type"};
    struct result result = {0};
    double start = cpu_seconds();
    for (size_t i = 0; i < lines->count; i++) {
        json_t *object = json_loadb(lines->items[i].data, lines->items[i].size, 0, NULL);
        if (object == NULL) {
            result.refused++;
            continue;
        }
        int64_t counters[8];
        for (unsigned k = 0; k < 4; k++)
            result.sum = mix(
                result.sum, (uint64_t)json_integer_value(json_object_get(object, integer_keys[k])));
        for (unsigned k = 0; k < 4; k++)
            result.sum = mix(result.sum, string_number(object, string_keys[k]));
        for (unsigned k = 0; k < 8; k++)
            counters[k] = json_integer_value(json_object_get(object, counter_keys[k]));
        result.sum = mix_counters(result.sum, counters);
        json_decref(object);
    }
    result.seconds = cpu_seconds() - start;
    return result;
}

static int compare_doubles(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double *values, size_t count) {
    qsort(values, count, sizeof *values, compare_doubles);
    return values[count / 2];
}

// Seconds for the culprit decoder, and for jansson when asked; dies when something is refused or
// the sums differ.
struct measured {
    double culprit;
    double jansson;
    double allocations_per_event;
};

static struct measured measure(const struct lines *lines, bool with_jansson) {
    double culprit[ROUNDS], jansson[JANSSON_ROUNDS];
    struct measured measured = {0};
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct result ours = run_culprit(lines), theirs = ours;
        culprit[round] = ours.seconds;
        measured.allocations_per_event = (double)ours.allocations / (double)lines->count;
        if (with_jansson && round < JANSSON_ROUNDS) {
            theirs = run_jansson(lines);
            jansson[round] = theirs.seconds;
        }
        if (ours.refused > 0 || theirs.refused > 0 || ours.sum != theirs.sum) {
            fprintf(stderr, "bench_decode: the decoders disagree (%llu and %llu refused)\n",
                    (unsigned long long)ours.refused, (unsigned long long)theirs.refused);
            exit(EXIT_FAILURE);
        }
    }
    measured.culprit = median(culprit, ROUNDS);
    if (with_jansson)
        measured.jansson = median(jansson, JANSSON_ROUNDS);
    return measured;
}

static double megabytes_a_second(const struct lines *lines, double seconds) {
    return seconds > 0 ? (double)lines->text.size / seconds / 1e6 : 0;
}

static void lines_init(struct lines *lines) {
    *lines = (struct lines){.count = 0};
    buffer_init(&lines->text, (size_t)4 << 30);
}

static void lines_release(struct lines *lines) {
    buffer_release(&lines->text);
    memory_give(lines->items);
}

// The compact layout at each level that this processor has.
static int compare_levels(size_t events) {
    struct lines lines;
    lines_init(&lines);
    lines_generate(&lines, events, LAYOUT_COMPACT);
    if (lines.text.failed)
        return EXIT_FAILURE;
    lines_index(&lines);
    printf("{\"events\":%zu", events);
    for (int level = 0; level < SIMD_LEVEL_COUNT; level++) {
        simd_limit((enum simd_level)level);
        if (simd_level() != (enum simd_level)level)
            break;
        printf(",\"%s\":%.1f", simd_level_name((enum simd_level)level),
               measure(&lines, false).culprit * 1e9 / (double)events);
    }
    printf("}\n");
    lines_release(&lines);
    intern_release();
    return EXIT_SUCCESS;
}

int main(int argc, char **argv) {
    size_t events = argc > 1 ? strtoull(argv[1], NULL, 10) : 200000;
    const char *folder = argc > 2 ? argv[2] : "tests/golden/real";
    if (strcmp(folder, "levels") == 0)
        return compare_levels(events);
    enum { VARIANTS = 4 };
    double speed[VARIANTS];
    struct measured compact = {0};
    size_t bytes = 0;
    for (unsigned variant = 0; variant < VARIANTS; variant++) {
        struct lines lines;
        lines_init(&lines);
        if (variant < VARIANTS - 1)
            lines_generate(&lines, events, (enum layout)variant);
        else
            lines_read(&lines, folder, events * 600);
        if (lines.text.failed)
            return EXIT_FAILURE;
        lines_index(&lines);
        struct measured measured = measure(&lines, variant == 0);
        speed[variant] = megabytes_a_second(&lines, measured.culprit);
        if (variant == 0) {
            compact = measured;
            bytes = lines.text.size;
        }
        lines_release(&lines);
    }
    printf(
        "{\"events\":%zu,\"bytes\":%zu,\"culprit_mb_s\":%.0f,\"culprit_ns_per_event\":%.1f,"
        "\"jansson_mb_s\":%.1f,\"ratio\":%.1f,\"shuffled_mb_s\":%.0f,\"spaced_mb_s\":%.0f,"
        "\"real_mb_s\":%.0f,\"allocations_per_event\":%.6f}\n",
        events, bytes, speed[LAYOUT_COMPACT], compact.culprit * 1e9 / (double)events,
        (double)bytes / compact.jansson / 1e6, compact.jansson / compact.culprit,
        speed[LAYOUT_SHUFFLED], speed[LAYOUT_SPACED], speed[VARIANTS - 1],
        compact.allocations_per_event);
    intern_release();
    return EXIT_SUCCESS;
}
