// SPDX-License-Identifier: Apache-2.0
// Handles the two paths, and writes their answers.
#include "base/clock.h"
#include "base/memory.h"
#include "base/text/json_write.h"
#include "pipeline/component/record_frame.h"
#include "receivers/decode/otlp/otlp.h"
#include "receivers/http/receiver.h"

#include <assert.h>
#include <stdio.h>
#include <strings.h>

#define STORE_PATIENCE_NS 10000000000ull

static const char type_json[] = "application/json";
static const char type_protobuf[] = "application/x-protobuf";

// -- the key ------------------------------------------------------------------------------------

// Sets work->key; a fault when the header is there and wrong.
static void read_key(const struct http_request *request, struct http_work *work,
                     struct http_fault *fault) {
    const char *key = work->key = http_request_header(request, "Idempotency-Key");
    if (key == NULL)
        return;
    size_t size = strlen(key);
    bool right = size > 0 && size <= HTTP_KEY_MAX;
    for (size_t i = 0; i < size && right; i++)
        right = key[i] >= ' ' && key[i] <= '~';
    if (!right)
        http_fault_set(fault, 400, "bad_idempotency_key",
                       "Idempotency-Key must be 1 to %d printable ASCII characters.", HTTP_KEY_MAX);
}

// -- /v1/events ---------------------------------------------------------------------------------

static void write_rejection(struct json_writer *json, const struct http_rejection *rejection) {
    assert(rejection->category != DECODE_OK);
    json_object_open(json);
    json_field_uint(json, "index", rejection->index);
    json_field_text(json, "code", decode_category_name(rejection->category));
    if (rejection->field[0] != '\0')
        json_field_text(json, "field", rejection->field);
    json_field_text(json, "message", rejection->detail);
    json_object_close(json);
}

static void write_events_answer(const struct http_work *work, bool stored,
                                struct http_response *response) {
    assert(work->listed <= HTTP_LISTED_MAX && work->listed <= work->result.rejected);
    response->status = work->result.status == 200 && !stored ? 202 : work->result.status;
    response->content_type = type_json;
    struct json_writer json;
    json_begin(&json, &response->body, 0);
    json_object_open(&json);
    json_field_uint(&json, "accepted", work->result.accepted);
    json_field_array_open(&json, "rejected");
    for (uint32_t i = 0; i < work->listed; i++)
        write_rejection(&json, &work->rejections[i]);
    json_array_close(&json);
    json_field_uint(&json, "rejected_count", work->result.rejected);
    if (work->result.other > 0)
        json_field_uint(&json, "other", work->result.other);
    if (work->repeated)
        json_field_bool(&json, "repeated", true);
    json_object_close(&json);
    buffer_append_char(&response->body, '\n');
}

// True for the media types that are lines by their name.
static bool says_lines(const struct http_request *request) {
    const char *type = http_request_header(request, "Content-Type");
    return type == NULL || strncasecmp(type, type_json, sizeof type_json - 1) != 0 ||
           type[sizeof type_json - 1] == 'l' || type[sizeof type_json - 1] == '-';
}

static bool says_frames(const struct http_request *request) {
    const char *type = http_request_header(request, "Content-Type");
    return type != NULL &&
           strncasecmp(type, RECORD_FRAMES_TYPE, sizeof RECORD_FRAMES_TYPE - 1) == 0;
}

// -- /v1/logs -----------------------------------------------------------------------------------

static enum http_form otlp_form(const struct http_request *request) {
    const char *type = http_request_header(request, "Content-Type");
    bool protobuf = type != NULL && strncasecmp(type, type_protobuf, sizeof type_protobuf - 1) == 0;
    return protobuf ? FORM_OTLP_PROTOBUF : FORM_OTLP_JSON;
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

// Number of google.rpc.Code for what HTTP says.
static unsigned status_code(int status) {
    static const struct {
        int status;
        unsigned code;
    } rows[] = {{401, 16 /* UNAUTHENTICATED */},   {403, 7 /* PERMISSION_DENIED */},
                {404, 5 /* NOT_FOUND */},          {405, 12 /* UNIMPLEMENTED */},
                {429, 8 /* RESOURCE_EXHAUSTED */}, {500, 13 /* INTERNAL */},
                {503, 14 /* UNAVAILABLE */}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].status == status)
            return rows[i].code;
    return 3; // INVALID_ARGUMENT
}

