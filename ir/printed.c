/* SPDX-License-Identifier: Apache-2.0 */
/*
 * printed.c: from a row of a buffer (ir/printed.h) to the line that the host gets.
 */
#include "ir/printed.h"

#include <inttypes.h>

static void add_indices(qn_text *t, const char *what, int n, const int64_t *index)
{
    for (int d = 0; d < n; d++)
        qn__text_add(t, "%s%s%s%" PRId64, d ? "," : "; ", d ? "" : what, d ? "" : " (", index[d]);
    qn__text_add(t, n ? ")" : "");
}

/** The text, which is the message alone if there is no memory for more. */
static void finish_text(qn_printed_line *out)
{
    bool has_text = out->text.data && !out->text.failed;
    out->line.text = has_text            ? out->text.data
                     : out->line.message ? out->line.message
                                         : "lost lines";
}

void qn__printed_read(const qn_kernel *k, const int64_t *row, qn_printed_line *out)
{
    const qn_kernel *in;
    uint32_t inst = qn__inst_of_site(k, row[QN_PRINTED_SITE], &in);
    const qn_inst *x = &in->inst[inst];
    *out = (qn_printed_line){.line = {.message = in->message[x->imm], .n_values = x->n_args}};
    qn_printed *line = &out->line;
    qn__text_add(&out->text, "%s", line->message);
    for (int n = 0; n < x->n_args; n++) {
        out->dtype[n] = in->inst[qn__args(in, inst)[n]].type;
        out->bits[n] = (uint64_t)row[QN_PRINTED_INDICES + k->n_dims + n];
        qn__text_add(&out->text, n ? ", " : line->message[0] ? ": " : "");
        qn__text_value(&out->text, out->dtype[n], out->bits[n]);
    }
    for (int d = 0; d < k->n_dims; d++) {
        int64_t index = row[QN_PRINTED_INDICES + d];
        if (!qn__is_reduction(k, d))
            out->index[line->n_indices++] = index;
        else if (row[QN_PRINTED_DIMS] >> d & 1)
            out->point[line->n_points++] = index;
    }
    add_indices(&out->text, "iteration", line->n_indices, out->index);
    add_indices(&out->text, "point", line->n_points, out->point);
    line->dtype = out->dtype;
    line->bits = out->bits;
    line->index = out->index;
    line->point = out->point;
    finish_text(out);
}

void qn__printed_lost(int64_t n, qn_printed_line *out)
{
    *out = (qn_printed_line){.line = {.n_lost = n}};
    qn__text_add(&out->text, "%" PRId64 " more lines were not kept", n);
    finish_text(out);
}

void qn__printed_release(qn_printed_line *line)
{
    qn__text_release(&line->text);
}
