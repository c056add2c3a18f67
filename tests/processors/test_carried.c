// SPDX-License-Identifier: Apache-2.0
// A gateway that takes over in the middle of a job sees only the last minutes of it. What senders
// carry along lets it align the ranks as the one before did, and call the verdict by the same name.
#include "tests/processors/chain.h"
#include "tests/processors/evaluation_text.h"

#include <check.h>

enum { RANKS = 4, TICKS = 300, RESTART = 60, TAKE_OVER = 140, TEXT_MAX = 1 << 22 };

struct stream {
    bool sessions;    // processes have one
    int restarts;     // of all ranks, RESTART ticks apart
    int leak_tick;    // rank 2 leaks from here on, rank 1 a little later
    uint64_t skew_ns; // clock of rank r is ahead by r times this
};

static struct carried carried_of(const struct stream *stream, int32_t rank, int tick) {
    int generation = tick / RESTART < stream->restarts ? tick / RESTART : stream->restarts;
    uint64_t first_ns = 10 * SECOND + (uint64_t)generation * RESTART * 100 * MS;
    return (struct carried){.first_sample_ns = first_ns + (uint64_t)rank * stream->skew_ns,
                            .generation = (uint32_t)generation + 1};
}

static int64_t used_bytes(const struct stream *stream, int32_t rank, int tick) {
    int since = tick - stream->leak_tick - (rank == 1 ? 4 : 0);
    bool leaks = rank == 2 || rank == 1;
    return (1000 + (tick + rank) % 3 + (leaks && since > 0 ? since * (rank == 2 ? 40 : 20) : 0)) *
           MIB;
}

static void add_one(struct chain *chain, const struct stream *stream, int32_t rank, int tick,
                    const struct carried *carried) {
    uint64_t time_ns = 10 * SECOND + (uint64_t)tick * 100 * MS + (uint64_t)rank * stream->skew_ns;
    struct telemetry sample = chain_sample(rank, time_ns, used_bytes(stream, rank, tick));
    char session[32];
    snprintf(session, sizeof session, "s-%d-%u", rank, carried_of(stream, rank, tick).generation);
    sample.session = stream->sessions ? intern(slice_of(session)) : STRING_NONE;
    sample.world_size = RANKS;
    chain_add(chain, &sample);
    if (carried == NULL)
        return;
    struct carried *copy = arena_take(&chain->events_arena, sizeof *copy);
    *copy = *carried;
    chain->pending[chain->pending_count - 1].carried = copy;
}

// The job from tick `first` on, judged every second when live.
static const struct batch *run_stream(struct chain *chain, const struct stream *stream, int first,
                                      bool carries) {
    for (int tick = first; tick < TICKS; tick++) {
        for (int32_t rank = 0; rank < RANKS; rank++) {
            struct carried carried = carried_of(stream, rank, tick);
            add_one(chain, stream, rank, tick, carries ? &carried : NULL);
        }
        if (!chain->once && tick % 10 == 9 && tick + 1 < TICKS)
            chain_evaluate(chain, 10 * SECOND + (uint64_t)tick * 100 * MS, false);
    }
    return chain_evaluate(chain, 0, true);
}

struct answer {
    char id[VERDICT_ID_SIZE];
    char line[4096];
    int32_t culprit;
    uint32_t generation;
    int64_t offsets[RANKS];
};

// What the last evaluation says, whether its line was put out or not.
static void ask(const struct stream *stream, bool once, int first, bool carries,
                struct answer *answer) {
    struct chain *chain = chain_begin(once);
    const struct batch *batch = run_stream(chain, stream, first, carries);
    ck_assert_uint_eq(batch->evaluation_count, 1);
    const struct evaluation *evaluation = &batch->evaluations[0];
    ck_assert_ptr_nonnull(evaluation->cause);
    memset(answer, 0, sizeof *answer);
    answer->generation = evaluation->cause->generation;
    answer->culprit = evaluation->ranks[evaluation->cause->suspects.items[0].index].series->rank;
    for (int i = 0; i < RANKS; i++)
        answer->offsets[i] = (int64_t)evaluation->alignment[i].generation_offset_ns;
    ck_assert_uint_eq(batch->verdicts.count, 1);
    memcpy(answer->id, batch->verdicts.items[0].id, sizeof answer->id);
    snprintf(answer->line, sizeof answer->line, "%.*s", (int)batch->verdicts.items[0].headline.size,
             batch->verdicts.items[0].headline.data);
    chain_end(chain);
}

