// SPDX-License-Identifier: BSD-3-Clause
// Hides memory that MPI keeps until the process ends from the leak sanitizer; handles that we never
// free are still reported. Linked into all sanitized programs. Suppressions could do the same only
// with the slow unwinder, by which every allocation walks through MPI's frames. Programs would take
// up to ten times as long. ASAN_OPTIONS=fast_unwind_on_malloc=0 shows who called MPI for a leaked
// handle.
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <sanitizer/lsan_interface.h>

#include <memory>

namespace {

// True if this thread works for MPI alone.
thread_local bool in_mpi = false;

class InMpi {
 public:
  InMpi() {
    __lsan_disable();
    in_mpi = true;
  }
  ~InMpi() {
    in_mpi = false;
    __lsan_enable();
  }
  InMpi(const InMpi&) = delete;
  InMpi& operator=(const InMpi&) = delete;
};

struct Start {
  void* (*routine)(void*);
  void* argument;
};

void* run_in_mpi(void* start) {
  const InMpi scope;
  const std::unique_ptr<Start> mine(static_cast<Start*>(start));
  return mine->routine(mine->argument);
}

// Calls a function of MPI's library for Fortran, which not all programs have.
void in_fortran(const char* name, MPI_Fint* error) {
  const InMpi scope;
  reinterpret_cast<void (*)(MPI_Fint*)>(dlsym(RTLD_NEXT, name))(error);
}

}  // namespace

extern "C" {

// Turns off the search of thread-local memory (use_tls=0). The sanitizer reads the bounds of that
// memory in libraries that MPI loads at run time. It finds the bounds where some versions of the C
// library keep them. With other versions the bounds are arbitrary, and one process in hundreds
// reads an invalid address ("Tracer caught signal 11"). We keep nothing in thread-local memory
// alone. Libraries that do are suppressed below.
const char* __lsan_default_options() {
  return "use_tls=0:print_suppressions=0";
}

const char* __lsan_default_suppressions() {
  return "leak:libgomp.so\nleak:ld-linux";
}

int MPI_Init(int* argc, char*** argv) {
  const InMpi scope;
  return PMPI_Init(argc, argv);
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const InMpi scope;
  return PMPI_Init_thread(argc, argv, required, provided);
}

int MPI_Finalize() {
  const InMpi scope;
  return PMPI_Finalize();
}

// Programs in Fortran call these. In Open MPI they do not call the functions above.
void mpi_init_(MPI_Fint* error) {
  in_fortran("mpi_init_", error);
}

void mpi_finalize_(MPI_Fint* error) {
  in_fortran("mpi_finalize_", error);
}

void mpi_init_f08_(MPI_Fint* error) {
  in_fortran("mpi_init_f08_", error);
}

void mpi_finalize_f08_(MPI_Fint* error) {
  in_fortran("mpi_finalize_f08_", error);
}

// Open MPI 4.1 keeps a string that it allocates here.
int MPI_Intercomm_create(MPI_Comm local, int local_leader, MPI_Comm peer, int remote_leader,
                         int tag, MPI_Comm* out) {
  const InMpi scope;
  return PMPI_Intercomm_create(local, local_leader, peer, remote_leader, tag, out);
}

// Open MPI 4.1 loses 4 bytes at each collective write of several ranks.
int MPI_File_write_all(MPI_File file, const void* buffer, int count, MPI_Datatype type,
                       MPI_Status* status) {
  const InMpi scope;
  return PMPI_File_write_all(file, buffer, count, type, status);
}

// Marks threads that MPI starts, such as Open MPI's for events.
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*),
                   void* argument) noexcept {
  static const auto next =
      reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  if (!in_mpi) return next(thread, attributes, routine, argument);
  return next(thread, attributes, run_in_mpi, new Start{routine, argument});
}
}
