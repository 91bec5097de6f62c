/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinds.c: what an instruction does, by the begin of its mnemonic: x86 as LLVM prints it in the
 * manner of AT&T, and PTX. The first row that fits counts.
 */
#include "diff.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

typedef enum kind {
    K_LOAD,
    K_STORE,
    K_MOVE,
    K_GATHER,
    K_SHUFFLE,
    K_FMA,
    K_ARITHMETIC,
    K_DIVIDE,
    K_CONVERT,
    K_COMPARE,
    K_MASK,
    K_INTEGER,
    K_BRANCH,
    K_CALL,
    K_OTHER,
    N_KINDS
} kind;
static_assert((int)N_KINDS <= (int)CODE_MOST_KINDS, "there is a count for each kind");

static const char *const names[CODE_MOST_KINDS] = {[K_LOAD] = "loads",
                                                   [K_STORE] = "stores",
                                                   [K_MOVE] = "moves of registers",
                                                   [K_GATHER] = "gathers, scatters",
                                                   [K_SHUFFLE] = "shuffles, broadcasts",
                                                   [K_FMA] = "fma",
                                                   [K_ARITHMETIC] = "arithmetic of floats",
                                                   [K_DIVIDE] = "divisions, square roots",
                                                   [K_CONVERT] = "conversions",
                                                   [K_COMPARE] = "compares, selects",
                                                   [K_MASK] = "masks",
                                                   [K_INTEGER] = "integers, addresses",
                                                   [K_BRANCH] = "branches",
                                                   [K_CALL] = "calls",
                                                   [K_OTHER] = "others"};

