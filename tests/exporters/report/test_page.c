// SPDX-License-Identifier: Apache-2.0
// The HTML page: its structure, that no text of events acts, what it shows, and its bounds.
#include "exporters/report/page/parts.h"
#include "pipeline/model/observation.h"
#include "tests/exporters/report/page_fixture.h"

#include <math.h>
#include <nettle/base64.h>
#include <nettle/sha2.h>

// -- structure ------------------------------------------------------------------------------------

START_TEST(tells_the_story_of_the_terminal) {
    leak_make(4, 57, SLICE("node-b"));
    sample.phases[0] = (struct phase_attribution){.resolution = PHASE_UNIQUE,
                                                  .path = SLICE("epoch / step / backward")};
    sample_note(&sample, SLICE("Ignored non-sample events."));
    struct evidence evidence = {.uid = SLICE("sample:s2:2:1"),
                                .description = SLICE("rank 2 used 740.0 MiB"),
                                .time_ns = START,
                                .has_time = true};
    struct verdict verdict = verdict_make("Rank 2 leaked", SEVERITY_ERROR);
    verdict.evidence = &evidence;
    verdict.evidence_count = 1;
    input.verdicts = &verdict;
    input.verdict_count = 1;
    const char *page = page_made();
    markup_check(page);
    CONTAINS(page, "<h1>Memory of job llama</h1>");
    CONTAINS(page, "class=\"headline\">Rank 2 leaked<");
    CONTAINS(page, "confidence 85 of 100");
    CONTAINS(page, "Evidence: 1 observation<");
    CONTAINS(page,
             "<span class=\"tag\">cause</span> <time datetime=\"2026-11-21T08:06:52.232Z\">"
             "2026-11-21 08:06:52.232 UTC</time> rank 2 used 740.0 MiB");
    CONTAINS(page, "<dt>what next</dt><dd>Find out what rank 2 keeps alive.</dd>");
    CONTAINS(page, "1.10 s ahead of rank 1");
    CONTAINS(page, "growth began");
    CONTAINS(page, "rank 2, started it");
    LACKS(page, "Ignored non-sample events"); // nobody needs to know
    // Told by the answer, so not once more.
    LACKS(page, "Rank 2 leaked 552"); // the verdict says it
    ck_assert_uint_eq(count_of(page, "<h1>"), 1);
    ck_assert_uint_eq(count_of(page, "<main "), 1);
    // Known devices only.
    LACKS(page, "Utilisation");
}
END_TEST

START_TEST(stands_alone) {
    leak_make(4, 57, SLICE("node-b"));
    const char *page = page_made();
    LACKS(page, "http://www.w3.org/1999");
    LACKS(page, "https:");
    LACKS(page, "url(");
    LACKS(page, "@import");
    ck_assert_uint_eq(count_of(page, "http:"), 1); // the name space of SVG in the script
    // What is put right behind <head> comes before everything of the page's own.
    ck_assert_ptr_eq(strstr(page, "<head>"), page + 16 + strlen("<html lang=\"en\">\n"));
}
END_TEST

// The policy names exactly the style and the script that are there.
static void hash_check(const char *page, const char *element) {
    char begin[16], end[16];
    snprintf(begin, sizeof begin, "<%s>", element);
    snprintf(end, sizeof end, "</%s>", element);
    const char *from = strstr(page, begin) + strlen(begin), *to = strstr(from, end);
    struct sha256_ctx context;
    uint8_t digest[SHA256_DIGEST_SIZE];
    char wanted[BASE64_ENCODE_RAW_LENGTH(SHA256_DIGEST_SIZE) + 1] = {0};
    sha256_init(&context);
    sha256_update(&context, (size_t)(to - from), (const uint8_t *)from);
    sha256_digest(&context, sizeof digest, digest);
    base64_encode_raw(wanted, sizeof digest, digest);
    char policy[128];
    snprintf(policy, sizeof policy, "%s-src 'sha256-%s'", element, wanted);
    CONTAINS(page, policy);
}

