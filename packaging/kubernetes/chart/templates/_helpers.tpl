{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{- define "culprit.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{/* Names of objects begin with it. 40 characters leave room for what is added. */}}
{{- define "culprit.fullname" -}}
{{- $name := include "culprit.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{/* (list CONTEXT COMPONENT) -> what a selector asks for; it never changes. */}}
{{- define "culprit.selectorLabels" -}}
{{- $context := index . 0 -}}
app.kubernetes.io/name: {{ include "culprit.name" $context }}
app.kubernetes.io/instance: {{ $context.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* (list CONTEXT COMPONENT) */}}
{{- define "culprit.labels" -}}
{{- $context := index . 0 -}}
{{ include "culprit.selectorLabels" . }}
app.kubernetes.io/version: {{ $context.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $context.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $context.Chart.Name $context.Chart.Version | replace "+" "_" }}
{{- with $context.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "culprit.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* What annotations of a pod tell a Prometheus that follows them. */}}
{{- define "culprit.scrapeAnnotations" -}}
prometheus.io/scrape: "true"
prometheus.io/port: "9464"
prometheus.io/path: /metrics
{{- end }}

{{- define "culprit.restricted" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
readOnlyRootFilesystem: true
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "culprit.ingestSecret" -}}
{{- default (printf "%s-ingest" (include "culprit.fullname" .)) .Values.ingest.existingSecret -}}
{{- end }}

{{- define "culprit.tlsSecret" -}}
{{- default (printf "%s-gateway-tls" (include "culprit.fullname" .)) .Values.gateway.tls.existingSecret -}}
{{- end }}

{{- define "culprit.gatewayHost" -}}
{{ include "culprit.fullname" . }}-gateway.{{ .Release.Namespace }}.svc
{{- end }}

{{- define "culprit.serviceAccount" -}}
{{- if .Values.serviceAccount.name -}}
{{ .Values.serviceAccount.name }}
{{- else if .Values.serviceAccount.create -}}
{{ include "culprit.fullname" . }}-gateway
{{- else -}}
default
{{- end -}}
{{- end }}

{{/* Whether the gateway asks the API server, and so needs an account and a token. */}}
{{- define "culprit.asksApiServer" -}}
{{- if and .Values.gateway.enabled (or .Values.gateway.kubernetes.enabled .Values.gateway.kubernetesEvents.enabled) -}}
true
{{- end -}}
{{- end }}

{{/* Values that contradict each other are an error, not a guess. */}}
{{- define "culprit.check" -}}
{{- if and .Values.gateway.enabled (not .Values.kafka.enabled) (gt (int .Values.gateway.replicas) 1) -}}
{{- fail "gateway.replicas is more than 1, but without kafka.enabled all ranks of a job must reach the same gateway" -}}
{{- end -}}
{{- if and (not .Values.kafka.enabled) (not .Values.gateway.enabled) (or .Values.node.enabled .Values.sidecar.enabled) -}}
{{- fail "gateway.enabled is false, so node and sidecar have nowhere to send to: set kafka.enabled, or turn them off" -}}
{{- end -}}
{{- if and .Values.node.enabled .Values.node.kmsg.enabled .Values.node.journald.enabled -}}
{{- fail "node.kmsg and node.journald both read the kernel's messages: turn one of them off" -}}
{{- end -}}
{{- if and .Values.node.enabled (not (trim (include "culprit.node.receivers" .))) -}}
{{- fail "node.enabled, but nothing is read on nodes: turn on node.kmsg, node.journald or node.sysfs, or name node.scrape.endpoints" -}}
{{- end -}}
{{- if and .Values.gateway.kubernetesEvents.nodeCondition (not .Values.gateway.kubernetesEvents.enabled) -}}
{{- fail "gateway.kubernetesEvents.nodeCondition does nothing without gateway.kubernetesEvents.enabled" -}}
{{- end -}}
{{- if and .Values.gateway.enabled .Values.gateway.kubernetesEvents.nodeCondition (gt (int .Values.gateway.replicas) 1) -}}
{{- fail "gateway.kubernetesEvents.nodeCondition with several gateways: each would set back what another has found; set it to false, or gateway.replicas to 1" -}}
{{- end -}}
{{- if and .Values.gateway.enabled .Values.gateway.kubernetes.enabled (gt (int .Values.gateway.replicas) 1) -}}
{{- fail "gateway.kubernetes.enabled with several gateways: each would read every event of the cluster; set it to false, or gateway.replicas to 1" -}}
{{- end -}}
{{- end }}

