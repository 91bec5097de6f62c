/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c: the commands run, print, asm and explain, and what they share with bench: reading a kernel
 * and binding its parameters.
 */
#include "npy.h"
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KERNEL_LIMIT = 16 << 20 };

/* ---------------------------------------------------------------- kernel */

/* Reads a whole file; the caller frees *text. */
static int read_file(FILE *f, const char *path, char **text, size_t *n)
{
    size_t capacity = 1 << 16;
    char *data = malloc(capacity);
    *n = 0;
    while (data) {
        *n += fread(data + *n, 1, capacity - *n, f);
        if (*n < capacity)
            break;
        if (capacity >= KERNEL_LIMIT) {
            free(data);
            return tool_fail(EXIT_ERROR, "%s: longer than %d bytes", path, KERNEL_LIMIT);
        }
        char *more = realloc(data, capacity *= 2);
        if (!more)
            free(data);
        data = more;
    }
    if (!data)
        return tool_fail(EXIT_ERROR, "%s: out of memory", path);
    if (ferror(f)) {
        free(data);
        return tool_fail(EXIT_ERROR, "%s: cannot be read: %s", path, strerror(errno));
    }
    *text = data;
    return EXIT_OK;
}

int kernel_read(const char *path, qn_kernel **out)
{
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *f = is_stdin ? stdin : fopen(path, "rb");
    if (!f)
        return tool_fail(EXIT_ERROR, "%s: cannot be opened: %s", path, strerror(errno));
    char *text = NULL;
    size_t n;
    qn_error err = {0};
    int status = read_file(f, path, &text, &n);
    if (!is_stdin)
        fclose(f);
    if (status == EXIT_OK && qn_kernel_parse(text, n, out, &err) != QN_OK)
        status = tool_fail(EXIT_ERROR, "%s: %s", path, err.message);
    free(text);
    return status;
}

int command_print(const char *path)
{
    qn_kernel *k = NULL;
    int status = kernel_read(path, &k);
    if (status != EXIT_OK)
        return status;
    size_t n = qn_kernel_print(k, NULL, 0);
    char *text = malloc(n + 1);
    if (text) {
        qn_kernel_print(k, text, n + 1);
        fputs(text, stdout);
        if (n && text[n - 1] != '\n')
            putchar('\n');
    }
    free(text);
    qn_kernel_release(k);
    return text ? EXIT_OK : tool_fail(EXIT_ERROR, "out of memory");
}

/* ---------------------------------------------------------------- arguments */

static const char *find_pair(const tool_pair *pairs, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(pairs[i].name, name) == 0)
            return pairs[i].text;
    return NULL;
}

static int find_param(const qn_kernel *k, const char *name, qn_param_info *info)
{
    for (int i = 0; i < qn_kernel_n_params(k); i++)
        if (qn_kernel_param(k, i, info, sizeof *info, NULL) == QN_OK && strcmp(info->name, name) == 0)
            return i;
    return -1;
}

static int check_names(const tool_line *line, const qn_kernel *k)
{
    qn_param_info info;
    for (int i = 0; i < line->n_args; i++)
        if (find_param(k, line->arg[i].name, &info) < 0)
            return tool_fail(EXIT_ERROR, "kernel %s has no parameter %s", qn_kernel_name(k),
                             line->arg[i].name);
    for (int i = 0; i < line->n_outs; i++)
        if (find_param(k, line->out[i].name, &info) < 0 || info.rank < 0)
            return tool_fail(EXIT_ERROR, "--out: kernel %s has no array %s", qn_kernel_name(k),
                             line->out[i].name);
    return EXIT_OK;
}

static int bind_param(const tool_line *line, tool_job *job, int i)
{
    qn_param_info info;
    qn_error err = {0};
    if (qn_kernel_param(job->kernel, i, &info, sizeof info, &err) != QN_OK)
        return tool_fail(EXIT_ERROR, "%s", err.message);
    const char *text = find_pair(line->arg, line->n_args, info.name);
    if (!text && info.rank < 0)
        return tool_fail(EXIT_ERROR, "scalar %s: %s has no value: add %s=NUMBER", info.name,
                         qn_dtype_name(info.dtype), info.name);
    if (!text)
        return tool_fail(
            EXIT_ERROR, "array %s: %s of rank %d has no value: add %s=FILE.npy or %s=zeros:%s[...]",
            info.name, qn_dtype_name(info.dtype), info.rank, info.name, info.name,
            qn_dtype_name(info.dtype));
    if (info.rank < 0)
        return scalar_make(info.name, text, info.dtype, &job->arg[i]);
    int status = array_make(job->context, info.name, text, line->is_left != 0, &job->view[i]);
    job->arg[i] = qn_arg_view(&job->view[i]);
    return status;
}

