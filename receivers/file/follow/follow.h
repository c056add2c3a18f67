// SPDX-License-Identifier: Apache-2.0
// Reads one followed file on from where it was left.
#pragma once

#include "receivers/file/follow/track.h"

// What following files needs, whichever file it is.
struct follower {
    struct file_reader *reader;
    struct track_table *table;
    uint64_t now_ns;     // monotonic, of this round
    uint64_t settled_ns; // a document or gzip file that was quiet this long is taken as whole
    bool ending;         // nothing more comes: what is there is all
    bool ticked;         // this round began a poll interval
};

// Reads one block of the file, or what else its state asks for. True when more may be there.
bool follow_step(struct follower *follower, struct tracked_file *file);
// The file has ended: a last line without newline is used when it is a record.
void follow_last_line(struct follower *follower, struct tracked_file *file);
// Looks whether the file has changed since, and sets `changed`.
void follow_check(struct follower *follower, struct tracked_file *file);
// Makes room in the window for bytes of another kind: hands over what is in it.
void follow_clear_window(struct follower *follower);
