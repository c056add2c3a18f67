// SPDX-License-Identifier: Apache-2.0
// Offers verdicts and the state of each rank to Prometheus; see README.md.
#pragma once

#include "pipeline/component/component.h"

extern const struct component_type exporter_prometheus;
