// SPDX-License-Identifier: Apache-2.0
// The API key: where it comes from, and whether it can be one.
#pragma once

#include "config/option.h"

// A copy of the key that `given` or else the netrc file holds for the host of `base_url`; its text
// is the caller's (wandb_key_release). The netrc file is $NETRC, else ~/.netrc; only the password
// counts, as for W&B's own client. STATUS_CONFIG says how to give a key, and never shows one.
enum status wandb_key_find(struct secret *key, struct secret given, const char *base_url,
                           struct error *error) MUST_USE;
void wandb_key_release(struct secret *key); // wipes it
