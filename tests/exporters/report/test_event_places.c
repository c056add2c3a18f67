// SPDX-License-Identifier: Apache-2.0
// Where a line of the input is cut when it is too long to be shown.
#include "tests/support/temporary.h"

#include "base/memory.h"
#include "exporters/report/event_places.h"

#include <string.h>
#include <unistd.h>

static struct arena arena;

static void setup(void) {
    arena_init(&arena, 4096);
}

static void teardown(void) {
    arena_release(&arena);
    intern_release();
}

// The second line of a file, cut to 60 bytes.
static const char *cut(const char *line) {
    char path[256];
    temporary_path(path, sizeof path, "places");
    int descriptor = mkstemp(path);
    ck_assert_int_ge(descriptor, 0);
    FILE *file = fdopen(descriptor, "w");
    fprintf(file, "first\n%s\r\nlast\n", line);
    fclose(file);
    struct event_place place = {.source = intern(slice_of(path)), .position = 2};
    struct slice shown = event_place_line(&place, &arena, 60);
    unlink(path);
    return arena_text(&arena, shown);
}

START_TEST(cut_at_a_sensible_place) {
    static const char FITS[] = "{\"a\":1,\"b\":\"exactly sixty bytes of a line that stay here\"}  ";
    ck_assert_uint_eq(strlen(FITS), 60);
    ck_assert_str_eq(cut(FITS), FITS);
    // Behind the last comma that stands between values, not inside a key or a text.
    ck_assert_str_eq(
        cut("{\"rank\":1,\"host\":\"node-a\",\"note\":\"a, b\",\"allocator_allocated_bytes\":5}"),
        "{\"rank\":1,\"host\":\"node-a\",\"note\":\"a, b\", ...");
    ck_assert_str_eq(
        cut("{\"rank\":1,\"host\":\"node-a\",\"t\":\"\\\",\\\", quoted, and so it goes on\"}"),
        "{\"rank\":1,\"host\":\"node-a\",\"t\":\"\\\",\\\", quoted, and so it goes ...");
    ck_assert_str_eq(cut("[ 12.345678] NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>' name=x"),
                     "[ 12.345678] NVRM: Xid (PCI:0000:41:00): 79, ...");
    ck_assert_str_eq(cut("kernel: words without any comma but with spaces betweeeeeeeeeen them"),
                     "kernel: words without any comma but with spaces ...");
    // Between two characters at least: 2 bytes each, from an odd place on.
    const char *umlauts =
        "x\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
        "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
        "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
        "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4";
    const char *shown = cut(umlauts);
    ck_assert_uint_eq(strlen(shown), 59 + 4);
    ck_assert_int_eq(memcmp(shown, umlauts, 59), 0);
    ck_assert_str_eq(shown + 59, " ...");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("event_places");
    TCase *cases = tcase_create("event_places");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, cut_at_a_sensible_place);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
