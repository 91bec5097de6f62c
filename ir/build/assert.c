/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assert.c: assertions and prints. Their messages are a table of the kernel, each once.
 */
#include "ir/build/builder.h"
#include "ir/function.h"

#include <string.h>

int qn__list_message(char **list, int32_t *n, const char *message)
{
    for (int i = 0; i < *n; i++)
        if (strcmp(list[i], message) == 0)
            return i;
    if (*n == QN_MAX_MESSAGES)
        return -1;
    list[*n] = qn__strdup(message);
    return list[*n] ? (*n)++ : -2;
}

bool qn__has_assertions(const qn_kernel *k)
{
    bool has = k->n_messages > 0;
    for (int i = 0; i < k->n_functions; i++)
        has |= k->function[i]->body.n_messages > 0;
    return has;
}

/** The number of a message in the builder; -1 after an error. */
static int use_message(qn_builder *b, const char *who, const char *message)
{
    if (!message || strlen(message) > QN_MAX_MESSAGE_BYTES) {
        qn__builder_fail(b, message ? QN_ERR_LIMIT : QN_ERR_ARGUMENT,
                         message ? "%s: a message of more than %d bytes" : "%s: no message", who,
                         QN_MAX_MESSAGE_BYTES);
        return -1;
    }
    if (!b->message)
        b->message = qn__zalloc(QN_MAX_MESSAGES, sizeof(char *));
    int number = b->message ? qn__list_message(b->message, &b->n_messages, message) : -2;
    if (number == -1)
        qn__builder_fail(b, QN_ERR_LIMIT, "%s: more than %d messages", who, QN_MAX_MESSAGES);
    else if (number < 0)
        qn__builder_fail(b, QN_ERR_MEMORY, "%s: out of memory", who);
    return number;
}

static bool may_show(qn_builder *b, const char *who, const qn_flat *flat)
{
    if (flat->n > QN_MAX_SHOWN)
        qn__builder_fail(b, QN_ERR_LIMIT, "%s: %d values, limit %d", who, flat->n, QN_MAX_SHOWN);
    return flat->n <= QN_MAX_SHOWN;
}

void qn_assert(qn_builder *b, qn_val condition, const char *message, int n, const qn_val *values)
{
    const char *who = "qn_assert";
    uint32_t args[1 + QN_MAX_CARRIED];
    qn_flat flat;
    if (!qn__builder_ready(b, who) || !qn__use(b, who, "condition", condition, &args[0]) ||
        !qn__flatten(b, who, "value", n, values, &flat))
        return;
    if (b->inst[args[0]].type != QN_BOOL) {
        qn__builder_fail(b, QN_ERR_TYPE, "%s: the condition is %s, expected bool", who,
                         qn_dtype_name(b->inst[args[0]].type));
        return;
    }
    if (!may_show(b, who, &flat))
        return;
    int number = use_message(b, who, message);
    if (number < 0 || (qn__is_constant(b, args[0]) && b->inst[args[0]].imm))
        return;
    for (int i = 0; i < flat.n; i++)
        args[1 + i] = qn__number(flat.value[i]);
    qn_inst x = {.op = QN_I_ASSERT, .imm = (uint64_t)number};
    qn__append(b, who, x, 1 + (uint32_t)flat.n, args);
}

void qn_print(qn_builder *b, const char *message, int n, const qn_val *values)
{
    const char *who = "qn_print";
    uint32_t args[QN_MAX_CARRIED];
    qn_flat flat;
    if (!qn__builder_ready(b, who) || !qn__flatten(b, who, "value", n, values, &flat) ||
        !may_show(b, who, &flat))
        return;
    int number = use_message(b, who, message);
    for (int i = 0; i < flat.n; i++)
        args[i] = qn__number(flat.value[i]);
    if (number >= 0)
        qn__append(b, who, (qn_inst){.op = QN_I_PRINT, .imm = (uint64_t)number}, (uint32_t)flat.n,
                   args);
}
