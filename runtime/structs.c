/* SPDX-License-Identifier: Apache-2.0 */
/*
 * structs.c: structs of the public headers by name, with their members, for bindings that lay
 * structs out at run time (quern/embed.h). A new member of a struct is a new word here:
 * tests/unit/runtime/test_embed.c fails while one is missing.
 */
#include "quern/cache.h"
#include "quern/cuda.h"
#include "quern/dlpack.h"
#include "quern/embed.h"
#include "quern/tune.h"

#include "ir/ir.h"

#include <string.h>

/* A member, an array, and one of a list of the headers. */
#define M(type, name) {#name, offsetof(type, name), sizeof(((type *)0)->name), 1},
#define A(type, name)                                                                              \
    {#name, offsetof(type, name), sizeof(((type *)0)->name),                                       \
     sizeof(((type *)0)->name) / sizeof(((type *)0)->name[0])},

static const qn_member members_of_error[] = {M(qn_error, status) M(qn_error, line)
                                                 A(qn_error, message)};
static const qn_member members_of_val[] = {M(qn_val, id) M(qn_val, builder)};
static const qn_member members_of_param[] = {M(qn_param, id) M(qn_param, builder)};
static const qn_member members_of_param_info[] = {
    M(qn_param_info, name) M(qn_param_info, dtype) M(qn_param_info, rank) M(qn_param_info, traits)
        M(qn_param_info, is_read) M(qn_param_info, is_written)};
static const qn_member members_of_event[] = {M(qn_event, bytes) M(qn_event, kind) M(
    qn_event, reserved) M(qn_event, kernel) M(qn_event, text) M(qn_event, milliseconds)};
static const qn_member members_of_allocator[] = {M(qn_allocator, allocate) M(qn_allocator, release)
                                                     M(qn_allocator, arg)};
static const qn_member members_of_context_options[] = {
    M(qn_context_options, bytes) M(qn_context_options, n_threads)
        M(qn_context_options, default_executor) M(qn_context_options, cache_bytes)
            M(qn_context_options, parallel_for) M(qn_context_options, parallel_pool) M(
                qn_context_options, event_hook) M(qn_context_options, event_arg)
                M(qn_context_options, provider_path) M(qn_context_options, start_provider) M(
                    qn_context_options, dump) M(qn_context_options, dump_dir)
                    M(qn_context_options, compile_ms) M(qn_context_options, cuda_device) M(
                        qn_context_options, cuda_driver) M(qn_context_options, default_compile)
                        M(qn_context_options, log_level) M(qn_context_options, disk_cache) M(
                            qn_context_options, disk_cache_bytes) M(qn_context_options, bundle)
                            M(qn_context_options, log) M(qn_context_options, log_arg) M(
                                qn_context_options, allocator) M(qn_context_options, data_bytes)
                                M(qn_context_options, cuda_data_bytes)
                                    M(qn_context_options, code_bytes) M(qn_context_options, summary)
                                        M(qn_context_options, symbols) M(qn_context_options, trace)
                                            M(qn_context_options, kokkos_tools)
                                                M(qn_context_options, nvtx)
                                                    M(qn_context_options, untuned)
                                                        M(qn_context_options, reserved)};
static const qn_member members_of_counters[] = {
#define X(name, ...) M(qn_counters, name)
    QN_COUNTER_LIST(X)
#undef X
};
static const qn_member members_of_plan_options[] = {M(qn_plan_options, bytes)
                                                        A(qn_plan_options, order)
#define X(name, ...) M(qn_plan_options, name)
                                                            QN_PLAN_LIST(X)
#undef X
};
static const qn_member members_of_fact_pin[] = {M(qn_fact_pin, param) M(qn_fact_pin, of) M(
    qn_fact_pin, dim) M(qn_fact_pin, as) M(qn_fact_pin, multiple)};
static const qn_member members_of_options[] = {
    M(qn_options, bytes) M(qn_options, engine) M(qn_options, executor) M(qn_options, checks)
        M(qn_options, specialize) M(qn_options, isa) M(qn_options, loader) M(qn_options, strict)
            M(qn_options, max_threads) M(qn_options, constant_scalars) M(qn_options, must_generate)
                M(qn_options, atomics) M(qn_options, compile) M(qn_options, stream)
                    M(qn_options, plan) M(qn_options, cancel) M(qn_options, timeout_ns)
                        M(qn_options, cancel_hook) M(qn_options, cancel_arg) M(qn_options, debug)
                            M(qn_options, n_pins) M(qn_options, pins) M(qn_options, print)
                                M(qn_options, print_arg) M(qn_options, print_lines)
                                    M(qn_options, schedule)};
