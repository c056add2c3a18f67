// SPDX-License-Identifier: Apache-2.0
// What is sent when, over a made-up tree: at first everything, then what changed with how it was
// before; nothing, and no memory, while nothing changes; a card that hangs holds up nobody.
#include "receivers/sysfs/receiver.h"
#include "tests/receivers/fake_feed.c" // NOLINT(bugprone-suspicious-include)
#include "tests/support/eventually.h"
#include "tests/support/temporary.h"

#include "base/clock.h"
#include "base/memory.h"
#include "cli/component_list.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <sys/syscall.h>

// -- a card that hangs ----------------------------------------------------------------------------

static pthread_mutex_t hang_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t hang_over = PTHREAD_COND_INITIALIZER;
static uint64_t hangs_at; // inode whose reads do not return; 0: none
static uint32_t hanging;

// In the place of the C library's.
ssize_t pread(int descriptor, void *block, size_t size, off_t offset) {
    struct stat status;
    pthread_mutex_lock(&hang_lock);
    if (hangs_at != 0 && fstat(descriptor, &status) == 0 && status.st_ino == hangs_at) {
        hanging++;
        while (hangs_at == status.st_ino)
            pthread_cond_wait(&hang_over, &hang_lock);
        hanging--;
    }
    pthread_mutex_unlock(&hang_lock);
    return syscall(SYS_pread64, descriptor, block, size, offset);
}

static void set_hang(uint64_t inode) {
    pthread_mutex_lock(&hang_lock);
    hangs_at = inode;
    pthread_cond_broadcast(&hang_over);
    pthread_mutex_unlock(&hang_lock);
}

static uint32_t count_hanging(void) {
    pthread_mutex_lock(&hang_lock);
    uint32_t count = hanging;
    pthread_mutex_unlock(&hang_lock);
    return count;
}

// -- a tree ---------------------------------------------------------------------------------------

static char root[PATH_MAX];

