// SPDX-License-Identifier: Apache-2.0
// What was acknowledged and no checkpoint holds yet: written, offered again, and deleted.
//
// A row is one entry: a version byte, the position of its first record (8 bytes), how many records
// (4), then each record's size (4) and bytes; numbers little endian. Records that are known to be
// refused are rows' records of size 0, so that positions stay what they were. The records of a row
// of the second version are frames of another culprit. In the third and fourth version, which are
// the first and the second again, the size of all that follows the count (4) and a block of it in
// LZ4's format stand there instead: the disk has a fifth of the bytes to take, which is what it
// costs most. On replay a record is first decoded apart, so that one that was refused when it came
// is not told of and counted twice.
#include "base/log.h"
#include "base/memory.h"
#include "receivers/decode/telemetry/telemetry.h"
#include "receivers/http/receiver.h"

#include <assert.h>
#include <lz4.h>
#include <unistd.h>

enum {
    ROW_VERSION = 1,
    ROW_VERSION_FRAMES = 2,
    ROW_VERSION_PACKED = 3,
    ROW_VERSION_FRAMES_PACKED = 4,
    ROW_HEAD = 13,
    ROW_POSITION_AT = 1,
    ROW_COUNT_AT = 9,
    ROW_SIZE_BYTES = 4, // before each row of work->rows
    REPEAT_VERSION = 2,
    REPEAT_HEAD = 27,
    TEND_ENTRIES = 256,
    PACK_MAX = 64 << 20 // bytes of a row; LZ4's own bound is far above
};

static void put_number(struct buffer *out, uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++)
        buffer_append_char(out, (char)(value >> (8 * i)));
}

static void set_number(char *at, uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++)
        at[i] = (char)(value >> (8 * i));
}

static uint64_t get_number(const char *at, unsigned bytes) {
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)(unsigned char)at[i] << (8 * i);
    return value;
}

// -- writing ------------------------------------------------------------------------------------

// The records of items [first, end), each behind its size, into work->plain.
static void put_records(struct http_work *work, uint32_t first, uint32_t end) {
    assert(first <= end && end <= work->count);
    buffer_reset(&work->plain);
    for (; first < end; first++) {
        const struct http_item *item = &work->items[first];
        uint32_t size = item->refusal == DECODE_OK && !item->repeated ? item->size : 0;
        put_number(&work->plain, size, 4);
        buffer_append(&work->plain, (struct slice){item->data, size});
    }
    assert(!work->plain.failed);
}

// The end of work->rows, behind which there are so many bytes.
static char *rows_end(struct http_work *work, size_t room) {
    size_t wanted = work->rows_size + room;
    if (wanted > work->rows_capacity) {
        work->rows_capacity = wanted;
        work->rows = memory_resize(work->rows, wanted);
    }
    return work->rows + work->rows_size;
}

// The block of work->plain behind its size; 0 when it would not be smaller.
static size_t pack_plain(struct http_work *work, char *out) {
    struct slice plain = buffer_slice(&work->plain);
    if (plain.size <= ROW_SIZE_BYTES || plain.size > PACK_MAX)
        return 0;
    set_number(out, plain.size, ROW_SIZE_BYTES);
    // No room for more than makes it smaller: then there is no block.
    int size = LZ4_compress_fast_extState(work->lz4, plain.data, out + ROW_SIZE_BYTES,
                                          (int)plain.size, (int)plain.size - ROW_SIZE_BYTES - 1, 1);
    assert(size >= 0);
    return size > 0 ? ROW_SIZE_BYTES + (size_t)size : 0;
}

static void add_row(struct http_work *work, uint32_t count) {
    struct slice plain = buffer_slice(&work->plain);
    char *size_at = rows_end(work, ROW_SIZE_BYTES + ROW_HEAD + plain.size);
    char *row = size_at + ROW_SIZE_BYTES;
    size_t size = pack_plain(work, row + ROW_HEAD);
    if (size > 0) {
        row[0] = work->frames ? ROW_VERSION_FRAMES_PACKED : ROW_VERSION_PACKED;
    } else {
        row[0] = work->frames ? ROW_VERSION_FRAMES : ROW_VERSION;
        size = plain.size;
        if (size > 0)
            memcpy(row + ROW_HEAD, plain.data, size);
    }
    set_number(row + ROW_POSITION_AT, 0, 8);
    set_number(row + ROW_COUNT_AT, count, 4);
    set_number(size_at, ROW_HEAD + size, ROW_SIZE_BYTES);
    work->rows_size += ROW_SIZE_BYTES + ROW_HEAD + size;
    assert(work->rows_size <= work->rows_capacity);
}

