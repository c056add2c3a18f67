// SPDX-License-Identifier: Apache-2.0
// Joins what is told of one process.
#include "processors/first_exit/join.h"

#include "base/sort.h"
#include "base/table/keyed_rows.h"
#include "base/text/cut.h"
#include "processors/cluster/compare.h"

// Processes that are known from lists of tasks alone.
enum { TASKS_MAX = 65536 };

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

static struct identity identity_of(const struct exit_note *note, const struct note_where *where) {
    bool of_kernel = is_of_kernel(note_kind(note));
    struct identity said = {.job = note->job,
                            .log = note->key.source,
                            .node = note->node,
                            .unit = note->unit,
                            .unit_hash = where->unit,
                            .pid = has_own_pid(note) ? note->pid : -1,
                            .by_kernel = of_kernel ? note : NULL,
                            .rank = note->rank,
                            .local_rank = note->local_rank};
    if (of_kernel && where->is_contained)
        said.pid = -1;
    return said;
}

// It names the process that it is of: its rank, or a task of srun's where tasks are ranks; or its
// log is that of one process.
static bool names_rank(const struct gathering *gathering, const struct exit_note *note) {
    return note->rank >= 0 || note->local_rank >= 0 ||
           (gathering->tasks_are_ranks && note->task >= 0) ||
           exit_writer_of(gathering->list->writers, note->key.source) >= 0;
}

