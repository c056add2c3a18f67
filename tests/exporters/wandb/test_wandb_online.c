// SPDX-License-Identifier: Apache-2.0
// Records carried to a mock server: what it understands, what is repeated, where rows go.
#include "exporters/wandb/table.h"
#include "tests/exporters/wandb/wandb_world.h"
#include "tests/support/temporary.h"

#include <fcntl.h>
#include <sys/stat.h>

START_TEST(a_run_from_begin_to_end) {
    struct world world;
    world_open(&world);
    say_run(&world, "r1", 0, false);
    say_row(&world, "r1", 1, "\"a\":1,\"b\":NaN,\"t\":\"x\\u00e9\\ud83d\\ude00\"");
    say_row(&world, "r1", 2, "\"a\":2.5,\"big\":1152921504606846976");
    say_table(&world, "r1", 3, "tab");
    say_page(&world, "r1", 4);
    say(&world, "r1", 4,
        (struct wandb_record){.kind = WANDB_SUMMARY, .members = SLICE("\"a\":7,\"gone\":NaN")});
    say_finish(&world, "r1", 9);
    ck_assert_uint_eq(send_all(&world), 1);
    json_t *decoded = wandb_mock_decoded(&world.mock);
    ck_assert_uint_eq(size_at(decoded, "runs"), 1);
    ck_assert_uint_eq(size_at(decoded, "warnings"), 0);
    const json_t *run = at(decoded, "runs.0");
    ck_assert_str_eq(text_at(run, "display_name"), "the run");
    ck_assert_str_eq(text_at(run, "group"), "jobs");
    ck_assert(json_is_null(at(run, "job_type")));
    ck_assert(json_is_true(at(run, "complete")));
    ck_assert(number_at(run, "exitcode") == 3);
    ck_assert_uint_eq(size_at(run, "history"), 4);
    ck_assert_str_eq(text_at(run, "history.0.b.$float"), "NaN");
    ck_assert_str_eq(text_at(run, "history.0.t"), "x\xc3\xa9\xf0\x9f\x98\x80");
    ck_assert(number_at(run, "history.1._timestamp") == 1700000002.0);
    ck_assert(number_at(run, "history.1._runtime") == 2);
    ck_assert(number_at(run, "history.3._step") == 3);
    ck_assert_int_eq(json_integer_value(at(run, "history.1.big")), INT64_C(1152921504606846976));
    ck_assert(number_at(run, "summary.a") == 7);
    ck_assert_str_eq(text_at(run, "summary.b.$float"), "NaN");
    ck_assert_ptr_null(at(run, "summary.gone"));
    ck_assert_str_eq(text_at(run, "summary.tab._type"), "table-file");
    ck_assert(number_at(run, "summary._wandb.runtime") == 9);
    ck_assert(number_at(run, "summary._step") == 3);
    ck_assert_uint_eq(size_at(run, "uploaded"), 2);
    ck_assert_uint_eq(json_object_size(at(run, "config")), 1);
    ck_assert_str_eq(text_at(run, "artifacts.0.name"), "run-r1-tab");
    ck_assert_str_eq(text_at(run, "artifacts.0.state"), "COMMITTED");
    ck_assert(number_at(run, "artifacts.0.history_step") == 2);
    json_decref(decoded);
    world_close(&world);
}
END_TEST

START_TEST(what_was_done_is_not_repeated) {
    static const char *const faults[] = {
        "at=graphql,kind=500",
        "at=graphql,kind=drop,skip=1",
        "at=graphql,kind=503,skip=2",
        "at=graphql,kind=garbage,skip=3",
        "at=graphql,kind=truncate,skip=4",
        "at=graphql,kind=drop_after,skip=5",
        "at=graphql,kind=429,skip=6,after=0.1",
        "at=storage,kind=500,skip=1",
        "at=storage,kind=403,skip=2",
        "at=file_stream,kind=500",
        "at=graphql:upsertBucket,kind=409",
    };
    struct world world;
    world_open(&world);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        wandb_mock_fault(&world.mock, faults[i]);
    say_run(&world, "r1", 5, false);
    say_row(&world, "r1", 1, "\"a\":1");
    say_table(&world, "r1", 3, "tab");
    say_page(&world, "r1", 4);
    say_finish(&world, "r1", 9);
    ck_assert_uint_gt(send_all(&world), 5);
    json_t *decoded = wandb_mock_decoded(&world.mock);
    const json_t *run = at(decoded, "runs.0");
    ck_assert(json_is_true(at(run, "complete")));
    ck_assert_uint_eq(size_at(run, "history"), 3);
    ck_assert_uint_eq(size_at(run, "artifacts"), 1);
    ck_assert_str_eq(text_at(run, "artifacts.0.state"), "COMMITTED");
    ck_assert(number_at(run, "finishes") == 1);
    json_decref(decoded);
    world_close(&world);
}
END_TEST

