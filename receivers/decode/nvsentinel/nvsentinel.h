// SPDX-License-Identifier: Apache-2.0
// The decoder of health events of NVSentinel, as its exporter sends them: CloudEvents of type
// "com.nvidia.nvsentinel.health.v1", one JSON object each.
//
// Each is an observation health_event: on which node (`nodeName`), of which GPU, card or switch
// (`entitiesImpacted`), whether it is fatal, whether it is the end of one that came before
// (`healthy`), and what is to be done (`action`). The Xid or SXid of a check that reads them from
// the kernel log is told too: the same fault, should that log be read as well. CloudEvents of other
// types are DECODE_NOTHING.
#pragma once

#include "pipeline/component/decoder.h"

extern const struct decoder_type decoder_nvsentinel;
