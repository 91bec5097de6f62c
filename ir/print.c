/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.c: the text of a finished kernel, in the form of docs/kernel-text.md: one statement a line,
 * values numbered in the order in which the text defines them, floats as hex. Output depends on the
 * kernel alone, not on the C library. Relies on a verified kernel (ir.h): nesting is bounded, so
 * blocks recurse.
 */
#include "ir/function.h"
#include "ir/lex.h"

#include <stdio.h>
#include <string.h>

typedef struct printer {
    const qn_kernel *k;
    qn_text *out;
    uint32_t *number; /* of each instruction that has a value */
    uint32_t next;
    bool is_anonymous;
    int n_underscores; /* of the names of arrays: as many as keep them apart from those of
                          parameters */
    int depth;
    uint32_t *line; /* of each instruction, or NULL */
    uint32_t n_lines;
    size_t n_counted; /* bytes of `out` whose lines are counted */
} printer;

/* ---------------------------------------------------------------------------------------- names */

static bool is_identifier(const char *name)
{
    for (const char *c = name; *c; c++) {
        bool is_letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_';
        if (!is_letter && (c == name || *c < '0' || *c > '9'))
            return false;
    }
    return *name != '\0';
}

static void add_string(qn_text *out, const char *s)
{
    qn__text_add(out, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            qn__text_add(out, "\\%c", c);
        else if (c == '\n' || c == '\t')
            qn__text_add(out, c == '\n' ? "\\n" : "\\t");
        else if (c < 0x20 || c == 0x7f)
            qn__text_add(out, "\\x%02x", (unsigned)c);
        else
            qn__text_bytes(out, s, 1);
    }
    qn__text_add(out, "\"");
}

static void add_name(qn_text *out, const char *name)
{
    if (is_identifier(name))
        qn__text_bytes(out, name, strlen(name));
    else
        add_string(out, name);
}

static void add_param_name(printer *p, uint64_t i)
{
    const char *name = p->k->param[i].name;
    if (p->is_anonymous)
        qn__text_add(p->out, "p%d", (int)i);
    else
        add_name(p->out, name);
}

/** Whether a parameter is called as an array might be: a, so many underscores, digits. */
static bool is_taken(const printer *p)
{
    for (int i = 0; i < p->k->n_params && !p->is_anonymous; i++) {
        const char *name = p->k->param[i].name;
        const char *number = name + (*name == 'a') + strspn(name + (*name == 'a'), "_");
        if (*name == 'a' && number - name == 1 + p->n_underscores && *number &&
            !number[strspn(number, "0123456789")])
            return true;
    }
    return false;
}

/** An array has its number as a name. */
static void add_array_name(printer *p, int i)
{
    qn__text_add(p->out, "a");
    for (int n = 0; n < p->n_underscores; n++)
        qn__text_add(p->out, "_");
    qn__text_add(p->out, "%d", i);
}

/* ------------------------------------------------------------------------------------- literals */

/** Hex float of finite bits, widened to the 52 fraction bits of f64; denormals are normalised. */
static void add_finite(qn_text *out, int dtype, uint64_t bits)
{
    int width = qn__dtype_width(dtype);
    qn_float_format f = qn__float_format(dtype);
    int fraction_bits = f.fraction_bits, bias = f.bias;
    uint64_t fraction = bits & ((UINT64_C(1) << fraction_bits) - 1);
    int exponent = (int)(bits >> fraction_bits & (uint64_t)(2 * bias + 1));
    qn__text_add(out, "%s", bits >> (width - 1) & 1 ? "-" : "");
    if (exponent == 0 && fraction == 0) {
        qn__text_add(out, "0x0p+0");
        return;
    }
    if (exponent == 0) {
        int shift = fraction_bits - (63 - __builtin_clzll(fraction));
        fraction = fraction << shift & ((UINT64_C(1) << fraction_bits) - 1);
        exponent = 1 - shift;
    }
    fraction <<= 52 - fraction_bits;
    int digits = 13;
    for (; digits > 0 && (fraction & 15) == 0; digits--)
        fraction >>= 4;
    qn__text_add(out, "0x1");
    if (digits > 0)
        qn__text_add(out, ".%0*llx", digits, (unsigned long long)fraction);
    qn__text_add(out, "p%+d", exponent - bias);
}

static void add_float(qn_text *out, int dtype, uint64_t bits)
{
    uint64_t sign = UINT64_C(1) << (qn__dtype_width(dtype) - 1);
    uint64_t infinity = qn__float_format(dtype).infinity;
    uint64_t magnitude = bits & (sign - 1);
    if (magnitude < infinity)
        add_finite(out, dtype, bits);
    else if (magnitude == infinity)
        qn__text_add(out, bits & sign ? "-inf" : "inf");
    else
        qn__text_add(out, "nan(0x%llx)", (unsigned long long)bits);
}

