// SPDX-License-Identifier: Apache-2.0
// Where control sockets are, who may open them, and what a process that was killed leaves.
#include "pipeline/runtime/control/place.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534 };

static char folder[] = "/tmp/culprit-place-XXXXXX";
static struct error failure;

static void setup(void) {
    strcpy(strrchr(folder, '-'), "-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    setenv("XDG_RUNTIME_DIR", folder, 1);
    failure = (struct error){0};
}

static void teardown(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static const char *in_folder(const char *name) {
    static char path[CONTROL_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static mode_t mode_of(const char *path) {
    struct stat about;
    ck_assert_int_eq(lstat(path, &about), 0);
    return about.st_mode & 07777;
}

static bool exists(const char *path) {
    struct stat about;
    return lstat(path, &about) == 0;
}

// A socket file whose process is gone, under this name.
static void leave_stale(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(
        bind(descriptor, (const struct sockaddr *)(const void *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(descriptor, 1), 0);
    close(descriptor);
    ck_assert(exists(path));
}

START_TEST(the_usual_place_is_the_users_own) {
    struct control_socket made;
    char expected[CONTROL_PATH_MAX];
    umask(0);
    ck_assert_int_eq(control_listen(&made, NULL, &failure), STATUS_OK);
    snprintf(expected, sizeof expected, "%s/culprit/control/%d.sock", folder, (int)getpid());
    ck_assert_str_eq(made.path, expected);
    ck_assert_uint_eq(mode_of(made.path), 0600);
    ck_assert_uint_eq(mode_of(in_folder("culprit/control")), 0700);
    char found[CONTROL_FOUND_MAX][CONTROL_PATH_MAX];
    uint32_t count = control_find(found), own = 0;
    for (uint32_t i = 0; i < count; i++)
        own += strcmp(found[i], expected) == 0;
    ck_assert_uint_eq(own, 1);
    int descriptor;
    ck_assert_int_eq(control_connect(made.path, &descriptor, &failure), STATUS_OK);
    int accepted = accept(made.descriptor, NULL, NULL);
    uid_t user = 1;
    ck_assert(control_peer_allowed(accepted, &user));
    ck_assert_uint_eq(user, geteuid());
    close(accepted);
    close(descriptor);
    control_unlisten(&made);
    ck_assert(!exists(expected));
    ck_assert_int_eq(control_connect(expected, &descriptor, &failure), STATUS_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(failure.message, "no culprit listens"));
}
END_TEST

START_TEST(what_killed_processes_left_is_removed) {
    struct control_socket made;
    ck_assert_int_eq(control_listen(&made, NULL, &failure), STATUS_OK); // makes the directory
    control_unlisten(&made);
    pid_t gone = fork();
    if (gone == 0)
        _exit(0);
    waitpid(gone, NULL, 0);
    char name[64], stale[CONTROL_PATH_MAX], other[CONTROL_PATH_MAX], living[CONTROL_PATH_MAX];
    snprintf(name, sizeof name, "culprit/control/%d.sock", (int)gone);
    strcpy(stale, in_folder(name));
    snprintf(name, sizeof name, "culprit/control/%d.sock", (int)getppid());
    strcpy(living, in_folder(name));
    strcpy(other, in_folder("culprit/control/other.sock"));
    leave_stale(stale);
    leave_stale(living);
    leave_stale(other);
    ck_assert_int_eq(control_listen(&made, NULL, &failure), STATUS_OK);
    ck_assert(!exists(stale));
    ck_assert(exists(living)); // its process lives: it may be about to listen
    ck_assert(exists(other));  // not ours to judge
    char found[CONTROL_FOUND_MAX][CONTROL_PATH_MAX];
    uint32_t count = control_find(found);
    for (uint32_t i = 0; i < count; i++)
        ck_assert_str_ne(found[i], living);
    control_unlisten(&made);
}
END_TEST

START_TEST(a_path_that_is_given) {
    struct control_socket made, second;
    char path[CONTROL_PATH_MAX];
    strcpy(path, in_folder("new/c.sock"));
    ck_assert_int_eq(control_listen(&made, path, &failure), STATUS_OK);
    ck_assert_uint_eq(mode_of(path), 0600);
    ck_assert_uint_eq(mode_of(in_folder("new")), 0700);
    ck_assert_int_eq(control_listen(&second, path, &failure), STATUS_CANNOT_CREATE);
    ck_assert_ptr_nonnull(strstr(failure.message, "another process listens there"));
    ck_assert(exists(path));
    // Somebody removed it, and another culprit has made one: that stays.
    unlink(path);
    ck_assert_int_eq(control_listen(&second, path, &failure), STATUS_OK);
    control_unlisten(&made);
    ck_assert(exists(path));
    control_unlisten(&second);
    ck_assert(!exists(path));
    leave_stale(path);
    ck_assert_int_eq(control_listen(&made, path, &failure), STATUS_OK);
    control_unlisten(&made);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    ck_assert_int_eq(control_listen(&made, path, &failure), STATUS_CANNOT_CREATE);
    ck_assert_ptr_nonnull(strstr(failure.message, "something else"));
    ck_assert(exists(path));
    ck_assert_int_eq(control_listen(&made, "relative.sock", &failure), STATUS_CONFIG);
    char longer[200];
    memset(longer, 'a', sizeof longer);
    longer[0] = '/';
    longer[sizeof longer - 1] = '\0';
    ck_assert_int_eq(control_listen(&made, longer, &failure), STATUS_CONFIG);
}
END_TEST

// As others could prepare it.
START_TEST(a_directory_of_somebody_else_is_not_used) {
    struct control_socket made;
    char base[CONTROL_PATH_MAX], control[CONTROL_PATH_MAX];
    mode_t before = mode_of("/tmp") & 0077;
    strcpy(base, in_folder("culprit"));
    strcpy(control, in_folder("culprit/control"));
    ck_assert_int_eq(mkdir(base, 0755), 0);
    if (_i == 0)
        ck_assert_int_eq(symlink("/tmp", control), 0);
    else if (geteuid() == 0)
        ck_assert_int_eq(mkdir(control, 0700) | chown(control, NOBODY, NOBODY), 0);
    else
        return;
    enum status status = control_listen(&made, NULL, &failure);
    if (status == STATUS_OK) { // at the next place
        ck_assert_ptr_null(strstr(made.path, folder));
        control_unlisten(&made);
    }
    ck_assert_uint_eq(mode_of("/tmp") & 0077, before);
}
END_TEST

START_TEST(a_directory_of_ones_own_is_closed_to_others) {
    struct control_socket made;
    ck_assert_int_eq(mkdir(in_folder("culprit"), 0755), 0);
    ck_assert_int_eq(mkdir(in_folder("culprit/control"), 0700), 0);
    ck_assert_int_eq(chmod(in_folder("culprit/control"), 02777), 0); // as fsGroup leaves it
    ck_assert_int_eq(control_listen(&made, NULL, &failure), STATUS_OK);
    ck_assert_ptr_nonnull(strstr(made.path, folder));
    ck_assert_uint_eq(mode_of(in_folder("culprit/control")) & 0777, 0700);
    control_unlisten(&made);
}
END_TEST

static int connect_as(uid_t user, const char *path) {
    pid_t child = fork();
    if (child == 0) {
        int descriptor;
        if (setgroups(0, NULL) != 0 || setgid(user) != 0 || setuid(user) != 0)
            _exit(9);
        enum status status = control_connect(path, &descriptor, NULL);
        _exit(status == STATUS_OK ? 0 : status == STATUS_DENIED ? 1 : 2);
    }
    int how = 0;
    waitpid(child, &how, 0);
    return WEXITSTATUS(how);
}

START_TEST(another_user_is_refused) {
    struct control_socket made;
    uid_t user = 0;
    char path[CONTROL_PATH_MAX];
    if (geteuid() != 0)
        return; // only root can be another user
    strcpy(path, in_folder("c.sock"));
    ck_assert_int_eq(control_listen(&made, path, &failure), STATUS_OK);
    ck_assert_int_eq(chmod(folder, 0755), 0);
    ck_assert_int_eq(connect_as(NOBODY, path), 1); // the mode of the socket
    ck_assert_int_eq(chmod(path, 0666), 0);
    ck_assert_int_eq(connect_as(NOBODY, path), 0); // somebody opened it up …
    int accepted = accept(made.descriptor, NULL, NULL);
    ck_assert(!control_peer_allowed(accepted, &user)); // … and the kernel says who comes
    ck_assert_uint_eq(user, NOBODY);
    close(accepted);
    control_unlisten(&made);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("control_place");
    TCase *tests = tcase_create("control_place");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, the_usual_place_is_the_users_own);
    tcase_add_test(tests, what_killed_processes_left_is_removed);
    tcase_add_test(tests, a_path_that_is_given);
    tcase_add_loop_test(tests, a_directory_of_somebody_else_is_not_used, 0, 2);
    tcase_add_test(tests, a_directory_of_ones_own_is_closed_to_others);
    tcase_add_test(tests, another_user_is_refused);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
