// SPDX-License-Identifier: Apache-2.0
#include "pipeline/component/node_names.h"

#include "base/memory.h"
#include "pipeline/model/node_event.h"

enum {
    ROWS_PER_CHUNK = 64,
    NAME_MAX_BYTES = 253, // of a DNS name
    SAME_LABEL_MAX = 64,  // nodes that are looked through for a name; further ones are not joined
    SHOWN_PAIRS_MAX = 8,  // nodes of one verdict whose names in its texts are put right
    BY_LABEL = 1,
    BY_KEY = 2
};

// How much a spelling is worth.
enum spelled_by { BY_ANYONE, BY_RANK_MAP, BY_KUBERNETES };

struct name_row {
    uint32_t chained; // what the table puts there
    string_id name;
    string_id key;
};

struct node_row {
    uint32_t chained;
    string_id key;
    string_id label;  // in lower case, of an address all of it; STRING_NONE: not joined by it
    string_id domain; // STRING_NONE: nobody said one
    string_id shown;
    uint32_t spelled_by;
};

static const struct row_type NAME_ROWS =
    ROW_TYPE(struct name_row, ROWS_PER_CHUNK, offsetof(struct name_row, name),
             offsetof(struct name_row, key));
static const struct row_type NODE_ROWS =
    ROW_TYPE(struct node_row, ROWS_PER_CHUNK, offsetof(struct node_row, key),
             offsetof(struct node_row, label), offsetof(struct node_row, domain),
             offsetof(struct node_row, shown));

void node_names_init(struct node_names *names) {
    *names = (struct node_names){0};
    table_start(&names->names, "names", &NAME_ROWS);
    table_start(&names->nodes, "nodes", &NODE_ROWS);
}

void node_names_release(struct node_names *names) {
    table_release(&names->names);
    table_release(&names->nodes);
    row_index_release(&names->index);
    memory_give(names->keys);
    *names = (struct node_names){0};
}

void node_names_state(struct node_names *names, struct state_list *list) {
    state_list_table(list, &names->names);
    state_list_table(list, &names->nodes);
}

// -- rows ---------------------------------------------------------------------------------------

static struct node_row *node_at(const struct node_names *names, uint32_t row) {
    return table_row(&names->nodes, row);
}

static void index_node(struct node_names *names, uint32_t row) {
    const struct node_row *node = node_at(names, row);
    if (node->label != STRING_NONE)
        row_index_put(&names->index, row_hash(BY_LABEL, node->label), row);
    row_index_put(&names->index, row_hash(BY_KEY, node->key), row);
}

static void remember(struct node_names *names, string_id name, string_id key) {
    if (name >= names->key_count) {
        uint32_t count = name + name / 2 + 64;
        names->keys = memory_resize(names->keys, count * sizeof *names->keys);
        memset(names->keys + names->key_count, 0, (count - names->key_count) * sizeof *names->keys);
        names->key_count = count;
    }
    names->keys[name] = key;
}

static string_id recall(const struct node_names *names, string_id name) {
    return name < names->key_count ? names->keys[name] : STRING_NONE;
}

void node_names_restored(struct node_names *names) {
    row_index_clear(&names->index);
    if (names->key_count > 0)
        memset(names->keys, 0, names->key_count * sizeof *names->keys);
    for (uint32_t i = 0; i < names->nodes.used; i++)
        index_node(names, i);
    for (uint32_t i = 0; i < names->names.used; i++) { // the last word on a name counts
        const struct name_row *row = table_row(&names->names, i);
        remember(names, row->name, row->key);
    }
}

static struct node_row *node_of_key(const struct node_names *names, string_id key) {
    uint32_t at = 0, row;
    while ((row = row_index_next(&names->index, row_hash(BY_KEY, key), &at)) != TABLE_NO_ROW)
        if (node_at(names, row)->key == key)
            return node_at(names, row);
    return NULL;
}

// -- names --------------------------------------------------------------------------------------

struct parts { // of a name, in lower case
    char text[NAME_MAX_BYTES];
    struct slice whole, label, domain;
};

