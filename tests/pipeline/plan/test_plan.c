// SPDX-License-Identifier: Apache-2.0
#include "tests/pipeline/plan/plan_fixture.h"
#include "tests/support/temporary.h"

#include <stdio.h>
#include <unistd.h>

static const char GOOD[] =
    "receivers:\n"
    "  tail: {include: [a, b]}\n"
    "  tail/more: {include: c, start_at: end, max_line_size: 2KiB}\n"
    "processors:\n"
    "  hang:\n"
    "  hang/late:\n"
    "exporters:\n"
    "  sink: {path: out, timeout: 1m, rotation: {max_backups: 3}}\n"
    "  raw:\n"
    "extensions:\n"
    "  health: {}\n"
    "service:\n"
    "  extensions: [health]\n"
    "  batch_size: 64\n"
    "  telemetry: {logs: {level: warn, encoding: json}}\n"
    "  pipelines:\n"
    "    verdicts:\n"
    "      receivers: [tail, tail/more]\n"
    "      processors: [hang/late, hang]\n"
    "      exporters: [sink]\n"
    "      evaluate_every: 2s\n"
    "      settle: 0s\n"
    "    forward: {receivers: tail, exporters: raw}\n";

START_TEST(everything_bound) {
    builds(GOOD);
    ck_assert_uint_eq(warnings.count, 0);
    ck_assert_uint_eq(plan.component_count, 7);
    static const char *const ORDER[] = {"tail", "tail/more", "hang",  "hang/late",
                                        "sink", "raw",       "health"};
    for (uint32_t i = 0; i < 7; i++) {
        ck_assert_str_eq(plan.components[i].id, ORDER[i]);
        ck_assert(plan.components[i].used);
    }
    const struct tail_config *more = component("tail/more", COMPONENT_RECEIVER)->config;
    ck_assert_uint_eq(more->include.count, 1);
    ck_assert_int_eq(more->start_at, 1);
    ck_assert_uint_eq(more->max_line_size.bytes, 2048);
    const struct plan_component *sink = component("sink", COMPONENT_EXPORTER);
    const struct sink_config *config = sink->config;
    ck_assert_str_eq(config->path, "out");
    ck_assert_int_eq(config->timeout.ns, INT64_C(60000000000));
    ck_assert_int_eq(config->rotation.max_backups, 3);
    ck_assert_uint_eq(config->rotation.max_size.bytes, 100 << 20);
    ck_assert_str_eq(sink->where.file, "c.yaml");
    ck_assert_uint_eq(sink->where.line, 8);
    ck_assert_uint_eq(sink->where.column, 3);
}
END_TEST

START_TEST(pipelines_and_service) {
    builds(GOOD);
    ck_assert_int_eq(plan.settings.batch_size, 64);
    ck_assert_int_eq((enum log_level)plan.settings.telemetry.logs.level, LOG_WARN);
    ck_assert_int_eq((enum log_encoding)plan.settings.telemetry.logs.encoding, LOG_JSON);
    ck_assert_uint_eq(plan.pipeline_count, 2);
    const struct plan_pipeline *verdicts = &plan.pipelines[0];
    ck_assert_str_eq(verdicts->name, "verdicts");
    ck_assert_uint_eq(verdicts->receiver_count, 2);
    ck_assert_uint_eq(verdicts->receivers[1], 1);
    ck_assert_str_eq(processors_of(0), "hang/late hang");
    ck_assert_uint_eq(verdicts->exporter_count, 1);
    ck_assert_int_eq(verdicts->timing.evaluate_every.ns, INT64_C(2000000000));
    ck_assert_int_eq(verdicts->timing.settle.ns, 0);
    ck_assert_int_eq(verdicts->timing.allowed_lateness.ns, INT64_C(2000000000));
    ck_assert_int_eq(verdicts->timing.idle_timeout.ns, INT64_C(60000000000));
    ck_assert_str_eq(plan.pipelines[1].name, "forward");
    ck_assert_uint_eq(plan.pipelines[1].processor_count, 0);
    ck_assert_uint_eq(plan.pipelines[1].receivers[0], 0);
    ck_assert_uint_eq(plan.pipelines[1].where.line, 23);
}
END_TEST

