// SPDX-License-Identifier: Apache-2.0
// Searches a log as a file of it is searched, line by line, and counts by what each line is found.
// A text that many lines of a job hold that goes well makes reading its log slow.
#include "cli/commands/forms_literals.h"

#include "base/hash/hash.h"
#include "base/memory.h"
#include "base/text/cut.h"
#include "base/text/display.h"
#include "receivers/decode/forms/literals.h"
#include "receivers/decode/forms/needles.h"

#include <assert.h>
#include <stdlib.h>

struct literal_count {
    struct slice text; // data NULL: free
    uint64_t lines, last;
};

struct literal_counts {
    struct literal_count *slots;
    size_t size; // a power of two, more than there are texts to look for
};

static size_t slots_for(const struct forms *forms) {
    size_t texts = FORM_LITERAL_COUNT, size = 1024;
    for (uint32_t i = 0; i < forms_count(forms); i++)
        texts += forms_at(forms, i)->text_count;
    while (size < 2 * texts)
        size *= 2;
    return size;
}

static struct literal_count *find_count(const struct literal_counts *counts, struct slice text) {
    size_t at = hash_folded(hash_slice(text)) & (counts->size - 1);
    while (counts->slots[at].text.data != NULL && !slice_equal(counts->slots[at].text, text))
        at = (at + 1) & (counts->size - 1);
    counts->slots[at].text = text;
    return &counts->slots[at];
}

static void count_line(const struct forms *forms, struct slice line, uint64_t number,
                       const struct literal_counts *counts) {
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
    struct literal_counts counts = {.size = slots_for(forms)};
    counts.slots = memory_zero(counts.size, sizeof *counts.slots);
    uint64_t number = 0;
    while (log.size > 0) {
        // With its end: a text may hold that.
        size_t size = text_until(log, '\n').size;
        struct slice line = {log.data, size + (size < log.size)};
        count_line(forms, line, ++number, &counts);
        log = text_from(log, line.size);
    }
    qsort(counts.slots, counts.size, sizeof *counts.slots, compare);
    assert(counts.slots[counts.size - 1].lines == 0);
    for (size_t i = 0; counts.slots[i].lines > 0; i++)
        print_count(forms, &counts.slots[i], out);
    memory_give(counts.slots);
}
