// SPDX-License-Identifier: Apache-2.0
// What is in the verdict about a hang?
//
// A headline and what to do (nccl_hang_words.c); who waits, ranks ascending, and behind them the
// last operation that each absent rank ended. The id hangs on job, group, member set and number
// alone, so that it stays when more dumps come.
#include "processors/nccl_hang/verdict.h"

#include "processors/nccl_hang/words.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

static const char PATTERN[] = "nccl_hang";

const char *hang_kind_name(enum hang_kind kind) {
    static const char *const NAMES[HANG_KIND_COUNT] = {
        [HANG_MISMATCH_TYPE] = "mismatch_type",   [HANG_MISMATCH_SIZE] = "mismatch_size",
        [HANG_MISMATCH_DTYPE] = "mismatch_dtype", [HANG_MISSING_RANK] = "missing_rank",
        [HANG_MISSING_DUMP] = "missing_dump",     [HANG_NOT_STARTED] = "not_started",
        [HANG_NOT_COMPLETED] = "not_completed",   [HANG_ALL_STARTED] = "all_started",
        [HANG_MISSING_PEER] = "missing_peer",
    };
    return NAMES[kind];
}

static const char *action_of(enum hang_kind kind) {
    switch (kind) {
    case HANG_MISMATCH_TYPE:
    case HANG_MISMATCH_SIZE:
    case HANG_MISMATCH_DTYPE:
        return "fix_workload";
    case HANG_MISSING_DUMP:
        return "collect_dump";
    case HANG_ALL_STARTED:
        return "inspect_fabric";
    default:
        return "inspect_rank";
    }
}

// -- evidence ------------------------------------------------------------------------------------

static struct slice uid_of(const struct hang_finding *finding, int64_t sequence, int32_t rank,
                           struct arena *arena) {
    return slice_of(arena_format(arena, "fr:%s:%s%" PRId64 ":%" PRId32,
                                 hang_text(finding->group->name, 256, arena),
                                 finding->p2p ? "p2p" : "", sequence, rank));
}

static const char *waiting_text(const struct hang_words *words, const struct hang_seat *seat) {
    const struct hang_finding *finding = words->finding;
    struct arena *arena = words->arena;
    const char *call = hang_call_text(seat->open, finding->kind, arena);
    if (hang_is_mismatch(finding->kind))
        return arena_format(arena, "rank %" PRId32 " called %s as number %" PRId64 " of %s",
                            seat->rank, call, words->sequence, words->group);
    const char *state = seat->is_silent                       ? "called"
                        : seat->open->state == FLIGHT_STARTED ? "started"
                                                              : "called";
    const char *end = " and has not completed it";
    if (seat->is_silent)
        end = "";
    else if (seat->open->retired)
        end = " and gave up on it";
    else if (finding->kind == HANG_NOT_STARTED && seat->open->state == FLIGHT_SCHEDULED)
        end = " and has not started it";
    return arena_format(arena, "rank %" PRId32 " %s %s %" PRId64 " of %s%s", seat->rank, state,
                        call, seat->open->sequence, words->group, end);
}

static void add_waiting(const struct hang_words *words, const struct hang_seat *seat,
                        struct verdict *out) {
    out->evidence[out->evidence_count++] = (struct evidence){
        .uid = uid_of(words->finding, seat->open->sequence, seat->rank, words->arena),
        .description = slice_of(waiting_text(words, seat)),
        .time_ns = seat->open->created_ns,
        .has_time = true,
        .role = seat->part == HANG_CULPRIT ? EVIDENCE_CAUSE : EVIDENCE_EFFECT};
}

// The last operation of an absent rank; of sends and receives none is kept.
static void add_context(const struct hang_words *words, const struct hang_seat *seat,
                        struct verdict *out) {
    const struct hang_member *member = seat->member;
    struct arena *arena = words->arena;
    uint64_t time_ns =
        member->last_completed_ns != 0 ? member->last_completed_ns : member->last_created_ns;
    out->evidence[out->evidence_count++] =
        (struct evidence){.uid = uid_of(words->finding, member->last, seat->rank, arena),
                          .description = slice_of(arena_format(
                              arena, "the last that rank %" PRId32 " %s in %s: %s %" PRId64 "%s",
                              seat->rank, seat->is_silent ? "called" : "completed", words->group,
                              hang_operation_text(member->last_name, arena), member->last,
                              seat->part == HANG_VICTIM ? "; it waits elsewhere" : "")),
                          .time_ns = time_ns,
                          .has_time = time_ns != 0,
                          .role = EVIDENCE_CONTEXT};
}

