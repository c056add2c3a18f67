// SPDX-License-Identifier: Apache-2.0
// Limits of control groups: of the process's own and those around it, as trees of both versions
// show them on a node, in containers and below systemd.
#include "base/control_group.h"
#include "base/cores.h"

#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECOND "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
#define FIRST                                                                                      \
    "31 23 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"                                   \
    "35 31 0:32 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n"                   \
    "36 31 0:33 / /sys/fs/cgroup/cpu,cpuacct rw shared:10 - cgroup cgroup rw,cpu,cpuacct\n"

static char root[] = "/tmp/control_group.XXXXXX";

static void setup(void) {
    strcpy(root + sizeof root - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *walk) {
    (void)stat;
    (void)type;
    (void)walk;
    return remove(path);
}

static void teardown(void) {
    ck_assert_int_eq(nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static void put(const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s%s", root, name);
    for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')) != NULL; *at++ = '/') {
        *at = '\0';
        (void)mkdir(path, 0700);
    }
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    fclose(file);
}

static void process_in(const char *groups, const char *mounts) {
    put("/proc/self/cgroup", groups);
    put("/proc/self/mountinfo", mounts);
}

START_TEST(nothing_is_known) {
    ck_assert_uint_eq(control_groups_memory(root), 0);
    ck_assert_uint_eq(cores_of_groups(root), 0);
    process_in("0::/\n", SECOND);
    ck_assert_uint_eq(control_groups_memory(root), 0);
    ck_assert_uint_eq(cores_of_groups(root), 0);
}
END_TEST

START_TEST(a_service_in_its_slice) {
    process_in("0::/system.slice/culprit.service\n", SECOND);
    put("/sys/fs/cgroup/system.slice/culprit.service/memory.max", "max\n");
    put("/sys/fs/cgroup/system.slice/culprit.service/memory.high", "max\n");
    put("/sys/fs/cgroup/system.slice/culprit.service/cpu.max", "max 100000\n");
    ck_assert_uint_eq(control_groups_memory(root), 0);
    ck_assert_uint_eq(cores_of_groups(root), 0);
    put("/sys/fs/cgroup/system.slice/memory.max", "52428800\n");
    put("/sys/fs/cgroup/system.slice/cpu.max", "400000 100000\n");
    ck_assert_uint_eq(control_groups_memory(root), 52428800);
    ck_assert_uint_eq(cores_of_groups(root), 4);
    put("/sys/fs/cgroup/system.slice/culprit.service/memory.max", "41943040\n");
    put("/sys/fs/cgroup/system.slice/culprit.service/cpu.max", "150000 100000\n");
    ck_assert_uint_eq(control_groups_memory(root), 41943040);
    ck_assert_uint_eq(cores_of_groups(root), 2);
    put("/sys/fs/cgroup/system.slice/culprit.service/memory.high", "31457280\n");
    ck_assert_uint_eq(control_groups_memory(root), 31457280);
    put("/sys/fs/cgroup/system.slice/memory.max", "1048576\n");
    put("/sys/fs/cgroup/system.slice/cpu.max", "50000 100000\n");
    ck_assert_uint_eq(control_groups_memory(root), 1048576);
    ck_assert_uint_eq(cores_of_groups(root), 1);
}
END_TEST

START_TEST(a_container_sees_its_own_as_the_root) {
    process_in("0::/\n", SECOND);
    put("/sys/fs/cgroup/memory.max", "41943040\n");
    put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    ck_assert_uint_eq(control_groups_memory(root), 41943040);
    ck_assert_uint_eq(cores_of_groups(root), 2);
    process_in("0::/../../other\n", SECOND); // it was moved out of what it sees
    ck_assert_uint_eq(control_groups_memory(root), 41943040);
}
END_TEST

START_TEST(version_1_on_its_node) {
    process_in("9:name=systemd:/x\n4:memory:/job/step\n2:cpu,cpuacct:/job/step\n0::/\n", FIRST);
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "41943040\n");
    put("/sys/fs/cgroup/memory/job/step/memory.limit_in_bytes", "83886080\n");
    put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "250000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/job/step/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu,cpuacct/job/step/cpu.cfs_period_us", "100000\n");
    ck_assert_uint_eq(control_groups_memory(root), 41943040);
    ck_assert_uint_eq(cores_of_groups(root), 3);
}
END_TEST

// A container of version 1: its path is that of the node, and only its own group is mounted.
START_TEST(version_1_in_a_container) {
    process_in("4:memory:/docker/ab12\n",
               "35 31 0:32 /docker/ab12 /sys/fs/cgroup/mem\\040ory ro - cgroup cgroup rw,memory\n");
    put("/sys/fs/cgroup/mem ory/memory.limit_in_bytes", "83886080\n");
    put("/sys/fs/cgroup/mem ory/docker/ab12/memory.limit_in_bytes", "1\n"); // no group
    ck_assert_uint_eq(control_groups_memory(root), 83886080);
    put("/sys/fs/cgroup/mem ory/memory.stat",
        "cache 0\nhierarchical_memory_limit 41943040\nhierarchical_memsw_limit 7\n");
    ck_assert_uint_eq(control_groups_memory(root), 41943040); // of the pod around it
}
END_TEST

START_TEST(both_versions_at_once) {
    process_in("4:memory:/a\n0::/b\n",
               FIRST "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "41943040\n");
    put("/sys/fs/cgroup/unified/b/cpu.max", "100000 100000\n");
    put("/sys/fs/cgroup/memory/b/memory.limit_in_bytes", "1\n"); // somebody else's
    put("/sys/fs/cgroup/memory/ab/memory.limit_in_bytes", "1\n");
    ck_assert_uint_eq(control_groups_memory(root), 41943040);
    ck_assert_uint_eq(cores_of_groups(root), 1);
}
END_TEST

START_TEST(lines_that_are_none) {
    process_in("0\n0:\n::\n0::x\n0::/a\n",
               "\n1\n- cgroup2\n30 23 0:26 / /sys/fs/cgroup rw\n" SECOND);
    put("/sys/fs/cgroup/a/memory.max", "41943040\n");
    ck_assert_uint_eq(control_groups_memory(root), 41943040);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("control groups");
    TCase *all = tcase_create("control groups");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, nothing_is_known);
    tcase_add_test(all, a_service_in_its_slice);
    tcase_add_test(all, a_container_sees_its_own_as_the_root);
    tcase_add_test(all, version_1_on_its_node);
    tcase_add_test(all, version_1_in_a_container);
    tcase_add_test(all, both_versions_at_once);
    tcase_add_test(all, lines_that_are_none);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
