// SPDX-License-Identifier: Apache-2.0
// One row a verdict that was told or held back. Each verdict of a batch is judged by its row, then
// those that count against max_per_minute are let through by severity, in their order. Cost: one
// look-up a verdict of the batch.
#include "pipeline/runtime/sender_route.h"

#include "base/log.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define MINUTE_NS UINT64_C(60000000000)

const char *const ROUTE_REASON_NAMES[ROUTE_REASONS] = {"match", "update_interval",
                                                       "max_per_minute"};

struct route_row {
    struct row_head head;
    char id[VERDICT_ID_SIZE];  // filled up with zeros
    uint8_t severity, is_root; // as it was told or held back last
    uint8_t told;              // the sink knows it
    uint8_t left;              // it was told, and then that it matches no longer
    uint8_t waits;             // there is more to tell of it
    uint64_t told_ns;          // when last
    struct row_link link;
};
KEYED_ROW_CHECK(struct route_row, id);

static const struct row_type ROWS = KEYED_ROW_TYPE(struct route_row, id, 64, 0);

static const struct state_row STATE[] = {
    STATE_ROWS(struct sender_route, rows, "route.rows", ROWS),
    STATE_STRUCT(struct sender_route, now, "route.now"),
};

void sender_route_init(struct sender_route *route, const struct route_config *config,
                       const char *id, const char *site) {
    assert(id != NULL && site != NULL);
    *route = (struct sender_route){.magic = ROUTE_MAGIC,
                                   .config = config,
                                   .id = id,
                                   .site = site,
                                   .now = {.order = ROW_LIST_EMPTY}};
    route->remembers =
        config != NULL && (config->match.min_severity > SEVERITY_INFO || config->match.only_roots ||
                           config->update_interval.ns > 0 || config->max_per_minute > 0);
    state_rows_init(STATE, STATE_ROW_COUNT(STATE), route);
}

void sender_route_release(struct sender_route *route) {
    assert(route->magic == ROUTE_MAGIC);
    state_rows_release(STATE, STATE_ROW_COUNT(STATE), route);
    route->magic = 0;
}

void sender_route_state(struct sender_route *route, struct state_list *list) {
    assert(route->magic == ROUTE_MAGIC);
    if (route->remembers)
        state_rows_list(STATE, STATE_ROW_COUNT(STATE), route, list);
}

// -- rows -----------------------------------------------------------------------------------------

static struct route_row *find_row(const struct sender_route *route, const struct verdict *verdict) {
    assert(verdict->id[0] != '\0');
    char key[VERDICT_ID_SIZE] = {0};
    memcpy(key, verdict->id, strnlen(verdict->id, sizeof key));
    return keyed_rows_find(&route->rows, key);
}

static void unlink_row(struct sender_route *route, const struct route_row *row) {
    table_unlink(&route->rows.table, offsetof(struct route_row, link), &route->now.order,
                 keyed_rows_number(&route->rows, row));
}

static void link_row(struct sender_route *route, const struct route_row *row) {
    table_link(&route->rows.table, offsetof(struct route_row, link), &route->now.order,
               keyed_rows_number(&route->rows, row));
}

static void set_waits(struct sender_route *route, struct route_row *row, bool waits) {
    assert(route->now.waiting >= row->waits);
    route->now.waiting = route->now.waiting - row->waits + waits;
    row->waits = waits;
}

static void remove_row(struct sender_route *route, struct route_row *row) {
    set_waits(route, row, false);
    unlink_row(route, row);
    keyed_rows_remove(&route->rows, row);
}

// The row of a verdict that has none.
static struct route_row *add_row(struct sender_route *route, const struct verdict *verdict) {
    if (keyed_rows_count(&route->rows) == ROUTE_ROWS_MAX) {
        struct route_row *oldest = table_row(&route->rows.table, route->now.order.first);
        atomic_fetch_add_explicit(&route->forgotten, oldest->told, memory_order_relaxed);
        remove_row(route, oldest);
    }
    char key[VERDICT_ID_SIZE] = {0};
    memcpy(key, verdict->id, strnlen(verdict->id, sizeof key));
    struct route_row *row = keyed_rows_add(&route->rows, key);
    link_row(route, row);
    return row;
}

void sender_route_restored(struct sender_route *route) {
    assert(route->magic == ROUTE_MAGIC && route->remembers);
    state_rows_restored(STATE, STATE_ROW_COUNT(STATE), route);
    assert(route->now.waiting <= keyed_rows_count(&route->rows));
}

// -- time -----------------------------------------------------------------------------------------

