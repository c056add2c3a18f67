// SPDX-License-Identifier: Apache-2.0
// Inside the HTTP receiver: its options, its instance, and one request on its way.
//
// A request is cut into items without any lock; then the intake lock is taken and its items are
// offered as one or more entries, each one flush of the feed and, with `ack: stored`, one row of
// the journal. What a pipeline takes is whole entries, so nothing is taken twice in part.
#pragma once

#include "base/hash/hash_index.h"
#include "base/http/server.h"
#include "base/metrics/metrics.h"
#include "base/thread.h"
#include "config/server_options.h"
#include "pipeline/component/component.h"
#include "pipeline/component/feed.h"
#include "pipeline/component/storage.h"
#include "receivers/http/repeats.h"
#include "receivers/http/shares.h"
#include "receivers/records/options.h"
#include "receivers/records/sink.h"

#include <assert.h>
#include <stdatomic.h>

enum http_ack { ACK_ACCEPTED, ACK_STORED };

struct http_timeouts {
    struct duration headers, body, write, idle;
};

struct http_config {
    const char *endpoint;
    int ack; // enum http_ack
    struct record_config records;
    struct byte_size max_request_size;
    struct byte_size max_record_size;
    struct byte_size max_pending_size;
    int64_t max_connections;
    int64_t max_connections_per_address;
    int64_t threads;
    struct http_timeouts timeouts;
    struct tls_server_config tls;
    struct auth_server_config auth;
    int64_t max_idempotency_keys;
    int64_t max_senders;
};

// What is posted and in which form it is answered.
enum http_form { FORM_EVENTS, FORM_FRAMES, FORM_OTLP_JSON, FORM_OTLP_PROTOBUF };

// -- one request --------------------------------------------------------------------------------

enum { HTTP_CODES = 14 }; // statuses that are counted one by one, and the rest
enum { HTTP_ITEMS_MAX = 1 << 20, HTTP_LISTED_MAX = 100, HTTP_FIELD_MAX = 96 };
enum { HTTP_KEY_MAX = 255 };

struct http_item {
    const char *data; // a record; or with `refusal` what is shown of it
    uint32_t size;
    enum decode_category refusal; // DECODE_OK: to be decoded
    const char *why;              // of a refusal, a clause; in static memory or the work's arena
    bool repeated;                // a frame whose number was taken before: nothing is done with it
};

struct http_rejection {
    uint32_t index;
    enum decode_category category;
    char field[HTTP_FIELD_MAX];
    char detail[DECODE_DETAIL_MAX];
};

// What was read of a request, and what became of it. Used again by later requests.
struct http_work {
    struct http_work *next;
    struct http_item *items;
    uint32_t count;
    uint32_t capacity;
    bool frames;        // the items are frames of another culprit, whole
    struct arena arena; // records that were made from the body
    const char *key;    // Idempotency-Key, or NULL
    struct repeat_result result;
    bool repeated;
    uint64_t ticket; // of the store; 0: nothing to wait for
    // Telemetry among its items that was decoded before the intake lock was taken, in their order:
    // `position` says which item, and what they point to is in `arena`.
    void *decoding; // state of decoder_stormlog; NULL until needed
    struct event *foreseen;
    uint32_t foreseen_count, foreseen_capacity;
    uint32_t foreseen_next; // to be offered
    // The rows of its entries as the journal has them, but for their positions, each behind its
    // size; made once, by whoever finds `packed` unset.
    bool packed;
    char *rows;
    size_t rows_size, rows_capacity;
    struct buffer plain; // what the row at hand holds
    void *lz4;           // the state of LZ4's compressor; NULL until needed
    uint32_t listed;
    struct http_rejection rejections[HTTP_LISTED_MAX];
};

// Why a request is refused as a whole.
struct http_fault {
    int status; // 0: it is not
    const char *code;
    uint32_t retry_after_s;
    char message[512];
};

void http_fault_set(struct http_fault *fault, int status, const char *code, const char *format, ...)
    PRINTF_LIKE(4, 5);

// -- what other culprits send (frames.c) ----------------------------------------------------------

// One that posts frames. Its source has the number of its last frame that was taken.
struct http_sender {
    struct source *source;
    uint64_t sequence; // of the last frame that was taken, also of one that is not offered yet
    uint64_t reached;  // of the last frame that was offered
    uint64_t used;     // when, in entries
    uint32_t size;
    char name[];
};

struct http_senders {
    struct http_sender **items; // in no order
    uint32_t count, capacity;
    struct hash_index by_name; // places in `items`
};

// -- the receiver -------------------------------------------------------------------------------

// A request whose answer waits for the store.
struct http_waiting {
    struct http_exchange *exchange;
    struct http_response *response;
    enum http_form form;
    uint64_t ticket;
    uint64_t until_ns;
};

struct http_completer {
    pthread_t thread;
    bool running;
    struct lock lock;
    pthread_cond_t changed;
    bool ending;
    struct http_waiting *items;
    uint32_t count;
    uint32_t capacity;
};

enum { HTTP_RECEIVER_MAGIC = 0x68747470 };