START_TEST(service_defaults) {
    builds(
        "receivers: {tail: {include: a}}\nexporters: {raw: }\n"
        "service: {pipelines: {p: {receivers: [tail], exporters: [raw]}}}\n");
    ck_assert_int_eq(plan.settings.batch_size, 1024);
    ck_assert_int_eq((enum log_level)plan.settings.telemetry.logs.level, LOG_INFO);
    ck_assert_int_eq((enum log_encoding)plan.settings.telemetry.logs.encoding, LOG_AUTO);
}
END_TEST

START_TEST(nothing_given) {
    ck_assert_int_eq(build_input((struct plan_input){0}), STATUS_USAGE);
    ck_assert_str_eq(error.message, "no configuration is given; name one with --config");
    static const char NO_PIPELINE[] =
        "service.pipelines: no pipeline is defined; add one with receivers and exporters\n";
    refuses("", arena_format(&arena, "c.yaml:1:1: %s", NO_PIPELINE));
    refuses("# only\nservice:\n", arena_format(&arena, "c.yaml:2:1: %s", NO_PIPELINE));
    refuses("service:\n  pipelines:\n", arena_format(&arena, "c.yaml:2:3: %s", NO_PIPELINE));
    refuses("service: {pipelines: {}}\n", arena_format(&arena, "c.yaml:1:11: %s", NO_PIPELINE));
    refuses("service: 5\n", "c.yaml:1:10: service: must be a map of options, not a text\n");
    refuses("service: {pipelines: [a]}\n",
            "c.yaml:1:22: service.pipelines: must be a map of pipelines by name, not a list\n");
    refuses("receivers: []\n",
            "c.yaml:1:1: service.pipelines: no pipeline is defined; add one with receivers and "
            "exporters\n"
            "c.yaml:1:12: receivers: must be a map of receivers by id, not a list\n");
    ck_assert_str_eq(error.message, "the configuration has 2 problems");
    refuses("a: [\n", "c.yaml:2:1: not YAML: flow sequence without a closing bracket\n");
}
END_TEST

// The service part of most cases: line 1 to 3 are theirs.
#define SERVICE                                                                                    \
    "service: {pipelines: {p: {receivers: [tail], exporters: [raw]}}}\n"                           \
    "exporters: {raw: }\n"

START_TEST(unknown_components) {
    refuses("receivers: {tial: {include: a}, tail: {include: a}}\n" SERVICE,
            "c.yaml:1:13: receivers.tial: there is no receiver 'tial'; did you mean 'tail'?\n");
    refuses("receivers: {zzz/x: {include: a}, tail: {include: a}}\n" SERVICE,
            "c.yaml:1:13: receivers.zzz/x: there is no receiver 'zzz'; `culprit components` lists "
            "what there is\n");
    refuses("receivers: {sink: , tail: {include: a}}\n" SERVICE,
            "c.yaml:1:13: receivers.sink: sink is an exporter, not a receiver; put it under "
            "exporters\n");
    refuses("processors: {tail: }\nreceivers: {tail: {include: a}}\n" SERVICE,
            "c.yaml:1:14: processors.tail: tail is a receiver, not a processor; put it under "
            "receivers\n");
    static const char ID[] = "an id is TYPE or TYPE/NAME of letters, digits, '_', '-' and '.'\n";
    refuses("receivers: {tail/: {include: a}, tail: {include: a}}\n" SERVICE,
            arena_format(&arena, "c.yaml:1:13: receivers.tail/: %s", ID));
    refuses("receivers: {tail/a/b: {include: a}, tail: {include: a}}\n" SERVICE,
            arena_format(&arena, "c.yaml:1:13: receivers.tail/a/b: %s", ID));
    refuses("receivers: {\"tail/a b\": {include: a}, tail: {include: a}}\n" SERVICE,
            arena_format(&arena, "c.yaml:1:13: receivers.tail/a b: %s", ID));
}
END_TEST