// Nothing more comes, or nothing for now: what waits for a later time has its time now.
static bool is_rest(const struct batch *batch) {
    return batch->last || batch->rests;
}

static void begin_minute(struct sender_route *route, bool notices_go_on) {
    struct route_now *now = &route->now;
    now->taken[0] = now->taken[1] = now->held_in_minute = now->pattern_count = 0;
    now->minute_ns = notices_go_on ? now->now_ns : 0;
}

// Brings the time up to the batch's; once more for the same batch changes nothing.
static void go_to(struct sender_route *route, const struct batch *batch) {
    struct route_now *now = &route->now;
    uint64_t time_ns =
        batch->evaluate && batch->as_of_ns != UINT64_MAX ? batch->as_of_ns : batch->newest_ns;
    if (time_ns > now->now_ns)
        now->now_ns = time_ns;
    if (now->minute_ns == 0 ||
        (now->now_ns - now->minute_ns < MINUTE_NS && !(batch->rests && now->minute_ns < time_ns)))
        return;
    bool goes_on = now->notice.open && now->held_in_minute > 0;
    if (now->notice.open && (!goes_on || now->notice.untold > 0))
        route->due = goes_on ? NOTICE_CHANGED : NOTICE_OVER;
    begin_minute(route, goes_on);
}

// Whether it stands as the sink was told: what else there is of it may wait.
static bool stands_as_told(const struct route_row *row, const struct verdict *verdict) {
    return !row->left && row->severity == (int)verdict->severity &&
           row->is_root == verdict_is_root(verdict);
}

static bool may_update(const struct sender_route *route, const struct route_row *row,
                       const struct batch *batch) {
    assert(route->config != NULL && row->told);
    uint64_t interval_ns = (uint64_t)route->config->update_interval.ns;
    return is_rest(batch) || route->now.now_ns >= row->told_ns + interval_ns;
}

// -- what is to be told ---------------------------------------------------------------------------

enum choice {
    NOTHING,  // it is as it was told
    PASSES,   // whatever the bounds say, or there is room
    ASKS,     // if there is room in this minute; else it is held back
    FILTERED, // it does not match
    LATER,    // before update_interval is over
    LEFT_OUT, // the end of one that was held back
};

static enum choice choose_unchanged(const struct sender_route *route, const struct verdict *verdict,
                                    const struct route_row *row, const struct batch *batch) {
    if (row == NULL || !row->waits || !route_matches(route->config, verdict))
        return NOTHING;
    bool may = !row->told || !stands_as_told(row, verdict) || may_update(route, row, batch);
    return may ? ASKS : NOTHING;
}

static enum choice choose_told(const struct sender_route *route, const struct verdict *verdict,
                               const struct route_row *row, const struct batch *batch) {
    assert(row->told);
    if (verdict->state == VERDICT_RESOLVED)
        return PASSES;
    if (!route_matches(route->config, verdict))
        return row->left ? FILTERED : PASSES;
    return stands_as_told(row, verdict) && !may_update(route, row, batch) ? LATER : ASKS;
}

static enum choice choose(const struct sender_route *route, const struct verdict *verdict,
                          const struct batch *batch) {
    const struct route_row *row = find_row(route, verdict);
    if (verdict->unchanged)
        return choose_unchanged(route, verdict, row, batch);
    if (row != NULL && row->told)
        return choose_told(route, verdict, row, batch);
    if (row != NULL && verdict->state == VERDICT_RESOLVED)
        return LEFT_OUT;
    return route_matches(route->config, verdict) ? ASKS : FILTERED;
}

// -- what becomes of it ---------------------------------------------------------------------------

static void put_out(struct sender_route *route, const struct verdict *verdict,
                    struct batch *routed) {
    struct route_row *row = find_row(route, verdict);
    struct verdict told = *verdict;
    assert(routed->verdicts.count <= routed->verdicts.capacity);
    bool is_over = verdict->state == VERDICT_RESOLVED;
    if (!is_over)
        told.state = row != NULL && row->told ? VERDICT_UPDATED : VERDICT_OPEN;
    told.unchanged = told.recalled = false;
    batch_append_verdict(routed, &told);
    if (is_over) {
        if (row != NULL)
            remove_row(route, row);
        return;
    }
    if (row == NULL)
        row = add_row(route, verdict);
    row->told = true;
    row->told_ns = route->now.now_ns;
    row->severity = (uint8_t)verdict->severity;
    row->is_root = verdict_is_root(verdict);
    row->left = !route_matches(route->config, verdict);
    set_waits(route, row, false);
    unlink_row(route, row);
    link_row(route, row);
}

