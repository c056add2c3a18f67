// SPDX-License-Identifier: Apache-2.0
// A record must mean the same whatever came before it in its source, and nothing past its end may
// be read.
#include "tests/receivers/decode/decode_members.h"

static const char *const odd_values[] = {
    "null",
    "0",
    "-0",
    "7",
    "-3",
    "64",
    "1.5",
    "1e3",
    "true",
    "\"x\"",
    "\"\"",
    "\" \"",
    "\"\\u0041\"",
    "\"\xc3\xa9\"",
    "[]",
    "{}",
    "[1,[2]]",
    "NaN",
    "\"sample\"",
    "\"phase_enter\"",
    "\"phase_exit\"",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "2147483646",
    "2147483647",
    "01",
    "\"\\ud800\"",
    "12345678",
    "123456789012345678",
    "{\"session_id\":\"m\"}",
    "{\"session_id\":7,\"memory_capabilities\":{}}",
    "{" CAPABILITIES("true") "}",
    "{" CAPABILITIES("false") "}",
    "{\"a\":[{}],\"sampling_source\":\" \"}",
};

static void change_member(struct member *members, unsigned *count) {
    const char *value = odd_values[below(sizeof odd_values / sizeof *odd_values)];
    if (below(12) == 0) {
        set_member(members, count, "extra", "1");
        return;
    }
    unsigned at = (unsigned)below(*count);
    if (below(6) == 0)
        members[at] = members[--*count];
    else
        snprintf(members[at].value, sizeof members[at].value, "%s", value);
}

START_TEST(every_layout_means_the_same_with_and_without_memory) {
    const struct writing *writing = &writings[_i];
    unsigned accepted = 0;
    for (unsigned line = 0; line < 400; line++) {
        struct member members[MEMBERS_MAX];
        unsigned count = base_members(members);
        move_on(members, &count, line);
        accepted += decode_both(write_members(members, count, writing));
    }
    ck_assert_uint_eq(accepted, 400);
    if (!writing->shuffled && !writing->escaped_keys)
        ck_assert(learnt()->template.ready && learnt()->template.score > 0);
}
END_TEST

START_TEST(odd_records_between_healthy_ones) {
    const struct writing *writing = &writings[_i];
    unsigned accepted = 0;
    for (unsigned line = 0; line < 1500; line++) {
        struct member members[MEMBERS_MAX];
        unsigned count = base_members(members);
        move_on(members, &count, line);
        for (uint64_t changes = below(4); changes > 0 && line % 3 != 0; changes--)
            change_member(members, &count);
        accepted += decode_both(write_members(members, count, writing));
    }
    ck_assert_uint_gt(accepted, 500);
    ck_assert_uint_lt(accepted, 1500);
}
END_TEST

START_TEST(layouts_taken_in_turn) {
    for (unsigned line = 0; line < 2000; line++) {
        struct member members[MEMBERS_MAX];
        unsigned count = base_members(members);
        move_on(members, &count, line);
        if (line % 2 == 0)
            set_member(members, &count, "context", "null");
        if (line % 5 == 0)
            members[8] = members[--count]; // no job_id, and another order
        decode_both(write_members(members, count, &writings[line / 7 % 4]));
    }
}
END_TEST

START_TEST(a_record_cut_anywhere_is_refused_and_not_read_past_its_end) {
    struct member members[MEMBERS_MAX];
    unsigned count = base_members(members);
    for (unsigned line = 0; line < 40; line++) {
        count = base_members(members);
        move_on(members, &count, line);
        decode_both(write_members(members, count, &writings[_i]));
    }
    struct slice whole = write_members(members, count, &writings[_i]);
    char *copy = memory_copy_text(whole.data, whole.size);
    for (size_t size = 0; size < whole.size; size++)
        ck_assert(!decode_both((struct slice){copy, size}));
    ck_assert(decode_both((struct slice){copy, whole.size}));
    memory_give(copy);
}
END_TEST