START_TEST(unknown_keys) {
    refuses("receivers: {tail: {include: a, strat_at: end}}\nrecievers: {}\n" SERVICE,
            "c.yaml:1:32: receivers.tail.strat_at: unknown key; did you mean 'start_at'? Valid "
            "keys: include, start_at, max_line_size\n"
            "c.yaml:2:1: recievers: unknown key; did you mean 'receivers'? Valid keys: receivers, "
            "processors, exporters, extensions, service, tests, forms\n");
    refuses(
        "receivers: {tail: {include: a}}\nexporters: {raw: {path: x}}\n"
        "service: {batchsize: 5, telemetry: {traces: {}}, pipelines: {p: {receiver: [tail], "
        "receivers: [tail], exporters: [raw]}}}\n",
        "c.yaml:2:19: exporters.raw.path: unknown key; there are no options here\n"
        "c.yaml:3:11: service.batchsize: unknown key; did you mean 'batch_size'? Valid keys: "
        "extensions, telemetry, control, batch_size, threads, checkpoint_interval, "
        "shutdown_timeout, "
        "pipelines\n"
        "c.yaml:3:37: service.telemetry.traces: unknown key; valid keys: logs, metrics\n"
        "c.yaml:3:66: service.pipelines.p.receiver: unknown key; did you mean 'receivers'? "
        "Valid keys: receivers, preset, processors, exporters, evaluate_every, "
        "allowed_lateness, settle, idle_timeout, caught_up_timeout, max_jump\n");
}
END_TEST

START_TEST(many_at_once) {
    refuses(
        "exporters:\n"
        "  sink: {rotation: {max_size: 10MB}, timeout: 9h}\n"
        "  raw:\n"
        "receivers:\n"
        "  tail:\n"
        "    start_at: begining\n"
        "  tail/x: {include: [a]}\n"
        "service:\n"
        "  batch_size: 0\n"
        "  pipelines:\n"
        "    p:\n"
        "      receivers: [tial]\n"
        "      processors: [align]\n"
        "      exporters: [raw, sink, raw]\n"
        "      evaluate_every: 1ms\n"
        "    q:\n"
        "    r s: {receivers: [], exporters: [raw]}\n",
        "c.yaml:2:31: exporters.sink.rotation.max_size: '10MB' has a unit that is not used "
        "here; use MiB: 10MiB\n"
        "c.yaml:2:47: exporters.sink.timeout: '9h' is out of range; it must be between 100ms "
        "and 1h, or never\n"
        "c.yaml:5:3: receivers.tail.include: is required (list of texts): files to read\n"
        "c.yaml:6:15: receivers.tail.start_at: 'begining' is not one of them; did you mean "
        "'beginning'? It must be beginning or end\n"
        "c.yaml:9:15: service.batch_size: '0' is out of range; it must be between 1 and "
        "65536\n"
        "c.yaml:12:19: service.pipelines.p.receivers[0]: 'tial' is not defined under "
        "receivers; did you mean 'tail'?\n"
        "c.yaml:13:20: service.pipelines.p.processors[0]: 'align' is not defined under "
        "processors; add 'align:' there\n"
        "c.yaml:14:30: service.pipelines.p.exporters[2]: 'raw' stands here twice (a preset "
        "counts); list it once\n"
        "c.yaml:15:23: service.pipelines.p.evaluate_every: '1ms' is out of range; it must be "
        "between 10ms and 24h\n"
        "c.yaml:16:5: service.pipelines.q.receivers: is required (list of texts): ids of the "
        "receivers it reads\n"
        "c.yaml:16:5: service.pipelines.q.exporters: is required (list of texts): ids of the "
        "exporters it writes to\n"
        "c.yaml:17:5: service.pipelines.r s: a pipeline's name has letters, digits, '_', '-', "
        "'.' and '/'\n"
        "c.yaml:17:22: service.pipelines.r s.receivers: names no receiver; a pipeline needs at "
        "least one\n");
    ck_assert_str_eq(error.message, "the configuration has 13 problems");
}
END_TEST

static const char *printed_warnings(void) {
    struct buffer text;
    buffer_init(&text, 16384);
    problem_list_print(&warnings, &text);
    const char *copy = arena_text(&arena, buffer_slice(&text));
    buffer_release(&text);
    return copy;
}

// What no pipeline uses may be kept for later.
START_TEST(unused) {
    builds(
        "receivers: {tail: {include: a}}\nprocessors: {hang: , hang/x: }\n"
        "extensions: {health: , health/b: }\nexporters: {raw: }\n"
        "service: {extensions: [health/b], pipelines: {p: {receivers: [tail], "
        "processors: [hang/x], exporters: [raw]}}}\n");
    ck_assert_str_eq(printed_warnings(),
                     "c.yaml:2:14: processors.hang: is not started, as no pipeline uses it; add it "
                     "to one or remove it\n"
                     "c.yaml:3:14: extensions.health: is not started, as service.extensions does "
                     "not list it; add it there or remove it\n");
    // Its options are checked all the same.
    refuses(
        "receivers: {tail: {include: a}, tail/b: {include: a, start_at: now}}\n"
        "exporters: {raw: }\n"
        "service: {pipelines: {p: {receivers: [tail], exporters: [raw]}}}\n",
        "c.yaml:1:64: receivers.tail/b.start_at: 'now' is not one of them; it must be "
        "beginning or end\n");
}
END_TEST

