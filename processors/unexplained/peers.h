// SPDX-License-Identifier: Apache-2.0
// Whom signs of a failure name as the other end of a connection that was lost or never came about,
// and where the processes of a job looked for one another.
#pragma once

#include "processors/unexplained/signs.h"

// Of one job; more are not compared.
enum { LAYOUTS_MAX = 256 };

// Host or address that the sign's words name as the other end, without its port; empty: none, or
// one of the machine itself (localhost). A slice of the sign's text. O(size of the text).
struct slice sign_peer(const struct sign *sign);
// Whether two hosts or addresses cannot be one: a name and an address may be.
bool peers_differ(struct slice a, struct slice b);
// Where the process of a sign of kind job_layout looks for its job, with the port. A slice of the
// sign's text.
struct slice peer_meeting(const struct sign *sign);
// The only one of three or more that looks for its job elsewhere than all others do; NULL: there is
// none such. `others`: where these do. O(count * count).
const struct sign *peer_find_odd(const struct sign *const *layouts, uint32_t count,
                                 struct slice *others);
// Host or address where all of them look for their job; empty: they differ, or it is their own.
struct slice peer_common_host(const struct sign *const *layouts, uint32_t count);
