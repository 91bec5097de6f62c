/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kokkos_peer.cpp: kernels written with Kokkos, for bench_main to be compared with. Compiled by the
 * user against their Kokkos (docs/benchmarks.md), on the serial space: views of run-time extents,
 * MDRangePolicy over the inner points, sums as loops in a RangePolicy. A layout is a template
 * parameter, as in any Kokkos program.
 */
#include "kokkos_peer.h"

#include <Kokkos_Core.hpp>
#include <cstring>
#include <string>

namespace {

using space = Kokkos::Serial;
using R = Kokkos::LayoutRight;
using L = Kokkos::LayoutLeft;
template <class D, class Layout>
using view = Kokkos::View<D, Layout, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

constexpr Kokkos::Iterate patterns[N_KOKKOS_PATTERNS] = {
    Kokkos::Iterate::Default, Kokkos::Iterate::Right, Kokkos::Iterate::Left};
template <int Pattern, int Rank>
using range = Kokkos::MDRangePolicy<space, Kokkos::Rank<Rank, patterns[Pattern], patterns[Pattern]>,
                                    Kokkos::IndexType<int64_t>>;
using line = Kokkos::RangePolicy<space, Kokkos::IndexType<int64_t>>;

void saxpy(double *const *p, int64_t n)
{
    view<double *, R> y(p[0], n);
    view<const double *, R> x(p[1], n);
    Kokkos::parallel_for(
        "saxpy", line(0, n), KOKKOS_LAMBDA(int64_t i) { y(i) = y(i) + 1.5 * x(i); });
}

void triad(double *const *p, int64_t n)
{
    view<double *, R> x(p[0], n);
    view<const double *, R> a(p[1], n), b(p[2], n);
    Kokkos::parallel_for(
        "triad", line(0, n), KOKKOS_LAMBDA(int64_t i) { x(i) = a(i) + 1.5 * b(i); });
}

template <class Out, class In, int P>
void copy(double *const *p, int64_t n)
{
    view<double **, Out> y(p[0], n, n);
    view<const double **, In> x(p[1], n, n);
    Kokkos::parallel_for(
        "copy", range<P, 2>({0, 0}, {n, n}),
        KOKKOS_LAMBDA(int64_t i, int64_t j) { y(i, j) = x(i, j); });
}

template <class Out, class In, int P>
void add(double *const *p, int64_t n)
{
    view<double **, Out> y(p[0], n, n);
    view<const double **, Out> x(p[1], n, n);
    view<const double **, In> z(p[2], n, n);
    Kokkos::parallel_for("add", range<P, 2>({0, 0}, {n, n}),
                         KOKKOS_LAMBDA(int64_t i, int64_t j) { y(i, j) = x(i, j) + z(i, j); });
}

template <class Out, class In, int P>
void stencil5(double *const *p, int64_t n)
{
    view<double **, Out> v(p[0], n, n);
    view<const double **, In> u(p[1], n, n);
    Kokkos::parallel_for(
        "stencil5", range<P, 2>({1, 1}, {n - 1, n - 1}), KOKKOS_LAMBDA(int64_t i, int64_t j) {
            v(i, j) = u(i, j) + 0.1 * ((u(i - 1, j) + u(i + 1, j)) + (u(i, j - 1) + u(i, j + 1)) -
                                       4.0 * u(i, j));
        });
}

template <class Out, class In, int P>
void stencil7(double *const *p, int64_t n)
{
    view<double ***, Out> v(p[0], n, n, n);
    view<const double ***, In> u(p[1], n, n, n);
    Kokkos::parallel_for(
        "stencil7", range<P, 3>({1, 1, 1}, {n - 1, n - 1, n - 1}),
        KOKKOS_LAMBDA(int64_t i, int64_t j, int64_t k) {
            v(i, j, k) = u(i, j, k) + 0.1 * ((u(i, j - 1, k) + u(i, j + 1, k)) +
                                             (u(i, j, k - 1) + u(i, j, k + 1)) +
                                             (u(i - 1, j, k) + u(i + 1, j, k)) - 6.0 * u(i, j, k));
        });
}

template <class In>
void rows(double *const *p, int64_t n)
{
    view<double *, R> y(p[0], n);
    view<const double **, In> a(p[1], n, n);
    Kokkos::parallel_for(
        "rows", line(0, n), KOKKOS_LAMBDA(int64_t i) {
            double s = 0;
            for (int64_t j = 0; j < n; j++)
                s += a(i, j);
            y(i) = s;
        });
}

template <class In>
void matvec(double *const *p, int64_t n)
{
    view<double *, R> y(p[0], n);
    view<const double **, In> a(p[1], n, n);
    view<const double *, R> x(p[2], n);
    Kokkos::parallel_for(
        "matvec", line(0, n), KOKKOS_LAMBDA(int64_t i) {
            double s = 0;
            for (int64_t j = 0; j < n; j++)
                s += a(i, j) * x(j);
            y(i) = s;
        });
}

#define OF_LAYOUTS(name)                                                                           \
    {                                                                                              \
        {name<R, R, 0>, name<R, R, 1>, name<R, R, 2>},                                             \
            {name<L, L, 0>, name<L, L, 1>, name<L, L, 2>},                                         \
        {                                                                                          \
            name<R, L, 0>, name<R, L, 1>, name<R, L, 2>                                            \
        }                                                                                          \
    }

struct kernel {
    const char *name;
    kokkos_loop loop[N_KOKKOS_LAYOUTS][N_KOKKOS_PATTERNS];
};

const kernel kernels[] = {
    {"saxpy", {{saxpy}}},
    {"triad", {{triad}}},
    {"copy", OF_LAYOUTS(copy)},
    {"add", OF_LAYOUTS(add)},
    {"stencil5", OF_LAYOUTS(stencil5)},
    {"stencil7", OF_LAYOUTS(stencil7)},
    {"rows", {{rows<R>}, {rows<L>}}},
    {"matvec", {{matvec<R>}, {matvec<L>}}},
};

} // namespace

extern "C" kokkos_loop quern_kokkos_loop(const char *name, int layout, int pattern)
{
    if (!Kokkos::is_initialized())
        Kokkos::initialize(Kokkos::InitializationSettings().set_disable_warnings(true));
    for (const kernel &k : kernels)
        if (!std::strcmp(k.name, name))
            return k.loop[layout][pattern];
    return nullptr;
}

extern "C" const char *quern_kokkos_version(void)
{
    static const std::string text = "Kokkos " + std::to_string(KOKKOS_VERSION / 10000) + "." +
                                    std::to_string(KOKKOS_VERSION / 100 % 100) + "." +
                                    std::to_string(KOKKOS_VERSION % 100) + ", " + space::name();
    return text.c_str();
}
