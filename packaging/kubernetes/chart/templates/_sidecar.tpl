{{/* SPDX-License-Identifier: Apache-2.0
For the charts of trainers that have this one as a dependency, with .Subcharts.culprit as context:
the parts of a pod that make culprit its sidecar. The pod itself has the volume that
sidecar.telemetryVolume names, mounted where the ranks write. */}}

{{/* An item of spec.initContainers. */}}
{{- define "culprit.sidecar.container" -}}
- name: culprit
  image: {{ include "culprit.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  restartPolicy: Always   # this makes it a sidecar
  # Kubernetes starts the trainer once it has seen this container running, and one that ends at once (a
  # mistake in the configuration, a port that is taken) may never be seen so. The delay sees to it that
  # training starts, whatever becomes of culprit. What is written meanwhile is read from its beginning.
  args: [run, --start-delay, {{ .Values.sidecar.startDelay }}, --config, /etc/culprit/sidecar.yaml, --config, /etc/culprit/values.yaml]
  env:
    - name: JOB_ID
      valueFrom: {fieldRef: {fieldPath: {{ printf "metadata.labels['%s']" .Values.sidecar.jobLabel | quote }}}}
    - name: NODE_NAME
      valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
    - {name: TELEMETRY_DIR, value: {{ .Values.sidecar.telemetryPath }}}
  ports:
    - {name: metrics, containerPort: 9464}
    - {name: health, containerPort: 23133}
  livenessProbe:
    httpGet: {path: /livez, port: health}
    initialDelaySeconds: 60   # the store of a container that was killed is read first
    periodSeconds: 10
    failureThreshold: 3
  # No startupProbe: the trainer would wait for it, and for ever where it fails. No readinessProbe: a
  # sidecar's readiness would decide the pod's.
  # The most severe verdict; when culprit itself fails, its last log lines.
  terminationMessagePath: /dev/termination-log
  terminationMessagePolicy: FallbackToLogsOnError
  resources: {{- toYaml .Values.sidecar.resources | nindent 4 }}
  securityContext: {{- include "culprit.restricted" . | nindent 4 }}
  volumeMounts:
    - {name: {{ .Values.sidecar.telemetryVolume }}, mountPath: {{ .Values.sidecar.telemetryPath }}, readOnly: true}
    - {name: culprit-store, mountPath: /var/lib/culprit}
    - {name: culprit-config, mountPath: /etc/culprit, readOnly: true}
    - {name: culprit-secrets, mountPath: /secrets/culprit, readOnly: true}
{{- end }}

{{/* Items of spec.volumes. A ConfigMap or Secret that is missing holds up no trainer, either. */}}
{{- define "culprit.sidecar.volumes" -}}
- name: culprit-store
  emptyDir: {sizeLimit: {{ .Values.sidecar.storeSize }}}
- name: culprit-config
  configMap: {name: {{ include "culprit.fullname" . }}-sidecar, optional: true}
- name: culprit-secrets
  secret: {secretName: {{ include "culprit.fullname" . }}-sidecar, defaultMode: 0444, optional: true}
{{- end }}

{{/* Labels and annotations of the pod, by which it is scraped. */}}
{{- define "culprit.sidecar.labels" -}}
culprit: sidecar
{{- end }}
{{- define "culprit.sidecar.annotations" -}}
{{ include "culprit.scrapeAnnotations" . }}
{{- end }}
