// SPDX-License-Identifier: Apache-2.0
// Whatever a server sends, a connection to RAS comes to an end, and its answer is whole.
//
// The first byte says whether it asks or follows; the rest is what the server sends before it
// closes. A whole answer, and each object of a stream, is read by the decoder as the receiver has
// it read.
#include "receivers/nccl_ras/receiver.h"
#include "receivers/nccl_ras/reply.h"
#include "tests/fuzz/fuzz.h"

#include "base/text/json_write.h"
#include "receivers/decode/tagged/tagged.h"

#include <sys/socket.h>
#include <unistd.h>

enum { SENT_MAX = 32768, STEPS_MAX = 4096 };

int LLVMFuzzerInitialize(int *argument_count, char ***arguments) {
    (void)argument_count;
    (void)arguments;
    return 0;
}

static void decode(struct slice document) {
    struct buffer record;
    struct json_writer json;
    struct arena arena;
    struct decode_fault fault = {0};
    struct event event = {.position = 1};
    uint64_t events = 0;
    buffer_init(&record, 8 * SENT_MAX);
    json_begin(&json, &record, 0);
    json_object_open(&json);
    json_field_text(&json, "source", "nccl_ras");
    json_field_uint(&json, "timestamp_ns", 1773453018000000000);
    json_field_slice(&json, "document", document);
    json_object_close(&json);
    require(!record.failed);
    arena_init(&arena, 4096);
    void *state = memory_zero(1, decoder_tagged.state_size);
    struct decoder_input input = {0};
    decoder_tagged.begin(state, &input);
    (void)decoder_tagged.decode(state, buffer_slice(&record), &arena, &event, &fault);
    while (decoder_tagged.next(state, &arena, &event, &fault) != DECODE_END)
        require(++events < SENT_MAX);
    decoder_tagged.release(state);
    memory_give(state);
    arena_release(&arena);
    buffer_release(&record);
}

static void walk_objects(struct slice text) {
    while (text.size > 0) {
        size_t size = ras_object_size(text);
        if (size == 0 || size == SIZE_MAX)
            return;
        require(size <= text.size);
        struct slice object = {text.data, size}, name = ras_event_name(object);
        require(name.size <= 64);
        if (ras_event_is_lifecycle(name))
            decode(object);
        text = (struct slice){text.data + size, text.size - size};
    }
}

static void talk(bool follows, const uint8_t *data, size_t size) {
    int ends[2];
    struct ras_connection connection;
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    require(size == 0 || write(ends[1], data, size) == (ssize_t)size);
    require(shutdown(ends[1], SHUT_WR) == 0);
    ras_connection_init(&connection, follows, 16384);
    connection.descriptor = ends[0];
    connection.phase = RAS_HELLO;
    connection.json = true;
    connection.timeout_ns = 1000000000;
    connection.deadline_ns = UINT64_MAX;
    enum ras_outcome outcome = RAS_GOING;
    for (int step = 0; outcome == RAS_GOING || outcome == RAS_TOLD; step++) {
        require(step < STEPS_MAX);
        outcome = ras_connection_look(&connection, POLLIN, 1);
        if (outcome == RAS_TOLD)
            walk_objects(buffer_slice(&connection.in));
    }
    require(connection.phase == RAS_CLOSED && connection.descriptor < 0);
    require(outcome != RAS_FAILED || connection.reason[0] != '\0');
    if (outcome == RAS_ANSWERED) {
        require(ras_reply_is_whole(buffer_slice(&connection.in), connection.json));
        decode(buffer_slice(&connection.in));
    }
    ras_connection_release(&connection);
    close(ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0 || size > SENT_MAX)
        return 0;
    talk(data[0] % 2 == 1, data + 1, size - 1);
    return 0;
}
