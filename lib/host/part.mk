# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# What the Makefiles of the folders here have in common; each includes it first, and
# has the targets all, test and soak. O is the build directory; SEED and OPS choose
# the random campaign.

.DEFAULT_GOAL := all
HERE := $(abspath $(dir $(firstword $(MAKEFILE_LIST))))
PART := $(notdir $(HERE))
ROOT := $(abspath $(HERE)/../../..)
LIB := $(ROOT)/lib
O ?= $(ROOT)/build
OUT := $(abspath $(O))/host/$(PART)

SEED ?= $(shell date +%s)
OPS ?= 1000000
SOAK_OPS ?= 100000000

CC ?= cc
CFLAGS ?= -O2 -g
override CFLAGS += -std=gnu11 -Wall -Wextra -Wstrict-prototypes $(WERROR) \
	-I$(LIB)/host/shim -I$(ROOT)
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all

CORE := $(wildcard $(LIB)/$(PART)/*.c)
HEADERS := $(wildcard $(HERE)/*.h $(LIB)/host/*.h $(LIB)/host/shim/linux/*.h \
	$(LIB)/*/*.h $(LIB)/tests/$(PART)/*.h) $(ROOT)/uapi/linux/accmem.h

.PHONY: all test soak
