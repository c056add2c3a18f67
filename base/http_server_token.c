// SPDX-License-Identifier: Apache-2.0
// Does this request show the right token?
//
// Compared in a time that does not depend on where the texts part. A token file is looked at once a
// second at most, while requests come, and read again when its time, size or inode has changed; one
// that cannot be read then leaves the old token standing.
#include "base/clock.h"
#include "base/http/server_parts.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOK_EVERY_NS = 1000000000 };

static void mark(struct token_watch *token, const struct stat *about) {
    token->modified_ns = (int64_t)about->st_mtim.tv_sec * 1000000000 + about->st_mtim.tv_nsec;
    token->file_size = (uint64_t)about->st_size;
    token->inode = about->st_ino;
}

static enum status read_file(struct token_watch *token, struct error *error) {
    int descriptor = open(token->file, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return error_set_os(error, STATUS_CONFIG, errno, "the token file %s cannot be read",
                            token->file);
    struct stat about;
    char text[HTTP_TOKEN_MAX];
    ssize_t size = -1;
    if (fstat(descriptor, &about) == 0)
        size = read(descriptor, text, sizeof text);
    int os_error = errno;
    close(descriptor);
    if (size < 0)
        return error_set_os(error, STATUS_CONFIG, os_error, "the token file %s cannot be read",
                            token->file);
    if (size == sizeof text)
        return error_set(error, STATUS_CONFIG, "the token file %s is longer than 4095 bytes",
                         token->file);
    while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r' || text[size - 1] == ' '))
        size--;
    if (size == 0)
        return error_set(error, STATUS_CONFIG, "the token file %s is empty", token->file);
    memcpy(token->text, text, (size_t)size);
    token->size = (size_t)size;
    explicit_bzero(text, sizeof text);
    mark(token, &about);
    return STATUS_OK;
}

enum status token_open(struct token_watch *token, const char *text, const char *file,
                       struct error *error) {
    pthread_mutex_init(&token->lock, NULL);
    token->file = file;
    if (file != NULL)
        return read_file(token, error);
    if (text == NULL)
        return STATUS_OK;
    token->size = strlen(text);
    if (token->size == 0 || token->size >= sizeof token->text)
        return error_set(error, STATUS_CONFIG, "the bearer token must have 1 to 4095 bytes");
    memcpy(token->text, text, token->size);
    return STATUS_OK;
}

static void look_again(struct token_watch *token, const char *site) {
    uint64_t now = clock_monotonic_ns();
    if (token->file == NULL || now < token->checked_ns + LOOK_EVERY_NS)
        return;
    token->checked_ns = now;
    struct stat about;
    struct token_watch seen = {.inode = 0};
    struct error error = {.message = ""};
    if (stat(token->file, &about) == 0) {
        mark(&seen, &about);
        if (seen.modified_ns == token->modified_ns && seen.file_size == token->file_size &&
            seen.inode == token->inode)
            return;
    }
    if (read_file(token, &error) == STATUS_OK)
        log_write(LOG_INFO, (struct log_site){"C2101", site}, "%s has changed: the new token holds",
                  token->file);
    else
        log_write(LOG_WARN, (struct log_site){"C2102", site}, "%s; the token as it was still holds",
                  error.message);
}

static bool is_same(const struct token_watch *token, struct slice given) {
    // Every byte of what was given is looked at, whatever the first ones were.
    volatile unsigned difference = token->size == given.size ? 0 : 1;
    for (size_t i = 0; i < given.size; i++)
        difference |= (unsigned char)given.data[i] ^ (unsigned char)token->text[i % token->size];
    return difference == 0;
}

bool token_shown(struct token_watch *token, const char *given, const char *site) {
    if (token->size == 0)
        return true;
    if (given == NULL || strncasecmp(given, "Bearer ", 7) != 0)
        return false;
    given += 7;
    while (*given == ' ')
        given++;
    pthread_mutex_lock(&token->lock);
    look_again(token, site);
    bool same = is_same(token, slice_of(given));
    pthread_mutex_unlock(&token->lock);
    return same;
}

void token_close(struct token_watch *token) {
    explicit_bzero(token->text, sizeof token->text);
    pthread_mutex_destroy(&token->lock);
}
