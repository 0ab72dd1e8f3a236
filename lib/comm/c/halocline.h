/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges halos for programs in C, and for languages that call C. The manual's page is
 * lib/comm/c/README.md.
 *
 * Every function returns HALOCLINE_SUCCESS or a code of halocline_error. No function throws.
 * halocline_last_error() names the reason and the remedy. A function that makes something fails on
 * all ranks alike, unless the communicator itself is wrong. Other errors are those of the calling
 * rank. If MPI fails in a communicator that you give, that communicator's error handler decides.
 *
 * Call the functions between MPI_Init and MPI_Finalize. They may be called by any thread that may
 * call MPI. Two threads must not use one plan or one engine of messages at the same time, nor run
 * collectives of one communicator.
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

/** Returns the reason of the last error in this thread, and what to do. Ask after a call that has
 * failed: calls that succeed leave the text as it is. It is valid until the next error. */
const char* halocline_last_error(void);

/* ---- Memory ---- */

/** Allocates `bytes` bytes on each rank. Neighbours on a node can reach the memory, so that the
 * exchange `shared` needs no messages. It lies on huge pages where the system has them. Where the
 * ranks of a node cannot share memory, it is ordinary memory. The bytes are undefined. `bytes` may
 * differ between ranks. Free it with halocline_free(). Collective over `comm`.
 * \param comm communicator of the plans that will use the memory, or one with the same ranks
 * \param memory gets the address, a multiple of 4096 */
int halocline_alloc(MPI_Comm comm, int64_t bytes, void** memory);

/** Frees memory of halocline_alloc(), and sets `*memory` to NULL. Plans of the same ranks in the
 * same order, with messages or fields in the memory, keep it until they are freed. Collective over
 * the communicator of halocline_alloc(). */
int halocline_free(void** memory);

/* ---- Exchanges ---- */

/** Represents a plan. NULL is none. A handle that was freed is recognised and refused. */
typedef struct halocline_plan_handle* halocline_plan;

/** Describes one message: `count` instances of `datatype` at `buffer`. A message to a partner
 * matches the partner's receive from this rank with the same tag and round. Later versions have the
 * same members. */
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

/** Completes the exchange if no message is awaited any more, as halocline_finish() does. `*done`
 * gets 1 then, else 0. Methods of one collective call complete at the first call. With `shared`,
 * the call may wait for partners on the node. All ranks of the plan repeat it until `*done` is 1,
 * or call halocline_finish(). */
int halocline_test(halocline_plan plan, int* done);

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
#define HALOCLINE_PLAN_INFO \
  { sizeof(halocline_plan_info), NULL, NULL, 0, 0, 0, 0 }
/** Describes a plan in `*info`, initialised by HALOCLINE_PLAN_INFO. Local. */
int halocline_plan_inform(halocline_plan plan, halocline_plan_info* info);

/* ---- Halos of Cartesian communicators ---- */

/** Is the largest number of axes of a field. */
#define HALOCLINE_MAX_AXES 4

/** Describes an array of this rank with ghost points around its owned points. Axis i of the array
 * lies along dimension i of the Cartesian communicator. Initialise it with HALOCLINE_FIELD, since
 * later versions may have more members. */
typedef struct halocline_field {
  size_t size;          /**< sizeof(halocline_field) */
  void* buffer;         /**< first point in memory, a ghost if there are ghosts */
  void* swapped;        /**< array for every second step, see halocline_swap(); NULL: none */
  MPI_Datatype element; /**< type of a point */
  int order;            /**< MPI_ORDER_C: the last axis is contiguous; or MPI_ORDER_FORTRAN */
  int64_t owned[HALOCLINE_MAX_AXES]; /**< owned points along each axis, without ghosts */
  int64_t low[HALOCLINE_MAX_AXES];   /**< ghost points below the owned points; 0: none */
  int64_t high[HALOCLINE_MAX_AXES];  /**< ghost points above the owned points; 0: none */
} halocline_field;
#define HALOCLINE_FIELD                                                       \
  {                                                                           \
    sizeof(halocline_field), NULL, NULL, MPI_DOUBLE, MPI_ORDER_C, {0}, {0}, { \
      0                                                                       \
    }                                                                         \
  }

