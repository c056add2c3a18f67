// SPDX-License-Identifier: Apache-2.0
// Templates of request bodies: what placeholders become, what is refused and where.
#include "exporters/webhook/template.h"

#include <check.h>
#include <jansson.h>

static struct body_template template;
static struct template_fault fault;
static struct text_list given;
static struct buffer text, line, body;
static struct verdict verdict;
static struct entity entities[12];

static void setup(void) {
    buffer_init(&text, 1 << 20);
    buffer_init(&line, 1 << 20);
    buffer_init(&body, 1 << 20);
    given = (struct text_list){0};
    template = (struct body_template){.piece_count = 0};
    for (unsigned i = 0; i < 12; i++)
        entities[i] = (struct entity){i < 10 ? "rank" : "node", SLICE("7"), ROLE_CULPRIT};
    entities[11].role = ROLE_VICTIM;
    verdict = (struct verdict){.id = "nccl_hang:0123456789abcdef",
                               .pattern = "nccl_hang",
                               .kind = "missing_rank",
                               .action = "inspect_rank",
                               .job = STRING_NONE,
                               .state = VERDICT_RESOLVED,
                               .severity = SEVERITY_CRITICAL,
                               .confidence = 80,
                               .start_ns = UINT64_C(1700000000500000000),
                               .headline = SLICE("a<b> & \"c\"\\\n\xe2\x80\xae"),
                               .remediation = SLICE("Look."),
                               .entities = entities,
                               .entity_count = 12};
}

static void teardown(void) {
    template_release(&template);
    buffer_release(&text);
    buffer_release(&line);
    buffer_release(&body);
}

static void parse(const char *source) {
    bool good = template_parse(&template, slice_of(source), &given, &fault);
    ck_assert_msg(good, "%s: %u:%u: %s", source, fault.line, fault.column, fault.text);
}

// The body of the verdict, without its newline.
static const char *rendered(void) {
    buffer_reset(&line);
    buffer_reset(&body);
    template_render(&template, &verdict, &text, &line);
    ck_assert_uint_eq(text.size, 0);
    ck_assert(template_fill(buffer_slice(&line), &given, &body));
    ck_assert_ptr_eq(memchr(body.data, '\n', body.size), body.data + body.size - 1);
    body.data[body.size - 1] = '\0';
    return body.data;
}

