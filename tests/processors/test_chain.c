// SPDX-License-Identifier: Apache-2.0
// The six stages together: what is judged step by step equals what is judged at once, whatever came
// late; and the verdict says what a person would say.
#include "tests/processors/chain.h"

#include "pipeline/model/verdict.h"

#include <check.h>
#include <stdlib.h>

enum { TEXT_MAX = 1 << 20 };

// The summary's figures as text, to compare two evaluations.
static void describe(const struct evaluation *evaluation, struct buffer *out) {
    buffer_append_format(out, "job %u world %lld median %lld\n", evaluation->job,
                         (long long)evaluation->world_size,
                         (long long)evaluation->median_interval_ns);
    for (uint32_t i = 0; i < evaluation->rank_count; i++)
        buffer_append_format(
            out, "rank %d count %llu first %llu last %llu max %lld offset %lld threshold %lld\n",
            evaluation->ranks[i].series->rank,
            (unsigned long long)evaluation->ranks[i].sample_count,
            (unsigned long long)evaluation->ranks[i].first_ns,
            (unsigned long long)evaluation->ranks[i].last_ns,
            (long long)evaluation->ranks[i].max_used_bytes,
            (long long)evaluation->alignment[i].offset_ns,
            (long long)evaluation->spikes[i].threshold_bytes);
    const struct suspect_list *lists[] = {evaluation->suspects, evaluation->cause == NULL
                                                                    ? evaluation->suspects
                                                                    : &evaluation->cause->suspects};
    for (int l = 0; l < 2; l++)
        for (uint32_t i = 0; i < lists[l]->count; i++) {
            const struct suspect *suspect = &lists[l]->items[i];
            buffer_append_format(
                out, "suspect %u at %llu from %llu base %lld growth %lld samples %llu conf %d\n",
                suspect->index, (unsigned long long)suspect->spike.time_ns,
                (unsigned long long)suspect->spike.window_ns, (long long)suspect->spike.base_bytes,
                (long long)suspect->spike.growth_bytes, (unsigned long long)suspect->spike.samples,
                suspect->confidence);
        }
    if (evaluation->cause != NULL)
        buffer_append_format(out, "cause %d growth %lld others %lld\n", evaluation->cause->kind,
                             (long long)evaluation->cause->growth_bytes,
                             (long long)evaluation->cause->median_other_growth_bytes);
    for (uint32_t i = 0; i < evaluation->notes.count; i++)
        buffer_append_format(out, "note %.*s\n", (int)evaluation->notes.items[i].size,
                             evaluation->notes.items[i].data);
}

struct history {
    struct telemetry items[3000];
    uint32_t count;
};

// Judges everything in one go.
static void judge_at_once(const struct history *history, struct buffer *out) {
    struct chain *whole = chain_begin(true);
    for (uint32_t i = 0; i < history->count; i++)
        chain_add(whole, &history->items[i]);
    describe(&chain_evaluate(whole, 0, true)->evaluations[0], out);
    chain_end(whole);
}

static struct telemetry random_sample(uint64_t now_ns, int style) {
    int32_t rank = rand() % 4;
    int64_t base = 1000 * MIB;
    int64_t swing = (rand() % 3) * 100 * MIB;
    int64_t leak = rank == 2 && now_ns > 3 * SECOND ? (int64_t)(now_ns / MS) * MIB / 4 : 0;
    struct telemetry sample =
        chain_sample(rank, now_ns, base + swing + leak + (rand() % 1000) * 1024);
    sample.world_size = 4;
    if (style == 1)
        sample.job = rand() % 3 == 0 ? STRING_NONE : sample.job;
    if (style == 2 && rand() % 4 == 0)
        sample.job = intern(SLICE("job-b"));
    return sample;
}

