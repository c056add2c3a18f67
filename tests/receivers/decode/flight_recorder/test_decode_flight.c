// SPDX-License-Identifier: Apache-2.0
// receivers/decode/flight_recorder/flight_recorder.c: dumps of PyTorch's Flight Recorder in JSON,
// whole or as tagged lines, as they are and as they may become.
#include "tests/receivers/decode/flight_recorder/flight_support.h"

#include <jansson.h>

static struct flight_reading reading;

static void setup(void) {
    flight_open(&reading);
}

static void teardown(void) {
    flight_close(&reading);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

// In a block of its own, so that a read past its end is seen.
static const struct flight_dump *read_text(const char *path, const char *text, size_t size) {
    static char *copy;
    memory_give(copy);
    copy = NULL;
    if (text == NULL)
        return NULL;
    copy = memory_take(size);
    memcpy(copy, text, size);
    return flight_read(&reading, &decoder_flight_json, path, (struct slice){copy, size});
}

static const struct flight_dump *read_json(const char *text) {
    const struct flight_dump *dump = read_text("dumps/trace_rank_3", text, strlen(text));
    ck_assert_msg(dump != NULL, "%s: %s", reading.fault.field, reading.fault.detail);
    return dump;
}

static void assert_refused(const char *text, enum decode_category category, const char *field,
                           const char *detail) {
    ck_assert_ptr_null(read_text("dumps/trace_rank_3", text, strlen(text)));
    ck_assert_msg(reading.category == category, "%s instead of %s: %s: %s",
                  decode_category_name(reading.category), decode_category_name(category),
                  reading.fault.field, reading.fault.detail);
    ck_assert_str_eq(reading.fault.field, field);
    ck_assert_msg(strstr(reading.fault.detail, detail) != NULL, "%s", reading.fault.detail);
}

static void assert_text(struct slice text, const char *wanted) {
    assert_same_text(text, slice_of(wanted));
}

#define ENTRY                                                                                      \
    "{\"collective_seq_id\":15,\"duration_ms\":1.5,\"input_dtypes\":[\"Float\"],\"input_sizes\":"  \
    "[[1024,16]],\"is_p2p\":false,\"op_id\":18,\"output_dtypes\":[\"Float\"],\"output_sizes\":"    \
    "[[1024,16],[2]],\"p2p_seq_id\":4,\"pg_id\":0,\"process_group\":[\"0\",\"default_pg\"],"       \
    "\"profiling_name\":\"nccl:all_reduce\",\"record_id\":22,\"retired\":true,\"state\":"          \
    "\"completed\",\"thread_id\":\"1\",\"thread_name\":\"python\",\"time_created_ns\":"            \
    "1795249308804762163,\"time_discovered_completed_ns\":1795249308904762163,"                    \
    "\"time_discovered_started_ns\":1795249308805762163,\"timeout_ms\":600000}"
#define CONFIG                                                                                     \
    "\"pg_config\":{\"0\":{\"desc\":\"default_pg\",\"name\":\"0\",\"ranks\":\"[0, 1, 3]\"}}"
#define DUMP(entries) "{\"entries\":[" entries "]," CONFIG ",\"version\":\"2.10\"}"

START_TEST(every_field) {
    const struct flight_dump *dump = read_json(
        "{\"comm_lib_version\":\"2.28.9\",\"entries\":[" ENTRY "],\"nccl_comm_state\":{}," CONFIG
        ",\"pg_status\":{\"0\":{\"last_completed_collective\":\"14\"}},\"version\":\"2.10\"}");
    ck_assert_int_eq(dump->rank, 3);
    ck_assert(dump->whole && dump->is_file && dump->reports_states && dump->counts_completed);
    assert_text(dump->version, "2.10");
    assert_text(dump->backend, "nccl");
    ck_assert_uint_eq(dump->group_count, 1);
    assert_text(dump->groups[0].name, "0");
    assert_text(dump->groups[0].desc, "default_pg");
    ck_assert_uint_eq(dump->groups[0].member_count, 3);
    ck_assert_mem_eq(dump->groups[0].members, ((int32_t[]){0, 1, 3}), 12);
    ck_assert_uint_eq(dump->entry_count, 1);
    const struct flight_entry *entry = &dump->entries[0];
    ck_assert_int_eq(entry->record_id, 22);
    ck_assert_int_eq(entry->collective_seq_id, 15);
    ck_assert_int_eq(entry->p2p_seq_id, 4);
    assert_text(entry->group, "0");
    assert_text(entry->desc, "default_pg");
    assert_text(entry->name, "nccl:all_reduce");
    ck_assert_uint_eq(entry->created_ns, UINT64_C(1795249308804762163));
    ck_assert_uint_eq(entry->started_ns, UINT64_C(1795249308805762163));
    ck_assert_uint_eq(entry->completed_ns, UINT64_C(1795249308904762163));
    ck_assert_int_eq(entry->state, FLIGHT_COMPLETED);
    ck_assert(entry->retired && !entry->is_p2p);
    ck_assert_int_eq(entry->timeout_ms, 600000);
    assert_text(entry->input_sizes, "[[1024,16]]");
    assert_text(entry->output_sizes, "[[1024,16],[2]]");
    assert_text(entry->input_dtypes, "[\"Float\"]");
    assert_text(entry->output_dtypes, "[\"Float\"]");
    ck_assert_int_eq(reading.event.kind, EVENT_FLIGHT);
    ck_assert_int_eq(reading.event.rank, 3);
    ck_assert_uint_eq(reading.event.time_ns, UINT64_C(1795249308904762163));
}
END_TEST

static const char *path_of(const char *scenario, int rank) {
    static char path[1024];
    snprintf(path, sizeof path, "%s/golden/real_flight_recorder/%s/json/comm_lib_trace_rank_%d",
             TESTS_DIR, scenario, rank);
    return path;
}

// Recorded dumps, read with jansson and written again: indented, and with the keys in the order in
// which jansson happens to keep them after each was put in backwards.
static json_t *turned(const json_t *value) {
    if (json_is_array(value)) {
        json_t *array = json_array();
        for (size_t i = 0; i < json_array_size(value); i++)
            json_array_append_new(array, turned(json_array_get(value, i)));
        return array;
    }
    if (!json_is_object(value))
        return json_deep_copy(value);
    json_t *object = json_object();
    const char *keys[4096];
    size_t count = 0;
    for (void *item = json_object_iter((json_t *)(uintptr_t)value); item != NULL;
         item = json_object_iter_next((json_t *)(uintptr_t)value, item))
        keys[count++] = json_object_iter_key(item);
    while (count-- > 0)
        json_object_set_new(object, keys[count], turned(json_object_get(value, keys[count])));
    return object;
}

START_TEST(recorded_dumps_in_other_layouts) {
    const char *path = path_of(FLIGHT_SCENARIOS[_i], 2);
    struct slice file = flight_file(path);
    const struct flight_dump *plain = flight_read(&reading, &decoder_flight_json, path, file);
    ck_assert_msg(plain != NULL, "%s", reading.fault.detail);
    json_t *json = json_loadb(file.data, file.size, 0, NULL), *other = turned(json);
    static const size_t FLAGS[] = {JSON_INDENT(2), JSON_INDENT(7), JSON_COMPACT, 0};
    for (size_t i = 0; i < 8; i++) {
        char *text = json_dumps(i < 4 ? json : other, FLAGS[i % 4]);
        struct flight_reading again;
        flight_open(&again);
        const struct flight_dump *dump =
            flight_read(&again, &decoder_flight_json, path, slice_of(text));
        ck_assert_msg(dump != NULL, "%s", again.fault.detail);
        assert_same_dump(plain, dump);
        free(text);
        flight_close(&again);
    }
    json_decref(json);
    json_decref(other);
    flight_file_close(file);
}
END_TEST

START_TEST(schema_drift) {
    // Format 2.4: no thread, no status, no library version.
    const struct flight_dump *dump = read_json(
        "{\"version\":\"2.4\",\"pg_config\":{\"0\":{\"name\":\"0\",\"desc\":\"default_pg\","
        "\"ranks\":\"[0,1]\"}},\"entries\":[{\"record_id\":1,\"pg_id\":0,\"process_group\":[\"0\","
        "\"default_pg\"],\"collective_seq_id\":7,\"p2p_seq_id\":0,\"op_id\":1,\"profiling_name\":"
        "\"nccl:all_reduce\",\"time_created_ns\":5,\"state\":\"started\","
        "\"time_discovered_started_ns\":6,\"time_discovered_completed_ns\":null,"
        "\"retired\":false,\"timeout_ms\":600000,\"is_p2p\":false}]}");
    ck_assert_int_eq(dump->entries[0].state, FLIGHT_STARTED);
    ck_assert_uint_eq(dump->entries[0].completed_ns, 0);
    ck_assert_ptr_null(dump->entries[0].input_sizes.data);
    // Strings for numbers, unknown keys and values, missing ones; a list for `ranks`.
    dump = read_json(
        "{\"version\":\"2.99\",\"new\":{\"a\":[1,{}]},\"pg_config\":{\"0\":{\"ranks\":"
        "[3, 0,3,1],\"x\":1},\"odd\":7},\"entries\":[{\"process_group\":[\"0\"],"
        "\"collective_seq_id\":\"12\",\"time_created_ns\":\"1795249308804762163\","
        "\"retired\":1,\"is_p2p\":0,\"state\":\"paused\",\"future\":[[[]]],"
        "\"time_discovered_started_ns\":-1,\"timeout_ms\":null}]}");
    const struct flight_entry *entry = &dump->entries[0];
    ck_assert_int_eq(entry->collective_seq_id, 12);
    ck_assert_uint_eq(entry->created_ns, UINT64_C(1795249308804762163));
    ck_assert_uint_eq(entry->started_ns, 0);
    ck_assert_int_eq(entry->state, FLIGHT_SCHEDULED);
    ck_assert(entry->retired);
    assert_text(entry->desc, "");
    assert_text(dump->backend, "");
    ck_assert_uint_eq(dump->group_count, 1);
    ck_assert_uint_eq(dump->groups[0].member_count, 3);
    ck_assert_mem_eq(dump->groups[0].members, ((int32_t[]){0, 1, 3}), 12);
    // One number for both sequences, as before format 2.2; a state that only times tell.
    dump = read_json(
        "{\"entries\":[{\"process_group\":[\"0\",\"x\"],\"seq_id\":4,"
        "\"profiling_name\":\"nccl:send 0->1\",\"is_p2p\":true,"
        "\"time_discovered_completed_ns\":9}]}");
    ck_assert_int_eq(dump->entries[0].p2p_seq_id, 4);
    ck_assert_int_eq(dump->entries[0].state, FLIGHT_COMPLETED);
    // A version that is a number; an entry that cannot be joined is left out, the others stay.
    dump = read_json("{\"version\":2.1,\"entries\":[{\"record_id\":1}," ENTRY ",{}]}");
    ck_assert_uint_eq(dump->entry_count, 1);
}
END_TEST

START_TEST(members) {
    static const struct {
        const char *ranks;
        int32_t count; // -1: no list
    } CASES[] = {
        {"\"[0, 1]\"", 2},    {"\"[]\"", -1},    {"\"\"", -1},      {"\"[0, 1\"", -1},
        {"\"[0,,1]\"", -1},   {"\"[-1]\"", -1},  {"\"[1] 2\"", -1}, {"\"[99999999999]\"", -1},
        {"\" [ 7 ] \"", 1},   {"\"[2, 2]\"", 1}, {"null", -1},      {"17", -1},
        {"\"[\\u0030]\"", 1}, {"[5,4]", 2},      {"[[1]]", -1},     {"\"[1, x]\"", -1},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char text[256];
        snprintf(text, sizeof text, "{\"pg_config\":{\"g\":{\"ranks\":%s}}}", CASES[i].ranks);
        const struct flight_dump *dump = read_json(text);
        ck_assert_msg((dump->groups[0].members == NULL) == (CASES[i].count < 0), "%s", text);
        if (CASES[i].count >= 0)
            ck_assert_int_eq((int32_t)dump->groups[0].member_count, CASES[i].count);
    }
}
END_TEST

START_TEST(rank_of_the_file) {
    static const struct {
        const char *path;
        int32_t rank; // RANK_NONE: refused
    } CASES[] = {
        {"/a/b/comm_lib_trace_rank_17", 17},
        {"nccl_trace_rank_3.json", 3},
        {"nccl_trace_rank_3.pickle.gz", 3},
        {"trace0042", 42},
        {"7", 7},
        {"/dumps/12/trace", RANK_NONE},
        {"trace_rank_3_old", RANK_NONE},
        {"trace_rank_4294967296", RANK_NONE},
        {"trace_rank_99999999999999999999", RANK_NONE},
        {"", RANK_NONE},
        {"dir/", RANK_NONE},
        {".json", RANK_NONE},
    };
    static const char text[] = "{\"entries\":[]}";
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const struct flight_dump *dump = read_text(CASES[i].path, text, sizeof text - 1);
        if (CASES[i].rank != RANK_NONE) {
            ck_assert_msg(dump != NULL, "%s: %s", CASES[i].path, reading.fault.detail);
            ck_assert_int_eq(dump->rank, CASES[i].rank);
            continue;
        }
        ck_assert_msg(dump == NULL, "%s", CASES[i].path);
        ck_assert_int_eq(reading.category, DECODE_MISSING_FIELD);
        ck_assert_str_eq(reading.fault.field, "rank");
    }
}
END_TEST

