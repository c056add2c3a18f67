// SPDX-License-Identifier: Apache-2.0
// Any template of the webhook exporter is refused with a place and a reason, or gives one line of
// JSON, whatever a verdict holds.
//
// The input is the template up to its first zero byte; what is behind it are the verdict's texts
// and a value that is given.
#include "exporters/webhook/template.h"
#include "tests/fuzz/fuzz.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static void require_json(struct slice body) {
    require(memchr(body.data, '\n', body.size) == body.data + body.size - 1);
    json_t *document = json_loadb(body.data, body.size, 0, NULL);
    require(document != NULL);
    json_decref(document);
}

static void render(const struct body_template *template, const struct text_list *given,
                   struct slice text) {
    struct entity entities[] = {{"rank", text, ROLE_CULPRIT}, {"node", text, ROLE_VICTIM}};
    struct evidence evidence = {.uid = text, .description = text};
    struct verdict verdict = {.id = "a:0",
                              .pattern = "a",
                              .kind = "b",
                              .action = "none",
                              .job = STRING_NONE,
                              .state = (enum verdict_state)(text.size % 3),
                              .severity = (enum severity)(text.size % 4),
                              .headline = text,
                              .remediation = text,
                              .entities = entities,
                              .entity_count = 2,
                              .evidence = &evidence,
                              .evidence_count = 1};
    struct buffer scratch, line, body;
    buffer_init(&scratch, 1 << 20);
    buffer_init(&line, 64 << 20);
    buffer_init(&body, 64 << 20);
    template_render(template, &verdict, &scratch, &line);
    require(template_fill(buffer_slice(&line), given, &body));
    require(!line.failed && !body.failed && scratch.size == 0);
    require_json(buffer_slice(&body));
    // What waited may come from anybody.
    buffer_reset(&body);
    (void)!template_fill(text, given, &body);
    buffer_release(&scratch);
    buffer_release(&line);
    buffer_release(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct body_template template;
    struct template_fault fault;
    size_t length = size == 0 ? 0 : strnlen((const char *)data, size);
    struct slice source = {(const char *)data, length};
    struct slice text = {(const char *)data + length, size - length};
    if (text.size > 4096)
        text.size = 4096;
    char *value = memory_copy_text(text.data, text.size);
    char given_text[32];
    snprintf(given_text, sizeof given_text, "key=%.20s", text.size > 1 ? value + 1 : "x");
    const char *items[] = {given_text};
    struct text_list given = {items, template_given_problem(given_text) == NULL};
    if (source.size > TEMPLATE_SIZE_MAX)
        source.size = TEMPLATE_SIZE_MAX;
    for (int with = 0; with < 2; with++) {
        if (template_parse(&template, source, &given, &fault))
            render(&template, &given, text);
        else
            require(fault.text[0] != '\0' && (fault.line == 0 || fault.column > 0));
        template_release(&template);
        given.count = 0;
    }
    memory_give(value);
    return 0;
}
