// SPDX-License-Identifier: Apache-2.0
// Chooses the Xid that came before a pod was taken away. Of those in the window the gravest class,
// of that the last burst, of that the first; then the lowest address and code. A change of the
// metric counts only where no line of the kernel tells of the same Xid. O(Xids of the node in the
// window) after a binary search, and that times the changes of the metric.
#include "processors/xid_correlation/parts.h"

#include "processors/cluster/compare.h"
#include "processors/cluster/tables.h"
#include "processors/cluster/xid_text.h"

enum { XID_RECOVERY = 154 };

bool xid_correlation_wants(uint32_t code) {
    const struct xid_row *row = xid_find(code);
    return row != NULL && (row->anchor != XID_ANCHOR_NO || row->class == XID_CLASS_CONSEQUENCE ||
                           row->class == XID_CLASS_ACTION || row->class == XID_CLASS_DETAIL);
}

static uint64_t before(uint64_t time_ns, uint64_t span_ns) {
    return time_ns > span_ns ? time_ns - span_ns : 0;
}

static uint64_t after(uint64_t time_ns, uint64_t span_ns) {
    return time_ns < UINT64_MAX - span_ns ? time_ns + span_ns : UINT64_MAX;
}

static uint64_t apart(uint64_t a_ns, uint64_t b_ns) {
    return a_ns > b_ns ? a_ns - b_ns : b_ns - a_ns;
}

// The first entry of the node that is not before `from_ns`.
static uint32_t seek(const struct xid_entry *const *entries, uint32_t count, string_id node,
                     uint64_t from_ns) {
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct xid_entry *entry = entries[middle];
        int order = compare_strings(entry->node, node);
        if (order < 0 || (order == 0 && entry->time_ns < from_ns))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// The entries of one node within a stretch of time.
struct stretch {
    const struct xid_entry *const *entries;
    uint32_t count;
};

static struct stretch stretch_of(const struct xid_entry *const *entries, uint32_t count,
                                 string_id node, uint64_t from_ns, uint64_t to_ns) {
    assert(from_ns <= to_ns);
    uint32_t first = seek(entries, count, node, from_ns), end = first;
    while (end < count && entries[end]->node == node && entries[end]->time_ns <= to_ns)
        end++;
    return (struct stretch){entries + first, end - first};
}

// Whether a line of the kernel tells of the same Xid as this change of the metric.
static bool is_shadowed(const struct xid_config *config, struct stretch near,
                        const struct xid_entry *entry) {
    if (entry->source != XID_FROM_GAUGE)
        return false;
    for (uint32_t i = 0; i < near.count; i++) {
        const struct xid_entry *line = near.entries[i];
        if (line->source != XID_FROM_GAUGE && line->code == entry->code &&
            line->address == entry->address &&
            apart(line->time_ns, entry->time_ns) <= duration_ns(config->burst))
            return true;
    }
    return false;
}

// 0: no anchor.
static unsigned class_of(const struct xid_entry *entry) {
    assert(entry->head.live != 0);
    struct xid_judgement judgement = xid_judge(entry->code, entry->fatal != 0);
    if (judgement.anchor == XID_ANCHOR_NO || judgement.action == NULL)
        return 0;
    return (unsigned)judgement.anchor * 4 + (unsigned)judgement.severity;
}

static const struct xid_entry *find_anchor(const struct xid_config *config, struct stretch window,
                                           struct stretch near) {
    unsigned best = 0;
    const struct xid_entry *anchor = NULL, *last = NULL;
    for (uint32_t i = 0; i < window.count; i++) {
        const struct xid_entry *entry = window.entries[i];
        unsigned class = class_of(entry);
        if (class == 0 || class < best || is_shadowed(config, near, entry))
            continue;
        if (class > best || entry->time_ns - last->time_ns > duration_ns(config->burst))
            anchor = entry;
        best = class;
        last = entry;
    }
    return anchor;
}

static void add_context(struct xid_choice *choice, const struct xid_entry *entry) {
    assert(choice->anchor != NULL && choice->context_count <= XID_CONTEXT_MAX);
    const struct xid_entry *anchor = choice->anchor;
    bool same_gpu = entry->address == anchor->address;
    if (same_gpu && entry->code == XID_RECOVERY && entry->time_ns >= anchor->time_ns &&
        entry->recovery != RECOVERY_UNKNOWN)
        choice->recovery = (enum recovery)entry->recovery;
    // The same fault again says nothing new.
    if ((same_gpu && entry->code == anchor->code) || choice->context_count == XID_CONTEXT_MAX)
        return;
    for (uint32_t i = 0; i < choice->context_count; i++)
        if (choice->context[i]->code == entry->code &&
            choice->context[i]->address == entry->address && entry->code != XID_RECOVERY)
            return;
    choice->context[choice->context_count++] = entry;
}

bool xid_choose(const struct xid_config *config, const struct xid_entry *const *entries,
                uint32_t count, string_id node, uint64_t time_ns, uint64_t now_ns,
                struct xid_choice *choice) {
    assert(time_ns <= now_ns && node != STRING_NONE);
    uint64_t from_ns = before(time_ns, duration_ns(config->window)),
             to_ns = after(time_ns, duration_ns(config->skew));
    to_ns = to_ns < now_ns ? to_ns : now_ns;
    uint64_t near_to_ns = after(to_ns, duration_ns(config->burst));
    struct stretch window = stretch_of(entries, count, node, from_ns, to_ns);
    struct stretch near =
        stretch_of(entries, count, node, before(from_ns, duration_ns(config->burst)),
                   near_to_ns < now_ns ? near_to_ns : now_ns);
    *choice = (struct xid_choice){.anchor = find_anchor(config, window, near)};
    if (choice->anchor == NULL)
        return false;
    choice->judgement = xid_judge(choice->anchor->code, choice->anchor->fatal != 0);
    for (uint32_t i = 0; i < window.count; i++)
        if (apart(window.entries[i]->time_ns, choice->anchor->time_ns) <=
                duration_ns(config->burst) &&
            !is_shadowed(config, near, window.entries[i]))
            add_context(choice, window.entries[i]);
    return true;
}
