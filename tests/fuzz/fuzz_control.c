// SPDX-License-Identifier: Apache-2.0
// What comes to the control socket, and what goes out of it: any query is understood or refused
// with a reason; any record becomes one line of JSON; any answer becomes lines that move no cursor.
//
// The first byte says which; the rest is the query, the record or the answer.
#include "tests/fuzz/fuzz.h"

#include "cli/top/view.h"
#include "pipeline/component/component.h"
#include "pipeline/component/decoder.h"
#include "pipeline/plan/plan.h"
#include "pipeline/runtime/control/request.h"
#include "pipeline/runtime/control/tap_record.h"
#include "pipeline/runtime/service_state.h"

#include <jansson.h>

static void ask(struct slice text) {
    static const struct component_type type = {
        .name = "looks", .kind = COMPONENT_PROCESSOR, .takes = 1u << EVENT_KERNEL};
    static const struct plan_component component = {.type = &type, .id = "looks"};
    static const struct plan_pipeline planned = {.name = "p"};
    struct instance instance = {.component = &component};
    struct run_pipeline pipeline = {.stages = &instance, .stage_count = 1};
    struct service service = {.magic = SERVICE_MAGIC, .pipelines = &pipeline, .pipeline_count = 1};
    struct tap_request request;
    struct error error = {0};
    pipeline.runner.plan = &planned;
    char *query = memory_copy_text(text.data, text.size);
    if (tap_request_read(&request, &service, query, &error) == STATUS_OK) {
        require(request.runner == &pipeline.runner);
        require(request.choice.every >= 1 && request.choice.rate >= 1);
        require(request.choice.rate <= TAP_RATE_MAX && request.choice.rank >= RANK_NONE);
        tap_free(tap_create(&request.choice));
    } else {
        require(error.message[0] != '\0');
    }
    memory_give(query);
}

// The record in a block of its own, and as a fact.
static void copy(struct slice text) {
    static const struct decoder_type decoder = {.name = "d"};
    enum fact_key key = (enum fact_key)0;
    while (fact_type(key) != FACT_TEXT)
        key = (enum fact_key)((int)key + 1);
    struct fact fact = {.key = key, .text = text};
    struct observation observation = {
        .kind = OBSERVATION_CUDA_OOM, .facts = &fact, .fact_count = 1};
    struct event event = {.rank = (int32_t)text.size,
                          .time_ns = text.size * 977,
                          .job = intern(text),
                          .kind = EVENT_OBSERVATION,
                          .decoder = &decoder,
                          .raw = text,
                          .observation = &observation};
    size_t size = tap_event_size(&event);
    void *room = memory_take(size);
    tap_event_copy(&event, room);
    struct buffer out;
    buffer_init(&out, 1 << 24);
    tap_event_encode(room, &out);
    memory_give(room);
    require(!out.failed && out.data[out.size - 1] == '\n');
    require(memchr(out.data, '\n', out.size) == out.data + out.size - 1);
    for (size_t i = 0; i + 1 < out.size; i++)
        require(out.data[i] >= ' ' && out.data[i] < 0x7f);
    json_t *line = json_loadb(out.data, out.size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    // Half surrogate pairs are kept as they came, and jansson takes none.
    bool half = memmem(out.data, out.size, "\\ud", 3) != NULL;
    require(line != NULL || half);
    json_decref(line);
    buffer_release(&out);
}

static void show(struct slice text) {
    json_t *answer = json_loadb(text.data, text.size, 0, NULL);
    if (answer == NULL)
        return;
    struct arena arena;
    arena_init(&arena, 4096);
    for (int kind = VIEW_ALL; kind <= (int)VIEW_INCIDENTS; kind++) {
        struct view_answers answers = {answer, answer, 1};
        struct view view = view_make((enum view_kind)kind, &answers, 40, &arena);
        for (uint32_t i = 0; i < view.count; i++)
            for (size_t j = 0; j < view.lines[i].text.size; j++)
                require((unsigned char)view.lines[i].text.data[j] >= ' ' &&
                        view.lines[i].text.data[j] != 0x7f);
    }
    arena_release(&arena);
    json_decref(answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2)
        return 0;
    struct slice text = fuzz_block((struct slice){(const char *)data + 1, size - 1});
    if (data[0] == 'q')
        ask(text);
    else if (data[0] == 'r')
        copy(text);
    else
        show(text);
    fuzz_block_give(text);
    return 0;
}
