// SPDX-License-Identifier: Apache-2.0
// What is said of a tracking run: against the goldens of the real export, and at the edges.
#include "tests/exporters/wandb/wandb_tracking_fixture.h"

static void setup(void) {
    json_set_alloc_funcs(memory_take, memory_give);
    tracking_setup();
}

static void teardown(void) {
    tracking_teardown();
}

// -- the goldens ----------------------------------------------------------------------------------

static const char *const cases[] = {"small_no_alerts", "pinned_over_250", "artifacts_on",
                                    "attribution_bundle"};
static char case_folder[512];

static const char *case_path(const char *name) {
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", case_folder, name);
    return path;
}

static json_t *case_json(const char *name) {
    return json_file(case_path(name));
}

static void take_bytes(const json_t *event, const char *name, const char *legacy, uint32_t nulls,
                       enum tracker_field field, int64_t *value, struct telemetry *telemetry,
                       struct tracker_record *tracker) {
    const json_t *own = json_object_get(event, telemetry->tracker == NULL ? name : legacy);
    if (json_is_integer(own)) {
        *value = tracker->counters[field] = json_integer_value(own);
        tracker->present |= 1u << field;
    } else {
        telemetry->null_counters |= nulls;
    }
}

static void note_json(const json_t *event) {
    struct tracker_record tracker = {
        .timestamp_s = json_number_value(json_object_get(event, "timestamp")),
    };
    bool is_tracker = json_object_get(event, "schema_version") == NULL;
    json_t *job = json_object_get(event, "job_id"), *context = json_object_get(event, "context");
    struct telemetry telemetry = {
        .timestamp_ns = (uint64_t)json_integer_value(json_object_get(event, "timestamp_ns")),
        .rank = (int32_t)json_integer_value(json_object_get(event, "rank")),
        .event_type = intern(slice_of(json_string_value(json_object_get(event, "event_type")))),
        .job = json_is_string(job) ? intern(slice_of(json_string_value(job))) : STRING_NONE,
        .context = {json_string_value(context), json_string_length(context)},
        .tracker = is_tracker ? &tracker : NULL,
    };
    take_bytes(event, "allocator_allocated_bytes", "memory_allocated", COUNTER_ALLOCATED,
               TRACKER_ALLOCATED, &telemetry.allocated_bytes, &telemetry, &tracker);
    take_bytes(event, "allocator_reserved_bytes", "memory_reserved", COUNTER_RESERVED,
               TRACKER_RESERVED, &telemetry.reserved_bytes, &telemetry, &tracker);
    take_bytes(event, "allocator_change_bytes", "memory_change", COUNTER_CHANGE, TRACKER_CHANGE,
               &telemetry.change_bytes, &telemetry, &tracker);
    take_bytes(event, "device_used_bytes", "device_used", COUNTER_DEVICE_USED, TRACKER_DEVICE_USED,
               &telemetry.device_used_bytes, &telemetry, &tracker);
    take_bytes(event, "device_total_bytes", "device_total", COUNTER_DEVICE_TOTAL,
               TRACKER_DEVICE_TOTAL, &telemetry.device_total_bytes, &telemetry, &tracker);
    tracker.present |= 1u << TRACKER_RANK;
    if (json_is_string(job))
        tracker.present |= 1u << TRACKER_JOB;
    if (json_is_string(context))
        tracker.present |= 1u << TRACKER_CONTEXT;
    note(&telemetry);
}

static void note_case(void) {
    FILE *file = fopen(case_path("input/events.jsonl"), "r");
    char *line = NULL;
    size_t room = 0;
    ck_assert_ptr_nonnull(file);
    for (ssize_t size; (size = getline(&line, &room, file)) > 0;) {
        json_t *event = json_of((struct slice){line, (size_t)size});
        note_json(event);
        json_decref(event);
    }
    free(line);
    fclose(file);
}

