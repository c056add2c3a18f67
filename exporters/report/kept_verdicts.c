// SPDX-License-Identifier: Apache-2.0
// Keeps verdicts when their batch is gone, so that a crash does not lose them.
//
// Each is written as one run of bytes, numbers as they are and texts behind their sizes, and cut
// into chunks that are rows of a table. Reading it back checks every size: what does not fit is
// left out. Putting one costs a search over those that are kept, which are few and change seldom.
#include "exporters/report/kept_verdicts.h"

#include <assert.h>

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

static const struct row_type verdict_rows = {
    .size = sizeof(struct kept_verdict),
    .rows_per_chunk = ROWS_PER_CHUNK,
    .strings = {offsetof(struct kept_verdict, job)},
};
static const struct row_type text_rows = {.size = sizeof(struct chunk),
                                          .rows_per_chunk = ROWS_PER_CHUNK};

static struct kept_verdict *kept_at(const struct kept_verdicts *kept, uint32_t row) {
    return table_row(&kept->rows, row);
}

// -- a verdict as bytes ---------------------------------------------------------------------------

// One walk over a verdict that writes it or reads it. Numbers have eight bytes in the machine's
// order; a text stands behind its size.
struct codec {
    struct buffer *out; // NULL: reads from `left`
    struct slice left;
    struct arena *arena; // of what is read, but for texts, which stay where they are
    bool failed;
};

static void take(struct codec *codec, void *into, uint64_t size) {
    codec->failed |= size > codec->left.size;
    if (codec->failed)
        return;
    memcpy(into, codec->left.data, size);
    codec->left.data += size;
    codec->left.size -= size;
}

static void code_number(struct codec *codec, uint64_t *number) {
    if (codec->out != NULL)
        buffer_append(codec->out, (struct slice){(const char *)number, sizeof *number});
    else
        take(codec, number, sizeof *number);
}

// A number up to `max`; what is read beyond fails, and is 0.
static uint32_t code_count(struct codec *codec, uint64_t count, uint32_t max) {
    assert(codec->out == NULL || count <= max);
    count = codec->out == NULL ? 0 : count;
    code_number(codec, &count);
    codec->failed |= count > max;
    return codec->failed ? 0 : (uint32_t)count;
}

static void code_text(struct codec *codec, struct slice *text) {
    uint64_t size = text->size;
    if (codec->out != NULL) {
        code_number(codec, &size);
        buffer_append(codec->out, *text);
        return;
    }
    size = 0;
    code_number(codec, &size);
    codec->failed |= size > codec->left.size;
    *text = codec->failed ? (struct slice){"", 0} : (struct slice){codec->left.data, (size_t)size};
    codec->left.data += text->size;
    codec->left.size -= text->size;
}

static void code_name(struct codec *codec, const char **name) {
    struct slice text = codec->out == NULL ? (struct slice){"", 0} : slice_of(*name);
    code_text(codec, &text);
    if (codec->out == NULL)
        *name = arena_text(codec->arena, text);
}

// The number of items, and room for those that are read.
static void *code_array(struct codec *codec, void *items, uint32_t *count, uint32_t max,
                        size_t size) {
    *count = code_count(codec, *count, max);
    return codec->out != NULL ? items : arena_zero(codec->arena, *count, size);
}

static void code_lists(struct codec *codec, struct verdict *verdict) {
    verdict->entities = code_array(codec, verdict->entities, &verdict->entity_count,
                                   VERDICT_ENTITIES_MAX, sizeof *verdict->entities);
    for (uint32_t i = 0; i < verdict->entity_count; i++) {
        struct entity *entity = &verdict->entities[i];
        code_name(codec, &entity->kind);
        code_text(codec, &entity->name);
        entity->role = (enum entity_role)code_count(codec, entity->role, ROLE_VICTIM);
    }
    verdict->evidence = code_array(codec, verdict->evidence, &verdict->evidence_count,
                                   VERDICT_EVIDENCE_MAX, sizeof *verdict->evidence);
    for (uint32_t i = 0; i < verdict->evidence_count; i++) {
        struct evidence *evidence = &verdict->evidence[i];
        code_text(codec, &evidence->uid);
        code_text(codec, &evidence->description);
        code_number(codec, &evidence->time_ns);
        uint32_t bits = code_count(codec,
                                   (uint64_t)evidence->repeats << 3 |
                                       (uint64_t)evidence->role << 1 | evidence->has_time,
                                   1 << 3 | EVIDENCE_CONTEXT << 1 | 1);
        evidence->repeats = (bits & 8) != 0;
        evidence->role = (enum evidence_role)(bits >> 1 & 3);
        codec->failed |= evidence->role > EVIDENCE_CONTEXT;
        evidence->has_time = (bits & 1) != 0;
    }
    verdict->attributes = code_array(codec, verdict->attributes, &verdict->attribute_count,
                                     VERDICT_ATTRIBUTES_MAX, sizeof *verdict->attributes);
    for (uint32_t i = 0; i < verdict->attribute_count; i++) {
        code_name(codec, &verdict->attributes[i].key);
        code_text(codec, &verdict->attributes[i].value);
    }
    verdict->related = code_array(codec, verdict->related, &verdict->related_count,
                                  VERDICT_RELATED_MAX, sizeof *verdict->related);
    for (uint32_t i = 0; i < verdict->related_count; i++) {
        struct related *related = &verdict->related[i];
        struct slice id = slice_of(related->id);
        code_text(codec, &id);
        codec->failed |= id.size >= sizeof related->id;
        if (!codec->failed)
            memmove(related->id, id.data, id.size);
        related->relation =
            (enum relation)code_count(codec, related->relation, RELATION_SAME_INCIDENT);
    }
}

