// SPDX-License-Identifier: Apache-2.0
#include "pipeline/plan/print.h"

#include "tests/pipeline/plan/plan_fixture.h"

#include <stdio.h>

static const char *printed(void) {
    struct buffer out;
    buffer_init(&out, 1 << 20);
    plan_print(&plan, &out);
    const char *text = arena_text(&arena, buffer_slice(&out));
    buffer_release(&out);
    return text;
}

static const char TEXT[] =
    "receivers:\n"
    "  tail: {include: [\"a \\\"b\\\" $$x\\n\", \"${env:CULPRIT_PRINT_A}\"]}\n"
    "processors: {spike_detect: {min_ratio: 0.3}}\n"
    "exporters:\n"
    "  sink:\n"
    "    path: ${env:CULPRIT_PRINT_A}\n"
    "    token: ${env:CULPRIT_PRINT_SECRET}\n"
    "    timeout: never\n"
    "  raw:\n"
    "service:\n"
    "  pipelines:\n"
    "    p:\n"
    "      receivers: tail\n"
    "      preset: memory\n"
    "      exporters: [sink, raw]\n"
    "      settle: 1m30s\n";

static const char EXPECTED[] =
    "receivers:\n"
    "  tail:\n"
    "    include: [\"a \\\"b\\\" $$x\\u000a\", \"from $$ env\"]  # c.yaml:2\n"
    "    start_at: \"beginning\"  # default\n"
    "    max_line_size: 2KiB  # --set\n"
    "\n"
    "processors:\n"
    "  spike_detect:\n"
    "    min_ratio: 0.3  # c.yaml:3\n"
    "    low: 1  # default\n"
    "    high: 10  # default\n"
    "    name: \"auto\"  # default\n"
    "  job_filter: {}\n"
    "  rank_group: {}\n"
    "  align: {}\n"
    "  first_cause: {}\n"
    "  phase_attribution: {}\n"
    "\n"
    "exporters:\n"
    "  sink:\n"
    "    path: \"from $$ env\"  # c.yaml:6\n"
    "    token: \"[REDACTED]\"  # c.yaml:7\n"
    "    timeout: \"never\"  # c.yaml:8\n"
    "    rotation:\n"
    "      max_size: 100MiB  # default\n"
    "      max_backups: 100  # default\n"
    "      # max_total: not set\n"
    "    headers: []  # default\n"
    "  raw: {}\n"
    "\n"
    "service:\n"
    "  extensions: []  # default\n"
    "  telemetry:\n"
    "    logs:\n"
    "      level: \"info\"  # default\n"
    "      encoding: \"auto\"  # default\n"
    "    # metrics: not set\n"
    "  control:\n"
    "    enabled: true  # default\n"
    "    # socket: not set\n"
    "  batch_size: 1024  # default\n"
    "  threads: 0  # default\n"
    "  checkpoint_interval: 5s  # default\n"
    "  shutdown_timeout: 20s  # default\n"
    "  pipelines:\n"
    "    p:\n"
    "      receivers: [tail]\n"
    "      processors: [job_filter, rank_group, align, spike_detect, first_cause, "
    "phase_attribution]\n"
    "      exporters: [sink, raw]\n"
    "      evaluate_every: 1s  # default\n"
    "      allowed_lateness: 2s  # default\n"
    "      settle: 1m30s  # c.yaml:16\n"
    "      idle_timeout: 1m  # default\n"
    "      caught_up_timeout: 2s  # default\n"
    "      max_jump: 10m  # default\n";

START_TEST(effective) {
    setenv("CULPRIT_PRINT_A", "from $ env", 1);
    setenv("CULPRIT_PRINT_SECRET", "hunter2", 1);
    const char *sets[] = {"receivers.tail.max_line_size=2048B"};
    ck_assert_int_eq(build_set(TEXT, sets, 1), STATUS_OK);
    ck_assert_str_eq(printed(), EXPECTED);
}
END_TEST

// The line without its comment.
static const char *stripped(const char *text) {
    char *copy = arena_text(&arena, slice_of(text)), *to = copy;
    for (const char *at = text; *at != '\0'; at++) {
        if (strncmp(at, "  # ", 4) == 0)
            at += strcspn(at, "\n");
        *to++ = *at;
    }
    *to = '\0';
    return copy;
}

