// SPDX-License-Identifier: Apache-2.0
// Words like "Connection closed by peer" are other programs' too: they count only where gloo's
// source file stands in front. Linear in the message; bounded where it is none of these.
#include "receivers/decode/app_log/gloo.h"

#include "base/text/cut.h"
#include "pipeline/model/observation.h"
#include "receivers/decode/line/reading.h"

enum { SOURCE_WITHIN = 160, SOCKET_MAX = 512 };

static void begin(struct said *said, enum observation_kind what, struct reading *reading) {
    struct slice rest;
    said_close(said, SLICE(""), &rest);
    reading_begin(reading, what);
    reading->rest = rest;
    reading->rank = words_rank(said->head);
}

static void begin_victim(struct said *said, enum observation_kind what, struct reading *reading) {
    begin(said, what, reading);
    reading_yes_no(reading, FACT_VICTIM, true);
}

// -- gloo ---------------------------------------------------------------------------------------

// "[…/gloo/transport/tcp/pair.cc:534] " right in front of the phrase.
static bool is_of_gloo(const struct said *said) {
    struct slice near = said->head, source;
    if (near.size > SOURCE_WITHIN)
        near = text_from(near, near.size - SOURCE_WITHIN);
    return text_find(near, SLICE("gloo/transport/"), &source) && source.size > 2 &&
           memcmp(source.data + source.size - 2, "] ", 2) == 0;
}

// "[10.20.0.5]:41234: Connection reset by peer": what stands behind the address.
static void read_error(struct slice text, struct reading *reading) {
    struct slice error;
    if (text_find(text, SLICE(": "), &error) && text_trim(error).size > 0)
        reading_text(reading, FACT_ERROR, text_trim(error));
}

enum read_result gloo_peer(struct said *said, struct reading *reading) {
    if (!is_of_gloo(said))
        return READ_NOT;
    begin_victim(said, OBSERVATION_PEER_CLOSED, reading);
    struct slice peer = words_peer(said->tail);
    if (peer.data != NULL) {
        reading_text(reading, FACT_PEER, peer);
        read_error(said->tail, reading);
    }
    return READ_EVENT;
}

enum read_result gloo_pair_closed(struct said *said, struct reading *reading) {
    begin_victim(said, OBSERVATION_PEER_CLOSED, reading);
    return READ_EVENT;
}

// "1800000ms for recv operation to complete"
enum read_result gloo_timeout(struct said *said, struct reading *reading) {
    struct slice tail = said->tail;
    int64_t limit;
    if (!words_take_signed(&tail, &limit) || !text_begins(tail, SLICE("ms for ")) ||
        !is_of_gloo(said))
        return READ_NOT;
    begin_victim(said, OBSERVATION_COLLECTIVE_TIMEOUT, reading);
    if (limit >= 0)
        reading_number(reading, FACT_TIMEOUT_MS, limit);
    tail = text_from(tail, sizeof "ms for " - 1);
    struct slice operation = text_until(tail, ' ');
    if (operation.size > 0 && operation.size < tail.size)
        reading_text(reading, FACT_OP, operation);
    return READ_EVENT;
}

// -- the store ----------------------------------------------------------------------------------

// "fd=81, addr=[node-02]:51044, remote=[node-00]:29500): Failed to recv, got 0 bytes. …"
enum read_result store_socket(struct said *said, struct reading *reading) {
    static const struct slice failed = {" failed on ", 11};
    struct slice head = said->head, peer;
    if (head.size < failed.size ||
        memcmp(head.data + head.size - failed.size, failed.data, failed.size) != 0)
        return READ_NOT;
    begin_victim(said, OBSERVATION_STORE_LOST, reading);
    struct slice socket = said->tail;
    if (socket.size > SOCKET_MAX)
        socket.size = SOCKET_MAX;
    socket = text_until(socket, ')');
    if (text_find(socket, SLICE("remote="), &peer) && words_peer(peer).data != NULL)
        reading_text(reading, FACT_PEER, words_peer(peer));
    read_error(text_from(said->tail, socket.size), reading);
    return READ_EVENT;
}

enum read_result store_flag(struct said *said, struct reading *reading) {
    struct slice error;
    begin_victim(said, OBSERVATION_STORE_LOST, reading);
    if (text_find(said->tail, SLICE("with error: "), &error) && text_trim(error).size > 0)
        reading_text(reading, FACT_ERROR, text_trim(error));
    return READ_EVENT;
}

// "601 seconds waiting for clients. 7/8 clients joined."
enum read_result store_clients(struct said *said, struct reading *reading) {
    struct slice tail = said->tail;
    int64_t seconds, joined, expected;
    if (!words_take_signed(&tail, &seconds) ||
        !text_skip(&tail, SLICE(" seconds waiting for clients")))
        return READ_NOT;
    bool counted = text_skip(&tail, SLICE(". ")) && words_take_signed(&tail, &joined) &&
                   text_skip_char(&tail, '/') && words_take_signed(&tail, &expected) &&
                   tail.size > 0;
    begin(said, OBSERVATION_RENDEZVOUS_TIMEOUT, reading);
    reading_number(reading, FACT_SECONDS, seconds);
    if (!counted)
        return READ_EVENT;
    reading_number(reading, FACT_JOINED, joined);
    reading_number(reading, FACT_EXPECTED, expected);
    return READ_EVENT;
}
