// SPDX-License-Identifier: Apache-2.0
// Whole reports, compared byte for byte with tests/exporters/expected/NAME.txt.
#include "exporters/report/text/report.h"
#include "pipeline/model/observation.h"
#include "tests/exporters/sample_evaluation.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB    (INT64_C(1) << 20)
#define START  UINT64_C(1795248412232761088)
#define MS     UINT64_C(1000000)
#define RAMP   (12 * MIB)
#define NO_JOB ((struct slice){NULL, 0})

static struct sample_evaluation sample;
static struct text_style style;
static struct seen seen;
static struct buffer out;

static void setup(void) {
    style = (struct text_style){.utf8 = true, .width = 80, .verbose = true};
    // All evidence that there can be; 120 events in two minutes.
    seen = (struct seen){.kinds = UINT32_MAX,
                         .kubernetes = UINT32_MAX,
                         .gpu_fields = UINT64_MAX,
                         .event_count = 120,
                         .first_ns = START,
                         .last_ns = START + 120000 * MS};
    buffer_init(&out, 1 << 20);
}

static void teardown(void) {
    buffer_release(&out);
    sample_release(&sample);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static int64_t ramp(int step, int from, int to, int64_t slope) {
    return step <= from ? 0 : (step > to ? to - from : step - from) * slope;
}

// `count` ranks of 57 samples each, every 100 ms, rank r 5 ms * r late. Rank 2 grows from step 10
// to the end, the others from step 25 to 33 by 8 * others.
static void ranks_add(int count, int64_t others) {
    for (int rank = 0; rank < count; rank++) {
        uint32_t index =
            sample_rank(&sample, rank, rank < 2 ? SLICE("node-a") : SLICE("node-b"), 4242 + rank);
        for (int step = 0; step < 57; step++)
            sample_add(&sample, index, START + (uint64_t)step * 100 * MS + (uint64_t)rank * 5 * MS,
                       740 * MIB +
                           (rank == 2 ? ramp(step, 10, 57, RAMP) : ramp(step, 25, 33, others)));
    }
}

static struct spike growth_of(int rank, int from, int to, int64_t slope) {
    return (struct spike){
        .time_ns = START + (uint64_t)to * 100 * MS + (uint64_t)rank * 5 * MS,
        .window_ns = START + (uint64_t)from * 100 * MS + (uint64_t)rank * 5 * MS,
        .base_bytes = 740 * MIB,
        .growth_bytes = (to - from) * slope,
        .samples = (uint64_t)(to - from),
    };
}

static void suspects_add(void) {
    sample_suspect(&sample, 2, growth_of(2, 10, 17, RAMP))->confidence = CONFIDENCE_HIGH;
    sample_suspect(&sample, 0, growth_of(0, 25, 32, 14 * MIB));
    sample.phases[0] = (struct phase_attribution){.resolution = PHASE_UNIQUE,
                                                  .path = SLICE("epoch / step / backward"),
                                                  .thread_name = SLICE("MainThread")};
    sample.phases[1] = (struct phase_attribution){.resolution = PHASE_UNIQUE,
                                                  .path = SLICE("epoch / step / data")};
}

static struct spike *kept_growth(uint32_t index, struct spike spike) {
    spike.found = true;
    spike.origin = sample.origins[index];
    sample.spikes[index].kept = spike;
    return &sample.spikes[index].kept;
}

static void leak_scene(void) {
    sample_init(&sample, SLICE("none"));
    ranks_add(4, 14 * MIB);
    suspects_add();
    sample_cause(&sample, CAUSE_LEAK, 552 * MIB, 112 * MIB, 4.93, true);
    kept_growth(1, growth_of(1, 25, 33, 14 * MIB));
    kept_growth(3, growth_of(3, 26, 33, 14 * MIB));
    sample_note(&sample, SLICE("Ignored non-sample events during cross-rank analysis."));
}

static struct verdict *leak_verdict(void) {
    static struct verdict verdict;
    verdict = (struct verdict){
        .id = "memory_first_cause:0",
        .pattern = "memory_first_cause",
        .kind = "leak",
        .job = sample.evaluation.job,
        .severity = SEVERITY_ERROR,
        .headline = SLICE("Rank 2 leaked 552.0 MiB"),
        .remediation = SLICE("Find out what rank 2 (host node-b, pid 4244) keeps alive: tensors "
                             "held in lists, closures or caches."),
    };
    return &verdict;
}

static const char *file_read(const char *name) {
    static char text[1 << 16];
    char path[512];
    snprintf(path, sizeof path, TESTS_DIR "/exporters/expected/%s.txt", name);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "cannot open %s", path);
    size_t size = fread(text, 1, sizeof text - 1, file);
    text[size] = '\0';
    fclose(file);
    return text;
}

