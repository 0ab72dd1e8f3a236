#!/usr/bin/env bash
# Installs what a preset needs, configures and builds it in build/PRESET.
#   jobs/local/build.sh PRESET [CMAKE-ARGUMENT...]     PRESET: release | debug | asan | release-cuda
# On Debian, as root, missing packages come from Debian's registry. Kokkos >= 4.7 is the site's own if CMake
# finds it; otherwise 4.7.00 is built once into .deps/kokkos from the copy that the PyPI source package
# pygenten 0.1.5 (Sandia) carries. release-cuda needs nvcc: that of $CUDACXX or $PATH, else 13.0 from PyPI, in .deps/cuda with a
# CMake that knows it; Kokkos for Hopper goes to .deps/kokkos-cuda. Its programs start only where a CUDA driver is.
# Safe to call again: what is there already is left alone.
set -euo pipefail
cd "$(dirname "$0")/../.."

[[ $# -ge 1 ]] || { sed -n '2,8p' "$0"; exit 2; }
preset=$1; shift
case $preset in
  release|debug|asan) kokkos=kokkos ;;
  release-cuda) kokkos=kokkos-cuda ;;
  *) echo "build.sh: unknown preset '$preset': use release, debug, asan or release-cuda" >&2; exit 2 ;;
esac
cmake=cmake cuda_options=()
say() { printf '== %s\n' "$*"; }
jobs=${HALOCLINE_BUILD_JOBS:-$(nproc)}

