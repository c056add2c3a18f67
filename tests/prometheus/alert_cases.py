# SPDX-License-Identifier: Apache-2.0
"""When does each alert of examples/prometheus/rules.yaml fire, and when not?

CASES: of each alert (what it is, series and their values a minute, the minute it is asked at, the
alerts that must fire then: their labels beside those of the rule, and their annotations).
`promtool_file` makes of them what `promtool test rules` reads.
"""
import json

OPEN = ('culprit_verdict_open{training_job="exp-7",pattern="memory_first_cause",kind="leak",'
        'severity="%s",rank="2",node="gpu-12",phase="step / backward"}')
OPEN_LABELS = {"training_job": "exp-7", "pattern": "memory_first_cause", "kind": "leak",
               "rank": "2", "node": "gpu-12", "phase": "step / backward"}
LEAK = {"summary": "exp-7: leak on rank 2 (gpu-12)",
        "description": "memory_first_cause in phase step / backward; the verdict's evidence is in "
                       "culprit's JSON output."}
NODE = ('culprit_verdict_open{pattern="pcie_aer",kind="correctable_storm",severity="%s",'
        'node="gpu-9"}')
STORM = {"summary": "correctable_storm (gpu-9)",
         "description": "pcie_aer; the verdict's evidence is in culprit's JSON output."}
LAST = 'culprit_rank_last_event_timestamp_seconds{training_job="%s",rank="%d",instance="%s"}'
OVERFLOW = 'culprit_rank_last_event_timestamp_seconds{otel_metric_overflow="true"}'
UP = 'up{job="%s",instance="a:9464"}'
BUILD = 'culprit_build_info{job="%s",instance="a:9464",version="0.1.0"}'
STARTED = 'process_start_time_seconds{job="%s",instance="a:9464"}'
FAILED = 'culprit_receiver_failed_events_total{receiver="file/ranks",reason="json",instance="a"}'
DROPPED = ('culprit_discarded_events_total{component="json",reason="undeliverable",'
           'intentional="%s",pipeline="p"}')
BLOCKED = 'culprit_receiver_blocked{receiver="http",instance="a"}'
LAG = 'culprit_kafka_receiver_lag_seconds{receiver="kafka",topic="events",partition="%d"}'
SENDING = 'culprit_exporter_send_failed_records_total{exporter="kafka",instance="a"}'
QUEUE = 'culprit_exporter_queue_%s_bytes{exporter="kafka",instance="a"}'
STORE = 'culprit_store_%s{extension="file_storage",instance="a"}'
FOLDED = 'culprit_series_overflow_total{exporter="prometheus",instance="a"}'
RELOAD = 'culprit_config_last_reload_successful{instance="a"}'
IN_STORE = {"extension": "file_storage", "instance": "a"}

