// SPDX-License-Identifier: BSD-3-Clause
// Destroys objects of static storage after MPI_Finalize, with an exchange and a message under way.
// The program must end with 0, since nothing is left to be done.
#include <mpi.h>

#include <memory>
#include <optional>
#include <vector>

#include "comm/exchange/exchange_plan.hpp"
#include "comm/gather/node_communicators.hpp"
#include "comm/p2p/point_to_point.hpp"
#include "dtype/datatype.hpp"

using namespace halocline;

namespace {

std::vector<int> sent(4000), received(4000);
std::optional<dtype::Datatype> type;
std::optional<comm::ExchangePlan> plan;
std::optional<comm::PendingExchange> pending;
std::shared_ptr<comm::NodeCommunicators> communicators;
std::optional<comm::PointToPoint> messages;
std::optional<comm::PointToPoint::Request> request;

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int other = (rank + 1) % ranks;
  type.emplace(dtype::make_datatype(*dtype::parse_type("vector(1000,1,2,int)")));
  const int before = (rank + ranks - 1) % ranks;
  const comm::ExchangeJob out{
      .partner = other, .send_buffer = sent.data(), .send_count = 1, .send_type = type->get()};
  const comm::ExchangeJob in{.partner = before,
                             .receive_buffer = received.data(),
                             .receive_count = 1,
                             .receive_type = type->get()};
  plan.emplace(MPI_COMM_WORLD, std::vector{out, in}, comm::parse_method("p2p"));
  pending.emplace(plan->start());
  communicators = comm::NodeCommunicators::of(MPI_COMM_WORLD);
  messages.emplace(MPI_COMM_WORLD);
  request.emplace(messages->irecv(received.data() + 2000, 1, type->get(), before, 1));
  MPI_Finalize();
  return 0;
}
