/* SPDX-License-Identifier: BSD-3-Clause */
/* Holds what test_older.c needs of halocline.h as it was at version 0.1. Never change it: programs
 * that were compiled with that header run with later libraries. The guard is the header's own, so
 * that halocline.h cannot be included, too. */
#ifndef HALOCLINE_H
#define HALOCLINE_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#define HALOCLINE_VERSION 100

enum halocline_error {
  HALOCLINE_SUCCESS = 0,
  HALOCLINE_ERR_ARGUMENT = 2,
  HALOCLINE_ERR_ENVIRONMENT = 3,
  HALOCLINE_ERR_INTERNAL = 4
};

int halocline_version(void);
const char* halocline_last_error(void);

typedef struct halocline_plan_handle* halocline_plan;

typedef struct halocline_message {
  void* buffer;
  int64_t count;
  MPI_Datatype datatype;
  int partner;
  int tag;
  int round;
} halocline_message;

typedef struct halocline_plan_options {
  size_t size;
  int64_t chunk_bytes;
  const char* model;
} halocline_plan_options;
#define HALOCLINE_PLAN_OPTIONS \
  { sizeof(halocline_plan_options), 1 << 20, NULL }

int halocline_plan_create(MPI_Comm comm, const char* method, int sends,
                          const halocline_message* send, int receives,
                          const halocline_message* receive, const halocline_plan_options* options,
                          halocline_plan* plan);
int halocline_start(halocline_plan plan);
int halocline_finish(halocline_plan plan);
int halocline_plan_free(halocline_plan* plan);

typedef struct halocline_plan_info {
  size_t size;
  const char* method;
  const char* transfer;
  double predicted_seconds;
  int64_t bytes_to_others;
  int64_t bytes_to_self;
  int64_t messages;
} halocline_plan_info;
#define HALOCLINE_PLAN_INFO \
  { sizeof(halocline_plan_info), NULL, NULL, 0, 0, 0, 0 }
int halocline_plan_inform(halocline_plan plan, halocline_plan_info* info);

#define HALOCLINE_MAX_AXES 4

typedef struct halocline_field {
  size_t size;
  void* buffer;
  void* swapped;
  MPI_Datatype element;
  int order;
  int64_t owned[HALOCLINE_MAX_AXES];
  int64_t low[HALOCLINE_MAX_AXES];
  int64_t high[HALOCLINE_MAX_AXES];
} halocline_field;
#define HALOCLINE_FIELD                                                       \
  {                                                                           \
    sizeof(halocline_field), NULL, NULL, MPI_DOUBLE, MPI_ORDER_C, {0}, {0}, { \
      0                                                                       \
    }                                                                         \
  }

int halocline_halo_create(MPI_Comm cart, const char* method, int fields,
                          const halocline_field* field, int most_axes,
                          const halocline_plan_options* options, halocline_plan* plan);
int halocline_swap(halocline_plan plan);

typedef struct halocline_messages_handle* halocline_messages;
typedef struct halocline_request_handle* halocline_request;

int halocline_messages_create(MPI_Comm comm, halocline_messages* messages);
int halocline_messages_free(halocline_messages* messages);

typedef struct halocline_status {
  int source;
  int tag;
  int64_t bytes;
} halocline_status;

int halocline_isend(halocline_messages messages, const void* buffer, int64_t count,
                    MPI_Datatype datatype, int destination, int tag, halocline_request* request);
int halocline_recv(halocline_messages messages, void* buffer, int64_t count, MPI_Datatype datatype,
                   int source, int tag, halocline_status* status);
int halocline_wait(halocline_request* request, halocline_status* status);

#endif
