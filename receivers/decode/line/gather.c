// SPDX-License-Identifier: Apache-2.0
// Blocks stand in a list in the order in which they began; each has a buffer of its own, which is
// used again. A line is compared with the keys of the open blocks, at most GATHER_BLOCKS.
#include "receivers/decode/line/gather.h"

#include "base/memory.h"
#include "base/text/cut.h"

#include <assert.h>

struct place {
    uint64_t position;
    uint32_t lines;
};

struct block {
    const struct line_reader *reader; // NULL: not in use
    struct frame frame;               // its slices point into `who`
    uint64_t begun;                   // order of beginnings
    uint32_t lines;                   // physical ones
    uint32_t count;                   // messages
    uint32_t passed;                  // lines since the last message that were others'
    bool finished;
    bool cut;
    bool bare; // only its first line names the writer
    char *text;
    uint32_t size, capacity;
    // Where each message stood; only for readers with `next`.
    struct place *places;
    struct block_walk walk;
    uint32_t read; // messages that `next` has read
    uint32_t read_size;
    char who[1024]; // texts of the frame, as far as there is room
    uint32_t who_used;
};

struct gather {
    uint64_t begun;
    uint32_t open, finished;
    struct block *taken; // it is being read by `next`
    uint32_t latest;     // the place of the block that took a line last
    struct block blocks[GATHER_BLOCKS];
};

struct gather *gather_make(void) {
    return memory_zero(1, sizeof(struct gather));
}

void gather_free(struct gather *gather) {
    if (gather == NULL)
        return;
    for (uint32_t i = 0; i < GATHER_BLOCKS; i++) {
        memory_give(gather->blocks[i].text);
        memory_give(gather->blocks[i].places);
    }
    memory_give(gather);
}

static void note_place(struct block *block, const struct frame *frame, uint32_t lines) {
    if (block->reader->next == NULL)
        return;
    if (block->places == NULL)
        block->places = memory_take(GATHER_LINES_MAX * sizeof *block->places);
    assert(block->count < GATHER_LINES_MAX);
    block->places[block->count] = (struct place){frame->position, lines};
}

// Adds a message, which `lines` lines were; false when there is no room for it.
static bool append(struct block *block, const struct frame *frame, struct slice message,
                   uint32_t lines) {
    size_t wanted = (size_t)block->size + message.size + 1;
    if (wanted > GATHER_SIZE_MAX || block->count == GATHER_LINES_MAX)
        return false;
    note_place(block, frame, lines);
    if (wanted > block->capacity) {
        uint32_t capacity = block->capacity == 0 ? 1024 : block->capacity;
        while (capacity < wanted)
            capacity *= 2;
        block->text = memory_resize(block->text, capacity);
        block->capacity = capacity;
    }
    if (block->count > 0)
        block->text[block->size++] = '\n';
    memcpy(block->text + block->size, message.data, message.size);
    block->size += (uint32_t)message.size;
    block->count++;
    block->passed = 0;
    assert(block->size <= block->capacity);
    return true;
}

static void end(struct gather *gather, struct block *block, bool cut) {
    assert(block->reader != NULL && !block->finished && gather->open > 0);
    block->finished = true;
    block->cut = cut;
    gather->open--;
    gather->finished++;
}

static struct slice block_text(const struct block *block) {
    return (struct slice){block->text, block->size};
}

static struct block *begin(struct gather *gather, const struct line_reader *reader,
                           const struct frame *frame, struct slice first, uint32_t lines);

// Ends a full block and puts the line into one that goes on from it. False: it has no room there
// either.
static bool go_on(struct gather *gather, struct block *block, const struct frame *frame,
                  bool is_last) {
    struct slice first = text_until(block_text(block), '\n');
    if (first.size + frame->message.size + 2 > GATHER_SIZE_MAX ||
        gather->open + gather->finished == GATHER_BLOCKS)
        return false;
    end(gather, block, true);
    struct frame head = block->frame;
    head.position = frame->position;
    struct block *more = begin(gather, block->reader, &head, first, 0);
    append(more, frame, frame->message, frame->lines);
    more->lines = frame->lines;
    if (is_last)
        end(gather, more, frame->truncated);
    return true;
}

// Takes the line into the block; a line for which there is no room only counts.
static void take(struct gather *gather, struct block *block, const struct frame *frame,
                 bool is_last) {
    bool room = append(block, frame, frame->message, frame->lines);
    if (!room && block->reader->next != NULL && go_on(gather, block, frame, is_last))
        return;
    block->lines += frame->lines;
    block->frame.truncated = frame->truncated;
    if (!room && block->reader->next != NULL)
        block->places[block->count - 1].lines += frame->lines;
    if (is_last && room)
        end(gather, block, frame->truncated);
    else if (!room || frame->truncated ||
             (block->count == GATHER_LINES_MAX && block->reader->next == NULL))
        end(gather, block, true);
}

// Whether only its first line names the writer: the second stands directly behind it, and does not.
static bool is_bare(const struct block *block, const struct frame *frame) {
    const struct frame *first = &block->frame;
    return block->bare || (block->reader->bare && block->count == 1 && first->key != frame->key &&
                           first->position + block->lines == frame->position);
}

static bool may_take(const struct block *block, const struct frame *frame) {
    if (block->reader == NULL || block->finished)
        return false;
    bool unmarked =
        frame->key == frame->around && (block->reader->unmarked || is_bare(block, frame));
    return block->frame.key == frame->key || (unmarked && block->frame.around == frame->around);
}

static uint32_t passes_of(const struct line_reader *reader) {
    return reader->passes > 0 ? reader->passes : GATHER_PASSED_MAX;
}

