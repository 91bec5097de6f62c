/* SPDX-License-Identifier: Apache-2.0 */
/*
 * photo.c: one set of kernels, three memory layouts. Reads a photograph, blurs it, finds its edges
 * and equalises its luminance with the pixels interleaved, planar and in column-major order;
 * compares each result with the interpreter's, bit for bit; writes the results as PNG, and all of
 * it on one sheet.
 *
 *   photo [--engine auto|interp|native] [--threads N] [--target host|cuda] [PHOTO.png [FOLDER]]
 */
#include "kernels.h"
#include "png_io.h"
#include "sheet.h"
#include "quern/cuda.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { N_KERNELS = 6, N_IMAGES = 3, N_RUNS = 21 };
enum { K_PAD, K_BLUR, K_SOBEL, K_HISTOGRAM, K_TABLE, K_APPLY };

/* The order of the dimensions row 0, column 1, channel 2 in memory, fastest first. */
static const struct {
    const char *name, *text;
    int order[3];
} layouts[] = {
    {"interleaved", "(row, column, channel), channel fastest", {2, 1, 0}},
    {"planar", "one plane for each channel, column fastest", {1, 0, 2}},
    {"column-major", "one plane for each channel, row fastest", {0, 1, 2}},
};
enum { N_LAYOUTS = sizeof layouts / sizeof layouts[0] };

static const struct {
    const char *name;
    qn_status (*build)(int channels, qn_kernel **out, qn_error *err);
} kernels[N_KERNELS] = {
    [K_PAD] = {"pad", build_pad},       [K_BLUR] = {"blur 5x5", build_blur},
    [K_SOBEL] = {"sobel", build_sobel}, [K_HISTOGRAM] = {"histogram", build_histogram},
    [K_TABLE] = {"table", build_table}, [K_APPLY] = {"apply table", build_apply},
};

static const char *const image_names[N_IMAGES] = {"blur", "sobel", "equalised"};

typedef struct demo {
    qn_context *context;
    qn_kernel *kernel[N_KERNELS];
    qn_options options;
    qn_stream *stream; /* NULL: on the host */
    picture photo;
    picture expected[N_IMAGES]; /* by the interpreter */
    sheet sheet;
    char device[80];            /* of the GPU */
} demo;

/* The views of one layout, on the GPU if there is a stream. */
typedef struct stage {
    qn_stream *stream;
    qn_view photo, padded, image[N_IMAGES], counts, table;
} stage;

static bool complain(const char *what, const char *why)
{
    fprintf(stderr, "photo: %s: %s\n", what, why);
    return false;
}

static bool failed(const qn_error *err)
{
    return complain(qn_status_name(err->status), err->message);
}

