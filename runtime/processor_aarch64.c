/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processor_aarch64.c: AArch64 as processor.h asks for it, by the bits and files of Linux.
 */
#include "runtime/processor.h"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <stdio.h>
#include <sys/auxv.h>

int qn__isa_best(void)
{
    const unsigned long needed = HWCAP_FP | HWCAP_ASIMD | HWCAP_ATOMICS;
    return (getauxval(AT_HWCAP) & needed) == needed ? QN_ISA_NEON : 0;
}

const char *qn__isa_needed(void)
{
    return qn__target_row(QN_ISA_NEON)->name;
}

/** The main ID register: implementer in bits 24 to 31, part in bits 4 to 15. */
void qn__processor_name(char out[QN_PROCESSOR_BYTES])
{
    unsigned long id = 0;
    FILE *file = fopen("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1", "re");
    if (file && fscanf(file, "%lx", &id) != 1)
        id = 0;
    if (file)
        fclose(file);
    snprintf(out, QN_PROCESSOR_BYTES, "AArch64 %02lx.%03lx", id >> 24 & 0xff, id >> 4 & 0xfff);
}

int qn__processor_core(void)
{
    return QN_CORE_USUAL;
}

#endif
