// SPDX-License-Identifier: Apache-2.0
// Inside the file receiver: its options and its instance.
#pragma once

#include "pipeline/component/component.h"
#include "receivers/file/find/find.h"
#include "receivers/file/read.h"
#include "receivers/records/options.h"
#include "receivers/records/sink.h"

enum file_start { START_BEGINNING, START_END };

struct file_config {
    struct text_list include;
    struct text_list exclude;
    int start_at; // enum file_start
    struct byte_size max_line_size;
    struct byte_size max_document_size;
    struct record_config records;
    struct duration poll_interval;
    struct duration finish_after;
    int64_t max_sources;
};

enum { FILE_RECEIVER_MAGIC = 0x66696c65 };

struct file_receiver {
    uint32_t magic; // FILE_RECEIVER_MAGIC once it was started
    const struct file_config *config;
    const struct component_context *context;
    struct arena arena; // patterns
    struct file_finder finder;
    struct found_list found;
    uint32_t notes_said; // of found.notes
    struct file_reader reader;
    const char *waiting; // path of the first file that waits for the others; NULL: none
    // What may be read ahead: first of all files, then of those that waited, which are gathered at
    // its front meanwhile.
    struct ahead_path *paths;
    uint32_t path_count, waiting_count;
    uint32_t path_next; // the first that was not asked for
    bool begun;         // the first was asked for
};

// Tells what the last search noted; each note once.
void file_receiver_say_notes(struct file_receiver *receiver, struct feed *feed);
// Makes the feed known to the reader, and the job to the feed.
void file_receiver_attach(struct file_receiver *receiver, struct feed *feed);
