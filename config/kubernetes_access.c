// SPDX-License-Identifier: Apache-2.0
// Source: the reference of the kubeconfig file (client-go tools/clientcmd/api/v1) and client-go
// rest/config.go.
#include "config/kubernetes_access.h"

#include "base/http/url.h"
#include "base/memory.h"
#include "base/text/cut.h"
#include "config/yaml/document.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/base64.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PEM_MAX = 1 << 20, PATH_BYTES_MAX = 4096 };

struct kubeconfig {
    struct api_access *access;
    const char *path;
    const struct node *root;
    struct error *error;
};

// -- options ------------------------------------------------------------------------------------

void api_access_check(const struct api_access_config *config, struct problem_list *problems) {
    if (config->context != NULL && config->kubeconfig == NULL)
        problem_add(problems, "context", "it is one of a kubeconfig, which is not named");
}

// Letters, digits, and between them what `inner` holds.
static bool is_name(struct slice name, size_t most, const char *inner) {
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        bool between = i > 0 && i + 1 < name.size && c != '\0' && strchr(inner, c) != NULL;
        if (!plain && !between)
            return false;
    }
    return name.size > 0 && name.size <= most;
}

bool kubernetes_is_label(struct slice name) {
    return is_name(name, KUBERNETES_LABEL_MAX, "-");
}

bool kubernetes_is_subdomain(struct slice name) {
    return is_name(name, KUBERNETES_SUBDOMAIN_MAX, "-.");
}

// -- reading ------------------------------------------------------------------------------------

static enum status read_file(const char *path, struct buffer *out, struct error *error) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return error_set_os(error, STATUS_CONFIG, errno, "%.300s cannot be read", path);
    char block[8192];
    ssize_t got = 0;
    do {
        got = read(descriptor, block, sizeof block);
        if (got > 0)
            buffer_append(out, (struct slice){block, (size_t)got});
    } while ((got > 0 && !out->failed) || (got < 0 && errno == EINTR));
    int problem = errno;
    explicit_bzero(block, sizeof block);
    close(descriptor);
    if (got < 0)
        return error_set_os(error, STATUS_CONFIG, problem, "%.300s cannot be read", path);
    if (out->failed)
        return error_set(error, STATUS_CONFIG, "%.300s has more than 1 MiB", path);
    return STATUS_OK;
}

static enum status parse(struct kubeconfig *config) {
    struct buffer text;
    struct problem_list problems;
    buffer_init(&text, DOCUMENT_SIZE_MAX);
    problem_list_init(&problems, &config->access->arena);
    enum status status = read_file(config->path, &text, config->error);
    if (status == STATUS_OK) {
        config->root =
            document_parse(&config->access->arena, config->path, buffer_slice(&text), &problems);
        if (config->root == NULL || problems.count > 0)
            status = error_set(config->error, STATUS_CONFIG, "%.300s:%u: %.300s", config->path,
                               problems.count == 0 ? 0 : problems.items[0].where.line,
                               problems.count == 0 ? "it is not YAML" : problems.items[0].text);
    }
    if (text.data != NULL)
        explicit_bzero(text.data, text.capacity);
    buffer_release(&text);
    return status;
}

// A text below a map; NULL when it is absent or empty.
static const char *text_at(const struct node *map, const char *key) {
    const struct node *node = node_child(map, key);
    return node != NULL && node->type == NODE_TEXT && node->text[0] != '\0' ? node->text : NULL;
}

// What `kind` ("cluster") calls itself `name` in the list `list` ("clusters").
static enum status find(struct kubeconfig *config, const char *list, const char *kind,
                        const char *name, const struct node **out) {
    const struct node *items = node_child(config->root, list);
    if (name == NULL)
        return error_set(config->error, STATUS_CONFIG, "%.300s names no %s", config->path, kind);
    for (uint32_t i = 0; items != NULL && items->type == NODE_LIST && i < items->count; i++) {
        const struct node *item = items->entries[i].value;
        const char *its_name = text_at(item, "name");
        if (its_name == NULL || strcmp(its_name, name) != 0)
            continue;
        *out = node_child(item, kind);
        return STATUS_OK;
    }
    return error_set(config->error, STATUS_CONFIG, "%.300s has no %s \"%.100s\"", config->path,
                     kind, name);
}