// At every step the answer equals that of a fresh chain over everything so far. Style 1 mixes in
// samples without a job, style 2 a second job, 3 late samples, 4 all of them.
START_TEST(test_step_by_step_equals_at_once) {
    static struct history history;
    history.count = 0;
    int style = _i % 5;
    srand((unsigned)_i);
    // Order of equal rows by arrival, as `once` has it, but judged again and again.
    struct chain *live = chain_begin(false);
    live->once = true;
    struct buffer got, want;
    buffer_init(&got, TEXT_MAX);
    buffer_init(&want, TEXT_MAX);
    uint64_t now_ns = SECOND;
    for (int step = 0; step < 25; step++) {
        for (int i = rand() % 60; i >= 0; i--) {
            now_ns += (uint64_t)(1 + rand() % 40) * MS;
            uint64_t time_ns = now_ns;
            if (style >= 3 && rand() % 10 == 0)
                time_ns -= (uint64_t)rand() % (now_ns - SECOND + 1);
            struct telemetry sample = random_sample(time_ns, style == 4 ? 1 + step / 12 : style);
            history.items[history.count++] = sample;
            chain_add(live, &sample);
        }
        const struct batch *batch = chain_evaluate(live, now_ns, false);
        buffer_reset(&got);
        buffer_reset(&want);
        ck_assert_uint_eq(batch->evaluation_count, 1);
        describe(&batch->evaluations[0], &got);
        judge_at_once(&history, &want);
        buffer_append_char(&got, '\0');
        buffer_append_char(&want, '\0');
        ck_assert_str_eq(got.data, want.data);
    }
    buffer_release(&got);
    buffer_release(&want);
    chain_end(live);
}
END_TEST

// Each rank has a sender of its own, and each of them is another while behind: nothing that was
// read has to be read again, and the answer is that of a fresh chain over everything so far.
START_TEST(test_senders_are_not_equally_far) {
    static struct history history;
    history.count = 0;
    srand((unsigned)_i);
    struct chain *live = chain_begin(false);
    live->once = true;
    struct buffer got, want;
    buffer_init(&got, TEXT_MAX);
    buffer_init(&want, TEXT_MAX);
    uint64_t now_ns = SECOND, reached_ns[4] = {SECOND, SECOND, SECOND, SECOND};
    for (int step = 0; step < 40; step++) {
        now_ns += SECOND;
        for (int32_t rank = 0; rank < 4; rank++) {
            // Rank 1 is heard every fourth time, others as it comes.
            if (rank == 1 ? step % 4 != 3 : rand() % 2 == 0)
                continue;
            while (reached_ns[rank] + 200 * MS < now_ns) {
                reached_ns[rank] += (uint64_t)(1 + rand() % 150) * MS;
                struct telemetry sample = random_sample(reached_ns[rank], 0);
                sample.rank = rank;
                history.items[history.count++] = sample;
                chain_add(live, &sample);
            }
        }
        const struct batch *batch = chain_evaluate(live, now_ns, false);
        buffer_reset(&got);
        buffer_reset(&want);
        if (history.count == 0)
            continue;
        describe(&batch->evaluations[0], &got);
        judge_at_once(&history, &want);
        buffer_append_char(&got, '\0');
        buffer_append_char(&want, '\0');
        ck_assert_str_eq(got.data, want.data);
        for (uint32_t i = 0; i < batch->evaluations[0].rank_count; i++)
            ck_assert_uint_eq(batch->evaluations[0].ranks[i].series->revision, 0);
    }
    ck_assert_uint_gt(history.count, 1000);
    buffer_release(&got);
    buffer_release(&want);
    chain_end(live);
}
END_TEST

// The next ones: four ranks, 10 samples a second, with a function of (rank, tick) for the use.
typedef int64_t use_function(int32_t rank, int tick);

static const struct batch *run_job(struct chain *chain, use_function *use, int ticks) {
    for (int tick = 0; tick < ticks; tick++)
        for (int32_t rank = 0; rank < 4; rank++) {
            struct telemetry sample =
                chain_sample(rank, SECOND + (uint64_t)tick * 100 * MS + (uint64_t)rank * 3 * MS,
                             use(rank, tick));
            sample.world_size = 4;
            chain_add(chain, &sample);
        }
    return chain_evaluate(chain, 0, true);
}

static int64_t swings(int32_t rank, int tick) {
    return (2000 + (tick % 10 < 5 ? (tick % 10) * 100 : 0) + rank) * MIB;
}

static int64_t leak_amid_swings(int32_t rank, int tick) {
    int grown = tick <= 100 ? 0 : tick < 110 ? tick - 100 : 10;
    return swings(rank, tick) + (rank == 2 ? grown * 200 * MIB : 0);
}

// 4 MiB a tick under swings of 400: no window shows it, the lows do.
static int64_t slow_leak_under_swings(int32_t rank, int tick) {
    int noise = (rank * 7 + tick * 13) % 5;
    return swings(rank, tick) + (noise + (rank == 2 && tick > 100 ? (tick - 100) * 4 : 0)) * MIB;
}

static int64_t slow_leak_after_warm_up(int32_t rank, int tick) {
    return slow_leak_under_swings(rank, tick) + (tick < 5 ? tick - 5 : 0) * 300 * MIB;
}

