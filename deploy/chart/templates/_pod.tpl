{{/* What pods have alike. Each takes (dict "root" $ "name" NAME "values" VALUES). */}}

{{/* podMetadata are the labels of a pod; "database", "storage" and "traces" say what it talks to. */}}
{{- define "berth.podMetadata" -}}
labels:
  app.kubernetes.io/name: {{ .name }}
  {{- if .database }}
  berth.dev/database: client
  {{- end }}
  {{- if .storage }}
  berth.dev/registry-storage: client
  {{- end }}
  {{- if and .traces .root.Values.otelCollector.enabled }}
  berth.dev/traces: sender
  {{- end }}
  {{- with .root.Values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (.annotations | default dict) .root.Values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* pod is what the spec of every pod begins with. */}}
{{- define "berth.pod" -}}
serviceAccountName: {{ .name }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .values.nodeSelector | default .root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations | default .root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity | default .root.Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* spread keeps replicas on different nodes where that is possible. */}}
{{- define "berth.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {app.kubernetes.io/name: {{ .name }}}
{{- end }}

{{- define "berth.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "berth.resources" -}}
resources:
  {{- toYaml .values.resources | nindent 2 }}
{{- end }}

{{/* awaitSchema: new pods wait for the migration of their version; old ones go on. */}}
{{- define "berth.awaitSchema" -}}
- name: await-schema
  image: {{ include "berth.image" (list .root "ctl-api") }}
  args: [await-schema]
  env:
    - {name: BERTH_DSN_FILE, value: /secrets/dsn/dsn}
  resources:
    requests: {cpu: 10m, memory: 32Mi}
    limits: {memory: 128Mi}
  {{- include "berth.containerSecurity" . | nindent 2 }}
  volumeMounts:
    {{- include "berth.databaseMounts" . | nindent 4 }}
{{- end }}

{{/* databaseMounts are the address of the database with its password, and who signs its certificate. */}}
{{- define "berth.databaseMounts" -}}
- {name: dsn, mountPath: /secrets/dsn, readOnly: true}
{{- include "berth.caMount" . }}
{{- end }}

{{- define "berth.caMount" -}}
{{- if or .root.Values.database.ca.configMap .root.Values.database.ca.secret }}
- {name: database-ca, mountPath: /secrets/database-ca, readOnly: true}
{{- end }}
{{- end }}

{{- define "berth.caVolume" -}}
{{- $ca := .root.Values.database.ca }}
{{- if $ca.configMap }}
- name: database-ca
  configMap:
    name: {{ $ca.configMap }}
    defaultMode: 0440
    items: [{key: {{ $ca.key }}, path: ca.crt}]
{{- else if $ca.secret }}
- name: database-ca
  secret:
    secretName: {{ $ca.secret }}
    defaultMode: 0440
    items: [{key: {{ $ca.key }}, path: ca.crt}]
{{- end }}
{{- end }}

{{/* telemetry are the variables for metrics on port "metrics", and for traces. */}}
{{- define "berth.telemetry" -}}
{{- if .root.Values.monitoring.enabled }}
# Only the namespaces of monitoring.namespaceLabels reach it.
- {name: OTEL_METRICS_EXPORTER, value: prometheus}
- {name: OTEL_EXPORTER_PROMETHEUS_HOST, value: "0.0.0.0"}
- {name: OTEL_EXPORTER_PROMETHEUS_PORT, value: {{ .metrics | quote }}}
{{- end }}
{{- if .root.Values.otelCollector.enabled }}
- {name: OTEL_TRACES_EXPORTER, value: otlp}
- {name: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, value: "http://otel-collector:4318/v1/traces"}
- {name: OTEL_TRACES_SAMPLER, value: parentbased_traceidratio}
- {name: OTEL_TRACES_SAMPLER_ARG, value: {{ .root.Values.otelCollector.samplingRatio | toString | quote }}}
{{- end }}
{{- range $name, $value := .values.env }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end }}

{{- define "berth.ports" -}}
ports:
  - {name: {{ .port }}, containerPort: {{ .number }}}
  {{- if .root.Values.monitoring.enabled }}
  - {name: metrics, containerPort: {{ .metrics }}}
  {{- end }}
{{- end }}

{{/* probes of "port": alive is that it answers; ready is that its database does too. */}}
{{- define "berth.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: {{ .port }}{{ with .scheme }}, scheme: {{ . }}{{ end }}}
  periodSeconds: 1
  failureThreshold: 120
livenessProbe:
  httpGet: {path: /healthz, port: {{ .port }}{{ with .scheme }}, scheme: {{ . }}{{ end }}}
  periodSeconds: 10
  timeoutSeconds: 5
readinessProbe:
  httpGet: {path: /readyz, port: {{ .port }}{{ with .scheme }}, scheme: {{ . }}{{ end }}}
  periodSeconds: 5
  timeoutSeconds: 3
lifecycle:
  # Others stop sending to it before it stops listening.
  preStop: {sleep: {seconds: 5}}
{{- end }}

{{/* rollout is how many pods a Deployment has, and how it replaces them. */}}
{{- define "berth.rollout" -}}
replicas: {{ .values.replicas }}
revisionHistoryLimit: 3
strategy:
  rollingUpdate: {maxUnavailable: 0, maxSurge: 1}
selector:
  matchLabels: {app.kubernetes.io/name: {{ .name }}}
{{- end }}

{{/* budget is for two replicas or more: with it one alone could never be moved. */}}
{{- define "berth.budget" -}}
{{- if gt (int .values.replicas) 1 }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "berth.metadata" (list .root .name) | nindent 2 }}
spec:
  minAvailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels: {app.kubernetes.io/name: {{ .name }}}
{{- end }}
{{- end }}

{{/* service leads to the port of the same name. */}}
{{- define "berth.service" -}}
---
apiVersion: v1
kind: Service
metadata:
  {{- include "berth.metadata" (list .root .name) | nindent 2 }}
spec:
  selector: {app.kubernetes.io/name: {{ .name }}}
  ports:
    - {name: {{ .port }}, port: {{ .number }}, targetPort: {{ .port }}}
{{- end }}
