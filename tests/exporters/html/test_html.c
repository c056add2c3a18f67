// SPDX-License-Identifier: Apache-2.0
// The html exporter: when it writes, what it remembers of the stream, and that a crash loses none.
#include "base/clock.h"
#include "base/http/server.h"
#include "cli/component_list.h"
#include "config/server_options.h"
#include "exporters/html/live.h"
#include "exporters/report/kept_verdicts.h"
#include "exporters/report/page/parts.h"
#include "pipeline/model/observation.h"
#include "tests/exporters/report/page_fixture.h"
#include "tests/exporters/scratch.h"

#include "base/log.h"

static struct page_notes *notes;
static struct arena arena;
static struct telemetry records[512];
static struct event events[512];

static void setup(void) {
    page_setup();
    scratch_make();
    arena_init(&arena, 1 << 16);
    notes = page_notes_new();
}

static void teardown(void) {
    page_notes_release(notes);
    arena_release(&arena);
    scratch_remove();
    page_teardown();
}

// -- notes ----------------------------------------------------------------------------------------

static struct event *event_make(uint32_t i, const char *type, int32_t rank, uint64_t time_ns) {
    records[i] = (struct telemetry){.event_type = intern(slice_of(type)), .rank = rank};
    events[i] = (struct event){.time_ns = time_ns,
                               .job = intern(SLICE("llama")),
                               .node = intern(SLICE("node-a")),
                               .rank = rank,
                               .kind = EVENT_TELEMETRY,
                               .telemetry = &records[i]};
    return &events[i];
}

static void note(uint32_t count, uint64_t *selected) {
    struct batch stream = {
        .events = events, .event_count = count, .arena = &arena, .selected = selected};
    page_notes_add(notes, &stream);
}

static uint32_t kind_count(enum page_alert_kind kind) {
    const struct page_alert *alerts = page_notes_alerts(notes, &arena);
    uint32_t count = 0;
    for (uint32_t i = 0; i < page_notes_alert_count(notes); i++)
        count += alerts[i].kind == (int32_t)kind;
    return count;
}

START_TEST(the_newest_alerts_are_kept_in_any_order) {
    // 400 warnings by 7s around, so that they come in no order.
    for (uint32_t i = 0; i < 400; i++)
        event_make(i, "warning", 1, START + (uint64_t)(i * 7 % 400) * MS);
    note(400, NULL);
    ck_assert_uint_eq(page_notes_alert_count(notes), PAGE_ALERTS_MAX);
    ck_assert_uint_eq(page_notes_alert_total(notes), 400);
    const struct page_alert *alerts = page_notes_alerts(notes, &arena);
    for (uint32_t i = 0; i < PAGE_ALERTS_MAX; i++)
        ck_assert_uint_eq(alerts[i].time_ns, START + (uint64_t)(i + 150) * MS);
}
END_TEST

START_TEST(peaks_are_no_alerts) {
    ranks_make(4, 57, -1, -1, SLICE("a"));
    for (uint32_t i = 0; i < 108; i++)
        event_make(i, "peak", (int32_t)(i % 4), START + i * MS);
    note(108, NULL);
    input.notes = notes;
    const char *page = page_made();
    markup_check(page);
    CONTAINS(page, ">New peaks</h2>");
    CONTAINS(page, "They are no alerts.");
    CONTAINS(page, "<details class=\"fold\" id=\"j0-peaks\"><summary>108 new peaks</summary>");
    LACKS(page, ">Alerts</h2>");
    event_make(0, "warning", 1, START + 1000 * MS);
    note(1, NULL);
    page = page_made();
    const char *alerts = strstr(page, ">Alerts</h2>");
    ck_assert(alerts != NULL && strstr(alerts, ">New peaks</h2>") != NULL);
    CONTAINS(alerts, "<summary>1 alert</summary>");
}
END_TEST

START_TEST(peaks_give_way) {
    for (uint32_t i = 0; i < 240; i++)
        event_make(i, "peak", 1, START + 1000 * MS + i);
    for (uint32_t i = 240; i < 300; i++)
        event_make(i, i % 2 == 0 ? "critical" : "error", 1, START + i);
    for (uint32_t i = 300; i < 400; i++)
        event_make(i, "peak", 1, START + 2000 * MS + i);
    note(400, NULL);
    ck_assert_uint_eq(kind_count(ALERT_CRITICAL), 30);
    ck_assert_uint_eq(kind_count(ALERT_ERROR), 30);
    ck_assert_uint_eq(kind_count(ALERT_PEAK), 190);
}
END_TEST

