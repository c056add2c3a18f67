// SPDX-License-Identifier: Apache-2.0
// The file receiver: telemetry files and sink directories, read once or followed.
#pragma once

#include "pipeline/component/component.h"

extern const struct component_type receiver_file;
