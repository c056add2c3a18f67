// SPDX-License-Identifier: Apache-2.0
// Which files the receiver finds: patterns, directories, sinks, dumps, links.
#include "tests/receivers/file/file_fixture.h"

#include "receivers/file/dump.h"

#include <check.h>

static void touch(const char *path) {
    fixture_run("mkdir -p \"$(dirname '%s')\" && echo '{\"memory_mb\":1,\"timestamp\":1}' > '%s'",
                path, path);
}

// Lists `include` (without `exclude`) and compares the paths, joined by blanks.
static void check_found(const char *const *include, uint32_t count, const char *const *exclude,
                        uint32_t exclude_count, const char *expected) {
    rig_init(&rig, include, count);
    rig.config.exclude = (struct text_list){exclude, exclude_count};
    rig_start(&rig);
    rig.list_status = receiver_file.receiver.list(&rig.receiver, &rig.sources, &rig.error);
    char found[8192];
    size_t used = 0;
    found[0] = '\0';
    for (uint32_t i = 0; i < rig.sources.count; i++)
        used += (size_t)snprintf(found + used, sizeof found - used, "%s%.*s", i == 0 ? "" : " ",
                                 (int)rig.sources.paths[i].size, rig.sources.paths[i].data);
    ck_assert_str_eq(found, expected);
}

static void check_pattern(const char *include, const char *expected) {
    const char *const list[] = {include};
    check_found(list, 1, NULL, 0, expected);
    rig_free(&rig);
}

static bool noted(const char *one, const char *other) {
    const struct found_list *found = &rig.receiver.found;
    for (uint32_t i = 0; i < found->note_count; i++) {
        const struct found_note *note = &found->notes[i];
        char text[2048];
        snprintf(text, sizeof text, "%.*s: %.*s", (int)note->path.size, note->path.data,
                 (int)note->text.size, note->text.data);
        if (strstr(text, one) != NULL && strstr(text, other) != NULL)
            return true;
    }
    return false;
}

// -- matching -----------------------------------------------------------------------------------

static bool matches(const char *pattern, const char *path) {
    struct arena arena;
    struct glob_list list;
    arena_init(&arena, 4096);
    ck_assert_ptr_null(glob_parse(slice_of(pattern), &arena, &list));
    bool found = false;
    for (uint32_t i = 0; i < list.count; i++)
        found = found || glob_match_path(&list.items[i], slice_of(path));
    arena_release(&arena);
    return found;
}

