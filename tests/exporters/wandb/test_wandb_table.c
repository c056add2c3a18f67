// SPDX-License-Identifier: Apache-2.0
// The two forms of a table, members of rows, and charts. What wandb 0.31.0 makes of the same cells
// stands in the expectations.
#include "tests/exporters/wandb/wandb_tracking_fixture.h"

static struct wandb_table table;
static struct buffer members;

static void setup(void) {
    json_set_alloc_funcs(memory_take, memory_give);
    tracking_setup();
    table = (struct wandb_table){0};
    buffer_init(&members, 1 << 20);
}

static void teardown(void) {
    wandb_table_release(&table);
    buffer_release(&members);
    tracking_teardown();
}

static void ck_assert_slice(struct slice got, const char *wanted) {
    ck_assert_msg(slice_equal(got, slice_of(wanted)), "got %.*s", (int)got.size, got.data);
}

#define UNION(types) "{\"wb_type\":\"union\",\"params\":{\"allowed_types\":[" types "]}}"
#define TYPE(name)   "{\"wb_type\":\"" name "\"}"
#define TYPED(types)                                                                               \
    "{\"_type\":\"table\",\"column_types\":{\"wb_type\":\"typedDict\",\"params\":{"                \
    "\"type_map\":{" types "}}},"

START_TEST(both_forms) {
    static const char *const columns[] = {"a", "b\"", "c", "d"};
    wandb_table_begin(&table, columns, 4);
    wandb_table_cell(&table, cell_int(INT64_MIN));
    wandb_table_cell(&table, cell_slice(SLICE("x</script>\n\xc3\xbc")));
    wandb_table_cell(&table, cell_bool(true));
    wandb_table_cell(&table, cell_number(NAN));
    wandb_table_cell(&table, cell_number(0.1));
    wandb_table_cell(&table, cell_null);
    wandb_table_cell(&table, cell_bool(false));
    wandb_table_cell(&table, cell_null);
    wandb_table_end(&table);
    ck_assert_slice(buffer_slice(&table.file),
                    "{\"columns\":[\"a\",\"b\\\"\",\"c\",\"d\"],\"data\":"
                    "[[-9223372036854775808,\"x</script>\\n\\u00fc\",true,NaN],"
                    "[0.1,null,false,null]]}");
    ck_assert_slice(
        buffer_slice(&table.artifact_file),
        TYPED("\"a\":" UNION(TYPE("none") "," TYPE("number")) ",\"b\\\"\":" UNION(
            TYPE("none") "," TYPE("string")) ",\"c\":" UNION(TYPE("boolean") "," TYPE("none")) ","
                                                                                             "\"d"
                                                                                             "\":"
              UNION(TYPE("none") "," TYPE("unknown"))) "\"columns\":[\"a\",\"b\\\"\",\"c\",\"d\"],"
                                                       "\"data\":[[-9223372036854775808,"
                                                       "\"x</script>\\n\\u00fc\",true,null],"
                                                       "[0.1,null,false,null]],"
                                                       "\"log_mode\":\"IMMUTABLE\",\"ncols\":4,"
                                                       "\"nrows\":2}");
}
END_TEST

static void append_cell(int kind) {
    if (kind == 0)
        wandb_table_cell(&table, cell_bool(true));
    else if (kind == 1)
        wandb_table_cell(&table, cell_number(1.5));
    else if (kind == 2)
        wandb_table_cell(&table, cell_slice(SLICE("t")));
    else if (kind == 3)
        wandb_table_cell(&table, cell_int(1));
    else
        wandb_table_cell(&table, cell_number(INFINITY));
}

// Two cells of a column: types that go together, or `any`.
START_TEST(columns_of_several_types) {
    static const char *const columns[] = {"a"};
    static const char *const wanted[5][5] = {
        {"boolean", "any", "any", "any", "any"},      {"any", "number", "any", "number", "number"},
        {"any", "any", "string", "any", "any"},       {"any", "number", "any", "number", "number"},
        {"any", "number", "any", "number", "number"},
    };
    for (int first = 0; first < 5; first++) {
        for (int second = 0; second < 5; second++) {
            char type[64];
            wandb_table_begin(&table, columns, 1);
            append_cell(first);
            wandb_table_cell(&table, cell_null);
            append_cell(second);
            wandb_table_end(&table);
            snprintf(type, sizeof type, "{\"wb_type\":\"%s\"}", wanted[first][second]);
            buffer_append_char(&table.artifact_file, '\0');
            ck_assert_msg(strstr(table.artifact_file.data, type) != NULL, "%d %d: %s", first,
                          second, table.artifact_file.data);
            ck_assert_ptr_nonnull(strstr(table.artifact_file.data, TYPE("none")));
            ck_assert_ptr_null(strstr(table.artifact_file.data, "unknown"));
        }
    }
}
END_TEST

START_TEST(a_table_without_rows) {
    static const char *const columns[] = {"a", "b"};
    wandb_table_begin(&table, columns, 2);
    wandb_table_end(&table);
    ck_assert_slice(buffer_slice(&table.file), "{\"columns\":[\"a\",\"b\"],\"data\":[]}");
    ck_assert_slice(buffer_slice(&table.artifact_file),
                    TYPED("\"a\":" UNION(TYPE("none") "," TYPE("unknown")) ",\"b\":" UNION(
                        TYPE("none") "," TYPE(
                            "unknown"))) "\"columns\":[\"a\",\"b\"],\"data\":[],"
                                         "\"log_mode\":\"IMMUTABLE\",\"ncols\":2,\"nrows\":0}");
}
END_TEST

