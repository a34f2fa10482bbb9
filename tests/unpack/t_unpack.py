#!/usr/bin/python3
"""pinfold-unpack over archives that are as they should be, and over one for each rule that is not. They are made here."""
import gzip, io, os, shutil, stat, subprocess, sys, tarfile, tempfile, zlib

if shutil.which("zstd") is None:
    print("zstd is missing: install the Debian package zstd")
    sys.exit(77)
UNPACK = os.path.abspath("./pinfold-unpack")
good = bad = 0


def check(name, ok, seen=""):
    global good, bad
    good, bad = good + bool(ok), bad + (not ok)
    if not ok:
        print("FAIL", name, seen)


def entry(name, data=b"x\n", kind=tarfile.REGTYPE, mode=0o644, **more):
    t = tarfile.TarInfo(name)
    t.type, t.mode, t.size = kind, mode, len(data)
    for k, v in more.items():
        setattr(t, k, v)
    return t, data


def tar(*entries, fmt=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=fmt) as a:
        for t, data in entries:
            a.addfile(t, io.BytesIO(data) if t.isreg() else None)
    return out.getvalue()


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


def block(name, size=0, kind=b"0", link=b"", magic=b"ustar\x0000", mode=b"0000644"):
    """A tar header by hand."""
    b = bytearray(512)
    for at, field in ((0, name), (100, mode), (108, b"0000000"), (116, b"0000000"), (124, b"%011o" % size),
                      (136, b"00000000000"), (148, b" " * 8), (156, kind), (157, link), (257, magic)):
        b[at:at + len(field)] = field
    b[148:156] = b"%06o\0 " % sum(b)
    return bytes(b)


def padded(data):
    return data + bytes(-len(data) % 512)


def pax(fields):
    body = b""
    for k, v in fields:
        n = len(k) + len(v) + 3
        while len(b"%d" % n) + len(k) + len(v) + 3 != n:
            n = len(b"%d" % n) + len(k) + len(v) + 3
        body += b"%d %s=%s\n" % (n, k, v)
    return block(b"pax", len(body), b"x") + padded(body)


END = bytes(1024)


