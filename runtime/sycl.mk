# SPDX-License-Identifier: MIT
#
# The SYCL front-end: headers, their tests, the example. Part of the Makefile.

CXX ?= c++
CXXFLAGS ?= -O2 -g
SYCL_CXXFLAGS := $(TEST_CPPFLAGS) $(CXXFLAGS) -Wall -Wextra -Wpedantic $(WERROR) -pthread
SYCL_COMPAT := sycl/sycl.hpp sycl/usm.hpp sycl/usm/usm_allocator.hpp \
	sycl/detail/core.hpp CL/sycl.hpp
SYCL_HEADERS := $(wildcard $(HERE)/include/accmem/sycl/*.hpp) \
	$(SYCL_COMPAT:%=$(HERE)/include/%) $(HERE)/include/accmem_sycl.hpp
SYCL_TESTS := sycl_usm_test sycl_allocator_test sycl_queue_test
SYCL_DEPENDS := $(SYCL_HEADERS) $(TEST_HEADERS) $(HERE)/tests/sycl_test.hpp \
	$(HERE)/sycl.mk

# In the guest, and static like all there.
$(SYCL_TESTS:%=$(TESTS)/%): $(TESTS)/%: $(HERE)/tests/%.cpp $(OBJ)/sycl_test.o \
		$(SYCL_DEPENDS) $(HOST)/libaccmem.a | $(TESTS)
	$(CXX) -std=c++17 $(SYCL_CXXFLAGS) $(LDFLAGS) -static -o $@ $< \
		$(OBJ)/sycl_test.o $(HOST)/libaccmem.a

$(OBJ)/sycl_test.o: $(HERE)/tests/test.c $(HERE)/tests/test.h | $(OBJ)
	$(CC) $(TEST_CPPFLAGS) $(CFLAGS) -c -o $@ $<

# On the host over the fake device: as C++17 and C++20, each under its sanitizers.
SYCL_asan := -std=c++17 $(ASAN)
SYCL_tsan := -std=c++20 $(TSAN)
define sycl_fake_test
$(SYCL_TESTS:%=$(OBJ)/$1/%): $(OBJ)/$1/%: $(HERE)/tests/%.cpp \
		$(FAKE:%=$(OBJ)/$1/%.o) $(SYCL_DEPENDS) | $(OBJ)/$1
	$$(CXX) $$(SYCL_CXXFLAGS) $$(SYCL_$1) -DFAKE_DEVICE $$(WRAP) -o $$@ $$< \
		$(FAKE:%=$(OBJ)/$1/%.o)
endef
$(foreach s,asan tsan,$(eval $(call sycl_fake_test,$s)))
SYCL_FAKE_TESTS := $(foreach s,asan tsan,$(SYCL_TESTS:%=$(OBJ)/$s/%))

# The example is a program for any SYCL; here it finds accmem by its include path.
$(HOST)/accmem-sycl: $(HERE)/examples/sycl.cpp $(SYCL_DEPENDS) $(HOST)/libaccmem.a
	$(CXX) -std=c++17 $(SYCL_CXXFLAGS) $(LDFLAGS) -static -o $@ \
		$< $(HOST)/libaccmem.a

programs: $(SYCL_TESTS:%=$(TESTS)/%) $(HOST)/accmem-sycl

.PHONY: test-sycl
test: test-sycl
test-sycl: $(SYCL_FAKE_TESTS)
	for test in $(SYCL_FAKE_TESTS); do \
		TSAN_OPTIONS=die_after_fork=0 $$test || exit; \
	done
	$(HERE)/tests/check-sycl $(HERE) $(OBJ)/check-sycl

# Apart, so that a genuine SYCL on the machine keeps its name.
SYCLDIR ?= $(INCLUDEDIR)/accmem-sycl

.PHONY: install-sycl
install-sycl:
	install -d $(DESTDIR)$(INCLUDEDIR)/accmem/sycl \
		$(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(MANDIR)/man3
	install -m 0644 $(HERE)/include/accmem_sycl.hpp $(DESTDIR)$(INCLUDEDIR)
	install -m 0644 $(HERE)/include/accmem/sycl/*.hpp \
		$(DESTDIR)$(INCLUDEDIR)/accmem/sycl
	for header in $(SYCL_COMPAT); do \
		install -D -m 0644 $(HERE)/include/$$header \
			$(DESTDIR)$(SYCLDIR)/$$header || exit; \
	done
	sed -e 's|@SYCLDIR@|$(SYCLDIR)|' -e 's|@VERSION@|$(VERSION)|' \
		$(HERE)/accmem-sycl.pc.in \
		>$(DESTDIR)$(LIBDIR)/pkgconfig/accmem-sycl.pc
	install -m 0644 $(HERE)/man/accmem_sycl.3 $(DESTDIR)$(MANDIR)/man3