START_TEST(allows_itself_and_nothing_else) {
    leak_make(4, 30, SLICE("a"));
    const char *page = page_made();
    CONTAINS(page, "default-src 'none'");
    CONTAINS(page, "base-uri 'none'; form-action 'none'");
    hash_check(page, "style");
    hash_check(page, "script");
}
END_TEST

START_TEST(is_the_same_for_the_same_input) {
    leak_make(4, 57, SLICE("node-b"));
    struct verdict verdicts[] = {verdict_make("one", SEVERITY_WARNING),
                                 verdict_make("two", SEVERITY_CRITICAL),
                                 verdict_make("three", SEVERITY_WARNING)};
    input.verdicts = verdicts;
    input.verdict_count = 3;
    char *first = strdup(page_made());
    ck_assert_str_eq(first, page_made());
    struct verdict swapped[] = {verdicts[2], verdicts[0], verdicts[1]};
    input.verdicts = swapped;
    ck_assert_str_eq(first, page_made());
    // The gravest leads.
    CONTAINS(first, "<article class=\"card critical\" id=\"v0\">");
    free(first);
}
END_TEST

// -- texts of events ------------------------------------------------------------------------------

START_TEST(texts_cannot_act) {
    struct slice text = SLICE(EVIL);
    sample_release(&sample);
    sample_init(&sample, text);
    leak_make(4, 30, text);
    sample.phases[0] =
        (struct phase_attribution){.resolution = PHASE_UNIQUE, .path = text, .thread_name = text};
    struct slice paths[] = {text, SLICE("b")};
    sample.phases[1] =
        (struct phase_attribution){.resolution = PHASE_AMBIGUOUS, .paths = paths, .path_count = 2};
    sample_note(&sample, text);
    struct evidence evidence = {.uid = text, .description = text};
    struct attribute attribute = {"a.key", text};
    struct entity entity = {"rank", text, ROLE_CULPRIT};
    struct verdict verdicts[] = {verdict_make("told", SEVERITY_ERROR),
                                 verdict_make("also", SEVERITY_INFO)};
    for (int i = 0; i < 2; i++) {
        verdicts[i].headline = verdicts[i].remediation = text;
        verdicts[i].evidence = &evidence;
        verdicts[i].entities = &entity;
        verdicts[i].evidence_count = verdicts[i].entity_count = 1;
        verdicts[i].kind = i == 0 ? "leak" : "other";
    }
    verdicts[1].attributes = &attribute;
    verdicts[1].attribute_count = 1;
    verdicts[1].pattern = "node_fault";
    input.verdicts = verdicts;
    input.verdict_count = 2;
    input.title = EVIL;
    const char *page = page_made();
    markup_check(page);
    ck_assert_uint_eq(count_of(page, "<script>"), 1);
    LACKS(page, "<img");
    CONTAINS(page, "\\x1b[2J\\x1e\\xff\\xfe\\u202e");
    CONTAINS(page, "<h1>&lt;/title&gt;&lt;/script&gt;");
    CONTAINS(page, "<span class=\"tag\">ambiguous</span>");
    CONTAINS(page, "2 incidents");
    CONTAINS(page, "<dt>culprit</dt><dd>rank &lt;/title&gt;");
    CONTAINS(page, "<title>rank &lt;/title&gt;&lt;/script&gt;");
}
END_TEST

// -- the chart ------------------------------------------------------------------------------------

// The path of a rank's line in the memory chart.
static const char *line_of(const char *page, int rank) {
    static char path[1 << 17];
    char begin[48];
    snprintf(begin, sizeof begin, "<path id=\"j0r%dp\" d=\"", rank);
    const char *from = strstr(page, begin);
    ck_assert_msg(from != NULL, "rank %d has no line", rank);
    from += strlen(begin);
    size_t size = strcspn(from, "\"");
    ck_assert_uint_lt(size, sizeof path);
    memcpy(path, from, size);
    path[size] = '\0';
    return path;
}

