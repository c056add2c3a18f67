// SPDX-License-Identifier: Apache-2.0
#include "receivers/decode/log/form_check.h"

#include "base/intern.h"
#include "base/memory.h"
#include "base/text/cut.h"
#include "pipeline/component/decoder.h"
#include "pipeline/model/node_event.h"
#include "pipeline/model/observation.h"
#include "receivers/decode/forms/envelope.h"
#include "receivers/decode/forms/meanings.h"
#include "receivers/decode/forms/rows.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/line/frame_reader.h"
#include "receivers/decode/log/log.h"

#include <inttypes.h>
#include <stdio.h>

enum { ARENA_BLOCK = 16 << 10, TOLD_MAX = 4096 };
// So that a line without a time is read: 2026-01-01T00:00:00Z.
static const uint64_t OBSERVED_NS = UINT64_C(1767225600000000000);

// -- what an event says ---------------------------------------------------------------------------

static bool is_constant(const struct form *form, enum fact_key key) {
    if (form == NULL)
        return false;
    for (uint32_t i = 0; i < form->set_count; i++)
        if (form->sets[i].fact == key)
            return true;
    return (key == FACT_ROLE && form->role.data != NULL) ||
           (key == FACT_CAUSE && form->cause.data != NULL && !form->is_meaning);
}

static void tell_fact(const struct fact *fact, struct buffer *out) {
    char address[PCI_TEXT_MAX];
    buffer_append_format(out, "%s%s=", out->size == 0 ? "" : " ", fact_name(fact->key));
    switch (fact_type(fact->key)) {
    case FACT_NUMBER:
        buffer_append_format(out, "%" PRId64, fact->number);
        break;
    case FACT_TEXT:
        buffer_append(out, fact->text);
        break;
    case FACT_YES_NO:
        buffer_append_text(out, fact->yes ? "yes" : "no");
        break;
    case FACT_PCI_ADDRESS:
        pci_format_function(fact->address, address);
        buffer_append_text(out, address);
        break;
    }
}

void form_tell(const struct event *event, const struct form *form, struct buffer *out) {
    size_t from = out->size;
    if (event->kind != EVENT_OBSERVATION)
        return;
    if (event->node != STRING_NONE) {
        struct slice node = intern_slice(event->node);
        buffer_append_format(out, "host=%.*s", (int)node.size, node.data);
    }
    if (event->rank != RANK_NONE)
        buffer_append_format(out, "%srank=%d", out->size == from ? "" : " ", (int)event->rank);
    for (uint32_t i = 0; i < event->observation->fact_count; i++)
        if (!is_constant(form, event->observation->facts[i].key))
            tell_fact(&event->observation->facts[i], out);
}

// -- reading --------------------------------------------------------------------------------------

struct reading_lines {
    void *state;
    struct arena arena;
    void (*take)(void *context, const struct event *event);
    void *context;
};

static void settle(struct reading_lines *lines, enum decode_category category,
                   const struct event *event) {
    if (category == DECODE_OK)
        lines->take(lines->context, event);
}

static void take_all(struct reading_lines *lines, uint64_t position) {
    for (enum decode_category category = DECODE_OK; category != DECODE_END;) {
        struct event event = {.position = position, .lines = 1, .rank = RANK_NONE};
        struct decode_fault fault;
        category = decoder_log.next(lines->state, &lines->arena, &event, &fault);
        if (category != DECODE_END)
            settle(lines, category, &event);
    }
}

void form_read_lines(const struct forms *forms, struct slice lines,
                     void (*take)(void *context, const struct event *event), void *context) {
    struct reading_lines reading = {
        .state = memory_zero(1, decoder_log.state_size), .take = take, .context = context};
    struct decoder_input input = {
        .observed_ns = OBSERVED_NS, .is_file = true, .ends = true, .forms = forms};
    uint64_t position = 0;
    arena_init(&reading.arena, ARENA_BLOCK);
    decoder_log.begin(reading.state, &input);
    while (lines.size > 0) {
        struct slice line = text_take_line(&lines);
        struct event event = {.position = ++position, .lines = 1, .rank = RANK_NONE, .raw = line};
        struct decode_fault fault;
        settle(&reading, decoder_log.decode(reading.state, line, &reading.arena, &event, &fault),
               &event);
        take_all(&reading, position);
        arena_reset(&reading.arena);
    }
    decoder_log.finish(reading.state);
    take_all(&reading, position);
    decoder_log.release(reading.state);
    arena_release(&reading.arena);
    memory_give(reading.state);
}

