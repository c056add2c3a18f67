// SPDX-License-Identifier: Apache-2.0
// Lines of slurmstepd, srun and slurmctld. Each form is found by a phrase; a line that has the
// phrase and breaks off behind it is refused. O(line).
#include "receivers/decode/slurm/slurm.h"

#include "base/text/cut.h"
#include "base/text/log_time.h"
#include "pipeline/component/decoder.h"
#include "receivers/decode/line/reading.h"
#include "receivers/decode/slurm/step.h"

enum { DIGITS_MAX = 18 };

static enum read_result cut(struct reading *reading) {
    return reading_refuse(reading, DECODE_TRUNCATED, "the line of Slurm breaks off");
}

// "slurmstepd-r2-g17: error: …" names the node.
static struct slice reporter_of(struct slice message) {
    struct slice name = {NULL, 0};
    if (!text_skip(&message, SLICE("slurmstepd-")))
        return name;
    name = text_until_any(message, ": ");
    return name.size == 0 || name.size == message.size ? (struct slice){NULL, 0} : name;
}

// -- how signals are called -----------------------------------------------------------------------

static const struct {
    struct slice text;
    int32_t number;
    bool is_told_to_stop; // by whoever ends the step
} SIGNALS[] = {
    {{"Hangup", 6}, 1, false},
    {{"Interrupt", 9}, 2, true},
    {{"Quit", 4}, 3, false},
    {{"Illegal instruction", 19}, 4, false},
    {{"Trace/breakpoint trap", 21}, 5, false},
    {{"Aborted", 7}, 6, false},
    {{"Bus error", 9}, 7, false},
    {{"Floating point exception", 24}, 8, false},
    {{"Killed", 6}, 9, false},
    {{"User defined signal 1", 21}, 10, false},
    {{"Segmentation fault", 18}, 11, false},
    {{"User defined signal 2", 21}, 12, false},
    {{"Broken pipe", 11}, 13, false},
    {{"Alarm clock", 11}, 14, false},
    {{"Terminated", 10}, 15, true},
    {{"CPU time limit exceeded", 23}, 24, false},
    {{"File size limit exceeded", 24}, 25, false},
};
enum { SIGNAL_COUNT = sizeof SIGNALS / sizeof *SIGNALS };

// Its place in SIGNALS; SIGNAL_COUNT: none.
static size_t signal_of(struct slice text) {
    size_t i = 0;
    while (i < SIGNAL_COUNT && !slice_equal(SIGNALS[i].text, text))
        i++;
    return i;
}

// -- the end of a step ----------------------------------------------------------------------------

static const struct {
    struct slice words;
    struct slice reason;
    bool is_victim; // it follows from something else
} REASONS[] = {
    {{"TIME LIMIT", 10}, {"TIME LIMIT", 10}, false},
    {{"PREEMPTION", 10}, {"PREEMPTION", 10}, false},
    {{"JOB REQUEUE", 11}, {"JOB REQUEUE", 11}, false},
    {{"NODE FAILURE", 12}, {"NODE FAILURE", 12}, false},
    {{"TASK FAILURE", 12}, {"TASK FAILURE", 12}, true},
    {{"SIGNAL", 6}, {"SIGNAL", 6}, true},
};

// "DUE TO TIME LIMIT", "DUE to SIGNAL Terminated"; `reason` is what stands behind "DUE TO ".
static void read_reason(struct reading *reading, struct slice reason) {
    struct slice number;
    reading_text(reading, FACT_REASON, text_until(reason, ','));
    for (size_t i = 0; i < sizeof REASONS / sizeof *REASONS; i++)
        if (text_begins(reason, REASONS[i].words)) {
            reading_text(reading, FACT_REASON, REASONS[i].reason);
            if (REASONS[i].is_victim)
                reading_yes_no(reading, FACT_VICTIM, true);
        }
    if (text_find(reason, SLICE("SIGNAL "), &number)) {
        size_t signal = signal_of(text_trim(number));
        if (signal < SIGNAL_COUNT)
            reading_number(reading, FACT_SIGNAL, SIGNALS[signal].number);
    }
}

