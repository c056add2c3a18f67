// SPDX-License-Identifier: Apache-2.0
// Made-up jobs that can be told to a chain again and again, in batches of any size, the chain being
// taken apart and loaded again wherever one likes: in what may as well be another process, since
// all strings get other ids.
#pragma once

#include "tests/processors/state_copy.h"

#include <check.h>

enum { STEPS_MAX = 4000, JOBS_MAX = 3, RANKS_MAX = 5 };

// One event or one evaluation; texts instead of ids, so that it can be told again.
struct step {
    bool evaluate, last;
    uint64_t time_ns; // or as_of_ns
    char job[16];     // "": none
    char session[40]; // "": none
    char label[24];   // of a phase boundary; "": a sample
    char scope[96];
    bool enter;
    int32_t rank;
    int64_t pid, used_bytes, thread;
    struct carried carried;
};

struct story {
    bool once;
    const char *job_id;
    int64_t retention_ns, idle_ns, settle_ns;
    int64_t max_jobs;
    struct step steps[STEPS_MAX];
    uint32_t count;
    // While it is made up:
    uint64_t now_ns;
    uint32_t jobs, ranks;
    bool late, phases, carries, nameless;
    int leaker[JOBS_MAX];
    uint32_t session[JOBS_MAX][RANKS_MAX];
    uint64_t session_ns[JOBS_MAX][RANKS_MAX];
};

static inline uint32_t dice(uint32_t sides) {
    return (uint32_t)rand() % sides;
}

static inline struct step *add_step(struct story *story) {
    ck_assert_uint_lt(story->count, STEPS_MAX);
    struct step *step = &story->steps[story->count++];
    *step = (struct step){0};
    return step;
}

static inline void who(const struct story *story, struct step *step, uint32_t job, uint32_t rank) {
    if (!(story->nameless && dice(4) == 0))
        snprintf(step->job, sizeof step->job, "job-%u", job);
    if (story->session[job][rank] > 0)
        snprintf(step->session, sizeof step->session, "s-%u-%u-%u", job, rank,
                 story->session[job][rank]);
    step->rank = (int32_t)rank;
    step->pid = 100 + rank + (story->session[job][rank] == 0 ? 0 : 10 * job);
    if (story->carries && story->session[job][rank] > 0)
        step->carried = (struct carried){.first_sample_ns = story->session_ns[job][rank] - 5 * MS,
                                         .generation = story->session[job][rank]};
}

static inline void tell_sample(struct story *story, uint32_t job, uint32_t rank) {
    struct step *step = add_step(story);
    who(story, step, job, rank);
    step->time_ns = story->now_ns;
    if (story->late && dice(12) == 0)
        step->time_ns -= (uint64_t)dice(3000) * MS;
    int64_t grown = 0;
    if (story->leaker[job] == (int)rank && story->now_ns > 4 * SECOND)
        grown = (int64_t)((story->now_ns - 4 * SECOND) / MS) * MIB / 8;
    step->used_bytes = (1000 + (int64_t)dice(3) * 60) * MIB + grown + (int64_t)dice(1000) * 1024;
}

static inline void tell_phase(struct story *story, uint32_t job, uint32_t rank) {
    static const char *const labels[] = {"epoch", "epoch / step", "epoch / step / backward"};
    struct step *step = add_step(story);
    who(story, step, job, rank);
    step->time_ns = story->now_ns;
    step->enter = dice(3) > 0;
    uint32_t depth = dice(3);
    snprintf(step->label, sizeof step->label, "%s", labels[depth]);
    snprintf(step->scope, sizeof step->scope, "scope-%u-%0*u", depth, dice(2) == 0 ? 1 : 80, depth);
    step->thread = dice(2);
}

static inline void tell_evaluation(struct story *story, uint64_t as_of_ns, bool last) {
    struct step *step = add_step(story);
    step->evaluate = true;
    step->time_ns = as_of_ns;
    step->last = last;
}

static inline void story_begin(struct story *story, unsigned seed) {
    static const char *const choices[] = {"auto", "each", "job-1"};
    srand(seed);
    memset(story, 0, offsetof(struct story, steps));
    story->count = 0;
    story->once = seed % 3 == 0;
    story->job_id = choices[seed / 3 % 3];
    story->retention_ns = dice(2) == 0 ? DURATION_SPECIAL : (int64_t)((2 + dice(4)) * SECOND);
    story->idle_ns = dice(2) == 0 ? DURATION_SPECIAL : (int64_t)((2 + dice(4)) * SECOND);
    story->settle_ns = (int64_t)(dice(3) * SECOND);
    story->max_jobs = dice(8) == 0 ? 2 : 64;
    story->now_ns = SECOND;
    story->jobs = 1 + dice(JOBS_MAX);
    story->ranks = 2 + dice(RANKS_MAX - 1);
    story->late = dice(2) == 0;
    story->phases = dice(2) == 0;
    story->carries = dice(3) == 0;
    story->nameless = dice(4) == 0;
    bool sessions = dice(4) > 0;
    for (uint32_t job = 0; job < JOBS_MAX; job++) {
        story->leaker[job] = dice(3) == 0 ? -1 : (int)dice(story->ranks);
        for (uint32_t rank = 0; rank < RANKS_MAX; rank++) {
            story->session[job][rank] = sessions;
            story->session_ns[job][rank] = SECOND;
        }
    }
}

static inline void restart_ranks(struct story *story, uint32_t job) {
    for (uint32_t rank = 0; rank < story->ranks; rank++)
        if (dice(4) > 0) {
            story->session[job][rank]++;
            story->session_ns[job][rank] = story->now_ns;
        }
}

