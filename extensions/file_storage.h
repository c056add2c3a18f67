// SPDX-License-Identifier: Apache-2.0
// The extension that keeps what must survive a crash in a file. See file_storage/README.md.
#pragma once

#include "pipeline/component/component.h"

extern const struct component_type extension_file_storage;
