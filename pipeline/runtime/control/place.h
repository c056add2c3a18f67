// SPDX-License-Identifier: Apache-2.0
// Where the control socket of a running culprit is, and who may open it.
//
// Without a path of its own a socket is DIRECTORY/PID.sock. DIRECTORY is the first of these that
// can be used: $XDG_RUNTIME_DIR/culprit/control, /run/culprit/control, /tmp/culprit-UID/control,
// /var/lib/culprit/control. It belongs to the user and has the mode 0700, the socket 0600; and the
// kernel says whose process connects (SO_PEERCRED): only the same user's, or root's, is let in.
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { CONTROL_PATH_MAX = 108, CONTROL_FOUND_MAX = 32 }; // as sockaddr_un has it

struct control_socket {
    char path[CONTROL_PATH_MAX];
    int descriptor; // -1: none
    dev_t device;   // the file that was made, to be told from one that took its place
    ino_t inode;
};

// Listens at `path`; NULL: at the usual place, where sockets that processes which are gone left are
// removed. A socket that nobody listens on is replaced; one that a living process listens on, and a
// file that is no socket, is STATUS_CANNOT_CREATE.
enum status control_listen(struct control_socket *made, const char *path,
                           struct error *error) MUST_USE;
// Closes it and removes its file.
void control_unlisten(struct control_socket *made);
// Whether the process at the other end may use it; `user` is whose it is.
bool control_peer_allowed(int descriptor, uid_t *user);

// The sockets at the usual places on which a culprit of this user listens (for root: of any user
// whose socket is in its own directories), sorted by path. At most CONTROL_FOUND_MAX.
uint32_t control_find(char found[CONTROL_FOUND_MAX][CONTROL_PATH_MAX]);
// A non-blocking descriptor. STATUS_NOT_FOUND when nobody listens there, STATUS_DENIED when this
// user may not.
enum status control_connect(const char *path, int *descriptor, struct error *error) MUST_USE;
