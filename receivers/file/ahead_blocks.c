// SPDX-License-Identifier: Apache-2.0
// A ring of blocks. One thread at a time reads, the next block of the input into the next place of
// the ring, and decodes it then while another reads on.
#include "receivers/file/ahead_parts.h"

#include "base/cores.h"
#include "base/intern.h"
#include "base/memory.h"
#include "receivers/decode/telemetry/telemetry.h"

#include <assert.h>
#include <string.h>

// Room in front of a block, for what is left of the one before.
enum { HEADROOM = 64 << 10, ARENA_BLOCK = 64 << 10, THREADS_MAX = 64 };
// A block that begins with a cache line is read in half the time (640 MB in 50 ms instead of 100,
// on an AMD EPYC): its memory is mostly in another core's cache, and a line that is written as a
// whole need not be fetched from there.
enum { CACHE_LINE = 64 };

struct ahead *ahead_new(uint32_t threads, size_t block_size) {
    assert(threads >= 2 && block_size > 0);
    struct ahead *ahead = memory_zero(1, sizeof *ahead);
    ahead->block_size = block_size;
    ahead->core = -1;
    ahead->thread_max = threads > THREADS_MAX ? THREADS_MAX : threads;
    ahead->threads = memory_zero(ahead->thread_max, sizeof *ahead->threads);
    ahead->place_count = 2 * ahead->thread_max + 2;
    ahead->places = memory_zero(ahead->place_count, sizeof *ahead->places);
    for (uint32_t i = 0; i < ahead->place_count; i++)
        arena_init(&ahead->places[i].foreseen.arena, ARENA_BLOCK);
    lock_init(&ahead->lock);
    wakeup_init(&ahead->work);
    wakeup_init(&ahead->ready);
    return ahead;
}

void ahead_free(struct ahead *ahead) {
    if (ahead == NULL)
        return;
    assert(ahead->input == NULL);
    ahead_files_end(ahead);
    lock_take(&ahead->lock);
    ahead->stopping = true;
    wakeup_all(&ahead->work, &ahead->lock);
    lock_release(&ahead->lock);
    for (uint32_t i = 0; i < ahead->thread_count; i++) {
        if (i > 0)
            pthread_join(ahead->threads[i].thread, NULL);
        memory_give(ahead->threads[i].state);
        memory_give(ahead->threads[i].parser_state);
    }
    ahead_files_release(ahead);
    for (uint32_t i = 0; i < ahead->place_count; i++) {
        memory_give(ahead->places[i].memory);
        memory_give(ahead->places[i].foreseen.events);
        memory_give(ahead->places[i].found.ahead.lines);
        arena_release(&ahead->places[i].foreseen.arena);
    }
    wakeup_destroy(&ahead->work);
    wakeup_destroy(&ahead->ready);
    lock_destroy(&ahead->lock);
    memory_give(ahead->rest.data);
    memory_give(ahead->threads);
    memory_give(ahead->places);
    memory_give(ahead);
}

// -- a block ------------------------------------------------------------------------------------

static struct place *place_of(struct ahead *ahead, uint64_t number) {
    return &ahead->places[number % ahead->place_count];
}

// With the lock held.
static bool may_read(const struct ahead *ahead) {
    assert(lock_is_held(&ahead->lock));
    return ahead->input != NULL && !ahead->ended && !ahead->reading &&
           ahead->next_read + 1 < ahead->taken + ahead->place_count;
}

// Memory with at least so much headroom. The block behind it begins with a cache line.
static void take_memory(struct place *place, size_t headroom) {
    place->memory = memory_take(headroom + CACHE_LINE + place->room);
    place->headroom = headroom + -((uintptr_t)place->memory + headroom) % CACHE_LINE;
}

static void read_block(struct ahead *ahead, struct place *place) {
    if (place->memory == NULL) {
        place->room = ahead->block_size;
        take_memory(place, HEADROOM);
    }
    place->read = 0;
    place->status = STATUS_OK;
    if (ahead->left > 0)
        place->status = file_input_read(ahead->input, place->memory + place->headroom,
                                        ahead->block_size, &place->read, &place->error);
    place->raw_done = ahead->input->raw_done;
    if (place->status != STATUS_OK)
        place->read = 0;
    ahead->left -= place->read < ahead->left ? place->read : ahead->left;
}

static struct event *next_event(struct foreseen *foreseen) {
    foreseen->events = memory_room(foreseen->events, &foreseen->capacity, foreseen->count,
                                   sizeof *foreseen->events);
    return &foreseen->events[foreseen->count];
}

