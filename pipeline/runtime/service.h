// SPDX-License-Identifier: Apache-2.0
// A plan that runs: starts its components, moves batches through its pipelines, stops them in
// order.
//
// Once: every source of every receiver is read to its end, in the order of the paths' bytes, on the
// caller's thread; then each pipeline is evaluated once and its exporters finish. Live: each
// receiver runs on a thread of its own, pipelines are evaluated at multiples of evaluate_every in
// event time, until service_ask_stop; then receivers drain, each pipeline gets its last evaluation,
// exporters finish.
//
// With a store, state, what waits for exporters and the sources' positions are written together in
// one transaction (a checkpoint), every checkpoint_interval while something changes; a start goes
// on from the last one. A reload hands the same from one service to the next in memory.
#pragma once

#include "pipeline/plan/plan.h"
#include "pipeline/runtime/run_report.h"

struct service;
struct snapshot;

// Starts extensions, exporters, then processors (receivers start with the run), and goes on from
// `snapshot` or, when that is NULL, from the store's last checkpoint. On failure everything that
// was started is stopped again and *service is NULL.
enum status service_start(struct service **service, const struct plan *plan, bool once,
                          struct snapshot *snapshot, struct error *error) MUST_USE;
// Reads everything to its end. STATUS_CONFIG when a receiver's input has no end.
enum status service_run_once(struct service *service, struct error *error) MUST_USE;
// Runs until service_ask_stop and returns after the graceful stop; or until service_ask_reload and
// returns at once with *reload set and everything still running: then call it again, or
// service_pause.
enum status service_run(struct service *service, bool *reload, struct error *error) MUST_USE;
// Stops receivers and deliveries where they are and gives out all state, for the service of the
// next configuration. Only service_free may follow.
enum status service_pause(struct service *service, struct snapshot **snapshot,
                          struct error *error) MUST_USE;
// Any thread and signal handlers. Makes both kinds of run end early: `run_once` then fails with
// STATUS_STOPPED after finishing what it has read.
void service_ask_stop(struct service *service);
void service_ask_reload(struct service *service);
// For the health check: whether the configuration that was loaded last was taken.
void service_note_reload(struct service *service, bool taken, const char *why_not);
// Writes what it knows of itself to the log: components, queues, positions. Any thread.
void service_dump(struct service *service);
// How many bytes of the inputs are done and how many there are in all. Any thread, cheap.
void service_progress(struct service *service, uint64_t *done_bytes, uint64_t *total_bytes);
// After the run.
void service_report(struct service *service, struct report *report);
void report_release(struct report *report);
void service_free(struct service *service); // NULL is fine