// Of a file it is that of its folder, if that is known; a tagged line says it itself.
START_TEST(node_of_the_file) {
    struct slice text = SLICE("{\"version\":\"2.4\",\"entries\":[]}");
    ck_assert_ptr_nonnull(flight_read(&reading, &decoder_flight_json, "gpu7/rank_3", text));
    ck_assert_uint_eq(reading.event.node, STRING_NONE);
    decoder_flight_json.begin(reading.state, &(struct decoder_input){.path = SLICE("gpu7/rank_3"),
                                                                     .node = SLICE("gpu7"),
                                                                     .is_file = true});
    ck_assert_int_eq(decoder_flight_json.decode(reading.state, text, &reading.arena, &reading.event,
                                                &reading.fault),
                     DECODE_OK);
    ck_assert_uint_eq(reading.event.node, intern(SLICE("gpu7")));
}
END_TEST

START_TEST(faults) {
    assert_refused("", DECODE_TORN, "", "nothing is in it");
    assert_refused(" \n", DECODE_TORN, "", "nothing is in it");
    assert_refused("[]", DECODE_NOT_OBJECT, "", "not a JSON object");
    assert_refused("{}", DECODE_MISSING_FIELD, "entries, pg_config", "neither is there");
    assert_refused("{\"entries\":{}}", DECODE_WRONG_TYPE, "entries", "expected a list");
    assert_refused("{\"pg_config\":[]}", DECODE_WRONG_TYPE, "pg_config", "expected an object");
    assert_refused("{\"entries\":[3]}", DECODE_WRONG_TYPE, "entries[0].", "expected an object");
    assert_refused("{\"version\":\"3.0\",\"entries\":[]}", DECODE_UNSUPPORTED_VERSION, "version",
                   "found \"3.0\"; Flight Recorder formats 2.x are read");
    assert_refused("{\"version\":\"20\",\"entries\":[]}", DECODE_UNSUPPORTED_VERSION, "version",
                   "found \"20\"");
    assert_refused("{\"entries\":[{\"record_id\":1},{}]}", DECODE_MISSING_FIELD,
                   "entries[].process_group", "none of 2 entries");
    assert_refused("{\"entries\":[{},{\"time_created_ns\":[]}]}", DECODE_WRONG_TYPE,
                   "entries[1].time_created_ns", "found an array, expected an integer");
    assert_refused("{\"entries\":[{\"collective_seq_id\":1.5}]}", DECODE_WRONG_TYPE,
                   "entries[0].collective_seq_id", "found the decimal number 1.5");
    assert_refused("{\"entries\":[{\"collective_seq_id\":\"1x\"}]}", DECODE_WRONG_TYPE,
                   "entries[0].collective_seq_id", "found the text \"1x\"");
    assert_refused("{\"entries\":[{\"time_created_ns\":99999999999999999999}]}", DECODE_WRONG_TYPE,
                   "entries[0].time_created_ns", "found the integer 99999999999999999999");
    assert_refused("{\"entries\":[{\"retired\":\"yes\"}]}", DECODE_WRONG_TYPE, "entries[0].retired",
                   "expected true or false");
    assert_refused("{\"entries\":[{\"state\":3}]}", DECODE_WRONG_TYPE, "entries[0].state",
                   "expected a text");
    assert_refused("{\"entries\":[{\"process_group\":\"0\"}]}", DECODE_WRONG_TYPE,
                   "entries[0].process_group", "expected a list of name and description");
    assert_refused("{\"entries\":[{\"input_sizes\":\"[[1]]\"}]}", DECODE_WRONG_TYPE,
                   "entries[0].input_sizes", "expected a list");
    static const char *const BROKEN[] = {
        "{",
        "{\"entries\":[}",
        "{\"entries\":[{]}",
        "{\"entries\":[{\"a\" 1}]}",
        "{\"entries\":[{\"a\":1,}]}",
        "{\"entries\":[{a:1}]}",
        "{\"entries\":[{},]}",
        "{\"entries\":[{} {}]}",
        "{\"entries\":[{\"process_group\":[\"0\",]}]}",
        "{\"entries\":[{\"process_group\":[\"0\" \"1\"]}]}",
        "{\"entries\":[{\"process_group\":[,]}]}",
        "{\"entries\":[{\"input_sizes\":[[1,]]}]}",
        "{\"entries\":[{\"input_sizes\":[[1}]}]}",
        "{\"entries\":[{\"state\":\"a\x01\"}]}",
        "{\"entries\":[{\"state\":\"\xff\"}]}",
        "{\"entries\":[]} x",
        "{\"pg_config\":{\"a\":{\"ranks\":}}}",
        "{\"pg_status\":{\"a\":{\"x\":}}}",
    };
    for (size_t i = 0; i < sizeof BROKEN / sizeof *BROKEN; i++)
        assert_refused(BROKEN[i], DECODE_BAD_JSON, "", "not JSON: ");
    assert_refused("{\"entries\":[{\"a\" 1}]}", DECODE_BAD_JSON, "", "no colon");
    ck_assert_uint_eq(reading.fault.offset, 17);
}
END_TEST

