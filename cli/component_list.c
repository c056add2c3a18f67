// SPDX-License-Identifier: Apache-2.0
#include "cli/component_list.h"

#include "exporters/html.h"
#include "exporters/json/json.h"
#include "exporters/kafka.h"
#include "exporters/prometheus/prometheus.h"
#include "exporters/text.h"
#include "exporters/wandb/wandb.h"
#include "extensions/file_storage.h"
#include "extensions/health_check.h"
#include "processors/align.h"
#include "processors/first_cause.h"
#include "processors/hbm_ecc.h"
#include "processors/incident.h"
#include "processors/job_filter.h"
#include "processors/memory_limiter.h"
#include "processors/nccl_hang.h"
#include "processors/pcie_aer.h"
#include "processors/phase_attribution.h"
#include "processors/pod_evicted.h"
#include "processors/rank_group.h"
#include "processors/spans.h"
#include "processors/spike_detect.h"
#include "processors/thermal_throttle.h"
#include "processors/xid_correlation.h"
#include "receivers/file.h"
#include "receivers/http.h"
#include "receivers/kafka/kafka.h"

// By kind, then in the order of a chain.
static const struct component_type *const types[] = {
    &receiver_file,
    &receiver_http,
    &receiver_kafka,

    &processor_memory_limiter,
    &processor_job_filter,
    &processor_rank_group,
    &processor_align,
    &processor_spike_detect,
    &processor_first_cause,
    &processor_phase_attribution,
    &processor_spans,
    &processor_nccl_hang,
    &processor_xid_correlation,
    &processor_pod_evicted,
    &processor_hbm_ecc,
    &processor_thermal_throttle,
    &processor_pcie_aer,
    &processor_incident,

    &exporter_json,
    &exporter_kafka,
    &exporter_text,
    &exporter_html,
    &exporter_prometheus,
    &exporter_wandb,

    &extension_file_storage,
    &extension_health_check,
};

struct component_set component_list(void) {
    return (struct component_set){types, sizeof(types) / sizeof(types[0])};
}