struct extent {
    uint32_t points;
    int lowest, highest; // y, which grows downwards
    int last_x;
};

static struct extent line_extent(const char *path) {
    struct extent extent = {.lowest = INT32_MIN, .highest = INT32_MAX};
    int x = 0, y = 0;
    for (char *at = (char *)(uintptr_t)path; *at != '\0';) {
        bool moves = *at == 'M';
        if (*at == 'M' || *at == 'l')
            at++;
        int dx = (int)strtol(at, &at, 10), dy = (int)strtol(at, &at, 10);
        x = moves ? dx : x + dx;
        y = moves ? dy : y + dy;
        ck_assert_int_ge(x, extent.last_x);
        extent.last_x = x;
        extent.points++;
        extent.lowest = y > extent.lowest ? y : extent.lowest;
        extent.highest = y < extent.highest ? y : extent.highest;
    }
    return extent;
}

START_TEST(a_long_series_keeps_its_peaks) {
    uint32_t index = sample_rank(&sample, 0, SLICE("a"), 1);
    for (int step = 0; step < 20000; step++)
        sample_add(&sample, index, START + (uint64_t)step * 100 * MS,
                   step == 7777    ? 1000 * MIB
                   : step == 12345 ? 500 * MIB
                                   : (700 + step % 9) * MIB);
    static const uint32_t points[] = {2, 3, 50, 600};
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        input.max_points = points[i];
        struct extent extent = line_extent(line_of(page_made(), 0));
        // The pen is put down once more, at the first point.
        ck_assert_uint_le(extent.points, points[i] + 1);
        ck_assert_uint_ge(extent.points, points[i] / 2);
        // 0 to 1000 MiB on 2800 tenths: the peak at the top, the dip of 500 MiB half way down.
        ck_assert_int_lt(extent.highest, 100);
        ck_assert_int_gt(extent.lowest, 1300);
    }
}
END_TEST

START_TEST(a_short_series_is_drawn_as_it_is) {
    uint32_t index = sample_rank(&sample, 0, SLICE("a"), 1);
    for (int step = 0; step < 11; step++)
        sample_add(&sample, index, START + (uint64_t)step * 100 * MS,
                   (step % 2 == 0 ? 200 : 400) * MIB);
    struct extent extent = line_extent(line_of(page_made(), 0));
    ck_assert_uint_eq(extent.points, 12);
    ck_assert_int_eq(extent.last_x, 7840);
    ck_assert_int_eq(extent.highest, 0);
    ck_assert_int_eq(extent.lowest, 1400);
}
END_TEST

START_TEST(a_silence_breaks_the_line) {
    uint32_t index = sample_rank(&sample, 0, SLICE("a"), 1);
    for (int step = 0; step < 10; step++)
        sample_add(&sample, index, START + (uint64_t)(step + (step > 4) * 20) * 100 * MS,
                   (700 + step) * MIB);
    ck_assert_uint_eq(count_of(line_of(page_made(), 0), "M"), 2);
}
END_TEST

// 10 MiB on 740 are no cliff; growth that was found is looked at closely.
START_TEST(noise_is_drawn_as_noise) {
    ranks_make(4, 57, -1, -1, SLICE("a"));
    sample_add(&sample, 3, START + 5700 * MS, 733 * MIB);
    const char *page = page_made();
    CONTAINS(page, "data-range=\"0 800\" data-unit=\"MiB\"");
    struct extent extent = line_extent(line_of(page, 3));
    ck_assert_int_lt(extent.lowest - extent.highest, 50);
    LACKS(page, "The axis begins at");
    suspect_make(2, 10, 17, MIB);
    sample_cause(&sample, CAUSE_SWING, 7 * MIB, 0, 1, true);
    CONTAINS(page_made(), "data-range=\"0 800\" data-unit=\"MiB\"");
    sample_cause(&sample, CAUSE_LEAK, 7 * MIB, 0, 9, true);
    page = page_made();
    LACKS(page, "data-range=\"0 ");
    CONTAINS(page, "The axis begins at 660\xc2\xa0MiB.");
}
END_TEST