START_TEST(escapes_and_white_space) {
    const struct flight_dump *dump = read_json(
        "{ \"\\u0065ntries\" : [ { \"process\\u005fgroup\" : [ \"a\\\"b\" , \"\\u00e9\" ] ,\n"
        "\t\"collective_seq_id\" : 1 , \"input_dtypes\" : [ \"a b\" , \"\\\" \" ] ,\r\n"
        "\"input_sizes\" : [ [ 1 , 2 ] ,\n [ ] ] , \"profiling_name\":\"x\\u003ay\" } ] }  \n");
    assert_text(dump->entries[0].group, "a\"b");
    assert_text(dump->entries[0].desc, "\xc3\xa9");
    assert_text(dump->entries[0].input_sizes, "[[1,2],[]]");
    assert_text(dump->entries[0].input_dtypes, "[\"a b\",\"\\\" \"]");
    assert_text(dump->backend, "x");
}
END_TEST

#define TAGS                                                                                       \
    "\"observed_time_ns\":1795249400000000000,\"k8s.node.name\":\"n1\",\"k8s.namespace.name\":"    \
    "\"train\",\"k8s.pod.name\":\"w-0\",\"job_id\":\"j\",\"rank\":5"

static const struct flight_dump *read_tagged(const char *text) {
    return flight_read_tagged(&reading, slice_of(text));
}

