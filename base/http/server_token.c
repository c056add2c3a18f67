// SPDX-License-Identifier: Apache-2.0
// Tells whether a request shows the right token, in a time that does not depend on where the texts
// part. When the token's file cannot be read any more, the old token still holds.
#include "base/http/server_parts.h"
#include "base/log.h"

#include <assert.h>
#include <strings.h>

enum status token_open(struct token_watch *token, const char *text, const char *file,
                       struct error *error) {
    lock_init(&token->lock);
    token->asked = file != NULL || text != NULL;
    if (file != NULL)
        return token_file_open(&token->file, file, error);
    if (text == NULL)
        return STATUS_OK;
    size_t size = strlen(text);
    if (size == 0 || size >= sizeof token->file.text)
        return error_set(error, STATUS_CONFIG, "the bearer token must have 1 to 4095 bytes");
    memcpy(token->file.text, text, size + 1);
    return STATUS_OK;
}

static void look_again(struct token_file *file, const char *site) {
    struct error error = {.message = ""};
    switch (token_file_refresh(file, false, &error)) {
    case TOKEN_SAME:
        break;
    case TOKEN_CHANGED:
        log_write(LOG_INFO, (struct log_site){"C2101", site}, "%s has changed: the new token holds",
                  file->path);
        break;
    case TOKEN_UNREADABLE:
        log_write(LOG_WARN, (struct log_site){"C2102", site}, "%s; the token as it was still holds",
                  error.message);
        break;
    }
}

static bool is_same(struct slice token, struct slice given) {
    // Every byte of what was given is looked at, whatever the first ones were.
    volatile unsigned difference = token.size == given.size ? 0 : 1;
    assert(token.size > 0);
    for (size_t i = 0; i < given.size; i++)
        difference |= (unsigned char)given.data[i] ^ (unsigned char)token.data[i % token.size];
    return difference == 0;
}

bool token_shown(struct token_watch *token, const char *given, const char *site) {
    if (!token->asked)
        return true;
    if (given == NULL || strncasecmp(given, "Bearer ", 7) != 0)
        return false;
    given += 7;
    given += strspn(given, " ");
    lock_take(&token->lock);
    if (token->file.path != NULL)
        look_again(&token->file, site);
    bool same = is_same(slice_of(token->file.text), slice_of(given));
    lock_release(&token->lock);
    return same;
}

void token_close(struct token_watch *token) {
    token_file_close(&token->file);
    lock_destroy(&token->lock);
}