START_TEST(odd_values_fit_the_axes) {
    static const int64_t values[][2] = {{0, 0},
                                        {1, 2},
                                        {1000, 1000},
                                        {0, INT64_MAX},
                                        {INT64_MAX - 5, INT64_MAX},
                                        {80 * MIB, 81 * MIB}};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        static const uint64_t spans_ms[] = {0, 1, 999, 60000, 3600000, UINT64_C(40000000000)};
        for (size_t k = 0; k < sizeof spans_ms / sizeof spans_ms[0]; k++) {
            sample_release(&sample);
            sample_init(&sample, SLICE("x"));
            uint32_t index = sample_rank(&sample, 0, SLICE("a"), 1);
            sample_add(&sample, index, START / 4, values[i][0]);
            sample_add(&sample, index, START / 4 + spans_ms[k] * MS, values[i][1]);
            const char *page = page_made();
            markup_check(page);
            ck_assert_uint_le(count_of(page, "class=\"grid\""), 14);
            ck_assert_uint_le(count_of(page, "class=\"tick\""), 14);
            ck_assert_uint_ge(count_of(page, "class=\"grid\""), 2);
        }
    }
}
END_TEST

START_TEST(many_ranks_are_lines_and_a_band) {
    leak_make(200, 40, SLICE("node"));
    input.max_ranks = 8;
    const char *page = page_made();
    markup_check(page);
    ck_assert_uint_eq(count_of(page, "class=\"l c0\"><title>"), 1);
    ck_assert_uint_eq(count_of(page, "class=\"l c1\"><title>"), 1);
    ck_assert_uint_eq(count_of(page, "class=\"l m\"><title>"), 6);
    CONTAINS(page, "<title>least and most of 192 further ranks</title>");
    ck_assert_uint_eq(count_of(page, "<tr><th scope=row>") + count_of(page, "<tr class=f>"), 200);
    // Links lead to lines, and so there are none to ranks in the band.
    ck_assert_uint_eq(count_of(strstr(page, "<main"), "<a href=\"#j0r"), 2 + 8);
    CONTAINS(page, "<th scope=row><a href=\"#j0r7\" target=\"_self\">7</a>");
    CONTAINS(page, "<th scope=row>8<td>");
    // With none for the others the suspects still have theirs.
    input.max_ranks = 0;
    page = page_made();
    ck_assert_uint_eq(count_of(page, "class=\"l m\"><title>"), 0);
    ck_assert_uint_eq(count_of(page, "class=\"l c0\"><title>"), 1);
    CONTAINS(page, "<title>least and most of 198 further ranks</title>");
}
END_TEST

// The charts come before any table, and of a long table the first rows are shown.
START_TEST(charts_come_before_tables_and_long_ones_are_folded) {
    ranks_make(256, 40, 2, 1, SLICE("node"));
    suspect_make(2, 10, 17, 12 * MIB)->confidence = CONFIDENCE_HIGH;
    for (int rank = 0; rank < 256; rank++)
        if (rank != 2)
            suspect_make(rank, 20, 28, 8 * MIB);
    sample_cause(&sample, CAUSE_LEAK, 552 * MIB, 112 * MIB, 4.93, true);
    const char *page = page_made();
    markup_check(page);
    const char *chart = strstr(page, "<svg class=\"plot\""),
               *table = strstr(page, "class=\"grew\"");
    ck_assert(chart != NULL && table != NULL && chart < table);
    const char *folded = strstr(table, "<summary>240 more ranks that grew</summary>");
    ck_assert_ptr_nonnull(folded);
    uint32_t before = 0;
    for (const char *at = table; (at = strstr(at, "<tr><th scope=\"row\">")) != NULL && at < folded;
         at++)
        before++;
    ck_assert_uint_eq(before, PAGE_ROWS_OPEN);
    ck_assert_uint_eq(count_of(table, "<tr><th scope=\"row\">"), 256);
    CONTAINS(page, "<details class=\"fold\" id=\"j0-ranks\"><summary>256 ranks</summary>");
}
END_TEST

