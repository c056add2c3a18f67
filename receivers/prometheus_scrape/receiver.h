// SPDX-License-Identifier: Apache-2.0
// What the files of the receiver share. Everything happens on the thread of `run`, but for start
// and stop, which come before and after it.
#pragma once

#include "base/http/client.h"
#include "base/http/client_set.h"
#include "config/client_options.h"
#include "pipeline/component/component.h"
#include "pipeline/component/feed.h"
#include "receivers/prometheus_scrape/split.h"
#include "receivers/records/options.h"
#include "receivers/records/polling.h"
#include "receivers/records/sink.h"

enum {
    SCRAPE_MAGIC = 0x53637270,
    SCRAPE_TARGETS_MAX = 1024,
    SCRAPE_BODIES_KEPT = 4, // memory for answers that is kept for the next ones
};

enum scrape_compression { COMPRESSION_NONE, COMPRESSION_GZIP };

struct scrape_config {
    struct text_list endpoints;
    struct duration interval, timeout;
    const char *node_label; // NULL: those that exporters are known to set
    int compression;        // enum scrape_compression
    struct byte_size max_scrape_size;
    struct http_client_config client; // without an endpoint
    struct record_config records;     // job_id, node, quarantine; the others are not set
};

// An entry of `endpoints`: URL, or NODE=URL.
struct scrape_endpoint {
    struct slice node; // empty: not given
    const char *url;
};
struct scrape_endpoint scrape_endpoint_of(const char *entry);
// The name of the machine that a URL names: its host, and of a loopback address this machine's own
// name. A copy of at most RECORD_NODE_MAX bytes, the caller's to give back (memory_give).
char *scrape_host_of(const char *url);

// One that is asked.
struct scrape_target {
    char *name;        // origin of the URL: all that messages show
    char *site;        // for logs, which hold back what one site repeats: each target has its own
    struct slice node; // of all its samples; empty: their labels tell
    char *host;        // the node when no label does
    struct http_client *client;
    struct source *source;
    struct polling polling;
    struct polled polled;
    bool under_way;
    bool said_nothing; // that nothing it says is looked for
    uint64_t began_ns; // of the call under way: Unix …
    uint64_t began_monotonic_ns;
    struct metric *nanoseconds, *bytes, *taken, *other, *refused;
};

struct scrape_receiver {
    uint32_t magic;
    const struct scrape_config *config;
    const struct component_context *context;
    struct feed *feed;
    struct http_client_set *set;
    struct scrape_target *targets;
    uint32_t target_count;
    struct buffer bodies[SCRAPE_BODIES_KEPT];
    uint32_t body_count;
    struct scrape_split split;
    struct record_sink sink;
    const struct scrape_target *at_hand; // whose answer is read
    bool in_trouble;
};

// targets.c: opens clients, counters and names. After a failure scrape_targets_close is to be
// called all the same.
enum status scrape_targets_open(struct scrape_receiver *receiver, struct error *error) MUST_USE;
void scrape_targets_close(struct scrape_receiver *receiver);

// answer.c: what became of a call.
void scrape_answer(struct scrape_receiver *receiver, struct scrape_target *target,
                   enum http_class class, const struct error *error);
// NULL when the reply's head says that metrics text came whole, else a clause that says what is
// wrong. `open_metrics`: which of the two formats it says it is.
const char *scrape_reply_problem(const struct http_client *client, bool takes_gzip,
                                 bool *open_metrics);

// run.c
enum status scrape_run(void *instance, struct feed *feed, struct error *error);
