/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c: who is told lines of the log, see log.h. The host's function is not called after it has
 * released the handle of the context.
 */
#include "runtime/log.h"
#include "runtime/context.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool is_heard(const qn_context *c, int32_t level)
{
    return c->options.log && level <= c->options.log_level &&
           !atomic_load_explicit(&c->is_released, memory_order_relaxed);
}

void qn__log(const qn_context *c, int32_t level, const char *line)
{
    if (is_heard(c, level))
        c->options.log(c->options.log_arg, level, line);
}

void qn__log_machine(const qn_context *c, const qn_machine *read, int isa)
{
    if (!is_heard(c, QN_LOG_DETAIL))
        return;
    qn_machine m = *read;
    qn_text text = {0};
    qn__machine_classify(&m, isa);
    qn__machine_print(&m, &text);
    qn__text_bytes(&text, "", 1);
    for (char *line = text.failed ? NULL : text.data, *end;
         line && (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = 0;
        qn__log(c, QN_LOG_DETAIL, line);
    }
    qn__text_release(&text);
}

void qn__log_kernel(const qn_context *c, int32_t level, const char *kernel, const char *format, ...)
{
    if (!is_heard(c, level))
        return;
    char line[QN_LOG_LINE_BYTES];
    va_list ap;
    va_start(ap, format);
    int n = snprintf(line, sizeof line, "kernel \"%.100s\" ", kernel);
    qn__vformat(line + n, sizeof line - (size_t)n, format, ap);
    va_end(ap);
    qn__log(c, level, line);
}
