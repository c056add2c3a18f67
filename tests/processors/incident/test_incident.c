// SPDX-License-Identifier: Apache-2.0
// Which verdicts are joined, which is the root, and when it is said again.

#include "cli/component_list.h"
#include "pipeline/model/node_event.h"
#include "tests/processors/state_copy.h"

#include <check.h>

static const uint64_t BEGIN = UINT64_C(1794992400) * 1000000000;

static void *incident;
static struct arena arena;
static struct batch batch;
static struct verdict found[16];
static struct entity entities[16][4];
static struct event events[8];
static struct rank_place ranks[8];

struct config {
    struct duration window, skew;
};

// A detector whose verdicts explain by the rank they blame alone, and one another in a circle.
static const char *const HANGS[] = {"nccl_hang", NULL}, *const TWO[] = {"test_two", NULL},
                         *const THREE[] = {"test_three", NULL}, *const ONE[] = {"test_one", NULL};
static const struct verdict_pattern EXIT_PATTERNS[] = {
    {.name = "test_exit", .explains_rank = HANGS, .rank_before_s = 30},
    {.name = "test_one", .explains = TWO},
    {.name = "test_two", .explains = THREE},
    {.name = "test_three", .explains = ONE},
};
static const struct component_type EXITS = {.name = "test_exit",
                                            .kind = COMPONENT_PROCESSOR,
                                            .patterns = EXIT_PATTERNS,
                                            .pattern_count = 4};

static void start(void) {
    static struct config config = {{600 * INT64_C(1000000000)}, {2 * INT64_C(1000000000)}};
    static const struct component_type *const types[] = {
        &processor_nccl_hang,         &processor_xid_correlation,
        &processor_pod_evicted,       &processor_hbm_ecc,
        &processor_thermal_throttle,  &processor_pcie_aer,
        &processor_phase_attribution, &processor_fabric_link,
        &processor_slow_rank,         &EXITS,
    };
    static const struct component_set set = {types, sizeof types / sizeof *types};
    struct component_context context = {
        .id = "incident", .site = "processor/incident", .components = &set};
    struct error error = {0};
    incident = memory_zero(1, processor_incident.instance_size);
    ck_assert_int_eq(component_start(&processor_incident, incident, &config, &context, &error),
                     STATUS_OK);
}

static void setup(void) {
    arena_init(&arena, 4096);
    start();
    batch = (struct batch){.arena = &arena};
}

// Another instance goes on with what this one remembers, and knows nothing else.
static void restart(void) {
    struct state_copy copy = {0};
    struct state_list list = {0};
    component_list_state(&processor_incident, incident, &list);
    for (uint32_t i = 0; i < list.count; i++)
        entry_save(&copy, &list.entries[i]);
    component_stop(&processor_incident, incident);
    memory_give(incident);
    start();
    list = (struct state_list){0};
    component_list_state(&processor_incident, incident, &list);
    for (uint32_t i = 0; i < list.count; i++)
        entry_load(&copy, &copy.entries[i], &list.entries[i]);
    component_restored(&processor_incident, incident);
    state_copy_release(&copy);
}

static void teardown(void) {
    component_stop(&processor_incident, incident);
    memory_give(incident);
    arena_release(&arena);
    intern_release();
}

// A verdict on one entity that begins `at` seconds after BEGIN; `as` numbers it.
static struct verdict *say(int as, const char *pattern, const char *kind, double at,
                           const char *entity_kind, const char *name) {
    struct verdict *verdict = &found[as];
    char key[8];
    snprintf(key, sizeof key, "%d", as);
    struct slice part = slice_of(key);
    entities[as][0] = (struct entity){entity_kind, slice_of(name), ROLE_CULPRIT};
    *verdict = (struct verdict){.pattern = pattern,
                                .kind = kind,
                                .severity = SEVERITY_ERROR,
                                .action = "monitor",
                                .headline = SLICE("h"),
                                .remediation = SLICE("r"),
                                .confidence = 80,
                                .start_ns = BEGIN + (uint64_t)(int64_t)(at * 1e9),
                                .end_ns = BEGIN + (uint64_t)(int64_t)(at * 1e9),
                                .entities = entities[as],
                                .entity_count = 1};
    verdict_set_id(verdict, pattern, &part, 1);
    return verdict;
}

// What stands, as the detectors tell it.
static void evaluate(const int *said, int count) {
    batch = (struct batch){.arena = &arena, .evaluate = true, .as_of_ns = BEGIN + 700 * SECOND};
    for (int i = 0; i < count; i++)
        batch_append_verdict(&batch, &found[said[i]]);
    processor_incident.processor.consume(incident, &batch);
}

static const struct verdict *out(int as) {
    for (uint32_t i = 0; i < batch.verdicts.count; i++)
        if (strcmp(batch.verdicts.items[i].id, found[as].id) == 0)
            return &batch.verdicts.items[i];
    ck_abort_msg("verdict %d is not there", as);
    return NULL;
}

static bool is_root(int as) {
    const struct verdict *verdict = out(as);
    for (uint32_t i = 0; i < verdict->attribute_count; i++)
        if (strcmp(verdict->attributes[i].key, "culprit.root") == 0)
            return slice_equal(verdict->attributes[i].value, SLICE("true"));
    ck_abort_msg("verdict %d has no culprit.root", as);
    return false;
}