START_TEST(only_what_is_selected_and_an_alert_is_noted) {
    event_make(0, "warning", 1, START);
    event_make(1, "warning", 1, START + 1);
    event_make(2, "start", 1, START + 2);
    event_make(3, "Warning", 1, START + 3);
    records[0].device_total_bytes = records[1].device_total_bytes = 100 * MIB;
    records[1].context = SLICE("80 % \x1b[31m in use");
    uint64_t selected = 0xe;
    note(4, &selected);
    ck_assert_uint_eq(page_notes_alert_count(notes), 1);
    ck_assert_str_eq(page_notes_alerts(notes, &arena)[0].text, "80 % \\x1b[31m in use");
}
END_TEST

static int64_t device_of(const char *job, int32_t rank) {
    return page_notes_device_bytes(notes, job == NULL ? STRING_NONE : intern(slice_of(job)), rank);
}

START_TEST(devices_are_known_until_their_job_is_forgotten) {
    for (uint32_t i = 0; i < 400; i++) {
        event_make(i, "sample", (int32_t)i, START);
        records[i].type = TELEMETRY_SAMPLE;
        records[i].device_total_bytes = (int64_t)(i + 1) * MIB;
        events[i].job = i % 2 == 0 ? intern(SLICE("even")) : intern(SLICE("odd"));
    }
    records[7].null_counters = COUNTER_DEVICE_TOTAL;
    note(400, NULL);
    records[3].device_total_bytes = MIB; // the largest that was told counts
    events[5].job = STRING_NONE;
    note(8, NULL);
    ck_assert_int_eq(device_of("even", 398), 399 * MIB);
    ck_assert_int_eq(device_of("odd", 3), 4 * MIB);
    ck_assert_int_eq(device_of("odd", 7), 0);
    ck_assert_int_eq(device_of("odd", 398), 0);
    ck_assert_int_eq(device_of("another", 5), 6 * MIB); // told without a job
    struct forgotten_job jobs[] = {{.job = intern(SLICE("odd"))}};
    struct forgotten forgotten = {.jobs = jobs, .job_count = 1};
    struct batch stream = {.arena = &arena, .forgotten = &forgotten};
    page_notes_add(notes, &stream);
    ck_assert_int_eq(device_of("odd", 3), 0);
    ck_assert_int_eq(device_of("even", 398), 399 * MIB);
    forgotten.everything = true;
    page_notes_add(notes, &stream);
    ck_assert_int_eq(device_of("even", 398), 0);
    note(400, NULL);
    ck_assert_int_eq(device_of("odd", 399), 400 * MIB);
}
END_TEST

START_TEST(nothing_is_allocated_for_what_is_known) {
    for (uint32_t i = 0; i < 400; i++) {
        event_make(i, i % 3 == 0 ? "warning" : "sample", (int32_t)i, START + i);
        records[i].context = SLICE("some context");
        records[i].device_total_bytes = 80 * MIB;
    }
    note(400, NULL);
    uint64_t before = memory_figures().allocations;
    for (int round = 0; round < 10; round++)
        note(400, NULL);
    ck_assert_uint_eq(memory_figures().allocations, before);
}
END_TEST

// -- verdicts
// ---------------------------------------------------------------------------------------

static struct verdict verdict_numbered(uint32_t number, enum verdict_state state) {
    static char headline[64];
    static struct entity entity = {"rank", {"2", 1}, ROLE_SUSPECT};
    static struct evidence evidence = {
        {"sample:1", 8}, {"rank 2 grew", 11}, START, true, EVIDENCE_EFFECT, false};
    static struct related related = {"node_fault:00000000000000ab", RELATION_CAUSES};
    static struct attribute attribute = {"culprit.rank", {"2", 1}};
    snprintf(headline, sizeof headline, "finding %u", number);
    struct verdict verdict = {
        .pattern = "node_fault",
        .kind = "xid",
        .job = intern(SLICE("llama")),
        .state = state,
        .severity = SEVERITY_CRITICAL,
        .partial = true,
        .confidence = 60,
        .headline = slice_of(headline),
        .remediation = SLICE("Drain the node."),
        .action = "drain_node",
        .start_ns = START,
        .end_ns = START + 5,
        .entities = &entity,
        .entity_count = 1,
        .entities_dropped = 3,
        .evidence = &evidence,
        .evidence_count = 1,
        .evidence_dropped = 4,
        .attributes = &attribute,
        .attribute_count = 1,
        .related = &related,
        .related_count = 1,
    };
    snprintf(verdict.id, sizeof verdict.id, "node_fault:%016u", number);
    return verdict;
}

