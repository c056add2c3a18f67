// SPDX-License-Identifier: Apache-2.0
// nccl_hang on dumps made by hand: who is named, when, and who is not.

#include "base/hash/digest.h"
#include "cli/component_list.h"
#include "pipeline/model/event.h"
#include "pipeline/model/node_event.h"
#include "tests/support/detector.h"

#include <inttypes.h>
#include <string.h>

enum { EVENTS_MAX = 512, ENTRIES_MAX = 80 };
static const uint64_t NOON = UINT64_C(1795000000) * 1000000000;

// -- dumps ---------------------------------------------------------------------------------------

struct world {
    struct arena arena;
    struct event events[EVENTS_MAX];
    uint32_t count;
};

static struct world *world;
static struct detector detector;

static void setup(void) {
    world = memory_zero(1, sizeof *world);
    arena_init(&world->arena, 1 << 16);
    detector = detector_open(&processor_nccl_hang);
}

static void teardown(void) {
    detector_close(&detector);
    arena_release(&world->arena);
    memory_give(world);
    metrics_release();
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

// Seconds after noon; negative: before it.
static uint64_t at(double seconds) {
    return NOON + (uint64_t)(int64_t)(seconds * 1e9);
}

static struct flight_dump *add_dump(int32_t rank, double seconds) {
    ck_assert_uint_lt(world->count, EVENTS_MAX);
    struct flight_dump *dump = arena_zero(&world->arena, 1, sizeof *dump);
    dump->entries = arena_zero(&world->arena, ENTRIES_MAX, sizeof *dump->entries);
    dump->groups = arena_zero(&world->arena, 8, sizeof *dump->groups);
    dump->rank = rank;
    dump->whole = true;
    dump->backend = SLICE("nccl");
    dump->version = SLICE("2.10");
    dump->observed_ns = at(seconds);
    world->events[world->count++] =
        (struct event){.time_ns = at(seconds), .rank = rank, .kind = EVENT_FLIGHT, .flight = dump};
    return dump;
}

static void add_members(struct flight_dump *dump, const char *name, const char *desc,
                        const int32_t *ranks, uint32_t count) {
    struct flight_group *group =
        (struct flight_group *)(uintptr_t)&dump->groups[dump->group_count++];
    int32_t *members = arena_take(&world->arena, (count + 1) * sizeof *members);
    if (count > 0)
        memcpy(members, ranks, count * sizeof *members);
    *group = (struct flight_group){slice_of(name), slice_of(desc), members, count};
}

// The world group of `count` ranks.
static struct flight_dump *add_member_dump(int32_t rank, int32_t count, double seconds) {
    struct flight_dump *dump = add_dump(rank, seconds);
    int32_t ranks[1024];
    for (int32_t i = 0; i < count; i++)
        ranks[i] = i;
    add_members(dump, "0", "default_pg", ranks, (uint32_t)count);
    return dump;
}

// Created so many seconds after noon, started 0.1 s and ended 1 s later.
static struct flight_entry *add_entry(struct flight_dump *dump, const char *group, const char *desc,
                                      int64_t sequence, enum flight_state state, double created) {
    ck_assert_uint_lt(dump->entry_count, ENTRIES_MAX);
    struct flight_entry *entry =
        (struct flight_entry *)(uintptr_t)&dump->entries[dump->entry_count];
    *entry = (struct flight_entry){
        .record_id = dump->entry_count++,
        .collective_seq_id = sequence,
        .group = slice_of(group),
        .desc = slice_of(desc),
        .name = SLICE("nccl:all_reduce"),
        .created_ns = at(created),
        .started_ns = state >= FLIGHT_STARTED ? at(created + 0.1) : 0,
        .completed_ns = state == FLIGHT_COMPLETED ? at(created + 1) : 0,
        .state = state,
        .retired = state == FLIGHT_COMPLETED,
        .timeout_ms = 600000,
        .input_sizes = SLICE("[[8,8]]"),
        .output_sizes = SLICE("[[8,8]]"),
        .input_dtypes = SLICE("[\"Float\"]"),
        .output_dtypes = SLICE("[\"Float\"]"),
    };
    dump->reports_states |= state != FLIGHT_SCHEDULED;
    return entry;
}

static struct flight_entry *add_world(struct flight_dump *dump, int64_t sequence,
                                      enum flight_state state, double created) {
    return add_entry(dump, "0", "default_pg", sequence, state, created);
}

static struct flight_entry *add_p2p(struct flight_dump *dump, const char *name, int64_t sequence,
                                    enum flight_state state, double created) {
    struct flight_entry *entry = add_entry(dump, "0", "default_pg", 5, state, created);
    entry->is_p2p = true;
    entry->p2p_seq_id = sequence;
    entry->name = slice_of(name);
    return entry;
}

// One entry as it is now.
static void add_stream(int32_t rank, int64_t sequence, enum flight_state state, double created,
                       double seconds) {
    struct flight_dump *dump = add_dump(rank, seconds);
    add_world(dump, sequence, state, created);
    dump->whole = false;
}

// Ranks 0 to count - 1 wait in `sequence` since `created`, but `absent`, who ended the one before.
static void add_hang(int32_t count, int32_t absent, int64_t sequence, double created,
                     double seconds) {
    for (int32_t rank = 0; rank < count; rank++) {
        struct flight_dump *dump = add_member_dump(rank, count, seconds);
        add_world(dump, sequence - 1, FLIGHT_COMPLETED, created - 5);
        if (rank != absent)
            add_world(dump, sequence, FLIGHT_STARTED, created);
    }
}

// -- verdicts ------------------------------------------------------------------------------------

static const char *judge_at(double seconds) {
    detector_feed(&detector, world->events, world->count);
    world->count = 0;
    detector_judge(&detector, at(seconds), false);
    return detector_lines(&detector);
}

static const char *judge(void) {
    if (detector.newest_ns == 0 && detector.lines.size == 0)
        detector_start(&detector);
    detector_feed(&detector, world->events, world->count);
    detector_finish(&detector);
    return detector_lines(&detector);
}

static void assert_has(const char *lines, const char *text) {
    ck_assert_msg(strstr(lines, text) != NULL, "%s is not in\n%s", text, lines);
}

static void assert_lacks(const char *lines, const char *text) {
    ck_assert_msg(strstr(lines, text) == NULL, "%s is in\n%s", text, lines);
}

static void assert_kind(const char *lines, const char *kind) {
    char text[64];
    snprintf(text, sizeof text, "\"kind\":\"%s\",\"state\"", kind);
    assert_has(lines, text);
}

static void assert_role(const char *lines, int32_t rank, const char *role) {
    char text[128];
    snprintf(text, sizeof text, "{\"kind\":\"rank\",\"name\":\"%d\",\"role\":\"%s\"}", rank, role);
    assert_has(lines, text);
}

static void assert_count(uint32_t count) {
    ck_assert_msg(detector.verdict_count == count, "%u verdicts instead of %u:\n%s",
                  detector.verdict_count, count, detector_lines(&detector));
}

// -- the tests of the detector's table -----------------------------------------------------------

START_TEST(one_absent_of_eight) {
    add_hang(8, 5, 1201, 0, 100);
    const char *lines = judge();
    assert_count(1);
    assert_kind(lines, "missing_rank");
    assert_role(lines, 5, "culprit");
    assert_has(lines, "\"confidence\":85");
    assert_has(lines, "Rank 5 never called all_reduce 1201 of default_pg; 7 ranks wait for it");
    assert_has(lines, "\"culprit.straggler\":\"true\"");
    assert_has(lines, "fr:0:1200:5");
    assert_lacks(lines, "fr:0:1201:5");
}
END_TEST

START_TEST(all_complete) {
    for (int32_t rank = 0; rank < 4; rank++) {
        struct flight_dump *dump = add_member_dump(rank, 4, 500);
        for (int64_t sequence = 1; sequence <= 20; sequence++)
            add_world(dump, sequence, FLIGHT_COMPLETED, (double)sequence * 2);
    }
    judge();
    assert_count(0);
}
END_TEST

START_TEST(one_below_the_threshold_and_one_above) {
    add_hang(3, 2, 7, 0, 59.9);
    judge();
    assert_count(0);
    // Rank 0 waits for 70 s, rank 1 for 20: both wait for the same rank.
    world->count = 0;
    for (int32_t rank = 0; rank < 3; rank++) {
        struct flight_dump *dump = add_member_dump(rank, 3, 270);
        add_world(dump, 8, FLIGHT_COMPLETED, 100);
        if (rank != 2)
            add_world(dump, 9, FLIGHT_STARTED, rank == 0 ? 199.9 : 249.9);
    }
    const char *lines = judge();
    assert_count(1);
    assert_role(lines, 2, "culprit");
    assert_has(lines, "fr:0:9:0");
    assert_has(lines, "fr:0:9:1");
    assert_lacks(lines, "fr:0:7:");
}
END_TEST

START_TEST(solo_survivor) {
    for (int32_t rank = 0; rank < 4; rank++) {
        struct flight_dump *dump = add_member_dump(rank, 4, 200);
        add_world(dump, 3, rank == 2 ? FLIGHT_STARTED : FLIGHT_COMPLETED, 10);
    }
    const char *lines = judge();
    assert_count(1);
    assert_kind(lines, "not_completed");
    assert_role(lines, 2, "culprit");
    assert_has(lines, "\"confidence\":70");
    assert_has(lines, "which all others completed");
}
END_TEST

START_TEST(threshold_is_configurable) {
    static const char *const VALUES[] = {"5s", "500s"};
    detector_set(&detector, "stuck_after", VALUES[_i]);
    add_hang(4, 1, 12, 0, 30);
    judge();
    assert_count(_i == 0 ? 1 : 0);
}
END_TEST

START_TEST(shuffled_ranks_give_equal_bytes) {
    char *first = NULL;
    uint64_t seed = 1;
    for (int round = 0; round < 60; round++) {
        add_hang(9, 4, 77, 0, 100);
        for (int32_t rank = 0; rank < 4; rank++) { // a second group of the same job
            struct flight_dump *dump = add_dump(rank, 100.5);
            add_members(dump, "tp", "tp", (const int32_t[]){0, 1, 2, 3}, 4);
            add_entry(dump, "tp", "tp", 4, FLIGHT_COMPLETED, -3);
            if (rank < 3)
                add_entry(dump, "tp", "tp", 5, FLIGHT_STARTED, 1);
        }
        for (uint32_t i = world->count; round > 0 && i > 1; i--) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            uint32_t j = (uint32_t)(seed >> 33) % i;
            struct event event = world->events[i - 1];
            world->events[i - 1] = world->events[j];
            world->events[j] = event;
        }
        struct detector own = detector_open(&processor_nccl_hang);
        detector_start(&own);
        for (uint32_t i = 0; i < world->count; i += 1 + (uint32_t)round % 5) {
            uint32_t left = world->count - i, size = 1 + (uint32_t)round % 5;
            detector_feed(&own, &world->events[i], left < size ? left : size);
        }
        detector_finish(&own);
        ck_assert_uint_eq(own.verdict_count, 2);
        const char *lines = detector_lines(&own);
        if (first == NULL)
            first = memory_copy_text(lines, strlen(lines));
        ck_assert_str_eq(lines, first);
        detector_close(&own);
        world->count = 0;
        arena_reset(&world->arena);
    }
    memory_give(first);
    detector_start(&detector);
}
END_TEST

