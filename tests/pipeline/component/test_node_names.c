// SPDX-License-Identifier: Apache-2.0
// Which names mean one node, and which of them people are shown.
#include "pipeline/component/node_names.h"

#include "base/memory.h"
#include "pipeline/model/node_event.h"

#include <check.h>
#include <stdio.h>

static struct node_names names;
static struct arena arena;

static string_id of(const char *name) {
    return intern(slice_of(name));
}

static const char *key(const char *name) {
    return intern_slice(node_names_key(&names, of(name))).data;
}

static void setup(void) {
    node_names_init(&names);
    arena_init(&arena, 4096);
}

static void teardown(void) {
    node_names_release(&names);
    arena_release(&arena);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

enum { ROW_NAMES_MAX = 5 };

// Names as they come, and the key of each once all are known.
static const struct row {
    const char *names[ROW_NAMES_MAX], *keys[ROW_NAMES_MAX];
} ROWS[] = {
    {{"node7", "node7.example.com"}, {"node7", "node7"}},
    {{"node7.example.com", "node7"}, {"node7", "node7"}},
    {{"NODE7", "Node7.Example.COM.", "node7"}, {"node7", "node7", "node7"}},
    {{"node7.example.com"}, {"node7"}},
    {{"node7.rack1", "node7.rack1.example.com"}, {"node7", "node7"}},
    {{"a.x.com", "a.y.com", "a.x.com", "A.Y.com"}, {"a", "a.y.com", "a", "a.y.com"}},
    {{"a", "a.x.com", "a.y.com", "a"}, {"a", "a", "a.y.com", "a"}},
    {{"10.0.0.7", "10.0.0.8", "10"}, {"10.0.0.7", "10.0.0.8", "10"}},
    {{"fe80::1", "FE80::1"}, {"fe80::1", "fe80::1"}},
    {{".", "", ".x"}, {".", "", ".x"}},
};

static void check_row(const struct row *row) {
    for (uint32_t i = 0; i < ROW_NAMES_MAX && row->names[i] != NULL; i++) {
        ck_assert_str_eq(key(row->names[i]), row->keys[i]);
        ck_assert_str_eq(intern_slice(node_names_find(&names, of(row->names[i]))).data,
                         row->keys[i]);
    }
}

START_TEST(one_node_one_key) {
    const struct row *row = &ROWS[_i];
    for (uint32_t i = 0; i < ROW_NAMES_MAX && row->names[i] != NULL; i++)
        (void)key(row->names[i]);
    check_row(row);
    uint32_t nodes = names.nodes.used, spellings = names.names.used;
    node_names_restored(&names); // as after a load
    check_row(row);
    ck_assert_uint_eq(names.nodes.used, nodes);
    ck_assert_uint_eq(names.names.used, spellings);
}
END_TEST

START_TEST(looking_up_learns_nothing) {
    ck_assert_str_eq(intern_slice(node_names_find(&names, of("node7.example.com"))).data,
                     "node7.example.com");
    ck_assert_uint_eq(names.names.used, 0);
    (void)key("node7");
    ck_assert_str_eq(intern_slice(node_names_find(&names, of("NODE7.example.com"))).data, "node7");
    ck_assert_uint_eq(names.names.used, 1);
    ck_assert_uint_eq(node_names_key(&names, STRING_NONE), STRING_NONE);
    ck_assert_uint_eq(node_names_find(&names, STRING_REFUSED), STRING_REFUSED);
}
END_TEST

// A folder is compared with what others have named, and names nothing by itself.
START_TEST(what_was_named_is_known) {
    static const char *const folders[] = {
        "node7", "NODE7", "node7.example.com", "node8", "logs", "node", "", ".."};
    static const bool known[] = {true, true, true, true, false, false, false, false};
    struct event events[] = {{.kind = EVENT_TELEMETRY, .node = of("node7")},
                             {.kind = EVENT_TELEMETRY, .node = STRING_NONE},
                             {.kind = EVENT_SPAN, .node = of("node8.example.com")}};
    struct batch batch = {.events = events,
                          .event_count = sizeof events / sizeof *events,
                          .kinds = 1 << EVENT_TELEMETRY | 1 << EVENT_SPAN};
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            ck_assert_int_eq(node_names_knows(&names, slice_of(folders[i])), pass == 1 && known[i]);
        node_names_learn_hosts(&names, &batch);
    }
}
END_TEST

START_TEST(it_is_bounded) {
    char name[32];
    for (uint32_t i = 0; i < NODE_NAMES_MAX + 10; i++) {
        snprintf(name, sizeof name, "node%u.example.com", i);
        ck_assert_uint_eq(strcspn(name, "."), strlen(key(name)));
        ck_assert_uint_le(names.names.used, NODE_NAMES_MAX);
    }
    ck_assert_uint_le(names.names.used, 20);
}
END_TEST