void http_journal_pack(struct http_work *work) {
    assert(!work->packed);
    if (work->lz4 == NULL)
        work->lz4 = memory_take((size_t)LZ4_sizeofState());
    work->rows_size = 0;
    uint32_t first = 0;
    do {
        uint32_t end = http_entry_end(work, first);
        put_records(work, first, end);
        add_row(work, end - first);
        first = end;
    } while (first < work->count);
    work->packed = true;
}

void http_journal_put(struct http_receiver *receiver, struct http_work *work,
                      struct storage_batch *batch) {
    assert(lock_is_held(&receiver->lock) && work->packed);
    uint64_t number = receiver->sequence, position = receiver->records + 1;
    for (char *at = work->rows, *end = at + work->rows_size; at < end;) {
        size_t size = (size_t)get_number(at, ROW_SIZE_BYTES);
        at += ROW_SIZE_BYTES;
        set_number(at + ROW_POSITION_AT, position, 8);
        position += get_number(at + ROW_COUNT_AT, 4);
        storage_put(batch, STORAGE_JOURNAL, receiver->context->id, ++number,
                    (struct slice){at, size});
        at += size;
    }
    receiver->journal_end = number;
    uint64_t one = 1;
    ssize_t written = write(receiver->wake, &one, sizeof one);
    (void)written;
}

void http_repeat_put(struct http_receiver *receiver, const struct http_work *work,
                     struct storage_batch *batch, uint64_t number) {
    assert(work->key != NULL && strlen(work->key) <= HTTP_KEY_MAX);
    struct buffer *row = &receiver->row;
    buffer_reset(row);
    put_number(row, REPEAT_VERSION, 1);
    put_number(row, (uint64_t)work->result.status, 2);
    put_number(row, work->result.accepted, 8);
    put_number(row, work->result.rejected, 8);
    put_number(row, work->result.other, 8);
    buffer_append_text(row, work->key);
    storage_put(batch, STORAGE_REPEATS, receiver->context->id, number, buffer_slice(row));
}

// -- offering again -----------------------------------------------------------------------------

struct replay {
    struct http_receiver *receiver;
    void *state; // of a decoder apart
    struct arena arena;
    uint64_t next; // number of the entry that comes next
    uint64_t entries;
    uint64_t left; // how many entries may still be offered
    bool frames;   // the row at hand holds frames
    char *plain;   // records of a row that was packed
    size_t plain_capacity;
};

static void offer_again(struct replay *replay, struct slice record, uint64_t position) {
    struct http_receiver *receiver = replay->receiver;
    struct feed *feed = atomic_load(&receiver->feed);
    struct event event = {.position = position};
    if (record.size == 0)
        return;
    arena_reset(&replay->arena);
    if (replay->frames) {
        http_offer_frame_again(receiver, record, position, replay->state, &replay->arena);
        return;
    }
    // What is an event beyond doubt was not refused when it came.
    if (feed_foresee(feed, receiver->source, record) ||
        !decode_refused(receiver->decoder->decode(replay->state, record, &replay->arena, &event,
                                                  &receiver->sink.fault)))
        (void)feed_offer(feed, receiver->source, record, position, &receiver->sink.fault);
}

// Pipelines take an entry only when they have the one before: where none is in the journal (it was
// damaged, or deleted before a pipeline was added) they are given an empty one.
static void fill_gap(struct http_receiver *receiver, uint64_t *next, uint64_t number) {
    struct source_position reached = {.detail = {receiver->records}};
    assert(number > 0);
    for (; *next < number; ++*next) {
        reached.number = *next;
        feed_source_reached(receiver->source, &reached);
        feed_flush(atomic_load(&receiver->feed));
    }
}

// The records of a row, one after the other; false at its end.
static bool next_record(const char **at, const char *end, struct slice *record) {
    if (end - *at < 4)
        return false;
    size_t size = (size_t)get_number(*at, 4);
    *at += 4;
    if (size > (size_t)(end - *at))
        return false;
    *record = (struct slice){*at, size};
    *at += size;
    return true;
}

