// SPDX-License-Identifier: Apache-2.0
// Reads a file of one JSON object as Python writes it.
//
// jansson reads it. Python also writes NaN, Infinity and -Infinity, and integers of any size, which
// jansson refuses: before it reads, these are looked for outside of strings and overwritten with a
// number of the same width, so that a fault is told at its right place; members of the object that
// are such numbers are read from a copy of the text. Bounded: 64 MiB.
#include "exporters/wandb/tracking/parts.h"

#include "base/memory.h"
#include "base/text/json_write.h"
#include "exporters/wandb/files.h"
#include "exporters/wandb/members.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { INT64_DIGITS = 19 };

// -- reading --------------------------------------------------------------------------------------

static enum status read_descriptor(int descriptor, const char *path, const char *what,
                                   struct buffer *text, struct error *error) {
    struct stat about;
    if (fstat(descriptor, &about) != 0)
        return error_set_os(error, STATUS_IO, errno, "%s %s cannot be read", what, path);
    if (!S_ISREG(about.st_mode))
        return error_set(error, STATUS_CONFIG, "%s %s is not a file", what, path);
    int failure = wandb_read_all(descriptor, text);
    if (failure != 0)
        return error_set_os(error, STATUS_IO, failure, "%s %s cannot be read", what, path);
    return !text->failed ? STATUS_OK
                         : error_set(error, STATUS_CONFIG, "%s %s is larger than %d MiB", what,
                                     path, TRACKING_FILE_MAX >> 20);
}

static enum status read_text(const char *path, const char *what, struct buffer *text,
                             struct error *error) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return error_set_os(error, STATUS_IO, errno, "%s %s cannot be read", what, path);
    enum status status = read_descriptor(descriptor, path, what, text, error);
    close(descriptor);
    if (status == STATUS_OK && text->size == 0)
        status = error_set(error, STATUS_CONFIG, "%s:1:1: %s is empty", path, what);
    return status;
}

// -- numbers that jansson does not read -----------------------------------------------------------

// The length of such a number at the start of `text`, or 0.
static size_t wide_number(struct slice text) {
    static const struct slice words[] = {{"NaN", 3}, {"Infinity", 8}, {"-Infinity", 9}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (text.size >= words[i].size && memcmp(text.data, words[i].data, words[i].size) == 0)
            return words[i].size;
    size_t sign = text.data[0] == '-', size = sign;
    while (size < text.size && text.data[size] >= '0' && text.data[size] <= '9')
        size++;
    bool is_decimal = size < text.size &&
                      (text.data[size] == '.' || text.data[size] == 'e' || text.data[size] == 'E');
    if (is_decimal || size - sign < INT64_DIGITS || text.data[sign] == '0')
        return 0;
    char digits[INT64_DIGITS + 2] = "";
    if (size - sign == INT64_DIGITS) {
        memcpy(digits, text.data, size);
        errno = 0;
        (void)strtoll(digits, NULL, 10);
        return errno == ERANGE ? size : 0;
    }
    return size;
}

static bool begins_value(char before) {
    return before == ' ' || before == '\t' || before == '\n' || before == '\r' || before == ':' ||
           before == ',' || before == '[';
}

// Past the string that opens at `at`.
static size_t skip_string(struct slice text, size_t at) {
    for (at++; at < text.size && text.data[at] != '"'; at++)
        at += text.data[at] == '\\';
    return at < text.size ? at + 1 : text.size;
}

// Looks for them in `kept`, and overwrites them in `text`.
static void hide_wide_numbers(struct slice kept, char *text) {
    for (size_t at = 0; at < kept.size;) {
        size_t size = 0;
        if (kept.data[at] == '"') {
            at = skip_string(kept, at);
            continue;
        }
        if (at > 0 && begins_value(kept.data[at - 1]))
            size = wide_number((struct slice){kept.data + at, kept.size - at});
        if (size > 0) {
            assert(at + size <= kept.size);
            memset(text + at, ' ', size);
            text[at] = '0';
        }
        at += size > 0 ? size : 1;
    }
}

// -- the whole ------------------------------------------------------------------------------------

enum status tracking_file_read(struct tracking_file *file, const char *path, const char *what,
                               struct error *error) {
    assert(path != NULL && what != NULL);
    struct buffer text;
    json_error_t fault;
    *file = (struct tracking_file){0};
    buffer_init(&text, TRACKING_FILE_MAX);
    enum status status = read_text(path, what, &text, error);
    if (status == STATUS_OK) {
        file->text = memory_copy_text(text.data, text.size);
        hide_wide_numbers((struct slice){file->text, text.size}, text.data);
        json_set_alloc_funcs(memory_take, memory_give);
        file->object =
            json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &fault);
        if (file->object == NULL)
            status = error_set(error, STATUS_CONFIG, "%s:%d:%d: %s is not JSON: %s", path,
                               fault.line, fault.column, what, fault.text);
        else if (!json_is_object(file->object))
            status = error_set(error, STATUS_CONFIG, "%s:1:1: %s is not a JSON object", path, what);
    }
    buffer_release(&text);
    if (status != STATUS_OK)
        tracking_file_release(file);
    return status;
}

void tracking_file_release(struct tracking_file *file) {
    json_decref(file->object);
    memory_give(file->text);
    *file = (struct tracking_file){0};
}

// -- members --------------------------------------------------------------------------------------

// The member's text when it is such a number, else empty.
static struct slice wide_of(const struct tracking_file *file, const char *key) {
    if (file->text == NULL)
        return SLICE("");
    struct slice value = wandb_member_find(wandb_object_inside(slice_of(file->text)), key);
    return value.size > 0 && wide_number(value) == value.size ? value : SLICE("");
}

static bool append_number(const json_t *value, struct buffer *json) {
    if (json_is_integer(value))
        buffer_append_int(json, json_integer_value(value));
    else if (json_is_real(value))
        wandb_append_number(json, json_real_value(value));
    else if (json_is_boolean(value))
        buffer_append(json, json_is_true(value) ? SLICE("true") : SLICE("false"));
    else
        return false;
    return true;
}

bool tracking_file_number(const struct tracking_file *file, const char *key, struct buffer *json) {
    struct slice wide = wide_of(file, key);
    if (slice_equal(wide, SLICE("NaN")))
        return false;
    if (wide.size > 0) {
        buffer_append(json, wide);
        return true;
    }
    return append_number(json_object_get(file->object, key), json);
}

static int append_block(const char *data, size_t size, void *out) {
    buffer_append(out, (struct slice){data, size});
    return 0;
}

bool tracking_append_json(struct buffer *out, const json_t *value, size_t flags) {
    return json_dump_callback(value, append_block, out, flags) == 0;
}

bool tracking_file_value(const struct tracking_file *file, const char *key, struct buffer *json) {
    const json_t *value = json_object_get(file->object, key);
    if (value == NULL || json_is_null(value))
        return false;
    if (json_is_number(value) || json_is_boolean(value))
        return tracking_file_number(file, key, json);
    if (json_is_string(value)) {
        json_append_string(json, tracking_file_text(file, key));
        return true;
    }
    return tracking_append_json(json, value, JSON_COMPACT | JSON_ENSURE_ASCII);
}

struct slice tracking_file_text(const struct tracking_file *file, const char *key) {
    const json_t *value = json_object_get(file->object, key);
    return (struct slice){json_string_value(value), json_string_length(value)};
}
