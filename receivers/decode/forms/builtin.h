// SPDX-License-Identifier: Apache-2.0
// The files of rows/, made into C by embed.awk.
#pragma once

extern const struct builtin_forms {
    const char *file; // "openmpi.forms"; NULL ends the list
    const char *text;
} BUILTIN_FORMS[];
