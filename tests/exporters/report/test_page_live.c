// SPDX-License-Identifier: Apache-2.0
// A page in two steps: nothing is missing of what page_encode would show, and memory is bounded.
#include "base/memory.h"
#include "exporters/report/page/capture.h"
#include "tests/exporters/report/page_fixture.h"

static struct page_follower *follower;
static struct page_mirror *mirror;
static struct page_log page_log;
static struct page_capture capture;
static struct page_notes *notes, *shown;
static struct kept_verdicts kept;

static void setup(void) {
    page_setup();
    follower = page_follower_new();
    mirror = page_mirror_new();
    page_log = (struct page_log){0};
    page_capture_init(&capture);
    notes = page_notes_new();
    shown = page_notes_new();
    static const struct state_row rows[] = {{.name = "kept", .part = &kept_verdicts_part}};
    kept = (struct kept_verdicts){0};
    state_rows_init(rows, 1, &kept);
    sample.evaluation.last = false;
}

static void teardown(void) {
    page_follower_release(follower);
    page_mirror_release(mirror);
    page_log_release(&page_log);
    page_capture_release(&capture);
    page_notes_release(notes);
    page_notes_release(shown);
    table_release(&kept.rows);
    table_release(&kept.chunks);
    page_teardown();
}

static struct batch live_batch(void) {
    struct batch live = sample_batch(&sample);
    live.last = false;
    live.as_of_ns = sample.evaluation.as_of_ns;
    return live;
}

static bool follow(void) {
    struct batch live = live_batch();
    return page_follow(follower, &live, &page_log);
}

// The page as two steps make it, with a terminating zero.
static const char *page_of_capture(void) {
    struct batch live = live_batch();
    struct page_notes_versions known = {0};
    page_capture_take(&capture, follower, &live, &kept, notes, &known);
    page_mirror_fold(mirror, &page_log);
    // What the capture was made of is gone.
    struct sample_evaluation was = sample;
    memset(&sample, 0x5a, sizeof sample);
    buffer_reset(&page_out);
    struct page_input shown_input;
    page_capture_open(&capture, mirror, shown, &input, &shown_input);
    page_encode(&shown_input, &page_out);
    page_capture_close(&capture);
    buffer_append_char(&page_out, '\0');
    sample = was;
    return page_out.data;
}

// The page as one step makes it, of the same batch.
static char *page_at_once(void) {
    buffer_reset(&page_out);
    struct batch live = live_batch();
    uint32_t count;
    struct page_input whole = input;
    whole.batch = &live;
    whole.verdicts = kept_verdicts_all(&kept, &sample.arena, &count);
    whole.verdict_count = count;
    whole.notes = notes;
    page_encode(&whole, &page_out);
    buffer_append_char(&page_out, '\0');
    return strdup(page_out.data);
}

static void notes_fill(void) {
    static struct telemetry record = {.rank = 2, .device_total_bytes = 4096 * MIB};
    record.event_type = intern(SLICE("warning"));
    record.context = SLICE("so it was");
    struct event event = {.time_ns = START + 3000 * MS,
                          .job = sample.evaluation.job,
                          .node = intern(SLICE("node-b")),
                          .rank = 2,
                          .kind = EVENT_TELEMETRY,
                          .telemetry = &record};
    struct batch stream = {.events = &event, .event_count = 1, .arena = &sample.arena};
    page_notes_add(notes, &stream);
}

START_TEST(with_few_samples_the_page_is_the_same) {
    leak_make(4, 57, SLICE("node-b"));
    sample_note(&sample, SLICE("a note"));
    notes_fill();
    struct verdict verdict = verdict_make("node-b lost a GPU", SEVERITY_ERROR);
    verdict.pattern = "node_fault";
    struct evidence evidence[] = {
        {SLICE("u1"), SLICE("it ended"), START, true, EVIDENCE_CONTEXT, false},
        {SLICE("u2"), SLICE("so it is said"), 0, false, EVIDENCE_EFFECT, true}};
    verdict.evidence = evidence, verdict.evidence_count = 2;
    kept_verdicts_put(&kept, &verdict);
    ck_assert(follow());
    char *wanted = page_at_once();
    CONTAINS(wanted, "node-b lost a GPU");
    CONTAINS(wanted, "<span class=\"tag\">context</span>");
    CONTAINS(wanted, "<span class=\"tag\">effect, again</span>  so it is said");
    CONTAINS(wanted, "so it was");
    ck_assert_str_eq(page_of_capture(), wanted);
    markup_check(page_out.data);
    free(wanted);
    // And again after more of it, piece by piece.
    for (int step = 57; step < 90; step++) {
        for (uint32_t rank = 0; rank < 4; rank++)
            sample_add(&sample, rank, START + (uint64_t)step * 100 * MS,
                       (700 + step % 13 * (int)rank) * MIB);
        ck_assert(follow());
    }
    wanted = page_at_once();
    ck_assert_str_eq(page_of_capture(), wanted);
    free(wanted);
}
END_TEST

