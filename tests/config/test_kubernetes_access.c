// SPDX-License-Identifier: Apache-2.0
// Where an API server is and as whom to ask it: kubeconfigs as kubectl writes them, and pods.
#include "config/kubernetes_access.h"

#include "base/memory.h"
#include "tests/support/temporary.h"

#include <check.h>
#include <string.h>
#include <unistd.h>

static char folder[256];
static struct api_access access_;
static struct error error;
static uint64_t live_before;

static const char config_start[] =
    "apiVersion: v1\nkind: Config\ncurrent-context: one\n"
    "contexts:\n"
    "- {name: one, context: {cluster: c, user: u}}\n"
    "- {name: two, context: {cluster: c, user: other, namespace: train}}\n"
    "- {name: three, context: {cluster: absent, user: u}}\n";

static void path_in(char *path, const char *name) {
    snprintf(path, 512, "%s/%s", folder, name);
}

static void write_file(const char *name, const char *one, const char *two) {
    char path[512];
    path_in(path, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(one, file);
    fputs(two, file);
    fclose(file);
}

static void begin(void) {
    live_before = memory_figures().live_bytes;
    temporary_path(folder, sizeof folder, "access");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    write_file("token", "token-of-the-file", "\n");
    write_file("ca.crt", "pem", "");
}

static void end(void) {
    static const char *const names[] = {"token", "ca.crt", "config", "namespace"};
    char path[512];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        path_in(path, names[i]);
        unlink(path);
    }
    rmdir(folder);
    unsetenv("KUBERNETES_SERVICE_HOST");
    unsetenv("KUBERNETES_SERVICE_PORT");
    ck_assert_uint_eq(memory_figures().live_bytes, live_before);
}

static enum status open_access(const char *kubeconfig, const char *context, const char *directory) {
    struct api_access_config config = {kubeconfig, context, directory};
    return api_access_open(&access_, &config, &error);
}

static enum status open_config(const char *context, const char *rest) {
    char path[512];
    write_file("config", config_start, rest);
    path_in(path, "config");
    return open_access(path, context, "/nowhere");
}

START_TEST(kubeconfig) {
    static const char rest[] =
        "clusters:\n- name: c\n  cluster:\n    server: https://10.0.0.1:6443/\n"
        "    certificate-authority-data: UEVN\n"
        "users:\n- name: u\n  user: {tokenFile: token, token: not-this}\n"
        "- name: other\n  user:\n    client-certificate-data: Q0VSVA==\n"
        "    client-key: key.pem\n    token: written\n";
    ck_assert_msg(open_config(NULL, rest) == STATUS_OK, "%s", error.message);
    ck_assert_str_eq(access_.server, "https://10.0.0.1:6443");
    ck_assert_str_eq(access_.namespace, "");
    ck_assert(slice_equal(access_.tls.ca, SLICE("PEM")));
    ck_assert_str_eq(api_access_token(&access_, true, NULL), "token-of-the-file");
    bool changed = false;
    write_file("token", "another", "");
    ck_assert_str_eq(api_access_token(&access_, true, &changed), "another");
    ck_assert(changed);
    api_access_release(&access_);
    ck_assert_msg(open_config("two", rest) == STATUS_OK, "%s", error.message);
    ck_assert_str_eq(api_access_token(&access_, true, NULL), "written");
    ck_assert(slice_equal(access_.tls.cert, SLICE("CERT")));
    ck_assert_ptr_nonnull(strstr(access_.tls.key_file, folder));
    ck_assert_ptr_nonnull(strstr(access_.tls.key_file, "/key.pem"));
    ck_assert_str_eq(access_.namespace, "train");
    api_access_release(&access_);
}
END_TEST

