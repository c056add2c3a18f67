// SPDX-License-Identifier: Apache-2.0
#include "receivers/kmsg/device.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

// So many failures in turn are no overrun.
enum { LOST_IN_TURN_MAX = 64 };

static const char grant[] =
    "it takes CAP_SYSLOG where kernel.dmesg_restrict is 1, and a control group that allows the "
    "device: in a systemd unit AmbientCapabilities=CAP_SYSLOG with DeviceAllow=/dev/kmsg r, in "
    "Kubernetes securityContext.privileged: true with a hostPath volume of /dev/kmsg";

static enum status say(const char *path, int failure, struct error *error) {
    if (failure == EPERM || failure == EACCES)
        return error_set_os(error, STATUS_IO, failure, "%s may not be read (%s)", path, grant);
    if (failure == ENOENT || failure == ENXIO || failure == ENODEV)
        return error_set_os(error, STATUS_IO, failure,
                            "%s is not there (a container has it only when it is mounted, in "
                            "Kubernetes as a hostPath volume)",
                            path);
    return error_set_os(error, STATUS_IO, failure, "%s cannot be read", path);
}

static enum status open_socket(struct kmsg_device *device, const char *path, struct error *error) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return error_set(error, STATUS_CONFIG, "%s: the path of a socket has at most %zu bytes",
                         path, sizeof address.sun_path - 1);
    strcpy(address.sun_path, path);
    device->descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (device->descriptor < 0)
        return say(path, errno, error);
    if (connect(device->descriptor, (struct sockaddr *)&address, sizeof address) != 0) {
        int failure = errno;
        kmsg_device_close(device);
        return say(path, failure, error);
    }
    device->is_socket = true;
    return STATUS_OK;
}

enum status kmsg_device_open(struct kmsg_device *device, const char *path, struct error *error) {
    struct stat what;
    device->descriptor = -1;
    device->is_socket = false;
    device->lost_in_turn = 0;
    if (stat(path, &what) != 0)
        return say(path, errno, error);
    if (S_ISSOCK(what.st_mode))
        return open_socket(device, path, error);
    if (!S_ISCHR(what.st_mode))
        return error_set(error, STATUS_CONFIG,
                         "%s is not a device: of other files nothing tells where a record ends; "
                         "the receiver `file` reads logs",
                         path);
    device->descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    return device->descriptor >= 0 ? STATUS_OK : say(path, errno, error);
}

void kmsg_device_close(struct kmsg_device *device) {
    if (device->descriptor >= 0)
        close(device->descriptor);
    device->descriptor = -1;
}

enum kmsg_read kmsg_device_read(struct kmsg_device *device, struct slice *record,
                                struct error *error) {
    assert(device->descriptor >= 0);
    ssize_t size;
    do
        size = read(device->descriptor, device->record, sizeof device->record);
    while (size < 0 && errno == EINTR);
    if (size > 0) {
        *record = (struct slice){device->record, (size_t)size};
        device->lost_in_turn = 0;
        return KMSG_RECORD;
    }
    if (size == 0) {
        error_set(error, STATUS_IO, "what gives the records has closed the connection");
        return KMSG_FAILED;
    }
    int failure = errno;
    if (failure == EAGAIN)
        return KMSG_DRAINED;
    if ((failure == EPIPE || failure == EINVAL) && device->lost_in_turn++ < LOST_IN_TURN_MAX)
        return KMSG_LOST;
    error_set_os(error, STATUS_IO, failure, "reading records of the kernel");
    return KMSG_FAILED;
}

bool kmsg_device_wait(const struct kmsg_device *device, int stop_descriptor, int timeout_ms) {
    assert(stop_descriptor >= 0);
    struct pollfd both[] = {{.fd = stop_descriptor, .events = POLLIN},
                            {.fd = device->descriptor, .events = POLLIN}};
    // POLLERR tells of an overrun; reading says so.
    return poll(both, device->descriptor < 0 ? 1 : 2, timeout_ms) > 0 && both[1].revents != 0;
}