// Rank 2 never calls 504 of tp_1, in which rank 3 waits; ranks 0 and 1 wait for both in the world.
static void add_two_groups(bool rank_two_waits_too) {
    for (int32_t rank = 0; rank < 4; rank++) {
        struct flight_dump *dump = add_member_dump(rank, 4, 100);
        int32_t low = rank / 2 * 2;
        const char *name = rank < 2 ? "1" : "2", *desc = rank < 2 ? "tp_0" : "tp_1";
        add_members(dump, name, desc, (const int32_t[]){low, low + 1}, 2);
        add_world(dump, 76, FLIGHT_COMPLETED, 0);
        add_entry(dump, name, desc, 503, FLIGHT_COMPLETED, 5);
        if (rank < 2)
            add_world(dump, 77, FLIGHT_STARTED, 12);
        else if (rank == 3 || rank_two_waits_too)
            add_entry(dump, name, desc, 504, FLIGHT_STARTED, 11);
    }
}

START_TEST(two_groups_one_root) {
    add_two_groups(false);
    const char *lines = judge();
    assert_count(2);
    const char *second = strchr(lines, '\n');
    assert_has(lines, "Rank 2 never called all_reduce 504 of tp_1");
    assert_has(second, "Rank 2 never called all_reduce 77 of default_pg");
    assert_role(second, 3, "victim");
    assert_lacks(lines, "{\"kind\":\"rank\",\"name\":\"3\",\"role\":\"culprit\"}");
}
END_TEST

START_TEST(who_waits_elsewhere_is_not_to_blame) {
    add_two_groups(true);
    const char *lines = judge();
    assert_count(2);
    const char *second = strchr(lines, '\n');
    assert_kind(lines, "all_started"); // tp_1: both came to it
    assert_kind(second, "missing_rank");
    assert_lacks(lines, "\"role\":\"culprit\"");
    assert_role(second, 2, "victim");
    assert_has(second, "held up elsewhere");
    assert_has(second, "all_reduce 76; it waits elsewhere");
}
END_TEST