static double now_ms(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* ---------------------------------------------------------------- views */

static qn_status make(demo *d, qn_stream *stream, const char *label, int dtype, const qn_layout *l,
                      qn_view *out, qn_error *err)
{
    const int space = stream ? QN_SPACE_CUDA : QN_SPACE_HOST;
    const qn_alloc_options o = {
        .bytes = sizeof o, .label = label, .space = space, .stream = stream};
    qn_view_type type;
    qn_status status = qn_view_type_init(dtype, l->rank, NULL, QN_FAMILY_ANY, &type, err);
    type.space = space;
    return status ? status : qn_view_create_layout(d->context, &type, l, &o, out, err);
}

static qn_status make_view(demo *d, qn_stream *stream, const char *label, int64_t pad,
                           const int order[3], qn_view *out, qn_error *err)
{
    qn_layout l;
    int64_t extents[3] = {d->photo.rows + 2 * pad, d->photo.columns + 2 * pad, d->photo.channels};
    int64_t lower[3] = {-pad, -pad, 0};
    qn_status status = qn_layout_ordered(3, extents, order, &l, err);
    if (status == QN_OK)
        status = qn_layout_offset(&l, lower, &l, err);
    if (status == QN_OK)
        status = make(d, stream, label, QN_U8, &l, out, err);
    return status;
}

static qn_status stage_open(demo *d, qn_stream *stream, const int order[3], stage *s, qn_error *err)
{
    const int64_t bins = 256;
    qn_layout l;
    *s = (stage){.stream = stream};
    qn_status status = make_view(d, stream, "photo", 0, order, &s->photo, err);
    if (status == QN_OK)
        status = make_view(d, stream, "padded", PAD, order, &s->padded, err);
    for (int i = 0; i < N_IMAGES && status == QN_OK; i++)
        status = make_view(d, stream, image_names[i], 0, order, &s->image[i], err);
    if (status == QN_OK)
        status = qn_layout_right(1, &bins, &l, err);
    if (status == QN_OK)
        status = make(d, stream, "counts", QN_U32, &l, &s->counts, err);
    if (status == QN_OK)
        status = make(d, stream, "table", QN_U8, &l, &s->table, err);
    return status;
}

static void stage_close(stage *s)
{
    qn_view_release(&s->photo);
    qn_view_release(&s->padded);
    for (int i = 0; i < N_IMAGES; i++)
        qn_view_release(&s->image[i]);
    qn_view_release(&s->counts);
    qn_view_release(&s->table);
}

/* The address of sample (row, column, channel). */
static uint8_t *sample(const qn_view *v, int64_t r, int64_t c, int64_t ch)
{
    const qn_dim *dim = v->layout.dim;
    return (uint8_t *)v->data + r * dim[0].stride + c * dim[1].stride + ch * dim[2].stride;
}

/* A view of the host's with the same layout, for what is on the GPU; else the view itself. */
static bool open_here(demo *d, const qn_view *v, qn_view *out)
{
    qn_error err = {0};
    if (v->space == QN_SPACE_HOST) {
        *out = qn_view_copy(v);
        return true;
    }
    return make(d, NULL, v->label, v->dtype, &v->layout, out, &err) == QN_OK || failed(&err);
}

static bool copy_in(demo *d, const qn_view *v)
{
    qn_view here;
    qn_error err = {0};
    if (!open_here(d, v, &here))
        return false;
    const picture *p = &d->photo;
    const uint8_t *from = p->samples;
    for (int64_t r = 0; r < p->rows; r++)
        for (int64_t c = 0; c < p->columns; c++)
            for (int64_t ch = 0; ch < p->channels; ch++)
                *sample(&here, r, c, ch) = *from++;
    bool is_good = qn_deep_copy(d->context, v, &here, &err) == QN_OK || failed(&err);
    qn_view_release(&here);
    return is_good;
}

static bool copy_out(demo *d, const qn_view *v, picture *out)
{
    qn_view here;
    qn_error err = {0};
    *out = d->photo;
    out->samples = malloc((size_t)(out->rows * out->columns * out->channels));
    if (!out->samples || !open_here(d, v, &here))
        return false;
    bool is_good = qn_deep_copy(d->context, &here, v, &err) == QN_OK || failed(&err);
    uint8_t *to = out->samples;
    for (int64_t r = 0; is_good && r < out->rows; r++)
        for (int64_t c = 0; c < out->columns; c++)
            for (int64_t ch = 0; ch < out->channels; ch++)
                *to++ = *sample(&here, r, c, ch);
    qn_view_release(&here);
    return is_good;
}

/* ---------------------------------------------------------------- running */

static int set(qn_arg args[3], int n, qn_arg a, qn_arg b, qn_arg c)
{
    args[0] = a;
    args[1] = b;
    args[2] = c;
    return n;
}

/* Arguments of a kernel; their number. */
static int arguments(const demo *d, const stage *s, int k, qn_arg args[3])
{
    const qn_arg photo = qn_arg_view(&s->photo), padded = qn_arg_view(&s->padded);
    const qn_arg counts = qn_arg_view(&s->counts), table = qn_arg_view(&s->table);
    switch (k) {
    case K_PAD:
        return set(args, 2, photo, padded, photo);
    case K_BLUR:
        return set(args, 2, padded, qn_arg_view(&s->image[0]), photo);
    case K_SOBEL:
        return set(args, 2, padded, qn_arg_view(&s->image[1]), photo);
    case K_HISTOGRAM:
        return set(args, 2, photo, counts, photo);
    case K_TABLE:
        return set(args, 3, counts, table, qn_arg_int(QN_I64, d->photo.rows * d->photo.columns));
    default:
        return set(args, 3, photo, table, qn_arg_view(&s->image[2]));
    }
}

static qn_status clear_counts(const demo *d, const stage *s, qn_error *err)
{
    const qn_arg zero = qn_arg_int(s->counts.dtype, 0);
    return s->stream ? qn_stream_fill(s->stream, &s->counts, zero, err)
                     : qn_fill(d->context, &s->counts, zero, err);
}

/* One run. Its time is that of the call, or between two marks on the GPU. */
static qn_status run_once(const demo *d, const stage *s, int k, const qn_options *o, double *ms,
                          qn_error *err)
{
    qn_arg args[3];
    qn_mark *mark[2] = {NULL, NULL};
    int n = arguments(d, s, k, args);
    qn_status status = k == K_HISTOGRAM ? clear_counts(d, s, err) : QN_OK;
    if (status == QN_OK && s->stream)
        status = qn_stream_mark(s->stream, 1, &mark[0], err);
    double start = now_ms();
    if (status == QN_OK)
        status = qn_launch(d->context, d->kernel[k], n, args, o, err);
    *ms = now_ms() - start;
    if (status == QN_OK && s->stream)
        status = qn_stream_mark(s->stream, 1, &mark[1], err);
    if (status == QN_OK && s->stream)
        status = qn_stream_fence(s->stream, err);
    if (status == QN_OK && s->stream)
        status = qn_mark_milliseconds(mark[0], mark[1], ms, err);
    qn_mark_release(mark[0]);
    qn_mark_release(mark[1]);
    return status;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Bytes of the elements read and written. */
static double traffic(const demo *d, const stage *s, int k)
{
    qn_arg args[3];
    int n = arguments(d, s, k, args);
    double bytes = 0;
    for (int i = 0; i < n; i++)
        if (args[i].view) /* counts are read and written */
            bytes += (double)(qn_layout_size(&args[i].view->layout) *
                              qn_dtype_bytes(args[i].view->dtype)) *
                     (k == K_HISTOGRAM && i == 1 ? 2 : 1);
    return bytes;
}

/* Runs a kernel often enough for a median and prints its line. */
static bool time_kernel(demo *d, const stage *s, int l, int k)
{
    qn_error err = {0};
    qn_counters before, after;
    double ms[N_RUNS];
    qn_context_counters(d->context, &before, sizeof before);
    if (run_once(d, s, k, &d->options, &ms[0], &err) != QN_OK)
        return failed(&err);
    qn_context_counters(d->context, &after, sizeof after);
    bool is_interpreted = after.interpreted > before.interpreted;
    int n_runs = is_interpreted ? 1 : N_RUNS;
    for (int i = 0; i < n_runs; i++)
        if (run_once(d, s, k, &d->options, &ms[i], &err) != QN_OK)
            return failed(&err);
    qsort(ms, (size_t)n_runs, sizeof *ms, compare);
    double run = ms[n_runs / 2];
    d->sheet.run_ms[l][k] = run;
    printf("  %-14s %10.2f %10.4f %10.3f%s\n", kernels[k].name,
           (double)(after.compile_us - before.compile_us) / 1e3, run, traffic(d, s, k) / run / 1e6,
           is_interpreted ? "   interpreter" : "");
    return true;
}

static void print_layout(const char *name, const qn_view *v)
{
    const qn_dim *dim = v->layout.dim;
    printf("  %-8s extents (%" PRId64 ", %" PRId64 ", %" PRId64 ")  lower bounds (%" PRId64
           ", %" PRId64 ", %" PRId64 ")  strides (%" PRId64 ", %" PRId64 ", %" PRId64 ")\n",
           name, dim[0].extent, dim[1].extent, dim[2].extent, dim[0].lower, dim[1].lower,
           dim[2].lower, dim[0].stride, dim[1].stride, dim[2].stride);
}

/* Number of samples that differ; prints the first one. */
static int64_t differences(const char *name, const picture *found, const picture *expected)
{
    int64_t n = found->rows * found->columns * found->channels, count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (found->samples[i] == expected->samples[i])
            continue;
        if (count++ == 0)
            printf("  %s differs at row %" PRId64 ", column %" PRId64 ", channel %" PRId64
                   ": %d, the interpreter has %d\n",
                   name, i / found->channels / found->columns, i / found->channels % found->columns,
                   i % found->channels, found->samples[i], expected->samples[i]);
    }
    return count;
}

/* Runs everything on one layout; the three images go to `out`. */
static bool run_layout(demo *d, int l, picture out[N_IMAGES])
{
    stage s;
    qn_error err = {0};
    printf("%s: %s\n", layouts[l].name, layouts[l].text);
    bool is_good = stage_open(d, d->stream, layouts[l].order, &s, &err) == QN_OK || failed(&err);
    is_good = is_good && copy_in(d, &s.photo);
    if (is_good) {
        print_layout("photo", &s.photo);
        print_layout("padded", &s.padded);
        printf("  %-14s %10s %10s %10s\n", "kernel", "compile ms", "run ms", "GB/s");
    }
    for (int k = 0; k < N_KERNELS && is_good; k++)
        is_good = time_kernel(d, &s, l, k);
    int64_t count = 0;
    for (int i = 0; i < N_IMAGES && is_good; i++) {
        is_good = copy_out(d, &s.image[i], &out[i]);
        if (is_good)
            count += differences(image_names[i], &out[i], &d->expected[i]);
    }
    if (is_good)
        printf("  %s\n\n", count == 0
                               ? "blur, sobel, equalised: agree with the interpreter in every bit"
                               : "DISAGREES with the interpreter");
    stage_close(&s);
    return is_good && count == 0;
}

/* A first launch, so that loading the code generator does not count for the first kernel. */
static bool warm_up(demo *d)
{
    qn_error err = {0};
    qn_view counts = {0}, table = {0};
    qn_layout l;
    const int64_t bins = 257; /* code for 256 is compiled later, with a time */
    double start = now_ms();
    qn_status status = qn_layout_right(1, &bins, &l, &err);
    if (status == QN_OK)
        status = make(d, d->stream, "counts", QN_U32, &l, &counts, &err);
    if (status == QN_OK)
        status = make(d, d->stream, "table", QN_U8, &l, &table, &err);
    const qn_arg args[3] = {qn_arg_view(&counts), qn_arg_view(&table), qn_arg_int(QN_I64, 1)};
    if (status == QN_OK)
        status = qn_launch(d->context, d->kernel[K_TABLE], 3, args, &d->options, &err);
    qn_view_release(&counts);
    qn_view_release(&table);
    if (status != QN_OK)
        return failed(&err);
    printf("A first launch, with loading the code generator, took %.0f ms.\n", now_ms() - start);
    return true;
}

/* The expected images: everything by the interpreter, interleaved. */
static bool run_interpreter(demo *d)
{
    stage s;
    qn_error err = {0};
    qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_INTERP};
    double start = now_ms(), ms;
    bool is_good = stage_open(d, NULL, layouts[0].order, &s, &err) == QN_OK || failed(&err);
    is_good = is_good && copy_in(d, &s.photo);
    for (int k = 0; k < N_KERNELS && is_good; k++)
        is_good = run_once(d, &s, k, &o, &ms, &err) == QN_OK || failed(&err);
    for (int i = 0; i < N_IMAGES && is_good; i++)
        is_good = copy_out(d, &s.image[i], &d->expected[i]);
    stage_close(&s);
    if (is_good)
        printf("The interpreter, which defines the result, took %.0f ms for all kernels on one "
               "layout.\n\n",
               now_ms() - start);
    return is_good;
}

