// SPDX-License-Identifier: Apache-2.0
// Says that something failed of which no detector can say why. See README.md for the rules.
//
// Stands behind all other detectors. Keeps signs of failures (signs.c); at an evaluation those that
// a verdict explains are left out, and what is left is told, one verdict for each job and stretch
// of time. O(1) an event; an evaluation O(signs log signs), and for each new sign the verdicts that
// stand, for each changed verdict the signs.
#include "base/sort.h"
#include "base/text/cut.h"
#include "processors/cluster/causes.h"
#include "processors/cluster/compare.h"
#include "processors/cluster/detector.h"
#include "processors/cluster/progress_log.h"
#include "processors/cluster/restart.h"
#include "processors/cluster/verdict_builder.h"
#include "processors/cluster/xid_text.h"
#include "processors/unexplained/peers.h"
#include "processors/unexplained/repeats.h"
#include "processors/unexplained/signs.h"
#include "processors/unexplained/states.h"

#include <inttypes.h>
#include <stdlib.h>

#define PATTERN "unexplained"

// Characters of a sign in the headline, so that the number of the others has room.
enum { SIGNS_SHOWN = 10, OPEN_MAX = 1024, CONFIDENCE = 50, TOLD_MAX = 185 };

// A line about an end may be written before the end that is its cause: clocks differ, and launchers
// are quicker than collectors.
#define EARLY_NS (60 * UINT64_C(1000000000))

// A job that still lives so long after a sign has survived it.
#define SURVIVED_NS (120 * UINT64_C(1000000000))

// Which logs there were.
enum log_seen { SEEN_KERNEL = 1, SEEN_RANKS = 2, SEEN_LAUNCHER = 4, SEEN_JOB = 8 };

struct unexplained_config {
    struct duration window, gap, hold;
    int64_t max_signs;
};

// A verdict that stands, and its first sign, by which it is built again when it ends.
struct open_row {
    struct row_head head;
    char id[VERDICT_ID_SIZE];
    uint32_t round;
    string_id job; // that it was told of
    struct sign first;
};

KEYED_ROW_CHECK(struct open_row, id);

struct unexplained {
    struct detector_base base;
    struct unexplained_config config;
    struct keyed_rows signs; // SIGN_ROWS
    struct row_bound bound;
    struct keyed_rows ends; // STATE_END_ROWS
    struct row_bound ends_bound;
    struct keyed_rows open; // OPEN_ROWS
    struct row_bound open_bound;
    struct progress_log progress;
    uint32_t logs;  // enum log_seen bits
    uint32_t round; // number of this evaluation
    bool lives;     // some job writes samples now
};

static const struct row_type OPEN_ROWS = {.size = sizeof(struct open_row),
                                          .key_size = VERDICT_ID_SIZE,
                                          .rows_per_chunk = 4,
                                          .strings = {offsetof(struct open_row, job),
                                                      offsetof(struct open_row, first.key.job),
                                                      offsetof(struct open_row, first.key.node),
                                                      offsetof(struct open_row, first.key.source),
                                                      offsetof(struct open_row, first.source)}};

static const struct option OPTIONS[] = {
    OPTION(struct unexplained_config, window, OPTION_DURATION, .default_value = "10m", .min = 1,
           .max = 86400,
           .help = "a verdict explains what fails up to so long after it was last seen"),
    OPTION(struct unexplained_config, gap, OPTION_DURATION, .default_value = "1h", .min = 1,
           .max = 86400, .help = "signs that are further apart are of another failure"),
    OPTION(struct unexplained_config, hold, OPTION_DURATION, .default_value = "24h", .min = 60,
           .max = 31536000, .help = "how long a sign is kept while culprit goes on"),
    OPTION(struct unexplained_config, max_signs, OPTION_INT, .default_value = "16384", .min = 16,
           .max = 1048576, .help = "signs that are kept, 600 bytes each; the oldest go first"),
};

static const struct state_row STATE[] = {
    STATE_ROWS(struct unexplained, signs, "unexplained.signs", SIGN_ROWS),
    STATE_ROWS(struct unexplained, ends, "unexplained.ends", STATE_END_ROWS),
    STATE_ROWS(struct unexplained, open, "unexplained.open", OPEN_ROWS),
    STATE_ROWS(struct unexplained, progress.rows, "unexplained.progress", PROGRESS_ROWS),
    STATE_STRUCT(struct unexplained, logs, "logs"),
    STATE_STRUCT(struct unexplained, round, "round"),
    STATE_PART(struct unexplained, base.ledger, "unexplained.verdicts", VERDICT_LEDGER),
};

// -- what comes -----------------------------------------------------------------------------------

static uint32_t log_of(const struct event *event) {
    if (event->kind == EVENT_KERNEL)
        return SEEN_KERNEL;
    if (event->kind == EVENT_APP_LINE)
        return SEEN_RANKS;
    if (event->kind != EVENT_OBSERVATION)
        return SEEN_JOB;
    enum observation_kind kind = event->observation->kind;
    if (kind <= OBSERVATION_GPU_HARDWARE_ERROR)
        return SEEN_KERNEL;
    if (kind >= OBSERVATION_WATCHDOG_END && kind <= OBSERVATION_ABORT)
        return SEEN_RANKS;
    if (kind == OBSERVATION_PROGRESS)
        return SEEN_RANKS;
    bool of_launcher = kind >= OBSERVATION_LAUNCHER_FAILED && kind <= OBSERVATION_SLURM_STATE;
    return of_launcher ? SEEN_LAUNCHER : 0;
}

