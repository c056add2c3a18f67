// SPDX-License-Identifier: Apache-2.0
// The Kafka receiver: records of topics, as a member of a consumer group.
#pragma once

#include "pipeline/component/component.h"

extern const struct component_type receiver_kafka;
