// SPDX-License-Identifier: Apache-2.0
// receivers/decode/flight_recorder/pickle.c and from_pickle.c: what Python and
// PyTorch write is read, everything else is refused by name and place, and no pickle costs more
// than its size.
#include "receivers/decode/flight_recorder/pickle.h"

#include "base/buffer.h"

#include "tests/receivers/decode/flight_recorder/flight_support.h"

static struct arena arena;
static struct pickle_fault fault;

static void setup(void) {
    arena_init(&arena, 1 << 16);
}

static void teardown(void) {
    arena_release(&arena);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static const struct pickle_value *read_bytes(const void *bytes, size_t size) {
    return pickle_read((struct slice){bytes, size}, &arena, &fault);
}

#define READ(literal) read_bytes(literal, sizeof(literal) - 1)

static struct slice fixture(const char *name, int protocol) {
    char path[1024];
    snprintf(path, sizeof path, "%s/receivers/decode/flight_recorder/pickle/%s_protocol_%d_rank_0",
             TESTS_DIR, name, protocol);
    return flight_file(path);
}

static const struct pickle_value *member(const struct pickle_value *dict, const char *key,
                                         enum pickle_kind kind, uint32_t count) {
    const struct pickle_value *value = pickle_get(dict, slice_of(key));
    ck_assert_msg(value != NULL, "%s is not there", key);
    ck_assert_int_eq(value->kind, kind);
    if (kind >= PICKLE_LIST)
        ck_assert_uint_eq(value->count, count);
    return value;
}

static void assert_integers(const struct pickle_value *list, const int64_t *wanted) {
    for (uint32_t i = 0; i < list->count; i++) {
        ck_assert_int_eq(list->items[i]->kind, PICKLE_INTEGER);
        ck_assert_int_eq(list->items[i]->integer, wanted[i]);
    }
}

START_TEST(values_of_python) {
    struct slice file = fixture("values", _i);
    const struct pickle_value *root = pickle_read(file, &arena, &fault);
    ck_assert_msg(root != NULL, "at %zu: %s", fault.offset, fault.why);
    ck_assert_int_eq(root->kind, PICKLE_DICT);
    ck_assert_uint_eq(root->count, 13);
    member(root, "none", PICKLE_NONE, 0);
    member(root, "true", PICKLE_TRUE, 0);
    member(root, "false", PICKLE_FALSE, 0);
    assert_integers(member(root, "small", PICKLE_LIST, 8),
                    (const int64_t[]){0, 255, 256, 65535, 65536, -1, INT32_MAX, INT32_MIN});
    assert_integers(
        member(root, "long", PICKLE_LIST, 4),
        (const int64_t[]){INT64_C(1) << 31, -(INT64_C(1) << 31) - 1, INT64_MAX, INT64_MIN});
    const struct pickle_value *huge = member(root, "huge", PICKLE_LIST, 3);
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_int_eq(huge->items[i]->kind, PICKLE_HUGE);
    const struct pickle_value *decimal = member(root, "decimal", PICKLE_LIST, 3);
    ck_assert_double_eq(decimal->items[0]->decimal, 1.5);
    ck_assert_double_eq(decimal->items[1]->decimal, -0.25);
    ck_assert_double_eq(decimal->items[2]->decimal, 1e300);
    const struct pickle_value *text = member(root, "text", PICKLE_LIST, 4);
    ck_assert_uint_eq(text->items[0]->text.size, 0);
    assert_same_text(text->items[2]->text, SLICE("Gr\xc3\xb6\xc3\x9f"
                                                 "e \xe2\x82\xac \xf0\x9f\x98\x80"));
    ck_assert_uint_eq(text->items[3]->text.size, 300);
    const struct pickle_value *tuples = member(root, "tuples", PICKLE_LIST, 5);
    for (uint32_t i = 0; i < 5; i++) {
        ck_assert_int_eq(tuples->items[i]->kind, PICKLE_TUPLE);
        assert_integers(tuples->items[i], (const int64_t[]){1, 2, 3, 4});
        ck_assert_uint_eq(tuples->items[i]->count, i);
    }
    member(root, "empty", PICKLE_LIST, 3);
    const struct pickle_value *shared = member(root, "shared", PICKLE_LIST, 2);
    ck_assert_ptr_eq(shared->items[0], shared->items[1]);
    ck_assert_uint_eq(shared->items[0]->count, 2);
    const struct pickle_value *many = member(root, "many", PICKLE_LIST, 3000);
    ck_assert_int_eq(many->items[2999]->integer, 2999);
    const struct pickle_value *dict = member(root, "dict", PICKLE_DICT, 2500);
    ck_assert_int_eq(pickle_get(dict, SLICE("number 2499"))->integer, 2499);
    flight_file_close(file);
}
END_TEST

static const unsigned char ALLOWED[] = {
    0x80, 0x95, '(', '}', ']', ')', 't',  0x85, 0x86, 0x87, 'a',  's',  'e', 'u',  'q',  'r',
    0x94, 'h',  'j', 'J', 'K', 'M', 0x8a, 0x8b, 'G',  'X',  0x8c, 0x8d, 'N', 0x88, 0x89, '.'};

// Every byte as an op code: those of plain data are known, all others are refused where they stand.
START_TEST(op_codes) {
    unsigned char bytes[40] = {0x80, 2, 'N'};
    bytes[3] = (unsigned char)_i;
    bool allowed = memchr(ALLOWED, _i, sizeof ALLOWED) != NULL;
    read_bytes(bytes, sizeof bytes);
    bool refused = strstr(fault.why, "op code") != NULL && fault.offset == 3;
    ck_assert_msg(refused != allowed, "0x%02x: at %zu: %s", (unsigned)_i, fault.offset, fault.why);
}
END_TEST

START_TEST(refusals_by_name) {
    static const struct {
        unsigned char code;
        const char *name;
    } NAMES[] = {
        {'c', "GLOBAL"},   {'R', "REDUCE"},         {'b', "BUILD"},       {'i', "INST"},
        {'o', "OBJ"},      {0x81, "NEWOBJ"},        {0x92, "NEWOBJ_EX"},  {0x93, "STACK_GLOBAL"},
        {'P', "PERSID"},   {'Q', "BINPERSID"},      {0x82, "EXT1"},       {0x83, "EXT2"},
        {0x84, "EXT4"},    {'S', "STRING"},         {'0', "POP"},         {'2', "DUP"},
        {'B', "BINBYTES"}, {'C', "SHORT_BINBYTES"}, {0x96, "BYTEARRAY8"}, {'d', "DICT"},
    };
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        unsigned char bytes[] = {0x80, 2, ']', NAMES[i].code, '.'};
        char why[64];
        snprintf(why, sizeof why, "op code %s,", NAMES[i].name);
        ck_assert_ptr_null(read_bytes(bytes, sizeof bytes));
        ck_assert_msg(strstr(fault.why, why) != NULL, "%s instead of %s", fault.why, why);
        ck_assert_uint_eq(fault.offset, 3);
    }
    ck_assert_ptr_null(READ("\x80\x02]\xff."));
    ck_assert_str_eq(fault.why, "the byte 0xff, which is no op code of plain data");
}
END_TEST