// "CANCELLED AT 2026-03-14T02:50:17 DUE TO TIME LIMIT", without the stars.
static enum read_result read_end(struct reading *reading, struct slice end) {
    if (text_begins(end, SLICE("FAILED"))) {
        reading_text(reading, FACT_REASON, SLICE("FAILED"));
        return READ_EVENT;
    }
    bool is_cancelled = text_skip(&end, SLICE("CANCELLED"));
    struct slice time;
    if (text_find(end, SLICE(" AT "), &time)) {
        if (!log_time_iso(&time, &reading->time_ns))
            return reading_refuse(reading, DECODE_BAD_TIMESTAMP,
                                  "the time of the cancellation is not a time");
        reading->local_time = reading->just_now = true;
        reading->slack_ns = 1000000000;
        end = time;
    }
    if (text_skip(&end, SLICE(" DUE TO ")) || text_skip(&end, SLICE(" DUE to ")))
        read_reason(reading, end);
    else if (is_cancelled)
        reading_yes_no(reading, FACT_VICTIM, true);
    return READ_EVENT;
}

// Behind the stars: "STEP 123.0 ON node7 CANCELLED AT …".
static enum read_result read_step(struct slice message, struct slice text, bool is_job,
                                  struct reading *reading) {
    struct slice end;
    const char *stars = memmem(text.data, text.size, " ***", 4);
    if (stars == NULL)
        return cut(reading);
    text.size = (size_t)(stars - text.data);
    struct slice id = text_take(&text, text_until(text, ' ').size);
    if (!slurm_is_step(id))
        return READ_NOT;
    reading_begin(reading, OBSERVATION_SLURM_CANCELLED);
    reading->no_rank = reading->no_host = true;
    slurm_step_facts(reading, id);
    if (is_job)
        reading_text(reading, FACT_STEP, SLICE("batch"));
    // "STEPD TERMINATED ON node7 AT … DUE TO …" has the host behind the word.
    bool is_stepd = text_skip(&text, SLICE(" STEPD TERMINATED"));
    struct slice host = reporter_of(message);
    if (text_skip(&text, SLICE(" ON ")))
        host = text_take(&text, text_until(text, ' ').size);
    if (host.size > 0)
        reading_text(reading, FACT_FROM_HOST, host);
    end = text;
    text_skip(&end, SLICE(" "));
    if (is_stepd)
        return read_end(reading, text);
    bool known = text_begins(end, SLICE("CANCELLED")) || text_begins(end, SLICE("FAILED"));
    return known ? read_end(reading, end) : READ_NOT;
}

// "Detected 3 oom_kill events in StepId=123.0. Some …", "… 1 oom-kill event(s) in StepId=123.batch
// cgroup. Some …"; behind "Detected ".
static enum read_result read_oom(struct slice message, struct slice text, struct reading *reading) {
    uint64_t count;
    struct slice behind;
    if (!text_take_number(&text, 1, DIGITS_MAX, &count) ||
        (!text_skip(&text, SLICE(" oom_kill event")) &&
         !text_skip(&text, SLICE(" oom-kill event"))))
        return READ_NOT;
    if (!text_find(text, SLICE(" in StepId="), &behind) &&
        !text_find(text, SLICE(" in step "), &behind))
        return cut(reading);
    struct slice id = text_take(&behind, slurm_step_size(behind));
    if (!text_begins(behind, SLICE(". Some")) && !text_begins(behind, SLICE(" cgroup")))
        return cut(reading);
    reading_begin(reading, OBSERVATION_SLURM_OOM);
    reading->no_rank = true;
    // Whose node it was is known from the writer's name only: a job's output holds all of them.
    reading->host = reporter_of(message);
    reading->no_host = reading->host.data == NULL;
    slurm_step_facts(reading, id);
    reading_number(reading, FACT_COUNT, (int64_t)count);
    return READ_EVENT;
}

// -- srun -----------------------------------------------------------------------------------------

static bool is_list(struct slice hosts) {
    return memchr(hosts.data, '[', hosts.size) != NULL ||
           memchr(hosts.data, ',', hosts.size) != NULL;
}

static void set_hosts(struct reading *reading, struct slice hosts) {
    reading->no_host = true;
    if (is_list(hosts))
        reading_text(reading, FACT_HOSTS, hosts);
    else
        reading->host = hosts;
}

// Whether it is the beginning of what srun says of an end.
static bool is_cut_end(struct slice text) {
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        if (text_begins(SIGNALS[i].text, text))
            return true;
    return text_begins(SLICE("Exited with exit code "), text) ||
           text_begins(SLICE("Out Of Memory"), text);
}