// What shows how long it was waited: the newest dump of those who wait. It is not a cause and not
// an effect of its own, and says only that the others still hold.
static void add_last_seen(const struct hang_words *words, struct verdict *out) {
    const struct hang_finding *finding = words->finding;
    struct arena *arena = words->arena;
    for (uint32_t i = 0; i < out->evidence_count; i++)
        if (out->evidence[i].time_ns >= finding->end_ns)
            return;
    if (finding->seen_rank == RANK_NONE || out->evidence_count == VERDICT_EVIDENCE_MAX)
        return;
    out->evidence[out->evidence_count++] = (struct evidence){
        .uid = slice_of(arena_format(arena, "fr:%s:dump:%" PRIu64 ":%" PRId32,
                                     hang_text(finding->group->name, 256, arena), finding->end_ns,
                                     finding->seen_rank)),
        .description = slice_of(arena_format(arena, "rank %" PRId32 " still waited when it dumped",
                                             finding->seen_rank)),
        .time_ns = finding->end_ns,
        .has_time = true,
        .role = EVIDENCE_CONTEXT};
}

static bool has_context(const struct hang_finding *finding, const struct hang_seat *seat) {
    return seat->is_absent && seat->member != NULL && seat->member->last >= 0 && !finding->p2p;
}

// All when there is room; else causes before others, and at least half of what is context.
static void add_evidence(const struct hang_words *words, struct verdict *out) {
    const struct hang_finding *finding = words->finding;
    uint32_t contexts = 0, causes = 0;
    for (uint32_t i = 0; i < finding->seat_count; i++) {
        const struct hang_seat *seat = &finding->seats[i];
        contexts += has_context(finding, seat);
        causes += seat->open != NULL && seat->part == HANG_CULPRIT;
    }
    out->evidence = arena_take(words->arena, VERDICT_EVIDENCE_MAX * sizeof *out->evidence);
    uint32_t total = finding->waiting_count + contexts;
    uint32_t free_of_waiting = finding->waiting_count < VERDICT_EVIDENCE_MAX
                                   ? VERDICT_EVIDENCE_MAX - finding->waiting_count
                                   : 0;
    if (free_of_waiting < VERDICT_EVIDENCE_MAX / 2)
        free_of_waiting = VERDICT_EVIDENCE_MAX / 2;
    uint32_t context_room = contexts < free_of_waiting ? contexts : free_of_waiting;
    uint32_t room = VERDICT_EVIDENCE_MAX - context_room;
    uint32_t cause_room = causes < room ? causes : room;
    uint32_t effect_room = room - cause_room;
    for (uint32_t i = 0; i < finding->seat_count; i++) {
        const struct hang_seat *seat = &finding->seats[i];
        if (seat->open == NULL)
            continue;
        uint32_t *left = seat->part == HANG_CULPRIT ? &cause_room : &effect_room;
        if (*left == 0)
            continue;
        --*left;
        add_waiting(words, seat, out);
    }
    for (uint32_t i = 0; i < finding->seat_count && context_room > 0; i++)
        if (has_context(finding, &finding->seats[i])) {
            add_context(words, &finding->seats[i], out);
            context_room--;
        }
    out->evidence_dropped = total - out->evidence_count;
    add_last_seen(words, out);
}

// -- who -----------------------------------------------------------------------------------------

static void add_entity(struct verdict *out, const char *kind, struct slice name,
                       enum entity_role role) {
    if (out->entity_count == VERDICT_ENTITIES_MAX) {
        out->entities_dropped++;
        return;
    }
    out->entities[out->entity_count++] = (struct entity){kind, name, role};
}

static void add_ranks(const struct hang_finding *finding, enum hang_part part,
                      enum entity_role role, struct arena *arena, struct verdict *out) {
    for (uint32_t i = 0; i < finding->seat_count; i++)
        if (finding->seats[i].part == part)
            add_entity(out, "rank",
                       slice_of(arena_format(arena, "%" PRId32, finding->seats[i].rank)), role);
}

