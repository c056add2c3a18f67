// SPDX-License-Identifier: Apache-2.0
// How to open the page of a run, for a person at a terminal: the last line of analyze.
#pragma once

#include "base/buffer.h"

// `html`: the page that was written, or NULL; then how to get one. Nothing where standard error is
// no terminal, nor, without a page, where standard output is none.
void page_hint_append(struct buffer *out, const char *html);
// The URL of a file, percent-encoded (RFC 8089, RFC 3986). False when there is no such file.
bool page_hint_url(struct buffer *out, const char *path);