static void assert_refused(const char *why, size_t offset) {
    ck_assert_msg(strstr(fault.why, why) != NULL, "%s instead of %s", fault.why, why);
    ck_assert_uint_eq(fault.offset, offset);
}

START_TEST(wrong_order) {
    static const char *const BEGIN = "it does not begin";
    ck_assert_ptr_null(READ("]."));
    assert_refused(BEGIN, 0);
    ck_assert_ptr_null(READ("\x80\x01]."));
    assert_refused("protocol 1", 0);
    ck_assert_ptr_null(READ("\x80\x06]."));
    assert_refused("protocol 6", 0);
    ck_assert_ptr_null(READ("\x80\x02."));
    assert_refused("STOP with 0 values", 2);
    ck_assert_ptr_null(READ("\x80\x02NN."));
    assert_refused("STOP with 2 values", 4);
    ck_assert_ptr_null(READ("\x80\x02(N."));
    assert_refused("STOP", 4);
    ck_assert_ptr_null(READ("\x80\x02N.N"));
    assert_refused("bytes after", 4);
    ck_assert_ptr_null(
        READ("\x80\x02"
             "e."));
    assert_refused("no MARK", 2);
    ck_assert_ptr_null(READ("\x80\x02(e."));
    assert_refused("no container", 3);
    ck_assert_ptr_null(READ("\x80\x02}(NNe."));
    assert_refused("no list", 6);
    ck_assert_ptr_null(READ("\x80\x02](NNu."));
    assert_refused("no dict", 6);
    ck_assert_ptr_null(READ("\x80\x02N(NNu."));
    assert_refused("no dict", 6);
    ck_assert_ptr_null(READ("\x80\x02}(Nu."));
    assert_refused("key without a value", 5);
    ck_assert_ptr_null(READ("\x80\x02N\x86."));
    assert_refused("fewer than 2", 3);
    ck_assert_ptr_null(READ("\x80\x02](Na."));
    assert_refused("fewer than 2", 5); // not through the mark
    ck_assert_ptr_null(READ("\x80\x02q\x01."));
    assert_refused("fewer than 1", 2);
    ck_assert_ptr_null(READ("\x80\x02h\x01."));
    assert_refused("never put", 2);
    ck_assert_ptr_null(READ("\x80\x02Nr\xff\xff\xff\xff."));
    assert_refused("memo slot 4294967295", 3);
    ck_assert_ptr_null(READ("\x80\x02X\x02\x00\x00\x00\xc3(."));
    assert_refused("not UTF-8", 2);
    ck_assert_ptr_null(READ("\x80\x02X\xff\xff\xff\xff."));
    ck_assert(fault.cut);
    ck_assert_ptr_null(READ("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff."));
    ck_assert(fault.cut);
    ck_assert_ptr_null(READ("\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xffN."));
    ck_assert(fault.cut);
    ck_assert_ptr_null(READ("\x80\x02\x8b\xff\xff\xff\xff."));
    assert_refused("negative length", 2);
    ck_assert_ptr_null(read_bytes("", 0));
    ck_assert(fault.cut);
}
END_TEST

