# SPDX-License-Identifier: GPL-2.0
#
# The commands of the project. The kernel's build reads Kbuild, not this.

ROOT := $(abspath $(dir $(lastword $(MAKEFILE_LIST))))
BUILD := $(ROOT)/build
# What tools/compile stands before
export PATH := $(BUILD)/compilers:$(patsubst $(BUILD)/compilers:%,%,$(PATH))
VERSION := $(shell cat $(ROOT)/VERSION)
DKMSDIR = $(DESTDIR)/usr/src/accmem-$(VERSION)
PREFIX ?= /usr/local
DATADIR ?= $(PREFIX)/share
# The list of the files that make install-user has installed
INSTALLED = $(DATADIR)/accmem/installed
KDIR ?= /lib/modules/$(shell uname -r)/build
LANES := host kunit stock-6.1 stock-6.12 stock-7.3 debug kcsan tool pci arm64 programs

.DEFAULT_GOAL := help
.PHONY: help run replay-tmem test test-quick check htmldocs pictures model bench-tmem bench-core bench-vm bench-report \
	bench-device bench-runtime soak fuzz host selftests selftests32 modules modules_install install \
	user install-user install-staged install-dkms uninstall deb check-deb check-podman check-headers clean $(LANES:%=test-%)

help:
	@echo 'In virtual machines, with nothing installed but packages:'
	@echo '  make run              replay three models on the module in a booted kernel'
	@echo '  make replay-tmem      replay what kernels do with Tensor Memory: a table'
	@echo '  make test             every test lane; the lanes one by one:'
	@echo '    make test-host        lib/ and libaccmem under sanitizers'
	@echo '    make test-kunit       KUnit in User Mode Linux'
	@echo '    make test-stock-6.1   selftests on the stock 6.1 kernel'
	@echo '    make test-stock-6.12  selftests on the stock 6.12 kernel'
	@echo '    make test-stock-7.3   selftests on the stock 7.3 kernel of the backports'
	@echo '    make test-debug       selftests and KUnit under KASAN, lockdep, kmemleak...'
	@echo '    make test-kcsan       selftests under the race detector'
	@echo '    make test-tool        the command accmem, and the commands of the pages'
	@echo '    make test-pci         selftests on a BAR, and the driver of PCI devices'
	@echo '    make test-arm64       selftests on the stock 6.12 kernel of arm64'
	@echo '    make test-programs    SQLite, NumPy, PyTorch, Redis and stress-ng on a device'
	@echo '  make test-quick       lib/, KUnit and one boot in two minutes; the boot with'
	@echo '                        a few programs, or TESTS="realloc realloc_*"'
	@echo '  One part alone, in seconds: tools/kunit; tools/check NAME...; or programs of'
	@echo '  selftests/:           make selftests && tools/vm -- selftests/run NAME...'
	@echo '  make soak             the lanes with a hundred times the work'
	@echo '  make fuzz             fuzz lib/, FUZZ_SECONDS each part (60)'
	@echo '  make model            check the models of what waits'
	@echo '  make bench-core       the allocator, compared with those of the kernel'
	@echo '  make bench-vm         the same on stock 6.12, in instructions'
	@echo '  make bench-report     put what bench-core found into Documentation/'
	@echo '  make bench-tmem       what Tensor Memory costs, against floors'
	@echo '  make bench-device     what a device costs: calls, waits, packing, processors'
	@echo '  make bench-runtime    what pools cost, compared with other allocators'
	@echo '  make check            style and static checks'
	@echo '  make selftests        build the programs of selftests/, for tools/vm'
	@echo '  make check-deb        packages of make deb on a bare Debian 12 and 13, as root'
	@echo '  make check-headers    the module for each kernel of Debian 12, 13 and sid, as root'
	@echo '  make check-podman     containers with a device on a bare Debian 12 and 13, as root'
	@echo '  make htmldocs         Documentation/ as HTML, in build/html'
	@echo '  make pictures         draw the pictures of README.md again'
	@echo '  tools/vm --help       one command on one kernel'
	@echo 'For this machine (KDIR=... for another kernel, DESTDIR=... to stage):'
	@echo '  make host             libaccmem and the command accmem in build/host'
	@echo '  make modules          accmem.ko for the running kernel'
	@echo '  make install          module, libraries, accmem, manual pages, udev rule'
	@echo '  make install-user     the same without the module, and without kernel headers'
	@echo '  make install-dkms     the source of the module, for DKMS'
	@echo '  make uninstall        remove what install has installed'
	@echo '  make modules_install  the module only'
	@echo '  make deb              packages for Debian, in build/deb'
	@echo '  make clean            remove build/'
	@echo 'Missing packages are installed with apt-get, and named before.'

