// SPDX-License-Identifier: Apache-2.0
// Shows how far a long read has come.
//
// A thread that sleeps on a condition: a second before the first line, a fifth of one between the
// others. It asks the service for two counters that it keeps anyway.
#include "cli/progress.h"

#include "base/clock.h"
#include "cli/figures.h"

#include <assert.h>
#include <unistd.h>

static const uint64_t first_after_ns = UINT64_C(1000000000);
static const uint64_t every_ns = UINT64_C(200000000);
enum { PROGRESS_MAGIC = 0x50524f47 };
static const char line_begin[] = "\r\033[K";

void progress_format(struct buffer *out, uint64_t done_bytes, uint64_t total_bytes,
                     uint64_t elapsed_ns) {
    double seconds = (double)elapsed_ns / 1e9;
    if (done_bytes == 0 && total_bytes == 0) {
        buffer_append_format(out, "for %.0f s", seconds);
        return;
    }
    double rate = seconds > 0 ? (double)done_bytes / seconds : 0;
    figures_append_bytes(out, done_bytes);
    if (total_bytes >= done_bytes && total_bytes > 0) {
        buffer_append_text(out, " of ");
        figures_append_bytes(out, total_bytes);
        buffer_append_format(out, " (%.0f %%)", 100.0 * (double)done_bytes / (double)total_bytes);
    }
    buffer_append_text(out, ", ");
    figures_append_bytes(out, (uint64_t)rate);
    buffer_append_text(out, "/s");
    if (total_bytes > done_bytes && rate >= 1) {
        double left = (double)(total_bytes - done_bytes) / rate;
        buffer_append_format(out, left < 600 ? ", %.0f s left" : ", %.0f min left",
                             left < 600 ? left : left / 60);
    }
}

static void write_terminal(struct slice text) {
    // A line of progress that cannot be written is no loss.
    ssize_t written = write(STDERR_FILENO, text.data, text.size);
    (void)written;
}

static void draw(struct progress *progress, uint64_t elapsed_ns) {
    assert(progress->service != NULL);
    uint64_t done_bytes = 0, total_bytes = 0;
    service_progress(progress->service, &done_bytes, &total_bytes);
    struct buffer line;
    buffer_init(&line, 512);
    buffer_append_text(&line, line_begin);
    buffer_append_text(&line, "reading ");
    progress_format(&line, done_bytes, total_bytes, elapsed_ns);
    write_terminal(buffer_slice(&line));
    buffer_release(&line);
}

static void *progress_run(void *context) {
    struct progress *progress = context;
    assert(progress->magic == PROGRESS_MAGIC);
    uint64_t start_ns = clock_monotonic_ns();
    uint64_t next_ns = start_ns + first_after_ns;
    bool drawn = false;
    lock_take(&progress->lock);
    while (!progress->ended) {
        if (cond_wait_until(&progress->ended_changed, &progress->lock, next_ns) || progress->ended)
            continue;
        lock_release(&progress->lock);
        draw(progress, clock_monotonic_ns() - start_ns);
        drawn = true;
        next_ns = clock_monotonic_ns() + every_ns;
        lock_take(&progress->lock);
    }
    lock_release(&progress->lock);
    if (drawn)
        write_terminal(slice_of(line_begin));
    return NULL;
}

void progress_start(struct progress *progress, struct service *service, bool wanted) {
    *progress = (struct progress){.magic = PROGRESS_MAGIC, .service = service};
    if (!wanted || isatty(STDERR_FILENO) == 0)
        return;
    cond_init(&progress->ended_changed);
    lock_init(&progress->lock);
    // Without a thread there is no progress line; the work goes on.
    progress->running = pthread_create(&progress->thread, NULL, progress_run, progress) == 0;
}

void progress_stop(struct progress *progress) {
    assert(progress->magic == PROGRESS_MAGIC);
    if (!progress->running)
        return;
    lock_take(&progress->lock);
    progress->ended = true;
    pthread_cond_signal(&progress->ended_changed);
    lock_release(&progress->lock);
    pthread_join(progress->thread, NULL);
    pthread_cond_destroy(&progress->ended_changed);
    lock_destroy(&progress->lock);
    progress->running = false;
}
