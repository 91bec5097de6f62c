/* SPDX-License-Identifier: Apache-2.0 */
/* processor_other.c: a processor that no code is generated for, as processor.h asks for it. */
#include "runtime/processor.h"

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <stdio.h>

int qn__isa_best(void)
{
    return 0;
}

const char *qn__isa_needed(void)
{
    return "any for which code is generated";
}

void qn__processor_name(char out[QN_PROCESSOR_BYTES])
{
    snprintf(out, QN_PROCESSOR_BYTES, "unknown");
}

int qn__processor_core(void)
{
    return QN_CORE_USUAL;
}

#endif
