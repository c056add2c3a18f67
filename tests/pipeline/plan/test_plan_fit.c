// SPDX-License-Identifier: Apache-2.0
// Do the stages of a pipeline fit together?
#include "tests/pipeline/plan/plan_fixture.h"

// A configuration whose one pipeline holds `body`.
static const char *with(const char *processors, const char *body) {
    return arena_format(&arena,
                        "receivers: {tail: {include: a}}\n"
                        "exporters: {sink: , raw: }\n"
                        "processors: {%s}\n"
                        "service:\n"
                        "  pipelines:\n"
                        "    all: {receivers: tail, exporters: raw}\n"
                        "    p:\n"
                        "      receivers: [tail]\n%s",
                        processors, body);
}

static const char SIX[] = "job_filter rank_group align spike_detect first_cause phase_attribution";

START_TEST(preset) {
    builds(with("", "      preset: memory\n      exporters: [sink]\n"));
    ck_assert_str_eq(processors_of(1), SIX);
    ck_assert_str_eq(processors_of(0), "");
    const struct plan_component *finder = component("spike_detect", COMPONENT_PROCESSOR);
    ck_assert_double_eq(((const struct finder_config *)finder->config)->min_ratio, 0.10);
    ck_assert_uint_eq(finder->where.line, 9);
    ck_assert_uint_eq(finder->where.column, 15);
    ck_assert(finder->used);
    ck_assert_ptr_null(finder->node);
}
END_TEST

START_TEST(preset_uses_what_is_defined) {
    builds(with("spike_detect: {min_ratio: 0.5}, hang: , align/b: ",
                "      preset: memory\n      processors: [hang, align/b]\n"
                "      exporters: [sink]\n"
                "    q: {receivers: tail, preset: memory, exporters: sink}\n"));
    ck_assert_str_eq(processors_of(1), arena_format(&arena, "%s hang align/b", SIX));
    ck_assert_str_eq(processors_of(2), SIX);
    ck_assert_uint_eq(plan.component_count, 3 + 3 + 5);
    ck_assert_uint_eq(plan.pipelines[1].processors[0], plan.pipelines[2].processors[0]);
    const struct plan_component *finder = component("spike_detect", COMPONENT_PROCESSOR);
    ck_assert_double_eq(((const struct finder_config *)finder->config)->min_ratio, 0.5);
}
END_TEST

START_TEST(preset_none_and_wrong) {
    builds(with("hang: ", "      preset: none\n      processors: hang\n      exporters: [sink]\n"));
    ck_assert_str_eq(processors_of(1), "hang");
    refuses(with("hang: ",
                 "      preset: memroy\n      processors: hang\n"
                 "      exporters: [sink]\n"),
            "c.yaml:9:15: service.pipelines.p.preset: 'memroy' is not one of them; did you mean "
            "'memory'? It must be none, memory or all\n");
    // Who would stand there cannot be told, so nobody is said to be missing or not used.
    refuses(with("hang: ", "      preset: everything\n      exporters: [sink]\n"),
            "c.yaml:9:15: service.pipelines.p.preset: 'everything' is not one of them; it must be "
            "none, memory or all\n");
    refuses(with("align: ",
                 "      preset: memory\n      processors: [align]\n"
                 "      exporters: [sink]\n"),
            "c.yaml:10:20: service.pipelines.p.processors[0]: 'align' stands here twice (a preset "
            "counts); list it once\n");
}
END_TEST

START_TEST(preset_of_a_smaller_build) {
    static const struct component_type *const FEW[] = {&TAIL, &JOBS, &GROUP, &RAW};
    struct plan_input input = {
        .components = {FEW, 4},
        .text =
            "receivers: {tail: {include: a}}\nexporters: {raw: }\nservice: {pipelines: {p: "
            "{receivers: tail, preset: memory, exporters: raw}}}\n",
        .text_name = "c.yaml"};
    ck_assert_int_eq(plan_build(&plan, &input, &problems, &warnings, &error), STATUS_OK);
    ck_assert_str_eq(processors_of(0), "job_filter rank_group");
}
END_TEST