static void report(const struct batch *batch) {
    buffer_reset(&out);
    text_report_append(batch, &style, &seen, &out);
    ck_assert(buffer_finish(&out));
    buffer_append_char(&out, '\0');
}

static void check_batch(const struct batch *batch, const char *name) {
    report(batch);
    ck_assert_str_eq(out.data, file_read(name));
}

static void check(const char *name) {
    struct batch batch = sample_batch(&sample);
    check_batch(&batch, name);
}

static void check_says(const char *text) {
    ck_assert_msg(strstr(out.data, text) != NULL, "\"%s\" is not in\n%s", text, out.data);
}

static void check_does_not_say(const char *text) {
    ck_assert_msg(strstr(out.data, text) == NULL, "\"%s\" is in\n%s", text, out.data);
}

START_TEST(leak) {
    leak_scene();
    struct batch batch = sample_batch(&sample);
    batch.verdicts = (struct verdict_list){leak_verdict(), 1, 1};
    check_batch(&batch, "leak");
    check_batch(&batch, "leak"); // the same bytes again
}
END_TEST

START_TEST(leak_in_colour_and_narrow) {
    leak_scene();
    style.color = true;
    style.width = 60;
    check("leak_colour");
}
END_TEST

START_TEST(leak_in_ascii) {
    leak_scene();
    style.utf8 = false;
    sample.phases[0].path = SLICE("\xc3\xa9poque / pas");
    check("leak_ascii");
}
END_TEST

START_TEST(healthy) {
    sample_init(&sample, NO_JOB);
    for (int rank = 0; rank < 3; rank++) {
        uint32_t index = sample_rank(&sample, rank, SLICE("node-a"), -1);
        for (int step = 0; step < 40; step++)
            sample_add(&sample, index, START + (uint64_t)step * 500 * MS,
                       (step / 5 % 2 == 0 ? 700 : 820 + rank) * MIB);
    }
    sample.evaluation.median_interval_ns = 500 * (__int128)MS;
    check("healthy");
}
END_TEST

static void healthy_job(struct slice job, int ranks) {
    sample_init(&sample, job);
    for (int rank = 0; rank < ranks; rank++) {
        uint32_t index = sample_rank(&sample, rank, SLICE("node-a"), -1);
        for (int step = 0; step < 40; step++)
            sample_add(&sample, index, START + (uint64_t)step * 100 * MS, 700 * MIB);
    }
    style.verbose = false;
}

static void check_is(const struct batch *batch, const char *text) {
    report(batch);
    ck_assert_str_eq(out.data, text);
}

START_TEST(healthy_in_one_line) {
    healthy_job(NO_JOB, 3);
    sample_note(&sample, SLICE("No qualifying cross-rank spikes were detected."));
    struct batch batch = sample_batch(&sample);
    check_is(&batch,
             "Healthy: nothing was found in 1 job, 3 of 3 ranks, 120 events over 2 min 0 s.\n"
             "More with --verbose.\n");
    sample.evaluation.job = intern(SLICE("exp-7\x1b"));
    sample_note(&sample, SLICE("More jobs were seen than max_jobs allows; some were left out."));
    check_is(&batch,
             "Healthy: nothing was found in job exp-7\\x1b, 3 of 3 ranks, 120 events over 2 min\n"
             "0 s.\n"
             "More jobs were seen than max_jobs allows; some were left out.\n"
             "More with --verbose.\n");
    struct evaluation evaluations[2] = {sample.evaluation, sample.evaluation};
    evaluations[0].notes.count = evaluations[1].notes.count = 0;
    batch.evaluations = evaluations;
    batch.evaluation_count = 2;
    check_is(&batch,
             "Healthy: nothing was found in 2 jobs, 6 of 6 ranks, 120 events over 2 min 0 s.\n"
             "More with --verbose.\n");
}
END_TEST

