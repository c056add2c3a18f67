// SPDX-License-Identifier: Apache-2.0
// How many events a second does a listener take? Posts made-up telemetry over keep-alive
// connections and prints one JSON object.
//
//   http_load --port N [--connections N] [--ranks N] [--lines N] [--events N] [--warm-up N]
//             [--pid N] [--bodies FILE --path PATH --type TYPE --steps N]
//
// Each connection has ranks of its own, whose samples it sends in order, and has one request under
// way. Bodies are made before the clock starts; between two uses only their timestamps move on,
// digit by digit in place, so that the generator costs little beside what it measures (its own CPU
// time is printed). No connection runs more than a body ahead of the slowest: one rank's samples
// must not be late for another's sake. With --pid the CPU time of that process is printed, too. One
// thread, epoll. Any answer but 200 and 202 to a request that is not put off (429, 503), or one
// that refuses events, ends it.
//
// With --bodies they are read instead, for other formats and other listeners: each begins with a
// line that holds its size; those of the first connection come first, then as many for the next.
// All their numbers of 19 digits are timestamps; --steps says how many steps of all its ranks the
// bodies of a connection cover.
#include "bench/made_lines.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 64, BODIES_MIN = 8, AHEAD_MAX = 1, ANSWER_MAX = 4096, DIGITS = 19 };
enum { STEP_NS = 100000000 }; // of made_lines.c

struct body {
    char *bytes;
    size_t size;
    uint32_t *times; // where the timestamps stand
    uint32_t time_count;
};

struct connection {
    int descriptor;
    struct body *bodies;
    uint64_t sent_bodies; // answered, too
    size_t written;       // bytes of the body under way
    bool busy;
    char answer[ANSWER_MAX];
    size_t answer_size;
};

struct load {
    uint16_t port;
    uint32_t connection_count, lines;
    uint64_t events, warm_up;
    struct made_job job;
    int pid;
    const char *bodies_file; // NULL: they are made here
    const char *path, *type;
    uint32_t body_count;  // of each connection
    uint64_t body_steps;  // that all bodies of a connection cover
    uint64_t bodies_left; // to be begun in this phase
    uint64_t put_off;
    uint64_t bytes;
    int poller;
    struct connection connections[CONNECTIONS_MAX];
};

static void fail(const char *what) {
    fprintf(stderr, "http_load: %s: %s\n", what, strerror(errno));
    exit(74);
}

static void refuse(const char *what, const char *text) {
    fprintf(stderr, "http_load: %s: %.300s\n", what, text);
    exit(65);
}

// -- bodies -------------------------------------------------------------------------------------

