// SPDX-License-Identifier: Apache-2.0
// receivers/decode/flight_recorder/recorder_pickle.c: what PyTorch wrote is read straight, and is
// the same as when it is read by its values; of everything else the same is said.
#include "receivers/decode/flight_recorder/recorder_pickle.h"

#include "base/buffer.h"

#include "tests/receivers/decode/flight_recorder/flight_support.h"

static struct arena arena;

static void setup(void) {
    arena_init(&arena, 1 << 16);
}

static void teardown(void) {
    arena_release(&arena);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static const char *path_of(const char *scenario, const char *form, int rank) {
    static char path[1024];
    snprintf(path, sizeof path, "%s/golden/real_flight_recorder/%s/%s/comm_lib_trace_rank_%d",
             TESTS_DIR, scenario, form, rank);
    return path;
}

static bool read_straight(struct slice record, struct flight_dump *dump, uint32_t *seen) {
    *dump = (struct flight_dump){.whole = true, .rank = 0};
    return recorder_pickle_read(record, 4, &arena, &arena, dump, seen);
}

// What PyTorch wrote is read straight; what Python wrote is left to the reader of any pickle.
START_TEST(recorded_dumps_are_read_straight) {
    struct flight_dump dump;
    uint32_t seen;
    for (int rank = 0; rank < 4; rank++) {
        struct slice file = flight_file(path_of(FLIGHT_SCENARIOS[_i], "pickle", rank));
        ck_assert(read_straight(file, &dump, &seen));
        ck_assert_uint_eq(seen, dump.entry_count);
        ck_assert_uint_gt(seen, 10);
        flight_file_close(file);
    }
    char path[1024];
    snprintf(path, sizeof path, "%s/receivers/decode/flight_recorder/pickle/dump_protocol_2_rank_0",
             TESTS_DIR);
    struct slice python = flight_file(path);
    ck_assert(!read_straight(python, &dump, &seen));
    flight_file_close(python);
}
END_TEST

static void assert_same_groups(const struct flight_dump *a, const struct flight_dump *b) {
    ck_assert_uint_eq(a->group_count, b->group_count);
    for (uint32_t i = 0; i < a->group_count; i++) {
        const struct flight_group *one = &a->groups[i], *other = &b->groups[i];
        assert_same_text(one->name, other->name);
        assert_same_text(one->desc, other->desc);
        ck_assert_uint_eq(one->member_count, other->member_count);
        ck_assert_int_eq(one->members == NULL, other->members == NULL);
        if (one->members != NULL)
            ck_assert_mem_eq(one->members, other->members, one->member_count * sizeof(int32_t));
    }
}

// The same record as one of protocol 3, which PyTorch does not write, is read by its values: both
// must say the same of it, whatever it holds.
static bool assert_same_as_values(struct flight_reading readings[2], struct slice record) {
    char *copy = memory_take(record.size + 1);
    memcpy(copy, record.data, record.size);
    if (record.size > 1 && copy[1] == 2)
        copy[1] = 3;
    const struct flight_dump *a =
        flight_read(&readings[0], &decoder_flight_pickle, "rank_0", record);
    const struct flight_dump *b = flight_read(&readings[1], &decoder_flight_pickle, "rank_0",
                                              (struct slice){copy, record.size});
    const struct decode_fault *found = &readings[0].fault, *wanted = &readings[1].fault;
    ck_assert_int_eq(readings[0].category, readings[1].category);
    if (a == NULL) {
        ck_assert_str_eq(found->field, wanted->field);
        ck_assert_str_eq(found->detail, wanted->detail);
        ck_assert_uint_eq(found->offset, wanted->offset);
    } else {
        ck_assert_uint_eq(readings[0].event.time_ns, readings[1].event.time_ns);
        ck_assert_uint_eq(a->entry_count, b->entry_count);
        assert_same_text(a->version, b->version);
        ck_assert_int_eq(a->counts_completed, b->counts_completed);
        assert_same_groups(a, b);
        for (uint32_t i = 0; i < a->entry_count; i++)
            assert_same_entry(&a->entries[i], &b->entries[i]);
    }
    arena_reset(&readings[0].arena);
    arena_reset(&readings[1].arena);
    memory_give(copy);
    return a != NULL;
}

// Bytes changed, doubled and taken away: near each other, so that op codes get other arguments and
// arguments become op codes.
static struct slice broken(struct slice file, char *room, uint64_t *seed, unsigned round) {
    memcpy(room, file.data, file.size);
    size_t size = file.size;
    for (unsigned i = 0; i <= round % 3; i++) {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        size_t at = *seed % (size - 8), length = 1 + (*seed >> 20) % 7;
        unsigned char value = (unsigned char)(*seed >> 32);
        if (round % 5 == 3) {
            memmove(room + at, room + at + length, size - at - length);
            size -= length;
        } else if (round % 5 == 4) {
            memmove(room + at + length, room + at, size - at);
            size += length;
        } else {
            room[at] =
                round % 2 == 0 ? (char)value : "hKMNX(]}eu.\x86\x88\x89\x8aGqrJjt"[value % 20];
        }
    }
    return (struct slice){room, size};
}

START_TEST(straight_as_by_values) {
    struct flight_reading readings[2];
    flight_open(&readings[0]);
    flight_open(&readings[1]);
    struct slice file = flight_file(path_of(FLIGHT_SCENARIOS[_i], "pickle", _i % 4));
    ck_assert(assert_same_as_values(readings, file));
    for (size_t size = 0; size<file.size; size += size> 3000 ? 61 : 1) {
        char *cut = memory_take(size + 1); // its own block, so that a read past it is seen
        memcpy(cut, file.data, size);
        cut = memory_resize(cut, size > 0 ? size : 1);
        ck_assert(!assert_same_as_values(readings, (struct slice){cut, size}));
        memory_give(cut);
    }
    char *room = memory_take(file.size + 64);
    uint64_t seed = 88172645463325252u + (uint64_t)_i;
    unsigned accepted = 0, straight = 0;
    for (unsigned round = 0; round < 700; round++) {
        struct slice record = broken(file, room, &seed, round);
        struct flight_dump dump;
        uint32_t seen;
        accepted += assert_same_as_values(readings, record);
        straight += read_straight(record, &dump, &seen);
        arena_reset(&arena);
    }
    ck_assert_uint_gt(straight, 20);
    ck_assert_uint_gt(accepted, straight);
    memory_give(room);
    flight_file_close(file);
    flight_close(&readings[0]);
    flight_close(&readings[1]);
}
END_TEST

// A whole dump around one value under a key of its only entry.
static void put_dump(struct buffer *out, const char *key, struct slice value) {
    buffer_reset(out);
    buffer_append(out, SLICE("\x80\x02}(X\x07\x00\x00\x00"
                             "entriesq\x00](}(X\x0d\x00\x00\x00"
                             "process_groupq\x01X\x01\x00\x00\x00"
                             "0q\x02h\x02\x86X\x06\x00\x00\x00"
                             "seq_idq\x03K\x04X"));
    uint32_t size = (uint32_t)strlen(key);
    buffer_append(out, (struct slice){(const char *)&size, 4});
    buffer_append_text(out, key);
    buffer_append(out, SLICE("q\x04"));
    buffer_append(out, value);
    buffer_append(out, SLICE("ueu."));
}

// Each kind of value in each field, also such as are written otherwise or hold what a text of sizes
// must escape.
START_TEST(values_straight_as_by_values) {
    static const char *const KEYS[] = {
        "record_id", "process_group", "collective_seq_id", "profiling_name", "state",
        "retired",   "timeout_ms",    "input_sizes",       "output_dtypes",  "frames",
        "seq_id",    "is_p2p",        "unknown",           "time_created_ns"};
    static const struct slice VALUES[] = {SLICE("N"),
                                          SLICE("\x88"),
                                          SLICE("\x89"),
                                          SLICE("K\x07"),
                                          SLICE("M\x01\xff"),
                                          SLICE("J\xfe\xff\xff\xff"),
                                          SLICE("\x8a\x00"),
                                          SLICE("\x8a\x03\x01\x02\x83"),
                                          SLICE("\x8a\x08\x01\x02\x03\x04\x05\x06\x07\x80"),
                                          SLICE("\x8a\x09\x01\x02\x03\x04\x05\x06\x07\x08\x09"),
                                          SLICE("G\x3f\xf8\x00\x00\x00\x00\x00\x00"),
                                          SLICE("X\x00\x00\x00\x00"),
                                          SLICE("X\x02\x00\x00\x00"
                                                "12q\x05"),
                                          SLICE("X\x03\x00\x00\x00"
                                                "a\"\x01"),
                                          SLICE("X\x02\x00\x00\x00\xc3\xa4"),
                                          SLICE("X\x01\x00\x00\x00\xc3"),
                                          SLICE("h\x02"),
                                          SLICE("h\x05"),
                                          SLICE("j\x02\x00\x00\x00"),
                                          SLICE("]"),
                                          SLICE("}"),
                                          SLICE(")"),
                                          SLICE("](K\x01M\x00\x10J\xff\xff\xff\xff"
                                                "e"),
                                          SLICE("](](K\x01"
                                                "e]e"),
                                          SLICE("](](](K\x01"
                                                "eee"),
                                          SLICE("](](](](K\x01"
                                                "eeee"),
                                          SLICE("](N\x88"
                                                "e"),
                                          SLICE("](h\x02X\x03\x00\x00\x00"
                                                "a\"bX\x01\x00\x00\x00\\"
                                                "e"),
                                          SLICE("](X\x01\x00\x00\x00xe"),
                                          SLICE("]q\x05(h\x05"
                                                "e"),
                                          SLICE("](K\x01"
                                                "eq\x05"),
                                          SLICE("](K\x01"
                                                "eK\x02"
                                                "a"),
                                          SLICE("}(h\x02K\x01u"),
                                          SLICE("}(h\x02u"),
                                          SLICE("}(h\x02K\x01"
                                                "e"),
                                          SLICE("](h\x02h\x02"
                                                "t"),
                                          SLICE("h\x02\x85"),
                                          SLICE("(K\x01K\x02t"),
                                          SLICE("h\x02h\x02\x86q\x05"),
                                          SLICE("](](](](](](](](](eeeeeeeee"),
                                          SLICE("h"),
                                          SLICE("K\x01K\x02"),
                                          SLICE("")};
    struct flight_reading readings[2];
    struct buffer bytes;
    buffer_init(&bytes, 1 << 20);
    flight_open(&readings[0]);
    flight_open(&readings[1]);
    unsigned accepted = 0;
    for (size_t key = 0; key < sizeof KEYS / sizeof *KEYS; key++)
        for (size_t value = 0; value < sizeof VALUES / sizeof *VALUES; value++) {
            put_dump(&bytes, KEYS[key], VALUES[value]);
            accepted += assert_same_as_values(readings, buffer_slice(&bytes));
        }
    ck_assert_uint_gt(accepted, 150);
    buffer_release(&bytes);
    flight_close(&readings[0]);
    flight_close(&readings[1]);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("recorder_pickle");
    TCase *tcase = tcase_create("recorder_pickle");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, recorded_dumps_are_read_straight, 0, FLIGHT_SCENARIO_COUNT);
    tcase_add_loop_test(tcase, straight_as_by_values, 0, FLIGHT_SCENARIO_COUNT);
    tcase_add_test(tcase, values_straight_as_by_values);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
