// SPDX-License-Identifier: Apache-2.0
// What `nvidia-smi -q` says of each GPU, as text and as XML (`-x`).
#pragma once

#include "receivers/decode/line/reader.h"

// One reading for each GPU: OBSERVATION_NODE_FAULT with what is worst about it, and as `message`
// all that is wrong; OBSERVATION_HEALTH_EVENT where nothing is.
extern const struct line_reader READER_NVIDIA_SMI;
