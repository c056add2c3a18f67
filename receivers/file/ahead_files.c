// SPDX-License-Identifier: Apache-2.0
// A ring of files. Whoever has nothing else to do opens the next file of the list, reads what is to
// be read of it, and decodes that; several do so at once. A file that nobody has begun with is the
// taker's to read, as all are without threads.
#include "receivers/file/ahead_parts.h"

#include "base/memory.h"
#include "receivers/decode/formats.h"
#include "receivers/decode/split.h"
#include "receivers/decode/telemetry/telemetry.h"

#include <assert.h>

// What a place keeps from file to file; more is given back.
enum { ARENA_BLOCK = 64 << 10, PLACE_KEPT_MAX = 2 << 20 };

static struct file_place *place_of(const struct ahead *ahead, uint32_t number) {
    return &ahead->files.places[number % ahead->place_count];
}

// What of the window a file takes: all that may be read of it.
static size_t bytes_of(struct ahead_path path) {
    return path.size > AHEAD_DOCUMENT_MAX ? AHEAD_DOCUMENT_MAX : (size_t)path.size;
}

// One file may be larger than the window.
bool ahead_files_may(const struct ahead *ahead) {
    assert(lock_is_held(&ahead->lock));
    const struct ahead_files *files = &ahead->files;
    size_t window = (size_t)ahead->thread_count * AHEAD_WINDOW;
    return files->claimed < files->count && place_of(ahead, files->claimed)->state == PLACE_FREE &&
           (files->held == 0 || files->held + bytes_of(files->paths[files->claimed]) <= window);
}

// -- reading ------------------------------------------------------------------------------------

// Reads up to `most` bytes in all; false when nothing more comes. The memory grows with what there
// is, so that the place can keep it.
static bool read_up_to(struct file_place *place, size_t most, size_t block_size) {
    while (place->read < most) {
        if (place->read == place->room) {
            place->room = place->room == 0 ? block_size : 2 * place->room;
            place->memory = memory_resize(place->memory, place->room);
        }
        size_t left = (place->room < most ? place->room : most) - place->read, got = 0;
        struct error ignored; // who reads on gets it again
        if (file_input_read(&place->input, place->memory + place->read,
                            left < block_size ? left : block_size, &got, &ignored) != STATUS_OK ||
            got == 0)
            return false;
        place->read += got;
    }
    return true;
}

// What can be parsed ahead of the input, if all of it may be one record.
static const struct decoder_type *parser_of(const struct ahead_file_options *options,
                                            struct format_guess guess) {
    const struct decoder_type *decoder = format_decoder(guess.kind);
    bool is_whole = guess.decided && guess.layout == LAYOUT_WHOLE;
    return options->documents && is_whole && decoder != NULL && decoder->parse != NULL ? decoder
                                                                                       : NULL;
}

static struct format_guess guess_of(const struct file_place *place,
                                    const struct ahead_file_options *options) {
    enum format_kind forced =
        options->forced != FORMAT_UNKNOWN ? options->forced : format_of_path(place->path.path);
    return format_guess_by((struct slice){place->memory, place->read}, place->input.ended, forced,
                           options->forms);
}

static void parse(struct decoding *decoding, struct file_place *place,
                  const struct decoder_type *parser) {
    if (decoding->parser != parser) {
        memory_give(decoding->parser_state);
        decoding->parser_state = memory_zero(1, parser->state_size + 1);
        decoding->parser = parser;
    }
    place->parsed = parser->parse(
        decoding->parser_state, (struct slice){place->memory, place->read}, &place->foreseen.arena);
    place->parser = place->parsed == NULL ? NULL : parser;
}