static const qn_member members_of_printed[] = {
    M(qn_printed, text) M(qn_printed, message) M(qn_printed, n_lost) M(qn_printed, n_values)
        M(qn_printed, n_indices) M(qn_printed, n_points) M(qn_printed, dtype) M(qn_printed, bits)
            M(qn_printed, index) M(qn_printed, point)};
static const qn_member members_of_cache_entry[] = {
    M(qn_cache_entry, bytes) M(qn_cache_entry, path) M(qn_cache_entry, refused)
        M(qn_cache_entry, kind) M(qn_cache_entry, kernel) M(qn_cache_entry, environment)
            M(qn_cache_entry, file_bytes) M(qn_cache_entry, code_bytes) M(qn_cache_entry, used)
                M(qn_cache_entry, is_of_this_build)};
static const qn_member members_of_cuda_device[] = {
    A(qn_cuda_device, name) A(qn_cuda_device, uuid) M(qn_cuda_device, capability)
        M(qn_cuda_device, driver) M(qn_cuda_device, n_processors) M(qn_cuda_device, isa)
            M(qn_cuda_device, memory_bytes) M(qn_cuda_device, l2_bytes)};
static const qn_member members_of_dl_device[] = {M(qn_dl_device, device_type)
                                                     M(qn_dl_device, device_id)};
static const qn_member members_of_dl_dtype[] = {M(qn_dl_dtype, code) M(qn_dl_dtype, bits)
                                                    M(qn_dl_dtype, lanes)};
static const qn_member members_of_dl_tensor[] = {
    M(qn_dl_tensor, data) M(qn_dl_tensor, device) M(qn_dl_tensor, ndim) M(qn_dl_tensor, dtype)
        M(qn_dl_tensor, shape) M(qn_dl_tensor, strides) M(qn_dl_tensor, byte_offset)};
static const qn_member members_of_dl_managed[] = {
    M(qn_dl_managed, dl_tensor) M(qn_dl_managed, manager_ctx) M(qn_dl_managed, deleter)};
static const qn_member members_of_dl_version[] = {M(qn_dl_version, major) M(qn_dl_version, minor)};
static const qn_member members_of_dl_managed_versioned[] = {
    M(qn_dl_managed_versioned, version) M(qn_dl_managed_versioned, manager_ctx)
        M(qn_dl_managed_versioned, deleter) M(qn_dl_managed_versioned, flags)
            M(qn_dl_managed_versioned, dl_tensor)};
static const qn_member members_of_member[] = {M(qn_member, name) M(qn_member, offset_bytes)
                                                  M(qn_member, bytes) M(qn_member, count)};
static const qn_member members_of_statement[] = {
    M(qn_statement, word) M(qn_statement, op) M(qn_statement, dtype) M(qn_statement, args)
        M(qn_statement, n_args) M(qn_statement, parent) A(qn_statement, region)
            M(qn_statement, param) M(qn_statement, dim) M(qn_statement, part)
                M(qn_statement, combine) M(qn_statement, order) M(qn_statement, which)
                    M(qn_statement, bits) M(qn_statement, text) M(qn_statement, name)
                        M(qn_statement, file) M(qn_statement, line) M(qn_statement, column)};
static const qn_member members_of_array[] = {M(qn_array, id)};
static const qn_member members_of_dim[] = {M(qn_dim, lower) M(qn_dim, extent) M(qn_dim, stride)};
static const qn_member members_of_digit[] = {M(qn_digit, extent) M(qn_digit, stride)};
static const qn_member members_of_layout[] = {M(qn_layout, rank) M(qn_layout, projected) M(
    qn_layout, origin) M(qn_layout, digits) A(qn_layout, dim)};
static const qn_member members_of_slice[] = {M(qn_slice, kind) M(qn_slice, begin) M(qn_slice, end)
                                                 M(qn_slice, step)};
static const qn_member members_of_work[] = {M(qn_work, bytes) M(qn_work, flops)};
static const qn_member members_of_peaks[] = {M(qn_peaks, gigabytes) M(qn_peaks, gigaflops)};
static const qn_member members_of_kernel_counters[] = {
#define X(name, ...) M(qn_kernel_counters, name)
    QN_KERNEL_COUNTER_LIST(X)
#undef X
};
static const qn_member members_of_field[] = {M(qn_field, name) M(qn_field, dtype)
                                                 M(qn_field, reserved) M(qn_field, offset)};
