# SPDX-License-Identifier: Apache-2.0
"""The table of run_faults.py: each fault, what is done, what must hold, and who shows it.

`cases` are functions of the case_*.py modules, which run_faults.py calls. `suites` are other suites
of the test run, as FOLDER/NAME, with tests of theirs where only some of them are meant; the names
are checked against the source.
"""
import collections

import case_calls
import case_disk
import case_http
import case_input
import case_kafka
import case_run


class Suite(collections.namedtuple("Suite", "name tests long")):
    """`long`: what the long form gives to it behind the binary."""
    def __new__(cls, name, *tests, long=()):
        return super().__new__(cls, name, tests, long)


Row = collections.namedtuple("Row", "name fault done holds cases suites")

ROWS = [
    Row("F1", "SIGKILL, again and again",
        "killed at random moments while a job's events arrive by file, HTTP and Kafka, and while "
        "span streams and node logs are followed; started again each time",
        "the verdicts are those of a run that nobody disturbed, byte for byte (of ends that logs "
        "without a time tell of: who and what); nothing that was acknowledged is missing",
        [], [Suite("run/run_crash", long=("1000",)), Suite("run/run_kill"),
             Suite("run/run_node_crash"), Suite("run/run_spans_crash"), Suite("run/run_held_crash"),
             Suite("kafka/run_kafka_crash"), Suite("wandb/run_wandb_offline_crash")]),
    Row("F2", "power loss",
        "what reaches the disk is written down while the store runs a script of 200 batches; a "
        "state that a disk may then hold (unsynced sectors lost, torn, in another order; names "
        "lost) is made at every point, also during recovery and repair; the same for a whole "
        "culprit, which is started on it",
        "the store opens by itself, holds the first batches whole, all that were called durable "
        "among them, and counts nothing as damaged; the verdicts stay",
        [case_disk.power_loss], [Suite("extensions/test_store_faults", "killed_at_any_moment")]),
    Row("F3", "damaged store",
        "each byte of a store's file and log in turn is turned over, zero, or the end; the log is "
        "taken away; pages overwritten; files of others and of newer versions in its place",
        "it opens by itself; of one bad byte of the file no more is lost than stood on its page, "
        "of one of the log nothing; what was acknowledged and is gone is told (C4003); `store "
        "check` names it; the damaged file is kept",
        [case_disk.damage], [Suite("extensions/test_store_damage"), Suite("extensions/test_store_log"),
                             Suite("cli/run_store")]),
    Row("F4", "full disk",
        "the file system under the store, then under the verdicts, is filled and freed; quota "
        "errors, short writes, and files that may not grow",
        "it goes on; requests are answered with 503 meanwhile and events of files wait; nothing is "
        "lost, no line is torn",
        [case_disk.full],
        [Suite("extensions/test_store_faults", "full_disk", "files_that_may_not_grow",
               "writes_that_fail"),
         Suite("exporters/test_output", "full_disk_leaves_whole_lines",
               "full_disk_keeps_the_old_document")]),
    Row("F5", "fsync fails",
        "the n-th fsync gives EIO, then every one",
        "no acknowledgement behind a failed fsync; `culprit_store_degraded` is 1; after it nothing "
        "is missing and the verdicts stay",
        [case_disk.failed_sync], [Suite("extensions/test_store_faults", "syncs_that_fail")]),
    Row("F6", "calls that fail",
        "the n-th allocation and all after it; the n-th write, read, open, send, recv, accept, "
        "socket, thread: at the start, in batches, at a reload, at the stop",
        "it ends with the exit code of what failed or goes on; no crash, no sanitizer report; the "
        "next start makes up for all",
        [case_calls.memory, case_calls.memory_of_libraries, case_calls.calls],
        [Suite("base/test_memory", "exhausted")]),
    Row("F7", "rotated files",
        "files are renamed, deleted and made anew, copied and cut, compressed, while they are "
        "written to and while culprit is stopped",
        "each line counts once; what a copy and cut loses is told",
        [case_input.rotation], [Suite("receivers/test_file_tail")]),
    Row("F8", "torn lines",
        "lines in pieces, a killed writer, NULs, CRLF, a BOM, lines of many MiB",
        "no half line is an event; what is too long is refused once; the next line is whole",
        [case_input.torn], [Suite("receivers/test_file")]),
    Row("F9", "Kafka brokers",
        "brokers that go and come, coordinators that move, errors for commits and fetches, a "
        "group whose members change, by librdkafka's mock cluster and by a real broker",
        "nothing is lost or counts twice; only offsets that are safe are committed; other "
        "receivers go on",
        [case_kafka.brokers, case_kafka.calls, case_kafka.with_signals],
        [Suite("receivers/test_kafka"), Suite("exporters/test_kafka_send"),
         Suite("kafka/run_kafka")]),
    Row("F10", "poison messages",
        "records that cannot be decoded, tombstones, messages of 900 kB, headers of 90 kB, between "
        "those of a job",
        "the dead-letter topic and the quarantine hold exactly those, with topic, partition, "
        "offset and reason; the rest is read",
        [case_kafka.poison], [Suite("receivers/test_kafka_dead_letter"), Suite("kafka/run_kafka")]),
    Row("F11", "sinks that fail",
        "a W&B server that answers with each error, hangs, cuts off, redirects, says Retry-After "
        "and what is no time; a Kafka broker that is never there",
        "only what may pass is tried again, in bounded time; the rest is told; no sink delays "
        "another pipeline",
        [], [Suite("wandb/run_wandb_faults"), Suite("exporters/test_wandb_online"),
             Suite("run/run_dead_sink")]),
    Row("F12", "TLS",
        "TLS 1.1, plain text, certificates of others, wrong names, client certificates that are "
        "missing, certificates renewed and broken on disk",
        "refused with the reason; never plain text instead; a renewed one is taken by a reload",
        [case_http.transport],
        [Suite("base/test_http_server_tls", "https", "https_with_client_certificates",
               "what_cannot_be_read_is_said"), Suite("wandb/run_wandb_transport")]),
    Row("F13", "slow clients",
        "connections that send headers and bodies a byte at a time, or nothing",
        "a good client is served; the slow ones are cut; descriptors and memory are bounded",
        [case_http.slow_clients],
        [Suite("base/test_http_server_life", "slow_requests_end", "clients_that_do_not_read_end"),
         Suite("base/test_http_server_connections", "connections_are_bounded")]),
    Row("F14", "sizes and framing",
        "lengths that lie or contradict each other, chunks without end, bodies over the bound, "
        "what hides behind them, Expect",
        "400 or 413; nothing that stands behind is read as a request; memory stays",
        [case_http.framing],
        [Suite("base/test_http_server", "broken_requests", "bodies_of_two_lengths",
               "too_large_before_the_body_is_sent", "too_large_while_the_body_is_sent",
               "too_large_in_chunks")]),
    Row("F15", "compression bombs",
        "gzip that grows a thousandfold, in itself, in members, cut short, with rubbish behind, by "
        "HTTP and as a file",
        "413 or 400; memory stays small",
        [case_http.bombs],
        [Suite("base/test_http_server", "gzip_bodies", "gzip_bombs_stop_at_the_limit"),
         Suite("receivers/test_file", "gzip_that_grows_large_stays_small_in_memory",
               "damaged_gzip", "gzip_that_breaks_off_anywhere")]),
    Row("F16", "JSON abuse",
        "nesting, keys and texts without end, numbers no type holds, lone surrogates, broken "
        "UTF-8, NULs, text that is almost JSON, between the lines of a job; generated and mutated "
        "text against jansson, and records against a second reading of the rules",
        "refused or read as the format says; the job's verdicts stay",
        [case_input.json_abuse],
        [Suite("receivers/test_json_scan"), Suite("receivers/test_json_shape"),
         Suite("differential/run")]),
    Row("F17", "events that cannot be true",
        "times of 1970 and 2262, negative and too large ranks, worlds that change, two jobs of one "
        "name, sizes that no device has",
        "refused with the reason, or of no effect on another job's verdicts",
        [case_input.semantics], [Suite("differential/run")]),
    Row("F18", "clocks that jump",
        "the wall clock goes an hour back, a day back and a year forward; the process is stopped "
        "for a while; recordings are replayed on a clock of their own",
        "requests are served, no timeout comes of it; the verdicts stay, since they are of event "
        "time",
        [case_calls.clock_jumps], [Suite("cli/test_order")]),
    Row("F19", "order and batches",
        "the same events in other orders within the allowed lateness, in batches of other sizes, "
        "over one receiver or several",
        "the same verdicts, byte for byte",
        [], [Suite("cli/test_order"), Suite("golden/run_detectors"), Suite("golden/run_golden")]),
    Row("F20", "names without end",
        "jobs, ranks, sessions and hosts without end, and an id of 900 kB, behind a known job",
        "the known job's verdicts stay; memory and metrics are bounded",
        [case_input.both_names],
        [Suite("base/test_metrics", "series_beyond_the_bound_are_not_exposed")]),
    Row("F21", "configurations",
        "bombs of aliases and merge keys, nesting, tabs, keys given twice, environment variables "
        "in a circle; mutations of a good one",
        "refused in bounded time, with the place; `validate` takes what `run` takes, and only that",
        [case_run.configurations],
        [Suite("config/test_document_parse"), Suite("config/test_document_expand")]),
    Row("F22", "signals",
        "SIGHUP without end while good, bad and identical configurations change under it; SIGPIPE, "
        "SIGCHLD, SIGSTOP; SIGTERM during a reload",
        "the last good configuration holds; no event is lost; it stops",
        [case_run.signals], [Suite("run/run_reload")]),
    Row("F23", "little memory",
        "a memory limit of 64 MiB for the process, a sink that is dead, and more events than fit",
        "it is not killed; requests are put off with 503 before it is too late",
        [case_run.little_memory],
        [Suite("processors/test_memory_limiter"), Suite("run/run_dead_sink")]),
    Row("F24", "secrets",
        "a word that is nowhere else in every secret option, logs at debug level; then logs, "
        "answers, metrics, `config print`, command line, store and all files are searched",
        "it is nowhere",
        [case_run.secrets], [Suite("wandb/run_wandb_transport")]),
    Row("X1", "few descriptors", "a limit of 32 open files, and 64 clients",
        "it serves again when they are gone; nothing is lost",
        [case_calls.few_descriptors],
        [Suite("receivers/test_file_tail", "more_files_than_the_system_lets_us_open")]),
    Row("X2", "no place for scratch", "/tmp cannot be written, TMPDIR names nothing",
        "no difference", [case_calls.no_scratch], []),
    Row("X3", "store that may only be read", "a read-only file system under the store",
        "it ends at the start, with an exit code of its own, the path and the reason",
        [case_disk.read_only], []),
    Row("X4", "stale files", "open and read give ESTALE, as on a network file system",
        "the files are read again; nothing is lost", [case_disk.stale], []),
    Row("X5", "no rights",
        "a user of its own (65532) that may write to one folder, over a root that may only be read",
        "no difference", [case_calls.not_root], []),
    Row("X6", "long runs", "jobs come and go, reloads, rotations, probes",
        "descriptors, threads and held memory stay what they were",
        [], [Suite("run/run_soak", long=("120",))]),
    Row("X7", "Kubernetes API servers",
        "rights and tokens that are withdrawn, 404, 429, 5xx, watches that are cut, end at once, "
        "are silent, send garbage or huge objects, versions that are forgotten or not known yet, "
        "SIGKILL of culprit",
        "each version of an object is handed over once; what may be missing is counted; the reason "
        "is said",
        [], [Suite("kubernetes/run_kubernetes"),
             Suite("base/test_http_stream", "silence", "answers", "stopped_while_waiting")]),
    Row("X8", "sources of evidence",
        "exporters of metrics and NCCL's RAS that are dead, slow, silent, cut off, send garbage, "
        "huge answers or pages of something else; network cards that hang or are taken away, files "
        "that are no numbers or may not be read; kernel logs that overrun, journals that are "
        "damaged, rotated away or not there; SIGKILL of culprit",
        "the bad one is told of once and harms nobody beside it; nothing half is taken; what is "
        "lost is counted; a stop waits for nobody",
        [], [Suite("receivers/run_scrape"), Suite("base/test_http_client_set"),
             Suite("nccl_ras/run_nccl_ras"), Suite("sysfs/run_sysfs"), Suite("kmsg/run_kmsg"),
             Suite("journald/run_journald")]),
    Row("X9", "receivers of verdicts and events",
        "gateways, Alertmanagers and OpenTelemetry Collectors that are away, refuse one record or "
        "all, take a part, answer garbage; SIGKILL on both sides of a gateway's connection",
        "what may pass is tried again, in order; one bad record takes no other along; nothing "
        "counts twice",
        [], [Suite("forward/run_forward"), Suite("alertmanager/run_alertmanager"),
             Suite("otlp/run_otlp")]),
    Row("X10", "bad sinks, for each exporter that posts",
        "sinks that are away, silent, close, speak no HTTP, cut their answers off or never end them, "
        "say 429, 503 and Retry-After, 500, 401, 404, 422, lead elsewhere, have an expired "
        "certificate, change their token; SIGKILL between a delivery and its checkpoint",
        "what may pass is tried again and arrives, what is refused is counted, the log says why; "
        "nothing goes where a redirect leads; what comes twice is told by its id",
        [], [Suite("sinks/run_bad_sinks"), Suite("grafana/run_grafana"),
             Suite("webhook/run_templates"), Suite("kubernetes/run_kubernetes_events"),
             Suite("wandb/run_wandb_crash"), Suite("run/run_once")]),
]
