// SPDX-License-Identifier: Apache-2.0
// The version of culprit. The build writes culprit_version.h; a build without it says so.
#pragma once

#if __has_include("culprit_version.h")
#include "culprit_version.h"
#endif

#ifndef CULPRIT_VERSION
#define CULPRIT_VERSION "0.2.0"
#endif
#ifndef CULPRIT_REVISION
#define CULPRIT_REVISION "unknown revision"
#endif
#ifndef CULPRIT_DATE
#define CULPRIT_DATE "1970-01-01"
#endif