static void assert_tagged_refused(const char *text, enum decode_category category,
                                  const char *field) {
    ck_assert_msg(read_tagged(text) == NULL, "%s", text);
    ck_assert_msg(reading.category == category, "%s: %s: %s",
                  decode_category_name(reading.category), reading.fault.field,
                  reading.fault.detail);
    ck_assert_str_eq(reading.fault.field, field);
}

START_TEST(tagged_lines) {
    const struct flight_dump *dump =
        read_tagged("{\"source\":\"fr_dump\"," TAGS ",\"dump\":" DUMP(ENTRY) "}");
    ck_assert_msg(dump != NULL, "%s: %s", reading.fault.field, reading.fault.detail);
    ck_assert_int_eq(dump->rank, 5);
    ck_assert(dump->whole && !dump->is_file);
    ck_assert_uint_eq(dump->entry_count, 1);
    assert_text(dump->pod, "w-0");
    assert_text(dump->namespace, "train");
    ck_assert_uint_eq(dump->observed_ns, UINT64_C(1795249400000000000));
    ck_assert_uint_eq(reading.event.time_ns, UINT64_C(1795249400000000000));
    assert_text(intern_slice(reading.event.node), "n1");
    assert_text(intern_slice(reading.event.job), "j");
    ck_assert_int_eq(reading.event.rank, 5);
    dump = read_tagged("{\"entry\":" ENTRY "," TAGS ",\"source\":\"fr_entry\"}");
    ck_assert_msg(dump != NULL, "%s: %s", reading.fault.field, reading.fault.detail);
    ck_assert(!dump->whole);
    ck_assert_uint_eq(dump->entry_count, 1);
    assert_text(dump->backend, "nccl");
    assert_tagged_refused("{\"source\":\"fr_dump\"," TAGS "}", DECODE_MISSING_FIELD, "dump, entry");
    assert_tagged_refused("{" TAGS ",\"dump\":[]}", DECODE_WRONG_TYPE, "dump");
    assert_tagged_refused("{" TAGS ",\"entry\":3}", DECODE_WRONG_TYPE, "entry");
    assert_tagged_refused("{" TAGS ",\"entry\":{}}", DECODE_MISSING_FIELD,
                          "entries[].process_group");
    assert_tagged_refused("{\"observed_time_ns\":1,\"dump\":" DUMP(ENTRY) "}", DECODE_MISSING_FIELD,
                          "rank");
    assert_tagged_refused("{\"rank\":5,\"dump\":" DUMP(ENTRY) "}", DECODE_MISSING_TIMESTAMP,
                          "timestamp_ns");
    assert_tagged_refused("{" TAGS ",\"entry\":{\"retired\":[]}}", DECODE_WRONG_TYPE,
                          "entries[0].retired");
}
END_TEST

