// SPDX-License-Identifier: Apache-2.0
// What an answer means: go on, list again, or wait and say why.
//
// Waits are those of client-go: 0.8 s, doubled up to 30 s, with up to as much again by chance, from
// the beginning again after two minutes without a failure. Where nothing but a person can help (a
// request that the server does not take, a resource that it does not have) the wait goes up to five
// minutes. Lists that come again within two minutes wait in the same way.
#include "base/log.h"
#include "base/text/cut.h"
#include "receivers/kubernetes/receiver.h"

#include <stdarg.h>
#include <stdio.h>

enum { EMPTY_ENDS_MAX = 2, SERVER_FAILURES_MAX = 3, LIST_FAILURES_MAX = 2, EXCERPT_MAX = 160 };

static const uint64_t SECOND_NS = 1000000000;
static const uint64_t WAIT_LEAST_NS = 800000000;
static const uint64_t WAIT_MOST_NS = 30000000000;
static const uint64_t WAIT_PERSON_NS = 300000000000;
static const uint64_t CALM_NS = 120000000000;

// -- good and bad -------------------------------------------------------------------------------

void watch_succeeded(struct watch *watch, uint64_t now_ns) {
    watch->trouble[0] = '\0';
    watch->failures = watch->unauthorized = 0;
    if (watch->failed_ns != 0 && now_ns - watch->failed_ns > CALM_NS)
        watch->backoff_ns = 0;
    watch->answered_ns = now_ns;
}

void watch_failed(struct watch *watch, enum failure_class class, uint64_t retry_after_ns,
                  uint64_t now_ns) {
    assert(class < FAILURE_CLASS_COUNT && watch->phase == PHASE_IDLE);
    metric_add(watch->counters.failures[class], 1);
    watch->trouble_class = class;
    bool person = class == FAILURE_400 || class == FAILURE_404;
    uint64_t most = person ? WAIT_PERSON_NS : WAIT_MOST_NS;
    watch->backoff_ns = watch->backoff_ns == 0 ? WAIT_LEAST_NS : 2 * watch->backoff_ns;
    if (watch->backoff_ns > most)
        watch->backoff_ns = most;
    watch->failures++;
    watch->failed_ns = now_ns;
    uint64_t wait = kubernetes_random(watch->receiver, watch->backoff_ns, 2 * watch->backoff_ns);
    watch->not_before_ns = now_ns + (wait > retry_after_ns ? wait : retry_after_ns);
}