// All but job and id. Written, it stays as it is.
static void code_verdict(struct codec *codec, struct verdict *verdict) {
    code_name(codec, &verdict->pattern);
    code_name(codec, &verdict->kind);
    code_name(codec, &verdict->action);
    code_text(codec, &verdict->headline);
    code_text(codec, &verdict->remediation);
    verdict->state = (enum verdict_state)code_count(codec, verdict->state, VERDICT_RESOLVED);
    verdict->severity = (enum severity)code_count(codec, verdict->severity, SEVERITY_CRITICAL);
    verdict->partial = code_count(codec, verdict->partial, 1) != 0;
    verdict->confidence = (int)code_count(codec, (uint64_t)verdict->confidence, 100);
    code_number(codec, &verdict->start_ns);
    code_number(codec, &verdict->end_ns);
    verdict->entities_dropped = code_count(codec, verdict->entities_dropped, UINT32_MAX);
    verdict->evidence_dropped = code_count(codec, verdict->evidence_dropped, UINT32_MAX);
    code_lists(codec, verdict);
}

// -- keeping --------------------------------------------------------------------------------------

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
    assert(bytes.size > 0);
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
    assert(kept->rows.used > 0);
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
    assert(verdict->id[0] != '\0');
    struct verdict copy = *verdict;
    struct buffer bytes;
    buffer_init(&bytes, VERDICT_BYTES_MAX);
    code_verdict(&(struct codec){.out = &bytes}, &copy);
    assert(!bytes.failed); // the schema's limits
    struct kept_verdict *row = row_for(kept, verdict->id);
    chunks_free(kept, row);
    *row = (struct kept_verdict){
        .chunk = chunks_write(kept, buffer_slice(&bytes)),
        .job = verdict->job,
        .size = (uint32_t)bytes.size,
        .over = verdict->state == VERDICT_RESOLVED,
        .change = ++kept->changes,
    };
    memcpy(row->id, verdict->id, sizeof row->id);
    buffer_release(&bytes);
}

// -- reading --------------------------------------------------------------------------------------

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

struct kept_bytes {
    struct slice bytes;
    string_id job;
    char id[VERDICT_ID_SIZE];
};

struct kept_copy kept_verdicts_copy(const struct kept_verdicts *kept, struct arena *arena) {
    assert(kept->rows.used <= KEPT_VERDICTS_MAX);
    struct kept_bytes *items = arena_take(arena, kept->rows.used * sizeof *items);
    for (uint32_t i = 0; i < kept->rows.used; i++) {
        const struct kept_verdict *row = kept_at(kept, i);
        items[i] = (struct kept_bytes){.bytes = chunks_read(kept, row, arena), .job = row->job};
        memcpy(items[i].id, row->id, sizeof items[i].id);
    }
    return (struct kept_copy){items, kept->rows.used};
}

const struct verdict *kept_copy_read(const struct kept_copy *copy, struct arena *arena,
                                     uint32_t *count) {
    struct verdict *all = arena_zero(arena, copy->count, sizeof *all);
    *count = 0;
    for (uint32_t i = 0; i < copy->count; i++) {
        const struct kept_bytes *item = &copy->items[i];
        struct codec codec = {.left = item->bytes, .arena = arena};
        struct verdict *verdict = &all[*count];
        code_verdict(&codec, verdict);
        if (codec.failed || codec.left.size > 0)
            continue;
        verdict->job = item->job;
        memcpy(verdict->id, item->id, sizeof verdict->id);
        ++*count;
    }
    return all;
}

const struct verdict *kept_verdicts_all(const struct kept_verdicts *kept, struct arena *arena,
                                        uint32_t *count) {
    struct kept_copy copy = kept_verdicts_copy(kept, arena);
    return kept_copy_read(&copy, arena, count);
}

// -- after a load ---------------------------------------------------------------------------------

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
static void kept_restored(void *part) {
    struct kept_verdicts *kept = part;
    if (kept->rows.used == 0)
        table_load(&kept->chunks, 0, TABLE_NO_ROW, 0);
    for (uint32_t i = 0; i < kept->rows.used; i++) {
        struct kept_verdict *row = kept_at(kept, i);
        row->id[sizeof row->id - 1] = '\0';
        if (row->size > VERDICT_BYTES_MAX || !chunks_are_whole(kept, row))
            row->size = 0;
    }
}

static const struct state_row STATE[] = {
    STATE_ROWS(struct kept_verdicts, rows, "html.verdicts", verdict_rows),
    STATE_ROWS(struct kept_verdicts, chunks, "html.texts", text_rows),
    STATE_STRUCT(struct kept_verdicts, changes, "html.changes"),
};

const struct state_part kept_verdicts_part = {
    .rows = STATE, .row_count = STATE_ROW_COUNT(STATE), .restored = kept_restored};
