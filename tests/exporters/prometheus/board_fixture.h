// SPDX-License-Identifier: Apache-2.0
// A board filled by hand: verdicts, evaluations without stages, and the page it shows, checked each
// time for what a scraper would refuse.
#pragma once

#include "base/memory.h"
#include "exporters/prometheus/board.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIXTURE_RANKS_MAX = 12000 };

static const uint64_t SECOND = UINT64_C(1000000000);
static const uint64_t START_NS = UINT64_C(1763706000250000000);

static struct board board;
static struct arena arena;
static struct buffer page_buffer;
static struct board_moment now;
static struct entity culprit = {"rank", {"3", 1}, ROLE_CULPRIT};

static inline void fixture_begin(uint32_t max_series) {
    buffer_init(&page_buffer, 64 << 20);
    arena_init(&arena, 1 << 16);
    now = (struct board_moment){.monotonic_ns = 1000 * SECOND, .unix_ns = START_NS + 2 * SECOND};
    memset(&board, 0, sizeof board);
    state_rows_init(board_state_rows, BOARD_STATE_ROWS, &board);
    board_init(&board, max_series, 300 * SECOND, true);
}

static inline void fixture_end(void) {
    board_release(&board);
    state_rows_release(board_state_rows, BOARD_STATE_ROWS, &board);
    buffer_release(&page_buffer);
    arena_release(&arena);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static inline struct verdict a_verdict(const char *id, const char *job) {
    struct verdict verdict = {.pattern = "nccl_hang",
                              .kind = "missing_rank",
                              .job = intern(slice_of(job)),
                              .state = VERDICT_OPEN,
                              .severity = SEVERITY_CRITICAL,
                              .confidence = 93,
                              .start_ns = START_NS,
                              .end_ns = START_NS + SECOND,
                              .entities = &culprit,
                              .entity_count = 1};
    snprintf(verdict.id, sizeof verdict.id, "%s", id);
    return verdict;
}

static inline void tell(struct verdict verdict) {
    struct batch batch = {
        .arena = &arena, .evaluate = true, .verdicts = {.items = &verdict, .count = 1}};
    board_update(&board, &batch, now);
}

static inline void tell_state(struct verdict verdict, enum verdict_state state) {
    verdict.state = state;
    tell(verdict);
}

// An evaluation of a job with ranks 0 to count - 1, none of which has samples that are still held.
static inline void evaluate(const char *job, uint32_t count, uint64_t last_ns) {
    static struct rank_series series[FIXTURE_RANKS_MAX];
    static struct rank_view views[FIXTURE_RANKS_MAX];
    static struct rank_spike spikes[FIXTURE_RANKS_MAX];
    struct series_store store = {0};
    for (uint32_t i = 0; i < count; i++) {
        series[i] = (struct rank_series){.rank = (int32_t)i};
        views[i] = (struct rank_view){
            .series = &series[i], .sample_count = 10 + i, .last_ns = last_ns + i * SECOND};
        spikes[i] = (struct rank_spike){.low_growth_bytes = 1000 * (int64_t)i};
    }
    struct evaluation evaluation = {.store = &store,
                                    .job = intern(slice_of(job)),
                                    .rank_count = count,
                                    .ranks = views,
                                    .spikes = spikes,
                                    .generation = 2,
                                    .world_size = 8};
    struct batch batch = {
        .arena = &arena, .evaluate = true, .evaluations = &evaluation, .evaluation_count = 1};
    board_update(&board, &batch, now);
}

static inline void forget(const char *job) {
    struct forgotten_job gone = {.job = intern(slice_of(job))};
    struct forgotten forgotten = {.jobs = &gone, .job_count = 1};
    struct batch batch = {.arena = &arena, .evaluate = true, .forgotten = &forgotten};
    board_update(&board, &batch, now);
}

static inline int compare_lines(const void *left, const void *right) {
    return strcmp(*(char *const *)left, *(char *const *)right);
}

// No series twice, no family twice, none without its TYPE.
static inline void check_page(const char *text) {
    char *copy = strdup(text);
    char **lines = calloc(strlen(text) + 1, sizeof *lines);
    size_t count = 0;
    char type[256] = "";
    char *rest = copy;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        if (strncmp(line, "# TYPE ", 7) == 0)
            snprintf(type, sizeof type, "%.*s", (int)strcspn(line + 7, " "), line + 7);
        else if (*line != '#' && *line != '\0')
            ck_assert_msg(strncmp(line, type, strlen(type)) == 0, "%s is not of %s", line, type);
        if (*line == '\0' || strncmp(line, "# HELP", 6) == 0)
            continue;
        char *exemplar = strstr(line, " # {");
        if (exemplar != NULL)
            *exemplar = '\0';
        if (strrchr(line, ' ') != NULL)
            *strrchr(line, ' ') = '\0';
        lines[count++] = line;
    }
    qsort(lines, count, sizeof *lines, compare_lines);
    for (size_t i = 1; i < count; i++)
        ck_assert_msg(strcmp(lines[i - 1], lines[i]) != 0, "twice: %s", lines[i]);
    free(lines);
    free(copy);
}

static inline const char *page_in(enum exposition_format format) {
    struct exposition exposition;
    buffer_reset(&page_buffer);
    exposition_begin(&exposition, &page_buffer, format);
    board_expose(&board, &exposition, now.monotonic_ns);
    exposition_end(&exposition);
    ck_assert(!page_buffer.failed);
    buffer_append_char(&page_buffer, '\0');
    check_page(page_buffer.data);
    return page_buffer.data;
}

static inline const char *page(void) {
    return page_in(EXPOSITION_TEXT);
}

static inline bool has_line(const char *text, const char *line) {
    size_t size = strlen(line);
    for (const char *at = text; (at = strstr(at, line)) != NULL; at++)
        if ((at == text || at[-1] == '\n') && at[size] == '\n')
            return true;
    return false;
}

#define ck_assert_line(text, line)                                                                 \
    ck_assert_msg(has_line((text), (line)), "missing: %s\nin:\n%.2500s", (line), (text))

// How many samples the page holds of series that begin so; "" all.
static inline uint32_t samples(const char *text, const char *start) {
    uint32_t count = 0;
    for (const char *at = text; at != NULL && *at != '\0';) {
        count += *at != '#' && strncmp(at, start, strlen(start)) == 0;
        at = strchr(at, '\n');
        at = at == NULL ? NULL : at + 1;
    }
    return count;
}
