// SPDX-License-Identifier: Apache-2.0
// Reads a request for a tap: /tap?pipeline=NAME&stage=ID&kind=A,B&job=NAME&rank=N&every=N&rate=N&
// limit=N, percent-encoded.
//
// `stage` is the id of a processor of the pipeline: events of kinds that it takes, behind it, and
// the verdicts that it adds; "out": verdicts as exporters get them; without it the events that
// enter.
#pragma once

#include "pipeline/runtime/control/tap.h"
#include "pipeline/runtime/runner.h"

enum { TAP_RATE_DEFAULT = 100 };

struct tap_request {
    struct runner *runner;
    struct tap_choice choice;
    uint64_t limit; // records; 0: without end
};

struct service;

// `query` is what follows the question mark; it is changed. STATUS_NOT_FOUND: no such pipeline or
// stage; STATUS_USAGE: anything else that is wrong. The service stands still.
enum status tap_request_read(struct tap_request *request, struct service *service, char *query,
                             struct error *error) MUST_USE;
