// SPDX-License-Identifier: Apache-2.0
// The condition of nodes: True while a verdict blames the node or its hardware, False once none
// does any more.
//
// It is patched when it changes, a change of its words alone at most once a minute, and repeated
// every heartbeat_interval, which also brings it back to a Node that was registered anew. Nothing
// but this condition is written: no taint, and nothing of the node's spec.
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "exporters/kubernetes/exporter.h"

#include <assert.h>
#include <stdio.h>

static const uint64_t WORDS_APART_NS = UINT64_C(60) * 1000 * 1000 * 1000;

// -- which nodes ----------------------------------------------------------------------------------

static struct kube_node *find_node(struct kube_exporter *self, const char *name) {
    for (uint32_t i = 0; i < self->node_count; i++)
        if (strcmp(self->nodes[i].name, name) == 0)
            return &self->nodes[i];
    return NULL;
}

static struct kube_node *get_node(struct kube_exporter *self, const char *name) {
    struct kube_node *node = find_node(self, name);
    if (node != NULL || self->node_count == KUBE_NODES_MAX)
        return node;
    if (self->nodes == NULL)
        self->nodes = memory_zero(KUBE_NODES_MAX, sizeof *self->nodes);
    node = &self->nodes[self->node_count++];
    *node = (struct kube_node){.is_true = false};
    snprintf(node->name, sizeof node->name, "%s", name);
    return node;
}

// When the verdict stops counting; UINT64_MAX: not by itself.
static uint64_t ends_ns(const struct kube_exporter *self, const struct kube_verdict *verdict) {
    uint64_t after_ns = (uint64_t)self->config->node_condition.resolve_after.ns;
    return after_ns == 0 ? UINT64_MAX : verdict->changed_ns + after_ns;
}

// The higher severity, then the earlier start, then the lower id: the same in any order.
static bool is_graver(const struct kube_verdict *verdict, const struct kube_verdict *than) {
    uint64_t mine = kube_number(verdict->line, "severity");
    uint64_t other = than == NULL ? 0 : kube_number(than->line, "severity");
    if (than == NULL || mine != other)
        return than == NULL || mine > other;
    mine = kube_number(verdict->line, "start");
    other = kube_number(than->line, "start");
    return mine != other ? mine < other : strcmp(verdict->id, than->id) < 0;
}

// What the open verdicts say of each node. -> when that changes by time alone, Unix.
static uint64_t gather(struct kube_exporter *self, uint64_t now_ns) {
    uint64_t next_ns = UINT64_MAX;
    for (uint32_t i = 0; i < self->node_count; i++) {
        self->nodes[i].gravest = NULL;
        self->nodes[i].open = 0;
    }
    for (uint32_t i = 0; i < self->table.count; i++) {
        const struct kube_verdict *verdict = &self->table.items[i];
        uint64_t end_ns = ends_ns(self, verdict);
        if (verdict->line == NULL || verdict->state != KUBE_OPEN || now_ns >= end_ns)
            continue;
        for (uint32_t at = 0; at < verdict->object_count; at++) {
            const struct kube_object *object = &verdict->objects[at];
            bool counts = object->stays && object->kind == KUBE_NODE && object->condition;
            struct kube_node *node = counts ? get_node(self, object->name) : NULL;
            if (node == NULL)
                continue;
            if (is_graver(verdict, node->gravest))
                node->gravest = verdict;
            node->open++;
            next_ns = end_ns < next_ns ? end_ns : next_ns;
        }
    }
    return next_ns;
}

// -- one node -------------------------------------------------------------------------------------

// Unix; 0: now.
static uint64_t due_of(const struct kube_exporter *self, const struct kube_node *node,
                       const char *words) {
    bool is_true = node->gravest != NULL;
    uint64_t beat_ns = (uint64_t)self->config->node_condition.heartbeat_interval.ns;
    if (node->written_ns == 0 || is_true != node->is_true)
        return 0;
    bool same = strcmp(words, node->said) == 0;
    uint64_t apart_ns = same || beat_ns < WORDS_APART_NS ? beat_ns : WORDS_APART_NS;
    return is_true ? node->written_ns + apart_ns : UINT64_MAX;
}

static void words_of(const struct kube_node *node, struct buffer *message, const char **reason,
                     char digest[DIGEST_ID_SIZE]) {
    buffer_reset(message);
    *reason = node->gravest == NULL ? "NoFinding" : kube_text(node->gravest->line, "reason");
    if (node->gravest == NULL)
        buffer_append_text(message, "culprit has no open finding against this node");
    else
        kube_condition_message(node->gravest, node->open, message);
    const struct slice parts[] = {slice_of(*reason), buffer_slice(message)};
    digest_id(parts, 2, digest);
    buffer_append_char(message, '\0');
    assert(!message->failed);
}

