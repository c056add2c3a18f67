// SPDX-License-Identifier: Apache-2.0
// What the files of the Kubernetes receiver share.
//
// A watch is one resource in one namespace (or in all). It lists, then watches from the version of
// the list, and lists again when the server has forgotten that version. All requests are under way
// on one thread, that of `run`.
#pragma once

#include "base/http/stream.h"
#include "base/metrics/metrics.h"
#include "config/kubernetes_access.h"
#include "config/option.h"
#include "pipeline/component/component.h"
#include "pipeline/component/feed.h"
#include "receivers/kubernetes/lines.h"
#include "receivers/kubernetes/meta.h"
#include "receivers/kubernetes/objects.h"

enum {
    KUBERNETES_NAMESPACES_MAX = 64,
    KUBERNETES_TROUBLE_MAX = 480,
    KUBERNETES_QUERY_MAX = 1024, // bytes of a selector, escaped
    KUBERNETES_URL_MAX = 4096,
    KUBERNETES_CONTINUE_MAX = 1024,
};

enum kubernetes_resource { RESOURCE_EVENTS, RESOURCE_PODS, RESOURCE_NODES, RESOURCE_COUNT };
extern const char *const kubernetes_resource_names[]; // "events", ended by NULL

struct selector_config {
    const char *events, *pods, *nodes;
};

struct kubernetes_config {
    struct api_access_config access;
    struct text_list resources;  // empty: all
    struct text_list namespaces; // empty: all
    const char *node;
    struct selector_config field_selectors, label_selectors;
    struct duration watch_timeout;
    int64_t page_size;
    int64_t max_objects;
    struct byte_size max_object_size;
};

// Statuses of requests that failed, as counters tell them.
enum failure_class {
    FAILURE_CONNECTION, // no answer, or none that is whole
    FAILURE_CONTENT,    // an answer that makes no sense
    FAILURE_400,
    FAILURE_401,
    FAILURE_403,
    FAILURE_404,
    FAILURE_410,
    FAILURE_429,
    FAILURE_500,
    FAILURE_CLASS_COUNT
};

struct kubernetes_counters {
    struct metric *objects[WATCH_EVENT_TYPE_COUNT];
    struct metric *repeated;
    struct metric *lists;
    struct metric *gaps;
    struct metric *watches;
    struct metric *too_long;
    struct metric *failures[FAILURE_CLASS_COUNT];
    struct metric *last_success_ns;
};

enum watch_phase {
    PHASE_IDLE,
    PHASE_STREAMED_LIST, // a watch that begins with the state
    PHASE_PAGE,
    PHASE_PROBE, // whether the server knows of the version
    PHASE_WATCH,
};

struct kubernetes_receiver;

struct watch {
    struct kubernetes_receiver *receiver;
    enum kubernetes_resource resource;
    const char *namespace; // NULL: all
    char *url;             // of the collection, with the selectors: "…/pods?fieldSelector=…"
    struct source *source;
    struct known_objects objects;
    struct kubernetes_counters counters;

    char version[VERSION_MAX + 1]; // to watch from; "": list first
    uint64_t number;               // of records, bookmarks and pages handled: the position
    bool needs_list, needs_probe;
    bool listed;         // once, maybe before the start
    bool behind;         // what was there at the start has not all come
    bool listing;        // what comes is the state
    bool streamed_lists; // the server has them
    char more[KUBERNETES_CONTINUE_MAX];
    char listed_version[VERSION_MAX + 1]; // of the first page

    enum watch_phase phase;
    struct http_stream *stream;
    struct watch_lines lines;
    struct buffer page;
    uint64_t begun_ns, heard_ns; // monotonic: of the request, of its last bytes
    uint64_t line_count;         // of this request
    int64_t error_code;          // of an ERROR event; 0: none
    char error_text[KUBERNETES_TROUBLE_MAX / 2];
    bool garbage;

    uint64_t not_before_ns; // monotonic
    uint64_t backoff_ns, failed_ns, answered_ns;
    uint32_t failures;     // in a row
    uint32_t empty_ends;   // in a row
    uint64_t relisted_ns;  // when it was to be listed again last; 0: never
    uint64_t relist_ns;    // the wait before that
    uint32_t unauthorized; // in a row
    bool active;           // its source holds evaluations back
    bool full_said;
    char trouble[KUBERNETES_TROUBLE_MAX]; // "": none
    enum failure_class trouble_class;
};

struct kubernetes_receiver {
    const struct kubernetes_config *config;
    const struct component_context *context;
    struct api_access access;
    bool started;
    struct http_streams *streams;
    struct feed *feed;
    struct arena scratch; // records that are made here, until the feed is flushed
    struct watch *watches;
    uint32_t watch_count;
    bool caught_up;
    uint64_t random;
    uint64_t tended_ns;
    char trouble[KUBERNETES_TROUBLE_MAX * 2];
    // How it began that the server cannot be reached, for all watches; "": it can.
    char connection_trouble[KUBERNETES_TROUBLE_MAX / 2];
};

// -- watches.c: which there are -------------------------------------------------------------------

void watches_make(struct kubernetes_receiver *receiver);
void watches_release(struct kubernetes_receiver *receiver);
// Opens the source and takes up its position.
void watch_attach(struct watch *watch, struct feed *feed);
void watch_detach(struct watch *watch);

// -- request.c: what is asked ---------------------------------------------------------------------

// Sends the next request of an idle watch.
void watch_begin(struct watch *watch, uint64_t now_ns);
// Appends what a query may hold.
void kubernetes_escape(struct buffer *out, const char *text);
// A number from `low` to `high`.
uint64_t kubernetes_random(struct kubernetes_receiver *receiver, uint64_t low, uint64_t high);

// -- answer.c: what came of it --------------------------------------------------------------------

// The request is over.
void watch_ended(struct watch *watch, uint64_t now_ns);
// The server answers as it should.
void watch_succeeded(struct watch *watch, uint64_t now_ns);
void watch_failed(struct watch *watch, enum failure_class class, uint64_t retry_after_ns,
                  uint64_t now_ns);
// Ends what is under way.
void watch_cancel(struct watch *watch);

// -- deliver.c: what goes to the feed -------------------------------------------------------------

// Bytes of a body; http_stream_options.take.
bool watch_take(void *context, struct slice bytes);
void watch_begin_list(struct watch *watch);
// Hands over a page. False: it is not one. `*last`: there is no more.
bool watch_take_page(struct watch *watch, bool *last);

// -- run.c ----------------------------------------------------------------------------------------

enum status kubernetes_run(void *instance, struct feed *feed, struct error *error);
enum status kubernetes_list(void *instance, struct source_list *sources, struct error *error);
enum status kubernetes_read(void *instance, struct feed *feed, struct slice path,
                            struct error *error);