START_TEST(empty_columns_are_left_out) {
    ranks_make(4, 57, -1, -1, SLICE("a"));
    const char *page = page_made();
    LACKS(page, "Peak of device");
    LACKS(page, ">Finding");
    ck_assert_uint_eq(count_of(strstr(page, "class=\"ranks\""), "<th scope=\"col\">"), 9);
    // A cell for each.
    const char *row = strstr(page, "<tr><th scope=row>"), *end = strchr(row, '\n');
    uint32_t cells = 0;
    for (const char *at = row; (at = strstr(at, "<td")) != NULL && at < end; at++)
        cells++;
    ck_assert_uint_eq(cells, 8);
}
END_TEST

START_TEST(no_line_is_highlighted_when_nobody_is_to_blame) {
    ranks_make(4, 57, -1, -1, SLICE("a"));
    suspect_make(2, 10, 17, 12 * MIB);
    sample_cause(&sample, CAUSE_COMMON_GROWTH, 80 * MIB, 80 * MIB, 1.0, true);
    const char *page = page_made();
    markup_check(page);
    CONTAINS(page, "Memory: all ranks grew alike");
    CONTAINS(page, "card good");
    ck_assert_uint_eq(count_of(page, "class=\"l c0\"><title>"), 0);
}
END_TEST

START_TEST(a_tie_names_nobody) {
    leak_make(4, 57, SLICE("a"));
    sample.cause.sole_earliest = false;
    sample.suspects[1].aligned_ns = sample.suspects[0].aligned_ns;
    const char *page = page_made();
    CONTAINS(page, "no single rank can be named");
    CONTAINS(page, "began at the same moment");
    ck_assert_uint_eq(count_of(page, "class=\"l c0\"><title>"), 0);
    LACKS(page, "started it");
}
END_TEST

// The tick stands for "all ranks were seen, and nothing was found", and for nothing else.
START_TEST(what_is_over_or_not_known_has_no_tick) {
    static const char tick[] = "<path d=\"M5 8.3l2 2 4-4.5\"/>";
    ranks_make(4, 57, -1, -1, SLICE("a"));
    CONTAINS(page_made(), tick);
    static int32_t missing[] = {4};
    sample.evaluation.missing_ranks = missing;
    sample.evaluation.missing_count = 1;
    const char *page = page_made();
    LACKS(page, tick);
    LACKS(page, "card good");
    CONTAINS(page, "</svg>nothing found, ranks are missing</span>");
    sample.evaluation.missing_count = 0;
    // Replaced by an earlier one: the headline says that it was named first.
    struct verdict verdict =
        verdict_make("Rank 2 was named first, but rank 1 began before it", SEVERITY_WARNING);
    verdict.state = VERDICT_RESOLVED;
    input.verdicts = &verdict;
    input.verdict_count = 1;
    page = page_made();
    CONTAINS(page, "</svg>warning, resolved</span>");
    // Nor has the answer one below what was found.
    LACKS(page, tick);
    CONTAINS(page, "</svg>nothing found in memory</span>");
    ck_assert_uint_eq(count_of(page, "<article class=\"card plain\""), 3);
    // What was found of another job is none of this one's; of machines it may be.
    verdict.job = intern(SLICE("other"));
    CONTAINS(page_made(), tick);
    verdict.job = STRING_NONE;
    verdict.state = VERDICT_OPEN;
    LACKS(page_made(), tick);
}
END_TEST

