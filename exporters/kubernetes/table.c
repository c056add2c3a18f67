// SPDX-License-Identifier: Apache-2.0
// The verdicts of which something was written, each with its newest line and its objects.
//
// Those that are over stay without a line, as long as there is room: one that comes again is told
// from its repetition after a crash by how often it was over.
#include "base/memory.h"
#include "base/text/cut.h"
#include "exporters/kubernetes/exporter.h"

#include <assert.h>
#include <stdio.h>

void kube_table_init(struct kube_table *table, uint32_t max) {
    assert(max > 0);
    *table = (struct kube_table){.max = max};
    table->items = memory_zero(max, sizeof *table->items);
}

static void release(struct kube_verdict *verdict) {
    json_decref(verdict->line);
    memory_give(verdict->objects);
}

void kube_table_release(struct kube_table *table) {
    for (uint32_t i = 0; i < table->count; i++)
        release(&table->items[i]);
    memory_give(table->items);
    *table = (struct kube_table){.items = NULL};
}

const char *kube_text(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

uint64_t kube_number(const json_t *object, const char *key) {
    json_int_t value = json_integer_value(json_object_get(object, key));
    return value < 0 ? 0 : (uint64_t)value;
}

// -- which there are ------------------------------------------------------------------------------

static struct kube_verdict *find(struct kube_table *table, const char *id) {
    for (uint32_t i = 0; i < table->count; i++)
        if (strcmp(table->items[i].id, id) == 0)
            return &table->items[i];
    return NULL;
}

// The first that is over goes, else the first of all.
static void make_room(struct kube_table *table) {
    uint32_t at = 0;
    assert(table->count <= table->max);
    if (table->count < table->max)
        return;
    while (at < table->count && table->items[at].line != NULL)
        at++;
    table->forgotten += at == table->count;
    at = at == table->count ? 0 : at;
    release(&table->items[at]);
    table->count--;
    memmove(&table->items[at], &table->items[at + 1], (table->count - at) * sizeof *table->items);
}

static struct kube_verdict *add(struct kube_table *table, const char *id) {
    assert(id[0] != '\0' && strlen(id) < VERDICT_ID_SIZE);
    make_room(table);
    struct kube_verdict *verdict = &table->items[table->count++];
    *verdict = (struct kube_verdict){.state = KUBE_OPEN};
    snprintf(verdict->id, sizeof verdict->id, "%s", id);
    return verdict;
}

// -- objects --------------------------------------------------------------------------------------

// False when it is not as encode writes it.
static bool read_object(const json_t *item, struct kube_object *out) {
    const char *name = kube_text(item, "name"), *namespace = kube_text(item, "namespace");
    const char *uid = kube_text(item, "uid");
    bool pod = strcmp(kube_text(item, "kind"), "Pod") == 0;
    uint64_t role = kube_number(item, "role");
    *out = (struct kube_object){.kind = pod ? KUBE_POD : KUBE_NODE};
    if (!kubernetes_is_subdomain(slice_of(name)) || role > ROLE_VICTIM ||
        strlen(uid) > KUBE_UID_MAX ||
        (pod ? !kubernetes_is_label(slice_of(namespace)) : namespace[0] != '\0'))
        return false;
    out->role = (enum entity_role)role;
    out->condition = json_is_true(json_object_get(item, "condition"));
    snprintf(out->namespace, sizeof out->namespace, "%s", namespace);
    snprintf(out->name, sizeof out->name, "%s", name);
    snprintf(out->uid, sizeof out->uid, "%s", uid);
    return true;
}

static struct kube_object *find_object(const struct kube_verdict *verdict,
                                       const struct kube_object *like) {
    for (uint32_t i = 0; i < verdict->object_count; i++) {
        struct kube_object *object = &verdict->objects[i];
        if (object->kind == like->kind && strcmp(object->name, like->name) == 0 &&
            strcmp(object->namespace, like->namespace) == 0)
            return object;
    }
    return NULL;
}

static void add_object(struct kube_verdict *verdict, const struct kube_object *object) {
    size_t count = verdict->object_count + 1;
    verdict->objects = memory_resize(verdict->objects, count * sizeof *object);
    verdict->objects[verdict->object_count++] = *object;
}

void kube_verdict_tidy(struct kube_verdict *verdict) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < verdict->object_count; i++) {
        const struct kube_object *object = &verdict->objects[i];
        if (object->stays || (object->held && object->event[0] != '\0'))
            verdict->objects[kept++] = *object;
    }
    verdict->object_count = kept;
    if (verdict->state != KUBE_OPEN && kept == 0) {
        json_decref(verdict->line);
        verdict->line = NULL;
    }
}

// -- taking lines ---------------------------------------------------------------------------------

static bool read_state(const json_t *line, enum kube_state *state) {
    static const char *const names[] = {"open", "resolved", "withdrawn"};
    const char *name = kube_text(line, "state");
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0) {
            *state = (enum kube_state)i;
            return true;
        }
    return false;
}

static void take_objects(struct kube_verdict *verdict) {
    const json_t *list = json_object_get(verdict->line, "objects");
    for (uint32_t i = 0; i < verdict->object_count; i++) {
        verdict->objects[i].stays = false;
        verdict->objects[i].held = true;
    }
    for (size_t i = 0; verdict->state == KUBE_OPEN && i < json_array_size(list); i++) {
        struct kube_object named;
        if (!read_object(json_array_get(list, i), &named))
            continue;
        named.stays = named.held = true;
        struct kube_object *known = find_object(verdict, &named);
        if (known == NULL)
            add_object(verdict, &named);
        if (known == NULL || known->stays) // the first role counts
            continue;
        known->stays = known->held = true;
        known->role = named.role;
        known->condition = named.condition;
    }
    kube_verdict_tidy(verdict);
}

