// SPDX-License-Identifier: Apache-2.0
// More than there is room for, and what is left after a restart.
#include "tests/exporters/prometheus/board_fixture.h"

static void teardown(void) {
    fixture_end();
}

static void setup(void) {
    fixture_begin(2000);
}

#define OVERFLOW "{otel_metric_overflow=\"true\"} "

static uint32_t shown_without_overflow(const char *text) {
    uint32_t folded = 0;
    for (const char *at = text; (at = strstr(at, OVERFLOW)) != NULL; at++)
        folded++;
    return samples(text, "") - folded;
}

START_TEST(ten_thousand_ranks) {
    evaluate("train-7", 10000, START_NS);
    const char *text = page();
    // Three quarters of 2000, by five, and the job.
    ck_assert_uint_eq(board.rank_series_count, 1500);
    ck_assert_uint_eq(samples(text, "culprit_rank_samples_total"), 301);
    ck_assert_uint_le(shown_without_overflow(text), 2000);
    uint64_t sum = 0;
    for (uint64_t i = 300; i < 10000; i++)
        sum += 10 + i;
    char line[128];
    snprintf(line, sizeof line, "culprit_rank_samples_total" OVERFLOW "%llu",
             (unsigned long long)sum);
    ck_assert_line(text, line);
    // The rank that was silent longest of those folded, and the largest growth.
    ck_assert_line(text, "culprit_rank_last_event_timestamp_seconds" OVERFLOW "1763706300.25");
    ck_assert_line(text, "culprit_rank_memory_growth_bytes" OVERFLOW "9999000");
    ck_assert_uint_eq(board.overflow_count, (10000 - 300) * BOARD_RANK_SERIES);
    // Verdicts still find room.
    tell(a_verdict("nccl_hang:01", "train-7"));
    text = page();
    ck_assert_line(text,
                   "culprit_verdict_open{training_job=\"train-7\",pattern=\"nccl_hang\","
                   "kind=\"missing_rank\",severity=\"critical\",rank=\"3\"} 1");
    // What is folded is made anew each time.
    evaluate("train-7", 310, START_NS);
    ck_assert_line(page(), "culprit_rank_memory_growth_bytes" OVERFLOW "309000");
    evaluate("train-7", 300, START_NS);
    ck_assert_uint_eq(samples(page(), "culprit_rank_memory_growth_bytes" OVERFLOW), 0);
}
END_TEST

START_TEST(folded_ranks_of_several_jobs) {
    evaluate("a", 400, START_NS + 100 * SECOND);
    evaluate("b", 2, START_NS);
    const char *text = page();
    ck_assert_line(text, "culprit_rank_last_event_timestamp_seconds" OVERFLOW "1763706000.25");
    ck_assert_line(text, "culprit_rank_memory_growth_bytes" OVERFLOW "399000");
    now.monotonic_ns += 200 * SECOND;
    evaluate("b", 2, START_NS);
    now.monotonic_ns += 200 * SECOND; // a is over
    text = page();
    ck_assert_line(text, "culprit_rank_memory_growth_bytes" OVERFLOW "1000");
    // The next evaluation gives b's ranks series of their own.
    evaluate("b", 2, START_NS);
    text = page();
    ck_assert_uint_eq(samples(text, "culprit_rank_samples_total" OVERFLOW), 0);
    ck_assert_line(text, "culprit_rank_samples_total{training_job=\"b\",rank=\"1\"} 11");
}
END_TEST

static struct verdict numbered(uint32_t i) {
    static char names[4000][16];
    static struct entity entities[4000];
    char id[32];
    snprintf(id, sizeof id, "nccl_hang:%u", i);
    snprintf(names[i], sizeof names[i], "%u", i);
    entities[i] = (struct entity){"rank", slice_of(names[i]), ROLE_CULPRIT};
    struct verdict verdict = a_verdict(id, "train-7");
    verdict.entities = &entities[i];
    verdict.confidence = (int)(i % 100);
    verdict.start_ns = START_NS + i * SECOND;
    return verdict;
}