// A larger batch from tick 150 on, on all ranks.
static int64_t larger_batch(int32_t rank, int tick) {
    return swings(rank, tick) * (tick >= 150 ? 14 : 10) / 10 + (rank * 7 + tick * 13) % 5 * MIB;
}

static int64_t warm_up(int32_t rank, int tick) {
    int64_t grown = tick < 5 ? tick * 300 : 1500;
    return (1000 + grown + (rank + tick) % 3) * MIB;
}

// All come up alike, but rank 2 is looked at while it still does: from there on its lows rise by
// 1,000 MiB, those of the others by nothing.
static int64_t looked_at_early(int32_t rank, int tick) {
    return rank == 2 && tick < 2 ? 1000 * MIB : swings(rank, tick);
}

static int64_t flat(int32_t rank, int tick) {
    return (1000 + (rank + tick) % 2) * MIB;
}

static const struct verdict *only_verdict(const struct batch *batch) {
    ck_assert_uint_eq(batch->verdicts.count, 1);
    return &batch->verdicts.items[0];
}

START_TEST(test_swings_are_nobodys_fault) {
    struct chain *chain = chain_begin(true);
    const struct verdict *verdict = only_verdict(run_job(chain, swings, 200));
    ck_assert_str_eq(verdict->kind, "swing");
    ck_assert_int_eq(verdict->severity, SEVERITY_INFO);
    ck_assert_uint_eq(verdict->entity_count, 0);
    ck_assert_int_eq(verdict->state, VERDICT_RESOLVED);
    chain_end(chain);
}
END_TEST

START_TEST(test_a_leak_amid_swings_is_found) {
    struct chain *chain = chain_begin(true);
    const struct verdict *verdict = only_verdict(run_job(chain, leak_amid_swings, 300));
    ck_assert_str_eq(verdict->kind, "leak");
    ck_assert_uint_ge(verdict->entity_count, 1);
    ck_assert_int_eq(verdict->entities[0].role, ROLE_CULPRIT);
    ck_assert(slice_equal(verdict->entities[0].name, SLICE("2")));
    ck_assert_int_eq(verdict->state, VERDICT_OPEN);
    chain_end(chain);
}
END_TEST

static void attribute_is(const struct verdict *verdict, const char *key, const char *value) {
    for (uint32_t i = 0; i < verdict->attribute_count; i++)
        if (strcmp(verdict->attributes[i].key, key) == 0) {
            ck_assert_msg(slice_equal(verdict->attributes[i].value, slice_of(value)),
                          "%s is %.*s, not %s", key, (int)verdict->attributes[i].value.size,
                          verdict->attributes[i].value.data, value);
            return;
        }
    ck_abort_msg("there is no %s", key);
}

static int64_t one_leap(int32_t rank, int tick) {
    return (1000 + (rank == 2 && tick >= 150 ? 700 : 0)) * MIB;
}

// What machines read of it: numbers as they were measured.
START_TEST(test_attributes_of_a_leak) {
    struct chain *chain = chain_begin(true);
    const struct verdict *verdict = only_verdict(run_job(chain, one_leap, 300));
    ck_assert_str_eq(verdict->kind, "leak");
    attribute_is(verdict, "culprit.base_bytes", "1048576000");
    attribute_is(verdict, "culprit.growth_bytes", "734003200");
    attribute_is(verdict, "culprit.peak_delta_bytes", "734003200");
    attribute_is(verdict, "culprit.median_other_growth_bytes", "0");
    attribute_is(verdict, "culprit.excess_ratio", "infinite");
    attribute_is(verdict, "culprit.generation", "0");
    attribute_is(verdict, "culprit.lead_ns", "0");
    attribute_is(verdict, "culprit.phase_resolution", "none");
    attribute_is(verdict, "culprit.rank", "2");
    attribute_is(verdict, "culprit.world_size", "4");
    attribute_is(verdict, "host.name", "node0");
    attribute_is(verdict, "process.pid", "102");
    chain_end(chain);
}
END_TEST

START_TEST(test_a_slow_leak_under_swings_is_found) {
    struct chain *chain = chain_begin(true);
    const struct verdict *verdict = only_verdict(
        run_job(chain, _i == 0 ? slow_leak_under_swings : slow_leak_after_warm_up, 400));
    ck_assert_str_eq(verdict->kind, "leak");
    ck_assert_int_eq(verdict->severity, SEVERITY_WARNING);
    ck_assert(slice_equal(verdict->entities[0].name, SLICE("2")));
    ck_assert_uint_ge(verdict->start_ns, SECOND + 90 * 100 * MS);
    ck_assert_uint_le(verdict->start_ns, SECOND + 150 * 100 * MS);
    chain_end(chain);
}
END_TEST

