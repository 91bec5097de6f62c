/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk_folder.c: the public functions of quern/cache.h, all of them walks over the entries of a
 * folder.
 */
#define _GNU_SOURCE
#include "quern/cache.h"
#include "runtime/context.h"

#include <string.h>
#include <unistd.h>

size_t qn_cache_folder(char *buffer, size_t buffer_bytes)
{
    qn_text folder = {0};
    if (!buffer && buffer_bytes)
        return 0;
    qn__env_cache(&folder);
    if (folder.data && strcmp(folder.data, "off") == 0)
        qn__text_release(&folder);
    size_t n = qn__text_out(&folder, buffer, buffer_bytes);
    qn__text_release(&folder);
    return n;
}

/** A folder, or the usual one. qn__free(out->folder) ends it. */
static qn_status open_folder(const char *who, const char *folder, bool is_bundle, qn_disk *out,
                             qn_error *err)
{
    qn_text usual = {0};
    if (!folder)
        qn__env_cache(&usual);
    const char *named = folder ? folder : usual.data;
    bool is_off = !named || !named[0] || strcmp(named, "off") == 0;
    *out = (qn_disk){.is_bundle = is_bundle,
                     .most_bytes = is_bundle ? INT64_MAX : QN_DISK_USUAL_BYTES};
    out->folder = is_off ? NULL : qn__strdup(named);
    qn__text_release(&usual);
    if (is_off)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: no folder: the cache on disk is off", who);
    return out->folder ? QN_OK : qn__fail(err, QN_ERR_MEMORY, "%s: no memory", who);
}

/** Walks; a folder that is not there is empty. */
static qn_status walk(const char *who, const qn_disk *disk,
                      void (*visit)(void *, const qn_disk_file *), void *arg, qn_error *err)
{
    qn_error why = {0};
    if (qn__disk_walk(disk, visit, arg, &why) || why.status == QN_ERR_NOT_FOUND)
        return QN_OK;
    return qn__fail(err, QN_ERR_NOT_AVAILABLE, "%s: %s", who, why.message);
}

/* ---------------------------------------------------------------- reading */

/** Reads a file in a walk. NULL if it is an entry under its own name, else why not. The caller
 * releases *bytes. */
static const char *read_file(const qn_disk *disk, const qn_disk_file *f, qn_text *bytes,
                             qn_stored *out, qn_error *why)
{
    int64_t seconds;
    if (qn__disk_read(disk, f->part, f->name, bytes, out, &seconds, why) != QN_DISK_FOUND) {
        const char *reason = strstr(why->message, ": "); /* behind "entry NAME" */
        return reason ? reason + 2 : why->message;
    }
    return strcmp(qn__entry_name(out).text, f->name) == 0 ? NULL
                                                          : "its name is that of another entry";
}

/** Whether an entry was written by this build: its environment begins with the build id. */
static bool is_of_this_build(const qn_stored *e)
{
    const qn_stored_part *environment = &e->part[QN_STORED_ENVIRONMENT];
    size_t n = strlen(QN_BUILD_ID);
    return environment->n >= n && memcmp(environment->data, QN_BUILD_ID, n) == 0 &&
           (environment->n == n || ((const char *)environment->data)[n] == ',');
}

typedef struct visitor {
    const qn_disk *disk;
    void (*visit)(void *arg, const qn_cache_entry *e);
    void *arg;
} visitor;

static void visit_entry(void *arg, const qn_disk_file *f)
{
    const visitor *v = arg;
    qn_text bytes = {0}, path = {0}, kernel = {0}, environment = {0};
    qn_stored e;
    qn_error why = {0};
    if (!f->is_whole)
        return;
    qn__text_add(&path, "%s/%s", f->folder, f->name);
    const char *refused = read_file(v->disk, f, &bytes, &e, &why);
    if (!refused) {
        qn__text_bytes(&kernel, e.part[QN_STORED_NAME].data, (size_t)e.part[QN_STORED_NAME].n);
        qn__text_bytes(&environment, e.part[QN_STORED_ENVIRONMENT].data,
                       (size_t)e.part[QN_STORED_ENVIRONMENT].n);
    }
    const qn_cache_entry entry = {.bytes = sizeof entry,
                                  .path = path.data ? path.data : f->name,
                                  .refused = refused,
                                  .kind = refused ? "" : qn__entry_kind(e.kind),
                                  .kernel = kernel.data ? kernel.data : "",
                                  .environment = environment.data ? environment.data : "",
                                  .file_bytes = f->bytes,
                                  .code_bytes = refused ? 0 : (int64_t)e.part[QN_STORED_CODE].n,
                                  .used = f->seconds,
                                  .is_of_this_build = !refused && is_of_this_build(&e)};
    v->visit(v->arg, &entry);
    qn__text_release(&bytes);
    qn__text_release(&path);
    qn__text_release(&kernel);
    qn__text_release(&environment);
}

