// SPDX-License-Identifier: Apache-2.0
// What reading ahead in blocks and in files share: the threads, and how a text is decoded.
#pragma once

#include "base/arena.h"
#include "base/thread.h"
#include "receivers/decode/log/search.h"
#include "receivers/file/ahead.h"

enum place_state { PLACE_FREE, PLACE_TAKEN, PLACE_READY };

// Events of lines, and what they point to.
struct foreseen {
    struct event *events;
    uint32_t count, capacity;
    struct arena arena;
};

// What was found in a log, and the memory for it.
struct found {
    struct search_ahead ahead;
    struct found_lines lines;
};

// A block of the input at hand.
struct place {
    enum place_state state; // by the lock; the rest belongs to who has taken it
    char *memory;
    size_t room; // behind the headroom
    size_t headroom;
    size_t read;
    uint64_t raw_done;
    enum status status;
    struct error error;
    struct foreseen foreseen;
    struct found found;
};

// A file that comes, or the beginning of one.
struct file_place {
    enum place_state state; // as above
    struct ahead_path path;
    size_t held; // of the window
    struct file_input input;
    char *memory;
    size_t room, read;
    struct foreseen foreseen;
    struct found found;
    struct intern_later later;         // names in them
    const struct decoder_type *parser; // NULL: nothing was parsed
    void *parsed;
};

// One who decodes: a thread, or the taker.
struct decoding {
    struct ahead *ahead;
    void *state; // of decoder_stormlog
    const struct decoder_type *parser;
    void *parser_state; // of `parser`
    pthread_t thread;
};

// The files that come; by the lock, but for what `options` and `paths` point to.
struct ahead_files {
    const struct ahead_path *paths; // NULL: none
    uint32_t count;
    uint32_t claimed; // up to here somebody reads them, or has
    uint32_t taken;   // up to here the taker has them
    size_t held;      // bytes of those that were claimed and not given back
    uint32_t busy;    // who are at a file
    struct ahead_file_options options;
    struct file_place *places;
    struct file_place *lent; // that the taker has; NULL: none
};

struct ahead {
    size_t block_size;
    uint32_t place_count;
    struct place *places;
    uint32_t thread_max, thread_count;
    struct decoding *threads; // the first is the taker
    int core;                 // the taker's, when it took something last; -1: none yet
    struct buffer_of_rest {
        char *data;
        size_t size, capacity;
    } rest;

    struct lock lock;
    struct wakeup work;  // something may be read
    struct wakeup ready; // a block or file is, or nobody is at an input
    // By the lock:
    struct file_input *input; // NULL: none
    uint64_t left;            // bytes that are still to be read of it; belongs to who reads
    size_t line_max;
    const struct forms *forms; // of a log; NULL: it is none
    uint64_t next_read;        // number of the block that is read next
    uint64_t taken;            // … that the taker has; the first is 1, 0: none yet
    uint32_t busy;             // who are at a block
    bool reading;
    bool ended;
    bool stopping;
    struct ahead_files files;
};

// Starts them with the first call. False: there is none beside the taker.
bool ahead_start_threads(struct ahead *ahead);
// Keeps the others off the taker's core. For each block and file that it takes.
void ahead_keep_apart(struct ahead *ahead);
// Decodes the whole lines of `text` that are telemetry beyond doubt. With a `later` names that are
// new are postponed, and the events' positions say how many were up to them; else such lines are
// left out.
void ahead_decode_lines(struct decoding *decoding, struct slice text, size_t line_max,
                        struct foreseen *foreseen, struct intern_later *later);
// Finds what may be of interest in the whole lines of `text`, which is shown to the taker in steps
// of so many bytes.
void ahead_find_lines(struct found *found, const struct forms *forms, struct slice text,
                      size_t step);

// With the lock held: whether a file may be read ahead; does so, giving the lock up meanwhile.
bool ahead_files_may(const struct ahead *ahead);
void ahead_files_work(struct decoding *decoding);
void ahead_files_release(struct ahead *ahead);
