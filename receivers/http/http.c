// SPDX-License-Identifier: Apache-2.0
// The HTTP receiver as a component: its options, and listening from start to stop.
//
// The port is bound at the start, so that one that is taken is told at once; until the journal has
// been read, requests are put off with 503.
#include "pipeline/component/component.h"

#include "base/http/endpoint.h"
#include "base/http/late.h"
#include "base/log.h"
#include "base/memory.h"
#include "config/problem.h"
#include "pipeline/component/record_frame.h"
#include "receivers/decode/telemetry/telemetry.h"
#include "receivers/http/receiver.h"
#include "receivers/records/options.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define GRACE_NS 5000000000ull // for requests under way when it stops

enum {
    TEND_MS = 1000,
    SPARE_ITEMS = 16384,
    SPARE_WORKS = 16,
    SPARE_ROWS = 512 << 10,
    ARENA_BLOCK = 64 << 10,
    GRPC_PORT = 4317 // of OTLP, by custom
};

static const char *const ack_choices[] = {"accepted", "stored", NULL};

static const struct option timeout_rows[] = {
    OPTION(struct http_timeouts, headers, OPTION_DURATION, .default_value = "10s", .min = 0.1,
           .max = 3600, .help = "for a request's headers to come"),
    OPTION(struct http_timeouts, body, OPTION_DURATION, .default_value = "30s", .min = 0.1,
           .max = 3600, .help = "for its body to come"),
    OPTION(struct http_timeouts, write, OPTION_DURATION, .default_value = "30s", .min = 0.1,
           .max = 3600, .help = "for the answer to be taken"),
    OPTION(struct http_timeouts, idle, OPTION_DURATION, .default_value = "60s", .min = 0.1,
           .max = 86400, .help = "that a connection may rest between requests"),
};

static const struct option options[] = {
    OPTION(struct http_config, endpoint, OPTION_TEXT, .claim = CLAIM_ENDPOINT, .address = true,
           .default_value = "127.0.0.1:4318",
           .help = "`HOST:PORT`, `[IPV6]:PORT` or `unix:/PATH` to listen on"),
    OPTION(
        struct http_config, ack, OPTION_CHOICE, .default_value = "accepted", .choices = ack_choices,
        .help = "when a request is answered: once its events are in the pipelines (`accepted`), or "
                "once they are on disk (`stored`, needs the extension file_storage)"),
    RECORD_OPTIONS(struct http_config, records),
    OPTION(struct http_config, max_request_size, OPTION_SIZE, .default_value = "20MiB", .min = 1024,
           .max = 64.0 * 1024 * 1024,
           .help = "a larger body is refused, before and after decompression"),
    OPTION(struct http_config, max_record_size, OPTION_SIZE, .default_value = "1MiB", .min = 1024,
           .max = 64.0 * 1024 * 1024,
           .help = "a longer record is refused; the others of its request are taken"),
    OPTION(struct http_config, max_pending_size, OPTION_SIZE, .default_value = "128MiB",
           .min = 65536, .max = 64.0 * 1024 * 1024 * 1024,
           .help = "memory for all bodies that are being read; beyond it requests are put off"),
    OPTION(struct http_config, max_connections, OPTION_INT, .default_value = "1024", .min = 1,
           .max = 65536, .help = "connections at once; further ones wait to be let in"),
    OPTION(struct http_config, max_connections_per_address, OPTION_INT, .default_value = "0",
           .min = 0, .max = 65536,
           .help = "connections at once from one address; further ones are closed; 0: no bound"),
    OPTION(struct http_config, threads, OPTION_INT, .default_value = "2", .min = 1, .max = 64,
           .help = "threads that read requests, whatever the number of connections"),
    OPTION(struct http_config, timeouts, OPTION_GROUP, .rows = timeout_rows,
           .row_count = OPTION_COUNT(timeout_rows), .help = "how long a client may take"),
    SERVER_SECURITY_OPTIONS(struct http_config),
    OPTION(struct http_config, max_idempotency_keys, OPTION_INT, .default_value = "65536", .min = 1,
           .max = 16777216,
           .help =
               "how many values of Idempotency-Key are remembered; the oldest is forgotten first"),
    OPTION(struct http_config, max_senders, OPTION_INT, .default_value = "10000", .min = 1,
           .max = 1000000,
           .help = "how many culprits are known whose records are told from repeats; the one that "
                   "sent nothing for longest is forgotten first"),
};

