# SPDX-License-Identifier: Apache-2.0
#
# math_figures.awk ROWS BENCH NARROW PAGE: the page with the tables between its comments `figures`
# and `end of figures` replaced. ROWS is what math_accuracy prints, BENCH what `bench_main math/`
# prints, NARROW the same with QUERN_BENCH_ISA=3 (./bootstrap figures).

FNR == 1 {
    file++
}

# | `exp` | f32 | 0.77965 | `-0x1.5e8b06p+6` | all | 0.092 % |
file == 1 && /^\| `/ {
    split($0, part, / *\| */)
    name = part[2]
    gsub(/`/, "", name)
    if (!((name, part[3]) in worst))
        order[++n_rows] = name SUBSEP part[3]
    worst[name, part[3]] = part[4]
    at[name, part[3]] = part[5]
    inputs[name, part[3]] = part[6]
    wrong[name, part[3]] = part[7]
}

# math/exp/f32/libmvec    0.2891 ns    0.2534 ns    0.877    0.90    SHORT
file == 2 && /^# CPU:/ {
    processor = substr($0, 8)
}
(file == 2 || file == 3) && /^math\// {
    split($0, field, "\t")
    split(field[1], part, "/")
    ours = field[2] + 0
    if (!((file, part[2], part[3]) in time) || ours < time[file, part[2], part[3]])
        time[file, part[2], part[3]] = ours
    if (part[4] != "")
        peer[file, part[2], part[3], part[4]] = field[3] + 0
}

function nanoseconds(value)
{
    return value == "" ? "" : sprintf("%.2f", value)
}

# Ours, libmvec, SLEEF: AVX-512, or AVX2 of file 3.
function times(from, k)
{
    return sprintf("%s | %s | %s", nanoseconds(time[from, k]), nanoseconds(peer[from, k, "libmvec"]),
        nanoseconds(peer[from, k, "sleef"]))
}

function print_table(dtype,    i, key, k)
{
    print "| " dtype " | largest error (ulp) | at | inputs | not nearest | ns | libmvec | SLEEF | AVX2: ns | libmvec | SLEEF |"
    print "|---|---|---|---|---|---|---|---|---|---|---|"
    for (i = 1; i <= n_rows; i++) {
        split(order[i], key, SUBSEP)
        if (key[2] != dtype)
            continue
        k = key[1] SUBSEP dtype
        printf "| `%s` | %s | %s | %s | %s | %s | %s |\n", key[1], worst[k], at[k], inputs[k], wrong[k],
            times(2, k), times(3, k)
    }
}

file == 4 && /^<!-- end of figures -->/ {
    is_inside = 0
}
file == 4 && !is_inside
file == 4 && /^<!-- figures -->/ {
    is_inside = 1
    print "Times: " processor ", ns an element of arrays of 4096 in cache, with AVX-512 and with AVX2.\n"
    print_table("f32")
    print ""
    print_table("f64")
}