/** Creates a plan that fills the ghost points of fields from the neighbours in a Cartesian
 * communicator. The low ghosts get the highest owned points of the neighbour below. Ghosts at open
 * sides of the grid stay as they are. All ranks give the same number of fields, and the same widths
 * of ghosts, order, size of an element and presence of `swapped` for each. Owned points may differ
 * along an axis between ranks at different places on this axis. Collective over `cart`.
 * \param cart communicator with a Cartesian topology of 1 to HALOCLINE_MAX_AXES dimensions
 * \param method as in halocline_plan_create()
 * \param fields number of fields
 * \param field `fields` fields; they travel in one message per neighbour
 * \param most_axes largest number of axes along which a neighbour may lie. In 3-D, 1: 6 neighbours
 *   at faces; 2: 18, also at edges; 3 or more: 26, also at corners
 * \param options NULL: the defaults
 * \param plan gets the plan; NULL after an error */
int halocline_halo_create(MPI_Comm cart, const char* method, int fields,
                          const halocline_field* field, int most_axes,
                          const halocline_plan_options* options, halocline_plan* plan);

/** Makes the next halocline_start() exchange the other array of each field: `swapped` instead of
 * `buffer`, then `buffer` again. Fields without `swapped` stay. Fails during an exchange, if no
 * field has `swapped`, and for plans of halocline_plan_create(). Local; call it on all ranks alike.
 */
int halocline_swap(halocline_plan plan);

/* ---- Single messages ---- */

/** Represents an engine that sends and receives single messages. NULL is none. */
typedef struct halocline_messages_handle* halocline_messages;

/** Represents a message under way. NULL is none. */
typedef struct halocline_request_handle* halocline_request;

/** Creates an engine for messages between the ranks of `comm`, which is duplicated. Only its own
 * calls match its messages. Collective over `comm`. */
int halocline_messages_create(MPI_Comm comm, halocline_messages* messages);

/** Frees an engine, and sets `*messages` to NULL. Fails on all ranks if one of them has not called
 * halocline_wait() for all requests: the engine can be used on then. Collective. */
int halocline_messages_free(halocline_messages* messages);

/** Sends `count` instances of `datatype` at `buffer`. Returns when the buffer may be used again. */
int halocline_send(halocline_messages messages, const void* buffer, int64_t count,
                   MPI_Datatype datatype, int destination, int tag);

/** Describes a message that was received. */
typedef struct halocline_status {
  int source;
  int tag;
  int64_t bytes; /**< packed bytes that arrived */
} halocline_status;

/** Receives at most `count` instances of `datatype` at `buffer`.
 * \param source a rank or MPI_ANY_SOURCE
 * \param tag a tag or MPI_ANY_TAG
 * \param status gets what arrived; may be NULL. A message that is too long is an error. */
int halocline_recv(halocline_messages messages, void* buffer, int64_t count, MPI_Datatype datatype,
                   int source, int tag, halocline_status* status);

/** Starts to send. The buffer must not change before halocline_wait(). Every call for messages of
 * the engine makes progress for all of them, and nothing else does. */
int halocline_isend(halocline_messages messages, const void* buffer, int64_t count,
                    MPI_Datatype datatype, int destination, int tag, halocline_request* request);

/** Starts to receive. The buffer must not be used before halocline_wait(). */
int halocline_irecv(halocline_messages messages, void* buffer, int64_t count, MPI_Datatype datatype,
                    int source, int tag, halocline_request* request);

/** Waits until a message is complete, and sets `*request` to NULL, also after an error. `status`
 * may be NULL. For a send and for a request that is NULL, it gets source MPI_PROC_NULL and 0 bytes.
 */
