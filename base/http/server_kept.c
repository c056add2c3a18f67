// SPDX-License-Identifier: Apache-2.0
// What does a listener that must go on as it was take for certificate, key and token, when the
// files have been broken since?
//
// A server that stops for a reload leaves what it had read. It is given back only to one that takes
// over when the reload has failed; http_server_drop_kept forgets it.
#include "base/http/server_parts.h"
#include "base/memory.h"

#include <pthread.h>
#include <string.h>

enum { KEPT_MAX = 16 };

struct kept_files {
    char *endpoint; // NULL: a free place
    char *cert_text, *key_text, *client_ca_text;
    struct token_watch token; // without its lock
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept_files kept[KEPT_MAX];
static bool falls_back;

static void forget(struct kept_files *files) {
    if (files->key_text != NULL)
        explicit_bzero(files->key_text, strlen(files->key_text));
    memory_give(files->key_text);
    memory_give(files->cert_text);
    memory_give(files->client_ca_text);
    memory_give(files->endpoint);
    explicit_bzero(&files->token, sizeof files->token);
    *files = (struct kept_files){.endpoint = NULL};
}

static bool are_read(const struct http_server *server) {
    return server->cert_text != NULL || server->options.bearer_token_file != NULL;
}

void kept_files_leave(struct http_server *server) {
    if (!are_read(server))
        return;
    pthread_mutex_lock(&lock);
    int place = 0;
    while (place < KEPT_MAX && kept[place].endpoint != NULL)
        place++;
    if (place < KEPT_MAX) {
        struct kept_files *files = &kept[place];
        files->endpoint =
            memory_copy_text(server->options.endpoint, strlen(server->options.endpoint));
        files->cert_text = server->cert_text;
        files->key_text = server->key_text;
        files->client_ca_text = server->client_ca_text;
        server->cert_text = server->key_text = server->client_ca_text = NULL;
        files->token.size = server->token.size;
        memcpy(files->token.text, server->token.text, server->token.size);
    }
    pthread_mutex_unlock(&lock);
}

bool kept_files_take(struct http_server *server) {
    bool found = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < KEPT_MAX && falls_back && !found; i++) {
        struct kept_files *files = &kept[i];
        if (files->endpoint == NULL || strcmp(files->endpoint, server->options.endpoint) != 0)
            continue;
        server->cert_text = files->cert_text;
        server->key_text = files->key_text;
        server->client_ca_text = files->client_ca_text;
        files->cert_text = files->key_text = files->client_ca_text = NULL;
        server->token.modified_ns = 0; // the file is looked at again
        server->token.size = files->token.size;
        memcpy(server->token.text, files->token.text, files->token.size);
        forget(files);
        found = true;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void http_server_fall_back(void) {
    pthread_mutex_lock(&lock);
    falls_back = true;
    pthread_mutex_unlock(&lock);
}

void kept_files_drop(void) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < KEPT_MAX; i++)
        forget(&kept[i]);
    falls_back = false;
    pthread_mutex_unlock(&lock);
}
