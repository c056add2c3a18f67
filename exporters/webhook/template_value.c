// SPDX-License-Identifier: Apache-2.0
// What a placeholder stands for, and how it becomes a part of a JSON string.
//
// Texts that come from events go through display_append, so that nothing in them is invisible or
// turns a line round; then through what the placeholder asks for; then they are escaped for JSON.
#include "exporters/webhook/template.h"

#include "base/memory.h"
#include "base/text/cut.h"
#include "base/text/display.h"
#include "base/text/json_write.h"
#include "base/text/rfc3339.h"

#include <assert.h>

enum { NAMED_MAX = 8, NAME_MAX_BYTES = 256, EVIDENCE_MAX = 3, PIECE_MAX = 64 << 10 };

static const char *const COMPLETENESS[] = {"full", "partial", NULL};
static const char *const ROOT[] = {"true", "false", NULL};
static const char *const SEVERITIES[] = {"info", "warning", "error", "critical", NULL};
static const char *const STATES[] = {"open", "updated", "resolved", NULL};

static const struct {
    const char *name;
    const char *const *all; // NULL: any text
} VALUES[TEMPLATE_VALUES] = {
    [VALUE_ACTION] = {"action", NULL},
    [VALUE_COMPLETENESS] = {"completeness", COMPLETENESS},
    [VALUE_CONFIDENCE] = {"confidence", NULL},
    [VALUE_END] = {"end", NULL},
    [VALUE_EVIDENCE] = {"evidence", NULL},
    [VALUE_GPUS] = {"gpus", NULL},
    [VALUE_HEADLINE] = {"headline", NULL},
    [VALUE_ID] = {"id", NULL},
    [VALUE_JOB] = {"job", NULL},
    [VALUE_KIND] = {"kind", NULL},
    [VALUE_NODES] = {"nodes", NULL},
    [VALUE_PATTERN] = {"pattern", NULL},
    [VALUE_PODS] = {"pods", NULL},
    [VALUE_RANKS] = {"ranks", NULL},
    [VALUE_REMEDIATION] = {"remediation", NULL},
    [VALUE_ROOT] = {"root", ROOT},
    [VALUE_SEVERITY] = {"severity", SEVERITIES},
    [VALUE_START] = {"start", NULL},
    [VALUE_STATE] = {"state", STATES},
    [VALUE_WHO] = {"who", NULL},
};

enum template_value template_value_of(struct slice name) {
    for (int i = VALUE_GIVEN + 1; i < TEMPLATE_VALUES; i++)
        if (slice_equal(name, slice_of(VALUES[i].name)))
            return (enum template_value)i;
    return VALUE_NONE;
}

const char *const *template_values_of(enum template_value value) {
    assert(value < TEMPLATE_VALUES);
    return VALUES[value].all;
}

void template_list_names(struct buffer *out) {
    for (int i = VALUE_GIVEN + 1; i < TEMPLATE_VALUES; i++)
        buffer_append_format(out, "%s%s", i == VALUE_GIVEN + 1 ? "" : ", ", VALUES[i].name);
}

void slack_append(struct buffer *out, struct slice text) {
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        const char *entity = c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : NULL;
        buffer_append(out, entity != NULL ? slice_of(entity) : (struct slice){&c, 1});
    }
}

// -- values ---------------------------------------------------------------------------------------

// Those that the verdict blames or suspects, of this kind; NULL: of all kinds, in the gravest role.
static void append_blamed(const struct verdict *verdict, const char *kind, struct buffer *text) {
    uint32_t named = 0, more = 0;
    for (uint32_t i = 0; i < verdict->entity_count; i++) {
        const struct entity *entity = &verdict->entities[i];
        if (kind == NULL ? entity->role != verdict->entities[0].role
                         : entity->role == ROLE_VICTIM || strcmp(entity->kind, kind) != 0)
            continue;
        if (named == NAMED_MAX) {
            more++;
            continue;
        }
        buffer_append_text(text, named++ == 0 ? "" : ", ");
        if (kind == NULL)
            buffer_append_format(text, "%s ", entity->kind);
        display_append(text, entity->name, NAME_MAX_BYTES);
    }
    if (more > 0)
        buffer_append_format(text, " and %u more", more);
}

static void append_evidence(const struct verdict *verdict, struct buffer *text) {
    char room[TEXT_ROOM(EVIDENCE_DESCRIPTION_MAX)];
    uint32_t told = 0, more = 0;
    for (uint32_t i = 0; i < verdict->evidence_count; i++) {
        if (verdict->evidence[i].repeats)
            continue;
        if (told == EVIDENCE_MAX) {
            more++;
            continue;
        }
        buffer_append_text(text, told++ == 0 ? "" : "\n");
        display_append(text, evidence_description(&verdict->evidence[i], room), 0);
    }
    if (more > 0)
        buffer_append_format(text, "\nand %u more", more);
}

static void append_time(uint64_t unix_ns, struct buffer *text) {
    char time[RFC3339_TEXT_MAX];
    rfc3339_format(unix_ns, time);
    buffer_append_text(text, time);
}

