// SPDX-License-Identifier: Apache-2.0
// What Slurm says of a job's end: lines of slurmstepd and srun in the job's output, and tables of
// `sacct -P`. Facts from slurmd/slurmstepd/req.c, srun/launch.c and sacct's manual of Slurm.
//
// Times are local, of whole seconds. The host in a "CANCELLED" line is that of who wrote it.
#pragma once

#include "receivers/decode/line/reader.h"

extern const struct line_reader READER_SLURM;
extern const struct line_reader READER_SACCT;
