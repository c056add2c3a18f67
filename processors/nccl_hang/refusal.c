// SPDX-License-Identifier: Apache-2.0
// Keeps the newest dump of each rank that was refused, with the file and the reason.
#include "processors/nccl_hang/refusal.h"

#include "base/text/cut.h"
#include "processors/cluster/row_text.h"
#include "processors/cluster/xid_text.h"
#include "processors/nccl_hang/judge.h"

KEYED_ROW_CHECK(struct hang_refusal, key);

const struct row_type HANG_REFUSAL_ROWS = {
    .size = sizeof(struct hang_refusal),
    .key_size = sizeof(struct hang_rank_key),
    .rows_per_chunk = 16,
    .strings = {offsetof(struct hang_refusal, key.job), offsetof(struct hang_refusal, node)},
};

// The file as its receiver, or that of the culprit which passed it on, names it: with its folder,
// which may be that of a node.
static struct slice file_of(const struct event *event) {
    bool is_passed_on = event->carried != NULL && event->carried->path != STRING_NONE;
    string_id path = is_passed_on ? event->carried->path : event->source;
    struct slice file = path == STRING_REFUSED ? SLICE("") : intern_slice(path);
    size_t at = file.size;
    for (unsigned slashes = 0; at > 0; at--) {
        slashes += file.data[at - 1] == '/';
        if (slashes == 2)
            break;
    }
    return text_from(file, at);
}

static const char *why_text(const struct event *event, struct arena *arena) {
    enum { FILE_SHOWN = 120 };
    const char *reason = arena_text(arena, event->flight->unreadable);
    struct slice file = file_of(event);
    return file.size == 0
               ? reason
               : arena_format(arena, "%s: %s", text_shown(file, FILE_SHOWN, arena), reason);
}

void hang_refusal_take(struct hang_store *store, const struct event *event, struct arena *scratch) {
    if (event->kind != EVENT_FLIGHT || event->flight->unreadable.data == NULL)
        return;
    const struct flight_dump *dump = event->flight;
    assert(dump->rank != RANK_NONE && store->refusal_bound.max > 0);
    const struct hang_rank_key key = {event->job, dump->rank};
    struct hang_refusal *row = row_bound_take(&store->refusals, &store->refusal_bound, &key,
                                              offsetof(struct hang_refusal, time_ns), scratch);
    uint64_t time_ns = dump->observed_ns != 0 ? dump->observed_ns : event->time_ns;
    char why[HANG_WHY_MAX];
    row_text_say(why, sizeof why, slice_of(why_text(event, scratch)));
    // Of two of one time the higher text, whichever came first.
    if (time_ns < row->time_ns || (time_ns == row->time_ns && strcmp(why, row->why) < 0))
        return;
    row->time_ns = time_ns;
    row->dated = !event->timeless;
    row->node = event->node;
    memcpy(row->why, why, sizeof why);
}

const struct hang_refusal *hang_find_refusal(const struct hang_store *store, string_id job,
                                             int32_t rank, string_id node, uint64_t since_ns) {
    const struct hang_rank_key key = {job, rank};
    const struct hang_refusal *row = keyed_rows_find(&store->refusals, &key);
    if (row == NULL || !hang_may_be_one(job, row->node, node) ||
        (row->dated && row->time_ns < since_ns))
        return NULL;
    const struct hang_rank *known = hang_find_rank(store, job, rank);
    bool is_read = known != NULL && known->read_ns > row->time_ns &&
                   hang_may_be_one(job, row->node, known->read_node);
    return is_read ? NULL : row;
}

const struct hang_refusal *hang_refusal_of(const struct hang_judging *judging,
                                           const struct hang_partition *partition, uint32_t i,
                                           uint64_t since_ns) {
    assert(i < partition->rank_count);
    const struct hang_group *group = partition->group;
    const struct hang_member *member = partition->members[i];
    const struct hang_source *source = hang_find_source(judging->store, group, partition->ranks[i]);
    if (source != NULL && source->streams)
        return NULL;
    string_id node = member != NULL ? member->node : source != NULL ? source->node : STRING_NONE;
    return hang_find_refusal(judging->store, group->job, partition->ranks[i], node, since_ns);
}
