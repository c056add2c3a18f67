// SPDX-License-Identifier: Apache-2.0
// /proc/self/cgroup says which group the process is in, and /proc/self/mountinfo where groups are
// mounted and which part of their tree can be seen there (man 7 cgroups, man 5 proc). A container
// may see its own group as the root, or the whole tree of its node; a service of systemd sees the
// whole tree, too. Where the process is in no group of what is mounted, the mount's root counts.
#include "base/control_group.h"

#include "base/slice.h"
#include "base/text/cut.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 2 * PATH_MAX };

// -- files ----------------------------------------------------------------------------------------

bool control_group_text(const char *folder, const char *name, char *text, size_t room) {
    char path[PATH_MAX];
    int size = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (size < 0 || (size_t)size >= sizeof path)
        return false;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return false;
    ssize_t got = read(descriptor, text, room - 1);
    close(descriptor);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

static FILE *open_below(const char *root, const char *name) {
    char path[PATH_MAX];
    int size = snprintf(path, sizeof path, "%s%s", root, name);
    return size < 0 || (size_t)size >= sizeof path ? NULL : fopen(path, "re");
}

static struct slice take_word(struct slice *text) {
    struct slice word = text_until(*text, ' ');
    *text = text_from(*text, word.size);
    (void)text_skip_char(text, ' ');
    return word;
}

// Whether a list with commas holds this word.
static bool lists(struct slice list, const char *wanted) {
    while (list.size > 0) {
        struct slice word = text_until(list, ',');
        if (slice_equal(word, slice_of(wanted)))
            return true;
        list = text_from(list, word.size);
        (void)text_skip_char(&list, ',');
    }
    return false;
}

// -- where the process is -------------------------------------------------------------------------

// The path of its group in a line of /proc/self/cgroup ("4:memory:/a/b"; version 2: "0::/a/b").
static bool own_path(struct slice line, const char *controller, bool second, struct slice *path) {
    struct slice number = text_until(line, ':');
    line = text_from(line, number.size);
    if (!text_skip_char(&line, ':'))
        return false;
    struct slice controllers = text_until(line, ':');
    *path = text_from(line, controllers.size);
    if (!text_skip_char(path, ':') || path->size == 0 || path->data[0] != '/')
        return false;
    return second ? controllers.size == 0 && slice_equal(number, SLICE("0"))
                  : lists(controllers, controller);
}

// Sets `path`, "" when it is in none.
static void find_own_path(const char *root, const char *controller, bool second,
                          char path[PATH_MAX]) {
    char line[LINE_MAX_BYTES];
    FILE *file = open_below(root, "/proc/self/cgroup");
    path[0] = '\0';
    while (file != NULL && path[0] == '\0' && fgets(line, sizeof line, file) != NULL) {
        struct slice own;
        line[strcspn(line, "\n")] = '\0';
        if (own_path(slice_of(line), controller, second, &own) && own.size < PATH_MAX)
            snprintf(path, PATH_MAX, "%.*s", (int)own.size, own.data);
    }
    if (file != NULL)
        fclose(file);
}

// -- what is mounted ------------------------------------------------------------------------------

struct mount {
    char top[PATH_MAX];   // the group that is seen as the mount's root
    char point[PATH_MAX]; // below `root`
    bool second;          // of version 2
};

// A path of mountinfo, where blanks stand as \040.
static void put_path(struct slice text, char path[PATH_MAX]) {
    size_t used = 0;
    for (size_t i = 0; i < text.size && used < PATH_MAX - 1; i++) {
        char byte = text.data[i];
        if (byte == '\\' && i + 3 < text.size) {
            char digits[4] = {text.data[i + 1], text.data[i + 2], text.data[i + 3], '\0'};
            byte = (char)strtoul(digits, NULL, 8);
            i += 3;
        }
        path[used++] = byte;
    }
    path[used] = '\0';
}

// "31 23 0:28 / /sys/fs/cgroup/memory rw,relatime shared:1 - cgroup cgroup rw,memory"
static bool read_mount(struct slice line, const char *controller, struct mount *mount) {
    for (int i = 0; i < 3; i++)
        (void)take_word(&line);
    struct slice top = take_word(&line), point = take_word(&line), behind;
    if (!text_find(line, SLICE("- "), &behind))
        return false;
    struct slice type = take_word(&behind);
    (void)take_word(&behind);
    mount->second = slice_equal(type, SLICE("cgroup2"));
    if (!mount->second && (!slice_equal(type, SLICE("cgroup")) || !lists(behind, controller)))
        return false;
    put_path(top, mount->top);
    put_path(point, mount->point);
    return true;
}

// What of `path` is below the mount's root; NULL: it is not below it.
static const char *below_top(const struct mount *mount, const char *path) {
    size_t size = strcmp(mount->top, "/") == 0 ? 0 : strlen(mount->top);
    bool below = strncmp(path, mount->top, size) == 0 && (path[size] == '/' || path[size] == '\0');
    return below && strstr(path, "/..") == NULL ? path + size : NULL;
}

static void climb(const char *root, const struct mount *mount, const char *own,
                  void (*look)(void *context, const char *folder), void *context) {
    char folder[PATH_MAX];
    const char *below = own[0] == '\0' ? NULL : below_top(mount, own);
    int top = snprintf(folder, sizeof folder, "%s%s", root, mount->point);
    if (top <= 0 || (size_t)top >= sizeof folder)
        return;
    int size =
        snprintf(folder + top, sizeof folder - (size_t)top, "%s", below == NULL ? "" : below);
    if (size < 0 || (size_t)size >= sizeof folder - (size_t)top)
        folder[top] = '\0';
    for (char *end; (end = strrchr(folder + top, '/')) != NULL; *end = '\0')
        if (end[1] != '\0')
            look(context, folder);
    look(context, folder);
}

void control_groups_each(const char *root, const char *controller,
                         void (*look)(void *context, const char *folder), void *context) {
    assert(root != NULL && controller != NULL);
    char line[LINE_MAX_BYTES], own[PATH_MAX];
    struct mount mount;
    FILE *file = open_below(root, "/proc/self/mountinfo");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (!read_mount(slice_of(line), controller, &mount))
            continue;
        find_own_path(root, controller, mount.second, own);
        climb(root, &mount, own, look, context);
    }
    if (file != NULL)
        fclose(file);
}

// -- memory ---------------------------------------------------------------------------------------

static void lower(uint64_t *least, const char *digits) {
    uint64_t limit = strtoull(digits, NULL, 10); // "max" reads as 0
    if (limit > 0 && (*least == 0 || limit < *least))
        *least = limit;
}

// A group may say no limit of its own and yet those of groups that cannot be seen from here.
static void look_at_memory(void *context, const char *folder) {
    static const char *const LIMITS[] = {"memory.max", "memory.high", "memory.limit_in_bytes"};
    static const char OF_ALL[] = "hierarchical_memory_limit ";
    uint64_t *least = context;
    char text[8192];
    for (size_t i = 0; i < sizeof LIMITS / sizeof LIMITS[0]; i++)
        if (control_group_text(folder, LIMITS[i], text, sizeof text))
            lower(least, text);
    const char *of_all = NULL;
    if (control_group_text(folder, "memory.stat", text, sizeof text))
        of_all = strstr(text, OF_ALL);
    if (of_all != NULL)
        lower(least, of_all + strlen(OF_ALL));
}

uint64_t control_groups_memory(const char *root) {
    uint64_t least = 0;
    control_groups_each(root, "memory", look_at_memory, &least);
    return least;
}
