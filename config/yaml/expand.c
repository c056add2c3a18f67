// SPDX-License-Identifier: Apache-2.0
// Fills in ${env:NAME} and ${file:/path}.
//
// One walk over the tree with a list of nodes still to be seen. A text without '$' is left alone;
// another is copied once, its references filled in. Nothing filled in is looked at again, so no
// value can reach beyond its own text. All results together have at most EXPANDED_MAX bytes.
#include "config/yaml/document.h"

#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXPANDED_MAX = 8 << 20, SHOWN_MAX = 60 };

// A node on the way down, and how it was reached.
struct visit {
    struct visit *next; // to be seen after this one
    const struct visit *parent;
    const char *key; // NULL in a list
    uint32_t index;
    struct node *node;
};

struct expansion {
    struct arena *arena;
    struct problem_list *problems;
    bool no_environment;
    const struct visit *visit;
    struct node *node;
    struct buffer out;
    size_t total; // bytes of all results
    bool bad;
};

// The key path of the node at hand: built for messages only.
static const char *path_here(const struct expansion *expansion) {
    const char *path = "";
    for (const struct visit *at = expansion->visit; at->parent != NULL; at = at->parent) {
        const char *joint = *path == '\0' || *path == '[' ? "" : ".";
        if (at->key == NULL)
            path = arena_format(expansion->arena, "[%u]%s%s", at->index, joint, path);
        else
            path = arena_format(expansion->arena, "%s%s%s", at->key, joint, path);
    }
    return path;
}

#define EXPANSION_PROBLEM(expansion, ...)                                                          \
    do {                                                                                           \
        (expansion)->bad = true;                                                                   \
        problem_add_at((expansion)->problems, (expansion)->node->where, path_here(expansion),      \
                       __VA_ARGS__);                                                               \
    } while (0)

