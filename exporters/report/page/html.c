// SPDX-License-Identifier: Apache-2.0
// How does text become HTML that can do nothing but be read?
//
// Everything that is not a constant of ours goes through html_text. What the page itself brings, a
// style and a script, is named by its SHA-256 in the policy; nothing else may be loaded, run or
// sent. Memory: one scratch buffer; linear in the text.
#include "exporters/report/page/parts.h"
#include "exporters/report/page/style.h"

#include "base/clock.h"
#include "base/text/display.h"
#include "base/text/human.h"

#include <nettle/base64.h>
#include <nettle/sha2.h>
#include <stdarg.h>
#include <stdio.h>

void html_init(struct html *html, struct buffer *out, struct arena *arena) {
    *html = (struct html){.out = out, .arena = arena};
    buffer_init(&html->scratch, HTML_TEXT_MAX + 16);
}

void html_release(struct html *html) {
    buffer_release(&html->scratch);
}

void html_raw(struct html *html, const char *markup) {
    buffer_append_text(html->out, markup);
}

void html_format(struct html *html, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    assert(size >= 0 && (size_t)size < sizeof text);
    buffer_append(html->out, (struct slice){text, (size_t)size});
}

static const char *reference_of(char c) {
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

void html_text(struct html *html, struct slice text) {
    if (text.size == 0)
        return;
    buffer_reset(&html->scratch);
    display_append(&html->scratch, text, HTML_TEXT_MAX);
    struct slice shown = buffer_slice(&html->scratch);
    size_t from = 0;
    for (size_t at = 0; at < shown.size; at++) {
        const char *reference = reference_of(shown.data[at]);
        if (reference == NULL)
            continue;
        buffer_append(html->out, (struct slice){shown.data + from, at - from});
        buffer_append_text(html->out, reference);
        from = at + 1;
    }
    buffer_append(html->out, (struct slice){shown.data + from, shown.size - from});
}

void html_words(struct html *html, const char *words) {
    html_text(html, slice_of(words));
}

void html_bytes(struct html *html, int64_t bytes) {
    char text[HUMAN_MAX];
    human_bytes(bytes, text);
    html_raw(html, text);
}

void html_duration(struct html *html, __int128 duration_ns) {
    char text[HUMAN_MAX];
    human_duration(duration_ns, text);
    html_raw(html, text);
}

void html_time(struct html *html, uint64_t unix_ns) {
    char text[CLOCK_RFC3339_MAX];
    clock_format_rfc3339(unix_ns, text);
    // HTML knows milliseconds.
    html_format(html, "<time datetime=\"%.23sZ\">%.10s %.12s UTC</time>", text, text, text + 11);
}

// 'sha256-…' of an inline element's whole content.
static void hash_append(struct html *html, const char *content) {
    struct sha256_ctx context;
    uint8_t digest[SHA256_DIGEST_SIZE];
    char text[BASE64_ENCODE_RAW_LENGTH(SHA256_DIGEST_SIZE) + 1] = {0};
    sha256_init(&context);
    sha256_update(&context, strlen(content), (const uint8_t *)content);
    sha256_digest(&context, sizeof digest, digest);
    base64_encode_raw(text, sizeof digest, digest);
    html_format(html, "'sha256-%s'", text);
}

void html_append_policy(struct html *html) {
    html_raw(html,
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
             "style-src ");
    hash_append(html, page_style);
    html_raw(html, "; script-src ");
    hash_append(html, page_script);
    html_raw(html, "; img-src data:; base-uri 'none'; form-action 'none'\">\n<style>");
    html_raw(html, page_style);
    html_raw(html, "</style>\n");
}
