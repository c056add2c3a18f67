// SPDX-License-Identifier: Apache-2.0
// The Kubernetes exporter against a small HTTP server: what an Event and a condition hold, what a
// change, a repetition and a restart write, and what becomes of each kind of answer.
#include "base/text/cut.h"
#include "cli/component_list.h"
#include "exporters/kubernetes/exporter.h"
#include "tests/support/http_sink.h"
#include "tests/support/temporary.h"

enum { VERDICTS_MAX = 4, ENTITIES = 4 };
static const uint64_t START_NS = UINT64_C(1700000000123456789);
static const uint64_t SECOND_NS = 1000000000;
static const char FINE[] = "{}";
static const char EXISTS[] =
    "{\"kind\":\"Status\",\"message\":\"events \\\"x\\\" already exists\","
    "\"reason\":\"AlreadyExists\",\"code\":409}";
static const char ABSENT[] =
    "{\"kind\":\"Status\",\"message\":\"not found\",\"reason\":\"NotFound\",\"code\":404}";
static const char FORBIDDEN[] =
    "{\"kind\":\"Status\",\"message\":\"User cannot "
    "create\",\"reason\":\"Forbidden\",\"code\":403}";
static const char ENDING[] =
    "{\"kind\":\"Status\",\"message\":\"it is being terminated\",\"reason\":\"Forbidden\","
    "\"details\":{\"causes\":[{\"reason\":\"NamespaceTerminating\"}]},\"code\":403}";

static struct kube_exporter instance;
static struct kube_config config;
static struct component_context context;
static struct buffer out;
static struct arena arena;
static struct verdict items[VERDICTS_MAX];
static struct batch batch;
static struct http_sink sink;
static struct send_outcome outcome;
static struct error error;
static char kubeconfig[256];
static json_t *body;

static void write_kubeconfig(const char *server) {
    FILE *file = fopen(kubeconfig, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file,
            "apiVersion: v1\nkind: Config\ncurrent-context: a\n"
            "contexts:\n- {name: a, context: {cluster: c, user: u, namespace: jobs}}\n"
            "clusters:\n- {name: c, cluster: {server: '%s'}}\n"
            "users:\n- {name: u, user: {token: a-token-that-is-secret}}\n",
            server);
    fclose(file);
}

static void start(void) {
    memset(&instance, 0, sizeof instance);
    config.access.kubeconfig = kubeconfig;
    config.access.service_account_directory = "/nowhere";
    error = (struct error){0};
    enum status status =
        component_start(&exporter_kubernetes, &instance, &config, &context, &error);
    ck_assert_msg(status == STATUS_OK, "%s", error.message);
}

static void serve(const struct sink_answer *script, size_t count) {
    http_sink_start(&sink, script, count);
    write_kubeconfig(sink.url);
    start();
}

static void setup(void) {
    config =
        (struct kube_config){.instance = "culprit-0",
                             .look_up_pods = false,
                             .max_objects = 8,
                             .max_verdicts = 8,
                             .node_condition = {.type = "CulpritNodeProblem",
                                                .min_severity = SEVERITY_ERROR,
                                                .heartbeat_interval = {INT64_C(60000000000)}},
                             .route.match = {.min_severity = SEVERITY_WARNING, .only_roots = true},
                             .sending.timeout = {INT64_C(5000000000)}};
    context = (struct component_context){.id = "kubernetes", .site = "exporter/kubernetes"};
    temporary_path(kubeconfig, sizeof kubeconfig, "kubeconfig");
    int descriptor = mkstemp(kubeconfig);
    ck_assert_int_ge(descriptor, 0);
    close(descriptor);
    arena_init(&arena, 4096);
    buffer_init(&out, 1 << 24);
    batch = (struct batch){.arena = &arena, .verdicts = {.items = items}};
    body = NULL;
}

static void teardown(void) {
    component_stop(&exporter_kubernetes, &instance);
    http_sink_stop(&sink);
    buffer_release(&out);
    arena_release(&arena);
    json_decref(body);
    unlink(kubeconfig);
}