START_TEST(any_byte_changed_is_judged_alike) {
    struct member members[MEMBERS_MAX];
    unsigned count = base_members(members);
    for (unsigned line = 0; line < 20; line++) {
        count = base_members(members);
        move_on(members, &count, line * 3);
        decode_both(write_members(members, count, &writings[1]));
    }
    struct slice whole = write_members(members, count, &writings[1]);
    char *copy = memory_copy_text(whole.data, whole.size);
    static const char bytes[] = "\" \\{}[],:0-9.eNnx\n\x01\x80\xc3\xff";
    for (size_t at = 0; at < whole.size; at++) {
        char kept = copy[at];
        for (size_t i = 0; i < sizeof bytes; i++) {
            copy[at] = bytes[i]; // the last one is zero
            decode_both((struct slice){copy, whole.size});
        }
        copy[at] = kept;
    }
    memory_give(copy);
}
END_TEST

START_TEST(warmed_up_it_allocates_nothing) {
    uint64_t before = 0;
    for (unsigned line = 0; line < 3000; line++) {
        struct member members[MEMBERS_MAX];
        unsigned count = base_members(members);
        move_on(members, &count, line);
        struct slice record = write_members(members, count, &writings[line % 300 == 0 ? 2 : 0]);
        ck_assert_ptr_nonnull(decoding_run(&warm, record));
        arena_reset(&warm.arena);
        if (line == 1000)
            before = memory_figures().allocations;
    }
    ck_assert_uint_eq(memory_figures().allocations, before);
}
END_TEST

START_TEST(an_escaped_text_that_stays_is_read_each_time) {
    for (unsigned line = 0; line < 60; line++) {
        struct member members[MEMBERS_MAX];
        unsigned count = base_members(members);
        move_on(members, &count, line);
        set_member(members, &count, "context", "\"two\\nlines \\u00e9\"");
        set_member(members, &count, "collector", "\"\\u0063pu\"");
        set_member(members, &count, "session_id", line % 2 == 0 ? "\"s\\u0031\"" : "\"s1\"");
        ck_assert(decode_both(write_members(members, count, &writings[0])));
    }
    ck_assert(learnt()->template.ready);
}
END_TEST

START_TEST(a_record_too_long_for_a_template) {
    static char context[4096];
    memset(context, 'c', sizeof context - 1);
    context[0] = context[sizeof context - 2] = '"';
    for (unsigned line = 0; line < 40; line++) {
        struct member members[MEMBERS_MAX];
        unsigned count = base_members(members);
        move_on(members, &count, line);
        struct member *member = member_of(members, count, "context");
        snprintf(member->value, sizeof member->value, "%.2000s\"", context);
        ck_assert(decode_both(write_members(members, count, &writings[0])));
    }
    ck_assert(!learnt()->template.ready);
}
END_TEST

START_TEST(rare_layouts_do_not_drive_the_template_out) {
    for (unsigned line = 0; line < 600; line++) {
        struct member members[MEMBERS_MAX];
        unsigned count = base_members(members);
        move_on(members, &count, line);
        if (line % 20 == 19)
            members[8] = members[--count];
        decode_both(write_members(members, count, &writings[0]));
        if (line > 100)
            ck_assert(learnt()->template.ready);
    }
}
END_TEST

int main(void) {
    const int layouts = sizeof writings / sizeof *writings;
    Suite *suite = suite_create("telemetry_decode_template");
    TCase *tcase = tcase_create("memory");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, decode_setup, decode_teardown);
    tcase_add_loop_test(tcase, every_layout_means_the_same_with_and_without_memory, 0, layouts);
    tcase_add_loop_test(tcase, odd_records_between_healthy_ones, 0, layouts);
    tcase_add_test(tcase, layouts_taken_in_turn);
    tcase_add_loop_test(tcase, a_record_cut_anywhere_is_refused_and_not_read_past_its_end, 0, 3);
    tcase_add_test(tcase, any_byte_changed_is_judged_alike);
    tcase_add_test(tcase, warmed_up_it_allocates_nothing);
    tcase_add_test(tcase, an_escaped_text_that_stays_is_read_each_time);
    tcase_add_test(tcase, a_record_too_long_for_a_template);
    tcase_add_test(tcase, rare_layouts_do_not_drive_the_template_out);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