static void check_same(const struct verdict *got, const struct verdict *wanted) {
    struct buffer a, b;
    buffer_init(&a, 1 << 20);
    buffer_init(&b, 1 << 20);
    verdict_encode(got, &a);
    verdict_encode(wanted, &b);
    ck_assert_msg(slice_equal(buffer_slice(&a), buffer_slice(&b)), "%.*s\n%.*s", (int)a.size,
                  a.data, (int)b.size, b.data);
    buffer_release(&a);
    buffer_release(&b);
}

struct keeper {
    struct kept_verdicts kept;
};

static struct kept_verdicts *keeper_init(struct keeper *keeper) {
    static const struct state_row rows[] = {
        STATE_PART(struct keeper, kept, "kept", kept_verdicts_part)};
    *keeper = (struct keeper){0};
    state_rows_init(rows, OPTION_COUNT(rows), keeper);
    return &keeper->kept;
}

static void keeper_release(struct keeper *keeper) {
    table_release(&keeper->kept.rows);
    table_release(&keeper->kept.chunks);
}

START_TEST(verdicts_are_kept_whole) {
    struct keeper keeper;
    struct kept_verdicts *kept = keeper_init(&keeper);
    struct verdict first = verdict_numbered(1, VERDICT_OPEN);
    kept_verdicts_put(kept, &first);
    // A long one, over many chunks, and its end on a chunk's.
    static char text[5000];
    memset(text, 'x', sizeof text);
    for (size_t size = 0; size < sizeof text; size += 127) {
        struct verdict second = verdict_numbered(2, VERDICT_UPDATED);
        second.remediation = (struct slice){text, size};
        kept_verdicts_put(kept, &second);
        uint32_t count = 0;
        const struct verdict *all = kept_verdicts_all(kept, &arena, &count);
        ck_assert_uint_eq(count, 2);
        check_same(&all[1], &second);
    }
    first = verdict_numbered(1, VERDICT_OPEN);
    uint32_t count = 0;
    check_same(kept_verdicts_all(kept, &arena, &count), &first);
    // What was replaced is used again.
    ck_assert_uint_lt(kept->chunks.used, 16);
    keeper_release(&keeper);
}
END_TEST

static bool is_kept(const struct kept_verdicts *kept, uint32_t number) {
    char headline[64];
    snprintf(headline, sizeof headline, "finding %u", number);
    uint32_t count = 0;
    const struct verdict *all = kept_verdicts_all(kept, &arena, &count);
    for (uint32_t i = 0; i < count; i++)
        if (slice_equal(all[i].headline, slice_of(headline)))
            return true;
    return false;
}

START_TEST(with_too_many_the_oldest_that_is_over_goes) {
    struct keeper keeper;
    struct kept_verdicts *kept = keeper_init(&keeper);
    for (uint32_t i = 0; i < KEPT_VERDICTS_MAX; i++) {
        struct verdict verdict =
            verdict_numbered(i, i == 500 || i == 700 ? VERDICT_RESOLVED : VERDICT_OPEN);
        kept_verdicts_put(kept, &verdict);
    }
    for (uint32_t i = 0; i < 3; i++) {
        struct verdict verdict = verdict_numbered(KEPT_VERDICTS_MAX + i, VERDICT_OPEN);
        kept_verdicts_put(kept, &verdict);
    }
    uint32_t count = 0;
    (void)kept_verdicts_all(kept, &arena, &count);
    ck_assert_uint_eq(count, KEPT_VERDICTS_MAX);
    ck_assert(!is_kept(kept, 500) && !is_kept(kept, 700) && !is_kept(kept, 0));
    ck_assert(is_kept(kept, 1) && is_kept(kept, KEPT_VERDICTS_MAX + 2));
    keeper_release(&keeper);
}
END_TEST

// -- the exporter
// -----------------------------------------------------------------------------------

struct config_of_html {
    const char *path, *endpoint;
    struct duration refresh;
    struct tls_server_config tls;
    struct auth_server_config auth;
    const char *title;
    int64_t max_points, max_ranks;
    struct sending_config sending;
};

