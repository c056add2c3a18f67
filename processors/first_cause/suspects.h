// SPDX-License-Identifier: Apache-2.0
// From spikes to a ranked list of suspects, as stormlog's cross-rank analysis ranks them.
#pragma once

#include "base/arena.h"
#include "pipeline/model/evaluation.h"

enum suspect_source {
    SUSPECTS_OF_ALL,             // rank_spike.first, on the summary's offsets
    SUSPECTS_OF_GENERATION,      // rank_spike.first_of_generation, on the generation's offsets
    SUSPECTS_KEPT_OF_GENERATION, // rank_spike.kept, likewise
};

// Candidates by (aligned time, larger growth, rank); onset: the second's aligned time; suspects:
// all at or before the onset, or the only one. O(candidates · log).
void suspects_rank(const struct evaluation *evaluation, enum suspect_source source,
                   struct arena *arena, struct suspect_list *out);
