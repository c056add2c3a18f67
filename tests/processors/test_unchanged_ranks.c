// SPDX-License-Identifier: Apache-2.0
// What an evaluation keeps of ranks that did not change is what it would find anew: random streams
// in which few ranks speak between two evaluations, each evaluated by a chain that goes on and by
// one that was just loaded with the same state and keeps nothing. And: no answer depends on the
// number of threads.
#include "base/intern.h"
#include "base/metrics/metrics.h"
#include "base/workers.h"
#include "tests/processors/evaluation_text.h"
#include "tests/processors/state_copy.h"

#include <check.h>

enum { TEXT_MAX = 1 << 26, RANKS_MAX = 24, STEPS = 60 };

static uint64_t random_state;

static uint32_t dice(uint32_t sides) {
    random_state = random_state * 6364136223846793005 + 1442695040888963407;
    return (uint32_t)(random_state >> 33) % sides;
}

static struct buffer want, got;

static void setup(void) {
    buffer_init(&want, TEXT_MAX);
    buffer_init(&got, TEXT_MAX);
}

static void teardown(void) {
    buffer_release(&want);
    buffer_release(&got);
    intern_release();
    metrics_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

// A job of ranks of which few speak at a time, for a while each.
struct stream {
    uint32_t ranks, jobs;
    uint64_t now_ns;
    int64_t used[RANKS_MAX];
    uint32_t session[RANKS_MAX];
    bool speaks[RANKS_MAX];
};

static struct chain *stream_chain(const struct stream *stream, uint32_t kind) {
    struct chain *chain = chain_new(false);
    chain->config.spike_detect.min_growth.bytes = 64;
    chain->config.job_filter.job_id = kind & 1 ? "each" : "auto";
    if (kind & 2)
        chain->config.rank_group.retention.ns = 6 * (int64_t)SECOND;
    if (kind & 4)
        chain->config.job_filter.idle_jobs_expire.ns = 5 * (int64_t)SECOND;
    (void)stream;
    chain_start(chain);
    return chain;
}

static void speak(struct stream *stream, struct chain *chain, uint32_t rank) {
    static const int32_t STEPS_OF_USE[] = {0, 5, 40, -30, -5, 90, -80, 20, 300, -250};
    stream->used[rank] += STEPS_OF_USE[dice(10)] + (int32_t)dice(3);
    if (stream->used[rank] < 0)
        stream->used[rank] = 0;
    if (dice(80) == 0)
        stream->session[rank]++;
    uint64_t time_ns = stream->now_ns - dice(400) * MS;
    if (dice(12) == 0)
        time_ns -= dice(4000) * MS; // late
    if (dice(12) == 0)
        time_ns += dice(4000) * MS; // ahead of the evaluation
    struct telemetry sample = chain_sample((int32_t)rank, time_ns, stream->used[rank]);
    char session[48], job[16];
    snprintf(session, sizeof session, "session-%u-%u", rank, stream->session[rank]);
    snprintf(job, sizeof job, "job-%u", rank % stream->jobs);
    sample.session = intern(slice_of(session));
    sample.job = dice(200) == 0 ? STRING_NONE : intern(slice_of(job));
    sample.world_size = (int32_t)stream->ranks;
    chain_add(chain, &sample);
}

static void advance(struct stream *stream, struct chain *chain, uint32_t step) {
    stream->now_ns += (1 + dice(3)) * SECOND / 2;
    for (uint32_t rank = 0; rank < stream->ranks; rank++) {
        if (dice(8) == 0)
            stream->speaks[rank] = dice(4) == 0;
        if (step < 3 || stream->speaks[rank])
            for (uint32_t i = 1 + dice(6); i > 0; i--)
                speak(stream, chain, rank);
    }
    chain_flush(chain);
}

static void evaluate_anew(const struct chain *chain, const struct stream *stream, uint32_t kind,
                          uint64_t as_of_ns) {
    struct state_copy copy;
    state_save(chain, &copy);
    struct chain *fresh = stream_chain(stream, kind);
    state_load(fresh, &copy);
    text_of_batch(chain_evaluate(fresh, as_of_ns, false), false, &want);
    chain_end(fresh);
    state_copy_release(&copy);
}

START_TEST(what_is_kept_is_what_is_found_anew) {
    uint64_t unchanged = 0, spikes = 0;
    for (uint32_t kind = 0; kind < 8; kind++) {
        random_state = (uint64_t)_i * 8 + kind + 1;
        struct stream stream = {.ranks = 2 + dice(RANKS_MAX - 2), .now_ns = 1000 * SECOND};
        stream.jobs = 1 + dice(3);
        for (uint32_t i = 0; i < stream.ranks; i++)
            stream.used[i] = 1000 + dice(1000);
        struct chain *chain = stream_chain(&stream, kind);
        for (uint32_t step = 0; step < STEPS; step++) {
            advance(&stream, chain, step);
            buffer_reset(&want);
            buffer_reset(&got);
            evaluate_anew(chain, &stream, kind, stream.now_ns);
            const struct batch *batch = chain_evaluate(chain, stream.now_ns, false);
            text_of_batch(batch, false, &got);
            ck_assert_msg(want.size == got.size && memcmp(want.data, got.data, got.size) == 0,
                          "seed %d kind %u step %u:\n%.*s\nanew:\n%.*s", _i, kind, step,
                          (int)got.size, got.data, (int)want.size, want.data);
            for (uint32_t i = 0; i < batch->evaluation_count; i++) {
                const struct evaluation *evaluation = &batch->evaluations[i];
                if (!evaluation->all_changed)
                    unchanged += evaluation->rank_count - evaluation->changed_count;
                spikes += evaluation->suspects->candidate_count;
            }
        }
        chain_end(chain);
    }
    // The streams are about what they should be.
    ck_assert_uint_gt(unchanged, 200);
    ck_assert_uint_gt(spikes, 100);
}
END_TEST

// Inputs of which all is evaluated by more than one worker.
static const struct crowd {
    uint32_t ranks, jobs, seconds;
    bool once;
} CROWDS[] = {
    {.ranks = 3000, .jobs = 1, .seconds = 30},
    {.ranks = 3000, .jobs = 50, .seconds = 30, .once = true},
    {.ranks = 6000, .jobs = 60, .seconds = 8}, // many jobs, live
};
enum { CROWD_COUNT = sizeof CROWDS / sizeof CROWDS[0] };

static void evaluate_with(uint32_t threads, const struct crowd *crowd, struct buffer *out) {
    struct workers *workers = workers_new(threads);
    struct chain *chain = chain_new(crowd->once);
    chain->config.job_filter.job_id = crowd->jobs > 1 ? "each" : "auto";
    chain->config.job_filter.max_jobs = 100;
    chain->config.spike_detect.min_growth.bytes = 1000;
    chain->config.rank_group.retention.ns = 5 * (int64_t)SECOND;
    chain->workers = workers;
    chain_start(chain);
    random_state = 7;
    for (uint32_t second = 0; second < crowd->seconds; second++) {
        for (uint32_t rank = 0; rank < crowd->ranks; rank++) {
            char job[16];
            snprintf(job, sizeof job, "job-%u", rank % crowd->jobs);
            int64_t used = 1000 + dice(200);
            if (rank % 701 == 0 && second > crowd->seconds / 3)
                used += second * 1200 / crowd->seconds * 3;
            struct telemetry sample =
                chain_sample((int32_t)rank, second * SECOND + dice(900) * MS, used);
            sample.job = intern(slice_of(job));
            chain_add(chain, &sample);
        }
        if (!crowd->once)
            text_of_batch(chain_evaluate(chain, second * SECOND + 700 * MS, false), false, out);
    }
    text_of_batch(chain_evaluate(chain, 0, true), false, out);
    chain_end(chain);
    workers_free(workers);
}

START_TEST(answers_do_not_depend_on_the_number_of_threads) {
    static const uint32_t threads[] = {2, 7};
    evaluate_with(1, &CROWDS[_i], &want);
    for (uint32_t i = 0; i < 2; i++) {
        buffer_reset(&got);
        evaluate_with(threads[i], &CROWDS[_i], &got);
        ck_assert_uint_eq(want.size, got.size);
        ck_assert_int_eq(memcmp(want.data, got.data, got.size), 0);
    }
    buffer_append_char(&want, '\0');
    ck_assert_ptr_nonnull(strstr(want.data, " kept "));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("unchanged_ranks");
    TCase *tests = tcase_create("unchanged_ranks");
    tcase_set_timeout(tests, 300);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, what_is_kept_is_what_is_found_anew, 0, 6);
    tcase_add_loop_test(tests, answers_do_not_depend_on_the_number_of_threads, 0, CROWD_COUNT);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