// A path of the case's tree, copied to the scratch folder; NULL when it names none.
static const char *tree_path(const json_t *options, const char *key) {
    const char *name = json_string_value(json_object_get(options, key));
    return name == NULL ? NULL : kept_path(name);
}

static void open_case(const json_t *options) {
    char command[1600];
    static char stats[1024];
    snprintf(command, sizeof command, "cp -r '%s/.' '%s/' 2>/dev/null", case_path("input/tree"),
             scratch_folder);
    (void)!system(command);
    snprintf(stats, sizeof stats, "%s", case_path("input/stats.json"));
    config.tracking.stats_file = stats;
    const json_t *session = json_object_get(options, "session_summary");
    if (!json_is_null(session)) {
        ck_assert_int_eq(json_dump_file(session, kept_path("session.json"), 0), 0);
        config.tracking.session_file = kept_path("session.json");
    }
    config.log_artifacts = json_is_true(json_object_get(options, "log_artifacts"));
    config.tracking.output_file = tree_path(options, "output_path");
    config.tracking.sink_directory = tree_path(options, "telemetry_sink_dir");
    config.tracking.oom_dump = tree_path(options, "oom_dump_path");
    config.log_attribution = json_is_true(json_object_get(options, "log_attribution"));
    config.tracking.attribution_bundle = tree_path(options, "attribution_bundle_dir");
    tracking_open();
}

static void check_table(const struct wandb_record *record, const json_t *wanted) {
    char name[512];
    snprintf(name, sizeof name, "files/media/table/%.*s_%llu.table.json", (int)record->key.size,
             record->key.data, (unsigned long long)record->row);
    ck_assert_same_json(json_with_nan(record->file), case_json(name), name);
    snprintf(name, sizeof name, "files/artifacts/run-RUN_ID-%.*s/%.*s.table.json",
             (int)record->key.size, record->key.data, (int)record->key.size, record->key.data);
    ck_assert_same_json(json_with_nan(record->artifact_file), case_json(name), name);
    ck_assert_int_eq((json_int_t)record->rows,
                     json_integer_value(json_object_get(wanted, "nrows")));
    ck_assert_int_eq((json_int_t)record->columns,
                     json_integer_value(json_object_get(wanted, "ncols")));
}

static void check_row(const struct wandb_record *record, json_t *wanted) {
    char key[128];
    ck_assert_int_eq((json_int_t)record->row, json_integer_value(json_object_get(wanted, "_step")));
    json_object_del(wanted, "_step");
    json_object_del(wanted, "_timestamp");
    json_object_del(wanted, "_runtime");
    if (record->kind == WANDB_ROW) {
        ck_assert_same_json(json_members(record->members), json_incref(wanted), "a row");
        return;
    }
    snprintf(key, sizeof key, "%.*s", (int)record->key.size, record->key.data);
    ck_assert_uint_eq(json_object_size(wanted), 1);
    ck_assert_msg(json_object_get(wanted, key) != NULL, "%s is not in this row", key);
    if (record->kind == WANDB_TABLE)
        check_table(record, json_object_get(wanted, key));
    else if (slice_equal(record->key, SLICE("stormlog_tracking_dashboard")))
        ck_assert(slice_equal(record->file, SLICE(page_text)));
    else
        ck_assert_int_eq(memcmp(record->file.data, "<!doctype html>", 15), 0);
}

static void check_history(const json_t *wanted) {
    size_t rows = 0;
    for (uint32_t i = 0; i < said_count; i++)
        if (said[i].kind == WANDB_ROW || said[i].kind == WANDB_TABLE || said[i].kind == WANDB_HTML)
            check_row(&said[i], json_array_get(wanted, rows++));
    ck_assert_uint_eq(rows, json_array_size(wanted));
}

