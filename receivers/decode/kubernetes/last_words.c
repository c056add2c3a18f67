// SPDX-License-Identifier: Apache-2.0
#include "receivers/decode/kubernetes/last_words.h"

#include "base/text/cut.h"

// "[rank3]: " in front of each line.
static struct slice without_rank(struct slice line) {
    struct slice rest = line;
    uint64_t rank;
    if (text_skip(&rest, SLICE("[rank")) && text_take_number(&rest, 1, 10, &rank) &&
        text_skip(&rest, SLICE("]:"))) {
        text_skip_char(&rest, ' ');
        return rest;
    }
    return line;
}

static bool is_name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || text_is_digit(c) || c == '_' ||
           c == '.';
}

// "torch.AcceleratorError: CUDA error: …" or "KeyboardInterrupt".
static bool read_exception(struct slice line, struct slice *type, struct slice *words) {
    size_t size = 0;
    while (size < line.size && is_name_char(line.data[size]))
        size++;
    bool ends = size == line.size || line.data[size] == ':';
    if (size == 0 || !ends || text_is_digit(line.data[0]) || line.data[0] == '.')
        return false;
    *type = (struct slice){line.data, size};
    *words = text_trim(text_from(line, size == line.size ? size : size + 1));
    return true;
}

static bool is_wrapper(struct slice type) {
    static const char *const wrappers[] = {"ChildFailedError", "RayTaskError", "WorkerCrashedError",
                                           "ProcessRaisedException"};
    for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++) {
        struct slice name = slice_of(wrappers[i]);
        if (type.size >= name.size &&
            memcmp(type.data + type.size - name.size, name.data, name.size) == 0)
            return true;
    }
    return false;
}

bool last_words_find(struct slice text, struct slice *type, struct slice *words) {
    bool inside = false, found = false, wrapper = false;
    while (text.size > 0) {
        struct slice line = without_rank(text_take_line(&text)), its_type, its_words;
        if (text_begins(line, SLICE("Traceback (most recent call last):"))) {
            inside = true;
            continue;
        }
        if (!inside || line.size == 0 || line.data[0] == ' ' || line.data[0] == '\t')
            continue;
        inside = false;
        if (!read_exception(line, &its_type, &its_words) || (found && !wrapper))
            continue;
        found = true;
        wrapper = is_wrapper(its_type);
        *type = its_type;
        *words = its_words;
    }
    return found;
}
