// SPDX-License-Identifier: Apache-2.0
// Keeps certificate, key and token for a listener that must go on as it was, whatever has become of
// the files since.
//
// A server that stops for a reload leaves what it had read. It is given back only to one that takes
// over when the reload has failed; http_server_drop_kept forgets it.
#include "base/http/server_parts.h"
#include "base/memory.h"

#include <assert.h>
#include <string.h>

enum { KEPT_MAX = 16 };

struct kept_files {
    char *endpoint; // NULL: a free place
    char *cert_text, *key_text, *client_ca_text;
    char token[HTTP_TOKEN_SIZE_MAX + 1];
};

static struct lock lock = LOCK_INITIALIZER;
static struct kept_files kept[KEPT_MAX];
static bool falls_back;

static void forget(struct kept_files *files) {
    assert(lock_is_held(&lock));
    if (files->key_text != NULL)
        explicit_bzero(files->key_text, strlen(files->key_text));
    memory_give(files->key_text);
    memory_give(files->cert_text);
    memory_give(files->client_ca_text);
    memory_give(files->endpoint);
    explicit_bzero(files->token, sizeof files->token);
    *files = (struct kept_files){.endpoint = NULL};
}

static bool are_read(const struct http_server *server) {
    return server->cert_text != NULL || server->options.bearer_token_file != NULL;
}

void kept_files_leave(struct http_server *server) {
    assert(server->magic == SERVER_MAGIC && server->options.endpoint != NULL);
    if (!are_read(server))
        return;
    lock_take(&lock);
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
        memcpy(files->token, server->token.file.text, sizeof files->token);
    }
    lock_release(&lock);
}

bool kept_files_take(struct http_server *server) {
    bool found = false;
    lock_take(&lock);
    for (int i = 0; i < KEPT_MAX && falls_back && !found; i++) {
        struct kept_files *files = &kept[i];
        if (files->endpoint == NULL || strcmp(files->endpoint, server->options.endpoint) != 0)
            continue;
        assert(server->cert_text == NULL && server->key_text == NULL);
        server->cert_text = files->cert_text;
        server->key_text = files->key_text;
        server->client_ca_text = files->client_ca_text;
        files->cert_text = files->key_text = files->client_ca_text = NULL;
        server->token.file.modified_ns = 0; // the file is looked at again
        memcpy(server->token.file.text, files->token, sizeof files->token);
        forget(files);
        found = true;
    }
    lock_release(&lock);
    return found;
}

void http_server_fall_back(void) {
    lock_take(&lock);
    falls_back = true;
    lock_release(&lock);
}

void kept_files_drop(void) {
    lock_take(&lock);
    for (int i = 0; i < KEPT_MAX; i++)
        forget(&kept[i]);
    falls_back = false;
    lock_release(&lock);
}
