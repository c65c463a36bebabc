# make demo and make test are all that a fresh Debian or Ubuntu with a Swift toolchain needs.
SWIFT ?= swift
PREFIX ?= /usr/local
SOURCES = Package.swift Sources Tests Examples Companions

# The standard library is linked in: the daemon needs no Swift on the machine, and less memory.
# The build ID is by what debuggers find the symbols that `install` takes out of the executable.
# Position-independent, as Swift links by default: a root daemon reads what workers and clients send, and its own
# addresses are to be random, too. That costs 1 ms at each start (72,000 pointers are adjusted), and 0.7 MB of RAM.
# The list of these pointers is packed (DT_RELR): 1.7 MB less on disk. glibc reads that from version 2.36 on.
PACKED := $(shell printf '2.36\n%s\n' "$$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d ' ' -f 2)" | sort -V | \
  head -n 1 | grep -qx 2.36 && echo -Xlinker -z -Xlinker pack-relative-relocs)
# The debug information names C modules by a hash, which would have the headers' times in it (-fno-pch-timestamp).
RELEASE_OPTIONS = -c release --static-swift-stdlib --product dormouse -Xlinker --build-id=sha1 \
  -Xlinker --icf=safe -Xlinker --no-export-dynamic -Xcc -Xclang -Xcc -fno-pch-timestamp
RELEASE = $(RELEASE_OPTIONS) $(ORDERED)
# With the toolchain's own linker, functions that an idle daemon calls come first (scripts/order-code).
LLD := $(wildcard $(dir $(realpath $(shell command -v $(SWIFT))))ld.lld)
ifneq ($(LLD),)
ORDERED = $(PACKED) -Xswiftc -use-ld=lld -Xswiftc -Xfrontend -Xswiftc -function-sections -Xcc -ffunction-sections \
  -Xlinker --symbol-ordering-file=$(CURDIR)/Packaging/code-order.txt -Xlinker --no-warn-symbol-ordering \
  -Xlinker -T -Xlinker $(CURDIR)/Packaging/link.ld -Xlinker --no-eh-frame-hdr
endif
# So that two builds have the same bytes: the compiler's own hash tables have no random order, and it is loaded at one address.
RELEASE_BUILD = SWIFT_DETERMINISTIC_HASHING=1 $(shell setarch -R true 2>/dev/null && echo setarch -R) $(SWIFT) build
# The layers of the design, enforced: a module imports only what its target names.
CHECKED = --explicit-target-dependency-import-check error
# CI builds no debug information: nothing reads it there.
UNDEBUGGED = $(if $(CI),-debug-info-format none)

.PHONY: build debug demo test test-all chaos soak test-machines examples dashboard containers test-companions test-kubelet \
  test-cluster fuzz tsan asan order-code format lint install install-built deb dist image arm64 deb-arm64 dist-arm64 release test-arm64 check-6.2 clean

build:
	scripts/bootstrap build
	$(RELEASE_BUILD) $(RELEASE)

debug:
	scripts/bootstrap debug
	$(SWIFT) build $(CHECKED)

demo:
	scripts/bootstrap demo
	$(RELEASE_BUILD) $(RELEASE)
	scripts/demo

# ALSO= names targets that run beside the last three: their builds use the processors while those wait.
test:
	scripts/bootstrap test
	$(MAKE) --no-print-directory lint
	$(SWIFT) build --build-tests $(CHECKED) $(UNDEBUGGED)
	scripts/run-tests
	$(MAKE) --no-print-directory --jobs=4 --output-sync=target examples chaos soak $(ALSO)

# Each night, and before a release: what `test` leaves out, too (Tests/TestSupport/Nightly.swift).
test-all: export DORMOUSE_TESTS = all
test-all: test test-companions

chaos:
	scripts/chaos-minute "$$($(SWIFT) build --show-bin-path)/dormouse"

soak:
	DORMOUSE="$$($(SWIFT) build --show-bin-path)/dormouse" \
	  python3 Benchmarks/soak.py --quiet --seconds 30 --workers 40 --rss-limit 0

# Packages of their own, which share one build directory, so that WorkerKit is built once. The tests of
# Breadcrumbs run it under the debug build of dormouse, if there is one.
examples:
	scripts/bootstrap examples
	for example in Breadcrumbs consume; do \
	  DORMOUSE="$$($(SWIFT) build --show-bin-path)/dormouse" \
	    $(SWIFT) test --package-path Examples/$$example --scratch-path .build/examples || exit; \
	done

# Packages of their own as well, which need more than the rest does: Hummingbird, async-http-client, for their
# tests Chromium and Podman. They share one build directory, so that SwiftNIO is built once.
COMPANION = --scratch-path .build/companions --package-path Companions
COMPANION_RELEASE = -c release --static-swift-stdlib -Xlinker --build-id=sha1

# `install` installs what these two have built.
dashboard:
	scripts/bootstrap build
	$(SWIFT) build $(COMPANION)/Dashboard $(COMPANION_RELEASE) --product dormouse-dashboard

