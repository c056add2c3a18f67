// SPDX-License-Identifier: Apache-2.0
// Joins what is told of one process.
#include "processors/first_exit/ends.h"

#include "base/sort.h"
#include "base/table/keyed_rows.h"
#include "processors/cluster/compare.h"

enum { BUCKETS = 4096, SECOND_NS = 1000000000 };

enum chain { BY_RANK, BY_PID, BY_LOCAL, BY_UNIT, CHAINS };

struct gathering {
    struct exit_list *list;
    uint32_t heads[CHAINS][BUCKETS];
    uint32_t capacity;
};

static uint32_t *next_of(struct exit_process *process, enum chain chain) {
    uint32_t *const links[CHAINS] = {&process->next_by_rank, &process->next_by_pid,
                                     &process->next_by_local, &process->next_by_unit};
    return links[chain];
}

static uint32_t bucket_of(enum chain chain, string_id name, int64_t number) {
    uint64_t hash = ((uint64_t)name * 0x9e3779b97f4a7c15u) ^ ((uint64_t)number + chain);
    hash *= 0xff51afd7ed558ccdu;
    return (uint32_t)(hash >> 40) % BUCKETS;
}

static void link_process(struct gathering *gathering, uint32_t at, enum chain chain, string_id name,
                         int64_t number) {
    uint32_t *head = &gathering->heads[chain][bucket_of(chain, name, number)];
    *next_of(&gathering->list->processes[at], chain) = *head;
    *head = at;
}

// -- processes ------------------------------------------------------------------------------------

struct identity {
    string_id node, unit, source;
    int64_t pid;
    int32_t rank, local_rank;
};

// What was not known of it yet.
static void learn(struct gathering *gathering, uint32_t at, const struct identity *said) {
    struct exit_process *process = &gathering->list->processes[at];
    if (process->node == STRING_NONE)
        process->node = said->node;
    if (process->rank < 0 && said->rank >= 0) {
        process->rank = said->rank;
        link_process(gathering, at, BY_RANK, STRING_NONE, said->rank);
    }
    if (process->pid < 0 && said->pid >= 0) {
        process->pid = said->pid;
        link_process(gathering, at, BY_PID, STRING_NONE, said->pid);
    }
    if (process->local_rank < 0 && said->local_rank >= 0 && process->node != STRING_NONE) {
        process->local_rank = said->local_rank;
        link_process(gathering, at, BY_LOCAL, process->node, said->local_rank);
    }
    if (process->unit == STRING_NONE && said->unit != STRING_NONE) {
        process->unit = said->unit;
        link_process(gathering, at, BY_UNIT, said->unit, 0);
    }
}

static uint32_t add_process(struct gathering *gathering, const struct identity *said) {
    struct exit_list *list = gathering->list;
    assert(list->process_count < gathering->capacity);
    uint32_t at = list->process_count++;
    list->processes[at] = (struct exit_process){
        .source = said->source, .pid = -1, .rank = RANK_NONE, .local_rank = -1};
    learn(gathering, at, said);
    return at;
}

static bool agrees(string_id known, string_id said) {
    return known == STRING_NONE || said == STRING_NONE || known == said;
}

static bool agrees_number(int64_t known, int64_t said) {
    return known < 0 || said < 0 || known == said;
}

// The next process at or behind `at` of its chain that can be the one that is said.
static uint32_t next_match(const struct gathering *gathering, enum chain chain, uint32_t at,
                           const struct identity *said) {
    for (; at != NO_PROCESS; at = *next_of(&gathering->list->processes[at], chain)) {
        const struct exit_process *process = &gathering->list->processes[at];
        bool same = chain == BY_RANK  ? process->rank == said->rank
                    : chain == BY_PID ? process->pid == said->pid
                    : chain == BY_LOCAL
                        ? process->local_rank == said->local_rank && process->node == said->node
                        : process->unit == said->unit;
        if (same && agrees(process->node, said->node) && agrees_number(process->rank, said->rank) &&
            agrees_number(process->pid, said->pid))
            return at;
    }
    return NO_PROCESS;
}

static uint32_t first_match(const struct gathering *gathering, enum chain chain, string_id name,
                            int64_t number, const struct identity *said) {
    return next_match(gathering, chain, gathering->heads[chain][bucket_of(chain, name, number)],
                      said);
}

// -- which of several starts ----------------------------------------------------------------------

