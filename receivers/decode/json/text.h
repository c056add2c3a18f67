// SPDX-License-Identifier: Apache-2.0
// What a scanned JSON string says: its characters, with escapes resolved.
//
// All take tokens of kind TOKEN_STRING that json_scan accepted. Decoded text is generalised UTF-8:
// a lone surrogate escape becomes its three bytes, a pair becomes one character.
#pragma once

#include "base/arena.h"
#include "receivers/decode/json/scan.h"

// The text: the token's own bytes when it has no escapes, else a copy in `arena`.
struct slice token_decode(const struct token *token, struct arena *arena);
// True when the decoded text is `text`; allocates nothing.
bool token_equals(const struct token *token, struct slice text);
// True when the decoded text begins with `text`.
bool token_starts_with(const struct token *token, struct slice text);
// True when nothing but white space is in it, after Python's str.strip (Unicode's White_Space and
// U+001C to U+001F).
bool token_is_long_blank(const struct token *token);
static inline bool token_is_blank(const struct token *token) {
    // Letters, digits and signs are not blank; anything else is looked at character by character.
    unsigned char first = token->size > 0 ? (unsigned char)token->text[0] : 0;
    if (first > ' ' && first < 0x80 && first != '\\')
        return false;
    return token_is_long_blank(token);
}
// The same for text that is decoded already: what is left when white space is cut off both ends.
struct slice text_strip(struct slice text);
