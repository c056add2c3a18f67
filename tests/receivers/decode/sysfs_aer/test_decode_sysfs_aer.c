// SPDX-License-Identifier: Apache-2.0
// sysfs_aer: counter files as they stand and as tagged lines, in both spellings, and broken ones.
#include "base/memory.h"
#include "receivers/decode/sysfs_aer/sysfs_aer.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static struct arena arena;
static struct event event;
static struct decode_fault fault;
static const uint64_t NOW = UINT64_C(1794992400000000000);

static void setup(void) {
    arena_init(&arena, 1 << 16);
}

static void teardown(void) {
    arena_release(&arena);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static enum decode_category decode_file(const char *path, uint64_t observed_ns, const char *text,
                                        size_t size) {
    void *state = memory_zero(1, decoder_sysfs_aer.state_size);
    struct decoder_input input = {
        .path = slice_of(path), .observed_ns = observed_ns, .is_file = true};
    decoder_sysfs_aer.begin(state, &input);
    memset(&event, 0, sizeof event);
    memset(&fault, 0, sizeof fault);
    // In memory of exactly its size.
    char *copy = malloc(size + (size == 0));
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, text, size);
    struct slice record = arena_copy(&arena, (struct slice){copy, size});
    enum decode_category category =
        decoder_sysfs_aer.decode(state, (struct slice){copy, size}, &arena, &event, &fault);
    if (category == DECODE_OK)
        category = decoder_sysfs_aer.decode(state, record, &arena, &event, &fault);
    free(copy);
    memory_give(state);
    return category;
}

static enum decode_category decode_line(const char *text) {
    memset(&event, 0, sizeof event);
    memset(&fault, 0, sizeof fault);
    return sysfs_aer_tagged(NULL, slice_of(text), &arena, &event, &fault);
}

static void is_counter(const struct aer_counter *counter, const char *name, uint64_t count) {
    ck_assert_uint_eq(counter->name.size, strlen(name));
    ck_assert_mem_eq(counter->name.data, name, counter->name.size);
    ck_assert_uint_eq(counter->count, count);
}

static const char PATH[] = "/sys/bus/pci/devices/0000:29:00.0/aer_dev_correctable";

START_TEST(a_file_as_printed) {
    static const char text[] =
        "RxErr 12\nBadTLP 0\nRollover 18446744073709551615\nTOTAL_ERR_COR 9\n";
    ck_assert_int_eq(decode_file(PATH, NOW, text, sizeof text - 1), DECODE_OK);
    ck_assert_int_eq(event.kind, EVENT_AER_COUNTERS);
    ck_assert_uint_eq(event.time_ns, NOW);
    ck_assert_int_eq(event.rank, RANK_NONE);
    ck_assert(event.aer->has_correctable);
    ck_assert(!event.aer->has_nonfatal && !event.aer->has_fatal);
    ck_assert_uint_eq(event.aer->correctable_count, 3);
    is_counter(&event.aer->correctable[0], "RxErr", 12);
    is_counter(&event.aer->correctable[2], "Rollover", UINT64_MAX);
    ck_assert_uint_eq(event.aer->correctable_total, 9);
    char address[PCI_TEXT_MAX];
    pci_format_function(event.aer->address, address);
    ck_assert_str_eq(address, "0000:29:00.0");
}
END_TEST

START_TEST(a_file_as_documented) {
    static const char text[] =
        "Receiver Error 2\r\nBad TLP\t1\nRELAY_NUM Rollover 0\n\n"
        "Replay Timer Timeout 3\nAdvisory Non-Fatal 0\nA New One 7";
    ck_assert_int_eq(decode_file(PATH, NOW, text, sizeof text - 1), DECODE_OK);
    ck_assert_uint_eq(event.aer->correctable_count, 6);
    is_counter(&event.aer->correctable[0], "RxErr", 2);
    is_counter(&event.aer->correctable[1], "BadTLP", 1);
    is_counter(&event.aer->correctable[2], "Rollover", 0);
    is_counter(&event.aer->correctable[3], "Timeout", 3);
    is_counter(&event.aer->correctable[5], "A New One", 7);
}
END_TEST

START_TEST(kind_and_device_by_the_path) {
    static const char text[] = "DLP 1\nTOTAL_ERR_FATAL 1\n";
    ck_assert_int_eq(decode_file("x/10000:01:00.1/aer_dev_fatal", NOW, text, sizeof text - 1),
                     DECODE_OK);
    ck_assert(event.aer->has_fatal);
    ck_assert_uint_eq(event.aer->fatal_total, 1);
    ck_assert_int_eq(decode_file("0000:01:00.1/aer_dev_nonfatal", NOW, text, sizeof text - 1),
                     DECODE_OK);
    ck_assert(event.aer->has_nonfatal);
    static const char *const wrong[] = {
        "aer_dev_fatal", "/aer_dev_fatal", "gpu/aer_dev_fatal", "0000:01:00.1/aer_dev", "", "/"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_int_eq(decode_file(wrong[i], NOW, text, sizeof text - 1), DECODE_MISSING_FIELD);
        ck_assert_str_eq(fault.field, "path");
    }
    ck_assert_int_eq(decode_file(PATH, 0, text, sizeof text - 1), DECODE_MISSING_TIMESTAMP);
}
END_TEST