// What is said of the summary, apart from what the rows leave there.
static void check_summary(json_t *wanted) {
    json_t *got = json_object();
    const char *key;
    json_t *value;
    void *next;
    for (uint32_t i = 0; i < count_said(WANDB_SUMMARY); i++) {
        json_t *members = json_members(nth_said(WANDB_SUMMARY, i)->members);
        json_object_update(got, members);
        json_decref(members);
    }
    json_object_foreach_safe(wanted, next, key, value) {
        if (key[0] == '_' || strncmp(key, "stormlog_timeline_", 18) == 0 || json_is_object(value))
            json_object_del(wanted, key);
    }
    ck_assert_same_json(got, json_incref(wanted), "the summary");
}

static void check_artifacts(const json_t *wanted) {
    size_t others = 0;
    for (size_t i = 0; i < json_array_size(wanted); i++) {
        const json_t *artifact = json_array_get(wanted, i);
        const char *type = json_string_value(json_object_get(artifact, "type"));
        if (strcmp(type, "run_table") == 0)
            continue;
        const struct wandb_record *record =
            said_under(WANDB_ARTIFACT, json_string_value(json_object_get(artifact, "name")));
        ck_assert_msg(record != NULL, "there is no artifact %s", type);
        ck_assert(slice_equal(record->type, slice_of(type)));
        ck_assert_uint_gt(record->file.size, 0);
        others++;
    }
    ck_assert_uint_eq(others, count_said(WANDB_ARTIFACT));
}

START_TEST(the_golden_cases) {
    snprintf(case_folder, sizeof case_folder, "%s/wandb/golden/%s", TESTS_DIR, cases[_i]);
    json_t *options = case_json("input/config.json"), *wanted = case_json("expected.json");
    open_case(options);
    note_case();
    say();
    const struct wandb_record *run = &said[0];
    const json_t *expected = json_object_get(wanted, "run");
    const char *group = json_string_value(json_object_get(expected, "group"));
    ck_assert(slice_equal(run->display_name,
                          slice_of(json_string_value(json_object_get(expected, "display_name")))));
    ck_assert(slice_equal(run->group, slice_of(group == NULL ? "" : group)));
    ck_assert(slice_equal(run->job_type, SLICE("gpumemprof-track")));
    ck_assert_same_json(json_members(run->members),
                        json_incref(json_object_get(wanted, "visualize")), "the charts");
    check_history(json_object_get(wanted, "history"));
    check_summary(json_object_get(wanted, "summary"));
    check_artifacts(json_object_get(wanted, "artifacts"));
    json_decref(options);
    json_decref(wanted);
}
END_TEST

// -- which rows are shown -------------------------------------------------------------------------

// Rows of history that are no table and no page, and the index of the last one.
static uint32_t points_of(uint32_t events, uint32_t alert_every) {
    tracking_open();
    for (uint32_t i = 0; i < events; i++)
        note_at(i, alert_every > 0 && i % alert_every == 0 ? "peak" : "sample");
    say();
    return count_said(WANDB_ROW);
}

static int64_t sample_index(uint32_t row) {
    json_t *table = json_of(said_under(WANDB_TABLE, "stormlog_memory_timeline_table")->file);
    int64_t index =
        json_integer_value(json_array_get(json_array_get(json_object_get(table, "data"), row), 0));
    json_decref(table);
    return index;
}

START_TEST(no_events) {
    ck_assert_uint_eq(points_of(0, 0), 0);
    ck_assert_uint_eq(said_count, 3);
    json_t *summary = json_members(nth_said(WANDB_SUMMARY, 0)->members);
    ck_assert_int_eq(json_integer_value(json_object_get(summary, "stormlog_chart_point_count")), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(summary, "stormlog_total_events")), 0);
    ck_assert_ptr_null(json_object_get(summary, "stormlog_tracking_duration_seconds"));
    ck_assert_uint_eq(said[0].members.size, 0);
    json_decref(summary);
}
END_TEST

START_TEST(one_event) {
    ck_assert_uint_eq(points_of(1, 0), 1);
    ck_assert_uint_eq(count_said(WANDB_TABLE), 3);
    ck_assert_uint_eq(count_said(WANDB_HTML), 1);
    ck_assert_int_eq(sample_index(0), 0);
}
END_TEST

