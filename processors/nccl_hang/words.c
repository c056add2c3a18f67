// SPDX-License-Identifier: Apache-2.0
// How is a hang said in words? One sentence that names ranks, operation, group and number, and one
// or two of what to do about it.
#include "processors/nccl_hang/words.h"

#include "base/sort.h"
#include "base/text/human.h"

#include <inttypes.h>
#include <stdio.h>

enum { RANKS_SHOWN = 6, NAME_SHOWN = 48, SHAPE_SHOWN = 80 };

bool hang_is_mismatch(enum hang_kind kind) {
    return kind <= HANG_MISMATCH_DTYPE;
}

// -- words ---------------------------------------------------------------------------------------

const char *hang_text(string_id id, size_t max, struct arena *arena) {
    struct slice text = intern_slice(id);
    if (text.size <= max)
        return arena_text(arena, text);
    while (max > 0 && ((unsigned char)text.data[max] & 0xc0) == 0x80)
        max--;
    return arena_format(arena, "%.*s...", (int)max, text.data);
}

const char *hang_group_text(string_id name, string_id desc, struct arena *arena) {
    if (intern_slice(desc).size > 0)
        return hang_text(desc, NAME_SHOWN, arena);
    return arena_format(arena, "group %s", hang_text(name, NAME_SHOWN, arena));
}

const char *hang_operation_text(string_id name, struct arena *arena) {
    return name == STRING_NONE ? "collective" : hang_text(name, NAME_SHOWN, arena);
}

static bool has_part(const struct hang_seat *seat, enum hang_part part) {
    return seat->part == part;
}

// "rank 5", "ranks 1, 2 and 3", "ranks 0, 1, 2, 3, 4, 5 and 10 others" of those with this part.
const char *hang_ranks_text(const struct hang_finding *finding, enum hang_part part,
                            struct arena *arena) {
    uint32_t count = 0, shown = 0;
    for (uint32_t i = 0; i < finding->seat_count; i++)
        count += has_part(&finding->seats[i], part);
    const char *text = count == 1 ? "rank" : "ranks";
    uint32_t show = count <= RANKS_SHOWN + 1 ? count : RANKS_SHOWN;
    for (uint32_t i = 0; i < finding->seat_count && shown < show; i++) {
        if (!has_part(&finding->seats[i], part))
            continue;
        const char *between = shown == 0 ? " " : shown + 1 == count ? " and " : ", ";
        text = arena_format(arena, "%s%s%" PRId32, text, between, finding->seats[i].rank);
        shown++;
    }
    if (shown < count)
        text = arena_format(arena, "%s and %" PRIu32 " others", text, count - shown);
    return text;
}

static const char *capital(const char *text, struct arena *arena) {
    char *copy = arena_text(arena, slice_of(text));
    if (copy[0] >= 'a' && copy[0] <= 'z')
        copy[0] = (char)(copy[0] - 'a' + 'A');
    return copy;
}

static const char *count_text(uint32_t count, struct arena *arena) {
    return arena_format(arena, "%" PRIu32 " rank%s", count, count == 1 ? "" : "s");
}

// The operation that most of those who wait are in; of equally many the first by its name.
string_id hang_main_operation(const struct hang_finding *finding) {
    string_id best = STRING_NONE;
    uint32_t best_count = 0;
    if (finding->usual != NULL)
        return finding->usual->name;
    for (uint32_t i = 0; i < finding->seat_count; i++) {
        const struct hang_open *open = finding->seats[i].open;
        if (open == NULL || open->name == STRING_NONE || open->name == best)
            continue;
        uint32_t count = 0;
        for (uint32_t j = 0; j < finding->seat_count; j++)
            count += finding->seats[j].open != NULL && finding->seats[j].open->name == open->name;
        if (count > best_count || (count == best_count && slice_compare(intern_slice(open->name),
                                                                        intern_slice(best)) < 0)) {
            best = open->name;
            best_count = count;
        }
        if (count * 2 > finding->waiting_count)
            break;
    }
    return best;
}

const struct hang_seat *hang_first_with(const struct hang_finding *finding, enum hang_part part) {
    for (uint32_t i = 0; i < finding->seat_count; i++)
        if (finding->seats[i].part == part)
            return &finding->seats[i];
    return NULL;
}

// What a rank called, in as much detail as the kind needs.
const char *hang_call_text(const struct hang_open *open, enum hang_kind kind, struct arena *arena) {
    const char *name = hang_operation_text(open->name, arena);
    if (kind == HANG_MISMATCH_SIZE && open->sizes != STRING_NONE)
        return arena_format(arena, "%s of %s", name, hang_text(open->sizes, SHAPE_SHOWN, arena));
    if (kind == HANG_MISMATCH_DTYPE && open->dtypes != STRING_NONE)
        return arena_format(arena, "%s of %s", name, hang_text(open->dtypes, SHAPE_SHOWN, arena));
    return name;
}

