{{- define "simplerl.selector" -}}
app.kubernetes.io/name: simplerl-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "simplerl.labels" -}}
{{ include "simplerl.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "simplerl.serviceAccount" -}}
{{ .Values.serviceAccount.name | default .Release.Name }}
{{- end }}

{{- /* The rights in namespaces whose jobs are served: exactly what the operator's code calls. */ -}}
{{- define "simplerl.rules" -}}
- apiGroups: [simplerl.io]
  resources: [simplerljobs]
  verbs: [get, list, watch, delete]
- apiGroups: [simplerl.io]
  resources: [simplerljobs/status]
  verbs: [patch]
- apiGroups: [ray.io]
  resources: [rayclusters]
  verbs: [get, list, watch, create, patch, delete]
# why a queued job waits; where there is no Kueue the rule grants nothing
- apiGroups: [kueue.x-k8s.io]
  resources: [workloads]
  verbs: [list]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [events]
  verbs: [list, create]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, create]
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [create, patch]
# tokens of jobs are made, never read; that a Secret exists is asked by rehearsing its creation
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
{{- end }}