START_TEST(what_cannot_be_used) {
    static const struct {
        const char *context, *cluster, *user, *words;
    } cases[] = {
        {NULL, "server: https://h", "exec: {command: aws}", "runs another program to log in"},
        {NULL, "server: https://h", "auth-provider: {name: gcp}", "runs another program"},
        {NULL, "server: https://h", "username: root", "`username`, which is not supported"},
        {NULL, "{server: https://h, proxy-url: http://p}", "token: t", "`proxy-url`"},
        {NULL, "{server: https://h, insecure-skip-tls-verify: true}", "token: t", "skip-tls"},
        {NULL, "server: h:6443", "token: t", "the cluster's `server`"},
        {NULL, "{}", "token: t", "there is none"},
        {NULL, "server: http://10.0.0.1", "token: t", "everybody could read the token"},
        {NULL, "{server: https://h, certificate-authority-data: '*'}", "token: t", "not base64"},
        {NULL, "server: https://h", "tokenFile: absent", "absent"},
        {"absent", "server: https://h", "token: t", "no context \"absent\""},
        {"three", "server: https://h", "token: t", "no cluster \"absent\""},
        {NULL, "{", "", "config:"},
    };
    char rest[512];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(rest, sizeof rest,
                 "clusters:\n- name: c\n  cluster:\n    %s\nusers:\n"
                 "- name: u\n  user:\n    %s\n",
                 cases[i].cluster, cases[i].user);
        ck_assert_msg(open_config(cases[i].context, rest) != STATUS_OK, "%s", rest);
        ck_assert_msg(strstr(error.message, cases[i].words) != NULL, "%s", error.message);
        api_access_release(&access_);
    }
    ck_assert_int_ne(open_access("/nowhere/config", NULL, "/"), STATUS_OK);
    api_access_release(&access_);
}
END_TEST

START_TEST(explicit_false_is_fine) {
    ck_assert_msg(open_config(NULL,
                              "clusters:\n- name: c\n  cluster: {server: 'https://h', "
                              "insecure-skip-tls-verify: false}\n"
                              "users:\n- {name: u, user: {token: t}}\n") == STATUS_OK,
                  "%s", error.message);
    api_access_release(&access_);
}
END_TEST

START_TEST(pod) {
    ck_assert_int_eq(open_access(NULL, NULL, folder), STATUS_CONFIG);
    ck_assert_ptr_nonnull(strstr(error.message, "not a pod of a cluster"));
    api_access_release(&access_);
    setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
    setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    ck_assert_msg(open_access(NULL, NULL, folder) == STATUS_OK, "%s", error.message);
    ck_assert_str_eq(access_.server, "https://[fd00::1]:443");
    ck_assert_ptr_nonnull(strstr(access_.tls.ca_file, "/ca.crt"));
    ck_assert_str_eq(api_access_token(&access_, false, NULL), "token-of-the-file");
    ck_assert_str_eq(access_.namespace, "");
    api_access_release(&access_);
    write_file("namespace", "train", "\n");
    ck_assert_int_eq(open_access(NULL, NULL, folder), STATUS_OK);
    ck_assert_str_eq(access_.namespace, "train");
    api_access_release(&access_);
    write_file("namespace", "../kube-system", "");
    ck_assert_int_eq(open_access(NULL, NULL, folder), STATUS_OK);
    ck_assert_str_eq(access_.namespace, "");
    api_access_release(&access_);
}
END_TEST

START_TEST(names) {
    static const struct {
        const char *name;
        bool label, subdomain;
    } cases[] = {{"a", true, true},       {"a-1", true, true},   {"a.b", false, true},
                 {"", false, false},      {"-a", false, false},  {"a-", false, false},
                 {"A", false, false},     {"a/b", false, false}, {"a b", false, false},
                 {"a\n", false, false},   {".a", false, false},  {"\xc3\xa4", false, false},
                 {"a%2fb", false, false}, {"a..b", false, true}, // the server's to refuse
                 {"7", true, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_msg(kubernetes_is_label(slice_of(cases[i].name)) == cases[i].label, "%s",
                      cases[i].name);
        ck_assert_msg(kubernetes_is_subdomain(slice_of(cases[i].name)) == cases[i].subdomain, "%s",
                      cases[i].name);
    }
    char text[KUBERNETES_SUBDOMAIN_MAX + 1];
    memset(text, 'a', sizeof text);
    ck_assert(kubernetes_is_label((struct slice){text, 63}));
    ck_assert(!kubernetes_is_label((struct slice){text, 64}));
    ck_assert(kubernetes_is_subdomain((struct slice){text, 253}));
    ck_assert(!kubernetes_is_subdomain((struct slice){text, 254}));
    ck_assert(!kubernetes_is_label((struct slice){"a\0b", 3}));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("kubernetes_access");
    TCase *cases = tcase_create("access");
    tcase_add_checked_fixture(cases, begin, end);
    tcase_add_test(cases, kubeconfig);
    tcase_add_test(cases, what_cannot_be_used);
    tcase_add_test(cases, explicit_false_is_fine);
    tcase_add_test(cases, pod);
    tcase_add_test(cases, names);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
