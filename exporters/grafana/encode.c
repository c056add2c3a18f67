// SPDX-License-Identifier: Apache-2.0
// A verdict as an annotation: when, which tags, and a text.
//
// Grafana shows the text as HTML, so all that is not markup of our own goes through html_text. It
// cuts a tag at its colons and keeps the first two parts, so a value has none; a verdict's id,
// PATTERN:DIGEST, is such a pair as it is.
#include "exporters/grafana/annotation.h"

#include "base/text/cut.h"
#include "base/text/display.h"
#include "base/text/json_write.h"
#include "exporters/report/page/parts.h"
#include "exporters/report/story.h"

#include <assert.h>

enum { NS_A_MS = 1000000 };

size_t annotation_tag_cost(size_t size) {
    return size + 3; // quotes and a comma
}

const char *annotation_tag_problem(const char *tag) {
    assert(tag != NULL);
    size_t size = strlen(tag), name = strcspn(tag, ":");
    struct slice trimmed = text_trim(slice_of(tag));
    if (name == 0 || trimmed.size != size)
        return "it is empty, has no name, or begins or ends with a blank";
    if (name < size && (tag[name + 1] == '\0' || strchr(tag + name + 1, ':') != NULL))
        return "it is neither NAME nor NAME:VALUE; Grafana drops what follows a second colon";
    if (name > TAG_VALUE_MAX || size - name > TAG_VALUE_MAX + 1)
        return "its name or its value is longer than 96 bytes";
    return NULL;
}

// -- tags -----------------------------------------------------------------------------------------

// NAME:VALUE, where the value is a text of events. Nothing when no value is left.
static void tag_put(struct json_writer *json, const char *name, struct slice value,
                    struct buffer *text) {
    buffer_append_format(text, "%s:", name);
    size_t begin = text->size;
    display_append(text, text_trim(value), TAG_VALUE_MAX);
    for (size_t i = begin; i < text->size; i++)
        if (text->data[i] == ':')
            text->data[i] = '_';
    if (text->size > begin)
        json_slice(json, buffer_slice(text));
    buffer_reset(text);
}

static void tags_append(const struct grafana_config *config, const struct verdict *verdict,
                        struct json_writer *json, struct buffer *text) {
    json_field_array_open(json, "tags");
    json_text(json, "culprit");
    json_text(json, verdict->id);
    tag_put(json, "severity", slice_of(severity_name(verdict->severity)), text);
    tag_put(json, "pattern", slice_of(verdict->pattern), text);
    if (verdict->job != STRING_NONE)
        tag_put(json, "job", intern_slice(verdict->job), text);
    const struct entity *node = story_only_blamed(verdict, "node");
    if (node != NULL)
        tag_put(json, "node", node->name, text);
    for (uint32_t i = 0; i < config->tags.count; i++)
        json_text(json, config->tags.items[i]);
    json_array_close(json);
}

// -- text -----------------------------------------------------------------------------------------

static void link_append(struct html *html, const char *link, const char *id) {
    html_raw(html, "<br><a href=\"");
    for (struct slice rest = slice_of(link); rest.size > 0;) {
        struct slice plain = text_until(rest, '{');
        html_text(html, plain);
        rest = text_from(rest, plain.size);
        if (text_skip(&rest, SLICE("{id}")))
            html_text(html, slice_of(id));
        else if (rest.size > 0)
            html_text(html, text_take(&rest, 1));
    }
    html_raw(html, "\">more</a>");
}

static void text_append(const struct grafana_config *config, const struct verdict *verdict,
                        struct arena *arena, struct buffer *text) {
    struct html html;
    html_init(&html, text, arena);
    char room[TEXT_ROOM(VERDICT_REMEDIATION_MAX)];
    html_raw(&html, "<b>");
    html_text(&html, verdict_headline(verdict, room));
    html_raw(&html, "</b><br>");
    html_text(&html, verdict_remediation(verdict, room));
    html_format(&html, "<br>%s, %s, confidence %d %%", severity_name(verdict->severity),
                verdict_state_name(verdict->state), verdict->confidence);
    if (config->link != NULL)
        link_append(&html, config->link, verdict->id);
    html_release(&html);
}

// -- the line -------------------------------------------------------------------------------------

// Grafana's times are in ms. Without one of its own an annotation is at the time of its creation.
static void times_append(const struct verdict *verdict, struct json_writer *json) {
    uint64_t start_ms = verdict->start_ns / NS_A_MS, end_ms = verdict->end_ns / NS_A_MS;
    if (start_ms == 0)
        return;
    json_field_uint(json, "time", start_ms);
    json_field_uint(json, "timeEnd", end_ms > start_ms ? end_ms : start_ms);
}

void annotation_encode(const struct grafana_config *config, const struct verdict *verdict,
                       struct arena *arena, struct buffer *text, struct buffer *out) {
    assert(text->size == 0 && verdict->id[0] != '\0');
    buffer_append_format(out, "%s\t", verdict->id);
    struct json_writer json;
    json_begin(&json, out, 0);
    json_object_open(&json);
    times_append(verdict, &json);
    tags_append(config, verdict, &json, text);
    text_append(config, verdict, arena, text);
    json_field_slice(&json, "text", buffer_slice(text));
    buffer_reset(text);
    json_object_close(&json);
    buffer_append_char(out, '\n');
    assert(!text->failed);
}