START_TEST(patterns) {
    static const struct {
        const char *pattern, *path;
        bool fits;
    } cases[] = {
        {"a/*", "a/b", true},
        {"a/*", "a/b/c", false},
        {"a/*", "a/.b", false},
        {"a/.*", "a/.b", true},
        {"a/*.jsonl", "a/x.jsonl", true},
        {"a/*.jsonl", "a/x.json", false},
        {"a/*.*.gz", "a/x.y.z.gz", true},
        {"a/?b", "a/xb", true},
        {"a/?b", "a/b", false},
        {"a/[a-c]x", "a/bx", true},
        {"a/[a-c]x", "a/dx", false},
        {"a/[!a-c]x", "a/dx", true},
        {"a/[^a-c]x", "a/ax", false},
        {"a/[]x]", "a/]", true},
        {"a/[a\\]]", "a/]", true},
        {"a/\\*", "a/*", true},
        {"a/\\*", "a/b", false},
        {"a/**", "a", true},
        {"a/**", "a/b/c", true},
        {"a/**/c", "a/c", true},
        {"a/**/c", "a/b/b/c", true},
        {"a/**/c", "a/b/c/d", false},
        {"a/**/b/**/c", "a/x/b/y/b/z/c", true},
        {"a/**/b*/c", "a/b1/b2/d/b3/c", true},
        {"a/**/**/c", "a/b/c", true},
        {"**/c", "c", true},
        {"**/c", "/x/c", false},
        {"/**/c", "/x/c", true},
        {"/a", "a", false},
        {"a/{b,c}/d", "a/c/d", true},
        {"a/{b,c}/d", "a/d/d", false},
        {"a/{b,{c,d}x}", "a/dx", true},
        {"a/x{,.gz}", "a/x", true},
        {"a/x{,.gz}", "a/x.gz", true},
        {"a/x{1,2}{3,4}", "a/x24", true},
        {"a/\\{b,c}", "a/{b,c}", true},
        {"*.bak", "x/y/z.bak", true},
        {"old", "x/old/z", true},
        {"old", "x/older/z", false},
        {"a//b/", "a/b", true},
        {"a/*a*a*a*b", "a/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_msg(matches(cases[i].pattern, cases[i].path) == cases[i].fits, "%s %s",
                      cases[i].pattern, cases[i].path);
}
END_TEST

START_TEST(patterns_that_cannot_be_used) {
    static const char *const bad[] = {
        "a[b", "a{b", "a{b,{c}", "a\\",
        "",    "[]",  "[!]",     "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"};
    struct arena arena;
    struct glob_list list;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(glob_parse(slice_of(bad[i]), &arena, &list) != NULL, "%s", bad[i]);
    char many[3000] = "";
    for (int i = 0; i < 70; i++)
        strcat(many, "a/");
    ck_assert_ptr_nonnull(glob_parse(slice_of(many), &arena, &list));
    for (int i = 0; i < 500; i++)
        strcat(many, "{a,b}");
    ck_assert_ptr_nonnull(glob_parse(slice_of(many), &arena, &list));
    arena_release(&arena);
}
END_TEST

// The product of the lengths, not a power of them.
START_TEST(patterns_are_not_slow) {
    char pattern[4096] = "", path[8192] = "";
    for (int i = 0; i < 20; i++)
        strcat(pattern, "**/a*a*a*a*a/");
    strcat(pattern, "x");
    for (int i = 0; i < 200; i++)
        strcat(path, "aaaaaaaaaaaaaaaaaaaaaaaaaaa/");
    ck_assert(!matches(pattern, path));
}
END_TEST

// -- searching ----------------------------------------------------------------------------------

START_TEST(globs_over_directories) {
    touch("runs/1/rank0.jsonl");
    touch("runs/1/rank10.jsonl");
    touch("runs/2/deep/er/rank1.jsonl.gz");
    touch("runs/2/note.md");
    touch("runs/.hidden/rank3.jsonl");
    touch("runs/2/.rank4.jsonl");
    touch("runs/2/rank5.jsonl.tmp");
    touch("other/x.json");
    check_pattern("runs/*/rank*.jsonl", "runs/1/rank0.jsonl runs/1/rank10.jsonl");
    check_pattern("runs/1/rank?.jsonl", "runs/1/rank0.jsonl");
    check_pattern("runs/**/*.jsonl*",
                  "runs/1/rank0.jsonl runs/1/rank10.jsonl runs/2/deep/er/rank1.jsonl.gz");
    check_pattern("**/*.md", "runs/2/note.md");
    check_pattern("./**/*.md", "./runs/2/note.md");
    check_pattern("{other,runs/1}/*.json{,l}",
                  "other/x.json runs/1/rank0.jsonl runs/1/rank10.jsonl");
    check_pattern("runs/[12]",
                  "runs/1/rank0.jsonl runs/1/rank10.jsonl runs/2/deep/er/rank1.jsonl.gz");
    check_pattern("runs/**",
                  "runs/1/rank0.jsonl runs/1/rank10.jsonl runs/2/deep/er/rank1.jsonl.gz");
    check_pattern("runs/*/deep/**/rank1*", "runs/2/deep/er/rank1.jsonl.gz");
    check_pattern("runs/.hid*/*", "runs/.hidden/rank3.jsonl");
    char absolute[512], expected[512];
    snprintf(absolute, sizeof absolute, "%s/o*r/*", folder);
    snprintf(expected, sizeof expected, "%s/other/x.json", folder);
    check_pattern(absolute, expected);
}
END_TEST

START_TEST(directories_and_files) {
    touch("d/b.json");
    touch("d/a.jsonl");
    touch("d/sub/c.json.gz");
    touch("d/README.md");
    touch("d/.hidden.json");
    touch("d/x.json.tmp");
    touch("odd.name");
    static const char *const include[] = {"d/", "odd.name", "d/a.jsonl", "d/.hidden.json",
                                          "missing"};
    check_found(include, 5, NULL, 0, "d/.hidden.json d/a.jsonl d/b.json d/sub/c.json.gz odd.name");
    ck_assert_int_eq(rig.list_status, STATUS_OK);
    ck_assert(noted("d: not read: README.md; ", "is that of telemetry"));
    ck_assert(noted("missing: cannot be read", "No such file"));
    ck_assert_uint_eq(rig.receiver.found.note_count, 2);
    rig_free(&rig);
}
END_TEST

// Those that README.md lists, in the order of bytes, and some that it does not.
START_TEST(names_that_are_inputs) {
    static const char *const inputs[] = {
        "aer_dev_correctable",
        "aer_dev_fatal",
        "aer_dev_nonfatal",
        "current",
        "dmesg-1",
        "e.dmesg",
        "e.err",
        "e.export",
        "e.json",
        "e.jsonl",
        "e.kmsg",
        "e.log",
        "e.log.gz",
        "e.out",
        "e.pickle",
        "e.pkl",
        "e.prom",
        "e.stderr",
        "e.stdout",
        "kern.log.1",
        "kmsg.txt",
        "messages-1",
        "stderr",
        "stdout",
        "syslog.2.gz",
        "trace_rank_3",
        "workerlog.3",
    };
    static const char *const others[] = {"e.md", "e.py", "job.out.old", "workerlog.old"};
    static const char *const include[] = {"d"};
    char path[64], expected[1024] = "";
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        snprintf(path, sizeof path, "d/%s", inputs[i]);
        touch(path);
        strcat(strcat(expected, i == 0 ? "" : " "), path);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(path, sizeof path, "d/%s", others[i]);
        touch(path);
    }
    check_found(include, 1, NULL, 0, expected);
    ck_assert(noted("d: not read: ", "job.out.old"));
    rig_free(&rig);
}
END_TEST