static size_t name_length(const char *text) {
    size_t length = 0;
    for (char c = *text; (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
                         (length > 0 && c >= '0' && c <= '9');
         c = text[length])
        length++;
    return length;
}

static int shown(size_t size) {
    return size > SHOWN_MAX ? SHOWN_MAX : (int)size;
}

static void variable_append(struct expansion *expansion, struct slice body) {
    assert(expansion->node != NULL);
    size_t length = name_length(body.data);
    const char *rest = body.data + length;
    size_t rest_size = body.size - length;
    bool has_default = rest_size >= 2 && rest[0] == ':' && rest[1] == '-';
    if (length == 0 || (rest_size > 0 && !has_default)) {
        EXPANSION_PROBLEM(expansion,
                          "'${env:%.*s}' does not name a variable; write ${env:NAME} or "
                          "${env:NAME:-default}",
                          shown(body.size), body.data);
        return;
    }
    char *name = arena_text(expansion->arena, (struct slice){body.data, length});
    const char *value = expansion->no_environment ? NULL : getenv(name);
    if (has_default && (value == NULL || *value == '\0'))
        buffer_append(&expansion->out, (struct slice){rest + 2, rest_size - 2});
    else if (value != NULL)
        buffer_append_text(&expansion->out, value);
    else if (expansion->no_environment)
        expansion->node->unknown = true;
    else
        EXPANSION_PROBLEM(expansion,
                          "environment variable %.60s is not set; set it or write "
                          "${env:%.60s:-default}",
                          name, name);
}

// Non-blocking, so that a pipe without a writer does not hold the start back.
static int file_open(const char *path, struct expansion *expansion) {
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat facts;
    if (file < 0) {
        EXPANSION_PROBLEM(expansion, "file '%.200s' cannot be read: %s", path, strerror(errno));
    } else if (fstat(file, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        EXPANSION_PROBLEM(expansion, "'%.200s' is not a regular file", path);
        close(file);
        file = -1;
    }
    return file;
}

// The newline that editors put at a file's end, and the mark of UTF-8 at its beginning, are not
// part of the value.
static void file_text_append(struct expansion *expansion, const char *path, struct slice text) {
    if (text.size > DOCUMENT_FILE_VALUE_MAX) {
        EXPANSION_PROBLEM(expansion, "file '%.200s' is longer than %d bytes", path,
                          DOCUMENT_FILE_VALUE_MAX);
        return;
    }
    if (text.size > 0 && text.data[text.size - 1] == '\n')
        text.size -= text.size > 1 && text.data[text.size - 2] == '\r' ? 2 : 1;
    static const struct slice mark = {"\xef\xbb\xbf", 3};
    if (text.size >= mark.size && memcmp(text.data, mark.data, mark.size) == 0)
        text = (struct slice){text.data + mark.size, text.size - mark.size};
    if (memchr(text.data, '\0', text.size) != NULL)
        EXPANSION_PROBLEM(expansion, "file '%.200s' holds a zero byte; it must be text", path);
    else
        buffer_append(&expansion->out, text);
}

static void file_append(struct expansion *expansion, const char *path) {
    int file = file_open(path, expansion);
    if (file < 0)
        return;
    char *bytes = memory_take(DOCUMENT_FILE_VALUE_MAX + 1);
    size_t size = 0;
    ssize_t got = 1;
    while (got > 0 && size <= DOCUMENT_FILE_VALUE_MAX) {
        got = read(file, bytes + size, DOCUMENT_FILE_VALUE_MAX + 1 - size);
        size += got > 0 ? (size_t)got : 0;
    }
    int os_error = errno;
    close(file);
    if (got < 0)
        EXPANSION_PROBLEM(expansion, "file '%.200s' cannot be read: %s", path, strerror(os_error));
    else
        file_text_append(expansion, path, (struct slice){bytes, size});
    memory_give(bytes);
}

static void file_reference(struct expansion *expansion, struct slice body) {
    assert(expansion->node != NULL);
    expansion->node->from_file = true;
    if (body.size == 0 || body.data[0] != '/')
        EXPANSION_PROBLEM(expansion,
                          "'${file:%.*s}' needs an absolute path; write ${file:/path/to/it}",
                          shown(body.size), body.data);
    else if (expansion->no_environment)
        expansion->node->unknown = true;
    else
        file_append(expansion, arena_text(expansion->arena, body));
}

// `text` begins behind "${"; returns what comes behind the closing brace, or NULL.
static const char *reference_append(struct expansion *expansion, const char *text) {
    const char *end = strchr(text, '}');
    if (end == NULL) {
        EXPANSION_PROBLEM(expansion, "'${' without its '}'; write $$ for a dollar sign");
        return NULL;
    }
    struct slice body = {text, (size_t)(end - text)};
    if (memmem(body.data, body.size, "${", 2) != NULL)
        EXPANSION_PROBLEM(expansion, "a reference inside a reference is not expanded; use one");
    else if (strncmp(text, "env:", 4) == 0)
        variable_append(expansion, (struct slice){text + 4, body.size - 4});
    else if (strncmp(text, "file:", 5) == 0)
        file_reference(expansion, (struct slice){text + 5, body.size - 5});
    else if (name_length(text) == body.size && body.size > 0)
        EXPANSION_PROBLEM(expansion, "'${%.*s}' is not expanded; write ${env:%.*s}",
                          shown(body.size), text, shown(body.size), text);
    else
        EXPANSION_PROBLEM(expansion,
                          "'${' is followed by neither env: nor file:; write $$ for a dollar sign");
    return expansion->bad ? NULL : end + 1;
}

// `text` begins at a '$'; returns where to go on, or NULL.
static const char *dollar_append(struct expansion *expansion, const char *text) {
    if (text[1] == '$') {
        buffer_append_char(&expansion->out, '$');
        return text + 2;
    }
    if (text[1] == '{')
        return reference_append(expansion, text + 2);
    size_t length = name_length(text + 1);
    if (length > 0)
        EXPANSION_PROBLEM(expansion,
                          "'$%.*s' is not expanded; write ${env:%.*s}, or $$%.*s for a dollar "
                          "sign",
                          shown(length), text + 1, shown(length), text + 1, shown(length),
                          text + 1);
    else
        EXPANSION_PROBLEM(expansion, "a single dollar sign; write $$ for one");
    return NULL;
}

static void node_expand(struct expansion *expansion) {
    assert(expansion->node->type == NODE_TEXT);
    struct node *node = expansion->node;
    if (strchr(node->written, '$') == NULL || node->expanded)
        return;
    buffer_init(&expansion->out, EXPANDED_MAX - expansion->total + 1);
    expansion->bad = false;
    node->expanded = true;
    for (const char *at = node->written; at != NULL && *at != '\0';) {
        const char *dollar = strchrnul(at, '$');
        buffer_append(&expansion->out, (struct slice){at, (size_t)(dollar - at)});
        at = *dollar == '\0' ? dollar : dollar_append(expansion, dollar);
    }
    expansion->total += expansion->out.size;
    if (expansion->out.failed || expansion->total > EXPANDED_MAX)
        EXPANSION_PROBLEM(expansion, "all expanded values together exceed %d bytes", EXPANDED_MAX);
    if (expansion->bad)
        node->unknown = true; // said already; what is missing must not be said again
    if (!node->unknown)
        node->text = arena_text(expansion->arena, buffer_slice(&expansion->out));
    expansion->total = expansion->total > EXPANDED_MAX ? EXPANDED_MAX : expansion->total;
    buffer_release(&expansion->out);
}

static bool node_concerned(const struct node *node) {
    return node->type == NODE_MAP || node->type == NODE_LIST ||
           (node->type == NODE_TEXT && strchr(node->written, '$') != NULL);
}

// Walks everything below the root's entries that are in `keys`, or below all others; never below
// those in `literal`.
struct walk {
    const char *const *keys; // NULL-terminated, both
    const char *const *literal;
    bool within;
};

static bool names_key(const char *const *keys, const char *key) {
    for (const char *const *at = keys; key != NULL && *at != NULL; at++)
        if (strcmp(*at, key) == 0)
            return true;
    return false;
}

static bool walk_enters(const struct walk *walk, const char *key) {
    return names_key(walk->keys, key) == walk->within && !names_key(walk->literal, key);
}

static void walk_expand(struct expansion *expansion, struct node *root, const struct walk *walk) {
    assert(root != NULL);
    struct visit *visits = arena_take(expansion->arena, sizeof *visits);
    *visits = (struct visit){.node = root};
    while (visits != NULL) {
        struct visit *visit = visits;
        visits = visit->next;
        if (visit->node->type == NODE_TEXT) {
            expansion->visit = visit;
            expansion->node = visit->node;
            node_expand(expansion);
        }
        for (uint32_t i = 0; i < visit->node->count; i++) {
            const struct node_entry *entry = &visit->node->entries[i];
            if (!node_concerned(entry->value) ||
                (visit->parent == NULL && !walk_enters(walk, entry->key)))
                continue;
            struct visit *later = arena_take(expansion->arena, sizeof *later);
            *later = (struct visit){visits, visit, entry->key, i, entry->value};
            visits = later;
        }
    }
}

void document_expand(struct node *root, struct arena *arena, const char *const *unused,
                     const char *const *literal, bool no_environment,
                     struct problem_list *problems) {
    static const char *const NO_KEYS[] = {NULL};
    struct expansion expansion = {
        .arena = arena, .problems = problems, .no_environment = no_environment};
    struct walk walk = {.keys = unused == NULL ? NO_KEYS : unused,
                        .literal = literal == NULL ? NO_KEYS : literal};
    walk_expand(&expansion, root, &walk);
    // A text that was seen already is left alone.
    expansion.no_environment = walk.within = true;
    walk_expand(&expansion, root, &walk);
}
