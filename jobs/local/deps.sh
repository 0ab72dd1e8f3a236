# shellcheck shell=bash
# Sourced by the local scripts that install something, in the project's folder.
say() { printf '== %s\n' "$*"; }

# lock_deps NAME: two scripts at once share what is in .deps; exec 9>&- lets the other one go on.
lock_deps() {
  mkdir -p .deps 2>/dev/null || true
  [[ -w .deps ]] || { echo "${0##*/}: cannot write to $PWD (.deps): use a clone of your own" >&2; exit 3; }
  exec 9>".deps/$1"; flock 9
}

# install_packages NAME...: what is missing of these Debian packages.
install_packages() {
  command -v dpkg-query >/dev/null || { say "not a Debian system: using what the system and CMAKE_PREFIX_PATH offer"; return; }
  local missing=() name
  for name in "$@"; do
    dpkg-query -W -f='${Status}\n' "$name" 2>/dev/null | grep -q 'ok installed' || missing+=("$name")
  done
  [[ ${#missing[@]} -gt 0 ]] || { say "Debian packages: all there"; return; }
  if [[ $(id -u) != 0 ]]; then
    # Modules may supply what Debian's packages do not; otherwise CMake will name what it misses.
    echo "${0##*/}: not installed (not root): ${missing[*]}; as root, run apt-get install with these names" >&2
    return
  fi
  say "installing from Debian: ${missing[*]}"
  # What was cut off in the midst of an installation leaves packages that apt-get refuses to go on from.
  [[ -z $(dpkg --audit) ]] || DEBIAN_FRONTEND=noninteractive dpkg --configure -a >/dev/null
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# install_wheels FOLDER NAME...: what jobs/local/requirements/NAME.txt lists, from PyPI, into a virtual environment in FOLDER. Each
# file is one whose hash stands there. .complete keeps the hash of each list that is installed.
install_wheels() {
  local folder=$1 name list sum; shift
  for name in "$@"; do
    list=jobs/local/requirements/$name.txt
    sum=$(sha256sum <"$list")
    ! grep -qxF -- "$sum" "$folder/.complete" 2>/dev/null || continue
    say "installing from PyPI into $folder: $(sed -n 's/^\([^ #]*==[^ ]*\).*/\1/p' "$list" | paste -sd' ')"
    [[ -e $folder/.complete ]] || { rm -rf "$folder"; python3 -m venv "$folder"; }
    # By its Python: pip's own script begins with a path, which may have spaces and more in it.
    "$folder/bin/python3" -m pip install -q --disable-pip-version-check --require-hashes -r "$list" >&2 ||
      { echo "${0##*/}: not installed from PyPI: $list (see above)" >&2; exit 3; }
    echo "$sum" >>"$folder/.complete"
  done
}

# find_cuda: nvcc of $CUDACXX or $PATH if it has the headers, else that of PyPI, in .deps/cuda. Sets nvcc, toolkit (the folder with
# include/) and cuda_stubs (that of the libcuda.so to link with: the driver's own comes with the machine that has the device).
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
    ln -sfn lib "$toolkit/lib64"  # where nvcc looks, and the name that CMake looks for
    ln -sfn libcudart.so.13 "$toolkit/lib/libcudart.so"
    if [[ ! -e $toolkit/lib/stubs/libcuda.so ]]; then
      # PyPI has no library to link with in place of the driver's: one with the names of all functions of cuda.h will do. It
      # calls some cuMemFree_v2 and the like; those who look for the library may look for cuMemFree.
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