// A GPU of a node is to blame, a pod suffers.
static struct verdict *found(const char *key) {
    static struct entity entities[VERDICTS_MAX][ENTITIES];
    uint32_t at = batch.verdicts.count++;
    struct verdict *verdict = &items[at];
    entities[at][0] = (struct entity){"gpu", SLICE("node-1/0000:3b:00.0"), ROLE_CULPRIT};
    entities[at][1] = (struct entity){"node", SLICE("node-1"), ROLE_SUSPECT};
    entities[at][2] = (struct entity){"pod", SLICE("train/w-0"), ROLE_VICTIM};
    *verdict = (struct verdict){.pattern = "gpu_fault",
                                .kind = "gpu_lost",
                                .action = "drain_node",
                                .job = intern(SLICE("job \"a\"")),
                                .severity = SEVERITY_CRITICAL,
                                .confidence = 80,
                                .start_ns = START_NS,
                                .end_ns = START_NS + SECOND_NS,
                                .headline = SLICE("GPU 3b of node-1 is gone"),
                                .remediation = SLICE("Drain it."),
                                .entities = entities[at],
                                .entity_count = 3};
    struct slice id = slice_of(key);
    verdict_set_id(verdict, "gpu_fault", &id, 1);
    return verdict;
}

static struct request encoded(void) {
    buffer_reset(&out);
    exporter_kubernetes.exporter.encode(&instance, &batch, &out);
    ck_assert(!out.failed);
    batch.verdicts.count = 0;
    return (struct request){.bytes = buffer_slice(&out), .complete = true};
}

static enum status deliver(struct request request) {
    outcome = (struct send_outcome){0};
    enum status status = exporter_kubernetes.exporter.send(&instance, &request, &outcome, &error);
    if (status == STATUS_OK)
        ck_assert_uint_eq(outcome.taken, request.bytes.size);
    return status;
}

static const struct sink_request *asked(size_t number) {
    ck_assert_uint_lt(number, sink.count);
    return &sink.requests[number];
}

static json_t *body_of(size_t number) {
    json_decref(body);
    body = json_loads(asked(number)->body, 0, NULL);
    ck_assert_msg(body != NULL, "%s", asked(number)->body);
    return body;
}

static const char *text_at(const json_t *object, const char *key) {
    return kube_text(object, key);
}

static const char *name_of(size_t number) {
    return text_at(json_object_get(body_of(number), "metadata"), "name");
}

static const char *about(size_t number) {
    return text_at(json_object_get(body_of(number), "regarding"), "name");
}

// As after a kill: what was written with the last checkpoint is there again.
static void restart(bool with_state) {
    struct buffer kept;
    buffer_init(&kept, 1 << 20);
    exporter_kubernetes.exporter.delivered(&instance, &kept);
    component_stop(&exporter_kubernetes, &instance);
    start();
    if (with_state)
        ck_assert_int_eq(
            exporter_kubernetes.exporter.resume(&instance, buffer_slice(&kept), &error), STATUS_OK);
    buffer_release(&kept);
}

// -- Events ---------------------------------------------------------------------------------------

START_TEST(what_it_holds) {
    serve(NULL, 0);
    const struct verdict *verdict = found("1");
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    ck_assert_uint_eq(sink.count, 2);
    ck_assert_str_eq(asked(0)->method, "POST");
    ck_assert_str_eq(asked(0)->path,
                     "/apis/events.k8s.io/v1/namespaces/default/events?fieldManager=culprit");
    ck_assert_str_eq(sink_header(asked(0), "Authorization"), "Bearer a-token-that-is-secret");
    const json_t *event = body_of(0);
    static const char *const FIELDS[][2] = {{"apiVersion", "events.k8s.io/v1"},
                                            {"kind", "Event"},
                                            {"eventTime", "2023-11-14T22:13:21.123456Z"},
                                            {"type", "Warning"},
                                            {"reason", "GpuFault"},
                                            {"action", "Diagnose"},
                                            {"reportingController", "culprit"},
                                            {"reportingInstance", "culprit-0"}};
    for (size_t i = 0; i < sizeof FIELDS / sizeof FIELDS[0]; i++)
        ck_assert_str_eq(text_at(event, FIELDS[i][0]), FIELDS[i][1]);
    char note[200];
    snprintf(note, sizeof note, "GPU 3b of node-1 is gone. Drain it. [%s]", verdict->id);
    ck_assert_str_eq(text_at(event, "note"), note);
    const json_t *regarding = json_object_get(event, "regarding");
    ck_assert_str_eq(text_at(regarding, "kind"), "Node");
    ck_assert_str_eq(text_at(regarding, "uid"), "node-1");
    ck_assert_ptr_null(json_object_get(regarding, "namespace"));
    const json_t *metadata = json_object_get(event, "metadata");
    ck_assert_str_eq(text_at(metadata, "namespace"), "default");
    const json_t *annotations = json_object_get(metadata, "annotations");
    ck_assert_str_eq(text_at(annotations, "culprit/verdict"), verdict->id);
    ck_assert_str_eq(text_at(annotations, "culprit/suggested-action"), "drain_node");
    ck_assert_str_eq(text_at(annotations, "culprit/job"), "job \"a\"");
    ck_assert_str_eq(text_at(annotations, "culprit/role"), "suspect");
    // The victim: in its own namespace, and no warning.
    ck_assert_str_eq(asked(1)->path,
                     "/apis/events.k8s.io/v1/namespaces/train/events?fieldManager=culprit");
    ck_assert_str_eq(text_at(body_of(1), "type"), "Normal");
    ck_assert_str_eq(text_at(json_object_get(body_of(1), "regarding"), "namespace"), "train");
    ck_assert_ptr_null(json_object_get(json_object_get(body_of(1), "regarding"), "uid"));
    ck_assert(strncmp(name_of(1), "w-0.", 4) == 0 && strlen(name_of(1)) == 4 + 16);
}
END_TEST

