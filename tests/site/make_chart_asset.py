"""Make the chart library of the site from the packages that npm has: one file and its notice.

    python tests/site/make_chart_asset.py

It needs npm and the network, and nothing else does: both files are in the repository. Each part is
checked against its SHA-256, so the file is the same on every machine. A new version of Vega is a
new row of `PARTS`, with a look at every page afterwards.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

ASSETS = Path(__file__).parents[2] / "cbo_suite" / "site" / "assets"
# Packages that the published files were bundled from; the other dependencies are command lines.
BUNDLED = re.compile(
    r"vega.*|d3-.*|topojson-client|delaunator|internmap|robust-predicates|tslib"
    r"|json-stringify-pretty-compact"
)


class Part(NamedTuple):
    """One file of a package.

    Attributes:
        package: Name and version in the registry of npm.
        path: The file inside the package.
        sha256: Its digest.
    """

    package: str
    path: str
    sha256: str


PARTS = (
    Part(
        "vega@6.4.0",
        "build/vega.min.js",
        "8f6a3587cf8d4f42c7e08120e3eb05d067e746d554e39d2dcf52acc0bd5ba28f",
    ),
    Part(
        "vega-lite@6.5.0",
        "build/vega-lite.min.js",
        "83e215e84e308ee8688fa6503ba0f1cf8a3c05c0d61df2841a0b92bf86809e00",
    ),
    Part(
        "vega-interpreter@2.3.2",
        "build/vega-interpreter.js",
        "c0bdb735a63f9276f136e8d90d7fdf5d8e9df8031eb069048fc9975c876fd7f9",
    ),
)
# Of the file that they make.
ASSET_SHA256 = "dba8d2ae2252ce4e2e540486151d85c3ad631882f9a505aaccc786ae0af0deb9"


def as_classic_script(text: str) -> str:
    """Turn the interpreter's module into a script that adds to the global `vega`.

    Pages opened from a disk cannot load modules.
    """
    text = re.sub(r"import (\{.*?\}) from 'vega-util';", r"const \1 = vega;", text)
    text = text.replace(
        "export { expression as expressionInterpreter };",
        "vega.expressionInterpreter = expression;",
    )
    return f"(() => {{\n{text}\n}})();"


def read_part(part: Part, modules: Path) -> str:
    """Read one file and refuse it if it is not the one that is pinned."""
    data = (modules / part.package.partition("@")[0] / part.path).read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    if digest != part.sha256:
        raise SystemExit(f"{part.package}: {part.path} has SHA-256 {digest}, not {part.sha256}")
    text = data.decode()
    if part.package.startswith("vega-interpreter"):
        text = as_classic_script(text)
    return re.sub(r"\n?//# sourceMappingURL=\S+", "", text).strip()


def notice(modules: Path) -> str:
    """Write down what the file is made of, and every licence once."""
    licences: dict[str, list[str]] = defaultdict(list)
    for folder in sorted(modules.iterdir()):
        if BUNDLED.fullmatch(folder.name):
            (path,) = [*folder.glob("LICENSE*"), *folder.glob("CopyrightNotice*")][:1]
            licences[path.read_text().strip()].append(folder.name)
    rows = "\n".join(f"  {p.package}  {p.path}\n    SHA-256 {p.sha256}" for p in PARTS)
    head = (
        "vega.js holds these files, unchanged but for the last, which is made a classic script:\n\n"
        f"{rows}\n\nThey were bundled by their authors from the packages below. The file was put "
        "together\nby tests/site/make_chart_asset.py in the sources of cbo-suite.\n"
    )
    rule = "-" * 80
    texts = [f"{rule}\n{', '.join(names)}\n\n{text}\n" for text, names in licences.items()]
    return "\n".join([head, *texts])


def main() -> None:
    """Fetch the packages, check them, and write the asset and its notice."""
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("npm is not installed")
    with tempfile.TemporaryDirectory() as folder:
        packages = [part.package for part in PARTS]
        options = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefix", folder]
        subprocess.run([npm, "install", *options, *packages], check=True)
        modules = Path(folder) / "node_modules"
        text = "\n".join(read_part(part, modules) for part in PARTS)
        (ASSETS / "vega.js").write_text(text + "\n")
        (ASSETS / "vega-licences.txt").write_text(notice(modules))


if __name__ == "__main__":
    main()
