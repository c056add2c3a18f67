// SPDX-License-Identifier: Apache-2.0
// The kmsg receiver on a fake feed, reading from a socket that gives one record a packet; what only
// the device itself answers (overruns) is put into read by the test.
#include "tests/receivers/fake_feed.c"
#include "tests/receivers/fake_store.c"
#include "tests/support/eventually.h"
#include "tests/support/temporary.h"

#include "base/clock.h"
#include "receivers/kmsg/receiver.h"
#include "receivers/kmsg/record.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>

extern const struct component_type receiver_kmsg;

// -- what read answers ----------------------------------------------------------------------------

ssize_t __real_read(int descriptor, void *to, size_t size);
ssize_t __wrap_read(int descriptor, void *to, size_t size);
static atomic_int failure; // of the next reads of whole records
static atomic_int failures_left;

ssize_t __wrap_read(int descriptor, void *to, size_t size) {
    if (size == KMSG_RECORD_MAX && atomic_load(&failures_left) > 0) {
        atomic_fetch_sub(&failures_left, 1);
        errno = atomic_load(&failure);
        return -1;
    }
    return __real_read(descriptor, to, size);
}

// -- a receiver and the other end of its socket ---------------------------------------------------

static char folder[256], path[300];
static int listener, peer;
static uint64_t base_usec; // near what the kernel's clock shows, so that no offset changes
static struct kmsg_config config;
static struct component_context context;
static struct kmsg_receiver *receiver;
static struct feed *feed;
static struct storage *store;
static pthread_t thread;

static void listen_there(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
}

static void setup(void) {
    temporary_path(folder, sizeof folder, "kmsg");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/kmsg", folder);
    listen_there();
    config = (struct kmsg_config){.path = path,
                                  .records = {.node = "n7", .quarantine_max_size = {1 << 20}}};
    context = (struct component_context){.id = "kmsg", .site = "receiver/kmsg"};
    base_usec = clock_monotonic_ns() / 1000;
    feed = fake_feed_create();
    peer = -1;
    store = NULL;
    atomic_store(&failures_left, 0);
}