static const char *mismatch_headline(const struct hang_words *words) {
    const struct hang_finding *finding = words->finding;
    struct arena *arena = words->arena;
    const struct hang_seat *odd = hang_first_with(finding, HANG_CULPRIT);
    static const char *const WHAT[] = {"operations", "sizes", "data types"};
    const char *what = WHAT[finding->kind - HANG_MISMATCH_TYPE];
    if (odd == NULL || finding->usual == NULL)
        return arena_format(arena,
                            "Ranks called %s %" PRId64
                            " of %s with different %s, and no majority says which is right",
                            finding->kind == HANG_MISMATCH_TYPE ? "collective" : words->operation,
                            words->sequence, words->group, what);
    return arena_format(
        arena, "%s called %s where %s called %s: collective %" PRId64 " of %s has different %s",
        capital(words->culprits, arena), hang_call_text(odd->open, finding->kind, arena),
        count_text(finding->usual_count, arena),
        hang_call_text(finding->usual, finding->kind, arena), words->sequence, words->group, what);
}

// ", for 7 min 3 s when last seen", or nothing where only a file says that it hangs: as long as
// the verdict's times say.
static const char *waited_text(const struct hang_finding *finding, struct arena *arena) {
    char waited[HUMAN_MAX];
    if (!finding->outlasts)
        return "";
    human_duration((__int128)finding->end_ns - finding->start_ns, waited);
    return arena_format(arena, ", for %s when last seen", waited);
}

static const char *missing_headline(const struct hang_words *words) {
    const struct hang_finding *finding = words->finding;
    struct arena *arena = words->arena;
    const char *waiting = count_text(finding->waiting_count, arena);
    const char *verb = finding->waiting_count == 1 ? "waits" : "wait";
    if (finding->culprit_count > 0)
        return arena_format(arena, "%s never called %s %" PRId64 " of %s; %s %s for it%s",
                            capital(words->culprits, arena), words->operation, words->sequence,
                            words->group, waiting, verb, waited_text(finding, arena));
    return arena_format(arena, "%s %s in %s %" PRId64 " of %s for %s, held up elsewhere", waiting,
                        verb, words->operation, words->sequence, words->group,
                        hang_ranks_text(finding, HANG_VICTIM, arena));
}

static const char *peer_headline(const struct hang_words *words) {
    const struct hang_finding *finding = words->finding;
    struct arena *arena = words->arena;
    const char *waiting = count_text(finding->waiting_count, arena);
    const char *verb = finding->waiting_count == 1 ? "waits" : "wait";
    if (finding->culprit_count > 0)
        return arena_format(arena,
                            "%s never came to the other side of %s in %s (operation %" PRId64
                            "); %s %s for it",
                            capital(words->culprits, arena), words->operation, words->group,
                            words->sequence, waiting, verb);
    if (finding->suspect_count > 0)
        return arena_format(arena,
                            "%s %s in %s (operation %" PRId64
                            ") for %s, of which no dump "
                            "is there",
                            waiting, verb, words->group, words->sequence,
                            hang_ranks_text(finding, HANG_SUSPECT, arena));
    if (hang_first_with(finding, HANG_VICTIM) != NULL)
        return arena_format(arena, "%s %s in %s (operation %" PRId64 ") for %s, held up elsewhere",
                            waiting, verb, words->group, words->sequence,
                            hang_ranks_text(finding, HANG_VICTIM, arena));
    return arena_format(arena,
                        "%s of %s wait for one another in a circle of sends and receives (%s, "
                        "operation %" PRId64 ")",
                        waiting, words->group, words->operation, words->sequence);
}

static const char *all_started_headline(const struct hang_words *words) {
    const struct hang_finding *finding = words->finding;
    struct arena *arena = words->arena;
    uint32_t waiting = finding->waiting_count, others = finding->expected_count - waiting;
    const char *where = arena_format(arena, "%s %" PRId64 " of %s", words->operation,
                                     words->sequence, words->group);
    if (others > 0)
        return arena_format(
            arena, "%s did not come out of %s, %" PRIu32 " other%s did: no rank is to blame",
            count_text(waiting, arena), where, others, others == 1 ? "" : "s");
    return arena_format(arena, "%s %s in %s and %s came out: no rank is to blame",
                        waiting == 1 ? "The one rank that is known"
                                     : arena_format(arena, "All %s", count_text(waiting, arena)),
                        waiting == 1 ? "is" : "are", where, waiting == 1 ? "never" : "none");
}

