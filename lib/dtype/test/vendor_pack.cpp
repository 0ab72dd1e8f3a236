// SPDX-License-Identifier: BSD-3-Clause
#include "vendor_pack.hpp"
#include "byte_displacements.hpp"

#include <mpi.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "dtype/datatype.hpp"
#include "dtype/mpi_bounds.hpp"
#include "dtype/type_map.hpp"
#include "support/mpi_check.hpp"
#include "support/narrow.hpp"

namespace halocline::dtype::test {

namespace {

// MPI_Pack may take bytes from wrong places. Bytes up to this distance from the buffer's address
// are still ours.
constexpr std::int64_t kReach = std::int64_t{1} << 22;

struct Bounds {
  std::int64_t lb, extent;
  bool operator==(const Bounds&) const = default;
};

Bounds vendor_bounds(const TypeExpr& expr) {
  const auto bounds = mpi_bounds(make_datatype(expr).get());
  return {bounds.lb, bounds.extent};
}

Bounds standard_bounds(const TypeExpr& expr) {
  const auto bounds = type_bounds(expr);
  return {bounds.lb, bounds.extent};
}

bool sets_bounds(const TypeExpr& expr) {
  return std::holds_alternative<Resized>(expr.node) ||
         std::holds_alternative<Subarray>(expr.node) || std::holds_alternative<Darray>(expr.node);
}

bool is_wide_number(const TypeExpr& expr) {
  const auto* t = std::get_if<Named>(&expr.node);
  return t != nullptr && t->type->members.front().type->alignment >= 16;
}

bool is_complex_number(const TypeExpr& expr) {
  const auto* t = std::get_if<Named>(&expr.node);
  if (t == nullptr) return false;
  const auto& first = *t->type->members.front().type;
  return first.size == 2 * first.alignment;
}

// Returns the first line of MPI's library version, with single spaces.
std::string library_version() {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  HALOCLINE_MPI(MPI_Get_library_version(version, &length));
  std::istringstream words(std::string(version).substr(0, std::string_view(version).find('\n')));
  std::string text, word;
  while (words >> word) text += (text.empty() ? "" : " ") + word;
  return text;
}

bool is_mpich() {
  static const bool answer = library_version().starts_with("MPICH");
  return answer;
}

// Makes a file name: "Open MPI v4.1.4, package: ..." -> "open-mpi-v4.1.4", "MPICH Version: 5.0.2"
// -> "mpich-5.0.2".
std::string file_stem(const std::string& version) {
  std::string stem;
  std::istringstream words(version.substr(0, version.find(',')));
  for (std::string word; words >> word;) {
    if (word == "Version:") continue;
    stem += (stem.empty() ? "" : "-") + word;
  }
  for (auto& c : stem)
    c = c == '.' || std::isalnum(static_cast<unsigned char>(c))
            ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
            : '-';
  return stem;
}

nlohmann::ordered_json as_json(const Bounds& bounds, const std::vector<std::int64_t>& packed) {
  return {{"lb", bounds.lb}, {"extent", bounds.extent}, {"packed_displacements", packed}};
}

}  // namespace

std::string_view to_string(Trait trait) {
  switch (trait) {
    case Trait::bounds_negative_stride:
      return "bounds-negative-stride";
    case Trait::bounds_zero_stride:
      return "bounds-zero-stride";
    case Trait::bounds_other:
      return "bounds-other";
    case Trait::without_data:
      return "without-data";
    case Trait::wide_number:
      return "wide-number";
    case Trait::complex_number:
      return "complex-number";
    case Trait::negative_stride:
      return "negative-stride";
    case Trait::zero_stride:
      return "zero-stride";
    default:
      return "none";
  }
}

Trait trait_of(const Call& call) {
  const auto types = nesting(call.expr);
  const auto any = [&](auto predicate) {
    return std::any_of(types.begin(), types.end(),
                       [&](const auto& inner) { return predicate(*inner); });
  };
  const auto empty = [](const auto& t) { return type_bounds(t).size == 0; };
  const bool bounds = any([](const auto& t) { return vendor_bounds(t) != standard_bounds(t); });
  if (any([&](const auto& t) { return empty(t) && (bounds || sets_bounds(t)); }))
    return Trait::without_data;
  const auto is_sign = [&](Trait trait, auto holds) {
    return !bounds && may_be_packed_wrongly(trait) && any(holds);
  };
  if (is_sign(Trait::wide_number, is_wide_number)) return Trait::wide_number;
  if (is_sign(Trait::complex_number, is_complex_number)) return Trait::complex_number;
  if (any_stride(call, [](auto stride) { return stride < 0; }))
    return bounds ? Trait::bounds_negative_stride : Trait::negative_stride;
  if (any_stride(call, [](auto stride) { return stride == 0; }))
    return bounds ? Trait::bounds_zero_stride : Trait::zero_stride;
  return bounds ? Trait::bounds_other : Trait::none;
}

bool may_be_packed_wrongly(Trait trait) {
  static const bool open_mpi_4 = library_version().starts_with("Open MPI v4");
  static const bool open_mpi_5 = library_version().starts_with("Open MPI v5");
  switch (trait) {
    case Trait::without_data:
    case Trait::bounds_negative_stride:
    case Trait::bounds_zero_stride:
    case Trait::bounds_other:
      return true;
    case Trait::wide_number:
      return !open_mpi_4;
    case Trait::complex_number:
      return open_mpi_5;
    case Trait::negative_stride:
      return is_mpich();
    default:
      return false;
  }
}

bool may_crash(const Call& call) {
  if (!is_mpich()) return false;
  const auto types = nesting(call.expr);
  return std::any_of(types.begin(), types.end(), [](const auto& inner) {
    const auto* t = std::get_if<Struct>(&inner->node);
    return t != nullptr && std::any_of(t->old.begin(), t->old.end(),
                                       [](const auto& old) { return type_bounds(*old).size == 0; });
  });
}

VendorPack::VendorPack() {
  for (int k = 0; k < kPlanes; ++k) {
    planes_[k].resize(static_cast<std::size_t>(2 * kReach));
    for (std::size_t i = 0; i < planes_[k].size(); ++i)
      planes_[k][i] = static_cast<unsigned char>(i >> (8 * k));
  }
}

std::vector<std::int64_t> VendorPack::displacements(const Call& call) const {
  const auto handle = make_datatype(*call.expr);
  const int count = checked_int(call.count, "count");
  const auto bounds = mpi_bounds(handle.get());
  for (const auto distance : {bounds.true_lb, bounds.true_extent, bounds.extent})
    if (distance > kReach / 4 || distance < -kReach / 4) return {};
  int capacity = 0;
  HALOCLINE_MPI(MPI_Pack_size(count, handle.get(), MPI_COMM_SELF, &capacity));
  std::vector<unsigned char> packed(static_cast<std::size_t>(capacity) + 1);
  std::vector<std::int64_t> out;
  for (int k = 0; k < kPlanes; ++k) {
    int position = 0;
    HALOCLINE_MPI(MPI_Pack(planes_[k].data() + kReach, count, handle.get(), packed.data(), capacity,
                           &position, MPI_COMM_SELF));
    out.resize(static_cast<std::size_t>(position), -kReach);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += std::int64_t{packed[i]} << (8 * k);
  }
  return out;
}

bool VendorPack::differs(const Call& call) const {
  return displacements(call) != byte_displacements(type_map(*call.expr), call.count);
}

void VendorPack::write_report(const Call& call, Trait trait,
                              const std::filesystem::path& directory) const {
  const auto version = library_version();
  const auto expected = byte_displacements(type_map(*call.expr), call.count);
  const nlohmann::ordered_json report = {
      {"mpi_library", version},
      {"category", to_string(trait)},
      {"expression", to_string(*call.expr)},
      {"count", call.count},
      {"expected", as_json(standard_bounds(*call.expr), expected)},
      {"got", as_json(vendor_bounds(*call.expr), displacements(call))}};
  std::filesystem::create_directories(directory);
  std::ofstream file(directory /
                     (file_stem(version) + "-" + std::string(to_string(trait)) + ".json"));
  // One line per key: people compare the last two lines.
  const char* separator = "{\n  ";
  for (const auto& [key, value] : report.items()) {
    file << separator << '"' << key << "\": " << value.dump();
    separator = ",\n  ";
  }
  file << "\n}\n";
}

}  // namespace halocline::dtype::test
