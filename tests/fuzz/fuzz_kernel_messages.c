// SPDX-License-Identifier: Apache-2.0
// Messages of the kernel, whole or broken, mean the same whenever they are read, and claim nothing
// that cannot be.
//
// The input is messages, one a line; each is given to the decoder behind a time since boot, in a
// block of its own, by two sources that saw the same lines. What both say is compared; what the
// facts are is checked by itself.
#include "base/text/utf8.h"
#include "pipeline/model/observation.h"
#include "receivers/decode/log/log.h"
#include "tests/fuzz/fuzz.h"

enum { SOURCES = 2, SIGNAL_MAX = 64, LINK_MAX = 9999 };

static void require_text(struct slice text) {
    uint32_t code;
    size_t length;
    for (size_t at = 0; at < text.size; at += length) {
        length = utf8_decode(text, at, &code);
        require(length > 0);
    }
}

static void require_kernel(const struct kernel_line *line) {
    require(line->kind > KERNEL_OTHER && line->kind <= KERNEL_AER);
    const struct slice texts[] = {line->text,   line->process, line->detail, line->unit,
                                  line->action, line->uuid,    line->layer,  line->driver};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        require_text(texts[i]);
    require(line->link >= -1 && line->link <= LINK_MAX && line->pid >= -1);
    require(line->fatal >= KERNEL_FATAL_UNKNOWN && line->fatal <= KERNEL_FATAL_YES);
    if (line->kind == KERNEL_XID || line->kind == KERNEL_GPU_LOST || line->kind == KERNEL_GPU_UUID)
        require(line->address != PCI_NONE && (line->address & 7) == 0);
    if (line->kind == KERNEL_XID || line->kind == KERNEL_SXID)
        require(line->code > 0 && line->code < 1000000);
}

static void require_number(enum fact_key key, int64_t number) {
    require(number >= 0);
    require(key != FACT_SIGNAL || (number > 0 && number <= SIGNAL_MAX));
}

static void require_facts(const struct observation *observation) {
    require(observation->kind > OBSERVATION_NONE && observation->kind < OBSERVATION_KIND_COUNT);
    require_text(observation->text);
    for (uint32_t i = 0; i < observation->fact_count; i++) {
        const struct fact *fact = &observation->facts[i];
        require(i == 0 || observation->facts[i - 1].key < fact->key);
        if (fact_type(fact->key) == FACT_TEXT)
            require_text(fact->text);
        else if (fact_type(fact->key) == FACT_NUMBER)
            require_number(fact->key, fact->number);
        else if (fact_type(fact->key) == FACT_PCI_ADDRESS)
            require(fact->address != PCI_NONE &&
                    (fact->key == FACT_NIC || fact->address == pci_device(fact->address)));
    }
}

static void require_sound(const struct event *event) {
    require(event->time_ns != 0 && event->node != STRING_REFUSED && event->rank == RANK_NONE);
    require(event->kind == EVENT_KERNEL || event->kind == EVENT_OBSERVATION);
    if (event->kind == EVENT_KERNEL)
        require_kernel(event->kernel);
    else
        require_facts(event->observation);
}

static bool same_fact(const struct fact *a, const struct fact *b) {
    if (a->key != b->key)
        return false;
    switch (fact_type(a->key)) {
    case FACT_NUMBER:
        return a->number == b->number;
    case FACT_TEXT:
        return slice_equal(a->text, b->text);
    case FACT_YES_NO:
        return a->yes == b->yes;
    case FACT_PCI_ADDRESS:
        return a->address == b->address;
    }
    return false;
}

static void require_same(const struct event *a, const struct event *b) {
    require(a->kind == b->kind && a->time_ns == b->time_ns && a->node == b->node);
    require(a->position == b->position && a->lines == b->lines);
    if (a->kind == EVENT_KERNEL) {
        require(a->kernel->kind == b->kernel->kind && a->kernel->code == b->kernel->code);
        require(a->kernel->address == b->kernel->address && a->kernel->link == b->kernel->link);
        require(slice_equal(a->kernel->text, b->kernel->text));
        return;
    }
    require(a->observation->kind == b->observation->kind);
    require(a->observation->fact_count == b->observation->fact_count);
    for (uint32_t i = 0; i < a->observation->fact_count; i++)
        require(same_fact(&a->observation->facts[i], &b->observation->facts[i]));
}

struct source {
    void *state;
    struct event event;
    struct decode_fault fault;
    enum decode_category category;
};

// What both sources gave; false at the end.
static bool check(struct source sources[SOURCES]) {
    require(sources[0].category == sources[1].category);
    if (sources[0].category == DECODE_OK) {
        require_sound(&sources[0].event);
        require_same(&sources[0].event, &sources[1].event);
    } else if (decode_refused(sources[0].category)) {
        require(sources[0].fault.category == sources[0].category);
        require(sources[0].fault.detail[0] != '\0');
    }
    return sources[0].category != DECODE_END;
}

static void take_rest(struct source sources[SOURCES], struct arena *arena) {
    do
        for (int i = 0; i < SOURCES; i++)
            sources[i].category = decoder_kernel_log.next(sources[i].state, arena,
                                                          &sources[i].event, &sources[i].fault);
    while (check(sources));
}

static void take(struct source sources[SOURCES], struct slice message, uint64_t position,
                 struct arena *arena) {
    static const char front[] = "[ 7200.000000] ";
    size_t size = sizeof front - 1;
    char *line = memory_take(size + message.size);
    memcpy(line, front, size);
    if (message.size > 0)
        memcpy(line + size, message.data, message.size);
    for (int i = 0; i < SOURCES; i++) {
        sources[i].event = (struct event){.position = position, .lines = 1, .rank = RANK_NONE};
        sources[i].fault = (struct decode_fault){0};
        sources[i].category =
            decoder_kernel_log.decode(sources[i].state, (struct slice){line, size + message.size},
                                      arena, &sources[i].event, &sources[i].fault);
    }
    check(sources);
    take_rest(sources, arena);
    memory_give(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input input = {(const char *)data, size};
    struct decoder_input about = {.path = SLICE("log"),
                                  .boot_ns = UINT64_C(1772431200000000000),
                                  .observed_ns = UINT64_C(1773964800000000000)};
    struct source sources[SOURCES];
    struct arena arena;
    struct slice message;
    uint64_t position = 0;
    arena_init(&arena, 4096);
    for (int i = 0; i < SOURCES; i++) {
        sources[i].state = memory_zero(1, decoder_kernel_log.state_size);
        decoder_kernel_log.begin(sources[i].state, &about);
    }
    while (fuzz_piece(&input, '\n', &message)) {
        take(sources, message, ++position, &arena);
        arena_reset(&arena);
    }
    for (int i = 0; i < SOURCES; i++)
        decoder_kernel_log.finish(sources[i].state);
    take_rest(sources, &arena);
    for (int i = 0; i < SOURCES; i++) {
        require(!decoder_kernel_log.holds(sources[i].state));
        decoder_kernel_log.release(sources[i].state);
        memory_give(sources[i].state);
    }
    arena_release(&arena);
    intern_release();
    return 0;
}
