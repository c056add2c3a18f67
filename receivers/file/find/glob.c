// SPDX-License-Identifier: Apache-2.0
// Compares paths with patterns.
//
// Braces are resolved first into plain patterns, each cut at its slashes. A name is matched by
// going back to the last `*` when something does not fit, a path by going back to the last `**`:
// both are enough, since what an earlier one could still take, the later one can take as well. Cost
// is at most the product of the lengths; no recursion.
#include "receivers/file/find/glob.h"

#include <assert.h>

bool glob_has_wildcard(struct slice text) {
    for (size_t i = 0; i < text.size; i++) {
        if (memchr("*?[{\\", text.data[i], 5) != NULL)
            return true;
    }
    return false;
}

bool glob_is_deep(struct slice part) {
    return slice_equal(part, SLICE("**"));
}

// Past the bracket expression that opens at `at`; 0 when it does not close.
static size_t bracket_end(struct slice part, size_t at) {
    at++;
    if (at < part.size && (part.data[at] == '!' || part.data[at] == '^'))
        at++;
    if (at < part.size && part.data[at] == ']')
        at++;
    while (at < part.size && part.data[at] != ']')
        at += part.data[at] == '\\' && at + 1 < part.size ? 2 : 1;
    return at < part.size ? at + 1 : 0;
}

static unsigned char bracket_byte(struct slice part, size_t *at) {
    if (part.data[*at] == '\\')
        ++*at;
    return (unsigned char)part.data[(*at)++];
}

static bool bracket_match(struct slice part, size_t at, unsigned char byte) {
    assert(part.data[at] == '[' && bracket_end(part, at) > 0); // glob_parse has seen to it
    size_t close = bracket_end(part, at) - 1;
    at++;
    bool inverted = part.data[at] == '!' || part.data[at] == '^';
    at += inverted;
    bool found = false;
    while (at < close) {
        unsigned char low = bracket_byte(part, &at);
        unsigned char high = low;
        if (at + 1 < close && part.data[at] == '-') {
            at++;
            high = bracket_byte(part, &at);
        }
        found = found || (low <= byte && byte <= high);
    }
    return found != inverted;
}

// Whether the single element at `*at` takes `byte`; moves past the element when it does.
static bool element_match(struct slice part, size_t *at, char byte) {
    assert(*at < part.size);
    switch (part.data[*at]) {
    case '?':
        ++*at;
        return true;
    case '[':
        if (!bracket_match(part, *at, (unsigned char)byte))
            return false;
        *at = bracket_end(part, *at);
        return true;
    case '\\':
        if (part.data[*at + 1] != byte)
            return false;
        *at += 2;
        return true;
    default:
        if (part.data[*at] != byte)
            return false;
        ++*at;
        return true;
    }
}

bool glob_match_name(struct slice part, struct slice name) {
    if (name.size > 0 && name.data[0] == '.' && part.size > 0 && part.data[0] != '.' &&
        part.data[0] != '\\')
        return false;
    size_t at = 0, star = SIZE_MAX, star_name = 0;
    for (size_t i = 0; i < name.size;) {
        if (at < part.size && part.data[at] == '*') {
            star = ++at;
            star_name = i;
            continue;
        }
        if (at < part.size && element_match(part, &at, name.data[i])) {
            i++;
            continue;
        }
        if (star == SIZE_MAX)
            return false;
        at = star;
        i = ++star_name;
    }
    while (at < part.size && part.data[at] == '*')
        at++;
    return at == part.size;
}

// The next name of a path from `*at` on, slashes skipped; empty at the end.
static struct slice next_name(struct slice path, size_t *at) {
    while (*at < path.size && path.data[*at] == '/')
        ++*at;
    size_t from = *at;
    while (*at < path.size && path.data[*at] != '/')
        ++*at;
    return (struct slice){path.data + from, *at - from};
}

static bool any_name_matches(struct slice part, struct slice path) {
    size_t at = 0;
    for (struct slice name = next_name(path, &at); name.size > 0; name = next_name(path, &at)) {
        if (glob_match_name(part, name))
            return true;
    }
    return false;
}

bool glob_match_path(const struct glob *glob, struct slice path) {
    if (glob->count == 1 && !glob->absolute)
        return any_name_matches(glob->parts[0], path);
    if (glob->absolute != (path.size > 0 && path.data[0] == '/'))
        return false;
    size_t at = 0, deep_at = 0;
    uint32_t part = 0, deep = UINT32_MAX;
    for (;;) {
        if (part < glob->count && glob_is_deep(glob->parts[part])) {
            deep = ++part;
            deep_at = at;
            continue;
        }
        size_t after = at;
        struct slice name = next_name(path, &after);
        if (name.size == 0)
            return part == glob->count;
        if (part < glob->count && glob_match_name(glob->parts[part], name)) {
            part++;
            at = after;
            continue;
        }
        if (deep == UINT32_MAX)
            return false;
        if (next_name(path, &deep_at).size == 0)
            return false;
        at = deep_at;
        part = deep;
    }
}

