// SPDX-License-Identifier: Apache-2.0
// Says in words who ended first.
#include "base/sort.h"
#include "base/text/cut.h"
#include "processors/cluster/tables.h"
#include "processors/cluster/xid_text.h"
#include "processors/first_exit/words.h"

#include <inttypes.h>
#include <stdio.h>

#define PATTERN "first_exit"

// Characters of what an exception says: in the headline, of whom is blamed, of the others.
enum { WORDS_MAX = 170, CAUSE_TEXT_MAX = 400, PEER_TEXT_MAX = 160, ROOT_CAUSE_MAX = 1000 };
enum { PEERS_MAX = 16, ENTITIES_MAX = 512 };

static const char *const KINDS[EXIT_KINDS] = {
    [EXIT_HOST_OOM] = "host_oom",     [EXIT_CUDA_OOM] = "cuda_oom",
    [EXIT_CUDA_ERROR] = "cuda_error", [EXIT_EXCEPTION] = "exception",
    [EXIT_SEGFAULT] = "segfault",     [EXIT_KILLED] = "killed",
    [EXIT_CODE] = "exit_code",        [EXIT_TIME_LIMIT] = "time_limit",
    [EXIT_PREEMPTED] = "preempted",   [EXIT_NODE_LOST] = "node_lost",
};

// -- names ----------------------------------------------------------------------------------------

static const char *rank_name(const struct exit_process *process, struct arena *arena) {
    return process->rank < 0 ? NULL : arena_number(arena, process->rank);
}

static bool has_digit(struct slice text) {
    for (size_t i = 0; i < text.size; i++)
        if (text_is_digit(text.data[i]))
            return true;
    return false;
}

// "worker-3.log", "3/stderr": the end of a log's path that tells it from others of its kind, by a
// number; empty: it has none.
static struct slice numbered_end(string_id log) {
    struct slice path = log == STRING_REFUSED ? SLICE("") : intern_slice(log);
    for (int parts = 0; parts < 2 && path.size > 0; parts++) {
        const char *slash = memrchr(path.data, '/', path.size);
        size_t before = slash == NULL ? 0 : (size_t)(slash - path.data) + 1;
        if (has_digit(text_from(path, before)))
            return text_from(intern_slice(log), before);
        path.size = before == 0 ? 0 : before - 1;
    }
    return SLICE("");
}

static const char *nameless_words(const struct exit_process *process, struct arena *arena) {
    struct slice log = numbered_end(process->source);
    return log.size == 0 ? "a process"
                         : arena_format(arena, "a process (%.*s)", (int)log.size, log.data);
}

static const char *pid_words(const struct exit_process *process, struct arena *arena) {
    if (process->pid >= 0 && process->local_rank >= 0)
        return arena_format(arena, "process %" PRId64 " (local rank %" PRId32 ")", process->pid,
                            process->local_rank);
    if (process->pid >= 0)
        return arena_format(arena, "process %" PRId64, process->pid);
    if (process->local_rank < 0)
        return nameless_words(process, arena);
    return arena_format(arena,
                        process->node == STRING_NONE ? "process %" PRId32 " of its node"
                                                     : "local rank %" PRId32,
                        process->local_rank);
}

const char *exit_process_spoken(const struct exit_process *process, struct arena *arena) {
    const char *who = process->rank >= 0 ? arena_format(arena, "rank %" PRId32, process->rank)
                      : process->unit != STRING_NONE
                          ? arena_format(arena, "pod %s", intern_slice(process->unit).data)
                          : pid_words(process, arena);
    return process->node == STRING_NONE
               ? who
               : arena_format(arena, "%s on %s", who, node_spoken(process->node, arena));
}

static const char *candidate_spoken(const struct exit_list *list,
                                    const struct exit_candidate *candidate, struct arena *arena) {
    if (candidate->process != NO_PROCESS)
        return exit_process_spoken(&list->processes[candidate->process], arena);
    if (candidate->unit != STRING_NONE)
        return arena_format(arena, "pod %s", intern_slice(candidate->unit).data);
    return candidate->node == STRING_NONE
               ? "the job"
               : arena_format(arena, "node %s", node_spoken(candidate->node, arena));
}