struct http_receiver {
    uint32_t magic; // HTTP_RECEIVER_MAGIC once it was started
    const struct http_config *config;
    const struct component_context *context;
    struct http_server *server;
    const struct decoder_type *decoder; // of the records at /v1/events
    struct storage *store;              // NULL: there is none
    // Requests go into the journal: with `ack: stored`, and where an earlier run left entries.
    bool journaling;
    struct http_completer completer;
    struct metric *answers[HTTP_CODES];
    int wake; // eventfd: the journal has something to look after

    struct lock work_lock;
    struct http_work *spare;

    struct lock lock;            // the intake lock: of the feed and of what follows
    _Atomic(struct feed *) feed; // NULL before and after the receiver runs
    atomic_bool restoring;       // the journal is being read
    struct source *source;
    struct record_sink sink;
    uint64_t sequence;    // of the last entry; they follow one another without gaps
    uint64_t records;     // offered so far
    uint64_t journal_end; // number of the last row that was put
    uint64_t deleted_to;  // rows up to this one are gone
    struct buffer row;
    struct repeats repeats;
    struct http_senders senders;
    struct metric *repeated; // records
    struct http_shares shares;
    atomic_uint_fast64_t blocked_since_ns; // 0: not blocked
};

// The receiver that a callback is given.
static inline struct http_receiver *http_receiver_of(void *context) {
    struct http_receiver *receiver = context;
    assert(receiver != NULL && receiver->magic == HTTP_RECEIVER_MAGIC);
    return receiver;
}

// cut.c: lists the records of a body. `lines`: it was said to be JSON Lines. On a fault nothing is
// to be taken.
void http_cut(const struct http_config *config, struct slice body, bool lines,
              struct http_work *work, struct http_fault *fault);
// False when there are too many.
bool http_item_add(struct http_work *work, struct http_item item);

// frames.c
// Lists the frames of a body.
void http_cut_frames(struct slice body, struct http_work *work, struct http_fault *fault);
// Marks frames that were taken before, so that nothing is done with them, and notes the numbers of
// the others: they are offered, under the same lock.
void http_mark_repeats(struct http_receiver *receiver, struct http_work *work);
// Offers one frame, as one record: whether all of it was taken. A fault is in receiver->sink.
bool http_offer_frame(struct http_receiver *receiver, struct slice bytes, uint64_t position);
// Likewise, once more, from the journal; `state` is of a decoder apart, `arena` its memory. What
// was refused when it came is passed over.
void http_offer_frame_again(struct http_receiver *receiver, struct slice bytes, uint64_t position,
                            void *state, struct arena *arena);
// Notes who sent a frame of the journal, and its number; before anything of its entry is offered.
void http_note_sender(struct http_receiver *receiver, struct slice bytes);
// Nothing more comes for now, of no sender: the request that was offered is over. O(senders).
void http_pass_ends(struct http_receiver *receiver);
// The senders that the checkpoint knew.
void http_senders_restore(struct http_receiver *receiver);
void http_senders_release(struct http_senders *senders);

// foresee.c
// Decodes ahead what is telemetry beyond doubt. Any thread, no lock.
void http_foresee(const struct http_receiver *receiver, struct http_work *work);
// Offers the items from `first` on, up to `end`, that were decoded ahead: how many. Under the lock.
uint32_t http_foreseen_offer(struct http_receiver *receiver, struct http_work *work, uint32_t first,
                             uint32_t end);
void http_foreseen_drop(struct http_work *work);

// intake.c: offers the items, each once; fills work->result and the rejections.
void http_intake(struct http_receiver *receiver, struct http_work *work, struct http_fault *fault);
// Whether nothing may be taken now, and for how long.
bool http_is_blocked(struct http_receiver *receiver, uint32_t *retry_after_s);
// The end of the entry that begins with item `first`.
uint32_t http_entry_end(const struct http_work *work, uint32_t first);

// journal.c
// Makes work->rows of the items, which no longer change. Any thread, no lock.
void http_journal_pack(struct http_work *work);
// Puts the rows of all entries of a request into `batch`, for numbers from receiver->sequence + 1.
void http_repeat_put(struct http_receiver *receiver, const struct http_work *work,
                     struct storage_batch *batch, uint64_t number);
void http_journal_put(struct http_receiver *receiver, struct http_work *work,
                      struct storage_batch *batch);
// Offers what the checkpoint does not hold, and reads the keys; before the first request.
enum status http_journal_restore(struct http_receiver *receiver, struct error *error) MUST_USE;
// Deletes rows that are safe and offers what a pipeline was passed over with.
void http_journal_tend(struct http_receiver *receiver);
bool http_journal_needs_tending(struct http_receiver *receiver);

// wait.c: answers once the store has it.
enum status http_completer_start(struct http_receiver *receiver, struct error *error) MUST_USE;
void http_completer_add(struct http_receiver *receiver, const struct http_waiting *waiting);
void http_completer_stop(struct http_receiver *receiver);

// answers.c
http_handler http_events;
http_handler http_otlp;
http_error_writer http_otlp_error;
// Writes what is wrong with a request; response->status is set.
void http_write_fault(enum http_form form, const char *code, const char *message,
                      struct http_response *response);

struct http_work *http_work_take(struct http_receiver *receiver);
void http_work_give(struct http_receiver *receiver, struct http_work *work);
void http_work_free(struct http_work *work);