START_TEST(test_a_larger_batch_is_common_growth) {
    struct chain *chain = chain_begin(true);
    const struct batch *batch = run_job(chain, larger_batch, 300);
    for (uint32_t i = 0; i < batch->verdicts.count; i++)
        ck_assert_int_eq(batch->verdicts.items[i].severity, SEVERITY_INFO);
    chain_end(chain);
}
END_TEST

START_TEST(test_warm_up_on_all_ranks_is_common_growth) {
    struct chain *chain = chain_begin(true);
    const struct verdict *verdict = only_verdict(run_job(chain, warm_up, 200));
    ck_assert_str_eq(verdict->kind, "common_growth");
    ck_assert_int_eq(verdict->severity, SEVERITY_INFO);
    ck_assert_str_eq(verdict->action, "monitor");
    chain_end(chain);
}
END_TEST

START_TEST(test_lows_that_begin_in_a_warm_up_are_no_leak) {
    struct chain *chain = chain_begin(true);
    const struct verdict *verdict = only_verdict(run_job(chain, looked_at_early, 400));
    ck_assert_str_eq(verdict->kind, "common_growth");
    ck_assert_int_eq(verdict->severity, SEVERITY_INFO);
    for (uint32_t i = 0; i < verdict->entity_count; i++)
        ck_assert_int_ne(verdict->entities[i].role, ROLE_CULPRIT);
    chain_end(chain);
}
END_TEST

START_TEST(test_flat_use_gives_no_verdict) {
    struct chain *chain = chain_begin(true);
    ck_assert_uint_eq(run_job(chain, flat, 200)->verdicts.count, 0);
    chain_end(chain);
}
END_TEST

// -- live
// ---------------------------------------------------------------------------------------------

static void add_tick(struct chain *chain, int tick, use_function *use) {
    for (int32_t rank = 0; rank < 4; rank++) {
        struct telemetry sample =
            chain_sample(rank, SECOND + (uint64_t)tick * 100 * MS, use(rank, tick));
        sample.world_size = 4;
        chain_add(chain, &sample);
    }
}

static int64_t one_leaks_then_frees(int32_t rank, int tick) {
    if (rank != 1 || tick < 20)
        return 1000 * MIB;
    return tick < 100 ? (1000 + (int64_t)(tick - 19) * 50) * MIB : 1000 * MIB;
}

START_TEST(test_a_name_settles_is_updated_and_resolved) {
    struct chain *chain = chain_new(false);
    chain->timing.settle.ns = 2 * (int64_t)SECOND;
    chain_start(chain);
    enum verdict_state states[16];
    const char *kinds[16];
    uint64_t at[16];
    char id[VERDICT_ID_SIZE] = "";
    uint32_t count = 0;
    for (int tick = 0; tick < 200; tick++) {
        add_tick(chain, tick, one_leaks_then_frees);
        if (tick % 10 != 9)
            continue;
        uint64_t now = SECOND + (uint64_t)tick * 100 * MS;
        const struct batch *batch = chain_evaluate(chain, now, false);
        for (uint32_t i = 0; i < batch->verdicts.count; i++) {
            const struct verdict *verdict = &batch->verdicts.items[i];
            if (count == 0)
                memcpy(id, verdict->id, sizeof id);
            ck_assert_str_eq(verdict->id, id);
            ck_assert_uint_lt(count, 16);
            states[count] = verdict->state;
            kinds[count] = verdict->kind;
            at[count++] = now;
        }
    }
    // Grows from 3.0 s, named 2 s after the evaluation that saw it first; freed at 11 s.
    ck_assert_uint_ge(count, 3);
    ck_assert_int_eq(states[0], VERDICT_OPEN);
    ck_assert_uint_ge(at[0], 5 * SECOND);
    ck_assert_uint_le(at[0], 7 * SECOND);
    ck_assert_str_eq(kinds[0], "leak");
    ck_assert_int_eq(states[1], VERDICT_UPDATED);
    ck_assert_int_eq(states[count - 1], VERDICT_RESOLVED);
    ck_assert_str_eq(kinds[count - 1], "swing");
    chain_end(chain);
}
END_TEST