static bool is_address(struct slice name) {
    uint32_t dots = 0, digits = 0;
    for (size_t i = 0; i < name.size; i++) {
        if (name.data[i] == ':')
            return true;
        dots += name.data[i] == '.';
        digits += name.data[i] >= '0' && name.data[i] <= '9';
    }
    return dots == 3 && dots + digits == name.size;
}

// False: it is no name that could be cut.
static bool read_name(struct slice name, struct parts *parts) {
    while (name.size > 0 && name.data[name.size - 1] == '.')
        name.size--;
    if (name.size == 0 || name.size > NAME_MAX_BYTES)
        return false;
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        parts->text[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    parts->whole = parts->label = (struct slice){parts->text, name.size};
    parts->domain = (struct slice){parts->text, 0};
    const char *dot = is_address(parts->whole) ? NULL : memchr(parts->text, '.', name.size);
    if (dot == NULL || dot == parts->text)
        return true;
    parts->label.size = (size_t)(dot - parts->text);
    parts->domain = (struct slice){dot + 1, name.size - parts->label.size - 1};
    return true;
}

// Equal, or one goes on where the other ends: "rack1" and "rack1.example.com".
static bool same_domain(struct slice a, struct slice b) {
    if (a.size > b.size)
        return same_domain(b, a);
    return memcmp(a.data, b.data, a.size) == 0 && (a.size == b.size || b.data[a.size] == '.');
}

// What is known of a name's label.
struct label_nodes {
    uint32_t first; // the node that has the label for its key; TABLE_NO_ROW: there is none
    uint32_t count;
};

// The node that a name belongs to; TABLE_NO_ROW: a new one.
static uint32_t seek(const struct node_names *names, const struct parts *parts,
                     struct label_nodes *same) {
    string_id label = intern_find(parts->label);
    uint32_t at = 0, row;
    *same = (struct label_nodes){TABLE_NO_ROW, 0};
    if (label == STRING_NONE)
        return TABLE_NO_ROW;
    while ((row = row_index_next(&names->index, row_hash(BY_LABEL, label), &at)) != TABLE_NO_ROW) {
        const struct node_row *node = node_at(names, row);
        if (node->label != label)
            continue;
        same->count++;
        if (node->key == label)
            same->first = row;
        if (parts->domain.size > 0 && node->domain != STRING_NONE &&
            same_domain(parts->domain, intern_slice(node->domain)))
            return row;
    }
    bool joins = same->first != TABLE_NO_ROW &&
                 (parts->domain.size == 0 || node_at(names, same->first)->domain == STRING_NONE);
    return joins ? same->first : TABLE_NO_ROW;
}

static bool is_better(struct slice spelling, struct slice than) {
    if (spelling.size != than.size)
        return spelling.size < than.size;
    return slice_compare(spelling, than) > 0; // lower case before upper case
}

static void spell(struct node_row *node, string_id spelling, enum spelled_by by) {
    if (by < node->spelled_by ||
        (by == node->spelled_by && !is_better(intern_slice(spelling), intern_slice(node->shown))))
        return;
    node->shown = spelling;
    node->spelled_by = by;
}

static string_id add_node(struct node_names *names, const struct parts *parts,
                          const struct label_nodes *same, string_id spelling) {
    string_id label = intern(parts->label);
    string_id key = same->first == TABLE_NO_ROW ? label : intern(parts->whole);
    string_id domain = parts->domain.size == 0 ? STRING_NONE : intern(parts->domain);
    if (label == STRING_REFUSED || key == STRING_REFUSED || domain == STRING_REFUSED)
        return STRING_REFUSED;
    if (same->count >= SAME_LABEL_MAX)
        label = STRING_NONE;
    uint32_t row = table_add(&names->nodes);
    *node_at(names, row) =
        (struct node_row){.key = key, .label = label, .domain = domain, .shown = spelling};
    index_node(names, row);
    return key;
}

static void add_name(struct node_names *names, string_id name, string_id key) {
    struct name_row *row = table_row(&names->names, table_add(&names->names));
    row->name = name;
    row->key = key;
    remember(names, name, key);
}

// Nodes come and go for years. The keys of nearly all names are the same when they are learned
// again.
static void make_room(struct node_names *names) {
    if (table_live(&names->names) + 1 < NODE_NAMES_MAX)
        return;
    node_names_release(names);
    node_names_init(names);
}

static string_id learn(struct node_names *names, string_id name) {
    struct parts parts;
    if (!read_name(intern_slice(name), &parts))
        return name;
    make_room(names);
    struct label_nodes same;
    uint32_t row = seek(names, &parts, &same);
    string_id key;
    if (row == TABLE_NO_ROW) {
        key = add_node(names, &parts, &same, name);
        if (key == STRING_REFUSED)
            return name;
    } else {
        struct node_row *node = node_at(names, row);
        key = node->key;
        string_id domain = parts.domain.size == 0 ? STRING_NONE : intern(parts.domain);
        if (domain != STRING_NONE && domain != STRING_REFUSED &&
            (node->domain == STRING_NONE || parts.domain.size > intern_slice(node->domain).size))
            node->domain = domain;
        spell(node, name, BY_ANYONE);
    }
    add_name(names, name, key);
    return key;
}

string_id node_names_key(struct node_names *names, string_id name) {
    if (name == STRING_NONE || name == STRING_REFUSED)
        return name;
    string_id key = recall(names, name);
    return key != STRING_NONE ? key : learn(names, name);
}

string_id node_names_find(const struct node_names *names, string_id name) {
    struct parts parts;
    if (name == STRING_NONE || name == STRING_REFUSED)
        return name;
    string_id key = recall(names, name);
    if (key != STRING_NONE || !read_name(intern_slice(name), &parts))
        return key != STRING_NONE ? key : name;
    struct label_nodes same;
    uint32_t row = seek(names, &parts, &same);
    return row == TABLE_NO_ROW ? name : node_at(names, row)->key;
}

bool node_names_knows(const struct node_names *names, struct slice name) {
    struct parts parts;
    struct label_nodes same;
    return read_name(name, &parts) && seek(names, &parts, &same) != TABLE_NO_ROW;
}

static void spell_by(struct node_names *names, string_id name, enum spelled_by by) {
    struct node_row *node = node_of_key(names, node_names_key(names, name));
    if (node != NULL)
        spell(node, name, by);
}

void node_names_alias(struct node_names *names, string_id other, string_id name) {
    if (other == STRING_NONE || other == STRING_REFUSED)
        return;
    make_room(names);
    string_id key = node_names_key(names, name);
    if (key != STRING_NONE && key != STRING_REFUSED && recall(names, other) != key)
        add_name(names, other, key);
}

// -- events -------------------------------------------------------------------------------------

static string_id intern_name(struct slice name) {
    string_id id = name.size == 0 ? STRING_NONE : intern(name);
    return id == STRING_REFUSED ? STRING_NONE : id;
}

static bool swap_name(struct node_names *names, string_id *name) {
    string_id key = node_names_key(names, *name);
    bool differs = key != *name;
    *name = key;
    return differs;
}

static bool swap_text(struct node_names *names, struct slice *name) {
    string_id id = intern_name(*name);
    bool differs = swap_name(names, &id);
    if (differs)
        *name = intern_slice(id);
    return differs;
}

static void learn_aliases(struct node_names *names, const struct kubernetes_object *object) {
    string_id name =
        intern_name(object->kind == KUBERNETES_NODE ? object->name : object->node_name);
    for (uint32_t i = 0; name != STRING_NONE && i < object->alias_count; i++)
        node_names_alias(names, intern_name(object->aliases[i]), name);
}

static bool swap_kubernetes(struct node_names *names, struct event *event, struct arena *arena) {
    struct kubernetes_object object = *event->kubernetes;
    if (event->node != STRING_NONE)
        spell_by(names, event->node, BY_KUBERNETES);
    if (object.alias_count > 0)
        learn_aliases(names, &object);
    object.said_node = kubernetes_said_node(&object);
    bool differs = swap_text(names, &object.node_name);
    differs = swap_text(names, &object.host) || differs;
    differs = swap_text(names, &object.said_node) || differs;
    if (!differs)
        return false;
    struct kubernetes_object *copy = arena_take(arena, sizeof *copy);
    *copy = object;
    event->kubernetes = copy;
    return true;
}

static bool swap_gpus(struct node_names *names, struct event *event, struct arena *arena) {
    const struct gpu_scrape *scrape = event->gpus;
    struct gpu_scrape *copy = NULL;
    for (uint32_t i = 0; i < scrape->count; i++) {
        string_id node = scrape->samples[i].node;
        if (!swap_name(names, &node))
            continue;
        if (copy == NULL) {
            copy = arena_take(arena, sizeof *copy);
            *copy = *scrape;
            copy->samples = arena_enlarge(arena, scrape->samples, scrape->count, scrape->count,
                                          sizeof *scrape->samples);
            event->gpus = copy;
        }
        ((struct gpu_sample *)copy->samples)[i].node = node;
    }
    return copy != NULL;
}

// The host name of a pod is its name, unless the pod says another.
static bool swap_place(struct node_names *names, struct event *event, struct arena *arena) {
    struct rank_place place = *event->place;
    if (place.node != STRING_NONE && place.pod.size > 0)
        node_names_alias(names, intern_name(place.pod), place.node);
    spell_by(names, place.node != STRING_NONE ? place.node : event->node, BY_RANK_MAP);
    if (!swap_name(names, &place.node))
        return false;
    struct rank_place *copy = arena_take(arena, sizeof *copy);
    *copy = place;
    event->place = copy;
    return true;
}

static bool swap_event(struct node_names *names, struct event *event, struct arena *arena) {
    bool differs = event->kind == EVENT_KUBERNETES   ? swap_kubernetes(names, event, arena)
                   : event->kind == EVENT_GPU_SAMPLE ? swap_gpus(names, event, arena)
                   : event->kind == EVENT_RANK_MAP   ? swap_place(names, event, arena)
                                                     : false;
    return swap_name(names, &event->node) || differs;
}

void node_names_apply(struct node_names *names, struct batch *batch) {
    enum { NAMELESS = 1 << EVENT_TELEMETRY | 1 << EVENT_SPAN };
    if ((batch->kinds & ~(uint32_t)NAMELESS) == 0)
        return;
    // Other pipelines may read the same events: what changes is copied.
    struct event *copies = NULL;
    for (uint32_t i = 0; i < batch->event_count; i++) {
        if ((1u << batch->events[i].kind & NAMELESS) != 0)
            continue;
        struct event event = batch->events[i];
        if (!swap_event(names, &event, batch->arena))
            continue;
        if (copies == NULL)
            batch->events = copies = arena_enlarge(batch->arena, batch->events, batch->event_count,
                                                   batch->event_count, sizeof *copies);
        copies[i] = event;
    }
}

void node_names_learn_hosts(struct node_names *names, const struct batch *batch) {
    enum { HOSTS = 1 << EVENT_TELEMETRY | 1 << EVENT_SPAN };
    string_id last = STRING_NONE;
    for (uint32_t i = 0; (batch->kinds & HOSTS) != 0 && i < batch->event_count; i++) {
        if (batch->events[i].node == last)
            continue;
        last = batch->events[i].node;
        (void)node_names_key(names, last);
    }
}

// -- verdicts -----------------------------------------------------------------------------------

struct shown_pair {
    struct slice key, shown;
};

struct shown_pairs {
    struct shown_pair items[SHOWN_PAIRS_MAX];
    uint32_t count;
};

static bool find_shown(const struct node_names *names, struct slice key, struct shown_pair *pair) {
    string_id id = intern_find(key);
    const struct node_row *node = id == STRING_NONE ? NULL : node_of_key(names, id);
    if (node == NULL || node->shown == node->key)
        return false;
    *pair = (struct shown_pair){key, intern_slice(node->shown)};
    return true;
}

static void note_pair(struct shown_pairs *pairs, const struct shown_pair *pair) {
    for (uint32_t i = 0; i < pairs->count; i++)
        if (slice_equal(pairs->items[i].key, pair->key))
            return;
    if (pairs->count < SHOWN_PAIRS_MAX)
        pairs->items[pairs->count++] = *pair;
}

// "node7", or "node7/0000:1b:00" of what is in it.
static bool show_entity(const struct node_names *names, struct entity *entity,
                        struct shown_pairs *pairs, struct arena *arena) {
    if (strcmp(entity->kind, "pod") == 0 || strcmp(entity->kind, "rank") == 0)
        return false;
    const char *slash =
        entity->name.size == 0 ? NULL : memrchr(entity->name.data, '/', entity->name.size);
    struct slice key = entity->name, rest = {NULL, 0};
    if (slash != NULL) {
        key.size = (size_t)(slash - key.data);
        rest = (struct slice){slash, entity->name.size - key.size};
    }
    struct shown_pair pair;
    if (!find_shown(names, key, &pair))
        return false;
    note_pair(pairs, &pair);
    entity->name = slice_of(arena_format(arena, "%s%.*s", pair.shown.data, (int)rest.size,
                                         rest.size == 0 ? "" : rest.data));
    return true;
}

static bool is_of_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

// Whether the text at `at`, of `size` bytes, is a name by itself and no part of another's.
static bool stands_alone(struct slice text, size_t at, size_t size) {
    size_t end = at + size;
    if (at > 0 && (is_of_name(text.data[at - 1]) || strchr("./", text.data[at - 1]) != NULL))
        return false;
    if (end == text.size)
        return true;
    return !is_of_name(text.data[end]) &&
           (text.data[end] != '.' || end + 1 == text.size || !is_of_name(text.data[end + 1]));
}

static void show_text(struct slice *text, const struct shown_pair *pair, struct arena *arena) {
    const char *found =
        text->size == 0 ? NULL : memmem(text->data, text->size, pair->key.data, pair->key.size);
    if (found == NULL)
        return;
    size_t most = text->size + (text->size / pair->key.size) * pair->shown.size, used = 0, at = 0;
    char *out = arena_take(arena, most + 1);
    while (at < text->size) {
        bool is_it = text->size - at >= pair->key.size &&
                     memcmp(text->data + at, pair->key.data, pair->key.size) == 0 &&
                     stands_alone(*text, at, pair->key.size);
        struct slice part = is_it ? pair->shown : (struct slice){text->data + at, 1};
        memcpy(out + used, part.data, part.size);
        used += part.size;
        at += is_it ? pair->key.size : 1;
    }
    assert(used <= most);
    out[used] = '\0';
    *text = (struct slice){out, used};
}

static void show_verdict(const struct node_names *names, struct verdict *verdict,
                         struct arena *arena) {
    struct shown_pairs pairs = {.count = 0};
    struct shown_pair pair;
    bool differs = false;
    for (uint32_t i = 0; i < verdict->entity_count; i++)
        differs = show_entity(names, &verdict->entities[i], &pairs, arena) || differs;
    for (uint32_t i = 0; i < verdict->attribute_count; i++) {
        struct attribute *attribute = &verdict->attributes[i];
        if (strcmp(attribute->key, "k8s.node.name") != 0 ||
            !find_shown(names, attribute->value, &pair))
            continue;
        note_pair(&pairs, &pair);
        attribute->value = pair.shown;
    }
    if (differs)
        verdict_sort_entities(verdict);
    for (uint32_t i = 0; i < pairs.count; i++) {
        show_text(&verdict->headline, &pairs.items[i], arena);
        show_text(&verdict->remediation, &pairs.items[i], arena);
    }
}

void node_names_show(const struct node_names *names, struct batch *batch) {
    if (table_live(&names->nodes) == 0)
        return;
    for (uint32_t i = 0; i < batch->verdicts.count; i++)
        show_verdict(names, &batch->verdicts.items[i], batch->arena);
}
