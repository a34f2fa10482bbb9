"""Records of the store as spec/records.rec describes them, decoded from what tests/fault/dump prints."""
import collections, os, struct

WIDTHS = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "bool": 1, "i32": 4}


def spec(top):
    """{record: (version, key parts, fields)}."""
    records, name = {}, None
    with open(os.path.join(top, "spec/records.rec")) as f:
        for line in f:
            w = line.split("#")[0].split()
            if not w:
                continue
            if w[0] == "record":
                name = w[1]
                records[name] = (int(w[2]), [], [])
            elif w[0] == "key":
                records[name][1].extend(w[1:])
            elif name:
                since = [x for x in w[2:] if x.startswith("since=")]
                records[name][2].append((w[1], w[0], int(since[0][6:]) if since else 1))
    return records


def states(top):
    """Names of a run's states by number, their public words, and which are final."""
    words = {}
    with open(os.path.join(top, "spec/run.fsm")) as f:
        for line in f:
            w = line.split("#")[0].split()
            if w and w[0] in ("states", "public", "final"):
                words[w[0]] = w[1:]
    return words["states"], words["public"], set(words["final"])


def key_of(parts, key):
    out, at = {}, 0
    for part in parts:
        name, _, kind = part.partition(":")
        if kind == "u64":
            out[name], at = struct.unpack_from(">Q", key, at)[0], at + 8
        else:
            end = key.index(b"\0", at)
            out[name], at = key[at:end].decode(), end + 1
    if at != len(key):
        raise ValueError("a key is longer than its parts")
    return out


def value_of(version, fields, value):
    if not 1 <= value[0] <= version:
        raise ValueError(f"version {value[0]}, not {version}")
    out, at = {}, 1
    for name, kind, since in fields:
        if since > value[0]:
            out[name] = {"bytes": b"", "str": "", "id": ""}.get(kind, 0)
        elif kind in WIDTHS:
            n = WIDTHS[kind]
            out[name] = int.from_bytes(value[at:at + n], "big", signed=kind == "i32")
            at += n
        else:
            n = int.from_bytes(value[at:at + 4], "big")
            body = value[at + 4:at + 4 + n]
            at += 4 + n
            if kind != "bytes":
                body, at = body.decode(), at + 1
            out[name] = body
    if at != len(value):
        raise ValueError("a value is longer than its fields")
    return out


class Store:
    """Everything that a dump holds. Each table is {key tuple: record}. before: an earlier one, of which most lines are the
    same: they are not read twice."""

    def __init__(self, top, lines, before=None):
        records, known = spec(top), before.lines if before else {}
        self.tables, self.lines = collections.defaultdict(dict), {}
        self.bad = []
        for line in lines:
            row = known.get(line)
            if row is not None:
                self.lines[line] = row
                self.tables[row[0]][row[1]] = row[2]
                continue
            table, key, value = line.split()
            if table not in records:
                continue
            version, parts, fields = records[table]
            try:
                k = key_of(parts, bytes.fromhex(key) if key != "-" else b"")
                if table == "clock" and k["name"] != "highest":
                    continue
                row = table, tuple(k.values()), value_of(version, fields, bytes.fromhex(value) if value != "-" else b"")
                self.lines[line] = row
                self.tables[table][row[1]] = row[2]
            except (ValueError, IndexError, UnicodeDecodeError, struct.error) as e:
                self.bad.append(f"{table} {key}: {e}")

    def __getattr__(self, table):
        return self.tables[table]
