/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_hpp.cpp: quern.hpp: handles, exceptions, kernels built with operators and compared with C++
 * loops, and mdspan in and out. Built and run by check/hpp.sh.
 */
#include "tests/interop/hpp.hpp"

#include "quern/bytes.h"
#include "quern/dlpack.h"
#include "tests/interop/mdspan.hpp"

#include <cmath>
#include <cstring>
#include <cstdio>
#include <numeric>

namespace
{

void test_views()
{
    using quern::view;
    view v = view::make<double>("v", {3, 4});
    ok(v.rank() == 2 && v.extent(0) == 3 && v.stride(0) == 4 && v.size() == 12 &&
           v.use_count() == 1,
       "a new view");
    view copy = v;
    ok(v.use_count() == 2 && copy.data<double>() == v.data<double>(), "a copy is a reference");
    view moved = std::move(copy);
    ok(v.use_count() == 2 && moved.rank() == 2, "a move is not");
    copy = moved;
    ok(v.use_count() == 3, "assigned again after the move");
    copy = view();
    moved = view();
    ok(v.use_count() == 1, "released");
    v.at<double>(1, 2) = 5;
    view row = v.part({quern::at(1), quern::range(0, 4, 2)});
    ok(row.rank() == 1 && row.extent(0) == 2 && row.at<double>(1) == 5 && v.use_count() == 2,
       "a part");
    refused(QN_ERR_BOUNDS, "dimension 1", [&] { v.at<double>(0, 4); });
    refused(QN_ERR_DTYPE, "f64", [&] { (void)v.data<float>(); });
    refused(QN_ERR_RANK, "dimension 2", [&] { (void)v.extent(2); });
    refused(QN_ERR_EXTENT, "view \"bad\"", [] { view::make<float>("bad", {2, -1}); });

    const float numbers[6] = {1, 2, 3, 4, 5, 6};
    view constant = view::wrap("c", numbers, {2, 3});
    ok(constant.get()->traits == QN_READ_ONLY && constant.at<const float>(1, 0) == 4,
       "const memory is read-only");
    refused(QN_ERR_READ_ONLY, "read-only", [&] { (void)constant.data<float>(); });
    ok(quern::dtype_of<std::int64_t>() == QN_I64 && quern::dtype_of<unsigned char>() == QN_U8 &&
           quern::dtype_of<const short>() == QN_I16 && quern::dtype_of<bool>() == QN_BOOL,
       "dtypes");
    ok(quern::dtype_of<std::complex<double>>() == qn_dtype_of_name("c128"), "dtype of complex");
}

void test_kernel(const quern::context &c)
{
    quern::builder b("smooth");
    auto x = b.view<const double>("x", 1);
    auto y = b.view<double>("y", 1);
    auto w = b.scalar<double>("w");
    auto i = b.parallel(b.index(1), x.extent(0) - 1);
    y(i) = w * x(i) + (x(i - 1) + x(i + 1)) * 0.25;
    quern::kernel k = b.finish();
    ok(k.name() == "smooth" && quern::kernel::parse(k.text()).text() == k.text(), "text and back");

    constexpr int n = 1000;
    quern::view xs = quern::view::make<double>("xs", {n}),
                ys = quern::view::make<double>("ys", {n});
    double *px = xs.data<double>(), *py = ys.data<double>();
    std::iota(px, px + n, 0.5);
    c.launch(k, xs, ys, 0.5);
    bool same = true;
    for (int j = 1; j < n - 1; j++)
        same = same && py[j] == 0.5 * px[j] + (px[j - 1] + px[j + 1]) * 0.25;
    ok(same, "a stencil");
    quern::call call(c, k, xs, ys, 0.5);
    call.set(2, 0.0);
    call.run();
    ok(py[1] == (px[0] + px[2]) * 0.25, "a prepared call with another scalar");
    refused(QN_ERR_DTYPE, "qn_launch", [&] { c.launch(k, xs, ys, 0.5f); });
    ok(c.counters().launches > 0, "counters");
}

void test_pins()
{
    quern::builder b("pins");
    auto x = b.view<const float>("x", 1);
    auto n = b.scalar_multiple_of<std::int64_t>("n", 8);
    auto y = b.view<float>("y", 1);
    auto w = b.scalar<float>("w", QN_PIN_CONSTANT);
    x.pin(QN_PIN_EXTENT, 0, QN_PIN_DYNAMIC).multiple_of(QN_PIN_EXTENT, 0, 16);
    y.multiple_of(QN_PIN_LOWER, 0, 4);
    auto i = b.parallel(b.index(0), n);
    y(i) = w * x(i);
    const std::string text = b.finish().text();
    ok(text.find("view x: f32[1] read_only {extent 0 dynamic, extent 0 multiple_of 16};") !=
               std::string::npos &&
           text.find("scalar n: i64 {multiple_of 8};") != std::string::npos &&
           text.find("view y: f32[1] {lower 0 multiple_of 4};") != std::string::npos &&
           text.find("scalar w: f32 {constexpr};") != std::string::npos,
       "pins of parameters");
}

void test_kinds()
{
    quern::builder b("kinds");
    auto x = b.view<const float>("x", 2);
    x.kinds({1, 2});
    auto i = b.parallel(x, 0), j = b.parallel(x, 1);
    quern::value typed = x(i, j), again = x(j.with_kind(1), i.with_kind(2)), swapped = x(j, i);
    ok(typed.get().id != 0 && again.get().id != 0 && swapped.get().id == 0, "index kinds");
    refused(QN_ERR_TYPE, "index 0 has index kind 2", [&] { b.finish(); });
}

void test_control(const quern::context &c)
{
    quern::builder b("control");
    auto x = b.view<const std::int32_t>("x", 2);
    auto y = b.view<std::int32_t>("y", 1);
    auto i = b.parallel(x, 0);
    auto j = b.reduction(x, 1);
    auto sum = b.reduce(QN_COMBINE_SUM, {j}, [&] { return quern::value(x(i, j)) & 7; });
    auto small = b.if_rare(sum < 4, [&] { return sum; }, [&] { return -sum; });
    auto big = b.if_else(sum > 10, [&] { return sum * 2; }, [&] { return small; });
    auto tripled = b.fold(b.index(0), b.index(3), big * 0,
                          [&](quern::value, quern::value carried) { return carried + big; });
    b.if_(quern::cast<std::int64_t>(sum) != 5, [&] { y(i) = quern::max(tripled, big); });
    quern::kernel k = b.finish();

    quern::view xs = quern::view::make<std::int32_t>("xs", {20, 7});
    quern::view ys = quern::view::make<std::int32_t>("ys", {20});
    bool same = true;
    for (int r = 0; r < 20; r++)
        for (int s = 0; s < 7; s++)
            xs.at<std::int32_t>(r, s) = r * s - 3;
    c.launch(k, xs, ys);
    for (int r = 0; r < 20; r++) {
        int expected = 0;
        for (int s = 0; s < 7; s++)
            expected += (r * s - 3) & 7;
        const int twice = expected > 10 ? expected * 2 : expected < 4 ? expected : -expected;
        const int stored = expected == 5 ? 0 : std::max(3 * twice, twice);
        same = same && ys.at<std::int32_t>(r) == stored;
    }
    ok(same, "reduction, branches and a loop");
}

/* An element with a name of its own would be loaded where the name is used. */
static_assert(!std::is_copy_constructible_v<quern::element>);
static_assert(!std::is_convertible_v<quern::element &, quern::value>);
static_assert(!std::is_assignable_v<quern::element &, quern::value>);
static_assert(!std::is_assignable_v<quern::element &, float>);
static_assert(!std::is_assignable_v<quern::element, quern::element &>);
static_assert(std::is_assignable_v<quern::element, quern::value>);
static_assert(std::is_assignable_v<quern::element, quern::element>);
static_assert(std::is_convertible_v<quern::element, quern::value>);

void test_swap(const quern::context &c)
{
    quern::builder b("swap");
    auto x = b.view<float>("x", 1), y = b.view<float>("y", 1);
    auto i = b.parallel(x, 0);
    quern::value t = x(i);
    x(i) = y(i);
    y(i) = t;
    quern::kernel k = b.finish();
    quern::view xs = quern::view::make<float>("xs", {9}), ys = quern::view::make<float>("ys", {9});
    for (int n = 0; n < 9; n++) {
        xs.at<float>(n) = static_cast<float>(n);
        ys.at<float>(n) = -1;
    }
    c.launch(k, xs, ys);
    bool same = true;
    for (int n = 0; n < 9; n++)
        same = same && xs.at<float>(n) == -1 && ys.at<float>(n) == static_cast<float>(n);
    ok(same, "a value keeps what an element was before it was assigned to");
}

/* Several values at once: (gcd, steps) by Euclid, Fibonacci numbers, and the larger of two with its
 * number. */
void test_several(const quern::context &c)
{
    quern::builder b("several");
    auto x = b.view<const std::int64_t>("x", 1), y = b.view<const std::int64_t>("y", 1);
    auto out = b.view<std::int64_t>("out", 2);
    auto i = b.parallel(x, 0);
    quern::value p = x(i), q = y(i), none = b.constant<std::int64_t>(0);
    using pair = std::array<quern::value, 2>;
    using three = std::array<quern::value, 3>;
    auto [divisor, zero, steps] = b.while_(
        b.index(100), three{p, q, none}, [](const three &v) { return v[1] != 0; },
        [](const three &v) { return three{v[1], v[0] % v[1], v[2] + 1}; });
    auto [now, next] =
        b.fold(b.index(0), b.index(10), pair{none, none + 1},
               [](const quern::value &, const pair &v) { return pair{v[1], v[0] + v[1]}; });
    auto [most, which] =
        b.if_else(p > q, [&] { return pair{p, none}; }, [&] { return pair{q, none + 1}; });
    auto power = b.while_(
        b.index(100), none + 1, [top = most](const quern::value &v) { return v < top; },
        [](const quern::value &v) { return v * 2; });
    const quern::value all[] = {divisor, zero, steps, now, next, most, which, power};
    for (int n = 0; n < 8; n++)
        out(i, n) = all[n];
    quern::kernel k = b.finish();
    const std::int64_t expected[3][8] = {
        {6, 0, 2, 55, 89, 18, 0, 32}, {1, 0, 5, 55, 89, 13, 1, 16}, {7, 0, 1, 55, 89, 7, 1, 8}};
    quern::view xs = quern::view::make<std::int64_t>("xs", {3}),
                ys = quern::view::make<std::int64_t>("ys", {3});
    quern::view zs = quern::view::make<std::int64_t>("zs", {3, 8});
    const std::int64_t first[] = {18, 5, 7}, second[] = {12, 13, 7};
    for (int n = 0; n < 3; n++) {
        xs.at<std::int64_t>(n) = first[n];
        ys.at<std::int64_t>(n) = second[n];
    }
    c.launch(k, xs, ys, zs);
    bool same = true;
    for (int n = 0; n < 3; n++)
        for (int m = 0; m < 8; m++)
            same = same && zs.at<std::int64_t>(n, m) == expected[n][m];
    ok(same, "loops and branches of several values");
}

void test_assertions(const quern::context &c)
{
    quern::builder b("asserts");
    auto x = b.view<std::int32_t>("x", 1);
    auto i = b.parallel(x, 0);
    auto v = quern::value(x(i));
    b.assert_that(v >= 0, "not negative", {v, i});
    x(i) = v + 1;
    quern::kernel k = b.finish();
    quern::view xs = quern::view::make<std::int32_t>("xs", {10});
    c.launch(k, xs);
    ok(xs.at<std::int32_t>(9) == 1, "an assertion that holds");
    xs.at<std::int32_t>(4) = -7;
    try {
        c.launch(k, xs);
        ok(false, "an assertion that fails throws");
    } catch (const quern::error &e) {
        ok(e.status() == QN_ERR_ASSERT &&
               std::string(e.what()).find("\"not negative\" failed: -7, 4") != std::string::npos,
           "an assertion that fails throws");
    }
}

void test_prints(const quern::context &c)
{
    quern::builder b("prints");
    auto x = b.view<std::int32_t>("x", 1);
    auto i = b.parallel(x, 0);
    auto v = quern::value(x(i));
    b.print("before", {v, i});
    x(i) = v + 1;
    quern::kernel k = b.finish();
    quern::view xs = quern::view::make<std::int32_t>("xs", {2});
    std::string lines;
    qn_options o = {};
    o.bytes = sizeof o;
    o.print = [](void *arg, const qn_printed *line) {
        *static_cast<std::string *>(arg) += std::string(line->text) + "\n";
    };
    o.print_arg = &lines;
    c.launch_with(o, k, xs);
    ok(lines == "before: 0, 0; iteration (0)\nbefore: 0, 1; iteration (1)\n" &&
           xs.at<std::int32_t>(1) == 1,
       "prints");
}

void test_operators(const quern::context &c)
{
    quern::builder b("operators");
    auto x = b.view<const float>("x", 1);
    auto y = b.view<float>("y", 1);
    auto i = b.parallel(x, 0);
    quern::value v = x(i);
    auto t = quern::sqrt(quern::abs(v)) + quern::floor(v / 2) - 1.5f;
    y(i) = quern::select((v < 0) | (v >= 3), quern::fma(t, v, v), quern::op("trunc", t));
    y(i) += v;
    quern::kernel k = b.finish();
    quern::view xs = quern::view::make<float>("xs", {9}), ys = quern::view::make<float>("ys", {9});
    for (int j = 0; j < 9; j++)
        xs.at<float>(j) = static_cast<float>(j) - 4.25f;
    c.launch(k, xs, ys);
    bool same = true;
    for (int j = 0; j < 9; j++) {
        const float a = xs.at<float>(j);
        const float u = std::sqrt(std::fabs(a)) + std::floor(a / 2) - 1.5f;
        const float selected = a < 0 || a >= 3 ? std::fma(u, a, a) : std::trunc(u);
        same = same && ys.at<float>(j) == selected + a;
    }
    ok(same, "operators and functions");

    refused(QN_ERR_TYPE, "qn_add", [] {
        quern::builder wrong("wrong");
        auto f = wrong.scalar<float>("f");
        auto n = wrong.scalar<int>("n");
        auto out = wrong.view<float>("out", 0);
        out() = f + n;
        wrong.finish();
    });
    refused(QN_ERR_PARSE, "", [] { quern::kernel::parse("kernel {"); });
}

/** Every operator of an element, through an atomic view: all iterations update one element. */
void test_math(const quern::context &c)
{
    quern::builder b("math");
    auto x = b.view<const float>("x", 1);
    auto y = b.view<float>("y", 1);
    auto n = b.view<std::int32_t>("n", 1);
    auto i = b.parallel(x, 0);
    auto [fraction, exponent] = quern::frexp(x(i));
    auto [behind, before] = modf(fraction * 8);
    y(i) = ldexp(select(isnan(quern::value(x(i))), behind.like(0), behind), 2) +
           ldexp(exp2(before), exponent);
    n(i) = exponent;
    quern::kernel k = b.finish();

    constexpr int count = 100;
    quern::view xs = quern::view::make<float>("xs", {count}),
                ys = quern::view::make<float>("ys", {count});
    quern::view ns = quern::view::make<std::int32_t>("ns", {count});
    for (int j = 0; j < count; j++)
        xs.at<float>(j) = 0.37f * static_cast<float>(j * j - 500);
    c.launch(k, xs, ys, ns);
    bool same = true;
    for (int j = 0; j < count; j++) {
        int e = 0;
        float whole = 0, left = std::modf(8 * std::frexp(xs.at<float>(j), &e), &whole);
        same = same && ns.at<std::int32_t>(j) == e &&
               ys.at<float>(j) == std::ldexp(left, 2) + std::ldexp(std::exp2(whole), e);
    }
    ok(same, "mathematical functions by their names");
}

/** Functions of complex numbers by their names; the error of each is some ulp. */
void test_complex(const quern::context &c)
{
    using number = std::complex<double>;
    quern::builder b("complex");
    auto z = b.view<const number>("z", 1);
    auto w = b.view<number>("w", 2);
    auto i = b.parallel(z, 0);
    quern::value v = z(i), back = polar(abs(v), arg(v));
    const quern::value all[] = {exp(v), log(v),          sqrt(v), sin(v),
                                cos(v), pow(v, conj(v)), back,    complex(imag(v), real(v))};
    constexpr int n_functions = 8, count = 10;
    for (int f = 0; f < n_functions; f++)
        w(i, f) = all[f];
    quern::kernel k = b.finish();
    quern::view zs = quern::view::make<number>("zs", {count}),
                ws = quern::view::make<number>("ws", {count, n_functions});
    for (int j = 0; j < count; j++)
        zs.at<number>(j) = number(0.5 * j - 2.1, 0.3 * j - 1.7);
    c.launch(k, zs, ws);
    bool same = true;
    for (int j = 0; j < count; j++) {
        number x = zs.at<number>(j);
        const number exact[] = {std::exp(x),
                                std::log(x),
                                std::sqrt(x),
                                std::sin(x),
                                std::cos(x),
                                std::pow(x, std::conj(x)),
                                x,
                                number(x.imag(), x.real())};
        for (int f = 0; f < n_functions; f++)
            same = same && std::abs(ws.at<number>(j, f) - exact[f]) <= 1e-14 * std::abs(exact[f]);
    }
    ok(same, "functions of complex numbers by their names");
}

#define QN_MATH(name, arguments, results, doc) #name,
const char *const math_names[] = {
#include "quern/math.def"
};
#undef QN_MATH

/** Every function of the table can be called with values, and gives what the table says. */
void test_math_names()
{
    quern::builder b("names");
    auto y = b.view<float>("y", 1);
    quern::value x = b.scalar<float>("x"), n = b.scalar<std::int32_t>("n");
    std::vector<quern::value> all;
    [[maybe_unused]] auto keep = [&](auto... v) { (all.push_back(v), ...); };
#define QN_CALL_T(name) quern::name(x)
#define QN_CALL_TT(name) quern::name(x, x)
#define QN_CALL_TI(name) quern::name(x, n)
#define QN_KEEP_T(call) keep(call);
#define QN_KEEP_B(call) keep(quern::cast<float>(call));
#define QN_KEEP_TT(call)                                                                           \
    {                                                                                              \
        auto [first, second] = call;                                                               \
        keep(first, second);                                                                       \
    }
#define QN_KEEP_TI(call)                                                                           \
    {                                                                                              \
        auto [first, second] = call;                                                               \
        keep(first, quern::cast<float>(second));                                                  \
    }
#define QN_MATH(name, arguments, results, doc) QN_KEEP_##results(QN_CALL_##arguments(name))
#include "quern/math.def"
#undef QN_MATH
    for (std::size_t i = 0; i < all.size(); i++)
        y(static_cast<int>(i)) = all[i];
    const std::string text = b.finish().text();
    bool has_all = true;
    for (const char *name : math_names)
        has_all = has_all && text.find(std::string("= ") + name + " ") != std::string::npos;
    ok(has_all, "every function of math.def has its name in C++");
}

void test_updates(const quern::context &c)
{
    constexpr int n = 20000;
    quern::builder b("updates");
    auto x = b.view<const std::uint32_t>("x", 1);
    auto y = b.view<std::uint32_t>("y", 1, QN_ATOMIC);
    auto i = b.parallel(x, 0);
    quern::value v = x(i);
    y(0) += 2;
    y(1) -= v;
    y(2) *= 3;
    y(3) /= 2;
    y(4) %= 1000;
    y(5) &= ~v;
    y(6) |= v;
    y(7) ^= v;
    y(8) <<= 1;
    y(9) >>= 1;
    y(10) *= v + 1;
    quern::kernel k = b.finish();
    quern::view xs = quern::view::make<std::uint32_t>("xs", {n}),
                ys = quern::view::make<std::uint32_t>("ys", {11});
    std::array<std::uint32_t, 11> y0{};
    y0.fill(0xfffffffeu);
    for (int j = 0; j < 11; j++)
        ys.at<std::uint32_t>(j) = y0[static_cast<std::size_t>(j)];
    for (int j = 0; j < n; j++) {
        const std::uint32_t a = xs.at<std::uint32_t>(j) = static_cast<std::uint32_t>(j) * 2;
        y0[0] += 2, y0[1] -= a, y0[2] *= 3, y0[3] /= 2, y0[4] %= 1000, y0[5] &= ~a;
        y0[6] |= a, y0[7] ^= a, y0[8] <<= 1, y0[9] >>= 1, y0[10] *= a + 1;
    }
    qn_options o{};
    o.bytes = sizeof o;
    o.executor = QN_THREADS;
    const qn_arg args[] = {qn_arg_view(xs.get()), qn_arg_view(ys.get())};
    qn_error e{};
    quern::check(qn_launch(c.get(), k.get(), 2, args, &o, &e), e);
    bool same = true;
    for (int j = 0; j < 11; j++)
        same = same && ys.at<std::uint32_t>(j) == y0[static_cast<std::size_t>(j)];
    ok(same, "updates with every operator on several threads");
}

template <class M> void fill(const M &m)
{
    for (int r = 0; r < 2; r++)
        for (int s = 0; s < 3; s++)
            m.data_handle()[r * m.stride(0) + s * m.stride(1)] = 10.0f * static_cast<float>(r) +
                                                                 static_cast<float>(s);
}

/** There and back through a layout. */
template <class M> void test_round_trip(const M &m, const char *what)
{
    fill(m);
    quern::view v = quern::from_mdspan(m, what);
    bool same = v.rank() == 2;
    for (int r = 0; r < 2; r++)
        for (int s = 0; s < 3; s++)
            same =
                same && v.at<float>(r, s) == 10.0f * static_cast<float>(r) + static_cast<float>(s);
    const M back = quern::to_mdspan<M>(v);
    ok(same && back.data_handle() == m.data_handle() && back.extent(0) == 2 &&
           back.extent(1) == 3 && back.stride(0) == m.stride(0) && back.stride(1) == m.stride(1),
       what);
}

void test_mdspan()
{
    using namespace tiny;
    using e = extents<int, dynamic_extent, 3>;
    using right = mdspan<float, e>;
    using left = mdspan<float, e, layout_left>;
    using strided = mdspan<float, e, layout_stride>;
    float room[40] = {};
    const e shape(std::array<int, 2>{{2, 3}});
    test_round_trip(right(room, right::mapping_type(shape)), "layout_right");
    test_round_trip(left(room, left::mapping_type(shape)), "layout_left");
    test_round_trip(strided(room, strided::mapping_type(shape, {{2, 7}})), "layout_stride");

    using readable = mdspan<const float, e>;
    const float constant[6] = {};
    quern::view v = quern::from_mdspan(readable(constant, readable::mapping_type(shape)));
    ok(v.get()->traits == QN_READ_ONLY && quern::to_mdspan<readable>(v).data_handle() == constant,
       "const elements");
    refused(QN_ERR_READ_ONLY, "read-only", [&] { quern::to_mdspan<right>(v); });

    quern::view w = quern::view::make<float>("w", {2, 3});
    refused(QN_ERR_UNSUPPORTED, "dimension 0", [&] { quern::to_mdspan<left>(w); });
    refused(QN_ERR_DTYPE, "f32", [&] { quern::to_mdspan<mdspan<double, e>>(w); });
    refused(QN_ERR_RANK, "rank 2", [&] { quern::to_mdspan<mdspan<float, extents<int, 2>>>(w); });
    refused(QN_ERR_EXTENT, "dimension 1",
            [&] { quern::to_mdspan<mdspan<float, extents<int, 2, 4>>>(w); });
    qn_layout backwards{};
    const std::int64_t n[] = {2, 3}, s[] = {3, -1};
    qn_layout_strided(2, n, s, &backwards, nullptr);
    quern::view r = quern::view::wrap_with("r", room + 10, backwards);
    refused(QN_ERR_UNSUPPORTED, "strides below 1", [&] { quern::to_mdspan<strided>(r); });
    quern::view longer = quern::view::make<float>("l", {200, 3});
    using narrow = extents<std::int8_t, dynamic_extent, dynamic_extent>;
    refused(QN_ERR_OVERFLOW, "dimension 0",
            [&] { quern::to_mdspan<mdspan<float, narrow>>(longer); });
    using scalar = mdspan<float, extents<int>>;
    quern::view zero = quern::view::make<float>("z", std::vector<std::int64_t>{});
    ok(quern::to_mdspan<scalar>(zero).data_handle() == zero.data<float>(), "rank 0");
}

#if defined(__cpp_lib_mdspan)
void test_standard()
{
    float room[40] = {};
    using e = std::extents<int, std::dynamic_extent, 3>;
    using right = std::mdspan<float, e>;
    using left = std::mdspan<float, e, std::layout_left>;
    using strided = std::mdspan<float, e, std::layout_stride>;
    const e shape(2);
    test_round_trip(right(room, right::mapping_type(shape)), "std::layout_right");
    test_round_trip(left(room, left::mapping_type(shape)), "std::layout_left");
    const std::array<int, 2> strides{{2, 7}};
    test_round_trip(strided(room, strided::mapping_type(shape, strides)), "std::layout_stride");
    quern::view v = quern::view::make<float>("v", {4, 5, 6});
    const auto m = quern::to_mdspan<quern::strided_mdspan<float, 3>>(v);
    ok(m.stride(0) == 30 && m.stride(1) == 6 && m.extent(2) == 6, "strided_mdspan");
}
#else
void test_standard()
{
    std::printf("ok %d # SKIP no <mdspan>\n", ++n_tests);
}
#endif

void test_c_headers()
{
    quern::view v = quern::view::make<float>("v", {2, 3});
    qn_error e{};
    qn_dl_managed_versioned *m = nullptr;
    quern::check(qn_view_to_dlpack_versioned(v.get(), nullptr, nullptr, &m, &e), e);
    qn_view taken{};
    quern::check(qn_view_take_dlpack_versioned("taken", m, 0, &taken, &e), e);
    quern::view back(taken);
    ok(v.use_count() == 2 && back.data<float>() == v.data<float>(), "DLPack from C++");
}

/** The lists of quern.h: each argument is evaluated once, and the array lives through the call. */
void test_lists()
{
    qn_builder *b = qn_builder_new("lists", 0);
    qn_param x = qn_view_param(b, "x", QN_F32, 2, 0), s = qn_view_param(b, "s", QN_F32, 0, 0);
    int n_calls = 0;
    const auto next = [&] { return qn_index(b, ++n_calls); };
    qn_store(b, s, QN_AT(), qn_load(b, x, QN_AT(next(), next())));
    qn_kernel *k = nullptr;
    qn_error err{};
    ok(qn_finish(b, &k, &err) == QN_OK && n_calls == 2, "QN_AT in C++ evaluates each index once");
    char text[400];
    qn_kernel_print(k, text, sizeof text);
    ok(std::strstr(text, "load x[%0, %1];") != nullptr, "... and gives them in their order");
    qn_kernel_release(k);
    qn_builder_release(b);
    const std::int64_t extents[] = {4, 10};
    qn_layout l, part;
    qn_layout_right(2, extents, &l, &err);
    ok(qn_layout_slice(&l, QN_SLICES(qn_at(1), qn_range(2, 6)), &part, &err) == QN_OK &&
           part.rank == 1 && part.dim[0].extent == 4 && part.origin == 12,
       "QN_SLICES in C++");
}

} // namespace

int main()
{
    return run_tests([] {
        quern::context c;
        quern::context moved = std::move(c);
        test_views();
        test_kernel(moved);
        test_pins();
        test_kinds();
        test_control(moved);
        test_swap(moved);
        test_several(moved);
        test_assertions(moved);
        test_prints(moved);
        test_operators(moved);
        test_updates(moved);
        test_math(moved);
        test_complex(moved);
        test_math_names();
        test_mdspan();
        test_standard();
        test_c_headers();
        test_lists();
    });
}