static void count_held(struct sender_route *route, enum route_reason reason) {
    atomic_fetch_add_explicit(&route->held_back[reason], 1, memory_order_relaxed);
}

static void note_pattern(struct route_notice *notice, const char *pattern) {
    assert(strlen(pattern) <= VERDICT_PATTERN_MAX);
    for (uint32_t i = 0; i < ROUTE_PATTERNS_MAX; i++) {
        struct route_pattern *row = &notice->patterns[i];
        if (row->count == 0)
            snprintf(row->name, sizeof row->name, "%s", pattern);
        if (strcmp(row->name, pattern) == 0) {
            row->count++;
            return;
        }
    }
}

static void note_held(struct sender_route *route, const struct verdict *verdict) {
    struct route_notice *notice = &route->now.notice;
    assert(notice->untold <= notice->total && notice->listed_count <= ROUTE_LISTED_MAX);
    count_held(route, ROUTE_RATE);
    if (notice->total == 0)
        notice->first_ns = route->now.now_ns;
    notice->last_ns = route->now.now_ns;
    notice->most = (uint64_t)route->config->max_per_minute;
    notice->total++;
    notice->untold++;
    route->now.held_in_minute++;
    if ((uint64_t)verdict->severity > notice->gravest)
        notice->gravest = (uint64_t)verdict->severity;
    note_pattern(notice, verdict->pattern);
    if (notice->listed_count == ROUTE_LISTED_MAX)
        return;
    struct route_listed *listed = &notice->listed[notice->listed_count++];
    *listed = (struct route_listed){.severity = (uint8_t)verdict->severity,
                                    .state = (uint8_t)verdict->state,
                                    .time_ns = route->now.now_ns};
    memcpy(listed->id, verdict->id, sizeof listed->id);
}

// There is no room in this minute. One that the sink knows is told later, as it is then; of others
// only critical ones.
static void hold_back(struct sender_route *route, const struct verdict *verdict) {
    if (verdict->unchanged) // it waits already
        return;
    struct route_row *row = find_row(route, verdict);
    assert(route->config->max_per_minute > 0);
    note_held(route, verdict);
    if (row == NULL && verdict->state == VERDICT_RESOLVED)
        return;
    if (row == NULL)
        row = add_row(route, verdict);
    row->severity = row->told ? row->severity : (uint8_t)verdict->severity;
    set_waits(route, row, row->told || verdict->severity == SEVERITY_CRITICAL);
}

static void carry_out(struct sender_route *route, const struct verdict *verdict, enum choice choice,
                      struct batch *routed) {
    struct route_row *row = find_row(route, verdict);
    switch (choice) {
    case PASSES:
        put_out(route, verdict, routed);
        break;
    case ASKS:
        hold_back(route, verdict);
        break;
    case FILTERED:
        count_held(route, ROUTE_MATCH);
        break;
    case LATER:
        assert(row != NULL);
        count_held(route, ROUTE_UPDATE);
        set_waits(route, row, true);
        break;
    case LEFT_OUT:
        assert(row != NULL && !row->told);
        note_held(route, verdict);
        remove_row(route, row);
        break;
    case NOTHING:
        break;
    }
}

// -- the bound ------------------------------------------------------------------------------------

// How many of each severity there is room for: critical ones have a bound of their own, the others
// share one, the graver first. So that a flood of one pattern hides no other, the first message of
// each in a minute goes in any case.
static void find_room(const struct sender_route *route, const uint64_t asked[SEVERITY_CRITICAL + 1],
                      uint64_t room[SEVERITY_CRITICAL + 1]) {
    uint64_t most = (uint64_t)route->config->max_per_minute;
    uint64_t left[2];
    for (int i = 0; i < 2; i++)
        left[i] = most == 0                     ? UINT64_MAX
                  : route->now.taken[i] >= most ? 0
                                                : most - route->now.taken[i];
    for (int severity = SEVERITY_CRITICAL; severity >= SEVERITY_INFO; severity--) {
        uint64_t *of = &left[severity == SEVERITY_CRITICAL];
        assert(most > 0 || *of > asked[severity]);
        room[severity] = asked[severity] < *of ? asked[severity] : *of;
        *of -= room[severity];
    }
}

// Whether it is the first message of its pattern in this minute.
static bool is_first_of_pattern(const struct sender_route *route, const struct verdict *verdict) {
    const struct route_now *now = &route->now;
    assert(now->pattern_count <= ROUTE_PATTERNS_MAX);
    for (uint64_t i = 0; i < now->pattern_count; i++)
        if (strcmp(now->patterns[i], verdict->pattern) == 0)
            return false;
    return now->pattern_count < ROUTE_PATTERNS_MAX;
}

