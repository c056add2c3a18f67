// SPDX-License-Identifier: Apache-2.0
// Reads a followed file of lines on from where it was left.
//
// Each read begins a little before the offset that was reached: the bytes there must be those that
// were there before (the tail's fingerprint), which finds files that were cut, replaced or filled
// anew, in the same call that reads what is new. An unfinished line is left where it is, in the
// file; only how far it was looked through is remembered, so that a long line that comes in small
// pieces is not read over and over. No memory of its own but the reader's window.
#pragma once

#include "receivers/file/follow/follower.h"

// Reads one block of a file in state TRACK_LINES that is open, or begins it anew. True when more
// may be there.
bool lines_step(struct follower *follower, struct tracked_file *file);
// Reads all that is there. False when the file had to begin anew.
bool lines_read_rest(struct follower *follower, struct tracked_file *file);
// Goes on at this offset, which was not reached by reading lines: takes the fingerprints anew.
void lines_go_to(struct follower *follower, struct tracked_file *file, uint64_t offset,
                 uint64_t lines);
// Takes the states of a bar that overwrites itself in the open line, and what is written between
// them, up to the last \r: nothing more came for a while. Looks once at what is there.
void lines_take_written(struct follower *follower, struct tracked_file *file);
// The file has ended: a last line without newline is used when it is a record.
void lines_take_last(struct follower *follower, struct tracked_file *file);
