// SPDX-License-Identifier: Apache-2.0
// Reads one CloudEvent: its own members and those of data.healthEvent in one pass, then the lists
// of entities and codes. Facts from NVSentinel's health_event.proto and the CloudEvents transformer
// of its event exporter.
#include "receivers/decode/nvsentinel/nvsentinel.h"

#include "base/text/cut.h"
#include "base/text/rfc3339.h"
#include "pipeline/model/node_event.h"
#include "pipeline/model/observation.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/shape.h"
#include "receivers/decode/json/text.h"
#include "receivers/decode/line/frame.h"
#include "receivers/decode/line/reading.h"

#include <assert.h>

enum { NUMBER_DIGITS = 9 };

struct nvsentinel_state {
    uint64_t observed_ns;
};

enum slot {
    SLOT_TYPE,
    SLOT_TIME,
    SLOT_EVENT,
    SLOT_CHECK,
    SLOT_FATAL,
    SLOT_HEALTHY,
    SLOT_MESSAGE,
    SLOT_ACTION,
    SLOT_CODES,
    SLOT_ENTITIES,
    SLOT_GENERATED,
    SLOT_NODE,
    SLOT_UUID,
    SLOT_COUNT
};

#define ROW(key, slot)                                                                             \
    { {(key), sizeof(key) - 1}, (slot), NULL }

static const struct json_shape_row health_rows[] = {
    ROW("checkName", SLOT_CHECK),
    ROW("isFatal", SLOT_FATAL),
    ROW("isHealthy", SLOT_HEALTHY),
    ROW("message", SLOT_MESSAGE),
    ROW("recommendedAction", SLOT_ACTION),
    ROW("errorCode", SLOT_CODES),
    ROW("entitiesImpacted", SLOT_ENTITIES),
    ROW("generatedTimestamp", SLOT_GENERATED),
    ROW("nodeName", SLOT_NODE),
    ROW("gpuUUID", SLOT_UUID),
};
static const struct json_shape health = JSON_SHAPE(health_rows);
static const struct json_shape_row data_rows[] = {{{"healthEvent", 11}, SLOT_EVENT, &health}};
static const struct json_shape data = JSON_SHAPE(data_rows);
static const struct json_shape_row event_rows[] = {
    ROW("type", SLOT_TYPE),
    ROW("time", SLOT_TIME),
    {{"data", 4}, JSON_NO_SLOT, &data},
};
static const struct json_shape event_shape = JSON_SHAPE(event_rows);

enum entity_slot { ENTITY_TYPE, ENTITY_VALUE, ENTITY_SLOT_COUNT };
static const struct json_shape_row entity_rows[] = {
    ROW("entityType", ENTITY_TYPE),
    ROW("entityValue", ENTITY_VALUE),
};
static const struct json_shape entity_shape = JSON_SHAPE(entity_rows);

// -- values -------------------------------------------------------------------------------------

static struct slice text_of(const struct token *token, struct arena *arena) {
    if (token->kind != TOKEN_STRING)
        return (struct slice){NULL, 0};
    return token_decode(token, arena);
}

static void put_text(struct reading *reading, enum fact_key key, struct slice text) {
    if (text.size > 0)
        reading_text(reading, key, text);
}

static void put_yes_no(struct reading *reading, enum fact_key key, const struct token *token) {
    if (token->kind == TOKEN_TRUE || token->kind == TOKEN_FALSE)
        reading_yes_no(reading, key, token->kind == TOKEN_TRUE);
}

static void put_number(struct reading *reading, enum fact_key key, struct slice text) {
    uint64_t number;
    if (text_number(text, NUMBER_DIGITS, &number))
        reading_number(reading, key, (int64_t)number);
}

// 0: not said, or no time.
static uint64_t time_of(const struct token *token, struct arena *arena) {
    uint64_t time_ns = 0;
    struct slice text = text_of(token, arena);
    if (text.size == 0 || rfc3339_parse(text, &time_ns, NULL) != RFC3339_OK)
        return 0;
    return time_ns;
}

// The numbers of enum RecommendedAction.
static const struct {
    int64_t number;
    const char *name;
} ACTIONS[] = {
    {0, "NONE"},         {2, "COMPONENT_RESET"}, {5, "CONTACT_SUPPORT"}, {6, "RUN_FIELDDIAG"},
    {15, "RESTART_VM"},  {24, "RESTART_BM"},     {25, "REPLACE_VM"},     {26, "RUN_DCGMEUD"},
    {39, "RESTART_APP"}, {99, "UNKNOWN"},
};

// A number nobody knows is told as it stands there.
static void put_action(struct reading *reading, const struct token *token) {
    struct slice text = text_of(token, reading->arena);
    if (token->kind == TOKEN_INTEGER)
        text = token_slice(token);
    for (size_t i = 0; token->kind == TOKEN_INTEGER && i < sizeof ACTIONS / sizeof *ACTIONS; i++)
        if (ACTIONS[i].number == token->integer)
            text = slice_of(ACTIONS[i].name);
    put_text(reading, FACT_ACTION, text);
}

// -- what it is about ---------------------------------------------------------------------------

