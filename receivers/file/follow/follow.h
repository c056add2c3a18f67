// SPDX-License-Identifier: Apache-2.0
// Reads one followed file on from where it was left, whatever its state.
#pragma once

#include "receivers/file/follow/follower.h"

// Reads one block of the file, or what else its state asks for. True when more may be there.
bool follow_step(struct follower *follower, struct tracked_file *file);
// Looks whether the file has changed since, and sets `changed`.
void follow_check(struct follower *follower, struct tracked_file *file);