static void add_entities(const struct hang_finding *finding, const struct hang_nodes *nodes,
                         struct arena *arena, struct verdict *out) {
    uint32_t most = finding->seat_count + nodes->count + 1;
    out->entities = arena_take(arena, (most < VERDICT_ENTITIES_MAX ? most : VERDICT_ENTITIES_MAX) *
                                          sizeof(struct entity));
    add_ranks(finding, HANG_CULPRIT, ROLE_CULPRIT, arena, out);
    for (uint32_t i = 0; i < nodes->count; i++)
        add_entity(out, "node", intern_slice(nodes->names[i]), ROLE_SUSPECT);
    add_ranks(finding, HANG_SUSPECT, ROLE_SUSPECT, arena, out);
    add_ranks(finding, HANG_VICTIM, ROLE_VICTIM, arena, out);
    verdict_sort_entities(out);
}

static void add_attribute(struct verdict *out, const char *key, struct slice value) {
    if (value.size > 0)
        out->attributes[out->attribute_count++] = (struct attribute){key, value};
}

static void add_attributes(const struct hang_words *words, struct verdict *out) {
    const struct hang_finding *finding = words->finding;
    struct arena *arena = words->arena;
    out->attributes = arena_take(arena, 8 * sizeof *out->attributes);
    out->attribute_count = 0;
    const struct hang_seat *culprit = hang_first_with(finding, HANG_CULPRIT);
    if (finding->culprit_count == 1)
        add_attribute(out, "culprit.rank",
                      slice_of(arena_format(arena, "%" PRId32, culprit->rank)));
    if (finding->straggler)
        add_attribute(out, "culprit.straggler", SLICE("true"));
    add_attribute(out, "nccl.collective.name", slice_of(words->operation));
    add_attribute(out, "nccl.collective.seq_id",
                  slice_of(arena_format(arena, "%" PRId64, words->sequence)));
    add_attribute(out, "nccl.process_group.desc", intern_slice(finding->group->desc));
    add_attribute(out, "nccl.process_group.name", intern_slice(finding->group->name));
}

// -- the verdict ---------------------------------------------------------------------------------

static int confidence_of(const struct hang_finding *finding, const struct hang_confidence *base) {
    const int64_t by_kind[HANG_KIND_COUNT] = {
        [HANG_MISMATCH_TYPE] = base->mismatch,      [HANG_MISMATCH_SIZE] = base->mismatch,
        [HANG_MISMATCH_DTYPE] = base->mismatch,     [HANG_MISSING_RANK] = base->missing_rank,
        [HANG_MISSING_DUMP] = base->missing_dump,   [HANG_NOT_STARTED] = base->not_started,
        [HANG_NOT_COMPLETED] = base->not_completed, [HANG_ALL_STARTED] = base->all_started,
        [HANG_MISSING_PEER] = base->missing_peer,
    };
    int64_t confidence = by_kind[finding->kind];
    if (finding->past_timeout)
        confidence += base->past_timeout;
    if (finding->expected_count > 0)
        confidence -= (int64_t)(finding->without_dump_count * 4 / finding->expected_count) *
                      base->without_dump;
    return (int)(confidence < 5 ? 5 : confidence > 97 ? 97 : confidence);
}

static void set_id(const struct hang_finding *finding, struct arena *arena, struct verdict *out) {
    const struct hang_group *group = finding->group;
    const char *set =
        finding->set == NULL ? "" : arena_format(arena, "%016" PRIx64, finding->set->hash);
    // A chain has no number of its own: it goes by whom it leads to.
    const struct hang_seat *anchor = &finding->seats[0];
    for (uint32_t i = 0; i < finding->seat_count; i++)
        if (finding->seats[i].open == NULL)
            anchor = &finding->seats[i];
    const char *number = finding->p2p ? arena_format(arena, "p2p:%" PRId64 ":%" PRId32,
                                                     finding->sequence, anchor->rank)
                                      : arena_format(arena, "%" PRId64, finding->sequence);
    struct slice key[] = {intern_slice(group->job),
                          intern_slice(group->backend),
                          intern_slice(group->name),
                          intern_slice(group->desc),
                          slice_of(set),
                          slice_of(number)};
    verdict_set_id(out, PATTERN, key, sizeof key / sizeof key[0]);
}

