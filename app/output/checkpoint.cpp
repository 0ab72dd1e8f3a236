// SPDX-License-Identifier: BSD-3-Clause
#include "checkpoint.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>

#include "checkpoint_json.hpp"
#include "checksum.hpp"
#include "comm/mpi/communicator.hpp"
#include "draft.hpp"
#include "environment.hpp"
#include "field_transfer.hpp"
#include "support/mpi_check.hpp"
#include "support/region.hpp"
#include "support/text_file.hpp"
#include "table.hpp"
#include "verify.hpp"

namespace halocline::app {

namespace {

namespace fs = std::filesystem;

void require_success(const std::error_code& error, const std::string& path) {
  if (error) refuse_to_write(path, error.message());
}

// Waits until the names in a folder are on the disk.
void sync_folder(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

void make_new_folder(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  require_success(error, path);
  fs::create_directory(path, error);
  require_success(error, path);
}

// Gives the complete draft its name. A folder of this name stays until then.
void put_in_place(const std::string& draft, const std::string& folder) {
  sync_folder(draft);
  std::error_code error;
  const auto old = folder + ".old";
  fs::remove_all(old, error);
  if (fs::exists(folder)) fs::rename(folder, old, error);
  require_success(error, folder);
  fs::rename(draft, folder, error);
  require_success(error, folder);
  sync_folder(fs::path(folder).parent_path());
  fs::remove_all(old, error);
}

}  // namespace

template <class T>
void write_checkpoint(Checkpoint& checkpoint, const Domain& domain, const FieldSet<T>& fields,
                      MPI_Comm comm) {
  const ProfileRegion region("halocline: checkpoint");
  const auto draft = checkpoint.folder + ".part";
  const auto bytes = bytes_of_field(checkpoint);
  try {
    run_on_root(comm, [&] { make_new_folder(draft); });
    FieldTransfer<T> transfer(domain, comm);
    std::uint64_t found = 0;  // the state hash of what the files hold
    for (std::size_t i = 0; i < checkpoint.files.size(); ++i) {
      const auto path = draft + "/" + checkpoint.files[i].name;
      const auto add = [&](std::int64_t at, std::span<const char> part) {
        constexpr std::int64_t kValue = sizeof(T);
        const std::span values(reinterpret_cast<const T*>(part.data()), part.size() / kValue);
        found += part_of_state_hash(values, at / kValue, static_cast<int>(i), domain.fields);
      };
      std::optional<Draft> file;  // of rank 0
      run_on_root(comm, [&] {
        file.emplace(path);
        file->reserve(bytes);
      });
      CollectiveFile shared(comm, path + ".part", CollectiveFile::Use::write);
      transfer.write(fields, static_cast<int>(i), shared, 0);
      shared.close();
      run_on_root(comm, [&] { file->commit(); });
      checkpoint.files[i].crc32 = crc32_of_file(path, bytes, comm, CollectiveFile::Use::write, add);
    }
    checkpoint.state_hash = state_hash(domain, fields, comm);
    HALOCLINE_MPI(MPI_Allreduce(MPI_IN_PLACE, &found, 1, MPI_UINT64_T, MPI_SUM, comm));
    if (found != *checkpoint.state_hash)
      refuse_to_write(checkpoint.folder, "its files do not hold what was written");
    run_on_root(comm, [&] {
      write_whole_file(draft + "/checkpoint.json", checkpoint_json(checkpoint));
      put_in_place(draft, checkpoint.folder);
    });
  } catch (const MpiError&) {
    throw;  // this rank's own error
  } catch (const EnvironmentError&) {
    run_on_root(comm, [&] {
      std::error_code error;
      fs::remove_all(draft, error);
    });
    throw;
  }
}

namespace {

// Compares the checkpoint with the run. Throws ConfigError that names the first difference.
void require_same_run(const Checkpoint& checkpoint, const Config& config, const Domain& domain,
                      const std::vector<std::string>& names) {
  const auto require = [&](bool same, const std::string& key, const std::string& there,
                           const std::string& here) {
    if (same) return;
    const bool is_fields = key == "fields";
    const auto option = key == "global" && config.local ? "local" : key;
    throw ConfigError((is_fields ? "restart has other " : "restart has another ") + key + " (" +
                      there + " in " + excerpt(checkpoint.folder, 1000) + ", here " + here +
                      "): leave out " + option +
                      (is_fields ? " and parameters that choose them" : "") +
                      ", which the checkpoint knows, or give another checkpoint");
  };
  require(checkpoint.physics == config.physics, "physics", excerpt(checkpoint.physics),
          config.physics);
  require(checkpoint.global == domain.decomposition.global(), "global",
          format_extent(checkpoint.global), format_extent(domain.decomposition.global()));
  require(checkpoint.element == config.element, "element",
          std::string(to_string(checkpoint.element)), std::string(to_string(config.element)));
  require(checkpoint.files.size() == names.size(), "fields",
          std::to_string(checkpoint.files.size()), std::to_string(names.size()));
  for (std::size_t i = 0; i < names.size(); ++i)
    require(checkpoint.files[i].field == names[i], "fields", excerpt(checkpoint.files[i].field),
            names[i]);
}

// Reads all fields. Returns the fault of the checkpoint; empty if there is none. Collective.
template <class T>
std::string fault_of_reading(const Checkpoint& checkpoint, const Domain& domain,
                             const FieldSet<T>& fields, MPI_Comm comm) {
  std::string fault;
  run_on_root(comm, [&] { fault = fault_of_sizes(checkpoint); });
  fault = broadcast(fault, comm);
  if (!fault.empty()) return fault;
  const auto bytes = bytes_of_field(checkpoint);
  FieldTransfer<T> transfer(domain, comm);
  for (std::size_t i = 0; i < checkpoint.files.size(); ++i) {
    const auto& [field, name, crc32] = checkpoint.files[i];
    const auto path = checkpoint.folder + "/" + name;
    if (crc32)
      if (const auto found = crc32_of_file(path, bytes, comm); found != *crc32)
        return name + " has checksum " + crc32_text(found) + ", not " + crc32_text(*crc32);
    CollectiveFile file(comm, path, CollectiveFile::Use::read);
    transfer.read(fields, static_cast<int>(i), file, 0);
    file.close();
  }
  if (checkpoint.state_hash && state_hash(domain, fields, comm) != *checkpoint.state_hash)
    return "its fields do not have its state_hash";
  return "";
}

// Returns the newest readable checkpoint beside this one that is older; empty if there is none.
std::string older_beside(const std::string& folder) {
  const auto path = fs::weakly_canonical(folder);
  std::string out;
  for (const auto& [step, other] : checkpoints_in(path.parent_path().string())) {
    if (fs::path(other).filename() == path.filename()) break;
    if (is_complete(other)) out = other;
  }
  return out;
}

}  // namespace

template <class T>
Restored restore(const std::string& path, const Config& config, const Domain& domain,
                 const std::vector<std::string>& names, const FieldSet<T>& fields, MPI_Comm comm) {
  const ProfileRegion region("halocline: restart");
  std::vector<std::string> folders;
  run_on_root(comm, [&] { folders = checkpoints_of(path); });
  auto left = std::ssize(folders);
  HALOCLINE_MPI(MPI_Bcast(&left, 1, MPI_INT64_T, 0, comm));
  folders.resize(static_cast<std::size_t>(left));
  Restored out;
  for (auto& folder : folders) {
    folder = broadcast(folder, comm);
    std::string text, fault;
    run_on_root(comm, [&] {
      try {
        text = text_of_checkpoint(folder);
        parse_checkpoint(text, folder);
      } catch (const ConfigError& error) {
        fault = error.what();
      }
    });
    fault = broadcast(fault, comm);
    if (fault.empty()) {
      out.checkpoint = parse_checkpoint(broadcast(text, comm), folder);
      require_same_run(out.checkpoint, config, domain, names);
      fault = fault_of_reading(out.checkpoint, domain, fields, comm);
      if (fault.empty()) return out;
      fault = "restart cannot be used (" + excerpt(folder, 1000) + " is damaged: " + fault + ")";
    }
    out.damaged.push_back(fault);
  }
  std::string older;
  run_on_root(comm, [&] { older = older_beside(folders.back()); });
  older = broadcast(older, comm);
  auto first = out.damaged.front();
  first.resize(first.rfind(')') + 1);
  throw ConfigError(first + ": give --restart " +
                    (older.empty() ? "another checkpoint" : older + ", which is older"));
}

#define HALOCLINE_INSTANTIATE(T)                                                            \
  template void write_checkpoint(Checkpoint&, const Domain&, const FieldSet<T>&, MPI_Comm); \
  template Restored restore(const std::string&, const Config&, const Domain&,               \
                            const std::vector<std::string>&, const FieldSet<T>&, MPI_Comm);
HALOCLINE_INSTANTIATE(double)
HALOCLINE_INSTANTIATE(float)
#undef HALOCLINE_INSTANTIATE

}  // namespace halocline::app