// However many domains share a label, a new name costs the same; all stay apart.
START_TEST(many_domains_of_one_label) {
    char name[64], again[64];
    for (uint32_t i = 0; i < 20000; i++) {
        snprintf(name, sizeof name, "node.c%u.example.com", i);
        ck_assert_str_eq(key(name), i == 0 ? "node" : name);
        snprintf(again, sizeof again, "node.C%u.example.com", i);
        if (i < 64)
            ck_assert_str_eq(key(again), i == 0 ? "node" : name);
    }
}
END_TEST

// -- events ---------------------------------------------------------------------------------------

static struct batch batch_of(const struct event *events, uint32_t count) {
    struct batch batch = {.events = events, .event_count = count, .arena = &arena};
    for (uint32_t i = 0; i < count; i++)
        batch.kinds |= 1u << events[i].kind;
    return batch;
}

START_TEST(events_have_keys_and_others_keep_theirs) {
    struct kernel_line line = {.kind = KERNEL_XID};
    struct gpu_sample samples[2] = {{.node = of("node8")}, {.node = of("node7.example.com")}};
    struct gpu_scrape scrape = {samples, 2};
    struct rank_place place = {.node = of("NODE7")};
    static const struct slice addresses[] = {{"10.0.0.7", 8}, {"node7.example.com", 17}};
    struct kubernetes_object node = {.kind = KUBERNETES_NODE,
                                     .name = SLICE("node7.example.com"),
                                     .aliases = addresses,
                                     .alias_count = 2};
    struct kubernetes_object pod = {.kind = KUBERNETES_POD,
                                    .node_name = SLICE("node7.example.com")};
    struct kubernetes_object scheduled = {
        .kind = KUBERNETES_EVENT,
        .reason = SLICE("Scheduled"),
        .message = SLICE("Successfully assigned train/a to node7.example.com")};
    struct telemetry telemetry = {0};
    const struct event events[] = {
        {.kind = EVENT_TELEMETRY, .node = of("NODE7"), .telemetry = &telemetry},
        {.kind = EVENT_GPU_SAMPLE, .gpus = &scrape},
        {.kind = EVENT_RANK_MAP, .place = &place},
        {.kind = EVENT_KUBERNETES, .node = of("node7.example.com"), .kubernetes = &node},
        {.kind = EVENT_KUBERNETES, .node = of("node7.example.com"), .kubernetes = &pod},
        {.kind = EVENT_KUBERNETES, .kubernetes = &scheduled},
        {.kind = EVENT_KERNEL, .node = of("10.0.0.7"), .kernel = &line},
    };
    struct batch batch = batch_of(events, 7);
    node_names_apply(&names, &batch);
    string_id node7 = of("node7");
    ck_assert_ptr_ne(batch.events, events);
    ck_assert_uint_eq(batch.events[0].node, of("NODE7")); // of telemetry: nobody joins by it
    ck_assert_uint_eq(batch.events[1].gpus->samples[0].node, of("node8"));
    ck_assert_uint_eq(batch.events[1].gpus->samples[1].node, node7);
    ck_assert_uint_eq(batch.events[2].place->node, node7);
    ck_assert_uint_eq(batch.events[3].node, node7);
    ck_assert(slice_equal(batch.events[3].kubernetes->name, SLICE("node7.example.com")));
    ck_assert(slice_equal(batch.events[4].kubernetes->node_name, SLICE("node7")));
    ck_assert(slice_equal(batch.events[5].kubernetes->said_node, SLICE("node7")));
    ck_assert_uint_eq(batch.events[6].node, node7);
    // The same events for another pipeline are as they came.
    ck_assert_uint_eq(samples[1].node, of("node7.example.com"));
    ck_assert_uint_eq(place.node, of("NODE7"));
    ck_assert(slice_equal(pod.node_name, SLICE("node7.example.com")));
    ck_assert_uint_eq(events[6].node, of("10.0.0.7"));
}
END_TEST

START_TEST(nothing_is_copied_where_nothing_changes) {
    struct telemetry telemetry = {0};
    struct kernel_line line = {.kind = KERNEL_XID};
    const struct event events[] = {
        {.kind = EVENT_TELEMETRY, .node = of("NODE7"), .telemetry = &telemetry},
        {.kind = EVENT_KERNEL, .node = of("node7"), .kernel = &line}};
    for (uint32_t count = 1; count <= 2; count++) {
        struct batch batch = batch_of(events, count);
        node_names_apply(&names, &batch);
        ck_assert_ptr_eq(batch.events, events);
        ck_assert_uint_eq(names.names.used, count - 1);
    }
}
END_TEST

// -- verdicts -------------------------------------------------------------------------------------

