/* SPDX-License-Identifier: Apache-2.0 */
/*
 * object.h: the parts of an object file with a header, both of which programs use without us:
 *
 * object.c         the public functions; which kernels can be in an object
 * object_elf.c     blobs -> a relocatable file
 * object_range.c   values of the prologue and ranges of indices, as C
 * object_text.c    the entry function of a kernel, as C
 * object_prelude.h.in  what all headers share, as C
 */
#ifndef QN_RUNTIME_OBJECT_H
#define QN_RUNTIME_OBJECT_H

#include "runtime/ahead.h"

/** The text of object_prelude.h.in (generated). */
extern const char qn__object_prelude[];

/* ---------------------------------------------------------------- object_elf.c */

enum { QN_SYMBOL_BYTES = 96 };
/** A function in the bytes of an object. */
typedef struct qn_object_symbol {
    char name[QN_SYMBOL_BYTES];
    uint64_t offset, bytes;
} qn_object_symbol;
/** Appends an ELF file whose section .text is `code`. */
void qn__object_elf(const qn_text *code, uint32_t align, const qn_object_symbol *symbol,
                    int n_symbols, qn_text *out);

/* ---------------------------------------------------------------- object_range.c */

/** Which values of a kernel C text can compute. Released by qn__ranges_release. */
typedef struct qn_ranges {
    const qn_kernel *k;
    uint8_t *can;   /* [n_insts]: or of QN_CAN_... */
    uint8_t *needs; /* the same: of them, what the text must compute */
    uint32_t *dims; /* bit d: the range of a value is made of that of dimension d */
} qn_ranges;
enum { QN_CAN_VALUE = 1, QN_CAN_RANGE = 2 }; /* a value of the prologue; the range of an index */
/** False without memory. */
bool qn__ranges_init(const qn_kernel *k, qn_ranges *out);
void qn__ranges_release(qn_ranges *r);
/** Whether C text can tell that an access is inside its view for the whole domain. */
bool qn__ranges_can_prove(const qn_ranges *r, uint32_t site);
/** Whether that must be told at each call: accesses are proved, but for some arguments only. */
bool qn__ranges_are_needed(const qn_facts *f);
/** Appends the name of a parameter in C, which no keyword has. */
void qn__object_param(const qn_kernel *k, int p, qn_text *out);
/** Number of a view among the views. */
int qn__object_number_of_view(const qn_kernel *k, int p);
/** Begin and end of all dimensions, begin0, end0, ...; false, naming one, if they cannot be
 * computed. */
bool qn__ranges_print_domain(qn_ranges *r, const qn_facts *f, qn_text *out, int *bad_dim);
/** Tests of the proved accesses; nothing if they need none. */
void qn__ranges_print_proof(qn_ranges *r, const qn_facts *f, qn_text *out);

/* ---------------------------------------------------------------- object_text.c */

/** The parameters of entry functions of a kernel, and the arguments of a call in one of them. */
void qn__object_print_params(const qn_kernel *k, qn_text *params, qn_text *args);
/** The entry function NAME_ISA of compiled code, whose symbol is `symbol`. */
qn_status qn__object_print_entry(const char *who, const qn_code *f, const char *name,
                                 const char *symbol, const char *params, qn_text *out,
                                 qn_error *err);
/** The entry function NAME, which chooses between those of instruction sets; bit n of `isas`: there
 * is that of x86-64-vn. */
void qn__object_print_choice(const char *name, uint32_t isas, const char *params, const char *args,
                             qn_text *out);

#endif