START_TEST(broken_files) {
    static const char *const wrong[] = {
        "RxErr\n",    "RxErr x\n", "12\n", "RxErr 12 x\n", "RxErr 18446744073709551616\n",
        "RxErr -1\n", "RxErr12\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_msg(decode_file(PATH, NOW, wrong[i], strlen(wrong[i])) == DECODE_WRONG_TYPE, "%s",
                      wrong[i]);
        ck_assert_str_eq(fault.field, "aer_dev_correctable");
        ck_assert_ptr_nonnull(strstr(fault.detail, "line 1"));
    }
    ck_assert_int_eq(decode_file(PATH, NOW, "\n\n", 2), DECODE_MISSING_FIELD);
    ck_assert_int_eq(decode_file(PATH, NOW, "", 0), DECODE_MISSING_FIELD);
}
END_TEST

START_TEST(more_counters_than_are_kept) {
    char text[4096];
    size_t size = 0;
    for (int i = 0; i < 100; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "Name%d %d\n", i, i);
    ck_assert_int_eq(decode_file(PATH, NOW, text, size), DECODE_OK);
    ck_assert_uint_eq(event.aer->correctable_count, AER_COUNTERS_MAX);
}
END_TEST

static const char LINE[] =
    "{\"source\":\"sysfs_aer\",\"timestamp_ns\":1794992400000000000,\"k8s.node.name\":\"n\","
    "\"pci_bus_id\":\"0000:29:00.0\",\"aer_dev_correctable\":\"RxErr 3\\nTOTAL_ERR_COR 3\\n\","
    "\"aer_dev_nonfatal\":\"TOTAL_ERR_NONFATAL 1\\n\",\"aer_dev_fatal\":\"TOTAL_ERR_FATAL 2\\n\"}";

START_TEST(a_tagged_line) {
    ck_assert_int_eq(decode_line(LINE), DECODE_OK);
    ck_assert_uint_eq(event.time_ns, NOW);
    ck_assert(slice_equal(intern_slice(event.node), SLICE("n")));
    ck_assert(event.aer->has_correctable && event.aer->has_nonfatal && event.aer->has_fatal);
    ck_assert_uint_eq(event.aer->correctable_total, 3);
    ck_assert_uint_eq(event.aer->nonfatal_total, 1);
    ck_assert_uint_eq(event.aer->fatal_total, 2);
}
END_TEST

START_TEST(broken_tagged_lines) {
    static const struct {
        const char *text;
        enum decode_category category;
        const char *field;
    } rows[] = {
        {"{\"timestamp_ns\":1,\"aer_dev_fatal\":\"DLP 1\"}", DECODE_MISSING_FIELD, "pci_bus_id"},
        {"{\"timestamp_ns\":1,\"pci_bus_id\":7,\"aer_dev_fatal\":\"DLP 1\"}", DECODE_WRONG_TYPE,
         "pci_bus_id"},
        {"{\"timestamp_ns\":1,\"pci_bus_id\":\"x\",\"aer_dev_fatal\":\"DLP 1\"}",
         DECODE_OUT_OF_RANGE, "pci_bus_id"},
        {"{\"timestamp_ns\":1,\"pci_bus_id\":\"0000:29:00.0\"}", DECODE_MISSING_FIELD,
         "aer_dev_correctable, aer_dev_fatal, aer_dev_nonfatal"},
        {"{\"timestamp_ns\":1,\"pci_bus_id\":\"0000:29:00.0\",\"aer_dev_fatal\":3}",
         DECODE_WRONG_TYPE, "aer_dev_fatal"},
        {"{\"pci_bus_id\":\"0000:29:00.0\",\"aer_dev_fatal\":\"DLP 1\"}", DECODE_MISSING_TIMESTAMP,
         "timestamp_ns"},
        {"{\"timestamp_ns\":1,", DECODE_BAD_JSON, ""},
        {"[]", DECODE_NOT_OBJECT, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_msg(decode_line(rows[i].text) == rows[i].category, "%s: %s", rows[i].text,
                      fault.detail);
        ck_assert_str_eq(fault.field, rows[i].field);
        ck_assert(fault.detail[0] != '\0');
    }
}
END_TEST

START_TEST(survives_anything) {
    size_t size = strlen(LINE);
    unsigned seed = 7;
    for (size_t length = 0; length < size; length++) {
        char *copy = malloc(length + (length == 0));
        ck_assert_ptr_nonnull(copy);
        memcpy(copy, LINE, length);
        ck_assert_int_ne(
            sysfs_aer_tagged(NULL, (struct slice){copy, length}, &arena, &event, &fault),
            DECODE_OK);
        for (unsigned round = 0; round < 20 && length > 0; round++) {
            seed = seed * 1103515245 + 12345;
            copy[(seed >> 8) % length] = (char)(seed >> 20);
            (void)sysfs_aer_tagged(NULL, (struct slice){copy, length}, &arena, &event, &fault);
            (void)decode_file(PATH, NOW, copy, length);
        }
        free(copy);
        arena_reset(&arena);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("decode_sysfs_aer");
    TCase *cases = tcase_create("records");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, a_file_as_printed);
    tcase_add_test(cases, a_file_as_documented);
    tcase_add_test(cases, kind_and_device_by_the_path);
    tcase_add_test(cases, broken_files);
    tcase_add_test(cases, more_counters_than_are_kept);
    tcase_add_test(cases, a_tagged_line);
    tcase_add_test(cases, broken_tagged_lines);
    tcase_add_test(cases, survives_anything);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