START_TEST(where_pods_are) {
    serve(NULL, 0);
    static const struct {
        const char *name, *attribute_pod, *path;
    } cases[] = {
        {"w-1", NULL, "/namespaces/jobs/"},      // of the kubeconfig's context
        {"w-1", "w-1", "/namespaces/told/"},     // of the verdict's attributes
        {"w-1", "another", "/namespaces/jobs/"}, // they are about another pod
        {"own/w-1", "w-1", "/namespaces/own/"},  // of the name
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char key[8];
        struct attribute attributes[] = {{"k8s.namespace.name", SLICE("told")},
                                         {"k8s.pod.name", SLICE("")},
                                         {"k8s.pod.uid", SLICE("u-1")}};
        snprintf(key, sizeof key, "%zu", i);
        struct verdict *verdict = found(key);
        verdict->entities[0] = (struct entity){"pod", slice_of(cases[i].name), ROLE_CULPRIT};
        verdict->entity_count = 1;
        verdict->attributes = attributes;
        verdict->attribute_count = cases[i].attribute_pod == NULL ? 0 : 3;
        if (cases[i].attribute_pod != NULL)
            attributes[1].value = slice_of(cases[i].attribute_pod);
        ck_assert_int_eq(deliver(encoded()), STATUS_OK);
        ck_assert_uint_eq(sink.count, i + 1);
        ck_assert_msg(strstr(asked(i)->path, cases[i].path) != NULL, "%s", asked(i)->path);
        ck_assert_str_eq(text_at(json_object_get(body_of(i), "regarding"), "uid"),
                         i == 1 ? "u-1" : "");
    }
}
END_TEST

START_TEST(what_has_no_event) {
    serve(NULL, 0);
    static const char *const names[] = {"",          "a/b/c", "../secrets", "w_0",
                                        "train/a?b", "/w-0",  "Train/w-0",  "train/W-0"};
    uint64_t before = metric_value(instance.counters.unplaced);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct verdict *verdict = found("1");
        verdict->entities[1] = (struct entity){"pod", slice_of(names[i]), ROLE_CULPRIT};
        verdict->entity_count = 2;
        ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    }
    ck_assert_uint_eq(sink.count, 0);
    ck_assert_uint_eq(metric_value(instance.counters.unplaced) - before,
                      sizeof names / sizeof names[0]);
    // A node's name is that of its host in lower case.
    found("2")->entities[1].name = SLICE("Node-7.Example");
    items[0].entity_count = 2;
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    ck_assert_str_eq(about(0), "node-7.example");
}
END_TEST

START_TEST(long_and_foreign_texts) {
    serve(NULL, 0);
    static char headline[240 * 4 + 1], remediation[480 * 4 + 1], name[254];
    for (size_t i = 0; i < 240; i++)
        memcpy(headline + 4 * i, "\xf0\x9f\x94\xa5", 4);
    for (size_t i = 0; i < 480; i++)
        memcpy(remediation + 4 * i, "\xf0\x9f\x94\xa5", 4);
    memset(name, 'n', 253);
    struct verdict *verdict = found("1");
    verdict->headline = slice_of(headline);
    verdict->remediation = slice_of(remediation);
    verdict->entities[1].name = slice_of(name);
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    const char *note = text_at(body_of(0), "note");
    ck_assert_uint_le(strlen(note), 1024);
    ck_assert_uint_ge(strlen(note), 1010);
    ck_assert_ptr_nonnull(strstr(note, verdict->id));
    ck_assert_uint_le(strlen(name_of(0)), 253);
    // Quotes, controls, no characters, half a surrogate.
    verdict = found("2");
    verdict->headline = SLICE("a\"b\\\n\x1b[0m\0c\xff\xed\xa0\x80\x7f");
    verdict->remediation = SLICE("");
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    note = text_at(body_of(2), "note");
    ck_assert_msg(strncmp(note, "a\"b\\  [0m c\xef\xbf\xbd", 14) == 0, "%s", note);
    ck_assert_ptr_nonnull(strstr(note, "\xef\xbf\xbd  ["));
}
END_TEST