qn_status qn_cache_visit(const char *folder, void (*visit)(void *arg, const qn_cache_entry *e),
                         void *arg, qn_error *err)
{
    qn_disk disk;
    if (!visit)
        return qn__fail(err, QN_ERR_ARGUMENT, "qn_cache_visit: visit is NULL");
    qn_status status = open_folder("qn_cache_visit", folder, false, &disk, err);
    visitor v = {&disk, visit, arg};
    if (status == QN_OK)
        status = walk("qn_cache_visit", &disk, visit_entry, &v, err);
    qn__free(disk.folder);
    return status;
}

/* ---------------------------------------------------------------- removing */

static void remove_file(void *arg, const qn_disk_file *f)
{
    int64_t *n = arg;
    *n += unlinkat(f->part, f->name, 0) == 0 && f->is_whole;
}

qn_status qn_cache_clear(const char *folder, int64_t *n_removed, qn_error *err)
{
    qn_disk disk;
    int64_t n = 0;
    qn_status status = open_folder("qn_cache_clear", folder, false, &disk, err);
    if (status == QN_OK)
        status = walk("qn_cache_clear", &disk, remove_file, &n, err);
    qn__free(disk.folder);
    if (status == QN_OK && n_removed)
        *n_removed = n;
    return status;
}

/* ---------------------------------------------------------------- copying */

typedef struct copier {
    const qn_disk *from;
    qn_disk *to;
    int64_t n;
    qn_error error; /* the first that was met in writing */
} copier;

static void copy_entry(void *arg, const qn_disk_file *f)
{
    copier *c = arg;
    qn_text bytes = {0};
    qn_stored e;
    qn_error ignored = {0};
    if (c->error.status == QN_OK && f->is_whole && !read_file(c->from, f, &bytes, &e, &ignored) &&
        is_of_this_build(&e)) {
        const qn_entry_name name = qn__entry_name(&e);
        c->n += qn__disk_keep(c->to, &name, &bytes, &c->error);
    }
    qn__text_release(&bytes);
}

static qn_status copy(const char *who, copier *c, int64_t *n_copied, qn_error *err)
{
    qn_status status = walk(who, c->from, copy_entry, c, err);
    if (status == QN_OK && c->error.status != QN_OK)
        status = qn__fail(err, (qn_status)c->error.status, "%s: %s", who, c->error.message);
    if (status == QN_OK && n_copied)
        *n_copied = c->n;
    return status;
}

static qn_status copy_bundle(const char *who, const char *folder, const char *bundle,
                             bool is_export, int64_t *n_copied, qn_error *err)
{
    qn_disk own, shipped = {0};
    if (!bundle)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: bundle is NULL", who);
    qn_status status = open_folder(who, folder, false, &own, err);
    if (status == QN_OK)
        status = open_folder(who, bundle, true, &shipped, err);
    copier c = {.from = is_export ? &own : &shipped, .to = is_export ? &shipped : &own};
    if (status == QN_OK)
        status = copy(who, &c, n_copied, err);
    qn__free(own.folder);
    qn__free(shipped.folder);
    return status;
}

qn_status qn_cache_export(const char *folder, const char *bundle, int64_t *n_copied, qn_error *err)
{
    return copy_bundle("qn_cache_export", folder, bundle, true, n_copied, err);
}

qn_status qn_cache_import(const char *folder, const char *bundle, int64_t *n_copied, qn_error *err)
{
    return copy_bundle("qn_cache_import", folder, bundle, false, n_copied, err);
}
