// SPDX-License-Identifier: Apache-2.0
// Follows the files of one receiver.
//
// A loop on one thread: wait for the system to tell a change, or for the poll interval; mark the
// files that changed; read them round-robin, a block each, until none has more; hand over. A search
// for files runs when names changed and once an interval. Costs one stat a file and interval.
#include "receivers/file/follow/tail.h"

#include "base/clock.h"
#include "base/hash/hash.h"
#include "base/memory.h"
#include "pipeline/component/feed.h"
#include "receivers/file/dump.h"
#include "receivers/file/find/watch.h"
#include "receivers/file/follow/chain.h"
#include "receivers/file/follow/follow.h"
#include "receivers/file/follow/lines.h"
#include "receivers/file/follow/place.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>

enum {
    GONE_INTERVALS = 10, // how long a file without a name is read on, in poll intervals
    MOVES_MAX = 64,
    SAID_MAX = 1024,
};

#define SEARCH_GAP_NS (20 * 1000 * 1000) // between two searches because names changed

// A file that lost its name; the event with the new one follows.
struct move {
    uint32_t cookie;
    char *path;
};

struct tail {
    struct file_receiver *receiver;
    struct feed *feed;
    struct follower follower;
    struct track_table table;
    struct restored_places restored;
    struct file_watch watch;
    uint64_t poll_ns;
    uint64_t next_tick_ns;
    uint64_t searched_ns;
    bool searched; // at least once
    bool settled;  // what was there at the start has been read
    bool search;   // names changed
    bool lost;     // events were lost: any file may have changed
    struct move moves[MOVES_MAX];
    uint32_t move_next;
    uint64_t said[SAID_MAX]; // hashes of the notes that were said
    uint32_t said_count;
};

// -- searching ----------------------------------------------------------------------------------

static bool is_said(struct tail *tail, const struct found_note *note) {
    uint64_t hash = hash_more(hash_slice(note->path), note->text.data, note->text.size);
    for (uint32_t i = 0; i < tail->said_count; i++) {
        if (tail->said[i] == hash)
            return true;
    }
    if (tail->said_count < SAID_MAX)
        tail->said[tail->said_count++] = hash;
    return false;
}

static void say_notes(struct tail *tail) {
    struct found_list *found = &tail->receiver->found;
    for (uint32_t i = 0; i < found->note_count; i++) {
        const struct found_note *note = &found->notes[i];
        if (!is_said(tail, note))
            feed_note(tail->feed, note->path, "%.*s", (int)note->text.size, note->text.data);
    }
}

// Begins to follow the file at `path`, which is an input by the name of `source`.
static struct tracked_file *add_file(struct tail *tail, struct slice path, struct slice source,
                                     struct file_identity identity) {
    assert(track_find(&tail->table, identity) == NULL);
    struct tracked_file *file = track_add(&tail->table, path, identity);
    file->stream.source = feed_source(tail->feed, source);
    place_open(&tail->table, &tail->restored, file);
    file->quiet_since_ns = tail->follower.now_ns;
    return file;
}

static void add_found(struct tail *tail, const struct found_file *found) {
    struct tracked_file *file = add_file(tail, found->path, found->path, found->identity);
    const char *why = NULL;
    if (found->role == FOUND_STREAM)
        why = "a pipe or device cannot be followed; culprit analyze and culprit run --once read it";
    else if (found->role == FOUND_DUMP_EVENTS &&
             dump_is_repeated(&tail->receiver->found, found->path))
        why = "the telemetry sink of the same session is, and holds these events too";
    if (why != NULL) {
        follower_note(&tail->follower, file, "not read: %s", why);
        file->state = TRACK_IGNORED;
    }
    if (!tail->searched && tail->receiver->config->start_at == START_END &&
        file->restored.kind == POSITION_NONE) {
        file->from_end = true;
        file->begin_bytes = found->size;
    }
    // Before it is its turn, which may be late when the sink is slow, its name may be another's.
    if (file->state != TRACK_IGNORED && tail->table.open_count < tail->table.open_max)
        (void)follower_open(&tail->follower, file);
}

