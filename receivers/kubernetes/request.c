// SPDX-License-Identifier: Apache-2.0
// What a watch asks next: a list (streamed or in pages), whether its version is known, or a watch.
#include "base/clock.h"
#include "receivers/kubernetes/receiver.h"

#include <stdio.h>

enum { REPLY_MAX = 64 * 1024, PAGE_TIMEOUT_S = 60, MARGIN_S = 30 };

static const uint64_t SECOND_NS = 1000000000;

// SplitMix64 (Steele, Lea and Flood), seeded by the clock: only spreads requests over time.
uint64_t kubernetes_random(struct kubernetes_receiver *receiver, uint64_t low, uint64_t high) {
    assert(low <= high);
    uint64_t z = receiver->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return low + (z ^ (z >> 31)) % (high - low + 1);
}

static enum watch_phase next_phase(const struct watch *watch) {
    if (watch->needs_list || watch->version[0] == '\0')
        return watch->streamed_lists ? PHASE_STREAMED_LIST : PHASE_PAGE;
    return watch->needs_probe ? PHASE_PROBE : PHASE_WATCH;
}

// A server may be asked for all that is unreserved; the rest is percent-encoded (RFC 3986).
void kubernetes_escape(struct buffer *out, const char *text) {
    static const char plain[] = "-._~";
    for (const char *c = text; *c != '\0'; c++) {
        bool alone = (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') ||
                     (*c >= 'A' && *c <= 'Z') || strchr(plain, *c) != NULL;
        if (alone)
            buffer_append_char(out, *c);
        else
            buffer_append_format(out, "%%%02X", (unsigned)(unsigned char)*c);
    }
}

static void append_query(const struct watch *watch, uint64_t watch_s, struct buffer *out) {
    const struct kubernetes_config *config = watch->receiver->config;
    switch (watch->phase) {
    case PHASE_STREAMED_LIST:
        buffer_append_format(out,
                             "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
                             "&allowWatchBookmarks=true&timeoutSeconds=%llu",
                             (unsigned long long)watch_s);
        break;
    case PHASE_PAGE:
        buffer_append_format(out, "limit=%lld%s", (long long)config->page_size,
                             watch->more[0] == '\0' ? "" : "&continue=");
        kubernetes_escape(out, watch->more);
        break;
    case PHASE_PROBE:
        buffer_append_text(out, "limit=1&resourceVersionMatch=NotOlderThan&resourceVersion=");
        kubernetes_escape(out, watch->version);
        break;
    default:
        buffer_append_format(
            out, "watch=true&allowWatchBookmarks=true&timeoutSeconds=%llu&resourceVersion=",
            (unsigned long long)watch_s);
        kubernetes_escape(out, watch->version);
    }
}

static enum status send_request(struct watch *watch, struct error *error) {
    static const char *const headers[] = {"Accept: application/json"};
    struct kubernetes_receiver *receiver = watch->receiver;
    uint64_t least_s = (uint64_t)receiver->config->watch_timeout.ns / SECOND_NS;
    uint64_t watch_s = kubernetes_random(receiver, least_s, 2 * least_s);
    bool watches = watch->phase == PHASE_WATCH || watch->phase == PHASE_STREAMED_LIST;
    struct buffer url;
    buffer_init(&url, KUBERNETES_URL_MAX);
    buffer_append_text(&url, watch->url);
    buffer_append_char(&url, strchr(watch->url, '?') == NULL ? '?' : '&');
    append_query(watch, watch_s, &url);
    buffer_append_char(&url, '\0');
    struct http_stream_options options = {
        .url = url.data,
        .headers = headers,
        .header_count = 1,
        .bearer_token = api_access_token(&receiver->access, false, NULL),
        .tls = &receiver->access.tls,
        .timeout_ns = (watches ? watch_s + MARGIN_S : PAGE_TIMEOUT_S) * SECOND_NS,
        .take = watch_take,
        .context = watch,
        .reply_max = REPLY_MAX};
    enum status status =
        url.failed ? error_set(error, STATUS_LIMIT, "the request's URL is too long")
                   : http_stream_begin(receiver->streams, &watch->stream, &options, error);
    buffer_release(&url);
    return status;
}

void watch_begin(struct watch *watch, uint64_t now_ns) {
    struct error error = {.message = ""};
    assert(watch->phase == PHASE_IDLE && watch->stream == NULL);
    watch->phase = next_phase(watch);
    watch->begun_ns = watch->heard_ns = now_ns;
    watch->line_count = 0;
    watch->error_code = 0;
    watch->garbage = false;
    watch_lines_reset(&watch->lines);
    buffer_reset(&watch->page);
    if (watch->phase == PHASE_STREAMED_LIST ||
        (watch->phase == PHASE_PAGE && watch->more[0] == '\0'))
        watch_begin_list(watch);
    else if (watch->phase == PHASE_WATCH)
        metric_add(watch->counters.watches, 1);
    if (send_request(watch, &error) == STATUS_OK)
        return;
    watch->phase = PHASE_IDLE;
    snprintf(watch->trouble, sizeof watch->trouble, "%.*s", KUBERNETES_TROUBLE_MAX - 1,
             error.message);
    watch_failed(watch, FAILURE_CONNECTION, 0, now_ns);
}
