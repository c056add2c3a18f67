// SPDX-License-Identifier: Apache-2.0
// Every golden answer is read, turned into an evaluation by hand, and written again: the bytes must
// be the same. What the stages find is tested elsewhere; this is about the writing alone.
#include "exporters/json/json.h"
#include "tests/exporters/sample_evaluation.h"

#include <check.h>
#include <glob.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static struct sample_evaluation sample;

static char *file_read(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "cannot open %s", path);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *text = malloc(*size + 1);
    ck_assert_uint_eq(fread(text, 1, *size, file), *size);
    fclose(file);
    return text;
}

static int64_t integer(const json_t *object, const char *key) {
    return json_integer_value(json_object_get(object, key));
}

static struct slice text_of(const json_t *value) {
    return (struct slice){json_string_value(value), json_string_length(value)};
}

static uint32_t index_of(int64_t rank) {
    for (uint32_t i = 0; i < sample.rank_count; i++)
        if (sample.series[i].rank == rank)
            return i;
    ck_abort_msg("rank %lld takes no part", (long long)rank);
    return 0;
}

static void ranks_load(const json_t *summary) {
    const json_t *ranks = json_object_get(summary, "participating_ranks");
    for (size_t i = 0; i < json_array_size(ranks); i++)
        sample_rank(&sample, (int32_t)json_integer_value(json_array_get(ranks, i)), SLICE("h"), 1);
    const json_t *missing = json_object_get(summary, "missing_ranks");
    sample.evaluation.missing_count = (uint32_t)json_array_size(missing);
    int32_t *missing_ranks = arena_take(&sample.arena, json_array_size(missing) * sizeof(int32_t));
    for (size_t i = 0; i < json_array_size(missing); i++)
        missing_ranks[i] = (int32_t)json_integer_value(json_array_get(missing, i));
    sample.evaluation.missing_ranks = missing_ranks;
    sample.evaluation.world_size = integer(summary, "world_size");
    const char *key;
    json_t *value;
    uint64_t arrival = 0;
    json_object_foreach(json_object_get(summary, "rank_sample_counts"), key, value) {
        struct rank_view *view = &sample.views[index_of(atoll(key))];
        view->first_arrival = arrival++;
        view->sample_count = (uint64_t)json_integer_value(value);
    }
}

static void offsets_load(const json_t *summary) {
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(summary, "alignment_offsets_ns"), key, value)
        sample.alignment[index_of(atoll(key))]
            .offset_ns = json_integer_value(value);
}

static void phase_load(const json_t *payload, struct phase_attribution *phase) {
    if (json_is_null(payload))
        return;
    bool unique =
        strcmp(json_string_value(json_object_get(payload, "phase_resolution")), "unique") == 0;
    phase->resolution = unique ? PHASE_UNIQUE : PHASE_AMBIGUOUS;
    const json_t *paths = json_object_get(payload, "phase_paths");
    phase->path_count = (uint32_t)json_array_size(paths);
    phase->paths = arena_take(&sample.arena, phase->path_count * sizeof *phase->paths);
    for (uint32_t i = 0; i < phase->path_count; i++)
        phase->paths[i] = arena_copy(&sample.arena, text_of(json_array_get(paths, i)));
    if (unique) {
        const json_t *thread = json_object_get(payload, "thread_id");
        phase->path = arena_copy(&sample.arena, text_of(json_object_get(payload, "phase_path")));
        phase->scope_id = arena_copy(&sample.arena, text_of(json_object_get(payload, "scope_id")));
        phase->thread_name =
            arena_copy(&sample.arena, text_of(json_object_get(payload, "thread_name")));
        phase->thread_id_is_bool = json_is_boolean(thread);
        phase->thread_id =
            json_is_boolean(thread) ? json_is_true(thread) : json_integer_value(thread);
    }
    const json_t *likely = json_object_get(payload, "phase_summary");
    if (likely != NULL)
        phase->summary = arena_copy(&sample.arena, text_of(json_object_get(likely, "phase_path")));
}

