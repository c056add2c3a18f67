# SPDX-License-Identifier: Apache-2.0
# Sends the fixtures of this folder with the OpenTelemetry Python SDK: record.py ENDPOINT none|gzip
import json, logging, sys
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http import Compression

def sample(rank, step, used):
    return {"schema_version": 3, "session_id": f"sess-{rank}", "timestamp_ns": 1760000000000000000 + step * 100000000,
            "event_type": "sample", "collector": "stormlog.cuda_tracker", "sampling_interval_ms": 100,
            "pid": 4000 + rank, "host": "node0", "job_id": "llama-70b", "rank": rank, "local_rank": rank, "world_size": 2,
            "device_id": rank, "allocator_allocated_bytes": used - 1000, "allocator_reserved_bytes": used - 500,
            "allocator_active_bytes": None, "allocator_inactive_bytes": None, "allocator_change_bytes": 0,
            "device_used_bytes": used, "device_free_bytes": 85899345920 - used, "device_total_bytes": 85899345920,
            "context": "Collected telemetry sample.", "metadata": {"backend": "cuda", "note": "größe", "load": 0.5, "whole": 2.0}}

endpoint, compression = sys.argv[1], sys.argv[2]
provider = LoggerProvider(resource=Resource.create({"service.name": "trainer", "host.name": "node-from-resource",
    "process.pid": 4321, "k8s.job.name": "llama-70b-worker", "k8s.pod.label.jobset.sigs.k8s.io/jobset-name": "llama-70b-set"}))
exporter = OTLPLogExporter(endpoint=endpoint, compression=Compression.Gzip if compression == "gzip" else Compression.NoCompression)
provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
logger = provider.get_logger("stormlog", "0.4.3")
T = 1760000000000000000
# 1: the record as text; 2: as a map; 3: map body in parts with attributes; 4: attributes alone; 5: a plain log line.
logger.emit(LogRecord(timestamp=T, observed_timestamp=T + 5, severity_number=SeverityNumber.INFO, body=json.dumps(sample(0, 0, 1 << 30), sort_keys=True)))
logger.emit(LogRecord(timestamp=T, observed_timestamp=T + 5, body=sample(1, 0, 1 << 30)))
part = sample(1, 1, 1 << 30)
for key in ("timestamp_ns", "event_type", "pid", "host", "job_id", "rank", "local_rank"):
    del part[key]
logger.emit(LogRecord(timestamp=T + 100000000, observed_timestamp=T + 7, event_name="stormlog.sample", body=part,
                      attributes={"culprit.rank": 1, "stormlog.local_rank": 1, "code.function.name": "step"}))
whole = sample(0, 1, (1 << 30) + 5)
del whole["context"], whole["timestamp_ns"]
logger.emit(LogRecord(observed_timestamp=T + 200000000, body="step finished", attributes={"stormlog." + k: v for k, v in whole.items()}))
logger.emit(LogRecord(timestamp=T, observed_timestamp=T + 9, body="loss 2.31", attributes={"step": 12}))
log = logging.getLogger("train"); log.setLevel(logging.INFO); log.addHandler(LoggingHandler(logger_provider=provider))
log.info(json.dumps(sample(0, 2, 1 << 30)))
log.info("checkpoint written")
provider.force_flush(); provider.shutdown()
