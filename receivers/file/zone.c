// SPDX-License-Identifier: Apache-2.0
#include "receivers/file/zone.h"

#include "base/memory.h"
#include "base/text/cut.h"
#include "base/text/time_zone.h"
#include "receivers/decode/log/local_log.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

// The whole lines in the window; a line that is too long is no line of the kernel.
static void scan_lines(struct file_reader *reader, struct local_log *log, struct local_times *times,
                       bool last) {
    struct file_window *window = &reader->window;
    window->start += local_log_read(log, window_rest(window), last, times);
    if (window->end - window->start > reader->sink.record_max)
        window->start = window->end;
}

// False: nothing could be read.
static bool scan(struct file_reader *reader, struct local_log *log, struct local_times *times) {
    struct file_window *window = &reader->window;
    struct error error;
    size_t got = 0;
    window->start = window->end = 0;
    do {
        window_reserve(window, FILE_BLOCK);
        if (file_input_read(&reader->input, window->data + window->end, FILE_BLOCK, &got, &error) !=
            STATUS_OK)
            got = 0;
        window->end += got;
        scan_lines(reader, log, times, got == 0);
    } while (got > 0 && reader->input.made < ZONE_SCAN_MAX);
    window->start = window->end = 0;
    return reader->input.made > 0;
}

static void scan_file(struct file_reader *reader, const char *path, struct local_times *times) {
    struct error error;
    if (file_input_open(&reader->input, path, &error) != STATUS_OK)
        return; // it is said when it is read
    struct decoder_input input = reader->sink.known;
    input.path = slice_of(path);
    input.is_file = true;
    input.observed_ns = file_written_ns(reader->input.descriptor);
    input.near_ns = file_near_ns(reader);
    if (input.node.size == 0)
        input.node = file_node_folder(reader->sink.feed, input.path);
    string_id node = input.node.size == 0 ? STRING_NONE : intern(input.node);
    struct local_log *log = local_log_make(&input, node == STRING_REFUSED ? STRING_NONE : node);
    times->files += scan(reader, log, times);
    local_log_free(log);
    file_input_close(&reader->input);
}

void file_zone_settle(struct file_reader *reader) {
    if (reader->local_count == 0)
        return;
    assert(reader->zone == NULL && reader->sink.known.zone == NULL);
    if (!feed_may_settle_zone(reader->sink.feed))
        return;
    struct local_times times = {.facts = memory_take(LOCAL_FACTS_MAX * sizeof *times.facts)};
    for (uint32_t i = 0; i < reader->local_count; i++)
        scan_file(reader, reader->local_paths[i], &times);
    int32_t quarters =
        times.lines == 0
            ? 0
            : feed_settle_zone(reader->sink.feed, slice_of(reader->local_paths[0]), &times);
    memory_give(times.facts);
    if (quarters == 0)
        return;
    char name[16];
    unsigned minutes = (unsigned)abs(quarters) * 15;
    snprintf(name, sizeof name, "%c%02u:%02u", quarters < 0 ? '-' : '+', minutes / 60 % 100,
             minutes % 60);
    reader->zone = time_zone_open(slice_of(name));
    assert(reader->zone != NULL);
}
