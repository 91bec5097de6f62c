/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c: the commands run and print, and what all commands with a kernel share: reading it and
 * binding its parameters.
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

/* Reads all that is left of a file; the caller frees *text. */
static int read_all(FILE *f, const char *path, char **text, size_t *n)
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

/* Reads a whole file, "-" is the standard input; the caller frees *text. */
static int read_file(const char *path, char **text, size_t *n)
{
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *f = is_stdin ? stdin : fopen(path, "rb");
    if (!f)
        return tool_fail(EXIT_ERROR, "%s: cannot be opened: %s", path, strerror(errno));
    int status = read_all(f, path, text, n);
    if (!is_stdin)
        fclose(f);
    return status;
}

int kernel_read(const char *path, qn_kernel **out)
{
    char *text = NULL;
    size_t n;
    qn_error err = {0};
    int status = read_file(path, &text, &n);
    if (status == EXIT_OK && qn_kernel_parse(text, n, out, &err) != QN_OK)
        status = tool_fail(EXIT_ERROR, "%s: %s", path, err.message);
    free(text);
    return status;
}

int command_print(const tool_manner *how, const char *path)
{
    qn_kernel *k = NULL;
    json j = {0};
    int status = kernel_read(path, &k);
    if (status != EXIT_OK)
        return status;
    size_t n = qn_kernel_print(k, NULL, 0);
    char *text = malloc(n + 1);
    if (!text || (how->json && !json_begin(&j, "print"))) {
        status = tool_fail(EXIT_ERROR, "out of memory");
    } else {
        qn_kernel_print(k, text, n + 1);
        if (how->json) {
            json_text(&j, "kernel", qn_kernel_name(k));
            json_text(&j, "text", text);
        } else {
            printf("%s%s", text, n && text[n - 1] != '\n' ? "\n" : "");
        }
    }
    free(text);
    qn_kernel_release(k);
    return json_end(&j, status);
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
        if (qn_kernel_param(k, i, info, sizeof *info, NULL) == QN_OK &&
            strcmp(info->name, name) == 0)
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

static int read_schedule(const char *path, tool_job *job)
{
    char *text = NULL;
    size_t n;
    int status = read_file(path, &text, &n);
    if (status != EXIT_OK)
        return status;
    job->schedule = malloc(n + 1);
    if (job->schedule && !memchr(text, 0, n)) {
        memcpy(job->schedule, text, n);
        job->schedule[n] = 0;
        job->options.schedule = job->schedule;
    } else {
        status = tool_fail(EXIT_ERROR, "%s: %s", path,
                           job->schedule ? "no text: it has zero bytes" : "out of memory");
    }
    free(text);
    return status;
}

/* Options written as text: pins, fields of the plan, a schedule. */
static int parse_texts(const tool_line *line, tool_job *job)
{
    qn_error err = {0};
    if (line->pins) {
        if (qn_options_parse(line->pins, job->kernel, &job->pinned, &err) != QN_OK)
            return tool_fail(EXIT_USAGE, "--pins: %s", err.message);
        job->options.pins = job->pinned->pins;
        job->options.n_pins = job->pinned->n_pins;
    }
    if (line->plan) {
        if (qn_options_parse(line->plan, job->kernel, &job->planned, &err) != QN_OK)
            return tool_fail(EXIT_USAGE, "--plan: %s", err.message);
        job->options.plan = job->planned->plan;
        job->options.schedule = job->planned->schedule;
    }
    return line->schedule ? read_schedule(line->schedule, job) : EXIT_OK;
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
    for (int i = 0; i < job->n && status == EXIT_OK; i++) {
        progress_show(&line->how, "making argument %d of %d", i + 1, job->n);
        status = bind_param(line, job, i);
    }
    progress_clear();
    job->options = line->launch;
    if (status == EXIT_OK)
        status = parse_texts(line, job);
    job->options.print = line->lines ? show_line : NULL;
    return status;
}

/* Gives an array a copy in the memory of the GPU, with the same layout. */
static qn_status copy_there(tool_job *job, int i, qn_error *err)
{
    const qn_view *v = &job->view[i];
    const qn_alloc_options o = {
        .bytes = sizeof o, .label = v->label, .space = QN_SPACE_CUDA, .stream = job->stream};
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
    qn_options_release(job->planned);
    free(job->schedule);
    *job = (tool_job){0};
}

/* ---------------------------------------------------------------- run */

/* The history of a context, which the caller frees; NULL without memory. */
static char *read_history(const qn_context *c)
{
    size_t n = qn_context_history(c, NULL, 0);
    char *text = malloc(n + 1);
    if (text) {
        text[0] = 0;
        qn_context_history(c, text, n + 1);
    }
    return text;
}

static void print_stats(const qn_context *c)
{
    qn_counters counters;
    qn_context_counters(c, &counters, sizeof counters);
#define QN_X(name, text) printf("%-18s %" PRId64 "\n", #name, counters.name);
    QN_COUNTER_LIST(QN_X)
#undef QN_X
    char *text = read_history(c);
    size_t n = text ? strlen(text) : 0;
    if (n > 0)
        printf("history:\n%s%s", text, text[n - 1] == '\n' ? "" : "\n");
    free(text);
}

static void print_stats_json(json *j, const qn_context *c)
{
    qn_counters counters;
    qn_context_counters(c, &counters, sizeof counters);
    json_open(j, "counters", '{');
#define QN_X(name, text) json_int(j, #name, counters.name);
    QN_COUNTER_LIST(QN_X)
#undef QN_X
    json_close(j);
    char *text = read_history(c);
    json_lines(j, "history", text ? text : "");
    free(text);
}

static int write_outputs(const tool_line *line, const tool_job *job, json *j)
{
    for (int i = 0; i < line->n_outs; i++) {
        qn_param_info info;
        char why[NPY_MESSAGE];
        int p = find_param(job->kernel, line->out[i].name, &info);
        if (!npy_write(&job->view[p], line->out[i].text, why))
            return tool_fail(EXIT_ERROR, "%s", why);
        if (j) {
            json_open(j, NULL, '{');
            json_text(j, "name", info.name);
            json_text(j, "file", line->out[i].text);
            json_close(j);
        } else {
            printf("wrote %s to %s\n", info.name, line->out[i].text);
        }
    }
    return EXIT_OK;
}

/* Copies the arrays that the kernel wrote back from the GPU; errors of the kernel are known then.
 */
static qn_status copy_back(const tool_job *job, qn_error *err)
{
    qn_status status = QN_OK;
    qn_param_info info;
    for (int i = 0; i < job->n && status == QN_OK; i++)
        if (job->view[i].data &&
            qn_kernel_param(job->kernel, i, &info, sizeof info, NULL) == QN_OK && info.is_written)
            status = qn_stream_copy(job->stream, &job->view[i], &job->there[i], err);
    return status ? status : qn_stream_fence(job->stream, err);
}

int job_launch(const tool_line *line, const tool_job *job)
{
    qn_error err = {0};
    int repeat = line->repeat ? line->repeat : 1;
    qn_status status = QN_OK;
    double shown = 0;
    for (int i = 0; i < repeat && status == QN_OK; i++) {
        if (i == 0 || now_ns() - shown > 1e8) {
            shown = now_ns();
            progress_show(&line->how, "launch %d of %d", i + 1, repeat);
        }
        status = qn_launch(job->context, job->kernel, job->n, job->arg, &job->options, &err);
    }
    if (status == QN_OK && job->stream)
        status = copy_back(job, &err);
    progress_clear();
    if (status == QN_OK)
        return EXIT_OK;
    return tool_fail(EXIT_ERROR, "%s: %s: %s", line->kernel_path, qn_status_name(err.status),
                     err.message);
}

/* Shows the arrays that were written, as text, or in a member of *j. */
static void show_outputs(const tool_line *line, const tool_job *job, json *j)
{
    qn_param_info info;
    if (j)
        json_open(j, "outputs", '[');
    for (int i = 0; i < job->n; i++) {
        if (qn_kernel_param(job->kernel, i, &info, sizeof info, NULL) != QN_OK || !info.is_written)
            continue;
        if (j)
            array_show_json(j, info.name, &job->view[i], line->show);
        else if (line->show > 0)
            array_show(info.name, &job->view[i], line->show);
    }
    if (j)
        json_close(j);
}

/* What a run tells as JSON. */
static int run_json(const tool_line *line, const tool_job *job)
{
    json j;
    if (!json_begin(&j, "run"))
        return tool_fail(EXIT_ERROR, "out of memory");
    json_text(&j, "kernel", qn_kernel_name(job->kernel));
    show_outputs(line, job, &j);
    json_open(&j, "files", '[');
    int status = write_outputs(line, job, &j);
    json_close(&j);
    if (line->stats)
        print_stats_json(&j, job->context);
    return json_end(&j, status);
}

int command_run(const tool_line *line)
{
    tool_job job;
    int status = job_open(line, &job);
    if (status == EXIT_OK)
        status = job_launch(line, &job);
    if (status == EXIT_OK && line->how.json) {
        status = run_json(line, &job);
    } else if (status == EXIT_OK) {
        show_outputs(line, &job, NULL);
        status = write_outputs(line, &job, NULL);
    }
    if (line->stats && job.context && !line->how.json)
        print_stats(job.context);
    job_close(&job);
    return status;
}
