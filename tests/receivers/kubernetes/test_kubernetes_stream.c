// SPDX-License-Identifier: Apache-2.0
// Lines of watches and pages of lists, as a real API server sent them
// (tests/golden/kubernetes_api).
#include "receivers/kubernetes/lines.h"
#include "receivers/kubernetes/meta.h"

#include "base/memory.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINE_MAX_BYTES = 64 << 10 };

static char bytes[256 << 10];
static uint64_t live_before;

static void begin(void) {
    live_before = memory_figures().live_bytes;
}

static void end(void) {
    ck_assert_uint_eq(memory_figures().live_bytes, live_before);
}

static struct slice golden(const char *name) {
    char path[512];
    snprintf(path, sizeof path, TESTS_DIR "/golden/kubernetes_api/%s", name);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s", path);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    ck_assert_uint_lt(size, sizeof bytes);
    return (struct slice){bytes, size};
}

// -- what a watch holds -------------------------------------------------------------------------

struct seen {
    uint32_t by_type[WATCH_EVENT_TYPE_COUNT];
    uint32_t lines, settled, initial_ends, stop_at;
    uint64_t bytes;
    int64_t code;
    char version[VERSION_MAX + 1];
    bool wrong;
};

static bool take(void *context, struct slice line) {
    struct seen *seen = context;
    struct watch_event event;
    seen->lines++;
    seen->bytes += line.size;
    if (!watch_event_read(line, &event)) {
        seen->wrong = true;
        return false;
    }
    seen->by_type[event.type]++;
    seen->initial_ends += event.initial_end;
    seen->code = event.code;
    if (event.type != WATCH_EVENT_ERROR)
        snprintf(seen->version, sizeof seen->version, "%.*s", (int)event.meta.version.size,
                 event.meta.version.data);
    return seen->lines != seen->stop_at;
}

static void settle(void *context) {
    ((struct seen *)context)->settled++;
}

// In pieces of this size.
static struct seen read_watch(struct slice body, size_t piece, size_t line_max,
                              uint64_t *too_long) {
    struct watch_lines lines;
    struct seen seen = {.lines = 0};
    watch_lines_init(&lines, line_max);
    for (size_t at = 0; at < body.size; at += piece) {
        size_t size = body.size - at < piece ? body.size - at : piece;
        // A block of its own: what is read behind it is seen.
        char *block = malloc(size);
        memcpy(block, body.data + at, size);
        bool goes_on = watch_lines_take(&lines, (struct slice){block, size}, take, settle, &seen);
        free(block);
        if (!goes_on)
            break;
    }
    if (too_long != NULL)
        *too_long = lines.too_long;
    watch_lines_release(&lines);
    return seen;
}

START_TEST(pods_in_pieces) {
    static const size_t pieces[] = {1, 7, 100, 4096, 1 << 20};
    struct slice body = golden("watch_pods.jsonl");
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        struct seen seen = read_watch(body, pieces[i], LINE_MAX_BYTES, NULL);
        ck_assert(!seen.wrong);
        ck_assert_uint_eq(seen.lines, 8);
        ck_assert_uint_eq(seen.bytes, body.size - 8);
        ck_assert_uint_eq(seen.by_type[WATCH_EVENT_ADDED], 0);
        ck_assert_uint_eq(seen.by_type[WATCH_EVENT_MODIFIED], 5);
        ck_assert_uint_eq(seen.by_type[WATCH_EVENT_DELETED], 1);
        ck_assert_uint_eq(seen.by_type[WATCH_EVENT_BOOKMARK], 2);
        ck_assert_uint_ge(seen.settled, 1);
    }
}
END_TEST

START_TEST(streamed_list) {
    struct seen seen = read_watch(golden("watchlist_pods.jsonl"), 1000, LINE_MAX_BYTES, NULL);
    ck_assert(!seen.wrong);
    ck_assert_uint_eq(seen.initial_ends, 1);
    seen = read_watch(golden("watch_bookmarks_idle.jsonl"), 1000, LINE_MAX_BYTES, NULL);
    ck_assert_uint_eq(seen.by_type[WATCH_EVENT_BOOKMARK], seen.lines);
    ck_assert_uint_eq(seen.initial_ends, 0);
    ck_assert_uint_gt(strlen(seen.version), 0);
}
END_TEST