// What YAML takes for something else is no text by accident.
START_TEST(other_types_are_no_texts) {
    refuses(
        "receivers: {tail: {include: no}, tail/b: {include: [a, 5, On, -1.5e3, \"7\", 0x1f]}}\n"
        "exporters: {sink: {path: 12}}\n"
        "service: {pipelines: {p: {receivers: [tail, tail/b], preset: memory, exporters: "
        "[sink]}}}\n",
        "c.yaml:1:29: receivers.tail.include: 'no' is a truth value, and a text is needed; "
        "write it in quotes if it is meant so\n"
        "c.yaml:1:56: receivers.tail/b.include[1]: '5' is a number, and a text is needed; "
        "write it in quotes if it is meant so\n"
        "c.yaml:1:59: receivers.tail/b.include[2]: 'On' is a truth value, and a text is "
        "needed; write it in quotes if it is meant so\n"
        "c.yaml:1:63: receivers.tail/b.include[3]: '-1.5e3' is a number, and a text is needed; "
        "write it in quotes if it is meant so\n"
        "c.yaml:1:76: receivers.tail/b.include[5]: '0x1f' is a number, and a text is needed; "
        "write it in quotes if it is meant so\n"
        "c.yaml:2:26: exporters.sink.path: '12' is a number, and a text is needed; write it in "
        "quotes if it is meant so\n");
}
END_TEST

START_TEST(a_port_is_no_endpoint) {
    refuses(
        "receivers: {tail: {include: \"5\"}}\nexporters: {raw: }\n"
        "service:\n  telemetry: {metrics: {endpoint: 9464}}\n"
        "  pipelines: {p: {receivers: [tail], exporters: [raw]}}\n",
        "c.yaml:4:35: service.telemetry.metrics.endpoint: 9464 is a port without a host; write "
        "\"127.0.0.1:9464\" for this machine only, or \"0.0.0.0:9464\" for all its addresses\n");
}
END_TEST

START_TEST(names_of_others_are_known) {
    refuses(
        "receivers: {tail: {include: a}, filelog/x: {operators: [a]}}\nexporters: {raw: }\n"
        "service: {pipelines: {p: {receivers: [tail], exporters: [raw]}}}\n",
        "c.yaml:1:33: receivers.filelog/x: there is no receiver 'filelog'; use 'tail': it "
        "follows files\n");
}
END_TEST

// The component's own rules, asked only when its options can be trusted.
// A misspelt name is told once, and what stands below it is checked as if it were right.
START_TEST(misspelt_parents) {
    static const char KEYS[] =
        "unknown key; did you mean '%s'? Valid keys: receivers, processors, "
        "exporters, extensions, service, tests, forms\n";
    const char *receivers = arena_format(&arena, KEYS, "receivers");
    const char *service = arena_format(&arena, KEYS, "service");
    refuses("recievers: {tail: {include: a, start_at: begining}}\n" SERVICE,
            arena_format(&arena,
                         "c.yaml:1:1: recievers: %s"
                         "c.yaml:1:42: receivers.tail.start_at: 'begining' is not one of them; did "
                         "you mean 'beginning'? It must be beginning or end\n",
                         receivers));
    refuses(
        "receivers: {tail: {include: a}}\nexporters: {raw: }\n"
        "servce: {batch_size: 0, pipelnes: {p: {recievers: [tail], exporters: [raw]}}}\n",
        arena_format(
            &arena,
            "c.yaml:3:1: servce: %s"
            "c.yaml:3:22: service.batch_size: '0' is out of range; it must be between "
            "1 and 65536\n"
            "c.yaml:3:25: service.pipelnes: unknown key; did you mean 'pipelines'? "
            "Valid keys: extensions, telemetry, control, batch_size, threads, checkpoint_interval, "
            "shutdown_timeout, pipelines\n"
            "c.yaml:3:40: service.pipelines.p.recievers: unknown key; did you mean "
            "'receivers'? Valid keys: receivers, preset, processors, exporters, "
            "evaluate_every, allowed_lateness, settle, idle_timeout, caught_up_timeout, max_jump\n",
            service));
    refuses(
        "receivers: {tial: {inclde: a}}\nservice: {pipelines: {p: {receivers: [tial], "
        "exporters: [raw]}}}\nexporters: {raw: }\n",
        "c.yaml:1:13: receivers.tial: there is no receiver 'tial'; did you mean 'tail'?\n"
        "c.yaml:1:20: receivers.tial.inclde: unknown key; did you mean 'include'? Valid keys: "
        "include, start_at, max_line_size\n");
}
END_TEST

