// SPDX-License-Identifier: Apache-2.0
// What another thread does is waited for. The limit only names what never happens: no test may need
// it, however slow the machine. It is below that of a whole test (CK_DEFAULT_TIMEOUT).
#pragma once

#include "base/clock.h"

#include <check.h>
#include <stdbool.h>
#include <stdint.h>

enum { EVENTUALLY_S = 90 };

#define EVENTUALLY(condition)                                                                      \
    do {                                                                                           \
        uint64_t until_ns_ = clock_monotonic_ns() + EVENTUALLY_S * UINT64_C(1000000000);           \
        bool holds_;                                                                               \
        while (!(holds_ = (condition)) && clock_monotonic_ns() < until_ns_)                        \
            clock_sleep_ns(1000000);                                                               \
        ck_assert_msg(holds_, "never: %s", #condition);                                            \
    } while (0)
