// SPDX-License-Identifier: Apache-2.0
// The forms by their first character, like transport.c.
#include "receivers/decode/line/writer.h"

#include "base/text/cut.h"
#include "base/text/find.h"
#include "pipeline/model/event.h"

enum { NAME_MAX_SIZE = 253, NUMBER_DIGITS_MAX = 9, LABEL_DIGITS_MAX = 6 };

static bool take_number(struct slice *text, uint64_t *value) {
    return text_take_number(text, 1, NUMBER_DIGITS_MAX, value);
}

bool writer_set_rank(struct peel *peel, uint64_t rank) {
    if (rank > RANK_MAX)
        return false;
    peel->frame->rank = (int32_t)rank;
    peel->writer = true;
    uint64_t around = peel->around;
    peel_numbered(peel, (int64_t)rank, "rank");
    peel->around = around;
    return true;
}

// Up to one of `stops`, which is not taken; longer than a name can be: empty.
static struct slice take_name(struct slice *text, const char *stops) {
    struct slice front = {text->data, text->size < NAME_MAX_SIZE ? text->size : NAME_MAX_SIZE};
    size_t size = text_until_any(front, stops).size;
    return text_take(text, size == front.size ? 0 : size);
}

// "[pod/trainer-3/worker] "
static bool take_kubectl(struct peel *peel) {
    struct slice rest = peel->text;
    if (!text_skip(&rest, SLICE("[pod/")))
        return false;
    struct slice pod = take_name(&rest, "/] ");
    if (pod.size == 0 || !text_skip_char(&rest, '/'))
        return false;
    struct slice container = take_name(&rest, "/] ");
    if (container.size == 0 || !text_skip(&rest, SLICE("] ")))
        return false;
    peel->frame->pod = pod;
    peel->frame->container = container;
    peel_named(peel, pod, "pod");
    peel_named(peel, container, "container");
    peel->text = rest;
    return true;
}

// "[rank3]:" and a blank.
static bool take_rank(struct peel *peel) {
    struct slice rest = peel->text;
    uint64_t rank;
    if (!text_skip(&rest, SLICE("[rank")) || !take_number(&rest, &rank) ||
        !text_skip(&rest, SLICE("]:")) || !writer_set_rank(peel, rank))
        return false;
    text_skip_char(&rest, ' ');
    peel->text = rest;
    return true;
}

// "[default3]:", and other names that torchrun's roles commonly have; blanks behind it are the
// text's.
static bool take_role(struct peel *peel) {
    static const struct slice roles[] = {{"[default", 8}, {"[worker", 7}, {"[trainer", 8}};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        struct slice rest = peel->text;
        uint64_t rank;
        if (!text_skip(&rest, roles[i]) || !take_number(&rest, &rank) || rank > RANK_MAX ||
            !text_skip(&rest, SLICE("]:")))
            continue;
        peel->frame->local_rank = (int32_t)rank;
        peel->writer = true;
        peel_numbered(peel, (int64_t)rank, "local");
        peel->text = rest;
        return true;
    }
    return false;
}

// "[1,3]<stderr>:"
static bool take_mpirun(struct peel *peel) {
    struct slice rest = peel->text;
    uint64_t job, rank;
    if (!text_skip_char(&rest, '[') || !take_number(&rest, &job) || !text_skip_char(&rest, ',') ||
        !take_number(&rest, &rank) || !text_skip(&rest, SLICE("]<std")) ||
        (!text_skip(&rest, SLICE("err>:")) && !text_skip(&rest, SLICE("out>:"))) ||
        !writer_set_rank(peel, rank))
        return false;
    peel->text = rest;
    return true;
}

// " [repeated 7x across cluster]" and what Ray adds to it.
static void drop_repeated(struct slice *text) {
    enum { TAIL_MAX = 256 };
    struct slice tail = *text;
    if (tail.size > TAIL_MAX)
        tail = text_from(tail, tail.size - TAIL_MAX);
    const char *at = text_position(tail, SLICE(" [repeated "));
    struct slice rest;
    uint64_t times;
    if (at == NULL)
        return;
    rest = text_from(tail, (size_t)(at - tail.data) + 11);
    if (take_number(&rest, &times) && text_skip(&rest, SLICE("x across cluster]")))
        text->size = (size_t)(at - text->data);
}

// "(RayTrainWorker(rank=0) pid=1, ip=10.0.0.5) text": the part with " pid=" ends at ")".
static bool take_ray(struct peel *peel) {
    struct slice front = peel->text, address = {NULL, 0};
    uint64_t pid;
    if (front.size > NAME_MAX_SIZE)
        front.size = NAME_MAX_SIZE;
    if (!text_skip_char(&front, '(') || !text_find(front, SLICE(" pid="), &front) ||
        !take_number(&front, &pid))
        return false;
    if (text_skip(&front, SLICE(", ip=")))
        address = text_take(&front, text_until_any(front, "), ").size);
    if (!text_skip_char(&front, ')'))
        return false;
    struct slice rest = text_from(peel->text, (size_t)(front.data - peel->text.data));
    text_skip_char(&rest, ' ');
    peel->frame->pid = (int64_t)pid;
    peel_numbered(peel, (int64_t)pid, "pid");
    if (address.size > 0) {
        peel->frame->address = address;
        peel_named(peel, address, "address");
    }
    peel->writer = true;
    drop_repeated(&rest);
    peel->text = rest;
    return true;
}

bool writer_take_label(struct slice *text, uint32_t *number, uint32_t *width) {
    struct slice rest = *text;
    size_t blanks = 0;
    while (blanks < rest.size && blanks < LABEL_DIGITS_MAX && rest.data[blanks] == ' ')
        blanks++;
    text_take(&rest, blanks);
    uint64_t value;
    size_t before = rest.size;
    if (!text_take_number(&rest, 1, LABEL_DIGITS_MAX, &value))
        return false;
    *width = (uint32_t)(blanks + before - rest.size);
    *number = (uint32_t)value;
    if (!text_skip_char(&rest, ':') || (rest.size > 0 && !text_skip_char(&rest, ' ')))
        return false;
    *text = rest;
    return true;
}

static bool take_label(struct peel *peel) {
    uint32_t number, width;
    if (peel->labels == LABEL_NONE || !writer_take_label(&peel->text, &number, &width))
        return false;
    peel->writer = true;
    if (peel->labels == LABEL_RANK)
        peel->frame->rank = (int32_t)number;
    else
        peel->frame->task = (int32_t)number;
    peel_numbered(peel, number, "task");
    peel->labels = LABEL_NONE; // no further one
    return true;
}

bool writer_peel(struct peel *peel) {
    char first = peel->text.data[0];
    if (first == '[')
        return take_rank(peel) || take_role(peel) || take_kubectl(peel) || take_mpirun(peel);
    if (first == '(')
        return take_ray(peel);
    return text_is_digit(first) && take_label(peel);
}

bool writer_peel_inside(struct peel *peel) {
    enum { TRIES_MAX = 64 };
    struct slice whole = peel->text, rest = whole, behind;
    if (peel->writer || peel->kernel)
        return false;
    for (int i = 0; i < TRIES_MAX && text_find(rest, SLICE("[rank"), &behind); i++) {
        peel->text = (struct slice){behind.data - 5, behind.size + 5};
        if (take_rank(peel))
            return true;
        rest = behind;
    }
    peel->text = whole;
    return false;
}
