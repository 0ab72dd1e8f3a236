// SPDX-License-Identifier: BSD-3-Clause
// Tidies the checkpoints of an output folder, so that the newest ones are those of the present run.
#include <filesystem>
#include <system_error>
#include <vector>

#include "checkpoint.hpp"
#include "checkpoint_json.hpp"
#include "draft.hpp"

namespace halocline::app {

namespace {
namespace fs = std::filesystem;
}

void remove_old_checkpoints(const std::string& folder, std::int64_t step) {
  constexpr int kKept = 2;
  int newer = 0;
  const auto all = checkpoints_in(folder);
  for (auto one = all.rbegin(); one != all.rend(); ++one) {
    if (one->first > step) continue;
    std::error_code error;
    if (newer == kKept)
      fs::remove_all(one->second, error);
    else if (is_complete(one->second))
      ++newer;
  }
}

std::string set_aside_checkpoints(const std::string& folder, std::int64_t step) {
  std::string out;
  for (const auto& [later, path] : checkpoints_in(folder)) {
    if (later <= step) continue;
    auto aside = path + ".abandoned";
    for (int i = 2; fs::exists(aside); ++i) aside = path + ".abandoned-" + std::to_string(i);
    std::error_code error;
    fs::rename(path, aside, error);
    if (error) refuse_to_write(aside, error.message());
    out += (out.empty() ? "set aside checkpoints of later steps than this run: " : ", ") + aside;
  }
  return out.empty() ? out : out + "\n";
}

void remove_leftovers(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> all;
  for (const auto& entry : fs::directory_iterator(folder, error)) all.push_back(entry.path());
  for (const auto& path : all) {
    auto complete = path;
    complete.replace_extension();
    const auto name = complete.filename().string();
    const bool is_checkpoint = step_of_checkpoint(name) >= 0;
    const bool is_snapshot = name.starts_with("fields-") && name.ends_with(".vti");
    // A run that is killed while it replaces a checkpoint leaves the replaced one alone.
    if (is_checkpoint && path.extension() == ".old" && !fs::exists(complete))
      fs::rename(path, complete, error);
    else if ((is_checkpoint && path.extension() == ".old") ||
             ((is_checkpoint || is_snapshot) && path.extension() == ".part"))
      fs::remove_all(path, error);
  }
}

}  // namespace halocline::app
