/* SPDX-License-Identifier: Apache-2.0 */
/* cost.c: the table of cost.h. */
#include "jit/schedule/cost.h"

typedef struct row {
    int8_t scalar, vector[2][4];
} row;

static const row rows[QN_N_WORKS] = {
#define QN_X(name, s, a8, a16, a32, a64, b8, b16, b32, b64) {s, {{a8, a16, a32, a64}, {b8, b16, b32, b64}}},
    QN_WORK_LIST(QN_X)
#undef QN_X
};

const char *qn__work_name(int work)
{
    static const char *const names[QN_N_WORKS] = {
#define QN_X(name, ...) #name,
        QN_WORK_LIST(QN_X)
#undef QN_X
    };
    return work >= 0 && work < QN_N_WORKS ? names[work] : "?";
}

int64_t qn__work_units(int work, int bits, int lanes, const qn_target *target)
{
    if (work < 0 || work >= QN_N_WORKS)
        return 0;
    const row *r = &rows[work];
    if (lanes <= 1)
        return r->scalar;
    int register_bits = 8 * target->vector_bytes;
    int units = r->vector[target->costs][bits <= 8 ? 0 : bits <= 16 ? 1 : bits <= 32 ? 2 : 3];
    int64_t registers = ((int64_t)lanes * bits + register_bits - 1) / register_bits;
    return units < 0 ? (int64_t)-units * lanes : units * registers;
}

int64_t qn__least_units_to_skip(int vectors, const qn_target *target)
{
    int64_t test = qn__work_units(QN_WORK_BLOCK, 64, 1, target) + vectors;
    return 2 * test + qn__work_units(QN_WORK_WRONG_GUESS, 64, 1, target);
}