void hang_verdict_build(const struct hang_store *store, const struct hang_finding *finding,
                        const struct hang_confidence *confidence, struct arena *arena,
                        struct verdict *out) {
    struct hang_words words = {
        .finding = finding,
        .arena = arena,
        .group = hang_group_text(finding->group->name, finding->group->desc, arena),
        .operation = hang_operation_text(hang_main_operation(finding), arena),
        .culprits = hang_ranks_text(finding, HANG_CULPRIT, arena),
        .sequence = finding->sequence,
    };
    struct hang_nodes nodes = hang_find_nodes(store, finding, arena);
    bool blamed = finding->culprit_count + finding->suspect_count > 0;
    *out = (struct verdict){
        .pattern = PATTERN,
        .kind = hang_kind_name(finding->kind),
        .job = finding->group->job,
        .severity = finding->past_timeout && !blamed ? SEVERITY_CRITICAL : SEVERITY_ERROR,
        .partial = finding->without_dump_count > 0 || finding->set == NULL,
        .confidence = confidence_of(finding, confidence),
        .action = action_of(finding->kind),
        .start_ns = finding->start_ns,
        .end_ns = finding->end_ns,
    };
    set_id(finding, arena, out);
    out->headline = slice_of(hang_headline(&words));
    out->remediation = slice_of(hang_remediation(&words, &nodes));
    add_entities(finding, &nodes, arena, out);
    add_evidence(&words, out);
    for (uint32_t i = 0; i < out->evidence_count; i++)
        if (out->evidence[i].time_ns > out->end_ns)
            out->end_ns = out->evidence[i].time_ns;
    add_attributes(&words, out);
}

// -- its end -------------------------------------------------------------------------------------

void hang_said_fill(struct hang_said *said, const struct hang_finding *finding,
                    const struct verdict *verdict) {
    const struct hang_seat *witness = NULL;
    for (uint32_t i = 0; i < finding->seat_count; i++) {
        const struct hang_seat *seat = &finding->seats[i];
        if (seat->open != NULL &&
            (witness == NULL || seat->open->created_ns < witness->open->created_ns))
            witness = seat;
    }
    assert(witness != NULL); // a hang without an open operation is none
    said->kind = (uint8_t)finding->kind;
    said->p2p = finding->p2p;
    said->partial = verdict->partial;
    said->standing = true;
    said->job = finding->group->job;
    said->group_name = finding->group->name;
    said->group_desc = finding->group->desc;
    said->operation = hang_main_operation(finding);
    said->witness = witness->rank;
    said->sequence = witness->open->sequence;
    said->confidence = verdict->confidence;
    said->start_ns = finding->start_ns;
    said->end_ns = verdict->end_ns;
}

void hang_verdict_end(const struct hang_said *said, struct arena *arena, struct verdict *out) {
    const char *group = hang_group_text(said->group_name, said->group_desc, arena);
    const char *operation = hang_operation_text(said->operation, arena);
    *out = (struct verdict){
        .pattern = PATTERN,
        .kind = hang_kind_name(said->kind),
        .job = said->job,
        .severity = SEVERITY_ERROR,
        .partial = said->partial,
        .confidence = said->confidence,
        .action = "monitor",
        .start_ns = said->start_ns,
        .end_ns = said->end_ns,
    };
    memcpy(out->id, said->id, sizeof out->id);
    out->headline = slice_of(arena_format(arena, "%s %" PRId64 " of %s hangs no longer", operation,
                                          said->sequence, group));
    out->remediation = SLICE("Nothing to do: the operation went on, or its group is gone.");
    out->evidence = arena_zero(arena, 1, sizeof *out->evidence);
    out->evidence_count = 1;
    out->evidence[0] = (struct evidence){
        .uid = slice_of(arena_format(arena, "fr:%s:%s%" PRId64 ":%" PRId32,
                                     hang_text(said->group_name, 256, arena),
                                     said->p2p ? "p2p" : "", said->sequence, said->witness)),
        .description =
            slice_of(arena_format(arena, "rank %" PRId32 " waited in %s %" PRId64 " of %s",
                                  said->witness, operation, said->sequence, group)),
        .time_ns = said->start_ns,
        .has_time = true,
        .role = EVIDENCE_EFFECT};
    out->attributes = arena_take(arena, 3 * sizeof *out->attributes);
    out->attribute_count = 0;
    add_attribute(out, "nccl.collective.name", slice_of(operation));
    add_attribute(out, "nccl.process_group.desc", intern_slice(said->group_desc));
    add_attribute(out, "nccl.process_group.name", intern_slice(said->group_name));
}