static void *instance;
static struct buffer piece;

static void exporter_start_with(const char *path, const char *endpoint) {
    static struct config_of_html config;
    config = (struct config_of_html){.path = path,
                                     .endpoint = endpoint,
                                     .refresh = {3600 * INT64_C(1000000000)},
                                     .max_points = 100,
                                     .max_ranks = 8};
    ck_assert_uint_eq(exporter_html.config_size, sizeof config);
    struct component_context context = {.id = "html", .site = "exporter/html"};
    struct error error = {0};
    instance = memory_zero(1, exporter_html.instance_size);
    ck_assert_msg(component_start(&exporter_html, instance, &config, &context, &error) == STATUS_OK,
                  "%s", error.message);
    buffer_init(&piece, 1 << 24);
}

static void exporter_start(const char *name) {
    static char path[160];
    snprintf(path, sizeof path, "%s", scratch_path(name));
    exporter_start_with(path, NULL);
}

static void exporter_stop(void) {
    component_stop(&exporter_html, instance);
    memory_give(instance);
    buffer_release(&piece);
}

// What the sender's thread does. Whether a page came of it.
static bool page_render(void *of, struct buffer *out) {
    const struct render_calls *render = &exporter_html.exporter.render;
    if (render->due(of) == UINT64_MAX)
        return false;
    render->begin(of, true);
    render->run(of, out);
    return render->end(of) && out->size > 0;
}

// Encodes, renders, sends what there is, and returns whether there was something.
static bool export_batch(struct batch *stream) {
    buffer_reset(&piece);
    exporter_html.exporter.encode(instance, stream, &piece);
    if (piece.size == 0 && !page_render(instance, &piece))
        return false;
    struct request request = {.bytes = buffer_slice(&piece), .complete = true};
    struct send_outcome outcome = {0};
    struct error error = {0};
    ck_assert_int_eq(exporter_html.exporter.send(instance, &request, &outcome, &error), STATUS_OK);
    return true;
}

// What no stage of the pipeline takes is no news of health; kinds are told by the pipeline.
START_TEST(says_what_no_detector_looks_at) {
    const struct observation panic = {.kind = OBSERVATION_KERNEL_PANIC, .text = SLICE("Oops")};
    const struct event event = {
        .time_ns = START, .rank = RANK_NONE, .kind = EVENT_OBSERVATION, .observation = &panic};
    bool taken[EVENT_CLASS_COUNT] = {false};
    static const char words[] = "logs report failures that no processor of this pipeline looks at";
    ranks_make(2, 20, -1, -1, SLICE("node-b"));
    for (int looked_at = 1; looked_at >= 0; looked_at--) {
        taken[event_class(&event)] = looked_at == 1;
        exporter_start("unread.html");
        struct batch stream = {.events = &event, .event_count = 1, .taken = taken};
        ck_assert(!export_batch(&stream));
        stream = sample_batch(&sample);
        stream.evaluate = stream.last = true;
        ck_assert(export_batch(&stream));
        buffer_append_char(&piece, '\0');
        ck_assert((strstr(piece.data, words) == NULL) == (looked_at == 1));
        exporter_stop();
    }
}
END_TEST

static struct batch live_batch(struct verdict *verdicts, uint32_t count) {
    struct batch stream = sample_batch(&sample);
    stream.last = false;
    stream.verdicts = (struct verdict_list){verdicts, count, count};
    return stream;
}

START_TEST(live_it_is_written_when_a_verdict_changes) {
    exporter_start("page.html");
    leak_make(4, 57, SLICE("node-b"));
    struct batch stream = live_batch(NULL, 0);
    ck_assert(!export_batch(&stream));
    struct verdict verdict = verdict_numbered(1, VERDICT_OPEN);
    stream = live_batch(&verdict, 1);
    ck_assert(export_batch(&stream));
    const char *page = scratch_read("page.html");
    markup_check(page);
    CONTAINS(page, "finding 1");
    stream = live_batch(NULL, 0);
    ck_assert(!export_batch(&stream));
    // At the end once more, with what stands; the job of this finding is not in that evaluation.
    stream.last = true;
    sample.evaluation.job = intern(SLICE("another"));
    ck_assert(export_batch(&stream));
    page = scratch_read("page.html");
    CONTAINS(page, "<h1>Memory of job another</h1>");
    CONTAINS(page, "<dt>job</dt><dd>llama</dd>");
    CONTAINS(page, "finding 1");
    ck_assert_ptr_null(scratch_read("page.html.tmp"));
    exporter_stop();
}
END_TEST

