// SPDX-License-Identifier: Apache-2.0
// Text that becomes HTML that can do nothing but be read.
//
// Everything that is not a constant of ours goes through html_text. What the page itself brings, a
// style and a script, is named by its SHA-256 in the policy; nothing else may be loaded, run or
// sent. Memory: one scratch buffer; linear in the text.
#include "exporters/report/page/parts.h"
#include "exporters/report/page/style.h"

#include "base/clock.h"
#include "base/text/display.h"

#include <assert.h>
#include <nettle/base64.h>
#include <nettle/sha2.h>
#include <stdarg.h>
#include <stdio.h>

void html_init(struct html *html, struct buffer *out, struct arena *arena) {
    assert(out != NULL && arena != NULL);
    *html = (struct html){.out = out, .arena = arena};
    buffer_init(&html->scratch, HTML_TEXT_MAX + 16);
}

void html_release(struct html *html) {
    buffer_release(&html->scratch);
}

void html_raw(struct html *html, const char *markup) {
    assert(markup != NULL);
    buffer_append_text(html->out, markup);
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

// One conversion of html_format; its argument is taken off `arguments`.
static void conversion_append(struct html *html, struct slice conversion, va_list *arguments) {
    enum { CONVERSION_MAX = 16 };
    char format[CONVERSION_MAX], number[64];
    char kind = conversion.data[conversion.size - 1];
    bool precise = memchr(conversion.data, '*', conversion.size) != NULL;
    bool is_long = memchr(conversion.data, 'l', conversion.size) != NULL;
    assert(conversion.size < sizeof format);
    memcpy(format, conversion.data, conversion.size);
    format[conversion.size] = '\0';
    int precision = precise ? va_arg(*arguments, int) : 0;
    assert(precision >= 0);
    if (kind == 's') {
        const char *text = va_arg(*arguments, const char *);
        html_text(html, precise ? (struct slice){text, (size_t)precision} : slice_of(text));
        return;
    }
    if (kind == 'f' || kind == 'g') {
        double value = va_arg(*arguments, double);
        if (precise)
            snprintf(number, sizeof number, format, precision, value);
        else
            snprintf(number, sizeof number, format, value);
    } else if (is_long) {
        snprintf(number, sizeof number, format, va_arg(*arguments, long));
    } else {
        assert(kind == 'd' || kind == 'u' || kind == 'c');
        snprintf(number, sizeof number, format, va_arg(*arguments, int));
    }
    buffer_append_text(html->out, number);
}

void html_format(struct html *html, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    for (size_t size; *format != '\0'; format += size) {
        bool doubled = format[0] == '%' && format[1] == '%';
        size = doubled ? 2 : *format == '%' ? strcspn(format, "cdfgsu") + 1 : strcspn(format, "%");
        if (doubled || *format != '%')
            buffer_append(html->out, (struct slice){format, doubled ? 1 : size});
        else
            conversion_append(html, (struct slice){format, size}, &arguments);
    }
    va_end(arguments);
}

void html_time(struct html *html, uint64_t unix_ns) {
    char text[CLOCK_RFC3339_MAX];
    clock_format_rfc3339(unix_ns, text);
    // HTML knows milliseconds.
    html_format(html, "<time datetime=\"%.*sZ\">%.*s %.*s UTC</time>", 23, text, 10, text, 12,
                text + 11);
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
    html_raw(html, "'sha256-");
    html_raw(html, text);
    html_raw(html, "'");
}

static void policy_append(struct html *html, bool live) {
    html_raw(html,
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
             "style-src ");
    hash_append(html, page_style);
    html_raw(html, "; script-src ");
    hash_append(html, page_script);
    if (live) {
        html_raw(html, " ");
        hash_append(html, live_script);
        html_raw(html, "; connect-src 'self'");
    }
    html_raw(html, "; img-src data:; base-uri 'none'; form-action 'none'\">\n<style>");
    html_raw(html, page_style);
    html_raw(html, "</style>\n");
}

void html_append_policy(struct html *html) {
    policy_append(html, false);
}

void html_append_live_policy(struct html *html) {
    policy_append(html, true);
}