// Names that say little: what the files hold counts.
START_TEST(names_that_say_little) {
    static const char *const include[] = {"d"};
    fixture_run("mkdir -p d/sub");
    fixture_run("echo 'RuntimeError: CUDA error: out of memory' > d/console.txt");
    fixture_run("echo 'srun: error: n1: task 1: Exited with exit code 1' > d/slurm-123");
    fixture_run("echo 'KeyError: 1' | cat - > d/train.o12345");
    fixture_run("cp d/slurm-123 d/sub/train.log.1");
    fixture_run("(yes 'hello world' | head -c 300000; cat d/slurm-123) > d/late.txt");
    fixture_run("echo 'torch==2.3' > d/requirements.txt && echo '1,2' > d/data.csv");
    fixture_run("printf 'srun: error: \\0\\1 Segmentation fault' > d/binary && : > d/empty");
    fixture_run("cp d/console.txt d/excluded.txt && cp d/console.txt d/notes.md");
    check_found(include, 1, (const char *const[]){"excluded*"}, 1,
                "d/console.txt d/late.txt d/slurm-123 d/sub/train.log.1 d/train.o12345");
    ck_assert(noted("d: not read: ", "binary, data.csv, empty"));
    rig_free(&rig);
}
END_TEST

// A file that held nothing is asked again when it has doubled.
START_TEST(a_file_that_grows_is_asked_again) {
    static const char *const include[] = {"d"};
    fixture_run("mkdir d && echo 'starting' > d/console.txt");
    check_found(include, 1, NULL, 0, "");
    fixture_run("echo 'RuntimeError: CUDA error: out of memory' >> d/console.txt");
    file_find(&rig.receiver.finder, &rig.receiver.found);
    ck_assert_uint_eq(rig.receiver.found.count, 1);
    rig_free(&rig);
}
END_TEST

