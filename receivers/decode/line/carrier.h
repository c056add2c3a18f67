// SPDX-License-Identifier: Apache-2.0
// What an envelope (receivers/decode/forms/envelope.h) says of the line in it: when, where, whose.
#pragma once

#include "receivers/decode/forms/envelope.h"
#include "receivers/decode/line/peel.h"

// Says it of the frame, and makes the message the text that is to be peeled next. False: the line
// at hand has no message. Texts lie in the object or in `arena`.
bool carrier_set(struct peel *peel, const struct envelope *envelope, struct arena *arena);
// An object with a message that no row knows, by its keys: why it is refused.
enum decode_category carrier_refuse(struct slice object, struct decode_fault *fault);
