/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_cases.h: case files and what one run of them needs. The format is described in
 * docs/testing.md. Errors in a case file end the program: a case that cannot be read tests nothing.
 */
#ifndef QN_TESTS_RUN_CASES_H
#define QN_TESTS_RUN_CASES_H

#include "quern.h"

enum {
    MAX_CASE_LINES = 64,
    MAX_CASE_VALUES = 32,
    MAX_CASES = 64,
    MAX_BINDINGS = 16,
    MAX_PARTS = 4
};

/** One `case` of a file: lines that are read again for each value of its variable. */
typedef struct case_set {
    char name[64];
    char variable[16]; /* "" if there is none; then there is one value */
    int64_t value[MAX_CASE_VALUES];
    int n_values, n_lines;
    char *line[MAX_CASE_LINES]; /* without continuation lines: these are joined */
    int line_number[MAX_CASE_LINES];
} case_set;

typedef struct case_file {
    const char *path;
    char *text; /* of the kernel */
    case_set set[MAX_CASES];
    int n_sets;
} case_file;

/** Memory behind one or more views: guard bytes, elements, guard bytes. */
typedef struct case_storage {
    uint8_t *bytes, *initial, *reference;
    size_t n_bytes;
    int32_t dtype; /* of its elements */
} case_storage;

/** What a parameter name stands for. */
typedef struct case_binding {
    char name[32];
    int32_t dtype;
    int32_t is_view, storage;
    uint64_t bits;
    qn_view view;
    uint64_t *expected; /* canonical element bits in index order, NULL: not listed */
} case_binding;

/** Lines that were printed, with an end of line behind each; NULL: none. */
typedef struct case_lines {
    char *text;
    size_t n;
} case_lines;

/** A case for one value of its variable, ready to run. */
typedef struct case_instance {
    case_binding binding[MAX_BINDINGS];
    case_storage storage[MAX_BINDINGS];
    int n_bindings, n_storages;
    int32_t status;            /* expected of the launch */
    char part[MAX_PARTS][160]; /* of its message */
    int n_parts;
    int32_t checks, strict;
    int32_t debug; /* QN_DEBUG_...: the case is for the interpreter only */
    int64_t most_lines;                         /* option print_lines */
    bool expects_lines;                         /* they are listed */
    case_lines expected_lines, reference_lines; /* listed; of the interpreter */
    bool is_expecting; /* values, an error, or `same` was said */
} case_instance;

/** Reads a file; ends the program on any error. */
void case_file_read(const char *path, case_file *out);
void case_file_free(case_file *f);
/** Makes the views and data of one case; ends the program on any error. */
void case_instance_make(const case_file *f, const case_set *set, int64_t value, case_instance *out);
void case_instance_free(case_instance *c);

/** Steps an index tuple of a layout, last dimension fastest; false after the last. */
bool case_next_index(const qn_layout *l, int64_t *index);
/** Raw bits of an element in memory. */
uint64_t case_element(int dtype, const void *p);
/** Whether two elements are equal; any two NaN are. */
bool case_same_element(int dtype, uint64_t a, uint64_t b);

/** qn_view_at for all views: atomic ones have no addresses for hosts, but the values stand
 * somewhere. */
static inline qn_status case_address(const qn_view *v, const int64_t *index, void **out,
                                     qn_error *err)
{
    qn_view plain = *v;
    plain.traits &= ~(uint32_t)QN_ATOMIC;
    return qn_view_at(&plain, plain.layout.rank, index, out, err);
}

/** PTX of cases (run/ptx.c). */
typedef struct ptx_cases ptx_cases;
ptx_cases *ptx_cases_new(void);
/** Generates PTX for these arguments and keeps it. */
void ptx_cases_add(ptx_cases *p, const qn_kernel *k, int n, const qn_arg *args, int checks,
                   int strict);
/** Runs the PTX of a case on a machine of our own: exact (way 0) or dynamic (1). QN_OK, or the
 * error of the kernel. */
qn_status ptx_cases_run(ptx_cases *p, const qn_kernel *k, int n, const qn_arg *args,
                        const case_instance *c, int way, uint32_t seed, qn_error *err);
/** Assembles what was kept, where there is a ptxas. Outcomes: 1 passed, 0 failed, -1 skipped. Frees
 * p. */
void ptx_cases_end(ptx_cases *p, void (*point)(int outcome, const char *what));

/** Whether the plans of a case that launches are schedules that verify (run/schedule.c). */
bool case_has_schedules(const qn_kernel *k, int n, const qn_arg *args, const case_instance *c);

/* What kernels print (run/print.c). */

/** Whether a kernel has prints. */
bool case_prints(const qn_kernel *k);
/** Adds a line to those that a case expects. */
void case_lines_expect(case_instance *c, const char *line);
/** Makes a launch with these options give its lines. */
void case_lines_want(const case_instance *c, case_lines *lines, qn_options *o);
/** Whether the lines are those that are listed; the case keeps them, as the interpreter's. */
bool case_lines_are_expected(case_instance *c, case_lines *lines);
/** Whether they are those of the interpreter; frees them. */
bool case_lines_agree(const case_instance *c, case_lines *lines);
/** ptx_cases_run of a kernel with prints, as it prints. */
qn_status case_lines_of_ptx(ptx_cases *p, const qn_kernel *k, int n, const qn_arg *args,
                            const case_instance *c, int way, uint32_t seed, case_lines *lines,
                            qn_error *err);
void case_lines_free(case_instance *c);

/** Cases on a GPU, or some of them on the stub driver (run/cuda.c). */
typedef struct cuda_cases cuda_cases;
/** Opens the GPU; NULL and a reason without one. `may_be_stub`: the stub instead, and `reason` why.
 */
cuda_cases *cuda_cases_new(bool may_be_stub, char *reason, size_t reason_bytes);
/** Whether this one is to run: on a GPU all, on the stub that the user did not ask for the first of
 * each file. */
bool cuda_cases_takes(const cuda_cases *p, bool is_first);
/** Launches a case in a way from 0 to 2: exact, dynamic, exact without checks; with its lines if
 *  `lines` is not NULL. *is_limit: a GPU does not do that. */
qn_status cuda_cases_run(cuda_cases *p, const qn_kernel *k, int n, const qn_arg *args,
                         const case_instance *c, int way, case_lines *lines, bool *is_limit,
                         qn_error *err);
/** Notes the plan of a way, for a reader who has no such GPU. */
void cuda_cases_note(cuda_cases *p, const qn_kernel *k, int n, const qn_arg *args,
                     const case_instance *c, int way);
/** Notes what ran, and frees p. */
void cuda_cases_end(cuda_cases *p);

#endif