static void http_validate(const void *config, struct problem_list *problems) {
    const struct http_config *http = config;
    endpoint_check(http->endpoint, "endpoint", problems);
    server_security_check(&http->tls, &http->auth, problems);
    record_options_check(&http->records, problems);
    if (http->max_record_size.bytes > http->max_request_size.bytes)
        problem_add(problems, "max_record_size",
                    "it is larger than max_request_size, so that no record could be that long");
    if (http->max_pending_size.bytes < http->max_request_size.bytes * 2)
        problem_add(problems, "max_pending_size",
                    "it must be at least twice max_request_size, or the largest request that is "
                    "allowed would not fit");
}

// -- works --------------------------------------------------------------------------------------

struct http_work *http_work_take(struct http_receiver *receiver) {
    lock_take(&receiver->work_lock);
    struct http_work *work = receiver->spare;
    if (work != NULL)
        receiver->spare = work->next;
    lock_release(&receiver->work_lock);
    if (work == NULL) {
        work = memory_zero(1, sizeof *work);
        arena_init(&work->arena, ARENA_BLOCK);
        buffer_init(&work->plain, (size_t)2 * STORAGE_BLOB_MAX);
    }
    work->count = 0;
    work->foreseen_count = work->foreseen_next = 0;
    work->packed = false;
    work->frames = false;
    work->key = NULL;
    work->result = (struct repeat_result){.status = 200};
    work->repeated = false;
    work->ticket = 0;
    work->listed = 0;
    return work;
}

static void drop_rows(struct http_work *work) {
    memory_give(work->rows);
    work->rows = NULL;
    work->rows_capacity = 0;
    buffer_release(&work->plain);
}

void http_work_free(struct http_work *work) {
    drop_rows(work);
    http_foreseen_drop(work);
    memory_give(work->lz4);
    memory_give(work->items);
    arena_release(&work->arena);
    memory_give(work);
}

void http_work_give(struct http_receiver *receiver, struct http_work *work) {
    assert(work->count <= work->capacity);
    // What a large request needed is not kept for small ones.
    if (work->capacity > SPARE_ITEMS) {
        memory_give(work->items);
        work->items = NULL;
        work->capacity = 0;
        arena_release(&work->arena);
        arena_init(&work->arena, ARENA_BLOCK);
    }
    if (work->rows_capacity > SPARE_ROWS || work->plain.capacity > SPARE_ROWS)
        drop_rows(work);
    arena_reset(&work->arena);
    lock_take(&receiver->work_lock);
    uint32_t spare = 0;
    for (const struct http_work *at = receiver->spare; at != NULL; at = at->next)
        spare++;
    bool keep = spare < SPARE_WORKS;
    if (keep) {
        work->next = receiver->spare;
        receiver->spare = work;
    }
    lock_release(&receiver->work_lock);
    if (!keep)
        http_work_free(work);
}

// -- what is counted ----------------------------------------------------------------------------

static const struct metric_family answers_family = {
    .name = "culprit_http_server_requests_total",
    .help = "Requests answered, by status.",
    .type = METRIC_COUNTER,
};

static const struct metric_family repeated_family = {
    .name = "culprit_http_receiver_repeated_records_total",
    .help = "Records of other culprits that had been taken before, which were dropped.",
    .type = METRIC_COUNTER,
};

static const int codes[HTTP_CODES - 1] = {200, 202, 400, 401, 403, 404, 405,
                                          408, 413, 415, 429, 500, 503};

static void find_counters(struct http_receiver *receiver) {
    receiver->repeated = METRIC(&repeated_family, "receiver", receiver->context->id);
    for (int i = 0; i < HTTP_CODES; i++) {
        char code[8] = "other";
        if (i < HTTP_CODES - 1)
            snprintf(code, sizeof code, "%d", codes[i]);
        receiver->answers[i] =
            METRIC(&answers_family, "receiver", receiver->context->id, "code", code);
    }
}

static void count_answer(void *context, int status) {
    struct http_receiver *receiver = http_receiver_of(context);
    int i = 0;
    while (i < HTTP_CODES - 1 && codes[i] != status)
        i++;
    metric_add(receiver->answers[i], 1);
}

// -- start and stop -----------------------------------------------------------------------------

static int admit(void *context, uint64_t bytes, uint32_t *retry_after_s) {
    (void)bytes;
    return http_is_blocked(context, retry_after_s) ? 503 : 0;
}

