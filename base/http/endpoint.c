// SPDX-License-Identifier: Apache-2.0
// The sockets of this process stand in one table under one lock.
#include "base/http/endpoint.h"

#include "base/memory.h"
#include "base/slice.h"
#include "base/thread.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 1024, SOCKETS_MAX = 64 };

// The listening sockets of this process: those in use, and those that are kept.
static struct lock lock = LOCK_INITIALIZER;
static struct own_socket {
    char *text; // NULL: a free place
    int descriptor;
    bool in_use;
} sockets[SOCKETS_MAX];

// -- the text -----------------------------------------------------------------------------------

static const char *parse_port(const char *text, uint16_t *port) {
    size_t digits = strspn(text, "0123456789");
    if (text[0] == '\0')
        return "the port is missing; write HOST:PORT, [IPV6]:PORT or unix:/PATH";
    unsigned long value = digits > 5 || text[digits] != '\0' ? ULONG_MAX : strtoul(text, NULL, 10);
    if (value > UINT16_MAX)
        return "the port must be a number from 0 to 65535";
    *port = (uint16_t)value;
    assert(digits > 0);
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

void endpoint_show(const char *text, uint16_t port, char out[ENDPOINT_SHOWN_MAX]) {
    struct endpoint endpoint;
    const char *colon = strrchr(text, ':');
    if (endpoint_parse(text, &endpoint) != NULL || endpoint.is_unix || colon == NULL)
        snprintf(out, ENDPOINT_SHOWN_MAX, "%s", text);
    else
        snprintf(out, ENDPOINT_SHOWN_MAX, "%.*s:%u", (int)(colon - text), text, (unsigned)port);
}

bool endpoint_is_loopback(const struct endpoint *endpoint) {
    return endpoint->is_unix || strcmp(endpoint->host, "localhost") == 0 ||
           strncmp(endpoint->host, "127.", 4) == 0 || strcmp(endpoint->host, "::1") == 0;
}

// -- addresses ----------------------------------------------------------------------------------

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage storage;
};

static uint16_t address_port(const union address *address) {
    return address->any.sa_family == AF_INET    ? ntohs(address->v4.sin_port)
           : address->any.sa_family == AF_INET6 ? ntohs(address->v6.sin6_port)
                                                : 0;
}

static bool is_any(const union address *address) {
    return address->any.sa_family == AF_INET ? address->v4.sin_addr.s_addr == htonl(INADDR_ANY)
                                             : IN6_IS_ADDR_UNSPECIFIED(&address->v6.sin6_addr);
}

// Whether a socket on one keeps the other from being bound.
static bool addresses_overlap(const union address *a, const union address *b) {
    if (address_port(a) == 0 || address_port(a) != address_port(b))
        return false;
    if (a->any.sa_family != b->any.sa_family)
        return is_any(a->any.sa_family == AF_INET6 ? a : b); // a socket on :: takes IPv4, too
    if (is_any(a) || is_any(b))
        return true;
    return a->any.sa_family == AF_INET ? a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr
                                       : IN6_ARE_ADDR_EQUAL(&a->v6.sin6_addr, &b->v6.sin6_addr);
}

// The addresses that the text says without being looked up, none for a name. Also the short forms
// of IPv4 that the system takes ("127.1", "0").
static int addresses_of(const struct endpoint *endpoint, union address out[2]) {
    bool local = strcmp(endpoint->host, "localhost") == 0;
    int count = 0;
    memset(out, 0, 2 * sizeof *out);
    out[0].v4.sin_port = htons(endpoint->port);
    out[0].any.sa_family = AF_INET;
    count += inet_aton(local ? "127.0.0.1" : endpoint->host, &out[0].v4.sin_addr) != 0;
    out[count].any.sa_family = AF_INET6;
    out[count].v6.sin6_port = htons(endpoint->port);
    count += inet_pton(AF_INET6, local ? "::1" : endpoint->host, &out[count].v6.sin6_addr) == 1;
    return count;
}

