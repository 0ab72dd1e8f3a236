// SPDX-License-Identifier: BSD-3-Clause
#include "vendor_pack.hpp"

#include <mpi.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "dtype/datatype.hpp"
#include "dtype/support/mpi_check.hpp"
#include "dtype/support/narrow.hpp"
#include "dtype/type_map.hpp"

namespace halocline::dtype::test {

namespace {

// MPI_Pack may take bytes from wrong places; this far from the buffer's address they are still
// ours.
constexpr std::int64_t kReach = std::int64_t{1} << 22;

struct Bounds {
  std::int64_t lb, extent;
  bool operator==(const Bounds&) const = default;
};

Bounds vendor_bounds(const TypeExpr& expr) {
  const auto handle = make_datatype(expr);
  MPI_Aint lb = 0, extent = 0;
  HALOCLINE_MPI(MPI_Type_get_extent(handle.get(), &lb, &extent));
  return {lb, extent};
}

Bounds standard_bounds(const TypeExpr& expr) {
  const auto map = type_map(expr);
  return {map.lb, map.extent};
}

bool sets_bounds(const TypeExpr& expr) {
  return std::holds_alternative<Resized>(expr.node) ||
         std::holds_alternative<Subarray>(expr.node) || std::holds_alternative<Darray>(expr.node);
}

std::string library_version() {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  HALOCLINE_MPI(MPI_Get_library_version(version, &length));
  std::string text = version;
  return text.substr(0, text.find_last_not_of(" \n") + 1);
}

// "Open MPI v4.1.4, package: ..." -> "open-mpi-v4.1.4"
std::string file_stem(const std::string& version) {
  std::string stem = version.substr(0, version.find_first_of(",\n"));
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
    case Trait::bounds_without_data:
      return "bounds-without-data";
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
  const bool bounds = std::any_of(types.begin(), types.end(), [](const auto& inner) {
    return vendor_bounds(*inner) != standard_bounds(*inner);
  });
  const bool without_data = std::any_of(types.begin(), types.end(), [](const auto& inner) {
    return sets_bounds(*inner) && type_bounds(*inner).size == 0;
  });
  if (!bounds && without_data) return Trait::bounds_without_data;
  if (any_stride(call, [](auto stride) { return stride < 0; }))
    return bounds ? Trait::bounds_negative_stride : Trait::negative_stride;
  if (any_stride(call, [](auto stride) { return stride == 0; }))
    return bounds ? Trait::bounds_zero_stride : Trait::zero_stride;
  return bounds ? Trait::bounds_other : Trait::none;
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