static void watch_directories(struct tail *tail) {
    assert(tail->receiver->found.directory_count <= tail->receiver->found.directory_capacity);
    const struct found_list *found = &tail->receiver->found;
    int before = tail->watch.failed_error;
    for (uint32_t i = 0; i < found->directory_count; i++) {
        // What came between the search and the watch would be told by neither.
        if (file_watch_directory(&tail->watch, found->directories[i]))
            tail->search = true;
    }
    if (tail->watch.failed_error != 0 && (before == 0 || !tail->searched))
        feed_note(tail->feed, (struct slice){NULL, 0},
                  "the system does not report all changes of files (inotify: %s): they are found "
                  "by polling, once each poll_interval",
                  strerror(tail->watch.failed_error));
}

static void search_files(struct tail *tail) {
    struct found_list *found = &tail->receiver->found;
    assert(found->count <= tail->receiver->config->max_sources);
    struct track_table *table = &tail->table;
    tail->search = false;
    file_find(&tail->receiver->finder, found);
    uint32_t known = table->count;
    for (uint32_t i = 0; i < known; i++) {
        table->files[i]->was_there = table->files[i]->there;
        table->files[i]->there = false;
    }
    for (uint32_t i = 0; i < found->count; i++) {
        const struct found_file *one = &found->files[i];
        struct tracked_file *file = track_find(table, one->identity);
        if (file == NULL) {
            add_found(tail, one);
            continue;
        }
        file->there = true;
        track_rename(table, file, one->path);
    }
    for (uint32_t i = 0; i < known; i++) {
        struct tracked_file *file = table->files[i];
        if (file->was_there && !file->there) {
            file->changed = true;
            file->quiet_since_ns = tail->follower.now_ns;
        }
    }
    chain_link(table, found);
    watch_directories(tail);
    say_notes(tail);
    if (!tail->searched)
        places_remember(&tail->restored, table);
    tail->searched = true;
    tail->searched_ns = clock_monotonic_ns();
}

// -- what the system tells ----------------------------------------------------------------------

static void mark_changed(struct tail *tail, struct slice path) {
    struct tracked_file *file = track_find_path(&tail->table, path);
    if (file != NULL)
        file->changed = true;
}

// Whether the path is that of a file of ours, or was until a moment ago.
static bool is_ours(const struct tail *tail, struct slice path) {
    if (track_find_path(&tail->table, path) != NULL)
        return true;
    for (uint32_t i = 0; i < MOVES_MAX; i++) {
        if (tail->moves[i].path != NULL && slice_equal(slice_of(tail->moves[i].path), path))
            return true;
    }
    return false;
}

static void moved_from(struct tail *tail, const struct watch_event *event) {
    assert(event->kind == WATCH_MOVED_FROM && event->path.size > 0);
    if (!is_ours(tail, event->path))
        return;
    struct move *move = &tail->moves[tail->move_next++ % MOVES_MAX];
    char *path = memory_copy_text(event->path.data, event->path.size);
    memory_give(move->path);
    *move = (struct move){event->cookie, path};
}

static const struct move *find_move(const struct tail *tail, uint32_t cookie) {
    for (uint32_t i = 0; i < MOVES_MAX; i++) {
        if (tail->moves[i].path != NULL && tail->moves[i].cookie == cookie)
            return &tail->moves[i];
    }
    return NULL;
}

// A file of ours has a new name. When it was never seen under the old one (renamed between two
// searches), it is read all the same, as the file that it was.
static void moved_to(struct tail *tail, const struct watch_event *event) {
    assert(event->kind == WATCH_MOVED_TO && event->path.size > 0);
    const struct move *move = find_move(tail, event->cookie);
    struct stat about;
    if (move == NULL || stat(event->path.data, &about) != 0 || !S_ISREG(about.st_mode))
        return;
    struct tracked_file *file = track_find(&tail->table, file_identity_of(&about));
    if (file == NULL) {
        file = add_file(tail, event->path, slice_of(move->path), file_identity_of(&about));
        file->there = false;
    } else {
        track_rename(&tail->table, file, event->path);
        file->changed = true;
    }
}

