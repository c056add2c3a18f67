// SPDX-License-Identifier: Apache-2.0
// The small readers of `base` and `config` stand any text, and what the writers make of it can be
// read again.
//
// The input is one text. UTF-8 is walked; it is read as each kind of time, as an endpoint, a
// duration, a size, an Accept header, a pattern of paths; it is written as a JSON string, for a
// terminal and as a label, and each of those must be what it promises to be.
#include "base/http/endpoint.h"
#include "base/intern.h"
#include "base/metrics/exposition.h"
#include "base/text/display.h"
#include "base/text/json_write.h"
#include "base/text/log_time.h"
#include "base/text/rfc3339.h"
#include "base/text/utf8.h"
#include "config/option.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/text.h"
#include "receivers/file/find/glob.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>

static const uint64_t NOW = UINT64_C(1794992400000000000);

// How many bytes of `text` are whole characters, from the front.
static size_t walk(struct slice text) {
    size_t at = 0;
    while (at < text.size) {
        uint32_t code_point = UINT32_MAX;
        size_t length = utf8_decode(text, at, &code_point);
        if (length == 0)
            break;
        require(length <= 4 && length <= text.size - at && code_point <= 0x10ffff);
        require((length == 1) == (code_point < 0x80));
        at += length;
    }
    return at;
}

static void read_times(struct slice text) {
    uint64_t ns = 0, again = 0;
    bool fraction;
    if (rfc3339_parse(text, &ns, &fraction) == RFC3339_OK) {
        char shown[RFC3339_TEXT_MAX];
        rfc3339_format(ns, shown);
        require(rfc3339_parse(slice_of(shown), &again, NULL) == RFC3339_OK && again == ns);
    }
    static bool (*const readers[])(struct slice *, uint64_t *) = {log_time_iso, log_time_ctime,
                                                                  log_time_seconds};
    for (size_t i = 0; i < 3; i++) {
        struct slice rest = text;
        bool read = readers[i](&rest, &ns);
        require(read ? rest.size < text.size : rest.data == text.data);
        require(rest.data + rest.size == text.data + text.size);
    }
    struct slice rest = text;
    if (log_time_syslog(&rest, NOW, &ns))
        require(rest.size < text.size && ns <= NOW + UINT64_C(86400000000000) + 1000000000);
    else
        require(rest.size == text.size);
}

static void read_options(const char *text) {
    char why[160] = "", shown[OPTION_VALUE_MAX];
    struct duration duration, duration_again;
    if (option_parse_duration(text, &duration, why)) {
        option_format_duration(duration, shown);
        require(option_parse_duration(shown, &duration_again, why));
        require(duration.ns == duration_again.ns);
    } else {
        require(why[0] != '\0');
    }
    struct byte_size size, size_again;
    why[0] = '\0';
    if (option_parse_size(text, &size, why)) {
        option_format_size(size, shown);
        require(option_parse_size(shown, &size_again, why) && size.bytes == size_again.bytes);
    } else {
        require(why[0] != '\0');
    }
    struct endpoint endpoint;
    const char *wrong = endpoint_parse(text, &endpoint);
    if (wrong == NULL) {
        require(strnlen(endpoint.host, sizeof endpoint.host) < sizeof endpoint.host);
        require(!endpoint.is_unix || strlen(endpoint.host) < ENDPOINT_UNIX_MAX);
        (void)endpoint_is_loopback(&endpoint);
    } else {
        require(wrong[0] != '\0');
    }
    (void)exposition_negotiate(text);
}

// As a pattern, of which each part is tried on the text; a name without wildcards is itself.
static void read_pattern(struct slice text) {
    struct arena arena;
    struct glob_list list = {NULL, 0};
    arena_init(&arena, 4096);
    const char *wrong = glob_parse(text, &arena, &list);
    require(wrong == NULL || wrong[0] != '\0');
    require(list.count <= GLOB_ALTERNATIVES_MAX);
    for (uint32_t i = 0; wrong == NULL && i < list.count; i++) {
        require(list.items[i].count <= GLOB_PARTS_MAX);
        (void)glob_match_path(&list.items[i], text);
        for (uint32_t part = 0; part < list.items[i].count; part++) {
            bool same = glob_match_name(list.items[i].parts[part], list.items[i].parts[part]);
            require(same || glob_has_wildcard(list.items[i].parts[part]));
        }
    }
    arena_release(&arena);
}

// A JSON string that stands for the text: the same bytes when all of them are characters.
static void write_json(struct slice text) {
    struct buffer out;
    buffer_init(&out, 1 << 26);
    json_append_string(&out, text);
    require(!out.failed);
    for (size_t i = 0; i < out.size; i++)
        require((unsigned char)out.data[i] >= ' ' && (unsigned char)out.data[i] < 0x7f);
    struct token token;
    struct json_fault fault;
    const char *end = out.data + out.size;
    require(json_scan_value(out.data, end, 0, &token, &fault) == end);
    require(token.kind == TOKEN_STRING);
    if (walk(text) == text.size)
        require(token_equals(&token, text));
    buffer_release(&out);
}

static bool is_control(uint32_t c) {
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

static void write_display(struct slice text) {
    for (size_t max = 0; max <= 16; max += 16) {
        struct buffer out;
        buffer_init(&out, 1 << 26);
        display_append(&out, text, max);
        struct slice shown = buffer_slice(&out);
        require(!out.failed && (max == 0 || shown.size <= max));
        uint32_t code_point;
        for (size_t at = 0, length; at < shown.size; at += length) {
            length = utf8_decode(shown, at, &code_point);
            require(length > 0 && !is_control(code_point));
            require(code_point < 0xd800 || code_point > 0xdfff);
        }
        buffer_release(&out);
    }
    require(display_columns(text) <= 6 * text.size);
}

static void write_label(struct slice text) {
    char room[EXPOSITION_LABEL_MAX], room_again[EXPOSITION_LABEL_MAX];
    struct slice label = exposition_label_value(text, room);
    require(label.size <= EXPOSITION_LABEL_MAX && walk(label) == label.size);
    // What was repaired is right.
    require(slice_equal(exposition_label_value(label, room_again), label));
}

static void write_number(struct slice text) {
    double value, again;
    if (text.size < sizeof value)
        return;
    memcpy(&value, text.data, sizeof value);
    struct buffer out;
    buffer_init(&out, 4096);
    exposition_append_number(&out, value);
    buffer_append_char(&out, '\0');
    again = strtod(out.data, NULL);
    require(isnan(value) ? isnan(again) : again == value);
    buffer_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice text = fuzz_block((struct slice){(const char *)data, size});
    char *ended = memory_copy_text((const char *)data, size);
    (void)walk(text);
    read_times(text);
    read_options(ended);
    if (size <= 4096)
        read_pattern(text);
    write_json(text);
    write_display(text);
    write_label(text);
    write_number(text);
    memory_give(ended);
    fuzz_block_give(text);
    return 0;
}