// A kernel's log without an Xid is one all the same.
START_TEST(a_kernel_log_was_there) {
    healthy_job(SLICE("j"), 2);
    struct observation killed = {.kind = OBSERVATION_OOM_KILL};
    struct event event = {.kind = EVENT_OBSERVATION, .observation = &killed, .timeless = true};
    struct batch line = {.events = &event, .event_count = 1};
    seen = (struct seen){.kinds = 1u << EVENT_TELEMETRY};
    seen_note(&seen, &line);
    struct batch batch = sample_batch(&sample);
    report(&batch);
    check_says("\nNot checked: hangs (no Flight Recorder dumps), GPU health (no GPU counters),\n");
    check_does_not_say("no kernel log");
}
END_TEST

START_TEST(healthy_says_what_was_not_checked) {
    healthy_job(SLICE("j"), 2);
    seen.kinds = 1u << EVENT_TELEMETRY;
    seen.kubernetes = 0;
    seen.gpu_fields = 0;
    struct batch batch = sample_batch(&sample);
    report(&batch);
    check_says(
        "\nNot checked: hangs (no Flight Recorder dumps), Xid and PCIe errors (no kernel\n"
        "log), GPU health (no GPU counters), evicted pods (no Kubernetes events). More\n"
        "with --verbose.\n");
    style.verbose = true;
    report(&batch);
    check_says("\nMissing evidence\n  No Flight Recorder dumps, so a hang is not seen: ");
    check_says("  No Kubernetes events, ");
    check_does_not_say("No telemetry");
    // Machines without a job.
    style.verbose = false;
    batch.evaluation_count = 0;
    seen.kinds = 1u << EVENT_KERNEL | 1u << EVENT_RANK_MAP;
    report(&batch);
    check_says(
        "Nothing was found in 120 events over 2 min 0 s, but nothing that was read says\n"
        "how a job went.\n"
        "Not checked: memory of ranks (no telemetry), hangs (");
    // Behind a finding the list is as short.
    struct verdict verdict = {.id = "hbm_ecc:0",
                              .pattern = "hbm_ecc",
                              .headline = SLICE("GPU 7 fell"),
                              .severity = SEVERITY_ERROR};
    batch.verdicts = (struct verdict_list){&verdict, 1, 1};
    report(&batch);
    check_says("GPU 7 fell\n");
    check_says("\n\nNot checked: memory of ranks (no telemetry), hangs (");
    check_does_not_say("Healthy");
    seen.kinds = 1u << EVENT_TELEMETRY;
    report(&batch);
    check_does_not_say("Not checked");
}
END_TEST

START_TEST(what_is_not_whole_is_not_called_healthy) {
    static const int32_t missing[] = {2, 3};
    healthy_job(SLICE("j"), 2);
    sample.evaluation.world_size = 4;
    sample.evaluation.missing_ranks = missing;
    sample.evaluation.missing_count = 2;
    struct batch batch = sample_batch(&sample);
    check_is(&batch,
             "Nothing was found in job j, 2 of 4 ranks, 120 events over 2 min 0 s, but ranks 2\n"
             "and 3 are missing.\n"
             "More with --verbose.\n");
    sample.evaluation.missing_count = 0;
    sample.evaluation.world_size = 1;
    sample.evaluation.rank_count = 1;
    check_is(&batch,
             "Nothing was found in job j, 1 of 1 rank, 120 events over 2 min 0 s, but rank 0\n"
             "has no other to compare with.\n"
             "More with --verbose.\n");
    sample.evaluation.world_size = sample.evaluation.rank_count = 2;
    seen.unread = true;
    check_is(&batch,
             "Nothing was found in job j, 2 of 2 ranks, 120 events over 2 min 0 s, but logs\n"
             "report failures that no processor of this pipeline looks at: --stats counts\n"
             "them.\n"
             "More with --verbose.\n");
    seen.unread = false;
    // An input that could not be read, and a rank that fell silent, are told at length.
    const struct slice input = SLICE("gone.jsonl");
    batch.missing_inputs = &input;
    batch.missing_count = 1;
    report(&batch);
    check_says("Memory: no rank grew far enough");
    check_says("gone.jsonl");
    batch.missing_count = 0;
    sample.evaluation.rank_count = 2;
    sample.views[1].last_ns -= 2000 * MS;
    report(&batch);
    check_says("Memory: no rank grew far enough");
    check_says("Fell silent before the end\n");
}
END_TEST