static void take(void *instance, const struct event *event, struct arena *scratch) {
    struct unexplained *self = instance;
    self->logs |= log_of(event);
    progress_log_take(&self->progress, event, scratch);
    sign_take(&self->signs, &self->bound, event, scratch);
    state_ends_take(&self->ends, &self->ends_bound, event, scratch);
}

static bool is_timeless(const struct sign *sign) {
    return (sign->flags & SIGN_TIMELESS) != 0;
}

// -- what is explained ----------------------------------------------------------------------------

static bool is_on(const struct entity *entity, struct slice node) {
    struct slice name = entity->name;
    if (strcmp(entity->kind, "node") == 0)
        return slice_equal(name, node);
    // "NODE/0000:45:00"
    return name.size > node.size && name.data[node.size] == '/' &&
           memcmp(name.data, node.data, node.size) == 0;
}

// Whether the verdict is about other machines than the one that says this of itself. What a rank
// says may follow from what happened on any machine of its job.
static bool is_elsewhere(const struct verdict *verdict, const struct sign *sign) {
    bool names_node = false;
    if (sign->key.node == STRING_NONE || (sign->flags & SIGN_OF_NODE) == 0)
        return false;
    for (uint32_t i = 0; i < verdict->entity_count; i++) {
        const struct entity *entity = &verdict->entities[i];
        if (is_on(entity, intern_slice(sign->key.node)))
            return false;
        names_node = names_node || strcmp(entity->kind, "node") == 0;
    }
    return names_node;
}

// Whether it is known when it began.
static bool is_timed(const struct verdict *verdict) {
    if (verdict_time_of(verdict) == TIME_OF_FILE)
        return false;
    for (uint32_t i = 0; i < verdict->evidence_count; i++)
        if (!verdict->evidence[i].has_time && verdict->evidence[i].role == EVIDENCE_CAUSE)
            return false;
    return true;
}

static bool is_within(const struct verdict *verdict, const struct sign *sign, uint64_t window_ns) {
    return (sign->flags & SIGN_TIMELESS) != 0 || !is_timed(verdict) ||
           (sign->last_ns + EARLY_NS >= verdict->start_ns &&
            sign->time_ns <= verdict->end_ns + window_ns);
}

// Evidence of another name for the same event: of the same moment, of that kind or place.
static bool is_evidence(const struct evidence *evidence, const struct sign *sign) {
    const char *kind = observation_name((enum observation_kind)sign->key.kind);
    struct slice node = intern_slice(sign->key.node), uid = evidence->uid;
    bool same_kind = memmem(uid.data, uid.size, kind, strlen(kind)) != NULL;
    bool same_node = node.size > 0 && memmem(uid.data, uid.size, node.data, node.size) != NULL;
    if (sign_time_of(sign) != TIME_OF_EVENT)
        return !evidence->has_time && same_kind;
    return evidence->has_time && evidence->time_ns == sign->time_ns && (same_kind || same_node);
}

static bool names_sign(const struct verdict *verdict, const struct sign *sign) {
    for (uint32_t i = 0; i < verdict->evidence_count; i++)
        if (is_evidence(&verdict->evidence[i], sign))
            return true;
    return false;
}

static bool explains(const struct unexplained *self, const struct verdict *verdict,
                     const struct sign *sign) {
    if (verdict->job != STRING_NONE && sign->key.job != STRING_NONE &&
        verdict->job != sign->key.job)
        return false;
    if (names_sign(verdict, sign))
        return true;
    return verdict->severity >= SEVERITY_WARNING && !is_elsewhere(verdict, sign) &&
           is_within(verdict, sign, duration_ns(self->config.window));
}

// New signs are compared with all verdicts, others with those that changed.
static void mark_explained(struct unexplained *self, const struct batch *batch) {
    struct sign *sign;
    for (uint32_t at = 0; (sign = keyed_rows_next(&self->signs, &at)) != NULL;) {
        bool is_new = (sign->flags & SIGN_LOOKED_AT) == 0;
        for (uint32_t i = 0; i < batch->verdicts.count && (sign->flags & SIGN_EXPLAINED) == 0;
             i++) {
            const struct verdict *verdict = &batch->verdicts.items[i];
            if ((is_new || !verdict->unchanged) && explains(self, verdict, sign))
                sign->flags |= SIGN_EXPLAINED;
        }
        sign->flags |= SIGN_LOOKED_AT;
    }
}

static int compare_processes(const void *left, const void *right) {
    return sign_compare_process(*(const struct sign *const *)left,
                                *(const struct sign *const *)right);
}

