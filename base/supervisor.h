// SPDX-License-Identifier: Apache-2.0
// Words to the service manager that started this process (systemd's sd_notify(3) protocol):
// datagrams to the socket that $NOTIFY_SOCKET names. Without that variable nothing is sent; what
// cannot be sent is not tried again, since the manager then says itself what it misses. Main thread
// only.
#pragma once

#include <stdint.h>

// Started, or a new configuration was taken or refused.
void supervisor_ready(void);
// A new configuration is being taken; ends with supervisor_ready.
void supervisor_reloading(void);
// The end has begun.
void supervisor_stopping(void);
// Still turning. Sent only when the manager watches ($WATCHDOG_USEC), and at most four times in the
// time that it waits; so it may be called often.
void supervisor_alive(void);
// How long the manager waits for a sign of life before it kills; 0: it does not watch.
uint64_t supervisor_patience_ns(void);