START_TEST(completed_then_stale_started) {
    detector_start(&detector);
    for (int32_t rank = 0; rank < 2; rank++) {
        add_world(add_member_dump(rank, 2, 5), 1, FLIGHT_COMPLETED, 1);
        add_stream(rank, 2, FLIGHT_STARTED, 10, 100);
    }
    const char *lines = judge_at(100);
    assert_count(1);
    assert_kind(lines, "all_started");
    detector_lines_reset(&detector);
    add_stream(0, 2, FLIGHT_COMPLETED, 10, 128);
    add_stream(1, 2, FLIGHT_COMPLETED, 10, 129);
    add_stream(0, 2, FLIGHT_STARTED, 10, 131);
    add_stream(1, 2, FLIGHT_SCHEDULED, 10, 131);
    add_stream(0, 3, FLIGHT_STARTED, 180, 200);
    lines = judge_at(200);
    assert_count(1);
    assert_has(lines, "\"state\":\"resolved\"");
    assert_has(lines, "hangs no longer");
    detector_lines_reset(&detector);
    detector_finish(&detector);
    assert_count(0);
}
END_TEST

static const char *nano(const char *key, double seconds) {
    static char text[96];
    snprintf(text, sizeof text, "\"%s\":\"%" PRIu64 "\"", key, at(seconds));
    return text;
}

// From the first who waits to the newest dump that shows somebody wait, whatever other records say
// of the time; the headline tells the same.
START_TEST(times_are_those_of_the_dumps) {
    add_hang(8, 5, 1201, 0, 100);
    world->events[7].time_ns = at(130.5); // rank 7 dumped last
    add_stream(5, 3, FLIGHT_COMPLETED, 1, 4000);
    const char *lines = judge();
    assert_count(1);
    assert_has(lines, "7 ranks wait for it, for 2 min 11 s when last seen\"");
    assert_has(lines, nano("start_time_unix_nano", 0));
    assert_has(lines, nano("end_time_unix_nano", 130.5));
    char seen[128];
    snprintf(seen, sizeof seen,
             "{\"uid\":\"fr:0:dump:%" PRIu64
             ":7\",\"description\":\"rank 7 still waited when "
             "it dumped\"",
             at(130.5));
    assert_has(lines, seen);
    assert_lacks(lines, "so far");
}
END_TEST

// Single records tell no end: what is known is that none came by now.
START_TEST(times_of_single_records) {
    detector_start(&detector);
    for (int32_t rank = 0; rank < 2; rank++) {
        add_world(add_member_dump(rank, 2, 5), 1, FLIGHT_COMPLETED, 1);
        add_stream(rank, 2, FLIGHT_STARTED, 10, 100);
    }
    add_stream(0, 1, FLIGHT_COMPLETED, 1, 200);
    const char *lines = judge_at(200);
    assert_count(1);
    assert_has(lines, nano("start_time_unix_nano", 10));
    assert_has(lines, nano("end_time_unix_nano", 200));
    detector_lines_reset(&detector);
    // When it is over it was last seen where it stood last.
    add_stream(0, 2, FLIGHT_COMPLETED, 10, 205);
    add_stream(1, 2, FLIGHT_COMPLETED, 10, 205);
    add_stream(0, 3, FLIGHT_STARTED, 895, 900);
    lines = judge_at(900);
    assert_count(1);
    assert_has(lines, "\"state\":\"resolved\"");
    assert_has(lines, nano("end_time_unix_nano", 200));
    detector_finish(&detector);
}
END_TEST

// What the odd rank of four calls differently; it is rank 0 or rank 3.
static void make_odd(struct flight_entry *entry, int aspect) {
    if (aspect == 0)
        entry->name = SLICE("nccl:_all_gather_base");
    else if (aspect == 1)
        entry->input_sizes = SLICE("[[8,4]]");
    else
        entry->output_dtypes = entry->input_dtypes = SLICE("[\"BFloat16\"]");
}

START_TEST(mismatch_with_the_odd_rank_first_or_last) {
    static const char *const KINDS[] = {"mismatch_type", "mismatch_size", "mismatch_dtype"};
    static const char *const WORDS[] = {"Rank %d called _all_gather_base where 3 ranks called",
                                        "Rank %d called all_reduce of [[8,4]] where 3 ranks",
                                        "all_reduce of [\\\"BFloat16\\\"] where 3 ranks called"};
    int32_t odd = _i % 2 == 0 ? 0 : 3;
    for (int32_t rank = 0; rank < 4; rank++) {
        struct flight_entry *entry =
            add_world(add_member_dump(rank, 4, 100), 42, FLIGHT_STARTED, 0);
        world->events[world->count - 1].node = intern(SLICE("gpu-node-01"));
        if (rank == odd)
            make_odd(entry, _i / 2);
    }
    const char *lines = judge();
    assert_count(1);
    assert_kind(lines, KINDS[_i / 2]);
    assert_role(lines, odd, "culprit");
    char words[128];
    snprintf(words, sizeof words, WORDS[_i / 2], odd);
    assert_has(lines, words);
    assert_has(lines, "\"action\":\"fix_workload\"");
    ck_assert_ptr_null(strstr(strstr(lines, "culprit\"}") + 1, "culprit\"}"));
    assert_lacks(lines, "gpu-node"); // the program is at fault
}
END_TEST

START_TEST(a_tie_names_nobody) {
    for (int32_t rank = 0; rank < 4; rank++) {
        struct flight_entry *entry =
            add_world(add_member_dump(rank, 4, 100), 42, FLIGHT_STARTED, 0);
        if (rank < 2)
            make_odd(entry, 0);
    }
    const char *lines = judge();
    assert_count(1);
    assert_kind(lines, "mismatch_type");
    assert_lacks(lines, "\"role\":\"culprit\"");
}
END_TEST

START_TEST(sizes_that_may_differ) {
    static const char *const NAMES[] = {"nccl:all_to_all", "nccl:scatter", "nccl:gather"};
    for (int32_t rank = 0; rank < 4; rank++) {
        struct flight_entry *entry =
            add_world(add_member_dump(rank, 4, 100), 42, FLIGHT_STARTED, 0);
        entry->name = slice_of(NAMES[_i]);
        if (rank == 0 && _i != 2)
            entry->input_sizes = SLICE("[[32,8]]");
        if (rank == 0 && _i != 1)
            entry->output_sizes = SLICE("[[32,8]]");
    }
    assert_kind(judge(), "all_started");
}
END_TEST