// "all 8 ranks", "all 4 ranks on node-b and no others".
static const char *scope_spoken(const struct exit_decision *decision, struct arena *arena) {
    uint32_t count = decision->candidate_count;
    const char *all =
        count == 2 ? "both ranks" : arena_format(arena, "all %" PRIu32 " ranks", count);
    if (decision->scope == SCOPE_ALL)
        return all;
    return arena_format(arena, "%s on %s%s", all, node_spoken(decision->candidates[0].node, arena),
                        decision->scope == SCOPE_NODE_ALONE ? " and no others" : "");
}

// "rank 2 on node-b and rank 0 on node-a", "rank 0 on node-a and 3 others".
static const char *candidates_spoken(const struct exit_list *list,
                                     const struct exit_decision *decision, struct arena *arena) {
    if (decision->scope != SCOPE_ONE)
        return scope_spoken(decision, arena);
    const char *first = candidate_spoken(list, &decision->candidates[0], arena);
    if (decision->candidate_count == 1)
        return first;
    if (decision->candidate_count == 2) {
        const char *second = candidate_spoken(list, &decision->candidates[1], arena);
        return arena_format(arena, "%s and %s", first,
                            strcmp(first, second) == 0 ? "another" : second);
    }
    return arena_format(arena, "%s and %" PRIu32 " others", first, decision->candidate_count - 1);
}

// -- evidence -------------------------------------------------------------------------------------

// Where the line stands that tells of a process that nobody names, not even by a time; else "".
static const char *nameless_place(const struct exit_note *note, const struct exit_process *process,
                                  struct arena *arena) {
    if (process == NULL || process->rank >= 0 || process->pid >= 0 ||
        process->unit != STRING_NONE || note->key.source == STRING_REFUSED)
        return "";
    struct slice path = intern_slice(note->key.source);
    const char *slash = path.size == 0 ? NULL : memrchr(path.data, '/', path.size);
    return arena_format(arena, "%s:%" PRIu64, slash == NULL ? path.data : slash + 1,
                        note_position(note));
}

// "exit:node-b:2:30459:exception:1795312659000000000".
static const char *note_uid(const struct exit_note *note, const struct exit_process *process,
                            struct arena *arena) {
    const char *time = !note_is(note, NOTE_TIMELESS)
                           ? arena_format(arena, "%" PRIu64, note->time_ns)
                           : nameless_place(note, process, arena);
    if (process == NULL && note->unit != STRING_NONE)
        return arena_format(arena, "exit:%s:%s:%s", intern_slice(note->unit).data,
                            observation_name(note_kind(note)), time);
    if (process == NULL)
        return arena_format(arena, "exit:%s:%s:%s", node_in_uid(note->node, arena),
                            observation_name(note_kind(note)), time);
    if (process->rank < 0 && process->pid < 0 && process->unit != STRING_NONE)
        return arena_format(arena, "exit:%s:%s:%s", intern_slice(process->unit).data,
                            observation_name(note_kind(note)), time);
    return arena_format(arena, "exit:%s:%s:%s:%s:%s", node_in_uid(process->node, arena),
                        process->rank < 0 ? "" : arena_number(arena, process->rank),
                        process->pid < 0 ? "" : arena_number(arena, process->pid),
                        observation_name(note_kind(note)), time);
}

static bool is_told(const struct verdict *verdict, const char *uid) {
    for (uint32_t i = 0; i < verdict->evidence_count; i++)
        if (slice_equal(verdict->evidence[i].uid, slice_of(uid)))
            return true;
    return false;
}

// Copies of one line (a console and a file, two forms of a kernel log) are told once.
// 0: nobody wrote it.
static uint64_t time_of_note(const struct exit_note *note) {
    return note_is(note, NOTE_TIMELESS) ? 0 : note->time_ns;
}