START_TEST(more_verdicts_than_room) {
    for (uint32_t i = 0; i < 1000; i++)
        tell(numbered(i));
    const char *text = page();
    // The counter and the histogram came first; then as many threes as fit.
    uint32_t fit = (2000 - 1 - BOARD_PATTERN_SERIES) / BOARD_OPEN_SERIES;
    ck_assert_uint_eq(samples(text, "culprit_verdict_open"), fit + 1);
    ck_assert_uint_le(shown_without_overflow(text), 2000);
    char line[128];
    snprintf(line, sizeof line, "culprit_verdict_open" OVERFLOW "%u", 1000 - fit);
    ck_assert_line(text, line);
    ck_assert_line(text, "culprit_verdict_confidence_ratio" OVERFLOW "0.99");
    snprintf(line, sizeof line, "culprit_verdict_first_event_timestamp_seconds" OVERFLOW "%u.25",
             1763706000 + fit);
    ck_assert_line(text, line);
    ck_assert_line(text,
                   "culprit_verdicts_total{training_job=\"train-7\",pattern=\"nccl_hang\","
                   "kind=\"missing_rank\",severity=\"critical\"} 1000");
    ck_assert_uint_eq(board.overflow_count, (1000 - fit) * BOARD_OPEN_SERIES);
    // One that has a series ends, and one that had none gets it.
    tell_state(numbered(0), VERDICT_RESOLVED);
    text = page();
    ck_assert_uint_eq(samples(text, "culprit_verdict_open"), fit + 1);
    snprintf(line, sizeof line, "culprit_verdict_open" OVERFLOW "%u", 1000 - fit - 1);
    ck_assert_line(text, line);
    // One that has none ends.
    tell_state(numbered(999), VERDICT_RESOLVED);
    snprintf(line, sizeof line, "culprit_verdict_open" OVERFLOW "%u", 1000 - fit - 2);
    ck_assert_line(page(), line);
    for (uint32_t i = 0; i < 1000; i++)
        tell_state(numbered(i), VERDICT_RESOLVED);
    ck_assert_uint_eq(samples(page(), "culprit_verdict_open"), 0);
    ck_assert_uint_eq(board.series_count, 1 + BOARD_PATTERN_SERIES);
}
END_TEST

START_TEST(counters_and_patterns_without_room) {
    board.max_series = 5;
    tell(a_verdict("nccl_hang:01", "train-7"));
    tell(a_verdict("nccl_hang:02", "train-8"));
    tell(a_verdict("nccl_hang:03", "train-9"));
    const char *text = page();
    ck_assert_uint_le(shown_without_overflow(text), 5 + BOARD_PATTERN_SERIES);
    ck_assert_line(text,
                   "culprit_verdicts_total{training_job=\"train-7\",pattern=\"nccl_hang\","
                   "kind=\"missing_rank\",severity=\"critical\"} 1");
    ck_assert_line(text,
                   "culprit_verdicts_total{training_job=\"train-8\",pattern=\"nccl_hang\","
                   "kind=\"missing_rank\",severity=\"critical\"} 1");
    ck_assert_line(text, "culprit_verdicts_total" OVERFLOW "1");
    ck_assert_line(text, "culprit_verdict_open" OVERFLOW "2");
    ck_assert_line(text, "culprit_verdict_latency_seconds_count" OVERFLOW "3");
}
END_TEST

START_TEST(too_many_to_remember) {
    char id[32];
    for (uint32_t i = 0; i < BOARD_OPEN_MAX + 5; i++) {
        snprintf(id, sizeof id, "nccl_hang:%u", i);
        tell(a_verdict(id, "train-7"));
    }
    ck_assert_uint_eq(keyed_rows_count(&board.open), BOARD_OPEN_MAX);
    tell_state(a_verdict(id, "train-7"), VERDICT_UPDATED);
    tell_state(a_verdict(id, "train-7"), VERDICT_RESOLVED);
    char line[200];
    snprintf(line, sizeof line,
             "culprit_verdicts_total{training_job=\"train-7\",pattern=\"nccl_hang\","
             "kind=\"missing_rank\",severity=\"critical\"} %u",
             BOARD_OPEN_MAX + 5);
    ck_assert_line(page(), line);
}
END_TEST

