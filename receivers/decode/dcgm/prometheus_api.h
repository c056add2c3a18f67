// SPDX-License-Identifier: Apache-2.0
// What Prometheus' HTTP API answers to `query` and `query_range`, with series of GPUs in it:
//
//     {"status": "success", "data": {"resultType": "matrix", "result": [
//         {"metric": {"__name__": …, label: text, …}, "values": [[seconds, "number"], …]}, …]}}
//
// The document is one record: one EVENT_GPU_SAMPLE, with a sample for each GPU and time.
#pragma once

#include "pipeline/component/decoder.h"

extern const struct decoder_type decoder_prometheus_api;
