// SPDX-License-Identifier: Apache-2.0
// What happens when the n-th call of a kind fails?
//
// Loaded by LD_PRELOAD in front of libc, for tests only. Configured by the environment:
//   CULPRIT_FAULT         CALL:N:ERROR[:COUNT], several with commas between them: from the N-th
//                         call of this kind on, COUNT calls (1; 0: all) fail with errno ERROR, a
//                         name of the table below; a write that fails with SHORT writes the half
//   CULPRIT_FAULT_BELOW   only calls on files, or names of files, that begin with this path
//   CULPRIT_FAULT_ARMED   only calls while this file is there count
//   CULPRIT_FAULT_REPORT  file that a line is appended to whenever a call is made to fail, and at
//                         the end one with the count of each kind
//   CULPRIT_FAULT_CLOCK   file with a number of seconds that the wall clock is off
// Kinds: write (also pwrite), read, fsync (also fdatasync), open, rename, unlink, truncate, send,
// recv, accept, socket, thread, malloc (also calloc and realloc).
//
// The rest goes to the kernel at once. malloc is there only with FAULT_MALLOC, since a sanitizer
// brings its own: for a program built with one, FAULT_WRAP makes the same of the linker's --wrap,
// for culprit's own calls.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum kind {
    WRITE,
    READ,
    FSYNC,
    OPEN,
    RENAME,
    UNLINK,
    TRUNCATE,
    SEND,
    RECV,
    ACCEPT,
    SOCKET,
    THREAD,
    MALLOC,
    KIND_COUNT
};

static const char *const KINDS[KIND_COUNT] = {"write",  "read",     "fsync", "open", "rename",
                                              "unlink", "truncate", "send",  "recv", "accept",
                                              "socket", "thread",   "malloc"};

enum { SHORT = -1, RULES_MAX = 8 };

static const struct {
    const char *name;
    int number;
} ERRORS[] = {{"EIO", EIO},       {"ENOSPC", ENOSPC},         {"EDQUOT", EDQUOT},
              {"EINTR", EINTR},   {"EAGAIN", EAGAIN},         {"EMFILE", EMFILE},
              {"ENFILE", ENFILE}, {"ENOMEM", ENOMEM},         {"EACCES", EACCES},
              {"EROFS", EROFS},   {"ECONNRESET", ECONNRESET}, {"ECONNABORTED", ECONNABORTED},
              {"EPIPE", EPIPE},   {"ESTALE", ESTALE},         {"SHORT", SHORT}};

struct rule {
    enum kind kind;
    uint64_t first, count; // count 0: all
    int error;
};

static struct rule rules[RULES_MAX];
static int rule_count;
static char below[PATH_MAX];
static size_t below_size;
static char armed[PATH_MAX];
static int report_file = -1, clock_file = -1;
static atomic_uint_fast64_t calls[KIND_COUNT];
static atomic_bool ready;

// -- configuration ------------------------------------------------------------------------------

_Noreturn static void misused(const char *text) {
    static const char said[] = "fault_preload: CULPRIT_FAULT is not understood: ";
    if (syscall(SYS_write, 2, said, sizeof said - 1) > 0 &&
        syscall(SYS_write, 2, text, strlen(text)) > 0)
        (void)syscall(SYS_write, 2, "\n", 1);
    _exit(64);
}

static void rule_parse(const char *text, size_t size) {
    char kind[16], error[16], unused;
    char copy[64];
    unsigned long long first, count = 1;
    struct rule *rule = &rules[rule_count];
    if (size >= sizeof copy || rule_count == RULES_MAX)
        misused(text);
    memcpy(copy, text, size);
    copy[size] = '\0';
    int parts = sscanf(copy, "%15[a-z]:%llu:%15[A-Z]:%llu%c", kind, &first, error, &count, &unused);
    if ((parts != 3 && parts != 4) || first == 0)
        misused(text);
    int which = 0;
    while (which < KIND_COUNT && strcmp(KINDS[which], kind) != 0)
        which++;
    size_t number = 0;
    while (number < sizeof ERRORS / sizeof *ERRORS && strcmp(ERRORS[number].name, error) != 0)
        number++;
    if (which == KIND_COUNT || number == sizeof ERRORS / sizeof *ERRORS)
        misused(text);
    *rule = (struct rule){(enum kind)which, first, count, ERRORS[number].number};
    rule_count++;
}

static int open_quietly(const char *variable, int flags) {
    const char *path = getenv(variable);
    return path == NULL ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0600);
}

__attribute__((constructor)) static void begin(void) {
    const char *text = getenv("CULPRIT_FAULT"), *path = getenv("CULPRIT_FAULT_BELOW");
    snprintf(below, sizeof below, "%s", path == NULL ? "" : path);
    below_size = strlen(below);
    path = getenv("CULPRIT_FAULT_ARMED");
    snprintf(armed, sizeof armed, "%s", path == NULL ? "" : path);
    report_file = open_quietly("CULPRIT_FAULT_REPORT", O_WRONLY | O_CREAT | O_APPEND);
    clock_file = open_quietly("CULPRIT_FAULT_CLOCK", O_RDONLY);
    while (text != NULL && *text != '\0') {
        size_t size = strcspn(text, ",");
        rule_parse(text, size);
        text += size + (text[size] == ',');
    }
    atomic_store(&ready, true);
}

