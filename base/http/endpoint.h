// SPDX-License-Identifier: Apache-2.0
// Where a listener listens: reading "HOST:PORT", and the listening sockets of this process.
//
// Sockets are kept by the text of their endpoint, so that a listener which is started again (a
// reload) takes up the same one and no client is refused meanwhile.
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { ENDPOINT_HOST_MAX = 256, ENDPOINT_UNIX_MAX = 108 };

struct endpoint {
    bool is_unix;
    char host[ENDPOINT_HOST_MAX]; // without the brackets of IPv6; or the socket's path
    uint16_t port;
};

// "127.0.0.1:4318", "[::1]:4318", "localhost:0", "unix:/run/culprit/http.sock". NULL when it went
// well, else a clause that says what is wrong. No name is looked up.
const char *endpoint_parse(const char *text, struct endpoint *endpoint);
// The endpoint as a client would use it: with the port that was chosen in the place of port 0.
enum { ENDPOINT_SHOWN_MAX = ENDPOINT_HOST_MAX + 16 };
void endpoint_show(const char *text, uint16_t port, char out[ENDPOINT_SHOWN_MAX]);
// Whether only this machine can reach it: a unix socket, 127.x, ::1, localhost.
bool endpoint_is_loopback(const struct endpoint *endpoint);
// Whether a listener on one keeps the other from being used: the same port of the same address, or
// of all addresses. Port 0 is any that is free. No name is looked up: two names are the same when
// they are spelled so, and localhost is 127.0.0.1 and ::1.
bool endpoint_overlaps(const struct endpoint *a, const struct endpoint *b);

// A listening socket, non-blocking; the kept one of the same text when there is one. Several
// addresses of one name: the first that can be bound. A kept socket of another text that is in the
// way is closed. `kept` is set to whether it was one. STATUS_CANNOT_CREATE with address and port
// when another program has it, or this one.
enum status endpoint_listen(const char *text, int *descriptor, uint16_t *port, bool *kept,
                            struct error *error) MUST_USE;
// Gives the socket back: kept for the next one of that text, or closed (a unix socket's file goes
// with it).
void endpoint_return(const char *text, int descriptor, bool keep);
void endpoint_drop_kept(void);
