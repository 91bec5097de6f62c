/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.h: the parts of the verifier, for verify.c and verify_tables.c.
 */
#ifndef QN_IR_VERIFY_H
#define QN_IR_VERIFY_H

#include "ir/ir.h"

/** Checks tables, sizes, flags and parameters; after it the numbers of the struct can be relied on.
 */
qn_status qn__verify_tables(const qn_kernel *k, qn_error *err);
/** Checks is_read, is_written and has_atomics against the accesses, which were checked before. */
qn_status qn__verify_uses(const qn_kernel *k, qn_error *err);

#endif