// Bold means that the answer names this rank, and the table says so.
START_TEST(only_the_rank_that_is_named_is_bold) {
    ranks_make(4, 57, -1, -1, SLICE("a"));
    const char *page = page_made();
    LACKS(page, "<tr class=f>");
    LACKS(page, "in bold");
    leak_make(4, 40, SLICE("node"));
    page = page_made();
    ck_assert_uint_eq(count_of(page, "<tr class=f>"), 1);
    const char *bold = strstr(page, "<tr class=f>");
    ck_assert(strstr(bold, "<td>started it<") < strstr(bold, "\n<tr>"));
    CONTAINS(page, "in bold of the one that started it; times are aligned");
}
END_TEST

START_TEST(one_rank_has_none_to_compare_with) {
    ranks_make(1, 57, -1, -1, SLICE("a"));
    const char *page = page_made();
    LACKS(page, "card good");
    CONTAINS(page, "</svg>nothing to compare with</span>");
}
END_TEST

START_TEST(a_leak_without_its_verdict_is_not_settled) {
    leak_make(4, 57, SLICE("a"));
    CONTAINS(page_made(), "not settled yet");
}
END_TEST

// -- jobs and verdicts
// ------------------------------------------------------------------------------

static const char *page_of(struct evaluation *evaluations, uint32_t count) {
    buffer_reset(&page_out);
    batch = sample_batch(&sample);
    batch.evaluations = evaluations;
    batch.evaluation_count = count;
    page_encode(&input, &page_out);
    buffer_append_char(&page_out, '\0');
    ck_assert(!page_out.failed);
    return page_out.data;
}

START_TEST(each_job_has_a_section_the_gravest_first) {
    leak_make(4, 57, SLICE("a"));
    struct evaluation two[] = {sample.evaluation, sample.evaluation};
    two[0].job = intern(SLICE("alpha"));
    two[0].cause = NULL;
    two[1].job = intern(SLICE("beta"));
    struct verdict verdicts[] = {verdict_make("b", SEVERITY_ERROR),
                                 verdict_make("of another job", SEVERITY_CRITICAL)};
    verdicts[0].job = two[1].job;
    verdicts[1].job = intern(SLICE("gamma"));
    input.verdicts = verdicts;
    input.verdict_count = 2;
    const char *page = page_of(two, 2);
    markup_check(page);
    CONTAINS(page, "<h1>Memory of 2 jobs</h1>");
    CONTAINS(page,
             "<li><a href=\"#job0\" target=\"_self\">beta</a> <span "
             "class=\"tag\">error</span></li>\n<li><a href=\"#job1\" target=\"_self\">alpha"
             "</a> <span class=\"tag\">nothing found</span></li>");
    CONTAINS(page, "<h2 id=\"job0\">Job beta</h2>");
    CONTAINS(page, ">Other jobs</h2>");
    CONTAINS(page, "<dt>job</dt><dd>gamma</dd>");
    ck_assert_uint_eq(count_of(page, "id=\"j0r1p\""), 1);
    ck_assert_uint_eq(count_of(page, "id=\"j1r1p\""), 1);
}
END_TEST

