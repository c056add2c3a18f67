// SPDX-License-Identifier: Apache-2.0
// What the Prometheus exporter shows: verdicts that stand, what was counted, and how each rank was
// at the last evaluation. Filled by batches, written out for a scrape; does not know of HTTP, locks
// or clocks (times are given).
//
// A job and all about it is shown until `expiration_ns` after its last evaluation or verdict; a
// verdict that stands keeps its job. Bounded: `max_series`, of which ranks and spans get three
// quarters, so that they cannot crowd out verdicts, and spans one of these at most; what has no
// room is folded into one series a family.
#pragma once

#include "exporters/prometheus/board_rows.h"
#include "pipeline/component/state.h"

// The tables, for an owner that begins with its board.
enum { BOARD_STATE_ROWS = 6 };
extern const struct state_row board_state_rows[BOARD_STATE_ROWS];

// Sets what is not zero; the tables are there.
void board_init(struct board *board, uint32_t max_series, uint64_t expiration_ns, bool live);
void board_release(struct board *board); // all but the tables
// After the tables were loaded.
void board_restored(struct board *board, uint64_t monotonic_ns);
// Takes in what a batch holds. Allocates only for what is new.
void board_update(struct board *board, const struct batch *batch, struct board_moment now);
// Writes all families, without beginning and end of the exposition.
void board_expose(struct board *board, struct exposition *exposition, uint64_t monotonic_ns);
