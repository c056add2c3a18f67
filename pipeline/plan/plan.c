// SPDX-License-Identifier: Apache-2.0
#include "pipeline/plan/plan.h"

#include "pipeline/component/component.h"
#include "pipeline/model/observation.h"

bool plan_pipeline_takes(const struct plan *plan, const struct plan_pipeline *pipeline,
                         uint32_t class) {
    const uint32_t *lists[] = {pipeline->processors, pipeline->exporters};
    const uint32_t counts[] = {pipeline->processor_count, pipeline->exporter_count};
    for (int list = 0; list < 2; list++)
        for (uint32_t i = 0; i < counts[list]; i++) {
            const struct plan_component *component = &plan->components[lists[list][i]];
            if (component_takes(component->type, component->config, class))
                return true;
        }
    return false;
}