void ahead_decode_lines(struct decoding *decoding, struct slice text, size_t line_max,
                        struct foreseen *foreseen, struct intern_later *later) {
    const char *at = text.data, *end = text.data + text.size, *newline;
    foreseen->count = 0;
    arena_reset(&foreseen->arena);
    intern_known_only(later == NULL);
    intern_postpone(later);
    for (; at < end && (newline = memchr(at, '\n', (size_t)(end - at))) != NULL; at = newline + 1) {
        struct slice line = {at, (size_t)(newline - at)};
        if (line.size > 0 && line.data[line.size - 1] == '\r')
            line.size--;
        if (line.size == 0 || line.data[0] != '{' || line.size > line_max)
            continue;
        struct event *event = next_event(foreseen);
        event->timeless = false;
        if (!decoder_stormlog.decode_plain(decoding->state, line, &foreseen->arena, event))
            continue;
        event->raw = line;
        event->position = later == NULL ? 0 : later->count;
        foreseen->count++;
    }
    intern_postpone(NULL);
    intern_known_only(false);
}

void ahead_find_lines(struct found *found, const struct forms *forms, struct slice text,
                      size_t step) {
    const char *begin = text.data;
    bool known = true;
    found->ahead.count = 0;
    for (size_t at = 0, shown = step; known && at < text.size; shown += step) {
        size_t limit = shown < text.size ? shown : text.size;
        const char *end = at < limit ? memrchr(begin + at, '\n', limit - at) : NULL;
        size_t size = end == NULL ? 0 : (size_t)(end - begin) + 1 - at;
        if (size > 0)
            known = search_ahead(&found->ahead, forms, begin, (struct slice){begin + at, size});
        at += size;
        if (limit == text.size)
            text.size = at; // what is left has no end
    }
    found->lines = (struct found_lines){.forms = forms,
                                        .text = text,
                                        .lines = found->ahead.lines,
                                        .count = known ? found->ahead.count : 0};
}

// The lines that begin and end in the block, but for its first: where that begins is not known.
static void decode_block(struct decoding *decoding, struct place *place, size_t line_max,
                         const struct forms *forms) {
    const char *at = place->memory + place->headroom, *end = at + place->read;
    const char *newline = place->read == 0 ? NULL : memchr(at, '\n', place->read);
    at = newline == NULL ? end : newline + 1;
    struct slice lines = {at, (size_t)(end - at)};
    ahead_decode_lines(decoding, lines, line_max, &place->foreseen, NULL);
    place->found.lines.count = 0;
    if (forms != NULL)
        ahead_find_lines(&place->found, forms, lines, lines.size);
}

// Reads the next block and decodes it; with the lock held, which is given up meanwhile.
static void work(struct decoding *decoding) {
    struct ahead *ahead = decoding->ahead;
    assert(may_read(ahead));
    struct place *place = place_of(ahead, ahead->next_read + 1);
    assert(place->state == PLACE_FREE);
    place->state = PLACE_TAKEN;
    ahead->reading = true;
    ahead->busy++;
    size_t line_max = ahead->line_max;
    const struct forms *forms = ahead->forms;
    lock_release(&ahead->lock);
    read_block(ahead, place);
    lock_take(&ahead->lock);
    ahead->reading = false;
    ahead->next_read++;
    ahead->ended = place->read == 0;
    if (may_read(ahead)) {
        wakeup_one(&ahead->work, &ahead->lock);
        // All others are at blocks: the taker, if it waits, reads one instead.
        if (ahead->busy + 1 == ahead->thread_count)
            wakeup_one(&ahead->ready, &ahead->lock);
    }
    lock_release(&ahead->lock);
    decode_block(decoding, place, line_max, forms);
    lock_take(&ahead->lock);
    place->state = PLACE_READY;
    ahead->busy--;
    wakeup_one(&ahead->ready, &ahead->lock);
}

static void *ahead_thread(void *argument) {
    struct decoding *decoding = argument;
    struct ahead *ahead = decoding->ahead;
    thread_name("read", "ahead");
    lock_take(&ahead->lock);
    while (!ahead->stopping) {
        if (may_read(ahead)) {
            work(decoding);
            continue;
        }
        if (ahead_files_may(ahead)) {
            ahead_files_work(decoding);
            continue;
        }
        wakeup_wait(&ahead->work, &ahead->lock);
    }
    lock_release(&ahead->lock);
    return NULL;
}