START_TEST(the_head_says_what_and_when) {
    leak_make(4, 57, SLICE("a"));
    struct verdict verdict = verdict_make("The link was down", SEVERITY_CRITICAL);
    verdict.pattern = "pcie_aer";
    verdict.start_ns = START - 2000 * MS;
    input.verdicts = &verdict;
    input.verdict_count = 1;
    const char *page = page_made();
    const char *brand = strstr(page, "<p class=\"brand\">culprit ");
    ck_assert_ptr_nonnull(brand);
    ck_assert(brand[25] >= '0' && brand[25] <= '9'); // the version
    CONTAINS(page,
             "<p class=\"quiet\">Data from <time datetime=\"2026-11-21T08:06:50.232Z\">"
             "2026-11-21 08:06:50.232 UTC</time> to <time "
             "datetime=\"2026-11-21T08:06:57.832Z\">2026-11-21 08:06:57.832 UTC</time>, "
             "7.60 s</p>");
    // Each section has its place in the contents, in order.
    const char *nav = strstr(page, "<nav aria-label=\"Contents\">"), *end = strstr(nav, "</nav>");
    const char *at = strstr(nav, "<li><a href=\"#main\" target=\"_self\">What was found</a></li>");
    ck_assert(at != NULL && at < end);
    uint32_t sections = 0;
    for (const char *section = strstr(page, "<main");
         (section = strstr(section, "<h2 id=\"")) != NULL; section++) {
        char link[96];
        snprintf(link, sizeof link, "<li><a href=\"#%.*s\" target=\"_self\">",
                 (int)strcspn(section + 8, "\""), section + 8);
        at = strstr(at, link);
        ck_assert_msg(at != NULL && at < end, "%s is missing or out of order", link);
        sections++;
    }
    ck_assert_uint_ge(sections, 3);
}
END_TEST

START_TEST(several_incidents_begin_with_a_list) {
    enum { VERDICTS = 300 };
    static struct verdict verdicts[VERDICTS];
    static char headlines[VERDICTS][24];
    for (int i = 0; i < VERDICTS; i++) {
        snprintf(headlines[i], sizeof headlines[i], "Pod <%d>", i);
        verdicts[i] = verdict_make(headlines[i], SEVERITY_ERROR);
        verdicts[i].pattern = "pod_evicted";
    }
    input.verdicts = verdicts;
    input.verdict_count = VERDICTS;
    const char *page = page_made();
    markup_check(page);
    const char *list = strstr(page, "<section class=\"list\"");
    const char *end = strstr(list, "</section>"), *first = strstr(page, "<article ");
    ck_assert(list != NULL && end < first);
    CONTAINS(list, "<h2 id=\"incidents\">300 incidents</h2>");
    CONTAINS(list, "Pod &lt;");
    CONTAINS(list, "</a> <span class=\"tag\">error</span><br><span class=\"quiet\"><time ");
    ck_assert_uint_eq(count_of(list, "<li><a href=\"#v"), VERDICTS);
    ck_assert_uint_eq(count_of(page, "<p class=\"quiet\">Incident "), VERDICTS);
    CONTAINS(page, "<p class=\"quiet\">Incident 300 of 300</p>");
    ck_assert_uint_eq(count_of(page, "<article "), VERDICTS);
    CONTAINS(page, "<p class=\"quiet\">Findings from <time");
}
END_TEST

START_TEST(nothing_read_is_said) {
    const char *page = page_of(NULL, 0);
    markup_check(page);
    CONTAINS(page, "Nothing was found, and nothing is known: ");
    CONTAINS(page_of(&sample.evaluation, 1), "Nothing was found, and nothing is known: ");
}
END_TEST

// It is kept over a restart, and the evidence that came before is not.
START_TEST(what_nobody_looked_at_is_said) {
    const struct observation panic = {.kind = OBSERVATION_KERNEL_PANIC, .text = SLICE("Oops")};
    const struct event event = {
        .time_ns = START, .rank = RANK_NONE, .kind = EVENT_OBSERVATION, .observation = &panic};
    const bool taken[EVENT_CLASS_COUNT] = {false};
    const struct batch stream = {.events = &event, .event_count = 1, .taken = taken};
    struct page_notes *notes = page_notes_new();
    ranks_make(2, 57, -1, -1, SLICE("a"));
    input.notes = notes;
    CONTAINS(page_made(), "Healthy: ");
    page_notes_add(notes, &stream);
    CONTAINS(page_made(), "but logs report failures that no processor of this pipeline looks at");
    input.notes = NULL;
    page_notes_release(notes);
}
END_TEST

