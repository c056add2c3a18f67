// SPDX-License-Identifier: Apache-2.0
// Compresses the body of one request after the other as gzip, at zlib's quickest level. One thread.
#pragma once

#include "base/slice.h"

struct gzip; // opaque: one stream of zlib, some 256 KiB, and the last body

struct gzip *gzip_make(void);
void gzip_free(struct gzip *gzip); // NULL is fine
// The compressed bytes, which stand until the next call. `body` has less than 4 GiB.
struct slice gzip_compress(struct gzip *gzip, struct slice body);
