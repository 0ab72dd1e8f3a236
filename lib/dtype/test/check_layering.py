#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Dependencies point one way, app -> lib/comm -> lib/dtype -> lib/support; Kokkos and CUDA stay where they belong; plans
know no back end; headers are included once, name no header of nlohmann/json, and come first in the source of their name,
which so shows that they compile alone; no two folders include each other, directly or on a way around; every test on disk is
built.

    check_layering.py ROOT       exit 0, or 1 after one line per violation
"""
import pathlib
import re
import sys

SOURCES = {".hpp", ".cpp", ".cu", ".cuh", ".h"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
KOKKOS = re.compile(r"Kokkos_|impl/Kokkos")
KOKKOS_IN_APP = {"app/field_views.hpp", "app/kokkos_runtime.cpp", "app/main.cpp", "app/tools.cpp"}
KOKKOS_FOLDERS = ("lib/dtype/pack/kokkos", "app/physics")
PLANS = pathlib.Path("lib/dtype/pack")
BACK_ENDS = re.compile(r"(dtype/pack/)?(host|kokkos|device|cuda)/")
CUDA_FOLDERS = ("lib/dtype/pack/cuda", "lib/dtype/bench/cuda")
CUDA = re.compile(r"cuda|cub/|thrust/|nv/|cooperative_groups")


def sources(root):
    for top in ("lib", "app"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in SOURCES and path.is_file():
                yield path.relative_to(root)


def is_test(path):
    return bool({"test", "bench"} & set(path.parts))


def violations_of(path, include):
    layer = "/".join(path.parts[:2]) if path.parts[0] == "lib" else "app"
    if layer in ("lib/dtype", "lib/support") and include.startswith("comm/"):
        yield f"{layer} does not know lib/comm"
    if layer == "lib/support" and include.startswith("dtype/"):
        yield "lib/support does not know lib/dtype"
    if layer != "app" and include.startswith("app/"):
        yield "the libraries do not know app"
    if path.parent == PLANS and BACK_ENDS.match(include):
        yield "a plan does not know the back ends, which keep what they need in its Attachment"
    if KOKKOS.match(include) and not (
        path.as_posix() in KOKKOS_IN_APP or is_test(path) or any(map(path.is_relative_to, KOKKOS_FOLDERS))
    ):
        yield "Kokkos belongs to " + ", ".join((*KOKKOS_FOLDERS, *sorted(KOKKOS_IN_APP)))
    if include == "nlohmann/json.hpp" and path.suffix == ".hpp" and not is_test(path):
        yield "headers name json_fwd.hpp, or all that include them need the library"
    if CUDA.match(include) and not (
        (any(map(path.is_relative_to, CUDA_FOLDERS)) and path.suffix in {".cu", ".cuh"}) or path.is_relative_to("lib/cmake")
    ):
        yield "CUDA belongs to *.cu in " + ", ".join(CUDA_FOLDERS)


def violations_of_own_header(root, path, includes):
    """Yields mistakes in how a header guards itself, or in what a source includes first."""
    if path.suffix == ".hpp" and not re.search(r"^#pragma once$", (root / path).read_text(), re.MULTILINE):
        yield f"{path} has no #pragma once"
    own = path.with_name(path.stem.removeprefix("no_") + ".hpp")  # or what is built instead
    if path.suffix == ".cpp" and (root / own).exists():
        first = includes[0] if includes else "nothing"
        if own.as_posix() not in (first, f"lib/{first}", (path.parent / first).as_posix()):
            yield f"{path} includes {first} first: it has to be {own.name}, which so compiles alone"


def folder_cycles(root, includes_of):
    """Yields each folder cycle as a list of folders. `includes_of` has the includes of each source. Tests and examples do not count."""
    edges = {}
    for path, includes in includes_of.items():
        if {"test", "bench", "example", "examples"} & set(path.parts):
            continue
        for include in includes:
            for file in (path.parent / include, pathlib.Path("lib", include), pathlib.Path("app", include)):
                if (root / file).exists():
                    if file.parent != path.parent:
                        edges.setdefault(path.parent, set()).add(file.parent)
                    break
    left = dict(edges)
    while left:  # without the folders that include no folder that is left, or that no folder that is left includes
        ends = [folder for folder in left if not left[folder] & left.keys() or not any(folder in others for others in left.values())]
        if not ends:
            yield sorted(map(str, left))
            return
        for folder in ends:
            del left[folder]


def named_files(root):
    """Every name in a CMakeLists.txt of lib/ or app/ that may stand for a test, as a path without its suffix."""
    for top in ("lib", "app"):
        for lists in (root / top).rglob("CMakeLists.txt"):
            text = re.sub(r"#.*", "", lists.read_text())
            for word in re.findall(r"[\w./-]*test[\w./-]*", text):
                yield (lists.parent / word.lstrip("/")).with_suffix("")


def main():
    if sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__.strip())
        return 0
    root = pathlib.Path(sys.argv[1]).resolve()
    found = []
    seen = 0
    includes_of = {}
    for path in sources(root):
        seen += 1
        includes = includes_of[path] = INCLUDE.findall((root / path).read_text())
        found += violations_of_own_header(root, path, includes)
        for include in includes:
            found += [f"{path} includes {include}: {rule}" for rule in violations_of(path, include)]
    found += ["a cycle is among the folders " + ", ".join(cycle) for cycle in folder_cycles(root, includes_of)]
    named = set(named_files(root))
    for top in ("lib", "app"):
        for test in sorted(set((root / top).rglob("test_*")) | set((root / top).rglob("*_test.*"))):
            if test.suffix in SOURCES | {".py"} - {".hpp", ".h"} and test.with_suffix("") not in named:
                found.append(f"{test.relative_to(root)} is not built: name it in a CMakeLists.txt")
    if seen == 0:
        found.append(f"{root} has no sources: not the root of the project")
    print("\n".join(found) if found else f"{seen} sources, no violation")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
