// SPDX-License-Identifier: Apache-2.0
// Compares verdicts by hashes: of what matters, and of the encoded line, state aside. Memory: 32
// bytes a verdict; cost: one encoding a verdict and evaluation.
#include "pipeline/component/verdict_ledger.h"

#include "base/hash/hash.h"
#include "base/sort.h"

#include <assert.h>
#include <stdlib.h>

enum { LEDGER_WAITS = 0xff }; // the state of one that was not put out yet; `content`: since when

struct ledger_entry {
    uint64_t id;      // the 16 hex digits of the verdict's id and its pattern, mixed
    uint64_t matter;  // what a line is written for
    uint64_t content; // all of it
    uint32_t state;
    string_id job; // STRING_REFUSED: this row is free
};

static const struct row_type ENTRIES = {
    .size = sizeof(struct ledger_entry),
    .rows_per_chunk = 64,
    .strings = {offsetof(struct ledger_entry, job)},
};

void verdict_ledger_init(void *part, const char *name) {
    struct verdict_ledger *ledger = part;
    *ledger = (struct verdict_ledger){.magic = VERDICT_LEDGER_MAGIC};
    table_start(&ledger->entries, name, &ENTRIES);
    buffer_init(&ledger->scratch, 1u << 24);
}

static struct verdict_ledger *ledger_of(void *part) {
    struct verdict_ledger *ledger = part;
    assert(ledger->magic == VERDICT_LEDGER_MAGIC);
    return ledger;
}

void verdict_ledger_release(void *part) {
    struct verdict_ledger *ledger = ledger_of(part);
    table_release(&ledger->entries);
    buffer_release(&ledger->scratch);
    row_index_release(&ledger->index);
    *ledger = (struct verdict_ledger){0};
}

static struct ledger_entry *entry_at(const struct verdict_ledger *ledger, uint32_t row) {
    assert(row < ledger->entries.used);
    return table_row(&ledger->entries, row);
}

// The entry of this verdict, `*is_new` when it was never put out; NULL when there are too many.
static struct ledger_entry *find_entry(struct verdict_ledger *ledger, uint64_t id, string_id job,
                                       bool *is_new) {
    uint32_t hash = row_hash(id, 0), row;
    *is_new = false;
    for (uint32_t at = 0; (row = row_index_next(&ledger->index, hash, &at)) != TABLE_NO_ROW;)
        if (entry_at(ledger, row)->id == id) {
            *is_new = entry_at(ledger, row)->state == LEDGER_WAITS;
            return entry_at(ledger, row);
        }
    if (table_live(&ledger->entries) == LEDGER_VERDICTS_MAX) {
        ledger->left_out++;
        return NULL;
    }
    *is_new = true;
    row = table_add(&ledger->entries);
    *entry_at(ledger, row) = (struct ledger_entry){.id = id, .job = job};
    row_index_put(&ledger->index, hash, row);
    return entry_at(ledger, row);
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

bool verdict_ledger_waits(struct verdict_ledger *ledger, const struct batch *batch,
                          const struct verdict *verdict, uint64_t patience_ns) {
    bool is_new;
    assert(ledger->magic == VERDICT_LEDGER_MAGIC && verdict->id[0] != '\0');
    assert(batch->evaluate);
    if (batch->last)
        return false;
    struct ledger_entry *entry =
        find_entry(ledger, hash_slice(slice_of(verdict->id)), verdict->job, &is_new);
    if (entry == NULL || !is_new)
        return false;
    if (entry->state != LEDGER_WAITS) {
        entry->state = LEDGER_WAITS;
        entry->content = batch->as_of_ns;
    }
    return batch->as_of_ns - entry->content < patience_ns;
}

void verdict_ledger_report(struct verdict_ledger *ledger, struct batch *batch,
                           struct verdict *verdict, bool ended, uint64_t weight) {
    bool is_new;
    assert(ledger->magic == VERDICT_LEDGER_MAGIC && verdict->id[0] != '\0');
    struct ledger_entry *entry =
        find_entry(ledger, hash_slice(slice_of(verdict->id)), verdict->job, &is_new);
    if (entry == NULL)
        return;
    uint64_t matter = hash_matter(verdict, weight);
    // All of it is written out only where that decides, or may decide later.
    uint64_t content = batch->last ? hash_content(ledger, verdict) : 0;
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
    if (!batch->last)
        content = hash_content(ledger, verdict);
    verdict->state = ended ? VERDICT_RESOLVED : is_new ? VERDICT_OPEN : VERDICT_UPDATED;
    entry->state = verdict->state;
    entry->matter = matter;
    entry->content = content;
    batch_append_verdict(batch, verdict);
}

void verdict_ledger_state(void *part, struct state_list *list) {
    struct verdict_ledger *ledger = ledger_of(part);
    state_list_table(list, &ledger->entries);
    state_list_struct(list, "verdicts_left_out", &ledger->left_out, sizeof ledger->left_out);
}

void verdict_ledger_restored(void *part) {
    struct verdict_ledger *ledger = ledger_of(part);
    row_index_clear(&ledger->index);
    for (uint32_t row = 0; row < ledger->entries.used; row++)
        if (entry_at(ledger, row)->job != STRING_REFUSED)
            row_index_put(&ledger->index, row_hash(entry_at(ledger, row)->id, 0), row);
}

const struct state_part VERDICT_LEDGER = {
    .init = verdict_ledger_init,
    .release = verdict_ledger_release,
    .list = verdict_ledger_state,
    .restored = verdict_ledger_restored,
};

void verdict_ledger_forget(struct verdict_ledger *ledger, const struct forgotten *forgotten) {
    assert(ledger->magic == VERDICT_LEDGER_MAGIC);
    for (uint32_t row = 0; row < ledger->entries.used; row++) {
        struct ledger_entry *entry = entry_at(ledger, row);
        if (entry->job == STRING_REFUSED ||
            (!forgotten->everything && bsearch(&entry->job, forgotten->jobs, forgotten->job_count,
                                               sizeof *forgotten->jobs, compare_by_u32) == NULL))
            continue;
        row_index_remove(&ledger->index, row_hash(entry->id, 0), row);
        table_free(&ledger->entries, row);
        entry->job = STRING_REFUSED;
    }
}
