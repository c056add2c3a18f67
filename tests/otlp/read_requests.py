# SPDX-License-Identifier: Apache-2.0
"""Reads OTLP requests with the messages that OpenTelemetry publishes for Python.

    read_requests.py < LINES > LINES

A line is `[path, body as base64]`; what is written of each is its JSON form.
"""
import base64
import json
import sys

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest)

for line in sys.stdin:
    path, body = json.loads(line)
    message = (ExportLogsServiceRequest if path.endswith("/logs")
               else ExportMetricsServiceRequest)()
    message.ParseFromString(base64.b64decode(body))
    print(json.dumps(MessageToDict(message, use_integers_for_enums=True)))
