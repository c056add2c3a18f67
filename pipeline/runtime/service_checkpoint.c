// SPDX-License-Identifier: Apache-2.0
// What is written together, so that a start goes on as if nothing had happened.
//
// With all pipelines and senders held for a moment, what changed is copied into one batch of the
// store: pages of declared state, strings that are new, blocks that wait for exporters, how far
// delivery and sources have come. The store writes it in the background; when it is durable,
// sources' positions become safe and held blocks may leave. One checkpoint at a time. The pipelines
// stand still for a pass over their memory and the copy of what changed. At a reload the same goes,
// whole, into a snapshot in memory.
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "pipeline/runtime/service_state.h"

#include <assert.h>
#include <stdio.h>

#define SENDER_META "sender/"
// Numbers under that name.
enum { META_DELIVERY, META_ASKED_UNTIL, META_TAKEN };
static const char LAYOUT_META[] = "layout";

// What is kept of a sender beside its blocks; the exporter's own words of delivery follow it.
struct sender_meta {
    uint64_t next_sequence;
    uint64_t delivered_sequence;
};

// How much of the first block that waits was delivered already.
struct taken_meta {
    uint64_t bytes;
    uint64_t records;
};

// -- what is written ----------------------------------------------------------------------------

static void write_saver(struct saver *saver, const struct blob_sink *sink, bool all) {
    if (all)
        saver_forget(saver);
    saver_save(saver, sink);
}

// What pipelines, their stages and exporters remember: what changed, or `all` of it.
static void write_states(struct service *service, const struct blob_sink *sink, bool all) {
    for (uint32_t i = 0; i < service->pipeline_count; i++) {
        struct run_pipeline *pipeline = &service->pipelines[i];
        runner_prepare_state(&pipeline->runner);
        write_saver(&pipeline->saver, sink, all);
        for (uint32_t j = 0; j < pipeline->stage_count; j++)
            write_saver(&pipeline->stages[j].saver, sink, all);
    }
    for (uint32_t i = 0; i < service->exporter_count; i++) {
        write_saver(&service->exporters[i].instance.saver, sink, all);
        write_saver(&service->exporters[i].route_saver, sink, all);
    }
}

// Strings that are new since the last time.
static void write_strings(struct service *service, const struct blob_sink *sink) {
    string_id last = intern_count();
    for (string_id id = service->saved_strings + 1; id <= last; id++)
        sink->put(sink->context, STORAGE_STRINGS, "", id, intern_slice(id));
    service->saved_strings = last;
}

static void put_meta(const struct blob_sink *sink, const char *id, uint64_t number,
                     const void *bytes, size_t size) {
    char name[SITE_MAX];
    snprintf(name, sizeof name, SENDER_META "%s", id);
    sink->put(sink->context, STORAGE_META, name, number, (struct slice){bytes, size});
}

// A block's bytes go behind how many records they are.
static void put_block(const struct blob_sink *sink, const char *id, const struct block *block,
                      struct buffer *scratch) {
    assert(block->sequence > 0);
    buffer_reset(scratch);
    buffer_append(scratch, (struct slice){(const char *)&block->records, sizeof block->records});
    buffer_append(scratch, buffer_slice(&block->bytes));
    sink->put(sink->context, STORAGE_QUEUE, id, block->sequence, buffer_slice(scratch));
}

static struct sender_progress progress_of(const struct sender *sender) {
    assert(lock_is_held(&sender->lock));
    const struct block_queue *queue = &sender->queue;
    return (struct sender_progress){queue->next_sequence, queue->delivered_sequence,
                                    queue->taken_bytes, sender->retry.asked_until_ns};
}