START_TEST(numbers) {
    ck_assert_int_eq(READ("\x80\x02\x8a\x00.")->integer, 0);
    ck_assert_int_eq(READ("\x80\x02\x8a\x01\xff.")->integer, -1);
    ck_assert_int_eq(READ("\x80\x02\x8a\x02\xff\x00.")->integer, 255);
    ck_assert_int_eq(READ("\x80\x02\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\xff.")->integer, -1);
    ck_assert_int_eq(READ("\x80\x02\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00.")->kind,
                     PICKLE_HUGE);
    ck_assert_int_eq(READ("\x80\x02J\xfe\xff\xff\xff.")->integer, -2);
    ck_assert_int_eq(READ("\x80\x02M\xff\xff.")->integer, 65535);
}
END_TEST

// Every prefix of every pickle is refused, as cut off.
START_TEST(cut_at_each_byte) {
    char path[1024];
    snprintf(path, sizeof path, "%s/golden/real_flight_recorder/gloo_missing_rank/pickle/%s",
             TESTS_DIR, "comm_lib_trace_rank_0");
    struct slice files[] = {flight_file(path), fixture("dump", 2), fixture("dump", 4)};
    for (size_t i = 0; i < 3; i++) {
        for (size_t size = 0; size<files[i].size; size += size> 4000 ? 98u : 1u) {
            char *copy = memory_take(size + 1); // its own block, so that a read past it is seen
            memcpy(copy, files[i].data, size);
            ck_assert_ptr_null(read_bytes(copy, size));
            ck_assert_msg(fault.cut, "%zu of %zu: at %zu: %s", size, files[i].size, fault.offset,
                          fault.why);
            memory_give(copy);
            arena_reset(&arena);
        }
        flight_file_close(files[i]);
    }
}
END_TEST

START_TEST(deep_nesting) {
    enum { DEPTH = 100000 };
    char *bytes = memory_take(2 * DEPTH + 8);
    size_t size = 0;
    memcpy(bytes, "\x80\x02", 2);
    size = 2;
    memset(bytes + size, ']', DEPTH);
    size += DEPTH;
    memset(bytes + size, 'a', DEPTH - 1);
    size += DEPTH - 1;
    bytes[size++] = '.';
    const struct pickle_value *value = read_bytes(bytes, size);
    uint32_t depth = 0;
    for (; value != NULL; value = value->count == 0 ? NULL : value->items[0])
        depth++;
    ck_assert_uint_eq(depth, DEPTH);
    memset(bytes + 2, '(', DEPTH);
    ck_assert_ptr_null(read_bytes(bytes, DEPTH + 2));
    assert_refused("more than 64 containers", 66);
    memory_give(bytes);
}
END_TEST