// Encodes and leaves it at that.
static void encode_batch(struct batch *stream) {
    buffer_reset(&piece);
    exporter_html.exporter.encode(instance, stream, &piece);
}

START_TEST(a_page_that_waits_gives_way_to_a_newer_one) {
    const struct render_calls *render = &exporter_html.exporter.render;
    exporter_start("page.html");
    leak_make(4, 57, SLICE("node-b"));
    ck_assert_uint_eq(render->due(instance), UINT64_MAX);
    for (uint32_t i = 1; i <= 3; i++) {
        struct verdict verdict = verdict_numbered(i, VERDICT_OPEN);
        struct batch stream = live_batch(&verdict, 1);
        encode_batch(&stream);
        ck_assert_uint_eq(piece.size, 0);
    }
    ck_assert_uint_lt(render->due(instance), UINT64_MAX);
    // While it is rendered, two more evaluations come: the second one counts.
    render->begin(instance, false);
    for (uint32_t i = 4; i <= 5; i++) {
        struct verdict verdict = verdict_numbered(i, VERDICT_OPEN);
        struct batch stream = live_batch(&verdict, 1);
        encode_batch(&stream);
    }
    buffer_reset(&piece);
    render->run(instance, &piece);
    ck_assert(render->end(instance));
    buffer_append_char(&piece, '\0');
    CONTAINS(piece.data, "finding 3");
    LACKS(piece.data, "finding 4");
    // The page rests for as long as it took; then the newest is made, and nothing waits.
    ck_assert_uint_gt(render->due(instance), 0);
    buffer_reset(&piece);
    ck_assert(page_render(instance, &piece));
    buffer_append_char(&piece, '\0');
    CONTAINS(piece.data, "finding 5");
    ck_assert_uint_eq(render->due(instance), UINT64_MAX);
    exporter_stop();
}
END_TEST

START_TEST(a_page_rests_the_longer_the_less_is_new) {
    const struct render_calls *render = &exporter_html.exporter.render;
    uint64_t due_ns[2];
    exporter_start("page.html");
    leak_make(4, 57, SLICE("node-b"));
    for (int is_new = 0; is_new < 2; is_new++) {
        struct verdict verdict = verdict_numbered(1, is_new ? VERDICT_OPEN : VERDICT_UPDATED);
        struct batch stream = live_batch(&verdict, 1);
        if (is_new == 0)
            ck_assert(export_batch(&stream));
        encode_batch(&stream);
        due_ns[is_new] = render->due(instance);
    }
    ck_assert_uint_lt(due_ns[1], due_ns[0]);
    ck_assert_uint_le(due_ns[0], clock_monotonic_ns() + LIVE_REST_MAX_NS);
    exporter_stop();
}
END_TEST

// Nothing may come behind an evaluation, so what it shows waits until a page is due by the clock.
START_TEST(what_is_served_is_that_of_the_last_evaluation) {
    const struct render_calls *render = &exporter_html.exporter.render;
    char endpoint[200];
    snprintf(endpoint, sizeof endpoint, "unix:%s", scratch_path("page.sock"));
    exporter_start_with(NULL, endpoint);
    leak_make(4, 57, SLICE("node-b"));
    for (int i = 0; i < 2; i++) {
        struct batch stream = live_batch(NULL, 0);
        encode_batch(&stream);
        uint64_t due_ns = render->due(instance), now_ns = clock_monotonic_ns();
        ck_assert_uint_gt(due_ns, now_ns);
        ck_assert_uint_le(due_ns, now_ns + UINT64_C(3600000000000));
    }
    // A change of a verdict does not wait for it.
    struct verdict verdict = verdict_numbered(1, VERDICT_UPDATED);
    struct batch stream = live_batch(&verdict, 1);
    encode_batch(&stream);
    ck_assert_uint_le(render->due(instance), clock_monotonic_ns() + LIVE_REST_MAX_NS);
    ck_assert(!page_render(instance, &piece));
    ck_assert_uint_eq(render->due(instance), UINT64_MAX);
    exporter_stop();
    http_server_drop_kept();
}
END_TEST

