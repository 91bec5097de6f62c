/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy.h: arrays in NumPy's .npy files, versions 1 to 3, C and Fortran order, little endian, the
 * dtypes of Quern. Nothing in a file is trusted: magic, version, header, type, shape and size are
 * checked before memory is taken.
 */
#ifndef QUERN_NPY_H
#define QUERN_NPY_H

#include "quern.h"

/** Bytes of a message. */
#define NPY_MESSAGE 600

/** Reads a file into a new view (Right, or Left for Fortran order), which the caller releases. On
 * failure returns false and a line in `why`. */
bool npy_read(qn_context *c, const char *label, const char *path, qn_view *out,
              char why[NPY_MESSAGE]);
/** Writes a view: Fortran order if it is contiguous in that order only, else C order. A file is
 * replaced only when the new one is complete. */
bool npy_write(const qn_view *v, const char *path, char why[NPY_MESSAGE]);

#endif