static enum status refuse_keys(struct kubeconfig *config, const struct node *map, const char *kind,
                               const char *const *keys, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct node *node = node_child(map, keys[i]);
        if (node == NULL || node->type == NODE_NULL ||
            (node->type == NODE_TEXT && strcmp(node->text, "false") == 0))
            continue;
        bool plugin = strcmp(keys[i], "exec") == 0 || strcmp(keys[i], "auth-provider") == 0;
        return error_set(config->error, STATUS_CONFIG, "%.300s:%u: the %s has `%s`, which %s",
                         config->path, node->where.line, kind, keys[i],
                         plugin ? "runs another program to log in; culprit runs none: give it a "
                                  "token or a client certificate"
                                : "is not supported");
    }
    return STATUS_OK;
}

// -- what it says -------------------------------------------------------------------------------

// Relative paths begin at the directory of the kubeconfig.
static const char *path_of(struct kubeconfig *config, const char *path) {
    const char *slash = strrchr(config->path, '/');
    if (path == NULL || path[0] == '/' || slash == NULL)
        return path;
    char whole[PATH_BYTES_MAX];
    snprintf(whole, sizeof whole, "%.*s/%s", (int)(slash - config->path), config->path, path);
    return arena_copy(&config->access->arena, (struct slice){whole, strlen(whole) + 1}).data;
}

static enum status decode_pem(struct kubeconfig *config, const struct node *map, const char *key,
                              struct buffer *pem, struct slice *out) {
    const char *text = text_at(map, key);
    if (text == NULL)
        return STATUS_OK;
    size_t size = strlen(text), used = BASE64_DECODE_LENGTH(size);
    uint8_t *bytes = memory_take(used + 1);
    struct base64_decode_ctx context;
    base64_decode_init(&context);
    bool fine = base64_decode_update(&context, &used, bytes, size, text) != 0 &&
                base64_decode_final(&context) != 0;
    if (fine)
        buffer_append(pem, (struct slice){(const char *)bytes, used});
    explicit_bzero(bytes, used);
    memory_give(bytes);
    if (!fine || pem->failed)
        return error_set(config->error, STATUS_CONFIG, "%.300s: `%s` is not base64", config->path,
                         key);
    *out = buffer_slice(pem);
    return STATUS_OK;
}

static enum status read_cluster(struct kubeconfig *config, const struct node *cluster) {
    static const char *const refused[] = {"proxy-url", "tls-server-name",
                                          "insecure-skip-tls-verify"};
    struct api_access *access = config->access;
    const char *server = text_at(cluster, "server");
    const char *wrong = server == NULL ? "there is none" : http_url_problem(server);
    if (wrong != NULL)
        return error_set(config->error, STATUS_CONFIG, "%.300s: the cluster's `server`: %s",
                         config->path, wrong);
    size_t size = strlen(server);
    while (size > 0 && server[size - 1] == '/')
        size--;
    char *copy = memory_copy_text(server, size);
    access->server = arena_copy(&access->arena, (struct slice){copy, size + 1}).data;
    memory_give(copy);
    access->tls.ca_file = path_of(config, text_at(cluster, "certificate-authority"));
    enum status status =
        refuse_keys(config, cluster, "cluster", refused, sizeof refused / sizeof refused[0]);
    if (status == STATUS_OK)
        status =
            decode_pem(config, cluster, "certificate-authority-data", &access->ca, &access->tls.ca);
    if (access->tls.ca.size > 0)
        access->tls.ca_file = NULL; // the data count
    return status;
}

static enum status read_user(struct kubeconfig *config, const struct node *user) {
    static const char *const refused[] = {"exec", "auth-provider", "username", "password",
                                          "as",   "as-groups",     "as-uid"};
    struct api_access *access = config->access;
    enum status status =
        refuse_keys(config, user, "user", refused, sizeof refused / sizeof refused[0]);
    access->token = text_at(user, "token");
    access->tls.cert_file = path_of(config, text_at(user, "client-certificate"));
    access->tls.key_file = path_of(config, text_at(user, "client-key"));
    const char *token_file = path_of(config, text_at(user, "tokenFile"));
    if (status == STATUS_OK)
        status =
            decode_pem(config, user, "client-certificate-data", &access->cert, &access->tls.cert);
    if (status == STATUS_OK)
        status = decode_pem(config, user, "client-key-data", &access->key, &access->tls.key);
    if (access->tls.cert.size > 0)
        access->tls.cert_file = NULL;
    if (access->tls.key.size > 0)
        access->tls.key_file = NULL;
    if (status == STATUS_OK && token_file != NULL) {
        access->token = NULL; // the file counts
        access->has_token_file = true;
        status = token_file_open(&access->token_file, token_file, config->error);
    }
    return status;
}

