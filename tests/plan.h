/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h: a plan for options, for the life of the block: `.plan = PLAN_WITH(.width = 4, .unroll =
 * 2)`. */
#ifndef QN_TESTS_PLAN_H
#define QN_TESTS_PLAN_H

#include "quern.h"

#define PLAN_WITH(...) (&(const qn_plan_options){.bytes = sizeof(qn_plan_options), __VA_ARGS__})

#endif
