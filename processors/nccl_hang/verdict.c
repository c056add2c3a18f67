// SPDX-License-Identifier: Apache-2.0
// Builds the verdict about a hang.
//
// A headline and what to do (words.c); who waits, ranks ascending, and behind them the
// last operation that each absent rank ended. The id hangs on job, group and number alone, so that
// it stays when lines come after RAS, dumps after lines, and more dumps; only groups that share
// name and number are told apart by description and member set as well.
#include "processors/nccl_hang/verdict.h"

#include "processors/nccl_hang/refusal.h"
#include "processors/nccl_hang/stack.h"
#include "processors/nccl_hang/words.h"

#include <inttypes.h>

static const char PATTERN[] = "nccl_hang";

enum { WAITING_NAMED_MAX = 64 };

static const struct {
    const char *name, *action;
} KINDS[HANG_KIND_COUNT] = {
    [HANG_MISMATCH_TYPE] = {"mismatch_type", "fix_workload"},
    [HANG_MISMATCH_SIZE] = {"mismatch_size", "fix_workload"},
    [HANG_MISMATCH_DTYPE] = {"mismatch_dtype", "fix_workload"},
    [HANG_MISSING_RANK] = {"missing_rank", "inspect_rank"},
    [HANG_MISSING_DUMP] = {"missing_dump", "collect_dump"},
    [HANG_NOT_STARTED] = {"not_started", "inspect_rank"},
    [HANG_NOT_COMPLETED] = {"not_completed", "inspect_rank"},
    [HANG_ALL_STARTED] = {"all_started", "inspect_fabric"},
    [HANG_MISSING_PEER] = {"missing_peer", "inspect_rank"},
};

// -- evidence ------------------------------------------------------------------------------------

// What the evidence of one finding needs.
struct telling {
    const struct hang_finding *finding;
    struct verdict_builder *builder;
    const char *group;
};

// By what a finding is told.
enum { BY_DUMPS, BY_LINES, BY_RAS };

static uint8_t told_by(const struct hang_finding *finding) {
    return finding->by_ras ? BY_RAS : finding->from_lines ? BY_LINES : BY_DUMPS;
}

// An id: "..." stands for what is beyond its bound, as ever, so that it stays the same.
static const char *name_in_uid(string_id name, struct arena *arena) {
    enum { NAME_IN_UID_MAX = 256 };
    struct slice text = intern_slice(name);
    size_t size = text.size;
    if (size <= NAME_IN_UID_MAX)
        return arena_text(arena, text);
    for (size = NAME_IN_UID_MAX; size > 0 && ((unsigned char)text.data[size] & 0xc0) == 0x80;)
        size--;
    return arena_format(arena, "%.*s...", (int)size, text.data);
}

static const char *uid_of(uint8_t by, string_id group, bool p2p, int64_t sequence, int32_t rank,
                          struct arena *arena) {
    static const char *const PREFIX[] = {"fr", "watchdog", "ras"};
    return arena_format(arena, "%s:%s:%s%" PRId64 ":%" PRId32, PREFIX[by],
                        name_in_uid(group, arena), p2p ? "p2p" : "", sequence, rank);
}

static const char *seat_uid(const struct telling *telling, const struct hang_seat *seat,
                            int64_t sequence) {
    const struct hang_finding *finding = telling->finding;
    return uid_of(told_by(finding), finding->group->name, finding->p2p, sequence, seat->rank,
                  telling->builder->arena);
}

// When it was, as evidence: 0 where nobody wrote that.
static uint64_t told_time(const struct hang_finding *finding, uint64_t time_ns) {
    return finding->time_of == TIME_OF_EVENT ? time_ns : 0;
}

// How far it came: " and has not completed it".
static const char *end_text(const struct hang_finding *finding, const struct hang_seat *seat) {
    if (seat->is_silent || finding->by_ras)
        return "";
    if (seat->open->retired)
        return " and gave up on it";
    return finding->kind == HANG_NOT_STARTED && seat->open->state == FLIGHT_SCHEDULED
               ? " and has not started it"
               : " and has not completed it";
}

