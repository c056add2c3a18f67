// SPDX-License-Identifier: Apache-2.0
// Reads a path part by part. O(path).
#include "receivers/decode/line/place.h"

#include "base/text/cut.h"
#include "pipeline/model/event.h"

enum { NUMBER_DIGITS_MAX = 9, UID_SIZE = 36, CONTAINER_ID_SIZE = 64 };

// The part in front of the last `stop`, and what follows it.
static bool split_last(struct slice text, char stop, struct slice *before, struct slice *behind) {
    const char *at = text.size == 0 ? NULL : memrchr(text.data, stop, text.size);
    if (at == NULL)
        return false;
    *before = (struct slice){text.data, (size_t)(at - text.data)};
    *behind = text_from(text, before->size + 1);
    return true;
}

// "<namespace>_<pod>_<uid>/<container>/…"
static bool read_pods(struct slice path, struct frame *frame) {
    struct slice folder = text_until(path, '/'), names, uid, namespace, pod;
    if (folder.size == path.size || !split_last(folder, '_', &names, &uid) ||
        !split_last(names, '_', &namespace, &pod) || uid.size < 32 || uid.size > UID_SIZE)
        return false;
    struct slice rest = text_from(path, folder.size + 1);
    struct slice container = text_until(rest, '/');
    if (container.size == 0 || container.size == rest.size)
        return false;
    frame->namespace = namespace;
    frame->pod = pod;
    frame->unit_uid = uid;
    frame->container = container;
    return true;
}

// "<pod>_<namespace>_<container>-<id>.log"
static bool read_containers(struct slice path, struct frame *frame) {
    struct slice pod = text_until(path, '_');
    if (pod.size == path.size || memchr(path.data, '/', path.size) != NULL)
        return false;
    struct slice rest = text_from(path, pod.size + 1);
    struct slice namespace = text_until(rest, '_'), container, id;
    if (namespace.size == rest.size ||
        !split_last(text_from(rest, namespace.size + 1), '-', &container, &id) ||
        id.size < CONTAINER_ID_SIZE)
        return false;
    frame->pod = pod;
    frame->namespace = namespace;
    frame->container = container;
    return true;
}

static bool is_word_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || text_is_digit(c);
}

// "rank3", "rank_3", "rank-3", "rank.3" as a word of a part of the path.
static int32_t rank_in(struct slice part) {
    struct slice rest = part, behind;
    while (text_find(rest, SLICE("rank"), &behind)) {
        uint64_t rank;
        bool starts = behind.data - 4 == part.data || !is_word_byte(behind.data[-5]);
        // "local_rank_3" is another.
        bool local = behind.data - 10 >= part.data && memcmp(behind.data - 10, "local", 5) == 0;
        rest = behind;
        if (!text_skip_char(&behind, '_') && !text_skip_char(&behind, '-'))
            text_skip_char(&behind, '.');
        if (starts && !local && text_take_number(&behind, 1, NUMBER_DIGITS_MAX, &rank) &&
            (behind.size == 0 || !is_word_byte(behind.data[0])) && rank <= RANK_MAX)
            return (int32_t)rank;
    }
    return RANK_NONE;
}

// "out.3", but no log that was rotated.
static int32_t rank_at_end(struct slice name, uint32_t world_size) {
    static const struct slice rotated[] = {
        {"log", 3}, {"messages", 8}, {"dmesg", 5}, {"kmsg", 4}, {"console", 7}};
    struct slice stem, number;
    uint64_t rank;
    if (!split_last(name, '.', &stem, &number) || !text_number(number, NUMBER_DIGITS_MAX, &rank) ||
        rank >= world_size)
        return RANK_NONE;
    for (size_t i = 0; i < sizeof rotated / sizeof *rotated; i++)
        if (stem.size >= rotated[i].size &&
            slice_equal(text_from(stem, stem.size - rotated[i].size), rotated[i]))
            return RANK_NONE;
    return (int32_t)rank;
}

// "0d9e2a41-6f0b-4f0e-8a53-1c2d3e4f5a6b"
static bool is_uuid(struct slice text) {
    for (size_t i = 0; i < text.size && text.size == UID_SIZE; i++) {
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
        bool is_hex = text_is_digit(text.data[i]) || (text.data[i] >= 'a' && text.data[i] <= 'f');
        if (is_dash ? text.data[i] != '-' : !is_hex)
            return false;
    }
    return text.size == UID_SIZE;
}

// A copy of the folder of pods may lie anywhere: the uid of a pod is a UUID there.
static bool read_copied_pods(struct slice path, struct frame *frame) {
    for (struct slice rest = path; rest.size > 0;) {
        struct slice part = text_until(rest, '/'), names, uid;
        if (split_last(part, '_', &names, &uid) && is_uuid(uid) && read_pods(rest, frame))
            return true;
        rest = text_from(rest, part.size + (part.size < rest.size));
    }
    return false;
}

// "worker-<56 digits>-<job>-<pid>.err", "python-core-worker-<56 digits>_<pid>.log": what a worker
// of Ray writes stands in several files.
static bool read_ray_worker(struct slice name, struct frame *frame) {
    enum { ID_SIZE = 56 };
    struct slice id, stem, suffix, pid, rest = name;
    uint64_t number;
    bool is_core = text_skip(&rest, SLICE("python-core-worker-"));
    if (!is_core && !text_skip(&rest, SLICE("worker-")))
        return false;
    id = text_until(rest, is_core ? '_' : '-');
    if (id.size != ID_SIZE || !split_last(name, '.', &stem, &suffix) ||
        !split_last(stem, is_core ? '_' : '-', &rest, &pid) ||
        !text_number(pid, NUMBER_DIGITS_MAX, &number) || number == 0)
        return false;
    frame->pid = (int64_t)number;
    return true;
}

void place_read(struct slice path, uint32_t world_size, struct frame *frame) {
    struct slice rest;
    if (text_find(path, SLICE("/log/pods/"), &rest) && read_pods(rest, frame))
        return;
    if (read_copied_pods(path, frame))
        return;
    if (text_find(path, SLICE("/log/containers/"), &rest) && read_containers(rest, frame))
        return;
    struct slice name = path, folders = {NULL, 0};
    split_last(path, '/', &folders, &name);
    if (read_ray_worker(name, frame))
        return;
    frame->rank = rank_in(name);
    if (frame->rank == RANK_NONE)
        frame->rank = rank_at_end(name, world_size);
    split_last(folders, '/', &rest, &folders);
    if (frame->rank == RANK_NONE)
        frame->rank = rank_in(folders);
    uint64_t attempt, local;
    if (text_skip(&name, SLICE("workerlog.")) && text_number(name, NUMBER_DIGITS_MAX, &local) &&
        local <= RANK_MAX) {
        frame->rank = RANK_NONE;
        frame->local_rank = (int32_t)local;
    }
    if (text_find(path, SLICE("/attempt_"), &rest) &&
        text_take_number(&rest, 1, NUMBER_DIGITS_MAX, &attempt) && text_skip_char(&rest, '/') &&
        text_take_number(&rest, 1, NUMBER_DIGITS_MAX, &local) && text_skip_char(&rest, '/') &&
        local <= RANK_MAX)
        frame->local_rank = (int32_t)local;
}
