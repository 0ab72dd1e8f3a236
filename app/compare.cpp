// SPDX-License-Identifier: BSD-3-Clause
// `halocline compare`: the same exchange through several methods, side by side.
#include <algorithm>
#include <cstdio>

#include "commands.hpp"
#include "dtype/support/mpi_check.hpp"
#include "environment.hpp"
#include "progress.hpp"
#include "session.hpp"
#include "table.hpp"

namespace halocline::app {

namespace {

/// One method under comparison.
struct Contender {
  comm::ExchangePlan plan;
  Record record;
  std::optional<std::string> problem;  ///< why it is not verified
};

bool same_on_all_ranks(bool of_root, MPI_Comm comm) {
  int value = of_root ? 1 : 0;
  HALOCLINE_MPI(MPI_Bcast(&value, 1, MPI_INT, 0, comm));
  return value != 0;
}

// Methods take turns, in reverse order every other iteration (A B B A ...), each started together
// on all ranks.
void measure(const Config& config, std::vector<Contender*> contenders, MPI_Comm comm) {
  const bool root = rank_of(comm) == 0;
  Progress progress(root && !config.quiet, "compare", config.warmup + config.iterations);
  const double begin = MPI_Wtime();
  for (std::int64_t i = 0; i < config.warmup + config.iterations; ++i) {
    for (auto* contender : contenders) {
      HALOCLINE_MPI(MPI_Barrier(comm));
      const double start = MPI_Wtime();
      const auto times = contender->plan.start().finish();
      const double total = MPI_Wtime() - start;
      if (i < config.warmup) continue;
      append(contender->record.phases, times);
      contender->record.phases.total.push_back(total);
    }
    std::reverse(contenders.begin(), contenders.end());
    progress.update(i + 1);
    if (i >= config.warmup && same_on_all_ranks(MPI_Wtime() - begin > config.max_seconds, comm))
      break;
  }
  for (auto* contender : contenders) {
    auto& record = contender->record;
    record.phases = max_over_ranks(std::move(record.phases), comm);
    record.iterations = std::ssize(record.phases.total);
  }
}

double median_total(const Contender& contender) {
  return statistics(contender.record.phases.total).median;
}

// The fastest vendor method of this run is what everything is compared with.
void set_ratios(const std::vector<Contender*>& measured) {
  const Contender* baseline = nullptr;
  for (const auto* contender : measured)
    if (comm::is_vendor(contender->plan.method()) &&
        (baseline == nullptr || median_total(*contender) < median_total(*baseline)))
      baseline = contender;
  if (baseline == nullptr) return;
  for (auto* contender : measured) {
    contender->record.baseline = baseline->record.method;
    contender->record.ratio_to_baseline = median_total(*baseline) / median_total(*contender);
  }
}

void print_table(const std::vector<Contender>& contenders) {
  std::string baseline;
  for (const auto& contender : contenders)
    if (contender.record.baseline) baseline = *contender.record.baseline;

  std::vector<Column> columns{{"method", Align::left},
                              {"verified", Align::left},
                              {"median"},
                              {"p10"},
                              {"p90"},
                              {"pack"},
                              {"transfer"},
                              {"unpack"},
                              {"rate"}};
  if (!baseline.empty()) columns.push_back({"ratio"});
  Table table(columns);
  for (const auto& contender : contenders) {
    const auto& record = contender.record;
    const auto& phases = record.phases;
    const auto median = [](const Samples& samples) {
      return samples.empty() ? std::string("-") : format_seconds(statistics(samples).median);
    };
    std::vector<std::string> row{record.method, record.verified ? "yes" : "NO"};
    if (phases.total.empty()) {
      row.resize(columns.size(), "-");
    } else {
      const auto total = statistics(phases.total);
      row.insert(
          row.end(),
          {format_seconds(total.median), format_seconds(total.p10), format_seconds(total.p90),
           median(phases.pack), median(phases.transfer), median(phases.unpack),
           format_rate(static_cast<double>(record.bytes_to_others + record.bytes_to_self) /
                       total.median)});
      if (!baseline.empty())
        row.push_back(format_fixed(record.ratio_to_baseline.value_or(0), 2) + "x");
    }
    table.add_row(row);
  }
  std::printf("\n%s", table.str().c_str());
  const auto timed = std::find_if(contenders.begin(), contenders.end(), [](const Contender& c) {
    return !c.record.phases.total.empty();
  });
  if (timed == contenders.end()) return;
  std::printf(
      "timed exchanges of each method: %lld; times are the slowest rank's, phases medians; rate "
      "counts all halo bytes of a rank\n",
      static_cast<long long>(timed->record.iterations));
  if (!baseline.empty())
    std::printf("ratio: speed relative to %s, the fastest vendor method (above 1 is faster)\n",
                baseline.c_str());
}

template <class T>
int compare_as(const Config& config, const Domain& domain, const ResultWriter* writer,
               MPI_Comm comm) {
  const bool root = domain.rank == 0;
  const auto packer = make_packer(config);
  const HaloFields<T> halo(config, domain, comm);

  std::vector<Contender> contenders;
  for (const auto method : config.methods) {
    comm::ExchangePlan plan(comm, halo.jobs(), method, {.packer = packer.get()});
    auto record = make_record(config, domain, plan, comm);
    auto problem = halo.verify(plan);
    record.verified = !problem;
    contenders.push_back({std::move(plan), std::move(record), std::move(problem)});
  }
  if (root && !config.quiet) {
    std::printf("%s", headline(config, contenders.front().record).c_str());
    for (const auto& contender : contenders)
      for (const auto& note : contender.record.notes)
        std::printf("%s: %s\n", contender.record.method.c_str(), note.c_str());
    std::fflush(stdout);
  }

  std::vector<Contender*> verified;
  for (auto& contender : contenders)
    if (!contender.problem) verified.push_back(&contender);
  if (!verified.empty()) measure(config, verified, comm);
  set_ratios(verified);

  if (root && !config.quiet) print_table(contenders);
  for (const auto& contender : contenders)
    if (root && contender.problem)
      std::fprintf(stderr,
                   "halocline: verification failed (method %s, exchange: %s): it was not timed\n",
                   contender.record.method.c_str(), contender.problem->c_str());
  on_root(comm, [&] {
    for (const auto& contender : contenders) writer->write(contender.record);
  });
  return verified.size() == contenders.size() ? 0 : 1;
}

}  // namespace

int compare(const Config& config, MPI_Comm comm) {
  return with_domain(config, comm, 1, static_cast<int>(config.methods.size()),
                     [&](auto element, const Domain& domain, const ResultWriter* writer) {
                       return compare_as<decltype(element)>(config, domain, writer, comm);
                     });
}

}  // namespace halocline::app
