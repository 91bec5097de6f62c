/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wide_group.h: what the files of wide accesses show one another: lower/wide.c says which accesses
 * are taken together, lower/wide_group.c finds the elements that they need, lower/wide_piece.c
 * moves them.
 */
#ifndef QN_JIT_LLVM_WIDE_GROUP_H
#define QN_JIT_LLVM_WIDE_GROUP_H

#include "jit/lower/wide.h"

/** Addresses that differ by constants only: a pointer, and what is known of it: align x anything +
 * rest. */
typedef struct base {
    LLVMValueRef pointer;
    int64_t align, rest;
} base;

/** An element at a constant distance from a base. */
typedef struct element {
    int base, bytes;
    int64_t at;
    LLVMTypeRef type;       /* in memory */
    LLVMValueRef condition; /* NULL: always */
    unsigned edges;         /* of g->edge: if all of these hold, the condition does */
    bool is_constant;       /* memory that the launch does not write */
    LLVMValueRef value;
} element;

/** A part of an instruction that needs an element. */
typedef struct need {
    uint32_t inst;
    int part, order, point; /* of points of a reduce, its number among those loaded together */
    element e;
} need;

/** Elements that are moved at one place of the code. */
typedef struct group {
    base *base;
    int n_bases, base_capacity;
    need *need;
    int n, capacity;
    element *element; /* different ones, sorted */
    int n_elements;
} group;

/** Adds what part p of access i touches; false without memory. */
bool qn__wide_add(lower *g, group *s, uint32_t i, int p, LLVMValueRef condition, unsigned edges);
/** The element is needed where its condition holds, or this one; NULL: always. */
void qn__wide_unite(lower *g, element *e, LLVMValueRef condition, unsigned edges);
/** Sorts, and makes the list of different elements; need[n].order is the number of its element
 * then. */
bool qn__wide_sort(lower *g, group *s);
/** How many elements from number n on move together. */
int qn__wide_piece_at(const group *s, int n);
void qn__wide_release(group *s);

/** Loads all elements. */
void qn__wide_load_elements(lower *g, group *s);
/** Sets the values of the instructions that need them, for one point. */
void qn__wide_set_values(lower *g, const group *s, int point);
/** Both, where there are no points. */
void qn__wide_load_all(lower *g, group *s);
/** Stores the values of all elements. */
void qn__wide_store_all(lower *g, const group *s);

#endif
