/* SPDX-License-Identifier: Apache-2.0 */
/*
 * use.cpp: use.c in C++.
 */
#include <quern.hpp>
#include <quern_version.h>

#include <cstdio>

int main()
{
    quern::builder b("saxpy");
    auto x = b.view<const float>("x", 1);
    auto y = b.view<float>("y", 1);
    auto a = b.scalar<float>("a");
    auto i = b.parallel(y, 0);
    y(i) = a * x(i) + y(i);
    quern::kernel k = b.finish();

    quern::view vx = quern::view::make<float>("x", {100});
    quern::view vy = quern::view::make<float>("y", {100});
    for (int j = 0; j < 100; j++) {
        vx.at<float>(j) = static_cast<float>(j);
        vy.at<float>(j) = 1;
    }
    quern::context c;
    c.launch(k, vx, vy, 2.0f);
    std::printf("version %s %d, y[10] = %g, compiles %lld\n", QN_VERSION_TEXT,
                qn_version() == QN_VERSION_HEX, static_cast<double>(vy.at<float>(10)),
                static_cast<long long>(c.counters().compiles));
    return vy.at<float>(10) != 21;
}