// The records of a row, each behind its size; false when it is not a row that is known.
static bool unpack_row(struct replay *replay, struct slice row, struct slice *records) {
    if (row.size < ROW_HEAD || row.data[0] < ROW_VERSION || row.data[0] > ROW_VERSION_FRAMES_PACKED)
        return false;
    replay->frames = row.data[0] == ROW_VERSION_FRAMES || row.data[0] == ROW_VERSION_FRAMES_PACKED;
    *records = (struct slice){row.data + ROW_HEAD, row.size - ROW_HEAD};
    if (row.data[0] < ROW_VERSION_PACKED)
        return true;
    if (records->size < ROW_SIZE_BYTES)
        return false;
    size_t size = (size_t)get_number(records->data, ROW_SIZE_BYTES);
    struct slice block = {records->data + ROW_SIZE_BYTES, records->size - ROW_SIZE_BYTES};
    if (size == 0 || size > PACK_MAX || block.size > size)
        return false;
    if (size > replay->plain_capacity) {
        replay->plain_capacity = size;
        replay->plain = memory_resize(replay->plain, size);
    }
    *records = (struct slice){replay->plain, size};
    return LZ4_decompress_safe(block.data, replay->plain, (int)block.size, (int)size) == (int)size;
}

static void offer_row(struct replay *replay, uint64_t number, struct slice head,
                      struct slice records) {
    assert(head.size >= ROW_HEAD && number > 0);
    struct http_receiver *receiver = replay->receiver;
    uint64_t position = get_number(head.data + ROW_POSITION_AT, 8);
    uint64_t count = get_number(head.data + ROW_COUNT_AT, 4);
    uint64_t last = position + count - 1;
    struct source_position reached = {.number = number, .detail = {last}};
    const char *at = records.data;
    const char *end = records.data + records.size;
    struct slice record;
    // A sender that is new may end others, so before anything is offered.
    for (const char *ahead = at; replay->frames && next_record(&ahead, end, &record);)
        http_note_sender(receiver, record);
    feed_source_reached(receiver->source, &reached);
    for (uint64_t i = 0; i < count && next_record(&at, end, &record); i++)
        offer_again(replay, record, position + i);
    decoder_drop_held(receiver->decoder, replay->state, &replay->arena);
    feed_source_finish(atomic_load(&receiver->feed), receiver->source);
    http_pass_ends(receiver);
    feed_flush(atomic_load(&receiver->feed));
    if (last > receiver->records)
        receiver->records = last;
}

static bool replay_row(void *context, const char *name, uint64_t number, struct slice bytes) {
    (void)name;
    struct replay *replay = context;
    struct http_receiver *receiver = replay->receiver;
    struct feed *feed = atomic_load(&receiver->feed);
    if (replay->left == 0 || feed_pausing(feed))
        return false;
    replay->left--;
    struct slice records;
    if (!unpack_row(replay, bytes, &records)) {
        log_write(LOG_WARN, (struct log_site){"C2104", receiver->context->site},
                  "journal entry %llu is not of a kind that is known and was left out",
                  (unsigned long long)number);
        return true;
    }
    fill_gap(receiver, &replay->next, number);
    offer_row(replay, number, bytes, records);
    replay->next = number + 1;
    replay->entries++;
    return true;
}

static enum status replay_from(struct http_receiver *receiver, uint64_t first, uint64_t most,
                               uint64_t *entries, struct error *error) {
    struct replay replay = {.receiver = receiver,
                            .state = memory_zero(1, receiver->decoder->state_size),
                            .next = first,
                            .left = most};
    arena_init(&replay.arena, 4096);
    struct decoder_input input = receiver->sink.known;
    input.observed_ns = 1;
    if (receiver->decoder->begin != NULL)
        receiver->decoder->begin(replay.state, &input);
    enum status status = storage_scan(receiver->store, STORAGE_JOURNAL, receiver->context->id,
                                      first, UINT64_MAX, replay_row, &replay, error);
    if (receiver->decoder->release != NULL)
        receiver->decoder->release(replay.state);
    arena_release(&replay.arena);
    memory_give(replay.plain);
    memory_give(replay.state);
    *entries = replay.entries;
    return status;
}

// -- at the start -------------------------------------------------------------------------------

static bool read_repeat(void *context, const char *name, uint64_t number, struct slice bytes) {
    (void)name;
    struct http_receiver *receiver = context;
    // The version before had no count of other lines.
    bool is_old = bytes.size > 0 && bytes.data[0] == REPEAT_VERSION - 1;
    size_t head = is_old ? REPEAT_HEAD - 8 : REPEAT_HEAD;
    if (bytes.size <= head || (!is_old && bytes.data[0] != REPEAT_VERSION) ||
        bytes.size > head + HTTP_KEY_MAX)
        return true;
    char key[HTTP_KEY_MAX + 1];
    size_t size = bytes.size - head;
    memcpy(key, bytes.data + head, size);
    key[size] = '\0';
    if (repeats_find(&receiver->repeats, key) != NULL)
        return true;
    struct repeat_result result = {.status = (int)get_number(bytes.data + 1, 2),
                                   .accepted = get_number(bytes.data + 3, 8),
                                   .rejected = get_number(bytes.data + 11, 8),
                                   .other = is_old ? 0 : get_number(bytes.data + 19, 8)};
    (void)repeats_add(&receiver->repeats, key, number, 0, result);
    return true;
}