static uint64_t common_divisor(uint64_t a, uint64_t b) {
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void *allocate(size_t size) {
    void *memory = malloc(size);
    if (memory == NULL)
        fail("no memory");
    return memory;
}

// The request around `content`; notes all numbers of DIGITS digits in it.
static void make_request(const struct load *load, const char *content, size_t content_size,
                         struct body *body) {
    char head[1024];
    int head_size = snprintf(head, sizeof head,
                             "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\n"
                             "Content-Length: %zu\r\n\r\n",
                             load->path, load->type, content_size);
    if (head_size >= (int)sizeof head)
        refuse("too long", load->path);
    body->size = (size_t)head_size + content_size;
    body->bytes = allocate(body->size);
    memcpy(body->bytes, head, (size_t)head_size);
    memcpy(body->bytes + head_size, content, content_size);
    body->times = allocate((content_size / DIGITS + 1) * sizeof *body->times);
    body->time_count = 0;
    size_t digits = 0;
    for (size_t i = (size_t)head_size; i <= body->size; i++) {
        if (i < body->size && body->bytes[i] >= '0' && body->bytes[i] <= '9') {
            digits++;
            continue;
        }
        if (digits == DIGITS)
            body->times[body->time_count++] = (uint32_t)(i - DIGITS);
        digits = 0;
    }
}

// Lines `first` and so on of the connection, which has every connection_count-th rank.
static void make_body(const struct load *load, uint32_t connection, uint64_t first,
                      struct body *body) {
    uint64_t own = load->job.ranks / load->connection_count;
    char *lines = allocate((size_t)load->lines * MADE_LINE_MAX);
    size_t size = 0;
    for (uint32_t i = 0; i < load->lines; i++) {
        uint64_t step = (first + i) / own;
        uint64_t rank = (first + i) % own * load->connection_count + connection;
        size += made_line(&load->job, step * load->job.ranks + rank, lines + size);
    }
    make_request(load, lines, size, body);
    free(lines);
}

// How many bodies the file holds; with `load` they are made of it.
static uint32_t scan_bodies(struct load *load, FILE *file, bool taking) {
    uint32_t count = 0;
    size_t size;
    rewind(file);
    while (fscanf(file, "%zu", &size) == 1 && fgetc(file) == '\n') {
        char *content = allocate(size + 1);
        if (fread(content, 1, size, file) != size)
            refuse("--bodies ends within a body", load->bodies_file);
        if (taking)
            make_request(
                load, content, size,
                &load->connections[count / load->body_count].bodies[count % load->body_count]);
        free(content);
        count++;
    }
    if (!feof(file))
        refuse("--bodies: a body does not begin with its size", load->bodies_file);
    return count;
}

static void read_bodies(struct load *load) {
    FILE *file = fopen(load->bodies_file, "rb");
    if (file == NULL)
        fail(load->bodies_file);
    uint32_t count = scan_bodies(load, file, false);
    if (count == 0 || count % load->connection_count != 0)
        refuse("--bodies: not as many for each connection", load->bodies_file);
    load->body_count = count / load->connection_count;
    for (uint32_t i = 0; i < load->connection_count; i++) {
        load->connections[i].bodies = calloc(load->body_count, sizeof(struct body));
        if (load->connections[i].bodies == NULL)
            fail("no memory");
    }
    scan_bodies(load, file, true);
    fclose(file);
}

// Adds to a number of DIGITS digits, in place.
static void move_time(char *digits, uint64_t by_ns) {
    uint64_t time = 0;
    for (int i = 0; i < DIGITS; i++)
        time = time * 10 + (uint64_t)(digits[i] - '0');
    time += by_ns;
    for (int i = DIGITS; i-- > 0; time /= 10)
        digits[i] = (char)('0' + time % 10);
}

static void make_bodies(struct load *load) {
    uint64_t own = load->job.ranks / load->connection_count;
    // As many as end with a step, so that what follows is the same a little later.
    uint64_t round = own / common_divisor(own, load->lines);
    load->body_count = (uint32_t)(round * ((BODIES_MIN + round - 1) / round));
    load->body_steps = (uint64_t)load->body_count * load->lines / own;
    for (uint32_t i = 0; i < load->connection_count; i++) {
        struct connection *connection = &load->connections[i];
        connection->bodies = calloc(load->body_count, sizeof *connection->bodies);
        if (connection->bodies == NULL)
            fail("no memory");
        for (uint32_t j = 0; j < load->body_count; j++)
            make_body(load, i, (uint64_t)j * load->lines, &connection->bodies[j]);
    }
}

// -- connections --------------------------------------------------------------------------------

static void connect_all(struct load *load) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(load->port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    load->poller = epoll_create1(0);
    if (load->poller < 0)
        fail("epoll");
    for (uint32_t i = 0; i < load->connection_count; i++) {
        struct connection *connection = &load->connections[i];
        connection->descriptor = socket(AF_INET, SOCK_STREAM, 0);
        if (connection->descriptor < 0 ||
            connect(connection->descriptor, (struct sockaddr *)&address, sizeof address) < 0)
            fail("connect");
        int one = 1;
        (void)setsockopt(connection->descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data = {.u32 = i}};
        if (epoll_ctl(load->poller, EPOLL_CTL_ADD, connection->descriptor, &event) < 0)
            fail("epoll");
    }
}

static struct body *body_of(const struct load *load, const struct connection *connection) {
    return &connection->bodies[connection->sent_bodies % load->body_count];
}

static void write_on(struct load *load, struct connection *connection) {
    const struct body *body = body_of(load, connection);
    while (connection->busy && connection->written < body->size) {
        ssize_t sent = send(connection->descriptor, body->bytes + connection->written,
                            body->size - connection->written, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN)
            return;
        if (sent < 0)
            fail("send");
        connection->written += (size_t)sent;
        load->bytes += (uint64_t)sent;
    }
}

static void begin_some(struct load *load) {
    uint64_t slowest = UINT64_MAX;
    for (uint32_t i = 0; i < load->connection_count; i++)
        if (load->connections[i].sent_bodies < slowest)
            slowest = load->connections[i].sent_bodies;
    for (uint32_t i = 0; i < load->connection_count && load->bodies_left > 0; i++) {
        struct connection *connection = &load->connections[i];
        if (connection->busy || connection->sent_bodies > slowest + AHEAD_MAX)
            continue;
        connection->busy = true;
        connection->written = 0;
        connection->answer_size = 0;
        load->bodies_left--;
        write_on(load, connection);
    }
}

// Whether the whole answer is there.
static bool answer_is_whole(const struct connection *connection) {
    const char *end = strstr(connection->answer, "\r\n\r\n");
    const char *length = strcasestr(connection->answer, "content-length:");
    if (end == NULL || length == NULL || length > end)
        return false;
    size_t body = strtoul(length + strlen("content-length:"), NULL, 10);
    return connection->answer_size >= (size_t)(end + 4 - connection->answer) + body;
}

static void take_answer(struct load *load, struct connection *connection) {
    int status = atoi(connection->answer + strlen("HTTP/1.1 "));
    if (status == 429 || status == 503) {
        load->put_off++;
        connection->written = connection->answer_size = 0;
        usleep(1000);
        write_on(load, connection);
        return;
    }
    static const char count_key[] = "\"rejected_count\":";
    const char *refused = strstr(connection->answer, count_key);
    bool none = refused == NULL ? strcmp(load->path, "/v1/events") != 0
                                : strtoul(refused + strlen(count_key), NULL, 10) == 0;
    if ((status != 200 && status != 202) || !none ||
        strstr(connection->answer, "rejectedLogRecords") != NULL)
        refuse("the listener answered", connection->answer);
    struct body *body = body_of(load, connection);
    for (uint32_t i = 0; i < body->time_count; i++)
        move_time(body->bytes + body->times[i], load->body_steps * STEP_NS);
    connection->sent_bodies++;
    connection->busy = false;
}

static void read_on(struct load *load, struct connection *connection) {
    for (;;) {
        ssize_t got = recv(connection->descriptor, connection->answer + connection->answer_size,
                           ANSWER_MAX - 1 - connection->answer_size, MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN)
            return;
        if (got <= 0)
            fail("the listener closed a connection");
        connection->answer_size += (size_t)got;
        connection->answer[connection->answer_size] = '\0';
        if (connection->answer_size == ANSWER_MAX - 1)
            refuse("an answer is too long", connection->answer);
        if (connection->busy && answer_is_whole(connection))
            take_answer(load, connection);
    }
}

static bool any_busy(const struct load *load) {
    for (uint32_t i = 0; i < load->connection_count; i++)
        if (load->connections[i].busy)
            return true;
    return false;
}

static void send_bodies(struct load *load, uint64_t bodies) {
    load->bodies_left = bodies;
    begin_some(load);
    while (any_busy(load)) {
        struct epoll_event events[CONNECTIONS_MAX];
        int count = epoll_wait(load->poller, events, CONNECTIONS_MAX, 20000);
        if (count <= 0)
            fail("no answer within 20 s");
        for (int i = 0; i < count; i++) {
            struct connection *connection = &load->connections[events[i].data.u32];
            read_on(load, connection);
            write_on(load, connection);
        }
        begin_some(load);
    }
}

// -- figures ------------------------------------------------------------------------------------

static double now_s(clockid_t clock) {
    struct timespec now;
    if (clock_gettime(clock, &now) != 0)
        fail("a clock cannot be read");
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double cpu_of(int pid) {
    clockid_t clock;
    if (pid == 0)
        return 0;
    errno = clock_getcpuclockid(pid, &clock);
    if (errno != 0)
        fail("--pid");
    return now_s(clock);
}

static bool take(struct load *load, const char *name, const char *text) {
    if (strcmp(name, "--bodies") == 0)
        return (load->bodies_file = text) != NULL;
    if (strcmp(name, "--path") == 0)
        return (load->path = text) != NULL && *text == '/';
    if (strcmp(name, "--type") == 0)
        return (load->type = text) != NULL;
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text == '\0' || *end != '\0')
        return false;
    if (strcmp(name, "--port") == 0 && value > 0 && value < 65536)
        load->port = (uint16_t)value;
    else if (strcmp(name, "--connections") == 0 && value >= 1 && value <= CONNECTIONS_MAX)
        load->connection_count = (uint32_t)value;
    else if (strcmp(name, "--ranks") == 0 && value >= 1 && value <= 65536)
        load->job.ranks = (uint32_t)value;
    else if (strcmp(name, "--lines") == 0 && value >= 1 && value <= 10000)
        load->lines = (uint32_t)value;
    else if (strcmp(name, "--events") == 0)
        load->events = value;
    else if (strcmp(name, "--warm-up") == 0)
        load->warm_up = value;
    else if (strcmp(name, "--steps") == 0 && value >= 1)
        load->body_steps = value;
    else if (strcmp(name, "--pid") == 0 && value <= INT32_MAX)
        load->pid = (int)value;
    else
        return false;
    return true;
}

int main(int argc, char **argv) {
    static struct load load = {.connection_count = 1,
                               .lines = 300,
                               .events = 1000000,
                               .job = {.ranks = 64, .schema_version = 3},
                               .path = "/v1/events",
                               .type = "application/x-ndjson"};
    bool good = argc % 2 == 1;
    for (int i = 1; good && i + 1 < argc; i += 2)
        good = take(&load, argv[i], argv[i + 1]);
    if (!good || load.port == 0 || load.job.ranks % load.connection_count != 0 ||
        (load.bodies_file != NULL) != (load.body_steps != 0)) {
        fprintf(stderr,
                "usage: %s --port N [--connections N] [--ranks N, a multiple of it] [--lines N] "
                "[--events N] [--warm-up N] [--pid N] [--path PATH] [--type TYPE] "
                "[--bodies FILE --steps N]\n",
                argv[0]);
        return 64;
    }
    if (load.bodies_file != NULL)
        read_bodies(&load);
    else
        make_bodies(&load);
    connect_all(&load);
    send_bodies(&load, load.warm_up / load.lines);
    load.bytes = load.put_off = 0;
    uint64_t bodies = (load.events + load.lines - 1) / load.lines;
    double wall = now_s(CLOCK_MONOTONIC), own = now_s(CLOCK_PROCESS_CPUTIME_ID);
    double theirs = cpu_of(load.pid);
    send_bodies(&load, bodies);
    theirs = cpu_of(load.pid) - theirs;
    own = now_s(CLOCK_PROCESS_CPUTIME_ID) - own;
    wall = now_s(CLOCK_MONOTONIC) - wall;
    double events = (double)(bodies * load.lines);
    printf(
        "{\"connections\":%u,\"ranks\":%u,\"lines_per_request\":%u,\"bytes_per_event\":%.0f,"
        "\"events\":%.0f,\"seconds\":%.3f,\"events_per_s\":%.0f,\"put_off\":%" PRIu64
        ",\"generator_cpu_s_per_million\":%.3f,\"culprit_cpu_s_per_million\":%.3f}\n",
        (unsigned)load.connection_count, (unsigned)load.job.ranks, (unsigned)load.lines,
        (double)load.bytes / events, events, wall, events / wall, load.put_off, own / events * 1e6,
        theirs / events * 1e6);
    return 0;
}
