// SPDX-License-Identifier: Apache-2.0
// The facts of a row are set before those that the text names, which therefore win. There are two
// readers: of lines of programs, which leaves the kernel's rows out, and of lines that may be the
// kernel's.
#include "receivers/decode/log/form_reader.h"

#include "base/text/cut.h"
#include "pipeline/component/decoder.h"
#include "pipeline/model/event.h"
#include "pipeline/model/node_event.h"
#include "pipeline/model/observation.h"
#include "receivers/decode/forms/forms.h"
#include "receivers/decode/forms/pattern.h"
#include "receivers/decode/forms/rows.h"
#include "receivers/decode/forms/signals.h"
#include "receivers/decode/line/reading.h"

#include <assert.h>

static bool whole_number(struct slice value, int64_t *number) {
    bool negative = text_skip_char(&value, '-');
    uint64_t magnitude;
    if (!text_number(value, 18, &magnitude))
        return false;
    *number = negative ? -(int64_t)magnitude : (int64_t)magnitude;
    return true;
}

static void set_fact(struct reading *reading, enum fact_key key, struct slice value) {
    int64_t number;
    pci_address address;
    switch (fact_type(key)) {
    case FACT_TEXT:
        if (value.size > 0)
            reading_text(reading, key, value);
        break;
    case FACT_NUMBER:
        if (key == FACT_SIGNAL && signal_number(value) != 0)
            reading_number(reading, key, signal_number(value));
        else if (key != FACT_SIGNAL && whole_number(value, &number) &&
                 (key != FACT_PID ||
                  number > 0)) // Open MPI writes 0 for those that it does not know
            reading_number(reading, key, number);
        break;
    case FACT_PCI_ADDRESS:
        if (pci_parse(value, &address))
            // Each function of a card is a port; of a GPU all are one.
            reading_address(reading, key, key == FACT_NIC ? address : pci_device(address));
        break;
    case FACT_YES_NO:
        break;
    }
}

static void set_value(struct reading *reading, struct form_name name, struct slice value) {
    int64_t number;
    switch (name.target) {
    case TARGET_RANK:
        if (whole_number(value, &number) && number >= 0 && number <= RANK_MAX)
            reading->rank = (int32_t)number;
        break;
    case TARGET_HOST:
        reading->host = value;
        break;
    case TARGET_EXIT_CODE: // of Python's subprocess a signal is below zero
        if (whole_number(value, &number) && number < 0 && number >= -64)
            reading_number(reading, FACT_SIGNAL, -number);
        else if (whole_number(value, &number) && number >= 0)
            reading_number(reading, FACT_EXIT_CODE, number);
        break;
    case TARGET_FACT:
        set_fact(reading, name.fact, value);
        break;
    default: // of prefixes
        assert(false);
    }
}

static void set_values(struct reading *reading, const struct form_text *text,
                       const struct slice *values) {
    for (uint32_t i = 0; i < text->pattern.name_count; i++)
        if (values[i].data != NULL)
            set_value(reading, text->names[i], values[i]);
}

static void set_constant(struct reading *reading, const struct form_set *set) {
    switch (fact_type(set->fact)) {
    case FACT_NUMBER:
        reading_number(reading, set->fact, set->number);
        break;
    case FACT_YES_NO:
        reading_yes_no(reading, set->fact, set->number != 0);
        break;
    case FACT_TEXT:
        reading_text(reading, set->fact, set->text);
        break;
    case FACT_PCI_ADDRESS:
        break;
    }
}

static void begin_reading(const struct form_match *match, const struct frame *frame,
                          struct reading *reading) {
    const struct form *form = match->form;
    reading_begin(reading, form->kind);
    reading->needs_time = form->is_kernel;
    reading->no_rank = form->is_report;
    reading->no_host = form->is_report && !form->is_here;
    if (form->is_agent && frame->pid >= 0)
        reading_number(reading, FACT_PID, frame->pid);
    for (uint32_t i = 0; i < form->set_count; i++)
        set_constant(reading, &form->sets[i]);
    if (form->role.data != NULL)
        reading_text(reading, FACT_ROLE, form->role);
    if (form->cause.data != NULL)
        reading_text(reading, FACT_CAUSE, form->cause);
    set_values(reading, match->text, match->values);
}

