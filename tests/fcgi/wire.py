"""The wire form of the messages (lib/wire.h), as far as these tests speak it."""
import os, struct

SPEC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../spec/")


class Writer:
    def __init__(self):
        self.b = b""

    def u8(self, v): self.b += struct.pack(">B", v); return self
    def u16(self, v): self.b += struct.pack(">H", v); return self
    def u32(self, v): self.b += struct.pack(">I", v); return self
    def u64(self, v): self.b += struct.pack(">Q", v); return self
    def i32(self, v): self.b += struct.pack(">i", v); return self
    def raw(self, v): self.b += v; return self

    def str(self, v):
        v = v.encode() if isinstance(v, str) else v
        self.b += struct.pack(">I", len(v)) + v + b"\0"
        return self

    def bytes(self, v):
        self.b += struct.pack(">I", len(v)) + v
        return self

    def strs(self, v):
        self.u32(len(v))
        for s in v:
            self.str(s)
        return self


class Reader:
    def __init__(self, b): self.b = b

    def take(self, n):
        v, self.b = self.b[:n], self.b[n:]
        assert len(v) == n
        return v

    def u8(self): return self.take(1)[0]
    def u16(self): return struct.unpack(">H", self.take(2))[0]
    def u32(self): return struct.unpack(">I", self.take(4))[0]
    def u64(self): return struct.unpack(">Q", self.take(8))[0]

    def bytes(self): return self.take(self.u32())

    def str(self):
        v = self.bytes()
        assert self.take(1) == b"\0"
        return v.decode()


def version_of(protocol):
    """The version of a protocol of spec/."""
    return int(next(line.split()[2] for line in open(SPEC + protocol) if line.startswith("protocol ")))


STORE = version_of("store.msg")


def frame(number, body=b"", fds=0, op=0, version=1):
    return struct.pack(">HBBQ", number, version, fds, op) + (body.b if isinstance(body, Writer) else body)


def fields(protocol, message):
    """The number of a message of spec/ (0 for a struct), and type and name of each of its fields."""
    number, found = None, []
    for line in open(SPEC + protocol):
        words = line.split("#")[0].split()
        if line.startswith(("msg ", "struct ")):
            if number is not None:
                break
            number = int(words[2]) if words[:2] == ["msg", message] else 0 if words[:2] == ["struct", message] else None
        elif words and number is not None:
            found.append((words[0], words[1]))
    return number, found


def asked_by(protocol, number):
    """The message that answers the one of this number; None where the table names none."""
    for line in open(SPEC + protocol):
        words = line.split("#")[0].split()
        if words[:1] == ["msg"] and words[2] == str(number):
            return next((w.removeprefix("reply=") for w in words if w.startswith("reply=")), None)


def blank(protocol, what):
    """Number and fields of a message in which everything is 0, empty or false, and its number of descriptors."""
    number, has = fields(protocol, what)
    fds = next(int(w[4:]) for line in open(SPEC + protocol) if line.split()[:2] == ["msg", what] for w in line.split() if w.startswith("fds="))
    return (number, filled(has, {})), fds


def message(protocol, what, /, **values):
    """One frame; what is not given is 0, empty or false, and a name that the message does not have is an error."""
    number, has = fields(protocol, what)
    w = filled(has, values)
    assert number is not None and not values, (what, values)
    return frame(number, w, version=version_of(protocol))


def struct_of(protocol, what, /, **values):
    """A part of a list, in the same way."""
    w = filled(fields(protocol, what)[1], values)
    assert w.b and not values, (what, values)
    return w.b


def filled(has, values):
    w = Writer()
    for kind, field in has:
        kind = {"id": "str", "bool": "u8"}.get(kind, kind)
        getattr(w, kind)(values.pop(field, {"str": "", "bytes": b"", "strs": []}.get(kind, 0)))
    return w


def unframe(b):
    number, version, fds, op = struct.unpack(">HBBQ", b[:12])
    return number, fds, op, Reader(b[12:])


def listed(parts):
    return b"".join(struct.pack(">I", len(p)) + p for p in parts)