enum { SPELLINGS_MAX = 3 };

// What is shown does not depend on which name came first.
static const struct spelled {
    const char *kernel, *map, *kubernetes, *shown;
} SPELLED[] = {
    {"node7", NULL, NULL, "node7"},
    {"node7.example.com", NULL, NULL, "node7.example.com"},
    {"NODE7", "node7.lab", NULL, "node7.lab"},
    {"node7", "node7.lab", "node7.lab.example.com", "node7.lab.example.com"},
    {"node7.lab.example.com", NULL, "node7", "node7"},
};

static void tell(const struct spelled *row, uint32_t which) {
    struct rank_place place = {0};
    struct kubernetes_object pod = {.kind = KUBERNETES_POD};
    struct kernel_line line = {.kind = KERNEL_XID};
    struct event event = {.kind = EVENT_KERNEL, .kernel = &line};
    const char *name = which == 0 ? row->kernel : which == 1 ? row->map : row->kubernetes;
    if (name == NULL)
        return;
    event.node = of(name);
    if (which == 1) {
        event.kind = EVENT_RANK_MAP;
        event.place = &place;
        place.node = event.node;
    } else if (which == 2) {
        event.kind = EVENT_KUBERNETES;
        event.kubernetes = &pod;
        pod.node_name = slice_of(name);
    }
    struct batch batch = batch_of(&event, 1);
    node_names_apply(&names, &batch);
}

// In a pod the host name is the pod's.
START_TEST(a_pod_is_no_node) {
    struct rank_place place = {.node = of("gpu-node-7"), .pod = SLICE("train-0")};
    struct event events[] = {{.kind = EVENT_RANK_MAP, .place = &place},
                             {.kind = EVENT_KERNEL, .node = of("train-0")}};
    struct batch batch = batch_of(events, 2);
    node_names_apply(&names, &batch);
    ck_assert_uint_eq(batch.events[1].node, of("gpu-node-7"));
}
END_TEST

START_TEST(people_are_shown_what_kubernetes_calls_it) {
    const struct spelled *row = &SPELLED[_i];
    for (uint32_t first = 0; first < SPELLINGS_MAX; first++) {
        node_names_release(&names);
        node_names_init(&names);
        for (uint32_t i = 0; i < SPELLINGS_MAX; i++)
            tell(row, (first + i) % SPELLINGS_MAX);
        struct entity entities[] = {{"node", SLICE("node7"), ROLE_CULPRIT},
                                    {"gpu", SLICE("node7/0000:1b:00"), ROLE_SUSPECT},
                                    {"pod", SLICE("node7/node7"), ROLE_VICTIM}};
        struct attribute attributes[] = {{"host.name", SLICE("node7")},
                                         {"k8s.node.name", SLICE("node7")}};
        struct verdict verdict = {
            .headline = SLICE("node7: node7, node71, train/node7, node7.x and node7."),
            .remediation = SLICE("Drain node7"),
            .entities = entities,
            .entity_count = 3,
            .attributes = attributes,
            .attribute_count = 2};
        struct batch batch = {.arena = &arena, .verdicts = {&verdict, 1, 1}};
        node_names_show(&names, &batch);
        ck_assert(slice_equal(entities[0].name, slice_of(row->shown)));
        const char *gpu = arena_format(&arena, "%s/0000:1b:00", row->shown);
        ck_assert(slice_equal(entities[1].name, slice_of(gpu)));
        ck_assert(slice_equal(entities[2].name, SLICE("node7/node7")));
        ck_assert(slice_equal(attributes[0].value, SLICE("node7")));
        ck_assert(slice_equal(attributes[1].value, slice_of(row->shown)));
        const char *headline = arena_format(&arena, "%s: %s, node71, train/node7, node7.x and %s.",
                                            row->shown, row->shown, row->shown);
        ck_assert(slice_equal(verdict.headline, slice_of(headline)));
        const char *remediation = arena_format(&arena, "Drain %s", row->shown);
        ck_assert(slice_equal(verdict.remediation, slice_of(remediation)));
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("node_names");
    TCase *tests = tcase_create("node_names");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, one_node_one_key, 0, sizeof ROWS / sizeof ROWS[0]);
    tcase_add_test(tests, looking_up_learns_nothing);
    tcase_add_test(tests, what_was_named_is_known);
    tcase_add_test(tests, it_is_bounded);
    tcase_add_test(tests, many_domains_of_one_label);
    tcase_add_test(tests, events_have_keys_and_others_keep_theirs);
    tcase_add_test(tests, nothing_is_copied_where_nothing_changes);
    tcase_add_test(tests, a_pod_is_no_node);
    tcase_add_loop_test(tests, people_are_shown_what_kubernetes_calls_it, 0,
                        sizeof SPELLED / sizeof SPELLED[0]);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
