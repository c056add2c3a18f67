// SPDX-License-Identifier: Apache-2.0
// What is written together, so that a start can go on as if nothing had happened?
//
// With all pipelines and senders held for a moment, what changed is copied into one batch of the
// store: pages of declared state, strings that are new, blocks that wait for exporters, how far
// delivery and sources have come. The store writes it in the background; when it is durable,
// sources' positions become safe and held blocks may leave. One checkpoint at a time. The pipelines
// stand still for a pass over their memory and the copy of what changed.
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "pipeline/runtime/service_state.h"

#include <assert.h>
#include <stdio.h>

#define SENDER_META "sender/"
// Numbers under that name.
enum { META_DELIVERY, META_ASKED_UNTIL };
static const char LAYOUT_META[] = "layout";

// What is kept of a sender beside its blocks; the exporter's own words of delivery follow it.
struct sender_meta {
    uint64_t next_sequence;
    uint64_t delivered_sequence;
};

// -- into the store -----------------------------------------------------------------------------

struct store_sink {
    struct store_batch *batch;
    uint64_t puts;
};

static void sink_put(void *context, const char *name, uint64_t number, struct slice bytes) {
    struct store_sink *sink = context;
    store_put(sink->batch, STORE_STATE, name, number, bytes);
    sink->puts++;
}

static void sink_drop(void *context, const char *name, uint64_t first, uint64_t last) {
    struct store_sink *sink = context;
    store_delete(sink->batch, STORE_STATE, name, first, last);
}

// Calls for every saver there is, pipelines first.
static void each_saver(struct service *service, void (*visit)(struct saver *, void *),
                       void *context) {
    for (uint32_t i = 0; i < service->pipeline_count; i++) {
        struct run_pipeline *pipeline = &service->pipelines[i];
        visit(&pipeline->saver, context);
        for (uint32_t j = 0; j < pipeline->stage_count; j++)
            visit(&pipeline->stages[j].saver, context);
    }
    for (uint32_t i = 0; i < service->exporter_count; i++)
        visit(&service->exporters[i].instance.saver, context);
}

static void save_one(struct saver *saver, void *context) {
    saver_save(saver, context);
}

static void forget_one(struct saver *saver, void *context) {
    (void)context;
    saver_forget(saver);
}

static void save_strings(struct service *service, struct store_batch *batch) {
    string_id last = intern_count();
    for (string_id id = service->saved_strings + 1; id <= last; id++)
        store_put(batch, STORE_STRINGS, "", id, intern_slice(id));
    service->saved_strings = last;
}

// A block's bytes go behind how many records they are.
static void put_block(struct store_batch *batch, const char *id, const struct sender_block *block,
                      struct buffer *scratch) {
    buffer_reset(scratch);
    buffer_append(scratch, (struct slice){(const char *)&block->records, sizeof block->records});
    buffer_append(scratch, buffer_slice(&block->bytes));
    store_put(batch, STORE_QUEUE, id, block->sequence, buffer_slice(scratch));
}

static void meta_of(const struct sender *sender, struct buffer *out) {
    struct sender_meta meta = {sender->next_sequence, sender->delivered_sequence};
    buffer_reset(out);
    buffer_append(out, (struct slice){(const char *)&meta, sizeof meta});
    buffer_append(out, buffer_slice(&sender->delivered));
}

// Under the sender's lock.
static void save_sender(struct run_exporter *exporter, struct store_batch *batch,
                        struct buffer *scratch) {
    struct sender *sender = &exporter->sender;
    const char *id = exporter->instance.component->id;
    char name[SITE_MAX];
    snprintf(name, sizeof name, SENDER_META "%s", id);
    sender_close_block(sender);
    for (uint32_t i = 0; i < sender->block_count; i++) {
        const struct sender_block *block = sender_block_at(sender, i);
        if (block->ticket == 0 && block->bytes.size + sizeof block->records <= STORE_BLOB_MAX)
            put_block(batch, id, block, scratch);
    }
    if (sender->persisted_from <= sender->delivered_sequence) {
        store_delete(batch, STORE_QUEUE, id, sender->persisted_from, sender->delivered_sequence);
        sender->persisted_from = sender->delivered_sequence + 1;
    }
    meta_of(sender, scratch);
    store_put(batch, STORE_META, name, META_DELIVERY, buffer_slice(scratch));
    uint64_t until = sender_asked_until_unix_ns(sender);
    store_put(batch, STORE_META, name, META_ASKED_UNTIL,
              (struct slice){(const char *)&until, sizeof until});
    exporter->saved_asked = sender->asked_until_ns;
    exporter->saved_next = sender->next_sequence;
    exporter->saved_delivered = sender->delivered_sequence;
}