START_TEST(as_many_as_there_is_room_for) {
    ck_assert_uint_eq(points_of(250, 0), 250);
    ck_assert_int_eq(sample_index(249), 249);
}
END_TEST

START_TEST(one_more_than_there_is_room_for) {
    ck_assert_uint_eq(points_of(251, 0), 126);
    ck_assert_int_eq(sample_index(1), 2);
    ck_assert_int_eq(sample_index(125), 250);
}
END_TEST

START_TEST(alerts_stay) {
    // 7 alerts at 0, 100, … 600, and the last: 632 others, 242 places, each third: 211.
    ck_assert_uint_eq(points_of(640, 100), 219);
    ck_assert_int_eq(sample_index(0), 0);
    ck_assert_int_eq(sample_index(1), 1);
    ck_assert_int_eq(sample_index(2), 4);
    ck_assert_int_eq(sample_index(218), 639);
}
END_TEST

START_TEST(more_alerts_than_places) {
    // Alerts at 0, 2, … 598, and the last row: the samples vanish, the last 250 stay.
    ck_assert_uint_eq(points_of(600, 2), 250);
    ck_assert_int_eq(sample_index(0), 102);
    ck_assert_int_eq(sample_index(248), 598);
    ck_assert_int_eq(sample_index(249), 599);
    // The table of alerts takes its own last 250: 100, 102, … 598.
    json_t *alerts = json_of(said_under(WANDB_TABLE, "stormlog_alerts")->file);
    const json_t *data = json_object_get(alerts, "data");
    ck_assert_uint_eq(json_array_size(data), 250);
    ck_assert_double_eq(json_number_value(json_array_get(json_array_get(data, 0), 0)),
                        1767225700.0);
    json_decref(alerts);
}
END_TEST

START_TEST(as_many_alerts_as_places) {
    // 249 alerts and the last row, which is none: no place for others.
    tracking_open();
    for (uint32_t i = 0; i < 300; i++)
        note_at(i, i < 249 ? "error" : "sample");
    say();
    ck_assert_uint_eq(count_said(WANDB_ROW), 250);
    ck_assert_int_eq(sample_index(248), 248);
    ck_assert_int_eq(sample_index(249), 299);
}
END_TEST

START_TEST(more_than_is_kept) {
    config.tracking.max_events = 10;
    tracking_open();
    for (uint32_t i = 0; i < 30; i++)
        note_at(i, i == 29 ? "critical" : "sample");
    say();
    ck_assert_uint_eq(count_said(WANDB_ROW), 10);
    json_t *summary = json_members(nth_said(WANDB_SUMMARY, 0)->members);
    ck_assert_same_json(
        summary,
        json_of(SLICE("{\"stormlog_peak_memory_bytes\":2900,"
                      "\"stormlog_current_memory_allocated_bytes\":2900,"
                      "\"stormlog_current_memory_reserved_bytes\":2950,"
                      "\"stormlog_memory_utilization_percent\":0.29,"
                      "\"stormlog_total_allocations\":30,\"stormlog_total_deallocations\":0,"
                      "\"stormlog_total_allocation_bytes\":3000,"
                      "\"stormlog_total_deallocation_bytes\":0,"
                      "\"stormlog_tracking_duration_seconds\":29,"
                      "\"stormlog_allocations_per_second\":1.0344827586206897,"
                      "\"stormlog_bytes_allocated_per_second\":103.44827586206897,"
                      "\"stormlog_total_events\":30,\"stormlog_alert_count\":1,"
                      "\"stormlog_history_retained_events\":10,"
                      "\"stormlog_history_dropped_events\":20,\"stormlog_backend\":\"cuda\","
                      "\"stormlog_chart_point_count\":10}")),
        "figures of all events");
    const struct wandb_record *alerts = said_under(WANDB_TABLE, "stormlog_alerts");
    ck_assert_uint_eq(alerts->rows, 1);
}
END_TEST

// -- values ---------------------------------------------------------------------------------------