static void set_namespace(struct api_access *access, struct slice name) {
    if (kubernetes_is_label(name))
        snprintf(access->namespace, sizeof access->namespace, "%.*s", (int)name.size, name.data);
}

static enum status read_kubeconfig(struct api_access *access, const char *path, const char *context,
                                   struct error *error) {
    struct kubeconfig config = {.access = access, .path = path, .error = error};
    const struct node *chosen = NULL, *cluster = NULL, *user = NULL;
    enum status status = parse(&config);
    if (status == STATUS_OK && context == NULL)
        context = text_at(config.root, "current-context");
    if (status == STATUS_OK)
        status = find(&config, "contexts", "context", context, &chosen);
    if (status == STATUS_OK)
        status = find(&config, "clusters", "cluster", text_at(chosen, "cluster"), &cluster);
    if (status == STATUS_OK)
        status = find(&config, "users", "user", text_at(chosen, "user"), &user);
    if (status == STATUS_OK)
        status = read_cluster(&config, cluster);
    if (status == STATUS_OK)
        status = read_user(&config, user);
    const char *namespace = status == STATUS_OK ? text_at(chosen, "namespace") : NULL;
    if (namespace != NULL)
        set_namespace(access, slice_of(namespace));
    return status;
}

// -- in a cluster ---------------------------------------------------------------------------------

static const char *join(struct api_access *access, const char *directory, const char *name) {
    char path[PATH_BYTES_MAX];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return arena_copy(&access->arena, (struct slice){path, strlen(path) + 1}).data;
}

// Not every mount has it, and few need it.
static void read_namespace(struct api_access *access, const char *directory) {
    struct buffer text;
    struct error ignored;
    buffer_init(&text, PATH_BYTES_MAX);
    if (read_file(join(access, directory, "namespace"), &text, &ignored) == STATUS_OK)
        set_namespace(access, text_trim(buffer_slice(&text)));
    buffer_release(&text);
}

static enum status read_cluster_environment(struct api_access *access, const char *directory,
                                            struct error *error) {
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    char server[512];
    if (host == NULL || port == NULL || host[0] == '\0' || port[0] == '\0')
        return error_set(error, STATUS_CONFIG,
                         "this is not a pod of a cluster (KUBERNETES_SERVICE_HOST is not set); "
                         "name a kubeconfig");
    bool v6 = strchr(host, ':') != NULL;
    snprintf(server, sizeof server, "https://%s%.250s%s:%.20s", v6 ? "[" : "", host, v6 ? "]" : "",
             port);
    access->server = arena_copy(&access->arena, (struct slice){server, strlen(server) + 1}).data;
    access->tls.ca_file = join(access, directory, "ca.crt");
    access->has_token_file = true;
    read_namespace(access, directory);
    return token_file_open(&access->token_file, join(access, directory, "token"), error);
}

// -- life -----------------------------------------------------------------------------------------

enum status api_access_open(struct api_access *access, const struct api_access_config *config,
                            struct error *error) {
    assert(config->service_account_directory != NULL);
    *access = (struct api_access){.server = NULL};
    arena_init(&access->arena, 4096);
    buffer_init(&access->ca, PEM_MAX);
    buffer_init(&access->cert, PEM_MAX);
    buffer_init(&access->key, PEM_MAX);
    enum status status =
        config->kubeconfig != NULL
            ? read_kubeconfig(access, config->kubeconfig, config->context, error)
            : read_cluster_environment(access, config->service_account_directory, error);
    if (status == STATUS_OK && http_url_is_exposed(access->server))
        status = error_set(error, STATUS_CONFIG,
                           "the API server is http:// on another machine, where everybody could "
                           "read the token; use https://");
    return status;
}

static void wipe(struct buffer *buffer) {
    if (buffer->data != NULL)
        explicit_bzero(buffer->data, buffer->capacity);
    buffer_release(buffer);
}

void api_access_release(struct api_access *access) {
    if (access->has_token_file)
        token_file_close(&access->token_file);
    if (access->arena.block_size != 0)
        arena_release(&access->arena);
    wipe(&access->ca);
    wipe(&access->cert);
    wipe(&access->key);
    *access = (struct api_access){.server = NULL};
}

const char *api_access_token(struct api_access *access, bool again, bool *changed) {
    struct error ignored;
    bool is_new = false;
    assert(access->server != NULL);
    if (access->has_token_file)
        is_new = token_file_refresh(&access->token_file, again, &ignored) == TOKEN_CHANGED;
    if (changed != NULL)
        *changed = is_new;
    return access->has_token_file ? access->token_file.text : access->token;
}