int halocline_wait(halocline_request* request, halocline_status* status);

/* ---- Gathers ---- */

/** Represents a gather, scatter or allgather that is set up once and run often. NULL is none. */
typedef struct halocline_collective_handle* halocline_collective;

/** Creates a gather. Each rank contributes `count` instances of `datatype` at `buffer`. The root
 * gets the block of rank i as counts[i] instances of `root_datatype`, behind the blocks of the
 * ranks before it. Root arguments are ignored elsewhere. Buffers must live as long as the gather.
 * Both ends of a block have the same number of basic elements. Collective over `comm`, which is
 * duplicated once for all its collectives. It may be freed before them.
 * \param buffer MPI_IN_PLACE on the root: its block is in its place already
 * \param counts a number for each rank; NULL: `count`, as given on the root, for every rank */
int halocline_gather_create(MPI_Comm comm, const void* buffer, int64_t count, MPI_Datatype datatype,
                            void* root_buffer, const int64_t* counts, MPI_Datatype root_datatype,
                            int root, halocline_collective* gather);

/** Creates a scatter: the root sends the blocks of `root_buffer`, and each rank gets its block in
 * `buffer`. Arguments are those of halocline_gather_create(). Collective over `comm`. */
int halocline_scatter_create(MPI_Comm comm, void* buffer, int64_t count, MPI_Datatype datatype,
                             const void* root_buffer, const int64_t* counts,
                             MPI_Datatype root_datatype, int root, halocline_collective* scatter);

/** Creates an allgather: every rank gets the blocks of all ranks in `all_buffer`. Arguments are
 * those of halocline_gather_create(), with all ranks in the place of the root: any of them may give
 * MPI_IN_PLACE. Counts are the same on all ranks. Collective over `comm`. */
int halocline_allgather_create(MPI_Comm comm, const void* buffer, int64_t count,
                               MPI_Datatype datatype, void* all_buffer, const int64_t* counts,
                               MPI_Datatype all_datatype, halocline_collective* allgather);

/** Runs a collective with the present contents of its buffers. Returns when the buffers of this
 * rank may be used again. Collective; all ranks run those of one communicator in the same order. */
int halocline_run(halocline_collective collective);

/** Frees a collective, and sets `*collective` to NULL. Collective over its ranks. */
int halocline_collective_free(halocline_collective* collective);

/* ---- Packing ---- */

/** Returns in `*bytes` the bytes that `count` instances of `datatype` take when they are packed. */
int halocline_packed_bytes(int64_t count, MPI_Datatype datatype, int64_t* bytes);

/** Packs `count` instances of `datatype` at `buffer` behind `*position` of `packed`, which has
 * `bytes` bytes. Moves `*position` behind them. The bytes are those of MPI_Pack. Both buffers are
 * in memory that the host can address. The first call for a datatype makes its plan. Local. */
int halocline_pack(const void* buffer, int64_t count, MPI_Datatype datatype, void* packed,
                   int64_t bytes, int64_t* position);

/** Unpacks `count` instances of `datatype` to `buffer` from the bytes behind `*position` of
 * `packed`, which has `bytes` bytes. Moves `*position` behind them. Local. */
int halocline_unpack(const void* packed, int64_t bytes, int64_t* position, void* buffer,
                     int64_t count, MPI_Datatype datatype);

/** Describes what the library makes of a datatype: its bounds, its loops and the plan by which it
 * is packed. The text is a JSON object; results/inspect-json.md explains its members. Local.
 * \param text gets the description; NULL: `*needed` alone is set
 * \param bytes length of `text`
 * \param needed gets the bytes of the description with the NUL behind it */
int halocline_describe(MPI_Datatype datatype, char* text, int64_t bytes, int64_t* needed);

#ifdef __cplusplus
}
#endif
#endif
