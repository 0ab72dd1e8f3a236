// SPDX-License-Identifier: BSD-3-Clause
#include "comm/bench/interfaces.hpp"

#include <array>
#include <cstdint>

#include "comm/c/halocline.h"
#include "comm/exchange/exchange_plan.hpp"
#include "dtype/bench/turns.hpp"
#include "support/error.hpp"
#include "support/measure.hpp"

namespace halocline::comm::bench {

namespace {

using dtype::bench::Contender;
using dtype::bench::Row;

void succeed(int code) {
  if (code != HALOCLINE_SUCCESS) throw EnvironmentError(halocline_last_error());
}

Row measure(const dtype::bench::Options& options) {
  std::array<double, 2> sent{1, 2}, received{};
  ExchangePlan plan(MPI_COMM_SELF,
                    {{.partner = 0,
                      .send_buffer = &sent[0],
                      .send_count = 1,
                      .send_type = MPI_DOUBLE,
                      .receive_buffer = &received[0],
                      .receive_count = 1,
                      .receive_type = MPI_DOUBLE}},
                    Exchange::p2p);
  const halocline_message send{&sent[1], 1, MPI_DOUBLE, 0, 0, 0},
      receive{&received[1], 1, MPI_DOUBLE, 0, 0, 0};
  halocline_plan in_c = nullptr;
  succeed(halocline_plan_create(MPI_COMM_SELF, "p2p", 1, &send, 1, &receive, nullptr, &in_c));
  std::vector<Contender> contenders;
  contenders.emplace_back("cpp", [&](std::int64_t calls) {
    for (; calls > 0; --calls) plan.start().finish();
  });
  contenders.emplace_back("c", [&](std::int64_t calls) {
    for (; calls > 0; --calls) halocline_start(in_c), halocline_finish(in_c);
  });
  for (const auto& contender : contenders) contender.calls()(1);
  Row row{.verified = received == sent};
  take_turns(contenders, dtype::bench::effort_of(options, {0.5, 20e3, 9}, {0.05, 20e3, 3}));
  for (const auto& contender : contenders) row.add_times(contender.name(), contender.ns());
  std::vector<double> more;
  for (std::size_t i = 0; i < contenders[0].ns().size(); ++i)
    more.push_back(contenders[1].ns()[i] - contenders[0].ns()[i]);
  row.add("more_ns", median(more));
  succeed(halocline_plan_free(&in_c));
  return row;
}

}  // namespace

std::vector<dtype::bench::Benchmark> interfaces(const dtype::bench::Options& options) {
  return {{"start-finish", [&options] { return measure(options); }}};
}

}  // namespace halocline::comm::bench
