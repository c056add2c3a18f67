// SPDX-License-Identifier: Apache-2.0
// What may be left of a folder's files when the power fails?
//
// An image is moved along a log (disk_log.h). It keeps what is durable (synced) and what is not.
// disk_crash chooses one of the states that a disk may then hold:
// - of a file, each sector of 512 bytes as it was at some moment since the last sync, its length as
//   it was at some moment, or longer by zeros;
// - of names, those made, moved and removed since the folder's last sync: the first few of them, or
//   any of them, as a journal that is not ordered would do.
// The same log, position and seed give the same state.
#pragma once

#include "tests/fault/disk_log.h"

#include <stdbool.h>

struct disk_image;

// `folder`: whose files are there already, and durable. Ends the program when it cannot be read.
struct disk_image *disk_image_new(const char *folder, const struct disk_log *log);
void disk_image_free(struct disk_image *image);
// Takes the next record; false at the end.
bool disk_image_step(struct disk_image *image, const struct disk_record **record);
// Writes a state into `folder`, whose other files are removed.
void disk_crash(const struct disk_image *image, uint64_t seed, const char *folder);