// -1: not related.
static int relation(int as, int other) {
    const struct verdict *verdict = out(as);
    for (uint32_t i = 0; i < verdict->related_count; i++)
        if (strcmp(verdict->related[i].id, found[other].id) == 0)
            return (int)verdict->related[i].relation;
    return -1;
}

static void map_rank(int rank, const char *node, const char *address) {
    pci_address pci = PCI_NONE;
    if (address != NULL)
        ck_assert(pci_parse(slice_of(address), &pci));
    ranks[0] = (struct rank_place){.rank = rank, .node = intern(slice_of(node)), .address = pci};
    events[0] =
        (struct event){.time_ns = BEGIN, .rank = rank, .kind = EVENT_RANK_MAP, .place = &ranks[0]};
    struct batch told = {.arena = &arena, .events = events, .event_count = 1, .kinds = UINT32_MAX};
    processor_incident.processor.consume(incident, &told);
}

START_TEST(a_fault_lies_behind_a_hang) {
    map_rank(6, "node-b", "00000000:45:00.0");
    say(0, "nccl_hang", "missing_rank", 5, "rank", "6");
    say(1, "pcie_aer", "uncorrectable_fatal", 3, "gpu", "node-b/0000:45:00");
    evaluate((int[]){0, 1}, 2);
    ck_assert(is_root(1));
    ck_assert(!is_root(0));
    ck_assert_int_eq(relation(0, 1), RELATION_CAUSED_BY);
    ck_assert_int_eq(relation(1, 0), RELATION_CAUSES);
    // In order of their begin.
    ck_assert_str_eq(batch.verdicts.items[0].id, found[1].id);
}
END_TEST

START_TEST(another_gpu_of_the_node_is_no_cause) {
    map_rank(6, "node-b", "0000:1b:00.0");
    say(0, "nccl_hang", "missing_rank", 5, "rank", "6");
    say(1, "pcie_aer", "uncorrectable_fatal", 3, "gpu", "node-b/0000:45:00");
    evaluate((int[]){0, 1}, 2);
    ck_assert(is_root(0) && is_root(1));
    ck_assert_int_eq(relation(0, 1), -1);
}
END_TEST

START_TEST(the_node_decides_where_the_gpu_is_not_known) {
    map_rank(6, "node-b", NULL);
    say(0, "nccl_hang", "missing_rank", 5, "rank", "6");
    say(1, "hbm_ecc", "uncorrectable", 3, "gpu", "node-b/0000:45:00");
    evaluate((int[]){0, 1}, 2);
    ck_assert_int_eq(relation(0, 1), RELATION_CAUSED_BY);
}
END_TEST