/* Shows a line that the kernel printed. */
static void show_line(void *arg, const qn_printed *line)
{
    (void)arg;
    fprintf(stderr, "%s\n", line->text);
}

int job_open_here(const tool_line *line, tool_job *job)
{
    qn_error err = {0};
    *job = (tool_job){0};
    int status = kernel_read(line->kernel_path, &job->kernel);
    if (status == EXIT_OK)
        status = check_names(line, job->kernel);
    if (status == EXIT_OK && qn_context_new(&line->context, &job->context, &err) != QN_OK)
        status = tool_fail(EXIT_ERROR, "%s", err.message);
    if (status == EXIT_OK)
        job->n = qn_kernel_n_params(job->kernel);
    for (int i = 0; i < job->n && status == EXIT_OK; i++)
        status = bind_param(line, job, i);
    job->options = line->launch;
    if (status == EXIT_OK && line->pins) {
        if (qn_options_parse(line->pins, job->kernel, &job->pinned, &err) != QN_OK)
            return tool_fail(EXIT_USAGE, "--pins: %s", err.message);
        job->options.pins = job->pinned->pins;
        job->options.n_pins = job->pinned->n_pins;
    }
    job->options.print = line->lines ? show_line : NULL;
    return status;
}

/* Gives an array a copy in the memory of the GPU, with the same layout. */
static qn_status copy_there(tool_job *job, int i, qn_error *err)
{
    const qn_view *v = &job->view[i];
    const qn_alloc_options o = {.bytes = sizeof o, .label = v->label, .space = QN_SPACE_CUDA, .stream = job->stream};
    qn_view_type type;
    qn_status status = qn_view_type_init(v->dtype, v->layout.rank, NULL, QN_FAMILY_ANY, &type, err);
    type.space = QN_SPACE_CUDA;
    if (status == QN_OK)
        status = qn_view_create_layout(job->context, &type, &v->layout, &o, &job->there[i], err);
    if (status == QN_OK)
        status = qn_stream_copy(job->stream, &job->there[i], v, err);
    job->arg[i] = qn_arg_view(&job->there[i]);
    return status;
}

int job_open(const tool_line *line, tool_job *job)
{
    qn_error err = {0};
    int status = job_open_here(line, job);
    if (status != EXIT_OK || !line->is_cuda)
        return status;
    qn_status moved = qn_stream_new(job->context, 0, &job->stream, &err);
    for (int i = 0; i < job->n && moved == QN_OK; i++)
        if (job->arg[i].view)
            moved = copy_there(job, i, &err);
    job->options.executor = QN_CUDA;
    job->options.stream = job->stream;
    return moved == QN_OK ? EXIT_OK : tool_fail(EXIT_ERROR, "--target cuda: %s", err.message);
}

void job_close(tool_job *job)
{
    for (int i = 0; i < QN_MAX_PARAMS; i++) {
        qn_view_release(&job->view[i]);
        qn_view_release(&job->there[i]);
    }
    qn_stream_release(job->stream);
    qn_kernel_release(job->kernel);
    qn_context_release(job->context);
    qn_options_release(job->pinned);
    *job = (tool_job){0};
}

/* ---------------------------------------------------------------- run */

static void print_stats(const qn_context *c)
{
    qn_counters counters;
    qn_context_counters(c, &counters, sizeof counters);
#define QN_X(name, text) printf("%-18s %" PRId64 "\n", #name, counters.name);
    QN_COUNTER_LIST(QN_X)
#undef QN_X
    size_t n = qn_context_history(c, NULL, 0);
    char *text = malloc(n + 1);
    if (text && n > 0) {
        qn_context_history(c, text, n + 1);
        printf("history:\n%s%s", text, text[n - 1] == '\n' ? "" : "\n");
    }
    free(text);
}

static int write_outputs(const tool_line *line, const tool_job *job)
{
    for (int i = 0; i < line->n_outs; i++) {
        qn_param_info info;
        char why[NPY_MESSAGE];
        int p = find_param(job->kernel, line->out[i].name, &info);
        if (!npy_write(&job->view[p], line->out[i].text, why))
            return tool_fail(EXIT_ERROR, "%s", why);
        printf("wrote %s to %s\n", info.name, line->out[i].text);
    }
    return EXIT_OK;
}

