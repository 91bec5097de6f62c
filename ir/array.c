/* SPDX-License-Identifier: Apache-2.0 */
/*
 * array.c: constant arrays of kernels and functions, and lookups in them. Equal arrays are one.
 */
#include "ir/build/builder.h"

#include <string.h>

/* ---------------------------------------------------------------- elements */

qn_elements *qn__elements_retain(qn_elements *e)
{
    if (e)
        atomic_fetch_add_explicit(&e->references, 1, memory_order_relaxed);
    return e;
}

void qn__elements_release(qn_elements *e)
{
    if (e && atomic_fetch_sub_explicit(&e->references, 1, memory_order_acq_rel) == 1)
        qn__free(e);
}

static bool is_equal(const qn_elements *a, const qn_elements *b)
{
    return a == b || (a->dtype == b->dtype && a->n == b->n &&
                      memcmp(a->bits, b->bits, (size_t)a->n * sizeof a->bits[0]) == 0);
}

int qn__list_array(qn_elements **list, int32_t *n, qn_elements *e)
{
    for (int i = 0; i < *n; i++)
        if (is_equal(list[i], e))
            return i;
    if (*n == QN_MAX_ARRAYS)
        return -1;
    list[*n] = qn__elements_retain(e);
    return (*n)++;
}

/* ---------------------------------------------------------------- builder */

uint32_t qn__builder_array(qn_builder *b, const char *who, qn_elements *e)
{
    if (!b->array)
        b->array = qn__zalloc(QN_MAX_ARRAYS, sizeof(qn_elements *));
    if (!b->array) {
        qn__builder_fail(b, QN_ERR_MEMORY, "%s: out of memory", who);
        return 0;
    }
    int i = qn__list_array(b->array, &b->n_arrays, e);
    if (i < 0)
        qn__builder_fail(b, QN_ERR_LIMIT, "%s: more than %d constant arrays", who, QN_MAX_ARRAYS);
    return (uint32_t)(i + 1);
}

qn_array qn_const_array(qn_builder *b, int dtype, int64_t n, const void *elements)
{
    const char *who = "qn_const_array";
    const qn_array none = {0};
    if (!qn__builder_ready(b, who) || !qn__known_dtype(b, who, dtype))
        return none;
    if (qn__dtype_class(dtype) == QN_CLASS_C)
        qn__builder_fail(b, QN_ERR_TYPE, "%s: %s: give real and imaginary parts an array each", who,
                         qn_dtype_name(dtype));
    else if (n < 1 || n > QN_MAX_ARRAY_ELEMENTS)
        qn__builder_fail(b, QN_ERR_LIMIT, "%s: %lld elements, not in 1 to %d", who, (long long)n,
                         QN_MAX_ARRAY_ELEMENTS);
    else if (!elements)
        qn__builder_fail(b, QN_ERR_ARGUMENT, "%s: elements are NULL", who);
    if (b->error.status)
        return none;
    qn_elements *e = qn__zalloc(1, sizeof *e + (size_t)n * sizeof e->bits[0]);
    if (!e) {
        qn__builder_fail(b, QN_ERR_MEMORY, "%s: out of memory for %lld elements", who,
                         (long long)n);
        return none;
    }
    atomic_init(&e->references, 1);
    e->dtype = dtype;
    e->n = (int32_t)n;
    for (int64_t i = 0; i < n; i++)
        e->bits[i] = qn__load_element(dtype, (const char *)elements + i * qn_dtype_bytes(dtype));
    qn_array a = {qn__builder_array(b, who, e)};
    qn__elements_release(e);
    return a;
}

uint32_t qn__append_lookup(qn_builder *b, const char *who, uint32_t array, uint32_t index)
{
    const qn_elements *e = b->array[array - 1];
    if (qn__is_constant(b, index))
        return qn__append_const(b, who, e->dtype, qn__lookup(e, (int64_t)b->inst[index].imm));
    qn_inst x = {.op = QN_I_LOOKUP, .type = (uint8_t)e->dtype, .imm = array - 1};
    return qn__append_numbered(b, who, x, 1, &index);
}

qn_val qn_lookup(qn_builder *b, qn_array array, qn_val index)
{
    const char *who = "qn_lookup";
    uint32_t i;
    if (!qn__builder_ready(b, who))
        return (qn_val){0};
    if (array.id == 0 || array.id > (uint32_t)b->n_arrays)
        return qn__builder_fail(b, QN_ERR_BUILD, "%s: array %u is none of this builder's", who,
                                (unsigned)array.id);
    return qn__use_index(b, who, "index", index, &i)
               ? qn__value(b, qn__append_lookup(b, who, array.id, i), 0)
               : (qn_val){0};
}

/* ---------------------------------------------------------------- proofs */

/** Interval of an integer value, from the constants and ops that make it; anything at the leaves.
 */
static qn_interval interval_of(const qn_kernel *k, uint32_t i, int depth)
{
    const qn_inst *x = &k->inst[i];
    const uint32_t *args = qn__args(k, i);
    if (x->op == QN_I_CONST && qn__is_integer(x->type) &&
        !(x->type == QN_U64 && (int64_t)x->imm < 0))
        return (qn_interval){(int64_t)x->imm, (int64_t)x->imm, false};
    bool is_made_of_integers =
        depth > 0 && (x->op >= QN_I_PURE || x->op == QN_I_CAST || x->op == QN_I_BITCAST);
    for (int a = 0; is_made_of_integers && a < x->n_args; a++)
        is_made_of_integers = qn__dtype_class(k->inst[args[a]].type) != QN_CLASS_F;
    if (!is_made_of_integers)
        return qn__interval_of_type(x->type);
    qn_interval operand[3];
    for (int a = 0; a < x->n_args; a++)
        operand[a] = interval_of(k, args[a], depth - 1);
    return qn__interval_of_operands(k, i, operand);
}

bool qn__is_lookup_proved(const qn_kernel *k, uint32_t i)
{
    enum { MOST_DEPTH = 5 };
    qn_interval x = interval_of(k, qn__args(k, i)[0], MOST_DEPTH);
    return x.low >= 0 && x.high < qn__array_of(k, i)->n;
}
