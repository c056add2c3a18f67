// SPDX-License-Identifier: Apache-2.0
// The kernel log's decoder: what the transports say of time and host, and what is refused.
#include "tests/receivers/decode/kernel_log/kernel_fixture.h"

static struct kernel_source source;

#define SECOND UINT64_C(1000000000)
#define BOOT   (KERNEL_MORNING - 2000 * SECOND)

static void setup(void) {
    source = kernel_open(KERNEL_MORNING);
}

// Begins again, with what is known of the node.
static void reopen(uint64_t boot_ns, struct slice node) {
    kernel_close(&source);
    source = kernel_open_input(&(struct decoder_input){.path = SLICE("dmesg.txt"),
                                                       .observed_ns = KERNEL_MORNING,
                                                       .boot_ns = boot_ns,
                                                       .node = node,
                                                       .is_file = true});
}

static void teardown(void) {
    kernel_close(&source);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

#define XID "NVRM: Xid (PCI:0000:9b:00): 79, x"
// The same words at the same time would be a copy of it.
#define AGAIN "NVRM: Xid (PCI:0000:9b:00): 79, y"
static const struct {
    const char *line;
    uint64_t after_ns; // the morning
    uint64_t before_ns;
    const char *host; // NULL: not said
    uint64_t boot_us;
} SHAPES[] = {
    {"3,1201,1000250000,-;" XID, 0, 2000 * SECOND - 1000250000000, NULL, 1000250000},
    {"3,1201,1000250000,-,caller=T77;" XID, 0, 2000 * SECOND - 1000250000000, NULL, 1000250000},
    {"[ 1000.250000] " XID, 0, 2000 * SECOND - 1000250000000, NULL, 1000250000},
    {"[    5.000001] " XID, 0, 2000 * SECOND - 5000001000, NULL, 5000001},
    {"[ 1000.250000][ T1234] " XID, 0, 2000 * SECOND - 1000250000000, NULL, 1000250000},
    {"[ 1000.250000] [    C3] " XID, 0, 2000 * SECOND - 1000250000000, NULL, 1000250000},
    {"<3>[ 1000.250000] " XID, 0, 2000 * SECOND - 1000250000000, NULL, 1000250000},
    {"kern  :err   : [ 1000.250000] " XID, 0, 2000 * SECOND - 1000250000000, NULL, 1000250000},
    {"[ 1000.250000] node7 kernel: " XID, 0, 2000 * SECOND - 1000250000000, "node7", 1000250000},
    {"[Sat Jan 31 09:15:05 2026] " XID, SECOND, 0, NULL, 0},
    {"[Sat Jan  3 09:15:04 2026] " XID, 0, 28 * 86400 * SECOND, NULL, 0},
    {"kern  :warn  : [Sat Jan 31 09:15:05 2026] " XID, SECOND, 0, NULL, 0},
    {"2026-01-31T09:15:04,123456+00:00 " XID, 123456000, 0, NULL, 0},
    {"2026-01-31T10:15:04,123456+01:00 nvidia 0000:9b:00.0: " XID, 123456000, 0, NULL, 0},
    {"Jan 31 09:15:04 node7 kernel: " XID, 0, 0, "node7", 0},
    {"Jan  3 09:15:04 node7 kernel: " XID, 0, 28 * 86400 * SECOND, "node7", 0},
    {"Jan 31 09:15:04.250000 node7 kernel: [ 1000.250000] " XID, 250000000, 0, "node7", 0},
    {"Jan 31 09:15:04 node7 kernel: [ 1000.250000] [ T12] " XID, 0, 0, "node7", 0},
    // The day before the log was read, in the year before.
    {"Feb  2 09:15:04 node7 kernel: " XID, 0, 363 * 86400 * SECOND, "node7", 0},
    {"2026-01-31T09:15:04.5+00:00 node7 kernel: " XID, 500000000, 0, "node7", 0},
    {"2026-01-31T09:15:04+0000 node7 kernel: " XID, 0, 0, "node7", 0},
    {"2026-01-31T09:15:04Z node7 kernel: [ 1000.250000] " XID, 0, 0, "node7", 0},
    {"2026-01-31 09:15:04 " XID, 0, 0, NULL, 0},
    {"<3>Jan 31 09:15:04 node7 kernel: " XID, 0, 0, "node7", 0},
    {"<3>1 2026-01-31T09:15:04.5Z node7 kernel - - - " XID, 500000000, 0, "node7", 0},
    {"<3>1 2026-01-31T09:15:04Z node7 kernel - - [a@1 b=\"c d\"] " XID, 0, 0, "node7", 0},
    {"{\"MESSAGE\": \"" XID "\", \"__REALTIME_TIMESTAMP\": \"1769850904250000\", \"_HOSTNAME\": "
     "\"node7\", \"_TRANSPORT\": \"kernel\", \"SYSLOG_IDENTIFIER\": \"kernel\", \"PRIORITY\": "
     "\"3\"}",
     250000000, 0, "node7", 0},
    {"{\"__REALTIME_TIMESTAMP\": 1769850904250000, \"MESSAGE\": \"" XID "\"}", 250000000, 0, NULL,
     0},
    {"{\"__REALTIME_TIMESTAMP\": \"1769850904250000\", \"MESSAGE\": [78,86,82,77,58,32,88,105,100, "
     "32,40,80,67,73,58,48,48,48,48,58,57,98,58,48,48,41,58,32,55,57,44,32,255]}",
     250000000, 0, NULL, 0},
};

START_TEST(shapes) {
    reopen(BOOT, SLICE(""));
    char line[512];
    // With what a receiver may leave at the end.
    snprintf(line, sizeof line, "%s%s", SHAPES[_i].line, _i % 2 == 0 ? "" : "\r");
    const struct kernel_line *taken = kernel_take_text(&source, line);
    ck_assert_msg(taken != NULL, "%s: %d %s", line, source.category, source.fault.detail);
    ck_assert_uint_eq(taken->code, 79);
    ck_assert_msg(source.event.time_ns ==
                      KERNEL_MORNING + SHAPES[_i].after_ns - SHAPES[_i].before_ns,
                  "%s: %llu", line, (unsigned long long)source.event.time_ns);
    ck_assert_uint_eq(taken->boot_us, SHAPES[_i].boot_us);
    if (SHAPES[_i].host == NULL)
        ck_assert_uint_eq(source.event.node, STRING_NONE);
    else
        kernel_check_text(intern_slice(source.event.node), SHAPES[_i].host);
}
END_TEST

START_TEST(shapes_cut_anywhere_are_survived) {
    char line[512];
    snprintf(line, sizeof line, "%s", SHAPES[_i].line);
    for (size_t size = 0; size <= strlen(line); size++)
        kernel_take(&source, (struct slice){line, size});
}
END_TEST

static const char *const FOREIGN[] = {
    "Jan 31 09:15:04 node7 sshd[812]: " XID,
    "2026-01-31T09:15:04Z node7 dcgm-exporter: " XID,
    "30,1201,1000250000,-;" XID,
    "<30>Jan 31 09:15:04 node7 kernel: " XID,
    "<30>1 2026-01-31T09:15:04Z node7 python 12 - - " XID,
    "daemon:err   : [ 1000.250000] " XID,
    " SUBSYSTEM=pci " XID,
    "{\"MESSAGE\": \"" XID
    "\", \"__REALTIME_TIMESTAMP\": \"1769850904250000\", \"_TRANSPORT\": "
    "\"syslog\"}",
    "{\"MESSAGE\": \"" XID
    "\", \"__REALTIME_TIMESTAMP\": \"1769850904250000\", \"_TRANSPORT\": "
    "\"kernel\", \"SYSLOG_IDENTIFIER\": \"systemd\"}",
    "{\"MESSAGE\": null, \"__REALTIME_TIMESTAMP\": \"1769850904250000\"}",
    "{}",
};

START_TEST(what_others_write_is_nothing) {
    reopen(BOOT, SLICE(""));
    kernel_take_text(&source, FOREIGN[_i]);
    ck_assert_msg(source.category == DECODE_NOTHING, "%s: %d", FOREIGN[_i], source.category);
}
END_TEST

START_TEST(time_since_boot_alone_is_refused) {
    kernel_take_text(&source, "[ 1000.250000] " XID);
    ck_assert_int_eq(source.category, DECODE_MISSING_TIMESTAMP);
    ck_assert_ptr_nonnull(strstr(source.fault.detail, "journalctl"));
    kernel_take_text(&source, "3,1,1000250000,-;" XID);
    ck_assert_int_eq(source.category, DECODE_MISSING_TIMESTAMP);
    // Lines that nobody looks for are not.
    kernel_take_text(&source, "[ 1000.250000] usb 1-1: new device");
    ck_assert_int_eq(source.category, DECODE_NOTHING);
}
END_TEST

START_TEST(no_time_and_no_year_are_refused) {
    kernel_take_text(&source, XID);
    ck_assert_int_eq(source.category, DECODE_MISSING_TIMESTAMP);
    kernel_close(&source);
    source = kernel_open(0);
    kernel_take_text(&source, "Jan 31 09:15:04 node7 kernel: " XID);
    ck_assert_int_eq(source.category, DECODE_MISSING_TIMESTAMP);
    ck_assert_ptr_nonnull(strstr(source.fault.detail, "year"));
}
END_TEST

START_TEST(node_of_the_source) {
    reopen(BOOT, SLICE("me"));
    kernel_take_text(&source, "[ 1000.250000] " XID);
    kernel_check_text(intern_slice(source.event.node), "me");
    kernel_take_text(&source, "Jan 31 09:15:04 node7 kernel: " XID);
    kernel_check_text(intern_slice(source.event.node), "node7");
}
END_TEST

static const struct {
    const char *tail;
    uint64_t observed_ns;
    bool known;
} TAILS[] = {
    {"ut off] x\n[ 1999.000000] usb\n[ 2000.000000] last\n  continued\n\n", KERNEL_MORNING, true},
    {"6,1,2000000000,-;last", KERNEL_MORNING, true},
    {"      \"pri\": 6,\n     \"time\":  2000.000000,\n     \"msg\": \"x\"\n", KERNEL_MORNING,
     true},
    {"Jan 31 09:15:04 n kernel: x\n", KERNEL_MORNING, false},
    {"", KERNEL_MORNING, false},
    {"[ 2000.000000] x", 5, false},
};

START_TEST(boot_from_the_end_of_a_file) {
    kernel_close(&source);
    source = kernel_open_input(&(struct decoder_input){.path = SLICE("dmesg.txt"),
                                                       .observed_ns = TAILS[_i].observed_ns,
                                                       .tail = slice_of(TAILS[_i].tail),
                                                       .is_file = true});
    kernel_take_text(&source, "[ 1000.250000] " XID);
    ck_assert_int_eq(source.category, TAILS[_i].known ? DECODE_OK : DECODE_MISSING_TIMESTAMP);
    if (TAILS[_i].known)
        ck_assert_uint_eq(source.event.time_ns, BOOT + UINT64_C(1000250000000));
}
END_TEST

// -- The journal's export format -----------------------------------------------------------------

static void count_event(uint32_t *events) {
    if (source.category != DECODE_OK)
        return;
    ++*events;
    ck_assert_uint_eq(source.event.kernel->code, 79);
    ck_assert_uint_eq(source.event.time_ns, KERNEL_MORNING + 250000000);
    kernel_check_text(intern_slice(source.event.node), "node7");
}

// A record is handed on when it is over: at the empty line, where the next begins, at the end.
static void give_export(const char *text, size_t size, uint32_t *events) {
    for (size_t at = 0; at < size;) {
        const char *newline = memchr(text + at, '\n', size - at);
        size_t end = newline == NULL ? size : (size_t)(newline - text);
        kernel_give(&source, (struct slice){text + at, end - at});
        count_event(events);
        at = end + 1;
    }
    source.category = DECODE_NOTHING;
    decoder_kernel_log.finish(source.state);
    kernel_take_rest(&source);
    count_event(events);
}

#define HEAD "__CURSOR=s=1;i=2\n__REALTIME_TIMESTAMP=1769850904250000\n_BOOT_ID=ab\n"

START_TEST(export_records_are_put_together) {
    static const char text[] =
        HEAD "MESSAGE=" XID
             "\n_HOSTNAME=node7\n_TRANSPORT=kernel\n"
             "SYSLOG_IDENTIFIER=kernel\n\n" HEAD
             "MESSAGE=hello\n_HOSTNAME=node7\n_TRANSPORT=kernel\n\n" HEAD
             "SYSLOG_IDENTIFIER=python\n_HOSTNAME=node7\nMESSAGE=" XID "\n\n" HEAD
             "_TRANSPORT=kernel\n_HOSTNAME=node7\nPRIORITY=3\nMESSAGE=" AGAIN "\n\n";
    uint32_t events = 0;
    give_export(text, sizeof text - 1, &events);
    ck_assert_uint_eq(events, 2);
}
END_TEST

START_TEST(export_from_the_middle_of_a_record) {
    static const char text[] = "MESSAGE=" XID "\n_HOSTNAME=node7\n_TRANSPORT=kernel\n\n" HEAD
                               "MESSAGE=" XID "\n_HOSTNAME=node7\n_TRANSPORT=kernel\n\n";
    uint32_t events = 0;
    kernel_take_text(&source, "MESSAGE=" XID);
    ck_assert_int_eq(source.category, DECODE_NOTHING);
    give_export(text, sizeof text - 1, &events);
    ck_assert_uint_eq(events, 1);
}
END_TEST

START_TEST(export_without_empty_lines) {
    // The second has no origin: it is handed on when the third begins.
    static const char text[] =
        HEAD "MESSAGE=" XID "\n_HOSTNAME=node7\n_TRANSPORT=kernel\n" HEAD "MESSAGE=" AGAIN
             "\n_HOSTNAME=node7\n" HEAD "MESSAGE=hello\n_HOSTNAME=node7\n";
    uint32_t events = 0;
    give_export(text, sizeof text - 1, &events);
    ck_assert_uint_eq(events, 2);
}
END_TEST

START_TEST(export_with_binary_fields) {
    // Lengths and contents that hold newlines.
    static const char text[] = HEAD
        "DATA\n\x0a\0\0\0\0\0\0\0"
        "MESSAGE=\n\n"
        "\n"
        "MESSAGE\n\x22\0\0\0\0\0\0\0" XID
        "\n"
        "\n"
        "_HOSTNAME=node7\n_TRANSPORT=kernel\n\n" HEAD
        "MESSAGE\n\x00\0\0\0\0\0\0\0\n_HOSTNAME=node7\n_TRANSPORT=kernel\n\n" HEAD "MESSAGE=" AGAIN
        "\n_HOSTNAME=node7\n_TRANSPORT=kernel\n\n";
    uint32_t events = 0;
    ck_assert_uint_eq(sizeof XID, 0x22);
    give_export(text, sizeof text - 1, &events);
    ck_assert_uint_eq(events, 2);
}
END_TEST

START_TEST(export_of_any_size_is_bounded) {
    uint32_t events = 0;
    give_export(HEAD, sizeof HEAD - 1, &events);
    char *line = malloc(1 << 20);
    memset(line, 'x', 1 << 20);
    memcpy(line, "MESSAGE=" XID, 8 + sizeof XID - 1);
    ck_assert_ptr_null(kernel_give(&source, (struct slice){line, 1 << 20}));
    memset(line, 'A', 1 << 20);
    kernel_give(&source, (struct slice){line, 1 << 20});
    kernel_give(&source, SLICE("\xff\xff\xff\xff\xff\xff\xff\xff"));
    kernel_give(&source, (struct slice){line, 1 << 20});
    ck_assert_int_eq(source.category, DECODE_HELD);
    free(line);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("decode_kernel_transport");
    TCase *cases = tcase_create("transports");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_loop_test(cases, shapes, 0, sizeof SHAPES / sizeof *SHAPES);
    tcase_add_loop_test(cases, shapes_cut_anywhere_are_survived, 0, sizeof SHAPES / sizeof *SHAPES);
    tcase_add_loop_test(cases, what_others_write_is_nothing, 0, sizeof FOREIGN / sizeof *FOREIGN);
    tcase_add_test(cases, time_since_boot_alone_is_refused);
    tcase_add_test(cases, no_time_and_no_year_are_refused);
    tcase_add_test(cases, node_of_the_source);
    tcase_add_loop_test(cases, boot_from_the_end_of_a_file, 0, sizeof TAILS / sizeof *TAILS);
    tcase_add_test(cases, export_records_are_put_together);
    tcase_add_test(cases, export_from_the_middle_of_a_record);
    tcase_add_test(cases, export_without_empty_lines);
    tcase_add_test(cases, export_with_binary_fields);
    tcase_add_test(cases, export_of_any_size_is_bounded);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
