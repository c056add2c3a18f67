// SPDX-License-Identifier: Apache-2.0
// Finds the zone of kernel logs whose times say none, before they are handed on.
//
// With inputs that end and without `timezone`, such logs wait until all else has been read. Then
// they are looked through once, together, and what they tell is held against the other inputs, if
// there are some. Cost: they are searched twice then. Bound: ZONE_SCAN_MAX of each is looked at.
#pragma once

#include "receivers/file/read.h"

enum { ZONE_SCAN_MAX = 256 << 20 };

// All are in reader->local_paths: settles their zone (reader->zone).
void file_zone_settle(struct file_reader *reader);
