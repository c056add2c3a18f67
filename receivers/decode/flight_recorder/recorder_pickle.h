// SPDX-License-Identifier: Apache-2.0
// Reads a pickle as PyTorch's recorder writes it straight into a dump, without values in between.
#pragma once

#include "receivers/decode/flight_recorder/parts.h"

// True: `dump` holds what pickle_read and from_pickle.c make of the same record, which they accept.
// False: the record is anything else (wrong, or right and written otherwise), and nothing is said
// about it; `dump` is to be thrown away. `scratch` is needed until it returns; texts of the dump
// point into the record or lie in `arena`. `*entries_seen` as for flight_finish. Any thread.
bool recorder_pickle_read(struct slice record, uint32_t entry_hint, struct arena *scratch,
                          struct arena *arena, struct flight_dump *dump, uint32_t *entries_seen);
