// SPDX-License-Identifier: Apache-2.0
// The journald receiver on a fake feed, over a journal that the test makes up: a library of the
// same functions, whose entries, errors and gaps it chooses. tests/journald runs it on real
// journals.
#include "tests/receivers/fake_feed.c"

#include "receivers/journald/receiver.h"
#include "tests/support/eventually.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>

extern const struct component_type receiver_journald;

// -- a journal ------------------------------------------------------------------------------------

enum { ENTRIES_MAX = 32 };

struct entry {
    const char *fields[5]; // "MESSAGE=…", ended by NULL
    uint64_t number;       // in the sequence
    int message_result;    // of reading MESSAGE; 0: it is there
};

static struct {
    pthread_mutex_t lock;
    struct entry entries[ENTRIES_MAX];
    uint32_t count;
    uint32_t opened;
    int open_result, next_result;
    uint64_t usage;
    uint32_t at; // of the reader: the entry that it stands at is at - 1
    uint64_t sought_us;
    char matches[512];
    int pipe[2];
} made;
static sd_journal *const handle = (sd_journal *)&made;

static int answer(int *result) {
    pthread_mutex_lock(&made.lock);
    int answered = *result;
    pthread_mutex_unlock(&made.lock);
    return answered;
}

static int made_open(sd_journal **journal, int flags) {
    (void)flags;
    made.opened++;
    int result = answer(&made.open_result);
    *journal = result < 0 ? NULL : handle;
    made.at = 0;
    made.matches[0] = '\0';
    return result;
}
static int made_open_directory(sd_journal **journal, const char *path, int flags) {
    (void)path;
    return made_open(journal, flags);
}
static int made_open_namespace(sd_journal **journal, const char *name, int flags) {
    (void)name;
    return made_open(journal, flags);
}
static void made_close(sd_journal *journal) {
    ck_assert_ptr_eq(journal, handle);
}
static void note_match(const char *text) {
    strncat(made.matches, text, sizeof made.matches - strlen(made.matches) - 1);
}
static int made_add_match(sd_journal *journal, const void *data, size_t size) {
    (void)journal;
    ck_assert_uint_eq(size, 0);
    note_match(data);
    note_match(" ");
    return 0;
}
static int made_add_disjunction(sd_journal *journal) {
    (void)journal;
    note_match("| ");
    return 0;
}
static int made_get_cursor(sd_journal *journal, char **text) {
    (void)journal;
    uint64_t number = made.entries[made.at - 1].number;
    return asprintf(text,
                    "s=0123456789abcdeffedcba9876543210;i=%llx;b=3f2a9c0de11f4d0b8a6f7c1d2e3f4a5b;"
                    "m=1;t=%llx;x=ffffffffffffffff",
                    (unsigned long long)number, (unsigned long long)number) < 0
               ? -ENOMEM
               : 0;
}
static int made_get_data(sd_journal *journal, const char *field, const void **data, size_t *size) {
    (void)journal;
    const struct entry *entry = &made.entries[made.at - 1];
    size_t length = strlen(field);
    if (entry->message_result < 0 && strcmp(field, "MESSAGE") == 0)
        return entry->message_result;
    for (size_t i = 0; entry->fields[i] != NULL; i++) {
        if (strncmp(entry->fields[i], field, length) == 0 && entry->fields[i][length] == '=') {
            *data = entry->fields[i];
            *size = strlen(entry->fields[i]);
            return 0;
        }
    }
    return -ENOENT;
}
static int made_get_events(sd_journal *journal) {
    (void)journal;
    return POLLIN;
}
static int made_get_fd(sd_journal *journal) {
    (void)journal;
    return made.pipe[0];
}
static int made_get_realtime_usec(sd_journal *journal, uint64_t *usec) {
    (void)journal;
    *usec = UINT64_C(1773453017000000) + made.entries[made.at - 1].number;
    return 0;
}
static int made_get_timeout(sd_journal *journal, uint64_t *usec) {
    (void)journal;
    *usec = UINT64_MAX;
    return 0;
}
static int made_get_usage(sd_journal *journal, uint64_t *bytes) {
    (void)journal;
    pthread_mutex_lock(&made.lock);
    *bytes = made.usage;
    pthread_mutex_unlock(&made.lock);
    return 0;
}
static int made_next(sd_journal *journal) {
    (void)journal;
    pthread_mutex_lock(&made.lock);
    int result = made.next_result < 0 ? made.next_result : made.at < made.count;
    made.at += result > 0;
    pthread_mutex_unlock(&made.lock);
    return result;
}
static int made_process(sd_journal *journal) {
    (void)journal;
    char bytes[64];
    ck_assert(read(made.pipe[0], bytes, sizeof bytes) != 0);
    return SD_JOURNAL_APPEND;
}
static unsigned long long number_of(const char *cursor) {
    const char *at = strstr(cursor, ";i=");
    ck_assert_ptr_nonnull(at);
    return strtoull(at + 3, NULL, 16);
}
static int made_seek_cursor(sd_journal *journal, const char *cursor) {
    (void)journal;
    ck_assert(strncmp(cursor, "s=0123456789abcdeffedcba9876543210;", 35) == 0);
    made.at = 0;
    while (made.at < made.count && made.entries[made.at].number < number_of(cursor))
        made.at++;
    return 0;
}
static int made_seek_head(sd_journal *journal) {
    (void)journal;
    return 0;
}
static int made_seek_realtime_usec(sd_journal *journal, uint64_t usec) {
    (void)journal;
    made.sought_us = usec;
    return 0;
}
static int made_set_data_threshold(sd_journal *journal, size_t size) {
    (void)journal;
    ck_assert_uint_eq(size, 4096);
    return 0;
}
static int made_test_cursor(sd_journal *journal, const char *cursor) {
    (void)journal;
    return made.entries[made.at - 1].number == number_of(cursor);
}

