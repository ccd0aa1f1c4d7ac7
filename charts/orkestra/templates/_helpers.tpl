{{/* The name of the objects. */}}
{{- define "orkestra.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The name of the service account. */}}
{{- define "orkestra.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "orkestra.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* Labels that select the Pods. */}}
{{- define "orkestra.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Labels of every object. */}}
{{- define "orkestra.labels" -}}
{{ include "orkestra.selector" . }}
app.kubernetes.io/part-of: orkestra
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The image, by digest or by tag. */}}
{{- define "orkestra.image" -}}
{{- $repository := required "image.repository is required, since no image is published for this build: push one with `make image-push REF=registry.example/orkestra:0.1.0`, and name it (`ork install --image registry.example/orkestra:0.1.0`, or `--set image.repository=registry.example/orkestra`)" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* The Secret of the webhooks' certificate. */}}
{{- define "orkestra.webhookSecret" -}}
{{- .Values.webhooks.certificates.secretName | default (printf "%s-webhooks" (include "orkestra.fullname" .)) -}}
{{- end -}}

{{/* The subject of the bindings. */}}
{{- define "orkestra.subjects" -}}
- kind: ServiceAccount
  name: {{ include "orkestra.serviceAccount" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{/* A role and its binding: `root`, `name`, `rules`, and `namespace` for a Role. */}}
{{- define "orkestra.grant" -}}
{{- $kind := ternary "Role" "ClusterRole" (hasKey . "namespace") -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ .name | quote }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "orkestra.labels" .root | nindent 4 }}
rules:
  {{- toYaml .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ .name | quote }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "orkestra.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ .name | quote }}
subjects:
  {{- include "orkestra.subjects" .root | nindent 2 }}
{{- end -}}
