// SPDX-License-Identifier: Apache-2.0
// Says a hang in words: one sentence that names ranks, operation, group and number, and one or two
// of what to do about it.
#include "processors/nccl_hang/words.h"

#include "base/sort.h"
#include "processors/cluster/compare.h"
#include "processors/cluster/xid_text.h"

#include <inttypes.h>

enum { RANKS_SHOWN = 6, NAME_SHOWN = 48, SHAPE_SHOWN = 80 };

bool hang_is_mismatch(enum hang_kind kind) {
    return kind <= HANG_MISMATCH_DTYPE;
}

// -- words ---------------------------------------------------------------------------------------

const char *hang_text(string_id id, size_t max, struct arena *arena) {
    return text_shown(intern_slice(id), max, arena);
}

const char *hang_group_text(string_id name, string_id desc, struct arena *arena) {
    if (intern_slice(desc).size > 0)
        return hang_text(desc, NAME_SHOWN, arena);
    return arena_format(arena, "group %s", hang_text(name, NAME_SHOWN, arena));
}

const char *hang_operation_text(string_id name, struct arena *arena) {
    return text_shown(hang_operation_whole(name), NAME_SHOWN, arena);
}

struct slice hang_operation_whole(string_id name) {
    return name == STRING_NONE ? SLICE("collective") : intern_slice(name);
}

const char *hang_operation_named(string_id name, struct arena *arena) {
    const char *text = hang_operation_text(name, arena);
    return name == STRING_NONE ? text : arena_format(arena, "operation %s", text);
}

