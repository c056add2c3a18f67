// SPDX-License-Identifier: Apache-2.0
// Takes out of a text what nobody may read in it: the user and password of a URL, and secrets that
// somebody else repeats. In their place stands REDACTED. Any thread.
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

#define REDACTED "[REDACTED]"

// The next "user:password" of a URL in `text`, from `*at` on; false when there is none. `bare`: the
// text is one address, which may come without "scheme://". Then `*at` stands behind it.
bool redact_find(struct slice text, bool bare, size_t *at, struct slice *user);
// In place, in a buffer of `capacity` bytes; the end is cut when that is too little.
void redact_urls(char *text, size_t capacity);
// Every piece of `secret` of 8 bytes or more, or all of it when it is shorter; NULL: nothing.
void redact_secret(char *text, size_t capacity, const char *secret);