START_TEST(nothing_is_known) {
    struct tracker_record tracker = {0};
    struct telemetry telemetry = sample_at(0);
    telemetry.tracker = &tracker;
    telemetry.context = SLICE("not its own");
    tracking_open();
    note(&telemetry);
    say();
    ck_assert_same_json(json_members(nth_said(WANDB_ROW, 0)->members),
                        json_of(SLICE("{\"stormlog_timeline_elapsed_seconds\":0}")), "the row");
    ck_assert_uint_eq(count_said(WANDB_TABLE), 1);
    ck_assert_uint_eq(said[0].members.size, 0);
    json_t *table = json_of(nth_said(WANDB_TABLE, 0)->file);
    ck_assert_same_json(json_incref(json_object_get(table, "data")),
                        json_of(SLICE("[[0,0,\"sample\",null,null,null,null,null,null,null]]")),
                        "the table");
    json_decref(table);
}
END_TEST

START_TEST(device_use_is_at_least_the_allocators) {
    struct tracker_record tracker = {
        .present = 1u << TRACKER_ALLOCATED | 1u << TRACKER_RESERVED | 1u << TRACKER_DEVICE_TOTAL,
        .counters =
            {[TRACKER_ALLOCATED] = 30, [TRACKER_RESERVED] = 20, [TRACKER_DEVICE_TOTAL] = 40},
    };
    struct telemetry telemetry = sample_at(0);
    telemetry.tracker = &tracker;
    tracker.timestamp_s = 5.25;
    tracking_open();
    note(&telemetry);
    tracker.present = 1u << TRACKER_RESERVED;
    tracker.timestamp_s = 7.75;
    note(&telemetry);
    say();
    ck_assert_same_json(json_members(nth_said(WANDB_ROW, 0)->members),
                        json_of(SLICE("{\"stormlog_timeline_elapsed_seconds\":0,"
                                      "\"stormlog_timeline_allocated_bytes\":30,"
                                      "\"stormlog_timeline_reserved_bytes\":20,"
                                      "\"stormlog_timeline_device_used_bytes\":30,"
                                      "\"stormlog_timeline_utilization_percent\":75}")),
                        "the first row");
    ck_assert_same_json(json_members(nth_said(WANDB_ROW, 1)->members),
                        json_of(SLICE("{\"stormlog_timeline_elapsed_seconds\":2.5,"
                                      "\"stormlog_timeline_reserved_bytes\":20,"
                                      "\"stormlog_timeline_device_used_bytes\":20}")),
                        "the second row");
    // Gaps in the charts: the utilisation of the second, what the first allocated.
    const struct wandb_record *chart =
        said_under(WANDB_TABLE, "stormlog_memory_utilization_plot_table");
    ck_assert(
        slice_equal(chart->file, SLICE("{\"columns\":[\"step\",\"lineKey\",\"lineVal\"],\"data\":"
                                       "[[0,\"utilization_percent\",75],"
                                       "[2.5,\"utilization_percent\",NaN]]}")));
    chart = said_under(WANDB_TABLE, "stormlog_memory_timeline_plot_table");
    ck_assert_uint_eq(chart->rows, 6);
}
END_TEST

START_TEST(texts_come_through) {
    static const char context[] = "</script><b>\"\\\n\t\x01 Überlauf 中文 😀";
    struct telemetry telemetry = sample_at(0);
    telemetry.event_type = intern(SLICE("warning"));
    telemetry.context = SLICE(context);
    tracking_open();
    note(&telemetry);
    note(&telemetry);
    say();
    for (int form = 0; form < 2; form++) {
        const struct wandb_record *alerts = said_under(WANDB_TABLE, "stormlog_alerts");
        json_t *table = json_of(form == 0 ? alerts->file : alerts->artifact_file);
        const json_t *row = json_array_get(json_object_get(table, "data"), 1);
        ck_assert_str_eq(json_string_value(json_array_get(row, 2)), context);
        json_decref(table);
    }
    json_t *table = json_of(said_under(WANDB_TABLE, "stormlog_memory_timeline_table")->file);
    for (size_t i = 0; i < 2; i++)
        ck_assert_str_eq(
            json_string_value(json_array_get(json_array_get(json_object_get(table, "data"), i), 8)),
            context);
    json_decref(table);
}
END_TEST