static void say(struct watch *watch, const char *format, ...) PRINTF_LIKE(2, 3);
static void say(struct watch *watch, const char *format, ...) {
    va_list arguments;
    int used = snprintf(watch->trouble, sizeof watch->trouble,
                        "%s%s%s: ", kubernetes_resource_names[watch->resource],
                        watch->namespace == NULL ? "" : " in ",
                        watch->namespace == NULL ? "" : watch->namespace);
    assert(used > 0 && (size_t)used < sizeof watch->trouble);
    va_start(arguments, format);
    vsnprintf(watch->trouble + used, sizeof watch->trouble - (size_t)used, format, arguments);
    va_end(arguments);
    for (char *c = watch->trouble; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
}

// The first time soon. A server that goes on forgetting is not made to list everything each second.
static uint64_t relist_wait(struct watch *watch, uint64_t now_ns) {
    bool lasts = watch->relisted_ns != 0 && now_ns - watch->relisted_ns < CALM_NS;
    watch->relisted_ns = now_ns;
    if (!lasts) {
        watch->relist_ns = 0;
        return kubernetes_random(watch->receiver, 0, SECOND_NS);
    }
    watch->relist_ns = watch->relist_ns == 0 ? WAIT_LEAST_NS : 2 * watch->relist_ns;
    if (watch->relist_ns > WAIT_MOST_NS)
        watch->relist_ns = WAIT_MOST_NS;
    return kubernetes_random(watch->receiver, watch->relist_ns, 2 * watch->relist_ns);
}

static void list_again(struct watch *watch, uint64_t now_ns, const char *why) {
    // Before the first list there is nothing that could have been missed.
    bool gap = watch->version[0] != '\0';
    watch->needs_list = true;
    watch->needs_probe = false;
    watch->version[0] = watch->more[0] = '\0';
    watch->empty_ends = 0;
    watch->not_before_ns = now_ns + relist_wait(watch, now_ns);
    if (!gap)
        return;
    metric_add(watch->counters.gaps, 1);
    log_write(LOG_INFO, (struct log_site){"C9002", watch->receiver->context->site},
              "%s: %s; listing again; objects that came and went since are lost",
              kubernetes_resource_names[watch->resource], why);
}

void watch_cancel(struct watch *watch) {
    http_stream_free(watch->stream);
    watch->stream = NULL;
    watch->phase = PHASE_IDLE;
}

// -- statuses -----------------------------------------------------------------------------------

static void forbidden(struct watch *watch) {
    bool cluster = watch->resource == RESOURCE_NODES;
    bool role = watch->namespace != NULL && !cluster;
    say(watch,
        "403, the account may not list or watch them; it needs the rule {apiGroups: [\"\"], "
        "resources: [%s], verbs: [list, watch]} in a %s%s%s",
        kubernetes_resource_names[watch->resource], role ? "Role of the namespace " : "ClusterRole",
        role ? watch->namespace : "",
        role || cluster ? "" : ", or in a Role of each of the `namespaces` that are named");
}

// The message of a Status, or the beginning of the text.
static struct slice words_of(struct slice reply) {
    struct slice behind;
    size_t at = 0;
    if (!text_find(reply, SLICE("\"message\":\""), &behind))
        behind = reply;
    while (at < behind.size && at < EXCERPT_MAX && behind.data[at] != '\n' &&
           !(behind.data[at] == '"' && at > 0 && behind.data[at - 1] != '\\'))
        at++;
    return (struct slice){behind.data, at};
}

static bool holds(struct slice reply, const char *word) {
    struct slice behind;
    return text_find(reply, slice_of(word), &behind);
}

static enum failure_class class_of(long status) {
    static const struct {
        short status;
        enum failure_class class;
    } known[] = {{401, FAILURE_401}, {403, FAILURE_403}, {404, FAILURE_404},
                 {410, FAILURE_410}, {408, FAILURE_429}, {429, FAILURE_429}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].status == status)
            return known[i].class;
    return status >= 500 ? FAILURE_500 : FAILURE_400;
}

// Once at once with the token as it is now, then with waits.
static void unauthorized(struct watch *watch, uint64_t now_ns) {
    (void)api_access_token(&watch->receiver->access, true, NULL);
    watch_failed(watch, FAILURE_401, 0, now_ns);
    if (++watch->unauthorized == 1)
        watch->not_before_ns = now_ns;
    else
        say(watch, "401, the server does not accept the token or certificate");
}

static void refused(struct watch *watch, enum watch_phase phase, long status, struct slice reply,
                    uint64_t retry_after_ns, uint64_t now_ns) {
    struct slice words = words_of(reply);
    enum failure_class class = class_of(status);
    bool not_known = class == FAILURE_400 && phase == PHASE_STREAMED_LIST;
    if (not_known) {
        watch->streamed_lists = watch->listing = false;
        return;
    }
    if (status == 401) {
        unauthorized(watch, now_ns);
        return;
    }
    if (status == 410 || (phase == PHASE_PROBE && holds(reply, "ResourceVersionTooLarge"))) {
        metric_add(watch->counters.failures[class], 1);
        list_again(watch, now_ns,
                   status == 410 ? "410, the server has forgotten the version to go on from"
                                 : "the server does not know the version to go on from; it was "
                                   "restored or is another one");
        return;
    }
    if (status == 403)
        forbidden(watch);
    else
        say(watch, "the server answers %ld: %.*s", status, (int)words.size,
            words.data == NULL ? "" : words.data);
    watch_failed(watch, class, retry_after_ns, now_ns);
    if (phase == PHASE_WATCH && class == FAILURE_500 && watch->failures == SERVER_FAILURES_MAX)
        watch->needs_probe = true; // it may be the version that it stumbles over
}