// -- parsing ------------------------------------------------------------------------------------

// The first brace group of a pattern: where it opens and closes; false when there is none.
// `*bad` is set when one does not close.
static bool find_braces(struct slice text, size_t *open, size_t *close, bool *bad) {
    unsigned depth = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '\\') {
            i++;
        } else if (text.data[i] == '{') {
            if (depth++ == 0)
                *open = i;
        } else if (text.data[i] == '}' && depth > 0 && --depth == 0) {
            *close = i;
            return true;
        }
    }
    *bad = depth > 0;
    return false;
}

// The end of the alternative that begins at `at`, at a comma or `close`.
static size_t alternative_end(struct slice text, size_t at, size_t close) {
    unsigned depth = 0;
    for (; at < close; at++) {
        if (text.data[at] == '\\')
            at++;
        else if (text.data[at] == '{')
            depth++;
        else if (text.data[at] == '}')
            depth--;
        else if (text.data[at] == ',' && depth == 0)
            return at;
    }
    return close;
}

struct text_stack {
    struct slice items[GLOB_ALTERNATIVES_MAX];
    uint32_t count;
};

// Replaces `text` on the stack by one text for each alternative, the first on top.
static bool push_alternatives(struct text_stack *stack, struct slice text, size_t open,
                              size_t close, struct arena *arena) {
    assert(open < close && close < text.size);
    uint32_t first = stack->count;
    for (size_t at = open + 1; at <= close;) {
        size_t end = alternative_end(text, at, close);
        if (stack->count == GLOB_ALTERNATIVES_MAX)
            return false;
        stack->items[stack->count++] = slice_of(
            arena_format(arena, "%.*s%.*s%.*s", (int)open, text.data, (int)(end - at),
                         text.data + at, (int)(text.size - close - 1), text.data + close + 1));
        at = end + 1;
    }
    for (uint32_t a = first, b = stack->count - 1; a < b; a++, b--) {
        struct slice held = stack->items[a];
        stack->items[a] = stack->items[b];
        stack->items[b] = held;
    }
    return true;
}

static const char *check_part(struct slice part) {
    for (size_t i = 0; i < part.size; i++) {
        if (part.data[i] == '\\') {
            if (++i == part.size)
                return "it ends in a backslash, which needs a character after it";
        } else if (part.data[i] == '[') {
            size_t end = bracket_end(part, i);
            if (end == 0)
                return "a [ has no ] that closes it; write \\[ for the character itself";
            i = end - 1;
        }
    }
    return NULL;
}

static const char *cut_at_slashes(struct slice text, struct arena *arena, struct glob *glob) {
    struct slice parts[GLOB_PARTS_MAX];
    *glob = (struct glob){.absolute = text.size > 0 && text.data[0] == '/'};
    size_t at = 0;
    for (struct slice part = next_name(text, &at); part.size > 0; part = next_name(text, &at)) {
        if (glob->count == GLOB_PARTS_MAX)
            return "it has more than 64 names between slashes";
        const char *wrong = check_part(part);
        if (wrong != NULL)
            return wrong;
        // Two in a row say what one says.
        bool doubled =
            glob->count > 0 && glob_is_deep(part) && glob_is_deep(parts[glob->count - 1]);
        if (!doubled)
            parts[glob->count++] = part;
    }
    size_t size = glob->count * sizeof *parts;
    glob->parts = memcpy(arena_take(arena, size), parts, size);
    return glob->count > 0 || glob->absolute ? NULL : "it is empty";
}

const char *glob_parse(struct slice pattern, struct arena *arena, struct glob_list *list) {
    if (memchr(pattern.data, 0, pattern.size) != NULL)
        return "it holds a zero byte";
    if (pattern.size > GLOB_PATTERN_MAX)
        return "it is longer than 4096 bytes";
    struct text_stack *stack = arena_take(arena, sizeof *stack);
    struct glob *globs = arena_take(arena, sizeof *globs * GLOB_ALTERNATIVES_MAX);
    uint32_t count = 0;
    stack->count = 1;
    stack->items[0] = arena_copy(arena, pattern);
    while (stack->count > 0) {
        struct slice text = stack->items[--stack->count];
        size_t open = 0, close = 0;
        bool bad = false;
        if (find_braces(text, &open, &close, &bad)) {
            if (!push_alternatives(stack, text, open, close, arena))
                return "its {…} stand for more than 256 patterns";
            continue;
        }
        if (bad)
            return "a { has no } that closes it; write \\{ for the character itself";
        if (count == GLOB_ALTERNATIVES_MAX)
            return "its {…} stand for more than 256 patterns";
        const char *wrong = cut_at_slashes(text, arena, &globs[count++]);
        if (wrong != NULL)
            return wrong;
    }
    *list = (struct glob_list){globs, count};
    return NULL;
}
