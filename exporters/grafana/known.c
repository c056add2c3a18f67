// SPDX-License-Identifier: Apache-2.0
// The verdicts whose annotation Grafana had, so that one that somebody deleted stays deleted.
// Verdicts are few: an id is looked for one after the other. Memory: KNOWN_MAX ids.
#include "exporters/grafana/annotation.h"

#include "base/memory.h"
#include "base/text/cut.h"

#include <assert.h>

void known_release(struct known_list *known) {
    memory_give(known->ids);
    memory_give(known->deleted);
    *known = (struct known_list){.count = 0};
}

uint32_t known_find(const struct known_list *known, struct slice id) {
    assert(known->count <= KNOWN_MAX);
    for (uint32_t i = 0; i < known->count; i++)
        if (slice_equal(slice_of(known->ids[i]), id))
            return i;
    return KNOWN_MAX;
}

void known_add(struct known_list *known, struct slice id) {
    assert(id.size > 0 && id.size < VERDICT_ID_SIZE);
    if (known_find(known, id) != KNOWN_MAX)
        return;
    if (known->ids == NULL) {
        known->ids = memory_zero(KNOWN_MAX, sizeof *known->ids);
        known->deleted = memory_zero(KNOWN_MAX, sizeof *known->deleted);
    }
    char *place = known->ids[known->next];
    memcpy(place, id.data, id.size);
    place[id.size] = '\0';
    known->deleted[known->next] = false;
    known->next = (known->next + 1) % KNOWN_MAX;
    known->count += known->count < KNOWN_MAX;
}

void known_keep(const struct known_list *known, struct buffer *out) {
    uint32_t first = known->count < KNOWN_MAX ? 0 : known->next;
    for (uint32_t i = 0; i < known->count; i++) {
        uint32_t at = (first + i) % KNOWN_MAX;
        if (out->max - out->size < VERDICT_ID_SIZE + 1)
            return;
        buffer_append_text(out, known->deleted[at] ? "-" : "");
        buffer_append_text(out, known->ids[at]);
        buffer_append_char(out, '\n');
    }
}

void known_restore(struct known_list *known, struct slice kept) {
    while (kept.size > 0) {
        struct slice id = text_take_line(&kept);
        bool deleted = text_skip_char(&id, '-');
        if (id.size == 0 || id.size >= VERDICT_ID_SIZE)
            continue;
        known_add(known, id);
        known->deleted[known_find(known, id)] = deleted;
    }
}
