// SPDX-License-Identifier: Apache-2.0
// nccl_hang over recorded dumps of PyTorch's own Flight Recorder: the injected fault is named, or
// nobody where nothing was broken; pickle, JSON and indented JSON, in any order of files, give the
// same bytes.
#include "cli/component_list.h"
#include "receivers/decode/flight_recorder/flight_recorder.h"
#include "tests/support/detector_golden.h"

enum { RANKS = 4, ORDERS = 24 };
enum form { FORM_PICKLE, FORM_JSON, FORM_INDENTED, FORM_COUNT };

static const char *const SCENARIOS[] = {
    "gloo_all_fine",       "gloo_missing_rank",          "hooked_all_fine",
    "hooked_missing_rank", "hooked_silent_missing_rank", "hooked_wrapped_many_groups",
};
enum { SCENARIO_COUNT = sizeof SCENARIOS / sizeof *SCENARIOS };

static void teardown(void) {
    metrics_release();
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

struct file {
    char path[1024];
    char *data;
    size_t size;
};

static struct file file_open(const char *scenario, enum form form, int rank) {
    struct file file = {.size = 0};
    snprintf(file.path, sizeof file.path,
             "%s/golden/real_flight_recorder/%s/%s/comm_lib_trace_rank_%d", TESTS_DIR, scenario,
             form == FORM_PICKLE ? "pickle" : "json", rank);
    FILE *stream = fopen(file.path, "rb");
    ck_assert_msg(stream != NULL, "%s cannot be opened", file.path);
    file.data = memory_take(1 << 20);
    file.size = fread(file.data, 1, 1 << 20, stream);
    fclose(stream);
    if (form != FORM_INDENTED)
        return file;
    json_t *json = json_loadb(file.data, file.size, 0, NULL);
    char *indented = json_dumps(json, JSON_INDENT(4));
    memory_give(file.data);
    file.size = strlen(indented);
    file.data = memory_copy_text(indented, file.size);
    free(indented);
    json_decref(json);
    return file;
}

static void order_of(unsigned number, int order[RANKS]) {
    int left[RANKS] = {0, 1, 2, 3};
    for (int i = 0; i < RANKS; i++) {
        unsigned choice = number % (unsigned)(RANKS - i);
        number /= (unsigned)(RANKS - i);
        order[i] = left[choice];
        for (int j = (int)choice; j + 1 < RANKS; j++)
            left[j] = left[j + 1];
    }
}

static void feed_file(struct detector *detector, const struct file *file, enum form form) {
    const struct decoder_type *decoder =
        form == FORM_PICKLE ? &decoder_flight_pickle : &decoder_flight_json;
    void *state = memory_zero(1, decoder->state_size);
    decoder->begin(state, &(struct decoder_input){.path = slice_of(file->path), .is_file = true});
    struct event event = {0};
    struct decode_fault fault;
    enum decode_category category = decoder->decode(state, (struct slice){file->data, file->size},
                                                    &detector->arena, &event, &fault);
    ck_assert_msg(category == DECODE_OK, "%s: %s: %s", file->path, fault.field, fault.detail);
    detector_feed(detector, &event, 1);
    memory_give(state);
}

static char *run(const struct file files[RANKS], enum form form, unsigned number) {
    int order[RANKS];
    order_of(number, order);
    struct detector detector = detector_open(&processor_nccl_hang);
    detector_start(&detector);
    for (int i = 0; i < RANKS; i++)
        feed_file(&detector, &files[order[i]], form);
    detector_finish(&detector);
    const char *lines = detector_lines(&detector);
    char *copy = memory_copy_text(lines, strlen(lines));
    detector_close(&detector);
    return copy;
}

static json_t *injected(const char *scenario) {
    char path[1024];
    snprintf(path, sizeof path, "%s/golden/real_flight_recorder/%s/injected.json", TESTS_DIR,
             scenario);
    json_t *json = json_load_file(path, 0, NULL);
    ck_assert_msg(json != NULL, "%s cannot be read", path);
    return json;
}

// One verdict, which names the ranks of the truth and nobody else, the group and the number.
static void check_fault(const json_t *truth, const char *lines) {
    ck_assert_ptr_eq(strchr(lines, '\n'), lines + strlen(lines) - 1);
    json_t *verdict = json_loads(lines, 0, NULL);
    ck_assert_ptr_nonnull(verdict);
    ck_assert_str_eq(golden_text(verdict, "kind"), golden_text(truth, "fault"));
    json_t *attributes = json_object_get(verdict, "attributes");
    ck_assert_str_eq(golden_text(attributes, "nccl.process_group.name"),
                     golden_text(truth, "group_name"));
    ck_assert_str_eq(golden_text(attributes, "nccl.process_group.desc"),
                     golden_text(truth, "group_desc"));
    ck_assert_int_eq(atoll(golden_text(attributes, "nccl.collective.seq_id")),
                     json_integer_value(json_object_get(truth, "collective_seq_id")));
    size_t at, named = 0;
    json_t *entity;
    json_array_foreach(json_object_get(verdict, "entities"), at, entity) {
        if (strcmp(golden_text(entity, "role"), "culprit") != 0)
            continue;
        ck_assert_int_eq(
            atoll(golden_text(entity, "name")),
            json_integer_value(json_array_get(json_object_get(truth, "ranks"), named)));
        named++;
    }
    ck_assert_uint_eq(named, json_array_size(json_object_get(truth, "ranks")));
    json_decref(verdict);
}

START_TEST(names_the_injected_fault) {
    const char *scenario = SCENARIOS[_i];
    json_t *truth = injected(scenario);
    bool fault = json_is_string(json_object_get(truth, "fault"));
    char *first = NULL;
    for (enum form form = 0; form < FORM_COUNT; form++) {
        struct file files[RANKS];
        for (int rank = 0; rank < RANKS; rank++)
            files[rank] = file_open(scenario, form, rank);
        for (unsigned number = 0; number < ORDERS; number++) {
            char *lines = run(files, form, number);
            if (fault)
                check_fault(truth, lines);
            else
                ck_assert_str_eq(lines, "");
            if (first == NULL)
                first = memory_copy_text(lines, strlen(lines));
            ck_assert_str_eq(lines, first);
            memory_give(lines);
        }
        for (int rank = 0; rank < RANKS; rank++)
            memory_give(files[rank].data);
    }
    if (getenv("SHOW_VERDICTS") != NULL)
        fputs(first, stderr);
    memory_give(first);
    json_decref(truth);
}
END_TEST

static json_t *as_text(const json_t *number) {
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)json_integer_value(number));
    return json_string(text);
}

