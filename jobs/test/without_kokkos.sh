#!/usr/bin/env bash
# Builds and installs the library and the interposer without Kokkos, and runs an example with each
# of them. Then pip builds the package of Python from the checkout.
#   jobs/test/without_kokkos.sh
# Nothing is optimised, since only the success of the build matters: four minutes. Exit code: 0; 1 if
# something does not work.
set -euo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/../local/script.sh"
cd "$(dirname "$0")/../.."
source jobs/local/env.sh
work=$(mktemp -d) || exit 3
trap 'rm -rf "$work"' EXIT
cmake --preset release -B "$work/build" -DHALOCLINE_KOKKOS=OFF -DCMAKE_DISABLE_FIND_PACKAGE_Kokkos=ON -DHALOCLINE_WERROR=ON \
  -DHALOCLINE_BUILD_TESTS=OFF -DCMAKE_CXX_FLAGS_RELEASE='-O0 -DNDEBUG' -DCMAKE_UNITY_BUILD=ON
cmake --build "$work/build" -j "$(cores)"
cmake --install "$work/build" --prefix "$work/prefix" >"$work/install.log"
cmake -G Ninja -S "$work/prefix/share/halocline/examples" -B "$work/examples" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_DISABLE_FIND_PACKAGE_Kokkos=ON
cmake --build "$work/examples"
mpirun -n 2 "$work/examples/own_array"
preload=$(find "$work/prefix" -name libhalocline_mpi.so)
HALOCLINE_MPI_LOG=summary mpirun -n 2 env LD_PRELOAD="$preload" "$work/examples/own_array" 2>&1 | grep 'halocline\[0\]: types committed'
if [[ -x .deps/python/bin/python3 ]]; then
  # pip builds in a copy: it leaves files beside what it reads.
  mkdir "$work/checkout"
  tar -cf - --exclude=./build --exclude=./.deps --exclude=./.vendors --exclude=./.git . | tar -xf - -C "$work/checkout"
  CMAKE_ARGS='-DCMAKE_CXX_FLAGS_RELEASE=-O0 -DCMAKE_DISABLE_FIND_PACKAGE_Kokkos=ON' CMAKE_BUILD_PARALLEL_LEVEL=$(cores) \
    .deps/python/bin/python3 -m pip install -q --disable-pip-version-check --no-deps --no-index --no-build-isolation \
    --target "$work/package" "$work/checkout/lib/comm/python"
  PYTHONPATH=$work/package mpirun -n 2 .deps/python/bin/python3 lib/examples/jacobi.py 16 5
fi
echo "without_kokkos.sh: library and interposer work without Kokkos"
