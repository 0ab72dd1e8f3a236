// SPDX-License-Identifier: BSD-3-Clause
// Runs `halocline compare`: the same exchange through several methods, side by side.
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "answer.hpp"
#include "commands.hpp"
#include "environment.hpp"
#include "methods.hpp"
#include "progress.hpp"
#include "session.hpp"
#include "support/machine.hpp"
#include "support/mpi_check.hpp"
#include "support/region.hpp"
#include "table.hpp"

namespace halocline::app {

namespace {

/// Holds one method under comparison.
struct Contender {
  /// Runs an exchange of `plan` and returns its problem, if there is one. Collective.
  using Verify =
      std::function<std::optional<std::string>(comm::ExchangePlan& plan, const Verification&)>;

  std::string label;  ///< in tables
  comm::ExchangePlan plan;
  Record record;
  std::string region;  ///< for profilers
  Verify verify;
  std::optional<std::string> problem;  ///< reason why the method is not verified
};

bool same_on_all_ranks(bool of_root, MPI_Comm comm) {
  int value = of_root ? 1 : 0;
  HALOCLINE_MPI(MPI_Bcast(&value, 1, MPI_INT, 0, comm));
  return value != 0;
}

// Measures the methods in turns. All ranks start each exchange together.
void measure(const Config& config, const std::vector<Contender*>& contenders, MPI_Comm comm) {
  const bool root = rank_of(comm) == 0;
  Progress progress(root && !config.quiet, "compare", config.warmup + config.iterations);
  const double begin = MPI_Wtime();
  bool late = false;
  for (std::int64_t i = 0; i < config.warmup + config.iterations; ++i) {
    if (late && i > config.warmup) break;
    if (late) i = std::max(i, config.warmup);  // no more warm-up, but one measured iteration
    for (const auto number : order_of_turn(contenders.size(), i)) {
      auto* const contender = contenders[number];
      HALOCLINE_MPI(MPI_Barrier(comm));
      const ProfileRegion region(contender->region.c_str());
      const double start = MPI_Wtime();
      const auto times = contender->plan.start().finish();
      const double total = MPI_Wtime() - start;
      if (i < config.warmup) continue;
      append(contender->record.phases, times);
      contender->record.phases.total.push_back(total);
    }
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
  return median(contender.record.phases.total);
}

// Sets the baseline of all methods: the fastest vendor method of this run.
void set_ratios(const std::vector<Contender*>& measured) {
  const Contender* baseline = nullptr;
  for (const auto* contender : measured)
    if (comm::is_vendor(contender->plan.method().exchange) &&
        (baseline == nullptr || median_total(*contender) < median_total(*baseline)))
      baseline = contender;
  if (baseline == nullptr) return;
  for (auto* contender : measured) {
    contender->record.baseline = baseline->record.method;
    contender->record.baseline_storage = baseline->record.storage;
    contender->record.baseline_shape = baseline->record.shape;
    contender->record.ratio_to_baseline = median_total(*baseline) / median_total(*contender);
  }
}

// Returns the name of the MPI, without its version.
std::string short_mpi_name() {
  const auto text = mpi_library();
  for (const auto& [part, name] : {std::pair("Spectrum MPI", "Spectrum MPI"),
                                   {"Open MPI", "Open MPI"},
                                   {"Intel", "Intel MPI"},
                                   {"MVAPICH", "MVAPICH"},
                                   {"CRAY MPICH", "Cray MPICH"},
                                   {"MPICH", "MPICH"}})
    if (text.find(part) != std::string::npos) return name;
  return "the MPI";
}

// Tells if this is `auto`, and the method that it chose is compared in the same shape.
bool is_alias(const Contender& contender, const std::vector<Contender>& contenders) {
  const auto& record = contender.record;
  return contender.plan.method().exchange == comm::Exchange::automatic &&
         std::any_of(contenders.begin(), contenders.end(), [&](const Contender& other) {
           return other.record.exchange == record.chosen && other.record.shape == record.shape;
         });
}

/// Holds the timed methods for the table, the answer and the picture.
struct Candidates {
  std::vector<Candidate> list;
  const Candidate* baseline = nullptr;  ///< in `list`: the fastest vendor method; nullptr if there
                                        ///< is none

  explicit Candidates(const std::vector<Contender>& contenders) {
    for (const auto& contender : contenders) {
      const auto& record = contender.record;
      if (record.phases.total.empty()) continue;
      const bool is_vendor = comm::is_vendor(contender.plan.method().exchange);
      list.push_back(
          {contender.label, record.exchange, is_vendor,
           record.chosen == comm::name(comm::Exchange::shared) && record.memory == Memory::host,
           record.phases.total, is_alias(contender, contenders)});
    }
    for (const auto& one : list)
      if (one.is_vendor && (baseline == nullptr || median(one.seconds) < median(baseline->seconds)))
        baseline = &one;
  }
  Candidates(const Candidates&) = delete;
  Candidates& operator=(const Candidates&) = delete;
};

// Returns the record of the first method that was timed; nullptr if there is none.
const Record* record_of_first(const std::vector<Contender>& contenders) {
  for (const auto& contender : contenders)
    if (!contender.record.phases.total.empty()) return &contender.record;
  return nullptr;
}

// Returns the table, in as many columns as fit into a terminal, and the answer below it.
std::string describe_table(const std::vector<Contender>& contenders) {
  const Candidates timed(contenders);
  const auto* const baseline = timed.baseline;
  const bool differ = std::any_of(contenders.begin(), contenders.end(), [&](const Contender& c) {
    return c.record.messages != contenders.front().record.messages;
  });
  enum Detail : int { everything, no_phases, no_percentiles, no_rate, no_messages, no_verdicts };
  const bool all_verified = std::all_of(contenders.begin(), contenders.end(),
                                        [](const Contender& c) { return c.record.verified; });
  const auto table_with = [&](Detail detail) {
    std::vector<Column> columns{{"method", Align::left}};
    const bool has_verdicts = detail < no_verdicts || !all_verified;
    if (has_verdicts) columns.push_back({"verified", Align::left});
    columns.push_back({"median"});
    if (detail < no_percentiles) columns.insert(columns.end(), {{"p10"}, {"p90"}});
    if (detail < no_phases) columns.insert(columns.end(), {{"pack"}, {"transfer"}, {"unpack"}});
    if (detail < no_rate) columns.push_back({"rate"});
    if (baseline != nullptr) columns.push_back({"ratio"});
    const bool has_messages = differ && detail < no_messages;
    if (has_messages) columns.push_back({"messages"});
    Table table(columns);
    auto candidate = timed.list.begin();
    for (const auto& contender : contenders) {
      const auto& record = contender.record;
      const auto& phases = record.phases;
      const auto text_of_median = [](const Samples& samples) {
        return samples.empty() ? std::string("-") : format_seconds(median(samples));
      };
      const bool transfer_chosen = record.memory == Memory::device &&
                                   record.method == record.exchange &&
                                   !comm::is_vendor(contender.plan.method().exchange);
      auto chosen = record.chosen == record.exchange ? "" : record.chosen;
      if (transfer_chosen) chosen += (chosen.empty() ? "" : ":") + record.transfer;
      std::vector<std::string> row{contender.label + (chosen.empty() ? "" : " (" + chosen + ")")};
      if (has_verdicts) row.emplace_back(record.verified ? "yes" : "NO");
      if (phases.total.empty()) {
        row.resize(columns.size() - (has_messages ? 1 : 0), "-");
      } else {
        const auto total = statistics(phases.total);
        row.push_back(format_seconds(total.median));
        if (detail < no_percentiles)
          row.insert(row.end(), {format_seconds(total.p10), format_seconds(total.p90)});
        if (detail < no_phases)
          row.insert(row.end(), {text_of_median(phases.pack), text_of_median(phases.transfer),
                                 text_of_median(phases.unpack)});
        const auto bytes = static_cast<double>(record.bytes_to_others + record.bytes_to_self);
        if (detail < no_rate) row.push_back(format_rate(bytes / total.median));
        if (baseline != nullptr) {
          const bool is_open = &*candidate != baseline && speed(*candidate, *baseline).may_be(1);
          row.push_back((is_open ? "~ " : "") +
                        format_fixed(record.ratio_to_baseline.value_or(0), 2) + "x");
        }
        ++candidate;
      }
      if (has_messages) row.push_back(std::to_string(record.messages));
      table.add_row(row);
    }
    return table.str();
  };
  std::string out = "\n";
  if (const auto* const record = record_of_first(contenders)) {
    out += format_count(record->iterations, "timed exchange") + " of each method";
    for (const auto& note : record->notes)
      if (note.starts_with("stopped by --max-seconds")) out += " (" + note + ")";
    out += "\n\n";
  }
  auto detail = everything;
  auto table = table_with(detail);
  for (const auto less : {no_phases, no_percentiles, no_rate, no_messages, no_verdicts})
    if (width_of(table) > columns_of_terminal()) table = table_with(detail = less);
  out += table;
  if (timed.list.empty()) return out;
  std::string legend = detail == no_verdicts && all_verified ? "All methods are verified. " : "";
  legend += "Times are the slowest rank's";
  legend += detail < no_rate ? "; rate counts all halo bytes of a rank." : ".";
  if (detail == everything)
    legend += " Transfer includes waiting for its packing, and medians of phases may overlap.";
  if (baseline != nullptr)
    legend +=
        " Ratio: times as fast as " + baseline->label +
        ", the fastest vendor method; ~ marks ratios that may be 1" +
        (speed(timed.list.front(), *baseline).low ? "." : ": with fewer than 6 exchanges, all.");
  out += "\n" + wrapped(legend, columns_of_terminal()) + "\n";
  if (contenders.front().record.ranks == 1)
    return out + wrapped(
                     "One rank sends nothing to others, so this is no comparison of messages: "
                     "start at least two, such as mpirun -n 2 halocline compare.",
                     columns_of_terminal());
  std::istringstream lines(answer(timed.list, baseline, short_mpi_name()));
  for (std::string line; std::getline(lines, line);) out += wrapped(line, columns_of_terminal());
  return out;
}

// Writes the picture of --plot. An old picture stays until the new one is complete.
void draw(const std::vector<Contender>& contenders, const std::string& path) {
  namespace fs = std::filesystem;
  const Candidates timed(contenders);
  if (timed.baseline == nullptr) return;
  const auto& record = contenders.front().record;
  const auto picture =
      bars(timed.list, *timed.baseline,
           "Halo exchange, " + format_count(record.ranks, "rank") + " on " +
               format_count(record.nodes, "node") + ", " + format_extent(record.local) +
               " points per rank, " + format_count(record.fields, "field") + " of " +
               std::to_string(record.element_bytes) + " bytes, radius " +
               format_radius(record.radius) + ", " + short_mpi_name());
  std::error_code error;
  const auto target = fs::weakly_canonical(path, error).string();  // a rename replaces links
  const bool is_device = fs::exists(target, error) && !fs::is_regular_file(target, error);
  const auto draft = is_device ? target : target + ".part";
  std::ofstream file(draft, std::ios::trunc);
  file << picture;
  file.close();
  error.clear();
  if (file && !is_device) fs::rename(draft, target, error);
  if (file && !error) return;
  const auto why = error ? error.message() : std::generic_category().message(errno);
  if (!is_device) fs::remove(draft, error);
  throw EnvironmentError("plot cannot be written (" + path + ", " + why +
                         "): give --plot another file");
}

// Returns all notes, each with the labels of its methods.
std::map<std::string, std::string> labels_by_note(const std::vector<Contender>& contenders) {
  std::map<std::string, std::string> out;
  for (const auto& contender : contenders)
    for (const auto& note : contender.record.notes) {
      auto& labels = out[note];
      labels += (labels.empty() ? "" : "; ") + contender.label;
    }
  return out;
}

// Returns the most demanding storage among those of the methods.
Storage storage_for(const Methods& methods, Memory memory) {
  auto out = Storage::ordinary;
  for (const auto& method : methods.list) {
    const auto storage = storage_for(method, memory);
    if (out != Storage::shared_window && storage != Storage::ordinary) out = storage;
  }
  return out;
}

/// Holds the fields of all methods. If a method needs a shared window, there are two sets: one in a
/// window, and a private one for the vendor's methods.
template <class T>
struct ComparedFields {
  std::unique_ptr<const HaloFields<T>> shared, ordinary;

  /// Allocates the fields. Without memory that ranks can share, it leaves out methods that need it,
  /// unless the user named them.
  ComparedFields(const Config& config, const Domain& domain, Methods& methods, MPI_Comm comm) {
    if (const auto storage = storage_for(methods, config.memory); storage != Storage::ordinary) {
      try {
        shared = std::make_unique<HaloFields<T>>(config, domain, storage, comm);
      } catch (const MpiError&) {
        throw;  // this rank's own error
      } catch (const EnvironmentError& error) {
        const bool asks = storage == Storage::shared_window;
        if (asks && !config.methods.empty()) throw;
        std::erase_if(methods.list, [&](const comm::Method& method) {
          return storage_for(method, config.memory) == Storage::shared_window;
        });
        methods.left_out.push_back((asks ? "left out: shared; auto is p2p: " : "auto is p2p: ") +
                                   std::string(error.what()));
      }
    }
    const auto is_vendor = [](const comm::Method& m) { return comm::is_vendor(m.exchange); };
    if (!shared || std::any_of(methods.list.begin(), methods.list.end(), is_vendor))
      ordinary = std::make_unique<HaloFields<T>>(config, domain, Storage::ordinary, comm);
  }

  std::vector<const HaloFields<T>*> of(const comm::Method& method) const {
    if (!shared) return {ordinary.get()};
    if (comm::is_vendor(method.exchange)) return {shared.get(), ordinary.get()};
    return {shared.get()};
  }
};

template <class T>
int compare_as(const Config& config, Methods methods, const Domain& domain,
               const CommandContext& context, MPI_Comm comm) {
  const auto packer = make_packer(config);
  const ComparedFields<T> fields(config, domain, methods, comm);

  std::vector<Contender> contenders;
  auto seed = static_cast<std::uint64_t>(config.seed);
  const auto verify = [&](Contender& contender, int number) {
    const Verification verification{number, seed++};
    if (!contender.problem) contender.problem = contender.verify(contender.plan, verification);
    contender.record.verified = !contender.problem;
  };
  const auto add = [&](const comm::Method& method, const HaloFields<T>& halo,
                       comm::HaloShape shape) {
    comm::ExchangePlan plan(comm, halo.jobs(shape), method,
                            {.packer = packer.get(),
                             .gpu_aware_mpi = gpu_awareness_by_flag(config),
                             .model = context.model,
                             .nodes = &domain.nodes,
                             .chunk_bytes = config.chunk_bytes,
                             .windows = halo.windows(),
                             .message_of_tag = message_of_tag(config, domain)});
    auto record = make_record(config, domain, plan, shape, comm);
    halo.describe_memory(record);
    auto label = record.method;
    if (shape != comm::HaloShape::direct) label.append(", ").append(to_string(shape));
    if (fields.shared && record.storage == "private") label += ", private memory";
    auto region = "halocline: " + label;
    auto& contender = contenders.emplace_back(
        Contender{std::move(label), std::move(plan), std::move(record), std::move(region),
                  [&halo, shape](comm::ExchangePlan& of, const Verification& verification) {
                    return halo.verify(of, shape, verification);
                  },
                  std::nullopt});
    for (int number = 1; number <= Verification::kBeforeTiming; ++number) verify(contender, number);
    contender.record.on_huge_pages = halo.share_on_huge_pages();
  };
  for (const auto& method : methods.list)
    for (const auto* halo : fields.of(method))
      for (const auto shape : config.shape) add(method, *halo, shape);
  std::string introduction = headline(config, domain, contenders.front().record);
  for (const auto& [note, labels] : labels_by_note(contenders))
    introduction += wrapped(labels + ": " + note, columns_of_terminal());
  for (const auto& note : methods.left_out) {
    introduction += wrapped(note, columns_of_terminal());
    for (auto& contender : contenders) contender.record.notes.push_back(note);
  }
  say(config, comm, introduction);

  std::vector<Contender*> verified;
  for (auto& contender : contenders)
    if (!contender.problem) verified.push_back(&contender);
  if (!verified.empty()) measure(config, verified, comm);
  for (auto* contender : verified) {
    verify(*contender, Verification::kBeforeTiming + 1);
    if (!contender->problem) continue;
    contender->record.phases = {};
    contender->record.iterations = 0;
  }
  std::erase_if(verified,
                [](const Contender* contender) { return contender->problem.has_value(); });
  set_ratios(verified);

  const auto write = [&] {
    for (const auto& contender : contenders) context.writer->write(contender.record);
    if (!config.plot.empty()) draw(contenders, config.plot);
  };
  return write_and_show(comm, write, [&] {
    say(config, comm, describe_table(contenders));
    for (const auto& contender : contenders)
      if (contender.problem)
        report_failure(
            comm, "method " + contender.label + ", " + *contender.problem + "): it has no times");
    return verified.size() == contenders.size() ? 0 : 1;
  });
}

}  // namespace

int compare(const Config& config, MPI_Comm comm) {
  const auto nodes = find_nodes(config, comm);
  const auto methods = methods_to_compare(config, nodes, comm);
  const auto is_vendor = [](const comm::Method& m) { return comm::is_vendor(m.exchange); };
  if (!config.plot.empty() && std::none_of(methods.list.begin(), methods.list.end(), is_vendor))
    throw ConfigError(
        "plot has nothing to compare with (no vendor method): add one to --methods, such as "
        "vendor-p2p");
  const auto type = std::filesystem::path(config.plot).extension();
  if (type == ".png" || type == ".pdf" || type == ".jpg")
    throw ConfigError("plot is always SVG (" + config.plot +
                      "): give --plot a name that ends in .svg");
  auto planned = methods.list;
  if (storage_for(methods, config.memory) != Storage::ordinary)
    std::copy_if(methods.list.begin(), methods.list.end(), std::back_inserter(planned), is_vendor);
  const int copies = planned.size() > methods.list.size() ? 2 : 1;
  return with_domain(config, nodes, comm, copies, planned,
                     [&](auto element, const Domain& domain, const CommandContext& context) {
                       return compare_as<decltype(element)>(config, methods, domain, context, comm);
                     });
}

}  // namespace halocline::app
