// SPDX-License-Identifier: Apache-2.0
// Incidents on the page: their order, their lanes, what the launcher said.
#include "tests/exporters/report/page_fixture.h"

// A link fails, a rank hangs behind it, a pod is evicted behind that.
static struct verdict chain[3];

static void chain_make(void) {
    static struct entity of_link[] = {{"gpu", SLICE("node-b/0000:45:00"), ROLE_CULPRIT},
                                      {"node", SLICE("node-b"), ROLE_SUSPECT}};
    static struct entity of_hang[] = {{"rank", SLICE("3"), ROLE_CULPRIT}};
    static struct entity of_pod[] = {{"node", SLICE("node-b"), ROLE_CULPRIT},
                                     {"pod", SLICE("train/worker-1"), ROLE_VICTIM}};
    static struct evidence of_ranks[] = {{SLICE("fr:1"), SLICE("rank 1 started all_reduce 7"),
                                          START + 400 * MS, true, EVIDENCE_EFFECT, false},
                                         {SLICE("fr:2"), SLICE("rank 0 started all_reduce 7"),
                                          START + 500 * MS, true, EVIDENCE_EFFECT, false}};
    static struct evidence of_aer[] = {
        {SLICE("kmsg:1"), SLICE("fatal error: DLP"), START, true, EVIDENCE_CAUSE, false}};
    static struct related relations[3][2];
    static struct attribute roots[2] = {{"culprit.root", SLICE("true")},
                                        {"culprit.root", SLICE("false")}};
    chain[0] = verdict_make("The link failed", SEVERITY_CRITICAL);
    chain[1] = verdict_make("Rank 3 never came", SEVERITY_ERROR);
    chain[2] = verdict_make("The pod was evicted", SEVERITY_CRITICAL);
    chain[0].entities = of_link, chain[0].entity_count = 2;
    chain[1].entities = of_hang, chain[1].entity_count = 1;
    chain[2].entities = of_pod, chain[2].entity_count = 2;
    chain[0].evidence = of_aer, chain[0].evidence_count = 1;
    chain[1].evidence = of_ranks, chain[1].evidence_count = 2;
    const uint64_t from_ms[] = {0, 400, 700}, to_ms[] = {700, 92000, 142000};
    for (int i = 0; i < 3; i++) {
        chain[i].pattern = "pcie_aer";
        chain[i].start_ns = START + from_ms[i] * MS;
        chain[i].end_ns = START + to_ms[i] * MS;
        chain[i].attributes = &roots[i > 0];
        chain[i].attribute_count = 1;
        chain[i].related = relations[i];
        chain[i].related_count = i == 2 ? 1 : 2;
    }
    memcpy(relations[0][0].id, chain[1].id, sizeof chain[1].id);
    memcpy(relations[0][1].id, chain[2].id, sizeof chain[2].id);
    memcpy(relations[1][0].id, chain[0].id, sizeof chain[0].id);
    memcpy(relations[1][1].id, chain[2].id, sizeof chain[2].id);
    memcpy(relations[2][0].id, chain[1].id, sizeof chain[1].id);
    relations[0][0].relation = relations[1][1].relation = RELATION_CAUSES;
    relations[0][1].relation = RELATION_SAME_INCIDENT;
    relations[1][0].relation = relations[2][0].relation = RELATION_CAUSED_BY;
}

// The words stand on the page, each behind the one before.
static void in_this_order(const char *page, const char *const *words) {
    for (const char *at = page; *words != NULL; words++) {
        const char *next = strstr(at, *words);
        ck_assert_msg(next != NULL, "%s does not stand where it should", *words);
        at = next + 1;
    }
}

START_TEST(an_incident_is_told_in_one_direction) {
    ranks_make(4, 57, -1, -1, SLICE("a"));
    chain_make();
    input.verdicts = chain;
    input.verdict_count = 3;
    const char *page = page_made();
    markup_check(page);
    CONTAINS(page, "<h1>What broke in job llama</h1>");
    in_this_order(page, (const char *const[]){
                            "class=\"headline\">The link failed",
                            "<dt>culprit</dt><dd>gpu node-b/0000:45:00",
                            "<dt>what next</dt>",
                            "<dt>took along</dt><dd>3 ranks",
                            "<svg class=\"lanes\"",
                            "<h3>What followed from it</h3>",
                            "data-step=\"2\">Rank 3 never came",
                            "Began 400 ms after it, last seen 1 min 32 s after it; struck ranks 0 "
                            "and 1.",
                            "data-step=\"3\">The pod was evicted",
                            "struck pod train/worker-1; behind step 2.",
                            "Evidence: 1 observation<",
                            "Memory: no rank grew",
                            NULL,
                        });
    LACKS(page, "Also found");
    LACKS(page, "<section class=\"list\"");
    ck_assert_uint_eq(count_of(page, "<article "), 2);
    // Evidence in the verdict's order.
    ck_assert(strstr(page, "rank 1 started all_reduce 7 <code>") <
              strstr(page, "rank 0 started all_reduce 7 <code>"));
}
END_TEST