bool gather_takes(struct gather *gather, const struct frame *frame) {
    const uint32_t latest = gather->latest;
    for (uint32_t i = 0; gather->open > 0 && i < GATHER_BLOCKS; i++) {
        // Of several that could take it the one that took a line last goes first: a line that does
        // not name its writer mostly goes on from the line before it.
        uint32_t place = i == 0 ? latest : i <= latest ? i - 1 : i;
        struct block *block = &gather->blocks[place];
        if (!may_take(block, frame))
            continue;
        enum block_step step =
            block->reader->more(block_text(block), block->count, frame, frame->message);
        if (step == BLOCK_PASS && ++block->passed <= passes_of(block->reader))
            continue;
        if (step == BLOCK_PASS || step == BLOCK_OVER) {
            end(gather, block, step == BLOCK_PASS);
            continue;
        }
        gather->latest = place;
        block->bare = is_bare(block, frame);
        take(gather, block, frame, step == BLOCK_LAST);
        return true;
    }
    return false;
}

static struct slice keep_who(struct block *block, struct slice text) {
    if (text.data == NULL || text.size > sizeof block->who - block->who_used)
        return (struct slice){NULL, 0};
    char *to = block->who + block->who_used;
    memcpy(to, text.data, text.size);
    block->who_used += (uint32_t)text.size;
    return (struct slice){to, text.size};
}

static struct block *oldest(struct gather *gather) {
    struct block *found = &gather->blocks[0];
    for (uint32_t i = 1; i < GATHER_BLOCKS; i++)
        if (gather->blocks[i].begun < found->begun)
            found = &gather->blocks[i];
    return found;
}

// One that is not in use. When all are, the oldest open one is cut, and the line gets none.
static struct block *free_block(struct gather *gather) {
    for (uint32_t i = 0; i < GATHER_BLOCKS; i++)
        if (gather->blocks[i].reader == NULL)
            return &gather->blocks[i];
    return NULL;
}

// A block with its first message.
static struct block *begin(struct gather *gather, const struct line_reader *reader,
                           const struct frame *frame, struct slice first, uint32_t lines) {
    struct block *block = free_block(gather);
    assert(reader->more != NULL && (reader->finish != NULL) != (reader->next != NULL));
    assert(block != NULL);
    gather->latest = (uint32_t)(block - gather->blocks);
    block->reader = reader;
    block->frame = *frame;
    block->begun = ++gather->begun;
    block->lines = lines;
    block->size = block->count = block->passed = block->who_used = block->read = block->read_size =
        0;
    block->walk = (struct block_walk){0};
    block->finished = block->cut = block->bare = false;
    gather->open++;
    struct slice *texts[] = {&block->frame.host,      &block->frame.pod,
                             &block->frame.namespace, &block->frame.unit_uid,
                             &block->frame.container, &block->frame.address,
                             &block->frame.program,   &block->frame.before};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = keep_who(block, *texts[i]);
    append(block, frame, first, lines);
    return block;
}

void gather_begin(struct gather *gather, const struct line_reader *reader,
                  const struct frame *frame) {
    struct slice message = frame->message;
    if (message.size >= GATHER_SIZE_MAX)
        message.size = GATHER_SIZE_MAX - 1;
    struct block *block = begin(gather, reader, frame, message, frame->lines);
    if (message.size < frame->message.size || frame->truncated)
        end(gather, block, true);
    else if (gather->open + gather->finished == GATHER_BLOCKS && !oldest(gather)->finished)
        end(gather, oldest(gather), true);
}

bool gather_holds(const struct gather *gather) {
    return gather != NULL && gather->open + gather->finished > 0;
}

void gather_finish(struct gather *gather) {
    for (uint32_t i = 0; i < GATHER_BLOCKS && gather->open > 0; i++)
        if (gather->blocks[i].reader != NULL && !gather->blocks[i].finished)
            end(gather, &gather->blocks[i], true);
}

static struct block *oldest_finished(struct gather *gather) {
    struct block *found = NULL;
    for (uint32_t i = 0; gather->finished > 0 && i < GATHER_BLOCKS; i++) {
        struct block *block = &gather->blocks[i];
        if (block->reader != NULL && block->finished &&
            (found == NULL || block->begun < found->begun))
            found = block;
    }
    return found;
}

bool gather_take(struct gather *gather, struct gathered *gathered) {
    struct block *found = gather->taken != NULL ? gather->taken : oldest_finished(gather);
    if (found == NULL)
        return false;
    *gathered = (struct gathered){.reader = found->reader,
                                  .frame = found->frame,
                                  .text = block_text(found),
                                  .walk = &found->walk,
                                  .lines = found->lines,
                                  .cut = found->cut};
    gathered->frame.message = gathered->text;
    if (found->reader->next != NULL) {
        gather->taken = found;
        return true;
    }
    found->reader = NULL;
    gather->finished--;
    return true;
}

void gather_read(struct gather *gather, uint64_t *position, uint32_t *lines) {
    struct block *block = gather->taken;
    size_t at = block->walk.at;
    assert(block != NULL && at > block->read_size && at <= block->size);
    assert(at == block->size || block->text[at - 1] == '\n');
    uint32_t first = block->read;
    for (const char *c = block->text + block->read_size; c < block->text + at; c++)
        block->read += *c == '\n';
    // A message may hold newlines of its own.
    if (at == block->size || block->read > block->count)
        block->read = block->count;
    if (first >= block->count)
        first = block->count - 1;
    *position = block->places[first].position;
    *lines = 0;
    for (uint32_t i = first; i < block->read; i++) {
        *lines += block->places[i].lines;
        block->places[i].lines = 0;
    }
    block->read_size = (uint32_t)at;
    if (at < block->size)
        return;
    block->reader = NULL;
    gather->taken = NULL;
    gather->finished--;
}
