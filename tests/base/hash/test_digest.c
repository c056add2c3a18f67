// SPDX-License-Identifier: Apache-2.0
#include "base/hash/digest.h"

#include <check.h>

// Expected values by Python's hashlib and uuid modules.
START_TEST(id_of_parts) {
    char id[DIGEST_ID_SIZE];
    digest_id(NULL, 0, id);
    ck_assert_str_eq(id, "e3b0c44298fc1c14");
    digest_id(&SLICE("abc"), 1, id);
    ck_assert_str_eq(id, "ba7816bf8f01cfea");
    struct slice parts[] = {SLICE("memory_first_cause"), SLICE(""), SLICE("none")};
    digest_id(parts, 3, id);
    ck_assert_str_eq(id, "054088645d43fd07");
}
END_TEST

START_TEST(parts_do_not_run_together) {
    char a[DIGEST_ID_SIZE], b[DIGEST_ID_SIZE];
    digest_id((struct slice[]){SLICE("ab"), SLICE("c")}, 2, a);
    digest_id((struct slice[]){SLICE("a"), SLICE("bc")}, 2, b);
    ck_assert_str_ne(a, b);
    digest_id((struct slice[]){SLICE("ab"), {NULL, 0}}, 2, a);
    digest_id((struct slice[]){SLICE("ab")}, 1, b);
    ck_assert_str_ne(a, b);
}
END_TEST

START_TEST(uuid5) {
    char uuid[UUID_TEXT_SIZE];
    digest_uuid5_url(SLICE("http://example.com/"), uuid);
    ck_assert_str_eq(uuid, "0a300ee9-f9e4-5697-a51a-efc7fafaba67");
    digest_uuid5_url(SLICE("1700000000000000000::node-a::4242"), uuid);
    ck_assert_str_eq(uuid, "970735b4-71bc-5636-bc75-4af1a19ad1f9");
    digest_uuid5_url((struct slice){NULL, 0}, uuid);
    ck_assert_str_eq(uuid, "1b4db7eb-4057-5ddf-91e0-36dec72071f5");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("digest");
    TCase *cases = tcase_create("digest");
    tcase_add_test(cases, id_of_parts);
    tcase_add_test(cases, parts_do_not_run_together);
    tcase_add_test(cases, uuid5);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