containers:
	scripts/bootstrap build
	$(SWIFT) build $(COMPANION)/Containers $(COMPANION_RELEASE) --product dormouse-containers

# With the debug build of dormouse, if there is one. SwiftPM keeps a plan of the build, and would take that of one
# package for the other's where both are built: it tested the dashboard twice, and reported success.
test-companions:
	scripts/bootstrap companions
	for companion in Dashboard Containers; do \
	  rm -f .build/companions/debug.yaml .build/companions/*/debug/description.json; \
	  DORMOUSE="$$($(SWIFT) build --show-bin-path)/dormouse" \
	    $(SWIFT) test $(COMPANION)/$$companion $(CHECKED) || exit; \
	done

# What a real kubelet does to sleeping pods: KUBELET= is its executable. As root, with containerd and runc in PATH (kubelet
# 1.36 needs containerd 2.0); not part of `test`.
test-kubelet:
	@[ -x "$(KUBELET)" ] || { echo "usage: make test-kubelet KUBELET=PATH [IMAGE=PATH] [CHECKS=...]" >&2; exit 64; }
	rm -f .build/companions/debug.yaml .build/companions/*/debug/description.json
	$(SWIFT) build $(CHECKED)
	$(SWIFT) build $(COMPANION)/Containers $(CHECKED) --product dormouse-containers
	python3 -B Companions/Containers/Tests/Kubelet/run.py --kubelet "$(KUBELET)" \
	  --dormouse "$$($(SWIFT) build --show-bin-path)/dormouse" --containers .build/companions/debug/dormouse-containers \
	  $(if $(IMAGE),--image "$(IMAGE)") $(CHECKS)

# The same for a whole cluster of one node, with Packaging/kubernetes as it is: BINARIES= is a directory with etcd, containerd
# (2.0 or later), its shim, ctr, runc, and Kubernetes (kubelet, kube-apiserver, …, kubectl), IMAGE= an archive of `make
# image`. As root; not part of `test`.
test-cluster:
	@[ -d "$(BINARIES)" -a -f "$(IMAGE)" ] || \
	  { echo "usage: make test-cluster BINARIES=DIRECTORY IMAGE=PATH [CHECKS=...]" >&2; exit 64; }
	python3 -B Companions/Containers/Tests/Kubelet/cluster_run.py --binaries "$(BINARIES)" --image "$(IMAGE)" $(CHECKS)

# Minutes, and it wants a toolchain with libFuzzer; not part of `test`. TARGET= and SECONDS= choose.
fuzz:
	scripts/fuzz $(or $(TARGET),all) $(or $(SECONDS),60)

# Long; not part of `test`, and run by a workflow each night. FILTER= chooses tests.
tsan:
	scripts/sanitize thread $(FILTER)

asan:
	scripts/sanitize address $(FILTER)

# Boots Debian machines in qemu, installs the package of `make deb` (or DEB=) and runs the checks of Tests/Machines
# in them. Minutes with KVM, hours without; needs root for the first images; not part of `test`.
# ARGUMENTS="--machine debian13 --only wake" chooses.
test-machines:
	DEB="$(DEB)" Tests/Machines/run $(ARGUMENTS)

# Writes Packaging/code-order.txt again, from a run of the release build; not part of `test`. Benchmarks/called.c needs
# the addresses that the map has: run `make` again before you install.
order-code:
	scripts/bootstrap build
	$(RELEASE_BUILD) $(RELEASE) -Xlinker -no-pie -Xlinker -Map=$(CURDIR)/.build/dormouse.map
	scripts/order-code "$$($(SWIFT) build $(RELEASE) --show-bin-path)/dormouse" .build/dormouse.map

format:
	$(SWIFT) format -i --parallel -r $(SOURCES)

lint:
	$(SWIFT) format lint --strict --parallel -r $(SOURCES)

# Not in the packages.
COMPANIONS = $(wildcard .build/companions/release/dormouse-dashboard .build/companions/release/dormouse-containers)

# The one to install. The manual and the completions are what an executable that runs here says of itself.
BUILT = "$$($(SWIFT) build $(RELEASE) --show-bin-path)/dormouse"
INSTALLED = $(BUILT)

install: build
	$(MAKE) --no-print-directory install-built

