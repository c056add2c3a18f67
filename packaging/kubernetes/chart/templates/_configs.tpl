{{/* SPDX-License-Identifier: Apache-2.0
The configurations of culprit. culprit joins the files that it is given: what does not depend on
values is in files/, what does is made here, and the user's own part is joined to it. */}}

{{/* How a client of Kafka connects. */}}
{{- define "culprit.kafkaClient" -}}
{{- $kafka := .Values.kafka -}}
brokers: {{ toJson (default (list "${file:/secrets/culprit/brokers}") $kafka.brokers) }}
{{- if ne $kafka.saslMechanism "none" }}
sasl:
  mechanism: {{ $kafka.saslMechanism }}
  username: "${file:/secrets/culprit/username}"
  password: "${file:/secrets/culprit/password}"
{{- end }}
{{- if $kafka.tls }}
tls: {ca_file: /secrets/culprit/ca.crt}
{{- end }}
{{- end }}

{{/* The exporter that sends events on, of sidecars and nodes; its secrets lie in /secrets/culprit. */}}
{{- define "culprit.sender" -}}
{{- if .Values.kafka.enabled -}}
kafka/events:
  {{- include "culprit.kafkaClient" . | nindent 2 }}
  topic: {{ .Values.kafka.topic }}
  payload: events
  key: job_id               # one gateway gets all ranks of a job
  sending_queue: {queue_size: 32MiB}   # of the container's limit
{{- else -}}
http/gateway:
  endpoint: https://{{ include "culprit.gatewayHost" . }}:4318
  auth: {bearer_token_file: /secrets/culprit/token}
  tls: {ca_file: /secrets/culprit/ca.crt}
  sending_queue: {queue_size: 32MiB}   # of the container's limit
{{- end }}
{{- end }}

{{- define "culprit.senderName" -}}
{{- ternary "kafka/events" "http/gateway" .Values.kafka.enabled -}}
{{- end }}

{{- define "culprit.sidecar.values" -}}
receivers:
  file/ranks: {node: "${env:NODE_NAME}"}
  http: {node: "${env:NODE_NAME}"}
  {{- if .Values.sidecar.ncclRas.enabled }}
  nccl_ras: {job_id: "${env:JOB_ID:-training}"}
  {{- end }}
exporters:
  {{- include "culprit.sender" . | nindent 2 }}
processors:
  job_filter/all: {job_id: each}
service:
  pipelines:
    {{- if .Values.sidecar.ncclRas.enabled }}
    memory:
      receivers: [file/ranks, http, nccl_ras]
    {{- end }}
    forward:
      receivers: {{ ternary "[file/ranks, http, nccl_ras]" "[file/ranks, http]" .Values.sidecar.ncclRas.enabled }}
      processors: [job_filter/all]
      exporters: [{{ include "culprit.senderName" . }}]
{{- end }}

{{/* What is read on a node: a map of receivers. */}}
{{- define "culprit.node.receivers" -}}
{{- if .Values.node.kmsg.enabled }}
kmsg: {node: "${env:NODE_NAME}"}
{{- end }}
{{- if .Values.node.journald.enabled }}
journald: {directory: /host/journal, node: "${env:NODE_NAME}"}
{{- end }}
{{- if .Values.node.sysfs.enabled }}
sysfs: {root: /host/sys, node: "${env:NODE_NAME}"}
{{- end }}
{{- with .Values.node.scrape.endpoints }}
prometheus_scrape: {endpoints: {{ toJson . }}, interval: {{ $.Values.node.scrape.interval }}, timeout: {{ $.Values.node.scrape.interval }}, node: "${env:NODE_NAME}"}
{{- end }}
{{- end }}

{{- define "culprit.node.values" -}}
{{- $receivers := include "culprit.node.receivers" . -}}
receivers:
  {{- $receivers | nindent 2 }}
exporters:
  {{- include "culprit.sender" . | nindent 2 }}
service:
  pipelines:
    forward:
      receivers: {{ keys (fromYaml $receivers) | sortAlpha | toJson }}
      exporters: [{{ include "culprit.senderName" . }}]
{{- end }}

{{- define "culprit.gateway.receivers" -}}
{{- $names := list "http" -}}
{{- if .Values.gateway.kubernetes.enabled }}{{ $names = append $names "kubernetes" }}{{ end -}}
{{- if .Values.kafka.enabled }}{{ $names = append $names "kafka" }}{{ end -}}
{{- toJson $names -}}
{{- end }}

{{- define "culprit.gateway.exporters" -}}
{{- $names := list "json" "log" "prometheus" -}}
{{- if .Values.gateway.kubernetesEvents.enabled }}{{ $names = append $names "kubernetes" }}{{ end -}}
{{- if .Values.kafka.enabled }}{{ $names = append $names "kafka/verdicts" }}{{ end -}}
{{- toJson $names -}}
{{- end }}

{{- define "culprit.gateway.values" -}}
{{- if or .Values.gateway.kubernetes.enabled .Values.kafka.enabled }}
receivers:
{{- end }}
  {{- if .Values.gateway.kubernetes.enabled }}
  kubernetes: {}
  {{- end }}
  {{- if .Values.kafka.enabled }}
  kafka:
    {{- include "culprit.kafkaClient" . | nindent 4 }}
    topics: [{{ .Values.kafka.topic }}]
    group_id: {{ include "culprit.fullname" . }}-gateway
    group_instance_id: "${env:POD_NAME}"
    initial_offset: earliest
    dead_letter: {topic: {{ .Values.kafka.deadLetterTopic }}}
  {{- end }}
{{- if or .Values.kafka.enabled .Values.gateway.kubernetesEvents.enabled }}
exporters:
{{- end }}
  {{- if .Values.gateway.kubernetesEvents.enabled }}
  kubernetes:
    instance: "${env:POD_NAME}"
    node_condition: {enabled: {{ .Values.gateway.kubernetesEvents.nodeCondition }}}
  {{- end }}
{{- if .Values.kafka.enabled }}
  kafka/verdicts:
    {{- include "culprit.kafkaClient" . | nindent 4 }}
    topic: {{ .Values.kafka.verdictsTopic }}
    payload: verdicts
    key: job_id
{{- end }}
service:
  pipelines:
    jobs:
      receivers: {{ include "culprit.gateway.receivers" . }}
      exporters: {{ include "culprit.gateway.exporters" . }}
{{- end }}

{{/* (list CONTEXT PART): what values say, with the user's own part joined to it. */}}
{{- define "culprit.joined" -}}
{{- $made := include (printf "culprit.%s.values" (index . 1)) (index . 0) -}}
{{- $own := (get (index . 0).Values (index . 1)).config -}}
{{- if $own -}}
{{- toYaml (mergeOverwrite (fromYaml $made) (deepCopy $own)) -}}
{{- else -}}
{{- $made -}}
{{- end -}}
{{- end }}

{{/* A change of a configuration makes new pods: (list CONTEXT PART FILE). */}}
{{- define "culprit.checksum" -}}
{{- printf "%s\n%s" ((index . 0).Files.Get (index . 2)) (include "culprit.joined" .) | sha256sum -}}
{{- end }}
