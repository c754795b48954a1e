# Every target does its own set-up: a fresh machine needs Python 3.11+, make and a package registry.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
# What `make demo` and `make dist` need, without the tools of development.
RUN     = $(VENV)-run
ENOUGH  = import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")

help:  ## list the targets
	@sed -n 's/^\([a-z -]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST)

$(VENV)/.ready: requirements.lock pyproject.toml
	$(PYTHON) -c '$(ENOUGH)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --no-deps --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

venv: $(VENV)/.ready  ## make the virtual environment with the locked packages

PACKAGED = pyproject.toml hatch_build.py README.md LICENSE $(shell find appliance config -type f ! -name '*.pyc')

$(RUN)/.tools: requirements-demo.lock requirements-build.lock
	$(PYTHON) -c '$(ENOUGH)'
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --no-deps --require-hashes -r requirements-build.lock -r requirements-demo.lock
	@touch $@

# Plain Python: compiling takes minutes, and neither the demo nor an administrator's command needs it.
$(RUN)/.ready: $(RUN)/.tools $(PACKAGED)
	LB_COMPILED=no $(@D)/bin/pip install --quiet --no-deps --no-build-isolation --force-reinstall .
	@touch $@

demo: $(RUN)/.ready  ## run the appliance with generated backends, without root
	$(RUN)/bin/appliance demo

demo-pair: $(RUN)/.ready  ## run two nodes that share an address, in network namespaces
	$(RUN)/bin/appliance demo --pair

debian: venv
	@$(BIN)/python tests/debian.py

# Without compiled modules on the disk each process of the tests, and each program that they start, compiles anew.
unexport PYTHONDONTWRITEBYTECODE

# JOBS=1 runs one test after the other; files run side by side, each process in a network of its own.
# Most tests wait most of the time: two for each processor. Pure ones never do.
PROCESSORS := $(shell nproc)
JOBS    ?= $(shell echo $$((2 * $(PROCESSORS))))
PYTEST   = $(BIN)/python -m pytest -n $(JOBS) --no-loadscope-reorder
test-pure check: JOBS = $(PROCESSORS)
COVERAGE = --cov=appliance.wire --cov=appliance.model --cov=appliance.core --cov=appliance.translation \
	--cov-branch --cov-fail-under=100 --cov-report=term-missing:skip-covered

# How much of what can be large: examples of property tests, inputs of fuzzers, and loads where E2E_FULL is set.
export TIER ?= test

check: export TIER = check
# Side by side, as mypy computes on one processor; the summary of the tests is printed last.
check: venv  ## a minute: lint, and the pure tests
	@$(PYTEST) -m pure $(ARGS) >$(VENV)/beside.log 2>&1 & tests=$$!; \
	$(MAKE) --no-print-directory lint; lint=$$?; \
	wait $$tests; tests=$$?; cat $(VENV)/beside.log; test $$lint = 0 -a $$tests = 0

# The other tests wait for half of the time: the pure ones have what is left of the processors meanwhile, and then the
# compiled ones, while the last tests of the image run alone.
define with_pure_and_compiled
@{ nice -n 19 $(MAKE) --no-print-directory --keep-going $(3) test-pure >$(VENV)/beside.log 2>&1; pure=$$?; \
	  $(MAKE) --no-print-directory test-compiled JOBS=$(PROCESSORS) CHOICE=$(2) >>$(VENV)/beside.log 2>&1 \
	  && test $$pure = 0; } & beside=$$!; \
	$(PYTEST) -m $(1) $(ARGS); others=$$?; wait $$beside; beside=$$?; \
	cat $(VENV)/beside.log; test $$others = 0 -a $$beside = 0
endef

# Linters and the tools of Debian are made ready side by side: one computes, the other waits for a network.
ready: venv
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint debian

test: ready  ## a quarter of an hour: the main promises of every program, kernel facility and container
	$(call with_pure_and_compiled,"not pure and not slow","data_path and not slow")