START_TEST(the_last_page_supersedes_what_is_rendered_or_waits) {
    const struct render_calls *render = &exporter_html.exporter.render;
    exporter_start("page.html");
    leak_make(4, 57, SLICE("node-b"));
    struct verdict verdict = verdict_numbered(1, VERDICT_OPEN);
    struct batch stream = live_batch(&verdict, 1);
    encode_batch(&stream);
    render->begin(instance, false);
    encode_batch(&stream);
    struct batch end = sample_batch(&sample);
    encode_batch(&end);
    ck_assert_uint_gt(piece.size, 0);
    ck_assert_uint_eq(render->due(instance), UINT64_MAX);
    buffer_reset(&piece);
    render->run(instance, &piece);
    ck_assert(!render->end(instance));
    exporter_stop();
}
END_TEST

START_TEST(utilisation_and_alerts_come_from_the_stream) {
    exporter_start("page.html");
    leak_make(4, 57, SLICE("node-b"));
    event_make(0, "critical", 2, START + 3000 * MS)->telemetry = &records[0];
    records[0].device_total_bytes = 2048 * MIB;
    records[0].context = SLICE("allocation <failed>");
    struct batch stream = {.events = events, .event_count = 1, .arena = &sample.arena};
    ck_assert(!export_batch(&stream));
    struct batch end = sample_batch(&sample);
    ck_assert(export_batch(&end));
    const char *page = scratch_read("page.html");
    markup_check(page);
    CONTAINS(page, "Utilisation of each device");
    CONTAINS(page,
             "<title>critical, rank 2, 2026-11-21 08:06:55.232 UTC: allocation "
             "&lt;failed&gt;</title>");
    CONTAINS(page, "<td>allocation &lt;failed&gt;\n");
    ck_assert_uint_eq(count_of(page, "<path id=\"j0u"), 1);
    exporter_stop();
}
END_TEST

START_TEST(a_place_that_cannot_be_written_is_found_at_the_start) {
    struct config_of_html config = {.path = "/nonexistent/page.html"};
    struct component_context context = {.id = "html", .site = "exporter/html"};
    struct error error = {0};
    instance = memory_zero(1, exporter_html.instance_size);
    ck_assert_int_ne(component_start(&exporter_html, instance, &config, &context, &error),
                     STATUS_OK);
    ck_assert_ptr_nonnull(strstr(error.message, "/nonexistent/page.html"));
    component_stop(&exporter_html, instance);
    memory_give(instance);
}
END_TEST

// -- kept across a crash
// ------------------------------------------------------------------------------

// What was remembered, put into a new instance as a store would; `leave_out` is lost.
static void state_move(void *from, void *to, const char *leave_out) {
    struct state_list old = {0}, new = {0};
    component_list_state(&exporter_html, from, &old);
    component_list_state(&exporter_html, to, &new);
    ck_assert_uint_eq(old.count, new.count);
    for (uint32_t i = 0; i < old.count; i++) {
        ck_assert_str_eq(old.entries[i].name, new.entries[i].name);
        struct table *source = old.entries[i].table, *target = new.entries[i].table;
        if (leave_out != NULL && strcmp(old.entries[i].name, leave_out) == 0)
            continue;
        if (source == NULL) {
            memcpy(new.entries[i].bytes, old.entries[i].bytes, old.entries[i].size);
            continue;
        }
        table_load(target, source->used, source->free_head, source->free_count);
        for (uint32_t page = 0; page < table_page_count(source); page++) {
            size_t size;
            const void *bytes = table_page(source, page, &size);
            memcpy(table_page(target, page, &size), bytes, size);
        }
    }
    component_restored(&exporter_html, to);
}

static void story_tell(void) {
    leak_make(4, 57, SLICE("node-b"));
    for (uint32_t i = 0; i < 300; i++) {
        event_make(i, i % 2 == 0 ? "peak" : "warning", (int32_t)(i % 4),
                   START + (uint64_t)(i * 37 % 300) * 10 * MS);
        records[i].device_total_bytes = 2048 * MIB;
        records[i].context = SLICE("so it was");
    }
    struct batch stream = {.events = events, .event_count = 300, .arena = &sample.arena};
    struct verdict verdicts[] = {verdict_numbered(1, VERDICT_OPEN),
                                 verdict_numbered(2, VERDICT_RESOLVED)};
    (void)export_batch(&stream);
    stream = live_batch(verdicts, 2);
    (void)export_batch(&stream);
}