// A worker of the process's data loader, not the process, is what was killed.
static bool is_of_worker(const struct exit_process *process, const struct exit_note *note) {
    for (uint32_t i = 0; process != NULL && i < process->note_count; i++)
        if (note_kind(note) == OBSERVATION_OOM_KILL && note->pid >= 0 &&
            note_kind(process->notes[i]) == OBSERVATION_WORKER_KILLED &&
            process->notes[i]->pid == note->pid)
            return true;
    return false;
}

static const char *told_words(const struct exit_process *process, const struct exit_note *note,
                              enum evidence_role role, struct arena *arena) {
    if (is_of_worker(process, note))
        return arena_format(arena,
                            "the kernel killed a worker of its data loader (process %" PRId64
                            ") because memory ran out",
                            note->pid);
    return exit_note_words(note, role == EVIDENCE_CAUSE ? CAUSE_TEXT_MAX : PEER_TEXT_MAX, arena);
}

static void tell_note(struct verdict_builder *builder, const struct exit_list *list,
                      const struct exit_candidate *of, const struct exit_note *note,
                      enum evidence_role role) {
    struct arena *arena = builder->arena;
    const struct exit_process *process =
        of->process == NO_PROCESS ? NULL : &list->processes[of->process];
    const char *uid = note_uid(note, process, arena);
    struct exit_candidate who = *of;
    if (note_kind(note) == OBSERVATION_LAUNCHER_TOLD_TO_STOP)
        who.node = note->node; // also where all of the job's were
    if (!is_told(&builder->verdict, uid))
        builder_evidence(builder, role, time_of_note(note), uid, "%s: %s",
                         candidate_spoken(list, &who, arena),
                         told_words(process, note, role, arena));
}

static bool is_blamed(const struct exit_list *list, const struct exit_decision *decision,
                      uint32_t process) {
    for (uint32_t i = 0; i < decision->candidate_count; i++) {
        const struct exit_candidate *candidate = &decision->candidates[i];
        if (candidate->process == process ||
            (candidate->process == NO_PROCESS && candidate->node != STRING_NONE &&
             candidate->node == list->processes[process].node))
            return true;
    }
    return false;
}

static bool is_same(const struct exit_note *a, const struct exit_note *b) {
    bool same_words = a->text_size > 0 && slice_equal(note_text(a), note_text(b));
    return same_words || note_kind(a) == note_kind(b);
}

// What is told of whom is blamed: its own end first, then what else is told of it. Copies of one
// line are told once.
struct telling {
    const struct exit_process *process; // NULL: a node, a pod or the job
    const struct exit_note *notes[1 + ALSO_MAX + NOTES_OF_PROCESS];
    const char *uids[1 + ALSO_MAX + NOTES_OF_PROCESS];
    uint32_t count;
};

static void telling_add(struct telling *telling, const struct exit_note *note,
                        struct arena *arena) {
    const char *uid = note_uid(note, telling->process, arena);
    for (uint32_t i = 0; i < telling->count; i++)
        if (strcmp(telling->uids[i], uid) == 0)
            return;
    telling->uids[telling->count] = uid;
    telling->notes[telling->count++] = note;
}

static struct telling telling_of(const struct exit_list *list,
                                 const struct exit_candidate *candidate, struct arena *arena) {
    struct telling telling = {.count = 0};
    const struct exit_process *process = NULL;
    if (candidate->process != NO_PROCESS)
        process = telling.process = &list->processes[candidate->process];
    if (candidate->reason != NULL)
        telling_add(&telling, candidate->reason, arena);
    for (uint32_t i = 0; i < candidate->also_count; i++)
        telling_add(&telling, candidate->also[i], arena);
    for (uint32_t i = 0; process != NULL && i < process->note_count; i++) {
        const struct exit_note *note = process->notes[i];
        bool is_reason = candidate->reason != NULL && is_same(note, candidate->reason);
        bool is_news = !is_reason && !note_is(note, NOTE_VICTIM) &&
                       note_kind(note) != OBSERVATION_LAUNCHER_SUMMARY;
        for (uint32_t j = 0; j < i && is_news; j++)
            is_news = !is_same(note, process->notes[j]);
        if (is_news)
            telling_add(&telling, note, arena);
    }
    return telling;
}

