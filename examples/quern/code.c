/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code.c: the commands asm and explain: what the code for some arguments is, and why.
 */
#include "tool.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- asm */

/* The text of a stage, which the caller frees. */
static int stage_text(const qn_code *f, int stage, char **text)
{
    size_t n = qn_code_text(f, stage, NULL, 0);
    if (n == 0)
        return tool_fail(EXIT_ERROR, "this stage does not exist for the kernel on this engine");
    *text = malloc(n + 1);
    if (!*text)
        return tool_fail(EXIT_ERROR, "out of memory");
    qn_code_text(f, stage, *text, n + 1);
    return EXIT_OK;
}

int code_text(const tool_line *line, char **text)
{
    tool_job job;
    qn_code *f = NULL;
    qn_error err = {0};
    int status = job_open_here(line, &job);
    qn_options o = job.options;
    o.print = NULL;
    if (o.engine == QN_ENGINE_AUTO)
        o.engine = QN_ENGINE_NATIVE;
    if (line->is_cuda && o.isa == QN_ISA_AUTO)
        o.isa = QN_ISA_SM90;
    progress_show(&line->how, "compiling");
    if (status == EXIT_OK &&
        qn_specialize(job.context, job.kernel, job.n, job.arg, &o, &f, &err) != QN_OK)
        status = tool_fail(EXIT_ERROR, "%s: %s: %s", line->kernel_path, qn_status_name(err.status),
                           err.message);
    progress_clear();
    if (status == EXIT_OK)
        status = stage_text(
            f, o.isa >= QN_ISA_SM70 && line->stage == QN_DUMP_ASM ? QN_DUMP_PTX : line->stage,
            text);
    qn_code_release(f);
    job_close(&job);
    return status;
}

static const char *stage_name(int stage)
{
#define QN_X(name, bit, text)                                                                      \
    if (stage == QN_DUMP_##name)                                                                   \
        return text;
    QN_DUMP_LIST(QN_X)
#undef QN_X
    return "";
}

int command_asm(const tool_line *line)
{
    char *text = NULL;
    json j = {0};
    int status = code_text(line, &text);
    size_t n = text ? strlen(text) : 0;
    if (status == EXIT_OK && !line->how.json)
        printf("%s%s", text, n && text[n - 1] == '\n' ? "" : "\n");
    if (status == EXIT_OK && line->how.json) {
        if (json_begin(&j, "asm")) {
            json_text(&j, "stage", stage_name(line->stage));
            json_text(&j, "text", text);
        } else {
            status = tool_fail(EXIT_ERROR, "out of memory");
        }
    }
    free(text);
    return json_end(&j, status);
}

/* ---------------------------------------------------------------- explain */

/* Lines "name: text" as objects. */
static int explain_json(const char *text)
{
    json j;
    if (!json_begin(&j, "explain"))
        return tool_fail(EXIT_ERROR, "out of memory");
    json_open(&j, "facts", '[');
    while (*text) {
        char name[32] = "", line[2048];
        size_t n = strcspn(text, "\n"), colon = strcspn(text, ":");
        if (colon < n && colon < sizeof name) {
            memcpy(name, text, colon);
            text += colon + 1;
            n -= colon + 1;
        }
        snprintf(line, sizeof line, "%.*s", (int)n, text);
        json_open(&j, NULL, '{');
        json_text(&j, "name", name);
        json_text(&j, "text", line + (line[0] == ' '));
        json_close(&j);
        text += n + (text[n] == '\n');
    }
    json_close(&j);
    return json_end(&j, EXIT_OK);
}

int command_explain(const tool_line *line)
{
    tool_job job;
    qn_error err = {0};
    size_t n = 0;
    char *text = NULL;
    int status = job_open(line, &job);
    if (status == EXIT_OK && line->repeat)
        status = job_launch(line, &job);
    qn_context *c = job.context;
    if (status == EXIT_OK &&
        (qn_explain(c, job.kernel, job.n, job.arg, &job.options, NULL, 0, &n, &err) != QN_OK ||
         !(text = malloc(n + 1)) ||
         qn_explain(c, job.kernel, job.n, job.arg, &job.options, text, n + 1, NULL, &err) != QN_OK))
        status = tool_fail(EXIT_ERROR, "%s: %s", line->kernel_path,
                           err.status ? err.message : "out of memory");
    if (status == EXIT_OK && line->how.json)
        status = explain_json(text);
    else if (status == EXIT_OK)
        fputs(text, stdout);
    free(text);
    job_close(&job);
    return status;
}
