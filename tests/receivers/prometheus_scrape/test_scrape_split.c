// SPDX-License-Identifier: Apache-2.0
// What a scrape says becomes tagged lines, each of which stands alone; the rest is counted; half a
// scrape is none.
#include "base/memory.h"
#include "receivers/decode/tagged/tagged.h"
#include "receivers/prometheus_scrape/split.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static const uint64_t NOW = UINT64_C(1794992400000000000);
static struct scrape_split split;
static struct buffer all; // lines of all chunks
static char refused[16][320];
static uint64_t refused_at[16];
static uint32_t refused_count;

static void on_refused(void *context, struct slice line, uint64_t number,
                       const struct decode_fault *fault) {
    ck_assert_ptr_eq(context, &split);
    ck_assert(line.size > 0 && line.data[line.size - 1] != '\n');
    ck_assert_uint_lt(refused_count, 16);
    refused_at[refused_count] = number;
    snprintf(refused[refused_count++], sizeof refused[0], "%s: %s",
             decode_category_name(fault->category), fault->detail);
}

static void setup(void) {
    scrape_split_init(&split);
    split.refused = on_refused;
    split.context = &split;
    buffer_init(&all, 64 << 20);
    refused_count = 0;
}

static void teardown(void) {
    scrape_split_release(&split);
    buffer_release(&all);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static const char *read_as(struct scrape_text scrape, bool open_metrics) {
    scrape.time_ns = NOW;
    if (scrape.otherwise.size == 0)
        scrape.otherwise = SLICE("the-host");
    buffer_reset(&all);
    const char *wrong = scrape_split_text(&split, &scrape, open_metrics);
    while (wrong == NULL && scrape_split_next(&split))
        buffer_append(&all, buffer_slice(&split.lines));
    buffer_append_char(&all, '\0');
    return wrong;
}

static const char *read_text(const char *text) {
    return read_as((struct scrape_text){.text = slice_of(text)}, false);
}

static void counts_are(uint64_t taken, uint64_t other, uint64_t not_taken) {
    ck_assert_uint_eq(split.counts.taken, taken);
    ck_assert_uint_eq(split.counts.other, other);
    ck_assert_uint_eq(split.counts.refused, not_taken);
    ck_assert_uint_eq(refused_count, not_taken);
}

#define GPU0 "gpu=\"0\",UUID=\"GPU-a\",pci_bus_id=\"00000000:1B:00.0\",modelName=\"H100\""

START_TEST(gpus_and_ports_between_series_of_others) {
    ck_assert_ptr_null(
        read_text("# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).\n"
                  "# TYPE DCGM_FI_DEV_GPU_TEMP gauge\n"
                  "DCGM_FI_DEV_GPU_TEMP{" GPU0 ",Hostname=\"n1\"} 61\n"
                  "DCGM_FI_DEV_GPU_TEMP{gpu=\"1\",UUID=\"GPU-b\",Hostname=\"n1\",pod=\"p\"} 59.5\n"
                  "DCGM_FI_PROF_SM_ACTIVE{" GPU0 ",Hostname=\"n1\"} 0.5\n"
                  "DCGM_FI_PROF_SM_ACTIVE{gpu=\"1\",Hostname=\"n1\"} 0.5\n"
                  "go_goroutines 12\r\n"
                  "\n"
                  "node_infiniband_link_downed_total{device=\"mlx5_0\",port=\"1\"} 3\n"
                  "node_infiniband_state_id{device=\"mlx5_0\",port=\"1\"} 4\n"
                  "node_infiniband_physical_state_id{device=\"mlx5_0\",port=\"1\"} 5\n"
                  "node_infiniband_port_data_received_bytes_total{device=\"mlx5_0\",port=\"1\"} 9\n"
                  "DCGM_FI_DEV_XID_ERRORS{" GPU0 ",Hostname=\"n1\"} 79\n"
                  "node_infiniband_symbol_error_total{device=\"mlx5_0\",port=\"1\"} 1.5e+01\n"));
    counts_are(7, 4, 0);
    ck_assert_str_eq(
        all.data,
        "{\"source\":\"dcgm\",\"timestamp_ns\":1794992400000000000,\"k8s.node.name\":\"n1\","
        "\"UUID\":\"GPU-a\",\"pci_bus_id\":\"0000:1b:00.0\",\"gpu\":0,\"modelName\":\"H100\","
        "\"fields\":{\"DCGM_FI_DEV_XID_ERRORS\":79,\"DCGM_FI_DEV_GPU_TEMP\":61}}\n"
        "{\"source\":\"dcgm\",\"timestamp_ns\":1794992400000000000,\"k8s.node.name\":\"n1\","
        "\"UUID\":\"GPU-b\",\"gpu\":1,\"pod\":\"p\",\"fields\":{\"DCGM_FI_DEV_GPU_TEMP\":59.5}}\n"
        "{\"source\":\"ib_counters\",\"timestamp_ns\":1794992400000000000,"
        "\"k8s.node.name\":\"the-host\",\"device\":\"mlx5_0\",\"port\":1,"
        "\"state\":\"4: ACTIVE\",\"phys_state\":\"5: LinkUp\","
        "\"counters\":{\"link_downed\":3,\"symbol_error\":15}}\n");
}
END_TEST

// A family that is passed over ends where the next name begins with it.
START_TEST(a_name_that_begins_as_another) {
    ck_assert_ptr_null(read_text("DCGM_FI_DEV_GPU_TEM{" GPU0 "} 1\n"
                                 "DCGM_FI_DEV_GPU_TEM 1\n"
                                 "DCGM_FI_DEV_GPU_TEMP{" GPU0 "} 61\n"
                                 "DCGM_FI_DEV_GPU_TEMPS{" GPU0 "} 2\n"
                                 "DCGM_FI_DEV_GPU_TEMP{" GPU0 "} 62\n"));
    counts_are(2, 3, 0);
    ck_assert_ptr_nonnull(strstr(all.data, "\"DCGM_FI_DEV_GPU_TEMP\":62}"));
}
END_TEST

START_TEST(whose_node_it_is) {
    static const struct {
        const char *labels, *label, *node, *expected;
    } cases[] = {
        {"Hostname=\"a\",node=\"b\"", NULL, NULL, "a"},
        {"node=\"b\"", NULL, NULL, "b"},
        {"instance=\"c:9400\"", NULL, NULL, "the-host"},
        {"Hostname=\"a\",instance=\"c\"", "instance", NULL, "c"},
        {"Hostname=\"a\"", "instance", NULL, "a"},
        {"Hostname=\"a\",instance=\"c\"", "instance", "d", "d"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256], wanted[64];
        struct scrape_text scrape = {.text = {NULL, 0}};
        snprintf(text, sizeof text, "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",%s} 1\n", cases[i].labels);
        snprintf(wanted, sizeof wanted, "\"k8s.node.name\":\"%s\"", cases[i].expected);
        scrape.text = slice_of(text);
        if (cases[i].label != NULL)
            scrape.node_label = slice_of(cases[i].label);
        if (cases[i].node != NULL)
            scrape.node = slice_of(cases[i].node);
        ck_assert_ptr_null(read_as(scrape, false));
        ck_assert_msg(strstr(all.data, wanted) != NULL, "%s: %s", text, all.data);
    }
    ck_assert_ptr_null(read_as(
        (struct scrape_text){
            .text = SLICE("node_infiniband_state_id{device=\"m\",port=\"1\",instance=\"x\"} 1\n"),
            .node_label = SLICE("instance")},
        false));
    ck_assert_ptr_nonnull(strstr(all.data, "\"k8s.node.name\":\"x\""));
}
END_TEST

START_TEST(series_with_times_of_their_own) {
    ck_assert_ptr_null(
        read_text("DCGM_FI_DEV_GPU_TEMP{gpu=\"0\"} 61 1794992340000\n"
                  "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\"} 62\n"
                  "node_infiniband_state_id{device=\"m\",port=\"1\"} 1 1794992340000\n"));
    counts_are(3, 0, 0);
    ck_assert_ptr_nonnull(strstr(all.data,
                                 "1794992340000000000,\"k8s.node.name\":\"the-host\","
                                 "\"gpu\":0,\"fields\":{\"DCGM_FI_DEV_GPU_TEMP\":61}}"));
    ck_assert_ptr_nonnull(strstr(all.data,
                                 "1794992400000000000,\"k8s.node.name\":\"the-host\","
                                 "\"gpu\":0,\"fields\":{\"DCGM_FI_DEV_GPU_TEMP\":62}}"));
    ck_assert_ptr_nonnull(strstr(all.data, "\"state\":\"1: DOWN\""));
}
END_TEST

// One wrong series does not keep the others from being taken.
START_TEST(wrong_series_are_refused_one_by_one) {
    ck_assert_ptr_null(
        read_text("DCGM_FI_DEV_GPU_TEMP{gpu=\"0\"} 61\n"
                  "DCGM_FI_DEV_GPU_TEMP{gpu=\"1\" 61\n"
                  "DCGM_FI_DEV_GPU_TEMP{gpu=\"2\"} hot\n"
                  "DCGM_FI_DEV_GPU_TEMP{gpu=\"3\"} 1 yesterday\n"
                  "node_infiniband_state_id{device=\"m\"} 1\n"
                  "node_infiniband_state_id{device=\"m\",port=\"1\"} 6\n"
                  "node_infiniband_link_downed_total{device=\"m\",port=\"1\"} -1\n"
                  "node_infiniband_link_downed_total{device=\"m\",port=\"1\"} 0.5\n"
                  "DCGM_FI_DEV_GPU_TEMP{gpu=\"5\"} 1 922337203685470.5\n"
                  "DCGM_FI_DEV_GPU_TEMP{gpu=\"5\"} 1 99999999999\n"
                  "DCGM_FI_DEV_GPU_TEMP{gpu=\"4\"} 61\n"));
    static const char *const expected[] = {"not closed",      "not a number", "timestamp",
                                           "device and port", "0 to 5",       "whole number",
                                           "whole number",    "timestamp",    "timestamp"};
    enum { WRONG = sizeof expected / sizeof *expected };
    counts_are(2, 0, WRONG);
    for (uint32_t i = 0; i < WRONG; i++) {
        ck_assert_msg(strstr(refused[i], expected[i]) != NULL, "%s", refused[i]);
        ck_assert_uint_eq(refused_at[i], i + 2);
    }
    ck_assert_ptr_nonnull(strstr(all.data, "\"gpu\":4"));
}
END_TEST

START_TEST(half_a_scrape_is_none) {
    static const struct {
        const char *text;
        bool open_metrics;
        const char *why;
    } cases[] = {
        {"", false, "empty"},
        {"DCGM_FI_DEV_GPU_TEMP{gpu=\"0\"} 6", false, "inside a line"},
        {"DCGM_FI_DEV_GPU_TEMP{gpu=\"0\"} 61\n", true, "# EOF"},
        {"<html>\n<body>404</body>\n", false, "not metrics"},
        {"# a comment\nlogin required\n", false, "not metrics"},
        {"{\"error\": 1}\n{}\n", true, "# EOF"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *why =
            read_as((struct scrape_text){.text = slice_of(cases[i].text)}, cases[i].open_metrics);
        ck_assert_msg(why != NULL && strstr(why, cases[i].why) != NULL, "%s: %s", cases[i].text,
                      why == NULL ? "taken" : why);
        counts_are(0, 0, 0);
    }
    ck_assert_ptr_nonnull(read_as((struct scrape_text){.text = {"up 1\n\0\n", 7}}, false));
    ck_assert_ptr_null(read_as((struct scrape_text){.text = SLICE("up 1\n# EOF")}, true));
    // Of an answer that is known to be whole the last line may have no end.
    struct scrape_text counted = {.text = SLICE("up 1\nDCGM_FI_DEV_GPU_TEMP{gpu=\"0\"} 61"),
                                  .counted = true};
    ck_assert_ptr_null(read_as(counted, false));
    counts_are(1, 1, 0);
    ck_assert_ptr_nonnull(read_as(counted, true));
    ck_assert_ptr_null(
        read_as((struct scrape_text){.text = SLICE("{\"my.up\"} 1\n# EOF\n")}, true));
    counts_are(0, 1, 0);
    ck_assert_ptr_null(read_text("# nothing to say\n"));
    counts_are(0, 0, 0);
}
END_TEST

// The tagged lines decode to what the text itself decodes to.
START_TEST(a_line_says_what_the_text_said) {
    static const char text[] =
        "DCGM_FI_DEV_GPU_TEMP_CELSIUS{" GPU0
        ",Hostname=\"n1\",namespace=\"t\",pod=\"p\\\"\\\\\"} 61.25\n"
        "DCGM_FI_DEV_CLOCKS_EVENT_REASONS{" GPU0
        ",Hostname=\"n1\"} 72\n"
        "DCGM_EXP_XID_ERRORS_COUNT{" GPU0
        ",Hostname=\"n1\",xid=\"79\"} 2\n"
        "DCGM_FI_DEV_POWER_VIOLATION{" GPU0
        ",Hostname=\"n1\"} 9007199254740993\n"
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{" GPU0 ",Hostname=\"n1\"} 9223372036854775794\n";
    struct arena arena;
    struct event whole = {0}, one = {0};
    struct decode_fault fault = {0};
    arena_init(&arena, 1 << 16);
    void *state = memory_zero(1, decoder_dcgm_text.state_size);
    decoder_dcgm_text.begin(state, &(struct decoder_input){.observed_ns = NOW});
    ck_assert_int_eq(decoder_dcgm_text.decode(state, slice_of(text), &arena, &whole, &fault), 0);
    memory_give(state);
    ck_assert_ptr_null(read_text(text));
    state = memory_zero(1, decoder_tagged.state_size);
    struct slice line = {all.data, strlen(all.data) - 1};
    ck_assert_int_eq(decoder_tagged.decode(state, line, &arena, &one, &fault), 0);
    decoder_tagged.release(state);
    memory_give(state);
    const struct gpu_sample *a = whole.gpus->samples, *b = one.gpus->samples;
    ck_assert_uint_eq(one.gpus->count, 1);
    ck_assert_uint_eq(one.time_ns, NOW);
    ck_assert(a->node == b->node && a->address == b->address && a->index == b->index);
    ck_assert(a->present == b->present && slice_equal(a->uuid, b->uuid));
    ck_assert(slice_equal(a->pod, b->pod) && slice_equal(a->namespace, b->namespace));
    ck_assert(slice_equal(a->model, b->model) && slice_equal(a->pod, SLICE("p\"\\")));
    for (enum gpu_field field = 0; field < GPU_FIELD_COUNT; field++)
        ck_assert(a->whole[field] == b->whole[field] && a->value[field] == b->value[field]);
    for (int i = 0; i < 2; i++)
        ck_assert_uint_eq(a->spelled[i] & a->present, b->spelled[i] & b->present);
    ck_assert_ptr_nonnull(strstr(all.data, "\"DCGM_EXP_XID_ERRORS_COUNT{xid}\":79"));
    ck_assert_ptr_nonnull(strstr(all.data, "\"DCGM_FI_DEV_GPU_TEMP_CELSIUS\":61.25"));
    ck_assert_int_eq(b->whole[GPU_POWER_VIOLATION_NS], 9007199254740993);
    arena_release(&arena);
}
END_TEST

// More GPUs than fit into one chunk of lines, and more than a scrape may have.
START_TEST(very_many_gpus) {
    struct buffer text;
    buffer_init(&text, 8 << 20);
    for (unsigned i = 0; i < SCRAPE_GPUS_MAX + 5; i++)
        buffer_append_format(&text, "DCGM_FI_DEV_GPU_TEMP{UUID=\"GPU-%05u\"} %u\n", i, i % 90);
    ck_assert_ptr_null(read_as((struct scrape_text){.text = buffer_slice(&text)}, false));
    counts_are(SCRAPE_GPUS_MAX, 0, 5);
    ck_assert_ptr_nonnull(strstr(refused[0], "more than 8192 GPUs"));
    size_t lines = 0;
    for (size_t i = 0; i < all.size; i++)
        lines += all.data[i] == '\n';
    ck_assert_uint_eq(lines, SCRAPE_GPUS_MAX);
    // What it took is given back with the next one.
    uint64_t held = memory_figures().live_bytes;
    ck_assert_ptr_null(read_text("up 1\n"));
    ck_assert_uint_lt(memory_figures().live_bytes + (8 << 20), held);
    buffer_release(&text);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("scrape_split");
    TCase *cases = tcase_create("split");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, gpus_and_ports_between_series_of_others);
    tcase_add_test(cases, a_name_that_begins_as_another);
    tcase_add_test(cases, whose_node_it_is);
    tcase_add_test(cases, series_with_times_of_their_own);
    tcase_add_test(cases, wrong_series_are_refused_one_by_one);
    tcase_add_test(cases, half_a_scrape_is_none);
    tcase_add_test(cases, a_line_says_what_the_text_said);
    tcase_add_test(cases, very_many_gpus);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