static void add_waiting(const struct telling *telling, const struct hang_seat *seat) {
    assert(seat->open != NULL);
    const struct hang_finding *finding = telling->finding;
    struct verdict_builder *builder = telling->builder;
    enum evidence_role role = seat->part == HANG_CULPRIT ? EVIDENCE_CAUSE : EVIDENCE_EFFECT;
    const char *uid = seat_uid(telling, seat, seat->open->sequence);
    const char *call = hang_call_text(seat->open, finding->kind, builder->arena);
    bool started = !seat->is_silent && seat->open->state == FLIGHT_STARTED;
    // A line stands where it was written, when the wait was over.
    uint64_t time_ns =
        told_time(finding, finding->from_lines ? seat->open->seen_ns : seat->open->created_ns);
    if (hang_is_mismatch(finding->kind))
        builder_evidence(builder, role, time_ns, uid,
                         "rank %" PRId32 " called %s as number %" PRId64 " of %s", seat->rank, call,
                         finding->sequence, telling->group);
    else
        builder_evidence(builder, role, time_ns, uid, "rank %" PRId32 " %s %s %" PRId64 " of %s%s",
                         seat->rank, started ? "started" : "called", call, seat->open->sequence,
                         telling->group, end_text(finding, seat));
}

// The last operation of an absent rank; of sends and receives none is kept.
static void add_context(const struct telling *telling, const struct hang_seat *seat) {
    const struct hang_member *member = seat->member;
    uint64_t time_ns =
        member->last_completed_ns != 0 ? member->last_completed_ns : member->last_created_ns;
    builder_evidence(telling->builder, EVIDENCE_CONTEXT, told_time(telling->finding, time_ns),
                     seat_uid(telling, seat, member->last),
                     "the last that rank %" PRId32 " %s in %s: %s %" PRId64 "%s", seat->rank,
                     seat->is_silent || telling->finding->by_ras ? "called" : "completed",
                     telling->group,
                     hang_operation_text(member->last_name, telling->builder->arena), member->last,
                     seat->part == HANG_VICTIM ? "; it waits elsewhere" : "");
}

// What shows how long it was waited: the newest dump of those who wait. It is not a cause and not
// an effect of its own, and says only that the others still hold.
static void add_last_seen(const struct telling *telling) {
    const struct hang_finding *finding = telling->finding;
    const struct verdict *verdict = &telling->builder->verdict;
    struct arena *arena = telling->builder->arena;
    if (finding->time_of != TIME_OF_EVENT)
        return;
    for (uint32_t i = 0; i < verdict->evidence_count; i++)
        if (verdict->evidence[i].time_ns >= finding->end_ns)
            return;
    if (finding->seen_rank == RANK_NONE || verdict->evidence_count == VERDICT_EVIDENCE_MAX)
        return;
    builder_evidence(telling->builder, EVIDENCE_CONTEXT, finding->end_ns,
                     arena_format(arena, "fr:%s:dump:%" PRIu64 ":%" PRId32,
                                  name_in_uid(finding->group->name, arena), finding->end_ns,
                                  finding->seen_rank),
                     "rank %" PRId32 " still waited when it dumped", finding->seen_rank);
}

// It is no evidence of what the rank did.
static void add_refusals(const struct telling *telling) {
    const struct hang_finding *finding = telling->finding;
    struct arena *arena = telling->builder->arena;
    for (uint32_t i = 0; i < finding->seat_count; i++) {
        const struct hang_seat *seat = &finding->seats[i];
        if (seat->part == HANG_UNREAD)
            builder_evidence(telling->builder, EVIDENCE_CONTEXT, 0,
                             arena_format(arena, "fr:%s:unread:%" PRId32,
                                          name_in_uid(finding->group->name, arena), seat->rank),
                             "the dump of rank %" PRId32 " could not be read (%s)", seat->rank,
                             seat->refusal->why);
    }
}

