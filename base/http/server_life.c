// SPDX-License-Identifier: Apache-2.0
// Starting and stopping a listener.
//
// libmicrohttpd gets epoll threads (poll with TLS), never one a connection, the connections that
// server_accept.c takes, and every bound that it knows. Its own timeout, by the second and for
// silence only, is a second net under the deadlines of server_watch.c; its own bound of connections
// would end some instead of letting them wait, so each of its threads may have all.
#include "base/http/server.h"

#include "base/clock.h"
#include "base/http/endpoint.h"
#include "base/http/server_parts.h"
#include "base/log.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CONNECTION_MEMORY = 64 << 10,
    CONNECTION_INCREMENT = 24 << 10,
    THREAD_STACK = 1 << 20,
    PEM_MAX = 1 << 20,
    NET_SLACK_S = 5,
};

#define ARRIVAL_NS      200000000ull
#define ARRIVAL_LOOK_NS 2000000ull

// GnuTLS' words for: TLS 1.2 and 1.3 only, ciphers of 128 bits and more.
static const char priorities[] = "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

// libmicrohttpd refuses HTTP/2 by itself (505) and calls no function of ours but this one.
static bool is_about_http2(const char *text) {
    return strstr(text, "HTTP response code is 505") != NULL;
}

static void say(void *context, const char *format, va_list arguments) {
    const struct http_server *server = context;
    assert(server->magic == SERVER_MAGIC);
    char text[512];
    vsnprintf(text, sizeof text, format, arguments);
    if (is_about_http2(text))
        log_write(LOG_WARN, (struct log_site){"C2111", server->options.site},
                  "a client that speaks HTTP/2, as gRPC does, was refused: %s",
                  server->options.speaks == NULL ? "HTTP/1.1 is spoken here"
                                                 : server->options.speaks);
    if (!log_enabled(LOG_DEBUG))
        return;
    size_t size = strlen(text);
    if (size > 0 && text[size - 1] == '\n')
        text[size - 1] = '\0';
    log_write(LOG_DEBUG, (struct log_site){"C2103", server->options.site}, "libmicrohttpd: %s",
              text);
}

// -- certificates -------------------------------------------------------------------------------

static enum status read_pem(const char *path, const char *what, char **text, struct error *error) {
    if (path == NULL)
        return STATUS_OK;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return error_set_os(error, STATUS_CONFIG, errno, "the %s %s cannot be read", what, path);
    struct stat about;
    bool right = fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode);
    size_t size = right && about.st_size <= PEM_MAX ? (size_t)about.st_size : 0;
    char *bytes = memory_zero(1, size + 1);
    ssize_t got = size == 0 ? 0 : read(descriptor, bytes, size);
    close(descriptor);
    *text = bytes;
    if (got <= 0 || (size_t)got != size || strstr(bytes, "-----BEGIN ") == NULL)
        return error_set(error, STATUS_CONFIG, "the %s %s is not a PEM file of at most 1 MiB", what,
                         path);
    return STATUS_OK;
}

static enum status read_tls(struct http_server *server, bool kept, struct error *error) {
    const struct http_tls *tls = &server->options.tls;
    if (tls->cert_file == NULL)
        return STATUS_OK;
    if (server->library->is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
        return error_set(error, STATUS_CONFIG, "this libmicrohttpd was built without TLS");
    const struct {
        const char *path;
        const char *what;
        char **text;
    } files[] = {{tls->cert_file, "certificate", &server->cert_text},
                 {tls->key_file, "private key", &server->key_text},
                 {tls->client_ca_file, "client certificate authority", &server->client_ca_text}};
    enum status status = STATUS_OK;
    for (int i = 0; i < 3 && status == STATUS_OK && !kept; i++)
        status = read_pem(files[i].path, files[i].what, files[i].text, error);
    if (status == STATUS_OK && tls->client_ca_file != NULL)
        status = tls_library_load(&server->tls, error);
    return status;
}

// -- connections --------------------------------------------------------------------------------

enum { GNUTLS_CERTIFICATE_REQUEST = 1 }; // GNUTLS_CERT_REQUEST

static void notice_connection(void *context, struct MHD_Connection *native, void **place,
                              enum MHD_ConnectionNotificationCode what) {
    struct http_server *server = context;
    assert(server->magic == SERVER_MAGIC);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*place != NULL)
            watch_disconnect(*place);
        *place = NULL;
        accept_left(server);
        return;
    }
    const union MHD_ConnectionInfo *info =
        server->library->get_connection_info(native, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info != NULL)
        *place = watch_connect(server, info->connect_fd);
    if (server->tls == NULL)
        return;
    info = server->library->get_connection_info(native, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    if (info == NULL || info->tls_session == NULL)
        return; // no certificate is asked for, so each request is refused
    // Asked for, and looked at with the first request (server_check.c).
    server->tls->certificate_server_set_request(info->tls_session, GNUTLS_CERTIFICATE_REQUEST);
}

