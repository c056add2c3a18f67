// SPDX-License-Identifier: Apache-2.0
// What the files of the Kubernetes exporter share: a verdict as a line, what was written of each
// verdict, and the requests to the API server.
//
// On its way from encode to send a verdict is one line of JSON (encode.c). send keeps the newest
// line of each verdict with what was written on its objects, so that a change is counted in the
// series of an Event, and an object that a verdict names no longer is told so.
//
// All times are Unix nanoseconds unless a name says otherwise. One thread, but for encode.
#pragma once

#include "base/buffer.h"
#include "base/hash/digest.h"
#include "base/http/client.h"
#include "base/metrics/metrics.h"
#include "config/kubernetes_access.h"
#include "pipeline/component/component.h"

#include <jansson.h>

enum {
    KUBE_NOTE_MAX = 1024,    // bytes of an Event's note, by the API server
    KUBE_INSTANCE_MAX = 128, // of reportingInstance
    KUBE_UID_MAX = 63,
    KUBE_LINE_MAX = 1 << 20,
    KUBE_BODY_MAX = 64 << 10,
    KUBE_RIGHTS_MAX = 64, // rights that are known to be missing
    KUBE_UIDS_MAX = 256,  // pods whose uid is remembered
    KUBE_NODES_MAX = 1024,
};

struct condition_config {
    bool enabled;
    const char *type;
    int min_severity; // enum severity
    struct duration heartbeat_interval;
    struct duration resolve_after; // 0: never
};

struct kube_config {
    struct api_access_config access;
    const char *namespace; // of pods without one; NULL: that of the account
    const char *instance;  // NULL: the host's name
    bool look_up_pods;
    struct duration update_interval;
    int64_t max_objects;
    int64_t max_verdicts;
    struct condition_config node_condition;
    struct route_config route;
    struct sending_config sending;
};

// -- encode.c: from a verdict to a line -----------------------------------------------------------

// "nccl_hang" as "NcclHang", as reasons are written.
void kube_reason(const char *pattern, struct buffer *out);
// Appends the line. A verdict that does not match the configuration's route is written as
// withdrawn: it may have matched before. `namespace`: of pods without one; "": not known.
// -> how many objects it names.
uint32_t kube_encode(const struct kube_config *config, const char *namespace,
                     const struct verdict *verdict, struct buffer *out);

// -- table.c: verdicts that were written of -------------------------------------------------------

enum kube_kind { KUBE_POD, KUBE_NODE };
enum kube_state { KUBE_OPEN, KUBE_RESOLVED, KUBE_WITHDRAWN };

struct kube_object {
    enum kube_kind kind;
    enum entity_role role;
    bool stays;     // the newest line names it; false: it is told that it is over, and forgotten
    bool held;      // what the newest line says is not written yet
    bool condition; // of this node there is a problem
    char namespace[KUBERNETES_LABEL_MAX + 1]; // of a node ""
    char name[KUBERNETES_SUBDOMAIN_MAX + 1];
    char uid[KUBE_UID_MAX + 1];
    char event[DIGEST_ID_SIZE]; // of the Event that was written last; "": none was
    uint32_t count;             // of its series
    uint64_t written_ns;
};

struct kube_verdict {
    char id[VERDICT_ID_SIZE];
    enum kube_state state;
    json_t *line;        // the newest; NULL: it is over, and all was written
    uint32_t generation; // how often it was over and came again
    uint64_t changed_ns; // when culprit last said something new of it
    struct kube_object *objects;
    uint32_t object_count;
};

struct kube_table {
    struct kube_verdict *items; // in the order in which they came
    uint32_t count, max;
    uint64_t forgotten; // open ones, since there were too many
};

void kube_table_init(struct kube_table *table, uint32_t max);
void kube_table_release(struct kube_table *table);
// Takes a line (without its newline). NULL: nothing is to be written of it. The pointer dies with
// the next line.
struct kube_verdict *kube_table_take(struct kube_table *table, struct slice line, uint64_t now_ns);
// What was written: objects that are over go.
void kube_verdict_tidy(struct kube_verdict *verdict);
// All of them as lines, as far as the buffer goes; and one of them back, when it is one.
void kube_table_keep(const struct kube_table *table, struct buffer *out);
void kube_table_restore(struct kube_table *table, const json_t *kept);
void kube_keep_line(json_t *kept, struct buffer *out);        // takes the reference
const char *kube_text(const json_t *object, const char *key); // "" when it is none
uint64_t kube_number(const json_t *object, const char *key);  // 0 when it is none

// -- body.c: what requests hold -------------------------------------------------------------------

// How the object stands now: open, resolved, or that the verdict is not about it any more.
enum kube_state kube_state_of(const struct kube_verdict *verdict, const struct kube_object *object);
// Names the Event that says this of the object: the same after a crash, another for other words.
void kube_event_digest(const struct kube_verdict *verdict, const struct kube_object *object,
                       char out[DIGEST_ID_SIZE]);
// "w-0.0123456789abcdef"
void kube_event_name(const struct kube_object *object, const char *digest, struct buffer *out);
// The namespace of its Events: those of nodes are in `default`.
const char *kube_event_namespace(const struct kube_object *object);
void kube_event_body(const struct kube_verdict *verdict, const struct kube_object *object,
                     const char *digest, const char *instance, uint64_t now_ns, struct buffer *out);
