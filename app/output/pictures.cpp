// SPDX-License-Identifier: BSD-3-Clause
#include "pictures.hpp"

#include <algorithm>
#include <numeric>

#include "config/messages.hpp"
#include "output/png.hpp"
#include "output/slice.hpp"
#include "output/snapshot.hpp"
#include "support/error.hpp"
#include "support/text_file.hpp"

namespace halocline::app {

namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const auto& name : names) out += (out.empty() ? "" : ", ") + name;
  return excerpt(out, 100);
}

// Returns the numbers of the fields with these names; of all fields if there are no names.
std::vector<int> numbers_of(const std::vector<std::string>& chosen,
                            const std::vector<std::string>& names, const std::string& key) {
  std::vector<int> out(chosen.empty() ? names.size() : 0);
  std::iota(out.begin(), out.end(), 0);
  for (const auto& name : chosen) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      const auto near = nearest(name, names);
      refuse(key + " cannot be used", "there is no field " + name,
             near.empty() ? "give some of " + joined(names) : "did you mean " + near + "?");
    }
    out.push_back(static_cast<int>(found - names.begin()));
  }
  return out;
}

}  // namespace

void check_pictures(const Config& config, const std::vector<std::string>& names) {
  numbers_of(config.snapshot_fields, names, "snapshot-fields");
  numbers_of(config.slice_fields, names, "slice-fields");
  if (config.slice_every > 0 && !has_png())
    throw ConfigError(
        "slice-every cannot be used (this program was built without libpng): leave it out, or "
        "build again with libpng, Debian's libpng-dev");
}

template <class T>
Pictures<T>::Pictures(const Config& config, const Domain& domain, std::vector<std::string> names,
                      std::array<double, 3> spacing, MPI_Comm comm)
    : domain_(domain),
      names_(std::move(names)),
      spacing_(spacing),
      comm_(comm),
      snapshot_every_(config.snapshot_every),
      slice_every_(config.slice_every),
      snapshot_fields_(numbers_of(config.snapshot_fields, names_, "snapshot-fields")),
      slice_fields_(numbers_of(config.slice_fields, names_, "slice-fields")),
      slice_axis_(config.slice_axis) {
  const auto points = domain.decomposition.global()[static_cast<std::size_t>(slice_axis_)];
  slice_index_ = std::min(points - 1,
                          static_cast<std::int64_t>(config.slice_at * static_cast<double>(points)));
  check_pictures(config, names_);
}

template <class T>
void Pictures<T>::after_step(const std::string& folder, std::int64_t step, double time,
                             const FieldSet<T>& fields) {
  const bool snapshot = is_due(step, snapshot_every_), slice = is_due(step, slice_every_);
  if (!snapshot && !slice) return;
  fields.from_device();
  if (slice)
    for (const auto field : slice_fields_)
      write_slice({folder, names_[static_cast<std::size_t>(field)], field, slice_axis_,
                   slice_index_, step, time},
                  domain_, fields, comm_);
  if (!snapshot) return;
  std::vector<std::string> names;
  for (const auto field : snapshot_fields_)
    names.push_back(names_[static_cast<std::size_t>(field)]);
  write_snapshot({folder, step, time, spacing_, names, snapshot_fields_}, domain_, fields, comm_);
}

template class Pictures<double>;
template class Pictures<float>;

}  // namespace halocline::app