CASES = {
    "TrainingCulpritFound": (
        ("a leak stands", {OPEN % "error": "1x5"}, 1,
         [({**OPEN_LABELS, "severity": "critical"}, LEAK)]),
        ("a node's fault, of no job", {NODE % "critical": "1x5"}, 1,
         [({"pattern": "pcie_aer", "kind": "correctable_storm", "node": "gpu-9",
            "severity": "critical"}, STORM)]),
        ("it is resolved", {OPEN % "error": "1 1 stale"}, 3, []),
        ("less sure, or nothing to blame", {OPEN % "warning": "1x5", OPEN % "info": "1x5"}, 5, []),
    ),
    "TrainingCulpritSuspected": (
        ("it stands for a minute", {NODE % "warning": "1x5"}, 1,
         [({"pattern": "pcie_aer", "kind": "correctable_storm", "node": "gpu-9",
            "severity": "warning"}, STORM)]),
        ("just said", {NODE % "warning": "1x5"}, 0, []),
        ("growth of all", {NODE % "info": "1x5"}, 5, []),
    ),
    "TrainingRankSilent": (
        ("rank 1 stops, seen by another sidecar than rank 0",
         {LAST % ("exp-7", 0, "a"): "1000+60x9", LAST % ("exp-7", 1, "b"): "1000+60x2 1120x7"}, 8,
         [({"training_job": "exp-7", "rank": "1", "instance": "b"},
           {"summary": "exp-7: rank 1 is silent",
            "description": "Its newest event is 6m 0s behind that of the newest rank of its "
                           "job."})]),
        ("all stop", {LAST % ("exp-7", 0, "a"): "1000x9", LAST % ("exp-7", 1, "b"): "1010x9"}, 8,
         []),
        ("one of two jobs ended", {LAST % ("exp-7", 0, "a"): "1000x9",
                                   LAST % ("exp-8", 0, "a"): "1000+60x9"}, 8, []),
        ("an overflow series is no rank", {LAST % ("exp-7", 0, "a"): "1000+60x9",
                                           OVERFLOW: "1000x9"}, 8, []),
    ),
    "CulpritDown": (
        ("no answer for five minutes, in a job of any name",
         {UP % "kubernetes-pods": "1 0x9", BUILD % "kubernetes-pods": "1 stale"}, 6,
         [({"job": "kubernetes-pods", "instance": "a:9464"},
           {"summary": "culprit at a:9464 does not answer"})]),
        ("it never answered, in a job of its name", {UP % "culprit": "0x9"}, 5,
         [({"job": "culprit", "instance": "a:9464"},
           {"summary": "culprit at a:9464 does not answer"})]),
        ("one scrape is lost", {UP % "culprit": "1 0 1x9", BUILD % "culprit": "1 stale 1x9"}, 5,
         []),
        ("its pod is gone", {UP % "kubernetes-pods": "1 stale", BUILD % "kubernetes-pods":
                             "1 stale"}, 9, []),
        ("something else is down", {UP % "kubernetes-pods": "0x9"}, 9, []),
    ),
    "CulpritRestarts": (
        ("three times", {STARTED % "kubernetes-pods": "1 2 3 4x9",
                         BUILD % "kubernetes-pods": "1x9"}, 9,
         [({"job": "kubernetes-pods", "instance": "a:9464"},
           {"summary": "culprit at a:9464 was started 3 times anew in 30 minutes"})]),
        ("twice", {STARTED % "culprit": "1 2 3x9", BUILD % "culprit": "1x9"}, 9, []),
        ("another program", {STARTED % "node": "1 2 3 4 5 6 7x9"}, 9, []),
    ),
    "CulpritRefusesEvents": (
        ("one a minute", {FAILED: "0+1x20"}, 12,
         [({"receiver": "file/ranks", "reason": "json"},
           {"summary": "culprit cannot read events at file/ranks: json"})]),
        ("some, long ago", {FAILED: "0 7x20"}, 12, []),
    ),
    "CulpritLosesEvents": (
        ("against its will", {DROPPED % "false": "0+1x20"}, 12,
         [({"component": "json", "reason": "undeliverable"},
           {"summary": "culprit drops events at json: undeliverable"})]),
        ("as it was told", {DROPPED % "true": "0+1x20"}, 12, []),
    ),
    "CulpritInputWaits": (
        ("all the time", {BLOCKED: "1x30"}, 11,
         [({"receiver": "http", "instance": "a"},
           {"summary": "http at a mostly waits: what stands behind it is too slow, full, or "
                       "down"})]),
        ("now and then", {BLOCKED: "0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0"}, 22, []),
    ),
    "CulpritKafkaLag": (
        ("one partition", {LAG % 0: "0x30", LAG % 1: "400x30"}, 11,
         [({"receiver": "kafka", "topic": "events"},
           {"summary": "kafka is 6m 40s behind the end of events"})]),
        ("it catches up", {LAG % 0: "400-100x4 0x30"}, 11, []),
    ),
    "CulpritCannotDeliver": (
        ("again and again", {SENDING: "0+5x30"}, 15,
         [({"exporter": "kafka"}, {"summary": "culprit cannot deliver through kafka"})]),
        ("once", {SENDING: "0 5x30"}, 15, []),
    ),
    "CulpritQueueFilling": (
        ("at nine tenths", {QUEUE % "size": "90x30", QUEUE % "capacity": "100x30"}, 11,
         [({"exporter": "kafka", "instance": "a"},
           {"summary": "the queue of kafka is over 80 % full"})]),
        ("half full", {QUEUE % "size": "50x30", QUEUE % "capacity": "100x30"}, 11, []),
    ),
    "CulpritStoreFull": (
        ("it stays full", {STORE % "full": "1x9"}, 6,
         [(IN_STORE, {"summary": "the store of culprit at a is full: receivers take no input"})]),
        ("for a moment", {STORE % "full": "0 1 0x9"}, 6, []),
    ),
    "CulpritStoreUnwritable": (
        ("it stays so", {STORE % "degraded": "1x9"}, 2,
         [(IN_STORE, {"summary": "the store of culprit at a cannot be written: a crash now loses "
                                 "what came since"})]),
        ("it is well", {STORE % "degraded": "0x9"}, 9, []),
    ),
    "CulpritStoreDamaged": (
        ("one blob", {STORE % "damaged_blobs_total": "0 1x9"}, 3,
         [(IN_STORE, {"summary": "the store of culprit at a was damaged; its log says what is "
                                 "lost (C4003, C4004)"})]),
        ("a log that was cut", {STORE % "damaged_blobs_total": "0x9",
                                STORE % "repairs_total": "0 1x9"}, 3,
         [(IN_STORE, {"summary": "the store of culprit at a was damaged; its log says what is "
                                 "lost (C4003, C4004)"})]),
        ("none", {STORE % "damaged_blobs_total": "0x9", STORE % "repairs_total": "0x9"}, 3, []),
    ),
    "CulpritSeriesOverflow": (
        ("ranks are folded", {FOLDED: "0+9x60"}, 40,
         [({"exporter": "prometheus", "instance": "a"},
           {"summary": "prometheus at a shows some ranks together: raise max_series"})]),
        ("all have room", {FOLDED: "0x60"}, 40, []),
    ),
    "CulpritReloadFailed": (
        ("it stays wrong", {RELOAD: "0x9"}, 6,
         [({"instance": "a"},
           {"summary": "culprit at a runs on an older configuration than its file holds"})]),
        ("put right", {RELOAD: "0 0 1x9"}, 6, []),
    ),
}
SEVERITY = {"TrainingCulpritFound": "critical", "CulpritDown": "critical",
            "CulpritStoreUnwritable": "critical"}


def promtool_file(rules):
    """The text of a test file, which is JSON and so YAML."""
    tests = []
    for alert, cases in CASES.items():
        labels = {"severity": SEVERITY.get(alert, "warning")}
        for what, series, minute, fires in cases:
            tests.append({
                "name": "%s: %s" % (alert, what), "interval": "1m",
                "input_series": [{"series": name, "values": values}
                                 for name, values in series.items()],
                "alert_rule_test": [{
                    "alertname": alert, "eval_time": "%dm" % minute,
                    "exp_alerts": [{"exp_labels": {**own, **labels}, "exp_annotations": said}
                                   for own, said in fires]}]})
    return json.dumps({"rule_files": [rules], "evaluation_interval": "1m", "tests": tests})