// No prefix of a dump is a dump.
static void assert_told(int32_t rank, const char *why) {
    ck_assert(reading.fault.told);
    ck_assert_int_eq(reading.event.kind, EVENT_FLIGHT);
    ck_assert_int_eq(reading.event.rank, rank);
    const struct flight_dump *dump = reading.event.flight;
    ck_assert_int_eq(dump->rank, rank);
    ck_assert(dump->whole);
    ck_assert_uint_eq(dump->entry_count + dump->group_count, 0);
    ck_assert_msg(memmem(dump->unreadable.data, dump->unreadable.size, why, strlen(why)) != NULL,
                  "%.*s", (int)dump->unreadable.size, dump->unreadable.data);
}

// The event tells whose it is, and that it was there.
START_TEST(a_refused_dump_is_told_of) {
    static const char *const REFUSED[][2] = {
        {"", "nothing is in it"},
        {"{\"entries\":[{\"process_group\":[\"0\",\"default_pg\"],", "not JSON"},
        {"{\"version\":\"3.0\",\"entries\":[]}", "found \"3.0\""},
        {"{\"pg_config\":{\"0\":{\"ranks\":\"[0, 1]\"}},\"entries\":[{}]}", "none of 1 entries"},
    };
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        ck_assert_ptr_null(flight_read(&reading, &decoder_flight_json, "/d/trace_rank_6",
                                       slice_of(REFUSED[i][0])));
        assert_told(6, REFUSED[i][1]);
        ck_assert(reading.event.flight->is_file);
        ck_assert(reading.event.timeless);
        ck_assert_ptr_null(
            flight_read(&reading, &decoder_flight_json, "/d/dump", slice_of(REFUSED[i][0])));
        ck_assert(!reading.fault.told);
    }
    ck_assert_ptr_null(
        flight_read(&reading, &decoder_flight_pickle, "trace_rank_6.pkl", SLICE("\x80\x02}(")));
    assert_told(6, "the pickle ends without STOP");
    // Of a tagged line the time is its own.
    ck_assert_ptr_null(read_tagged("{\"source\":\"fr_dump\"," TAGS ",\"dump\":{\"entries\":3}}"));
    assert_told(5, "expected a list");
    ck_assert(!reading.event.flight->is_file && !reading.event.timeless);
    ck_assert_uint_eq(reading.event.time_ns, UINT64_C(1795249400000000000));
    assert_text(intern_slice(reading.event.job), "j");
    assert_text(intern_slice(reading.event.node), "n1");
    // An entry by itself is no dump.
    ck_assert_ptr_null(read_tagged("{" TAGS ",\"entry\":{}}"));
    ck_assert(!reading.fault.told);
}
END_TEST