// -- the taker ----------------------------------------------------------------------------------

bool ahead_start_threads(struct ahead *ahead) {
    while (ahead->thread_count < ahead->thread_max) {
        struct decoding *decoding = &ahead->threads[ahead->thread_count];
        *decoding = (struct decoding){.ahead = ahead,
                                      .state = memory_zero(1, decoder_stormlog.state_size + 1)};
        bool is_taker = ahead->thread_count == 0;
        if (!is_taker && pthread_create(&decoding->thread, NULL, ahead_thread, decoding) != 0) {
            memory_give(decoding->state);
            ahead->thread_max = ahead->thread_count; // it is not tried again
            break;
        }
        ahead->thread_count++;
    }
    return ahead->thread_count > 1;
}

void ahead_keep_apart(struct ahead *ahead) {
    if (!core_changed(&ahead->core))
        return;
    for (uint32_t i = 1; i < ahead->thread_count; i++)
        core_avoid(ahead->core, ahead->threads[i].thread);
}

bool ahead_begin(struct ahead *ahead, struct file_input *input, uint64_t bytes, size_t line_max,
                 const struct forms *forms) {
    assert(ahead->input == NULL && input->descriptor >= 0);
    if (!ahead_start_threads(ahead))
        return false;
    for (uint32_t i = 0; i < ahead->place_count; i++)
        ahead->places[i].state = PLACE_FREE;
    lock_take(&ahead->lock);
    ahead->input = input;
    ahead->left = bytes;
    ahead->line_max = line_max;
    ahead->forms = forms;
    ahead->next_read = ahead->taken = 0;
    ahead->ended = ahead->reading = false;
    wakeup_one(&ahead->work, &ahead->lock);
    lock_release(&ahead->lock);
    return true;
}

static void keep_rest(struct ahead *ahead, struct slice rest) {
    if (rest.size > ahead->rest.capacity) {
        memory_give(ahead->rest.data);
        ahead->rest.capacity = rest.size;
        ahead->rest.data = memory_take(rest.size);
    }
    ahead->rest.size = rest.size;
    if (rest.size > 0)
        memcpy(ahead->rest.data, rest.data, rest.size);
}

// Puts the rest before the block. Where it is too long for that, both get memory of their own size,
// and what was foreseen is nothing any more.
static void put_rest(struct ahead *ahead, struct place *place) {
    if (ahead->rest.size > place->headroom) {
        char *before = place->memory;
        const char *block = before + place->headroom;
        take_memory(place, ahead->rest.size);
        memcpy(place->memory + place->headroom, block, place->read);
        memory_give(before);
        place->foreseen.count = 0;
        place->found.lines.count = 0;
    }
    if (ahead->rest.size > 0)
        memcpy(place->memory + place->headroom - ahead->rest.size, ahead->rest.data,
               ahead->rest.size);
}

static struct place *take_place(struct ahead *ahead) {
    ahead_keep_apart(ahead);
    lock_take(&ahead->lock);
    if (ahead->taken > 0)
        place_of(ahead, ahead->taken)->state = PLACE_FREE;
    struct place *place = place_of(ahead, ++ahead->taken);
    if (may_read(ahead))
        wakeup_one(&ahead->work, &ahead->lock);
    while (place->state != PLACE_READY) {
        if (may_read(ahead)) {
            work(&ahead->threads[0]);
            continue;
        }
        wakeup_wait(&ahead->ready, &ahead->lock);
    }
    lock_release(&ahead->lock);
    return place;
}

void ahead_next(struct ahead *ahead, struct slice rest, struct ahead_block *block) {
    assert(ahead->input != NULL);
    assert(ahead->taken == 0 || place_of(ahead, ahead->taken)->read > 0);
    keep_rest(ahead, rest);
    struct place *place = take_place(ahead);
    put_rest(ahead, place);
    *block = (struct ahead_block){.data = place->memory + place->headroom - rest.size,
                                  .size = rest.size + place->read,
                                  .read = place->read,
                                  .raw_done = place->raw_done,
                                  .foreseen = place->foreseen.events,
                                  .foreseen_count = place->foreseen.count,
                                  .found = place->found.lines,
                                  .status = place->status,
                                  .error = &place->error};
}

void ahead_end(struct ahead *ahead) {
    lock_take(&ahead->lock);
    ahead->ended = true;
    while (ahead->busy > 0)
        wakeup_wait(&ahead->ready, &ahead->lock);
    ahead->input = NULL;
    lock_release(&ahead->lock);
}