// The same may be told by two logs of one kernel, of which one says times since the boot: what
// happened to a process of a machine happened once.
static void mark_copies(struct unexplained *self, struct arena *arena) {
    uint32_t count = 0;
    const struct sign **known =
        arena_take(arena, (keyed_rows_count(&self->signs) + 1) * sizeof(const struct sign *));
    struct sign *sign;
    for (uint32_t at = 0; (sign = keyed_rows_next(&self->signs, &at)) != NULL;)
        if ((sign->flags & SIGN_PROCESS) != 0 && (sign->flags & SIGN_EXPLAINED) != 0)
            known[count++] = sign;
    if (count == 0)
        return;
    sort_stable(known, count, sizeof *known, arena, compare_processes);
    for (uint32_t at = 0; (sign = keyed_rows_next(&self->signs, &at)) != NULL;) {
        const struct sign *wanted = sign;
        if ((sign->flags & SIGN_PROCESS) != 0 && (sign->flags & SIGN_EXPLAINED) == 0 &&
            bsearch(&wanted, known, count, sizeof *known, compare_processes) != NULL)
            sign->flags |= SIGN_EXPLAINED;
    }
}

static void mark_over(struct unexplained *self) {
    struct sign *sign;
    for (uint32_t at = 0; (sign = keyed_rows_next(&self->signs, &at)) != NULL;)
        sign->over_ns = state_end_of(&self->ends, sign);
}

// -- what was survived ----------------------------------------------------------------------------

// A job whose ranks write samples.
struct living {
    const struct evaluation *evaluation;
    uint64_t since_ns, until_ns; // its first sample; until when half of its ranks had some
};

static struct living look_at_job(const struct evaluation *evaluation, struct arena *arena) {
    struct living living = {evaluation, UINT64_MAX, 0};
    uint64_t *last = arena_take(arena, evaluation->rank_count * sizeof *last);
    for (uint32_t i = 0; i < evaluation->rank_count; i++) {
        const struct rank_view *rank = &evaluation->ranks[i];
        last[i] = rank->last_ns;
        living.since_ns = rank->first_ns < living.since_ns ? rank->first_ns : living.since_ns;
    }
    sort_stable(last, evaluation->rank_count, sizeof *last, arena, compare_by_u64);
    living.until_ns = last[evaluation->rank_count / 2];
    return living;
}

// Whether the rank that says it went on as well, where it is one of this job.
static bool went_on(const struct evaluation *evaluation, const struct sign *sign) {
    for (uint32_t i = 0; i < evaluation->rank_count; i++)
        if (evaluation->ranks[i].series->rank == sign->key.rank)
            return evaluation->ranks[i].last_ns > sign->last_ns;
    return true;
}

// What hits a process, or what only the cluster says of a node, shows in who writes samples. A
// machine in trouble does not: ranks that wait for its disk write samples, too.
static bool shows_in_samples(const struct sign *sign) {
    return (sign->flags & SIGN_OF_NODE) == 0 || (sign->flags & SIGN_PROCESS) != 0 ||
           sign->key.kind == OBSERVATION_NODE_CONDITION;
}

static bool is_open(const struct sign *sign) {
    return (sign->flags & (SIGN_EXPLAINED | SIGN_TIMELESS)) == 0 && shows_in_samples(sign);
}

// All jobs that it may be about went on.
static bool is_survived(const struct living *jobs, uint32_t count, const struct sign *sign) {
    bool any = false;
    for (uint32_t i = 0; i < count; i++) {
        string_id job = jobs[i].evaluation->job;
        if (job != sign->key.job && job != STRING_NONE && sign->key.job != STRING_NONE)
            continue;
        any = true;
        if (jobs[i].since_ns > sign->time_ns || jobs[i].until_ns < sign->last_ns + SURVIVED_NS ||
            !went_on(jobs[i].evaluation, sign))
            return false;
    }
    return any;
}

// A fault after which the job goes on was caught, or hit somebody else.
static void mark_survived(struct unexplained *self, const struct batch *batch) {
    uint32_t count = 0;
    struct living *jobs = arena_take(batch->arena, (batch->evaluation_count + 1) * sizeof *jobs);
    bool looked = false;
    struct sign *sign;
    self->lives = false;
    for (uint32_t i = 0; i < batch->evaluation_count; i++)
        self->lives |= batch->evaluations[i].rank_count > 0;
    for (uint32_t at = 0; self->lives && (sign = keyed_rows_next(&self->signs, &at)) != NULL;) {
        if (!is_open(sign))
            continue;
        for (uint32_t i = 0; !looked && i < batch->evaluation_count; i++)
            if (batch->evaluations[i].rank_count > 0)
                jobs[count++] = look_at_job(&batch->evaluations[i], batch->arena);
        looked = true;
        if (is_survived(jobs, count, sign))
            sign->flags |= SIGN_EXPLAINED;
    }
}

// Whether some process, job or machine is told to have ended, for whatever reason.
static bool anything_ended(const struct unexplained *self) {
    const struct sign *sign;
    for (uint32_t at = 0; (sign = keyed_rows_next(&self->signs, &at)) != NULL;)
        if ((sign->flags & SIGN_ENDS) != 0 && !sign_is_words(sign))
            return true;
    return false;
}

