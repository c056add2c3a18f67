// SPDX-License-Identifier: Apache-2.0
// Splits a scrape. Two passes, the first only over what tells that the text is whole: its end, and
// that its first series is one. A line is told by its first bytes and skipped by memchr.
#include "receivers/prometheus_scrape/split.h"

#include "base/intern.h"
#include "base/text/cut.h"
#include "pipeline/component/decoder.h"
#include "pipeline/model/node_event.h"
#include "receivers/decode/dcgm/dcgm.h"
#include "receivers/decode/ib_counters/exposition.h"
#include "receivers/decode/line/series.h"

#include <stdlib.h>

enum {
    ARENA_BLOCK = 64 * 1024,
    ARENA_KEPT = 4 << 20,
    LINES_ENOUGH = 256 << 10,
    LINE_MAX = 64 << 10, // far more than labels of 253 bytes and all fields can make
    VALUE_MAX = 64
};

void scrape_split_init(struct scrape_split *split) {
    assert(split != NULL);
    *split = (struct scrape_split){.refused = NULL};
    arena_init(&split->arena, ARENA_BLOCK);
    buffer_init(&split->lines, LINES_ENOUGH + LINE_MAX);
}

void scrape_split_release(struct scrape_split *split) {
    arena_release(&split->arena);
    buffer_release(&split->lines);
}

// -- is it whole? ---------------------------------------------------------------------------------

static bool is_number(struct slice text) {
    char copy[VALUE_MAX], *end;
    if (text.size == 0 || text.size >= sizeof copy)
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    (void)strtod(copy, &end);
    return *end == '\0';
}

static bool is_series(struct slice line, struct arena *arena) {
    struct series_labels labels = {.line = &line, .arena = arena};
    struct slice name = series_take_name(&line), label, value;
    uint64_t time_ns = 0;
    // OpenMetrics may write the name among the labels, in quotes.
    if (name.size == 0)
        return line.size > 2 && line.data[0] == '{' && line.data[1] == '"';
    while (series_next_label(&labels, &label, &value))
        ;
    return labels.wrong == NULL && series_take_value(&line, &value, &time_ns) && is_number(value);
}

// The first line that is neither blank nor a comment; empty: there is none.
static struct slice first_series(struct slice text) {
    struct slice line = {NULL, 0};
    while (text.size > 0) {
        line = text_trim(text_take_line(&text));
        if (line.size > 0 && line.data[0] != '#')
            return line;
    }
    return (struct slice){NULL, 0};
}

static const char *what_is_wrong(const struct scrape_text *scrape, bool open_metrics,
                                 struct arena *arena) {
    struct slice text = scrape->text;
    if (text.size == 0)
        return "the answer is empty";
    if (memchr(text.data, '\0', text.size) != NULL)
        return "the answer is not text";
    if (text.data[text.size - 1] != '\n' && !scrape->counted && !(open_metrics && text.size >= 5))
        return "the answer breaks off inside a line";
    if (open_metrics) {
        struct slice end = text_trim(text);
        if (end.size < 5 || memcmp(end.data + end.size - 5, "# EOF", 5) != 0)
            return "the answer breaks off before its end (# EOF)";
    }
    struct slice first = first_series(text);
    if (first.size > 0 && !is_series(first, arena))
        return "the answer is not metrics in Prometheus' text format";
    return NULL;
}

// -- lines ----------------------------------------------------------------------------------------

// Whether the line is of the family that was passed over last: families stand together.
static bool is_passed_over(const struct scrape_split *split, struct slice line) {
    size_t size = split->passed_over.size;
    return size > 0 && line.size > size && (line.data[size] == '{' || line.data[size] == ' ') &&
           memcmp(line.data, split->passed_over.data, size) == 0;
}

// What is behind the first word of the names that decoders read.
static enum decode_category read_series(struct scrape_split *split, struct slice line) {
    bool is_gpu = text_begins(line, SLICE("DCGM_"));
    if ((!is_gpu && !text_begins(line, SLICE("node_infiniband_"))) || is_passed_over(split, line))
        return DECODE_NOTHING;
    struct slice rest = line, name = series_take_name(&rest);
    if (is_gpu ? dcgm_reading_keeps(name) : ib_reading_keeps(name))
        return is_gpu ? dcgm_reading_take(&split->gpus, line)
                      : ib_reading_take(&split->ports, line);
    split->passed_over = name;
    return DECODE_NOTHING;
}