START_TEST(window_and_skew) {
    static const struct {
        double cause_at;
        bool joined;
    } cases[] = {{6.9, true}, {7.1, false}, {-594.9, true}, {-595.1, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        teardown();
        setup();
        map_rank(6, "node-b", NULL);
        say(0, "nccl_hang", "missing_rank", 5, "rank", "6");
        say(1, "pcie_aer", "uncorrectable_fatal", cases[i].cause_at, "gpu", "node-b/0000:45:00");
        evaluate((int[]){0, 1}, 2);
        ck_assert_msg((relation(0, 1) >= 0) == cases[i].joined, "at %g", cases[i].cause_at);
    }
}
END_TEST

// Others wait for a rank that is about to end. Of another rank, or long before, it is no cause.
// Says that a program raised an exception with that message.
static void say_raised(int as, double at, const char *rank, const char *message) {
    static struct attribute raised[16][1];
    struct verdict *verdict = say(as, "first_exit", "cuda_error", at, "rank", rank);
    raised[as][0] = (struct attribute){"exception.message", slice_of(message)};
    verdict->attributes = raised[as];
    verdict->attribute_count = 1;
}

static const char NOT_READY[] = "Error 802: system not yet initialized",
                  NO_GPU[] = "No CUDA GPUs are available", KEY[] = "'labels'";

// What stays broken explains who meets it, an hour later, too, and where nothing says where the
// program ran; but not what ran elsewhere, and no other words.
static const struct met_case {
    const char *kind, *message, *node; // of the rank; NULL: not known
    double at;                         // when the rank meets it; the fault is at 0
    bool joined;
} MET[] = {
    {"fabric_manager", NOT_READY, NULL, 2900, true},
    {"fabric_manager", NOT_READY, "node-b", 2900, true},
    {"fabric_manager", NOT_READY, "node-c", 2900, false},
    {"fabric_manager", NOT_READY, NULL, -30, false},
    {"fabric_manager", NOT_READY, NULL, 86401, false},
    {"fabric_manager", KEY, NULL, 2900, false},
    {"nvlink_setup", NOT_READY, NULL, 30, true},
    {"driver_mismatch", "Driver/library version mismatch", NULL, 2900, true},
    {"driver_mismatch", NOT_READY, NULL, 2900, false},
    {"gpu_lost", NO_GPU, "node-b", 2900, true},
    {"gpu_lost", NO_GPU, NULL, 2900, false},
    {"power_supply", NOT_READY, "node-b", 2900, false},
};

START_TEST(what_is_broken_explains_who_meets_it) {
    const struct met_case *met = &MET[_i];
    if (met->node != NULL)
        map_rank(8, met->node, NULL);
    say(0, "node_fault", met->kind, 0, "node", "node-b");
    say_raised(1, met->at, "8", met->message);
    // What stands in between is neither.
    say(2, "first_exit", "exception", 40, "rank", "3");
    evaluate((int[]){0, 1, 2}, 3);
    ck_assert_int_eq(relation(1, 0), met->joined ? RELATION_CAUSED_BY : -1);
    ck_assert(is_root(0) && is_root(1) != met->joined && is_root(2));
}
END_TEST

START_TEST(an_end_explains_waits_for_that_rank_before_it) {
    static const struct {
        double end_at;
        const char *rank;
        bool joined;
    } cases[] = {
        {5, "6", true}, {36.9, "6", true}, {37.1, "6", false}, {5, "7", false}, {20, "7", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        teardown();
        setup();
        map_rank(6, "node-b", NULL);
        map_rank(7, "node-b", NULL);
        say(0, "nccl_hang", "missing_dump", 5, "rank", "6");
        say(1, "test_exit", "host_oom", cases[i].end_at, "rank", cases[i].rank);
        evaluate((int[]){0, 1}, 2);
        ck_assert_msg((relation(0, 1) == RELATION_CAUSED_BY) == cases[i].joined, "end of %s at %g",
                      cases[i].rank, cases[i].end_at);
        ck_assert(is_root(1) && is_root(0) != cases[i].joined);
    }
}
END_TEST

START_TEST(heat_never_hangs_and_a_swing_explains_nothing) {
    map_rank(6, "node-b", NULL);
    say(0, "nccl_hang", "missing_rank", 5, "rank", "6");
    say(1, "thermal_throttle", "hw_thermal", 3, "gpu", "node-b/0000:45:00");
    say(2, "memory_first_cause", "swing", 3, "rank", "6");
    evaluate((int[]){0, 1, 2}, 3);
    ck_assert(is_root(0) && is_root(1) && is_root(2));
    say(2, "memory_first_cause", "leak", 3, "rank", "6");
    evaluate((int[]){0, 1, 2}, 3);
    ck_assert_int_eq(relation(0, 2), RELATION_CAUSED_BY);
}
END_TEST

// What slows the GPU of a rank, or the card of its node, explains that it holds up the others.
static const struct {
    const char *pattern, *kind, *entity, *name, *other;
} SLOWING[] = {
    {"pcie_aer", "link_degraded", "gpu", "node-b/0000:45:00", "node-b/0000:9b:00"},
    {"fabric_link", "link_errors", "nic", "node-b/0000:5c:00", "node-c/0000:5c:00"},
    {"thermal_throttle", "hw_thermal", "gpu", "node-b/0000:45:00", "node-b/0000:9b:00"},
};

START_TEST(what_slows_the_place_of_a_slow_rank_explains_it) {
    map_rank(6, "node-b", "00000000:45:00.0");
    say(0, "slow_rank", "slow_compute", 5, "rank", "6");
    say(1, SLOWING[_i].pattern, SLOWING[_i].kind, 3, SLOWING[_i].entity, SLOWING[_i].name);
    evaluate((int[]){0, 1}, 2);
    ck_assert(is_root(1) && !is_root(0));
    ck_assert_int_eq(relation(0, 1), RELATION_CAUSED_BY);
    ck_assert_int_eq(relation(1, 0), RELATION_CAUSES);
    // Elsewhere it explains nothing.
    say(1, SLOWING[_i].pattern, SLOWING[_i].kind, 3, SLOWING[_i].entity, SLOWING[_i].other);
    evaluate((int[]){0, 1}, 2);
    ck_assert(is_root(1) && is_root(0));
}
END_TEST

// Seen in the sample behind the begin of the slow rank; the sample before was ahead of it.
START_TEST(what_slows_a_rank_may_be_seen_after_it) {
    map_rank(6, "node-b", "00000000:45:00.0");
    say(0, "slow_rank", "slow_compute", 5, "rank", "6");
    say(1, SLOWING[_i].pattern, SLOWING[_i].kind, 20, SLOWING[_i].entity, SLOWING[_i].name);
    evaluate((int[]){0, 1}, 2);
    ck_assert(is_root(1) && is_root(0));
    found[1].after_ns = BEGIN;
    evaluate((int[]){0, 1}, 2);
    ck_assert(is_root(1) && !is_root(0));
}
END_TEST

START_TEST(one_root_of_a_chain) {
    map_rank(6, "node-b", NULL);
    say(0, "pcie_aer", "uncorrectable_fatal", 1, "gpu", "node-b/0000:45:00");
    say(1, "xid_correlation", "xid_then_eviction", 2, "gpu", "node-b/0000:45:00");
    say(2, "nccl_hang", "missing_rank", 3, "rank", "6");
    say(3, "hbm_ecc", "uncorrectable", 2, "gpu", "node-b/0000:45:00");
    evaluate((int[]){3, 2, 1, 0}, 4);
    int roots = 0;
    for (int i = 0; i < 4; i++)
        roots += is_root(i);
    ck_assert_int_eq(roots, 1);
    ck_assert(is_root(0));
    ck_assert_int_eq(relation(2, 1), RELATION_CAUSED_BY);
    ck_assert_int_eq(relation(1, 2), RELATION_CAUSES);
}
END_TEST

// The root begins after what it explains, and something graver stands beside.
START_TEST(the_root_is_what_nothing_explains) {
    map_rank(6, "node-b", NULL);
    say(0, "nccl_hang", "missing_rank", 4, "rank", "6")->severity = SEVERITY_CRITICAL;
    say(1, "pod_evicted", "node_pressure", 5, "node", "node-b");
    say(2, "hbm_ecc", "uncorrectable", 6, "gpu", "node-b/0000:45:00");
    evaluate((int[]){0, 1, 2}, 3);
    ck_assert(!is_root(0) && !is_root(1));
    ck_assert(is_root(2));
    ck_assert_int_eq(relation(1, 2), RELATION_CAUSED_BY);
}
END_TEST

START_TEST(a_circle_is_cut_where_it_goes_back) {
    for (int first = 0; first < 3; first++) {
        teardown();
        setup();
        static const char *const NAMES[] = {"test_one", "test_two", "test_three"};
        for (int i = 0; i < 3; i++)
            say(i, NAMES[i], "any", 1 + 0.1 * ((i - first + 3) % 3), "node", "node-b");
        evaluate((int[]){0, 1, 2}, 3);
        for (int i = 0; i < 3; i++)
            ck_assert_msg(is_root(i) == (i == first), "%s with %s first", NAMES[i], NAMES[first]);
        int last = (first + 2) % 3;
        // What closes the circle is not said; they stay one incident.
        ck_assert_int_eq(relation(first, last), RELATION_SAME_INCIDENT);
        ck_assert_int_eq(relation(last, (first + 1) % 3), RELATION_CAUSED_BY);
    }
}
END_TEST

START_TEST(what_was_sampled_began_behind_the_sample_before) {
    map_rank(6, "node-b", NULL);
    say(0, "nccl_hang", "missing_rank", 5, "rank", "6");
    say(1, "hbm_ecc", "uncorrectable", 30, "gpu", "node-b/0000:45:00");
    evaluate((int[]){0, 1}, 2);
    ck_assert(is_root(0) && is_root(1));
    found[1].after_ns = BEGIN;
    evaluate((int[]){0, 1}, 2);
    ck_assert(is_root(1) && !is_root(0));
    // Not when the sample before came after it, too.
    found[1].after_ns = BEGIN + 8 * SECOND;
    evaluate((int[]){0, 1}, 2);
    ck_assert(is_root(0) && is_root(1));
}
END_TEST

START_TEST(a_rank_that_ended_explains_the_hang_that_misses_it) {
    map_rank(6, "node-b", NULL);
    map_rank(7, "node-b", NULL);
    say(0, "nccl_hang", "missing_rank", 5, "rank", "6");
    say(1, "test_exit", "exception", 3, "rank", "7");
    evaluate((int[]){0, 1}, 2);
    ck_assert(is_root(0) && is_root(1));
    say(1, "test_exit", "exception", 3, "rank", "6");
    evaluate((int[]){0, 1}, 2);
    ck_assert_int_eq(relation(0, 1), RELATION_CAUSED_BY);
    // A suspect is enough.
    entities[0][0].role = ROLE_SUSPECT;
    evaluate((int[]){0, 1}, 2);
    ck_assert_int_eq(relation(0, 1), RELATION_CAUSED_BY);
    // Who only waits for another is not.
    entities[0][1] = (struct entity){"rank", SLICE("7"), ROLE_VICTIM};
    found[0].entity_count = 2;
    say(1, "test_exit", "exception", 3, "rank", "7");
    evaluate((int[]){0, 1}, 2);
    ck_assert(is_root(0) && is_root(1));
}
END_TEST

// Two jobs on other nodes, of which nobody names the jobs: rank 6 of one is not that of the other.
START_TEST(ranks_of_two_jobs_without_names_are_told_apart_by_place) {
    say(0, "nccl_hang", "missing_rank", 5, "rank", "6");
    say(1, "test_exit", "exception", 3, "rank", "6");
    entities[0][1] = (struct entity){"node", SLICE("node-b"), ROLE_SUSPECT};
    entities[1][1] = (struct entity){"node", SLICE("node-c"), ROLE_SUSPECT};
    found[0].entity_count = found[1].entity_count = 2;
    evaluate((int[]){0, 1}, 2);
    ck_assert(is_root(0) && is_root(1));
    entities[1][1].name = SLICE("node-b");
    evaluate((int[]){0, 1}, 2);
    ck_assert(!is_root(0) && is_root(1));
    // Names of jobs decide.
    found[0].job = intern(SLICE("job-a"));
    found[1].job = intern(SLICE("job-b"));
    evaluate((int[]){0, 1}, 2);
    ck_assert(is_root(0) && is_root(1));
}
END_TEST

static void tell(struct event event) {
    events[0] = event;
    struct batch told = {.arena = &arena, .events = events, .event_count = 1, .kinds = UINT32_MAX};
    processor_incident.processor.consume(incident, &told);
}

// Rank `rank` of a job that the rank map names.
static void map_job(const char *job, int rank, const char *node) {
    ranks[0] =
        (struct rank_place){.rank = rank, .node = intern(slice_of(node)), .address = PCI_NONE};
    tell((struct event){.time_ns = BEGIN,
                        .rank = rank,
                        .kind = EVENT_RANK_MAP,
                        .job = intern(slice_of(job)),
                        .place = &ranks[0]});
}

// A dump names no job.
static void dump_at(int rank, const char *node) {
    static struct flight_dump dump;
    dump = (struct flight_dump){.rank = rank, .whole = true, .is_file = true};
    tell((struct event){.time_ns = BEGIN + SECOND,
                        .rank = rank,
                        .kind = EVENT_FLIGHT,
                        .node = intern(slice_of(node)),
                        .flight = &dump});
}

// Two jobs have a rank 6, and nothing but the rank map names them. Which of them the hang is of
// tells the node that the dump of a rank that waits in it came from.
START_TEST(the_job_of_a_hang_is_told_by_where_its_dumps_came_from) {
    map_job("job-a", 6, "node-b");
    map_job("job-a", 7, "node-b");
    map_job("job-b", 6, "node-c");
    map_job("job-b", 7, "node-c");
    say(0, "nccl_hang", "missing_dump", 5, "rank", "6");
    entities[0][0].role = ROLE_SUSPECT;
    entities[0][1] = (struct entity){"rank", SLICE("7"), ROLE_VICTIM};
    found[0].entity_count = 2;
    say(1, "pcie_aer", "uncorrectable_fatal", 3, "gpu", "node-b/0000:45:00");
    say(2, "pcie_aer", "uncorrectable_fatal", 3, "gpu", "node-c/0000:45:00");
    evaluate((int[]){0, 1, 2}, 3);
    ck_assert(is_root(0));
    dump_at(7, "node-b");
    evaluate((int[]){0, 1, 2}, 3);
    ck_assert_int_eq(relation(0, 1), RELATION_CAUSED_BY);
    ck_assert_int_eq(relation(0, 2), -1);
    // A dump from where the rank map has another job, or none: it is not known which one it is.
    entities[0][2] = (struct entity){"rank", SLICE("8"), ROLE_VICTIM};
    found[0].entity_count = 3;
    map_job("job-b", 8, "node-c");
    dump_at(8, "node-c");
    evaluate((int[]){0, 1, 2}, 3);
    ck_assert_int_eq(relation(0, 1), -1);
    ck_assert_int_eq(relation(0, 2), -1);
}
END_TEST

START_TEST(two_jobs_with_a_rank_on_one_node_stay_unknown) {
    map_job("job-a", 6, "node-b");
    map_job("job-a", 7, "node-d");
    map_job("job-b", 6, "node-c");
    map_job("job-b", 7, "node-d");
    say(0, "nccl_hang", "missing_dump", 5, "rank", "6");
    entities[0][1] = (struct entity){"rank", SLICE("7"), ROLE_VICTIM};
    found[0].entity_count = 2;
    say(1, "pcie_aer", "uncorrectable_fatal", 3, "gpu", "node-b/0000:45:00");
    dump_at(7, "node-d");
    evaluate((int[]){0, 1}, 2);
    ck_assert(is_root(0));
    ck_assert_int_eq(relation(0, 1), -1);
}
END_TEST

START_TEST(where_ranks_only_wait_says_nothing) {
    map_rank(6, "node-b", NULL);
    map_rank(7, "node-c", NULL);
    say(0, "nccl_hang", "missing_rank", 5, "rank", "6");
    entities[0][1] = (struct entity){"rank", SLICE("7"), ROLE_VICTIM};
    found[0].entity_count = 2;
    say(1, "pcie_aer", "uncorrectable_fatal", 3, "nic", "node-c/0000:2c:00.0");
    evaluate((int[]){0, 1}, 2);
    ck_assert(is_root(0) && is_root(1));
    // Where nobody is to blame it may be at any of them.
    entities[0][0].role = ROLE_VICTIM;
    evaluate((int[]){0, 1}, 2);
    ck_assert_int_eq(relation(0, 1), RELATION_CAUSED_BY);
}
END_TEST

START_TEST(what_a_detector_says_of_its_own_counts) {
    struct related waits = {.relation = RELATION_CAUSED_BY}, same = {0};
    say(0, "nccl_hang", "missing_rank", 1, "rank", "6");
    say(1, "nccl_hang", "missing_rank", 9, "rank", "7");
    say(2, "nccl_hang", "missing_rank", 3, "rank", "8");
    say(3, "nccl_hang", "missing_rank", 2, "rank", "9");
    memcpy(waits.id, found[1].id, sizeof waits.id);
    found[0].related = &waits;
    found[0].related_count = 1;
    same.relation = RELATION_SAME_INCIDENT;
    memcpy(same.id, found[1].id, sizeof same.id);
    found[2].related = &same;
    found[2].related_count = 1;
    evaluate((int[]){0, 1, 2, 3}, 4);
    ck_assert_int_eq(relation(0, 1), RELATION_CAUSED_BY);
    ck_assert_int_eq(relation(1, 0), RELATION_CAUSES);
    ck_assert_int_eq(relation(2, 1), RELATION_SAME_INCIDENT);
    // Of the two that nothing explains the first; another hang stays another.
    ck_assert(is_root(2) && !is_root(0) && !is_root(1));
    ck_assert(is_root(3));
}
END_TEST

START_TEST(said_again_when_what_is_related_changed) {
    map_rank(6, "node-b", NULL);
    say(0, "nccl_hang", "missing_rank", 5, "rank", "6");
    evaluate((int[]){0}, 1);
    ck_assert(is_root(0));
    found[0].unchanged = true;
    evaluate((int[]){0}, 1);
    ck_assert(out(0)->unchanged);
    // Its cause becomes known later.
    say(1, "pcie_aer", "uncorrectable_fatal", 3, "gpu", "node-b/0000:45:00");
    evaluate((int[]){0, 1}, 2);
    ck_assert(!out(0)->unchanged);
    ck_assert_int_eq(out(0)->state, VERDICT_UPDATED);
    ck_assert(!is_root(0));
    found[1].unchanged = true;
    evaluate((int[]){0, 1}, 2);
    ck_assert(out(0)->unchanged && out(1)->unchanged);
    // What is over explains nothing any more.
    found[1].unchanged = false;
    found[1].state = VERDICT_RESOLVED;
    evaluate((int[]){0, 1}, 2);
    ck_assert(!out(0)->unchanged);
    ck_assert(is_root(0));
    ck_assert_int_eq(relation(0, 1), -1);
}
END_TEST

static void map_user(int rank, const char *job, double at, struct rank_place place) {
    ranks[0] = place;
    ranks[0].rank = rank;
    ranks[0].node = intern(SLICE("node-b"));
    events[0] = (struct event){.time_ns = BEGIN + (uint64_t)(int64_t)(at * 1e9),
                               .job = job == NULL ? STRING_NONE : intern(slice_of(job)),
                               .rank = rank,
                               .kind = EVENT_RANK_MAP,
                               .place = &ranks[0]};
    struct batch told = {.arena = &arena, .events = events, .event_count = 1, .kinds = UINT32_MAX};
    processor_incident.processor.consume(incident, &told);
}

static bool names(int as, const char *kind, const char *name) {
    const struct verdict *verdict = out(as);
    for (uint32_t i = 0; i < verdict->entity_count; i++)
        if (strcmp(verdict->entities[i].kind, kind) == 0 &&
            slice_equal(verdict->entities[i].name, slice_of(name)))
            return verdict->entities[i].role == ROLE_VICTIM;
    return false;
}

// The rank map says only a UUID, whose address a sample of the GPU tells.
static struct rank_place used(const char *uuid, const char *pod) {
    return (struct rank_place){.address = PCI_NONE,
                               .uuid = slice_of(uuid),
                               .namespace = SLICE("train"),
                               .pod = slice_of(pod)};
}

static void sample_gpu(const char *uuid, const char *address) {
    struct gpu_sample sample = {.node = intern(SLICE("node-b")), .uuid = slice_of(uuid)};
    struct gpu_scrape scrape = {.samples = &sample, .count = 1};
    ck_assert(pci_parse(slice_of(address), &sample.address));
    events[0] = (struct event){.time_ns = BEGIN, .kind = EVENT_GPU_SAMPLE, .gpus = &scrape};
    struct batch told = {.arena = &arena, .events = events, .event_count = 1, .kinds = UINT32_MAX};
    processor_incident.processor.consume(incident, &told);
}

// Of the jobs that were placed on a GPU before its fault the last one used it.
START_TEST(a_fault_of_a_gpu_names_who_used_it) {
    map_user(6, "before", 1, used("GPU-45", "old-0"));
    map_user(2, "now", 2, used("GPU-45", "new-0"));
    map_user(3, "now", 2, used("GPU-1b", "new-0"));
    map_user(5, "later", 60, used("GPU-45", "newer-0"));
    say(0, "pcie_aer", "uncorrectable_fatal", 3, "gpu", "node-b/0000:45:00");
    evaluate((int[]){0}, 1);
    ck_assert_uint_eq(out(0)->entity_count, 1); // which GPU has that UUID is not known
    found[0].unchanged = true;
    sample_gpu("GPU-45", "0000:45:00.0");
    for (int round = 0; round < 2; round++) {
        evaluate((int[]){0}, 1);
        ck_assert(out(0)->unchanged == (round == 1)); // said again once
        ck_assert_uint_eq(out(0)->entity_count, 3);
        ck_assert(names(0, "rank", "2") && names(0, "pod", "train/new-0"));
        ck_assert_uint_eq(out(0)->job, intern(SLICE("now")));
        restart();
    }
    // What names a pod or rank knows more.
    say(1, "xid_correlation", "gpu_hardware_fault", 3, "gpu", "node-b/0000:45:00");
    entities[1][1] = (struct entity){"pod", SLICE("train/other"), ROLE_VICTIM};
    found[1].entity_count = 2;
    evaluate((int[]){1}, 1);
    ck_assert_uint_eq(out(1)->entity_count, 2);
}
END_TEST

static void map_undated(int rank, const char *job, double age, const char *uuid) {
    struct rank_place place = used(uuid, "w");
    ranks[0] = place;
    ranks[0].rank = rank;
    ranks[0].node = intern(SLICE("node-b"));
    tell((struct event){.time_ns = BEGIN + (uint64_t)(int64_t)(age * 1e9),
                        .timeless = true,
                        .job = intern(slice_of(job)),
                        .rank = rank,
                        .kind = EVENT_RANK_MAP,
                        .place = &ranks[0]});
}

// A rank map without times: its rank used the GPU, however new the file is; which of two jobs did
// so last, their ages do not tell.
START_TEST(the_age_of_a_rank_map_names_nobody) {
    sample_gpu("GPU-45", "0000:45:00.0");
    map_undated(6, "gpt", _i % 2 == 0 ? 1 : 60, "GPU-45");
    say(0, "pcie_aer", "uncorrectable_fatal", 3, "gpu", "node-b/0000:45:00");
    evaluate((int[]){0}, 1);
    ck_assert(names(0, "rank", "6"));
    found[0].job = STRING_NONE;
    found[0].entities = entities[0];
    found[0].entity_count = 1;
    if (_i < 2)
        map_undated(2, "llama", _i == 0 ? 2 : 1, "GPU-45");
    else
        map_user(2, "llama", 1, used("GPU-45", "w"));
    evaluate((int[]){0}, 1);
    ck_assert_uint_eq(out(0)->entity_count, 1);
    ck_assert_uint_eq(out(0)->job, STRING_NONE);
}
END_TEST

// Where a rank is, a line without a time says only where none with a time does.
START_TEST(the_age_of_a_rank_map_moves_nobody) {
    for (int turn = 0; turn < 2; turn++)
        if (turn == _i) {
            map_user(6, "gpt", 1, used("GPU-1b", "w"));
        } else {
            map_undated(6, "gpt", 500, "GPU-45");
        }
    sample_gpu("GPU-1b", "0000:1b:00.0");
    sample_gpu("GPU-45", "0000:45:00.0");
    say(0, "nccl_hang", "missing_rank", 5, "rank", "6")->job = intern(SLICE("gpt"));
    say(1, "pcie_aer", "uncorrectable_fatal", 3, "gpu", "node-b/0000:1b:00");
    say(2, "pcie_aer", "uncorrectable_fatal", 3, "gpu", "node-b/0000:45:00");
    evaluate((int[]){0, 1, 2}, 3);
    ck_assert_int_eq(relation(0, 1), RELATION_CAUSED_BY);
    ck_assert_int_eq(relation(0, 2), -1);
}
END_TEST

// A map without a job is of the only one, and of none where another has ranks, too.
START_TEST(a_rank_map_without_a_job_is_of_the_only_one) {
    map_rank(6, "node-b", NULL);
    if (_i == 1)
        map_job("llama", 3, "node-c");
    say(0, "nccl_hang", "missing_rank", 5, "rank", "6")->job = intern(SLICE("gpt"));
    say(1, "pcie_aer", "uncorrectable_fatal", 3, "gpu", "node-b/0000:45:00");
    evaluate((int[]){0, 1}, 2);
    ck_assert_int_eq(relation(0, 1), _i == 0 ? RELATION_CAUSED_BY : -1);
}
END_TEST

// A rank of both jobs on one node: its GPU is not known where each has another.
START_TEST(ranks_of_two_jobs_share_a_node_and_no_gpu) {
    map_user(6, "gpt", 1, used("GPU-45", "w"));
    map_user(6, "llama", 1, used("GPU-1b", "w"));
    sample_gpu("GPU-1b", "0000:1b:00.0");
    sample_gpu("GPU-45", "0000:45:00.0");
    say(0, "nccl_hang", "missing_rank", 5, "rank", "6");
    say(1, "pcie_aer", "uncorrectable_fatal", 3, "gpu", "node-b/0000:1b:00");
    say(2, "pcie_aer", "uncorrectable_fatal", 3, "gpu", "node-b/0000:45:00");
    evaluate((int[]){0, 1, 2}, 3);
    ck_assert_int_eq(relation(0, 1), RELATION_CAUSED_BY);
    ck_assert_int_eq(relation(0, 2), RELATION_CAUSED_BY);
}
END_TEST

// A rank that ended, of no job that is named: where two jobs wait for a rank of its number, and
// nobody knows where it ran, it is of neither.
START_TEST(a_rank_without_a_job_is_of_the_only_one) {
    say(0, "test_exit", "exception", 3, "rank", "6");
    say(1, "nccl_hang", "missing_rank", 5, "rank", "6")->job = intern(SLICE("gpt"));
    say(2, "nccl_hang", "missing_rank", 6, "rank", "6")->job = intern(SLICE("llama"));
    evaluate((int[]){0, 1, 2}, _i == 0 ? 2 : 3);
    ck_assert_int_eq(relation(1, 0), _i == 0 ? RELATION_CAUSED_BY : -1);
    ck_assert(is_root(1) == (_i == 1));
}
END_TEST

START_TEST(a_uuid_is_enough_to_tell_gpus_of_a_node_apart) {
    map_user(6, NULL, 0, used("GPU-1b", "a"));
    sample_gpu("GPU-1b", "0000:1b:00.0");
    say(0, "nccl_hang", "missing_rank", 5, "rank", "6");
    say(1, "pcie_aer", "uncorrectable_fatal", 3, "gpu", "node-b/0000:45:00");
    evaluate((int[]){0, 1}, 2);
    ck_assert_int_eq(relation(0, 1), -1);
}
END_TEST

START_TEST(what_is_known_of_places_and_verdicts_outlives_a_restart) {
    map_rank(6, "node-b", "00000000:45:00.0");
    say(1, "pcie_aer", "uncorrectable_fatal", 3, "gpu", "node-b/0000:45:00");
    evaluate((int[]){1}, 1);
    restart();
    say(0, "nccl_hang", "missing_rank", 5, "rank", "6");
    // The fault stands, and was not said again.
    evaluate((int[]){0}, 1);
    ck_assert(!is_root(0));
    ck_assert_int_eq(relation(0, 1), RELATION_CAUSED_BY);
}
END_TEST

// What stands is bounded: the verdicts that began first are looked at no more, newer ones are
// joined.
START_TEST(the_oldest_make_room) {
    enum { MANY = 5000 };
    for (int from = 0; from < MANY; from += 1000) {
        struct verdict verdict =
            *say(0, "thermal_throttle", "hw_thermal", from, "gpu", "n/0000:10:00");
        batch = (struct batch){.arena = &arena, .evaluate = true, .as_of_ns = BEGIN};
        for (int i = from; i < from + 1000; i++) {
            char key[16];
            snprintf(key, sizeof key, "many %d", i);
            struct slice part = slice_of(key);
            verdict.start_ns = verdict.end_ns = BEGIN + (uint64_t)i * SECOND;
            verdict_set_id(&verdict, "thermal_throttle", &part, 1);
            batch_append_verdict(&batch, &verdict);
        }
        processor_incident.processor.consume(incident, &batch);
        arena_reset(&arena);
    }
    uint64_t before = memory_figures().live_bytes;
    say(1, "pcie_aer", "fatal", MANY, "gpu", "node-x/0000:10:00");
    say(2, "xid_correlation", "off_the_bus", MANY + 5, "gpu", "node-x/0000:10:00");
    int both[] = {1, 2};
    evaluate(both, 2);
    ck_assert(is_root(1));
    ck_assert(!is_root(2));
    ck_assert_uint_lt(memory_figures().live_bytes, before + (1 << 20));
}
END_TEST

// Places of ranks are bounded: beyond that the rank that was spoken of least recently goes.
START_TEST(the_oldest_ranks_make_room) {
    enum { MOST = 65536, BEYOND = 3 };
    pci_address address;
    ck_assert(pci_parse(SLICE("00000000:45:00.0"), &address));
    ranks[0] = (struct rank_place){.node = intern(SLICE("node-b")), .address = address};
    events[0] = (struct event){.kind = EVENT_RANK_MAP, .place = &ranks[0]};
    struct batch told = {.arena = &arena, .events = events, .event_count = 1, .kinds = UINT32_MAX};
    for (int32_t rank = 0; rank < MOST + BEYOND; rank++) {
        ranks[0].rank = events[0].rank = rank;
        events[0].time_ns = BEGIN + (uint64_t)rank;
        processor_incident.processor.consume(incident, &told);
    }
    say(0, "pcie_aer", "uncorrectable_fatal", 3, "gpu", "node-b/0000:45:00");
    say(1, "nccl_hang", "missing_rank", 5, "rank", "2");
    say(2, "nccl_hang", "missing_rank", 6, "rank", "3");
    say(3, "nccl_hang", "missing_rank", 7, "rank", "65538");
    evaluate((int[]){0, 1, 2, 3}, 4);
    ck_assert_int_eq(relation(1, 0), -1);
    ck_assert_int_eq(relation(2, 0), RELATION_CAUSED_BY);
    ck_assert_int_eq(relation(3, 0), RELATION_CAUSED_BY);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("incident");
    TCase *cases = tcase_create("incident");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, a_fault_lies_behind_a_hang);
    tcase_add_test(cases, another_gpu_of_the_node_is_no_cause);
    tcase_add_test(cases, the_node_decides_where_the_gpu_is_not_known);
    tcase_add_test(cases, window_and_skew);
    tcase_add_loop_test(cases, what_is_broken_explains_who_meets_it, 0, sizeof MET / sizeof *MET);
    tcase_add_test(cases, an_end_explains_waits_for_that_rank_before_it);
    tcase_add_test(cases, heat_never_hangs_and_a_swing_explains_nothing);
    tcase_add_loop_test(cases, what_slows_the_place_of_a_slow_rank_explains_it, 0,
                        sizeof SLOWING / sizeof *SLOWING);
    tcase_add_loop_test(cases, what_slows_a_rank_may_be_seen_after_it, 0,
                        sizeof SLOWING / sizeof *SLOWING);
    tcase_add_test(cases, one_root_of_a_chain);
    tcase_add_test(cases, the_root_is_what_nothing_explains);
    tcase_add_test(cases, a_circle_is_cut_where_it_goes_back);
    tcase_add_test(cases, what_was_sampled_began_behind_the_sample_before);
    tcase_add_test(cases, a_rank_that_ended_explains_the_hang_that_misses_it);
    tcase_add_test(cases, ranks_of_two_jobs_without_names_are_told_apart_by_place);
    tcase_add_test(cases, the_job_of_a_hang_is_told_by_where_its_dumps_came_from);
    tcase_add_test(cases, two_jobs_with_a_rank_on_one_node_stay_unknown);
    tcase_add_test(cases, where_ranks_only_wait_says_nothing);
    tcase_add_test(cases, what_a_detector_says_of_its_own_counts);
    tcase_add_test(cases, said_again_when_what_is_related_changed);
    tcase_add_test(cases, a_fault_of_a_gpu_names_who_used_it);
    tcase_add_test(cases, a_uuid_is_enough_to_tell_gpus_of_a_node_apart);
    tcase_add_loop_test(cases, the_age_of_a_rank_map_names_nobody, 0, 3);
    tcase_add_loop_test(cases, the_age_of_a_rank_map_moves_nobody, 0, 2);
    tcase_add_loop_test(cases, a_rank_map_without_a_job_is_of_the_only_one, 0, 2);
    tcase_add_test(cases, ranks_of_two_jobs_share_a_node_and_no_gpu);
    tcase_add_loop_test(cases, a_rank_without_a_job_is_of_the_only_one, 0, 2);
    tcase_add_test(cases, what_is_known_of_places_and_verdicts_outlives_a_restart);
    tcase_add_test(cases, the_oldest_make_room);
    tcase_add_test(cases, the_oldest_ranks_make_room);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