// The same of a process that goes on counting behind its words, or a job that does so.
static void mark_counted_past(struct unexplained *self, uint64_t now_ns, struct arena *arena) {
    if (keyed_rows_count(&self->progress.rows) == 0)
        return;
    const struct progress_index *index = progress_index_make(&self->progress, now_ns, arena);
    bool ended = anything_ended(self);
    struct sign *sign;
    for (uint32_t at = 0; (sign = keyed_rows_next(&self->signs, &at)) != NULL;) {
        if ((sign->flags & SIGN_EXPLAINED) != 0 || !sign_is_words(sign))
            continue;
        bool is_timed = sign_time_of(sign) == TIME_OF_EVENT;
        struct progress_who who = {.source = sign->source,
                                   .job = sign->key.job,
                                   .node = sign->key.node,
                                   .position = sign->last_position,
                                   .time_ns = is_timed ? sign->last_ns : 0,
                                   .pid = sign->pid,
                                   .rank = sign->key.rank,
                                   .local_rank = sign->local_rank,
                                   .task = -1};
        struct progress_after after = progress_after(index, &who);
        if (ended ? progress_survived(&after) : progress_went_on(&after))
            sign->flags |= SIGN_EXPLAINED;
    }
}

// -- what is left, one failure at a time ----------------------------------------------------------

struct left {
    const struct sign *sign;
    string_id job;
};

// Those of one failure: of one job, none of them further than `gap` from the one before. What has
// no time is of the first failure of its job.
struct failure {
    string_id job;
    const struct sign **signs;
    uint32_t count;
    const bool *again;      // of each sign: another one says the same of the same process
    uint32_t distinct;      // those that are not
    bool is_over;           // all that is told are states that ended
    uint64_t lasts_ns;      // the first that is not; UINT64_MAX: none with a time is
    struct slice peer;      // that all who lost one or did not reach one name; empty: none
    bool is_meeting;        // that is where the job meets, which its processes said before
    const struct sign *odd; // who looked for its job elsewhere than all others; NULL: nobody
    struct slice meeting;   // where these did
};

static int compare_left(const void *left, const void *right) {
    const struct left *a = left, *b = right;
    int order = slice_compare(intern_slice(a->job), intern_slice(b->job));
    return order != 0 ? order : sign_compare(a->sign, b->sign);
}

// The only job that any of them names; STRING_NONE: none or several do.
static string_id only_job(const struct left *left, uint32_t count) {
    string_id job = STRING_NONE;
    for (uint32_t i = 0; i < count; i++) {
        if (left[i].job == STRING_NONE || left[i].job == job)
            continue;
        if (job != STRING_NONE)
            return STRING_NONE;
        job = left[i].job;
    }
    return job;
}

// What comes after `now_ns` is not there yet.
static struct left *gather_left(const struct unexplained *self, uint64_t now_ns,
                                struct arena *arena, uint32_t *count) {
    struct left *left = arena_take(arena, (keyed_rows_count(&self->signs) + 1) * sizeof *left);
    struct sign *sign;
    *count = 0;
    for (uint32_t at = 0; (sign = keyed_rows_next(&self->signs, &at)) != NULL;)
        if ((sign->flags & SIGN_EXPLAINED) == 0 && sign->key.kind != OBSERVATION_JOB_LAYOUT &&
            (is_timeless(sign) || sign->time_ns <= now_ns))
            left[(*count)++] = (struct left){sign, sign->key.job};
    string_id job = only_job(left, *count);
    for (uint32_t i = 0; i < *count; i++)
        if (left[i].job == STRING_NONE)
            left[i].job = job;
    sort_stable(left, *count, sizeof *left, arena, compare_left);
    return left;
}

static void find_ends(struct failure *failure) {
    failure->is_over = true;
    failure->lasts_ns = UINT64_MAX;
    for (uint32_t i = 0; i < failure->count; i++) {
        const struct sign *sign = failure->signs[i];
        failure->is_over = failure->is_over && sign->over_ns != 0;
        if (sign->over_ns == 0 && !is_timeless(sign) && sign->time_ns < failure->lasts_ns)
            failure->lasts_ns = sign->time_ns;
    }
}

// A state that was over before the rest began. One that lasted meanwhile may be its cause.
static bool is_past(const struct failure *failure, const struct sign *sign) {
    return sign->over_ns != 0 && !failure->is_over && sign->over_ns < failure->lasts_ns;
}

static void find_repeats(struct failure *failure, struct arena *arena) {
    failure->again = sign_repeats(failure->signs, failure->count, arena);
    for (uint32_t i = 0; i < failure->count; i++)
        failure->distinct += !failure->again[i];
}