bool endpoint_overlaps(const struct endpoint *a, const struct endpoint *b) {
    bool same = strcmp(a->host, b->host) == 0;
    if (a->is_unix || b->is_unix)
        return a->is_unix && b->is_unix && same;
    if (a->port != b->port || a->port == 0 || same)
        return a->port == b->port && a->port != 0;
    union address ours[2], theirs[2];
    int our_count = addresses_of(a, ours), their_count = addresses_of(b, theirs);
    // A name may be any address.
    if (our_count == 0 || their_count == 0)
        return (our_count > 0 && is_any(&ours[0])) || (their_count > 0 && is_any(&theirs[0]));
    for (int i = 0; i < our_count; i++)
        for (int j = 0; j < their_count; j++)
            if (addresses_overlap(&ours[i], &theirs[j]))
                return true;
    return false;
}

// -- sockets ------------------------------------------------------------------------------------

static enum status say_taken(const char *text, int os_error, const char *own, struct error *error) {
    struct endpoint endpoint;
    (void)endpoint_parse(text, &endpoint);
    assert(os_error != 0);
    if (os_error == EADDRINUSE && own[0] != '\0')
        return error_set(error, STATUS_CANNOT_CREATE,
                         "endpoint %s cannot be used: this culprit itself listens there already, "
                         "at %s; choose another",
                         text, own);
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

static bool get_bound(int descriptor, union address *bound) {
    socklen_t size = sizeof *bound;
    bound->any.sa_family = AF_UNSPEC;
    return getsockname(descriptor, &bound->any, &size) == 0 &&
           (bound->any.sa_family == AF_INET || bound->any.sa_family == AF_INET6);
}

static void close_for_good(const char *text, int descriptor) {
    struct endpoint endpoint;
    if (endpoint_parse(text, &endpoint) == NULL && endpoint.is_unix)
        (void)unlink(endpoint.host);
    close(descriptor);
}

static void forget(struct own_socket *own) {
    assert(lock_is_held(&lock) && !own->in_use);
    memory_give(own->text);
    *own = (struct own_socket){.text = NULL};
}

// What of this process stands in the way: kept sockets are closed, for a new configuration may put
// another endpoint in their place. The text of one that is in use goes to `own`, "" when there is
// none. True when something was closed.
static bool make_way(const struct addrinfo *wanted, char own[ENDPOINT_HOST_MAX]) {
    bool closed = false;
    union address address, bound;
    assert(wanted->ai_addrlen <= sizeof address);
    memcpy(&address, wanted->ai_addr, wanted->ai_addrlen);
    lock_take(&lock);
    for (int i = 0; i < SOCKETS_MAX; i++) {
        if (sockets[i].text == NULL || !get_bound(sockets[i].descriptor, &bound) ||
            !addresses_overlap(&bound, &address))
            continue;
        if (sockets[i].in_use) {
            snprintf(own, ENDPOINT_HOST_MAX, "%s", sockets[i].text);
            continue;
        }
        close_for_good(sockets[i].text, sockets[i].descriptor);
        forget(&sockets[i]);
        closed = true;
    }
    lock_release(&lock);
    return closed;
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

// A socket that listens, -1 with the reason when that is not possible. `path`: of a unix socket.
static int listen_at(const struct sockaddr *address, socklen_t size, const char *path,
                     int *os_error) {
    int descriptor = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;
    if (descriptor >= 0 && path == NULL)
        (void)setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    // Nobody can connect before listen, so there is no moment in which others may.
    if (descriptor >= 0 && bind(descriptor, address, size) == 0 &&
        (path == NULL || chmod(path, 0660) == 0) && listen(descriptor, BACKLOG) == 0)
        return descriptor;
    *os_error = errno;
    if (descriptor >= 0)
        close(descriptor);
    return -1;
}

static int listen_unix(const char *path, int *os_error) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    assert(strlen(path) < sizeof address.sun_path); // endpoint_parse has seen to it
    memcpy(address.sun_path, path, strlen(path));
    if (is_stale(&address))
        (void)unlink(path);
    return listen_at((const struct sockaddr *)(const void *)&address, sizeof address, path,
                     os_error);
}

static int listen_address(const struct addrinfo *address, int *os_error,
                          char own[ENDPOINT_HOST_MAX]) {
    int descriptor = listen_at(address->ai_addr, address->ai_addrlen, NULL, os_error);
    if (descriptor < 0 && *os_error == EADDRINUSE && make_way(address, own))
        descriptor = listen_at(address->ai_addr, address->ai_addrlen, NULL, os_error);
    return descriptor;
}

// Whether a listener of this process has the unix socket.
static bool is_own_unix(const char *text) {
    bool found = false;
    lock_take(&lock);
    for (int i = 0; i < SOCKETS_MAX && !found; i++)
        found = sockets[i].text != NULL && strcmp(sockets[i].text, text) == 0;
    lock_release(&lock);
    return found;
}

static enum status listen_new(const char *text, const struct endpoint *endpoint, int *descriptor,
                              struct error *error) {
    int os_error = 0;
    char own[ENDPOINT_HOST_MAX] = "";
    if (endpoint->is_unix) {
        *descriptor = listen_unix(endpoint->host, &os_error);
        return *descriptor >= 0 ? STATUS_OK
                                : say_taken(text, os_error, is_own_unix(text) ? text : "", error);
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
        *descriptor = listen_address(at, &os_error, own);
        if (first_error == 0)
            first_error = os_error;
    }
    freeaddrinfo(found);
    return *descriptor >= 0 ? STATUS_OK : say_taken(text, first_error, own, error);
}

static int take_kept(const char *text) {
    int descriptor = -1;
    lock_take(&lock);
    for (int i = 0; i < SOCKETS_MAX && descriptor < 0; i++) {
        struct own_socket *own = &sockets[i];
        if (own->text == NULL || own->in_use || strcmp(own->text, text) != 0)
            continue;
        own->in_use = true;
        descriptor = own->descriptor;
    }
    lock_release(&lock);
    return descriptor;
}

// Without a free place it works as well: then nobody can be told that it is ours.
static void remember(const char *text, int descriptor) {
    assert(text[0] != '\0' && descriptor >= 0);
    lock_take(&lock);
    int place = 0;
    while (place < SOCKETS_MAX && sockets[place].text != NULL)
        place++;
    if (place < SOCKETS_MAX)
        sockets[place] =
            (struct own_socket){memory_copy_text(text, strlen(text)), descriptor, true};
    lock_release(&lock);
}

enum status endpoint_listen(const char *text, int *descriptor, uint16_t *port, bool *kept,
                            struct error *error) {
    struct endpoint endpoint;
    const char *wrong = endpoint_parse(text, &endpoint);
    if (wrong != NULL)
        return error_set(error, STATUS_CONFIG, "endpoint \"%s\" cannot be used: %s", text, wrong);
    int found = take_kept(text);
    *kept = found >= 0;
    if (found < 0) {
        enum status status = listen_new(text, &endpoint, &found, error);
        if (status != STATUS_OK)
            return status;
        remember(text, found);
    }
    union address bound;
    *port = get_bound(found, &bound) ? address_port(&bound) : 0;
    *descriptor = found;
    return STATUS_OK;
}

void endpoint_return(const char *text, int descriptor, bool keep) {
    assert(text != NULL && descriptor >= 0);
    bool known = false;
    lock_take(&lock);
    for (int i = 0; i < SOCKETS_MAX && !known; i++) {
        struct own_socket *own = &sockets[i];
        if (own->text == NULL || own->descriptor != descriptor)
            continue;
        known = true;
        assert(own->in_use);
        own->in_use = false;
        if (!keep)
            forget(own);
    }
    lock_release(&lock);
    if (!keep || !known)
        close_for_good(text, descriptor);
}

void endpoint_drop_kept(void) {
    lock_take(&lock);
    for (int i = 0; i < SOCKETS_MAX; i++) {
        if (sockets[i].text == NULL || sockets[i].in_use)
            continue;
        close_for_good(sockets[i].text, sockets[i].descriptor);
        forget(&sockets[i]);
    }
    lock_release(&lock);
}
