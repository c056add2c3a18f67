// SPDX-License-Identifier: Apache-2.0
#include "base/http/endpoint.h"

#include "base/memory.h"
#include "base/slice.h"

#include <arpa/inet.h>
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

enum { BACKLOG = 1024, SOCKETS_MAX = 64 };

// The listening sockets of this process: those in use, and those that are kept.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct own_socket {
    char *text; // NULL: a free place
    int descriptor;
    bool in_use;
} sockets[SOCKETS_MAX];

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

enum host_kind { HOST_NAME, HOST_LOCAL, HOST_V4, HOST_V6, HOST_ALL_V4, HOST_ALL };

struct host {
    enum host_kind kind;
    unsigned char address[sizeof(struct in6_addr)];
};

// Also the short forms of IPv4 that the system takes ("127.1", "0").
static struct host host_of(const char *text) {
    struct host host = {.kind = HOST_NAME};
    struct in_addr v4;
    if (strcmp(text, "localhost") == 0) {
        host.kind = HOST_LOCAL;
    } else if (inet_aton(text, &v4) != 0) {
        host.kind = v4.s_addr == htonl(INADDR_ANY) ? HOST_ALL_V4 : HOST_V4;
        memcpy(host.address, &v4, sizeof v4);
    } else if (inet_pton(AF_INET6, text, host.address) == 1) {
        static const struct in6_addr any = IN6ADDR_ANY_INIT;
        host.kind = memcmp(host.address, &any, sizeof any) == 0 ? HOST_ALL : HOST_V6;
    }
    return host;
}

// `one` is of the later kind.
static bool kinds_overlap(const struct host *one, const struct host *other) {
    // A socket on :: takes IPv4, too.
    if (one->kind == HOST_ALL)
        return true;
    if (one->kind == HOST_ALL_V4)
        return other->kind != HOST_V6;
    return one->kind == other->kind && one->kind != HOST_NAME &&
           memcmp(one->address, other->address, sizeof one->address) == 0;
}

static bool hosts_overlap(const struct endpoint *a, const struct endpoint *b) {
    struct host one = host_of(a->host), other = host_of(b->host);
    if (strcmp(a->host, b->host) == 0)
        return true;
    if (one.kind == HOST_LOCAL || other.kind == HOST_LOCAL)
        if (endpoint_is_loopback(a) && endpoint_is_loopback(b))
            return true;
    return one.kind < other.kind ? kinds_overlap(&other, &one) : kinds_overlap(&one, &other);
}

bool endpoint_overlaps(const struct endpoint *a, const struct endpoint *b) {
    if (a->is_unix || b->is_unix)
        return a->is_unix && b->is_unix && strcmp(a->host, b->host) == 0;
    return a->port == b->port && a->port != 0 && hosts_overlap(a, b);
}

// -- sockets ------------------------------------------------------------------------------------

static enum status say_taken(const char *text, int os_error, const char *own, struct error *error) {
    struct endpoint endpoint;
    (void)endpoint_parse(text, &endpoint);
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

static uint16_t address_port(const struct sockaddr *address) {
    if (address->sa_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port);
    if (address->sa_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)(const void *)address)->sin6_port);
    return 0;
}

static bool is_any(const struct sockaddr *address) {
    if (address->sa_family == AF_INET)
        return ((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr == INADDR_ANY;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;
    return IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr);
}

// Whether a socket on one keeps the other from being bound.
static bool addresses_overlap(const struct sockaddr *a, const struct sockaddr *b) {
    if (address_port(a) == 0 || address_port(a) != address_port(b))
        return false;
    if (a->sa_family != b->sa_family)
        return is_any(a->sa_family == AF_INET6 ? a : b); // a socket on :: takes IPv4, too
    if (is_any(a) || is_any(b))
        return true;
    if (a->sa_family == AF_INET)
        return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)(const void *)b)->sin_addr.s_addr;
    return memcmp(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
                  &((const struct sockaddr_in6 *)(const void *)b)->sin6_addr,
                  sizeof(struct in6_addr)) == 0;
}

