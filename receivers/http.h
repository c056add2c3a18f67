// SPDX-License-Identifier: Apache-2.0
// The HTTP receiver: events and OTLP logs that clients post.
#pragma once

#include "pipeline/component/component.h"

extern const struct component_type receiver_http;
