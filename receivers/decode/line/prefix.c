// SPDX-License-Identifier: Apache-2.0
#include "receivers/decode/line/prefix.h"

#include "base/text/cut.h"
#include "receivers/decode/forms/rows.h"
#include "receivers/decode/line/level.h"
#include "receivers/decode/line/transport.h"
#include "receivers/decode/line/writer.h"

#include <arpa/inet.h>

enum { AGAIN_LINES = 3 };

static uint64_t hash_values(const struct form_match *match) {
    uint64_t hash = HASH_START;
    for (uint32_t i = 0; i < match->text->pattern.name_count; i++)
        if (match->values[i].data != NULL)
            hash = hash_more(hash, match->values[i].data, match->values[i].size);
    return hash;
}

// Whether the log had it often enough.
static bool is_again(struct prefixes_seen *seen, const struct form_match *match) {
    uint32_t i = 0;
    while (i < PREFIX_AGAIN_MAX && seen->rows[i].form != NULL && seen->rows[i].form != match->form)
        i++;
    if (i == PREFIX_AGAIN_MAX)
        return false;
    if (seen->rows[i].form == NULL) {
        seen->rows[i].form = match->form;
        seen->rows[i].first = hash_values(match);
    }
    seen->rows[i].differs = seen->rows[i].differs || hash_values(match) != seen->rows[i].first;
    if (seen->rows[i].lines < AGAIN_LINES)
        seen->rows[i].lines++;
    return seen->rows[i].differs && seen->rows[i].lines == AGAIN_LINES;
}

static bool whole_number(struct slice value, uint64_t most, uint64_t *number) {
    return text_number(value, 18, number) && *number <= most;
}

// A number with dots may be a version.
static bool is_address(struct slice value) {
    char text[INET6_ADDRSTRLEN];
    unsigned char ignored[sizeof(struct in6_addr)];
    if (value.size >= sizeof text)
        return false;
    memcpy(text, value.data, value.size);
    text[value.size] = '\0';
    return inet_pton(AF_INET, text, ignored) == 1 || inet_pton(AF_INET6, text, ignored) == 1;
}

// A name, or the address that somebody calls the host by.
static bool is_host(struct slice value) {
    uint64_t number;
    return memchr(value.data, ':', value.size) == NULL ? !text_number(value, 18, &number)
                                                       : is_address(value);
}

// False: this value makes it no prefix.
static bool set_number(struct peel *peel, enum form_target target, struct slice value) {
    uint64_t number;
    if (target == TARGET_PID) {
        if (!whole_number(value, INT64_MAX, &number))
            return false;
        peel->frame->pid = (int64_t)number;
        peel_numbered(peel, (int64_t)number, "pid");
    } else if (!whole_number(value, RANK_MAX, &number)) {
        return false;
    } else if (target == TARGET_RANK) {
        return writer_set_rank(peel, number);
    } else if (target == TARGET_LOCAL_RANK) {
        peel->frame->local_rank = (int32_t)number;
        peel_numbered(peel, (int64_t)number, "local");
    } else if (target == TARGET_CUDA_DEVICE) {
        peel->frame->cuda_device = (int32_t)number;
    } else {
        peel->frame->task = (int32_t)number;
        peel_numbered(peel, (int64_t)number, "task");
    }
    peel->writer = true;
    return true;
}

static bool set_value(struct peel *peel, enum form_target target, struct slice value) {
    struct frame *frame = peel->frame;
    switch (target) {
    case TARGET_RANK:
    case TARGET_LOCAL_RANK:
    case TARGET_TASK:
    case TARGET_CUDA_DEVICE:
    case TARGET_PID:
        return set_number(peel, target, value);
    case TARGET_HOST:
        frame->host = value; // settle makes it a part of the writer's name
        return is_host(value);
    case TARGET_PROGRAM:
        frame->program = value;
        return true;
    case TARGET_POD:
        frame->pod = value;
        peel_named(peel, value, "pod");
        break;
    case TARGET_NAMESPACE:
        frame->namespace = value;
        peel_named(peel, value, "namespace");
        break;
    case TARGET_CONTAINER:
        frame->container = value;
        peel_named(peel, value, "container");
        break;
    case TARGET_ADDRESS:
        if (!is_address(value))
            return false;
        frame->address = value;
        peel_named(peel, value, "address");
        break;
    case TARGET_WRITER:
        peel_named(peel, value, "writer");
        break;
    case TARGET_TIME:
        return transport_set_time(peel, value);
    case TARGET_LEVEL:
        frame->level = level_of_text(value, SCALE_NONE);
        return true;
    default: // of forms and of envelopes
        return false;
    }
    peel->writer = true;
    return true;
}

static bool set_values(struct peel *peel, const struct form_match *match) {
    for (uint32_t i = 0; i < match->text->pattern.name_count; i++)
        if (match->values[i].data != NULL &&
            !set_value(peel, match->text->names[i].target, match->values[i]))
            return false;
    return true;
}

// "</stderr>", a quotation mark: in front of it the line ends.
static void end_line(struct slice *text, struct slice until) {
    struct slice rest = *text, behind;
    while (text_find(rest, until, &behind)) {
        const char *at = behind.data - until.size;
        if (at == text->data || at[-1] != '\\') {
            text->size = (size_t)(at - text->data);
            return;
        }
        rest = behind;
    }
}

static bool counts(const struct form_match *match, struct prefixes_seen *seen, struct peel *peel) {
    if (match->form->is_names)
        return names_stand(&seen->names, peel, match);
    return !match->form->needs_again || is_again(seen, match);
}

bool prefix_peel(struct peel *peel, struct prefixes_seen *seen) {
    const struct forms *forms = peel->frame->forms;
    struct form_match match;
    struct prefix_walk walk = {0};
    size_t end;
    if (forms == NULL)
        forms = forms_builtin();
    names_pass(&seen->names, peel);
    while (forms_find_prefix(forms, peel->text, &walk, &match, &end)) {
        if (!counts(&match, seen, peel))
            continue;
        struct peel peeled = *peel;
        struct frame frame = *peel->frame;
        peeled.frame = &frame;
        if (!set_values(&peeled, &match))
            continue;
        *peel->frame = frame;
        peeled.frame = peel->frame;
        peeled.text = text_from(peel->text, end);
        if (match.form->until.data != NULL)
            end_line(&peeled.text, match.form->until);
        peeled.is_xml = match.form->is_xml;
        *peel = peeled;
        return true;
    }
    return false;
}