static void add_literal(qn_text *out, int dtype, uint64_t bits)
{
    switch (qn__dtype_class(dtype)) {
    case QN_CLASS_B:
        qn__text_add(out, bits ? "true" : "false");
        break;
    case QN_CLASS_S:
        qn__text_add(out, "%lld", (long long)bits);
        break;
    case QN_CLASS_U:
        qn__text_add(out, "%llu", (unsigned long long)bits);
        break;
    default:
        add_float(out, dtype, bits);
        break;
    }
}

/* --------------------------------------------------------------------------------------- values */

static void add_value(printer *p, uint32_t i)
{
    qn__text_add(p->out, "%%%u", (unsigned)p->number[i]);
}

static void add_values(printer *p, const uint32_t *args, int n)
{
    for (int i = 0; i < n; i++) {
        qn__text_add(p->out, "%s", i ? ", " : "");
        add_value(p, args[i]);
    }
}

/** Numbers instruction i and prints "%7: f32". */
static void add_typed(printer *p, uint32_t i)
{
    p->number[i] = p->next++;
    add_value(p, i);
    qn__text_add(p->out, ": %s", qn_dtype_name(p->k->inst[i].type));
}

/** "%3: i64, %4: f32 = " for the results that stand after the if, for, while or call i. */
static void add_results(printer *p, uint32_t i)
{
    const qn_kernel *k = p->k;
    uint32_t begin = k->inst[i].region[2], at = begin;
    for (; at < k->n_insts && k->inst[at].op == QN_I_RESULT && qn__args(k, at)[0] == i; at++) {
        qn__text_add(p->out, "%s", at == begin ? "" : ", ");
        add_typed(p, at);
    }
    qn__text_add(p->out, "%s", at == begin ? "" : " = ");
}

/* ----------------------------------------------------------------------------------- statements */

static void add_statement(printer *p, uint32_t i);

static void add_indent(printer *p)
{
    qn__text_add(p->out, "%*s", 2 * p->depth, "");
}

/** The instructions of a region as " {...}". The yield is printed if it gives values. */
static void add_block(printer *p, uint32_t begin, uint32_t end)
{
    qn__text_add(p->out, " {\n");
    p->depth++;
    for (uint32_t i = begin; i < end; i = p->k->inst[i].region[2])
        add_statement(p, i);
    p->depth--;
    add_indent(p);
    qn__text_add(p->out, "}");
}

/** Each word of the list whose bits are set, with a space before it. */
static void add_words(qn_text *out, const qn_word *list, uint32_t bits)
{
    for (; list->text; list++)
        if (bits & list->number)
            qn__text_add(out, " %s", list->text);
}

static bool is_empty_region(const qn_kernel *k, uint32_t begin, uint32_t end)
{
    return begin == end ||
           (begin + 1 == end && k->inst[begin].op == QN_I_YIELD && k->inst[begin].n_args == 0);
}

/** " (%2: f32 = %1)" for the carried values, whose first is at *at; *at moves past them. */
static void add_carried(printer *p, const uint32_t *init, int n, uint32_t *at)
{
    qn__text_add(p->out, " (");
    for (int i = 0; i < n; i++) {
        qn__text_add(p->out, "%s", i ? ", " : "");
        add_typed(p, (*at)++);
        qn__text_add(p->out, " = ");
        add_value(p, init[i]);
    }
    qn__text_add(p->out, ")");
}

static void add_if(printer *p, uint32_t i)
{
    const qn_inst *x = &p->k->inst[i];
    add_results(p, i);
    qn__text_add(p->out, x->sub ? "if rare " : "if ");
    add_value(p, qn__args(p->k, i)[0]);
    add_block(p, x->region[0], x->region[1]);
    if (is_empty_region(p->k, x->region[1], x->region[2]))
        return;
    qn__text_add(p->out, " else");
    add_block(p, x->region[1], x->region[2]);
}

static void add_for(printer *p, uint32_t i)
{
    const qn_inst *x = &p->k->inst[i];
    const uint32_t *args = qn__args(p->k, i);
    uint32_t at = x->region[0];
    add_results(p, i);
    qn__text_add(p->out, "for ");
    add_typed(p, at++);
    qn__text_add(p->out, " = ");
    add_value(p, args[0]);
    qn__text_add(p->out, " to ");
    add_value(p, args[1]);
    qn__text_add(p->out, " step %lld", (long long)x->imm);
    add_carried(p, args + 2, x->n_args - 2, &at);
    add_block(p, at, x->region[1]);
}