// What a version of the recorder that nobody has seen yet may write: other keys beside those that
// are known, numbers as texts, and of format 2.4 only what it had.
static void drift(struct file *file) {
    static const char *const GONE[] = {"thread_id", "thread_name", "op_id", "pg_id", "duration_ms"};
    static const char *const TEXTS[] = {"collective_seq_id", "time_created_ns", "timeout_ms"};
    json_t *dump = json_loadb(file->data, file->size, 0, NULL), *entry;
    size_t at;
    json_array_foreach(json_object_get(dump, "entries"), at, entry) {
        for (size_t i = 0; i < sizeof GONE / sizeof *GONE; i++)
            json_object_del(entry, GONE[i]);
        for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++)
            json_object_set_new(entry, TEXTS[i], as_text(json_object_get(entry, TEXTS[i])));
        json_object_set_new(entry, "shard", json_pack("{s:[i,n]}", "of", 3));
    }
    json_object_del(dump, "pg_status");
    json_object_del(dump, "comm_lib_version");
    json_object_set_new(dump, "version", json_string("2.31"));
    json_object_set_new(dump, "host", json_true());
    char *text = json_dumps(dump, 0);
    memory_give(file->data);
    file->size = strlen(text);
    file->data = memory_copy_text(text, file->size);
    free(text);
    json_decref(dump);
}

START_TEST(schema_drift) {
    json_t *truth = injected("hooked_missing_rank");
    struct file files[RANKS];
    for (int rank = 0; rank < RANKS; rank++) {
        files[rank] = file_open("hooked_missing_rank", FORM_JSON, rank);
        drift(&files[rank]);
    }
    char *lines = run(files, FORM_JSON, 5);
    check_fault(truth, lines);
    memory_give(lines);
    for (int rank = 0; rank < RANKS; rank++)
        memory_give(files[rank].data);
    json_decref(truth);
}
END_TEST

// Without the option only age counts, and these dumps are milliseconds old.
START_TEST(dumps_are_young_by_their_age) {
    struct file files[RANKS];
    for (int rank = 0; rank < RANKS; rank++)
        files[rank] = file_open("hooked_missing_rank", FORM_PICKLE, rank);
    struct detector detector = detector_open(&processor_nccl_hang);
    detector_set(&detector, "dump_means_hang", "false");
    detector_start(&detector);
    for (int rank = 0; rank < RANKS; rank++)
        feed_file(&detector, &files[rank], FORM_PICKLE);
    detector_finish(&detector);
    ck_assert_uint_eq(detector.verdict_count, 0);
    detector_close(&detector);
    for (int rank = 0; rank < RANKS; rank++)
        memory_give(files[rank].data);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("golden_flight_recorder");
    TCase *cases = tcase_create("recorded");
    tcase_set_timeout(cases, 120);
    tcase_add_checked_fixture(cases, NULL, teardown);
    tcase_add_loop_test(cases, names_the_injected_fault, 0, SCENARIO_COUNT);
    tcase_add_test(cases, schema_drift);
    tcase_add_test(cases, dumps_are_young_by_their_age);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
