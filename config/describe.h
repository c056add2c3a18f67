// SPDX-License-Identifier: Apache-2.0
// Option rows for readers: a help block for terminals, a table for documents, entries of a manual
// page, a schema for editors.
#pragma once

#include "base/text/json_write.h"
#include "config/option.h"

// One row a line, in columns: name, type, default, range, what it does; groups as "group.name".
void describe_options_text(const struct option *rows, size_t count, struct buffer *out);
// The same as a Markdown table. Nothing when there are no rows.
void describe_options_markdown(const struct option *rows, size_t count, struct buffer *out);
// The same as entries of a manual page (man(7)).
void describe_options_roff(const struct option *rows, size_t count, struct buffer *out);

// JSON Schema (draft 2020-12) of a map with these options, as one value. It refers to the
// definitions that describe_schema_definitions writes.
void describe_options_schema(struct json_writer *json, const char *description,
                             const struct option *rows, size_t count);
// The same, but within an object the caller has opened: only the members that speak of the rows
// are written, `properties` is left open for more, and the caller closes it.
void describe_options_schema_open(struct json_writer *json, const char *description,
                                  const struct option *rows, size_t count);
// One member of those: key and value.
void describe_option_schema(struct json_writer *json, const struct option *row);
// The value of "$defs" in the schema's root.
void describe_schema_definitions(struct json_writer *json);