static void add_stacks(const struct telling *telling) {
    const struct hang_finding *finding = telling->finding;
    for (uint32_t i = 0; i < finding->seat_count; i++) {
        const struct hang_seat *seat = &finding->seats[i];
        if (seat->stack == NULL)
            continue;
        builder_evidence(telling->builder, EVIDENCE_CONTEXT, seat->stack->time_ns,
                         arena_format(telling->builder->arena, "stack:%" PRId32 ":%" PRIu64,
                                      seat->rank, seat->stack->time_ns),
                         "rank %" PRId32 " stood in %s", seat->rank, seat->stack->frame);
        if (seat->part == HANG_CULPRIT && finding->culprit_count == 1)
            builder_attribute(telling->builder, "culprit.frame", slice_of(seat->stack->frame));
    }
}

static bool has_context(const struct hang_finding *finding, const struct hang_seat *seat) {
    return seat->is_absent && seat->member != NULL && seat->member->last >= 0 && !finding->p2p;
}

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

// All when there is room; else causes before others, and at least half of what is context.
static void add_evidence(const struct telling *telling) {
    const struct hang_finding *finding = telling->finding;
    uint32_t contexts = 0, causes = 0,
             waiting = least(finding->waiting_count, VERDICT_EVIDENCE_MAX);
    for (uint32_t i = 0; i < finding->seat_count; i++) {
        const struct hang_seat *seat = &finding->seats[i];
        contexts += has_context(finding, seat);
        causes += seat->open != NULL && seat->part == HANG_CULPRIT;
    }
    uint32_t total = finding->waiting_count + contexts, room = VERDICT_EVIDENCE_MAX - waiting;
    uint32_t context_room =
        least(contexts, room < VERDICT_EVIDENCE_MAX / 2 ? VERDICT_EVIDENCE_MAX / 2 : room);
    uint32_t cause_room = least(causes, VERDICT_EVIDENCE_MAX - context_room);
    uint32_t effect_room = VERDICT_EVIDENCE_MAX - context_room - cause_room;
    for (uint32_t i = 0; i < finding->seat_count; i++) {
        const struct hang_seat *seat = &finding->seats[i];
        uint32_t *left = seat->part == HANG_CULPRIT ? &cause_room : &effect_room;
        if (seat->open == NULL || *left == 0)
            continue;
        --*left;
        add_waiting(telling, seat);
    }
    for (uint32_t i = 0; i < finding->seat_count && context_room > 0; i++)
        if (has_context(finding, &finding->seats[i])) {
            add_context(telling, &finding->seats[i]);
            context_room--;
        }
    telling->builder->verdict.evidence_dropped = total - telling->builder->verdict.evidence_count;
    add_last_seen(telling);
}

// -- who -----------------------------------------------------------------------------------------

static void add_entities(struct verdict_builder *builder, const struct hang_finding *finding,
                         const struct hang_nodes *nodes) {
    static const enum entity_role ROLES[] = {
        [HANG_CULPRIT] = ROLE_CULPRIT, [HANG_SUSPECT] = ROLE_SUSPECT, [HANG_VICTIM] = ROLE_VICTIM};
    bool blames = finding->kind != HANG_ALL_STARTED;
    // In the order in which they may stay when there are too many.
    for (enum hang_part part = HANG_CULPRIT; part <= HANG_VICTIM; part++) {
        for (uint32_t i = 0; i < finding->seat_count; i++)
            if (finding->seats[i].part == part)
                builder_entity(builder, "rank", ROLES[part],
                               arena_format(builder->arena, "%" PRId32, finding->seats[i].rank));
        for (uint32_t i = 0; part == HANG_CULPRIT && blames && i < nodes->count; i++)
            builder_entity(builder, "node", ROLE_SUSPECT, intern_slice(nodes->names[i]).data);
    }
    // Who waits, as far as that is of use: the first of them.
    uint32_t waiting = 0;
    for (uint32_t i = 0; blames && i < finding->seat_count && waiting < WAITING_NAMED_MAX; i++) {
        const struct hang_seat *seat = &finding->seats[i];
        if (seat->part != HANG_BYSTANDER || seat->open == NULL)
            continue;
        builder_entity(builder, "rank", ROLE_VICTIM,
                       arena_format(builder->arena, "%" PRId32, seat->rank));
        waiting++;
    }
    // All are in it and none comes out: what is broken is between these nodes.
    for (uint32_t i = 0; !blames && i < nodes->count; i++)
        builder_entity(builder, "node", ROLE_VICTIM, intern_slice(nodes->names[i]).data);
    for (uint32_t i = 0; !blames && nodes->some_unknown && i < finding->seat_count; i++)
        builder_entity(builder, "rank", ROLE_VICTIM,
                       arena_format(builder->arena, "%" PRId32, finding->seats[i].rank));
}