// The first line of a file is decoded as by the taker: with nothing learnt, so that names that
// are new come in the same order.
static void decode_lines(struct decoding *decoding, struct file_place *place,
                         const struct ahead_file_options *options, enum format_kind kind) {
    struct slice text = {place->memory, place->read};
    memset(decoding->state, 0, decoder_stormlog.state_size);
    place->later.arena = &place->foreseen.arena;
    ahead_decode_lines(decoding, text, options->line_max, &place->foreseen, &place->later);
    const struct decoder_type *decoder = format_decoder(kind);
    if (options->forms != NULL && decoder != NULL && format_is_of_lines(slice_of(decoder->name)))
        ahead_find_lines(&place->found, options->forms, text, decoding->ahead->block_size);
    // What it learnt may hold numbers of names that were postponed.
    if (place->later.count > 0)
        memset(decoding->state, 0, decoder_stormlog.state_size);
}

static void read_file(struct decoding *decoding, struct file_place *place,
                      const struct ahead_file_options *options) {
    struct error ignored; // who opens it gets it again
    size_t block_size = decoding->ahead->block_size;
    place->read = place->foreseen.count = place->later.count = place->found.lines.count = 0;
    place->parser = NULL;
    arena_reset(&place->foreseen.arena);
    place->input.stop_descriptor = options->stop_descriptor;
    if (file_input_open(&place->input, place->path.path.data, &ignored) != STATUS_OK)
        return;
    // A byte more than there is, so that the end is seen.
    size_t size = place->path.size < SIZE_MAX ? (size_t)place->path.size + 1 : SIZE_MAX;
    bool is_short = size <= AHEAD_SHORT_BLOCKS * block_size;
    bool more = read_up_to(place, block_size, block_size);
    struct format_guess guess = guess_of(place, options);
    const struct decoder_type *parser = parser_of(options, guess);
    if (more && parser != NULL)
        read_up_to(place, AHEAD_DOCUMENT_MAX, block_size);
    else if (more && is_short && guess.layout != LAYOUT_WHOLE)
        read_up_to(place, AHEAD_SHORT_BLOCKS * block_size, block_size);
    if (parser != NULL && place->input.ended)
        parse(decoding, place, parser);
    else if (guess.decided && guess.layout == LAYOUT_LINES)
        decode_lines(decoding, place, options, guess.kind);
}

void ahead_files_work(struct decoding *decoding) {
    struct ahead *ahead = decoding->ahead;
    assert(ahead_files_may(ahead));
    struct ahead_files *files = &ahead->files;
    struct file_place *place = place_of(ahead, files->claimed);
    place->path = files->paths[files->claimed++];
    place->state = PLACE_TAKEN;
    place->held = bytes_of(place->path);
    files->held += place->held;
    files->busy++;
    struct ahead_file_options options = files->options;
    if (ahead_files_may(ahead))
        wakeup_one(&ahead->work, &ahead->lock);
    lock_release(&ahead->lock);
    read_file(decoding, place, &options);
    lock_take(&ahead->lock);
    place->state = PLACE_READY;
    files->busy--;
    wakeup_one(&ahead->ready, &ahead->lock);
}

// -- the taker ----------------------------------------------------------------------------------

// With the lock held.
static void free_place(struct ahead *ahead, struct file_place *place) {
    assert(lock_is_held(&ahead->lock) && place->state == PLACE_READY);
    file_input_close(&place->input);
    if (place->room > PLACE_KEPT_MAX) {
        memory_give(place->memory);
        place->memory = NULL;
        place->room = 0;
        arena_release(&place->foreseen.arena);
    }
    ahead->files.held -= place->held;
    place->state = PLACE_FREE;
}

void ahead_files_begin(struct ahead *ahead, const struct ahead_path *paths, uint32_t count,
                       struct ahead_file_options options) {
    assert(options.line_max > 0);
    ahead_files_end(ahead);
    struct ahead_files *files = &ahead->files;
    if (count == 0 || !ahead_start_threads(ahead))
        return;
    if (files->places == NULL) {
        files->places = memory_zero(ahead->place_count, sizeof *files->places);
        for (uint32_t i = 0; i < ahead->place_count; i++) {
            files->places[i].input.descriptor = -1;
            arena_init(&files->places[i].foreseen.arena, ARENA_BLOCK);
        }
    }
    lock_take(&ahead->lock);
    files->paths = paths;
    files->count = count;
    files->options = options;
    files->claimed = files->taken = 0;
    wakeup_all(&ahead->work, &ahead->lock);
    lock_release(&ahead->lock);
}