/* ---------------------------------------------------------------- the program */

static bool make_folder(const char *path)
{
    char part[1024];
    size_t n = strlen(path);
    if (n >= sizeof part)
        return complain(path, "too long");
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != 0)
            continue;
        memcpy(part, path, i);
        part[i] = 0;
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return complain(part, strerror(errno));
    }
    return true;
}

/* Original, results, layouts and times on one picture. */
static bool write_sheet(demo *d, const char *folder, const picture images[N_IMAGES])
{
    static const char *const captions[N_IMAGES + 1] = {
        "photograph", "blur, 5 x 5", "edges (Sobel)", "luminance equalised"};
    sheet *s = &d->sheet;
    picture p;
    char path[1200], why[PNG_MESSAGE];
    for (int i = 0; i <= N_IMAGES; i++) {
        s->image[i] = i ? &images[i - 1] : &d->photo;
        s->caption[i] = captions[i];
    }
    for (int k = 0; k < N_KERNELS; k++)
        s->kernel[k] = kernels[k].name;
    s->n_kernels = N_KERNELS;
    s->device = d->device;
    for (int l = 0; l < N_LAYOUTS; l++) {
        s->layout[l] = layouts[l].name;
        s->text[l] = layouts[l].text;
        memcpy(s->order[l], layouts[l].order, sizeof s->order[l]);
    }
    if (!sheet_draw(s, &p))
        return complain("sheet", "out of memory");
    snprintf(path, sizeof path, "%s/sheet.png", folder);
    bool is_good = png_save(path, &p, why) || complain("PNG", why);
    free(p.samples);
    if (is_good)
        printf("wrote %s: all of it on one picture\n", path);
    return is_good;
}

