// SPDX-License-Identifier: Apache-2.0
// The Kafka exporter: events for a gateway, or verdicts for whoever wants them.
#pragma once

#include "pipeline/component/component.h"

extern const struct component_type exporter_kafka;
