// SPDX-License-Identifier: Apache-2.0
// The configuration of the W&B exporter, which its parts share.
#pragma once

#include "pipeline/component/component.h"

enum wandb_mode { WANDB_ONLINE, WANDB_OFFLINE, WANDB_DISABLED };
enum wandb_content { WANDB_LIVE, WANDB_TRACKING };
// Least severity of verdicts that alert: none do, or 1 + enum severity.
enum { WANDB_ALERT_NONE, WANDB_ALERT_INFO, WANDB_ALERT_WARNING, WANDB_ALERT_ERROR };

// content: tracking. Paths; NULL: not given.
struct wandb_tracking_config {
    const char *command_name;
    const char *stats_file;         // JSON object: the tracker's statistics; NULL: from the events
    const char *session_file;       // JSON object: the session summary
    const char *output_file;        // what the tracker wrote
    const char *sink_directory;     // its telemetry sink
    const char *oom_dump;           // directory
    const char *attribution_bundle; // directory
    int64_t max_events;
};

struct wandb_config {
    // Connection
    const char *base_url; // no slash at the end
    struct secret api_key;
    const char *ca_file;
    const char *proxy;
    // Run
    const char *entity;
    const char *project;
    const char *run_id; // NULL: live culprit-JOB-START, tracking 8 random characters
    bool join_run;      // live: also when others began it
    const char *run_name;
    const char *group;
    const char *job_type;
    struct text_list tags;
    const char *notes;
    const char *training_run; // URL of the training's own run; NULL: unknown
    int mode;                 // enum wandb_mode
    int content;              // enum wandb_content
    const char *directory;    // offline: where run directories are made
    bool log_tables;
    bool log_artifacts;
    bool log_attribution;
    // Pace
    struct duration post_interval; // at least so long between two posts of one run
    struct duration heartbeat_interval;
    struct duration row_interval;   // live: at most one row a rank in this time
    struct duration table_interval; // live: verdict table and page at most so often
    int64_t max_ranks;              // live: ranks of a job that get rows
    int64_t max_runs;               // live: jobs that are runs at the same time
    int alert_severity;             // WANDB_ALERT_…, or one above
    struct duration alert_wait;     // live: no alert with the same title within
    struct wandb_tracking_config tracking;
    struct sending_config sending;
};
