// SPDX-License-Identifier: Apache-2.0
// Carries a receiver's events into its pipelines, and says when it must wait.
//
// Runs on the receiver's thread: it takes each pipeline's lock in turn and carries the batch
// through. A pipeline that is held up holds up only receivers that have no journal; with one it is
// passed over and takes the entries up later.
#include "base/clock.h"
#include "base/memory.h"
#include "pipeline/component/feed.h"
#include "pipeline/runtime/service_state.h"

#include <assert.h>

static struct run_receiver *receiver_of(void *context) {
    struct run_receiver *receiver = context;
    assert(receiver->magic == RECEIVER_MAGIC);
    return receiver;
}

// Whether this pipeline is to take an entry of a journal: the one that follows what it has.
static bool takes_entry(const struct run_receiver *receiver, uint32_t index,
                        const struct delivery *delivery) {
    assert(lock_is_held(&receiver->runners[index]->lock));
    const struct runner *runner = receiver->runners[index];
    for (uint32_t i = 0; i < delivery->touched_count; i++) {
        const struct source *source = delivery->touched[i];
        uint64_t has = runner_source_at(runner, source->rows[index])->position.number;
        if (source->journal && source->reached.number != has + 1)
            return false;
    }
    return !runner_is_full(runner);
}

static void wake_if_dozing(struct service *service) {
    if (atomic_load_explicit(&service->dozing, memory_order_relaxed) &&
        atomic_exchange(&service->dozing, false))
        service_wake(service);
}

// Whether the main loop has to look earlier than it meant to: something is unsaved that all was
// saved before, or a silence ends. Else more input only puts off what it waits for.
static bool ends_rest(const struct run_receiver *receiver, const struct runner *runner,
                      const struct delivery *delivery) {
    assert(lock_is_held(&runner->lock));
    if (runner->once || !runner->changed || runner->state.idle_judged ||
        runner->state.newest_ns == 0)
        return true;
    // Places have no events and never hold anything back.
    for (uint32_t i = 0; i < delivery->touched_count; i++)
        if (delivery->touched[i]->times.count != 0 &&
            runner_source_at(runner, receiver->rows[i])->left)
            return true;
    return false;
}

// Returns whether the main loop is to look.
static bool deliver_to(struct run_receiver *receiver, uint32_t index,
                       const struct delivery *delivery) {
    assert(index < receiver->runner_count);
    assert(lock_is_held(&receiver->runners[index]->lock));
    struct runner *runner = receiver->runners[index];
    for (uint32_t i = 0; i < delivery->touched_count; i++)
        receiver->rows[i] = delivery->touched[i]->rows[index];
    bool wakes = ends_rest(receiver, runner, delivery);
    runner_consume(runner, delivery, receiver->rows);
    // Silence is the main loop's business.
    if (!runner->once)
        (void)runner_advance(runner, delivery->begun_ns);
    for (uint32_t i = 0; i < delivery->touched_count && !wakes && !runner->once; i++)
        wakes = runner_looks_late(runner, receiver->rows[i]);
    return wakes;
}

static void deliver(void *context, const struct delivery *delivery) {
    struct run_receiver *receiver = receiver_of(context);
    if (delivery->touched_count > receiver->row_capacity) {
        receiver->row_capacity = delivery->touched_count * 2;
        receiver->rows = memory_resize(receiver->rows, receiver->row_capacity * sizeof(uint32_t));
    }
    bool journal = feed_has_journal(receiver->feed), wakes = false;
    for (uint32_t i = 0; i < receiver->runner_count; i++) {
        struct runner *runner = receiver->runners[i];
        lock_take(&runner->lock);
        if (!journal || takes_entry(receiver, i, delivery))
            wakes = deliver_to(receiver, i, delivery) || wakes;
        lock_release(&runner->lock);
    }
    if (wakes)
        wake_if_dozing(receiver->service);
}

static void restore(void *context, struct source *source) {
    assert(source->magic == SOURCE_MAGIC);
    struct run_receiver *receiver = receiver_of(context);
    for (uint32_t i = 0; i < receiver->runner_count; i++) {
        struct runner *runner = receiver->runners[i];
        lock_take(&runner->lock);
        source->rows[i] = runner_source_row(runner, receiver->id, source->path);
        if (runner->once) {
            lock_release(&runner->lock);
            continue;
        }
        const struct runner_source *row = runner_source_at(runner, source->rows[i]);
        if (i == 0 || row->position.number < source->restored.number)
            source->restored = row->position;
        // Only where records were held: all else goes on exactly behind what was told.
        uint64_t told = row->told > row->position.number ? row->told : 0;
        if (i == 0 || told < source->told)
            source->told = told;
        lock_release(&runner->lock);
    }
}

// Asked for with indices that rise by one; goes on where it was.
static bool restored_path(void *context, uint32_t index, struct slice *path) {
    struct run_receiver *receiver = receiver_of(context);
    struct runner *runner = receiver->runners[0];
    if (index == 0 || index < receiver->restored_index)
        receiver->restored_at = receiver->restored_index = 0;
    bool found = false;
    lock_take(&runner->lock);
    while (!found && receiver->restored_at < receiver->restored_rows) {
        const struct runner_source *source = runner_source_at(runner, receiver->restored_at++);
        if (!source->in_use || source->receiver != receiver->id)
            continue;
        found = receiver->restored_index++ == index;
        if (found)
            *path = intern_slice(source->path);
    }
    lock_release(&runner->lock);
    return found;
}