void http_write_fault(enum http_form form, const char *code, const char *message,
                      struct http_response *response) {
    assert(response->status >= 400 && code != NULL && message != NULL);
    if (form == FORM_EVENTS || form == FORM_FRAMES) {
        http_error(response, response->status, code, message);
        return;
    }
    char text[600];
    snprintf(text, sizeof text, "%s: %s", code, message);
    unsigned number = status_code(response->status);
    if (form == FORM_OTLP_PROTOBUF) {
        response->content_type = type_protobuf;
        put_tag(&response->body, 1, 0);
        put_varint(&response->body, number);
        put_text(&response->body, 2, text);
        return;
    }
    response->content_type = type_json;
    struct json_writer json;
    json_begin(&json, &response->body, 0);
    json_object_open(&json);
    json_field_uint(&json, "code", number);
    json_field_text(&json, "message", text);
    json_object_close(&json);
}

void http_otlp_error(void *context, const struct http_request *request, const char *code,
                     const char *message, struct http_response *response) {
    (void)context;
    http_write_fault(otlp_form(request), code, message, response);
}

static void describe(const struct http_work *work, char *text, size_t size) {
    assert(work->listed <= HTTP_LISTED_MAX);
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
        json_field_object_open(&json, "partialSuccess");
        json_field_text(&json, "rejectedLogRecords", number);
        json_field_text(&json, "errorMessage", text);
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
    struct http_item item = {.data = record.data, .size = (uint32_t)record.size};
    if (record.data == NULL)
        item = (struct http_item){.data = "",
                                  .refusal = DECODE_NOT_OBJECT,
                                  .why = arena_text(&taking->work->arena, slice_of(refusal))};
    else if (record.size > taking->config->max_record_size.bytes)
        item = (struct http_item){.data = record.data,
                                  .size = 256,
                                  .refusal = DECODE_TOO_LONG,
                                  .why = "it is longer than max_record_size"};
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
    if (status != STATUS_OK)
        http_fault_set(fault, 400, "bad_otlp", "%.500s", error.message);
}

// -- either -------------------------------------------------------------------------------------

// The answer is written already; it leaves now or when the store has the request.
static void finish(struct http_receiver *receiver, const struct http_request *request,
                   struct http_response *response, uint64_t ticket, enum http_form form) {
    assert(ticket == 0 || receiver->store != NULL);
    if (ticket == 0 || receiver->config->ack != ACK_STORED ||
        ticket <= storage_durable(receiver->store))
        return;
    struct http_waiting waiting = {.exchange = request->exchange,
                                   .response = response,
                                   .form = form,
                                   .ticket = ticket,
                                   .until_ns = clock_monotonic_ns() + STORE_PATIENCE_NS};
    http_answer_later(request);
    http_completer_add(receiver, &waiting);
}

static void handle(struct http_receiver *receiver, const struct http_request *request,
                   enum http_form form, struct http_response *response) {
    struct http_fault fault = {.status = 0};
    struct http_work *work = http_work_take(receiver);
    bool protobuf = form == FORM_OTLP_PROTOBUF;
    read_key(request, work, &fault);
    if (fault.status == 0 && form == FORM_EVENTS)
        http_cut(receiver->config, request->body, says_lines(request), work, &fault);
    else if (fault.status == 0 && form == FORM_FRAMES)
        http_cut_frames(request->body, work, &fault);
    else if (fault.status == 0)
        cut_logs(receiver, request->body, protobuf, work, &fault);
    // An OTLP request without log records is fine, and nothing to be kept.
    if (fault.status == 0 && (work->count > 0 || work->key != NULL || form == FORM_EVENTS))
        http_intake(receiver, work, &fault);
    uint64_t ticket = fault.status == 0 ? work->ticket : 0;
    if (fault.status != 0) {
        response->status = fault.status;
        response->retry_after_s = fault.retry_after_s;
        http_write_fault(form, fault.code, fault.message, response);
    } else if (form == FORM_EVENTS || form == FORM_FRAMES) {
        write_events_answer(work, receiver->config->ack == ACK_STORED, response);
    } else {
        write_otlp_answer(work, protobuf, response);
    }
    http_work_give(receiver, work);
    finish(receiver, request, response, ticket, form);
}

void http_events(void *context, const struct http_request *request,
                 struct http_response *response) {
    handle(http_receiver_of(context), request, says_frames(request) ? FORM_FRAMES : FORM_EVENTS,
           response);
}

void http_otlp(void *context, const struct http_request *request, struct http_response *response) {
    handle(http_receiver_of(context), request, otlp_form(request), response);
}