static bool is_launchers(enum observation_kind kind) {
    return kind == OBSERVATION_LAUNCHER_FAILED || kind == OBSERVATION_LAUNCHER_SIGNAL ||
           kind == OBSERVATION_LAUNCHER_SUMMARY;
}

// The launcher saw the process end by the signal that the line tells of.
static bool saw_signal(const struct exit_note *by_launcher, const struct exit_note *note) {
    return note->signal > 0 && by_launcher->signal == note->signal;
}

static bool same_words(const struct exit_note *a, const struct exit_note *b) {
    return a->text_size > 0 && slice_equal(note_text(a), note_text(b));
}

static uint64_t away(uint64_t a, uint64_t b) {
    return a > b ? a - b : b - a;
}

// How badly the note goes with the process: lower is better.
static uint64_t distance(const struct exit_process *process, const struct exit_note *note) {
    const uint64_t far = UINT64_MAX / 4;
    uint64_t position = note_position(note), best = 3 * far;
    if (!note_is(note, NOTE_TIMELESS)) {
        if (process->start_ns != 0)
            return process->start_ns <= note->time_ns + note->slack_ns
                       ? note->time_ns + note->slack_ns - process->start_ns
                       : far + (process->start_ns - note->time_ns);
        for (uint32_t i = 0; i < process->note_count; i++)
            if (!note_is(process->notes[i], NOTE_TIMELESS) &&
                away(process->notes[i]->time_ns, note->time_ns) < best)
                best = away(process->notes[i]->time_ns, note->time_ns);
        return best;
    }
    for (uint32_t i = 0; i < process->note_count; i++) {
        const struct exit_note *other = process->notes[i];
        uint64_t at = note_position(other), here = 3 * far;
        if (other->key.source == note->key.source && is_launchers(note_kind(other)))
            here = at > position ? at - position : far + (position - at);
        else if (same_words(other, note) ||
                 (is_launchers(note_kind(other)) && saw_signal(other, note)))
            here = far / 2;
        else if (is_launchers(note_kind(other)))
            here = 2 * far; // it ended, at least
        best = here < best ? here : best;
    }
    return best;
}

// Of equal ones the one that began last.
static bool is_nearer(const struct exit_process *process, uint64_t here,
                      const struct exit_process *best, uint64_t nearest) {
    return here != nearest ? here < nearest : process->start_ns > best->start_ns;
}

static uint32_t nearest_match(const struct gathering *gathering, enum chain chain, string_id name,
                              int64_t number, const struct identity *said,
                              const struct exit_note *note) {
    const struct exit_process *processes = gathering->list->processes;
    uint32_t at = first_match(gathering, chain, name, number, said), best = at;
    uint64_t nearest = at == NO_PROCESS ? 0 : distance(&processes[at], note);
    while (at != NO_PROCESS) {
        uint64_t here = distance(&processes[at], note);
        if (is_nearer(&processes[at], here, &processes[best], nearest)) {
            nearest = here;
            best = at;
        }
        at = next_match(gathering, chain, *next_of(&gathering->list->processes[at], chain), said);
    }
    return best;
}

// -- notes ----------------------------------------------------------------------------------------

// The pid in these is not that of the process that wrote the line, or not of one of the job.
static bool has_own_pid(const struct exit_note *note) {
    switch (note_kind(note)) {
    case OBSERVATION_WORKER_KILLED:
    case OBSERVATION_LAUNCHER_TOLD_TO_STOP:
        return false;
    case OBSERVATION_EXCEPTION:
        return note->rank >= 0 || note->local_rank >= 0;
    default:
        return note->pid >= 0;
    }
}

static bool is_of_kernel(enum observation_kind kind) {
    return kind == OBSERVATION_OOM_KILL || kind == OBSERVATION_TRAP || kind == OBSERVATION_SEGFAULT;
}

static struct identity identity_of(const struct exit_note *note) {
    struct identity said = {.node = note->node,
                            .unit = note->unit,
                            .pid = has_own_pid(note) ? note->pid : -1,
                            .rank = note->rank,
                            .local_rank = note->local_rank};
    if (note_kind(note) == OBSERVATION_SLURM_TASK_EXIT)
        said.rank = note->task;
    return said;
}

// Lines of the node or the job, not of a process of it.
static bool is_of_nobody(const struct exit_note *note) {
    switch (note_kind(note)) {
    case OBSERVATION_LAUNCHER_TOLD_TO_STOP:
    case OBSERVATION_SLURM_CANCELLED:
    case OBSERVATION_SLURM_OOM:
    case OBSERVATION_SLURM_NODE_FAILURE:
        return true;
    case OBSERVATION_STORE_LOST:
        return note->rank < 0 && note->local_rank < 0;
    case OBSERVATION_EXCEPTION: // of an agent
        return note->rank < 0 && note->local_rank < 0 && note_is(note, NOTE_VICTIM);
    default:
        return false;
    }
}

