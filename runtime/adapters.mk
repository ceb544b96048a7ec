# SPDX-License-Identifier: MIT
#
# What is built on the C library in other languages and shapes: C++ headers, the
# Python module, adapters. Part of the Makefile.

CXX ?= c++
CXXFLAGS ?= -O2 -g
override CXXFLAGS += -Wall -Wextra -Wpedantic $(WERROR) -pthread
CXX_STD := -std=c++17
# The interpreter that is to find the module: it knows where it searches.
PYTHON ?= python3
PYTHONDIR ?= $(shell $(PYTHON) -I $(HERE)/python/install_dir.py $(PREFIX))
# For tests the distribution's, whatever else is installed.
TEST_PYTHON := /usr/bin/python3 -I

CXX_HEADERS := $(TEST_HEADERS) $(wildcard $(HERE)/include/*.hpp) \
	$(wildcard $(HERE)/tests/nvinfer/*.h)
NVINFER := -isystem $(HERE)/tests/nvinfer

$(OBJ)/test.o: $(HERE)/tests/test.c $(HERE)/tests/test.h | $(OBJ)
	$(CC) $(TEST_CPPFLAGS) $(CFLAGS) -c -o $@ $<

FAKE_asan := $(FAKE:%=$(OBJ)/asan/%.o)
FAKE_tsan := $(FAKE:%=$(OBJ)/tsan/%.o)
FAKE_plain := $(FAKE:%=$(OBJ)/plain/%.o)

# --- tests in C++: in the guest, and over the fake device under two sanitizers

CXX_TESTS := tensorrt_test tcgen05_test
$(CXX_TESTS:%=$(TESTS)/%): $(TESTS)/%: $(HERE)/tests/%.cpp $(OBJ)/test.o \
		$(CXX_HEADERS) $(HOST)/libaccmem.a | $(TESTS)
	$(CXX) $(CXX_STD) $(TEST_CPPFLAGS) $(NVINFER) -DNVINFER_VERSION=10 \
		$(CXXFLAGS) $(LDFLAGS) -static -o $@ $< $(OBJ)/test.o \
		$(HOST)/libaccmem.a

define cxx_test # SANITIZER NAME
$(OBJ)/$1/$2: $(HERE)/tests/$2.cpp $(FAKE_$1) $(CXX_HEADERS)
	$$(CXX) $$(CXX_STD) $$(TEST_CPPFLAGS) $$(NVINFER) -DNVINFER_VERSION=10 \
		$$(CXXFLAGS) $(FLAGS_$1) -DFAKE_DEVICE $$(WRAP) -o $$@ $$< \
		$(FAKE_$1)
endef
CXX_FAKE := $(foreach s,asan tsan,$(CXX_TESTS:%=$(OBJ)/$s/%))
$(foreach s,asan tsan,$(foreach t,$(CXX_TESTS),$(eval $(call cxx_test,$s,$t))))

# The adaptors over each version of TensorRT's interfaces, by each standard.
define adaptor_test # VERSION STANDARD
$(OBJ)/plain/adaptor-$1-$2: $(HERE)/tests/adaptor_test.cpp $(FAKE_plain) \
		$(CXX_HEADERS)
	$$(CXX) -std=c++$2 $$(TEST_CPPFLAGS) $$(NVINFER) -DNVINFER_VERSION=$1 \
		$$(CXXFLAGS) -O0 $$(WRAP) -o $$@ $$< $(FAKE_plain)
endef
ADAPTORS := $(foreach v,8 10 11,$(foreach s,11 14 17 20,$(OBJ)/plain/adaptor-$v-$s))
$(foreach v,8 10 11,$(foreach s,11 14 17 20,$(eval $(call adaptor_test,$v,$s))))

# --- PyTorch's library, and UMF's provider where UMF is installed

TORCH := $(HOST)/libaccmem_torch.so.0
TORCH_SRC := $(HERE)/adapters/torch.c $(HERE)/adapters/torch_record.c
TORCH_OBJ := $(TORCH_SRC:$(HERE)/adapters/%.c=$(OBJ)/adapters-%.o)
TORCH_NAMES := free=accmem_torch_free \
	$(foreach name,alloc reset memory_fraction base_alloc record_stream,\
		$(name)=accmem_torch_plugin_$(name))
$(TORCH_OBJ): $(OBJ)/adapters-%.o: $(HERE)/adapters/%.c \
		$(HERE)/adapters/torch.h $(TEST_HEADERS) | $(OBJ)
	$(CC) $(TEST_CPPFLAGS) $(CFLAGS) -fPIC -c -o $@ $<

$(TORCH): $(HERE)/adapters/torch_plugin.cpp $(TORCH_OBJ) $(HERE)/adapters/torch.h \
		$(HERE)/adapters/libaccmem_torch.map $(HOST)/libaccmem.so
	$(CXX) $(CXX_STD) $(TEST_CPPFLAGS) $(CXXFLAGS) $(LDFLAGS) -fPIC -shared \
		-Wl,-z,defs -Wl,-soname,$(@F) \
		-Wl,--version-script=$(HERE)/adapters/libaccmem_torch.map \
		$(TORCH_NAMES:%=-Wl,--defsym=%) \
		-o $@ $< $(TORCH_OBJ) -L$(HOST) -laccmem

# A program of its own that loads the library, as PyTorch does: it is not static.
TORCH_PLUGIN_TEST := $(HOST)/torch_plugin_test
$(TORCH_PLUGIN_TEST): $(HERE)/tests/torch_plugin_test.cpp $(TEST_HEADERS) | $(OBJ)
	$(CXX) $(CXX_STD) $(TEST_CPPFLAGS) $(CXXFLAGS) $(LDFLAGS) -o $@ $<

# Without a directive of the preprocessor: versions of make differ in how they read "#".
UMF_INCLUDE := umf/memory_provider_ops.h
UMF_INSTALLED := $(shell $(CC) $(CPPFLAGS) $(CFLAGS) -MF /dev/null -fsyntax-only -x c \
	-include $(UMF_INCLUDE) /dev/null 2>/dev/null && echo yes)
UMF_SRC := $(HERE)/adapters/umf.c $(HERE)/adapters/umf_ipc.c \
	$(HERE)/adapters/umf_parts.c
ifeq ($(UMF_INSTALLED),yes)
UMF := $(HOST)/libaccmem_umf.a
UMF_OBJ := $(UMF_SRC:$(HERE)/adapters/%.c=$(OBJ)/adapters-%.o)
$(UMF_OBJ): $(OBJ)/adapters-%.o: $(HERE)/adapters/%.c \
		$(HERE)/adapters/umf_ipc.h $(HERE)/adapters/umf_parts.h \
		$(TEST_HEADERS) | $(OBJ)
	$(CC) $(CPPFLAGS) $(CFLAGS) -fPIC -c -o $@ $<

$(UMF): $(UMF_OBJ)
	rm -f $@
	$(AR) rcs $@ $^
endif

# Tests in C of both. UMF is tested with declarations of our own, in the versions that
# differ: 0.9 to 0.11, and 1.0 to 1.2, which are 100 to 102.
TORCH_TEST := $(HERE)/tests/torch_test.c $(HERE)/tests/adapter_replay.c \
	$(TORCH_SRC)
UMF_TEST := $(HERE)/tests/umf_test.c $(HERE)/tests/adapter_replay.c $(UMF_SRC)
UMF_IPC_TEST := $(HERE)/tests/umf_ipc_test.c $(UMF_SRC)
ADAPTER_HEADERS := $(TEST_HEADERS) $(wildcard $(HERE)/adapters/*.h) \
	$(HERE)/tests/umf/$(UMF_INCLUDE)
ADAPTER_FLAGS = $(TEST_CPPFLAGS) -I$(HERE)/tests/umf $(CFLAGS)
$(TESTS)/torch_test: $(TORCH_TEST)
$(TESTS)/umf_test: $(UMF_TEST)
$(TESTS)/umf_ipc_test: $(UMF_IPC_TEST)
$(TESTS)/torch_test $(TESTS)/umf_test $(TESTS)/umf_ipc_test: $(OBJ)/test.o \
		$(HOST)/libaccmem.a $(ADAPTER_HEADERS) | $(TESTS)
	$(CC) $(ADAPTER_FLAGS) -DUMF_MINOR=101 $(LDFLAGS) -static -o $@ \
		$(filter %.c %.o,$^) $(HOST)/libaccmem.a

# All of them on devices with several carveouts, which only the guest has.
$(TESTS)/carveouts_test: $(HERE)/tests/carveouts_test.cpp $(TORCH_OBJ) \
		$(OBJ)/test.o $(CXX_HEADERS) $(wildcard $(HERE)/include/accmem/sycl/*.hpp) \
		$(HOST)/libaccmem.a | $(TESTS)
	$(CXX) $(CXX_STD) $(TEST_CPPFLAGS) $(CXXFLAGS) $(LDFLAGS) -static -o $@ \
		$< $(TORCH_OBJ) $(OBJ)/test.o $(HOST)/libaccmem.a

comma := ,
ADAPTERS :=
define adapter_test # SANITIZER TEST SOURCES FLAGS
$(OBJ)/$1/$2: $3 $(FAKE_$1) $(ADAPTER_HEADERS)
	$$(CC) $$(ADAPTER_FLAGS) $4 -DFAKE_DEVICE $(FLAGS_$1) $$(WRAP) \
		-o $$@ $3 $(FAKE_$1)
ADAPTERS += $(OBJ)/$1/$2
endef
$(foreach s,asan tsan,$(eval $(call adapter_test,$s,torch_test,$(TORCH_TEST),\
	-Wl$$(comma)--wrap=accmem_streams_create)))
umf_test = $(eval $(call adapter_test,$1,umf_test-$2,$(UMF_TEST),\
	-DUMF_MINOR=$2 -Wl$$(comma)--wrap=accmem_pool_allocate)) \
	$(eval $(call adapter_test,$1,umf_ipc_test-$2,$(UMF_IPC_TEST),-DUMF_MINOR=$2))
$(foreach v,9 10 100,$(call umf_test,plain,$v))
$(foreach v,11 102,$(call umf_test,tsan,$v))
$(call umf_test,asan,101)

# --- Python, over a shared library with the fake device inside

FAKE_LIBRARY := $(OBJ)/plain/libaccmem.so.0
$(FAKE_LIBRARY): $(FAKE_plain) $(HERE)/adapters.mk
	$(CC) $(CFLAGS) -shared $(WRAP) -o $@ $(FAKE_plain)

# --- examples, static like the others

CXX_EXAMPLES := tensorrt tcgen05
$(CXX_EXAMPLES:%=$(HOST)/accmem-%): $(HOST)/accmem-%: $(HERE)/examples/%.cpp \
		$(CXX_HEADERS) $(HOST)/libaccmem.a
	$(CXX) $(CXX_STD) $(TEST_CPPFLAGS) $(CXXFLAGS) $(LDFLAGS) -static -o $@ \
		$< $(HOST)/libaccmem.a

libraries: $(TORCH) $(UMF)
programs: $(CXX_TESTS:%=$(TESTS)/%) $(TESTS)/carveouts_test $(TESTS)/torch_test $(TESTS)/umf_test \
	$(TESTS)/umf_ipc_test $(TORCH_PLUGIN_TEST) \
	$(CXX_EXAMPLES:%=$(HOST)/accmem-%)

.PHONY: test-adapters
test: test-adapters
test-adapters: all $(CXX_FAKE) $(ADAPTORS) $(ADAPTERS) $(FAKE_LIBRARY)
	for test in $(CXX_FAKE) $(ADAPTORS) $(ADAPTERS); do \
		ACCMEM_TRACES=$(ROOT)/traces TSAN_OPTIONS=die_after_fork=0 \
			$$test || exit; \
	done
	ACCMEM_LIBRARY=$(FAKE_LIBRARY) ACCMEM_DEVICE=/dev/accmem-fake \
		$(TEST_PYTHON) $(HERE)/tests/tensorrt_test.py $(HERE)/python
	$(HERE)/tests/check-umf $(HERE) $(OBJ)/check-umf
	$(HERE)/tests/check-install $(ROOT) $(abspath $(O)) $(OBJ)/check-install
	LD_LIBRARY_PATH=$(dir $(FAKE_LIBRARY)) ACCMEM_DEVICE=/dev/accmem-fake \
		$(TEST_PYTHON) $(HERE)/tests/torch_test.py $(TORCH)
	LD_LIBRARY_PATH=$(dir $(FAKE_LIBRARY)) ACCMEM_DEVICE=/dev/accmem-fake \
		$(TORCH_PLUGIN_TEST) $(TORCH)

.PHONY: install-adapters
install-adapters:
	install -d $(DESTDIR)$(LIBDIR) $(DESTDIR)$(INCLUDEDIR)
	install -m 0755 $(TORCH) $(DESTDIR)$(LIBDIR)
	ln -sf $(notdir $(TORCH)) $(DESTDIR)$(LIBDIR)/libaccmem_torch.so
	$(if $(UMF),install -m 0644 $(UMF) $(DESTDIR)$(LIBDIR))
	install -m 0644 $(HERE)/include/*.hpp $(DESTDIR)$(INCLUDEDIR)
	install -D -m 0644 -t $(DESTDIR)$(PYTHONDIR) $(HERE)/python/accmem_tensorrt.py
