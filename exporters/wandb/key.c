// SPDX-License-Identifier: Apache-2.0
// Finds the API key of a W&B server and checks its form.
//
// A key is 40 or more letters, digits and underscores, on-premises behind a prefix of any printed
// characters that ends with a dash, or a JSON Web Token. A netrc file is read once, at most 64 KiB
// of it. Sources: wandb 0.31.0 (what it accepts), netrc as in ftp(1) and libcurl.
#include "exporters/wandb/key.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/text/cut.h"
#include "exporters/wandb/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { KEY_SIZE_MIN = 40, KEY_SIZE_MAX = 16 * 1024, NETRC_SIZE_MAX = 64 * 1024 };

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Three parts of base64url, none empty.
static bool is_token(struct slice key) {
    unsigned dots = 0;
    size_t part = 0;
    for (size_t i = 0; i < key.size; i++) {
        char c = key.data[i];
        if (c == '.') {
            if (part == 0)
                return false;
            dots++;
            part = 0;
        } else if (is_word(c) || c == '-' || c == '=') {
            part++;
        } else {
            return false;
        }
    }
    return dots == 2 && part > 0;
}

static enum status key_check(struct slice key, const char *from, struct error *error) {
    assert(key.size > 0);
    if (key.size > KEY_SIZE_MAX)
        return error_set(error, STATUS_CONFIG,
                         "the API key from %s has %zu characters; no key is that long", from,
                         key.size);
    if (is_token(key))
        return STATUS_OK;
    const char *dash = memrchr(key.data, '-', key.size);
    struct slice secret_part = key;
    if (dash != NULL)
        secret_part = (struct slice){dash + 1, (size_t)(key.data + key.size - dash - 1)};
    bool is_plain = true;
    for (const char *c = key.data; c < secret_part.data; c++)
        is_plain = is_plain && *c > ' ' && *c < 0x7f;
    for (size_t i = 0; i < secret_part.size; i++)
        is_plain = is_plain && is_word(secret_part.data[i]);
    if (!is_plain)
        return error_set(error, STATUS_CONFIG,
                         "the API key from %s holds a character that no key has; a key is "
                         "letters, digits and underscores (look for spaces and quotes)",
                         from);
    if (secret_part.size < KEY_SIZE_MIN)
        return error_set(error, STATUS_CONFIG,
                         "the API key from %s has %zu characters; a key has %d or more", from,
                         secret_part.size, KEY_SIZE_MIN);
    return STATUS_OK;
}

// -- netrc ----------------------------------------------------------------------------------------

// The next word; empty at the end. Double quotes may stand around one.
static struct slice next_word(struct slice *text) {
    *text = text_trim(*text);
    bool quoted = text_skip_char(text, '"');
    struct slice word = quoted ? text_until(*text, '"') : text_until_any(*text, " \t\r\n");
    *text = text_from(*text, word.size);
    if (quoted)
        (void)text_skip_char(text, '"');
    return word;
}

static void skip_behind(struct slice *text, const char *mark) {
    if (!text_find(*text, slice_of(mark), text))
        *text = text_from(*text, text->size);
}

// The password for `host`, or that of `default`; empty: there is none.
static struct slice netrc_password(struct slice text, struct slice host) {
    bool applies = false;
    for (;;) {
        struct slice word = next_word(&text);
        if (word.size == 0 && text.size == 0)
            return (struct slice){NULL, 0};
        if (word.size > 0 && word.data[0] == '#')
            skip_behind(&text, "\n");
        else if (slice_equal(word, SLICE("machine")))
            applies = slice_equal(next_word(&text), host);
        else if (slice_equal(word, SLICE("default")))
            applies = true;
        else if (slice_equal(word, SLICE("macdef")))
            skip_behind(&text, "\n\n");
        else if (slice_equal(word, SLICE("password"))) {
            word = next_word(&text);
            if (applies)
                return word;
        } else if (slice_equal(word, SLICE("login")) || slice_equal(word, SLICE("account"))) {
            next_word(&text);
        }
    }
}

static struct slice host_of(const char *url) {
    const char *begin = strstr(url, "://");
    begin = begin == NULL ? url : begin + 3;
    if (*begin == '[') // an IPv6 address
        return (struct slice){begin + 1, strcspn(begin + 1, "]")};
    return (struct slice){begin, strcspn(begin, ":/?#")};
}

// False when there is no such file or it cannot be read; `why` is then filled.
static bool netrc_read(const char *path, struct buffer *text, char why[160]) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
        snprintf(why, 160, "%s", errno == ENOENT ? "is not there" : strerror(errno));
        return false;
    }
    int failure = wandb_read_all(descriptor, text);
    if (failure != 0)
        snprintf(why, 160, "%s", strerror(failure));
    else if (text->failed)
        snprintf(why, 160, "has more than %d bytes", NETRC_SIZE_MAX);
    close(descriptor);
    return failure == 0 && !text->failed;
}

static void netrc_path(char *path, size_t size) {
    const char *given = getenv("NETRC"), *home = getenv("HOME");
    if (given != NULL && given[0] != '\0')
        snprintf(path, size, "%s", given);
    else
        snprintf(path, size, "%s/.netrc", home == NULL ? "" : home);
}

static enum status netrc_key(struct secret *key, const char *base_url, struct error *error) {
    char path[4096], why[160] = "has none for it";
    struct slice host = host_of(base_url), password = {NULL, 0};
    struct buffer text;
    netrc_path(path, sizeof path);
    buffer_init(&text, NETRC_SIZE_MAX);
    if (netrc_read(path, &text, why) && text.size > 0)
        password = netrc_password(buffer_slice(&text), host);
    enum status status = STATUS_OK;
    if (password.size == 0)
        status = error_set(error, STATUS_CONFIG,
                           "there is no API key for %.*s: give it as api_key: "
                           "${env:WANDB_API_KEY}, or as a machine in netrc (%.300s %s)",
                           (int)host.size, host.data, path, why);
    else
        status = key_check(password, "netrc", error);
    if (status == STATUS_OK)
        key->hidden = memory_copy_text(password.data, password.size);
    if (text.data != NULL)
        explicit_bzero(text.data, text.capacity);
    buffer_release(&text);
    return status;
}

enum status wandb_key_find(struct secret *key, struct secret given, const char *base_url,
                           struct error *error) {
    *key = (struct secret){NULL};
    const char *text = secret_reveal(given);
    if (text == NULL || text[0] == '\0')
        return netrc_key(key, base_url, error);
    assert(base_url != NULL);
    enum status status = key_check(slice_of(text), "api_key", error);
    if (status == STATUS_OK)
        key->hidden = memory_copy_text(text, strlen(text));
    return status;
}

void wandb_key_release(struct secret *key) {
    char *text = (char *)(uintptr_t)key->hidden;
    if (text != NULL)
        explicit_bzero(text, strlen(text));
    memory_give(text);
    key->hidden = NULL;
}