static const struct journal_library library = {
#define MADE(name) .name = made_##name,
    JOURNAL_FUNCTIONS(MADE)
#undef MADE
};

// -- the receiver ---------------------------------------------------------------------------------

static struct journald_config config;
static struct component_context context;
static struct journald_receiver *receiver;
static struct feed *feed;
static pthread_t thread;

static void setup(void) {
    memset(&made, 0, sizeof made);
    pthread_mutex_init(&made.lock, NULL);
    ck_assert_int_eq(pipe2(made.pipe, O_NONBLOCK), 0);
    made.usage = 1;
    config = (struct journald_config){.kernel = true,
                                      .start_at = JOURNALD_START_BEGINNING,
                                      .max_message_size = {4096},
                                      .records.quarantine_max_size = {1 << 20}};
    context = (struct component_context){.id = "journald", .site = "receiver/journald"};
    feed = fake_feed_create();
}

static void teardown(void) {
    fake_feed_free(feed);
    close(made.pipe[0]);
    close(made.pipe[1]);
    pthread_mutex_destroy(&made.lock);
    metrics_release();
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static void *running(void *unused) {
    struct error error = {0};
    (void)unused;
    ck_assert_int_eq(journald_run(receiver, feed, &error), STATUS_OK);
    return NULL;
}

static void start(void) {
    struct error error = {0};
    receiver = memory_zero(1, sizeof *receiver);
    ck_assert_int_eq(component_start(&receiver_journald, receiver, &config, &context, &error),
                     STATUS_OK);
    receiver->library = &library;
    ck_assert_int_eq(pthread_create(&thread, NULL, running, NULL), 0);
}

static void stop(void) {
    fake_feed_stop(feed);
    pthread_join(thread, NULL);
    component_stop(&receiver_journald, receiver);
    memory_give(receiver);
}

static void wake(void) {
    ck_assert_int_eq(write(made.pipe[1], "x", 1), 1);
}

static const char XID[] = "MESSAGE=NVRM: Xid (PCI:0000:45:00): 79, pid=1, name=x";

static void add(uint64_t number, struct entry entry) {
    pthread_mutex_lock(&made.lock);
    entry.number = number;
    made.entries[made.count++] = entry;
    pthread_mutex_unlock(&made.lock);
    wake();
}

static void add_xid(uint64_t number) {
    add(number, (struct entry){.fields = {XID, "_TRANSPORT=kernel", "_HOSTNAME=n7"}});
}

static void set(int *value, int to) {
    pthread_mutex_lock(&made.lock);
    *value = to;
    pthread_mutex_unlock(&made.lock);
}

static uint32_t accepted(void) {
    return fake_feed_accepted(feed, NULL);
}

static bool trouble_says(const char *text) {
    pthread_mutex_lock(&feed->lock);
    bool says = text == NULL ? feed->trouble[0] == '\0' : strstr(feed->trouble, text) != NULL;
    pthread_mutex_unlock(&feed->lock);
    return says;
}

START_TEST(cursors) {
    struct journal_cursor cursor;
    char text[JOURNAL_CURSOR_TEXT_MAX];
    static const char whole[] =
        "s=0123456789abcdeffedcba9876543210;i=4e2;b="
        "3f2a9c0de11f4d0b8a6f7c1d2e3f4a5b;m=1;t=64ce6b9d8f2d5;x="
        "ffffffffffffffff";
    ck_assert(journal_cursor_parse(slice_of(whole), &cursor));
    journal_cursor_format(&cursor, text);
    ck_assert_str_eq(text,
                     "s=0123456789abcdeffedcba9876543210;i=4e2;t=64ce6b9d8f2d5;x=ffffffffffffffff");
    ck_assert(journal_cursor_parse(slice_of(text), &cursor));
    static const char *const wrong[] = {
        "",
        "s=0123456789abcdeffedcba9876543210;i=4e2;t=1", // no hash
        "s=0123456789abcdef;i=4e2;t=1;x=1",
        "s=0123456789abcdeffedcba987654321g;i=4e2;t=1;x=1",
        "s=0123456789abcdeffedcba9876543210;i=11111111111111111;t=1;x=1",
        "s=0123456789abcdeffedcba9876543210;i=;t=1;x=1",
        "s=0123456789abcdeffedcba9876543210;;i=1;t=1;x=1",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(!journal_cursor_parse(slice_of(wrong[i]), &cursor), "%s", wrong[i]);
}
END_TEST

START_TEST(entries_become_lines) {
    add_xid(5);
    add(6, (struct entry){.fields = {"MESSAGE=no", "_TRANSPORT=stdout", "_HOSTNAME=n7",
                                     "SYSLOG_IDENTIFIER=kubelet"}});
    add(7, (struct entry){.fields = {"_TRANSPORT=kernel"}}); // left out by journald
    start();
    EVENTUALLY(atomic_load(&feed->caught_up));
    struct source *source = fake_feed_find(feed, "journald:");
    EVENTUALLY(atomic_load(&source->at_end));
    ck_assert_uint_eq(source->flushed.number, 3);
    ck_assert_uint_eq(source->flushed.detail[2], 7);
    ck_assert_str_eq(feed->records[0].text,
                     "{\"source\":\"kmsg\",\"timestamp_ns\":1773453017000005000,\"host.name\":"
                     "\"n7\",\"message\":\"NVRM: Xid (PCI:0000:45:00): 79, pid=1, name=x\"}");
    ck_assert_str_eq(feed->records[1].text,
                     "{\"source\":\"app_log\",\"timestamp_ns\":1773453017000006000,\"host.name\":"
                     "\"n7\",\"program\":\"kubelet\",\"message\":\"no\"}");
    ck_assert_uint_eq(accepted(), 1);
    add_xid(8);
    EVENTUALLY(accepted() == 2);
    ck_assert_uint_eq(made.opened, 1);
    ck_assert_str_eq(made.matches, "_TRANSPORT=kernel ");
    stop();
}
END_TEST

START_TEST(units_and_matches_are_alternatives) {
    static const char *const units[] = {"a.service", "b.service"};
    static const char *const matches[] = {"SYSLOG_IDENTIFIER=slurmd", "PRIORITY=3"};
    config.units = (struct text_list){units, 2};
    config.matches = (struct text_list){matches, 2};
    config.start_at = JOURNALD_START_NOW;
    start();
    EVENTUALLY(atomic_load(&feed->caught_up));
    ck_assert_str_eq(made.matches,
                     "_TRANSPORT=kernel | _SYSTEMD_UNIT=a.service _SYSTEMD_UNIT=b.service | "
                     "SYSLOG_IDENTIFIER=slurmd PRIORITY=3 ");
    ck_assert_uint_gt(made.sought_us, UINT64_C(1600000000000000));
    stop();
}
END_TEST

START_TEST(an_entry_that_cannot_be_read_is_passed_over) {
    add(5, (struct entry){.fields = {"_TRANSPORT=kernel"}, .message_result = -EBADMSG});
    add_xid(6);
    start();
    EVENTUALLY(accepted() == 1);
    ck_assert_uint_eq(metric_value(receiver->counters.unreadable), 1);
    stop();
}
END_TEST

START_TEST(a_long_message_is_cut) {
    static char text[10000];
    int size = snprintf(text, sizeof text, "%s ", XID);
    memset(text + size, '\x01', sizeof text - (size_t)size - 1);
    add(5, (struct entry){.fields = {text, "_TRANSPORT=kernel"}});
    start();
    EVENTUALLY(accepted() == 1);
    ck_assert_uint_lt(feed->records[0].size, receiver->line_max);
    stop();
}
END_TEST

static void restore(uint64_t count, uint64_t number) {
    struct source *source = feed_source(feed, SLICE("journald:"));
    source->restored = source->reached = (struct source_position){
        .number = count,
        .detail = {UINT64_C(0x0123456789abcdef), UINT64_C(0xfedcba9876543210), number, number,
                   UINT64_MAX}};
}

START_TEST(goes_on_behind_the_kept_entry) {
    for (uint64_t i = 1; i <= 5; i++)
        add_xid(i);
    restore(40, 3);
    start();
    EVENTUALLY(accepted() == 2);
    ck_assert_uint_eq(feed->records[0].position, 41);
    ck_assert_uint_eq(metric_value(receiver->counters.gaps), 0);
    stop();
}
END_TEST

START_TEST(an_entry_that_is_gone_is_a_gap) {
    add_xid(7);
    add_xid(8);
    restore(40, 3);
    start();
    EVENTUALLY(accepted() == 2);
    ck_assert_uint_eq(metric_value(receiver->counters.gaps), 1);
    stop();
}
END_TEST

START_TEST(a_journal_that_is_empty_of_them_is_a_gap) {
    restore(40, 3);
    start();
    EVENTUALLY(atomic_load(&feed->caught_up));
    ck_assert_uint_eq(metric_value(receiver->counters.gaps), 1);
    add_xid(9);
    EVENTUALLY(accepted() == 1);
    stop();
}
END_TEST

START_TEST(a_missing_journal_is_told_and_waited_for) {
    made.usage = 0;
    start();
    EVENTUALLY(trouble_says("no journal that may be read is there"));
    ck_assert(trouble_says("systemd-journal"));
    ck_assert(atomic_load(&feed->caught_up)); // others do not wait for it
    set(&made.open_result, -EACCES);
    EVENTUALLY(trouble_says("cannot be opened"));
    set(&made.open_result, 0);
    pthread_mutex_lock(&made.lock);
    made.usage = 1;
    pthread_mutex_unlock(&made.lock);
    add_xid(1);
    EVENTUALLY(accepted() == 1);
    EVENTUALLY(trouble_says(NULL));
    stop();
}
END_TEST

START_TEST(a_journal_that_fails_is_opened_again) {
    add_xid(1);
    start();
    EVENTUALLY(accepted() == 1);
    set(&made.next_result, -EBADMSG);
    wake();
    EVENTUALLY(trouble_says("cannot be read on: Bad message"));
    add_xid(2);
    set(&made.next_result, 0);
    EVENTUALLY(accepted() == 2);
    EVENTUALLY(trouble_says(NULL));
    ck_assert_uint_ge(made.opened, 2);
    ck_assert_uint_eq(metric_value(receiver->counters.gaps), 0);
    stop();
}
END_TEST

int main(void) {
    Suite *suite = suite_create("journald");
    TCase *cases = tcase_create("journald");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, cursors);
    tcase_add_test(cases, entries_become_lines);
    tcase_add_test(cases, units_and_matches_are_alternatives);
    tcase_add_test(cases, an_entry_that_cannot_be_read_is_passed_over);
    tcase_add_test(cases, a_long_message_is_cut);
    tcase_add_test(cases, goes_on_behind_the_kept_entry);
    tcase_add_test(cases, an_entry_that_is_gone_is_a_gap);
    tcase_add_test(cases, a_journal_that_is_empty_of_them_is_a_gap);
    tcase_add_test(cases, a_missing_journal_is_told_and_waited_for);
    tcase_add_test(cases, a_journal_that_fails_is_opened_again);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