// Whether another of them says the same, and more: or it says when, or was told before.
static bool is_said_by_another(const struct telling *telling, uint32_t at) {
    const struct exit_note *note = telling->notes[at];
    for (uint32_t i = 0; i < telling->count; i++) {
        const struct exit_note *other = telling->notes[i];
        if (i == at || !exit_note_covers(other, note))
            continue;
        bool is_timed = !note_is(note, NOTE_TIMELESS), other_is = !note_is(other, NOTE_TIMELESS);
        if (!exit_note_covers(note, other) || (other_is == is_timed ? i < at : other_is))
            return true;
    }
    return false;
}

// `alike`: what the others raised, too, which is told once; or NULL.
static void tell_candidate(struct verdict_builder *builder, const struct exit_list *list,
                           const struct exit_candidate *candidate, const struct exit_note *alike) {
    struct telling telling = telling_of(list, candidate, builder->arena);
    for (uint32_t i = 0; i < telling.count; i++)
        tell_note(builder, list, candidate, telling.notes[i], EVIDENCE_CAUSE);
    for (uint32_t i = 0; i < telling.count; i++)
        if (is_said_by_another(&telling, i) ||
            (alike != NULL && exit_notes_alike(alike, telling.notes[i])))
            builder_evidence_repeats(builder, telling.uids[i]);
}

struct peer {
    const struct exit_note *note;
    uint32_t process;
};

static int compare_peers(const void *left, const void *right) {
    const struct peer *a = left, *b = right;
    return COMPARE_KEYS(COMPARE(a->note->time_ns, b->note->time_ns),
                        COMPARE(a->process, b->process));
}

// What is told first of the end of a peer; NULL: nothing with a time.
static const struct exit_note *end_of_peer(const struct exit_process *process) {
    const struct exit_note *first = NULL;
    for (uint32_t i = 0; i < process->note_count; i++) {
        const struct exit_note *note = process->notes[i];
        if (!note_is(note, NOTE_TIMELESS) && (first == NULL || note->time_ns < first->time_ns))
            first = note;
    }
    return first;
}

static void tell_peers(struct verdict_builder *builder, const struct exit_list *list,
                       const struct exit_decision *decision) {
    uint32_t count = 0;
    struct peer *peers = arena_take(builder->arena, (list->process_count + 1) * sizeof *peers);
    for (uint32_t i = 0; i < list->process_count; i++) {
        const struct exit_process *process = &list->processes[i];
        if (process->round != decision->round || is_blamed(list, decision, i))
            continue;
        if (process->rank >= 0 && process->note_count > 0)
            builder_entity(builder, "rank", ROLE_VICTIM, rank_name(process, builder->arena));
        const struct exit_note *note = end_of_peer(process);
        if (note != NULL)
            peers[count++] = (struct peer){note, i};
    }
    sort_stable(peers, count, sizeof *peers, builder->arena, compare_peers);
    for (uint32_t i = 0; i < count && i < PEERS_MAX; i++) {
        const struct exit_candidate peer = {.process = peers[i].process};
        tell_note(builder, list, &peer, peers[i].note, EVIDENCE_EFFECT);
    }
}

