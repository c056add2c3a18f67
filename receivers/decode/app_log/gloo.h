// SPDX-License-Identifier: Apache-2.0
// What gloo's sockets and the store of c10d write when the other end is gone or never came.
//
//     [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.…]:…
//     [c10d] recvValue failed on SocketImpl(fd=81, addr=[node-02]:51044, remote=[node-00]:29500): …
//     Timed out after 601 seconds waiting for clients. 7/8 clients joined.
#pragma once

#include "receivers/decode/app_log/rank_words.h"
#include "receivers/decode/line/reading.h"

// "Connection closed by peer", "Read error", "Write error", "Connect timeout".
enum read_result gloo_peer(struct said *said, struct reading *reading);
enum read_result gloo_pair_closed(struct said *said, struct reading *reading);
enum read_result gloo_timeout(struct said *said, struct reading *reading);
enum read_result store_socket(struct said *said, struct reading *reading);
// "Failed to check the "should dump" flag on TCPStore"
enum read_result store_flag(struct said *said, struct reading *reading);
enum read_result store_clients(struct said *said, struct reading *reading);