// -- the ends of each request -------------------------------------------------------------------

static void connection_lost(struct watch *watch, enum watch_phase phase,
                            const struct http_stream_result *result, uint64_t now_ns) {
    struct kubernetes_receiver *receiver = watch->receiver;
    // Each watch meets it in its own words, and each try; one sentence is enough.
    if (receiver->connection_trouble[0] == '\0')
        snprintf(receiver->connection_trouble, sizeof receiver->connection_trouble, "%.*s: %.140s",
                 90, receiver->access.server, result->problem);
    snprintf(watch->trouble, sizeof watch->trouble, "%s", receiver->connection_trouble);
    watch_failed(watch, FAILURE_CONNECTION, 0, now_ns);
    watch->needs_probe = true; // the server may come back from a backup
    if (phase == PHASE_STREAMED_LIST && watch->listing && watch->failures >= LIST_FAILURES_MAX)
        watch->streamed_lists = false;
}

static void page_ended(struct watch *watch, uint64_t now_ns) {
    bool last = false;
    watch->phase = PHASE_PAGE;
    bool fine = watch_take_page(watch, &last);
    watch->phase = PHASE_IDLE;
    if (fine) {
        watch_succeeded(watch, now_ns);
        return;
    }
    watch->more[0] = '\0';
    say(watch, "what %s answers is not a list", watch->receiver->access.server);
    watch_failed(watch, FAILURE_CONTENT, 0, now_ns);
}

// The server ended it, which is as it should be, or an ERROR or garbage did.
static void stream_ended(struct watch *watch, enum watch_phase phase, uint64_t now_ns) {
    if (watch->error_code != 0) {
        struct slice text = slice_of(watch->error_text);
        refused(watch, phase, (long)watch->error_code, text, 0, now_ns);
        return;
    }
    if (watch->garbage) {
        say(watch, "what %s sends is not a watch", watch->receiver->access.server);
        watch_failed(watch, FAILURE_CONTENT, 0, now_ns);
        if (watch->failures >= SERVER_FAILURES_MAX)
            watch->needs_probe = true;
        return;
    }
    if (watch->listing) {
        watch->streamed_lists = false; // it ended before the state was complete
        watch->listing = false;
        return;
    }
    watch_succeeded(watch, now_ns);
    bool soon = now_ns - watch->begun_ns < SECOND_NS;
    watch->not_before_ns = soon ? watch->begun_ns + SECOND_NS : now_ns;
    if (watch->line_count > 0) {
        watch->empty_ends = 0;
        return;
    }
    // Old servers end a watch from a version that they have forgotten in this way.
    watch->empty_ends = soon ? watch->empty_ends + 1 : 0;
    if (watch->empty_ends >= EMPTY_ENDS_MAX)
        list_again(watch, now_ns, "watches from the version end at once");
    else
        watch->needs_probe = true;
}

void watch_ended(struct watch *watch, uint64_t now_ns) {
    enum watch_phase phase = watch->phase;
    assert(phase != PHASE_IDLE && watch->stream != NULL);
    struct http_stream_result result = http_stream_result(watch->stream);
    bool fine = result.status >= 200 && result.status < 300;
    watch->phase = PHASE_IDLE;
    watch->not_before_ns = now_ns;
    if (result.status != 0 && !fine)
        refused(watch, phase, result.status, result.reply, result.retry_after_ns, now_ns);
    else if (result.stopped && phase == PHASE_PAGE) {
        say(watch, "a page of the list is too long; lower page_size");
        watch_failed(watch, FAILURE_CONTENT, 0, now_ns);
    } else if (!fine || (!result.whole && !result.stopped))
        connection_lost(watch, phase, &result, now_ns);
    else if (phase == PHASE_PAGE)
        page_ended(watch, now_ns);
    else if (phase == PHASE_PROBE) {
        watch->needs_probe = false;
        watch_succeeded(watch, now_ns);
    } else
        stream_ended(watch, phase, now_ns);
    http_stream_free(watch->stream);
    watch->stream = NULL;
}
