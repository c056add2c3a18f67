// SPDX-License-Identifier: Apache-2.0
// Tells whether a request shows the right token, in a time that does not depend on where the texts
// part. When the token's file cannot be read any more, the old token still holds.
#include "base/http/server_parts.h"
#include "base/log.h"

#include <assert.h>
#include <nettle/base64.h>
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

enum { USER_MAX = 256, PAIR_MAX = HTTP_TOKEN_SIZE_MAX + USER_MAX };

// What stands behind the user of "Basic base64(user:password)" (RFC 7617); false when there is
// none.
static bool password_of(const char *given, char pair[PAIR_MAX], struct slice *password) {
    struct base64_decode_ctx context;
    size_t used = 0, length = strlen(given);
    base64_decode_init(&context);
    if (BASE64_DECODE_LENGTH(length) > PAIR_MAX ||
        !base64_decode_update(&context, &used, (uint8_t *)pair, length, given) ||
        !base64_decode_final(&context))
        return false;
    const char *colon = memchr(pair, ':', used);
    if (colon == NULL)
        return false;
    *password = (struct slice){colon + 1, used - (size_t)(colon + 1 - pair)};
    return true;
}

static bool is_token(struct token_watch *token, struct slice given, const char *site) {
    lock_take(&token->lock);
    if (token->file.path != NULL)
        look_again(&token->file, site);
    bool same = is_same(slice_of(token->file.text), given);
    lock_release(&token->lock);
    return same;
}

bool token_shown(struct token_watch *token, const char *given, bool basic, const char *site) {
    if (!token->asked)
        return true;
    if (given == NULL)
        return false;
    bool is_basic = basic && strncasecmp(given, "Basic ", 6) == 0;
    if (!is_basic && strncasecmp(given, "Bearer ", 7) != 0)
        return false;
    given += is_basic ? 6 : 7;
    given += strspn(given, " ");
    if (!is_basic)
        return is_token(token, slice_of(given), site);
    char pair[PAIR_MAX];
    struct slice password;
    bool shown = password_of(given, pair, &password) && is_token(token, password, site);
    explicit_bzero(pair, sizeof pair);
    return shown;
}

void token_close(struct token_watch *token) {
    token_file_close(&token->file);
    lock_destroy(&token->lock);
}