START_TEST(tables_that_are_not_wanted) {
    config.log_tables = false;
    config.log_artifacts = true;
    tracking_open();
    note_at(0, "warning");
    say();
    ck_assert_uint_eq(count_said(WANDB_ROW), 1);
    ck_assert_uint_eq(count_said(WANDB_TABLE) + count_said(WANDB_HTML), 0);
    ck_assert_uint_eq(count_said(WANDB_ARTIFACT), 0);
    ck_assert_uint_eq(said[0].members.size, 0);
}
END_TEST

// -- files ----------------------------------------------------------------------------------------

// Members of the summary, ending in a zero byte.
static const char *summary_with_stats(const char *stats) {
    scratch_write("stats.json", stats);
    config.tracking.stats_file = kept_path("stats.json");
    tracking_open();
    buffer_reset(&tracking->members);
    tracking_summary(tracking, &tracking->members);
    buffer_append_char(&tracking->members, '\0');
    return tracking->members.data;
}

START_TEST(statistics_as_python_writes_them) {
    const char *summary = summary_with_stats(
        "{\"peak_memory\": 9223372036854775807, \"total_events\": 18446744073709551615,\n"
        " \"alert_count\": true, \"total_allocations\": NaN, \"total_deallocations\": \"7\",\n"
        " \"current_memory_allocated\": 9223372036854775808, \"unknown\": -Infinity,\n"
        " \"current_memory_reserved\": -9223372036854775808, \"rollover_count\": Infinity,\n"
        " \"tracking_duration_seconds\": 0.1, \"allocations_per_second\": 1e+300, \"list\":\n"
        " [NaN, {\"pruned_bytes\": 1234567890123456789012}], \"backend\": \"a\\\"NaN \\u00fc\",\n"
        " \"collector_health_status\": [1, {\"a\": \"b\"}], \"collector_last_error\": null,\n"
        " \"session_status\": NaN}");
    ck_assert_str_eq(summary,
                     "\"stormlog_peak_memory_bytes\":9223372036854775807,"
                     "\"stormlog_total_events\":18446744073709551615,"
                     "\"stormlog_alert_count\":true,"
                     "\"stormlog_current_memory_allocated_bytes\":9223372036854775808,"
                     "\"stormlog_current_memory_reserved_bytes\":-9223372036854775808,"
                     "\"stormlog_tracking_duration_seconds\":0.1,"
                     "\"stormlog_allocations_per_second\":1e+300,"
                     "\"stormlog_sink_rollover_count\":Infinity,"
                     "\"stormlog_chart_point_count\":0,"
                     "\"stormlog_backend\":\"a\\\"NaN \\u00fc\","
                     "\"stormlog_collector_health_status\":[1,{\"a\":\"b\"}]");
}
END_TEST

START_TEST(the_status_of_the_statistics_counts) {
    scratch_write("session.json",
                  "{\"session_id\": \"s\", \"status\": \"running\", \"rank\": null}");
    config.tracking.session_file = kept_path("session.json");
    ck_assert_str_eq(summary_with_stats("{\"session_status\": \"completed\"}"),
                     "\"stormlog_chart_point_count\":0,\"stormlog_session_id\":\"s\","
                     "\"stormlog_session_status\":\"completed\"");
    wandb_tracking_close(tracking);
    ck_assert_str_eq(summary_with_stats("{\"session_status\": null}"),
                     "\"stormlog_chart_point_count\":0,\"stormlog_session_status\":\"running\","
                     "\"stormlog_session_id\":\"s\"");
}
END_TEST