run:
	@tools/run

replay-tmem:
	@tools/deps build vm
	@$(MAKE) -s -C tools/accmem O=$(BUILD) all
	@tools/vm -- $(BUILD)/host/accmem replay $(ROOT)/traces/tmem/*.trace

test:
	@tools/lanes all

soak:
	@ACCMEM_SCALE=10000 ACCMEM_BACKINGS=all tools/lanes all

$(LANES:%=test-%):
	@tools/lanes $(@:test-%=%)

test-quick:
	@ACCMEM_TESTS='$(TESTS)' tools/lanes quick

fuzz:
	@tools/deps fuzz
	@$(MAKE) -C lib/host O=$(BUILD) fuzz coverage

check:
	@tools/check

# A warning of Sphinx is a table or a link that the page does not show.
htmldocs:
	@tools/deps docs
	@sphinx-build -q -W --keep-going -d $(BUILD)/doctrees Documentation $(BUILD)/html

pictures:
	@tools/deps build
	@$(MAKE) -s -C tools/accmem O=$(BUILD) all
	@tools/pictures $(BUILD)/host/accmem $(ROOT)/Documentation/images

model:
	@tools/deps model
	@model/check

bench-core:
	@bench/run-core

bench-vm:
	@bench/run-core-vm

bench-report:
	@bench/report-core

bench-tmem:
	@tools/deps build vm
	@bench/run-tmem

bench-device:
	@bench/run-device

bench-runtime:
	@tools/deps build vm allocators
	@bench/run-runtime

host:
	@tools/deps build
	$(MAKE) -C lib O=$(BUILD) all
	$(MAKE) -C runtime O=$(BUILD) all
	$(MAKE) -C runtime/preload O=$(BUILD) all
	$(MAKE) -C tools/accmem O=$(BUILD) all
	$(MAKE) -C lib/host O=$(BUILD) all

selftests:
	@tools/deps build
	$(MAKE) -C runtime O=$(BUILD) all
	$(MAKE) -C runtime/preload O=$(BUILD) all
	$(MAKE) -C tools/accmem O=$(BUILD) all
	$(MAKE) -C selftests O=$(BUILD) all

selftests32:
	@tools/deps build multilib
	$(MAKE) -C selftests O=$(BUILD) all32

modules:
	@tools/build-module --kdir $(KDIR)

modules_install: modules
	$(MAKE) -C $(KDIR) INSTALL_MOD_PATH=$(DESTDIR) \
		M=$(BUILD)/modules/$(shell cat $(KDIR)/include/config/kernel.release)/src \
		modules_install

install: modules_install install-user
	$(if $(DESTDIR),,depmod $(shell cat $(KDIR)/include/config/kernel.release))

# Without the module: needs no kernel headers
user:
	@tools/deps build
	$(MAKE) -C lib O=$(BUILD) all
	$(MAKE) -C runtime O=$(BUILD) libraries
	$(MAKE) -C runtime/preload O=$(BUILD) library
	$(MAKE) -C tools/accmem O=$(BUILD) all

install-user: user
	rm -rf $(BUILD)/installed
	umask 022 && $(MAKE) install-staged DESTDIR=$(BUILD)/installed
	tools/install-files install $(BUILD)/installed $(INSTALLED) $(DESTDIR)
	rm -rf $(BUILD)/installed

# The same without a list of the files, for packages
install-staged: user
	$(MAKE) -C lib O=$(BUILD) DESTDIR=$(DESTDIR) install
	$(MAKE) -C runtime O=$(BUILD) DESTDIR=$(DESTDIR) install
	$(MAKE) -C runtime/preload O=$(BUILD) DESTDIR=$(DESTDIR) install
	$(MAKE) -C tools/accmem O=$(BUILD) DESTDIR=$(DESTDIR) install

# The files that a build of the module alone reads, and no objects of another build
install-dkms:
	find Kbuild VERSION compat driver include lib uapi -type f \
		\( -name 'Kbuild*' -o -name VERSION -o -name '*.[ch]' \) ! -name '*.mod.c' \
		! -path 'lib/host/*' ! -path '*/tests/*' \
		-exec install -D -m 0644 '{}' '$(DKMSDIR)/{}' ';'
	sed 's/#MODULE_VERSION#/$(VERSION)/' packaging/dkms.conf | \
		install -m 0644 /dev/stdin $(DKMSDIR)/dkms.conf

deb:
	@packaging/make-deb

check-deb:
	@packaging/check-deb

check-headers:
	@packaging/check-headers

check-podman:
	@packaging/check-podman

uninstall:
	tools/install-files remove $(INSTALLED) $(DESTDIR)

clean:
	rm -rf $(BUILD)
