// SPDX-License-Identifier: Apache-2.0
// Follows the files of a receiver while they grow, until the feed says stop.
#pragma once

#include "receivers/file/receiver.h"

// Finds files, reads what is there and what comes, finds new files, survives rotation. At a stop it
// reads what is there to its end and hands it over. On the receiver's own thread.
enum status file_tail(struct file_receiver *receiver, struct feed *feed,
                      struct error *error) MUST_USE;