static void refuse(const char *stats, const char *session, const char *said_of_it) {
    struct error error = {0};
    config.tracking.stats_file = config.tracking.session_file = NULL;
    if (stats != NULL) {
        scratch_write("stats.json", stats);
        config.tracking.stats_file = kept_path("stats.json");
    }
    if (session != NULL) {
        scratch_write("session.json", session);
        config.tracking.session_file = kept_path("session.json");
    }
    ck_assert_int_eq(wandb_tracking_open(&tracking, &config, "exporter/wandb/test", &error),
                     STATUS_CONFIG);
    ck_assert_msg(strstr(error.message, said_of_it) != NULL, "%s", error.message);
    ck_assert_ptr_null(tracking);
}

START_TEST(files_that_are_wrong) {
    refuse("{\"a\": 1,\n \"b\": NaN, \"c\" 2}", NULL, "stats.json:2:");
    refuse("[1]", NULL, "is not a JSON object");
    refuse("", NULL, "stats.json:1:1: the file of statistics is empty");
    refuse("{\"peak_memory\": 1, \"peak_memory\": 2}", NULL, "duplicate");
    refuse(NULL, "{}", "has no session_id");
    refuse(NULL, "{\"session_id\": 7}", "session_id must be a text");
    refuse(NULL, "{\"session_id\": \"x\", \"rank\": \"3\"}", "rank must be an integer or null");
    struct error error = {0};
    config.tracking.session_file = kept_path("is-not-there.json");
    ck_assert_int_eq(wandb_tracking_open(&tracking, &config, "exporter/wandb/test", &error),
                     STATUS_NOT_FOUND);
    config.tracking.session_file = scratch_folder;
    ck_assert_int_eq(wandb_tracking_open(&tracking, &config, "exporter/wandb/test", &error),
                     STATUS_CONFIG);
}
END_TEST

// Cut at every byte, and with every byte made another one: refused or read, and nothing else.
START_TEST(files_that_are_damaged) {
    static const char whole[] =
        "{\"peak_memory\": NaN, \"total_events\": 184467440737095516150,"
        "\"backend\": \"a\\\"\\u00fc\", \"list\": [-Infinity, {\"a\": NaN}]}";
    char text[sizeof whole];
    struct error error = {0};
    config.tracking.stats_file = kept_path("stats.json");
    for (size_t i = 0; i < 2 * (sizeof whole - 1); i++) {
        memcpy(text, whole, sizeof text);
        if (i < sizeof whole - 1)
            text[i] = '\0';
        else
            text[i - (sizeof whole - 1)] = "\"{}[]:,-0N\\"[i % 11];
        scratch_write("stats.json", text);
        if (wandb_tracking_open(&tracking, &config, "exporter/wandb/test", &error) == STATUS_OK)
            wandb_tracking_close(tracking);
        tracking = NULL;
    }
    scratch_write("stats.json", whole);
    tracking_open();
}
END_TEST

START_TEST(names_of_runs_and_artifacts) {
    static const struct {
        const char *session, *name, *artifact;
    } known[] = {
        {"{\"session_id\": \"***\"}", "gpumemprof-track-***", "stormlog-track-output--"},
        {"{\"session_id\": \"\"}", "gpumemprof-track-", "stormlog-track-output-session"},
        {"{\"session_id\": \"ΩΩΩΩΩΩΩΩΩ\"}", "gpumemprof-track-ΩΩΩΩΩΩΩΩ", "stormlog-track-output--"},
        {"{\"session_id\": \"a b/c.d_e-f\"}", "gpumemprof-track-a b/c.d_",
         "stormlog-track-output-a-b-c.d_e-f"},
        {NULL, "gpumemprof-track", "stormlog-track-output-session"},
    };
    scratch_write("out.json", "{}");
    config.tracking.output_file = kept_path("out.json");
    config.log_artifacts = true;
    if (known[_i].session != NULL) {
        scratch_write("session.json", known[_i].session);
        config.tracking.session_file = kept_path("session.json");
    }
    tracking_open();
    say();
    ck_assert(slice_equal(said[0].display_name, slice_of(known[_i].name)));
    ck_assert(slice_equal(nth_said(WANDB_ARTIFACT, 0)->key, slice_of(known[_i].artifact)));
}
END_TEST