// -- checking -------------------------------------------------------------------------------------

struct trial {
    const struct forms *forms;
    const struct form *form;
    struct buffer told; // of the first event that is of the form's kind; of another, with its kind
    bool matches;
    bool is_taken; // some event's message has the form, behind whatever stood in front of it
};

// Of a meaning, "Type: message", or what a library says.
static bool has_meaning(const struct form *form, struct slice line) {
    struct uttered uttered = {.message = line, .scope = MEANING_ABORT};
    struct slice behind;
    if (form->scope != MEANING_ABORT && text_find(line, SLICE(": "), &behind)) {
        uttered.scope = MEANING_EXCEPTION;
        uttered.type = (struct slice){line.data, line.size - behind.size - 2};
        uttered.message = behind;
    }
    return meanings_find(&form, 1, &uttered) != NULL;
}

static bool has_form(const struct forms *forms, const struct form *form, struct slice message) {
    struct form_match match;
    if (form->is_meaning)
        return has_meaning(form, text_until(message, '\n'));
    return forms_find(forms, text_until(message, '\n'), &match) && match.form == form &&
           !match.is_cut;
}

static void take_event(void *context, const struct event *event) {
    struct trial *trial = context;
    if (event->kind == EVENT_OBSERVATION && !trial->form->is_meaning &&
        has_form(trial->forms, trial->form, event->observation->text))
        trial->is_taken = true;
    if (trial->matches || event->kind != EVENT_OBSERVATION)
        return;
    trial->matches = trial->form->is_meaning || event->observation->kind == trial->form->kind;
    trial->told.size = 0;
    if (trial->matches)
        form_tell(event, trial->form, &trial->told);
    else
        buffer_append_text(&trial->told, observation_name(event->observation->kind));
}

// What is wrong with the sample of a row of `kind none`; NULL: nothing.
static const char *wrong_of_none(const struct trial *trial, const struct form_sample *sample) {
    if (trial->told.size > 0)
        return "is an event of another row, ";
    return has_form(trial->forms, trial->form, sample->lines) ? NULL : "says nothing of the row";
}

// … of another; NULL: nothing.
static const char *wrong_of_event(const struct trial *trial, const struct form_sample *sample) {
    struct slice told = buffer_slice(&trial->told);
    if (trial->matches && slice_equal(told, sample->gives))
        return NULL;
    return told.size == 0 ? "gives nothing" : trial->matches ? "gives " : "gives another kind, ";
}

static bool check_sample(const struct forms *forms, const struct form *form,
                         const struct form_sample *sample, struct form_fault *fault) {
    struct trial trial = {.forms = forms, .form = form};
    buffer_init(&trial.told, TOLD_MAX);
    form_read_lines(forms, sample->lines, take_event, &trial);
    bool matches = trial.is_taken || has_form(forms, form, sample->lines);
    const char *wrong = sample->is_not  ? (matches ? "this line must not match, and does" : NULL)
                        : form->is_none ? wrong_of_none(&trial, sample)
                                        : wrong_of_event(&trial, sample);
    if (wrong != NULL)
        snprintf(fault->words, sizeof fault->words, "%.*s: %s%s%.*s", (int)form->name.size,
                 form->name.data, sample->is_not ? "" : "the sample ", wrong,
                 sample->is_not ? 0 : (int)trial.told.size, trial.told.data);
    fault->file = form->file;
    fault->line = sample->line;
    fault->column = 1;
    buffer_release(&trial.told);
    return wrong == NULL;
}

