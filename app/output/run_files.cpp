// SPDX-License-Identifier: BSD-3-Clause
#include "run_files.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "checkpoint.hpp"
#include "checkpoint_json.hpp"
#include "comm/mpi/communicator.hpp"
#include "draft.hpp"
#include "environment.hpp"
#include "field_statistics.hpp"
#include "pictures.hpp"
#include "run_control.hpp"
#include "snapshot.hpp"
#include "support/error.hpp"
#include "support/mpi_check.hpp"
#include "support/text_file.hpp"
#include "time_series.hpp"

namespace halocline::app {

namespace {

namespace fs = std::filesystem;

// Returns the folder that the user names, or a new one of the present time.
std::string choose_folder(const Config& config) {
  if (!config.output_folder.empty()) return config.output_folder;
  const auto now = std::time(nullptr);
  char name[64];
  std::strftime(name, sizeof name, "results/mine/run-%Y%m%d-%H%M%S", std::gmtime(&now));
  std::string out = name;
  for (int i = 2; fs::exists(out); ++i) out = std::string(name) + "-" + std::to_string(i);
  return out;
}

// Returns "mhd.nu 0.1 -> 0.2, ..." for all settings that differ.
std::string changes_between(const std::string& before, const std::string& after) {
  const auto then = nlohmann::json::parse(before), now = nlohmann::json::parse(after);
  std::string out;
  for (const auto& [key, value] : now.items())
    if (then.at(key) != value)
      out += (out.empty() ? "" : ", ") + key + " " + then.at(key).dump() + " -> " + value.dump();
  return out;
}

// Tells if a checkpoint is this folder, or lies in it.
bool lies_in(const std::string& checkpoint, const std::string& folder) {
  std::error_code error;
  const auto path = fs::weakly_canonical(checkpoint, error), place = fs::canonical(folder, error);
  return path == place || path.parent_path() == place;
}

// Throws ConfigError if a parameter that the run keeps has changed.
void require_kept(const PhysicsKind& kind, const std::string& before, const std::string& after) {
  const auto then = nlohmann::json::parse(before), now = nlohmann::json::parse(after);
  for (const auto name : kind.kept) {
    const auto key = std::string(kind.name) + "." + std::string(name);
    if (then.contains(key) && then.at(key) != now.at(key))
      throw ConfigError(key + " cannot change (" + excerpt(now.at(key).dump()) +
                        ", the run keeps " + excerpt(then.at(key).dump()) +
                        "): leave it as it was, or begin a new run");
  }
}

// Keeps an output folder from other runs. A process that ends in any way lets the folder go.
class FolderLock {
 public:
  // Throws ConfigError if another run writes there. File systems without locks keep nobody away.
  explicit FolderLock(const std::string& folder)
      : descriptor_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    // The ranks of a launcher that is killed live on for a moment.
    constexpr int kTries = 50;
    for (int i = 0; i < kTries; ++i) {
      if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
      usleep(100'000);
    }
    close(descriptor_);
    throw ConfigError("output-folder is in use (another run writes to " + excerpt(folder, 1000) +
                      "): give another folder, or wait until that run has ended");
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock() { close(descriptor_); }

 private:
  int descriptor_;
};

// Refuses a folder that holds a run which is not continued.
void require_free(const Config& config, const std::string& folder) {
  bool holds_run = !checkpoints_in(folder).empty();
  for (const auto* name : {"timeseries.csv", "fields.pvd"})
    holds_run = holds_run || fs::exists(folder + "/" + name);
  const bool goes_on = !config.restart.empty() && lies_in(config.restart, folder);
  if (holds_run && !goes_on)
    throw ConfigError("output-folder holds a run already (" + excerpt(folder, 1000) +
                      "): give a new folder, or go on with that run by --restart");
}

}  // namespace

std::vector<std::string> names_of_fields(const PhysicsInfo& physics, int fields) {
  std::vector<std::string> out(physics.fields.begin(), physics.fields.end());
  for (int field = 0; physics.fields.empty() && field < fields; ++field)
    out.push_back("field" + std::to_string(field));
  return out;
}

bool writes_files(const Config& config) {
  return !config.output_folder.empty() || config.series_every > 0 || config.checkpoint_every > 0 ||
         config.snapshot_every > 0 || config.slice_every > 0;
}

void check_files(const Config& config, MPI_Comm comm) {
  check_pictures(config, names_of_fields(physics_of(config).info(config), config.fields));
  if (!config.output_folder.empty())
    run_on_root(comm, [&] { require_free(config, config.output_folder); });
}

template <class T>
class RunFiles<T>::Implementation {
 public:
  Implementation(const Config& config, const Domain& domain, const PhysicsInfo& info,
                 Physics<T>& physics, MPI_Comm comm)
      : config_(config),
        domain_(domain),
        info_(info),
        physics_(physics),
        comm_(comm),
        names_(names_of_fields(info, domain.fields)),
        pictures_(config, domain, names_, info.spacing, comm),
        folder_(prepared_folder(config, comm)) {
    if (!folder_.empty()) control_.emplace(folder_, comm);
  }

