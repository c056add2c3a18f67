// SPDX-License-Identifier: Apache-2.0
// Reads a bearer token from a file, and again when the file changes.
#include "base/http/token_file.h"

#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOK_EVERY_NS = 1000000000 };

static int64_t modified_ns(const struct stat *about) {
    return (int64_t)about->st_mtim.tv_sec * 1000000000 + about->st_mtim.tv_nsec;
}

// Editors of Windows put a mark before the text, and may write two bytes for each character.
static size_t drop_mark(char *text, size_t size) {
    static const char mark[] = "\xef\xbb\xbf";
    size_t length = sizeof mark - 1;
    if (size < length || memcmp(text, mark, length) != 0)
        return size;
    memmove(text, text + length, size - length);
    return size - length;
}

static bool is_utf_16(const char *text, size_t size) {
    return size >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0 ||
                         (text[0] == '\0') != (text[1] == '\0'));
}

static enum status check_text(char *text, size_t size, const char *path, struct error *error) {
    if (size > HTTP_TOKEN_SIZE_MAX)
        return error_set(error, STATUS_CONFIG, "the token file %s is longer than %d bytes", path,
                         HTTP_TOKEN_SIZE_MAX);
    if (is_utf_16(text, size))
        return error_set(error, STATUS_CONFIG,
                         "the token file %s is UTF-16: write it as UTF-8 or ASCII", path);
    size = drop_mark(text, size);
    while (size > 0 && strchr("\r\n \t", text[size - 1]) != NULL)
        size--;
    text[size] = '\0';
    if (size == 0)
        return error_set(error, STATUS_CONFIG, "the token file %s is empty", path);
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] <= ' ' || text[i] == 0x7f)
            return error_set(error, STATUS_CONFIG,
                             "the token file %s holds white space or control characters within "
                             "the token",
                             path);
    return STATUS_OK;
}

static enum status read_file(struct token_file *token, struct error *error) {
    int descriptor = open(token->path, O_RDONLY | O_CLOEXEC);
    struct stat about;
    char text[HTTP_TOKEN_SIZE_MAX + 1];
    ssize_t size = -1;
    if (descriptor >= 0 && fstat(descriptor, &about) == 0)
        size = read(descriptor, text, sizeof text);
    int os_error = errno;
    if (descriptor >= 0)
        close(descriptor);
    if (size < 0)
        return error_set_os(error, STATUS_CONFIG, os_error, "the token file %s cannot be read",
                            token->path);
    enum status status = check_text(text, (size_t)size, token->path, error);
    if (status == STATUS_OK) {
        memcpy(token->text, text, sizeof text);
        token->modified_ns = modified_ns(&about);
        token->file_size = (uint64_t)about.st_size;
        token->inode = about.st_ino;
        assert(token->text[0] != '\0');
    }
    explicit_bzero(text, sizeof text);
    return status;
}

enum status token_file_open(struct token_file *token, const char *path, struct error *error) {
    assert(path != NULL);
    *token = (struct token_file){.path = path, .checked_ns = clock_monotonic_ns()};
    return read_file(token, error);
}

enum token_change token_file_refresh(struct token_file *token, bool now, struct error *error) {
    assert(token->path != NULL && token->text[0] != '\0');
    uint64_t time_ns = clock_monotonic_ns();
    if (!now && time_ns < token->checked_ns + LOOK_EVERY_NS)
        return TOKEN_SAME;
    token->checked_ns = time_ns;
    struct stat about;
    if (stat(token->path, &about) == 0 && modified_ns(&about) == token->modified_ns &&
        (uint64_t)about.st_size == token->file_size && about.st_ino == token->inode)
        return TOKEN_SAME;
    return read_file(token, error) == STATUS_OK ? TOKEN_CHANGED : TOKEN_UNREADABLE;
}

void token_file_close(struct token_file *token) {
    explicit_bzero(token->text, sizeof token->text);
}