START_TEST(too_many_jobs) {
    board.max_series = 1000000;
    char name[32];
    for (uint32_t i = 0; i < BOARD_JOBS_MAX + 3; i++) {
        snprintf(name, sizeof name, "job-%u", i);
        evaluate(name, 1, START_NS);
    }
    tell(a_verdict("nccl_hang:01", name));
    const char *text = page();
    ck_assert_uint_eq(samples(text, "culprit_training_job_info"), BOARD_JOBS_MAX);
    ck_assert_uint_eq(board.overflow_count, 3 * (1 + BOARD_RANK_SERIES) + 1 + BOARD_OPEN_SERIES);
    ck_assert_line(text, "culprit_verdict_open" OVERFLOW "1");
    ck_assert_line(text, "culprit_verdicts_total" OVERFLOW "1");
    now.monotonic_ns += 300 * SECOND;
    evaluate("job-0", 1, START_NS);
    tell_state(a_verdict("nccl_hang:01", name), VERDICT_UPDATED);
    ck_assert_uint_eq(samples(page(), "culprit_verdict_open" OVERFLOW), 0);
    ck_assert_uint_eq(samples(page(), "culprit_verdict_open"), 1);
}
END_TEST

// -- restart -------------------------------------------------------------------------------------

struct saved_entry {
    struct table table; // numbers only
    char *bytes;
    size_t size;
};

static char *texts[100000]; // by string id before the restart

static void save_strings(const struct state_entry *entry, const char *row) {
    for (uint32_t i = 0; i < entry->string_count; i++) {
        string_id id;
        memcpy(&id, row + entry->strings[i], sizeof id);
        if (id != STRING_NONE && id != STRING_REFUSED && texts[id] == NULL)
            texts[id] = strdup(intern_slice(id).data);
    }
}

static void load_strings(const struct state_entry *entry, char *row) {
    for (uint32_t i = 0; i < entry->string_count; i++) {
        string_id id;
        memcpy(&id, row + entry->strings[i], sizeof id);
        if (id == STRING_NONE || id == STRING_REFUSED)
            continue;
        id = intern(slice_of(texts[id]));
        memcpy(row + entry->strings[i], &id, sizeof id);
    }
}

static struct saved_entry save(const struct state_entry *entry) {
    if (entry->table == NULL) {
        struct saved_entry saved = {.bytes = malloc(entry->size), .size = entry->size};
        memcpy(saved.bytes, entry->bytes, entry->size);
        return saved;
    }
    struct saved_entry saved = {.table = *entry->table};
    saved.bytes = malloc(entry->table->used * entry->table->row_size + 1);
    for (uint32_t page_at = 0; page_at < table_page_count(entry->table); page_at++) {
        size_t size;
        const void *bytes = table_page(entry->table, page_at, &size);
        memcpy(saved.bytes + saved.size, bytes, size);
        saved.size += size;
    }
    for (uint32_t row = 0; row < entry->table->used; row++)
        save_strings(entry, table_row(entry->table, row));
    return saved;
}

static void load(const struct state_entry *entry, const struct saved_entry *saved) {
    if (entry->table == NULL) {
        memcpy(entry->bytes, saved->bytes, saved->size);
        return;
    }
    table_load(entry->table, saved->table.used, saved->table.free_head, saved->table.free_count);
    size_t at = 0;
    for (uint32_t page_at = 0; page_at < table_page_count(entry->table); page_at++) {
        size_t size;
        void *bytes = table_page(entry->table, page_at, &size);
        memcpy(bytes, saved->bytes + at, size);
        at += size;
    }
    ck_assert(table_chain_is_whole(entry->table));
    for (uint32_t row = 0; row < entry->table->used; row++)
        load_strings(entry, table_row(entry->table, row));
}