// Lines of the node or the job, not of a process of it.
static bool is_of_nobody(const struct gathering *gathering, const struct exit_note *note) {
    switch (note_kind(note)) {
    case OBSERVATION_LAUNCHER_TOLD_TO_STOP:
    case OBSERVATION_SLURM_CANCELLED:
    case OBSERVATION_SLURM_OOM:
    case OBSERVATION_SLURM_NODE_FAILURE:
    case OBSERVATION_SLURM_STATE:
    case OBSERVATION_NODE_LOST:
    case OBSERVATION_JOB_STOPPED:
    case OBSERVATION_LAUNCH_FAILED:
    case OBSERVATION_POD_DISRUPTION:
    case OBSERVATION_NODE_CONDITION:
        return true;
    case OBSERVATION_SLURM_TASK_EXIT:
        return !gathering->tasks_are_ranks;
    case OBSERVATION_STORE_LOST:
        return !names_rank(gathering, note);
    case OBSERVATION_EXCEPTION: // of an agent
        return !names_rank(gathering, note) && note_is(note, NOTE_VICTIM);
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

// -- who of a pod ---------------------------------------------------------------------------------

static uint32_t first_of_unit(const struct gathering *gathering, const struct identity *said) {
    return join_first(gathering, BY_UNIT, STRING_NONE, (int64_t)said->unit_hash, said);
}

static uint32_t next_of_unit(const struct gathering *gathering, uint32_t at,
                             const struct identity *said) {
    return join_next(gathering, BY_UNIT, gathering->list->processes[at].next_by_unit, said);
}

static bool is_other_rank(const struct exit_process *a, const struct exit_process *b) {
    if (a->rank >= 0 && b->rank >= 0)
        return a->rank != b->rank;
    return a->local_rank >= 0 && b->local_rank >= 0 && a->local_rank != b->local_rank;
}

// The only rank of the pod that was killed at that time; NO_PROCESS: none, or several.
static uint32_t killed_member(const struct gathering *gathering, const struct identity *said,
                              const struct exit_note *note) {
    const struct exit_process *processes = gathering->list->processes;
    uint32_t found = NO_PROCESS;
    for (uint32_t at = first_of_unit(gathering, said); at != NO_PROCESS;
         at = next_of_unit(gathering, at, said)) {
        if (processes[at].is_unit || !join_seen_to_end(&processes[at], note))
            continue;
        if (found != NO_PROCESS && is_other_rank(&processes[at], &processes[found]))
            return NO_PROCESS;
        if (found == NO_PROCESS ||
            join_distance(&processes[at], note) < join_distance(&processes[found], note))
            found = at;
    }
    return found;
}

static bool tells_kill(const struct exit_note *note) {
    return note_kind(note) == OBSERVATION_OOM_KILL || note_ended_by(note, SIGNAL_KILL);
}

// The pod of several ranks as a whole.
static uint32_t whole_pod(struct gathering *gathering, const struct identity *said,
                          uint32_t member) {
    struct exit_process *processes = gathering->list->processes;
    for (uint32_t at = first_of_unit(gathering, said); at != NO_PROCESS;
         at = next_of_unit(gathering, at, said))
        if (processes[at].is_unit)
            return at;
    struct identity whole = *said;
    whole.unit = processes[member].unit;
    uint32_t at = join_add(gathering, &whole);
    processes[at].is_unit = true;
    return at;
}

// Of a pod with one rank that rank; of one with several the one that was killed then, where that is
// what the note tells; else the pod itself.
static uint32_t find_member(struct gathering *gathering, const struct exit_note *note,
                            const struct identity *said) {
    uint32_t best =
        join_nearest(gathering, BY_UNIT, STRING_NONE, (int64_t)said->unit_hash, said, note);
    if (best == NO_PROCESS || said->rank >= 0 || said->local_rank >= 0 || said->pid >= 0)
        return best;
    const struct exit_process *processes = gathering->list->processes;
    bool several = processes[best].is_unit;
    for (uint32_t at = first_of_unit(gathering, said); at != NO_PROCESS && !several;
         at = next_of_unit(gathering, at, said))
        several = is_other_rank(&processes[at], &processes[best]);
    if (!several)
        return best;
    uint32_t killed = tells_kill(note) ? killed_member(gathering, said, note) : NO_PROCESS;
    return killed != NO_PROCESS ? killed : whole_pod(gathering, said, best);
}

static uint32_t find_process(struct gathering *gathering, const struct exit_note *note,
                             const struct identity *said) {
    uint32_t at = NO_PROCESS;
    if (said->pid >= 0)
        at = join_nearest(gathering, BY_PID, STRING_NONE, said->pid, said, note);
    if (at == NO_PROCESS && said->rank >= 0)
        at = join_nearest(gathering, BY_RANK, STRING_NONE, said->rank, said, note);
    if (at == NO_PROCESS && said->local_rank >= 0 && said->node != STRING_NONE)
        at = join_nearest(gathering, BY_LOCAL, said->node, said->local_rank, said, note);
    if (at == NO_PROCESS && said->unit_hash != 0)
        at = find_member(gathering, note, said);
    return at;
}

// Nobody is named: another log may have the same words with a name.
static bool is_told_elsewhere(const struct exit_list *list, const struct exit_note *note) {
    for (uint32_t i = 0; i < list->process_count; i++)
        for (uint32_t j = 0; j < list->processes[i].note_count; j++)
            if (exit_agrees(list->processes[i].job, note->job) &&
                note_same_words(list->processes[i].notes[j], note))
                return true;
    return false;
}

static uint32_t find_anonymous(const struct exit_list *list, const struct exit_note *note) {
    for (uint32_t i = 0; i < list->process_count; i++)
        if (list->processes[i].source == note->key.source &&
            (list->processes[i].local_rank < 0 || note->local_rank < 0 ||
             list->processes[i].local_rank == note->local_rank) &&
            exit_agrees(list->processes[i].job, note->job))
            return i;
    return NO_PROCESS;
}

static void attach(struct gathering *gathering, uint32_t at, const struct identity *said,
                   const struct exit_note *note) {
    struct exit_process *process = &gathering->list->processes[at];
    join_learn(gathering, at, said);
    if (process->job == STRING_NONE)
        process->job = note->job;
    if (process->note_count < NOTES_OF_PROCESS)
        process->notes[process->note_count++] = note;
}

static void keep_other(struct exit_list *list, const struct exit_note *note) {
    list->others[list->other_count++] = note;
}

// Each task that is listed is a rank.
static void place_tasks(struct gathering *gathering, const struct exit_note *note,
                        struct identity *said) {
    for (uint32_t i = 0; i < note->range_count; i++)
        for (int32_t task = note->ranges[i].first; task <= note->ranges[i].last; task++) {
            said->rank = task;
            uint32_t at = find_process(gathering, note, said);
            if (at == NO_PROCESS && gathering->tasks_left-- == 0)
                return;
            attach(gathering, at == NO_PROCESS ? join_add(gathering, said) : at, said, note);
        }
}

// Words in which ranks say of themselves who they are.
static int32_t rank_in_words(const struct exit_note *note) {
    static const struct {
        const char *before, *behind;
    } WAYS[] = {{"mismatch between collectives on ranks. Rank ", " is running"},
                {"Rank ", " successfully reached monitoredBarrier"}};
    uint64_t rank;
    struct slice text;
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++)
        if (text_find(note_text(note), slice_of(WAYS[i].before), &text) &&
            text_take_number(&text, 1, 9, &rank) && text_begins(text, slice_of(WAYS[i].behind)))
            return (int32_t)rank;
    return RANK_NONE;
}

// What its launcher says elsewhere in the log: a line with a local rank is of the launcher's node,
// and the launcher's own line about an earlier start is of the rank that it was in the last one.
static void learn_of_log(const struct gathering *gathering, const struct exit_note *note,
                         struct identity *said) {
    bool is_launchers = kind_is_launchers(note_kind(note));
    if (said->rank < 0 && said->local_rank < 0 && note->type_size > 0)
        said->rank = rank_in_words(note);
    if (said->rank < 0 && note_kind(note) != OBSERVATION_PEER_LOST)
        said->rank = exit_writer_of(gathering->list->writers, note->key.source);
    if (said->rank >= 0 || (!is_launchers && said->local_rank < 0))
        return;
    if (said->node == STRING_NONE)
        said->node = exit_log_node(gathering->logs, note);
    if (is_launchers)
        said->rank = exit_log_rank(gathering->logs, note);
}

static void place_note(struct gathering *gathering, const struct exit_note *note,
                       const struct note_where *where) {
    struct exit_list *list = gathering->list;
    struct identity said = identity_of(note, where);
    if (note_kind(note) == OBSERVATION_SLURM_TASK_EXIT) {
        place_tasks(gathering, note, &said);
        return;
    }
    if (gathering->tasks_are_ranks && said.rank < 0)
        said.rank = note->task;
    learn_of_log(gathering, note, &said);
    uint32_t at = find_process(gathering, note, &said);
    bool is_named = said.pid >= 0 || said.rank >= 0 || said.unit != STRING_NONE ||
                    (said.local_rank >= 0 && said.node != STRING_NONE);
    if (at == NO_PROCESS && is_of_kernel(note_kind(note)) && said.rank < 0 && said.local_rank < 0) {
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
        at = join_add(gathering, &said);
    attach(gathering, at, &said, note);
}

// -- order ----------------------------------------------------------------------------------------

static int compare_notes(const void *left, const void *right) {
    const struct exit_note *a = *(const struct exit_note *const *)left;
    const struct exit_note *b = *(const struct exit_note *const *)right;
    return COMPARE_KEYS(COMPARE(turn_of(a), turn_of(b)), exit_notes_compare(a, b));
}

static int compare_places(const void *left, const void *right) {
    const struct exit_place *a = *(const struct exit_place *const *)left;
    const struct exit_place *b = *(const struct exit_place *const *)right;
    int order = COMPARE_KEYS(COMPARE(a->time_ns, b->time_ns), COMPARE(a->key.rank, b->key.rank));
    if (order == 0)
        order = compare_strings(a->key.node, b->key.node);
    if (order == 0)
        order = compare_strings(a->key.job, b->key.job);
    return order != 0 ? order : COMPARE(place_pid(a), place_pid(b));
}

// Hosts of telemetry stand there as they were told.
static string_id known_name(const struct node_names *names, string_id name) {
    string_id known =
        names == NULL || name == STRING_NONE ? STRING_NONE : node_names_find(names, name);
    return known == STRING_NONE ? name : known;
}

static void see_jobs(struct gathering *gathering, const struct exit_notes *from,
                     const struct node_names *names) {
    const struct exit_list *list = gathering->list;
    const struct exit_place *place;
    for (uint32_t at = 0; (place = keyed_rows_next(&from->places, &at)) != NULL;)
        join_see_job(gathering, place->key.job);
    for (uint32_t i = 0; i < list->note_count; i++)
        join_see_job(gathering, list->notes[i]->job);
    for (uint32_t at = 0; (place = keyed_rows_next(&from->places, &at)) != NULL;)
        join_see_node(gathering, place->key.job, known_name(names, place->key.node));
    for (uint32_t i = 0; i < list->note_count; i++)
        if (list->notes[i]->rank >= 0 || list->notes[i]->local_rank >= 0)
            join_see_node(gathering, list->notes[i]->job, list->notes[i]->node);
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
        const struct identity said = {.job = places[i]->key.job,
                                      .node = known_name(names, places[i]->key.node),
                                      .unit = places[i]->unit,
                                      .pid = place_pid(places[i]),
                                      .rank = places[i]->key.rank,
                                      .local_rank = places[i]->local_rank};
        uint32_t at = join_nearest(gathering, BY_RANK, STRING_NONE, said.rank, &said, NULL);
        if (at == NO_PROCESS)
            at = join_add(gathering, &said);
        else
            join_learn(gathering, at, &said);
        struct exit_process *process = &gathering->list->processes[at];
        process->start_ns = process->start_ns == 0 ? places[i]->time_ns : process->start_ns;
        process->job = process->job == STRING_NONE ? places[i]->key.job : process->job;
        process->placed = true;
        if (process->gpu == PCI_NONE)
            process->gpu = places[i]->gpu;
        if (process->gpu == PCI_NONE && places[i]->uuid != STRING_NONE)
            process->gpu = gpu_names_address(&from->gpus, said.node, places[i]->uuid);
    }
}

// -- tasks and hosts of Slurm ---------------------------------------------------------------------

// Where launchers tell of processes, and where a rank is known to be elsewhere than its task, tasks
// are launchers.
static bool tasks_are_ranks(struct gathering *gathering) {
    const struct exit_list *list = gathering->list;
    for (uint32_t i = 0; i < list->note_count; i++) {
        const struct exit_note *note = list->notes[i];
        if (kind_is_launchers(note_kind(note)) || note_kind(note) == OBSERVATION_ERROR_FILE ||
            note_kind(note) == OBSERVATION_LAUNCHER_TOLD_TO_STOP)
            return false;
        if (note_kind(note) != OBSERVATION_SLURM_TASK_EXIT || note->node == STRING_NONE)
            continue;
        for (uint32_t j = 0; j < note->range_count; j++) {
            struct identity said = {.pid = -1, .rank = note->ranges[j].first, .local_rank = -1};
            uint32_t any = join_first(gathering, BY_RANK, STRING_NONE, said.rank, &said);
            said.node = note->node;
            if (any != NO_PROCESS &&
                join_first(gathering, BY_RANK, STRING_NONE, said.rank, &said) == NO_PROCESS)
                return false;
        }
    }
    return true;
}

static uint32_t count_tasks(const struct exit_list *list) {
    int64_t count = 0;
    for (uint32_t i = 0; i < list->note_count; i++)
        for (uint32_t j = 0; j < list->notes[i]->range_count; j++)
            count += (int64_t)list->notes[i]->ranges[j].last - list->notes[i]->ranges[j].first + 1;
    return count > TASKS_MAX ? TASKS_MAX : (uint32_t)count;
}

static uint32_t count_hosts(const struct exit_list *list) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->note_count; i++)
        count += note_is_node_loss(list->notes[i]) ? HOSTS_MAX : 1;
    return count;
}

