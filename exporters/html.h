// SPDX-License-Identifier: Apache-2.0
// The exporter that writes the report as one HTML page. See html/README.md and page.h.
#pragma once

#include "pipeline/component/component.h"

extern const struct component_type exporter_html;
