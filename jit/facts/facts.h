/* SPDX-License-Identifier: Apache-2.0 */
/*
 * facts.h: private to jit/facts/.
 */
#ifndef QN_JIT_FACTS_H
#define QN_JIT_FACTS_H

#include "jit/jit.h"

/** The facts that only NVPTX has. */
void qn__facts_gpu(const qn_kernel *k, const qn_arg *args, qn_facts *f);

/** The facts of the domain, which follow from those of the parameters. False without memory. */
bool qn__facts_domain(const qn_kernel *k, const qn_domain *domain, qn_facts *f);

#endif
