// SPDX-License-Identifier: Apache-2.0
// Lists of hosts as Slurm writes them: names by commas, with ranges of numbers in brackets. O(text
// + hosts).
#include "base/text/cut.h"
#include "processors/first_exit/ends.h"

#include <inttypes.h>
#include <stdio.h>

enum { DIGITS_MAX = 9, NAME_MAX_SIZE = 255 };

struct host_list {
    string_id *hosts;
    uint32_t count;
};

static void add_host(struct host_list *list, const char *name, int size) {
    if (size <= 0 || size > NAME_MAX_SIZE || list->count == HOSTS_MAX)
        return;
    string_id host = intern((struct slice){name, (size_t)size});
    if (host != STRING_NONE && host != STRING_REFUSED)
        list->hosts[list->count++] = host;
}

// "13-14" or "007", between what stands before and behind the brackets.
static void add_range(struct host_list *list, struct slice before, struct slice range,
                      struct slice behind) {
    char name[NAME_MAX_SIZE + 1];
    uint64_t first, last;
    size_t width = range.size;
    if (!text_take_number(&range, 1, DIGITS_MAX, &first))
        return;
    width -= range.size;
    last = first;
    if (text_skip_char(&range, '-') && !text_take_number(&range, 1, DIGITS_MAX, &last))
        return;
    for (uint64_t number = first; number <= last && list->count < HOSTS_MAX; number++)
        add_host(list, name,
                 snprintf(name, sizeof name, "%.*s%0*" PRIu64 "%.*s", (int)before.size, before.data,
                          (int)width, number, (int)behind.size, behind.data));
}

// One name, or those of one pair of brackets; more pairs in one name are not read.
static void add_names(struct host_list *list, struct slice item) {
    struct slice before = text_until(item, '[');
    struct slice inside = text_from(item, before.size + (before.size < item.size));
    struct slice ranges = text_until(inside, ']');
    struct slice behind = text_from(inside, ranges.size + (ranges.size < inside.size));
    if (before.size > NAME_MAX_SIZE || behind.size > NAME_MAX_SIZE)
        return;
    if (before.size == item.size) {
        add_host(list, item.data, (int)item.size);
        return;
    }
    while (ranges.size > 0) {
        struct slice range = text_until(ranges, ',');
        ranges = text_from(ranges, range.size + (range.size < ranges.size));
        add_range(list, before, range, behind);
    }
}

uint32_t exit_hosts_read(struct slice text, string_id hosts[HOSTS_MAX]) {
    struct host_list list = {hosts, 0};
    while (text.size > 0) {
        size_t size = 0;
        bool inside = false;
        for (; size < text.size && (inside || text.data[size] != ','); size++)
            inside = text.data[size] == '[' || (inside && text.data[size] != ']');
        add_names(&list, (struct slice){text.data, size});
        text = text_from(text, size + (size < text.size));
    }
    return list.count;
}
