// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/bench/table_report.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

namespace halocline::dtype::bench {

TableReport::TableReport(bool json, const std::string& headline,
                         std::vector<std::pair<std::string, std::string>> provenance)
    : json_(json), table_file_(json ? stderr : stdout), provenance_(std::move(provenance)) {
  provenance_.emplace_back("mpi", mpi_library());
  provenance_.emplace_back("compiler", __VERSION__);
  std::fprintf(table_file_, "%s, %s\n", headline.c_str(), mpi_library().c_str());
}

void TableReport::begin(const std::string& group, const Table& table, int name_width) {
  group_ = group;
  table_ = table;
  name_width_ = name_width;
  print_head(table_file_, group, table, name_width);
}

void TableReport::add(const std::string& name, const Row& row) {
  std::map<std::string, double> fields(row.fields.begin(), row.fields.end());
  ++rows_;
  if (!row.verified) ++unverified_;
  if (json_) print_json(name, row);
  for (const auto& [field, value] : row.fields) {
    if (field.ends_with("_ns")) fields[field.substr(0, field.size() - 2) + "us"] = value / 1e3;
    constexpr std::string_view kTarget = "target_";
    if (field.starts_with(kTarget)) add_target(name, field.substr(kTarget.size()), value, fields);
  }
  print_row(
      table_file_, name, table_, name_width_,
      [&](const char* field) {
        const auto found = fields.find(field);
        return found == fields.end() ? std::nan("") : found->second;
      },
      row.verified, row.note);
  std::fflush(nullptr);
}

void TableReport::end() const {
  std::fprintf(table_file_, "\n%d rows, %d not verified\n", rows_, unverified_);
  if (!targets_.empty()) std::fprintf(table_file_, "targets:\n");
  for (const auto& target : targets_) std::fprintf(table_file_, "  %s\n", target.c_str());
}

void TableReport::add_target(const std::string& name, const std::string& field, double at_least,
                             const std::map<std::string, double>& fields) {
  const auto found = fields.find(field);
  if (found == fields.end() || std::isnan(found->second)) return;
  char text[128];
  std::snprintf(text, sizeof text, " %s %.2f, at least %.2f: %s", field.c_str(), found->second,
                at_least, found->second >= at_least ? "met" : "MISSED");
  targets_.push_back(group_ + "/" + name + text);
}

void TableReport::print_json(const std::string& name, const Row& row) const {
  nlohmann::ordered_json out = {{"group", group_}, {"case", name}};
  for (const auto& [field, value] : row.fields) out[field] = number(value);
  out["verified"] = row.verified;
  out["note"] = row.note;
  for (const auto& [key, value] : provenance_) out[key] = value;
  std::printf("%s\n", out.dump().c_str());
}

}  // namespace halocline::dtype::bench