// Since when it is as it is now. True is as old as the finding: the same after a restart.
static uint64_t since_of(const struct kube_node *node, uint64_t now_ns) {
    if (node->written_ns != 0 && node->is_true == (node->gravest != NULL))
        return node->since_ns;
    uint64_t start_ns = node->gravest == NULL ? 0 : kube_number(node->gravest->line, "start");
    return start_ns == 0 || start_ns > now_ns ? now_ns : start_ns;
}

static bool write_node(struct kube_exporter *self, struct kube_node *node, uint64_t now_ns,
                       uint64_t *due_ns, struct error *error) {
    const char *reason;
    char digest[DIGEST_ID_SIZE];
    words_of(node, &self->text, &reason, digest);
    *due_ns = due_of(self, node, digest);
    if (*due_ns > now_ns && node->written_ns <= now_ns)
        return true;
    struct kube_condition condition = {.type = self->config->node_condition.type,
                                       .reason = reason,
                                       .message = self->text.data,
                                       .is_true = node->gravest != NULL,
                                       .since_ns = since_of(node, now_ns),
                                       .now_ns = now_ns};
    enum kube_answer answer = KUBE_RETRY;
    if (kube_has_time(self, error))
        answer = kube_patch_node(self, node->name, &condition, error);
    if (answer == KUBE_RETRY)
        return false;
    metric_add(self->counters.conditions, answer == KUBE_DONE);
    if (answer != KUBE_DONE)
        kube_note_refused(self, 1, answer, error);
    // What was not taken is tried again with the next heartbeat.
    node->is_true = condition.is_true;
    node->since_ns = condition.since_ns;
    node->written_ns = now_ns;
    memcpy(node->said, digest, sizeof digest);
    *due_ns = due_of(self, node, digest);
    return true;
}

// -- all of them ----------------------------------------------------------------------------------

// Those that were told that nothing is held against them.
static void forget_fine(struct kube_exporter *self) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < self->node_count; i++)
        if (self->nodes[i].gravest != NULL || self->nodes[i].is_true)
            self->nodes[kept++] = self->nodes[i];
    self->node_count = kept;
}

bool kube_write_conditions(struct kube_exporter *self, struct error *error) {
    if (!self->config->node_condition.enabled)
        return true;
    bool fine = true;
    uint64_t now_ns = clock_unix_ns(), next_ns = gather(self, now_ns);
    for (uint32_t i = 0; i < self->node_count && fine; i++) {
        uint64_t due_ns = UINT64_MAX;
        struct kube_node *node = &self->nodes[i];
        // One that was never written, and need not be.
        if (node->gravest == NULL && !node->is_true)
            continue;
        fine = write_node(self, node, now_ns, &due_ns, error);
        next_ns = due_ns < next_ns ? due_ns : next_ns;
    }
    forget_fine(self);
    uint64_t wait_ns = next_ns <= now_ns ? 0 : next_ns - now_ns;
    uint64_t due_ns = next_ns == UINT64_MAX ? UINT64_MAX : clock_monotonic_ns() + wait_ns;
    self->due_ns = due_ns < self->due_ns ? due_ns : self->due_ns;
    return fine;
}

// -- over a restart -------------------------------------------------------------------------------

void kube_nodes_keep(const struct kube_exporter *self, struct buffer *out) {
    for (uint32_t i = 0; i < self->node_count; i++) {
        const struct kube_node *node = &self->nodes[i];
        if (node->is_true)
            kube_keep_line(json_pack("{s:s, s:s, s:I, s:I}", "node", node->name, "said", node->said,
                                     "since", (json_int_t)node->since_ns, "written",
                                     (json_int_t)node->written_ns),
                           out);
    }
}

bool kube_nodes_restore(struct kube_exporter *self, const json_t *line) {
    const char *name = kube_text(line, "node"), *said = kube_text(line, "said");
    if (name[0] == '\0')
        return false;
    if (!self->config->node_condition.enabled || !kubernetes_is_subdomain(slice_of(name)) ||
        strlen(said) >= DIGEST_ID_SIZE)
        return true;
    struct kube_node *node = get_node(self, name);
    if (node == NULL)
        return true;
    node->is_true = true;
    node->since_ns = kube_number(line, "since");
    node->written_ns = kube_number(line, "written");
    memcpy(node->said, said, strlen(said) + 1);
    return true;
}