static void take_events(struct tail *tail) {
    struct watch_event event;
    while (file_watch_next(&tail->watch, &event)) {
        tail->search = tail->search || event.kind != WATCH_CHANGED;
        if (event.kind == WATCH_CHANGED)
            mark_changed(tail, event.path);
        else if (event.kind == WATCH_MOVED_FROM)
            moved_from(tail, &event);
        else if (event.kind == WATCH_MOVED_TO)
            moved_to(tail, &event);
        else if (event.kind == WATCH_LOST)
            tail->lost = true;
    }
}

// -- rounds -------------------------------------------------------------------------------------

// One block of each file that has something. True when any has more.
static bool read_round(struct tail *tail) {
    bool any = false;
    tail->follower.now_ns = clock_monotonic_ns();
    for (uint32_t i = 0; i < tail->table.count; i++) {
        struct tracked_file *file = tail->table.files[i];
        if (!file->changed || file->over)
            continue;
        // Nothing is read that could not be handed over.
        if (feed_blocked(tail->feed))
            return false;
        file->came_back = file->came_back || file->left;
        file->left = file->changed = false;
        file->changed = follow_step(&tail->follower, file);
        any = any || file->changed;
    }
    return any;
}

// 1: something has the path, 0: nothing has, -1: that cannot be told now, as when a file system is
// away for a while.
static int look_up(const char *path, struct stat *about) {
    if (stat(path, about) == 0)
        return 1;
    return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
}

// Whether another file, or none, has the path that the file was known by.
static bool has_lost_name(const struct tracked_file *file) {
    struct stat about;
    int there = look_up(file->path, &about);
    return there == 0 || (there > 0 && !track_is_of(file, &about));
}

static bool is_quiet(const struct tail *tail, const struct tracked_file *file) {
    return tail->follower.now_ns - file->quiet_since_ns >= GONE_INTERVALS * tail->poll_ns;
}

// Sources of files that are over and that no other file has are not needed any more.
static void forget_over(struct tail *tail) {
    const struct track_table *table = &tail->table;
    for (uint32_t i = 0; i < table->count; i++) {
        struct tracked_file *file = table->files[i];
        if (!file->over)
            continue;
        place_forget(tail->feed, file);
        bool shared = false;
        for (uint32_t j = 0; j < table->count && !shared; j++)
            shared = j != i && table->files[j]->stream.source == file->stream.source;
        if (!shared)
            feed_source_forget(tail->feed, file->stream.source);
    }
}

// Files that have lost their names and stayed quiet are done with.
static void drop_gone(struct tail *tail) {
    for (uint32_t i = 0; i < tail->table.count; i++) {
        struct tracked_file *file = tail->table.files[i];
        if (file->there || file->changed || file->over || !is_quiet(tail, file) ||
            !has_lost_name(file))
            continue;
        lines_take_last(&tail->follower, file);
        place_retire(&tail->table, file);
        file->over = true;
    }
    forget_over(tail);
    track_remove_over(&tail->table);
}

// What is held of the file's last lines becomes events: no more come that belong to them.
static void finish_held(struct tail *tail, const struct tracked_file *file) {
    if (!feed_source_holds(file->stream.place))
        return;
    feed_source_finish(tail->feed, file->stream.place);
    feed_flush(tail->feed);
}

// A log whose writer is gone does not change any more. One that is behind is not quiet.
static void finish_quiet(struct tail *tail) {
    for (uint32_t i = 0; i < tail->table.count && !feed_blocked(tail->feed); i++) {
        struct tracked_file *file = tail->table.files[i];
        if (file->changed || file->stream.place == NULL ||
            !follower_is_finished(&tail->follower, file))
            continue;
        lines_take_written(&tail->follower, file);
        finish_held(tail, file);
    }
}

