/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pin.c: pins of single numbers of the arguments (qn_fact_pin), as kernels and options of launches
 * have them: what is wrong with one, and their words.
 */
#include "ir/ir.h"

const char *const qn__pin_names[] = {"extent", "stride", "lower bound", "scalar"};

/** Whether two pins are about one number. */
static bool is_same_number(const qn_fact_pin *a, const qn_fact_pin *b)
{
    return a->param == b->param && a->of == b->of && a->dim == b->dim;
}

/** An earlier pin that makes the number of pins[i] dynamic where that one makes it constant, or the
 * other way round; -1. */
static int find_contradiction(const qn_fact_pin *pins, int i)
{
    for (int j = 0; j < i && pins[i].as != QN_PIN_MULTIPLE; j++)
        if (is_same_number(&pins[j], &pins[i]) && pins[j].as != QN_PIN_MULTIPLE &&
            pins[j].as != pins[i].as)
            return j;
    return -1;
}

qn_status qn__pin_check(const char *who, const qn_fact_pin *pins, int i, int n_params,
                        const qn_kernel_parameter *params, qn_error *err)
{
    const qn_fact_pin *pin = &pins[i];
    if (pin->param < 0 || pin->param >= n_params)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s.param: %d not in [0,%d)", who, pin->param,
                        n_params);
    const qn_kernel_parameter *param = &params[pin->param];
    bool is_scalar = param->rank < 0;
    if (pin->of < QN_PIN_EXTENT || pin->of > QN_PIN_SCALAR ||
        (pin->of == QN_PIN_SCALAR) != is_scalar)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s.of: %d does not fit parameter %d (%.60s), a %s",
                        who, pin->of, pin->param, param->name, is_scalar ? "scalar" : "view");
    if (pin->dim < 0 || pin->dim >= (is_scalar ? 1 : param->rank))
        return qn__fail(err, QN_ERR_ARGUMENT, "%s.dim: %d of parameter %d (%.60s) not in [0,%d)",
                        who, pin->dim, pin->param, param->name, is_scalar ? 1 : param->rank);
    if (pin->as < QN_PIN_CONSTANT || pin->as > QN_PIN_MULTIPLE)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s.as: %d not in [%d,%d]", who, pin->as,
                        QN_PIN_CONSTANT, QN_PIN_MULTIPLE);
    bool has_multiple = pin->as == QN_PIN_MULTIPLE;
    if (has_multiple ? pin->multiple < 1 : pin->multiple != 0)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s.multiple: %lld is %s", who,
                        (long long)pin->multiple,
                        has_multiple ? "below 1" : "not 0, but the pin is no QN_PIN_MULTIPLE");
    if (has_multiple && is_scalar && !qn__is_integer(param->dtype))
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s.multiple: %lld of parameter %d (%.60s), which is %s and no integer",
                        who, (long long)pin->multiple, pin->param, param->name,
                        qn_dtype_name(param->dtype));
    int other = find_contradiction(pins, i);
    if (other >= 0)
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s.as: %s %d of parameter %d (%.60s) is %s here and %s in pin %d", who,
                        qn__pin_names[pin->of], pin->dim, pin->param, param->name,
                        pin->as == QN_PIN_CONSTANT ? "constant" : "dynamic",
                        pins[other].as == QN_PIN_CONSTANT ? "constant" : "dynamic", other);
    return QN_OK;
}