START_TEST(a_change_is_counted) {
    const struct sink_answer script[] = {{201, .body = FINE},
                                         {201, .body = FINE},
                                         {200, .body = FINE},
                                         {404, .body = ABSENT},
                                         {201, .body = FINE}};
    serve(script, 5);
    found("1");
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    char first[300];
    snprintf(first, sizeof first, "%s", name_of(0));
    found("1")->end_ns += 5 * SECOND_NS;
    items[0].state = VERDICT_UPDATED;
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    ck_assert_uint_eq(sink.count, 5);
    ck_assert_str_eq(asked(2)->method, "PATCH");
    ck_assert_str_eq(sink_header(asked(2), "Content-Type"), "application/merge-patch+json");
    ck_assert_ptr_nonnull(strstr(asked(2)->path, first));
    ck_assert_str_eq(asked(2)->body,
                     "{\"series\":{\"count\":2,\"lastObservedTime\":"
                     "\"2023-11-14T22:13:26.123456Z\"}}");
    // The server has forgotten the other Event: it is written anew.
    ck_assert_str_eq(asked(3)->method, "PATCH");
    ck_assert_str_eq(asked(4)->method, "POST");
    ck_assert_str_eq(about(4), "w-0");
    // Other words are another Event.
    found("1")->headline = SLICE("GPUs 3b and 5e of node-1 are gone");
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    ck_assert_str_eq(asked(5)->method, "POST");
    ck_assert_str_ne(name_of(5), first);
}
END_TEST

START_TEST(changes_wait_for_their_time) {
    config.update_interval = (struct duration){INT64_C(3600) * 1000000000};
    serve(NULL, 0);
    found("1");
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    ck_assert_uint_eq(exporter_kubernetes.exporter.pace(&instance).again_ns, UINT64_MAX);
    for (uint64_t i = 1; i <= 3; i++) {
        found("1")->end_ns += i * SECOND_NS;
        ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    }
    ck_assert_uint_eq(sink.count, 2);
    ck_assert_uint_ne(exporter_kubernetes.exporter.pace(&instance).again_ns, UINT64_MAX);
    restart(true); // it is still due
    ck_assert_int_eq(deliver((struct request){.complete = true}), STATUS_OK);
    ck_assert_uint_eq(sink.count, 2);
    // At the end nothing is waited for; what came in between counts as one.
    ck_assert_int_eq(deliver((struct request){.complete = true, .last = true}), STATUS_OK);
    ck_assert_uint_eq(sink.count, 4);
    ck_assert_ptr_nonnull(strstr(asked(2)->body, "\"count\":2"));
    // That it is over does not wait.
    found("1")->state = VERDICT_RESOLVED;
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    ck_assert_uint_eq(sink.count, 6);
}
END_TEST

START_TEST(what_is_over) {
    serve(NULL, 0);
    found("1");
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    char first[300];
    snprintf(first, sizeof first, "%s", name_of(0));
    // Later evidence blames another node, and the pod no more.
    found("1")->entities[1].name = SLICE("node-2");
    items[0].entity_count = 2;
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    ck_assert_uint_eq(sink.count, 5);
    static const char *const wanted[][3] = {{"node-1", "GpuFaultWithdrawn", "Normal"},
                                            {"w-0", "GpuFaultWithdrawn", "Normal"},
                                            {"node-2", "GpuFault", "Warning"}};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(about(2 + i), wanted[i][0]);
        ck_assert_str_eq(text_at(body_of(2 + i), "reason"), wanted[i][1]);
        ck_assert_str_eq(text_at(body_of(2 + i), "type"), wanted[i][2]);
    }
    ck_assert(strncmp(text_at(body_of(2), "note"), "Not held against it: GPU 3b", 27) == 0);
    found("1")->state = VERDICT_RESOLVED;
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    ck_assert_uint_eq(sink.count, 6);
    ck_assert_str_eq(text_at(body_of(5), "reason"), "GpuFaultResolved");
    ck_assert_str_eq(about(5), "node-2");
    ck_assert(strncmp(text_at(body_of(5), "note"), "Over: GPU 3b", 12) == 0);
    // Once; and one of which nothing was written need not be told that it is over.
    found("1")->state = VERDICT_RESOLVED;
    found("2")->state = VERDICT_RESOLVED;
    struct attribute attribute = {"culprit.root", SLICE("false")};
    struct verdict *consequence = found("3");
    consequence->attributes = &attribute;
    consequence->attribute_count = 1;
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    ck_assert_uint_eq(sink.count, 6);
    // It comes again: the same words, and another Event, also after a restart.
    restart(true);
    found("1");
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    ck_assert_uint_eq(sink.count, 8);
    ck_assert_str_eq(about(6), "node-1");
    ck_assert_str_ne(name_of(6), first);
    // Now it is a consequence.
    consequence = found("1");
    consequence->attributes = &attribute;
    consequence->attribute_count = 1;
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    ck_assert_str_eq(text_at(body_of(8), "reason"), "GpuFaultWithdrawn");
}
END_TEST