START_TEST(lanes_lead_from_cause_to_consequence) {
    ranks_make(4, 57, -1, -1, SLICE("a"));
    chain_make();
    input.verdicts = chain;
    input.verdict_count = 3;
    const char *page = page_made();
    in_this_order(page, (const char *const[]){
                            "<svg class=\"lanes\"",
                            ">began</text>",
                            ">+400 ms</text>",
                            ">+700 ms</text>",
                            ">+1 min 32 s</text>",
                            ">+2 min 22 s</text>",
                            "<text class=\"lane blamed\" x=\"0\" y=\"14\"><title>gpu "
                            "node-b/0000:45:00</title>gpu node-b/0000:45:00</text>",
                            "<title>node node-b</title>",
                            "<title>pod train/worker-1</title>",
                            "<title>rank 3</title>",
                            "<title>ranks 0 and 1</title>",
                            "</svg>\n<figcaption",
                            NULL,
                        });
    ck_assert_uint_eq(count_of(page, "<text class=\"lane"), 5);
    // From 1 to 2 along and down, from 2 to 3 along and up.
    ck_assert_uint_eq(count_of(page, "<line class=\"arrow\""), 4);
    ck_assert_uint_eq(count_of(page, "overflow=\"visible\"><path class=\"head\""), 2);
    ck_assert_uint_eq(count_of(page, "<g class=\"step") - count_of(page, ">a step began"), 3);
    CONTAINS(page, "<title>2: 2026-11-21 08:06:52.632 UTC: Rank 3 never came</title>");
    CONTAINS(page,
             "<g class=\"seen\" role=\"img\"><title>2026-11-21 08:06:52.232 UTC: fatal "
             "error: DLP</title><path class=\"cause\"");
    CONTAINS(page, "<circle class=\"effect\"");
    // The node is blamed by the last step, so the suspicion of the first is not drawn.
    LACKS(page, "span suspect");
}
END_TEST

START_TEST(lanes_are_bounded_and_their_texts_cannot_act) {
    enum { MANY = 40 };
    static struct entity entities[MANY];
    static struct evidence evidence[MANY];
    ranks_make(4, 57, -1, -1, SLICE("a"));
    chain_make();
    for (int i = 0; i < MANY; i++) {
        entities[i] = (struct entity){"node", slice_of(i % 2 == 0 ? EVIL : "x"), ROLE_SUSPECT};
        entities[i].name.size -= (size_t)(i % 2 == 0 ? i : 0);
        evidence[i] = (struct evidence){
            .uid = SLICE("u"), .description = SLICE(EVIL), .time_ns = START, .has_time = true};
    }
    chain[0].entities = entities;
    chain[0].evidence = evidence;
    chain[0].entity_count = chain[0].evidence_count = MANY;
    chain[0].headline = chain[1].headline = SLICE(EVIL);
    input.verdicts = chain;
    input.verdict_count = 3;
    const char *page = page_made();
    markup_check(page);
    LACKS(page, "<img");
    ck_assert_uint_le(count_of(page, "<text class=\"lane"), 9);
    CONTAINS(page, " more that are named have no lane.");
    // All at one moment; the other is the legend's.
    ck_assert_uint_eq(count_of(page, "<path class=\"cause\""), 2);
    CONTAINS(page, "; and 39 more</title>");
}
END_TEST

// The number stands on the rank that did not come, not on the node that it is on; what is drawn is
// named below, and nothing else is.
START_TEST(a_suspected_rank_has_the_number_of_its_hang) {
    static struct entity entities[] = {{"node", SLICE("node-a"), ROLE_SUSPECT},
                                       {"rank", SLICE("1"), ROLE_SUSPECT},
                                       {"rank", SLICE("0"), ROLE_VICTIM}};
    ranks_make(4, 57, -1, -1, SLICE("a"));
    chain_make();
    chain[0].entities = entities, chain[0].entity_count = 3;
    chain[0].related_count = chain[0].evidence_count = 0;
    input.verdicts = chain;
    input.verdict_count = 1;
    const char *page = page_made();
    CONTAINS(page, "<title>node node-a</title>");
    CONTAINS(page, "<text class=\"lane\" x=\"0\" y=\"72\"><title>rank 1</title>");
    CONTAINS(page, "y=\"90\" overflow=\"visible\"><g class=\"step first\" role=\"img\">");
    in_this_order(page, (const char *const[]){
                            "<ul class=\"legend\">", "</svg>a step began, by its number</li>",
                            "</svg>suspected</li>", "</svg>struck</li>", "</ul>Time runs", NULL});
    LACKS(page, "</svg>blamed</li>");
    LACKS(page, "</svg>led to</li>");
    LACKS(page, "evidence of a cause");
}
END_TEST