START_TEST(ring_wrapped_past_the_sequence) {
    for (int32_t rank = 0; rank < 3; rank++) {
        struct flight_dump *dump = add_member_dump(rank, 3, 300);
        add_members(dump, "7", "other", (const int32_t[]){0, 1, 2}, 3);
        if (rank < 2)
            add_world(dump, 5, FLIGHT_STARTED, 100);
        add_entry(dump, "7", "other", 900, FLIGHT_COMPLETED, 200)->record_id = 4000;
    }
    judge();
    assert_count(0);
}
END_TEST

// It may be in it or not: who is known to be missing is blamed, and the verdict says what is not
// known.
START_TEST(a_lost_ring_is_not_all_that_there_is) {
    for (int32_t rank = 0; rank < 4; rank++) {
        struct flight_dump *dump = add_member_dump(rank, 4, 300);
        add_members(dump, "7", "other", (const int32_t[]){0, 1, 2, 3}, 4);
        add_entry(dump, "7", "other", 900, FLIGHT_COMPLETED, rank == 2 ? 200 : 50)->record_id =
            4000;
        if (rank < 2)
            add_world(dump, 5, FLIGHT_STARTED, 100);
    }
    const char *lines = judge();
    assert_count(1);
    assert_role(lines, 3, "culprit");
    assert_has(lines, "\"completeness\":\"partial\",\"confidence\":85");
    assert_has(lines, "\"culprit.not_seen\":\"what rank 2 did there is not known\"");
}
END_TEST

// What an earlier dump showed under way ended, and its ring has lost it since.
START_TEST(ring_that_went_on) {
    detector_start(&detector);
    add_hang(3, 2, 5, 0, 100);
    judge_at(100);
    assert_count(1);
    detector_lines_reset(&detector);
    for (int32_t rank = 0; rank < 3; rank++) {
        struct flight_dump *dump = add_member_dump(rank, 3, 900);
        add_members(dump, "7", "other", (const int32_t[]){0, 1, 2}, 3);
        add_entry(dump, "7", "other", 900, FLIGHT_COMPLETED, 800)->record_id = 4000;
    }
    assert_has(judge_at(900), "\"state\":\"resolved\"");
    assert_count(1);
}
END_TEST

START_TEST(ring_that_still_holds_the_group) {
    // Its oldest entry is older than what the others wait in: it did not call it.
    for (int32_t rank = 0; rank < 3; rank++) {
        struct flight_dump *dump = add_member_dump(rank, 3, 300);
        add_members(dump, "7", "other", (const int32_t[]){0, 1, 2}, 3);
        add_entry(dump, "7", "other", 900, FLIGHT_COMPLETED, 50)->record_id = 4000;
        if (rank < 2)
            add_world(dump, 5, FLIGHT_STARTED, 100);
    }
    const char *lines = judge();
    assert_count(1);
    assert_role(lines, 2, "culprit");
}
END_TEST

// -- kinds ---------------------------------------------------------------------------------------

START_TEST(no_dump_of_a_rank) {
    for (int32_t rank = 0; rank < 3; rank++)
        add_world(add_member_dump(rank, 4, 100), 9, FLIGHT_STARTED, 0);
    const char *lines = judge();
    assert_count(1);
    assert_kind(lines, "missing_dump");
    assert_role(lines, 3, "suspect");
    assert_has(lines, "\"completeness\":\"partial\",\"confidence\":25");
    assert_has(lines, "\"action\":\"collect_dump\"");
    assert_lacks(lines, "\"role\":\"culprit\"");
}
END_TEST

START_TEST(a_dump_without_entries_is_a_dump) {
    for (int32_t rank = 0; rank < 4; rank++) {
        struct flight_dump *dump = add_member_dump(rank, 4, 100);
        if (rank != 3)
            add_world(dump, 9, FLIGHT_STARTED, 0);
        else
            dump->backend = SLICE("");
    }
    const char *lines = judge();
    assert_kind(lines, "missing_rank");
    assert_role(lines, 3, "culprit");
}
END_TEST

START_TEST(scheduled_where_the_others_started) {
    for (int32_t rank = 0; rank < 4; rank++) {
        struct flight_dump *dump = add_member_dump(rank, 4, 100);
        add_world(dump, 8, FLIGHT_COMPLETED, -5);
        add_world(dump, 9, rank == 1 ? FLIGHT_SCHEDULED : FLIGHT_STARTED, 0);
    }
    const char *lines = judge();
    assert_count(1);
    assert_kind(lines, "not_started");
    assert_role(lines, 1, "culprit");
}
END_TEST

START_TEST(all_started_and_past_the_timeout) {
    for (int32_t rank = 0; rank < 4; rank++)
        add_world(add_member_dump(rank, 4, 700), 9, FLIGHT_STARTED, 0);
    const char *lines = judge();
    assert_count(1);
    assert_kind(lines, "all_started");
    assert_has(lines, "\"severity\":\"critical\"");
    assert_has(lines, "\"confidence\":63");
    assert_has(lines, "\"action\":\"inspect_fabric\"");
}
END_TEST

// What is between its nodes may be broken, so it takes place there; a rank stands for its node
// where that is not known.
START_TEST(all_started_takes_place_at_its_nodes) {
    for (int32_t rank = 0; rank < 4; rank++) {
        add_world(add_member_dump(rank, 4, 300), 7, FLIGHT_STARTED, 0);
        if (rank < 3 || _i == 0)
            world->events[rank].node = intern(rank < 2 ? SLICE("node-b") : SLICE("node-a"));
    }
    const char *lines = judge();
    assert_kind(lines, "all_started");
    assert_has(lines,
               "\"entities\":[{\"kind\":\"node\",\"name\":\"node-a\",\"role\":\"victim\"},"
               "{\"kind\":\"node\",\"name\":\"node-b\",\"role\":\"victim\"}");
    if (_i == 0)
        assert_lacks(lines, "\"kind\":\"rank\"");
    else
        assert_role(lines, 3, "victim");
}
END_TEST

START_TEST(retired_is_past_its_timeout) {
    add_hang(2, 1, 4, 0, 100);
    struct flight_dump *dump = (struct flight_dump *)(uintptr_t)world->events[0].flight;
    ((struct flight_entry *)(uintptr_t)&dump->entries[1])->retired = true;
    assert_has(judge(), "\"severity\":\"error\",\"completeness\":\"full\",\"confidence\":93");
}
END_TEST

START_TEST(only_the_oldest_operation_of_a_group) {
    for (int32_t rank = 0; rank < 4; rank++) {
        struct flight_dump *dump = add_member_dump(rank, 4, 200);
        add_world(dump, 8, FLIGHT_COMPLETED, -5);
        if (rank != 3)
            for (int64_t sequence = 9; sequence < 40; sequence++)
                add_world(dump, sequence, sequence == 9 ? FLIGHT_STARTED : FLIGHT_SCHEDULED,
                          (double)sequence / 10);
    }
    const char *lines = judge();
    assert_count(1);
    assert_has(lines, "Rank 3 never called all_reduce 9 of default_pg");
}
END_TEST