test-all: export TIER = all
test-all: ready  ## an hour: everything but what is measured in hours
	$(call with_pure_and_compiled,"not pure and not full","data_path and not full",audit)

# One after the other: what is measured under load has the machine for itself.
test-full: export TIER = full
test-full: export E2E_FULL = 1
test-full: JOBS = 0
test-full chaos fuzz: PYTEST += --timeout=0
test-full: ready test-pure chaos fuzz  ## hours: everything in full size
	$(PYTEST) -m "not pure" $(ARGS)
	@$(MAKE) --no-print-directory test-compiled JOBS=0

# make test-of FILE=appliance/core/balancing/algorithms.py
MIRROR   = $(basename $(FILE:appliance/%=%))
MIRRORED = $(wildcard tests/$(dir $(MIRROR))test_$(notdir $(MIRROR)).py tests/$(dir $(MIRROR))test_$(notdir $(MIRROR))_*.py tests/$(MIRROR))
test-of: venv  ## the tests of one module: those that mirror it, or else those that import it
	@test -f "$(FILE)" || { echo "make test-of FILE=appliance/...: no such file: $(FILE)"; exit 2; }
	$(BIN)/python -m pytest $(or $(MIRRORED),$(shell grep -rlF "appliance.$(subst /,.,$(MIRROR)) " tests --include='test_*.py')) $(ARGS)

# A C compiler and Python's headers, without which wheel and image are made in plain Python.
COMPILER = cd $(CURDIR) && $(BIN)/python -c 'import hatch_build; hatch_build.compiler()'
# What `data_path` marks; the folders are named to spare the collection of all others.
CHOICE   = data_path
COMPILED = tests/worker/relay tests/core/balancing tests/programs

test-compiled: venv  ## the tests of the data path again, with the package compiled as wheel and image ship it
	@if $(COMPILER) 2>$(VENV)/compiler; then $(MAKE) --no-print-directory build/compiled/.ready && \
	  PYTHONSAFEPATH=1 PYTHONPATH=$(CURDIR)/build/compiled:$(CURDIR)/tests $(PYTEST) --compiled -m "$(CHOICE)" $(COMPILED) $(ARGS); \
	else echo "NOT TESTED: the compiled data path: $$(tail -1 $(VENV)/compiler)"; test "$(CI)" != true; fi

