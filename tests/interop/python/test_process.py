# SPDX-License-Identifier: Apache-2.0
"""Threads, fork and Ctrl-C."""

import os
import signal
import subprocess
import sys
import threading
import time

import quern as q
from tap import equal, ok, raises

SPIN = """kernel "spin" { view y: f64[1]; %0: i64 = const 0; %1: i64 = extent y, 0; %2: i64 = parallel %0, %1;
 %3: i64 = const 4000000000; %4: f64 = const 0x1p+0;
 %5: f64 = for %6: i64 = %0 to %3 step 1 (%7: f64 = %4) { %8: f64 = sqrt %7; %9: f64 = add %8, %4; yield %9; };
 store y[%2], %9x; }""".replace("%9x", "%5")


def test_threads():
    """Launches of several threads at once, on one kernel and on new ones, are right."""
    wrong = []

    def work(seed):
        for n in range(1, 40):
            x = q.zeros(n * 7 + seed)
            y = q.eval("x + %d" % (n % 5 + seed), {"x": x})
            if y[n] != n % 5 + seed:
                wrong.append((seed, n))
    threads = [threading.Thread(target=work, args=(s,)) for s in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    equal(wrong, [], "threads launch and build at the same time")


def test_gil():
    """Another thread of Python runs while a launch is under way."""
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(0)
            time.sleep(0.001)
    t = threading.Thread(target=tick)
    slow = q.parse(SPIN).options("timeout_ns=300000000")
    t.start()
    raises(q.Cancelled, lambda: slow(q.zeros(1)), "", "a launch runs out of time")
    stop.set()
    t.join()
    # On a busy machine there are few in 300 ms; while a launch held the lock there would be two.
    ok(len(ticks) > 10, "the lock of the interpreter is free during a launch: %d ticks" % len(ticks))


def test_fork():
    x = q.zeros(1000)
    q.eval("x + 1", {"x": x})
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        right = q.eval("x + 1", {"x": x})[999] == 1 and q.eval("x*3 + 2", {"x": x})[0] == 2
        os._exit(0 if right else 1)
    _, status = os.waitpid(child, 0)
    equal(status, 0, "a child launches known and new expressions")
    equal(q.eval("x + 1", {"x": x})[0], 1.0, "the parent goes on")


def test_interrupt():
    for _ in range(2):
        timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        begin = time.monotonic()
        try:
            q.parse(SPIN)(q.zeros(1))
            ok(False, "a launch is interrupted")
        except KeyboardInterrupt:
            ok(time.monotonic() - begin < 3, "Ctrl-C ends a launch: after %.2f s" % (time.monotonic() - begin))
        timer.join()
    equal(signal.getsignal(signal.SIGINT), signal.default_int_handler, "Python's handler is back")
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        ok(False, "Ctrl-C outside of a launch")
    except KeyboardInterrupt:
        ok(True, "Ctrl-C outside of a launch")
    equal(q.eval("x + 1", {"x": q.zeros(3)})[0], 1.0, "launches go on")
    caught = []
    before = signal.signal(signal.SIGINT, lambda *a: caught.append(1))
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    raises(q.Cancelled, lambda: q.parse(SPIN)(q.zeros(1)), "", "a handler that raises nothing: the launch is cancelled")
    timer.join()
    equal(caught, [1], "... and the handler is called")
    signal.signal(signal.SIGINT, before)


def test_exit():
    """A process that ends while a thread is in a launch, and one that has launched nothing."""
    head = "import sys; sys.path[:] = %r; import quern as q, threading, time\n" % sys.path
    for what, text in [("nothing was launched", ""),
                       ("a daemon thread is in a launch",
                        "threading.Thread(target=lambda: q.parse(%r)(q.zeros(1)), daemon=True).start(); time.sleep(0.3)" % SPIN)]:
        p = subprocess.run([sys.executable, "-c", head + text], timeout=60)
        equal(p.returncode, 0, "a process ends: " + what)


def test_import():
    text = "import sys, time; sys.path[:] = %r; t = time.perf_counter(); import quern; t = time.perf_counter() - t\n" % sys.path
    text += "print(t, 'numpy' in sys.modules)"
    times = []
    for _ in range(3):
        seconds, numpy = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True).stdout.split()
        times.append(float(seconds))
    equal(numpy, "False", "the package does not import numpy")
    ok(min(times) < 0.5, "import takes %.1f ms" % (1e3 * min(times)))


for test in (test_threads, test_gil, test_fork, test_interrupt, test_exit, test_import):
    test()