START_TEST(a_swing_is_no_finding_and_common_growth_is) {
    healthy_job(SLICE("j"), 3);
    sample_suspect(&sample, 2, growth_of(2, 10, 11, 151 * MIB));
    sample_cause(&sample, CAUSE_SWING, 0, 0, 1, true);
    struct verdict verdict = *leak_verdict();
    verdict.kind = "swing";
    verdict.state = VERDICT_RESOLVED;
    struct batch batch = sample_batch(&sample);
    batch.verdicts = (struct verdict_list){&verdict, 1, 1};
    check_is(&batch,
             "Healthy: nothing was found in job j, 3 of 3 ranks, 120 events over 2 min 0 s.\n"
             "Rank 2 rose by 151.0 MiB and fell back: no leak.\n"
             "More with --verbose.\n");
    // Another verdict is one.
    verdict.kind = "leak";
    report(&batch);
    check_does_not_say("Healthy");
    sample_cause(&sample, CAUSE_COMMON_GROWTH, 96 * MIB, 93 * MIB, 1.03, true);
    batch.verdicts.count = 0;
    report(&batch);
    check_says("Memory: all ranks grew alike");
}
END_TEST

// A few megabytes up and down in many are drawn flat.
START_TEST(noise_is_drawn_flat) {
    sample_init(&sample, NO_JOB);
    for (int rank = 0; rank < 2; rank++) {
        uint32_t index = sample_rank(&sample, rank, SLICE("node-a"), -1);
        for (int step = 0; step < 40; step++)
            sample_add(&sample, index, START + (uint64_t)step * 100 * MS, (735 + step % 10) * MIB);
    }
    struct batch batch = sample_batch(&sample);
    report(&batch);
    check_says("Memory of each rank, 735.0 MiB to 744.0 MiB, over 3.90 s\n");
    for (const char *const *level = (const char *const[]){"▁", "▂", "▃", "▄", "▅", "▆", NULL};
         *level != NULL; level++)
        check_does_not_say(*level);
    check_says("▇");
    check_says("█");
}
END_TEST

START_TEST(common_growth) {
    sample_init(&sample, SLICE("exp-7.resnet"));
    ranks_add(3, RAMP);
    suspects_add();
    sample_cause(&sample, CAUSE_COMMON_GROWTH, 96 * MIB, 93 * MIB, 1.03, true);
    sample.evaluation.cause_phases = NULL;
    check("common_growth");
}
END_TEST

START_TEST(swing) {
    sample_init(&sample, SLICE("exp-7.resnet"));
    ranks_add(3, 0);
    sample_suspect(&sample, 2, growth_of(2, 10, 11, 151 * MIB));
    sample_cause(&sample, CAUSE_SWING, 0, 0, 1, true);
    check("swing");
    check_says("1 sample\n");
    check_does_not_say("that grew");
}
END_TEST

START_TEST(tie) {
    sample_init(&sample, SLICE("j"));
    ranks_add(3, 14 * MIB);
    sample_suspect(&sample, 2, growth_of(2, 10, 17, RAMP))->confidence = CONFIDENCE_MEDIUM;
    sample_suspect(&sample, 0, growth_of(0, 10, 17, RAMP));
    sample_cause(&sample, CAUSE_LEAK, 552 * MIB, 0, INFINITY, false);
    sample.phases[0] = (struct phase_attribution){
        .resolution = PHASE_AMBIGUOUS,
        .paths = (struct slice[]){SLICE("io"), SLICE("train")},
        .path_count = 2,
    };
    check("tie");
}
END_TEST

START_TEST(only_one_candidate_and_missing_ranks) {
    sample_init(&sample, SLICE("j"));
    ranks_add(3, 0);
    sample_suspect(&sample, 2, growth_of(2, 10, 17, RAMP))->confidence = CONFIDENCE_LOW;
    sample.list.candidate_count = 1;
    sample_cause(&sample, CAUSE_LEAK, 552 * MIB, 0, INFINITY, true);
    sample.evaluation.world_size = 40;
    static const int32_t missing[] = {3, 5, 6, 8, 9, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30};
    sample.evaluation.missing_ranks = missing;
    sample.evaluation.missing_count = 16;
    struct batch batch = sample_batch(&sample);
    report(&batch);
    check_says("low: no other rank grew for good, so there is no order to compare\n");
    check_says("3 of 40 ranks, 171 samples\n");
    check_says("ranks 3, 5, 6, 8 to 10, 12, 14, 16, 18, 20, 22, 24, 26 and 2 more\n");
    check_does_not_say("that grew");
    sample.suspects[0].lead_ns = 40 * (__int128)MS;
    sample.cause.suspects.candidate_count = 2;
    sample.cause.suspects.count = 1;
    report(&batch);
    check_says("; but 16 of");
}
END_TEST

