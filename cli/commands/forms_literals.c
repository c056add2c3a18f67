// SPDX-License-Identifier: Apache-2.0
// Searches a log as a file of it is searched, line by line, and counts by what each line is found.
// A text that many lines of a job hold that goes well makes reading its log slow.
#include "cli/commands/forms_literals.h"

#include "base/memory.h"
#include "base/text/cut.h"
#include "base/text/display.h"
#include "receivers/decode/forms/needles.h"

#include <stdlib.h>

enum { SLOTS = 1 << 14 }; // more than there are texts to look for

struct literal_count {
    struct slice text; // data NULL: free
    uint64_t lines, last;
};

static struct literal_count *find_count(struct literal_count *counts, struct slice text) {
    uint64_t key = 0;
    memcpy(&key, text.data, NEEDLE_SIZE);
    size_t at = (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 50);
    while (counts[at].text.data != NULL && !slice_equal(counts[at].text, text))
        at = (at + 1) % SLOTS;
    counts[at].text = text;
    return &counts[at];
}

static void count_line(const struct forms *forms, struct slice line, uint64_t number,
                       struct literal_count *counts) {
    struct needle_walk walk = {0};
    size_t place;
    bool certain;
    while (forms_search(forms, line, &walk, &place, &certain)) {
        struct literal_count *count =
            find_count(counts, (struct slice){line.data + place, NEEDLE_SIZE});
        count->lines += count->last != number;
        count->last = number;
    }
}

static int compare(const void *left, const void *right) {
    const struct literal_count *a = left, *b = right;
    if (a->lines != b->lines)
        return a->lines < b->lines ? 1 : -1;
    if (a->text.data == NULL || b->text.data == NULL)
        return (a->text.data == NULL) - (b->text.data == NULL);
    return memcmp(a->text.data, b->text.data, NEEDLE_SIZE);
}

static bool has_literal(const struct form *form, struct slice literal) {
    for (uint32_t i = 0; i < form->text_count && !form->is_prefix; i++)
        if (slice_equal(form->texts[i].pattern.needle, literal))
            return true;
    return false;
}

static void print_count(const struct forms *forms, const struct literal_count *count,
                        struct buffer *out) {
    bool any = false;
    buffer_append_format(out, "%llu\t\"", (unsigned long long)count->lines);
    display_append(out, count->text, 0);
    buffer_append_text(out, "\"\t");
    for (uint32_t i = 0; i < forms_count(forms); i++) {
        const struct form *form = forms_at(forms, i);
        if (!has_literal(form, count->text))
            continue;
        buffer_append_text(out, any ? " " : "");
        buffer_append(out, form->name);
        any = true;
    }
    buffer_append_text(out, any ? "\n" : "-\n");
}

void forms_print_literals(const struct forms *forms, struct slice log, struct buffer *out) {
    struct literal_count *counts = memory_zero(SLOTS, sizeof *counts);
    uint64_t number = 0;
    while (log.size > 0) {
        // With its end: a text may hold that.
        size_t size = text_until(log, '\n').size;
        struct slice line = {log.data, size + (size < log.size)};
        count_line(forms, line, ++number, counts);
        log = text_from(log, line.size);
    }
    qsort(counts, SLOTS, sizeof *counts, compare);
    for (int i = 0; i < SLOTS && counts[i].lines > 0; i++)
        print_count(forms, &counts[i], out);
    memory_give(counts);
}
