// SPDX-License-Identifier: Apache-2.0
// What a client is told: the two paths' handlers and the words of their answers.
#include "base/clock.h"
#include "base/memory.h"
#include "base/text/json_write.h"
#include "receivers/decode/otlp/otlp.h"
#include "receivers/http/receiver.h"

#include <stdio.h>
#include <strings.h>

#define STORE_PATIENCE_NS 10000000000ull

static const char type_json[] = "application/json";
static const char type_protobuf[] = "application/x-protobuf";

// -- the key ------------------------------------------------------------------------------------

// False when the header is there and wrong.
static bool read_key(const struct http_request *request, const char **key) {
    *key = http_request_header(request, "Idempotency-Key");
    if (*key == NULL)
        return true;
    size_t size = strlen(*key);
    for (size_t i = 0; i < size; i++) {
        if ((*key)[i] < ' ' || (*key)[i] > '~')
            return false;
    }
    return size > 0 && size <= HTTP_KEY_MAX;
}

static void say_bad_key(struct http_fault *fault) {
    fault->status = 400;
    fault->code = "bad_idempotency_key";
    snprintf(fault->message, sizeof fault->message,
             "Idempotency-Key must be 1 to %d printable ASCII characters.", HTTP_KEY_MAX);
}

// -- waiting for the store ----------------------------------------------------------------------

// The answer is written already; it leaves now or when the store has the request.
static void finish(struct http_receiver *receiver, const struct http_request *request,
                   struct http_response *response, uint64_t ticket, bool otlp, bool protobuf) {
    if (ticket == 0 || receiver->config->ack != ACK_STORED ||
        ticket <= store_durable(receiver->store))
        return;
    struct http_waiting waiting = {.exchange = request->exchange,
                                   .response = response,
                                   .otlp = otlp,
                                   .otlp_protobuf = protobuf,
                                   .ticket = ticket,
                                   .until_ns = clock_monotonic_ns() + STORE_PATIENCE_NS};
    http_answer_later(request);
    http_completer_add(receiver, &waiting);
}

// -- /v1/events ---------------------------------------------------------------------------------

static void write_rejection(struct json_writer *json, const struct http_rejection *rejection) {
    json_object_open(json);
    json_key(json, "index");
    json_uint(json, rejection->index);
    json_key(json, "code");
    json_text(json, decode_category_name(rejection->category));
    if (rejection->field[0] != '\0') {
        json_key(json, "field");
        json_text(json, rejection->field);
    }
    json_key(json, "message");
    json_text(json, rejection->detail);
    json_object_close(json);
}

static void write_events_answer(const struct http_work *work, struct http_response *response) {
    struct json_writer json;
    json_begin(&json, &response->body, 0);
    json_object_open(&json);
    json_key(&json, "accepted");
    json_uint(&json, work->result.accepted);
    json_key(&json, "rejected");
    json_array_open(&json);
    for (uint32_t i = 0; i < work->listed; i++)
        write_rejection(&json, &work->rejections[i]);
    json_array_close(&json);
    json_key(&json, "rejected_count");
    json_uint(&json, work->result.rejected);
    if (work->repeated) {
        json_key(&json, "repeated");
        json_bool(&json, true);
    }
    json_object_close(&json);
    buffer_append_char(&response->body, '\n');
}

// True for the media types that are lines by their name.
static bool says_lines(const struct http_request *request) {
    const char *type = http_request_header(request, "Content-Type");
    return type == NULL || strncasecmp(type, type_json, sizeof type_json - 1) != 0 ||
           type[sizeof type_json - 1] == 'l' || type[sizeof type_json - 1] == '-';
}

void http_events(void *context, const struct http_request *request,
                 struct http_response *response) {
    struct http_receiver *receiver = context;
    struct http_fault fault = {.status = 0};
    struct http_work *work = http_work_take(receiver);
    if (!read_key(request, &work->key))
        say_bad_key(&fault);
    else
        http_cut(receiver->config, request->body, says_lines(request), work, &fault);
    if (fault.status == 0)
        http_intake(receiver, work, &fault);
    uint64_t ticket = 0;
    if (fault.status != 0) {
        http_error(response, fault.status, fault.code, fault.message);
        response->retry_after_s = fault.retry_after_s;
    } else {
        bool stored = receiver->config->ack == ACK_STORED;
        response->status = work->result.status == 200 && !stored ? 202 : work->result.status;
        response->content_type = type_json;
        write_events_answer(work, response);
        ticket = work->ticket;
    }
    http_work_give(receiver, work);
    finish(receiver, request, response, ticket, false, false);
}

// -- /v1/logs -----------------------------------------------------------------------------------

static bool is_protobuf(const struct http_request *request) {
    const char *type = http_request_header(request, "Content-Type");
    return type != NULL && strncasecmp(type, type_protobuf, sizeof type_protobuf - 1) == 0;
}

static void put_varint(struct buffer *out, uint64_t value) {
    for (; value >= 0x80; value >>= 7)
        buffer_append_char(out, (char)(value | 0x80));
    buffer_append_char(out, (char)value);
}

// A field's number and wire type: 0 a varint, 2 bytes with their length.
static void put_tag(struct buffer *out, unsigned field, unsigned type) {
    put_varint(out, field << 3 | type);
}

static void put_text(struct buffer *out, unsigned field, const char *text) {
    put_tag(out, field, 2);
    put_varint(out, strlen(text));
    buffer_append_text(out, text);
}

