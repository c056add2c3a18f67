// SPDX-License-Identifier: Apache-2.0
// What RAS answers: lines of its protocol, whole answers, objects of a stream. Any bytes, no
// allocation. Source: NCCL, src/ras/client_support.cc, versions 2.24 to 2.30.
#pragma once

#include "base/slice.h"

// "SERVER PROTOCOL 2".
bool ras_line_is_hello(struct slice line);
bool ras_line_is_ok(struct slice line);
// "ERROR: Unknown command …".
bool ras_line_is_error(struct slice line);

// How long the JSON object at the front is, with the blanks before it. 0: it is not whole.
// SIZE_MAX: there is something else. Only braces and strings are looked at. O(text).
size_t ras_object_size(struct slice text);
// Whether the answer to STATUS came to its end: one JSON object; or a text with its last section.
bool ras_reply_is_whole(struct slice reply, bool json);

// The word under "event" of an object of the stream; size 0: there is none.
struct slice ras_event_name(struct slice object);
// Whether it says that a process does not answer any more.
bool ras_event_is_silence(struct slice name);
// Whether it says that a process came or is dead, which detectors look at.
bool ras_event_is_lifecycle(struct slice name);
