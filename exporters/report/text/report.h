// SPDX-License-Identifier: Apache-2.0
// The report on what a last batch holds, as text for people.
#pragma once

#include "exporters/report/seen.h"
#include "exporters/report/text/layout.h"

// The whole report on what a last batch holds; where nothing was found and `verbose` is not set, a
// short one. Scratch comes from the batch's arena. `seen`: the evidence that came before.
void text_report_append(const struct batch *batch, const struct text_style *style,
                        const struct seen *seen, struct buffer *out);
