// SPDX-License-Identifier: Apache-2.0
// What the report for people says of spans: bounded, safe to print, short below verdicts.
#include "base/text/display.h"
#include "config/option.h"
#include "exporters/report/text/report.h"
#include "tests/exporters/span_fixture.h"

#include <stdio.h>
#include <stdlib.h>

static struct text_style style;
static const struct seen seen;
static struct buffer out;
static struct arena arena;
static struct batch batch;

static void setup(void) {
    style = (struct text_style){.utf8 = true, .width = 80};
    buffer_init(&out, 1 << 22);
    arena_init(&arena, 1 << 16);
    batch = (struct batch){.arena = &arena, .evaluate = true, .last = true};
}

static void teardown(void) {
    buffer_release(&out);
    arena_release(&arena);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static const char *told(const struct span_report *reports, uint32_t count) {
    buffer_reset(&out);
    batch.spans = (struct span_report_list){reports, count};
    text_report_append(&batch, &style, &seen, &out);
    ck_assert(buffer_finish(&out));
    buffer_append_char(&out, '\0');
    if (getenv("SHOW_REPORTS") != NULL)
        puts(out.data);
    return out.data;
}

static uint32_t lines_in(const char *text) {
    uint32_t count = 0;
    for (; *text != '\0'; text++)
        count += *text == '\n';
    return count;
}

#define T 1700000000.0
static const struct fake_span training[] = {
    {"train", -1, T, T + 100, 8, 0, 0, 0, 0, 0, 0},
    {"step-0", 0, T, T + 20, 8, 0, 0, 0, 0, 0, 0},
    {"step-1", 0, T + 20, T + 40, 8, 0, 0, 0, 0, 0, 0},
    {"step-2", 0, T + 40, T + 70, 8, 0, 0, 0, 0, 0, 0},
    {"step-3", 0, T + 70, T + 100, 8, 0, 0, 0, 0, 0, 0},
    {"forward", 1, T, T + 10, 8, 60, 1 << 20, 0, 0, 0, 8},
    {"backward", 1, T + 10, T + 20, 8, 70, 1 << 20, 0, 0, 0, 8},
    {"forward", 2, T + 20, T + 30, 8, 60, 1 << 20, 0, 0, 0, 8},
    {"backward", 2, T + 30, T + 40, 8, 70, 1 << 20, 0, 0, 1, 7},
    {"forward", 3, T + 40, T + 50, 8, 60, 1 << 20, 0, 0, 0, 8},
    {"backward", 3, T + 50, T + 70, 8, 70, 1 << 20, 0, 0, 0, 8},
    {"forward", 4, T + 70, T + 80, 8, 60, 1 << 20, 0, 0, 0, 8},
    {"backward", 4, T + 80, T + 100, 8, 10, 0, 3, 1, 0, 4},
    {"default", -1, T + 1, T + 2, 8, 0, 0, 0, 0, 0, 1},
};

START_TEST(a_tree_is_drawn) {
    struct span_tree tree = {training, OPTION_COUNT(training), 0};
    struct span_report report = fake_stream(&tree, "tasks.jsonl");
    static const struct span_refused refused[] = {{3, -1, SPAN_BAD_JSON},
                                                  {9, 2, SPAN_UNKNOWN_SPAN}};
    report.refused = refused;
    report.refused_count = 2;
    report.refused_not_listed = 5;
    report.notes[0] = SLICE("2 finished spans were folded.");
    report.note_count = 1;
    ck_assert_str_eq(
        told(&report, 1),
        "Thread time in tasks.jsonl\n"
        "  13 min 28 s of thread time in 1 min 40 s, at most 8 threads; 14 spans, 12\n"
        "  tasks not forgotten.\n"
        "\n"
        "  span                                  open    share    idle     bytes\n"
        "  train                           1 min 40 s   99.0 %  42.5 %  7.00 MiB  running\n"
        "    step-0 to step-3 (4 spans)    1 min 40 s   99.0 %  42.5 %  7.00 MiB  running\n"
        "      longest: step-2, 30.0 s\n"
        "      forward (4 spans)               40.0 s   39.6 %  25.0 %  4.00 MiB\n"
        "      backward (4 spans)           1 min 0 s   59.4 %  54.2 %  3.00 MiB  running\n"
        "        running: 3 processing, 1 waiting, 1 erred\n"
        "  default                             1.00 s    1.0 %       -       0 B\n"
        "  7 lines or entries were refused: line 3 (bad-json), line 9, entry 2\n"
        "  (unknown-span) and 5 more\n"
        "  2 finished spans were folded.\n");
}
END_TEST

static const char *contains(const char *text, const char *part) {
    const char *found = strstr(text, part);
    ck_assert_msg(found != NULL, "no \"%s\" in:\n%s", part, text);
    return found;
}

// Many children, each with a name of its own: those with the most thread time have lines.
START_TEST(many_children_are_bounded) {
    enum { CHILDREN = 2000 };
    static struct fake_span spans[CHILDREN + 1];
    static char names[CHILDREN][16];
    spans[0] = (struct fake_span){
        .name = "root", .parent = -1, .begin_s = T, .end_s = T + 9, .threads = 1};
    for (int i = 0; i < CHILDREN; i++) {
        for (int digit = 0, left = i; digit < 5; digit++, left /= 10)
            names[i][digit] = (char)('a' + left % 10);
        spans[i + 1] = (struct fake_span){
            .name = names[i], .begin_s = T, .end_s = T + (i == 777 ? 8 : 1), .threads = 1};
    }
    struct span_tree tree = {spans, CHILDREN + 1, 0};
    struct span_report report = fake_stream(&tree, "many");
    // Walking children is linear in the fixture, so the tree is flat: the root has them all.
    const char *text = told(&report, 1);
    ck_assert_uint_le(lines_in(text), 20);
    contains(text, names[777]);
    contains(text, "and 1992 more spans");
    ck_assert_uint_le(tree.asked, 2 * CHILDREN + 100);
}
END_TEST

START_TEST(depth_is_bounded) {
    enum { DEPTH = 500 };
    static struct fake_span spans[DEPTH];
    for (int i = 0; i < DEPTH; i++)
        spans[i] = (struct fake_span){.name = "deep",
                                      .parent = i - 1,
                                      .begin_s = T,
                                      .end_s = T + 9,
                                      .threads = 1,
                                      .processing = i == DEPTH - 1};
    struct span_tree tree = {spans, DEPTH, 0};
    struct span_report report = fake_stream(&tree, "deep");
    const char *text = told(&report, 1);
    ck_assert_uint_le(lines_in(text), 14);
    contains(text, "deep (1 span below)");
    contains(text, "running for 9.00 s: 1 processing");
}
END_TEST

// No name can move the cursor, and a long one is cut.
START_TEST(names_are_safe) {
    static char wide[3000];
    memset(wide, 'x', sizeof wide - 1);
    const struct fake_span spans[] = {
        {"\x1b[2Jgone\r\n", -1, T, T + 5, 2, 0, 0, 0, 0, 0, 0},
        {wide, 0, T, T + 3, 2, 0, 0, 0, 0, 0, 0},
        {"\xe2\x80\xae"
         "evil \xff",
         0, T, T + 3, 2, 0, 0, 0, 0, 0, 0},
        {"", 0, T, T + 3, 2, 0, 0, 0, 0, 0, 0},
    };
    struct span_tree tree = {spans, 4, 0};
    struct span_report report = fake_stream(&tree, "tasks\x1b]0;x\x07.jsonl");
    report.notes[0] = SLICE("note \x1b[31m");
    report.note_count = 1;
    for (int utf8 = 0; utf8 < 2; utf8++) {
        style.utf8 = utf8 != 0;
        const char *text = told(&report, 1);
        ck_assert_ptr_null(strchr(text, '\x1b'));
        ck_assert_ptr_null(strchr(text, '\r'));
        ck_assert_ptr_null(strchr(text, '\x07'));
        ck_assert_ptr_null(strstr(text, "\xe2\x80\xae"));
        contains(text, "\\x1b[2Jgone");
        contains(text, "(no name)");
        contains(text, utf8 != 0 ? "xxx\xe2\x80\xa6" : "xxx...");
        for (const char *line = text; *line != '\0';) {
            size_t size = strcspn(line, "\n");
            ck_assert_uint_le(display_columns((struct slice){line, size}), 80);
            line += size + (line[size] == '\n');
        }
    }
}
END_TEST

START_TEST(a_narrow_page_has_fewer_columns) {
    struct span_tree tree = {training, OPTION_COUNT(training), 0};
    struct span_report report = fake_stream(&tree, "tasks.jsonl");
    style.width = 40;
    const char *text = told(&report, 1);
    ck_assert_ptr_null(strstr(text, "bytes"));
    contains(text, "share");
}
END_TEST

static const struct span_phase phases[] = {
    {.label = SLICE("epoch / step / backward"),
     .depth = 3,
     .openings = 10,
     .thread_s = 60,
     .busy_s = 41.5,
     .idle_s = 18.5,
     .ranks = fake_ranks,
     .rank_count = 4},
    {.label = SLICE("epoch / step / forward"),
     .depth = 3,
     .openings = 10,
     .thread_s = 40,
     .busy_s = 40,
     .idle_s = 0,
     .ranks = fake_ranks + 3,
     .rank_count = 1},
};

START_TEST(phases_name_who_lags) {
    struct span_tree tree = {training, 0, 0};
    struct span_report report = fake_job(&tree, phases, 2, "exp-7");
    ck_assert_str_eq(
        told(&report, 1),
        "Nothing was found, and nothing is known: none of what was read is of a kind that\n"
        "culprit knows.\n"
        "\n"
        "Thread time by phase, job exp-7\n"
        "  phase                               openings  thread time         busy    idle\n"
        "  epoch / step / backward                   10    1 min 0 s       41.5 s  30.8 %\n"
        "    lags: rank 2 by 4.50 s, slowest in 9 of 10; rank 0 by 500 ms, slowest in 1\n"
        "    of 10\n"
        "    still inside at the end: rank 1\n"
        "  epoch / step / forward                    10       40.0 s       40.0 s   0.0 %\n");
}
END_TEST

START_TEST(phases_are_bounded) {
    enum { PHASES = 500 };
    static struct span_phase many[PHASES];
    for (int i = 0; i < PHASES; i++)
        many[i] = (struct span_phase){
            .label = SLICE("\x1b[7m"), .openings = 1, .thread_s = i, .busy_s = i};
    struct span_tree tree = {training, 0, 0};
    struct span_report report = fake_job(&tree, many, PHASES, NULL);
    const char *text = told(&report, 1);
    ck_assert_uint_le(lines_in(text), 18);
    ck_assert_ptr_null(strchr(text, '\x1b'));
    contains(text, "and 488 more phases with less thread time");
    contains(text, "Thread time by phase, a job without a name");
}
END_TEST

// What was found stands first, and the tree below it is short.
START_TEST(verdicts_come_first) {
    static struct fake_span flat[20];
    for (int i = 0; i < 20; i++)
        flat[i] = (struct fake_span){
            .name = arena_format(&arena, "%c", 'a' + i), .parent = -1, .end_s = 1, .threads = 1};
    struct span_tree tree = {flat, 20, 0};
    struct span_report reports[] = {fake_stream(&tree, "tasks.jsonl"),
                                    fake_job(&tree, phases, 2, "exp-7")};
    struct verdict verdict = {.id = "nccl_hang:0",
                              .pattern = "nccl_hang",
                              .kind = "missing_rank",
                              .headline = SLICE("Rank 3 hangs"),
                              .remediation = SLICE("Restart it."),
                              .severity = SEVERITY_ERROR};
    uint32_t alone = lines_in(told(reports, 2));
    batch_append_verdict(&batch, &verdict);
    const char *text = told(reports, 2);
    ck_assert_ptr_eq(strstr(text, "Rank 3 hangs"), text);
    const char *heading = contains(text, "\nThread time in tasks.jsonl");
    ck_assert_uint_lt(lines_in(heading), alone);
    contains(heading, "\n\nThread time by phase, job exp-7");
}
END_TEST

START_TEST(many_sources_are_bounded) {
    enum { SOURCES = 100 };
    static struct span_report reports[SOURCES];
    struct span_tree tree = {training, OPTION_COUNT(training), 0};
    for (int i = 0; i < SOURCES; i++)
        reports[i] = fake_stream(&tree, "tasks.jsonl");
    contains(told(reports, SOURCES), "And 84 more trees of spans");
}
END_TEST

START_TEST(a_stream_that_never_began) {
    struct span_tree tree = {training, 0, 0};
    struct span_report report = fake_stream(&tree, "tasks.jsonl");
    static const struct span_refused refused[] = {{1, -1, SPAN_NOT_STARTED}};
    report.refused = refused;
    report.refused_count = 1;
    report.started = false;
    ck_assert_str_eq(told(&report, 1),
                     "Thread time in tasks.jsonl\n"
                     "  No events were accepted: no line starts the stream.\n"
                     "  1 line or entry was refused: line 1 (not-started)\n");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("text_spans");
    TCase *cases = tcase_create("text_spans");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, a_tree_is_drawn);
    tcase_add_test(cases, many_children_are_bounded);
    tcase_add_test(cases, depth_is_bounded);
    tcase_add_test(cases, names_are_safe);
    tcase_add_test(cases, a_narrow_page_has_fewer_columns);
    tcase_add_test(cases, phases_name_who_lags);
    tcase_add_test(cases, phases_are_bounded);
    tcase_add_test(cases, verdicts_come_first);
    tcase_add_test(cases, many_sources_are_bounded);
    tcase_add_test(cases, a_stream_that_never_began);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