// "rank=2 message=…", "time=…" in milliseconds since 1970: what the prefix says.
static void tell_frame(const struct frame *frame, struct buffer *out) {
    const struct {
        const char *name;
        struct slice text;
    } texts[] = {{"pod", frame->pod},
                 {"namespace", frame->namespace},
                 {"container", frame->container},
                 {"address", frame->address},
                 {"program", frame->program}};
    const struct {
        const char *name;
        int64_t number, none;
    } numbers[] = {{"rank", frame->rank, RANK_NONE},
                   {"local_rank", frame->local_rank, -1},
                   {"task", frame->task, -1},
                   {"cuda_device", frame->cuda_device, -1},
                   {"pid", frame->pid, -1}};
    if (frame->time_ns != 0)
        buffer_append_format(out, "time=%" PRIu64 " ", frame->time_ns / 1000000);
    if (frame->host.data != NULL)
        buffer_append_format(out, "host=%.*s ", (int)frame->host.size, frame->host.data);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].number != numbers[i].none)
            buffer_append_format(out, "%s=%" PRId64 " ", numbers[i].name, numbers[i].number);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].text.data != NULL)
            buffer_append_format(out, "%s=%.*s ", texts[i].name, (int)texts[i].text.size,
                                 texts[i].text.data);
    buffer_append_text(out, "message=");
    buffer_append(out, frame->message);
}

static bool has_envelope(const struct forms *forms, const struct form *form, struct slice line) {
    struct envelope envelope;
    struct json_fault ignored;
    return envelope_open(&envelope, forms_envelopes(forms), line, &ignored) &&
           envelope.form == form;
}

static bool has_prefix(const struct forms *forms, const struct form *form, struct slice line) {
    struct form_match match;
    if (form->is_envelope)
        return has_envelope(forms, form, line);
    struct prefix_walk walk = {0};
    size_t end;
    while (forms_find_prefix(forms, line, &walk, &match, &end))
        if (match.form == form)
            return true;
    return false;
}

static bool check_prefix(const struct forms *forms, const struct form *form,
                         const struct form_sample *sample, struct form_fault *fault) {
    enum { TIMES = 3 }; // … for those that count once a log had them again, with other values
    struct decoder_input input = {.observed_ns = OBSERVED_NS, .is_file = true, .forms = forms};
    struct arena arena;
    struct frame frame = {0};
    struct decode_fault ignored;
    struct buffer told;
    arena_init(&arena, ARENA_BLOCK);
    buffer_init(&told, TOLD_MAX);
    struct frame_reader *reader = frame_reader_make(&input, FORM_PROGRAM);
    for (uint32_t i = 0; form->needs_again && i < form->sample_count; i++)
        for (int k = 0; k < TIMES && !form->samples[i].is_not; k++)
            frame_read(reader, form->samples[i].lines, 1, &arena, &frame, &ignored);
    enum frame_step step = frame_read(reader, sample->lines, 1, &arena, &frame, &ignored);
    if (step == FRAME_HELD)
        step = frame_next(reader, &arena, &frame, &ignored);
    if (step == FRAME_LINE)
        tell_frame(&frame, &told);
    bool right = sample->is_not ? !has_prefix(forms, form, sample->lines)
                                : slice_equal(buffer_slice(&told), sample->gives);
    if (sample->is_not)
        snprintf(fault->words, sizeof fault->words, "%.*s: this line must not match, and does",
                 (int)form->name.size, form->name.data);
    else
        snprintf(fault->words, sizeof fault->words, "%.*s: the sample gives %.*s",
                 (int)form->name.size, form->name.data, (int)told.size, told.data);
    fault->file = form->file;
    fault->line = sample->line;
    fault->column = 1;
    frame_reader_free(reader);
    buffer_release(&told);
    arena_release(&arena);
    return right;
}

bool form_check(const struct forms *forms, const struct form *form, struct form_fault *fault) {
    bool of_line = form->is_prefix || form->is_envelope;
    for (uint32_t i = 0; of_line && i < form->sample_count; i++)
        if (!check_prefix(forms, form, &form->samples[i], fault))
            return false;
    if (of_line)
        return true;
    for (uint32_t i = 0; i < form->sample_count; i++)
        if (!check_sample(forms, form, &form->samples[i], fault))
            return false;
    return true;
}