START_TEST(test_a_successor_gives_the_same_verdict) {
    for (int restarts = 0; restarts < 3; restarts++) {
        struct stream stream = {
            .sessions = _i / 2 == 0, .restarts = restarts, .leak_tick = 200, .skew_ns = 3700 * MS};
        if (!stream.sessions)
            stream.restarts = 0;
        struct answer first, second;
        ask(&stream, _i % 2 == 0, 0, false, &first);
        ask(&stream, _i % 2 == 0, TAKE_OVER, true, &second);
        ck_assert_int_eq(first.culprit, 2);
        ck_assert_str_eq(second.id, first.id);
        ck_assert_int_eq(second.culprit, first.culprit);
        ck_assert_uint_eq(second.generation, first.generation);
        ck_assert_str_eq(second.line, first.line);
        ck_assert_mem_eq(second.offsets, first.offsets, sizeof first.offsets);
    }
}
END_TEST

// The successor joins unevenly: each rank from another tick on. Without what was carried it aligns
// by the wrong samples; with it, it does not.
START_TEST(test_a_ragged_tail_is_aligned_by_what_was_carried) {
    struct stream stream = {
        .sessions = true, .restarts = _i, .leak_tick = 200, .skew_ns = 2900 * MS};
    struct answer whole;
    ask(&stream, true, 0, false, &whole);
    for (int carries = 0; carries < 2; carries++) {
        struct chain *chain = chain_begin(true);
        for (int32_t rank = 0; rank < RANKS; rank++)
            for (int tick = TAKE_OVER + rank * 13; tick < TICKS; tick++) {
                struct carried carried = carried_of(&stream, rank, tick);
                add_one(chain, &stream, rank, tick, carries ? &carried : NULL);
            }
        const struct batch *batch = chain_evaluate(chain, 0, true);
        const struct evaluation *evaluation = &batch->evaluations[0];
        bool same = true;
        for (int i = 0; i < RANKS; i++)
            same &= evaluation->alignment[i].generation_offset_ns == whole.offsets[i];
        ck_assert_int_eq(same, carries);
        // By its generation alone when there was a restart; else by who was first.
        if (carries || _i > 0)
            ck_assert_int_eq(strcmp(batch->verdicts.items[0].id, whole.id) == 0, carries);
        chain_end(chain);
    }
}
END_TEST

// Who saw all of it learns nothing from what is carried.
START_TEST(test_carried_adds_nothing_to_the_whole) {
    struct stream stream = {
        .sessions = true, .restarts = 2, .leak_tick = 200, .skew_ns = 1700 * MS};
    struct buffer texts[2];
    for (int carries = 0; carries < 2; carries++) {
        buffer_init(&texts[carries], TEXT_MAX);
        struct chain *chain = chain_begin(_i == 0);
        text_of_batch(run_stream(chain, &stream, 0, carries), true, &texts[carries]);
        chain_end(chain);
        buffer_append_char(&texts[carries], '\0');
    }
    ck_assert(strcmp(texts[0].data, texts[1].data) == 0);
    buffer_release(&texts[0]);
    buffer_release(&texts[1]);
}
END_TEST

// A restart that the successor sees itself goes on counting from what was carried.
START_TEST(test_generations_are_counted_on) {
    struct stream stream = {.sessions = true, .restarts = 3, .leak_tick = 230, .skew_ns = 0};
    struct answer first, second;
    ask(&stream, false, 0, false, &first);
    // Carried along only until the third restart, at tick 180.
    struct chain *chain = chain_begin(false);
    for (int tick = TAKE_OVER; tick < TICKS; tick++)
        for (int32_t rank = 0; rank < RANKS; rank++) {
            struct carried carried = carried_of(&stream, rank, tick);
            add_one(chain, &stream, rank, tick, tick < 3 * RESTART ? &carried : NULL);
        }
    const struct batch *batch = chain_evaluate(chain, 0, true);
    ck_assert_uint_eq(batch->evaluations[0].generation, 3);
    memcpy(second.id, batch->verdicts.items[0].id, sizeof second.id);
    ck_assert_str_eq(second.id, first.id);
    chain_end(chain);
}
END_TEST

// Claims that cannot be, or that are of a generation that was passed long ago, change nothing.
START_TEST(test_stale_claims_are_ignored) {
    static const struct carried stale[] = {
        {.first_sample_ns = UINT64_MAX, .generation = 9}, // after the sample it came with
        {.first_sample_ns = 10000000000, .generation = 1},
        {.first_sample_ns = 10000000000}, // of what generation?
    };
    struct chain *chain = chain_begin(true);
    struct stream stream = {
        .sessions = true, .restarts = 2, .leak_tick = 200, .skew_ns = 2900 * MS};
    struct answer whole;
    ask(&stream, true, 0, false, &whole);
    for (int tick = 0; tick < TICKS; tick++)
        for (int32_t rank = 0; rank < RANKS; rank++)
            add_one(chain, &stream, rank, tick, &stale[_i]);
    const struct batch *batch = chain_evaluate(chain, 0, true);
    ck_assert_uint_eq(batch->evaluations[0].generation, 2);
    ck_assert_str_eq(batch->verdicts.items[0].id, whole.id);
    for (int i = 0; i < RANKS; i++)
        ck_assert(batch->evaluations[0].alignment[i].generation_offset_ns == whole.offsets[i]);
    chain_end(chain);
}
END_TEST

