// SPDX-License-Identifier: Apache-2.0
// A record must mean the same whatever came before it in its source, and nothing past its end may
// be read: with the vector instructions of each level that this processor has.
#include "base/simd.h"
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

// The name that is expected is the one behind the last: in order, out of it, with one left out, and
// with others that differ in their last character, their length or their spelling.
START_TEST(names_that_come_round) {
    static const char *const spelt[] = {"\"run-\\u0072%u\"", "\"run-r%u \"", "\"run-R%u\"",
                                        "\"  \""};
    enum { NAMES = 20 };
    unsigned expected = 0;
    for (unsigned line = 0; line < 40 * NAMES; line++) {
        struct member members[MEMBERS_MAX];
        unsigned count = base_members(members);
        move_on(members, &count, line);
        unsigned round = line / NAMES, name = line % NAMES;
        bool usual = round < 10 || round > 30;
        if (!usual)
            name = (unsigned)below(NAMES);
        char session[32], host[32];
        snprintf(session, sizeof session, "\"run-r%u\"", name);
        snprintf(host, sizeof host, "\"node-%u\"", name / 4);
        if (!usual && below(5) == 0)
            snprintf(session, sizeof session, spelt[below(4)], name);
        set_member(members, &count, "session_id", session);
        set_member(members, &count, "host", host);
        const struct intern_entry *next = learnt()->next_names[NAME_SESSION];
        bool is_next = next != NULL && next->size + 2 == strlen(session) &&
                       memcmp(next->bytes, session + 1, next->size) == 0;
        decode_both(write_members(members, count, &writings[0]));
        expected += usual && is_next;
    }
    ck_assert_uint_ge(expected, 15 * NAMES);
}
END_TEST

// A text of `size` characters, of which the one at `place` is another.
static const char *odd_text(char *text, size_t size, size_t place, const char *other) {
    char *at = text;
    *at++ = '"';
    for (size_t i = 0; i < size; i++) {
        if (i == place)
            at = stpcpy(at, other);
        else
            *at++ = (char)('a' + (i * 7 + size) % 26);
    }
    strcpy(at, "\"");
    return text;
}

START_TEST(texts_of_every_length_with_an_odd_character_anywhere) {
    static const char *const others[] = {
        "b",  "\\\"", "\\\\", "\\u00e9", "\xc3\xa9", "\xf0\x9f\x98\x80", "\x7f", "\"", "\\", "\x01",
        "\n", "\x80", "\xff", "\\x",     "{",        "\\u00g9"};
    const size_t other_count = sizeof others / sizeof *others;
    char session[512], note[512], metadata[600];
    for (unsigned line = 0; line < 6000; line++) {
        struct member members[MEMBERS_MAX];
        unsigned count = base_members(members);
        move_on(members, &count, line);
        size_t size = line % 301;
        bool healthy = line % 4 != 0;
        const char *other = others[healthy ? 0 : below(other_count)];
        size_t place = size == 0 ? 0 : below(size);
        odd_text(session, size % 60, below(60), others[line % 8 == 0 ? below(other_count) : 0]);
        odd_text(note, size, place, other);
        snprintf(metadata, sizeof metadata, "{\"step\":%u,\"note\":%s%s", line, note,
                 line % 3 == 0 ? "}" : ",\"loss\":1.5}");
        set_member(members, &count, "session_id", session);
        set_member(members, &count, "metadata", metadata);
        decode_both(write_members(members, count, &writings[0]));
    }
}
END_TEST

START_TEST(numbers_of_every_length_and_form) {
    static const char *const forms[] = {"%s",   "-%s",  "0%s", "%s.5", "%s.",  ".%s",   "%se3",
                                        "%s.e", "-0%s", "+%s", "%s ",  "%s.x", "%s.0E", "%s.25e-7"};
    char digits[40], number[64], metadata[160];
    for (unsigned line = 0; line < 6000; line++) {
        struct member members[MEMBERS_MAX];
        unsigned count = base_members(members);
        move_on(members, &count, line);
        size_t size = 1 + below(26);
        for (size_t i = 0; i < size; i++)
            digits[i] = (char)('0' + below(i == 0 && size > 1 ? 9 : 10) + (i == 0 && size > 1));
        digits[size] = '\0';
        const char *form = forms[line % 3 == 0 ? below(sizeof forms / sizeof *forms) : line % 2];
        snprintf(number, sizeof number, form, digits);
        if (line % 2 == 0)
            set_member(members, &count, line % 4 == 0 ? "allocator_change_bytes" : "device_id",
                       number);
        snprintf(metadata, sizeof metadata, "{\"a\":%s,\"note\":\"ok\",\"loss\":%s}", number,
                 line % 5 == 0 ? number : "0.25");
        set_member(members, &count, "metadata", metadata);
        decode_both(write_members(members, count, &writings[0]));
    }
}
END_TEST

