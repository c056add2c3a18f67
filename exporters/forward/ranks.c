// SPDX-License-Identifier: Apache-2.0
#include "exporters/forward/ranks.h"

#include "pipeline/model/telemetry_event.h"

#include <assert.h>

enum { ROWS_PER_CHUNK = 256 };

static const uint64_t HOUR_NS = UINT64_C(3600) * 1000000000;
static const uint64_t DAY_NS = UINT64_C(86400) * 1000000000;

static bool rank_in_use(const void *row) {
    return ((const struct forward_rank *)row)->rank != RANK_NONE;
}

const struct row_type forward_rank_rows = {
    .size = sizeof(struct forward_rank),
    .rows_per_chunk = ROWS_PER_CHUNK,
    .strings = {offsetof(struct forward_rank, job)},
    .has_strings = rank_in_use,
};
const struct row_type forward_session_rows = {
    .size = sizeof(struct forward_session),
    .rows_per_chunk = ROWS_PER_CHUNK,
    .strings = {offsetof(struct forward_session, session)},
};

static struct forward_rank *rank_at(const struct forward_ranks *ranks, uint32_t row) {
    return table_row(&ranks->ranks, row);
}

static struct forward_session *session_at(const struct forward_ranks *ranks, uint32_t row) {
    return table_row(&ranks->sessions, row);
}

// -- finding ------------------------------------------------------------------------------------

static uint32_t hash_of(const struct forward_rank *rank) {
    return row_hash(rank->job, (uint32_t)rank->rank);
}

static void free_rank(struct forward_ranks *ranks, uint32_t row) {
    assert(rank_at(ranks, row)->rank != RANK_NONE);
    struct forward_rank *rank = rank_at(ranks, row);
    for (uint32_t at = rank->newest_session; at != TABLE_NO_ROW;) {
        uint32_t next = session_at(ranks, at)->next;
        table_free(&ranks->sessions, at);
        session_at(ranks, at)->session = STRING_NONE;
        at = next;
    }
    row_index_remove(&ranks->index, hash_of(rank), row);
    table_free(&ranks->ranks, row);
    rank->rank = RANK_NONE;
}

// Looks through all of them, so not for each sample.
static bool make_room(struct forward_ranks *ranks) {
    if (ranks->looked_ns != 0 && ranks->newest_ns < ranks->looked_ns + HOUR_NS)
        return false;
    ranks->looked_ns = ranks->newest_ns;
    for (uint32_t row = 0; row < ranks->ranks.used; row++) {
        const struct forward_rank *rank = rank_at(ranks, row);
        if (rank->rank != RANK_NONE && rank->last_ns + DAY_NS < ranks->newest_ns)
            free_rank(ranks, row);
    }
    return table_live(&ranks->ranks) < FORWARD_RANKS_MAX;
}

// NULL: there is no room.
static struct forward_rank *find_rank(struct forward_ranks *ranks, string_id job, int32_t number) {
    uint32_t hash = row_hash(job, (uint32_t)number), at = 0, row;
    while ((row = row_index_next(&ranks->index, hash, &at)) != TABLE_NO_ROW)
        if (rank_at(ranks, row)->job == job && rank_at(ranks, row)->rank == number)
            return rank_at(ranks, row);
    if (table_live(&ranks->ranks) >= FORWARD_RANKS_MAX && !make_room(ranks))
        return NULL;
    row = table_add(&ranks->ranks);
    *rank_at(ranks, row) = (struct forward_rank){
        .job = job, .rank = number, .newest_session = TABLE_NO_ROW, .first_ns = UINT64_MAX};
    row_index_put(&ranks->index, hash, row);
    assert(ranks->index.count == table_live(&ranks->ranks));
    return rank_at(ranks, row);
}

// -- sessions -----------------------------------------------------------------------------------