static bool was_said(const struct reading *reading, const struct form_set *said) {
    for (uint32_t i = 0; i < reading->fact_count; i++) {
        const struct fact *fact = &reading->facts[i];
        if (fact->key == said->fact)
            return fact_type(fact->key) == FACT_NUMBER ? fact->number == said->number
                   : fact_type(fact->key) == FACT_TEXT ? slice_equal(fact->text, said->text)
                                                       : false;
    }
    return false;
}

// Of a wait that names those who came ("1, 7, 0"): the lowest that is not among them is one of
// those who did not.
static void set_absent(struct reading *reading, struct slice came) {
    enum { RANKS_MAX = 1024 };
    bool is_there[RANKS_MAX + 1] = {false};
    int64_t absent = 0;
    uint64_t rank;
    while (came.size > 0)
        if (!text_take_number(&came, 1, 9, &rank))
            came = text_from(came, 1);
        else if (rank < RANKS_MAX)
            is_there[rank] = true;
    while (is_there[absent])
        absent++;
    if (absent < RANKS_MAX)
        reading_number(reading, FACT_PEER_RANK, absent);
}

static void set_who_lacks(struct reading *reading) {
    for (uint32_t i = 0; i < reading->fact_count; i++)
        if (reading->facts[i].key == FACT_COUNTS && reading->what == OBSERVATION_PEER_LOST) {
            set_absent(reading, reading->facts[i].text);
            return;
        }
}

// Behind all that the texts say.
static enum read_result end_reading(const struct form *form, struct reading *reading) {
    set_who_lacks(reading);
    for (uint32_t i = 0; i < form->when_count; i++)
        if (was_said(reading, &form->whens[i].said))
            set_constant(reading, &form->whens[i].set);
    return READ_EVENT;
}

static const struct forms *forms_of(const struct frame *frame) {
    return frame->forms != NULL ? frame->forms : forms_builtin();
}

static bool has_all(const struct form_match *match) {
    for (uint32_t i = 0; i < match->text->pattern.name_count; i++)
        if (match->values[i].data != NULL && match->values[i].size == 0)
            return false;
    return true;
}

static enum read_result read_match(const struct frame *frame, const struct form_match *match,
                                   struct reading *reading) {
    if (match->form->is_none)
        return READ_OTHER;
    if (match->is_cut || (match->form->is_whole && !has_all(match)))
        return reading_refuse(reading, DECODE_TRUNCATED, "the line breaks off");
    if (match->form->then_count > 0) {
        reading->block = &READER_FORMS;
        return READ_BEGIN;
    }
    begin_reading(match, frame, reading);
    return end_reading(match->form, reading);
}

static enum read_result read_form(const struct frame *frame, struct slice message,
                                  struct reading *reading) {
    struct form_match match;
    if (!forms_find_of_programs(forms_of(frame), message, &match) || match.form->is_owner)
        return READ_NOT;
    return read_match(frame, &match, reading);
}

// What people read says something though it is not whole.
static bool is_prose(struct form_name name) {
    return name.target == TARGET_FACT &&
           (name.fact == FACT_CAUSE || name.fact == FACT_REASON || name.fact == FACT_MESSAGE ||
            name.fact == FACT_ERROR || name.fact == FACT_SYNDROME);
}

// Of a line that the input ended inside, what stands last is not known to be whole.
static void forget_last(struct form_match *match, struct slice message) {
    const char *end = message.data + message.size;
    for (uint32_t i = 0; i < match->text->pattern.name_count; i++)
        if (match->values[i].data != NULL && match->values[i].data + match->values[i].size == end &&
            !is_prose(match->text->names[i]))
            match->values[i].data = NULL;
}