// A sample of an earlier session that arrives late brings along what its sender knows by then.
START_TEST(test_late_samples_do_not_count_twice) {
    struct stream stream = {.sessions = true, .restarts = 2, .leak_tick = 200, .skew_ns = 0};
    struct chain *chain = chain_begin(false);
    for (int round = 0; round < 2; round++) {
        struct carried now = carried_of(&stream, 0, TICKS);
        for (int tick = round; tick < TICKS; tick += 2)
            for (int32_t rank = 0; rank < RANKS; rank++)
                add_one(chain, &stream, rank, tick, &now);
        chain_evaluate(chain, 10 * SECOND + TICKS * 100 * MS, false);
        ck_assert_uint_eq(chain->batch.evaluations[0].generation, 2);
        ck_assert_uint_eq(chain->batch.evaluations[0].ranks[0].generation_ns, now.first_sample_ns);
    }
    chain_end(chain);
}
END_TEST

// Two sessions were seen; then it turns out that the first was the rank's third generation.
START_TEST(test_later_sessions_rise_with_earlier_ones) {
    struct stream stream = {.sessions = true, .restarts = 1, .leak_tick = 200, .skew_ns = 0};
    struct chain *chain = chain_begin(false);
    for (int tick = 0; tick < 2 * RESTART; tick++)
        for (int32_t rank = 0; rank < RANKS; rank++)
            add_one(chain, &stream, rank, tick, NULL);
    uint64_t now_ns = 30 * SECOND;
    ck_assert_uint_eq(chain_evaluate(chain, now_ns, false)->evaluations[0].generation, 1);
    struct carried carried = {.first_sample_ns = 9 * SECOND, .generation = 3};
    for (int32_t rank = 0; rank < RANKS; rank++)
        add_one(chain, &stream, rank, 5, &carried);
    const struct evaluation *evaluation =
        &chain_evaluate(chain, now_ns + SECOND, false)->evaluations[0];
    ck_assert_uint_eq(evaluation->generation, 3);
    ck_assert_uint_eq(evaluation->ranks[0].first_ns, 9 * SECOND);
    ck_assert_uint_eq(evaluation->ranks[0].generation_ns, 10 * SECOND + RESTART * 100 * MS);
    chain_end(chain);
}
END_TEST

// What is carried with a sample counts from the evaluation on that the sample belongs to.
START_TEST(test_what_comes_later_is_not_known_yet) {
    struct chain *chain = chain_begin(false);
    struct stream stream = {.sessions = true, .restarts = 1, .leak_tick = 200, .skew_ns = 0};
    for (int32_t rank = 0; rank < RANKS; rank++) {
        struct carried before = carried_of(&stream, rank, RESTART - 1);
        struct carried after = carried_of(&stream, rank, RESTART);
        add_one(chain, &stream, rank, RESTART - 1, &before);
        add_one(chain, &stream, rank, RESTART, &after);
    }
    uint64_t before_ns = 10 * SECOND + (RESTART - 1) * 100 * MS;
    ck_assert_uint_eq(chain_evaluate(chain, before_ns, false)->evaluations[0].generation, 0);
    ck_assert_uint_eq(chain_evaluate(chain, before_ns + SECOND, false)->evaluations[0].generation,
                      1);
    chain_end(chain);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("carried");
    TCase *tests = tcase_create("carried");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, test_a_successor_gives_the_same_verdict, 0, 4);
    tcase_add_loop_test(tests, test_a_ragged_tail_is_aligned_by_what_was_carried, 0, 2);
    tcase_add_loop_test(tests, test_carried_adds_nothing_to_the_whole, 0, 2);
    tcase_add_test(tests, test_generations_are_counted_on);
    tcase_add_loop_test(tests, test_stale_claims_are_ignored, 0, 3);
    tcase_add_test(tests, test_later_sessions_rise_with_earlier_ones);
    tcase_add_test(tests, test_late_samples_do_not_count_twice);
    tcase_add_test(tests, test_what_comes_later_is_not_known_yet);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