// -- dumps ---------------------------------------------------------------------------------------

static const char *path_of(const char *scenario, const char *form, int rank) {
    static char path[1024];
    snprintf(path, sizeof path, "%s/golden/real_flight_recorder/%s/%s/comm_lib_trace_rank_%d",
             TESTS_DIR, scenario, form, rank);
    return path;
}

START_TEST(recorded_dumps_as_json_gives_them) {
    struct flight_reading one, other;
    for (int rank = 0; rank < 4; rank++) {
        flight_open(&one);
        flight_open(&other);
        const char *path = path_of(FLIGHT_SCENARIOS[_i], "pickle", rank);
        struct slice pickle = flight_file(path);
        const struct flight_dump *a = flight_read(&one, &decoder_flight_pickle, path, pickle);
        ck_assert_msg(a != NULL, "%s: %s", path, one.fault.detail);
        path = path_of(FLIGHT_SCENARIOS[_i], "json", rank);
        struct slice json = flight_file(path);
        const struct flight_dump *b = flight_read(&other, &decoder_flight_json, path, json);
        ck_assert_msg(b != NULL, "%s: %s", path, other.fault.detail);
        ck_assert_int_eq(a->rank, rank);
        ck_assert_uint_gt(a->entry_count, 10);
        assert_same_dump(a, b);
        ck_assert_uint_eq(one.event.time_ns, other.event.time_ns);
        flight_close(&one);
        flight_close(&other);
        flight_file_close(pickle);
        flight_file_close(json);
    }
}
END_TEST

START_TEST(dumps_saved_again_by_python) {
    struct flight_reading one, other;
    flight_open(&one);
    flight_open(&other);
    struct slice json = flight_file(path_of("hooked_missing_rank", "json", 0));
    struct slice pickle = fixture("dump", _i);
    const struct flight_dump *a = flight_read(&one, &decoder_flight_pickle, "x_0.pkl", pickle);
    ck_assert_msg(a != NULL, "%s", one.fault.detail);
    assert_same_dump(a, flight_read(&other, &decoder_flight_json, "y_0", json));
    flight_close(&one);
    flight_close(&other);
    flight_file_close(pickle);
    flight_file_close(json);
}
END_TEST

static void put_text(struct buffer *out, const char *text) {
    buffer_append_char(out, (char)0x8c);
    buffer_append_char(out, (char)strlen(text));
    buffer_append_text(out, text);
}

// {"entries": [{"process_group": ["0"], "collective_seq_id": 1, "input_sizes": <value>}]}
static const struct flight_dump *read_sizes(struct flight_reading *reading, struct slice value) {
    struct buffer out;
    buffer_init(&out, 1 << 20);
    buffer_append(&out, SLICE("\x80\x04}"));
    put_text(&out, "entries");
    buffer_append_text(&out, "]}(");
    put_text(&out, "process_group");
    buffer_append_text(&out, "]");
    put_text(&out, "0");
    buffer_append_text(&out, "a");
    put_text(&out, "collective_seq_id");
    buffer_append(&out, SLICE("K\x01"));
    put_text(&out, "input_sizes");
    buffer_append(&out, value);
    buffer_append_text(&out, "uas.");
    const struct flight_dump *dump =
        flight_read(reading, &decoder_flight_pickle, "rank_3", buffer_slice(&out));
    ck_assert_msg(dump != NULL, "%s", reading->fault.detail);
    ck_assert_uint_eq(dump->entry_count, 1);
    // Texts point into the record.
    ck_assert_int_eq(dump->entries[0].collective_seq_id, 1);
    buffer_release(&out);
    return dump;
}

