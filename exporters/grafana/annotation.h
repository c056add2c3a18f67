// SPDX-License-Identifier: Apache-2.0
// What the files of the Grafana exporter share: a verdict as an annotation, and which verdicts have
// one.
//
// On its way from encode to send an annotation is one line of two parts with a tab between them:
// the verdict's id, and the JSON object that creates or changes it.
#pragma once

#include "base/buffer.h"
#include "config/client_options.h"
#include "pipeline/component/component.h"

// Bounds of Grafana's: a tag's name and its value are columns of 100 characters (512 in newer
// versions), and all tags of an annotation as a JSON array have 500 bytes unless its configuration
// says more (`[annotations] tags_length`). Source: grafana/grafana, pkg/services/annotations,
// pkg/services/tag, conf/defaults.ini.
enum {
    TAG_VALUE_MAX = 96,     // bytes
    TAGS_MAX = 500,         // bytes
    TAGS_OF_USER_MAX = 128, // bytes, of those 500
    KNOWN_MAX = 1000,       // verdicts
};

struct grafana_config {
    struct http_client_config client;
    struct text_list tags;
    const char *link;
    struct route_config route;
    struct sending_config sending;
};

// -- from a verdict to a line (encode.c) ----------------------------------------------------------

// Why an item of `tags` is none, or NULL.
const char *annotation_tag_problem(const char *tag);
// How many bytes of Grafana's TAGS_MAX a tag takes.
size_t annotation_tag_cost(size_t size);
// Appends the line. `text` is scratch; it is empty, and is left so. Scratch from the arena.
void annotation_encode(const struct grafana_config *config, const struct verdict *verdict,
                       struct arena *arena, struct buffer *text, struct buffer *out);

// -- which verdicts have one (known.c) ------------------------------------------------------------

// The ids of verdicts whose annotation Grafana had: the last KNOWN_MAX of them.
struct known_list {
    char (*ids)[VERDICT_ID_SIZE]; // [KNOWN_MAX], a ring; NULL before the first
    bool *deleted;                // [KNOWN_MAX]: somebody deleted the annotation
    uint32_t count, next;
};

void known_release(struct known_list *known);
// Its place among the ids, or KNOWN_MAX when it is not there.
uint32_t known_find(const struct known_list *known, struct slice id);
// Adds what is not there; the oldest goes when there are too many. `id` fits into VERDICT_ID_SIZE.
void known_add(struct known_list *known, struct slice id);
// All of them, oldest first, each with its newline and "-" before it when it was deleted; and back.
void known_keep(const struct known_list *known, struct buffer *out);
void known_restore(struct known_list *known, struct slice kept);