START_TEST(names_with_wildcards_that_exist) {
    touch("odd/a[1]{b}*.jsonl");
    touch("odd/a1b.jsonl");
    check_pattern("odd/a[1]{b}*.jsonl", "odd/a[1]{b}*.jsonl");
    check_pattern("odd/a\\[1]*", "odd/a[1]{b}*.jsonl");
}
END_TEST

START_TEST(excluded) {
    touch("d/a.jsonl");
    touch("d/old/b.jsonl");
    touch("d/c.bak.jsonl");
    touch("d/e/f/g.jsonl");
    static const char *const include[] = {"d"};
    static const char *const exclude[] = {"old", "*.bak.*", "d/**/g*"};
    check_found(include, 1, exclude, 3, "d/a.jsonl");
    rig_free(&rig);
    static const char *const all[] = {"d/**"};
    check_found(include, 1, all, 1, "");
    ck_assert_int_eq(rig.list_status, STATUS_NOT_FOUND);
    rig_free(&rig);
}
END_TEST

START_TEST(nothing_found_says_why) {
    static const char *const include[] = {"missing.jsonl", "d", "no*.json"};
    touch("d/README.md");
    check_found(include, 3, NULL, 0, "");
    ck_assert_int_eq(rig.list_status, STATUS_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(rig.error.message, "missing.jsonl: cannot be read: No such file"));
    ck_assert_ptr_nonnull(strstr(rig.error.message, "d: not read: README.md"));
    ck_assert_ptr_nonnull(strstr(rig.error.message, "no*.json: matches nothing"));
    rig_free(&rig);
    fixture_run("mkdir empty");
    static const char *const empty[] = {"empty"};
    check_found(empty, 1, NULL, 0, "");
    ck_assert_str_eq(rig.error.message, "there is nothing to read: no file is in empty");
    rig_free(&rig);
    fixture_run("mkdir bare hollow vain");
    static const char *const several[] = {"empty", "bare", "hollow", "vain"};
    check_found(several, 2, NULL, 0, "");
    ck_assert_str_eq(rig.error.message, "there is nothing to read: no file is in empty and bare");
    rig_free(&rig);
    check_found(several, 4, NULL, 0, "");
    ck_assert_str_eq(rig.error.message,
                     "there is nothing to read: no file is in empty, bare and 2 more");
    rig_free(&rig);
}
END_TEST

START_TEST(links_in_a_circle) {
    touch("d/sub/a.jsonl");
    fixture_run(
        "ln -s .. d/sub/up && ln -s ../../d d/sub/again && ln -s d link && "
        "ln -s loop loop && ln -s sub/a.jsonl d/name.jsonl && ln d/sub/a.jsonl d/hard.json");
    check_pattern("d", "d/hard.json");
    check_pattern("d/**/a.jsonl", "d/sub/a.jsonl");
    static const char *const include[] = {"d", "link", "loop", "d/sub/a.jsonl"};
    check_found(include, 4, NULL, 0, "d/hard.json");
    ck_assert(noted("d/name.jsonl", "is the same file as d/hard.json and read once"));
    ck_assert(noted("loop: cannot be read", "levels of symbolic links"));
    rig_free(&rig);
}
END_TEST

START_TEST(the_same_path_twice_is_no_news) {
    touch("a.jsonl");
    static const char *const include[] = {"a.jsonl", "a.jsonl", "*.jsonl", "-", "-"};
    check_found(include, 5, NULL, 0, "- a.jsonl");
    ck_assert_uint_eq(rig.receiver.found.note_count, 0);
    rig_free(&rig);
}
END_TEST

START_TEST(a_tree_that_is_too_deep) {
    fixture_run(
        "p=d; for i in $(seq 70); do p=$p/d; done; mkdir -p $p; "
        "echo x > $p/far.json; echo x > d/near.json");
    static const char *const include[] = {"d"};
    check_found(include, 1, NULL, 0, "d/near.json");
    ck_assert(noted("not searched", "deep"));
    rig_free(&rig);
}
END_TEST

