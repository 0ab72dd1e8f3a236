/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges halos for programs in C, and for languages that call C. The manual's page is
 * lib/comm/c/README.md.
 *
 * Every function returns HALOCLINE_SUCCESS or a code of halocline_error, and no function ends the
 * process or throws. halocline_last_error() then names the reason and the remedy. Calls that are
 * collective fail on all ranks alike.
 *
 * Call the functions between MPI_Init and MPI_Finalize. They may be called by any thread that may
 * call MPI. Two threads must not use one plan at the same time.
 */
#ifndef HALOCLINE_H
#define HALOCLINE_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Is the version of this header: 10000 major + 100 minor + patch. */
#define HALOCLINE_VERSION 100

/** Lists the codes that functions return. */
enum halocline_error {
  HALOCLINE_SUCCESS = 0,
  HALOCLINE_ERR_ARGUMENT = 2,    /**< an argument cannot be used: the program has to be changed */
  HALOCLINE_ERR_ENVIRONMENT = 3, /**< memory, MPI or a device failed */
  HALOCLINE_ERR_INTERNAL = 4     /**< a fault of the library */
};

/** Returns the version of the library that is loaded, as HALOCLINE_VERSION. */
int halocline_version(void);

/** Returns the reason of the last error in this thread, and what to do. The text is valid until
 * the next error in this thread. It is empty before the first error. */
const char* halocline_last_error(void);

/* ---- Memory ---- */

/** Allocates `bytes` bytes on each rank. Neighbours on a node can reach the memory, so that the
 * exchange `shared` needs no messages. It lies on huge pages where the system has them. Where the
 * ranks of a node cannot share memory, it is ordinary memory. The bytes are undefined. `bytes` may
 * differ between ranks. Free it with halocline_free(). Collective over `comm`.
 * \param comm communicator of the plans that will use the memory, or one with the same ranks
 * \param memory gets the address, a multiple of 4096 */
int halocline_alloc(MPI_Comm comm, int64_t bytes, void** memory);

/** Frees memory of halocline_alloc(), and sets `*memory` to NULL. Plans that use the memory keep it
 * until they are freed. Collective over the communicator of halocline_alloc(). */
int halocline_free(void** memory);

/* ---- Exchanges ---- */

/** Represents a plan. NULL is none. A handle that was freed is recognised and refused. */
typedef struct halocline_plan_handle* halocline_plan;

/** Describes one message: `count` instances of `datatype` at `buffer`. A message to a partner
 * matches the partner's receive from this rank with the same tag and round. */
typedef struct halocline_message {
  void* buffer; /**< MPI_BOTTOM is allowed; a send buffer is only read */
  int64_t count;
  MPI_Datatype datatype; /**< any type of MPI; it may be freed once the plan is made */
  int partner;           /**< a rank, also the own one; MPI_PROC_NULL: nothing is exchanged */
  int tag;               /**< different for all messages to or from one partner in a round */
  int round;             /**< 0, or more for messages that send what earlier rounds received */
} halocline_message;

/** Holds the options of a plan. Initialise it with HALOCLINE_PLAN_OPTIONS, since later versions
 * may have more members. */
typedef struct halocline_plan_options {
  size_t size;         /**< sizeof(halocline_plan_options) */
  int64_t chunk_bytes; /**< length of the pieces in which long messages travel; 0: whole */
  const char*
      model; /**< file that `halocline calibrate` wrote; "": the default place; NULL: none */
} halocline_plan_options;
#define HALOCLINE_PLAN_OPTIONS \
  { sizeof(halocline_plan_options), 1 << 20, NULL }

/** Creates a plan of an exchange. Buffers must live as long as the plan. Collective over `comm`,
 * which is duplicated.
 * \param method "auto", "shared", "p2p", "alltoallv" or another one of `halocline help methods`
 * \param sends number of messages that this rank sends
 * \param send `sends` messages
 * \param receives number of messages that this rank receives
 * \param receive `receives` messages
 * \param options NULL: the defaults
 * \param plan gets the plan; NULL after an error */
int halocline_plan_create(MPI_Comm comm, const char* method, int sends,
                          const halocline_message* send, int receives,
                          const halocline_message* receive, const halocline_plan_options* options,
                          halocline_plan* plan);

/** Starts an exchange. Until halocline_finish() returns, send buffers must not be written, and
 * receive buffers neither read nor written. Collective over the ranks of the plan. */
int halocline_start(halocline_plan plan);

/** Lets MPI and the plan do what they can do without waiting, between halocline_start() and
 * halocline_finish(). Local. */
int halocline_progress(halocline_plan plan);

/** Completes the exchange: receive buffers are filled, and send buffers may be written. Collective
 * over the ranks of the plan. */
int halocline_finish(halocline_plan plan);

/** Frees a plan, and sets `*plan` to NULL. Completes an exchange that was started. Collective over
 * the ranks of the plan. */
int halocline_plan_free(halocline_plan* plan);

/** Describes a plan. */
typedef struct halocline_plan_info {
  size_t size;              /**< sizeof(halocline_plan_info), set by the caller */
  const char* method;       /**< exchange in use, also where "auto" was asked for */
  const char* transfer;     /**< how packed bytes travel: "host", "device", ... */
  double predicted_seconds; /**< time of an exchange by the model; NaN without one */
  int64_t bytes_to_others;  /**< bytes that this rank sends to other ranks */
  int64_t bytes_to_self;    /**< bytes that it copies to itself */
  int64_t messages;         /**< messages to other ranks */
} halocline_plan_info;
/** Describes a plan in `*info`, whose `size` must be set. Local. */
int halocline_plan_inform(halocline_plan plan, halocline_plan_info* info);

/* ---- Packing ---- */

/** Returns in `*bytes` the bytes that `count` instances of `datatype` take when they are packed. */
int halocline_packed_bytes(int64_t count, MPI_Datatype datatype, int64_t* bytes);

/** Packs `count` instances of `datatype` at `buffer` behind `*position` of `packed`, which has
 * `bytes` bytes. Moves `*position` behind them. The bytes are those of MPI_Pack. The first call
 * for a datatype makes its plan. Local. */
int halocline_pack(const void* buffer, int64_t count, MPI_Datatype datatype, void* packed,
                   int64_t bytes, int64_t* position);

/** Unpacks `count` instances of `datatype` to `buffer` from the bytes behind `*position` of
 * `packed`, which has `bytes` bytes. Moves `*position` behind them. Local. */
int halocline_unpack(const void* packed, int64_t bytes, int64_t* position, void* buffer,
                     int64_t count, MPI_Datatype datatype);

#ifdef __cplusplus
}
#endif
#endif