START_TEST(a_crash_changes_nothing) {
    exporter_start("before.html");
    story_tell();
    struct batch end = sample_batch(&sample);
    ck_assert(export_batch(&end));
    char *before = strdup(scratch_read("before.html"));
    void *first = instance;
    buffer_release(&piece);
    exporter_start("after.html");
    state_move(first, instance, NULL);
    ck_assert(export_batch(&end));
    ck_assert_str_eq(scratch_read("after.html"), before);
    free(before);
    exporter_stop();
    component_stop(&exporter_html, first);
    memory_give(first);
}
END_TEST

// What was not rendered yet is in no checkpoint: a start makes it at its first evaluation, without
// any news; and once only.
START_TEST(a_page_that_a_crash_took_is_made_at_the_next_evaluation) {
    const struct render_calls *render = &exporter_html.exporter.render;
    exporter_start("page.html");
    leak_make(4, 57, SLICE("node-b"));
    struct verdict verdict = verdict_numbered(1, VERDICT_OPEN);
    struct batch stream = live_batch(&verdict, 1);
    encode_batch(&stream);
    if (_i > 0) { // it may be under way, too, or done
        render->begin(instance, false);
        buffer_reset(&piece);
        render->run(instance, &piece);
        if (_i > 1)
            ck_assert(render->end(instance));
    }
    void *first = instance;
    buffer_release(&piece);
    exporter_start("page.html");
    state_move(first, instance, NULL);
    ck_assert_uint_eq(render->due(instance), UINT64_MAX);
    stream = live_batch(NULL, 0);
    ck_assert_int_eq(export_batch(&stream), _i < 2);
    if (_i < 2)
        CONTAINS(scratch_read("page.html"), "finding 1");
    ck_assert(!export_batch(&stream));
    exporter_stop();
    component_stop(&exporter_html, first);
    memory_give(first);
}
END_TEST

START_TEST(part_of_the_state_is_no_trap) {
    static const char *const lost[] = {"html.verdicts", "html.texts", "page.alerts",
                                       "page.devices"};
    exporter_start("before.html");
    story_tell();
    void *first = instance;
    buffer_release(&piece);
    exporter_start("after.html");
    state_move(first, instance, lost[_i]);
    struct batch end = sample_batch(&sample);
    ck_assert(export_batch(&end));
    const char *page = scratch_read("after.html");
    markup_check(page);
    ck_assert_uint_eq(count_of(page, "finding ") > 0, _i >= 2);
    // And it goes on from there.
    struct verdict verdict = verdict_numbered(1, VERDICT_UPDATED);
    end.verdicts = (struct verdict_list){&verdict, 1, 1};
    ck_assert(export_batch(&end));
    CONTAINS(scratch_read("after.html"), "finding 1");
    exporter_stop();
    component_stop(&exporter_html, first);
    memory_give(first);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("html");
    TCase *cases = tcase_create("html");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, the_newest_alerts_are_kept_in_any_order);
    tcase_add_test(cases, peaks_are_no_alerts);
    tcase_add_test(cases, peaks_give_way);
    tcase_add_test(cases, only_what_is_selected_and_an_alert_is_noted);
    tcase_add_test(cases, devices_are_known_until_their_job_is_forgotten);
    tcase_add_test(cases, nothing_is_allocated_for_what_is_known);
    tcase_add_test(cases, says_what_no_detector_looks_at);
    tcase_add_test(cases, verdicts_are_kept_whole);
    tcase_add_test(cases, with_too_many_the_oldest_that_is_over_goes);
    tcase_add_test(cases, live_it_is_written_when_a_verdict_changes);
    tcase_add_test(cases, a_page_that_waits_gives_way_to_a_newer_one);
    tcase_add_test(cases, a_page_rests_the_longer_the_less_is_new);
    tcase_add_test(cases, what_is_served_is_that_of_the_last_evaluation);
    tcase_add_test(cases, the_last_page_supersedes_what_is_rendered_or_waits);
    tcase_add_loop_test(cases, a_page_that_a_crash_took_is_made_at_the_next_evaluation, 0, 3);
    tcase_add_test(cases, utilisation_and_alerts_come_from_the_stream);
    tcase_add_test(cases, a_place_that_cannot_be_written_is_found_at_the_start);
    tcase_add_test(cases, a_crash_changes_nothing);
    tcase_add_loop_test(cases, part_of_the_state_is_no_trap, 0, 4);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