static const struct {
    const char *begin;
    kind kind;
} rows[] = {
    /* PTX */
    {"ld.", K_LOAD},
    {"st.", K_STORE},
    {"fma.", K_FMA},
    {"bra", K_BRANCH},
    {"setp.", K_COMPARE},
    {"selp.", K_COMPARE},
    {"cvt.", K_CONVERT},
    {"cvta.", K_CONVERT},
    {"mov.", K_MOVE},
    {"shfl.", K_SHUFFLE},
    {"div.", K_DIVIDE},
    {"sqrt.", K_DIVIDE},
    {"rcp.", K_DIVIDE},
    {"add.rn", K_ARITHMETIC},
    {"sub.rn", K_ARITHMETIC},
    {"mul.rn", K_ARITHMETIC},
    {"neg.f", K_ARITHMETIC},
    {"add.f", K_ARITHMETIC},
    {"sub.f", K_ARITHMETIC},
    {"mul.f", K_ARITHMETIC},
    {"min.f", K_ARITHMETIC},
    {"max.f", K_ARITHMETIC},
    {"ret", K_BRANCH},
    {"call", K_CALL},
    /* x86 */
    {"vgather", K_GATHER},
    {"vpgather", K_GATHER},
    {"vscatter", K_GATHER},
    {"vpscatter", K_GATHER},
    {"vfm", K_FMA},
    {"vfnm", K_FMA},
    {"vbroadcast", K_SHUFFLE},
    {"vpbroadcast", K_SHUFFLE},
    {"vperm", K_SHUFFLE},
    {"vpermilp", K_SHUFFLE},
    {"vunpck", K_SHUFFLE},
    {"vpunpck", K_SHUFFLE},
    {"vshuf", K_SHUFFLE},
    {"vpshuf", K_SHUFFLE},
    {"vextract", K_SHUFFLE},
    {"vinsert", K_SHUFFLE},
    {"vpinsr", K_SHUFFLE},
    {"vpextr", K_SHUFFLE},
    {"valign", K_SHUFFLE},
    {"vpalign", K_SHUFFLE},
    {"vmovddup", K_SHUFFLE},
    {"vmovshdup", K_SHUFFLE},
    {"vmovsldup", K_SHUFFLE},
    {"vmovh", K_SHUFFLE},
    {"vmovl", K_SHUFFLE},
    {"vcompress", K_SHUFFLE},
    {"vexpand", K_SHUFFLE},
    {"vmov", K_MOVE},
    {"vpmovm", K_MASK},
    {"vpmov", K_CONVERT},
    {"vcvt", K_CONVERT},
    {"vpack", K_CONVERT},
    {"vdiv", K_DIVIDE},
    {"vsqrt", K_DIVIDE},
    {"div", K_DIVIDE},
    {"idiv", K_DIVIDE},
    {"vrcp", K_DIVIDE},
    {"vrsqrt", K_DIVIDE},
    {"vadd", K_ARITHMETIC},
    {"vsub", K_ARITHMETIC},
    {"vmul", K_ARITHMETIC},
    {"vmin", K_ARITHMETIC},
    {"vmax", K_ARITHMETIC},
    {"vand", K_ARITHMETIC},
    {"vor", K_ARITHMETIC},
    {"vxor", K_ARITHMETIC},
    {"vrnd", K_ARITHMETIC},
    {"vround", K_ARITHMETIC},
    {"vreduce", K_ARITHMETIC},
    {"vscalef", K_ARITHMETIC},
    {"vgetexp", K_ARITHMETIC},
    {"vh", K_ARITHMETIC},
    {"vcmp", K_COMPARE},
    {"vpcmp", K_COMPARE},
    {"vblend", K_COMPARE},
    {"vpblend", K_COMPARE},
    {"vucomi", K_COMPARE},
    {"vcomi", K_COMPARE},
    {"cmp", K_COMPARE},
    {"test", K_COMPARE},
    {"cmov", K_COMPARE},
    {"set", K_COMPARE},
    {"vptest", K_COMPARE},
    {"k", K_MASK},
    {"bzhi", K_MASK},
    {"vp", K_INTEGER},
    {"j", K_BRANCH},
    {"retq", K_BRANCH},
    {"callq", K_CALL},
    {"mov", K_MOVE},
    {"lea", K_INTEGER},
    {"add", K_INTEGER},
    {"sub", K_INTEGER},
    {"and", K_INTEGER},
    {"or", K_INTEGER},
    {"xor", K_INTEGER},
    {"sh", K_INTEGER},
    {"sa", K_INTEGER},
    {"inc", K_INTEGER},
    {"dec", K_INTEGER},
    {"neg", K_INTEGER},
    {"not", K_INTEGER},
    {"imul", K_INTEGER},
    {"mul", K_INTEGER},
    {"mad", K_INTEGER},
    {"rem", K_DIVIDE},
    {"min.", K_INTEGER},
    {"max.", K_INTEGER},
    {"push", K_STORE},
    {"pop", K_LOAD},
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

/* The mnemonic of an instruction, behind the guard "@%p1" of PTX. */
static const char *mnemonic_at(const char *text)
{
    if (text[0] == '@' && strchr(text, ' '))
        text = strchr(text, ' ') + 1;
    return text;
}

uint32_t code_mnemonic(const char *text)
{
    uint32_t hash = 2166136261u;
    for (text = mnemonic_at(text); *text && *text != ' '; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash ? hash : 1;
}

/* A move that has memory on one side is a load or a store; operands of AT&T end with the one that
 * is written. */
static kind kind_of_move(const char *text)
{
    const char *open = strchr(text, '('), *close = strrchr(text, ')');
    if (!open || !close)
        return K_MOVE;
    const char *behind = close + 1 + strspn(close + 1, " ");
    bool is_last = *behind == 0 || *behind == '{'; /* a mask stands behind the operand */
    return is_last ? K_STORE : K_LOAD;
}

int code_kind(const char *text)
{
    const char *mnemonic = mnemonic_at(text);
    for (int i = 0; i < N_ROWS; i++) {
        if (strncmp(mnemonic, rows[i].begin, strlen(rows[i].begin)) != 0)
            continue;
        return (int)(rows[i].kind == K_MOVE ? kind_of_move(mnemonic) : rows[i].kind);
    }
    return K_OTHER;
}

const char *code_kind_name(int number)
{
    return names[number];
}