static void take_series(struct scrape_split *split, struct slice line) {
    enum decode_category category = read_series(split, line);
    split->counts.taken += category == DECODE_OK;
    split->counts.other += category == DECODE_NOTHING;
    if (!decode_refused(category))
        return;
    split->counts.refused++;
    if (split->refused != NULL)
        split->refused(split->context, line, split->gpus.line, &split->fault);
}

static void take_lines(struct scrape_split *split, struct slice text) {
    const char *at = text.data, *end = text.data + text.size;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (stop == NULL)
            stop = end;
        split->gpus.line++;
        // What most lines are is told by their first byte.
        bool is_blank = stop == at || *at == '#';
        if (!is_blank && (*at == 'D' || *at == 'n' || (unsigned char)*at <= ' ')) {
            struct slice line = text_trim((struct slice){at, (size_t)(stop - at)});
            if (line.size > 0 && line.data[0] != '#')
                take_series(split, line);
        } else if (!is_blank) {
            split->counts.other++;
        }
        at = stop + 1;
    }
}

// -- what they say --------------------------------------------------------------------------------

static struct slice node_of(const struct scrape_text *scrape, struct slice label) {
    if (scrape->node.size > 0)
        return scrape->node;
    return label.size > 0 ? label : scrape->otherwise;
}

static void write_gpu(struct scrape_split *split, const struct gpu_sample *sample) {
    struct slice label = {NULL, 0};
    // All that was said of it may be blank.
    if (sample->present == 0)
        return;
    if (sample->node != STRING_NONE)
        label = intern_slice(sample->node);
    dcgm_sample_write(sample, node_of(&split->scrape, label), &split->lines);
    buffer_append_char(&split->lines, '\n');
}

static void write_port(struct scrape_split *split, const struct ib_port *port) {
    ib_port_write(port, node_of(&split->scrape, port->node), &split->lines);
    buffer_append_char(&split->lines, '\n');
}

bool scrape_split_next(struct scrape_split *split) {
    buffer_reset(&split->lines);
    uint32_t count = split->gpus.count + split->ports.count;
    for (; split->next < count && split->lines.size < LINES_ENOUGH; split->next++)
        if (split->next < split->gpus.count)
            write_gpu(split, &split->gpus.samples[split->next]);
        else
            write_port(split, &split->ports.ports[split->next - split->gpus.count]);
    assert(!split->lines.failed);
    return split->lines.size > 0;
}

// One answer with very many GPUs is not the reason to keep that much memory.
static void begin(struct scrape_split *split, const struct scrape_text *scrape) {
    if (split->gpus.capacity * sizeof(struct gpu_sample) > ARENA_KEPT ||
        split->scrape.text.size > ARENA_KEPT) {
        arena_release(&split->arena);
        arena_init(&split->arena, ARENA_BLOCK);
    }
    arena_reset(&split->arena);
    split->scrape = *scrape;
    buffer_reset(&split->lines);
    split->counts = (struct scrape_counts){.taken = 0};
    split->next = 0;
    split->passed_over = (struct slice){NULL, 0};
    split->gpus = (struct dcgm_reading){.arena = &split->arena,
                                        .fault = &split->fault,
                                        .observed_ns = split->scrape.time_ns,
                                        .node_label = split->scrape.node_label,
                                        .samples_max = SCRAPE_GPUS_MAX};
    split->ports = (struct ib_reading){.arena = &split->arena,
                                       .fault = &split->fault,
                                       .observed_ns = split->scrape.time_ns,
                                       .node_label = split->scrape.node_label};
}

const char *scrape_split_text(struct scrape_split *split, const struct scrape_text *scrape,
                              bool open_metrics) {
    assert(scrape->time_ns != 0 && scrape->otherwise.size > 0);
    begin(split, scrape);
    const char *wrong = what_is_wrong(scrape, open_metrics, &split->arena);
    if (wrong == NULL)
        take_lines(split, scrape->text);
    return wrong;
}