START_TEST(needs) {
    refuses(with("", "      exporters: [raw, sink]\n"),
            "c.yaml:9:24: service.pipelines.p.exporters[1]: sink needs verdicts, which no stage "
            "before it gives; add the processor phase_attribution to the pipeline, "
            "or write preset: memory\n");
    refuses(with("", "      exporters: sink\n"),
            "c.yaml:9:18: service.pipelines.p.exporters: sink needs verdicts, which no stage "
            "before it gives; add the processor phase_attribution to the pipeline, "
            "or write preset: memory\n");
    refuses(with("rank_group: , spike_detect: , align: , job_filter: ",
                 "      processors: [job_filter, spike_detect, align, rank_group]\n"
                 "      exporters: [raw]\n"
                 "    q: {receivers: tail, preset: memory, exporters: sink}\n"),
            "c.yaml:9:32: service.pipelines.p.processors[1]: spike_detect needs samples of each "
            "rank, which no stage before it gives; move rank_group before it\n"
            "c.yaml:9:32: service.pipelines.p.processors[1]: spike_detect needs a clock offset for "
            "each rank, which no stage before it gives; move align before it\n");
    refuses(with("align: ",
                 "      processors: align\n      exporters: [raw]\n    q: {receivers: "
                 "tail, preset: memory, exporters: sink}\n"),
            "c.yaml:9:19: service.pipelines.p.processors: align needs samples of each rank, which "
            "no stage before it gives; put the processor rank_group before it\n");
}
END_TEST

// One mistake, one problem: what was missed once counts as given for the stages behind.
START_TEST(no_follow_ups) {
    refuses(with("rank_group: , align: , spike_detect: , first_cause: , phase_attribution: ",
                 "      processors: [rank_group, align, spike_detect, first_cause, "
                 "phase_attribution]\n      exporters: [sink]\n"),
            "c.yaml:9:20: service.pipelines.p.processors[0]: rank_group needs the choice of jobs, "
            "which no stage before it gives; put the processor job_filter before it\n");
    refuses(with("hang: ", "      processors: [hnag, hang]\n      exporters: [sink]\n"),
            "c.yaml:9:20: service.pipelines.p.processors[0]: 'hnag' is not defined under "
            "processors; did you mean 'hang'?\n");
    refuses(with("hagn: ", "      processors: [hagn]\n      exporters: [sink]\n"),
            "c.yaml:3:14: processors.hagn: there is no processor 'hagn'; did you mean 'hang'?\n");
}
END_TEST

START_TEST(needs_of_a_preset) {
    static const struct component_type EAGER = {.name = "job_filter",
                                                .summary = "Wants too much.",
                                                .kind = COMPONENT_PROCESSOR,
                                                .presets = 1u << PRESET_MEMORY,
                                                .needs = FACT_SPIKES,
                                                .gives = FACT_JOBS};
    const struct component_type *types[sizeof TYPES / sizeof TYPES[0]];
    memcpy(types, TYPES, sizeof types);
    types[1] = &EAGER;
    struct plan_input input = {
        .components = {types, BUILD.count},
        .text =
            "receivers: {tail: {include: a}}\nexporters: {sink: }\nservice: {pipelines: {p: "
            "{receivers: tail, preset: memory, exporters: sink}}}\n",
        .text_name = "c.yaml"};
    ck_assert_int_eq(plan_build(&plan, &input, &problems, &warnings, &error), STATUS_CONFIG);
    ck_assert_str_eq(list_text(&problems),
                     "c.yaml:3:52: service.pipelines.p.preset: job_filter needs a memory spike for "
                     "each rank, which no stage before it gives; move spike_detect before it\n");
}
END_TEST

START_TEST(list_of_wrong_things) {
    refuses(with("hang: ", "      processors: [hang, [a], ~]\n      exporters: {a: 1}\n"),
            "c.yaml:9:26: service.pipelines.p.processors[1]: is a list; each item must be a text\n"
            "c.yaml:9:31: service.pipelines.p.processors[2]: is empty; each item must be a text\n"
            "c.yaml:10:18: service.pipelines.p.exporters: must be a list of texts, not a map\n");
}
END_TEST

START_TEST(names) {
    ck_assert_str_eq(component_kind_name(COMPONENT_EXTENSION), "extension");
    ck_assert_str_eq(stage_fact_name(FACT_SERIES), "samples of each rank");
    ck_assert_ptr_eq(component_find(BUILD, COMPONENT_PROCESSOR, SLICE("align")), &ALIGN);
    ck_assert_ptr_null(component_find(BUILD, COMPONENT_EXPORTER, SLICE("align")));
    ck_assert_ptr_null(component_find(BUILD, COMPONENT_PROCESSOR, SLICE("alig")));
}
END_TEST

static void add_tests(TCase *cases) {
    tcase_add_test(cases, preset);
    tcase_add_test(cases, preset_uses_what_is_defined);
    tcase_add_test(cases, preset_none_and_wrong);
    tcase_add_test(cases, preset_of_a_smaller_build);
    tcase_add_test(cases, needs);
    tcase_add_test(cases, no_follow_ups);
    tcase_add_test(cases, needs_of_a_preset);
    tcase_add_test(cases, list_of_wrong_things);
    tcase_add_test(cases, names);
}

int main(void) {
    return run_plan_suite("plan_fit", add_tests);
}
