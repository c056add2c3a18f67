// SPDX-License-Identifier: Apache-2.0
#include "base/http_endpoint.h"

#include "base/memory.h"
#include "base/slice.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 1024, KEPT_MAX = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    char *text;
    int descriptor;
} kept[KEPT_MAX];

// -- the text -----------------------------------------------------------------------------------

static const char *parse_port(const char *text, uint16_t *port) {
    if (text[0] == '\0')
        return "the port is missing; write HOST:PORT, [IPV6]:PORT or unix:/PATH";
    uint32_t value = 0;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at < '0' || *at > '9' || at - text >= 5)
            return "the port must be a number from 0 to 65535";
        value = value * 10 + (uint32_t)(*at - '0');
    }
    if (value > UINT16_MAX)
        return "the port must be a number from 0 to 65535";
    *port = (uint16_t)value;
    return NULL;
}

static const char *parse_unix(const char *path, struct endpoint *endpoint) {
    if (path[0] != '/')
        return "the path of a unix socket must begin with a slash";
    if (strlen(path) >= ENDPOINT_UNIX_MAX)
        return "the path of a unix socket must be shorter than 108 bytes";
    endpoint->is_unix = true;
    snprintf(endpoint->host, sizeof endpoint->host, "%s", path);
    return NULL;
}

const char *endpoint_parse(const char *text, struct endpoint *endpoint) {
    *endpoint = (struct endpoint){.port = 0};
    if (strncmp(text, "unix:", 5) == 0)
        return parse_unix(text + 5, endpoint);
    const char *host = text;
    const char *colon = strrchr(text, ':');
    size_t size;
    if (text[0] == '[') {
        const char *close = strchr(text, ']');
        if (close == NULL || close[1] != ':')
            return "an IPv6 address is written as [ADDRESS]:PORT";
        colon = close + 1;
        host++;
        size = (size_t)(close - host);
    } else {
        if (colon == NULL)
            return "the port is missing; write HOST:PORT, [IPV6]:PORT or unix:/PATH";
        size = (size_t)(colon - host);
        if (memchr(host, ':', size) != NULL)
            return "an IPv6 address is written as [ADDRESS]:PORT";
    }
    if (size == 0)
        return "the host is missing; 127.0.0.1 is this machine only, 0.0.0.0 all its addresses";
    if (size >= ENDPOINT_HOST_MAX)
        return "the host must be shorter than 256 bytes";
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)host[i] <= ' ' || host[i] == '/')
            return "the host holds a character that no host name has";
    memcpy(endpoint->host, host, size);
    endpoint->host[size] = '\0';
    return parse_port(colon + 1, &endpoint->port);
}

bool endpoint_is_loopback(const struct endpoint *endpoint) {
    return endpoint->is_unix || strcmp(endpoint->host, "localhost") == 0 ||
           strncmp(endpoint->host, "127.", 4) == 0 || strcmp(endpoint->host, "::1") == 0;
}

// -- sockets ------------------------------------------------------------------------------------

static enum status say_taken(const char *text, int os_error, struct error *error) {
    struct endpoint endpoint;
    (void)endpoint_parse(text, &endpoint);
    if (os_error == EADDRINUSE && endpoint.is_unix)
        return error_set(error, STATUS_CANNOT_CREATE,
                         "endpoint %s cannot be used: another program listens on %s", text,
                         endpoint.host);
    if (os_error == EADDRINUSE)
        return error_set(error, STATUS_CANNOT_CREATE,
                         "endpoint %s cannot be used: another program already listens on port %u "
                         "of %s; stop it or choose another port",
                         text, (unsigned)endpoint.port, endpoint.host);
    return error_set_os(error, STATUS_CANNOT_CREATE, os_error, "endpoint %s cannot be used", text);
}

// A socket file that nobody listens on is what a killed process left.
static bool is_stale(const struct sockaddr_un *address) {
    struct stat about;
    if (lstat(address->sun_path, &about) != 0 || !S_ISSOCK(about.st_mode))
        return false;
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe < 0)
        return false;
    bool refused =
        connect(probe, (const struct sockaddr *)(const void *)address, sizeof *address) != 0 &&
        errno == ECONNREFUSED;
    close(probe);
    return refused;
}

