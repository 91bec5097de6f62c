/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hpp.hpp: test points of the programs that test quern.hpp.
 */
#ifndef QN_TESTS_INTEROP_HPP_HPP
#define QN_TESTS_INTEROP_HPP_HPP

#include "quern.hpp"

#include <cstdio>
#include <exception>
#include <string>

inline int n_tests, n_failed;

inline bool ok(bool passed, const std::string &what)
{
    n_failed += !passed;
    std::printf("%s %d - %s\n", passed ? "ok" : "not ok", ++n_tests, what.c_str());
    std::fflush(stdout);
    return passed;
}

/** f() must throw a quern::error with this status; the message is shown. */
template <class F> void refused(qn_status status, const char *part, F &&f)
{
    try {
        f();
        ok(false, std::string("nothing thrown: ") + part);
    } catch (const quern::error &e) {
        ok(e.status() == status && std::string(e.what()).find(part) != std::string::npos, e.what());
    }
}

/** Runs f, ends the tests, and gives what main returns. */
template <class F> int run_tests(F &&f)
{
    std::printf("TAP version 13\n");
    try {
        f();
    } catch (const std::exception &e) {
        ok(false, std::string("thrown: ") + e.what());
    }
    std::printf("1..%d\n", n_tests);
    return n_failed != 0;
}

#endif
