// SPDX-License-Identifier: Apache-2.0
// A kill is told twice: by the line with the control groups, and by the one with the sizes; both
// become events. Names of processes may hold commas and brackets, so that what stands behind them
// is looked for first. O(line), a copy of the pod's uid in the arena.
#include "receivers/decode/kernel_log/parts.h"

#include <assert.h>

enum {
    PID_DIGITS_MAX = 10,
    NUMBER_DIGITS_MAX = 18,
    POD_UID_SIZE = 36,
    STATIC_POD_UID_SIZE = 32,
    CONTAINER_ID_SIZE = 64
};

static const char CUT_DETAIL[] = "the line ends before it says which process was killed";

// -- the control groups ---------------------------------------------------------------------------

struct place {
    struct slice unit_uid, container_id, job, step;
    uint64_t task;
    bool is_slurm, has_task;
};

static bool is_hex(char c) {
    return text_is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static size_t hex_digits(struct slice text) {
    size_t size = 0;
    while (size < text.size && is_hex(text.data[size]))
        size++;
    return size;
}

// 8-4-4-4-12 digits, with dashes or, in a slice of systemd, underscores between them.
static bool is_uid(struct slice text) {
    static const size_t parts[] = {8, 4, 4, 4, 12};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (i > 0 && !text_skip_char(&text, '-') && !text_skip_char(&text, '_'))
            return false;
        if (hex_digits(text) < parts[i])
            return false;
        text = text_from(text, parts[i]);
    }
    return text.size == 0 || (!is_hex(*text.data) && *text.data != '-' && *text.data != '_');
}

// "pod<uid>", "kubepods-burstable-pod<uid>.slice"; a static pod's uid is 32 digits.
static bool find_pod(struct slice segment, struct slice *uid) {
    struct slice before, rest = segment;
    if (!text_skip(&rest, SLICE("pod")) && !words_find_last(segment, SLICE("-pod"), &before, &rest))
        return false;
    size_t size = is_uid(rest) ? POD_UID_SIZE : STATIC_POD_UID_SIZE;
    if (size == STATIC_POD_UID_SIZE && hex_digits(rest) != size)
        return false;
    *uid = (struct slice){rest.data, size};
    return true;
}

// 64 digits in a row: "<id>", "cri-containerd-<id>.scope".
static bool find_container(struct slice segment, struct slice *id) {
    while (segment.size >= CONTAINER_ID_SIZE) {
        size_t size = hex_digits(segment);
        if (size == CONTAINER_ID_SIZE) {
            *id = (struct slice){segment.data, size};
            return true;
        }
        segment = text_from(segment, size < segment.size ? size + 1 : size);
    }
    return false;
}

static void note_segment(struct slice segment, struct place *place) {
    struct slice found, rest = segment;
    if (find_pod(segment, &found)) {
        // What stood before was where the node itself runs.
        place->unit_uid = found;
        place->container_id = (struct slice){NULL, 0};
    } else if (find_container(segment, &found)) {
        place->container_id = found;
    } else if (text_skip(&rest, SLICE("job_"))) {
        place->job = rest;
    } else if (text_skip(&rest, SLICE("step_"))) {
        place->step = rest;
    } else if (text_skip(&rest, SLICE("task_"))) {
        place->has_task = text_number(rest, PID_DIGITS_MAX, &place->task);
    } else if (text_find(segment, SLICE("slurm"), &rest)) {
        place->is_slurm = true;
    }
}

static struct slice with_dashes(struct slice uid, struct arena *arena) {
    struct slice copy = arena_copy(arena, uid);
    char *bytes = (char *)(uintptr_t)copy.data;
    for (size_t i = 0; i < copy.size; i++)
        if (bytes[i] == '_')
            bytes[i] = '-';
    return copy;
}

static void set_place(struct slice path, struct reading *reading) {
    struct place place = {0};
    uint64_t job;
    while (path.size > 0) {
        struct slice segment = text_until(path, '/');
        path = text_from(path, segment.size + (segment.size < path.size));
        note_segment(segment, &place);
    }
    if (place.unit_uid.data != NULL)
        reading_text(reading, FACT_UNIT_UID, with_dashes(place.unit_uid, reading->arena));
    if (place.container_id.data != NULL)
        reading_text(reading, FACT_CONTAINER_ID, place.container_id);
    if (!place.is_slurm || !text_number(place.job, PID_DIGITS_MAX, &job))
        return;
    reading_text(reading, FACT_JOB, place.job);
    if (place.step.size > 0)
        reading_text(reading, FACT_STEP, place.step);
    if (place.has_task)
        reading_number(reading, FACT_TASK, (int64_t)place.task);
}

// "CONSTRAINT_MEMCG,nodemask=…,oom_memcg=/A,task_memcg=/B,task=python3,pid=4711,uid=0", or
// ",global_oom" for the first path.
enum read_result oom_read_constraint(struct slice before, struct slice behind,
                                     const struct frame *frame, struct reading *reading) {
    struct slice ahead, path, name, number, rest;
    uint64_t pid;
    (void)before;
    (void)frame;
    if (!words_find_last(behind, SLICE(",uid="), &ahead, &rest) ||
        !words_find_last(ahead, SLICE(",pid="), &ahead, &number) ||
        !text_number(number, PID_DIGITS_MAX, &pid) ||
        !words_find(ahead, SLICE(",task_memcg="), &ahead, &path) ||
        !words_find(path, SLICE(",task="), &path, &name))
        return reading_refuse(reading, DECODE_TRUNCATED, CUT_DETAIL);
    reading_begin(reading, OBSERVATION_OOM_KILL);
    reading->needs_time = true;
    words_set_process(name, (int64_t)pid, reading);
    if (text_find(ahead, SLICE(",oom_memcg="), &rest))
        reading_text(reading, FACT_SCOPE, SLICE("cgroup"));
    else if (text_find(ahead, SLICE(",global_oom"), &rest))
        reading_text(reading, FACT_SCOPE, SLICE("machine"));
    set_place(path, reading);
    return READ_EVENT;
}