static bool write_images(const char *folder, const picture images[N_IMAGES])
{
    if (!make_folder(folder))
        return false;
    for (int i = 0; i < N_IMAGES; i++) {
        char path[1200], why[PNG_MESSAGE];
        snprintf(path, sizeof path, "%s/%s.png", folder, image_names[i]);
        if (!png_save(path, &images[i], why))
            return complain("PNG", why);
        printf("wrote %s\n", path);
    }
    return true;
}

static bool build_kernels(demo *d)
{
    qn_error err = {0};
    for (int k = 0; k < N_KERNELS; k++)
        if (kernels[k].build((int)d->photo.channels, &d->kernel[k], &err) != QN_OK)
            return failed(&err);
    return true;
}

static bool run_demo(demo *d, const char *photo, const char *folder)
{
    picture images[N_LAYOUTS][N_IMAGES] = {0};
    char why[PNG_MESSAGE];
    if (!png_load(photo, &d->photo, why))
        return complain("PNG", why);
    printf("%s: %" PRId64 " rows, %" PRId64 " columns, %" PRId64 " channel%s\n", photo,
           d->photo.rows, d->photo.columns, d->photo.channels, d->photo.channels == 1 ? "" : "s");
    bool is_good = build_kernels(d) && warm_up(d) && run_interpreter(d);
    for (int l = 0; l < N_LAYOUTS && is_good; l++)
        is_good = run_layout(d, l, images[l]);
    if (is_good)
        puts("all three layouts agree");
    is_good = is_good && write_images(folder, images[N_LAYOUTS - 1]) &&
              write_sheet(d, folder, images[N_LAYOUTS - 1]);
    for (int i = 0; i < N_LAYOUTS * N_IMAGES; i++)
        free(images[i / N_IMAGES][i % N_IMAGES].samples);
    return is_good;
}