def unpack(archive, files=1000, most=1 << 20, one=1 << 18):
    """Exit code, what was said, {path: (content, can be executed)}."""
    place = tempfile.mkdtemp()
    try:
        into = os.path.join(place, "source")
        os.mkdir(into)
        with open(os.path.join(place, "archive"), "wb") as f:
            f.write(archive)
        p = subprocess.run([UNPACK, os.path.join(place, "archive"), into, str(files), str(most), str(one)],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        found = {}
        for folder, _, names in os.walk(into):
            for n in names:
                path = os.path.join(folder, n)
                st = os.lstat(path)
                assert stat.S_ISREG(st.st_mode) and st.st_mode & 0o7022 == 0, (path, oct(st.st_mode))
                found[os.path.relpath(path, into)] = (open(path, "rb").read(), bool(st.st_mode & 0o100))
        # Nothing but the archive and the folder is there: nothing came beside it.
        assert sorted(os.listdir(place)) == ["archive", "source"], os.listdir(place)
        return p.returncode, p.stdout.decode().rstrip("\n"), found
    finally:
        shutil.rmtree(place)


def accepts(name, archive, want, **limits):
    code, said, found = unpack(archive, **limits)
    check(name, code == 0 and said == "" and found == want, (code, said, sorted(found)[:5]))


def refuses(name, archive, want, **limits):
    code, said, _ = unpack(archive, **limits)
    check(name, code == 1 and said == want, (code, said))


# --- what is taken
tree = [entry("p-1.0/", b"", tarfile.DIRTYPE, 0o755), entry("p-1.0/a.py", b"one\n", mode=0o6777, uid=1234, uname="nobody"),
        entry("p-1.0/sub/b.sh", b"two\n", mode=0o700, mtime=-5), entry("p-1.0/empty", b"", mode=0)]
want = {"p-1.0/a.py": (b"one\n", True), "p-1.0/sub/b.sh": (b"two\n", True), "p-1.0/empty": (b"", False)}
for fmt, which in ((tarfile.USTAR_FORMAT, "ustar"), (tarfile.PAX_FORMAT, "pax"), (tarfile.GNU_FORMAT, "gnu")):
    plain = tar(*tree[:2], *tree[3:], fmt=fmt)
    less = {k: v for k, v in want.items() if "sub" not in k}
    for pack, how in ((lambda b: b, "plain"), (gzip.compress, "gzip"), (zstd, "zstd")):
        accepts(f"{which}, {how}", pack(plain), less)
accepts("a time before 1970", tar(*tree), want)
deep = "/".join(["d" * 30] * 4) + "/" + "f" * 36
assert len(deep) == 160
for fmt in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
    accepts("160 characters", tar(entry(deep), fmt=fmt), {deep: (b"x\n", False)})
accepts("./ before names", tar(entry("./", b"", tarfile.DIRTYPE), entry("./a.py"), entry("./d/", b"", tarfile.DIRTYPE)),
        {"a.py": (b"x\n", False)})
accepts("attributes", tar(entry("a", pax_headers={"SCHILY.xattr.user.x": "y", "LIBARCHIVE.creationtime": "1",
                                                  "SCHILY.acl.access": "user::rw-"})), {"a": (b"x\n", False)})
accepts("a comment, as git archive writes it", block(b"pax_global_header", 19, b"g") + padded(b"19 comment=01234567\n"[:19]) +
        block(b"a", 1) + padded(b"y") + END, {"a": (b"y", False)})
accepts("folders of one name in two cases, as with files[]", tar(entry("A/x"), entry("a/y")),
        {"A/x": (b"x\n", False), "a/y": (b"x\n", False)})
accepts("several members of gzip", gzip.compress(tar(entry("a"))[:700]) + gzip.compress(tar(entry("a"))[700:]),
        {"a": (b"x\n", False)})
accepts("just as much", tar(entry("a", b"1" * 100), entry("b", b"2" * 100)),
        {"a": (b"1" * 100, False), "b": (b"2" * 100, False)}, files=2, most=200, one=100)

# --- names
for name in ("/etc/passwd", "../up", "a/../../b", "a/./b", "a//b", ".", "a\\b", "a b", "a\nb", "caf\u00e9", "-rf", "a/-x", "a:b", "~",
             ".git/config", "a/.GIT/hooks/x", ".Git.", ".gitattributes", "a/.gitmodules", "f" * 161, "a/..", "*"):
    said = "".join(c if "!" <= c <= "~" else "".join("\\x%02x" % b for b in c.encode()) for c in name)
    refuses(f"name {name!r}", tar(entry("ok"), entry(name)), f"invalid_source_path {said}"[:219])
refuses("GNU long name", tar(entry("d/" * 100 + "x", b""), fmt=tarfile.GNU_FORMAT),
        ("invalid_source_path " + "d/" * 100)[:215])
refuses("a folder up", tar(entry("../d/", b"", tarfile.DIRTYPE)), "invalid_source_path ../d/")
refuses("no name", block(b"") + END, "invalid_source_path")
refuses("pax path up", pax([(b"path", b"../../x")]) + block(b"a") + END, "invalid_source_path ../../x")
# A name ends at NUL, for libarchive and for the kernel.
accepts("pax path with NUL", pax([(b"path", b"a\0/../../x")]) + block(b"b") + END, {"a": (b"", False)})
refuses("pax path that is no UTF-8", pax([(b"path", b"\xff\xfe")]) + block(b"b") + END, "invalid_source_path \\xff\\xfe")
refuses("twice", tar(entry("a"), entry("b"), entry("a")), "duplicate_source_path a")
refuses("in two cases", tar(entry("d/a.py"), entry("e"), entry("d/A.py")), "conflicting_source_path d/a.py")
refuses("in two cases, far apart", tar(entry("README"), *[entry(f"r{i}") for i in range(50)], entry("readme")),
        "conflicting_source_path readme")
refuses("a file, then a folder", tar(entry("a"), entry("a/b")), "conflicting_source_path a/b")
refuses("a folder, then a file", tar(entry("a/b"), entry("a")), "conflicting_source_path a")
refuses("an empty folder, then a file", tar(entry("a/", b"", tarfile.DIRTYPE), entry("a")), "conflicting_source_path a/")
refuses("a file, then a folder of another case", tar(entry("a"), entry("A/b")), "conflicting_source_path A/b")

refuses("name './././a'", tar(entry("./././a")), "invalid_source_path ././a")

# --- kinds
for kind, which in ((tarfile.SYMTYPE, "link"), (tarfile.LNKTYPE, "hard link"), (tarfile.CHRTYPE, "device"),
                    (tarfile.BLKTYPE, "block device"), (tarfile.FIFOTYPE, "fifo")):
    for to in ("/etc/passwd", "../../x", "ok"):
        refuses(f"{which} to {to}", tar(entry("ok"), entry("n", b"", kind, linkname=to)), "source_entry_refused n")
refuses("a hard link with a content", tar(entry("ok"))[:1024] + pax([(b"mtime", b"1")]) + block(b"n", 2, b"1", link=b"ok") +
        padded(b"y\n") + END, "source_entry_refused n")
refuses("a link as a folder", tar(entry("d", b"", tarfile.SYMTYPE, linkname="/tmp"), entry("d/x")), "source_entry_refused d")
refuses("GNU sparse", block(b"s", 512, b"S", magic=b"ustar  \0")[:386] + b"%011o\0%011o\0" % (1 << 30, 512) + bytes(73) +
        b"0%011o" % (1 << 31) + bytes(13) + bytes(512) + END, "invalid_archive")
for size in (1 << 17, 1 << 40):
    refuses("pax sparse", pax([(b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0"), (b"GNU.sparse.name", b"s"),
                               (b"GNU.sparse.realsize", b"%d" % size)]) +
            block(b"GNUSparseFile.0/s", 512) + padded(b"1\n%d\n512\n" % (size - 512))[:512] + END, "source_entry_refused s")

# --- sizes
refuses("a file over the cap", tar(entry("a", b"1" * 101)), "source_file_too_large a", one=100)
refuses("a tree over the cap", tar(entry("a", b"1" * 100), entry("b", b"2" * 101)), "source_tree_too_large b", most=200)
refuses("too many files", tar(*[entry(f"f{i}") for i in range(4)]), "source_too_many_files f3", files=3)
refuses("too many folders", tar(*[entry(f"f{i}/", b"", tarfile.DIRTYPE) for i in range(4)]), "source_too_many_files f3", files=3)
refuses("too many folders on the way", tar(entry("a/b/c/d/f")), "source_too_many_files a/b/c/d/f", files=3)
refuses("what pax says of its size", pax([(b"size", b"99999999999999")]) + block(b"a") + END, "source_file_too_large a")
refuses("a size below 0", block(b"a", 0)[:124] + b"\xff" * 12 + block(b"a", 0)[136:] + END, "invalid_archive")
z = zlib.compressobj(9, wbits=31)
bomb = z.compress(block(b"bomb", 1 << 36)) + b"".join(z.compress(bytes(1 << 20)) for _ in range(64)) + z.flush()
refuses("a bomb that says so", bomb, "source_file_too_large bomb")
many = io.BytesIO()
with gzip.open(many, "wb", 6) as f:
    for i in range(200):
        f.write(block(b"z%d" % i, 1 << 18) + bytes(1 << 18))
refuses("a bomb of many", many.getvalue(), "source_tree_too_large z4")
refuses("a bomb in zstd", zstd(bytes(1 << 28)), "source_tree_too_large", most=1 << 22, files=10)
refuses("a bomb behind the end", gzip.compress(tar(entry("a")) + bytes(1 << 27)), "source_tree_too_large")
refuses("a large pax header", gzip.compress(block(b"p", 1 << 26, b"x") + bytes(1 << 26) + block(b"a") + END), "invalid_archive")
refuses("a large GNU name", gzip.compress(block(b"p", 1 << 26, b"L") + b"a" * (1 << 26) + block(b"a") + END), "invalid_archive")
tiny = io.BytesIO()
with gzip.open(tiny, "wb", 1) as f:
    for i in range(0, 1000000, 10000):
        f.write(b"".join(block(b"%d" % k) for k in range(i, i + 10000)))
refuses("a million names", tiny.getvalue(), "source_too_many_files 20000", files=20000, most=1 << 28)

# --- what is no whole archive
whole = tar(entry("a", b"1" * 3000), entry("b"))
for cut in (0, 1, 511, 512, 1024, 1536, 2000, 4096 + 512):
    refuses(f"cut at {cut}", whole[:cut], "invalid_archive a" if 512 <= cut < 3584 else "invalid_archive")
for pack, how in ((gzip.compress, "gzip"), (zstd, "zstd")):
    packed = pack(whole)
    for cut in (len(packed) - 1, len(packed) - 9, len(packed) // 2):
        code, said, _ = unpack(packed[:cut])
        check(f"{how} cut at {cut}", code == 1 and said.split()[0] == "invalid_archive", (code, said))
    refuses(f"{how}, something behind it", packed + b"garbage", "invalid_archive")
    refuses(f"{how} in {how}", pack(packed), "invalid_archive")
refuses("something behind the end", whole + b"garbage" + bytes(505), "invalid_archive")
refuses("another tar behind the end", whole + tar(entry("c")), "invalid_archive")
refuses("something behind the end, in one block", tar(entry("a"))[:2048] + b"x" + bytes(511), "invalid_archive")
refuses("half a block behind the end", whole + bytes(100), "invalid_archive")
broken = bytearray(whole)
broken[3584 + 1] ^= 0xff
refuses("a header's sum", bytes(broken), "invalid_archive")
refuses("nothing in it", tar(), "invalid_archive")
refuses("folders alone", tar(entry("d/", b"", tarfile.DIRTYPE)), "invalid_archive")
refuses("text", b"hello\n" * 1000, "invalid_archive")
refuses("zip", b"PK\x03\x04" + bytes(1000), "invalid_archive")
refuses("bzip2", b"BZh91AY&SY" + bytes(1000), "invalid_archive")
refuses("xz", b"\xfd7zXZ\0" + bytes(1000), "invalid_archive")
refuses("cpio", b"070701" + b"0" * 104 + b"a\0", "invalid_archive")

# --- how it is called
for words in ([], ["a"] * 5, ["/dev/null", "/", "0", "1", "1"], ["/nowhere", "/tmp", "1", "1", "1"], ["/dev/null", "/nowhere", "1", "1", "1"]):
    check(f"called with {words}", subprocess.run([UNPACK, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 2)

print(f"{good} passed, {bad} failed")
sys.exit(bad > 0)