START_TEST(a_repetition_is_told) {
    const struct sink_answer script[] = {
        {201, .body = FINE}, {201, .body = FINE}, {409, .body = EXISTS}};
    serve(script, 3);
    found("1");
    struct request request = encoded();
    ck_assert_int_eq(deliver(request), STATUS_OK);
    char first[300];
    snprintf(first, sizeof first, "%s", name_of(0));
    restart(true); // killed behind the checkpoint: the same bytes come again
    ck_assert_int_eq(deliver(request), STATUS_OK);
    ck_assert_uint_eq(sink.count, 2);
    restart(false); // before it, or without a store
    ck_assert_int_eq(deliver(request), STATUS_OK);
    ck_assert_uint_eq(sink.count, 4);
    ck_assert_str_eq(name_of(2), first);
    ck_assert_uint_eq(instance.table.items[0].objects[0].count, 1);
}
END_TEST

// -- answers --------------------------------------------------------------------------------------

START_TEST(what_is_tried_again) {
    static const struct sink_answer answers[] = {
        {.status = 0},
        {401, .body = FINE},
        {.status = 408},
        {409, .body = ABSENT},
        {429, .body = "slow down"},
        {404, .body = "404 page not found"},
        {500, .body = FINE},
        {503, .body = "[[[["},
        {301, .headers = "Location: http://127.0.0.1:9/\r\n"},
        {403, .body = FORBIDDEN}};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct sink_answer script[] = {answers[i], {201, .body = FINE}};
        script[0].headers = script[0].headers == NULL ? "Retry-After: 7\r\n" : script[0].headers;
        serve(script, 2);
        found("1");
        struct request request = encoded();
        ck_assert_int_eq(deliver(request), STATUS_IO);
        ck_assert_uint_eq(outcome.taken + outcome.refused, 0);
        ck_assert_uint_eq(outcome.retry_after_ns, answers[i].status >= 400 ? 7 * SECOND_NS : 0);
        ck_assert_msg(strstr(error.message, "cannot create an Event on node node-1: ") != NULL,
                      "%s", error.message);
        ck_assert_ptr_null(strstr(error.message, "a-token-that-is-secret"));
        ck_assert_int_eq(deliver(request), STATUS_OK);
        ck_assert_uint_eq(sink.count, 3);
        component_stop(&exporter_kubernetes, &instance);
        http_sink_stop(&sink);
    }
    serve(NULL, 0);
}
END_TEST

START_TEST(what_is_refused) {
    static const struct sink_answer answers[] = {{400, .body = FINE},    {404, .body = ABSENT},
                                                 {.status = 413},        {.status = 415},
                                                 {422, .body = "\xff{"}, {403, .body = ENDING}};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        const struct sink_answer script[] = {answers[i], {201, .body = FINE}};
        serve(script, 2);
        uint64_t before = metric_value(instance.counters.refused[0]);
        found("1");
        ck_assert_int_eq(deliver(encoded()), STATUS_OK);
        ck_assert_uint_eq(metric_value(instance.counters.refused[0]) - before, 1);
        // The others are written, and it is not tried again.
        ck_assert_uint_eq(sink.count, 2);
        ck_assert_str_eq(about(1), "w-0");
        component_stop(&exporter_kubernetes, &instance);
        http_sink_stop(&sink);
    }
    serve(NULL, 0);
}
END_TEST

