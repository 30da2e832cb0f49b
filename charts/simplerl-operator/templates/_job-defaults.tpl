{{- /* What jobs get where they leave fields out, in JSON with its keys in order; nothing where no value is given. */ -}}
{{- define "simplerl.jobDefaults" -}}
{{- $given := dict }}
{{- $values := .Values.jobDefaults }}
{{- with $values.imageMirror }}{{ $_ := set $given "imageMirror" . }}{{ end }}
{{- with $values.priorityClassName }}{{ $_ := set $given "priorityClassName" . }}{{ end }}
{{- with $values.schedulerName }}{{ $_ := set $given "schedulerName" . }}{{ end }}
{{- $secrets := list }}
{{- range $values.imagePullSecrets }}{{ $secrets = append $secrets (dict "name" .) }}{{ end }}
{{- with $secrets }}{{ $_ := set $given "imagePullSecrets" . }}{{ end }}
{{- range $part := list "perGpu" "head" "workers" }}
{{- $fields := dict }}
{{- range $name, $value := index $values $part }}{{ if $value }}{{ $_ := set $fields $name $value }}{{ end }}{{ end }}
{{- with $fields }}{{ $_ := set $given $part . }}{{ end }}
{{- end }}
{{- with $given }}{{ toJson . }}{{ end }}
{{- end }}