void service_lock_runners(struct service *service) {
    for (uint32_t i = 0; i < service->pipeline_count; i++)
        pthread_mutex_lock(&service->pipelines[i].runner.lock);
}

void service_unlock_runners(struct service *service) {
    for (uint32_t i = service->pipeline_count; i-- > 0;)
        pthread_mutex_unlock(&service->pipelines[i].runner.lock);
}

static void lock_senders(struct service *service, bool lock) {
    for (uint32_t i = 0; i < service->exporter_count; i++) {
        if (lock)
            sender_lock(&service->exporters[i].sender);
        else
            sender_unlock(&service->exporters[i].sender);
    }
}

static bool anything_changed(const struct service *service) {
    if (service->rewrite)
        return true;
    for (uint32_t i = 0; i < service->pipeline_count; i++)
        if (service->pipelines[i].runner.changed)
            return true;
    for (uint32_t i = 0; i < service->exporter_count; i++) {
        const struct run_exporter *exporter = &service->exporters[i];
        if (exporter->sender.next_sequence != exporter->saved_next ||
            exporter->sender.delivered_sequence != exporter->saved_delivered ||
            exporter->sender.asked_until_ns != exporter->saved_asked)
            return true;
    }
    return false;
}

static void mark_positions(struct service *service) {
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

static void replace_all(struct service *service, struct store_batch *batch) {
    store_delete_names(batch, STORE_STATE, "");
    store_delete_names(batch, STORE_STRINGS, "");
    store_delete_names(batch, STORE_QUEUE, "");
    store_delete_names(batch, STORE_META, SENDER_META);
    service->saved_strings = STRING_NONE;
    service->rewrite = false;
    each_saver(service, forget_one, NULL);
    uint32_t layout = STATE_LAYOUT;
    store_put(batch, STORE_META, LAYOUT_META, 0,
              (struct slice){(const char *)&layout, sizeof layout});
    for (uint32_t i = 0; i < service->exporter_count; i++) {
        struct sender *sender = &service->exporters[i].sender;
        for (uint32_t j = 0; j < sender->block_count; j++)
            sender_block_at(sender, j)->ticket = 0;
    }
}

static void write_checkpoint(struct service *service) {
    struct store_sink to = {.batch = store_batch_new(service->store)};
    struct blob_sink sink = {&to, sink_put, sink_drop};
    struct buffer scratch;
    buffer_init(&scratch, STORE_BLOB_MAX + 4096);
    if (service->rewrite)
        replace_all(service, to.batch);
    for (uint32_t i = 0; i < service->pipeline_count; i++)
        runner_prepare_state(&service->pipelines[i].runner);
    each_saver(service, save_one, &sink);
    save_strings(service, to.batch);
    for (uint32_t i = 0; i < service->exporter_count; i++)
        save_sender(&service->exporters[i], to.batch, &scratch);
    mark_positions(service);
    service->ticket = store_submit_checkpoint(to.batch);
    for (uint32_t i = 0; i < service->exporter_count; i++) {
        struct sender *sender = &service->exporters[i].sender;
        for (uint32_t j = 0; j < sender->block_count; j++)
            if (sender_block_at(sender, j)->ticket == 0)
                sender_block_at(sender, j)->ticket = service->ticket;
    }
    buffer_release(&scratch);
}

void service_checkpoint(struct service *service, bool locked) {
    if (service->store == NULL || service->ticket != 0)
        return;
    atomic_store(&service->checkpoint_asked, false);
    service->checkpoint_ns = clock_monotonic_ns();
    if (!locked)
        service_lock_runners(service);
    lock_senders(service, true);
    if (anything_changed(service))
        write_checkpoint(service);
    lock_senders(service, false);
    if (!locked)
        service_unlock_runners(service);
}

static void publish(struct service *service, bool locked) {
    if (service->ticket == 0 || store_durable(service->store) < service->ticket)
        return;
    service->durable = service->ticket;
    service->ticket = 0;
    for (uint32_t i = 0; i < service->pipeline_count; i++) {
        struct runner *runner = &service->pipelines[i].runner;
        if (!locked)
            pthread_mutex_lock(&runner->lock);
        for (uint32_t row = 0; row < runner->sources.used; row++) {
            struct runner_source *source = runner_source_at(runner, row);
            if (source->in_use)
                source->safe = source->pending;
        }
        if (!locked)
            pthread_mutex_unlock(&runner->lock);
    }
    for (uint32_t i = 0; i < service->exporter_count; i++)
        sender_durable(&service->exporters[i].sender, service->durable);
}

void service_checkpoint_publish(struct service *service) {
    publish(service, false);
}

static void wait_durable(struct service *service, uint64_t deadline_ns, bool locked) {
    uint64_t now = clock_monotonic_ns();
    struct error error;
    if (service->ticket == 0 || deadline_ns <= now)
        return;
    if (store_wait(service->store, service->ticket, deadline_ns - now, &error) == STATUS_OK)
        publish(service, locked);
}

static void checkpoint_and_wait(struct service *service, uint64_t deadline_ns, bool locked) {
    if (service->store == NULL)
        return;
    wait_durable(service, deadline_ns, locked);
    service_checkpoint(service, locked);
    wait_durable(service, deadline_ns, locked);
}

void service_checkpoint_finish(struct service *service, uint64_t deadline_ns) {
    checkpoint_and_wait(service, deadline_ns, false);
}

void service_checkpoint_now(struct service *service, uint64_t deadline_ns) {
    checkpoint_and_wait(service, deadline_ns, true);
}

bool service_checkpoint_senders(struct service *service, uint64_t deadline_ns) {
    if (service->store == NULL)
        return false;
    // Were the checkpoint before it still on its way, this one would say of blocks that they are
    // kept which are not.
    wait_durable(service, deadline_ns, false);
    if (service->ticket != 0)
        return false;
    struct store_batch *batch = store_batch_new(service->store);
    struct store_sink to = {.batch = batch};
    struct blob_sink sink = {&to, sink_put, sink_drop};
    struct buffer scratch;
    buffer_init(&scratch, STORE_BLOB_MAX + 4096);
    lock_senders(service, true);
    for (uint32_t i = 0; i < service->exporter_count; i++) {
        saver_save(&service->exporters[i].instance.saver, &sink);
        save_sender(&service->exporters[i], batch, &scratch);
    }
    save_strings(service, batch);
    lock_senders(service, false);
    buffer_release(&scratch);
    service->ticket = store_submit_checkpoint(batch);
    wait_durable(service, deadline_ns, false);
    return service->ticket == 0;
}

// -- into memory --------------------------------------------------------------------------------

static void image_sink_put(void *context, const char *name, uint64_t number, struct slice bytes) {
    image_put(context, name, number, bytes);
}

static void image_sink_drop(void *context, const char *name, uint64_t first, uint64_t last) {
    (void)context;
    (void)name;
    (void)first;
    (void)last;
}

// Names of blobs that are not pages, in an image.
#define IMAGE_QUEUE "queue:"
#define IMAGE_META  "meta:"

static void image_sender(struct image *image, struct run_exporter *exporter,
                         struct buffer *scratch) {
    struct sender *sender = &exporter->sender;
    char name[SITE_MAX];
    snprintf(name, sizeof name, IMAGE_QUEUE "%s", exporter->instance.component->id);
    sender_close_block(sender);
    for (uint32_t i = 0; i < sender->block_count; i++) {
        const struct sender_block *block = sender_block_at(sender, i);
        buffer_reset(scratch);
        buffer_append(scratch,
                      (struct slice){(const char *)&block->records, sizeof block->records});
        buffer_append(scratch, buffer_slice(&block->bytes));
        image_put(image, name, block->sequence, buffer_slice(scratch));
    }
    snprintf(name, sizeof name, IMAGE_META SENDER_META "%s", exporter->instance.component->id);
    meta_of(sender, scratch);
    image_put(image, name, META_DELIVERY, buffer_slice(scratch));
    uint64_t until = sender_asked_until_unix_ns(sender);
    image_put(image, name, META_ASKED_UNTIL, (struct slice){(const char *)&until, sizeof until});
}

struct image *service_image(struct service *service) {
    struct image *image = image_new();
    struct blob_sink sink = {image, image_sink_put, image_sink_drop};
    struct buffer scratch;
    buffer_init(&scratch, SENDER_BLOCK_BYTES + 4096);
    for (uint32_t i = 0; i < service->pipeline_count; i++)
        runner_prepare_state(&service->pipelines[i].runner);
    each_saver(service, forget_one, NULL);
    each_saver(service, save_one, &sink);
    for (uint32_t i = 0; i < service->exporter_count; i++)
        image_sender(image, &service->exporters[i], &scratch);
    buffer_release(&scratch);
    return image;
}

// -- from the store -----------------------------------------------------------------------------

struct reading {
    struct image *image;
    const char *prefix;
    uint64_t count;
};

static bool read_blob(void *context, const char *name, uint64_t number, struct slice bytes) {
    struct reading *reading = context;
    char full[512];
    snprintf(full, sizeof full, "%s%s", reading->prefix, name);
    image_put(reading->image, full, number, bytes);
    reading->count++;
    return true;
}

static bool read_string(void *context, const char *name, uint64_t number, struct slice bytes) {
    struct reading *reading = context;
    (void)name;
    if (number <= UINT32_MAX)
        image_put_string(reading->image, (string_id)number, bytes);
    return true;
}

enum status service_read_store(struct service *service, struct image **out, struct error *error) {
    struct reading reading = {.image = image_new(), .prefix = IMAGE_META};
    image_strings_are_foreign(reading.image);
    struct store *store = service->store;
    enum status status =
        store_scan(store, STORE_META, NULL, 0, UINT64_MAX, read_blob, &reading, error);
    reading.prefix = "";
    if (status == STATUS_OK)
        status =
            store_scan(store, STORE_STRINGS, NULL, 0, UINT64_MAX, read_string, &reading, error);
    if (status == STATUS_OK)
        status = store_scan(store, STORE_STATE, NULL, 0, UINT64_MAX, read_blob, &reading, error);
    reading.prefix = IMAGE_QUEUE;
    if (status == STATUS_OK)
        status = store_scan(store, STORE_QUEUE, NULL, 0, UINT64_MAX, read_blob, &reading, error);
    bool any = reading.count > 0;
    if (status != STATUS_OK || !any) {
        image_free(reading.image);
        reading.image = NULL;
    }
    *out = reading.image;
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
                           struct image *image) {
    saver_load(saver, image);
    if (type->restored != NULL)
        type->restored(memory);
}

// Stages up to the first that does not fit; all or nothing when something is damaged.
static void restore_pipeline(struct run_pipeline *pipeline, struct image *image) {
    enum saver_answer answer = saver_check(&pipeline->saver, image);
    uint32_t fits = 0;
    if (answer == SAVER_WHOLE) {
        for (; fits < pipeline->stage_count; fits++) {
            const struct saver *saver = &pipeline->stages[fits].saver;
            enum saver_answer stage = saver_check(saver, image);
            if (stage == SAVER_WHOLE)
                continue;
            say_left_aside(saver, stage);
            if (stage == SAVER_DAMAGED)
                return;
            break;
        }
    } else {
        say_left_aside(&pipeline->saver, answer);
        return;
    }
    saver_load(&pipeline->saver, image);
    runner_restored(&pipeline->runner, clock_monotonic_ns(), !image_is_foreign(image));
    for (uint32_t i = 0; i < fits; i++)
        load_component(&pipeline->stages[i].saver, pipeline->stages[i].component->type,
                       pipeline->stages[i].memory, image);
}

static enum status restore_sender(struct run_exporter *exporter, struct image *image,
                                  struct error *error) {
    char name[SITE_MAX];
    snprintf(name, sizeof name, IMAGE_META SENDER_META "%s", exporter->instance.component->id);
    struct slice bytes;
    struct sender_meta meta;
    uint64_t until;
    if (image_get(image, name, META_ASKED_UNTIL, &bytes) && bytes.size == sizeof until) {
        memcpy(&until, bytes.data, sizeof until);
        sender_hold_until(&exporter->sender, until);
    }
    if (!image_get(image, name, META_DELIVERY, &bytes) || bytes.size < sizeof meta)
        return STATUS_OK;
    memcpy(&meta, bytes.data, sizeof meta);
    struct slice delivered = {bytes.data + sizeof meta, bytes.size - sizeof meta};
    enum status status = sender_resume(&exporter->sender, meta.next_sequence,
                                       meta.delivered_sequence, delivered, error);
    snprintf(name, sizeof name, IMAGE_QUEUE "%s", exporter->instance.component->id);
    uint64_t sequence = meta.delivered_sequence + 1;
    for (; status == STATUS_OK && sequence < meta.next_sequence; sequence++) {
        uint64_t records = 0;
        if (!image_get(image, name, sequence, &bytes) || bytes.size < sizeof records) {
            log_write(LOG_ERROR, (struct log_site){"C5004", exporter->instance.site},
                      "block %llu, which waited for delivery, is missing in the store",
                      (unsigned long long)sequence);
            continue;
        }
        memcpy(&records, bytes.data, sizeof records);
        bytes.data += sizeof records;
        bytes.size -= sizeof records;
        sender_restore_block(&exporter->sender, sequence, bytes, records);
    }
    return status;
}

static void say_dropped_queues(const struct service *service, const struct image *image) {
    uint32_t at = 0;
    const char *name, *said = "";
    uint64_t number;
    struct slice bytes;
    while (image_next(image, &at, &name, &number, &bytes)) {
        if (strncmp(name, IMAGE_QUEUE, sizeof IMAGE_QUEUE - 1) != 0 || strcmp(name, said) == 0)
            continue;
        said = name;
        bool known = false;
        for (uint32_t i = 0; i < service->exporter_count && !known; i++)
            known = strcmp(service->exporters[i].instance.component->id,
                           name + sizeof IMAGE_QUEUE - 1) == 0;
        if (!known)
            log_write(LOG_WARN, (struct log_site){.code = "C5005"},
                      "no pipeline writes to the exporter %s any more: what waited for it is "
                      "dropped",
                      name + sizeof IMAGE_QUEUE - 1);
    }
}

enum status service_restore(struct service *service, struct image *image, struct error *error) {
    for (uint32_t i = 0; i < service->pipeline_count; i++)
        restore_pipeline(&service->pipelines[i], image);
    for (uint32_t i = 0; i < service->exporter_count; i++) {
        struct run_exporter *exporter = &service->exporters[i];
        struct saver *saver = &exporter->instance.saver;
        enum saver_answer answer = saver_check(saver, image);
        if (answer == SAVER_WHOLE)
            load_component(saver, exporter->instance.component->type, exporter->instance.memory,
                           image);
        enum status status = restore_sender(exporter, image, error);
        if (status != STATUS_OK)
            return status;
    }
    say_dropped_queues(service, image);
    for (uint32_t i = 0; i < service->receiver_count; i++) {
        struct run_receiver *receiver = &service->receivers[i];
        receiver->restored_rows = receiver->runners[0]->sources.used;
    }
    return STATUS_OK;
}
