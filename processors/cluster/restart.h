// SPDX-License-Identifier: Apache-2.0
// Whether it helps to start the job again as it is: the attribute "culprit.restart" of a verdict.
#pragma once

#include "processors/cluster/causes.h"
#include "processors/cluster/verdict_builder.h"

void restart_tell(struct verdict_builder *builder, enum restart restart);