// "rank 5", "ranks 1, 2 and 3", "ranks 0, 1, 2, 3, 4, 5 and 10 others" of those with this part.
static const char *ranks_text(const struct hang_finding *finding, enum hang_part part,
                              struct arena *arena) {
    assert(part != HANG_BYSTANDER);
    uint32_t count = 0, shown = 0;
    for (uint32_t i = 0; i < finding->seat_count; i++)
        count += finding->seats[i].part == part;
    const char *text = count == 1 ? "rank" : "ranks";
    uint32_t show = count <= RANKS_SHOWN + 1 ? count : RANKS_SHOWN;
    for (uint32_t i = 0; i < finding->seat_count && shown < show; i++) {
        if (finding->seats[i].part != part)
            continue;
        const char *between = shown == 0 ? " " : shown + 1 == count ? " and " : ", ";
        text = arena_format(arena, "%s%s%" PRId32, text, between, finding->seats[i].rank);
        shown++;
    }
    return shown == count ? text
                          : arena_format(arena, "%s and %" PRIu32 " others", text, count - shown);
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

// What a rank called, in as much detail as the kind needs.
const char *hang_call_text(const struct hang_open *open, enum hang_kind kind, struct arena *arena) {
    assert(open != NULL);
    const char *name = hang_operation_text(open->name, arena);
    if (kind == HANG_MISMATCH_SIZE && open->sizes != STRING_NONE)
        return arena_format(arena, "%s of %s", name, hang_text(open->sizes, SHAPE_SHOWN, arena));
    if (kind == HANG_MISMATCH_DTYPE && open->dtypes != STRING_NONE)
        return arena_format(arena, "%s of %s", name, hang_text(open->dtypes, SHAPE_SHOWN, arena));
    return name;
}

// ", for 7 min 3 s when last seen", or nothing where only a file says that it hangs: as long as
// the verdict's times say.
static const char *waited_text(const struct hang_finding *finding, struct arena *arena) {
    if (!finding->outlasts)
        return "";
    return arena_format(arena, ", for %s when last seen",
                        duration_text((__int128)finding->end_ns - finding->start_ns, arena));
}

// -- where the named ranks run -------------------------------------------------------------------

static int compare_nodes(const void *a, const void *b) {
    return compare_strings(*(const string_id *)a, *(const string_id *)b);
}

static enum hang_part placed_part(const struct hang_finding *finding) {
    if (finding->kind == HANG_ALL_STARTED)
        return HANG_BYSTANDER;
    return finding->culprit_count > 0 ? HANG_CULPRIT : HANG_SUSPECT;
}

// Where it ran when it was heard of last. Ranks of several jobs without names have the same
// numbers: there what the group itself knows of it counts.
static string_id node_of(const struct hang_store *store, const struct hang_finding *finding,
                         const struct hang_seat *seat) {
    const struct hang_rank *rank = hang_find_rank(store, finding->group->job, seat->rank);
    string_id node = rank == NULL ? STRING_NONE : rank->node;
    bool own = finding->group->job == STRING_NONE && seat->member != NULL &&
               seat->member->node != STRING_NONE;
    return own ? seat->member->node : node;
}

struct hang_nodes hang_find_nodes(const struct hang_store *store,
                                  const struct hang_finding *finding, struct arena *arena) {
    struct hang_nodes nodes = {.count = 0};
    if (hang_is_mismatch(finding->kind)) // the program is at fault, wherever it runs
        return nodes;
    for (uint32_t i = 0; i < finding->seat_count && nodes.count < HANG_NODES_MAX; i++) {
        if (finding->seats[i].part != placed_part(finding))
            continue;
        string_id node = node_of(store, finding, &finding->seats[i]);
        if (node == STRING_NONE) {
            nodes.some_unknown = true;
            continue;
        }
        bool known = false;
        for (uint32_t j = 0; j < nodes.count; j++)
            known |= nodes.names[j] == node;
        if (!known)
            nodes.names[nodes.count++] = node;
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

// -- sentences -----------------------------------------------------------------------------------

#define ANY_KIND HANG_KIND_COUNT
#define ANY_PART HANG_BYSTANDER

// A template for findings of a kind whose gravest part is this one; the first that fits holds. A
// mismatch of any sort is HANG_MISMATCH_TYPE.
struct sentence {
    enum hang_kind kind;
    enum hang_part part;
    const char *template;
};

static const struct sentence HEADLINES[] = {
    {HANG_MISMATCH_TYPE, HANG_CULPRIT,
     "{Who} called {odd_call} where {usual_ranks} called {usual_call}: collective {n} of {group} "
     "has different {what}"},
    {HANG_MISMATCH_TYPE, ANY_PART,
     "Ranks called {mixed} {n} of {group} with different {what}, and no majority says which is "
     "right"},
    {HANG_MISSING_RANK, HANG_CULPRIT,
     "{Who} never called {op} {n} of {group}; {waiting} {wait} for it{waited}"},
    {HANG_MISSING_RANK, ANY_PART,
     "{waiting} {wait} in {op} {n} of {group} for {victims}, held up elsewhere"},
    {HANG_MISSING_DUMP, ANY_PART, "{waiting} {wait} in {op} {n} of {group}; {no_dump}"},
    {HANG_NOT_STARTED, HANG_CULPRIT,
     "{Who} called {op} {n} of {group} but never started it; the others wait in it"},
    {HANG_NOT_STARTED, ANY_PART,
     "{Operation} {n} of {group} waits for {victims}, held up elsewhere"},
    {HANG_NOT_COMPLETED, ANY_PART, "{Who} never completed {op} {n} of {group}{others_did}"},
    {HANG_ALL_STARTED, ANY_PART, "{all_started}: no rank is to blame"},
    {HANG_MISSING_PEER, HANG_CULPRIT,
     "{Who} never came to the other side of {op} in {group} (operation {n}); {waiting} {wait} for "
     "it"},
    {HANG_MISSING_PEER, HANG_SUSPECT,
     "{waiting} {wait} in {group} (operation {n}) for {suspects}, of whom no dump was read"},
    {HANG_MISSING_PEER, HANG_VICTIM,
     "{waiting} {wait} in {group} (operation {n}) for {victims}, held up elsewhere"},
    {HANG_MISSING_PEER, HANG_UNREAD, "{waiting} {wait} in {group} (operation {n}); {no_dump}"},
    {ANY_KIND, ANY_PART,
     "{waiting} of {group} wait for one another in a circle of sends and receives ({op}, operation "
     "{n})"},
};

static const struct sentence REMEDIATIONS[] = {
    {HANG_MISMATCH_TYPE, HANG_CULPRIT,
     "Look in the program at what {who}{where} does differently before this call: a branch that "
     "depends on the rank or its data, a skipped or repeated collective, the shape of the last "
     "batch."},
    {HANG_MISMATCH_TYPE, ANY_PART,
     "Make all ranks call the same collectives in the same order with the same shapes: look for "
     "branches and data that depend on the rank."},
    {HANG_MISSING_DUMP, HANG_UNREAD,
     "What {unread} did is not known: get {unread_dumps} once more, whole, or see where the "
     "process "
     "stands (py-spy dump). A dump breaks off when a disk is full, or when the process is killed "
     "while it writes."},
    {HANG_MISSING_DUMP, ANY_PART,
     "Get the Flight Recorder dump of {suspects}{where}, or see whether the process is still "
     "there. Dumps are written with TORCH_FR_BUFFER_SIZE above 0 and TORCH_FR_DUMP_ON_TIMEOUT=1."},
    {HANG_NOT_COMPLETED, ANY_PART,
     "Look at the GPU and the network card of {who}{where}: its part of the operation ran and did "
     "not end, that of the others did."},
    {HANG_ALL_STARTED, ANY_PART,
     "All ranks came to the operation, so look at what is between them: network cards and links, "
     "switches, NCCL's RAS output, kernel logs of the nodes."},
    {ANY_KIND, HANG_CULPRIT,
     "Look at what {who}{where} was doing instead: its stack (py-spy dump), its log, whether the "
     "process is still there, the data loader and checkpoints, and its GPU."},
    {ANY_KIND, HANG_SUSPECT,
     "Get the dump of {suspects}{where}, or see whether the process is still there."},
    {ANY_KIND, HANG_UNREAD,
     "What {unread} did is not known: get {unread_dumps} once more, whole, or see where the "
     "process "
     "stands (py-spy dump)."},
    {ANY_KIND, ANY_PART,
     "Look at the other verdicts first: who is waited for here waits elsewhere. When there is "
     "none, ranks call operations of two groups in different orders."},
};

static const struct hang_seat *first_with(const struct hang_finding *finding, enum hang_part part) {
    for (uint32_t i = 0; i < finding->seat_count; i++)
        if (finding->seats[i].part == part)
            return &finding->seats[i];
    return NULL;
}

static const char *find_sentence(const struct sentence *row, const struct hang_finding *finding) {
    enum hang_kind kind = hang_is_mismatch(finding->kind) ? HANG_MISMATCH_TYPE : finding->kind;
    enum hang_part part =
        finding->culprit_count > 0                                        ? HANG_CULPRIT
        : finding->suspect_count > 0                                      ? HANG_SUSPECT
        : finding->kind == HANG_MISSING_DUMP && finding->unread_count > 0 ? HANG_UNREAD
        : first_with(finding, HANG_VICTIM) != NULL                        ? HANG_VICTIM
        : finding->kind == HANG_MISSING_PEER && finding->unread_count > 0 ? HANG_UNREAD
                                                                          : ANY_PART;
    while ((row->kind != kind && row->kind != ANY_KIND) ||
           (row->part != part && row->part != ANY_PART))
        row++; // the last row holds for all
    return row->template;
}

// "All 8 ranks are in all_reduce 7 of default_pg and none came out".
static const char *all_started_text(const struct hang_finding *finding,
                                    const struct text_field *fields, struct arena *arena) {
    if (finding->expected_count > finding->waiting_count)
        return text_fill(arena, "{waiting} did not come out of {op} {n} of {group}, {others} did",
                         fields);
    return text_fill(arena,
                     finding->waiting_count == 1
                         ? "The one rank that is known is in {op} {n} of {group} and never came out"
                         : "All {waiting} are in {op} {n} of {group} and none came out",
                     fields);
}

static const char *others_text(const struct hang_finding *finding, struct arena *arena) {
    uint32_t others = finding->expected_count - finding->waiting_count;
    return arena_format(arena, "%" PRIu32 " other%s", others, others == 1 ? "" : "s");
}

// "the dump of rank 6", "the dumps of ranks 5 and 6".
static const char *unread_dumps_text(const struct hang_finding *finding, struct arena *arena) {
    return arena_format(arena, "the dump%s of %s", finding->unread_count == 1 ? "" : "s",
                        ranks_text(finding, HANG_UNREAD, arena));
}

static const char *no_suspect_text(const struct hang_finding *finding, struct arena *arena) {
    const char *suspects = ranks_text(finding, HANG_SUSPECT, arena);
    if (finding->by_ras)
        return arena_format(arena, "%s did not answer NCCL RAS", suspects);
    if (finding->from_lines)
        return arena_format(arena, "no line of the logs is from %s", suspects);
    return arena_format(arena, "no dump of %s %s", suspects,
                        finding->has_old_dumps ? "is of that time" : "was read");
}

// What was not read, and what could not be.
static const char *no_dump_text(const struct hang_finding *finding, struct arena *arena) {
    const char *suspects = no_suspect_text(finding, arena);
    if (finding->unread_count == 0)
        return suspects;
    const char *unread =
        arena_format(arena, "%s could not be read", unread_dumps_text(finding, arena));
    return finding->suspect_count == 0 ? unread
                                       : arena_format(arena, "%s, and %s", suspects, unread);
}

static const char *unknown_text(const struct hang_finding *finding, struct arena *arena) {
    uint32_t count = finding->unknown_count, show = count <= RANKS_SHOWN + 1 ? count : RANKS_SHOWN;
    const char *text = count == 1 ? "rank" : "ranks";
    for (uint32_t i = 0; i < show; i++)
        text = arena_format(arena, "%s%s%" PRId32, text,
                            i == 0           ? " "
                            : i + 1 == count ? " and "
                                             : ", ",
                            finding->unknown[i]);
    return show == count ? text
                         : arena_format(arena, "%s and %" PRIu32 " others", text, count - show);
}

// Who is in a group, and what became of an operation, not all that is read can say.
static const char *not_said_text(const struct hang_finding *finding) {
    bool is_silent = false;
    for (uint32_t i = 0; i < finding->seat_count; i++)
        is_silent |= finding->seats[i].open != NULL && finding->seats[i].is_silent;
    if (finding->by_ras)
        return "NCCL RAS does not say whether operations end";
    if (finding->set == NULL)
        return finding->from_lines ? "logs do not say who is in the group"
                                   : "no dump says who is in the group";
    return is_silent ? "the dumps do not say whether operations ended" : NULL;
}

void hang_tell_not_seen(struct verdict_builder *builder, const struct hang_finding *finding) {
    const char *not_said = not_said_text(finding);
    if (finding->suspect_count + finding->unread_count > 0)
        builder_partial(builder, "%s", no_dump_text(finding, builder->arena));
    else if (finding->without_dump_count > 0)
        builder_partial(builder, "no dump of %s was read",
                        count_text(finding->without_dump_count, builder->arena));
    if (finding->unknown_count > 0)
        builder_partial(builder, "what %s did there is not known",
                        unknown_text(finding, builder->arena));
    if (not_said != NULL)
        builder_partial(builder, "%s", not_said);
}

void hang_set_texts(struct verdict_builder *builder, const struct hang_finding *finding,
                    const struct hang_nodes *nodes, const char *group, const char *operation) {
    static const char *const WHAT[] = {"operations", "sizes", "data types"};
    struct arena *arena = builder->arena;
    const struct hang_seat *odd = first_with(finding, HANG_CULPRIT);
    bool mismatch = hang_is_mismatch(finding->kind), has_usual = mismatch && finding->usual != NULL;
    assert(!mismatch || odd == NULL || has_usual);
    struct text_field fields[] = {
        {"all_started", ""},
        {"who", ranks_text(finding, HANG_CULPRIT, arena)},
        {"suspects", ranks_text(finding, HANG_SUSPECT, arena)},
        {"victims", ranks_text(finding, HANG_VICTIM, arena)},
        {"op", operation},
        {"operation", hang_operation_named(hang_main_operation(finding), arena)},
        {"n", arena_format(arena, "%" PRId64, finding->sequence)},
        {"group", group},
        {"waiting", count_text(finding->waiting_count, arena)},
        {"no_dump", no_dump_text(finding, arena)},
        {"unread", ranks_text(finding, HANG_UNREAD, arena)},
        {"unread_dumps", unread_dumps_text(finding, arena)},
        {"wait", finding->waiting_count == 1 ? "waits" : "wait"},
        {"waited", waited_text(finding, arena)},
        {"others", others_text(finding, arena)},
        {"others_did", finding->expected_count > 1 ? ", which all others completed" : ""},
        {"mixed", finding->kind == HANG_MISMATCH_TYPE ? "collective" : operation},
        {"what", mismatch ? WHAT[finding->kind - HANG_MISMATCH_TYPE] : ""},
        {"odd_call",
         has_usual && odd != NULL ? hang_call_text(odd->open, finding->kind, arena) : ""},
        {"usual_ranks", count_text(finding->usual_count, arena)},
        {"usual_call", has_usual ? hang_call_text(finding->usual, finding->kind, arena) : ""},
        {"where", nodes_text(nodes, arena)},
        {NULL, NULL},
    };
    fields[0].value = all_started_text(finding, fields, arena);
    builder_texts(builder, find_sentence(HEADLINES, finding), find_sentence(REMEDIATIONS, finding),
                  fields);
}
