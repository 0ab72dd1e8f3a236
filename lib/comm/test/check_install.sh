#!/usr/bin/env bash
# Installs a build into a prefix of its own, builds the example against it as a user would, and runs it.
#   check_install.sh CMAKE GENERATOR BUILD_DIR SOURCE_DIR WORK_DIR MPIEXEC
# The examples run on one to four ranks, in C++, C, Fortran and Python. Without pkg-config, without mpi_f08 for this compiler, or
# without .deps/python, it leaves languages out and says so. With $CI, Debian's Open MPI must have C and Fortran.
set -euo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/../../../jobs/local/script.sh"
cmake=$1 generator=$2 build=$3 source=$4 work=$5 mpiexec=$6
# not_run TEXT: says what is left out, and why.
not_run() {
  [[ -z ${CI:-} || $(dpkg-query -S "$(realpath "$(command -v "$mpiexec")")" 2>/dev/null) != openmpi-bin:* ]] ||
    { echo "${0##*/}: not run in CI, where all must run: $*; jobs/local/test.sh installs what is missing" >&2; exit 1; }
  echo "not run: $*"
}
rm -rf "$work"; mkdir -p "$work"
"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log"
# The installed package must not need the source tree, so the example is built from a copy elsewhere.
share=$work/prefix/share
cp -r "$share/halocline/examples" "$work/example"
cmp "$source/lib/examples/own_array.cpp" "$work/example/own_array.cpp"
[[ -s $share/halocline/configs/quickstart.toml && -s $share/man/man1/halocline.1 && -s $share/doc/Halocline/LICENSE ]]
completed=$(bash -c 'source "$1"; COMP_WORDS=(halocline run --rad); COMP_CWORD=2; _halocline; echo "${COMPREPLY[*]}"' bash \
  "$share/bash-completion/completions/halocline")
[[ $completed == --radius ]]
"$cmake" -G "$generator" -S "$work/example" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release
"$cmake" --build "$work/build"
"$mpiexec" -n 1 "$work/prefix/bin/halocline" --version
for ranks in 1 2 3 4; do for name in own_array jacobi jacobi_shared overlap from_cart gather pack_only; do "$mpiexec" -n "$ranks" "$work/build/$name"; done; done
# Builds the example by pkg-config.
if command -v pkg-config >/dev/null && command -v mpicxx >/dev/null; then
  pc=$(dirname "$(find "$work/prefix" -name halocline.pc)")
  read -ra flags < <(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs halocline)
  mpicxx "$work/example/own_array.cpp" "${flags[@]}" -o "$work/own_array"
  "$mpiexec" -n 2 "$work/own_array"
  read -ra flags < <(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs halocline-c)
  mpicc -std=c99 -O2 "$work/example/jacobi.c" "${flags[@]}" -o "$work/jacobi_c"
  for ranks in 1 2 3 4; do "$mpiexec" -n "$ranks" "$work/jacobi_c" 16 5; done
  # Builds the example in Fortran, if the same MPI has a compiler and modules for it.
  mpif90=$(dirname "$(command -v mpicc)")/mpif90
  printf 'use mpi_f08\nend\n' >"$work/check.f90"
  if [[ ! -x $mpif90 ]]; then
    not_run "jacobi.f90, since this MPI has no mpif90"
  elif ! (cd "$work" && "$mpif90" check.f90 -o check) 2>"$work/check.log"; then
    not_run "jacobi.f90, since mpif90 cannot use mpi_f08: $(grep -m 1 Error "$work/check.log" || tail -n 1 "$work/check.log")"
  else
    module=$(PKG_CONFIG_PATH=$pc pkg-config --variable=fortran halocline-c)
    (cd "$work" && "$mpif90" -O2 "$module" example/jacobi.f90 "${flags[@]}" -o jacobi_f)
    for ranks in 1 2 3 4; do "$mpiexec" -n "$ranks" "$work/jacobi_f" 16 5; done
  fi
else
  not_run "jacobi.c and jacobi.f90, since there is no pkg-config or no mpicxx"
fi
python=$source/.deps/python/bin/python3
if [[ ! -x $python ]]; then
  echo "not run: jacobi.py, since there is no .deps/python: jobs/local/test.sh installs it"
else
  cp -r "$source/lib/comm/python" "$work/python"  # pip writes beside what it installs
  HALOCLINE_PREFIX=$work/prefix "$python" -m pip install -q --disable-pip-version-check --no-deps --no-index --no-build-isolation \
    --target "$work/package" "$work/python"
  for ranks in 1 2 3 4; do PYTHONPATH=$work/package PYTHONDONTWRITEBYTECODE=1 "$mpiexec" -n "$ranks" "$python" "$work/example/jacobi.py" 16 5; done
fi
# Builds the interposer's examples: in C with the library in front of MPI, in Fortran as a program that knows nothing of it.
cat >"$work/example/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.22)
project(interposed LANGUAGES C CXX)
find_package(Halocline REQUIRED)
add_executable(pack_halo pack_halo.c)
target_link_options(pack_halo PRIVATE LINKER:--no-as-needed)
target_link_libraries(pack_halo PRIVATE halocline::mpi MPI::MPI_CXX)
END
"$cmake" -G "$generator" -S "$work/example" -B "$work/mpi" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release
"$cmake" --build "$work/mpi"
for ranks in 1 2 3 4; do "$mpiexec" -n "$ranks" "$work/mpi/pack_halo"; done
HALOCLINE_MPI_LOG=summary "$mpiexec" -n 2 "$work/mpi/pack_halo" 2>&1 | grep 'halocline\[0\]: types committed'
mpif90=$(dirname "$(command -v mpicc || echo /)")/mpif90
printf 'use mpi\nend\n' >"$work/check.f90"
if [[ -x $mpif90 ]] && (cd "$work" && "$mpif90" check.f90 -o check) 2>"$work/check.log"; then
  (cd "$work" && "$mpif90" -O2 example/pack_halo.f90 -o pack_halo_f)
  library=$(find "$work/prefix" -name libhalocline_mpi.so)
  for ranks in 1 2 3 4; do
    "$mpiexec" -n "$ranks" env LD_PRELOAD="$library" HALOCLINE_MPI=engine HALOCLINE_MPI_LOG=summary "$work/pack_halo_f" 2>&1 | tee "$work/log"
    grep -q 'halocline\[0\]: types committed: 4' "$work/log"
  done
else
  echo "not run: pack_halo.f90, since this MPI has no mpif90 that can use its module mpi"
fi
rm -rf "$work"