// When each kind is looked at: first what says who is who.
static int turn_of(const struct exit_note *note) {
    switch (note_kind(note)) {
    case OBSERVATION_LAUNCHER_SUMMARY:
        return 0;
    case OBSERVATION_LAUNCHER_FAILED:
        return 1;
    case OBSERVATION_LAUNCHER_SIGNAL:
        return 2;
    default:
        return note_is(note, NOTE_TIMELESS) ? 4 : 3;
    }
}

static uint32_t find_process(const struct gathering *gathering, const struct exit_note *note,
                             const struct identity *said) {
    uint32_t at = NO_PROCESS;
    if (said->pid >= 0)
        at = nearest_match(gathering, BY_PID, STRING_NONE, said->pid, said, note);
    if (at == NO_PROCESS && said->rank >= 0)
        at = nearest_match(gathering, BY_RANK, STRING_NONE, said->rank, said, note);
    if (at == NO_PROCESS && said->local_rank >= 0 && said->node != STRING_NONE)
        at = nearest_match(gathering, BY_LOCAL, said->node, said->local_rank, said, note);
    if (at == NO_PROCESS && said->unit != STRING_NONE)
        at = nearest_match(gathering, BY_UNIT, said->unit, 0, said, note);
    return at;
}

// Nobody is named: another log may have the same words with a name.
static bool is_told_elsewhere(const struct exit_list *list, const struct exit_note *note) {
    for (uint32_t i = 0; i < list->process_count; i++)
        for (uint32_t j = 0; j < list->processes[i].note_count; j++)
            if (same_words(list->processes[i].notes[j], note))
                return true;
    return false;
}

static uint32_t find_anonymous(const struct exit_list *list, const struct exit_note *note) {
    for (uint32_t i = 0; i < list->process_count; i++)
        if (list->processes[i].source == note->key.source)
            return i;
    return NO_PROCESS;
}

static void attach(struct gathering *gathering, uint32_t at, const struct identity *said,
                   const struct exit_note *note) {
    struct exit_process *process = &gathering->list->processes[at];
    learn(gathering, at, said);
    if (process->job == STRING_NONE)
        process->job = note->job;
    if (process->note_count < NOTES_OF_PROCESS)
        process->notes[process->note_count++] = note;
}

static void keep_other(struct exit_list *list, const struct exit_note *note) {
    list->others[list->other_count++] = note;
}

static void place_note(struct gathering *gathering, const struct exit_note *note) {
    struct exit_list *list = gathering->list;
    struct identity said = identity_of(note);
    uint32_t at = find_process(gathering, note, &said);
    bool is_named = said.pid >= 0 || said.rank >= 0 || said.unit != STRING_NONE ||
                    (said.local_rank >= 0 && said.node != STRING_NONE);
    if (at == NO_PROCESS && is_of_kernel(note_kind(note)) && said.pid >= 0 && said.rank < 0 &&
        said.local_rank < 0) {
        keep_other(list, note); // of no process of a job, as far as is known
        return;
    }
    if (at == NO_PROCESS && !is_named) {
        if (note_is(note, NOTE_VICTIM) || is_told_elsewhere(list, note))
            return;
        said.source = note->key.source;
        at = find_anonymous(list, note);
    }
    if (at == NO_PROCESS)
        at = add_process(gathering, &said);
    attach(gathering, at, &said, note);
}

// -- order ----------------------------------------------------------------------------------------

static int compare_notes(const void *left, const void *right) {
    const struct exit_note *a = *(const struct exit_note *const *)left;
    const struct exit_note *b = *(const struct exit_note *const *)right;
    int order = COMPARE_KEYS(COMPARE(turn_of(a), turn_of(b)), COMPARE(a->time_ns, b->time_ns));
    if (order == 0)
        order = compare_strings(a->node, b->node);
    if (order == 0)
        order = COMPARE_KEYS(COMPARE(a->rank, b->rank), COMPARE(a->local_rank, b->local_rank),
                             COMPARE(a->pid, b->pid), COMPARE(a->key.kind, b->key.kind));
    if (order == 0)
        order = COMPARE_KEYS(slice_compare(note_type(a), note_type(b)),
                             slice_compare(note_text(a), note_text(b)));
    return order != 0 ? order : COMPARE(note_position(a), note_position(b));
}

