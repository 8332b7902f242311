# The two commands: `make demo` shows the main job, `make test` runs everything that CI runs.
.DELETE_ON_ERROR:
.PHONY: demo demo-pods test test-full bench check setup generated require-cargo

SETUP := tests/testbed/setup.sh

# Moves a real Kafka cluster from the levels of 3.9 to those of 4.4 by applying a resource to a real API server, in the
# middle of a rolling upgrade. With KEEP=1 everything is left up, to look around in, until Ctrl-C.
demo: require-cargo
	@$(SETUP) demo
	@cargo build --locked --quiet --bin kafka-features-operator --example demo
	@cargo run --locked --quiet --example demo -- $(if $(KEEP),--keep)

# Has a Kafka cluster of plain StatefulSets formatted, brought up and upgraded on a real node. Asks for root.
demo-pods: require-cargo
	@$(SETUP) demo-pods
	@cargo build --locked --quiet --example demo-pods
	@cargo run --locked --quiet --example demo-pods -- $(if $(KEEP),--keep)

# Everything that CI runs. Property tests run a sample of their cases, the same each time; SEED=… takes another.
SEED ?= 1022
test: setup check
	PROPTEST_RNG_SEED=$(SEED) cargo test --locked

# The exhaustive run: every case of every test.
test-full: setup check
	KAFKA_FEATURES_FULL=1 cargo test --locked

# Compares kafka-storage with Kafka's own tool, in time and memory. Tests nothing.
bench: require-cargo
	@$(SETUP) kafka 4.4.0
	cargo bench --locked --bench storage

# Format, lints, licences: no test.
check: require-cargo
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	@$(SETUP) deny
	"$$($(SETUP) path deny)" --locked check bans licenses sources

# Fetches and builds the real parts, into a cache outside the checkout (KAFKA_FEATURES_CACHE moves it).
setup:
	@$(SETUP) all

# Writes what is generated from the code anew: crds/, and in deploy/ the policy, the webhook's configuration, and the sample of
# a manifest that has the containers.
OPERATOR := cargo run --locked --quiet --bin kafka-features-operator --
generated: require-cargo
	$(OPERATOR) crd > crds/kafkafeatures.dev_kafkafeatures.yaml
	$(OPERATOR) policy --image kafka-features-operator:dev > deploy/policy/policy.yaml
	$(OPERATOR) webhook-configuration > deploy/webhook/configuration.yaml
	$(OPERATOR) inject --image registry.example/kafka-features-operator:0.1.0 -f deploy/samples/pod.yaml \
		> deploy/samples/pod-with-containers.yaml

require-cargo:
	@command -v cargo >/dev/null || { echo "cargo is missing: install Rust 1.89 or newer, by rustup" >&2; exit 1; }
