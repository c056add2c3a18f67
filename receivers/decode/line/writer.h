// SPDX-License-Identifier: Apache-2.0
// Prefixes that say which process or container wrote the line.
//
//   kubectl --prefix     "[pod/trainer-3/worker] text": pod and container
//   Ray                  "(RayTrainWorker pid=81201, ip=10.0.0.5) text", " [repeated 7x across
//                        cluster]" at the end: process and address, no rank
//   PyTorch              "[rank3]: text", "[rank3]:[E…": rank
//   torchrun             "[default3]:text": rank on the node
//   mpirun --tag-output  "[1,3]<stderr>:text": rank
//   srun -l, NVRx        "12: text", with blanks to the width of the largest: rank where the number
//                        of ranks is known, else task
#pragma once

#include "receivers/decode/line/peel.h"

// Takes one prefix off the text; false when there is none in front. O(size of the prefix), but for
// Ray's, whose end is looked for within its bound.
bool writer_peel(struct peel *peel);
// "12: " in front. It may be the number of a line as well, in what somebody pasted: whoever calls
// decides by `labels`.
bool writer_take_label(struct slice *text, uint32_t *number, uint32_t *width);
// The line is of this rank; false: it cannot be one.
bool writer_set_rank(struct peel *peel, uint64_t rank);
// Behind text of which nothing is known (a progress bar): the first "[rank3]:", and what stands in
// front of it is dropped. O(text).
bool writer_peel_inside(struct peel *peel);
