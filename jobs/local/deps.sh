# shellcheck shell=bash
# Installs dependencies. Sourced, in the project's folder, by the local scripts that install
# something.
say() { printf '== %s\n' "$*"; }

# lock_deps NAME: takes a lock, since several scripts at once share .deps. exec 9>&- frees it.
lock_deps() {
  mkdir -p .deps 2>/dev/null || true
  [[ -w .deps ]] || { echo "${0##*/}: cannot write to $PWD (.deps): use a clone of your own" >&2; exit 3; }
  exec 9>".deps/$1"; flock 9
}

# install_packages NAME...: installs those of these Debian packages that are missing.
install_packages() {
  command -v dpkg-query >/dev/null || { say "not a Debian system: using what the system and CMAKE_PREFIX_PATH offer"; return; }
  local missing=() name
  for name in "$@"; do
    dpkg-query -W -f='${Status}\n' "$name" 2>/dev/null | grep -q 'ok installed' || missing+=("$name")
  done
  [[ ${#missing[@]} -gt 0 ]] || { say "Debian packages: all there"; return; }
  if [[ $(id -u) != 0 ]]; then
    # Modules may supply the same software. Otherwise CMake names what is missing.
    echo "${0##*/}: not installed (not root): ${missing[*]}; as root, run apt-get install with these names" >&2
    return
  fi
  say "installing from Debian: ${missing[*]}"
  lock_deps packages
  # An interrupted installation leaves packages with which apt-get refuses to go on.
  [[ -z $(dpkg --audit) ]] || DEBIAN_FRONTEND=noninteractive dpkg --configure -a >/dev/null
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
  exec 9>&-
}

# install_wheels FOLDER NAME...: installs the files of jobs/local/requirements/NAME.txt from PyPI
# into a virtual environment in FOLDER. Only files with the hashes in NAME.txt are accepted.
# .complete keeps the hash of each list that is installed.
install_wheels() {
  local folder=$1 name list sum; shift
  for name in "$@"; do
    list=jobs/local/requirements/$name.txt
    sum=$(sha256sum <"$list")
    ! grep -qxF -- "$sum" "$folder/.complete" 2>/dev/null || continue
    say "installing from PyPI into $folder: $(sed -n 's/^\([^ #]*==[^ ]*\).*/\1/p' "$list" | paste -sd' ')"
    [[ -e $folder/.complete ]] || { rm -rf "$folder"; python3 -m venv "$folder"; }
    # pip is started by its Python: pip's own script begins with a path, which may contain spaces.
    "$folder/bin/python3" -m pip install -q --disable-pip-version-check --require-hashes -r "$list" >&2 ||
      { echo "${0##*/}: not installed from PyPI: $list (see above)" >&2; exit 3; }
    echo "$sum" >>"$folder/.complete"
  done
}

# install_tools: installs tools of exactly one version. Otherwise machines would format and warn
# differently.
install_tools() {
  lock_deps lock
  install_wheels .deps/tools tools
  install_wheels .deps/reframe reframe
  install_wheels .deps/reports reports
  install_wheels .deps/vtk vtk
  install_wheels .deps/python python
  exec 9>&-
}

# install_for_tests: installs packages for tests: one compiles Fortran and asks pkg-config, another
# starts a Slurm of its own. The policy keeps the packages from starting their daemons.
install_for_tests() (
  policy=/usr/sbin/policy-rc.d
  if [[ $(id -u) == 0 && ! -e $policy ]]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"; chmod +x "$policy"
  fi
  # Two packages have a pkg-config. Only one of them can be installed.
  command -v pkg-config >/dev/null || install_packages pkgconf
  install_packages gfortran munge slurmctld slurmd slurm-client libsimgrid-dev \
    python3-sphinx python3-myst-parser python3-breathe doxygen furo python3-selenium chromium chromium-driver
)

# install_reports: installs the packages of results/*.py, unless a Python here has them.
install_reports() {
  [[ -e .deps/reports ]] || ! results/study.py --check 2>/dev/null || return 0
  lock_deps lock; install_wheels .deps/reports reports; exec 9>&-
}

# find_cuda: sets nvcc, toolkit (the folder with include/) and cuda_stubs. nvcc is that of $CUDACXX
# or $PATH if it has the headers, else that of PyPI in .deps/cuda. cuda_stubs is the folder of the
# libcuda.so for linking: the driver's own library is only on the machine with the device.
find_cuda() {
  local include='' folder
  nvcc=${CUDACXX:-$(command -v nvcc || true)}
  if [[ -n $nvcc ]]; then
    include=$({ "$nvcc" -E -x cu -include cuda.h /dev/null || true; } 2>/dev/null |
      sed -n 's|^# [0-9]* "\(.*\)/cuda\.h".*|\1|p' | sort -u)
    [[ -n $include ]] || { say "$nvcc does not find cuda.h: not using it"; nvcc=; }
  fi
  if [[ -n $nvcc ]]; then
    toolkit=$(cd "${include%%$'\n'*}/.." && pwd)
  else
    lock_deps lock
    install_wheels .deps/cuda cuda
    toolkit=$(echo "$PWD"/.deps/cuda/lib/python3*/site-packages/nvidia/cu13); nvcc=$toolkit/bin/nvcc
    ln -sfn lib "$toolkit/lib64"  # nvcc looks in lib64, CMake looks for libcudart.so
    ln -sfn libcudart.so.13 "$toolkit/lib/libcudart.so"
    if [[ ! -e $toolkit/lib/stubs/libcuda.so ]]; then
      # PyPI has no library to link with in place of the driver's. A library with the names of all
      # functions of cuda.h is enough. The header gives some functions a suffix, such as
      # cuMemFree_v2; CMake may look for the name without it.
      mkdir -p "$toolkit/lib/stubs"
      echo '#include <cuda.h>' | g++ -E -x c -I"$toolkit/include" - | sed -n 's/.*CUresult  *\(cu[A-Za-z0-9_]*\)(.*/\1/p' |
        sed 'p; s/_v[0-9]*$//' | sort -u | sed 's/.*/int &(void) { return 0; }/' |
        g++ -x c -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$toolkit/lib/stubs/libcuda.so" -
    fi
    exec 9>&-
  fi
  cuda_stubs=
  for folder in "$toolkit"/lib64/stubs "$toolkit"/lib/stubs "$toolkit/lib/$(g++ -print-multiarch)/stubs"; do
    [[ -n $cuda_stubs || ! -e $folder/libcuda.so ]] || cuda_stubs=$folder
  done
  say "CUDA: $("$nvcc" --version | sed -n 's/.*\(release [0-9.]*\).*/\1/p') of $nvcc"
}
