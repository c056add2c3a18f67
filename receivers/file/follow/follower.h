// SPDX-License-Identifier: Apache-2.0
// What reading any followed file needs: the window that all of them share, notes about a file, and
// bytes at an offset.
#pragma once

#include "receivers/file/follow/track.h"
#include "receivers/file/read.h"

struct follower {
    struct file_reader *reader;
    struct track_table *table;
    uint64_t now_ns;     // monotonic, of this round
    uint64_t settled_ns; // a document or gzip file that was quiet this long is taken as whole
    uint64_t finish_ns;  // lines that were quiet this long are taken for all that come
    bool ending;         // nothing more comes: what is there is all …
    bool keeps;          // … but what is not whole is left for the next start: there is a store
    bool ticked;         // this round began a poll interval
};

void follower_note(struct follower *follower, const struct tracked_file *file, const char *format,
                   ...) PRINTF_LIKE(3, 4);
// Whether the file has not changed for finish_ns.
bool follower_is_finished(const struct follower *follower, const struct tracked_file *file);
// Makes room in the window for bytes of another kind: hands over what is in it.
void follower_clear(struct follower *follower);
// Room for `size` bytes at the end of the window, without moving what events may point to.
char *follower_room(struct follower *follower, size_t size);
// Opens the file unless it is open. False when that is not possible now, which is noted once.
bool follower_open(struct follower *follower, struct tracked_file *file);
// Reads at an offset, whole unless the file ends; false on an error, which is noted.
bool follower_read(struct follower *follower, const struct tracked_file *file, char *to,
                   size_t size, uint64_t offset, size_t *got);
// Where data begins that is not before `offset`, behind a hole; the file's size when there is none.
uint64_t follower_data_at(const struct tracked_file *file, uint64_t offset);
// Whether the file holds at `offset` the bytes that the fingerprint stands for. `*unreadable` is
// set when that could not be read.
bool follower_holds(struct follower *follower, const struct tracked_file *file,
                    struct fingerprint print, uint64_t offset, bool *unreadable);