START_TEST(samples_behind_the_evaluation_wait_for_theirs) {
    ranks_make(2, 50, -1, -1, SLICE("a"));
    sample.evaluation.as_of_ns = START + 20 * 100 * MS;
    ck_assert(follow());
    page_mirror_fold(mirror, &page_log);
    ck_assert_uint_eq(page_mirror_count(mirror, 0), 21);
    sample.evaluation.as_of_ns = UINT64_MAX;
    ck_assert(follow());
    page_mirror_fold(mirror, &page_log);
    ck_assert_uint_eq(page_mirror_count(mirror, 0), 50);
}
END_TEST

// Nothing is lost when the log is full: it is read later.
START_TEST(a_full_log_is_read_on_later) {
    leak_make(4, 57, SLICE("node-b"));
    // Samples of a rank that nobody shows fill it but for a hundred entries.
    uint32_t fill = PAGE_LOG_MAX - 100;
    union page_log_entry *entries = page_log_add(&page_log, fill);
    for (uint32_t i = 0; i < fill; i++)
        entries[i].sample.time_ns = i;
    entries[0].head.row = 77;
    entries[0].head.kind = PAGE_LOG_SAMPLES;
    entries[0].head.value = fill - 1;
    ck_assert(!follow());
    ck_assert_uint_le(page_log.count, PAGE_LOG_MAX);
    page_mirror_fold(mirror, &page_log);
    ck_assert_uint_eq(page_log.count, 0);
    ck_assert_uint_le(page_mirror_count(mirror, 77), PAGE_STRETCHES_MAX);
    ck_assert(follow());
    char *wanted = page_at_once();
    ck_assert_str_eq(page_of_capture(), wanted);
    free(wanted);
}
END_TEST

START_TEST(a_mirror_is_bounded_and_keeps_every_peak) {
    ranks_make(2, 2, -1, -1, SLICE("a"));
    uint64_t before = memory_figures().live_bytes;
    for (int step = 2; step < 100000; step++) {
        int64_t used = step == 54321 ? 9999 * MIB : step == 65432 ? MIB : 700 * MIB;
        page_log.count = 0;
        page_log_add(&page_log, 2);
        page_log.entries[0].head.row = 0;
        page_log.entries[0].head.kind = PAGE_LOG_SAMPLES;
        page_log.entries[0].head.value = 1;
        page_log.entries[1].sample.time_ns = START + (uint64_t)step * 100 * MS;
        page_log.entries[1].sample.used_bytes = used;
        page_mirror_fold(mirror, &page_log);
        ck_assert_uint_le(page_mirror_count(mirror, 0), PAGE_STRETCHES_MAX);
    }
    ck_assert_uint_lt(memory_figures().live_bytes - before, 64 << 10);
    ck_assert_uint_ge(page_mirror_count(mirror, 0), PAGE_STRETCHES_MAX / 4);
    struct series_store store = {0};
    struct rank_series series = {0};
    table_init(&store.chunks, "chunks", sizeof(struct sample_chunk), 64);
    page_mirror_read(mirror, 0, 0, &store, &series);
    struct series_cursor cursor = series_begin(&series);
    int64_t least = INT64_MAX, most = 0;
    uint64_t newest_ns = 0, apart_ns = 0;
    for (const struct sample *row;
         (row = series_next(&store, &series, &cursor, UINT64_MAX)) != NULL;) {
        ck_assert_uint_gt(row->time_ns, newest_ns);
        if (newest_ns != 0 && row->time_ns - newest_ns > apart_ns)
            apart_ns = row->time_ns - newest_ns;
        newest_ns = row->time_ns;
        least = row->used_bytes < least ? row->used_bytes : least;
        most = row->used_bytes > most ? row->used_bytes : most;
    }
    ck_assert_int_eq(least, MIB);
    ck_assert_int_eq(most, 9999 * MIB);
    ck_assert_uint_eq(newest_ns, START + UINT64_C(99999) * 100 * MS);
    ck_assert_uint_le(apart_ns, 2 * page_mirror_stretch_ns(mirror));
    memory_give(series.chunks);
    table_release(&store.chunks);
}
END_TEST

