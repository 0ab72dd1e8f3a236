// SPDX-License-Identifier: BSD-3-Clause
#include "model.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "comm/exchange/method.hpp"
#include "environment.hpp"
#include "methods.hpp"
#include "support/error.hpp"

namespace halocline::app {

namespace {

std::string join(const std::vector<std::string>& names) {
  std::string out;
  for (const auto& name : names) out.append(out.empty() ? "" : ", ").append(name);
  return out;
}

// Tells if a file exists, even if it cannot be read.
bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::status(path, ignored).type() != std::filesystem::file_type::not_found;
}

// Tells if a method leaves the choice of the exchange open, or the choice of the transfer to and
// from a device.
bool leaves_something_open(const Config& config, const std::vector<comm::Method>& methods) {
  return std::any_of(methods.begin(), methods.end(), [&](const comm::Method& method) {
    if (method.exchange == comm::Exchange::automatic) return true;
    return config.memory == Memory::device && !method.transfer && !comm::is_vendor(method.exchange);
  });
}

void warn(const std::string& path, const std::string& differences, const char* what_now) {
  std::fprintf(stderr, "halocline: system model %s is of another machine (%s): %s\n", path.c_str(),
               differences.c_str(), what_now);
}

}  // namespace

std::string model_path(const Config& config) {
  if (!config.model.empty()) return config.model;
  try {
    return dtype::default_model_path();
  } catch (const ConfigError&) {
    return "";
  }
}

dtype::ModelProvenance machine_of(const Provenance& provenance) {
  const auto* const device = dtype::current_device();
  return {.time = provenance.time,
          .cpu = join(provenance.cpus),
          .gpu = join(provenance.gpus),
          .driver = provenance.cuda,
          .mpi = provenance.mpi_library,
          .host = provenance.hosts.front(),
          .git = build().git,
          .emulated = device != nullptr && device->properties().emulated};
}

std::optional<dtype::SystemModel> load_model(const Config& config,
                                             const std::vector<comm::Method>& methods,
                                             Provenance& provenance, MPI_Comm comm) {
  const bool named = !config.model.empty();
  if (!named && !leaves_something_open(config, methods)) return std::nullopt;
  std::string path, differences, text;
  run_on_root(comm, [&] {
    path = model_path(config);
    if (!named && (path.empty() || !exists(path))) return;
    const auto model = dtype::read_model(path);
    differences = dtype::require_match(model.provenance, machine_of(provenance),
                                       config.force_model || !named);
    if (!differences.empty()) {
      warn(path, differences,
           config.force_model ? "used by force" : "not used; measure one with halocline calibrate");
      if (!config.force_model) return;
    }
    if (const auto flaws = flaws_of(model, path); !flaws.empty())
      std::fprintf(stderr, "halocline: %s; until then, what it does not cover goes by defaults\n",
                   flaws.c_str());
    text = to_json(model);
  });
  text = broadcast(std::move(text), comm);
  if (text.empty()) return std::nullopt;
  auto model = dtype::parse_model(text, config.model);
  provenance.model = {broadcast(std::move(path), comm), model.provenance.time,
                      model.provenance.host, model.provenance.git,
                      broadcast(std::move(differences), comm)};
  return model;
}

std::string describe_model(const Provenance& provenance) {
  if (!provenance.model) return "";
  const auto& model = *provenance.model;
  return "system model: " + model.path + " (measured " + model.time + " on " + model.host + ")\n";
}

std::string model_state(const Config& config, const Provenance& provenance) {
  const auto path = model_path(config);
  if (path.empty()) return "none (no HALOCLINE_MODEL, XDG_CONFIG_HOME or HOME is set)";
  if (!exists(path)) return path + " (none there: transfers are chosen by their defaults)";
  try {
    const auto whole = dtype::read_model(path);
    const auto& model = whole.provenance;
    const auto differences = dtype::require_match(model, machine_of(provenance), true);
    if (!differences.empty()) return path + " (of another machine: " + differences + ")";
    const auto flaws = flaws_of(whole, path);
    return path + " (of this machine, measured " + model.time + " on " + model.host + ")" +
           (flaws.empty() ? "" : "; " + flaws);
  } catch (const Error& error) {
    return path + " (cannot be used: " + error.what() + ")";
  }
}

dtype::ResourceCache* resources_if_any() {
  return dtype::current_device() == nullptr ? nullptr : &dtype::current_resources();
}

}  // namespace halocline::app
