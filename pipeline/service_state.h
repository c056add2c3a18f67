// SPDX-License-Identifier: Apache-2.0
// What a running service consists of, shared by the files it is made of.
#pragma once

#include "pipeline/feed_run.h"
#include "pipeline/runner.h"

enum { SITE_MAX = 160 };

// One component, started.
struct instance {
    const struct plan_component *component;
    struct component_context context;
    char site[SITE_MAX];
    void *memory;
    bool started;
};

struct run_receiver {
    struct service *service;
    struct instance instance;
    struct feed *feed;
    struct runner **runners; // of the pipelines that list it
    uint32_t runner_count;
    pthread_t thread;
    bool running;
    atomic_bool ended;
    enum status status;
    struct error error;
};

struct run_exporter {
    struct instance instance;
    struct sender sender;
};

struct run_pipeline {
    struct runner runner;
    struct instance *stages;
    struct run_receiver **receivers;
    uint32_t receiver_count;
};

struct service {
    const struct plan *plan;
    bool once;
    atomic_bool stopping;
    int stop_descriptor; // readable once it is stopping
    struct intake intake;
    struct run_receiver *receivers;
    uint32_t receiver_count;
    struct run_exporter *exporters;
    uint32_t exporter_count;
    struct run_pipeline *pipelines;
    uint32_t pipeline_count;
};

// Hands a feed's events to the pipelines that list its receiver, and judges what has become due.
void receiver_deliver(void *context, const struct event *events, uint32_t count);
