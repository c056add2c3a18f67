// SPDX-License-Identifier: Apache-2.0
// The assertions of Check that tests/receivers/fake_*.c use, for fuzz targets, which include those
// files and are not linked with Check.
#pragma once

#include <stdlib.h>

#define ck_assert(holds)                                                                           \
    do {                                                                                           \
        if (!(holds))                                                                              \
            abort();                                                                               \
    } while (0)
#define ck_assert_msg(holds, ...) ck_assert(holds)
#define ck_assert_int_eq(a, b)    ck_assert((a) == (b))
#define ck_assert_int_gt(a, b)    ck_assert((a) > (b))
#define ck_assert_uint_lt(a, b)   ck_assert((a) < (b))
#define ck_assert_uint_le(a, b)   ck_assert((a) <= (b))
#define ck_assert_uint_eq(a, b)   ck_assert((a) == (b))
#define ck_assert_ptr_null(a)     ck_assert((a) == NULL)
#define ck_assert_ptr_nonnull(a)  ck_assert((a) != NULL)