// A right that is missing for good holds nothing back where nobody waits.
START_TEST(a_right_is_missing) {
    const struct sink_answer script[] = {{403, .body = FORBIDDEN}, {201, .body = FINE}};
    context.once = true;
    serve(script, 2);
    found("1");
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    ck_assert_uint_eq(sink.count, 2);
    ck_assert_uint_eq(instance.missing_count, 1);
    ck_assert_int_eq(instance.missing[0].right, RIGHT_CREATE_EVENT);
    ck_assert_str_eq(instance.missing[0].namespace, "default");
    found("2");
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    ck_assert_uint_eq(instance.missing_count, 0);
}
END_TEST

// It is waited for, but not for ever: then what needs it is dropped, and the rest is written.
START_TEST(a_right_is_waited_for) {
    const struct sink_answer script[] = {{403, .body = FORBIDDEN}, {403, .body = FORBIDDEN},
                                         {403, .body = FORBIDDEN}, {201, .body = FINE},
                                         {403, .body = FORBIDDEN}, {201, .body = FINE}};
    serve(script, 6);
    uint64_t before = metric_value(instance.counters.refused[0]);
    found("1");
    struct request request = encoded();
    ck_assert_int_eq(deliver(request), STATUS_IO);
    ck_assert_int_eq(deliver(request), STATUS_IO);
    ck_assert_uint_eq(metric_value(instance.counters.refused[0]) - before, 0);
    instance.missing[0].since_ns -= 61 * SECOND_NS;
    ck_assert_int_eq(deliver(request), STATUS_OK);
    ck_assert_uint_eq(metric_value(instance.counters.refused[0]) - before, 1);
    ck_assert_str_eq(about(3), "w-0");
    found("2"); // nothing waits again
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    ck_assert_uint_eq(sink.count, 6);
}
END_TEST

// -- uids -----------------------------------------------------------------------------------------

#define POD(uid, created)                                                                          \
    "{\"kind\":\"PartialObjectMetadata\",\"metadata\":{\"uid\":\"" uid                             \
    "\",\"creationTimestamp\":\"" created "\"}}"

START_TEST(uids_of_pods) {
    const struct sink_answer script[] = {
        {200, .body = POD("11112222-3333", "2023-11-14T22:00:00Z")},
        {201, .body = FINE},
        {201, .body = FINE}, // from memory
        {200, .body = POD("younger", "2023-11-15T00:00:00Z")},
        {201, .body = FINE},
        {404, .body = ABSENT},
        {201, .body = FINE},
        {403, .body = FORBIDDEN},
        {201, .body = FINE},
        {201, .body = FINE}}; // no right: not asked again for a while
    static const struct {
        const char *pod, *uid;
    } cases[] = {{"train/w-0", "11112222-3333"},
                 {"train/w-0", "11112222-3333"},
                 {"train/w-1", ""},
                 {"train/w-2", ""},
                 {"other/w-0", ""},
                 {"other/w-1", ""}};
    config.look_up_pods = true;
    serve(script, sizeof script / sizeof script[0]);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char key[8];
        snprintf(key, sizeof key, "%zu", i);
        struct verdict *verdict = found(key);
        verdict->entities[0] = (struct entity){"pod", slice_of(cases[i].pod), ROLE_CULPRIT};
        verdict->entity_count = 1;
        ck_assert_int_eq(deliver(encoded()), STATUS_OK);
        ck_assert_str_eq(asked(sink.count - 1)->method, "POST");
        ck_assert_str_eq(text_at(json_object_get(body_of(sink.count - 1), "regarding"), "uid"),
                         cases[i].uid);
    }
    ck_assert_uint_eq(sink.count, sizeof script / sizeof script[0]);
    ck_assert_str_eq(asked(0)->method, "GET");
    ck_assert_str_eq(asked(0)->path, "/api/v1/namespaces/train/pods/w-0");
    ck_assert_ptr_nonnull(strstr(sink_header(asked(0), "Accept"), "as=PartialObjectMetadata"));
    // What cannot be asked now is asked again.
    component_stop(&exporter_kubernetes, &instance);
    http_sink_stop(&sink);
    serve((const struct sink_answer[]){{.status = 503}}, 1);
    found("9")->entities[1] = items[0].entities[2];
    ck_assert_int_eq(deliver(encoded()), STATUS_IO);
}
END_TEST

// -- the condition --------------------------------------------------------------------------------

static const json_t *condition_of(size_t number) {
    ck_assert_str_eq(asked(number)->method, "PATCH");
    ck_assert_str_eq(asked(number)->path, "/api/v1/nodes/node-1/status?fieldManager=culprit");
    ck_assert_str_eq(sink_header(asked(number), "Content-Type"),
                     "application/strategic-merge-patch+json");
    const json_t *list = json_object_get(json_object_get(body_of(number), "status"), "conditions");
    ck_assert_uint_eq(json_array_size(list), 1);
    return json_array_get(list, 0);
}