static void add_attributes(struct verdict_builder *builder, const struct hang_finding *finding) {
    for (uint32_t i = 0; finding->culprit_count == 1 && i < finding->seat_count; i++)
        if (finding->seats[i].part == HANG_CULPRIT)
            builder_attribute_format(builder, "culprit.rank", "%" PRId32, finding->seats[i].rank);
    if (finding->straggler)
        builder_attribute(builder, "culprit.straggler", SLICE("true"));
    builder_attribute(builder, "nccl.collective.name",
                      hang_operation_whole(hang_main_operation(finding)));
    builder_attribute_format(builder, "nccl.collective.seq_id", "%" PRId64, finding->sequence);
    builder_attribute(builder, "nccl.process_group.desc", intern_slice(finding->group->desc));
    builder_attribute(builder, "nccl.process_group.name", intern_slice(finding->group->name));
    if (finding->time_of != TIME_OF_EVENT)
        builder_attribute(builder, "culprit.time_of", slice_of(time_of_name(finding->time_of)));
}

// -- the verdict ---------------------------------------------------------------------------------

static int64_t confidence_of(const struct hang_finding *finding, const struct hang_config *config) {
    const int64_t by_kind[HANG_KIND_COUNT] = {
        [HANG_MISMATCH_TYPE] = config->confidence_mismatch,
        [HANG_MISMATCH_SIZE] = config->confidence_mismatch,
        [HANG_MISMATCH_DTYPE] = config->confidence_mismatch,
        [HANG_MISSING_RANK] = config->confidence_missing_rank,
        [HANG_MISSING_DUMP] = config->confidence_missing_dump,
        [HANG_NOT_STARTED] = config->confidence_not_started,
        [HANG_NOT_COMPLETED] = config->confidence_not_completed,
        [HANG_ALL_STARTED] = config->confidence_all_started,
        [HANG_MISSING_PEER] = config->confidence_missing_peer,
    };
    int64_t confidence = by_kind[finding->kind];
    if (finding->past_timeout)
        confidence += config->confidence_past_timeout;
    // It may be otherwise: no surer than where nothing is known.
    if (finding->depends && confidence > config->confidence_missing_dump)
        confidence = config->confidence_missing_dump;
    uint32_t unknown = finding->without_dump_count + finding->unread_count;
    if (finding->expected_count > 0)
        confidence -=
            (int64_t)(unknown * 4 / finding->expected_count) * config->confidence_without_dump;
    return confidence;
}

static void finish(struct verdict_builder *builder, const struct hang_finding *finding) {
    const struct hang_finding *told = finding->first_told == NULL ? finding : finding->first_told;
    const struct hang_group *group = told->group;
    struct arena *arena = builder->arena;
    const char *set = finding->set == NULL || !finding->crowded
                          ? ""
                          : arena_format(arena, "%016" PRIx64, finding->set->hash);
    // A chain has no number of its own: it goes by whom it leads to.
    const struct hang_seat *anchor = &finding->seats[0];
    for (uint32_t i = 0; i < finding->seat_count; i++)
        if (finding->seats[i].open == NULL)
            anchor = &finding->seats[i];
    const char *number =
        finding->p2p
            ? arena_format(arena, "p2p:%" PRId64 ":%" PRId32, finding->sequence, anchor->rank)
            : arena_format(arena, "%s%" PRId64, told->by_ras ? "ras:" : "", told->sequence);
    const struct slice key[] = {intern_slice(group->job),
                                intern_slice(group->backend),
                                intern_slice(group->name),
                                finding->crowded ? intern_slice(group->desc) : SLICE(""),
                                slice_of(set),
                                slice_of(number)};
    builder_finish(builder, key, sizeof key / sizeof key[0]);
    // Of a time that nobody wrote it is not known how long before it the wait began.
    builder->verdict.start_ns =
        finding->time_of == TIME_OF_EVENT ? finding->start_ns : finding->end_ns;
    if (finding->end_ns > builder->verdict.end_ns)
        builder->verdict.end_ns = finding->end_ns;
}

