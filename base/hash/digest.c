// SPDX-License-Identifier: Apache-2.0
// Digests by libnettle, written as lower-case hexadecimal digits.
#include "base/hash/digest.h"

#include <assert.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>

static const char hex_digits[] = "0123456789abcdef";

static void hex_write(const uint8_t *bytes, size_t count, char *out) {
    assert(count <= SHA256_DIGEST_SIZE);
    for (size_t i = 0; i < count; i++) {
        out[2 * i] = hex_digits[bytes[i] >> 4];
        out[2 * i + 1] = hex_digits[bytes[i] & 15];
    }
}

void digest_id(const struct slice *parts, size_t count, char out[DIGEST_ID_SIZE]) {
    assert(parts != NULL || count == 0);
    struct sha256_ctx hash;
    sha256_init(&hash);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            sha256_update(&hash, 1, (const uint8_t *)"");
        if (parts[i].size > 0)
            sha256_update(&hash, parts[i].size, (const uint8_t *)parts[i].data);
    }
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_digest(&hash, sizeof digest, digest);
    hex_write(digest, (DIGEST_ID_SIZE - 1) / 2, out);
    out[DIGEST_ID_SIZE - 1] = '\0';
}

void digest_uuid5_url(struct slice name, char out[UUID_TEXT_SIZE]) {
    // NameSpace_URL of RFC 4122, appendix C.
    static const uint8_t url_space[16] = {0x6b, 0xa7, 0xb8, 0x11, 0x9d, 0xad, 0x11, 0xd1,
                                          0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8};
    struct sha1_ctx hash;
    sha1_init(&hash);
    sha1_update(&hash, sizeof url_space, url_space);
    if (name.size > 0)
        sha1_update(&hash, name.size, (const uint8_t *)name.data);
    uint8_t digest[SHA1_DIGEST_SIZE];
    sha1_digest(&hash, sizeof digest, digest);
    digest[6] = (uint8_t)((digest[6] & 0x0f) | 0x50);
    digest[8] = (uint8_t)((digest[8] & 0x3f) | 0x80);
    static const uint8_t group_bytes[5] = {4, 2, 2, 2, 6};
    const uint8_t *from = digest;
    for (size_t i = 0; i < 5; i++) {
        hex_write(from, group_bytes[i], out);
        from += group_bytes[i];
        out += 2 * group_bytes[i];
        *out++ = i < 4 ? '-' : '\0';
    }
}