// The next failure, which begins at `*at`, and leaves there where the one behind it begins.
// `timeless`: those of its job without a time, when it is the first.
static struct failure take_failure(const struct left *left, uint32_t count, uint32_t *at,
                                   uint64_t gap_ns, struct arena *arena) {
    uint32_t begin = *at, end = begin + 1;
    string_id job = left[begin].job;
    bool is_first = begin == 0 || left[begin - 1].job != job;
    while (end < count && left[end].job == job && !is_timeless(left[end].sign) &&
           left[end].sign->time_ns <= left[end - 1].sign->last_ns + gap_ns)
        end++;
    uint32_t undated = end;
    while (undated < count && left[undated].job == job && !is_timeless(left[undated].sign))
        undated++;
    struct failure failure = {.job = job};
    failure.signs = arena_take(arena, (count - begin) * sizeof *failure.signs);
    for (uint32_t i = begin; i < end; i++)
        failure.signs[failure.count++] = left[i].sign;
    for (; is_first && undated < count && left[undated].job == job; undated++)
        failure.signs[failure.count++] = left[undated].sign;
    *at = end;
    while (*at < count && left[*at].job == job && is_timeless(left[*at].sign))
        ++*at;
    find_repeats(&failure, arena);
    find_ends(&failure);
    return failure;
}

// What is a sign only beside others, and there are none.
static bool is_beside_nothing(const struct failure *failure) {
    for (uint32_t i = 0; i < failure->count; i++)
        if ((failure->signs[i]->flags & SIGN_BESIDE) == 0)
            return false;
    return true;
}

// -- the other end --------------------------------------------------------------------------------

// What the name of its file or node says.
static bool is_said_by(const struct sign *sign, struct slice host) {
    struct slice path = intern_slice(sign->source), node = intern_slice(sign->key.node);
    const char *slash = path.size == 0 ? NULL : memrchr(path.data, '/', path.size);
    if (slash != NULL)
        path = text_from(path, (size_t)(slash - path.data) + 1);
    return slice_equal(node, host) || text_begins(path, host);
}

// The only other end that they name, which says nothing itself; best as the graver ones call it.
static struct slice only_peer(const struct failure *failure) {
    struct slice peer = SLICE("");
    for (uint32_t i = 0; i < failure->count; i++) {
        struct slice named = sign_peer(failure->signs[i]);
        if (named.size == 0)
            continue;
        if (peer.size > 0 && peers_differ(peer, named))
            return SLICE("");
        if (peer.size == 0 || (failure->signs[i]->flags & SIGN_BESIDE) == 0)
            peer = named;
    }
    for (uint32_t i = 0; i < failure->count && peer.size > 0; i++)
        if (is_said_by(failure->signs[i], peer))
            return SLICE("");
    return peer;
}

// It tells of a connection that was lost, to the store as far as is known.
static bool is_loss(const struct sign *sign) {
    bool has_words = strstr(sign->text, "Connection reset by peer") != NULL ||
                     strstr(sign->text, "Broken pipe") != NULL;
    return sign->key.kind == OBSERVATION_STORE_LOST || sign->key.kind == OBSERVATION_PEER_CLOSED ||
           ((sign->flags & SIGN_FOLLOWS) != 0 && has_words);
}

// All tell of such a loss, and nobody says to whom.
static bool lost_meeting(const struct failure *failure, struct slice host) {
    for (uint32_t i = 0; i < failure->count; i++)
        if (!is_loss(failure->signs[i]) || is_said_by(failure->signs[i], host))
            return false;
    return true;
}

static void find_peer(const struct unexplained *self, struct failure *failure,
                      struct arena *arena) {
    const struct sign *sign, **layouts = arena_take(arena, LAYOUTS_MAX * sizeof *layouts);
    uint32_t count = 0;
    for (uint32_t at = 0;
         count < LAYOUTS_MAX && (sign = keyed_rows_next(&self->signs, &at)) != NULL;)
        if (sign->key.kind == OBSERVATION_JOB_LAYOUT &&
            (sign->key.job == failure->job || sign->key.job == STRING_NONE))
            layouts[count++] = sign;
    failure->peer = only_peer(failure);
    failure->odd = peer_find_odd(layouts, count, &failure->meeting);
    struct slice host = peer_common_host(layouts, count);
    if (failure->peer.size > 0 || host.size == 0 || !lost_meeting(failure, host))
        return;
    failure->peer = host;
    failure->is_meeting = true;
}

// -- the verdict ----------------------------------------------------------------------------------

// The only machine that says of itself that something failed, and not long before; STRING_NONE:
// none or several do.
static string_id only_node(const struct failure *failure) {
    string_id node = STRING_NONE;
    for (uint32_t i = 0; i < failure->count; i++) {
        const struct sign *sign = failure->signs[i];
        if ((sign->flags & SIGN_OF_NODE) == 0 || sign->key.node == node || is_past(failure, sign))
            continue;
        if (node != STRING_NONE)
            return STRING_NONE;
        node = sign->key.node;
    }
    return node;
}

static const char *missing_logs(uint32_t logs, struct arena *arena) {
    static const struct {
        enum log_seen log;
        const char *words;
    } ROWS[] = {{SEEN_RANKS, "the output of each rank"},
                {SEEN_LAUNCHER, "that of the launcher"},
                {SEEN_KERNEL, "the kernel log of each node (journalctl -k)"}};
    const char *text = NULL;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if ((logs & ROWS[i].log) == 0)
            text =
                text == NULL ? ROWS[i].words : arena_format(arena, "%s, %s", text, ROWS[i].words);
    return text;
}