START_TEST(a_dump_that_is_a_file_needs_no_age) {
    add_hang(3, 1, 4, 0, 0.5);
    for (uint32_t i = 0; i < world->count; i++)
        ((struct flight_dump *)(uintptr_t)world->events[i].flight)->is_file = true;
    const char *lines = judge();
    assert_count(1);
    assert_role(lines, 1, "culprit");
}
END_TEST

// A file may be older than those of the others: what they completed since is no hang.
START_TEST(files_of_different_age_name_nobody) {
    for (int32_t rank = 0; rank < 3; rank++) {
        struct flight_dump *dump = add_member_dump(rank, 3, rank == 0 ? 10 : 15);
        dump->is_file = true;
        add_world(dump, 4, rank == 0 ? FLIGHT_STARTED : FLIGHT_COMPLETED, 9);
    }
    judge();
    assert_count(0);
}
END_TEST

// Dumps of a job that is well, one a rank every five minutes: each shows an operation under way,
// and nothing is told of its end until the next one.
START_TEST(dumps_of_a_job_that_is_well) {
    detector_start(&detector);
    for (int round = 0; round < 3; round++) {
        for (int32_t rank = 0; rank < 4; rank++) {
            double when = round * 300 + rank * 5;
            struct flight_dump *dump = add_member_dump(rank, 4, when + 10);
            add_world(dump, 100 * round + rank, FLIGHT_COMPLETED, when + 8);
            add_world(dump, 100 * round + rank + 1, FLIGHT_STARTED, when + 9.5);
        }
        judge_at(round * 300 + 30);
        add_stream(9, round, FLIGHT_COMPLETED, round * 300 + 280, round * 300 + 299);
        judge_at(round * 300 + 299);
        assert_count(0);
    }
}
END_TEST

// Rank 1 dumped before the others came to wait: where it was then is not known.
START_TEST(a_dump_that_is_older_than_the_wait) {
    for (int32_t rank = 0; rank < 3; rank++) {
        struct flight_dump *dump = add_member_dump(rank, 3, rank == 1 ? 200 : 400);
        add_world(dump, 3, FLIGHT_COMPLETED, 190);
        if (rank != 1)
            add_world(dump, 4, FLIGHT_STARTED, 300);
    }
    const char *lines = judge();
    assert_count(1);
    assert_kind(lines, "missing_dump");
    assert_role(lines, 1, "suspect");
    assert_lacks(lines, "\"role\":\"culprit\"");
    assert_has(lines, "no dump of rank 1 is of that time");
}
END_TEST

// Its process was started again: what the dump of before showed is over, whichever came first.
START_TEST(the_dump_of_before_a_restart) {
    for (int i = 0; i < 4; i++) {
        bool again = (i < 2) == (_i == 0); // the dumps of after the restart
        struct flight_dump *dump = add_dump(i % 2, again ? 900 : 100);
        add_members(dump, again ? "1" : "0", "default_pg", (const int32_t[]){0, 1}, 2);
        add_entry(dump, again ? "1" : "0", "default_pg", again ? 2 : 50,
                  again ? FLIGHT_COMPLETED : FLIGHT_STARTED, again ? 850 : 20);
    }
    judge();
    assert_count(0);
}
END_TEST

START_TEST(helpers_of_coalesced_operations) {
    for (int32_t rank = 0; rank < 2; rank++) {
        struct flight_dump *dump = add_member_dump(rank, 2, 500);
        for (int i = 0; i < 3; i++)
            add_world(dump, 4, FLIGHT_SCHEDULED, 1);
        add_world(dump, 4, FLIGHT_COMPLETED, 1.1)->name = SLICE("nccl:coalesced");
        add_p2p(dump, rank == 0 ? "nccl:send 0->1" : "nccl:recv 1<-0", 1, FLIGHT_SCHEDULED, 3);
        add_p2p(dump, rank == 0 ? "nccl:recv 0<-1" : "nccl:send 1->0", 1, FLIGHT_SCHEDULED, 3);
        add_p2p(dump, "nccl:coalesced", 1, FLIGHT_COMPLETED, 3.1);
        // Without a closing entry, as older versions write it; what came later ended.
        add_world(dump, 5, FLIGHT_SCHEDULED, 10);
        add_world(dump, 6, FLIGHT_COMPLETED, 20);
    }
    judge();
    assert_count(0);
}
END_TEST

START_TEST(left_by_one_that_destroyed_the_group) {
    for (int32_t rank = 0; rank < 2; rank++) {
        struct flight_dump *dump = add_member_dump(rank, 2, 500);
        add_world(dump, 3, FLIGHT_COMPLETED, 90);
        if (rank == 0)
            add_members(dump, "9", "eval", (const int32_t[]){0, 1}, 2);
        add_entry(dump, "9", "eval", 1, FLIGHT_COMPLETED, 100);
        if (rank == 0)
            add_entry(dump, "9", "eval", 2, FLIGHT_STARTED, 200);
    }
    judge();
    assert_count(0);
}
END_TEST

START_TEST(some_came_out) {
    for (int32_t rank = 0; rank < 4; rank++)
        add_world(add_member_dump(rank, 4, 100), 9, rank < 2 ? FLIGHT_STARTED : FLIGHT_COMPLETED,
                  0);
    const char *lines = judge();
    assert_count(1);
    assert_kind(lines, "all_started");
    assert_has(lines, "2 ranks did not come out of all_reduce 9 of default_pg, 2 others did");
}
END_TEST

// -- producers that tell no states ---------------------------------------------------------------

static void make_stateless(struct flight_dump *dump, bool counts) {
    dump->backend = SLICE("gloo");
    dump->reports_states = false;
    dump->counts_completed = counts;
}

START_TEST(gloo_retires_what_ended) {
    for (int32_t rank = 0; rank < 3; rank++) {
        struct flight_dump *dump = add_dump(rank, 200);
        add_world(dump, 1, FLIGHT_SCHEDULED, 1)->retired = true;
        add_world(dump, 2, FLIGHT_SCHEDULED, 2)->retired = true;
        if (rank != 1)
            add_world(dump, 3, FLIGHT_SCHEDULED, 3);
        make_stateless(dump, true);
    }
    const char *lines = judge();
    assert_count(1);
    assert_kind(lines, "missing_rank");
    assert_role(lines, 1, "culprit");
    assert_has(lines, "\"completeness\":\"partial\"");
    assert_has(lines, "fr:0:2:1");
}
END_TEST

