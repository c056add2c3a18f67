// SPDX-License-Identifier: Apache-2.0
// Writes the telemetry of a made-up job to standard output, one record a line; or its span stream.
//
//   culprit_generate [--events N] [--ranks N] [--schema 3|4]     default: 1000000 64 3
//                    [--jobs N]                                  that share the ranks evenly
//   culprit_generate --spans N [--events N] [--ranks N]          a stream of so many spans; events
//                                                                are counted once these are there
#include "bench/made_lines.h"
#include "bench/made_spans.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct choice {
    uint64_t events;
    struct made_job job;
    uint32_t spans; // 0: telemetry
};

static bool take(struct choice *choice, const char *name, const char *text) {
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text == '\0' || *end != '\0')
        return false;
    if (strcmp(name, "--events") == 0)
        choice->events = value;
    else if (strcmp(name, "--ranks") == 0 && value >= 1 && value <= 1000000)
        choice->job.ranks = (uint32_t)value;
    else if (strcmp(name, "--jobs") == 0 && value >= 1 && value <= 100000)
        choice->job.jobs = (uint32_t)value;
    else if (strcmp(name, "--schema") == 0 && (value == 3 || value == 4))
        choice->job.schema_version = (int)value;
    else if (strcmp(name, "--spans") == 0 && value >= MADE_SPANS_MIN && value <= MADE_SPANS_MAX)
        choice->spans = (uint32_t)value;
    else
        return false;
    return true;
}

static bool write_line(const char *line, size_t size) {
    return fwrite(line, 1, size, stdout) == size;
}

static void write_telemetry(const struct choice *choice) {
    char line[MADE_LINE_MAX];
    for (uint64_t i = 0; i < choice->events; i++)
        if (!write_line(line, made_line(&choice->job, i, line)))
            return;
}

static void write_spans(const struct choice *choice) {
    char line[MADE_SPAN_LINE_MAX];
    struct made_spans job = made_spans_of(choice->job.ranks, choice->spans);
    uint64_t end = made_spans_first(&job) + choice->events;
    for (uint64_t i = 0; i < end; i++)
        if (!write_line(line, made_span_line(&job, i, line)))
            return;
}

int main(int argc, char **argv) {
    struct choice choice = {1000000, {64, 3, 0}, 0};
    bool good = argc % 2 == 1;
    for (int i = 1; good && i + 1 < argc; i += 2)
        good = take(&choice, argv[i], argv[i + 1]);
    good = good && choice.job.jobs <= choice.job.ranks;
    if (!good || (choice.spans > 0 && choice.job.ranks > MADE_SPAN_RANKS_MAX)) {
        fprintf(
            stderr,
            "usage: %s [--events N] [--ranks N] [--schema 3|4] [--jobs N]\n"
            "       %s --spans N [--events N] [--ranks N]   spans: %d to %d, at most %d ranks\n",
            argv[0], argv[0], MADE_SPANS_MIN, MADE_SPANS_MAX, MADE_SPAN_RANKS_MAX);
        return 64;
    }
    if (choice.spans > 0)
        write_spans(&choice);
    else
        write_telemetry(&choice);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("standard output could not be written");
        return 74;
    }
    return 0;
}
