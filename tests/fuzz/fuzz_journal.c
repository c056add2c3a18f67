// SPDX-License-Identifier: Apache-2.0
// Whatever the store holds in the place of journal entries and remembered keys, the HTTP receiver
// starts, and numbers never go back.
//
// The input is blobs, each behind two bytes: its kind and number, and its size. They are read at a
// start over a store in memory, twice in a row, as after a reload.
#include "tests/receivers/fake_feed.c"
#include "tests/receivers/fake_store.c"

#include "base/intern.h"
#include "base/log.h"
#include "receivers/decode/telemetry/telemetry.h"
#include "receivers/http/receiver.h"
#include "tests/fuzz/fuzz.h"

enum { ROWS_MAX = 60 }; // what a batch of the store in memory takes

static const struct component_context context = {.id = "http", .site = "receiver/http"};

static void rows_put(struct storage *store, struct fuzz_input *input) {
    struct storage_batch *batch = storage_batch_new(store);
    for (int i = 0; i < ROWS_MAX && input->left > 1; i++) {
        uint8_t what = fuzz_byte(input);
        size_t size = fuzz_byte(input);
        if (size > input->left)
            size = input->left;
        storage_put(batch, what & 0x80 ? STORAGE_REPEATS : STORAGE_JOURNAL, "http",
                    (what & 0x7f) + 1u, (struct slice){input->at, size});
        input->at += size;
        input->left -= size;
    }
    (void)storage_submit(batch);
}

static void restore(struct storage *store, struct feed *feed, const struct http_config *config) {
    struct http_receiver receiver = {
        .config = config, .context = &context, .store = store, .decoder = &decoder_stormlog};
    struct error error = {0};
    lock_init(&receiver.lock);
    repeats_init(&receiver.repeats, 4);
    receiver.source = feed_source(feed, SLICE("http"));
    if (feed_source_decoder(receiver.source) == NULL)
        feed_source_format(receiver.source, &decoder_stormlog, &(struct decoder_input){0});
    atomic_store(&receiver.feed, feed);
    require(http_journal_restore(&receiver, &error) == STATUS_OK);
    // What comes next must not take the number of what is there.
    require(receiver.sequence >= storage_last_number(store, STORAGE_JOURNAL, "http"));
    require(receiver.sequence >= storage_last_number(store, STORAGE_REPEATS, "http"));
    require(receiver.sequence >= receiver.source->restored.number);
    require(receiver.repeats.count <= 4);
    if (http_journal_needs_tending(&receiver))
        http_journal_tend(&receiver);
    repeats_release(&receiver.repeats);
    lock_destroy(&receiver.lock);
}

int LLVMFuzzerInitialize(int *argument_count, char ***arguments) {
    (void)argument_count;
    (void)arguments;
    log_configure(LOG_ERROR, LOG_CONSOLE);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct http_config config = {.ack = ACK_STORED, .max_idempotency_keys = 4};
    struct fuzz_input input = {(const char *)data, size};
    struct storage *store = fake_store_create();
    struct feed *feed = fake_feed_create();
    struct source *source = feed_source(feed, SLICE("http"));
    source->restored.number = fuzz_byte(&input) % 16;
    source->reached = source->flushed = source->restored;
    rows_put(store, &input);
    restore(store, feed, &config);
    restore(store, feed, &config);
    fake_feed_free(feed);
    fake_store_free(store);
    intern_release();
    return 0;
}
