// SPDX-License-Identifier: Apache-2.0
// A verdict as labels and annotations.
//
// Labels are what Alertmanager tells alerts apart by, so they hold what says who it is about, and
// nothing that changes while evidence comes in, but for the severity: routes go by it.
#include "exporters/alertmanager/alert.h"

#include "base/text/cut.h"
#include "base/text/json_write.h"
#include "base/text/utf8.h"
#include "exporters/report/story.h"

#include <assert.h>

// LABEL_MAX, NAME_MAX_SHOWN: characters. Labels are compared, so that what is beyond is just cut.
enum { NAMED_MAX = 8, EVIDENCE_MAX = 3, LABEL_MAX = 480, NAME_MAX_SHOWN = 256 };

// In the order of the labels' names. `entity`: the kind that it names.
static const struct {
    const char *label, *entity;
} PLACES[] = {{"gpu", "gpu"}, {"nic", "nic"}, {"node", "node"}, {"pod", "pod"}, {"rank", "rank"}};

static const char *const OWN_LABELS[] = {"alertname", "gpu",          "kind",   "nic",
                                         "node",      "pattern",      "pod",    "rank",
                                         "severity",  "training_job", "verdict"};

const char *alert_label_problem(const char *label) {
    assert(label != NULL);
    size_t size = strcspn(label, "=");
    if (label[size] != '=' || label[size + 1] == '\0')
        return "it is not NAME=VALUE";
    for (size_t i = 0; i < size; i++) {
        char c = label[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (i == 0 || c < '0' || c > '9'))
            return "a name has letters, digits and underscores, and begins with no digit";
    }
    if (size == 0)
        return "its name is empty";
    for (size_t i = 0; i < sizeof OWN_LABELS / sizeof OWN_LABELS[0]; i++)
        if (slice_equal((struct slice){label, size}, slice_of(OWN_LABELS[i])))
            return "culprit sets this label itself";
    return NULL;
}

static void append_labels(const struct alert_config *config, const struct verdict *verdict,
                          struct buffer *out) {
    struct json_writer json;
    json_begin(&json, out, 0);
    json_object_open(&json);
    json_field_text(&json, "alertname", "TrainingIncident");
    for (uint32_t i = 0; i < config->labels.count; i++) {
        const char *label = config->labels.items[i];
        size_t size = strcspn(label, "=");
        json_key_slice(&json, (struct slice){label, size});
        json_text(&json, label + size + 1);
    }
    for (size_t i = 0; i < sizeof PLACES / sizeof PLACES[0]; i++) {
        const struct entity *entity = story_only_blamed(verdict, PLACES[i].entity);
        if (entity != NULL)
            json_field_slice(&json, PLACES[i].label, utf8_cut(entity->name, LABEL_MAX));
    }
    json_field_text(&json, "kind", verdict->kind);
    json_field_text(&json, "pattern", verdict->pattern);
    json_field_text(&json, "severity", severity_name(verdict->severity));
    if (verdict->job != STRING_NONE)
        json_field_slice(&json, "training_job", intern_slice(verdict->job));
    json_field_text(&json, "verdict", verdict->id);
    json_object_close(&json);
}

// "rank 3, gpu node-1/0000:3b:00.0"; those behind the eighth are counted.
static void append_who(const struct verdict *verdict, struct buffer *text) {
    char room[TEXT_ROOM(NAME_MAX_SHOWN)];
    uint32_t named = 0, more = 0;
    for (uint32_t i = 0; i < verdict->entity_count; i++) {
        const struct entity *entity = &verdict->entities[i];
        if (entity->role != verdict->entities[0].role)
            break;
        if (named == NAMED_MAX) {
            more++;
            continue;
        }
        buffer_append_text(text, named++ == 0 ? "" : ", ");
        buffer_append_format(text, "%s ", entity->kind);
        buffer_append(text, text_shorten(entity->name, NAME_MAX_SHOWN, TEXT_CHARACTERS, room));
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
        buffer_append(text, evidence_description(&verdict->evidence[i], room));
    }
    if (more > 0)
        buffer_append_format(text, "\nand %u more", more);
}

static void append_annotations(const struct verdict *verdict, struct buffer *text,
                               struct buffer *out) {
    char room[TEXT_ROOM(VERDICT_REMEDIATION_MAX)];
    struct json_writer json;
    json_begin(&json, out, 0);
    json_object_open(&json);
    json_field_text(&json, "action", verdict->action);
    buffer_append_format(text, "%d %%", verdict->confidence);
    json_field_slice(&json, "confidence", buffer_slice(text));
    buffer_reset(text);
    json_field_slice(&json, "description", verdict_remediation(verdict, room));
    append_evidence(verdict, text);
    if (text->size > 0)
        json_field_slice(&json, "evidence", buffer_slice(text));
    buffer_reset(text);
    json_field_slice(&json, "summary", verdict_headline(verdict, room));
    append_who(verdict, text);
    if (text->size > 0)
        json_field_slice(&json, verdict->entities[0].role == ROLE_VICTIM ? "victims" : "who",
                         buffer_slice(text));
    buffer_reset(text);
    json_object_close(&json);
}

void alert_encode(const struct alert_config *config, const struct verdict *verdict,
                  struct buffer *text, struct buffer *out) {
    assert(text->size == 0);
    bool fires = verdict->state != VERDICT_RESOLVED && route_matches(&config->route, verdict);
    buffer_append_format(out, "%s\t%s\t", verdict->id, fires ? "firing" : "resolved");
    buffer_append_uint(out, verdict->start_ns);
    buffer_append_char(out, '\t');
    append_labels(config, verdict, out);
    buffer_append_char(out, '\t');
    append_annotations(verdict, text, out);
    buffer_append_char(out, '\n');
}