START_TEST(bombs) {
    struct flight_reading reading;
    flight_open(&reading);
    assert_same_text(read_sizes(&reading, SLICE("](](K\x04K\x05"
                                                "eN\x88G\x3f\xf8\x00\x00\x00\x00\x00\x00"
                                                "e"))
                         ->entries[0]
                         .input_sizes,
                     SLICE("[[4,5],null,true,1.5]"));
    // A list that holds itself.
    const struct flight_dump *dump = read_sizes(&reading, SLICE("]\x94h\x00"
                                                                "a"));
    ck_assert_ptr_null(dump->entries[0].input_sizes.data);
    // Each list holds the one before ten times: walked as a tree it would never end.
    struct buffer bomb;
    buffer_init(&bomb, 1 << 20);
    buffer_append(&bomb, SLICE("](K\x01K\x01K\x01K\x01K\x01K\x01K\x01K\x01K\x01K\x01"
                               "e\x94"));
    for (int level = 0; level < 60; level++) {
        buffer_append(&bomb, SLICE("]("));
        for (int i = 0; i < 10; i++) {
            buffer_append_char(&bomb, 'h');
            buffer_append_char(&bomb, (char)level);
        }
        buffer_append(&bomb, SLICE("e\x94"));
    }
    // All lists but the last stay on the stack, so they are wrapped in one tuple.
    struct buffer wrapped;
    buffer_init(&wrapped, 1 << 20);
    buffer_append_char(&wrapped, '(');
    buffer_append(&wrapped, buffer_slice(&bomb));
    buffer_append_char(&wrapped, 't');
    dump = read_sizes(&reading, buffer_slice(&wrapped));
    ck_assert_ptr_null(dump->entries[0].input_sizes.data);
    buffer_release(&bomb);
    buffer_release(&wrapped);
    flight_close(&reading);
}
END_TEST

static void assert_fault(const struct flight_reading *reading, enum decode_category category,
                         const char *field, const char *detail) {
    ck_assert_msg(reading->category == category, "%s: %s: %s",
                  decode_category_name(reading->category), reading->fault.field,
                  reading->fault.detail);
    ck_assert_str_eq(reading->fault.field, field);
    ck_assert_msg(strstr(reading->fault.detail, detail) != NULL, "%s", reading->fault.detail);
}

START_TEST(wrong_dumps) {
    struct flight_reading reading;
    flight_open(&reading);
    const struct decoder_type *decoder = &decoder_flight_pickle;
    flight_read(&reading, decoder, "rank_0", SLICE("\x80\x02]."));
    assert_fault(&reading, DECODE_NOT_OBJECT, "", "found an array, expected an object");
    flight_read(&reading, decoder, "rank_0", SLICE("\x80\x02}."));
    assert_fault(&reading, DECODE_MISSING_FIELD, "entries, pg_config", "neither is there");
    flight_read(&reading, decoder, "rank_0",
                SLICE("\x80\x02"
                      "cos\nsystem\n."));
    assert_fault(&reading, DECODE_BAD_PICKLE, "", "at byte 2: op code GLOBAL");
    ck_assert_uint_eq(reading.fault.offset, 2);
    flight_read(&reading, decoder, "rank_0", SLICE("\x80\x02}("));
    assert_fault(&reading, DECODE_TORN, "", "ends without STOP");
    flight_read(&reading, decoder, "rank_0",
                SLICE("\x80\x04}\x8c\x07"
                      "entriesK\x07s."));
    assert_fault(&reading, DECODE_WRONG_TYPE, "entries", "found the integer 7, expected a list");
    flight_read(&reading, decoder, "rank_0",
                SLICE("\x80\x04}\x8c\x07"
                      "entries]K\x07"
                      "as."));
    assert_fault(&reading, DECODE_WRONG_TYPE, "entries[0].", "expected an object");
    flight_read(&reading, decoder, "rank_0",
                SLICE("\x80\x04}\x8c\x07"
                      "entries]}\x8c\x05state]sas."));
    assert_fault(&reading, DECODE_WRONG_TYPE, "entries[0].state",
                 "found an array, expected a text");
    flight_read(&reading, decoder, "no_number",
                SLICE("\x80\x04}\x8c\x07"
                      "entries]s."));
    assert_fault(&reading, DECODE_MISSING_FIELD, "rank", "end the file's name with the rank");
    flight_close(&reading);
}
END_TEST