START_TEST(the_condition) {
    config.node_condition.enabled = true;
    serve(NULL, 0);
    found("1")->severity = SEVERITY_ERROR;
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    ck_assert_uint_eq(sink.count, 3);
    const json_t *condition = condition_of(2);
    ck_assert_str_eq(text_at(condition, "type"), "CulpritNodeProblem");
    ck_assert_str_eq(text_at(condition, "status"), "True");
    ck_assert_str_eq(text_at(condition, "reason"), "GpuFault");
    ck_assert_str_eq(text_at(condition, "lastTransitionTime"), "2023-11-14T22:13:20Z");
    ck_assert_str_gt(text_at(condition, "lastHeartbeatTime"), "2026");
    // A graver one: its words wait for their minute. A restart changes nothing.
    found("2")->headline = SLICE("Worse");
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    ck_assert_uint_eq(sink.count, 5);
    ck_assert_uint_ne(exporter_kubernetes.exporter.pace(&instance).again_ns, UINT64_MAX);
    restart(true);
    ck_assert_int_eq(deliver((struct request){.complete = true}), STATUS_OK);
    ck_assert_uint_eq(sink.count, 5);
    // A minute later.
    instance.nodes[0].written_ns -= 61 * SECOND_NS;
    ck_assert_int_eq(deliver((struct request){.complete = true}), STATUS_OK);
    condition = condition_of(5);
    ck_assert(strncmp(text_at(condition, "message"), "Worse. Drain it.", 16) == 0);
    ck_assert_ptr_nonnull(strstr(text_at(condition, "message"), "] and 1 more"));
    ck_assert_str_eq(text_at(condition, "lastTransitionTime"), "2023-11-14T22:13:20Z");
    // It stays while one of them is open, and is told when none is.
    found("2")->state = VERDICT_RESOLVED;
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    ck_assert_uint_eq(sink.count, 8);
    found("1")->state = VERDICT_RESOLVED;
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    ck_assert_uint_eq(sink.count, 11);
    condition = condition_of(10);
    ck_assert_str_eq(text_at(condition, "status"), "False");
    ck_assert_str_gt(text_at(condition, "lastTransitionTime"), "2026");
    ck_assert_uint_eq(instance.node_count, 0);
    ck_assert_uint_eq(exporter_kubernetes.exporter.pace(&instance).again_ns, UINT64_MAX);
}
END_TEST

START_TEST(what_sets_no_condition) {
    config.node_condition.enabled = true;
    serve(NULL, 0);
    found("1")->severity = SEVERITY_WARNING; // too light
    found("2")->entities[0] = (struct entity){"rank", SLICE("3"), ROLE_CULPRIT};
    found("3")->entities[0].name = SLICE("node-11/0000:3b:00.0"); // another node's
    found("4")->entities[0].role = ROLE_SUSPECT;
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    ck_assert_uint_eq(sink.count, 8);
    for (size_t i = 0; i < 8; i++)
        ck_assert_str_eq(asked(i)->method, "POST");
}
END_TEST

START_TEST(the_condition_ends_by_itself) {
    const struct sink_answer script[] = {
        {201, .body = FINE}, {201, .body = FINE}, {404, .body = ABSENT}, {200, .body = FINE}};
    config.node_condition.enabled = true;
    config.node_condition.resolve_after = (struct duration){INT64_C(3600) * 1000000000};
    serve(script, 4);
    uint64_t before = metric_value(instance.counters.refused[1]);
    found("1");
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    ck_assert_uint_eq(metric_value(instance.counters.refused[1]) - before, 1); // no such Node
    instance.nodes[0].written_ns -= 61 * SECOND_NS;
    ck_assert_int_eq(deliver((struct request){.complete = true}), STATUS_OK);
    ck_assert_str_eq(text_at(condition_of(3), "status"), "True"); // the next heartbeat
    instance.table.items[0].changed_ns -= 3601 * SECOND_NS;
    restart(true);
    ck_assert_int_eq(deliver((struct request){.complete = true}), STATUS_OK);
    ck_assert_str_eq(text_at(condition_of(4), "status"), "False");
    ck_assert_int_eq(deliver((struct request){.complete = true}), STATUS_OK);
    ck_assert_uint_eq(sink.count, 5);
}
END_TEST

// -- bounds ---------------------------------------------------------------------------------------