START_TEST(rows_go_on_after_a_restart) {
    struct world world;
    world_open(&world);
    say_run(&world, "r1", 77, false);
    say_row(&world, "r1", 1, "\"a\":1");
    say_row(&world, "r1", 2, "\"a\":2,\"b\":5");
    send_all(&world);
    restart(&world);
    // Delivered after the checkpoint, so it comes twice.
    say_row(&world, "r1", 3, "\"a\":3");
    ck_assert_int_eq(send_once(&world), STATUS_OK);
    uint64_t row = world.row, sequence = world.sequence;
    forget(&world);
    world.sequence = 0;
    world.row = 0;
    buffer_reset(&world.records);
    say_run(&world, "r1", 77, false);
    say_row(&world, "r1", 1, "\"a\":1");
    say_row(&world, "r1", 2, "\"a\":2,\"b\":5");
    say_row(&world, "r1", 3, "\"a\":3");
    ck_assert_uint_eq(world.row, row);
    ck_assert_uint_eq(world.sequence, sequence);
    say_finish(&world, "r1", 4);
    send_all(&world);
    json_t *decoded = wandb_mock_decoded(&world.mock);
    const json_t *run = at(decoded, "runs.0");
    ck_assert_uint_eq(size_at(run, "history"), 3);
    ck_assert(number_at(run, "summary.b") == 5);
    ck_assert(number_at(run, "summary.a") == 3);
    ck_assert_str_eq(text_at(run, "config.culprit.incarnation"), "77");
    ck_assert(number_at(run, "config.culprit.history_base") == 0);
    json_decref(decoded);
    world_close(&world);
}
END_TEST

START_TEST(rows_of_another_incarnation_are_appended) {
    struct world world;
    world_open(&world);
    say_run(&world, "r1", 1, false);
    for (unsigned i = 1; i <= 3; i++)
        say_row(&world, "r1", i, "\"a\":1");
    say_finish(&world, "r1", 10);
    send_all(&world);
    forget(&world);
    world.sequence = world.row = 0;
    say_run(&world, "r1", 2, true);
    for (unsigned i = 2; i <= 5; i++)
        say_row(&world, "r1", i, "\"a\":2");
    send_all(&world);
    // The same again, as when the checkpoint was lost: nothing is skipped twice.
    forget(&world);
    world.sequence = world.row = 0;
    say_run(&world, "r1", 2, true);
    for (unsigned i = 2; i <= 6; i++)
        say_row(&world, "r1", i, "\"a\":2");
    send_all(&world);
    json_t *decoded = wandb_mock_decoded(&world.mock);
    const json_t *run = at(decoded, "runs.0");
    ck_assert_uint_eq(size_at(run, "history"), 6);
    for (unsigned i = 0; i < 6; i++) {
        ck_assert_int_eq(json_integer_value(at(run, "history.%u._step", i)), i);
        ck_assert(json_number_value(at(run, "history.%u._timestamp", i)) == 1700000001.0 + i);
        // The second goes on with the seconds of the first.
        ck_assert(json_number_value(at(run, "history.%u._runtime", i)) ==
                  (i < 3 ? 1.0 + i : 11.0 + i));
    }
    json_decref(decoded);
    world_close(&world);
}
END_TEST

