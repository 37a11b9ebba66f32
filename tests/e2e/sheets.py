"""Sheets of `ringside preview`: PNG files, read without a library, and the images on them."""
import struct
import zlib

ACROSS, GAP, WHITE = 8, 4, 255


def paeth(left, up, corner):
    nearest = left + up - corner
    return min((left, up, corner), key=lambda value: abs(nearest - value))


def unfiltered(kind, line, above, step):
    """A row of PNG without its filter."""
    row = bytearray(line)
    for i, value in enumerate(line):
        left = row[i - step] if i >= step else 0
        corner = above[i - step] if i >= step else 0
        added = (0, left, above[i], (left + above[i]) // 2, paeth(left, above[i], corner))[kind]
        row[i] = (value + added) & 255
    return row


def read_png(path):
    """Pixels as noise() has them; 8 bits, grey or RGB, not interlaced."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", path
    at, packed, kind = 8, b"", b""
    while kind != b"IEND":
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0] == zlib.crc32(kind + body)
        if kind == b"IHDR":
            width, height, bits, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
        if kind == b"IDAT":
            packed += body
        at += 12 + size
    assert at == len(data) and bits == 8 and not interlaced and colour in (0, 2), path
    step = 1 if colour == 0 else 3
    raw, above, image = zlib.decompress(packed), bytes(width * step), []
    for y in range(height):
        begin = y * (width * step + 1)
        above = unfiltered(raw[begin], raw[begin + 1:begin + 1 + width * step], above, step)
        image.append([tuple(above[i:i + step]) for i in range(0, width * step, step)])
    return image


def tiles_of(sheet, side, zoom=1):
    """The images of a sheet, of which each pixel is a square. Gaps must be white."""
    pitch = side * zoom + GAP
    assert len(sheet) == len(sheet[0]) == GAP + ACROSS * pitch, (len(sheet), len(sheet[0]))
    for y, row in enumerate(sheet):
        for x, pixel in enumerate(row):
            if y % pitch < GAP or x % pitch < GAP:
                assert set(pixel) == {WHITE}, (x, y)
            else:
                corner = sheet[y - (y % pitch - GAP) % zoom][x - (x % pitch - GAP) % zoom]
                assert pixel == corner, (x, y)
    return [[[sheet[GAP + i // ACROSS * pitch + y * zoom][GAP + i % ACROSS * pitch + x * zoom]
              for x in range(side)] for y in range(side)] for i in range(ACROSS * ACROSS)]