// The sample's session; NULL when it is not known and cannot begin.
static struct forward_session *find_session(struct forward_ranks *ranks, struct forward_rank *rank,
                                            string_id session, uint64_t time_ns) {
    for (uint32_t row = rank->newest_session; row != TABLE_NO_ROW;
         row = session_at(ranks, row)->next)
        if (session_at(ranks, row)->session == session)
            return session_at(ranks, row);
    uint32_t generation = 1;
    if (rank->newest_session != TABLE_NO_ROW) {
        const struct forward_session *newest = session_at(ranks, rank->newest_session);
        if (time_ns <= newest->first_ns || rank->session_count == FORWARD_SESSIONS_MAX)
            return NULL;
        generation = newest->generation + 1;
    }
    uint32_t row = table_add(&ranks->sessions);
    *session_at(ranks, row) = (struct forward_session){.next = rank->newest_session,
                                                       .session = session,
                                                       .first_ns = time_ns,
                                                       .generation = generation};
    rank->newest_session = row;
    rank->session_count++;
    return session_at(ranks, row);
}

struct carried forward_ranks_note(struct forward_ranks *ranks, const struct event *event,
                                  bool *full) {
    struct carried carried = {0};
    *full = false;
    if (event->carried != NULL)
        return *event->carried;
    if (event->kind != EVENT_TELEMETRY || event->telemetry->type != TELEMETRY_SAMPLE)
        return carried;
    const struct telemetry *telemetry = event->telemetry;
    uint64_t time_ns = telemetry->timestamp_ns;
    if (time_ns > ranks->newest_ns)
        ranks->newest_ns = time_ns;
    struct forward_rank *rank = find_rank(ranks, event->job, telemetry->rank);
    *full = rank == NULL;
    if (rank == NULL)
        return carried;
    if (time_ns > rank->last_ns)
        rank->last_ns = time_ns;
    if (time_ns < rank->first_ns)
        rank->first_ns = time_ns;
    if (telemetry->session == STRING_NONE)
        return rank->newest_session == TABLE_NO_ROW
                   ? (struct carried){.first_sample_ns = rank->first_ns, .generation = 1}
                   : carried;
    struct forward_session *session = find_session(ranks, rank, telemetry->session, time_ns);
    if (session == NULL)
        return carried;
    if (time_ns < session->first_ns)
        session->first_ns = time_ns;
    return (struct carried){.first_sample_ns =
                                session->generation == 1 ? rank->first_ns : session->first_ns,
                            .generation = session->generation};
}

void forward_ranks_release(struct forward_ranks *ranks) {
    row_index_release(&ranks->index);
}

// -- after a load -------------------------------------------------------------------------------

static bool is_whole(const struct forward_ranks *ranks) {
    for (uint32_t i = 0; i < ranks->ranks.used; i++) {
        const struct forward_rank *rank = rank_at(ranks, i);
        if (rank->rank == RANK_NONE)
            continue;
        uint32_t row = rank->newest_session;
        for (uint32_t j = 0; j < rank->session_count; j++) {
            if (row >= ranks->sessions.used)
                return false;
            row = session_at(ranks, row)->next;
        }
        if (row != TABLE_NO_ROW || rank->session_count > FORWARD_SESSIONS_MAX)
            return false;
    }
    return true;
}

void forward_ranks_restored(struct forward_ranks *ranks) {
    if (!is_whole(ranks)) {
        table_load(&ranks->ranks, 0, TABLE_NO_ROW, 0);
        table_load(&ranks->sessions, 0, TABLE_NO_ROW, 0);
    }
    row_index_clear(&ranks->index);
    ranks->newest_ns = 0;
    for (uint32_t row = 0; row < ranks->ranks.used; row++) {
        const struct forward_rank *rank = rank_at(ranks, row);
        if (rank->rank == RANK_NONE)
            continue;
        row_index_put(&ranks->index, hash_of(rank), row);
        if (rank->last_ns > ranks->newest_ns)
            ranks->newest_ns = rank->last_ns;
    }
    assert(ranks->index.count == table_live(&ranks->ranks));
}