static const qn_member members_of_view[] = {
    M(qn_view, data) M(qn_view, owner) M(qn_view, label) M(qn_view, dtype) M(qn_view, space)
        M(qn_view, traits) M(qn_view, unit) M(qn_view, device) M(qn_view, reserved)
            M(qn_view, record) M(qn_view, layout)};
static const qn_member members_of_arg[] = {M(qn_arg, view) M(qn_arg, dtype) M(qn_arg, reserved)
                                               M(qn_arg, bits) M(qn_arg, high)};
static const qn_member members_of_view_type[] = {
    M(qn_view_type, dtype) M(qn_view_type, rank) M(qn_view_type, read_only) M(qn_view_type, family)
        M(qn_view_type, space) M(qn_view_type, unmanaged) M(qn_view_type, traits)
            M(qn_view_type, reserved) M(qn_view_type, record) A(qn_view_type, extent)};
static const qn_member members_of_alloc_options[] = {
    M(qn_alloc_options, bytes) M(qn_alloc_options, label) M(qn_alloc_options, alignment)
        M(qn_alloc_options, uninitialised) M(qn_alloc_options, padding) M(qn_alloc_options, space)
            M(qn_alloc_options, executor) M(qn_alloc_options, stream)};
static const qn_member members_of_tune_candidate[] = {
    M(qn_tune_candidate, bytes) M(qn_tune_candidate, number) M(qn_tune_candidate, state)
        M(qn_tune_candidate, choice) M(qn_tune_candidate, why) M(qn_tune_candidate, ns)
            M(qn_tune_candidate, planned_ns) M(qn_tune_candidate, seconds)};
static const qn_member members_of_tune_options[] = {
    M(qn_tune_options, bytes) M(qn_tune_options, seconds) M(qn_tune_options, most_candidates)
        M(qn_tune_options, keeps_nothing) M(qn_tune_options, progress)
            M(qn_tune_options, progress_arg) M(qn_tune_options, choice)
                M(qn_tune_options, choice_bytes)};
static const qn_member members_of_tune_result[] = {
    M(qn_tune_result, planned_ns) M(qn_tune_result, best_ns) M(qn_tune_result, gain)
        M(qn_tune_result, seconds) M(qn_tune_result, choice_bytes) M(qn_tune_result, n_candidates)
            M(qn_tune_result, n_measured) M(qn_tune_result, n_refused) M(qn_tune_result, n_wrong)
                M(qn_tune_result, compared) M(qn_tune_result, is_kept)};

typedef struct entry {
    const char *name;
    size_t bytes;
    const qn_member *member;
    int n;
} entry;

#define S(name)                                                                                    \
    {"qn_" #name, sizeof(qn_##name), members_of_##name,                                            \
     sizeof members_of_##name / sizeof(qn_member)},
static const entry entries[] = {
    S(error) S(val) S(param) S(param_info) S(event) S(allocator) S(context_options) S(counters)
        S(plan_options) S(fact_pin) S(options) S(printed) S(cache_entry) S(cuda_device) S(dl_device)
            S(dl_dtype) S(dl_tensor) S(dl_managed) S(dl_version) S(dl_managed_versioned) S(member)
                S(statement) S(array) S(dim) S(digit) S(layout) S(slice) S(work) S(peaks)
                    S(kernel_counters) S(field) S(view) S(arg) S(view_type) S(alloc_options)
                        S(tune_candidate) S(tune_options) S(tune_result)};
enum { N_ENTRIES = sizeof entries / sizeof entries[0] };

const char *qn_struct_name(int i)
{
    return i >= 0 && i < N_ENTRIES ? entries[i].name : NULL;
}

static const entry *find(const char *name)
{
    for (int i = 0; name && i < N_ENTRIES; i++)
        if (strcmp(entries[i].name, name) == 0)
            return &entries[i];
    return NULL;
}

size_t qn_sizeof(const char *name)
{
    const entry *e = find(name);
    return e ? e->bytes : 0;
}

qn_status qn_struct_member(const char *name, int i, qn_member *out, size_t out_bytes, qn_error *err)
{
    const char *who = "qn_struct_member";
    if (!name || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, name ? "out" : "name");
    const entry *e = find(name);
    if (!e)
        return qn__fail(err, QN_ERR_NOT_FOUND, "%s: no struct has the name \"%.60s\"", who, name);
    if (i < 0 || i >= e->n)
        return qn__fail(err, QN_ERR_NOT_FOUND, "%s: %s has %d members, none has number %d", who,
                        name, e->n, i);
    qn__struct_give(&e->member[i], sizeof e->member[i], out, out_bytes);
    return QN_OK;
}