// Figures that creep on are no news; a leak is told again when it has grown by a quarter doubling.
START_TEST(test_a_line_is_written_for_what_matters) {
    struct chain *chain = chain_begin(false);
    use_function *use = _i == 0 ? swings : leak_amid_swings;
    uint32_t lines = 0;
    for (int tick = 0; tick < 1000; tick++) {
        add_tick(chain, tick, use);
        if (tick % 10 == 9)
            lines +=
                chain_evaluate(chain, SECOND + (uint64_t)tick * 100 * MS, false)->verdicts.count;
    }
    if (_i == 0)
        ck_assert_uint_eq(lines, 1);
    else
        ck_assert(lines >= 2 && lines <= 12);
    chain_end(chain);
}
END_TEST

START_TEST(test_an_earlier_rank_that_reports_late_replaces_the_name) {
    struct chain *chain = chain_begin(false);
    for (int tick = 0; tick < 50; tick++) {
        chain_add_sample(chain, 0, SECOND + (uint64_t)tick * 100 * MS, 1000 * MIB);
        chain_add_sample(chain, 1, SECOND + (uint64_t)tick * 100 * MS,
                         (1000 + (tick > 20 ? (tick - 20) * 40 : 0)) * MIB);
    }
    const struct batch *batch = chain_evaluate(chain, 7 * SECOND, false);
    const struct verdict *verdict = only_verdict(batch);
    ck_assert_str_eq(verdict->kind, "leak");
    char first_id[VERDICT_ID_SIZE];
    memcpy(first_id, verdict->id, sizeof first_id);
    for (int tick = 0; tick < 50; tick++)
        chain_add_sample(chain, 2, SECOND + (uint64_t)tick * 100 * MS,
                         (1000 + (tick > 5 ? (tick - 5) * 90 : 0)) * MIB);
    batch = chain_evaluate(chain, 8 * SECOND, false);
    ck_assert_uint_eq(batch->verdicts.count, 2);
    ck_assert_str_eq(batch->verdicts.items[0].id, first_id);
    ck_assert_int_eq(batch->verdicts.items[0].state, VERDICT_RESOLVED);
    ck_assert_int_eq(batch->verdicts.items[0].severity, SEVERITY_INFO);
    ck_assert_int_eq(batch->verdicts.items[1].state, VERDICT_OPEN);
    ck_assert(slice_equal(batch->verdicts.items[1].entities[0].name, SLICE("2")));
    chain_end(chain);
}
END_TEST

// A restart of all ranks: the summary merges sessions, the verdict begins anew.
START_TEST(test_a_restart_begins_a_generation) {
    struct chain *chain = chain_begin(true);
    for (int tick = 0; tick < 100; tick++)
        for (int32_t rank = 0; rank < 4; rank++) {
            bool second = tick >= 50;
            int64_t grown = 0;
            if (!second && rank == 0 && tick > 10)
                grown = (tick - 10) * 30 * MIB;
            if (second && rank == 3 && tick > 70)
                grown = (tick - 70) * 30 * MIB;
            struct telemetry sample =
                chain_sample(rank, SECOND + (uint64_t)tick * 100 * MS, 1000 * MIB + grown);
            if (second)
                sample.session = intern(slice_of(rank % 2 == 0 ? "again-even" : "again-odd"));
            sample.world_size = 4;
            chain_add(chain, &sample);
        }
    const struct batch *batch = chain_evaluate(chain, 0, true);
    const struct evaluation *evaluation = &batch->evaluations[0];
    ck_assert_uint_eq(evaluation->generation, 1);
    ck_assert_int_eq(evaluation->ranks[evaluation->suspects->items[0].index].series->rank, 0);
    const struct verdict *verdict = only_verdict(batch);
    ck_assert_str_eq(verdict->kind, "leak");
    ck_assert(slice_equal(verdict->entities[0].name, SLICE("3")));
    chain_end(chain);
}
END_TEST

START_TEST(test_one_restarted_rank_of_four_is_no_generation) {
    struct chain *chain = chain_begin(true);
    for (int tick = 0; tick < 20; tick++)
        for (int32_t rank = 0; rank < 4; rank++) {
            struct telemetry sample =
                chain_sample(rank, SECOND + (uint64_t)tick * 100 * MS, 1000 * MIB);
            if (rank == 1 && tick >= 10)
                sample.session = intern(SLICE("again"));
            chain_add(chain, &sample);
        }
    ck_assert_uint_eq(chain_evaluate(chain, 0, true)->evaluations[0].generation, 0);
    chain_end(chain);
}
END_TEST

