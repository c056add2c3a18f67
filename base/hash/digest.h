// SPDX-License-Identifier: Apache-2.0
// Names made from contents: SHA-256 for verdict ids, UUID version 5 (RFC 4122, SHA-1) for the
// session ids that stormlog gives to records without one. The hashes are libnettle's.
#pragma once

#include "base/slice.h"

enum { DIGEST_ID_SIZE = 16 + 1, UUID_TEXT_SIZE = 36 + 1 };

// First 16 hex digits of SHA-256 over the parts, joined by a zero byte.
void digest_id(const struct slice *parts, size_t count, char out[DIGEST_ID_SIZE]);
// UUIDv5 in the URL name space, lower case.
void digest_uuid5_url(struct slice name, char out[UUID_TEXT_SIZE]);