static void put_gpu(struct reading *reading, struct slice value) {
    pci_address address;
    if (pci_parse(value, &address))
        reading_address(reading, FACT_GPU, address);
}

static void put_entity(struct reading *reading, const struct token *item) {
    static const struct {
        const char *type;
        enum fact_key key;
    } entities[] = {
        {"GPU", FACT_NVML_DEVICE}, {"GPU_UUID", FACT_GPU_UUID}, {"NVSWITCH", FACT_SWITCH},
        {"NVLINK", FACT_LINK},     {"NIC", FACT_DEVICE},        {"NICPort", FACT_PORT},
    };
    struct token slots[ENTITY_SLOT_COUNT] = {0};
    struct json_fault fault;
    if (item->kind != TOKEN_OBJECT)
        return;
    json_shape_read(&entity_shape, item->text, item->text + item->size, 0, slots, &fault);
    struct slice type = text_of(&slots[ENTITY_TYPE], reading->arena);
    struct slice value = text_of(&slots[ENTITY_VALUE], reading->arena);
    if (slice_equal(type, SLICE("PCI")))
        put_gpu(reading, value);
    for (size_t i = 0; i < sizeof entities / sizeof *entities; i++) {
        if (!slice_equal(type, slice_of(entities[i].type)))
            continue;
        if (fact_type(entities[i].key) == FACT_NUMBER)
            put_number(reading, entities[i].key, value);
        else
            put_text(reading, entities[i].key, value);
    }
}

static void put_entities(struct reading *reading, const struct token *array) {
    if (array->kind != TOKEN_ARRAY)
        return;
    struct json_items items = json_items_of(array);
    for (struct token item; json_items_next(&items, &item);)
        put_entity(reading, &item);
}

// Codes are Xids only where the check says so ("SysLogsXIDError", "SysLogsSXIDError").
static void put_code(struct reading *reading, struct slice check, const struct token *codes) {
    struct slice behind;
    struct token first;
    bool is_sxid = text_find(check, SLICE("SXID"), &behind);
    if (codes->kind != TOKEN_ARRAY || (!is_sxid && !text_find(check, SLICE("XID"), &behind)))
        return;
    struct json_items items = json_items_of(codes);
    if (json_items_next(&items, &first))
        put_number(reading, is_sxid ? FACT_SXID : FACT_XID, text_of(&first, reading->arena));
}

static void read_health(struct reading *reading, const struct token *slots) {
    struct slice check = text_of(&slots[SLOT_CHECK], reading->arena);
    reading_begin(reading, OBSERVATION_HEALTH_EVENT);
    put_text(reading, FACT_GPU_UUID, text_of(&slots[SLOT_UUID], reading->arena));
    put_entities(reading, &slots[SLOT_ENTITIES]);
    put_code(reading, check, &slots[SLOT_CODES]);
    put_text(reading, FACT_REASON, check);
    put_text(reading, FACT_MESSAGE, text_of(&slots[SLOT_MESSAGE], reading->arena));
    put_yes_no(reading, FACT_FATAL, &slots[SLOT_FATAL]);
    put_yes_no(reading, FACT_HEALTHY, &slots[SLOT_HEALTHY]);
    put_action(reading, &slots[SLOT_ACTION]);
    reading->time_ns = time_of(&slots[SLOT_GENERATED], reading->arena);
    if (reading->time_ns == 0)
        reading->time_ns = time_of(&slots[SLOT_TIME], reading->arena);
}

// -- the decoder --------------------------------------------------------------------------------

static enum decode_category decode(void *memory, struct slice record, struct arena *arena,
                                   struct event *event, struct decode_fault *fault) {
    const struct nvsentinel_state *state = memory;
    struct token slots[SLOT_COUNT] = {0};
    struct json_fault json;
    if (!json_shape_read_all(&event_shape, record, slots, &json)) {
        if (json.why != NULL)
            return fault_json(fault, record, &json);
        return fault_set(fault, DECODE_NOT_OBJECT, SLICE(""),
                         "not a JSON object; a CloudEvent is one");
    }
    if (slots[SLOT_TYPE].kind != TOKEN_STRING ||
        !token_equals(&slots[SLOT_TYPE], SLICE("com.nvidia.nvsentinel.health.v1")))
        return DECODE_NOTHING;
    if (slots[SLOT_EVENT].kind != TOKEN_OBJECT)
        return fault_set(fault, DECODE_MISSING_FIELD, SLICE("data.healthEvent"),
                         "not there; it says what was found");
    struct reading reading = {.arena = arena};
    read_health(&reading, slots);
    struct frame frame;
    frame_clear(&frame, text_of(&slots[SLOT_MESSAGE], arena), event->position);
    frame.host = text_of(&slots[SLOT_NODE], arena);
    struct decoder_input input = {.observed_ns = state->observed_ns};
    return reading_finish(&reading, &frame, &input, frame.message, event, fault);
}

static void begin(void *memory, const struct decoder_input *input) {
    ((struct nvsentinel_state *)memory)->observed_ns = input->observed_ns;
}

const struct decoder_type decoder_nvsentinel = {
    .name = "nvsentinel",
    .state_size = sizeof(struct nvsentinel_state),
    .begin = begin,
    .decode = decode,
};