START_TEST(every_prefix) {
    struct slice file = flight_file(path_of("hooked_missing_rank", 0));
    for (size_t size = 0; size < file.size; size++) {
        ck_assert_ptr_null(read_text("rank_0", file.data, size));
        ck_assert_int_eq(reading.category, size == 0 ? DECODE_TORN : DECODE_BAD_JSON);
        ck_assert_uint_le(reading.fault.offset, size);
        arena_reset(&reading.arena);
    }
    read_text(NULL, NULL, 0);
    flight_file_close(file);
}
END_TEST

START_TEST(broken_bytes) {
    struct slice file = flight_file(path_of(FLIGHT_SCENARIOS[_i], 1));
    uint64_t seed = 88172645463325252u + (uint64_t)_i;
    unsigned accepted = 0;
    char *copy = memory_take(file.size);
    for (int round = 0; round < 400; round++) {
        memcpy(copy, file.data, file.size);
        for (int i = 0; i <= round % 6; i++) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            copy[seed % file.size] =
                round % 2 == 0 ? (char)(seed >> 32) : "[]{},:\"0 \\"[(seed >> 32) % 10];
        }
        accepted += read_text("rank_0", copy, file.size) != NULL;
        arena_reset(&reading.arena);
    }
    ck_assert_uint_gt(accepted, 0);
    read_text(NULL, NULL, 0);
    memory_give(copy);
    flight_file_close(file);
}
END_TEST

static void teardown_text(void) {
    read_text(NULL, NULL, 0);
    teardown();
}

int main(void) {
    Suite *suite = suite_create("decode_flight");
    TCase *tcase = tcase_create("flight");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, setup, teardown_text);
    tcase_add_test(tcase, every_field);
    tcase_add_loop_test(tcase, recorded_dumps_in_other_layouts, 0, FLIGHT_SCENARIO_COUNT);
    tcase_add_test(tcase, schema_drift);
    tcase_add_test(tcase, members);
    tcase_add_test(tcase, rank_of_the_file);
    tcase_add_test(tcase, node_of_the_file);
    tcase_add_test(tcase, faults);
    tcase_add_test(tcase, escapes_and_white_space);
    tcase_add_test(tcase, tagged_lines);
    tcase_add_test(tcase, a_refused_dump_is_told_of);
    tcase_add_test(tcase, every_prefix);
    tcase_add_loop_test(tcase, broken_bytes, 0, FLIGHT_SCENARIO_COUNT);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
