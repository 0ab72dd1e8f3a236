// SPDX-License-Identifier: BSD-3-Clause
// Single messages of halocline.h.
#include <memory>
#include <string>
#include <utility>

#include "comm/c/common.hpp"
#include "comm/p2p/point_to_point.hpp"

namespace halocline::c {

namespace {

struct Messages {
  explicit Messages(MPI_Comm comm) : own(comm), engine(own.get()) {
    int* tag = nullptr;
    int found = 0;
    HALOCLINE_MPI(MPI_Comm_get_attr(own.get(), MPI_TAG_UB, &tag, &found));
    if (found != 0) largest_tag = *tag;
  }

  OwnCommunicator own;
  comm::PointToPoint engine;
  int largest_tag = 32767;
  int open = 0;  // requests that nobody has waited for
};

// An engine with open requests cannot be freed, so it outlives them.
struct Request {
  Messages& messages;
  comm::PointToPoint::Request request;
};

enum class Direction { send, receive };

Messages& messages_of(halocline_messages messages) {
  return object_of<Messages>(messages, "engine of messages", "halocline_messages_create()");
}

// Returns the engine. Throws ConfigError unless the arguments of a message can be used.
Messages& checked(halocline_messages messages, const void* buffer, std::int64_t count,
                  MPI_Datatype datatype, int partner, int tag, Direction direction) {
  auto& of = messages_of(messages);
  require_mpi();
  require_data(buffer, count, datatype);
  const bool receives = direction == Direction::receive;
  const bool is_rank = partner >= 0 && partner < of.own.size();
  if (!is_rank && partner != MPI_PROC_NULL && !(receives && partner == MPI_ANY_SOURCE))
    throw ConfigError("there is no rank " + std::to_string(partner) + ": give one from 0 to " +
                      std::to_string(of.own.size() - 1) + " or MPI_PROC_NULL" +
                      (receives ? ", or MPI_ANY_SOURCE" : ""));
  if ((tag < 0 || tag > of.largest_tag) && !(receives && tag == MPI_ANY_TAG))
    throw ConfigError("there is no tag " + std::to_string(tag) + ": give one from 0 to " +
                      std::to_string(of.largest_tag) + (receives ? ", or MPI_ANY_TAG" : ""));
  return of;
}

// Runs `f()`. A message that is too long for its receive is a mistake of the program.
template <class F>
auto with_length_checked(F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (const MpiError& error) {
    int error_class = MPI_SUCCESS;
    MPI_Error_class(error.code(), &error_class);
    if (error_class != MPI_ERR_TRUNCATE) throw;
    throw ConfigError("the message is longer than its receive: give a larger count");
  }
}

void set(halocline_status* status, const comm::ReceiveStatus& from) {
  if (status != nullptr) *status = {.source = from.source, .tag = from.tag, .bytes = from.bytes};
}

// Runs `start()`, which starts a message, and sets the handle of the message.
template <class Start>
void begin(Messages& of, halocline_request* request, Start start) {
  *request = keep<halocline_request>(std::make_unique<Request>(Request{of, start()}));
  ++of.open;
}

}  // namespace

bool is_live(halocline_messages messages) {
  return objects<Messages>().find(number_of(messages)) != nullptr;
}
bool is_live(halocline_request request) {
  return objects<Request>().find(number_of(request)) != nullptr;
}

}  // namespace halocline::c

using namespace halocline;
using namespace halocline::c;

int halocline_messages_create(MPI_Comm comm, halocline_messages* messages) {
  return guarded([&] {
    require_communicator(comm);
    comm::collectively(comm, [&] {
      require(messages != nullptr, "`messages` is NULL: give the address of a handle");
      *messages = nullptr;
    });
    *messages = keep<halocline_messages>(std::make_unique<Messages>(comm));
  });
}

int halocline_messages_free(halocline_messages* messages) {
  return guarded([&] {
    require(messages != nullptr, "`messages` is NULL: give the address of a handle");
    if (*messages == nullptr) return;
    require_mpi();
    const auto& of = messages_of(*messages);
    comm::collectively(of.own.get(), [&] {
      if (of.open > 0)
        throw ConfigError(std::to_string(of.open) +
                          " messages of the engine are not complete: call halocline_wait() for "
                          "each of them first");
    });
    objects<Messages>().take(number_of(std::exchange(*messages, nullptr)));
  });
}

int halocline_send(halocline_messages messages, const void* buffer, std::int64_t count,
                   MPI_Datatype datatype, int destination, int tag) {
  return guarded([&] {
    auto& of = checked(messages, buffer, count, datatype, destination, tag, Direction::send);
    of.engine.send(buffer, count, datatype, destination, tag);
  });
}

int halocline_recv(halocline_messages messages, void* buffer, std::int64_t count,
                   MPI_Datatype datatype, int source, int tag, halocline_status* status) {
  return guarded([&] {
    auto& of = checked(messages, buffer, count, datatype, source, tag, Direction::receive);
    set(status,
        with_length_checked([&] { return of.engine.recv(buffer, count, datatype, source, tag); }));
  });
}

int halocline_isend(halocline_messages messages, const void* buffer, std::int64_t count,
                    MPI_Datatype datatype, int destination, int tag, halocline_request* request) {
  return guarded([&] {
    require(request != nullptr, "`request` is NULL: give the address of a handle");
    *request = nullptr;
    auto& of = checked(messages, buffer, count, datatype, destination, tag, Direction::send);
    begin(of, request, [&] { return of.engine.isend(buffer, count, datatype, destination, tag); });
  });
}

int halocline_irecv(halocline_messages messages, void* buffer, std::int64_t count,
                    MPI_Datatype datatype, int source, int tag, halocline_request* request) {
  return guarded([&] {
    require(request != nullptr, "`request` is NULL: give the address of a handle");
    *request = nullptr;
    auto& of = checked(messages, buffer, count, datatype, source, tag, Direction::receive);
    begin(of, request, [&] { return of.engine.irecv(buffer, count, datatype, source, tag); });
  });
}

int halocline_wait(halocline_request* request, halocline_status* status) {
  return guarded([&] {
    require(request != nullptr, "`request` is NULL: give the address of a handle");
    set(status, {});
    if (*request == nullptr) return;
    require_mpi();
    object_of<Request>(*request, "message under way", "halocline_isend() or halocline_irecv()");
    const auto taken = objects<Request>().take(number_of(std::exchange(*request, nullptr)));
    --taken->messages.open;
    set(status, with_length_checked([&] { return taken->request.wait(); }));
  });
}
