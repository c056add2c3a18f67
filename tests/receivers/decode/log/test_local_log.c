// SPDX-License-Identifier: Apache-2.0
// What a log whose times say no zone tells of its zone.
#include "receivers/decode/log/local_log.h"

#include "base/buffer.h"
#include "base/memory.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static const uint64_t SECOND = 1000000000;
static const uint64_t NINE = UINT64_C(1794992400000000000); // 2026-11-18T09:00:00Z

static struct local_times times;
static struct local_log *log_at_hand;

static void setup(void) {
    times = (struct local_times){.facts = memory_take(LOCAL_FACTS_MAX * sizeof *times.facts)};
    struct decoder_input input = {.observed_ns = NINE + 86400 * SECOND, .is_file = true};
    log_at_hand = local_log_make(&input, intern(SLICE("node1")));
}

static void teardown(void) {
    local_log_free(log_at_hand);
    local_log_free(NULL);
    memory_give(times.facts);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static void read_line(const char *line) {
    ck_assert_uint_eq(local_log_read(log_at_hand, slice_of(line), true, &times), strlen(line));
}

static const struct {
    const char *head;
    bool local;
} HEADS[] = {
    {"[Wed Nov 18 09:00:00 2026] Linux version 6.8\n", true},
    {"Nov 18 09:00:00 node1 kernel: Linux version 6.8\n", true},
    {"\n[Wed Nov 18 09:00:00 2026] a\n[Wed Nov 18 09:00:01 2026] b\n", true},
    {"2026-11-18T09:00:00+00:00 node1 kernel: text\n", false},
    {"2026-11-18T09:00:00Z stderr F [Wed Nov 18 11:00:00 2026] text\n", false}, // the outer counts
    {"[    1.000000] since boot\n", false},
    {"<6>[    1.000000] since boot\n", false},
    // One that says its zone is enough to doubt the others.
    {"[Wed Nov 18 09:00:00 2026] a\n2026-11-18T09:00:00+00:00 node1 kernel: b\n", false},
    {"Nov 18 09:00:00 node1 trainer[7]: a program's\n", false},
    {"1118 09:00:00.123456 glog\n", false},
    {"", false},
};

START_TEST(which_logs_are_local) {
    ck_assert_int_eq(log_is_local(slice_of(HEADS[_i].head)), HEADS[_i].local);
}
END_TEST

static const struct {
    const char *head;
    bool lacks;
} YEARS[] = {
    {"1118 09:00:00.123456 no severity\n", false},
    {"W1118 09:00:00.123456 7 glog\n", true},
    {"text\n[rank1]: [E1118 09:00:00.123456789 a.cpp:1] glog\n", true},
    {"Nov 18 09:00:00 node1 kernel: text\n", true},
    {"Nov 18 09:00:00 node1 trainer[7]: text\n", true},
    {"W1118 09:00:00.123456 7 glog\n  time : 2026-11-18_09:00:00\n", false},
    {"W1118 09:00:00.123456 7 glog\n[Wed Nov 18 09:00:00 2026] text\n", false},
    {"2026-11-18T09:00:00Z stderr F W1118 09:00:00.123456 7 glog\n", false},
    {"no date\n", false},
    {"", false},
};

START_TEST(which_logs_lack_a_year) {
    ck_assert_int_eq(log_lacks_year(slice_of(YEARS[_i].head)), YEARS[_i].lacks);
}
END_TEST

START_TEST(times_and_facts) {
    read_line("[Wed Nov 18 09:00:10 2026] NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen");
    read_line("[Wed Nov 18 09:00:00 2026] node2 kernel: NVRM: Xid (PCI:0000:29:00): 48, pid=1");
    read_line(
        "[Wed Nov 18 09:00:20 2026] nvidia 0000:29:00.0: PCIe Bus Error: "
        "severity=Uncorrectable (Fatal), type=Transaction Layer, (Receiver ID)");
    read_line("[Wed Nov 18 09:00:30 2026] nothing that counters tell of");
    read_line("2026-11-18T12:00:00+00:00 node1 kernel: NVRM: Xid (PCI:0000:1b:00): 31, pid=1");
    read_line("no time");
    read_line("");
    ck_assert_uint_eq(times.lines, 4);
    ck_assert_uint_eq(times.first_ns, NINE);
    ck_assert_uint_eq(times.last_ns, NINE + 30 * SECOND);
    static const struct {
        const char *node;
        uint32_t seconds, bus, code;
    } FACTS[] = {{"node1", 10, 0x1b, 79},
                 {"node2", 0, 0x29, 48},
                 {"node1", 20, 0x29, LOCAL_AER + AER_FATAL}};
    ck_assert_uint_eq(times.fact_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        const struct local_fact *fact = &times.facts[i];
        ck_assert_str_eq(intern_slice(fact->node).data, FACTS[i].node);
        ck_assert_uint_eq(fact->time_ns, NINE + FACTS[i].seconds * SECOND);
        ck_assert_uint_eq(fact->address, (uint64_t)FACTS[i].bus << 8);
        ck_assert_uint_eq(fact->code, FACTS[i].code);
    }
}
END_TEST

// A second for each line, from nine on. In the one in the middle a GPU is lost; nobody reads the
// others.
enum { LINES = 20000 };

static void append_lines(struct buffer *log) {
    for (int i = 0; i < LINES; i++) {
        buffer_append_format(log, "Nov 18 %02d:%02d:%02d node1 kernel: [%d.000000] ", 9 + i / 3600,
                             i / 60 % 60, i % 60, 100 + i);
        buffer_append_text(log, i == LINES / 2
                                    ? "NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus\n"
                                    : "cni0: port 7(veth0001) entered forwarding state\n");
    }
}

// Whole, and in pieces that end within lines; the last line has no end.
START_TEST(long_logs_are_searched) {
    static const size_t SIZES[] = {SIZE_MAX, 100000, 4099, 77};
    struct buffer log;
    buffer_init(&log, 16 << 20);
    append_lines(&log);
    struct slice rest = buffer_slice(&log);
    size_t size = SIZES[_i], held = 0;
    for (rest.size--; rest.size > 0;) {
        size_t given = held + size < rest.size && size != SIZE_MAX ? held + size : rest.size;
        bool last = given == rest.size;
        size_t used = local_log_read(log_at_hand, (struct slice){rest.data, given}, last, &times);
        ck_assert(used <= given && (!last || used == given));
        held = given - used;
        rest = (struct slice){rest.data + used, rest.size - used};
    }
    ck_assert_uint_eq(times.first_ns, NINE);
    ck_assert_uint_eq(times.last_ns, NINE + (LINES - 1) * SECOND);
    ck_assert_uint_ge(times.lines, 256);
    ck_assert_uint_eq(times.fact_count, 1);
    ck_assert_uint_eq(times.facts[0].time_ns, NINE + LINES / 2 * SECOND);
    ck_assert_uint_eq(times.facts[0].code, 79);
    buffer_release(&log);
}
END_TEST

// What is passed over is not read: a whole log without faults is searched at once.
START_TEST(most_lines_are_passed_over) {
    struct buffer log;
    buffer_init(&log, 16 << 20);
    append_lines(&log);
    local_log_read(log_at_hand, buffer_slice(&log), true, &times);
    ck_assert_uint_lt(times.lines, LINES / 10);
    buffer_release(&log);
}
END_TEST

START_TEST(facts_are_bounded) {
    char line[128];
    for (int i = 0; i < LOCAL_FACTS_MAX + 10; i++) {
        snprintf(line, sizeof line,
                 "[Wed Nov 18 09:%02d:%02d 2026] NVRM: Xid (PCI:0000:1b:00): 31, x", i / 60,
                 i % 60);
        read_line(line);
    }
    ck_assert_uint_eq(times.fact_count, LOCAL_FACTS_MAX);
    ck_assert_uint_eq(times.lines, LOCAL_FACTS_MAX + 10);
}
END_TEST

START_TEST(without_a_node_there_are_no_facts) {
    struct decoder_input input = {.observed_ns = NINE, .is_file = true};
    local_log_free(log_at_hand);
    log_at_hand = local_log_make(&input, STRING_NONE);
    read_line("[Wed Nov 18 09:00:10 2026] NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen");
    ck_assert_uint_eq(times.lines, 1);
    ck_assert_uint_eq(times.fact_count, 0);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("local_log");
    TCase *cases = tcase_create("local_log");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_loop_test(cases, which_logs_are_local, 0, sizeof HEADS / sizeof *HEADS);
    tcase_add_loop_test(cases, which_logs_lack_a_year, 0, sizeof YEARS / sizeof *YEARS);
    tcase_add_test(cases, times_and_facts);
    tcase_add_loop_test(cases, long_logs_are_searched, 0, 4);
    tcase_add_test(cases, most_lines_are_passed_over);
    tcase_add_test(cases, facts_are_bounded);
    tcase_add_test(cases, without_a_node_there_are_no_facts);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
