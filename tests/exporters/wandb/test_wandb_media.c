// SPDX-License-Identifier: Apache-2.0
// What W&B is told of files: names, checksums, row values, and what an artifact holds.
#include "base/memory.h"
#include "exporters/wandb/media.h"
#include "tests/exporters/scratch.h"

static struct buffer out;

static void setup(void) {
    scratch_make();
    buffer_init(&out, 1 << 20);
}

static void teardown(void) {
    buffer_release(&out);
    scratch_remove();
}

static void out_is(const char *expected) {
    buffer_append_char(&out, '\0');
    ck_assert(!out.failed);
    ck_assert_str_eq(out.data, expected);
    buffer_reset(&out);
}

static const char empty_sha[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

START_TEST(checksums) {
    char sha256[MEDIA_SHA256_SIZE], md5[MEDIA_MD5_SIZE];
    media_sha256((struct slice){NULL, 0}, sha256);
    ck_assert_str_eq(sha256, empty_sha);
    media_sha256(SLICE("abc"), sha256);
    ck_assert_str_eq(sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    media_md5((struct slice){NULL, 0}, md5);
    ck_assert_str_eq(md5, "1B2M2Y8AsgTpgAmY7PhCfg==");
    media_md5(SLICE("abc"), md5);
    ck_assert_str_eq(md5, "kAFQmDzST7DWlj99KOF/cg==");
}
END_TEST

static const struct {
    const char *key, *expected;
} keys[] = {
    {"loss", "loss"},
    {"/a/b", "a/b"},
    {"///a", "a"},
    {"a/../b", "a/_/b"},
    {"./a/.", "_/a/_"},
    {"..", "_"},
    {"a..b", "a..b"},
    {"a//b", "a//b"},
    {"", ""},
    {"/", ""},
    {"Zeit/\xc3\xbc", "Zeit/\xc3\xbc"},
};

START_TEST(a_key_is_a_relative_path) {
    media_append_key(&out, slice_of(keys[_i].key));
    out_is(keys[_i].expected);
}
END_TEST

START_TEST(paths_name_key_row_and_contents) {
    struct wandb_record record = {.kind = WANDB_TABLE, .key = SLICE("alerts"), .run = SLICE("r1")};
    media_append_path(&out, &record, 17, empty_sha);
    out_is("media/table/alerts_17_e3b0c44298fc1c149afb.table.json");
    media_append_artifact_name(&out, &record);
    out_is("run-r1-alerts");
    media_append_artifact_file(&out, &record);
    out_is("alerts.table.json");
    record.kind = WANDB_HTML;
    record.key = SLICE("/../page");
    media_append_path(&out, &record, UINT64_MAX, empty_sha);
    out_is("media/html/_/page_18446744073709551615_e3b0c44298fc1c149afb.html");
    record = (struct wandb_record){.kind = WANDB_ARTIFACT, .key = SLICE("a/b:c d-1.x_\xce\xa9")};
    media_append_artifact_name(&out, &record);
    out_is("abcd-1.x_");
}
END_TEST

START_TEST(an_artifact_name_is_cut) {
    char run[WANDB_RUN_ID_MAX];
    memset(run, 'r', sizeof run);
    struct wandb_record record = {
        .kind = WANDB_TABLE, .key = SLICE("key"), .run = {run, sizeof run}};
    media_append_artifact_name(&out, &record);
    ck_assert_uint_eq(out.size, MEDIA_NAME_MAX);
}
END_TEST

START_TEST(row_values) {
    struct wandb_record record = {.kind = WANDB_HTML, .key = SLICE("page")};
    media_append_value(&out, &record, SLICE("media/html/p\"1.html"), empty_sha, 42);
    out_is(
        "{\"_type\":\"html-file\",\"path\":\"media/html/p\\\"1.html\",\"sha256\":\"e3b0c44298fc1c1"
        "49afbf4c8996fb92427ae41e4649b934ca495991b7852b855\",\"size\":42}");
    record = (struct wandb_record){.kind = WANDB_TABLE,
                                   .key = SLICE("k"),
                                   .columns = 3,
                                   .rows = 12,
                                   .client_id = SLICE("cid"),
                                   .sequence_client_id = SLICE("seq")};
    media_append_value(&out, &record, SLICE("p"), empty_sha, 7);
    out_is(
        "{\"_type\":\"table-file\",\"path\":\"p\",\"sha256\":\"e3b0c44298fc1c149afbf4c8996fb92427"
        "ae41e4649b934ca495991b7852b855\",\"size\":7,\"ncols\":3,\"nrows\":12,\"log_mode\":"
        "\"IMMUTABLE\",\"artifact_path\":\"wandb-client-artifact://cid/k.table.json\","
        "\"_latest_artifact_path\":\"wandb-client-artifact://seq:latest/k.table.json\"}");
}
END_TEST

#define LINE                                                                                       \
    "<base target=\"_blank\"><link rel=\"stylesheet\" type=\"text/css\" "                          \
    "href=\"https://app.wandb.ai/normalize.css\" />"

static const struct {
    const char *page, *expected;
} pages[] = {
    {"<html><head><title>x</title></head></html>\n",
     "<html><head>" LINE "<title>x</title></head></html>"},
    {"  <p><head></head><head>", "<p><head>" LINE "</head><head>"},
    {"<!doctype html>\n<html>body</html> \t\r\n",
     "<!doctype html>\n<html><head>" LINE "</head>body</html>"},
    {"<p>text</p>", LINE "<p>text</p>"},
    {" text ", LINE " text"},
    {"", LINE},
    {"<head>", "<head>" LINE},
    {"<HEAD>", LINE "<HEAD>"},
};

START_TEST(a_page_gets_a_line_in_its_head) {
    media_append_html(&out, slice_of(pages[_i].page));
    out_is(pages[_i].expected);
}
END_TEST

// -- artifacts ------------------------------------------------------------------------------------

static void make_folder(const char *name) {
    ck_assert_int_eq(mkdir(scratch_path(name), 0755), 0);
}

static void make_tree(void) {
    make_folder("tree");
    make_folder("tree/raw");
    make_folder("tree/empty");
    scratch_write("tree/b.json", "abc");
    scratch_write("tree/.hidden", "");
    scratch_write("tree/raw/x", "abc");
    scratch_write("outside", "abc");
    ck_assert_int_eq(symlink("../outside", scratch_path("tree/link")), 0);
    ck_assert_int_eq(symlink("nowhere", scratch_path("tree/dangling")), 0);
    ck_assert_int_eq(mkfifo(scratch_path("tree/pipe"), 0600), 0);
}

static void list_is(const struct media_list *list, const char *expected) {
    for (uint32_t i = 0; i < list->count; i++) {
        buffer_append_text(&out, list->files[i].name);
        buffer_append_char(&out, ' ');
    }
    out_is(expected);
}

START_TEST(a_directory_is_all_its_files) {
    struct media_list list = {0};
    struct error error = {0};
    char digest[MEDIA_DIGEST_SIZE];
    make_tree();
    enum status status = media_list_add_path(&list, slice_of(scratch_path("tree/")), &error);
    ck_assert_msg(status == STATUS_OK, "%s", error.message);
    list_is(&list, "tree/.hidden tree/b.json tree/link tree/raw/x ");
    for (uint32_t i = 0; i < list.count; i++)
        ck_assert_int_eq(media_file_read(&list.files[i], -1, &error), STATUS_OK);
    ck_assert_uint_eq(list.files[0].size, 0);
    ck_assert_str_eq(list.files[0].md5, "1B2M2Y8AsgTpgAmY7PhCfg==");
    ck_assert_uint_eq(list.files[2].size, 3);
    ck_assert_str_eq(list.files[2].md5, "kAFQmDzST7DWlj99KOF/cg==");
    // md5 of "wandb-artifact-manifest-v1\n" and name:md5 of each, by Python's hashlib.
    media_list_digest(&list, digest);
    ck_assert_str_eq(digest, "11c06c815988dfc79dbe375558c100f0");
    media_list_release(&list);
}
END_TEST

START_TEST(a_file_stands_under_its_own_name) {
    struct media_list list = {0};
    struct error error = {0};
    scratch_write("track.json", "abc");
    ck_assert_int_eq(media_list_add_path(&list, slice_of(scratch_path("track.json")), &error),
                     STATUS_OK);
    list_is(&list, "track.json ");
    media_list_release(&list);
}
END_TEST

START_TEST(what_cannot_be_an_artifact) {
    struct media_list list = {0};
    struct error error = {0};
    ck_assert_int_eq(media_list_add_path(&list, slice_of(scratch_path("none")), &error),
                     STATUS_NOT_FOUND);
    make_folder("circle");
    ck_assert_int_eq(symlink(".", scratch_path("circle/up")), 0);
    ck_assert_int_eq(media_list_add_path(&list, slice_of(scratch_path("circle")), &error),
                     STATUS_LIMIT);
    ck_assert_ptr_nonnull(strstr(error.message, "32 folders"));
    make_folder("bytes");
    scratch_write("bytes/\xff", "");
    ck_assert_int_eq(media_list_add_path(&list, slice_of(scratch_path("bytes")), &error),
                     STATUS_BAD_DATA);
    media_list_release(&list);
}
END_TEST

START_TEST(a_file_that_changed_its_kind_is_not_waited_for) {
    struct media_list list = {0};
    struct error error = {0};
    scratch_write("f", "abc");
    ck_assert_int_eq(media_list_add_path(&list, slice_of(scratch_path("f")), &error), STATUS_OK);
    ck_assert_int_eq(unlink(scratch_path("f")), 0);
    ck_assert_int_eq(media_file_read(&list.files[0], -1, &error), STATUS_NOT_FOUND);
    ck_assert_int_eq(mkfifo(scratch_path("f"), 0600), 0);
    ck_assert_int_eq(media_file_read(&list.files[0], -1, &error), STATUS_BAD_DATA);
    media_list_release(&list);
}
END_TEST

START_TEST(a_large_file_is_refused) {
    struct media_list list = {0};
    struct error error = {0};
    scratch_write("f", "");
    // A hole: no bytes on the disk.
    ck_assert_int_eq(truncate(scratch_path("f"), (off_t)MEDIA_FILE_SIZE_MAX), 0);
    ck_assert_int_eq(media_list_add_path(&list, slice_of(scratch_path("f")), &error), STATUS_OK);
    ck_assert_int_eq(media_file_read(&list.files[0], -1, &error), STATUS_LIMIT);
    media_list_release(&list);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("wandb_media");
    TCase *cases = tcase_create("wandb_media");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, checksums);
    tcase_add_loop_test(cases, a_key_is_a_relative_path, 0, sizeof keys / sizeof *keys);
    tcase_add_test(cases, paths_name_key_row_and_contents);
    tcase_add_test(cases, an_artifact_name_is_cut);
    tcase_add_test(cases, row_values);
    tcase_add_loop_test(cases, a_page_gets_a_line_in_its_head, 0, sizeof pages / sizeof *pages);
    tcase_add_test(cases, a_directory_is_all_its_files);
    tcase_add_test(cases, a_file_stands_under_its_own_name);
    tcase_add_test(cases, what_cannot_be_an_artifact);
    tcase_add_test(cases, a_file_that_changed_its_kind_is_not_waited_for);
    tcase_add_test(cases, a_large_file_is_refused);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
