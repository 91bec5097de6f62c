/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead.c: `quern bundle` and `quern object` compile kernels for processors that are not here. The
 * words behind the output are groups, each a file of a kernel with what belongs to it; options
 * before the first file hold for all.
 */
#include "tool.h"

#include "quern/cache.h"
#include "quern/object.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ISAS = 8 };

/* What is done with each kernel and instruction set; `name` is that of --name, or NULL. */
typedef struct maker {
    const tool_manner *how;
    const char *command;
    json *j; /* member "versions" is open; NULL: text */
    int (*make)(void *arg, const tool_job *job, const char *name, const qn_options *o);
    void *arg;
    bool has_names; /* --name is allowed */
} maker;

/* What is taken out of the words of a group, as the other commands have nothing of it. */
typedef struct extra {
    int32_t isa[MOST_ISAS];
    int n_isas;
    const char *name;
} extra;

/* ---------------------------------------------------------------- instruction sets */

/* The instruction sets of "v3,v4". */
static int parse_isas(const char *text, int32_t *isa, int *n)
{
    *n = 0;
    for (const char *at = text; *at; at += *at == ',') {
        size_t length = strcspn(at, ",");
        if (*n == MOST_ISAS)
            return tool_fail(EXIT_USAGE, "--isa %s: more than %d instruction sets", text,
                             MOST_ISAS);
        if (!isa_parse(at, length, &isa[*n]) || isa[*n] == QN_ISA_AUTO)
            return tool_fail(
                EXIT_USAGE,
                "--isa %s: expected v3, v4, neon or sm_70 to sm_90, with commas between them",
                text);
        at += length;
        ++*n;
    }
    return *n ? EXIT_OK : tool_fail(EXIT_USAGE, "--isa: a value is missing");
}

/* The value of option `name` at word *i, also written name=value; NULL if it is another word. */
static const char *value_at(int argc, char **argv, int *i, const char *name)
{
    size_t n = strlen(name);
    if (strncmp(argv[*i], name, n) != 0 || (argv[*i][n] != 0 && argv[*i][n] != '='))
        return NULL;
    if (argv[*i][n] == '=')
        return argv[*i] + n + 1;
    return *i + 1 < argc ? argv[++*i] : "";
}

/* Takes --isa and --name out of the words of a group. */
static int take_extra(const maker *m, int *argc, char **argv, extra *x)
{
    int kept = 0, status = EXIT_OK;
    const char *value;
    *x = (extra){.isa = {QN_ISA_V3, QN_ISA_V4}, .n_isas = 2};
    for (int i = 0; i < *argc && status == EXIT_OK; i++) {
        if ((value = value_at(*argc, argv, &i, "--isa")) != NULL)
            status = parse_isas(value, x->isa, &x->n_isas);
        else if (m->has_names && (value = value_at(*argc, argv, &i, "--name")) != NULL)
            x->name = value;
        else
            argv[kept++] = argv[i];
    }
    *argc = kept;
    return status;
}

/* ---------------------------------------------------------------- one kernel */

/* Without values there are no facts: code is generic, and arguments are left out. */
static int open_job(const tool_line *line, tool_job *job)
{
    if (line->n_args > 0 || (line->launch.specialize != QN_SPECIALIZE_AUTO &&
                             line->launch.specialize != QN_SPECIALIZE_GENERIC))
        return job_open_here(line, job);
    qn_error err = {0};
    *job = (tool_job){.options = line->launch};
    job->options.specialize = QN_SPECIALIZE_GENERIC;
    int status = kernel_read(line->kernel_path, &job->kernel);
    if (status == EXIT_OK && qn_context_new(&line->context, &job->context, &err) != QN_OK)
        status = tool_fail(EXIT_ERROR, "%s", err.message);
    return status;
}

static const char *specialize_name(int32_t specialize)
{
    return specialize == QN_SPECIALIZE_GENERIC   ? "generic"
           : specialize == QN_SPECIALIZE_DYNAMIC ? "dynamic"
                                                 : "exact";
}

