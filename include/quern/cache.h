/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quern/cache.h: the folder in which contexts keep code on disk: what is in it, emptying it, and
 * bundles, which are folders of the same form that a program ships (qn_context_options.bundle).
 * docs/cache.md describes it. No context is needed but by qn_bundle_add, and contexts of this and
 * other processes may use the folder meanwhile.
 *
 * `folder` is NULL for the one that is meant where nothing is named. A folder that is not there is
 * empty. One that belongs to another user, or that others may write, is QN_ERR_NOT_AVAILABLE, as is
 * one that cannot be read; the message says why.
 */
#ifndef QUERN_CACHE_H
#define QUERN_CACHE_H

#include "quern.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One entry of a folder, for qn_cache_visit. All of it lives while the visit lasts. */
typedef struct qn_cache_entry {
    size_t bytes;             /**< what the library filled: sizeof(qn_cache_entry) of its version */
    const char *path;         /**< of its file, counted from the folder */
    const char *refused; /**< why it would not be used; NULL: it is whole. What follows is empty if
                            it is refused */
    const char *kind;         /**< "x86", "ptx" or "cubin" */
    const char *kernel;       /**< name of the kernel that it was compiled for first */
    const char *environment;  /**< build id of the library that wrote it, processor or driver */
    int64_t file_bytes;       /**< of its file; also of one that is refused */
    int64_t code_bytes;       /**< of the code in it */
    int64_t used; /**< when it was used last, within a minute: seconds since 1970; also of one that
                     is refused */
    int64_t is_of_this_build; /**< 1: this library may use it; 0: it was written by another build */
} qn_cache_entry;

/** The folder that is meant where nothing is named (docs/environment.md); "" if there is none.
 * Copies like snprintf, and returns the bytes needed without the zero. */
QN_API size_t qn_cache_folder(char *buffer, size_t buffer_bytes);
/** Reads all entries, whole or not, and calls `visit` for each, in the order of their paths' first
 * two letters. */
QN_API qn_status qn_cache_visit(const char *folder,
                                void (*visit)(void *arg, const qn_cache_entry *e), void *arg,
                                qn_error *err);
/** Removes all entries; the number of them in *n_removed, which may be NULL. */
QN_API qn_status qn_cache_clear(const char *folder, int64_t *n_removed, qn_error *err);
/** Copies all whole entries of this build into a bundle, which is made if need be; their number in
 * *n_copied, which may be NULL. */
QN_API qn_status qn_cache_export(const char *folder, const char *bundle, int64_t *n_copied,
                                 qn_error *err);
/** Copies all whole entries of this build from a bundle, whoever owns it: its code will be run, so
 * the caller answers for where it comes from. */
QN_API qn_status qn_cache_import(const char *folder, const char *bundle, int64_t *n_copied,
                                 qn_error *err);
/** Compiles a kernel as a launch with these arguments and options would, but for any processor of
 * the instruction set `isa`, and writes the code into a bundle, which is made if need be. The
 * processor here need not have that instruction set, nor need a GPU be here. An `isa` of 0 is
 * QN_ISA_V3; QN_SPECIALIZE_AUTO is exact. With QN_SPECIALIZE_GENERIC `args` may be NULL, and then
 * `n` is not looked at. Executor and stream are not looked at: launches on one thread and on
 * several find the code (docs/ahead-of-time.md). What the arguments are is checked as for a launch.
 * Thread-safe, as a launch is. Errors: those of a launch; QN_ERR_ARGUMENT also where the arguments
 * give no iterations; QN_ERR_PROVIDER where there is no code generator; QN_ERR_COMPILE_TIMEOUT;
 * QN_ERR_NOT_AVAILABLE where the bundle cannot be written. */
QN_API qn_status qn_bundle_add(qn_context *c, const char *bundle, const qn_kernel *k, int n,
                               const qn_arg *args, const qn_options *o, qn_error *err);

#ifdef __cplusplus
}
#endif

#endif