START_TEST(reads_back) {
    setenv("CULPRIT_PRINT_A", "\u00e9: [~] # ${env:X}\t\x7f", 1);
    setenv("CULPRIT_PRINT_SECRET", "hunter2", 1);
    builds(TEXT);
    const char *once = printed();
    builds(once);
    ck_assert_str_eq(stripped(printed()), stripped(once));
    const struct sink_config *sink = component("sink", COMPONENT_EXPORTER)->config;
    ck_assert_str_eq(sink->path, "\u00e9: [~] # ${env:X}\t\x7f");
}
END_TEST

START_TEST(values_of_files_stay_unseen) {
    static const char HOST[] =
        "receivers: {tail: {include: \"${file:/etc/hostname}\"}}\n"
        "exporters: {sink: {path: \"x${file:/etc/hostname}$$\"}}\n"
        "processors: {hang: }\nservice: {pipelines: {p: {receivers: tail, "
        "processors: hang, exporters: sink}}}\n";
    builds(HOST);
    const char *text = printed();
    ck_assert_ptr_nonnull(strstr(text, "    path: \"x${file:/etc/hostname}$$\"  # c.yaml:2\n"));
    ck_assert_ptr_nonnull(strstr(text, "    include: \"${file:/etc/hostname}\"  # c.yaml:1\n"));
    ck_assert_ptr_nonnull(strstr(text, "    # token: not set\n"));
    builds(text);
}
END_TEST

// Neither from the value nor from what was written.
START_TEST(users_and_passwords_stay_unseen) {
    static const char *const paths[] = {"https://me:hunter2@host/x", "me:hunter2@host",
                                        "https://me:hunter2@host/${file:/etc/hostname}"};
    for (size_t i = 0; i < 3; i++) {
        char config[512];
        snprintf(config, sizeof config,
                 "receivers: {tail: {include: [a, \"http://you:hunter2@b\"]}}\n"
                 "exporters: {sink: {path: \"%s\"}}\n"
                 "processors: {hang: }\nservice: {pipelines: {p: {receivers: tail, "
                 "processors: hang, exporters: sink}}}\n",
                 paths[i]);
        builds(config);
        const char *text = printed();
        ck_assert_ptr_null(strstr(text, "hunter2"));
        ck_assert_ptr_nonnull(strstr(text, "[REDACTED]@host"));
        ck_assert_ptr_nonnull(strstr(text, "\"http://[REDACTED]@b\""));
    }
}
END_TEST

START_TEST(hidden_values_stay_unseen) {
    builds(
        "receivers: {tail: {include: a}}\n"
        "exporters: {sink: {headers: [\"X-Key: hunter2\", \"X-Other: hunter2\"]}}\n"
        "processors: {hang: }\nservice: {pipelines: {p: {receivers: tail, "
        "processors: hang, exporters: sink}}}\n");
    const char *text = printed();
    ck_assert_ptr_null(strstr(text, "hunter2"));
    ck_assert_ptr_nonnull(
        strstr(text, "    headers: [\"[REDACTED]\", \"[REDACTED]\"]  # c.yaml:2\n"));
}
END_TEST

START_TEST(extensions_shown) {
    builds(
        "receivers: {tail: {include: a}}\nexporters: {raw: }\nextensions: {health: }\n"
        "service: {extensions: health, pipelines: {p: {receivers: tail, exporters: raw}}}\n");
    const char *text = printed();
    ck_assert_ptr_nonnull(strstr(text, "\nextensions:\n  health: {}\n"));
    ck_assert_ptr_nonnull(strstr(text, "  extensions: [\"health\"]  # c.yaml:4\n"));
    ck_assert_ptr_nonnull(strstr(text, "      processors: []\n"));
    builds(text);
}
END_TEST

static void add_tests(TCase *cases) {
    tcase_add_test(cases, effective);
    tcase_add_test(cases, reads_back);
    tcase_add_test(cases, values_of_files_stay_unseen);
    tcase_add_test(cases, users_and_passwords_stay_unseen);
    tcase_add_test(cases, hidden_values_stay_unseen);
    tcase_add_test(cases, extensions_shown);
}

int main(void) {
    return run_plan_suite("plan_print", add_tests);
}