// How far delivery has come, and the blocks that wait: all, or those that no checkpoint holds yet.
static void write_sender(struct run_exporter *exporter, const struct blob_sink *sink, bool all,
                         struct buffer *scratch) {
    struct sender *sender = &exporter->sender;
    const struct block_queue *queue = &sender->queue;
    const char *id = exporter->instance.component->id;
    assert(lock_is_held(&sender->lock));
    sender_close_block(sender);
    for (uint32_t i = 0; i < queue->count; i++) {
        const struct block *block = block_queue_at(queue, i);
        bool fits = block->bytes.size + sizeof block->records <= STORAGE_BLOB_MAX;
        if (all || (block->ticket == 0 && fits))
            put_block(sink, id, block, scratch);
    }
    if (sender->persisted_from <= queue->delivered_sequence && sink->drop != NULL) {
        sink->drop(sink->context, STORAGE_QUEUE, id, sender->persisted_from,
                   queue->delivered_sequence);
        sender->persisted_from = queue->delivered_sequence + 1;
    }
    struct sender_meta meta = {queue->next_sequence, queue->delivered_sequence};
    buffer_reset(scratch);
    buffer_append(scratch, (struct slice){(const char *)&meta, sizeof meta});
    buffer_append(scratch, buffer_slice(&sender->delivered));
    put_meta(sink, id, META_DELIVERY, scratch->data, scratch->size);
    uint64_t until = retry_asked_until_unix_ns(&sender->retry);
    put_meta(sink, id, META_ASKED_UNTIL, &until, sizeof until);
    struct taken_meta taken = {queue->taken_bytes, queue->taken_records};
    put_meta(sink, id, META_TAKEN, &taken, sizeof taken);
    exporter->saved = progress_of(sender);
}

static void write_senders(struct service *service, const struct blob_sink *sink, bool all) {
    struct buffer scratch;
    buffer_init(&scratch, BLOCK_BYTES_MAX + 4096);
    for (uint32_t i = 0; i < service->exporter_count; i++)
        write_sender(&service->exporters[i], sink, all, &scratch);
    buffer_release(&scratch);
}

// -- locks --------------------------------------------------------------------------------------

void service_lock_runners(struct service *service) {
    assert(service->magic == SERVICE_MAGIC);
    for (uint32_t i = 0; i < service->pipeline_count; i++)
        lock_take(&service->pipelines[i].runner.lock);
}

void service_unlock_runners(struct service *service) {
    assert(service->magic == SERVICE_MAGIC);
    for (uint32_t i = service->pipeline_count; i-- > 0;)
        lock_release(&service->pipelines[i].runner.lock);
}

static void lock_senders(struct service *service) {
    for (uint32_t i = 0; i < service->exporter_count; i++)
        lock_take(&service->exporters[i].sender.lock);
}

static void unlock_senders(struct service *service) {
    for (uint32_t i = service->exporter_count; i-- > 0;)
        lock_release(&service->exporters[i].sender.lock);
}

// -- into the store -----------------------------------------------------------------------------

static bool anything_changed(const struct service *service) {
    if (service->rewrite)
        return true;
    for (uint32_t i = 0; i < service->pipeline_count; i++)
        if (service->pipelines[i].runner.changed)
            return true;
    for (uint32_t i = 0; i < service->exporter_count; i++) {
        struct sender_progress now = progress_of(&service->exporters[i].sender);
        if (memcmp(&now, &service->exporters[i].saved, sizeof now) != 0)
            return true;
    }
    return false;
}

static void mark_positions(struct service *service) {
    assert(service->store != NULL);
    for (uint32_t i = 0; i < service->pipeline_count; i++) {
        struct runner *runner = &service->pipelines[i].runner;
        runner->changed = false;
        for (uint32_t row = 0; row < runner->sources.used; row++) {
            struct runner_source *source = runner_source_at(runner, row);
            if (source->in_use)
                source->pending = source->position;
        }
    }
}

static void replace_all(struct service *service, struct storage_batch *batch) {
    assert(service->rewrite);
    storage_delete_names(batch, STORAGE_STATE, "");
    storage_delete_names(batch, STORAGE_STRINGS, "");
    storage_delete_names(batch, STORAGE_QUEUE, "");
    storage_delete_names(batch, STORAGE_META, SENDER_META);
    service->saved_strings = STRING_NONE;
    uint32_t layout = STATE_LAYOUT;
    storage_put(batch, STORAGE_META, LAYOUT_META, 0,
                (struct slice){(const char *)&layout, sizeof layout});
    for (uint32_t i = 0; i < service->exporter_count; i++) {
        struct sender *sender = &service->exporters[i].sender;
        for (uint32_t j = 0; j < sender->queue.count; j++)
            block_queue_at(&sender->queue, j)->ticket = 0;
    }
}