// Where no peer's end has a time, what is told of them shows that somebody was lost. Returns when
// that was read first.
static uint64_t tell_timeless(struct verdict_builder *builder, const struct exit_list *list,
                              const struct exit_decision *decision) {
    uint64_t first_ns = UINT64_MAX;
    for (uint32_t i = 0; i < list->process_count; i++) {
        const struct exit_process *process = &list->processes[i];
        if (process->round != decision->round || process->note_count == 0 ||
            is_blamed(list, decision, i))
            continue;
        const struct exit_candidate peer = {.process = i};
        tell_note(builder, list, &peer, process->notes[0], EVIDENCE_EFFECT);
        if (process->notes[0]->time_ns < first_ns)
            first_ns = process->notes[0]->time_ns;
    }
    return first_ns == UINT64_MAX ? 0 : first_ns;
}

// Whether a piece of evidence says the same of the process already.
static bool is_told_of(const struct verdict_builder *builder, const struct exit_process *process,
                       const struct exit_note *note) {
    for (uint32_t i = 0; i < process->note_count; i++)
        if (exit_note_covers(process->notes[i], note) &&
            is_told(&builder->verdict, note_uid(process->notes[i], process, builder->arena)))
            return true;
    return false;
}

// Whom launchers call the root cause, where that is not who is blamed here.
static void tell_launchers_word(struct verdict_builder *builder, const struct exit_list *list,
                                const struct exit_decision *decision) {
    const char *named = "";
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->process_count && count < PEERS_MAX; i++) {
        const struct exit_process *process = &list->processes[i];
        for (uint32_t j = 0; j < process->note_count && process->round == decision->round; j++) {
            const struct exit_note *note = process->notes[j];
            if (note_kind(note) != OBSERVATION_LAUNCHER_SUMMARY ||
                !note_is(note, NOTE_SUMMARY_FIRST) || is_blamed(list, decision, i))
                continue;
            const char *who = exit_process_spoken(process, builder->arena);
            const char *words = exit_note_words(note, PEER_TEXT_MAX, builder->arena);
            bool is_news = !is_told_of(builder, process, note);
            named = arena_format(builder->arena, "%s%s%s", named, count++ > 0 ? ", " : "", who);
            builder_evidence(builder, EVIDENCE_CONTEXT, time_of_note(note),
                             arena_format(builder->arena, "%s:root_cause",
                                          note_uid(note, process, builder->arena)),
                             "the launcher of %s calls %s the root cause%s%s",
                             node_spoken(process->node, builder->arena), who, is_news ? ": " : "",
                             is_news ? words : "");
            break;
        }
    }
    builder_attribute(builder, "launcher.root_cause",
                      slice_of(text_shown(slice_of(named), ROOT_CAUSE_MAX, builder->arena)));
}

// Whose time this is that a note has.
static enum time_of whose_time(const struct exit_list *list, uint64_t time_ns) {
    for (uint32_t i = 0; i < list->note_count; i++)
        if (list->notes[i]->time_ns == time_ns && note_is(list->notes[i], NOTE_TIMELESS))
            return note_time_of(list->notes[i]);
    return TIME_OF_EVENT;
}

// The begin where a piece of evidence has no time. What has one tells of it, but for a line before
// that is earlier: with that, and where nothing has a time, the verdict says whose the time is.
static uint64_t begin_without_time(struct verdict_builder *builder, const struct exit_list *list,
                                   uint64_t time_ns) {
    uint64_t dated_ns = 0;
    for (uint32_t i = 0; i < builder->verdict.evidence_count; i++) {
        const struct evidence *evidence = &builder->verdict.evidence[i];
        if (evidence->has_time && evidence->role != EVIDENCE_CONTEXT &&
            (dated_ns == 0 || evidence->time_ns < dated_ns))
            dated_ns = evidence->time_ns;
    }
    enum time_of time_of = whose_time(list, time_ns);
    if (dated_ns != 0 && (time_of != TIME_OF_LINE_BEFORE || time_ns >= dated_ns))
        return dated_ns;
    if (time_of != TIME_OF_EVENT)
        builder_attribute(builder, "culprit.time_of", slice_of(time_of_name(time_of)));
    return time_ns;
}

static bool has_all_times(const struct verdict *verdict) {
    for (uint32_t i = 0; i < verdict->evidence_count; i++)
        if (!verdict->evidence[i].has_time && verdict->evidence[i].role != EVIDENCE_CONTEXT)
            return false;
    return verdict->evidence_count > 0;
}

