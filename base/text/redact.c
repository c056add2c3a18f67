// SPDX-License-Identifier: Apache-2.0
// A user and password end at the last @ of the authority (RFC 3986, 3.2). People also write
// passwords with a slash in them, unescaped: when what stands before it cannot be host and port,
// all up to the last @ goes.
#include "base/text/redact.h"

#include <assert.h>
#include <string.h>

enum { PIECE_MIN = 8 };

static const char ends[] = " \t\r\n\"'<>";

// How many bytes of `text` belong to the user and password it begins with; 0: there are none.
static size_t user_size(const char *text, size_t size) {
    size_t whole = 0, authority = 0, last = 0, in_authority = 0;
    while (whole < size && text[whole] != '\0' && strchr(ends, text[whole]) == NULL)
        whole++;
    while (authority < whole && strchr("/?#", text[authority]) == NULL)
        authority++;
    for (size_t i = 0; i < whole; i++) {
        if (text[i] != '@')
            continue;
        last = i;
        if (i < authority)
            in_authority = i;
    }
    if (in_authority > 0 || last == 0)
        return in_authority;
    const char *colon = text[0] == '[' ? NULL : memchr(text, ':', authority);
    if (colon == NULL)
        return 0;
    for (const char *c = colon + 1; c < text + authority; c++)
        if (*c < '0' || *c > '9')
            return last;
    return 0;
}

bool redact_find(struct slice text, bool bare, size_t *at, struct slice *user) {
    assert(at != NULL && *at <= text.size && user != NULL);
    if (bare && *at == 0 && memmem(text.data, text.size, "://", 3) == NULL) {
        size_t size = text.size == 0 ? 0 : user_size(text.data, text.size);
        *user = (struct slice){text.data, size};
        *at = size == 0 ? text.size : size;
        return size > 0;
    }
    while (*at < text.size) {
        const char *found = memmem(text.data + *at, text.size - *at, "://", 3);
        if (found == NULL)
            break;
        size_t begin = (size_t)(found - text.data) + 3;
        size_t size = user_size(text.data + begin, text.size - begin);
        *at = begin + size;
        *user = (struct slice){text.data + begin, size};
        if (size > 0)
            return true;
    }
    *at = text.size;
    return false;
}

// Puts REDACTED in the place of `size` bytes at `at`; gives the place behind it.
static size_t replace(char *text, size_t capacity, size_t at, size_t size) {
    assert(at + size <= strlen(text));
    static const char word[] = REDACTED;
    size_t length = strlen(text), behind = at + sizeof word - 1;
    if (behind >= capacity) {
        memcpy(text + at, word, capacity - 1 - at);
        text[capacity - 1] = '\0';
        return capacity - 1;
    }
    size_t rest = length - at - size;
    if (behind + rest >= capacity)
        rest = capacity - 1 - behind;
    memmove(text + behind, text + at + size, rest);
    memcpy(text + at, word, sizeof word - 1);
    text[behind + rest] = '\0';
    return behind;
}

void redact_urls(char *text, size_t capacity) {
    assert(capacity > 0 && strlen(text) < capacity);
    size_t at = 0;
    struct slice user;
    while (redact_find(slice_of(text), false, &at, &user)) {
        at = (size_t)(user.data - text);
        if (strncmp(user.data, REDACTED "@", sizeof REDACTED) == 0)
            at += user.size; // done already
        else
            at = replace(text, capacity, at, user.size);
    }
}

static size_t common_prefix(const char *a, const char *b) {
    size_t size = 0;
    while (a[size] != '\0' && a[size] == b[size])
        size++;
    return size;
}

void redact_secret(char *text, size_t capacity, const char *secret) {
    assert(capacity > 0 && strlen(text) < capacity);
    size_t length = secret == NULL ? 0 : strlen(secret);
    if (length == 0)
        return;
    size_t least = length < PIECE_MIN ? length : PIECE_MIN;
    for (size_t at = 0; text[at] != '\0';) {
        size_t most = 0;
        for (size_t i = 0; i + least <= length; i++) {
            size_t size = common_prefix(text + at, secret + i);
            most = size > most ? size : most;
        }
        at = most >= least ? replace(text, capacity, at, most) : at + 1;
    }
}
