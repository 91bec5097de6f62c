#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TAP: with --json every command of the tool prints one JSON object, with the members that docs/tool.md lists; pictures
# are SVG and PNG that others read; progress is shown on a terminal only, and not with --quiet.
root="${QN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}"
build="${QN_BUILD_DIR:-$root/build/release}"
if ! command -v python3 > /dev/null || [ ! -x "$build/quern" ]; then
    echo "1..0 # SKIP no python3, or no tool in $build"
    exit 0
fi
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
export QUERN_CACHE="$folder/cache" K="$root/examples/kernels" PATH="$build:$PATH"
n=0
failed=0

# report STATUS WHAT [FILE]
report() {
    n=$((n + 1))
    if [ "$1" = 0 ]; then
        echo "ok $n - $2"
    else
        echo "not ok $n - $2"
        [ -n "$3" ] && head -c 1000 "$3" | sed 's/^/# /'
        failed=1
    fi
}

# members COMMAND: those that docs/tool.md lists for it, those in parentheses being there only sometimes.
members() {
    sed -n "s/^| \`$1\` | \([^|]*\) |.*\$/\1/p" "$root/docs/tool.md" | grep -o '(\?`[a-z_]*`' | tr -d '\`'
}

# json COMMAND CHECK WORDS...: the object has the listed members and no others, and CHECK, of Python, holds of it, which is o.
json() {
    local command="$1" check="$2"
    shift 2
    # shellcheck disable=SC2046 # members are words
    quern "$@" --json > out 2> err && python3 - "$command" "$check" $(members "$command") > why 2>&1 << 'END'
import json, sys
command, check, *listed = sys.argv[1:]
def refuse(name):
    raise ValueError(name + " is no JSON")
o = json.load(open("out"), parse_constant=refuse)
assert o["command"] == command, o["command"]
names = {name.lstrip("(") for name in listed}
always = {name for name in listed if not name.startswith("(")} | {"command"}
assert names, "docs/tool.md lists nothing for it"
assert always <= set(o) <= names | {"command"}, "members: %s; listed: %s" % (sorted(o), sorted(names))
assert eval(check), check
END
    local status=$?
    cat err why > both 2> /dev/null
    report $status "$command: $check" both
}

echo "TAP version 13"
saxpy=("$K/saxpy.qn" x=iota:f32[8] y=ones:f32[8] a=2.5)
json version 'o["version"].count(".") == 2' --version
json print 'o["kernel"] == "saxpy" and o["text"].startswith("kernel")' print "$K/saxpy.qn"
json run 'o["outputs"][0]["values"] == [1, 3.5, 6, 8.5, 11, 13.5, 16, 18.5] and o["outputs"][0]["all"]' run "${saxpy[@]}"
json run 'o["outputs"][0]["extents"] == [8] and not o["outputs"][0]["all"] and len(o["outputs"][0]["values"]) == 2' \
    run "${saxpy[@]}" --show 2
json run 'o["counters"]["launches"] == 3 and o["files"] == [{"name": "y", "file": "y.npy"}] and o["history"]' \
    run "${saxpy[@]}" --out y=y.npy --repeat 3 --stats
json run 'o["outputs"][0]["values"] == ["nan", "-inf"]' run "$K/saxpy.qn" x=iota:f32[2] y=ones:f32[2] a=-inf
json bench 'o["compile_ms"] is None and o["prepared_ns"] > 0 and o["bytes"] == 96 and o["flops"] == 16' \
    bench "${saxpy[@]}" --engine interp --repeat 2
json bench '[p["value"] for p in o["points"]] == ["4", "5"] and o["over"] == "n" and o["points"][0]["flops"] == 8' \
    bench "$K/saxpy.qn" --over n=4,5 x=iota:f32[{n}] y=ones:f32[{n}] a=2.5 --engine interp --repeat 2
json explain 'any(f["name"] == "kernel" and f["text"] == "saxpy, 8 iterations" for f in o["facts"])' explain "${saxpy[@]}"
json new 'o["files"][0] == "CMakeLists.txt" and o["folder"] == "fresh"' new fresh
json cache 'o["action"] == "list" and o["n"] == len(o["entries"]) and o["refused"] == 0' cache list
json cache 'o["entries"] == [] and o["n"] >= 0' cache verify
json cache 'o["n"] >= 0' cache clear
if grep -q avx2 /proc/cpuinfo; then
    json asm 'o["stage"] == "plan" and "lanes" in o["text"]' asm "${saxpy[@]}" --stage plan
    json diff 'o["equal"] and all(c["first"] == c["second"] for c in o["counts"])' diff "${saxpy[@]}" -- a=3
    json diff 'not o["equal"] and [None, "vzeroupper"] not in o["lines"] and ["retq", "retq"] in o["lines"]' \
        diff "${saxpy[@]}" -- y=ones:f32[8]:stride[3]
    json bundle '[v["isa"] for v in o["versions"]] == ["v3", "v4"] and o["folder"] == "b"' bundle b "${saxpy[@]}"
    json object '[v["name"] for v in o["versions"]] == ["one"] and o["object"] == "k.o"' object k.o k.h --isa v3 "$K/saxpy.qn" \
        --name one
    json peaks 'o["threads"] == 1 and o["gigabytes_per_s"] > 0 and o["gigaflops_per_s"] > 0' peaks
    json roofline 'o["levels"][-1]["name"] == "memory" and abs(o["intensity"] - 16 / 96) < 1e-5 and o["roof_gigaflops_per_s"] > 0' \
        roofline "${saxpy[@]}" --repeat 2 --plot roof.svg
    json roofline 'o["dtype"] == "f32" and o["level"] == o["levels"][0]["name"]' roofline "${saxpy[@]}" --repeat 2 --plot roof.png
    json tune 'o["candidates"][0]["choice"] == "" and o["tried"] == len(o["candidates"]) and o["wrong"] == 0 and o["kept"]' \
        tune "${saxpy[@]}" --seconds 1