// -- the verdict ----------------------------------------------------------------------------------

static void name_once(struct verdict_builder *builder, const char *kind, enum entity_role role,
                      const char *name) {
    const struct verdict *verdict = &builder->verdict;
    for (uint32_t i = 0; i < verdict->entity_count && name != NULL; i++)
        if (strcmp(verdict->entities[i].kind, kind) == 0 &&
            slice_equal(verdict->entities[i].name, slice_of(name)))
            return;
    builder_entity(builder, kind, role, name);
}

static void name_blamed(struct verdict_builder *builder, const struct exit_list *list,
                        const struct exit_candidate *candidate, enum entity_role role) {
    if (candidate->process == NO_PROCESS) {
        name_once(builder, "pod", role, string_or_null(candidate->unit));
        name_once(builder, "node", candidate->unit == STRING_NONE ? role : ROLE_SUSPECT,
                  string_or_null(candidate->node));
        return;
    }
    const struct exit_process *process = &list->processes[candidate->process];
    const char *rank = rank_name(process, builder->arena);
    bool by_unit = rank == NULL && process->unit != STRING_NONE;
    name_once(builder, "rank", role, rank);
    name_once(builder, "pod", rank == NULL ? role : ROLE_SUSPECT, string_or_null(process->unit));
    name_once(builder, "node", rank == NULL && !by_unit ? role : ROLE_SUSPECT,
              string_or_null(process->node));
}

static bool is_certain(const struct exit_decision *decision) {
    return !decision->tied && !decision->is_alone && !decision->is_doubtful;
}

// It need not be known who of all was the first.
static bool is_sure_of_all(const struct exit_decision *decision) {
    return decision->scope != SCOPE_ONE && !decision->is_alone;
}

static int64_t confidence_of(const struct first_exit_config *config,
                             const struct exit_decision *decision) {
    const int64_t by_ground[] = {[GROUND_SILENCE] = config->confidence_silence,
                                 [GROUND_CODE] = config->confidence_code,
                                 [GROUND_KERNEL] = config->confidence_kernel,
                                 [GROUND_WORDS] = config->confidence_written};
    bool is_sure = is_certain(decision) || is_sure_of_all(decision);
    return by_ground[decision->ground] - (is_sure ? 0 : config->tie_penalty);
}

// All pods or nodes of a job that were told to stop at once: none of them is to blame.
static bool is_of_all(const struct exit_list *list, const struct exit_decision *decision) {
    bool is_stop = decision->kind == EXIT_PREEMPTED || decision->kind == EXIT_TIME_LIMIT;
    if (!is_stop)
        return false;
    for (uint32_t i = 0; i < list->process_count; i++)
        if (list->processes[i].round == decision->round && !is_blamed(list, decision, i))
            return false;
    return true;
}

static const char *headline_of(const struct exit_decision *decision) {
    bool is_job = decision->candidates[0].process == NO_PROCESS;
    if (decision->scope != SCOPE_ONE)
        return decision->is_alone ? "{Who} {what}; nothing says that they ended" : "{Who} {what}";
    if (decision->is_odd)
        return "{Who} called another collective than the others: it {what}";
    if (exit_is_missing(decision) && !decision->tied)
        return "{Who} {what}, and the others waited for it in vain";
    return decision->is_alone ? "{Who} {what}; nothing says that it ended"
           : decision->tied   ? "{Who} ended first, at about one moment: the first {what}"
           : is_job           ? "{Who} {what}, and the ranks with it"
                              : "{Who} ended first: it {what}";
}