static bool socket_is_at(const struct own_socket *own, const struct sockaddr *address) {
    struct sockaddr_storage bound = {.ss_family = AF_UNSPEC};
    socklen_t size = sizeof bound;
    return own->text != NULL &&
           getsockname(own->descriptor, (struct sockaddr *)(void *)&bound, &size) == 0 &&
           (bound.ss_family == AF_INET || bound.ss_family == AF_INET6) &&
           addresses_overlap((const struct sockaddr *)(const void *)&bound, address);
}

static void close_for_good(const char *text, int descriptor) {
    struct endpoint endpoint;
    if (endpoint_parse(text, &endpoint) == NULL && endpoint.is_unix)
        (void)unlink(endpoint.host);
    close(descriptor);
}

static void forget(struct own_socket *own) {
    memory_give(own->text);
    *own = (struct own_socket){.text = NULL};
}

// What of this process stands in the way: kept sockets are closed, for a new configuration may put
// another endpoint in their place. The text of one that is in use goes to `own`, "" when there is
// none. True when something was closed.
static bool make_way(const struct sockaddr *address, char own[ENDPOINT_HOST_MAX]) {
    bool closed = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < SOCKETS_MAX; i++) {
        if (!socket_is_at(&sockets[i], address))
            continue;
        if (sockets[i].in_use) {
            snprintf(own, ENDPOINT_HOST_MAX, "%s", sockets[i].text);
            continue;
        }
        close_for_good(sockets[i].text, sockets[i].descriptor);
        forget(&sockets[i]);
        closed = true;
    }
    pthread_mutex_unlock(&lock);
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

static int bind_address(const struct addrinfo *address, int *os_error) {
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

static int listen_address(const struct addrinfo *address, int *os_error,
                          char own[ENDPOINT_HOST_MAX]) {
    int descriptor = bind_address(address, os_error);
    if (descriptor < 0 && *os_error == EADDRINUSE && make_way(address->ai_addr, own))
        descriptor = bind_address(address, os_error);
    return descriptor;
}

// Whether a listener of this process has the unix socket.
static bool is_own_unix(const char *text) {
    bool found = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < SOCKETS_MAX && !found; i++)
        found = sockets[i].text != NULL && strcmp(sockets[i].text, text) == 0;
    pthread_mutex_unlock(&lock);
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

static uint16_t bound_port(int descriptor) {
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    socklen_t size = sizeof address;
    if (getsockname(descriptor, (struct sockaddr *)(void *)&address, &size) != 0)
        return 0;
    return address_port((const struct sockaddr *)(const void *)&address);
}

static int take_kept(const char *text) {
    int descriptor = -1;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < SOCKETS_MAX && descriptor < 0; i++) {
        struct own_socket *own = &sockets[i];
        if (own->text == NULL || own->in_use || strcmp(own->text, text) != 0)
            continue;
        own->in_use = true;
        descriptor = own->descriptor;
    }
    pthread_mutex_unlock(&lock);
    return descriptor;
}

// Without a free place it works as well: then nobody can be told that it is ours.
static void remember(const char *text, int descriptor) {
    pthread_mutex_lock(&lock);
    int place = 0;
    while (place < SOCKETS_MAX && sockets[place].text != NULL)
        place++;
    if (place < SOCKETS_MAX)
        sockets[place] =
            (struct own_socket){memory_copy_text(text, strlen(text)), descriptor, true};
    pthread_mutex_unlock(&lock);
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
        remember(text, found);
    }
    *port = bound_port(found);
    *descriptor = found;
    return STATUS_OK;
}

void endpoint_return(const char *text, int descriptor, bool keep) {
    bool known = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < SOCKETS_MAX && !known; i++) {
        struct own_socket *own = &sockets[i];
        if (own->text == NULL || own->descriptor != descriptor)
            continue;
        known = true;
        own->in_use = false;
        if (!keep)
            forget(own);
    }
    pthread_mutex_unlock(&lock);
    if (!keep || !known)
        close_for_good(text, descriptor);
}

void endpoint_drop_kept(void) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < SOCKETS_MAX; i++) {
        if (sockets[i].text == NULL || sockets[i].in_use)
            continue;
        close_for_good(sockets[i].text, sockets[i].descriptor);
        forget(&sockets[i]);
    }
    pthread_mutex_unlock(&lock);
}