// The ranks of a group as a list, in any order; operations with the number that older versions of
// PyTorch wrote, which counts where the newer one is not there.
START_TEST(ranks_as_a_list_and_old_numbers) {
    struct flight_reading reading;
    flight_open(&reading);
    static const char bytes[] =
        "\x80\x02}(X\x07\x00\x00\x00versionX\x04\x00\x00\x00"
        "2.10X\x09\x00\x00\x00pg_c"
        "onfig}(X\x01\x00\x00\x00"
        "0q\x00}(X\x04\x00\x00\x00"
        "descq\x01X\x0a\x00\x00\x00"
        "default_pgq\x02X\x05\x00\x00\x00ranksq\x03](K\x02K\x00K\x01"
        "euX\x01\x00\x00\x00"
        "1q\x04}(h\x01X\x03\x00\x00\x00oddq\x05h\x03](K\x00X\x01\x00\x00\x00xeuuX\x07\x00"
        "\x00\x00"
        "entries](}(X\x09\x00\x00\x00record_idq\x06K\x00X\x0d\x00\x00\x00proc"
        "ess_groupq\x07h\x00h\x02\x86X\x06\x00\x00\x00seq_idq\x08K\x04X\x05\x00\x00\x00"
        "stateq\x09X\x07\x00\x00\x00startedX\x07\x00\x00\x00retiredq\x0a\x89u}(h\x06K\x01"
        "h\x07h\x04h\x05\x86X\x11\x00\x00\x00"
        "collective_seq_idK\x06h\x08K\x09h\x09X\x09"
        "\x00\x00\x00scheduledh\x0aK\x00ueu.";
    const struct flight_dump *dump = flight_read(&reading, &decoder_flight_pickle, "rank_1",
                                                 (struct slice){bytes, sizeof bytes - 1});
    ck_assert_msg(dump != NULL, "%s %s", reading.fault.field, reading.fault.detail);
    ck_assert_uint_eq(dump->group_count, 2);
    ck_assert_uint_eq(dump->groups[0].member_count, 3);
    for (int32_t rank = 0; rank < 3; rank++)
        ck_assert_int_eq(dump->groups[0].members[rank], rank);
    ck_assert_ptr_null(dump->groups[1].members); // not all of them are numbers
    ck_assert_uint_eq(dump->entry_count, 2);
    ck_assert_int_eq(dump->entries[0].collective_seq_id, 4);
    ck_assert_int_eq(dump->entries[0].state, FLIGHT_STARTED);
    ck_assert(dump->reports_states);
    ck_assert_int_eq(dump->entries[1].collective_seq_id, 6);
    ck_assert_int_eq(dump->entries[1].state, FLIGHT_SCHEDULED);
    ck_assert(!dump->entries[1].retired);
    flight_close(&reading);
}
END_TEST

// Bytes changed, taken away and put in: never a crash, and the arena stays within bounds.
START_TEST(broken_bytes) {
    struct flight_reading reading;
    flight_open(&reading);
    struct slice file = fixture("dump", 2 + _i);
    uint64_t seed = 88172645463325252u + (uint64_t)_i;
    unsigned accepted = 0;
    for (int round = 0; round < 1500; round++) {
        char *copy = memory_take(file.size + 1);
        memcpy(copy, file.data, file.size);
        for (int i = 0; i <= round % 4; i++) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            copy[seed % file.size] = (char)(seed >> 32);
        }
        accepted += flight_read(&reading, &decoder_flight_pickle, "rank_0",
                                (struct slice){copy, file.size}) != NULL;
        arena_reset(&reading.arena);
        memory_give(copy);
    }
    ck_assert_uint_gt(accepted, 0);
    flight_file_close(file);
    flight_close(&reading);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("decode_pickle");
    TCase *tcase = tcase_create("pickle");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, values_of_python, 2, 6);
    tcase_add_loop_test(tcase, op_codes, 0, 256);
    tcase_add_test(tcase, refusals_by_name);
    tcase_add_test(tcase, wrong_order);
    tcase_add_test(tcase, numbers);
    tcase_add_test(tcase, cut_at_each_byte);
    tcase_add_test(tcase, deep_nesting);
    tcase_add_loop_test(tcase, recorded_dumps_as_json_gives_them, 0, FLIGHT_SCENARIO_COUNT);
    tcase_add_loop_test(tcase, dumps_saved_again_by_python, 2, 6);
    tcase_add_test(tcase, bombs);
    tcase_add_test(tcase, wrong_dumps);
    tcase_add_test(tcase, ranks_as_a_list_and_old_numbers);
    tcase_add_loop_test(tcase, broken_bytes, 0, 4);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
