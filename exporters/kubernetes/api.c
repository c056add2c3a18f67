// SPDX-License-Identifier: Apache-2.0
// Requests to the API server, and what their answers mean for trying again.
//
// A right that is missing is told once, with the rule that gives it. It may be given while the
// Event waits, and a server that has just started refuses everything for a second; so for a minute
// the request is tried again, and after that what needs the right is dropped at once, so that
// other namespaces do not wait for it.
#include "base/clock.h"
#include "base/log.h"
#include "base/text/rfc3339.h"
#include "exporters/kubernetes/exporter.h"

#include <assert.h>
#include <stdio.h>

enum { PATIENCE_S = 60, UID_KEPT_S = 300, NO_RIGHT_KEPT_S = 300 };

static const uint64_t SECOND_NS = 1000000000;

static const char JSON_TYPE[] = "Content-Type: application/json";
static const char MERGE_TYPE[] = "Content-Type: application/merge-patch+json";
static const char STRATEGIC_TYPE[] = "Content-Type: application/strategic-merge-patch+json";
// Of a Node or Pod only its metadata is of use, and the whole may be large.
static const char META_ONLY[] =
    "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

static const struct {
    const char *group, *resource, *verb;
    bool cluster;
} RIGHTS[] = {
    [RIGHT_CREATE_EVENT] = {"events.k8s.io", "events", "create", false},
    [RIGHT_PATCH_EVENT] = {"events.k8s.io", "events", "patch", false},
    [RIGHT_GET_POD] = {"", "pods", "get", false},
    [RIGHT_PATCH_NODE] = {"", "nodes/status", "patch", true},
};

// -- answers --------------------------------------------------------------------------------------