START_TEST(version_too_old) {
    struct seen seen = read_watch(golden("watch_410_pods.jsonl"), 1000, LINE_MAX_BYTES, NULL);
    ck_assert_uint_eq(seen.by_type[WATCH_EVENT_ERROR], 1);
    ck_assert_int_eq(seen.code, 410);
}
END_TEST

// The end of a body that was cut off is no line.
START_TEST(cut_off) {
    struct slice body = golden("watch_pods.jsonl");
    body.size -= 10;
    struct seen seen = read_watch(body, 512, LINE_MAX_BYTES, NULL);
    ck_assert(!seen.wrong);
    ck_assert_uint_eq(seen.lines, 7);
}
END_TEST

START_TEST(long_lines) {
    static const size_t pieces[] = {1, 5, 64, 1000};
    char text[400];
    memset(text, 'x', sizeof text);
    static const char small[] = "{\"type\":\"BOOKMARK\",\"object\":{}}\n";
    memcpy(text, small, sizeof small - 1);
    text[299] = '\n';
    memcpy(text + 300, small, sizeof small - 1);
    struct slice body = {text, 300 + sizeof small - 1};
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        uint64_t too_long = 0;
        struct seen seen = read_watch(body, pieces[i], 100, &too_long);
        ck_assert_uint_eq(too_long, 1);
        ck_assert(!seen.wrong);
        ck_assert_uint_eq(seen.by_type[WATCH_EVENT_BOOKMARK], 2);
    }
}
END_TEST

START_TEST(what_is_no_event) {
    static const char *const wrong[] = {"<html>",
                                        "[]",
                                        "{}",
                                        "{\"type\":\"ADDED\"}",
                                        "{\"type\":\"ADDED\",\"object\":[]}",
                                        "{\"type\":\"NEW\",\"object\":{}}",
                                        "{\"type\":\"ADDED\",\"object\":{}",
                                        "{\"type\":7,\"object\":{}}"};
    struct watch_event event;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(!watch_event_read(slice_of(wrong[i]), &event), "%s", wrong[i]);
    ck_assert(watch_event_read(SLICE("{\"object\":{\"metadata\":{\"uid\":\"a\\u0041\","
                                     "\"resourceVersion\":5}},\"type\":\"ADDED\"}"),
                               &event));
    ck_assert_uint_eq(event.meta.uid.size, 0); // an escape, a number: none has them
    ck_assert_uint_eq(event.meta.version.size, 0);
}
END_TEST

// -- pages --------------------------------------------------------------------------------------

static uint32_t count_items(const struct list_page *page) {
    struct json_items items = json_items_of(&page->items);
    struct token item;
    struct object_meta meta;
    uint32_t count = 0;
    for (; json_items_next(&items, &item); count++) {
        ck_assert(object_meta_read(token_slice(&item), &meta));
        ck_assert_uint_eq(meta.uid.size, 36);
        ck_assert_uint_gt(meta.version.size, 0);
    }
    return count;
}

START_TEST(pages) {
    struct list_page page;
    ck_assert(list_page_read(golden("list_events_page1.json"), &page));
    ck_assert_uint_gt(page.more.size, 0);
    ck_assert_uint_eq(count_items(&page), 5);
    ck_assert(list_page_read(golden("list_events_page3_last.json"), &page));
    ck_assert_uint_eq(page.more.size, 0);
    ck_assert_uint_gt(count_items(&page), 0);
    ck_assert(list_page_read(golden("list_empty.json"), &page));
    ck_assert_uint_eq(count_items(&page), 0);
    ck_assert(!list_page_read(golden("watch_410_pods.jsonl"), &page));
    ck_assert(!list_page_read(SLICE("{\"items\":[]}"), &page));
    ck_assert(
        !list_page_read(SLICE("{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":{}}"), &page));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("kubernetes_stream");
    TCase *cases = tcase_create("stream");
    tcase_add_checked_fixture(cases, begin, end);
    tcase_add_test(cases, pods_in_pieces);
    tcase_add_test(cases, streamed_list);
    tcase_add_test(cases, version_too_old);
    tcase_add_test(cases, cut_off);
    tcase_add_test(cases, long_lines);
    tcase_add_test(cases, what_is_no_event);
    tcase_add_test(cases, pages);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