START_TEST(silent_recorders_show_only_who_is_behind) {
    for (int32_t rank = 0; rank < 3; rank++) {
        struct flight_dump *dump = add_member_dump(rank, 3, 200);
        for (int64_t sequence = 1; sequence <= (rank == 2 ? 20 : 22); sequence++)
            add_world(dump, sequence, FLIGHT_SCHEDULED, (double)sequence)->retired = true;
        make_stateless(dump, false);
        dump->is_file = true;
    }
    const char *lines = judge();
    assert_count(1);
    assert_has(lines, "Rank 2 never called all_reduce 21 of default_pg");
    assert_has(lines, "fr:0:21:0");
    assert_has(lines, "fr:0:20:2");
}
END_TEST

START_TEST(gloo_that_is_behind_after_all_ended) {
    // Retired means ended here, so dumps of different age show no hang.
    for (int32_t rank = 0; rank < 3; rank++) {
        struct flight_dump *dump = add_dump(rank, 200);
        for (int64_t sequence = 1; sequence <= 10 + rank; sequence++)
            add_world(dump, sequence, FLIGHT_SCHEDULED, (double)sequence)->retired = true;
        make_stateless(dump, true);
        dump->is_file = true;
    }
    judge();
    assert_count(0);
}
END_TEST

// -- sends and receives --------------------------------------------------------------------------

START_TEST(a_chain_of_sends_and_receives) {
    // 0 sends to 1, 1 receives from 2, 2 receives from 3, and 3 does nothing.
    static const char *const NAMES[] = {"nccl:send 0->1", "nccl:recv 1<-2", "nccl:recv 2<-3"};
    for (int32_t rank = 0; rank < 4; rank++) {
        struct flight_dump *dump = add_member_dump(rank, 4, 200);
        add_world(dump, 5, FLIGHT_COMPLETED, 0);
        if (rank < 3)
            add_p2p(dump, NAMES[rank], 10 + rank, FLIGHT_STARTED, 10 - rank);
    }
    const char *lines = judge();
    assert_count(1);
    assert_kind(lines, "missing_peer");
    assert_role(lines, 3, "culprit");
    assert_has(lines, "\"confidence\":75");
    assert_has(lines, "fr:0:p2p10:0");
    assert_has(lines, "fr:0:p2p11:1");
    assert_has(lines, "fr:0:p2p12:2");
}
END_TEST

START_TEST(a_circle_names_nobody) {
    static const char *const NAMES[] = {"nccl:recv 0<-1", "nccl:recv 1<-2", "nccl:recv 2<-0"};
    for (int32_t rank = 0; rank < 3; rank++)
        add_p2p(add_member_dump(rank, 3, 200), NAMES[rank], 4, FLIGHT_STARTED, 1 + rank);
    const char *lines = judge();
    assert_count(1);
    assert_kind(lines, "missing_peer");
    assert_lacks(lines, "\"role\":\"culprit\"");
    assert_has(lines, "in a circle");
}
END_TEST

START_TEST(a_pair_that_both_came_to) {
    add_p2p(add_member_dump(0, 2, 200), "nccl:send 0->1", 4, FLIGHT_STARTED, 1);
    add_p2p(add_member_dump(1, 2, 200), "nccl:recv 1<-0", 9, FLIGHT_STARTED, 1);
    const char *lines = judge();
    assert_count(1);
    assert_kind(lines, "all_started");
    assert_has(lines, "fr:0:p2p4:0");
    assert_has(lines, "fr:0:p2p9:1");
}
END_TEST

// Ranks 4 and 6 are numbers 0 and 1 of their group.
START_TEST(numbers_of_peers_are_places_in_the_group) {
    for (int32_t rank = 4; rank <= 6; rank += 2) {
        struct flight_dump *dump = add_dump(rank, 200);
        add_members(dump, "0", "default_pg", (const int32_t[]){4, 6}, 2);
        add_world(dump, 5, FLIGHT_COMPLETED, 0);
        if (rank == 4)
            add_p2p(dump, "nccl:send 0->1", 4, FLIGHT_STARTED, 1);
    }
    assert_role(judge(), 6, "culprit");
}
END_TEST

START_TEST(a_peer_that_waits_in_a_collective) {
    for (int32_t rank = 0; rank < 3; rank++) {
        struct flight_dump *dump = add_member_dump(rank, 3, 200);
        add_world(dump, 5, FLIGHT_COMPLETED, 0);
        if (rank == 0)
            add_p2p(dump, "nccl:recv 0<-1", 3, FLIGHT_STARTED, 2);
        if (rank == 1)
            add_world(dump, 6, FLIGHT_STARTED, 1);
    }
    const char *lines = judge();
    assert_count(2);
    assert_has(lines, "Rank 2 never called all_reduce 6 of default_pg");
    assert_role(strchr(lines, '\n'), 1, "culprit");
}
END_TEST

// -- groups --------------------------------------------------------------------------------------

START_TEST(split_groups_share_a_name) {
    for (int32_t rank = 0; rank < 4; rank++) {
        int32_t low = rank / 2 * 2;
        struct flight_dump *dump = add_dump(rank, 200);
        add_members(dump, "5", "split", (const int32_t[]){low, low + 1}, 2);
        add_entry(dump, "5", "split", 1, FLIGHT_COMPLETED, 1);
        // 0 and 1 are further; of 2 and 3 one is missing.
        if (rank < 2)
            add_entry(dump, "5", "split", 2, FLIGHT_COMPLETED, 2);
        else if (rank == 2)
            add_entry(dump, "5", "split", 2, FLIGHT_STARTED, 2);
    }
    const char *lines = judge();
    assert_count(1);
    assert_role(lines, 3, "culprit");
    assert_has(lines, "; 1 rank waits for it");
}
END_TEST

START_TEST(jobs_are_kept_apart) {
    for (int job = 0; job < 2; job++)
        for (int32_t rank = 0; rank < 2; rank++) {
            struct flight_dump *dump = add_member_dump(rank, 2, 200);
            add_world(dump, 1, FLIGHT_COMPLETED, 0);
            if (job == 1 || rank == 0)
                add_world(dump, 2, job == 0 ? FLIGHT_STARTED : FLIGHT_COMPLETED, 1);
            world->events[world->count - 1].job = intern(slice_of(job == 0 ? "a" : "b"));
        }
    const char *lines = judge();
    assert_count(1);
    assert_has(lines, "\"job_id\":\"a\"");
    assert_role(lines, 1, "culprit");
}
END_TEST

