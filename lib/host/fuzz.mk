# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# Targets fuzz and coverage for a folder with a libFuzzer target, which is
# fuzz_$(PART).c. Before it is included: part.mk, and SRC, what it tests; FUZZ_FLAGS
# where the fuzzer has flags of its own, COVERED where more than CORE is counted.

CLANG ?= clang
FUZZ_SECONDS ?= 60
FUZZ := fuzz_$(PART)
FUZZ_SRC := $(HERE)/$(FUZZ).c $(SRC)
COVERED ?= $(CORE)

$(OUT)/$(FUZZ): $(FUZZ_SRC) $(HEADERS)
	@mkdir -p $(@D)
	$(CLANG) $(CFLAGS) $(FUZZ_FLAGS) -fsanitize=fuzzer,address,undefined \
		-fno-sanitize-recover=all -o $@ $(FUZZ_SRC)

.PHONY: fuzz coverage
fuzz: $(OUT)/$(FUZZ)
	@mkdir -p $(OUT)/corpus
	@echo "$(FUZZ) runs for $(FUZZ_SECONDS) s, seed $(SEED)"
	cd $(OUT) && ./$(FUZZ) -max_total_time=$(FUZZ_SECONDS) -seed=$(SEED) \
		-max_len=2048 -print_final_stats=1 -artifact_prefix=$(OUT)/ \
		corpus >$(FUZZ).log 2>&1 || { tail -n 40 $(FUZZ).log; exit 1; }
	@tail -n 8 $(OUT)/$(FUZZ).log

# Lines that the corpus reaches, in percent
coverage: $(OUT)/$(FUZZ)
	cd $(OUT) && $(CLANG) $(CFLAGS) $(FUZZ_FLAGS) -O1 -fsanitize=fuzzer \
		-fprofile-instr-generate -fcoverage-mapping -o fuzz_coverage \
		$(FUZZ_SRC) && \
	LLVM_PROFILE_FILE=fuzz.profraw ./fuzz_coverage -runs=0 corpus \
		2>fuzz_coverage.log && \
	llvm-profdata merge -o fuzz.profdata fuzz.profraw && \
	llvm-cov report ./fuzz_coverage -instr-profile=fuzz.profdata $(COVERED)