static void add_while(printer *p, uint32_t i)
{
    const qn_inst *x = &p->k->inst[i];
    const uint32_t *args = qn__args(p->k, i);
    uint32_t at = x->region[0];
    add_results(p, i);
    qn__text_add(p->out, "while max ");
    add_value(p, args[0]);
    add_carried(p, args + 1, x->n_args - 1, &at);
    add_block(p, at, x->region[1]);
    qn__text_add(p->out, " do");
    add_block(p, x->region[1], x->region[2]);
}

static void add_reduce(printer *p, uint32_t i)
{
    const qn_inst *x = &p->k->inst[i];
    add_typed(p, i);
    qn__text_add(p->out, " = reduce %s", qn__combine_name(x->sub));
    for (const qn_word *order = qn__order_words; order->text; order++)
        if (order->number == x->imm)
            qn__text_add(p->out, " %s", order->text);
    qn__text_add(p->out, " over ");
    add_values(p, qn__args(p->k, i), x->n_args);
    add_block(p, x->region[0], x->region[1]);
}

/** "x[%1, %2]" and the operands behind the indices. */
static void add_access(printer *p, uint32_t i)
{
    const qn_inst *x = &p->k->inst[i];
    const uint32_t *args = qn__args(p->k, i);
    int n = qn__n_indices(p->k, i);
    add_param_name(p, x->imm);
    qn__text_add(p->out, "[");
    add_values(p, args, n);
    qn__text_add(p->out, "]");
    if (qn__has_parts(p->k->param[x->imm].dtype))
        qn__text_add(p->out, " part %d", x->sub);
    if (x->n_args > n)
        qn__text_add(p->out, ", ");
    add_values(p, args + n, x->n_args - n);
}

/** Whether a function takes or gives complex numbers: their parts do not say which function of a
 * keyword is meant. */
static bool has_complex(const qn_function *f)
{
    for (int q = 0; q < f->body.n_params; q++)
        if (f->body.param[q].rank < 0 && qn__has_parts(f->body.param[q].dtype))
            return true;
    return f->n_flat != f->n_results;
}

/** "call f(%1, x)", or of a function of the built-in library "exp %1", with complex numbers
 * "exp_c64 %1, %2". */
static void add_call(printer *p, uint32_t i)
{
    const qn_function *f = qn__callee(p->k, i);
    const uint32_t *args = qn__args(p->k, i);
    add_results(p, i);
    if (f->keyword_bytes) {
        int n = has_complex(f) ? (int)strlen(f->body.name) : f->keyword_bytes;
        qn__text_add(p->out, "%.*s ", n, f->body.name);
        add_values(p, args, f->n_values);
        return;
    }
    qn__text_add(p->out, "call ");
    add_name(p->out, f->body.name);
    qn__text_add(p->out, "(");
    int value = 0, view = f->n_values;
    for (int q = 0; q < f->body.n_params; q++) {
        const qn_kernel_parameter *param = &f->body.param[q];
        int n_parts = param->rank < 0 ? qn__n_parts(param->dtype, NULL) : 1;
        qn__text_add(p->out, "%s", q ? ", " : "");
        if (param->rank >= 0)
            add_param_name(p, p->k->inst[args[view++]].imm);
        else
            add_values(p, args + value, n_parts);
        value += param->rank < 0 ? n_parts : 0;
    }
    qn__text_add(p->out, ")");
}

/** What stands after "=" in statements of one value and no regions. */
static void add_expression(printer *p, uint32_t i)
{
    static const char *const dims[] = {[QN_DIM_PARALLEL] = "parallel ",
                                       [QN_DIM_REDUCTION] = "reduction ",
                                       [QN_DIM_SEQUENTIAL] = "sequential "};
    const qn_inst *x = &p->k->inst[i];
    switch (x->op) {
    case QN_I_CONST:
        qn__text_add(p->out, "const ");
        add_literal(p->out, x->type, x->imm);
        return;
    case QN_I_PARAM:
        qn__text_add(p->out, "param ");
        add_param_name(p, x->imm);
        if (qn__has_parts(p->k->param[x->imm].dtype))
            qn__text_add(p->out, " part %d", x->sub);
        return;
    case QN_I_EXTENT:
    case QN_I_LOWER:
        qn__text_add(p->out, x->op == QN_I_EXTENT ? "extent " : "lower ");
        add_param_name(p, x->imm);
        qn__text_add(p->out, ", %d", x->sub);
        return;
    case QN_I_LOOKUP:
        qn__text_add(p->out, "lookup ");
        add_array_name(p, (int)x->imm);
        qn__text_add(p->out, "[");
        add_value(p, qn__args(p->k, i)[0]);
        qn__text_add(p->out, "]");
        return;
    case QN_I_LOAD:
        qn__text_add(p->out, "load ");
        add_access(p, i);
        return;
    case QN_I_ATOMIC:
        qn__text_add(p->out, "atomic %s ", qn__combine_name(x->sub));
        add_access(p, i);
        return;
    case QN_I_DIM:
        qn__text_add(p->out, "%s", dims[x->sub]);
        break;
    case QN_I_CAST:
        qn__text_add(p->out, "cast ");
        break;
    case QN_I_BITCAST:
        qn__text_add(p->out, "bitcast ");
        break;
    default:
        qn__text_add(p->out, "%s ", qn__op_info[qn__pure(x)].name);
        break;
    }
    add_values(p, qn__args(p->k, i), x->n_args);
}

