"""A minimal writer of GGUF version 3, and a reader of what it writes."""
import struct

import numpy as np

U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
ALIGNMENT = 32


def _string(x):
    data = x.encode()
    return struct.pack("<Q", len(data)) + data


def _value(kind, value):
    if kind == STRING:
        return _string(value)
    if kind == ARRAY:
        of, items = value
        return struct.pack("<IQ", of, len(items)) + b"".join(_value(of, x) for x in items)
    return struct.pack({U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}[kind], value)


def _q8_0(array):
    """Blocks of 32: a float16 scale and 32 int8."""
    blocks = array.astype(np.float32).reshape(-1, 32)
    scale = np.abs(blocks).max(1) / 127
    quotients = np.divide(blocks, scale[:, None], out=np.zeros_like(blocks), where=scale[:, None] > 0)
    out = np.empty(len(blocks), dtype=[("scale", "<f2"), ("values", "i1", 32)])
    out["scale"], out["values"] = scale, np.round(quotients).astype(np.int8)
    return out.tobytes()


_KINDS = {
    "f32": (0, lambda a: a.astype("<f4").tobytes()), "f16": (1, lambda a: a.astype("<f2").tobytes()), "q8_0": (8, _q8_0),
}


def write(path, facts, tensors):
    """facts: [(key, kind, value)]; tensors: [(name, array, "f32" | "f16" | "q8_0")], rows of q8_0 are multiples of 32 long"""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(facts))
    head += b"".join(_string(key) + struct.pack("<I", kind) + _value(kind, value) for key, kind, value in facts)
    offset, blobs = 0, []
    for name, array, kind in tensors:
        code, encode = _KINDS[kind]
        blob = encode(array)
        head += _string(name) + struct.pack("<I", array.ndim) + b"".join(struct.pack("<Q", n) for n in array.shape[::-1])
        head += struct.pack("<IQ", code, offset)
        blobs.append(blob)
        offset += -(-len(blob) // ALIGNMENT) * ALIGNMENT
    with open(path, "wb") as file:
        file.write(head + b"\0" * (-len(head) % ALIGNMENT))
        for blob in blobs:
            file.write(blob + b"\0" * (-len(blob) % ALIGNMENT))


class _Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, form):
        value = struct.unpack_from("<" + form, self.data, self.at)[0]
        self.at += struct.calcsize("<" + form)
        return value

    def string(self):
        size = self.number("Q")
        self.at += size
        return self.data[self.at - size : self.at].decode()

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            of, count = self.number("I"), self.number("Q")
            return [self.value(of) for _ in range(count)]
        return self.number({U32: "I", I32: "i", F32: "f", BOOL: "?"}[kind])


def _floats(code, count, data, at):
    if code == 8:
        blocks = np.frombuffer(data, [("scale", "<f2"), ("values", "i1", 32)], count // 32, at)
        return (blocks["scale"].astype(np.float32)[:, None] * blocks["values"]).reshape(-1)
    return np.frombuffer(data, {0: "<f4", 1: "<f2"}[code], count, at).astype(np.float32)


def read(path):
    """Of a file that write() wrote -> facts {key: value}, tensors {name: float32 array}"""
    with open(path, "rb") as file:
        reader = _Reader(file.read())
    reader.at = 8
    tensor_count, fact_count = reader.number("Q"), reader.number("Q")
    facts = {}
    for _ in range(fact_count):
        key = reader.string()
        facts[key] = reader.value(reader.number("I"))
    infos = []
    for _ in range(tensor_count):
        name = reader.string()
        shape = [reader.number("Q") for _ in range(reader.number("I"))][::-1]
        infos.append((name, shape, reader.number("I"), reader.number("Q")))
    begin = -(-reader.at // ALIGNMENT) * ALIGNMENT
    return facts, {n: _floats(code, int(np.prod(shape)), reader.data, begin + offset).reshape(shape) for n, shape, code, offset in infos}
