/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cuda_raw.c: the driver without Quern between, NVRTC and cuBLAS. All are opened with dlopen,
 * with prototypes of our own; what is missing gives -1. The primary context of device 0 stays
 * current for the thread, as it would be for a program that uses the CUDA runtime.
 */
#define _GNU_SOURCE
#include "tests/bench/bench_cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MISSING = -1, JIT_INPUT_PTX = 1, LOG_BYTES = 4096 };

struct gpu_raw {
    int (*init)(unsigned);
    int (*primary_retain)(void **, int);
    int (*primary_release)(int);
    int (*context_push)(void *);
    int (*context_pop)(void **);
    int (*context_create)(void **, unsigned, int); /* may be missing */
    int (*stream_create)(void **, unsigned);
    int (*module_load)(void **, const void *);
    int (*module_unload)(void *);
    int (*module_function)(void **, void *, const char *);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  void *, void **, void **);
    int (*link_create)(unsigned, int *, void **, void **);
    int (*link_add)(void *, int, void *, size_t, const char *, unsigned, int *, void **);
    int (*link_complete)(void *, void **, size_t *);
    int (*link_destroy)(void *);
    int (*context_destroy)(void *); /* may be missing */
    int (*stream_destroy)(void *);
    void *library, *empty_module, *empty, *other_context, *other_stream;
    void *nvrtc, *blas, *blas_handle;
};

