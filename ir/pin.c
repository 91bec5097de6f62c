/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pin.c: pins of single numbers of the arguments (qn_fact_pin), as kernels and options of launches
 * have them: what is wrong with one, and their words.
 */
#include "ir/ir.h"

const char *const qn__pin_names[] = {"extent", "stride", "lower bound", "scalar"};

void qn__pin_add(qn_pinned *pinned, const qn_fact_pin *pin)
{
    uint16_t bit = (uint16_t)(1U << pin->dim);
    uint8_t *exponent = &pinned->exponent[pin->of][pin->dim];
    uint8_t wanted = (uint8_t)__builtin_ctz((unsigned)qn__power_of(pin->multiple));
    if (pin->as == QN_PIN_CONSTANT)
        pinned->constant[pin->of] |= bit;
    else if (pin->as == QN_PIN_DYNAMIC)
        pinned->dynamic[pin->of] |= bit;
    else if (wanted > *exponent)
        *exponent = wanted;
}

/** Whether two pins are about one number. */
static bool is_same_number(const qn_fact_pin *a, const qn_fact_pin *b)
{
    return a->param == b->param && a->of == b->of && a->dim == b->dim;
}

/** Whether pins before pins[i], or those of the kernel, make its number dynamic where that one
 * makes the number constant, or the other way round. */
static bool is_contradiction(const qn_fact_pin *pins, int i, const qn_pinned *pinned)
{
    const qn_fact_pin *pin = &pins[i];
    const uint16_t *other = pin->as == QN_PIN_CONSTANT ? pinned->dynamic : pinned->constant;
    bool is = (other[pin->of] >> pin->dim & 1) != 0;
    for (int j = 0; j < i; j++)
        is = is || (is_same_number(&pins[j], pin) && pins[j].as != QN_PIN_MULTIPLE &&
                    pins[j].as != pin->as);
    return is && pin->as != QN_PIN_MULTIPLE;
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
    if (is_contradiction(pins, i, &param->pinned))
        return qn__fail(
            err, QN_ERR_ARGUMENT,
            "%s.as: %s %d of parameter %d (%.60s) is made %s here, and %s by another pin", who,
            qn__pin_names[pin->of], pin->dim, pin->param, param->name,
            pin->as == QN_PIN_CONSTANT ? "constant" : "dynamic",
            pin->as == QN_PIN_CONSTANT ? "dynamic" : "constant");
    return QN_OK;
}
