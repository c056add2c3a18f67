// SPDX-License-Identifier: Apache-2.0
// Checks the bytes of a text before the YAML parser sees it.
//
// One pass over the bytes: valid UTF-8, no control characters, spaces before a line's first
// character. Line starts are kept so that any offset has a place in O(log lines). 4 bytes a line.
#include "config/yaml/scan.h"

#include "base/text/utf8.h"

#include <assert.h>
#include <string.h>

static struct location nowhere(const struct document_text *document) {
    bool named = document->name != NULL;
    return (struct location){document->name, named, named};
}

struct location document_place(const struct document_text *document, size_t offset) {
    assert(document->line_count == 0 || document->line_starts != NULL);
    if (document->name == NULL || document->line_count == 0)
        return nowhere(document);
    uint32_t low = 0, high = document->line_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (document->line_starts[middle] <= offset)
            low = middle;
        else
            high = middle;
    }
    return (struct location){document->name, low + 1,
                             (uint32_t)offset - document->line_starts[low] + 1};
}

struct location document_place_of(const struct document_text *document, uint32_t line,
                                  uint32_t character) {
    assert(line == 0 || document->line_count == 0 || document->line_starts != NULL);
    if (document->name == NULL || document->line_count == 0 || line == 0)
        return nowhere(document);
    if (line > document->line_count)
        return document_place(document, document->text.size);
    size_t at = document->line_starts[line - 1];
    for (; character > 1 && at < document->text.size && document->text.data[at] != '\n';
         character--) {
        uint32_t code_point;
        at += utf8_decode(document->text, at, &code_point);
    }
    return document_place(document, at);
}

static void lines_find(struct document_text *document, struct arena *arena) {
    uint32_t count = 1;
    for (size_t i = 0; i < document->text.size; i++)
        count += document->text.data[i] == '\n';
    uint32_t *starts = arena_take(arena, count * sizeof *starts);
    starts[0] = 0;
    count = 1;
    for (size_t i = 0; i < document->text.size; i++)
        if (document->text.data[i] == '\n')
            starts[count++] = (uint32_t)i + 1;
    document->line_starts = starts;
    document->line_count = count;
}

// A tab that stands before anything but the line's end or a comment.
static bool tab_indents(struct slice text, size_t line_start) {
    size_t at = line_start;
    bool tab = false;
    for (; at < text.size && (text.data[at] == ' ' || text.data[at] == '\t'); at++)
        tab |= text.data[at] == '\t';
    return tab && at < text.size && strchr("\r\n#", text.data[at]) == NULL;
}

// The parser keeps what stands on one line in memory, many times its size, until the line ends.
static bool line_too_long(const struct document_text *document, uint32_t line) {
    size_t end =
        line + 1 < document->line_count ? document->line_starts[line + 1] : document->text.size;
    return end - document->line_starts[line] > DOCUMENT_LINE_MAX;
}

static bool lines_check(const struct document_text *document, struct problem_list *problems) {
    for (uint32_t i = 0; i < document->line_count; i++) {
        struct location where = document_place(document, document->line_starts[i]);
        if (tab_indents(document->text, document->line_starts[i])) {
            problem_add_at(problems, where, "", "a tab in the indentation; YAML takes spaces only");
            return false;
        }
        if (line_too_long(document, i)) {
            problem_add_at(problems, where, "", "a line of over %d bytes; break it",
                           DOCUMENT_LINE_MAX);
            return false;
        }
    }
    return true;
}

// What the character is called when it must not be there, else NULL.
static const char *character_fault(uint32_t code_point) {
    if (code_point == 0)
        return "a zero byte";
    if ((code_point < 0x20 && code_point != '\t' && code_point != '\n' && code_point != '\r') ||
        (code_point >= 0x7f && code_point < 0xa0))
        return "a control character";
    if (code_point >= 0xd800 && code_point < 0xe000)
        return "half of a surrogate pair";
    if (code_point == 0xfeff || code_point == 0xfffe || code_point == 0xffff)
        return "a byte order mark or non-character";
    if (code_point == 0x2028 || code_point == 0x2029)
        return "a Unicode line separator";
    return NULL;
}

static bool characters_check(const struct document_text *document, struct problem_list *problems) {
    struct slice text = document->text;
    for (size_t at = 0; at < text.size;) {
        uint32_t code_point;
        size_t length = utf8_decode(text, at, &code_point);
        const char *fault = length == 0 ? "a byte that is not UTF-8" : character_fault(code_point);
        if (fault != NULL) {
            problem_add_at(problems, document_place(document, at), "",
                           "%s; a configuration is UTF-8 text", fault);
            return false;
        }
        at += length;
    }
    return true;
}

bool document_scan(struct document_text *out, struct arena *arena, const char *name,
                   struct slice text, struct problem_list *problems) {
    assert(problems != NULL);
    static const struct slice MARK = {"\xef\xbb\xbf", 3};
    if (text.size >= MARK.size && memcmp(text.data, MARK.data, MARK.size) == 0)
        text = (struct slice){text.data + MARK.size, text.size - MARK.size};
    *out = (struct document_text){.name = name, .text = text};
    if (text.size > DOCUMENT_SIZE_MAX) {
        problem_add_at(problems, nowhere(out), "", "%zu bytes long; a configuration has at most %d",
                       text.size, DOCUMENT_SIZE_MAX);
        return false;
    }
    lines_find(out, arena);
    return characters_check(out, problems) && lines_check(out, problems);
}
