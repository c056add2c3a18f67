// SPDX-License-Identifier: Apache-2.0
// The libraries of listeners and of clients, for component_type: declared apart, so that who names
// them sees nothing of them.
#pragma once

#include "base/late_library.h"

extern struct late_library http_server_library; // libmicrohttpd
extern struct late_library http_client_library; // libcurl
