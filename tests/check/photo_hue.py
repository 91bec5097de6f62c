# SPDX-License-Identifier: Apache-2.0
"""photo_hue.py PHOTO.png EQUALISED.png: whether each pixel was made brighter or darker by one step in all channels, but
where a channel ends at 0 or 255, and whether the luminances that occur are spread over the whole range."""

import struct
import sys
import zlib


def read(path):
    """Rows of bytes of a PNG with three channels of 8 bits, not interlaced."""
    data = open(path, "rb").read()
    at, body = 8, b""
    while at < len(data):
        n, kind = struct.unpack(">I4s", data[at:at + 8])
        part = data[at + 8:at + 8 + n]
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", part)
            assert (depth, colour, interlace) == (8, 2, 0), (depth, colour, interlace)
        body += part if kind == b"IDAT" else b""
        at += 12 + n
    raw, rows, before = zlib.decompress(body), [], bytes(3 * width)
    for r in range(height):
        kind, line = raw[r * (3 * width + 1)], bytearray(raw[r * (3 * width + 1) + 1:(r + 1) * (3 * width + 1)])
        for i in range(3 * width):
            a, b, c = line[i - 3] if i >= 3 else 0, before[i], before[i - 3] if i >= 3 else 0
            d = (abs(b - c), abs(a - c), abs(a + b - 2 * c))
            paeth = a if d[0] <= d[1] and d[0] <= d[2] else b if d[1] <= d[2] else c
            line[i] = line[i] + (0, a, b, (a + b) // 2, paeth)[kind] & 255
        rows.append(bytes(line))
        before = line
    return rows


photo, equalised = read(sys.argv[1]), read(sys.argv[2])
assert len(photo) == len(equalised)
steps, found = {}, set()
for old, new in zip(photo, equalised):
    for i in range(0, len(old), 3):
        luminance = (77 * old[i] + 150 * old[i + 1] + 29 * old[i + 2] + 128) >> 8
        for k in range(i, i + 3):
            if 0 < new[k] < 255:
                steps.setdefault(luminance, set()).add(new[k] - old[k])
        if 0 < min(new[i:i + 3]) and max(new[i:i + 3]) < 255:
            found.add((77 * new[i] + 150 * new[i + 1] + 29 * new[i + 2] + 128) >> 8)
assert len(steps) > 50 and all(len(s) == 1 for s in steps.values()), "steps differ within a pixel or a luminance"
last = [luminance + min(s) for luminance, s in sorted(steps.items())]
assert last == sorted(last), "a brighter pixel became darker than another"
assert max(found) - min(found) > 200, (min(found), max(found))