// With at most `max` characters of what an exception says.
static void fill_texts(struct verdict_builder *builder, const struct exit_list *list,
                       const struct exit_decision *decision, size_t max) {
    struct arena *arena = builder->arena;
    const struct text_field fields[] = {
        {"who", candidates_spoken(list, decision, arena)},
        {"what", exit_candidate_words(decision, &decision->candidates[0], max, arena)},
        {"node", node_spoken(decision->candidates[0].node, arena)},
        {NULL, NULL}};
    builder_texts(builder, headline_of(decision), exit_advice(decision, arena).words, fields);
}

// Where the headline is too long, it is the exception that gives way, not what stands around it.
static void set_texts(struct verdict_builder *builder, const struct exit_list *list,
                      const struct exit_decision *decision) {
    size_t max = WORDS_MAX;
    fill_texts(builder, list, decision, max);
    while (builder->verdict.headline.size > VERDICT_HEADLINE_MAX && max > TEXT_SHORTEST) {
        size_t over = builder->verdict.headline.size - VERDICT_HEADLINE_MAX;
        max = max > over + TEXT_SHORTEST ? max - over : TEXT_SHORTEST;
        fill_texts(builder, list, decision, max);
    }
}

static enum severity severity_of(const struct exit_decision *decision) {
    bool is_planned = decision->kind == EXIT_TIME_LIMIT || decision->kind == EXIT_PREEMPTED;
    return is_planned || decision->is_alone ? SEVERITY_WARNING : SEVERITY_ERROR;
}

static void set_attributes(struct verdict_builder *builder, const struct exit_list *list,
                           const struct exit_decision *decision) {
    const struct exit_candidate *first = &decision->candidates[0];
    const struct exit_note *note = first->reason;
    if (first->process != NO_PROCESS && !decision->tied) {
        const struct exit_process *process = &list->processes[first->process];
        builder_attribute(builder, "culprit.rank",
                          process->rank < 0 ? SLICE("")
                                            : slice_of(rank_name(process, builder->arena)));
        if (process->pid >= 0)
            builder_attribute_format(builder, "process.pid", "%" PRId64, process->pid);
    }
    if ((!decision->tied || decision->scope == SCOPE_NODE_ALONE) && first->node != STRING_NONE)
        builder_attribute(builder, "k8s.node.name", intern_slice(first->node));
    if (note == NULL || (decision->tied && decision->scope == SCOPE_ONE))
        return;
    builder_attribute(builder, "exception.type", note_type(note));
    if (note_has_words(note))
        builder_attribute(builder, "exception.message", note_text(note));
}

// -- what was not seen ---------------------------------------------------------------------------

// That the node was lost, or the whole job stopped, tells of all ranks there.
static bool is_told_by(const struct exit_decision *decision, const struct exit_process *process,
                       uint32_t number) {
    for (uint32_t i = 0; i < decision->candidate_count; i++) {
        const struct exit_candidate *candidate = &decision->candidates[i];
        if (candidate->process == number)
            return true;
        if (candidate->process == NO_PROCESS &&
            (candidate->unit != STRING_NONE   ? candidate->unit == process->unit
             : candidate->node != STRING_NONE ? candidate->node == process->node
                                              : true))
            return true;
    }
    return false;
}

// Ranks of the job that are known, and nothing is told of how they went: any of them may have been
// before the one that is named. Of jobs that nobody tells apart that says nothing.
static void tell_silent(struct verdict_builder *builder, const struct exit_list *list,
                        const struct exit_decision *decision) {
    enum { SILENT_SHOWN = 4 };
    const char *text = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->process_count; i++) {
        const struct exit_process *process = &list->processes[i];
        if (process->round != decision->round || !process->placed || process->note_count > 0 ||
            process->rank < 0 || is_told_by(decision, process, i))
            continue;
        if (count++ < SILENT_SHOWN)
            text = text == NULL
                       ? arena_format(builder->arena, "rank %" PRId32, process->rank)
                       : arena_format(builder->arena, "%s, rank %" PRId32, text, process->rank);
    }
    if (count > SILENT_SHOWN)
        text = arena_format(builder->arena, "%s and %" PRIu32 " more", text, count - SILENT_SHOWN);
    if (count > 0)
        builder_partial(builder, "nothing says how it went with %s", text);
}