static enum status read_repeats(struct http_receiver *receiver, struct error *error) {
    const char *id = receiver->context->id;
    enum status status = storage_scan(receiver->store, STORAGE_REPEATS, id, 0, UINT64_MAX,
                                      read_repeat, receiver, error);
    // With a lower bound than before, the oldest are forgotten.
    if (status == STATUS_OK && receiver->repeats.count == receiver->repeats.max) {
        uint64_t oldest = receiver->repeats.ring[receiver->repeats.first].number;
        if (oldest > 1) {
            struct storage_batch *batch = storage_batch_new(receiver->store);
            storage_delete(batch, STORAGE_REPEATS, id, 0, oldest - 1);
            (void)storage_submit(batch);
        }
    }
    return status;
}

enum status http_journal_restore(struct http_receiver *receiver, struct error *error) {
    assert(receiver->source != NULL && atomic_load(&receiver->feed) != NULL);
    struct source_position restored = feed_source_restored(receiver->source);
    receiver->sequence = restored.number;
    receiver->records = restored.detail[0];
    http_senders_restore(receiver);
    if (receiver->store == NULL)
        return STATUS_OK;
    const char *id = receiver->context->id;
    uint64_t journal = storage_last_number(receiver->store, STORAGE_JOURNAL, id);
    uint64_t repeats = storage_last_number(receiver->store, STORAGE_REPEATS, id);
    uint64_t last = journal > repeats ? journal : repeats;
    receiver->journal_end = journal;
    receiver->journaling = receiver->config->ack == ACK_STORED || journal > restored.number;
    if (receiver->journaling)
        feed_keeps_journal(atomic_load(&receiver->feed), receiver->source);
    enum status status = read_repeats(receiver, error);
    uint64_t entries = 0;
    if (status == STATUS_OK && journal > restored.number)
        status = replay_from(receiver, restored.number + 1, UINT64_MAX, &entries, error);
    uint64_t next = (journal > restored.number ? journal : restored.number) + 1;
    if (last + 1 > next && !feed_pausing(atomic_load(&receiver->feed)))
        fill_gap(receiver, &next, last + 1);
    receiver->sequence = next - 1;
    if (entries > 0)
        log_write(LOG_INFO, (struct log_site){"C2105", receiver->context->site},
                  "%llu journal entries that no checkpoint held were read again",
                  (unsigned long long)entries);
    return status;
}

// -- meanwhile ----------------------------------------------------------------------------------

bool http_journal_needs_tending(struct http_receiver *receiver) {
    lock_take(&receiver->lock);
    bool needs = receiver->store != NULL && receiver->journal_end > receiver->deleted_to;
    lock_release(&receiver->lock);
    return needs;
}

void http_journal_tend(struct http_receiver *receiver) {
    struct feed *feed = atomic_load(&receiver->feed);
    uint64_t safe = feed_source_safe(feed, receiver->source).number;
    lock_take(&receiver->lock);
    uint64_t to = safe < receiver->journal_end ? safe : receiver->journal_end;
    if (to > receiver->deleted_to) {
        struct storage_batch *batch = storage_batch_new(receiver->store);
        storage_delete(batch, STORAGE_JOURNAL, receiver->context->id, 0, to);
        (void)storage_submit(batch);
        receiver->deleted_to = to;
    }
    lock_release(&receiver->lock);
    // In pieces, so that requests come in between.
    for (bool more = true; more && !feed_stopping(feed);) {
        lock_take(&receiver->lock);
        uint64_t entries = 0;
        struct error error;
        uint64_t lag = feed_lag(feed, receiver->source);
        if (lag != 0 && replay_from(receiver, lag, TEND_ENTRIES, &entries, &error) != STATUS_OK)
            log_write(LOG_WARN, (struct log_site){"C2106", receiver->context->site},
                      "the journal cannot be read: %s", error.message);
        more = lag != 0 && entries == TEND_ENTRIES;
        lock_release(&receiver->lock);
    }
}