static int compare_places(const void *left, const void *right) {
    const struct exit_place *a = *(const struct exit_place *const *)left;
    const struct exit_place *b = *(const struct exit_place *const *)right;
    int order = COMPARE_KEYS(COMPARE(a->time_ns, b->time_ns), COMPARE(a->key.rank, b->key.rank));
    if (order == 0)
        order = compare_strings(a->key.node, b->key.node);
    return order != 0 ? order : COMPARE(place_pid(a), place_pid(b));
}

// Hosts of telemetry stand there as they were told.
static string_id known_name(const struct node_names *names, string_id name) {
    string_id known =
        names == NULL || name == STRING_NONE ? STRING_NONE : node_names_find(names, name);
    return known == STRING_NONE ? name : known;
}

// A rank map and telemetry may both tell of a process.
static void add_places(struct gathering *gathering, const struct exit_notes *from,
                       const struct node_names *names, uint64_t now_ns, struct arena *arena) {
    uint32_t count = 0;
    const struct exit_place *place,
        **places = arena_take(arena, (keyed_rows_count(&from->places) + 1) * sizeof *places);
    for (uint32_t at = 0; (place = keyed_rows_next(&from->places, &at)) != NULL;)
        if (place->time_ns <= now_ns)
            places[count++] = place;
    sort_stable(places, count, sizeof *places, arena, compare_places);
    for (uint32_t i = 0; i < count; i++) {
        const struct identity said = {.node = known_name(names, places[i]->key.node),
                                      .unit = places[i]->unit,
                                      .pid = place_pid(places[i]),
                                      .rank = places[i]->key.rank,
                                      .local_rank = places[i]->local_rank};
        uint32_t at = first_match(gathering, BY_RANK, STRING_NONE, said.rank, &said);
        if (at == NO_PROCESS) {
            at = add_process(gathering, &said);
            gathering->list->processes[at].start_ns = places[i]->time_ns;
        } else {
            learn(gathering, at, &said);
        }
        struct exit_process *process = &gathering->list->processes[at];
        process->job = process->job == STRING_NONE ? places[i]->job : process->job;
        process->placed = true;
    }
}

static void sort_notes(struct exit_list *list, const struct exit_notes *from, uint64_t now_ns,
                       struct arena *arena) {
    const struct exit_note *note;
    list->notes = arena_take(arena, (keyed_rows_count(&from->notes) + 1) * sizeof *list->notes);
    for (uint32_t at = 0; (note = keyed_rows_next(&from->notes, &at)) != NULL;)
        if (note_is(note, NOTE_TIMELESS) || note->time_ns <= now_ns)
            list->notes[list->note_count++] = note;
    sort_stable(list->notes, list->note_count, sizeof *list->notes, arena, compare_notes);
}

// -- rounds ---------------------------------------------------------------------------------------

static uint64_t begin_of(const struct exit_process *process) {
    uint64_t begin = process->start_ns;
    for (uint32_t i = 0; i < process->note_count && process->start_ns == 0; i++)
        if (!note_is(process->notes[i], NOTE_TIMELESS) &&
            (begin == 0 || process->notes[i]->time_ns < begin))
            begin = process->notes[i]->time_ns;
    return begin;
}

static int compare_begins(const void *left, const void *right) {
    const struct exit_process *a = left, *b = right;
    int order = compare_strings(a->job, b->job);
    if (order == 0)
        order = COMPARE_KEYS(COMPARE(begin_of(a), begin_of(b)), COMPARE(a->rank, b->rank));
    if (order == 0)
        order = compare_strings(a->node, b->node);
    return order != 0
               ? order
               : COMPARE_KEYS(COMPARE(a->local_rank, b->local_rank), COMPARE(a->pid, b->pid));
}

static bool same_seat(const struct exit_process *a, const struct exit_process *b) {
    if (a->rank >= 0 && b->rank >= 0)
        return a->rank == b->rank;
    return a->local_rank >= 0 && a->local_rank == b->local_rank && a->node != STRING_NONE &&
           a->node == b->node;
}

static bool has_seat(const struct exit_process *process) {
    return process->rank >= 0 || (process->local_rank >= 0 && process->node != STRING_NONE);
}

