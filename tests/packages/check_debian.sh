#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TAP: the packages that ./bootstrap deb has made are complete, and work in a new Debian 12 that holds nothing else. That is
# made by mmdebstrap, in a folder, from the network; inside.sh runs there. QUERN_DEBIAN_MIRROR names another mirror.
root="${QN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}"
deb="${QN_BUILD_DIR:-$root/build/package}/deb"
folder=$(mktemp -d) || exit 1
chmod 755 "$folder"
trap 'rm -rf "$folder"' EXIT
n=0
failed=0

# passes WHAT COMMAND...: one test point; shows the output of a failure.
passes() {
    local what="$1"
    shift
    n=$((n + 1))
    if "$@" > "$folder/log" 2>&1; then
        echo "ok $n - $what"
    else
        echo "not ok $n - $what"
        tail -20 "$folder/log" | sed 's/^/# /'
        failed=1
    fi
}

# depends PACKAGE PATTERN: a line of its control file matches.
depends() {
    dpkg-deb -f "$deb/$1"_*.deb | grep -E "$2"
}

# sbom_is_whole FILE PARTS...: a bill of materials is JSON, says what SPDX asks for, and lists exactly these parts as linked
# statically, with versions.
sbom_is_whole() {
    local bill="$deb/$1"
    shift
    perl -MJSON::PP -0777 -e '
        my $s = decode_json(<STDIN>);
        my %p = map { $_->{name} => $_ } @{$s->{packages}};
        my %id = map { $_->{SPDXID} => 1 } @{$s->{packages}}, $s;
        $s->{spdxVersion} eq "SPDX-2.3" && $s->{documentNamespace} && $s->{creationInfo}{created} or die "head";
        for ("quern", @ARGV) {
            $p{$_} && $p{$_}{versionInfo} =~ /^[0-9]/ && $p{$_}{licenseDeclared} or die "package $_";
        }
        my @static = grep { $_->{relationshipType} eq "STATIC_LINK" } @{$s->{relationships}};
        @static == @ARGV or die "relations";
        for (@{$s->{relationships}}) { $id{$_->{spdxElementId}} && $id{$_->{relatedSpdxElement}} or die "id" }
    ' -- "$@" < "$bill"
}

# owners: paths of files that two packages hold.
owned_twice() {
    local package
    for package in "$deb"/*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar t | grep -v '/$'
    done | sort | uniq -d
}

echo "TAP version 13"
for package in libquern1 libquern-llvm libquern-dev quern quern-doc lua-quern python3-quern; do
    passes "$package is there, with its licence" bash -c "dpkg-deb --fsys-tarfile '$deb/$package'_*.deb |
        tar xO ./usr/share/doc/$package/copyright | grep -q 'Apache License, Version 2.0'"
done
[ $failed = 0 ] || { echo "Bail out! No packages in $deb: run ./bootstrap deb first"; exit 1; }
passes "no file is in two packages" test -z "$(owned_twice)"
passes "the code generator comes with the licences of what is in it" bash -c "
    dpkg-deb --fsys-tarfile '$deb'/libquern-llvm_*.deb | tar xO ./usr/share/doc/libquern-llvm/copyright > '$folder/copyright' &&
    grep -q 'LLVM Exceptions to the Apache 2.0 License' '$folder/copyright' && grep -q 'Jean-loup Gailly' '$folder/copyright' &&
    grep -q 'Yann Collet\|Facebook' '$folder/copyright' && grep -q 'GCC Runtime Library Exception\|RUNTIME LIBRARY EXCEPTION' '$folder/copyright'"
passes "the bill of materials of the code generator is whole" sbom_is_whole quern.spdx.json LLVM zlib zstd libstdc++
passes "the tool comes with the licences of what is in it" bash -c "
    dpkg-deb --fsys-tarfile '$deb'/quern_*.deb | tar xO ./usr/share/doc/quern/copyright > '$folder/copyright' &&
    grep -q 'PNG Reference Library Authors' '$folder/copyright' && grep -q 'Jean-loup Gailly' '$folder/copyright'"
passes "the bill of materials of the tool is whole" sbom_is_whole quern-tool.spdx.json libpng zlib
passes "the code generator needs libc alone" bash -c \
    "[[ \$(dpkg-deb -f '$deb'/libquern-llvm_*.deb Depends) =~ ^libquern1\ \(=\ [^\)]*\),\ libc6\ \([^,]*\)$ ]]"
passes "the tool needs the library, the code generator and libc alone" bash -c \
    "[[ \$(dpkg-deb -f '$deb'/quern_*.deb Depends) =~ ^libquern1\ \(=\ [^\)]*\),\ libquern-llvm\ \(=\ [^\)]*\),\ libc6\ \([^,]*\)$ ]]"
passes "the package for Python serves all versions from 3.11" depends python3-quern '^Depends:.*python3 \(>= 3\.11\).*libquern-llvm \(= '
passes "programs linked with the library will depend on it" bash -c \
    "dpkg-deb --ctrl-tarfile '$deb'/libquern1_*.deb | tar xO ./shlibs | grep -qE '^libquern 1 libquern1 \(>= '"

if ! command -v mmdebstrap > /dev/null; then
    echo "ok $((++n)) # SKIP no mmdebstrap: nothing was installed"
    echo "1..$n"
    exit $failed
fi
mkdir "$folder/in"
cp -r "$deb"/*.deb "$root/tests/interop/install" "$root/tests/interop/python" "$root/examples/kernels/saxpy.qn" "$root/tests/packages/inside.sh" "$folder/in"
sed -n '/^```c$/,/^```$/p' "$root/README.md" | sed '/^```/d' > "$folder/in/hello.c"
# --format=null keeps nothing: what is of interest is the file that inside.sh writes. Nothing of this environment gets there but
# the way to the network.
clean='env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root ${http_proxy:+http_proxy="$http_proxy"}'
if ! timeout 900 mmdebstrap --variant=minbase --format=null --customize-hook="copy-in $folder/in /" \
    --chrooted-customize-hook="$clean bash /in/inside.sh > /in/result 2> /in/log" --customize-hook="copy-out /in/result $folder" \
    --customize-hook="copy-out /in/log $folder" bookworm /dev/null ${QUERN_DEBIAN_MIRROR:+"$QUERN_DEBIAN_MIRROR"} \
    > "$folder/mmdebstrap" 2>&1; then
    echo "not ok $((++n)) - a new Debian is made"
    tail -20 "$folder/mmdebstrap" | sed 's/^/# /'
    failed=1
fi
while read -r line; do
    case "$line" in
    ok*) echo "ok $((++n)) -${line#ok}" ;;
    "not ok"*)
        echo "not ok $((++n)) -${line#not ok}"
        failed=1
        ;;
    *) echo "# $line" ;;
    esac
done < <(cat "$folder/result" 2> /dev/null)
passes "all that was to be done in the new Debian was done" grep -qx "done" "$folder/result"
echo "1..$n"
exit $failed