// What is to be done about what is told first, if its words say.
static const char *advice_by_words(const struct sign *telling, struct arena *arena) {
    static const struct text_field fields[] = {{"who", "the process"}, {NULL, NULL}};
    const struct cause_row *cause = cause_find(SLICE(""), slice_of(telling->text));
    return cause == NULL ? NULL : text_fill(arena, cause->advice, fields);
}

static const char *advice(const struct unexplained *self, const struct failure *failure,
                          const struct sign *telling, struct arena *arena) {
    const char *missing = missing_logs(self->logs, arena);
    const char *look = advice_by_words(telling, arena);
    if (failure->odd != NULL)
        look =
            "Give it the address and port where all others look for the job (MASTER_ADDR, "
            "MASTER_PORT, --rdzv-endpoint, coordinator_address).";
    if (look == NULL)
        look =
            "Look at what else was written around that time; --explain shows where "
            "each sign stands.";
    return missing == NULL ? look
                           : arena_format(arena, "%s These were not there and may tell more: %s.",
                                          look, missing);
}

static enum evidence_role role_of(const struct failure *failure, const struct sign *sign) {
    bool own = (sign->flags & (SIGN_FOLLOWS | SIGN_REPORT)) == 0 && !is_past(failure, sign);
    return own ? EVIDENCE_CAUSE : EVIDENCE_CONTEXT;
}

static const char *over_words(const struct sign *sign, struct arena *arena) {
    if (sign->over_ns == 0)
        return "";
    __int128 lasted_ns = (__int128)sign->over_ns - sign->time_ns;
    return arena_format(arena, " (over after %s)", duration_text(lasted_ns, arena));
}

static void tell_sign(struct verdict_builder *builder, const struct failure *failure, uint32_t i) {
    const struct sign *sign = failure->signs[i];
    uint64_t time_ns = sign_time_of(sign) == TIME_OF_EVENT ? sign->time_ns : 0;
    const char *uid = sign_uid(sign, builder->arena);
    builder_evidence(builder, role_of(failure, sign), time_ns, uid, "%s%s", sign->text,
                     over_words(sign, builder->arena));
    if (failure->again[i])
        builder_evidence_repeats(builder, uid);
}

// The first ones, and up to as many that say the same again.
static void tell_signs(struct verdict_builder *builder, const struct failure *failure) {
    uint32_t told = 0, again = 0;
    builder->evidence_max = 2 * SIGNS_SHOWN;
    builder->evidence_in_order = true;
    for (uint32_t i = 0; i < failure->count && told < SIGNS_SHOWN; i++) {
        if (failure->again[i] && again == SIGNS_SHOWN)
            continue;
        tell_sign(builder, failure, i);
        again += failure->again[i];
        told += !failure->again[i];
    }
    builder->verdict.evidence_dropped = failure->distinct - told;
}

static int compare_telling(const struct failure *failure, const struct sign *a,
                           const struct sign *b) {
    return COMPARE_KEYS(COMPARE(is_past(failure, a), is_past(failure, b)),
                        sign_compare_telling(a, b));
}

// The one that tells most of what happened, of equal ones the first.
static const struct sign *most_telling(const struct failure *failure) {
    const struct sign *best = NULL;
    for (uint32_t i = 0; i < failure->count; i++)
        if (!failure->again[i] &&
            (best == NULL || compare_telling(failure, failure->signs[i], best) < 0))
            best = failure->signs[i];
    assert(best != NULL); // what is repeated is there
    return best;
}

// From the first sign to the last; where none has a time, that of something else (time_of).
static void set_times(struct verdict *verdict, const struct failure *failure) {
    verdict->start_ns = verdict->end_ns = failure->signs[0]->time_ns;
    for (uint32_t i = 0; i < failure->count && !is_timeless(failure->signs[i]); i++)
        if (failure->signs[i]->last_ns > verdict->end_ns)
            verdict->end_ns = failure->signs[i]->last_ns;
}

// Crashes of processes that only a kernel log tells of, while nothing speaks of a job: whose they
// were is not known, and a machine has many that nobody misses.
static bool is_of_nobody(const struct unexplained *self, const struct failure *failure) {
    for (uint32_t i = 0; i < failure->count; i++) {
        uint32_t kind = failure->signs[i]->key.kind;
        bool crashed = kind == OBSERVATION_SEGFAULT || kind == OBSERVATION_TRAP;
        if (!crashed && failure->signs[i]->over_ns == 0)
            return false;
    }
    return (self->logs & ~(uint32_t)SEEN_KERNEL) == 0;
}