// -- start --------------------------------------------------------------------------------------

static unsigned net_timeout_s(const struct http_server_options *options) {
    uint64_t most = options->header_timeout_ns;
    const uint64_t others[] = {options->body_timeout_ns, options->write_timeout_ns,
                               options->idle_timeout_ns};
    for (int i = 0; i < 3; i++)
        most = others[i] > most ? others[i] : most;
    return most == 0 ? 0 : (unsigned)((most + 999999999) / 1000000000) + NET_SLACK_S;
}

static enum status start_daemon(struct http_server *server, struct error *error) {
    const struct http_server_options *options = &server->options;
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC |
                     MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    // With epoll libmicrohttpd takes a handshake that waits for the client for one that can go on,
    // and spins until its deadline. poll costs O(connections) a turn, but sleeps.
    flags |= server->cert_text == NULL ? MHD_USE_EPOLL : MHD_USE_POLL;
    struct MHD_OptionItem more[8];
    int count = 0;
    if (options->threads > 1)
        more[count++] =
            (struct MHD_OptionItem){MHD_OPTION_THREAD_POOL_SIZE, (intptr_t)options->threads, NULL};
    if (server->cert_text != NULL) {
        flags |= MHD_USE_TLS;
        more[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0, server->cert_text};
        more[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, server->key_text};
        more[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)priorities};
    }
    if (server->client_ca_text != NULL)
        more[count++] =
            (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_TRUST, 0, server->client_ca_text};
    more[count] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
    // Signals are for the main thread.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    server->daemon = server->library->start_daemon(
        flags, 0, NULL, NULL, exchange_access, server, MHD_OPTION_EXTERNAL_LOGGER, say, server,
        MHD_OPTION_CONNECTION_LIMIT, options->max_connections * options->threads,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, options->max_connections_per_address,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
        MHD_OPTION_CONNECTION_MEMORY_INCREMENT, (size_t)CONNECTION_INCREMENT,
        MHD_OPTION_CONNECTION_TIMEOUT, net_timeout_s(options), MHD_OPTION_THREAD_STACK_SIZE,
        (size_t)THREAD_STACK, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_URI_LOG_CALLBACK,
        exchange_begin, server, MHD_OPTION_NOTIFY_COMPLETED, exchange_completed, server,
        MHD_OPTION_NOTIFY_CONNECTION, notice_connection, server, MHD_OPTION_ARRAY, more,
        MHD_OPTION_END);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (server->daemon != NULL)
        return STATUS_OK;
    return server->cert_text != NULL
               ? error_set(error, STATUS_CONFIG,
                           "endpoint %s cannot serve HTTPS: certificate %s and key %s cannot be "
                           "used, or do not belong together",
                           options->endpoint, options->tls.cert_file, options->tls.key_file)
               : error_set(error, STATUS_OS, "the listener for %s cannot be started",
                           options->endpoint);
}

static void release(struct http_server *server) {
    assert(server->active == 0 && server->waiting == 0);
    while (server->spare != NULL) {
        struct http_exchange *exchange = server->spare;
        server->spare = exchange->next;
        exchange_free(exchange);
    }
    body_deflater_release(server);
    token_close(&server->token);
    if (server->key_text != NULL)
        explicit_bzero(server->key_text, strlen(server->key_text));
    memory_give(server->key_text);
    memory_give(server->cert_text);
    memory_give(server->client_ca_text);
    pthread_cond_destroy(&server->quieter);
    lock_destroy(&server->lock);
    lock_destroy(&server->accepting.lock);
    server->magic = 0;
    memory_give(server);
}