START_TEST(own_rules) {
    static const char TAIL_END[] =
        "\nreceivers: {tail: {include: a}}\nexporters: {raw: }\nservice: {pipelines: {p: "
        "{receivers: tail, preset: memory, exporters: raw}}}\n";
    refuses(arena_format(&arena, "processors: {spike_detect: {high: 3, low: 4}}%s", TAIL_END),
            "c.yaml:1:43: processors.spike_detect.low: is above high (3); write at most that\n");
    refuses(arena_format(&arena, "processors: {spike_detect: {high: 0}}%s", TAIL_END),
            "c.yaml:1:14: processors.spike_detect.low: is above high (0); write at most that\n");
    refuses(arena_format(&arena, "processors: {spike_detect: {high: 77}}%s", TAIL_END),
            "c.yaml:1:14: processors.spike_detect.missing.key: is not there\n");
    refuses(arena_format(&arena, "processors: {spike_detect: {low: 90, high: x}}%s", TAIL_END),
            "c.yaml:1:44: processors.spike_detect.high: 'x' is not a whole number\n");
    refuses(arena_format(&arena, "processors: {spike_detect: {low: 90, hihg: 5}}%s", TAIL_END),
            "c.yaml:1:34: processors.spike_detect.low: is above high (5); write at most that\n"
            "c.yaml:1:38: processors.spike_detect.hihg: unknown key; did you mean 'high'? Valid "
            "keys: min_ratio, low, high, name\n");
}
END_TEST

