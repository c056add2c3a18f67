// SPDX-License-Identifier: Apache-2.0
// Followed files that make sense only whole: JSON documents and gzip files.
#pragma once

#include "receivers/file/follow/follower.h"

// Reads the file when it has been quiet long enough and is whole. A document that was rewritten
// with more records is read from the first new one. True when its state has changed and it is to be
// looked at again.
bool settle_step(struct follower *follower, struct tracked_file *file);
// True when there is something that settle_step has not looked at.
bool settle_waits(const struct tracked_file *file);