// -- the process ----------------------------------------------------------------------------------

struct victim {
    struct slice name;
    uint64_t pid;
    bool cut; // nothing says that it is none, but the end of the text
};

// "4711 (python3) total-vm:…", "813 (Web Content), UID 1000, total-vm:…", "812, UID 48, (httpd).".
static bool read_victim(struct slice text, struct victim *victim) {
    struct slice rest;
    uint64_t uid;
    *victim = (struct victim){.cut = text.size == 0};
    if (!text_take_number(&text, 1, PID_DIGITS_MAX, &victim->pid))
        return false;
    victim->cut = text.size == 0;
    if (text_skip(&text, SLICE(" ("))) {
        victim->cut = true;
        return words_find(text, SLICE(") total-vm:"), &victim->name, &rest) ||
               words_find(text, SLICE("), UID "), &victim->name, &rest);
    }
    if (!text_skip(&text, SLICE(", UID ")))
        return false;
    victim->cut = true;
    return text_take_number(&text, 1, PID_DIGITS_MAX, &uid) && text_skip(&text, SLICE(", (")) &&
           words_find_last(text, SLICE(")"), &victim->name, &rest);
}

// "anon-rss:5370088kB"; some write the number with commas.
static void set_size(struct slice text, struct reading *reading) {
    int64_t size = 0;
    size_t digits = 0;
    if (!text_find(text, SLICE("anon-rss:"), &text))
        return;
    for (; text.size > 0 && (text_is_digit(*text.data) || *text.data == ','); digits++) {
        if (*text.data != ',')
            size = size * 10 + (*text.data - '0');
        text = text_from(text, 1);
        if (digits == NUMBER_DIGITS_MAX - 4)
            return;
    }
    if (digits > 0 && text_begins(text, SLICE("kB")))
        reading_number(reading, FACT_ANON_RSS_BYTES, size * 1024);
}

// Whose memory was at its end, from what stands before the killing.
static void set_scope(struct slice before, struct reading *reading) {
    struct slice rest;
    if (text_find(before, SLICE("Memory cgroup out of memory"), &rest))
        reading_text(reading, FACT_SCOPE, SLICE("cgroup"));
    else if (text_find(before, SLICE("Out of memory"), &rest))
        reading_text(reading, FACT_SCOPE, SLICE("machine"));
}

static void give_kill(const struct victim *victim, struct slice before, struct slice behind,
                      struct reading *reading) {
    reading_begin(reading, OBSERVATION_OOM_KILL);
    reading->needs_time = true;
    words_set_process(victim->name, (int64_t)victim->pid, reading);
    set_scope(before, reading);
    set_size(behind, reading);
}

// "Memory cgroup out of memory: Killed process …", also alone.
enum read_result oom_read_killed(struct slice before, struct slice behind,
                                 const struct frame *frame, struct reading *reading) {
    struct victim victim;
    struct slice rest;
    if (!read_victim(behind, &victim)) {
        bool sure = text_find(before, SLICE("ut of memory"), &rest) ||
                    (before.size == 0 && frame->origin == ORIGIN_KERNEL);
        if (!sure || !victim.cut)
            return READ_NOT;
        return reading_refuse(reading, DECODE_TRUNCATED, CUT_DETAIL);
    }
    give_kill(&victim, before, behind, reading);
    return READ_EVENT;
}

// -- kernels before 5.0: first whom, then that it was done ----------------------------------------

static enum read_result read_announced(const struct frame *frame, struct slice message,
                                       struct reading *reading) {
    struct slice before, behind;
    (void)frame;
    (void)reading;
    if (message.size > WORDS_MESSAGE_MAX ||
        !text_find(message, SLICE(" or sacrifice child"), &behind) ||
        !words_find(message, SLICE("Kill process "), &before, &behind) ||
        !text_find(before, SLICE("ut of memory"), &behind))
        return READ_NOT;
    return READ_BEGIN;
}

static enum block_step more_of_kill(struct slice so_far, uint32_t count, const struct frame *frame,
                                    struct slice message) {
    struct slice rest = message;
    (void)so_far;
    (void)count;
    (void)frame;
    if (message.size > WORDS_MESSAGE_MAX)
        return BLOCK_PASS;
    if (text_skip(&rest, SLICE("Killed process ")))
        return BLOCK_LAST;
    return text_find(message, SLICE(" or sacrifice child"), &rest) ? BLOCK_OVER : BLOCK_PASS;
}

static enum read_result finish_kill(struct slice text, bool cut, const struct frame *frame,
                                    struct reading *reading) {
    struct slice first = text_take_line(&text);
    struct victim victim;
    (void)cut;
    (void)frame;
    // The child may have been killed instead, so that the first line alone is not enough.
    if (!text_skip(&text, SLICE("Killed process ")) || !read_victim(text, &victim))
        return reading_refuse(reading, DECODE_TRUNCATED,
                              "a process was chosen to be killed, and the log does not say of any "
                              "that it was");
    give_kill(&victim, first, text, reading);
    return READ_EVENT;
}

const struct line_reader READER_OOM_IN_TWO_LINES = {.name = "oom_in_two_lines",
                                                    .read = read_announced,
                                                    .more = more_of_kill,
                                                    .finish = finish_kill};