START_TEST(what_becomes_of_placeholders) {
    static const char *const CASES[][2] = {
        {"[\"{{id}}\"]", "[\"nccl_hang:0123456789abcdef\"]"},
        {" {\n \"{{pattern}}\" : [ 1 , null ]\t}\r\n", "{\"nccl_hang\":[1,null]}"},
        {"[\"{{ severity }} x {{state}}\"]", "[\"critical x resolved\"]"},
        {"[\"{{state|open=trigger|updated=trigger|resolved=resolve}}\"]", "[\"resolve\"]"},
        {"[\"{{severity|info=1|*=2}}\"]", "[\"2\"]"},
        {"[\"{{severity|critical=}}\"]", NULL},
        {"[\"{{job|=unknown}}{{job}}\"]", "[\"unknown\"]"},
        {"[\"{{headline}}\"]", "[\"a<b> & \\\"c\\\"\\\\\\\\x0a\\\\u202e\"]"},
        {"[\"{{headline|cut 6|slack}}\"]", "[\"a&lt;b&gt; \\u2026\"]"},
        {"[\"{{remediation|cut 5}}{{remediation|cut 4}}\"]", "[\"Look.Loo\\u2026\"]"},
        {"[\"{{nodes}} {{ranks}}\"]", "[\"7 7, 7, 7, 7, 7, 7, 7, 7 and 2 more\"]"},
        {"[\"{{gpus}}{{pods}}{{evidence}}\"]", "[\"\"]"},
        {"[\"{{confidence}} {{completeness}} {{root}} {{action}}\"]",
         "[\"80 full true inspect_rank\"]"},
        {"[\"{{start}}\"]", "[\"2023-11-14T22:13:20.5Z\"]"},
        {"[\"\\u007b{id}} { {id} \\\"{{kind}}\\\\\"]",
         "[\"\\u007b{id}} { {id} \\\"missing_rank\\\\\"]"},
        {"[\"{{kind|missing_rank=a \xc3\xa4}}\"]", "[\"a \\u00e4\"]"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        if (CASES[i][1] == NULL) {
            ck_assert(!template_parse(&template, slice_of(CASES[i][0]), &given, &fault));
        } else {
            parse(CASES[i][0]);
            ck_assert_str_eq(rendered(), CASES[i][1]);
        }
        template_release(&template);
    }
}
END_TEST

START_TEST(evidence_is_told_once) {
    struct evidence evidence[7] = {{.description = SLICE("a")},
                                   {.description = SLICE("again a"), .repeats = true},
                                   {.description = SLICE("b")}};
    verdict.evidence = evidence;
    verdict.evidence_count = 3;
    parse("[\"{{evidence}}\"]");
    ck_assert_str_eq(rendered(), "[\"a\\nb\"]");
    for (int i = 3; i < 7; i++)
        evidence[i].description = SLICE("c");
    verdict.evidence_count = 7;
    ck_assert_str_eq(rendered(), "[\"a\\nb\\nc\\nand 3 more\"]");
}
END_TEST

START_TEST(values_that_are_given) {
    given = (struct text_list){(const char *const[]){"key=a\"=\\\x01", "page=https://x/"}, 2};
    parse("{\"k\": \"{{key}}\", \"p\": \"{{page}}#{{id}}\"}");
    buffer_reset(&line);
    template_render(&template, &verdict, &text, &line);
    ck_assert_ptr_null(memmem(line.data, line.size, "a\"", 2)); // not before it is sent
    ck_assert_ptr_null(memmem(line.data, line.size, "https", 5));
    ck_assert_str_eq(rendered(),
                     "{\"k\":\"a\\\"=\\\\\\u0001\",\"p\":\"https://x/"
                     "#nccl_hang:0123456789abcdef\"}");
    struct text_list none = {0};
    buffer_reset(&body);
    ck_assert(!template_fill(buffer_slice(&line), &none, &body));
    // What waited may have been written by another version: no mark begins what does not end.
    buffer_reset(&body);
    ck_assert(!template_fill(SLICE("{\"a\":\"\x01key"), &given, &body));
}
END_TEST

START_TEST(names_of_values) {
    ck_assert_ptr_null(template_given_problem("routing_key=x"));
    const char *const wrong[] = {
        "",    "=",    "a",     "a=",      "=a",
        "A=b", "1a=b", "a-b=c", "state=x", "a123456789012345678901234567890123456789b=c"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(template_given_problem(wrong[i]) != NULL, "\"%s\" is taken", wrong[i]);
}
END_TEST

START_TEST(where_it_is_wrong) {
    static const struct {
        const char *source;
        uint32_t line, column;
    } CASES[] = {{"", 1, 1},
                 {"{\n\"a\": \"{{nobody}}\"}", 2, 7},
                 {"[\n\n  \"\xc3\xa4{{id|nothing}}\"]", 3, 6},
                 {"[\"{{id}}\", \"{{id\"]", 1, 13},
                 {"[\"{{id}\"]", 1, 3},
                 {"[\"{{\"]", 1, 3},
                 {"[\"{{}}\"]", 1, 3},
                 {"[\"{{|a=b}}\"]", 1, 3},
                 {"[\"{{state|}}\"]", 1, 3},
                 {"[\"{{state|open=1|updated=2}}\"]", 1, 3},
                 {"[\"{{id|cut 10001}}\"]", 1, 3}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        ck_assert_msg(!template_parse(&template, slice_of(CASES[i].source), &given, &fault), "%s",
                      CASES[i].source);
        ck_assert_msg(fault.line == CASES[i].line && fault.column == CASES[i].column,
                      "%s: %u:%u: %s", CASES[i].source, fault.line, fault.column, fault.text);
        ck_assert_uint_gt(strlen(fault.text), 10);
        template_release(&template);
    }
}
END_TEST

// The longest texts that a verdict can have, in every placeholder that a template can have.
START_TEST(bounds) {
    static char long_text[100000], source[TEMPLATE_SIZE_MAX];
    memset(long_text, '\x02', sizeof long_text);
    struct evidence evidence[5] = {{.description = {long_text, sizeof long_text}}};
    for (int i = 1; i < 5; i++)
        evidence[i] = evidence[0];
    verdict.headline = verdict.remediation = evidence[0].description;
    verdict.evidence = evidence;
    verdict.evidence_count = 5;
    for (int i = 0; i < 12; i++)
        entities[i].name = evidence[0].description;
    verdict.job = intern((struct slice){long_text, 4096});
    struct buffer made = {source, 0, sizeof source, sizeof source, false, NULL, NULL};
    buffer_append_text(&made, "[\"");
    for (int i = 0; i < TEMPLATE_PIECES_MAX - 1; i++)
        buffer_append_text(&made, i % 2 == 0 ? "{{evidence|slack}}" : "{{who}}");
    buffer_append_text(&made, "\"]");
    ck_assert(template_parse(&template, buffer_slice(&made), &given, &fault));
    buffer_release(&line);
    buffer_init(&line, 8 << 20);
    template_render(&template, &verdict, &text, &line);
    ck_assert(!line.failed && !text.failed);
    json_t *document = json_loadb(line.data, line.size, 0, NULL);
    ck_assert_ptr_nonnull(document);
    json_decref(document);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("template");
    TCase *cases = tcase_create("template");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, what_becomes_of_placeholders);
    tcase_add_test(cases, evidence_is_told_once);
    tcase_add_test(cases, values_that_are_given);
    tcase_add_test(cases, names_of_values);
    tcase_add_test(cases, where_it_is_wrong);
    tcase_add_test(cases, bounds);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
