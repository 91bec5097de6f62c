/* SPDX-License-Identifier: Apache-2.0 */
/* target.c: the table of families. */
#include "jit/target/target.h"

static const qn_hooks *const families[QN_N_TARGETS] = {
    [QN_TARGET_X86] = &qn__x86_hooks,
    [QN_TARGET_NVPTX] = &qn__nvptx_hooks,
#ifdef QUERN_AARCH64
    [QN_TARGET_AARCH64] = &qn__aarch64_hooks,
#endif
};

const qn_hooks *qn__hooks_of(const qn_target *target)
{
    return families[target->family];
}

void qn__hooks_initialize(void)
{
    for (int n = 0; n < QN_N_TARGETS; n++)
        if (families[n])
            families[n]->initialize();
}
