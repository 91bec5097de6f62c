/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_hpp_parity.cpp: what the builder of C has beyond elements and regions, in quern.hpp:
 * functions and libraries, constant arrays, records, rows, random numbers, complex numbers, places,
 * options as text; and views. Built and run by check/hpp.sh.
 */
#include "tests/interop/hpp.hpp"
#include "tests/interop/mdspan.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <numeric>

namespace
{

void test_functions(const quern::context &c)
{
    quern::function_builder fb("polynomial");
    auto x = fb.scalar<double>("x");
    auto coefficients = fb.view<const double>("c", 1);
    auto value =
        fb.fold(fb.index(0), coefficients.extent(0), fb.constant(0.0),
                [&](quern::value i, quern::value sum) { return sum * x + coefficients(i); });
    const quern::function f = fb.finish({value, value > 1});
    const quern::function copy = f;
    ok(copy.name() == "polynomial" && f.n_params() == 2 && f.n_results() == 2, "a function");

    quern::builder b("calls");
    auto xs = b.view<const double>("xs", 1), cs = b.view<const double>("cs", 1);
    auto ys = b.view<double>("ys", 1);
    auto i = b.parallel(xs, 0);
    const auto results = b.invoke(f, {xs(i)}, {cs});
    ys(i) = quern::select(results[1], results[0], -results[0]);
    const quern::kernel k = b.finish();
    auto x_view = quern::view::make<double>("x", {6}), c_view = quern::view::make<double>("c", {3}),
         y_view = quern::view::make<double>("y", {6});
    double *px = x_view.data<double>(), *pc = c_view.data<double>();
    std::iota(px, px + 6, -2.0);
    std::iota(pc, pc + 3, 1.0);
    c.launch(k, x_view, c_view, y_view);
    bool same = true;
    for (int n = 0; n < 6; n++) {
        const double p = (px[n] + 2) * px[n] + 3;
        same = same && y_view.at<double>(n) == (p > 1 ? p : -p);
    }
    ok(same, "a kernel that calls it");

    const quern::library l(f.text());
    const quern::library more(
        "function \"twice\" { scalar x: f64; %0: f64 = param x; %1: f64 = add %0, %0; return %1; }",
        &l);
    ok(l.find("polynomial").n_results() == 2 &&
           more.find("twice").text().find("add") != std::string::npos,
       "libraries");
    refused(QN_ERR_NOT_FOUND, "nothing", [&] { l.find("nothing"); });
    refused(QN_ERR_PARSE, "line 1", [] { quern::library bad("function {"); });
    const quern::kernel text = l.parse(k.text());
    ok(text.name() == "calls", "a kernel text with functions of a library");

    quern::builder again("applied");
    auto xa = again.view<const double>("xs", 1), ca = again.view<const double>("cs", 1);
    auto ya = again.view<double>("ys", 1);
    auto j = again.parallel(xa, 0);
    again.apply(k, {j}, {}, {xa, ca, ya});
    ya(j) += 1;
    c.launch(again.finish(), x_view, c_view, y_view);
    ok(y_view.at<double>(5) == (px[5] + 2) * px[5] + 4, "a kernel inside a kernel");
}

void test_constants(const quern::context &c)
{
    quern::builder b("constants");
    auto y = b.view<std::int32_t>("y", 1);
    auto z = b.view<std::complex<float>>("z", 1);
    const quern::table t = b.constants(std::vector<std::int32_t>{10, 20, 30});
    auto i = b.parallel(y, 0);
    y(i) = t(i - 1);
    z(i) = b.constant(std::complex<float>(1, 2));
    auto v = quern::value(z(i));
    z(i) = v * std::complex<float>(0, 1) + 3;
    auto bits = quern::bitcast<std::uint32_t>(quern::real(v));
    y(i) += quern::cast<std::int32_t>(quern::clz(bits) + quern::ctz(bits)) +
            quern::cast<std::int32_t>(quern::copysign(quern::real(v), b.constant(-1.0f)));
    const quern::kernel k = b.finish();
    auto ys = quern::view::make<std::int32_t>("ys", {5});
    auto zs = quern::view::make<std::complex<float>>("zs", {5});
    c.launch(k, ys, zs);
    const int one = 2 + 23 - 1; /* 0x3f800000 has 2 zero bits above and 23 below */
    const int expected[] = {10, 10, 20, 30, 30};
    bool same = true;
    for (int n = 0; n < 5; n++)
        same = same && ys.at<std::int32_t>(n) == expected[n] + one &&
               zs.at<std::complex<float>>(n) == std::complex<float>(1, 1);
    ok(same, "constant arrays, complex constants, bits");
}

void test_assignments(const quern::context &c)
{
    quern::builder b("assignments");
    auto y = b.view<std::uint32_t>("y", 1);
    auto x = b.view<const std::uint32_t>("x", 1);
    auto i = b.parallel(y, 0);
    quern::value v = x(i);
    v += 7u;
    v -= x(i) / 2u;
    v *= 5u;
    v /= 3u;
    v %= 1000u;
    v |= 4u;
    v &= 0xffeu;
    v ^= x(i);
    v <<= 2u;
    v >>= 1u;
    y(i) = v;
    const quern::kernel k = b.finish();
    auto xs = quern::view::make<std::uint32_t>("xs", {100}),
         ys = quern::view::make<std::uint32_t>("ys", {100});
    for (unsigned n = 0; n < 100; n++)
        xs.at<std::uint32_t>(n) = n * n * 77;
    c.launch(k, ys, xs);
    bool same = true;
    for (unsigned n = 0; n < 100; n++) {
        const std::uint32_t a = xs.at<std::uint32_t>(n);
        std::uint32_t u = a;
        u += 7, u -= a / 2, u *= 5, u /= 3, u %= 1000, u |= 4, u &= 0xffe, u ^= a, u <<= 2, u >>= 1;
        same = same && ys.at<std::uint32_t>(n) == u;
    }
    ok(same, "every assignment operator of a value");
}

struct particle {
    double mass;
    float charge;
    std::int32_t kind;
};

void test_records(const quern::context &c)
{
    const qn_field fields[] = {
        {"mass", QN_F64, 0, QN_NEXT}, {"charge", QN_F32, 0, QN_NEXT}, {"kind", QN_I32, 0, QN_NEXT}};
    qn_record *record = nullptr;
    qn_error e{};
    quern::check(qn_record_new(3, fields, sizeof(particle), 0, &record, &e), e);
    quern::builder b("records");
    auto p = b.records("p", record, 1);
    auto i = b.parallel(p, 0);
    p(i).field<double>(0) *= 2;
    p(i).field<float>(1) = quern::cast<float>(quern::value(p(i).field<std::int32_t>(2))) + 0.5f;
    auto whole = quern::value(p(i));
    p(i) = quern::with_field(whole, 2, quern::field_of(whole, 2) + 1);
    const quern::kernel k = b.finish();
    particle list[4] = {};
    for (int n = 0; n < 4; n++)
        list[n] = {n + 0.25, 0, n * 10};
    qn_layout l{};
    const std::int64_t extent = 4;
    qn_layout_right(1, &extent, &l, nullptr);
    qn_view v{};
    quern::check(qn_view_wrap_record("list", list, record, &l, 0, &v, &e), e);
    const quern::view view(v);
    c.launch(k, view);
    bool same = true;
    for (int n = 0; n < 4; n++) {
        const float charge = static_cast<float>(n * 10) + 0.5f;
        same = same && list[n].mass == 2 * (n + 0.25) && list[n].charge == charge &&
               list[n].kind == n * 10 + 1;
    }
    ok(same, "fields of records are read, assigned to and updated");
    ok(view.field(2).at<std::int32_t>(3) == 31, "the view of a field");

    quern::builder made("made");
    auto q = made.records("q", record, 1);
    auto j = made.parallel(q, 0);
    q(j) = made.record_of(record,
                          {made.constant(1.5), made.constant(2.5f), quern::cast<std::int32_t>(j)});
    c.launch(made.finish(), view);
    ok(list[3].mass == 1.5 && list[3].charge == 2.5f && list[3].kind == 3, "a record of values");
    qn_record_release(record);
}

/** Rows of a sparse matrix: sums and counts, by a fold and by indices. */
void test_rows(const quern::context &c)
{
    quern::builder b("rows");
    auto map = b.view<const std::int64_t>("map", 1);
    auto x = b.view<const double>("x", 1);
    auto y = b.view<double>("y", 2);
    auto r = b.parallel(b.index(0), map.extent(0) - 1);
    const auto sums =
        b.fold_row(map, r, std::array<quern::value, 2>{b.constant(0.0), b.constant(0.0)},
                   [&](quern::value i, const std::array<quern::value, 2> &s) {
                       return std::array<quern::value, 2>{s[0] + x(i), s[1] + 1.0};
                   });
    y(r, 0) = sums[0];
    y(r, 1) = sums[1] * 10 + quern::cast<double>(map.row_end(r) - map.row_begin(r));
    b.if_(map.row_end(r) > map.row_begin(r), [&] { y(r, 2) = x(map.row_at(r, b.index(0))); });
    const quern::kernel k = b.finish();
    const std::int64_t rows[] = {0, 2, 2, 5};
    const double entries[] = {1, 2, 3, 4, 5};
    auto ys = quern::view::make<double>("ys", {3, 3});
    c.launch(k, quern::view::wrap("rows", rows, {4}), quern::view::wrap("entries", entries, {5}),
             ys);
    const double expected[] = {3, 22, 1, 0, 0, 0, 12, 33, 3};
    ok(std::memcmp(ys.data<double>(), expected, sizeof expected) == 0, "rows of different lengths");
}

void test_random(const quern::context &c)
{
    quern::builder b("random");
    auto y = b.view<double>("y", 2);
    auto words = b.view<std::uint32_t>("words", 2);
    auto seed = b.scalar<std::uint64_t>("seed");
    auto i = b.parallel(y, 0);
    y(i, 0) = quern::uniform_f64(seed, i);
    y(i, 1) = quern::normal_f64(seed, i);
    y(i, 2) = quern::cast<double>(quern::below(b.constant(std::uint32_t{6}), seed, i));
    const auto four = quern::math<4>("random4", seed, i);
    for (int w = 0; w < 4; w++)
        words(i, w) = four[static_cast<std::size_t>(w)];
    const quern::kernel k = b.finish();
    auto ys = quern::view::make<double>("ys", {1000, 3});
    auto ws = quern::view::make<std::uint32_t>("ws", {1000, 4});
    c.launch(k, ys, ws, std::uint64_t{42});
    double mean = 0, squares = 0;
    int sixes[6] = {};
    for (int n = 0; n < 1000; n++) {
        mean += ys.at<double>(n, 0) / 1000;
        squares += ys.at<double>(n, 1) * ys.at<double>(n, 1) / 1000;
        sixes[static_cast<int>(ys.at<double>(n, 2))]++;
    }
    ok(std::fabs(mean - 0.5) < 0.05 && std::fabs(squares - 1) < 0.2, "uniform and normal numbers");
    ok(*std::min_element(sixes, sixes + 6) > 100, "integers below a bound");
    ok(ws.at<std::uint32_t>(0, 0) != ws.at<std::uint32_t>(0, 1) &&
           ws.at<std::uint32_t>(1, 0) != ws.at<std::uint32_t>(0, 0),
       "functions with four results");
}

void test_places()
{
    quern::builder b("places");
    auto x = b.view<float>("x", 1);
    auto i = b.parallel(x, 0);
    b.check_so_far();
    b.at("places.dsl", 3, 5);
    auto speed = b.name(x(i), "speed");
    x(i) = speed + i;
    refused(QN_ERR_TYPE, "(\"speed\")", [&] { b.check_so_far(); });
    refused(QN_ERR_TYPE, "at places.dsl:3:5", [&] { b.finish(); });
}

void test_running(const quern::context &c)
{
    using number = std::complex<double>;
    quern::builder b("running");
    auto z = b.view<number>("z", 1);
    auto w = b.scalar<number>("w");
    auto i = b.sequential(z, 0);
    b.name(i, "step");
    z(i) = w * z(i);
    const quern::kernel k = b.finish();
    auto zs = quern::view::make<number>("zs", {3});
    c.fill(zs, number(0, 1));
    c.launch(k, zs, number(2, 1));
    ok(zs.at<number>(2) == number(-1, 2),
       "complex arguments, fill, a sequential dimension of a view");
    quern::options o("engine=interp strict=1");
    c.launch_with(o, k, zs, number(1, 0));
    o->timeout_ns = 1000000000;
    quern::call call(o, c, k, zs, number(0, 1));
    call.run();
    ok(zs.at<number>(0) == number(-2, -1), "options as text");
    refused(QN_ERR_ARGUMENT, "engine=fast", [] { quern::options bad("engine=fast"); });
    ok(c.explain(k, zs, number(1, 0)).find("kernel:") == 0, "explain");
    auto real = quern::view::make<float>("real", {3});
    c.convert(real, zs.field(0));
    ok(real.at<float>(1) == -2, "parts of complex numbers, converted");
    auto back = quern::view::make<number>("back", {3});
    c.copy(back.reversed(0), zs);
    ok(back.at<number>(2) == zs.at<number>(0), "a copy, reversed");
    auto m = quern::view::make<int>("m", {2, 3});
    m.at<int>(1, 2) = 7;
    ok(m.permuted({1, 0}).at<int>(2, 1) == 7 &&
           m.with_traits(QN_READ_ONLY).get()->traits == QN_READ_ONLY,
       "permuted, traits");
    refused(QN_ERR_RANK, "permuted", [&] { (void)m.permuted({0}); });
}

void test_atomics(const quern::context &c)
{
    quern::builder b("compare");
    auto owner = b.view<std::int64_t>("owner", 1);
    auto won = b.view<std::int64_t>("won", 1);
    auto i = b.parallel(won, 0);
    quern::value old = owner(0).compare_exchange(b.constant(std::int64_t{-1}), i);
    won(i) = quern::cast<std::int64_t>(old == -1);
    const quern::kernel k = b.finish();
    auto o = quern::view::make<std::int64_t>("o", {1}),
         w = quern::view::make<std::int64_t>("w", {100});
    o.at<std::int64_t>(0) = -1;
    c.launch(k, o, w);
    std::int64_t winners = 0;
    for (int n = 0; n < 100; n++)
        winners += w.at<std::int64_t>(n);
    ok(winners == 1 && w.at<std::int64_t>(o.at<std::int64_t>(0)) == 1,
       "compare_exchange has one winner");
}

void test_mdspan()
{
    using strided = tiny::mdspan<float, tiny::extents<int, 3, 2>, tiny::layout_stride>;
    float room[8] = {};
    qn_layout l{};
    const std::int64_t n[] = {3, 2}, twice[] = {1, 1}, zero[] = {2, 0};
    qn_layout_strided(2, n, twice, &l, nullptr);
    refused(QN_ERR_NOT_INJECTIVE, "one element",
            [&] { quern::to_mdspan<strided>(quern::view::wrap_with("twice", room, l)); });
    qn_layout_strided(2, n, zero, &l, nullptr);
    refused(QN_ERR_UNSUPPORTED, "dimension 1",
            [&] { quern::to_mdspan<strided>(quern::view::wrap_with("zero", room, l)); });
#if defined(QUERN_HAS_MDSPAN)
    quern::view v = quern::view::make<float>("v", {4, 5, 6});
    const auto m =
        quern::as_mdspan<float, 2>(v.part({quern::all(), quern::at(2), quern::range(0, 6, 2)}));
    ok(m.stride(0) == 30 && m.stride(1) == 2 && m.extent(1) == 3 &&
           m.data_handle() == v.data<float>() + 12,
       "as_mdspan");
#else
    std::printf("ok %d # SKIP no mdspan\n", ++n_tests);
#endif
}

} // namespace

int main()
{
    return run_tests([] {
        const quern::context c;
        test_functions(c);
        test_constants(c);
        test_assignments(c);
        test_records(c);
        test_rows(c);
        test_random(c);
        test_places();
        test_running(c);
        test_atomics(c);
        test_mdspan();
    });
}