# What has been built already.
install-built:
	scripts/install-executable $(INSTALLED) "$(DESTDIR)$(PREFIX)"
	for program in $(COMPANIONS); do scripts/install-executable "$$program" "$(DESTDIR)$(PREFIX)" || exit; done
	scripts/install-texts $(BUILT) "$(DESTDIR)$(PREFIX)/share"
	install -d "$(DESTDIR)$(PREFIX)/share/dormouse/policies"
	install -m 644 Policies/*.yaml "$(DESTDIR)$(PREFIX)/share/dormouse/policies"
	install -D -m 644 -t "$(DESTDIR)$(PREFIX)/share/dormouse/grafana" Packaging/grafana/dormouse.json
	install -d "$(DESTDIR)$(PREFIX)/share/dormouse/prometheus"
	for unit in Packaging/prometheus/dormouse*; do \
	  sed 's|/usr/local/bin|$(PREFIX)/bin|' "$$unit" \
	    > "$(DESTDIR)$(PREFIX)/share/dormouse/prometheus/$$(basename $$unit)"; \
	done
	install -d "$(DESTDIR)$(PREFIX)/share/dormouse/policies/rules"
	install -m 644 Policies/rules/*.yaml "$(DESTDIR)$(PREFIX)/share/dormouse/policies/rules"
	for kind in user system; do \
	  install -d "$(DESTDIR)$(PREFIX)/lib/systemd/$$kind"; \
	  for unit in Packaging/systemd/$$kind/*; do \
	    sed 's|/usr/local/bin|$(PREFIX)/bin|' "$$unit" \
	      > "$(DESTDIR)$(PREFIX)/lib/systemd/$$kind/$$(basename $$unit)"; \
	  done; \
	done

	install -D -m 644 -t "$(DESTDIR)$(PREFIX)/lib/sysusers.d" Packaging/systemd/sysusers/dormouse.conf

# Packages of the release build, in .build/packages. The same executable gives the same bytes.
deb:
	rm -rf .build/stage-deb
	$(MAKE) --no-print-directory install COMPANIONS= DESTDIR=$(CURDIR)/.build/stage-deb PREFIX=/usr
	scripts/package-deb .build/stage-deb .build/packages

dist:
	rm -rf .build/stage-dist
	$(MAKE) --no-print-directory install COMPANIONS= DESTDIR=$(CURDIR)/.build/stage-dist PREFIX=/usr/local
	scripts/package-tarball .build/stage-dist .build/packages

# An OCI image of the daemon and dormouse-containers for a node of Kubernetes, without a registry. It isn't rebuilt
# from a base: it has the executables, the libraries that they load, and the policies.
image: containers
	$(RELEASE_BUILD) $(RELEASE)
	scripts/package-image .build/packages/dormouse-image.tar "$$($(SWIFT) build $(RELEASE) --show-bin-path)/dormouse" \
	  .build/companions/release/dormouse-containers

# For arm64, built on this machine by Debian's Swift (scripts/arm64/prepare); needs root.
arm64:
	scripts/arm64/swift build $(RELEASE_OPTIONS) $(PACKED)

deb-arm64: arm64
	rm -rf .build/stage-deb-arm64
	OBJCOPY="$(dir $(realpath $(shell command -v $(SWIFT))))llvm-objcopy" $(MAKE) --no-print-directory install-built COMPANIONS= \
	  INSTALLED=.build/arm64/aarch64-unknown-linux-gnu/release/dormouse BUILT=scripts/arm64/emulate \
	  DESTDIR=$(CURDIR)/.build/stage-deb-arm64 PREFIX=/usr
	scripts/package-deb .build/stage-deb-arm64 .build/packages scripts/arm64/emulate arm64

dist-arm64: arm64
	rm -rf .build/stage-dist-arm64
	OBJCOPY="$(dir $(realpath $(shell command -v $(SWIFT))))llvm-objcopy" $(MAKE) --no-print-directory install-built COMPANIONS= \
	  INSTALLED=.build/arm64/aarch64-unknown-linux-gnu/release/dormouse BUILT=scripts/arm64/emulate \
	  DESTDIR=$(CURDIR)/.build/stage-dist-arm64 PREFIX=/usr/local
	scripts/package-tarball .build/stage-dist-arm64 .build/packages scripts/arm64/emulate aarch64

# All files of a release, in .build/release-files: packages and tarballs of this machine's kind and, if scripts/arm64/prepare
# has been run, of arm64; a bill of materials, the notices of licences, and SHA256SUMS.
ARM64_SDK = $(or $(ARM64),$(HOME)/.cache/dormouse-arm64)/sdks/sid-arm64.artifactbundle
release:
	rm -rf .build/packages .build/release-files
	$(MAKE) --no-print-directory deb
	$(MAKE) --no-print-directory dist
	@if [ -e "$(ARM64_SDK)" ]; then $(MAKE) --no-print-directory deb-arm64 && $(MAKE) --no-print-directory dist-arm64; \
	else echo "release: nothing for arm64, because there is no $(ARM64_SDK) (scripts/arm64/prepare)"; fi
	mv .build/packages .build/release-files
	scripts/release .build/release-files

# Boots an arm64 machine under emulation, and checks the package of `make deb-arm64` (or DEB=) in it. With
# ARGUMENTS="HibernationTests" it runs those test bundles, which `scripts/arm64/swift build --build-tests` builds.
test-arm64:
	DEB="$(DEB)" Tests/Machines/arm64/run "$(ARGUMENTS)"

# Builds everything, tests too, for this machine with Debian's Swift 6.2, the oldest version that builds it; needs root.
check-6.2:
	scripts/arm64/prepare sid
	scripts/arm64/swift --here build --build-tests

clean:
	$(SWIFT) package clean
