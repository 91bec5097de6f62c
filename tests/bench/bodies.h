/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bodies.h: loop bodies of RAJAPerf's kernels, restated; each is C code and the text from which
 * bench_body.c builds a kernel, so both sides compute the same. Arrays that are written are O, P,
 * Q, R, S, U, V and W, those that are read A to H; `real` is the element type (also a cast of an
 * index), root() the square root, size() the magnitude.
 *
 * X(NAME, rank, arrays written, arrays read, first index, indices left out at the end, body)
 */
#ifndef QN_TESTS_BENCH_BODIES_H
#define QN_TESTS_BENCH_BODIES_H

enum { BODY_1D = 1000000, BODY_2D = 1002, BODY_3D = 102, BODY_STEP = 2 };

/* EDGE3D: eight nodes of a zone; gradients of its three directions at a point of quadrature; twelve
 * functions of its edges and their curls; all products of two of them. */
#define EDGE_NODES(x, V, di, dj, dk)                                                               \
    real x##0 = 0.1 * V(i, j, k);                                                                  \
    real x##1 = 0.1 * V(i + 1, j, k) + di;                                                         \
    real x##2 = 0.1 * V(i, j + 1, k) + dj;                                                         \
    real x##3 = 0.1 * V(i + 1, j + 1, k) + di + dj;                                                \
    real x##4 = 0.1 * V(i, j, k + 1) + dk;                                                         \
    real x##5 = 0.1 * V(i + 1, j, k + 1) + di + dk;                                                \
    real x##6 = 0.1 * V(i, j + 1, k + 1) + dj + dk;                                                \
    real x##7 = 0.1 * V(i + 1, j + 1, k + 1) + di + dj + dk