const char *hang_headline(const struct hang_words *words) {
    const struct hang_finding *finding = words->finding;
    struct arena *arena = words->arena;
    switch (finding->kind) {
    case HANG_MISMATCH_TYPE:
    case HANG_MISMATCH_SIZE:
    case HANG_MISMATCH_DTYPE:
        return mismatch_headline(words);
    case HANG_MISSING_RANK:
        return missing_headline(words);
    case HANG_MISSING_DUMP:
        return arena_format(arena, "%s wait%s in %s %" PRId64 " of %s; no dump is there of %s",
                            count_text(finding->waiting_count, arena),
                            finding->waiting_count == 1 ? "s" : "", words->operation,
                            words->sequence, words->group,
                            hang_ranks_text(finding, HANG_SUSPECT, arena));
    case HANG_NOT_STARTED:
        if (finding->culprit_count == 0)
            return arena_format(arena, "%s %" PRId64 " of %s waits for %s, held up elsewhere",
                                capital(words->operation, arena), words->sequence, words->group,
                                hang_ranks_text(finding, HANG_VICTIM, arena));
        return arena_format(
            arena, "%s called %s %" PRId64 " of %s but never started it; the others wait in it",
            capital(words->culprits, arena), words->operation, words->sequence, words->group);
    case HANG_NOT_COMPLETED:
        return arena_format(arena, "%s never completed %s %" PRId64 " of %s%s",
                            capital(words->culprits, arena), words->operation, words->sequence,
                            words->group,
                            finding->expected_count > 1 ? ", which all others completed" : "");
    case HANG_ALL_STARTED:
        return all_started_headline(words);
    default:
        return peer_headline(words);
    }
}

// -- where the named ranks run -------------------------------------------------------------------

static int compare_nodes(const void *a, const void *b) {
    return slice_compare(intern_slice(*(const string_id *)a), intern_slice(*(const string_id *)b));
}

// Of the culprits, or of the suspects when there are none.
struct hang_nodes hang_find_nodes(const struct hang_store *store,
                                  const struct hang_finding *finding, struct arena *arena) {
    struct hang_nodes nodes = {.count = 0};
    if (hang_is_mismatch(finding->kind)) // the program is at fault, wherever it runs
        return nodes;
    enum hang_part part = finding->culprit_count > 0 ? HANG_CULPRIT : HANG_SUSPECT;
    for (uint32_t i = 0; i < finding->seat_count && nodes.count < HANG_NODES_MAX; i++) {
        if (finding->seats[i].part != part)
            continue;
        const struct hang_rank *rank =
            hang_find_rank(store, finding->group->job, finding->seats[i].rank);
        if (rank == NULL || rank->node == STRING_NONE)
            continue;
        bool known = false;
        for (uint32_t j = 0; j < nodes.count; j++)
            known |= nodes.names[j] == rank->node;
        if (!known)
            nodes.names[nodes.count++] = rank->node;
    }
    sort_stable(nodes.names, nodes.count, sizeof nodes.names[0], arena, compare_nodes);
    return nodes;
}

static const char *nodes_text(const struct hang_nodes *nodes, struct arena *arena) {
    if (nodes->count == 0)
        return "";
    const char *more = nodes->count == 1 ? ""
                       : nodes->count == 2
                           ? arena_format(arena, ", %s", hang_text(nodes->names[1], 64, arena))
                           : arena_format(arena, " and %" PRIu32 " more nodes", nodes->count - 1);
    return arena_format(arena, " (on %s%s)", hang_text(nodes->names[0], 64, arena), more);
}

const char *hang_remediation(const struct hang_words *words, const struct hang_nodes *nodes) {
    const struct hang_finding *finding = words->finding;
    struct arena *arena = words->arena;
    const char *where = nodes_text(nodes, arena);
    const char *who = words->culprits;
    switch (finding->kind) {
    case HANG_MISMATCH_TYPE:
    case HANG_MISMATCH_SIZE:
    case HANG_MISMATCH_DTYPE:
        if (finding->culprit_count == 0)
            return "Make all ranks call the same collectives in the same order with the same "
                   "shapes: look for branches and data that depend on the rank.";
        return arena_format(arena,
                            "Look in the program at what %s%s does differently before this call: a "
                            "branch that depends on the rank or its data, a skipped or repeated "
                            "collective, the shape of the last batch.",
                            who, where);
    case HANG_MISSING_DUMP:
        return arena_format(arena,
                            "Get the Flight Recorder dump of %s%s, or see whether the process is "
                            "still there. Dumps are written with TORCH_FR_BUFFER_SIZE above 0 and "
                            "TORCH_FR_DUMP_ON_TIMEOUT=1.",
                            hang_ranks_text(finding, HANG_SUSPECT, arena), where);
    case HANG_NOT_COMPLETED:
        return arena_format(arena,
                            "Look at the GPU and the network card of %s%s: its part of the "
                            "operation ran and did not end, that of the others did.",
                            who, where);
    case HANG_ALL_STARTED:
        return "All ranks came to the operation, so look at what is between them: network cards "
               "and links, switches, NCCL's RAS output, kernel logs of the nodes.";
    default:
        if (finding->culprit_count == 0 && finding->suspect_count > 0)
            return arena_format(arena,
                                "Get the dump of %s%s, or see whether the process is still "
                                "there.",
                                hang_ranks_text(finding, HANG_SUSPECT, arena), where);
        if (finding->culprit_count == 0)
            return "Look at the other verdicts first: who is waited for here waits elsewhere. When "
                   "there is none, ranks call operations of two groups in different orders.";
        return arena_format(arena,
                            "Look at what %s%s was doing instead: its stack (py-spy dump), its "
                            "log, whether the process is still there, the data loader and "
                            "checkpoints, and its GPU.",
                            who, where);
    }
}
