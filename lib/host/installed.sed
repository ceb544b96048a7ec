# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# Make the header of a core one for any program: without headers of the kernel, with its
# types by the names of <linux/types.h>, and usable from C++.
/^#include <linux\/\(bits\|list\)\.h>/d
s|^#include <linux/types.h>|#include <accmem/core/base.h>\n\n#ifdef __cplusplus\nextern "C" {\n#endif|
s|^#include "lib/\([a-z]*\)/.*"|#include <accmem/core/\1.h>|
s/\bBIT_ULL(\([^()]*\))/(1ull << (\1))/g
s/\bBIT(\([^()]*\))/(1ul << (\1))/g
s/\b\([us]\(8\|16\|32\|64\)\)\b/__\1/g
s/struct list_head\b/struct accmem_core_list/g
$i\
#ifdef __cplusplus\
}\
#endif\