static void suspects_load(const json_t *summary) {
    const json_t *onset = json_object_get(summary, "cluster_onset_timestamp_ns");
    const json_t *suspects = json_object_get(summary, "first_cause_suspects");
    for (size_t i = 0; i < json_array_size(suspects); i++) {
        const json_t *item = json_array_get(suspects, i);
        struct suspect *suspect = sample_suspect(
            &sample, index_of(integer(item, "rank")),
            (struct spike){.time_ns = (uint64_t)integer(item, "first_spike_timestamp_ns"),
                           .growth_bytes = integer(item, "peak_delta_bytes"),
                           .samples = (uint64_t)integer(item, "spike_window_samples")});
        suspect->aligned_ns = integer(item, "aligned_first_spike_timestamp_ns");
        phase_load(json_object_get(item, "phase_attribution"), &sample.phases[i]);
    }
    for (size_t i = 0; i < json_array_size(suspects); i++) {
        const json_t *item = json_array_get(suspects, i);
        const char *confidence = json_string_value(json_object_get(item, "confidence"));
        sample.suspects[i].lead_ns = integer(item, "lead_over_cluster_onset_ns");
        sample.suspects[i].confidence = confidence[0] == 'h'   ? CONFIDENCE_HIGH
                                        : confidence[0] == 'm' ? CONFIDENCE_MEDIUM
                                                               : CONFIDENCE_LOW;
    }
    sample.list.has_onset = !json_is_null(onset);
    sample.list.onset_ns = json_integer_value(onset);
    sample.evaluation.suspects = &sample.list;
}

static void summary_load(const json_t *summary) {
    const json_t *job = json_object_get(summary, "job_id");
    sample_init(&sample, json_is_null(job) ? (struct slice){NULL, 0} : text_of(job));
    ranks_load(summary);
    offsets_load(summary);
    suspects_load(summary);
    const json_t *notes = json_object_get(summary, "notes");
    for (size_t i = 0; i < json_array_size(notes); i++)
        sample_note(&sample, text_of(json_array_get(notes, i)));
}

static int64_t counter(const json_t *point, size_t at, uint32_t flag, uint32_t *flags) {
    const json_t *value = json_array_get(point, at);
    if (json_is_null(value))
        *flags |= flag;
    return json_integer_value(value);
}

// Points of one rank come in the order of its series; offsets are kept as the summary has them.
static void points_load(const json_t *timeline, const json_t *summary) {
    const json_t *points = json_object_get(timeline, "points");
    for (size_t i = 0; i < json_array_size(points); i++) {
        const json_t *point = json_array_get(points, i);
        struct sample row = {
            .time_ns = (uint64_t)json_integer_value(json_array_get(point, 1)),
            .used_bytes = json_integer_value(json_array_get(point, 3)),
        };
        row.reserved_bytes = counter(point, 4, SAMPLE_RESERVED_NULL, &row.flags);
        row.allocated_bytes = counter(point, 5, SAMPLE_ALLOCATED_NULL, &row.flags);
        row.change_bytes = counter(point, 6, SAMPLE_CHANGE_NULL, &row.flags);
        sample_row(&sample, index_of(json_integer_value(json_array_get(point, 0))), row);
    }
    offsets_load(summary);
}

static void check_bytes(const struct buffer *out, const char *expected, size_t size,
                        const char *path) {
    size_t at = 0;
    while (at < size && at < out->size && out->data[at] == expected[at])
        at++;
    ck_assert_msg(at == size && at == out->size, "%s differs at byte %zu: %.60s | %.60s", path, at,
                  out->data + at, expected + at);
}

// Those that jansson cannot read: it refuses integers beyond 64 bits and lone surrogates.
static bool jansson_refuses(const char *path) {
    return strstr(path, "041-aligned-beyond-int64") != NULL;
}

// In small blocks, so that the pieces are put together as they would be on their way out.
static bool piece_append(void *context, struct slice bytes) {
    buffer_append(context, bytes);
    return true;
}

static bool case_check(const char *summary_path) {
    char timeline_path[512];
    snprintf(timeline_path, sizeof timeline_path, "%.*sexpected_timeline.json",
             (int)(strrchr(summary_path, '/') + 1 - summary_path), summary_path);
    size_t size, timeline_size;
    char *expected = file_read(summary_path, &size);
    char *expected_timeline = file_read(timeline_path, &timeline_size);
    json_t *summary = json_loadb(expected, size, JSON_ALLOW_NUL, NULL);
    json_t *timeline = json_loadb(expected_timeline, timeline_size, JSON_ALLOW_NUL, NULL);
    bool read = summary != NULL && timeline != NULL;
    ck_assert_msg(read != jansson_refuses(summary_path), "%s", summary_path);
    if (read) {
        struct buffer out, blocks;
        buffer_init(&out, 1 << 28);
        buffer_init_drained(&blocks, 64, piece_append, &out);
        summary_load(summary);
        summary_encode(&sample.evaluation, &blocks);
        ck_assert(buffer_finish(&blocks));
        check_bytes(&out, expected, size, summary_path);
        buffer_reset(&out);
        points_load(timeline, summary);
        timeline_encode(&sample.evaluation, &sample.arena, &blocks);
        ck_assert(buffer_finish(&blocks));
        check_bytes(&out, expected_timeline, timeline_size, timeline_path);
        buffer_release(&blocks);
        buffer_release(&out);
        sample_release(&sample);
    }
    json_decref(summary);
    json_decref(timeline);
    free(expected);
    free(expected_timeline);
    return read;
}