  const std::string& folder() const { return folder_; }

  Restart restart(const FieldSet<T>& fields) {
    if (config_.restart.empty()) return {};
    const auto [checkpoint, damaged] =
        app::restore(config_.restart, config_, domain_, names_, fields, comm_);
    const bool is_new = checkpoint.state.empty();
    if (is_new && checkpoint.step > 0)
      throw ConfigError("restart has no state (" + excerpt(checkpoint.folder, 1000) + ", step " +
                        std::to_string(checkpoint.step) +
                        "): an initial state of another program has step 0");
    require_kept(physics_of(config_), checkpoint.settings, settings_json(config_));
    try {
      if (!is_new) physics_.restore(checkpoint.state);
    } catch (const ConfigError& error) {
      throw ConfigError("restart cannot be used (" + excerpt(checkpoint.folder, 1000) + " " +
                        error.what() + "): give --restart another checkpoint");
    }
    for (const auto& line : damaged) warn(comm_, line + "\n");
    say(config_, comm_,
        "goes on from " + checkpoint.folder + ", step " + std::to_string(checkpoint.step) + "\n");
    foreign_ = is_new || checkpoint.foreign;
    first_settings_ = checkpoint.settings;
    return {checkpoint.step, is_new, !same_parameters(checkpoint, config_), foreign_};
  }

  std::optional<End> after_step(std::int64_t step, std::int64_t substep, const FieldSet<T>& fields,
                                const std::function<void()>& set_all_ghosts) {
    const auto clock = physics_.clock(substep);
    const bool is_first = !last_checkpoint_;
    if (is_first) last_checkpoint_ = step;
    const auto wishes = control_ ? control_->wishes() : RunControl::Wishes{};
    const bool ends = !wishes.stop.empty() && step < config_.steps;
    const bool due = is_due(step, config_.checkpoint_every) ||
                     (config_.checkpoint_every > 0 && step == config_.steps);
    // A run that is stopped at its first step may have its checkpoint in another folder.
    const bool keeps =
        ends && is_first ? !has_checkpoint(step) : (ends || due) && step != last_checkpoint_;
    const bool series = is_due(step, config_.series_every);
    const bool must_look =
        keeps || series || !(clock.dt > 0) || is_due(step, kLookEvery) || step == config_.steps;
    if (must_look && (control_ || !info_.fields.empty())) {
      fields.from_device();
      if (const auto place = find_not_finite(domain_, fields, comm_))
        return End{"", describe_not_finite(*place, step, clock.time, fields)};
    }
    if (info_.chooses_steps && !(clock.dt > 0))
      return End{"", "the time step is 0 at step " + std::to_string(step)};
    if (series) write_row(step, clock, fields, set_all_ghosts);
    pictures_.after_step(folder_, step, clock.time, fields);
    if (is_first && !folder_.empty() && step < config_.steps) set_aside_later(step);
    if (wishes.reload) reload(step, fields, set_all_ghosts);
    if (keeps) write_checkpoint_of(step, fields);
    if (ends) return End{wishes.stop, ""};
    return std::nullopt;
  }

 private:
  // A run that has broken down is found after at most this number of steps.
  static constexpr std::int64_t kLookEvery = 10;

  // Returns the folder, which is there; empty if nothing is written. Collective.
  std::string prepared_folder(const Config& config, MPI_Comm comm) {
    if (!writes_files(config)) return "";
    std::string folder;
    run_on_root(comm, [&] {
      folder = choose_folder(config);
      std::error_code error;
      fs::create_directories(folder, error);
      if (error) refuse_to_write(folder, error.message());
      lock_.emplace(folder);
      // A file for an earlier run must not stop this one.
      for (const auto* name : {"STOP", "RELOAD"}) fs::remove(folder + "/" + name, error);
      require_free(config, folder);
      remove_leftovers(folder);
    });
    return broadcast(folder, comm);
  }

  // Leaves this run's checkpoints as the newest ones. Comes late, as a run that is refused must
  // change nothing.
  void set_aside_later(std::int64_t step) {
    std::string aside;
    run_on_root(comm_, [&] { aside = set_aside_checkpoints(folder_, step); });
    warn(comm_, aside);
  }

  bool has_checkpoint(std::int64_t step) {
    bool out = false;
    run_on_root(comm_, [&] { out = checkpoints_in(folder_).contains(step); });
    HALOCLINE_MPI(MPI_Bcast(&out, 1, MPI_CXX_BOOL, 0, comm_));
    return out;
  }

  std::string describe_not_finite(const FieldPoint& at, std::int64_t step, double time,
                                  const FieldSet<T>& fields) {
    const auto& name = names_[static_cast<std::size_t>(at.field)];
    auto out = name + " is not finite at step " + std::to_string(step) + ", point (" +
               std::to_string(at.point[0]) + ", " + std::to_string(at.point[1]) + ", " +
               std::to_string(at.point[2]) + ")";
    if (folder_.empty()) return out;
    std::vector<int> all;
    for (int field = 0; field < domain_.fields; ++field) all.push_back(field);
    const Snapshot snapshot{folder_, step, time, info_.spacing, names_, all};
    try {
      write_snapshot(snapshot, domain_, fields, comm_);
    } catch (const MpiError&) {
      throw;  // this rank's own error
    } catch (const Error& error) {
      return out + "; it is not kept: " + error.what();
    }
    return out + ", written to " + folder_ + "/" + snapshot.file();
  }

