// SPDX-License-Identifier: Apache-2.0
// How are verdicts kept when their batch is gone, so that a crash does not lose them?
//
// Each is written as one run of bytes, numbers as they are and texts behind their sizes, and cut
// into chunks that are rows of a table. Reading it back checks every size: what does not fit is
// left out. Putting one costs a search over those that are kept, which are few and change seldom.
#include "exporters/html/verdicts.h"

#include "base/memory.h"

enum {
    CHUNK_BYTES = 1016,
    ROWS_PER_CHUNK = 16,
    // The schema's limits, with room: 1024 entities, 256 pieces of evidence, 64 attributes.
    VERDICT_BYTES_MAX = 4 * 1024 * 1024,
};

struct chunk {
    uint32_t next; // TABLE_NO_ROW: the last one
    uint32_t reserved;
    char bytes[CHUNK_BYTES];
};

struct kept_verdict {
    uint32_t chunk; // the first one
    string_id job;
    uint32_t size; // bytes in the chunks; 0: could not be read back
    uint32_t over; // resolved
    uint64_t change;
    char id[VERDICT_ID_SIZE];
};

void kept_verdicts_init(struct kept_verdicts *kept) {
    *kept = (struct kept_verdicts){0};
    table_init(&kept->rows, "html.verdicts", sizeof(struct kept_verdict), ROWS_PER_CHUNK);
    table_init(&kept->chunks, "html.texts", sizeof(struct chunk), ROWS_PER_CHUNK);
    buffer_init(&kept->scratch, VERDICT_BYTES_MAX);
}

void kept_verdicts_release(struct kept_verdicts *kept) {
    table_release(&kept->rows);
    table_release(&kept->chunks);
    buffer_release(&kept->scratch);
}

static struct kept_verdict *kept_at(const struct kept_verdicts *kept, uint32_t row) {
    return table_row(&kept->rows, row);
}

// -- writing --------------------------------------------------------------------------------------

static void put_number(struct buffer *out, uint64_t number) {
    buffer_append(out, (struct slice){(const char *)&number, sizeof number});
}

static void put_text(struct buffer *out, struct slice text) {
    put_number(out, text.size);
    buffer_append(out, text);
}