/* Copies the arrays that the kernel wrote back from the GPU; errors of the kernel are known then. */
static qn_status copy_back(const tool_job *job, qn_error *err)
{
    qn_status status = QN_OK;
    qn_param_info info;
    for (int i = 0; i < job->n && status == QN_OK; i++)
        if (job->view[i].data && qn_kernel_param(job->kernel, i, &info, sizeof info, NULL) == QN_OK && info.is_written)
            status = qn_stream_copy(job->stream, &job->view[i], &job->there[i], err);
    return status ? status : qn_stream_fence(job->stream, err);
}

static int launch_all(const tool_line *line, const tool_job *job)
{
    qn_error err = {0};
    int repeat = line->repeat ? line->repeat : 1;
    qn_status status = QN_OK;
    for (int i = 0; i < repeat && status == QN_OK; i++)
        status = qn_launch(job->context, job->kernel, job->n, job->arg, &job->options, &err);
    if (status == QN_OK && job->stream)
        status = copy_back(job, &err);
    if (status == QN_OK)
        return EXIT_OK;
    return tool_fail(EXIT_ERROR, "%s: %s: %s", line->kernel_path, qn_status_name(err.status), err.message);
}

int command_run(const tool_line *line)
{
    tool_job job;
    int status = job_open(line, &job);
    if (status == EXIT_OK)
        status = launch_all(line, &job);
    for (int i = 0; i < job.n && status == EXIT_OK; i++) {
        qn_param_info info;
        if (line->show > 0 && qn_kernel_param(job.kernel, i, &info, sizeof info, NULL) == QN_OK &&
            info.is_written)
            array_show(info.name, &job.view[i], line->show);
    }
    if (status == EXIT_OK)
        status = write_outputs(line, &job);
    if (line->stats && job.context)
        print_stats(job.context);
    job_close(&job);
    return status;
}

/* ---------------------------------------------------------------- asm */

static int print_stage(const qn_code *f, int stage)
{
    size_t n = qn_code_text(f, stage, NULL, 0);
    char *text = malloc(n + 1);
    if (!text)
        return tool_fail(EXIT_ERROR, "out of memory");
    if (n > 0) {
        qn_code_text(f, stage, text, n + 1);
        printf("%s%s", text, text[n - 1] == '\n' ? "" : "\n");
    }
    free(text);
    return n > 0 ? EXIT_OK
                 : tool_fail(EXIT_ERROR, "this stage does not exist for the kernel on this engine");
}

int command_asm(const tool_line *line)
{
    tool_job job;
    qn_code *f = NULL;
    qn_error err = {0};
    qn_options o = line->launch;
    if (o.engine == QN_ENGINE_AUTO)
        o.engine = QN_ENGINE_X86;
    if (line->is_cuda && o.isa == QN_ISA_AUTO)
        o.isa = QN_ISA_SM90;
    int status = job_open_here(line, &job);
    o.pins = job.options.pins;
    o.n_pins = job.options.n_pins;
    if (status == EXIT_OK &&
        qn_specialize(job.context, job.kernel, job.n, job.arg, &o, &f, &err) != QN_OK)
        status = tool_fail(EXIT_ERROR, "%s: %s: %s", line->kernel_path, qn_status_name(err.status),
                           err.message);
    if (status == EXIT_OK)
        status = print_stage(f, o.isa >= QN_ISA_SM70 && line->stage == QN_DUMP_ASM ? QN_DUMP_PTX : line->stage);
    qn_code_release(f);
    job_close(&job);
    return status;
}

/* ---------------------------------------------------------------- explain */

int command_explain(const tool_line *line)
{
    tool_job job;
    qn_error err = {0};
    size_t n = 0;
    char *text = NULL;
    int status = job_open(line, &job);
    if (status == EXIT_OK && line->repeat)
        status = launch_all(line, &job);
    qn_context *c = job.context;
    if (status == EXIT_OK &&
        (qn_explain(c, job.kernel, job.n, job.arg, &job.options, NULL, 0, &n, &err) != QN_OK ||
         !(text = malloc(n + 1)) ||
         qn_explain(c, job.kernel, job.n, job.arg, &job.options, text, n + 1, NULL, &err) != QN_OK))
        status = tool_fail(EXIT_ERROR, "%s: %s", line->kernel_path,
                           err.status ? err.message : "out of memory");
    if (status == EXIT_OK)
        fputs(text, stdout);
    free(text);
    job_close(&job);
    return status;
}