static int listen_unix(const char *path, int *os_error) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    // endpoint_parse has seen to it that it fits.
    memcpy(address.sun_path, path, strnlen(path, sizeof address.sun_path - 1));
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0) {
        *os_error = errno;
        return -1;
    }
    if (is_stale(&address))
        (void)unlink(path);
    // Nobody can connect before listen, so there is no moment in which others may.
    if (bind(descriptor, (struct sockaddr *)(void *)&address, sizeof address) != 0 ||
        chmod(path, 0660) != 0 || listen(descriptor, BACKLOG) != 0) {
        *os_error = errno;
        close(descriptor);
        return -1;
    }
    return descriptor;
}

static int listen_address(const struct addrinfo *address, int *os_error) {
    int descriptor = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0) {
        *os_error = errno;
        return -1;
    }
    int on = 1;
    (void)setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(descriptor, address->ai_addr, address->ai_addrlen) != 0 ||
        listen(descriptor, BACKLOG) != 0) {
        *os_error = errno;
        close(descriptor);
        return -1;
    }
    return descriptor;
}

static enum status listen_new(const char *text, const struct endpoint *endpoint, int *descriptor,
                              struct error *error) {
    int os_error = 0;
    if (endpoint->is_unix) {
        *descriptor = listen_unix(endpoint->host, &os_error);
        return *descriptor >= 0 ? STATUS_OK : say_taken(text, os_error, error);
    }
    char port[8];
    snprintf(port, sizeof port, "%u", (unsigned)endpoint->port);
    struct addrinfo wanted = {.ai_family = AF_UNSPEC,
                              .ai_socktype = SOCK_STREAM,
                              .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int failure = getaddrinfo(endpoint->host, port, &wanted, &found);
    if (failure != 0)
        return error_set(error, STATUS_CANNOT_CREATE,
                         "endpoint %s cannot be used: the host %s is not known: %s", text,
                         endpoint->host, gai_strerror(failure));
    *descriptor = -1;
    // What keeps the first one from being bound is what a person wants to know.
    int first_error = 0;
    for (struct addrinfo *at = found; at != NULL && *descriptor < 0; at = at->ai_next) {
        *descriptor = listen_address(at, &os_error);
        if (first_error == 0)
            first_error = os_error;
    }
    freeaddrinfo(found);
    return *descriptor >= 0 ? STATUS_OK : say_taken(text, first_error, error);
}

static uint16_t bound_port(int descriptor) {
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    socklen_t size = sizeof address;
    if (getsockname(descriptor, (struct sockaddr *)(void *)&address, &size) != 0)
        return 0;
    if (address.ss_family == AF_INET)
        return ntohs(((struct sockaddr_in *)(void *)&address)->sin_port);
    if (address.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)(void *)&address)->sin6_port);
    return 0;
}

static int take_kept(const char *text) {
    int descriptor = -1;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < KEPT_MAX && descriptor < 0; i++) {
        if (kept[i].text != NULL && strcmp(kept[i].text, text) == 0) {
            descriptor = kept[i].descriptor;
            memory_give(kept[i].text);
            kept[i].text = NULL;
        }
    }
    pthread_mutex_unlock(&lock);
    return descriptor;
}

enum status endpoint_listen(const char *text, int *descriptor, uint16_t *port,
                            struct error *error) {
    struct endpoint endpoint;
    const char *wrong = endpoint_parse(text, &endpoint);
    if (wrong != NULL)
        return error_set(error, STATUS_CONFIG, "endpoint \"%s\" cannot be used: %s", text, wrong);
    int found = take_kept(text);
    if (found < 0) {
        enum status status = listen_new(text, &endpoint, &found, error);
        if (status != STATUS_OK)
            return status;
    }
    *port = bound_port(found);
    *descriptor = found;
    return STATUS_OK;
}

static void close_for_good(const char *text, int descriptor) {
    struct endpoint endpoint;
    if (endpoint_parse(text, &endpoint) == NULL && endpoint.is_unix)
        (void)unlink(endpoint.host);
    close(descriptor);
}

void endpoint_return(const char *text, int descriptor, bool keep) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < KEPT_MAX && keep; i++) {
        if (kept[i].text != NULL)
            continue;
        kept[i].text = memory_copy_text(text, strlen(text));
        kept[i].descriptor = descriptor;
        pthread_mutex_unlock(&lock);
        return;
    }
    pthread_mutex_unlock(&lock);
    close_for_good(text, descriptor);
}

void endpoint_drop_kept(void) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < KEPT_MAX; i++) {
        if (kept[i].text == NULL)
            continue;
        close_for_good(kept[i].text, kept[i].descriptor);
        memory_give(kept[i].text);
        kept[i].text = NULL;
    }
    pthread_mutex_unlock(&lock);
}
