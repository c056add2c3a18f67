// SPDX-License-Identifier: Apache-2.0
// Compares by hashes: of what matters, and of the encoded line, state aside. Memory: 32 bytes a
// verdict; cost: one encoding a verdict and evaluation.
#include "pipeline/component/verdict_ledger.h"

#include "base/hash/hash.h"
#include "base/memory.h"

#include <stdlib.h>

struct ledger_entry {
    uint64_t id;      // the 16 hex digits of the verdict's id and its pattern, mixed
    uint64_t matter;  // what a line is written for
    uint64_t content; // all of it
    uint32_t state;
    string_id job; // STRING_REFUSED: this row is free
};

void verdict_ledger_init(struct verdict_ledger *ledger, const char *table_name) {
    *ledger = (struct verdict_ledger){0};
    table_init(&ledger->entries, table_name, sizeof(struct ledger_entry), 64);
    buffer_init(&ledger->scratch, 1u << 24);
}

void verdict_ledger_release(struct verdict_ledger *ledger) {
    table_release(&ledger->entries);
    buffer_release(&ledger->scratch);
    memory_give(ledger->index);
    ledger->index = NULL;
}

static struct ledger_entry *entry_at(const struct verdict_ledger *ledger, uint32_t row) {
    return table_row(&ledger->entries, row);
}

static uint32_t find_slot(const struct verdict_ledger *ledger, uint64_t id) {
    uint32_t slot = (uint32_t)(id >> 32) & (ledger->index_size - 1);
    while (ledger->index[slot] != TABLE_NO_ROW && entry_at(ledger, ledger->index[slot])->id != id)
        slot = (slot + 1) & (ledger->index_size - 1);
    return slot;
}

static void make_index(struct verdict_ledger *ledger, uint32_t size) {
    if (size != ledger->index_size) {
        memory_give(ledger->index);
        ledger->index = memory_take(size * sizeof(uint32_t));
        ledger->index_size = size;
    }
    memset(ledger->index, 0xff, size * sizeof(uint32_t));
    for (uint32_t row = 0; row < ledger->entries.used; row++)
        if (entry_at(ledger, row)->job != STRING_REFUSED)
            ledger->index[find_slot(ledger, entry_at(ledger, row)->id)] = row;
}

// The entry of this verdict, `*is_new` when it was not known; NULL when there are too many.
static struct ledger_entry *find_entry(struct verdict_ledger *ledger, uint64_t id, string_id job,
                                       bool *is_new) {
    if ((uint64_t)table_live(&ledger->entries) * 2 >= ledger->index_size)
        make_index(ledger, ledger->index_size == 0 ? 32 : ledger->index_size * 2);
    uint32_t slot = find_slot(ledger, id);
    *is_new = ledger->index[slot] == TABLE_NO_ROW;
    if (*is_new) {
        if (table_live(&ledger->entries) == LEDGER_VERDICTS_MAX) {
            ledger->left_out++;
            return NULL;
        }
        ledger->index[slot] = table_add(&ledger->entries);
        *entry_at(ledger, ledger->index[slot]) = (struct ledger_entry){.id = id, .job = job};
    }
    return entry_at(ledger, ledger->index[slot]);
}

static uint64_t hash_content(struct verdict_ledger *ledger, struct verdict *verdict) {
    verdict->state = VERDICT_OPEN;
    buffer_reset(&ledger->scratch);
    verdict_encode(verdict, &ledger->scratch);
    return hash_slice(buffer_slice(&ledger->scratch));
}

static uint64_t hash_number(uint64_t hash, uint64_t number) {
    return hash_more(hash, &number, sizeof number);
}

static uint64_t hash_text(uint64_t hash, struct slice text) {
    return hash_more(hash, text.data, text.size);
}

static uint64_t hash_matter(const struct verdict *verdict, uint64_t weight) {
    uint64_t hash = hash_number(HASH_START, weight);
    hash = hash_text(hash, slice_of(verdict->kind));
    hash = hash_text(hash, slice_of(verdict->action));
    hash = hash_number(hash, (uint64_t)verdict->severity);
    hash = hash_number(hash, (uint64_t)verdict->confidence);
    hash = hash_number(hash, verdict->partial);
    for (uint32_t i = 0; i < verdict->entity_count; i++) {
        const struct entity *entity = &verdict->entities[i];
        hash = hash_text(hash, slice_of(entity->kind));
        hash = hash_text(hash, entity->name);
        hash = hash_number(hash, (uint64_t)entity->role);
    }
    return hash;
}

void verdict_ledger_report(struct verdict_ledger *ledger, struct batch *batch,
                           struct verdict *verdict, bool ended, uint64_t weight) {
    bool is_new;
    struct ledger_entry *entry =
        find_entry(ledger, hash_slice(slice_of(verdict->id)), verdict->job, &is_new);
    if (entry == NULL)
        return;
    uint64_t matter = hash_matter(verdict, weight);
    uint64_t content = hash_content(ledger, verdict);
    bool was_ended = !is_new && entry->state == VERDICT_RESOLVED;
    bool same = batch->last ? content == entry->content : matter == entry->matter;
    verdict->unchanged = !is_new && same && was_ended == ended;
    if (verdict->unchanged && ended)
        return;
    if (verdict->unchanged) {
        verdict->state = entry->state;
        batch_append_verdict(batch, verdict);
        return;
    }
    verdict->state = ended ? VERDICT_RESOLVED : is_new ? VERDICT_OPEN : VERDICT_UPDATED;
    entry->state = verdict->state;
    entry->matter = matter;
    entry->content = content;
    batch_append_verdict(batch, verdict);
}

void verdict_ledger_state(struct verdict_ledger *ledger, struct state_list *list) {
    struct state_entry *entries = state_list_table(list, &ledger->entries);
    state_entry_string(entries, offsetof(struct ledger_entry, job));
    state_list_struct(list, "verdicts_left_out", &ledger->left_out, sizeof ledger->left_out);
}

void verdict_ledger_restored(struct verdict_ledger *ledger) {
    uint32_t size = 32;
    while (size <= (uint64_t)table_live(&ledger->entries) * 2)
        size *= 2;
    make_index(ledger, size);
}

static int compare_job(const void *key, const void *item) {
    string_id a = *(const string_id *)key;
    string_id b = ((const struct forgotten_job *)item)->job;
    return (a > b) - (a < b);
}

void verdict_ledger_forget(struct verdict_ledger *ledger, const struct forgotten *forgotten) {
    bool found = false;
    for (uint32_t row = 0; row < ledger->entries.used; row++) {
        struct ledger_entry *entry = entry_at(ledger, row);
        if (entry->job == STRING_REFUSED ||
            (!forgotten->everything && bsearch(&entry->job, forgotten->jobs, forgotten->job_count,
                                               sizeof *forgotten->jobs, compare_job) == NULL))
            continue;
        table_free(&ledger->entries, row);
        entry->job = STRING_REFUSED;
        found = true;
    }
    if (found)
        make_index(ledger, ledger->index_size);
}