/* A version that was made: a line, or an object. */
static void tell(const maker *m, const tool_job *job, const char *name, const qn_options *o)
{
    const char *shown = m->has_names && name ? name : qn_kernel_name(job->kernel);
    const char *isa = isa_name(o->isa);
    if (!m->j) {
        printf("%s %s %s\n", shown, isa, specialize_name(o->specialize));
        return;
    }
    json_open(m->j, NULL, '{');
    json_text(m->j, "name", shown);
    json_text(m->j, "isa", isa);
    json_text(m->j, "specialize", specialize_name(o->specialize));
    json_close(m->j);
}

static int make_kernel(const maker *m, int argc, char **argv)
{
    tool_line line;
    tool_job job = {0};
    extra x;
    int status = take_extra(m, &argc, argv, &x);
    if (status == EXIT_OK)
        status = line_parse(m->how, argc, argv, &line);
    if (status != EXIT_OK)
        return status;
    if (line.is_cuda || line.launch.executor)
        return tool_fail(EXIT_USAGE,
                         "%s: --target, --executor and --threads are chosen where the code runs; "
                         "--isa sm_80 is for a GPU",
                         m->command);
    line.context.disk_cache = "off"; /* what is made is kept elsewhere */
    status = open_job(&line, &job);
    for (int i = 0; i < x.n_isas && status == EXIT_OK; i++) {
        qn_options o = job.options;
        o.isa = x.isa[i];
        progress_show(m->how, "compiling %s for %s", qn_kernel_name(job.kernel),
                      isa_name(o.isa));
        status = m->make(m->arg, &job, x.name, &o);
        progress_clear();
        if (status == EXIT_OK)
            tell(m, &job, x.name, &o);
    }
    job_close(&job);
    return status;
}

/* ---------------------------------------------------------------- groups */

/* Whether a word names a file of a kernel: it is neither an option, nor the value of one, nor
 * NAME=VALUE. */
static bool is_file(int argc, char **argv, int i)
{
    (void)argc;
    if (argv[i][0] == '-' && argv[i][1] != 0)
        return false;
    if (i > 0 && argv[i - 1][0] == '-' && argv[i - 1][1] == '-' && !strchr(argv[i - 1], '=') &&
        (option_has_value(argv[i - 1]) || strcmp(argv[i - 1], "--name") == 0))
        return false;
    return !strchr(argv[i], '=');
}

/* Makes one group, of copies of the words, as parsing cuts them. */
static int make_group(const maker *m, char *const *common, int n_common, char *const *own,
                      int n_own)
{
    int n = n_common + n_own, status = EXIT_OK;
    char **words = calloc((size_t)n + 1, sizeof *words),
         **copies = calloc((size_t)n + 1, sizeof *copies);
    bool has_memory = words && copies;
    for (int i = 0; i < n && has_memory; i++) {
        const char *from = i < n_common ? common[i] : own[i - n_common];
        size_t bytes = strlen(from) + 1;
        words[i] = copies[i] = malloc(bytes);
        has_memory = copies[i] != NULL;
        if (has_memory)
            memcpy(copies[i], from, bytes);
    }
    status = has_memory ? make_kernel(m, n, words) : tool_fail(EXIT_ERROR, "out of memory");
    for (int i = 0; i < n && copies; i++)
        free(copies[i]);
    free(copies);
    free(words);
    return status;
}

static int make_all(const maker *m, int argc, char **argv)
{
    int first = 0, status = EXIT_OK;
    while (first < argc && !is_file(argc, argv, first))
        first++;
    if (first == argc)
        return tool_fail(EXIT_USAGE, "%s: the file of a kernel is missing", m->command);
    for (int at = first; at < argc && status == EXIT_OK;) {
        int end = at + 1;
        while (end < argc && !is_file(argc, argv, end))
            end++;
        status = make_group(m, argv, first, argv + at, end - at);
        at = end;
    }
    return status;
}

/* ---------------------------------------------------------------- bundle */

typedef struct bundle {
    const char *folder;
    int n;
} bundle;

static int add_to_bundle(void *arg, const tool_job *job, const char *name, const qn_options *o)
{
    (void)name;
    bundle *b = arg;
    qn_error err = {0};
    qn_status status = qn_bundle_add(job->context, b->folder, job->kernel, job->n,
                                     job->n ? job->arg : NULL, o, &err);
    if (status != QN_OK)
        return tool_fail(EXIT_ERROR, "%s: %s", qn_status_name((int)status), err.message);
    b->n++;
    return EXIT_OK;
}