// Waits until the place is ready, and reads other files meanwhile.
static void wait_for_place(struct ahead *ahead, const struct file_place *place) {
    while (place->state != PLACE_READY) {
        if (ahead_files_may(ahead)) {
            ahead_files_work(&ahead->threads[0]);
            continue;
        }
        wakeup_wait(&ahead->ready, &ahead->lock);
    }
}

// The place of the file that comes, if somebody has begun with it; else it is passed over.
static struct file_place *next_place(struct ahead *ahead, struct slice path) {
    struct ahead_files *files = &ahead->files;
    if (files->taken == files->count || !slice_equal(files->paths[files->taken].path, path))
        return NULL;
    uint32_t number = files->taken++;
    if (number == files->claimed) {
        files->claimed++;
        return NULL;
    }
    return place_of(ahead, number);
}

bool ahead_file_take(struct ahead *ahead, struct slice path, struct file_input *input,
                     struct ahead_file *file) {
    assert(input->descriptor < 0 && ahead->files.lent == NULL);
    *file = (struct ahead_file){.data = NULL};
    ahead_keep_apart(ahead);
    lock_take(&ahead->lock);
    struct file_place *place = next_place(ahead, path);
    if (place != NULL)
        wait_for_place(ahead, place);
    bool is_open = place != NULL && place->input.descriptor >= 0;
    if (place != NULL && !is_open)
        free_place(ahead, place);
    lock_release(&ahead->lock);
    if (!is_open)
        return false;
    ahead->files.lent = place;
    struct file_input own = *input;
    *input = place->input;
    place->input = own;
    *file = (struct ahead_file){.data = place->memory,
                                .size = place->read,
                                .foreseen = place->foreseen.events,
                                .foreseen_count = place->foreseen.count,
                                .later = place->later.count > 0 ? &place->later : NULL,
                                .found = place->found.lines,
                                .parser = place->parser,
                                .parsed = place->parsed};
    return true;
}

void ahead_file_done(struct ahead *ahead) {
    struct file_place *place = ahead->files.lent;
    if (place == NULL)
        return;
    ahead->files.lent = NULL;
    lock_take(&ahead->lock);
    free_place(ahead, place);
    if (ahead_files_may(ahead))
        wakeup_one(&ahead->work, &ahead->lock);
    lock_release(&ahead->lock);
}

void ahead_files_end(struct ahead *ahead) {
    ahead_file_done(ahead);
    struct ahead_files *files = &ahead->files;
    lock_take(&ahead->lock);
    files->claimed = files->count;
    while (files->busy > 0)
        wakeup_wait(&ahead->ready, &ahead->lock);
    for (uint32_t i = 0; files->places != NULL && i < ahead->place_count; i++)
        if (files->places[i].state == PLACE_READY)
            free_place(ahead, &files->places[i]);
    files->paths = NULL;
    files->count = files->claimed = files->taken = 0;
    lock_release(&ahead->lock);
}

void ahead_files_release(struct ahead *ahead) {
    assert(ahead->files.count == 0 && ahead->files.busy == 0);
    for (uint32_t i = 0; ahead->files.places != NULL && i < ahead->place_count; i++) {
        struct file_place *place = &ahead->files.places[i];
        file_input_release(&place->input);
        memory_give(place->memory);
        memory_give(place->foreseen.events);
        memory_give(place->found.ahead.lines);
        arena_release(&place->foreseen.arena);
    }
    memory_give(ahead->files.places);
    ahead->files.places = NULL;
}