/* One parameter of as many bytes as a saxpy has. */
enum { PARAM_BYTES = 24 };
static const char empty_ptx[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry empty(\n\t.param .align 8 .b8 empty_param_0[24]\n)\n{\n\tret;\n}\n";

/* ISO C has no conversion from an object pointer to a function pointer; POSIX promises it. */
static bool find(void *library, const char *name, void *out)
{
    void *symbol = library ? dlsym(library, name) : NULL;
    memcpy(out, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool find_driver(gpu_raw *r, const char **missing)
{
    const struct {
        const char *name;
        void *at;
    } call[] = {
        {"cuInit", &r->init},
        {"cuDevicePrimaryCtxRetain", &r->primary_retain},
        {"cuDevicePrimaryCtxRelease_v2", &r->primary_release},
        {"cuCtxPushCurrent_v2", &r->context_push},
        {"cuCtxPopCurrent_v2", &r->context_pop},
        {"cuStreamCreate", &r->stream_create},
        {"cuStreamDestroy_v2", &r->stream_destroy},
        {"cuModuleLoadData", &r->module_load},
        {"cuModuleUnload", &r->module_unload},
        {"cuModuleGetFunction", &r->module_function},
        {"cuLaunchKernel", &r->launch},
        {"cuLinkCreate_v2", &r->link_create},
        {"cuLinkAddData_v2", &r->link_add},
        {"cuLinkComplete", &r->link_complete},
        {"cuLinkDestroy", &r->link_destroy},
    };
    for (size_t i = 0; i < sizeof call / sizeof call[0]; i++)
        if (!find(r->library, call[i].name, call[i].at)) {
            *missing = call[i].name;
            return false;
        }
    find(r->library, "cuCtxCreate_v2", &r->context_create);
    find(r->library, "cuCtxDestroy_v2", &r->context_destroy);
    return true;
}

/* The first library of a list that opens. */
static void *open_first(const char *const *name)
{
    for (; *name; name++) {
        void *library = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
    }
    return NULL;
}

/* The kernel that does nothing; without it launches of it fail. */
static void load_empty(gpu_raw *r)
{
    void *cubin = NULL;
    if (gpu_raw_assemble(r, empty_ptx, sizeof empty_ptx - 1, &cubin) == 0 &&
        r->module_load(&r->empty_module, cubin) == 0)
        (void)r->module_function(&r->empty, r->empty_module, "empty");
    free(cubin);
}

gpu_raw *gpu_raw_open(const char *path, const char **why)
{
    static const char *const nvrtc[] = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", NULL};
    static const char *const blas[] = {"libcublas.so", "libcublas.so.13", "libcublas.so.12", NULL};
    gpu_raw *r = calloc(1, sizeof *r);
    void *context;
    *why = "out of memory";
    if (!r)
        return NULL;
    r->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!r->library)
        *why = "it cannot be opened";
    else if (find_driver(r, why)) {
        *why = "no primary context";
        if (r->init(0) == 0 && r->primary_retain(&context, 0) == 0 &&
            r->context_push(context) == 0) {
            load_empty(r);
            r->nvrtc = open_first(nvrtc);
            r->blas = open_first(blas);
            return r;
        }
    }
    free(r);
    return NULL;
}

void gpu_raw_close(gpu_raw *r)
{
    void *context;
    if (!r)
        return;
    if (r->empty_module)
        r->module_unload(r->empty_module);
    if (r->other_stream && r->context_push(r->other_context) == 0) {
        r->stream_destroy(r->other_stream);
        r->context_pop(&context);
    }
    if (r->other_context && r->context_destroy)
        r->context_destroy(r->other_context);
    r->context_pop(&context);
    r->primary_release(0);
    free(r);
}

/* ---------------------------------------------------------------- code */

int gpu_raw_launch(gpu_raw *r, void *stream, void *p, int n)
{
    void *bytes[PARAM_BYTES / sizeof(void *)] = {p, p}, *params[] = {bytes};
    int result = r->empty ? 0 : MISSING;
    for (int i = 0; i < n && !result; i++)
        result = r->launch(r->empty, 1, 1, 1, 128, 1, 1, 0, stream, params, NULL);
    return result;
}

int gpu_raw_assemble(gpu_raw *r, const char *ptx, size_t bytes, void **cubin)
{
    char *text = strndup(ptx, bytes);
    void *state, *image;
    size_t n = 0;
    int result = text ? r->link_create(0, NULL, NULL, &state) : MISSING;
    if (result == 0) {
        result = r->link_add(state, JIT_INPUT_PTX, text, bytes + 1, "bench", 0, NULL, NULL);
        if (result == 0)
            result = r->link_complete(state, &image, &n);
        *cubin = result == 0 ? malloc(n) : NULL;
        if (*cubin)
            memcpy(*cubin, image, n);
        r->link_destroy(state);
    }
    free(text);
    return result;
}

int gpu_raw_load(gpu_raw *r, const void *cubin, const char *entry, double *seconds)
{
    void *module, *function;
    double begin = gpu_now();
    int result = r->module_load(&module, cubin);
    if (result)
        return result;
    result = r->module_function(&function, module, entry);
    *seconds = gpu_now() - begin;
    r->module_unload(module);
    return result;
}

int gpu_raw_other_stream(gpu_raw *r, void **stream)
{
    void *context;
    int result = r->context_create ? r->context_create(&r->other_context, 0, 0) : MISSING;
    if (result)
        return result;
    result = r->stream_create(&r->other_stream, 1); /* the new context is current */
    r->context_pop(&context);
    *stream = r->other_stream;
    return result;
}

int gpu_raw_nvrtc(gpu_raw *r, const char *source, const char *entry, double *seconds)
{
    static const char *const options[] = {"--gpu-architecture=sm_90"};
    int (*create)(void **, const char *, const char *, int, const char *const *,
                  const char *const *);
    int (*compile)(void *, int, const char *const *), (*size)(void *, size_t *),
        (*get)(void *, char *);
    int (*destroy)(void **);
    if (!find(r->nvrtc, "nvrtcCreateProgram", &create) ||
        !find(r->nvrtc, "nvrtcCompileProgram", &compile) ||
        !find(r->nvrtc, "nvrtcGetCUBINSize", &size) || !find(r->nvrtc, "nvrtcGetCUBIN", &get) ||
        !find(r->nvrtc, "nvrtcDestroyProgram", &destroy))
        return MISSING;
    void *program = NULL;
    char *cubin = NULL;
    size_t n = 0;
    double begin = gpu_now(), load = 0;
    int result = create(&program, source, "bench.cu", 0, NULL, NULL);
    if (result == 0)
        result = compile(program, 1, options);
    if (result == 0)
        result = size(program, &n);
    if (result == 0)
        cubin = malloc(n);
    if (cubin)
        result = get(program, cubin);
    double compiled = gpu_now() - begin;
    if (cubin && result == 0)
        result = gpu_raw_load(r, cubin, entry, &load);
    *seconds = compiled + load;
    if (program)
        destroy(&program);
    free(cubin);
    return result;
}

/* ---------------------------------------------------------------- cuBLAS */

/** Makes the handle at the first call, and gives it the stream. */
static int ready_blas(gpu_raw *r, void *stream)
{
    int (*create)(void **), (*set_stream)(void *, void *);
    if (!find(r->blas, "cublasCreate_v2", &create) ||
        !find(r->blas, "cublasSetStream_v2", &set_stream))
        return MISSING;
    int result = r->blas_handle ? 0 : create(&r->blas_handle);
    return result ? result : set_stream(r->blas_handle, stream);
}

int gpu_raw_product(gpu_raw *r, void *stream, int dtype, int64_t n, bool a_is_left, bool b_is_left,
                    void *c, const void *a, const void *b)
{
    int (*sgemm)(void *, int, int, int, int, int, const float *, const float *, int, const float *,
                 int, const float *, float *, int);
    int (*dgemm)(void *, int, int, int, int, int, const double *, const double *, int,
                 const double *, int, const double *, double *, int);
    if (!find(r->blas, "cublasSgemm_v2", &sgemm) || !find(r->blas, "cublasDgemm_v2", &dgemm))
        return MISSING;
    int result = ready_blas(r, stream), edge = (int)n;
    const float one = 1, zero = 0;
    const double one_64 = 1, zero_64 = 0;
    if (result) /* Fortran order there: C' = B' A' */
        return result;
    if (dtype == QN_F32)
        return sgemm(r->blas_handle, b_is_left, a_is_left, edge, edge, edge, &one, b, edge, a, edge,
                     &zero, c, edge);
    return dgemm(r->blas_handle, b_is_left, a_is_left, edge, edge, edge, &one_64, b, edge, a, edge,
                 &zero_64, c, edge);
}

int gpu_raw_batch(gpu_raw *r, void *stream, int dtype, int64_t n, int64_t count, void *c,
                  const void *a, const void *b)
{
    int (*sgemm)(void *, int, int, int, int, int, const float *, const float *, int, long long,
                 const float *, int, long long, const float *, float *, int, long long, int);
    int (*dgemm)(void *, int, int, int, int, int, const double *, const double *, int, long long,
                 const double *, int, long long, const double *, double *, int, long long, int);
    if (!find(r->blas, "cublasSgemmStridedBatched", &sgemm) ||
        !find(r->blas, "cublasDgemmStridedBatched", &dgemm))
        return MISSING;
    int result = ready_blas(r, stream), e = (int)n, times = (int)count;
    const long long apart = (long long)(n * n);
    const float one = 1, zero = 0;
    const double one_64 = 1, zero_64 = 0;
    if (result)
        return result;
    if (dtype == QN_F32)
        return sgemm(r->blas_handle, 0, 0, e, e, e, &one, b, e, apart, a, e, apart, &zero, c, e,
                     apart, times);
    return dgemm(r->blas_handle, 0, 0, e, e, e, &one_64, b, e, apart, a, e, apart, &zero_64, c, e,
                 apart, times);
}

int gpu_raw_times(gpu_raw *r, void *stream, int dtype, int64_t m, int64_t n, bool is_left, void *y,
                  const void *a, const void *x)
{
    int (*sgemv)(void *, int, int, int, const float *, const float *, int, const float *, int,
                 const float *, float *, int);
    int (*dgemv)(void *, int, int, int, const double *, const double *, int, const double *, int,
                 const double *, double *, int);
    if (!find(r->blas, "cublasSgemv_v2", &sgemv) || !find(r->blas, "cublasDgemv_v2", &dgemv))
        return MISSING;
    int result = ready_blas(r, stream), rows = (int)(is_left ? m : n),
        columns = (int)(is_left ? n : m);
    const float one = 1, zero = 0;
    const double one_64 = 1, zero_64 = 0;
    if (result)
        return result;
    if (dtype == QN_F32)
        return sgemv(r->blas_handle, !is_left, rows, columns, &one, a, rows, x, 1, &zero, y, 1);
    return dgemv(r->blas_handle, !is_left, rows, columns, &one_64, a, rows, x, 1, &zero_64, y, 1);
}
