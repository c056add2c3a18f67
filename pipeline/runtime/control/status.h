// SPDX-License-Identifier: Apache-2.0
// What a running service tells of itself, as one JSON object: for `culprit top`.
#pragma once

#include "base/buffer.h"

struct service;

// Counters and the pipelines' overviews: no pipeline's lock is taken, so that an evaluation neither
// waits for it nor holds it up. Any thread. docs/running.md says what each key means.
void control_status_write(struct service *service, struct buffer *out);