// Takes the process's seat in the round; false: somebody sits there.
static bool sit_down(struct exit_list *list, struct gathering *gathering, uint32_t at,
                     uint32_t round) {
    struct exit_process *process = &list->processes[at];
    uint32_t *head =
        &gathering->heads[BY_RANK][process->rank >= 0 ? bucket_of(BY_RANK, round, process->rank)
                                                      : bucket_of(BY_LOCAL, process->node, round)];
    for (uint32_t other = *head; other != NO_PROCESS; other = list->processes[other].next_by_rank)
        if (list->processes[other].round == round && same_seat(&list->processes[other], process))
            return false;
    process->next_by_rank = *head;
    *head = at;
    return true;
}

// Who names no job is of the only one that is named.
static void set_jobs(struct exit_list *list) {
    string_id job = STRING_NONE;
    for (uint32_t i = 0; i < list->process_count; i++) {
        string_id said = list->processes[i].job;
        if (said != STRING_NONE && job != STRING_NONE && said != job)
            return;
        job = said != STRING_NONE ? said : job;
    }
    for (uint32_t i = 0; i < list->process_count; i++)
        list->processes[i].job = job;
}

static void begin_round(struct exit_list *list, const struct exit_process *process) {
    struct exit_round *round = &list->rounds[list->round_count];
    bool is_new_job = list->round_count == 0 || round[-1].job != process->job;
    *round = (struct exit_round){.job = process->job,
                                 .start_ns = process->start_ns,
                                 .ordinal = is_new_job ? 0 : round[-1].ordinal + 1};
    list->round_count++;
}

// A job's processes in order of time: who finds his seat taken begins the next round.
static void set_rounds(struct exit_list *list, struct gathering *gathering, struct arena *arena) {
    set_jobs(list);
    sort_stable(list->processes, list->process_count, sizeof *list->processes, arena,
                compare_begins);
    memset(gathering->heads, 0xff, sizeof gathering->heads);
    list->rounds = arena_take(arena, (list->process_count + 1) * sizeof *list->rounds);
    for (uint32_t i = 0; i < list->process_count; i++) {
        struct exit_process *process = &list->processes[i];
        if (list->round_count == 0 || list->rounds[list->round_count - 1].job != process->job)
            begin_round(list, process);
        if (has_seat(process) && !sit_down(list, gathering, i, list->round_count - 1)) {
            begin_round(list, process);
            bool is_free = sit_down(list, gathering, i, list->round_count - 1);
            assert(is_free);
            (void)is_free;
        }
        process->round = list->round_count - 1;
    }
    // What is told of nodes alone is a round, too.
    if (list->round_count == 0 && list->other_count > 0)
        list->rounds[list->round_count++] = (struct exit_round){.job = list->others[0]->job};
}

static bool may_speak_of(const struct exit_list *list, const struct exit_note *note,
                         const struct exit_process *process) {
    return agrees(note->job, process->job) && agrees(note->node, process->node) &&
           list->rounds[process->round].start_ns <= note->time_ns + note->slack_ns;
}

// Of the last round that had begun, of a job that the node takes part in.
static void set_other_rounds(struct exit_list *list, struct arena *arena) {
    list->other_rounds = arena_zero(arena, list->other_count + 1, sizeof *list->other_rounds);
    for (uint32_t i = 0; i < list->other_count; i++)
        list->other_rounds[i] = list->process_count == 0 ? 0 : NO_ROUND;
    for (uint32_t i = 0; i < list->other_count; i++)
        for (uint32_t at = 0; at < list->process_count; at++)
            if (may_speak_of(list, list->others[i], &list->processes[at]))
                list->other_rounds[i] = list->processes[at].round;
}

void exits_gather(const struct exit_notes *from, const struct node_names *names, uint64_t now_ns,
                  struct exit_list *list, struct arena *arena) {
    struct gathering *gathering = arena_take(arena, sizeof *gathering);
    *list = (struct exit_list){0};
    *gathering = (struct gathering){.list = list};
    memset(gathering->heads, 0xff, sizeof gathering->heads);
    sort_notes(list, from, now_ns, arena);
    gathering->capacity = keyed_rows_count(&from->places) + list->note_count;
    list->processes = arena_take(arena, (gathering->capacity + 1) * sizeof *list->processes);
    list->others = arena_take(arena, (list->note_count + 1) * sizeof *list->others);
    add_places(gathering, from, names, now_ns, arena);
    for (uint32_t i = 0; i < list->note_count; i++) {
        if (is_of_nobody(list->notes[i]))
            keep_other(list, list->notes[i]);
        else
            place_note(gathering, list->notes[i]);
    }
    set_rounds(list, gathering, arena);
    set_other_rounds(list, arena);
}