// Some 15 s of up to three jobs; each may be silent for a while, restart, or end.
static inline void make_up(struct story *story, unsigned seed) {
    story_begin(story, seed);
    uint64_t due_ns = 2 * SECOND;
    bool speaks[JOBS_MAX] = {true, true, true};
    while (story->count < 1200 && story->now_ns < 16 * SECOND) {
        story->now_ns += (uint64_t)(1 + dice(40)) * MS;
        for (; !story->once && story->now_ns > due_ns + 500 * MS; due_ns += SECOND)
            tell_evaluation(story, due_ns, false);
        uint32_t job = dice(story->jobs);
        if (dice(150) == 0)
            speaks[job] = !speaks[job];
        if (dice(200) == 0)
            restart_ranks(story, job);
        if (!speaks[job])
            continue;
        uint32_t rank = dice(story->ranks);
        bool phase = story->phases && dice(5) == 0;
        if (phase)
            tell_phase(story, job, rank);
        // Without a session a phase is known of its very instant only.
        if (!phase || story->session[job][rank] == 0)
            tell_sample(story, job, rank);
    }
    tell_evaluation(story, UINT64_MAX, true);
}

static inline struct chain *story_chain(const struct story *story) {
    struct chain *chain = chain_new(story->once);
    chain->config.job_filter.job_id = story->job_id;
    chain->config.job_filter.max_jobs = story->max_jobs;
    chain->config.job_filter.idle_jobs_expire.ns = story->idle_ns;
    chain->config.rank_group.retention.ns = story->retention_ns;
    chain->config.phase_attribution.retention.ns = story->retention_ns;
    chain->config.spike_detect.min_growth.bytes = 20 << 20;
    chain->config.spike_detect.min_ratio = 0.02;
    chain->timing.settle.ns = story->settle_ns;
    chain_start(chain);
    return chain;
}

static inline string_id name_of(const char *text) {
    return text[0] == '\0' ? STRING_NONE : intern(slice_of(text));
}

static inline void feed_step(struct chain *chain, const struct step *step) {
    struct telemetry telemetry = chain_sample(step->rank, step->time_ns, step->used_bytes);
    telemetry.job = name_of(step->job);
    telemetry.session = name_of(step->session);
    telemetry.pid = step->pid;
    telemetry.world_size = step->pid % 2 == 0 ? 4 : 5;
    if (step->label[0] != '\0') {
        struct phase_scope *scope = arena_zero(&chain->events_arena, 1, sizeof *scope);
        struct slice scope_id = slice_of(step->scope);
        scope->label = intern(slice_of(step->label));
        scope->depth = 1;
        scope->scope_id = arena_copy(&chain->events_arena, scope_id);
        scope->thread_id = step->thread;
        scope->thread_name = intern(SLICE("main"));
        telemetry.scope = scope;
        telemetry.type = step->enter ? TELEMETRY_PHASE_ENTER : TELEMETRY_PHASE_EXIT;
    }
    chain_add(chain, &telemetry);
    if (step->carried.generation == 0)
        return;
    struct carried *carried = arena_take(&chain->events_arena, sizeof *carried);
    *carried = step->carried;
    chain->pending[chain->pending_count - 1].carried = carried;
}

// Takes the chain apart and makes another of what it said that it remembers.
static inline struct chain *reborn(const struct story *story, struct chain *chain) {
    static unsigned births;
    chain_flush(chain);
    struct state_copy copy;
    state_save(chain, &copy);
    chain_end(chain);
    intern_release();
    for (unsigned i = births++ % 7 + 1; i > 0; i--) {
        char text[24];
        snprintf(text, sizeof text, "other-%u", i);
        intern(slice_of(text));
    }
    intern(SLICE("node0"));
    intern(SLICE("main"));
    intern(SLICE("job-2"));
    chain = story_chain(story);
    state_load(chain, &copy);
    state_copy_release(&copy);
    return chain;
}

typedef void write_function(const struct batch *batch, bool last, struct buffer *out);

// `write` puts down what each evaluation says; cuts[i]: a cut before step i (NULL: none).
static inline void tell(const struct story *story, uint32_t batch_size, const bool *cuts,
                        write_function *write, struct buffer *out) {
    buffer_reset(out);
    struct chain *chain = story_chain(story);
    for (uint32_t i = 0; i < story->count; i++) {
        const struct step *step = &story->steps[i];
        if (cuts != NULL && cuts[i])
            chain = reborn(story, chain);
        if (step->evaluate) {
            write(chain_evaluate(chain, step->time_ns, step->last), step->last, out);
            continue;
        }
        feed_step(chain, step);
        if (chain->pending_count == batch_size)
            chain_flush(chain);
    }
    chain_end(chain);
    intern_release();
}

static inline void check_same(unsigned seed, const struct buffer *want, const struct buffer *got) {
    if (want->size == got->size && memcmp(want->data, got->data, want->size) == 0)
        return;
    size_t at = 0;
    while (at < want->size && at < got->size && want->data[at] == got->data[at])
        at++;
    size_t from = at < 300 ? 0 : at - 300;
    ck_abort_msg("seed %u differs at byte %zu:\n%.*s\n-- instead of --\n%.*s", seed, at,
                 (int)(got->size - from < 600 ? got->size - from : 600), got->data + from,
                 (int)(want->size - from < 600 ? want->size - from : 600), want->data + from);
}
