// SPDX-License-Identifier: Apache-2.0
// Rows against their own samples, and lines against rows: by the decoder of logs, so as they are
// read in earnest.
#pragma once

#include "base/buffer.h"
#include "pipeline/model/event.h"
#include "receivers/decode/forms/forms.h"

// "host=gpu-a01 rank=1 signal=9": what the event says beside its kind, without the constants of
// `form` (NULL: with all). Other events than observations say nothing.
void form_tell(const struct event *event, const struct form *form, struct buffer *out);

// Reads lines as a log. `take` gets each event, and the number of the line at which it begins.
void form_read_lines(const struct forms *forms, struct slice lines,
                     void (*take)(void *context, const struct event *event), void *context);

// Whether each sample of the form gives its kind and what the row says, and no line of `not` is
// taken for it. False, and a sentence with what came instead, for the first that does not.
bool form_check(const struct forms *forms, const struct form *form, struct form_fault *fault);
