// SPDX-License-Identifier: Apache-2.0
// What culprit top makes of two answers.
#include "cli/top/client.h"
#include "cli/top/view.h"

#include "base/text/display.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct arena arena;
static struct view view;
static char joined[1 << 16];

static void setup(void) {
    arena_init(&arena, 4096);
}

static void teardown(void) {
    arena_release(&arena);
}

static const char *make(enum view_kind kind, const char *now, const char *before, double seconds,
                        uint32_t columns) {
    json_t *first = before == NULL ? NULL : json_loads(before, 0, NULL);
    json_t *second = json_loads(now, 0, NULL);
    ck_assert_ptr_nonnull(second);
    struct view_answers answers = {second, first, seconds};
    view = view_make(kind, &answers, columns, &arena);
    size_t at = 0;
    for (uint32_t i = 0; i < view.count; i++) {
        ck_assert_ptr_null(memchr(view.lines[i].text.data, '\n', view.lines[i].text.size));
        memcpy(joined + at, view.lines[i].text.data, view.lines[i].text.size);
        at += view.lines[i].text.size;
        joined[at++] = '\n';
        ck_assert_uint_lt(at, sizeof joined - 5000);
    }
    joined[at] = '\0';
    json_decref(first);
    json_decref(second);
    return joined;
}

#define HAS(text)    ck_assert_msg(strstr(joined, text) != NULL, "%s is missing:\n%s", text, joined)
#define HAS_NO(text) ck_assert_msg(strstr(joined, text) == NULL, "%s is there:\n%s", text, joined)

static const char before[] =
    "{\"pipelines\":[{\"name\":\"p\",\"events\":1000,\"evaluations\":5,\"stages\":[{\"id\":\"s\","
    "\"events\":100}]}],\"receivers\":[{\"id\":\"file\",\"events\":5000}],\"exporters\":[{\"id\":"
    "\"json\",\"sent\":3}]}";
static const char now[] =
    "{\"version\":\"1.2.3\",\"pid\":77,\"uptime_s\":250,\"ready\":true,\"memory_bytes\":2048,"
    "\"pipelines\":[{\"name\":\"p\",\"events\":4000,\"evaluations\":6,\"newest_event_age_s\":3.21,"
    "\"lag_s\":400000,\"evaluations_waiting\":20,\"held_back_by\":\"/a/"
    "b\",\"stages\":[{\"id\":\"s\","
    "\"events\":350,\"filtered\":7}],\"open\":{\"critical\":1,\"error\":0,\"warning\":3,\"info\":0}"
    ","
    "\"jobs\":[{\"job\":\"j\",\"ranks\":6,\"world_size\":8,\"missing\":12,\"missing_ranks\":[3,5],"
    "\"events\":900}],\"incidents\":[{\"id\":\"b\",\"severity\":\"warning\",\"since\":"
    "\"2026-11-18T09:01:40.300000000Z\",\"headline\":\"a warning\"},{\"id\":\"a\",\"severity\":"
    "\"critical\",\"job\":\"j\",\"since\":\"2026-11-18T09:01:40.300000000Z\",\"headline\":\"the "
    "gravest of all that stand here\"},{\"id\":\"a\",\"severity\":\"critical\",\"since\":\"x\","
    "\"headline\":\"twice\"}]}],"
    "\"receivers\":[{\"id\":\"file\",\"events\":2000,\"refused\":4,\"blocked\":true,\"status\":"
    "\"StatusOK\"},{\"id\":\"http\",\"events\":1,\"status\":\"StatusRecoverableError\",\"error\":"
    "\"no such thing\"}],\"exporters\":[{\"id\":\"json\",\"sent\":13,\"queue_bytes\":1048576,"
    "\"retried\":2,\"discarded\":1234567,\"status\":\"StatusPermanentError\"}]}";

START_TEST(rates_are_what_was_added) {
    make(VIEW_ALL, now, before, 2, 0);
    HAS("culprit 1.2.3  pid 77  up 4 min 10 s  memory 2.00 KiB");
    HAS("p              1.5k    4.0k        3.2 s          5 d     0.5  1 critical, 3 warning");
    HAS("p: 20 evaluations wait for /a/b");
    HAS("file              -    2.0k       4  waits"); // its counter began anew
    HAS("http              -       1       0  retries: no such thing");
    HAS("json              5      13   1.00 MiB       2      1.2M  failed");
    HAS("j                                  6       8     900  3, 5 and 10 more");
    HAS_NO("STAGE");
    make(VIEW_PIPELINES, now, before, 2, 0);
    HAS("s               125     350        7");
    HAS_NO("INCIDENT");
}
END_TEST