static void cases_check(const char *pattern, size_t count, size_t refused) {
    glob_t found;
    ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
    ck_assert_uint_eq(found.gl_pathc, count);
    size_t read = 0;
    for (size_t i = 0; i < found.gl_pathc; i++)
        read += case_check(found.gl_pathv[i]);
    ck_assert_uint_eq(count - read, refused);
    globfree(&found);
}

START_TEST(first_cause_cases) {
    cases_check(TESTS_DIR "/golden/first_cause/*/expected.json", 77, 1);
    intern_release();
}
END_TEST

START_TEST(real_recordings) {
    cases_check(TESTS_DIR "/golden/real/*/expected.json", 5, 0);
    intern_release();
}
END_TEST

// What no golden case holds.
START_TEST(beyond_int64) {
    sample_init(&sample, (struct slice){NULL, 0});
    uint32_t a = sample_rank(&sample, 0, SLICE("h"), 1);
    uint32_t b = sample_rank(&sample, 1, SLICE("h"), 1);
    sample_add(&sample, a, UINT64_MAX - 5, INT64_MAX);
    sample_row(&sample, b,
               (struct sample){.time_ns = 5,
                               .change_bytes = INT64_MIN,
                               .flags = SAMPLE_ALLOCATED_NULL | SAMPLE_RESERVED_NULL});
    sample_row(&sample, b, (struct sample){.time_ns = 20, .flags = SAMPLE_CHANGE_NULL});
    struct buffer out;
    buffer_init(&out, 1 << 20);
    timeline_encode(&sample.evaluation, &sample.arena, &out);
    static const char expected[] =
        "{\"columns\":[\"rank\",\"timestamp_ns\",\"aligned_timestamp_ns\",\"device_used_bytes\","
        "\"allocator_reserved_bytes\",\"allocator_allocated_bytes\",\"allocator_change_bytes\"],"
        "\"points\":[\n"
        "[0,18446744073709551610,18446744073709551610,9223372036854775807,0,0,0],\n"
        "[1,5,18446744073709551610,0,null,null,-9223372036854775808],\n"
        "[1,20,18446744073709551625,0,0,0,null]\n"
        "]}\n";
    check_bytes(&out, expected, sizeof expected - 1, "beyond int64");
    // Rows after the evaluation's moment are not part of it.
    sample.evaluation.as_of_ns = 5;
    buffer_reset(&out);
    timeline_encode(&sample.evaluation, &sample.arena, &out);
    ck_assert_ptr_nonnull(memmem(out.data, out.size, "\"points\":[\n[1,5,", 16));
    ck_assert_ptr_null(memmem(out.data, out.size, "[1,20,", 6));
    ck_assert_ptr_null(memmem(out.data, out.size, "[0,", 3));
    buffer_release(&out);
    sample_release(&sample);
    intern_release();
}
END_TEST

START_TEST(bool_thread_and_empty_texts) {
    sample_init(&sample, SLICE("j"));
    uint32_t index = sample_rank(&sample, 3, SLICE("h"), 1);
    sample_add(&sample, index, 7, 1);
    sample_suspect(&sample, index, (struct spike){.time_ns = 7});
    sample.phases[0] = (struct phase_attribution){.resolution = PHASE_UNIQUE,
                                                  .path = SLICE("p"),
                                                  .thread_id = 1,
                                                  .thread_id_is_bool = true,
                                                  .scope_id = SLICE(""),
                                                  .thread_name = SLICE("")};
    struct buffer out;
    buffer_init(&out, 1 << 20);
    summary_encode(&sample.evaluation, &out);
    static const char payload[] =
        "      \"phase_attribution\": {\n"
        "        \"phase_resolution\": \"unique\",\n"
        "        \"phase_paths\": [\n"
        "          \"p\"\n"
        "        ],\n"
        "        \"phase_source\": \"heuristic\",\n"
        "        \"phase_path\": \"p\",\n"
        "        \"scope_id\": \"\",\n"
        "        \"thread_id\": true,\n"
        "        \"thread_name\": \"\"\n"
        "      }\n";
    ck_assert_ptr_nonnull(memmem(out.data, out.size, payload, sizeof payload - 1));
    buffer_release(&out);
    sample_release(&sample);
    intern_release();
}
END_TEST

int main(void) {
    Suite *suite = suite_create("json_golden");
    TCase *cases = tcase_create("json_golden");
    tcase_add_test(cases, first_cause_cases);
    tcase_add_test(cases, real_recordings);
    tcase_add_test(cases, beyond_int64);
    tcase_add_test(cases, bool_thread_and_empty_texts);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