static enum read_result read_kernel_form(const struct frame *frame, struct slice message,
                                         struct reading *reading) {
    enum { SECOND_US = 1000000 };
    struct form_match match;
    if (!forms_find(forms_of(frame), message, &match) || match.form->is_owner)
        return READ_NOT;
    if (frame->boot_us != 0 && frame->boot_us / SECOND_US < match.form->uptime_s)
        return READ_OTHER;
    bool breaks_off = match.form->is_kernel && frame->truncated && !match.is_cut;
    if (breaks_off)
        forget_last(&match, message);
    enum read_result result = read_match(frame, &match, reading);
    if (result == READ_EVENT && breaks_off)
        reading_yes_no(reading, FACT_TRUNCATED, true);
    return result;
}

// Which of the further texts the line has, of those behind `from`; then_count: none.
static uint32_t find_then(const struct form *form, uint32_t from, struct slice line,
                          struct slice *values) {
    while (from < form->then_count && !forms_find_then(&form->then[from], line, values))
        from++;
    return from;
}

// Behind the last of the further texts that these lines have.
static uint32_t behind_then(const struct form *form, struct slice lines) {
    struct slice values[PATTERN_NAMES_MAX];
    uint32_t next = 0;
    while (lines.size > 0) {
        uint32_t found = find_then(form, next, text_take_line(&lines), values);
        next = found < form->then_count ? found + 1 : next;
    }
    return next;
}

// Whether the row's lines may stand apart, and this one does not begin them anew.
static bool may_pass(const struct forms *forms, const struct form *form, struct slice message) {
    struct form_match again;
    return form->is_apart &&
           !(forms_find_of_programs(forms, message, &again) && again.form == form);
}

static enum block_step more_of_form(struct slice so_far, uint32_t count, const struct frame *frame,
                                    struct slice message) {
    struct form_match match;
    struct slice values[PATTERN_NAMES_MAX], lines = so_far;
    (void)count;
    if (!forms_find_of_programs(forms_of(frame), text_take_line(&lines), &match))
        return BLOCK_OVER;
    uint32_t found = find_then(match.form, behind_then(match.form, lines), message, values);
    if (found == match.form->then_count)
        return may_pass(forms_of(frame), match.form, message) ? BLOCK_PASS : BLOCK_OVER;
    return found + 1 == match.form->then_count ? BLOCK_LAST : BLOCK_TAKE;
}

static enum read_result finish_form(struct slice text, bool cut, const struct frame *frame,
                                    struct reading *reading) {
    struct form_match match;
    (void)cut;
    if (!forms_find_of_programs(forms_of(frame), text_take_line(&text), &match))
        return READ_OTHER;
    begin_reading(&match, frame, reading);
    for (uint32_t next = 0; text.size > 0;) {
        struct slice values[PATTERN_NAMES_MAX];
        uint32_t found = find_then(match.form, next, text_take_line(&text), values);
        if (found == match.form->then_count)
            continue;
        set_values(reading, &match.form->then[found], values);
        if (match.form->then[found].becomes != OBSERVATION_NONE)
            reading->what = match.form->then[found].becomes;
        next = found + 1;
    }
    return end_reading(match.form, reading);
}

const struct line_reader READER_FORMS = {.name = "forms",
                                         .passes = FORM_APART_MAX,
                                         .read = read_form,
                                         .more = more_of_form,
                                         .finish = finish_form};

const struct line_reader READER_KERNEL_FORMS = {.name = "kernel_forms", .read = read_kernel_form};

// Adds to what was read of a traceback.
static enum read_result read_owner(const struct frame *frame, struct slice line,
                                   struct reading *reading) {
    struct form_match match;
    if (!forms_find(forms_of(frame), line, &match) || !match.form->is_owner)
        return READ_NOT;
    if (reading->what == OBSERVATION_EXCEPTION)
        reading->what = match.form->kind;
    reading->no_rank = true;
    reading->no_host = !match.form->is_here;
    set_values(reading, match.text, match.values);
    return READ_EVENT;
}

const struct line_reader READER_OWNERS = {.name = "owners", .read = read_owner};
