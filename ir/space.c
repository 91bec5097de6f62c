/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space.c: which code may touch which memory, and which views may refer to it. One row per memory
 * space; everything else follows from the rows. Spaces that this build lacks are described like the
 * others and refused by the check functions.
 */
#include "ir/ir.h"

enum {
    HOSTS = 1 << QN_EXEC_SERIAL | 1 << QN_EXEC_OPENMP | 1 << QN_EXEC_THREADS,
    CUDA = 1 << QN_EXEC_CUDA,
    ROCM = 1 << QN_EXEC_ROCM
};

/** Who may touch a memory space, whose code runs there, and which spaces its views may refer to. */
typedef struct space_row {
    uint8_t execs;      /* bit: qn_exec */
    uint8_t exec;       /* the execution space that belongs to it */
    uint8_t assignable; /* bit: qn_space */
} space_row;

static const space_row space_rows[QN_N_SPACES] = {
    [QN_SPACE_HOST] = {HOSTS, QN_EXEC_SERIAL,
                       1 << QN_SPACE_HOST | 1 << QN_SPACE_CUDA_PINNED | 1 << QN_SPACE_HBW |
                           1 << QN_SPACE_ROCM_PINNED},
    [QN_SPACE_CUDA] = {CUDA, QN_EXEC_CUDA, 1 << QN_SPACE_CUDA | 1 << QN_SPACE_CUDA_MANAGED},
    [QN_SPACE_CUDA_MANAGED] = {HOSTS | CUDA, QN_EXEC_CUDA, 1 << QN_SPACE_CUDA_MANAGED},
    [QN_SPACE_CUDA_PINNED] = {HOSTS | CUDA, QN_EXEC_SERIAL, 1 << QN_SPACE_CUDA_PINNED},
    [QN_SPACE_HBW] = {HOSTS, QN_EXEC_SERIAL, 1 << QN_SPACE_HBW},
    [QN_SPACE_ROCM] = {ROCM, QN_EXEC_ROCM, 1 << QN_SPACE_ROCM},
    [QN_SPACE_ROCM_PINNED] = {HOSTS | ROCM, QN_EXEC_SERIAL, 1 << QN_SPACE_ROCM_PINNED},
};

static const struct {
    const char *name;
    bool is_available;
} exec_rows[QN_N_EXECS] = {
#define QN_X(NAME, number, text, available) [number] = {text, available},
    QN_EXEC_LIST(QN_X)
#undef QN_X
};

static bool is_space(int space)
{
    return space >= 0 && space < QN_N_SPACES;
}

static bool is_exec(int exec)
{
    return exec >= 0 && exec < QN_N_EXECS;
}

const char *qn_exec_name(int exec)
{
    return is_exec(exec) ? exec_rows[exec].name : "?";
}

qn_status qn_space_check(int space, qn_error *err)
{
    if (!is_space(space))
        return qn__fail(err, QN_ERR_ARGUMENT, "qn_space_check: there is no space %d", space);
    if (!qn_space_is_available(space))
        return qn__fail(err, QN_ERR_NOT_AVAILABLE,
                        "qn_space_check: space %s is not available in this build",
                        qn_space_name(space));
    return QN_OK;
}

qn_status qn_exec_check(int exec, qn_error *err)
{
    if (!is_exec(exec))
        return qn__fail(err, QN_ERR_ARGUMENT, "qn_exec_check: there is no execution space %d",
                        exec);
    if (!exec_rows[exec].is_available)
        return qn__fail(err, QN_ERR_NOT_AVAILABLE,
                        "qn_exec_check: execution space %s is not available in this build",
                        exec_rows[exec].name);
    return QN_OK;
}

bool qn_exec_can_access(int exec, int space)
{
    return is_exec(exec) && is_space(space) && (space_rows[space].execs >> exec & 1) != 0;
}

bool qn_space_is_assignable(int dst, int src)
{
    return is_space(dst) && is_space(src) && (space_rows[dst].assignable >> src & 1) != 0;
}

bool qn_space_can_access(int dst, int src)
{
    return is_space(dst) && qn_exec_can_access(space_rows[dst].exec, src);
}

bool qn_space_can_copy(int dst, int src)
{
    return is_space(dst) && is_space(src);
}
