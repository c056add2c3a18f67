// SPDX-License-Identifier: Apache-2.0
#include "pipeline/runtime/control/place.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { DIRECTORIES_MAX = 4, BACKLOG = 64, ENTRIES_MAX = 4096 };

// A place where sockets may be: `base`, and `control` in it.
struct place {
    char base[CONTROL_PATH_MAX];
    char directory[CONTROL_PATH_MAX];
    bool shared;   // everybody may write beside `base`: it must be the user's own
    bool existing; // `base` is used when it is there, and not made
};

static bool place_make(struct place *place, const char *before, const char *after, bool shared,
                       bool existing) {
    int base = snprintf(place->base, sizeof place->base, "%s%s", before, after);
    int all = snprintf(place->directory, sizeof place->directory, "%s%s/control", before, after);
    place->shared = shared;
    place->existing = existing;
    assert(base > 0 && all > base);
    return all < (int)sizeof place->directory - 16; // "/4194304.sock"
}

static uint32_t list_places(struct place places[DIRECTORIES_MAX]) {
    uint32_t count = 0;
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char own[32];
    snprintf(own, sizeof own, "-%u", (unsigned)geteuid());
    if (runtime != NULL && runtime[0] == '/' && strcmp(runtime, "/run") != 0)
        count += place_make(&places[count], runtime, "/culprit", false, false);
    count += place_make(&places[count], "/run", "/culprit", false, false);
    count += place_make(&places[count], "/tmp/culprit", own, true, false);
    // All that may be written in a container.
    count += place_make(&places[count], "/var/lib", "/culprit", false, true);
    assert(count <= DIRECTORIES_MAX);
    return count;
}

// A directory of this user in which the bits of `others` are not set.
static bool is_private(const char *path, mode_t others) {
    struct stat about;
    return lstat(path, &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == geteuid() &&
           (about.st_mode & others) == 0;
}

// Makes the directory, or takes it back: who prepared a volume may have let a group in.
static bool directory_prepare(const char *path) {
    struct stat about;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return false;
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0)
        return false;
    bool right = fstat(descriptor, &about) == 0 && about.st_uid == geteuid() &&
                 fchmod(descriptor, 0700) == 0;
    close(descriptor);
    errno = right ? 0 : EPERM;
    return right;
}

static bool place_prepare(const struct place *place) {
    if (!place->existing && mkdir(place->base, place->shared ? 0700 : 0755) != 0 && errno != EEXIST)
        return false;
    if (place->shared && !is_private(place->base, 0022)) {
        errno = EPERM;
        return false;
    }
    return directory_prepare(place->directory);
}

// -- sockets --------------------------------------------------------------------------------------

static void set_address(struct sockaddr_un *address, const char *path) {
    assert(strlen(path) < sizeof address->sun_path);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path, path, strlen(path));
}

// A descriptor that is connected; -1 with errno: EAGAIN when too many wait there to be let in.
static int connect_to(const char *path) {
    struct sockaddr_un address;
    set_address(&address, path);
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0)
        return -1;
    if (connect(descriptor, (const struct sockaddr *)(const void *)&address, sizeof address) == 0)
        return descriptor;
    int os_error = errno;
    close(descriptor);
    errno = os_error;
    return -1;
}

// Whether somebody listens there; false also when that cannot be found out.
static bool is_alive(const char *path) {
    int descriptor = connect_to(path);
    if (descriptor >= 0)
        close(descriptor);
    return descriptor >= 0 || errno == EAGAIN;
}

// A socket file on which nobody listens: its process was killed.
static bool is_stale(const char *path) {
    struct stat about;
    if (lstat(path, &about) != 0 || !S_ISSOCK(about.st_mode))
        return false;
    int descriptor = connect_to(path);
    if (descriptor >= 0)
        close(descriptor);
    return descriptor < 0 && errno == ECONNREFUSED;
}

// The process that "123.sock" is named after; 0: it is no such name.
static pid_t process_of(const char *name) {
    size_t digits = strspn(name, "0123456789");
    if (digits == 0 || digits > 9 || strcmp(name + digits, ".sock") != 0)
        return 0;
    return (pid_t)strtol(name, NULL, 10);
}

// Calls `each` with the path of every socket that is named after a process.
static void walk(const char *directory, void (*each)(void *context, const char *path, pid_t),
                 void *context) {
    DIR *open = opendir(directory);
    if (open == NULL)
        return;
    uint32_t seen = 0;
    for (const struct dirent *entry; seen < ENTRIES_MAX && (entry = readdir(open)) != NULL;
         seen++) {
        char path[CONTROL_PATH_MAX + sizeof entry->d_name];
        pid_t process = process_of(entry->d_name);
        int size = snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (process > 0 && size > 0 && size < CONTROL_PATH_MAX)
            each(context, path, process);
    }
    closedir(open);
}

// Between bind and listen a socket refuses, too, but then its process lives.
static void sweep(void *context, const char *path, pid_t process) {
    (void)context;
    if (kill(process, 0) != 0 && errno == ESRCH && is_stale(path))
        (void)unlink(path);
}

static int bind_and_listen(const char *path) {
    struct sockaddr_un address;
    set_address(&address, path);
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0)
        return -1;
    // Nobody can connect before listen, so there is no moment in which others may.
    if (bind(descriptor, (const struct sockaddr *)(const void *)&address, sizeof address) == 0) {
        if (chmod(path, 0600) == 0 && listen(descriptor, BACKLOG) == 0)
            return descriptor;
        int os_error = errno;
        (void)unlink(path);
        errno = os_error;
    }
    int os_error = errno;
    close(descriptor);
    errno = os_error;
    return -1;
}