static void write_checkpoint(struct service *service) {
    assert(service->store != NULL);
    assert(service->ticket == 0);
    struct storage_batch *batch = storage_batch_new(service->store);
    struct blob_sink sink = batch_sink(batch);
    if (service->rewrite)
        replace_all(service, batch);
    write_states(service, &sink, service->rewrite);
    service->rewrite = false;
    write_strings(service, &sink);
    write_senders(service, &sink, false);
    mark_positions(service);
    service->ticket = storage_submit_checkpoint(batch);
    for (uint32_t i = 0; i < service->exporter_count; i++) {
        struct block_queue *queue = &service->exporters[i].sender.queue;
        for (uint32_t j = 0; j < queue->count; j++)
            if (block_queue_at(queue, j)->ticket == 0)
                block_queue_at(queue, j)->ticket = service->ticket;
    }
}

void service_checkpoint(struct service *service, bool locked) {
    assert(service->magic == SERVICE_MAGIC);
    if (service->store == NULL || service->ticket != 0)
        return;
    atomic_store(&service->checkpoint_asked, false);
    service->checkpoint_ns = clock_monotonic_ns();
    if (!locked)
        service_lock_runners(service);
    lock_senders(service);
    if (anything_changed(service))
        write_checkpoint(service);
    unlock_senders(service);
    if (!locked)
        service_unlock_runners(service);
}

void service_checkpoint_publish(struct service *service, bool locked) {
    assert(service->magic == SERVICE_MAGIC);
    if (service->ticket == 0 || storage_durable(service->store) < service->ticket)
        return;
    service->durable = service->ticket;
    service->ticket = 0;
    for (uint32_t i = 0; i < service->pipeline_count; i++) {
        struct runner *runner = &service->pipelines[i].runner;
        if (!locked)
            lock_take(&runner->lock);
        for (uint32_t row = 0; row < runner->sources.used; row++) {
            struct runner_source *source = runner_source_at(runner, row);
            if (source->in_use)
                source->safe = source->pending;
        }
        if (!locked)
            lock_release(&runner->lock);
    }
    for (uint32_t i = 0; i < service->exporter_count; i++)
        sender_durable(&service->exporters[i].sender, service->durable);
}

static void wait_durable(struct service *service, uint64_t deadline_ns, bool locked) {
    uint64_t now = clock_monotonic_ns();
    struct error error;
    if (service->ticket == 0 || deadline_ns <= now)
        return;
    if (storage_wait(service->store, service->ticket, deadline_ns - now, &error) == STATUS_OK)
        service_checkpoint_publish(service, locked);
}

void service_checkpoint_finish(struct service *service, uint64_t deadline_ns, bool locked) {
    assert(service->magic == SERVICE_MAGIC);
    if (service->store == NULL)
        return;
    wait_durable(service, deadline_ns, locked);
    service_checkpoint(service, locked);
    wait_durable(service, deadline_ns, locked);
}

bool service_checkpoint_senders(struct service *service, uint64_t deadline_ns) {
    assert(service->magic == SERVICE_MAGIC);
    if (service->store == NULL)
        return false;
    // Were the checkpoint before it still on its way, this one would say of blocks that they are
    // kept which are not.
    wait_durable(service, deadline_ns, false);
    if (service->ticket != 0)
        return false;
    struct storage_batch *batch = storage_batch_new(service->store);
    struct blob_sink sink = batch_sink(batch);
    lock_senders(service);
    for (uint32_t i = 0; i < service->exporter_count; i++) {
        saver_save(&service->exporters[i].instance.saver, &sink);
        saver_save(&service->exporters[i].route_saver, &sink);
    }
    write_senders(service, &sink, false);
    write_strings(service, &sink);
    unlock_senders(service);
    service->ticket = storage_submit_checkpoint(batch);
    wait_durable(service, deadline_ns, false);
    return service->ticket == 0;
}

// -- into memory --------------------------------------------------------------------------------

struct snapshot *service_snapshot(struct service *service) {
    assert(service->magic == SERVICE_MAGIC);
    struct snapshot *snapshot = snapshot_new();
    struct blob_sink sink = snapshot_sink(snapshot);
    write_states(service, &sink, true);
    lock_senders(service);
    write_senders(service, &sink, true);
    unlock_senders(service);
    return snapshot;
}