START_TEST(what_expired_is_not_shown) {
    ranks_make(1, 300, -1, -1, SLICE("a"));
    ck_assert(follow());
    page_mirror_fold(mirror, &page_log);
    // The first ten chunks are given back.
    struct rank_series *series = &sample.series[0];
    series->chunks_expired = 10;
    series->chunk_count -= 10;
    memmove(series->chunks, series->chunks + 10, series->chunk_count * sizeof *series->chunks);
    ck_assert(follow());
    page_mirror_fold(mirror, &page_log);
    struct series_store store = {0};
    struct rank_series shown_series = {0};
    table_init(&store.chunks, "chunks", sizeof(struct sample_chunk), 64);
    page_mirror_read(mirror, 0, 0, &store, &shown_series);
    struct series_cursor cursor = series_begin(&shown_series);
    const struct sample *first = series_next(&store, &shown_series, &cursor, UINT64_MAX);
    ck_assert_ptr_nonnull(first);
    ck_assert_uint_eq(first->time_ns, START + 210 * 100 * MS);
    memory_give(shown_series.chunks);
    table_release(&store.chunks);
}
END_TEST

// The number of a rank that is forgotten is given to another.
START_TEST(a_forgotten_rank_leaves_nothing_behind) {
    ranks_make(2, 50, -1, -1, SLICE("a"));
    ck_assert(follow());
    const uint32_t slots[] = {0};
    struct forgotten forgotten = {.slots = slots, .slot_count = 1};
    struct batch stream = {.arena = &sample.arena, .forgotten = &forgotten};
    ck_assert(page_follow(follower, &stream, &page_log));
    page_mirror_fold(mirror, &page_log);
    ck_assert_uint_eq(page_mirror_count(mirror, 0), 0);
    ck_assert_uint_eq(page_mirror_count(mirror, 1), 50);
    sample.evaluation.as_of_ns = START + 4 * 100 * MS;
    ck_assert(follow());
    page_mirror_fold(mirror, &page_log);
    ck_assert_uint_eq(page_mirror_count(mirror, 0), 5);
}
END_TEST

START_TEST(what_came_late_is_read_with_all_else) {
    ranks_make(2, 50, -1, -1, SLICE("a"));
    ck_assert(follow());
    page_mirror_fold(mirror, &page_log);
    // A sample in between, long evaluated.
    struct sample_chunk *chunk = table_row(&sample.store.chunks, sample.series[1].chunks[0]);
    chunk->rows[5].used_bytes = 5000 * MIB;
    sample.series[1].revision++;
    ck_assert(follow());
    ck_assert_uint_gt(page_log.count, 50);
    page_mirror_fold(mirror, &page_log);
    char *wanted = page_at_once();
    CONTAINS(wanted, "4.88 GiB");
    ck_assert_str_eq(page_of_capture(), wanted);
    free(wanted);
    uint32_t before = page_log.count;
    ck_assert(follow());
    ck_assert_uint_eq(page_log.count, before);
}
END_TEST

START_TEST(nothing_is_allocated_once_all_are_known) {
    ranks_make(64, 40, -1, -1, SLICE("a"));
    struct verdict verdict = verdict_make("rank 2 grows", SEVERITY_ERROR);
    kept_verdicts_put(&kept, &verdict);
    ck_assert(follow());
    (void)page_of_capture();
    struct batch live = live_batch();
    struct page_notes_versions known = {0};
    page_capture_take(&capture, follower, &live, &kept, notes, &known);
    uint64_t before = memory_figures().allocations;
    for (int round = 0; round < 20; round++) {
        ck_assert(page_follow(follower, &live, &page_log));
        page_capture_take(&capture, follower, &live, &kept, notes, &known);
    }
    ck_assert_uint_eq(memory_figures().allocations, before);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("page_live");
    TCase *cases = tcase_create("page_live");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, with_few_samples_the_page_is_the_same);
    tcase_add_test(cases, samples_behind_the_evaluation_wait_for_theirs);
    tcase_add_test(cases, a_full_log_is_read_on_later);
    tcase_add_test(cases, a_mirror_is_bounded_and_keeps_every_peak);
    tcase_add_test(cases, what_expired_is_not_shown);
    tcase_add_test(cases, a_forgotten_rank_leaves_nothing_behind);
    tcase_add_test(cases, what_came_late_is_read_with_all_else);
    tcase_add_test(cases, nothing_is_allocated_once_all_are_known);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