__attribute__((destructor)) static void end(void) {
    for (int kind = 0; kind < KIND_COUNT && report_file >= 0; kind++) {
        char line[64];
        int size = snprintf(line, sizeof line, "count %s %llu\n", KINDS[kind],
                            (unsigned long long)atomic_load(&calls[kind]));
        (void)syscall(SYS_write, report_file, line, size);
    }
}

// -- which call ---------------------------------------------------------------------------------

static bool is_below(int descriptor, const char *path) {
    char link[48], target[PATH_MAX];
    if (below_size == 0)
        return true;
    if (path != NULL)
        return strncmp(path, below, below_size) == 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    long size = syscall(SYS_readlinkat, AT_FDCWD, link, target, sizeof target);
    return size >= (long)below_size && strncmp(target, below, below_size) == 0;
}

// The error that this call ends with, 0 for none.
static int due(enum kind kind, int descriptor, const char *path) {
    if (!atomic_load_explicit(&ready, memory_order_relaxed) || rule_count == 0)
        return 0;
    bool asked = false;
    for (int i = 0; i < rule_count; i++)
        asked = asked || rules[i].kind == kind;
    int before = errno;
    bool counts = asked && is_below(descriptor, path) &&
                  (armed[0] == '\0' || syscall(SYS_faccessat, AT_FDCWD, armed, F_OK) == 0);
    errno = before;
    if (!counts)
        return 0;
    uint64_t number = atomic_fetch_add(&calls[kind], 1) + 1;
    for (int i = 0; i < rule_count; i++) {
        const struct rule *rule = &rules[i];
        if (rule->kind != kind || number < rule->first ||
            (rule->count != 0 && number >= rule->first + rule->count))
            continue;
        char line[64];
        int size =
            snprintf(line, sizeof line, "hit %s %llu\n", KINDS[kind], (unsigned long long)number);
        if (report_file >= 0)
            (void)syscall(SYS_write, report_file, line, size);
        errno = before;
        return rule->error;
    }
    return 0;
}

#ifndef FAULT_WRAP
// -- files --------------------------------------------------------------------------------------

int open64(const char *path, int flags, ...);
ssize_t pwrite64(int descriptor, const void *bytes, size_t size, off64_t at);
ssize_t pread64(int descriptor, void *bytes, size_t size, off64_t at);
int ftruncate64(int descriptor, off64_t size);

// Fails with `error`, or goes on with `call`.
#define FAIL_OR(error, call)                                                                       \
    int failure_ = (error);                                                                        \
    if (failure_ > 0) {                                                                            \
        errno = failure_;                                                                          \
        return -1;                                                                                 \
    }                                                                                              \
    return (__typeof__(call))(call)