// What a sign of this kind says of a restart by itself.
static enum restart restart_of_sign(const struct sign *sign) {
    switch ((enum observation_kind)sign->key.kind) {
    case OBSERVATION_JOB_STOPPED:
    case OBSERVATION_SLURM_CANCELLED:
    case OBSERVATION_LAUNCHER_TOLD_TO_STOP:
        return RESTART_STOPPED;
    case OBSERVATION_LAUNCHER_FAILED:
    case OBSERVATION_LAUNCHER_SUMMARY:
    case OBSERVATION_SLURM_TASK_EXIT:
        return (sign->flags & SIGN_TOLD) != 0 ? RESTART_STOPPED : RESTART_UNKNOWN;
    case OBSERVATION_LAUNCH_FAILED:
        return sign->key.node == STRING_NONE ? RESTART_IN_VAIN : RESTART_ELSEWHERE;
    case OBSERVATION_OOM_KILL:
    case OBSERVATION_SLURM_OOM:
        return RESTART_IN_VAIN;
    case OBSERVATION_SOFT_LOCKUP:
    case OBSERVATION_HARD_LOCKUP:
    case OBSERVATION_KERNEL_PANIC:
    case OBSERVATION_MACHINE_CHECK:
    case OBSERVATION_MEMORY_ERROR:
    case OBSERVATION_IO_ERROR:
    case OBSERVATION_FS_ERROR:
    case OBSERVATION_NODE_CONDITION:
    case OBSERVATION_HEALTH_EVENT:
    case OBSERVATION_NODE_FAULT:
        return RESTART_ELSEWHERE;
    default:
        return RESTART_UNKNOWN;
    }
}

// srun lists tasks as killed behind a stop. NCCL's errors are those of a peer mostly, not always;
// so are ends that launchers tell of.
static bool says_of_itself(const struct sign *sign) {
    return sign->key.kind == OBSERVATION_NCCL_ERROR ||
           sign->key.kind == OBSERVATION_LAUNCHER_FAILED ||
           ((sign->flags & SIGN_FOLLOWS) == 0 && sign->key.kind != OBSERVATION_SLURM_TASK_EXIT);
}

// What stopped the job may have followed from what somebody says of itself.
static enum restart restart_of(const struct failure *failure) {
    enum restart restart = RESTART_UNKNOWN;
    bool own = false;
    for (uint32_t i = 0; i < failure->count; i++) {
        const struct sign *sign = failure->signs[i];
        enum restart by_sign = restart_of_sign(sign);
        own |= by_sign == RESTART_UNKNOWN && says_of_itself(sign);
        if (restart == RESTART_UNKNOWN || by_sign == RESTART_ELSEWHERE ||
            (by_sign == RESTART_IN_VAIN && restart != RESTART_ELSEWHERE))
            restart = by_sign;
    }
    return restart == RESTART_STOPPED && own ? RESTART_UNKNOWN : restart;
}

// "rank 3: looks for its job at gpu-b01:9999, all others at gpu-b01:8490"
static const char *telling_words(const struct failure *failure, const struct sign *telling,
                                 struct arena *arena) {
    if (failure->odd != NULL)
        return arena_format(arena, "%s, all others at %.*s", failure->odd->text,
                            (int)failure->meeting.size, failure->meeting.data);
    const char *text = text_shown(slice_of(telling->text), TOLD_MAX, arena);
    return failure->is_meeting ? arena_format(arena, "%s; its job meets at %.*s", text,
                                              (int)failure->peer.size, failure->peer.data)
                               : text;
}

static void name_suspects(const struct failure *failure, struct verdict_builder *builder) {
    string_id node = only_node(failure);
    const struct sign *odd = failure->odd;
    if (odd != NULL && odd->key.rank >= 0)
        builder_entity(builder, "rank", ROLE_SUSPECT,
                       arena_format(builder->arena, "%" PRId32, odd->key.rank));
    if (odd != NULL)
        return;
    if (node != STRING_NONE)
        builder_entity(builder, "node", ROLE_SUSPECT, intern_slice(node).data);
    if (failure->peer.size > 0)
        builder_entity(
            builder, "node", ROLE_SUSPECT,
            arena_format(builder->arena, "%.*s", (int)failure->peer.size, failure->peer.data));
}

static void build(const struct unexplained *self, const struct failure *failure,
                  struct verdict_builder *builder) {
    const struct sign *first = failure->signs[0];
    struct arena *arena = builder->arena;
    bool ends = false;
    for (uint32_t i = 0; i < failure->count; i++)
        ends = ends || (failure->signs[i]->flags & SIGN_ENDS) != 0;
    builder_begin(builder, arena, PATTERN, "failure");
    bool quiet = (failure->is_over && !ends) || is_of_nobody(self, failure);
    enum severity severity = quiet ? SEVERITY_INFO : ends ? SEVERITY_ERROR : SEVERITY_WARNING;
    builder_rate(builder, severity, CONFIDENCE, ends ? "inspect_rank" : "monitor");
    builder->verdict.job = failure->job;
    builder_partial(builder, "nothing that was read says why");
    restart_tell(builder, restart_of(failure));
    name_suspects(failure, builder);
    tell_signs(builder, failure);
    if (failure->odd != NULL)
        builder_evidence(builder, EVIDENCE_CAUSE, 0, sign_uid(failure->odd, arena), "%s",
                         failure->odd->text);
    const struct sign *telling = most_telling(failure);
    builder->verdict.headline = slice_of(
        arena_format(arena, "Not explained: %s%s%s", telling_words(failure, telling, arena),
                     over_words(telling, arena),
                     failure->distinct == 1
                         ? ""
                         : arena_format(arena, " (and %u more sign%s of a failure)",
                                        failure->distinct - 1, failure->distinct == 2 ? "" : "s")));
    builder->verdict.remediation = slice_of(advice(self, failure, telling, arena));
    if (sign_time_of(first) != TIME_OF_EVENT)
        builder_attribute(builder, "culprit.time_of", slice_of(time_of_name(sign_time_of(first))));
    builder_finish(
        builder, (struct slice[]){intern_slice(failure->job), slice_of(sign_uid(first, arena))}, 2);
    set_times(&builder->verdict, failure);
}