// -- from the store -----------------------------------------------------------------------------

struct reading {
    struct snapshot *snapshot;
    enum storage_space space;
};

static bool read_blob(void *context, const char *name, uint64_t number, struct slice bytes) {
    const struct reading *reading = context;
    snapshot_put(reading->snapshot, reading->space, name, number, bytes);
    return true;
}

enum status service_read_store(struct service *service, struct snapshot **out,
                               struct error *error) {
    assert(service->magic == SERVICE_MAGIC);
    static const enum storage_space spaces[] = {STORAGE_META, STORAGE_STRINGS, STORAGE_STATE,
                                                STORAGE_QUEUE};
    struct snapshot *snapshot = snapshot_new();
    snapshot_set_foreign(snapshot);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0] && status == STATUS_OK; i++) {
        struct reading reading = {snapshot, spaces[i]};
        status = storage_scan(service->store, spaces[i], NULL, 0, UINT64_MAX, read_blob, &reading,
                              error);
    }
    bool any = status == STATUS_OK && !snapshot_is_empty(snapshot);
    if (!any)
        snapshot_free(snapshot);
    *out = any ? snapshot : NULL;
    return status;
}

// -- going on -----------------------------------------------------------------------------------

static void say_left_aside(const struct saver *saver, enum saver_answer answer) {
    if (answer == SAVER_DAMAGED)
        log_write(LOG_WARN, (struct log_site){.code = "C5002"},
                  "what was kept of %s is damaged: its pipeline begins anew and reads its inputs "
                  "again from where they begin",
                  saver->owner);
    else if (answer == SAVER_OTHER)
        log_write(LOG_INFO, (struct log_site){.code = "C5003"},
                  "%s has other options than when it was kept: it and what follows it in its "
                  "pipeline begin anew",
                  saver->owner);
}

static void load_component(struct saver *saver, const struct component_type *type, void *memory,
                           struct snapshot *snapshot) {
    saver_load(saver, snapshot);
    component_restored(type, memory);
}

// Stages up to the first that does not fit; all or nothing when something is damaged.
static void restore_pipeline(struct run_pipeline *pipeline, struct snapshot *snapshot) {
    enum saver_answer answer = saver_check(&pipeline->saver, snapshot);
    if (answer != SAVER_WHOLE) {
        say_left_aside(&pipeline->saver, answer);
        return;
    }
    uint32_t fits = 0;
    for (; fits < pipeline->stage_count && answer == SAVER_WHOLE; fits += answer == SAVER_WHOLE)
        answer = saver_check(&pipeline->stages[fits].saver, snapshot);
    if (answer != SAVER_WHOLE)
        say_left_aside(&pipeline->stages[fits].saver, answer);
    if (answer == SAVER_DAMAGED)
        return;
    saver_load(&pipeline->saver, snapshot);
    runner_restored(&pipeline->runner, clock_monotonic_ns(), !snapshot_is_foreign(snapshot));
    for (uint32_t i = 0; i < fits; i++)
        load_component(&pipeline->stages[i].saver, pipeline->stages[i].component->type,
                       pipeline->stages[i].memory, snapshot);
}

// A number that is kept of a sender; false when it is not there or has another size.
static bool get_meta(const struct snapshot *snapshot, const char *name, uint64_t number, void *out,
                     size_t size) {
    struct slice bytes;
    bool there = snapshot_get(snapshot, STORAGE_META, name, number, &bytes) && bytes.size == size;
    if (there)
        memcpy(out, bytes.data, size);
    return there;
}

static void restore_blocks(struct run_exporter *exporter, const struct snapshot *snapshot,
                           const struct sender_meta *meta) {
    const char *id = exporter->instance.component->id;
    struct slice bytes;
    for (uint64_t i = meta->delivered_sequence + 1; i < meta->next_sequence; i++) {
        uint64_t records = 0;
        if (!snapshot_get(snapshot, STORAGE_QUEUE, id, i, &bytes) || bytes.size < sizeof records) {
            log_write(LOG_ERROR, (struct log_site){"C5004", exporter->instance.site},
                      "block %llu, which waited for delivery, is missing in the store",
                      (unsigned long long)i);
            continue;
        }
        memcpy(&records, bytes.data, sizeof records);
        bytes = (struct slice){bytes.data + sizeof records, bytes.size - sizeof records};
        block_queue_restore(&exporter->sender.queue, i, bytes, records);
    }
}