static void count_message(struct sender_route *route, const struct verdict *verdict) {
    struct route_now *now = &route->now;
    if (now->minute_ns == 0)
        now->minute_ns = now->now_ns;
    now->taken[verdict->severity == SEVERITY_CRITICAL]++;
    if (is_first_of_pattern(route, verdict))
        snprintf(now->patterns[now->pattern_count++], sizeof now->patterns[0], "%s",
                 verdict->pattern);
}

// Turns those of `choices` that ask and have room into such that pass.
static void let_through(struct sender_route *route, const struct verdict_list *verdicts,
                        uint8_t *choices) {
    uint64_t asked[SEVERITY_CRITICAL + 1] = {0}, room[SEVERITY_CRITICAL + 1];
    for (uint32_t i = 0; i < verdicts->count; i++) {
        asked[verdicts->items[i].severity] += choices[i] == ASKS;
        if (choices[i] == PASSES)
            count_message(route, &verdicts->items[i]);
    }
    find_room(route, asked, room);
    for (int round = 0; round < 2; round++)
        for (uint32_t i = 0; i < verdicts->count; i++) {
            const struct verdict *verdict = &verdicts->items[i];
            bool goes =
                round == 0 ? room[verdict->severity] > 0 : is_first_of_pattern(route, verdict);
            if (choices[i] != ASKS || !goes)
                continue;
            room[verdict->severity] -= round == 0;
            count_message(route, verdict);
            choices[i] = PASSES;
        }
}

static void route_verdicts(struct sender_route *route, const struct batch *batch,
                           struct batch *routed) {
    uint32_t count = batch->verdicts.count;
    const struct verdict *verdicts = batch->verdicts.items;
    if (count == 0)
        return;
    uint8_t *choices = arena_take(batch->arena, count);
    for (uint32_t i = 0; i < count; i++)
        choices[i] = (uint8_t)choose(route, &verdicts[i], batch);
    let_through(route, &batch->verdicts, choices);
    for (uint32_t i = 0; i < count; i++)
        carry_out(route, &verdicts[i], (enum choice)choices[i], routed);
}

// -- the notice -----------------------------------------------------------------------------------

static struct slice notice_headline(const struct sender_route *route, struct arena *arena) {
    const struct route_notice *notice = &route->now.notice;
    struct buffer text;
    buffer_init(&text, 4 * VERDICT_HEADLINE_MAX + ROUTE_PATTERNS_MAX * (VERDICT_PATTERN_MAX + 32));
    buffer_append_format(&text,
                         "%.80s: %llu message%s held back, more than %llu a minute: ", route->id,
                         (unsigned long long)notice->total, notice->total == 1 ? "" : "s",
                         (unsigned long long)notice->most);
    for (uint32_t i = 0; i < ROUTE_PATTERNS_MAX && notice->patterns[i].count > 0; i++)
        buffer_append_format(&text, "%s%s %llu", i == 0 ? "" : ", ", notice->patterns[i].name,
                             (unsigned long long)notice->patterns[i].count);
    assert(!text.failed);
    struct slice copy = arena_copy(arena, buffer_slice(&text));
    buffer_release(&text);
    return copy;
}

static void list_held(const struct route_notice *notice, struct verdict *verdict,
                      struct arena *arena) {
    assert(notice->listed_count > 0 && notice->listed_count <= notice->total);
    verdict->evidence_count = (uint32_t)notice->listed_count;
    verdict->evidence = arena_zero(arena, verdict->evidence_count, sizeof *verdict->evidence);
    for (uint32_t i = 0; i < verdict->evidence_count; i++) {
        const struct route_listed *listed = &notice->listed[i];
        verdict->evidence[i] = (struct evidence){
            .uid = slice_of(arena_format(arena, "%s", listed->id)),
            .description =
                slice_of(arena_format(arena, "held back: %s, %s, %s", listed->id,
                                      severity_name((enum severity)listed->severity),
                                      verdict_state_name((enum verdict_state)listed->state))),
            .time_ns = listed->time_ns,
            .has_time = true,
            .role = EVIDENCE_CONTEXT};
    }
    uint64_t more = notice->total - notice->listed_count;
    verdict->evidence_dropped = more < UINT32_MAX ? (uint32_t)more : UINT32_MAX;
}

