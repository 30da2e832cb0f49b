// Whose definitions of kinds the tests use; nothing is built of them.
module simplerl.local/definitions

go 1.26.0

require (
	github.com/fluxcd/helm-controller v1.4.0
	github.com/fluxcd/kustomize-controller v1.7.3
	github.com/prometheus-operator/prometheus-operator v0.85.0
)
