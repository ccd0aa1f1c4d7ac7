{{- define "echo.fullname" -}}{{ .Release.Name }}{{- end -}}