static enum status listen_at(struct control_socket *made, const char *path, struct error *error) {
    if (is_stale(path))
        (void)unlink(path);
    int descriptor = bind_and_listen(path), os_error = errno;
    if (descriptor < 0 && os_error == EADDRINUSE && is_alive(path))
        return error_set(error, STATUS_CANNOT_CREATE,
                         "the control socket %s cannot be used: another process listens there",
                         path);
    if (descriptor < 0 && os_error == EADDRINUSE)
        return error_set(error, STATUS_CANNOT_CREATE,
                         "the control socket %s cannot be made: something else has that name",
                         path);
    if (descriptor < 0)
        return error_set_os(error, STATUS_CANNOT_CREATE, os_error,
                            "the control socket %s cannot be made", path);
    struct stat about = {0};
    (void)lstat(path, &about);
    *made = (struct control_socket){
        .descriptor = descriptor, .device = about.st_dev, .inode = about.st_ino};
    memcpy(made->path, path, strlen(path) + 1);
    return STATUS_OK;
}

static enum status listen_given(struct control_socket *made, const char *path,
                                struct error *error) {
    if (path[0] != '/' || strlen(path) >= CONTROL_PATH_MAX)
        return error_set(error, STATUS_CONFIG,
                         "the path of the control socket must begin with a slash and be shorter "
                         "than %d bytes",
                         CONTROL_PATH_MAX);
    char directory[CONTROL_PATH_MAX];
    memcpy(directory, path, strlen(path) + 1);
    char *slash = strrchr(directory, '/');
    *slash = '\0';
    if (directory[0] != '\0' && mkdir(directory, 0700) != 0 && errno != EEXIST)
        return error_set_os(error, STATUS_CANNOT_CREATE, errno,
                            "the directory of the control socket %s cannot be made", path);
    return listen_at(made, path, error);
}

enum status control_listen(struct control_socket *made, const char *path, struct error *error) {
    *made = (struct control_socket){.descriptor = -1};
    if (path != NULL)
        return listen_given(made, path, error);
    struct place places[DIRECTORIES_MAX];
    uint32_t count = list_places(places);
    enum status status = error_set(error, STATUS_CANNOT_CREATE, "no directory for it is known");
    for (uint32_t i = 0; i < count && status != STATUS_OK; i++) {
        if (!place_prepare(&places[i])) {
            status = error_set_os(error, STATUS_CANNOT_CREATE, errno, "%s cannot be used",
                                  places[i].directory);
            continue;
        }
        walk(places[i].directory, sweep, NULL);
        char own[CONTROL_PATH_MAX + 32];
        int size = snprintf(own, sizeof own, "%s/%d.sock", places[i].directory, (int)getpid());
        assert(size > 0 && size < CONTROL_PATH_MAX);
        status = listen_at(made, own, error);
    }
    return status;
}

void control_unlisten(struct control_socket *made) {
    struct stat about;
    if (made->descriptor < 0)
        return;
    assert(made->path[0] == '/');
    if (lstat(made->path, &about) == 0 && about.st_dev == made->device &&
        about.st_ino == made->inode)
        (void)unlink(made->path);
    close(made->descriptor);
    made->descriptor = -1;
}

bool control_peer_allowed(int descriptor, uid_t *user) {
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t size = sizeof peer;
    assert(descriptor >= 0);
    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        peer.uid = (uid_t)-1;
    *user = peer.uid;
    return peer.uid != (uid_t)-1 && (peer.uid == geteuid() || peer.uid == 0);
}

// -- for those who look for one -------------------------------------------------------------------

struct search {
    char (*found)[CONTROL_PATH_MAX];
    uint32_t count;
};

static void take_alive(void *context, const char *path, pid_t process) {
    struct search *search = context;
    (void)process;
    if (search->count < CONTROL_FOUND_MAX && is_alive(path))
        memcpy(search->found[search->count++], path, strlen(path) + 1);
}

static int compare_paths(const void *left, const void *right) {
    size_t a = strlen(left), b = strlen(right);
    return a != b ? (a > b) - (a < b) : strcmp(left, right);
}

uint32_t control_find(char found[CONTROL_FOUND_MAX][CONTROL_PATH_MAX]) {
    struct place places[DIRECTORIES_MAX];
    uint32_t count = list_places(places);
    struct search search = {.found = found};
    for (uint32_t i = 0; i < count; i++) {
        // Root may look at the service's, which runs as a user of its own.
        struct stat about;
        bool right = geteuid() == 0 && !places[i].shared
                         ? lstat(places[i].directory, &about) == 0 && S_ISDIR(about.st_mode)
                         : is_private(places[i].directory, 0077);
        if (right)
            walk(places[i].directory, take_alive, &search);
    }
    qsort(found, search.count, sizeof *found, compare_paths);
    return search.count;
}

enum status control_connect(const char *path, int *descriptor, struct error *error) {
    *descriptor = -1;
    if (strlen(path) >= CONTROL_PATH_MAX)
        return error_set(error, STATUS_USAGE, "the path of a socket must be shorter than %d bytes",
                         CONTROL_PATH_MAX);
    int connected = connect_to(path);
    if (connected < 0 && (errno == ECONNREFUSED || errno == ENOENT || errno == ENOTDIR))
        return error_set(error, STATUS_NOT_FOUND, "no culprit listens at %s", path);
    if (connected < 0 && (errno == EACCES || errno == EPERM))
        return error_set(error, STATUS_DENIED,
                         "only the user that culprit runs as, or root, may open %s", path);
    if (connected < 0 && errno == EAGAIN)
        return error_set(error, STATUS_IO, "culprit does not answer at %s", path);
    if (connected < 0)
        return error_set_os(error, STATUS_IO, errno, "%s cannot be opened", path);
    *descriptor = connected;
    return STATUS_OK;
}
