{{/* labels are on every object, and on no selector. */}}
{{- define "berth.labels" -}}
app.kubernetes.io/part-of: berth
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* metadata of (list $ NAME): names are those of deploy/k8s, so there is one release in a namespace. */}}
{{- define "berth.metadata" -}}
name: {{ index . 1 }}
namespace: {{ (index . 0).Release.Namespace }}
labels:
  {{- include "berth.labels" (index . 0) | nindent 2 }}
{{- end }}

{{/* image of (list $ NAME): by digest when there is one, else by tag. */}}
{{- define "berth.image" -}}
{{- $root := index . 0 }}
{{- $image := $root.Values.image }}
{{- $name := index . 1 }}
{{- $registry := required "image.registry is missing: HOST/PREFIX of the images, without their names" $image.registry }}
{{- with index $image.digests $name -}}
{{ $registry }}/{{ $name }}@{{ . }}
{{- else -}}
{{ $registry }}/{{ $name }}:{{ $image.tag | default $root.Chart.AppVersion }}
{{- end }}
{{- end }}

{{/* url is the one address for people and runners. */}}
{{- define "berth.url" -}}
https://{{ required "host is missing: the name that people and runners use" .Values.host }}{{ if ne (int .Values.port) 443 }}:{{ .Values.port }}{{ end }}
{{- end }}

{{/* settings are those of ctl-api that others may want to read. */}}
{{- define "berth.settings" -}}
public-url: {{ include "berth.url" . }}
{{- with .Values.image.runner }}
runner-image: {{ . }}
{{- end }}
{{- with .Values.builder.buildRunners.image }}
build-runner-image: {{ . }}
build-runner-url: {{ include "berth.url" $ }}
{{- with $.Values.builder.buildRunners.buildkitAddress }}
buildkit-address: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* claim is the volume of builder. */}}
{{- define "berth.claim" -}}
{{ .Values.builder.storage.existingClaim | default "builder" }}
{{- end }}