static enum status restore_sender(struct run_exporter *exporter, const struct snapshot *snapshot,
                                  struct error *error) {
    char name[SITE_MAX];
    snprintf(name, sizeof name, SENDER_META "%s", exporter->instance.component->id);
    struct sender *sender = &exporter->sender;
    struct slice bytes;
    struct sender_meta meta;
    struct taken_meta taken = {0};
    uint64_t until;
    if (get_meta(snapshot, name, META_ASKED_UNTIL, &until, sizeof until))
        retry_hold_until(&sender->retry, until);
    if (!snapshot_get(snapshot, STORAGE_META, name, META_DELIVERY, &bytes) ||
        bytes.size < sizeof meta)
        return STATUS_OK;
    memcpy(&meta, bytes.data, sizeof meta);
    struct slice delivered = {bytes.data + sizeof meta, bytes.size - sizeof meta};
    enum status status =
        sender_resume(sender, meta.next_sequence, meta.delivered_sequence, delivered, error);
    if (status != STATUS_OK)
        return status;
    restore_blocks(exporter, snapshot, &meta);
    if (get_meta(snapshot, name, META_TAKEN, &taken, sizeof taken) &&
        !block_queue_restore_taken(&sender->queue, taken.bytes, taken.records))
        log_write(LOG_WARN, (struct log_site){"C5004", exporter->instance.site},
                  "how much of the first waiting block was delivered is not known: it is sent "
                  "again as a whole");
    return STATUS_OK;
}

// Without it the sink is told again what stands.
static void restore_route(struct run_exporter *exporter, struct snapshot *snapshot) {
    struct saver *saver = &exporter->route_saver;
    enum saver_answer answer = saver_check(saver, snapshot);
    if (answer == SAVER_WHOLE && saver->list.count > 0) {
        saver_load(saver, snapshot);
        sender_route_restored(&exporter->sender.route);
    } else if (answer == SAVER_DAMAGED) {
        log_write(
            LOG_WARN, (struct log_site){"C5006", exporter->instance.site},
            "what was kept of the verdicts that it was told is damaged: it may be told again");
    }
}

static bool has_exporter(const struct service *service, const char *id) {
    for (uint32_t i = 0; i < service->exporter_count; i++)
        if (strcmp(service->exporters[i].instance.component->id, id) == 0)
            return true;
    return false;
}

// Blobs of one name stand together.
static void say_dropped_queues(const struct service *service, const struct snapshot *snapshot) {
    uint32_t at = 0;
    const char *said = "";
    for (const char *id; (id = snapshot_next(snapshot, STORAGE_QUEUE, &at)) != NULL; said = id)
        if (strcmp(id, said) != 0 && !has_exporter(service, id))
            log_write(LOG_WARN, (struct log_site){.code = "C5005"},
                      "no pipeline writes to the exporter %s any more: what waited for it is "
                      "dropped",
                      id);
}

enum status service_restore(struct service *service, struct snapshot *snapshot,
                            struct error *error) {
    assert(service->magic == SERVICE_MAGIC);
    for (uint32_t i = 0; i < service->pipeline_count; i++)
        restore_pipeline(&service->pipelines[i], snapshot);
    for (uint32_t i = 0; i < service->exporter_count; i++) {
        struct run_exporter *exporter = &service->exporters[i];
        struct saver *saver = &exporter->instance.saver;
        enum saver_answer answer = saver_check(saver, snapshot);
        if (answer == SAVER_WHOLE)
            load_component(saver, exporter->instance.component->type, exporter->instance.memory,
                           snapshot);
        restore_route(exporter, snapshot);
        enum status status = restore_sender(exporter, snapshot, error);
        if (status != STATUS_OK)
            return status;
    }
    say_dropped_queues(service, snapshot);
    for (uint32_t i = 0; i < service->receiver_count; i++) {
        struct run_receiver *receiver = &service->receivers[i];
        receiver->restored_rows = receiver->runners[0]->sources.used;
    }
    return STATUS_OK;
}
