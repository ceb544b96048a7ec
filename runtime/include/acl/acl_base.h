/* SPDX-License-Identifier: MIT */
/* Programs that name a part of the interface get all of it. */
#ifndef ACCMEM_ACL_BASE_H
#define ACCMEM_ACL_BASE_H
#include <acl/acl.h>
#endif
