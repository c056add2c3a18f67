// SPDX-License-Identifier: Apache-2.0
// Tells Kubernetes, systemd and people how culprit is doing, over HTTP; see health_check/README.md.
#pragma once

#include "pipeline/component/component.h"

extern const struct component_type extension_health_check;
