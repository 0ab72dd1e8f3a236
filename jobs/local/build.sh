#!/usr/bin/env bash
# Installs what a preset needs, then configures and builds it in build/PRESET.
#   jobs/local/build.sh PRESET [CMAKE-ARGUMENT...]     PRESET: release | debug | asan | release-cuda
# On Debian, as root, missing packages come from Debian's registry. If CMake finds a Kokkos >= 4.7
# of the site, that is used. Otherwise Kokkos 4.7.00 is built once into .deps/kokkos. Its source is
# in the PyPI package pygenten 0.1.5 (Sandia).
#
# release-cuda needs nvcc: that of $CUDACXX or $PATH, else 13.0 from PyPI. It goes to .deps/cuda,
# with a CMake that knows CUDA 13. Kokkos for Hopper goes to .deps/kokkos-cuda. The programs of
# release-cuda start only if there is a CUDA driver. With -DHALOCLINE_KOKKOS=OFF no Kokkos is
# needed; the library and the interposer remain.
#
# May be called again: things that are already installed stay. $HALOCLINE_BUILD_TARGETS: builds
# these targets instead of everything.
set -euo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/script.sh"
cd "$(dirname "$0")/../.."
[[ $PWD != *';'* ]] || { echo "build.sh: the path $PWD has a ';', at which CMake divides lists: rename that folder" >&2; exit 2; }
source jobs/local/deps.sh

[[ $# -ge 1 ]] || wrong_use "which preset? release, debug, asan or release-cuda"
preset=$1; shift
case $preset in
  release|debug|asan) kokkos=kokkos ;;
  release-cuda) kokkos='kokkos-cuda' ;;
  *) echo "build.sh: unknown preset '$preset': use release, debug, asan or release-cuda" >&2; exit 2 ;;
esac
cmake=cmake cuda_options=()
jobs=${HALOCLINE_BUILD_JOBS:-$(cores)}

# Searches for Kokkos exactly as the project does, so that both use the same one.
site_has_kokkos() {
  local probe; probe=$(mktemp -d)
  cp lib/cmake/FindKokkosForHalocline.cmake "$probe/"
  printf '%s\n' 'cmake_minimum_required(VERSION 3.22)' 'project(probe CXX)' 'include(FindKokkosForHalocline.cmake)' >"$probe/CMakeLists.txt"
  local rc=0; "$cmake" -S "$probe" -B "$probe/build" "$@" >"$probe/log" 2>&1 || rc=$?
  rm -rf "$probe"
  return $rc
}

build_kokkos() {
  local prefix=$PWD/.deps/$kokkos spaces="Serial, OpenMP" options=()
  lock_deps lock
  if [[ ! -e $prefix/.complete ]]; then
    local work=$PWD/.deps/kokkos-work
    rm -rf "$work" "$prefix"; mkdir -p "$work"
    say "no Kokkos >= 4.7 found: getting 4.7.00 from the PyPI source package pygenten 0.1.5"
    python3 -m venv "$work/venv"
    "$work/venv/bin/python3" -m pip download -q --disable-pip-version-check --no-deps --no-binary pygenten --require-hashes \
      -r jobs/local/requirements/kokkos.txt -d "$work" >"$work/pip.log" 2>&1 || { cat "$work/pip.log" >&2; exit 3; }
    tar -xzf "$work"/pygenten-0.1.5.tar.gz -C "$work"
    if [[ $kokkos == kokkos-cuda ]]; then
      spaces+=", CUDA for Hopper"
      # Flags go through a shell, so the header is copied to a path without special characters.
      local header; header=$(mktemp -d)/kokkos_cuda_13.hpp
      cp lib/cmake/kokkos_4.7.00_cuda_13.hpp "$header"
      # GPU-aware MPI and CUDA IPC cannot use memory of cudaMallocAsync.
      options=("${cuda_options[@]}" -DKokkos_ENABLE_CUDA=ON -DKokkos_ENABLE_COMPILE_AS_CMAKE_LANGUAGE=ON -DKokkos_ARCH_HOPPER90=ON
               -DKokkos_ENABLE_IMPL_CUDA_MALLOC_ASYNC=OFF -DCMAKE_CUDA_ARCHITECTURES=90
               -DCMAKE_CUDA_FLAGS="-include $header")
    fi
    say "building Kokkos 4.7.00 ($spaces) into .deps/$kokkos"
    # Several sources are compiled as one. That reads the headers 2 times instead of 20 and takes a
    # fourth of the time.
    { "$cmake" -S "$work"/pygenten-0.1.5/tpls/kokkos -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_CXX_STANDARD=20 -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DKokkos_ENABLE_SERIAL=ON -DKokkos_ENABLE_OPENMP=ON \
        -DKokkos_ENABLE_TESTS=OFF -DKokkos_ENABLE_EXAMPLES=OFF -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_INSTALL_PREFIX="$prefix" \
        -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=12 "${options[@]}" &&
      "$cmake" --build "$work/build" -j "$jobs" && "$cmake" --install "$work/build"; } >"$work/build.log" 2>&1 ||
      { tail -n 40 "$work/build.log" >&2; echo "build.sh: Kokkos did not build (see above and $work/build.log)" >&2; exit 3; }
    touch "$prefix/.complete"; rm -rf "$work"
  fi
  exec 9>&-
}

install_packages g++ cmake ninja-build git ca-certificates python3 python3-venv libopenmpi-dev openmpi-bin \
  libcli11-dev libtomlplusplus-dev nlohmann-json3-dev libpng-dev zlib1g-dev libbenchmark-dev libgtest-dev iproute2
probe_options=("$@")
if [[ $preset == release-cuda ]]; then
  find_cuda
  [[ $nvcc != "$PWD"/.deps/* ]] ||
    cuda_options=(-DCUDAToolkit_ROOT="$toolkit" -DCUDA_cuda_driver_LIBRARY="$cuda_stubs/libcuda.so")
  cuda_options+=(-DCMAKE_CUDA_COMPILER="$nvcc")
  version=$(cmake --version 2>/dev/null | sed -n 's/^cmake version //p')
  if [[ $(printf '%s\n' 3.31 "${version:-0}" | sort -V | head -n1) != 3.31 ]]; then
    lock_deps lock; install_wheels .deps/cuda cmake; exec 9>&-  # a CMake that knows CUDA 13
    cmake=$(echo "$PWD"/.deps/cuda/lib/python3*/site-packages/cmake/data/bin/cmake)
  fi
  probe_options+=(-DHALOCLINE_CUDA=ON)
fi
if [[ " $* " == *' -DHALOCLINE_KOKKOS=OFF '* ]]; then
  say "no Kokkos: the library and the interposer alone"
elif site_has_kokkos "${probe_options[@]}"; then
  say "Kokkos: the site's own"
else
  build_kokkos
  say "Kokkos: .deps/$kokkos (4.7.00)"
fi
say "configuring and building preset '$preset' in build/$preset with $jobs jobs"
"$cmake" --preset "$preset" "${cuda_options[@]}" "$@"
read -ra targets <<<"${HALOCLINE_BUILD_TARGETS:-all}"
"$cmake" --build "build/$preset" -j "$jobs" --target "${targets[@]}"