static bool open_demo(demo *d, const qn_context_options *o)
{
    qn_error err = {0};
    if (qn_context_new(o, &d->context, &err) != QN_OK)
        return failed(&err);
    if (d->options.executor == QN_CUDA) {
        qn_cuda_device info;
        if (qn_cuda_device_info(d->context, 0, &info, sizeof info, &err) != QN_OK ||
            qn_stream_new(d->context, 0, &d->stream, &err) != QN_OK)
            return complain("--target cuda", err.message);
        printf("on %s\n", info.name);
        snprintf(d->device, sizeof d->device, "%s", info.name);
        d->options.stream = d->stream;
    }
    return true;
}

static void close_demo(demo *d)
{
    for (int i = 0; i < N_IMAGES; i++)
        free(d->expected[i].samples);
    for (int k = 0; k < N_KERNELS; k++)
        qn_kernel_release(d->kernel[k]);
    qn_stream_release(d->stream);
    qn_context_release(d->context);
    free(d->photo.samples);
}

static int usage(void)
{
    fputs(
        "usage: photo [--engine auto|interp|native] [--threads N] [--target host|cuda] [PHOTO.png "
        "[FOLDER]]\n",
        stderr);
    return 2;
}

/* An option with its value; false if it is none of ours. */
static bool take_option(const char *name, const char *value, demo *d, qn_context_options *o)
{
    if (strcmp(name, "--engine") == 0) {
        d->options.engine = strcmp(value, "interp") == 0   ? QN_ENGINE_INTERP
                            : strcmp(value, "native") == 0 ? QN_ENGINE_NATIVE
                                                           : 0;
        return d->options.engine != 0 || strcmp(value, "auto") == 0;
    }
    if (strcmp(name, "--threads") == 0) {
        o->n_threads = atoi(value);
        d->options.executor = QN_THREADS;
        return o->n_threads >= 1;
    }
    if (strcmp(name, "--target") == 0) {
        bool is_cuda = strcmp(value, "cuda") == 0;
        d->options.executor = is_cuda ? QN_CUDA : d->options.executor;
        return is_cuda || strcmp(value, "host") == 0;
    }
    return false;
}

int main(int argc, char **argv)
{
    demo d = {.options = {.bytes = sizeof d.options}};
    qn_context_options o = {.bytes = sizeof o};
    const char *paths[2] = {"examples/photo/cat.png", "build/photo"};
    int n_paths = 0;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-' && n_paths < 2)
            paths[n_paths++] = argv[i];
        else if (i + 1 < argc && take_option(argv[i], argv[i + 1], &d, &o))
            i++;
        else
            return usage();
    }
    bool is_good = open_demo(&d, &o) && run_demo(&d, paths[0], paths[1]);
    close_demo(&d);
    return !is_good;
}
