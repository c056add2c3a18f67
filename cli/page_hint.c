// SPDX-License-Identifier: Apache-2.0
#include "cli/page_hint.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool page_hint_url(struct buffer *out, const char *path) {
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
    assert(path != NULL);
    char *whole = realpath(path, NULL);
    if (whole == NULL)
        return false;
    buffer_append_text(out, "file://");
    for (const char *at = whole; *at != '\0'; at++)
        if (strchr(plain, *at) != NULL)
            buffer_append_char(out, *at);
        else
            buffer_append_format(out, "%%%02X", (unsigned)(unsigned char)*at);
    free(whole);
    return true;
}

void page_hint_append(struct buffer *out, const char *html) {
    if (isatty(STDERR_FILENO) == 0)
        return;
    if (html == NULL) {
        if (isatty(STDOUT_FILENO) != 0)
            buffer_append_text(out, "as a page with charts: add --html report.html\n");
        return;
    }
    struct buffer url;
    buffer_init(&url, 1 << 16);
    if (page_hint_url(&url, html)) {
        buffer_append_text(out, "open the page: ");
        buffer_append(out, buffer_slice(&url));
        buffer_append_char(out, '\n');
    }
    buffer_release(&url);
}