START_TEST(no_more_than_max_sources) {
    fixture_run("mkdir d && for i in 1 2 3 4 5; do echo x > d/$i.json; done");
    static const char *const include[] = {"d"};
    rig_init(&rig, include, 1);
    rig.config.max_sources = 3;
    rig_start(&rig);
    ck_assert_int_eq(receiver_file.receiver.list(&rig.receiver, &rig.sources, &rig.error),
                     STATUS_OK);
    ck_assert_uint_eq(rig.sources.count, 3);
    ck_assert(slice_equal(rig.sources.paths[2], SLICE("d/3.json")));
    ck_assert(noted("2 files beyond max_sources (3)", "the first of them d/4.json"));
    rig_free(&rig);
}
END_TEST

START_TEST(an_unreadable_directory_is_noted) {
    touch("d/closed/a.json");
    touch("d/b.json");
    fixture_run("chmod 755 . d && chmod 0 d/closed");
    // Root may read everything, so that it must be somebody else who looks.
    bool root = geteuid() == 0;
    ck_assert(!root || seteuid(65534) == 0);
    static const char *const include[] = {"d"};
    check_found(include, 1, NULL, 0, "d/b.json");
    ck_assert(!root || seteuid(0) == 0);
    ck_assert(noted("d/closed", "Permission denied"));
    rig_free(&rig);
}
END_TEST

// -- sinks and dumps ----------------------------------------------------------------------------

static void make_sink(const char *path, const char *session) {
    fixture_run(
        "mkdir -p %s && echo '{\"sessions\": [{\"session_id\": \"%s\"}]}' > "
        "%s/manifest.json",
        path, session, path);
    char segment[512];
    snprintf(segment, sizeof segment, "%s/segment-000001.jsonl", path);
    touch(segment);
}

static void make_dump(const char *path, const char *session) {
    fixture_run(
        "mkdir -p %s && cd %s && echo '[]' > events.json && echo '{}' > environment.json "
        "&& echo '{\"session\": {\"session_id\": \"%s\"}}' > metadata.json && "
        "echo '{\"session_id\": null}' > manifest.json",
        path, path, session);
}

START_TEST(only_the_segments_of_a_sink) {
    make_sink("run/rank0", "s0");
    touch("run/rank0/segment-000002.jsonl");
    touch("run/rank0/segment-00003.jsonl");
    touch("run/rank0/segment-000004.jsonl.gz");
    touch("run/rank0/segment-000002.jsonl.gz");
    touch("run/rank0/other.jsonl");
    touch("run/rank0/rollups.json");
    touch("run/rank0/manifest.tmp");
    touch("run/rank0/below/x.json");
    touch("run/rank1/segment-000001.jsonl");
    touch("run/expected.json");
    const char *expected =
        "run/expected.json run/rank0/below/x.json run/rank0/segment-000001.jsonl "
        "run/rank0/segment-000002.jsonl run/rank0/segment-000004.jsonl.gz "
        "run/rank1/segment-000001.jsonl";
    static const char *const include[] = {"run"};
    check_found(include, 1, NULL, 0, expected);
    ck_assert(
        noted("run/rank0: not read: other.jsonl, segment-000002.jsonl.gz, "
              "segment-00003.jsonl; ",
              "of a telemetry sink only"));
    ck_assert(noted("run/rank0: the manifests and reports of this sink or dump", "no events"));
    ck_assert_uint_eq(rig.receiver.found.note_count, 2);
    rig_free(&rig);
    check_pattern("run/rank*/*.jsonl",
                  "run/rank0/segment-000001.jsonl "
                  "run/rank0/segment-000002.jsonl "
                  "run/rank1/segment-000001.jsonl");
    check_pattern("run/rank0/rollups.json", "run/rank0/rollups.json");
}
END_TEST

