// SPDX-License-Identifier: Apache-2.0
// A value that a source is known to change is checked like any other.
#include "tests/receivers/decode/decode_members.h"

// Teaches a source whose records have `fixed` (pairs, ended by NULL) and differ in each of
// `changing`, then decodes one with `odd` on top. True when that one is accepted.
static bool after_learning(const char *const *fixed, const char *const *changing,
                           const char *const *odd, const char *tail) {
    struct member members[MEMBERS_MAX];
    unsigned count = base_members(members);
    memset(warm.state, 0, decoder_stormlog.state_size);
    for (; *fixed != NULL; fixed += 2)
        set_member(members, &count, fixed[0], fixed[1]);
    for (unsigned i = 0; i < count;) {
        if (strcmp(members[i].value, "absent") == 0)
            memmove(&members[i], &members[i + 1], (--count - i) * sizeof *members);
        else
            i++;
    }
    for (unsigned line = 0; line < 40; line++) {
        for (const char *const *change = changing; *change != NULL; change += 3)
            set_member(members, &count, change[0], change[1 + line % 2]);
        ck_assert(decode_both(write_members(members, count, &writings[0])));
    }
    ck_assert(learnt()->template.ready && learnt()->template.score > 20);
    for (; *odd != NULL; odd += 2)
        set_member(members, &count, odd[0], odd[1]);
    struct slice record = write_members(members, count, &writings[0]);
    char *text = memory_take(record.size + strlen(tail));
    memcpy(text, record.data, record.size);
    memcpy(text + record.size, tail, strlen(tail));
    bool accepted = decode_both((struct slice){text, record.size + strlen(tail)});
    memory_give(text);
    return accepted;
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NOTHING   ((const char *const[]){NULL})

START_TEST(changing_values_keep_their_rules) {
    const char *const *ranks = LIST("rank", "0", "1");
    ck_assert(after_learning(NOTHING, ranks, LIST("rank", "1"), ""));
    ck_assert(!after_learning(NOTHING, ranks, LIST("rank", "2"), ""));
    const char *const *worlds = LIST("rank", "0", "1", "world_size", "8", "9");
    ck_assert(after_learning(NOTHING, worlds, LIST("world_size", "2147483646"), ""));
    ck_assert(!after_learning(NOTHING, worlds, LIST("world_size", "2147483647"), ""));
    ck_assert(!after_learning(NOTHING, worlds, LIST("world_size", "0"), ""));
    ck_assert(!after_learning(NOTHING, worlds, LIST("rank", "null"), ""));
    // local_rank follows the rank when it is absent.
    ck_assert(after_learning(LIST("local_rank", "absent", "world_size", "8"), ranks,
                             LIST("rank", "7"), ""));
    const char *const *hosts = LIST("host", "\"a\"", "\"b\"");
    ck_assert(!after_learning(NOTHING, hosts, LIST("host", "\" \""), ""));
    ck_assert(!after_learning(NOTHING, hosts, LIST("host", "null"), ""));
    const char *const *jobs = LIST("job_id", "\"a\"", "\"b\"");
    ck_assert(after_learning(NOTHING, jobs, LIST("job_id", "null"), ""));
    const char *const *contexts = LIST("context", "\"a\"", "null");
    ck_assert(!after_learning(NOTHING, contexts, LIST("context", "true"), ""));
}
END_TEST

START_TEST(nothing_may_follow_a_record_that_fits) {
    const char *const *pids = LIST("pid", "1", "2");
    ck_assert(after_learning(NOTHING, pids, LIST("pid", "3"), " \r"));
    ck_assert(!after_learning(NOTHING, pids, LIST("pid", "3"), "x"));
    ck_assert(!after_learning(NOTHING, pids, LIST("pid", "3"), "{}"));
}
END_TEST

START_TEST(counters_that_come_back_need_their_capability) {
    const char *const *counters = LIST("allocator_reserved_bytes", "null", "null", "pid", "1", "2");
    const char *const *block =
        LIST("schema_version", "4", "metadata", "{" CAPABILITIES("false") "}");
    ck_assert(!after_learning(block, counters, LIST("allocator_reserved_bytes", "5"), ""));
    const char *const *both = LIST("allocator_active_bytes", "null", "7");
    block = LIST("schema_version", "4", "metadata", "{" CAPABILITIES("true") "}");
    ck_assert(after_learning(block, both, LIST("allocator_active_bytes", "5"), ""));
    // Without a block the change needs the allocated bytes.
    const char *const *inferred =
        LIST("allocator_allocated_bytes", "null", "7", "allocator_change_bytes", "null", "3");
    ck_assert(!after_learning(
        LIST("schema_version", "4"), inferred,
        LIST("allocator_allocated_bytes", "null", "allocator_change_bytes", "4"), ""));
}
END_TEST

START_TEST(a_counter_changes_under_a_fixed_block) {
    // Supported: null and numbers in turn. Then one that the block does not support.
    static const char narrow[] =
        "{\"memory_capabilities\":{\"backend\":\"b\",\"telemetry_collector\":\"t\","
        "\"sampling_source\":\"s\",\"supports_allocator_allocated\":true,"
        "\"supports_allocator_reserved\":true,\"supports_allocator_active\":true,"
        "\"supports_allocator_inactive\":false,\"supports_device_used\":true,"
        "\"supports_device_free\":true,\"supports_device_total\":true,"
        "\"supports_native_allocator_history\":false,\"supports_fragmentation_analysis\":false,"
        "\"supports_allocator_attribution\":false,\"supports_bounded_profiling\":false}}";
    const char *const *turns = LIST("allocator_active_bytes", "null", "7", "pid", "1", "2");
    for (int version = 2; version <= 4; version++) {
        char text[2] = {(char)('0' + version), '\0'};
        const char *const *fixed = LIST("schema_version", text, "metadata", narrow, "session_id",
                                        version == 2 ? "absent" : "\"s\"");
        ck_assert(after_learning(fixed, turns, LIST("allocator_active_bytes", "9"), ""));
        ck_assert(!after_learning(fixed, turns, LIST("allocator_inactive_bytes", "9"), ""));
    }
}
END_TEST

START_TEST(session_ids_of_the_metadata_follow_the_metadata) {
    const char *const *absent = LIST("session_id", "absent");
    const char *const *plain = LIST("metadata", "{\"step\":1}", "{\"step\":2}");
    ck_assert(after_learning(absent, plain, LIST("metadata", "{\"session_id\":\"m\"}"), ""));
    ck_assert(after_learning(LIST("session_id", "null"), plain,
                             LIST("metadata", "{\"session_id\":\"m\"}"), ""));
    ck_assert(after_learning(LIST("session_id", "absent", "metadata", "{\"session_id\":\"m\"}"),
                             LIST("pid", "1", "2"), LIST("metadata", "{\"step\":3}"), ""));
    // Own ids make the metadata's irrelevant.
    ck_assert(after_learning(NOTHING, plain, LIST("metadata", "{\"session_id\":\"m\"}"), ""));
    // Ids that come, go and change inside the metadata.
    for (unsigned line = 0; line < 3000; line++) {
        struct member members[MEMBERS_MAX];
        unsigned count = base_members(members);
        move_on(members, &count, line);
        members[1] = members[--count];
        char metadata[64];
        snprintf(metadata, sizeof metadata,
                 below(3) == 0 ? "{\"step\":%u}" : "{\"session_id\":\"m%u\"}", line % 5);
        set_member(members, &count, "metadata", metadata);
        set_member(members, &count, "event_type", "\"sample\"");
        ck_assert(decode_both(write_members(members, count, &writings[0])));
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("telemetry_decode_changes");
    TCase *tcase = tcase_create("changes");
    tcase_add_checked_fixture(tcase, decode_setup, decode_teardown);
    tcase_add_test(tcase, changing_values_keep_their_rules);
    tcase_add_test(tcase, nothing_may_follow_a_record_that_fits);
    tcase_add_test(tcase, counters_that_come_back_need_their_capability);
    tcase_add_test(tcase, a_counter_changes_under_a_fixed_block);
    tcase_add_test(tcase, session_ids_of_the_metadata_follow_the_metadata);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
