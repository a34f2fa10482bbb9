"""Packages of npm, of a fixed version, that tests read or ask: installed once a tree, scripts of theirs never run."""
import os, shutil, subprocess, tempfile
from patience import PATIENCE

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


def npm(name, version):
    """(the package's folder, None), or (None, what is the matter)."""
    root = os.path.join(TOP, "build-npm", f"{name}-{version}")
    folder = os.path.join(root, "node_modules", name)
    if os.path.isdir(folder):
        return folder, None
    os.makedirs(os.path.dirname(root), exist_ok=True)
    made = tempfile.mkdtemp(dir=os.path.dirname(root))
    try:
        r = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", made, f"{name}@{version}"],
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=2 * PATIENCE)
        wrong = (r.stderr.strip().splitlines() or ["npm failed"])[-1] if r.returncode else None
        if wrong is None and not os.path.isdir(root):
            os.rename(made, root)
    except FileNotFoundError:
        wrong = "npm is not installed"
    except subprocess.TimeoutExpired:
        wrong = "npm did not end"
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return (None, f"the npm package {name}@{version} is needed and cannot be installed: {wrong}") if wrong else (folder, None)