static void make_notice(const struct sender_route *route, struct arena *arena,
                        struct verdict *verdict) {
    const struct route_notice *notice = &route->now.notice;
    struct attribute *attributes = arena_zero(arena, 3, sizeof *attributes);
    struct slice first =
        slice_of(arena_format(arena, "%llu", (unsigned long long)notice->first_ns));
    attributes[0] = (struct attribute){"culprit.exporter", slice_of(route->id)};
    attributes[1] = (struct attribute){
        "culprit.held_back",
        slice_of(arena_format(arena, "%llu", (unsigned long long)notice->total))};
    attributes[2] = (struct attribute){"culprit.root", SLICE("true")};
    *verdict = (struct verdict){
        .pattern = ROUTE_NOTICE_PATTERN,
        .kind = ROUTE_REASON_NAMES[ROUTE_RATE],
        .severity = notice->gravest == SEVERITY_CRITICAL ? SEVERITY_WARNING : SEVERITY_INFO,
        .confidence = 100,
        .headline = notice_headline(route, arena),
        .remediation = SLICE("exporters without max_per_minute have all of them; raise "
                             "match.min_severity or max_per_minute when this comes often"),
        .action = "monitor",
        .start_ns = notice->first_ns,
        .end_ns = notice->last_ns,
        .attributes = attributes,
        .attribute_count = 3};
    list_held(notice, verdict, arena);
    const struct slice key[] = {slice_of(route->id), first};
    verdict_set_id(verdict, verdict->pattern, key, 2);
}

static void log_notice(const struct sender_route *route, bool opens, bool is_over) {
    unsigned long long total = route->now.notice.total;
    if (opens)
        log_write(LOG_WARN, (struct log_site){"C3007", route->site},
                  "more than %lld messages a minute: what is beyond that is held back",
                  (long long)route->config->max_per_minute);
    if (is_over)
        log_write(LOG_INFO, (struct log_site){"C3008", route->site},
                  "%llu message%s held back by max_per_minute", total,
                  total == 1 ? " was" : "s were");
}

// When the first message is held back, when more was at the end of a minute, and when it is over:
// behind a minute in which nothing was, or when nothing comes.
static void put_notice(struct sender_route *route, const struct batch *batch,
                       struct batch *routed) {
    struct route_notice *notice = &route->now.notice;
    enum notice_due due = is_rest(batch) ? NOTICE_OVER : route->due;
    bool opens = !notice->open && notice->total > 0;
    route->due = NOTICE_STANDS;
    if (notice->total == 0 || (!opens && due == NOTICE_STANDS))
        return;
    struct verdict verdict;
    make_notice(route, batch->arena, &verdict);
    verdict.state = due == NOTICE_OVER ? VERDICT_RESOLVED : opens ? VERDICT_OPEN : VERDICT_UPDATED;
    batch_append_verdict(routed, &verdict);
    log_notice(route, opens, due == NOTICE_OVER);
    notice->untold = 0;
    notice->open = true;
    if (due == NOTICE_OVER)
        *notice = (struct route_notice){0};
}

// -- for the sender -------------------------------------------------------------------------------

void sender_route_recall(struct sender_route *route, struct batch *batch) {
    assert(route->magic == ROUTE_MAGIC && route->remembers && batch->evaluate);
    if (route->now.waiting == 0)
        return;
    go_to(route, batch);
    for (uint32_t i = 0; i < batch->verdicts.count; i++) {
        struct verdict *verdict = &batch->verdicts.items[i];
        if (verdict->unchanged && !verdict->recalled)
            verdict->recalled = choose(route, verdict, batch) == ASKS;
        batch->recalled |= verdict->recalled;
    }
}

static void filter(struct sender_route *route, const struct batch *batch, struct batch *routed) {
    for (uint32_t i = 0; i < batch->verdicts.count; i++) {
        const struct verdict *verdict = &batch->verdicts.items[i];
        if (verdict->unchanged)
            continue;
        if (route->config == NULL || route_matches(route->config, verdict))
            batch_append_verdict(routed, verdict);
        else
            count_held(route, ROUTE_MATCH);
    }
}

struct batch sender_route_batch(struct sender_route *route, const struct batch *batch) {
    assert(route->magic == ROUTE_MAGIC);
    struct batch routed = *batch;
    if (route->config == NULL && !batch->recalled)
        return routed;
    assert(batch->arena != NULL);
    routed.verdicts = (struct verdict_list){0};
    if (!route->remembers) {
        filter(route, batch, &routed);
        return routed;
    }
    go_to(route, batch);
    route_verdicts(route, batch, &routed);
    put_notice(route, batch, &routed);
    return routed;
}
