// SPDX-License-Identifier: Apache-2.0
// The listener of service.telemetry.metrics: what culprit says of its own running
// (base/metrics/metrics.h), for Prometheus and for people with curl.
#pragma once

#include "base/status.h"

struct http_server;

// Answers GET and HEAD of /metrics at `endpoint` ("127.0.0.1:8888", "unix:/run/culprit/self.sock")
// in the format and compression that the client takes. The texts must live until it is stopped.
// Fails as http_server_start does.
enum status self_metrics_start(struct http_server **server, const char *endpoint, const char *site,
                               struct error *error) MUST_USE;
