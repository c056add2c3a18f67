// SPDX-License-Identifier: Apache-2.0
// Drives the handles of several clients by one multi handle of libcurl, which keeps the connections
// of all. A call that could not begin waits in a list of its own until it is asked for.
#include "base/http/client_set.h"

#include "base/http/handle.h"
#include "base/memory.h"

#include <string.h>

enum { SET_MAGIC = 0x48435331 };

// A call that is over before it began.
struct stillborn {
    struct http_client *client;
    enum http_class class;
    struct error error;
    struct stillborn *next;
};

struct http_client_set {
    uint32_t magic;
    const struct curl_library *curl;
    CURLM *multi;
    struct http_client **clients; // whose calls are under way
    uint32_t count, capacity;
    size_t bytes_max;
    struct stillborn *stillborn;
};

enum status http_client_set_open(struct http_client_set **out, uint32_t clients_max,
                                 size_t bytes_max, struct error *error) {
    const struct curl_library *curl = NULL;
    assert(clients_max > 0 && bytes_max > 0);
    CURLM *multi = NULL;
    enum status status = http_multi_open(&curl, &multi, error);
    if (status != STATUS_OK)
        return status;
    // By itself libcurl keeps four times as many as there are calls under way.
    (void)curl->multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)clients_max);
    struct http_client_set *set = memory_zero(1, sizeof *set);
    *set = (struct http_client_set){
        .magic = SET_MAGIC, .curl = curl, .multi = multi, .bytes_max = bytes_max};
    *out = set;
    return STATUS_OK;
}

static void take_out(struct http_client_set *set, struct http_client *client) {
    uint32_t at = 0;
    while (at < set->count && set->clients[at] != client)
        at++;
    assert(at < set->count);
    set->clients[at] = set->clients[--set->count];
    CURLMcode code = set->curl->multi_remove_handle(set->multi, http_client_handle(client));
    assert(code == CURLM_OK);
}

void http_client_set_close(struct http_client_set *set) {
    if (set == NULL)
        return;
    assert(set->magic == SET_MAGIC);
    while (set->count > 0) {
        struct http_client *client = set->clients[0];
        take_out(set, client);
        http_client_let_go(client);
    }
    while (set->stillborn != NULL) {
        struct stillborn *next = set->stillborn->next;
        memory_give(set->stillborn);
        set->stillborn = next;
    }
    set->curl->multi_cleanup(set->multi);
    memory_give(set->clients);
    set->magic = 0;
    memory_give(set);
}

static void keep_stillborn(struct http_client_set *set, struct http_client *client,
                           enum http_class class, const struct error *error) {
    struct stillborn *one = memory_zero(1, sizeof *one);
    *one = (struct stillborn){client, class, *error, set->stillborn};
    set->stillborn = one;
}

static bool has_room(void *context, size_t bytes) {
    struct http_client_set *set = context;
    size_t total = 0;
    assert(set->magic == SET_MAGIC);
    for (uint32_t i = 0; i < set->count; i++)
        total += http_client_reply(set->clients[i])->body.size;
    return bytes <= set->bytes_max && total <= set->bytes_max - bytes;
}

void http_client_set_begin(struct http_client_set *set, struct http_client *client,
                           const struct http_call *call) {
    struct http_client_room room = {has_room, set};
    assert(set->magic == SET_MAGIC && client != NULL);
    struct error error = {.message = ""};
    enum http_class class = HTTP_RETRY;
    if (!http_client_begin(client, call, room, &class, &error)) {
        keep_stillborn(set, client, class, &error);
        return;
    }
    if (set->count == set->capacity) {
        set->capacity = set->capacity == 0 ? 8 : set->capacity * 2;
        set->clients = memory_resize(set->clients, set->capacity * sizeof(struct http_client *));
    }
    if (set->curl->multi_add_handle(set->multi, http_client_handle(client)) != CURLM_OK) {
        http_client_let_go(client);
        error_set(&error, STATUS_IO, "libcurl is out of memory");
        keep_stillborn(set, client, HTTP_RETRY, &error);
        return;
    }
    set->clients[set->count++] = client;
}

void http_client_set_wait(struct http_client_set *set, int descriptor, uint64_t timeout_ns) {
    assert(set->magic == SET_MAGIC);
    int running = 0;
    // What was begun is sent before it waits.
    (void)set->curl->multi_perform(set->multi, &running);
    if (set->stillborn != NULL || (uint32_t)running < set->count)
        timeout_ns = 0;
    http_multi_wait(set->curl, set->multi, descriptor, timeout_ns);
    if (set->count > 0)
        (void)set->curl->multi_perform(set->multi, &running);
}

static struct http_client *next_stillborn(struct http_client_set *set, enum http_class *class,
                                          struct error *error) {
    struct stillborn *one = set->stillborn;
    struct http_client *client = one->client;
    *class = one->class;
    *error = one->error;
    set->stillborn = one->next;
    memory_give(one);
    return client;
}

struct http_client *http_client_set_next(struct http_client_set *set, enum http_class *class,
                                         struct error *error) {
    assert(set->magic == SET_MAGIC);
    if (set->stillborn != NULL)
        return next_stillborn(set, class, error);
    int left = 0;
    CURLMsg *message;
    while ((message = set->curl->multi_info_read(set->multi, &left)) != NULL) {
        if (message->msg != CURLMSG_DONE)
            continue;
        CURLcode code = message->data.result;
        for (uint32_t i = 0; i < set->count; i++)
            if (http_client_handle(set->clients[i]) == message->easy_handle) {
                struct http_client *client = set->clients[i];
                take_out(set, client);
                *class = http_client_end(client, (int)code, error);
                return client;
            }
    }
    return NULL;
}
