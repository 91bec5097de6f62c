# SPDX-License-Identifier: Apache-2.0
"""What a notebook shows of a kernel: its text, the plan of the last launch, and what that took."""

from html import escape


def kernel(k):
    parts = ["<details open><summary><b>kernel %s</b></summary><pre>%s</pre></details>" % (escape(k.name), escape(k.text))]
    plan = k.last_plan()
    if plan:
        parts.append("<details><summary>plan</summary><pre>%s</pre></details>" % escape(plan))
    if k.launches:
        parts.append("<p>%d launches, the last one in %s</p>" % (k.launches, seconds(k.seconds)))
    return "<div>%s</div>" % "".join(parts)


def seconds(s):
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "&micro;s")):
        if s * factor >= 1:
            return "%.3g %s" % (s * factor, unit)
    return "%.3g ns" % (s * 1e9)