START_TEST(what_was_configured_comes_first) {
    scratch_write("session.json", "{\"session_id\": \"s\", \"job_id\": \"j\"}");
    config.tracking.session_file = kept_path("session.json");
    config.run_name = "my name";
    config.group = "my group";
    config.job_type = "my type";
    tracking_open();
    say();
    ck_assert(slice_equal(said[0].display_name, SLICE("my name")));
    ck_assert(slice_equal(said[0].group, SLICE("my group")));
    ck_assert(slice_equal(said[0].job_type, SLICE("my type")));
}
END_TEST

START_TEST(the_page_lies_beside_the_output) {
    scratch_write("out.json", "{}");
    config.tracking.output_file = kept_path("out.json");
    config.log_artifacts = true;
    tracking_open();
    note_at(0, "sample");
    say();
    ck_assert_str_eq(scratch_read("stormlog_tracking_dashboard.html"), page_text);
    ck_assert(slice_equal(nth_said(WANDB_ARTIFACT, 0)->type, SLICE("stormlog-tracking-dashboard")));
}
END_TEST

// With a sink and no output: neither in the sink nor left behind.
START_TEST(the_page_lies_in_a_place_of_its_own) {
    char path[256];
    ck_assert_int_eq(mkdir(kept_path("sink"), 0755), 0);
    ck_assert_int_eq(mkdir(kept_path("places"), 0755), 0);
    setenv("TMPDIR", kept_path("places"), 1);
    config.tracking.sink_directory = kept_path("sink");
    config.tracking.output_file = kept_path("is-not-there.json");
    config.log_artifacts = true;
    tracking_open();
    note_at(0, "sample");
    say();
    unsetenv("TMPDIR");
    ck_assert_uint_eq(count_said(WANDB_ARTIFACT), 2);
    struct slice place = nth_said(WANDB_ARTIFACT, 0)->file;
    snprintf(path, sizeof path, "%.*s", (int)place.size, place.data);
    ck_assert_int_eq(strncmp(path, kept_path("places"), strlen(kept_path("places"))), 0);
    ck_assert_int_eq(access(path, R_OK), 0);
    wandb_tracking_close(tracking);
    tracking = NULL;
    // Both directories are empty again.
    ck_assert_int_eq(rmdir(kept_path("sink")), 0);
    ck_assert_int_eq(rmdir(kept_path("places")), 0);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("wandb_tracking");
    TCase *tcase = tcase_create("runs");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, the_golden_cases, 0, 4);
    tcase_add_test(tcase, no_events);
    tcase_add_test(tcase, one_event);
    tcase_add_test(tcase, as_many_as_there_is_room_for);
    tcase_add_test(tcase, one_more_than_there_is_room_for);
    tcase_add_test(tcase, alerts_stay);
    tcase_add_test(tcase, more_alerts_than_places);
    tcase_add_test(tcase, as_many_alerts_as_places);
    tcase_add_test(tcase, more_than_is_kept);
    tcase_add_test(tcase, nothing_is_known);
    tcase_add_test(tcase, device_use_is_at_least_the_allocators);
    tcase_add_test(tcase, texts_come_through);
    tcase_add_test(tcase, tables_that_are_not_wanted);
    tcase_add_test(tcase, statistics_as_python_writes_them);
    tcase_add_test(tcase, the_status_of_the_statistics_counts);
    tcase_add_test(tcase, files_that_are_wrong);
    tcase_add_test(tcase, files_that_are_damaged);
    tcase_add_loop_test(tcase, names_of_runs_and_artifacts, 0, 5);
    tcase_add_test(tcase, what_was_configured_comes_first);
    tcase_add_test(tcase, the_page_lies_beside_the_output);
    tcase_add_test(tcase, the_page_lies_in_a_place_of_its_own);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