START_TEST(bounds) {
    config.max_verdicts = 2;
    config.max_objects = 1;
    serve(NULL, 0);
    uint64_t before = metric_value(instance.counters.forgotten);
    found("1");
    found("2");
    found("3");
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    ck_assert_uint_eq(sink.count, 3); // the node each, not the victim
    ck_assert_uint_eq(instance.table.count, 2);
    ck_assert_uint_eq(metric_value(instance.counters.forgotten) - before, 1);
    // One that is over makes room first.
    found("3")->state = VERDICT_RESOLVED;
    found("4");
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    ck_assert_uint_eq(metric_value(instance.counters.forgotten) - before, 1);
}
END_TEST

// The server answers, but slowly: what is written is never written again, the rest comes later.
START_TEST(a_slow_server) {
    const struct sink_answer script[] = {{201, .body = FINE, .delay_ms = 300}, {201, .body = FINE}};
    config.sending.timeout = (struct duration){200 * 1000 * 1000};
    serve(script, 2);
    found("1");
    found("2");
    struct request request = encoded();
    ck_assert_int_eq(deliver(request), STATUS_IO); // the first is cut off
    ck_assert_uint_eq(outcome.taken, 0);
    while (deliver(request) != STATUS_OK) {
        request.bytes = text_from(request.bytes, outcome.taken);
        ck_assert_uint_lt(sink.count, 200);
    }
    ck_assert_uint_ge(sink.count, 5);
}
END_TEST

// The same object in two roles is one object, in the first of them.
START_TEST(one_object_in_two_roles) {
    serve(NULL, 0);
    struct verdict *verdict = found("1");
    verdict->entities[2] = verdict->entities[1];
    verdict->entities[2].role = ROLE_VICTIM;
    ck_assert_int_eq(deliver(encoded()), STATUS_OK);
    ck_assert_uint_eq(sink.count, 1);
    ck_assert_str_eq(text_at(body_of(0), "type"), "Warning");
}
END_TEST

static const char BAD_OBJECTS[] =
    "{\"verdict\":\"a:1\",\"line\":{\"id\":\"a:1\",\"state\":\"open\",\"objects\":[]},"
    "\"objects\":[{\"name\":\"../x\"},7,{\"kind\":\"Node\",\"name\":\"n\",\"event\":"
    "\"0123456789abcdef0\"}]}\n";

START_TEST(what_was_kept_may_be_damaged) {
    serve(NULL, 0);
    static const char *const kept[] = {
        "",
        "\n\n",
        "{}",
        "[]",
        "{\"verdict\":3}\n",
        "{\"verdict\":\"\"}\n",
        BAD_OBJECTS,
        "{\"node\":\"../n\",\"said\":\"\"}\n{\"node\":\"n\",\"said\":\"0123456789abcdef0123\"}\n",
        "{\"verdict\":\"a:2\",\"line\":{\"id\":\"a:2\",\"state\":\"shut\"}}"};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        ck_assert_int_eq(exporter_kubernetes.exporter.resume(&instance, slice_of(kept[i]), &error),
                         STATUS_OK);
    ck_assert_int_eq(deliver((struct request){.complete = true}), STATUS_OK);
    ck_assert_uint_eq(sink.count, 0);
    ck_assert_uint_eq(instance.table.count, 1);
    ck_assert_uint_eq(instance.table.items[0].object_count, 0);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("kubernetes_events");
    TCase *cases = tcase_create("kubernetes_events");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, what_it_holds);
    tcase_add_test(cases, where_pods_are);
    tcase_add_test(cases, what_has_no_event);
    tcase_add_test(cases, long_and_foreign_texts);
    tcase_add_test(cases, a_change_is_counted);
    tcase_add_test(cases, changes_wait_for_their_time);
    tcase_add_test(cases, what_is_over);
    tcase_add_test(cases, a_repetition_is_told);
    tcase_add_test(cases, what_is_tried_again);
    tcase_add_test(cases, what_is_refused);
    tcase_add_test(cases, a_right_is_missing);
    tcase_add_test(cases, a_right_is_waited_for);
    tcase_add_test(cases, uids_of_pods);
    tcase_add_test(cases, the_condition);
    tcase_add_test(cases, what_sets_no_condition);
    tcase_add_test(cases, the_condition_ends_by_itself);
    tcase_add_test(cases, bounds);
    tcase_add_test(cases, a_slow_server);
    tcase_add_test(cases, one_object_in_two_roles);
    tcase_add_test(cases, what_was_kept_may_be_damaged);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
