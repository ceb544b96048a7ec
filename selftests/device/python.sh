#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The Python module of the TensorRT front-end, and the library that PyTorch loads, by
# the distribution's python3; and that library as PyTorch calls it.

set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd -P)
export ACCMEM_LIBRARY=$root/build/host/libaccmem.so.0
export LD_LIBRARY_PATH=$root/build/host
status=0
/usr/bin/python3 -I "$root/runtime/tests/tensorrt_test.py" \
	"$root/runtime/python" || status=1
/usr/bin/python3 -I "$root/runtime/tests/torch_test.py" \
	"$root/build/host/libaccmem_torch.so.0" || status=1
"$root/build/host/torch_plugin_test" \
	"$root/build/host/libaccmem_torch.so.0" || status=1
exit "$status"