static void note_open(struct unexplained *self, const struct verdict *verdict,
                      const struct sign *first, struct arena *arena) {
    char key[VERDICT_ID_SIZE] = "";
    memcpy(key, verdict->id, strlen(verdict->id));
    struct open_row *row = row_bound_take(&self->open, &self->open_bound, key,
                                          offsetof(struct open_row, first.time_ns), arena);
    row->round = self->round;
    row->job = verdict->job;
    row->first = *first;
}

static void report(struct unexplained *self, struct batch *batch, const struct failure *failure) {
    struct verdict_builder builder = {.arena = batch->arena};
    build(self, failure, &builder);
    // The verdict that explains it may be on its way; and where jobs live, whether they go on.
    uint64_t patience_ns = self->lives ? SURVIVED_NS : self->base.patience_ns;
    if (self->base.live &&
        verdict_ledger_waits(&self->base.ledger, batch, &builder.verdict, patience_ns))
        return;
    note_open(self, &builder.verdict, failure->signs[0], batch->arena);
    verdict_ledger_report(&self->base.ledger, batch, &builder.verdict, false, 0);
}

// What was told and is explained now, or of another failure that began before, or forgotten.
static void end_others(struct unexplained *self, struct batch *batch) {
    struct open_row *row;
    for (uint32_t at = 0; (row = keyed_rows_next(&self->open, &at)) != NULL;) {
        if (row->round == self->round)
            continue;
        struct verdict_builder builder = {.arena = batch->arena};
        const struct sign *first = &row->first;
        struct failure failure = {.job = row->job,
                                  .signs = &first,
                                  .count = 1,
                                  .again = (const bool[]){false},
                                  .distinct = 1};
        find_ends(&failure);
        build(self, &failure, &builder);
        verdict_ledger_report(&self->base.ledger, batch, &builder.verdict, true, 0);
        keyed_rows_remove(&self->open, row);
    }
}

static void judge(void *instance, struct batch *batch, uint64_t now_ns) {
    struct unexplained *self = instance;
    uint64_t hold_ns = duration_ns(self->config.hold);
    uint32_t count;
    if (self->base.live && now_ns > hold_ns) {
        rows_expire(&self->signs, offsetof(struct sign, time_ns), now_ns - hold_ns);
        row_bound_expire(&self->progress.rows, &self->progress.bound,
                         offsetof(struct progress_row, time_ns), now_ns - hold_ns);
    }
    detector_count_evicted(&self->base, self->bound.evicted + self->progress.bound.evicted);
    self->round++;
    mark_explained(self, batch);
    mark_copies(self, batch->arena);
    mark_over(self);
    mark_survived(self, batch);
    mark_counted_past(self, now_ns, batch->arena);
    const struct left *left = gather_left(self, now_ns, batch->arena, &count);
    for (uint32_t at = 0; at < count;) {
        struct failure failure =
            take_failure(left, count, &at, duration_ns(self->config.gap), batch->arena);
        if (is_beside_nothing(&failure))
            continue;
        find_peer(self, &failure, batch->arena);
        report(self, batch, &failure);
    }
    end_others(self, batch);
}

static enum status start(void *instance, const void *config,
                         const struct component_context *context, struct error *error) {
    struct unexplained *self = instance;
    (void)error;
    self->config = *(const struct unexplained_config *)config;
    self->bound.max = (uint32_t)self->config.max_signs;
    self->ends_bound.max = (uint32_t)self->config.max_signs;
    self->open_bound.max = OPEN_MAX;
    self->progress.bound.max = PROGRESS_LOG_MAX;
    return detector_begin(&self->base, PATTERN, context, take, judge);
}

static const struct verdict_pattern PATTERNS[] = {{.name = PATTERN}};
static const struct evidence_prefix EVIDENCE[] = {{"sign:", EVENT_OBSERVATION},
                                                  {"sign_app:", EVENT_APP_LINE}};

const struct component_type processor_unexplained = {
    .name = "unexplained",
    .summary = "Tells of failures that no other detector explains: what failed, when, and first.",
    .stability = STABILITY_ALPHA,
    .presets = 1u << PRESET_ALL,
    .takes = 1u << EVENT_OBSERVATION | 1u << EVENT_KERNEL | 1u << EVENT_APP_LINE |
             1u << EVENT_KUBERNETES,
    .observations = SIGN_KINDS,
    .evidence = EVIDENCE,
    .evidence_count = OPTION_COUNT(EVIDENCE),
    .start = start,
    DETECTOR_FIELDS(struct unexplained, struct unexplained_config),
};