static void copy_text(char *out, size_t size, const char *text) {
    snprintf(out, size, "%s", text);
    for (char *c = out; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
}

void kube_status_read(struct slice body, struct kube_status *out) {
    *out = (struct kube_status){.message = ""};
    json_t *status = body.size == 0 ? NULL : json_loadb(body.data, body.size, 0, NULL);
    const json_t *causes = json_object_get(json_object_get(status, "details"), "causes");
    copy_text(out->message, sizeof out->message, kube_text(status, "message"));
    copy_text(out->reason, sizeof out->reason, kube_text(status, "reason"));
    copy_text(out->cause, sizeof out->cause, kube_text(json_array_get(causes, 0), "reason"));
    json_decref(status);
}

bool kube_pod_read(struct slice body, char uid[KUBE_UID_MAX + 1], uint64_t *created_ns) {
    json_t *object = body.size == 0 ? NULL : json_loadb(body.data, body.size, 0, NULL);
    const json_t *metadata = json_object_get(object, "metadata");
    struct slice known = slice_of(kube_text(metadata, "uid"));
    struct slice created = slice_of(kube_text(metadata, "creationTimestamp"));
    bool fine = known.size <= KUBE_UID_MAX && kubernetes_is_label(known);
    if (fine)
        memcpy(uid, known.data, known.size + 1);
    if (rfc3339_parse(created, created_ns, NULL) != RFC3339_OK)
        *created_ns = 0;
    json_decref(object);
    return fine;
}

static enum kube_answer answer_of(long status, const struct kube_status *said) {
    switch (status) {
    case 400:
    case 406:
    case 413:
    case 415:
    case 422:
        return KUBE_REFUSED;
    case 403: // of a namespace that ends nothing will be taken
        return strcmp(said->cause, "NamespaceTerminating") == 0 ? KUBE_REFUSED : KUBE_DENIED;
    case 404: // what is no API server says so in other words
        return strcmp(said->reason, "NotFound") == 0 ? KUBE_ABSENT : KUBE_RETRY;
    default:
        return status / 100 == 2 ? KUBE_DONE : KUBE_RETRY;
    }
}

// -- rights that are missing ----------------------------------------------------------------------

static struct kube_missing *find_missing(struct kube_exporter *self, enum kube_right right,
                                         const char *namespace) {
    for (uint32_t i = 0; i < self->missing_count; i++)
        if (self->missing[i].right == right && strcmp(self->missing[i].namespace, namespace) == 0)
            return &self->missing[i];
    return NULL;
}

static void right_is_there(struct kube_exporter *self, enum kube_right right,
                           const char *namespace) {
    struct kube_missing *missing = find_missing(self, right, namespace);
    if (missing == NULL)
        return;
    log_write(LOG_INFO, (struct log_site){"C4302", self->context->site},
              "the right to %s %s%s%s is there again", RIGHTS[right].verb, RIGHTS[right].resource,
              namespace[0] == '\0' ? "" : " in ", namespace);
    *missing = self->missing[--self->missing_count];
}

static struct kube_missing *right_is_missing(struct kube_exporter *self, enum kube_right right,
                                             const char *namespace, const char *said) {
    struct kube_missing *missing = find_missing(self, right, namespace);
    if (missing != NULL)
        return missing;
    bool cluster = RIGHTS[right].cluster;
    // The first makes room; it is told again when it is met again.
    uint32_t at = self->missing_count < KUBE_RIGHTS_MAX ? self->missing_count++ : 0;
    missing = &self->missing[at];
    *missing = (struct kube_missing){.right = right, .since_ns = clock_monotonic_ns()};
    snprintf(missing->namespace, sizeof missing->namespace, "%s", namespace);
    log_write(LOG_WARN, (struct log_site){"C4301", self->context->site},
              "403, the account may not %s %s%s%s; it needs the rule {apiGroups: [\"%s\"], "
              "resources: [%s], verbs: [%s]} in a ClusterRole%s%s (%s)",
              RIGHTS[right].verb, RIGHTS[right].resource, cluster ? "" : " in ", namespace,
              RIGHTS[right].group, RIGHTS[right].resource, RIGHTS[right].verb,
              cluster ? "" : ", or in a Role of the namespace ", namespace, said);
    return missing;
}

// -- one request ----------------------------------------------------------------------------------

struct asked {
    const char *method, *headers[2];
    enum kube_right right;
    const char *namespace; // of the right; "": the cluster
    const char *what;      // "create an Event on pod train/w-0"
};

// Of what is in self->url and self->body. An answer that a namespace's right is missing is one to
// wait for, at first.
static enum kube_answer ask(struct kube_exporter *self, const struct asked *asked,
                            struct kube_status *said, struct error *error) {
    struct error failure = {.message = ""};
    struct http_call call = {.method = asked->method,
                             .url = self->url.data,
                             .headers = asked->headers,
                             .header_count = 2,
                             .body = buffer_slice(&self->body)};
    assert(!self->url.failed && !self->body.failed && self->url.data != NULL);
    enum http_class class = http_client_send(self->client, &call, &failure);
    const struct http_reply *reply = http_client_reply(self->client);
    if (reply->status == 0) {
        (void)error_set(error, STATUS_IO, "cannot %s: %s", asked->what, failure.message);
        return KUBE_RETRY;
    }
    assert(class != HTTP_OK || reply->status / 100 == 2);
    if (class == HTTP_OK) {
        right_is_there(self, asked->right, asked->namespace);
        return KUBE_DONE;
    }
    kube_status_read(buffer_slice(&reply->body), said);
    if (said->message[0] == '\0')
        (void)error_set(error, STATUS_IO, "cannot %s: %s", asked->what, failure.message);
    else
        (void)error_set(error, STATUS_IO, "cannot %s: the API server answers %ld: %s", asked->what,
                        reply->status, said->message);
    http_client_redact(self->client, error->message, sizeof error->message);
    enum kube_answer answer = answer_of(reply->status, said);
    if (answer != KUBE_DENIED)
        return answer;
    const struct kube_missing *missing =
        right_is_missing(self, asked->right, asked->namespace, error->message);
    bool waits =
        !self->context->once && clock_monotonic_ns() - missing->since_ns < PATIENCE_S * SECOND_NS;
    return waits ? KUBE_RETRY : KUBE_DENIED;
}

static void begin(struct kube_exporter *self) {
    buffer_reset(&self->url);
    buffer_reset(&self->body);
    buffer_append_text(&self->url, self->access.server);
}

static void end_url(struct kube_exporter *self, bool writes) {
    buffer_append_text(&self->url, writes ? "?fieldManager=culprit" : "");
    buffer_append_char(&self->url, '\0');
}

static void say_what(char *out, size_t size, const char *what, const struct kube_object *object) {
    bool pod = object->kind == KUBE_POD;
    snprintf(out, size, "%s %s %s%s%s", what, pod ? "pod" : "node", object->namespace,
             pod ? "/" : "", object->name);
}

// -- Events ---------------------------------------------------------------------------------------

static void events_url(struct kube_exporter *self, const struct kube_object *object) {
    begin(self);
    buffer_append_format(&self->url, "/apis/events.k8s.io/v1/namespaces/%s/events",
                         kube_event_namespace(object));
}

enum kube_answer kube_create_event(struct kube_exporter *self, const struct kube_verdict *verdict,
                                   const struct kube_object *object, const char *digest,
                                   struct error *error) {
    char what[400];
    struct kube_status said = {.message = ""};
    events_url(self, object);
    end_url(self, true);
    kube_event_body(verdict, object, digest, self->instance, clock_unix_ns(), &self->body);
    say_what(what, sizeof what, "create an Event on", object);
    struct asked asked = {.method = "POST",
                          .headers = {JSON_TYPE, "Accept: application/json"},
                          .right = RIGHT_CREATE_EVENT,
                          .namespace = kube_event_namespace(object),
                          .what = what};
    enum kube_answer answer = ask(self, &asked, &said, error);
    // Written before a crash, and once more now.
    if (answer == KUBE_RETRY && strcmp(said.reason, "AlreadyExists") == 0)
        answer = KUBE_DONE;
    return answer;
}

enum kube_answer kube_count_event(struct kube_exporter *self, const struct kube_verdict *verdict,
                                  const struct kube_object *object, struct error *error) {
    char what[400];
    struct kube_status said;
    uint64_t end_ns = kube_number(verdict->line, "end");
    events_url(self, object);
    buffer_append_char(&self->url, '/');
    kube_event_name(object, object->event, &self->url);
    end_url(self, true);
    kube_series_body(object->count + 1, end_ns != 0 ? end_ns : clock_unix_ns(), &self->body);
    say_what(what, sizeof what, "count in the series of an Event on", object);
    struct asked asked = {.method = "PATCH",
                          .headers = {MERGE_TYPE, "Accept: application/json"},
                          .right = RIGHT_PATCH_EVENT,
                          .namespace = kube_event_namespace(object),
                          .what = what};
    return ask(self, &asked, &said, error);
}

// -- nodes ----------------------------------------------------------------------------------------

enum kube_answer kube_patch_node(struct kube_exporter *self, const char *node,
                                 const struct kube_condition *condition, struct error *error) {
    char what[400];
    struct kube_status said;
    assert(self->config->node_condition.enabled);
    begin(self);
    buffer_append_format(&self->url, "/api/v1/nodes/%s/status", node);
    end_url(self, true);
    kube_condition_body(condition, &self->body);
    snprintf(what, sizeof what, "set the condition %.60s of node %s", condition->type, node);
    struct asked asked = {.method = "PATCH",
                          .headers = {STRATEGIC_TYPE, META_ONLY},
                          .right = RIGHT_PATCH_NODE,
                          .namespace = "",
                          .what = what};
    return ask(self, &asked, &said, error);
}

// -- uids of pods ---------------------------------------------------------------------------------

static struct kube_uid *find_uid(struct kube_exporter *self, const struct kube_object *object,
                                 uint64_t now_ns) {
    for (uint32_t i = 0; i < self->uid_count; i++) {
        struct kube_uid *known = &self->uids[i];
        if (strcmp(known->name, object->name) == 0 &&
            strcmp(known->namespace, object->namespace) == 0)
            return now_ns - known->asked_ns < UID_KEPT_S * SECOND_NS ? known : NULL;
    }
    return NULL;
}

// The oldest makes room.
static struct kube_uid *add_uid(struct kube_exporter *self, const struct kube_object *object,
                                uint64_t now_ns) {
    uint32_t at = 0;
    while (at < self->uid_count && (strcmp(self->uids[at].name, object->name) != 0 ||
                                    strcmp(self->uids[at].namespace, object->namespace) != 0))
        at++;
    if (at == self->uid_count && self->uid_count == KUBE_UIDS_MAX) {
        at = self->uid_next;
        self->uid_next = (at + 1) % KUBE_UIDS_MAX;
    }
    self->uid_count += at == self->uid_count;
    assert(self->uid_count <= KUBE_UIDS_MAX);
    self->uids[at] = (struct kube_uid){.asked_ns = now_ns};
    memcpy(self->uids[at].name, object->name, sizeof object->name);
    memcpy(self->uids[at].namespace, object->namespace, sizeof object->namespace);
    return &self->uids[at];
}

static enum kube_answer get_pod(struct kube_exporter *self, const struct kube_object *object,
                                struct error *error) {
    char what[400];
    struct kube_status said;
    begin(self);
    buffer_append_format(&self->url, "/api/v1/namespaces/%s/pods/%s", object->namespace,
                         object->name);
    end_url(self, false);
    say_what(what, sizeof what, "get", object);
    struct asked asked = {.method = "GET",
                          .headers = {META_ONLY, ""},
                          .right = RIGHT_GET_POD,
                          .namespace = object->namespace,
                          .what = what};
    return ask(self, &asked, &said, error);
}

bool kube_find_uid(struct kube_exporter *self, const struct kube_verdict *verdict,
                   struct kube_object *object, struct error *error) {
    uint64_t now_ns = clock_monotonic_ns(), end_ns = kube_number(verdict->line, "end");
    if (object->kind != KUBE_POD || object->uid[0] != '\0' || !self->config->look_up_pods)
        return true;
    struct kube_missing *missing = find_missing(self, RIGHT_GET_POD, object->namespace);
    if (missing != NULL && now_ns - missing->since_ns < NO_RIGHT_KEPT_S * SECOND_NS)
        return true; // without a uid it is an Event all the same
    struct kube_uid *known = find_uid(self, object, now_ns);
    if (known == NULL) {
        enum kube_answer answer = get_pod(self, object, error);
        missing = find_missing(self, RIGHT_GET_POD, object->namespace);
        if (answer == KUBE_RETRY && missing == NULL)
            return false;
        if (missing != NULL) {
            missing->since_ns = now_ns;
            return true;
        }
        known = add_uid(self, object, now_ns);
        const struct http_reply *reply = http_client_reply(self->client);
        if (answer == KUBE_DONE &&
            !kube_pod_read(buffer_slice(&reply->body), known->uid, &known->created_ns))
            known->uid[0] = '\0';
    }
    // A pod that began after the finding is another one of the same name.
    if (end_ns == 0 || known->created_ns <= end_ns)
        memcpy(object->uid, known->uid, sizeof object->uid);
    return true;
}