// Numbers of google.rpc.Code for what HTTP says.
static unsigned status_code(int status) {
    switch (status) {
    case 401:
        return 16; // UNAUTHENTICATED
    case 403:
        return 7; // PERMISSION_DENIED
    case 404:
        return 5; // NOT_FOUND
    case 405:
        return 12; // UNIMPLEMENTED
    case 429:
        return 8; // RESOURCE_EXHAUSTED
    case 500:
        return 13; // INTERNAL
    case 503:
        return 14; // UNAVAILABLE
    default:
        return 3; // INVALID_ARGUMENT
    }
}

void http_otlp_status(bool protobuf, const char *code, const char *message,
                      struct http_response *response) {
    char text[600];
    snprintf(text, sizeof text, "%s: %s", code, message);
    unsigned number = status_code(response->status);
    response->content_type = protobuf ? type_protobuf : type_json;
    if (protobuf) {
        put_tag(&response->body, 1, 0);
        put_varint(&response->body, number);
        put_text(&response->body, 2, text);
        return;
    }
    struct json_writer json;
    json_begin(&json, &response->body, 0);
    json_object_open(&json);
    json_key(&json, "code");
    json_uint(&json, number);
    json_key(&json, "message");
    json_text(&json, text);
    json_object_close(&json);
}

void http_otlp_error(void *context, const struct http_request *request, const char *code,
                     const char *message, struct http_response *response) {
    (void)context;
    http_otlp_status(is_protobuf(request), code, message, response);
}

static void describe(const struct http_work *work, char *text, size_t size) {
    const struct http_rejection *first = &work->rejections[0];
    if (work->listed == 0)
        snprintf(text, size, "refused when they came first");
    else
        snprintf(text, size, "log record %u: %s%s%s: %s", (unsigned)first->index,
                 decode_category_name(first->category), first->field[0] == '\0' ? "" : " ",
                 first->field, first->detail);
}

static void write_otlp_answer(const struct http_work *work, bool protobuf,
                              struct http_response *response) {
    char text[512];
    describe(work, text, sizeof text);
    uint64_t rejected = work->result.rejected;
    response->status = 200;
    response->content_type = protobuf ? type_protobuf : type_json;
    if (protobuf && rejected > 0) {
        char memory[600];
        struct buffer inner = {.data = memory, .capacity = sizeof memory, .max = sizeof memory};
        put_tag(&inner, 1, 0);
        put_varint(&inner, rejected);
        put_text(&inner, 2, text);
        put_tag(&response->body, 1, 2);
        put_varint(&response->body, inner.size);
        buffer_append(&response->body, buffer_slice(&inner));
    }
    if (protobuf)
        return;
    struct json_writer json;
    json_begin(&json, &response->body, 0);
    json_object_open(&json);
    if (rejected > 0) {
        char number[24];
        snprintf(number, sizeof number, "%llu", (unsigned long long)rejected);
        json_key(&json, "partialSuccess");
        json_object_open(&json);
        json_key(&json, "rejectedLogRecords");
        json_text(&json, number);
        json_key(&json, "errorMessage");
        json_text(&json, text);
        json_object_close(&json);
    }
    json_object_close(&json);
}

struct otlp_taking {
    const struct http_config *config;
    struct http_work *work;
};

static void take_log_record(void *context, uint32_t index, struct slice record,
                            const char *refusal) {
    (void)index;
    const struct otlp_taking *taking = context;
    struct http_item item = {record.data, (uint32_t)record.size, DECODE_OK, NULL};
    if (record.data == NULL)
        item = (struct http_item){"", 0, DECODE_NOT_OBJECT,
                                  arena_text(&taking->work->arena, slice_of(refusal))};
    else if (record.size > taking->config->max_record_size.bytes)
        item = (struct http_item){record.data, 256, DECODE_TOO_LONG,
                                  "it is longer than max_record_size"};
    // Their number is bounded below HTTP_ITEMS_MAX.
    (void)http_item_add(taking->work, item);
}

static void cut_logs(struct http_receiver *receiver, struct slice body, bool protobuf,
                     struct http_work *work, struct http_fault *fault) {
    struct otlp_taking taking = {receiver->config, work};
    struct error error;
    enum status status =
        protobuf ? otlp_logs_protobuf(body, &work->arena, take_log_record, &taking, &error)
                 : otlp_logs_json(body, &work->arena, take_log_record, &taking, &error);
    if (status == STATUS_OK)
        return;
    fault->status = 400;
    fault->code = "bad_otlp";
    snprintf(fault->message, sizeof fault->message, "%.500s", error.message);
}

void http_otlp(void *context, const struct http_request *request, struct http_response *response) {
    struct http_receiver *receiver = context;
    bool protobuf = is_protobuf(request);
    struct http_fault fault = {.status = 0};
    struct http_work *work = http_work_take(receiver);
    if (!read_key(request, &work->key))
        say_bad_key(&fault);
    else
        cut_logs(receiver, request->body, protobuf, work, &fault);
    // A request without log records is fine, and nothing to be kept.
    if (fault.status == 0 && (work->count > 0 || work->key != NULL))
        http_intake(receiver, work, &fault);
    uint64_t ticket = work->ticket;
    if (fault.status != 0) {
        response->status = fault.status;
        response->retry_after_s = fault.retry_after_s;
        http_otlp_status(protobuf, fault.code, fault.message, response);
        ticket = 0;
    } else {
        write_otlp_answer(work, protobuf, response);
    }
    http_work_give(receiver, work);
    finish(receiver, request, response, ticket, true, protobuf);
}
