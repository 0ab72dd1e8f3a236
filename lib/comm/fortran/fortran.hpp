// SPDX-License-Identifier: BSD-3-Clause
// Holds the functions of libhalocline.so that halocline.F90 calls beside those of halocline.h. They
// take handles of Fortran, and arrays as descriptors. Programs that were compiled with an older
// module call them too, so their arguments never change.
#pragma once

#include <cstddef>
#include <cstdint>

#include "comm/c/halocline.h"

extern "C" {

/// Is the start of a Fortran descriptor. The standard fixes the first three members alone.
struct halocline_f_array {
  void* address;
  std::size_t element_bytes;
  int version;
};

/// Mirrors `halocline_buffer` of the module. `state` says why it cannot be used, if it cannot.
struct halocline_f_buffer {
  void* address;
  std::int64_t count;
  std::int64_t stride;  // bytes from one element to the next, if known; 0: unknown
  int datatype;
  int state;
  int rank;
  int dimension;  // the first one with a gap, counted from 1
};

/// Mirrors `halocline_message` of the module.
struct halocline_f_message {
  halocline_f_buffer buffer;
  int partner, tag, round;
};

enum : int { halocline_f_most_axes = 15 };

/// Mirrors `halocline_field` of the module.
struct halocline_f_field {
  halocline_f_buffer buffer;  // its datatype is that of an element
  halocline_f_buffer swapped;
  std::int64_t element_bytes;
  std::int64_t swapped_element_bytes;
  int has_swapped;
  int lows, highs;  // numbers in `low` and `high`
  std::int64_t extent[halocline_f_most_axes];
  std::int64_t swapped_extent[halocline_f_most_axes];
  std::int64_t low[halocline_f_most_axes], high[halocline_f_most_axes];
};

/// Looks at an array, of which Fortran says `rank`, `extent` and `is_contiguous`. Fills `out` but
/// for `count` and `datatype`. Returns the bytes of an element.
std::int64_t halocline_f_look(const halocline_f_array* array, int rank, const std::int64_t* extent,
                              int is_contiguous, halocline_f_buffer* out);

/// Allocates memory for an array, unless the pointer of a rank is associated already.
int halocline_f_alloc(int comm, int rank, std::int64_t element_bytes, int is_associated, int lowers,
                      const int* lower, int uppers, const int* upper, void** memory);
/// Creates a plan, unless `*plan` is one that was not freed, as do the other functions that create.
/// Negative `chunk_bytes`: the default. `model` may be NULL.
int halocline_f_plan_create(int comm, const char* method, int sends,
                            const halocline_f_message* send, int receives,
                            const halocline_f_message* receive, std::int64_t chunk_bytes,
                            const char* model, halocline_plan* plan);
int halocline_f_halo_create(int cart, const char* method, int fields,
                            const halocline_f_field* field, int most_axes, std::int64_t chunk_bytes,
                            const char* model, halocline_plan* plan);
int halocline_f_messages_create(int comm, halocline_messages* messages);
int halocline_f_send(halocline_messages messages, const halocline_f_message* message);
int halocline_f_recv(halocline_messages messages, const halocline_f_message* message,
                     halocline_status* status);
int halocline_f_isend(halocline_messages messages, const halocline_f_message* message,
                      halocline_request* request);
int halocline_f_irecv(halocline_messages messages, const halocline_f_message* message,
                      halocline_request* request);

/// Creates a gather (`kind` 0), scatter (1) or allgather (2). `numbers` is the length of `counts`;
/// negative: the blocks have `all->count` instances each.
int halocline_f_collective_create(int kind, int comm, const halocline_f_buffer* buffer,
                                  const halocline_f_buffer* all, int numbers,
                                  const std::int64_t* counts, int root,
                                  halocline_collective* collective);

int halocline_f_packed_bytes(const halocline_f_buffer* buffer, std::int64_t* bytes);
int halocline_f_pack(const halocline_f_buffer* buffer, const halocline_f_buffer* packed,
                     std::int64_t* position);
int halocline_f_unpack(const halocline_f_buffer* packed, std::int64_t* position,
                       const halocline_f_buffer* buffer);

/// Returns the text of halocline_last_error() with the names of Fortran, until the next call.
const char* halocline_f_last_error(void);
/// Prints the reason of the last error and ends the program. Fortran calls it where the caller gave
/// no `ierror`.
[[noreturn]] void halocline_f_stop(int code);
}