START_TEST(medium_confidence_says_why) {
    leak_scene();
    sample.suspects[0].confidence = CONFIDENCE_MEDIUM;
    sample.suspects[0].lead_ns = 40 * (__int128)MS;
    style.width = 400;
    struct batch batch = sample_batch(&sample);
    report(&batch);
    check_says(
        "medium: 40 ms ahead of rank 0, which is 0.4 times the usual time between samples "
        "(100 ms): less than one, so the order is not certain\n");
}
END_TEST

START_TEST(one_rank) {
    sample_init(&sample, SLICE("j"));
    sample_add(&sample, sample_rank(&sample, 0, SLICE("h"), 7), START, 5 * MIB);
    sample_note(&sample, SLICE("Only one rank."));
    check("one_rank");
}
END_TEST

START_TEST(no_samples) {
    sample_init(&sample, NO_JOB);
    sample_note(&sample, SLICE("No telemetry events were provided."));
    seen = (struct seen){0};
    style.verbose = false;
    check("no_samples");
    struct batch batch = sample_batch(&sample);
    batch.evaluation_count = 0;
    report(&batch);
    check_says("Nothing was found, and nothing is known: none of what was read");
    static const struct slice empty[] = {{"a.log", 5}, {"-", 1}, {"b\x1b.log", 6}, {"c.log", 5}};
    batch.empty_inputs = empty;
    batch.empty_count = 1;
    report(&batch);
    check_says("Nothing was found, and nothing is known: a.log is empty.");
    batch.empty_count = 2;
    report(&batch);
    check_says("nothing is known: a.log and standard input are empty.");
    batch.empty_count = 4;
    report(&batch);
    check_says("nothing is known: a.log, standard input and 2 more inputs\nare empty.");
    batch.empty_count = 0;
    batch.refused_count = 1;
    report(&batch);
    check_says("nothing is known: 1 record was refused,");
}
END_TEST

START_TEST(many_ranks) {
    sample_init(&sample, SLICE("big"));
    ranks_add(200, 14 * MIB);
    suspects_add();
    sample_cause(&sample, CAUSE_LEAK, 552 * MIB, 112 * MIB, 4.93, true);
    for (uint32_t i = 3; i < 200; i++)
        kept_growth(i, growth_of((int)i, 25, 33, 14 * MIB));
    check("many_ranks");
    check_says("  and 182 more\n");
    check_says("  184 more ranks are not shown\n");
}
END_TEST

// One rank stops early, one has a gap, one has samples far apart.
START_TEST(silence_and_gaps) {
    sample_init(&sample, SLICE("j"));
    for (int rank = 0; rank < 4; rank++) {
        uint32_t index = sample_rank(&sample, rank, SLICE("h"), 1);
        for (int step = 0; step <= 100; step++) {
            bool absent = (rank == 1 && step > 69) || (rank == 2 && step > 30 && step < 60) ||
                          (rank == 3 && step % 4 != 0);
            if (!absent)
                sample_add(&sample, index, START + (uint64_t)step * 100 * MS, (100 + step) * MIB);
        }
    }
    check("silence_and_gaps");
    check_says("  rank 1: last sample 3.10 s before the end: died or was killed?\n");
    check_does_not_say("rank 2: last");
    sample.evaluation.median_interval_ns = 700 * (__int128)MS;
    struct batch batch = sample_batch(&sample);
    report(&batch);
    check_does_not_say("Fell silent");
}
END_TEST

START_TEST(mark_at_the_right_edge) {
    sample_init(&sample, SLICE("j"));
    ranks_add(3, 0);
    sample_suspect(&sample, 2, growth_of(2, 56, 56, RAMP));
    sample_cause(&sample, CAUSE_SWING, 0, 0, 1, true);
    struct batch batch = sample_batch(&sample);
    report(&batch);
    // The mark stands under the last cell.
    check_says("growth began ^\n");
    const char *line = strstr(out.data, "growth began ^");
    const char *begin = line;
    while (begin[-1] != '\n')
        begin--;
    ck_assert_int_eq(strchr(line, '^') - begin, 2 + 5 + 1 + 2 + (80 - 22) - 1);
}
END_TEST

