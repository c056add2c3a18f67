// SPDX-License-Identifier: Apache-2.0
// Any netrc file gives a key that can be one, or a sentence that shows nothing of the file.
//
// The input is the file. It is asked for a host, for an IPv6 address, and its first line is taken
// for a key that was given.
#include "exporters/wandb/key.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static int file = -1;

int LLVMFuzzerInitialize(int *argument_count, char ***arguments) {
    char path[64];
    (void)argument_count;
    (void)arguments;
    file = memfd_create("netrc", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    require(file >= 0 && setenv("NETRC", path, 1) == 0);
    return 0;
}

// Words this long do not stand in a sentence by chance.
enum { TELLING = 12 };

static void require_hidden(const char *sentence, struct slice text) {
    static const char *const said[] = {"underscores", "characters", "/proc/self/fd"};
    char plain[2048];
    snprintf(plain, sizeof plain, "%s", sentence);
    for (size_t i = 0; i < 3; i++)
        for (char *at; (at = strstr(plain, said[i])) != NULL;)
            memset(at, '\1', strlen(said[i]));
    for (size_t i = 0; i + TELLING <= text.size; i++) {
        struct slice part = {text.data + i, TELLING};
        bool word = true;
        for (size_t j = 0; j < TELLING; j++)
            word = word && (unsigned char)part.data[j] > ' ';
        require(!word || memmem(plain, strlen(plain), part.data, TELLING) == NULL);
    }
}

static void find(struct secret given, const char *url, struct slice text) {
    struct secret key;
    struct error error = {0};
    enum status status = wandb_key_find(&key, given, url, &error);
    if (status == STATUS_OK) {
        const char *found = secret_reveal(key);
        require(found != NULL && memmem(text.data, text.size, found, strlen(found)) != NULL);
        for (const char *c = found; *c != '\0'; c++)
            require((unsigned char)*c > ' ' && (unsigned char)*c < 0x7f);
    } else {
        require(status == STATUS_CONFIG && strlen(error.message) > 20);
        require_hidden(error.message, text);
    }
    wandb_key_release(&key);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice text = {(const char *)data, size};
    require(ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == (ssize_t)size);
    find((struct secret){NULL}, "https://h.test", text);
    find((struct secret){NULL}, "http://[::1]:8080/x", text);
    size_t length = strnlen((const char *)data, size);
    const char *newline = memchr(data, '\n', length);
    char *given = memory_copy_text(
        (const char *)data, newline == NULL ? length : (size_t)(newline - (const char *)data));
    find((struct secret){given}, "https://h.test", text);
    memory_give(given);
    return 0;
}