static enum status listen_now(struct http_receiver *receiver, struct error *error) {
    assert(receiver->server == NULL);
    const struct http_config *config = receiver->config;
    struct http_server_options server = {
        .endpoint = config->endpoint,
        .paths =
            {{.path = "/v1/events",
              .methods = "POST",
              .content_types =
                  "application/json application/x-ndjson application/jsonl "
                  "application/json-lines application/x-jsonlines text/plain " RECORD_FRAMES_TYPE,
              .handler = http_events,
              .context = receiver},
             {.path = "/v1/logs",
              .methods = "POST",
              .content_types = "application/json application/x-protobuf",
              .handler = http_otlp,
              .write_error = http_otlp_error,
              .context = receiver}},
        .path_count = 2,
        .tls = {config->tls.cert_file, config->tls.key_file, config->tls.client_ca_file},
        .bearer_token = secret_reveal(config->auth.bearer_token),
        .bearer_token_file = config->auth.bearer_token_file,
        .max_request_bytes = config->max_request_size.bytes,
        .max_pending_bytes = config->max_pending_size.bytes,
        .max_connections = (uint32_t)config->max_connections,
        .max_connections_per_address = (uint32_t)config->max_connections_per_address,
        .threads = (uint32_t)config->threads,
        .header_timeout_ns = (uint64_t)config->timeouts.headers.ns,
        .body_timeout_ns = (uint64_t)config->timeouts.body.ns,
        .write_timeout_ns = (uint64_t)config->timeouts.write.ns,
        .idle_timeout_ns = (uint64_t)config->timeouts.idle.ns,
        .admit = admit,
        .admit_context = receiver,
        .answered = count_answer,
        .answered_context = receiver,
        .speaks =
            "culprit reads OTLP over HTTP/1.1, which exporters send with the protocol "
            "http/protobuf or http/json, mostly to port 4318",
        .site = receiver->context->site,
    };
    return http_server_start(&receiver->server, &server, error);
}

static void say_open(const struct http_receiver *receiver) {
    const struct http_config *config = receiver->config;
    bool guarded = secret_reveal(config->auth.bearer_token) != NULL ||
                   config->auth.bearer_token_file != NULL || config->tls.client_ca_file != NULL;
    if (!endpoint_is_local(config->endpoint) && !guarded)
        log_write(LOG_WARN, (struct log_site){"C2107", receiver->context->site},
                  "everybody who reaches %s can send events: set auth.bearer_token_file or "
                  "tls.client_ca_file",
                  config->endpoint);
}

static enum status http_start(void *instance, const void *config,
                              const struct component_context *context, struct error *error) {
    struct http_receiver *receiver = instance;
    assert(receiver->magic == 0);
    receiver->magic = HTTP_RECEIVER_MAGIC;
    receiver->config = config;
    receiver->context = context;
    receiver->store = context->store;
    lock_init(&receiver->lock);
    lock_init(&receiver->work_lock);
    buffer_init(&receiver->row, STORAGE_BLOB_MAX);
    repeats_init(&receiver->repeats, (uint32_t)receiver->config->max_idempotency_keys);
    http_shares_init(&receiver->shares);
    find_counters(receiver);
    receiver->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (receiver->wake < 0)
        return error_set_os(error, STATUS_OS, errno, "an eventfd cannot be made");
    if (receiver->config->ack == ACK_STORED && receiver->store == NULL)
        return error_set(error, STATUS_CONFIG,
                         "ack: stored needs a place to keep requests: add the extension "
                         "file_storage and name it in service.extensions, or set ack: accepted");
    receiver->decoder = record_options_decoder(&receiver->config->records);
    enum status status = record_sink_open(&receiver->sink, &receiver->config->records,
                                          receiver->config->max_record_size, context, error);
    if (status == STATUS_OK && receiver->store != NULL)
        status = http_completer_start(receiver, error);
    if (status == STATUS_OK)
        status = listen_now(receiver, error);
    return status;
}

static void http_stop(void *instance) {
    struct http_receiver *receiver = instance;
    if (receiver->magic != HTTP_RECEIVER_MAGIC)
        return;
    http_server_stop(receiver->server, 0, false);
    receiver->server = NULL;
    http_completer_stop(receiver);
    record_sink_close(&receiver->sink);
    repeats_release(&receiver->repeats);
    http_senders_release(&receiver->senders);
    http_shares_release(&receiver->shares);
    buffer_release(&receiver->row);
    while (receiver->spare != NULL) {
        struct http_work *work = receiver->spare;
        receiver->spare = work->next;
        http_work_free(work);
    }
    if (receiver->wake >= 0)
        close(receiver->wake);
    lock_destroy(&receiver->work_lock);
    lock_destroy(&receiver->lock);
    receiver->magic = 0;
}