START_TEST(texts_of_events_cannot_act) {
    sample_init(&sample, SLICE("job\x1b]0;title\x07"));
    sample_rank(&sample, 0, SLICE("ho\xe2\x80\xaest"), 1);
    sample_rank(&sample, 1, SLICE("h\n\nRank 0 started it"), 2);
    for (uint32_t index = 0; index < 2; index++)
        for (uint64_t step = 0; step < 20; step++)
            sample_add(&sample, index, START + step * 100 * MS, (int64_t)step * 20 * MIB);
    sample_suspect(&sample, 0, growth_of(0, 1, 5, 20 * MIB));
    sample_suspect(&sample, 1, growth_of(0, 2, 6, 20 * MIB));
    sample_cause(&sample, CAUSE_LEAK, 380 * MIB, 10 * MIB, 38, true);
    sample.phases[0] = (struct phase_attribution){.resolution = PHASE_UNIQUE,
                                                  .path = SLICE("a\x9b"
                                                                "2J\xff"),
                                                  .thread_name = SLICE("\r\x7f")};
    sample.phases[1] =
        (struct phase_attribution){.resolution = PHASE_AMBIGUOUS, .summary = SLICE("b\tc")};
    sample_note(&sample, SLICE("note\x1b[31m"));
    struct batch batch = sample_batch(&sample);
    struct verdict *other = leak_verdict();
    other->pattern = "xid_correlation";
    other->headline = SLICE("bad\x1b[5m");
    batch.verdicts = (struct verdict_list){other, 1, 1};
    report(&batch);
    for (size_t i = 0; i + 1 < out.size; i++) {
        unsigned char byte = (unsigned char)out.data[i];
        ck_assert_msg(byte == '\n' || (byte >= ' ' && byte != 0x7f), "byte %02x at %zu", byte, i);
    }
    check_says("job\\x1b]0;title\\x07");
    check_says("rank 0 on ho\\u202est");
    check_says("h\\x0a\\x0aRa\xe2\x80\xa6");
    check_says("a\\x9b2J\\xff");
    check_says("thread \\x0d\\x7f");
    check_says("probably b\\x09c");
    check_says("note\\x1b[31m");
    check_says("bad\\x1b[5m\n\n");
}
END_TEST

START_TEST(several_jobs_and_other_findings) {
    leak_scene();
    struct evaluation evaluations[2] = {sample.evaluation, sample.evaluation};
    evaluations[1].cause = NULL;
    evaluations[1].job = intern(SLICE("second"));
    struct verdict verdicts[3] = {*leak_verdict(), *leak_verdict(), *leak_verdict()};
    verdicts[1].kind = "swing";
    verdicts[1].state = VERDICT_RESOLVED;
    verdicts[1].headline = SLICE("Rank 1 rose and fell back");
    verdicts[2].job = evaluations[1].job;
    verdicts[2].headline = SLICE("Rank 9 of another generation leaked");
    struct batch batch = sample_batch(&sample);
    batch.evaluations = evaluations;
    batch.evaluation_count = 2;
    batch.verdicts = (struct verdict_list){verdicts, 3, 3};
    report(&batch);
    check_says("\n\n\nMemory: no rank grew far enough");
    check_says("  job        second\n");
    check_says(
        "Also found\n  error, resolved: Rank 1 rose and fell back\n"
        "  error: Rank 9 of another generation leaked\n");
    ck_assert_ptr_eq(
        strstr(strstr(out.data, "Rank 2 leaked 552.0 MiB\n") + 1, "Rank 2 leaked 552.0 MiB\n"),
        NULL); // said once
}
END_TEST