static enum status open_all(struct http_server *server, struct error *error) {
    const struct http_server_options *options = &server->options;
    enum status status =
        token_open(&server->token, options->bearer_token, options->bearer_token_file, error);
    bool kept = kept_files_take(server);
    if (kept)
        status = STATUS_OK;
    if (status == STATUS_OK)
        status = http_library_load(&server->library, error);
    if (status == STATUS_OK)
        status = read_tls(server, kept, error);
    if (status != STATUS_OK)
        return status;
    status = endpoint_listen(options->endpoint, &server->descriptor, &server->port,
                             &server->takes_over, error);
    if (status != STATUS_OK)
        return status;
    for (uint32_t i = 0; i < options->path_count; i++)
        if (options->paths[i].events != NULL)
            events_open(options->paths[i].events);
    status = watch_start(server, error);
    if (status == STATUS_OK)
        status = start_daemon(server, error);
    if (status == STATUS_OK) {
        accept_begin(server);
        return STATUS_OK;
    }
    watch_stop(server);
    endpoint_return(options->endpoint, server->descriptor, false);
    return status;
}

enum status http_server_start(struct http_server **out, const struct http_server_options *options,
                              struct error *error) {
    struct http_server *server = memory_zero(1, sizeof *server);
    assert(options->path_count <= HTTP_PATHS_MAX && options->max_connections > 0);
    server->magic = SERVER_MAGIC;
    server->options = *options;
    if (server->options.threads == 0)
        server->options.threads = 1;
    if (server->options.threads > server->options.max_connections)
        server->options.threads = server->options.max_connections;
    if (server->options.max_pending_bytes == 0)
        server->options.max_pending_bytes = 4 * options->max_request_bytes + (1 << 20);
    lock_init(&server->lock);
    lock_init(&server->accepting.lock);
    cond_init(&server->quieter);
    enum status status = open_all(server, error);
    if (status != STATUS_OK) {
        release(server);
        return status;
    }
    *out = server;
    return STATUS_OK;
}

// -- while it runs ------------------------------------------------------------------------------

uint16_t http_server_port(const struct http_server *server) {
    return server->port;
}

bool http_server_takes_over(const struct http_server *server) {
    return server->takes_over;
}

uint64_t http_server_connections(const struct http_server *server) {
    return atomic_load(&server->connections);
}

// Waits for requests under way, but for answers that others owe without end: libmicrohttpd cannot
// be stopped while a connection rests.
static void wait_quiet(struct http_server *server, uint64_t grace_ns) {
    uint64_t begun_ns = clock_monotonic_ns();
    uint64_t until_ns = begun_ns + grace_ns;
    // A client that has just been let in has its request on the way.
    while (watch_expects_request(server) && clock_monotonic_ns() < until_ns &&
           clock_monotonic_ns() < begun_ns + ARRIVAL_NS)
        clock_sleep_ns(ARRIVAL_LOOK_NS);
    lock_take(&server->lock);
    while (server->active > 0 && cond_wait_until(&server->quieter, &server->lock, until_ns))
        continue;
    while (server->waiting > 0)
        cond_wait(&server->quieter, &server->lock);
    lock_release(&server->lock);
}

void http_server_stop(struct http_server *server, uint64_t grace_ns, bool keep) {
    if (server == NULL)
        return;
    assert(server->magic == SERVER_MAGIC && !atomic_load(&server->stopping));
    atomic_store(&server->stopping, true);
    accept_end(server);
    endpoint_return(server->options.endpoint, server->descriptor, keep);
    for (uint32_t i = 0; i < server->options.path_count; i++)
        if (server->options.paths[i].events != NULL)
            events_close(server->options.paths[i].events);
    wait_quiet(server, grace_ns);
    server->library->stop_daemon(server->daemon);
    watch_stop(server);
    if (keep)
        kept_files_leave(server);
    release(server);
}

void http_server_drop_kept(void) {
    endpoint_drop_kept();
    kept_files_drop();
}