START_TEST(a_job_that_was_started_again) {
    detector_start(&detector);
    for (int32_t rank = 0; rank < 2; rank++) {
        struct flight_dump *dump = add_member_dump(rank, 2, 100);
        for (int64_t sequence = 400; sequence < 420; sequence++)
            add_world(dump, sequence, FLIGHT_COMPLETED, 1);
    }
    judge_at(100);
    add_hang(2, 1, 3, 2000, 2100); // counts anew from 1
    const char *lines = judge_at(2100);
    assert_count(1);
    assert_has(lines, "Rank 1 never called all_reduce 3 of default_pg");
}
END_TEST

START_TEST(node_of_the_culprit) {
    add_hang(3, 1, 4, 0, 100);
    world->events[1].node = intern(SLICE("gpu-node-02"));
    struct rank_place place = {
        .rank = 1, .node = intern(SLICE("gpu-node-01")), .address = PCI_NONE, .pid = -1};
    world->events[world->count++] =
        (struct event){.time_ns = at(1), .rank = 1, .kind = EVENT_RANK_MAP, .place = &place};
    const char *lines = judge();
    assert_has(lines, "{\"kind\":\"node\",\"name\":\"gpu-node-02\",\"role\":\"suspect\"}");
    assert_has(lines, "rank 1 (on gpu-node-02)");
}
END_TEST

// gloo's dumps name no members: who is stopped leaves none, and only the rank map knows of it.
START_TEST(a_rank_of_the_map_left_no_dump) {
    for (int32_t rank = 0; rank < 4; rank++) {
        struct rank_place *place = arena_zero(&world->arena, 1, sizeof *place);
        *place = (struct rank_place){
            .rank = rank, .node = intern(SLICE("gpu-node-01")), .address = PCI_NONE, .pid = -1};
        world->events[world->count++] =
            (struct event){.time_ns = at(0), .rank = rank, .kind = EVENT_RANK_MAP, .place = place};
        if (rank == 2)
            continue;
        struct flight_dump *dump = add_dump(rank, 100);
        add_world(dump, 8, FLIGHT_COMPLETED, -5);
        add_world(dump, 9, FLIGHT_STARTED, 0);
    }
    const char *lines = judge();
    assert_count(1);
    assert_kind(lines, "missing_dump");
    assert_role(lines, 2, "suspect");
    assert_has(lines, "no dump of rank 2 was read");
}
END_TEST

START_TEST(dumps_missing_by_quarters) {
    // Rank 7 is missing; 4 of 8 left no dump.
    for (int32_t rank = 0; rank < 8; rank++) {
        if (rank >= 3 && rank < 7)
            continue;
        struct flight_dump *dump = add_member_dump(rank, 8, 100);
        add_world(dump, 8, FLIGHT_COMPLETED, -5);
        if (rank != 7)
            add_world(dump, 9, FLIGHT_STARTED, 0);
    }
    const char *lines = judge();
    assert_kind(lines, "missing_rank");
    assert_has(lines, "\"completeness\":\"partial\",\"confidence\":55");
    assert_role(lines, 7, "culprit");
    assert_role(lines, 3, "suspect");
}
END_TEST

START_TEST(evidence_of_many_ranks_keeps_the_culprit) {
    add_hang(400, 333, 9, 0, 100);
    const char *lines = judge();
    assert_count(1);
    assert_has(lines, "fr:0:8:333");
    assert_has(lines, "\"evidence_dropped\":144");
    assert_has(lines, "399 ranks wait for it");
}
END_TEST

START_TEST(the_id_stays_when_dumps_come) {
    detector_start(&detector);
    add_hang(4, 2, 9, 0, 100);
    world->count = 2; // of ranks 0 and 1 only
    char id[64];
    const char *lines = judge_at(100);
    assert_kind(lines, "missing_dump");
    memcpy(id, strstr(lines, "\"id\":"), 32);
    id[32] = '\0';
    detector_lines_reset(&detector);
    add_hang(4, 2, 9, 0, 101);
    lines = judge_at(101);
    assert_count(1);
    assert_kind(lines, "missing_rank");
    assert_has(lines, "\"state\":\"updated\"");
    assert_has(lines, id);
}
END_TEST

// -- bounds, time, state -------------------------------------------------------------------------

START_TEST(groups_that_nobody_speaks_of_are_forgotten) {
    detector_set(&detector, "forget_after", "1h");
    struct component_context context = {.once = false};
    struct error error = {0};
    ck_assert_int_eq(
        component_start(&processor_nccl_hang, detector.instance, detector.config, &context, &error),
        STATUS_OK);
    add_hang(2, 1, 9, 0, 100);
    assert_has(judge_at(100), "\"state\":\"open\"");
    detector_lines_reset(&detector);
    struct flight_dump *dump = add_dump(7, 4000);
    add_entry(dump, "other", "other", 1, FLIGHT_COMPLETED, 3999);
    assert_has(judge_at(4000), "\"state\":\"resolved\"");
    assert_count(1);
}
END_TEST

START_TEST(bounds_keep_what_was_heard_last) {
    detector_set(&detector, "max_groups", "16");
    detector_start(&detector);
    for (int i = 0; i < 200; i++) {
        char name[16];
        snprintf(name, sizeof name, "g%d", i / 2);
        struct flight_dump *dump = add_dump(i % 2, 100 + i / 2);
        dump->whole = false; // what a newer dump does not show would be over
        add_entry(dump, arena_text(&world->arena, slice_of(name)), "", 1, FLIGHT_STARTED, i / 2);
    }
    const char *lines = judge_at(400);
    assert_has(lines, "g99");
    assert_lacks(lines, "g50");
    ck_assert_uint_le(detector.verdict_count, 16);
    ck_assert_uint_ge(detector.verdict_count, 8);
    static const struct metric_family EVICTED = {
        .name = "culprit_detector_evicted_total", .help = "h", .type = METRIC_COUNTER};
    ck_assert_uint_ge(metric_value(METRIC(&EVICTED, "detector", "nccl_hang")), 100);
}
END_TEST

START_TEST(takes_no_memory_when_warm) {
    detector_start(&detector);
    uint64_t taken = 0;
    for (int round = 0; round < 4; round++) {
        add_hang(8, 5, 1201 + round, round, 100 + round);
        uint64_t before = memory_figures().allocations;
        detector_feed(&detector, world->events, world->count);
        detector_judge(&detector, at(100 + round), false);
        taken = memory_figures().allocations - before;
        world->count = 0;
        buffer_reset(&detector.lines);
    }
    ck_assert_uint_eq(taken, 0);
}
END_TEST