/** Prints "load x[%1]" as the definition of the old value. */
static void add_old_value(printer *p, uint32_t update)
{
    add_indent(p);
    add_typed(p, p->k->inst[update].region[0]);
    qn__text_add(p->out, " = load ");
    add_access(p, update);
    qn__text_add(p->out, ";\n");
}

/** An update as what it is built of: a load of the element, the ops, and a store of what they give.
 */
static void add_update(printer *p, uint32_t i)
{
    const qn_inst *x = &p->k->inst[i];
    uint32_t yield = x->region[1] - 1;
    add_old_value(p, i);
    for (uint32_t j = x->region[0] + 1; j < yield; j++)
        add_statement(p, j);
    add_indent(p);
    qn__text_add(p->out, "store ");
    add_access(p, i);
    qn__text_add(p->out, ", ");
    add_value(p, qn__args(p->k, yield)[0]);
    qn__text_add(p->out, ";\n");
}

/** Notes the line on which instruction i begins. */
static void note_line(printer *p, uint32_t i)
{
    for (; p->line && p->n_counted < p->out->n; p->n_counted++)
        p->n_lines += p->out->data[p->n_counted] == '\n';
    if (p->line)
        p->line[i] = 1 + p->n_lines;
}

/** The message of an assertion or print, and the operands from `first` on, which it shows. */
static void add_message(printer *p, uint32_t i, int first)
{
    const qn_inst *x = &p->k->inst[i];
    add_string(p->out, p->k->message[x->imm]);
    qn__text_add(p->out, "%s", x->n_args > first ? " " : "");
    add_values(p, qn__args(p->k, i) + first, x->n_args - first);
}

static void add_statement(printer *p, uint32_t i)
{
    const qn_inst *x = &p->k->inst[i];
    note_line(p, i);
    if (x->op == QN_I_RESULT || x->op == QN_I_VIEW || (x->op == QN_I_YIELD && x->n_args == 0))
        return;
    if (qn__is_update(x)) {
        add_update(p, i);
        return;
    }
    add_indent(p);
    switch (x->op) {
    case QN_I_IF:
        add_if(p, i);
        break;
    case QN_I_FOR:
        add_for(p, i);
        break;
    case QN_I_WHILE:
        add_while(p, i);
        break;
    case QN_I_REDUCE:
        add_reduce(p, i);
        break;
    case QN_I_YIELD:
        qn__text_add(p->out, "yield ");
        add_values(p, qn__args(p->k, i), x->n_args);
        break;
    case QN_I_STORE:
        qn__text_add(p->out, "store ");
        add_access(p, i);
        break;
    case QN_I_CALL:
        add_call(p, i);
        break;
    case QN_I_ASSERT:
        qn__text_add(p->out, "assert ");
        add_value(p, qn__args(p->k, i)[0]);
        qn__text_add(p->out, " ");
        add_message(p, i, 1);
        break;
    case QN_I_PRINT:
        qn__text_add(p->out, "print ");
        add_message(p, i, 0);
        break;
    case QN_I_RETURN:
        qn__text_add(p->out, "return ");
        add_values(p, qn__args(p->k, i), x->n_args);
        break;
    default:
        add_typed(p, i);
        qn__text_add(p->out, " = ");
        add_expression(p, i);
        break;
    }
    qn__text_add(p->out, ";\n");
}

/* -------------------------------------------------------------------------------------- kernels */

