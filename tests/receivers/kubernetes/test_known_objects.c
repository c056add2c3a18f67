// SPDX-License-Identifier: Apache-2.0
// Which objects were handed over: known again after a restart, bounded, and missed in a list.
#include "receivers/kubernetes/objects.h"

#include "base/memory.h"
#include "tests/receivers/fake_feed.c"

#include <check.h>
#include <stdio.h>

static struct feed *feed;
static struct known_objects objects;
static char texts[2][64];

static struct object_meta meta_of(unsigned uid, unsigned version) {
    snprintf(texts[0], sizeof texts[0], "uid-%u", uid);
    snprintf(texts[1], sizeof texts[1], "%u", version);
    return (struct object_meta){slice_of(texts[0]), slice_of(texts[1]), SLICE("train"),
                                SLICE("pod")};
}

static enum known look(unsigned uid, unsigned version) {
    struct object_meta meta = meta_of(uid, version);
    return known_objects_look(&objects, &meta);
}

static void set(unsigned uid, unsigned version) {
    struct object_meta meta = meta_of(uid, version);
    known_objects_set(&objects, &meta);
}

static void begin(void) {
    feed = fake_feed_create();
    known_objects_open(&objects, feed, SLICE("https://h/api/v1/pods"), 5, true);
}

static void end(void) {
    known_objects_close(&objects);
    fake_feed_free(feed);
}

START_TEST(versions) {
    ck_assert_int_eq(look(1, 10), KNOWN_NEW);
    set(1, 10);
    ck_assert_int_eq(look(1, 10), KNOWN_SAME);
    ck_assert_int_eq(look(1, 11), KNOWN_OTHER_VERSION);
    set(1, 11);
    ck_assert_int_eq(look(1, 10), KNOWN_OTHER_VERSION);
    ck_assert(known_objects_remove(&objects, SLICE("uid-1")));
    ck_assert(!known_objects_remove(&objects, SLICE("uid-1")));
    ck_assert_int_eq(look(1, 11), KNOWN_NEW);
    ck_assert_uint_eq(objects.live, 0);
}
END_TEST

START_TEST(bound) {
    for (unsigned uid = 1; uid <= 7; uid++)
        set(uid, 1);
    ck_assert_uint_eq(objects.live, 5);
    ck_assert_uint_eq(objects.unknown, 2);
    ck_assert_int_eq(look(5, 1), KNOWN_SAME);
    ck_assert_int_eq(look(6, 1), KNOWN_NEW);
    set(5, 2); // one that is known may change
    ck_assert_int_eq(look(5, 2), KNOWN_SAME);
    uint32_t places = objects.place_count;
    for (unsigned uid = 1; uid <= 100; uid++) {
        char text[32];
        snprintf(text, sizeof text, "uid-%u", uid);
        (void)known_objects_remove(&objects, slice_of(text));
        set(uid + 100, 1);
    }
    ck_assert_uint_le(objects.place_count, places + 1); // their places are used again
}
END_TEST

START_TEST(missing) {
    for (unsigned uid = 1; uid <= 4; uid++)
        set(uid, 1);
    known_objects_begin_list(&objects);
    struct object_meta meta = meta_of(2, 1);
    known_objects_in_list(&objects, &meta);
    set(3, 2);
    set(9, 1);
    char *identity;
    uint32_t count = 0;
    for (uint32_t at = 0; known_objects_next_missing(&objects, &at, &identity); count++) {
        ck_assert(strcmp(identity, "train\npod\nuid-1") == 0 ||
                  strcmp(identity, "train\npod\nuid-4") == 0);
        memory_give(identity);
    }
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(look(1, 1), KNOWN_NEW);
    ck_assert_int_eq(look(2, 1), KNOWN_SAME);
    ck_assert_int_eq(look(9, 1), KNOWN_SAME);
}
END_TEST

// As a store gives it back: places with their positions.
START_TEST(restart) {
    for (unsigned uid = 1; uid <= 5; uid++)
        set(uid, uid);
    (void)known_objects_remove(&objects, SLICE("uid-2"));
    for (uint32_t i = 0; i < feed->source_count; i++)
        feed->sources[i]->restored = feed->sources[i]->reached;
    known_objects_close(&objects);
    known_objects_open(&objects, feed, SLICE("https://h/api/v1/pods"), 5, true);
    ck_assert_uint_eq(objects.live, 4);
    ck_assert_int_eq(look(1, 1), KNOWN_SAME);
    ck_assert_int_eq(look(2, 2), KNOWN_NEW);
    ck_assert_int_eq(look(5, 6), KNOWN_OTHER_VERSION);
    known_objects_begin_list(&objects);
    char *identity;
    uint32_t at = 0;
    ck_assert(known_objects_next_missing(&objects, &at, &identity));
    ck_assert_ptr_null(identity); // not known from before
    set(20, 1);
    ck_assert_int_eq(look(20, 1), KNOWN_SAME);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("known_objects");
    TCase *cases = tcase_create("objects");
    tcase_add_checked_fixture(cases, begin, end);
    tcase_add_test(cases, versions);
    tcase_add_test(cases, bound);
    tcase_add_test(cases, missing);
    tcase_add_test(cases, restart);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