static int open_any(const char *path, int flags, mode_t mode) {
    FAIL_OR(due(OPEN, -1, path), (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

static mode_t mode_of(int flags, va_list more) {
    return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
}

int open(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    mode_t mode = mode_of(flags, more);
    va_end(more);
    return open_any(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    mode_t mode = mode_of(flags, more);
    va_end(more);
    return open_any(path, flags, mode);
}

static ssize_t write_any(int descriptor, const void *bytes, size_t size, off_t at) {
    int failure = due(WRITE, descriptor, NULL);
    if (failure > 0) {
        errno = failure;
        return -1;
    }
    if (failure == SHORT && size > 1)
        size /= 2;
    return at < 0 ? syscall(SYS_write, descriptor, bytes, size)
                  : syscall(SYS_pwrite64, descriptor, bytes, size, at);
}
ssize_t write(int descriptor, const void *bytes, size_t size) {
    return write_any(descriptor, bytes, size, -1);
}
ssize_t pwrite(int descriptor, const void *bytes, size_t size, off_t at) {
    return write_any(descriptor, bytes, size, at);
}
ssize_t pwrite64(int descriptor, const void *bytes, size_t size, off64_t at) {
    return write_any(descriptor, bytes, size, at);
}

ssize_t read(int descriptor, void *bytes, size_t size) {
    FAIL_OR(due(READ, descriptor, NULL), (ssize_t)syscall(SYS_read, descriptor, bytes, size));
}
ssize_t pread(int descriptor, void *bytes, size_t size, off_t at) {
    FAIL_OR(due(READ, descriptor, NULL),
            (ssize_t)syscall(SYS_pread64, descriptor, bytes, size, at));
}
ssize_t pread64(int descriptor, void *bytes, size_t size, off64_t at) {
    return pread(descriptor, bytes, size, at);
}

int fsync(int descriptor) {
    FAIL_OR(due(FSYNC, descriptor, NULL), (int)syscall(SYS_fsync, descriptor));
}
int fdatasync(int descriptor) {
    FAIL_OR(due(FSYNC, descriptor, NULL), (int)syscall(SYS_fdatasync, descriptor));
}
int ftruncate(int descriptor, off_t size) {
    FAIL_OR(due(TRUNCATE, descriptor, NULL), (int)syscall(SYS_ftruncate, descriptor, size));
}
int ftruncate64(int descriptor, off64_t size) {
    return ftruncate(descriptor, size);
}
int rename(const char *from, const char *to) {
    FAIL_OR(due(RENAME, -1, from), (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int unlink(const char *path) {
    FAIL_OR(due(UNLINK, -1, path), (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0));
}

// -- sockets ------------------------------------------------------------------------------------

ssize_t sendto(int descriptor, const void *bytes, size_t size, int flags, const struct sockaddr *to,
               socklen_t length) {
    int failure = due(SEND, descriptor, NULL);
    if (failure > 0) {
        errno = failure;
        return -1;
    }
    if (failure == SHORT && size > 1)
        size /= 2;
    return syscall(SYS_sendto, descriptor, bytes, size, flags, to, length);
}
ssize_t send(int descriptor, const void *bytes, size_t size, int flags) {
    return sendto(descriptor, bytes, size, flags, NULL, 0);
}
ssize_t sendmsg(int descriptor, const struct msghdr *message, int flags) {
    FAIL_OR(due(SEND, descriptor, NULL), (ssize_t)syscall(SYS_sendmsg, descriptor, message, flags));
}
ssize_t recvfrom(int descriptor, void *bytes, size_t size, int flags, struct sockaddr *from,
                 socklen_t *length) {
    FAIL_OR(due(RECV, descriptor, NULL),
            (ssize_t)syscall(SYS_recvfrom, descriptor, bytes, size, flags, from, length));
}
ssize_t recv(int descriptor, void *bytes, size_t size, int flags) {
    return recvfrom(descriptor, bytes, size, flags, NULL, NULL);
}
ssize_t recvmsg(int descriptor, struct msghdr *message, int flags) {
    FAIL_OR(due(RECV, descriptor, NULL), (ssize_t)syscall(SYS_recvmsg, descriptor, message, flags));
}
int accept4(int descriptor, struct sockaddr *address, socklen_t *length, int flags) {
    FAIL_OR(due(ACCEPT, descriptor, NULL),
            (int)syscall(SYS_accept4, descriptor, address, length, flags));
}
int accept(int descriptor, struct sockaddr *address, socklen_t *length) {
    return accept4(descriptor, address, length, 0);
}
int socket(int domain, int type, int protocol) {
    FAIL_OR(due(SOCKET, -1, NULL), (int)syscall(SYS_socket, domain, type, protocol));
}

// -- threads ------------------------------------------------------------------------------------

// The next library's, which may be a sanitizer's.
static void *next_of(const char *name) {
    return dlsym(RTLD_NEXT, name);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *context) {
    int failure = due(THREAD, -1, below); // below itself: the path does not matter
    if (failure > 0)
        return failure;
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&create = next_of("pthread_create");
    return create(thread, attributes, run, context);
}
int thrd_create(thrd_t *thread, thrd_start_t run, void *context) {
    if (due(THREAD, -1, below) > 0)
        return thrd_error;
    int (*create)(thrd_t *, thrd_start_t, void *);
    *(void **)&create = next_of("thrd_create");
    return create(thread, run, context);
}

// -- clocks -------------------------------------------------------------------------------------

static long clock_offset_s(void) {
    char text[32];
    if (clock_file < 0)
        return 0;
    long size = syscall(SYS_pread64, clock_file, text, sizeof text - 1, 0);
    text[size < 0 ? 0 : size] = '\0';
    return strtol(text, NULL, 10);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int result = (int)syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && clock == CLOCK_REALTIME)
        time->tv_sec += clock_offset_s();
    return result;
}
int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    int result = (int)syscall(SYS_gettimeofday, time, zone);
    if (result == 0)
        time->tv_sec += clock_offset_s();
    return result;
}
time_t time(time_t *into) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (into != NULL)
        *into = now.tv_sec;
    return now.tv_sec;
}
#endif

// -- memory -------------------------------------------------------------------------------------

#ifdef FAULT_MALLOC
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
#define TAKE        malloc
#define ZERO        calloc
#define RESIZE      realloc
#define REAL_TAKE   __libc_malloc
#define REAL_ZERO   __libc_calloc
#define REAL_RESIZE __libc_realloc
#endif
#ifdef FAULT_WRAP
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
#define TAKE        __wrap_malloc
#define ZERO        __wrap_calloc
#define RESIZE      __wrap_realloc
#define REAL_TAKE   __real_malloc
#define REAL_ZERO   __real_calloc
#define REAL_RESIZE __real_realloc
#endif

#ifdef TAKE
static bool no_memory(void) {
    if (due(MALLOC, -1, below) == 0) // below itself: the path does not matter
        return false;
    errno = ENOMEM;
    return true;
}
void *TAKE(size_t size) {
    return no_memory() ? NULL : REAL_TAKE(size);
}
void *ZERO(size_t count, size_t size) {
    return no_memory() ? NULL : REAL_ZERO(count, size);
}
void *RESIZE(void *block, size_t size) {
    return no_memory() ? NULL : REAL_RESIZE(block, size);
}
#endif