// Files that are complete do not hold back what is judged. One that was written to all the same
// (by a writer that was not told of the rotation yet) must have been quiet for a while.
static void leave_complete(struct tail *tail) {
    for (uint32_t i = 0; i < tail->table.count; i++) {
        struct tracked_file *file = tail->table.files[i];
        if (file->left || (file->came_back && !is_quiet(tail, file)) || !chain_is_complete(file))
            continue;
        finish_held(tail, file);
        feed_source_leave(tail->feed, file->stream.source);
        file->left = true;
    }
}

// Nothing more is there now of files that were read to their end.
static void pass_ends(struct tail *tail) {
    for (uint32_t i = 0; i < tail->table.count; i++) {
        const struct tracked_file *file = tail->table.files[i];
        if (!file->changed && !file->over)
            feed_source_caught_up(tail->feed, file->stream.source);
    }
}

// Whether a file that is followed has this path, or had it when an earlier process read it.
static bool is_followed(const struct tail *tail, struct slice path) {
    if (track_find_path(&tail->table, path) != NULL)
        return true;
    for (uint32_t i = 0; i < tail->table.count; i++) {
        const char *was_at = tail->table.files[i]->was_at;
        if (was_at != NULL && slice_equal(slice_of(was_at), path))
            return true;
    }
    return false;
}

// What an earlier process read and is there no more holds nothing back either. What cannot be
// looked at for now may come back.
static void leave_absent(struct tail *tail) {
    struct source *source;
    for (uint32_t i = 0; (source = feed_restored_source(tail->feed, i)) != NULL; i++) {
        struct slice path = feed_source_path(source);
        if (path.data[0] == PLACE_MARK || is_followed(tail, path))
            continue;
        struct stat about;
        char *text = memory_copy_text(path.data, path.size);
        if (look_up(text, &about) >= 0)
            feed_source_leave(tail->feed, source);
        memory_give(text);
    }
}

static void tick(struct tail *tail) {
    for (uint32_t i = 0; i < tail->table.count; i++)
        follow_check(&tail->follower, tail->table.files[i]);
    search_files(tail);
    tail->follower.ticked = true;
}

// Searches and looks as often as it is due.
static void keep_up(struct tail *tail) {
    take_events(tail);
    uint64_t now = tail->follower.now_ns = clock_monotonic_ns();
    if (now >= tail->next_tick_ns) {
        tick(tail);
        tail->next_tick_ns = now + tail->poll_ns;
    } else if (tail->search && now - tail->searched_ns >= SEARCH_GAP_NS) {
        search_files(tail);
    }
    if (tail->lost) {
        for (uint32_t i = 0; i < tail->table.count; i++)
            tail->table.files[i]->changed = true;
        tail->lost = false;
    }
}

// With one file to read at most, that one holds back what is judged by itself: it need not be read
// to its end before, and is judged step by step.
static void count_unread(struct tail *tail) {
    uint32_t unread = 0;
    for (uint32_t i = 0; i < tail->table.count; i++)
        unread += tail->table.files[i]->changed && !tail->table.files[i]->over;
    feed_steps(tail->feed, unread <= 1);
    if (!tail->settled && unread <= 1)
        feed_caught_up(tail->feed);
}

// When lines that are held in a quiet file are used as they are; UINT64_MAX: none are.
static uint64_t next_finish(const struct tail *tail) {
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < tail->table.count; i++) {
        const struct tracked_file *file = tail->table.files[i];
        if (file->stream.place == NULL || !feed_source_holds(file->stream.place))
            continue;
        uint64_t own = file->quiet_since_ns + tail->follower.finish_ns;
        next = own < next ? own : next;
    }
    return next;
}

