// SPDX-License-Identifier: Apache-2.0
// How far a program says it has come: counters of steps, batches and epochs, wherever in a line
// they stand and whatever stands in front.
//
//     iteration     4120/   50000 |        step: 4120  loss:  2.31       {'loss': 2.1, 'epoch':
//     0.34} Epoch 3:  12%|#2   | 120/1000 [01:05<07:58]         Epoch: [3][ 120/5004]  Time  0.512
//
// Of a line that was rewritten (a bar and its carriage returns) the last state counts. What is
// configured, evaluation, and bars of anything else (downloads, data sets) are no progress, nor is
// a number in a sentence ("failed at step 7"). Lines about checkpoints are rows
// (forms/rows/progress.forms).
#pragma once

#include "base/slice.h"

#include <stdint.h>

struct progress {
    int64_t step;   // -1: not said
    int64_t total;  // of the steps; -1: not said
    bool of_epoch;  // the steps are counted anew in each epoch
    bool is_bar;    // drawn once more when its program ends
    char epoch[16]; // "3", "0.3368"; empty: not said
};

enum { PROGRESS_TEXT_MAX = 1024 }; // bytes of a state that are looked at

// Whether the line is progress, and what. O(PROGRESS_TEXT_MAX), no memory, any thread.
bool progress_read(struct slice text, struct progress *progress);
// Of a line that was rewritten the last state, without blanks around it. O(size).
struct slice progress_state(struct slice text);
// Whether the second is further than the first. One that counts lower began anew.
bool progress_is_further(const struct progress *before, const struct progress *now);