START_TEST(incidents_stand_by_gravity_and_once) {
    make(VIEW_INCIDENTS, now, NULL, 0, 0);
    HAS("2 INCIDENTS\ncritical 2026-11-18 09:01:40  j: the gravest of all that stand here\n"
        "warning  2026-11-18 09:01:40  a warning\n");
    HAS_NO("twice");
    make(VIEW_INCIDENTS, now, NULL, 0, 40);
    HAS("critical 2026-11-18 09:01:40  j: the\n    gravest of all that stand here\nwarning");
    ck_assert_int_eq(view.lines[3].style, STYLE_BAD);
}
END_TEST

START_TEST(a_name_that_is_cut_ends_in_an_ellipsis) {
    make(VIEW_PIPELINES, "{\"receivers\":[{\"id\":\"file/a-name-that-no-column-of-names-holds\"}]}",
         NULL, 0, 0);
    HAS("file/a-name-that-no-column-…        -");
}
END_TEST

START_TEST(text_of_others_is_made_safe) {
    make(
        VIEW_ALL,
        "{\"version\":\"\\u001b[31m\",\"ready\":false,\"reason\":\"a\\nb\",\"store\":{\"error\":"
        "\"\\r\"},\"pipelines\":[{\"name\":\"\\u001b[2J\",\"held_back_by\":\"\\u0007\","
        "\"evaluations_waiting\":11,\"jobs\":[{\"job\":\"\\u202e\"}],\"stages\":[{\"id\":\"\\b\"}],"
        "\"incidents\":[{\"id\":\"i\",\"severity\":\"\\u001bc\",\"since\":"
        "\"\\u001b\\u001b\\u001b\\u001b\\u001b\\u001b\\u001b\\u001b\\u001b\\u001b\\u001b\\u001b"
        "\\u001b\\u001b\\u001b\\u001b\\u001b\\u001b\\u001b\\u001b\",\"job\":\"\\u001b\","
        "\"headline\":\"\\u009b\"}]}],\"receivers\":[{\"id\":\"\\u001b\",\"error\":\"\\u001b\"}],"
        "\"exporters\":[{\"id\":\"\\u001b\",\"error\":\"\\u001b\",\"status\":\"x\"}]}",
        NULL, 0, 0);
    for (const char *at = joined; *at != '\0'; at++)
        ck_assert_msg(*at == '\n' || ((unsigned char)*at >= ' ' && *at != 0x7f), "%s", joined);
    ck_assert_ptr_null(strstr(joined, "\xc2\x9b"));
    ck_assert_ptr_null(strstr(joined, "\xe2\x80\xae"));
}
END_TEST

// Whatever it is that answers.
static const char *const odd[] = {
    "{}", "{\"pipelines\":5,\"receivers\":{},\"exporters\":\"x\"}",
    "{\"pipelines\":[1,null,[]],\"receivers\":[true],\"exporters\":[{}]}",
    "{\"pipelines\":[{\"jobs\":[{}],\"incidents\":[{},{}],"
    "\"stages\":[{}]}],\"pid\":-1e300,\"uptime_s\":1e300,"
    "\"memory_bytes\":1e300}"};

START_TEST(any_answer_can_be_shown) {
    for (int kind = VIEW_ALL; kind <= (int)VIEW_INCIDENTS; kind++)
        for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
            make((enum view_kind)kind, odd[_i], odd[i], 1, 30);
            ck_assert_uint_gt(view.count, 0);
        }
}
END_TEST

START_TEST(text_is_cut_by_columns) {
    static const char text[] =
        "a\xe6\xbc\xa2" // two columns
        "e\xcc\x81"     // one, with a combining mark
        "z";
    static const size_t sizes[] = {0, 0, 1, 1, 4, 8, 8}; // one column is the ellipsis
    bool more;
    for (uint32_t columns = 0; columns < 7; columns++) {
        struct slice cut = view_cut(slice_of(text), columns, &more);
        ck_assert_uint_eq(cut.size, sizes[columns]);
        ck_assert_int_eq(more, columns > 0 && columns < 5);
        ck_assert_uint_le(display_columns(cut) + more, columns);
    }
    ck_assert_uint_eq(view_cut((struct slice){"\xf0\x9f", 2}, 9, &more).size, 2); // cut off itself
}
END_TEST

START_TEST(queries_are_percent_encoded) {
    struct buffer out;
    buffer_init(&out, 200);
    client_append_query(&out, "stage", SLICE("a/b c&d=%\xff"));
    ck_assert_str_eq((buffer_append_char(&out, '\0'), out.data), "&stage=a/b%20c%26d%3D%25%FF");
    buffer_release(&out);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("top_view");
    TCase *tests = tcase_create("top_view");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, rates_are_what_was_added);
    tcase_add_test(tests, incidents_stand_by_gravity_and_once);
    tcase_add_test(tests, a_name_that_is_cut_ends_in_an_ellipsis);
    tcase_add_test(tests, text_of_others_is_made_safe);
    tcase_add_loop_test(tests, any_answer_can_be_shown, 0, sizeof odd / sizeof odd[0]);
    tcase_add_test(tests, text_is_cut_by_columns);
    tcase_add_test(tests, queries_are_percent_encoded);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
