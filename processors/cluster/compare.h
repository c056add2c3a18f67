// SPDX-License-Identifier: Apache-2.0
// How names compare, for functions that sort: by their text, since ids depend on arrival. Numbers
// and several keys in turn: base/sort.h.
#pragma once

#include "base/intern.h"
#include "base/sort.h"

static inline int compare_strings(string_id a, string_id b) {
    return a == b ? 0 : slice_compare(intern_slice(a), intern_slice(b));
}
