/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statement.c: the statements of a finished kernel or function for callers, quern/embed.h. The
 * caller sees the instructions of ir.h in words of the kernel text; what a kind of instruction does
 * not have is a neutral value.
 */
#include "quern/embed.h"

#include "ir/build/builder.h"
#include "ir/function.h"
#include "ir/location.h"

#include <string.h>

int qn_text_format(void)
{
    return QN_TEXT_FORMAT;
}

int qn_kernel_n_statements(const qn_kernel *k)
{
    return k ? (int)k->n_insts - 1 : 0;
}

int qn_function_n_statements(const qn_function *f)
{
    return qn_kernel_n_statements(f ? &f->body : NULL);
}

static const char *word_of(const qn_inst *x)
{
    static const char *const dims[] = {"parallel", "reduction", "sequential"};
    return x->op == QN_I_DIM ? dims[x->sub] : qn__inst_name(x->op);
}

/** What `imm` and `sub` mean is a matter of the kind. */
static void describe(const qn_kernel *k, const qn_inst *x, qn_statement *s)
{
    switch (x->op) {
    case QN_I_CONST:
    case QN_I_FOR:
        s->bits = x->imm;
        break;
    case QN_I_EXTENT:
    case QN_I_LOWER:
        s->dim = x->sub;
        s->param = (int32_t)x->imm;
        break;
    case QN_I_PARAM:
    case QN_I_LOAD:
    case QN_I_STORE:
        s->part = x->sub;
        s->param = (int32_t)x->imm;
        break;
    case QN_I_VIEW:
        s->param = (int32_t)x->imm;
        break;
    case QN_I_ATOMIC:
        s->combine = x->sub;
        s->param = (int32_t)x->imm;
        break;
    case QN_I_DIM:
        s->dim = (int32_t)x->imm;
        break;
    case QN_I_REDUCE:
        s->combine = x->sub;
        s->order = (int32_t)x->imm;
        break;
    case QN_I_IF:
        s->which = x->sub;
        break;
    case QN_I_RESULT:
    case QN_I_CARRIED:
    case QN_I_LOOKUP:
        s->which = (int32_t)x->imm;
        break;
    case QN_I_CALL:
        s->which = (int32_t)x->imm;
        s->text = k->function[x->imm]->body.name;
        break;
    case QN_I_ASSERT:
    case QN_I_PRINT:
        s->text = k->message[x->imm];
        break;
    default:
        s->op = qn__pure(x);
    }
}

static qn_status give_statement(const qn_kernel *k, const char *who, int i, void *out,
                                size_t out_bytes, qn_error *err)
{
    if (!k || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who,
                        k ? "out" : "kernel or function");
    if (i < 1 || i >= (int)k->n_insts)
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s: \"%.100s\" has the statements 1 to %d, none has number %d", who,
                        k->name, (int)k->n_insts - 1, i);
    const qn_inst *x = &k->inst[i];
    qn_statement s = {.word = word_of(x),
                      .dtype = x->type,
                      .args = qn__args(k, (uint32_t)i),
                      .n_args = x->n_args,
                      .parent = x->parent,
                      .param = -1,
                      .dim = -1,
                      .combine = -1,
                      .name = qn__name_of(k, (uint32_t)i)};
    for (int r = 0; r < 3; r++)
        s.region[r] = x->region[r];
    describe(k, x, &s);
    qn__location_of(k, (uint32_t)i, &s.file, &s.line, &s.column);
    qn__struct_give(&s, sizeof s, out, out_bytes);
    return QN_OK;
}

qn_status qn_kernel_statement(const qn_kernel *k, int i, qn_statement *out, size_t out_bytes,
                              qn_error *err)
{
    return give_statement(k, "qn_kernel_statement", i, out, out_bytes, err);
}

qn_status qn_function_statement(const qn_function *f, int i, qn_statement *out, size_t out_bytes,
                                qn_error *err)
{
    return give_statement(f ? &f->body : NULL, "qn_function_statement", i, out, out_bytes, err);
}

int qn_kernel_n_dims(const qn_kernel *k)
{
    return k ? k->n_dims : 0;
}

int qn_kernel_dim(const qn_kernel *k, int d)
{
    return k && d >= 0 && d < k->n_dims ? (int)k->dim[d] : 0;
}

uint32_t qn_kernel_flags(const qn_kernel *k)
{
    return k ? k->flags : 0;
}

int qn_kernel_find_param(const qn_kernel *k, const char *name)
{
    for (int p = 0; k && name && p < k->n_params; p++)
        if (strcmp(k->param[p].name, name) == 0)
            return p;
    return -1;
}

const qn_function *qn_kernel_function(const qn_kernel *k, int i)
{
    return k && i >= 0 && i < k->n_functions ? k->function[i] : NULL;
}

int qn_kernel_array(const qn_kernel *k, int i, int *dtype, const uint64_t **bits)
{
    if (!k || i < 0 || i >= k->n_arrays)
        return 0;
    if (dtype)
        *dtype = k->array[i]->dtype;
    if (bits)
        *bits = k->array[i]->bits;
    return k->array[i]->n;
}