START_TEST(test_memory_stays_bounded_with_retention) {
    struct chain *chain = chain_new(false);
    chain->config.rank_group.retention.ns = 10 * (int64_t)SECOND;
    chain_start(chain);
    uint64_t first_bytes = 0;
    const struct batch *batch = NULL;
    for (int tick = 0; tick < 20000; tick++) {
        add_tick(chain, tick, leak_amid_swings);
        if (tick % 10 == 9)
            batch = chain_evaluate(chain, SECOND + (uint64_t)tick * 100 * MS, false);
        if (tick == 2000)
            first_bytes = memory_figures().live_bytes;
    }
    ck_assert_uint_le(memory_figures().live_bytes, first_bytes + 65536);
    const struct evaluation *evaluation = &batch->evaluations[0];
    // First samples are remembered, and so is the spike whose samples have gone.
    ck_assert_uint_eq(evaluation->ranks[0].first_ns, SECOND);
    ck_assert_uint_le(evaluation->ranks[0].sample_count, 300);
    ck_assert_ptr_nonnull(evaluation->cause);
    ck_assert_int_eq(evaluation->cause->kind, CAUSE_LEAK);
    ck_assert_uint_eq(evaluation->cause->suspects.items[0].index, 2);
    chain_end(chain);
}
END_TEST

// A rank whose first samples are older than the retention when they come: what goes unseen was
// never counted.
START_TEST(test_a_rank_that_turns_up_with_old_samples_is_counted_right) {
    struct chain *chain = chain_new(false);
    chain->config.rank_group.retention.ns = 5 * (int64_t)SECOND;
    chain_start(chain);
    for (int tick = 0; tick < 300; tick++) {
        chain_add_sample(chain, 0, SECOND + (uint64_t)tick * 100 * MS, 1000 * MIB);
        if (tick % 10 == 9)
            chain_evaluate(chain, SECOND + (uint64_t)tick * 100 * MS, false);
    }
    for (int tick = 0; tick < 300; tick++)
        chain_add_sample(chain, 1, SECOND + (uint64_t)tick * 100 * MS, 1000 * MIB);
    const struct evaluation *evaluation =
        &chain_evaluate(chain, 32 * SECOND, false)->evaluations[0];
    for (uint32_t i = 0; i < 2; i++) {
        struct series_cursor cursor = series_begin(evaluation->ranks[i].series);
        uint64_t count = 0;
        while (series_next(evaluation->store, evaluation->ranks[i].series, &cursor, UINT64_MAX))
            count++;
        ck_assert_uint_eq(evaluation->ranks[i].sample_count, count);
        ck_assert_uint_lt(count, 100);
    }
    ck_assert_uint_eq(evaluation->ranks[1].first_ns, SECOND);
    ck_assert(evaluation->median_interval_ns == 100 * (int64_t)MS);
    chain_end(chain);
}
END_TEST

// What an evaluation shows may be read until events come, with which what expired since goes: the
// next evaluation is about them, and somebody waits for it.
START_TEST(test_what_expires_goes_before_the_next_evaluation) {
    struct chain *chain = chain_new(false);
    chain->config.rank_group.retention.ns = 2 * (int64_t)SECOND;
    chain_start(chain);
    const struct rank_series *series = NULL;
    uint32_t expired = 0;
    for (int tick = 0; tick < 600; tick++) {
        uint64_t now_ns = SECOND + (uint64_t)tick * 100 * MS;
        uint64_t before = series == NULL ? 0 : series->sample_count;
        chain_add_sample(chain, 0, now_ns, 1000 * MIB);
        chain_flush(chain);
        if (series != NULL && tick % 10 != 0)
            ck_assert_uint_eq(series->sample_count, before + 1);
        expired += series != NULL && tick % 10 == 0 && series->sample_count < before;
        if (tick % 10 != 9)
            continue;
        before = series == NULL ? 0 : series->sample_count;
        const struct evaluation *evaluation = &chain_evaluate(chain, now_ns, false)->evaluations[0];
        ck_assert(series == NULL || series->sample_count == before);
        series = evaluation->ranks[0].series;
        ck_assert_uint_eq(evaluation->ranks[0].sample_count, series->sample_count);
    }
    // Chunks of 21 samples.
    ck_assert_uint_ge(expired, 600 / 21 - 5);
    chain_end(chain);
}
END_TEST

