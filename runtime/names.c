/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.c: the numbers of the public headers by name (quern/embed.h). Names with a value of their
 * own are collected from the headers when the library is built (runtime/names.cmake); those that
 * lists make come from the lists.
 */
#include "quern/cache.h"
#include "quern/cuda.h"
#include "quern/dlpack.h"
#include "quern/embed.h"
#include "quern/tune.h"

#include "ir/ir.h"

#include <string.h>

typedef struct number {
    const char *name;
    int64_t value;
} number;

#define N(name) {#name, (int64_t)name},
#define STATUS(name, ...) {"QN_" #name, QN_##name},
#define QN_DTYPE(NAME, ...) {"QN_" #NAME, QN_##NAME},
#define QN_REDUCER(NAME, ...) {"QN_COMBINE_" #NAME, QN_COMBINE_##NAME},
#define SPACE(name, ...) {"QN_SPACE_" #name, QN_SPACE_##name},
#define EXEC(name, ...) {"QN_EXEC_" #name, QN_EXEC_##name},
#define DUMP(name, ...) {"QN_DUMP_" #name, QN_DUMP_##name},
#define LOG(name, ...) {"QN_LOG_" #name, QN_LOG_##name},
#define SYMBOLS(name, ...) {"QN_SYMBOLS_" #name, QN_SYMBOLS_##name},
#define TUNE(name, ...) {"QN_TUNE_" #name, QN_TUNE_##name},
#define QN_OP(ID, name, ...) {"QN_OP_" #name, QN_OP_##name},
static const number numbers[] = {
    QN_STATUS_LIST(STATUS) QN_SPACE_LIST(SPACE)
        QN_EXEC_LIST(EXEC) QN_DUMP_LIST(DUMP) QN_LOG_LIST(LOG) QN_SYMBOLS_LIST(SYMBOLS)
            QN_TUNE_STATE_LIST(TUNE)
#include "quern/dtypes.def"
#include "quern/ops.def"
#include "quern/reducers.def"
#include "generated/names.inc"
};
#undef QN_DTYPE
#undef QN_REDUCER
#undef QN_OP
enum { N_NUMBERS = sizeof numbers / sizeof numbers[0] };

const char *qn_number_name(int i, int64_t *out)
{
    if (i < 0 || i >= N_NUMBERS)
        return NULL;
    if (out)
        *out = numbers[i].value;
    return numbers[i].name;
}

qn_status qn_number_by_name(const char *name, int64_t *out, qn_error *err)
{
    const char *who = "qn_number_by_name";
    if (!name || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, name ? "out" : "name");
    qn_nearest near = {.text = name, .n = strlen(name)};
    for (int i = 0; i < N_NUMBERS; i++) {
        if (strcmp(numbers[i].name, name) == 0) {
            *out = numbers[i].value;
            return QN_OK;
        }
        qn__nearest_add(&near, "", numbers[i].name);
    }
    return qn__fail(err, QN_ERR_NOT_FOUND, "%s: no number has the name \"%.60s\"%s%s%s", who, name,
                    near.best ? ": did you mean " : "", near.best ? near.best : "",
                    near.best ? "?" : "");
}
