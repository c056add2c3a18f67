// SPDX-License-Identifier: Apache-2.0
// See job_filter/README.md.
#pragma once

#include "pipeline/component/component.h"

extern const struct component_type processor_job_filter;
