/* SPDX-License-Identifier: Apache-2.0 */
/*
 * provider.c: finds and opens the code generator. A path given by the host or the environment is
 * the only one tried, else the file beside this library: beside the name that it was loaded by,
 * then beside the file that is mapped. Only absolute paths are opened, so that the working
 * directory of the moment decides nothing. A file is looked at before the loader maps it, because
 * touching a mapping beyond the end of a truncated file is a signal. Its symbols stay local, and it
 * is never closed: what it holds belongs to the process.
 */
#define _GNU_SOURCE
#include "runtime/compile.h"
#include "runtime/processor.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "libquern-llvm.so"

enum { LINE_BYTES = 4096 + 128 };

/* ---------------------------------------------------------------- finding */

/** The line of /proc/self/maps without its end that has an address; false if there is none. */
static bool find_mapping(uintptr_t address, char line[LINE_BYTES])
{
    FILE *file = fopen("/proc/self/maps", "re");
    bool is_found = false;
    while (file && !is_found && fgets(line, LINE_BYTES, file)) {
        uintptr_t low, high;
        is_found = sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &low, &high) == 2 && address >= low &&
                   address < high;
    }
    if (file)
        fclose(file);
    return is_found;
}

/** The path of the code generator in the folder of a file; empty unless that is absolute. */
static void path_beside(const char *file, qn_text *out)
{
    const char *slash = file && file[0] == '/' ? strrchr(file, '/') : NULL;
    if (slash)
        qn__text_add(out, "%.*s/%s", (int)(slash - file), file, FILE_NAME);
}

/** The one or two places beside this library. */
static void paths_beside(qn_text path[2])
{
    static const char here = 0; /* an address inside this library */
    Dl_info info = {0};
    char line[LINE_BYTES];
    if (dladdr(&here, &info))
        path_beside(info.dli_fname, &path[0]);
    if (find_mapping((uintptr_t)&here, line))
        path_beside(strchr(line, '/'), &path[1]);
    if (path[0].n && path[1].n && strcmp(path[0].data, path[1].data) == 0)
        qn__text_release(&path[1]);
}

/* ---------------------------------------------------------------- opening */

/** Whether n records of so many bytes at an offset lie within a file. */
static bool are_inside(uint64_t offset, uint64_t n, uint64_t bytes, uint64_t file_bytes)
{
    uint64_t all;
    return !__builtin_mul_overflow(n, bytes, &all) && offset <= file_bytes &&
           all <= file_bytes - offset;
}

/** What is wrong with an open file that should be a shared library for this machine, or NULL. */
static const char *check_library(int fd)
{
    struct stat info;
    Elf64_Ehdr head;
    if (fstat(fd, &info) != 0)
        return strerror(errno);
    if (!S_ISREG(info.st_mode))
        return "not a regular file";
    uint64_t n_bytes = (uint64_t)info.st_size;
    if (pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head)
        return "file too short";
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
        head.e_ident[EI_DATA] != ELFDATA2LSB || head.e_type != ET_DYN ||
        head.e_machine != QN_PROCESSOR_ELF || head.e_phentsize != sizeof(Elf64_Phdr))
        return "not a shared library for " QN_PROCESSOR_KIND;
    if (!are_inside(head.e_phoff, head.e_phnum, sizeof(Elf64_Phdr), n_bytes) ||
        !are_inside(head.e_shoff, head.e_shnum, head.e_shentsize, n_bytes))
        return "file truncated";
    for (int i = 0; i < head.e_phnum; i++) {
        Elf64_Phdr part;
        off_t at = (off_t)(head.e_phoff + (uint64_t)i * sizeof part);
        if (pread(fd, &part, sizeof part, at) != (ssize_t)sizeof part)
            return "file truncated";
        if (part.p_type == PT_LOAD && !are_inside(part.p_offset, 1, part.p_filesz, n_bytes))
            return "file truncated";
    }
    return NULL;
}

static const char *check_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return strerror(errno);
    const char *reason = check_library(fd);
    close(fd);
    return reason;
}

/** Opens one file; what stands in the way is added to `tried`. */
static void *open_one(const char *path, qn_text *tried)
{
    const char *reason = check_file(path);
    void *library = reason ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library)
        return library;
    if (!reason)
        reason = dlerror();
    qn__text_add(tried, "%s%s", tried->n ? "; " : "", reason ? reason : path);
    if (!reason || !strstr(reason, path))
        qn__text_add(tried, " (%s)", path);
    return NULL;
}

static void *open_any(const char *path, qn_text *tried)
{
    if (path)
        return open_one(path, tried);
    qn_text beside[2] = {0};
    void *library = NULL;
    paths_beside(beside);
    for (int i = 0; i < 2; i++) {
        if (!library && beside[i].n && !beside[i].failed)
            library = open_one(beside[i].data, tried);
        qn__text_release(&beside[i]);
    }
    return library;
}

void qn__maker_look(const char *path, qn_maker *out)
{
    struct stat info;
    *out = (qn_maker){0};
    if (!path || path[0] != '/' || strlen(path) >= sizeof out->path || stat(path, &info) != 0 ||
        info.st_mtim.tv_sec < 0)
        return;
    memcpy(out->path, path, strlen(path) + 1);
    out->bytes = (int64_t)info.st_size;
    out->modified_ns =
        (int64_t)info.st_mtim.tv_sec * INT64_C(1000000000) + (int64_t)info.st_mtim.tv_nsec;
}

static qn_status start(qn_provider_function provider, qn_maker *maker, qn_error *err)
{
    qn_request r = {.bytes = sizeof r, .build_id = QN_BUILD_ID, .kind = QN_REQUEST_START};
    int status = provider(&r);
    if (status == QN_OK && maker)
        qn__maker_look(r.llvm_path, maker);
    if (status == QN_OK)
        return QN_OK;
    return qn__fail(err, QN_ERR_PROVIDER, "qn__provider_open: %s does not fit this library: %s",
                    FILE_NAME, r.error.message[0] ? r.error.message : qn_status_text(status));
}

qn_status qn__provider_open(const char *path, qn_provider_function *out, qn_maker *maker,
                            qn_error *err)
{
    qn_text tried = {0};
    if (path && path[0] != '/')
        return qn__fail(err, QN_ERR_PROVIDER, "qn__provider_open: %s is not absolute", path);
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
    qn_status status = start(provider, maker, err);
    if (status == QN_OK)
        *out = provider;
    return status;
}