START_TEST(of_very_many_incidents_the_first_are_drawn) {
    enum { INCIDENTS = 60 };
    static struct verdict many[INCIDENTS];
    static char names[INCIDENTS][16];
    static struct entity nodes[INCIDENTS];
    for (int i = 0; i < INCIDENTS; i++) {
        snprintf(names[i], sizeof names[i], "n%d", i);
        nodes[i] = (struct entity){"node", slice_of(names[i]), ROLE_CULPRIT};
        many[i] = verdict_make(names[i], SEVERITY_ERROR);
        many[i].pattern = "pod_evicted";
        many[i].entities = &nodes[i], many[i].entity_count = 1;
    }
    input.verdicts = many;
    input.verdict_count = INCIDENTS;
    const char *page = page_made();
    markup_check(page);
    ck_assert_uint_eq(count_of(page, "<svg class=\"lanes\""), 50);
    ck_assert_uint_eq(count_of(page, "<article class=\"card error\""), INCIDENTS);
}
END_TEST

START_TEST(the_launcher_is_quoted_where_it_names_another) {
    ranks_make(4, 57, -1, -1, SLICE("a"));
    struct entity entities[] = {{"rank", SLICE("1"), ROLE_CULPRIT},
                                {"rank", SLICE("3"), ROLE_VICTIM}};
    struct attribute said = {"launcher.root_cause", SLICE("3")};
    struct verdict verdict = verdict_make("Rank 1 raised", SEVERITY_ERROR);
    verdict.pattern = "first_exit";
    verdict.entities = entities;
    verdict.entity_count = 2;
    verdict.attributes = &said;
    verdict.attribute_count = 1;
    input.verdicts = &verdict;
    input.verdict_count = 1;
    CONTAINS(page_made(), "<dt>launcher</dt><dd>torchrun named rank 3; that rank is a victim");
    said.value = SLICE("rank 1");
    LACKS(page_made(), "torchrun named");
    said.value = SLICE("rank 7 <b>");
    CONTAINS(page_made(), "torchrun named rank 7 &lt;b&gt;; it calls that the root cause");
}
END_TEST

START_TEST(what_is_over_comes_last) {
    ranks_make(4, 57, -1, -1, SLICE("a"));
    struct entity entities[] = {{"gpu", SLICE("GPU-7"), ROLE_CULPRIT},
                                {"node", SLICE("node-b"), ROLE_CULPRIT},
                                {"rank", SLICE("3"), ROLE_VICTIM}};
    struct verdict verdicts[] = {verdict_make("it was hot", SEVERITY_ERROR),
                                 verdict_make("a note", SEVERITY_INFO),
                                 verdict_make("GPU 7 fell off the bus", SEVERITY_CRITICAL)};
    for (int i = 0; i < 3; i++)
        verdicts[i].pattern = "gpu_fault";
    verdicts[2].entities = entities;
    verdicts[2].entity_count = 3;
    verdicts[2].start_ns += 5 * MS;
    verdicts[2].job = STRING_NONE; // the machine's, so the only job's
    verdicts[0].state = VERDICT_RESOLVED;
    input.verdicts = verdicts;
    input.verdict_count = 3;
    const char *page = page_made();
    markup_check(page);
    in_this_order(page,
                  (const char *const[]){"<h2 id=\"incidents\">3 incidents</h2>", ">GPU 7 fell",
                                        ">a note", ">it was hot", "Incident 1 of 3", "GPU 7 fell",
                                        "a note", "it was hot", "Memory: no rank grew", NULL});
    CONTAINS(page, "<dt>culprit</dt><dd>gpu GPU-7, node node-b</dd>");
    CONTAINS(page, "<dt>victim</dt><dd>rank 3</dd>");
    CONTAINS(page,
             "<dt>began</dt><dd><time datetime=\"2026-11-21T08:06:52.237Z\">"
             "2026-11-21 08:06:52.237 UTC</time></dd>");
    CONTAINS(page,
             "<dt>last seen</dt><dd><time datetime=\"2026-11-21T08:06:53.232Z\">"
             "2026-11-21 08:06:53.232 UTC</time>, 995 ms after it began</dd>");
    CONTAINS(page, "</svg>error, resolved</span>");
    LACKS(page, "M5 8.3l2 2 4-4.5\"/></svg>error"); // no tick
    CONTAINS(page, "<article class=\"card critical\" id=\"v0\">");
    LACKS(page, "Other jobs");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("page_story");
    TCase *cases = tcase_create("page_story");
    tcase_add_checked_fixture(cases, page_setup, page_teardown);
    tcase_add_test(cases, an_incident_is_told_in_one_direction);
    tcase_add_test(cases, lanes_lead_from_cause_to_consequence);
    tcase_add_test(cases, lanes_are_bounded_and_their_texts_cannot_act);
    tcase_add_test(cases, a_suspected_rank_has_the_number_of_its_hang);
    tcase_add_test(cases, of_very_many_incidents_the_first_are_drawn);
    tcase_add_test(cases, the_launcher_is_quoted_where_it_names_another);
    tcase_add_test(cases, what_is_over_comes_last);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