START_TEST(metadata_of_any_members) {
    static const char *const parts[] = {"\"step\":1",
                                        "\"phase\":\"forward\"",
                                        "\"session_id\":\"m\"",
                                        "\"sampling_source\":\"nvml\"",
                                        "\"sampling_source\":\" \"",
                                        "\"l\\u006fss\":-1.5e3",
                                        "\"deep\":{\"a\":[1,{}]}",
                                        "\"session_id\":7",
                                        "\"phase_scope\":null",
                                        "\"broken\":01",
                                        "\"no\":nul",
                                        CAPABILITIES("true"),
                                        CAPABILITIES("false"),
                                        "\"memory_capabilities\":{}"};
    const size_t part_count = sizeof parts / sizeof *parts;
    char metadata[2048];
    for (unsigned line = 0; line < 3000; line++) {
        struct member members[MEMBERS_MAX];
        unsigned count = base_members(members);
        move_on(members, &count, line);
        // Now and then others than in the records before.
        uint64_t which =
            line % 8 == 0 ? random_next(&seed) : line / 40 * UINT64_C(0x9e3779b97f4a7c15);
        size_t size = (size_t)snprintf(metadata, sizeof metadata, "{");
        for (uint64_t left = which % 5; left > 0; left--, which /= 31)
            size += (size_t)snprintf(metadata + size, sizeof metadata - size, "%s%s",
                                     size == 1       ? ""
                                     : line % 2 == 0 ? ","
                                                     : " , ",
                                     parts[(which >> 7) % part_count]);
        snprintf(metadata + size, sizeof metadata - size, "}");
        set_member(members, &count, "metadata", metadata);
        decode_both(write_members(members, count, &writings[0]));
    }
}
END_TEST

START_TEST(the_level_is_what_was_asked_for_or_less) {
    int level = (int)simd_level();
    ck_assert_int_le(level, _i);
    simd_limit(SIMD_LEVEL_COUNT - 1);
    ck_assert_int_ge((int)simd_level(), level);
}
END_TEST

static void setup_baseline(void) {
    simd_limit(SIMD_BASELINE);
    decode_setup();
}

static void setup_avx2(void) {
    simd_limit(SIMD_AVX2);
    decode_setup();
}

static void setup_avx512(void) {
    simd_limit(SIMD_AVX512);
    decode_setup();
}

static TCase *tests_with(const char *name, void (*setup)(void), int level) {
    const int layouts = sizeof writings / sizeof *writings;
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, decode_teardown);
    tcase_add_loop_test(tcase, the_level_is_what_was_asked_for_or_less, level, level + 1);
    tcase_add_loop_test(tcase, every_layout_means_the_same_with_and_without_memory, 0, layouts);
    tcase_add_loop_test(tcase, odd_records_between_healthy_ones, 0, layouts);
    tcase_add_test(tcase, layouts_taken_in_turn);
    tcase_add_loop_test(tcase, a_record_cut_anywhere_is_refused_and_not_read_past_its_end, 0, 3);
    tcase_add_test(tcase, any_byte_changed_is_judged_alike);
    tcase_add_test(tcase, warmed_up_it_allocates_nothing);
    tcase_add_test(tcase, an_escaped_text_that_stays_is_read_each_time);
    tcase_add_test(tcase, a_record_too_long_for_a_template);
    tcase_add_test(tcase, rare_layouts_do_not_drive_the_template_out);
    tcase_add_test(tcase, names_that_come_round);
    tcase_add_test(tcase, texts_of_every_length_with_an_odd_character_anywhere);
    tcase_add_test(tcase, numbers_of_every_length_and_form);
    tcase_add_test(tcase, metadata_of_any_members);
    return tcase;
}

int main(void) {
    Suite *suite = suite_create("telemetry_decode_template");
    suite_add_tcase(suite, tests_with("baseline", setup_baseline, SIMD_BASELINE));
    suite_add_tcase(suite, tests_with("avx2", setup_avx2, SIMD_AVX2));
    suite_add_tcase(suite, tests_with("avx512", setup_avx512, SIMD_AVX512));
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
