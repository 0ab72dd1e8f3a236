// SPDX-License-Identifier: BSD-3-Clause
#include "vti.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "support/narrow.hpp"

namespace halocline::app {

namespace {

std::string extent_of(const comm::Int3& global) {
  const auto range = [&](std::size_t axis) { return "0 " + std::to_string(global[axis] - 1); };
  return range(0) + " " + range(1) + " " + range(2);
}

// Returns a number of the whole file, for example its time.
std::string file_value(const char* type, const char* name, const std::string& value) {
  return std::string("   <DataArray type=\"") + type + "\" Name=\"" + name +
         "\" NumberOfTuples=\"1\" format=\"ascii\">" + value + "</DataArray>\n";
}

}  // namespace

std::string shortest(double value) {
  std::array<char, 32> buffer{};
  return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr};
}

std::string digits_of_step(std::int64_t step) {
  constexpr std::size_t kDigits = 8;
  const auto digits = std::to_string(step);
  return std::string(kDigits - std::min(kDigits, digits.size()), '0') + digits;
}

std::string Snapshot::file() const {
  return "fields-" + digits_of_step(step) + ".vti";
}

std::string VtiLayout::length() const {
  std::string out(kLengthBytes, '\0');
  std::memcpy(out.data(), &field_bytes, out.size());
  return out;
}

VtiLayout lay_out(const Snapshot& snapshot, const comm::Int3& global, int value_bytes) {
  VtiLayout out;
  out.field_bytes = checked_multiply(checked_multiply(global[0], global[1]),
                                     checked_multiply(global[2], value_bytes));
  const auto stride = out.field_bytes + VtiLayout::kLengthBytes;
  const auto extent = extent_of(global);
  const auto& [dx, dy, dz] = snapshot.spacing;
  const bool is_little = std::endian::native == std::endian::little;
  out.head = "<?xml version=\"1.0\"?>\n<VTKFile type=\"ImageData\" version=\"1.0\" byte_order=\"" +
             std::string(is_little ? "LittleEndian" : "BigEndian") +
             "\" header_type=\"UInt64\">\n <ImageData WholeExtent=\"" + extent +
             "\" Origin=\"0 0 0\" Spacing=\"" + shortest(dx) + " " + shortest(dy) + " " +
             shortest(dz) + "\">\n  <FieldData>\n" +
             file_value("Float64", "TimeValue", shortest(snapshot.time)) +
             file_value("Int64", "step", std::to_string(snapshot.step)) +
             "  </FieldData>\n  <Piece Extent=\"" + extent + "\">\n   <PointData>\n";
  for (std::size_t i = 0; i < snapshot.names.size(); ++i)
    out.head += "    <DataArray type=\"Float" + std::to_string(8 * value_bytes) + "\" Name=\"" +
                snapshot.names[i] + "\" format=\"appended\" offset=\"" +
                std::to_string(static_cast<std::int64_t>(i) * stride) + "\"/>\n";
  out.head += "   </PointData>\n  </Piece>\n </ImageData>\n <AppendedData encoding=\"raw\">\n_";
  out.tail = "\n </AppendedData>\n</VTKFile>\n";
  auto at = std::ssize(out.head);
  for (std::size_t i = 0; i < snapshot.names.size(); ++i, at += stride)
    out.data.push_back(at + VtiLayout::kLengthBytes);
  out.bytes = at + std::ssize(out.tail);
  return out;
}

}  // namespace halocline::app