static void leave(void *context, struct source *source, bool forget) {
    assert(source->magic == SOURCE_MAGIC);
    struct run_receiver *receiver = receiver_of(context);
    for (uint32_t i = 0; i < receiver->runner_count && !receiver->service->once; i++) {
        struct runner *runner = receiver->runners[i];
        lock_take(&runner->lock);
        runner_source_leave(runner, source->rows[i], forget);
        lock_release(&runner->lock);
    }
    wake_if_dozing(receiver->service);
}

static struct source_position safe(void *context, const struct source *source) {
    assert(source->magic == SOURCE_MAGIC);
    struct run_receiver *receiver = receiver_of(context);
    // `reached` belongs to the receiver's thread, which need not be this one.
    if (receiver->service->once)
        return source->reached;
    struct source_position lowest = {0};
    for (uint32_t i = 0; i < receiver->runner_count; i++) {
        struct runner *runner = receiver->runners[i];
        lock_take(&runner->lock);
        const struct runner_source *row = runner_source_at(runner, source->rows[i]);
        const struct source_position *position =
            receiver->service->store != NULL ? &row->safe : &row->position;
        if (i == 0 || position->number < lowest.number)
            lowest = *position;
        lock_release(&runner->lock);
    }
    return lowest;
}

static bool blocked(void *context) {
    const struct run_receiver *receiver = receiver_of(context);
    if (receiver->service->store != NULL && storage_full(receiver->service->store))
        return true;
    bool journal = feed_has_journal(receiver->feed);
    for (uint32_t i = 0; i < receiver->runner_count; i++) {
        if (!runner_admits(receiver->runners[i]) ||
            (!journal && runner_is_full(receiver->runners[i])))
            return true;
    }
    return false;
}

static uint64_t lag(void *context, const struct source *source) {
    assert(source->magic == SOURCE_MAGIC);
    struct run_receiver *receiver = receiver_of(context);
    uint64_t lowest = 0;
    for (uint32_t i = 0; i < receiver->runner_count; i++) {
        struct runner *runner = receiver->runners[i];
        lock_take(&runner->lock);
        uint64_t has = runner_source_at(runner, source->rows[i])->position.number;
        if (has < source->highest && !runner_is_full(runner) && (lowest == 0 || has + 1 < lowest))
            lowest = has + 1;
        lock_release(&runner->lock);
    }
    return lowest;
}

static bool knows_node(void *context, struct slice name) {
    struct run_receiver *receiver = receiver_of(context);
    bool known = false;
    for (uint32_t i = 0; i < receiver->runner_count && receiver->service->once && !known; i++) {
        struct runner *runner = receiver->runners[i];
        lock_take(&runner->lock);
        known = node_names_knows(&runner->names, name);
        lock_release(&runner->lock);
    }
    return known;
}

// Each feed of inputs that end has one pipeline; with several the first decides for all, so that
// they see the same times.
static int32_t settle_zone(void *context, struct slice path, const struct local_times *times) {
    struct run_receiver *receiver = receiver_of(context);
    if (!receiver->service->once || receiver->runner_count == 0)
        return 0;
    struct runner *runner = receiver->runners[0];
    lock_take(&runner->lock);
    int32_t quarters = runner_settle_zone(runner, path, times);
    lock_release(&runner->lock);
    return quarters;
}

static bool may_settle_zone(void *context) {
    struct run_receiver *receiver = receiver_of(context);
    if (!receiver->service->once || receiver->runner_count == 0)
        return false;
    struct runner *runner = receiver->runners[0];
    lock_take(&runner->lock);
    bool may = runner_may_settle_zone(runner);
    lock_release(&runner->lock);
    return may;
}

static uint64_t latest_ns(void *context) {
    struct run_receiver *receiver = receiver_of(context);
    if (!receiver->service->once || receiver->runner_count == 0)
        return 0;
    struct runner *runner = receiver->runners[0];
    lock_take(&runner->lock);
    uint64_t time_ns = runner_latest_ns(runner);
    lock_release(&runner->lock);
    return time_ns;
}

static uint64_t turn(void *context, uint64_t time_ns) {
    const struct run_receiver *receiver = receiver_of(context);
    uint64_t first = UINT64_MAX;
    for (uint32_t i = 0; i < receiver->runner_count; i++) {
        uint64_t own = runner_turn(receiver->runners[i], time_ns);
        first = own < first ? own : first;
    }
    return first;
}

static void trouble(void *context, const char *sentence) {
    struct run_receiver *receiver = receiver_of(context);
    instance_condition(&receiver->instance, sentence == NULL ? COMPONENT_OK : COMPONENT_RECOVERABLE,
                       sentence);
}

static void caught_up(void *context) {
    struct run_receiver *receiver = receiver_of(context);
    for (uint32_t i = 0; i < receiver->runner_count && !receiver->service->once; i++) {
        struct runner *runner = receiver->runners[i];
        lock_take(&runner->lock);
        assert(runner->holds > 0);
        if (--runner->holds == 0)
            (void)runner_advance(runner, clock_monotonic_ns());
        lock_release(&runner->lock);
    }
    wake_if_dozing(receiver->service);
}

struct feed_outlet receiver_outlet(struct run_receiver *receiver) {
    bool once = receiver->service->once;
    return (struct feed_outlet){.context = receiver,
                                .deliver = deliver,
                                .restore = restore,
                                .restored_path = restored_path,
                                .leave = leave,
                                .safe = safe,
                                .blocked = blocked,
                                .lag = lag,
                                .knows_node = knows_node,
                                .turn = once ? NULL : turn,
                                .settle_zone = settle_zone,
                                .may_settle_zone = may_settle_zone,
                                .latest_ns = latest_ns,
                                .trouble = trouble,
                                .caught_up = caught_up};
}
