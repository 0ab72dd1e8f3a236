// SPDX-License-Identifier: BSD-3-Clause
// `halocline compare`: the same exchange through several methods, side by side.
#include <algorithm>

#include "commands.hpp"
#include "dtype/support/mpi_check.hpp"
#include "dtype/support/region.hpp"
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
  std::string region;                  ///< for profilers
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
  bool late = false;
  for (std::int64_t i = 0; i < config.warmup + config.iterations; ++i) {
    if (late && i > config.warmup) break;
    if (late) i = std::max(i, config.warmup);  // no more warm-up, but one measured iteration
    for (auto* contender : contenders) {
      HALOCLINE_MPI(MPI_Barrier(comm));
      const Region region(contender->region.c_str());
      const double start = MPI_Wtime();
      const auto times = contender->plan.start().finish();
      const double total = MPI_Wtime() - start;
      if (i < config.warmup) continue;
      append(contender->record.phases, times);
      contender->record.phases.total.push_back(total);
    }
    std::reverse(contenders.begin(), contenders.end());
    progress.update(i + 1);
    late = same_on_all_ranks(MPI_Wtime() - begin > config.max_seconds, comm);
  }
  for (auto* contender : contenders) {
    auto& record = contender->record;
    record.phases = max_over_ranks(std::move(record.phases), comm);
    record.iterations = std::ssize(record.phases.total);
    if (record.iterations < config.iterations)
      record.notes.push_back("stopped by --max-seconds after " +
                             format_count(record.iterations, "timed exchange") + " of " +
                             std::to_string(config.iterations));
  }
}

double median_total(const Contender& contender) {
  return statistics(contender.record.phases.total).median;
}

// The fastest vendor method of this run is what everything is compared with.
void set_ratios(const std::vector<Contender*>& measured) {
  const Contender* baseline = nullptr;
  for (const auto* contender : measured)
    if (comm::is_vendor(contender->plan.method().exchange) &&
        (baseline == nullptr || median_total(*contender) < median_total(*baseline)))
      baseline = contender;
  if (baseline == nullptr) return;
  for (auto* contender : measured) {
    contender->record.baseline = baseline->record.method;
    contender->record.ratio_to_baseline = median_total(*baseline) / median_total(*contender);
  }
}

std::string describe_table(const std::vector<Contender>& contenders) {
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
    const bool chosen = record.memory == "device" && record.method == record.exchange &&
                        !comm::is_vendor(contender.plan.method().exchange);
    std::vector<std::string> row{record.method + (chosen ? " (" + record.transfer + ")" : ""),
                                 record.verified ? "yes" : "NO"};
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
  std::string out = "\n" + table.str();
  const auto timed = std::find_if(contenders.begin(), contenders.end(), [](const Contender& c) {
    return !c.record.phases.total.empty();
  });
  if (timed == contenders.end()) return out;
  out += format_count(timed->record.iterations, "timed exchange") +
         " of each method; times are the slowest rank's, phases medians, transfer includes waiting "
         "for its packing;\nrate counts all halo bytes of a rank";
  if (!baseline.empty())
    out += "; ratio: speed relative to " + baseline +
           ", the fastest vendor method (above 1 is faster)";
  return out + "\n";
}

template <class T>
int compare_as(const Config& config, const Methods& methods, const Domain& domain,
               const Setup& setup, MPI_Comm comm) {
  const auto packer = make_packer(config);
  const HaloFields<T> halo(config, domain, comm);

  std::vector<Contender> contenders;
  for (const auto& method : methods.list) {
    comm::ExchangePlan plan(comm, halo.jobs(), method,
                            {.packer = packer.get(), .model = setup.model});
    auto record = make_record(config, domain, plan, comm);
    auto problem = halo.verify(plan);
    record.verified = !problem;
    auto region = "halocline: " + record.method;
    contenders.push_back(
        {std::move(plan), std::move(record), std::move(region), std::move(problem)});
  }
  std::string introduction = headline(config, contenders.front().record);
  for (const auto& contender : contenders)
    for (const auto& note : contender.record.notes)
      introduction += contender.record.method + ": " + note + "\n";
  if (!methods.left_out.empty()) {
    introduction += methods.left_out + "\n";
    for (auto& contender : contenders) contender.record.notes.push_back(methods.left_out);
  }
  say(config, comm, introduction);

  std::vector<Contender*> verified;
  for (auto& contender : contenders)
    if (!contender.problem) verified.push_back(&contender);
  if (!verified.empty()) measure(config, verified, comm);
  set_ratios(verified);

  on_root(comm, [&] {
    for (const auto& contender : contenders) setup.writer->write(contender.record);
  });
  say(config, comm, describe_table(contenders));
  for (const auto& contender : contenders)
    if (contender.problem)
      report_failure(comm, "method " + contender.record.method +
                               ", exchange: " + *contender.problem + "): it was not timed");
  return verified.size() == contenders.size() ? 0 : 1;
}

}  // namespace

int compare(const Config& config, MPI_Comm comm) {
  const auto methods = methods_to_compare(config, comm);
  return with_domain(config, comm, 1, methods.list,
                     [&](auto element, const Domain& domain, const Setup& setup) {
                       return compare_as<decltype(element)>(config, methods, domain, setup, comm);
                     });
}

}  // namespace halocline::app
