// SPDX-License-Identifier: Apache-2.0
// In which pod it was: a kernel line says the uid and the container, others the name. What belongs
// to which name is known from lines and objects that say both, and from objects of pods.
#include "base/hash/hash.h"
#include "processors/first_exit/ends.h"

// Both lines of a kill are written in one moment.
#define SAME_KILL_NS UINT64_C(10000000000)

// A table in the arena: 64 bits to 64 bits; 0 is no key.
struct pairs {
    struct pair {
        uint64_t key, value;
    } * slots;
    uint32_t mask;
};

static struct pairs pairs_make(uint32_t most, struct arena *arena) {
    uint32_t size = 8;
    while (size < 2 * most)
        size *= 2;
    return (struct pairs){arena_zero(arena, size, sizeof(struct pair)), size - 1};
}

static struct pair *pairs_at(const struct pairs *pairs, uint64_t key) {
    uint32_t slot = hash_folded(key * UINT64_C(0x9e3779b97f4a7c15)) & pairs->mask;
    while (pairs->slots[slot].key != 0 && pairs->slots[slot].key != key)
        slot = (slot + 1) & pairs->mask;
    return &pairs->slots[slot];
}

static uint64_t uid_of(const struct exit_note *note) {
    return note_has_unit_uid(note)
               ? hash_more(HASH_START, &note->unit_uid, sizeof note->unit_uid) | 1
               : 0;
}

static uint64_t name_of(const struct exit_note *note) {
    return note->unit == STRING_NONE ? 0 : hash_slice(intern_slice(note->unit));
}

// Where no node is named, both lines stand in one log.
static uint64_t kill_of(const struct exit_note *note) {
    uint64_t hash = hash_more(HASH_START, &note->node, sizeof note->node);
    hash = hash_more(hash, &note->job, sizeof note->job);
    if (note->node == STRING_NONE)
        hash = hash_more(hash, &note->key.source, sizeof note->key.source);
    return hash_more(hash, &note->pid, sizeof note->pid) | 1;
}

static bool is_kill(const struct exit_note *note) {
    return note_kind(note) == OBSERVATION_OOM_KILL && note->pid >= 0;
}

static uint64_t find_unit(const struct exit_notes *from, const struct pairs *names,
                          const struct exit_note *note) {
    struct pod_place place;
    uint64_t name = name_of(note);
    if (name == 0 && note_has_unit_uid(note))
        name = pairs_at(names, uid_of(note))->value;
    if (name == 0 && note->container != 0)
        name = pairs_at(names, note->container)->value;
    if (name == 0 && note_has_unit_uid(note) &&
        pod_map_find_uid(&from->pods, note->unit_uid, &place))
        name = place.name;
    return name;
}

const struct note_where *exits_find_where(const struct exit_notes *from,
                                          const struct exit_list *list, struct arena *arena) {
    struct note_where *where = arena_zero(arena, list->note_count + 1, sizeof *where);
    struct pairs names = pairs_make(2 * list->note_count, arena);
    struct pairs kills = pairs_make(list->note_count, arena);
    for (uint32_t i = 0; i < list->note_count; i++) {
        const struct exit_note *note = list->notes[i];
        if (note->unit != STRING_NONE && note_has_unit_uid(note))
            *pairs_at(&names, uid_of(note)) = (struct pair){uid_of(note), name_of(note)};
        if (note->unit != STRING_NONE && note->container != 0)
            *pairs_at(&names, note->container) = (struct pair){note->container, name_of(note)};
        if (is_kill(note) && note_is_contained(note))
            *pairs_at(&kills, kill_of(note)) = (struct pair){kill_of(note), i};
    }
    for (uint32_t i = 0; i < list->note_count; i++) {
        const struct exit_note *note = list->notes[i];
        const struct pair *kill = pairs_at(&kills, kill_of(note));
        if (is_kill(note) && !note_is_contained(note) && kill->key != 0) {
            const struct exit_note *other = list->notes[kill->value];
            uint64_t apart = note->time_ns > other->time_ns ? note->time_ns - other->time_ns
                                                            : other->time_ns - note->time_ns;
            note = apart <= SAME_KILL_NS ? other : note;
        }
        where[i] = (struct note_where){find_unit(from, &names, note), note_is_contained(note)};
    }
    return where;
}
