/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sanitizer.h: whether a test is built with the address sanitizer (IS_ADDRESS_SANITIZED) or with
 * the thread sanitizer (IS_THREAD_SANITIZED), by gcc or clang, and whether with any of them
 * (IS_SANITIZED). They map memory of their own, have threads, need more stack, and the thread
 * sanitizer refuses threads in a child of a process with threads.
 */
#ifndef QN_TESTS_SANITIZER_H
#define QN_TESTS_SANITIZER_H

#if defined(__SANITIZE_ADDRESS__)
#define IS_ADDRESS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_ADDRESS_SANITIZED 1
#endif
#endif
#ifndef IS_ADDRESS_SANITIZED
#define IS_ADDRESS_SANITIZED 0
#endif

#if defined(__SANITIZE_THREAD__)
#define IS_THREAD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define IS_THREAD_SANITIZED 1
#endif
#endif
#ifndef IS_THREAD_SANITIZED
#define IS_THREAD_SANITIZED 0
#endif

#define IS_SANITIZED (IS_ADDRESS_SANITIZED || IS_THREAD_SANITIZED)

#endif