START_TEST(an_artifact_of_files) {
    struct world world;
    char folder[64], path[256], link[256];
    temporary_path(folder, sizeof folder, "artifact");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    static const char *const names[] = {"b.txt", "a", "sub/.hidden", "sub/empty"};
    snprintf(path, sizeof path, "%s/sub", folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    for (unsigned i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        FILE *file = fopen(path, "w");
        fprintf(file, "%.*s", i == 3 ? 0 : 5, "hello");
        fclose(file);
    }
    char large[64]; // a hole, that takes no room
    temporary_path(large, sizeof large, "large");
    int descriptor = mkstemp(large);
    ck_assert_int_eq(ftruncate(descriptor, (off_t)2 << 30), 0);
    close(descriptor);
    world_open(&world);
    say_run(&world, "r1", 0, false);
    const char *const paths[] = {folder, "/nowhere/at/all", large};
    for (unsigned i = 0; i < 3; i++)
        say(&world, "r1", 1,
            (struct wandb_record){.kind = WANDB_ARTIFACT,
                                  .key = i == 0 ? SLICE("thing") : SLICE("nothing"),
                                  .type = SLICE("dataset"),
                                  .file = slice_of(paths[i])});
    say_finish(&world, "r1", 2);
    wandb_mock_fault(&world.mock, "at=storage,kind=drop,skip=2");
    send_all(&world);
    json_t *decoded = wandb_mock_decoded(&world.mock);
    const json_t *run = at(decoded, "runs.0");
    ck_assert_uint_eq(size_at(run, "artifacts"), 1);
    ck_assert_str_eq(text_at(run, "artifacts.0.name"), "thing");
    ck_assert_str_eq(text_at(run, "artifacts.0.state"), "COMMITTED");
    ck_assert_uint_eq(json_object_size(at(run, "artifacts.0.files")), 4);
    snprintf(path, sizeof path, "%s/sub/empty", strrchr(folder, '/') + 1);
    const json_t *empty = json_object_get(at(run, "artifacts.0.files"), path);
    ck_assert(json_integer_value(json_object_get(empty, "size")) == 0);
    ck_assert(json_is_true(at(run, "complete")));
    json_decref(decoded);
    snprintf(link, sizeof link, "rm -r %s", folder);
    ck_assert_int_eq(system(link), 0);
    unlink(large);
    world_close(&world);
}
END_TEST

START_TEST(a_table_that_is_refused_leaves_the_run_whole) {
    static const char chart[] =
        "\"tab\":{\"panel_type\":\"Vega2\",\"panel_config\":{\"panelDefId\":\"x\","
        "\"fieldSettings\":{},\"stringSettings\":{},\"userQuery\":{\"queryFields\":[{\"fields\":[{"
        "\"name\":\"summaryTable\",\"args\":[{\"name\":\"tableKey\",\"value\":\"tab_table\"}]}]}]}}"
        "}";
    struct world world;
    world_open(&world);
    wandb_mock_fault(&world.mock, "at=graphql:createArtifact,kind=gqlerror");
    say(&world, "r1", 0, (struct wandb_record){.kind = WANDB_RUN, .members = slice_of(chart)});
    say_row(&world, "r1", 1, "\"a\":1");
    say_table(&world, "r1", 2, "tab_table");
    say_table(&world, "r1", 3, "other");
    say_finish(&world, "r1", 4);
    send_all(&world);
    json_t *decoded = wandb_mock_decoded(&world.mock);
    const json_t *run = at(decoded, "runs.0");
    ck_assert(json_is_true(at(run, "complete")));
    ck_assert_uint_eq(size_at(run, "history"), 3);
    ck_assert_uint_eq(json_object_size(at(run, "history.1")), 3);
    ck_assert_uint_eq(json_object_size(at(run, "config._wandb.visualize")), 0);
    ck_assert_str_eq(text_at(run, "history.2.other._type"), "table-file");
    json_decref(decoded);
    world_close(&world);
}
END_TEST

START_TEST(what_can_never_pass_is_permanent) {
    static const struct {
        const char *fault, *says;
    } cases[] = {
        {"at=graphql:model,kind=401", "API key"},
        {"at=graphql:upsertBucket,kind=gqlerror", "injected error"},
        {"at=graphql:upsertBucket,kind=404", "project"},
        {"at=file_stream,kind=403", "API key"},
        {"at=file_stream,kind=409,count=0", "another client"},
        {"at=file_stream,kind=404,count=0", "entity"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world world;
        world_open(&world);
        wandb_mock_fault(&world.mock, cases[i].fault);
        say_run(&world, "r1", 0, false);
        say_row(&world, "r1", 1, "\"a\":1");
        ck_assert_int_ne(send_once(&world), STATUS_OK);
        // What blames the run costs the run, else nothing will ever pass.
        ck_assert(world.outcome.sink_dead != (world.outcome.refused > 0));
        ck_assert(world.outcome.sink_dead == (strstr(cases[i].fault, "count=0") == NULL));
        ck_assert_msg(strstr(world.error.message, cases[i].says) != NULL, "%s",
                      world.error.message);
        ck_assert_ptr_null(strstr(world.error.message, WANDB_MOCK_KEY));
        world_close(&world);
    }
}
END_TEST

// Servers and proxies that repeat the request in their answer do not get the key into the log.
START_TEST(the_key_is_not_repeated) {
    static const char *const places[] = {"at=graphql:model,kind=echo401",
                                         "at=file_stream,kind=echo401"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct world world;
        world_open(&world);
        wandb_mock_fault(&world.mock, places[i]);
        say_run(&world, "r1", 0, false);
        say_row(&world, "r1", 1, "\"a\":1");
        ck_assert_int_ne(send_once(&world), STATUS_OK);
        const char *said = world.error.message;
        ck_assert_msg(strstr(said, "Authorization: Basic [REDACTED]") != NULL, "%s", said);
        world_close(&world);
    }
}
END_TEST

START_TEST(another_project_gets_the_rows_from_then_on) {
    struct world world;
    world_open(&world);
    say_run(&world, "r1", 5, false);
    for (unsigned i = 1; i <= 3; i++)
        say_row(&world, "r1", i, "\"a\":1");
    send_all(&world);
    world.config.project = "other";
    restart(&world);
    restart(&world); // nothing was said meanwhile
    say_row(&world, "r1", 4, "\"a\":2");
    send_all(&world);
    restart(&world);
    say_row(&world, "r1", 5, "\"a\":3");
    say_finish(&world, "r1", 6);
    send_all(&world);
    json_t *decoded = wandb_mock_decoded(&world.mock);
    ck_assert_uint_eq(size_at(decoded, "runs"), 2);
    ck_assert_uint_eq(size_at(decoded, "runs.0.history"), 3);
    ck_assert_uint_eq(size_at(decoded, "runs.1.history"), 2);
    ck_assert_str_eq(text_at(decoded, "runs.1.project"), "other");
    ck_assert(number_at(decoded, "runs.1.history.0._step") == 0);
    ck_assert(number_at(decoded, "runs.1.history.1.a") == 3);
    ck_assert(json_is_true(at(decoded, "runs.1.complete")));
    json_decref(decoded);
    world_close(&world);
}
END_TEST

START_TEST(runs_side_by_side) {
    struct world world;
    uint64_t rows[7] = {0};
    char id[8];
    world_open(&world);
    for (unsigned round = 0; round < 3; round++)
        for (unsigned i = 0; i < 7; i++) {
            snprintf(id, sizeof id, "r%u", i);
            world.row = rows[i];
            if (round == 0)
                say_run(&world, id, i + 1, false);
            say_row(&world, id, round + 1, "\"a\":1");
            if (round == 1 && i == 3)
                say_table(&world, id, 2, "tab");
            rows[i] = world.row;
            if (round == 2 && i % 2 == 0)
                say_finish(&world, id, 9);
        }
    wandb_mock_fault(&world.mock, "at=file_stream,kind=500,skip=2,count=2");
    wandb_mock_fault(&world.mock, "at=graphql:commitArtifact,kind=drop_after");
    ck_assert_uint_gt(send_all(&world), 2);
    restart(&world);
    for (unsigned i = 1; i < 7; i += 2) {
        snprintf(id, sizeof id, "r%u", i);
        world.row = rows[i];
        say_row(&world, id, 5, "\"a\":2");
        say_finish(&world, id, 9);
    }
    send_all(&world);
    json_t *decoded = wandb_mock_decoded(&world.mock);
    ck_assert_uint_eq(size_at(decoded, "runs"), 7);
    for (unsigned i = 0; i < 7; i++) {
        const json_t *run = at(decoded, "runs.%u", i);
        ck_assert(json_is_true(at(run, "complete")));
        ck_assert(number_at(run, "finishes") == 1);
        ck_assert_uint_eq(size_at(run, "history"), 3 + i % 2 + (i == 3));
    }
    json_decref(decoded);
    world_close(&world);
}
END_TEST

START_TEST(a_run_that_begins_again) {
    struct world world;
    world_open(&world);
    for (unsigned i = 0; i < 3; i++) {
        world.row = 0;
        say_run(&world, "r1", i + 1, false);
        say_row(&world, "r1", 10 * i + 1, "\"a\":1");
        say_row(&world, "r1", 10 * i + 2, "\"b\":2");
        say_finish(&world, "r1", 10 * i + 3);
    }
    wandb_mock_fault(&world.mock, "at=file_stream,kind=drop_after,skip=1");
    wandb_mock_fault(&world.mock, "at=graphql:upsertBucket,kind=drop_after,skip=2");
    send_all(&world);
    json_t *decoded = wandb_mock_decoded(&world.mock);
    ck_assert_uint_eq(size_at(decoded, "runs.0.history"), 6);
    ck_assert(number_at(decoded, "runs.0.finishes") == 3);
    ck_assert(number_at(decoded, "runs.0.summary.b") == 2);
    ck_assert_str_eq(text_at(decoded, "runs.0.config.culprit.incarnation"), "3");
    json_decref(decoded);
    world_close(&world);
}
END_TEST

START_TEST(a_large_summary_goes_alone) {
    struct world world;
    world_open(&world);
    struct buffer members;
    buffer_init(&members, 16 << 20);
    say_run(&world, "r1", 0, false);
    for (unsigned i = 0; i < 2; i++) {
        buffer_reset(&members);
        buffer_append_format(&members, "\"text%u\":\"", i);
        while (members.size < 4 << 20)
            buffer_append_text(&members, "0123456789012345678901234567890123456789");
        buffer_append_char(&members, '"');
        say(&world, "r1", i + 1,
            (struct wandb_record){.kind = WANDB_ROW, .members = buffer_slice(&members)});
    }
    say_finish(&world, "r1", 9);
    wandb_mock_fault(&world.mock, "at=file_stream,kind=500,skip=1");
    send_all(&world);
    json_t *decoded = wandb_mock_decoded(&world.mock);
    ck_assert_uint_eq(size_at(decoded, "runs.0.history"), 2);
    ck_assert(number_at(decoded, "runs.0.stats.stream_posts") == 2);
    ck_assert(number_at(decoded, "runs.0.summary._wandb.runtime") == 9);
    ck_assert_uint_gt(json_string_length(at(decoded, "runs.0.summary.text1")), 4000000);
    ck_assert(json_is_true(at(decoded, "runs.0.complete")));
    json_decref(decoded);
    buffer_release(&members);
    world_close(&world);
}
END_TEST

START_TEST(heartbeats_and_pace) {
    struct world world;
    world_open(&world);
    struct send_pace pace = wandb_online_pace(world.online);
    ck_assert_uint_eq(pace.not_before_ns, 0);
    ck_assert_uint_eq(pace.again_ns, UINT64_MAX);
    say_run(&world, "r1", 3, false);
    say_row(&world, "r1", 1, "\"a\":1");
    uint64_t before = clock_monotonic_ns();
    send_all(&world);
    pace = wandb_online_pace(world.online);
    ck_assert_uint_ge(pace.not_before_ns, before + 15 * SECOND);
    ck_assert_uint_eq(pace.again_ns, pace.not_before_ns + 15 * SECOND);
    ck_assert_int_eq(send_once(&world), STATUS_OK); // not due
    world.config.heartbeat_interval.ns = 0;
    ck_assert_int_eq(send_once(&world), STATUS_OK);
    restart(&world); // also of runs from before a restart
    ck_assert_int_eq(send_once(&world), STATUS_OK);
    world.config.heartbeat_interval.ns = 30 * (int64_t)SECOND;
    say_finish(&world, "r1", 2);
    send_all(&world);
    ck_assert_uint_eq(wandb_online_pace(world.online).again_ns, UINT64_MAX);
    json_t *decoded = wandb_mock_decoded(&world.mock);
    ck_assert(number_at(decoded, "runs.0.stats.heartbeats") == 2);
    ck_assert(number_at(decoded, "runs.0.summary.a") == 1);
    ck_assert(json_is_true(at(decoded, "runs.0.complete")));
    json_decref(decoded);
    world_close(&world);
}
END_TEST

// Every second file_stream request is put off; the others say what may still come.
static const char busy_server[] =
    "import email.utils, http.server, json, time\n"
    "class Handler(http.server.BaseHTTPRequestHandler):\n"
    "    posts = 0\n"
    "    def do_POST(self):\n"
    "        self.rfile.read(int(self.headers['Content-Length']))\n"
    "        run = {'id': 'x', 'name': 'r1', 'project': {'name': 'p', 'entity': {'name': 'e'}}}\n"
    "        body = {'data': {'model': None, 'upsertBucket': {'bucket': run}}}\n"
    "        stream = not self.path.endswith('graphql')\n"
    "        Handler.posts += stream\n"
    "        busy = stream and Handler.posts % 2 == 1\n"
    "        self.send_response(503 if busy else 200)\n"
    "        if busy:\n"
    "            self.send_header('retry-after', email.utils.formatdate(time.time() + 1000,\n"
    "                                                                   usegmt=True))\n"
    "        self.send_header('RateLimit-Remaining', '5')\n"
    "        self.send_header('RATELIMIT-RESET', '1000')\n"
    "        self.end_headers()\n"
    "        self.wfile.write(json.dumps(body).encode())\n"
    "    def do_GET(self):\n"
    "        self.send_response(200)\n"
    "        self.end_headers()\n"
    "        self.wfile.write(json.dumps(Handler.posts).encode())\n"
    "    def log_message(self, *_):\n"
    "        pass\n"
    "server = http.server.HTTPServer(('127.0.0.1', 0), Handler)\n"
    "print('READY http://127.0.0.1:%d' % server.server_address[1], flush=True)\n"
    "server.serve_forever()\n";

static int posts_of(const struct world *world) {
    json_t *posts = wandb_mock_call(&world->mock, "GET", "/", "");
    int count = (int)json_integer_value(posts);
    json_decref(posts);
    return count;
}

START_TEST(a_busy_server_sets_the_pace) {
    struct world world;
    world_open(&world);
    wandb_mock_stop(&world.mock);
    wandb_mock_run(&world.mock, "-c", busy_server);
    say_run(&world, "r1", 0, false);
    say_row(&world, "r1", 1, "\"a\":1");
    ck_assert_int_eq(send_once(&world), STATUS_IO);
    ck_assert(!world.outcome.sink_dead);
    ck_assert_uint_gt(world.outcome.retry_after_ns, 900 * SECOND);
    ck_assert_uint_le(world.outcome.retry_after_ns, 1000 * SECOND);
    // Too early: it is not even asked.
    ck_assert_int_eq(send_once(&world), STATUS_IO);
    ck_assert_uint_gt(world.outcome.retry_after_ns, 900 * SECOND);
    ck_assert_int_eq(posts_of(&world), 1);
    forget(&world);
    uint64_t before = clock_monotonic_ns();
    ck_assert_int_eq(send_once(&world), STATUS_OK);
    ck_assert_int_eq(posts_of(&world), 2);
    // 1000 s for 5 posts.
    ck_assert_uint_ge(wandb_online_pace(world.online).not_before_ns, before + 200 * SECOND);
    world_close(&world);
}
END_TEST

START_TEST(many_rows_are_cut_into_posts) {
    struct world world;
    world_open(&world);
    struct buffer members;
    buffer_init(&members, 16 << 20);
    say_run(&world, "r1", 0, false);
    for (unsigned i = 0; i < 6; i++) {
        buffer_reset(&members);
        buffer_append_text(&members, "\"text\":\"");
        size_t size = i == 2 ? 10400000 : 4000000; // the third is longer than a server takes
        while (members.size < size)
            buffer_append_text(&members, "0123456789012345678901234567890123456789");
        buffer_append_char(&members, '"');
        say(&world, "r1", i + 1,
            (struct wandb_record){.kind = WANDB_ROW, .members = buffer_slice(&members)});
    }
    say_row(&world, "r1", 8, "\"text\":\"\"");
    say_finish(&world, "r1", 9);
    send_all(&world);
    json_t *decoded = wandb_mock_decoded(&world.mock);
    const json_t *run = at(decoded, "runs.0");
    static const unsigned steps[] = {0, 1, 3, 4, 5, 6};
    ck_assert_uint_eq(size_at(run, "history"), 6);
    for (unsigned i = 0; i < 6; i++)
        ck_assert_int_eq(json_integer_value(at(run, "history.%u._step", i)), steps[i]);
    ck_assert(number_at(run, "stats.stream_posts") == 3);
    json_decref(decoded);
    buffer_release(&members);
    world_close(&world);
}
END_TEST

START_TEST(keys_are_looked_at) {
    static const struct {
        const char *key;
        bool good;
    } cases[] = {
        {"0123456789abcdef0123456789abcdef01234567", true},
        {"local-0123456789abcdef0123456789abcdef01234567", true},
        {"wandb_v1_0123456789abcdef0123456789abcdef0123456789abcdef", true},
        {"eyJhbGciOi.eyJzdWIiOiIx.c2lnbmF0dXJl", true},
        {"0123456789abcdef0123456789abcdef0123456", false},
        {"local \r\n-0123456789abcdef0123456789abcdef01234567", false},
        {"local\xc3\xa9-0123456789abcdef0123456789abcdef01234567", false},
        {"0123456789abcdef 123456789abcdef01234567", false},
        {"0123456789abcdef0123456789abcdef01234567\n", false},
    };
    struct world world;
    world_open(&world);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wandb_online *online = NULL;
        struct error error = {0};
        world.config.api_key.hidden = cases[i].key;
        enum status status = wandb_online_open(&online, &world.config, "x", &error);
        ck_assert_int_eq(status, cases[i].good ? STATUS_OK : STATUS_CONFIG);
        ck_assert_ptr_null(strstr(error.message, cases[i].key));
        wandb_online_close(online);
    }
    world_close(&world);
}
END_TEST

START_TEST(netrc_is_the_fallback) {
    struct world world;
    char path[64];
    temporary_path(path, sizeof path, "netrc");
    int descriptor = mkstemp(path);
    dprintf(descriptor,
            "# machine 127.0.0.1 password no\nmachine other login user password no\n"
            "machine 127.0.0.1\n  login user\n  password %s\n",
            WANDB_MOCK_KEY);
    close(descriptor);
    setenv("NETRC", path, 1);
    world_open(&world);
    wandb_online_close(world.online);
    world.config.api_key.hidden = NULL;
    online_open(&world);
    say_run(&world, "r1", 0, false);
    say_finish(&world, "r1", 1);
    send_all(&world);
    json_decref(wandb_mock_decoded(&world.mock));
    unlink(path);
    struct wandb_online *online = NULL;
    struct error error = {0};
    ck_assert_int_eq(wandb_online_open(&online, &world.config, "x", &error), STATUS_CONFIG);
    ck_assert_ptr_nonnull(strstr(error.message, "WANDB_API_KEY"));
    world_close(&world);
}
END_TEST

int main(void) {
    setenv("no_proxy", "127.0.0.1", 1);
    Suite *suite = suite_create("wandb_online");
    TCase *cases = tcase_create("online");
    tcase_add_test(cases, a_run_from_begin_to_end);
    tcase_add_test(cases, what_was_done_is_not_repeated);
    tcase_add_test(cases, rows_go_on_after_a_restart);
    tcase_add_test(cases, rows_of_another_incarnation_are_appended);
    tcase_add_test(cases, an_artifact_of_files);
    tcase_add_test(cases, a_table_that_is_refused_leaves_the_run_whole);
    tcase_add_test(cases, what_can_never_pass_is_permanent);
    tcase_add_test(cases, the_key_is_not_repeated);
    tcase_add_test(cases, another_project_gets_the_rows_from_then_on);
    tcase_add_test(cases, runs_side_by_side);
    tcase_add_test(cases, a_run_that_begins_again);
    tcase_add_test(cases, a_large_summary_goes_alone);
    tcase_add_test(cases, heartbeats_and_pace);
    tcase_add_test(cases, a_busy_server_sets_the_pace);
    tcase_add_test(cases, many_rows_are_cut_into_posts);
    tcase_add_test(cases, keys_are_looked_at);
    tcase_add_test(cases, netrc_is_the_fallback);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
