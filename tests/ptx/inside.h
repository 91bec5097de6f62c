/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside.h: what ptx/parse.c, ptx/machine.c and ptx/arithmetic.c share.
 */
#ifndef QN_TESTS_PTX_INSIDE_H
#define QN_TESTS_PTX_INSIDE_H

#include "tests/ptx/machine.h"

/** Instructions, without what follows the first dot. */
#define PTX_BASES(X)                                                                               \
    X(mov)                                                                                         \
    X(ld) X(st) X(atom) X(red) X(cvt) X(cvta) X(add) X(sub) X(mul) X(mad) X(fma) X(div) X(rem)     \
        X(neg) X(abs) X(min) X(max) X(and) X(or) X(xor) X(not) X(shl) X(shr) X(setp) X(selp)       \
            X(sqrt) X(rcp) X(popc) X(clz) X(brev) X(bfe) X(bfi) X(copysign) X(bra) X(ret)          \
                X(membar) X(bar) X(shfl) X(shf)
enum {
#define X(name) BASE_##name,
    PTX_BASES(X)
#undef X
};
/** What may follow, other than types. */
#define PTX_WORDS(X)                                                                               \
    X(rn)                                                                                          \
    X(rz) X(rzi) X(rni) X(rmi) X(rpi) X(lo) X(hi) X(wide) X(eq) X(ne) X(lt) X(le) X(gt) X(ge)      \
        X(equ) X(neu) X(ltu) X(leu) X(gtu) X(geu) X(num) X(nan) X(NaN) X(global) X(local)          \
            X(shared) X(param) X(nc) X(volatile) X(v2) X(v4) X(cas) X(exch) X(add) X(min) X(max)   \
                X(and) X(or) X(xor) X(sync) X(warp) X(down) X(up) X(bfly) X(idx) X(uni) X(gl)      \
                    X(cta) X(to) X(ls) X(hs) X(sat) X(const) X(l) X(r) X(wrap) X(clamp)
enum {
#define X(name) WORD_##name,
    PTX_WORDS(X)
#undef X
};

enum { MOST_OPERANDS = 8, MOST_KERNELS = 4 };
enum {
    OPERAND_NONE = 0,
    OPERAND_REGISTER,
    OPERAND_NUMBER,
    OPERAND_SPECIAL,
    OPERAND_LABEL,
    OPERAND_SYMBOL
};
enum { SPACE_PARAM, SPACE_LOCAL, SPACE_SHARED, SPACE_CONST };

typedef struct ptx_type {
    char kind; /* u, s, b, f or p */
    uint8_t bits;
} ptx_type;

typedef struct ptx_operand {
    int kind, number;
    uint64_t value;
    int64_t offset;
    bool is_address;
} ptx_operand;

typedef struct ptx_inst {
    int base, n_types, n;
    uint64_t words;
    ptx_type type[2];
    int predicate; /* a register, -1: none */
    bool is_negated;
    int group[MOST_OPERANDS]; /* operands {a, b, ...} from here on; 0: one by itself */
    ptx_operand operand[MOST_OPERANDS], second;
    char text[32];
} ptx_inst;

typedef struct ptx_symbol {
    char name[48];
    int space, offset;
} ptx_symbol;

typedef struct ptx_kernel {
    char name[48];
    ptx_inst *inst;
    int n_insts, inst_capacity, n_registers, local_bytes;
    int threads[3]; /* required, 0: any */
} ptx_kernel;

struct ptx_module {
    ptx_kernel kernel[MOST_KERNELS];
    int n_kernels;
    ptx_symbol *symbol;
    int n_symbols, symbol_capacity, shared_bytes, const_bytes;
    uint8_t *constants; /* aligned to 64 bytes */
};

/** Whether one of PTX_WORDS follows. */
static inline bool ptx_has(const ptx_inst *i, int word)
{
    return (i->words >> word & 1) != 0;
}

/** The lowest bits of a number, without and with a sign; as a register holds what is of a type; and
 * of floats. */
uint64_t ptx_cut(uint64_t bits, int width);
int64_t ptx_extend(uint64_t bits, int width);
uint64_t ptx_held(ptx_type t, uint64_t bits);
double ptx_as_double(ptx_type t, uint64_t bits);
uint64_t ptx_f64_bits(double d);
uint64_t ptx_f32_bits(float f);
/** The result of an instruction that computes, as a register holds it; *wrong is set to what is
 * wrong, if anything is. in: [4]. */
uint64_t ptx_calculate(const ptx_inst *i, const uint64_t *in, const char **wrong);

#endif
