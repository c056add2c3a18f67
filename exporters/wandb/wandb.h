// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pipeline/component/component.h"

extern const struct component_type exporter_wandb;