START_TEST(a_dump_without_its_sink) {
    make_dump("dumps/oom_dump_20260101T000000Z_7_cuda_1", "s7");
    touch("dumps/oom_dump_20260101T000000Z_7_cuda_1/snapshot.pickle");
    make_dump("named_otherwise", "s8");
    make_sink("sink", "s9");
    static const char *const include[] = {"dumps", "named_otherwise", "sink"};
    check_found(include, 3, NULL, 0,
                "dumps/oom_dump_20260101T000000Z_7_cuda_1/events.json "
                "named_otherwise/events.json sink/segment-000001.jsonl");
    ck_assert(noted("cuda_1: not read: snapshot.pickle; ", "only events.json"));
    rig_free(&rig);
}
END_TEST

START_TEST(a_dump_beside_its_sink_is_left_out) {
    make_dump("oom_dump_1", "s7");
    make_dump("oom_dump_2", "s8");
    make_sink("sink0", "s6");
    make_sink("sink1", "s7");
    static const char *const include[] = {"."};
    check_found(include, 1, NULL, 0,
                "./oom_dump_2/events.json ./sink0/segment-000001.jsonl "
                "./sink1/segment-000001.jsonl");
    ck_assert(noted("./oom_dump_1/events.json: not read", "sink of the same session"));
    rig_free(&rig);
    // A sink that is not read leaves the dump in.
    static const char *const exclude[] = {"sink1"};
    check_found(include, 1, exclude, 1,
                "./oom_dump_1/events.json ./oom_dump_2/events.json "
                "./sink0/segment-000001.jsonl");
    rig_free(&rig);
    // Named one by one it is the same.
    static const char *const names[] = {"oom_dump_1/events.json", "sink1/segment-000001.jsonl"};
    check_found(names, 2, NULL, 0, "sink1/segment-000001.jsonl");
    rig_free(&rig);
}
END_TEST

START_TEST(broken_manifests_are_ignored) {
    make_dump("oom_dump_1", "s7");
    make_sink("sink", "s7");
    fixture_run("printf '{\"sessions\": [{\"sess' > sink/manifest.json");
    static const char *const include[] = {"."};
    check_found(include, 1, NULL, 0, "./oom_dump_1/events.json ./sink/segment-000001.jsonl");
    rig_free(&rig);
}
END_TEST

START_TEST(a_search_again_sees_what_is_new) {
    touch("d/a.json");
    static const char *const include[] = {"d"};
    check_found(include, 1, NULL, 0, "d/a.json");
    touch("d/b.json");
    fixture_run("rm d/a.json");
    file_find(&rig.receiver.finder, &rig.receiver.found);
    ck_assert_uint_eq(rig.receiver.found.count, 1);
    ck_assert(slice_equal(rig.receiver.found.files[0].path, SLICE("d/b.json")));
    rig_free(&rig);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("file_find");
    TCase *glob = tcase_create("glob");
    tcase_add_test(glob, patterns);
    tcase_add_test(glob, patterns_that_cannot_be_used);
    tcase_add_test(glob, patterns_are_not_slow);
    suite_add_tcase(suite, glob);
    TCase *find = tcase_create("find");
    tcase_add_checked_fixture(find, fixture_setup, fixture_teardown);
    tcase_add_test(find, globs_over_directories);
    tcase_add_test(find, directories_and_files);
    tcase_add_test(find, names_that_are_inputs);
    tcase_add_test(find, names_that_say_little);
    tcase_add_test(find, a_file_that_grows_is_asked_again);
    tcase_add_test(find, names_with_wildcards_that_exist);
    tcase_add_test(find, excluded);
    tcase_add_test(find, nothing_found_says_why);
    tcase_add_test(find, links_in_a_circle);
    tcase_add_test(find, the_same_path_twice_is_no_news);
    tcase_add_test(find, a_tree_that_is_too_deep);
    tcase_add_test(find, no_more_than_max_sources);
    tcase_add_test(find, an_unreadable_directory_is_noted);
    tcase_add_test(find, only_the_segments_of_a_sink);
    tcase_add_test(find, a_dump_without_its_sink);
    tcase_add_test(find, a_dump_beside_its_sink_is_left_out);
    tcase_add_test(find, broken_manifests_are_ignored);
    tcase_add_test(find, a_search_again_sees_what_is_new);
    suite_add_tcase(suite, find);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