/* Makes all versions; with --json, "versions" of the object that *j becomes. */
static int make_and_tell(maker *m, json *j, int argc, char **argv)
{
    if (!m->how->json)
        return make_all(m, argc, argv);
    if (!json_begin(j, m->command))
        return tool_fail(EXIT_ERROR, "out of memory");
    m->j = j;
    json_open(j, "versions", '[');
    int status = make_all(m, argc, argv);
    json_close(j);
    return status;
}

int command_bundle(const tool_manner *how, int argc, char **argv)
{
    if (argc < 1 || argv[0][0] == '-' || strchr(argv[0], '='))
        return tool_fail(EXIT_USAGE, "bundle: expected a folder, then files of kernels");
    bundle b = {.folder = argv[0]};
    json j = {0};
    maker m = {.how = how, .command = "bundle", .make = add_to_bundle, .arg = &b};
    int status = make_and_tell(&m, &j, argc - 1, argv + 1);
    if (status == EXIT_OK && how->json)
        json_text(&j, "folder", b.folder);
    else if (status == EXIT_OK)
        printf("%d versions in %s\n", b.n, b.folder);
    return json_end(&j, status);
}

/* ---------------------------------------------------------------- object */

typedef struct object {
    qn_object *object;
    int n;
} object;

static int add_to_object(void *arg, const tool_job *job, const char *name, const qn_options *o)
{
    object *x = arg;
    qn_error err = {0};
    qn_status status = qn_object_add(x->object, job->context, name, job->kernel, job->n,
                                     job->n ? job->arg : NULL, o, &err);
    if (status != QN_OK)
        return tool_fail(EXIT_ERROR, "%s: %s", qn_status_name((int)status), err.message);
    x->n++;
    return EXIT_OK;
}

/* Bytes of a file. */
typedef struct content {
    char *data;
    size_t n;
} content;

static void write_content(const void *arg, FILE *f)
{
    const content *c = arg;
    fwrite(c->data, 1, c->n, f);
}

static int write_files(const object *x, const char *object_path, const char *header_path)
{
    content c[2] = {{NULL, qn_object_file(x->object, NULL, 0)},
                    {NULL, qn_object_header(x->object, NULL, 0)}};
    const char *path[2] = {object_path, header_path};
    int status = EXIT_OK;
    for (int i = 0; i < 2; i++)
        c[i].data = malloc(c[i].n + 1);
    if (!c[0].n || !c[1].n || !c[0].data || !c[1].data)
        status = tool_fail(EXIT_ERROR, "out of memory");
    if (status == EXIT_OK) {
        qn_object_file(x->object, c[0].data, c[0].n);
        qn_object_header(x->object, c[1].data, c[1].n + 1);
    }
    for (int i = 0; i < 2 && status == EXIT_OK; i++)
        if (!file_write(path[i], write_content, &c[i]))
            status = tool_fail(EXIT_ERROR, "%s: cannot be written: %s", path[i], strerror(errno));
    free(c[0].data);
    free(c[1].data);
    return status;
}

int command_object(const tool_manner *how, int argc, char **argv)
{
    object x = {.n = 0};
    qn_error err = {0};
    json j = {0};
    maker m = {
        .how = how, .command = "object", .make = add_to_object, .arg = &x, .has_names = true};
    if (argc < 2 || argv[0][0] == '-' || argv[1][0] == '-' || strchr(argv[0], '=') ||
        strchr(argv[1], '='))
        return tool_fail(EXIT_USAGE,
                         "object: expected an object file, a header, then files of kernels");
    if (qn_object_new(&x.object, &err) != QN_OK)
        return tool_fail(EXIT_ERROR, "%s", err.message);
    int status = make_and_tell(&m, &j, argc - 2, argv + 2);
    if (status == EXIT_OK)
        status = write_files(&x, argv[0], argv[1]);
    if (status == EXIT_OK && how->json) {
        json_text(&j, "object", argv[0]);
        json_text(&j, "header", argv[1]);
    } else if (status == EXIT_OK) {
        printf("%d functions in %s, declared in %s\n", x.n, argv[0], argv[1]);
    }
    qn_object_release(x.object);
    return json_end(&j, status);
}
