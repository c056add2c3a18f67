// SPDX-License-Identifier: Apache-2.0
// Who runs where: the line of a rank, with and without its tag.
#include "receivers/decode/rank_map/rank_map.h"
#include "tests/receivers/decode/decode_record.h"

static struct decoded decoded;

static void setup(void) {
    decoded = decoded_open(&decoder_rank_map, 99);
}

static void teardown(void) {
    decoded_close(&decoded);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static const char LINE[] =
    "{\"source\":\"rank_map\",\"observed_time_ns\":1794992400000000000,\"k8s.node.name\":"
    "\"gpu-node-02\",\"host.name\":\"other\",\"k8s.namespace.name\":\"train\",\"k8s.pod.name\":"
    "\"w-1\",\"rank\":6,\"local_rank\":2,\"gpu\":\"2\",\"UUID\":\"GPU-25\",\"pci_bus_id\":"
    "\"00000000:45:00.0\",\"process.pid\":41006,\"more\":{}}";

static const struct rank_place *place(const char *record) {
    decoded_ok(&decoded, record);
    ck_assert_int_eq(decoded.event.kind, EVENT_RANK_MAP);
    ck_assert_int_eq(decoded.event.rank, decoded.event.place->rank);
    ck_assert_uint_eq(decoded.event.node, decoded.event.place->node);
    return decoded.event.place;
}

START_TEST(everything) {
    const struct rank_place *read = place(LINE);
    ck_assert_int_eq(read->rank, 6);
    ck_assert_int_eq(read->local_rank, 2);
    ck_assert_int_eq(read->index, 2);
    ck_assert_int_eq(read->pid, 41006);
    ck_assert_uint_eq(read->address, UINT64_C(0x45) << 8);
    decoded_text(read->uuid, "GPU-25");
    decoded_text(read->pod, "w-1");
    decoded_text(read->namespace, "train");
    ck_assert_str_eq(intern_slice(read->node).data, "gpu-node-02");
    ck_assert_uint_eq(decoded.event.time_ns, UINT64_C(1794992400000000000));
}
END_TEST

START_TEST(only_the_rank) {
    const struct rank_place *read = place("{\"rank\":0,\"gpu\":null,\"UUID\":\"\"}");
    ck_assert_int_eq(read->rank, 0);
    ck_assert_int_eq(read->local_rank, -1);
    ck_assert_int_eq(read->index, -1);
    ck_assert_int_eq(read->pid, -1);
    ck_assert_uint_eq(read->address, PCI_NONE);
    ck_assert_uint_eq(read->node, STRING_NONE);
    decoded_text(read->uuid, NULL);
    decoded_text(read->pod, NULL);
    ck_assert_uint_eq(decoded.event.time_ns, 99); // when the input was read
}
END_TEST

// Every key but `rank` may be absent, alone or with any others; keys that nobody knows are passed
// over.
static const char *const MEMBERS[] = {"\"k8s.node.name\":\"a\"",
                                      "\"host.name\":\"b\"",
                                      "\"k8s.pod.name\":\"w\"",
                                      "\"local_rank\":2",
                                      "\"gpu\":3",
                                      "\"UUID\":\"GPU-25\"",
                                      "\"process.pid\":41006",
                                      "\"job_id\":\"gpt\"",
                                      "\"pci_bus_id\":\"0000:45:00.0\"",
                                      "\"more\":[{}]",
                                      "\"timestamp_ns\":1794992400000000000"};
enum { HAS_K8S, HAS_HOST, HAS_POD, HAS_LOCAL, HAS_GPU, HAS_UUID, HAS_PID, HAS_JOB, HAS_PCI };
enum { HAS_MORE = HAS_PCI + 1, HAS_TIME, MEMBER_COUNT };

static bool has(unsigned set, unsigned member) {
    return (set >> member & 1) != 0;
}

static void check_members(unsigned set, const struct rank_place *read) {
    const char *node = has(set, HAS_K8S) ? "a" : has(set, HAS_HOST) ? "b" : "";
    ck_assert_int_eq(read->rank, 6);
    ck_assert(slice_equal(intern_slice(read->node), slice_of(node)));
    ck_assert(
        slice_equal(intern_slice(decoded.event.job), slice_of(has(set, HAS_JOB) ? "gpt" : "")));
    ck_assert_int_eq(read->local_rank, has(set, HAS_LOCAL) ? 2 : -1);
    ck_assert_int_eq(read->index, has(set, HAS_GPU) ? 3 : -1);
    ck_assert_int_eq(read->pid, has(set, HAS_PID) ? 41006 : -1);
    ck_assert_uint_eq(read->address, has(set, HAS_PCI) ? UINT64_C(0x45) << 8 : PCI_NONE);
    decoded_text(read->uuid, has(set, HAS_UUID) ? "GPU-25" : NULL);
    decoded_text(read->pod, has(set, HAS_POD) ? "w" : NULL);
    ck_assert(decoded.event.timeless == !has(set, HAS_TIME));
}

START_TEST(any_keys_beside_the_rank) {
    for (unsigned set = 0; set < 1u << MEMBER_COUNT; set++) {
        char line[512] = "{\"rank\":6";
        for (unsigned member = 0; member < MEMBER_COUNT; member++)
            if (has(set, member)) {
                strcat(line, ",");
                strcat(line, MEMBERS[member]);
            }
        strcat(line, "}");
        check_members(set, place(line));
    }
}
END_TEST

START_TEST(a_number_may_be_a_text) {
    const struct rank_place *read = place(
        "{\"host.name\":\"h\",\"rank\":1,\"gpu\":7,\"local_rank\":\"7\",\"process.pid\":"
        "\"12\"}");
    ck_assert_int_eq(read->index, 7);
    ck_assert_int_eq(read->local_rank, 7);
    ck_assert_int_eq(read->pid, 12);
    ck_assert_str_eq(intern_slice(read->node).data, "h");
}
END_TEST

static const struct {
    const char *record;
    enum decode_category category;
    const char *field, *words;
} REFUSED[] = {
    {"7", DECODE_NOT_OBJECT, "", "not a JSON object"},
    {"{\"rank\":1", DECODE_BAD_JSON, "", "not JSON"},
    {"{\"gpu\":1}", DECODE_MISSING_FIELD, "rank", "whose GPU"},
    {"{\"rank\":-1}", DECODE_OUT_OF_RANGE, "rank", "-1"},
    {"{\"rank\":\"1\"}", DECODE_WRONG_TYPE, "rank", "\"1\""},
    {"{\"rank\":1,\"gpu\":\"x\"}", DECODE_WRONG_TYPE, "gpu", "\"x\", expected a GPU's number"},
    {"{\"rank\":1,\"gpu\":70000}", DECODE_WRONG_TYPE, "gpu", "70000"},
    {"{\"rank\":1,\"gpu\":\"\"}", DECODE_WRONG_TYPE, "gpu", "a GPU's number"},
    {"{\"rank\":1,\"pci_bus_id\":\"bus\"}", DECODE_WRONG_TYPE, "pci_bus_id", "a PCI address"},
    {"{\"rank\":1,\"UUID\":5}", DECODE_WRONG_TYPE, "UUID", "the integer 5"},
    {"{\"rank\":1,\"process.pid\":-4}", DECODE_WRONG_TYPE, "process.pid", "-4"},
    {"{\"rank\":1,\"process.pid\":[]}", DECODE_WRONG_TYPE, "process.pid", "a process id"},
    {"{\"rank\":1,\"local_rank\":0.5}", DECODE_WRONG_TYPE, "local_rank", "0.5"},
    {"{\"rank\":1,\"pci_bus_id\":7}", DECODE_WRONG_TYPE, "pci_bus_id", "the integer 7"},
    {"{\"rank\":1,\"host.name\":7}", DECODE_WRONG_TYPE, "host.name", "a text"},
    {"{\"rank\":1,\"k8s.node.name\":{}}", DECODE_WRONG_TYPE, "k8s.node.name", "a text"},
    {"{\"rank\":1,\"k8s.pod.name\":true}", DECODE_WRONG_TYPE, "k8s.pod.name", "a text"},
    {"{\"rank\":1,\"k8s.namespace.name\":1}", DECODE_WRONG_TYPE, "k8s.namespace.name", "a text"},
    {"{\"rank\":1,\"job_id\":1}", DECODE_WRONG_TYPE, "job_id", "a text"},
    {"{\"rank\":1,\"observed_time_ns\":\"1\"}", DECODE_WRONG_TYPE, "observed_time_ns",
     "an integer"},
};

START_TEST(refused) {
    decoded_refused(&decoded, REFUSED[_i].record, REFUSED[_i].category, REFUSED[_i].field,
                    REFUSED[_i].words);
}
END_TEST

START_TEST(a_tagged_line_needs_a_time) {
    struct event event = {0};
    struct decode_fault fault;
    ck_assert_int_eq(rank_map_tagged(NULL, slice_of(LINE), &decoded.arena, &event, &fault),
                     DECODE_OK);
    ck_assert_int_eq(event.rank, 6);
    ck_assert_int_eq(rank_map_tagged(NULL, SLICE("{\"rank\":1}"), &decoded.arena, &event, &fault),
                     DECODE_MISSING_TIMESTAMP);
}
END_TEST

START_TEST(broken_records_are_survived) {
    decoded_torture(&decoded, LINE);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("decode_rank_map");
    TCase *cases = tcase_create("decode_rank_map");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, everything);
    tcase_add_test(cases, only_the_rank);
    tcase_add_test(cases, any_keys_beside_the_rank);
    tcase_add_test(cases, a_number_may_be_a_text);
    tcase_add_loop_test(cases, refused, 0, sizeof REFUSED / sizeof *REFUSED);
    tcase_add_test(cases, a_tagged_line_needs_a_time);
    tcase_add_test(cases, broken_records_are_survived);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
