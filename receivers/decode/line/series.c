// SPDX-License-Identifier: Apache-2.0
// Cuts one line of metrics into name, labels, value and timestamp. O(line).
#include "receivers/decode/line/series.h"

#include "base/text/cut.h"

#include <assert.h>
#include <stdlib.h>

enum { TIMESTAMP_MAX = 32 };

static bool is_name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == ':' || c == '.';
}

struct slice series_take_name(struct slice *line) {
    size_t size = 0;
    while (size < line->size && is_name_char(line->data[size]))
        size++;
    return text_take(line, size);
}

static struct slice take_word(struct slice *line) {
    text_skip_blanks(line);
    return text_take(line, text_until_any(*line, " \t").size);
}

// The value of a label, behind its first quote: escapes are \\, \" and \n.
static bool take_quoted(struct slice *line, struct arena *arena, struct slice *value) {
    size_t size = 0;
    bool escaped = false;
    for (; size < line->size && line->data[size] != '"'; size++)
        if (line->data[size] == '\\') {
            escaped = true;
            size++;
        }
    if (size >= line->size)
        return false;
    struct slice raw = text_take(line, size);
    text_skip_char(line, '"');
    *value = raw;
    if (!escaped)
        return true;
    char *copy = arena_take(arena, raw.size);
    size_t length = 0;
    for (size_t i = 0; i < raw.size; i++) {
        char c = raw.data[i];
        if (c == '\\' && i + 1 < raw.size) {
            c = raw.data[++i];
            if (c == 'n')
                c = '\n';
        }
        copy[length++] = c;
    }
    *value = (struct slice){copy, length};
    return true;
}

static bool wrong(struct series_labels *labels, const char *what) {
    labels->wrong = what;
    return false;
}

// "{name="value",…}", also with a comma behind the last, or nothing.
bool series_next_label(struct series_labels *labels, struct slice *name, struct slice *value) {
    struct slice *line = labels->line;
    assert(line != NULL && labels->arena != NULL && labels->wrong == NULL);
    text_skip_blanks(line);
    if (!labels->opened && !text_skip_char(line, '{'))
        return false;
    labels->opened = true;
    text_skip_blanks(line);
    if (text_skip_char(line, '}'))
        return false;
    *name = series_take_name(line);
    text_skip_blanks(line);
    if (name->size == 0 || !text_skip_char(line, '='))
        return wrong(labels, "a label without a name or without \"=\"");
    text_skip_blanks(line);
    if (!text_skip_char(line, '"') || !take_quoted(line, labels->arena, value))
        return wrong(labels, "a label whose value has no closing quote");
    text_skip_blanks(line);
    if (!text_skip_char(line, ',') && (line->size == 0 || line->data[0] != '}'))
        return wrong(labels, "labels that are not closed by \"}\"");
    return true;
}

// Whole milliseconds in Prometheus' own format, seconds with a fraction in OpenMetrics; a number
// below 10^11 is in seconds (as milliseconds it would be in 1973).
static bool read_timestamp(struct slice word, uint64_t *time_ns) {
    char copy[TIMESTAMP_MAX];
    if (word.size >= sizeof copy || memchr(word.data, '\0', word.size) != NULL)
        return false;
    memcpy(copy, word.data, word.size);
    copy[word.size] = '\0';
    char *end;
    double value = strtod(copy, &end);
    bool is_ms = value >= 1e11;
    // Nanoseconds since 1970 end in 2554.
    if (*end != '\0' || !(value > 0) || value >= (is_ms ? 1.8e13 : 1.8e10))
        return false;
    if (is_ms) {
        bool is_whole = strspn(copy, "0123456789") == word.size;
        *time_ns =
            is_whole ? strtoull(copy, NULL, 10) * UINT64_C(1000000) : (uint64_t)(value * 1e6);
        return true;
    }
    // The fraction by its digits: a double would lose the last ones.
    uint64_t seconds = strtoull(copy, &end, 10), fraction = 0, unit = 100000000;
    if (*end == '.')
        for (end++; *end >= '0' && *end <= '9' && unit > 0; end++, unit /= 10)
            fraction += (uint64_t)(*end - '0') * unit;
    *time_ns = *end == '\0' || (*end >= '0' && *end <= '9')
                   ? seconds * UINT64_C(1000000000) + fraction
                   : (uint64_t)(value * 1e9);
    return *time_ns != 0;
}

bool series_take_value(struct slice *line, struct slice *value, uint64_t *time_ns) {
    assert(line != NULL && value != NULL && time_ns != NULL);
    *value = take_word(line);
    text_skip_blanks(line);
    return line->size == 0 || line->data[0] == '#' || read_timestamp(take_word(line), time_ns);
}
