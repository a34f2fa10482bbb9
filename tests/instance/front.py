"""Another web server in front of a running instance, below a folder of its own, gone when the test is."""
import ctypes, os, shutil, signal, socket, subprocess, tempfile, time, urllib.request
from client import PATIENCE

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INSTANCE = os.environ["PINFOLD_INSTANCE"]


def which(url):
    """The server that answers: each says its name."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url + "/healthz", timeout=PATIENCE) as r:
        name = r.headers.get("server", "").lower()
    return next((s for s in ("lighttpd", "apache", "nginx") if s in name), name)


SERVER = which(os.environ["PINFOLD_URL"])


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


class Front:
    """with Front("nginx", "--keep") as f: f.url"""

    def __init__(self, server, *options, socket_path=None):
        with socket.create_server(("127.0.0.1", 0)) as s:
            self.port = s.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.dir = tempfile.mkdtemp(prefix="pinfold-front.")
        os.chmod(self.dir, 0o755)
        path = socket_path or INSTANCE + "/run/pinfold/public/fcgi.sock"
        self.p = subprocess.Popen([TOP + "/tools/web-front.sh", server, self.dir, str(self.port), path, *options],
                                  preexec_fn=die_with_parent, stderr=subprocess.STDOUT, stdout=open(self.dir + "/out.log", "w"))

    def __enter__(self):
        end = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), PATIENCE).close()
                return self
            except OSError:
                if self.p.poll() is not None or time.monotonic() > end:
                    said = "".join(open(f"{self.dir}/{n}").read() for n in os.listdir(self.dir) if n.endswith(".log"))
                    self.__exit__()
                    raise AssertionError("the web server did not start: " + said)
                time.sleep(0.05)

    def __exit__(self, *_):
        self.p.terminate()
        try:
            self.p.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.p.kill()
            self.p.wait()
        shutil.rmtree(self.dir, ignore_errors=True)
