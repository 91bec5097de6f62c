/* SPDX-License-Identifier: Apache-2.0 */
/*
 * growth.c: public structs that callers of other versions pass. Options carry their size in their
 * first field, structs that a function fills come with their size. Structs of options have no
 * padding at their end, so that a field of a newer version never lies where an older caller left
 * bytes undefined.
 */
#include "ir/ir.h"

#include <string.h>

#define ENDS_WITH(type, last)                                                                      \
    _Static_assert(offsetof(type, last) + sizeof(((type *)0)->last) == sizeof(type),               \
                   #type " ends with padding")
#define LAST_OF(name, text, ...) LAST_##name,
enum { QN_PLAN_LIST(LAST_OF) N_PLAN_FIELDS };
ENDS_WITH(qn_options, schedule);
ENDS_WITH(qn_context_options, reserved);
ENDS_WITH(qn_alloc_options, stream);
_Static_assert(offsetof(qn_plan_options, order) + (QN_MAX_RANK + N_PLAN_FIELDS) * sizeof(int32_t) ==
                   sizeof(qn_plan_options),
               "qn_plan_options ends with padding");

/** Whether the bytes of a newer struct that this library does not know are all zero. */
static bool is_tail_zero(const void *p, size_t known, size_t bytes)
{
    const char *at = p;
    for (size_t i = known; i < bytes; i++)
        if (at[i])
            return false;
    return true;
}

qn_status qn__struct_take(const char *who, const char *what, const void *from, void *to,
                          size_t known, qn_error *err)
{
    enum { MOST_BYTES = 4096 };
    size_t bytes;
    memcpy(&bytes, from, sizeof bytes);
    if (bytes < sizeof bytes || bytes > MOST_BYTES || bytes % sizeof bytes)
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s: %s of %zu bytes: set `bytes` to the size of the struct", who, what,
                        bytes);
    if (bytes > known && !is_tail_zero(from, known, bytes))
        return qn__fail(err, QN_ERR_VERSION,
                        "%s: %s of %zu bytes use fields that this version lacks (%zu bytes)", who,
                        what, bytes, known);
    memset(to, 0, known);
    memcpy(to, from, bytes < known ? bytes : known);
    memcpy(to, &known, sizeof known);
    return QN_OK;
}

void qn__struct_give(const void *from, size_t known, void *to, size_t bytes)
{
    size_t n = bytes < known ? bytes : known;
    memcpy(to, from, n);
    memset((char *)to + n, 0, bytes - n);
}
