// SPDX-License-Identifier: Apache-2.0
// Culprit's log, with repeats of a message held back.
//
// One mutex, one line, one write. A window of 10 s for each (code, component): the first message of
// each text passes, whatever numbers stand in it, up to some texts; what else comes is counted and
// the last one kept, and said when the window has ended. Windows stand in a table of fixed size;
// when it is full the oldest one is closed early. No heap but for long lines.
#include "base/log.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/hash/hash.h"
#include "base/text/display.h"
#include "base/text/json_write.h"
#include "base/text/redact.h"
#include "base/text/utf8.h"
#include "base/thread.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    LOG_MESSAGE_MAX = 1024,
    LOG_LINE_MAX = 16 * 1024,
    LOG_KEPT_MAX = 512, // of a suppressed message
    LOG_CODE_MAX = 16,
    LOG_COMPONENT_MAX = 96,
    LOG_WINDOWS = 64,
    LOG_TEXTS = 16, // of a window
};

static const uint64_t window_ns = UINT64_C(10) * 1000 * 1000 * 1000;

struct log_window {
    char code[LOG_CODE_MAX];
    char component[LOG_COMPONENT_MAX];
    uint64_t start_ns;
    uint64_t texts[LOG_TEXTS]; // hashes of those that passed
    uint32_t text_count;
    uint64_t suppressed;
    enum log_level level; // of the last suppressed message
    char message[LOG_KEPT_MAX];
};

static struct {
    struct lock lock;
    enum log_level level;
    enum log_encoding encoding;
    uint64_t (*monotonic_ns)(void);
    struct log_window windows[LOG_WINDOWS]; // in order of their start
    size_t window_count;
} state = {.lock = LOCK_INITIALIZER, .level = LOG_INFO, .encoding = LOG_AUTO};

static const char *const level_names[] = {"debug", "info", "warn", "error"};

void log_configure(enum log_level level, enum log_encoding encoding) {
    lock_take(&state.lock);
    __atomic_store_n(&state.level, level, __ATOMIC_RELAXED);
    state.encoding = encoding;
    lock_release(&state.lock);
}

void log_use_clock(uint64_t (*monotonic_ns)(void)) {
    state.monotonic_ns = monotonic_ns;
}

bool log_enabled(enum log_level level) {
    return level >= __atomic_load_n(&state.level, __ATOMIC_RELAXED);
}

static bool encoding_is_json(void) {
    if (state.encoding == LOG_AUTO)
        return isatty(STDERR_FILENO) == 0;
    return state.encoding == LOG_JSON;
}

struct log_line {
    enum log_level level;
    const char *code;
    const char *component; // NULL: none
    const char *message;
    uint64_t suppressed;
    const struct log_field *fields;
    size_t field_count;
};

static void line_append_json(struct buffer *out, const char *time, const struct log_line *line) {
    struct json_writer json;
    json_begin(&json, out, 0);
    json_object_open(&json);
    json_field_text(&json, "ts", time);
    json_field_text(&json, "level", level_names[line->level]);
    json_field_text(&json, "code", line->code);
    json_field_text(&json, "msg", line->message);
    if (line->component != NULL)
        json_field_text(&json, "component", line->component);
    if (line->suppressed > 0)
        json_field_uint(&json, "suppressed", line->suppressed);
    for (size_t i = 0; i < line->field_count; i++)
        json_field_text(&json, line->fields[i].key, line->fields[i].value);
    json_object_close(&json);
}

static void line_append_console(struct buffer *out, const char *time, const struct log_line *line) {
    buffer_append_format(out, "%s %-5s %s ", time, level_names[line->level], line->code);
    if (line->component != NULL) {
        display_append(out, slice_of(line->component), 0);
        buffer_append_text(out, ": ");
    }
    display_append(out, slice_of(line->message), 0);
    if (line->suppressed > 0)
        buffer_append_format(out, " (%llu more in 10 s)", (unsigned long long)line->suppressed);
}

// A line that cannot be written is lost: there is nobody left to tell.
static void bytes_write(struct slice bytes) {
    while (bytes.size > 0) {
        ssize_t written = write(STDERR_FILENO, bytes.data, bytes.size);
        if (written <= 0)
            return;
        bytes.data += written;
        bytes.size -= (size_t)written;
    }
}

static void line_write(const struct log_line *line) {
    assert(lock_is_held(&state.lock));
    assert(line->code != NULL);
    char time[CLOCK_RFC3339_MAX];
    clock_format_rfc3339(clock_unix_ns(), time);
    struct buffer out;
    buffer_init(&out, LOG_LINE_MAX);
    if (encoding_is_json())
        line_append_json(&out, time, line);
    else
        line_append_console(&out, time, line);
    buffer_append_char(&out, '\n');
    if (buffer_finish(&out))
        bytes_write(buffer_slice(&out));
    buffer_release(&out);
}