else
    for what in asm diff diff bundle object peaks roofline roofline tune; do
        echo "ok $((++n)) # SKIP $what: the processor is below x86-64-v3"
    done
fi

# Nothing is printed by what fails.
quern run "$K/saxpy.qn" x=iota:f32[8] y=ones:f32[8] a=2.5 --out y=nowhere/y.npy --json > out 2> err
[ $? = 1 ] && [ ! -s out ] && grep -q nowhere err
report $? "an error leaves the standard output empty" out

# A name that is no UTF-8 comes out as JSON all the same.
printf 'kernel "a\\"\xff\xc3\xa9" {\n view y: f32[1]; %%0: i64 = const 0; %%1: f32 = const 2.0; store y[%%0], %%1;\n}\n' > odd.qn
quern print odd.qn --json > out 2> err && python3 -c 'import json; o = json.load(open("out", encoding="utf-8")); print(o["kernel"])' > why 2>&1
status=$?
if grep -q 'odd.qn' err; then
    echo "ok $((++n)) # SKIP kernels have no such names"
else
    report $status "a name that is no UTF-8" why
fi

# ---------------------------------------------------------------- pictures

# Reads an SVG: all is inside the picture.
cat > svg.py << 'END'
import sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
width, height = float(root.get("width")), float(root.get("height"))
assert root.tag == "{http://www.w3.org/2000/svg}svg"
numbers = 0
for item in root.iter():
    for names, limit in ((("x", "x1", "x2", "cx"), width), (("y", "y1", "y2", "cy"), height)):
        for name in names:
            if item.get(name) is not None:
                numbers += 1
                assert 0 <= float(item.get(name)) <= limit, tree.tostring(item)
texts = [item.text for item in root.iter() if item.tag.endswith("text")]
assert numbers > 12 and len(texts) > 4, (numbers, texts)
for expected in sys.argv[2:]:
    assert any(expected in text for text in texts), (expected, texts)
END
# Reads a PNG: its size, and how many colours it has.
cat > png.py << 'END'
import struct, sys, zlib
data = open(sys.argv[1], "rb").read()
assert data[:8] == b"\x89PNG\r\n\x1a\n"
at, body = 8, b""
while at < len(data):
    n, kind = struct.unpack(">I4s", data[at:at + 8])
    part = data[at + 8:at + 8 + n]
    assert struct.unpack(">I", data[at + 8 + n:at + 12 + n])[0] == zlib.crc32(kind + part), kind
    if kind == b"IHDR":
        width, height = struct.unpack(">II", part[:8])
    if kind == b"IDAT":
        body += part
    at += 12 + n
assert (width, height) == (int(sys.argv[2]), int(sys.argv[3])), (width, height)
assert kind == b"IEND" and len(zlib.decompress(body)) == height * (3 * width + 1)
END
quern bench "$K/saxpy.qn" --over n=4,50,600 x='iota:f32[{n}]' y='ones:f32[{n}]' a=2.5 --engine interp --repeat 2 \
    --plot sizes.svg > out 2> err && python3 svg.py sizes.svg "saxpy over n" "time of a run" GB/s > why 2>&1
report $? "bench over sizes is drawn as SVG" why
quern bench "$K/saxpy.qn" --over l=right,'stride[2]' x='iota:f32[9]:{l}' y='ones:f32[9]:{l}' a=2.5 --engine interp --repeat 2 \
    --plot bars.svg > out 2> err && python3 svg.py bars.svg "saxpy over l" "stride[2]" > why 2>&1
report $? "bench over layouts is drawn as SVG" why
if [ -f roof.svg ]; then
    python3 svg.py roof.svg "Roofline of saxpy" L1 memory flop/byte "of what" > why 2>&1
    report $? "the roofline is drawn as SVG" why
else
    echo "ok $((++n)) # SKIP no roofline here"
fi
quern bench "$K/saxpy.qn" --over n=4,50,600 x='iota:f32[{n}]' y='ones:f32[{n}]' a=2.5 --engine interp --repeat 2 \
    --plot sizes.png > out 2> err
if grep -q 'without libpng' err; then
    echo "ok $((++n)) # SKIP the tool was built without libpng"
else
    python3 png.py sizes.png 1920 840 > why 2>&1
    report $? "... and as PNG" why
fi

# ---------------------------------------------------------------- progress

if command -v script > /dev/null; then
    words="quern bench $K/saxpy.qn x=iota:f32[8] y=ones:f32[8] a=2.5 --engine interp --repeat 3"
    TERM=xterm script -qec "$words > /dev/null" /dev/null > shown < /dev/null
    grep -q 'bench: run, sample 1 of 3' shown
    report $? "progress is shown on a terminal" shown
    tail -c 4 shown | grep -q $'\033\\[K'
    report $? "... and cleared at the end" shown
    TERM=xterm script -qec "$words --quiet > /dev/null" /dev/null > shown < /dev/null
    ! grep -q sample shown
    report $? "... not with --quiet" shown
    TERM=dumb script -qec "$words > /dev/null" /dev/null > shown < /dev/null
    ! grep -q sample shown
    report $? "... nor on a terminal that cannot clear a line" shown
else
    for what in shown cleared quiet dumb; do
        echo "ok $((++n)) # SKIP no program script: progress, $what"
    done
fi
echo "1..$n"
exit $failed