static void append_value(const struct verdict *verdict, enum template_value value,
                         struct buffer *text) {
    char room[TEXT_ROOM(VERDICT_REMEDIATION_MAX)];
    switch (value) {
    case VALUE_ACTION:
        buffer_append_text(text, verdict->action);
        break;
    case VALUE_COMPLETENESS:
        buffer_append_text(text, COMPLETENESS[verdict->partial]);
        break;
    case VALUE_CONFIDENCE:
        buffer_append_int(text, verdict->confidence);
        break;
    case VALUE_END:
        append_time(verdict->end_ns, text);
        break;
    case VALUE_EVIDENCE:
        append_evidence(verdict, text);
        break;
    case VALUE_GPUS:
        append_blamed(verdict, "gpu", text);
        break;
    case VALUE_HEADLINE:
        display_append(text, verdict_headline(verdict, room), 0);
        break;
    case VALUE_ID:
        buffer_append_text(text, verdict->id);
        break;
    case VALUE_JOB:
        if (verdict->job != STRING_NONE)
            display_append(text, intern_slice(verdict->job), NAME_MAX_BYTES);
        break;
    case VALUE_KIND:
        buffer_append_text(text, verdict->kind);
        break;
    case VALUE_NODES:
        append_blamed(verdict, "node", text);
        break;
    case VALUE_PATTERN:
        buffer_append_text(text, verdict->pattern);
        break;
    case VALUE_PODS:
        append_blamed(verdict, "pod", text);
        break;
    case VALUE_RANKS:
        append_blamed(verdict, "rank", text);
        break;
    case VALUE_REMEDIATION:
        display_append(text, verdict_remediation(verdict, room), 0);
        break;
    case VALUE_ROOT:
        buffer_append_text(text, ROOT[!verdict_is_root(verdict)]);
        break;
    case VALUE_SEVERITY:
        buffer_append_text(text, severity_name(verdict->severity));
        break;
    case VALUE_START:
        append_time(verdict->start_ns, text);
        break;
    case VALUE_STATE:
        buffer_append_text(text, verdict_state_name(verdict->state));
        break;
    case VALUE_WHO:
        append_blamed(verdict, NULL, text);
        break;
    case VALUE_NONE:
    case VALUE_GIVEN:
    case TEMPLATE_VALUES:
        assert(false);
    }
}

// -- what is done to a value ----------------------------------------------------------------------

static struct slice replaced(const struct template_piece *piece, struct slice value) {
    for (uint32_t i = 0; i < piece->item_count; i++)
        if (piece->items[i].others || slice_equal(piece->items[i].from, value))
            return piece->items[i].to;
    return value;
}

// As a part of a JSON string: without its quotes.
static void append_escaped(struct buffer *out, struct slice text, struct buffer *scratch) {
    size_t begin = scratch->size;
    json_append_string(scratch, text);
    assert(scratch->size >= begin + 2);
    buffer_append(out, (struct slice){scratch->data + begin + 1, scratch->size - begin - 2});
    scratch->size = begin;
}

// The value lies at the beginning of `text`; what is made of it behind.
static void append_piece(const struct template_piece *piece, struct buffer *text,
                         struct buffer *out) {
    struct slice kept = replaced(piece, buffer_slice(text));
    char *room = memory_take(TEXT_ROOM((size_t)piece->cut));
    if (piece->cut > 0)
        kept = text_shorten(kept, piece->cut, TEXT_CHARACTERS, room);
    struct buffer made;
    buffer_init(&made, PIECE_MAX);
    if (piece->slack)
        slack_append(&made, kept);
    else
        buffer_append(&made, kept);
    memory_give(room);
    assert(!made.failed);
    buffer_reset(text);
    append_escaped(out, buffer_slice(&made), text);
    buffer_release(&made);
}

void template_render(const struct body_template *template, const struct verdict *verdict,
                     struct buffer *text, struct buffer *out) {
    assert(template->piece_count > 0 && text->size == 0);
    for (uint32_t i = 0; i < template->piece_count; i++) {
        const struct template_piece *piece = &template->pieces[i];
        buffer_append(out, piece->raw);
        if (piece->value == VALUE_NONE)
            continue;
        if (piece->value == VALUE_GIVEN) {
            buffer_append_char(out, TEMPLATE_MARK);
            buffer_append(out, piece->name);
            buffer_append_char(out, TEMPLATE_MARK);
            continue;
        }
        append_value(verdict, piece->value, text);
        append_piece(piece, text, out);
        buffer_reset(text);
    }
    buffer_append_char(out, '\n');
}

bool template_fill(struct slice line, const struct text_list *given, struct buffer *out) {
    struct buffer scratch;
    buffer_init(&scratch, PIECE_MAX);
    bool all = true;
    while (line.size > 0 && all) {
        struct slice raw = text_until(line, TEMPLATE_MARK);
        buffer_append(out, raw);
        line = text_from(line, raw.size);
        if (line.size == 0)
            break;
        line = text_from(line, 1);
        struct slice name = text_until(line, TEMPLATE_MARK);
        const char *value = template_given(given, name);
        all = value != NULL && name.size < line.size;
        if (all) {
            append_escaped(out, slice_of(value), &scratch);
            line = text_from(line, name.size + 1);
        }
    }
    buffer_release(&scratch);
    return all;
}
