# make demo and make test are all that a fresh Debian or Ubuntu with a Swift toolchain needs.
SWIFT ?= swift
PREFIX ?= /usr/local
SOURCES = Package.swift Sources Tests Examples

# The standard library is linked in: the daemon needs no Swift on the machine, and less memory.
# The build ID is by what debuggers find the symbols that `install` takes out of the executable.
RELEASE = -c release --static-swift-stdlib --product dormouse -Xlinker --build-id=sha1 \
  -Xlinker --icf=safe -Xlinker --no-export-dynamic
# The layers of the design, enforced: a module imports only what its target names.
CHECKED = --explicit-target-dependency-import-check error

.PHONY: build debug demo test examples fuzz tsan format lint install clean

build:
	scripts/bootstrap build
	$(SWIFT) build $(RELEASE)

debug:
	scripts/bootstrap debug
	$(SWIFT) build $(CHECKED)

demo:
	scripts/bootstrap demo
	$(SWIFT) build $(RELEASE)
	scripts/demo

test:
	scripts/bootstrap test
	$(MAKE) --no-print-directory lint
	$(SWIFT) build --build-tests $(CHECKED)
	scripts/run-tests
	$(MAKE) --no-print-directory examples
	scripts/chaos-minute "$$($(SWIFT) build --show-bin-path)/dormouse"
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

# Minutes, and it wants a toolchain with libFuzzer; not part of `test`.
fuzz:
	scripts/fuzz-image $(SECONDS)

# Minutes; not part of `test`.
tsan:
	scripts/tsan

format:
	$(SWIFT) format -i -r $(SOURCES)

lint:
	$(SWIFT) format lint --strict -r $(SOURCES)

# The manual and the completions are what the executable says of itself.
install: build
	scripts/install-executable "$$($(SWIFT) build $(RELEASE) --show-bin-path)/dormouse" \
	  "$(DESTDIR)$(PREFIX)"
	scripts/install-texts "$(DESTDIR)$(PREFIX)/bin/dormouse" "$(DESTDIR)$(PREFIX)/share"
	install -d "$(DESTDIR)$(PREFIX)/share/dormouse/policies"
	install -m 644 Policies/*.yaml "$(DESTDIR)$(PREFIX)/share/dormouse/policies"
	for kind in user system; do \
	  install -d "$(DESTDIR)$(PREFIX)/lib/systemd/$$kind"; \
	  for unit in Packaging/systemd/$$kind/*.service; do \
	    sed 's|/usr/local/bin|$(PREFIX)/bin|' "$$unit" \
	      > "$(DESTDIR)$(PREFIX)/lib/systemd/$$kind/$$(basename $$unit)"; \
	  done; \
	done

clean:
	$(SWIFT) package clean