static void wait_for_more(struct tail *tail) {
    uint64_t now = clock_monotonic_ns();
    uint64_t until = tail->next_tick_ns, finish = next_finish(tail);
    until = finish > now && finish < until ? finish : until;
    if (tail->search && tail->searched_ns + SEARCH_GAP_NS < until)
        until = tail->searched_ns + SEARCH_GAP_NS;
    if (until <= now)
        return;
    uint64_t wait_ms = (until - now) / 1000000 + 1;
    struct pollfd descriptors[2] = {
        {.fd = feed_stop_descriptor(tail->feed), .events = POLLIN},
        {.fd = tail->watch.descriptor, .events = POLLIN}, // negative: left out
    };
    if (poll(descriptors, 2, wait_ms > 1000000 ? 1000000 : (int)wait_ms) < 0 && errno != EINTR)
        clock_sleep_ns(SEARCH_GAP_NS);
}

// Reads what was there at this moment, from every file, then hands over. With a store the next
// start reads again what is held; without one nobody would.
static void finish(struct tail *tail) {
    assert(!tail->follower.ending);
    struct track_table *table = &tail->table;
    tail->follower.now_ns = clock_monotonic_ns();
    take_events(tail);
    search_files(tail);
    count_unread(tail);
    tail->follower.ending = tail->follower.ticked = true;
    for (uint32_t i = 0; i < table->count; i++) {
        struct tracked_file *file = table->files[i];
        struct stat about;
        uint64_t end = track_stat(file, &about) ? (uint64_t)about.st_size : 0;
        while (!file->over && !feed_blocked(tail->feed) && follow_step(&tail->follower, file)) {
            if (file->state == TRACK_LINES && file->scanned >= end)
                break;
        }
        if (!file->over) {
            lines_take_written(&tail->follower, file);
            lines_take_last(&tail->follower, file);
        }
        if (tail->receiver->context->store == NULL && file->stream.place != NULL)
            finish_held(tail, file);
        track_close(table, file);
    }
    feed_flush(tail->feed);
}

static void tail_release(struct tail *tail) {
    file_watch_close(&tail->watch);
    track_release(&tail->table);
    for (uint32_t i = 0; i < MOVES_MAX; i++)
        memory_give(tail->moves[i].path);
    places_release(&tail->restored);
    memory_give(tail);
}

enum status file_tail(struct file_receiver *receiver, struct feed *feed, struct error *error) {
    (void)error;
    assert(receiver->reader.sink.feed == feed);
    struct tail *tail = memory_zero(1, sizeof *tail);
    tail->receiver = receiver;
    tail->feed = feed;
    tail->poll_ns = (uint64_t)receiver->config->poll_interval.ns;
    track_init(&tail->table, feed);
    tail->restored = places_restored(feed);
    file_watch_open(&tail->watch);
    receiver->reader.to_the_end = true;
    receiver->reader.total_bytes = 0;
    tail->follower = (struct follower){.reader = &receiver->reader,
                                       .keeps = receiver->context->store != NULL,
                                       .table = &tail->table,
                                       .settled_ns = tail->poll_ns,
                                       .finish_ns = (uint64_t)receiver->config->finish_after.ns};
    while (!feed_stopping(feed)) {
        keep_up(tail);
        count_unread(tail);
        bool more = read_round(tail);
        if (more)
            continue;
        pass_ends(tail);
        follower_clear(&tail->follower);
        tail->follower.ticked = false;
        drop_gone(tail);
        leave_complete(tail);
        finish_quiet(tail);
        pass_ends(tail); // of those that were finished
        feed_flush(feed);
        if (!tail->settled)
            leave_absent(tail);
        tail->settled = true;
        feed_caught_up(feed);
        if (feed_blocked(feed))
            (void)feed_wait(feed, tail->poll_ns);
        else
            wait_for_more(tail);
    }
    if (!feed_pausing(feed))
        finish(tail);
    feed_flush(feed);
    tail_release(tail);
    return STATUS_OK;
}