  void write_row(std::int64_t step, const Clock& clock, const FieldSet<T>& fields,
                 const std::function<void()>& set_all_ghosts) {
    fields.from_device();
    std::vector<double> numbers;
    for (const auto& [least, rms, largest] : field_statistics(domain_, fields, comm_))
      numbers.insert(numbers.end(), {least, rms, largest});
    if (!info_.measures.empty()) {
      set_all_ghosts();
      const auto measured = physics_.measure(fields, comm_);
      numbers.insert(numbers.end(), measured.begin(), measured.end());
    }
    run_on_root(comm_, [&] {
      if (!series_) {
        std::vector<std::string> columns;
        for (const auto& name : names_)
          columns.insert(columns.end(), {name + "_min", name + "_rms", name + "_max"});
        columns.insert(columns.end(), info_.measures.begin(), info_.measures.end());
        series_.emplace(folder_ + "/timeseries.csv", columns, info_.conserved, step);
      }
      series_->append(step, clock.time, clock.dt, numbers);
    });
  }

  void write_checkpoint_of(std::int64_t step, const FieldSet<T>& fields) {
    fields.from_device();
    Checkpoint checkpoint;
    checkpoint.folder = folder_ + "/" + checkpoint_name(step);
    checkpoint.physics = config_.physics;
    checkpoint.step = step;
    checkpoint.global = domain_.decomposition.global();
    checkpoint.element = config_.element;
    for (const auto& name : names_) checkpoint.files.push_back({name, name + ".raw", {}});
    checkpoint.foreign = foreign_;
    checkpoint.state = physics_.state();
    checkpoint.settings = settings_json(config_);
    write_checkpoint(checkpoint, domain_, fields, comm_);
    run_on_root(comm_, [&] { remove_old_checkpoints(folder_, step); });
    last_checkpoint_ = step;
  }

  // Takes the parameters from the command line and the config file as they are now. Wrong ones
  // change nothing.
  void reload(std::int64_t step, const FieldSet<T>& fields,
              const std::function<void()>& set_all_ghosts) {
    try {
      auto config = config_;
      config.parameters = reread_parameters(config_.physics, first_settings_, comm_);
      require_kept(physics_of(config_), settings_json(config_), settings_json(config));
      const auto changes = changes_between(settings_json(config_), settings_json(config));
      if (!changes.empty()) {  // a step that is chosen anew would change the results
        set_all_ghosts();
        physics_.reload(config, fields, comm_);
      }
      config_.parameters = config.parameters;
      run_on_root(comm_, [&] {  // --quiet does not hide that the results are others now
        print("RELOAD after step " + std::to_string(step) + ": " +
              (changes.empty() ? "no parameter has changed" : changes) + "\n");
      });
    } catch (const MpiError&) {
      throw;  // this rank's own error
    } catch (const Error& error) {
      warn(comm_, "kept the old parameters: " + std::string(error.what()) + "\n");
    }
    control_->end_reload();
  }

  Config config_;  // with the parameters of the last RELOAD
  const Domain& domain_;
  const PhysicsInfo& info_;
  Physics<T>& physics_;
  MPI_Comm comm_;
  std::vector<std::string> names_;
  bool foreign_ = false;
  std::string first_settings_ = "{}";  // of the checkpoint from which this run goes on
  Pictures<T> pictures_;            // before the folder, which a wrong configuration must not make
  std::optional<FolderLock> lock_;  // of rank 0
  std::string folder_;
  std::optional<RunControl> control_;
  std::optional<TimeSeries> series_;             // of rank 0
  std::optional<std::int64_t> last_checkpoint_;  // or the step at which this run began
};

template <class T>
RunFiles<T>::RunFiles(const Config& config, const Domain& domain, const PhysicsInfo& info,
                      Physics<T>& physics, MPI_Comm comm)
    : self_(std::make_unique<Implementation>(config, domain, info, physics, comm)) {}

template <class T>
RunFiles<T>::~RunFiles() = default;

template <class T>
const std::string& RunFiles<T>::folder() const {
  return self_->folder();
}

template <class T>
typename RunFiles<T>::Restart RunFiles<T>::restart(const FieldSet<T>& fields) {
  return self_->restart(fields);
}

template <class T>
std::optional<typename RunFiles<T>::End> RunFiles<T>::after_step(
    std::int64_t step, std::int64_t substep, const FieldSet<T>& fields,
    const std::function<void()>& set_all_ghosts) {
  return self_->after_step(step, substep, fields, set_all_ghosts);
}

template class RunFiles<double>;
template class RunFiles<float>;

}  // namespace halocline::app