/** " {extent 0 dynamic, extent 0 multiple_of 16}": what is pinned of a parameter. */
static void add_pins(printer *p, const qn_kernel_parameter *a)
{
    static const char *const kinds[QN_PIN_KINDS] = {"extent ", "stride ", "lower ", ""};
    const char *before = " {";
    for (int of = 0; of < QN_PIN_KINDS; of++)
        for (int d = 0; d < QN_MAX_RANK; d++) {
            char number[32] = "";
            if (of != QN_PIN_SCALAR)
                snprintf(number, sizeof number, "%s%d ", kinds[of], d);
            if ((a->pinned.constant[of] | a->pinned.dynamic[of]) >> d & 1) {
                qn__text_add(p->out, "%s%s%s", before, number,
                             a->pinned.constant[of] >> d & 1 ? "constexpr" : "dynamic");
                before = ", ";
            }
            if (a->pinned.exponent[of][d]) {
                qn__text_add(p->out, "%s%smultiple_of %d", before, number,
                             1 << a->pinned.exponent[of][d]);
                before = ", ";
            }
        }
    if (before[0] == ',')
        qn__text_add(p->out, "}");
}

static void add_param(printer *p, int i)
{
    const qn_kernel_parameter *a = &p->k->param[i];
    qn__text_add(p->out, a->rank < 0 ? "  scalar " : "  view ");
    add_param_name(p, (uint64_t)i);
    qn__text_add(p->out, ": ");
    if (a->record)
        qn__record_print(a->record, p->out);
    else
        qn__text_add(p->out, "%s", qn_dtype_name(a->dtype));
    if (a->rank >= 0)
        qn__text_add(p->out, "[%d]", (int)a->rank);
    add_words(p->out, qn__trait_words, a->traits);
    add_pins(p, a);
    qn__text_add(p->out, ";\n");
}

static void add_array(printer *p, int i)
{
    const qn_elements *e = p->k->array[i];
    qn__text_add(p->out, "  array ");
    add_array_name(p, i);
    qn__text_add(p->out, ": %s = ", qn_dtype_name(e->dtype));
    for (int j = 0; j < e->n; j++) {
        qn__text_add(p->out, "%s", j ? ", " : "");
        add_literal(p->out, e->dtype, e->bits[j]);
    }
    qn__text_add(p->out, ";\n");
}

/** A kernel or the body of a function, alone. `line`: [n_insts], where each instruction stands, or
 * NULL. */
static void print_body(const qn_kernel *k, bool anonymous, uint32_t *line, qn_text *out)
{
    printer p = {.k = k, .out = out, .is_anonymous = anonymous, .depth = 1, .line = line};
    p.number = qn__zalloc(k->n_insts, sizeof *p.number);
    if (!p.number) {
        out->failed = true;
        return;
    }
    while (is_taken(&p))
        p.n_underscores++;
    bool is_function = k->n_insts > 1 && k->inst[k->n_insts - 1].op == QN_I_RETURN;
    qn__text_add(out, is_function ? "function " : "kernel ");
    add_string(out, anonymous ? "k" : k->name);
    add_words(out, qn__flag_words, k->flags);
    qn__text_add(out, " {\n");
    for (int i = 0; i < k->n_params; i++)
        add_param(&p, i);
    for (int i = 0; i < k->n_arrays; i++)
        add_array(&p, i);
    for (uint32_t i = 1; i < k->n_insts; i = k->inst[i].region[2])
        add_statement(&p, i);
    qn__text_add(out, "}\n");
    qn__free(p.number);
}

static void print_all(const qn_kernel *k, bool anonymous, uint32_t *line, qn_text *out)
{
    for (int i = 0; i < k->n_functions; i++)
        if (!k->function[i]->keyword_bytes)
            print_body(&k->function[i]->body, false, NULL, out);
    print_body(k, anonymous, line, out);
}

void qn__print(const qn_kernel *k, bool anonymous, qn_text *out)
{
    print_all(k, anonymous, NULL, out);
}

bool qn__print_lines(const qn_kernel *k, uint32_t *line)
{
    qn_text text = {0};
    print_all(k, true, line, &text);
    bool is_complete = !text.failed;
    qn__text_release(&text);
    return is_complete;
}

size_t qn_function_print(const qn_function *f, char *buffer, size_t buffer_bytes)
{
    return qn_kernel_print(f ? &f->body : NULL, buffer, buffer_bytes);
}

size_t qn_kernel_print(const qn_kernel *k, char *buffer, size_t buffer_bytes)
{
    qn_text out = {0};
    if (k)
        qn__print(k, false, &out);
    size_t n = out.failed ? 0 : out.n;
    if (out.failed)
        qn__text_release(&out);
    qn__text_out(&out, buffer, buffer_bytes);
    qn__text_release(&out);
    return n;
}
