# SPDX-License-Identifier: BSD-3-Clause
"""Puts libhalocline.so into the package: that of HALOCLINE_PREFIX, else one that CMake builds from this checkout
against the MPI of mpi4py. pip runs this file; README.md has the variables."""

import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

CHECKOUT = pathlib.Path(__file__).resolve().parents[3]


def end(text):
    """Ends the installation. pip shows no more than the last lines."""
    sys.exit(f"halocline: {text}")


def installed(prefix):
    """Returns the library in a prefix or in a build folder."""
    found = [path for folder in ("lib", "lib64", "lib/*-linux-gnu") for path in pathlib.Path(prefix).glob(f"{folder}/libhalocline.so")]
    if not found:
        end(f"HALOCLINE_PREFIX={prefix} has no lib/libhalocline.so: give the whole path of the folder of `cmake --install`, or unset it")
    return found[0]


def mpi_compiler():
    """Returns the mpicxx of the MPI that mpi4py was built with, or None if mpi4py finds its MPI when it runs."""
    # pip hides the packages of the environment by PYTHONPATH, which -I ignores.
    code = "import mpi4py; config = mpi4py.get_config(); print(config.get('mpicxx') or config.get('mpicc', ''))"
    told = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False).stdout.strip()
    # The name may have a suffix, such as mpicc.openmpi.
    return told and shutil.which(str(pathlib.Path(told).with_name(pathlib.Path(told).name.replace("mpicc", "mpicxx", 1))))


def build(folder):
    if not (CHECKOUT / "CMakePresets.json").is_file():
        end("the package builds its library from a checkout: run `pip install ./lib/comm/python` there, or set HALOCLINE_PREFIX")
    if shutil.which("cmake") is None:
        end("CMake is missing: install it with a C++20 compiler, an MPI and nlohmann-json, or set HALOCLINE_PREFIX")
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DHALOCLINE_KOKKOS=OFF", "-DHALOCLINE_BUILD_TESTS=OFF", "-DCMAKE_UNITY_BUILD=ON"]
    compiler = mpi_compiler()
    options += [f"-DMPI_CXX_COMPILER={compiler}"] if compiler else []
    options += shlex.split(os.environ.get("CMAKE_ARGS", ""))
    jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or str(len(os.sched_getaffinity(0)))
    for command in (["cmake", "-S", CHECKOUT, "-B", folder, *options], ["cmake", "--build", folder, "--target", "halocline_c", "-j", jobs]):
        if subprocess.run(command, check=False).returncode != 0:
            end(f"CMake cannot build the library (see above): {shlex.join(map(str, command))}")
    return installed(folder)


class Build(build_py):
    def run(self):
        super().run()
        target = pathlib.Path(self.build_lib, "halocline", "libhalocline.so")
        target.parent.mkdir(parents=True, exist_ok=True)
        prefix = os.environ.get("HALOCLINE_PREFIX")
        with tempfile.TemporaryDirectory() as folder:
            shutil.copyfile(installed(prefix) if prefix else build(folder), target)


class Wheel(bdist_wheel):
    """Names the platform, and no version of Python: the library calls none of its functions."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(cmdclass={"build_py": Build, "bdist_wheel": Wheel})