#define EDGE_SLOPES(x)                                                                             \
    real x##i =                                                                                    \
        0.62 * (x##1 - x##0) + 0.17 * (x##3 - x##2) + 0.17 * (x##5 - x##4) + 0.04 * (x##7 - x##6); \
    real x##j =                                                                                    \
        0.62 * (x##2 - x##0) + 0.17 * (x##3 - x##1) + 0.17 * (x##6 - x##4) + 0.04 * (x##7 - x##5); \
    real x##k =                                                                                    \
        0.62 * (x##4 - x##0) + 0.17 * (x##5 - x##1) + 0.17 * (x##6 - x##2) + 0.04 * (x##7 - x##3)
#define EDGE_CROSS(g, x, y, z, p, q)                                                               \
    real g##x = (y##p * z##q - y##q * z##p) * r;                                                   \
    real g##y = (z##p * x##q - z##q * x##p) * r;                                                   \
    real g##z = (x##p * y##q - x##q * y##p) * r
#define EDGE_SCALED(e, g, w)                                                                       \
    real e##x = w * g##x;                                                                          \
    real e##y = w * g##y;                                                                          \
    real e##z = w * g##z
#define EDGE_CURL(c, f, g, v, w)                                                                   \
    real c##x = v * f##x + w * g##x;                                                               \
    real c##y = v * f##y + w * g##y;                                                               \
    real c##z = v * f##z + w * g##z
#define EDGE_FUNCTIONS(e1, e2, e3, e4, g)                                                          \
    EDGE_SCALED(e1, g, 0.62);                                                                      \
    EDGE_SCALED(e2, g, 0.17);                                                                      \
    EDGE_SCALED(e3, g, 0.17);                                                                      \
    EDGE_SCALED(e4, g, 0.04)
#define EDGE_CURLS(c1, c2, c3, c4, f, g)                                                           \
    EDGE_CURL(c1, f, g, -0.79, -0.79);                                                             \
    EDGE_CURL(c2, f, g, 0.79, -0.21);                                                              \
    EDGE_CURL(c3, f, g, -0.21, 0.79);                                                              \
    EDGE_CURL(c4, f, g, 0.21, 0.21)
#define EDGE_DOT(a, b) (a##x * b##x + a##y * b##y + a##z * b##z)
#define EDGE_12(e, a) EDGE_DOT(a, e##12)
#define EDGE_11(e, a) EDGE_DOT(a, e##11) + EDGE_12(e, a)
#define EDGE_10(e, a) EDGE_DOT(a, e##10) + EDGE_11(e, a)
#define EDGE_9(e, a) EDGE_DOT(a, e##9) + EDGE_10(e, a)
#define EDGE_8(e, a) EDGE_DOT(a, e##8) + EDGE_9(e, a)
#define EDGE_7(e, a) EDGE_DOT(a, e##7) + EDGE_8(e, a)
#define EDGE_6(e, a) EDGE_DOT(a, e##6) + EDGE_7(e, a)
#define EDGE_5(e, a) EDGE_DOT(a, e##5) + EDGE_6(e, a)
#define EDGE_4(e, a) EDGE_DOT(a, e##4) + EDGE_5(e, a)
#define EDGE_3(e, a) EDGE_DOT(a, e##3) + EDGE_4(e, a)
#define EDGE_2(e, a) EDGE_DOT(a, e##2) + EDGE_3(e, a)
#define EDGE_1(e, a) EDGE_DOT(a, e##1) + EDGE_2(e, a)
#define EDGE_PAIRS(e)                                                                              \
    EDGE_1(e, e##1) + EDGE_2(e, e##2) + EDGE_3(e, e##3) + EDGE_4(e, e##4) + EDGE_5(e, e##5) +      \
        EDGE_6(e, e##6) + EDGE_7(e, e##7) + EDGE_8(e, e##8) + EDGE_9(e, e##9) +                    \
        EDGE_10(e, e##10) + EDGE_11(e, e##11) + EDGE_12(e, e##12)

#define BENCH_BODIES(X)                                                                            \
    X(DAXPY, 1, 1, 1, 0, 0, O(i) = O(i) + 1.5 * A(i))                                              \
    X(COPY, 1, 1, 1, 0, 0, O(i) = A(i))                                                            \
    X(MUL, 1, 1, 1, 0, 0, O(i) = 1.5 * A(i))                                                       \
    X(ADD, 1, 1, 2, 0, 0, O(i) = A(i) + B(i))                                                      \
    X(TRIAD, 1, 1, 2, 0, 0, O(i) = A(i) + 1.5 * B(i))                                              \
    X(MEMSET, 1, 1, 0, 0, 0, O(i) = 0.25)                                                          \
    X(INIT3, 1, 3, 2, 0, 0, real t = -A(i) - B(i); O(i) = t; P(i) = t; Q(i) = t)                   \
    X(MULADDSUB, 1, 3, 2, 0, 0, O(i) = A(i) * B(i); P(i) = A(i) + B(i); Q(i) = A(i) - B(i))        \
    X(INIT_VIEW1D, 1, 1, 0, 0, 0, O(i) = real(i + 1) * 0.00000123)                                 \
    X(IF_QUAD, 1, 2, 3, 0, 0,                                                                      \
      real s = B(i) * B(i) - 4.0 * A(i) * C(i); real d = 0.5 / A(i); real t = root(s);             \
      O(i) = s >= 0.0 ? (t - B(i)) * d : 0.0; P(i) = s >= 0.0 ? (-B(i) - t) * d : 0.0)             \
    X(COPY8, 1, 8, 8, 0, 0,                                                                        \
      O(i) = A(i); P(i) = B(i); Q(i) = C(i); R(i) = D(i); S(i) = E(i); U(i) = F(i); V(i) = G(i);   \
      W(i) = H(i))                                                                                 \
    X(FIRST_DIFF, 1, 1, 1, 0, 1, O(i) = A(i + 1) - A(i))                                           \
    X(FIRST_SUM, 1, 1, 1, 1, 0, O(i) = A(i - 1) + A(i))                                            \
    X(HYDRO_1D, 1, 1, 2, 0, 12, O(i) = 0.5 + A(i) * (0.25 * B(i + 10) + 0.75 * B(i + 11)))         \
    X(EOS, 1, 1, 3, 0, 7,                                                                          \
      O(i) = A(i) + 0.25 * (B(i) + 0.25 * C(i)) +                                                  \
             0.75 * (A(i + 3) + 0.25 * (A(i + 2) + 0.25 * A(i + 1)) +                              \
                     0.75 * (A(i + 6) + 0.5 * (A(i + 5) + 0.5 * A(i + 4)))))                       \
    X(JACOBI_1D, 1, 1, 1, 1, 1, O(i) = 0.33333 * (A(i - 1) + A(i) + A(i + 1)))                     \
    X(FIR, 1, 1, 1, 0, 16,                                                                         \
      O(i) = 3.0 * A(i) - A(i + 1) - A(i + 2) - A(i + 3) - A(i + 4) + 3.0 * A(i + 5) - A(i + 6) -  \
             A(i + 7) - A(i + 8) - A(i + 9) + 3.0 * A(i + 10) - A(i + 11) - A(i + 12) -            \
             A(i + 13) - A(i + 14) + 3.0 * A(i + 15))                                              \
    X(PRESSURE, 1, 1, 3, 0, 0,                                                                     \
      real b = 0.66 * (A(i) + 1.0); real p = b * B(i); real q = size(p) < 0.1 ? 0.0 : p;           \
      real r = C(i) >= 1.4 ? 0.0 : q; O(i) = r < 0.2 ? 0.2 : r)                                    \
    X(ENERGY, 1, 1, 5, 0, 0,                                                                       \
      real e = A(i) - 0.5 * B(i) * (C(i) + D(i)) + 0.5 * E(i); O(i) = e < 0.6 ? 0.6 : e)           \
    X(VOL3D, 1, 1, 3, 0, 200,                                                                      \
      real x71 = A(i + 161) - A(i + 1); real x72 = A(i + 161) - A(i + 140);                        \
      real x74 = A(i + 161) - A(i + 20); real x30 = A(i + 21) - A(i);                              \
      real x50 = A(i + 141) - A(i); real x60 = A(i + 160) - A(i);                                  \
      real y71 = B(i + 161) - B(i + 1); real y72 = B(i + 161) - B(i + 140);                        \
      real y74 = B(i + 161) - B(i + 20); real y30 = B(i + 21) - B(i);                              \
      real y50 = B(i + 141) - B(i); real y60 = B(i + 160) - B(i);                                  \
      real z71 = C(i + 161) - C(i + 1); real z72 = C(i + 161) - C(i + 140);                        \
      real z74 = C(i + 161) - C(i + 20); real z30 = C(i + 21) - C(i);                              \
      real z50 = C(i + 141) - C(i); real z60 = C(i + 160) - C(i);                                  \
      real xp = x71 + x60; real yp = y71 + y60; real zp = z71 + z60;                               \
      real xq = x72 + x30; real yq = y72 + y30; real zq = z72 + z30;                               \
      real xr = x74 + x50; real yr = y74 + y50; real zr = z74 + z50;                               \
      real v1 = (xp * yq - xq * yp) * z30 + (yp * zq - yq * zp) * x30 + (xq * zp - xp * zq) * y30; \
      real v2 = (xq * yr - xr * yq) * z60 + (yq * zr - yr * zq) * x60 + (xr * zq - xq * zr) * y60; \
      real v3 = (xr * yp - xp * yr) * z50 + (yr * zp - yp * zr) * x50 + (xp * zr - xr * zp) * y50; \
      O(i) = (v1 + v2 + v3) * 0.0833333)                                                           \
    X(JACOBI_2D, 2, 1, 1, 1, 1,                                                                    \
      O(i, j) = 0.2 * (A(i, j) + A(i, j - 1) + A(i, j + 1) + A(i + 1, j) + A(i - 1, j)))           \
    X(FDTD_2D_E, 2, 2, 1, 1, 0,                                                                    \
      O(i, j) = O(i, j) - 0.5 * (A(i, j) - A(i - 1, j));                                           \
      P(i, j) = P(i, j) - 0.5 * (A(i, j) - A(i, j - 1)))                                           \
    X(FDTD_2D_H, 2, 1, 2, 0, 1,                                                                    \
      O(i, j) = O(i, j) - 0.7 * (A(i, j + 1) - A(i, j) + B(i + 1, j) - B(i, j)))                   \
    X(HYDRO_2D_Z, 2, 2, 4, 1, 1,                                                                   \
      O(i, j) = (A(i + 1, j - 1) + B(i + 1, j - 1) - A(i, j - 1) - B(i, j - 1)) *                  \
                (C(i, j) + C(i, j - 1)) / (D(i, j - 1) + D(i + 1, j - 1));                         \
      P(i, j) = (A(i, j - 1) + B(i, j - 1) - A(i, j) - B(i, j)) * (C(i, j) + C(i - 1, j)) /        \
                (D(i, j) + D(i, j - 1)))                                                           \
    X(HYDRO_2D_R, 2, 2, 4, 0, 0,                                                                   \
      O(i, j) = A(i, j) + 0.0041 * B(i, j); P(i, j) = C(i, j) + 0.0041 * D(i, j))                  \
    X(GEMVER_A, 2, 1, 2, 0, 0, O(i, j) = O(i, j) + A(i, j) * 0.5 + B(i, j) * 0.25)                 \
    X(FLOYD_WARSHALL, 2, 1, 1, 0, 0,                                                               \
      real t = A(i, 17) + A(17, j); O(i, j) = A(i, j) < t ? A(i, j) : t)                           \
    X(NESTED_INIT, 3, 1, 0, 0, 0, O(i, j, k) = 0.00000001 * real(i) * real(j) * real(k))           \
    X(HEAT_3D, 3, 1, 1, 1, 1,                                                                      \
      O(i, j, k) = 0.125 * (A(i + 1, j, k) - 2.0 * A(i, j, k) + A(i - 1, j, k)) +                  \
                   0.125 * (A(i, j + 1, k) - 2.0 * A(i, j, k) + A(i, j - 1, k)) +                  \
                   0.125 * (A(i, j, k + 1) - 2.0 * A(i, j, k) + A(i, j, k - 1)) + A(i, j, k))      \
    X(MATVEC_3D, 3, 1, 3, 1, 1,                                                                    \
      O(i, j, k) = A(i, j, k) * B(i, j, k) + A(i - 1, j, k) * B(i - 1, j, k) +                     \
                   A(i + 1, j, k) * B(i + 1, j, k) + C(i, j - 1, k) * B(i, j - 1, k) +             \
                   C(i, j + 1, k) * B(i, j + 1, k) + C(i, j, k - 1) * B(i, j, k - 1) +             \
                   C(i, j, k + 1) * B(i, j, k + 1))                                                \
    X(INIT_VIEW1D_OFFSET, 1, 1, 0, 1, 0, O(i) = real(i) * 0.00000123)                              \
    X(ARRAY_OF_PTRS, 1, 1, 5, 0, 0, O(i) = A(i) + B(i) + C(i) + D(i) + E(i))                       \
    X(TRIDIAG_ELIM, 1, 1, 3, 1, 0, O(i) = A(i) * (B(i) - C(i - 1)))                                \
    X(ZONAL_ACCUMULATION_3D, 3, 1, 1, 0, 1,                                                        \
      O(i, j, k) = 0.125 * (A(i, j, k) + A(i + 1, j, k) + A(i, j + 1, k) + A(i + 1, j + 1, k) +    \
                            A(i, j, k + 1) + A(i + 1, j, k + 1) + A(i, j + 1, k + 1) +             \
                            A(i + 1, j + 1, k + 1)))                                               \
    X(DEL_DOT_VEC_2D, 2, 1, 4, 0, 1,                                                               \
      real x1 = 0.1 * A(i, j); real x2 = 0.1 * A(i, j + 1) + 1.0;                                  \
      real x3 = 0.1 * A(i + 1, j + 1) + 1.0; real x4 = 0.1 * A(i + 1, j);                          \
      real y1 = 0.1 * B(i, j); real y2 = 0.1 * B(i, j + 1);                                        \
      real y3 = 0.1 * B(i + 1, j + 1) + 1.0; real y4 = 0.1 * B(i + 1, j) + 1.0;                    \
      real u1 = C(i, j); real u2 = C(i, j + 1); real u3 = C(i + 1, j + 1); real u4 = C(i + 1, j);  \
      real v1 = D(i, j); real v2 = D(i, j + 1); real v3 = D(i + 1, j + 1); real v4 = D(i + 1, j);  \
      real xi = 0.5 * (x1 + x2 - x3 - x4); real xj = 0.5 * (x2 + x3 - x4 - x1);                    \
      real yi = 0.5 * (y1 + y2 - y3 - y4); real yj = 0.5 * (y2 + y3 - y4 - y1);                    \
      real ui = 0.5 * (u1 + u2 - u3 - u4); real uj = 0.5 * (u2 + u3 - u4 - u1);                    \
      real vi = 0.5 * (v1 + v2 - v3 - v4); real vj = 0.5 * (v2 + v3 - v4 - v1);                    \
      real area = 1.0 / (xi * yj - xj * yi + 0.000000000001);                                      \
      real du = area * (ui * yj - uj * yi); real dv = area * (vj * xi - vi * xj);                  \
      O(i, j) = du + dv + (v1 + v2 + v3 + v4) / (y1 + y2 + y3 + y4))                               \
    X(EDGE3D, 3, 1, 3, 0, 1,                                                                       \
      EDGE_NODES(x, A, 1.0, 0.0, 0.0); EDGE_NODES(y, B, 0.0, 1.0, 0.0);                            \
      EDGE_NODES(z, C, 0.0, 0.0, 1.0); EDGE_SLOPES(x); EDGE_SLOPES(y); EDGE_SLOPES(z);             \
      real d = xi * (yj * zk - yk * zj) + xj * (yk * zi - yi * zk) + xk * (yi * zj - yj * zi);     \
      real r = 1.0 / d; EDGE_CROSS(g, x, y, z, j, k); EDGE_CROSS(h, x, y, z, k, i);                \
      EDGE_CROSS(f, x, y, z, i, j); EDGE_FUNCTIONS(e1, e2, e3, e4, g);                             \
      EDGE_FUNCTIONS(e5, e6, e7, e8, h); EDGE_FUNCTIONS(e9, e10, e11, e12, f);                     \
      EDGE_CURLS(c1, c2, c3, c4, h, f); EDGE_CURLS(c5, c6, c7, c8, f, g);                          \
      EDGE_CURLS(c9, c10, c11, c12, g, h); real mass = EDGE_PAIRS(e); real stiff = EDGE_PAIRS(c);  \
      O(i, j, k) = d * (mass + 0.5 * stiff))
/** The text of a body, macros expanded. */
#define BODY_TEXT(...) #__VA_ARGS__
/** Its bench_body_info. */
#define BODY_INFO(body, dims, outs, ins, begin, rest, ...)                                         \
    {.name = #body,                                                                                \
     .text = BODY_TEXT(__VA_ARGS__),                                                               \
     .rank = dims,                                                                                 \
     .n_out = outs,                                                                                \
     .n_in = ins,                                                                                  \
     .first = begin,                                                                               \
     .last = rest},
#pragma GCC diagnostic ignored "-Woverlength-strings" /* the text of EDGE3D */

enum {
#define X(name, ...) BODY_##name,
    BENCH_BODIES(X) N_BODIES
#undef X
};
enum { BODY_RIGHT, BODY_LEFT, BODY_MIXED, N_BODY_LAYOUTS };

/** Runs a body over its arrays, those written first. Mixed: every second element of vectors; else
 * what is written is Right, what is read Left. */
typedef void (*body_loop)(double *const *arrays);
extern const body_loop native_bodies[N_BODIES][N_BODY_LAYOUTS];

#endif
