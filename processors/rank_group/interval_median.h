// SPDX-License-Identifier: Apache-2.0
// The median time between neighbouring samples of a rank, over all ranks (stormlog's cross-rank
// analysis): zero differences are left out; of an even number the mean of the middle two as a
// double, truncated; without any difference the median of the sampling intervals that the samples
// claim.
#pragma once

#include "base/arena.h"
#include "base/workers.h"
#include "pipeline/model/evaluation.h"
#include "processors/rank_group/order_statistic.h"

// (a + b) / 2 as the reference computes it: exact below 2^53, else rounded to a double and
// truncated.
__int128 median_of_middle(unsigned __int128 a, unsigned __int128 b);

// From the samples themselves, in a pass or a few over them; allocates nothing but arena scratch.
// `workers` may be NULL.
__int128 interval_median_of_samples(const struct evaluation *evaluation, struct workers *workers,
                                    struct arena *arena);
// From a multiset that was kept up to date; the samples are looked at only when it is empty.
__int128 interval_median_of_set(const struct evaluation *evaluation, struct order_statistic *set,
                                struct arena *arena);
