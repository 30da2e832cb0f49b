# Every target works on a fresh clone and installs what it needs; `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# embedded: the cluster of hack/cluster; current: the one that kubectl's current context names
CLUSTER ?= embedded
export CLUSTER

cluster = $$(hack/python.sh) -m hack.cluster
images = $$(hack/python.sh) -m images

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^##@/ {print substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Try it
.PHONY: demo demo-real
demo: venv ## Train examples/tiny.yaml in real pods, from nothing to Succeeded (CLUSTER=current: in your own cluster)
	@hack/demo.sh
demo-real: venv ## A few steps of SmolLM2-135M on GSM8K by the same path (slow on a CPU)
	@hack/demo-real.sh

##@ Develop
.PHONY: venv generate lint test test-long test-faults test-gpu requirements
venv: ## Make .venv with everything for developing
	@hack/venv.sh
generate: venv ## Write the CRD and docs/reference/ from the models
	@.venv/bin/python -m simplerl_api.generate
lint: venv ## ruff, mypy and import-linter
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports
test: venv ## What CI runs: lint, unit and integration tests, the demo in real pods
	@hack/test.sh
test-long: venv ## Learning runs and fault drills that do not fit into `make test`; goes on where it was cut short
	@hack/test-long.sh
test-faults: venv ## Ten and more faults in real pods; writes docs/faults.md (ONLY=word: those of that name)
	@ONLY="$(ONLY)" hack/test-faults.sh
test-gpu: ## Tests on real GPUs (GPUS=2: insist on two; PYTHON=...: one with requirements/trainer-cuda.txt and dev.txt)
	@hack/test-gpu.sh
requirements: ## Compile the pinned sets in requirements/ anew (needs the network)
	@requirements/compile.sh

##@ Cluster and images
.PHONY: cluster-up cluster-down cluster-status kubeconfig images dev-image
cluster-up: ## Start the embedded Kubernetes with KubeRay (Linux, root; KUEUE=1, NETWORK_POLICY=1: with these too)
	@$(cluster) up $(if $(KUEUE),--kueue) $(if $(NETWORK_POLICY),--network-policy)
cluster-down: ## Stop it and leave nothing behind (PURGE=1: its stored images too)
	@$(cluster) down $(if $(PURGE),--purge)
cluster-status: ## What runs, at which versions and addresses
	@$(cluster) status
kubeconfig: ## Print the path of the cluster's kubeconfig
	@$(cluster) kubeconfig
images: ## Build the operator and trainer images; import them if the cluster runs
	@$(images) build
dev-image: ## Put the code of this tree into the running cluster's images, in seconds
	@$(images) dev
