/* SPDX-License-Identifier: Apache-2.0 */
/* @NAME@: reads the kernel of kernel.qn and runs it on two arrays. */
#include <quern.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 1000 };

/* Reads a whole file; the caller frees the text. NULL where that fails. */
static char *read_text(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *text = malloc(1 << 16);
    *n = f && text ? fread(text, 1, 1 << 16, f) : 0;
    if (f)
        fclose(f);
    if (*n > 0)
        return text;
    free(text);
    return NULL;
}

static qn_status run(qn_context *c, qn_kernel **k, qn_view view[2], qn_error *err)
{
    size_t n_text;
    int64_t n = N;
    char *text = read_text(KERNEL_FILE, &n_text);
    if (!text) {
        snprintf(err->message, sizeof err->message, "%s cannot be read", KERNEL_FILE);
        return err->status = QN_ERR_ARGUMENT;
    }
    qn_status status = qn_kernel_parse(text, n_text, k, err);
    free(text);
    if (status == QN_OK)
        status = qn_view_new(c, "x", QN_F32, 1, &n, &view[0], err);
    if (status == QN_OK)
        status = qn_view_new(c, "y", QN_F32, 1, &n, &view[1], err);
    if (status != QN_OK)
        return status;
    float *x = view[0].data, *y = view[1].data;
    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
        y[i] = 1;
    }

    /* The first launch generates code for arrays like these; later ones find it again. A launch
     * runs on the calling thread, unless options with .executor = QN_THREADS are passed instead of
     * NULL. */
    const qn_arg args[] = {qn_arg_view(&view[0]), qn_arg_view(&view[1]), qn_arg_f32(2)};
    status = qn_launch(c, *k, 3, args, NULL, err);
    if (status == QN_OK)
        printf("y[0] = %g, y[1] = %g, y[%d] = %g\n", y[0], y[1], N - 1, y[N - 1]);
    return status;
}

int main(void)
{
    qn_error err = {0};
    qn_context *c = NULL;
    qn_kernel *k = NULL;
    qn_view view[2] = {{0}};
    qn_status status = qn_context_new(NULL, &c, &err);
    if (status == QN_OK)
        status = run(c, &k, view, &err);
    if (status != QN_OK)
        fprintf(stderr, "%s: %s\n", qn_status_name((int)status), err.message);
    qn_view_release(&view[0]);
    qn_view_release(&view[1]);
    qn_kernel_release(k);
    qn_context_release(c);
    return status != QN_OK;
}