static void write_file(const char *path, const char *text) {
    char whole[PATH_MAX];
    int size = snprintf(whole, sizeof whole, "%s/%s", root, path);
    ck_assert(size > 0 && (size_t)size < sizeof whole);
    for (char *slash = strchr(whole + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        ck_assert(mkdir(whole, 0755) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *file = fopen(whole, "w"); // in place: the kernel's files stay what they are
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void add_card(const char *card) {
    static const struct {
        const char *file, *text;
    } files[] = {{"state", "4: ACTIVE\n"},           {"phys_state", "5: LinkUp\n"},
                 {"rate", "400 Gb/sec (4X NDR)\n"},  {"link_layer", "InfiniBand\n"},
                 {"counters/link_downed", "0\n"},    {"counters/symbol_error", "3\n"},
                 {"counters/port_rcv_data", "99\n"}, {"counters/port_rcv_errors", "N/A (no PMA)\n"},
                 {"hw_counters/lifespan", "12\n"},   {"hw_counters/packet_seq_err", "7\n"}};
    char path[PATH_MAX + 64];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "class/infiniband/%s/ports/1/%s", card, files[i].file);
        write_file(path, files[i].text);
    }
    snprintf(path, sizeof path, "%s/class/infiniband/%s/device", root, card);
    ck_assert_int_eq(symlink("../../../0000:5c:00.0", path), 0);
}

static int remove_one(const char *path, const struct stat *status, int flag, struct FTW *walk) {
    (void)status;
    (void)flag;
    (void)walk;
    return remove(path);
}

// -- running it -----------------------------------------------------------------------------------

static const char *const skipped[] = {"port_rcv_data"};
static struct sysfs_config config;
static struct component_context context = {.id = "sysfs", .site = "receiver/sysfs"};
static struct sysfs_receiver *receiver;
static struct feed *feed;
static pthread_t thread;

static void setup(void) {
    temporary_path(root, sizeof root, "sysfs");
    ck_assert_ptr_nonnull(mkdtemp(root));
    config = (struct sysfs_config){.root = root,
                                   .records = {.node = "gpu-7"},
                                   .interval = {10 * 1000 * 1000},
                                   .read_timeout = {50 * 1000 * 1000},
                                   .rescan = {20 * 1000 * 1000},
                                   .skip = {skipped, 1}};
    receiver = memory_zero(1, sizeof *receiver);
    feed = fake_feed_create();
}

static void *run_it(void *argument) {
    struct error error = {0};
    (void)argument;
    ck_assert_int_eq(receiver_sysfs.receiver.run(receiver, feed, &error), STATUS_OK);
    return NULL;
}

static void start_it(void) {
    struct error error = {0};
    ck_assert_int_eq(component_start(&receiver_sysfs, receiver, &config, &context, &error),
                     STATUS_OK);
    ck_assert_int_eq(pthread_create(&thread, NULL, run_it, NULL), 0);
}

static void stop_it(void) {
    fake_feed_stop(feed);
    pthread_join(thread, NULL);
    component_stop(&receiver_sysfs, receiver);
    memory_give(receiver);
    fake_feed_free(feed);
    nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

// A record gives several events, each of which the feed keeps: whether this is its first.
static bool is_first(uint32_t at) {
    return at == 0 || feed->records[at].position != feed->records[at - 1].position;
}

static uint32_t count_records(void) {
    uint32_t count = 0;
    pthread_mutex_lock(&feed->lock);
    for (uint32_t i = 0; i < feed->flushed; i++)
        count += is_first(i);
    pthread_mutex_unlock(&feed->lock);
    return count;
}

// One of those that were offered, when it is there; else NULL.
static const char *record_at(uint32_t number) {
    const char *text = NULL;
    pthread_mutex_lock(&feed->lock);
    for (uint32_t i = 0; i < feed->flushed && text == NULL; i++)
        if (is_first(i) && number-- == 0)
            text = feed->records[i].text;
    pthread_mutex_unlock(&feed->lock);
    return text;
}

// So many rounds later.
static void rounds(const char *target, uint64_t count) {
    static const struct metric_family polls = {.name = "culprit_receiver_polls_total",
                                               .help =
                                                   "Times that a receiver asked a target, by "
                                                   "whether it answered.",
                                               .type = METRIC_COUNTER};
    struct metric *answered =
        METRIC(&polls, "receiver", "sysfs", "target", target, "outcome", "answered");
    uint64_t wanted = metric_value(answered) + count;
    EVENTUALLY(metric_value(answered) >= wanted);
}

// The record without its time, which no test can know.
static void require_record(uint32_t number, const char *expected) {
    EVENTUALLY(record_at(number) != NULL);
    static const char front[] = "\"timestamp_ns\":";
    char text[4096];
    snprintf(text, sizeof text, "%s", record_at(number));
    char *time = strstr(text, front);
    ck_assert_ptr_nonnull(time);
    const char *behind = strchr(time, ',');
    ck_assert_ptr_nonnull(behind);
    memmove(time, behind + 1, strlen(behind));
    ck_assert_str_eq(text, expected);
}

static uint64_t time_of(uint32_t number) {
    static const char front[] = "\"timestamp_ns\":";
    return strtoull(strstr(record_at(number), front) + sizeof front - 1, NULL, 10);
}

#define OF(device)                                                                                 \
    "{\"source\":\"ib_counters\",\"k8s.node.name\":\"gpu-7\",\"device\":\"" device                 \
    "\",\"port\":1,\"pci_bus_id\":\"0000:5c:00.0\","
#define UP                                                                                         \
    "\"state\":\"4: ACTIVE\",\"phys_state\":\"5: LinkUp\",\"link_layer\":\"InfiniBand\","          \
    "\"rate\":\"400 Gb/sec (4X NDR)\""
#define WHOLE(device)                                                                              \
    OF(device)                                                                                     \
    UP ",\"counters\":{\"link_downed\":\"0\",\"symbol_error\":\"3\"},"                             \
       "\"hw_counters\":{\"packet_seq_err\":\"7\"}}"

START_TEST(what_changed_is_sent_with_how_it_was) {
    add_card("mlx5_0");
    start_it();
    require_record(0, WHOLE("mlx5_0"));
    rounds("mlx5_0", 5);
    ck_assert_uint_eq(count_records(), 1);
    write_file("class/infiniband/mlx5_0/ports/1/counters/link_downed", "1\n");
    require_record(1, OF("mlx5_0") "\"counters\":{\"link_downed\":\"0\"}}");
    require_record(2, OF("mlx5_0") "\"counters\":{\"link_downed\":\"1\"}}");
    ck_assert_uint_gt(time_of(1), time_of(0));
    ck_assert_uint_gt(time_of(2), time_of(1));
    // A reading apart, not since the start.
    rounds("mlx5_0", 3);
    write_file("class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
    require_record(3, OF("mlx5_0") UP "}");
    require_record(4, OF("mlx5_0") "\"state\":\"1: DOWN\",\"phys_state\":\"5: LinkUp\","
                                   "\"link_layer\":\"InfiniBand\","
                                   "\"rate\":\"400 Gb/sec (4X NDR)\"}");
    stop_it();
}
END_TEST

START_TEST(what_cannot_be_read_is_no_zero) {
    add_card("mlx5_0");
    start_it();
    require_record(0, WHOLE("mlx5_0"));
    write_file("class/infiniband/mlx5_0/ports/1/counters/symbol_error", "");
    rounds("mlx5_0", 3);
    write_file("class/infiniband/mlx5_0/ports/1/counters/symbol_error", "3\n");
    rounds("mlx5_0", 3);
    ck_assert_uint_eq(count_records(), 1);
    write_file("class/infiniband/mlx5_0/ports/1/counters/port_rcv_errors", "5\n");
    // It was not there before, so that nothing is said of before.
    require_record(1, OF("mlx5_0") "\"counters\":{\"port_rcv_errors\":\"5\"}}");
    stop_it();
}
END_TEST

START_TEST(all_is_repeated) {
    config.repeat.ns = 30 * 1000 * 1000;
    add_card("mlx5_0");
    start_it();
    for (uint32_t i = 0; i < 3; i++)
        require_record(i, WHOLE("mlx5_0"));
    stop_it();
}
END_TEST

START_TEST(errors_of_pci_devices) {
    write_file("bus/pci/devices/0000:9b:00.0/aer_dev_fatal", "DLP 0\nTOTAL_ERR_FATAL 0\n");
    write_file("bus/pci/devices/0000:9b:00.0/aer_dev_correctable", "RxErr 5\n");
    write_file("bus/pci/devices/0000:9c:00.0/vendor", "0x10de\n");
    start_it();
#define PCI "{\"source\":\"sysfs_aer\",\"k8s.node.name\":\"gpu-7\",\"pci_bus_id\":\"0000:9b:00.0\","
    require_record(0, PCI
                   "\"aer_dev_correctable\":\"RxErr 5\","
                   "\"aer_dev_fatal\":\"DLP 0\\nTOTAL_ERR_FATAL 0\"}");
    clock_sleep_ns(50 * 1000 * 1000);
    ck_assert_uint_eq(count_records(), 1);
    write_file("bus/pci/devices/0000:9b:00.0/aer_dev_fatal", "DLP 1\nTOTAL_ERR_FATAL 1\n");
    EVENTUALLY(count_records() >= 3);
    ck_assert_ptr_nonnull(strstr(record_at(1), "DLP 0"));
    ck_assert_ptr_nonnull(strstr(record_at(count_records() - 1), "DLP 1"));
    ck_assert_uint_eq(fake_feed_accepted(feed, NULL), feed->count);
    stop_it();
}
END_TEST

START_TEST(nothing_is_allocated_when_nothing_changes) {
    config.rescan.ns = 3600ll * 1000 * 1000 * 1000;
    add_card("mlx5_0");
    add_card("mlx5_1");
    write_file("bus/pci/devices/0000:9b:00.0/aer_dev_fatal", "DLP 0\n");
    start_it();
    EVENTUALLY(count_records() == 3);
    rounds("mlx5_1", 3);
    uint64_t before = memory_figures().allocations;
    rounds("mlx5_1", 20);
    ck_assert_uint_eq(memory_figures().allocations, before);
    stop_it();
}
END_TEST

static uint64_t inode_of(const char *path) {
    char whole[PATH_MAX + 64];
    struct stat status;
    snprintf(whole, sizeof whole, "%s/%s", root, path);
    ck_assert_int_eq(stat(whole, &status), 0);
    return status.st_ino;
}

// The receiver's own are its thread's.
static uint64_t count_failures(const char *target) {
    static const struct metric_family polls = {
        .name = "culprit_receiver_polls_total", .help = "Polls.", .type = METRIC_COUNTER};
    return metric_value(METRIC(&polls, "receiver", "sysfs", "target", target, "outcome", "failed"));
}

START_TEST(a_card_that_hangs_holds_up_nobody) {
    add_card("mlx5_0");
    add_card("mlx5_1");
    start_it();
    EVENTUALLY(count_records() == 2);
    rounds("mlx5_0", 3);
    set_hang(inode_of("class/infiniband/mlx5_0/ports/1/counters/link_downed"));
    EVENTUALLY(count_hanging() == 1);
    write_file("class/infiniband/mlx5_1/ports/1/counters/link_downed", "9\n");
    require_record(2, OF("mlx5_1") "\"counters\":{\"link_downed\":\"0\"}}");
    require_record(3, OF("mlx5_1") "\"counters\":{\"link_downed\":\"9\"}}");
    EVENTUALLY(count_failures("mlx5_0") > 2);
    // It goes on when the card does.
    write_file("class/infiniband/mlx5_0/ports/1/counters/link_downed", "4\n");
    set_hang(0);
    require_record(4, OF("mlx5_0") "\"counters\":{\"link_downed\":\"0\"}}");
    require_record(5, OF("mlx5_0") "\"counters\":{\"link_downed\":\"4\"}}");
    stop_it();
}
END_TEST

START_TEST(a_stop_leaves_a_card_that_hangs_behind) {
    add_card("mlx5_0");
    start_it();
    EVENTUALLY(count_records() == 1);
    set_hang(inode_of("class/infiniband/mlx5_0/ports/1/state"));
    EVENTUALLY(count_hanging() == 1);
    uint64_t held = memory_figures().live_bytes;
    stop_it(); // returns, though the card is still being read
    ck_assert_uint_eq(count_hanging(), 1);
    uint64_t left = memory_figures().live_bytes;
    ck_assert_uint_lt(left, held);
    set_hang(0);
    EVENTUALLY(memory_figures().live_bytes < left); // the thread gave its card back
}
END_TEST

START_TEST(cards_that_come_and_go) {
    start_it();
    EVENTUALLY(atomic_load(&feed->caught_up));
    ck_assert_uint_eq(count_records(), 0);
    add_card("mlx5_0");
    EVENTUALLY(count_records() > 0);
    char path[PATH_MAX + 64], other[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/class/infiniband/mlx5_0", root);
    snprintf(other, sizeof other, "%s/gone", root);
    ck_assert_int_eq(rename(path, other), 0);
    uint32_t seen = count_records();
    add_card("mlx5_0");
    EVENTUALLY(count_records() > seen);
    ck_assert_str_eq(feed->records[0].path, "sysfs");
    stop_it();
}
END_TEST

int main(void) {
    Suite *suite = suite_create("sysfs");
    TCase *cases = tcase_create("sysfs");
    tcase_add_checked_fixture(cases, setup, NULL);
    tcase_add_test(cases, what_changed_is_sent_with_how_it_was);
    tcase_add_test(cases, what_cannot_be_read_is_no_zero);
    tcase_add_test(cases, all_is_repeated);
    tcase_add_test(cases, errors_of_pci_devices);
    tcase_add_test(cases, nothing_is_allocated_when_nothing_changes);
    tcase_add_test(cases, a_card_that_hangs_holds_up_nobody);
    tcase_add_test(cases, a_stop_leaves_a_card_that_hangs_behind);
    tcase_add_test(cases, cards_that_come_and_go);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