// A list of nodes is told as a note about each of them.
static void keep_hosts(struct exit_list *list, const struct exit_note *note,
                       const struct node_names *names, struct arena *arena) {
    string_id hosts[HOSTS_MAX];
    uint32_t count = 0;
    if (note_is_node_loss(note) && note->node == STRING_NONE)
        count = exit_hosts_read(note_text(note), hosts);
    if (count == 0)
        keep_other(list, note);
    for (uint32_t i = 0; i < count; i++) {
        struct exit_note *copy = arena_take(arena, sizeof *copy);
        *copy = *note;
        copy->node = known_name(names, hosts[i]);
        copy->text_size = 0; // the list
        keep_other(list, copy);
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

static int compare_places_of_notes(const void *left, const void *right) {
    const struct exit_note *a = *(const struct exit_note *const *)left;
    const struct exit_note *b = *(const struct exit_note *const *)right;
    return COMPARE_KEYS(COMPARE(a->key.source, b->key.source),
                        COMPARE(note_position(a), note_position(b)));
}

// Where somebody counts behind an end, it is of another start.
static void list_ends(struct exit_list *list, const struct progress_log *progress,
                      struct arena *arena) {
    if (keyed_rows_count(&progress->rows) == 0)
        return;
    list->ends = arena_take(arena, (list->note_count + 1) * sizeof *list->ends);
    for (uint32_t i = 0; i < list->note_count; i++)
        if (exit_note_tells_end(list->notes[i]))
            list->ends[list->end_count++] = list->notes[i];
    sort_stable(list->ends, list->end_count, sizeof *list->ends, arena, compare_places_of_notes);
}

static bool is_killed_worker(const struct exit_process *process, const struct exit_note *kill) {
    for (uint32_t i = 0; i < process->note_count; i++) {
        const struct exit_note *note = process->notes[i];
        if (note_kind(note) == OBSERVATION_WORKER_KILLED && note->pid == kill->pid &&
            exit_agrees(process->node, kill->node) && exit_agrees(process->job, kill->job))
            return true;
    }
    return false;
}

// A worker of a data loader that the kernel killed is no process of the job: its rank tells of it
// by its pid.
static void join_killed_workers(const struct exit_list *list) {
    for (uint32_t i = 0; i < list->other_count; i++) {
        const struct exit_note *kill = list->others[i];
        if (note_kind(kill) != OBSERVATION_OOM_KILL || kill->pid < 0 || note_is_contained(kill))
            continue;
        for (uint32_t j = 0; j < list->process_count; j++) {
            struct exit_process *process = &list->processes[j];
            if (is_killed_worker(process, kill) && process->note_count < NOTES_OF_PROCESS)
                process->notes[process->note_count++] = kill;
        }
    }
}

void exits_gather(const struct exit_notes *from, const struct node_names *names, uint64_t now_ns,
                  struct exit_list *list, struct arena *arena) {
    struct gathering *gathering = arena_take(arena, sizeof *gathering);
    *list = (struct exit_list){0};
    *gathering = (struct gathering){.list = list};
    memset(gathering->heads, 0xff, sizeof gathering->heads);
    sort_notes(list, from, now_ns, arena);
    gathering->tasks_left = count_tasks(list);
    gathering->capacity =
        keyed_rows_count(&from->places) + list->note_count + gathering->tasks_left;
    list->processes =
        arena_take(arena, (gathering->capacity + (size_t)QUIET_MAX) * sizeof *list->processes);
    list->others = arena_take(arena, (count_hosts(list) + 1) * sizeof *list->others);
    list->xids = xid_log_sort(&from->xids, arena, &list->xid_count);
    list->progress = progress_index_make(&from->progress, now_ns, arena);
    list->writers = exits_see_writers(list, arena);
    list_ends(list, &from->progress, arena);
    see_jobs(gathering, from, names);
    add_places(gathering, from, names, now_ns, arena);
    gathering->tasks_are_ranks = tasks_are_ranks(gathering);
    gathering->logs = exits_see_logs(list, arena);
    const struct note_where *where = exits_find_where(from, list, arena);
    for (uint32_t i = 0; i < list->note_count; i++) {
        if (note_kind(list->notes[i]) == OBSERVATION_JOB_LAYOUT)
            continue; // seen as what a log says
        if (is_of_nobody(gathering, list->notes[i]))
            keep_hosts(list, list->notes[i], names, arena);
        else
            place_note(gathering, list->notes[i], &where[i]);
    }
    join_killed_workers(list);
    exits_join_twins(list);
    exits_set_rounds(list, arena);
}