// -- running ------------------------------------------------------------------------------------

static void say_listening(const struct http_receiver *receiver) {
    const struct http_config *config = receiver->config;
    char shown[ENDPOINT_SHOWN_MAX];
    endpoint_show(config->endpoint, http_server_port(receiver->server), shown);
    if (http_server_port(receiver->server) == GRPC_PORT)
        log_write(
            LOG_WARN, (struct log_site){"C2112", receiver->context->site},
            "clients expect gRPC at port %d, which is not spoken here: that of OTLP over HTTP "
            "is 4318",
            GRPC_PORT);
    log_write(LOG_INFO, (struct log_site){"C2108", receiver->context->site},
              "listening for %s on %s", config->tls.cert_file == NULL ? "HTTP" : "HTTPS", shown);
}

// Sleeps until it is to stop; while the journal holds entries it looks after them once a second,
// and at once: what was safe before a reload must go however often it is reloaded.
static void wait_for_stop(struct http_receiver *receiver, struct feed *feed) {
    if (http_journal_needs_tending(receiver))
        http_journal_tend(receiver);
    struct pollfd events[] = {{.fd = feed_stop_descriptor(feed), .events = POLLIN},
                              {.fd = receiver->wake, .events = POLLIN}};
    while (!feed_stopping(feed)) {
        bool tend = http_journal_needs_tending(receiver);
        // While it is tended a new entry need not wake it.
        int ready = poll(events, tend ? 1 : 2, tend ? TEND_MS : -1);
        if (ready < 0 && errno != EINTR)
            return;
        uint64_t count;
        ssize_t got = read(receiver->wake, &count, sizeof count);
        (void)got;
        if (tend && !feed_stopping(feed))
            http_journal_tend(receiver);
    }
}

static enum status http_run(void *instance, struct feed *feed, struct error *error) {
    struct http_receiver *receiver = http_receiver_of(instance);
    receiver->source = feed_source(feed, slice_of(receiver->context->id));
    record_options_format(receiver->source, receiver->decoder, &receiver->sink.known);
    record_sink_attach(&receiver->sink, feed);
    say_open(receiver);
    say_listening(receiver);
    // Requests are put off until the journal has been read.
    atomic_store(&receiver->restoring, true);
    atomic_store(&receiver->feed, feed);
    enum status status = http_journal_restore(receiver, error);
    feed_steps(feed, receiver->senders.count == 0);
    feed_caught_up(feed);
    atomic_store(&receiver->restoring, false);
    if (status == STATUS_OK)
        wait_for_stop(receiver, feed);
    // A reload takes the socket up again, so that it refuses nobody.
    http_server_stop(receiver->server, GRACE_NS, feed_pausing(feed));
    receiver->server = NULL;
    atomic_store(&receiver->feed, NULL);
    return status;
}

static bool http_needs_store(const void *config) {
    return ((const struct http_config *)config)->ack == ACK_STORED;
}

static void http_guarantee(const void *config, const char *id, bool store, struct buffer *out) {
    if (((const struct http_config *)config)->ack == ACK_STORED)
        buffer_append_format(out,
                             " %s answers 200 only when the request is on the disk: what was "
                             "acknowledged survives a crash (ack: stored).",
                             id);
    else
        buffer_append_format(out,
                             " What %s acknowledged%s is lost in a crash (ack: accepted); ack: "
                             "stored%s keeps it.",
                             id, store ? " since the last checkpoint" : "",
                             store ? "" : ", with a store,");
}

static const struct component_alias aliases[] = {
    {"otlp", "it takes OTLP logs over HTTP/1.1, as POST /v1/logs"},
};

const struct component_type receiver_http = {
    .name = "http",
    .summary = "Takes events and OTLP logs that are posted over HTTP.",
    .aliases = aliases,
    .alias_count = sizeof aliases / sizeof aliases[0],
    .kind = COMPONENT_RECEIVER,
    .stability = STABILITY_BETA,
    .options = options,
    .option_count = OPTION_COUNT(options),
    .config_size = sizeof(struct http_config),
    .instance_size = sizeof(struct http_receiver),
    .library = &http_server_library,
    .validate = http_validate,
    .start = http_start,
    .stop = http_stop,
    .receiver = {.needs_store = http_needs_store, .run = http_run, .guarantee = http_guarantee},
};
