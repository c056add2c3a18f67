// SPDX-License-Identifier: Apache-2.0
// Writes the telemetry of a made-up job to standard output, one record a line.
//
//   culprit_generate [--events N] [--ranks N] [--schema 3|4]     default: 1000000 64 3
#include "bench/made_lines.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct choice {
    uint64_t events;
    struct made_job job;
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
    else if (strcmp(name, "--schema") == 0 && (value == 3 || value == 4))
        choice->job.schema_version = (int)value;
    else
        return false;
    return true;
}

int main(int argc, char **argv) {
    struct choice choice = {1000000, {64, 3}};
    bool good = argc % 2 == 1;
    for (int i = 1; good && i + 1 < argc; i += 2)
        good = take(&choice, argv[i], argv[i + 1]);
    if (!good) {
        fprintf(stderr, "usage: %s [--events N] [--ranks N] [--schema 3|4]\n", argv[0]);
        return 64;
    }
    char line[MADE_LINE_MAX];
    for (uint64_t i = 0; i < choice.events; i++) {
        size_t size = made_line(&choice.job, i, line);
        if (fwrite(line, 1, size, stdout) != size)
            break;
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("standard output could not be written");
        return 74;
    }
    return 0;
}