// Nothing but notes may be wider than the page.
// A pod that was evicted 2 min 21 s after what is said of it began is not listed as if it had been
// evicted then.
START_TEST(an_incident_says_when) {
    struct attribute attributes[] = {{"culprit.root", SLICE("true")},
                                     {"culprit.root", SLICE("false")}};
    struct verdict verdicts[] = {
        {.pattern = "pcie_aer", .headline = SLICE("The link failed"), .id = "pcie_aer:0"},
        {.pattern = "xid_correlation", .headline = SLICE("Pod p was evicted"), .id = "xid:0"},
        {.pattern = "nccl_hang", .headline = SLICE("Ranks wait"), .id = "nccl_hang:0"},
        {.pattern = "hbm_ecc", .headline = SLICE("An error before"), .id = "hbm_ecc:0"},
    };
    const uint64_t begin = UINT64_C(1794992498500) * MS;
    const int64_t from_ms[] = {0, 700, 0, -500}, to_ms[] = {700, 141500, 0, -500};
    struct related related[3] = {{"xid:0", RELATION_CAUSES},
                                 {"nccl_hang:0", RELATION_CAUSES},
                                 {"hbm_ecc:0", RELATION_SAME_INCIDENT}};
    sample_init(&sample, SLICE("job"));
    for (int i = 0; i < 4; i++) {
        verdicts[i].severity = SEVERITY_ERROR;
        verdicts[i].remediation = SLICE("Mend it.");
        verdicts[i].start_ns = begin + (uint64_t)(from_ms[i] * (int64_t)MS);
        verdicts[i].end_ns = begin + (uint64_t)(to_ms[i] * (int64_t)MS);
        verdicts[i].attributes = &attributes[i > 0];
        verdicts[i].attribute_count = 1;
    }
    verdicts[0].related = related;
    verdicts[0].related_count = 3;
    struct entity struck[] = {{"rank", SLICE("5"), ROLE_VICTIM},
                              {"pod", SLICE("train/p"), ROLE_VICTIM}};
    struct evidence waits = {.description = SLICE("rank 4 waits"), .role = EVIDENCE_EFFECT};
    struct evidence ends[] = {{.description = SLICE("it ended"), .role = EVIDENCE_CAUSE},
                              {.description = SLICE("so it is said"), .repeats = true}};
    verdicts[0].evidence = ends, verdicts[0].evidence_count = 2;
    verdicts[1].entities = struck, verdicts[1].entity_count = 2;
    verdicts[2].evidence = &waits, verdicts[2].evidence_count = 1;
    struct batch batch = {
        .arena = &sample.arena, .last = true, .verdicts = {.items = verdicts, .count = 4}};
    report(&batch);
    check_says(
        "  began      2026-11-18 09:01:38.500 UTC\n"
        "  last seen  2026-11-18 09:01:39.200 UTC, 700 ms after it began\n");
    check_says(
        "  took along 2 ranks\n"
        "  evidence   it ended\n"
        "  id         pcie_aer:0\n\n"
        "What followed from it, counted from when it began\n"
        "  then       An error before\n"
        "             began 500 ms before it\n"
        "             hbm_ecc, error, hbm_ecc:0\n"
        "  then       Ranks wait\n"
        "             began with it\n"
        "             struck rank 4\n"
        "             nccl_hang, error, nccl_hang:0\n"
        "  then       Pod p was evicted\n"
        "             began 700 ms after it, last seen 2 min 22 s after it\n"
        "             struck rank 5, pod train/p\n"
        "             xid_correlation, error, xid:0\n");
    check_says("\n\n  what next  Mend it.\n  began  ");
    check_does_not_say("incidents");
    check_does_not_say("Incident 1");
}
END_TEST

START_TEST(several_incidents_begin_with_a_list) {
    struct entity gpu = {"gpu", SLICE("node-a/0000:45:00"), ROLE_CULPRIT};
    struct entity ranks[] = {{"rank", SLICE("3"), ROLE_SUSPECT},
                             {"rank", SLICE("4"), ROLE_VICTIM},
                             {"rank", SLICE("5"), ROLE_VICTIM}};
    struct verdict verdicts[] = {
        {.pattern = "nccl_hang", .headline = SLICE("Rank 3\x1b hangs"), .id = "nccl_hang:0"},
        {.pattern = "pcie_aer", .headline = SLICE("The link failed"), .id = "pcie_aer:0"},
    };
    verdicts[0].start_ns = verdicts[0].end_ns = UINT64_C(1794992499500) * MS;
    verdicts[1].start_ns = verdicts[1].end_ns = UINT64_C(1794992498500) * MS;
    verdicts[0].entities = ranks, verdicts[0].entity_count = 3;
    verdicts[1].entities = &gpu, verdicts[1].entity_count = 1;
    for (int i = 0; i < 2; i++)
        verdicts[i].severity = SEVERITY_ERROR;
    sample_init(&sample, SLICE("job"));
    struct batch batch = {
        .arena = &sample.arena, .last = true, .verdicts = {.items = verdicts, .count = 2}};
    report(&batch);
    const char list[] =
        "2 incidents: the first began first\n"
        "  1          2026-11-18 09:01:38.500 UTC: gpu node-a/0000:45:00\n"
        "             The link failed\n"
        "  2          2026-11-18 09:01:39.500 UTC: perhaps rank 3, took along 2 ranks\n"
        "             Rank 3\\x1b hangs\n"
        "\n"
        "Incident 1 of 2\n"
        "The link failed\n";
    ck_assert_msg(strncmp(out.data, list, sizeof list - 1) == 0, "%s", out.data);
    check_says("Incident 2 of 2\nRank 3\\x1b hangs\n");
}
END_TEST

