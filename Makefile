# Two commands: `make demo` shows what Linerate does, `make test` runs every test. Both install what is missing.
.DEFAULT_GOAL := help
.PHONY: help build demo test bench setup setup-test setup-bench hugepages clean

REPORT := linerate-report

help: ## what can be made
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/make \1\t\2/' | expand -t 16

setup: ## install what building needs (apt, with sudo only if needed)
	@scripts/setup.sh --build

setup-test: # and the real systems under test
	@scripts/setup.sh --test

hugepages: # 1 GiB for OVS-DPDK and testpmd; the tests that need them say so if this could not be done
	@if [ "$$(id -u)" -eq 0 ]; then scripts/hugepages.sh 512; \
	elif command -v sudo >/dev/null; then sudo scripts/hugepages.sh 512; \
	else echo "hugepages: not root and no sudo: left as they are"; fi

build: setup ## the release binary: target/release/linerate
	cargo build --release --locked --bin linerate

demo: build ## the default benchmark: a table, a picture and a report, as an ordinary user
	@# Exit code 3 says that the machine was too noisy to trust; the table says where, and that is a result too.
	target/release/linerate bench --json $(REPORT).json --markdown $(REPORT).md --svg $(REPORT).svg || [ $$? -eq 3 ]
	@echo "report: $(CURDIR)/$(REPORT).md (pictures: $(REPORT).svg; every trial: $(REPORT).json)"

test: setup-test hugepages ## every check and test, with the time each stage took
	@scripts/test.sh

setup-bench: # and what the benchmarks count with
	@scripts/setup.sh --bench

bench: setup-bench hugepages ## speed, as ratios against a peer run in the same minute (docs/performance.md)
	cargo bench --locked --workspace
	cargo bench --locked -p linerate --bench flowlog -- flows readers captures latency
	cargo bench --locked -p flow --bench table -- ageing

clean: ## remove what was built
	cargo clean