START_TEST(test_bounds_are_kept_and_said) {
    struct chain *chain = chain_new(true);
    chain->config.rank_group.max_ranks = 3;
    chain->config.job_filter.max_jobs = 2;
    chain_start(chain);
    for (int32_t rank = 0; rank < 6; rank++)
        chain_add_sample(chain, rank, SECOND, MIB);
    for (int job = 0; job < 4; job++) {
        char name[24];
        snprintf(name, sizeof name, "extra-%d", job);
        struct telemetry sample = chain_sample(0, SECOND, MIB);
        sample.job = intern(slice_of(name));
        chain_add(chain, &sample);
    }
    const struct evaluation *evaluation = &chain_evaluate(chain, 0, true)->evaluations[0];
    ck_assert_uint_eq(evaluation->rank_count, 3);
    struct buffer text;
    buffer_init(&text, TEXT_MAX);
    describe(evaluation, &text);
    buffer_append_char(&text, '\0');
    ck_assert_ptr_nonnull(strstr(text.data, "max_ranks"));
    ck_assert_ptr_nonnull(strstr(text.data, "max_jobs"));
    buffer_release(&text);
    chain_end(chain);
}
END_TEST

static const struct evaluation *evaluation_of(const struct chain *chain, const char *job) {
    for (uint32_t i = 0; i < chain->batch.evaluation_count; i++)
        if (slice_equal(intern_slice(chain->batch.evaluations[i].job), slice_of(job)))
            return &chain->batch.evaluations[i];
    return NULL;
}

static bool tells_of_max_ranks(const struct evaluation *evaluation) {
    for (uint32_t i = 0; i < evaluation->notes.count; i++)
        if (strstr(evaluation->notes.items[i].data, "max_ranks") != NULL)
            return true;
    return false;
}

// However many ranks some jobs have, there is room for those of another.
START_TEST(test_a_large_job_leaves_room_for_others) {
    struct chain *chain = chain_new(true);
    chain->config.rank_group.max_ranks = 8;
    chain->config.job_filter.job_id = "each";
    chain_start(chain);
    for (int32_t i = 0; i < 40 * 6; i++) {
        char name[24];
        snprintf(name, sizeof name, "large-%d", i % 6);
        struct telemetry sample = chain_sample(i / 6, SECOND, MIB);
        sample.job = intern(slice_of(name));
        chain_add(chain, &sample);
    }
    for (int32_t rank = 0; rank < 4; rank++) {
        struct telemetry sample = chain_sample(rank, SECOND, MIB);
        sample.job = intern(SLICE("small"));
        chain_add(chain, &sample);
    }
    chain_evaluate(chain, 0, true);
    ck_assert_uint_eq(chain->batch.evaluation_count, 7);
    uint32_t all = 0;
    for (uint32_t i = 0; i < 7; i++)
        all += chain->batch.evaluations[i].rank_count;
    ck_assert_uint_le(all, 4 * 8);
    // Of 32, the six that want all of them get 4 or 5 each; the seventh finds room.
    const struct evaluation *large = evaluation_of(chain, "large-5");
    ck_assert_uint_ge(large->rank_count, 4);
    ck_assert(tells_of_max_ranks(large));
    const struct evaluation *small = evaluation_of(chain, "small");
    ck_assert_uint_ge(small->rank_count, 2);
    chain_end(chain);
}
END_TEST

START_TEST(test_one_job_has_max_ranks) {
    struct chain *chain = chain_new(true);
    chain->config.rank_group.max_ranks = 8;
    chain->config.job_filter.job_id = "each";
    chain_start(chain);
    for (int32_t i = 0; i < 100; i++) {
        struct telemetry sample = chain_sample(i, SECOND, MIB);
        sample.job = intern(SLICE("large"));
        chain_add(chain, &sample);
    }
    for (int32_t rank = 0; rank < 8; rank++) {
        struct telemetry sample = chain_sample(rank, SECOND, MIB);
        sample.job = intern(SLICE("small"));
        chain_add(chain, &sample);
    }
    chain_evaluate(chain, 0, true);
    ck_assert_uint_eq(evaluation_of(chain, "large")->rank_count, 8);
    ck_assert(tells_of_max_ranks(evaluation_of(chain, "large")));
    ck_assert_uint_eq(evaluation_of(chain, "small")->rank_count, 8);
    ck_assert(!tells_of_max_ranks(evaluation_of(chain, "small")));
    chain_end(chain);
}
END_TEST