static void begin(struct verdict_builder *builder, enum hang_kind kind, string_id job) {
    assert(kind < HANG_KIND_COUNT);
    builder_begin(builder, builder->arena, PATTERN, KINDS[kind].name);
    builder->entity_max = VERDICT_ENTITIES_MAX;
    builder->evidence_max = VERDICT_EVIDENCE_MAX;
    builder->evidence_in_order = true;
    builder->verdict.job = job;
}

void hang_verdict_build(const struct hang_store *store, const struct hang_finding *finding,
                        const struct hang_config *config, struct verdict_builder *builder) {
    assert(finding->seat_count > 0 && finding->waiting_count > 0);
    struct arena *arena = builder->arena;
    const struct telling telling = {
        finding, builder, hang_group_text(finding->group->name, finding->group->desc, arena)};
    const char *operation = hang_operation_text(hang_main_operation(finding), arena);
    struct hang_nodes nodes = hang_find_nodes(store, finding, arena);
    bool blamed = finding->culprit_count + finding->suspect_count > 0;
    begin(builder, finding->kind, finding->group->job);
    hang_tell_not_seen(builder, finding);
    builder_rate(builder, finding->past_timeout && !blamed ? SEVERITY_CRITICAL : SEVERITY_ERROR,
                 confidence_of(finding, config), KINDS[finding->kind].action);
    hang_set_texts(builder, finding, &nodes, telling.group, operation);
    add_entities(builder, finding, &nodes);
    add_evidence(&telling);
    add_stacks(&telling);
    add_refusals(&telling);
    add_attributes(builder, finding);
    finish(builder, finding);
}

void hang_verdict_relate(const struct hang_finding *finding, const struct verdict_builder *builders,
                         struct verdict *verdict) {
    struct arena *arena = builders[0].arena;
    verdict->related = arena_zero(arena, HANG_RELATED_MAX, sizeof *verdict->related);
    for (uint32_t i = 0; i < finding->related_count; i++) {
        const struct hang_relation *relation = &finding->related[i];
        struct related *related = &verdict->related[verdict->related_count++];
        memcpy(related->id, builders[relation->finding].verdict.id, sizeof related->id);
        related->relation = relation->is_cause ? RELATION_CAUSED_BY : RELATION_SAME_INCIDENT;
    }
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
    said->told_by = told_by(finding);
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

void hang_verdict_end(const struct hang_said *said, struct verdict_builder *builder) {
    assert(said->head.live != 0);
    struct arena *arena = builder->arena;
    const struct text_field fields[] = {
        {"op", hang_operation_text(said->operation, arena)},
        {"operation", hang_operation_named(said->operation, arena)},
        {"n", arena_format(arena, "%" PRId64, said->sequence)},
        {"group", hang_group_text(said->group_name, said->group_desc, arena)},
        {NULL, NULL},
    };
    begin(builder, said->kind, said->job);
    builder->verdict.partial = said->partial; // what was not seen was said when it was told
    builder_rate(builder, SEVERITY_ERROR, said->confidence, "monitor");
    builder_texts(builder, "{Operation} {n} of {group} hangs no longer",
                  "Nothing to do: the operation went on, or its group is gone.", fields);
    builder_evidence(
        builder, EVIDENCE_EFFECT, said->start_ns,
        uid_of(said->told_by, said->group_name, said->p2p, said->sequence, said->witness, arena),
        "rank %" PRId32 " waited in %s %" PRId64 " of %s", said->witness, fields[0].value,
        said->sequence, fields[3].value);
    builder_attribute(builder, "nccl.collective.name", hang_operation_whole(said->operation));
    builder_attribute(builder, "nccl.process_group.desc", intern_slice(said->group_desc));
    builder_attribute(builder, "nccl.process_group.name", intern_slice(said->group_name));
    builder_finish(builder, NULL, 0);
    memcpy(builder->verdict.id, said->id, sizeof builder->verdict.id);
    builder->verdict.start_ns = said->start_ns;
    builder->verdict.end_ns = said->end_ns;
}
