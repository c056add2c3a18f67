// SPDX-License-Identifier: Apache-2.0
// What one scrape says, as tagged lines: one for each GPU, and one for each port of a network card.
//
// The text is walked once, line by line. Lines of a family that a decoder reads go there; of all
// others only the end is looked for. A tagged line says its time and node itself, so what is passed
// on of it stands alone. Memory: about 2 KiB a GPU and 500 bytes a port of one scrape, in an arena.
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "pipeline/component/decoder.h"
#include "receivers/decode/dcgm/dcgm.h"
#include "receivers/decode/ib_counters/exposition.h"

// Of one scrape; further ones are refused.
enum { SCRAPE_GPUS_MAX = 8192, SCRAPE_PORTS_MAX = IB_EXPOSED_PORTS_MAX };

struct scrape_text {
    struct slice text;
    uint64_t time_ns;        // when it was asked for: the time of series that say none
    struct slice node;       // of all that it says, whatever labels say; empty: labels tell
    struct slice node_label; // the label that tells; empty: those that exporters are known to set
    struct slice otherwise;  // the node when nothing tells; not empty
    bool counted;            // all that was to come is there: the last line may lack its line end
};

struct scrape_counts {
    uint64_t taken;   // series that a decoder has read
    uint64_t other;   // series that nobody looks for
    uint64_t refused; // series of a family that is known, and that cannot be read
};

struct scrape_split {
    struct scrape_counts counts; // of the last text
    struct buffer lines;         // tagged lines, each with its line end
    // A series that is refused: `number` is that of its line.
    void (*refused)(void *context, struct slice line, uint64_t number,
                    const struct decode_fault *fault);
    void *context;

    // Its own:
    struct arena arena;
    struct scrape_text scrape;
    struct dcgm_reading gpus;
    struct ib_reading ports;
    struct decode_fault fault;
    struct slice passed_over; // name of the last family that no decoder keeps
    uint32_t next;            // GPU, and behind them port, whose line comes next
};

void scrape_split_init(struct scrape_split *split);
void scrape_split_release(struct scrape_split *split);
// NULL when the text was read: its lines come by scrape_split_next, and `counts` are of it. Else it
// is no whole text of metrics, nothing of it counts, and a clause says why. `open_metrics`: the
// text must end with the line "# EOF". The texts of `scrape` must stay until the last line.
const char *scrape_split_text(struct scrape_split *split, const struct scrape_text *scrape,
                              bool open_metrics);
// Puts the next tagged lines into `lines`, instead of those before: about 256 KiB at once. False:
// there are no more.
bool scrape_split_next(struct scrape_split *split);
