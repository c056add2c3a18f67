// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "pipeline/model/verdict.h"

#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static struct buffer out;
static struct verdict verdict;

static void setup(void) {
    buffer_init(&out, 1 << 24);
    verdict = (struct verdict){
        .pattern = "memory_first_cause",
        .kind = "leak",
        .job = intern(SLICE("exp-7")),
        .state = VERDICT_OPEN,
        .severity = SEVERITY_ERROR,
        .confidence = 85,
        .headline = SLICE("Rank 2 leaked"),
        .remediation = SLICE("Look at rank 2."),
        .action = "inspect_rank",
        .start_ns = UINT64_C(1795248413950646016),
        .end_ns = UINT64_MAX,
    };
    verdict_set_id(&verdict, "memory_first_cause", (struct slice[]){SLICE("exp-7")}, 1);
}

static void teardown(void) {
    buffer_release(&out);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static void encode(void) {
    buffer_reset(&out);
    verdict_encode(&verdict, &out);
    ck_assert(buffer_finish(&out));
}

#define CHECK_LINE(expected)                                                                       \
    do {                                                                                           \
        encode();                                                                                  \
        buffer_append_char(&out, '\0');                                                            \
        ck_assert_str_eq(out.data, expected);                                                      \
    } while (0)

START_TEST(smallest) {
    CHECK_LINE(
        "{\"schema\":\"culprit.verdict.v1\",\"id\":\"memory_first_cause:b63eff29770e44af\","
        "\"pattern\":\"memory_first_cause\",\"kind\":\"leak\",\"job_id\":\"exp-7\","
        "\"state\":\"open\",\"severity\":\"error\",\"completeness\":\"full\","
        "\"confidence\":85,\"headline\":\"Rank 2 leaked\",\"remediation\":\"Look at rank "
        "2.\",\"action\":\"inspect_rank\",\"start_time_unix_nano\":\"1795248413950646016\","
        "\"end_time_unix_nano\":\"18446744073709551615\",\"entities\":[],"
        "\"evidence_trail\":[]}\n");
}
END_TEST

START_TEST(everything) {
    verdict.job = STRING_NONE;
    verdict.state = VERDICT_RESOLVED;
    verdict.severity = SEVERITY_INFO;
    verdict.partial = true;
    verdict.start_ns = 0;
    verdict.end_ns = 7;
    verdict.entities = (struct entity[]){{"rank", SLICE("2"), ROLE_CULPRIT},
                                         {"node", SLICE("n\xc3\xa9"), ROLE_SUSPECT},
                                         {"pod", SLICE("p"), ROLE_VICTIM}};
    verdict.entity_count = 3;
    verdict.entities_dropped = 4;
    verdict.evidence = (struct evidence[]){
        {SLICE("sample:s:2:7"), SLICE("it \"grew\""), 7, true, EVIDENCE_CAUSE, false},
        {SLICE("u2"), SLICE("d2"), 99, false, EVIDENCE_EFFECT, true},
        {SLICE("u3"), SLICE("d3"), 0, true, EVIDENCE_CONTEXT, false}};
    verdict.evidence_count = 3;
    verdict.evidence_dropped = 1;
    verdict.attributes =
        (struct attribute[]){{"culprit.rank", SLICE("2")}, {"process.pid", SLICE("4244")}};
    verdict.attribute_count = 2;
    CHECK_LINE(
        "{\"schema\":\"culprit.verdict.v1\",\"id\":\"memory_first_cause:b63eff29770e44af\","
        "\"pattern\":\"memory_first_cause\",\"kind\":\"leak\",\"state\":\"resolved\","
        "\"severity\":\"info\",\"completeness\":\"partial\",\"confidence\":85,"
        "\"headline\":\"Rank 2 leaked\",\"remediation\":\"Look at rank 2.\","
        "\"action\":\"inspect_rank\",\"start_time_unix_nano\":\"0\",\"end_time_unix_nano\":\"7\","
        "\"entities\":[{\"kind\":\"rank\",\"name\":\"2\",\"role\":\"culprit\"},"
        "{\"kind\":\"node\",\"name\":\"n\\u00e9\",\"role\":\"suspect\"},"
        "{\"kind\":\"pod\",\"name\":\"p\",\"role\":\"victim\"}],\"entities_dropped\":4,"
        "\"evidence_trail\":[{\"uid\":\"sample:s:2:7\",\"description\":\"it \\\"grew\\\"\","
        "\"time_unix_nano\":\"7\",\"role\":\"cause\"},"
        "{\"uid\":\"u2\",\"description\":\"d2\",\"role\":\"effect\",\"repeats\":true},"
        "{\"uid\":\"u3\",\"description\":\"d3\",\"time_unix_nano\":\"0\",\"role\":\"context\"}],"
        "\"evidence_dropped\":1,"
        "\"attributes\":{\"culprit.rank\":\"2\",\"process.pid\":\"4244\"}}\n");
}
END_TEST

// The order of the fields is the order of `properties` in the schema.
START_TEST(fields_in_the_schemas_order) {
    verdict.entities = (struct entity[]){{"rank", SLICE("2"), ROLE_CULPRIT}};
    verdict.entity_count = verdict.entities_dropped = 1;
    verdict.evidence =
        (struct evidence[]){{SLICE("u"), SLICE("d"), 1, true, EVIDENCE_CAUSE, false}};
    verdict.evidence_count = verdict.evidence_dropped = 1;
    verdict.attributes = (struct attribute[]){{"a", SLICE("b")}};
    verdict.attribute_count = 1;
    encode();
    json_t *line = json_loadb(out.data, out.size, 0, NULL);
    json_t *schema = json_load_file(TESTS_DIR "/../docs/verdict.schema.json", 0, NULL);
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_nonnull(schema);
    json_t *properties = json_object_get(schema, "properties");
    void *field = json_object_iter(line);
    const char *key;
    json_t *value;
    size_t matched = 0;
    json_object_foreach(properties, key, value) {
        if (field == NULL || strcmp(key, json_object_iter_key(field)) != 0)
            continue;
        field = json_object_iter_next(line, field);
        matched++;
    }
    ck_assert_uint_eq(matched, json_object_size(line));
    ck_assert_uint_eq(matched, json_object_size(properties) - 1); // all but `related`
    json_t *required = json_object_get(schema, "required");
    for (size_t i = 0; i < json_array_size(required); i++)
        ck_assert_ptr_nonnull(
            json_object_get(line, json_string_value(json_array_get(required, i))));
    json_decref(line);
    json_decref(schema);
}
END_TEST

static size_t characters(const json_t *value) {
    size_t count = 0;
    for (const char *at = json_string_value(value); *at != '\0'; at++)
        count += ((unsigned char)*at & 0xc0) != 0x80;
    return count;
}

START_TEST(long_texts_keep_within_the_schema) {
    static char text[6000];
    for (size_t i = 0; i + 2 < sizeof text; i += 3)
        memcpy(text + i, "\xe2\x82\xac", 3);
    struct slice slice = {text, sizeof text};
    verdict.headline = verdict.remediation = slice;
    verdict.entities = (struct entity[]){{"node", slice, ROLE_CULPRIT}};
    verdict.entity_count = 1;
    verdict.evidence = (struct evidence[]){{slice, slice, 1, true, EVIDENCE_CAUSE, false}};
    verdict.evidence_count = 1;
    verdict.attributes = (struct attribute[]){{"a", slice}};
    verdict.attribute_count = 1;
    encode();
    json_t *line = json_loadb(out.data, out.size, 0, NULL);
    ck_assert_uint_eq(characters(json_object_get(line, "headline")), 240);
    ck_assert_uint_eq(characters(json_object_get(line, "remediation")), 480);
    json_t *entity = json_array_get(json_object_get(line, "entities"), 0);
    ck_assert_uint_eq(characters(json_object_get(entity, "name")), 253);
    json_t *evidence = json_array_get(json_object_get(line, "evidence_trail"), 0);
    ck_assert_uint_eq(characters(json_object_get(evidence, "uid")), 512);
    ck_assert_uint_eq(characters(json_object_get(evidence, "description")), 480);
    json_t *attributes = json_object_get(line, "attributes");
    ck_assert_uint_eq(characters(json_object_get(attributes, "a")), 1024);
    json_decref(line);
}
END_TEST

// All sinks are given what JSON holds; ids stay as they are.
START_TEST(long_texts_are_told_once) {
    static char text[1000];
    for (size_t i = 0; i + 1 < sizeof text; i++)
        text[i] = "[10.0.0.12]:17567 "[i % 18];
    struct slice long_text = slice_of(text);
    verdict.headline = verdict.remediation = long_text;
    verdict.evidence = (struct evidence[]){{long_text, long_text, 1, true, EVIDENCE_CAUSE, false}};
    verdict.evidence_count = 1;
    struct arena arena;
    arena_init(&arena, 1024);
    verdict_shorten(&verdict, &arena);
    struct slice end = SLICE(" [10.0.0.12]:17567 \xe2\x80\xa6");
    struct slice told[] = {verdict.headline, verdict.remediation, verdict.evidence[0].description};
    for (size_t i = 0; i < 3; i++)
        ck_assert(slice_equal(text_from(told[i], told[i].size - end.size), end));
    ck_assert(slice_equal(verdict.evidence[0].uid, long_text));
    encode();
    json_t *line = json_loadb(out.data, out.size, 0, NULL);
    const char *headline = json_string_value(json_object_get(line, "headline"));
    ck_assert(slice_equal(verdict.headline, slice_of(headline)));
    json_decref(line);
    arena_release(&arena);
}
END_TEST

START_TEST(one_line_whatever_the_texts) {
    verdict.headline = SLICE("a\nb\r\xe2\x80\xa8\xff");
    encode();
    ck_assert_ptr_eq(memchr(out.data, '\n', out.size), out.data + out.size - 1);
    ck_assert_ptr_nonnull(memmem(out.data, out.size, "a\\nb\\r\\u2028\\ufffd", 17));
}
END_TEST

START_TEST(ids) {
    struct verdict other = verdict;
    verdict_set_id(&other, "memory_first_cause", (struct slice[]){SLICE("exp"), SLICE("-7")}, 2);
    ck_assert_str_ne(other.id, verdict.id);
    verdict_set_id(&other, "memory_first_cause", (struct slice[]){SLICE("exp-7")}, 1);
    ck_assert_str_eq(other.id, verdict.id);
    verdict_set_id(&other, "p", NULL, 0);
    ck_assert_str_eq(other.id, "p:148de9c5a7a44d19");
    // The longest pattern fits.
    verdict_set_id(&other, "a234567890123456789012345678901234567890", NULL, 0);
    ck_assert_uint_eq(strlen(other.id), 40 + 1 + 16);
}
END_TEST

START_TEST(severities) {
    static const char *const names[] = {"info", "warning", "error", "critical"};
    for (int i = 0; i < 4; i++)
        ck_assert_str_eq(severity_name((enum severity)i), names[i]);
}
END_TEST

START_TEST(entities_in_order) {
    static const struct entity wanted[] = {
        {"node", SLICE("node-10"), ROLE_CULPRIT},    {"node", SLICE("node-9"), ROLE_CULPRIT},
        {"rank", SLICE("0"), ROLE_CULPRIT},          {"rank", SLICE("9"), ROLE_CULPRIT},
        {"rank", SLICE("10"), ROLE_CULPRIT},         {"rank", SLICE("100"), ROLE_CULPRIT},
        {"rank", SLICE("4000000000"), ROLE_CULPRIT}, {"rank", SLICE("none"), ROLE_CULPRIT},
        {"pod", SLICE("p"), ROLE_SUSPECT},           {"rank", SLICE("2"), ROLE_SUSPECT},
        {"gpu", SLICE("10"), ROLE_VICTIM},           {"gpu", SLICE("9"), ROLE_VICTIM},
    };
    enum { COUNT = sizeof wanted / sizeof wanted[0] };
    struct entity entities[COUNT];
    verdict.entities = entities;
    verdict.entity_count = COUNT;
    for (uint32_t turn = 1; turn < COUNT; turn++) {
        for (uint32_t i = 0; i < COUNT; i++)
            entities[i] = wanted[turn % 2 == 0 ? (i + turn) % COUNT : (COUNT - i + turn) % COUNT];
        verdict_sort_entities(&verdict);
        for (uint32_t i = 0; i < COUNT; i++) {
            ck_assert_str_eq(entities[i].kind, wanted[i].kind);
            ck_assert_str_eq(entities[i].name.data, wanted[i].name.data);
            ck_assert_int_eq(entities[i].role, wanted[i].role);
        }
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("verdict");
    TCase *cases = tcase_create("verdict");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, smallest);
    tcase_add_test(cases, everything);
    tcase_add_test(cases, fields_in_the_schemas_order);
    tcase_add_test(cases, long_texts_keep_within_the_schema);
    tcase_add_test(cases, long_texts_are_told_once);
    tcase_add_test(cases, one_line_whatever_the_texts);
    tcase_add_test(cases, ids);
    tcase_add_test(cases, severities);
    tcase_add_test(cases, entities_in_order);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
