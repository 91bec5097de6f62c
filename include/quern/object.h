/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quern/object.h: kernels as an object file and a C header, which a program compiles and links
 * without Quern. Each kernel is one entry function for each instruction set, and one that chooses
 * between them; it takes plain arrays, checks that they are what the code is for, and runs it on
 * the thread that calls. docs/ahead-of-time.md describes the header.
 */
#ifndef QUERN_OBJECT_FILE_H
#define QUERN_OBJECT_FILE_H

#include "quern.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Kernels that are to be in one object file. One thread at a time. */
typedef struct qn_object qn_object;

/** An object without kernels. The caller releases it. */
QN_API qn_status qn_object_new(qn_object **out, qn_error *err);
QN_API void qn_object_release(qn_object *o);
/** Compiles a kernel for arguments, as qn_bundle_add does, and adds it under `name`, which must be
 * a name in C; NULL is the kernel's own. `isa` is QN_ISA_V3 (0 too), QN_ISA_V4 or
 * QN_ISA_V4_BYTES, which the processor need not have; one name can have several, for the same
 * kernel. With QN_SPECIALIZE_GENERIC `args` may be NULL. Accesses that are proved for the
 * arguments, but not for all that the code takes, are tested in the entry function where C text can
 * do that, and checked in the code where not. Errors, besides those of qn_bundle_add:
 * QN_ERR_UNSUPPORTED for arguments that overlap, have index lists, members, tiles, broadcast
 * dimensions or a unit, and for ranges of a domain that C text cannot compute; QN_ERR_ARGUMENT for
 * a name that is none, or is taken; QN_ERR_TARGET for a GPU. After an error the object is as it
 * was. */
QN_API qn_status qn_object_add(qn_object *o, qn_context *c, const char *name, const qn_kernel *k,
                               int n, const qn_arg *args, const qn_options *options, qn_error *err);
/** The bytes of an ELF file, relocatable, of x86-64, as they are now. Copies at most buffer_bytes
 * of them, and returns how many there are; 0 without memory. */
QN_API size_t qn_object_file(const qn_object *o, void *buffer, size_t buffer_bytes);
/** The text of the header. Copies like snprintf, and returns the bytes needed without the zero; 0
 * without memory. */
QN_API size_t qn_object_header(const qn_object *o, char *buffer, size_t buffer_bytes);

#ifdef __cplusplus
}
#endif

#endif
