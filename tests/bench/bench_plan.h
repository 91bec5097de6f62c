/* SPDX-License-Identifier: Apache-2.0 */
/* bench_plan.h: the plan fields of --plan, "jam=4,strip=1000,order=21", for both benchmarks. Values
 * are checked by the library. */
#ifndef QN_TESTS_BENCH_BENCH_PLAN_H
#define QN_TESTS_BENCH_BENCH_PLAN_H

#include "quern.h"

#include <stdlib.h>
#include <string.h>

/** The value of a field: a number; of `order` a digit for each dimension. */
static inline bool bench_plan_field(const char *name, size_t n, const char *value,
                                    qn_plan_options *out)
{
#define QN_X(field, text, least, most, names_dim)                                                  \
    if (strlen(#field) == n && !strncmp(name, #field, n)) {                                        \
        out->field = atoi(value);                                                                  \
        return true;                                                                               \
    }
    QN_PLAN_LIST(QN_X)
#undef QN_X
    if (n != strlen("order") || strncmp(name, "order", n))
        return false;
    for (int d = 0; d < QN_MAX_RANK && value[d] >= '0' && value[d] <= '9'; d++)
        out->order[d] = value[d] - '0';
    return true;
}

/** Reads fields into *out; false if the text has another form or an unknown name. */
static inline bool bench_read_plan(const char *text, qn_plan_options *out)
{
    *out = (qn_plan_options){.bytes = sizeof *out};
    while (*text) {
        size_t n = strcspn(text, "="), length = strcspn(text, ",");
        if (n >= length || !bench_plan_field(text, n, text + n + 1, out))
            return false;
        text += length + (text[length] == ',');
    }
    return true;
}

#endif