static void file_write(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

START_TEST(files_and_sets) {
    char directory[64], one[80], two[80], none[80];
    temporary_path(directory, sizeof directory, "plan");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(one, sizeof one, "%s/one.yaml", directory);
    snprintf(two, sizeof two, "%s/two.yaml", directory);
    snprintf(none, sizeof none, "%s/none.yaml", directory);
    file_write(one, GOOD);
    file_write(two,
               "receivers: {tail: {include: [z], start_at: end}}\n"
               "service: {pipelines: {verdicts: {processors: [hang, hang/late]}}}\n");
    const char *files[] = {one, two, none};
    const char *sets[] = {"exporters.sink.path=/x y", "exporters.sink.rotation={max_size: 5KiB}",
                          "service.batch_size=9"};
    struct plan_input input = {.files = files, .file_count = 2, .sets = sets, .set_count = 3};
    ck_assert_int_eq(build_input(input), STATUS_OK);
    const struct tail_config *tail = component("tail", COMPONENT_RECEIVER)->config;
    ck_assert_uint_eq(tail->include.count, 1);
    ck_assert_str_eq(tail->include.items[0], "z");
    ck_assert_int_eq(tail->start_at, 1);
    ck_assert_str_eq(processors_of(0), "hang hang/late");
    const struct sink_config *sink = component("sink", COMPONENT_EXPORTER)->config;
    ck_assert_str_eq(sink->path, "/x y");
    ck_assert_int_eq(sink->rotation.max_backups, 3);
    ck_assert_uint_eq(sink->rotation.max_size.bytes, 5120);
    ck_assert_int_eq(plan.settings.batch_size, 9);

    const char *bad[] = {"exporters.sink.pth=x", "service.batch_size=none"};
    input = (struct plan_input){.files = files, .file_count = 1, .sets = bad, .set_count = 2};
    ck_assert_int_eq(build_input(input), STATUS_CONFIG);
    ck_assert_str_eq(list_text(&problems),
                     "--set: exporters.sink.pth: unknown key; did you mean 'path'? Valid keys: "
                     "path, token, timeout, rotation, headers\n"
                     "--set: service.batch_size: 'none' is not a whole number\n");
    input = (struct plan_input){.files = files, .file_count = 3};
    ck_assert_int_eq(build_input(input), STATUS_NOT_FOUND);
    ck_assert_str_eq(error.message, arena_format(&arena,
                                                 "configuration %s cannot be opened: No such file "
                                                 "or directory",
                                                 (const char *)none));
    input = (struct plan_input){.files = (const char *const[]){directory}, .file_count = 1};
    ck_assert_int_eq(build_input(input), STATUS_IO);
    unlink(one);
    unlink(two);
    rmdir(directory);
}
END_TEST

START_TEST(environment) {
    static const char TEXT[] =
        "receivers: {tail: {include: \"${env:CULPRIT_PLAN_A}\"}}\n"
        "exporters: {raw: }\nprocessors: {spike_detect: {name: "
        "\"${env:CULPRIT_PLAN_A}\", low: \"${env:CULPRIT_PLAN_B}\"}}\n"
        "service: {pipelines: {p: {receivers: [\"${env:CULPRIT_PLAN_C}\"], "
        "preset: memory, exporters: [raw]}}}\n";
    setenv("CULPRIT_PLAN_A", "x", 1);
    setenv("CULPRIT_PLAN_B", "200", 1);
    setenv("CULPRIT_PLAN_C", "tail", 1);
    refuses(TEXT,
            "c.yaml:3:65: processors.spike_detect.low: '${env:CULPRIT_PLAN_B}' is out of "
            "range; it must be between 0 and 100\n");
    setenv("CULPRIT_PLAN_B", "2", 1);
    builds(TEXT);
    const struct finder_config *finder = component("spike_detect", COMPONENT_PROCESSOR)->config;
    ck_assert_str_eq(finder->name, "x");
    ck_assert_int_eq(finder->low, 2);
    unsetenv("CULPRIT_PLAN_A");
    unsetenv("CULPRIT_PLAN_B");
    unsetenv("CULPRIT_PLAN_C");
    ck_assert_int_eq(build(TEXT), STATUS_CONFIG);
    ck_assert_uint_eq(problems.count, 4);
    // Away from the machine: what is not known is not judged, not even by the component's rules.
    ck_assert_int_eq(
        build_input((struct plan_input){.text = TEXT, .text_name = "c", .no_environment = true}),
        STATUS_OK);
}
END_TEST

START_TEST(secrets) {
    setenv("CULPRIT_PLAN_SECRET", "hunter2", 1);
    static const char FORMAT[] =
        "receivers: {tail: {include: a}}\nprocessors: {hang: }\n"
        "exporters: {sink: {token: %s}}\nservice: {pipelines: {p: "
        "{receivers: tail, processors: hang, exporters: sink}}}\n";
    char text[400];
    snprintf(text, sizeof text, FORMAT, "hunter2");
    builds(text);
    ck_assert_str_eq(list_text(&warnings),
                     "c.yaml:3:27: exporters.sink.token: a secret in plain "
                     "text; prefer ${file:/path/to/it} or ${env:NAME}\n");
    snprintf(text, sizeof text, FORMAT, "'${env:CULPRIT_PLAN_SECRET}'");
    builds(text);
    ck_assert_uint_eq(warnings.count, 0);
    const struct sink_config *sink = component("sink", COMPONENT_EXPORTER)->config;
    ck_assert_str_eq(secret_reveal(sink->token), "hunter2");
    snprintf(text, sizeof text, FORMAT, "[hunter2]");
    ck_assert_int_eq(build(text), STATUS_CONFIG);
    ck_assert_ptr_null(strstr(list_text(&problems), "hunter2"));
}
END_TEST

static void add_tests(TCase *cases) {
    tcase_add_test(cases, everything_bound);
    tcase_add_test(cases, pipelines_and_service);
    tcase_add_test(cases, service_defaults);
    tcase_add_test(cases, nothing_given);
    tcase_add_test(cases, unknown_components);
    tcase_add_test(cases, unknown_keys);
    tcase_add_test(cases, many_at_once);
    tcase_add_test(cases, unused);
    tcase_add_test(cases, other_types_are_no_texts);
    tcase_add_test(cases, a_port_is_no_endpoint);
    tcase_add_test(cases, names_of_others_are_known);
    tcase_add_test(cases, misspelt_parents);
    tcase_add_test(cases, own_rules);
    tcase_add_test(cases, files_and_sets);
    tcase_add_test(cases, environment);
    tcase_add_test(cases, secrets);
}

int main(void) {
    return run_plan_suite("plan", add_tests);
}
