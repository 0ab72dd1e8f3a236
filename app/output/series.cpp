// SPDX-License-Identifier: BSD-3-Clause
#include "series.hpp"

#include <bit>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>

#include "draft.hpp"
#include "support/error.hpp"
#include "support/text_file.hpp"

namespace halocline::app {

namespace {

// Describes a file that lists snapshots: one line for each, between `head` and `tail`.
struct SeriesForm {
  const char* file;
  std::string_view head, tail;
};

constexpr SeriesForm kPvd{
    "fields.pvd",
    "<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"1.0\">\n <Collection>\n",
    " </Collection>\n</VTKFile>\n"};
constexpr SeriesForm kXmf{"fields.xmf",
                          "<?xml version=\"1.0\"?>\n<Xdmf Version=\"3.0\">\n <Domain>\n  <Grid "
                          "Name=\"fields\" GridType=\"Collection\" CollectionType=\"Temporal\">\n",
                          "  </Grid>\n </Domain>\n</Xdmf>\n"};
constexpr FileKind kSeriesFile{"list of snapshots", "move it away, or give output-folder another",
                               std::int64_t{1} << 30};

// Returns the step of the snapshot that a line names.
std::optional<std::int64_t> step_in(std::string_view line) {
  constexpr std::string_view kName = "\"fields-";
  const auto at = line.find(kName);
  if (at == std::string_view::npos) return std::nullopt;
  std::int64_t step = 0;
  const auto* const begin = line.data() + at + kName.size();
  if (std::from_chars(begin, line.data() + line.size(), step).ec != std::errc{})
    return std::nullopt;
  return step;
}

void add_line(const SeriesForm& form, const Snapshot& snapshot, const std::string& line) {
  const auto path = snapshot.folder + "/" + form.file;
  std::map<std::int64_t, std::string> lines;
  if (std::error_code error; std::filesystem::exists(path, error)) {
    const auto text = read_whole_file(path, kSeriesFile);
    if (!text.starts_with(form.head) || !text.ends_with(form.tail))
      throw ConfigError("snapshot cannot be listed (" + excerpt(path, 1000) +
                        ": not written by this program): move that file away, or give "
                        "output-folder another folder");
    std::istringstream old(text);
    for (std::string one; std::getline(old, one);)
      if (const auto step = step_in(one)) lines[*step] = one + "\n";
  }
  // Later steps are those of a run that was left for this one.
  lines.erase(lines.upper_bound(snapshot.step), lines.end());
  lines[snapshot.step] = line;
  std::string text(form.head);
  for (const auto& [step, one] : lines) text += one;
  write_whole_file(path, text += form.tail);
}

std::string xmf_line(const Snapshot& snapshot, const VtiLayout& layout, const comm::Int3& global) {
  const auto backwards = [](const auto& x, const auto& y, const auto& z) {
    return z + " " + y + " " + x;
  };
  const auto points =
      backwards(std::to_string(global[0]), std::to_string(global[1]), std::to_string(global[2]));
  const auto& [dx, dy, dz] = snapshot.spacing;
  const std::string three =
      "<DataItem Dimensions=\"3\" NumberType=\"Float\" Precision=\"8\" Format=\"XML\">";
  const auto precision = std::to_string(layout.field_bytes / (global[0] * global[1] * global[2]));
  const std::string endian = std::endian::native == std::endian::little ? "Little" : "Big";
  auto out = "   <Grid Name=\"" + snapshot.file() + "\" GridType=\"Uniform\"><Time Value=\"" +
             shortest(snapshot.time) + "\"/><Topology TopologyType=\"3DCoRectMesh\" Dimensions=\"" +
             points + "\"/><Geometry GeometryType=\"ORIGIN_DXDYDZ\">" + three + "0 0 0</DataItem>" +
             three + backwards(shortest(dx), shortest(dy), shortest(dz)) + "</DataItem></Geometry>";
  for (std::size_t i = 0; i < snapshot.names.size(); ++i)
    out += "<Attribute Name=\"" + snapshot.names[i] +
           "\" AttributeType=\"Scalar\" Center=\"Node\"><DataItem Format=\"Binary\" Dimensions=\"" +
           points + "\" NumberType=\"Float\" Precision=\"" + precision + "\" Endian=\"" + endian +
           "\" Seek=\"" + std::to_string(layout.data[i]) + "\">" + snapshot.file() +
           "</DataItem></Attribute>";
  return out + "</Grid>\n";
}

}  // namespace

void add_to_series(const Snapshot& snapshot, const VtiLayout& layout, const comm::Int3& global) {
  add_line(kPvd, snapshot,
           "  <DataSet timestep=\"" + shortest(snapshot.time) + "\" file=\"" + snapshot.file() +
               "\"/>\n");
  add_line(kXmf, snapshot, xmf_line(snapshot, layout, global));
}

}  // namespace halocline::app
