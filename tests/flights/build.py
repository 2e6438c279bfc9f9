"""Build the library that flies the lunar lander eight times as fast as the simulator, bit by bit.

A campaign of the lander is some ten million flights: a day of one core with the simulator, three
hours with this library. Nothing of the suite needs it. For Linux on x86-64 with g++:

    python -m tests.flights.build build/flights      # download, patch and compile
    python -m tests.flights.check build/flights      # compare flights with the simulator
    python -m tests.flights.campaign build/flights paper run --stage control

The second sees a fault of one flight in thousands; rarer ones are for `cbo verify`, which flies a
tenth of a campaign again by the simulator. The last runs any command of `cbo` with these flights.

Box2D comes from the source distribution of box2d-py, pinned by its checksum; three of its files are
patched.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from pathlib import Path

SOURCE = Path(__file__).parent
LIBRARY = "libflights.so"
REQUIREMENT = (
    "box2d-py==2.3.8 --hash=sha256:bdacfbbc56079bb317548efe49d3d5a86646885cc27f4a2ee97e4b2960921ab7"
)
# No multiplication is fused with an addition, and no statements are merged into vectors, which has
# left out a rounding to single precision.
FLAGS = ("-fPIC", "-w", "-ffp-contract=off", "-fno-tree-vectorize", "-fno-tree-slp-vectorize")
BOX2D_FLAGS = (*FLAGS, "-O2", "-fno-strict-aliasing")
# Private members are read by fibers.cpp; sine and cosine are taken apart as Python takes them.
OWN_FLAGS = (*FLAGS, "-O1", "-fno-builtin-sin", "-fno-builtin-cos")
PUBLIC = ("-Dprivate=public", "-Dprotected=public")

SWEEPS = (
    "\tfor (int32 i = 0; i < step.velocityIterations; ++i)\n\t{\n"
    "\t\tfor (int32 j = 0; j < m_jointCount; ++j)\n"
)
HOOK = "bool (*b2_sweeps)(b2Island&, const b2SolverData&, b2ContactSolver&) = 0;\n"
CALL = "\tif (!b2_sweeps || !b2_sweeps(*this, solverData, contactSolver))\n"
INCLUDE = "#include <Box2D/Common/b2Timer.h>\n"
CLOCK = "    gettimeofday(&t, 0);"
# File, what stands there once or more, what stands there instead.
PATCHES = (
    ("Common/b2Settings.h", "#define USE_EXCEPTIONS\n", "#include <cstdlib>\n"),
    ("Common/b2Settings.h", "assert(A)\n", "if (!(A)) { std::abort(); }\n"),
    ("Common/b2Timer.cpp", CLOCK, "    t.tv_sec = t.tv_usec = 0;"),  # profiles nobody reads
    ("Dynamics/b2Island.cpp", INCLUDE, INCLUDE + HOOK),
    ("Dynamics/b2Island.cpp", SWEEPS, CALL + SWEEPS),
)


def download(folder: Path) -> Path:
    """Download and unpack Box2D; returns the folder that its headers are included from."""
    requirements = folder / "requirements.txt"
    requirements.write_text(REQUIREMENT + "\n", encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    pip += ["--no-binary=box2d-py", "--dest", str(folder), "--requirement", str(requirements)]
    subprocess.run(pip, check=True)
    (archive,) = folder.glob("box2d-py-*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def patch(source: Path) -> None:
    """Patch Box2D where it is unpacked."""
    for name, old, new in PATCHES:
        path = source / "Box2D" / name
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{path} is not as it was"
        path.write_text(text.replace(old, new), encoding="utf-8")


def compile_all(source: Path, folder: Path) -> Path:
    """Compile Box2D and the files of this folder into a library, and return it."""
    include = ("-I", str(source), "-I", str(SOURCE))
    steps: list[tuple[Path, tuple[str, ...]]] = [
        (path, (*BOX2D_FLAGS, *PUBLIC))
        for path in sorted((source / "Box2D").rglob("*.cpp"))
        if "wrap" not in path.name
    ]
    steps += [
        (SOURCE / "lander.cpp", OWN_FLAGS),
        (SOURCE / "fibers.cpp", (*OWN_FLAGS, *PUBLIC)),
        (SOURCE / "sweeps.cpp", (*FLAGS, "-O2", "-march=native")),
    ]

    def compile_one(step: tuple[Path, tuple[str, ...]]) -> str:
        path, flags = step
        target = folder / f"{path.stem}.o"
        command = ["g++", "-std=c++17", *flags, *include, "-c", str(path), "-o", str(target)]
        subprocess.run(command, check=True)
        return str(target)

    with ThreadPoolExecutor(cpu_count()) as threads:
        objects = list(threads.map(compile_one, steps))
    library = folder / LIBRARY
    subprocess.run(["g++", "-shared", *objects, "-lm", "-o", library], check=True)  # noqa: S607
    return library


def main(folder: Path) -> None:
    """Build the library in a folder."""
    if shutil.which("g++") is None:
        sys.exit("the library of flights is compiled with g++, which is not installed here")
    folder.mkdir(parents=True, exist_ok=True)
    source = download(folder)
    patch(source)
    print(compile_all(source, folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