// "Exited with exit code 1", "Killed", "Segmentation fault (core dumped)".
static enum read_result read_task_end(struct reading *reading, struct slice text) {
    uint64_t code;
    text = text_trim(text);
    if (text_skip(&text, SLICE("Exited with exit code "))) {
        if (!text_number(text, 9, &code))
            return cut(reading);
        reading_number(reading, FACT_EXIT_CODE, (int64_t)code);
        return READ_EVENT;
    }
    struct slice name = text;
    const char *dumped = memmem(text.data, text.size, " (core", 6);
    if (dumped != NULL)
        name.size = (size_t)(dumped - text.data);
    size_t signal = signal_of(name);
    if (signal == SIGNAL_COUNT) {
        if (!slice_equal(text, SLICE("Out Of Memory")) && is_cut_end(text))
            return cut(reading);
        reading_text(reading, FACT_REASON, text);
        return READ_EVENT;
    }
    reading_number(reading, FACT_SIGNAL, SIGNALS[signal].number);
    if (SIGNALS[signal].is_told_to_stop)
        reading_yes_no(reading, FACT_VICTIM, true);
    return READ_EVENT;
}

static bool is_task_list(struct slice tasks) {
    for (size_t i = 0; i < tasks.size; i++)
        if (!text_is_digit(tasks.data[i]) && tasks.data[i] != ',' && tasks.data[i] != '-')
            return false;
    return tasks.size > 0;
}

// "r2-g12: task 12: Exited with exit code 1", "r2-g[13-14]: tasks 16-23,30: Killed".
static enum read_result read_task(struct slice text, struct reading *reading) {
    uint64_t task;
    struct slice hosts = text_until_any(text, ": ");
    text = text_from(text, hosts.size);
    if (hosts.size == 0 ||
        (!text_skip(&text, SLICE(": task ")) && !text_skip(&text, SLICE(": tasks "))))
        return READ_NOT;
    struct slice tasks = text_until(text, ':');
    if (tasks.size < text.size && !is_task_list(tasks))
        return READ_NOT;
    text = text_from(text, tasks.size);
    if (!text_skip(&text, SLICE(": ")))
        return cut(reading);
    reading_begin(reading, OBSERVATION_SLURM_TASK_EXIT);
    reading->no_rank = true;
    set_hosts(reading, hosts);
    reading_text(reading, FACT_TASKS, tasks);
    if (text_number(tasks, 9, &task))
        reading_number(reading, FACT_TASK, (int64_t)task);
    return read_task_end(reading, text);
}

static enum read_result node_failure(struct reading *reading, struct slice hosts) {
    reading_begin(reading, OBSERVATION_SLURM_NODE_FAILURE);
    reading->no_rank = true;
    set_hosts(reading, hosts);
    return READ_EVENT;
}

// "Node failure on r2-g18", "Node r2-g18 is not responding", "Nodes r2-g[1-3] not responding,
// setting DOWN". Of nodes that the controller does not set down, most answer again.
static enum read_result read_node(struct slice text, struct reading *reading) {
    struct slice behind;
    if (text_find(text, SLICE("Node failure on "), &behind)) {
        struct slice host = text_until_any(behind, " \t\r");
        return host.size == 0 ? cut(reading) : node_failure(reading, host);
    }
    bool is_controller = text_find(text, SLICE("Nodes "), &behind);
    if (!is_controller && !text_find(text, SLICE("Node "), &behind))
        return READ_NOT;
    struct slice host = text_take(&behind, text_until(behind, ' ').size);
    text_skip(&behind, SLICE(" is"));
    if (host.size == 0 || !text_skip(&behind, SLICE(" not responding")) ||
        (is_controller && !text_begins(behind, SLICE(", setting DOWN"))))
        return READ_NOT;
    return node_failure(reading, host);
}

// -- telling them apart ---------------------------------------------------------------------------

static enum read_result read_slurm(const struct frame *frame, struct slice message,
                                   struct reading *reading) {
    struct slice behind;
    (void)frame;
    if (text_find(message, SLICE("*** STEP "), &behind))
        return read_step(message, behind, false, reading);
    if (text_find(message, SLICE("*** JOB "), &behind))
        return read_step(message, behind, true, reading);
    enum read_result result = READ_NOT;
    if (text_find(message, SLICE("Detected "), &behind))
        result = read_oom(message, behind, reading);
    if (result == READ_NOT && text_find(message, SLICE("srun: error: "), &behind)) {
        result = read_task(behind, reading);
        return result != READ_NOT ? result : read_node(behind, reading);
    }
    // slurmctld
    if (result == READ_NOT && text_find(message, SLICE("error: Node"), &behind))
        return read_node(message, reading);
    return result;
}

const struct line_reader READER_SLURM = {.name = "slurm", .read = read_slurm};