static bool say_table(void) {
    uint64_t sequence = 4, row = 7;
    struct wandb_writer writer = {
        .out = &said_bytes, .sequence = &sequence, .row = &row, .run = SLICE("r"), .time_ns = 1};
    wandb_table_end(&table);
    buffer_reset(&said_bytes);
    bool done = wandb_table_say(&table, "k", &writer);
    ck_assert_uint_eq(row, done ? 8 : 7);
    ck_assert_uint_eq(said_bytes.size > 0, done);
    return done;
}

START_TEST(as_many_rows_as_there_may_be) {
    static const char *const columns[] = {"a"};
    wandb_table_begin(&table, columns, 1);
    for (int i = 0; i < WANDB_TABLE_ROWS_MAX; i++)
        wandb_table_cell(&table, cell_int(i));
    ck_assert(say_table());
    struct slice bytes = buffer_slice(&said_bytes);
    struct wandb_record record;
    ck_assert(wandb_record_read(&bytes, &record));
    ck_assert_int_eq(record.kind, WANDB_TABLE);
    ck_assert_uint_eq(record.rows, WANDB_TABLE_ROWS_MAX);
    ck_assert_uint_eq(record.columns, 1);
    ck_assert_uint_eq(record.row, 7);
    ck_assert_slice(record.key, "k");
    wandb_table_begin(&table, columns, 1);
    for (int i = 0; i <= WANDB_TABLE_ROWS_MAX; i++)
        wandb_table_cell(&table, cell_int(i));
    ck_assert(!say_table());
    // Used again, it is whole again.
    wandb_table_begin(&table, columns, 1);
    wandb_table_cell(&table, cell_int(1));
    ck_assert(say_table());
    ck_assert_slice(buffer_slice(&table.file), "{\"columns\":[\"a\"],\"data\":[[1]]}");
}
END_TEST

START_TEST(texts_that_are_too_large) {
    static const char *const columns[] = {"a"};
    static char text[1 << 20];
    memset(text, 'x', sizeof text);
    wandb_table_begin(&table, columns, 1);
    for (int i = 0; i < 33; i++)
        wandb_table_cell(&table, cell_slice((struct slice){text, sizeof text}));
    ck_assert(!say_table());
}
END_TEST

START_TEST(numbers_read_back_as_they_were) {
    static const struct {
        double value;
        const char *text;
    } known[] = {
        {0.0, "0"},
        {1.0, "1"},
        {0.1, "0.1"},
        {-2.5, "-2.5"},
        {1e20, "1e+20"},
        {84825604096.5, "84825604096.5"},
        {3.4303659875877206, "3.4303659875877206"},
        {1767225600.5042572, "1767225600.5042572"},
        {9007199254740993.0, "9007199254740992"},
        {5e-324, "5e-324"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {INFINITY, "Infinity"},
        {-INFINITY, "-Infinity"},
        {NAN, "NaN"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        buffer_reset(&members);
        wandb_append_number(&members, known[i].value);
        ck_assert_slice(buffer_slice(&members), known[i].text);
    }
    // A few thousand in between, from a sequence without pattern.
    uint64_t bits = 88172645463325252;
    for (int i = 0; i < 5000; i++) {
        double value;
        bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        buffer_reset(&members);
        wandb_append_number(&members, value);
        buffer_append_char(&members, '\0');
        double back = strtod(members.data, NULL);
        ck_assert_msg(memcmp(&back, &value, sizeof value) == 0, "%s", members.data);
    }
}
END_TEST

START_TEST(members_of_rows) {
    wandb_member(&members, "i", cell_int(INT64_MAX));
    wandb_member(&members, "n\"", cell_number(NAN));
    wandb_member(&members, "t", cell_slice(SLICE("\x7f\"\\")));
    wandb_member_key(&members, "k");
    buffer_append_text(&members, "null");
    ck_assert_slice(buffer_slice(&members),
                    "\"i\":9223372036854775807,\"n\\\"\":NaN,\"t\":\"\\u007f\\\"\\\\\",\"k\":null");
}
END_TEST

START_TEST(two_charts) {
    wandb_chart_member(&members, "one", "First \"title\"", "X");
    wandb_chart_member(&members, "two", "Second", "Y");
    json_t *charts = json_members(buffer_slice(&members));
    const json_t *panel = json_object_get(json_object_get(charts, "one"), "panel_config");
    ck_assert_uint_eq(json_object_size(charts), 2);
    ck_assert_same_json(json_incref(json_object_get(panel, "stringSettings")),
                        json_of(SLICE("{\"title\":\"First \\\"title\\\"\",\"xname\":\"X\"}")),
                        "its texts");
    char *text = json_dumps(json_object_get(charts, "two"), 0);
    ck_assert_ptr_nonnull(strstr(text, "two_table"));
    memory_give(text);
    json_decref(charts);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("wandb_table");
    TCase *tcase = tcase_create("tables");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, both_forms);
    tcase_add_test(tcase, columns_of_several_types);
    tcase_add_test(tcase, a_table_without_rows);
    tcase_add_test(tcase, as_many_rows_as_there_may_be);
    tcase_add_test(tcase, texts_that_are_too_large);
    tcase_add_test(tcase, numbers_read_back_as_they_were);
    tcase_add_test(tcase, members_of_rows);
    tcase_add_test(tcase, two_charts);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
