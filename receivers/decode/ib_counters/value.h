// SPDX-License-Identifier: Apache-2.0
// What one file of a network card says.
#pragma once

#include "receivers/decode/line/reading.h"

// READ_EVENT, READ_OTHER (a setting, not a counter) or READ_REFUSED (no number).
enum read_result ib_counter_read(struct reading *reading, struct slice counter, struct slice value);
// "4: ACTIVE", "5: LinkUp", "up": without the number in front. Data NULL: empty.
struct slice ib_state_word(struct slice value);