static bool is_line(const json_t *line, enum kube_state *state) {
    size_t size = strlen(kube_text(line, "id"));
    return size > 0 && size < VERDICT_ID_SIZE && read_state(line, state);
}

static struct kube_verdict *take(struct kube_table *table, json_t *line, uint64_t now_ns) {
    enum kube_state state;
    if (!is_line(line, &state))
        return NULL;
    struct kube_verdict *verdict = find(table, kube_text(line, "id"));
    bool named = state == KUBE_OPEN && json_array_size(json_object_get(line, "objects")) > 0;
    if (verdict == NULL ? !named : state != KUBE_OPEN && verdict->line == NULL)
        return NULL;
    if (verdict == NULL)
        verdict = add(table, kube_text(line, "id"));
    if (verdict->line != NULL && json_equal(verdict->line, line))
        return verdict; // a repetition
    verdict->generation += state == KUBE_OPEN && verdict->state != KUBE_OPEN;
    verdict->state = state;
    verdict->changed_ns = now_ns;
    json_decref(verdict->line);
    verdict->line = json_incref(line);
    take_objects(verdict);
    return verdict;
}

struct kube_verdict *kube_table_take(struct kube_table *table, struct slice line, uint64_t now_ns) {
    json_t *read = json_loadb(line.data, line.size, 0, NULL);
    assert(read != NULL); // encode wrote it
    struct kube_verdict *verdict = take(table, read, now_ns);
    json_decref(read);
    return verdict;
}

// -- over a restart -------------------------------------------------------------------------------

static json_t *object_kept(const struct kube_object *object) {
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:b, s:b, s:b, s:s, s:I, s:I}", "kind",
                     object->kind == KUBE_POD ? "Pod" : "Node", "namespace", object->namespace,
                     "name", object->name, "uid", object->uid, "role", (int)object->role,
                     "condition", object->condition, "stays", object->stays, "held", object->held,
                     "event", object->event, "count", (json_int_t)object->count, "written",
                     (json_int_t)object->written_ns);
}

static json_t *verdict_kept(const struct kube_verdict *verdict) {
    json_t *objects = json_array();
    for (uint32_t i = 0; i < verdict->object_count; i++)
        json_array_append_new(objects, object_kept(&verdict->objects[i]));
    return json_pack("{s:s, s:I, s:I, s:O?, s:o}", "verdict", verdict->id, "generation",
                     (json_int_t)verdict->generation, "changed", (json_int_t)verdict->changed_ns,
                     "line", verdict->line, "objects", objects);
}

void kube_keep_line(json_t *kept, struct buffer *out) {
    assert(kept != NULL);
    char *text = json_dumps(kept, JSON_COMPACT | JSON_ENSURE_ASCII);
    json_decref(kept);
    if (text == NULL)
        memory_exhausted(0);
    if (strlen(text) + 1 <= out->max - out->size) {
        buffer_append_text(out, text);
        buffer_append_char(out, '\n');
    }
    free(text);
}

static bool has_condition(const struct kube_verdict *verdict) {
    for (uint32_t i = 0; i < verdict->object_count; i++)
        if (verdict->objects[i].condition)
            return true;
    return false;
}

// Where there is no room for all, what conditions rest on matters most.
void kube_table_keep(const struct kube_table *table, struct buffer *out) {
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < table->count; i++)
            if (has_condition(&table->items[i]) == (pass == 0))
                kube_keep_line(verdict_kept(&table->items[i]), out);
}

static bool restore_object(const json_t *item, struct kube_object *out) {
    const char *event = kube_text(item, "event");
    if (!read_object(item, out) || strlen(event) >= sizeof out->event)
        return false;
    snprintf(out->event, sizeof out->event, "%s", event);
    out->stays = json_is_true(json_object_get(item, "stays"));
    out->held = json_is_true(json_object_get(item, "held"));
    out->count = (uint32_t)kube_number(item, "count");
    out->written_ns = kube_number(item, "written");
    return true;
}

void kube_table_restore(struct kube_table *table, const json_t *kept) {
    const char *id = kube_text(kept, "verdict");
    const json_t *objects = json_object_get(kept, "objects");
    json_t *line = json_object_get(kept, "line");
    enum kube_state state = KUBE_RESOLVED;
    if (id[0] == '\0' || strlen(id) >= VERDICT_ID_SIZE || find(table, id) != NULL ||
        (json_is_object(line) && !is_line(line, &state)))
        return;
    struct kube_verdict *verdict = add(table, id);
    verdict->state = state;
    verdict->generation = (uint32_t)kube_number(kept, "generation");
    verdict->changed_ns = kube_number(kept, "changed");
    verdict->line = json_is_object(line) ? json_incref(line) : NULL;
    for (size_t i = 0; verdict->line != NULL && i < json_array_size(objects); i++) {
        struct kube_object object;
        if (restore_object(json_array_get(objects, i), &object))
            add_object(verdict, &object);
    }
    kube_verdict_tidy(verdict);
}