void kube_series_body(uint32_t count, uint64_t last_ns, struct buffer *out);

struct kube_condition {
    const char *type, *reason, *message;
    bool is_true;
    uint64_t since_ns, now_ns;
};
void kube_condition_body(const struct kube_condition *condition, struct buffer *out);
// What the condition says while `open` verdicts are about a node, of which this one is the gravest.
void kube_condition_message(const struct kube_verdict *verdict, uint32_t open, struct buffer *out);

// -- api.c: requests and what their answers mean --------------------------------------------------

enum kube_answer {
    KUBE_DONE,
    KUBE_ABSENT,  // 404
    KUBE_REFUSED, // never will be
    KUBE_DENIED,  // 403: the right is missing
    KUBE_RETRY,
};

enum kube_right { RIGHT_CREATE_EVENT, RIGHT_PATCH_EVENT, RIGHT_GET_POD, RIGHT_PATCH_NODE };

// A right that was refused, from when on.
struct kube_missing {
    enum kube_right right;
    char namespace[KUBERNETES_LABEL_MAX + 1];
    uint64_t since_ns; // monotonic
};

struct kube_uid {
    char namespace[KUBERNETES_LABEL_MAX + 1];
    char name[KUBERNETES_SUBDOMAIN_MAX + 1];
    char uid[KUBE_UID_MAX + 1]; // "": there is no such pod
    uint64_t created_ns;
    uint64_t asked_ns; // monotonic
};

struct kube_node {
    char name[KUBERNETES_SUBDOMAIN_MAX + 1];
    const struct kube_verdict *gravest; // of this pass; NULL: none is open
    uint32_t open;
    bool is_true;              // on the server, as far as is known
    char said[DIGEST_ID_SIZE]; // of reason and message
    uint64_t since_ns;
    uint64_t written_ns; // 0: never
};

struct kube_counters {
    struct metric *events, *series, *conditions, *refused[2], *unplaced, *forgotten;
};

struct kube_exporter {
    const struct kube_config *config;
    const struct component_context *context;
    struct api_access access;
    bool started;
    struct http_client *client;
    const char *namespace;
    char instance[KUBE_INSTANCE_MAX + 1];
    struct kube_table table;
    struct kube_node *nodes;
    uint32_t node_count;
    struct kube_missing missing[KUBE_RIGHTS_MAX];
    uint32_t missing_count;
    struct kube_uid *uids;
    uint32_t uid_count, uid_next;
    struct buffer url, body, text;
    uint64_t due_ns; // monotonic: when something is to be written without anything new
    bool last;       // nothing follows: what is held back is written now
    // A delivery takes no longer than `timeout`, but for the request that is under way then; with
    // more to write the rest is another one.
    uint64_t until_ns; // monotonic
    struct kube_counters counters;
};

// Each writes at most one thing; `error` says why not, but for KUBE_DONE. An Event that is there
// already is done.
enum kube_answer kube_create_event(struct kube_exporter *self, const struct kube_verdict *verdict,
                                   const struct kube_object *object, const char *digest,
                                   struct error *error);
enum kube_answer kube_count_event(struct kube_exporter *self, const struct kube_verdict *verdict,
                                  const struct kube_object *object, struct error *error);
enum kube_answer kube_patch_node(struct kube_exporter *self, const char *node,
                                 const struct kube_condition *condition, struct error *error);
// Fills in the pod's uid, when it is known and the pod is not younger than the finding. False: the
// server does not answer; then `error` says why.
bool kube_find_uid(struct kube_exporter *self, const struct kube_verdict *verdict,
                   struct kube_object *object, struct error *error);

// What an answer says: a Status' message, "" when there is none. `reason` and `cause` likewise.
struct kube_status {
    char message[256], reason[48], cause[48];
};
void kube_status_read(struct slice body, struct kube_status *out);
// The uid and time of creation of an object's metadata; false when it has no uid.
bool kube_pod_read(struct slice body, char uid[KUBE_UID_MAX + 1], uint64_t *created_ns);

// -- write.c: what is due -------------------------------------------------------------------------

// Writes all that is due on the objects of this verdict, up to the first that has to wait. False:
// the server does not take it now, and `error` says why.
bool kube_write_verdict(struct kube_exporter *self, struct kube_verdict *verdict,
                        struct error *error);
bool kube_write_due(struct kube_exporter *self, struct error *error);
// Whether there is time for another request; false: `error` says why not.
bool kube_has_time(const struct kube_exporter *self, struct error *error);
// Counts and logs what is lost.
void kube_note_refused(struct kube_exporter *self, unsigned what, enum kube_answer answer,
                       const struct error *error);

// -- condition.c: the condition of nodes ----------------------------------------------------------

bool kube_write_conditions(struct kube_exporter *self, struct error *error);
void kube_nodes_keep(const struct kube_exporter *self, struct buffer *out);
// Takes a line of what was kept; false: it is another.
bool kube_nodes_restore(struct kube_exporter *self, const json_t *line);