build/compiled/.ready: $(VENV)/.ready $(PACKAGED)
	rm -rf $(@D) && mkdir -p $(@D)
	LB_COMPILED=yes LB_MANYLINUX=yes $(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir $(@D) .
	$(BIN)/python -m zipfile --extract $(@D)/*.whl $(@D)
	@touch $@

test-pure: venv  ## only the tests without processes and sockets, with complete coverage
	$(PYTEST) -m pure $(COVERAGE) $(ARGS)

chaos: debian  ## 100 schedules of random kills during reloads under load; CHAOS=number, CHAOS_SEED=one of them
	CHAOS=$(or $(CHAOS),100) $(PYTEST) -n 0 tests/programs/supervisor/test_chaos.py $(ARGS)

# make fuzz [FUZZ_SECONDS=30 for each target] [FUZZ_SEED=a number from a failure] [ARGS="-k vrrp"]
FUZZ_SECONDS ?= 30
FUZZ_SEED    ?= random
fuzz: venv  ## feed every decoder and every file of state with damaged inputs; about a quarter of an hour
	$(PYTEST) tests/fuzz --fuzz-seconds=$(FUZZ_SECONDS) --fuzz-seed=$(FUZZ_SEED) $(ARGS)

# Of one Python and one kind of processor: those that it is made on, or with dist-other the other processor.
dist: $(RUN)/.ready  ## make dist/lb-appliance-VERSION.tar.gz: wheel, all that it needs, and the unit for systemd
	rm -rf $(BUNDLE)
	$(RUN)/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir $(BUNDLE) .
	$(BUNDLED)

dist-other: BIN = $(RUN)/bin
dist-other: WHEELS = $(BUNDLE)
dist-other: BUNDLED_KINDS = $(OTHER_KINDS)
dist-other: $(RUN)/.tools
	rm -rf $(BUNDLE)
	$(OTHER_WHEEL)
	$(BUNDLED)

# The same for the same commit, locks and compiler, whoever makes it and when.
dist dist-other release release-platforms: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
define BUNDLED
	$(RUN)/bin/pip download --quiet $(BUNDLED_KINDS) --only-binary :all: --require-hashes --dest $(BUNDLE) \
	  -r requirements-runtime.lock
	(echo "lb-appliance==$(VERSION) --hash=sha256:$$(sha256sum $(BUNDLE)/lb_appliance-*.whl | cut -d' ' -f1)" \
	  && cat requirements-runtime.lock) > $(BUNDLE)/requirements.txt
	cp image/node/install config/appliance.service $(BUNDLE)
	tar --create --use-compress-program 'gzip --no-name' --file $(BUNDLE).tar.gz --directory $(DIST) --sort=name \
	  --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime=@$(SOURCE_DATE_EPOCH) $(notdir $(BUNDLE))
	cd $(DIST) && sha256sum $(notdir $(BUNDLE)).tar.gz > $(notdir $(BUNDLE)).tar.gz.sha256
endef

OTHER_MACHINE  = $(if $(filter aarch64,$(shell uname -m)),x86_64,aarch64)
OTHER_COMPILER = $(OTHER_MACHINE)-linux-gnu-gcc
OTHER_HEADERS ?= $(shell $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))')
WHEELS         = $(DIST)/wheels
MANYLINUX      = LB_COMPILED=yes LB_MANYLINUX=yes $(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir $(WHEELS) .
OTHER_WHEEL    = CC=$(OTHER_COMPILER) LB_PLATFORM=linux_$(OTHER_MACHINE) LB_PYTHON_HEADERS=$(OTHER_HEADERS) $(MANYLINUX)

# make wheels [PYTHON=python3.12 VENV=.venv-3.12 for another Python] [OTHER_HEADERS=folder of Python.h for the other processor]
# No registry and no container: what the wheels need of glibc is read from them. docs/installing.md says what is needed.
wheels: venv  ## make dist/wheels/*manylinux*.whl for x86_64 and aarch64, of the Python that it runs with
	$(MANYLINUX)
	@command -v $(OTHER_COMPILER) >/dev/null || { echo "wheels: NOT MADE for $(OTHER_MACHINE): no $(OTHER_COMPILER)" \
	  "(Debian: apt-get install gcc-$(subst _,-,$(OTHER_MACHINE))-linux-gnu)"; exit 1; }
	$(OTHER_WHEEL)

OTHER_ROOT   = build/$(OTHER_MACHINE)
OTHER_DEBIAN = $(if $(filter aarch64,$(OTHER_MACHINE)),arm64,amd64)
OTHER_KINDS  = $(foreach each,manylinux2014 manylinux_2_17 manylinux_2_24 manylinux_2_27 manylinux_2_28,--platform $(each)_$(OTHER_MACHINE))
OTHER_TESTS ?= tests/worker/relay tests/core/balancing tests/programs/worker -m data_path

# A Debian of the other processor, whose Python has to be as new as PYTHON is: 3.11.
$(OTHER_ROOT)/.debian:
	mkdir -p $(@D)
	mmdebstrap --quiet --architectures=$(OTHER_DEBIAN) --variant=minbase --include=python3,iproute2 bookworm $(@D)/root
	@touch $@

test-other: WHEELS = $(OTHER_ROOT)/root/wheel
test-other: venv $(OTHER_ROOT)/.debian  ## the data path's tests with the other processor's wheel, emulated; as root, takes long
	cd $(OTHER_ROOT)/root && rm -rf wheel packages checkout && mkdir wheel packages checkout
	$(OTHER_WHEEL)
	$(BIN)/python -m zipfile --extract $(WHEELS)/*.whl $(WHEELS)
	$(BIN)/pip install --quiet $(OTHER_KINDS) --only-binary :all: --no-deps --require-hashes \
	  --target $(OTHER_ROOT)/root/packages -r requirements.lock
	cp -r pyproject.toml config tests $(OTHER_ROOT)/root/checkout
	unshare --mount sh -ec 'for each in dev proc sys; do mount --rbind /$$each $(OTHER_ROOT)/root/$$each; done; \
	  exec chroot $(OTHER_ROOT)/root env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin LB_TEST_PATIENCE=10 \
	  PYTHONSAFEPATH=1 PYTHONPATH=/wheel:/packages:/checkout/tests \
	  sh -c "cd /checkout && python3 -m pytest -n $(JOBS) --compiled $(OTHER_TESTS) $(ARGS)"'

VERSION    = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' appliance/__init__.py)
IMAGE     ?= lb-appliance
DIST      ?= dist
BUNDLE     = $(DIST)/lb-appliance-$(VERSION)
# make image [BASE_IMAGE=a mirror's debian:bookworm-slim, @sha256:... behind it pins it] [CA=bundle.pem]
#   [PIP_CONF=pip.conf] [DEBIAN_SNAPSHOT=moment]
# FORMAT=oci gives an image whose id is the same for the same commit too, and which has no health check.
FORMAT    ?= docker
REVISION  ?= $(shell git rev-parse --short HEAD 2>/dev/null)
BUILD      = podman build --format $(FORMAT) --timestamp $(SOURCE_DATE_EPOCH) $(BASE_IMAGE:%=--build-arg BASE_IMAGE=%) \
	$(DEBIAN_SNAPSHOT:%=--build-arg DEBIAN_SNAPSHOT=%) \
	$(CA:%=--secret id=ca,src=%) $(PIP_CONF:%=--secret id=pipconf,src=%) \
	$(REVISION:%=--label org.opencontainers.image.revision=%) $(IMAGE_ARGS)
image ova: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
image:  ## build the container image with podman: image/README.md
	$(BUILD) --tag $(IMAGE):$(VERSION) --tag $(IMAGE):latest .

ova:  ## build dist/lb-appliance-VERSION.ova with podman; takes what `make image` takes
	$(BUILD) --target vm --tag $(IMAGE)-vm:$(VERSION) .
	$(BUILD) --target ova-tools --tag $(IMAGE)-ova-tools:$(VERSION) .
	mkdir -p $(DIST)
	podman run --rm --no-healthcheck --network none --security-opt label=disable --env SOURCE_DATE_EPOCH \
	  --mount type=image,source=$(IMAGE)-vm:$(VERSION),destination=/rootfs --volume $(abspath $(DIST)):/dist \
	  $(IMAGE)-ova-tools:$(VERSION) /rootfs /dist

# make sbom [IMAGE=another one of ours] [VERSION=its tag] [BASE_IMAGE=...] [CA=...] [PIP_CONF=...]
sbom:  ## list everything in the image, with its licence: dist/lb-appliance.cdx.json and .licences.txt
	@podman image exists $(IMAGE):$(VERSION) || { echo "sbom: no image $(IMAGE):$(VERSION): make image first"; exit 1; }
	podman build --quiet $(BASE_IMAGE:%=--build-arg BASE_IMAGE=%) \
	  $(CA:%=--secret id=ca,src=%) $(PIP_CONF:%=--secret id=pipconf,src=%) \
	  $(IMAGE_ARGS) --tag localhost/lb-sbom image/sbom
	@mkdir -p $(DIST)
	podman run --rm --network none --read-only --volume $(abspath $(DIST)):/dist:Z \
	  --mount type=image,source=$(IMAGE):$(VERSION),destination=/rootfs localhost/lb-sbom \
	  $(notdir $(IMAGE)) $(VERSION) $$(podman image inspect --format '{{.Id}} {{.Created.Format "2006-01-02T15:04:05Z07:00"}}' $(IMAGE):$(VERSION))

RELEASE   = $(DIST)/release/$(VERSION)
# Which Pythons there are archives for: names, or paths, of those that this machine has.
PYTHONS  ?= $(PYTHON)
NAMED     = lb-appliance-$(VERSION)
release: STEP = $(BIN)/python -m image.release $(1) --key "$(KEY)" --unsigned "$(UNSIGNED)"
# make release KEY=FILE (of ssh-keygen), or UNSIGNED=yes for a trial [PYTHONS="python3.11 ..."]
#   [OVA_KEY=FILE OVA_CERTIFICATE=FILE (of openssl, in PEM)] [what `make image` takes]
release: venv  ## everything that users download, in dist/release/VERSION, with checksums and signatures
	@$(call STEP,check)
	rm -rf $(RELEASE) build/release && mkdir -p $(RELEASE)
	@for python in $(PYTHONS); do $(MAKE) --no-print-directory release-archives PYTHON=$$python || exit 1; done
	$(MAKE) --no-print-directory release-platforms
	$(MAKE) --no-print-directory release-image-other
	$(MAKE) --no-print-directory release-image
	$(MAKE) --no-print-directory ova sbom DIST=$(RELEASE)
	$(call STEP,ova $(RELEASE)/$(NAMED).ova --ova-key "$(OVA_KEY)" --ova-certificate "$(OVA_CERTIFICATE)")
	$(call STEP,finish $(RELEASE))
	@cd $(RELEASE) && ls -l

# Both processors' images have the same name: the other one's is made first, and leaves it to this one's.
release-image: ARCHITECTURE = $(if $(filter arm64,$(OTHER_DEBIAN)),amd64,arm64)
release-image-other: ARCHITECTURE = $(OTHER_DEBIAN)
release-image release-image-other: SAVED = $(RELEASE)/$(NAMED)-image-$(ARCHITECTURE).tar
define SAVED_IMAGE
	$(MAKE) --no-print-directory image IMAGE_ARGS="$(IMAGE_ARGS) --platform linux/$(ARCHITECTURE)"
	mkdir -p $(RELEASE)
	podman save --quiet --format docker-archive --output $(SAVED) $(IMAGE):$(VERSION)
	$(BIN)/python -m image.release image $(SAVED) && rm $(SAVED)
endef
release-image:
	$(SAVED_IMAGE)

BINFMT ?= /proc/sys/fs/binfmt_misc/qemu-$(OTHER_MACHINE)
release-image-other:
	$(if $(wildcard $(BINFMT)),$(SAVED_IMAGE),@echo "release: NOT MADE: the image for $(ARCHITECTURE):" \
	  "this kernel starts no programs for $(OTHER_MACHINE) (Debian: apt-get install qemu-user-static)")

PLATFORMS = README.md *.container *.Containerfile *.yaml *.tmpl coreos openshift vsphere monitoring ansible
# Units, pods and what else of image/ a user of a release needs without a checkout.
release-platforms:
	mkdir -p $(RELEASE)
	cd image && tar --create --use-compress-program 'gzip --no-name' \
	  --file $(abspath $(RELEASE))/$(NAMED)-platforms.tar.gz --transform 's,^,$(NAMED)-platforms/,' --sort=name \
	  --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime=@$(SOURCE_DATE_EPOCH) \
	  --exclude=__pycache__ --exclude=__init__.py $(PLATFORMS)

# The archives of one Python, for both processors, and the wheels that are in them.
release-archives: TAG := $(shell $(PYTHON) -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
release-archives: export LB_COMPILED = yes
release-archives: export LB_MANYLINUX = yes
release-archives:
	$(MAKE) --no-print-directory dist RUN=build/release/$(TAG) DIST=build/release/$(TAG)-$(shell uname -m)
	@command -v $(OTHER_COMPILER) >/dev/null || { echo "release: NOT MADE: the archive for $(OTHER_MACHINE)," \
	  "without $(OTHER_COMPILER) (Debian: apt-get install gcc-$(subst _,-,$(OTHER_MACHINE))-linux-gnu)"; exit 1; }
	$(MAKE) --no-print-directory dist-other RUN=build/release/$(TAG) DIST=build/release/$(TAG)-$(OTHER_MACHINE)
	for machine in $(shell uname -m) $(OTHER_MACHINE); do \
	  cp build/release/$(TAG)-$$machine/$(NAMED).tar.gz $(RELEASE)/$(NAMED)-$(TAG)-$$machine.tar.gz && \
	  cp build/release/$(TAG)-$$machine/$(NAMED)/lb_appliance-*.whl $(RELEASE)/ || exit 1; done

AUDIT = $(VENV)-audit

$(AUDIT)/.ready: image/audit/requirements.lock
	$(PYTHON) -c '$(ENOUGH)'
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --no-deps --require-hashes -r $<
	@touch $@

# The database is on the network: without it the outcome is NOT AUDITED, and the target fails where CI=true only.
audit: $(AUDIT)/.ready  ## look for known vulnerabilities of the Python packages that ship, or build what ships
	@$(AUDIT)/bin/python -m image.audit $(AUDIT)/bin/pip-audit requirements-runtime.lock requirements-build.lock \
	  || { found=$$?; test $$found = 2 -a "$(CI)" != true; }

DOCS = $(VENV)-docs

$(DOCS)/.ready: docs/requirements.lock
	$(PYTHON) -c '$(ENOUGH)'
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --no-deps --require-hashes -r docs/requirements.lock
	@touch $@

docs: $(DOCS)/.ready  ## build the documentation as a site: dist/site/index.html; needs no network once it is installed
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs --quiet build --strict --site-dir $(abspath $(DIST))/site

pages: venv  ## renew the pages and pictures of docs/ that are made of the code and of text
	cd tests && ../$(BIN)/python -m support.documents

test-sockets test-programs test-kernel: venv  ## only one layer of tests
	@$(BIN)/python tests/debian.py $(@:test-%=%)
	$(PYTEST) -m $(@:test-%=%) $(ARGS)

test-image: venv  ## build the image and run it, boot the OVA once; installs podman and qemu when root
	@$(BIN)/python tests/debian.py image
	$(PYTEST) -m image $(ARGS)

image-full: venv  ## the same with all boots: UEFI, Secure Boot, each source of properties, a pair
	@$(BIN)/python tests/debian.py image
	E2E_FULL=1 $(PYTEST) -m image $(ARGS)

lint: venv  ## ruff, mypy --strict, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: venv  ## measure against HAProxy, side by side
	@$(BIN)/python tests/debian.py bench
	$(BIN)/python -m bench $(ARGS)

PIP_COMPILE = $(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url \
	--no-emit-find-links --no-emit-trusted-host --no-header

lock: $(VENV)/.ready  ## renew the locks: development, what runs, the demo, making the wheel, listing the image's parts
	$(PIP_COMPILE) --extra demo --extra dev --output-file requirements.lock pyproject.toml
	$(PIP_COMPILE) --constraint requirements.lock --output-file requirements-runtime.lock pyproject.toml
	$(PIP_COMPILE) --constraint requirements.lock --extra demo --output-file requirements-demo.lock pyproject.toml
	$(PIP_COMPILE) --constraint requirements.lock --only-build-deps --build-deps-for wheel \
	  --output-file requirements-build.lock pyproject.toml
	$(PIP_COMPILE) --output-file image/sbom/requirements.lock image/sbom/requirements.in
	$(PIP_COMPILE) --output-file image/audit/requirements.lock image/audit/requirements.in
	$(PIP_COMPILE) --constraint requirements.lock --output-file docs/requirements.lock docs/requirements.in

clean:  ## remove what the other targets made
	rm -rf $(VENV) $(RUN) $(DOCS) $(AUDIT) build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .coverage .hypothesis dist

.PHONY: help venv ready demo demo-pair dist dist-other release release-archives release-platforms wheels debian \
	check test test-all test-full \
	test-of test-pure test-compiled test-other \
	test-sockets test-programs test-kernel test-image chaos fuzz image image-full ova sbom \
	lint audit bench docs pages lock clean