// What was declared as state, put into a new instance, goes on as if nothing had happened.
START_TEST(state_goes_on) {
    detector_start(&detector);
    add_two_groups(false);
    judge_at(100);
    assert_count(2);
    struct detector next = detector_open(&processor_nccl_hang);
    detector_start(&next);
    struct state_list from = {0}, to = {0};
    component_list_state(&processor_nccl_hang, detector.instance, &from);
    component_list_state(&processor_nccl_hang, next.instance, &to);
    ck_assert_uint_eq(from.count, to.count);
    for (uint32_t i = 0; i < from.count; i++) {
        ck_assert_str_eq(from.entries[i].name, to.entries[i].name);
        if (from.entries[i].table == NULL) {
            memcpy(to.entries[i].bytes, from.entries[i].bytes, from.entries[i].size);
            continue;
        }
        const struct table *table = from.entries[i].table;
        table_load(to.entries[i].table, table->used, table->free_head, table->free_count);
        for (uint32_t page = 0; page < table_page_count(table); page++) {
            size_t size;
            const void *bytes = table_page(table, page, &size);
            memcpy(table_page(to.entries[i].table, page, &size), bytes, size);
        }
    }
    component_restored(&processor_nccl_hang, next.instance);
    next.newest_ns = detector.newest_ns;
    detector_judge(&next, at(100), false);
    ck_assert_uint_eq(next.verdict_count, 0); // nothing new
    add_stream(2, 77, FLIGHT_COMPLETED, 50, 110);
    struct flight_dump *dump = add_dump(3, 110);
    add_entry(dump, "2", "tp_1", 504, FLIGHT_COMPLETED, 11);
    dump->whole = false;
    detector_feed(&next, world->events, world->count);
    detector_judge(&next, at(110), false);
    assert_has(detector_lines(&next), "\"state\":\"resolved\"");
    detector_close(&next);
}
END_TEST

START_TEST(odd_dumps_do_no_harm) {
    detector_start(&detector);
    add_dump(RANK_NONE, 1);
    struct flight_dump *dump = add_dump(0, 2);
    add_world(dump, 0, FLIGHT_STARTED, 0)->created_ns = 0;
    add_world(dump, INT64_MAX, FLIGHT_STARTED, 0)->name = SLICE("");
    add_world(dump, INT64_MAX, FLIGHT_COMPLETED, 0)->created_ns = UINT64_MAX;
    add_p2p(dump, "nccl:send 9->99999999999", 1, FLIGHT_STARTED, 0);
    add_p2p(dump, "nccl:send 0->", 2, FLIGHT_STARTED, 0);
    add_p2p(dump, "nccl:recv 0->1", 3, FLIGHT_STARTED, 0);
    add_p2p(dump, "nccl:recv 0<-0", 4, FLIGHT_STARTED, 0);
    add_members(dump, "0", "default_pg", NULL, 0);
    detector_feed(&detector, world->events, world->count);
    detector_finish(&detector);
    assert_count(0);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("nccl_hang");
    TCase *tcase = tcase_create("nccl_hang");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, one_absent_of_eight);
    tcase_add_test(tcase, all_complete);
    tcase_add_test(tcase, one_below_the_threshold_and_one_above);
    tcase_add_test(tcase, solo_survivor);
    tcase_add_loop_test(tcase, threshold_is_configurable, 0, 2);
    tcase_add_test(tcase, shuffled_ranks_give_equal_bytes);
    tcase_add_test(tcase, two_groups_one_root);
    tcase_add_test(tcase, who_waits_elsewhere_is_not_to_blame);
    tcase_add_test(tcase, completed_then_stale_started);
    tcase_add_test(tcase, times_are_those_of_the_dumps);
    tcase_add_test(tcase, times_of_single_records);
    tcase_add_loop_test(tcase, mismatch_with_the_odd_rank_first_or_last, 0, 6);
    tcase_add_test(tcase, a_tie_names_nobody);
    tcase_add_loop_test(tcase, sizes_that_may_differ, 0, 3);
    tcase_add_test(tcase, ring_wrapped_past_the_sequence);
    tcase_add_test(tcase, a_lost_ring_is_not_all_that_there_is);
    tcase_add_test(tcase, ring_that_went_on);
    tcase_add_test(tcase, ring_that_still_holds_the_group);
    tcase_add_test(tcase, no_dump_of_a_rank);
    tcase_add_test(tcase, a_dump_without_entries_is_a_dump);
    tcase_add_test(tcase, scheduled_where_the_others_started);
    tcase_add_test(tcase, all_started_and_past_the_timeout);
    tcase_add_loop_test(tcase, all_started_takes_place_at_its_nodes, 0, 2);
    tcase_add_test(tcase, retired_is_past_its_timeout);
    tcase_add_test(tcase, only_the_oldest_operation_of_a_group);
    tcase_add_test(tcase, a_dump_that_is_a_file_needs_no_age);
    tcase_add_test(tcase, files_of_different_age_name_nobody);
    tcase_add_test(tcase, dumps_of_a_job_that_is_well);
    tcase_add_test(tcase, a_dump_that_is_older_than_the_wait);
    tcase_add_loop_test(tcase, the_dump_of_before_a_restart, 0, 2);
    tcase_add_test(tcase, helpers_of_coalesced_operations);
    tcase_add_test(tcase, left_by_one_that_destroyed_the_group);
    tcase_add_test(tcase, some_came_out);
    tcase_add_test(tcase, gloo_retires_what_ended);
    tcase_add_test(tcase, silent_recorders_show_only_who_is_behind);
    tcase_add_test(tcase, gloo_that_is_behind_after_all_ended);
    tcase_add_test(tcase, a_chain_of_sends_and_receives);
    tcase_add_test(tcase, a_circle_names_nobody);
    tcase_add_test(tcase, a_pair_that_both_came_to);
    tcase_add_test(tcase, numbers_of_peers_are_places_in_the_group);
    tcase_add_test(tcase, a_peer_that_waits_in_a_collective);
    tcase_add_test(tcase, split_groups_share_a_name);
    tcase_add_test(tcase, jobs_are_kept_apart);
    tcase_add_test(tcase, a_job_that_was_started_again);
    tcase_add_test(tcase, node_of_the_culprit);
    tcase_add_test(tcase, a_rank_of_the_map_left_no_dump);
    tcase_add_test(tcase, dumps_missing_by_quarters);
    tcase_add_test(tcase, evidence_of_many_ranks_keeps_the_culprit);
    tcase_add_test(tcase, the_id_stays_when_dumps_come);
    tcase_add_test(tcase, groups_that_nobody_speaks_of_are_forgotten);
    tcase_add_test(tcase, bounds_keep_what_was_heard_last);
    tcase_add_test(tcase, takes_no_memory_when_warm);
    tcase_add_test(tcase, state_goes_on);
    tcase_add_test(tcase, odd_dumps_do_no_harm);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