START_TEST(growth_of_memory_is_listed_with_the_others) {
    leak_scene();
    struct verdict verdicts[2] = {*leak_verdict(), *leak_verdict()};
    verdicts[1].pattern = "pcie_aer";
    verdicts[1].headline = SLICE("The link failed");
    memcpy(verdicts[1].id, "pcie_aer:0", sizeof "pcie_aer:0");
    struct batch batch = sample_batch(&sample);
    batch.verdicts = (struct verdict_list){verdicts, 2, 2};
    report(&batch);
    check_says("2 incidents: the first began first\n");
    check_says("Incident 1 of 2\nThe link failed\n");
    check_says("Incident 2 of 2\nRank 2 leaked");
}
END_TEST

START_TEST(the_launcher_is_quoted_where_it_names_another) {
    struct entity entities[] = {{"rank", SLICE("1"), ROLE_CULPRIT},
                                {"rank", SLICE("3"), ROLE_VICTIM}};
    struct attribute said = {"launcher.root_cause", SLICE("rank 3")};
    struct verdict verdict = {.pattern = "first_exit",
                              .headline = SLICE("Rank 1 raised"),
                              .id = "first_exit:0",
                              .entities = entities,
                              .entity_count = 2,
                              .attributes = &said,
                              .attribute_count = 1};
    sample_init(&sample, SLICE("job"));
    struct batch batch = {
        .arena = &sample.arena, .last = true, .verdicts = {.items = &verdict, .count = 1}};
    report(&batch);
    check_says("  launcher   torchrun named rank 3; that rank is a victim, it ended because of\n");
    said.value = SLICE("1");
    report(&batch);
    check_does_not_say("torchrun");
    said.value = SLICE("7");
    report(&batch);
    check_says("  launcher   torchrun named rank 7; it calls that the root cause,");
}
END_TEST

START_TEST(fits_the_width) {
    static const uint32_t widths[] = {60, 80, 120, 400};
    leak_scene();
    style.utf8 = false;
    style.width = widths[_i];
    sample.evaluation.notes.count = 0;
    struct batch batch = sample_batch(&sample);
    report(&batch);
    for (const char *line = out.data; *line != '\0'; line += strcspn(line, "\n") + 1)
        ck_assert_msg(strcspn(line, "\n") <= style.width, "%.*s", (int)strcspn(line, "\n"), line);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("text");
    TCase *cases = tcase_create("text");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, leak);
    tcase_add_test(cases, leak_in_colour_and_narrow);
    tcase_add_test(cases, leak_in_ascii);
    tcase_add_test(cases, healthy);
    tcase_add_test(cases, healthy_in_one_line);
    tcase_add_test(cases, healthy_says_what_was_not_checked);
    tcase_add_test(cases, a_kernel_log_was_there);
    tcase_add_test(cases, what_is_not_whole_is_not_called_healthy);
    tcase_add_test(cases, a_swing_is_no_finding_and_common_growth_is);
    tcase_add_test(cases, noise_is_drawn_flat);
    tcase_add_test(cases, common_growth);
    tcase_add_test(cases, swing);
    tcase_add_test(cases, tie);
    tcase_add_test(cases, only_one_candidate_and_missing_ranks);
    tcase_add_test(cases, medium_confidence_says_why);
    tcase_add_test(cases, one_rank);
    tcase_add_test(cases, no_samples);
    tcase_add_test(cases, many_ranks);
    tcase_add_test(cases, silence_and_gaps);
    tcase_add_test(cases, mark_at_the_right_edge);
    tcase_add_test(cases, texts_of_events_cannot_act);
    tcase_add_test(cases, several_jobs_and_other_findings);
    tcase_add_test(cases, an_incident_says_when);
    tcase_add_test(cases, several_incidents_begin_with_a_list);
    tcase_add_test(cases, growth_of_memory_is_listed_with_the_others);
    tcase_add_test(cases, the_launcher_is_quoted_where_it_names_another);
    tcase_add_loop_test(cases, fits_the_width, 0, 4);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