START_TEST(what_was_not_there_is_said) {
    static const struct seen of_ranks = {.kinds = 1u << EVENT_TELEMETRY, .event_count = 7},
                             of_nodes = {.kinds = 1u << EVENT_KERNEL, .event_count = 7};
    ranks_make(2, 57, -1, -1, SLICE("a"));
    LACKS(page_made(), ">Not checked</h2>"); // nobody knows
    input.seen = &of_ranks;
    const char *page = page_made();
    markup_check(page);
    CONTAINS(page, ">Not checked</h2>\n<p class=\"quiet\">For want of evidence:</p>");
    CONTAINS(page, "<summary>hangs (no Flight Recorder dumps)</summary>");
    // Behind a finding only where something was seen of nodes, as in the terminal.
    struct verdict verdict = verdict_make("it broke", SEVERITY_ERROR);
    verdict.pattern = "gpu_fault";
    input.verdicts = &verdict;
    input.verdict_count = 1;
    LACKS(page_made(), ">Not checked</h2>");
    input.seen = &of_nodes;
    CONTAINS(page_made(), ">Not checked</h2>");
}
END_TEST

START_TEST(only_the_verdict_on_this_cause_is_told_by_the_answer) {
    leak_make(4, 57, SLICE("a"));
    struct attribute earlier[] = {{"culprit.generation", SLICE("0")}, {"culprit.rank", SLICE("3")}};
    struct attribute now[] = {{"culprit.generation", SLICE("0")}, {"culprit.rank", SLICE("2")}};
    struct verdict verdicts[] = {verdict_make("earlier finding", SEVERITY_ERROR),
                                 verdict_make("present finding", SEVERITY_WARNING)};
    verdicts[0].attributes = earlier;
    verdicts[1].attributes = now;
    verdicts[0].attribute_count = verdicts[1].attribute_count = 2;
    input.verdicts = verdicts;
    input.verdict_count = 2;
    const char *page = page_made();
    ck_assert_uint_eq(count_of(page, "present finding"), 1); // as the headline of the answer
    CONTAINS(page, "Also found");
    CONTAINS(page, "earlier finding");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("page");
    TCase *cases = tcase_create("page");
    tcase_add_checked_fixture(cases, page_setup, page_teardown);
    tcase_add_test(cases, tells_the_story_of_the_terminal);
    tcase_add_test(cases, stands_alone);
    tcase_add_test(cases, allows_itself_and_nothing_else);
    tcase_add_test(cases, is_the_same_for_the_same_input);
    tcase_add_test(cases, texts_cannot_act);
    tcase_add_test(cases, a_long_series_keeps_its_peaks);
    tcase_add_test(cases, a_short_series_is_drawn_as_it_is);
    tcase_add_test(cases, a_silence_breaks_the_line);
    tcase_add_test(cases, noise_is_drawn_as_noise);
    tcase_add_test(cases, odd_values_fit_the_axes);
    tcase_add_test(cases, many_ranks_are_lines_and_a_band);
    tcase_add_test(cases, charts_come_before_tables_and_long_ones_are_folded);
    tcase_add_test(cases, empty_columns_are_left_out);
    tcase_add_test(cases, no_line_is_highlighted_when_nobody_is_to_blame);
    tcase_add_test(cases, a_tie_names_nobody);
    tcase_add_test(cases, what_is_over_or_not_known_has_no_tick);
    tcase_add_test(cases, only_the_rank_that_is_named_is_bold);
    tcase_add_test(cases, one_rank_has_none_to_compare_with);
    tcase_add_test(cases, a_leak_without_its_verdict_is_not_settled);
    tcase_add_test(cases, each_job_has_a_section_the_gravest_first);
    tcase_add_test(cases, the_head_says_what_and_when);
    tcase_add_test(cases, several_incidents_begin_with_a_list);
    tcase_add_test(cases, nothing_read_is_said);
    tcase_add_test(cases, what_nobody_looked_at_is_said);
    tcase_add_test(cases, what_was_not_there_is_said);
    tcase_add_test(cases, only_the_verdict_on_this_cause_is_told_by_the_answer);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