static void teardown(void) {
    close(listener);
    if (peer >= 0)
        close(peer);
    fake_feed_free(feed);
    if (store != NULL)
        fake_store_free(store);
    unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
    metrics_release();
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static void begin(void) {
    struct error error = {0};
    receiver = memory_zero(1, sizeof *receiver);
    enum status status = component_start(&receiver_kmsg, receiver, &config, &context, &error);
    ck_assert_msg(status == STATUS_OK, "%s", error.message);
}

static void *running(void *unused) {
    struct error error = {0};
    (void)unused;
    ck_assert_int_eq(kmsg_run(receiver, feed, &error), STATUS_OK);
    return NULL;
}

static void start(void) {
    begin();
    ck_assert_int_eq(pthread_create(&thread, NULL, running, NULL), 0);
}

static void meet(void) {
    peer = accept(listener, NULL, NULL);
    ck_assert_int_ge(peer, 0);
}

static void end(void) {
    component_stop(&receiver_kmsg, receiver);
    memory_give(receiver);
}

static void stop(void) {
    fake_feed_stop(feed);
    pthread_join(thread, NULL);
    end();
}

static void give(uint64_t sequence, uint64_t usec, const char *priority, const char *text) {
    char record[4096];
    int size = snprintf(record, sizeof record, "%s,%llu,%llu,-;%s\n SUBSYSTEM=pci\n", priority,
                        (unsigned long long)sequence, (unsigned long long)usec, text);
    ck_assert_int_eq(send(peer, record, (size_t)size, 0), size);
}

static void give_xid(uint64_t sequence) {
    char text[128];
    snprintf(text, sizeof text, "NVRM: Xid (PCI:0000:%02x:00): 79, pid=1, name=x", (int)sequence);
    give(sequence, base_usec + sequence * 1000, "4", text);
}

static uint32_t accepted(void) {
    return fake_feed_accepted(feed, NULL);
}

static uint64_t lost(void) {
    return metric_value(receiver->counters.lost);
}

static bool trouble_says(const char *text) {
    pthread_mutex_lock(&feed->lock);
    bool says = text == NULL ? feed->trouble[0] == '\0' : strstr(feed->trouble, text) != NULL;
    pthread_mutex_unlock(&feed->lock);
    return says;
}

// Of the line of a record.
static uint64_t time_of(uint32_t record) {
    static const char key[] = "\"timestamp_ns\":";
    const char *at = strstr(feed->records[record].text, key);
    ck_assert_ptr_nonnull(at);
    return strtoull(at + sizeof key - 1, NULL, 10);
}

// -- records --------------------------------------------------------------------------------------

static const struct {
    const char *bytes;
    bool right;
    uint32_t facility, level;
    uint64_t sequence, usec;
    const char *text;
} RECORDS[] = {
    {"6,339,5140900,-;NET: Registered\n SUBSYSTEM=net\n", true, 0, 6, 339, 5140900,
     "NET: Registered"},
    {"30,340,5690716,-;udevd[80]: starting\n", true, 3, 6, 340, 5690716, "udevd[80]: starting"},
    {"3,8804,184000000,-,caller=T4401;a;b", true, 0, 3, 8804, 184000000, "a;b"},
    {"4,1,2,c,some=thing;x\n", true, 0, 4, 1, 2, "x"},
    {"4,1,2,;\n", true, 0, 4, 1, 2, ""},
    {"4,18446744073709551614,2,-;x", true, 0, 4, UINT64_MAX - 1, 2, "x"},
    {"4,18446744073709551615,2,-;x", false, 0, 0, 0, 0, NULL},
    {"4,99999999999999999999,2,-;x", false, 0, 0, 0, 0, NULL},
    {"4,1,2,-\n;x", false, 0, 0, 0, 0, NULL},
    {"4,1,2;x", false, 0, 0, 0, 0, NULL},
    {"-4,1,2,-;x", false, 0, 0, 0, 0, NULL},
    {"4,1,2,-", false, 0, 0, 0, 0, NULL},
    {"[   1.5] x", false, 0, 0, 0, 0, NULL},
    {"", false, 0, 0, 0, 0, NULL},
};

START_TEST(records) {
    struct kmsg_record record;
    ck_assert(kmsg_record_parse(slice_of(RECORDS[_i].bytes), &record) == RECORDS[_i].right);
    if (!RECORDS[_i].right)
        return;
    ck_assert_uint_eq(record.facility, RECORDS[_i].facility);
    ck_assert_uint_eq(record.level, RECORDS[_i].level);
    ck_assert_uint_eq(record.sequence, RECORDS[_i].sequence);
    ck_assert_uint_eq(record.usec, RECORDS[_i].usec);
    ck_assert(slice_equal(record.text, slice_of(RECORDS[_i].text)));
}
END_TEST

START_TEST(escapes) {
    static const char *const texts[][2] = {
        {"a\\x0ab", "a\nb"}, {"\\x5cx41", "\\x41"}, {"\\xC3\\xa4", "\xc3\xa4"}, {"\\x4", "\\x4"},
        {"\\xzz", "\\xzz"},  {"\\", "\\"},          {"plain", "plain"},         {"", ""},
        {"\\\\x41", "\\A"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char out[64];
        size_t size = kmsg_unescape(slice_of(texts[i][0]), out);
        ck_assert_msg(slice_equal((struct slice){out, size}, slice_of(texts[i][1])), "%s",
                      texts[i][0]);
    }
}
END_TEST

// -- time -----------------------------------------------------------------------------------------

static const uint64_t HOUR_NS = UINT64_C(3600000000000);
static const uint64_t NOW_NS = UINT64_C(1790000000000000000);

static struct wall_clock wall_of(struct storage *kept, uint64_t boot) {
    struct wall_clock wall;
    struct error error;
    ck_assert_int_eq(wall_clock_init(&wall, kept, "kmsg", 0, (struct boot_id){{boot, 1}}, &error),
                     STATUS_OK);
    return wall;
}

START_TEST(a_step_of_the_clock_moves_only_what_comes_then) {
    struct wall_clock wall = wall_of(NULL, 1);
    wall_clock_begin(&wall, NOW_NS, HOUR_NS);
    ck_assert_uint_eq(wall_clock_time(&wall, 5, 1000), NOW_NS - HOUR_NS + 1000000);
    // Within the tolerance, both ways.
    ck_assert(!wall_clock_fresh(&wall, 10, HOUR_NS / 1000, NOW_NS + 900000000));
    ck_assert(!wall_clock_fresh(&wall, 11, HOUR_NS / 1000, NOW_NS - 900000000));
    // Set forward by an hour (or suspended so long), then back.
    ck_assert(wall_clock_fresh(&wall, 12, HOUR_NS / 1000, NOW_NS + HOUR_NS));
    ck_assert(wall_clock_fresh(&wall, 20, HOUR_NS / 1000, NOW_NS));
    ck_assert_uint_eq(wall_clock_time(&wall, 11, HOUR_NS / 1000), NOW_NS);
    ck_assert_uint_eq(wall_clock_time(&wall, 12, HOUR_NS / 1000), NOW_NS + HOUR_NS);
    ck_assert_uint_eq(wall_clock_time(&wall, 19, HOUR_NS / 1000), NOW_NS + HOUR_NS);
    ck_assert_uint_eq(wall_clock_time(&wall, 20, HOUR_NS / 1000), NOW_NS);
    // Times that no clock has are bounded.
    ck_assert_uint_eq(wall_clock_time(&wall, 20, UINT64_MAX) >> 63, 0);
    ck_assert(wall_clock_fresh(&wall, 30, UINT64_MAX, 0));
    ck_assert_uint_eq(wall_clock_time(&wall, 30, 0), 1);
}
END_TEST

START_TEST(offsets_are_bounded) {
    struct wall_clock wall = wall_of(store = fake_store_create(), 1);
    wall_clock_begin(&wall, NOW_NS, HOUR_NS);
    for (uint64_t i = 1; i <= 100; i++)
        ck_assert(wall_clock_fresh(&wall, i, 0, NOW_NS + i * HOUR_NS));
    ck_assert_uint_eq(wall.count, WALL_CLOCK_OFFSETS_MAX);
    ck_assert_uint_eq(wall_clock_time(&wall, 100, 0), NOW_NS + 100 * HOUR_NS);
    ck_assert_uint_eq(fake_store_rows(store, STORAGE_JOURNAL), WALL_CLOCK_OFFSETS_MAX);
}
END_TEST

START_TEST(offsets_are_those_of_before_a_crash) {
    store = fake_store_create();
    struct wall_clock wall = wall_of(store, 1), again;
    wall_clock_begin(&wall, NOW_NS, HOUR_NS);
    ck_assert(wall_clock_fresh(&wall, 12, HOUR_NS / 1000, NOW_NS + HOUR_NS));
    ck_assert(wall_clock_is_kept(&wall, 0));
    again = wall_of(store, 1);
    wall_clock_begin(&again, NOW_NS + 77, HOUR_NS);
    for (uint64_t i = 0; i < 20; i++)
        ck_assert_uint_eq(wall_clock_time(&again, i, i), wall_clock_time(&wall, i, i));
    // Of another boot they say nothing, and go.
    again = wall_of(store, 2);
    ck_assert_uint_eq(again.count, 0);
    ck_assert_uint_eq(fake_store_rows(store, STORAGE_JOURNAL), 0);
}
END_TEST

// -- the receiver ---------------------------------------------------------------------------------

START_TEST(only_the_kernel_is_read) {
    start();
    meet();
    give_xid(0);
    give(1, 1000, "12", "NVRM: Xid (PCI:0000:01:00): 79, written by a program"); // facility user
    give(2, 2000, "3", "");
    give_xid(3);
    EVENTUALLY(accepted() == 2);
    EVENTUALLY(atomic_load(&feed->caught_up));
    EVENTUALLY(atomic_load(&fake_feed_find(feed, "kmsg")->at_end));
    ck_assert_uint_eq(metric_value(receiver->counters.user_records), 1);
    ck_assert_uint_eq(lost(), 0);
    ck_assert_str_eq(fake_feed_find(feed, "kmsg")->decoder->name, "tagged");
    const char *line = feed->records[0].text;
    ck_assert_ptr_nonnull(strstr(line, "{\"source\":\"kmsg\",\"timestamp_ns\":"));
    ck_assert_ptr_nonnull(
        strstr(line, "\"host.name\":\"n7\",\"message\":\"NVRM: Xid (PCI:0000:00"));
    ck_assert_ptr_null(strstr(line, "SUBSYSTEM"));
    ck_assert_uint_eq(time_of(1) - time_of(0), 3000000);
    ck_assert_uint_eq(feed->records[1].position, 4);
    ck_assert_uint_eq(fake_feed_find(feed, "kmsg")->flushed.number, 4);
    stop();
}
END_TEST

START_TEST(what_was_overwritten_is_counted) {
    start();
    meet();
    give_xid(100); // what was before it nobody could read
    EVENTUALLY(accepted() == 1);
    ck_assert_uint_eq(lost(), 0);
    atomic_store(&failure, EPIPE);
    atomic_store(&failures_left, 1);
    give_xid(110);
    EVENTUALLY(accepted() == 2);
    ck_assert_uint_eq(lost(), 9);
    atomic_store(&failure, EINVAL); // one that is longer than any
    atomic_store(&failures_left, 1);
    give_xid(112);
    EVENTUALLY(accepted() == 3);
    ck_assert_uint_eq(lost(), 10);
    ck_assert(trouble_says(NULL));
    stop();
}
END_TEST

START_TEST(a_device_that_fails_is_opened_again) {
    start();
    meet();
    give_xid(0);
    EVENTUALLY(accepted() == 1);
    atomic_store(&failure, EINVAL);
    atomic_store(&failures_left, 1 << 20); // endlessly: no overrun
    give_xid(1);
    EVENTUALLY(trouble_says("Invalid argument"));
    atomic_store(&failures_left, 0);
    close(peer);
    meet();
    give_xid(0); // again what there is
    give_xid(1);
    give_xid(2);
    EVENTUALLY(accepted() == 3);
    EVENTUALLY(trouble_says(NULL));
    ck_assert_uint_eq(lost(), 0);
    stop();
}
END_TEST

START_TEST(a_missing_device_is_told_and_waited_for) {
    close(listener);
    unlink(path);
    start();
    EVENTUALLY(trouble_says("is not there"));
    ck_assert(atomic_load(&feed->caught_up)); // others do not wait for it
    listen_there();
    meet();
    give_xid(0);
    EVENTUALLY(accepted() == 1);
    ck_assert(trouble_says(NULL));
    stop();
}
END_TEST

START_TEST(another_file_is_no_device) {
    struct kmsg_device device;
    struct error error;
    ck_assert_int_eq(kmsg_device_open(&device, folder, &error), STATUS_CONFIG);
    ck_assert_ptr_nonnull(strstr(error.message, "is not a device"));
    ck_assert_int_eq(device.descriptor, -1);
}
END_TEST

START_TEST(garbage_is_refused) {
    start();
    meet();
    ck_assert_int_eq(send(peer, "garbage", 7, 0), 7);
    give_xid(0);
    EVENTUALLY(accepted() == 1);
    ck_assert_uint_eq(fake_feed_refused(feed, DECODE_TRUNCATED), 1);
    stop();
}
END_TEST

static void restore(uint64_t number, struct boot_id boot) {
    struct source *source = feed_source(feed, slice_of(path));
    source->restored = source->reached =
        (struct source_position){.number = number, .detail = {boot.words[0], boot.words[1]}};
}

START_TEST(goes_on_behind_the_kept_record) {
    restore(3, boot_id_now());
    config.start_at = KMSG_START_NOW; // says nothing then
    start();
    meet();
    for (uint64_t i = 0; i < 5; i++)
        give_xid(i);
    EVENTUALLY(accepted() == 2);
    ck_assert_uint_eq(feed->records[0].position, 4);
    stop();
}
END_TEST

START_TEST(a_gap_over_a_restart_is_lost) {
    restore(3, boot_id_now());
    start();
    meet();
    give_xid(7);
    EVENTUALLY(accepted() == 1);
    ck_assert_uint_eq(lost(), 4);
    stop();
}
END_TEST

START_TEST(after_a_reboot_all_is_new) {
    restore(3, (struct boot_id){{4711, 4711}});
    config.start_at = KMSG_START_NOW;
    start();
    meet();
    for (uint64_t i = 0; i < 5; i++)
        give_xid(i);
    EVENTUALLY(accepted() == 5);
    ck_assert_uint_eq(lost(), 0);
    ck_assert_uint_eq(feed_source(feed, slice_of(path))->flushed.number, 5);
    stop();
}
END_TEST

START_TEST(now_passes_over_what_is_there) {
    config.start_at = KMSG_START_NOW;
    // The connection waits in the backlog while what is there is put into it.
    begin();
    atomic_store(&failure, EPIPE); // before the first record, too
    atomic_store(&failures_left, 1);
    atomic_store(&feed->blocked, true);
    ck_assert_int_eq(pthread_create(&thread, NULL, running, NULL), 0);
    meet();
    for (uint64_t i = 3; i < 8; i++)
        give_xid(i);
    atomic_store(&feed->blocked, false);
    EVENTUALLY(atomic_load(&feed->caught_up));
    struct source *source = feed_source(feed, slice_of(path));
    ck_assert_uint_eq(source->flushed.number, 8); // so that a restart misses nothing behind it
    ck_assert_uint_eq(accepted(), 0);
    give_xid(8);
    EVENTUALLY(accepted() == 1);
    ck_assert_uint_eq(lost(), 0);
    stop();
}
END_TEST

START_TEST(nothing_is_told_before_its_time_is_kept) {
    context.store = store = fake_store_create();
    fake_store_hold(store, true);
    start();
    meet();
    give_xid(0);
    usleep(300000);
    ck_assert_uint_eq(accepted(), 0);
    fake_store_hold(store, false);
    EVENTUALLY(accepted() == 1);
    stop();
}
END_TEST

START_TEST(a_stop_does_not_wait_for_the_store) {
    context.store = store = fake_store_create();
    fake_store_hold(store, true);
    start();
    meet();
    give_xid(0);
    usleep(100000);
    stop();
    ck_assert_uint_eq(feed_source(feed, slice_of(path))->reached.number, 0);
    fake_store_hold(store, false);
}
END_TEST

// The times of fresh records follow the clock of this machine, not what the record counts from. It
// is tried again, since the receiver may begin to wait late.
START_TEST(fresh_records_are_of_now) {
    uint64_t before;
    uint32_t last = 0;
    start();
    meet();
    EVENTUALLY(atomic_load(&feed->caught_up));
    for (;; last++) {
        usleep(700000);
        before = clock_unix_ns();
        give(last, 7, "3", "NVRM: Xid (PCI:0000:01:00): 79, pid=1, name=x");
        EVENTUALLY(accepted() == last + 1);
        if (last == 20 || time_of(last) + WALL_CLOCK_TOLERANCE_NS >= before)
            break;
    }
    ck_assert_uint_ge(time_of(last) + WALL_CLOCK_TOLERANCE_NS, before);
    ck_assert_uint_le(time_of(last), clock_unix_ns() + WALL_CLOCK_TOLERANCE_NS);
    stop();
}
END_TEST

static bool is_of_boot(uint64_t time_ns) {
    uint64_t boot_ns = clock_unix_ns() - clock_monotonic_ns();
    return time_ns + WALL_CLOCK_TOLERANCE_NS >= boot_ns &&
           time_ns <= boot_ns + WALL_CLOCK_TOLERANCE_NS;
}

// A program may take its time until it gives the records of before. So may this test: it tries.
START_TEST(what_a_socket_gives_late_is_not_fresh) {
    bool as_it_says = false;
    for (int i = 0; i < 20 && !as_it_says; i++) {
        if (i > 0) {
            teardown();
            setup();
        }
        start();
        meet();
        EVENTUALLY(atomic_load(&feed->caught_up));
        usleep(20000);
        give(0, 7, "3", "NVRM: Xid (PCI:0000:01:00): 79, pid=1, name=x");
        EVENTUALLY(accepted() == 1);
        as_it_says = is_of_boot(time_of(0));
        stop();
    }
    ck_assert(as_it_says);
}
END_TEST

START_TEST(held_lines_are_used_when_it_is_quiet) {
    start();
    meet();
    give(0, 7, "3", "Memory cgroup out of memory: Kill process 811 (x) score 1 or sacrifice child");
    struct source *source = NULL;
    EVENTUALLY((source = fake_feed_find(feed, "kmsg")) != NULL);
    EVENTUALLY(atomic_load(&source->finished) > 0);
    stop();
}
END_TEST

int main(void) {
    Suite *suite = suite_create("kmsg");
    TCase *cases = tcase_create("kmsg");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_loop_test(cases, records, 0, sizeof RECORDS / sizeof *RECORDS);
    tcase_add_test(cases, escapes);
    tcase_add_test(cases, a_step_of_the_clock_moves_only_what_comes_then);
    tcase_add_test(cases, offsets_are_bounded);
    tcase_add_test(cases, offsets_are_those_of_before_a_crash);
    tcase_add_test(cases, only_the_kernel_is_read);
    tcase_add_test(cases, what_was_overwritten_is_counted);
    tcase_add_test(cases, a_device_that_fails_is_opened_again);
    tcase_add_test(cases, a_missing_device_is_told_and_waited_for);
    tcase_add_test(cases, another_file_is_no_device);
    tcase_add_test(cases, garbage_is_refused);
    tcase_add_test(cases, goes_on_behind_the_kept_record);
    tcase_add_test(cases, a_gap_over_a_restart_is_lost);
    tcase_add_test(cases, after_a_reboot_all_is_new);
    tcase_add_test(cases, now_passes_over_what_is_there);
    tcase_add_test(cases, nothing_is_told_before_its_time_is_kept);
    tcase_add_test(cases, a_stop_does_not_wait_for_the_store);
    tcase_add_test(cases, fresh_records_are_of_now);
    tcase_add_test(cases, what_a_socket_gives_late_is_not_fresh);
    tcase_add_test(cases, held_lines_are_used_when_it_is_quiet);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
