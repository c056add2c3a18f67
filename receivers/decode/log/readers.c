// SPDX-License-Identifier: Apache-2.0
#include "receivers/decode/log/readers.h"

#include "receivers/decode/app_log/exception.h"
#include "receivers/decode/app_log/killed.h"
#include "receivers/decode/app_log/rank_log.h"
#include "receivers/decode/ib_counters/ib_counters.h"
#include "receivers/decode/kernel_log/messages.h"
#include "receivers/decode/kernel_log/nvidia.h"
#include "receivers/decode/kernel_log/parts.h"
#include "receivers/decode/launcher/failures.h"
#include "receivers/decode/launcher/summary.h"
#include "receivers/decode/log/form_reader.h"
#include "receivers/decode/nccl_ras/nccl_ras.h"
#include "receivers/decode/nvidia_smi/nvidia_smi.h"
#include "receivers/decode/py_spy/py_spy.h"
#include "receivers/decode/slurm/slurm.h"

#include <stddef.h>

const struct line_reader *const KERNEL_READERS[] = {
    &READER_NVIDIA,
    &READER_AER,
    &READER_OOM_IN_TWO_LINES,
    &READER_HARDWARE_ERROR,
    &READER_KERNEL_MESSAGES,
    &READER_KERNEL_FORMS,
    NULL,
};

const struct line_reader *const NODE_READERS[] = {&READER_NODE_MESSAGES, &READER_FORMS, NULL};

// Blocks before single lines; what takes any exception is last.
const struct line_reader *const PROGRAM_READERS[] = {&READER_TRACEBACK,
                                                     &READER_FAULTHANDLER,
                                                     &READER_SUMMARY,
                                                     &READER_RANK_LOG,
                                                     &READER_FAILURES,
                                                     &READER_KILLED,
                                                     &READER_SLURM,
                                                     &READER_SACCT,
                                                     &READER_RAS_REPORT,
                                                     &READER_RAS_MONITOR,
                                                     &READER_IB_COUNTERS,
                                                     &READER_PY_SPY,
                                                     &READER_NVIDIA_SMI,
                                                     &READER_NODE_MESSAGES,
                                                     &READER_FORMS,
                                                     &READER_EXCEPTION,
                                                     NULL};

const struct line_reader *const REASON_READERS[] = {&READER_RANK_LOG, &READER_FORMS, NULL};

const struct line_reader *const OWNER_READERS[] = {&READER_OWNERS, NULL};