static void tell_not_seen(struct verdict_builder *builder, const struct exit_list *list,
                          const struct exit_decision *decision, bool is_nobodys) {
    if (decision->is_alone)
        builder_partial(builder, "nothing says that a rank ended");
    else if (decision->ground == GROUND_SILENCE)
        builder_partial(builder, "nothing says how it ended: it is known by its silence");
    if (decision->is_doubtful)
        builder_partial(builder, "no log says why they left");
    if (is_nobodys)
        builder_partial(builder, "nothing says whose process it was");
    if (!list->rounds[decision->round].is_mixed)
        tell_silent(builder, list, decision);
}

// -- the verdict ---------------------------------------------------------------------------------

static void tell_blamed(struct verdict_builder *builder, const struct exit_list *list,
                        const struct exit_decision *decision, enum entity_role role) {
    if (decision->scope == SCOPE_NODE_ALONE && !decision->is_alone)
        name_once(builder, "node", ROLE_CULPRIT, string_or_null(decision->candidates[0].node));
    const struct exit_note *first = decision->candidates[0].reason;
    for (uint32_t i = 0; i < decision->candidate_count; i++) {
        name_blamed(builder, list, &decision->candidates[i], role);
        if (i < PEERS_MAX)
            tell_candidate(builder, list, &decision->candidates[i],
                           decision->scope != SCOPE_ONE && i > 0 ? first : NULL);
    }
}

void exit_verdict_build(const struct first_exit_config *config, const struct exit_list *list,
                        const struct exit_decision *decision, struct verdict_builder *builder) {
    assert(decision->found && decision->candidate_count > 0);
    const struct exit_round *round = &list->rounds[decision->round];
    builder_begin(builder, builder->arena, PATTERN, KINDS[decision->kind]);
    builder->entity_max = ENTITIES_MAX;
    builder_rate(builder, severity_of(decision), confidence_of(config, decision),
                 exit_advice(decision, builder->arena).action);
    builder->verdict.job = round->job;
    set_texts(builder, list, decision);
    bool is_place = decision->candidates[0].process == NO_PROCESS;
    bool is_sure =
        (is_place ? !decision->is_alone : is_certain(decision)) && !is_of_all(list, decision);
    tell_blamed(builder, list, decision, is_sure ? ROLE_CULPRIT : ROLE_SUSPECT);
    tell_not_seen(builder, list, decision, !is_place && builder->verdict.entity_count == 0);
    tell_peers(builder, list, decision);
    uint64_t time_ns = decision->time_ns;
    if (builder->verdict.evidence_count == 0) {
        uint64_t read_ns = tell_timeless(builder, list, decision);
        time_ns = time_ns == 0 ? read_ns : time_ns;
    }
    tell_launchers_word(builder, list, decision);
    set_attributes(builder, list, decision);
    restart_tell(builder, exit_restart(decision));
    if (is_certain(decision))
        exit_tell_xids(config, list, &decision->candidates[0], builder);
    uint64_t begin_ns =
        has_all_times(&builder->verdict) ? 0 : begin_without_time(builder, list, time_ns);
    builder_finish(
        builder,
        (struct slice[]){round->job == STRING_NONE ? SLICE("") : intern_slice(round->job),
                         slice_of(arena_number(builder->arena, round->ordinal))},
        2);
    struct verdict *verdict = &builder->verdict;
    if (begin_ns != 0 || verdict->start_ns == 0)
        verdict->start_ns = begin_ns != 0 ? begin_ns : time_ns;
    if (verdict->end_ns < verdict->start_ns)
        verdict->end_ns = verdict->start_ns;
    // That a node does not answer is seen some time after it went.
    const struct exit_candidate *first = &decision->candidates[0];
    if (first->reason != NULL && note_kind(first->reason) == OBSERVATION_NODE_CONDITION)
        builder->verdict.after_ns = first->low_ns;
}