// Into a board of another process, whose strings have other numbers and whose clock began anew.
static void restart(uint32_t max_series) {
    struct state_list list = {0};
    struct saved_entry saved[STATE_ENTRIES_MAX];
    state_rows_list(board_state_rows, BOARD_STATE_ROWS, &board, &list);
    for (uint32_t i = 0; i < list.count; i++)
        saved[i] = save(&list.entries[i]);
    board_release(&board);
    state_rows_release(board_state_rows, BOARD_STATE_ROWS, &board);
    memset(&board, 0, sizeof board);
    state_rows_init(board_state_rows, BOARD_STATE_ROWS, &board);
    intern_release();
    intern(SLICE("something else"));
    board_init(&board, max_series, 300 * SECOND, true);
    struct state_list fresh = {0};
    state_rows_list(board_state_rows, BOARD_STATE_ROWS, &board, &fresh);
    ck_assert_uint_eq(fresh.count, list.count);
    for (uint32_t i = 0; i < fresh.count; i++) {
        ck_assert_str_eq(fresh.entries[i].name, list.entries[i].name);
        load(&fresh.entries[i], &saved[i]);
        free(saved[i].bytes);
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        free(texts[i]);
        texts[i] = NULL;
    }
    now.monotonic_ns = 5 * SECOND;
    state_rows_restored(board_state_rows, BOARD_STATE_ROWS, &board);
    board_restored(&board, now.monotonic_ns);
}

static void fill(void) {
    evaluate("train-7", 20, START_NS);
    evaluate("train-8", 4, START_NS);
    for (uint32_t i = 0; i < 10; i++)
        tell(numbered(i));
    tell(a_verdict("nccl_hang:aa", "train-8"));
    for (uint32_t i = 0; i < 10; i += 3)
        tell_state(numbered(i), VERDICT_RESOLVED);
    forget("train-8"); // leaves freed rows
    evaluate("train-9", 2, START_NS);
}

START_TEST(a_restart_shows_the_same_page) {
    fill();
    char *before = strdup(page_in(EXPOSITION_OPENMETRICS));
    restart(2000);
    ck_assert_str_eq(page_in(EXPOSITION_OPENMETRICS), before);
    // And it goes on: none is counted twice, what ends goes.
    tell_state(numbered(1), VERDICT_UPDATED);
    evaluate("train-7", 20, START_NS);
    ck_assert_str_eq(page_in(EXPOSITION_OPENMETRICS), before);
    free(before);
    for (uint32_t i = 0; i < 10; i++)
        tell_state(numbered(i), VERDICT_RESOLVED);
    const char *text = page();
    ck_assert_uint_eq(samples(text, "culprit_verdict_open"), 0);
    ck_assert_line(text,
                   "culprit_verdicts_total{training_job=\"train-7\",pattern=\"nccl_hang\","
                   "kind=\"missing_rank\",severity=\"critical\"} 10");
    now.monotonic_ns += 300 * SECOND;
    evaluate("train-10", 1, START_NS);
    ck_assert_uint_eq(board.series_count, BOARD_PATTERN_SERIES + 1 + BOARD_RANK_SERIES);
}
END_TEST

START_TEST(a_restart_with_less_room) {
    fill();
    restart(30);
    const char *text = page();
    ck_assert_uint_le(shown_without_overflow(text), 30);
    // 6 verdicts were open, for 3 series each, and the counts were not lost.
    ck_assert_uint_eq(samples(text, "culprit_verdict_open{training_job"), 6);
    ck_assert_uint_gt(samples(text, "culprit_verdicts_total"), 0);
    evaluate("train-7", 20, START_NS);
    ck_assert_line(page(), "culprit_rank_memory_growth_bytes" OVERFLOW "19000");
}
END_TEST

int main(void) {
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, ten_thousand_ranks);
    tcase_add_test(all, folded_ranks_of_several_jobs);
    tcase_add_test(all, more_verdicts_than_room);
    tcase_add_test(all, counters_and_patterns_without_room);
    tcase_add_test(all, too_many_to_remember);
    tcase_add_test(all, too_many_jobs);
    tcase_add_test(all, a_restart_shows_the_same_page);
    tcase_add_test(all, a_restart_with_less_room);
    Suite *suite = suite_create("prometheus_bounds");
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