static void verdict_write(const struct verdict *verdict, struct buffer *out) {
    put_text(out, slice_of(verdict->pattern));
    put_text(out, slice_of(verdict->kind));
    put_text(out, slice_of(verdict->action));
    put_text(out, verdict->headline);
    put_text(out, verdict->remediation);
    const uint64_t numbers[] = {
        verdict->state,
        verdict->severity,
        verdict->partial,
        (uint64_t)verdict->confidence,
        verdict->start_ns,
        verdict->end_ns,
        verdict->entities_dropped,
        verdict->evidence_dropped,
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        put_number(out, numbers[i]);
    put_number(out, verdict->entity_count);
    for (uint32_t i = 0; i < verdict->entity_count; i++) {
        put_text(out, slice_of(verdict->entities[i].kind));
        put_text(out, verdict->entities[i].name);
        put_number(out, verdict->entities[i].role);
    }
    put_number(out, verdict->evidence_count);
    for (uint32_t i = 0; i < verdict->evidence_count; i++) {
        put_text(out, verdict->evidence[i].uid);
        put_text(out, verdict->evidence[i].description);
        put_number(out, verdict->evidence[i].time_ns);
        put_number(out, (uint64_t)verdict->evidence[i].role << 1 | verdict->evidence[i].has_time);
    }
    put_number(out, verdict->attribute_count);
    for (uint32_t i = 0; i < verdict->attribute_count; i++) {
        put_text(out, slice_of(verdict->attributes[i].key));
        put_text(out, verdict->attributes[i].value);
    }
    put_number(out, verdict->related_count);
    for (uint32_t i = 0; i < verdict->related_count; i++) {
        put_text(out, slice_of(verdict->related[i].id));
        put_number(out, verdict->related[i].relation);
    }
}

static void chunks_free(struct kept_verdicts *kept, const struct kept_verdict *row) {
    uint32_t at = row->chunk;
    for (uint32_t left = row->size; left > 0;) {
        uint32_t next = ((const struct chunk *)table_row(&kept->chunks, at))->next;
        table_free(&kept->chunks, at);
        left -= left < CHUNK_BYTES ? left : CHUNK_BYTES;
        at = next;
    }
}

// From the last chunk to the first, so that each knows the next.
static uint32_t chunks_write(struct kept_verdicts *kept, struct slice bytes) {
    uint32_t next = TABLE_NO_ROW;
    for (size_t end = bytes.size; end > 0;) {
        size_t size = end % CHUNK_BYTES == 0 ? CHUNK_BYTES : end % CHUNK_BYTES;
        uint32_t at = table_add(&kept->chunks);
        struct chunk *chunk = table_row(&kept->chunks, at);
        memcpy(chunk->bytes, bytes.data + end - size, size);
        chunk->next = next;
        next = at;
        end -= size;
    }
    return next;
}

// Who goes when there is no room: a verdict that is over before one that stands, then by age.
static struct kept_verdict *least_wanted(const struct kept_verdicts *kept) {
    struct kept_verdict *least = kept_at(kept, 0);
    for (uint32_t i = 1; i < kept->rows.used; i++) {
        struct kept_verdict *row = kept_at(kept, i);
        bool over = row->over != 0, least_over = least->over != 0;
        if (over != least_over ? over : row->change < least->change)
            least = row;
    }
    return least;
}

static struct kept_verdict *row_for(struct kept_verdicts *kept, const char *id) {
    for (uint32_t i = 0; i < kept->rows.used; i++)
        if (strcmp(kept_at(kept, i)->id, id) == 0)
            return kept_at(kept, i);
    if (kept->rows.used < KEPT_VERDICTS_MAX)
        return kept_at(kept, table_add(&kept->rows));
    return least_wanted(kept);
}

void kept_verdicts_put(struct kept_verdicts *kept, const struct verdict *verdict) {
    buffer_reset(&kept->scratch);
    verdict_write(verdict, &kept->scratch);
    assert(!kept->scratch.failed); // the schema's limits
    struct kept_verdict *row = row_for(kept, verdict->id);
    chunks_free(kept, row);
    *row = (struct kept_verdict){
        .chunk = chunks_write(kept, buffer_slice(&kept->scratch)),
        .job = verdict->job,
        .size = (uint32_t)kept->scratch.size,
        .over = verdict->state == VERDICT_RESOLVED,
        .change = ++kept->changes,
    };
    memcpy(row->id, verdict->id, sizeof row->id);
}

// -- reading --------------------------------------------------------------------------------------

struct reader {
    struct slice left;
    struct arena *arena;
    bool failed;
};

static uint64_t get_number(struct reader *reader) {
    uint64_t number = 0;
    if (reader->left.size < sizeof number) {
        reader->failed = true;
        return 0;
    }
    memcpy(&number, reader->left.data, sizeof number);
    reader->left.data += sizeof number;
    reader->left.size -= sizeof number;
    return number;
}

static struct slice get_text(struct reader *reader) {
    uint64_t size = get_number(reader);
    if (size > reader->left.size) {
        reader->failed = true;
        return (struct slice){"", 0};
    }
    struct slice text = {reader->left.data, (size_t)size};
    reader->left.data += size;
    reader->left.size -= (size_t)size;
    return text;
}

static const char *get_name(struct reader *reader) {
    return arena_text(reader->arena, get_text(reader));
}

// A number up to `max`; else it fails.
static uint32_t get_count(struct reader *reader, uint32_t max) {
    uint64_t count = get_number(reader);
    if (count > max)
        reader->failed = true;
    return reader->failed ? 0 : (uint32_t)count;
}

static void entities_read(struct reader *reader, struct verdict *verdict) {
    verdict->entity_count = get_count(reader, VERDICT_ENTITIES_MAX);
    verdict->entities = arena_zero(reader->arena, verdict->entity_count, sizeof *verdict->entities);
    for (uint32_t i = 0; i < verdict->entity_count; i++) {
        verdict->entities[i].kind = get_name(reader);
        verdict->entities[i].name = get_text(reader);
        verdict->entities[i].role = (enum entity_role)get_count(reader, ROLE_VICTIM);
    }
}

static void evidence_read(struct reader *reader, struct verdict *verdict) {
    verdict->evidence_count = get_count(reader, VERDICT_EVIDENCE_MAX);
    verdict->evidence =
        arena_zero(reader->arena, verdict->evidence_count, sizeof *verdict->evidence);
    for (uint32_t i = 0; i < verdict->evidence_count; i++) {
        struct evidence *evidence = &verdict->evidence[i];
        evidence->uid = get_text(reader);
        evidence->description = get_text(reader);
        evidence->time_ns = get_number(reader);
        uint32_t bits = get_count(reader, EVIDENCE_CONTEXT << 1 | 1);
        evidence->role = (enum evidence_role)(bits >> 1);
        evidence->has_time = (bits & 1) != 0;
    }
}

static void attributes_read(struct reader *reader, struct verdict *verdict) {
    verdict->attribute_count = get_count(reader, VERDICT_ATTRIBUTES_MAX);
    verdict->attributes =
        arena_zero(reader->arena, verdict->attribute_count, sizeof *verdict->attributes);
    for (uint32_t i = 0; i < verdict->attribute_count; i++) {
        verdict->attributes[i].key = get_name(reader);
        verdict->attributes[i].value = get_text(reader);
    }
}

static void related_read(struct reader *reader, struct verdict *verdict) {
    verdict->related_count = get_count(reader, VERDICT_RELATED_MAX);
    verdict->related = arena_zero(reader->arena, verdict->related_count, sizeof *verdict->related);
    for (uint32_t i = 0; i < verdict->related_count; i++) {
        struct slice id = get_text(reader);
        if (id.size >= sizeof verdict->related[i].id)
            reader->failed = true;
        else if (id.size > 0)
            memcpy(verdict->related[i].id, id.data, id.size);
        verdict->related[i].relation = (enum relation)get_count(reader, RELATION_SAME_INCIDENT);
    }
}

static bool verdict_read(struct reader *reader, struct verdict *verdict) {
    verdict->pattern = get_name(reader);
    verdict->kind = get_name(reader);
    verdict->action = get_name(reader);
    verdict->headline = get_text(reader);
    verdict->remediation = get_text(reader);
    verdict->state = (enum verdict_state)get_count(reader, VERDICT_RESOLVED);
    verdict->severity = (enum severity)get_count(reader, SEVERITY_CRITICAL);
    verdict->partial = get_count(reader, 1) != 0;
    verdict->confidence = (int)get_count(reader, 100);
    verdict->start_ns = get_number(reader);
    verdict->end_ns = get_number(reader);
    verdict->entities_dropped = get_count(reader, UINT32_MAX);
    verdict->evidence_dropped = get_count(reader, UINT32_MAX);
    entities_read(reader, verdict);
    evidence_read(reader, verdict);
    attributes_read(reader, verdict);
    related_read(reader, verdict);
    return !reader->failed && reader->left.size == 0;
}

static struct slice chunks_read(const struct kept_verdicts *kept, const struct kept_verdict *row,
                                struct arena *arena) {
    char *bytes = arena_take(arena, row->size + 1);
    uint32_t at = row->chunk;
    for (uint32_t done = 0; done < row->size;) {
        const struct chunk *chunk = table_row(&kept->chunks, at);
        uint32_t size = row->size - done < CHUNK_BYTES ? row->size - done : CHUNK_BYTES;
        memcpy(bytes + done, chunk->bytes, size);
        done += size;
        at = chunk->next;
    }
    return (struct slice){bytes, row->size};
}

const struct verdict *kept_verdicts_all(const struct kept_verdicts *kept, struct arena *arena,
                                        uint32_t *count) {
    struct verdict *all = arena_zero(arena, kept->rows.used, sizeof *all);
    *count = 0;
    for (uint32_t i = 0; i < kept->rows.used; i++) {
        const struct kept_verdict *row = kept_at(kept, i);
        struct reader reader = {.left = chunks_read(kept, row, arena), .arena = arena};
        struct verdict *verdict = &all[*count];
        if (!verdict_read(&reader, verdict))
            continue;
        verdict->job = row->job;
        memcpy(verdict->id, row->id, sizeof verdict->id);
        ++*count;
    }
    return all;
}

// -- kept across a crash
// ----------------------------------------------------------------------------

void kept_verdicts_state(struct kept_verdicts *kept, struct state_list *list) {
    struct state_entry *rows = state_list_table(list, &kept->rows);
    state_entry_string(rows, offsetof(struct kept_verdict, job));
    state_list_table(list, &kept->chunks);
    state_list_struct(list, "html.changes", &kept->changes, sizeof kept->changes);
}

static bool chunks_are_whole(const struct kept_verdicts *kept, const struct kept_verdict *row) {
    uint32_t at = row->chunk;
    for (uint32_t left = row->size; left > 0;) {
        if (at >= kept->chunks.used)
            return false;
        left -= left < CHUNK_BYTES ? left : CHUNK_BYTES;
        at = ((const struct chunk *)table_row(&kept->chunks, at))->next;
    }
    return true;
}

// When only one of the two tables was found, its rows are of no use.
void kept_verdicts_restored(struct kept_verdicts *kept) {
    if (kept->rows.used == 0)
        table_load(&kept->chunks, 0, TABLE_NO_ROW, 0);
    for (uint32_t i = 0; i < kept->rows.used; i++) {
        struct kept_verdict *row = kept_at(kept, i);
        row->id[sizeof row->id - 1] = '\0';
        if (row->size > VERDICT_BYTES_MAX || !chunks_are_whole(kept, row))
            row->size = 0;
    }
}
