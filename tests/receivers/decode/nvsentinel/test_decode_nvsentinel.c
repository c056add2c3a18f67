// SPDX-License-Identifier: Apache-2.0
// Health events of NVSentinel: what each member becomes, and what is passed over or refused.
#include "receivers/decode/nvsentinel/nvsentinel.h"
#include "tests/receivers/decode/decode_told.h"

static struct decoded decoded;
static struct buffer out;

static void setup(void) {
    decoded = decoded_open(&decoder_nvsentinel, 7);
    buffer_init(&out, 1 << 16);
}

static void teardown(void) {
    decoded_close(&decoded);
    buffer_release(&out);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

#define CLOUD(type, more)   "{\"specversion\":\"1.0\",\"type\":\"" type "\",\"source\":\"s\"" more "}"
#define TYPE                "com.nvidia.nvsentinel.health.v1"
#define HEALTH(members)     CLOUD(TYPE, ",\"data\":{\"healthEvent\":{" members "}}")
#define ENTITY(type, value) "{\"entityType\":\"" type "\",\"entityValue\":\"" value "\"}"

static const struct {
    const char *record;
    const char *told;
} ROWS[] = {
    {HEALTH(""), "health_event [7]\n"},
    {HEALTH("\"nodeName\":\"a\",\"generatedTimestamp\":\"1970-01-01T00:00:02.5Z\""),
     "health_event 2500000000 @a\n"},
    {CLOUD(TYPE, ",\"time\":\"1970-01-01T00:00:03Z\",\"data\":{\"healthEvent\":{}}"),
     "health_event 3000000000\n"},
    {CLOUD("other", ""), ""},
    {CLOUD("", ",\"data\":{\"healthEvent\":{}}"), ""},
    {"{\"type\":7}", ""},
    {HEALTH("\"isFatal\":true,\"isHealthy\":false"), "health_event [7] fatal=yes healthy=no\n"},
    {HEALTH("\"isFatal\":1"), "health_event [7]\n"},
    {HEALTH("\"recommendedAction\":0"), "health_event [7] action=NONE\n"},
    {HEALTH("\"recommendedAction\":24"), "health_event [7] action=RESTART_BM\n"},
    {HEALTH("\"recommendedAction\":77"), "health_event [7] action=77\n"},
    {HEALTH("\"recommendedAction\":\"RESTART_VM\""), "health_event [7] action=RESTART_VM\n"},
    {HEALTH("\"errorCode\":[\"79\"]"), "health_event [7]\n"},
    {HEALTH("\"errorCode\":[\"79\",\"48\"],\"checkName\":\"SysLogsXIDError\""),
     "health_event [7] reason=SysLogsXIDError xid=79\n"},
    {HEALTH("\"errorCode\":[\"12028\"],\"checkName\":\"SysLogsSXIDError\""),
     "health_event [7] reason=SysLogsSXIDError sxid=12028\n"},
    {HEALTH("\"errorCode\":[\"DCGM_FR\"],\"checkName\":\"XID\""), "health_event [7] reason=XID\n"},
    {HEALTH("\"errorCode\":[],\"checkName\":\"XID\""), "health_event [7] reason=XID\n"},
    {HEALTH("\"entitiesImpacted\":[" ENTITY("PCI", "0000:9b:00") "," ENTITY("GPU", "3") "," ENTITY(
         "GPU_UUID", "GPU-1") "],\"message\":\"m\""),
     "health_event [7] gpu=0000:9b:00 gpu_uuid=GPU-1 nvml_device=3 message=m\n"},
    {HEALTH("\"entitiesImpacted\":[" ENTITY("NIC", "mlx5_3") "," ENTITY("NICPort", "1") "," ENTITY(
         "NVLINK", "x") ",7," ENTITY("PCI", "x") "," ENTITY("New", "1") "]"),
     "health_event [7] device=mlx5_3 port=1\n"},
    {HEALTH("\"gpuUUID\":\"GPU-2\",\"entitiesImpacted\":{}"), "health_event [7] gpu_uuid=GPU-2\n"},
};

START_TEST(rows) {
    ck_assert_str_eq(told(&decoded, ROWS[_i].record, &out), ROWS[_i].told);
}
END_TEST

START_TEST(refused) {
    decoded_refused(&decoded, CLOUD(TYPE, ""), DECODE_MISSING_FIELD, "data.healthEvent", "not");
    decoded_refused(&decoded, CLOUD(TYPE, ",\"data\":{\"healthEvent\":7}"), DECODE_MISSING_FIELD,
                    "data.healthEvent", "not");
    decoded_refused(&decoded, "[]", DECODE_NOT_OBJECT, "", "CloudEvent");
    decoded_refused(&decoded, "{\"type\":", DECODE_BAD_JSON, "", "");
    decoded_close(&decoded);
    decoded = decoded_open(&decoder_nvsentinel, 0);
    decoded_refused(&decoded, HEALTH(""), DECODE_MISSING_TIMESTAMP, "", "no timestamp");
}
END_TEST

START_TEST(broken_records_are_survived) {
    decoded_torture(&decoded,
                    HEALTH("\"entitiesImpacted\":[" ENTITY(
                        "PCI", "0000:9b:00") "],"
                                             "\"errorCode\":[\"79\"],\"checkName\":\"XID\","
                                             "\"recommendedAction\":15,\"isFatal\":true"));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("decode_nvsentinel");
    TCase *cases = tcase_create("decode_nvsentinel");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_loop_test(cases, rows, 0, sizeof ROWS / sizeof *ROWS);
    tcase_add_test(cases, refused);
    tcase_add_test(cases, broken_records_are_survived);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
