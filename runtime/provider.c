/* SPDX-License-Identifier: Apache-2.0 */
/*
 * provider.c: finds and opens the code generator. A path given by the host or the environment is
 * the only one tried; else the file beside this library, then the plain name, as the system
 * searches for it. Its symbols stay local, and it is never closed: what it holds belongs to the
 * process.
 */
#define _GNU_SOURCE
#include "runtime/compile.h"

#include <dlfcn.h>
#include <string.h>

#define FILE_NAME "libquern-llvm.so"

/** The file beside the library that holds this function; NULL without memory or path. */
static char *path_beside(void)
{
    Dl_info info;
    static const char here = 0; /* an address inside this library */
    if (!dladdr(&here, &info) || !info.dli_fname)
        return NULL;
    const char *slash = strrchr(info.dli_fname, '/');
    if (!slash)
        return NULL;
    size_t n = (size_t)(slash - info.dli_fname) + 1;
    char *path = qn__alloc(n + sizeof FILE_NAME);
    if (path) {
        memcpy(path, info.dli_fname, n);
        memcpy(path + n, FILE_NAME, sizeof FILE_NAME);
    }
    return path;
}

/** Opens one file; what the loader says of a failure is added to `tried`. */
static void *open_one(const char *path, qn_text *tried)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library)
        return library;
    const char *reason = dlerror();
    qn__text_add(tried, "%s%s", tried->n ? "; " : "", reason ? reason : path);
    if (!reason || !strstr(reason, path))
        qn__text_add(tried, " (%s)", path);
    return NULL;
}

static void *open_any(const char *path, qn_text *tried)
{
    if (path)
        return open_one(path, tried);
    char *beside = path_beside();
    void *library = beside ? open_one(beside, tried) : NULL;
    qn__free(beside);
    return library ? library : open_one(FILE_NAME, tried);
}

static qn_status start(qn_provider_function provider, qn_error *err)
{
    qn_request r = {.bytes = sizeof r, .build_id = QN_BUILD_ID, .kind = QN_REQUEST_START};
    int status = provider(&r);
    if (status == QN_OK)
        return QN_OK;
    return qn__fail(err, QN_ERR_PROVIDER, "qn__provider_open: %s does not fit this library: %s",
                    FILE_NAME, r.error.message[0] ? r.error.message : qn_status_text(status));
}

qn_status qn__provider_open(const char *path, qn_provider_function *out, qn_error *err)
{
    qn_text tried = {0};
    void *library = open_any(path, &tried);
    if (!library) {
        qn__fail(err, QN_ERR_PROVIDER,
                 "qn__provider_open: code generator not loaded, set QUERN_PROVIDER; tried: %s",
                 tried.data ? tried.data : "nothing");
        qn__text_release(&tried);
        return QN_ERR_PROVIDER;
    }
    qn__text_release(&tried);
    void *symbol = dlsym(library, QN_PROVIDER_SYMBOL);
    if (!symbol)
        return qn__fail(err, QN_ERR_PROVIDER, "qn__provider_open: %s has no function %s",
                        path ? path : FILE_NAME, QN_PROVIDER_SYMBOL);
    qn_provider_function provider;
    memcpy(&provider, &symbol, sizeof provider); /* ISO C has no cast between the two */
    qn_status status = start(provider, err);
    if (status == QN_OK)
        *out = provider;
    return status;
}