// Closes the windows that began before `until_ns`, and says what they kept back.
static void windows_close(uint64_t until_ns) {
    size_t closed = 0;
    assert(lock_is_held(&state.lock));
    while (closed < state.window_count && state.windows[closed].start_ns < until_ns) {
        const struct log_window *window = &state.windows[closed++];
        if (window->suppressed == 0)
            continue;
        line_write(
            &(struct log_line){.level = window->level,
                               .code = window->code,
                               .component = window->component[0] == '\0' ? NULL : window->component,
                               .message = window->message,
                               .suppressed = window->suppressed});
    }
    state.window_count -= closed;
    memmove(state.windows, state.windows + closed, state.window_count * sizeof state.windows[0]);
}

// Takes away a last character that was cut in the middle.
static void text_trim(char *text) {
    size_t size = strlen(text), back = 0;
    while (back < 3 && back < size && ((unsigned char)text[size - 1 - back] & 0xc0) == 0x80)
        back++;
    if (back == size)
        return;
    uint32_t code_point;
    size_t lead = size - 1 - back;
    bool whole = utf8_decode((struct slice){text, size}, lead, &code_point) == back + 1;
    if (!whole && (unsigned char)text[lead] >= 0xc0)
        text[lead] = '\0';
}

static void text_keep(char *kept, size_t max, const char *text) {
    snprintf(kept, max, "%s", text == NULL ? "" : text);
    text_trim(kept);
}

static struct log_window *window_find(struct log_site site) {
    assert(lock_is_held(&state.lock));
    char code[LOG_CODE_MAX], component[LOG_COMPONENT_MAX];
    text_keep(code, sizeof code, site.code);
    text_keep(component, sizeof component, site.component);
    for (size_t i = 0; i < state.window_count; i++)
        if (strcmp(state.windows[i].code, code) == 0 &&
            strcmp(state.windows[i].component, component) == 0)
            return &state.windows[i];
    return NULL;
}

// Texts that differ only in their numbers have one hash.
static uint64_t text_hash(const char *text) {
    uint64_t hash = HASH_START;
    for (const char *at = text; *at != '\0'; at++)
        if (*at < '0' || *at > '9')
            hash = hash_more(hash, at, 1);
    return hash;
}

// Whether a message of this text passes: none did so far, and not too many others.
static bool window_passes(struct log_window *window, const char *message) {
    uint64_t hash = text_hash(message);
    for (uint32_t i = 0; i < window->text_count; i++)
        if (window->texts[i] == hash)
            return false;
    if (window->text_count == LOG_TEXTS)
        return false;
    window->texts[window->text_count++] = hash;
    return true;
}

static struct log_window *window_open(struct log_site site, uint64_t now_ns) {
    assert(lock_is_held(&state.lock));
    if (state.window_count == LOG_WINDOWS)
        windows_close(state.windows[0].start_ns + 1);
    assert(state.window_count < LOG_WINDOWS);
    struct log_window *window = &state.windows[state.window_count++];
    window->start_ns = now_ns;
    window->suppressed = 0;
    window->text_count = 0;
    text_keep(window->code, sizeof window->code, site.code);
    text_keep(window->component, sizeof window->component, site.component);
    return window;
}

static uint64_t now_of_windows(void) {
    return state.monotonic_ns != NULL ? state.monotonic_ns() : clock_monotonic_ns();
}

static void windows_close_ended(uint64_t now_ns) {
    if (now_ns >= window_ns)
        windows_close(now_ns - window_ns + 1);
}

static void message_write(enum log_level level, struct log_site site, const char *message) {
    assert(lock_is_held(&state.lock));
    uint64_t now_ns = now_of_windows();
    windows_close_ended(now_ns);
    struct log_window *window = window_find(site);
    if (window == NULL)
        window = window_open(site, now_ns);
    if (!window_passes(window, message)) {
        window->suppressed++;
        window->level = level;
        text_keep(window->message, sizeof window->message, message);
        return;
    }
    line_write(&(struct log_line){
        .level = level, .code = site.code, .component = site.component, .message = message});
}

void log_write(enum log_level level, struct log_site site, const char *format, ...) {
    if (!log_enabled(level))
        return;
    char message[LOG_MESSAGE_MAX];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof message) {
        message[sizeof message - 4] = '\0';
        text_trim(message);
        strcat(message, "...");
    }
    redact_urls(message, sizeof message);
    lock_take(&state.lock);
    message_write(level, site, message);
    lock_release(&state.lock);
}

void log_record(enum log_level level, struct log_site site, const char *message,
                const struct log_field *fields, size_t field_count) {
    if (!log_enabled(level))
        return;
    lock_take(&state.lock);
    line_write(
        &(struct log_line){level, site.code, site.component, message, 0, fields, field_count});
    lock_release(&state.lock);
}

void log_look(void) {
    lock_take(&state.lock);
    windows_close_ended(now_of_windows());
    lock_release(&state.lock);
}

void log_flush(void) {
    lock_take(&state.lock);
    windows_close(UINT64_MAX);
    lock_release(&state.lock);
}
