/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history.c: a bounded ring of lines, see history.h.
 */
#include "runtime/history.h"

#include <string.h>

void qn__history_add(qn_history *h, const char *kernel, const char *reason, double milliseconds)
{
    qn_text t = {0};
    qn__text_add(&t, "%.100s: %s", kernel, reason);
    if (milliseconds >= 0)
        qn__text_add(&t, ", %.2f ms", milliseconds);
    if (t.failed || !t.data) {
        qn__text_release(&t);
        return;
    }
    char **line = &h->line[h->n++ % QN_HISTORY_LINES];
    qn__free(*line);
    *line = t.data;
}

bool qn__history_has(const qn_history *h, const char *kernel, const char *reason)
{
    qn_text t = {0};
    qn__text_add(&t, "%.100s: %s", kernel, reason);
    bool found = false;
    for (int i = 0; i < QN_HISTORY_LINES && t.data && !found; i++)
        found = h->line[i] && strcmp(h->line[i], t.data) == 0;
    qn__text_release(&t);
    return found;
}

void qn__history_print(const qn_history *h, qn_text *out)
{
    int64_t first = h->n > QN_HISTORY_LINES ? h->n - QN_HISTORY_LINES : 0;
    for (int64_t i = first; i < h->n; i++)
        qn__text_add(out, "%s\n", h->line[i % QN_HISTORY_LINES]);
}

void qn__history_release(qn_history *h)
{
    for (int i = 0; i < QN_HISTORY_LINES; i++)
        qn__free(h->line[i]);
    memset(h, 0, sizeof *h);
}
