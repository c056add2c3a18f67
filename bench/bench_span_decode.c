// SPDX-License-Identifier: Apache-2.0
// How fast are lines of a span stream decoded?
//
//     bench_span_decode [FOLDER]      default: tests/golden/spans
//
// Decodes the lines of each FOLDER/*/events.jsonl with more than 500, again and again, in batches
// of one arena. CPU time of one thread, median of the rounds. Prints one JSON object.
#include "base/memory.h"
#include "receivers/decode/spans/spans.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BATCH = 1024, ROUNDS = 7, PASSES = 200, LINES_LEAST = 500, LINES_MAX = 1 << 16 };

static double cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct stream {
    char *text;
    size_t size;
    struct slice *lines;
    size_t count;
};

static struct stream stream_read(const char *path) {
    struct stream stream = {.lines = memory_take(LINES_MAX * sizeof(struct slice))};
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    stream.size = (size_t)ftell(file);
    stream.text = memory_take(stream.size);
    rewind(file);
    if (fread(stream.text, 1, stream.size, file) != stream.size) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    fclose(file);
    for (char *at = stream.text, *end = at + stream.size; at < end && stream.count < LINES_MAX;) {
        char *newline = memchr(at, '\n', (size_t)(end - at));
        char *stop = newline == NULL ? end : newline;
        stream.lines[stream.count++] = (struct slice){at, (size_t)(stop - at)};
        at = stop + 1;
    }
    return stream;
}

static uint64_t decode_all(const struct stream *stream, struct arena *arena) {
    uint64_t accepted = 0;
    for (size_t i = 0; i < stream->count; i++) {
        struct event event;
        struct decode_fault fault;
        if (i % BATCH == 0)
            arena_reset(arena);
        accepted +=
            decoder_spans.decode(NULL, stream->lines[i], arena, &event, &fault) == DECODE_OK;
    }
    return accepted;
}

static void measure(const char *path, bool first) {
    struct stream stream = stream_read(path);
    struct arena arena;
    double seconds[ROUNDS];
    arena_init(&arena, 64 << 10);
    uint64_t accepted = decode_all(&stream, &arena);
    uint64_t allocations = memory_figures().allocations;
    for (int round = 0; round < ROUNDS; round++) {
        double begun = cpu_seconds();
        for (int pass = 0; pass < PASSES; pass++)
            accepted += decode_all(&stream, &arena);
        seconds[round] = cpu_seconds() - begun;
    }
    allocations = memory_figures().allocations - allocations;
    qsort(seconds, ROUNDS, sizeof *seconds, compare_doubles);
    double lines = (double)stream.count * PASSES, time = seconds[ROUNDS / 2];
    printf(
        "%s\n  \"%s\": {\"bytes_per_event\": %.0f, \"ns_per_event\": %.1f, \"events_per_second\": "
        "%.0f, \"megabytes_per_second\": %.0f, \"accepted\": %.4f, \"allocations\": %llu}",
        first ? "" : ",", path, (double)stream.size / (double)stream.count, time / lines * 1e9,
        lines / time, (double)stream.size * PASSES / time / 1e6,
        (double)accepted / (lines * ROUNDS + (double)stream.count),
        (unsigned long long)allocations);
    arena_release(&arena);
    memory_give(stream.text);
    memory_give(stream.lines);
}

static size_t count_lines(const char *path) {
    struct stream stream = stream_read(path);
    memory_give(stream.text);
    memory_give(stream.lines);
    return stream.count;
}

int main(int argc, char **argv) {
    char pattern[4096];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*/events.jsonl",
             argc > 1 ? argv[1] : "tests/golden/spans");
    if (glob(pattern, 0, NULL, &found) != 0) {
        fprintf(stderr, "no %s\n", pattern);
        return EXIT_FAILURE;
    }
    bool first = true;
    printf("{");
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (count_lines(found.gl_pathv[i]) < LINES_LEAST)
            continue;
        measure(found.gl_pathv[i], first);
        first = false;
    }
    printf("\n}\n");
    globfree(&found);
    return EXIT_SUCCESS;
}