START_TEST(test_each_job_is_judged_by_itself) {
    struct chain *chain = chain_new(true);
    chain->config.job_filter.job_id = "each";
    chain_start(chain);
    for (int tick = 0; tick < 50; tick++)
        for (int32_t rank = 0; rank < 2; rank++) {
            struct telemetry sample =
                chain_sample(rank, SECOND + (uint64_t)tick * 100 * MS,
                             (1000 + (rank == 1 && tick > 20 ? (tick - 20) * 40 : 0)) * MIB);
            chain_add(chain, &sample);
            sample.job = intern(SLICE("job-b"));
            sample.rank = 1 - rank;
            chain_add(chain, &sample);
            sample.job = STRING_NONE;
            chain_add(chain, &sample);
        }
    const struct batch *batch = chain_evaluate(chain, 0, true);
    ck_assert_uint_eq(batch->evaluation_count, 3);
    ck_assert_uint_eq(batch->verdicts.count, 3);
    ck_assert(slice_equal(batch->verdicts.items[0].entities[0].name, SLICE("1")));
    ck_assert(slice_equal(batch->verdicts.items[1].entities[0].name, SLICE("0")));
    chain_end(chain);
}
END_TEST

START_TEST(test_a_named_job_is_all_that_is_seen) {
    struct chain *chain = chain_new(true);
    chain->config.job_filter.job_id = "job-b";
    chain_start(chain);
    chain_add_sample(chain, 0, SECOND, MIB);
    struct telemetry sample = chain_sample(5, SECOND, MIB);
    sample.job = intern(SLICE("job-b"));
    chain_add(chain, &sample);
    sample.job = STRING_NONE;
    sample.rank = 6;
    chain_add(chain, &sample);
    const struct evaluation *evaluation = &chain_evaluate(chain, 0, true)->evaluations[0];
    ck_assert_uint_eq(evaluation->rank_count, 1);
    ck_assert_int_eq(evaluation->ranks[0].series->rank, 5);
    chain_end(chain);
}
END_TEST

START_TEST(test_an_unbelievable_world_is_not_listed) {
    struct chain *chain = chain_begin(true);
    struct telemetry sample = chain_sample(0, SECOND, MIB);
    sample.world_size = 1000000000;
    chain_add(chain, &sample);
    const struct evaluation *evaluation = &chain_evaluate(chain, 0, true)->evaluations[0];
    ck_assert_int_eq(evaluation->world_size, 1);
    ck_assert_uint_eq(evaluation->missing_count, 0);
    ck_assert_uint_ge(evaluation->notes.count, 1);
    chain_end(chain);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("chain");
    TCase *tests = tcase_create("chain");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, test_step_by_step_equals_at_once, 0, 30);
    tcase_add_loop_test(tests, test_senders_are_not_equally_far, 0, 10);
    tcase_add_test(tests, test_swings_are_nobodys_fault);
    tcase_add_test(tests, test_a_leak_amid_swings_is_found);
    tcase_add_test(tests, test_attributes_of_a_leak);
    tcase_add_loop_test(tests, test_a_slow_leak_under_swings_is_found, 0, 2);
    tcase_add_test(tests, test_lows_that_begin_in_a_warm_up_are_no_leak);
    tcase_add_test(tests, test_a_larger_batch_is_common_growth);
    tcase_add_test(tests, test_warm_up_on_all_ranks_is_common_growth);
    tcase_add_test(tests, test_flat_use_gives_no_verdict);
    tcase_add_test(tests, test_a_name_settles_is_updated_and_resolved);
    tcase_add_loop_test(tests, test_a_line_is_written_for_what_matters, 0, 2);
    tcase_add_test(tests, test_an_earlier_rank_that_reports_late_replaces_the_name);
    tcase_add_test(tests, test_a_restart_begins_a_generation);
    tcase_add_test(tests, test_one_restarted_rank_of_four_is_no_generation);
    tcase_add_test(tests, test_memory_stays_bounded_with_retention);
    tcase_add_test(tests, test_a_rank_that_turns_up_with_old_samples_is_counted_right);
    tcase_add_test(tests, test_what_expires_goes_before_the_next_evaluation);
    tcase_add_test(tests, test_bounds_are_kept_and_said);
    tcase_add_test(tests, test_one_job_has_max_ranks);
    tcase_add_test(tests, test_a_large_job_leaves_room_for_others);
    tcase_add_test(tests, test_each_job_is_judged_by_itself);
    tcase_add_test(tests, test_a_named_job_is_all_that_is_seen);
    tcase_add_test(tests, test_an_unbelievable_world_is_not_listed);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
