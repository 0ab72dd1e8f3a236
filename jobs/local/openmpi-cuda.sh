#!/usr/bin/env bash
# Builds an Open MPI 5.0.7 that takes device memory (CUDA-aware) into .deps/openmpi-cuda, in about
# ten minutes on two cores.
#   jobs/local/openmpi-cuda.sh
# The source is that of Debian 13, as its authors released it. apt loads it from the mirror of this
# system's own source list. apt's files about it are private to the build; the system's own files
# stay as they are.
#
# All libraries that Open MPI needs are built in, except zlib. Programs open libcuda when they run,
# if it is installed. CUDA's headers are those of $CUDACXX or of the nvcc in $PATH, else from PyPI,
# as in build.sh release-cuda. On Debian, as root, missing packages come from Debian's registry.
#
# The prefix may be moved. Programs built with Debian's Open MPI 4.1 run under it unchanged, with
# these settings:
#   prefix=$PWD/.deps/openmpi-cuda; export OPAL_PREFIX=$prefix PATH=$prefix/bin:$PATH LD_LIBRARY_PATH=$prefix/lib
# May be called again: things that are already built stay.
set -euo pipefail
# shellcheck source=jobs/local/script.sh
source "$(dirname "$0")/script.sh"
cd "$(dirname "$0")/../.."
source jobs/local/deps.sh
[[ $# -eq 0 ]] || wrong_use "it takes no argument, not $*"
fail() { echo "openmpi-cuda.sh: $*" >&2; exit 3; }
prefix=$PWD/.deps/openmpi-cuda work=$PWD/.deps/openmpi-cuda-work
archive=openmpi_5.0.7.orig.tar.xz archive_sha256=97f10c04e9b9a1771db3fd005009e4c07afa3ce739f940e41eb0fc7397cb9473
options=(
  --with-{hwloc,libevent,pmix,prrte}"=internal"
  --disable-mpi-fortran --disable-oshmem --disable-io-romio --disable-sphinx
  --without-{ucx,ofi,ucc,psm2,portals4,libnl,munge} "--enable-mca-no-build=reachable-netlink,prtereachable-netlink"
  --disable-{io,libxml2,libudev,plugins,cairo}  # options of hwloc
  "--with-show-load-errors=^accelerator,rcache"  # these need libcuda: no complaint on machines without it
)
recipe="$archive_sha256 ${options[*]}"
complete() { [[ $(cat "$prefix/.complete" 2>/dev/null) == "$recipe" ]]; }

# Loads Debian's archive into $work, from the first mirror that has the release. It must be signed
# by the keys that this system has.
get_source() {
  command -v apt-get >/dev/null || fail "the source comes from Debian by apt-get, which this system does not have"
  local mirror codename; codename=$(. /etc/os-release; echo "${VERSION_CODENAME:-}")
  mkdir -p "$work"/apt/{parts,lists/partial,cache/archives/partial}
  cat >"$work/apt.conf" <<END
Dir::Etc::SourceList "$work/apt/sources.list";
Dir::Etc::SourceParts "$work/apt/parts";
Dir::State "$work/apt";
Dir::State::Lists "$work/apt/lists";
Dir::Cache "$work/apt/cache";
APT::Sandbox::User "root";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
END
  : >"$work/apt.log"
  for mirror in $(apt-get --print-uris update 2>/dev/null | sed -n "s|^'\(.*\)/dists/$codename/InRelease'.*|\1|p"); do
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" >"$work/apt/sources.list"
    if (cd "$work" && apt-get -q -c apt.conf update -o APT::Update::Error-Mode=any &&
          apt-get -q -c apt.conf --download-only source openmpi) >>"$work/apt.log" 2>&1; then
      break
    fi
  done
  [[ -e $work/$archive ]] || { tail -n 40 "$work/apt.log" >&2; fail "no mirror of this system's source list has $archive"; }
  echo "$archive_sha256  $work/$archive" | sha256sum --check --quiet >&2 || fail "$archive is not the one that is known here"
}

if ! complete; then
  install_packages g++ make perl xz-utils zlib1g-dev ca-certificates python3 python3-venv
  find_cuda
  [[ -n $cuda_stubs ]] || fail "no libcuda.so to link with under $toolkit (lib64/stubs)"
  lock_deps lock-openmpi-cuda
fi
if ! complete; then
  rm -rf "$work" "$prefix"; mkdir -p "$work"
  say "getting Open MPI 5.0.7 from Debian"
  get_source
  tar -xJf "$work/$archive" --no-same-owner -C "$work"
  mkdir "$work/build"
  say "building it into .deps/openmpi-cuda"
  # Installs below $work first. Only the files that programs, mpirun and mpicc need go to the
  # prefix.
  (cd "$work/build" &&
     ../openmpi-5.0.7/configure --prefix="$prefix" --with-cuda="$toolkit" --with-cuda-libdir="$cuda_stubs" "${options[@]}" \
       --disable-static --disable-dependency-tracking &&
     grep '#define OPAL_CUDA_SUPPORT 1' opal/include/opal_config.h &&
     make -j "${HALOCLINE_BUILD_JOBS:-$(cores)}" && make install DESTDIR="$work/root") >"$work/build.log" 2>&1 ||
    { tail -n 40 "$work/build.log" >&2; fail "Open MPI did not build, or without CUDA (see above and $work/build.log)"; }
  mkdir "$prefix"
  (cd "$work/root$prefix" &&
     cp -a --parents bin/{mpirun,mpiexec,prte,prterun,prted,ompi_info,mpicc,mpicxx,mpic++,opal_wrapper} \
       etc share/{openmpi,pmix,prte} include/{mpi,mpi-ext,mpi_portable_platform}.h include/openmpi \
       lib/lib{mpi,open-pal,pmix,prrte,hwloc}.so* lib/libevent_{core,pthreads}*.so* lib/{openmpi,pmix}/*.so "$prefix")
  find "$prefix"/{bin,lib} -type f -exec strip --strip-unneeded {} +
  info=$(OPAL_PREFIX=$prefix LD_LIBRARY_PATH=$prefix/lib "$prefix/bin/ompi_info" --parsable --all)
  [[ $info == *:mpi_built_with_cuda_support:value:true* ]] ||
    fail "the Open MPI that was built does not know CUDA (see $work/build.log)"
  echo "$recipe" >"$prefix/.complete"; rm -rf "$work"
fi
say "Open MPI 5.0.7 with CUDA: .deps/openmpi-cuda ($(du -sh "$prefix" | cut -f1))"