install_packages() {
  command -v dpkg-query >/dev/null || { say "not a Debian system: using what the system and CMAKE_PREFIX_PATH offer"; return; }
  local want=(g++ cmake ninja-build git ca-certificates python3 python3-venv libopenmpi-dev openmpi-bin
              libcli11-dev nlohmann-json3-dev libbenchmark-dev libgtest-dev)
  local missing=() name
  for name in "${want[@]}"; do
    dpkg-query -W -f='${Status}\n' "$name" 2>/dev/null | grep -q 'ok installed' || missing+=("$name")
  done
  [[ ${#missing[@]} -gt 0 ]] || { say "Debian packages: all there"; return; }
  if [[ $(id -u) != 0 ]]; then
    # Modules may supply what Debian's packages do not; otherwise CMake will name what it misses.
    echo "build.sh: not installed (not root): ${missing[*]}; as root, run apt-get install with these names" >&2
    return
  fi
  say "installing from Debian: ${missing[*]}"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# Puts nvcc and a CMake that knows it into place, and says so to CMake.
install_cuda() {
  local venv=$PWD/.deps/cuda toolkit nvcc=${CUDACXX:-$(command -v nvcc || true)} wheels=()
  local version; version=$(cmake --version 2>/dev/null | sed -n 's/^cmake version //p')
  [[ $(printf '%s\n' 3.31 "${version:-0}" | sort -V | head -n1) == 3.31 ]] || wheels+=(cmake==3.31.10)
  [[ -n $nvcc ]] || wheels+=(nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88
                             nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85)
  if [[ ${#wheels[@]} -gt 0 && $(cat "$venv/.complete" 2>/dev/null) != "${wheels[*]}" ]]; then
    say "installing from PyPI into .deps/cuda: ${wheels[*]}"
    rm -rf "$venv"; python3 -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check "${wheels[@]}"
    echo "${wheels[*]}" >"$venv/.complete"
  fi
  [[ ! -x $venv/bin/cmake ]] || cmake=$venv/bin/cmake
  if [[ -z $nvcc ]]; then
    toolkit=$(echo "$venv"/lib/python3*/site-packages/nvidia/cu13); nvcc=$toolkit/bin/nvcc
    ln -sfn lib "$toolkit/lib64"  # where nvcc looks, and the name that CMake looks for
    ln -sfn libcudart.so.13 "$toolkit/lib/libcudart.so"
    # The driver comes with the machine that has the device; to link, its name and what Kokkos calls are enough.
    mkdir -p "$venv/stubs"
    printf 'int %s(void) { return 0; }\n' cuCtxGetDevice cuCtxPushCurrent_v2 cuStreamGetCtx |
      g++ -x c -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$venv/stubs/libcuda.so" -
    cuda_options=(-DCUDAToolkit_ROOT="$toolkit" -DCUDA_cuda_driver_LIBRARY="$venv/stubs/libcuda.so")
  fi
  cuda_options+=(-DCMAKE_CUDA_COMPILER="$nvcc")
  say "CUDA: $("$nvcc" --version | sed -n 's/.*\(release [0-9.]*\).*/\1/p') of $nvcc"
}

# The same search as the project's own, so that both always agree on which Kokkos is used.
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
  mkdir -p .deps && [[ -w .deps ]] || { echo "build.sh: cannot write to $PWD (.deps): use a clone of your own" >&2; exit 3; }
  exec 9>.deps/lock; flock 9   # two presets built at once share one Kokkos
  if [[ ! -e $prefix/.complete ]]; then
    local work=$PWD/.deps/kokkos-work
    rm -rf "$work" "$prefix"; mkdir -p "$work"
    say "no Kokkos >= 4.7 found: getting 4.7.00 from the PyPI source package pygenten 0.1.5"
    python3 -m venv "$work/venv"
    printf 'pygenten==0.1.5 --hash=sha256:e620f05c742905e2db705d875f1cac92ef0ed453f9e6734e9beda26cc0f9cce7\n' >"$work/requirements.txt"
    "$work/venv/bin/pip" download -q --disable-pip-version-check --no-deps --no-binary pygenten --require-hashes \
      -r "$work/requirements.txt" -d "$work" >"$work/pip.log" 2>&1 || { cat "$work/pip.log" >&2; exit 3; }
    tar -xzf "$work"/pygenten-0.1.5.tar.gz -C "$work"
    if [[ $kokkos == kokkos-cuda ]]; then
      spaces+=", CUDA for Hopper"
      # Memory of cudaMallocAsync is not for GPU-aware MPI and CUDA IPC.
      options=("${cuda_options[@]}" -DKokkos_ENABLE_CUDA=ON -DKokkos_ENABLE_COMPILE_AS_CMAKE_LANGUAGE=ON -DKokkos_ARCH_HOPPER90=ON
               -DKokkos_ENABLE_IMPL_CUDA_MALLOC_ASYNC=OFF -DCMAKE_CUDA_ARCHITECTURES=90
               -DCMAKE_CUDA_FLAGS="-include $PWD/lib/cmake/kokkos_4.7.00_cuda_13.hpp")
    fi
    say "building Kokkos 4.7.00 ($spaces) into .deps/$kokkos"
    { "$cmake" -S "$work"/pygenten-0.1.5/tpls/kokkos -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_CXX_STANDARD=20 -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DKokkos_ENABLE_SERIAL=ON -DKokkos_ENABLE_OPENMP=ON \
        -DKokkos_ENABLE_TESTS=OFF -DKokkos_ENABLE_EXAMPLES=OFF -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_INSTALL_PREFIX="$prefix" \
        "${options[@]}" &&
      "$cmake" --build "$work/build" -j "$jobs" && "$cmake" --install "$work/build"; } >"$work/build.log" 2>&1 ||
      { tail -n 40 "$work/build.log" >&2; echo "build.sh: Kokkos did not build (see above and $work/build.log)" >&2; exit 3; }
    touch "$prefix/.complete"; rm -rf "$work"
  fi
  exec 9>&-
}

install_packages
probe_options=("$@")
if [[ $preset == release-cuda ]]; then
  install_cuda
  probe_options+=(-DHALOCLINE_CUDA=ON)
fi
if site_has_kokkos "${probe_options[@]}"; then
  say "Kokkos: the site's own"
else
  build_kokkos
  say "Kokkos: .deps/$kokkos (4.7.00)"
fi
say "configuring and building preset '$preset' in build/$preset with $jobs jobs"
"$cmake" --preset "$preset" "${cuda_options[@]}" "$@"
"$cmake" --build "build/$preset" -j "$jobs"
